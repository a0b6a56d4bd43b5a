//! The G2 sets: case 4 of the FFCM paper, and Tables 3 to 7 of the framework paper: index and gap at K = 2, and how often K = 2 is
//! chosen, for pooled rows and for both averages over two, five and ten sites.
//!
//! With m = 2 in many columns and a large deviation all centres fall together on the mean. The papers' largest values are those of
//! such runs: for gaps they can be reproduced, for indices they are one over the distance at which the stop rule fired. Under avg2 one
//! centre is nobody's nearest then. Ours keeps its place, far from the other, and the index is small; the paper's server takes both
//! from the sites' centres by k-means++ in its first round, which ours never sees.

use veilsum_cluster::method::{Clusters, Seeding};
use veilsum_cluster::{Algorithm, Centres, Rows, distance};

use super::data::Folder;
use super::harness::{NO_RULE, each, from_totals, masked_if_enough, methods, prepared, sweep};
use super::{ExperimentError, Line, Report, Sample, Settings};
use crate::gap::{gap_to_nearest, gap_to_nearest_standardised};
use crate::synthetic::g2;

const EPSILON: f64 = 1e-3;
const DIMENSIONS: [usize; 10] = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
/// Sets with more columns are not swept over K.
const SWEPT: usize = 16;
/// Numbers of sites of the papers' columns.
const SITES: [usize; 3] = [2, 5, 10];
/// Data sets with a larger index do not count in Table 3.
const COUNTED: f64 = 1.3;
/// Places of the columns among the runs of a set: central, avg1 over 2, 5 and 10 sites, avg2 over as many.
const CENTRAL: usize = 0;
const AVG1: usize = 1;
const AVG2: usize = 4;

#[derive(Clone, Copy)]
struct Set {
    columns: usize,
    sigma: u32,
}

#[derive(Clone, Copy)]
struct AtTwo {
    index: f64,
    /// Standardised, and Euclidean over the root of the number of columns.
    gaps: [f64; 2],
    /// Whether a centre is where it began: no site's centre was nearest to it.
    stays: bool,
}

struct Found {
    at_two: Vec<AtTwo>,
    /// K chosen and the smallest index, of sets that are swept.
    swept: Vec<(usize, f64)>,
    generated: bool,
}

pub(super) fn run(settings: &Settings) -> Result<Report, ExperimentError> {
    let mut report = Report::new("g2", "the G2 sets: index, gap and choice of K");
    report.note(NO_RULE);
    report.note("plain: fuzzy c-means on the pooled rows; masked: the averages; two sites are summed plainly, because masking needs three");
    let sets: Vec<Set> = DIMENSIONS
        .into_iter()
        .filter(|columns| !settings.quick || *columns == 2 || *columns == 8)
        .flat_map(|columns| (1..=10).map(move |sigma| Set { columns, sigma: sigma * 10 }))
        .filter(|set| !settings.quick || [20, 50].contains(&set.sigma))
        .collect();
    let found = each(&sets, |set| one(*set, settings))?;
    let generated = found.iter().filter(|found| found.generated).count();
    if generated > 0 {
        let all = sets.len();
        report.note(format!("{generated} of {all} sets are not in the data folder and were generated and floored"));
    }
    report.note(format!("sets of more than {SWEPT} columns are run at K = 2 only"));
    two(&sets, &found, &mut report);
    if !settings.quick {
        choice(&sets, &found, &mut report);
        quantiles(&found, &mut report);
        figures(&sets, &found, &mut report);
    }
    Ok(report)
}

fn one(set: Set, settings: &Settings) -> Result<Found, ExperimentError> {
    let name = format!("g2/g2-{}-{}.csv", set.columns, set.sigma);
    let seed = set.columns as u64 * 1000 + u64::from(set.sigma);
    let (rows, labels, generated) = match Folder::new(settings, &name).and_then(|folder| folder.labelled(&name)) {
        Ok(data) => (data.rows, data.labels, false),
        Err(ExperimentError::Missing(_)) => {
            let example = g2::whole(set.columns, f64::from(set.sigma), seed)?;
            (example.pooled(), example.labels(), true)
        }
        Err(error) => return Err(error),
    };
    let domain = g2::domain(set.columns);
    let truth = g2::truth(set.columns)?;
    let [fcm, avg1, avg2] = methods(2.0, EPSILON, 60);
    // With m = 2 in so many columns local fuzzy c-means collapses from centres that are far from all rows; candidates that hold rows are not.
    let apart = |i: &usize| distance::squared(rows.row(*i), rows.row(0));
    let far = (1..rows.len()).max_by(|a, b| apart(a).total_cmp(&apart(b))).unwrap_or(0);
    let first = Centres::from_rows(&[0, far].map(|i| rows.row(i).to_vec()))?;
    let start = domain.centres_to_box(&first)?;
    let recipe = |algorithm: &Algorithm, max: u32| {
        let seeding = if max == 2 { Seeding::Given { centres: start.clone() } } else { from_totals(1) };
        sweep(algorithm, Clusters { min: 2, max }, seeding)
    };
    let mut columns = vec![(prepared([&rows], &domain)?, &fcm)];
    for average in [&avg1, &avg2] {
        for count in SITES {
            let parts = g2::dealt(&rows, &labels, count, seed);
            columns.push((prepared(parts.iter().map(|site| &site.rows).collect::<Vec<&Rows>>(), &domain)?, average));
        }
    }
    let (mut at_two, mut swept) = (Vec::new(), Vec::new());
    for (sites, algorithm) in &columns {
        let run = |max: u32| masked_if_enough(&recipe(algorithm, max), &domain, sites);
        let outcome = run(2)?;
        let standardised = gap_to_nearest_standardised(&outcome.centres, &truth)?;
        let euclidean = gap_to_nearest(&outcome.centres, &truth)? / (set.columns as f64).sqrt();
        let stays = outcome.centres.rows().zip(first.rows()).any(|(now, first)| distance::euclidean(now, first) < 1e-6);
        let index = outcome.indices.fuzzy_davies_bouldin.unwrap_or(f64::INFINITY);
        at_two.push(AtTwo { index, gaps: [standardised, euclidean], stays });
        if set.columns <= SWEPT && !settings.quick {
            let outcome = run(6)?;
            let usable = outcome.curve.iter().filter(|point| !point.collapsed);
            let least = usable.filter_map(|point| point.indices.fuzzy_davies_bouldin).fold(f64::INFINITY, f64::min);
            swept.push((outcome.centres.k(), least));
        }
    }
    Ok(Found { at_two, swept, generated })
}

/// The gap of every average beside the pooled one: there is no paper's number for one set.
fn two(sets: &[Set], found: &[Found], report: &mut Report) {
    for (column, name) in [(AVG1 + 2, "avg1"), (AVG2 + 2, "avg2")] {
        let clear = sets.iter().zip(found).filter(|(set, _)| set.sigma <= 50);
        let off = |(_, Found { at_two, .. }): (_, &Found)| (at_two[column].index / at_two[CENTRAL].index - 1.0).abs();
        let worst = clear.map(off).fold(0.0, f64::max);
        let line = Line::new("sigma up to 50", format!("{name}, 10 sites: index over the pooled one, off 1"), 4);
        report.lines.push(line.masked(worst).at_most(worst, 0.05, "sites of like rows find like centres"));
    }
}

/// Table 3 and its figures: how often K = 2 is chosen among the sets that count.
fn choice(sets: &[Set], found: &[Found], report: &mut Report) {
    let unswept = |column: usize| {
        let all = found.iter().filter(|found| found.swept.is_empty());
        all.filter(|found| found.at_two[column].index < COUNTED).count()
    };
    let chosen = |column: usize, wanted: &dyn Fn(&Set) -> bool| {
        let own = sets.iter().zip(found).filter(|(set, found)| wanted(set) && !found.swept.is_empty());
        let own = own.filter(|(_, found)| found.swept[column].1 < COUNTED);
        let right = own.clone().filter(|(_, found)| found.swept[column].0 == 2).count();
        (right, own.count())
    };
    let share = |column: usize, wanted: &dyn Fn(&Set) -> bool| {
        let (right, of) = chosen(column, wanted);
        100.0 * right as f64 / of.max(1) as f64
    };
    let printed = ["92.9", "90.4", "89.5", "88.9", "91.4", "88.0", "87.2"];
    for (column, printed) in printed.into_iter().enumerate() {
        let (name, item) = named(column, (106, 107));
        let found = share(column, &|_| true);
        let line = Line::new(format!("sets that count, {name}"), "K = 2 is chosen, per cent", 1);
        let line = if column == CENTRAL { line.plain(found) } else { line.masked(found) };
        let (right, of) = chosen(column, &|_| true);
        let others = unswept(column);
        let most = 100.0 * (right + others) as f64 / (of + others).max(1) as f64;
        let why =
            format!("sets of 32 columns and more are not swept: it is {most:.1} if K = 2 is chosen in all of these");
        report.lines.push(line.printed(item, printed, (most - found).abs() + 5.0, &why));
    }
    for (setting, expected, wanted) in [
        ("2 columns", 30.0, (&|set: &Set| set.columns == 2) as &dyn Fn(&Set) -> bool),
        ("8 columns", 100.0, &|set: &Set| set.columns == 8),
        ("sigma up to 30", 100.0, &|set: &Set| set.sigma <= 30),
    ] {
        let found = share(AVG2 + 1, wanted);
        let line = Line::new(format!("{setting}, avg2 over 5 sites"), "K = 2 is chosen, per cent", 0).drawn(112);
        let line = line.plain(share(CENTRAL, wanted)).masked(found);
        report.lines.push(line.near(found, expected, 20.1, "same: the figure's height within two sets of ten"));
    }
}

/// What a column of runs is called, and its item: that of central and avg2, or that of avg1.
fn named(column: usize, (item, avg1): (u16, u16)) -> (String, u16) {
    match column {
        CENTRAL => ("central".into(), item),
        AVG1..AVG2 => (format!("avg1 over {} sites", SITES[column - AVG1]), avg1),
        _ => (format!("avg2 over {} sites", SITES[column - AVG2]), item),
    }
}

/// Tables 4 to 7 and Table 5 of the FFCM paper: quantiles over all sets. Where a table has no number there is none here.
fn quantiles(found: &[Found], report: &mut Report) {
    const OTHERS: &str = "70 of the 100 sets are generated: their files are not to be had here";
    const COLLAPSE: &str = "all centres lie on the mean, and how near decides the stop rule";
    type Get = fn(&AtTwo) -> f64;
    let index: Get = |run| run.index;
    let standardised: Get = |run| run.gaps[0];
    let euclidean: Get = |run| run.gaps[1];
    // Least, quarter, half, three quarters, largest.
    type Printed = (&'static str, Get, (u16, u16), usize, [&'static str; 5]);
    let tables: [Printed; 15] = [
        ("index", index, (108, 109), CENTRAL, [".5460", ".6762", ".8640", "1.3092", ""]),
        ("index", index, (108, 109), AVG2, [".5459", ".6771", ".8638", "1.3073", "57.7"]),
        ("index", index, (108, 109), AVG2 + 1, ["", ".6766", ".8627", "1.2961", "23.7"]),
        ("index", index, (108, 109), AVG2 + 2, [".5458", ".6766", ".8627", "1.2944", "20.02"]),
        ("index", index, (108, 109), AVG1, ["", "", ".8627", "", "31308"]),
        ("index", index, (108, 109), AVG1 + 1, ["", "", ".8623", "", "54809"]),
        ("index", index, (108, 109), AVG1 + 2, ["", "", ".8620", "", "9021"]),
        ("gap", standardised, (110, 111), CENTRAL, [".0286", ".2850", ".8904", "5.9544", "77.6472"]),
        ("gap", standardised, (110, 111), AVG2, ["", "", "", "", "77.54"]),
        ("gap", standardised, (110, 111), AVG2 + 1, ["", ".2700", ".8900", "5.8335", "77.71"]),
        ("gap", standardised, (110, 111), AVG2 + 2, ["", ".2587", ".8898", "5.4764", "76.01"]),
        ("gap", standardised, (110, 111), AVG1 + 2, ["", ".2679", ".8899", "5.4320", ""]),
        ("ngap", euclidean, (32, 32), CENTRAL, [".98", "2.42", "9.01", "30.98", "99.80"]),
        ("ngap", euclidean, (32, 32), AVG1 + 2, [".98", "2.43", "8.87", "30.33", "99.24"]),
        ("ngap", euclidean, (32, 32), AVG2 + 2, [".97", "2.41", "8.94", "30.38", "95.55"]),
    ];
    for (what, get, items, column, printed) in tables {
        let (name, item) = named(column, items);
        let all: Sample = found.iter().map(|found| get(&found.at_two[column])).collect();
        let stays = |found: &&Found| found.at_two[column].stays;
        let stay = found.iter().filter(stays).count();
        let moved = |found: &Found| get(&found.at_two[if stays(&found) { CENTRAL } else { column }]);
        let moved: Sample = found.iter().map(moved).collect();
        for (at, printed) in printed.into_iter().enumerate().filter(|(_, printed)| !printed.is_empty()) {
            let value = all.quantile(at as f64 / 4.0);
            let line = Line::new(format!("100 sets, {name}, {} %", 25 * at), format!("{what}, K = 2"), 4);
            let line = if column == CENTRAL { line.plain(value) } else { line.masked(value) };
            let expected: f64 = printed.parse().unwrap_or(f64::NAN);
            let collapsed = at == 4 && what == "index" && stay == 0;
            let (tolerance, why) = match (what, at) {
                ("index", 4) => (f64::INFINITY, COLLAPSE),
                ("index", _) => (0.02 * expected, OTHERS),
                // The largest quarter of the gaps borders on the collapsed runs and hangs on few sets.
                _ => (0.15 * expected, OTHERS),
            };
            let other = moved.quantile(at as f64 / 4.0);
            let explains = stay > 0 && (other - expected).abs() <= tolerance;
            let stayed = format!(
                "one centre of ours stays where all centres of the sites fall together, in {stay} sets; with pooled centres there it is \
                 {other:.4}"
            );
            let (tolerance, why) = if explains { (f64::INFINITY, stayed.as_str()) } else { (tolerance, why) };
            let line = line.printed(item, printed, tolerance, why);
            let why = "the largest index is a collapsed run's";
            report.lines.push(if collapsed { line.holds(value > 10.0, why) } else { line });
        }
    }
}

/// Figure 4 of both papers: the gap by sigma, and how the index rises with it.
fn figures(sets: &[Set], found: &[Found], report: &mut Report) {
    let mean = |column: usize, sigma: u32| {
        let own = sets.iter().zip(found).filter(|(set, _)| set.sigma == sigma);
        own.map(|(_, found)| found.at_two[column].gaps[1]).collect::<Sample>().mean()
    };
    let gaps =
        [CENTRAL, AVG1 + 2, AVG2 + 2].map(|column| (1..=8).map(|ten| mean(column, 10 * ten)).collect::<Vec<f64>>());
    let rises = gaps.iter().all(|gaps| gaps.windows(2).all(|pair| pair[0] < pair[1]));
    let at = |line: usize| gaps[line][7];
    let line = Line::new("ten sets of each sigma", "gap rises with sigma, for all three alike (at 80)", 2).drawn(33);
    report.lines.push(line.plain(at(0)).masked(at(2)).holds(rises, "same: each of the three rises up to sigma 80"));
    let index = |set: &&(&Set, &Found)| set.0.columns == 64 && set.0.sigma <= 60;
    let pairs: Vec<(&Set, &Found)> = sets.iter().zip(found).collect();
    let rises = pairs.iter().filter(index).map(|(_, found)| found.at_two[AVG2 + 1].index).collect::<Vec<_>>();
    let line = Line::new("64 columns, sigma 10 to 60", "index rises with sigma (at 60)", 3).drawn(113);
    let line = line.masked(rises.last().copied().unwrap_or(f64::NAN));
    report.lines.push(line.holds(rises.windows(2).all(|pair| pair[0] < pair[1]), "same: it rises at every step"));
    let share = |columns: usize| {
        let own = pairs.iter().filter(|(set, _)| set.columns == columns && set.sigma <= 80);
        own.map(|(_, found)| found.at_two[AVG2 + 2].gaps[1]).collect::<Sample>().mean()
    };
    let line = Line::new("sigma up to 80, avg2 over 10 sites", "ngap in 1,024 columns over that in 8", 2).drawn(33);
    let ratio = share(1024) / share(8);
    let why = "same: divided by the root of d the gap does not grow with d";
    report.lines.push(line.masked(ratio).near(ratio, 1.0, 0.5, why));
}
