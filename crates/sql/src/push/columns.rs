//! Questions about columns, without a centre: moments and histograms.

use veilsum_answerer::{Refusal, RefusalCode};
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
        Ok([vec![self.counted(0, rows)?], self.one(&sums)?].concat())
    }

    pub(super) fn histogram(&mut self, q: &Histogram) -> Result<Vec<i64>, Refusal> {
        let each = q.bins as usize + 1;
        if q.brackets.len() * each > MAX_EDGES {
            return Err(too_large());
        }
        let bin = |(at, bracket): (usize, &veilsum_cluster::query::Bracket)| {
            let edges = list((0..q.bins).map(|bin| format!("{:e}", bracket.edge(bin, q.bins))));
            let x = format!("x{}", bracket.column);
            format!(
                "({at}, CASE WHEN {x} <= {} THEN width_bucket({x}, '{{{}}}'::float8[]) ELSE -1 END)",
                number(bracket.upper),
                edges.replace(' ', "")
            )
        };
        let values = list(q.brackets.iter().enumerate().map(bin));
        let last = self.chain.last.clone();
        let name = "h".to_owned();
        self.chain.parts.push(format!(
            "{name} AS (SELECT b.at, b.bin FROM {last} CROSS JOIN LATERAL (VALUES {values}) AS b(at, bin))"
        ));
        self.chain.last = name;
        let groups = (self.run)(&self.chain.by(&["at".into(), "bin".into()], &[]))?;
        let (mut counts, mut rows) = (vec![0; q.brackets.len() * each], 0);
        for group in groups {
            rows += group.rows;
            if let [at, bin] = group.key[..]
                && bin >= 0
                && let Some(slot) = counts.get_mut(at as usize * each + bin as usize)
            {
                *slot = group.rows;
            }
        }
        if rows as u64 != self.rows.saturating_mul(q.brackets.len() as u64) {
            let what = "the database counts other rows than before";
            return Err(Refusal::new(
                RefusalCode::Changed,
                what,
                "let the view read tables, and no functions that change",
            ));
        }
        self.count(0, &counts)
    }
}
