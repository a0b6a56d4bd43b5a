//! Who sent how much in which phase, counted from the frames themselves.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};
use veilsum_proto::message::{Kind, kind_of};

/// Messages and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Count {
    /// Frames.
    pub messages: u64,
    /// Bytes of the frames, without the transport's own.
    pub bytes: u64,
}

impl Count {
    /// Both together.
    #[must_use]
    pub fn and(self, more: Count) -> Count {
        Count { messages: self.messages.saturating_add(more.messages), bytes: self.bytes.saturating_add(more.bytes) }
    }
}

/// Sent frames by party and phase.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Traffic(pub BTreeMap<String, BTreeMap<Cow<'static, str>, Count>>);

/// The phase to which a kind of message belongs.
pub fn phase(kind: Kind) -> &'static str {
    match kind {
        Kind::OpenDeck
        | Kind::AdvertiseKeys
        | Kind::Directory
        | Kind::AcceptDirectory
        | Kind::DirectoryCertificate
        | Kind::ShareKeys
        | Kind::DeliverShares
        | Kind::ShareAck
        | Kind::ShareComplaint => "deck",
        Kind::Ask => "ask",
        Kind::MaskedInput => "masked_input",
        Kind::Survivors | Kind::Certificate => "survivors",
        Kind::ConsistencyCheck => "consistency_check",
        Kind::Unmask => "unmask",
        Kind::Opening => "opening",
        _ => "control",
    }
}

impl Traffic {
    /// Counts a frame that `party` sent.
    pub fn sent(&mut self, party: &str, frame: &[u8]) {
        let phase = kind_of(frame).map_or("control", phase);
        let count = self.0.entry(party.to_owned()).or_default().entry(phase.into()).or_default();
        *count = count.and(Count { messages: 1, bytes: frame.len() as u64 });
    }

    /// Adds another count to this one.
    pub fn add(&mut self, other: &Traffic) {
        for (party, phases) in &other.0 {
            for (phase, c) in phases {
                let count = self.0.entry(party.clone()).or_default().entry(phase.clone()).or_default();
                *count = count.and(*c);
            }
        }
    }

    /// All bytes.
    pub fn bytes(&self) -> u64 {
        self.0.values().flat_map(|p| p.values()).map(|c| c.bytes).sum()
    }
}
