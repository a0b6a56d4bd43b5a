//! A plan played over rows in one process: every question that the coordinator and the intermediary would ask, in the order of the run.
//!
//! Nobody masks here, because masks cancel in totals. Noise is added by every site as in a run, and of it only the shares of those sites
//! count that the plan counts on ([NOI-3]). Where the intermediary judges or sites are drawn, every total is asked of all sites by the
//! coordinator: it then learns no less than both together in the run.

use std::ops::Range;

use anyhow::{Result, bail};
use veilsum_cluster::{Domain, Outcome, Prepared, Query, Rows, privacy::HONEST};
use veilsum_node::{
    method_session::{MethodSession, Turn},
    plan::{Judge, PlanSpec},
    question::{Layout, Question, SumBounds, Terms, contribute},
};
use veilsum_proto::{noise::Key, suite};

use crate::view::read_as_plain;

/// A question that was asked, and what an adversary knows of its total beside the words.
pub(super) struct Asked {
    /// What was asked.
    pub(super) question: Question,
    /// The same totals without noise: how a single row is told in them.
    layout: Layout,
    /// What was released.
    pub(super) total: Vec<f64>,
    /// By entry the standard deviation of what nobody knows: the noise that the plan counts on, or in an exact plan next to nothing.
    pub(super) deviations: Vec<f64>,
}

/// A run as it went.
pub(super) struct Played {
    /// Every question, the row count first.
    pub(super) asked: Vec<Asked>,
    /// Its result.
    pub(super) outcome: Outcome,
    /// The form of answers without noise.
    form: SumBounds,
}

/// What an adversary cannot tell from rounding in an exact total, as a part of what one row adds at most.
const ROUNDING: f64 = 1e-9;

/// What a plan computes, in the form in which one process can play it.
pub(super) fn playable(work: &PlanSpec) -> PlanSpec {
    PlanSpec { judge: Judge::Coordinator, sampling: None, ..work.clone() }
}

/// Plays a plan over the sites' rows; `draw` names the noise, so that the same draw is the same run.
///
/// # Errors
/// Where the plan cannot be played over these rows.
pub(super) fn play(work: &PlanSpec, form: SumBounds, sites: &[Prepared], draw: u64) -> Result<Played> {
    let exact = SumBounds { noise: None, step_bits: None, ..form };
    let domain = work.domain()?;
    let mut session = MethodSession::of(work, form)?;
    let total = |question: &Question, number: usize| -> Result<Vec<u64>> {
        let mut total = vec![0u64; question.layout(&domain, &form)?.words()];
        for (site, rows) in (0u64..).zip(sites) {
            let parts: [&[u8]; 3] = [&draw.to_le_bytes(), &site.to_le_bytes(), &(number as u64).to_le_bytes()];
            let key = Key::from_bytes(suite::hash("audit noise", &parts).0);
            let words = contribute(question, rows, &Terms { noise: Some(&key), ..Terms::everybody(form) })?;
            total.iter_mut().zip(words).for_each(|(t, w)| *t = t.wrapping_add(w));
        }
        Ok(total)
    };
    let mut asked = vec![Asked::of(Question::CountRows, &total(&Question::CountRows, 0)?, &domain, form)?];
    let everybody: Vec<u16> = (0..sites.len() as u16).collect();
    loop {
        let question = match session.turn() {
            Turn::Done(outcome) => return Ok(Played { asked, outcome: (**outcome).clone(), form: exact }),
            Turn::Judge(_) => bail!("a question for the intermediary alone"),
            Turn::Ask(question, _) => (**question).clone(),
        };
        let total = total(&question, asked.len())?;
        session.take(&total, &everybody)?;
        asked.push(Asked::of(question, &total, &domain, form)?);
    }
}

impl Asked {
    fn of(question: Question, total: &[u64], domain: &Domain, form: SumBounds) -> Result<Asked> {
        let released = question.layout(domain, &form)?;
        // Every site rounds to the plan's steps, evenly.
        let rounding = form.step_bits.map_or(0.0, |_| (form.sites as f64 / 12.0).sqrt());
        let deviations = released
            .blocks
            .iter()
            .flat_map(|b| {
                let step = b.scale.unit();
                let noise = released.noise.map(|priced| priced.deviation as f64 * step * (HONEST as f64).sqrt());
                let rounded = (ROUNDING * b.block.bound).max(rounding * step);
                std::iter::repeat_n(noise.unwrap_or(rounded), b.block.len)
            })
            .collect();
        let layout = question.layout(domain, &SumBounds { noise: None, step_bits: None, ..form })?;
        let total = read_as_plain(&released, total);
        Ok(Asked { question, layout, total, deviations })
    }

    /// Where the first block of this name stands in the total.
    pub(super) fn block(&self, name: &str) -> Option<Range<usize>> {
        let mut at = 0;
        self.layout.blocks.iter().find_map(|b| {
            at += b.block.len;
            (b.block.name == name).then(|| at - b.block.len..at)
        })
    }

    /// The question to the rows, where it is one.
    pub(super) fn query(&self) -> Option<&Query> {
        match &self.question {
            Question::Cluster(batch) | Question::Drawn { batch, .. } => batch.queries.first(),
            _ => None,
        }
    }

    /// Whether the total of a question is the sum of what single rows add.
    fn adds_up(&self) -> bool {
        match &self.question {
            Question::Cluster(batch) | Question::Drawn { batch, .. } => batch.comes_in_parts(),
            _ => true,
        }
    }
}

/// Rows of one site, of which single ones are looked at.
#[derive(Clone)]
pub struct Site {
    /// n x d numbers and indicators, original units.
    pub values: Vec<Vec<f64>>,
}

impl Site {
    /// The rows of these places, ready to answer.
    ///
    /// # Errors
    /// Where they lie outside a box that refuses them.
    pub(super) fn prepared(&self, work: &PlanSpec, at: impl Iterator<Item = usize>) -> Result<Prepared> {
        let domain = work.domain()?;
        let values = at.flat_map(|i| self.values[i].iter().copied()).collect();
        Ok(Prepared::new(&Rows::new(values, domain.columns())?, &domain, work.out_of_box)?)
    }

    /// All of them.
    ///
    /// # Errors
    /// As [`Site::prepared`].
    pub(super) fn all(&self, work: &PlanSpec) -> Result<Prepared> {
        self.prepared(work, 0..self.values.len())
    }

    /// The site with this row in the place of its own.
    fn with(&self, at: usize, row: &[f64]) -> Site {
        let mut values = self.values.clone();
        values[at] = row.to_vec();
        Site { values }
    }
}

impl Played {
    /// Entries of all totals together.
    pub(super) fn entries(&self) -> usize {
        self.asked.iter().map(|asked| asked.deviations.len()).sum()
    }

    /// Whether all totals are sums of what single rows add.
    pub(super) fn adds_up(&self) -> bool {
        self.asked.iter().all(Asked::adds_up)
    }

    /// By entry of all totals, in deviations, what is left of them without what these sites add.
    ///
    /// # Errors
    /// Where a site cannot answer.
    pub(super) fn without(&self, known: &[Prepared]) -> Result<Vec<f64>> {
        let mut left: Vec<f64> = self.asked.iter().flat_map(|asked| asked.total.iter().copied()).collect();
        for site in known {
            left.iter_mut().zip(self.answer(site)?).for_each(|(total, own)| *total -= own);
        }
        let deviations = self.asked.iter().flat_map(|asked| &asked.deviations);
        Ok(left.iter().zip(deviations).map(|(x, s)| x / s).collect())
    }

    /// By entry of all totals, what a site adds without noise, in units of the entry.
    ///
    /// # Errors
    /// Where the site cannot answer.
    pub(super) fn answer(&self, rows: &Prepared) -> Result<Vec<f64>> {
        let of = |asked: &Asked| {
            let words = contribute(&asked.question, rows, &Terms::everybody(self.form))?;
            Ok(read_as_plain(&asked.layout, &words))
        };
        Ok(self.asked.iter().map(of).collect::<Result<Vec<_>>>()?.concat())
    }

    /// By entry of all totals, in deviations of its noise, what one row of a site adds: the row `values` in the place of the row `at`.
    ///
    /// # Errors
    /// Where the row cannot answer.
    pub(super) fn influence(&self, work: &PlanSpec, site: &Site, at: usize, values: &[f64]) -> Result<Vec<f64>> {
        let alone = Site { values: vec![values.to_vec()] }.all(work)?;
        let mut all = Vec::with_capacity(self.entries());
        // What is no sum over rows is told by the site with the row and without it.
        let mut both: Option<(Prepared, Prepared)> = None;
        for asked in &self.asked {
            let words = |rows: &Prepared| contribute(&asked.question, rows, &Terms::everybody(self.form));
            let change: Vec<u64> = if asked.adds_up() {
                words(&alone)?
            } else {
                let (with, without) = match &mut both {
                    Some(both) => both,
                    none => {
                        let others = (0..site.values.len()).filter(|i| *i != at);
                        none.insert((site.with(at, values).all(work)?, site.prepared(work, others)?))
                    }
                };
                words(with)?.iter().zip(words(without)?).map(|(a, b)| a.wrapping_sub(b)).collect()
            };
            let told = read_as_plain(&asked.layout, &change);
            all.extend(told.iter().zip(&asked.deviations).map(|(x, s)| x / s));
        }
        Ok(all)
    }
}
