//! Reads a question as a function of a row, with the same code with which sites answer.

use anyhow::{Result, anyhow};
use veilsum_cluster::{
    Batch, Block, Domain, Per, Prepared, Query, answer,
    query::{LocalSteps, Pull, RoundHalf},
};
use veilsum_node::question::{Layout, Question, SumBounds};

/// The part of a question's answer that is a sum over rows.
///
/// Entries are read as they are where a row's part does not depend on its site's other rows. Of methods with rounds of
/// a site's own, entries are added up that stay a sum over rows however the site went: over groups the rows and the
/// coordinates (k-means of several steps; FKM and Kumar), the memberships (FFCM by memberships) and the masses (feature
/// vectors). Entries that count sites are not read.
pub struct Reading {
    /// What a single row is asked; nothing for the row count, which is 1.
    asked: Option<Batch>,
    /// By number that is read: the entries of the answer that are added up.
    picks: Vec<Vec<usize>>,
}

impl Reading {
    /// Of a question over this box.
    ///
    /// # Errors
    /// Where the question does not fit the box, or its batch is elsewhere.
    pub fn of(question: &Question, domain: &Domain) -> Result<Reading> {
        let batch = match question {
            Question::CountRows => return Ok(Reading { asked: None, picks: vec![vec![0]] }),
            Question::Cluster(batch) | Question::Drawn { batch, .. } => batch,
            Question::Judge { .. } => return Err(anyhow!("a judged question without its batch")),
        };
        batch.check(domain)?;
        let inner = batch.domain(domain)?;
        let (mut picks, mut at, mut queries) = (Vec::new(), 0, Vec::new());
        for query in &batch.queries {
            let blocks = query.layout(&inner);
            picks.extend(
                picked(query, &blocks, inner.columns()).into_iter().map(|p| p.iter().map(|i| at + i).collect()),
            );
            at += blocks.iter().map(|b| b.len).sum::<usize>();
            queries.push(for_a_row(query));
        }
        Ok(Reading { asked: Some(Batch { transform: batch.transform.clone(), queries }), picks })
    }

    /// Numbers that are read.
    pub fn len(&self) -> usize {
        self.picks.len()
    }

    /// Whether nothing of the answer is a sum over rows.
    pub fn is_empty(&self) -> bool {
        self.picks.is_empty()
    }

    /// The numbers that are read of an answer or a total.
    pub fn read(&self, values: &[f64]) -> Vec<f64> {
        self.picks.iter().map(|p| p.iter().map(|i| values.get(*i).copied().unwrap_or(0.0)).sum()).collect()
    }

    /// Standard deviations of the numbers that are read, from those of the entries.
    pub fn deviations(&self, of: &[f64]) -> Vec<f64> {
        let square = |i: &usize| of.get(*i).copied().unwrap_or(0.0).powi(2);
        self.picks.iter().map(|p| p.iter().map(square).sum::<f64>().sqrt()).collect()
    }

    /// What one row adds.
    ///
    /// # Errors
    /// Where a site with this row alone could not answer.
    pub fn at(&self, row: &Prepared) -> Result<Vec<f64>> {
        match &self.asked {
            None => Ok(vec![1.0]),
            Some(batch) => Ok(self.read(&answer(batch, row)?.values)),
        }
    }
}

/// The same question without what only a whole site can do: rounds of its own, least groups, noise.
fn for_a_row(query: &Query) -> Query {
    match query.clone() {
        Query::LocalMeans(mut q) => {
            if !exact(&q.part) {
                (q.local, q.min_rows, q.nearest) = (LocalSteps::ONE, 1, false);
            }
            Query::LocalMeans(q)
        }
        Query::LocalFuzzy(mut q) => {
            q.local = LocalSteps::ONE;
            Query::LocalFuzzy(q)
        }
        Query::Cells(mut q) => {
            q.blur = None;
            Query::Cells(q)
        }
        other => other,
    }
}

/// Whether only exact Lloyd asks this.
fn exact(part: &RoundHalf) -> bool {
    matches!(part, RoundHalf::Changes(_))
}

fn picked(query: &Query, blocks: &[Block], columns: usize) -> Vec<Vec<usize>> {
    let starts = blocks.iter().scan(0, |at, b| Some(std::mem::replace(at, *at + b.len)));
    let places: Vec<(&Block, std::ops::Range<usize>)> =
        blocks.iter().zip(starts).map(|(b, s)| (b, s..s + b.len)).collect();
    let rows =
        |name: &str| places.iter().find(|(b, _)| b.name == name && b.per == Per::Row).map(|(_, range)| range.clone());
    // A block of one number a group, and one of a vector a group, added up over all groups.
    let over_groups = |counts: &str, vectors: &str, k: usize| {
        let mut out = Vec::new();
        if let Some(range) = rows(counts).filter(|r| r.len() == k) {
            out.push(range.collect());
        }
        if let Some(range) = rows(vectors).filter(|r| r.len() == k * columns) {
            out.extend((0..columns).map(|j| range.clone().skip(j).step_by(columns).collect()));
        }
        out
    };
    match query {
        Query::LocalMeans(q) if q.local.most > 1 || q.min_rows > 1 || q.nearest => {
            over_groups("rows", "sums", q.centres.k())
        }
        Query::LocalFuzzy(q) if q.pull == Pull::Memberships => over_groups("weights", "", q.centres.k()),
        Query::LocalFuzzy(q) if q.local.most > 1 => Vec::new(),
        Query::LocalChoice(_) => Vec::new(),
        Query::Features(q) => over_groups("M", "", q.anchors.k()),
        _ => places.iter().filter(|(b, _)| b.per == Per::Row).flat_map(|(_, r)| r.clone().map(|i| vec![i])).collect(),
    }
}

/// The standard deviation of every entry of a total over this many sites: rounding to the step at each, its share of
/// the plan's noise, and the blur that a question asks for.
///
/// # Errors
/// Where the question has no layout under this form.
pub fn deviations(question: &Question, domain: &Domain, form: &SumBounds, sites: usize) -> Result<Vec<f64>> {
    let layout: Layout = question.layout(domain, form)?;
    let n = sites.max(1) as f64;
    let mut out = Vec::with_capacity(layout.words());
    for b in &layout.blocks {
        let step = 2f64.powi(-b.scale.fraction_bits);
        let noise = b.noise.map_or(0.0, |share| share.deviation as f64 * step);
        out.extend(std::iter::repeat_n((step / 12f64.sqrt()).hypot(noise) * n.sqrt(), b.block.len));
    }
    let (Question::Cluster(batch) | Question::Drawn { batch, .. }) = question else { return Ok(out) };
    let inner = batch.domain(domain)?;
    let mut at = 0;
    for query in &batch.queries {
        let blocks = query.layout(&inner);
        if let Query::Cells(q) = query
            && let Some(blur) = q.blur
        {
            // Every column's own influence; the blocks' bounds are for the largest.
            let (nodes, d) = (q.nodes.len(), inner.columns());
            let influence = |i: usize| match i / nodes.max(1) {
                0 => 1.0,
                part if part <= d => inner.max_abs((i - nodes) % d),
                part if part <= 2 * d => inner.max_abs((i - nodes) % d).powi(2),
                _ => 0.0,
            };
            let share = blur.strength * (n / f64::from(blur.sites.max(1))).sqrt();
            let len: usize = blocks.iter().filter(|b| b.per == Per::Row).map(|b| b.len).sum();
            (0..len).for_each(|i| out[at + i] = out[at + i].hypot(share * influence(i)));
        }
        at += blocks.iter().map(|b| b.len).sum::<usize>();
    }
    Ok(out)
}
