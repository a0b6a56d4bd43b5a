//! The aggregator's side of a deck: it collects, shows each site its part, and forwards boxes (spec 17.3 to 17.5).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Env, ReadyDeck, Step};
use crate::{
    error::{Error, Rule},
    limits::DELIVERY_BATCH,
    sparse::{
        bits::Bits,
        frame::{Kind, Proof, Verified},
        graph::Graph,
        merkle::Tree,
        message::{
            self, Advertise, Certificate, Deliver, Held, Open, Random, Reveal, Root, Sealed, Seed, Shares, Shown,
            keys_hash, leaf, list_hash, random_commitment,
        },
        site::commitments_hash,
        size::Sizes,
    },
    suite::Hash,
};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Phase {
    Advertise,
    Reveal,
    Accept,
    Share,
    Hold,
}

/// A deck being set up.
pub(crate) struct Setup {
    open: Open,
    pub(crate) id: Hash,
    phase: Phase,
    keys: BTreeMap<u16, (Advertise, Proof)>,
    seal_keys: BTreeSet<[u8; 32]>,
    directory: Option<Directory>,
    randoms: BTreeMap<u16, Random>,
    slot_keys: BTreeMap<u16, Vec<[u8; 32]>>,
    drawn: Option<Drawn>,
    accepted: BTreeMap<u16, Proof>,
    commitments: BTreeMap<u16, Vec<Hash>>,
    /// Boxes that wait for their frame, and their bytes, by place in the committee.
    waiting: Vec<(Vec<(u16, Sealed)>, usize)>,
    held: BTreeMap<u16, Bits>,
}

/// What the commitments fix.
struct Directory {
    members: Vec<u16>,
    set: Bits,
    tree: Tree,
    randoms: Hash,
    context: Hash,
    sizes: Sizes,
}

/// What the random numbers give.
struct Drawn {
    list: Vec<Random>,
    graph: Graph,
    context: Hash,
}

impl Setup {
    pub(crate) fn open(env: &Env, run: Hash, index: u32, slots: u16) -> (Setup, Arc<Vec<u8>>) {
        let open = Open { run, index, slots };
        let id = message::deck_id(&env.session, &open);
        let frame = env.frame(Kind::Open, &id, &open);
        let setup = Setup {
            open,
            id,
            phase: Phase::Advertise,
            keys: BTreeMap::new(),
            seal_keys: BTreeSet::new(),
            directory: None,
            randoms: BTreeMap::new(),
            slot_keys: BTreeMap::new(),
            drawn: None,
            accepted: BTreeMap::new(),
            commitments: BTreeMap::new(),
            waiting: Vec::new(),
            held: BTreeMap::new(),
        };
        (setup, frame)
    }

    /// Whether a site that is silent now makes the set-up begin again: every random number is needed ([SPA-7]).
    pub(crate) fn needs_everybody(&self) -> bool {
        self.phase == Phase::Reveal
    }

    fn context(&self) -> Hash {
        match (self.phase, &self.directory, &self.drawn) {
            (Phase::Reveal, Some(d), _) => d.context,
            (Phase::Accept | Phase::Share | Phase::Hold, _, Some(d)) => d.context,
            _ => self.id,
        }
    }

    fn place(&self, site: u16) -> Option<u16> {
        self.directory.as_ref()?.members.binary_search(&site).ok().map(|p| p as u16)
    }

    /// A site's answer; boxes that fill a frame are sent on at once through `send`.
    pub(crate) fn message(
        &mut self,
        env: &Env,
        from: u16,
        frame: &Verified<'_>,
        send: &mut dyn FnMut(u16, Arc<Vec<u8>>),
    ) -> Result<bool, Error> {
        let expected = match self.phase {
            Phase::Advertise => Kind::Advertise,
            Phase::Reveal => Kind::Reveal,
            Phase::Accept => Kind::Accept,
            Phase::Share => Kind::Shares,
            Phase::Hold => Kind::Held,
        };
        if frame.kind != expected || frame.context != self.context() {
            // Of a step that is over, or of a set-up that was given up.
            return Ok(false);
        }
        match self.phase {
            Phase::Advertise => {
                let keys: Advertise = frame.decode("Advertise")?;
                if !self.seal_keys.insert(keys.seal_key) {
                    return Err(env.site_error(from, "advertised a key that another site advertised", "SPA-24"));
                }
                self.keys.insert(from, (keys, frame.proof));
            }
            Phase::Reveal => {
                let reveal: Reveal = frame.decode("Reveal")?;
                let fits = self.keys.get(&from).is_some_and(|(keys, _)| {
                    keys.random == random_commitment(&self.id, from, &reveal.random)
                        && keys.slot_keys == keys_hash(&reveal.slot_keys)
                        && reveal.slot_keys.len() == usize::from(self.open.slots)
                });
                if !fits {
                    return Err(env.site_error(from, "revealed something else than it committed to", "SPA-24"));
                }
                self.randoms.insert(from, reveal.random);
                self.slot_keys.insert(from, reveal.slot_keys);
            }
            Phase::Accept => {
                frame.nothing("Accept")?;
                self.accepted.insert(from, frame.proof);
            }
            Phase::Share => self.shares(env, from, frame.decode("Shares")?, send)?,
            Phase::Hold => {
                let held: Held = frame.decode("Held")?;
                if !held.owners.fits(self.keys.len()) {
                    return Err(env.site_error(from, "holds shares of sites that are no members", "SPA-24"));
                }
                self.held.insert(from, held.owners);
            }
        }
        Ok(true)
    }

    fn shares(
        &mut self,
        env: &Env,
        from: u16,
        shares: Shares,
        send: &mut dyn FnMut(u16, Arc<Vec<u8>>),
    ) -> Result<(), Error> {
        let place = self.place(from);
        let (Some(drawn), Some((keys, proof)), Some(place)) = (&self.drawn, self.keys.get(&from), place) else {
            return Ok(());
        };
        let committee = &drawn.graph.committee;
        let slots = usize::from(self.open.slots);
        let known = shares.commitments.len() == slots && keys.commitments == commitments_hash(&shares.commitments);
        let sized = shares.boxes.len() == committee.len()
            && committee
                .iter()
                .zip(&shares.boxes)
                .all(|(to, b)| b.len() == if *to == place { 0 } else { 64 * slots + 16 });
        if !known || !sized {
            return Err(env.site_error(
                from,
                "sent other commitments than it advertised, or boxes that miss",
                "SPA-24",
            ));
        }
        let (keys, proof) = (*keys, *proof);
        self.commitments.insert(from, shares.commitments);
        for (i, sealed) in shares.boxes.into_iter().enumerate().filter(|(_, b)| !b.is_empty()) {
            let (boxes, bytes) = &mut self.waiting[i];
            *bytes += sealed.len() + 256;
            boxes.push((place, Sealed { keys, proof, sealed }));
            if *bytes >= DELIVERY_BATCH {
                self.deliver(env, i, send);
            }
        }
        Ok(())
    }

    fn deliver(&mut self, env: &Env, i: usize, send: &mut dyn FnMut(u16, Arc<Vec<u8>>)) {
        let (Some(drawn), Some(directory)) = (&self.drawn, &self.directory) else { return };
        let (boxes, bytes) = &mut self.waiting[i];
        *bytes = 0;
        let boxes = std::mem::take(boxes);
        if !boxes.is_empty() {
            let to = directory.members[usize::from(drawn.graph.committee[i])];
            send(to, env.frame(Kind::Deliver, &drawn.context, &Deliver { boxes }));
        }
    }

    /// Everybody who is waited for has answered or is out: the next step, or the ready deck.
    pub(crate) fn next(
        &mut self,
        env: &Env,
        send: &mut dyn FnMut(u16, Arc<Vec<u8>>),
    ) -> Result<(Step, Option<ReadyDeck>), Error> {
        match self.phase {
            Phase::Advertise => {
                let members: Vec<u16> = self.keys.keys().copied().collect();
                let sizes = env.sizes(members.len())?;
                let tree = Tree::new(self.keys.iter().map(|(site, (_, proof))| leaf(*site, proof)).collect());
                let randoms: Vec<Hash> = self.keys.values().map(|(keys, _)| keys.random).collect();
                let randoms = list_hash("sparse randoms", &randoms);
                let set = Bits::of(env.roster.sites.len(), members.iter().copied());
                let context = message::root_context(&self.id, &set, &tree.root(), &randoms);
                let to = members.iter().copied().collect();
                self.directory = Some(Directory { members, set, tree, randoms, context, sizes });
                self.phase = Phase::Reveal;
                Ok((Step::Each(to), None))
            }
            Phase::Reveal => {
                let Some(directory) = &self.directory else { return Err(Error::ApiMisuse("no directory")) };
                let list: Vec<Random> = self.randoms.values().copied().collect();
                let seed = message::seed(&directory.context, &list);
                let graph = Graph::draw(&seed, directory.members.len(), &directory.sizes);
                let context = message::directory(&directory.context, &seed);
                self.waiting = graph.committee.iter().map(|_| (Vec::new(), 0)).collect();
                self.drawn = Some(Drawn { list, graph, context });
                self.phase = Phase::Accept;
                Ok((Step::Each(directory.members.iter().copied().collect()), None))
            }
            Phase::Accept => {
                let (Some(directory), Some(drawn)) = (&self.directory, &self.drawn) else {
                    return Err(Error::ApiMisuse("no directory"));
                };
                let signed = |place: &&u16| self.accepted.contains_key(&directory.members[usize::from(**place)]);
                let signers: Vec<u16> =
                    drawn.graph.committee.iter().filter(signed).take(directory.sizes.quorum).copied().collect();
                if signers.len() < directory.sizes.quorum {
                    return Err(quorum("a deck's certificate", signers.len(), directory.sizes.quorum, "SPA-10"));
                }
                let proof = |place: &u16| self.accepted[&directory.members[usize::from(*place)]];
                let proofs = signers.iter().map(proof).collect();
                let frame = env.frame(Kind::Certificate, &drawn.context, &Certificate { signers, proofs });
                self.phase = Phase::Share;
                Ok((Step::All(self.accepted.keys().copied().collect(), frame), None))
            }
            Phase::Share => {
                for i in 0..self.waiting.len() {
                    self.deliver(env, i, send);
                }
                let (Some(directory), Some(drawn)) = (&self.directory, &self.drawn) else {
                    return Err(Error::ApiMisuse("no directory"));
                };
                let frame = Arc::new(crate::sparse::frame::frame_raw(
                    &env.identity,
                    &env.session,
                    Kind::Collect,
                    &drawn.context,
                    &[],
                ));
                let committee = drawn.graph.committee.iter().map(|p| directory.members[usize::from(*p)]);
                let to: BTreeSet<u16> = committee.filter(|site| self.commitments.contains_key(site)).collect();
                self.phase = Phase::Hold;
                Ok((Step::All(to, frame), None))
            }
            Phase::Hold => self.ready().map(|deck| (Step::Done, Some(deck))),
        }
    }

    fn ready(&mut self) -> Result<ReadyDeck, Error> {
        let (Some(directory), Some(drawn)) = (self.directory.take(), self.drawn.take()) else {
            return Err(Error::ApiMisuse("no directory"));
        };
        let t = directory.sizes.quorum;
        if self.held.len() < t {
            return Err(quorum("a share committee", self.held.len(), t, "SPA-12"));
        }
        // Half of those who could be spared may lack a site's shares.
        let enough = t + (self.held.len() - t) / 2;
        let holders = |place: u16| self.held.values().filter(|owners| owners.has(place)).count();
        let cohort: BTreeSet<u16> = (0..)
            .zip(&directory.members)
            .filter(|(place, site)| self.commitments.contains_key(site) && holders(*place) >= enough)
            .map(|(place, _)| place)
            .collect();
        if cohort.len() < directory.sizes.floor {
            return Err(quorum("a deck", cohort.len(), directory.sizes.floor, "SPA-12"));
        }
        let by_place = |lists: &mut BTreeMap<u16, Vec<_>>| {
            directory.members.iter().map(|site| lists.remove(site).unwrap_or_default()).collect()
        };
        Ok(ReadyDeck {
            index: self.open.index,
            id: self.id,
            context: drawn.context,
            cohort,
            holders: self.held.keys().copied().collect(),
            commitments: directory.members.iter().map(|s| self.commitments.remove(s).unwrap_or_default()).collect(),
            slot_keys: by_place(&mut self.slot_keys),
            graph: drawn.graph,
            sizes: directory.sizes,
            slots: self.open.slots,
            next_slot: 0,
            members: directory.members.clone(),
        })
    }

    /// The frame that is this site's alone: its path, or its neighbourhood. Made when it leaves, for it is large.
    pub(crate) fn personal(&self, env: &Env, site: u16) -> Option<Arc<Vec<u8>>> {
        let directory = self.directory.as_ref()?;
        let place = self.place(site)?;
        if self.phase == Phase::Reveal {
            let root = Root {
                members: directory.set.clone(),
                entries: directory.tree.root(),
                randoms: directory.randoms,
                path: directory.tree.path(usize::from(place)),
            };
            return Some(env.frame(Kind::Root, &self.id, &root));
        }
        let drawn = self.drawn.as_ref()?;
        let shown = |place: u16| {
            let (keys, proof) = self.keys[&directory.members[usize::from(place)]];
            Shown { keys, proof, path: directory.tree.path(usize::from(place)) }
        };
        let keys = |place: u16| self.slot_keys[&directory.members[usize::from(place)]].clone();
        let seed = Seed {
            randoms: drawn.list.clone(),
            near: drawn.graph.neighbours(place).into_iter().map(|p| (shown(p), keys(p))).collect(),
            committee: drawn.graph.committee.iter().map(|p| shown(*p)).collect(),
        };
        Some(env.frame(Kind::Seed, &directory.context, &seed))
    }
}

pub(crate) fn quorum(step: &'static str, alive: usize, needed: usize, rule: &'static str) -> Error {
    Error::Quorum { step, alive, needed, rule: Rule(rule) }
}
