//! What the methods with covariances have in common: the update, and a last question about where the rounds have ended.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::spec::{Beginning, Iteration};
use super::update::{Fit, Round, Shapes, Stop, Walls, check_rounds, clear, moved};
use crate::query::{LEAST_FLOOR, MAX_SHAPE_NUMBERS, MAX_SHAPED_COLUMNS, ShapeModel, ShapedSums, is_wide};
use crate::shape::{add_square, extents, lift, round, triangle};
use crate::totals_check::{check_values, check_weights};
use crate::{Centres, Error, Query};

/// How often the floor is doubled for a covariance that the rounding of coarse totals has left below it.
const MOST_LIFTS: u32 = 20;

/// The parameters that both methods have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) epsilon: f64,
    pub(super) max_rounds: u32,
    pub(super) floor: f64,
}

/// Rounds of a method whose clusters have covariances.
#[derive(Debug, Clone)]
pub(super) struct Shaped {
    limits: Limits,
    stop: Stop,
    fit: Fit,
    model: ShapeModel,
    /// Lower triangles in parts of the box.
    covariances: Vec<f64>,
    /// The fit for each row in the round before.
    before: f64,
    /// Hashes of all parameters that have been asked about.
    asked: Vec<u64>,
    /// Whether the rounds are over, and only the fit of the last update is missing.
    closing: bool,
    /// The fit at the end.
    closed: Option<f64>,
}

/// The first question about some centres: round clusters that together fill the box, of equal weight.
pub(super) fn first(centres: &Centres, model: ShapeModel, floor: f64) -> ShapedSums {
    let (k, d) = (centres.k(), centres.columns());
    // A K-th part of the box has a K^(1/d)-th of its extent, and uniform rows there a twelfth of the square of that.
    let variance = (k as f64).powf(-2.0 / d as f64) / 12.0 + floor;
    ShapedSums { centres: centres.clone(), covariances: round(d, variance).repeat(k), model, floor }
}

impl Shaped {
    pub(super) fn begin(at: Beginning<'_>, model: ShapeModel, limits: Limits) -> Result<Box<dyn Iteration>, Error> {
        check_rounds(limits.epsilon, limits.max_rounds)?;
        let (k, d) = (at.start.k(), at.start.columns());
        if !(LEAST_FLOOR..=1.0).contains(&limits.floor) {
            return Err(Error::parameter(format!("the regularisation must be {LEAST_FLOOR} to 1")));
        }
        if d > MAX_SHAPED_COLUMNS || k > MAX_SHAPE_NUMBERS / (triangle(d) + d + 1) {
            return Err(Error::parameter(format!(
                "{k} clusters with covariances in {d} columns: {MAX_SHAPED_COLUMNS} columns at most, and {MAX_SHAPE_NUMBERS} \
                 numbers in all covariances; choose fewer columns or clusters"
            )));
        }
        let first = first(at.start, model, limits.floor);
        let mut shaped = Self {
            limits,
            stop: at.stop,
            fit: Fit::at(at.start.clone()),
            model: first.model,
            covariances: first.covariances,
            before: f64::NEG_INFINITY,
            asked: Vec::new(),
            closing: false,
            closed: None,
        };
        shaped.asked.push(shaped.hash());
        Ok(Box::new(shaped))
    }

    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let weights: &[f64] = match &self.model {
            ShapeModel::Mixture { weights } => weights,
            ShapeModel::GustafsonKessel { .. } => &[],
        };
        let all = self.fit.centres.as_slice().iter().chain(&self.covariances).chain(weights);
        all.for_each(|x| x.to_bits().hash(&mut hasher));
        hasher.finish()
    }

    fn is_mixture(&self) -> bool {
        matches!(self.model, ShapeModel::Mixture { .. })
    }

    fn check_fit(&self, fit: f64) -> Result<(), Error> {
        match !self.is_mixture() && fit < 0.0 {
            true => Err(Error::implausible("the sum of squared distances is negative")),
            false => Ok(()),
        }
    }

    /// The rounds are over with this fit of the parameters as they stand.
    fn close(&mut self, weights: &[f64], fit: f64) -> bool {
        (self.fit.weights, self.closed) = (weights.to_vec(), Some(fit));
        true
    }

    /// Moves the clusters that have a weight in `clear`, of these sums and second moments; the others keep centre and covariance.
    fn update(
        &mut self,
        (clear, weights): (&[f64], &[f64]),
        sums: &[f64],
        scatter: &[f64],
        fit: f64,
        walls: &Walls,
    ) -> Result<bool, Error> {
        let d = self.fit.centres.columns();
        let (centres, shift) = moved(&self.fit.centres, sums, clear, self.stop, walls)?;
        let by = extents(&walls.domain);
        let mut covariances = self.covariances.clone();
        let own = covariances.chunks_exact_mut(triangle(d)).zip(scatter.chunks_exact(triangle(d)));
        for (c, (covariance, scatter)) in own.enumerate().filter(|(c, _)| clear[*c] > 0.0) {
            // Around the new centre: Σ w (z - δ)(z - δ)ᵀ / Σ w = Σ w z zᵀ / Σ w - δ δᵀ.
            let (new, old) = (centres.row(c), self.fit.centres.row(c));
            let delta: Vec<f64> = new.iter().zip(old).zip(&by).map(|((new, old), by)| (new - old) / by).collect();
            let mut matrix: Vec<f64> = scatter.iter().map(|x| x / clear[c]).collect();
            add_square(&mut matrix, &delta, -1.0);
            covariance.copy_from_slice(&self.lifted(matrix, c)?);
        }
        let total: f64 = weights.iter().sum();
        let mixed = match &self.model {
            ShapeModel::Mixture { .. } if total > 0.0 => {
                ShapeModel::Mixture { weights: weights.iter().map(|weight| weight / total).collect() }
            }
            other => other.clone(),
        };
        let still = (&centres, &covariances, &mixed) == (&self.fit.centres, &self.covariances, &self.model);
        let now = fit / total;
        let rests = match self.is_mixture() {
            true => (now - self.before).abs() < self.limits.epsilon,
            false => self.stop.holds(shift, self.limits.epsilon),
        };
        (self.fit.centres, self.covariances, self.model, self.before) = (centres, covariances, mixed, now);
        self.fit.weights = weights.to_vec();
        self.fit.converged = still || rests;
        let round = u32::try_from(self.fit.history.len() + 1).unwrap_or(u32::MAX);
        self.fit.history.push(Round { round, shift });
        // Parameters that come back give the same totals for ever: the rest is a cycle.
        let hash = self.hash();
        let again = self.asked.contains(&hash);
        if again {
            self.closed = still.then_some(fit);
        } else {
            self.asked.push(hash);
            self.closing = self.fit.converged || round >= self.limits.max_rounds;
        }
        Ok(again)
    }

    /// A covariance with the floor on its diagonal. Totals of a coarse step may leave one below that; then more is added.
    fn lifted(&self, mut matrix: Vec<f64>, cluster: usize) -> Result<Vec<f64>, Error> {
        let d = self.fit.centres.columns();
        let mut more = self.limits.floor;
        for _ in 0..MOST_LIFTS {
            lift(&mut matrix, d, more);
            if is_wide(&matrix, d, self.limits.floor) {
                return Ok(matrix);
            }
            more *= 2.0;
        }
        Err(Error::implausible(format!("the second moments of cluster {cluster} are those of no rows")))
    }
}

impl Iteration for Shaped {
    fn ask(&self) -> Query {
        let Self { fit, covariances, model, limits, .. } = self;
        let (centres, covariances, model) = (fit.centres.clone(), covariances.clone(), model.clone());
        ShapedSums { centres, covariances, model, floor: limits.floor }.into()
    }

    fn take(&mut self, values: &[f64], rows: Option<u64>, walls: &Walls) -> Result<bool, Error> {
        let (k, d) = (self.fit.centres.k(), self.fit.centres.columns());
        let triangle = triangle(d);
        check_values(values, k * (1 + d + triangle) + 1)?;
        let (weights, rest) = values.split_at(k);
        let (sums, rest) = rest.split_at(k * d);
        let (scatter, fit) = rest.split_at(k * triangle);
        check_weights(weights, rows, "weights")?;
        self.check_fit(fit[0])?;
        // Of a component of a mixture that stands for less than a row, fixed-point totals tell no covariance.
        let least = if self.is_mixture() { 1.0 } else { 0.0 };
        let clear: Vec<f64> =
            clear(weights).into_iter().map(|weight| if weight >= least { weight } else { 0.0 }).collect();
        if self.closing || clear.iter().all(|weight| *weight <= 0.0) {
            return Ok(self.close(weights, fit[0]));
        }
        self.update((&clear, weights), sums, scatter, fit[0], walls)
    }

    fn fit(&self) -> Fit {
        let weights = match &self.model {
            ShapeModel::Mixture { weights } => Some(weights.clone()),
            ShapeModel::GustafsonKessel { .. } => None,
        };
        let triangles = self.covariances.chunks_exact(triangle(self.fit.centres.columns()));
        let (log_likelihood, objective) = if self.is_mixture() { (self.closed, None) } else { (None, self.closed) };
        let covariances = triangles.map(<[f64]>::to_vec).collect();
        Fit { shapes: Some(Shapes { weights, covariances, log_likelihood, objective }), ..self.fit.clone() }
    }
}
