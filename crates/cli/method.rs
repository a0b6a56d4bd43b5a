//! The options that say what a run consists of, the same for `plan new` and `demo`, and the plan that they come to.

use std::path::Path;

use clap::Args;
use veilsum_cluster::{
    Algorithm, Centres, Clusters, Recipe,
    algorithm::{ALGORITHMS, About, Traits, usual_fuzzifier},
    method::{Candidates, LocalRange, Pick, Scale, Seeding, Validity},
    privacy::{DEFAULT_RHO, Noise, Unit},
    sampling::Sampling,
};
use veilsum_node::{
    columns::{dimensions, names},
    documents::Federation,
    dp::Privacy,
    error::Failure,
    plan::{Categorical, Column, Judge, PlanSpec},
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
    /// The operator of every site has to agree to this very plan (`veilsum agree plan.toml`).
    #[arg(long, conflicts_with = "rho")]
    pub exact: bool,
    /// Noise of a run, as rho (zCDP) while two sites keep theirs secret; every site's account is charged twice as much [default: 0.25]
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
    /// A category with a comma stands in double quotes; a NAME that begins with a hyphen is joined by an equals sign (--column=-1=0:9).
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
    /// The seed, if the options name none.
    pub usual_seed: u64,
    /// The number of clusters, if the options name none.
    pub usual_k: Option<Clusters>,
}

impl Choices<'_> {
    /// Which K are tried. A description has no clusters, and everything else needs a number of them.
    ///
    /// # Errors
    /// A [`Failure`] that says which.
    pub(crate) fn clusters(&self, seeding: &Seeding) -> Result<Clusters, Failure> {
        let given = match seeding {
            Seeding::Given { centres } => Some(Clusters::exactly(centres.k() as u32)),
            _ => None,
        };
        match (self.traits().describes, self.what.k) {
            (Some(_), None) => Ok(Clusters::exactly(1)),
            (Some(_), Some(_)) => usage("a description has no clusters", "leave --k out, or choose another --method"),
            (None, k) => {
                let next =
                    "say --k K, or --k LOW..HIGH for a range from which the run chooses; --method describe needs none";
                k.or(given).or(self.usual_k).ok_or_else(|| Failure::usage("how many clusters?", next))
            }
        }
    }

    /// Where first centres come from: from random ones some groups have no rows.
    ///
    /// # Errors
    /// A [`Failure`] that names the file of first centres.
    pub(crate) fn seeding(&self) -> Result<Seeding, Failure> {
        let (seed, describes) = (self.seed(), self.traits().describes.is_some());
        let said: Option<String> = self.set.get("init")?;
        Ok(match said.as_deref().unwrap_or(if describes { "uniform" } else { "totals" }) {
            "uniform" => Seeding::Uniform { seed },
            "totals" => Seeding::Candidates(Candidates::usual(seed)),
            file => {
                let rows = table::read_matrix(Path::new(file), names(&self.columns.0, &self.columns.1).len())?;
                Seeding::Given { centres: Centres::from_rows(&rows)? }
            }
        })
    }

    /// How sites are sampled, if they are.
    ///
    /// # Errors
    /// A [`Failure`] that names the setting.
    pub(crate) fn sampling(&self) -> Result<Option<Sampling>, Failure> {
        let share = self.set.get("sample")?.filter(|share| *share != 1.0);
        Ok(share.map(|share| Sampling { share, seed: self.seed() }))
    }

    fn seed(&self) -> u64 {
        self.what.seed.unwrap_or(self.usual_seed)
    }

    fn traits(&self) -> Traits {
        (self.what.method.usual)().traits()
    }

    /// Whether rows are in one group each. Under noise there are no starts and indices beside the usual ones.
    fn hard(&self) -> bool {
        self.what.exact && self.traits().fuzzifier.is_none() && self.traits().describes.is_none()
    }

    fn noise(&self, clusters: Clusters, seeding: &Seeding) -> Result<Option<Noise>, Failure> {
        if self.what.exact {
            return Ok(None);
        }
        let unit = self.set.get("rows_per_person")?.map_or(Unit::Record, |rows| Unit::Person { rows });
        let usual = Noise::usual(self.what.rho.unwrap_or(DEFAULT_RHO), self.expected_rows);
        let usual = if matches!(seeding, Seeding::Uniform { .. }) { usual.from_anywhere() } else { usual };
        Ok(Some(Noise {
            unit,
            // One centre loses no cluster to the noise, and is to be the mean.
            tau: if clusters.max == 1 { 0.0 } else { usual.tau },
            validation_share: if clusters.min < clusters.max { 0.2 } else { usual.validation_share },
            ..usual
        }))
    }

    /// The method part as it usually is. What else was set or follows is in the settings then, which are put into the plan's document.
    ///
    /// # Errors
    /// A [`Failure`] that names the option or setting.
    pub(crate) fn usual(&mut self) -> Result<PlanSpec, Failure> {
        let (seeding, seed, hard) = (self.seeding()?, self.seed(), self.hard());
        let clusters = self.clusters(&seeding)?;
        let (noise, sampling) = (self.noise(clusters, &seeding)?, self.sampling()?);
        let (numbers, categorical) = (self.columns.0.clone(), self.weighed()?);
        let (method, set) = (self.what.method, &mut self.set);
        set.refuse_unread(method, clusters, noise.is_some())?;

        let mut algorithm = (method.usual)();
        if let Algorithm::FfcmAvg1 { local, .. } | Algorithm::FfcmAvg2 { local, .. } = &mut algorithm {
            local.most = set.get("local_steps")?.filter(|steps| *steps > 0).unwrap_or(local.most);
        }
        if let Some(noise) = noise {
            // From anywhere three rounds pass before centres are near.
            let near = if matches!(seeding, Seeding::Uniform { .. }) { 0 } else { clusters.max };
            set.or("max_rounds", noise.usual_rounds(near));
            set.or("epsilon", 0.0);
            set.or("out_of_box", "clip");
        }
        let usual_m = usual_fuzzifier(dimensions(&numbers, &categorical), noise.map_or(0, |noise| noise.expected_rows));
        let m = set.get("m")?.unwrap_or(if hard { 2.0 } else { usual_m });
        set.or("m", m);
        // Hard methods stay at poor first centres most. In a sweep the references of the gap would be clustered as often.
        let one = clusters.min == clusters.max && clusters.max > 1 && !matches!(seeding, Seeding::Given { .. });
        if hard && one && clusters.max as usize * names(&numbers, &categorical).len() <= MOST_NUMBERS {
            set.or("restarts", RESTARTS);
        }
        let indices = set.get("indices")?.unwrap_or(match (hard, set.get("judge")?.unwrap_or_default()) {
            (false, _) => IndexSet::Basic,
            (true, Judge::Coordinator) => IndexSet::All,
            (true, Judge::Intermediary) => IndexSet::Scalars,
        });
        // Half of what 64 bits hold says nothing that a result needs, and counts against every site's release rule. A step of 2^-20 of
        // one row's largest value moves no centre by more than a millionth of its column's range, and noise is a whole number of steps.
        // Variances of a column that is narrow in its range need finer ones.
        let narrow = noise.is_none() && set.get("standardise")? == Some(Scale::Standard);
        let plain = PlanSpec::plain(numbers, algorithm, clusters.max, seeding);
        Ok(PlanSpec {
            recipe: Recipe {
                clusters,
                range: set.get("local_k")?.map(|most| LocalRange { most, starts: 10, seed }),
                noise,
                validity: Validity {
                    full: hard || indices != IndexSet::Basic,
                    vectors: indices == IndexSet::All,
                    judge_m: m,
                    ..Validity::basic()
                },
                ..plain.recipe
            },
            sampling,
            step_bits: set.get("step_bits")?.or((!narrow && noise.is_none()).then_some(20)),
            categorical,
            ..plain
        })
    }

    /// Where nobody said how K is chosen from a range, the gap does it. An elbow, or a K that sites vote on, goes with an index, and without noise
    /// so do basic totals and a range over which the references cannot be clustered.
    ///
    /// # Errors
    /// A [`Failure`] that names the setting.
    pub(crate) fn choose(&self, work: &mut PlanSpec) -> Result<(), Failure> {
        let (columns, recipe) = (names(&work.columns, &work.categorical).len(), &mut work.recipe);
        let by_index = self.set.has("choose") || recipe.choice.elbow || recipe.range.is_some();
        let noisy = recipe.noise.is_some();
        let basic = self.set.get("indices")? == Some(IndexSet::Basic);
        let takes_gap = noisy || !basic && recipe.takes_gap(columns).is_ok();
        if recipe.clusters.min < recipe.clusters.max && !by_index && takes_gap {
            recipe.choice.by = Pick::Gap;
            recipe.validity.full |= !noisy;
        }
        Ok(())
    }

    /// The columns of categories, with the weights that single ones have: one for all is put into the document.
    fn weighed(&mut self) -> Result<Vec<Categorical>, Failure> {
        let mut columns = self.columns.1.clone();
        if let Some(CategoryWeight::Of(weights)) = self.set.get("category_weight")? {
            for (name, weight) in weights {
                let Some(column) = columns.iter_mut().find(|of| of.column == name) else {
                    let what = format!("{name}: a setting is for this column, and there is no such column of its kind");
                    return usage(what, "name a column of the plan");
                };
                column.weight = weight;
            }
            self.set.values.remove("category_weight");
        }
        Ok(columns)
    }
}

/// Refuses noise that by the forecast would leave nothing of the centres.
///
/// # Errors
/// A [`Failure`] with what to change.
pub(crate) fn useful(federation: &Federation) -> Result<(), Failure> {
    let next = "expect more rows, or choose fewer K or rounds; `veilsum plan new --set dp_useless=true` makes the plan all the same";
    Privacy::of(federation).and_then(|privacy| privacy.warning()).map_or(Ok(()), |warning| usage(warning, next))
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
    use std::collections::BTreeSet;

    use clap::Parser;
    use veilsum_node::{documents::PLAN_KEYS, error::Code};
    use veilsum_proto::{plan::Terms, suite::Hash};

    use super::*;
    use crate::terms::{self, roster_of_nobody};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        what: What,
    }

    /// The plan of these options for nine sites, before it is checked.
    fn plan(line: &[&str]) -> Result<(PlanSpec, Terms), Failure> {
        let what = Line::try_parse_from([&["plan"], line].concat()).map_err(|e| Failure::usage(e, ""))?.what;
        let set = Settings::read(&what.set)?;
        let columns = (
            vec![Column { name: "x".into(), lower: 0.0, upper: 3.0 }],
            vec![Categorical { column: "c".into(), categories: vec!["a".into(), "b".into()], weight: 0.5 }],
        );
        let usual_k = Some(Clusters::exactly(1)).filter(|_| what.method.name != "describe");
        let mut choices = Choices { what: &what, set, columns, expected_rows: 3_000, usual_seed: 1, usual_k };
        let names: Vec<String> = (0..9).map(|site| format!("site-{site}")).collect();
        terms::plan(&mut choices, &roster_of_nobody(&names)?)
    }

    /// What a plan with these options does for noise.
    fn noise(line: &[&str]) -> Result<Option<Noise>, Code> {
        let (work, _) = plan(line).map_err(|f| f.code)?;
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

    /// Whatever a setting is, under every method, with noise and without, it is refused or it changes the plan.
    #[test]
    fn no_setting_is_taken_and_ignored() {
        // Each with a value that is no method's default; of `judge` and `indices` the same holds for hard and for fuzzy methods.
        let all = "m=1.7 epsilon=0.0123 stop=sum max_rounds=7 restarts=3 init=totals init=uniform local_steps=3 powers=false min_group=5 \
                   finish=10 anchors=9 features=37 features_min=7 similarity=0.8 bins=11 scale=none out_of_box=clip out_of_box=refuse \
                   standardise=standard category_weight=0.25 category_weight.c=0.25 indices=scalars local_k=4 choose=xie-beni elbow=true \
                   db_p=1 db_q=2 judge=intermediary sample=0.5 rows_per_person=2 dp_absolute_rounds=1 dp_tau=0.125 dp_retries=1 \
                   min_sites=8 threshold=8 colluders=1 sites=any slots=33 max_rows=77 min_total_rows=99 step_bits=33";
        let key_of = |set: &str| set.split(['=', '.']).next().unwrap().to_owned();
        let named: BTreeSet<String> = all.split(' ').map(key_of).collect();
        let known: BTreeSet<String> = PLAN_KEYS.iter().map(|(key, ..)| (*key).to_owned()).collect();
        // What is allowed to be useless is no part of a plan.
        let others: Vec<&String> = known.difference(&named).filter(|key| !key.is_empty()).collect();
        assert_eq!(others, ["dp_useless"]);
        for (about, noise) in ALGORITHMS.iter().flat_map(|about| [(about, "--exact"), (about, "--rho=0.25")]) {
            let made = |set: Option<&str>| {
                let (method, set) = (format!("--method={}", about.name), set.map(|set| format!("--set={set}")));
                let k = Some("--k=2..5").filter(|_| about.name != "describe");
                let line: Vec<&str> = [noise, &method].into_iter().chain(k).chain(set.as_deref()).collect();
                plan(&line)
                    .map(|(work, terms)| serde_json::to_string(&(work, Terms { roster: Hash::default(), ..terms })))
            };
            let usual = made(None).expect("a plan").expect("JSON");
            for set in all.split(' ') {
                match made(Some(set)) {
                    Err(failure) => assert!(failure.code == Code::Usage, "{} {set}: {failure}", about.name),
                    Ok(changed) => {
                        // What is said as it would be anyway is no mistake.
                        let same = ["init=", "local_steps", "indices=", "out_of_box="];
                        let same = same.iter().any(|key| set.starts_with(key));
                        assert!(changed.expect("JSON") != usual || same, "{} takes {set} and ignores it", about.name);
                    }
                }
            }
        }
        let failure = plan(&["--exact", "--method=kmeans", "--k=3", "--set=min_group=5"]).expect_err("refused");
        let told = failure.to_string();
        assert!(told.contains("kmeans does not read it") && failure.advice.ends_with("reads it: fkm"), "{failure:?}");
    }

    #[test]
    fn what_is_no_value_of_a_setting_is_named_as_it_was_typed() {
        for (words, says) in [
            (&["m=1.5", "restarts=many"][..], "--set restarts=many: invalid type: string \"many\", expected u32"),
            (&["restarts=-1"], "--set restarts=-1: invalid value: integer `-1`, expected u32"),
            (&["m=two"], "--set m=two: invalid type: string \"two\", expected f64"),
            (&["min_sites=70000"], "--set min_sites=70000: invalid value: integer `70000`, expected u16"),
            (&["scale=log"], "--set scale=log: unknown variant `log`, expected `box` or `none`"),
            (&["standardise=whole"], "`standard`"),
            (
                &["indices=most"],
                "--set indices=most: unknown variant `most`, expected one of `basic`, `scalars`, `all`",
            ),
            (&["category_weight=heavy"], "a number, or one for each column"),
            (&["category_weight.d=1"], "no such column of its kind"),
            (&["sites=some"], "--set sites=some: "),
        ] {
            let line: Vec<String> = words.iter().map(|word| format!("--set={word}")).collect();
            let failure = plan(&line.iter().map(String::as_str).collect::<Vec<_>>()).expect_err("refused");
            assert!(failure.code == Code::Usage && failure.message.contains(says), "{words:?}: {failure}");
        }
        let failure = plan(&["--k=2..4", "--set=choose=silhouette"]).expect_err("refused");
        assert!(failure.message.contains("`calinski-harabasz`"), "{failure}");
        assert!(failure.advice.starts_with("choose: The index that chooses K"), "{failure}");
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
