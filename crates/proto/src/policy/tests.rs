use super::*;
use crate::{identity::PublicKey, testing::Kit};

/// Of one block of all.
fn asked(rounds: u32, cohort: u16) -> Asked {
    let members: Vec<release::Member> = (0..cohort)
        .map(|site| release::Member { site, key: PublicKey([site as u8; 32]), standing: Default::default() })
        .collect();
    let blocks = Blocks::of(&members, &[(0..cohort).collect()]).unwrap();
    let own = OwnBlock { id: blocks.0[0].id, members: members.iter().map(|m| (m.id(), 0)).collect() };
    Asked {
        context: Hash::default(),
        run: Hash::default(),
        slot: (0, 0),
        cohort: (0..cohort).collect(),
        words: 1,
        query: Vec::new(),
        rounds,
        blocks: Arc::new(blocks),
        own,
        sites: 5,
    }
}

/// One noisy question of federated fuzzy c-means that a site without a policy file answers.
fn ordinary() -> Request<'static> {
    Request {
        plan: PlanFacts { method: "fcm", columns: vec!["age", "bmi"], rows_per_person: None },
        cost: Cost { scalars: 9, nano_rho: Some(20) },
        ..Request::default()
    }
}

fn rule(change: impl Fn(&mut Policy, &mut Request<'static>, &mut Spent)) -> Result<(), Rule> {
    let kit = Kit::new(5, |_| {});
    let (mut policy, mut request, mut spent) = (Policy::default(), ordinary(), Spent::default());
    change(&mut policy, &mut request, &mut spent);
    decide(&kit.terms, &policy, &asked(1, 5), &request, &spent).map(|_| ()).map_err(|e| e.rule().expect("a rule"))
}

/// [POL-1], [POL-2].
#[test]
fn a_new_run_is_no_new_allowance() {
    let kit = Kit::new(5, |_| {});
    let floor = Floor { max_rounds: 10, ..Floor::default() };
    let decide = |floor: &Floor, asked: &Asked, of_plan: u64| {
        let (request, policy) =
            (Request { of_plan, ..ordinary() }, Policy { floor: floor.clone(), ..Policy::default() });
        super::decide(&kit.terms, &policy, asked, &request, &Spent::default()).map_err(|e| e.rule().unwrap())
    };
    assert!(decide(&floor, &asked(10, 5), 10).is_ok());
    assert_eq!(decide(&floor, &asked(11, 5), 1).unwrap_err(), Rule::Pol2);
    assert_eq!(decide(&floor, &asked(1, 5), 11).unwrap_err(), Rule::Pol2);
    assert_eq!(decide(&floor, &asked(1, 2), 1).unwrap_err(), Rule::Pol1, "two sites");
    let strict = Floor { min_cohort: 5, ..floor };
    assert_eq!(decide(&strict, &asked(1, 4), 1).unwrap_err(), Rule::Pol1);
}

/// [REL-3] to [REL-5], [REL-7]: a site's consent rests on the block that its data set belongs to.
#[test]
fn only_the_block_of_the_data_set_is_answered() {
    let question = asked(1, 5);
    let answer = |contributors: u32, change: &dyn Fn(&mut OwnBlock)| {
        let kit = Kit::new(5, |_| {});
        let mut before = question.own.clone();
        change(&mut before);
        let request = Request { before: Some(&before), ..ordinary() };
        let policy = Policy { floor: Floor { contributors, ..Floor::default() }, ..Policy::default() };
        decide(&kit.terms, &policy, &question, &request, &Spent::default()).map(|_| ()).map_err(|e| e.rule().unwrap())
    };
    assert_eq!(answer(2, &|_| {}), Ok(()));
    assert_eq!(answer(4, &|_| {}), Ok(()), "and one that looks at what is opened");
    assert_eq!(answer(6, &|_| {}), Err(Rule::Rel3));
    assert_eq!(answer(2, &|before| before.id = Hash::default()), Err(Rule::Rel5));
    assert_eq!(answer(2, &|before| before.members[1].1 = 9), Err(Rule::Rel7));
    let drawn = Request { drawn: Some(&[0, 1, 2]), ..ordinary() };
    let kit = Kit::new(5, |_| {});
    let error = decide(&kit.terms, &Policy::default(), &question, &drawn, &Spent::default()).unwrap_err();
    assert_eq!(error.rule().unwrap(), Rule::Rel4);
}

/// [POL-9]: who says nothing of an answer gets no consent.
#[test]
fn what_an_application_leaves_out_forbids() {
    let kit = Kit::new(5, |_| {});
    let error =
        decide(&kit.terms, &Policy::default(), &asked(1, 5), &Request::default(), &Spent::default()).unwrap_err();
    assert_eq!(error.rule().unwrap(), Rule::Pol9);
    assert_eq!(rule(|_, _, _| {}), Ok(()));
}

/// [POL-4].
#[test]
fn pol_4_methods_and_columns_are_those_of_the_lists() {
    assert_eq!(rule(|policy, _, _| policy.methods = Some(vec!["kmeans".into()])), Err(Rule::Pol4));
    assert_eq!(rule(|policy, _, _| policy.methods = Some(vec!["kmeans".into(), "fcm".into()])), Ok(()));
    assert_eq!(rule(|policy, _, _| policy.columns = Some(vec!["age".into()])), Err(Rule::Pol4));
    assert_eq!(rule(|policy, _, _| policy.columns = Some(vec!["weight".into(), "size".into()])), Err(Rule::Pol4));
    let list = || Some(vec!["bmi".into(), "size".into(), "age".into()]);
    assert_eq!(rule(|policy, _, _| policy.columns = list()), Ok(()));
}

/// [POL-4]: a plan that hides persons is for sites that say whose rows are whose, and count no more of one than it allows.
#[test]
fn pol_4_a_plan_that_hides_persons_is_for_sites_that_cut_their_rows() {
    let judged = |plan: Option<u64>, own: Option<u64>| {
        rule(move |policy, request, _| (policy.rows_per_person, request.plan.rows_per_person) = (own, plan))
    };
    for (plan, own, answer) in [
        (None, None, Ok(())),
        (None, Some(9), Ok(())),
        (Some(3), None, Err(Rule::Pol4)),
        (Some(3), Some(4), Err(Rule::Pol4)),
        (Some(3), Some(3), Ok(())),
        (Some(3), Some(1), Ok(())),
    ] {
        assert_eq!(judged(plan, own), answer, "{plan:?}, {own:?}");
    }
}

/// [POL-8]: the cap is kept to the last 10^-9 of rho, and no sum of it wraps.
#[test]
fn pol_8_the_account_has_a_cap() {
    let noised = |cap: u64, before: u64, asks: u64| {
        rule(move |policy, request, spent| {
            (policy.nano_rho, spent.nano_rho) = (cap, before);
            request.cost.nano_rho = Some(asks);
        })
    };
    assert_eq!(noised(100, 60, 40), Ok(()));
    assert_eq!(noised(100, 60, 41), Err(Rule::Pol8));
    assert_eq!(noised(100, 60, u64::MAX), Err(Rule::Pol8));
    // What was given before, to the bit, costs nothing again.
    assert_eq!(rule(|policy, request, _| (policy.nano_rho, request.repeated) = (0, true)), Ok(()));
    // Exact answers neither use the account nor are stopped by it.
    let exact = |spent| {
        rule(move |policy, request, before| {
            (policy.nano_rho, before.nano_rho) = (100, spent);
            (request.cost.nano_rho, request.agreed) = (None, true);
        })
    };
    assert_eq!((exact(0), exact(1_000)), (Ok(()), Ok(())));
}

/// [POL-9]: nothing leaves without noise but what the operator agreed to, and a policy may forbid even that.
#[test]
fn pol_9_exact_totals_leave_by_agreement_only() {
    let exact = |agreed: bool, exact: Exact| {
        rule(move |policy, request, _| {
            (policy.exact, request.agreed, request.cost.nano_rho) = (exact, agreed, None);
        })
    };
    assert_eq!(exact(true, Exact::ByAgreement), Ok(()));
    assert_eq!(exact(false, Exact::ByAgreement), Err(Rule::Pol9));
    assert_eq!(exact(true, Exact::Never), Err(Rule::Pol9));
}

#[test]
fn rho_is_read_by_people() {
    let shown = [0, 1, 250_000_000, 1_000_000_000, 333_333_333, 12_500_000_000].map(rho_text);
    assert_eq!(shown, ["0", "0.0001", "0.25", "1", "0.3334", "12.5"]);
    // What is spent and what is left are never more together than there is.
    assert_eq!([666_666_667, 99_999, 750_000_000].map(left_text), ["0.6666", "0", "0.75"]);
}
