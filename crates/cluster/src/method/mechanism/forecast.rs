//! What will come out of a plan, said before anybody agrees to it and from public facts alone: expected rows, columns, K, method,
//! rounds, budget and sites. The plan's own first centres and rounds are played over layouts of clear, round clusters, with its noise
//! and without.

use super::super::dp::{least_distance, spread};
use super::super::recipe::{Recipe, Seeding};
use super::{Mechanism, POINTS, POINTS_EACH, Shape, deviation, lost};
use crate::privacy::{Noise, in_nano};
use crate::random::Stream;
use crate::{Centres, Domain, Error, distance};

/// Above this part of a column's range an error of the centres makes a result useless.
pub const USEFUL: f64 = 0.05;
/// A plan whose noise loses a cluster in more than one layout of ten is of no use.
pub const KEPT: f64 = 0.9;

/// Layouts of clusters: a probability of 0.9 is then known to 0.02.
const LAYOUTS: usize = 200;
/// Fewest layouts, where many rounds or clusters make each one dear, and most of each number of rows that is tried.
const FEWEST: usize = 5;
const TRIED: usize = 40;
/// Distances of one point to one centre in eight columns that layouts take at most, but for the fewest: about a second's work.
const WORK: u64 = 300_000_000;
/// A distance in a round takes so many times as long as one between candidates: it has a membership.
const OF_A_ROUND: u64 = 16;
/// A layout that takes more is not played, and nothing is forecast.
const MOST_WORK: u64 = 2 * WORK;
/// Draws of a layout among which the most spread one counts, and places that each cluster may move to then, twice.
const DRAWS: usize = 200;
const PLACES: usize = 20;
/// More rows are tried up to this power of two times as many.
const MOST_DOUBLINGS: u32 = 10;
/// Part of the sampling error that a played sample has: the rounds answer to it in proportion.
const SAMPLE: f64 = 0.1;

/// What will come out of a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// How far noise and clip move a coordinate of a centre (root mean square over centres and columns, median over layouts), as
    /// a part of the column's range; `+inf` where most layouts lose a cluster without noise, too.
    pub error: f64,
    /// The same of another sample of as many rows of the same clusters: what the rows themselves leave open.
    pub sampling: f64,
    /// Share of the layouts in which every cluster has a centre of its own at the end.
    pub kept: f64,
    /// The same without noise: what is missing to 1 here is the fault of first centres, K or fuzzifier.
    pub kept_without_noise: f64,
    /// Layouts that were played; of clusters 0 if K is too large for that, and nothing is forecast then.
    pub layouts: usize,
    /// If this is of no use, and not for its first centres: about how many rows in all would do, up to a thousand times the expected.
    pub rows: Option<u64>,
}

impl Forecast {
    /// Of a plan that is not played: it promises nothing.
    pub const NOTHING: Forecast = Forecast {
        error: f64::INFINITY,
        sampling: f64::INFINITY,
        kept: 0.0,
        kept_without_noise: 0.0,
        layouts: 0,
        rows: None,
    };

    /// Whether centres can be told from noise.
    pub fn useful(&self) -> bool {
        self.error <= USEFUL && self.kept >= KEPT
    }
}

/// What will come out of a recipe with noise whose totals have `excess` times the planned deviation; `None` without noise. K clear,
/// round clusters, of which the nearest two are 3.8 times as far apart as their rows lie from the centres (root mean square; 5.4
/// deviations in two columns), with rows from half to one and a half of an equal share of the expected ones, are spread in the box.
/// Of a range of K it is the largest. A description has no clusters: its means of columns are meant, of rows anywhere in their
/// ranges. Always the same for the same plan, and never more than some ten seconds' work.
///
/// # Errors
/// [`Error`] where the recipe cannot be run.
pub fn forecast(recipe: &Recipe, domain: &Domain, excess: f64) -> Result<Option<Forecast>, Error> {
    let Some(noise) = &recipe.noise else { return Ok(None) };
    let with = |rows: u64| Recipe { noise: Some(Noise { expected_rows: rows, ..*noise }), ..recipe.clone() };
    let of = |rows: u64, most: usize| match recipe.algorithm.traits().describes {
        Some(_) => described(&with(rows), domain, excess),
        None => played(&with(rows), domain, excess, most),
    };
    let Some(mut found) = of(noise.expected_rows, LAYOUTS)? else { return Ok(None) };
    if !found.useful() && found.kept_without_noise >= KEPT {
        let times = |doublings: u32| noise.expected_rows.saturating_mul(1 << doublings);
        // The fewest doublings that do lie in (few, enough].
        let (mut few, mut enough) = (0, MOST_DOUBLINGS + 1);
        while enough - few > 1 {
            let middle = few.midpoint(enough);
            match of(times(middle), TRIED)?.is_some_and(|told| told.useful()) {
                true => enough = middle,
                false => few = middle,
            }
        }
        found.rows = (enough <= MOST_DOUBLINGS).then(|| times(enough));
    }
    Ok(Some(found))
}

/// Of the means of columns.
fn described(recipe: &Recipe, domain: &Domain, excess: f64) -> Result<Option<Forecast>, Error> {
    let (Some(levels), Some(noise)) = (recipe.levels(domain)?, &recipe.noise) else { return Ok(None) };
    let rows = noise.expected_rows as f64;
    // A column's sum in parts of its range is as noisy as a count.
    let error = levels.of_last()[0].deviation * excess / rows;
    let sampling = (1.0 / (12.0 * rows)).sqrt();
    Ok(Some(Forecast { error, sampling, kept: 1.0, kept_without_noise: 1.0, layouts: 0, rows: None }))
}

/// Of centres, over so many layouts at most.
fn played(recipe: &Recipe, domain: &Domain, excess: f64, most: usize) -> Result<Option<Forecast>, Error> {
    let (Some(mechanism), Some(noise)) = (Mechanism::of(recipe, domain, excess)?, &recipe.noise) else {
        return Ok(None);
    };
    let (k, d) = (recipe.clusters.max as usize, domain.columns());
    // Without noise its floors and clips do not bind either.
    let quiet = Recipe { noise: Some(Noise { nano_rho: in_nano(1e3), ..*noise }), ..recipe.clone() };
    let Some(plain) = Mechanism::of(&quiet, domain, 1.0)? else { return Ok(None) };
    let start = match &recipe.seeding {
        Seeding::Given { centres } => Some(centres.clone()),
        Seeding::Uniform { seed } => Some(spread(domain, k, *seed)?),
        Seeding::Candidates(_) => None,
    };
    let one = work_of(recipe, mechanism.rounds, k as u64, d as u64);
    if one > MOST_WORK {
        return Ok(Some(Forecast::NOTHING));
    }
    let shape = Shape::new(k, d);
    let layouts = usize::try_from(WORK / one.max(1)).map_or(LAYOUTS, |many| many.clamp(FEWEST, LAYOUTS)).min(most);
    let mut stream = Stream::new(0, b"veilsum mechanism layout");
    let (mut kept, mut errors, mut sampling) = ([0usize; 2], Vec::new(), Vec::new());
    for _ in 0..layouts {
        let truth = layout(domain, k, &mut stream)?;
        let shares: Vec<f64> = (0..k).map(|_| 0.5 + stream.unit()).collect();
        let part = noise.expected_rows as f64 / shares.iter().sum::<f64>();
        let rows: Vec<f64> = shares.iter().map(|share| share * part).collect();
        let cloud = shape.cloud(&truth, &rows, &vec![1.0; d], deviation(&truth, domain), domain);
        let first = |mechanism: &Mechanism<'_>, noise: Option<&mut Stream>| match (&start, &recipe.seeding) {
            (None, Seeding::Candidates(params)) => mechanism.first_centres(&cloud, params, k, noise),
            (start, _) => start.clone().ok_or(Error::NoCentresYet),
        };
        let begin = first(&mechanism, Some(&mut stream))?;
        let noisy = mechanism.run(&cloud, begin, 0, Some(&mut stream))?.centres;
        let begin = first(&plain, None)?;
        let quiet = plain.run(&cloud, begin.clone(), 0, None)?.centres;
        let all_there = [&noisy, &quiet].map(|found| lost(found, &truth, domain) == 0);
        kept.iter_mut().zip(all_there).for_each(|(kept, all)| *kept += usize::from(all));
        if all_there[1] {
            errors.push(off(&noisy, &quiet, &truth, domain));
            let other = plain.run(&cloud.sampled(SAMPLE, &mut stream), begin, 0, None)?.centres;
            sampling.push(off(&other, &quiet, &truth, domain) / SAMPLE);
        }
    }
    let [kept, kept_without_noise] = kept.map(|kept| kept as f64 / layouts as f64);
    let (error, sampling) = (median(errors, layouts), median(sampling, layouts));
    Ok(Some(Forecast { error, sampling, kept, kept_without_noise, layouts, rows: None }))
}

/// Distances in eight columns that one layout takes, with noise and without: in its rounds and for its first centres.
fn work_of(recipe: &Recipe, rounds: u32, k: u64, d: u64) -> u64 {
    let points = (POINTS as u64 / k.max(1)).max(POINTS_EACH as u64).saturating_mul(k);
    let rounds = [3, OF_A_ROUND, u64::from(rounds) + 1, points, k].into_iter().fold(1, u64::saturating_mul);
    let first = match &recipe.seeding {
        Seeding::Candidates(params) => params.distances(u32::try_from(k).unwrap_or(u32::MAX)).saturating_mul(2),
        _ => 0,
    };
    rounds.saturating_add(first).saturating_mul(8 + d) / 8
}

/// Root mean square of how far coordinates of the centres near every true one lie from each other, as a part of the column's range.
fn off(found: &Centres, other: &Centres, truth: &Centres, domain: &Domain) -> f64 {
    let ranges: Vec<f64> =
        (0..domain.columns()).map(|j| domain.working_interval(j)).map(|(low, high)| high - low).collect();
    let near = |centres: &Centres, at: &[f64]| centres.row(distance::nearest(at, centres.rows()).0).to_vec();
    let squares: f64 = truth
        .rows()
        .flat_map(|at| near(found, at).into_iter().zip(near(other, at)).zip(&ranges).collect::<Vec<_>>())
        .map(|((a, b), range)| ((a - b) / range).powi(2))
        .sum();
    (squares / truth.as_slice().len() as f64).sqrt()
}

/// The median of so many numbers, of which those that are not there are `+inf`.
fn median(mut found: Vec<f64>, of: usize) -> f64 {
    found.sort_by(f64::total_cmp);
    found.get(of / 2).copied().unwrap_or(f64::INFINITY)
}

/// K places far from each other and from the walls: the most spread of some uniform draws, in which each place then moves to
/// farther ones.
fn layout(domain: &Domain, k: usize, stream: &mut Stream) -> Result<Centres, Error> {
    let d = domain.columns();
    let place = |stream: &mut Stream| -> Vec<f64> {
        let within = |(low, high): (f64, f64)| low + (high - low) * stream.unit();
        (0..d).map(|column| domain.working_interval(column)).map(within).collect()
    };
    let centres = |values| Centres::new(k, d, values);
    let drawn = |stream: &mut Stream| centres((0..k).flat_map(|_| place(stream)).collect());
    let mut best = drawn(stream)?;
    for _ in 1..DRAWS {
        let other = drawn(stream)?;
        if least_distance(&other, domain) > least_distance(&best, domain) {
            best = other;
        }
    }
    for cluster in (0..k).chain(0..k) {
        let alone = |at: &[f64]| {
            let walls = at.iter().enumerate().map(|(column, x)| {
                let (low, high) = domain.working_interval(column);
                2.0 * (x - low).min(high - x)
            });
            let others = best.rows().enumerate().filter(|(other, _)| *other != cluster);
            walls.chain(others.map(|(_, other)| distance::euclidean(at, other))).fold(f64::INFINITY, f64::min)
        };
        let places = std::iter::once(best.row(cluster).to_vec()).chain((0..PLACES).map(|_| place(stream)));
        let farthest = places.max_by(|a, b| alone(a).total_cmp(&alone(b))).unwrap_or_default();
        let mut values = best.as_slice().to_vec();
        values[cluster * d..(cluster + 1) * d].copy_from_slice(&farthest);
        best = centres(values)?;
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::super::gap;
    use super::*;
    use crate::{Algorithm, Scaling};

    fn plan(k: u32, epsilon: f64, expected_rows: u64) -> (Recipe, Domain) {
        let algorithm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 10 };
        let mut recipe = Recipe::plain(algorithm, k, Seeding::Uniform { seed: 11 });
        recipe.noise = Some(Noise::usual(crate::privacy::rho(epsilon, 1e-6), expected_rows).from_anywhere());
        (recipe, Domain::new(vec![-1.0; 2], vec![1.0; 2], Scaling::None).unwrap())
    }

    fn told(k: u32, epsilon: f64, expected_rows: u64) -> Forecast {
        let (recipe, domain) = plan(k, epsilon, expected_rows);
        forecast(&recipe, &domain, 1.0).unwrap().expect("noise")
    }

    #[test]
    fn less_noise_and_fewer_clusters_keep_more() {
        let good = told(3, 1.0, 3000);
        assert!(
            good.kept >= 0.95 && good.kept_without_noise >= 0.95 && good.useful() && good.rows.is_none(),
            "{good:?}"
        );
        assert!((0.0005..0.02).contains(&good.error) && (0.0002..0.01).contains(&good.sampling), "{good:?}");
        assert_eq!(told(3, 1.0, 3000), good, "the same plan");
        // More rows stand against the same noise, and it says how many.
        let drowned = told(3, 0.05, 3000);
        assert!(!drowned.useful() && drowned.kept_without_noise == good.kept_without_noise, "{drowned:?}");
        let enough = drowned.rows.expect("so many rows");
        assert!(
            enough > 6000 && told(3, 0.05, 2 * enough).useful() && !told(3, 0.05, enough / 4).useful(),
            "{drowned:?}"
        );
        // Many clusters fall to first centres already: no rows help there.
        let many = told(15, 8.0, 5000);
        assert!(many.kept < 0.3 && many.kept_without_noise < 0.5 && many.rows.is_none(), "{many:?}");
        assert!(told(1, 1.0, 3000).kept > 0.99);
    }

    /// Both errors fall with the rows: samples as 1/sqrt(N); noise by about as much, because the clip widens.
    #[test]
    fn errors_fall_with_rows() {
        let [few, many] = [3000, 12_000].map(|rows| told(3, 1.0, rows));
        assert!((1.9..2.1).contains(&(few.sampling / many.sampling)), "{few:?} {many:?}");
        assert!((1.5..4.0).contains(&(few.error / many.error)), "{few:?} {many:?}");
    }

    #[test]
    fn a_cluster_without_a_centre_near_it_is_lost() {
        let (_, domain) = plan(2, 1.0, 100);
        let truth = Centres::known(vec![[-0.5, 0.0], [0.5, 0.0]]);
        assert_eq!(lost(&truth, &truth, &domain), 0);
        assert_eq!(lost(&Centres::known(vec![[0.45, 0.0], [-0.9, 0.0]]), &truth, &domain), 0);
        assert_eq!(lost(&Centres::known(vec![[0.45, 0.0], [0.55, 0.0]]), &truth, &domain), 1);
        assert_eq!(gap(&truth, &domain), 1.0);
    }

    /// The work is bounded, whatever K and the columns are, and where it would be too much nothing is forecast.
    #[test]
    fn large_plans_are_not_played() {
        use crate::method::Candidates;
        for (k, d, played) in [(3, 2, true), (15, 2, true), (50, 20, true), (400, 10, false), (4096, 64, false)] {
            let (mut recipe, _) = plan(k, 3.5, 100_000);
            recipe.seeding = Seeding::Candidates(Candidates::usual(1));
            assert_eq!(work_of(&recipe, 10, u64::from(k), d) <= MOST_WORK, played, "{k} {d}");
        }
        let (mut recipe, domain) = plan(4096, 3.5, 100_000);
        recipe.seeding = Seeding::Candidates(Candidates::usual(1));
        let found = forecast(&recipe, &domain, 1.0).unwrap().expect("noise");
        assert!(found.layouts == 0 && !found.useful() && found.rows.is_none(), "{found:?}");
    }

    #[test]
    fn without_noise_there_is_nothing_to_play() {
        let (mut recipe, domain) = plan(3, 1.0, 3000);
        recipe.noise = None;
        assert_eq!(forecast(&recipe, &domain, 1.0).unwrap(), None);
    }
}
