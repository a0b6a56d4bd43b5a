//! What the methods that average groups have in common: counts before sums where the plan wants it, clusters frozen that too
//! few stand behind, the stop rule.

use super::spec::{Beginning, GroupThreshold, Iteration, Spec};
use super::update::{Counted, Fit, Rested, Trail, Walls};
use crate::query::{RoundHalf, SinceCentres};
use crate::totals_check::{check_values, check_weights};
use crate::{Centres, MethodError, Query};

/// What the weights in the totals are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weights {
    /// Rows: both halves of the rule apply.
    Rows,
    /// Local centres: how many rows stand behind one is not known, so only the number of sites is required.
    LocalCentres,
}

/// Rounds of `mean = sum / weight`, each one question or two.
#[derive(Debug, Clone)]
pub(super) struct Rounds {
    pub(super) trail: Trail,
    weights: Weights,
    rule: GroupThreshold,
    /// Rows that must have entered or left a cluster before its sum is asked again; 1 asks every time.
    min_change: u64,
    /// By cluster the centres at which its sum was asked last.
    since: Vec<Option<Centres>>,
    /// Between the two halves of a round: what the counts allow.
    open: Option<Vec<u32>>,
    /// Whether the last round found no cluster that enough rows and sites stand behind.
    nothing_open: bool,
    /// Clusters that the open round leaves where they are although rows would move them.
    frozen: Rested,
}

impl Rounds {
    pub(super) fn new(at: Beginning<'_>, weights: Weights, epsilon: f64, max_rounds: u32) -> Result<Self, MethodError> {
        at.rule.check()?;
        let trail = Trail::new(at.start, epsilon, max_rounds)?;
        Ok(Self {
            trail,
            weights,
            rule: at.rule,
            min_change: 1,
            since: Vec::new(),
            open: None,
            nothing_open: false,
            frozen: Rested::default(),
        })
    }

    /// A sum that was asked once is asked again only where so many rows have entered or left its cluster: the difference of
    /// two sums is otherwise the sum of a few rows, or one row. For rounds of exact Lloyd.
    pub(super) fn min_change(&mut self, rows: u64) {
        self.min_change = rows;
        self.since = vec![None; self.trail.fit.centres.k()];
    }

    /// Which half the open question is.
    pub(super) fn part(&self) -> RoundHalf {
        match &self.open {
            Some(list) => RoundHalf::Sums(list.clone()),
            None if self.since.iter().any(Option::is_some) => RoundHalf::Changes(self.since()),
            None if self.rule.two_steps() => RoundHalf::Counts,
            None => RoundHalf::Both,
        }
    }

    fn since(&self) -> SinceCentres {
        let mut since = SinceCentres { centres: Vec::new(), of: Vec::new() };
        for centres in &self.since {
            since.of.push(centres.as_ref().map_or(0, |centres| {
                let known = since.centres.iter().position(|known| known == centres);
                1 + known.unwrap_or_else(|| {
                    since.centres.push(centres.clone());
                    since.centres.len() - 1
                }) as u32
            }));
        }
        since
    }

    /// Whether it ended because too few stand behind every cluster.
    pub(super) fn nothing_open(&self) -> bool {
        self.nothing_open
    }

    /// Takes the totals of the open half, in the blocks of `LocalMeans` and of `LocalFuzzy` with `Pull::Nearest`. True when
    /// the rounds are over. After an error nothing has changed.
    pub(super) fn take(&mut self, values: &[f64], rows: Option<u64>) -> Result<bool, MethodError> {
        let (k, d) = (self.trail.fit.centres.k(), self.trail.fit.centres.columns());
        let rows = if self.weights == Weights::Rows { rows } else { None };
        match self.part() {
            part @ (RoundHalf::Counts | RoundHalf::Changes(_)) => {
                let again = part != RoundHalf::Counts;
                check_values(values, if again { 3 * k } else { 2 * k })?;
                let (weights, rest) = values.split_at(k);
                let (sites, changed) = rest.split_at(k);
                self.check(weights, sites, rows)?;
                check_weights(changed, None, "rows that changed their cluster")?;
                let mut enough: Vec<bool> = weights.iter().zip(sites).map(|(w, s)| self.allows(*w, *s)).collect();
                // The sum of all local centres is another one in every round, and no other total tells it.
                if self.weights == Weights::Rows {
                    self.rule.close_with_the_small(&mut enough, weights, sites);
                }
                let allowed = |c: &u32| enough[*c as usize];
                let mut open: Vec<u32> = (0..k as u32).filter(allowed).collect();
                let nothing_open = open.is_empty();
                // A cluster that hardly changed keeps its centre: where nobody entered or left, that is its mean already.
                let least = self.min_change as f64 - 0.5;
                open.retain(|c| {
                    self.since.get(*c as usize).is_none_or(Option::is_none) || changed[*c as usize] > least
                });
                let hardly = |c: &u32| allowed(c) && !open.contains(c) && changed[*c as usize] > 0.5;
                let hardly_changed = (0..k as u32).filter(hardly).count() as u32;
                let too_small = too_small(weights, |c| allowed(&c));
                (self.nothing_open, self.frozen) = (nothing_open, Rested { too_small, hardly_changed });
                self.trail.fit.weights = weights.to_vec();
                if open.is_empty() {
                    self.trail.fit.converged = true;
                    self.settle();
                    return Ok(true);
                }
                self.open = Some(open);
                Ok(false)
            }
            RoundHalf::Sums(list) => {
                check_values(values, list.len() * (1 + d))?;
                let (weights, sums) = values.split_at(list.len());
                check_weights(weights, rows, "weights")?;
                let mut all_weights = self.trail.fit.weights.clone();
                let (mut open_weights, mut all_sums) = (vec![0.0; k], vec![0.0; k * d]);
                for ((c, weight), sum) in list.iter().map(|c| *c as usize).zip(weights).zip(sums.chunks_exact(d)) {
                    all_weights[c] = *weight;
                    // A site may have dropped out since the counts.
                    if self.allows(*weight, f64::INFINITY) {
                        open_weights[c] = *weight;
                    }
                    all_sums[c * d..(c + 1) * d].copy_from_slice(sum);
                }
                self.update(&open_weights, &all_sums, all_weights)
            }
            RoundHalf::Both => {
                check_values(values, k * (d + 2) + 1)?;
                let (weights, rest) = values.split_at(k);
                let (sums, rest) = rest.split_at(k * d);
                let (sites, distance) = rest.split_at(k);
                self.check(weights, sites, rows)?;
                if distance[0] < 0.0 {
                    return Err(MethodError::implausible("the sum of squared distances is negative"));
                }
                let open = |(weight, sites): (&f64, &f64)| if self.allows(*weight, *sites) { *weight } else { 0.0 };
                let open: Vec<f64> = weights.iter().zip(sites).map(open).collect();
                self.frozen = Rested { too_small: too_small(weights, |c| open[c as usize] > 0.0), hardly_changed: 0 };
                self.update(&open, sums, weights.to_vec())
            }
        }
    }

    /// Moves the centres that have a weight; the others are frozen and stay.
    fn update(&mut self, open: &[f64], sums: &[f64], weights: Vec<f64>) -> Result<bool, MethodError> {
        if open.iter().all(|weight| *weight <= 0.0) {
            (self.open, self.trail.fit.weights, self.nothing_open) = (None, weights, true);
            self.settle();
            return Ok(true);
        }
        let before = self.trail.fit.centres.clone();
        let over = self.trail.step(sums, open, &weights)?;
        // Nothing has changed up to here: the caller may repeat the round after an error.
        let asked = self.open.take();
        if !self.since.is_empty() {
            for cluster in asked.into_iter().flatten() {
                self.since[cluster as usize] = Some(before.clone());
            }
        }
        self.settle();
        Ok(over)
    }

    /// Centres of frozen clusters that came to rest are no fixed point, and the fit must not say that they are.
    fn settle(&mut self) {
        let fit = &mut self.trail.fit;
        if self.nothing_open || (fit.converged && self.frozen.frozen() > 0) {
            (fit.converged, fit.rested) = (false, Some(self.frozen));
        }
    }

    /// Where it stands.
    pub(super) fn fit(&self) -> Fit {
        let fit = &self.trail.fit;
        let counted = match self.weights {
            // Every site takes part with all its rows, and a local centre stands for many.
            Weights::LocalCentres => Counted::All,
            Weights::Rows => Counted::Rows(fit.weights.iter().sum()),
        };
        Fit { counted, ..fit.clone() }
    }

    fn allows(&self, weight: f64, sites: f64) -> bool {
        match self.weights {
            Weights::Rows => self.rule.allows(weight, sites),
            Weights::LocalCentres => weight > 0.5 && GroupThreshold { min_rows: 1, ..self.rule }.allows(weight, sites),
        }
    }

    fn check(&self, weights: &[f64], sites: &[f64], rows: Option<u64>) -> Result<(), MethodError> {
        check_weights(weights, rows, "weights")?;
        check_weights(sites, None, "sites")
    }
}

/// Clusters with rows that may not be moved.
pub(super) fn too_small(weights: &[f64], allowed: impl Fn(u32) -> bool) -> u32 {
    (0..).zip(weights).filter(|(c, weight)| **weight > 0.5 && !allowed(*c)).count() as u32
}

/// An algorithm whose rounds are all of one kind.
#[derive(Debug, Clone)]
pub(super) struct Averaging<S> {
    spec: S,
    rounds: Rounds,
}

impl<S: Spec + Clone + Send + 'static> Averaging<S> {
    /// Its beginning, until the centres move less than `epsilon`.
    pub(super) fn begin(
        spec: &S,
        at: Beginning<'_>,
        weights: Weights,
        epsilon: f64,
    ) -> Result<Box<dyn Iteration>, MethodError> {
        Ok(Box::new(Self { spec: spec.clone(), rounds: Rounds::new(at, weights, epsilon, spec.rounds())? }))
    }
}

impl<S: Spec + Clone + Send + 'static> Iteration for Averaging<S> {
    fn ask(&self) -> Query {
        self.spec.asks(&self.rounds.trail.fit.centres, &self.rounds.part()).swap_remove(0)
    }

    fn take(&mut self, values: &[f64], rows: Option<u64>) -> Result<bool, MethodError> {
        self.rounds.take(values, rows)
    }

    fn fit(&self) -> Fit {
        self.rounds.fit()
    }

    fn confine(&mut self, walls: &Walls) {
        self.rounds.trail.walls = Some(walls.clone());
    }

    fn min_change(&mut self, rows: u64) {
        self.rounds.min_change(rows);
    }

    fn copy(&self) -> Box<dyn Iteration> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Domain;

    fn domain() -> Domain {
        Domain::new(vec![0.0], vec![2.0], crate::Scaling::None).unwrap()
    }

    fn start() -> Centres {
        Centres::known(vec![[0.0], [1.0]])
    }

    fn rounds(rule: GroupThreshold) -> Rounds {
        let start = start();
        let domain = domain();
        let at = Beginning { domain: &domain, start: &start, cells: None, rule, seed: 0 };
        Rounds::new(at, Weights::Rows, 0.0, 5).unwrap()
    }

    const TWO: GroupThreshold = GroupThreshold { min_rows: 3, min_sites: 2, ask_first: true };

    #[test]
    fn a_cluster_that_hardly_changed_is_not_opened_again() {
        let mut rounds = rounds(TWO);
        rounds.min_change(3);
        assert_eq!(rounds.part(), RoundHalf::Counts, "nothing was opened yet");
        assert_eq!(rounds.take(&[4.0, 9.0, 2.0, 2.0], Some(13)), Ok(false));
        assert_eq!(rounds.take(&[4.0, 9.0, 1.0, 9.0], Some(13)), Ok(false));
        assert_eq!(rounds.trail.fit.centres.as_slice(), [0.25, 1.0]);
        let RoundHalf::Changes(since) = rounds.part() else { panic!("{:?}", rounds.part()) };
        assert_eq!((since.centres, since.of), (vec![start()], vec![1, 1]));
        // Two rows more in cluster 1 are too few; three that came and went in cluster 0 are enough.
        assert_eq!(rounds.take(&[4.0, 11.0, 2.0, 2.0, 3.0, 2.0], None), Ok(false));
        assert_eq!(rounds.part(), RoundHalf::Sums(vec![0]));
        assert_eq!(rounds.take(&[4.0, 2.0], None), Ok(false));
        assert_eq!(rounds.trail.fit.centres.as_slice(), [0.5, 1.0]);
        let RoundHalf::Changes(since) = rounds.part() else { panic!("{:?}", rounds.part()) };
        assert_eq!((since.centres.len(), since.of), (2, vec![1, 2]), "each cluster since its own last sum");
        assert_eq!(since.centres[1], start());
        // Nothing changed enough any more.
        assert_eq!(rounds.take(&[4.0, 11.0, 2.0, 2.0, 0.0, 2.0], None), Ok(true));
        let frozen = Some(Rested { too_small: 0, hardly_changed: 1 });
        assert!(!rounds.trail.fit.converged && rounds.trail.fit.rested == frozen && !rounds.nothing_open());
        // And a negative count is none.
        assert!(rounds.take(&[4.0, 11.0, 2.0, 2.0, 0.0, -1.0], None).is_err());
    }

    #[test]
    fn counts_come_first_and_small_clusters_are_frozen() {
        let three = Centres::known(vec![[0.0], [1.0], [2.0]]);
        let domain = domain();
        let at = Beginning { domain: &domain, start: &three, cells: None, rule: TWO, seed: 0 };
        let mut rounds = Rounds::new(at, Weights::Rows, 0.0, 5).unwrap();
        assert_eq!(rounds.part(), RoundHalf::Counts);
        // Cluster 1 has rows enough, but of one site; cluster 0 hides them.
        assert_eq!(rounds.take(&[4.0, 9.0, 6.0, 2.0, 1.0, 2.0], Some(19)), Ok(false));
        assert_eq!(rounds.part(), RoundHalf::Sums(vec![2]));
        assert_eq!(rounds.take(&[6.0, 9.0], Some(19)), Ok(false));
        assert_eq!(rounds.trail.fit.centres.as_slice(), [0.0, 1.0, 1.5]);
        assert_eq!(rounds.trail.fit.weights, [4.0, 9.0, 6.0]);
        assert_eq!(rounds.part(), RoundHalf::Counts);
        // The same totals again: nothing moves, it is over.
        assert_eq!(rounds.take(&[4.0, 9.0, 6.0, 2.0, 1.0, 2.0], Some(19)), Ok(false));
        assert_eq!(rounds.take(&[6.0, 9.0], Some(19)), Ok(true));
        assert!(!rounds.trail.fit.converged && rounds.trail.fit.history.len() == 2);
        assert_eq!(rounds.trail.fit.rested, Some(Rested { too_small: 2, hardly_changed: 0 }));
    }

    /// Otherwise the sum of all rows, which another round or another K may tell, less the open sums would be the small cluster's.
    #[test]
    fn a_small_cluster_is_not_closed_alone() {
        let three = Centres::known(vec![[0.0], [0.5], [1.0]]);
        let domain = domain();
        let at = Beginning { domain: &domain, start: &three, cells: None, rule: TWO, seed: 0 };
        let mut rounds = Rounds::new(at, Weights::Rows, 0.0, 9).unwrap();
        assert_eq!(rounds.take(&[4.0, 13.0, 1.0, 2.0, 2.0, 1.0], Some(18)), Ok(false));
        assert_eq!(rounds.part(), RoundHalf::Sums(vec![1]), "clusters 0 and 2 have rows enough together");
        assert_eq!(rounds.take(&[13.0, 7.8], Some(18)), Ok(false));
        assert_eq!(rounds.take(&[4.0, 14.0, 0.0, 2.0, 2.0, 0.0], Some(18)), Ok(false));
        assert_eq!(rounds.part(), RoundHalf::Sums(vec![0, 1]), "an empty cluster hides nothing");
        // With two clusters there is nobody to hide behind.
        let mut two = self::rounds(TWO);
        assert_eq!(two.take(&[17.0, 1.0, 2.0, 1.0], Some(18)), Ok(true));
        assert!(two.nothing_open());
    }

    #[test]
    fn where_nobody_entered_or_left_it_has_converged() {
        let mut rounds = rounds(TWO);
        rounds.min_change(3);
        for (values, over) in [(&[4.0, 9.0, 2.0, 2.0][..], false), (&[4.0, 9.0, 1.0, 9.0], false)] {
            assert_eq!(rounds.take(values, None), Ok(over));
        }
        assert_eq!(rounds.take(&[4.0, 9.0, 2.0, 2.0, 0.0, 0.0], None), Ok(true));
        assert!(rounds.trail.fit.converged && rounds.trail.fit.rested.is_none());
    }

    #[test]
    fn sums_that_come_along_are_frozen_too() {
        let mut rounds = rounds(GroupThreshold { ask_first: false, ..TWO });
        assert_eq!(rounds.part(), RoundHalf::Both);
        assert_eq!(rounds.take(&[4.0, 2.0, 2.0, 2.0, 2.0, 2.0, 0.1], None), Ok(false));
        assert_eq!(rounds.trail.fit.centres.as_slice(), [0.5, 1.0]);
    }

    #[test]
    fn nothing_open_ends_it_without_convergence() {
        let mut two = rounds(TWO);
        assert_eq!(two.take(&[2.0, 9.0, 2.0, 1.0], None), Ok(true));
        assert!(!two.trail.fit.converged && two.trail.fit.history.is_empty() && two.trail.fit.centres == start());
        // A site left between the halves.
        let mut left = rounds(TWO);
        assert_eq!(left.take(&[4.0, 0.0, 2.0, 0.0], None), Ok(false));
        assert_eq!(left.take(&[2.0, 1.0], None), Ok(true));
        assert!(!left.trail.fit.converged && left.trail.fit.centres == start());
        let mut empty = rounds(GroupThreshold::NONE);
        assert_eq!(empty.take(&[0.0; 7], None), Ok(true));
        assert!(!empty.trail.fit.converged && empty.trail.fit.centres == start());
    }

    #[test]
    fn a_cycle_is_not_walked_twice() {
        let mut rounds = rounds(GroupThreshold::NONE);
        assert_eq!(rounds.take(&[1.0, 1.0, 0.5, 1.0, 1.0, 1.0, 0.0], None), Ok(false));
        assert_eq!(rounds.take(&[1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0], None), Ok(true));
        assert!(!rounds.trail.fit.converged && rounds.trail.fit.history.len() == 2);
    }

    #[test]
    fn implausible_totals_change_nothing() {
        let whole: [(&[f64], Option<u64>); 7] = [
            (&[1.0; 6], None),
            (&[1.0, 1.0, f64::NAN, 1.0, 1.0, 1.0, 1.0], None),
            (&[1.0, -1.0, 1.0, 1.0, 1.0, 1.0, 1.0], None),
            (&[1.0, 1.0, 1.0, 1.0, 1.0, -1.0, 1.0], None),
            (&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0], None),
            (&[3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0], Some(4)),
            (&[0.6, 1.0, f64::MAX, 1.0, 1.0, 1.0, 1.0], None),
        ];
        for (values, rows) in whole {
            let mut rounds = rounds(GroupThreshold::NONE);
            assert!(matches!(rounds.take(values, rows), Err(MethodError::Implausible { .. })), "{values:?}");
            assert!(
                rounds.trail.fit.centres == start()
                    && rounds.trail.fit.history.is_empty()
                    && rounds.part() == RoundHalf::Both
            );
        }
        let mut rounds = rounds(TWO);
        assert!(rounds.take(&[1.0; 5], None).is_err());
        assert_eq!(rounds.part(), RoundHalf::Counts);
        assert_eq!(rounds.take(&[4.0, 4.0, 2.0, 2.0], None), Ok(false));
        for values in [&[4.0, 4.0, 1.0][..], &[4.0, -1.0, 1.0, 1.0], &[4.0, f64::NAN, 1.0, 1.0]] {
            assert!(rounds.take(values, None).is_err());
            assert_eq!(rounds.part(), RoundHalf::Sums(vec![0, 1]));
        }
    }
}
