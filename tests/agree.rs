//! What a site answers without a question, and what waits for its operator ([POL-9], [POL-10]).

use veilsum_node::{
    documents::Federation,
    door::{Ask, Data, Ledger, Needs, Policy, Table, Verdict, judge},
    refusal::refused,
};
use veilsum_proto::{plan::Sites, suite::Hash};
use veilsum_testkit::{
    cast::Cast,
    in_process::{fcm, unit_square},
};

fn federation(sites: &[&str], noisy: bool, any: Sites) -> (Cast, Policy) {
    let seeding = veilsum_cluster::method::Seeding::Uniform { seed: 1 };
    let exact = fcm(unit_square(), 2, 0.0, 4, seeding);
    let work = if noisy { crate::noise::work(0.0025) } else { exact };
    let cast = Cast::new(&work, sites, |terms| (terms.sites, terms.min_total_rows) = (any, 400)).expect("a federation");
    let policy = Policy { max_rows: cast.federation.terms.max_rows, ..Policy::default() };
    (cast, policy)
}

fn says(federation: &Federation, policy: &Policy, ledger: &Ledger) -> Verdict {
    judge(&federation.facts(), policy, ledger.account(), None)
}

/// [POL-10]: the first set of sites of an account, and one more site, wait for the operator; accepting the roster is the agreement, for
/// good, and from then on plans with noise are answered without a question, whatever rows there are.
#[test]
fn pol_10_a_set_of_sites_is_agreed_to_once() {
    let (cast, policy) = federation(&["one", "two", "three"], true, Sites::Same);
    let (more, _) = federation(&["one", "two", "three", "four"], true, Sites::Same);
    let table = |rows| Data { name: "rows".into(), table: Some(Table { rows, digest: Hash([rows as u8; 32]) }) };
    let mut ledger = Ledger::in_memory(cast.identities[2].clone(), table(100));
    for federation in [&cast.federation, &more.federation] {
        let verdict = says(federation, &policy, &ledger);
        assert_eq!(verdict, Verdict::NeedsAgreement(vec![Needs::Set]));
        let told = refused(&verdict.yes().expect_err("nobody agreed")).to_string();
        for words in ["veilsum agree plan.toml", "sites that this account does not name yet", "[POL-10]"] {
            assert!(told.contains(words), "{told}");
        }
        ledger.accept(federation.facts().set).expect("a note");
        assert!(matches!(says(federation, &policy, &ledger), Verdict::Yes(_)));
    }
    // Back to three, and forth: both are named.
    for federation in [&cast.federation, &more.federation] {
        assert!(matches!(says(federation, &policy, &ledger), Verdict::Yes(_)));
    }
}

/// [POL-9], [POL-10]: what waits for the operator beside it, one agreement for all of it, and nothing of another plan.
#[test]
fn pol_10_plans_over_any_sites_and_careful_sites() {
    let names = ["one", "two", "three", "four"];
    let careful = |policy: &Policy| Policy { ask: Ask::Always, ..policy.clone() };
    let open = |policy: &Policy| Policy { sites: Sites::Any, ..policy.clone() };
    let same: fn(&Policy) -> Policy = Policy::clone;
    for (noisy, sites, policy, waits) in [
        (true, Sites::Same, same as fn(&Policy) -> Policy, vec![]),
        (true, Sites::Same, careful, vec![Needs::Always]),
        (true, Sites::Any, same, vec![Needs::AnySites]),
        (true, Sites::Any, open, vec![]),
        (false, Sites::Same, same, vec![Needs::Exact]),
        (false, Sites::Same, open, vec![Needs::Exact]),
        (false, Sites::Same, careful, vec![Needs::Exact, Needs::Always]),
    ] {
        let (cast, base) = federation(&names, noisy, sites);
        let policy = policy(&base);
        let data = Data { name: "rows".into(), table: Some(Table { rows: 9, digest: Hash([9; 32]) }) };
        let mut ledger = Ledger::in_memory(cast.identities[2].clone(), data);
        ledger.accept(cast.federation.facts().set).expect("a note");
        match says(&cast.federation, &policy, &ledger) {
            Verdict::Yes(_) => assert!(waits.is_empty(), "{waits:?}"),
            Verdict::NeedsAgreement(needs) => assert_eq!(needs, waits),
            Verdict::No(why) => panic!("{why}"),
        }
        let before = ledger.head().entries;
        ledger.agree(&cast.federation.facts(), &policy).expect("a note").expect("a plan that may be agreed to");
        assert_eq!(ledger.head().entries - before, u64::from(!waits.is_empty()), "{waits:?}");
        assert!(matches!(says(&cast.federation, &policy, &ledger), Verdict::Yes(_)), "{waits:?}");
        let mut another = cast.federation.clone();
        std::sync::Arc::make_mut(&mut another.terms).slots += 1;
        assert_eq!(matches!(says(&another, &policy, &ledger), Verdict::Yes(_)), waits.is_empty());
    }
}
