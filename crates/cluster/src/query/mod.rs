//! The questions a coordinator may ask and the additive vectors that answer them (Bárcena et al. 2021, Algorithm 2;
//! Stallmann & Wilbik 2022, Eqs. 15-17).

mod batch;
mod cells;
mod choice;
mod features;
mod histogram;
mod local;
mod moments;
mod shifts;
mod validation;

use serde::{Deserialize, Serialize};

pub use batch::{Batch, MAX_BATCH, answer, answer_with_noise};
pub(crate) use cells::MAX_SPLITS;
pub use cells::{Blur, Cells, Split, Tree};
pub use choice::LocalChoice;
pub use features::{FeatureParams, Features};
pub(crate) use histogram::MAX_BINS;
pub use histogram::{Bracket, Histogram};
pub use local::{LocalFuzzy, LocalMeans, LocalSteps, Part, Pull, Since};
pub use moments::Moments;
pub use shifts::Shifts;
pub use validation::{Contingency, Silhouette, Sizes, Ungrouped, Validation};

use crate::random::Stream;
use crate::{AnswerError, Centres, Domain, Prepared, QueryError, distance, kernel};

/// Entries that one question's answer may have: 128 MiB of `f64`.
pub(crate) const MAX_WORDS: usize = 1 << 24;

/// What one row adds to an answer.
pub(crate) type OfRow<'a> = Box<dyn Fn(&[f64], &mut [f64]) + 'a>;

/// What every family of questions can say of itself; one file a family.
pub(crate) trait Family {
    /// A short stable name for journals and reports.
    const KIND: &'static str;
    /// Whether a site may answer; it bounds every number that the answer's size or time depends on.
    fn check(&self, domain: &Domain) -> Result<(), QueryError>;
    /// The blocks of the answer; for a question that passes `check`.
    fn layout(&self, domain: &Domain) -> Vec<Block>;
    /// One site's statistic; for a question that passes `check`. `noise` serves a question that asks for blur.
    fn answer(&self, rows: &Prepared, noise: Option<&mut Stream>) -> Result<Vec<f64>, AnswerError>;
}

/// What the coordinator asks, the same for every site. Centres are in working units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Query {
    /// `WS_k = sum_j u_jk^m x_j` (K x d) and `U_k = sum_j u_jk^m` (K): one round of federated FCM (Bárcena et al. 2021,
    /// Algorithm 2).
    FuzzySums {
        /// Current centres, K x d.
        centres: Centres,
        /// Fuzzifier, m > 1.
        m: f64,
    },
    /// `D_k = sum_j ||x_j - c_k||` over all rows (K), `A_k = sum_j u_jk` (K) and `J_m = sum_jk u_jk^m ||x_j - c_k||^2`
    /// (1): what FedFuzzDB (Stallmann & Wilbik 2022, Eqs. 15-17, q = 1) and the objective need.
    FuzzyValidation {
        /// Final centres, K x d.
        centres: Centres,
        /// Fuzzifier, m > 1.
        m: f64,
    },
    /// Sums of local fuzzy centres (FFCM, avg1 and avg2).
    LocalFuzzy(LocalFuzzy),
    /// Sums of groups of rows by nearest centre, perhaps after local Lloyd steps (k-means, FKM, Kumar).
    LocalMeans(LocalMeans),
    /// Fuzzy feature vectors added into shared anchors (FFCF).
    Features(Features),
    /// Number of rows and first or second moments of every column.
    Moments(Moments),
    /// Row counts in bins of brackets (quantiles).
    Histogram(Histogram),
    /// Which K each site would choose alone (the range of a sweep).
    LocalChoice(LocalChoice),
    /// Row counts and moments of the cells of a tree (seeding).
    Cells(Cells),
    /// Everything that the validity indices need.
    Validation(Validation),
    /// Silhouettes with respect to cluster means.
    Silhouette(Silhouette),
    /// Row counts by cluster and label.
    Contingency(Contingency),
    /// Sums of clipped distances to a point of reference: rounds under noise.
    Shifts(Shifts),
    /// Rows and sites of hard clusters.
    Sizes(Sizes),
    /// What the validity indices need where a cluster is too small to be summed up alone.
    Ungrouped(Ungrouped),
}

/// One stretch of a statistic: `len` entries that share a meaning and a bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// What the entries are.
    pub name: &'static str,
    /// How many there are.
    pub len: usize,
    /// Largest absolute value that ONE row (or site, see `per`) can add to ONE entry, working units, up to rounding of
    /// `f64`.
    pub bound: f64,
    /// What `bound` bounds.
    pub per: Per,
}

impl Block {
    /// Entries of which one row adds at most `bound` to each.
    pub(crate) fn per_row(name: &'static str, len: usize, bound: f64) -> Self {
        Self { name, len, bound, per: Per::Row }
    }

    /// Entries of which a whole site adds at most `bound` to each, however many rows it has.
    pub(crate) fn per_site(name: &'static str, len: usize, bound: f64) -> Self {
        Self { name, len, bound, per: Per::Site }
    }
}

/// Whose contribution a block's bound limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// One row; a site adds at most the bound times its number of rows.
    Row,
    /// A whole site.
    Site,
}

impl Query {
    /// Whether a site may answer: m > 1 and finite, centres in the columns of the box. (That K >= 1 and that every
    /// coordinate is finite holds for all [`Centres`].)
    ///
    /// # Errors
    /// [`QueryError`] naming what is wrong.
    pub fn check(&self, domain: &Domain) -> Result<(), QueryError> {
        match self {
            Self::FuzzySums { centres, m } | Self::FuzzyValidation { centres, m } => {
                if !usable_fuzzifier(*m) {
                    return Err(QueryError::Fuzzifier);
                }
                if centres.columns() != domain.columns() {
                    return Err(QueryError::ColumnMismatch { expected: domain.columns(), found: centres.columns() });
                }
                Ok(())
            }
            Self::LocalFuzzy(family) => family.check(domain),
            Self::LocalMeans(family) => family.check(domain),
            Self::Features(family) => family.check(domain),
            Self::Moments(family) => family.check(domain),
            Self::Histogram(family) => family.check(domain),
            Self::LocalChoice(family) => family.check(domain),
            Self::Cells(family) => family.check(domain),
            Self::Validation(family) => family.check(domain),
            Self::Silhouette(family) => family.check(domain),
            Self::Contingency(family) => family.check(domain),
            Self::Shifts(family) => family.check(domain),
            Self::Sizes(family) => family.check(domain),
            Self::Ungrouped(family) => family.check(domain),
        }
    }

    /// The blocks of the answer, in order. Both sides derive it from the query and the public box alone.
    ///
    /// Meaningful for a query that passes [`Query::check`]. Centres may lie outside the box; their bounds grow with the
    /// distance.
    pub fn layout(&self, domain: &Domain) -> Vec<Block> {
        match self {
            Self::FuzzySums { centres, .. } => {
                let k = centres.k();
                let largest = (0..domain.columns()).map(|column| domain.max_abs(column)).fold(0.0, f64::max);
                vec![Block::per_row("weighted_sums", k * centres.columns(), largest), Block::per_row("weights", k, 1.0)]
            }
            Self::FuzzyValidation { centres, .. } => {
                let k = centres.k();
                let reaches = || centres.rows().map(|centre| domain.reach(centre));
                // One row adds min over u of sum_k u^m d^2 to J, hence at most its squared distance to any one centre.
                let nearest = reaches().fold(f64::INFINITY, f64::min);
                vec![
                    Block::per_row("distances", k, reaches().fold(0.0, f64::max)),
                    Block::per_row("memberships", k, 1.0),
                    Block::per_row("objective", 1, nearest * nearest),
                ]
            }
            Self::LocalFuzzy(family) => family.layout(domain),
            Self::LocalMeans(family) => family.layout(domain),
            Self::Features(family) => family.layout(domain),
            Self::Moments(family) => family.layout(domain),
            Self::Histogram(family) => family.layout(domain),
            Self::LocalChoice(family) => family.layout(domain),
            Self::Cells(family) => family.layout(domain),
            Self::Validation(family) => family.layout(domain),
            Self::Silhouette(family) => family.layout(domain),
            Self::Contingency(family) => family.layout(domain),
            Self::Shifts(family) => family.layout(domain),
            Self::Sizes(family) => family.layout(domain),
            Self::Ungrouped(family) => family.layout(domain),
        }
    }

    /// A short stable name for journals and reports.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::FuzzySums { .. } => "fuzzy_sums",
            Self::FuzzyValidation { .. } => "fuzzy_validation",
            Self::LocalFuzzy(_) => LocalFuzzy::KIND,
            Self::LocalMeans(_) => LocalMeans::KIND,
            Self::Features(_) => Features::KIND,
            Self::Moments(_) => Moments::KIND,
            Self::Histogram(_) => Histogram::KIND,
            Self::LocalChoice(_) => LocalChoice::KIND,
            Self::Cells(_) => Cells::KIND,
            Self::Validation(_) => Validation::KIND,
            Self::Silhouette(_) => Silhouette::KIND,
            Self::Contingency(_) => Contingency::KIND,
            Self::Shifts(_) => Shifts::KIND,
            Self::Sizes(_) => Sizes::KIND,
            Self::Ungrouped(_) => Ungrouped::KIND,
        }
    }

    /// One site's statistic for this question, in the order of [`Query::layout`].
    pub(crate) fn answer(&self, rows: &Prepared, noise: Option<&mut Stream>) -> Result<Vec<f64>, AnswerError> {
        Ok(match self {
            Self::FuzzySums { centres, m } => {
                let sums = kernel::fuzzy_sums(rows.packed(), centres, *m)?;
                let mut values = sums.weighted_sums;
                values.extend(sums.weights);
                values
            }
            Self::FuzzyValidation { centres, m } => {
                let sums = kernel::fuzzy_validation(rows.packed(), centres, *m)?;
                let mut values = sums.distances;
                values.extend(sums.memberships);
                values.push(sums.objective);
                values
            }
            Self::LocalFuzzy(family) => family.answer(rows, noise)?,
            Self::LocalMeans(family) => family.answer(rows, noise)?,
            Self::Features(family) => family.answer(rows, noise)?,
            Self::Moments(family) => family.answer(rows, noise)?,
            Self::Histogram(family) => family.answer(rows, noise)?,
            Self::LocalChoice(family) => family.answer(rows, noise)?,
            Self::Cells(family) => family.answer(rows, noise)?,
            Self::Validation(family) => family.answer(rows, noise)?,
            Self::Silhouette(family) => family.answer(rows, noise)?,
            Self::Contingency(family) => family.answer(rows, noise)?,
            Self::Shifts(family) => family.answer(rows, noise)?,
            Self::Sizes(family) => family.answer(rows, noise)?,
            Self::Ungrouped(family) => family.answer(rows, noise)?,
        })
    }

    /// Whether what a site adds to the entries that count rows ([`Per::Row`]) is the sum of what each of its rows would add
    /// if it were alone: no local steps, no groups that a site leaves out, no labels, no noise.
    pub(crate) fn adds_up_over_rows(&self) -> bool {
        match self {
            Self::FuzzySums { .. }
            | Self::FuzzyValidation { .. }
            | Self::Moments(_)
            | Self::Histogram(_)
            | Self::Validation(_)
            | Self::Ungrouped(_)
            | Self::Silhouette(_)
            | Self::Sizes(_) => true,
            Self::LocalMeans(q) => q.local.most == 1 && q.min_rows == 1 && !q.nearest,
            Self::Cells(q) => q.blur.is_none_or(|blur| blur.strength == 0.0),
            Self::LocalFuzzy(_) | Self::Features(_) | Self::LocalChoice(_) => false,
            Self::Contingency(_) | Self::Shifts(_) => false,
        }
    }

    /// Whether the answer is a sum of smooth functions of single rows; without noise such questions are measured together
    /// ([`crate::privacy::rank`]). Hard groups, counts, and centres that a site finds among its own rows are not.
    pub fn is_smooth(&self) -> bool {
        match self {
            Self::FuzzySums { .. } | Self::FuzzyValidation { .. } | Self::Moments(_) => true,
            Self::Shifts(family) => family.m.is_some(),
            _ => false,
        }
    }

    /// What one row adds to the answer of a smooth question: a function that adds it to its second argument, for a row inside
    /// the box. `None` for all other questions.
    pub(crate) fn of_row(&self, domain: &Domain) -> Option<OfRow<'_>> {
        Some(match self {
            Self::FuzzySums { centres, m } => Box::new(move |x, sums| {
                let mut u = vec![0.0; centres.k()];
                distance::memberships(x, centres.rows(), *m, &mut u);
                let (weighted_sums, weights) = sums.split_at_mut(centres.k() * x.len());
                for ((u, sums), total) in u.iter().zip(weighted_sums.chunks_exact_mut(x.len())).zip(weights) {
                    let weight = distance::power(*u, *m);
                    *total += weight;
                    sums.iter_mut().zip(x).for_each(|(sum, x)| *sum += weight * x);
                }
            }),
            Self::FuzzyValidation { centres, m } => Box::new(move |x, sums| {
                let k = centres.k();
                let mut u = vec![0.0; k];
                sums[2 * k] += distance::memberships(x, centres.rows(), *m, &mut u);
                for (c, centre) in centres.rows().enumerate() {
                    sums[c] += distance::euclidean(x, centre);
                    sums[k + c] += u[c];
                }
            }),
            Self::Moments(family) => Box::new(|x, sums| family.add_row(x, sums)),
            Self::Shifts(family) if family.m.is_some() => {
                let references = family.references(domain);
                Box::new(move |x, sums| family.add_row(x, &references, sums))
            }
            _ => return None,
        })
    }

    /// Which half of a round of the algorithm this is, where rounds have two.
    pub fn part(&self) -> Option<&Part> {
        match self {
            Self::LocalFuzzy(q) => Some(&q.part),
            Self::LocalMeans(q) => Some(&q.part),
            Self::Features(q) => Some(&q.part),
            _ => None,
        }
    }

    /// The point sets that a question holds: centres, anchors, means. A site checks where they lie.
    pub fn points(&self) -> Vec<&Centres> {
        match self {
            Self::FuzzySums { centres, .. } | Self::FuzzyValidation { centres, .. } => vec![centres],
            Self::LocalFuzzy(q) => vec![&q.centres],
            Self::LocalMeans(q) => match &q.part {
                Part::Changes(since) => [&q.centres].into_iter().chain(&since.centres).collect(),
                _ => vec![&q.centres],
            },
            Self::Features(q) => vec![&q.anchors],
            Self::Validation(q) => vec![&q.centres],
            Self::Silhouette(q) => vec![&q.centres, &q.means],
            Self::Contingency(q) => vec![&q.centres],
            Self::Shifts(q) => vec![&q.centres],
            Self::Sizes(q) => vec![&q.centres],
            Self::Ungrouped(q) => vec![&q.centres],
            Self::Moments(_) | Self::Histogram(_) | Self::LocalChoice(_) | Self::Cells(_) => Vec::new(),
        }
    }
}

/// Centres in the columns of the box.
pub(crate) fn same_columns(centres: &Centres, domain: &Domain) -> Result<(), QueryError> {
    if centres.columns() == domain.columns() {
        return Ok(());
    }
    Err(QueryError::ColumnMismatch { expected: domain.columns(), found: centres.columns() })
}

/// m is a finite number above 1.
pub(crate) fn usable_fuzzifier(m: f64) -> bool {
    m.is_finite() && m > 1.0
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scaling;

    fn domain() -> Domain {
        Domain::new(vec![-2.0, 0.0], vec![1.0, 4.0], Scaling::None).unwrap()
    }

    #[test]
    fn a_query_is_checked_against_the_box() {
        let centres = Centres::from_rows(&[vec![0.0, 0.0]]).unwrap();
        for m in [1.0, 0.5, f64::NAN, f64::INFINITY] {
            assert_eq!(Query::FuzzySums { centres: centres.clone(), m }.check(&domain()), Err(QueryError::Fuzzifier));
        }
        assert_eq!(Query::FuzzyValidation { centres, m: 2.0 }.check(&domain()), Ok(()));
        let wide = Centres::from_rows(&[vec![0.0; 3]]).unwrap();
        let error = Query::FuzzySums { centres: wide, m: 2.0 }.check(&domain()).unwrap_err();
        assert_eq!(error, QueryError::ColumnMismatch { expected: 2, found: 3 });
    }

    #[test]
    fn layouts_and_bounds() {
        let centres = Centres::from_rows(&[vec![0.0, 0.0], vec![1.0, 4.0], vec![-0.5, 2.0]]).unwrap();
        let sums = Query::FuzzySums { centres: centres.clone(), m: 2.0 };
        let blocks = sums.layout(&domain());
        assert_eq!(blocks.iter().map(|b| (b.name, b.len)).collect::<Vec<_>>(), [("weighted_sums", 6), ("weights", 3)]);
        assert_eq!(blocks.iter().map(|b| b.bound).collect::<Vec<_>>(), [4.0, 1.0]);
        let blocks = Query::FuzzyValidation { centres, m: 2.0 }.layout(&domain());
        assert_eq!(
            blocks.iter().map(|b| (b.name, b.len)).collect::<Vec<_>>(),
            [("distances", 3), ("memberships", 3), ("objective", 1)]
        );
        assert_eq!(blocks.iter().map(|b| b.bound).collect::<Vec<_>>(), [5.0, 1.0, 6.25]);
    }

    #[test]
    fn queries_survive_serialisation() {
        let centres = Centres::from_rows(&[vec![0.25, 0.1]]).unwrap();
        let query = Query::FuzzyValidation { centres, m: 1.1 };
        let text = serde_json::to_string(&query).unwrap();
        assert_eq!(serde_json::from_str::<Query>(&text).unwrap(), query);
    }
}
