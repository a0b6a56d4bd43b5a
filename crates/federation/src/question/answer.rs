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
    asked(question, rows, terms, |asked| match asked {
        Asked::Exact(words) => granted.exact(words),
        Asked::Noisy(factors, _, source) => granted.noisy(factors, source, rng),
    })
}

/// The words of an answer as they would be masked, without a door: for rehearsals, tests and the audit, which have no site's account.
///
/// # Errors
/// As [`answer`].
pub fn contribute(question: &Question, rows: &dyn Answerer, terms: &Terms<'_>) -> Result<Vec<u64>, Failure> {
    asked(question, rows, terms, |asked| match asked {
        Asked::Exact(words) => Ok(words),
        Asked::Noisy(factors, priced, source) => {
            let key = terms.noise.ok_or(Error::ApiMisuse("a plan with noise, and no key to draw it"))?;
            source.noisy(factors, priced.deviation, key)
        }
    })
}

/// What a question asks of rows.
enum Asked<'f, 's> {
    /// These words.
    Exact(Vec<u64>),
    /// A sum from this source, with a factor for every entry, and with noise.
    Noisy(&'f [f64], Priced, Source<'s>),
}

fn asked<T>(
    question: &Question,
    rows: &dyn Answerer,
    terms: &Terms<'_>,
    take: impl FnOnce(Asked<'_, '_>) -> Result<T, Error>,
) -> Result<T, Failure> {
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
    let Some(priced) = layout.noise else {
        let words = match batch {
            None => layout.count(rows.rows())?,
            Some(_) if !terms.drawn => vec![0; layout.words()],
            Some(batch) => layout.exactly(&rows.words(batch, &layout.steps())?)?,
        };
        return Ok(take(Asked::Exact(words))?);
    };
    let factors: Vec<f64> = layout.factors().collect();
    let (mut take, mut made) = (Some(take), None);
    let mut once = |source: Source<'_>| {
        let take = take.take().ok_or(Error::ApiMisuse("a sum is made once"))?;
        made = Some(take(Asked::Noisy(&factors, priced, source))?);
        Ok(())
    };
    match batch {
        // The number of rows.
        None => once(Source::Counts(&[Some(rows.rows())]))?,
        Some(batch) => rows.sum(batch, &factors, &mut once)?,
    }
    made.ok_or_else(|| Error::ApiMisuse("no sum was made").into())
}
