//! What the methods with covariances have in common: counts before sums where the plan wants it, clusters frozen that too few
//! stand behind, a last question about where the rounds have ended.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::rounds::too_small;
use super::spec::{Beginning, GroupThreshold, Iteration};
use super::update::{Counted, Fit, Rested, Round, Shapes, Walls, check_rounds, clear, moved};
use crate::query::{LEAST_FLOOR, MAX_SHAPE_NUMBERS, MAX_SHAPED_COLUMNS, RoundHalf, ShapeModel, ShapedSums, is_wide};
use crate::shape::{add_square, extents, lift, round, triangle};
use crate::totals_check::{check_values, check_weights};
use crate::{Centres, MethodError, Query};

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
    rule: GroupThreshold,
    fit: Fit,
    model: ShapeModel,
    /// Lower triangles in parts of the box.
    covariances: Vec<f64>,
    walls: Option<Walls>,
    /// Between the two halves of a round: what the counts allow, and the fit.
    open: Option<(Vec<u32>, f64)>,
    /// The fit for each row in the round before.
    before: f64,
    /// Clusters that the open round leaves where they are because too few rows or sites stand behind them.
    too_small: u32,
    /// Hashes of all parameters that have been asked about.
    asked: Vec<u64>,
    /// Whether the rounds are over, and only the fit of the last update is missing.
    closing: bool,
    /// The fit at the end.
    closed: Option<f64>,
    /// Whether the rule closed a cluster in the last counts.
    small: bool,
}

/// The first question about some centres: round clusters that together fill the box, of equal weight.
pub(super) fn first(centres: &Centres, model: ShapeModel, floor: f64, part: RoundHalf) -> ShapedSums {
    let (k, d) = (centres.k(), centres.columns());
    // A K-th part of the box has a K^(1/d)-th of its extent, and uniform rows there a twelfth of the square of that.
    let variance = (k as f64).powf(-2.0 / d as f64) / 12.0 + floor;
    ShapedSums { centres: centres.clone(), covariances: round(d, variance).repeat(k), model, floor, part }
}

impl Shaped {
    pub(super) fn begin(
        at: Beginning<'_>,
        model: ShapeModel,
        limits: Limits,
    ) -> Result<Box<dyn Iteration>, MethodError> {
        at.rule.check()?;
        check_rounds(limits.epsilon, limits.max_rounds)?;
        let (k, d) = (at.start.k(), at.start.columns());
        if !(LEAST_FLOOR..=1.0).contains(&limits.floor) {
            return Err(MethodError::parameter(format!("the regularisation must be {LEAST_FLOOR} to 1")));
        }
        if d > MAX_SHAPED_COLUMNS || k > MAX_SHAPE_NUMBERS / (triangle(d) + d + 1) {
            return Err(MethodError::parameter(format!(
                "{k} clusters with covariances in {d} columns: {MAX_SHAPED_COLUMNS} columns at most, and {MAX_SHAPE_NUMBERS} \
                 numbers in all covariances; choose fewer columns or clusters"
            )));
        }
        let first = first(at.start, model, limits.floor, RoundHalf::Both);
        let mut shaped = Self {
            limits,
            rule: at.rule,
            fit: Fit::at(at.start.clone()),
            model: first.model,
            covariances: first.covariances,
            walls: None,
            open: None,
            before: f64::NEG_INFINITY,
            too_small: 0,
            asked: Vec::new(),
            closing: false,
            closed: None,
            small: false,
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

    fn part(&self) -> RoundHalf {
        match &self.open {
            Some((list, _)) => RoundHalf::Sums(list.clone()),
            None if self.rule.two_steps() => RoundHalf::Counts,
            None => RoundHalf::Both,
        }
    }

    fn is_mixture(&self) -> bool {
        matches!(self.model, ShapeModel::Mixture { .. })
    }

    fn check_fit(&self, fit: f64) -> Result<(), MethodError> {
        match !self.is_mixture() && fit < 0.0 {
            true => Err(MethodError::implausible("the sum of squared distances is negative")),
            false => Ok(()),
        }
    }

    /// Whether a cluster is moved: enough rows and sites stand behind it, where the rule asks for more than one; and in a mixture
    /// one row at least. A sum of `u^m` is below the number of rows, so that a minimum of one row says nothing of it.
    fn allows(&self, weight: f64, sites: f64) -> bool {
        let GroupThreshold { min_rows, min_sites, .. } = self.rule;
        let rows = if min_rows > 1 { min_rows as f64 - 0.5 } else { f64::from(u8::from(self.is_mixture())) };
        weight > 0.0 && weight >= rows && (min_sites == 1 || sites > f64::from(min_sites) - 0.5)
    }

    /// The rounds are over with this fit of the parameters as they stand.
    fn close(&mut self, weights: &[f64], fit: f64) -> bool {
        (self.fit.weights, self.closed, self.open) = (weights.to_vec(), Some(fit), None);
        true
    }

    /// Parameters of frozen clusters that came to rest are no fixed point, and the fit must not say that they are.
    fn settle(&mut self) {
        if self.fit.converged && self.too_small > 0 {
            let rested = Rested { too_small: self.too_small, hardly_changed: 0 };
            (self.fit.converged, self.fit.rested) = (false, Some(rested));
        }
    }

    /// Moves the clusters in `list`, whose weights, sums and second moments these are; the others keep centre and covariance.
    fn update(
        &mut self,
        list: &[u32],
        weights: &[f64],
        sums: &[f64],
        scatter: &[f64],
        fit: f64,
    ) -> Result<bool, MethodError> {
        let (k, d) = (self.fit.centres.k(), self.fit.centres.columns());
        let all = &self.fit.weights;
        let (mut open, mut every) = (vec![0.0; k], vec![0.0; k * d]);
        for ((c, weight), sum) in list.iter().map(|c| *c as usize).zip(weights).zip(sums.chunks_exact(d)) {
            open[c] = *weight;
            every[c * d..(c + 1) * d].copy_from_slice(sum);
        }
        let (centres, shift) = moved(&self.fit.centres, &every, &open, self.walls.as_ref())?;
        let by = self.walls.as_ref().map_or_else(|| vec![1.0; d], |walls| extents(&walls.domain));
        let mut covariances = self.covariances.clone();
        for ((c, weight), scatter) in
            list.iter().map(|c| *c as usize).zip(weights).zip(scatter.chunks_exact(triangle(d)))
        {
            if open[c] <= 0.0 {
                continue;
            }
            // Around the new centre: Σ w (z - δ)(z - δ)ᵀ / Σ w = Σ w z zᵀ / Σ w - δ δᵀ.
            let (new, old) = (centres.row(c), self.fit.centres.row(c));
            let delta: Vec<f64> = new.iter().zip(old).zip(&by).map(|((new, old), by)| (new - old) / by).collect();
            let mut matrix: Vec<f64> = scatter.iter().map(|x| x / weight).collect();
            add_square(&mut matrix, &delta, -1.0);
            covariances[c * triangle(d)..(c + 1) * triangle(d)].copy_from_slice(&self.lifted(matrix, c)?);
        }
        let total: f64 = all.iter().sum();
        let mixed = match &self.model {
            ShapeModel::Mixture { .. } if total > 0.0 => {
                ShapeModel::Mixture { weights: all.iter().map(|weight| weight / total).collect() }
            }
            other => other.clone(),
        };
        let still = (&centres, &covariances, &mixed) == (&self.fit.centres, &self.covariances, &self.model);
        let now = fit / total;
        let change = if self.is_mixture() { (now - self.before).abs() } else { shift };
        (self.fit.centres, self.covariances, self.model, self.before) = (centres, covariances, mixed, now);
        self.fit.converged = still || change < self.limits.epsilon;
        let round = u32::try_from(self.fit.history.len() + 1).unwrap_or(u32::MAX);
        self.fit.history.push(Round { round, shift });
        self.open = None;
        // Parameters that come back give the same totals for ever: the rest is a cycle.
        let hash = self.hash();
        let again = self.asked.contains(&hash);
        if again {
            self.closed = still.then_some(fit);
        } else {
            self.asked.push(hash);
            self.closing = self.fit.converged || round >= self.limits.max_rounds;
        }
        self.settle();
        Ok(again)
    }

    /// A covariance with the floor on its diagonal. Totals of a coarse step may leave one below that; then more is added.
    fn lifted(&self, mut matrix: Vec<f64>, cluster: usize) -> Result<Vec<f64>, MethodError> {
        let d = self.fit.centres.columns();
        let mut more = self.limits.floor;
        for _ in 0..MOST_LIFTS {
            lift(&mut matrix, d, more);
            if is_wide(&matrix, d, self.limits.floor) {
                return Ok(matrix);
            }
            more *= 2.0;
        }
        Err(MethodError::implausible(format!("the second moments of cluster {cluster} are those of no rows")))
    }
}

impl Iteration for Shaped {
    fn ask(&self) -> Query {
        let Self { fit, covariances, model, limits, .. } = self;
        let (centres, covariances, model) = (fit.centres.clone(), covariances.clone(), model.clone());
        ShapedSums { centres, covariances, model, floor: limits.floor, part: self.part() }.into()
    }

    fn take(&mut self, values: &[f64], rows: Option<u64>) -> Result<bool, MethodError> {
        let (k, d) = (self.fit.centres.k(), self.fit.centres.columns());
        let triangle = triangle(d);
        match self.part() {
            RoundHalf::Sums(list) => {
                let open = list.len();
                check_values(values, open * (1 + d + triangle))?;
                let (weights, rest) = values.split_at(open);
                let (sums, scatter) = rest.split_at(open * d);
                check_weights(weights, rows, "weights")?;
                // A site may have dropped out since the counts.
                let enough = |weight: &f64| if self.allows(*weight, f64::INFINITY) { *weight } else { 0.0 };
                let weights: Vec<f64> = weights.iter().map(enough).collect();
                let fit = self.open.as_ref().map_or(0.0, |(_, fit)| *fit);
                if weights.iter().all(|weight| *weight <= 0.0) {
                    let all = self.fit.weights.clone();
                    return Ok(self.close(&all, fit));
                }
                self.update(&list, &weights, sums, scatter, fit)
            }
            part => {
                let both = part == RoundHalf::Both;
                let moments = if both { k * (d + triangle) } else { 0 };
                check_values(values, 2 * k + moments + 1)?;
                let (weights, rest) = values.split_at(k);
                let (moments, rest) = rest.split_at(moments);
                let (sites, fit) = rest.split_at(k);
                check_weights(weights, rows, "weights")?;
                check_weights(sites, None, "sites")?;
                self.check_fit(fit[0])?;
                let clear = clear(weights);
                let mut open: Vec<bool> = (0..k).map(|c| self.allows(clear[c], sites[c])).collect();
                // The weights of a row in a mixture add up to one, so that the sums of all clusters are those of all rows.
                if self.is_mixture() && self.rule.two_steps() {
                    self.rule.close_with_the_small(&mut open, &clear, sites);
                }
                let list: Vec<u32> = (0..k).filter(|c| open[*c]).map(|c| c as u32).collect();
                self.small = self.rule != GroupThreshold::NONE && list.len() < k;
                if self.closing {
                    return Ok(self.close(weights, fit[0]));
                }
                self.too_small = too_small(weights, |c| list.contains(&c));
                if list.is_empty() {
                    self.fit.converged |= self.too_small > 0;
                    self.settle();
                    return Ok(self.close(weights, fit[0]));
                }
                let held = std::mem::replace(&mut self.fit.weights, weights.to_vec());
                if !both {
                    self.open = Some((list, fit[0]));
                    return Ok(false);
                }
                let (sums, scatter) = moments.split_at(k * d);
                let pick = |from: &[f64], width: usize| -> Vec<f64> {
                    list.iter().flat_map(|c| &from[*c as usize * width..][..width]).copied().collect()
                };
                let (open, sums, scatter) = (pick(weights, 1), pick(sums, d), pick(scatter, triangle));
                let over = self.update(&list, &open, &sums, &scatter, fit[0]);
                if over.is_err() {
                    self.fit.weights = held;
                }
                over
            }
        }
    }

    fn fit(&self) -> Fit {
        let weights = match &self.model {
            // The share of a cluster times the number of rows tells how many stand behind it.
            ShapeModel::Mixture { weights } if !self.small => Some(weights.clone()),
            ShapeModel::Mixture { .. } | ShapeModel::GustafsonKessel { .. } => None,
        };
        let triangles = self.covariances.chunks_exact(triangle(self.fit.centres.columns()));
        let (log_likelihood, objective) = if self.is_mixture() { (self.closed, None) } else { (None, self.closed) };
        let covariances = triangles.map(<[f64]>::to_vec).collect();
        let shapes = Some(Shapes { weights, covariances, log_likelihood, objective });
        Fit { shapes, counted: Counted::All, ..self.fit.clone() }
    }

    fn confine(&mut self, walls: &Walls) {
        self.walls = Some(walls.clone());
    }

    fn copy(&self) -> Box<dyn Iteration> {
        Box::new(self.clone())
    }
}
