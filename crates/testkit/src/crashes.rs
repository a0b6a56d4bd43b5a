//! A federation whose processes die where they are told to, and everything that ever left its sites.

use veilsum_proto::message::context_of;

use crate::prelude::*;

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
        let (lived, broken) = self.play(crashes, hub, 0);
        assert!(broken.is_empty(), "{broken:?}: {lived:?}");
        lived.exact();
        lived
    }

    /// The same. Where sites come back without so many of the last entries of their journals, they have other rows, and every site's
    /// first vector of a round is lost. What left that may not comes with it.
    pub fn play(&self, crashes: &[Crash], hub: &[usize], forgets: usize) -> (Lived, Vec<String>) {
        let mut w = World::new(Kit::new(self.sites, |t| t.slots = self.slots), 5);
        let mut answered: BTreeMap<(u16, Vec<u8>), u64> = BTreeMap::new();
        w.answer = Box::new(move |site, a| {
            let again = answered.entry((site, a.query.clone())).and_modify(|n| *n += 1).or_default();
            let change = if forgets > 0 { *again } else { 0 };
            (0..a.words).map(|k| value(site, &a.query, k).wrapping_add(change)).collect()
        });
        (w.crashes, w.hub_crashes, w.forgets) = (crashes.to_vec(), hub.to_vec(), forgets);
        w.watch();
        let (vanish, round) = (self.vanish, Rc::new(Cell::new(0)));
        let (now, mut lost) = (round.clone(), BTreeSet::new());
        w.hook = Box::new(move |wire| {
            if !wire.from_site {
                return Verdict::Pass;
            }
            if vanish.contains(&(now.get(), wire.site, wire.kind)) {
                return Verdict::Vanish;
            }
            let may_be_lost = forgets > 0 && wire.kind == Kind::MaskedInput;
            if may_be_lost && lost.insert((wire.site, context_of(wire.bytes))) { Verdict::Drop } else { Verdict::Pass }
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

/// `VEILSUM_CRASHES=all`: every boundary.
pub fn all() -> bool {
    std::env::var("VEILSUM_CRASHES").is_ok_and(|v| v == "all")
}
