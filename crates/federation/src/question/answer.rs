//! A site's answer: its exact words, or, under noise, the sum that the door makes.

use rand_core::CryptoRng;
use veilsum_cluster::Batch;
use veilsum_door::{
    Granted,
    guard::{Priced, Source},
};
use veilsum_proto::{Error, noise, site::Input};

use super::{Layout, Question, SumBounds, too_many_rows};
use crate::{answerer::Answerer, error::Failure};

/// What a site needs to answer with, besides its rows.
pub struct Terms<'a> {
    /// The plan's form.
    pub form: SumBounds,
    /// Whether this site was drawn for the question; one that was not sends zeros.
    pub drawn: bool,
    /// The batch that a [`Question::Judge`] is about.
    pub judged: Option<&'a Batch>,
    /// What the noise of a plan that has any is drawn with where there is no door ([`contribute`]).
    pub noise: Option<&'a noise::Key>,
}

impl Terms<'_> {
    /// Nobody is sampled and nothing is judged elsewhere.
    pub fn everybody(form: SumBounds) -> Self {
        Terms { form, drawn: true, judged: None, noise: None }
    }
}

/// A site's answer, ready to be masked: of a plan with noise the door makes the sum and draws its noise.
///
/// # Errors
/// [`Failure`] naming what does not fit.
pub fn answer(
    question: &Question,
    rows: &dyn Answerer,
    terms: &Terms<'_>,
    granted: Granted,
    rng: &mut dyn CryptoRng,
) -> Result<Input<'static>, Failure> {
    match asked(question, rows, terms)? {
        Asked::Exact(words) => Ok(granted.exact(words)?),
        Asked::Noisy(sum, _) => sum.with(|factors, source| granted.noisy(factors, source, rng)),
    }
}

/// The words of an answer as they would be masked, without a door: for rehearsals, tests and the audit, which have no site's account.
///
/// # Errors
/// As [`answer`].
pub fn contribute(question: &Question, rows: &dyn Answerer, terms: &Terms<'_>) -> Result<Vec<u64>, Failure> {
    match asked(question, rows, terms)? {
        Asked::Exact(words) => Ok(words),
        Asked::Noisy(sum, priced) => {
            let key = terms.noise.ok_or(Error::ApiMisuse("a plan with noise, and no key to draw it"))?;
            sum.with(|factors, source| source.noisy(factors, priced.deviation, key))
        }
    }
}

/// What a question asks of rows.
enum Asked<'a> {
    /// These words.
    Exact(Vec<u64>),
    /// A sum, with noise.
    Noisy(Sum<'a>, Priced),
}

/// A sum under noise that is still to be made.
struct Sum<'a> {
    rows: &'a dyn Answerer,
    /// Nothing for the number of rows.
    batch: Option<&'a Batch>,
    factors: Vec<f64>,
}

impl Sum<'_> {
    fn with<T>(self, make: impl FnOnce(&[f64], Source<'_>) -> Result<T, Error>) -> Result<T, Failure> {
        let (mut make, mut made) = (Some(make), None);
        let mut take = |source: Source<'_>| {
            let make = make.take().ok_or(Error::ApiMisuse("a sum is made once"))?;
            made = Some(make(&self.factors, source)?);
            Ok(())
        };
        match self.batch {
            None => take(Source::Counts(&[Some(self.rows.rows())]))?,
            Some(batch) => self.rows.sum(batch, &self.factors, &mut take)?,
        }
        made.ok_or_else(|| Error::ApiMisuse("no sum was made").into())
    }
}

fn asked<'a>(question: &'a Question, rows: &'a dyn Answerer, terms: &Terms<'a>) -> Result<Asked<'a>, Failure> {
    let (form, domain) = (&terms.form, rows.domain());
    // Under noise their number decides nothing ([NOI-8]).
    if form.noise.is_none() && rows.rows() > form.max_rows {
        return Err(too_many_rows(form.max_rows));
    }
    let judged = || terms.judged.ok_or(Error::ApiMisuse("nothing was laid before this site"));
    let (batch, layout) = match question {
        Question::CountRows => (None, question.layout(domain, form)?),
        Question::Cluster(batch) | Question::Drawn { batch, .. } => {
            (Some(batch), Layout::of_batch(batch, domain, form)?)
        }
        Question::Judge { .. } => (Some(judged()?), Layout::of_judged(judged()?, domain, form)?),
    };
    if let Some(priced) = layout.noise {
        return Ok(Asked::Noisy(Sum { rows, batch, factors: layout.factors().collect() }, priced));
    }
    Ok(Asked::Exact(match batch {
        None => layout.count(rows.rows())?,
        Some(_) if !terms.drawn => vec![0; layout.words()],
        Some(batch) => layout.exactly(&rows.words(batch, &layout.steps())?)?,
    }))
}
