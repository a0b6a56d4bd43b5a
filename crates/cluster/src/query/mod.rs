//! The questions a coordinator may ask and the additive vectors that answer them (Bárcena et al. 2021, Algorithm 2;
//! Stallmann & Wilbik 2022, Eqs. 15-17).
//!
//! A family of questions is a file that implements `Family`, and a line in the list below. Everything else in this
//! crate and in `veilsum-federation` asks the question about itself.

mod choice;
mod family;
mod features;
mod fuzzy;
mod histogram;
mod local;
mod missing;
mod moments;
mod shifts;
mod validation;

use serde::{Deserialize, Serialize};

pub use choice::{LocalChoice, elbow_alone};
use family::Family;
pub use family::{Block, Per, ShowsRows, Stage};
pub use features::Features;
pub use fuzzy::{FuzzySums, FuzzyValidation};
pub(crate) use histogram::MAX_BINS;
pub use histogram::{Bracket, Histogram, Margins};
pub use local::{LocalFuzzy, LocalMeans, LocalSteps, Pull};
pub use missing::Missing;
pub use moments::Moments;
pub use shifts::Shifts;
pub(crate) use shifts::{SHARES, SHARES_OF_CANDIDATES};
pub use validation::Validation;

use veilsum_contributions::Question;

use crate::kernel::{self, Form, Sums};
pub use crate::offline::features::FeatureParams;
use crate::validity::{Geometry, Verdict};
use crate::{Centres, Domain, Error, Prepared};

/// Makes the questions from the list of their families. The order is that of their numbers on the wire, the name in quotes
/// that of journals, reports and JSON. Then follow the part of a run and the point sets.
macro_rules! families {
    ($($(#[$doc:meta])* $family:ident $kind:literal $stage:ident [$($points:ident),*],)*) => {
        /// What the coordinator asks, the same for every site. Centres are in working units.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum Query {
            $($(#[$doc])* #[serde(rename = $kind)] $family($family),)*
        }

        impl Query {
            /// A short stable name for journals and reports.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$family(_) => $kind,)*
                }
            }

            fn family(&self) -> &dyn Family {
                match self {
                    $(Self::$family(family) => family,)*
                }
            }

            /// In which part of a run it is asked.
            pub fn stage(&self) -> Stage {
                match self {
                    $(Self::$family(_) => Stage::$stage,)*
                }
            }

            /// The point sets that a question holds, what it asks about first: centres, anchors, means. A site checks where they lie.
            pub fn points(&self) -> Vec<&Centres> {
                match self {
                    $(Self::$family(_family) => vec![$(&_family.$points),*],)*
                }
            }
        }

        $(impl From<$family> for Query {
            fn from(family: $family) -> Self {
                Self::$family(family)
            }
        })*
    };
}

families! {
    /// One round of federated fuzzy c-means.
    FuzzySums "fuzzy_sums" Iterating [centres],
    /// What fuzzy Davies-Bouldin and the objective need.
    FuzzyValidation "fuzzy_validation" Validating [centres],
    /// Sums of local fuzzy centres (FFCM, avg1 and avg2).
    LocalFuzzy "local_fuzzy" Iterating [centres],
    /// Sums of groups of rows by nearest centre, perhaps after local Lloyd steps (k-means, FKM).
    LocalMeans "local_means" Iterating [centres],
    /// Fuzzy feature vectors added into shared anchors (FFCF).
    Features "features" Iterating [anchors],
    /// Number of rows and first or second moments of every column.
    Moments "moments" Preparing [],
    /// Row counts in bins of brackets (quantiles).
    Histogram "histogram" Preparing [],
    /// Which K each site would choose alone (the range of a sweep).
    LocalChoice "local_choice" Ranging [],
    /// Row counts in bins of every column (candidates for first centres).
    Margins "margins" Seeding [],
    /// Everything that the validity indices need.
    Validation "validation" Validating [centres],
    /// Sums of clipped distances to a point of reference: rounds under noise.
    Shifts "shifts" Iterating [centres],
    /// How many rows lack a value, by column.
    Missing "missing" Preparing [],
}

/// Points of reference and brackets, made for a question.
#[derive(Default)]
pub(crate) struct Held {
    references: Vec<f64>,
    brackets: Vec<veilsum_contributions::Bracket>,
}

/// Centres of all questions that one pass over the rows answers: weights of a block of rows for so many stay in the second cache.
const MOST_TOGETHER: usize = 128;
/// Their weighted sums, likewise.
const MOST_SUMS_TOGETHER: usize = 4096;

impl Query {
    /// One round of fuzzy c-means with fuzzifier `m` at these centres, K x d.
    pub fn fuzzy_sums(centres: Centres, m: f64) -> Self {
        FuzzySums { centres, m }.into()
    }

    /// The basic validation with fuzzifier `m` at these centres, K x d.
    pub fn fuzzy_validation(centres: Centres, m: f64) -> Self {
        FuzzyValidation { centres, m }.into()
    }

    /// Whether a site may answer: parameters in their domains, centres in the columns of the box. (That K >= 1 and that every
    /// coordinate is finite holds for all [`Centres`].)
    ///
    /// # Errors
    /// [`Error`] naming what is wrong.
    pub fn check(&self, domain: &Domain) -> Result<(), Error> {
        self.family().check(domain)
    }

    /// The blocks of the answer, in order. Both sides derive it from the query and the public box alone.
    ///
    /// Meaningful for a query that passes [`Query::check`]. Centres may lie outside the box; their bounds grow with the
    /// distance.
    pub fn layout(&self, domain: &Domain) -> Vec<Block> {
        self.family().layout(domain)
    }

    /// Numbers of an answer.
    pub fn words(&self, domain: &Domain) -> usize {
        self.layout(domain).iter().map(|block| block.len).sum()
    }

    /// How many of these questions, from the first one on, are answered in one pass over the rows.
    pub(crate) fn together(queries: &[Self]) -> usize {
        let Some(Self::FuzzySums(first)) = queries.first() else { return 1 };
        let most = MOST_TOGETHER.min(MOST_SUMS_TOGETHER / (first.centres.columns() + 1));
        let mut centres = 0;
        let fits = |query: &&Self| {
            let Self::FuzzySums(query) = query else { return false };
            centres += query.centres.k();
            query.m.to_bits() == first.m.to_bits() && centres <= most
        };
        queries.iter().take_while(fits).count().max(1)
    }

    /// One site's statistic for each of so many questions as [`Query::together`] allows, in the order of [`Query::layout`], and in
    /// a form for each.
    pub(crate) fn answer<'q, 'f>(
        queries: &'q [Self],
        rows: &Prepared,
        forms: &'f [Form],
    ) -> Result<Vec<Sums<'f>>, Error> {
        if let ([one], [form]) = (queries, forms) {
            return Ok(vec![one.family().answer(rows, form)?]);
        }
        let sums = |query: &'q Self| match query {
            Self::FuzzySums(sums) => Some((&sums.centres, sums.m)),
            _ => None,
        };
        let (sets, ms): (Vec<&Centres>, Vec<f64>) = queries.iter().filter_map(sums).unzip();
        kernel::fuzzy_forms(rows.packed(), &sets, ms[0], forms)
    }

    /// What [`Self::of_row`] needs and the question does not hold.
    pub(crate) fn held(&self, domain: &Domain) -> Held {
        match self {
            Self::Shifts(shifts) => Held { references: shifts.references(domain), ..Held::default() },
            Self::Histogram(histogram) => Held { brackets: histogram.of_row(), ..Held::default() },
            Self::Margins(margins) => Held { brackets: margins.histogram(domain).of_row(), ..Held::default() },
            _ => Held::default(),
        }
    }

    /// As it is asked of every row under noise; `None` for a question that no run under noise asks, or not of rows.
    pub(crate) fn of_row<'q>(&'q self, domain: &Domain, held: &'q Held) -> Option<Question<'q>> {
        let d = domain.columns();
        match self {
            Self::Shifts(shifts) => Some(shifts.of_row(&held.references)),
            Self::Histogram(Histogram { bins, .. }) | Self::Margins(Margins { bins }) => {
                Some(Question::Bins { brackets: &held.brackets, bins: *bins })
            }
            Self::Moments(moments) => Some(moments.of_row(d)),
            Self::FuzzyValidation(asked) => {
                Some(Question::Distances { centres: asked.centres.as_slice(), d, m: asked.m })
            }
            Self::Validation(asked) => {
                Some(Question::Validity { centres: asked.centres.as_slice(), d, m: asked.m, vectors: asked.vectors })
            }
            _ => None,
        }
    }

    /// Whether the words of parts of a site's rows make the words of all ([`Batch::merge`](crate::Batch::merge)).
    pub fn comes_in_parts(&self) -> bool {
        match self {
            Self::FuzzySums(_) | Self::FuzzyValidation(_) | Self::Validation(_) | Self::Shifts(_) => true,
            Self::Moments(_) | Self::Histogram(_) | Self::Margins(_) | Self::Missing(_) => true,
            // One step without groups that a site leaves out.
            Self::LocalMeans(means) => means.is_exact(),
            Self::LocalFuzzy(_) | Self::Features(_) | Self::LocalChoice(_) => false,
        }
    }

    /// Which block of the answer shows how many rows there are at least.
    pub fn shows_rows(&self) -> Option<ShowsRows> {
        self.family().shows_rows()
    }

    /// How far one row added or removed moves each block of the total over this box at most, in the Euclidean norm and before rounding
    /// to steps; none for a question that no run under noise asks.
    pub fn sensitivity(&self, domain: &Domain) -> Option<Vec<f64>> {
        self.family().sensitivity(domain)
    }

    /// The centres that indices are computed at, where somebody else than the coordinator may judge the totals.
    pub fn judged_centres(&mut self) -> Option<&mut Centres> {
        match self {
            Self::FuzzyValidation(asked) => Some(&mut asked.centres),
            Self::Validation(asked) => Some(&mut asked.centres),
            _ => None,
        }
    }

    /// The verdict that the totals of a validation question give, or the reason why no rows can have produced them. `rows` is
    /// N where it is known; otherwise the sum of memberships counts.
    ///
    /// Where only the distances between centres are known ([`Geometry::Apart`]), the indices that need coordinates are `None`.
    ///
    /// # Errors
    /// [`Error::Implausible`], or [`Error::Parameter`] where the totals do not give an index with the exponents that are asked for.
    pub fn verdict(&self, geometry: Geometry<'_>, values: &[f64], rows: Option<u64>) -> Result<Verdict, Error> {
        self.family().verdict(geometry, values, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scaling;

    /// What the refused questions of `protocol/vectors` leave out (`tests/question_vectors.rs`): numbers that are none, and pulls.
    #[test]
    fn what_is_asked_is_bounded() {
        let domain = Domain::new(vec![-2.0, 0.0], vec![1.0, 4.0], Scaling::None).unwrap();
        let (centres, wide) = (Centres::known(vec![[0.0, 0.0]]), Centres::known(vec![[0.0; 3]]));
        let sums = |m| Query::fuzzy_sums(centres.clone(), m);
        let fuzzy = |m, epsilon| -> Query {
            let local = LocalSteps { most: 9, epsilon };
            LocalFuzzy { centres: centres.clone(), m, local, pull: Pull::Nearest }.into()
        };
        let choice = |(min, most), m, epsilon, starts| -> Query {
            LocalChoice { min, most, m, local: LocalSteps { most: 9, epsilon }, seed: 1, starts }.into()
        };
        let features = |tau| -> Query {
            Features { anchors: centres.clone(), params: FeatureParams { min: 2, max: 4, tau, m: 2.0 } }.into()
        };
        let bins =
            |lower| -> Query { Histogram { brackets: vec![Bracket { column: 1, lower, upper: 1.0 }], bins: 4 }.into() };
        let shifts = |centres: &Centres, m, clip| -> Query {
            Shifts { centres: centres.clone(), m, middle: true, clip, round: 3 }.into()
        };
        let around = |x| -> Query { Moments { around: Some(vec![x, 0.0]) }.into() };
        let (nan, infinite) = (f64::NAN, f64::INFINITY);
        let good = [sums(2.0), fuzzy(2.0, 0.0), choice((2, 5), 2.0, 0.0, 16), features(1.0), bins(0.0), around(0.0)];
        good.iter().chain([&shifts(&centres, None, 1.0)]).for_each(|good| assert_eq!(good.check(&domain), Ok(())));
        let mut bad = vec![sums(0.5), sums(nan), fuzzy(nan, 0.0), fuzzy(2.0, nan), fuzzy(2.0, infinite)];
        bad.extend([choice((6, 5), 2.0, 0.0, 5), choice((2, 5), 1.0, 0.0, 5), choice((2, 5), 2.0, -1.0, 5)]);
        bad.extend([choice((2, 5), 2.0, nan, 5), choice((2, 5), 2.0, 0.0, 0), features(nan), bins(nan)]);
        bad.extend([around(nan), around(infinite), shifts(&wide, None, 1.0), shifts(&centres, Some(1.0), 1.0)]);
        bad.extend([0.0, -1.0, nan, infinite].map(|clip| shifts(&centres, None, clip)));
        bad.iter().for_each(|bad| assert!(bad.check(&domain).is_err(), "{bad:?}"));
        assert_eq!(sums(1.0).check(&domain), Err(Error::Fuzzifier));
        let error = Query::fuzzy_sums(wide, 2.0).check(&domain).unwrap_err();
        assert_eq!(error, Error::ColumnMismatch { expected: 2, found: 3 });
    }
}
