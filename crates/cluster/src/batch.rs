//! Several questions put at once: every K of a sweep, every restart. The vector is the concatenation of theirs.

use serde::{Deserialize, Serialize};
use veilsum_contributions::{Change, Question, Rows};

use crate::kernel::{Form, Step, Sums};
use crate::query::{Block, Per, Query};
use crate::{Domain, Error, Prepared, Transform, refuse};

/// Questions that one batch may hold.
pub const MAX_BATCH: usize = 4096;

/// What the coordinator puts to every site in one round: one question or several, all on the same units.
///
/// A transform turns working units into those of the questions (federated standardisation), rows and box alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// From working units to those of the questions; `None` leaves them as they are.
    pub transform: Option<Transform>,
    /// The questions, at least one.
    pub queries: Vec<Query>,
}

impl From<Query> for Batch {
    fn from(query: Query) -> Self {
        Self { transform: None, queries: vec![query] }
    }
}

impl Batch {
    /// The box in the units of the questions.
    ///
    /// # Errors
    /// [`Error::Transform`] where the transform does not fit the box.
    pub fn domain(&self, domain: &Domain) -> Result<Domain, Error> {
        match &self.transform {
            None => Ok(domain.clone()),
            Some(transform) => transform.domain(domain),
        }
    }

    /// Whether a site may answer all of it (specification, QRY-3).
    ///
    /// # Errors
    /// [`Error`] naming what is wrong.
    pub fn check(&self, domain: &Domain) -> Result<(), Error> {
        let fits = (1..=MAX_BATCH).contains(&self.queries.len());
        refuse(!fits, || Error::Question("a batch must hold 1 to 4096 questions"))?;
        let domain = self.domain(domain)?;
        self.queries.iter().try_for_each(|query| query.check(&domain))
    }

    /// The blocks of the answer, in order; for a batch that passes [`Batch::check`].
    ///
    /// # Errors
    /// As [`Batch::domain`].
    pub fn layout(&self, domain: &Domain) -> Result<Vec<Block>, Error> {
        let domain = self.domain(domain)?;
        Ok(self.queries.iter().flat_map(|query| query.layout(&domain)).collect())
    }

    /// A short stable name for journals and reports: the kind of its questions, or `mixed`.
    pub fn kind(&self) -> &'static str {
        let mut kinds = self.queries.iter().map(Query::kind);
        let first = kinds.next().unwrap_or("nothing");
        if kinds.all(|kind| kind == first) { first } else { "mixed" }
    }

    /// Whether the words of parts of a site's rows make the words of all of them ([`Batch::merge`]).
    pub fn comes_in_parts(&self) -> bool {
        self.queries.iter().all(Query::comes_in_parts)
    }

    /// Adds the words of other rows of the same site, for a batch that [comes in parts](Batch::comes_in_parts).
    ///
    /// # Errors
    /// [`Error::Question`] if there are not as many words as the batch has entries.
    pub fn merge(&self, domain: &Domain, words: &mut [i64], more: &[i64]) -> Result<(), Error> {
        let domain = self.domain(domain)?;
        let len: usize = self.queries.iter().map(|query| query.words(&domain)).sum();
        let fit = words.len() == len && more.len() == len;
        refuse(!fit, || Error::Question("words that are not those of the question"))?;
        words.iter_mut().zip(more).for_each(|(word, more)| *word = word.wrapping_add(*more));
        Ok(())
    }

    /// What one site contributes to each question in turn, with the blocks of its layout. `form` says in which form from these.
    /// Questions that one pass over the rows answers are answered together.
    fn each(
        &self,
        rows: &Prepared,
        mut form: impl FnMut(&[Block], u64) -> Result<Form, Error>,
        mut take: impl FnMut(&[Block], Sums<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.check(rows.domain())?;
        let moved = self.transform.as_ref().map(|transform| rows.transformed(transform)).transpose()?;
        let rows = moved.as_deref().unwrap_or(rows);
        let mut left = self.queries.as_slice();
        while !left.is_empty() {
            let queries = left.split_off(..Query::together(left)).unwrap_or_default();
            let blocks: Vec<Vec<Block>> = queries.iter().map(|query| query.layout(rows.domain())).collect();
            let forms: Vec<Form> =
                blocks.iter().map(|blocks| form(blocks, rows.len() as u64)).collect::<Result<_, _>>()?;
            let sums = Query::answer(queries, rows, &forms)?;
            blocks.iter().zip(sums).try_for_each(|(blocks, sums)| take(blocks, sums))?;
        }
        Ok(())
    }
}

/// What ONE site contributes: the blocks of [`Query::layout`] one after the other, working units.
///
/// It says a lot about the site's rows, so it cannot be serialised here and `Debug` shows no entry.
#[derive(Clone, PartialEq)]
pub struct Statistic {
    /// The entries.
    pub values: Vec<f64>,
}

impl std::fmt::Debug for Statistic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Statistic").field("len", &self.values.len()).finish_non_exhaustive()
    }
}

/// The sum of the statistics over the cohort, same layout.
#[derive(Debug, Clone, PartialEq)]
pub struct Totals {
    /// The entries.
    pub values: Vec<f64>,
    /// Number of rows of the whole cohort, if the asking side may know it.
    pub rows: Option<u64>,
}

/// The statistic of one site, in the layout of [`Batch::layout`] for the site's public box.
///
/// A sum that left the range of `f64` must not be rounded, masked and sent: it is refused here, by block (specification,
/// QRY-6).
///
/// # Errors
/// [`Error::Question`] if the question does not fit the box, [`Error::Overflow`] if a sum overflows.
pub fn answer(batch: &Batch, rows: &Prepared) -> Result<Statistic, Error> {
    let mut values = Vec::new();
    let plain = |_: &[Block], _| Ok(Form::PLAIN);
    batch.each(rows, plain, |blocks, sums| {
        let first = values.len();
        values.extend(sums.into_plain());
        match values[first..].iter().position(|value| !value.is_finite()) {
            Some(at) => Err(Error::Overflow(block_of(blocks, at))),
            None => Ok(()),
        }
    })?;
    Ok(Statistic { values })
}

/// Steps that a row's largest contribution may have ([`words`]).
const MOST_STEPS: f64 = (1u64 << 51) as f64;
/// Steps that all rows of a site may have in one entry.
const MOST_IN_ALL: f64 = (1u64 << 63) as f64;

/// What a question under noise asks of a site's rows.
pub enum AskedOfRows<'a> {
    /// Of each of these rows, so changed, the same, one question behind the other.
    Each(Rows<'a>, Option<Change<'a>>, &'a [Question<'a>]),
    /// How many rows lack a value, by entry; nothing for those that no row adds to.
    Missing(&'a [Option<u64>]),
}

/// Gives to `take` what this batch asks of these rows under noise. What is asked is made of the batch and the box alone.
///
/// # Errors
/// As [`answer`]; [`Error::Steps`] if rows cannot be bounded for the question.
pub fn asked_of_rows<T>(batch: &Batch, rows: &Prepared, take: impl FnOnce(AskedOfRows<'_>) -> T) -> Result<T, Error> {
    batch.check(rows.domain())?;
    if let [Query::Missing(missing)] = batch.queries.as_slice() {
        return Ok(take(AskedOfRows::Missing(&missing.by_entry(rows))));
    }
    let domain = batch.domain(rows.domain())?;
    let change = batch.transform.as_ref().map(Transform::change);
    let held: Vec<_> = batch.queries.iter().map(|query| query.held(&domain)).collect();
    let asked = batch.queries.iter().zip(&held).map(|(query, held)| query.of_row(&domain, held));
    let questions = asked.collect::<Option<Vec<_>>>().ok_or(Error::Steps)?;
    Ok(take(AskedOfRows::Each(rows.packed().plain(), change, &questions)))
}

/// As [`answer`], in whole numbers, which are added as integers: every row's contribution is rounded to the step of its entry
/// (specification, SUM-1). `steps` are those of the blocks of [`Batch::layout`], in their order.
///
/// # Errors
/// As [`answer`]; [`Error::TooFine`] where a row could have 2^51 steps or all rows 2^63, which the steps of a plan never allow;
/// [`Error::Steps`] where they are not those of as many blocks and entries.
pub fn words(batch: &Batch, rows: &Prepared, steps: &[Step]) -> Result<Vec<i64>, Error> {
    let (mut words, mut rest) = (Vec::new(), steps);
    let form = |blocks: &[Block], rows: u64| {
        let own = rest.split_off(..blocks.len()).ok_or(Error::Steps)?;
        refuse(own.iter().zip(blocks).any(|(step, block)| step.len != block.len), || Error::Steps)?;
        // Below these the integers are those of the rounded contributions, and no sum of them wraps.
        let too_fine = own.iter().zip(blocks).position(|(step, block)| {
            let steps = block.bound * 2f64.powi(step.fraction_bits);
            let all = if block.per == Per::Row { steps * (rows as f64 + 1.0) } else { steps };
            !(steps <= MOST_STEPS && all < MOST_IN_ALL)
        });
        if let Some(at) = too_fine {
            return Err(Error::TooFine(blocks[at].name));
        }
        Ok(Form::steps(own))
    };
    batch.each(rows, form, |blocks, sums| {
        words.extend(sums.into_words().map_err(|at| Error::Overflow(block_of(blocks, at)))?);
        Ok(())
    })?;
    if rest.is_empty() { Ok(words) } else { Err(Error::Steps) }
}

/// The name of the block in which an entry is.
fn block_of(blocks: &[Block], at: usize) -> &'static str {
    let mut end = 0;
    let found = blocks.iter().find(|block| {
        end += block.len;
        at < end
    });
    found.map_or("?", |block| block.name)
}
