//! Questions as SQL. The contributions of a row are those of specification 21, operation by operation: doubles, no fused
//! multiply-add, sums from the left, and a cast to `int8`, which rounds to nearest with ties to even. Multiplying by a power of two
//! is exact, so a weight may be brought to the block's step before it meets a coordinate.
//!
//! Every step is a part of a WITH behind an `OFFSET 0`. Without these fences the planner puts expressions into expressions, and
//! needs minutes for the plan alone.

use veilsum_answerer::{AskedBlock, Refusal, RefusalCode, contract::kind_of};
use veilsum_cluster::{
    Batch, Centres, Domain, Query,
    query::{
        Cells, FuzzySums, FuzzyValidation, Histogram, LocalMeans, Moments, RoundHalf, Silhouette, Sizes, Ungrouped,
        Validation,
    },
};

use crate::{
    chain::{Chain, leaf, moved, named, own, squares, stepped, too_large, total},
    power::Powers,
    source::Source,
    text::{list, number, sum},
};

/// The kinds that are answered by SQL.
pub(crate) const KINDS: [&str; 10] = [
    "fuzzy_sums",
    "fuzzy_validation",
    "local_means",
    "moments",
    "histogram",
    "cells",
    "validation",
    "ungrouped",
    "sizes",
    "silhouette",
];

/// Columns that a part of a WITH may have; PostgreSQL has 1664.
const MAX_WIDTH: usize = 1_600;
/// Leaves of a tree of cells; each is a branch of one expression.
const MAX_LEAVES: usize = 4_096;
/// Edges of all brackets of a histogram together.
const MAX_EDGES: usize = 100_000;
/// Powers below this are 0 in every sum, and the database refuses results that are too small for a double.
const TINY: f64 = 1e-120;
/// Sums of reciprocal squared distances outside this range need more care than SQL has ([QRY-5]).
const SAFE: (f64, f64) = (1e-290, 1e290);

/// The least number whose power with exponent `e` still counts.
fn least(e: f64) -> f64 {
    TINY.powf(1.0 / e)
}

/// One line of a result: a key, rows, and sums.
pub(crate) struct Group {
    pub(crate) key: Vec<i32>,
    pub(crate) rows: i64,
    pub(crate) sums: Vec<i64>,
}

/// Runs a statement whose lines are groups.
pub(crate) type Run<'a> = dyn FnMut(&str) -> Result<Vec<Group>, Refusal> + 'a;

/// Whether these columns can be computed with in SQL: the database refuses squares that are too small or too large.
///
/// # Errors
/// [`Refusal`].
pub(crate) fn usable(domain: &Domain) -> Result<(), Refusal> {
    let fine = |column: usize| {
        let (low, high) = domain.working_interval(column);
        (1e-60..=1e60).contains(&(high - low)) && low.abs() <= 1e60 && high.abs() <= 1e60
    };
    if (0..domain.columns()).all(fine) {
        return Ok(());
    }
    let what = "a column of the plan has bounds that squares of doubles do not reach in SQL";
    Err(Refusal::new(RefusalCode::Columns, what, "use --mode stream, or a plan with other units"))
}

/// The words of a question.
///
/// # Errors
/// [`Refusal`], also that of `run`.
pub(crate) fn words(
    source: &Source,
    domain: &Domain,
    batch: &Batch,
    blocks: &[AskedBlock],
    rows: u64,
    run: &mut Run<'_>,
) -> Result<Vec<i64>, Refusal> {
    let inner =
        batch.domain(domain).map_err(|e| Refusal::new(RefusalCode::Protocol, e, "ask a question that fits the box"))?;
    let mut parts = source.working();
    if let Some(transform) = &batch.transform {
        parts.extend(moved(transform, &inner));
    }
    let name = if batch.transform.is_some() { "t2" } else { "w0" };
    let mut words = Vec::new();
    let mut rest = blocks;
    for query in &batch.queries {
        let (own, next) = rest.split_at(query.layout(&inner).len().min(rest.len()));
        rest = next;
        let chain = Chain { parts: parts.clone(), last: name.to_owned(), d: inner.columns() };
        let mut asked = Asked { chain, blocks: own, rows, run };
        words.extend(match query {
            Query::FuzzySums(q) => asked.fuzzy_sums(q)?,
            Query::FuzzyValidation(q) => asked.fuzzy_validation(q)?,
            Query::LocalMeans(q) => asked.local_means(q)?,
            Query::Moments(q) => asked.moments(q)?,
            Query::Histogram(q) => asked.histogram(q)?,
            Query::Cells(q) => asked.cells(q)?,
            Query::Validation(q) => asked.validation(q)?,
            Query::Ungrouped(q) => asked.ungrouped(q)?,
            Query::Sizes(q) => asked.sizes(q)?,
            Query::Silhouette(q) => asked.silhouette(q)?,
            other => {
                let what = format!("questions of the kind {} are not answered in SQL", kind_of(other));
                return Err(Refusal::new(RefusalCode::Kind, what, "use --mode stream"));
            }
        });
    }
    Ok(words)
}

/// A question with what its answer is made of.
struct Asked<'a, 'r> {
    chain: Chain,
    blocks: &'a [AskedBlock],
    rows: u64,
    run: &'a mut Run<'r>,
}

impl Asked<'_, '_> {
    fn bits(&self, block: usize) -> i32 {
        self.blocks[block].fraction_bits
    }

    /// So many rows in the steps of a block; counts come in whole rows.
    fn counted(&self, block: usize, rows: i64) -> Result<i64, Refusal> {
        let shift = u32::try_from(self.bits(block)).ok().filter(|shift| *shift < 63);
        let steps = shift.and_then(|shift| rows.checked_mul(1 << shift));
        steps
            .ok_or_else(|| Refusal::new(RefusalCode::Limit, "a count leaves 64 bits", "ask for a plan with fewer rows"))
    }

    fn count(&self, block: usize, rows: &[i64]) -> Result<Vec<i64>, Refusal> {
        rows.iter().map(|rows| self.counted(block, *rows)).collect()
    }

    /// How many of these are more than none, as counts of this one site.
    fn sites(&self, block: usize, rows: &[i64]) -> Result<Vec<i64>, Refusal> {
        rows.iter().map(|rows| self.counted(block, i64::from(*rows > 0))).collect()
    }

    /// Runs the statement; every row must be in one group.
    fn groups(&mut self, key: &[String], sums: &[String]) -> Result<Vec<Group>, Refusal> {
        if self.chain.d + sums.len().min(1) > MAX_WIDTH {
            return Err(too_large());
        }
        let groups = (self.run)(&self.chain.by(key, sums))?;
        let rows: i64 = groups.iter().map(|group| group.rows).sum();
        if rows as u64 != self.rows {
            let what = "the database counts other rows than before";
            return Err(Refusal::new(
                RefusalCode::Changed,
                what,
                "let the view read tables, and no functions that change",
            ));
        }
        Ok(groups)
    }

    /// The one line of a statement without a key.
    fn one(&mut self, sums: &[String]) -> Result<Vec<i64>, Refusal> {
        Ok(self.groups(&[], sums)?.pop().map(|group| group.sums).unwrap_or_default())
    }

    /// Squared distances `q0, …` to the centres, and the least as `qm`.
    fn distances(&mut self, centres: &Centres) -> Result<(), Refusal> {
        let k = centres.k();
        if self.chain.d + 4 * k + 8 > MAX_WIDTH {
            return Err(too_large());
        }
        let xs = self.chain.xs();
        self.chain.then(xs.iter().cloned().chain(squares(centres, "q")));
        let least = if k == 1 { "q0".to_owned() } else { format!("LEAST({})", list(named("q", k))) };
        self.chain.then(xs.into_iter().chain(named("q", k)).chain([format!("{least} AS qm")]));
        Ok(())
    }

    /// Shares `r0, …` of every centre relative to the nearest one, their sum `s`, and what else is kept.
    fn shares(&mut self, k: usize, m: f64, keep: &[String]) {
        self.ratios(k, keep);
        if m != 2.0 {
            let exponent = 1.0 / (m - 1.0);
            let power = |c: usize| {
                let small = format!("WHEN r{c} < {} THEN {}", number(least(exponent + 1.0)), number(0.0));
                format!("CASE WHEN r{c} = 1 THEN r{c} {small} ELSE power(r{c}, {}) END AS p{c}", number(exponent))
            };
            self.chain.then(keep.iter().cloned().chain(named("r", k)).chain((0..k).map(power)));
            let s = sum(named("p", k));
            self.chain
                .then(keep.iter().cloned().chain(named("r", k)).chain(named("p", k)).chain([format!("{s} AS s")]));
        } else {
            let s = sum(named("r", k));
            self.chain.then(keep.iter().cloned().chain(named("r", k)).chain([format!("{s} AS s")]));
        }
    }

    /// The least of the squared distances divided by each, `r0, …`, and what else is kept.
    fn ratios(&mut self, k: usize, keep: &[String]) {
        // 1 on a centre and 0 elsewhere, for a row that lies on one ([QRY-5]).
        let ratio = |c: usize| {
            format!(
                "CASE WHEN qm > 0 THEN qm / q{c} WHEN q{c} = 0 THEN {} ELSE {} END AS r{c}",
                number(1.0),
                number(0.0)
            )
        };
        self.chain.then(keep.iter().cloned().chain((0..k).map(ratio)));
    }

    fn fuzzy_sums(&mut self, q: &FuzzySums) -> Result<Vec<i64>, Refusal> {
        let (k, d) = (q.centres.k(), self.chain.d);
        self.distances(&q.centres)?;
        let xs = self.chain.xs();
        let (f, g) = (self.bits(0), self.bits(1));
        let scale = number(f64::from(f).exp2());
        let strange = if q.m == 2.0 {
            let inverse = |c: usize| {
                let on = format!("WHEN q{c} = 0 THEN {} ELSE {}", number(1.0), number(0.0));
                format!("CASE WHEN qm > 0 THEN {} / q{c} {on} END AS i{c}", number(1.0))
            };
            self.chain.then(xs.iter().cloned().chain((0..k).map(inverse)));
            let v = format!("{} / ({}) AS v", number(1.0), sum(named("i", k)));
            self.chain.then(xs.iter().cloned().chain(named("i", k)).chain([v]));
            self.chain.then(xs.iter().cloned().chain((0..k).map(|c| format!("i{c} * v AS u{c}"))).chain(["v".into()]));
            let weights = (0..k).map(|c| format!("u{c} * u{c} * {scale} AS w{c}"));
            self.chain.then(xs.iter().cloned().chain(weights).chain(["v".into()]));
            format!("NOT (v BETWEEN {} AND {})", number(SAFE.0), number(SAFE.1))
        } else {
            let keep: Vec<String> = xs.iter().cloned().chain(["qm".into()]).collect();
            self.ratios(k, &keep);
            let exponent = 1.0 / (q.m - 1.0);
            let (r, p): (Vec<_>, Vec<_>) = (named("r", k).collect(), named("p", k).collect());
            let kept: Vec<String> = keep.iter().chain(&r).cloned().collect();
            Powers { keep: &kept, of: &r, to: &p, exponent, least: least(exponent + 1.0) }.add_to(&mut self.chain);
            let mut kept: Vec<String> = kept.iter().chain(&p).cloned().collect();
            self.chain.then(kept.iter().cloned().chain([format!("{} AS s", sum(p.iter().cloned()))]));
            let (s, v) = (["s".to_owned()], ["v".to_owned()]);
            kept.push("s".into());
            Powers { keep: &kept, of: &s, to: &v, exponent: -q.m, least: 0.0 }.add_to(&mut self.chain);
            // A row that lies on centres belongs to each of them alike.
            let alike = format!("power({} / s, {})", number(1.0), number(q.m));
            self.chain.then(kept.iter().cloned().chain([format!("CASE WHEN qm > 0 THEN v ELSE {alike} END AS v")]));
            let weights = (0..k).map(|c| format!("p{c} * r{c} * v * {scale} AS w{c}"));
            self.chain.then(keep.iter().cloned().chain(weights));
            format!("qm > 0 AND NOT (qm BETWEEN {} AND {})", number(SAFE.0), number(SAFE.1))
        };
        let mut sums = Vec::with_capacity(k * (d + 1) + 1);
        for c in 0..k {
            sums.extend(xs.iter().map(|x| total(&format!("w{c} * {x}"))));
        }
        let other = number(f64::from(g - f).exp2());
        sums.extend((0..k).map(|c| total(&format!("w{c} * {other}"))));
        sums.push(format!("count(*) FILTER (WHERE {strange})"));
        let mut words = self.one(&sums)?;
        self.none_strange(words.pop())?;
        Ok(words)
    }

    fn none_strange(&self, strange: Option<i64>) -> Result<(), Refusal> {
        match strange {
            Some(0) | None => Ok(()),
            Some(_) => Err(Refusal::new(
                RefusalCode::Rows,
                "rows are nearer to a centre than doubles can square",
                "use --mode stream, or let the view round values",
            )),
        }
    }

    /// After [`Self::distances`]: distances `t0, …`, squares `e0, …`, memberships `u0, …`, the sum `s` and the nearest centre `own`.
    fn memberships(&mut self, k: usize, m: f64) {
        let xs = self.chain.xs();
        let own = own(k, "q", "qm");
        let keep: Vec<String> = xs.iter().cloned().chain(named("q", k)).chain(["qm".into()]).collect();
        self.chain.then(
            keep.iter().cloned().chain((0..k).map(|c| format!("sqrt(q{c}) AS t{c}"))).chain([format!("{own} AS own")]),
        );
        // Of a row on a centre the squares are those of its distances.
        let square = |c: usize| format!("CASE WHEN qm > 0 THEN q{c} ELSE t{c} * t{c} END AS e{c}");
        let keep: Vec<String> = xs.iter().cloned().chain(named("t", k)).chain(["qm".into(), "own".into()]).collect();
        self.chain.then(keep.iter().cloned().chain(named("q", k)).chain((0..k).map(square)));
        let keep: Vec<String> = keep.into_iter().chain(named("e", k)).collect();
        self.shares(k, m, &keep);
        let share = if m == 2.0 { "r" } else { "p" };
        let memberships = (0..k).map(|c| format!("{share}{c} / s AS u{c}"));
        self.chain.then(keep.into_iter().chain(["s".into()]).chain(memberships));
    }

    fn fuzzy_validation(&mut self, q: &FuzzyValidation) -> Result<Vec<i64>, Refusal> {
        let k = q.centres.k();
        self.distances(&q.centres)?;
        self.memberships(k, q.m);
        let mut sums: Vec<String> = named("t", k).map(|t| stepped(&t, self.bits(0))).collect();
        sums.extend(named("u", k).map(|u| stepped(&u, self.bits(1))));
        let objective = if q.m == 2.0 { "qm / s".to_owned() } else { format!("qm * power(s, {})", number(1.0 - q.m)) };
        sums.push(stepped(&objective, self.bits(2)));
        self.one(&sums)
    }

    fn local_means(&mut self, q: &LocalMeans) -> Result<Vec<i64>, Refusal> {
        let (k, d) = (q.centres.k(), self.chain.d);
        let changed = match &q.part {
            RoundHalf::Changes(since) => {
                // Rows that moved between two clusters, for each of the earlier centres.
                let mut changed = vec![0; k];
                for (place, before) in (1..).zip(&since.centres) {
                    let (parts, last) = (self.chain.parts.clone(), self.chain.last.clone());
                    self.distances(&q.centres)?;
                    let now = own(k, "q", "qm");
                    let xs = self.chain.xs();
                    let squares = squares(before, "b");
                    self.chain.then(xs.into_iter().chain([format!("{now} AS own")]).chain(squares));
                    let least = if k == 1 { "b0".to_owned() } else { format!("LEAST({})", list(named("b", k))) };
                    self.chain.then(["own".into(), format!("{least} AS bm")].into_iter().chain(named("b", k)));
                    self.chain.then(["own".into(), format!("{} AS earlier", own(k, "b", "bm"))]);
                    for group in self.groups(&["own".into(), "earlier".into()], &[])? {
                        if let [now, before] = group.key[..]
                            && now != before
                        {
                            for cluster in
                                [now, before].map(|c| c as usize).into_iter().filter(|c| since.of[*c] == place)
                            {
                                changed[cluster] += group.rows;
                            }
                        }
                    }
                    (self.chain.parts, self.chain.last) = (parts, last);
                }
                Some(changed)
            }
            _ => None,
        };
        self.distances(&q.centres)?;
        let xs = self.chain.xs();
        self.chain.then(xs.iter().cloned().chain(["qm".into(), format!("{} AS own", own(k, "q", "qm"))]));
        let with_sums = matches!(q.part, RoundHalf::Sums(_) | RoundHalf::Both);
        let mut sums = Vec::new();
        if with_sums {
            sums.extend(xs.iter().map(|x| stepped(x, self.bits(1))));
        }
        if q.part == RoundHalf::Both {
            sums.push(stepped("qm", self.bits(3)));
        }
        let (mut rows, mut totals, mut distance) = (vec![0; k], vec![0; k * d], 0);
        for group in self.groups(&["own".into()], &sums)? {
            let Some(own) = group.key.first().map(|c| *c as usize).filter(|c| *c < k) else { return Err(too_large()) };
            rows[own] = group.rows;
            if with_sums {
                totals[own * d..][..d].copy_from_slice(&group.sums[..d]);
            }
            distance += group.sums.get(d).copied().unwrap_or_default();
        }
        let counts = self.count(0, &rows)?;
        Ok(match &q.part {
            RoundHalf::Counts => [counts, self.sites(1, &rows)?].concat(),
            RoundHalf::Changes(_) => {
                [counts, self.sites(1, &rows)?, self.count(2, &changed.unwrap_or_default())?].concat()
            }
            RoundHalf::Both => [counts, totals, self.sites(2, &rows)?, vec![distance]].concat(),
            RoundHalf::Sums(open) => {
                let open: Vec<usize> = open.iter().map(|c| *c as usize).collect();
                let sums = open.iter().flat_map(|c| &totals[c * d..][..d]);
                open.iter().map(|c| &counts[*c]).chain(sums).copied().collect()
            }
        })
    }

    fn sizes(&mut self, q: &Sizes) -> Result<Vec<i64>, Refusal> {
        let k = q.centres.k();
        self.distances(&q.centres)?;
        self.chain.then([format!("{} AS own", own(k, "q", "qm"))]);
        let mut rows = vec![0; k];
        for group in self.groups(&["own".into()], &[])? {
            if let Some(slot) = group.key.first().and_then(|c| rows.get_mut(*c as usize)) {
                *slot = group.rows;
            }
        }
        Ok([self.count(0, &rows)?, self.sites(1, &rows)?].concat())
    }

    fn moments(&mut self, q: &Moments) -> Result<Vec<i64>, Refusal> {
        let of = |at: usize| match &q.around {
            None => format!("x{at}"),
            Some(around) => format!("(x{at} - {0}) * (x{at} - {0})", number(around[at])),
        };
        let sums: Vec<String> = (0..self.chain.d).map(|at| stepped(&of(at), self.bits(1 + at))).collect();
        let rows = i64::try_from(self.rows).unwrap_or(i64::MAX);
        Ok([vec![self.counted(0, rows)?], self.one(&sums)?].concat())
    }

    fn histogram(&mut self, q: &Histogram) -> Result<Vec<i64>, Refusal> {
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

    fn cells(&mut self, q: &Cells) -> Result<Vec<i64>, Refusal> {
        let d = self.chain.d;
        let splits = q.tree.splits.len();
        let mut split_of = vec![None; 2 * splits + 1];
        for (i, of) in q.tree.of.iter().enumerate() {
            split_of[*of as usize] = Some(i);
        }
        if splits + 1 > MAX_LEAVES {
            return Err(too_large());
        }
        let leaf = leaf(q, &split_of, 0, 0)?;
        let with_sums = q.part != RoundHalf::Counts;
        let xs = self.chain.xs();
        self.chain.then(xs.iter().cloned().chain([format!("{leaf} AS leaf")]));
        let mut sums = Vec::new();
        if with_sums {
            sums.extend(xs.iter().map(|x| stepped(x, self.bits(1))));
            sums.extend(xs.iter().map(|x| stepped(&format!("{x} * {x}"), self.bits(2))));
        }
        let width = sums.len();
        let mut of_node = vec![(0i64, vec![0i64; width]); split_of.len()];
        for group in self.groups(&["leaf".into()], &sums)? {
            let Some(slot) = group.key.first().and_then(|leaf| of_node.get_mut(*leaf as usize)) else {
                return Err(too_large());
            };
            *slot = (group.rows, group.sums);
        }
        // Children have higher numbers than the node that they divide.
        for i in (0..splits).rev() {
            let of = q.tree.of[i] as usize;
            let below = std::mem::take(&mut of_node[2 * i + 1].1);
            let above = std::mem::take(&mut of_node[2 * i + 2].1);
            of_node[of].0 = of_node[2 * i + 1].0 + of_node[2 * i + 2].0;
            of_node[of].1 = below.iter().zip(&above).map(|(a, b)| a + b).collect();
            (of_node[2 * i + 1].1, of_node[2 * i + 2].1) = (below, above);
        }
        let nodes: Vec<&(i64, Vec<i64>)> = q.nodes.iter().map(|node| &of_node[*node as usize]).collect();
        let rows: Vec<i64> = nodes.iter().map(|node| node.0).collect();
        let mut words = self.count(0, &rows)?;
        if with_sums {
            words.extend(nodes.iter().flat_map(|node| &node.1[..d]));
            words.extend(nodes.iter().flat_map(|node| &node.1[d..]));
        }
        if !matches!(q.part, RoundHalf::Sums(_)) {
            words.extend(self.sites(if with_sums { 3 } else { 1 }, &rows)?);
        }
        Ok(words)
    }

    /// After [`Self::memberships`]: what validation needs of every row besides: powers `w0, …`, distance `near` and square `nearest` of
    /// the own centre, and distance `second` of the next one.
    fn judged(&mut self, k: usize, m: f64) {
        let keep: Vec<String> = self.chain.xs().into_iter().chain(["own".into()]).collect();
        let keep: Vec<String> =
            keep.into_iter().chain(named("t", k)).chain(named("e", k)).chain(named("u", k)).collect();
        let power = |c: usize| match m {
            2.0 => format!("u{c} * u{c} AS w{c}"),
            m => format!(
                "CASE WHEN u{c} < {} THEN {} ELSE power(u{c}, {}) END AS w{c}",
                number(least(m)),
                number(0.0),
                number(m)
            ),
        };
        let pick = |of: &str| {
            let when: String = (0..k).map(|c| format!(" WHEN {c} THEN {of}{c}")).collect();
            format!("CASE own{when} END")
        };
        let others = list((0..k).map(|c| format!("CASE WHEN own = {c} THEN {} ELSE t{c} END", number(f64::INFINITY))));
        let second = if k == 1 { number(f64::INFINITY) } else { format!("LEAST({others})") };
        let more =
            [format!("{} AS near", pick("t")), format!("{} AS nearest", pick("e")), format!("{second} AS second")];
        self.chain.then(keep.into_iter().chain((0..k).map(power)).chain(more));
    }

    /// The five sums over memberships and distances, with the block in which they begin.
    fn scalars(&self, k: usize, first: usize) -> Vec<String> {
        let zero = number(0.0);
        let entropy = (0..k).map(|c| format!("CASE WHEN u{c} > 0 THEN u{c} * ln(u{c}) ELSE {zero} END"));
        let entropy = entropy.fold(zero.clone(), |before, part| format!("{before} - {part}"));
        let others = |of: &str| sum((0..k).map(|c| format!("CASE WHEN own = {c} THEN {zero} ELSE {of}{c} END")));
        let infinity = number(f64::INFINITY);
        let all = [
            sum((0..k).map(|c| format!("u{c} * u{c}"))),
            entropy,
            others("t"),
            others("e"),
            format!("CASE WHEN second > 0 AND second < {infinity} THEN (second - near) / second ELSE {zero} END"),
        ];
        all.iter().enumerate().map(|(at, of)| stepped(of, self.bits(first + at))).collect()
    }

    fn validation(&mut self, q: &Validation) -> Result<Vec<i64>, Refusal> {
        let (k, d) = (q.centres.k(), self.chain.d);
        self.distances(&q.centres)?;
        self.memberships(k, q.m);
        self.judged(k, q.m);
        // Of the own cluster, then of all rows.
        let mut sums = vec![stepped("nearest", self.bits(1)), stepped("near", self.bits(2))];
        if q.vectors {
            sums.extend((0..d).map(|at| stepped(&format!("x{at}"), self.bits(12))));
            for at in 0..d {
                let when: String = (0..k).map(|c| format!(" WHEN {c} THEN {}", number(q.centres.row(c)[at]))).collect();
                let off = format!("(x{at} - CASE own{when} END)");
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
        for group in self.groups(&["own".into()], &sums)? {
            let Some(c) = group.key.first().map(|c| *c as usize).filter(|c| *c < k) else { return Err(too_large()) };
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

    fn ungrouped(&mut self, q: &Ungrouped) -> Result<Vec<i64>, Refusal> {
        let k = q.centres.k();
        self.distances(&q.centres)?;
        self.memberships(k, q.m);
        self.judged(k, q.m);
        let objective = sum((0..k).map(|c| format!("w{c} * e{c}")));
        let mut sums: Vec<String> = named("t", k).map(|t| stepped(&t, self.bits(0))).collect();
        sums.extend(named("u", k).map(|u| stepped(&u, self.bits(1))));
        sums.push(stepped(&objective, self.bits(2)));
        sums.extend([stepped("nearest", self.bits(3)), stepped("near", self.bits(4))]);
        sums.extend(self.scalars(k, 5));
        self.one(&sums)
    }

    fn silhouette(&mut self, q: &Silhouette) -> Result<Vec<i64>, Refusal> {
        let k = q.centres.k();
        self.distances(&q.centres)?;
        let xs = self.chain.xs();
        self.chain.then(xs.into_iter().chain([format!("{} AS own", own(k, "q", "qm"))]));
        self.chain.then(["own".to_owned()].into_iter().chain(squares(&q.means, "e")));
        // The same after the roots, for clusters that have rows.
        let infinity = number(f64::INFINITY);
        let there: Vec<usize> = (0..k).filter(|c| q.rows[*c] > 0.5).collect();
        let within = |c: usize| number(q.scatter[c] / q.rows[c]);
        let pick = |of: &dyn Fn(usize) -> String| {
            let when: String = there.iter().map(|c| format!(" WHEN {c} THEN {}", of(*c))).collect();
            // A row whose own cluster is said to have no rows counts nothing.
            if there.is_empty() { number(0.0) } else { format!("CASE own{when} ELSE {} END", number(0.0)) }
        };
        let least = |of: &dyn Fn(usize) -> String| {
            let others: Vec<String> =
                there.iter().map(|c| format!("CASE WHEN own = {c} THEN {infinity} ELSE {} END", of(*c))).collect();
            if others.is_empty() { infinity.clone() } else { format!("LEAST({})", others.join(", ")) }
        };
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
        let zero = number(0.0);
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
