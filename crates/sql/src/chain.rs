//! What statements are put together from: parts of a WITH, each behind a fence, and expressions of one row.

use veilsum_answerer::{Refusal, RefusalCode};
use veilsum_cluster::{Centres, Domain, Transform};

use crate::{
    source::clipped,
    text::{list, number, sum},
};

/// Working units to those of the questions: clipped, shifted and multiplied, and kept in the box that follows.
pub(crate) fn moved(transform: &Transform, inner: &Domain) -> Vec<String> {
    let d = inner.columns();
    let clip = |at: usize| format!("{} AS x{at}", clipped(&format!("x{at}"), transform.lower[at], transform.upper[at]));
    let line = |row: usize| {
        let (from, first) = if transform.mixes() { (row * (row + 1) / 2, 0) } else { (row, row) };
        let part = |(i, part): (usize, &f64)| {
            let at = first + i;
            format!("(x{at} - {}) * {}", number(transform.shift[at]), number(*part))
        };
        let all = transform.factor[from..].iter().take(row + 1 - first).enumerate().map(part);
        format!("{} AS x{row}", sum(all))
    };
    let kept = |at: usize| format!("{} AS x{at}", clipped(&format!("x{at}"), inner.lower()[at], inner.upper()[at]));
    vec![
        format!("t0 AS (SELECT {} FROM w0 OFFSET 0)", list((0..d).map(clip))),
        format!("t1 AS (SELECT {} FROM t0 OFFSET 0)", list((0..d).map(line))),
        format!("t2 AS (SELECT {} FROM t1 OFFSET 0)", list((0..d).map(kept))),
    ]
}

/// Parts of a WITH, each from the one before it.
pub(crate) struct Chain {
    pub(crate) parts: Vec<String>,
    pub(crate) last: String,
    pub(crate) d: usize,
}

pub(crate) fn named(prefix: &str, n: usize) -> impl Iterator<Item = String> {
    (0..n).map(move |at| format!("{prefix}{at}"))
}

impl Chain {
    /// One more part with these columns.
    pub(crate) fn then(&mut self, columns: impl IntoIterator<Item = String>) {
        let name = format!("s{}", self.parts.len());
        let columns = columns.into_iter().collect::<Vec<_>>();
        self.parts.push(format!("{name} AS (SELECT {} FROM {} OFFSET 0)", columns.join(", "), self.last));
        self.last = name;
    }

    /// The coordinates.
    pub(crate) fn xs(&self) -> Vec<String> {
        named("x", self.d).collect()
    }

    /// The statement: a line for each key.
    pub(crate) fn by(&self, key: &[String], sums: &[String]) -> String {
        let keys = key.join(", ");
        let group = if key.is_empty() { String::new() } else { format!(" GROUP BY {keys}") };
        format!(
            "WITH {} SELECT ARRAY[{keys}]::int4[], count(*)::int8, ARRAY[{}]::int8[] FROM {}{group}",
            self.parts.join(",\n"),
            sums.join(", "),
            self.last
        )
    }
}

/// The sum of contributions that are already in steps.
pub(crate) fn total(contribution: &str) -> String {
    format!("COALESCE(sum(({contribution})::int8), 0)::int8")
}

/// The sum of contributions in units.
pub(crate) fn stepped(contribution: &str, fraction_bits: i32) -> String {
    total(&format!("({contribution}) * {}", number(f64::from(fraction_bits).exp2())))
}

/// Squared distances to the centres, column by column from the left.
pub(crate) fn squares(centres: &Centres, name: &str) -> Vec<String> {
    let one = |centre: &[f64]| {
        sum(centre.iter().enumerate().map(|(at, c)| format!("(x{at} - {0}) * (x{at} - {0})", number(*c))))
    };
    centres.rows().enumerate().map(|(c, centre)| format!("{} AS {name}{c}", one(centre))).collect()
}

/// The lowest index of the least.
pub(crate) fn own(k: usize, of: &str, least: &str) -> String {
    let when: String = (0..k.saturating_sub(1)).map(|c| format!(" WHEN {of}{c} = {least} THEN {c}")).collect();
    if k == 1 { "0".to_owned() } else { format!("CASE{when} ELSE {} END", k - 1) }
}

/// What these clusters have, of the one in `own`; nothing of others.
pub(crate) fn of_own(clusters: impl IntoIterator<Item = (usize, String)>) -> String {
    let when: String = clusters.into_iter().map(|(c, of)| format!(" WHEN {c} THEN {of}")).collect();
    if when.is_empty() { "NULL::float8".to_owned() } else { format!("CASE own{when} END") }
}

/// The least that these clusters have, without the one in `own`.
pub(crate) fn next_to_own(clusters: impl IntoIterator<Item = (usize, String)>) -> String {
    let infinity = number(f64::INFINITY);
    let other = |(c, of): (usize, String)| format!("CASE WHEN own = {c} THEN {infinity} ELSE {of} END");
    format!("LEAST({})", list([infinity.clone()].into_iter().chain(clusters.into_iter().map(other))))
}

pub(crate) fn too_large() -> Refusal {
    let what = "the question has more clusters or columns than one statement can hold";
    Refusal::new(RefusalCode::Limit, what, "use --mode stream, or ask for a plan with fewer")
}
