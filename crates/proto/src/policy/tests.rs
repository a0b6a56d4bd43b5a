use super::*;
use crate::testing::Kit;

/// The first question, of five sites.
fn asked() -> Asked {
    Asked {
        context: Hash::default(),
        run: Hash::default(),
        slot: (0, 0),
        cohort: (0..5).collect(),
        words: 1,
        query: Vec::new(),
        rounds: 1,
        sites: 5,
    }
}

/// One noisy question of federated fuzzy c-means that a site without a policy file answers.
fn ordinary() -> Request<'static> {
    Request {
        plan: PlanFacts { method: "fcm", columns: vec!["age", "bmi"], rows_per_person: None },
        cost: Cost { scalars: 9, nano_rho: Some(20) },
        agreed: true,
        ..Request::default()
    }
}

/// [`decide`] makes every check, of which `protocol/vectors/v4/policy.json` has the cases.
#[test]
fn pol_1_to_9_every_check_is_made() {
    type Change = fn(&mut Policy, &mut Request<'static>, &mut Spent, &mut Asked);
    let changes: [(Change, Result<(), Rule>); 21] = [
        (|_, _, _, _| {}, Ok(())),
        (|_, _, _, a| a.cohort.truncate(2), Err(Rule::Pol1)),
        (|p, _, _, _| p.floor.min_cohort = 6, Err(Rule::Pol1)),
        // A new run is no new allowance.
        (|p, r, _, a| (p.floor.max_rounds, r.of_plan, a.rounds) = (10, 10, 10), Ok(())),
        (|p, _, _, a| (p.floor.max_rounds, a.rounds) = (10, 11), Err(Rule::Pol2)),
        (|p, r, _, _| (p.floor.max_rounds, r.of_plan) = (10, 11), Err(Rule::Pol2)),
        (|p, _, _, _| p.methods = Some(vec!["kmeans".into()]), Err(Rule::Pol4)),
        (|p, _, _, _| p.methods = Some(vec!["kmeans".into(), "fcm".into()]), Ok(())),
        (|p, _, _, _| p.columns = Some(vec!["age".into()]), Err(Rule::Pol4)),
        (|p, _, _, _| p.columns = Some(vec!["bmi".into(), "size".into(), "age".into()]), Ok(())),
        (|_, r, _, _| r.plan.rows_per_person = Some(3), Err(Rule::Pol4)),
        (|p, r, _, _| (p.rows_per_person, r.plan.rows_per_person) = (Some(3), Some(3)), Ok(())),
        // The cap is kept to the last 10^-9 of rho, and no sum of it wraps.
        (|p, _, s, _| (p.nano_rho, s.nano_rho) = (100, 80), Ok(())),
        (|p, _, s, _| (p.nano_rho, s.nano_rho) = (100, 81), Err(Rule::Pol8)),
        (|_, r, s, _| (r.cost.nano_rho, s.nano_rho) = (Some(u64::MAX), 60), Err(Rule::Pol8)),
        // What was given before, to the bit, costs nothing again.
        (|p, r, _, _| (p.nano_rho, r.repeated) = (0, true), Ok(())),
        // Exact answers neither use the account nor are stopped by it, and leave by agreement only.
        (|_, r, s, _| (r.cost.nano_rho, r.agreed, s.nano_rho) = (None, true, u64::MAX), Ok(())),
        (|_, r, _, _| (r.cost.nano_rho, r.agreed) = (None, false), Err(Rule::Pol9)),
        (|_, r, _, _| r.agreed = false, Err(Rule::Pol10)),
        (|p, r, _, _| (p.exact, r.cost.nano_rho, r.agreed) = (Exact::Never, None, true), Err(Rule::Pol9)),
        // Who says nothing of an answer gets no consent.
        (|_, r, _, _| *r = Request::default(), Err(Rule::Pol9)),
    ];
    let kit = Kit::new(5, |_| {});
    for (i, (change, expected)) in changes.iter().enumerate() {
        let (mut policy, mut request, mut spent) = (Policy::default(), ordinary(), Spent::default());
        let mut asked = asked();
        change(&mut policy, &mut request, &mut spent, &mut asked);
        let found = decide(&kit.terms, &policy, &asked, &request, &spent);
        assert_eq!(found.map(|_| ()).map_err(|e| e.rule().expect("a rule")), *expected, "change {i}");
    }
}

#[test]
fn rho_is_read_by_people() {
    let shown = [0, 1, 250_000_000, 1_000_000_000, 333_333_333, 12_500_000_000].map(rho_text);
    assert_eq!(shown, ["0", "0.0001", "0.25", "1", "0.3334", "12.5"]);
    // What is spent and what is left are never more together than there is.
    assert_eq!([666_666_667, 99_999, 750_000_000].map(left_text), ["0.6666", "0", "0.75"]);
}
