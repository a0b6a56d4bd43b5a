//! Everything that was released about one set of rows, as equations in the records: the sums are linear in the rows'
//! empirical measure (Bárcena et al. 2021, Eqs. 7-9; Stallmann & Wilbik 2022, Eqs. 15-17).
//!
//! A record x adds `phi(x)` to everything that is released; an attacker who knows the questions knows phi.

use veilsum_cluster::{Batch, Query, distance::squared};

use crate::least_squares::System;

/// One question's centres and what of it is asked.
struct Part {
    centres: Vec<f64>,
    clusters: usize,
    m: f64,
    /// Distances, memberships and objective, not weighted sums.
    validation: bool,
}

impl Part {
    fn len(&self, columns: usize) -> usize {
        if self.validation { 2 * self.clusters + 1 } else { self.clusters * (columns + 1) }
    }
}

/// The questions behind everything that was released.
pub struct Releases {
    parts: Vec<Part>,
    columns: usize,
    equations: usize,
}

/// Half the length by which a derivative is taken.
const STEP: f64 = 1e-6;
/// Squared distances below this count as it: a record on a centre has no membership.
const CLOSEST: f64 = 1e-24;

impl Releases {
    /// Of these rounds, one after the other. None where a question is of another kind than fuzzy sums and validation.
    pub fn of<'a>(batches: impl IntoIterator<Item = &'a Batch>) -> Option<Releases> {
        let mut parts = Vec::new();
        let mut columns = 0;
        for batch in batches {
            for query in &batch.queries {
                let (centres, m, validation) = match query {
                    Query::FuzzySums(q) => (&q.centres, q.m, false),
                    Query::FuzzyValidation(q) => (&q.centres, q.m, true),
                    _ => return None,
                };
                columns = centres.columns();
                parts.push(Part { centres: centres.as_slice().to_vec(), clusters: centres.k(), m, validation });
            }
            if batch.transform.is_some() {
                return None;
            }
        }
        let equations = parts.iter().map(|part| part.len(columns)).sum();
        (equations > 0).then_some(Releases { parts, columns, equations })
    }

    /// Numbers that were released.
    pub fn equations(&self) -> usize {
        self.equations
    }

    /// What these records add up to.
    pub fn total(&self, records: &[f64]) -> Vec<f64> {
        let mut phi = vec![0.0; self.equations];
        records.chunks_exact(self.columns).for_each(|record| self.add(record, &mut phi));
        phi
    }

    fn add(&self, record: &[f64], phi: &mut [f64]) {
        let columns = self.columns;
        let mut rest = phi;
        for part in &self.parts {
            let clusters = part.clusters;
            let own = rest.split_off_mut(..part.len(columns)).unwrap_or_default();
            let centres = part.centres.chunks_exact(columns);
            let squares: Vec<f64> = centres.map(|centre| squared(record, centre).max(CLOSEST)).collect();
            let nearest = squares.iter().copied().fold(f64::INFINITY, f64::min);
            let pulls: Vec<f64> = squares.iter().map(|d| (nearest / d).powf(1.0 / (part.m - 1.0))).collect();
            let all: f64 = pulls.iter().sum();
            for c in 0..clusters {
                let u = pulls[c] / all;
                let weight = u.powf(part.m);
                if part.validation {
                    own[c] += squares[c].sqrt();
                    own[clusters + c] += u;
                    own[2 * clusters] += weight * squares[c];
                } else {
                    own[clusters * columns + c] += weight;
                    record.iter().enumerate().for_each(|(f, x)| own[c * columns + f] += weight * x);
                }
            }
        }
    }
}

/// N unknown records against what was observed; equations may weigh differently.
pub struct Sums<'a> {
    /// The equations.
    pub releases: &'a Releases,
    /// What was released.
    pub observed: &'a [f64],
}

impl System for Sums<'_> {
    fn equations(&self) -> usize {
        self.observed.len()
    }

    fn evaluate(&self, x: &[f64], residuals: &mut [f64], jacobian: &mut [f64]) {
        residuals.iter_mut().zip(self.observed).for_each(|(r, s)| *r = -s);
        for (record, at) in x.chunks_exact(self.releases.columns).zip((0..).step_by(self.releases.columns)) {
            self.releases.add(record, residuals);
            for column in 0..record.len() {
                let moved = |by: f64| {
                    let mut moved = record.to_vec();
                    moved[column] += by;
                    self.releases.total(&moved)
                };
                let slopes = moved(STEP).into_iter().zip(moved(-STEP)).map(|(up, down)| (up - down) / (2.0 * STEP));
                slopes.enumerate().for_each(|(equation, slope)| jacobian[equation * x.len() + at + column] = slope);
            }
        }
    }
}
