//! A loss does not cost the result: what is out when a site is lost, a budget is spent or the coordinator is gone becomes
//! the result, at the coordinator and at every site ([APP-8]).

use veilsum_cluster::{Algorithm, Outcome, Rows, method::Seeding};
use veilsum_node::{error::Code, loopback::LoopbackRun, plan::PlanSpec};
use veilsum_proto::plan::Terms;
use veilsum_testkit::{
    in_process::{Lost, fcm, federate_under, made_up, max_difference, prepared, replay, unit_square},
    memory::Point,
};

const SIZES: [usize; 5] = [60, 75, 81, 68, 90];

fn work(epsilon: f64, rounds: u32) -> PlanSpec {
    fcm(unit_square(), 3, epsilon, rounds, Seeding::Uniform { seed: 11 })
}

/// Coordinator and all sites but the lost one have the same early result, marked as such; the centres in the box.
fn ended_early(run: &LoopbackRun, lost: usize, round: u32) -> Vec<Vec<f64>> {
    let result = run.result.as_ref().expect("a result");
    let early = result.ended_early.as_ref().expect("marked as early");
    let name = format!("site-{}", lost + 1);
    assert_eq!((early.round, &early.lost), (round, &vec![name.clone()]), "{early:?}");
    assert!(early.reason.contains("REL-4") && early.reason.contains(&name), "{early:?}");
    assert!(result.converged == Some(false) && result.model.as_ref().is_some_and(|m| m.converged == Some(false)));
    for (i, site) in run.sites.iter().enumerate() {
        if i == lost {
            assert!(site.as_ref().is_err_and(|failure| failure.code == Code::Denied));
            continue;
        }
        let report = site.as_ref().unwrap_or_else(|f| panic!("site {i}: {f}"));
        let (model, own) = (report.model.as_ref().expect("a model"), report.result.as_ref().expect("a result"));
        assert_eq!(Some(model), result.model.as_ref(), "one model everywhere");
        assert_eq!((own.ended_early.as_ref(), own.converged), (Some(early), Some(false)));
        assert!(max_difference(&own.centres_box, &result.centres_box) < 1e-9);
        assert_eq!(early.failure().code, Code::Early);
    }
    result.centres_box.clone()
}

fn boxed(work: &PlanSpec, sites: &[(String, Rows)]) -> Vec<Vec<f64>> {
    let all: Vec<usize> = (0..sites.len()).collect();
    box_of(work, &replay(work, &prepared(work, sites), |_| all.clone()))
}

fn box_of(work: &PlanSpec, outcome: &Outcome) -> Vec<Vec<f64>> {
    work.units(&outcome.centres).expect("units").1
}

/// Five sites, one block: a site that is lost in mid-run ends it with a usable result everywhere.
#[test]
fn a_site_that_is_lost_does_not_cost_the_result() {
    let (sites, work) = (made_up(&SIZES, 0.2, 5), work(0.0, 8));
    // Whoever leaves after its input is in that total, and missed in the next.
    for (at, round) in [(Point::BeforeInput, 5), (Point::AfterInput, 4), (Point::BeforeUnmask, 4)] {
        let (run, sizes) = federate_under(sites.clone(), &work, &[(2, at, round)], |_| {});
        // No total over fewer: what the lost one sent cannot be computed.
        assert_eq!(sizes, [5; 4], "{at:?}");
        let centres = ended_early(&run, 2, 4);
        let result = run.result.as_ref().expect("a result");
        let stopped = boxed(&self::work(0.0, 4), &sites);
        assert!(max_difference(&centres, &stopped) < 1e-9);
        assert_eq!(result.cohort.len(), 5, "the result is over all that were there");
        let counted = run.counted.as_ref().expect("a count");
        assert!(counted.handed_over && result.n_total == Some(counted.total));
    }
}

/// A loss while rows are counted costs nothing: the slot is burned, and the others begin as a block of their own, with both aggregators.
#[test]
fn a_loss_in_the_count_makes_a_smaller_block() {
    let (sites, work) = (made_up(&[60, 75, 81, 68, 90, 55], 0.2, 5), work(0.0, 6));
    let (run, sizes) = federate_under(sites.clone(), &work, &[(3, Point::BeforeInput, 0)], |_| {});
    let result = run.result.as_ref().expect("a result");
    assert_eq!(sizes, [5; 7]);
    assert!(result.ended_early.is_none() && result.rounds == 6, "{:?}", result.ended_early);
    let left: Vec<_> = sites.iter().enumerate().filter(|(i, _)| *i != 3).map(|(_, s)| s.clone()).collect();
    assert!(max_difference(&result.centres_box, &boxed(&work, &left)) < 1e-6);
    let counted = run.counted.as_ref().expect("a count");
    assert_eq!((counted.total, counted.handed_over), (361, true));
}

/// [APP-2]: a site that is lost between the count and the first question takes its block with it: the count stands for the others, and of
/// one block nothing is left to ask.
#[test]
fn app_2_a_loss_between_count_and_first_question_takes_the_block() {
    let (sites, work) = (made_up(&[60, 75, 81, 68, 90, 55], 0.2, 5), work(0.0, 6));
    let lost = [(3, Point::BeforeInput, 1)];
    let (run, sizes) = federate_under(sites.clone(), &work, &lost, |_| {});
    let failure = run.result.as_ref().expect_err("no total over fewer");
    assert_eq!((failure.code, sizes), (Code::Quorum, Vec::new()), "{failure}");
    let blocks = |terms: &mut Terms| (terms.block_size, terms.min_cohort) = (3, 3);
    let (run, sizes) = federate_under(sites, &work, &lost, blocks);
    let result = run.result.as_ref().expect("a result");
    assert_eq!((sizes, result.missing.len()), (vec![3; 7], 3));
    assert!(run.counted.as_ref().is_ok_and(|counted| counted.cohort.len() == 6 && !counted.handed_over));
}

/// A site is lost when the centres have come to rest: an early result says so, and which indices are missing.
#[test]
fn centres_at_rest_stay_so_where_only_the_indices_are_missing() {
    let (sites, work) = (made_up(&SIZES, 0.2, 5), work(1e-3, 100));
    let all: Vec<usize> = (0..5).collect();
    let whole = replay(&work, &prepared(&work, &sites), |_| all.clone());
    assert!(whole.converged);
    for (at, rest) in [(whole.questions, true), (whole.questions - 1, false)] {
        let (run, _) = federate_under(sites.clone(), &work, &[(2, Point::BeforeInput, at)], |_| {});
        ended_early(&run, 2, at - 1);
        let result = run.result.as_ref().expect("a result");
        assert_eq!(result.ended_early.as_ref().map(|early| early.at_rest), Some(rest), "{result:?}");
        assert_eq!(max_difference(&result.centres_box, &box_of(&work, &whole)) < 1e-9, rest);
        let caution = result.model.as_ref().and_then(|model| model.caution()).expect("one");
        assert_eq!(caution.contains("after its centres came to rest"), rest, "{caution}");
        assert!(veilsum_node::report::summary(result).contains(if rest {
            "(at rest; the run"
        } else {
            "(not converged"
        }));
    }
}

/// [APP-8]: a plan's floor under the rows holds for early results. The count was over more sites; what is left must be shown by
/// the totals.
#[test]
fn app_8_an_early_result_of_too_few_rows_is_none() {
    let sites = made_up(&SIZES, 0.2, 5);
    let kmeans = PlanSpec::plain(
        unit_square(),
        Algorithm::Kmeans { epsilon: 0.0, max_rounds: 30 },
        3,
        Seeding::Uniform { seed: 11 },
    );
    // One site goes, and the run goes on; then two more, which is too many.
    let lost: [Lost; 3] = [(2, Point::BeforeInput, 2), (0, Point::BeforeInput, 3), (1, Point::BeforeInput, 3)];
    let left = SIZES.iter().sum::<usize>() as u64 - SIZES[2] as u64;
    // Hard groups add up to the rows; the sums of u^2 of K = 3 to a third of them at least.
    for (what, work, floor, enough) in [
        ("kmeans", &kmeans, left, true),
        ("kmeans", &kmeans, left + 1, false),
        ("fcm", &work(0.0, 8), left / 3, true),
        ("fcm", &work(0.0, 8), left, false),
    ] {
        let terms = move |terms: &mut Terms| (terms.block_size, terms.min_total_rows) = (1, floor);
        let (run, sizes) = federate_under(sites.clone(), work, &lost, terms);
        assert_eq!(sizes, [5, 4], "{what}");
        assert!(!run.counted.as_ref().is_ok_and(|counted| counted.handed_over), "{what}");
        let models = run.sites.iter().flatten().filter(|site| site.model.is_some()).count();
        match &run.result {
            Ok(result) => {
                assert!(enough && result.ended_early.is_some() && models == 2, "{what}, {floor}: {result:?}");
                assert_eq!((result.cohort.len(), result.n_total), (4, None));
            }
            Err(failure) => {
                assert!(!enough && models == 0, "{what}, {floor}: {failure}");
                assert_eq!(failure.code, Code::Quorum);
                assert!(failure.message.contains("APP-8") && failure.message.contains("floor"), "{failure}");
            }
        }
    }
}

/// Three blocks: the run goes on without the block that lost a site.
#[test]
fn a_run_over_three_blocks_goes_on_without_one() {
    let sizes: Vec<usize> = (0..9).map(|i| 50 + 7 * i).collect();
    let (sites, work) = (made_up(&sizes, 0.2, 5), work(0.0, 6));
    let blocks = |terms: &mut Terms| {
        (terms.block_size, terms.threshold, terms.colluders, terms.min_cohort) = (3, 6, 1, 6);
    };
    let (run, totals) = federate_under(sites, &work, &[(4, Point::BeforeInput, 3)], blocks);
    let result = run.result.as_ref().expect("a result");
    assert!(result.ended_early.is_none(), "{:?}", result.ended_early);
    assert_eq!((totals[..2].to_vec(), totals[2..].to_vec()), (vec![9; 2], vec![6; 5]));
    assert_eq!(result.missing, ["site-4", "site-5", "site-6"]);
    let counted = run.counted.as_ref().expect("a count");
    assert!(!counted.handed_over, "the difference would be a block's rows");
}
