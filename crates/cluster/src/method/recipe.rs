//! What a run consists of. A plan carries it; every site reads it before it says yes.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::choice::{Choice, Pick};
use super::prepare::Scale;
use super::seed::Candidates;
use crate::algorithm::{Algorithm, Beginning, Stop};
use crate::distance::check_fuzzifier;
use crate::privacy::Noise;
use crate::query::{LocalChoice, LocalSteps};
use crate::scale::inside;
use crate::validity::DaviesBouldin;
use crate::{Centres, Domain, Error, MAX_BATCH, Query, refuse};

/// K that a run may be asked for at most.
pub(crate) const MAX_K: u32 = 4_096;
/// `K^(1 - m)` may be 10^-9: below it memberships to the power of m cannot be told from the rounding of fixed-point totals.
const MAX_FUZZINESS: f64 = 20.7;
/// References of the gap, B.
pub(super) const REFERENCES: u64 = 20;
/// Rows of a reference at most: so many make `s` about a hundredth, and each party clusters B of them.
pub(super) const REFERENCE_ROWS: u64 = 2_048;
/// Multiplications for the references of the gap: some ten seconds of a core.
const MAX_REFERENCE_WORK: u64 = 1 << 35;
/// Restarts at most.
const MAX_RESTARTS: u32 = 1_000;

/// What a run consists of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Which numbers of clusters are tried.
    pub clusters: Clusters,
    /// The algorithm and its parameters.
    pub algorithm: Algorithm,
    /// When the centres rest.
    #[serde(default)]
    pub stop: Stop,
    /// Where a sweep's range is narrowed to what the sites would choose alone.
    #[serde(default)]
    pub range: Option<LocalRange>,
    /// Where the first centres come from.
    pub seeding: Seeding,
    /// Runs from different first centres for every K, >= 1; the one with the smallest objective counts.
    pub restarts: u32,
    /// How columns are scaled first.
    pub preparation: Scale,
    /// Which totals are asked at the end.
    pub validity: Validity,
    /// How K is chosen among several.
    pub choice: Choice,
    /// The noise inside the sums; none where there is no promise of differential privacy.
    #[serde(default)]
    pub noise: Option<Noise>,
}

/// Which numbers of clusters are tried: every K from `min` to `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clusters {
    /// The smallest K, >= 1.
    pub min: u32,
    /// The largest K.
    pub max: u32,
}

impl Clusters {
    /// One K and no choice.
    pub fn exactly(k: u32) -> Self {
        Self { min: k, max: k }
    }

    /// How many K there are.
    pub fn count(self) -> usize {
        self.max.saturating_sub(self.min) as usize + 1
    }

    /// Every K.
    pub fn each(self) -> impl Iterator<Item = u32> {
        self.min..=self.max
    }
}

/// K, or its range.
impl fmt::Display for Clusters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max { write!(f, "{}", self.min) } else { write!(f, "{} to {}", self.min, self.max) }
    }
}

/// The range of K as the framework paper has it: from the smallest number of clusters that any site would choose alone, to that
/// plus the largest, within the recipe's range. Each site adds 1 to the count of its own number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalRange {
    /// Largest K that a site tries alone, at most 64.
    pub most: u32,
    /// Starts for each K, 1 to 16.
    pub starts: u32,
    /// Seed of the first start; start s uses seed + s.
    pub seed: u64,
}

/// Where the first centres come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Seeding {
    /// Uniform in the box, from a seed that everybody knows (the papers' start).
    Uniform {
        /// The seed; restart r uses seed + r.
        seed: u64,
    },
    /// Given, K x d, working units; one K and one restart.
    Given {
        /// The centres.
        centres: Centres,
    },
    /// From totals: candidates drawn from the margins, moved and weighed by sums.
    Candidates(Candidates),
}

impl Seeding {
    /// The seed of the first restart; 0 for given centres.
    pub(super) fn seed(&self) -> u64 {
        match self {
            Self::Uniform { seed } | Self::Candidates(Candidates { seed, .. }) => *seed,
            Self::Given { .. } => 0,
        }
    }
}

/// Which totals are asked at the end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validity {
    /// All indices, not only fuzzy Davies-Bouldin and the objective. Methods with hard groups always ask them.
    pub full: bool,
    /// Sums of coordinates too (cluster means, Calinski-Harabasz, Fukuyama-Sugeno); never where the intermediary judges.
    pub vectors: bool,
    /// Fuzzifier that hard methods are judged with, > 1.
    pub judge_m: f64,
    /// The exponents of both Davies-Bouldin indices.
    #[serde(default)]
    pub davies_bouldin: DaviesBouldin,
}

impl Recipe {
    /// A run with one K, no preparation and basic validity: the plainest recipe of an algorithm.
    pub fn plain(algorithm: Algorithm, k: u32, seeding: Seeding) -> Self {
        Self {
            clusters: Clusters::exactly(k),
            algorithm,
            stop: Stop::default(),
            range: None,
            seeding,
            restarts: 1,
            preparation: Scale::None,
            validity: Validity::basic(),
            choice: Choice { by: Pick::FuzzyDaviesBouldin, elbow: false },
            noise: None,
        }
    }

    /// Whether the validation asks more than fuzzy Davies-Bouldin and the objective need. Under noise it does if the plan says so, because
    /// every number more costs accuracy; without, methods with hard groups always do.
    pub fn judges_fully(&self) -> bool {
        let hard = self.noise.is_none() && self.algorithm.traits().fuzzifier.is_none();
        self.algorithm.traits().describes.is_none() && (self.validity.full || hard)
    }

    /// Whether a run can start on this box.
    ///
    /// # Errors
    /// [`Error`] naming the parameter and what to change.
    pub fn check(&self, domain: &Domain) -> Result<(), Error> {
        let Clusters { min, max } = self.clusters;
        refuse(min == 0, || Error::parameter("the number of clusters K must be at least 1"))?;
        refuse(min > max || max > MAX_K, || {
            let must = format!("it must rise and end at {MAX_K} or below");
            Error::parameter(format!("the range of K goes from {min} to {max}; {must}"))
        })?;
        let restarts = 1..=MAX_RESTARTS;
        refuse(!restarts.contains(&self.restarts), || {
            Error::parameter(format!("restarts must be 1 to {MAX_RESTARTS}"))
        })?;
        let members = self.clusters.count() as u64 * u64::from(self.restarts);
        refuse(members > MAX_BATCH as u64, || {
            Error::parameter(format!(
                "{members} runs side by side; a batch holds {MAX_BATCH}: fewer K or fewer restarts"
            ))
        })?;
        self.preparation.check(domain)?;
        if let Some(choice) = self.local_choice() {
            Query::from(choice).check(domain)?;
        }
        self.check_seeding(domain)?;
        self.check_validity()?;
        self.check_gap(domain)?;
        self.check_noise(domain)?;
        self.check_description()?;
        self.check_stop()?;
        // The parameters of the algorithm itself: its constructor says what is wrong, for any first centres.
        let start = Centres::uniform(domain, min.min(8) as usize, 0)?;
        let _ = self.algorithm.begin(Beginning { stop: self.stop, ..Beginning::at(domain, &start) })?;
        // The memberships of one row to the power of m add up to K^(1 - m) at least, and to little more where it is far off.
        let m = self.judge_m();
        refuse((m - 1.0) * f64::from(max).ln() > MAX_FUZZINESS, || {
            let vanish = format!("memberships to the power of {m} vanish with {max} clusters");
            Error::parameter(format!("{vanish}: a smaller fuzzifier m or fewer K"))
        })
    }

    /// A description has one centre, the mean, and nothing that is there for clusters.
    fn check_description(&self) -> Result<(), Error> {
        let Validity { full, vectors, davies_bouldin, .. } = self.validity;
        let plain = (self.clusters, self.restarts) == (Clusters::exactly(1), 1)
            && matches!(self.seeding, Seeding::Uniform { .. })
            && self.range.is_none()
            && !self.prepares();
        if self.algorithm.traits().describes.is_none()
            || (plain && !full && !vectors && davies_bouldin == DaviesBouldin::default())
        {
            return Ok(());
        }
        Err(Error::parameter(
            "a description has no clusters: K is 1, with one uniform start, and no rows are standardised, no first centres sought and no \
             indices asked",
        ))
    }

    /// The sum of shifts is a rule only where centres end the rounds.
    fn check_stop(&self) -> Result<(), Error> {
        if self.stop == Stop::Frobenius || (self.algorithm.traits().epsilon.is_some() && self.noise.is_none()) {
            return Ok(());
        }
        let why = match self.noise {
            Some(_) => "noise, and the number of rounds is fixed",
            None => "no stop rule about how far centres move",
        };
        Err(Error::parameter(format!("the plan stops at a sum of shifts, but {} has {why}", self.algorithm.name())))
    }

    fn check_seeding(&self, domain: &Domain) -> Result<(), Error> {
        match &self.seeding {
            Seeding::Uniform { .. } => {}
            Seeding::Given { centres } => {
                let (own, all) = (centres.columns(), domain.columns());
                refuse(own != all, || {
                    Error::parameter(format!("the given centres have {own} columns, the plan has {all}"))
                })?;
                inside(centres, domain).map_err(|why| Error::parameter(format!("among the first centres, {why}")))?;
                let several = self.clusters.min != self.clusters.max || self.restarts != 1;
                refuse(several, || Error::parameter("given centres go with one K and one restart"))?;
                let (expected, found) = (self.clusters.min as usize, centres.k());
                let wrong = || Error::parameter(format!("expected {expected} centres, found {found}"));
                refuse(found != expected, wrong)?;
            }
            Seeding::Candidates(params) => params.check()?,
        }
        let anchors = self.algorithm.traits().anchors(self.clusters.max).is_some();
        refuse(anchors && !matches!(self.seeding, Seeding::Candidates(_)), || {
            let name = self.algorithm.name();
            let needs = "needs first centres from totals: its anchors are candidates that hold rows";
            Error::parameter(format!("{name} {needs}"))
        })
    }

    fn check_validity(&self) -> Result<(), Error> {
        let validity = self.validity;
        check_fuzzifier(validity.judge_m)?;
        validity.davies_bouldin.check()?;
        if validity.davies_bouldin.q == 2.0 {
            refuse(self.noise.is_some(), || Error::parameter("under noise q of Davies-Bouldin is 1"))?;
            let needs = "q = 2 of Davies-Bouldin needs sums of coordinates: indices=all asks for them";
            refuse(!validity.vectors, || Error::parameter(needs))?;
        }
        if self.clusters.min < self.clusters.max {
            let by = self.choice.by;
            let full = !by.needs_full() || self.judges_fully() || self.noise.is_some();
            let asked = full && (!by.needs_vectors() || validity.vectors);
            refuse(!asked, || Error::parameter("the index that chooses K is not among those that are asked"))?;
        }
        Ok(())
    }

    fn check_gap(&self, domain: &Domain) -> Result<(), Error> {
        if self.choice.by != Pick::Gap || self.clusters.min == self.clusters.max {
            return Ok(());
        }
        refuse(self.choice.elbow, || Error::parameter("the gap has a rule of its own, and no elbow"))?;
        self.takes_gap(domain.columns())
    }

    /// Whether the gap may choose K: the references can be clustered, and in bounded time, because every party does that.
    ///
    /// # Errors
    /// [`Error::Parameter`] that says why not.
    pub fn takes_gap(&self, columns: usize) -> Result<(), Error> {
        let compares = "the gap chooses K for fcm, kmeans and fkm: it compares their inertia";
        refuse(!self.algorithm.traits().has_gap, || Error::parameter(compares))?;
        let given = matches!(self.seeding, Seeding::Given { .. });
        refuse(given, || Error::parameter("the gap needs a plan with a seed"))?;
        let all_k = self.clusters.each().map(u64::from).sum::<u64>().saturating_mul(u64::from(self.restarts));
        let rounds = u64::from(self.algorithm.traits().rounds);
        let rows = REFERENCES * REFERENCE_ROWS;
        let work = [columns as u64, rounds, rows].into_iter().fold(all_k, u64::saturating_mul);
        // Under noise they are drawn with the columns' covariance.
        let drawn = if self.noise.is_some() { (columns as u64).saturating_pow(2).saturating_mul(rows) } else { 0 };
        let work = work.saturating_add(drawn);
        refuse(work > MAX_REFERENCE_WORK, || {
            Error::parameter(format!(
                "the references of the gap may take {work} multiplications at every party, {MAX_REFERENCE_WORK} are allowed: a \
                 smaller range of K, fewer restarts or rounds"
            ))
        })
    }

    /// The question behind [`LocalRange`].
    pub(crate) fn local_choice(&self) -> Option<LocalChoice> {
        let LocalRange { most, starts, seed } = self.range?;
        let (m, local) = (self.judge_m(), LocalSteps::TO_CONVERGENCE);
        Some(LocalChoice { min: self.clusters.min, most, m, local, seed, starts })
    }

    /// Questions that a whole run asks at most.
    pub fn max_questions(&self) -> u32 {
        if self.algorithm.traits().describes.is_some() {
            return DESCRIBING;
        }
        let after = 1 + u32::from(self.range.is_some());
        self.preparation
            .questions()
            .saturating_add(self.seeding_questions())
            .saturating_add(self.algorithm.traits().rounds)
            .saturating_add(after)
    }

    /// Questions of the first centres at most.
    pub fn seeding_questions(&self) -> u32 {
        match self.seeding {
            Seeding::Candidates(_) => Candidates::questions(self.noise.as_ref(), self.most_points()),
            _ => 0,
        }
    }

    /// Centres or anchors that are wanted at most.
    pub fn most_points(&self) -> u32 {
        self.algorithm.traits().anchors(self.clusters.max).unwrap_or(self.clusters.max)
    }

    /// The fuzzifier that results are judged with.
    pub fn judge_m(&self) -> f64 {
        self.algorithm.traits().fuzzifier.unwrap_or(self.validity.judge_m)
    }
}

/// Questions of a description at most: missing values, counts, sums, second moments.
pub(super) const DESCRIBING: u32 = 4;

impl Validity {
    /// Fuzzy Davies-Bouldin and the objective.
    pub fn basic() -> Self {
        Self { full: false, vectors: false, judge_m: 2.0, davies_bouldin: DaviesBouldin::default() }
    }

    /// Every index that totals give.
    pub fn everything() -> Self {
        Self { full: true, vectors: true, ..Self::basic() }
    }
}
