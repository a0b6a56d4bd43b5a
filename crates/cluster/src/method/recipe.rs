//! What a run consists of. A plan carries it; every site reads it before it says yes.

use serde::{Deserialize, Serialize};

use super::{Iteration, Preparation, Run, SeedCells, choice::Choice, fcm, ffcf, ffcm, fkm, inside, kmeans, kumar};
use crate::distance::usable_fuzzifier;
use crate::privacy::{Levels, Noise};
use crate::query::{FeatureParams, Features, LocalChoice, LocalFuzzy, LocalMeans, LocalSteps, Pull, RoundHalf};
use crate::{Centres, Domain, MethodError, Query};

/// K that a run may be asked for at most.
pub(crate) const MAX_K: u32 = 4_096;
/// More rounds than anybody waits for; bounds the history that a run keeps.
pub(crate) const MAX_ROUNDS: u32 = 100_000;
/// `K^(1 - m)` may be 10^-9: below it memberships to the power of m cannot be told from the rounding of fixed-point totals.
const MAX_FUZZINESS: f64 = 20.7;
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
    /// Where a sweep's range ends by what the sites would choose alone, and not only at the largest K.
    #[serde(default)]
    pub range: Option<LocalRange>,
    /// Where the first centres come from.
    pub seeding: Seeding,
    /// Runs from different first centres for every K, >= 1; the one with the smallest objective counts.
    pub restarts: u32,
    /// How many rows and sites must stand behind a sum.
    pub rule: GroupThreshold,
    /// What happens to the rows first.
    pub preparation: Preparation,
    /// Which totals are asked at the end.
    pub validity: Validity,
    /// How K is chosen among several.
    pub choice: Choice,
    /// The noise inside the sums; none where there is no promise of differential privacy.
    #[serde(default)]
    pub noise: Option<Noise>,
    /// Rounds of exact Lloyd ask a cluster's sum again only where so many rows have entered or left it; 1 asks every time.
    pub min_change: u64,
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

/// The range of K as the framework paper has it: it ends at the smallest K plus the largest number of clusters that any
/// site would choose alone, and never above the recipe's largest K. Each site adds 1 to the count of its own number.
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

/// An algorithm that a plan can name, with its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Algorithm {
    /// Exact federated fuzzy c-means ([`fcm`]).
    Fcm {
        /// Fuzzifier, > 1.
        m: f64,
        /// Stop when the centres move less (Frobenius norm); 0 runs all rounds.
        epsilon: f64,
        /// Rounds at most.
        max_rounds: u32,
    },
    /// FFCM with the weighted mean of local centres ([`ffcm`]).
    FfcmAvg1 {
        /// Fuzzifier, > 1.
        m: f64,
        /// Stop when the centres move less (Frobenius norm); 0 runs all rounds.
        epsilon: f64,
        /// Rounds at most.
        max_rounds: u32,
        /// A site's own iteration.
        local: LocalSteps,
        /// Weights are `sum_j u_jk^m` as printed, and not `sum_j u_jk` as in the authors' code.
        powers: bool,
    },
    /// FFCM with k-means over local centres, one Lloyd step on totals a round; FedFCM is this method ([`ffcm`]).
    FfcmAvg2 {
        /// Fuzzifier, > 1.
        m: f64,
        /// Stop when the centres move less (Frobenius norm); 0 stops only when nothing moves.
        epsilon: f64,
        /// Rounds at most.
        max_rounds: u32,
        /// A site's own iteration.
        local: LocalSteps,
    },
    /// Federated k-means with weighted alignment ([`fkm`]).
    Fkm {
        /// Stop when the centres move less (Frobenius norm); 0 stops only when nothing moves.
        epsilon: f64,
        /// Rounds at most, the finisher's not counted.
        max_rounds: u32,
        /// A site leaves out its groups below this (the paper's p), >= 1.
        min_rows: u64,
        /// Lloyd steps of a site a round (the paper's E), >= 1.
        local_steps: u32,
        /// Rounds of exact Lloyd afterwards at most; 0 for none.
        finish: u32,
    },
    /// Exact federated k-means ([`kmeans`]).
    Kmeans {
        /// Stop when the centres move less (Frobenius norm); 0 stops only when nothing moves.
        epsilon: f64,
        /// Rounds at most.
        max_rounds: u32,
    },
    /// Federated fuzzy feature vectors on shared anchors, then weighted fuzzy c-means ([`ffcf`]).
    Ffcf {
        /// Fuzzifier of the clustering, > 1.
        m: f64,
        /// A site's own part.
        features: FeatureParams,
        /// Anchors; 0 for four times the largest K, but at least 8.
        anchors: u32,
        /// Whether the coordinator merges what is similar before it clusters.
        merge: bool,
    },
    /// Weighted mean of local k-means centres by index ([`kumar`]).
    Kumar {
        /// Stop when the centres move less (Frobenius norm); 0 stops only when nothing moves.
        epsilon: f64,
        /// Rounds at most.
        max_rounds: u32,
        /// A site's own iteration.
        local: LocalSteps,
    },
}

/// How many rows and sites must stand behind a sum before the coordinator asks for it. Where either is above 1 and
/// `ask_first` holds, counts are asked in a round of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupThreshold {
    /// Rows of a cluster or seeding cell over the cohort (p), >= 1.
    pub min_rows: u64,
    /// Sites that contribute to it (t), >= 1.
    pub min_sites: u32,
    /// Ask the counts first; otherwise the sums come with them, and a small cluster's sums have been seen before it is
    /// frozen.
    pub ask_first: bool,
}

impl GroupThreshold {
    /// Nothing is required.
    pub const NONE: Self = Self { min_rows: 1, min_sites: 1, ask_first: false };

    /// Whether counts are asked in a round of their own.
    pub fn two_steps(&self) -> bool {
        self.ask_first && (self.min_rows > 1 || self.min_sites > 1)
    }

    /// Whether so many rows and sites are enough.
    pub fn allows(&self, rows: f64, sites: f64) -> bool {
        // Counts are whole numbers up to rounding, or blurred.
        rows > self.min_rows as f64 - 0.5 && sites > f64::from(self.min_sites) - 0.5
    }
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
    /// From totals of the cells of a tree over the rows.
    Tree(TreeSeeding),
}

/// Seeding from totals: cells by repeated splits, then weighted greedy k-means++ off-line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeSeeding {
    /// Seed of the off-line k-means++; restart r uses seed + r.
    pub seed: u64,
    /// Cells for each cluster of the largest K (4 to 8 are usual).
    pub cells_per_cluster: u32,
    /// Off-line tries, of which the best counts (20 is usual).
    pub tries: u32,
    /// Rows that a cell must hold.
    pub min_rows: u64,
    /// Standard deviation of the noise that all sites together add to the seeding totals, in units of one row's largest
    /// influence; 0 for none, 0.5 costs nothing in practice.
    pub blur: f64,
}

/// Which totals are asked at the end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validity {
    /// All indices of round A, not only fuzzy Davies-Bouldin and the objective. Methods with hard groups always ask them.
    pub full: bool,
    /// Sums of coordinates too (cluster means, Calinski-Harabasz, Fukuyama-Sugeno); never where the intermediary judges.
    pub vectors: bool,
    /// A second round for the silhouettes around cluster means; needs `vectors`.
    pub silhouette: bool,
    /// Number of labels whose counts by cluster are released; 0 for none.
    pub classes: u32,
    /// Fuzzifier that hard methods are judged with, > 1.
    pub judge_m: f64,
}

impl Algorithm {
    /// The name by which plans and results call it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fcm { .. } => "fcm",
            Self::FfcmAvg1 { .. } => "ffcm-avg1",
            Self::FfcmAvg2 { .. } => "ffcm-avg2",
            Self::Fkm { .. } => "fkm",
            Self::Kmeans { .. } => "kmeans",
            Self::Ffcf { .. } => "ffcf",
            Self::Kumar { .. } => "kumar",
        }
    }

    /// The fuzzifier of a fuzzy method.
    pub fn fuzzifier(&self) -> Option<f64> {
        match self {
            Self::Fcm { m, .. } | Self::FfcmAvg1 { m, .. } | Self::FfcmAvg2 { m, .. } | Self::Ffcf { m, .. } => {
                Some(*m)
            }
            Self::Fkm { .. } | Self::Kmeans { .. } | Self::Kumar { .. } => None,
        }
    }

    /// Questions of the iteration at most.
    pub fn max_questions(&self, rule: GroupThreshold) -> u32 {
        let each = if rule.two_steps() { 2 } else { 1 };
        match self {
            Self::Fcm { max_rounds, .. } | Self::FfcmAvg1 { max_rounds, .. } => *max_rounds,
            Self::FfcmAvg2 { max_rounds, .. } | Self::Kmeans { max_rounds, .. } | Self::Kumar { max_rounds, .. } => {
                max_rounds.saturating_mul(each)
            }
            Self::Fkm { max_rounds, finish, .. } => max_rounds.saturating_add(*finish).saturating_mul(each),
            Self::Ffcf { .. } => each,
        }
    }

    /// Whether its rounds have a half that asks counts, where the rule wants counts first.
    pub(crate) fn has_halves(&self) -> bool {
        !matches!(self, Self::Fcm { .. } | Self::FfcmAvg1 { .. })
    }

    /// The anchors that it asks about in place of centres.
    pub(crate) fn anchors(&self, clusters: u32) -> Option<u32> {
        match self {
            Self::Ffcf { anchors: 0, .. } => Some(clusters.saturating_mul(4).max(8)),
            Self::Ffcf { anchors, .. } => Some(*anchors),
            _ => None,
        }
    }

    /// Centres that a site compares a row with in the longest question, where all K and restarts have `all_k` together.
    pub(crate) fn comparisons(&self, all_k: f64) -> f64 {
        match self {
            Self::Fcm { .. } | Self::Kmeans { .. } => all_k,
            Self::FfcmAvg1 { local, .. } | Self::FfcmAvg2 { local, .. } | Self::Kumar { local, .. } => {
                all_k * f64::from(local.most)
            }
            Self::Fkm { local_steps, .. } => all_k * f64::from(*local_steps),
            Self::Ffcf { features, .. } => f64::from(features.max).powi(2),
        }
    }

    /// What its rounds ask about these centres, in this half.
    pub(crate) fn asks(&self, centres: &Centres, half: &RoundHalf) -> Vec<Query> {
        let (centres, part) = (centres.clone(), half.clone());
        let means = |local, min_rows, nearest| {
            Query::from(LocalMeans { centres: centres.clone(), local, min_rows, nearest, part: part.clone() })
        };
        match self {
            Self::Fcm { m, .. } => vec![Query::fuzzy_sums(centres, *m)],
            Self::FfcmAvg1 { m, local, powers, .. } => {
                let pull = if *powers { Pull::Powers } else { Pull::Memberships };
                vec![LocalFuzzy { centres, m: *m, local: *local, pull, part }.into()]
            }
            Self::FfcmAvg2 { m, local, .. } => {
                vec![LocalFuzzy { centres, m: *m, local: *local, pull: Pull::Nearest, part }.into()]
            }
            Self::Fkm { min_rows, local_steps, finish, .. } => {
                let aligned = means(LocalSteps { most: *local_steps, epsilon: 0.0 }, *min_rows, true);
                std::iter::once(aligned).chain((*finish > 0).then(|| means(LocalSteps::ONE, 1, false))).collect()
            }
            Self::Kmeans { .. } => vec![means(LocalSteps::ONE, 1, false)],
            Self::Kumar { local, .. } => vec![means(*local, 1, false)],
            Self::Ffcf { features, .. } => vec![Features { anchors: centres, params: *features, part }.into()],
        }
    }

    /// The iteration for one K from its first centres. `seed` is that of its restart.
    pub(crate) fn begin(
        &self,
        start: Centres,
        cells: Option<&SeedCells>,
        rule: GroupThreshold,
        seed: u64,
    ) -> Result<Box<dyn Iteration>, MethodError> {
        Ok(match self.clone() {
            Self::Fcm { m, epsilon, max_rounds } => Box::new(fcm::Updates::new(start, m, epsilon, max_rounds)?),
            Self::FfcmAvg1 { m, epsilon, max_rounds, local, powers } => {
                Box::new(ffcm::Average1::new(start, m, epsilon, max_rounds, local, powers)?)
            }
            Self::FfcmAvg2 { m, epsilon, max_rounds, local } => {
                Box::new(ffcm::Average2::new(start, m, epsilon, max_rounds, local, rule)?)
            }
            Self::Fkm { epsilon, max_rounds, min_rows, local_steps, finish } => {
                Box::new(fkm::Fkm::new(start, epsilon, max_rounds, min_rows, local_steps, finish, rule)?)
            }
            Self::Kmeans { epsilon, max_rounds } => Box::new(kmeans::Kmeans::new(start, epsilon, max_rounds, rule)?),
            Self::Ffcf { m, features, merge, .. } => {
                let anchors = cells.map_or_else(|| start.clone(), |cells| cells.means.clone());
                Box::new(ffcf::Ffcf::new(anchors, start.k(), m, features, merge, rule, seed)?)
            }
            Self::Kumar { epsilon, max_rounds, local } => {
                Box::new(kumar::Kumar::new(start, epsilon, max_rounds, local, rule)?)
            }
        })
    }
}

impl Recipe {
    /// A run with one K, no preparation and basic validity: the plainest recipe of an algorithm.
    pub fn plain(algorithm: Algorithm, k: u32, seeding: Seeding) -> Self {
        Self {
            clusters: Clusters::exactly(k),
            algorithm,
            range: None,
            seeding,
            restarts: 1,
            rule: GroupThreshold::NONE,
            preparation: Preparation::none(),
            validity: Validity::basic(),
            choice: Choice { by: super::Pick::FuzzyDaviesBouldin, elbow: false },
            noise: None,
            min_change: 1,
        }
    }

    /// What every total of this recipe may say, where it has noise.
    ///
    /// # Errors
    /// [`MethodError`] where the budget is too small.
    pub fn levels(&self, domain: &Domain) -> Result<Option<Levels>, MethodError> {
        self.noise.as_ref().map(|noise| Levels::new(noise, self, domain)).transpose()
    }

    /// The iteration of one K under noise, where there is any.
    pub(crate) fn noisy(&self, start: Centres, domain: &Domain) -> Result<Option<Box<dyn Iteration>>, MethodError> {
        let Some(levels) = self.levels(domain)? else { return Ok(None) };
        let rounds = self.algorithm.max_questions(GroupThreshold::NONE);
        Ok(Some(Box::new(super::noisy::Noisy::new(start, self.algorithm.fuzzifier(), rounds, levels, domain)?)))
    }

    /// Whether the validation asks more than fuzzy Davies-Bouldin and the objective need. Under noise it never does.
    pub fn judges_fully(&self) -> bool {
        self.noise.is_none() && (self.validity.full || self.algorithm.fuzzifier().is_none())
    }

    /// Whether rows and sites of the final clusters are counted before anything is summed up by cluster: the rule holds for the
    /// validation as for the rounds (specification, QRY-11).
    pub fn counts_clusters(&self) -> bool {
        self.judges_fully() && self.rule.two_steps()
    }

    /// Whether a run can start on this box.
    ///
    /// # Errors
    /// [`MethodError`] naming the parameter and what to change.
    pub fn check(&self, domain: &Domain) -> Result<(), MethodError> {
        let Clusters { min, max } = self.clusters;
        if min == 0 {
            return Err(MethodError::NoClusters);
        }
        if min > max || max > MAX_K {
            return Err(MethodError::parameter(format!(
                "the range of K goes from {min} to {max}; it must rise and end at {MAX_K} or below"
            )));
        }
        if self.restarts == 0 || self.restarts > MAX_RESTARTS {
            return Err(MethodError::parameter(format!("restarts must be 1 to {MAX_RESTARTS}")));
        }
        let members = self.clusters.count() as u64 * u64::from(self.restarts);
        if members > crate::MAX_BATCH as u64 {
            return Err(MethodError::parameter(format!(
                "{members} runs side by side; a batch holds {}: fewer K or fewer restarts",
                crate::MAX_BATCH
            )));
        }
        if self.rule.min_rows == 0 || self.rule.min_sites == 0 {
            return Err(MethodError::parameter("min_rows and min_sites must be at least 1"));
        }
        self.check_min_change()?;
        self.preparation.check(domain)?;
        if let Some(choice) = self.local_choice() {
            Query::from(choice).check(domain).map_err(|error| MethodError::parameter(error.to_string()))?;
        }
        self.check_seeding(domain)?;
        self.check_validity()?;
        if let Some(noise) = &self.noise {
            noise.check(self, domain)?;
        }
        // The parameters of the algorithm itself: its constructor says what is wrong, for any first centres.
        let probe = |k: u32| {
            crate::Start::Uniform { seed: 0 }
                .centres(domain, k as usize)
                .map_err(|error| MethodError::parameter(error.to_string()))
        };
        let _ = self.algorithm.begin(probe(min.min(8))?, None, self.rule, 0)?;
        // The memberships of one row to the power of m add up to K^(1 - m) at least, and to little more where it is far off.
        if (self.judge_m() - 1.0) * f64::from(max).ln() > MAX_FUZZINESS {
            return Err(MethodError::parameter(format!(
                "memberships to the power of {} vanish with {max} clusters: a smaller fuzzifier m or fewer K",
                self.judge_m()
            )));
        }
        Ok(())
    }

    fn check_min_change(&self) -> Result<(), MethodError> {
        match (self.min_change, &self.algorithm) {
            (0, _) => Err(MethodError::parameter("min_change must be at least 1")),
            (1, _) => Ok(()),
            (_, Algorithm::Kmeans { .. } | Algorithm::Fkm { finish: 1.., .. }) if self.rule.two_steps() => Ok(()),
            (_, Algorithm::Kmeans { .. } | Algorithm::Fkm { finish: 1.., .. }) => {
                Err(MethodError::parameter("min_change needs a rule whose counts are asked first"))
            }
            _ => Err(MethodError::parameter("min_change is for kmeans and for fkm with a finisher")),
        }
    }

    fn check_seeding(&self, domain: &Domain) -> Result<(), MethodError> {
        match &self.seeding {
            Seeding::Uniform { .. } => {}
            Seeding::Given { centres } => {
                if centres.columns() != domain.columns() {
                    return Err(MethodError::parameter(format!(
                        "the given centres have {} columns, the plan has {}",
                        centres.columns(),
                        domain.columns()
                    )));
                }
                inside(centres, domain)
                    .map_err(|why| MethodError::parameter(format!("among the first centres, {why}")))?;
                if self.clusters.min != self.clusters.max || self.restarts != 1 {
                    return Err(MethodError::parameter("given centres go with one K and one restart"));
                }
                if centres.k() != self.clusters.min as usize {
                    return Err(MethodError::StartCount { expected: self.clusters.min as usize, found: centres.k() });
                }
            }
            Seeding::Tree(tree) => {
                if tree.cells_per_cluster == 0 || tree.cells_per_cluster > 64 {
                    return Err(MethodError::parameter("seeding takes 1 to 64 cells for each cluster"));
                }
                if tree.tries == 0 || tree.tries > 1000 {
                    return Err(MethodError::parameter("seeding takes 1 to 1000 tries"));
                }
                if tree.min_rows == 0 {
                    return Err(MethodError::parameter("a seeding cell must hold at least 1 row"));
                }
                if !(tree.blur.is_finite() && (0.0..=1000.0).contains(&tree.blur)) {
                    return Err(MethodError::parameter("the blur of seeding must be 0 to 1000"));
                }
            }
        }
        if matches!(self.algorithm, Algorithm::Ffcf { .. }) && !matches!(self.seeding, Seeding::Tree(_)) {
            return Err(MethodError::parameter("ffcf needs seeding from totals: its anchors are the tree's cells"));
        }
        Ok(())
    }

    fn check_validity(&self) -> Result<(), MethodError> {
        let validity = self.validity;
        if !usable_fuzzifier(validity.judge_m) {
            return Err(MethodError::Fuzzifier);
        }
        if validity.silhouette && !validity.vectors {
            return Err(MethodError::parameter("the silhouettes need the sums of coordinates (vectors)"));
        }
        if self.clusters.min < self.clusters.max {
            let by = self.choice.by;
            let full = self.judges_fully();
            let silhouette = by != super::Pick::SilhouetteSquared || validity.silhouette;
            if (by.needs_full() && !full) || (by.needs_vectors() && !validity.vectors) || !silhouette {
                return Err(MethodError::parameter("the index that chooses K is not among those that are asked"));
            }
        }
        Ok(())
    }

    /// The question behind [`LocalRange`].
    pub(crate) fn local_choice(&self) -> Option<LocalChoice> {
        let LocalRange { most, starts, seed } = self.range?;
        let local = LocalSteps { most: 1000, epsilon: 1e-4 };
        Some(LocalChoice { min: self.clusters.min, most, m: self.judge_m(), local, seed, starts })
    }

    /// Cells that seeding looks for.
    pub fn leaves(&self, tree: &TreeSeeding) -> usize {
        let cells = || self.clusters.max.saturating_mul(tree.cells_per_cluster);
        self.algorithm.anchors(self.clusters.max).unwrap_or_else(cells) as usize
    }

    /// The rule that seeding cells obey.
    pub(crate) fn seeding_rule(&self, tree: &TreeSeeding) -> GroupThreshold {
        GroupThreshold { min_rows: self.rule.min_rows.max(tree.min_rows), ..self.rule }
    }

    /// Questions that a whole run asks at most.
    pub fn max_questions(&self) -> u32 {
        let seeding = match &self.seeding {
            Seeding::Tree(tree) => super::TreeSearch::max_questions(self.leaves(tree), self.seeding_rule(tree)),
            _ => 0,
        };
        let after = 1
            + u32::from(self.counts_clusters())
            + u32::from(self.range.is_some())
            + u32::from(self.validity.silhouette)
            + u32::from(self.validity.classes > 0);
        let prepare = if self.preparation.is_none() { 0 } else { self.preparation.max_questions() };
        prepare.saturating_add(seeding).saturating_add(self.algorithm.max_questions(self.rule)).saturating_add(after)
    }

    /// The conversation at its beginning, for a cohort of `sites` sites.
    ///
    /// # Errors
    /// Those of [`Recipe::check`].
    pub fn run(&self, domain: &Domain, sites: u32) -> Result<Run, MethodError> {
        Run::new(self.clone(), domain, sites)
    }

    /// The fuzzifier that results are judged with.
    pub fn judge_m(&self) -> f64 {
        self.algorithm.fuzzifier().unwrap_or(self.validity.judge_m)
    }
}

impl Validity {
    /// Fuzzy Davies-Bouldin and the objective.
    pub fn basic() -> Self {
        Self { full: false, vectors: false, silhouette: false, classes: 0, judge_m: 2.0 }
    }

    /// Every index that totals give.
    pub fn everything() -> Self {
        Self { full: true, vectors: true, silhouette: true, classes: 0, judge_m: 2.0 }
    }
}
