//! Exact federated fuzzy c-means (Bárcena, Marcelloni, Renda, Bechini & Ducange 2021, Algorithms 1 and 2).

use crate::query::usable_fuzzifier;
use crate::{Centres, Indices, Method, MethodError, Outcome, Query, Round, Step, Totals, validity};

/// Totals of a masked run carry the rounding of their fixed-point numbers; a bound on a total is stretched by this.
const SLACK: f64 = 1e-5;

/// More rounds than anybody waits for; bounds the history that a run keeps.
const MAX_ROUNDS: u32 = 100_000;

/// What a run needs to know. Checked by [`FcmParams::check`], which [`Fcm::new`] calls.
#[derive(Debug, Clone, PartialEq)]
pub struct FcmParams {
    /// Number of clusters, K >= 1.
    pub k: usize,
    /// Fuzzifier, m > 1.
    pub m: f64,
    /// Stop when the Frobenius norm of the centres' shift (working units) is below it; 0 runs all rounds.
    ///
    /// It is a test on movement, not on convergence: at a saddle the centres may rest for a while.
    pub epsilon: f64,
    /// At most so many updates of the centres, >= 1.
    pub max_rounds: u32,
    /// First centres, K x d, working units.
    pub start: Centres,
}

impl FcmParams {
    /// Whether a run can start. That K does not exceed the number of rows is checked with the first totals that come
    /// with that number.
    ///
    /// # Errors
    /// [`MethodError`] naming the parameter.
    pub fn check(&self) -> Result<(), MethodError> {
        if self.k == 0 {
            return Err(MethodError::NoClusters);
        }
        if !usable_fuzzifier(self.m) {
            return Err(MethodError::Fuzzifier);
        }
        if !(self.epsilon.is_finite() && self.epsilon >= 0.0) {
            return Err(MethodError::Epsilon);
        }
        if self.max_rounds == 0 {
            return Err(MethodError::NoRounds);
        }
        if self.max_rounds > MAX_ROUNDS {
            return Err(MethodError::TooManyRounds { most: MAX_ROUNDS });
        }
        if self.start.k() != self.k {
            return Err(MethodError::StartCount { expected: self.k, found: self.start.k() });
        }
        Ok(())
    }
}

/// Where the conversation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The next totals are `WS` and `U` and update the centres.
    Updating,
    /// The next totals are `D`, `A` and `J` at the final centres.
    Validating,
    Finished,
}

/// Exact federated fuzzy c-means.
///
/// Every round asks for `WS_k` and `U_k` at the current centres and moves each centre to `WS_k / U_k`; a centre with
/// `U_k = 0` attracts nobody and stays where it is (the rule of the authors' later code). The totals are the same
/// however the rows are spread over sites, so the run is that of centralised FCM up to the rounding of sums. After the
/// last update one more question yields the objective and the fuzzy Davies-Bouldin index.
#[derive(Debug, Clone)]
pub struct Fcm {
    params: FcmParams,
    centres: Centres,
    weights: Vec<f64>,
    history: Vec<Round>,
    converged: bool,
    phase: Phase,
    asked: bool,
}

impl Fcm {
    /// A run that has not asked anything yet.
    ///
    /// # Errors
    /// Those of [`FcmParams::check`].
    pub fn new(params: FcmParams) -> Result<Self, MethodError> {
        params.check()?;
        Ok(Self {
            centres: params.start.clone(),
            weights: Vec::new(),
            history: Vec::new(),
            converged: false,
            phase: Phase::Updating,
            asked: false,
            params,
        })
    }

    /// The current centres, K x d, working units.
    pub fn centres(&self) -> &Centres {
        &self.centres
    }

    /// The shifts of the rounds so far.
    pub fn history(&self) -> &[Round] {
        &self.history
    }

    /// The question that is open, again on every call until its totals come.
    fn ask(&mut self) -> Result<Step, MethodError> {
        let (centres, m) = (self.centres.clone(), self.params.m);
        let query = match self.phase {
            Phase::Updating => Query::FuzzySums { centres, m },
            Phase::Validating => Query::FuzzyValidation { centres, m },
            Phase::Finished => return Err(MethodError::Finished),
        };
        self.asked = true;
        Ok(Step::Ask(query))
    }

    /// Algorithm 1, the server's update: `V'_k = WS_k / U_k`, then the stop test on the shift.
    fn update(&mut self, totals: &Totals) -> Result<Step, MethodError> {
        let (k, columns) = (self.centres.k(), self.centres.columns());
        check_values(totals, k * columns + k)?;
        let (sums, weights) = totals.values.split_at(k * columns);
        check_weights(weights, totals.rows, "U")?;

        let mut moved = self.centres.as_slice().to_vec();
        for ((centre, sum), weight) in moved.chunks_exact_mut(columns).zip(sums.chunks_exact(columns)).zip(weights) {
            if *weight > 0.0 {
                for (coordinate, total) in centre.iter_mut().zip(sum) {
                    *coordinate = total / weight;
                }
            }
        }
        let moved = Centres::new(k, columns, moved).map_err(|error| MethodError::implausible(error.to_string()))?;
        let shift = moved
            .frobenius_distance(&self.centres)
            .ok()
            .filter(|shift| shift.is_finite())
            .ok_or_else(|| MethodError::implausible("the centres' shift is not a finite number"))?;

        // Nothing changes before everything has been checked: the caller may repeat the round after an error.
        let still = moved == self.centres;
        self.centres = moved;
        self.weights = weights.to_vec();
        let round = u32::try_from(self.history.len() + 1).unwrap_or(u32::MAX);
        self.history.push(Round { round, shift });
        self.converged = shift < self.params.epsilon;
        if still && !self.converged {
            // The same centres give the same totals for ever. The rounds that are left are known without asking, and
            // asking one question twice would only tell how the cohort changed in between.
            self.history.extend((round + 1..=self.params.max_rounds).map(|round| Round { round, shift: 0.0 }));
        }
        let round = u32::try_from(self.history.len()).unwrap_or(u32::MAX);
        if self.converged || round >= self.params.max_rounds {
            self.phase = Phase::Validating;
        }
        self.ask()
    }

    /// FedFuzzDB and the objective from the last totals.
    fn finish(&mut self, totals: &Totals) -> Result<Step, MethodError> {
        let k = self.centres.k();
        check_values(totals, 2 * k + 1)?;
        let (distances, rest) = totals.values.split_at(k);
        let (memberships, objective) = rest.split_at(k);
        let objective = objective[0];
        check_weights(memberships, totals.rows, "A")?;
        if distances.iter().any(|distance| *distance < 0.0) || objective < 0.0 {
            return Err(MethodError::implausible("a sum of distances is negative"));
        }
        // Memberships of a row add up to 1, so their grand total is N even where nobody may count rows.
        let all = memberships.iter().sum::<f64>();
        let n = totals.rows.unwrap_or(all.round() as u64);
        if n == 0 {
            return Err(MethodError::implausible("there are no rows"));
        }
        if (all - n as f64).abs() > 0.5 + SLACK * n as f64 {
            return Err(MethodError::implausible("the memberships do not add up to the number of rows"));
        }
        self.phase = Phase::Finished;
        let index = validity::fuzzy_davies_bouldin(&self.centres, distances, memberships, n as f64);
        Ok(Step::Done(Outcome {
            centres: self.centres.clone(),
            m: self.params.m,
            weights: self.weights.clone(),
            n_total: Some(n),
            rounds: u32::try_from(self.history.len()).unwrap_or(u32::MAX),
            converged: self.converged,
            history: self.history.clone(),
            indices: Indices { fuzzy_davies_bouldin: index },
            objective,
            objective_per_row: objective / n as f64,
        }))
    }
}

impl Method for Fcm {
    fn next(&mut self, totals: Option<&Totals>) -> Result<Step, MethodError> {
        let Some(totals) = totals else { return self.ask() };
        if self.phase == Phase::Finished {
            return Err(MethodError::Finished);
        }
        if !self.asked {
            return Err(MethodError::NotAsked);
        }
        if totals.rows.is_some_and(|rows| (self.params.k as u64) > rows) {
            return Err(MethodError::TooFewRows { k: self.params.k });
        }
        match self.phase {
            Phase::Updating => self.update(totals),
            Phase::Validating => self.finish(totals),
            Phase::Finished => Err(MethodError::Finished),
        }
    }
}

/// The right number of entries, all finite.
fn check_values(totals: &Totals, expected: usize) -> Result<(), MethodError> {
    let found = totals.values.len();
    if found != expected {
        return Err(MethodError::implausible(format!("expected {expected} entries, found {found}")));
    }
    if let Some(at) = totals.values.iter().position(|value| !value.is_finite()) {
        return Err(MethodError::implausible(format!("entry {at} is not a finite number")));
    }
    Ok(())
}

/// Weights of clusters are never negative, and those of one row add up to at most 1.
fn check_weights(weights: &[f64], rows: Option<u64>, name: &str) -> Result<(), MethodError> {
    if let Some(k) = weights.iter().position(|weight| *weight < 0.0) {
        return Err(MethodError::implausible(format!("{name} of cluster {k} is negative")));
    }
    let all = weights.iter().sum::<f64>();
    if rows.is_some_and(|rows| all > rows as f64 * (1.0 + SLACK)) {
        return Err(MethodError::implausible(format!("the sum of {name} exceeds the number of rows")));
    }
    Ok(())
}
