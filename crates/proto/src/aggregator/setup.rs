//! The aggregator's side of the deck: it relays keys, signatures and sealed boxes, and can open none (spec section 8).

use std::{collections::BTreeMap, sync::Arc};

use curve25519_dalek::montgomery::MontgomeryPoint;

use super::{
    env::{Env, Pending},
    record::ReadyDeck,
    timing::Millis,
};
use crate::{
    codec,
    error::Error,
    message::{
        AcceptDirectory, AdvertiseKeys, CIPHERTEXT_FOR, CiphertextFor, DeliverShares, Directory, DirectoryEntry, Kind,
        OpenDeck, Proof, SealedFor, ShareComplaint, ShareKeys, Verified, commitments_hash, deck_id, directory_hash,
        encapsulates,
    },
    rule::Rule,
    standing::Member,
    suite::Hash,
};

enum Phase {
    Advertise,
    /// `passing` has the ciphertexts for each member, encoded as the certificate has them, in the order in which they came: at most
    /// half a million, each of which would be a block of its own.
    Accept {
        proofs: BTreeMap<u16, Proof>,
        passing: BTreeMap<u16, Vec<u8>>,
    },
    Share(BTreeMap<u16, Vec<SealedFor>>),
    Deliver,
}

/// A deck being set up.
pub(crate) struct Setup {
    open: OpenDeck,
    open_frame: Arc<Vec<u8>>,
    id: Hash,
    keys: BTreeMap<u16, (AdvertiseKeys, Proof)>,
    directory: Option<(Hash, usize, Vec<u16>)>,
    commitments: BTreeMap<u16, Vec<Hash>>,
    phase: Phase,
    pub(crate) pending: Pending,
    answered: BTreeMap<(u16, Kind), Hash>,
    /// A complaint of one member about another's box: (who complains, about whom).
    pub(super) complaint: Option<(u16, u16)>,
}

impl Setup {
    pub(crate) fn open(env: &Env, open: OpenDeck, candidates: Vec<u16>, wait: u64, now: Millis) -> Setup {
        let id = deck_id(&env.session, &open);
        let open_frame = env.frame(Kind::OpenDeck, &id, &open);
        let frames = candidates.into_iter().map(|s| (s, open_frame.clone())).collect();
        Setup {
            open,
            open_frame,
            id,
            keys: BTreeMap::new(),
            directory: None,
            commitments: BTreeMap::new(),
            phase: Phase::Advertise,
            pending: Pending::new(frames, wait, env, now),
            answered: BTreeMap::new(),
            complaint: None,
        }
    }

    pub(crate) fn is_joining(&self) -> bool {
        matches!(self.phase, Phase::Advertise)
    }

    /// A site came (back) while keys are collected: a new process there has no keys yet, so it is asked (again).
    pub(crate) fn ask_again(&mut self, site: u16) {
        if self.is_joining() {
            self.keys.remove(&site);
            self.answered.remove(&(site, Kind::AdvertiseKeys));
            self.pending.frames.insert(site, self.open_frame.clone());
        }
    }

    /// Whether the directory is out and this member has not answered what followed.
    pub(crate) fn waits_late_for(&self, site: u16) -> bool {
        !self.is_joining() && self.pending.frames.contains_key(&site)
    }

    /// Sites that have not advertised are not awaited any longer.
    pub(crate) fn stop_waiting(&mut self) {
        if self.is_joining() {
            self.pending.frames.clear();
        }
    }

    /// The members once the directory is made; those who advertised before.
    pub(crate) fn members(&self) -> Vec<u16> {
        match &self.directory {
            Some((_, _, members)) => members.clone(),
            None => self.keys.keys().copied().collect(),
        }
    }

    /// Excludes a site. Returns true where the directory already contains it, so that the set-up must begin again.
    pub(crate) fn without(&mut self, site: u16) -> bool {
        self.pending.frames.remove(&site);
        self.keys.remove(&site);
        self.directory.as_ref().is_some_and(|(_, _, members)| members.contains(&site))
    }

    pub(crate) fn message(&mut self, env: &Env, from: u16, frame: &Verified<'_>) -> Result<(), Error> {
        let expected = match frame.kind {
            Kind::AdvertiseKeys => self.id,
            _ => self.directory.as_ref().map_or(self.id, |(hash, _, _)| *hash),
        };
        if frame.context != expected {
            // This belongs to a set-up that was given up.
            return Ok(());
        }
        let digest = crate::suite::hash("answer", &[frame.rest]);
        match self.answered.get(&(from, frame.kind)) {
            Some(before) if *before == digest => return Ok(()),
            Some(_) => {
                return Err(env.site_error(from, format!("answered twice: two {:?} differ", frame.kind), Rule::Kex13));
            }
            None => {}
        }
        if !self.pending.frames.contains_key(&from) {
            return Ok(());
        }
        match (&mut self.phase, frame.kind) {
            (Phase::Advertise, Kind::AdvertiseKeys) => {
                let keys: AdvertiseKeys = frame.decode("AdvertiseKeys")?;
                self.check_keys(env, from, &keys)?;
                self.keys.insert(from, (keys, frame.proof));
            }
            (Phase::Accept { proofs, passing }, Kind::AcceptDirectory) => {
                let AcceptDirectory { ciphertexts } = frame.decode("AcceptDirectory")?;
                let receivers = self.keys.keys().copied().filter(|to| encapsulates(from, *to));
                let whole = ciphertexts.iter().map(|c| c.site).eq(receivers);
                let otherwise = "did not send exactly one ciphertext for every member that it has to send one";
                env.demand(from, whole, otherwise, Rule::Kex17)?;
                proofs.insert(from, frame.proof);
                for CiphertextFor { site, ciphertext } in ciphertexts {
                    let to = passing.entry(site).or_default();
                    to.extend_from_slice(&codec::encode(&CiphertextFor { site: from, ciphertext }));
                }
            }
            (Phase::Share(boxes), Kind::ShareKeys) => {
                let shares: ShareKeys = frame.decode("ShareKeys")?;
                let known = self.keys.get(&from).is_some_and(|(k, _)| {
                    shares.commitments.len() == usize::from(self.open.slots)
                        && k.commitments == commitments_hash(&shares.commitments)
                });
                env.demand(from, known, "sent other commitments than it advertised", Rule::Shr3)?;
                let others = self.keys.keys().copied().filter(|s| *s != from);
                let sized = |b: &SealedFor| b.sealed.len() == 32 * usize::from(self.open.slots) + 16;
                let whole = shares.boxes.iter().map(|b| b.site).eq(others) && shares.boxes.iter().all(sized);
                let otherwise = "did not send exactly one box of shares for every other member";
                env.demand(from, whole, otherwise, Rule::Shr3)?;
                self.commitments.insert(from, shares.commitments);
                boxes.insert(from, shares.boxes);
            }
            (Phase::Deliver, Kind::ShareAck) => frame.nothing("ShareAck")?,
            (Phase::Deliver, Kind::ShareComplaint) => {
                let complaint: ShareComplaint = frame.decode("ShareComplaint")?;
                let got = complaint.against != from && self.keys.contains_key(&complaint.against);
                env.demand(from, got, "complained about a box that it did not get", Rule::Shr7)?;
                self.complaint = Some((from, complaint.against));
            }
            _ => return Ok(()),
        }
        self.answered.insert((from, frame.kind), digest);
        self.pending.frames.remove(&from);
        Ok(())
    }

    /// [KEX-5], [KEX-8], [KEX-16]: keys that would make every other member refuse the directory are their sender's fault alone.
    fn check_keys(&self, env: &Env, from: u16, keys: &AdvertiseKeys) -> Result<(), Error> {
        // The site's own keys are not among them, because a site that has advertised is not asked again.
        let fresh = self.keys.values().all(|(o, _)| o.dh_key != keys.dh_key && o.kem_key != keys.kem_key);
        env.demand(from, fresh, "advertised a key that stands in the directory already", Rule::Kex5)?;
        let id = |(site, keys): (u16, &AdvertiseKeys)| {
            Member { site, key: env.roster.sites[usize::from(site)].key, standing: keys.standing }.id()
        };
        let own = self.keys.iter().all(|(site, (other, _))| id((*site, other)) != id((from, keys)));
        env.demand(from, own, "stated the account of another site as its own", Rule::Kex5)?;
        // Every clamped scalar is a multiple of eight, which is all that a point of small order, of the curve or its twist, needs
        // to vanish; eight alone costs a twentieth of one.
        let eightfold = MontgomeryPoint(keys.dh_key).mul_bits_be([true, false, false, false].into_iter());
        env.demand(from, eightfold.0 != [0; 32], "advertised a key of small order", Rule::Kex8)?;
        env.demand(from, keys.kem_key.is_valid(), "advertised an ML-KEM key that is none", Rule::Kex16)
    }

    /// Everybody answered: returns the next message to all, or the ready deck.
    pub(crate) fn next(&mut self, env: &Env, now: Millis) -> Result<Option<ReadyDeck>, Error> {
        let wait = env.timing.phase;
        match &mut self.phase {
            Phase::Advertise => {
                let members: Vec<u16> = self.keys.keys().copied().collect();
                let threshold = env.enough(members.len(), "a deck")?;
                let entries: Vec<DirectoryEntry> = self
                    .keys
                    .iter()
                    .map(|(site, (keys, proof))| DirectoryEntry { site: *site, keys: keys.clone(), proof: *proof })
                    .collect();
                let directory = Directory { threshold: threshold as u16, entries };
                let hash = directory_hash(&self.id, &directory);
                let frame = env.frame(Kind::Directory, &self.id, &directory);
                self.pending = Pending::same(&members, &frame, env, now);
                let expected = |to: u16| members.iter().filter(|from| encapsulates(**from, to)).count();
                let room = |to: &u16| (*to, Vec::with_capacity(expected(*to) * CIPHERTEXT_FOR));
                let passing = members.iter().map(room).collect();
                self.phase = Phase::Accept { proofs: BTreeMap::new(), passing };
                self.directory = Some((hash, threshold, members));
            }
            Phase::Accept { proofs, passing } => {
                let proofs = codec::encode(&proofs.values().copied().collect::<Vec<Proof>>());
                let passing = std::mem::take(passing);
                let hash = self.hash();
                let mut frames = BTreeMap::new();
                for (to, mut ciphertexts) in passing {
                    let (each, _) = ciphertexts.as_chunks_mut::<CIPHERTEXT_FOR>();
                    each.sort_unstable_by_key(|c| u16::from_le_bytes([c[0], c[1]]));
                    // A DirectoryCertificate, part by part.
                    let count = (each.len() as u64).to_le_bytes();
                    let message = [&proofs[..], &count, &ciphertexts].concat();
                    frames.insert(to, env.frame_raw(Kind::DirectoryCertificate, &hash, &message));
                }
                self.pending = Pending::new(frames, wait, env, now);
                self.phase = Phase::Share(BTreeMap::new());
            }
            Phase::Share(boxes) => {
                let mut deliveries: BTreeMap<u16, Vec<SealedFor>> = BTreeMap::new();
                for (from, sent) in std::mem::take(boxes) {
                    for b in sent {
                        deliveries.entry(b.site).or_default().push(SealedFor { site: from, ..b });
                    }
                }
                let hash = self.hash();
                // In the members' order, as the directory ([SHR-8]). Moved in and out of the message, not copied for each.
                let mut commitments: Vec<Vec<Hash>> = self.commitments.values().cloned().collect();
                let mut frames = BTreeMap::new();
                for (to, boxes) in deliveries {
                    let message = DeliverShares { commitments, boxes };
                    frames.insert(to, env.frame(Kind::DeliverShares, &hash, &message));
                    commitments = message.commitments;
                }
                self.pending = Pending::new(frames, wait, env, now);
                self.phase = Phase::Deliver;
            }
            Phase::Deliver => {
                let (hash, threshold, members) =
                    self.directory.take().ok_or(Error::ApiMisuse("a deck without a directory"))?;
                let (OpenDeck { index, slots, .. }, id) = (self.open, self.id);
                let commitments = std::mem::take(&mut self.commitments);
                let deck = ReadyDeck { index, hash, id, threshold, members, commitments, slots, next_slot: 0 };
                return Ok(Some(deck));
            }
        }
        Ok(None)
    }

    fn hash(&self) -> Hash {
        self.directory.as_ref().map_or(self.id, |(hash, _, _)| *hash)
    }
}
