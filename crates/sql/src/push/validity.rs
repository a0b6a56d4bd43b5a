//! Questions about how well centres fit: the totals of the validity indices.

use veilsum_answerer::Refusal;
use veilsum_cluster::query::{FuzzyValidation, Silhouette, Validation};

use super::Asked;
use crate::{
    chain::{named, next_to_own, of_own, own, squares, stepped},
    text::number,
};

impl Asked<'_, '_> {
    pub(super) fn fuzzy_validation(&mut self, q: &FuzzyValidation) -> Result<Vec<i64>, Refusal> {
        let k = q.centres.k();
        self.distances(&q.centres)?;
        self.memberships(k, q.m);
        let mut sums: Vec<String> = named("t", k).map(|t| stepped(&t, self.bits(0))).collect();
        sums.extend(named("u", k).map(|u| stepped(&u, self.bits(1))));
        let objective = if q.m == 2.0 { "qm / s".to_owned() } else { format!("qm * power(s, {})", number(1.0 - q.m)) };
        sums.push(stepped(&objective, self.bits(2)));
        self.one(&sums)
    }

    pub(super) fn validation(&mut self, q: &Validation) -> Result<Vec<i64>, Refusal> {
        let (k, d) = (q.centres.k(), self.chain.d);
        self.distances(&q.centres)?;
        self.memberships(k, q.m);
        self.judged(k, q.m);
        // Of the own cluster, then of all rows.
        let mut sums = vec![stepped("nearest", self.bits(1)), stepped("near", self.bits(2))];
        if q.vectors {
            sums.extend((0..d).map(|at| stepped(&format!("x{at}"), self.bits(12))));
            for at in 0..d {
                let off = format!("(x{at} - {})", of_own((0..k).map(|c| (c, number(q.centres.row(c)[at])))));
                sums.push(stepped(&format!("{off} * {off}"), self.bits(13 + at)));
            }
        }
        let own = sums.len();
        sums.extend(named("t", k).map(|t| stepped(&t, self.bits(3))));
        sums.extend(named("u", k).map(|u| stepped(&u, self.bits(4))));
        sums.extend(named("w", k).map(|w| stepped(&w, self.bits(5))));
        sums.extend((0..k).map(|c| stepped(&format!("w{c} * e{c}"), self.bits(6))));
        sums.extend(self.scalars(k, 7));
        let (mut rows, mut of_own) = (vec![0; k], vec![vec![0; own]; k]);
        let mut all = vec![0; sums.len() - own];
        for (c, group) in self.by_own(k, &sums)? {
            rows[c] = group.rows;
            of_own[c].copy_from_slice(&group.sums[..own]);
            all.iter_mut().zip(&group.sums[own..]).for_each(|(all, own)| *all += own);
        }
        let mut words = self.count(0, &rows)?;
        words.extend(of_own.iter().map(|own| own[0]));
        words.extend(of_own.iter().map(|own| own[1]));
        words.extend(all);
        if q.vectors {
            words.extend(of_own.iter().flat_map(|own| &own[2..2 + d]));
            words.extend((0..d).flat_map(|at| of_own.iter().map(move |own| own[2 + d + at])));
        }
        Ok(words)
    }

    pub(super) fn silhouette(&mut self, q: &Silhouette) -> Result<Vec<i64>, Refusal> {
        let k = q.centres.k();
        self.distances(&q.centres)?;
        let xs = self.chain.xs();
        self.chain.then(xs.into_iter().chain([format!("{} AS own", own(k, "q", "qm"))]));
        self.chain.then(["own".to_owned()].into_iter().chain(squares(&q.means, "e")));
        // The same after the roots, for clusters that have rows.
        let (infinity, zero) = (number(f64::INFINITY), number(0.0));
        let there: Vec<usize> = (0..k).filter(|c| q.rows[*c] > 0.5).collect();
        let within = |c: usize| number(q.scatter[c] / q.rows[c]);
        let each = |of: &dyn Fn(usize) -> String| there.iter().map(|c| (*c, of(*c))).collect::<Vec<_>>();
        // A row whose own cluster is said to have no rows counts nothing.
        let pick = |of: &dyn Fn(usize) -> String| format!("COALESCE({}, {zero})", of_own(each(of)));
        let least = |of: &dyn Fn(usize) -> String| next_to_own(each(of));
        let root = |c: usize| format!("sqrt(e{c})");
        let others = |c: usize| format!("e{c} + {}", within(c));
        let to_own = |c: usize| {
            format!("(e{c} + {}) * {} / {}", within(c), number(q.rows[c]), number((q.rows[c] - 1.0).max(0.5)))
        };
        let columns = [
            "own".to_owned(),
            format!("{} AS a0", pick(&root)),
            format!("{} AS a1", pick(&to_own)),
            format!("{} AS b0", least(&root)),
            format!("{} AS b1", least(&others)),
        ];
        self.chain.then(columns);
        let alone: Vec<String> = (0..k).filter(|c| q.rows[*c] < 1.5).map(|c| c.to_string()).collect();
        let alone = if alone.is_empty() { "false".to_owned() } else { format!("own IN ({})", alone.join(", ")) };
        let width = |a: &str, b: &str| {
            format!(
                "CASE WHEN {alone} OR {b} = {infinity} OR GREATEST({a}, {b}) = 0 THEN {zero} \
                 ELSE ({b} - {a}) / GREATEST({a}, {b}) END"
            )
        };
        let sums = [stepped(&width("a0", "b0"), self.bits(0)), stepped(&width("a1", "b1"), self.bits(1))];
        self.one(&sums)
    }
}
