//! What the methods that average groups have in common: `mean = sum / weight`, and the stop rule.

use super::spec::{Beginning, Iteration};
use super::update::{Fit, Trail, Walls, clear};
use crate::totals_check::{check_values, check_weights};
use crate::{Centres, Error, Query, refuse};

/// What the weights in the totals are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weights {
    /// Rows, which add up to N at most.
    Rows,
    /// Local centres, of which a site has K.
    LocalCentres,
    /// Sums of memberships, which add up to N at most; there is no block of distances.
    Memberships,
    /// Sums of powers of memberships, likewise, which stand behind the weighted sums. It ends by the stop rule alone.
    Powers,
}

/// Rounds of `mean = sum / weight`, each one question.
#[derive(Debug, Clone)]
pub(super) struct Rounds {
    pub(super) trail: Trail,
    weights: Weights,
}

impl Rounds {
    pub(super) fn new(at: Beginning<'_>, weights: Weights, epsilon: f64, max_rounds: u32) -> Result<Self, Error> {
        let whole = weights == Weights::Powers;
        Ok(Self { trail: Trail::new(at.start, at.stop, epsilon, max_rounds, whole)?, weights })
    }

    /// Takes the totals of a round, in the blocks of `LocalMeans`, of `LocalFuzzy` or of `FuzzySums`. True when the rounds
    /// are over. After an error nothing has changed.
    pub(super) fn take(&mut self, values: &[f64], rows: Option<u64>, walls: &Walls) -> Result<bool, Error> {
        let (k, d) = (self.trail.fit.centres.k(), self.trail.fit.centres.columns());
        let fuzzy = matches!(self.weights, Weights::Memberships | Weights::Powers);
        check_values(values, k * (d + 1) + usize::from(!fuzzy))?;
        let (weights, sums, distance, name) = match self.weights {
            Weights::Powers => (&values[k * d..], &values[..k * d], &[][..], "U"),
            _ => (&values[..k], &values[k..k + k * d], &values[k + k * d..], "weights"),
        };
        check_weights(weights, rows.filter(|_| self.weights != Weights::LocalCentres), name)?;
        let negative = distance.iter().any(|distance| *distance < 0.0);
        refuse(negative, || Error::implausible("the sum of squared distances is negative"))?;
        if fuzzy {
            return self.trail.step(sums, &clear(weights), weights, walls);
        }
        // Whole numbers, up to the rounding of totals. A cluster that nothing counts at keeps its centre.
        let clear: Vec<f64> = weights.iter().map(|weight| if *weight > 0.5 { *weight } else { 0.0 }).collect();
        if clear.iter().all(|weight| *weight <= 0.0) {
            self.trail.fit.weights = weights.to_vec();
            return Ok(true);
        }
        self.trail.step(sums, &clear, weights, walls)
    }
}

/// Rounds that all ask the same question.
#[derive(Clone)]
pub(super) struct Averaging<F> {
    question: F,
    rounds: Rounds,
}

impl<F: Fn(Centres) -> Query + Clone + Send + 'static> Averaging<F> {
    /// Their beginning: what is asked about the centres of a round, until these rest by `epsilon`, and `max_rounds` at most.
    pub(super) fn begin(
        at: Beginning<'_>,
        weights: Weights,
        (epsilon, max_rounds): (f64, u32),
        question: F,
    ) -> Result<Box<dyn Iteration>, Error> {
        Ok(Box::new(Self { question, rounds: Rounds::new(at, weights, epsilon, max_rounds)? }))
    }
}

impl<F: Fn(Centres) -> Query + Clone + Send + 'static> Iteration for Averaging<F> {
    fn ask(&self) -> Query {
        (self.question)(self.rounds.trail.fit.centres.clone())
    }

    fn take(&mut self, values: &[f64], rows: Option<u64>, walls: &Walls) -> Result<bool, Error> {
        self.rounds.take(values, rows, walls)
    }

    fn fit(&self) -> Fit {
        self.rounds.trail.fit.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Domain;
    use crate::algorithm::Stop;

    fn start() -> Centres {
        Centres::known(vec![[0.0], [1.0]])
    }

    fn domain() -> Domain {
        Domain::known(vec![-1.0], vec![2.0], crate::Scaling::None)
    }

    fn walls() -> Walls {
        Walls::fine(&domain())
    }

    fn rounds() -> Rounds {
        until(Stop::Frobenius, 0.0)
    }

    fn until(stop: Stop, epsilon: f64) -> Rounds {
        let (domain, start) = (domain(), start());
        let at = Beginning { stop, ..Beginning::at(&domain, &start) };
        Rounds::new(at, Weights::Rows, epsilon, 5).unwrap()
    }

    /// Both centres move by a quarter: the root of an eighth in all, or a half.
    #[test]
    fn a_shift_is_a_norm_or_a_sum() {
        for (stop, epsilon, shift, ends) in [
            (Stop::Frobenius, 0.4, 0.125f64.sqrt(), true),
            (Stop::Frobenius, 0.35, 0.125f64.sqrt(), false),
            (Stop::Sum, 0.4, 0.5, false),
            (Stop::Sum, 0.5, 0.5, true),
        ] {
            let mut rounds = until(stop, epsilon);
            assert_eq!(rounds.take(&[1.0, 1.0, 0.25, 0.75, 0.1], None, &walls()), Ok(ends), "{stop:?} {epsilon}");
            let fit = &rounds.trail.fit;
            assert_eq!((fit.history[0].shift, fit.converged), (shift, ends));
        }
    }

    #[test]
    fn a_cluster_without_rows_keeps_its_place() {
        let mut rounds = rounds();
        assert_eq!(rounds.take(&[1.0, 0.0, 0.25, 0.0, 0.1], Some(1), &walls()), Ok(false));
        assert_eq!(rounds.trail.fit.centres.as_slice(), [0.25, 1.0]);
        assert_eq!(rounds.take(&[1.0, 0.0, 0.25, 0.0, 0.1], Some(1), &walls()), Ok(true));
        assert!(rounds.trail.fit.converged && rounds.trail.fit.weights == [1.0, 0.0]);
    }

    #[test]
    fn without_rows_it_is_over_and_has_not_converged() {
        let mut rounds = rounds();
        assert_eq!(rounds.take(&[0.0; 5], None, &walls()), Ok(true));
        assert!(
            !rounds.trail.fit.converged && rounds.trail.fit.history.is_empty() && rounds.trail.fit.centres == start()
        );
    }

    #[test]
    fn a_cycle_is_not_walked_twice() {
        let mut rounds = rounds();
        assert_eq!(rounds.take(&[1.0, 1.0, 0.5, 1.0, 0.0], None, &walls()), Ok(false));
        assert_eq!(rounds.take(&[1.0, 1.0, 0.0, 1.0, 0.0], None, &walls()), Ok(true));
        assert!(!rounds.trail.fit.converged && rounds.trail.fit.history.len() == 2);
    }
}
