//! A site's side of a deck: keys, the root, the seed, its neighbourhood, its shares (spec sections 17.3 to 17.5).
//!
//! One struct for every wait; a message consumes it and gives the next one, or an error and nothing.

use rand_core::CryptoRng;
use x25519_dalek::StaticSecret;
use zeroize::Zeroizing;

use super::{Env, deck::Deck, duty::Duty};
use crate::{
    error::Error,
    limits::MAX_REVEALS,
    policy, shamir,
    sparse::{
        frame::{Kind, Proof, all_signed},
        graph::Graph,
        merkle,
        message::{
            self, Advertise, Certificate, Open, Random, Reveal, Root, Seed, Shares, Shown, keys_hash, leaf, list_hash,
            random_commitment,
        },
        size::Sizes,
        slot::{self, SlotSecrets},
    },
    suite::{self, Hash},
};

/// The deck's own secrets and what was said of them.
pub(crate) struct Fresh {
    pub(crate) open: Open,
    pub(crate) deck: Hash,
    seal: StaticSecret,
    random: Random,
    secrets: Vec<SlotSecrets>,
    slot_keys: Vec<[u8; 32]>,
    commitments: Vec<Hash>,
    pub(crate) entry: Advertise,
    /// Of the frame that advertised it.
    pub(crate) proof: Option<Proof>,
}

/// The random number is out, for one root; all others' are awaited.
pub(crate) struct Revealed {
    pub(crate) fresh: Fresh,
    pub(crate) root: Hash,
    entries: Hash,
    randoms: Hash,
    members: Vec<u16>,
    me: u16,
    sizes: Sizes,
}

/// Directory and seed are signed; the committee's signatures are awaited.
pub(crate) struct Accepted {
    before: Revealed,
    pub(crate) directory: Hash,
    seed: Hash,
    graph: Graph,
    near: Vec<u16>,
    near_keys: Vec<Vec<[u8; 32]>>,
    /// Sealing keys of the committee, in order.
    committee_keys: Vec<[u8; 32]>,
}

impl Fresh {
    /// [SPA-5]: fresh keys, seeds and a random number for a deck the aggregator opens.
    pub(crate) fn new(env: &Env, open: Open, deck: Hash, rng: &mut dyn CryptoRng) -> Fresh {
        let (seal, seal_key) = slot::fresh_key(rng);
        let mut random = [0u8; 16];
        rng.fill_bytes(&mut random);
        let secrets: Vec<SlotSecrets> = (0..open.slots).map(|_| SlotSecrets::fresh(rng)).collect();
        let slot_keys: Vec<[u8; 32]> = secrets.iter().map(|s| slot::key_pair(&s.key.0).1).collect();
        let commitments: Vec<Hash> =
            (0..).zip(&secrets).map(|(r, s)| slot::commitment(&deck, env.me, r, &s.own.0)).collect();
        let entry = Advertise {
            seal_key,
            random: random_commitment(&deck, env.me, &random),
            slot_keys: keys_hash(&slot_keys),
            commitments: super::commitments_hash(&commitments),
        };
        Fresh { open, deck, seal, random, secrets, slot_keys, commitments, entry, proof: None }
    }

    /// [SPA-6]: the random number leaves for one root of a set-up, and only where this site's own entry stands in it.
    pub(crate) fn root(self, env: &Env, root: &Root, reveals: u32) -> Result<(Revealed, Reveal), Error> {
        let sites = env.roster.sites.len();
        if !root.members.fits(sites) {
            return Err(env.aggregator("sent a set of members that is not one of the roster's", "SPA-6"));
        }
        let members: Vec<u16> = root.members.list().collect();
        policy::check_size(&env.terms, &env.floor, members.len())?;
        let sizes = env.sizes(members.len())?;
        let Ok(me) = members.binary_search(&env.me) else {
            return Err(env.aggregator("left this site out of the directory it sent to it", "SPA-6"));
        };
        let own = self.proof.map(|proof| leaf(env.me, &proof)).unwrap_or_default();
        if !merkle::proves(&root.entries, members.len(), me, own, &root.path) {
            return Err(env.aggregator(
                "shows another entry for this site than it advertised; or another process uses this identity",
                "SPA-6",
            ));
        }
        if reveals >= MAX_REVEALS {
            return Err(env.aggregator(
                format!("began {reveals} set-ups in a row and finished none: it may be looking for a graph it likes"),
                "SPA-4",
            ));
        }
        let reveal = Reveal { random: self.random, slot_keys: self.slot_keys.clone() };
        let context = message::root_context(&self.deck, &root.members, &root.entries, &root.randoms);
        let (entries, randoms) = (root.entries, root.randoms);
        Ok((Revealed { fresh: self, root: context, entries, randoms, members, me: me as u16, sizes }, reveal))
    }
}

impl Revealed {
    /// [SPA-7] to [SPA-9]: every random number is the one committed to, the circle and the committee are drawn here, and
    /// the entries of exactly these neighbours and this committee are signed by the roster's keys.
    pub(crate) fn seed(self, env: &Env, seed: Seed) -> Result<Accepted, Error> {
        let n = self.members.len();
        let deck = self.fresh.deck;
        if seed.randoms.len() != n || seed.randoms[usize::from(self.me)] != self.fresh.random {
            return Err(env.aggregator("drew the graph without the random number of this site", "SPA-7"));
        }
        let commitments: Vec<Hash> =
            self.members.iter().zip(&seed.randoms).map(|(site, r)| random_commitment(&deck, *site, r)).collect();
        if list_hash("sparse randoms", &commitments) != self.randoms {
            return Err(env.aggregator("drew the graph from other random numbers than it fixed before", "SPA-7"));
        }
        let drawn = message::seed(&self.root, &seed.randoms);
        let graph = Graph::draw(&drawn, n, &self.sizes);
        let near = graph.neighbours(self.me);
        if seed.near.len() != near.len() || seed.committee.len() != graph.committee.len() {
            return Err(env.aggregator("did not show exactly this site's neighbours and the committee", "SPA-9"));
        }
        let mut near_keys = Vec::with_capacity(near.len());
        let mut known = std::collections::BTreeMap::new();
        for (place, (shown, keys)) in near.iter().zip(seed.near) {
            self.entry(env, *place, &shown)?;
            if keys_hash(&keys) != shown.keys.slot_keys || keys.len() != self.fresh.secrets.len() {
                return Err(env.aggregator("showed keys of a neighbour that it did not advertise", "SPA-9"));
            }
            known.insert(*place, shown);
            near_keys.push(keys);
        }
        let mut committee_keys = Vec::with_capacity(graph.committee.len());
        for (place, shown) in graph.committee.iter().zip(&seed.committee) {
            // An entry seen already is not checked twice.
            if known.get(place) != Some(shown) {
                self.entry(env, *place, shown)?;
            }
            committee_keys.push(shown.keys.seal_key);
        }
        let directory = message::directory(&self.root, &drawn);
        Ok(Accepted { before: self, directory, seed: drawn, graph, near, near_keys, committee_keys })
    }

    /// [SPA-9]: one entry stands under the root at its place, and is signed by the site whose place it is.
    fn entry(&self, env: &Env, place: u16, shown: &Shown) -> Result<(), Error> {
        let site = self.members[usize::from(place)];
        let who = || env.name_of(site);
        if !merkle::proves(&self.entries, self.members.len(), usize::from(place), leaf(site, &shown.proof), &shown.path)
        {
            return Err(env.aggregator(format!("showed an entry of {} that is not under its root", who()), "SPA-9"));
        }
        let signed = shown.proof.covers(&shown.keys)
            && env
                .key_of(site)
                .is_some_and(|k| shown.proof.verify(&k, &env.session, Kind::Advertise, &self.fresh.deck));
        if !signed {
            return Err(env.aggregator(format!("showed keys for {} that {} did not sign", who(), who()), "SPA-9"));
        }
        Ok(())
    }
}

impl Accepted {
    /// [SPA-10], [SPA-11]: enough of the committee hold the same directory and seed. Then the shares are sealed.
    pub(crate) fn certificate(
        self,
        env: &Env,
        certificate: &Certificate,
        rng: &mut dyn CryptoRng,
    ) -> Result<(Deck, Shares), Error> {
        let Revealed { fresh, members, me, sizes, .. } = self.before;
        let bad = |what| Err(env.aggregator(what, "SPA-10"));
        if certificate.signers.len() < sizes.quorum || certificate.proofs.len() != certificate.signers.len() {
            return bad("sent a certificate with too few signatures of the committee");
        }
        if !certificate.signers.is_sorted_by(|a, b| a < b)
            || !certificate.signers.iter().all(|s| self.graph.committee.binary_search(s).is_ok())
        {
            return bad("sent a certificate whose signers are not distinct members of the committee");
        }
        let key = |place: &u16| env.key_of(members[usize::from(*place)]);
        let shown = certificate.signers.iter().map(key).zip(&certificate.proofs);
        let signed: Option<Vec<_>> = shown.map(|(key, p)| Some((key?, *p))).collect();
        if !signed.is_some_and(|signed| all_signed(&signed, &env.session, Kind::Accept, &self.directory)) {
            return bad("has no signatures of the committee on the directory and the seed it showed this site");
        }
        let committee = self.graph.committee.clone();
        let t = sizes.quorum;
        // For every slot, the shares of both secrets by member of the committee.
        let shares: Vec<_> = fresh
            .secrets
            .iter()
            .map(|s| [shamir::split(&s.own.0, t, &committee, rng), shamir::split(&s.key.0, t, &committee, rng)])
            .collect();
        let mut duty = None;
        let mut boxes = Vec::with_capacity(committee.len());
        for (i, (to, theirs)) in committee.iter().zip(&self.committee_keys).enumerate() {
            if *to == me {
                let own = shares.iter().map(|row| [row[0][i].copy(), row[1][i].copy()]).collect();
                duty = Some(own);
                boxes.push(Vec::new());
                continue;
            }
            let mut plain = Zeroizing::new(Vec::with_capacity(64 * shares.len()));
            for row in &shares {
                plain.extend_from_slice(&Zeroizing::new(row[0][i].bytes())[..]);
                plain.extend_from_slice(&Zeroizing::new(row[1][i].bytes())[..]);
            }
            let Some((key, associated)) = slot::box_key(&fresh.seal, theirs, &self.directory, me, *to) else {
                let who = env.name_of(members[usize::from(*to)]);
                return Err(Error::peer(who, "advertised a key of small order", "SPA-11"));
            };
            boxes.push(suite::seal(&key, &associated, &plain));
        }
        let duty = duty.map(|own| Duty::new(self.graph, self.seed, fresh.deck, fresh.seal, members.len(), me, own));
        let message = Shares { commitments: fresh.commitments, boxes };
        let deck = Deck {
            id: self.directory,
            index: fresh.open.index,
            members,
            me,
            sizes,
            slots: fresh.secrets.into_iter().map(Some).collect(),
            near: self.near,
            near_keys: self.near_keys,
            committee,
            duty,
        };
        Ok((deck, message))
    }
}
