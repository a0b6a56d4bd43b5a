//! The one place where clustering and protocol meet: query out, statistic, fixed point, masked, total, back.
//!
//! The scale of every block is computed from the plan and the size of the cohort alone, by both ends, before a row is
//! touched; an entry that does not fit is an error of the site that has it, never a silent clip (spec section 7).

use serde::{Deserialize, Serialize};
/// What a method asks at a time: the content of a [`Question`].
pub use veilsum_cluster::Batch;
use veilsum_cluster::{
    Block, Centres, Domain, Per, Query, SumStep, Totals,
    privacy::{Level, Levels},
};
use veilsum_proto::{
    Error, Rule, codec,
    fixed::{self, Scale},
    limits::MAX_QUERY,
    suite::{self, Hash},
};

mod answer;
#[cfg(test)]
mod neighbour_tests;
mod noisy;

pub use answer::{Terms, answer, contribute};
pub use veilsum_door::guard::Priced;

use crate::{
    answerer::{Steps, misfit},
    error::{Code, Failure},
};

/// What an aggregator may ask a site ([APP-4]).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Question {
    /// The intermediary's only question: how many rows.
    CountRows,
    /// A question of the plan's method.
    Cluster(Batch),
    /// The same where the plan samples sites: who is drawn follows from the plan's seed and the number; the others send a
    /// vector of zeros.
    Drawn {
        /// Counted from 1 over the drawn questions of a run.
        number: u32,
        /// The question.
        batch: Batch,
    },
    /// The intermediary's second question, where the plan lets it judge: the answer to the batch that the coordinator laid
    /// before the sites, of which it knows only this digest and the length.
    Judge {
        /// [`digest`] of the batch.
        digest: Hash,
        /// Words of the answer, at most.
        words: u32,
    },
}

/// What the intermediary may know of a question that holds centres.
pub fn digest(batch: &Batch) -> Hash {
    suite::hash("judged question", &[&codec::encode(batch)])
}

/// A site with more rows than the plan allows it.
pub fn too_many_rows(max_rows: u64) -> Failure {
    Failure::input(
        format!("this site has more rows than the {max_rows} that the plan allows one site (max_rows)"),
        "check that the file holds the rows of this plan and no others (a description counts those that are left out, too); if it does, agree on a new plan whose max_rows is \
         what the largest site has, and no more",
    )
}

/// An entry that is larger than its proved bound. With rows inside the box this cannot happen.
fn over_bound(block: &str) -> Failure {
    misfit(format!(
        "an entry of {block:?} exceeds the bound that the plan proves for it: this is a defect, please report it"
    ))
}

/// What the form of every answer follows from, besides the question: the plan and its roster.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SumBounds {
    /// Sites of the roster.
    pub sites: usize,
    /// Rows that the plan allows one site.
    pub max_rows: u64,
    /// No step of a total is finer than 2^-`step_bits` of the block's bound for one row ([FIX-4]).
    pub step_bits: Option<u8>,
    /// The noise inside the sums, of which every site adds a share.
    pub noise: Option<Levels>,
}

impl SumBounds {
    /// By how much the rounding of all rows of a site changes a sum at most, as a part of what one row adds at most ([SUM-1]).
    pub fn rounding(&self) -> f64 {
        let step = fixed::scale(self.sites, self.max_rows, 0).map_or(0.0, |scale| power(-scale.fraction_bits));
        self.max_rows as f64 * step / 2.0
    }

    /// Steps as fine as 64 bits allow.
    pub fn new(sites: usize, max_rows: u64) -> SumBounds {
        SumBounds { sites, max_rows, step_bits: None, noise: None }
    }
}

/// One block with its scale.
#[derive(Clone, Debug)]
pub struct ScaledBlock {
    /// The meaning and length of the entries.
    pub block: Block,
    /// How they travel.
    pub scale: Scaled,
}

/// What one in a total stands for.
#[derive(Clone, Copy, Debug)]
pub enum Scaled {
    /// A step that is a power of two.
    Exact {
        /// The step of the total, and the largest entry of a site.
        scale: Scale,
        /// Fractional bits of the finest step of 64 bits, in which the rows of a site are added up ([SUM-1]); `scale` has as many, or
        /// fewer where the plan says so ([FIX-4]).
        summed_bits: i32,
    },
    /// A part of what a row adds at most ([NOI-6]).
    Noisy {
        /// By so much an entry of a row is multiplied before it is cut to whole numbers of [`WHOLE`](veilsum_door::guard::WHOLE).
        factor: f64,
        /// What an entry of 1 then adds.
        one: f64,
    },
}

impl Scaled {
    /// One in a total, in working units.
    pub fn unit(&self) -> f64 {
        match self {
            Self::Exact { scale, .. } => power(-scale.fraction_bits),
            Self::Noisy { one, .. } => one.recip(),
        }
    }
}

/// The layout of an answer: what each word means and how it is scaled.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The blocks in order.
    pub blocks: Vec<ScaledBlock>,
    /// What the whole vector costs, and its noise, where the plan has any.
    pub noise: Option<Priced>,
}

/// A power of two.
fn power(e: i32) -> f64 {
    2f64.powi(e)
}

impl Question {
    /// The bytes to broadcast.
    pub fn to_bytes(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Reads a broadcast.
    ///
    /// # Errors
    /// `Error::Malformed`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Question, Error> {
        codec::decode("question", bytes, MAX_QUERY)
    }

    /// A short name for logs and reports.
    pub fn name(&self) -> &'static str {
        match self {
            Question::CountRows => "count_rows",
            Question::Cluster(batch) | Question::Drawn { batch, .. } => batch.kind(),
            Question::Judge { .. } => "judged_validation",
        }
    }

    /// The layout for a cohort of the sites of a plan.
    ///
    /// # Errors
    /// `Error::Invalid` where the sum could overflow or the vector is too long.
    pub fn layout(&self, domain: &Domain, form: &SumBounds) -> Result<Layout, Error> {
        match self {
            // One row adds one; a count needs no fraction, but keeps the same proof.
            Question::CountRows => {
                let rows = Block { name: "rows", len: 1, bound: 1.0, per: Per::Row };
                let levels = form.noise.map(|noise| vec![noise.of_count()]);
                Layout::of(vec![rows], form, levels.as_deref())
            }
            Question::Cluster(batch) | Question::Drawn { batch, .. } => Layout::of_batch(batch, domain, form),
            Question::Judge { .. } => Err(Error::ApiMisuse("the layout of a judged question is that of its batch")),
        }
    }
}

/// Smallest e with `bound` ≤ 2^e, kept in a range where 2^e is an ordinary double ([QRY-4]).
fn exponent(bound: f64) -> i16 {
    if bound <= 0.0 {
        return -512;
    }
    if !bound.is_finite() {
        return 1000;
    }
    // Its exponent as a double has it, and one more unless it is a power of two.
    let (below, fraction) = ((bound.to_bits() >> 52) as i32 - 1023, bound.to_bits() << 12);
    (below + i32::from(fraction != 0)).clamp(-512, 1000) as i16
}

impl Layout {
    /// The layout of a batch's answer; see [`Question::layout`].
    ///
    /// # Errors
    /// As [`Question::layout`].
    pub fn of_batch(batch: &Batch, domain: &Domain, form: &SumBounds) -> Result<Layout, Error> {
        let invalid = |e: veilsum_cluster::Error| unusable(e, Rule::App4);
        batch.check(domain).map_err(invalid)?;
        let levels = match &form.noise {
            None => None,
            Some(noise) => {
                let inner = batch.domain(domain).map_err(invalid)?;
                let of = |query: &Query| {
                    let why = || {
                        unusable(format!("the plan has noise, and {} is not accounted for", query.kind()), Rule::Noi5)
                    };
                    noise.of(query, &inner).ok_or_else(why)
                };
                Some(batch.queries.iter().map(of).collect::<Result<Vec<_>, Error>>()?.concat())
            }
        };
        Layout::of(batch.layout(domain).map_err(invalid)?, form, levels.as_deref())
    }

    fn of(blocks: Vec<Block>, form: &SumBounds, levels: Option<&[Level]>) -> Result<Layout, Error> {
        let lengths: Vec<fixed::Block> = blocks
            .iter()
            .map(|block| fixed::Block {
                len: u32::try_from(block.len).unwrap_or(u32::MAX),
                bound_exp: exponent(block.bound),
            })
            .collect();
        fixed::words(&lengths)?;
        if let Some(noise) = &form.noise {
            return Layout::noisy(blocks, form, noise, levels.unwrap_or_default());
        }
        let scaled = |block: Block| {
            // What a whole site adds is bounded like what one row adds to a sum over one row a site.
            let rows = if block.per == Per::Site { 1 } else { form.max_rows };
            let bound_exp = exponent(block.bound);
            let finest = fixed::scale(form.sites, rows, bound_exp)?;
            let scale = form.step_bits.map_or(finest, |bits| finest.capped(bound_exp, bits));
            Ok(ScaledBlock { block, scale: Scaled::Exact { scale, summed_bits: finest.fraction_bits } })
        };
        Ok(Layout { blocks: blocks.into_iter().map(scaled).collect::<Result<_, Error>>()?, noise: None })
    }

    /// The layout of a judged question: that of its stand-in, whose bounds do not tell where the centres are.
    ///
    /// # Errors
    /// As [`Question::layout`].
    pub fn of_judged(batch: &Batch, domain: &Domain, form: &SumBounds) -> Result<Layout, Error> {
        Layout::of_batch(&stand_in(batch, domain)?, domain, form)
    }

    /// The exponents of the blocks' bounds.
    pub fn exponents(&self) -> Vec<i16> {
        self.blocks.iter().map(|b| exponent(b.block.bound)).collect()
    }

    /// The layout of blocks with given exponents, for a party that does not know the bounds themselves.
    ///
    /// # Errors
    /// As [`Question::layout`], and where there is not one exponent for each block.
    pub fn with_exponents(mut blocks: Vec<Block>, exponents: &[i16], form: &SumBounds) -> Result<Layout, Error> {
        if blocks.len() != exponents.len() || exponents.iter().any(|e| !(-512..=1000).contains(e)) {
            return Err(unusable("not one usable exponent for each block", Rule::App5));
        }
        blocks.iter_mut().zip(exponents).for_each(|(block, e)| block.bound = power(i32::from(*e)));
        Layout::of(blocks, form, None)
    }

    /// Words of the vector.
    pub fn words(&self) -> usize {
        self.blocks.iter().map(|b| b.block.len).sum()
    }

    /// How a site's rows are added up ([SUM-1], [NOI-6]).
    pub fn steps(&self) -> Steps {
        match self.noise {
            None => Steps::Exact(self.exact().map(|(len, _, fraction_bits)| SumStep { len, fraction_bits }).collect()),
            Some(_) => Steps::Guarded(self.factors().collect()),
        }
    }

    /// Of exact blocks length, scale and the bits in which rows are added up.
    fn exact(&self) -> impl Iterator<Item = (usize, Scale, i32)> {
        self.blocks.iter().filter_map(|b| match b.scale {
            Scaled::Exact { scale, summed_bits } => Some((b.block.len, scale, summed_bits)),
            Scaled::Noisy { .. } => None,
        })
    }

    /// Of blocks with noise the factor of every entry.
    fn factors(&self) -> impl Iterator<Item = f64> {
        let of = |b: &ScaledBlock| match b.scale {
            Scaled::Exact { .. } => None,
            Scaled::Noisy { factor, .. } => Some(std::iter::repeat_n(factor, b.block.len)),
        };
        self.blocks.iter().filter_map(of).flatten()
    }

    /// A site's words without noise as they are masked, in the plan's steps.
    ///
    /// # Errors
    /// [`Failure`] where one is larger than its bound.
    fn exactly(&self, words: &[i64]) -> Result<Vec<u64>, Failure> {
        if words.len() != self.words() {
            return Err(Error::ApiMisuse("an answer of another length than its layout").into());
        }
        let (mut rest, mut out) = (words.iter(), Vec::with_capacity(words.len()));
        for ((len, scale, summed_bits), b) in self.exact().zip(&self.blocks) {
            for word in rest.by_ref().take(len) {
                let coarse = fixed::coarser(*word, (summed_bits - scale.fraction_bits).unsigned_abs());
                if coarse.unsigned_abs() > scale.limit {
                    return Err(over_bound(b.block.name));
                }
                out.push(fixed::to_ring(coarse));
            }
        }
        Ok(out)
    }

    /// The words of a count of rows without noise.
    ///
    /// # Errors
    /// [`Failure`] where they are more than the plan allows.
    fn count(&self, rows: u64) -> Result<Vec<u64>, Failure> {
        let one = self.blocks.first().map(|b| b.scale.unit().recip() as u64);
        one.and_then(|one| rows.checked_mul(one)).map(|word| vec![word]).ok_or_else(|| over_bound("rows"))
    }

    /// A total over `cohort` sites back in working units.
    ///
    /// # Errors
    /// [`Failure`] where it is larger than all sites together can have sent.
    pub fn decode(&self, values: &[u64], cohort: usize, rows: Option<u64>) -> Result<Totals, Failure> {
        if values.len() != self.words() {
            return Err(Error::ApiMisuse("a total of another length than its layout").into());
        }
        let mut words = values.iter();
        let mut out = Vec::with_capacity(values.len());
        for b in &self.blocks {
            let unit = b.scale.unit();
            let limit = match b.scale {
                Scaled::Exact { scale, .. } => scale.limit,
                Scaled::Noisy { .. } => self.noise.map_or(0, |priced| priced.limit),
            };
            for w in words.by_ref().take(b.block.len) {
                let v = fixed::from_ring(*w);
                if u128::from(v.unsigned_abs()) > u128::from(limit) * cohort as u128 {
                    let name = b.block.name;
                    let what = format!(
                        "the total of {name:?} exceeds what this cohort can add up to: a site sent something else than it was asked"
                    );
                    let next =
                        "the total does not say who; ask the sites to check their versions and data, then run again";
                    return Err(Failure::new(Code::Peer, what, next));
                }
                out.push(v as f64 * unit);
            }
        }
        Ok(Totals { values: out, rows })
    }
}

/// Farther outside the box than rounding leaves any centre that a site admits, as a part of its extent.
const BEYOND: f64 = 2e-6;

/// The same questions with every centre just beyond the lower corner of the box: farther from rows than any centre inside it.
fn stand_in(batch: &Batch, domain: &Domain) -> Result<Batch, Error> {
    let invalid = |e: veilsum_cluster::Error| unusable(e, Rule::App5);
    batch.check(domain).map_err(invalid)?;
    let inner = batch.domain(domain).map_err(invalid)?;
    let beyond = |column| {
        let (low, high) = inner.working_interval(column);
        low - BEYOND * (high - low)
    };
    let corner: Vec<f64> = (0..inner.columns()).map(beyond).collect();
    let mut batch = batch.clone();
    for query in &mut batch.queries {
        let Some(centres) = query.judged_centres() else {
            return Err(unusable("only validation is judged", Rule::App5));
        };
        *centres = Centres::from_rows(&vec![corner.clone(); centres.k()]).map_err(|e| unusable(e, Rule::App5))?;
    }
    Ok(batch)
}

fn unusable(why: impl ToString, rule: Rule) -> Error {
    Error::Invalid { document: "question", why: why.to_string(), rule }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use veilsum_cluster::{OutOfBox, Prepared, Rows, Scaling, method::Seeding, pooled};

    use crate::{
        plan::{Column, PlanSpec},
        tests::{fcm, work},
    };

    /// Fuzzy c-means in one column from 0 to 1, in its own units.
    pub(crate) fn line(k: u32, epsilon: f64, max_rounds: u32) -> PlanSpec {
        let columns = vec![Column { name: "x".into(), lower: 0.0, upper: 1.0 }];
        let recipe = fcm(k, 2.0, epsilon, max_rounds, Seeding::Uniform { seed: 3 });
        PlanSpec { columns, scaling: Scaling::None, recipe, ..work(k) }
    }

    /// A site with these rows.
    pub(crate) fn site(values: &[f64], domain: &Domain) -> Prepared {
        let rows = Rows::new(values.to_vec(), domain.columns()).unwrap();
        Prepared::new(&rows, domain, OutOfBox::Refuse).unwrap()
    }

    /// What the words of these sites add up to.
    pub(crate) fn total<'a>(
        question: &Question,
        sites: impl IntoIterator<Item = &'a Prepared>,
        form: SumBounds,
    ) -> Vec<u64> {
        let words = |site: &'a Prepared| contribute(question, site, &Terms::everybody(form)).unwrap();
        let add = |a: Vec<u64>, b| a.iter().zip(b).map(|(a, b): (&u64, u64)| a.wrapping_add(b)).collect();
        sites.into_iter().map(words).reduce(add).unwrap()
    }

    fn contributed(question: &Question, rows: &Prepared, form: SumBounds) -> Result<Vec<u64>, Failure> {
        contribute(question, rows, &Terms::everybody(form))
    }

    proptest! {
        #[test]
        fn the_sum_of_fixed_point_answers_is_the_plain_sum(
            values in proptest::collection::vec(0.0f64..1.0, 12..200),
            sites in 3usize..8,
        ) {
            let d = 2;
            let domain = Domain::new(vec![0.0; d], vec![1.0; d], Scaling::Box).unwrap();
            let centres = Centres::from_rows(&[vec![0.2, 0.3], vec![0.9, 0.5]]).unwrap();
            let of = |s: usize| values.chunks_exact(d).skip(s).step_by(sites).collect::<Vec<_>>().concat();
            let parts: Vec<Prepared> = (0..sites).map(|s| site(&of(s), &domain)).collect();
            let query = Batch::from(Query::fuzzy_validation(centres, 2.0));
            let plain = pooled::totals(&query, &parts).unwrap().values;
            let question = Question::Cluster(query);
            let form = SumBounds::new(sites, 1000);
            let layout = question.layout(&domain, &form).unwrap();
            let total = layout.decode(&total(&question, &parts, form), sites, None).unwrap().values;
            for (a, b) in total.iter().zip(&plain) {
                prop_assert!((a - b).abs() <= 1e-11, "{} {}", a, b);
            }
        }
    }

    #[test]
    fn more_rows_than_planned_and_foreign_totals_are_errors() {
        let domain = Domain::new(vec![0.0], vec![1.0], Scaling::Box).unwrap();
        let rows = site(&[0.5; 11], &domain);
        let many = contributed(&Question::CountRows, &rows, SumBounds::new(3, 10)).unwrap_err();
        assert!(many.message.contains("more rows than the 10"), "{many}");
        assert!(contributed(&Question::CountRows, &rows, SumBounds::new(3, 11)).is_ok());
        let layout = Question::CountRows.layout(&domain, &SumBounds::new(3, 10)).unwrap();
        assert_eq!(layout.decode(&[u64::MAX / 3], 3, None).unwrap_err().code, Code::Peer);
        assert!(Question::CountRows.layout(&domain, &SumBounds::new(1000, u64::MAX)).is_err());
    }

    /// [FIX-4]: a plan's step is that of every total, and says how many bits a total has.
    #[test]
    fn a_plans_coarsest_step() {
        let domain = Domain::new(vec![0.0; 2], vec![1.0; 2], Scaling::Box).unwrap();
        let centres = Centres::from_rows(&[vec![0.2, 0.3], vec![0.9, 0.5]]).unwrap();
        let question = Question::Cluster(Query::fuzzy_sums(centres, 2.0).into());
        let fine = SumBounds::new(20, 150);
        let coarse = SumBounds { step_bits: Some(8), ..fine };
        let (fine, coarse) = (question.layout(&domain, &fine).unwrap(), question.layout(&domain, &coarse).unwrap());
        assert!(coarse.exact().all(|(_, scale, _)| (scale.fraction_bits, scale.limit) == (8, 151 << 8)));
        assert!(coarse.exact().zip(fine.exact()).all(|((_, _, summed), (_, scale, _))| summed == scale.fraction_bits));
        let rounded = coarse.exactly(&[3 << 41, 1 << 41, (1 << 41) + 1, -(3 << 41), -(1 << 41), 5 << 42]).unwrap();
        let far = [i64::MAX, i64::MIN, 0, 0, 0, 0];
        assert!(coarse.exactly(&far).unwrap_err().message.contains(coarse.blocks[0].block.name));
        assert_eq!(rounded.iter().map(|w| fixed::from_ring(*w)).collect::<Vec<_>>(), [2, 0, 1, -2, 0, 5]);
        assert_eq!(coarse.decode(&[77; 6], 1, None).unwrap().values, [77.0 / 256.0; 6]);
    }
}
