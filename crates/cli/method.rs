//! The options that say what a run consists of, the same for `plan new` and `demo`, and the plan that they come to.

use std::path::Path;

use clap::Args;
use veilsum_cluster::{
    Algorithm, Centres, Clusters, Recipe, Scaling,
    algorithm::{ALGORITHMS, About, Options, usual_fuzzifier},
    method::{Candidates, Choice, DaviesBouldin, LocalRange, Pick, Scale, Seeding, Validity},
    privacy::{DEFAULT_RHO, Noise, Unit},
    sampling::Sampling,
};
use veilsum_node::{
    columns::{dimensions, names},
    documents::Federation,
    dp::Privacy,
    error::Failure,
    plan::{Categorical, Column, OutOfBox, PlanSpec},
    table,
};

use crate::{
    columns::{Wanted, parse_column},
    settings::{self, CategoryWeight, IndexSet, Settings},
};

/// Starts of an exact run of a hard method, and numbers of its centres up to which it has so many: they go side by side in one vector.
const RESTARTS: u32 = 5;
const MOST_NUMBERS: usize = 4_000;

/// What a run consists of.
#[derive(Args, Debug, Clone)]
pub(crate) struct What {
    /// How clusters are found, or columns described (--help-all lists the methods)
    #[arg(long, value_name = "NAME", default_value = "fcm", value_parser = parse_method, long_help = methods())]
    pub method: &'static About,
    /// Number of clusters, or a range as in 2..9 from which the run chooses; `describe` has none
    #[arg(long, value_name = "K|LOW..HIGH", value_parser = parse_clusters)]
    pub k: Option<Clusters>,
    /// No noise: totals are exact, and rows may be inferred from them
    ///
    /// The operator of every site has to agree to this very plan (`veilsum plan agree`).
    #[arg(long, conflicts_with = "rho")]
    pub exact: bool,
    /// What a run spends of every site's account, as rho (zCDP) [default: 0.25]
    ///
    /// Every total has noise for it. 1 is all that a site gives for the life of its account, if its policy says nothing else. First centres
    /// of a file, ranges of columns and the number of expected rows must not come from the rows: nothing hides what a plan says.
    #[arg(long, value_name = "RHO", allow_negative_numbers = true)]
    pub rho: Option<f64>,
    /// Seed of everything random but keys and noise
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// A column: NAME=LOW:HIGH for numbers, NAME=CATEGORY,CATEGORY,... for categories; repeat for each
    ///
    /// Range and categories are public, and known before any row is read. A row with another value is an error at its site, or clipped.
    /// NAME alone takes them from columns.toml, and without --column all columns of it are used. In the demonstration NAME alone takes the
    /// range from the rows.
    #[arg(long = "column", value_name = "NAME[=...]", num_args = 1.., value_parser = parse_column)]
    pub columns: Vec<Wanted>,
    /// Another setting of the plan; repeat for each (--help-all lists them)
    #[arg(long, value_name = "KEY=VALUE", long_help = settings::help())]
    pub set: Vec<String>,
}

/// What options and settings come to, once it is known for which columns.
pub(crate) struct Choices<'a> {
    /// The options.
    pub what: &'a What,
    /// The settings among them, with those that were not set and follow from what is known.
    pub set: Settings,
    /// The columns of numbers and of categories.
    pub columns: (Vec<Column>, Vec<Categorical>),
    /// Rows that are expected in all.
    pub expected_rows: u64,
    /// Rows of one site at most.
    pub max_rows: u64,
    /// The seed, if the options name none.
    pub usual_seed: u64,
    /// The number of clusters, if the options name none.
    pub usual_k: Option<Clusters>,
}

impl Choices<'_> {
    /// Whether there is noise.
    pub(crate) fn noisy(&self) -> bool {
        !self.what.exact
    }

    /// Which K are tried. A description has no clusters, and everything else needs a number of them.
    ///
    /// # Errors
    /// A [`Failure`] that says which.
    pub(crate) fn clusters(&self, seeding: &Seeding) -> Result<Clusters, Failure> {
        let given = match seeding {
            Seeding::Given { centres } => Some(Clusters::exactly(centres.k() as u32)),
            _ => None,
        };
        match (self.describes(), self.what.k) {
            (true, None) => Ok(Clusters::exactly(1)),
            (true, Some(_)) => usage("a description has no clusters", "leave --k out, or choose another --method"),
            (false, k) => k.or(given).or(self.usual_k).map_or_else(
                || {
                    usage(
                        "how many clusters?",
                        "say --k K, or --k LOW..HIGH for a range from which the run chooses; --method describe needs none",
                    )
                },
                Ok,
            ),
        }
    }

    /// Where first centres come from: from random ones some groups have no rows.
    ///
    /// # Errors
    /// A [`Failure`] that names the file of first centres.
    pub(crate) fn seeding(&self) -> Result<Seeding, Failure> {
        let seed = self.seed();
        Ok(match self.set.init.as_deref().unwrap_or(if self.describes() { "uniform" } else { "totals" }) {
            "uniform" => Seeding::Uniform { seed },
            "totals" => Seeding::Candidates(Candidates::usual(seed)),
            file => {
                let rows = table::read_matrix(Path::new(file), names(&self.columns.0, &self.columns.1).len())?;
                Seeding::Given { centres: Centres::from_rows(&rows)? }
            }
        })
    }

    /// How sites are sampled, if they are.
    pub(crate) fn sampling(&self) -> Option<Sampling> {
        self.set.sample.filter(|share| *share != 1.0).map(|share| Sampling { share, seed: self.seed() })
    }

    fn seed(&self) -> u64 {
        self.what.seed.unwrap_or(self.usual_seed)
    }

    fn describes(&self) -> bool {
        self.algorithm(1).traits().describes.is_some()
    }

    /// The algorithm, as its registry builds it; `rounds` if no setting names a number of them.
    fn algorithm(&self, rounds: u32) -> Algorithm {
        (self.what.method.usual)(&self.options(rounds))
    }

    fn options(&self, rounds: u32) -> Options {
        let set = &self.set;
        Options {
            m: self.fuzzifier(),
            epsilon: set.epsilon.or(self.noisy().then_some(0.0)),
            max_rounds: set.max_rounds.unwrap_or(rounds),
            local_steps: set.local_steps,
            local_epsilon: 1e-4,
            powers: set.powers.unwrap_or(true),
            min_group: set.min_group.unwrap_or(2),
            finish: set.finish,
            anchors: set.anchors,
            features: (set.features_min.unwrap_or(5), set.features.unwrap_or(100)),
            similarity: set.similarity.unwrap_or(1.0),
            bins: set.bins.unwrap_or(16),
        }
    }

    /// The fuzzifier; one that is not said follows from columns and expected rows.
    fn fuzzifier(&self) -> f64 {
        let rows = if self.noisy() { self.expected_rows } else { 0 };
        self.set.m.unwrap_or_else(|| usual_fuzzifier(dimensions(&self.columns.0, &self.columns.1), rows))
    }

    /// The noise of a plan as it usually is, if there is any.
    fn usual_noise(&self) -> Option<Noise> {
        let unit = self.set.rows_per_person.map_or(Unit::Record, |rows| Unit::Person { rows });
        let usual = || Noise::usual(self.what.rho.unwrap_or(DEFAULT_RHO), self.expected_rows);
        self.noisy().then(|| Noise { unit, ..usual() })
    }

    /// Rounds for so many clusters at most, where they begin near; 0 for anywhere, from where three rounds pass before centres are near.
    fn rounds(&self, clusters: u32) -> u32 {
        self.usual_noise().map_or(30, |usual| usual.usual_rounds(clusters))
    }

    fn noise(&self, clusters: Clusters, seeding: &Seeding) -> Option<Noise> {
        let (set, usual) = (&self.set, self.usual_noise()?);
        let usual = if matches!(seeding, Seeding::Uniform { .. }) { usual.from_anywhere() } else { usual };
        // One centre loses no cluster to the noise, and is to be the mean.
        let tau = if clusters.max == 1 { 0.0 } else { usual.tau };
        Some(Noise {
            absolute_rounds: set.dp_absolute_rounds.unwrap_or(usual.absolute_rounds),
            tau: set.dp_tau.unwrap_or(tau),
            validation_share: if clusters.min < clusters.max { 0.2 } else { usual.validation_share },
            retries: set.dp_retries.unwrap_or(usual.retries),
            ..usual
        })
    }

    /// The method part of the plan.
    ///
    /// # Errors
    /// A [`Failure`] that names the option or setting.
    pub(crate) fn work(&self) -> Result<PlanSpec, Failure> {
        let (set, noisy, seeding) = (&self.set, self.noisy(), self.seeding()?);
        let clusters = self.clusters(&seeding)?;
        let near = !matches!(seeding, Seeding::Uniform { .. });
        let algorithm = self.algorithm(self.rounds(if near { clusters.max } else { 0 }));
        settings::unread(&self.what.set, (&algorithm, &self.options(1)), clusters, noisy)?;
        let hard = algorithm.traits().fuzzifier.is_none() && !noisy && algorithm.traits().describes.is_none();
        // Hard methods stay at poor first centres most. In a sweep the references of the gap would be clustered as often.
        let columns = names(&self.columns.0, &self.columns.1).len();
        let fits = clusters.max > 1 && clusters.max as usize * columns <= MOST_NUMBERS;
        let many = hard && clusters.min == clusters.max && fits && !matches!(seeding, Seeding::Given { .. });
        let indices = set.indices.unwrap_or(match (hard, set.judge) {
            (false, _) => IndexSet::Basic,
            (true, veilsum_node::plan::Judge::Coordinator) => IndexSet::All,
            (true, veilsum_node::plan::Judge::Intermediary) => IndexSet::Scalars,
        });
        // An elbow, or a K that sites vote on, goes with an index.
        let by_rule = clusters.min < clusters.max && !set.elbow && set.local_k.is_none();
        let usual_gap = set.choose.is_none() && by_rule && (noisy || set.indices != Some(IndexSet::Basic));
        self.check_weights()?;
        let preparation = set.standardise.unwrap_or(Scale::None);
        // Half of what 64 bits hold says nothing that a result needs, and counts against every site's release rule. A step of 2^-20 of
        // one row's largest value moves no centre by more than a millionth of its column's range, and noise is a whole number of steps.
        // Variances of a column that is narrow in its range need finer ones.
        let usual_step = (noisy || preparation == Scale::None).then_some(20);
        let mut work = PlanSpec {
            columns: self.columns.0.clone(),
            scaling: set.scale.unwrap_or(Scaling::Box),
            out_of_box: set.out_of_box.unwrap_or(if noisy { OutOfBox::Clip } else { OutOfBox::Refuse }),
            recipe: Recipe {
                clusters,
                algorithm,
                stop: set.stop,
                range: set.local_k.map(|most| LocalRange { most, starts: 10, seed: self.seed() }),
                noise: self.noise(clusters, &seeding),
                seeding,
                restarts: set.restarts.unwrap_or(if many { RESTARTS } else { 1 }),
                preparation,
                validity: Validity {
                    full: hard || indices != IndexSet::Basic,
                    vectors: indices == IndexSet::All,
                    judge_m: if hard { set.m.unwrap_or(2.0) } else { self.fuzzifier() },
                    davies_bouldin: DaviesBouldin { p: set.db_p.unwrap_or(2.0), q: set.db_q.unwrap_or(1.0) },
                },
                choice: Choice { by: set.choose.unwrap_or(Pick::FuzzyDaviesBouldin), elbow: set.elbow },
            },
            sampling: self.sampling(),
            judge: set.judge,
            step_bits: set.step_bits.or(usual_step),
            categorical: self.columns.1.clone(),
        };
        if usual_gap && (noisy || work.recipe.takes_gap(columns).is_ok()) {
            work.recipe.choice.by = Pick::Gap;
            work.recipe.validity.full |= !noisy;
        }
        Ok(work)
    }

    /// Whether every weight is that of a column of categories.
    fn check_weights(&self) -> Result<(), Failure> {
        let known = |name: &&String| self.columns.1.iter().any(|c| c.column == **name);
        let Some(CategoryWeight::Of(weights)) = &self.set.category_weight else { return Ok(()) };
        match weights.keys().find(|name| !known(name)) {
            None => Ok(()),
            Some(name) => usage(
                format!("{name}: a setting is for this column, and there is no such column of its kind"),
                "name a column of the plan",
            ),
        }
    }
}

/// Refuses noise that by the forecast would leave nothing of the centres.
///
/// # Errors
/// A [`Failure`] with what to change.
pub(crate) fn useful(federation: &Federation) -> Result<(), Failure> {
    let privacy = Privacy::of(&federation.work, &federation.form()?);
    match privacy.and_then(|privacy| privacy.warning()) {
        Some(warning) => usage(
            warning,
            "expect more rows, or choose fewer K or rounds; `veilsum plan new --set dp_useless=true` makes the plan all the same",
        ),
        None => Ok(()),
    }
}

fn usage<T>(what: impl std::fmt::Display, next: &str) -> Result<T, Failure> {
    Err(Failure::usage(what, next))
}

fn parse_method(text: &str) -> Result<&'static About, String> {
    let named = |about: &&About| about.name == text || about.aliases.contains(&text);
    ALGORITHMS.iter().find(named).ok_or_else(|| format!("the methods are {}", methods()))
}

/// The names of all methods, with their other names.
fn methods() -> String {
    let names: Vec<&str> = ALGORITHMS.iter().flat_map(|of| [&[of.name], of.aliases].concat()).collect();
    names.join(", ")
}

/// `K` or `LOW..HIGH`, both ends included.
fn parse_clusters(text: &str) -> Result<Clusters, String> {
    let number = |text: &str| text.trim().parse::<u32>().map_err(|_| format!("{text:?} is not a number of clusters"));
    let clusters = match text.split_once("..") {
        None => Clusters::exactly(number(text)?),
        Some((min, max)) => Clusters { min: number(min)?, max: number(max.trim_start_matches('='))? },
    };
    if clusters.min > clusters.max {
        return Err("the range goes down: write it as LOW..HIGH, as in 2..9".into());
    }
    Ok(clusters)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use veilsum_node::error::Code;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        what: What,
    }

    /// What a plan with these options does for noise.
    fn noise(line: &[&str]) -> Result<Option<Noise>, Code> {
        let what = Line::try_parse_from([&["plan"], line].concat()).map_err(|_| Code::Usage)?.what;
        let set = Settings::read(&what.set).map_err(|f| f.code)?;
        let columns = (vec![Column { name: "x".into(), lower: 0.0, upper: 1.0 }], Vec::new());
        let one = Some(Clusters::exactly(1));
        let max_rows = 100;
        let choices =
            Choices { what: &what, set, columns, expected_rows: 3_000, max_rows, usual_seed: 1, usual_k: one };
        let work = choices.work().map_err(|f| f.code)?;
        work.check().map_err(|_| Code::Usage)?;
        Ok(work.recipe.noise)
    }

    /// `--method fcm --k 1` is the mean of every column.
    #[test]
    fn one_cluster_has_no_clipped_rounds_where_none_are_asked_for() {
        let tau = |line: &[&str]| noise(line).expect("a plan").map(|noise| noise.tau);
        assert_eq!([tau(&[]), tau(&["--k=3"]), tau(&["--k=1..3"])], [Some(0.0), Some(0.25), Some(0.25)]);
        assert_eq!([tau(&["--set=dp_tau=0.5"]), tau(&["--k=3", "--set=dp_tau=0"])], [Some(0.5), Some(0.0)]);
    }

    #[test]
    fn noise_is_the_rule() {
        let spends = |line: &[&str]| noise(line).map(|noise| noise.map(|noise| noise.nano_rho));
        assert_eq!(
            [spends(&[]), spends(&["--rho=1"]), spends(&["--exact"])],
            [Ok(Some(250_000_000)), Ok(Some(1_000_000_000)), Ok(None)]
        );
        assert_eq!(spends(&["--exact", "--rho=1"]), Err(Code::Usage));
        assert_eq!(spends(&["--exact", "--set=dp_tau=0"]), Err(Code::Usage));
    }

    #[test]
    fn persons_are_hidden_if_the_plan_says_it() {
        let unit = |set: &[&str]| {
            let line: Vec<String> = set.iter().map(|set| format!("--set={set}")).collect();
            noise(&line.iter().map(String::as_str).collect::<Vec<_>>()).map(|noise| noise.map(|noise| noise.unit))
        };
        assert_eq!(unit(&[]), Ok(Some(Unit::Record)));
        assert_eq!(unit(&["rows_per_person=1"]), Ok(Some(Unit::Person { rows: 1 })));
        assert_eq!(unit(&["rows_per_person=5"]), Ok(Some(Unit::Person { rows: 5 })));
        for wrong in ["rows_per_person=0", "rows_per_person=1001"] {
            assert_eq!(unit(&[wrong]), Err(Code::Usage), "{wrong:?}");
        }
    }

    /// Whatever a setting is, under every method it is refused or it changes the plan.
    #[test]
    fn no_setting_is_taken_and_ignored() {
        // Each with a value that is no method's default; of `judge` and `indices` the same holds for hard and for fuzzy methods.
        let all = [
            "m=1.7",
            "epsilon=0.0123",
            "stop=sum",
            "max_rounds=7",
            "restarts=3",
            "init=totals",
            "init=uniform",
            "local_steps=3",
            "powers=false",
            "min_group=5",
            "finish=10",
            "anchors=9",
            "features=37",
            "features_min=7",
            "similarity=0.8",
            "bins=11",
            "scale=none",
            "out_of_box=clip",
            "standardise=standard",
            "indices=scalars",
            "choose=xie-beni",
            "elbow=true",
            "local_k=4",
            "db_p=1",
            "db_q=2",
            "judge=intermediary",
            "sample=0.5",
            "step_bits=33",
        ];
        let plan = |method: &str, set: Option<&str>| {
            let mut line = vec!["plan".to_owned(), "--exact".to_owned(), format!("--method={method}")];
            line.extend((method != "describe").then(|| "--k=2..5".to_owned()));
            line.extend(set.map(|set| format!("--set={set}")));
            let what = Line::try_parse_from(&line).expect("a line").what;
            let set = Settings::read(&what.set).expect("settings");
            let columns = (vec![Column { name: "x".into(), lower: 0.0, upper: 3.0 }], Vec::new());
            let max_rows = 100;
            let choices =
                Choices { what: &what, set, columns, expected_rows: 3_000, max_rows, usual_seed: 1, usual_k: None };
            choices.work().map(|work| serde_json::to_string(&work).expect("JSON"))
        };
        for about in ALGORITHMS {
            let usual = plan(about.name, None).expect("a plan");
            for set in all {
                match plan(about.name, Some(set)) {
                    Err(failure) => assert!(failure.code == Code::Usage, "{} {set}: {failure}", about.name),
                    Ok(changed) => {
                        // What is said as it would be anyway is no mistake.
                        let same = ["init=", "local_steps", "indices="].iter().any(|key| set.starts_with(key));
                        assert!(changed != usual || same, "{} takes {set} and ignores it", about.name);
                    }
                }
            }
        }
        let failure = plan("kmeans", Some("min_group=5")).expect_err("refused");
        let told = failure.to_string();
        assert!(told.contains("kmeans does not read it") && failure.advice.ends_with("reads it: fkm"), "{failure:?}");
    }

    #[test]
    fn a_setting_that_the_method_does_not_read_is_refused() {
        let code = |line: &[&str]| noise(&[&["--exact"], line].concat()).err();
        assert_eq!(code(&["--method=kmeans", "--set=local_steps=3"]), Some(Code::Usage));
        assert_eq!(code(&["--method=ffcm-avg2", "--set=local_steps=3"]), None);
    }

    #[test]
    fn methods_and_ranges() {
        assert_eq!(parse_method("fedfcm").unwrap().name, "ffcm-avg2");
        assert!(parse_method("dbscan").unwrap_err().contains("ffcf"));
        assert_eq!(parse_clusters("4"), Ok(Clusters { min: 4, max: 4 }));
        assert_eq!(parse_clusters("2..9"), Ok(Clusters { min: 2, max: 9 }));
        for bad in ["", "x", "5..3", "-1", "2..x"] {
            assert!(parse_clusters(bad).is_err(), "{bad}");
        }
    }
}
