//! Powers by the operations of the kernel, one by one ([SUM-2]): `x^e = 2^(e log2 x)`, by polynomials, so that a database finds the same
//! doubles. Of the database's own powers and logarithms only those of whole numbers count, which are exact, and a guess of an exponent,
//! which is put right.

use veilsum_cluster::kernel::power::{LEAST, OF_EXP, OF_LOG, ROOT_OF_HALF, ROUNDER};

use crate::{chain::Chain, text::number};

/// Powers of columns of the last part of a chain.
pub(crate) struct Powers<'a> {
    /// Columns that stay.
    pub(crate) keep: &'a [String],
    /// Names of the columns that are raised; they end here.
    pub(crate) of: &'a [String],
    /// The powers, column by column.
    pub(crate) to: &'a [String],
    pub(crate) exponent: f64,
    /// What is less has the power 0.
    pub(crate) least: f64,
}

/// Horner's rule, from the highest power down.
fn polynomial(x: &str, coefficients: &[f64]) -> String {
    let mut highest_first = coefficients.iter().rev().map(|c| number(*c));
    let first = highest_first.next().unwrap_or_default();
    highest_first.fold(first, |value, c| format!("({value} * {x} + {c})"))
}

impl Powers<'_> {
    pub(crate) fn add_to(&self, chain: &mut Chain) {
        let n = self.of.len();
        let mut then = |columns: &dyn Fn(usize) -> Vec<String>| {
            chain.then(self.keep.iter().cloned().chain((0..n).flat_map(columns)));
        };
        let (root, double) = (number(ROOT_OF_HALF), number(2.0 * ROOT_OF_HALF));
        let (one, two, half) = (number(1.0), number(2.0), number(0.5));
        let small = format!("< {}", number(self.least));
        // The exponent, nearly.
        then(&|i| {
            let x = &self.of[i];
            let guess = format!("round(ln({x}) * {})", number(std::f64::consts::LOG2_E));
            vec![
                format!("{x} AS pa{i}"),
                format!("CASE WHEN {x} {small} THEN {} ELSE {guess} END AS pw{i}", number(0.0)),
            ]
        });
        then(&|i| vec![format!("pa{i}"), format!("pw{i}"), format!("pa{i} * power({two}, -pw{i}) AS pb{i}")]);
        // The exponent, and a mantissa from the root of a half up to its double.
        then(&|i| {
            let case = |low: &str, high: &str, other: &str| {
                format!("CASE WHEN pb{i} < {root} THEN {low} WHEN pb{i} >= {double} THEN {high} ELSE {other} END")
            };
            let (w, b) = (format!("pw{i}"), format!("pb{i}"));
            let mantissa = case(&format!("{b} * {two}"), &format!("{b} * {half}"), &b);
            let whole = case(&format!("{w} - {one}"), &format!("{w} + {one}"), &w);
            vec![format!("pa{i}"), format!("{whole} AS pw{i}"), format!("{mantissa} AS pb{i}")]
        });
        then(&|i| vec![format!("pa{i}"), format!("pw{i}"), format!("(pb{i} - {one}) / (pb{i} + {one}) AS pz{i}")]);
        then(&|i| vec![format!("pa{i}"), format!("pw{i}"), format!("pz{i}"), format!("pz{i} * pz{i} AS pb{i}")]);
        then(&|i| {
            let log = format!("pw{i} + pz{i} * {}", polynomial(&format!("pb{i}"), &OF_LOG));
            let exponent = format!("GREATEST(({log}) * {}, {})", number(self.exponent), number(LEAST));
            vec![format!("pa{i}"), format!("{exponent} AS pt{i}")]
        });
        then(&|i| {
            let whole = format!("((pt{i} + {0}) - {0})", number(ROUNDER));
            vec![format!("pa{i}"), format!("{whole} AS pw{i}"), format!("pt{i} - {whole} AS pf{i}")]
        });
        then(&|i| {
            let power = format!("power({two}, pw{i}) * {}", polynomial(&format!("pf{i}"), &OF_EXP));
            let to = &self.to[i];
            vec![format!("CASE WHEN pa{i} {small} THEN {} ELSE {power} END AS {to}", number(0.0))]
        });
    }
}
