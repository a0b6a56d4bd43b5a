//! [LED-11]: a site whose machine was set back, ledger and all else together, is named by every other member, and nobody else is,
//! in whatever order decks are made.

use veilsum_door::{Met, Talk};
use veilsum_proto::{
    aggregator::Event as HubEvent,
    roster::Roster,
    site::{Event, Input, Output},
};
use veilsum_testkit::{prelude::*, seeds};

/// A run under the plan of this number, with what the sites of an earlier one hold.
fn run(plan: u64, before: Option<&World>) -> World {
    let mut w = World::new(Kit::same(4, |terms| terms.max_rows = 1_000 + plan), plan);
    w.answer = Box::new(|site, asked| (0..asked.words).map(|k| value(site, &asked.query, k)).collect());
    for site in 0..4 {
        let Some(before) = before else { continue };
        w.has_book(site, before.books[usize::from(site)].clone());
    }
    w
}

fn ask(w: &mut World, questions: u8) {
    (0..questions).for_each(|i| assert_eq!(w.ask_exact(&[i]), [0, 1, 2, 3]));
    w.close();
    assert!(w.site_errors.is_empty(), "{:?}", w.site_errors);
}

/// [LED-11]: what a site gave in the run before is known from the totals of that run, so that it is missed if it is forgotten.
#[test]
fn led_11_every_other_member_names_a_machine_that_was_set_back() {
    let mut first = run(1, None);
    ask(&mut first, 2);
    let mut second = run(2, Some(&first));
    ask(&mut second, 3);
    // Nobody was.
    let mut third = run(3, Some(&second));
    ask(&mut third, 1);
    assert_eq!(third.books[2].answered.number, 6);
    // Site 2 is as it was before the run before; what it stated then, it states again. Or as it was at first.
    for (book, stated) in [(first.books[2].clone(), 2), (Book::default(), 0)] {
        let mut w = run(3, Some(&second));
        w.has_book(2, book);
        assert!(w.ask(b"question", WORDS).is_err());
        let named: BTreeSet<u16> = w.site_errors.iter().map(|(site, _)| *site).collect();
        assert_eq!(named, BTreeSet::from([0, 1, 3]), "{:?}", w.site_errors);
        for (_, error) in &w.site_errors {
            assert_eq!(error.rule(), Some(Rule::Led11));
            let said = error.to_string();
            assert!(said.contains("site-2") && said.contains(&format!("states {stated} answers")), "{said}");
            assert!(said.contains("at least 5 had left"), "{said}");
        }
        let kinds: BTreeSet<_> =
            w.sent_by_sites.iter().filter(|(site, ..)| *site != 2).map(|(_, kind, _)| kind).collect();
        assert!(!kinds.contains(&Kind::ShareKeys) && !kinds.contains(&Kind::MaskedInput), "{kinds:?}");
        for site in [0, 1, 3] {
            assert_eq!(w.books[site].answered, second.books[site].answered, "its own state is what it was");
        }
    }
}

/// [LED-11]: whoever answers elsewhere until it has as many answers as it stated before has another last one.
#[test]
fn led_11_as_many_answers_with_another_last_one() {
    let mut first = run(1, None);
    ask(&mut first, 2);
    // A deck in which nothing is asked: site 2 has stated its second answer.
    let mut second = run(2, Some(&first));
    second.until(|event| matches!(event, HubEvent::DeckReady { .. })).unwrap();
    let mut w = run(3, Some(&second));
    let answered = Answered { number: 2, link: Hash([7; 32]) };
    w.has_book(2, Book { answered, ..second.books[2].clone() });
    assert!(w.ask(b"question", WORDS).is_err());
    assert!((0..4).filter(|site| *site != 2).all(|site| w.site_errors.iter().any(|(by, _)| *by == site)));
    let said = |(_, e): &(u16, Error)| e.to_string();
    assert!(w.site_errors.iter().map(said).all(|e| e.contains("site-2") && e.contains("another last one")));
}

const SITES: u16 = 4;
const PLANS: usize = 4;
const STEPS: usize = 3_000;

/// One of two federations of the same sites, under one of two plans, as one of its aggregators sees it.
fn kit(plan: usize, role: PartyId) -> Kit {
    let kit = Kit::new(usize::from(SITES), |terms| terms.slots = 2 + plan as u16);
    let name = ["test", "another"][plan % 2];
    let roster = Roster { name: name.into(), ..(*kit.roster).clone() };
    let terms = Terms { roster: roster.hash(), ..(*kit.terms).clone() };
    Kit { roster: Arc::new(roster), terms: Arc::new(terms), role, ..kit }
}

/// A deck that is being made. Keys of processes that have ended may stand in it.
struct Setup {
    index: u32,
    id: Hash,
    frame: Vec<u8>,
    keys: BTreeMap<u16, (Keys, Proof)>,
    directory: Option<(Hash, Vec<u8>, BTreeSet<u16>)>,
    accepted: BTreeMap<u16, (Proof, Ciphertexts)>,
}

/// A deck, and who answered and opened what in its slot of now.
struct Made {
    run: Hash,
    index: u32,
    slot: u16,
    members: BTreeSet<u16>,
    holders: BTreeSet<u16>,
    answered: BTreeSet<u16>,
    opened: BTreeSet<u16>,
}

/// An aggregator that begins, drops and orders everything as it likes.
struct Hub {
    kit: Kit,
    session: Hash,
    run: Hash,
    index: u32,
    setup: Option<Setup>,
    decks: Vec<Made>,
}

/// The conversations with the two aggregators of a plan, and in which run each is.
type Talks = [(Site, Option<Hash>); 2];

/// A site: its ledger, and its one process with the conversations of one plan.
#[derive(Default)]
struct Party {
    answered: Answered,
    met: Met,
    /// By session: run, deck and slot of the last answer.
    last: BTreeMap<usize, (Hash, u32, u16)>,
    process: Option<(usize, Talks)>,
    /// Older states of the ledger.
    copies: Vec<(Answered, Met)>,
}

struct Interleaved {
    hubs: Vec<Hub>,
    parties: Vec<Party>,
    dice: ChaCha20Rng,
    focus: usize,
    refused: Vec<(u16, Error)>,
    decks: usize,
    totals: usize,
    set_back: Option<u16>,
    /// What is compared as if it came from another run or plan than it does: the control.
    control: Option<fn(Talk) -> Talk>,
}

impl Interleaved {
    fn new(seed: u64) -> Interleaved {
        let hub = |at: usize| {
            let role = [PartyId::Coordinator, PartyId::Intermediary][at % 2];
            let kit = kit(at / 2, role);
            let session = session(&kit.terms.hash(), &kit.roster.hash(), role);
            Hub { kit, session, run: Hash([1; 32]), index: 0, setup: None, decks: Vec::new() }
        };
        Interleaved {
            hubs: (0..2 * PLANS).map(hub).collect(),
            parties: (0..SITES).map(|_| Party::default()).collect(),
            dice: ChaCha20Rng::seed_from_u64(seed),
            focus: 0,
            refused: Vec::new(),
            decks: 0,
            totals: 0,
            set_back: None,
            control: None,
        }
    }

    fn below(&mut self, n: usize) -> usize {
        (self.dice.next_u64() % n as u64) as usize
    }

    /// The conversation of a site with this aggregator, if its process has the plan.
    fn talk(&mut self, site: u16, hub: usize) -> Option<&mut (Site, Option<Hash>)> {
        let (plan, talks) = self.parties[usize::from(site)].process.as_mut()?;
        (*plan == hub / 2).then(|| &mut talks[hub % 2])
    }

    fn step(&mut self) {
        let site = self.below(SITES.into()) as u16;
        let hub = 2 * self.focus + self.below(2);
        match self.below(1_000) {
            0..4 => {
                self.focus = self.below(PLANS);
                for site in 0..usize::from(SITES) {
                    if self.below(4) > 0 {
                        self.parties[site].process = None;
                    }
                }
            }
            4..14 => self.parties[usize::from(site)].process = None,
            14..114 => self.start(site),
            114..118 => self.open(hub),
            118..120 => {
                let run = self.hubs[hub].run;
                self.hubs[hub].run = suite::hash("run", &[&run.0]);
                self.hubs[hub].setup = None;
            }
            120..130 => {
                let party = &mut self.parties[usize::from(site)];
                party.copies.push((party.answered, party.met.clone()));
            }
            130..300 => self.some(|world, site| world.advertises(hub, site)),
            300..450 => self.some(|world, site| world.sees_directory(hub, site)),
            450..600 => self.some(|world, site| world.certified(hub, site)),
            _ => self.some(|world, site| world.round(hub, site)),
        }
    }

    /// Does something with every other site, or so.
    fn some(&mut self, what: impl Fn(&mut Interleaved, u16)) {
        for site in 0..SITES {
            if self.below(2) > 0 {
                what(self, site);
            }
        }
    }

    fn start(&mut self, site: u16) {
        if self.parties[usize::from(site)].process.is_some() {
            return;
        }
        let plan = if self.below(5) > 0 { self.focus } else { self.below(PLANS) };
        let talks = [0, 1].map(|which| (Site::new(self.hubs[2 * plan + which].kit.site(site)).unwrap(), None));
        self.parties[usize::from(site)].process = Some((plan, talks));
    }

    fn open(&mut self, at: usize) {
        let hub = &mut self.hubs[at];
        let open: Open = (hub.run, hub.index, hub.kit.terms.slots);
        let id = deck_id(&hub.session, &open);
        let frame = hub.frame(Kind::OpenDeck, &id, &open);
        let (keys, accepted) = (BTreeMap::new(), BTreeMap::new());
        hub.setup = Some(Setup { index: hub.index, id, frame, keys, directory: None, accepted });
        hub.index += 1;
    }

    /// Gives a frame to a site: what it sends, if its application goes on.
    fn tell(&mut self, site: u16, at: usize, frame: &[u8]) -> Option<Parts> {
        let kit_site = self.hubs[at].kit.site(site);
        let answered = self.parties[usize::from(site)].answered;
        let mut rng = ChaCha20Rng::seed_from_u64(self.dice.next_u64());
        let (machine, run) = self.talk(site, at)?;
        machine.set_standing(Standing { answered, ..Standing::default() });
        match machine.handle(Input::Message(frame), &mut rng) {
            Ok(()) => {}
            // [KEX-9]: set up anew.
            Err(e) if e.rule() == Some(Rule::Kex9) => {
                (*machine, *run) = (Site::new(kit_site).unwrap(), None);
                machine.set_standing(Standing { answered, ..Standing::default() });
                machine.handle(Input::Message(frame), &mut rng).unwrap();
            }
            Err(e) => {
                assert!([Rule::Frm7, Rule::Kex1, Rule::Kex3].contains(&e.rule().unwrap()), "{e}");
                return None;
            }
        }
        *run = machine.run();
        let outputs: Vec<Output> = std::iter::from_fn(|| machine.poll()).collect();
        for output in outputs {
            match output {
                Output::Event(Event::Met { deck, members }) => {
                    let talk = self.place(at, site);
                    let compared = self.control.map_or(talk, |other| other(talk));
                    let party = &mut self.parties[usize::from(site)];
                    if let Err(back) = party.met.check(&compared, &members) {
                        self.refused.push((site, back.error(format!("site-{}", back.site))));
                        party.process = None;
                        return None;
                    }
                    party.met.take(&talk, deck, (Met::all(&members), &Met::list(&members)));
                }
                Output::Send { bytes, .. } => return Some(parts(&bytes)),
                _ => {}
            }
        }
        None
    }

    fn place(&mut self, at: usize, site: u16) -> Talk {
        let run = self.talk(site, at).and_then(|(_, run)| *run).unwrap_or_default();
        Talk { plan: self.hubs[at].kit.terms.hash(), session: self.hubs[at].session, run }
    }

    fn advertises(&mut self, at: usize, site: u16) {
        let Some(setup) = self.hubs[at].setup.as_ref().filter(|setup| setup.directory.is_none()) else {
            return if self.below(40) == 0 {
                self.open(at)
            };
        };
        let frame = setup.frame.clone();
        if let Some(sent) = self.tell(site, at, &frame)
            && let Some(setup) = &mut self.hubs[at].setup
        {
            setup.keys.insert(site, (sent.read(), sent.proof));
        }
        let hub = &mut self.hubs[at];
        let full = hub.setup.as_ref().is_some_and(|setup| setup.keys.len() >= 3);
        if full && self.below(2) == 0 {
            self.hubs[at].closes();
        }
    }

    fn sees_directory(&mut self, at: usize, site: u16) {
        let Some(Setup { directory: Some((_, frame, members)), .. }) = &self.hubs[at].setup else { return };
        if !members.contains(&site) {
            return;
        }
        let frame = frame.clone();
        if let Some(sent) = self.tell(site, at, &frame)
            && let Some(setup) = &mut self.hubs[at].setup
        {
            setup.accepted.insert(site, (sent.proof, sent.read()));
        }
    }

    fn certified(&mut self, at: usize, site: u16) {
        let hub = &self.hubs[at];
        let Some(Setup { directory: Some((hash, _, members)), accepted, index, .. }) = &hub.setup else { return };
        if accepted.len() < members.len() || !members.contains(&site) {
            return;
        }
        let (index, members) = (*index, members.clone());
        let frame = hub.frame(Kind::DirectoryCertificate, hash, &certified(accepted, site));
        if self.tell(site, at, &frame).is_none() {
            return;
        }
        self.decks += 1;
        let hub = &mut self.hubs[at];
        if !hub.decks.iter().any(|deck| (deck.run, deck.index) == (hub.run, index)) {
            let [holders, answered, opened] = [(); 3].map(|()| BTreeSet::new());
            hub.decks.push(Made { run: hub.run, index, slot: 0, members, holders, answered, opened });
        }
        hub.decks.last_mut().unwrap().holders.insert(site);
    }

    /// A site answers in some deck that it holds, also after a restart; or opens a total, once all of its members have answered.
    fn round(&mut self, at: usize, site: u16) {
        let (decks, session) = (self.hubs[at].decks.len(), self.hubs[at].session);
        let Some((_, run)) = self.talk(site, at) else { return };
        let run = *run;
        if decks == 0 {
            return;
        }
        let which = decks - 1 - self.below(2.min(decks));
        let next = self.below(12) == 0;
        let Hub { decks, kit, .. } = &mut self.hubs[at];
        let deck = &mut decks[which];
        if !deck.holders.contains(&site) || run.is_some_and(|run| run != deck.run) {
            return;
        }
        let (number, all) = ((deck.run, deck.index, deck.slot), deck.answered == deck.members);
        if next || deck.opened == deck.members {
            deck.slot += 1;
            deck.answered.clear();
            deck.opened.clear();
        } else if all && deck.opened.insert(site) {
            let keys = deck.members.iter().map(|s| kit.roster.sites[usize::from(*s)].key);
            let met = &mut self.parties[usize::from(site)].met;
            met.total(session, number.0, (number.1, number.2), &set_of_sites(keys));
            self.totals += 1;
        } else if !all && deck.holders == deck.members {
            let party = &mut self.parties[usize::from(site)];
            if party.last.get(&at).is_none_or(|last| last.0 != number.0 || *last < number) && deck.answered.insert(site)
            {
                party.last.insert(at, number);
                party.answered = party.answered.and(&session, &number.0, (number.1, number.2));
            }
        }
        if let Some((_, run)) = self.talk(site, at) {
            *run = Some(number.0);
        }
    }

    /// A machine that is off comes back as it was at some time before, and everybody is met anew.
    fn sets_back(&mut self, site: u16) {
        let party = &mut self.parties[usize::from(site)];
        let Some((answered, met)) = party.copies.first().cloned() else { return };
        let missing = party.answered.number > answered.number;
        (party.answered, party.met, party.process) = (answered, met, None);
        self.hubs.iter_mut().for_each(|hub| (hub.setup, hub.decks) = (None, Vec::new()));
        self.set_back = missing.then_some(site);
    }
}

impl Hub {
    fn frame<T: serde::Serialize>(&self, kind: Kind, context: &Hash, message: &T) -> Vec<u8> {
        let identity = &self.kit.identities[usize::from(self.kit.role == PartyId::Intermediary)];
        raw(identity, &self.session, kind, context, &codec::encode(message))
    }

    /// Collects no more keys.
    fn closes(&mut self) {
        let Some(setup) = &self.setup else { return };
        let entries: Vec<_> = setup.keys.iter().map(|(site, (keys, proof))| (*site, keys.clone(), *proof)).collect();
        let members: BTreeSet<u16> = setup.keys.keys().copied().collect();
        let threshold = self.kit.terms.threshold_of(members.len(), usize::from(SITES)).unwrap() as u16;
        let directory = Directory { threshold, entries };
        let frame = self.frame(Kind::Directory, &setup.id, &directory);
        let hash = directory_hash(&setup.id, &directory);
        if let Some(setup) = &mut self.setup {
            setup.directory = Some((hash, frame, members));
        }
    }
}

/// [LED-11]: coordinators and intermediaries of two federations, two plans each, processes that stop and come back, runs begun anew,
/// decks ahead, keys of processes that have ended: no honest member is refused. One that was set back is, and nobody else.
#[test]
fn led_11_no_order_of_decks_accuses_an_honest_member() {
    let seeds = seeds::number("VEILSUM_SEEDS").unwrap_or(40);
    let (mut decks, mut totals, mut refused, mut set_back) = (0, 0, 0, 0);
    for seed in 0..seeds {
        let mut world = Interleaved::new(seed);
        (0..STEPS).for_each(|_| world.step());
        assert!(world.refused.is_empty(), "seed {seed}: {:?}", world.refused);
        (decks, totals) = (decks + world.decks, totals + world.totals);
        let back = world.below(usize::from(SITES)) as u16;
        world.sets_back(back);
        (0..STEPS).for_each(|_| world.step());
        for (by, error) in &world.refused {
            assert_eq!(error.rule(), Some(Rule::Led11));
            let named = world.set_back.is_some_and(|site| error.to_string().starts_with(&format!("site-{site} ")));
            assert!(named && Some(*by) != world.set_back, "seed {seed}: {by}: {error}");
        }
        set_back += usize::from(world.set_back.is_some());
        refused += usize::from(!world.refused.is_empty());
    }
    println!(
        "{seeds} seeds: {decks} times a deck was joined, {totals} totals were counted; {refused} of {set_back} were noticed"
    );
    assert!(decks > 10 * seeds as usize && totals > 10 * seeds as usize, "{decks} decks, {totals} totals");
    assert!(2 * refused > set_back, "{refused} of {set_back} were noticed");
}

/// The federations above are such that comparing more would accuse honest members: with the plan's other conversation, or with totals
/// of the run.
#[test]
fn led_11_comparing_more_accuses_honest_members() {
    let controls: [fn(Talk) -> Talk; 2] =
        [|talk| Talk { plan: Hash([99; 32]), ..talk }, |talk| Talk { run: Hash([99; 32]), ..talk }];
    for (i, control) in controls.into_iter().enumerate() {
        let accuses = |seed| {
            let mut world = Interleaved::new(seed);
            world.control = Some(control);
            (0..STEPS).for_each(|_| world.step());
            !world.refused.is_empty()
        };
        assert!((0..40).any(accuses), "control {i}");
    }
}
