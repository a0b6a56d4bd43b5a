//! Fuzzy c-means in fewer rounds: Anderson acceleration (Anderson 1965; Walker & Ni 2011, SIAM J. Numer. Anal. 49) of the rounds of
//! [`fcm`](super::fcm), held to descent as Zhang, Yao, Peng et al. (2018) hold that of k-means.
//!
//! It asks what `fcm` asks and no number more. Let c be the centres of a question, `g_k = WS_k / U_k` the step of `fcm` from there, and
//! `f = g - c`. Rounds are over when `‖f‖ < epsilon` or f is 0, and the result is g: fixed points and stop rule are those of `fcm`. Otherwise the
//! next question is about
//!
//! ```text
//! g_n - Σ_i γ_i (g_n - g_i)        γ = argmin ‖ f_n - Σ_i γ_i (f_n - f_i) ‖_U        i: up to 5 rounds before
//! ```
//!
//! where `‖x‖_U² = Σ_k U_k ‖x_k‖² / Σ_k U_k` with the weights of round n. It goes no farther from g than 20 times `‖f_n‖_U`, and stays in
//! the box.
//!
//! A step that does not lower the objective, as far as can be told, is not taken. Half the gradient of `J_m` is `U_k (c_k - g_k)` by cluster, so that the totals
//! at both ends of a step d from c to c' tell the change of `J_m` by the trapezoidal rule, to third order in d, which can err for a long step:
//!
//! ```text
//! J(c') - J(c) ≈ - Σ_k ( U_k (g_k - c_k) + U'_k (g'_k - c'_k) ) · d_k
//! ```
//!
//! Where this is above 0 the question was in vain: the next one is about g of the round before it, and what was known from before that is
//! forgotten. A step that does not go downhill where it begins (`Σ_k U_k (g_k - c_k) · d_k <= 0`) is not asked about. In its place, in the
//! first five rounds, and in three rounds after a question in vain, the step is that of `fcm`, which lowers `J_m`. Totals over other rows
//! than before, of a cohort that lost a block, begin anew with rounds of `fcm`.
//!
//! Every site computes the same from the totals that were opened to it: there are only sums, products, quotients and square roots, in one
//! order, each of them rounded once (IEEE 754).
//!
//! It pays where `fcm` creeps, that is under a tight epsilon; see the page on methods for numbers. It may end in another local
//! optimum than `fcm` from the same first centres. Under noise it is not offered, since noise in totals is what it would follow, nor where
//! only some sites are drawn for a round.

use super::spec::{Beginning, Iteration, Named, Options, Spec};
use super::update::{Fit, Round, Walls, check_rounds, clear, confined, hash, moved};
use crate::distance::usable_fuzzifier;
use crate::totals_check::{check_values, check_weights};
use crate::{Centres, MethodError, Query};

/// Rounds before the last one that a step is made from.
const MEMORY: usize = 5;
/// Rounds at the beginning that are those of `fcm`: far from a fixed point there is little to learn from them.
const FIRST: u32 = 5;
/// Rounds of `fcm` after the one that follows a step that did not lower the objective.
const REST: u32 = 2;
/// How far from the step of `fcm` at most, in lengths of that step.
const FARTHEST: f64 = 20.0;
/// Added to the squares of the normal equations, which are scaled to 1: rounds that say the same have no say twice.
const RIDGE: f64 = 1e-10;

/// Fuzzy c-means with Anderson acceleration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AndersonSpec {
    /// Fuzzifier, > 1.
    pub m: f64,
    /// Stop when a step of `fcm` moves the centres less (Frobenius norm).
    pub epsilon: f64,
    /// Rounds at most.
    pub max_rounds: u32,
}

impl Named for AndersonSpec {
    const NAME: &'static str = "fcm-anderson";
    const HELP: &'static str = "Fuzzy c-means in fewer rounds (Anderson acceleration)";

    fn usual(options: &Options) -> Self {
        Self { m: options.m, epsilon: options.epsilon.unwrap_or(0.005), max_rounds: options.max_rounds }
    }

    fn forms() -> Vec<Self> {
        vec![Self { m: 2.0, epsilon: 1e-5, max_rounds: 60 }]
    }
}

impl Spec for AndersonSpec {
    fn fuzzifier(&self) -> Option<f64> {
        Some(self.m)
    }

    fn rounds(&self) -> u32 {
        self.max_rounds
    }

    fn asks(&self, centres: &Centres) -> Vec<Query> {
        vec![Query::fuzzy_sums(centres.clone(), self.m)]
    }

    fn begin(&self, at: Beginning<'_>) -> Result<Box<dyn Iteration>, MethodError> {
        if !usable_fuzzifier(self.m) {
            return Err(MethodError::Fuzzifier);
        }
        check_rounds(self.epsilon, self.max_rounds)?;
        Ok(Box::new(Accelerated {
            spec: *self,
            at: at.start.clone(),
            jumped: false,
            plain: FIRST - 1,
            known: Vec::new(),
            fit: Fit::at(at.start.clone()),
            asked: vec![hash(at.start)],
            walls: None,
        }))
    }

    fn sums_groups(&self) -> bool {
        false
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn extrapolates(&self) -> bool {
        true
    }
}

/// The rounds of one K.
#[derive(Debug, Clone)]
struct Accelerated {
    spec: AndersonSpec,
    /// The centres of the open question.
    at: Centres,
    /// Whether they are other ones than a step of `fcm` leads to.
    jumped: bool,
    /// Rounds of `fcm` that are still to come before another try.
    plain: u32,
    /// Rounds that lowered the objective, the last one at the end.
    known: Vec<Known>,
    /// Its centres are those that a step of `fcm` led to from the last of them.
    fit: Fit,
    /// Hashes of all centres that have been asked about.
    asked: Vec<u64>,
    walls: Option<Walls>,
}

/// What the totals of a round told.
#[derive(Debug, Clone)]
struct Known {
    /// The centres of the question, and the step of `fcm` from there.
    centres: Centres,
    step: Centres,
    /// K; 0 for a cluster that nothing moves.
    weights: Vec<f64>,
}

impl Known {
    /// Coordinate by coordinate `step - centres`.
    fn shift(&self) -> impl Iterator<Item = f64> {
        self.step.as_slice().iter().zip(self.centres.as_slice()).map(|(to, from)| to - from)
    }

    /// The weight of every coordinate.
    fn of_coordinates(&self) -> impl Iterator<Item = f64> {
        let columns = self.centres.columns();
        self.weights.iter().flat_map(move |weight| std::iter::repeat_n(*weight, columns))
    }

    /// About by how much the objective is higher here than at `before`.
    fn above(&self, before: &Self) -> f64 {
        let here = self.of_coordinates().zip(self.shift());
        let there = before.of_coordinates().zip(before.shift());
        let step = self.centres.as_slice().iter().zip(before.centres.as_slice()).map(|(to, from)| to - from);
        here.zip(there).zip(step).map(|(((w, f), (w0, f0)), d)| -(w0 * f0 + w * f) * d).sum()
    }
}

impl Accelerated {
    /// Whether the way from the last round's centres to these begins downhill.
    fn descends(&self, next: &Centres) -> bool {
        self.known.last().is_some_and(|last| {
            let way = next.as_slice().iter().zip(last.centres.as_slice()).map(|(to, from)| to - from);
            last.of_coordinates().zip(last.shift()).zip(way).map(|((w, f), d)| w * f * d).sum::<f64>() > 0.0
        })
    }
}

impl Iteration for Accelerated {
    fn ask(&self) -> Query {
        self.spec.asks(&self.at).swap_remove(0)
    }

    fn take(&mut self, values: &[f64], rows: Option<u64>) -> Result<bool, MethodError> {
        let (k, columns) = (self.at.k(), self.at.columns());
        check_values(values, k * columns + k)?;
        let (sums, weights) = values.split_at(k * columns);
        check_weights(weights, rows, "U")?;
        let cleared = clear(weights);
        let (step, shift) = moved(&self.at, sums, &cleared, self.walls.as_ref())?;

        // Nothing changes before everything has been checked: the caller may repeat the round after an error.
        let round = u32::try_from(self.fit.history.len() + 1).unwrap_or(u32::MAX);
        let now = Known { centres: self.at.clone(), step, weights: cleared };
        let higher = self.jumped && self.known.last().is_some_and(|before| now.above(before) > 0.0);
        // A round in vain leaves the result, and what is said of it, as it was.
        let before = self.fit.history.last().filter(|_| higher).map(|round| round.shift);
        self.fit.history.push(Round { round, shift: before.unwrap_or(shift) });
        if higher {
            self.known.drain(..self.known.len() - 1);
            self.plain = REST;
        } else {
            self.fit.converged = shift < self.spec.epsilon || now.step == now.centres;
            (self.fit.centres, self.fit.weights) = (now.step.clone(), weights.to_vec());
            self.known.push(now);
            self.known.drain(..self.known.len().saturating_sub(MEMORY + 1));
        }
        self.jumped = false;
        self.at = self.fit.centres.clone();
        if !higher && !self.fit.converged {
            match self.plain.checked_sub(1) {
                Some(left) => self.plain = left,
                None => {
                    let next = extrapolated(&self.known, self.walls.as_ref());
                    if let Some(next) = next.filter(|next| self.descends(next) && !self.asked.contains(&hash(next))) {
                        (self.at, self.jumped) = (next, true);
                    }
                }
            }
        }
        // Centres that come back give the same totals for ever: the rest is a cycle, and asking one question twice would only
        // tell how the cohort changed in between.
        let next = hash(&self.at);
        let again = self.asked.contains(&next);
        self.asked.push(next);
        Ok(self.fit.converged || again || round >= self.spec.max_rounds)
    }

    fn fit(&self) -> Fit {
        self.fit.clone()
    }

    fn confine(&mut self, walls: &Walls) {
        self.walls = Some(walls.clone());
    }

    fn other_rows(&mut self) {
        // Rounds over other rows neither point anywhere from here nor tell whether the objective fell.
        self.known.clear();
        (self.jumped, self.plain) = (false, self.plain.max(REST));
    }

    fn copy(&self) -> Box<dyn Iteration> {
        Box::new(self.clone())
    }
}

/// Where the rounds so far point to; `None` where they say nothing.
fn extrapolated(known: &[Known], walls: Option<&Walls>) -> Option<Centres> {
    let (last, before) = known.split_last()?;
    let total: f64 = last.weights.iter().sum();
    let roots: Vec<f64> = last.of_coordinates().map(|weight| (weight / total).sqrt()).collect();
    let of = |known: &Known| -> Vec<f64> { known.shift().zip(&roots).map(|(f, root)| f * root).collect() };
    let shift = of(last);
    let changes: Vec<Vec<f64>> =
        before.iter().map(|known| shift.iter().zip(of(known)).map(|(now, then)| now - then).collect()).collect();
    // Those that say nothing have no scale.
    let scales: Vec<f64> = changes.iter().map(|change| dot(change, change).sqrt()).collect();
    let used: Vec<usize> = (0..changes.len()).filter(|i| scales[*i] > 0.0).collect();
    let entry = |i: usize, j: usize| dot(&changes[i], &changes[j]) / (scales[i] * scales[j]);
    let mut matrix: Vec<Vec<f64>> = used.iter().map(|i| used.iter().map(|j| entry(*i, *j)).collect()).collect();
    (0..used.len()).for_each(|i| matrix[i][i] += RIDGE);
    let mut gamma: Vec<f64> = used.iter().map(|i| dot(&changes[*i], &shift) / scales[*i]).collect();
    solve(&mut matrix, &mut gamma);

    // From the step of `fcm`.
    let mut away = vec![0.0; shift.len()];
    for (i, gamma) in used.iter().zip(&gamma) {
        let gamma = gamma / scales[*i];
        let steps = last.step.as_slice().iter().zip(before[*i].step.as_slice());
        away.iter_mut().zip(steps).for_each(|(away, (now, then))| *away -= gamma * (now - then));
    }
    let length = away.iter().zip(&roots).map(|(x, root)| (x * root) * (x * root)).sum::<f64>().sqrt();
    let most = FARTHEST * dot(&shift, &shift).sqrt();
    let part = if length > most { most / length } else { 1.0 };
    let values = last.step.as_slice().iter().zip(&away).map(|(x, away)| x + part * away).collect();
    // Nothing to follow, or rounds that contradict each other so that there is no number.
    let next = Centres::new(last.centres.k(), last.centres.columns(), values).ok()?;
    Some(walls.map_or_else(|| next.clone(), |walls| confined(&next, &walls.domain)))
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Solves a positive definite system in place, by elimination without a choice of pivots.
fn solve(matrix: &mut [Vec<f64>], right: &mut [f64]) {
    let n = right.len();
    for i in 0..n {
        let (above, below) = matrix.split_at_mut(i + 1);
        let (pivot, own) = (&above[i], right[i]);
        for (row, right) in below.iter_mut().zip(&mut right[i + 1..]) {
            let factor = row[i] / pivot[i];
            row.iter_mut().zip(pivot).skip(i).for_each(|(entry, known)| *entry -= factor * known);
            *right -= factor * own;
        }
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| matrix[i][j] * right[j]).sum();
        right[i] = (right[i] - known) / matrix[i][i];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Domain;

    fn begin(start: f64, epsilon: f64) -> Box<dyn Iteration> {
        let start = Centres::known(vec![[start]]);
        let domain = Domain::new(vec![0.0], vec![2.0], crate::Scaling::None).unwrap();
        let at = Beginning { domain: &domain, start: &start, cells: None, seed: 0, noisy: false };
        let mut iteration = AndersonSpec { m: 2.0, epsilon, max_rounds: 100 }.begin(at).unwrap();
        iteration.confine(&Walls::fine(&domain));
        iteration
    }

    fn asked(iteration: &dyn Iteration) -> f64 {
        iteration.ask().points()[0].as_slice()[0]
    }

    /// Totals of weight 1 whose mean is `step`.
    fn answer(iteration: &mut dyn Iteration, step: f64) -> bool {
        iteration.take(&[step, 1.0], None).unwrap()
    }

    #[test]
    fn a_linear_creep_is_over_after_one_jump() {
        let mut run = begin(0.0, 1e-9);
        let creep = |x: f64| x + 0.1 * (1.0 - x);
        for _ in 0..FIRST {
            let at = asked(&*run);
            assert!(!answer(&mut *run, creep(at)));
        }
        let at = asked(&*run);
        assert!((at - 1.0).abs() < 1e-6, "{at}");
        let more = (0..10).find(|_| {
            let at = asked(&*run);
            answer(&mut *run, creep(at))
        });
        let fit = run.fit();
        assert!(
            more.is_some_and(|more| more <= 2) && fit.converged && (fit.centres.as_slice()[0] - 1.0).abs() < 1e-8,
            "{more:?} {fit:?}"
        );
    }

    #[test]
    fn a_step_that_raises_the_objective_is_taken_back() {
        let mut run = begin(0.0, 1e-9);
        for _ in 0..FIRST {
            let at = asked(&*run);
            answer(&mut *run, at + 0.1 * (1.0 - at));
        }
        let (jump, safe) = (asked(&*run), run.fit().centres);
        assert!(jump > safe.as_slice()[0] + 0.3, "{jump}");
        // Over there everything pulls back, hard.
        assert!(!answer(&mut *run, 0.1));
        assert_eq!(run.fit().centres, safe);
        assert_eq!(run.fit().history.len() as u32, FIRST + 1);
        // Rounds of fcm for a while.
        for _ in 0..=REST {
            let at = asked(&*run);
            assert_eq!(at, run.fit().centres.as_slice()[0]);
            answer(&mut *run, at + 0.1 * (1.0 - at));
        }
        assert!(asked(&*run) > run.fit().centres.as_slice()[0]);
    }

    #[test]
    fn a_jump_stays_in_the_box_and_within_reach() {
        let mut run = begin(0.0, 0.0);
        for _ in 0..FIRST {
            let at = asked(&*run);
            answer(&mut *run, at + 0.1 - 0.001 * at);
        }
        assert_eq!(asked(&*run), 2.0, "the end of the box");
        let mut run = begin(0.0, 0.0);
        for _ in 0..FIRST {
            let at = asked(&*run);
            answer(&mut *run, at + 0.01 - 0.0001 * at);
        }
        let (at, step) = (asked(&*run), run.fit().centres.as_slice()[0]);
        assert!((0.19..0.21).contains(&(at - step)), "20 steps of a hundredth: {at} from {step}");
    }

    /// Away from a repelling fixed point, which is a maximum.
    #[test]
    fn nobody_is_asked_about_a_step_uphill() {
        let mut run = begin(0.5, 0.0);
        for _ in 0..2 * FIRST {
            let at = asked(&*run);
            assert_eq!(at, run.fit().centres.as_slice()[0]);
            answer(&mut *run, at + 0.01 * at);
        }
    }

    #[test]
    fn centres_at_rest_have_converged() {
        let mut run = begin(0.5, 0.0);
        assert!(answer(&mut *run, 0.5));
        assert!(run.fit().converged);
    }

    #[test]
    fn equations_are_solved() {
        let mut matrix = vec![vec![4.0, 1.0, 0.5], vec![1.0, 3.0, 0.25], vec![0.5, 0.25, 2.0]];
        let x = [1.0, -2.0, 3.0];
        let mut right: Vec<f64> = matrix.iter().map(|row| dot(row, &x)).collect();
        solve(&mut matrix, &mut right);
        assert!(right.iter().zip(x).all(|(found, x)| (found - x).abs() < 1e-14), "{right:?}");
    }
}
