//! The questions a coordinator may ask and the additive vectors that answer them (Bárcena et al. 2021, Algorithm 2;
//! Stallmann & Wilbik 2022, Eqs. 15-17).

use serde::{Deserialize, Serialize};

use crate::{Centres, Domain, QueryError};

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
}

/// One stretch of a statistic: `len` entries that share a meaning and a bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// What the entries are.
    pub name: &'static str,
    /// How many there are.
    pub len: usize,
    /// Largest absolute value that ONE row can add to ONE entry, working units, up to rounding of `f64`.
    pub bound: f64,
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
                vec![
                    Block { name: "weighted_sums", len: k * centres.columns(), bound: largest },
                    Block { name: "weights", len: k, bound: 1.0 },
                ]
            }
            Self::FuzzyValidation { centres, .. } => {
                let k = centres.k();
                let reaches = || centres.rows().map(|centre| domain.reach(centre));
                // One row adds min over u of sum_k u^m d^2 to J, hence at most its squared distance to any one centre.
                let nearest = reaches().fold(f64::INFINITY, f64::min);
                vec![
                    Block { name: "distances", len: k, bound: reaches().fold(0.0, f64::max) },
                    Block { name: "memberships", len: k, bound: 1.0 },
                    Block { name: "objective", len: 1, bound: nearest * nearest },
                ]
            }
        }
    }

    /// A short stable name for journals and reports.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::FuzzySums { .. } => "fuzzy_sums",
            Self::FuzzyValidation { .. } => "fuzzy_validation",
        }
    }
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
