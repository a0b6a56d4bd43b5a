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
mod margins;
mod missing;
mod moments;
mod shifts;
mod validation;

use serde::{Deserialize, Serialize};

pub use choice::{LocalChoice, elbow_alone};
use family::Family;
pub use family::{Block, Per, Sensitivity, ShowsRows, Stage};
pub use features::Features;
pub use fuzzy::{FuzzySums, FuzzyValidation};
pub(crate) use histogram::MAX_BINS;
pub use histogram::{Bracket, Histogram};
pub use local::{LocalFuzzy, LocalMeans, LocalSteps, Pull};
pub use margins::Margins;
pub use missing::Missing;
pub use moments::Moments;
pub(crate) use shifts::SHARES_OF_CANDIDATES;
pub use shifts::Shifts;
pub use validation::Validation;

use veilsum_contributions::Question;

use crate::kernel::{Form, Sums};
pub use crate::offline::features::FeatureParams;
use crate::validity::{Geometry, Verdict};
use crate::{Centres, Domain, Error, Prepared};

/// How the answers of parts of a site's rows make the answer of all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Adding {
    /// What each row would add if it were alone adds up: no local steps, no groups that a site leaves out.
    Rows,
    /// The words of parts add up; every block is then one of [`Per::Row`].
    Parts,
    /// Not at all.
    Nothing,
}

/// Makes the questions from the list of their families. The order is that of their numbers on the wire, the name in quotes
/// that of journals, reports and JSON. Then follow the part of a run, how answers add up, and the point sets.
macro_rules! families {
    ($($(#[$doc:meta])* $family:ident $kind:literal $stage:ident $adding:ident [$($points:ident),*],)*) => {
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

            fn adding(&self) -> Adding {
                match self {
                    $(Self::$family(_) => Adding::$adding,)*
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
    FuzzySums "fuzzy_sums" Iterating Rows [centres],
    /// What fuzzy Davies-Bouldin and the objective need.
    FuzzyValidation "fuzzy_validation" Validating Rows [centres],
    /// Sums of local fuzzy centres (FFCM, avg1 and avg2).
    LocalFuzzy "local_fuzzy" Iterating Nothing [centres],
    /// Sums of groups of rows by nearest centre, perhaps after local Lloyd steps (k-means, FKM).
    LocalMeans "local_means" Iterating Rows [centres],
    /// Fuzzy feature vectors added into shared anchors (FFCF).
    Features "features" Iterating Nothing [anchors],
    /// Number of rows and first or second moments of every column.
    Moments "moments" Preparing Rows [],
    /// Row counts in bins of brackets (quantiles).
    Histogram "histogram" Preparing Rows [],
    /// Which K each site would choose alone (the range of a sweep).
    LocalChoice "local_choice" Ranging Nothing [],
    /// Row counts in bins of every column (candidates for first centres).
    Margins "margins" Seeding Rows [],
    /// Everything that the validity indices need.
    Validation "validation" Validating Rows [centres],
    /// Sums of clipped distances to a point of reference: rounds under noise.
    Shifts "shifts" Iterating Parts [centres],
    /// How many rows lack a value, by column.
    Missing "missing" Preparing Parts [],
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
        match (queries, forms) {
            ([one], [form]) => Ok(vec![one.family().answer(rows, form)?]),
            _ => {
                let sums = |query: &'q Self| match query {
                    Self::FuzzySums(sums) => Some(sums),
                    _ => None,
                };
                fuzzy::answer_together(&queries.iter().filter_map(sums).collect::<Vec<_>>(), rows, forms)
            }
        }
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
        match self.adding() {
            Adding::Parts => true,
            Adding::Rows => !matches!(self, Self::LocalMeans(means) if !means.is_exact()),
            Adding::Nothing => false,
        }
    }

    /// Which block of the answer shows how many rows there are at least.
    pub fn shows_rows(&self) -> Option<ShowsRows> {
        self.family().shows_rows()
    }

    /// How far one row added or removed moves the total over this box; none for a question that no run under noise asks.
    pub fn sensitivity(&self, domain: &Domain) -> Option<Sensitivity> {
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

    fn domain() -> Domain {
        Domain::new(vec![-2.0, 0.0], vec![1.0, 4.0], Scaling::None).unwrap()
    }

    /// Every field of every question has its limits: the first of each list is answered, the others are not.
    #[test]
    fn what_is_asked_is_bounded() {
        let (centres, wide) = (Centres::known(vec![[0.0, 0.0]]), Centres::known(vec![[0.0; 3]]));
        let steps = |most, epsilon| LocalSteps { most, epsilon };
        let bad_steps = [steps(0, 0.0), steps(1001, 0.0), steps(1, f64::NAN), steps(1, -1.0), steps(1, f64::INFINITY)];
        let many = |one: &dyn Fn(LocalSteps) -> Query| bad_steps.map(one).to_vec();
        let sums = |m| Query::fuzzy_sums(centres.clone(), m);
        let fuzzy =
            |m, local| -> Query { LocalFuzzy { centres: centres.clone(), m, local, pull: Pull::Nearest }.into() };
        let means = |centres: &Centres, local, min_rows| -> Query {
            LocalMeans { centres: centres.clone(), local, min_rows, nearest: true }.into()
        };
        let choice =
            |(min, most), m, local, starts| -> Query { LocalChoice { min, most, m, local, seed: 1, starts }.into() };
        let features = |max, tau| -> Query {
            Features { anchors: centres.clone(), params: FeatureParams { min: 2, max, tau, m: 2.0 } }.into()
        };
        let bins = |column, lower, upper, bins| -> Query {
            Histogram { brackets: vec![Bracket { column, lower, upper }], bins }.into()
        };
        let shifts = |centres: &Centres, m, clip| -> Query {
            Shifts { centres: centres.clone(), m, middle: true, clip, round: 3 }.into()
        };
        let around = |x, y| -> Query { Moments { around: Some(vec![x, y]) }.into() };
        let few = steps(200, 1e-6);
        for queries in [
            vec![
                sums(2.0),
                sums(1.0),
                sums(0.5),
                sums(f64::NAN),
                sums(f64::INFINITY),
                Query::fuzzy_sums(wide.clone(), 2.0),
            ],
            vec![Query::fuzzy_validation(centres.clone(), 2.0), Query::fuzzy_validation(wide.clone(), 2.0)],
            vec![fuzzy(2.0, steps(1000, 1e-4)), fuzzy(1.0, few)],
            [vec![fuzzy(2.0, few)], many(&|local| fuzzy(2.0, local))].concat(),
            vec![means(&centres, few, u64::MAX), means(&centres, few, 0), means(&wide, few, 1)],
            [vec![means(&centres, few, 1)], many(&|local| means(&centres, local, 1))].concat(),
            [(2, 5), (1, 5), (6, 5), (2, 65)].map(|range| choice(range, 2.0, few, 5)).to_vec(),
            vec![choice((2, 5), 2.0, few, 5), choice((2, 5), 1.0, few, 5)],
            [5, 0, 17].map(|starts| choice((2, 5), 2.0, few, starts)).to_vec(),
            [vec![choice((2, 5), 2.0, few, 5)], many(&|local| choice((2, 5), 2.0, local, 5))].concat(),
            vec![features(4, 1.0), features(u32::MAX, 1.0), features(4, f64::NAN)],
            [4, 1, u32::MAX].map(|count| bins(1, 0.0, 4.0, count)).to_vec(),
            vec![bins(1, 0.0, 4.0, 4), bins(2, 0.0, 4.0, 4), bins(1, 1.0, 1.0, 4), bins(1, f64::NAN, 1.0, 4)],
            vec![bins(1, 0.0, 4.0, 4), bins(1, -1.0, 1.0, 4), bins(1, 1.0, 9.0, 4)],
            vec![bins(1, 0.0, 4.0, 4), Histogram { brackets: vec![], bins: 4 }.into()],
            vec![shifts(&centres, None, 1.0), shifts(&wide, None, 1.0), shifts(&centres, Some(1.0), 1.0)],
            [1.0, 0.0, -1.0, f64::NAN, f64::INFINITY].map(|clip| shifts(&centres, None, clip)).to_vec(),
            vec![around(0.0, 0.0), around(0.0, f64::NAN), around(5.0, 0.0), around(f64::INFINITY, 0.0)],
            vec![around(0.0, 0.0), Moments { around: Some(vec![0.0]) }.into()],
        ] {
            assert_eq!(queries[0].check(&domain()), Ok(()));
            queries[1..].iter().for_each(|bad| assert!(bad.check(&domain()).is_err(), "{bad:?}"));
        }
        assert_eq!(sums(1.0).check(&domain()), Err(Error::Fuzzifier));
        let error = Query::fuzzy_sums(wide, 2.0).check(&domain()).unwrap_err();
        assert_eq!(error, Error::ColumnMismatch { expected: 2, found: 3 });
    }
}
