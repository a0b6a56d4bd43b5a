//! The options that say what a run consists of, the same for `plan make` and `demo`.

use std::path::Path;

use clap::Args;
use veilsum_cluster::{
    Algorithm, Centres, Clusters, Recipe, Scaling,
    algorithm::{About, Options},
    method::{Candidates, Choice, LocalRange, Pick, Preparation, Scale, Seeding, Validity},
    sampling::Sampling,
};

use veilsum_node::{
    error::{Code, Failure},
    plan::{Column, Judge},
    table,
};

pub(crate) mod heading;
mod noise;
mod values;

use noise::NoiseArgs;
pub(crate) use values::parse_clusters;
use values::{IndexSet, Init, JudgeName, Metric, Standardise, method_help, parse_method, parse_pick, winsor};

/// What a run consists of.
#[derive(Args, Debug, Clone)]
pub(crate) struct MethodArgs {
    #[arg(long, value_name = "NAME", default_value = "fcm", value_parser = parse_method, help = method_help(false),
        long_help = method_help(true),
        help_heading = heading::METHOD)]
    pub method: &'static About,
    /// Fuzzifier, above 1
    ///
    /// For hard methods it is the fuzzifier that their partition is judged with.
    #[arg(long, default_value_t = 2.0, allow_negative_numbers = true, help_heading = heading::METHOD)]
    pub m: f64,
    /// Stop when the centres move less than this
    ///
    /// The movement is the Frobenius norm in the units of the questions [default: 0.005 for fcm, 0.0001 for ffcm; 0 for hard
    /// methods, which stop when nothing moves].
    #[arg(long, allow_negative_numbers = true, help_heading = heading::METHOD)]
    pub epsilon: Option<f64>,
    /// Rounds at most; under noise exactly this many [default: 30; under noise 8, or 5]
    ///
    /// Five are the default if a cluster's expected rows hardly rise above the noise.
    #[arg(long, value_name = "N", help_heading = heading::METHOD)]
    pub max_rounds: Option<u32>,
    /// Runs from different first centres for every K, side by side; the best objective counts
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = heading::METHOD)]
    pub restarts: u32,
    /// Where first centres come from
    ///
    /// [default: totals under noise and for methods that sum up groups of rows, else uniform]
    #[arg(long, value_name = "WHERE", value_enum, help_heading = heading::METHOD)]
    pub init: Option<Init>,
    /// A site's own steps in a round; 0 iterates to convergence
    ///
    /// To convergence means 1000 steps at most [default: 1 for fkm, 0 for ffcm].
    #[arg(long, value_name = "N", hide_short_help = true, help_heading = heading::METHOD)]
    pub local_steps: Option<u32>,
    /// ffcm: a site's own iteration stops when memberships change less
    #[arg(long, value_name = "E", default_value_t = 1e-4, allow_negative_numbers = true, hide_short_help = true,
        help_heading = heading::METHOD)]
    pub local_epsilon: f64,
    /// ffcm-avg1: weights are sums of u^m, as printed in the paper, and not of u, as in its code
    #[arg(long, hide_short_help = true, help_heading = heading::METHOD)]
    pub powers: bool,
    /// fkm: a site leaves out its groups with fewer rows than this (the paper's p)
    #[arg(long, value_name = "P", default_value_t = 2, hide_short_help = true, help_heading = heading::METHOD)]
    pub min_group: u64,
    /// fkm: rounds of exact Lloyd afterwards, at most
    #[arg(long, value_name = "N", default_value_t = 0, hide_short_help = true, help_heading = heading::METHOD)]
    pub finish: u32,
    /// gmm, gk: added to every variance, in parts of the squared extent of the box
    #[arg(long, value_name = "V", default_value_t = 1e-6, allow_negative_numbers = true, hide_short_help = true,
        help_heading = heading::METHOD)]
    pub regularisation: f64,
    /// fcm-noise, pcm: a row farther than this from a centre is noise, or belongs to it by less than half
    ///
    /// In the units of the questions, as the centres' movement is.
    #[arg(long, value_name = "D", default_value_t = 0.2, allow_negative_numbers = true, hide_short_help = true,
        help_heading = heading::METHOD)]
    pub distance: f64,
    /// ffcf: shared anchors [default: 4 for each cluster, at least 8]
    #[arg(long, value_name = "B", default_value_t = 0, hide_default_value = true, hide_short_help = true, help_heading = heading::METHOD)]
    pub anchors: u32,
    /// ffcf: feature vectors that a site holds at most
    #[arg(long, value_name = "N", default_value_t = 100, hide_short_help = true, help_heading = heading::METHOD)]
    pub features: u32,
    /// describe: bins of every column of numbers, over its public range
    #[arg(long, value_name = "N", default_value_t = 16, hide_short_help = true, help_heading = heading::METHOD)]
    pub bins: u32,
    /// Standardise columns over the cohort first
    ///
    /// Centres come back in original units.
    #[arg(long, value_name = "HOW", value_enum, default_value = "none", help_heading = heading::CHOICE)]
    pub standardise: Standardise,
    /// What distances are: of fcm and kmeans
    ///
    /// Under mahalanobis columns are whitened by their covariance over the cohort, and centres come back in original units. Under
    /// cosine every row is divided by its length and centres are directions. A row of zeros is an error, and has no weight under noise.
    #[arg(long, value_enum, default_value = "euclidean", hide_short_help = true, help_heading = heading::CHOICE)]
    pub metric: Metric,
    /// Clip a column at quantiles of the cohort first, as in balance=0:0.99; may be repeated
    #[arg(long, value_name = "COLUMN=LOW:HIGH", hide_short_help = true, help_heading = heading::CHOICE)]
    pub winsorise: Vec<String>,
    /// Validity indices [default: basic; all for hard methods]
    ///
    /// Where a hard method is judged by the intermediary the default is scalars.
    #[arg(long, value_name = "WHICH", value_enum, help_heading = heading::CHOICE)]
    pub indices: Option<IndexSet>,
    /// The range of K ends where no site would choose more clusters alone
    ///
    /// It ends at LOW plus the largest number of clusters up to N that any site would choose alone (each site adds 1 to the count
    /// of its own), and at HIGH at the latest.
    #[arg(long, value_name = "N", hide_short_help = true, help_heading = heading::CHOICE)]
    pub local_k: Option<u32>,
    /// The index that chooses K from a range
    ///
    /// It is one of fuzzy-davies-bouldin, davies-bouldin, xie-beni, partition-coefficient, partition-entropy,
    /// modified-partition-coefficient, fukuyama-sugeno, calinski-harabasz, simplified-silhouette and silhouette-squared; bic with
    /// gmm, gap with fcm, kmeans and fkm.
    #[arg(long, value_name = "INDEX", default_value = "fuzzy-davies-bouldin", value_parser = parse_pick,
        help_heading = heading::CHOICE)]
    pub choose: Pick,
    /// Choose K at the elbow of the index curve instead of its best value, where the curve falls over the whole range
    #[arg(long, hide_short_help = true, help_heading = heading::CHOICE)]
    pub elbow: bool,
    /// Share of the blocks of sites that contributes in each round (Bárcena's gamma) [default: all]
    ///
    /// Blocks are drawn whole, so this needs a plan of several blocks (--block-size).
    #[arg(long, value_name = "GAMMA", allow_negative_numbers = true, hide_short_help = true, help_heading = heading::COHORT)]
    pub sample: Option<f64>,
    /// Who opens the validity totals
    #[arg(long, value_enum, default_value = "coordinator", hide_short_help = true, help_heading = heading::CHOICE)]
    pub judge: JudgeName,
    /// Noise in the sums, and what a run promises with it
    #[command(flatten)]
    pub noise: NoiseArgs,
}

/// First centres from a file, or none.
///
/// # Errors
/// A [`Failure`] that names the file.
pub(crate) fn given_centres(path: Option<&Path>, columns: usize) -> Result<Option<Centres>, Failure> {
    path.map(|path| Ok(Centres::from_rows(&table::read_matrix(path, columns)?)?)).transpose()
}

impl MethodArgs {
    /// The recipe for these columns. `given` are first centres in box units.
    ///
    /// # Errors
    /// A [`Failure`] that names the option.
    pub(crate) fn recipe(
        &self,
        clusters: Clusters,
        given: Option<Centres>,
        seed: u64,
        columns: &[Column],
        classes: usize,
    ) -> Result<Recipe, Failure> {
        let usage = |what: String, next: &str| Failure::new(Code::Usage, what, next);
        let noisy = self.noise.asked();
        let init = if self.seeds_from_totals() { Init::Totals } else { Init::Uniform };
        // From anywhere, three rounds pass before centres are near.
        let few = given.is_some() || init == Init::Totals;
        let algorithm = self.algorithm_of(self.noise.rounds(if few { clusters.max } else { 0 }));
        let describes = algorithm.traits().describes.is_some();
        let hard = algorithm.traits().fuzzifier.is_none() && !noisy && !describes;
        let seeding = match (given, init) {
            (Some(_), Init::Totals) if self.init.is_some() => {
                return Err(usage("--start and --init totals contradict each other".into(), "leave one of them out"));
            }
            (Some(centres), _) => Seeding::Given { centres },
            (None, Init::Uniform) => Seeding::Uniform { seed },
            (None, Init::Totals) => Seeding::Candidates(Candidates::usual(seed)),
        };
        let intermediary = self.judge == JudgeName::Intermediary;
        let set = self.indices.unwrap_or(match (hard, intermediary) {
            (false, _) => IndexSet::Basic,
            (true, false) => IndexSet::All,
            (true, true) => IndexSet::Scalars,
        });
        let vectors = set == IndexSet::All;
        let silhouette = vectors;
        Ok(Recipe {
            clusters,
            algorithm,
            range: self.local_k.map(|most| LocalRange { most, starts: 10, seed }),
            seeding,
            restarts: self.restarts,
            preparation: self.preparation(columns)?,
            validity: Validity {
                full: hard || set != IndexSet::Basic,
                vectors,
                silhouette,
                classes: u32::try_from(classes).unwrap_or(u32::MAX),
                judge_m: self.m,
            },
            choice: Choice { by: self.choose, elbow: self.elbow },
            noise: None,
        })
    }

    /// Whether columns are described, and no clusters found.
    pub(crate) fn describes(&self) -> bool {
        self.algorithm().traits().describes.is_some()
    }

    /// Which K are tried, as `--k` says. A description has no clusters, and everything else needs a number of them.
    ///
    /// # Errors
    /// A [`Failure`] that says which.
    pub(crate) fn clusters(&self, k: Option<Clusters>) -> Result<Clusters, Failure> {
        let usage = |what: &str, next: &str| Err(Failure::new(Code::Usage, what, next));
        match (self.describes(), k) {
            (true, None) => Ok(Clusters::exactly(1)),
            (true, Some(_)) => usage("a description has no clusters", "leave --k out, or choose another --method"),
            (false, Some(clusters)) => Ok(clusters),
            (false, None) => usage(
                "how many clusters?",
                "say --k K, or --k LOW..HIGH for a range from which the run chooses; --method describe needs none",
            ),
        }
    }

    /// Whether first centres come from totals, if no file gives them: under noise no start is tried again, and from random centres some
    /// groups have no rows.
    fn seeds_from_totals(&self) -> bool {
        let usual = !self.describes() && (self.noise.asked() || !self.algorithm().traits().shares_rows);
        self.init.map_or(usual, |init| init == Init::Totals)
    }

    fn algorithm(&self) -> Algorithm {
        self.algorithm_of(self.noise.rounds(1))
    }

    /// The algorithm, as its registry builds it from these options; `rounds` if they name no number of them.
    fn algorithm_of(&self, rounds: u32) -> Algorithm {
        let noisy = self.noise.asked();
        (self.method.usual)(&Options {
            m: self.m,
            epsilon: self.epsilon.or(noisy.then_some(0.0)),
            max_rounds: self.max_rounds.unwrap_or(rounds),
            local_steps: self.local_steps,
            local_epsilon: self.local_epsilon,
            powers: self.powers,
            min_group: self.min_group,
            finish: self.finish,
            regularisation: self.regularisation,
            distance: self.distance,
            anchors: self.anchors,
            features: self.features,
            bins: self.bins,
        })
    }

    fn preparation(&self, columns: &[Column]) -> Result<Preparation, Failure> {
        let scale = match self.standardise {
            Standardise::None if self.metric == Metric::Mahalanobis => Scale::Whiten,
            _ if self.metric == Metric::Mahalanobis => {
                return Err(Failure::new(
                    Code::Usage,
                    "--metric mahalanobis standardises the columns itself",
                    "leave --standardise out",
                ));
            }
            Standardise::None => Scale::None,
            Standardise::Standard => Scale::Standard,
            Standardise::Robust => Scale::Robust,
        };
        let winsorise = self.winsorise.iter().map(|text| winsor(text, columns)).collect::<Result<_, _>>()?;
        let none = Preparation::none();
        Ok(Preparation { winsorise, scale, ..none })
    }

    /// How rows become working units, where `--scale` says `scaling`.
    pub(crate) fn scaling(&self, scaling: Scaling) -> Scaling {
        if self.metric == Metric::Cosine { Scaling::Direction } else { scaling }
    }

    /// Which share of the sites contributes.
    pub(crate) fn sampling(&self, seed: u64) -> Option<Sampling> {
        self.sample.filter(|share| *share != 1.0).map(|share| Sampling { share, seed })
    }

    /// Who opens the validity totals.
    pub(crate) fn judge(&self) -> Judge {
        match self.judge {
            JudgeName::Coordinator => Judge::Coordinator,
            JudgeName::Intermediary => Judge::Intermediary,
        }
    }
}
