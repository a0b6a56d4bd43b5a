//! A federation whose processes die where they are told to, and everything that ever left its sites.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use chacha20::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
use veilsum_proto::{Error, message::Kind};

use crate::{
    federation::{Crash, Kit, Total, Verdict, World},
    wire::{Survivors, WORDS, parts, raw, sum, value},
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

const TWO: [(usize, u16, Kind); 2] = [(0, 6, Kind::MaskedInput), (0, 2, Kind::ConsistencyCheck)];

pub const ORDEALS: [Ordeal; 4] = [
    Ordeal { name: "nobody missing", sites: 4, slots: 5, rounds: 3, vanish: &[] },
    Ordeal { name: "a dropout", sites: 5, slots: 5, rounds: 3, vanish: &[(1, 4, Kind::MaskedInput)] },
    Ordeal { name: "two, one after the other", sites: 7, slots: 4, rounds: 2, vanish: &TWO },
    Ordeal { name: "the deck is refilled", sites: 4, slots: 2, rounds: 4, vanish: &[] },
];

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

    /// The same. Where sites come back without so many of the last entries of their journals, they have other rows, and every site's
    /// first vector of a round is lost. Where the coordinator lies, it names fewer survivors to a site that it has the shares of, and
    /// every site's first shares of a round are lost. What left that may not comes with it.
    pub fn play(&self, crashes: &[Crash], hub: &[usize], forgets: usize, lies: bool) -> (Lived, Vec<String>) {
        let mut w = World::new(Kit::new(self.sites, |t| t.slots = self.slots), 5);
        let (coordinator, session) = (w.kit.identities[0].clone(), w.session());
        let mut answered: BTreeMap<(u16, Vec<u8>), u64> = BTreeMap::new();
        w.answer = Box::new(move |site, a| {
            let again = answered.entry((site, a.query.clone())).and_modify(|n| *n += 1).or_default();
            let change = if forgets > 0 { *again } else { 0 };
            (0..a.words).map(|k| value(site, &a.query, k).wrapping_add(change)).collect()
        });
        (w.crashes, w.hub_crashes, w.forgets) = (crashes.to_vec(), hub.to_vec(), forgets);
        w.watch();
        let (vanish, round) = (self.vanish, Rc::new(Cell::new(0)));
        let (now, loses) = (round.clone(), lies || forgets > 0);
        // The round that each site is asked in, the frames that were lost, and in which rounds a site's shares are out.
        let (mut asked, mut lost, mut out) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        w.hook = Box::new(move |wire| {
            let (site, kind, p) = (wire.site, wire.kind, parts(wire.bytes));
            if wire.from_site {
                if vanish.contains(&(now.get(), site, kind)) {
                    return Verdict::Vanish;
                }
                if kind == Kind::Unmask {
                    out.insert((site, asked.get(&site).copied()));
                }
                let may_be_lost = loses && kind == if lies { Kind::Unmask } else { Kind::MaskedInput };
                return if may_be_lost && lost.insert((site, p.context)) { Verdict::Drop } else { Verdict::Pass };
            }
            if kind == Kind::Ask {
                asked.insert(site, p.context);
            }
            if lies && kind == Kind::Survivors && out.contains(&(site, Some(p.context))) {
                let mut fewer: Survivors = p.read();
                let other = fewer.alive.iter().position(|s| *s != site).expect("another site");
                fewer.alive.remove(other);
                fewer.inputs.remove(other);
                let body = veilsum_proto::codec::encode(&fewer);
                return Verdict::Replace(raw(&coordinator, &session, kind, &p.context, &body));
            }
            Verdict::Pass
        });
        let (mut totals, mut failed) = (Vec::new(), None);
        while totals.len() < self.rounds && failed.is_none() {
            round.set(totals.len());
            match w.ask(&[totals.len() as u8], WORDS) {
                Ok(total) => totals.push(total),
                Err(e) => failed = Some(e),
            }
        }
        let (broken, name, crashes, hub_crashes) = (w.broken(), self.name, w.crashes, w.hub_crashes);
        let (errors, boundaries, hub_boundaries) = (w.site_errors, w.boundaries, w.hub_boundaries);
        (Lived { name, crashes, totals, failed, errors, boundaries, hub_crashes, hub_boundaries }, broken)
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
