//! What a run with the product's defaults is worth, and whether it says so where it is worth little: the objective against the best
//! of 20 pooled starts, and planted troubles beside clean data.
//!
//! The recipes are those that `veilsum demo` and `plan new` make where nothing but the method and K is said, for ten sites.

use veilsum_cluster::method::{Candidates, Choice, Clusters, Options, Pick, Seeding, Validity};
use veilsum_cluster::random::Stream;
use veilsum_cluster::warnings::{self, Warning};
use veilsum_cluster::{
    Algorithm, Centres, Domain, OutOfBox, Outcome, Prepared, Recipe, Rows, Scaling, distance, pooled, synthetic,
};

use super::harness::{each, plain};
use super::{ExperimentError, Folder, Line, Report, Sample, Settings};
use veilsum_charts::{Chart, Plot};

/// Sites that the rows are dealt to.
const SITES: usize = 10;
/// Pooled starts that a default run is compared with.
const STARTS: u64 = 20;
/// Columns for which the default of the choice of K is asked.
const COLUMNS: usize = 10;
/// Starts of an exact run of a hard method.
const RESTARTS: u32 = 5;
const METHODS: [&str; 4] = ["fcm", "kmeans", "fkm", "ffcm-avg2"];

/// Rows with a name, the number of clusters that is known or taken for them, and the box around them.
#[derive(Clone)]
pub(super) struct Set {
    pub(super) name: String,
    pub(super) rows: Rows,
    pub(super) domain: Domain,
    pub(super) k: u32,
}

impl Set {
    fn new(name: impl Into<String>, rows: Rows, k: u32) -> Result<Self, ExperimentError> {
        let domain = Domain::around(&rows, Scaling::Box)?;
        Ok(Self { name: name.into(), rows, domain, k })
    }

    /// The rows of the sites, shuffled and dealt in turn: in their own order a site might get every row of some clusters.
    pub(super) fn dealt(&self, sites: usize) -> Result<Vec<Prepared>, ExperimentError> {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        Stream::new(1, b"veilsum defaults deal v1").shuffle(&mut order);
        let part = |site: usize| {
            let values = order.iter().skip(site).step_by(sites).flat_map(|row| self.rows.row(*row).to_vec()).collect();
            Ok(Prepared::new(&Rows::new(values, self.rows.columns())?, &self.domain, OutOfBox::Refuse)?)
        };
        (0..sites).map(part).collect()
    }
}

/// The recipe of the product's defaults for rows of some ten columns.
fn usual(method: &str, clusters: Clusters, seed: u64) -> Recipe {
    let about = veilsum_cluster::algorithm::ALGORITHMS.iter().find(|about| about.name == method).expect("a method");
    let algorithm = (about.usual)(&Options {
        m: 2.0,
        epsilon: None,
        max_rounds: 30,
        local_steps: None,
        local_epsilon: 1e-4,
        powers: false,
        min_group: 2,
        finish: 0,
        anchors: 0,
        features: (5, 100),
        similarity: 1.0,
        bins: 20,
    });
    let seeding = Seeding::Candidates(Candidates::usual(seed));
    let hard = algorithm.traits().fuzzifier.is_none();
    let range = clusters.min < clusters.max;
    let recipe = Recipe {
        clusters,
        restarts: if hard && !range { RESTARTS } else { 1 },
        ..Recipe::plain(algorithm, clusters.min, seeding)
    };
    let gap = range && recipe.takes_gap(COLUMNS).is_ok();
    Recipe {
        validity: if hard || gap { Validity::everything() } else { Validity::basic() },
        choice: Choice { by: if gap { Pick::Gap } else { Pick::FuzzyDaviesBouldin }, elbow: false },
        ..recipe
    }
}

/// The best objective of 20 pooled runs: ten uniform starts and ten from totals.
pub(super) fn best(set: &Set, hard: bool) -> Result<f64, ExperimentError> {
    let whole = [Prepared::new(&set.rows, &set.domain, OutOfBox::Refuse)?];
    let starts: Vec<u64> = (0..STARTS).collect();
    let found = each(&starts, |seed| {
        let seeding = match seed % 2 {
            0 => Seeding::Uniform { seed: *seed },
            _ => Seeding::Candidates(Candidates::usual(*seed)),
        };
        let (algorithm, validity) = if hard {
            (Algorithm::Kmeans { epsilon: 0.0, max_rounds: 300 }, Validity::everything())
        } else {
            (Algorithm::Fcm { m: 2.0, epsilon: 1e-5, max_rounds: 300 }, Validity::basic())
        };
        let recipe = Recipe { validity, ..Recipe::plain(algorithm, set.k, seeding) };
        // A start whose clusters run empty is no best one.
        Ok(plain(&recipe, &set.domain, &whole, None).map_or(f64::INFINITY, |outcome| outcome.objective))
    })?;
    Ok(found.into_iter().fold(f64::INFINITY, f64::min))
}

/// The outcome of a recipe on sites, and what it warns of.
fn judged(recipe: &Recipe, set: &Set, sites: &[Prepared]) -> Result<(Outcome, Vec<Warning>), ExperimentError> {
    let mut run = recipe.run(&set.domain, sites.len() as u32)?;
    let outcome = pooled::beside(&mut run, sites, None, None)?;
    let names: Vec<String> = (0..set.rows.columns()).map(|column| format!("f{column}")).collect();
    let found = warnings::of(recipe, &set.domain, &names, &outcome);
    Ok((outcome, found))
}

fn names(found: &[Warning]) -> String {
    found.iter().map(|warning| warning.name).collect::<Vec<_>>().join(" ")
}

pub(super) fn run(settings: &Settings) -> Result<Report, ExperimentError> {
    let mut report = Report::new("defaults", "runs with defaults: worth what ten restarts are, or they warn");
    let seeds: Vec<u64> = (1..=if settings.quick { 1 } else { 5 }).collect();
    let sets = sets(settings)?;
    starts(&mut report, &sets, &seeds)?;
    planted(&mut report)?;
    clean(&mut report, if settings.quick { 12 } else { 50 })?;
    Ok(report)
}

/// The nine sets where their files are there; the generated ones in any case.
pub(super) fn sets(settings: &Settings) -> Result<Vec<Set>, ExperimentError> {
    let five = synthetic::five_gaussians(synthetic::DEFAULT_SEED).pooled();
    let mut sets = vec![Set::new("five Gaussians", five, 5)?];
    let files = [
        ("iris", 3),
        ("xclara", 3),
        ("s-set1", 15),
        ("waveform-v1", 3),
        ("pendigits", 10),
        ("bank-by-job", 4),
        ("g2/g2-2-50", 2),
        ("g2/g2-8-40", 2),
    ];
    if let Ok(folder) = Folder::new(settings, "defaults") {
        for (name, k) in files.into_iter().take(if settings.quick { 2 } else { files.len() }) {
            sets.push(Set::new(name, folder.labelled(&format!("{name}.csv"))?.rows, k)?);
        }
    }
    Ok(sets)
}

/// The objective of default runs against the best of 20 pooled starts.
fn starts(report: &mut Report, sets: &[Set], seeds: &[u64]) -> Result<(), ExperimentError> {
    let best = sets.iter().map(|set| Ok([best(set, false)?, best(set, true)?]));
    let best = best.collect::<Result<Vec<_>, ExperimentError>>()?;
    let (mut good, mut silent, mut all) = (0, 0, 0);
    let mut series = Vec::new();
    for method in METHODS {
        let mut means = Vec::new();
        for (set, best) in sets.iter().zip(&best) {
            let sites = set.dealt(SITES)?;
            let runs = each(seeds, |seed| {
                let recipe = usual(method, Clusters::exactly(set.k), 100 * seed);
                let best = best[usize::from(recipe.algorithm.traits().fuzzifier.is_none())];
                let (outcome, found) = judged(&recipe, set, &sites)?;
                Ok((outcome.objective / best, found))
            })?;
            let near = runs.iter().filter(|(ratio, _)| *ratio <= 1.01).count();
            let quiet = runs.iter().filter(|(ratio, found)| *ratio > 1.01 && found.is_empty()).count();
            (good, silent, all) = (good + near, silent + quiet, all + runs.len());
            let said = runs.iter().map(|run| names(&run.1)).find(|said| !said.is_empty()).unwrap_or_default();
            let line = Line::new(format!("{method}, {}", set.name), format!("objective / best of 20; {said}"), 3);
            let ratios: Sample = runs.iter().map(|run| run.0).collect();
            means.push(ratios.mean());
            report.lines.push(line.plain(ratios));
        }
        series.push((method.to_owned(), means));
    }
    let plot = Plot::bars(sets.iter().map(|set| set.name.clone()).collect(), series);
    report.charts.push(Chart::new("Objective of default runs over the best of 20", "set", "mean of the seeds", plot));
    let share = |of: usize| of as f64 / all as f64;
    let line = |what: &str| Line::new("every method and set", what, 3);
    report.lines.push(line("runs within 1 % of the best of 20 pooled starts").plain(share(good)));
    let line = line("share of runs that are further off and do not warn").plain(share(silent));
    report.lines.push(line.at_most(share(silent), 0.2, "good, or it says so; of iris a cell has few rows"));
    Ok(())
}

/// Normal clusters: `rows` each around these means, all columns with this deviation.
fn normal(means: &[Vec<f64>], deviation: f64, rows: usize, seed: u64) -> Result<Rows, ExperimentError> {
    let mut stream = Stream::new(seed, b"veilsum defaults rows v1");
    let mut values = Vec::new();
    for _ in 0..rows {
        for x in means.iter().flatten() {
            values.push(x + deviation * stream.normal_pair()[0]);
        }
    }
    Ok(Rows::new(values, means.first().map_or(1, Vec::len))?)
}

/// One trouble after the other, each in data or a recipe that has it: its warning is there.
fn planted(report: &mut Report) -> Result<(), ExperimentError> {
    let corners = vec![vec![0.2, 0.2], vec![0.2, 0.8], vec![0.8, 0.8], vec![0.8, 0.2]];
    let four = Set::new("four clusters", normal(&corners, 0.04, 500, 1)?, 4)?;
    let usual_four = |method: &str| usual(method, Clusters::exactly(4), 1);
    let by_index = |method: &str, max: u32| Recipe {
        choice: Choice { by: Pick::FuzzyDaviesBouldin, elbow: false },
        ..usual(method, Clusters { min: 2, max }, 1)
    };
    let given = |centres: &[Vec<f64>], set: &Set| -> Result<Seeding, ExperimentError> {
        Ok(Seeding::Given { centres: set.domain.centres_to_box(&Centres::from_rows(centres)?)? })
    };
    let mut cases: Vec<(&str, Set, Recipe, usize)> = Vec::new();
    cases.push(("one-start", four.clone(), Recipe { seeding: Seeding::Uniform { seed: 1 }, ..usual_four("fcm") }, 3));
    // Three centres for four corners: every start leaves out another.
    let restarts =
        Recipe { restarts: 8, seeding: Seeding::Uniform { seed: 1 }, ..usual("fcm", Clusters::exactly(3), 1) };
    cases.push(("restarts-disagree", four.clone(), restarts, 3));
    let thin = Set::new("two places", normal(&[corners[0].clone(), corners[2].clone()], 1e-9, 24, 8)?, 2)?;
    cases.push(("few-candidates", thin, usual_four("fcm"), SITES));
    let rounds = Recipe { algorithm: Algorithm::Fcm { m: 2.0, epsilon: 1e-9, max_rounds: 2 }, ..usual_four("fcm") };
    cases.push(("not-converged", four.clone(), rounds, SITES));
    cases.push(("k-at-border", four.clone(), by_index("fcm", 4), SITES));
    // Clusters of unequal width, beside which other indices see other numbers.
    let five = Set::new("five Gaussians", synthetic::five_gaussians(synthetic::DEFAULT_SEED).pooled(), 5)?;
    cases.push(("indices-disagree", five, usual("kmeans", Clusters { min: 1, max: 9 }, 100), SITES));
    // Two clusters in 64 columns that overlap so much that fuzzy c-means at m = 2 collapses (G2 with sigma 100).
    let far = Set::new("64 columns", normal(&[vec![500.0; 64], vec![600.0; 64]], 100.0, 1000, 3)?, 2)?;
    let more_rounds = Recipe {
        algorithm: Algorithm::Fcm { m: 2.0, epsilon: 1e-6, max_rounds: 300 },
        ..usual("fcm", Clusters::exactly(2), 1)
    };
    cases.push(("fuzzifier-too-large", far, more_rounds, SITES));
    cases.extend(columns(&four, &usual_four)?);
    // Every site has rows of half of the clusters only: its own four centres are others than the next site's.
    let lacking = Set::new("sites that lack clusters", four.rows.clone(), 4)?;
    cases.push(("local-centres-differ", lacking, usual_four("ffcm-avg2"), 0));
    let wide = Domain::new(vec![-1.0, -1000.0], vec![2.0, 1000.0], Scaling::Box)?;
    cases.push(("flat-column", Set { domain: wide, ..four.clone() }, usual_four("fcm"), SITES));
    let coarse = Recipe { algorithm: Algorithm::Fcm { m: 2.0, epsilon: 0.2, max_rounds: 30 }, ..usual_four("fcm") };
    cases.push(("coarse-epsilon", four.clone(), coarse, SITES));
    let tiny = Set::new("six rows", normal(&[vec![0.2; 5], vec![0.8; 5]], 0.05, 3, 6)?, 2)?;
    let centres = given(&[tiny.rows.row(0).to_vec(), tiny.rows.row(1).to_vec()], &tiny)?;
    let tiny_recipe = Recipe { seeding: centres, ..usual("fcm", Clusters::exactly(2), 1) };
    cases.push(("few-rows", tiny, tiny_recipe, 3));

    for (name, set, recipe, sites) in cases {
        let sites = match sites {
            0 => halves(&set)?,
            sites => set.dealt(sites)?,
        };
        let (_, found) = judged(&recipe, &set, &sites)?;
        let times = |of: &str| found.iter().filter(|warning| warning.name == of).count();
        // A finding is said once, and nothing that follows from its cause beside it.
        let warned = times(name) == 1 && (name != "outliers" || times("flat-column") + times("one-column") == 0);
        let line = Line::new(format!("planted: {}", set.name), format!("{name}; said: {}", names(&found)), 0);
        report.lines.push(line.holds(warned, "what is planted is said"));
    }
    Ok(())
}

/// Columns that decide the result by themselves, beside the two of the four clusters or in place of one.
fn columns(
    four: &Set,
    usual: &dyn Fn(&str) -> Recipe,
) -> Result<Vec<(&'static str, Set, Recipe, usize)>, ExperimentError> {
    let with = |third: &dyn Fn(usize, &[f64]) -> f64| {
        let row = |(i, row): (usize, &[f64])| [row[0], row[1], third(i, row)];
        Rows::new(four.rows.iter().enumerate().flat_map(row).collect(), 3)
    };
    let mut stream = Stream::new(9, b"veilsum defaults columns");
    let even: Vec<f64> = (0..four.rows.len()).map(|_| stream.unit()).collect();
    let far = with(&|i, _| if i == 77 { 1e9 } else { even[i] })?;
    let code = with(&|i, _| if i % 20 == 7 { -999.0 } else { 120.0 * even[i] })?;
    let numbers = with(&|i, _| i as f64)?;
    let wide = with(&|i, _| 1000.0 * even[i])?;
    let units = Domain::around(&wide, Scaling::None)?;
    Ok(vec![
        ("outliers", Set::new("one row at 1e9", far, 4)?, usual("kmeans"), SITES),
        ("code", Set::new("-999 in 5 % of the rows", code, 4)?, usual("kmeans"), SITES),
        ("row-numbers", Set::new("row numbers", numbers, 4)?, usual("kmeans"), SITES),
        ("one-column", Set { domain: units, ..Set::new("a column in thousands", wide, 4)? }, usual("kmeans"), SITES),
    ])
}

/// The four clusters at ten sites, of which each has two.
fn halves(set: &Set) -> Result<Vec<Prepared>, ExperimentError> {
    let part = |site: usize| {
        let has = |cluster: usize| (cluster + site).is_multiple_of(4) || (cluster + site) % 4 == 1;
        let rows = set.rows.iter().enumerate().filter(|(i, _)| has(i % 4) && (i / 4) % SITES == site);
        let values: Vec<f64> = rows.flat_map(|(_, row)| row.to_vec()).collect();
        Ok(Prepared::new(&Rows::new(values, set.rows.columns())?, &set.domain, OutOfBox::Refuse)?)
    };
    (0..SITES).map(part).collect()
}

/// Clusters that lie well apart, of equal size, at ten sites alike, and found: nothing is said of them. A run that missed them is none
/// of these; it has to warn.
fn clean(report: &mut Report, runs: u64) -> Result<(), ExperimentError> {
    let seeds: Vec<u64> = (0..runs).collect();
    let said = each(&seeds, |seed| {
        let mut stream = Stream::new(*seed, b"veilsum defaults clean 1");
        let (k, d) = (2 + (seed % 4) as usize, 2 + (seed / 4 % 3) as usize);
        let means = apart(k, d, &mut stream);
        let set = Set::new(format!("clean {seed}"), normal(&means, 0.04, 400, *seed)?, k as u32)?;
        let method = METHODS[(seed / 2 % 4) as usize];
        let clusters = match seed % 3 {
            0 => Clusters { min: 1, max: k as u32 + 3 },
            _ => Clusters::exactly(k as u32),
        };
        let recipe = usual(method, clusters, *seed);
        let (outcome, found) = judged(&recipe, &set, &set.dealt(SITES)?)?;
        let start = Seeding::Given { centres: set.domain.centres_to_box(&Centres::from_rows(&means)?)? };
        let exact = if recipe.algorithm.traits().fuzzifier.is_none() { "kmeans" } else { "fcm" };
        let whole = [Prepared::new(&set.rows, &set.domain, OutOfBox::Refuse)?];
        let from_truth = Recipe { seeding: start, restarts: 1, ..usual(exact, Clusters::exactly(set.k), *seed) };
        let truth = plain(&from_truth, &set.domain, &whole, None)?;
        let missed = outcome.centres.k() != k || outcome.objective > 1.01 * truth.objective;
        Ok((format!("{method}, K = {k} in {d} columns, chose {}", outcome.centres.k()), missed, found))
    })?;
    for (name, _, found) in said.iter().filter(|(_, _, found)| !found.is_empty()) {
        let numbers: Vec<String> =
            found.iter().map(|warning| format!("{} {:?}", warning.name, warning.numbers)).collect();
        report.lines.push(Line::new(format!("clean: {name}"), numbers.join("; "), 0));
    }
    let (missed, clean): (Vec<_>, Vec<_>) = said.iter().partition(|(_, missed, _)| *missed);
    let silent = missed.iter().filter(|(_, _, found)| found.is_empty()).count() as f64;
    let line = Line::new(format!("{} runs on clean data that missed", missed.len()), "runs that do not warn", 0);
    report.lines.push(line.plain(silent).at_most(silent, 0.0, "they are wrong"));
    let wrong = clean.iter().filter(|(_, _, found)| !found.is_empty()).count() as f64;
    let line = Line::new(format!("{} clean runs", clean.len()), "runs that warn", 0).plain(wrong);
    report.lines.push(line.at_most(
        wrong,
        1.0,
        "nothing is wrong with them, and one of a hundred makes a column look decisive",
    ));
    Ok(())
}

/// So many means in the unit box, each at least ten deviations from every other.
fn apart(k: usize, d: usize, stream: &mut Stream) -> Vec<Vec<f64>> {
    loop {
        let means: Vec<Vec<f64>> = (0..k).map(|_| (0..d).map(|_| stream.unit()).collect()).collect();
        let far = |i: usize| means[..i].iter().all(|other| distance::euclidean(other, &means[i]) >= 0.4);
        if (1..k).all(far) {
            return means;
        }
    }
}
