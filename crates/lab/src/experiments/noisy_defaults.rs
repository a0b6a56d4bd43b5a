//! What a run with the defaults of `plan new` is worth under noise: the objective of its centres over the pooled rows against the best
//! of 20 pooled starts, beside what `plan check` says of the plan before anybody agrees to it.

use veilsum_cluster::method::{Candidates, Seeding, Validity, mechanism};
use veilsum_cluster::privacy::{DEFAULT_RHO, Noise, excess};
use veilsum_cluster::random::Stream;
use veilsum_cluster::{
    Algorithm, Centres, Domain, OutOfBox, Packed, Prepared, Recipe, Rows, Scaling, kernel, synthetic,
};

use super::dp::{noisy, xclara_like};
use super::harness::{each, plain};
use super::{ExperimentError, Folder, Line, Report, Sample, Settings};

/// Sites that the rows are dealt to.
const SITES: usize = 10;
/// Two of the sites make the planned noise.
/// Pooled starts that a run is compared with.
const STARTS: u64 = 20;
/// Noise is for so many rows.
const FEWEST: usize = 1_000;
/// Over the best of the pooled starts. Pendigits has no clear clusters, which a forecast supposes: 1.04 there.
const NEAR: f64 = 1.05;

/// Rows with a name, the number of clusters that is known or taken for them, and the box around them.
struct Set {
    name: String,
    rows: Rows,
    domain: Domain,
    k: u32,
}

impl Set {
    fn new(name: impl Into<String>, rows: Rows, k: u32) -> Result<Self, ExperimentError> {
        let domain = Domain::around(&rows, Scaling::Box)?;
        Ok(Self { name: name.into(), rows, domain, k })
    }

    /// The rows of the sites, shuffled and dealt in turn: in their own order a site might get every row of some clusters.
    fn dealt(&self, sites: usize) -> Result<Vec<Prepared>, ExperimentError> {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        Stream::new(1, b"veilsum defaults deal v1").shuffle(&mut order);
        let part = |site: usize| {
            let values = order.iter().skip(site).step_by(sites).flat_map(|row| self.rows.row(*row).to_vec()).collect();
            Ok(Prepared::new(&Rows::new(values, self.rows.columns())?, &self.domain, OutOfBox::Refuse)?)
        };
        (0..sites).map(part).collect()
    }
}

/// The nine sets where their files are there; the generated ones in any case.
fn sets(settings: &Settings) -> Result<Vec<Set>, ExperimentError> {
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
    if let Ok(folder) = Folder::new(settings, "noisy-defaults") {
        for (name, k) in files.into_iter().take(if settings.quick { 2 } else { files.len() }) {
            sets.push(Set::new(name, folder.labelled(&format!("{name}.csv"))?.rows, k)?);
        }
    }
    Ok(sets)
}

/// The best objective of 20 pooled runs: ten uniform starts and ten from totals.
fn best(set: &Set, hard: bool) -> Result<f64, ExperimentError> {
    let whole = [Prepared::new(&set.rows, &set.domain, OutOfBox::Refuse)?];
    let starts: Vec<u64> = (0..STARTS).collect();
    let found = each(&starts, |seed| {
        let seeding = match seed % 2 {
            0 => Seeding::Uniform { seed: *seed },
            _ => Seeding::Candidates(Candidates::usual(*seed)),
        };
        let (epsilon, validity) = if hard { (0.0, Validity::everything()) } else { (1e-5, Validity::basic()) };
        let recipe = Recipe { validity, ..Recipe::plain(algorithm(hard, epsilon, 300), set.k, seeding) };
        // A start whose clusters run empty is no best one.
        Ok(plain(&recipe, &set.domain, &whole).map_or(f64::INFINITY, |outcome| outcome.objective))
    })?;
    Ok(found.into_iter().fold(f64::INFINITY, f64::min))
}

fn algorithm(hard: bool, epsilon: f64, max_rounds: u32) -> Algorithm {
    if hard { Algorithm::Kmeans { epsilon, max_rounds } } else { Algorithm::Fcm { m: 2.0, epsilon, max_rounds } }
}

/// What the method makes small, over all rows.
fn objective(rows: &Packed, centres: &Centres, hard: bool) -> Result<f64, ExperimentError> {
    Ok(match hard {
        true => kernel::hard_sums(rows, centres)?.squares.iter().sum(),
        false => kernel::fuzzy_sums(rows, centres, 2.0)?.objective,
    })
}

/// What `plan new` makes of kmeans, or of fcm, where nothing but rho, K and the expected rows is said.
pub fn recipe(hard: bool, rho: f64, k: u32, rows: u64, seed: u64) -> Recipe {
    let seeding = Seeding::Candidates(Candidates::usual(seed));
    let noise = Noise::usual(rho, rows);
    let rounds = noise.usual_rounds(k);
    Recipe { noise: Some(noise), ..Recipe::plain(algorithm(hard, 0.0, rounds), k, seeding) }
}

/// Whether `plan check` calls it useful with so many sites.
///
/// # Errors
/// [`ExperimentError`] where the recipe cannot be run on this box.
pub fn useful(recipe: &Recipe, domain: &Domain, sites: usize) -> Result<bool, ExperimentError> {
    Ok(mechanism::forecast(recipe, domain, excess(sites))?.is_some_and(|found| found.useful()))
}

pub(super) fn run(settings: &Settings) -> Result<Report, ExperimentError> {
    let mut report = Report::new("noisy-defaults", "default runs with noise, rho 0.25, ten sites");
    report.note("objective of the centres over the pooled rows / that of the best of 20 pooled starts; median of the seeds, and the worst");
    let seeds: Vec<u64> = (1..=if settings.quick { 3 } else { 8 }).collect();
    let mut all = sets(settings)?;
    let (domain, sites) = xclara_like(3_000, SITES, 1)?;
    all.push(Set { name: "like xclara".into(), rows: Prepared::pooled(&sites)?.packed().to_rows(), domain, k: 3 });
    for set in all.iter().filter(|set| set.rows.len() >= FEWEST) {
        let whole = Prepared::new(&set.rows, &set.domain, OutOfBox::Refuse)?;
        let sites = set.dealt(SITES)?;
        for hard in [false, true] {
            let best = best(set, hard)?;
            let of = |seed| recipe(hard, DEFAULT_RHO, set.k, set.rows.len() as u64, seed);
            let ratios: Sample = each(&seeds, |seed| {
                let found = noisy(&of(100 * seed), &set.domain, &sites, *seed);
                let found = found.map_err(|failure| ExperimentError::Masked(failure.to_string()))?;
                Ok(objective(whole.packed(), &found.centres, hard)? / best)
            })?
            .into_iter()
            .collect();
            let useful = useful(&of(100), &set.domain, SITES)?;
            let method = if hard { "kmeans" } else { "fcm" };
            let says = if useful { "useful" } else { "plan check: not useful" };
            let line = Line::new(format!("{method}, {}, K = {}, {} rows", set.name, set.k, set.rows.len()), says, 4);
            let median = ratios.quantile(0.5);
            let why = "within 5 % of the best, or plan check says that it is not useful";
            report.lines.push(line.plain(median).masked(ratios.max()).holds(median <= NEAR || !useful, why));
        }
    }
    Ok(report)
}
