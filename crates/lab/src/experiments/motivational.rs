//! The motivational example of the framework paper (Stallmann & Wilbik 2022, Appl. Sci. 12, 10455), Tables 1 and 2: three sites
//! that see three of five clusters each. Alone each of them chooses K = 2, together they choose 5.
//!
//! The sites' corners follow a path; the paper's text names a diagonal pair for the second site, with which its own numbers
//! do not come out.

use veilsum_cluster::method::{Clusters, Seeding};
use veilsum_cluster::{Algorithm, Centres, Outcome, Prepared, Recipe, kernel, synthetic, validity};

use super::ffcm::around_gaussians;
use super::harness::{NO_RULE, each, from_totals, index, masked, methods, plain, prepared, sweep};
use super::{ExperimentError, Line, Report, Sample, Settings};

const EPSILON: f64 = 1e-3;
const K: Clusters = Clusters { min: 2, max: 8 };
const LOCAL_K: Clusters = Clusters { min: 2, max: 5 };
/// Table 1, one draw: central and federated for K = 2 to 8, and each site alone for K = 2 to 5.
const CENTRAL: [&str; 7] = [".8707", ".5687", ".4869", ".4348", ".5440", ".6707", ".5680"];
const FEDERATED: [&str; 7] = [".8179", ".6055", ".4951", ".4289", ".6202", ".5072", ".6221"];
const ALONE: [[&str; 4]; 3] = [
    [".6426", ".7289", "1.0637", ".9260"],
    [".6437", ".6991", "1.0706", ".8927"],
    [".6381", ".7704", "1.1248", ".9496"],
];
/// Table 2: federated averaging (avg1) for K = 2 to 8, and its centres for K = 2 on the rows of each site.
const AVERAGED: [&str; 7] = ["1.0047", ".9143", "1.1683", "2.9158", "1.5063", ".9248", "1.2115"];
const AT_SITES: [&str; 3] = ["1.0356", ".8620", ".9685"];
/// Random first centres of each draw.
const OTHERS: u64 = 3;
const BEYOND_FIVE: &str = "beyond five clusters the first centres decide, and ours come from totals";
const ONE_DRAW: &str = "the paper has one draw, which is not known";

pub(super) fn run(settings: &Settings) -> Result<Report, ExperimentError> {
    let mut report = Report::new("motivational", "FedFCM and the choice of K on five Gaussians");
    report.note(NO_RULE);
    report.note(
        "plain: fuzzy c-means on the pooled rows, from the same first centres as FedFCM; beside averaging, plain sums",
    );
    let seeds: Vec<u64> = (1..=if settings.quick { 2 } else { 10 }).collect();
    let runs = each(&seeds, |seed| one(*seed))?;
    let curve =
        |of: &dyn Fn(&Draw) -> &Outcome, k: usize| -> Sample { runs.iter().map(|run| index(of(run), k - 2)).collect() };
    for k in 2..=8usize {
        let pooled = curve(&|run| &run.pooled, k);
        let together = curve(&|run| &run.together, k);
        let (averaged, plainly) = (curve(&|run| &run.averaged, k), curve(&|run| &run.averaged_plainly, k));
        let why = if k > 5 { BEYOND_FIVE } else { ONE_DRAW };
        // One draw lies within three deviations of ours; beyond five clusters, no farther off than random first centres of our draws.
        let within = |sample: &Sample| settings.loose(3.0 * sample.sd() + 0.005);
        let farthest = |form: usize, sample: &Sample| -> f64 {
            let others = runs.iter().flat_map(|run| &run.others[form]).filter(|(other, _)| *other as usize == k);
            let off = others.map(|(_, index)| (index - sample.mean()).abs()).fold(0.0, f64::max);
            within(sample).max(settings.loose(off))
        };
        let (wide, near) = (farthest(0, &pooled), farthest(1, &together));
        let setting = format!("K = {k}");
        let line = Line::new(&setting, "central: index", 4).plain(pooled);
        report.lines.push(line.printed(102, CENTRAL[k - 2], wide, why));
        let mut line = Line::new(&setting, "FedFCM: index", 4).masked(together.clone());
        line = line.printed(101, FEDERATED[k - 2], near, why);
        if k == 5 {
            let why = "two standard deviations of a reproduction over ten draws";
            line = line.near(together.mean(), 0.431, 0.004, why);
        }
        report.lines.push(line);
        let wide = within(&averaged);
        let line = Line::new(setting, "averaging (avg1): index", 4).plain(plainly).masked(averaged);
        report.lines.push(line.printed(105, AVERAGED[k - 2], wide, ONE_DRAW));
    }
    for (site, printed) in AT_SITES.into_iter().enumerate() {
        let sample: Sample = runs.iter().map(|run| run.at_sites[site]).collect();
        let wide = settings.loose(3.0 * sample.sd() + 0.1);
        let line = Line::new("K = 2", format!("averaged centres on the rows of site {}: index", site + 1), 4);
        report.lines.push(line.plain(sample).printed(105, printed, wide, ONE_DRAW));
    }
    let five = runs.iter().filter(|run| run.together.centres.k() == 5).count();
    let line = Line::new("all sites", "draws of ten in which FedFCM chooses K = 5", 0).drawn(101).masked(five as f64);
    report.lines.push(line.holds(five == seeds.len(), "same: the minimum is at 5 in every draw"));
    for (site, printed) in ALONE.into_iter().enumerate() {
        for (k, printed) in (2..=5usize).zip(printed) {
            let found = curve(&|run| &run.alone[site], k);
            let wide = settings.loose(3.0 * found.sd() + 0.002);
            let line = Line::new(format!("site {} alone, K = {k}", site + 1), "index", 4).plain(found);
            report.lines.push(line.printed(103, printed, wide, ONE_DRAW));
        }
    }
    let alone = || runs.iter().flat_map(|run| &run.alone);
    let two = alone().filter(|outcome| outcome.centres.k() == 2).count() as f64 / (3 * seeds.len()) as f64;
    let line = Line::new("sites alone", "share that chooses K = 2", 3).drawn(103).plain(two);
    let why = "same: 29 of 30 in another reproduction; where K = 3 wins, it does by 0.003 or less";
    report.lines.push(line.near(two, 1.0, settings.loose(0.1), why));
    let five = alone().filter(|outcome| outcome.centres.k() == 5).count();
    let line = Line::new("sites alone", "sites that find five clusters", 0).drawn(103).plain(five as f64);
    report.lines.push(line.holds(five == 0, "same: no site sees more than three"));
    Ok(report)
}

struct Draw {
    together: Outcome,
    pooled: Outcome,
    averaged: Outcome,
    averaged_plainly: Outcome,
    /// The index of the averaged centres for K = 2 on the rows of each site.
    at_sites: Vec<f64>,
    alone: Vec<Outcome>,
    /// Beyond five clusters: K and index of runs from random first centres, pooled and FedFCM.
    others: [Vec<(u32, f64)>; 2],
}

fn one(seed: u64) -> Result<Draw, ExperimentError> {
    let example = synthetic::five_gaussians(seed);
    let domain = around_gaussians();
    let sites = prepared(example.sites.iter().map(|site| &site.rows), &domain)?;
    let whole = prepared([&example.pooled()], &domain)?;
    let [fcm, _, fedfcm] = methods(2.0, EPSILON, 100);
    let [_, avg1, _] = methods(2.0, EPSILON, 60);
    let together = masked(&sweep(&fedfcm, K, from_totals(seed)), &domain, &sites, None)?;
    let pooled = plain(&sweep(&fcm, K, from_totals(seed)), &domain, &whole)?;
    let averaging = sweep(&avg1, K, Seeding::Uniform { seed });
    let averaged = masked(&averaging, &domain, &sites, None)?;
    let averaged_plainly = plain(&averaging, &domain, &sites)?;
    let two = masked(&sweep(&avg1, Clusters::exactly(2), Seeding::Uniform { seed }), &domain, &sites, None)?;
    let at_sites = sites.iter().map(|site| index_of(site, &two.centres)).collect::<Result<Vec<_>, _>>()?;
    let alone = sites
        .iter()
        .map(|site| {
            let recipe = Recipe { restarts: 5, ..sweep(&fcm, LOCAL_K, Seeding::Uniform { seed }) };
            plain(&recipe, &domain, std::slice::from_ref(site))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let others = |algorithm: &Algorithm, sites: &[Prepared]| -> Result<Vec<(u32, f64)>, ExperimentError> {
        let mut found = Vec::new();
        for start in 0..OTHERS {
            let seeding = Seeding::Uniform { seed: OTHERS * seed + start };
            let curve = plain(&sweep(algorithm, Clusters { min: 6, ..K }, seeding), &domain, sites)?.curve;
            let usable = curve.iter().filter(|point| !point.collapsed);
            found.extend(usable.filter_map(|point| Some((point.k, point.indices.fuzzy_davies_bouldin?))));
        }
        Ok(found)
    };
    let others = [others(&fcm, &whole)?, others(&fedfcm, &sites)?];
    Ok(Draw { together, pooled, averaged, averaged_plainly, at_sites, alone, others })
}

/// The fuzzy Davies-Bouldin index of centres on the rows of one site, m = 2.
fn index_of(site: &Prepared, centres: &Centres) -> Result<f64, ExperimentError> {
    let sums = kernel::fuzzy_validation(site.packed(), centres, 2.0)?;
    let n = site.len() as f64;
    Ok(validity::fuzzy_davies_bouldin(centres, &sums.distances, &sums.memberships, n))
}
