//! Everything that was released about one set of rows, as equations in the records: the sums are linear in the rows'
//! empirical measure (Bárcena et al. 2021, Eqs. 7-9; Stallmann & Wilbik 2022, Eqs. 15-17).
//!
//! A record x adds `phi(x)` to everything that is released; an attacker who knows the questions knows phi and its
//! derivatives.

use veilsum_cluster::{Batch, Query};

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

/// Squared distances below this count as it: a record on a centre has no derivative.
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
        records.chunks_exact(self.columns).for_each(|record| self.add(record, &mut phi, None));
        phi
    }

    fn add(&self, record: &[f64], phi: &mut [f64], mut slopes: Option<Slopes<'_>>) {
        let columns = self.columns;
        let wanted = slopes.is_some();
        let mut add = |equation: usize, column: usize, by: f64| {
            if let Some(Slopes { all, stride, at }) = &mut slopes {
                all[equation * *stride + *at + column] += by;
            }
        };
        let mut first = 0;
        for part in &self.parts {
            let clusters = part.clusters;
            let power = 1.0 / (part.m - 1.0);
            let centre = |c: usize| &part.centres[c * columns..(c + 1) * columns];
            let squares: Vec<f64> = (0..clusters)
                .map(|c| record.iter().zip(centre(c)).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().max(CLOSEST))
                .collect();
            let nearest = squares.iter().copied().fold(f64::INFINITY, f64::min);
            let parts: Vec<f64> = squares.iter().map(|d| (nearest / d).powf(power)).collect();
            let all: f64 = parts.iter().sum();
            // d ln u_c = g_c - sum_k u_k g_k with g_c = -2 p (x - v_c) / d_c.
            let slope = |c: usize, f: usize| -2.0 * power * (record[f] - centre(c)[f]) / squares[c];
            let mean: Vec<f64> = (0..if wanted { columns } else { 0 })
                .map(|f| (0..clusters).map(|c| parts[c] / all * slope(c, f)).sum())
                .collect();
            for c in 0..clusters {
                let u = parts[c] / all;
                let weight = u.powf(part.m);
                let by = |f: usize| slope(c, f) - mean[f];
                if part.validation {
                    let (distance, last) = (squares[c].sqrt(), first + 2 * clusters);
                    phi[first + c] += distance;
                    phi[first + clusters + c] += u;
                    phi[last] += weight * squares[c];
                    for (f, x) in record.iter().enumerate().take(mean.len()) {
                        let away = x - centre(c)[f];
                        add(first + c, f, away / distance);
                        add(first + clusters + c, f, u * by(f));
                        add(last, f, part.m * weight * by(f) * squares[c] + weight * 2.0 * away);
                    }
                } else {
                    let row = first + clusters * columns + c;
                    phi[row] += weight;
                    for (f, x) in record.iter().enumerate() {
                        phi[first + c * columns + f] += weight * x;
                    }
                    for g in 0..mean.len() {
                        let by = part.m * weight * by(g);
                        add(row, g, by);
                        for (f, x) in record.iter().enumerate() {
                            let own = if f == g { weight } else { 0.0 };
                            add(first + c * columns + f, g, by * x + own);
                        }
                    }
                }
            }
            first += part.len(columns);
        }
    }
}

/// Where derivatives go.
struct Slopes<'a> {
    all: &'a mut [f64],
    stride: usize,
    at: usize,
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
        jacobian.fill(0.0);
        for (j, record) in x.chunks_exact(self.releases.columns).enumerate() {
            let slopes = Slopes { all: jacobian, stride: x.len(), at: j * self.releases.columns };
            self.releases.add(record, residuals, Some(slopes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use veilsum_cluster::{Centres, Domain, OutOfBox, Prepared, Rows, Scaling, answer};

    fn batch(m: f64) -> Batch {
        let centres = Centres::from_rows(&[vec![-0.6, 0.1], vec![0.5, 0.7], vec![0.2, -0.8]]).unwrap();
        let queries = vec![Query::fuzzy_sums(centres.clone(), m), Query::fuzzy_validation(centres, m)];
        Batch { transform: None, queries }
    }

    const RECORDS: [f64; 6] = [0.31, 0.12, -0.71, -0.44, 0.05, 0.93];

    #[test]
    fn what_records_add_is_what_a_site_answers() {
        let rows = Rows::new(RECORDS.to_vec(), 2).unwrap();
        let domain = Domain::new(vec![-1.0; 2], vec![1.0; 2], Scaling::None).unwrap();
        for m in [1.5, 2.0, 3.0] {
            let answered = answer(&batch(m), &Prepared::new(&rows, &domain, OutOfBox::Refuse).unwrap()).unwrap().values;
            let ours = Releases::of([&batch(m)]).unwrap().total(&RECORDS);
            assert_eq!(ours.len(), answered.len());
            ours.iter().zip(&answered).for_each(|(a, b)| assert!((a - b).abs() < 1e-13, "m {m}: {a} {b}"));
        }
    }

    #[test]
    fn the_derivatives_are_those_of_the_sums() {
        for m in [1.5, 2.0, 3.0] {
            let releases = Releases::of([&batch(m)]).unwrap();
            let n = releases.equations();
            let observed = releases.total(&RECORDS);
            let system = Sums { releases: &releases, observed: &observed };
            let at = |x: &[f64]| {
                let (mut r, mut j) = (vec![0.0; n], vec![0.0; n * 6]);
                system.evaluate(x, &mut r, &mut j);
                (r, j)
            };
            let (residuals, jacobian) = at(&RECORDS);
            assert!(residuals.iter().all(|r| r.abs() < 1e-14), "{residuals:?}");
            for unknown in 0..6 {
                let (mut up, mut down) = (RECORDS, RECORDS);
                up[unknown] += 1e-6;
                down[unknown] -= 1e-6;
                let (up, down) = (at(&up).0, at(&down).0);
                for e in 0..n {
                    let slope = (up[e] - down[e]) / 2e-6;
                    assert!((slope - jacobian[e * 6 + unknown]).abs() < 1e-7, "m {m}, equation {e}, unknown {unknown}");
                }
            }
        }
    }
}
