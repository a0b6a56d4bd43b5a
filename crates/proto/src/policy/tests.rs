use super::*;
use crate::{identity::PublicKey, testing::Kit};

/// Of one block of all.
fn asked(rounds: u32, cohort: u16) -> Asked {
    let members: Vec<release::Member> = (0..cohort)
        .map(|site| release::Member { site, key: PublicKey([site as u8; 32]), standing: Default::default() })
        .collect();
    let blocks = Blocks::of(&members, &[(0..cohort).collect()]).unwrap();
    let own = OwnBlock { id: blocks.0[0].id, members: members.iter().map(|m| (m.key, 0)).collect() };
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

/// One question of federated fuzzy c-means that a strict site answers.
fn ordinary() -> Request<'static> {
    Request {
        sites: 5,
        own_rows: 500,
        rows_in_all: 3_000,
        columns: 2,
        plan: PlanFacts { method: "fcm", columns: vec!["age", "bmi"], ask_first: true, ..PlanFacts::default() },
        cost: Cost { scalars: 9, milli_bits: 9 * 33_000, nano_rho: None },
        ..Request::default()
    }
}

fn rule(
    change: impl Fn(&mut Terms, &mut Policy, &mut Request<'static>, &mut Spent),
) -> Result<(), (&'static str, String)> {
    let kit = Kit::new(5, |_| {});
    let mut terms = (*kit.terms).clone();
    (terms.opening, terms.max_rows, terms.colluders) = (true, 600, 1);
    let (mut policy, mut request, mut spent) = (Policy::default(), ordinary(), Spent::default());
    change(&mut terms, &mut policy, &mut request, &mut spent);
    decide(&terms, &policy, &asked(1, 5), &request, &spent)
        .map(|_| ())
        .map_err(|e| (e.rule().map_or("", |rule| rule.0), e.to_string()))
}

fn refused(change: impl Fn(&mut Terms, &mut Policy, &mut Request<'static>, &mut Spent)) -> &'static str {
    rule(change).expect_err("refused").0
}

/// [POL-1], [POL-2].
#[test]
fn a_new_run_is_no_new_allowance() {
    let kit = Kit::new(5, |_| {});
    let policy = Policy::only(Floor { max_rounds: 10, ..Floor::default() });
    let decide = |policy: &Policy, asked: &Asked, of_plan: u64| {
        let request = Request { of_plan, ..Request::default() };
        super::decide(&kit.terms, policy, asked, &request, &Spent::default()).map_err(|e| e.rule().unwrap().0)
    };
    assert!(decide(&policy, &asked(10, 5), 10).is_ok());
    assert_eq!(decide(&policy, &asked(11, 5), 1).unwrap_err(), "POL-2");
    assert_eq!(decide(&policy, &asked(1, 5), 11).unwrap_err(), "POL-2");
    assert_eq!(decide(&policy, &asked(1, 2), 1).unwrap_err(), "POL-1", "two sites");
    let strict = Policy::only(Floor { min_cohort: 5, ..policy.floor.clone() });
    assert_eq!(decide(&strict, &asked(1, 4), 1).unwrap_err(), "POL-1");
}

/// [REL-3] to [REL-5], [REL-7]: a site's consent rests on the block that its data set belongs to.
#[test]
fn only_the_block_of_the_data_set_is_answered() {
    let question = asked(1, 5);
    let answer = |contributors: u32, change: &dyn Fn(&mut OwnBlock)| {
        let kit = Kit::new(5, |_| {});
        let mut before = question.own.clone();
        change(&mut before);
        let request = Request { before: Some(&before), ..Request::default() };
        let policy = Policy::only(Floor { contributors, ..Floor::default() });
        decide(&kit.terms, &policy, &question, &request, &Spent::default()).map(|_| ()).map_err(|e| e.rule().unwrap().0)
    };
    assert_eq!(answer(2, &|_| {}), Ok(()));
    assert_eq!(answer(4, &|_| {}), Ok(()), "four and one that looks at what is opened");
    assert_eq!(answer(5, &|_| {}), Err("REL-3"));
    assert_eq!(answer(2, &|before| before.id = Hash::default()), Err("REL-5"));
    assert_eq!(answer(2, &|before| before.members[1].1 = 9), Err("REL-7"));
    let drawn = Request { drawn: Some(&[0, 1, 2]), ..Request::default() };
    let (kit, policy) = (Kit::new(5, |_| {}), Policy::only(Floor::default()));
    let error = decide(&kit.terms, &policy, &question, &drawn, &Spent::default()).unwrap_err();
    assert_eq!(error.rule().unwrap().0, "REL-4");
}

#[test]
fn who_says_nothing_of_an_answer_gets_no_consent_from_a_strict_site() {
    let kit = Kit::new(5, |_| {});
    assert!(decide(&kit.terms, &Policy::default(), &asked(1, 5), &Request::default(), &Spent::default()).is_err());
    assert!(rule(|_, _, _, _| {}).is_ok());
}

/// [POL-4].
#[test]
fn pol_4_what_a_plan_must_promise() {
    assert_eq!(refused(|terms, _, _, _| terms.opening = false), "POL-4");
    assert!(rule(|terms, policy, _, _| (terms.opening, policy.opening) = (false, false)).is_ok());
    assert_eq!(refused(|_, policy, _, _| policy.min_rows = 501), "POL-4");
    assert_eq!(refused(|_, policy, _, _| policy.methods = Some(vec!["kmeans".into()])), "POL-4");
    assert!(rule(|_, policy, _, _| policy.methods = Some(vec!["kmeans".into(), "fcm".into()])).is_ok());
    assert_eq!(refused(|_, policy, _, _| policy.columns = Some(vec!["age".into()])), "POL-4");
    assert_eq!(refused(|_, policy, _, _| policy.columns = Some(vec!["weight".into(), "size".into()])), "POL-4");
    assert!(rule(|_, policy, _, _| policy.columns = Some(vec!["bmi".into(), "size".into(), "age".into()])).is_ok());
    let grouped = |t, p, ask_first| {
        rule(move |_, _, request, _| {
            (request.plan.groups, request.plan.contributors) = (true, t);
            (request.plan.records, request.plan.ask_first) = (p, ask_first);
        })
    };
    assert!(grouped(2, 10, true).is_ok());
    for (t, p, first) in [(1, 10, true), (2, 9, true), (2, 10, false)] {
        assert_eq!(grouped(t, p, first).unwrap_err().0, "POL-4", "{t} {p} {first}");
    }
    // A site that asks for nothing may be asked everything at once.
    let nothing = rule(|_, policy, request, _| {
        (policy.floor.contributors, policy.records, request.plan.groups) = (1, 1, true);
        (request.plan.contributors, request.plan.records, request.plan.ask_first) = (1, 1, false);
    });
    assert!(nothing.is_ok());
}

/// [POL-5].
#[test]
fn pol_5_limits_over_all_plans() {
    assert!(rule(|_, policy, _, spent| (policy.max_runs, spent.runs) = (2, 2)).is_ok());
    assert_eq!(refused(|_, policy, _, spent| (policy.max_runs, spent.runs) = (2, 3)), "POL-5");
    assert!(rule(|_, policy, _, spent| (policy.max_rounds_in_all, spent.questions) = (7, 6)).is_ok());
    assert_eq!(refused(|_, policy, _, spent| (policy.max_rounds_in_all, spent.questions) = (7, 7)), "POL-5");
}

/// [POL-6]: where totals are opened, the centres follow from them.
#[test]
fn pol_6_centres_keep_apart() {
    let near = |opening: bool, apart: u64| {
        rule(move |terms, policy, request, _| {
            (terms.opening, policy.opening) = (opening, false);
            request.separation_ppm = Some(apart);
        })
    };
    assert!(near(true, 1).is_ok() && near(false, 100_000).is_ok());
    assert_eq!(near(false, 99_999).unwrap_err().0, "POL-6");
}

/// [POL-8].
#[test]
fn pol_8_noise_has_a_budget_of_its_own() {
    let noised = |budget: u64, spent: u64, asks: u64| {
        rule(move |_, policy, request, before| {
            (policy.noise.nano_rho, before.nano_rho) = (budget, spent);
            // Numbers that no exact answer could give.
            request.cost = Cost { scalars: 1 << 40, milli_bits: 1 << 50, nano_rho: Some(asks) };
        })
    };
    assert!(noised(100, 60, 40).is_ok());
    assert_eq!(noised(100, 60, 41).unwrap_err().0, "POL-8");
    assert_eq!(noised(100, 60, u64::MAX).unwrap_err().0, "POL-8");
    assert_eq!(refused(|_, policy, _, _| policy.noise.required = true), "POL-8");
}

/// [POL-9].
#[test]
fn pol_9_the_release_rule_can_be_reported_or_off_and_repeats_are_free() {
    let full = |_: &mut Terms, _: &mut Policy, _: &mut Request<'static>, spent: &mut Spent| spent.scalars = 1_200;
    let (id, text) = rule(full).unwrap_err();
    assert!(id == "POL-9" && text.contains("101 %"), "{text}");
    for rule_is in [Enforcement::Report, Enforcement::Off] {
        assert!(rule(|_, policy, _, spent| (policy.release.rule, spent.scalars) = (rule_is, 1_200)).is_ok());
    }
    assert!(rule(|_, _, request, spent| (request.repeated, spent.scalars) = (true, 1_200)).is_ok());
}

/// [POL-9]: of smooth questions the rank counts, twice, beside the numbers of all others one by one; against one room of 1,200
/// numbers, so that neither is allowed more than alone.
#[test]
fn pol_9_smooth_questions_count_by_their_rank() {
    let asks = |hard: u64, rank: u64, milli_bits: u64| {
        rule(move |_, _, request, spent| {
            // 90 smooth questions before, of 9 numbers and 297 bits each.
            (spent.scalars, spent.milli_bits) = (90 * 9 + hard, 90 * 297_000 + hard * 10_000);
            let before = Smooth { rank: 70, milli_bits: 1_000_000, instead: (90 * 9, 90 * 297_000) };
            let instead = (91 * 9, 91 * 297_000);
            (spent.smooth, request.smooth) = (before, Some(Smooth { rank, milli_bits, instead }));
        })
        .map_err(|(rule, _)| rule)
    };
    assert_eq!(asks(0, 72, 1_000_000), Ok(()));
    assert_eq!((asks(0, 600, 1_000_000), asks(0, 601, 1_000_000)), (Ok(()), Err("POL-9")));
    assert_eq!((asks(1_056, 72, 1_000_000), asks(1_057, 72, 1_000_000)), (Ok(()), Err("POL-9")));
    let room = room(2_400, 2, 10, None);
    assert_eq!(
        (room.scalars, asks(0, 72, room.milli_bits), asks(0, 72, room.milli_bits + 1)),
        (1_200, Ok(()), Err("POL-9"))
    );
    let hard = 10 * 10_000;
    assert_eq!(
        (asks(10, 72, room.milli_bits - hard), asks(10, 72, room.milli_bits - hard + 1)),
        (Ok(()), Err("POL-9"))
    );
}

/// [POL-9]: a smooth question that was not measured counts by its numbers, beside the rank of those before; and where few rows
/// are possible everything does.
#[test]
fn pol_9_what_was_not_measured_counts_one_by_one() {
    let asks = |before: u64, smooth: Option<Smooth>, domain: Option<u64>| {
        rule(move |_, _, request, spent| {
            (spent.scalars, spent.smooth) = (before, Smooth { rank: 10, milli_bits: 1_000, instead: (before, 0) });
            (request.smooth, request.domain) = (smooth, domain);
            request.cost = Cost { scalars: 1_180, milli_bits: 0, nano_rho: None };
        })
        .map_err(|(rule, _)| rule)
    };
    // 2 · 10 + 1,180 of 1,200.
    assert_eq!(asks(50_000, None, None), Ok(()));
    let measured = Smooth { rank: 11, milli_bits: 1_100, instead: (51_180, 0) };
    assert_eq!(asks(50_000, Some(measured), None), Ok(()));
    assert_eq!(asks(50_000, Some(measured), Some(1 << 32)), Err("POL-9"));
    assert_eq!(asks(20, Some(Smooth { instead: (1_200, 0), ..measured }), Some(1 << 32)), Ok(()));
    assert_eq!(asks(20, Some(Smooth { instead: (1_200, 0), ..measured }), Some(48)), Err("POL-9"));
}

/// [POL-9]: what colludes knows its own rows, and a site's own rows stay when all others collude.
#[test]
fn pol_9_rows_of_supposed_colluders_do_not_count() {
    let left = |own: u64, all: u64, colluders: u16| {
        let kit = Kit::new(5, |_| {});
        let mut terms = (*kit.terms).clone();
        (terms.max_rows, terms.colluders) = (600, 1);
        let mut policy = Policy::default();
        policy.floor.colluders = colluders;
        honest_rows(&terms, &policy, &Request { own_rows: own, rows_in_all: all, sites: 5, ..Request::default() })
    };
    assert_eq!((left(500, 3_000, 0), left(500, 3_000, 3), left(500, 3_000, 4)), (2_400, 1_200, 600));
    // Of its own a site lets show no more than the power of two below; whoever says that there are more rows than the plan
    // allows all sites is not believed.
    assert_eq!((left(500, 900, 1), left(500, 500, 0), left(512, 3_000, u16::MAX)), (300, 256, 512));
    assert_eq!((left(500, u64::MAX, 0), left(0, 0, 1)), (2_400, 0));
}

/// [POL-4]: the difference of two sums of one group is that of the rows in between.
#[test]
fn pol_4_a_plan_that_asks_a_sum_again_for_a_few_rows_is_refused() {
    let terms = Terms { opening: true, ..(*Kit::new(5, |_| {}).terms).clone() };
    let policy = Policy::default();
    let plan = |change| PlanFacts {
        method: "kmeans",
        groups: true,
        contributors: 2,
        records: 10,
        ask_first: true,
        change,
        ..PlanFacts::default()
    };
    for (change, allowed) in [(Some(1), false), (Some(4), false), (Some(5), true), (Some(9), true), (None, true)] {
        let found = check_plan(&terms, &policy, &plan(change));
        assert_eq!(found.is_ok(), allowed, "{change:?}: {found:?}");
        assert!(check_plan(&terms, &Policy::only(Floor::default()), &plan(change)).is_ok());
    }
}

/// [POL-4]: a count by label may be of one row, whatever the rule of the sums.
#[test]
fn pol_4_a_plan_that_counts_by_label_is_refused_where_groups_must_be_large() {
    let terms = Terms { opening: true, ..(*Kit::new(5, |_| {}).terms).clone() };
    let plan =
        PlanFacts { method: "fcm", cells: true, contributors: 2, records: 10, ask_first: true, ..PlanFacts::default() };
    let asks = |contributors, records| {
        let floor = Floor { contributors, ..Floor::default() };
        let found = check_plan(&terms, &Policy { floor, records, ..Policy::default() }, &plan);
        found.map_err(|e| (e.rule().map(|rule| rule.0), e.to_string().contains("does not release")))
    };
    assert_eq!(asks(2, 10), Err((Some("POL-4"), true)));
    assert_eq!(asks(1, 2), Err((Some("POL-4"), true)));
    assert_eq!(asks(2, 1), Err((Some("POL-4"), true)));
    assert_eq!(asks(1, 1), Ok(()));
    assert!(check_plan(&terms, &Policy::default(), &PlanFacts { cells: false, ..plan.clone() }).is_ok());
}

/// [POL-9]: few possible rows, as the site's own suggest, stop what many rows would allow; the operator's word goes before.
#[test]
fn pol_9_few_possible_rows_leave_little_room() {
    let asks = |policy: Option<u64>, request: Option<u64>| {
        rule(|_, p, r, _| {
            (p.release.domain, r.domain) = (policy, request);
            r.cost = Cost { scalars: 40, milli_bits: 40 * 33_000, nano_rho: None };
        })
        .map_err(|(rule, _)| rule)
    };
    assert_eq!(asks(None, None), Ok(()));
    assert_eq!(asks(None, Some(49)), Err("POL-9"));
    assert_eq!(asks(None, Some(1 << 32)), Ok(()));
    assert_eq!(asks(Some(1 << 32), Some(49)), Ok(()));
    assert_eq!(asks(Some(49), Some(1 << 32)), Err("POL-9"));
}

/// [POL-6]: also where totals are opened, if the operator says so.
#[test]
fn pol_6_centres_that_were_steered_together_are_refused_where_the_operator_asks() {
    let apart = |opening: bool, opened: u64| {
        rule(|t, p, r, _| {
            (t.opening, p.opening, p.separation_opened_ppm, r.separation_ppm) = (opening, false, opened, Some(10));
        })
        .map_err(|(rule, _)| rule)
    };
    assert_eq!((apart(true, 0), apart(true, 11), apart(false, 0)), (Ok(()), Err("POL-6"), Err("POL-6")));
}

/// [POL-9]: where measuring is said to decide nothing, whatever it could find is allowed: at most as many directions as numbers, and
/// at most the bits that they have apart.
#[test]
fn pol_9_what_need_not_be_measured_is_allowed_however_it_measures() {
    let kit = Kit::new(5, |_| {});
    let mut terms = (*kit.terms).clone();
    (terms.opening, terms.max_rows, terms.colluders) = (true, 600, 1);
    let (mut policy, mut waits) = (Policy::default(), 0);
    policy.release.rule = Enforcement::Enforce;
    for scalars in (0..1_300).step_by(13) {
        for bits in [1, 20, 45, 63] {
            for (before, domain) in [(0, None), (100, None), (400, None), (100, Some(1 << 32))] {
                let cost = |scalars| Cost { scalars, milli_bits: scalars * bits * 1_000, nano_rho: None };
                let request = Request { cost: cost(scalars), domain, ..ordinary() };
                let mut spent = Spent::default();
                spent.add(&cost(before));
                let judged =
                    |smooth| check_release(&terms, &policy, &Request { smooth, ..request.clone() }, &spent).is_ok();
                let (numbers, milli_bits) = (before + scalars, (before + scalars) * bits * 1_000);
                let smooth =
                    |rank, milli_bits| Some(Smooth { rank, milli_bits, instead: (numbers, numbers * bits * 1_000) });
                if measuring_decides(&terms, &policy, &request, &spent) {
                    continue;
                }
                waits += 1;
                if domain.is_none() {
                    assert!(
                        judged(smooth(numbers, milli_bits)) && judged(smooth(0, 0)) && judged(None),
                        "{numbers} {bits}"
                    );
                } else {
                    assert_eq!(judged(smooth(numbers, milli_bits)), judged(None), "{numbers} {bits}");
                }
            }
        }
    }
    assert!(waits > 100, "{waits}");
}
