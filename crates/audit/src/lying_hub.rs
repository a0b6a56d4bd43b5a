//! A coordinator that says anything to anybody, and the real sites it talks to: the test kit's lying hub, with what attacks need.
//!
//! What sites refuse comes back with the rule; what is no answer at all is an error.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use veilsum_proto::{
    Rule, codec,
    identity::Identity,
    message::{Kind, frame_encoded},
    suite::Hash,
};
pub use veilsum_testkit::{
    federation::Answer,
    hub::{Deck, Hub},
    wire::Parts as Sent,
};
use veilsum_testkit::{
    kit::Kit,
    wire::{Directory, Keys, Proof, parts},
};

/// Rounds of one deck.
pub const SLOTS: u16 = 8;

/// A coordinator and its sites, which await no opening: every word is said by hand.
pub fn hub(kit: Kit, seed: u64, answer: Answer) -> Hub {
    let mut hub = Hub::closed(kit, seed);
    hub.answer = answer;
    hub
}

/// Shows `target` a directory in which all others are strangers with keys of the coordinator's making. The rule under
/// which it refuses, or nothing where it takes it.
///
/// # Errors
/// Where the target does not even begin.
pub fn strangers(hub: &mut Hub, target: u16, count: usize) -> Result<Option<Rule>> {
    let (id, frame) = hub.open(0, SLOTS);
    let own = hub.reply(target, &frame)?;
    let keys = own.read::<Keys>();
    let mut entries = vec![(target, keys.clone(), own.proof)];
    for stranger in 0..count as u16 {
        // Each under the number of a site of the roster where there is one.
        let number = target + 1 + stranger;
        let identity = Identity::generate(&mut hub.rng);
        let frame = frame_encoded(&identity, &hub.session, Kind::AdvertiseKeys, &id, &codec::encode(&keys));
        entries.push((number, keys.clone(), parts(&frame).proof));
    }
    entries.truncate(hub.sites.len());
    let threshold = hub.kit.terms.threshold_of(entries.len(), hub.sites.len())? as u16;
    let frame = hub.frame(Kind::Directory, &id, &Directory { threshold, entries });
    Ok(hub.tell(target, &frame).err().map(|e| e.rule().ok_or(e)).transpose()?)
}

/// Tells one site who survived: its shares, or its seeds towards the others, or the rule under which it refuses.
///
/// # Errors
/// Where it does neither.
pub fn survivors(
    hub: &mut Hub,
    to: u16,
    context: &Hash,
    alive: &[u16],
    inputs: &BTreeMap<u16, Sent>,
) -> Result<Result<Sent, Rule>> {
    let proofs: Vec<Proof> = alive.iter().filter_map(|s| inputs.get(s)).map(|sent| sent.proof).collect();
    let frame = hub.frame(Kind::Survivors, context, &(alive, proofs));
    told(hub, to, &frame)
}

/// Gives one site a frame: its reply, or the rule under which it refuses.
///
/// # Errors
/// Where it does neither.
pub fn told(hub: &mut Hub, to: u16, frame: &[u8]) -> Result<Result<Sent, Rule>> {
    match hub.tell(to, frame) {
        Ok(mut sent) if sent.len() == 1 => Ok(Ok(sent.remove(0))),
        Ok(sent) => Err(anyhow!("one frame and {} replies", sent.len())),
        Err(e) => Ok(Err(e.rule().ok_or(e)?)),
    }
}
