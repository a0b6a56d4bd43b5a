//! What will come out of a plan, said before anybody agrees to it and from public facts alone: expected rows, columns, K, method,
//! rounds, budget and sites. The plan's own first centres and rounds are played over layouts of clusters in its columns, from overlapping
//! to clear ones, with its noise and without.

use super::super::dp::spread;
use super::super::recipe::{Recipe, Seeding};
use super::{Cloud, Mechanism, POINTS, POINTS_EACH, Shape};
use crate::metrics::{closest, lost, matched_distance};
use crate::privacy::{Noise, in_nano};
use crate::random::Stream;
use crate::{Centres, Domain, Error, distance};

/// Above this part of a column's range an error of its mean makes a description useless.
pub const USEFUL: f64 = 0.05;
/// A plan whose noise spoils more than one in ten of the layouts that a run without noise keeps is of no use.
const KEPT: f64 = 0.9;
/// Nor is one that keeps fewer layouts than this.
pub const MOSTLY: f64 = 0.5;
/// A layout is spoilt, too, where the objective ends at so many times that of the best known partition.
pub(crate) const WORSE: f64 = 1.05;
/// Share of the layouts below the range that is said, and above it.
const OUTSIDE: f64 = 0.03;
/// A normal number lies below this many deviations in 95 % (1 - [`OUTSIDE`]).
const WITHIN: f64 = 1.645;

/// What layouts are drawn from: the least distance of two clusters in deviations, rows of a cluster in equal shares, deviations in a
/// column over those of all, and the part of the box that holds the centres. Real runs over clusters of other shapes lie in the range
/// of such layouts (`what_is_forecast_is_found`).
const APART: [f64; 2] = [2.5, 7.0];
const SHARES: [f64; 2] = [0.3, 2.0];
const STRETCH: [f64; 2] = [0.6, 1.4];
const NARROW: [f64; 2] = [0.4, 1.0];

/// Layouts of clusters: a probability of 0.9 is then known to 0.02.
const LAYOUTS: usize = 200;
/// Fewest layouts, where many rounds or clusters make each one dear, and most of each number of rows that is tried.
const FEWEST: usize = 10;
const TRIED: usize = 40;
/// Distances of one point to one centre in eight columns that layouts take at most, but for the fewest: about a second's work.
const WORK: u64 = 300_000_000;
/// A distance in a round takes so many times as long as one between candidates: it has a membership.
const OF_A_ROUND: u64 = 16;
/// A layout that takes more is not played, and nothing is forecast.
const MOST_WORK: u64 = WORK;
/// Draws of a place among which the one farthest from the others counts.
const DRAWS: usize = 10;
/// More rows are tried up to this power of two times as many.
const MOST_DOUBLINGS: u32 = 10;
/// Part of the sampling error that a played sample has: the rounds answer to it in proportion.
const SAMPLE: f64 = 0.1;

/// What will come out of a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// How far a coordinate of a centre ends from that of the best known partition (root mean square over centres and columns, median
    /// over layouts), as a part of the column's range.
    pub error: f64,
    /// What that lies between in nine layouts of ten.
    pub range: [f64; 2],
    /// The same of another sample of as many rows of the same clusters: what the rows themselves leave open.
    pub sampling: f64,
    /// Share of the layouts in which every cluster of the best partition has a centre at the end, and the objective is hardly larger.
    /// The best one is known from noise-free runs: from the true places, from the plan's first centres, and from where noise ended.
    pub kept: f64,
    /// The same without noise: what is missing to 1 here is the fault of first centres and rounds.
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
        range: [f64::INFINITY; 2],
        sampling: f64::INFINITY,
        kept: 0.0,
        kept_without_noise: 0.0,
        layouts: 0,
        rows: None,
    };

    /// Whether centres can be told from noise.
    pub fn useful(&self) -> bool {
        self.kept >= (KEPT * self.kept_without_noise).max(MOSTLY)
    }
}

/// What will come out of a recipe with noise whose totals have `excess` times the planned deviation; `None` without noise. K clusters of
/// unlike sizes and shapes, of which the nearest two overlap or lie apart, are spread in the box. Of a range of K it is the largest. A
/// description has no clusters: its means of columns are meant, of rows anywhere in their ranges. Always the same for the same plan, and
/// never more than some ten seconds' work.
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
    if !found.useful() && found.kept_without_noise >= MOSTLY {
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
    let off = WITHIN / (2.0 * domain.columns() as f64).sqrt();
    let range = [1.0 - off, 1.0 + off].map(|times| times.max(0.0) * error);
    let kept = f64::from(u8::from(error <= USEFUL));
    Ok(Some(Forecast { error, range, sampling, kept, kept_without_noise: 1.0, layouts: 0, rows: None }))
}

/// Of centres, over so many layouts at most.
fn played(recipe: &Recipe, domain: &Domain, excess: f64, most: usize) -> Result<Option<Forecast>, Error> {
    let (Some(mechanism), Some(noise)) = (Mechanism::of(recipe, domain, excess)?, &recipe.noise) else {
        return Ok(None);
    };
    let (k, d) = (recipe.clusters.max as usize, domain.columns());
    // Without noise its floors and clips do not bind either.
    let quiet = Recipe { noise: Some(Noise { nano_rho: in_nano(1e3), ..*noise }), ..recipe.clone() };
    let Some(mut plain) = Mechanism::of(&quiet, domain, 1.0)? else { return Ok(None) };
    plain.levels.searches = mechanism.levels.searches;
    let start = match &recipe.seeding {
        Seeding::Given { centres } => Some(centres.clone()),
        Seeding::Uniform { seed } => Some(spread(domain, k, *seed)?),
        Seeding::Candidates(_) => None,
    };
    let one = work_of(recipe, recipe.algorithm.traits().rounds, k as u64, d as u64);
    if one > MOST_WORK {
        return Ok(Some(Forecast::NOTHING));
    }
    let shape = Shape::new(POINTS, k, d);
    let layouts = usize::try_from(WORK / one.max(1)).map_or(LAYOUTS, |many| many.clamp(FEWEST, LAYOUTS)).min(most);
    let mut stream = Stream::new(0, b"veilsum mechanism layout");
    let (mut kept, mut errors, mut sampling) = ([0usize; 2], Vec::new(), Vec::new());
    for _ in 0..layouts {
        let (truth, cloud) = shape.layout(domain, k, noise.expected_rows as f64, &mut stream)?;
        let first = |mechanism: &Mechanism<'_>, noise: Option<&mut Stream>| match (&start, &recipe.seeding) {
            (None, Seeding::Candidates(params)) => {
                mechanism.candidates(&cloud, params, noise)?.start(k, params.seed, params.tries)
            }
            (start, _) => start.clone().ok_or(Error::NoCentresYet),
        };
        let begin = first(&mechanism, Some(&mut stream))?;
        let noisy = mechanism.run(&cloud, begin, 0, Some(&mut stream))?.centres;
        let quiet = plain.run(&cloud, first(&plain, None)?, 0, None)?.centres;
        // Of overlapping clusters another partition may be better than that around their true places.
        let rest = |start: &Centres| plain.run(&cloud, start.clone(), 0, None).map(|fit| fit.centres);
        let known = [rest(&truth)?, quiet.clone(), rest(&noisy)?].map(|of| (plain.objective(&cloud, &of), of));
        let (least, best) = known.into_iter().min_by(|(a, _), (b, _)| a.total_cmp(b)).ok_or(Error::NoCentresYet)?;
        for (kept, found) in kept.iter_mut().zip([&noisy, &quiet]) {
            let stays = lost(found, &best, domain) == 0 && plain.objective(&cloud, found) < WORSE * least;
            *kept += usize::from(stays);
        }
        let other = plain.run(&cloud.sampled(SAMPLE, &mut stream), best.clone(), 0, None)?.centres;
        errors.push(off(&noisy, &best, domain)?);
        sampling.push(off(&other, &best, domain)? / SAMPLE);
    }
    let [kept, kept_without_noise] = kept.map(|kept| kept as f64 / layouts as f64);
    let [low, error, high] = quantiles(errors, [OUTSIDE, 0.5, 1.0 - OUTSIDE]);
    let [sampling] = quantiles(sampling, [0.5]);
    Ok(Some(Forecast { error, range: [low, high], sampling, kept, kept_without_noise, layouts, rows: None }))
}

/// Distances in eight columns that one layout takes, with noise and without: in its rounds and for its first centres.
fn work_of(recipe: &Recipe, rounds: u32, k: u64, d: u64) -> u64 {
    let points = (POINTS as u64 / k.max(1)).max(POINTS_EACH as u64).saturating_mul(k);
    let rounds = [5, OF_A_ROUND, u64::from(rounds) + 1, points, k].into_iter().fold(1, u64::saturating_mul);
    let first = match &recipe.seeding {
        Seeding::Candidates(params) => params.distances(u32::try_from(k).unwrap_or(u32::MAX)).saturating_mul(2),
        _ => 0,
    };
    rounds.saturating_add(first).saturating_mul(8 + d) / 8
}

/// Root mean square of how far coordinates of centres, in the best pairs, lie from each other, as a part of the column's range.
fn off(found: &Centres, other: &Centres, domain: &Domain) -> Result<f64, Error> {
    let d = domain.columns();
    let parts = |centres: &Centres| {
        let values = centres.as_slice().iter().enumerate();
        Centres::new(centres.k(), d, values.map(|(at, x)| x / domain.side(at % d)).collect())
    };
    let apart = matched_distance(&parts(found)?, &parts(other)?)?.frobenius;
    Ok(apart / (found.as_slice().len() as f64).sqrt())
}

/// Of some numbers, those below which these parts of them lie.
fn quantiles<const N: usize>(mut of: Vec<f64>, parts: [f64; N]) -> [f64; N] {
    of.sort_by(f64::total_cmp);
    parts.map(|part| of[((of.len() - 1) as f64 * part).round() as usize])
}

impl Mechanism<'_> {
    /// What the rounds make small.
    fn objective(&self, cloud: &Cloud, centres: &Centres) -> f64 {
        let mut u = vec![0.0; centres.k()];
        let of = |x: &[f64], sum: &mut [f64]| match self.recipe.algorithm.traits().fuzzifier {
            Some(m) => sum[0] += distance::memberships(x, centres.rows(), m, &mut u),
            None => sum[0] += distance::nearest(x, centres.rows()).1,
        };
        Self::sum(cloud, centres.columns(), 1, of)[0]
    }
}

impl Shape {
    /// K clusters of so many rows together: their true places and the rows.
    fn layout(&self, domain: &Domain, k: usize, rows: f64, stream: &mut Stream) -> Result<(Centres, Cloud), Error> {
        let (d, numbers) = (domain.columns(), domain.numbers());
        let between = |[low, high]: [f64; 2], stream: &mut Stream| low + (high - low) * stream.unit();
        let narrow = between(NARROW.map(f64::ln), stream).exp();
        // Everything is in parts of the columns' ranges.
        let mut truth: Vec<f64> = Vec::with_capacity(k * d);
        for _ in 0..k {
            let drawn = (0..DRAWS).map(|_| place(domain, narrow, stream)).collect::<Vec<_>>();
            let alone = |at: &Vec<f64>| distance::nearest(at, truth.chunks_exact(d)).1;
            truth.extend(drawn.into_iter().max_by(|a, b| alone(a).total_cmp(&alone(b))).unwrap_or_default());
        }
        let truth = Centres::new(k, d, truth)?;
        let gap = closest(&truth).unwrap_or(0.5);
        // As many deviations apart in two columns; in more of them rather as many in each, or as far against how far rows lie away.
        let flat = (2.0 / d.max(2) as f64).powf(between([0.0, 0.5], stream));
        let deviation = gap / between(APART.map(f64::ln), stream).exp() * flat;
        let mut points = Vec::with_capacity(k * self.normal.len());
        for centre in truth.rows() {
            let deviations: Vec<f64> = (0..numbers).map(|_| deviation * between(STRETCH, stream)).collect();
            for normal in self.normal.chunks_exact(d) {
                let number = |j: usize| (centre[j] + deviations[j] * normal[j]).clamp(0.0, 1.0);
                points.extend((0..numbers).map(number));
                let mut rest = &centre[numbers..];
                for categories in domain.categories() {
                    let shares = rest.split_off(..*categories).unwrap_or_default();
                    let mut left = stream.unit();
                    let found = shares.iter().position(|share| {
                        left -= share;
                        left < 0.0
                    });
                    points.extend((0..*categories).map(|at| f64::from(u8::from(Some(at) == found))));
                }
            }
        }
        let working = |values: Vec<f64>| -> Vec<f64> {
            let within = |(low, high): (f64, f64), part: f64| low + (high - low) * part;
            values.into_iter().enumerate().map(|(at, x)| within(domain.working_interval(at % d), x)).collect()
        };
        let shares: Vec<f64> = (0..k).map(|_| between(SHARES, stream)).collect();
        let each = rows / shares.iter().sum::<f64>() / self.each as f64;
        let weights = shares.iter().flat_map(|share| std::iter::repeat_n(share * each, self.each)).collect();
        Ok((Centres::new(k, d, working(truth.as_slice().to_vec()))?, Cloud { points: working(points), weights }))
    }
}

/// A place of a cluster in the middle part of the ranges of numbers, with shares of categories, some of them large.
fn place(domain: &Domain, narrow: f64, stream: &mut Stream) -> Vec<f64> {
    let mut place: Vec<f64> = (0..domain.numbers()).map(|_| 0.5 + narrow * (stream.unit() - 0.5)).collect();
    for categories in domain.categories() {
        let shares: Vec<f64> = (0..*categories).map(|_| stream.unit().powi(4)).collect();
        let all: f64 = shares.iter().sum();
        place.extend(shares.iter().map(|share| share / all));
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::Candidates;
    use crate::metrics::gap;
    use crate::{Algorithm, Scaling};

    fn plan(k: u32, rho: f64, expected_rows: u64) -> (Recipe, Domain) {
        let algorithm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 10 };
        let mut recipe = Recipe::plain(algorithm, k, Seeding::Candidates(Candidates::usual(1)));
        recipe.noise = Some(Noise::usual(rho, expected_rows));
        (recipe, Domain::new(vec![-1.0; 2], vec![1.0; 2], Scaling::None).unwrap())
    }

    fn told(k: u32, rho: f64, expected_rows: u64) -> Forecast {
        let (recipe, domain) = plan(k, rho, expected_rows);
        forecast(&recipe, &domain, 1.0).unwrap().expect("noise")
    }

    #[test]
    fn less_noise_and_fewer_clusters_keep_more() {
        let good = told(3, 0.0244, 3000);
        assert!(
            good.kept >= 0.95 && good.kept_without_noise >= 0.95 && good.useful() && good.rows.is_none(),
            "{good:?}"
        );
        assert!((0.0005..0.02).contains(&good.error) && (0.0002..0.01).contains(&good.sampling), "{good:?}");
        assert_eq!(told(3, 0.0244, 3000), good, "the same plan");
        // More rows stand against the same noise, and it says how many.
        let drowned = told(3, 0.000087, 3000);
        assert!(!drowned.useful() && drowned.kept_without_noise == good.kept_without_noise, "{drowned:?}");
        let enough = drowned.rows.expect("so many rows");
        assert!(
            enough > 6000 && told(3, 0.000087, 2 * enough).useful() && !told(3, 0.000087, enough / 4).useful(),
            "{drowned:?}"
        );
        // Many clusters fall to first centres already: that is no fault of the noise.
        let many = told(15, 1.05, 5000);
        assert!(many.kept < KEPT && many.kept_without_noise < KEPT && many.useful(), "{many:?}");
        assert!(told(1, 0.0244, 3000).kept > 0.99);
    }

    /// Both errors fall with the rows: samples about as 1/sqrt(N); noise by about as much, because the clip widens.
    #[test]
    fn errors_fall_with_rows() {
        let [few, many] = [3000, 12_000].map(|rows| told(3, 0.0244, rows));
        assert!((1.7..2.2).contains(&(few.sampling / many.sampling)), "{few:?} {many:?}");
        assert!((1.5..4.0).contains(&(few.error / many.error)), "{few:?} {many:?}");
    }

    #[test]
    fn a_cluster_without_a_centre_near_it_is_lost() {
        let (_, domain) = plan(2, 0.0244, 100);
        let truth = Centres::known(vec![[-0.5, 0.0], [0.5, 0.0]]);
        assert_eq!(lost(&truth, &truth, &domain), 0);
        assert_eq!(lost(&Centres::known(vec![[0.45, 0.0], [-0.9, 0.0]]), &truth, &domain), 0);
        assert_eq!(lost(&Centres::known(vec![[0.45, 0.0], [0.55, 0.0]]), &truth, &domain), 1);
        assert_eq!(gap(&truth, &domain), 1.0);
    }

    /// The work is bounded, whatever K and the columns are, and where it would be too much nothing is forecast.
    #[test]
    fn large_plans_are_not_played() {
        for (k, d, played) in [(3, 2, true), (15, 2, true), (50, 20, true), (400, 10, false), (4096, 64, false)] {
            let (recipe, _) = plan(k, 0.245, 100_000);
            assert_eq!(work_of(&recipe, 10, u64::from(k), d) <= MOST_WORK, played, "{k} {d}");
        }
        let (recipe, domain) = plan(4096, 0.245, 100_000);
        let found = forecast(&recipe, &domain, 1.0).unwrap().expect("noise");
        assert!(found.layouts == 0 && !found.useful() && found.rows.is_none(), "{found:?}");
    }

    #[test]
    fn without_noise_there_is_nothing_to_play() {
        let (mut recipe, domain) = plan(3, 0.0244, 3000);
        recipe.noise = None;
        assert_eq!(forecast(&recipe, &domain, 1.0).unwrap(), None);
    }
}
