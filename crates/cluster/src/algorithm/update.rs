//! The one update that all algorithms share: centres move to the means of totals, and stay inside the box.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};

use super::describe::Description;
use crate::totals_check::SLACK;
use crate::{Centres, Domain, Error, distance, refuse};

/// More rounds than anybody waits for; bounds the history that a run keeps.
const MAX_ROUNDS: u32 = 100_000;

/// The parameters that most iterations share.
pub(crate) fn check_rounds(epsilon: f64, max_rounds: u32) -> Result<(), Error> {
    let usable = epsilon.is_finite() && epsilon >= 0.0;
    refuse(!usable, || Error::parameter("epsilon must be a finite number, 0 or above"))?;
    refuse(max_rounds == 0, || Error::parameter("max_rounds must be at least 1"))?;
    refuse(max_rounds > MAX_ROUNDS, || Error::parameter(format!("max_rounds must be at most {MAX_ROUNDS}")))
}

/// How a round's shift of the centres is measured, and when it is small enough.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// The Frobenius norm of the shift is below epsilon (Bárcena et al. 2021).
    #[default]
    Frobenius,
    /// The distances that the centres move add up to epsilon at most (FFCM and the framework paper).
    Sum,
}

impl Stop {
    /// How far these centres are from those before, of the same shape.
    fn shift(self, centres: &Centres, before: &Centres) -> Result<f64, Error> {
        let shift = match self {
            Self::Frobenius => centres.frobenius_distance(before)?,
            Self::Sum => centres.rows().zip(before.rows()).map(|(new, old)| distance::euclidean(new, old)).sum(),
        };
        refuse(!shift.is_finite(), || Error::implausible("the centres' shift is not a finite number"))?;
        Ok(shift)
    }

    /// Whether the rounds end after this shift.
    pub(super) fn holds(self, shift: f64, epsilon: f64) -> bool {
        match self {
            Self::Frobenius => shift < epsilon,
            Self::Sum => shift <= epsilon,
        }
    }
}

/// Where an iteration stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// Centres, K x d, in the units of the questions.
    pub centres: Centres,
    /// Weight of each cluster in the last round (K): `sum_j u_jk^m`, rows or mass, as the method counts.
    pub weights: Vec<f64>,
    /// The shift of every round that updated the centres.
    pub history: Vec<Round>,
    /// Whether the method's own stop rule held.
    pub converged: bool,
    /// What a description found, at its end.
    pub description: Option<Description>,
    /// How far rows lie from the centres, where noisy rounds around them told it.
    pub pulled: Option<Pulled>,
}

/// What rows weigh and how far they lie from their centres: means over the last noisy rounds around them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pulled {
    /// Of `squares` over the weights of all clusters, squared units of the questions; noise may make it negative.
    pub square: f64,
    /// Of how far a row pulled at most, units of the questions.
    pub clip: f64,
    /// Of `squares` themselves, squared units of the questions: of hard groups their inertia, as far as no row was clipped.
    pub total: f64,
    /// Of the weights, K: of hard groups their rows.
    pub weights: Vec<f64>,
}

/// One round of an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Counted from 1.
    pub round: u32,
    /// How far the centres moved, as the plan's [`Stop`] measures it, working units.
    pub shift: f64,
}

impl Fit {
    /// Before the first round.
    pub(crate) fn at(centres: Centres) -> Self {
        Self { centres, weights: Vec::new(), history: Vec::new(), converged: false, description: None, pulled: None }
    }
}

/// Where centres are kept, and how coarse the totals are that move them.
#[derive(Debug, Clone)]
pub struct Walls {
    /// The box, in the units of the questions.
    pub domain: Domain,
    /// Part of a row's largest value by which the rounding of all sites together changes a sum at most.
    pub rounding: f64,
}

impl Walls {
    /// Around totals whose rounding hardly shows.
    pub fn fine(domain: &Domain) -> Self {
        Self { domain: domain.clone(), rounding: 1e-6 }
    }
}

/// Of the weight of all clusters: below this share a cluster's weight drowns in the rounding of fixed-point totals.
pub(crate) const CLEAR_SHARE: f64 = 1e-9;

/// The weights that a sum can be divided by; 0 for those that cannot be told from the rounding of totals.
pub(super) fn clear(weights: &[f64]) -> Vec<f64> {
    let least = CLEAR_SHARE * weights.iter().sum::<f64>();
    weights.iter().map(|weight| if *weight > least { *weight } else { 0.0 }).collect()
}

/// Centres with every coordinate moved into the box.
pub(crate) fn confined(centres: &Centres, domain: &Domain) -> Centres {
    let d = centres.columns();
    let into = |(i, value): (usize, &f64)| {
        let (low, high) = domain.working_interval(i % d);
        value.clamp(low, high)
    };
    let values: Vec<f64> = centres.as_slice().iter().enumerate().map(into).collect();
    Centres::finite(d, &values)
}

/// Means that were made from a weight lie in the box, but for the rounding of their sums.
fn check_means(means: &Centres, weights: &[f64], Walls { domain, rounding }: &Walls) -> Result<(), Error> {
    let largest = domain.largest();
    for (cluster, (mean, weight)) in means.rows().zip(weights).enumerate().filter(|(_, (_, weight))| **weight > 0.0) {
        for (column, value) in mean.iter().enumerate() {
            let (low, high) = domain.working_interval(column);
            let slack = SLACK * (high - low) + rounding * (largest + low.abs().max(high.abs())) / weight;
            if *value < low - slack || *value > high + slack {
                return Err(Error::implausible(format!("the mean of cluster {cluster} lies outside the box")));
            }
        }
    }
    Ok(())
}

/// A name for centres, to know them again.
pub(super) fn hash(centres: &Centres) -> u64 {
    let mut hasher = DefaultHasher::new();
    centres.as_slice().iter().for_each(|x| x.to_bits().hash(&mut hasher));
    hasher.finish()
}

/// Moves every centre to `sums / weights`; one without weight stays. A mean of rows lies in their box, so what rounding
/// leaves outside goes back to its edge (sites refuse centres outside), and what is farther off is no mean of rows. With
/// the shift.
pub(super) fn moved(
    centres: &Centres,
    sums: &[f64],
    weights: &[f64],
    stop: Stop,
    walls: &Walls,
) -> Result<(Centres, f64), Error> {
    let values = centres.averaged(sums, weights);
    let moved = Centres::new(centres.k(), centres.columns(), values).map_err(Error::implausible)?;
    check_means(&moved, weights, walls)?;
    let moved = confined(&moved, &walls.domain);
    let shift = stop.shift(&moved, centres)?;
    Ok((moved, shift))
}

/// Where an iteration has been: its fit, its stop rule, and every place that it has asked about.
#[derive(Debug, Clone)]
pub(super) struct Trail {
    pub(super) fit: Fit,
    stop: Stop,
    epsilon: f64,
    max_rounds: u32,
    /// Hashes of all centres that have been asked about.
    asked: Vec<u64>,
    /// Whether the last update moved nothing at all.
    pub(super) still: bool,
    /// Whether it ends by the stop rule alone, in so many rounds as are known without asking: resting is no end then.
    whole: bool,
}

impl Trail {
    pub(super) fn new(start: &Centres, stop: Stop, epsilon: f64, max_rounds: u32, whole: bool) -> Result<Self, Error> {
        check_rounds(epsilon, max_rounds)?;
        let fit = Fit::at(start.clone());
        Ok(Self { asked: vec![hash(start)], fit, stop, epsilon, max_rounds, still: false, whole })
    }

    /// Goes on for another kind of question, at most `max_rounds` more rounds.
    pub(super) fn go_on(&mut self, max_rounds: u32) {
        self.max_rounds = u32::try_from(self.fit.history.len()).unwrap_or(u32::MAX).saturating_add(max_rounds);
        self.asked = vec![hash(&self.fit.centres)];
        self.fit.converged = false;
    }

    /// Moves the centres whose weight can be divided by, one not 0 in `clear`. True when it is over; after an error nothing has changed.
    pub(super) fn step(&mut self, sums: &[f64], clear: &[f64], weights: &[f64], walls: &Walls) -> Result<bool, Error> {
        let (next, shift) = moved(&self.fit.centres, sums, clear, self.stop, walls)?;
        self.still = next == self.fit.centres;
        self.fit.converged = self.still && !self.whole || self.stop.holds(shift, self.epsilon);
        self.fit.centres = next;
        self.fit.weights = weights.to_vec();
        let history = &mut self.fit.history;
        let round = u32::try_from(history.len() + 1).unwrap_or(u32::MAX);
        history.push(Round { round, shift });
        // Centres that come back give the same totals for ever (rounding may let them alternate): the rest is a cycle, which is known
        // without asking, and asking one question twice would only tell how the cohort changed in between.
        let hash = hash(&self.fit.centres);
        let first = self.asked.iter().position(|known| *known == hash);
        if let Some(first) = first.filter(|_| self.whole && !self.fit.converged) {
            for round in round + 1..=self.max_rounds {
                let shift = history[first + (round as usize - 1 - first) % (self.asked.len() - first)].shift;
                history.push(Round { round, shift });
            }
        }
        self.asked.push(hash);
        Ok(self.fit.converged || first.is_some() || round >= self.max_rounds)
    }
}
