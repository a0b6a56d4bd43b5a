//! Fuzzy c-means and k-means on noisy totals (specification, section 17): a fixed number of rounds, first around the middle
//! of the box, then around the centres themselves (FastLloyd, Diaa, Humphries & Kerschbaum 2025). The result is the mean of the last
//! rounds' centres, in which much of the noise of single rounds cancels.
//!
//! What follows a total is post-processing and costs no privacy ([NOI-7]): a weight below its noise says nothing, so that centre stays;
//! no weight counts as less than twice the noise; centres stay in the box. Totals of honest sites may be negative, so no
//! total is implausible here but one of another length.

use super::choice::Pick;
use super::recipe::{DESCRIBING, Recipe, Seeding};
use crate::algorithm::{Algorithm, Beginning, Fit, Iteration, Pulled, Round, Traits, Walls, check_rounds, confined};
use crate::distance::check_fuzzifier;
use crate::privacy::{Extent, Levels, MOST_ROWS_OF_A_PERSON, Unit};
use crate::query::Shifts;
use crate::totals_check::check_values;
use crate::{Centres, Domain, Error, Query, distance, refuse};

impl Recipe {
    /// Whether it can be run and accounted for under its noise, where it has any ([NOI-5]).
    ///
    /// # Errors
    /// [`Error`] with a sentence that says what to change.
    pub(super) fn check_noise(&self, domain: &Domain) -> Result<(), Error> {
        let Some(noise) = &self.noise else { return Ok(()) };
        let check = |bad: bool, what: &str| refuse(bad, || Error::parameter(format!("under noise {what}")));
        let rho = (LEAST_NANO_RHO..=MOST_NANO_RHO).contains(&noise.nano_rho) && noise.retries <= MOST_RETRIES;
        check(!rho, "rho lies between 0.0001 and 1000, and at most 100 lost rounds are asked again")?;
        let (seeds, prepares) = (matches!(self.seeding, Seeding::Candidates(_)), self.prepares());
        let shares = [
            (noise.count_share, true),
            (noise.validation_share, true),
            (noise.seeding_share, seeds),
            (noise.standardising_share, prepares),
        ];
        let usable = |(share, asked): &(f64, bool)| (0.0..=0.9).contains(share) && !(*asked && *share == 0.0);
        let each = shares.iter().all(usable);
        check(!each, "every part of the run that asks something has a share above 0, at most 0.9")?;
        let all: f64 = shares.iter().map(|(share, _)| share).sum();
        check(all >= 0.95, "the shares leave a twentieth for the rounds")?;
        check(!(0.0..=1.0).contains(&noise.tau), "tau lies between 0 and 1")?;
        let lost = noise.tau > 0.0 && noise.absolute_rounds == 0 && matches!(self.seeding, Seeding::Uniform { .. });
        check(lost, "uniform first centres need a round around the middle of the box (absolute_rounds 1 or more)")?;
        let none = noise.expected_rows == 0 || noise.rows_of_unit() < 1.0;
        check(none, "the number of expected rows, and of rows of a person, is at least 1")?;
        let many = matches!(noise.unit, Unit::Person { rows } if rows > MOST_ROWS_OF_A_PERSON);
        check(many, "at most 1000 rows of a person count")?;
        check(
            self.restarts > 1,
            "there is one start: restarts would share the budget, and only pay if first centres are bad (restarts = 1)",
        )?;
        let traits = self.algorithm.traits();
        let (epsilon, only) = (traits.tolerance_under_noise, "only fcm, kmeans and describe can be run");
        check(epsilon.is_none() && traits.is_exact, only)?;
        let why = "what a site finds by a run of its own may move by any amount with one row, so that no noise is enough, and such a \
                   plan can only be exact";
        check(epsilon.is_none(), &format!("{only}: {why}"))?;
        let fixed = epsilon == Some(0.0) && traits.rounds <= 1_000;
        check(
            !fixed,
            "the number of rounds is fixed, at most 1000, and nothing stops before (epsilon of the method 0)",
        )?;
        check(self.range.is_some(), "sites do not choose a range of K, because one row may move a whole site's vote")?;
        let several = self.clusters.min < self.clusters.max;
        let gap = self.choice.by == Pick::Gap;
        check(several && !gap, "the gap chooses K: other indices drown in the noise of their totals")?;
        check(several && noise.tau == 0.0, "the gap chooses K by rounds around the centres (dp_tau above 0)")?;
        check_fuzzifier(self.judge_m())?;
        self.levels(domain).map(|_| ())
    }

    /// Whether the last round may clip how far a row pulls, so that the centres are not those of the plain method.
    pub fn clips(&self) -> bool {
        let rounds = self.algorithm.traits().rounds;
        self.noise.is_some_and(|noise| noise.tau > 0.0 && rounds > noise.absolute_rounds)
    }

    /// What every total of this recipe may say, if it has noise.
    ///
    /// # Errors
    /// [`Error`] for a method that cannot be run under noise.
    pub fn levels(&self, domain: &Domain) -> Result<Option<Levels>, Error> {
        let Some(noise) = &self.noise else { return Ok(None) };
        let traits = self.algorithm.traits();
        refuse(traits.tolerance_under_noise.is_none(), || Error::parameter("this method cannot be run under noise"))?;
        let describes = traits.describes.is_some();
        let extent = Extent {
            preparing: if describes { DESCRIBING } else { self.preparation.questions() },
            seeding: self.seeding_questions(),
            rounds: if describes { 0 } else { traits.rounds },
            members: self.members() as u32,
            judges: !describes,
            questions: self.max_questions(),
            most_clusters: self.clusters.max,
        };
        Ok(Some(Levels::new(noise, extent, domain)))
    }

    /// The iteration of one K: the algorithm's own, or the one under noise for all that find clusters.
    pub(super) fn begin(&self, at: Beginning<'_>) -> Result<Box<dyn Iteration>, Error> {
        match self.levels(at.domain)?.filter(|_| self.algorithm.traits().describes.is_none()) {
            Some(levels) => Ok(Box::new(Noisy::new(0, at.start.clone(), &self.algorithm, levels, at.domain)?)),
            None => self.algorithm.begin(at),
        }
    }
}

/// Largest rho of a plan: 1,000, in 10^-9.
const MOST_NANO_RHO: u64 = 1_000_000_000_000;
/// Least: rounding the prices of all totals up is little beside it.
const LEAST_NANO_RHO: u64 = 100_000;
/// Lost rounds that may be asked again at most.
const MOST_RETRIES: u32 = 100;

/// The rounds of one K.
#[derive(Debug, Clone)]
pub(super) struct Noisy {
    fit: Fit,
    m: Option<f64>,
    max_rounds: u32,
    levels: Levels,
    domain: Domain,
    /// The centres of the last rounds.
    last: Vec<Vec<f64>>,
    /// Numbers of [`Pulled`] in those of them that are around the centres.
    pulled: Vec<Vec<f64>>,
    /// How far rows lie from their centres (root mean square): the largest that a round around the centres told, since a round cannot
    /// see farther than its rows may pull.
    radius: Option<f64>,
}

impl Noisy {
    /// The rounds from `round` on, counted from 0, at these centres.
    pub(super) fn new(
        round: u32,
        start: Centres,
        algorithm: &Algorithm,
        levels: Levels,
        domain: &Domain,
    ) -> Result<Self, Error> {
        let Traits { rounds: max_rounds, fuzzifier: m, .. } = algorithm.traits();
        check_rounds(0.0, max_rounds)?;
        let mut fit = Fit::at(start);
        fit.history = (1..=round).map(|round| Round { round, shift: 0.0 }).collect();
        let (domain, last, pulled) = (domain.clone(), Vec::new(), Vec::new());
        Ok(Self { fit, m, max_rounds, levels, domain, last, pulled, radius: None })
    }

    fn shifts(&self) -> Shifts {
        let round = u32::try_from(self.fit.history.len()).unwrap_or(u32::MAX);
        let (centres, middle) = (self.fit.centres.clone(), self.levels.is_around_middle(round));
        let clip = self.levels.pull(round, centres.k(), self.radius);
        Shifts { centres, m: self.m, middle, clip, round }
    }
}

/// The mean of what the last rounds found, number by number.
fn mean(found: &[Vec<f64>]) -> Option<Vec<f64>> {
    let sum = |at: usize| found.iter().fold(0.0, |sum, found| sum + found[at]);
    Some((0..found.first()?.len()).map(|at| sum(at) / found.len() as f64).collect())
}

/// Draws of first centres among which the most spread one counts.
const DRAWS: u64 = 200;

/// First centres far from each other and from the walls: of [`DRAWS`] draws uniform in the box, of the seeds `seed` + i 2^32,
/// the first of those with the largest least distance, where a wall counts as a centre behind it. Noise makes two centres that
/// begin beside each other stay together; where the rows are plays no part.
pub(super) fn spread(domain: &Domain, k: usize, seed: u64) -> Result<Centres, Error> {
    let mut best: Option<(f64, Centres)> = None;
    for draw in 0..DRAWS {
        let centres = Centres::uniform(domain, k, seed.wrapping_add(draw << 32))?;
        let least = least_distance(&centres, domain);
        if best.as_ref().is_none_or(|(known, _)| least > *known) {
            best = Some((least, centres));
        }
    }
    best.map_or_else(|| Centres::uniform(domain, k, seed), |(_, centres)| Ok(centres))
}

fn least_distance(centres: &Centres, domain: &Domain) -> f64 {
    let mut least = f64::INFINITY;
    for (c, centre) in centres.rows().enumerate() {
        for (column, x) in centre.iter().enumerate() {
            let (low, high) = domain.working_interval(column);
            least = least.min(2.0 * (x - low).min(high - x));
        }
        least = centres.rows().take(c).map(|other| distance::euclidean(centre, other)).fold(least, f64::min);
    }
    least
}

impl Iteration for Noisy {
    fn ask(&self) -> Query {
        Query::Shifts(self.shifts())
    }

    fn take(&mut self, values: &[f64], _: Option<u64>, _: &Walls) -> Result<bool, Error> {
        let (k, d) = (self.fit.centres.k(), self.fit.centres.columns());
        check_values(values, Shifts::width(k, d))?;
        let (weights, rest) = values.split_at(k);
        let (sums, square) = rest.split_at(k * d);
        let asked = self.shifts();
        let references = asked.references(&self.domain);
        let [noise, _, noise_of_square] = self.levels.of_round(asked.clip).map(|level| level.deviation);
        let mut next = self.fit.centres.as_slice().to_vec();
        let clusters = next.chunks_exact_mut(d).zip(sums.chunks_exact(d)).zip(references.chunks_exact(d));
        for (((centre, sum), reference), weight) in clusters.zip(weights).filter(|(_, weight)| **weight >= noise) {
            let weight = weight.max(2.0 * noise).max(1.0);
            centre.iter_mut().zip(sum).zip(reference).for_each(|((centre, sum), r)| *centre = r + sum / weight);
        }
        let next = Centres::new(k, d, next).map_err(Error::implausible)?;
        let next = confined(&next, &self.domain);
        let shift = next.frobenius_distance(&self.fit.centres).unwrap_or_default();
        // Nothing has changed up to here: the caller may repeat the round after an error.
        let rows = weights.iter().sum::<f64>().max(noise).max(1.0);
        if !asked.middle {
            // One deviation less: the largest of several draws would else widen the next clip, and that the next draw.
            let radius = ((square[0] - noise_of_square).max(noise_of_square) / rows).sqrt();
            self.radius = Some(self.radius.unwrap_or(0.0).max(radius));
        }
        self.fit.centres = next;
        if asked.round >= self.levels.first_of_last(self.max_rounds) {
            self.last.push(self.fit.centres.as_slice().to_vec());
            if !asked.middle {
                let found = [square[0] / rows, asked.clip, square[0]];
                self.pulled.push([&found[..], weights].concat());
                self.fit.pulled = mean(&self.pulled).map(|mean| Pulled {
                    square: mean[0],
                    clip: mean[1],
                    total: mean[2],
                    weights: mean[3..].to_vec(),
                });
            }
        }
        self.fit.weights = weights.iter().map(|weight| weight.max(0.0)).collect();
        self.fit.history.push(Round { round: asked.round + 1, shift });
        let over = self.fit.history.len() >= self.max_rounds as usize;
        if let (true, Some(mean)) = (over, mean(&self.last)) {
            let mean = Centres::new(k, d, mean).map_err(Error::implausible)?;
            self.fit.centres = confined(&mean, &self.domain);
        }
        Ok(over)
    }

    fn fit(&self) -> Fit {
        self.fit.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::Noise;
    use crate::{Algorithm, OutOfBox, Prepared, Recipe, Rows, Scaling, method::Seeding, pooled};

    fn noisy() -> (Noisy, f64) {
        let domain = Domain::new(vec![0.0], vec![1.0], Scaling::Box).unwrap();
        let algorithm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 4 };
        let start = Centres::known(vec![[0.2], [0.9]]);
        let mut recipe = Recipe::plain(algorithm, 2, Seeding::Given { centres: start.clone() });
        recipe.noise = Some(Noise::usual(0.0244, 1000).from_anywhere());
        let levels = recipe.levels(&domain).unwrap().unwrap();
        let noisy = Noisy::new(0, start, &recipe.algorithm, levels, &domain).unwrap();
        (noisy, levels.of_round(levels.pull(0, 2, None))[0].deviation)
    }

    fn walls(run: &Noisy) -> Walls {
        Walls::fine(&run.domain)
    }

    /// One cluster over a skewed column, totals without noise: clipped pulls stop short of the mean, and how far a row may pull grows
    /// with the budget.
    #[test]
    fn one_cluster_is_the_mean_if_no_row_is_clipped() {
        let domain = Domain::new(vec![0.0], vec![1.0], Scaling::Box).unwrap();
        let rows = Rows::new((0..1000).map(|i| if i % 20 == 0 { 1.0 } else { 0.1 }).collect(), 1).unwrap();
        let site = Prepared::new(&rows, &domain, OutOfBox::Clip).unwrap();
        let algorithm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 30 };
        let mut recipe = Recipe::plain(algorithm, 1, Seeding::Uniform { seed: 1 });
        for (tau, rho, off_by) in [(0.0, 1000.0, 0.0..1e-6), (0.25, 1000.0, 0.0..1e-6), (0.25, 0.01, 0.01..0.2)] {
            recipe.noise = Some(Noise { tau, ..Noise::usual(rho, 1000).from_anywhere() });
            assert_eq!(recipe.clips(), tau > 0.0);
            let mut run = recipe.run(&domain, 1).unwrap();
            let outcome = pooled::plain_federated(&mut run, std::slice::from_ref(&site)).unwrap();
            let off = (outcome.centres.row(0)[0] - 0.145).abs();
            assert!(off_by.contains(&off), "tau {tau}, rho {rho}: off by {off}");
        }
    }

    /// [NOI-7].
    #[test]
    fn what_noise_drowns_stays() {
        let (mut run, noise) = noisy();
        // Cluster 0 is drowned; 1 is floored at twice the noise and moved into the box.
        assert_eq!(run.take(&[0.9 * noise, 1.5 * noise, 7.0, 0.2 * noise, 0.0], None, &walls(&run)), Ok(false));
        let centres = run.fit().centres;
        assert_eq!(centres.row(0), [0.2]);
        assert!((centres.row(1)[0] - 0.6).abs() < 1e-12, "{centres:?}");
        assert_eq!(run.take(&[-5.0, 100.0 * noise, -1e9, 1e9, 0.0], None, &walls(&run)), Ok(false));
        assert_eq!(run.fit().centres.as_slice(), [0.2, 1.0]);
        assert_eq!(run.fit().weights, [0.0, 100.0 * noise]);
    }

    #[test]
    fn first_centres_are_spread_and_always_the_same() {
        let domain = Domain::new(vec![0.0; 2], vec![1.0; 2], Scaling::Box).unwrap();
        for k in 1..6 {
            let found = spread(&domain, k, 7).unwrap();
            assert!(found == spread(&domain, k, 7).unwrap() && found != spread(&domain, k, 8).unwrap());
            let plain = Centres::uniform(&domain, k, 7).unwrap();
            assert!(least_distance(&found, &domain) >= least_distance(&plain, &domain));
            assert!(least_distance(&found, &domain) > 0.5 / (1.0 + (k as f64).sqrt()), "{k}: {found:?}");
        }
    }

    #[test]
    fn rounds_go_over_to_the_centres_and_end() {
        let (mut run, _) = noisy();
        run.max_rounds = 6;
        let mut asked = Vec::new();
        // Rows lie 0.1 from their centres, or nobody can tell for the noise.
        for (square, last) in [(9.0, false), (9.0, false), (9.0, false), (10.0, false), (-1.0, false), (0.0, true)] {
            let Query::Shifts(shifts) = run.ask() else { panic!("shifts") };
            asked.push((shifts.round, shifts.middle, (shifts.clip * 1000.0).round()));
            assert_eq!(run.take(&[500.0, 500.0, 0.0, 0.0, square], None, &walls(&run)), Ok(last));
        }
        let around: Vec<f64> =
            asked.split_off(3).into_iter().map(|(_, middle, clip)| if middle { 0.0 } else { clip }).collect();
        assert_eq!(asked, [(0, true, 500.0), (1, true, 500.0), (2, true, 500.0)]);
        assert!(around[0] == 125.0 && around[1] == 192.0 && around[2] > 30.0, "{around:?}");
        assert!(run.take(&[1.0; 4], None, &walls(&run)).is_err() && !run.fit().converged);
        assert!(run.take(&[1.0, f64::NAN, 0.0, 0.0, 0.0], None, &walls(&run)).is_err());
    }
}
