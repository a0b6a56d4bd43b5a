//! The real sites beside the model: a coordinator that tells them what the model's is told, and compares.

use veilsum_testkit::prelude::*;

use super::rules::{Local, Message, Set, Setting, Stage, members};

pub(crate) const SLOT: u16 = 0;

/// One question put to everybody, and all that is needed to put it again.
pub(crate) struct Bench {
    pub(crate) setting: Setting,
    pub(crate) hub: Hub,
    pub(crate) round: Round,
    pub(crate) vectors: BTreeMap<u16, Vec<u64>>,
    pub(crate) secrets: Vec<Secrets>,
    deck: Deck,
    ask: Ask,
    /// Every site's journal when its deck was ready.
    fresh: Vec<Vec<Record>>,
    signatures: BTreeMap<(u16, Set), Proof>,
}

pub(crate) fn list(set: Set) -> Vec<u16> {
    members(set).map(|u| u as u16).collect()
}

impl Bench {
    /// `n` real sites whose plan is made for `c` colluders and the threshold `t`; as many collude as the setting says.
    pub(crate) fn new(n: usize, c: usize, t: usize) -> Bench {
        let setting = Setting { least: t.max(3), ..Setting::new(n, c, t) };
        let mut hub = Hub::new(n, 1_000 + n as u64, |terms| {
            terms.threshold = t as u16;
            terms.colluders = c as u16;
        });
        let deck = hub.deck(0, 1, &everybody(n));
        assert_eq!(deck.threshold, t);
        let fresh = hub.journals.clone();
        let ask = hub.question(&deck, SLOT, &everybody(n), Default::default(), b"q");
        let (round, vectors) = asked(&mut hub, &deck, &ask, &everybody(n)).unwrap();
        let secrets = (0..n as u16).map(|u| Secrets::of(&hub, u, 0)).collect();
        Bench { setting, hub, round, vectors, secrets, deck, ask, fresh, signatures: BTreeMap::new() }
    }

    /// The site as it was when it had answered the question, and nothing since.
    pub(crate) fn reset(&mut self, site: usize) {
        let me = site as u16;
        self.unasked(site);
        let (again, vectors) = asked(&mut self.hub, &self.deck, &self.ask, &[me]).unwrap();
        assert_eq!((again.context, &vectors[&me]), (self.round.context, &self.vectors[&me]), "the same answer");
        self.round.inputs.extend(again.inputs);
    }

    /// The site as it was when its deck was ready.
    pub(crate) fn unasked(&mut self, site: usize) {
        self.hub.journals[site].clone_from(&self.fresh[site]);
        self.hub.restart(site as u16).unwrap();
    }

    /// The frame of the question, or of another one for the same slot.
    pub(crate) fn ask_frame(&self, other: bool) -> Vec<u8> {
        let query = if other { b"other".to_vec() } else { self.ask.query.clone() };
        self.hub.ask_frame(&self.deck, &Ask { query, ..self.ask.clone() }).1
    }

    pub(crate) fn survivors(&self, alive: Set) -> Vec<u8> {
        self.hub.survivors(&self.round, &list(alive))
    }

    pub(crate) fn certificate(&self, alive: Set, signed: &BTreeMap<u16, Proof>) -> Vec<u8> {
        self.hub.certificate(&self.round, &list(alive), signed)
    }

    /// What `site` signs where it signs `alive`, made with its key by this test.
    pub(crate) fn signature(&mut self, site: u16, alive: Set) -> Proof {
        let context = survivors_context(&self.round.context, &list(alive), &self.round.signed(&list(alive)));
        let (hub, key) = (&self.hub, (site, alive));
        let make = || parts(&raw(hub.identity(site), &hub.session, Kind::ConsistencyCheck, &context, b"")).proof;
        *self.signatures.entry(key).or_insert_with(make)
    }

    /// The one reply by which a real site goes from one state of the model to another gives away exactly what the
    /// model says, under the right name, and no more.
    pub(crate) fn gives_what_the_model_says(&self, me: usize, before: &Local, after: &Local, sent: &[Parts]) {
        let [reply] = sent else { panic!("one reply, not {}", sent.len()) };
        let (context, own) = (self.round.context, &self.secrets[me]);
        match after.stage {
            Stage::Checked(alive) => {
                assert_eq!(reply.kind, Kind::ConsistencyCheck);
                let signed = survivors_context(&context, &list(alive), &self.round.signed(&list(alive)));
                assert_eq!(reply.context, signed, "for exactly these and their inputs");
                let (round, seeds): Check = reply.read();
                assert_eq!(round, context);
                for (missing, seed) in &seeds {
                    assert_eq!(*seed, own.round_seed(*missing, SLOT, &context));
                    assert_eq!(*seed, self.secrets[usize::from(*missing)].round_seed(me as u16, SLOT, &context));
                }
                let towards = seeds.iter().fold(0, |set: Set, (w, _)| set | 1 << w);
                assert!(seeds.is_sorted_by(|a, b| a.0 < b.0) && towards & alive == 0);
                assert_eq!((before.seeds | towards, before.shares), (after.seeds, after.shares));
                assert_eq!(after.signed.len(), before.signed.len() + 1);
            }
            Stage::Released(alive) => {
                let agreed = survivors_context(&context, &list(alive), &self.round.signed(&list(alive)));
                assert_eq!((reply.kind, reply.context), (Kind::Unmask, agreed), "for exactly these and their inputs");
                let shares: Vec<[u8; 32]> = reply.read();
                let expected: Vec<_> = list(alive).iter().map(|u| own.share(*u, SLOT)).collect();
                assert_eq!(shares, expected);
                assert_eq!((before.seeds, before.shares | alive), (after.seeds, after.shares));
            }
            Stage::Waiting | Stage::Masked => panic!("no site gets there by survivors or certificates"),
        }
    }

    /// The messages by which a site gets to a state, after its answer: down its chain, then the release.
    pub(crate) fn way_to(&self, state: &Local) -> Vec<Message> {
        let mut chain = state.signed.clone();
        chain.sort_by_key(|set| std::cmp::Reverse(set.count_ones()));
        let released = match state.stage {
            Stage::Released(all) if chain.is_empty() => Some(Message::Survivors(all)),
            Stage::Released(last) => Some(Message::Certificate(last)),
            _ => None,
        };
        chain.into_iter().map(Message::Survivors).chain(released).collect()
    }

    /// Signatures of all members of a set.
    pub(crate) fn all_sign(&mut self, alive: Set) -> BTreeMap<u16, Proof> {
        list(alive).into_iter().map(|u| (u, self.signature(u, alive))).collect()
    }
}
