use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use serde_json::{Value, json};
use veilsum_proto::{Error, message::Disclosure, policy::Floor, site::Input};
use veilsum_testkit::vectors::{cases, number};

use super::*;
use crate::{
    entry::{Cost, Entry, Event, Frame, Note, Totals},
    guard::Source,
    policy::{Bound, DEFAULT_NANO_RHO},
};

const PLAN: Hash = Hash([1; 32]);
const SET: Hash = Hash([2; 32]);

/// A plan over five sites that hides rows and spends so much.
fn noisy(nano_rho: u64) -> PlanFacts {
    PlanFacts {
        plan: PLAN,
        set: SET,
        sites: 5,
        least: 3,
        threshold: 4,
        colluders: 1,
        totals: Sites::Same,
        questions: 10,
        method: name_of("fcm"),
        columns: ["age", "bmi"].map(name_of).to_vec(),
        gives: Gives::Noisy { nano_rho, unit: Unit::Row, max_rows: 1 << 20 },
    }
}

fn exact() -> PlanFacts {
    let gives = Gives::Exact { clusters: 5, rows: 100, fuzzifier: Some(2_000), names_centres: false };
    PlanFacts { gives, ..noisy(0) }
}

fn taken(account: &mut Account, event: Event) {
    let (zeros, signer) = (Hash([0; 32]), veilsum_proto::identity::PublicKey([0; 32]));
    account.take(&Entry { index: 0, previous: zeros, signer, event });
}

fn noted(account: &mut Account, note: Note) {
    taken(account, Event::Note(note));
}

const PLACE: Place = Place { deck: 0, slot: 1, cohort: SET };

fn talk(plan: Hash) -> Talk {
    Talk { plan, session: Hash([8; 32]), run: Hash([3; 32]) }
}

fn answered(account: &mut Account, (talk, place): (Talk, Place), answer: Answer) {
    noted(account, Note::Charged { talk, place, answer });
    let (discloses, data) = (Disclosure::MaskedWords, "rows".into());
    taken(account, Event::Frame(Frame { talk, round: Some(place), discloses, bytes: 1, digest: SET, data }));
}

fn answer(nano_rho: Option<u64>) -> Answer {
    let table = nano_rho.is_none().then_some(Table { rows: 9, digest: Hash([9; 32]) });
    let cost = Cost { scalars: 9, nano_rho };
    Answer { kind: "fuzzy_sums".into(), question: Hash([4; 32]), cost, drawn: None, table }
}

/// A question to five sites.
fn asked(words: usize) -> Asked {
    let (context, run, cohort) = (Hash([6; 32]), Hash([3; 32]), (0..5).collect());
    Asked { context, run, slot: (0, 1), cohort, words, query: Vec::new(), rounds: 1, sites: 5 }
}

/// An account whose operator accepted the sites, and which spent so much under other plans.
fn account(spent: u64) -> Account {
    let mut account = Account::default();
    noted(&mut account, Note::Sites(SET));
    if spent > 0 {
        answered(&mut account, (talk(Hash([7; 32])), PLACE), answer(Some(spent)));
    }
    account
}

/// The same once this plan's run has begun.
fn begun(spent: u64) -> Account {
    let mut account = account(spent);
    noted(&mut account, Note::Begun { plan: PLAN, nano_rho: 40 });
    account
}

/// [POL-4], [POL-8] to [POL-10]: every reason there is for a no, and what is left after a yes.
#[test]
fn pol_4_to_10_every_no_has_a_cause() {
    let policy = Policy::default;
    let lists = |name: &str| Some(vec![name.to_owned()]);
    let unit = |unit| PlanFacts { gives: Gives::Noisy { nano_rho: 5, unit, max_rows: 1 << 20 }, ..noisy(5) };
    let of_exact = |clusters, fuzzifier, names_centres| PlanFacts {
        gives: Gives::Exact { clusters, rows: 100, fuzzifier, names_centres },
        ..exact()
    };
    let floor = |floor: Floor| Policy { floor, ..policy() };
    let colluders = floor(Floor { colluders: 4, ..Floor::default() });
    let rounds = floor(Floor { max_rounds: 9, ..Floor::default() });
    let persons = || Policy { unit: Unit::Person(3), ..policy() };
    let big = DEFAULT_NANO_RHO;
    let careful = || Policy { ask: Ask::Always, ..policy() };
    let any = || PlanFacts { totals: Sites::Any, ..noisy(5) };
    let other_sites = PlanFacts { set: Hash([3; 32]), ..noisy(5) };
    let table: [(PlanFacts, Policy, u64, Result<u64, No>); 25] = [
        (noisy(5), policy(), 0, Ok(big - 5)),
        (noisy(big), policy(), 0, Ok(0)),
        (noisy(5), policy(), big - 5, Ok(0)),
        (noisy(5), policy(), big - 4, Err(No::Account { left: 4, cap: big })),
        (noisy(u64::MAX), policy(), 60, Err(No::Account { left: big - 60, cap: big })),
        (PlanFacts { sites: 2, ..noisy(5) }, policy(), 0, Err(No::Below(Below::Sites { over: 2, least: 3 }))),
        (noisy(5), colluders, 0, Err(No::Threshold { sites: 5, threshold: 4, colluders: 4 })),
        (noisy(5), rounds, 0, Err(No::Below(Below::Questions { asked: 10, most: 9 }))),
        (noisy(5), Policy { methods: lists("kmeans"), ..policy() }, 0, Err(No::Method)),
        (noisy(5), Policy { columns: lists("age"), ..policy() }, 0, Err(No::Column(2))),
        (unit(Unit::Person(3)), policy(), 0, Err(No::NoPersons)),
        (noisy(5), persons(), 0, Err(No::Unit { plan: Unit::Row, own: Unit::Person(3) })),
        (unit(Unit::Person(3)), persons(), 0, Ok(big - 5)),
        (noisy(5), Policy { max_rows: 1 << 21, ..policy() }, 0, Err(No::Room { plan: 1 << 20, own: 1 << 21 })),
        (exact(), Policy { exact: Exact::Never, ..policy() }, 0, Err(No::Exact)),
        (of_exact(6, None, false), policy(), 0, Err(No::Clusters)),
        (of_exact(5, Some(1_099), false), policy(), 0, Err(No::Fuzzifier)),
        (of_exact(5, Some(1_100), true), policy(), 0, Err(No::NamesCentres)),
        (exact(), policy(), 0, Err(No::Unagreed(vec![Needs::Exact]))),
        (exact(), policy(), u64::MAX, Err(No::Unagreed(vec![Needs::Exact, Needs::EndsPromise]))),
        (exact(), careful(), 0, Err(No::Unagreed(vec![Needs::Exact, Needs::Always]))),
        (noisy(5), careful(), 0, Err(No::Unagreed(vec![Needs::Always]))),
        (any(), policy(), 0, Err(No::Unagreed(vec![Needs::AnySites]))),
        (any(), Policy { sites: Sites::Any, ..policy() }, 0, Ok(big - 5)),
        (other_sites, policy(), 0, Err(No::Unagreed(vec![Needs::Set]))),
    ];
    for (i, (facts, policy, spent, expected)) in table.into_iter().enumerate() {
        let found = judge(&facts, &policy, &account(spent), None).yes().map(|yes| yes.left);
        assert_eq!(found, expected, "case {i}");
    }
}

/// [POL-8]: a question is charged to the last 10^-9 of rho, within the plan's price and the cap.
#[test]
fn pol_8_a_question_is_within_price_and_cap() {
    let asked = asked(9);
    let at = (&Talk { session: Hash([5; 32]), ..talk(PLAN) }, &PLACE);
    let policy = Policy { nano_rho: Some(100), ..Policy::default() };
    let no =
        |facts: &PlanFacts, rho, account: Account| decide(facts, &policy, &account, &asked, at, &answer(rho)).err();
    assert_eq!(no(&noisy(40), Some(40), account(0)), Some(No::Price), "its run has not begun");
    assert_eq!(no(&exact(), None, account(0)), Some(No::Unagreed(vec![Needs::Exact])));
    let account = begun;
    assert_eq!(no(&noisy(40), Some(40), account(60)), None);
    let other = PlanFacts { plan: Hash([8; 32]), ..noisy(40) };
    assert_eq!(no(&other, Some(40), account(0)), Some(No::Price), "it is charged to another plan");
    assert_eq!(no(&noisy(40), Some(41), account(0)), Some(No::Price));
    assert_eq!(no(&noisy(40), Some(40), account(61)), Some(No::Account { left: 39, cap: 100 }));
    assert_eq!(no(&noisy(40), None, account(0)), Some(No::Price), "an exact answer is none of a plan with noise");
    assert_eq!(no(&noisy(40), Some(0), account(0)), Some(No::Price), "no noise is so large");
    let mut persons = account(0);
    noted(&mut persons, Note::Account(Bound { unit: Unit::Person(5), ..Bound::of(100) }));
    let other = No::OtherUnit { account: Unit::Person(5), policy: Unit::Row };
    assert_eq!(no(&noisy(40), Some(40), persons), Some(other));
    // What the plan's other conversation was charged counts, and so does what was charged for this round and never left.
    for charged in [Talk { session: Hash([77; 32]), ..*at.0 }, *at.0] {
        let mut shared = account(0);
        noted(&mut shared, Note::Charged { talk: charged, place: PLACE, answer: answer(Some(1)) });
        assert_eq!(no(&noisy(40), Some(40), shared), Some(No::Price));
    }
    // A round is answered once, whatever the journal says.
    for (slot, again) in [(0, None), (1, Some(No::Answered)), (2, Some(No::Answered))] {
        for ended in [false, true] {
            let mut account = account(0);
            answered(&mut account, (*at.0, Place { slot, ..PLACE }), answer(Some(1)));
            if ended {
                noted(&mut account, Note::Ended(PLAN));
            }
            let says = again.clone().or(ended.then_some(No::RunBefore));
            assert_eq!(no(&noisy(40), Some(1), account), says, "after slot {slot}");
        }
    }
    // Also once another run of the session has answered.
    let mut account = account(0);
    for run in [at.0.run, Hash([44; 32])] {
        answered(&mut account, (Talk { run, ..*at.0 }, PLACE), answer(Some(1)));
    }
    assert_eq!(no(&noisy(40), Some(1), account), Some(No::Answered));
}

/// [NOI-3]: what was charged is what is drawn. An answer of a plan with noise leaves with the noise of its charge, in its length, and in no
/// other way; one of an exact plan has none.
#[test]
fn noi_3_an_answer_leaves_with_the_noise_that_it_was_charged_for() {
    let consent = |words| {
        let asked = asked(words);
        let at = (&Talk { session: Hash([5; 32]), ..talk(PLAN) }, &PLACE);
        let cost = Cost { scalars: words as u64, nano_rho: Some(10) };
        let answer = Answer { cost, ..answer(Some(10)) };
        decide(&noisy(40), &Policy::default(), &begun(0), &asked, at, &answer).expect("a question of the plan")
    };
    let mut dice = ChaCha20Rng::seed_from_u64(7);
    let words = 4_000;
    let nothing = |words| vec![None; words];
    let drawn = consent(words).noisy(&vec![1.0; words], Source::Counts(&nothing(words)), &mut dice).unwrap();
    let Input::Contribute { values, .. } = drawn else { panic!("an answer") };
    let square = values.iter().map(|word| (*word as i64 as f64).powi(2)).sum::<f64>() / words as f64;
    let charged = guard::deviation_of(10, 1).unwrap() as f64;
    assert!((square.sqrt() / charged - 1.0).abs() < 0.06, "{} of {charged}", square.sqrt());
    let misused = |answer: Result<Input<'_>, Error>| matches!(answer, Err(Error::ApiMisuse(_)));
    assert!(misused(consent(9).exact(vec![0; 9])), "without noise");
    assert!(misused(consent(9).noisy(&[1.0; 8], Source::Counts(&nothing(8)), &mut dice)), "in another length");
    let mut none = || vec![0; 8];
    assert!(misused(consent(9).noisy(&[1.0; 9], Source::Elsewhere(&mut none), &mut dice)), "of other words");
}

/// [POL-9]: an account has noise or is exact, for good; an agreement alone ends a promise, and nothing makes one again.
#[test]
fn pol_9_an_account_is_noisy_or_exact_for_good() {
    let policy = Policy::default();
    let says = |facts: &PlanFacts, account: &Account| judge(facts, &policy, account, None).yes().map(|_| ());
    let agrees = |account: &mut Account, totals| noted(account, Note::Agreed { plan: PLAN, totals });
    let (noise, none) = (noisy(5), exact());
    let mut account = account(0);
    assert_eq!((account.kind(), says(&noise, &account)), (None, Ok(())));
    agrees(&mut account, Totals::Noisy);
    assert_eq!(account.kind(), None, "nothing is promised before a run");
    noted(&mut account, Note::Begun { plan: PLAN, nano_rho: 5 });
    noted(&mut account, Note::Ended(PLAN));
    assert_eq!(account.kind(), Some(Kind::Noisy));
    assert_eq!(says(&none, &account), Err(No::Unagreed(vec![Needs::EndsPromise])), "noise was agreed to alone");
    agrees(&mut account, Totals::Exact(None));
    assert_eq!((account.kind(), says(&none, &account)), (Some(Kind::Exact), Ok(())));
    for facts in [&noise, &PlanFacts { plan: Hash([9; 32]), ..noise.clone() }] {
        assert_eq!(says(facts, &account), Err(No::AfterExact));
    }
    // A run with noise that has begun ends there.
    answered(&mut account, (talk(PLAN), PLACE), answer(Some(1)));
    assert_eq!(account.kind(), Some(Kind::Exact));
    let mut first = Account::default();
    answered(&mut first, (talk(PLAN), PLACE), answer(None));
    assert_eq!((first.kind(), says(&noise, &first)), (Some(Kind::Exact), Err(No::AfterExact)));
}

/// [POL-8]: the account's own cap holds, with what was spent elsewhere before; the policy lowers it and does not raise it.
#[test]
fn pol_8_a_policy_lowers_the_cap_and_raises_none() {
    let says = |bound: Bound, nano_rho| {
        let mut account = account(5);
        noted(&mut account, Note::Account(bound));
        judge(&noisy(10), &Policy { nano_rho, ..Policy::default() }, &account, None).yes().map(|yes| yes.left)
    };
    assert_eq!(says(Bound::of(20), None), Ok(5));
    assert_eq!(says(Bound::of(20), Some(15)), Ok(0));
    assert_eq!(says(Bound::of(20), Some(14)), Err(No::Account { left: 9, cap: 14 }));
    assert_eq!(says(Bound::of(20), Some(21)), Err(No::AboveCap { policy: 21, cap: 20 }));
    assert_eq!(says(Bound { before: 6, ..Bound::of(20) }, None), Err(No::Account { left: 9, cap: 20 }));
    assert_eq!(says(Bound { honest: 3, ..Bound::of(20) }, None), Ok(15));
    let persons = Bound { unit: Unit::Person(3), ..Bound::of(20) };
    assert_eq!(says(persons, None), Err(No::OtherUnit { account: Unit::Person(3), policy: Unit::Row }));
    // Settled by a run that began, before its first answer.
    let mut begun = Account::default();
    noted(&mut begun, Note::Sites(SET));
    let policy = Policy { unit: Unit::Person(3), ..Policy::default() };
    let of_persons =
        PlanFacts { gives: Gives::Noisy { nano_rho: 10, unit: Unit::Person(3), max_rows: 1 << 20 }, ..noisy(10) };
    let says = |account: &Account| judge(&of_persons, &policy, account, None).yes().map(|yes| yes.left);
    assert!(says(&begun).is_ok());
    noted(&mut begun, Note::Begun { plan: Hash([9; 32]), nano_rho: 10 });
    assert_eq!(says(&begun), Err(No::OtherUnit { account: Unit::Row, policy: Unit::Person(3) }));
    // Raised by a later entry.
    let mut account = account(5);
    for cap in [10, 20] {
        noted(&mut account, Note::Account(Bound::of(cap)));
    }
    assert_eq!(cap_of(&Policy::default(), &account), Ok(20));
}

fn names(v: &Value) -> Option<Vec<String>> {
    serde_json::from_value(v.clone()).expect("names or none")
}

fn unit(v: &Value) -> Unit {
    v.as_u64().map_or(Unit::Row, Unit::Person)
}

fn policy(v: &Value) -> Policy {
    let floor = Floor {
        min_cohort: number(&v["min_cohort"]) as u16,
        max_rounds: number(&v["max_rounds"]) as u32,
        ..Floor::default()
    };
    Policy {
        floor,
        methods: names(&v["methods"]),
        columns: names(&v["columns"]),
        nano_rho: v["nano_rho"].as_u64(),
        exact: serde_json::from_value::<Exact>(v["exact"].clone()).expect("exact"),
        unit: unit(&v["rows_per_person"]),
        ..Policy::default()
    }
}

/// What a site takes and refuses, against `protocol/vectors/v4/policy.json`, which a second implementation writes.
#[test]
fn pol_1_to_10_sizes_questions_plans_and_accounts() {
    let mut terms = (*veilsum_testkit::kit::Kit::new(3, |_| {}).terms).clone();
    let mut refused = 0;
    for c in cases("policy") {
        let policy = policy(&c["policy"]);
        let found = match c["function"].as_str().expect("a name") {
            "size" => {
                terms.min_cohort = number(&c["least"]) as u16;
                terms.sites = serde_json::from_value(c["sites"].clone()).expect("same or any");
                let least = terms.least(number(&c["roster"]) as usize);
                policy.floor.check_size(least, number(&c["over"]) as usize).map_err(Below::rule)
            }
            "questions" => policy.floor.check_questions(number(&c["questions"])).map_err(Below::rule),
            "plan" => {
                let columns = names(&c["columns"]).expect("columns").iter().map(|name| name_of(name)).collect();
                let gives = Gives::Noisy { nano_rho: 1, unit: unit(&c["rows"]), max_rows: 1 << 20 };
                let method = name_of(c["method"].as_str().expect("a method"));
                check_plan(&PlanFacts { columns, method, gives, ..noisy(0) }, &policy, &Account::default())
                    .map_err(|no| no.rule())
            }
            "account" => {
                let facts = c["nano_rho"].as_u64().map_or_else(exact, noisy);
                let mut account = account(number(&c["spent"]));
                let bound = Bound { nano_rho: number(&c["cap"]), before: number(&c["before"]), ..Bound::default() };
                noted(&mut account, Note::Account(bound));
                if c["agreed"] == true {
                    let totals = if facts.gives.is_exact() { Totals::Exact(None) } else { Totals::Noisy };
                    noted(&mut account, Note::Agreed { plan: PLAN, totals });
                }
                let policy = Policy { ask: Ask::Always, ..policy };
                judge(&facts, &policy, &account, None).yes().map(|_| ()).map_err(|no| no.rule())
            }
            other => panic!("a function that this test does not know: {other}"),
        };
        assert_eq!(json!(found.err()), c.get("rule").cloned().unwrap_or_default(), "{c}");
        refused += usize::from(found.is_err());
    }
    assert!(refused > 10, "{refused}");
}
