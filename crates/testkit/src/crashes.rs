//! A federation whose processes die where they are told to, and everything that ever left its sites.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use chacha20::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
use veilsum_proto::{Error, message::Kind, suite::Hash};

use crate::{
    federation::{Crash, Kit, Total, Verdict, Wire, World},
    wire::{Ask, Check, Survivors, WORDS, parts, raw, sum, survivors_context, value},
};

/// A federation and what befalls it besides.
pub struct Ordeal {
    pub name: &'static str,
    pub sites: usize,
    pub slots: u16,
    pub rounds: usize,
    /// (round, site, kind): the site vanishes for good when it would send this in that round.
    pub vanish: &'static [(usize, u16, Kind)],
}

pub const ORDEALS: [Ordeal; 4] = [
    Ordeal { name: "nobody missing", sites: 4, slots: 5, rounds: 3, vanish: &[] },
    Ordeal { name: "a dropout", sites: 5, slots: 5, rounds: 3, vanish: &[(1, 4, Kind::MaskedInput)] },
    Ordeal {
        name: "two dropouts, one after the other",
        sites: 7,
        slots: 4,
        rounds: 2,
        vanish: &[(0, 6, Kind::MaskedInput), (0, 2, Kind::ConsistencyCheck)],
    },
    Ordeal { name: "the deck is refilled", sites: 4, slots: 2, rounds: 4, vanish: &[] },
];

/// What a coordinator could learn from all that ever left the sites.
#[derive(Default)]
pub struct Seen {
    /// Context: deck, slot, cohort.
    asks: BTreeMap<Hash, (u32, u16, Vec<u16>)>,
    /// (site, deck, slot): the masked vector's frame.
    masked: BTreeMap<(u16, u32, u16), Vec<u8>>,
    /// (context of survivors and inputs, site): the round and the survivors for whom it may be told that shares are due.
    told: BTreeMap<(Hash, u16), (Hash, Vec<u16>)>,
    /// (context, giver): about whom its seeds are out.
    seeds: BTreeMap<(Hash, u16), BTreeSet<u16>>,
    /// (context, giver): about whom its shares are out.
    shares: BTreeMap<(Hash, u16), BTreeSet<u16>>,
    /// What may never happen and did.
    pub broken: Vec<String>,
}

impl Seen {
    /// Takes in a frame. True for a site's first vector in a slot, and for its first shares.
    pub fn see(&mut self, wire: &Wire<'_>) -> bool {
        if wire.from_site {
            return self.sent(wire);
        }
        self.delivered(wire);
        false
    }

    fn delivered(&mut self, wire: &Wire<'_>) {
        let p = parts(wire.bytes);
        match wire.kind {
            Kind::Ask => {
                let ask: Ask = p.read();
                self.asks.insert(p.context, (ask.deck, ask.slot, ask.cohort));
            }
            Kind::Survivors => {
                let shown: Survivors = p.read();
                let inputs: Vec<Hash> = shown.inputs.iter().map(|proof| proof.rest).collect();
                let agreed = survivors_context(&p.context, &shown.alive, &inputs);
                self.told.insert((agreed, wire.site), (p.context, shown.alive));
            }
            _ => {}
        }
    }

    fn sent(&mut self, wire: &Wire<'_>) -> bool {
        let (p, u) = (parts(wire.bytes), wire.site);
        match wire.kind {
            Kind::MaskedInput => {
                let (deck, slot, _) = self.asks[&p.context];
                match self.masked.insert((u, deck, slot), wire.bytes.to_vec()) {
                    None => return true,
                    Some(first) if first != wire.bytes => {
                        self.broken.push(format!("site {u} masked two vectors in slot {slot} of deck {deck}"));
                    }
                    Some(_) => {}
                }
            }
            Kind::ConsistencyCheck => {
                let (round, seeds): Check = p.read();
                let about = self.seeds.entry((round, u)).or_default();
                about.extend(seeds.iter().map(|(w, _)| *w));
                self.both(round, u);
            }
            Kind::Unmask => {
                let (round, alive) = self.told.get(&(p.context, u)).cloned().unwrap_or_default();
                if p.read::<Vec<[u8; 32]>>().len() != alive.len() {
                    self.broken.push(format!("site {u} gives other shares than it was asked for"));
                }
                let first = !self.shares.contains_key(&(round, u));
                self.shares.entry((round, u)).or_default().extend(alive);
                self.both(round, u);
                return first;
            }
            _ => {}
        }
        false
    }

    fn both(&mut self, round: Hash, u: u16) {
        let none = BTreeSet::new();
        let (seeds, shares) =
            (self.seeds.get(&(round, u)).unwrap_or(&none), self.shares.get(&(round, u)).unwrap_or(&none));
        if let Some(w) = seeds.intersection(shares).next() {
            self.broken.push(format!("site {u} gave seed and share of site {w} away in one round"));
        }
    }
}

/// How a federation went.
#[derive(Debug)]
pub struct Lived {
    pub name: &'static str,
    pub crashes: Vec<Crash>,
    pub totals: Vec<Total>,
    pub failed: Option<Error>,
    pub errors: Vec<(u16, Error)>,
    pub boundaries: Vec<usize>,
    pub hub_crashes: Vec<usize>,
    pub hub_boundaries: usize,
}

impl Lived {
    /// As a run without a crash.
    pub fn fits(&self, calm: &Lived) {
        assert_eq!((&self.failed, &self.totals), (&None, &calm.totals), "{self:?}");
    }

    /// To its end, or given up because too few sites were left.
    pub fn ended_well(&self) {
        assert!(matches!(self.failed, None | Some(Error::Quorum { .. })), "{self:?}");
    }

    /// Every total is that of the sites it names.
    pub fn exact(&self) {
        for (r, (values, cohort, _)) in self.totals.iter().enumerate() {
            assert_eq!(*values, sum(cohort, &[r as u8]), "a wrong total: {self:?}");
        }
    }
}

impl Ordeal {
    /// Whether a site more than those that vanish may be missing.
    pub fn may_lose_one(&self) -> bool {
        self.sites - self.vanish.len() > 2 * self.sites / 3 + 1
    }

    /// A run with these crashes. Panics where anything left that may not.
    pub fn live(&self, crashes: &[Crash]) -> Lived {
        self.live_with_hub(crashes, &[])
    }

    /// A run in which the aggregator's process dies, too.
    pub fn live_with_hub(&self, crashes: &[Crash], hub: &[usize]) -> Lived {
        let (lived, broken) = self.play(crashes, hub, 0, false);
        assert!(broken.is_empty(), "{broken:?}: {lived:?}");
        lived.exact();
        lived
    }

    /// The same with sites that come back without the last entries of their journals, and with other rows, over a network
    /// that loses every site's first vector of a round. What left that may not comes with it.
    pub fn live_forgetful(&self, crashes: &[Crash], forgets: usize) -> (Lived, Vec<String>) {
        self.play(crashes, &[], forgets, false)
    }

    /// With a coordinator that names fewer survivors to a site that it has the shares of, over a network that loses every
    /// site's first shares of a round.
    pub fn live_with_a_liar(&self, crashes: &[Crash]) -> (Lived, Vec<String>) {
        self.play(crashes, &[], 0, true)
    }

    fn play(&self, crashes: &[Crash], hub: &[usize], forgets: usize, lies: bool) -> (Lived, Vec<String>) {
        let mut w = World::new(Kit::new(self.sites, |t| t.slots = self.slots), 5);
        let (coordinator, session) = (w.kit.identities[0].clone(), w.session());
        let mut asked: BTreeMap<(u16, Vec<u8>), u64> = BTreeMap::new();
        w.answer = Box::new(move |site, a| {
            let again = asked.entry((site, a.query.clone())).and_modify(|n| *n += 1).or_default();
            let change = if forgets > 0 { *again } else { 0 };
            (0..a.words).map(|k| value(site, &a.query, k).wrapping_add(change)).collect()
        });
        (w.crashes, w.hub_crashes) = (crashes.to_vec(), hub.to_vec());
        w.forgets = forgets;
        let seen = Rc::new(RefCell::new(Seen::default()));
        let (log, vanish) = (seen.clone(), self.vanish);
        let round = Rc::new(RefCell::new(0));
        let now = round.clone();
        w.hook = Box::new(move |wire| {
            if vanish.contains(&(*now.borrow(), wire.site, wire.kind)) && wire.from_site {
                return Verdict::Vanish;
            }
            let mut seen = log.borrow_mut();
            if wire.from_site {
                let lost = if lies { Kind::Unmask } else { Kind::MaskedInput };
                return if seen.see(wire) && wire.kind == lost && (lies || forgets > 0) {
                    Verdict::Drop
                } else {
                    Verdict::Pass
                };
            }
            let p = parts(wire.bytes);
            if lies && wire.kind == Kind::Survivors && seen.shares.contains_key(&(p.context, wire.site)) {
                let mut fewer: Survivors = p.read();
                let other = fewer.alive.iter().position(|s| *s != wire.site).expect("another site");
                fewer.alive.remove(other);
                fewer.inputs.remove(other);
                let body = veilsum_proto::codec::encode(&fewer);
                return Verdict::Replace(raw(&coordinator, &session, wire.kind, &p.context, &body));
            }
            seen.see(wire);
            Verdict::Pass
        });
        let mut lived = Lived {
            name: self.name,
            crashes: crashes.to_vec(),
            totals: Vec::new(),
            failed: None,
            errors: Vec::new(),
            boundaries: Vec::new(),
            hub_crashes: hub.to_vec(),
            hub_boundaries: 0,
        };
        for r in 0..self.rounds {
            *round.borrow_mut() = r;
            match w.ask(&[r as u8], WORDS) {
                Ok(total) => lived.totals.push(total),
                Err(e) => {
                    lived.failed = Some(e);
                    break;
                }
            }
        }
        (lived.errors, lived.boundaries, lived.hub_boundaries) = (w.site_errors, w.boundaries, w.hub_boundaries);
        let broken = std::mem::take(&mut seen.borrow_mut().broken);
        (lived, broken)
    }
}

/// `VEILSUM_CRASHES=all`: every boundary, and many pairs.
pub fn all() -> bool {
    std::env::var("VEILSUM_CRASHES").is_ok_and(|v| v == "all")
}

/// Plays pairs of crashes in every ordeal: what `play` does with a ordeal, its run without a crash, and numbers below a bound
/// drawn from `VEILSUM_SEED`, which is printed.
pub fn pairs(mut play: impl FnMut(&Ordeal, &Lived, &mut dyn FnMut(usize) -> usize)) {
    let seed = std::env::var("VEILSUM_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    println!("VEILSUM_SEED={seed}");
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut below = |n: usize| rng.next_u32() as usize % n;
    for ordeal in &ORDEALS {
        let calm = ordeal.live(&[]);
        for _ in 0..if all() { 1_000 } else { 12 } {
            play(ordeal, &calm, &mut below);
        }
    }
}
