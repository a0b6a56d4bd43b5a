//! The view of a party: this module records a real run on loopback QUIC and takes the received frames apart, round by
//! round.
//!
//! A masked input is a frame of header (8 bytes) | context (32) | words (8 each, little-endian) | signature (64). The
//! words are readable, and the layout that gives them a meaning is public too. An adversary needs no more than that to
//! read them as numbers, so the attacks are given exactly that.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use veilsum_cluster::{Batch, Prepared, Rows, Statistic, Step};
use veilsum_node::{
    loopback::{self, LoopbackConfig, View},
    question::{Layout, Question, Terms, contribute},
};
use veilsum_proto::{fixed, message::Kind, roster::PartyId, suite::Hash};
use veilsum_testkit::{in_process::config, wire::parts};

use crate::scene::Scene;

/// The words of one round by site.
pub type BySite = BTreeMap<u16, Vec<u64>>;

/// One round as the coordinator saw it, and beside it what a coordinator without masks would have seen.
pub struct SeenRound {
    /// What was asked.
    pub query: Batch,
    /// The public meaning of the words.
    pub layout: Layout,
    /// By site: the masked words that arrived.
    pub received: BySite,
    /// By site: the control, what plain federated clustering sends in this round. Also of a site that sent nothing.
    pub plain: Vec<Statistic>,
    /// What the coordinator learnt: the total over the sites that sent.
    pub total: Vec<f64>,
}

/// A recorded run.
pub struct Recording {
    /// Rows of every site; the attacks only compare their findings with them.
    pub truth: Vec<Rows>,
    /// The plan's public bound on a site's rows.
    pub max_rows: u64,
    /// Rounds at the coordinator, in order; the last one asks for the validation sums.
    pub rounds: Vec<SeenRound>,
    /// By site: the masked row count that the intermediary received.
    pub counts: Vec<u64>,
    /// By site: the control, the word that it would have received without a mask.
    pub plain_counts: Vec<u64>,
    /// Public layout of the row count.
    pub count_layout: Layout,
}

/// Runs a federation of real roles on loopback QUIC and keeps what the coordinator and the intermediary received.
///
/// The plain statistics come from replaying the run: the totals of fixed-point numbers are exact, so the replay asks
/// the same questions to the last bit. That its final centres are those of the real run is checked.
///
/// # Errors
/// Where the run fails, a frame is missing, or the replay differs.
pub fn record(scene: &Scene) -> Result<Recording> {
    let config = LoopbackConfig { terms: Box::new(|_| {}), record: true, ..config(scene.sites.clone(), &scene.work) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let run = runtime.block_on(loopback::run(config)).context("the federation could not be set up")?;
    let result = run.result.context("the run that was to be recorded failed")?;
    let received = masked_inputs(&run.coordinator_view)?;
    let counted = masked_inputs(&run.intermediary_view)?;

    let domain = scene.work.domain()?;
    let max_rows = run.federation.terms.max_rows;
    let rows = prepared(scene)?;
    let form = run.federation.form()?;
    let layout_of = |question: &Question| question.layout(&domain, &form);

    let mut method = scene.work.run(scene.sites.len())?;
    let mut step = method.next(None)?;
    let mut seen = Vec::new();
    let mut received = received.into_iter();
    let outcome = loop {
        let query = match step {
            Step::Done(outcome) => break *outcome,
            Step::Ask(query) => query,
        };
        let question = Question::Cluster(query.clone());
        let layout = layout_of(&question)?;
        let words = |rows: &Prepared| contribute(&question, rows, &Terms::everybody(form));
        let own = rows.iter().map(words).collect::<Result<Vec<_>, _>>()?;
        let of_one = |words: &Vec<u64>| Ok(Statistic { values: layout.decode(words, 1, None)?.values });
        let plain = own.iter().map(of_one).collect::<Result<Vec<_>>>()?;
        let received = received.next().context("the coordinator received fewer rounds than the method asks")?;
        let mut total = vec![0u64; layout.words()];
        for site in received.keys() {
            let words = own.get(usize::from(*site)).context("a site that is not there")?;
            total.iter_mut().zip(words).for_each(|(t, w)| *t = t.wrapping_add(*w));
        }
        let total = layout.decode(&total, received.len(), None)?;
        step = method.next(Some(&total))?;
        seen.push(SeenRound { query, layout, received, plain, total: total.values });
    };
    ensure!(received.next().is_none(), "the coordinator received more rounds than the method asks");
    let (centres, _) = scene.work.units(&outcome.centres)?;
    ensure!(centres == result.centres, "the replay of the run does not end at its centres: the control is worthless");

    let [counted] = counted.as_slice() else {
        bail!("the intermediary received {} rounds of counts, not one", counted.len())
    };
    let counts: Vec<u64> = counted.values().filter_map(|words| words.first().copied()).collect();
    ensure!(counts.len() == rows.len(), "a site's count is missing from the recording");
    let count_of = |r: &Prepared| contribute(&Question::CountRows, r, &Terms::everybody(form)).map(|words| words[0]);
    let plain_counts = rows.iter().map(count_of).collect::<Result<_, _>>()?;
    ensure!(result.n_total.is_none_or(|n| n == scene.rows()), "the run counted other rows than there are");
    Ok(Recording {
        truth: scene.sites.iter().map(|(_, rows)| rows.clone()).collect(),
        max_rows,
        rounds: seen,
        counts,
        plain_counts,
        count_layout: layout_of(&Question::CountRows)?,
    })
}

/// Every site's rows ready to answer.
///
/// # Errors
/// Where they do not fit the plan's box.
pub fn prepared(scene: &Scene) -> Result<Vec<Prepared>> {
    let domain = scene.work.domain()?;
    let ready = |(_, rows): &(String, Rows)| Prepared::new(rows, &domain, scene.work.out_of_box);
    Ok(scene.sites.iter().map(ready).collect::<Result<_, _>>()?)
}

/// The masked words of every round (in order of arrival) by site, out of recorded frames.
///
/// # Errors
/// Where a site sent two different vectors in one round.
pub fn masked_inputs(view: &View) -> Result<Vec<BySite>> {
    let frames = view.lock().map_err(|_| anyhow::anyhow!("the recording was abandoned"))?;
    let mut rounds: Vec<(Hash, BySite)> = Vec::new();
    for (from, frame) in frames.iter() {
        let PartyId::Site(site) = *from else { continue };
        let sent = parts(frame);
        if sent.kind != Kind::MaskedInput {
            continue;
        }
        let at = rounds.iter().position(|(c, _)| *c == sent.context).unwrap_or_else(|| {
            rounds.push((sent.context, BySite::new()));
            rounds.len() - 1
        });
        if let Some(before) = rounds[at].1.insert(site, sent.words()) {
            ensure!(before == sent.words(), "site {site} answered one question with two vectors");
        }
    }
    Ok(rounds.into_iter().map(|(_, by_site)| by_site).collect())
}

/// Reads words as if they were not masked, by the public fixed point, and without the checks of an honest coordinator.
pub fn read_as_plain(layout: &Layout, words: &[u64]) -> Vec<f64> {
    let units = layout.blocks.iter().flat_map(|b| std::iter::repeat_n(b.scale.unit(), b.block.len));
    words.iter().zip(units).map(|(w, unit)| fixed::from_ring(*w) as f64 * unit).collect()
}

/// Words of these numbers, by the public fixed point; a liar keeps to no bound.
pub fn unbounded(layout: &Layout, values: &[f64]) -> Vec<u64> {
    let units = layout.blocks.iter().flat_map(|b| std::iter::repeat_n(b.scale.unit(), b.block.len));
    values.iter().zip(units).map(|(x, unit)| fixed::to_ring((x / unit).round() as i64)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Header, context, commitment, words and signature of a masked input.
    fn frame(context: u8, words: &[u64]) -> Vec<u8> {
        let words: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let [version, kind] = [veilsum_proto::suite::VERSION, Kind::MaskedInput as u16].map(u16::to_le_bytes);
        let length = (words.len() as u32 + 128).to_le_bytes();
        [&version[..], &kind, &length, &[context; 32], &[9; 32], &words, &[7; 64]].concat()
    }

    #[test]
    fn words_come_out_by_round_and_site() {
        let from = |site, context, words: &[u64]| (PartyId::Site(site), frame(context, words));
        let frames =
            vec![from(1, 9, &[3, 4]), from(0, 9, &[1, 2]), from(0, 9, &[1, 2]), from(0, 8, &[5]), from(1, 8, &[6])];
        let view: View = Arc::new(Mutex::new(frames));
        let rounds = masked_inputs(&view).unwrap();
        let by_site = |words: [&[u64]; 2]| BySite::from([(0, words[0].to_vec()), (1, words[1].to_vec())]);
        assert_eq!(rounds, vec![by_site([&[1, 2], &[3, 4]]), by_site([&[5], &[6]])]);
        view.lock().unwrap().push(from(1, 8, &[7]));
        assert!(masked_inputs(&view).is_err(), "two answers to one question");
    }
}
