//! Sessions of a hostile coordinator against a site's masks, account and journal together, with a process that dies at any write.
//!
//! The account never promises more than it has, whatever is asked in whatever order and whenever the process ends: [POL-8], [LED-4],
//! [LED-5], [LED-7], [MSK-4], [RND-7]. `VEILSUM_SESSIONS=100000` plays so many.

use std::{
    fs,
    path::{Path, PathBuf},
};

use veilsum_door::{
    Bound, Cost, Data, Event as Entered, Gives, Ledger, Offer, Place, PlanFacts, Policy, Talk, Unit, Verdict,
    guard::Source, ledger, name_of,
};
use veilsum_proto::{
    plan::Sites,
    site::{Event, Input, Output},
};
use veilsum_testkit::{prelude::*, seeds::number};

const SITES: usize = 4;
const SLOTS: u16 = 16;
/// What the account may spend for good, and each of the two plans at most.
const CAP: u64 = 60;
const PRICE: u64 = 30;

/// A plan's run, as the other sites and the coordinator have it.
struct Run {
    hub: Hub,
    deck: Deck,
    /// The journals of all sites once the deck was ready.
    ready: Vec<Vec<Record>>,
    talk: Talk,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut hub = Hub::new(SITES, seed, |terms| (terms.max_rows, terms.slots) = (1_000 + seed, SLOTS));
        let deck = hub.deck(0, SLOTS, &everybody(SITES));
        let talk = Talk { plan: hub.kit.terms.hash(), session: hub.session, run: hub.run };
        Run { ready: hub.journals.clone(), talk, deck, hub }
    }

    fn place(&self, (deck, slot): (u32, u16), cohort: &[u16]) -> Place {
        let keys = cohort.iter().map(|site| self.hub.kit.roster.sites[usize::from(*site)].key);
        Place { deck, slot, cohort: set_of_sites(keys) }
    }

    fn facts(&self, set: Hash) -> PlanFacts {
        PlanFacts {
            plan: self.talk.plan,
            set,
            sites: SITES,
            least: 3,
            threshold: 3,
            colluders: 0,
            totals: Sites::Same,
            questions: 1_000,
            method: name_of("fcm"),
            columns: Vec::new(),
            gives: Gives::Noisy { nano_rho: PRICE, unit: Unit::Row, max_rows: 1 << 20 },
        }
    }
}

/// What everybody else has of this site: its answers, by plan and round, with the price that each was asked for.
type Seen = BTreeMap<(Hash, Hash, (u32, u16)), (Vec<u8>, u64)>;

/// A site's process and its disk.
struct Process<'a> {
    run: &'a mut Run,
    folder: PathBuf,
    facts: PlanFacts,
    site: Site,
    ledger: Option<Ledger>,
    /// The journal on disk, by session.
    journals: &'a mut BTreeMap<Hash, Vec<Record>>,
    rewrite: Option<Vec<Record>>,
    dice: &'a mut ChaCha20Rng,
    /// Writes until it dies.
    lives: u32,
    /// What was asked for each question, by its context.
    prices: &'a mut BTreeMap<Hash, u64>,
    seen: &'a mut Seen,
    /// Whether it left its run for good.
    over: bool,
}

fn files(folder: &Path) -> [PathBuf; 2] {
    [ledger::FILE, ledger::HEAD].map(|file| folder.join(file))
}

impl Process<'_> {
    /// One write fewer to live.
    fn lives(&mut self) -> Result<(), ()> {
        self.lives = self.lives.saturating_sub(1);
        if self.lives == 0 { Err(()) } else { Ok(()) }
    }

    fn opened(&mut self) -> &mut Ledger {
        self.ledger.as_mut().expect("an open ledger")
    }

    /// From its disk, as the product does it ([JRN-2], [JRN-3], [LED-6], [POL-8]).
    fn starts(&mut self) {
        self.ledger = None;
        self.rewrite = None;
        let (Talk { plan, session, .. }, identity) = (self.run.talk, self.run.hub.kit.site(0).identity);
        let opened = Ledger::open(&self.folder, identity, Data::unread("rows"), Some(plan));
        let mut opened = opened.expect("a ledger that was written by this program");
        let facts = self.facts.clone();
        self.over = !matches!(opened.begin_run(&facts, &Policy::default()).expect("a disk"), Verdict::Yes(_));
        let records = self.journals.entry(session).or_default();
        records.retain(|record| record.answer().is_none_or(|(_, frame)| opened.has_left(frame)));
        self.site = Site::restore(self.run.hub.kit.site(0), records.clone()).expect("a journal that was written whole");
        veilsum_proto::vectors_api::await_no_opening(&mut self.site);
        self.ledger = Some(opened);
    }

    /// What was written to the ledger and not yet brought to the disk is there, or a part of it, or nothing; of the head all or nothing.
    fn dies_within(&mut self, before: &[Vec<u8>; 2]) {
        self.ledger = None;
        let [file, head] = files(&self.folder);
        let whole = fs::read(&file).expect("a ledger");
        let new = whole.len() - before[0].len();
        let kept = before[0].len()
            + match self.dice.next_u32() % 4 {
                0 => 0,
                1 => self.dice.next_u64() as usize % (new + 1),
                _ => new,
            };
        fs::write(&file, &whole[..kept]).expect("a disk");
        if kept < whole.len() || self.dice.next_u32().is_multiple_of(2) {
            fs::write(&head, &before[1]).expect("a disk");
        }
    }

    /// A frame that may leave, as the product writes it down.
    fn sends(&mut self, frame: &[u8], discloses: Disclosure) -> Result<(), ()> {
        let talk = self.run.talk;
        let round = matches!(discloses, Disclosure::MaskedWords | Disclosure::RoundSeeds | Disclosure::SelfMaskShares);
        let sites = self.site.round_sites().filter(|_| round);
        let place = sites.map(|(slot, cohort)| self.run.place(slot, cohort));
        if let Some(records) = self.rewrite.take() {
            self.journals.insert(talk.session, records);
            self.lives()?;
        }
        let before = files(&self.folder).map(|file| fs::read(file).unwrap_or_default());
        self.opened().enter(frame, discloses, (&talk, place)).expect("an answer that was charged");
        if self.lives().is_err() {
            self.dies_within(&before);
            return Err(());
        }
        self.lives()?;
        if let Some(place) = place.filter(|_| discloses == Disclosure::MaskedWords) {
            let round = (talk.plan, talk.run, (place.deck, place.slot));
            let price = self.prices[&parts(frame).context];
            let (known, _) = self.seen.entry(round).or_insert_with(|| (frame.to_vec(), price));
            assert!(known == frame, "two vectors of one round, under one mask");
        }
        Ok(())
    }

    /// The policy stands before an answer, and its words are new each time.
    fn answers(&mut self, asked: &Asked) -> Result<(), ()> {
        let place = self.run.place(asked.slot, &asked.cohort);
        let (talk, facts) = (self.run.talk, self.facts.clone());
        // Whoever asks says the price.
        let price = u64::from(asked.query[0]);
        self.prices.insert(asked.context, price);
        let cost = Cost { scalars: asked.words as u64, nano_rho: Some(price) };
        let offer = Offer { kind: "shifts", cost, drawn: None };
        let before = files(&self.folder).map(|file| fs::read(file).unwrap_or_default());
        let said = self.opened().consent(&facts, &Policy::default(), asked, (&talk, place), offer).expect("a disk");
        // It dies before the charge is whole, or after that and before a row is visited.
        if self.lives().is_err() {
            self.dies_within(&before);
            return Err(());
        }
        let input = match said {
            Ok(granted) => {
                // A plan with noise gives no words away that somebody else made.
                let key = self.run.hub.kit.site(0).identity.public();
                let on_disk = || ledger::look(&self.folder, &key).expect("its account").spent().nano_rho;
                let charged = self.ledger.as_ref().expect("an open ledger").account().spent().nano_rho;
                let mut none = || {
                    assert_eq!(on_disk(), charged, "a row is visited before its charge is written");
                    vec![3; asked.words]
                };
                granted.noisy(&vec![1.0; asked.words], Source::Elsewhere(&mut none), self.dice).expect("its own noise")
            }
            Err(no) => Input::Refuse { context: asked.context, rule: no.rule() },
        };
        self.site.handle(input, self.dice).expect("what it was asked");
        Ok(())
    }

    /// Takes a frame, and does what follows until it dies.
    fn hears(&mut self, frame: &[u8]) -> Result<(), ()> {
        if self.over || self.site.handle(Input::Message(frame), self.dice).is_err() {
            return Ok(());
        }
        while let Some(output) = self.site.poll() {
            if !matches!(output, Output::Send { .. })
                && let Some(records) = self.rewrite.take()
            {
                self.journals.insert(self.run.hub.session, records);
                self.lives()?;
            }
            match output {
                Output::Persist(record) => {
                    self.lives()?;
                    self.journals.entry(self.run.hub.session).or_default().push(record);
                }
                Output::Rewrite(records) => self.rewrite = Some(records),
                Output::Send { bytes, discloses } => self.sends(&bytes, discloses)?,
                Output::Event(Event::Asked(asked)) => self.answers(&asked)?,
                Output::Event(_) => {}
            }
        }
        Ok(())
    }
}

/// One account, two plans, a coordinator that says what it likes.
fn session(runs: &mut [Run; 2], folder: &Path, seed: u64) -> (usize, usize) {
    let mut dice = ChaCha20Rng::seed_from_u64(seed);
    let identity = runs[0].hub.kit.site(0).identity;
    let _ = fs::remove_dir_all(folder);
    ledger::begin(folder, &identity.digest_secret()).expect("a folder");
    let set = set_of_sites(runs[0].hub.kit.roster.sites.iter().map(|site| site.key));
    let mut account = Ledger::open(folder, identity.clone(), Data::unread("rows"), None).expect("an account");
    account.bind(Bound { nano_rho: CAP / 2, ..Bound::default() }).expect("a disk");
    account.accept(set).expect("a disk");
    drop(account);
    let (mut seen, mut journals, mut prices, mut deaths) = (Seen::new(), BTreeMap::new(), BTreeMap::new(), 0);
    for run in runs.iter_mut() {
        journals.insert(run.hub.session, run.ready[0].clone());
        for site in 1..SITES as u16 {
            run.hub.journals[usize::from(site)] = run.ready[usize::from(site)].clone();
            run.hub.restart(site).expect("its journal");
        }
    }
    for at in [0, 1, 0] {
        let run = &mut runs[at];
        let facts = run.facts(set);
        let (lives, site) = (1 + dice.next_u32() % 12, Site::new(run.hub.kit.site(0)).expect("a site"));
        let (folder, ledger, rewrite, over) = (folder.to_owned(), None, None, false);
        let (journals, prices, seen, dice) = (&mut journals, &mut prices, &mut seen, &mut dice);
        let mut process =
            Process { run, folder, facts, site, ledger, journals, rewrite, dice, lives, prices, seen, over };
        process.starts();
        deaths += plays(&mut process);
    }
    // Whoever was there adds up what left, and reads the account.
    let entries = ledger::all(folder).expect("a whole ledger");
    let account = ledger::look(folder, &identity.public()).expect("its account");
    let digests: BTreeSet<Hash> = entries
        .iter()
        .filter_map(|entry| if let Entered::Frame(frame) = &entry.event { Some(frame.digest) } else { None })
        .collect();
    let mut of_plans: BTreeMap<Hash, u64> = BTreeMap::new();
    for ((plan, ..), (frame, price)) in &seen {
        assert!(digests.contains(&suite::hash("ledger frame", &[frame])), "an answer left without its entry");
        *of_plans.entry(*plan).or_default() += price;
    }
    let left: u64 = of_plans.values().sum();
    let spent = account.spent().nano_rho;
    assert!(left <= spent && spent <= CAP, "{left} left, {spent} of {CAP} is spent");
    for (plan, left) in of_plans {
        assert!(left <= account.rho_of(&plan) && account.rho_of(&plan) <= PRICE, "{left} of a plan of {PRICE}");
    }
    (seen.len(), deaths)
}

/// Some moves against one process, which comes back whenever it dies. How often it died.
fn plays(process: &mut Process<'_>) -> usize {
    let all = everybody(SITES);
    let (mut asks, mut rounds, mut slot, mut deaths) = (Vec::new(), Vec::new(), 0, 0);
    let mut older_journal = process.run.ready[0].clone();
    for _ in 0..4 + process.dice.next_u32() % 12 {
        let pick = process.dice.next_u32();
        let hub = &process.run.hub;
        let frame = match pick % 8 {
            // The next round, or another question in this one; each names its price.
            0..=3 if slot + 1 < SLOTS => {
                slot += u16::from(!pick.is_multiple_of(8));
                let previous = process.site.round_context().unwrap_or_default();
                let query = [(process.dice.next_u32() % 12) as u8, process.dice.next_u32() as u8 % 3];
                let ask = hub.question(&process.run.deck, slot, &all, previous, &query);
                let (context, frame) = hub.ask_frame(&process.run.deck, &ask);
                let others = process.run.hub.ask(&process.run.deck, &ask, &[1, 2, 3]).ok();
                rounds.extend(others.map(|round| (round, context)));
                asks.push(frame.clone());
                frame
            }
            // Once more what was asked before.
            4 | 5 if !asks.is_empty() => asks[pick as usize / 8 % asks.len()].clone(),
            // The end of the last round, if it has all inputs.
            6 if !rounds.is_empty() => {
                let (mut round, context): (Round, Hash) = rounds.last().expect("a round").clone();
                let own = process.seen.values().find(|(frame, _)| parts(frame).context == context);
                let Some((frame, _)) = own else { continue };
                round.inputs.insert(0, parts(frame).proof);
                process.run.hub.survivors(&round, &all)
            }
            _ => {
                // It ends between two frames, its run over or not; its journal is that of another time, or gone.
                if pick % 32 == 15 {
                    let (session, ready) = (process.run.hub.session, process.run.ready[0].clone());
                    let older = if pick.is_multiple_of(3) { Vec::new() } else { ready };
                    let older = std::mem::replace(&mut older_journal, older);
                    process.journals.insert(session, older);
                }
                if pick % 64 == 7 {
                    let plan = process.run.talk.plan;
                    process.opened().end_run(&plan).expect("a disk");
                }
                process.starts();
                continue;
            }
        };
        if process.hears(&frame).is_err() {
            deaths += 1;
            process.lives = 1 + process.dice.next_u32() % 12;
            process.starts();
        }
    }
    process.ledger = None;
    deaths
}

#[test]
fn hostile_sessions_with_deaths_at_every_write() {
    let (sessions, first) = (number("VEILSUM_SESSIONS").unwrap_or(100), number("VEILSUM_SEED").unwrap_or(0));
    let mut runs = [Run::new(501), Run::new(502)];
    let folder = std::env::temp_dir().join(format!("veilsum-sessions-{}", std::process::id()));
    let (mut answers, mut deaths) = (0, 0);
    for seed in first..first + sessions {
        println!("session {seed}");
        let (left, died) = session(&mut runs, &folder.join("state"), seed);
        (answers, deaths) = (answers + left, deaths + died);
    }
    let _ = fs::remove_dir_all(folder);
    println!("{sessions} sessions, {answers} answers, {deaths} deaths");
    assert!(answers > sessions as usize && deaths > sessions as usize / 2, "{answers} answers, {deaths} deaths");
}
