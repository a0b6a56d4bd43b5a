//! A site's side of the deck: AdvertiseKeys, the all-signed directory, ShareKeys (spec section 8).
//!
//! There is one struct for every state in which the site waits. A message consumes it and gives the next one, or an
//! error.

use std::sync::Arc;

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::{env::Env, pairs::Keys};
use crate::{
    codec,
    error::Error,
    journal::{Bytes, DeckRecord},
    kem::Ciphertext,
    mask::self_mask_key,
    message::{
        AcceptDirectory, AdvertiseKeys, CiphertextFor, DeliverShares, Directory, DirectoryCertificate, DirectoryEntry,
        Kind, OpenDeck, Proof, SealedFor, ShareKeys, commitments_hash, deck_id, directory_hash, encapsulates,
        message_of, seed_commitment, slot_commitments,
    },
    policy,
    rule::Rule,
    shamir::{self, Polynomial, Powers, Share},
    spread,
    standing::{Member, Standing},
    suite::{self, Hash, Purpose, Secret},
};

/// The deck's own secrets, from its opening until it is ready.
struct Secrets {
    keys: Keys,
    seeds: Vec<Share>,
    commitments: Vec<Hash>,
}

/// Keys are advertised; the directory is awaited.
pub(crate) struct ExpectDirectory {
    run: Hash,
    index: u32,
    pub(crate) id: Hash,
    own: AdvertiseKeys,
    secrets: Secrets,
}

/// A deck as its directory says.
pub(crate) struct Draft {
    run: Hash,
    pub(crate) index: u32,
    pub(crate) hash: Hash,
    threshold: usize,
    /// The members and what each of them states of its data set.
    pub(crate) members: Vec<Member>,
    /// Of each member's seeds.
    commitments: Vec<Hash>,
}

/// The directory is signed; everybody else's signatures are awaited.
pub(crate) struct ExpectCertificate {
    pub(crate) draft: Draft,
    /// Of the members. Their ML-KEM keys, which are 18 times as long, are not needed once ciphertexts are made.
    dh_keys: Vec<[u8; 32]>,
    secrets: Secrets,
    /// The ML-KEM secrets that this site sent, by receiver, ascending.
    kem_secrets: Vec<Secret>,
    /// The frame with this site's own ciphertexts, which it keeps to send it again.
    pub(crate) sent: Arc<Vec<u8>>,
}

/// A member and its X25519 key.
type DhKey<'a> = (u16, &'a [u8; 32]);

/// The ciphertext between this site and a member, and its secret where this site made it.
type Passed<'a> = (&'a Ciphertext, Option<&'a Secret>);

/// Own shares are out; the others' are awaited.
pub(crate) struct ExpectShares {
    pub(crate) draft: Draft,
    seeds: Vec<Share>,
    own_shares: Vec<Share>,
    /// Of all other members. Each in a block of its own, as the keys are.
    #[expect(clippy::vec_box, reason = "what is moved would leave its bytes where it was")]
    peers: Vec<Box<Peer>>,
}

/// What is left of an agreement until the other's box is there.
struct Peer {
    pair: Secret,
    /// Key and associated data of the box from the other.
    incoming: (Secret, Hash),
}

/// A deck from which rounds are played.
pub(crate) struct Deck {
    pub(crate) run: Hash,
    pub(crate) index: u32,
    pub(crate) hash: Hash,
    pub(crate) threshold: usize,
    pub(crate) members: Vec<u16>,
    /// The first slot that is not closed. Of those before it nothing secret is left ([RND-8]).
    first: u16,
    /// Every other member and what it shares with this site in slot `first`; the secrets of later slots follow from them, those of
    /// earlier ones do not ([MSK-1]).
    pairs: Vec<(u16, Secret)>,
    /// The secrets of each slot; `None` where the slot is closed.
    slots: Vec<Option<SlotSecrets>>,
    slot_commitments: Vec<Hash>,
}

struct SlotSecrets {
    /// This site's own self-mask seed.
    seed: Share,
    /// This site's share of every member's, in the order of the members.
    held: Vec<Share>,
}

impl ExpectDirectory {
    /// [KEX-1], [KEX-2]: fresh keys and seeds for a deck the aggregator opens.
    pub(crate) fn open(
        env: &Env,
        open: &OpenDeck,
        standing: Standing,
        rng: &mut dyn CryptoRng,
    ) -> (Self, AdvertiseKeys) {
        let id = deck_id(&env.session, open);
        let keys = Keys::generate(rng);
        let seeds: Vec<Share> = (0..open.slots).map(|_| Share(shamir::random_scalar(rng))).collect();
        let commitments: Vec<Hash> =
            (0..).zip(&seeds).map(|(r, s)| seed_commitment(&id, env.me, r, &Zeroizing::new(s.bytes()))).collect();
        let own = keys.advertise(commitments_hash(&commitments), standing);
        let secrets = Secrets { keys, seeds, commitments };
        (ExpectDirectory { run: open.run, index: open.index, id, own: own.clone(), secrets }, own)
    }

    /// [KEX-3], [KEX-5], [THR-1], [KEX-16]: checks a directory. Every entry is signed by the roster's key and has a valid ML-KEM
    /// key, this site's own entry is unchanged, no key or account occurs twice, and there are enough members.
    /// Then this site encapsulates to its part of the members ([KEX-17]).
    pub(crate) fn directory(
        self,
        env: &Env,
        directory: Directory,
        rng: &mut dyn CryptoRng,
    ) -> Result<(ExpectCertificate, AcceptDirectory), Error> {
        let n = directory.entries.len();
        let sorted = directory.entries.is_sorted_by(|a, b| a.site < b.site);
        env.demand(sorted, "sent a directory that is not sorted or names a site twice", Rule::Kex5)?;
        let threshold = policy::threshold(&env.terms, &env.floor, n, env.roster.sites.len())?;
        if usize::from(directory.threshold) != threshold {
            let what = format!("named a threshold of {}, the plan gives {threshold} for {n}", directory.threshold);
            return Err(env.aggregator(what, Rule::Thr1));
        }
        let unsigned =
            |who: String| env.aggregator(format!("showed keys for {who} that {who} did not sign"), Rule::Kex3);
        let mut members = Vec::with_capacity(n);
        for e in &directory.entries {
            let Some(key) = env.key_of(e.site) else {
                return Err(env.aggregator("put a site into the directory that is not on the roster", Rule::Kex3));
            };
            if !e.proof.covers(&e.keys) {
                return Err(unsigned(env.name_of(e.site)));
            }
            members.push(Member { site: e.site, key, standing: e.keys.standing });
        }
        let proofs: Vec<Proof> = directory.entries.iter().map(|e| e.proof).collect();
        if let Some(who) = env.unsigned(&sites(&members), &proofs, Kind::AdvertiseKeys, &self.id) {
            return Err(unsigned(who));
        }
        // Only now is it known that the member itself advertised it.
        if let Some(e) = directory.entries.iter().find(|e| !e.keys.kem_key.is_valid()) {
            return Err(Error::peer(env.name_of(e.site), "advertised an ML-KEM key that is none", Rule::Kex16));
        }
        let keys = directory.entries.iter().flat_map(|e| [&e.keys.dh_key[..], e.keys.kem_key.bytes()]);
        env.demand(all_differ(keys), "sent a directory in which one key stands twice", Rule::Kex5)?;
        let accounts = members.iter().map(Member::id);
        env.demand(all_differ(accounts), "sent a directory in which two sites have one account", Rule::Kex5)?;
        let Some(shown) = directory.entries.iter().find(|e| e.site == env.me) else {
            return Err(env.aggregator("left this site out of the directory it sent to it", Rule::Kex3));
        };
        let otherwise = "shows other keys for this site than it advertised; or another process uses this identity";
        env.demand(shown.keys == self.own, otherwise, Rule::Kex3)?;
        let hash = directory_hash(&self.id, &directory);
        // What is random is drawn first, in the members' order; then every core takes members.
        let receivers = directory.entries.iter().filter(|e| encapsulates(env.me, e.site));
        let with: Vec<(&DirectoryEntry, Box<Secret>)> = receivers.map(|e| (e, Box::new(Secret::random(rng)))).collect();
        let encapsulate = |(entry, drawn): &(&DirectoryEntry, Box<Secret>)| {
            let fault = || Error::peer(env.name_of(entry.site), "advertised an ML-KEM key that is none", Rule::Kex16);
            let (ciphertext, secret) = entry.keys.kem_key.encapsulate(drawn).ok_or_else(fault)?;
            Ok::<_, Error>((CiphertextFor { site: entry.site, ciphertext }, Box::new(secret)))
        };
        // With their full capacity from the start: growing would leave copies behind.
        let mut ciphertexts = Vec::with_capacity(with.len());
        let mut kem_secrets = Vec::with_capacity(with.len());
        for made in spread::map(&with, WORTH_A_CORE, encapsulate) {
            let (ciphertext, secret): (CiphertextFor, Box<Secret>) = made?;
            ciphertexts.push(ciphertext);
            kem_secrets.push(Secret(*secret.bytes()));
        }
        let commitments = directory.entries.iter().map(|e| e.keys.commitments).collect();
        let next = ExpectCertificate {
            draft: Draft { run: self.run, index: self.index, hash, threshold, members, commitments },
            dh_keys: directory.entries.iter().map(|e| e.keys.dh_key).collect(),
            secrets: self.secrets,
            kem_secrets,
            sent: Arc::default(),
        };
        Ok((next, AcceptDirectory { ciphertexts }))
    }
}

fn all_differ<T: Ord>(list: impl Iterator<Item = T>) -> bool {
    let mut sorted: Vec<T> = list.collect();
    sorted.sort_unstable();
    sorted.is_sorted_by(|a, b| a < b)
}

fn sites(members: &[Member]) -> Vec<u16> {
    members.iter().map(|member| member.site).collect()
}

impl ExpectCertificate {
    /// [KEX-7]: nothing starts before all n signatures on exactly this directory are here. Then the other half's ciphertexts are
    /// opened ([KEX-7], [KEX-8]) and the shares are sealed ([SHR-1] to [SHR-3]).
    pub(crate) fn certificate(
        self,
        env: &Env,
        certificate: &DirectoryCertificate,
        rng: &mut dyn CryptoRng,
    ) -> Result<(ExpectShares, ShareKeys), Error> {
        let Draft { hash, threshold, ref members, .. } = self.draft;
        let whole = certificate.proofs.len() == members.len();
        env.demand(whole, "sent a directory certificate of the wrong length", Rule::Kex7)?;
        if let Some(who) = env.unsigned(&sites(members), &certificate.proofs, Kind::AcceptDirectory, &hash) {
            let what =
                format!("has no signature of {who} on the directory it showed this site: it may show others another");
            return Err(env.aggregator(what, Rule::Kex7));
        }
        let senders = members.iter().map(|m| m.site).filter(|from| encapsulates(*from, env.me));
        let otherwise = "did not send exactly one ciphertext from every member that has to send this site one";
        env.demand(certificate.ciphertexts.iter().map(|c| c.site).eq(senders), otherwise, Rule::Kex7)?;
        let own: AcceptDirectory =
            codec::decode("AcceptDirectory", message_of(&self.sent), Kind::AcceptDirectory.body_limit())?;
        // Every other member with what passed between it and this site: the ciphertext, and where this site made it the secret.
        let mut sent = own.ciphertexts.iter().zip(&self.kem_secrets);
        let mut received = certificate.ciphertexts.iter();
        let mut with: Vec<(DhKey<'_>, Passed<'_>)> = Vec::with_capacity(members.len());
        for (member, dh_key) in members.iter().zip(&self.dh_keys).filter(|(member, _)| member.site != env.me) {
            let passed = if encapsulates(env.me, member.site) {
                sent.next().map(|(c, secret)| (&c.ciphertext, Some(secret)))
            } else {
                received.next().map(|c| (&c.ciphertext, None))
            };
            let passed = passed.ok_or(Error::ApiMisuse("a member with which no ciphertext passed"))?;
            with.push(((member.site, dh_key), passed));
        }
        let secrets = self.secrets;
        // One polynomial a slot.
        let polynomials: Vec<Polynomial> =
            secrets.seeds.iter().map(|s| Polynomial::through(&s.0, threshold, rng)).collect();
        let shares_of = |site: u16| {
            let powers = Powers::of(site, threshold);
            polynomials.iter().map(move |polynomial| powers.share(polynomial))
        };
        let decapsulator = secrets.keys.decapsulator();
        let deal = |(other, (ciphertext, made)): &(DhKey<'_>, Passed<'_>)| {
            let site = other.0;
            let opened;
            let kem_secret = match made {
                Some(secret) => secret,
                None => {
                    opened = decapsulator.decapsulate(ciphertext);
                    &opened
                }
            };
            let agreed = secrets.keys.agree(env, &hash, *other, (ciphertext, kem_secret))?;
            let mut plain = Zeroizing::new(Vec::with_capacity(32 * polynomials.len()));
            shares_of(site).for_each(|share| plain.extend_from_slice(&Zeroizing::new(share.bytes())[..]));
            let (key, associated) = agreed.of_box(env.me, site);
            let sealed = SealedFor { site, sealed: suite::seal(&key, &associated, &plain) };
            let peer = Peer { pair: agreed.pair(env.me, site), incoming: agreed.of_box(site, env.me) };
            Ok::<_, Error>((Box::new(peer), sealed))
        };
        let own_shares = shares_of(env.me).collect();
        let mut boxes = Vec::with_capacity(members.len());
        let mut peers = Vec::with_capacity(members.len());
        for dealt in spread::map(&with, WORTH_A_CORE, deal) {
            let (peer, sealed): (Box<Peer>, SealedFor) = dealt?;
            boxes.push(sealed);
            peers.push(peer);
        }
        let next = ExpectShares { draft: self.draft, seeds: secrets.seeds, own_shares, peers };
        // Both private keys are wiped here.
        Ok((next, ShareKeys { commitments: secrets.commitments, boxes }))
    }
}

/// Fewer members than this are not worth another core: each costs a tenth of a millisecond.
const WORTH_A_CORE: usize = 2;

/// Fewer boxes than this are not worth another core: each costs some microseconds.
const WORTH_OPENING: usize = 40;

/// Fewer derivations of secrets than this are not worth another core: each costs half a microsecond.
pub(crate) const DERIVED: usize = 150;

/// A delivery that cannot be used, and whose box it was.
pub(crate) struct BadDelivery {
    pub(crate) against: u16,
    pub(crate) error: Error,
}

impl ExpectShares {
    /// [SHR-4], [SHR-8]: one box from every other member, each opens, each holds canonical shares for every
    /// slot; and everybody's commitments are those that were signed.
    pub(crate) fn shares(self, env: &Env, delivery: &DeliverShares) -> Result<Deck, BadDelivery> {
        let fault = |against, error| BadDelivery { against, error };
        let members = sites(&self.draft.members);
        let others = members.iter().copied().filter(|m| *m != env.me);
        let whole = delivery.boxes.iter().map(|b| b.site).eq(others);
        env.demand(whole, "did not deliver exactly one box from every other member", Rule::Shr8)
            .map_err(|error| fault(env.me, error))?;
        let slots = self.seeds.len();
        let slot_commitments =
            self.slot_commitments(env, &delivery.commitments).map_err(|error| fault(env.me, error))?;
        // With their full capacity from the start: growing would leave copies behind.
        let mut held: Vec<Vec<Share>> = (0..slots).map(|_| Vec::with_capacity(members.len())).collect();
        let mut pairs = Vec::with_capacity(members.len());
        let sites = members.iter().filter(|m| **m != env.me);
        pairs.extend(sites.zip(&self.peers).map(|(site, peer)| (*site, Secret(*peer.pair.bytes()))));
        // One box from every peer, in the same order.
        let theirs: Vec<_> = self.peers.iter().map(|peer| &**peer).zip(&delivery.boxes).collect();
        let open = |(peer, sealed): &(&Peer, &SealedFor)| -> Result<Vec<Share>, BadDelivery> {
            let who = sealed.site;
            let bad = |why: &str| {
                let what = format!("sent this site a box of shares that {why}");
                fault(who, Error::peer(env.name_of(who), what, Rule::Shr4))
            };
            let (key, associated) = &peer.incoming;
            let plain = suite::open(key, associated, &sealed.sealed)
                .map_err(|_| bad("does not open, unless it was changed on the way"))?;
            let (chunks, rest) = plain.as_chunks::<32>();
            if chunks.len() != slots || !rest.is_empty() {
                return Err(bad("holds the wrong number of shares"));
            }
            Share::all(chunks.iter()).ok_or_else(|| bad("holds something that is not a share"))
        };
        let mut rows = Vec::with_capacity(members.len());
        for opened in spread::map(&theirs, WORTH_OPENING, open) {
            rows.push(opened?);
        }
        rows.insert(members.partition_point(|m| *m < env.me), self.own_shares);
        for row in &rows {
            held.iter_mut().zip(row).for_each(|(held, share)| held.push(share.copy()));
        }
        let Draft { run, index, hash, threshold, .. } = self.draft;
        let slots = self.seeds.iter().zip(held).map(|(s, held)| Some(SlotSecrets { seed: s.copy(), held })).collect();
        Ok(Deck { run, index, hash, threshold, members, first: 0, pairs, slots, slot_commitments })
    }

    /// [SHR-8]: the digests to keep of everybody's commitments, one a slot. A list that is not its owner's is the
    /// aggregator's doing: it had to put that member out ([SHR-3]).
    fn slot_commitments(&self, env: &Env, lists: &[Vec<Hash>]) -> Result<Vec<Hash>, Error> {
        let Draft { members, commitments, .. } = &self.draft;
        let whole = lists.len() == members.len();
        env.demand(whole, "did not deliver exactly one list of commitments of every member", Rule::Shr8)?;
        let slots = self.seeds.len();
        for ((member, signed), list) in members.iter().zip(commitments).zip(lists) {
            if list.len() != slots || commitments_hash(list) != *signed {
                let what = format!("delivered other commitments of {} than it advertised", env.name_of(member.site));
                return Err(env.aggregator(what, Rule::Shr8));
            }
        }
        Ok(slot_commitments(lists))
    }
}

impl Deck {
    /// Whether the deck has this slot and it is not closed.
    pub(crate) fn holds(&self, slot: u16) -> bool {
        self.open(slot).is_some()
    }

    /// What the aggregator opened this deck with.
    pub(crate) fn opened_by(&self) -> OpenDeck {
        OpenDeck { run: self.run, index: self.index, slots: self.slots.len() as u16 }
    }

    /// [RND-8]: wipes everything that belongs to slots before `slot` and to no later one. This cannot be undone
    /// (`crates/proto/tests/forward_secrecy.rs`).
    pub(crate) fn close_before(&mut self, slot: u16) {
        for closed in self.first..slot.min(self.slots.len() as u16) {
            // In place: a value that is moved out leaves its bytes behind.
            self.slots[usize::from(closed)] = None;
            let next = next_slots();
            spread::each(&mut self.pairs, DERIVED, |(_, secret)| *secret = next.expand(secret));
            self.first = closed + 1;
        }
    }

    fn open(&self, slot: u16) -> Option<&SlotSecrets> {
        self.slots.get(usize::from(slot))?.as_ref()
    }

    /// None where the slot is not the current one.
    pub(crate) fn pair(&self, member: u16, slot: u16) -> Option<&Secret> {
        let at = self.pairs.binary_search_by_key(&member, |(other, _)| *other).ok().filter(|_| slot == self.first)?;
        self.pairs.get(at).map(|(_, secret)| secret)
    }

    /// [MSK-1]: the seed this site shares with `other` in the round `context` of this slot, and no other round.
    pub(crate) fn round_seed(&self, other: u16, slot: u16, context: &Hash) -> Option<Secret> {
        self.pair(other, slot).map(|pair| round_seeds(context).expand(pair))
    }

    /// This site's own self-mask key for a slot, bound to the round.
    pub(crate) fn self_mask(&self, slot: u16, context: &Hash) -> Option<Secret> {
        self.open(slot).map(|s| self_mask_key(&s.seed.0, context))
    }

    /// This site's share of `owner`'s self-mask seed.
    pub(crate) fn share_of(&self, owner: u16, slot: u16) -> Option<&Share> {
        self.open(slot)?.held.get(self.members.binary_search(&owner).ok()?)
    }

    /// [SHR-8]: what all members' commitments for this slot hash to.
    pub(crate) fn slot_commitments(&self, slot: u16) -> Option<Hash> {
        self.slot_commitments.get(usize::from(slot)).copied()
    }

    /// Everything that a new process needs, without anything of closed slots.
    pub(crate) fn to_record(&self, session: Hash) -> DeckRecord {
        let open = || self.slots.iter().flatten();
        // With its full capacity from the start: growing would leave copies behind.
        let mut seeds = Vec::with_capacity(self.slots.len());
        seeds.extend(open().map(|s| Bytes(s.seed.bytes())));
        DeckRecord {
            session,
            run: self.run,
            index: self.index,
            directory: self.hash,
            threshold: self.threshold as u16,
            members: self.members.clone(),
            first: self.first,
            pairs: self.pairs.iter().map(|(other, p)| (*other, Bytes(*p.bytes()))).collect(),
            seeds,
            held: open().map(|s| s.held.iter().map(|s| Bytes(s.bytes())).collect()).collect(),
            slot_commitments: self.slot_commitments.clone(),
        }
    }

    pub(crate) fn from_record(r: DeckRecord) -> Option<Deck> {
        let shares = |row: &Vec<Bytes>| Share::all(row.iter().map(|b| &b.0));
        let (n, first) = (r.members.len(), usize::from(r.first));
        let others = |(other, _): &(u16, Bytes)| r.members.binary_search(other).is_ok();
        let whole = r.pairs.len() + 1 == n
            && r.pairs.iter().all(others)
            && r.pairs.is_sorted_by(|a, b| a.0 < b.0)
            && r.held.len() == r.seeds.len()
            && r.held.iter().all(|h| h.len() == n)
            && r.slot_commitments.len() == first + r.seeds.len();
        let open = r
            .seeds
            .iter()
            .zip(&r.held)
            .map(|(seed, held)| Some(Some(SlotSecrets { seed: Share::from_bytes(&seed.0)?, held: shares(held)? })));
        // With its full capacity from the start, as everywhere.
        let mut slots = Vec::with_capacity(first + r.seeds.len());
        slots.extend((0..first).map(|_| None));
        for slot in open {
            slots.push(slot?);
        }
        let pairs = r.pairs.iter().map(|(other, b)| (*other, Secret(b.0))).collect();
        let DeckRecord { run, index, directory: hash, members, first, slot_commitments, .. } = r;
        let threshold = usize::from(r.threshold);
        whole.then_some(Deck { run, index, hash, threshold, members, first, pairs, slots, slot_commitments })
    }
}

/// [MSK-1]: what the next slot's pair secrets are derived for, from this slot's. The derivation is one-way.
pub(crate) fn next_slots() -> Purpose {
    Purpose::new("next slot", &[])
}

/// [MSK-1]: what the seeds of the round `context` are derived for, from the pair secrets of its slot.
pub(crate) fn round_seeds(context: &Hash) -> Purpose {
    Purpose::new("round seed", &[&context.0])
}
