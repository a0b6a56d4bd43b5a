//! Questions as SQL. The contributions of a row are those of specification 21, operation by operation: doubles, no fused
//! multiply-add, sums from the left, and a cast to `int8`, which rounds to nearest with ties to even. Multiplying by a power of two
//! is exact, so a weight may be brought to the block's step before it meets a coordinate.
//!
//! Every step is a part of a WITH behind an `OFFSET 0`. Without these fences the planner puts expressions into expressions, and
//! needs minutes for the plan alone.
//!
//! Here are the words of a question and the sums of the rounds; `memberships` has what a row is to the centres, `validity` and
//! `columns` have the other questions.

use veilsum_answerer::{AskedBlock, Refusal, RefusalCode, contract::kind_of};
use veilsum_cluster::{
    Batch, Centres, Domain, Query,
    query::{FuzzySums, LocalMeans},
};

use crate::{
    chain::{Chain, moved, named, own, stepped, too_large, total},
    power::Powers,
    source::Source,
    text::{NOTHING, number, sum},
};

mod columns;
mod memberships;
mod validity;

/// The kinds that are answered by SQL.
pub(crate) const KINDS: [&str; 8] =
    ["fuzzy_sums", "fuzzy_validation", "local_means", "moments", "histogram", "margins", "validation", "silhouette"];

/// Columns that a part of a WITH may have; PostgreSQL has 1664.
const MAX_WIDTH: usize = 1_600;
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
pub(crate) fn usable(domain: &Domain, noise: bool) -> Result<(), Refusal> {
    // Under noise no row may stop a statement.
    let most: f64 = if noise { 1e20 } else { 1e60 };
    let fine = |column: usize| {
        let (low, high) = domain.working_interval(column);
        (1.0 / most..=most).contains(&(high - low)) && low.abs() <= most && high.abs() <= most
    };
    if (0..domain.columns()).all(fine) {
        return Ok(());
    }
    let what = "a column of the plan has bounds that squares of doubles do not reach in SQL";
    Err(Refusal::new(RefusalCode::Columns, what, "use --mode stream, or a plan with other units"))
}

/// A question whose points have no coordinates below [`NOTHING`].
fn rounded(query: &Query, domain: &Domain) -> Result<Query, Refusal> {
    let coordinate = |column: usize, x: f64| {
        let (low, high) = domain.working_interval(column);
        if x.abs() < NOTHING * (high - low) { 0.0 } else { x }
    };
    let points = |of: &Centres| {
        let values = of.rows().flat_map(|row| row.iter().enumerate().map(|(column, x)| coordinate(column, *x)));
        Centres::new(of.k(), of.columns(), values.collect()).map_err(unfit)
    };
    let mut query = query.clone();
    match &mut query {
        Query::FuzzySums(q) => q.centres = points(&q.centres)?,
        Query::FuzzyValidation(q) => q.centres = points(&q.centres)?,
        Query::LocalMeans(q) => q.centres = points(&q.centres)?,
        Query::Validation(q) => q.centres = points(&q.centres)?,
        Query::Silhouette(q) => (q.centres, q.means) = (points(&q.centres)?, points(&q.means)?),
        Query::Moments(q) => {
            let around = q.around.iter_mut().flatten().enumerate();
            around.for_each(|(column, x)| *x = coordinate(column, *x));
        }
        _ => {}
    }
    Ok(query)
}

fn unfit(e: impl std::fmt::Display) -> Refusal {
    Refusal::new(RefusalCode::Protocol, e, "ask a question that fits the box")
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
    let inner = batch.domain(domain).map_err(unfit)?;
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
        let query = if source.has_noise() { rounded(query, &inner)? } else { query.clone() };
        words.extend(match &query {
            Query::FuzzySums(q) => asked.fuzzy_sums(q)?,
            Query::FuzzyValidation(q) => asked.fuzzy_validation(q)?,
            Query::LocalMeans(q) => asked.local_means(q)?,
            Query::Moments(q) => asked.moments(q)?,
            Query::Histogram(q) => asked.histogram(q)?,
            Query::Margins(q) => asked.histogram(&q.histogram(&inner))?,
            Query::Validation(q) => asked.validation(q)?,
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

    /// So many rows each in the steps of a block; counts come in whole rows.
    fn count(&self, block: usize, rows: &[i64]) -> Result<Vec<i64>, Refusal> {
        let shift = u32::try_from(self.bits(block)).ok().filter(|shift| *shift < 63);
        let steps = |rows: &i64| rows.checked_mul(1 << shift?);
        let all: Option<Vec<i64>> = rows.iter().map(steps).collect();
        all.ok_or_else(|| Refusal::new(RefusalCode::Limit, "a count leaves 64 bits", "ask for a plan with fewer rows"))
    }

    /// Runs the statement; every row must be in one group.
    fn groups(&mut self, key: &[String], sums: &[String]) -> Result<Vec<Group>, Refusal> {
        if self.chain.d + sums.len().min(1) > MAX_WIDTH {
            return Err(too_large());
        }
        self.counted(key, sums, 1)
    }

    /// Runs the statement; every row must be in so many groups.
    fn counted(&mut self, key: &[String], sums: &[String], times: usize) -> Result<Vec<Group>, Refusal> {
        let groups = (self.run)(&self.chain.by(key, sums))?;
        let rows: i64 = groups.iter().map(|group| group.rows).sum();
        if rows as u64 == self.rows.saturating_mul(times as u64) {
            return Ok(groups);
        }
        let next = "let the view read tables, and no functions that change";
        Err(Refusal::new(RefusalCode::Changed, "the database counts other rows than before", next))
    }

    /// The same by the column `own`, one of `k` clusters.
    fn by_own(&mut self, k: usize, sums: &[String]) -> Result<Vec<(usize, Group)>, Refusal> {
        let own = |group: Group| match group.key[..] {
            [own] if (0..k as i32).contains(&own) => Ok((own as usize, group)),
            _ => Err(too_large()),
        };
        self.groups(&["own".into()], sums)?.into_iter().map(own).collect()
    }

    /// The one line of a statement without a key.
    fn one(&mut self, sums: &[String]) -> Result<Vec<i64>, Refusal> {
        Ok(self.groups(&[], sums)?.pop().map(|group| group.sums).unwrap_or_default())
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

    fn local_means(&mut self, q: &LocalMeans) -> Result<Vec<i64>, Refusal> {
        let (k, d) = (q.centres.k(), self.chain.d);
        self.distances(&q.centres)?;
        let xs = self.chain.xs();
        self.chain.then(xs.iter().cloned().chain(["qm".into(), format!("{} AS own", own(k, "q", "qm"))]));
        let mut sums: Vec<String> = xs.iter().map(|x| stepped(x, self.bits(1))).collect();
        sums.push(stepped("qm", self.bits(2)));
        let (mut rows, mut totals, mut distance) = (vec![0; k], vec![0; k * d], 0);
        for (own, group) in self.by_own(k, &sums)? {
            rows[own] = group.rows;
            totals[own * d..][..d].copy_from_slice(&group.sums[..d]);
            distance += group.sums[d];
        }
        Ok([self.count(0, &rows)?, totals, vec![distance]].concat())
    }
}
