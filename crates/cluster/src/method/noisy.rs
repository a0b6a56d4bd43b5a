//! Fuzzy c-means and k-means on noisy totals (specification, section 18): a fixed number of rounds, first around the middle
//! of the box, then around the centres themselves (FastLloyd, Diaa, Humphries & Kerschbaum 2025).
//!
//! What follows a total is post-processing and costs no privacy: a weight below its noise says nothing, so that centre stays;
//! no weight counts as less than twice the noise; centres stay in the box. Totals of honest sites may be negative, so no
//! total is implausible here but one of another length.

use super::plausible::{check_rounds, check_values, confined};
use super::{Fit, Iteration};
use crate::privacy::Levels;
use crate::query::Shifts;
use crate::{Centres, Domain, MethodError, Query, Round};

/// The rounds of one K.
#[derive(Debug, Clone)]
pub(super) struct Noisy {
    fit: Fit,
    m: Option<f64>,
    max_rounds: u32,
    levels: Levels,
    domain: Domain,
}

impl Noisy {
    pub(super) fn new(
        start: Centres,
        m: Option<f64>,
        max_rounds: u32,
        levels: Levels,
        domain: &Domain,
    ) -> Result<Self, MethodError> {
        check_rounds(0.0, max_rounds)?;
        let fit = Fit { centres: start, weights: Vec::new(), history: Vec::new(), converged: false };
        Ok(Self { fit, m, max_rounds, levels, domain: domain.clone() })
    }

    fn shifts(&self) -> Shifts {
        let round = u32::try_from(self.fit.history.len()).unwrap_or(u32::MAX);
        let (middle, clip) = self.levels.pull(round);
        Shifts { centres: self.fit.centres.clone(), m: self.m, middle, clip, round }
    }
}

impl Iteration for Noisy {
    fn ask(&self) -> Query {
        Query::Shifts(self.shifts())
    }

    fn take(&mut self, values: &[f64], _: Option<u64>) -> Result<bool, MethodError> {
        let (k, d) = (self.fit.centres.k(), self.fit.centres.columns());
        check_values(values, k * (d + 1))?;
        let (weights, sums) = values.split_at(k);
        let asked = self.shifts();
        let references = asked.references(&self.domain);
        let noise = self.levels.of_round(asked.clip)[0].deviation;
        let mut next = self.fit.centres.as_slice().to_vec();
        let clusters = next.chunks_exact_mut(d).zip(sums.chunks_exact(d)).zip(references.chunks_exact(d));
        for (((centre, sum), reference), weight) in clusters.zip(weights).filter(|(_, weight)| **weight >= noise) {
            let weight = weight.max(2.0 * noise).max(1.0);
            centre.iter_mut().zip(sum).zip(reference).for_each(|((centre, sum), r)| *centre = r + sum / weight);
        }
        let next = Centres::new(k, d, next).map_err(|error| MethodError::implausible(error.to_string()))?;
        let next = confined(&next, &self.domain);
        let shift = next.frobenius_distance(&self.fit.centres).unwrap_or_default();
        // Nothing has changed up to here: the caller may repeat the round after an error.
        self.fit.centres = next;
        self.fit.weights = weights.iter().map(|weight| weight.max(0.0)).collect();
        self.fit.history.push(Round { round: asked.round + 1, shift });
        Ok(self.fit.history.len() >= self.max_rounds as usize)
    }

    fn fit(&self) -> Fit {
        self.fit.clone()
    }

    fn confine(&mut self, domain: &Domain) {
        self.domain = domain.clone();
    }

    fn copy(&self) -> Box<dyn Iteration> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::Noise;
    use crate::{Algorithm, Recipe, Scaling, method::Seeding};

    fn noisy() -> (Noisy, f64) {
        let domain = Domain::new(vec![0.0], vec![1.0], Scaling::Box).unwrap();
        let algorithm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 3 };
        let start = Centres::known(vec![[0.2], [0.9]]);
        let mut recipe = Recipe::plain(algorithm, 2, Seeding::Given { centres: start.clone() });
        recipe.noise = Some(Noise::usual(1.0, 1000));
        let levels = recipe.levels(&domain).unwrap().unwrap();
        (Noisy::new(start, Some(2.0), 3, levels, &domain).unwrap(), levels.of_round(levels.pull(0).1)[0].deviation)
    }

    #[test]
    fn what_noise_drowns_stays() {
        let (mut run, noise) = noisy();
        // Cluster 0 is drowned; 1 is floored at twice the noise and moved into the box.
        assert_eq!(run.take(&[0.9 * noise, 1.5 * noise, 7.0, 0.2 * noise], None), Ok(false));
        let centres = run.fit().centres;
        assert_eq!(centres.row(0), [0.2]);
        assert!((centres.row(1)[0] - 0.6).abs() < 1e-12, "{centres:?}");
        assert_eq!(run.take(&[-5.0, 100.0 * noise, -1e9, 1e9], None), Ok(false));
        assert_eq!(run.fit().centres.as_slice(), [0.2, 1.0]);
        assert_eq!(run.fit().weights, [0.0, 100.0 * noise]);
    }

    #[test]
    fn rounds_go_over_to_the_centres_and_end() {
        let (mut run, _) = noisy();
        let mut asked = Vec::new();
        for last in [false, false, true] {
            let Query::Shifts(shifts) = run.ask() else { panic!("shifts") };
            asked.push((shifts.round, shifts.middle, (shifts.clip * 1000.0).round()));
            assert_eq!(run.take(&[500.0, 500.0, 0.0, 0.0], None), Ok(last));
        }
        assert_eq!(asked, [(0, true, 500.0), (1, true, 500.0), (2, false, 125.0)]);
        assert!(run.take(&[1.0; 3], None).is_err() && !run.fit().converged);
        assert!(run.take(&[1.0, f64::NAN, 0.0, 0.0], None).is_err());
    }
}
