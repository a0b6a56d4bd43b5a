//! Finishes a run that may not ask any more: the totals at new centres are estimated from the totals that were released
//! over the same block.
//!
//! When a site is lost in the middle of a run, or a budget is spent, no new exact total may be asked, because over
//! fewer sites it would tell what the lost one had sent. The totals that were released remain, and every question is a
//! sum over rows of functions that everybody knows. A function of the next question is nearly a combination of
//! functions of earlier ones, because they differ only by how far the centres have moved; the same combination of the
//! released *totals* is then nearly the next total. This is post-processing of released totals. No row enters and
//! nothing new leaves a site.
//!
//! # How
//!
//! Probe rows stand for the rows that nobody may see: half of them anywhere in the box, half around the last centres, from a
//! fixed seed. With A the released functions on them, each in units of the rounding of its own total, f a function of the next
//! question, P probes and N rows (itself estimated, as the total of the function 1), the coefficients are
//!
//! `c = argmin (N^2 / P) |A c - f|^2 + |c|^2`,
//!
//! which weighs an error that all rows share against the rounding that c adds up. The estimate is `c . totals`. A is factored
//! once; each question costs two products with it.
//!
//! # When it is believed
//!
//! On probes that c was not fitted to, the expected relative error of a total is `sqrt(mean (A c - f)^2 + |c|^2 / N^2)`
//! over the root of the mean of f^2, taken over the whole block that the total stands in. Errors of one round move the
//! centres of the next, so that the largest ones of all rounds are added up, and the sum must stay below [`GATE`].
//! Otherwise the estimates are not used, and the result is what the last opened totals gave. Centres that the estimated
//! totals move out of the box are refused as well. The validity totals have to pass a gate of their own; otherwise the
//! result has no index.
//!
//! It works for smooth questions in few columns and with few clusters (`fcm`: iris, xclara). It is refused where the
//! functions of the rounds so far do not span the next ones (many clusters, many columns), for steps such as hard
//! groups, for answers that are no sums over rows (local iterations, numbers of sites), and under noise. Probes are not
//! the data: the gate is a measurement on the box, and rows that all lie in a small part of it may be estimated better
//! or worse. Where a round moves centres apart that were close (a saddle), it also enlarges an error, and the sum
//! understates it.
//!
//! # What it needs
//!
//! The run as it stands and every total that it was given. The coordinator and each site's follower hold both, so that they
//! come to the same result: to the bit where the mathematical library is the same, and to 1e-9 elsewhere.
//!
//! ```
//! use veilsum_cluster::finish::{Released, finish};
//! use veilsum_cluster::{Algorithm, Centres, Domain, Method, OutOfBox, Prepared, Recipe, Rows, Scaling, Step};
//! use veilsum_cluster::{method::Seeding, pooled};
//!
//! // Two groups of rows on a line, at two sites.
//! let domain = Domain::new(vec![0.0], vec![1.0], Scaling::Box)?;
//! let part = |i: usize| (i as f64 * 0.618033988749895).fract();
//! let row = |i: usize| if i % 2 == 0 { 0.1 + 0.3 * part(i) } else { 0.9 - 0.4 * part(i) };
//! let site = |of: std::ops::Range<usize>| -> Result<Prepared, Box<dyn std::error::Error>> {
//!     Ok(Prepared::new(&Rows::new(of.map(row).collect(), 1)?, &domain, OutOfBox::Refuse)?)
//! };
//! let sites = [site(0..150)?, site(150..300)?];
//! let fcm = Algorithm::Fcm { m: 2.0, epsilon: 1e-10, max_rounds: 100 };
//! let centres = Centres::from_rows(&[vec![0.1], vec![0.5]])?;
//! let recipe = Recipe::plain(fcm, 2, Seeding::Given { centres });
//! let undisturbed = pooled::plain_federated(&mut recipe.run(&domain, 2)?, &sites)?;
//!
//! // Whoever holds a copy of the run keeps what it was given. A site is lost after six rounds.
//! let (mut run, mut released) = (recipe.run(&domain, 2)?, Vec::new());
//! let mut step = run.next(None)?;
//! while let (Step::Ask(batch), true) = (&step, released.len() < 6) {
//!     let (batch, totals) = (batch.clone(), pooled::totals(batch, &sites)?);
//!     step = run.next(Some(&totals))?;
//!     released.push(Released { batch, totals, steps: Vec::new() });
//! }
//! let outcome = finish(&run, &released)?;
//! let extrapolated = outcome.extrapolated.expect("this one passes the gate");
//! assert!(!outcome.converged && extrapolated.at_rest && extrapolated.held_out_error < 1e-6);
//! let off = |centres: &Centres| centres.frobenius_distance(&undisturbed.centres);
//! assert!(off(&run.stop_here()?.centres)? > 1e-4 && off(&outcome.centres)? < 1e-9);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod estimate;
mod released;
mod ridge;

use released::MAX_ROUNDS;
pub use released::{GATE, Released, Rounding};

use crate::method::{ClusterSizes, Extrapolation, Stage};
use crate::{Error, Method, Outcome, Run, Step};

use estimate::{Estimate, Estimator};

/// Finishes a run from released totals. It goes on with estimated totals until the method's own stop rule holds, or
/// returns what the last opened totals gave. `run` is at a question that may not be asked any more. `released` is what
/// it was given so far, in order (earlier runs over the same cohort and box may come before). [`Outcome::extrapolated`] says which
/// part of the result is estimated, and its notes say it in words, or why no more of it is.
///
/// # Errors
/// [`Error::NoCentresYet`] where no round has moved a centre: there is no result then. [`Error::Finished`] for a run
/// that has its result.
pub fn finish(run: &Run, released: &[Released]) -> Result<Outcome, Error> {
    if run.stage().is_none() {
        return Err(Error::Finished);
    }
    let stopped = run.stop_here()?;
    let mut ahead = Ahead { run: run.clone(), rounds: 0, error: 0.0, index_error: None };
    let refused = ahead.go(released).err();
    let in_rounds = ahead.run.stage() == Some(Stage::Iterating);
    let mut outcome = match &refused {
        Some(_) if in_rounds => stopped,
        _ => ahead.outcome(run)?,
    };
    if let Some(why) = &refused {
        let what = if in_rounds { "the rounds that are missing" } else { "the indices that are missing" };
        outcome.notes.push(format!("{what} were not estimated from what is out: {why}"));
    }
    Ok(outcome)
}

/// A run that goes on with estimates.
struct Ahead {
    run: Run,
    rounds: u32,
    error: f64,
    index_error: Option<f64>,
}

impl Ahead {
    /// Goes on until the run has its result; an error says where it could not go on.
    fn go(&mut self, released: &[Released]) -> Result<(), String> {
        if self.run.is_noisy() {
            return Err("its totals carry noise".into());
        }
        let disbelieved = |error: Error| format!("the estimated totals were not believed: {error}");
        let centres = self.run.working_centres().map_err(disbelieved)?;
        let estimator = Estimator::new(self.run.public(), self.run.sites(), &centres, released)?;
        let mut step = self.run.next(None).map_err(disbelieved)?;
        while let Step::Ask(batch) = step {
            let Estimate { totals, error } = estimator.estimate(&batch)?;
            if self.run.stage() == Some(Stage::Iterating) {
                (self.rounds, self.error) = (self.rounds + 1, self.error + error);
                if self.error >= GATE {
                    return Err(inexact(self.error, self.rounds));
                }
                if self.rounds > MAX_ROUNDS {
                    return Err(format!("the centres did not come to rest in {MAX_ROUNDS} estimated rounds"));
                }
            } else if error >= GATE {
                return Err(inexact(error, 0));
            } else {
                self.index_error = Some(self.index_error.unwrap_or(0.0).max(error));
            }
            step = self.run.next(Some(&totals)).map_err(disbelieved)?;
        }
        Ok(())
    }

    /// The result, marked as what it is.
    fn outcome(&self, before: &Run) -> Result<Outcome, Error> {
        let mut outcome = self.run.stop_here()?;
        outcome.questions = before.questions();
        if !before.is_judged() {
            // A sum of estimated memberships is not a count of rows.
            outcome.n_total = None;
        }
        if self.rounds == 0 && self.index_error.is_none() {
            return Ok(outcome);
        }
        let extrapolated = Extrapolation {
            rounds: outcome.rounds - before.rounds_of(self.run.ends_with()?),
            held_out_error: self.error,
            gate: GATE,
            at_rest: outcome.converged,
            index_error: self.index_error,
        };
        if self.rounds > 0 {
            outcome.converged = false;
            for point in &mut outcome.curve {
                point.converged &= !before.is_iterating(point.k, point.restart);
            }
            outcome.notes.push(format!(
                "the totals of the run's last {} rounds were not asked, but estimated from those before (relative error {:.1e} \
                 on held-out probes, {GATE:.0e} allowed)",
                self.rounds, self.error
            ));
        }
        if let Some(error) = self.index_error {
            outcome.clusters = ClusterSizes::unknown(outcome.centres.k(), "the validity totals are estimates");
            outcome.notes.push(format!(
                "indices and objective are estimated from what is out (relative error {error:.1e} on held-out probes)"
            ));
        }
        outcome.extrapolated = Some(extrapolated);
        Ok(outcome)
    }
}

/// Why estimates with this error, after so many estimated rounds (0: of a validity question), do not pass the gate.
fn inexact(error: f64, rounds: u32) -> String {
    format!(
        "the totals that are out do not tell the next ones: error {error:.1e} on held-out probes after {rounds} rounds, the gate is {GATE:.0e}"
    )
}
