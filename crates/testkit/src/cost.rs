//! What a round costs each party without a network: the federation in memory, with every step of every party timed.

use std::time::Duration;

use veilsum_proto::aggregator::Event;

use crate::prelude::*;

/// What one round cost.
#[derive(Clone, Default)]
pub struct Cost {
    /// Time of all sites together, by step.
    pub sites: BTreeMap<&'static str, Duration>,
    /// Time of the aggregator, by step.
    pub aggregator: BTreeMap<&'static str, Duration>,
    /// Bytes that all sites sent.
    pub sent: u64,
    /// Bytes that all sites received.
    pub received: u64,
    /// Messages that all sites sent.
    pub messages: u64,
    /// Sites in the total.
    pub alive: usize,
}

impl Cost {
    /// The aggregator's time.
    pub fn aggregator_total(&self) -> Duration {
        self.aggregator.values().sum()
    }

    /// All sites' time.
    pub fn sites_total(&self) -> Duration {
        self.sites.values().sum()
    }
}

/// A federation whose rounds are timed. Every site is a block by itself: costs do not depend on blocks, and any site may be
/// missing.
pub struct Timed {
    world: World,
    asked: u8,
    deck: Cost,
}

impl Timed {
    /// `n` sites with a finished deck of `slots` slots.
    pub fn new(n: usize, slots: u16) -> Timed {
        Timed::by(None, n, slots)
    }

    /// The same by another clock than that on the wall.
    pub fn by(clock: Option<fn() -> Duration>, n: usize, slots: u16) -> Timed {
        let mut world = World::new(Kit::new(n, |terms| terms.slots = slots), 1);
        world.clock = clock.unwrap_or(world.clock);
        world.keeps = false;
        world.answer = Box::new(|_, asked| (0..asked.words as u64).collect());
        world.together = true;
        world.until(|e| matches!(e, Event::DeckReady { .. })).expect("a deck");
        let deck = cost(&world, n);
        Timed { world, asked: 0, deck }
    }

    /// What the deck cost, by the message that was worked on.
    pub fn deck(&self) -> &Cost {
        &self.deck
    }

    /// One round over vectors of `words` words; the `absent` sites vanish when the question comes.
    pub fn round(&mut self, words: usize, absent: impl IntoIterator<Item = u16>) -> Cost {
        self.lossy(words, absent, [], false).expect("a total")
    }

    /// As [`Timed::round`], and more sites vanish once their masked inputs have arrived; no question follows the `last` one.
    ///
    /// # Errors
    /// Where too few sites are left.
    pub fn lossy(
        &mut self,
        words: usize,
        absent: impl IntoIterator<Item = u16>,
        leaving: impl IntoIterator<Item = u16>,
        last: bool,
    ) -> Result<Cost, Error> {
        let w = &mut self.world;
        let [absent, leaving] = [absent.into_iter().collect::<Vec<u16>>(), leaving.into_iter().collect()];
        w.hook = Box::new(move |wire| {
            let goes = if wire.kind == Kind::Ask { &absent } else { &leaving };
            if !wire.from_site && goes.contains(&wire.site) { Verdict::Vanish } else { Verdict::Pass }
        });
        (w.sites_took, w.hub_took, w.received) = (Took::new(), Took::new(), 0);
        w.sent_by_sites.clear();
        // As long as the centres of a round, and never twice the same.
        self.asked += 1;
        let (total, cohort, _) = w.ask(&vec![self.asked; 8 * words], words)?;
        let n = cohort.len() as u64;
        assert!(total.iter().zip(0u64..).all(|(t, v)| *t == v.wrapping_mul(n)), "a wrong total");
        if last {
            w.close();
        }
        Ok(cost(w, cohort.len()))
    }
}

fn cost(world: &World, alive: usize) -> Cost {
    Cost {
        sites: by_step(&world.sites_took, "ask", "mask and sign"),
        aggregator: by_step(&world.hub_took, "ask", "masked input"),
        sent: world.sent_by_sites.iter().map(|sent| sent.2 as u64).sum(),
        received: world.received,
        messages: world.sent_by_sites.len() as u64,
        alive,
    }
}

fn by_step(took: &Took, ask: &'static str, input: &'static str) -> BTreeMap<&'static str, Duration> {
    let mut steps = BTreeMap::new();
    for (kind, time) in took {
        let step = match kind {
            None | Some(Kind::Ask) => ask,
            Some(Kind::MaskedInput) => input,
            Some(Kind::Survivors) => "survivors",
            Some(Kind::ConsistencyCheck) => "consistency check",
            Some(Kind::Certificate) => "certificate",
            Some(Kind::Unmask) => "unmask",
            Some(Kind::Opening) => "opening",
            Some(Kind::OpenDeck | Kind::AdvertiseKeys) => "keys",
            Some(Kind::Directory | Kind::AcceptDirectory) => "directory",
            Some(Kind::DirectoryCertificate | Kind::ShareKeys) => "shares",
            Some(Kind::DeliverShares | Kind::ShareAck) => "delivery",
            Some(_) => "other",
        };
        *steps.entry(step).or_default() += *time;
    }
    steps
}
