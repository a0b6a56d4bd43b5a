//! A Gaussian mixture and Gustafson & Kessel on noisy totals (specification, section 17): a fixed number of rounds around the clusters
//! themselves, each row pulling only so far. The result is the mean of the last rounds' centres and covariances.
//!
//! A weight below its noise says nothing, so that cluster stays; no weight counts as less than twice the noise. What noise leaves of a
//! covariance is moved to one that rows can have. Likelihood and objective are not asked for.

use super::last::Last;
use crate::algorithm::{Algorithm, Fit, Iteration, Round, Shapes, Walls, check_rounds, confined};
use crate::privacy::Levels;
use crate::query::{ShapeModel, ShapedShifts, ShapedSums, tamed};
use crate::shape::{add_square, extents, triangle};
use crate::totals_check::check_values;
use crate::{Centres, Domain, Error, Query};

/// The rounds of one K.
#[derive(Debug, Clone)]
pub(in crate::method) struct Noisy {
    clusters: ShapedSums,
    weights: Vec<f64>,
    history: Vec<Round>,
    max_rounds: u32,
    levels: Levels,
    domain: Domain,
    /// Centres and covariances of the last rounds.
    last: Last,
}

impl Noisy {
    /// The rounds from these centres on, with the method's first covariances.
    pub(in crate::method) fn new(
        start: &Centres,
        algorithm: &Algorithm,
        levels: Levels,
        domain: &Domain,
    ) -> Result<Self, Error> {
        let max_rounds = algorithm.traits().rounds;
        check_rounds(0.0, max_rounds)?;
        let Some(Query::ShapedSums(clusters)) = algorithm.asks(start).pop() else {
            return Err(Error::parameter("this method has no covariances"));
        };
        let last = Last::of(clusters.centres.as_slice().len() + clusters.covariances.len());
        Ok(Self {
            clusters,
            weights: Vec::new(),
            history: Vec::new(),
            max_rounds,
            levels,
            domain: domain.clone(),
            last,
        })
    }

    fn question(&self) -> ShapedShifts {
        let round = u32::try_from(self.history.len()).unwrap_or(u32::MAX);
        ShapedShifts { clusters: self.clusters.clone(), clip: self.levels.pull_in_parts(round), round }
    }

    /// The clusters that these totals give, and how far their centres moved.
    fn moved(&self, asked: &ShapedShifts, values: &[f64]) -> Result<(ShapedSums, f64), Error> {
        let (k, d) = (self.clusters.centres.k(), self.clusters.centres.columns());
        let levels = self.levels.of(&asked.clone().into(), &self.domain).unwrap_or_default();
        let noise = levels.first().map_or(0.0, |level| level.deviation);
        let (weights, rest) = values.split_at(k);
        let (shifts, scatter) = rest.split_at(k * d);
        let by = extents(&self.domain);
        let (mut centres, mut covariances) =
            (self.clusters.centres.as_slice().to_vec(), self.clusters.covariances.clone());
        let own = centres.chunks_exact_mut(d).zip(covariances.chunks_exact_mut(triangle(d)));
        let of = weights.iter().zip(shifts.chunks_exact(d)).zip(scatter.chunks_exact(triangle(d)));
        for ((centre, covariance), ((weight, shift), scatter)) in own.zip(of).filter(|(_, ((w, _), _))| **w >= noise) {
            let weight = weight.max(2.0 * noise).max(1.0);
            let delta: Vec<f64> = shift.iter().map(|sum| sum / weight).collect();
            centre.iter_mut().zip(&delta).zip(&by).for_each(|((c, delta), by)| *c += delta * by);
            // Around the new centre, as without noise.
            let mut matrix: Vec<f64> = scatter.iter().map(|sum| sum / weight).collect();
            add_square(&mut matrix, &delta, -1.0);
            covariance.copy_from_slice(&tamed(&matrix, d, self.clusters.floor));
        }
        let centres = Centres::new(k, d, centres).map_err(Error::implausible)?;
        let centres = confined(&centres, &self.domain);
        let shift = centres.frobenius_distance(&self.clusters.centres).unwrap_or_default();
        let model = match &self.clusters.model {
            ShapeModel::Mixture { .. } => ShapeModel::Mixture { weights: shares(weights) },
            other => other.clone(),
        };
        Ok((ShapedSums { centres, covariances, model, floor: self.clusters.floor }, shift))
    }
}

/// Weights of a mixture: what is below 0 counts as 0.
fn shares(weights: &[f64]) -> Vec<f64> {
    let sum: f64 = weights.iter().map(|weight| weight.max(0.0)).sum();
    let share = |weight: &f64| if sum > 0.0 { weight.max(0.0) / sum } else { 1.0 / weights.len() as f64 };
    weights.iter().map(share).collect()
}

impl Iteration for Noisy {
    fn ask(&self) -> Query {
        self.question().into()
    }

    fn take(&mut self, values: &[f64], _: Option<u64>, _: &Walls) -> Result<bool, Error> {
        let (k, d) = (self.clusters.centres.k(), self.clusters.centres.columns());
        check_values(values, ShapedShifts::width(k, d))?;
        let asked = self.question();
        let (mut next, shift) = self.moved(&asked, values)?;
        let mut last = self.last.clone();
        if asked.round >= self.levels.first_of_last(self.max_rounds) {
            last.add(next.centres.as_slice().iter().chain(&next.covariances));
        }
        let over = asked.round + 1 >= self.max_rounds;
        if let (true, Some(mut mean)) = (over, last.mean()) {
            next.covariances = mean.split_off(k * d);
            let mean = Centres::new(k, d, mean).map_err(Error::implausible)?;
            next.centres = confined(&mean, &self.domain);
        }
        // Nothing has changed up to here: the caller may repeat the round after an error.
        (self.clusters, self.last) = (next, last);
        self.weights = values[..k].iter().map(|weight| weight.max(0.0)).collect();
        self.history.push(Round { round: asked.round + 1, shift });
        Ok(over)
    }

    fn fit(&self) -> Fit {
        let clusters = &self.clusters;
        let weights = match &clusters.model {
            ShapeModel::Mixture { weights } => Some(weights.clone()),
            ShapeModel::GustafsonKessel { .. } => None,
        };
        let triangles = clusters.covariances.chunks_exact(triangle(clusters.centres.columns()));
        let covariances = triangles.map(<[f64]>::to_vec).collect();
        let shapes = Some(Shapes { weights, covariances, log_likelihood: None, objective: None });
        let (weights, history) = (self.weights.clone(), self.history.clone());
        Fit { weights, history, shapes, ..Fit::at(clusters.centres.clone()) }
    }
}

#[cfg(test)]
mod tests {
    use crate::method::Seeding;
    use crate::privacy::Noise;
    use crate::{Algorithm, Centres, Domain, OutOfBox, Prepared, Recipe, Rows, Scaling, pooled, random::Stream};

    /// Two clusters of which one is long: with hardly any noise the rounds find centres and covariances.
    #[test]
    fn a_long_and_a_round_cluster_are_found() {
        let domain = Domain::new(vec![0.0; 2], vec![1.0; 2], Scaling::Box).unwrap();
        let mut stream = Stream::new(5, b"veilsum test stream     ");
        let mut values = Vec::new();
        for _ in 0..1000 {
            let [a, b] = stream.normal_pair();
            values.extend([0.3 + 0.02 * a, 0.3 + 0.05 * b]);
            let [a, b] = stream.normal_pair();
            values.extend([0.7 + 0.03 * a, 0.7 + 0.03 * b]);
        }
        let site = Prepared::new(&Rows::new(values, 2).unwrap(), &domain, OutOfBox::Clip).unwrap();
        let start = Centres::known(vec![[0.35, 0.4], [0.6, 0.65]]);
        for algorithm in [
            Algorithm::Gmm { epsilon: 0.0, max_rounds: 20, regularisation: 1e-6 },
            Algorithm::Gk { m: 1.5, epsilon: 0.0, max_rounds: 20, regularisation: 1e-6 },
        ] {
            let name = algorithm.name();
            let mut recipe = Recipe::plain(algorithm, 2, Seeding::Given { centres: start.clone() });
            recipe.noise = Some(Noise { tau: 0.5, ..Noise::usual(900.0, 2000) });
            let mut run = recipe.run(&domain, 1).unwrap();
            let outcome = pooled::plain_federated(&mut run, std::slice::from_ref(&site)).unwrap();
            assert!((outcome.centres.row(0)[0] - 0.3).abs() < 0.01 && (outcome.centres.row(1)[1] - 0.7).abs() < 0.01);
            let covariances = outcome.shapes.unwrap().covariances;
            let deviations: Vec<f64> = [0, 2].iter().map(|i| covariances[0][*i].sqrt()).collect();
            assert!((deviations[1] / deviations[0] - 2.5).abs() < 0.3, "{name}: {deviations:?}");
        }
    }
}
