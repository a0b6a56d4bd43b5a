//! An honest run written down, party by party, so that a site or the aggregator can be brought into any state of it
//! again and then be told something else.

use veilsum_proto::aggregator::Event;

use crate::prelude::*;
pub use crate::{
    federation::{Heard, Told, rng_of},
    secrets::Ledger,
};

/// Kinds that an aggregator sends to a site.
pub const OF_HUB: [Kind; 8] = {
    use Kind::*;
    [OpenDeck, Directory, DirectoryCertificate, DeliverShares, Ask, Survivors, Certificate, Opening]
};

/// Kinds that a site sends.
pub const OF_SITES: [Kind; 9] = [
    Kind::AdvertiseKeys,
    Kind::AcceptDirectory,
    Kind::ShareKeys,
    Kind::ShareAck,
    Kind::ShareComplaint,
    Kind::MaskedInput,
    Kind::ConsistencyCheck,
    Kind::Unmask,
    Kind::Refusal,
];

/// The application's own kinds: neither state machine takes them.
pub fn of_the_application(kind: Kind) -> bool {
    kind as u16 >= Kind::Hello as u16
}

/// The question to which everybody answers.
pub const ALL: &[u8] = b"all";
/// The question to which the last site never answers.
pub const DROP: &[u8] = b"drop";
/// The question that the last site but one refuses.
pub const REFUSE: &[u8] = b"refuse";

/// An honest run.
pub struct Course {
    pub kit: Kit,
    pub session: Hash,
    pub seed: u64,
    pub told: Vec<Vec<Told>>,
    pub heard: Vec<(u64, Heard)>,
    pub totals: Vec<(Vec<u64>, Vec<u16>)>,
}

/// What the application of a site does with a question.
fn manner(sites: u16, me: u16, asked: &Asked) -> Reply {
    match &asked.query[..] {
        REFUSE if me + 2 == sites => Reply::Refuse(Rule::Pol2),
        DROP if me + 1 == sites => Reply::Silence,
        _ => Reply::Answer,
    }
}

/// What a site's application says to a question that it does not pass over.
pub fn answer(kit: &Kit, me: u16, asked: &Asked) -> site::Input<'static> {
    if let Reply::Refuse(rule) = manner(kit.roster.sites.len() as u16, me, asked) {
        return site::Input::Refuse { context: asked.context, rule };
    }
    let consent = kit.consents(asked).unwrap();
    // Values of so long a vector are not worth their time.
    let value = |k| if asked.words > 1_000 { k as u64 } else { value(me, &asked.query, k) };
    site::Input::Contribute { consent, values: (0..asked.words).map(value).collect() }
}

impl Course {
    /// Plays `questions` with `n` sites and decks of `slots`.
    pub fn new(n: usize, slots: u16, seed: u64, questions: &[&[u8]]) -> Course {
        let mut world = World::noted(n, seed, |t| t.slots = slots);
        world.manner = Box::new(move |me, asked| manner(n as u16, me, asked));
        world.until(|e| matches!(e, Event::DeckReady { .. })).expect("a deck");
        let mut totals = Vec::new();
        for question in questions {
            let (values, cohort) = world.total(question).expect("an honest run");
            assert_eq!(values, sum(&cohort, question), "an honest total");
            totals.push((values, cohort));
        }
        assert!(world.site_errors.is_empty(), "{:?}", world.site_errors);
        let notes = world.notes.take().expect("it is written down");
        Course { session: world.session(), kit: world.kit, seed, told: notes.told, heard: notes.heard, totals }
    }

    pub fn identity(&self, site: u16) -> &Identity {
        &self.kit.identities[usize::from(site) + 2]
    }

    /// A frame that `site` signed.
    pub fn sign_as(&self, site: u16, kind: Kind, context: &Hash, rest: &[u8]) -> Vec<u8> {
        raw(self.identity(site), &self.session, kind, context, rest)
    }

    /// A frame that the coordinator signed.
    pub fn sign(&self, kind: Kind, context: &Hash, rest: &[u8]) -> Vec<u8> {
        raw(&self.kit.identities[0], &self.session, kind, context, rest)
    }

    /// The frames that a site was sent, with their places in its course.
    pub fn frames_to(&self, site: u16) -> Vec<(usize, &[u8])> {
        let told = self.told[usize::from(site)].iter().enumerate();
        told.filter_map(|(i, t)| if let Told::Frame(b) = t { Some((i, &b[..])) } else { None }).collect()
    }

    /// The frames that the aggregator got, with their places.
    pub fn frames_from(&self, wanted: impl Fn(u16) -> bool) -> Vec<(usize, u16, &[u8])> {
        let frames = self.heard.iter().enumerate().filter_map(|(i, (_, heard))| match heard {
            Heard::Frame(from, bytes) => Some((i, *from, &bytes[..])),
            _ => None,
        });
        frames.filter(|(_, from, _)| wanted(*from)).collect()
    }

    /// The aggregator after the first `steps` things it heard, with its events so far.
    pub fn aggregator_at(&self, steps: usize) -> Aggregator {
        let mut hub = Aggregator::new(self.kit.coordinator(), Millis(0), &mut rng_of(self.seed, HUB)).unwrap();
        for (now, heard) in &self.heard[..steps] {
            hear(&mut hub, heard, *now);
            while hub.poll().is_some() {}
        }
        hub
    }
}

pub fn kind(bytes: &[u8]) -> Kind {
    veilsum_proto::message::kind_of(bytes).expect("a whole frame")
}

/// Tells the aggregator one thing.
pub fn hear(hub: &mut Aggregator, heard: &Heard, now: u64) {
    let frame;
    let input = match heard {
        Heard::Attached(s) => aggregator::Input::Attached(*s),
        Heard::Frame(from, bytes) => {
            frame = [(*from, &bytes[..])];
            aggregator::Input::Messages(&frame)
        }
        Heard::Ask(query) => aggregator::Input::Ask { query: query.clone(), words: WORDS },
        Heard::Tick => aggregator::Input::Tick,
    };
    hub.handle(input, Millis(now));
}

/// The events of an aggregator since the last look.
pub fn events(hub: &mut Aggregator) -> Vec<Event> {
    std::iter::from_fn(|| hub.poll())
        .filter_map(|o| if let aggregator::Output::Event(e) = o { Some(e) } else { None })
        .collect()
}

/// One site that is told things, with all that leaves it in the ledger.
pub struct Victim<'a> {
    pub course: &'a Course,
    pub me: u16,
    pub ledger: Ledger,
    /// What left with the last input.
    pub left: Vec<Parts>,
    pub journal: Vec<Record>,
    site: Site,
    rng: ChaCha20Rng,
    asked: Vec<Asked>,
}

impl<'a> Victim<'a> {
    /// The site after the first `steps` things it was told.
    pub fn at(course: &'a Course, me: u16, steps: usize) -> Victim<'a> {
        let mut v = Victim {
            course,
            me,
            ledger: Ledger::default(),
            left: Vec::new(),
            journal: Vec::new(),
            site: Site::new(course.kit.site(me)).unwrap(),
            rng: rng_of(course.seed, me),
            asked: Vec::new(),
        };
        for told in &course.told[usize::from(me)][..steps] {
            v.tell(told).expect("an honest run");
        }
        v
    }

    /// Tells it all that it was told from `step` on, whatever it says to that.
    pub fn go_on(&mut self, step: usize) {
        for told in &self.course.told[usize::from(self.me)][step..] {
            let _ = self.tell(told);
        }
    }

    pub fn tell(&mut self, told: &Told) -> Result<(), Error> {
        match told {
            Told::Frame(bytes) => self.hear(bytes),
            Told::Answer => self.answer(),
        }
    }

    pub fn hear(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.handle(site::Input::Message(bytes))
    }

    fn answer(&mut self) -> Result<(), Error> {
        let answered = self.asked.last().map(|asked| answer(&self.course.kit, self.me, asked));
        answered.map_or(Ok(()), |answer| self.handle(answer))
    }

    /// Its application will not answer what was asked last.
    pub fn refuse(&mut self) {
        let Some(asked) = self.asked.last() else { return };
        let refusal = site::Input::Refuse { context: asked.context, rule: Rule::Pol2 };
        self.handle(refusal).expect("a site may always refuse");
    }

    /// Its process ends and comes back from its journal.
    pub fn restart(&mut self) {
        let back = Site::restore(self.course.kit.site(self.me), self.journal.clone());
        self.site = back.expect("what a site wrote restores it");
    }

    fn handle(&mut self, input: site::Input<'_>) -> Result<(), Error> {
        let result = self.site.handle(input, &mut self.rng);
        self.left.clear();
        while let Some(output) = self.site.poll() {
            match output {
                site::Output::Persist(record) => self.journal.push(record),
                site::Output::Rewrite(records) => self.journal = records,
                site::Output::Send { bytes, .. } => self.left.push(parts(&bytes)),
                site::Output::Event(site::Event::Asked(asked)) => self.asked.push(asked),
                site::Output::Event(_) => {}
            }
        }
        self.left.iter().for_each(|p| self.ledger.enter(p, &self.asked, &self.journal));
        result
    }
}
