//! A run that begins comes to its end ([POL-8], [PRO-2]): after a site's door let it begin, no question of it is refused for the
//! account's or the policy's sake, and the account never exceeds its cap. Two federations ask for one account, runs are interrupted and
//! taken up again, and lost questions are asked again.
//!
//! By default 200 seeds; `VEILSUM_SEEDS=1000` runs more, and `VEILSUM_SEED=4711` one.

use std::sync::Arc;

use veilsum_cluster::{OutOfBox, Prepared, Rows};
use veilsum_node::{
    door::{
        Bound, Cost, Data, Gives, Ledger, No, Offer, Place, PlanFacts, Policy, Table, Talk, Unit, Verdict, Yes, judge,
    },
    facts::cohort_digest,
    method_session::{MethodSession, Turn},
    question::{self, Layout, Question},
};
use veilsum_proto::{
    identity::Identity,
    message::Disclosure,
    noise::Key,
    plan::Terms,
    policy::Asked,
    roster::PartyId,
    suite::{Hash, hash},
};
use veilsum_testkit::{
    cast::Cast,
    seeds::{self, Dice},
};

use super::metamorphic::plans::work;

/// A federation that asks this site, and how far its run is.
struct Walk {
    cast: Cast,
    rows: Prepared,
    conversation: MethodSession,
    /// Questions that were lost and may be asked again.
    retries: u32,
    counted: bool,
    asked: u32,
    slot: u16,
    over: bool,
}

fn identities(seed: u64, sites: usize) -> Vec<Arc<Identity>> {
    let of = |i: usize| Arc::new(Identity::from_seed(&hash("test", &[&seed.to_le_bytes(), &[i as u8]]).0));
    (0..sites + 2).map(of).collect()
}

/// What the core asks the door, over all sites.
fn asked(context: Hash, slot: u16, sites: usize, (words, query): (usize, Vec<u8>)) -> Asked {
    let cohort = (0..sites as u16).collect();
    Asked { context, run: Hash([1; 32]), slot: (0, slot), cohort, words, query, rounds: 1, sites }
}

impl Walk {
    /// Some plan that these parties can agree on; with noise it spends so much.
    fn new(dice: &mut Dice, ids: &[Arc<Identity>], noisy: Option<u64>) -> Walk {
        let names = ["one", "two", "three", "four", "five", "six"];
        loop {
            let mut work = work(dice, noisy.is_some());
            work.out_of_box = OutOfBox::Clip;
            if let Some(noise) = &mut work.recipe.noise {
                (noise.nano_rho, noise.retries) = (noisy.unwrap_or(0).max(100_000), dice.below(4) as u32);
                noise.unit = veilsum_cluster::privacy::Unit::Record;
            }
            let min_cohort = (3 + dice.below(ids.len() as u64 - 4)) as u16;
            let change = |terms: &mut Terms| {
                (terms.min_cohort, terms.max_rows) = (min_cohort, dice.of(&[64, 1_000, 1 << 20]));
                terms.colluders = dice.below(2) as u16;
            };
            if work.sampling.is_some() || work.check().is_err() {
                continue;
            }
            let Ok(cast) = Cast::of(ids.to_vec(), &work, &names[..ids.len() - 2], change) else { continue };
            let federation = &cast.federation;
            let Ok(form) = federation.form() else { continue };
            if federation.terms.check(&federation.roster).is_err() {
                continue;
            }
            let domain = work.domain().expect("a box");
            let middle: Vec<f64> = domain.lower().iter().zip(domain.upper()).map(|(a, b)| (a + b) / 2.0).collect();
            let rows = Rows::new(middle, domain.columns()).expect("a row");
            let rows = Prepared::new(&rows, &domain, OutOfBox::Clip).expect("a row in its box");
            let conversation = MethodSession::of(&work, form).expect("a run");
            let retries = work.recipe.noise.map_or(2, |noise| noise.retries);
            return Walk { cast, rows, conversation, retries, counted: false, asked: 0, slot: 0, over: false };
        }
    }

    fn plan(&self) -> Hash {
        self.cast.federation.terms.hash()
    }

    fn begin(&self, ledger: &mut Ledger, policy: &Policy) -> Result<Yes, No> {
        ledger.begin_run(&self.cast.federation.facts(), policy).map(Verdict::yes).expect("a ledger in memory")
    }

    /// The next question of the run, or the last one again where it was lost; a refusal is one too many.
    fn step(&mut self, dice: &mut Dice, ledger: &mut Ledger, policy: &Policy) {
        let federation = self.cast.federation.clone();
        let (domain, form) = (federation.work.domain().expect("a box"), federation.form().expect("a form"));
        let (role, question, layout) = match self.conversation.turn() {
            _ if !self.counted => {
                let layout = Question::CountRows.layout(&domain, &form).expect("a layout");
                (PartyId::Intermediary, Question::CountRows, layout)
            }
            Turn::Ask(question, layout) => (PartyId::Coordinator, (**question).clone(), layout.clone()),
            // What the intermediary is asked to judge has tests of its own.
            _ => {
                self.over = true;
                return;
            }
        };
        if let Err(e) = self.answer(role, &question, &layout, ledger, policy) {
            panic!("{} was refused after a yes: {e:?}", question.name());
        }
        if self.retries > 0 && dice.one_in(3) {
            self.retries -= 1;
            return;
        }
        if role == PartyId::Intermediary {
            self.counted = true;
            return;
        }
        let terms = question::Terms { noise: Some(&Key::from_bytes([7; 32])), ..question::Terms::everybody(form) };
        let words = question::contribute(&question, &self.rows, &terms).expect("an answer");
        let sites: Vec<u16> = (0..federation.roster.sites.len() as u16).collect();
        let total: Vec<u64> = words.iter().map(|word| word.wrapping_mul(sites.len() as u64)).collect();
        // Where this total says that the run is over, it is.
        self.over |= self.conversation.take(&total, &sites).is_err();
    }

    /// The door's word on this question, and its frame in the ledger.
    fn answer(
        &mut self,
        role: PartyId,
        question: &Question,
        layout: &Layout,
        ledger: &mut Ledger,
        policy: &Policy,
    ) -> Result<(), No> {
        let federation = &self.cast.federation;
        let sites: Vec<u16> = (0..federation.roster.sites.len() as u16).collect();
        (self.asked, self.slot) = (self.asked + 1, self.slot + 1);
        let context = hash("round", &[&self.plan().0, &self.slot.to_le_bytes()]);
        let asked = asked(context, self.slot, sites.len(), (layout.words(), question.to_bytes()));
        let talk = Talk { plan: self.plan(), session: self.cast.party(2).session(role), run: asked.run };
        let place = Place { deck: 0, slot: self.slot, cohort: cohort_digest(&federation.roster, &sites) };
        let offer = federation.offer(question, layout);
        ledger.consent(&federation.facts(), policy, &asked, (&talk, place), offer).expect("a ledger in memory")?;
        ledger.enter(&context.0, Disclosure::MaskedWords, (&talk, Some(place))).expect("a ledger in memory");
        Ok(())
    }
}

/// What was answered before, of other plans.
fn earlier(dice: &mut Dice, ledger: &mut Ledger, cap: u64, facts: &PlanFacts) {
    for i in 0..dice.below(4) as u8 {
        let talk = Talk { plan: Hash([100 + i; 32]), session: Hash([150 + i; 32]), run: Hash([1; 32]) };
        let place = Place { deck: 0, slot: 0, cohort: Hash([2; 32]) };
        let rho = dice.below(cap / 8 + 1);
        let gives = Gives::Noisy { nano_rho: rho, unit: Unit::Row, max_rows: 1 << 20 };
        let plan = PlanFacts { plan: talk.plan, gives, ..facts.clone() };
        let asked = asked(Hash([i; 32]), 0, facts.sites, (3, vec![i]));
        let offer = Offer { kind: "fuzzy_sums", cost: Cost { scalars: 3, nano_rho: Some(rho) }, drawn: None };
        let any = Policy { max_rows: 0, ..Policy::default() };
        ledger.begin_run(&plan, &any).map(Verdict::yes).expect("a ledger in memory").expect("a first run");
        let granted = ledger.consent(&plan, &any, &asked, (&talk, place), offer).expect("a ledger in memory");
        granted.expect("a first answer");
        ledger.enter(&[i], Disclosure::MaskedWords, (&talk, Some(place))).expect("a ledger in memory");
        ledger.end_run(&plan.plan).expect("a ledger in memory");
    }
}

/// What came of some federations.
#[derive(Default, Debug)]
struct Tally {
    yes: usize,
    noisy: usize,
    questions: u32,
    taken_up: usize,
    last_rho: usize,
}

fn federations(seed: u64, tally: &mut Tally) {
    let mut dice = Dice::new(seed);
    let sites = 4 + dice.below(3) as usize;
    let ids = identities(seed, sites);
    let noisy = !dice.one_in(5);
    let mut walks = Vec::new();
    for _ in 0..2 + dice.below(3) {
        let rho = dice.below(1_000_000_000);
        walks.push(Walk::new(&mut dice, &ids, noisy.then_some(rho)));
    }
    let mut policy = Policy { max_rows: dice.of(&[0, 64, 1_000]), ..Policy::default() };
    let cap = 2 * dice.below(2_500_000_000);
    policy.nano_rho = dice.one_in(2).then_some(cap);
    policy.floor.min_cohort = 3 + dice.below(2) as u16;
    policy.floor.colluders = dice.below(2) as u16;
    policy.floor.max_rounds = dice.of(&[1_000, 1_000, 8]);
    let table = (!noisy).then_some(Table { rows: 9, digest: Hash([5; 32]) });
    let data = || Data { name: "rows".into(), table };
    let fresh = || {
        let mut ledger = Ledger::in_memory(ids[2].clone(), data());
        ledger.bind(Bound::of(cap)).expect("a note");
        ledger.accept(walks[0].cast.federation.facts().set).expect("a note");
        ledger
    };
    let mut ledger = fresh();
    earlier(&mut dice, &mut ledger, cap, &walks[0].cast.federation.facts());
    if !noisy {
        for walk in &walks {
            let _ = ledger.agree(&walk.cast.federation.facts(), &policy).expect("a note");
        }
    }
    // All are proposed at once, and each is told yes or no; of those that begin some find the account taken.
    let of_account =
        |walk: &Walk, ledger: &Ledger| judge(&walk.cast.federation.facts(), &policy, ledger.account(), None);
    walks.retain(|walk| matches!(of_account(walk, &ledger), Verdict::Yes(_)));
    tally.yes += walks.len();
    let (mut running, late): (Vec<_>, Vec<_>) =
        walks.into_iter().partition(|walk| walk.begin(&mut ledger, &policy).is_ok());
    tally.last_rho += late.len();
    tally.noisy += running.len() * usize::from(noisy);
    while !running.is_empty() {
        let at = dice.below(running.len() as u64) as usize;
        running[at].step(&mut dice, &mut ledger, &policy);
        tally.questions += 1;
        assert!(ledger.account().spent().nano_rho <= cap, "more than the cap was spent");
        if running[at].over {
            ledger.end_run(&running[at].plan()).expect("a note");
            running.remove(at);
        } else if dice.one_in(12) {
            // Everything stands still, and another plan comes.
            let other = (noisy && dice.one_in(2)).then(|| {
                // It takes most of what is left.
                let taken = ledger.account().committed(None);
                let most = cap.saturating_sub(taken) / 100 * (50 + dice.below(50));
                Walk::new(&mut dice, &ids, Some(most / 2))
            });
            let other = other.filter(|other| other.begin(&mut ledger, &policy).is_ok());
            for walk in &running {
                walk.begin(&mut ledger, &policy).expect("a run that has begun is taken up again");
                tally.taken_up += 1;
            }
            running.extend(other);
        }
    }
}

#[test]
fn pol_8_a_run_that_begins_comes_to_its_end() {
    let mut tally = Tally::default();
    let played = seeds::play(200, "--test product comes_to_its_end", |seed| federations(seed, &mut tally));
    println!("{tally:?}");
    if played >= 200 {
        let Tally { yes, noisy, taken_up, last_rho, .. } = tally;
        assert!(yes > 100 && noisy > 60 && taken_up > 20 && last_rho > 10, "{tally:?}");
    }
}
