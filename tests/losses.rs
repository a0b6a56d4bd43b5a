//! A loss does not cost the result: what is out when a site is lost, a budget is spent or the coordinator is gone becomes
//! the result, at the coordinator and at every site ([APP-8]).

use veilsum_cluster::{Algorithm, Outcome, Rows, method::Seeding};
use veilsum_node::{error::Code, loopback::LoopbackRun, plan::PlanSpec};
use veilsum_proto::plan::{Sites, Terms};
use veilsum_testkit::{
    cast::Cast,
    in_process::{Lost, apart, fcm, federate_under, made_up, max_difference, prepared, replay, unit_square},
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
    assert!(early.reason.contains("too few sites") && early.reason.contains(&name), "{early:?}");
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

/// The same over all sites in plain sums.
fn whole(work: &PlanSpec, sites: &[(String, Rows)]) -> Outcome {
    replay(work, &prepared(work, sites), |_| (0..sites.len()).collect())
}

/// Totals over the same five sites: one that is lost in mid-run ends the run with a usable result everywhere.
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
        assert!(apart(&centres, &whole(&self::work(0.0, 4), &sites).centres) < 1e-9);
        assert_eq!(result.cohort.len(), 5, "the result is over all that were there");
        let counted = run.counted.as_ref().expect("a count");
        assert!(counted.handed_over && result.n_total == Some(counted.total));
    }
}

/// [POL-1], [APP-2]: over the same sites, a loss while rows are counted, or between the count and the first question, ends the run with nothing.
#[test]
fn app_2_a_loss_before_the_first_total_ends_the_run() {
    let (sites, work) = (made_up(&SIZES, 0.2, 5), work(0.0, 6));
    for question in [0, 1] {
        let (run, sizes) = federate_under(sites.clone(), &work, &[(3, Point::BeforeInput, question)], |_| {});
        let failure = run.result.as_ref().expect_err("no total over fewer");
        assert_eq!((failure.code, sizes), (Code::Quorum, Vec::new()), "{failure}");
    }
}

/// [POL-1]: over any sites a run goes on without one that is lost while rows are counted, with noise alone.
#[test]
fn over_any_sites_a_run_goes_on_without_one() {
    let any = |terms: &mut Terms| (terms.sites, terms.min_cohort) = (Sites::Any, 4);
    let lost = [(3, Point::BeforeInput, 0)];
    let (run, sizes) = federate_under(made_up(&SIZES, 0.2, 5), &crate::noise::work(19.0), &lost, any);
    let result = run.result.as_ref().expect("a result");
    assert!(result.ended_early.is_none() && sizes.iter().all(|n| *n == 4), "{sizes:?}");
    assert_eq!(result.missing, ["site-4"]);
    let exact = Cast::new(&work(0.0, 6), &["one", "two", "three", "four", "five"], any).err();
    let exact = exact.expect("without noise it is a no");
    assert!(exact.message.contains("[POL-9]") && exact.advice.contains("same"), "{exact}");
}

/// A site is lost when the centres have come to rest: an early result says so, and which indices are missing.
#[test]
fn centres_at_rest_stay_so_where_only_the_indices_are_missing() {
    let (sites, work) = (made_up(&SIZES, 0.2, 5), work(1e-3, 100));
    let whole = whole(&work, &sites);
    assert!(whole.converged);
    for (at, rest) in [(whole.questions, true), (whole.questions - 1, false)] {
        let (run, _) = federate_under(sites.clone(), &work, &[(2, Point::BeforeInput, at)], |_| {});
        ended_early(&run, 2, at - 1);
        let result = run.result.as_ref().expect("a result");
        assert_eq!(result.ended_early.as_ref().map(|early| early.at_rest), Some(rest), "{result:?}");
        assert_eq!(apart(&result.centres_box, &whole.centres) < 1e-9, rest);
        let caution = result.model.as_ref().and_then(|model| model.caution()).expect("one");
        assert_eq!(caution.contains("after its centres came to rest"), rest, "{caution}");
        let said = if rest { "(at rest; the run" } else { "(not converged" };
        assert!(veilsum_node::report::summary(result).contains(said));
    }
}

/// [APP-8]: a plan's floor under the rows holds for early results. The count was over all sites; where one of them is not behind the last
/// total, nothing says that those that are have so many rows.
#[test]
fn app_8_an_early_result_of_too_few_rows_is_none() {
    let mut kmeans = crate::noise::work(19.0);
    kmeans.recipe.algorithm = Algorithm::Kmeans { epsilon: 0.0, max_rounds: 4 };
    let sites = made_up(&crate::noise::SIZES, 0.2, 5);
    // Two sites go, which is too many; before them one, without which the run goes on.
    let lost: [Lost; 3] = [(2, Point::BeforeInput, 2), (0, Point::BeforeInput, 3), (1, Point::BeforeInput, 3)];
    for (lost, enough) in [(&lost[1..], true), (&lost[..], false)] {
        let terms = |terms: &mut Terms| (terms.sites, terms.min_cohort, terms.min_total_rows) = (Sites::Any, 4, 300);
        let (run, sizes) = federate_under(sites.clone(), &kmeans, lost, terms);
        assert_eq!(sizes, [5, if enough { 5 } else { 4 }]);
        let models = run.sites.iter().flatten().filter(|site| site.model.is_some()).count();
        match &run.result {
            Ok(result) => {
                assert!(enough && result.ended_early.is_some() && models == 3, "{models}: {result:?}");
                assert_eq!(result.cohort.len(), 5);
            }
            Err(failure) => {
                assert!(!enough && models == 0, "{failure}");
                assert_eq!(failure.code, Code::Quorum);
                assert!(failure.message.contains("APP-8") && failure.message.contains("floor"), "{failure}");
            }
        }
    }
}
