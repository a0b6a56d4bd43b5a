//! What a site would send for a plan, field by field, without sending it.
//!
//! The frames come from the site's real state machine ([`veilsum_node::rehearsal`]); nothing here is a description by hand but the
//! words. No value, count or statistic of the rows is in it.

use serde::Serialize;
use veilsum_node::{
    agreed::questions,
    answerer::Answerer,
    app_messages::{self, Hello, SOFTWARE},
    cost::{Cost, QuestionCost, counted, frame_bytes, slots_of},
    documents::Federation,
    dp,
    error::Failure,
    forecast::Forecast,
    question::{Question, Terms, contribute},
    rehearsal::{Sent, rehearse},
    role::system_rng,
};
use veilsum_proto::{
    identity::Identity,
    message::{Disclosure, Kind},
    noise::Key,
    policy::Policy,
    roster::PartyId,
};

use crate::words::totals_tell;

const NEVER_SENT: [&str; 4] = [
    "any row, or any value of a row",
    "columns that the plan does not name, such as a label column",
    "this site's own number of rows N_l (only the sum over the cohort becomes readable)",
    "this site's own sums in the clear: every vector is masked before it leaves",
];

/// What would leave a site under a plan.
#[derive(Serialize)]
pub(super) struct Leaves {
    says: String,
    totals_tell: Vec<String>,
    /// Sites of the rehearsal; the sizes are those for all sites.
    rehearsed_sites: usize,
    /// Bytes of the greeting: public key, hashes of roster and plan, software version.
    hello_bytes: usize,
    questions: Vec<Asked>,
    /// What all of it spends at most, in 10^-9 of rho; none if they are exact.
    nano_rho: Option<u64>,
    never_sent: [&'static str; 4],
}

/// One part of a run: a question stands for all its rounds.
#[derive(Serialize)]
struct Asked {
    #[serde(flatten)]
    cost: QuestionCost,
    to: String,
    /// Rounds that one deck is good for.
    slots: usize,
    times_at_most: u64,
    scalars_at_most: u64,
    nano_rho: Option<u64>,
    deck: Vec<Frame>,
    round: Vec<Frame>,
    round_with_one_missing: Vec<Frame>,
    one_missing: &'static str,
}

#[derive(Serialize)]
struct Frame {
    kind: String,
    /// In the real cohort, which may be larger than the rehearsed one.
    bytes: usize,
    discloses: Disclosure,
}

impl Leaves {
    /// Of this plan at the site of this name. Its rows give the real answers; without them only their sizes are rehearsed.
    ///
    /// # Errors
    /// A [`Failure`] for everything that would also stop the real run before its first message.
    pub(super) fn of(
        federation: &Federation,
        site: &str,
        rows: Option<&dyn Answerer>,
        policy: &Policy,
    ) -> Result<Leaves, Failure> {
        let (n, form, cost) = (federation.roster.sites.len(), federation.form()?, Cost::of(federation)?);
        let forecast = Forecast::of(&federation.work, &federation.terms, policy, n)?;
        let total = forecast.total();
        let (totals_tell, sites_mean) = (totals_tell(federation, &cost), cost.sites_mean());
        let may_be_missing = cost.may_be_missing() > 0;
        let (mut asked, mut rehearsed_sites) = (Vec::new(), 0);
        let parts = questions(&federation.work)?.into_iter().zip(cost.questions).zip(forecast.parts);
        for ((question, cost), (_, times_at_most, most)) in parts {
            // The noise of a rehearsal is nobody's: nothing of it leaves.
            let key = Key::from_bytes([0; 32]);
            let terms = Terms { noise: Some(&key), ..Terms::everybody(form) };
            let answer = rows.map_or(Ok(vec![0; cost.words]), |rows| contribute(&question, rows, &terms))?;
            let to = if question == Question::CountRows { PartyId::Intermediary } else { PartyId::Coordinator };
            let mut rehearsal = rehearse(federation, to, &question.to_bytes(), answer)?;
            // In a smaller rehearsal the round may go on where the real one would not.
            if !may_be_missing {
                rehearsal.missing.truncate(1);
            }
            let slots = usize::from(slots_of(&federation.terms, to));
            let frames = |sent: Vec<Sent>| -> Vec<Frame> {
                let larger = |kind| {
                    let of = |n| frame_bytes(kind, n, slots, cost.words);
                    of(n) - of(rehearsal.sites)
                };
                let frame = |Sent { kind, bytes, discloses }| Frame {
                    kind: format!("{kind:?}"),
                    bytes: bytes + larger(kind),
                    discloses,
                };
                sent.into_iter().map(frame).collect()
            };
            rehearsed_sites = rehearsal.sites;
            asked.push(Asked {
                to: federation.roster.name_of(to).to_owned(),
                slots,
                times_at_most,
                scalars_at_most: most.scalars,
                nano_rho: most.nano_rho,
                deck: frames(rehearsal.deck),
                round: frames(rehearsal.round),
                round_with_one_missing: frames(rehearsal.missing),
                one_missing: match may_be_missing && rehearsal.goes_on {
                    true => "the round goes on",
                    false => "the run ends: too few sites are left, and nothing is opened",
                },
                cost,
            });
        }
        // First the coordinator's parts: they are the bulk.
        asked.sort_by_key(|asked| asked.cost.name == Question::CountRows.name());
        Ok(Leaves {
            says: format!(
                "{site} would send nothing that can be read: vectors under masks, key shares in sealed boxes, public keys and \
                 signatures. What is learnt all the same: the coordinator and every site learn totals over the whole cohort; {sites_mean}."
            ),
            totals_tell,
            rehearsed_sites,
            hello_bytes: hello_bytes(federation),
            questions: asked,
            nano_rho: total.nano_rho,
            never_sent: NEVER_SENT,
        })
    }

    /// A thought a line; without `all` nothing of single messages.
    pub(super) fn lines(&self, all: bool) -> Vec<String> {
        let mut lines = vec![self.says.clone(), "What totals can tell".to_owned()];
        lines.extend(self.totals_tell.iter().map(|told| format!("  {told}")));
        let numbers = self.questions.iter().map(|asked| asked.scalars_at_most).sum();
        let together = format!("Together: {}", given(numbers, self.nano_rho));
        if !all {
            lines.push(together);
            return lines;
        }
        lines.push(format!("Nothing was sent: it is a rehearsal of {} sites.", self.rehearsed_sites));
        let (hello, what) = (self.hello_bytes, "public key, hashes of roster and plan, software version");
        lines.push(format!("Once to each aggregator: Hello, {hello} bytes: {what}"));
        let mut decks = Vec::new();
        for asked in &self.questions {
            if !decks.contains(&&asked.to) {
                decks.push(&asked.to);
                let (rounds, sent) = (counted(asked.slots, "round"), sent(&asked.deck));
                lines.push(format!("For every deck of {rounds}, to {}: {sent}", asked.to));
            }
            asked.tell(&mut lines);
        }
        lines.push(together);
        lines.push("What the messages disclose".to_owned());
        let frames = self.questions.iter().flat_map(|asked| asked.deck.iter().chain(&asked.round));
        for Frame { kind, discloses, .. } in frames {
            let line = format!("  {kind}: {discloses:?}, {}", discloses.explain());
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines.push("Never sent".to_owned());
        lines.extend(self.never_sent.iter().map(|what| format!("  {what}")));
        lines
    }
}

impl Asked {
    fn tell(&self, lines: &mut Vec<String>) {
        let times = counted(self.times_at_most as usize, "time");
        let all = given(self.scalars_at_most, self.nano_rho);
        lines.push(format!("For every {} question of {}, {times} at most: {all}", self.cost.name, self.to));
        lines.push(format!("  {}", sent(&self.round)));
        for block in &self.cost.blocks {
            let largest = format!("{:.4e}", block.largest);
            lines.push(format!("    {}: {} x 64 bits, each at most {largest}", block.name, block.entries));
        }
        let missing = sent(&self.round_with_one_missing);
        lines.push(format!("  if one site is missing: {}; {missing}", self.one_missing));
    }
}

/// Messages and their bytes.
fn sent(frames: &[Frame]) -> String {
    frames.iter().map(|Frame { kind, bytes, .. }| format!("{kind} {bytes} bytes")).collect::<Vec<_>>().join(", ")
}

/// What answers give away, for people.
fn given(scalars: u64, nano_rho: Option<u64>) -> String {
    let numbers = counted(scalars as usize, "number");
    nano_rho.map_or(format!("{numbers}, exact"), |rho| format!("{numbers}, {}", dp::spends(rho)))
}

/// Bytes of the greeting, by which a site says who it is and which documents it holds.
fn hello_bytes(federation: &Federation) -> usize {
    let (roster, plan) = (federation.roster.hash(), federation.terms.hash());
    let hello = Hello { roster, plan, software: SOFTWARE.to_owned() };
    let stranger = Identity::generate(&mut system_rng());
    app_messages::frame(&stranger, &app_messages::greeting_session(), Kind::Hello, &hello).len()
}
