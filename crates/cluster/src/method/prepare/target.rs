//! The search for one quantile.

use crate::query::Bracket;

/// A bracket is narrow enough when it is so small a part of its column's box.
const NARROW: f64 = 1e-10;

/// Rounds until a bracket is narrow enough: the smallest R with `bins^R >= 1 / NARROW`.
pub(super) fn rounds(bins: u32) -> u32 {
    let (mut rounds, mut width) = (0, 1.0);
    while width > NARROW {
        width /= f64::from(bins);
        rounds += 1;
    }
    rounds
}

/// One quantile that is searched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) quantile: f64,
    pub(super) bracket: Bracket,
    /// Once it is found.
    pub(super) value: Option<f64>,
}

impl Target {
    /// Takes the counts of its bracket: rows below, then those of the bins. False where the rank is not in the bracket.
    pub(super) fn narrow(&mut self, counts: &[f64], rows: f64, min_rows: f64, last: bool, noisy: bool) -> bool {
        let bins = counts.len() as u32 - 1;
        // 0.07 of 100 rows are 7, and not the hair more that the product of two doubles is.
        let rank = (self.quantile * rows * (1.0 - 4.0 * f64::EPSILON)).ceil().clamp(1.0, rows);
        let mut below = counts[0].round();
        if rank <= below {
            self.value = Some(self.bracket.lower);
            return false;
        }
        for (bin, count) in (0..bins).zip(&counts[1..]) {
            let count = count.round();
            if rank > below + count {
                below += count;
                continue;
            }
            let (lower, upper) = (self.bracket.edge(bin, bins), self.bracket.edge(bin + 1, bins));
            let narrower = upper - lower < self.bracket.upper - self.bracket.lower;
            self.value = if noisy || count < min_rows {
                // Where the row of this rank lies on average, if the bin's rows are spread evenly over it.
                Some(lower + (upper - lower) * ((rank - below) / (count + 1.0)))
            } else if last || lower >= upper || !narrower {
                // The middle, and not by rank: two quantiles of rows that coincide must come out equal.
                Some(lower + (upper - lower) / 2.0)
            } else {
                None
            };
            self.bracket = Bracket { lower, upper, ..self.bracket };
            return true;
        }
        self.value = Some(self.bracket.upper);
        false
    }
}
