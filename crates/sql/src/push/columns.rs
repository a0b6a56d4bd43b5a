//! Questions about columns, without a centre: moments and histograms.

use veilsum_answerer::Refusal;
use veilsum_cluster::query::{Histogram, Moments};

use super::Asked;
use crate::{
    chain::{stepped, too_large},
    text::{list, number},
};

/// Edges of all brackets of a histogram together.
const MAX_EDGES: usize = 100_000;

impl Asked<'_, '_> {
    pub(super) fn moments(&mut self, q: &Moments) -> Result<Vec<i64>, Refusal> {
        let of = |at: usize| match &q.around {
            None => format!("x{at}"),
            Some(around) => format!("(x{at} - {0}) * (x{at} - {0})", number(around[at])),
        };
        let sums: Vec<String> = (0..self.chain.d).map(|at| stepped(&of(at), self.bits(1 + at))).collect();
        let rows = i64::try_from(self.rows).unwrap_or(i64::MAX);
        Ok([self.count(0, &[rows])?, self.one(&sums)?].concat())
    }

    pub(super) fn histogram(&mut self, q: &Histogram) -> Result<Vec<i64>, Refusal> {
        let each = q.bins as usize + 1;
        if q.brackets.len() * each > MAX_EDGES {
            return Err(too_large());
        }
        let bin = |(at, bracket): (usize, &veilsum_cluster::query::Bracket)| {
            let edges = list((0..q.bins).map(|bin| format!("{:e}", bracket.edge(bin, q.bins))));
            let (x, upper) = (format!("x{}", bracket.column), number(bracket.upper));
            format!("({at}, CASE WHEN {x} <= {upper} THEN width_bucket({x}, '{{{edges}}}'::float8[]) ELSE -1 END)")
        };
        let values = list(q.brackets.iter().enumerate().map(bin));
        let last = self.chain.last.clone();
        let part = format!("h AS (SELECT b.at, b.bin FROM {last} CROSS JOIN LATERAL (VALUES {values}) AS b(at, bin))");
        self.chain.parts.push(part);
        self.chain.last = "h".into();
        let mut counts = vec![0; q.brackets.len() * each];
        for group in self.counted(&["at".into(), "bin".into()], &[], q.brackets.len())? {
            if let [at, bin] = group.key[..]
                && bin >= 0
                && let Some(slot) = counts.get_mut(at as usize * each + bin as usize)
            {
                *slot = group.rows;
            }
        }
        self.count(0, &counts)
    }
}
