//! Methods on totals against servers that see everything, from the same first centres: every iterate is the same.

use proptest::prelude::*;
use veilsum_cluster::method::{Seeding, Stage, Stop};
use veilsum_cluster::offline::kmeans::weighted_lloyd;
use veilsum_cluster::query::LocalSteps;
use veilsum_cluster::random::Stream;
use veilsum_cluster::{Algorithm, Centres, Domain, Recipe, Rows, Scaling, Step, pooled};
use veilsum_lab::comparison::{central, ffcm, fkm};
use veilsum_testkit::data::{max_difference, prepare_all};

const ROUNDS: u32 = 4;

fn domain() -> Domain {
    Domain::new(vec![-4.0; 2], vec![4.0; 2], Scaling::None).unwrap()
}

fn stream() -> Stream {
    Stream::new(1, b"veilsum test stream     ")
}

fn steps(most: u32) -> LocalSteps {
    LocalSteps { most, epsilon: 0.0 }
}

fn recipe(algorithm: Algorithm, start: &Centres) -> Recipe {
    Recipe::plain(algorithm, start.k() as u32, Seeding::Given { centres: start.clone() })
}

/// The centres after each round on totals.
fn iterates(algorithm: Algorithm, start: &Centres, sites: &[Rows]) -> Vec<Centres> {
    let sites = prepare_all(sites, &domain());
    let mut run = recipe(algorithm, start).run(&domain(), sites.len() as u32).unwrap();
    let mut all = Vec::new();
    let mut step = run.next(None).unwrap();
    while let (Step::Ask(batch), Some(Stage::Iterating)) = (&step, run.stage()) {
        let totals = pooled::totals(batch, &sites).unwrap();
        step = run.next(Some(&totals)).unwrap();
        all.push(run.fits().swap_remove(0).centres);
    }
    assert!(!all.is_empty());
    all
}

/// Each iterate against one plain round from the iterate before. Memberships of a row that almost coincides with a centre
/// magnify the last bit of the centre, so that not every draw agrees to 1e-12.
fn follow(
    algorithm: Algorithm,
    start: &Centres,
    sites: &[Rows],
    round: impl Fn(&Centres) -> Centres,
) -> Result<(), TestCaseError> {
    let mut known = start.clone();
    for found in iterates(algorithm, start, sites) {
        known = round(&known);
        let off = max_difference(&found, &known);
        prop_assert!(off < 1e-9, "off by {off:e}");
    }
    Ok(())
}

fn ones(points: &Centres) -> Vec<f64> {
    vec![1.0; points.k()]
}

fn points(rows: &Rows) -> Centres {
    Centres::new(rows.len(), rows.columns(), rows.as_slice().to_vec()).unwrap()
}

/// Three sites of up to 25 rows, one of which is never empty, and first centres. K may exceed the rows of a site, but not the
/// rows of all: that is an error (`crates/cluster/tests/conversation.rs`).
fn federation() -> impl Strategy<Value = (Vec<Rows>, Centres)> {
    of_sites(1)
}

/// As before, but no site with fewer than 8 rows other than none. Where all local centres fall together on a row, memberships
/// in them depend on the last bit of the centres, so two implementations may differ.
fn large_federation() -> impl Strategy<Value = (Vec<Rows>, Centres)> {
    (of_sites(8), any::<bool>()).prop_map(|((mut sites, start), none)| {
        if none || sites[2].len() < 8 {
            sites[2] = Rows::new(vec![], 2).unwrap();
        }
        let turned = sites[0].iter().flat_map(|row| [-row[1], row[0] / 2.0]).collect();
        sites[1] = Rows::new(turned, 2).unwrap();
        (sites, start)
    })
}

fn of_sites(least: usize) -> impl Strategy<Value = (Vec<Rows>, Centres)> {
    let rows = |least: usize| {
        prop::collection::vec(prop::array::uniform2(-4.0f64..4.0), least..25)
            .prop_map(|rows| Rows::new(rows.concat(), 2).unwrap())
    };
    let start = prop::collection::vec(prop::array::uniform2(-4.0f64..4.0), 1..6)
        .prop_map(|rows| Centres::new(rows.len(), 2, rows.concat()).unwrap());
    let sites = (rows(least), rows(0), rows(0)).prop_map(|(a, b, c)| vec![a, b, c]);
    (sites, start).prop_filter("K rows", |(sites, start)| sites.iter().map(Rows::len).sum::<usize>() >= start.k())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn kmeans_is_lloyd_on_pooled_rows((sites, start) in federation()) {
        let all = points(&Rows::pooled(&sites).unwrap());
        let kmeans = Algorithm::Kmeans { epsilon: 0.0, max_rounds: ROUNDS };
        follow(kmeans, &start, &sites, |centres| weighted_lloyd(&all, &ones(&all), centres, 1).centres)?;
    }

    #[test]
    fn fkm_is_weighted_lloyd_on_local_means((sites, start) in federation(), p in 1u64..4, e in 1u32..4) {
        let algorithm = Algorithm::Fkm { epsilon: 0.0, max_rounds: ROUNDS, min_rows: p, local_steps: e, finish: 0 };
        let (mut any, mut rounds) = (true, 0);
        let mut known = start.clone();
        // Where every group is below p nothing moves and the run ends.
        for found in iterates(algorithm, &start, &sites) {
            let local: Vec<fkm::LocalMeans> = sites.iter().map(|rows| fkm::client_step(rows, &known, p, e)).collect();
            let means: Vec<Vec<f64>> = local.iter().flat_map(|site| site.means.clone()).collect();
            let sizes: Vec<f64> = local.iter().flat_map(|site| site.sizes.clone()).collect();
            prop_assert!(any);
            any = !means.is_empty();
            if any {
                known = weighted_lloyd(&Centres::from_rows(&means).unwrap(), &sizes, &known, 1).centres;
            }
            rounds += 1;
            let off = max_difference(&found, &known);
            prop_assert!(off < 1e-12, "round {rounds}: off by {off:e}");
        }
    }

    #[test]
    fn avg2_is_lloyd_on_local_centres((sites, start) in large_federation(), local in 1u32..6) {
        let algorithm = Algorithm::FfcmAvg2 { m: 2.0, epsilon: 0.0, max_rounds: ROUNDS, local: steps(local) };
        follow(algorithm, &start, &sites, |centres| {
            let own = sites.iter().filter(|rows| !rows.is_empty());
            let items: Vec<f64> = own
                .flat_map(|rows| {
                    let fit = central::fuzzy_c_means(rows, centres, 2.0, 0.0, local).unwrap();
                    fit.centres.as_slice().to_vec()
                })
                .collect();
            let items = Centres::new(items.len() / 2, 2, items).unwrap();
            weighted_lloyd(&items, &ones(&items), centres, 1).centres
        })?;
    }

    #[test]
    fn avg1_is_the_weighted_mean((sites, start) in large_federation(), local in 1u32..6, powers in any::<bool>()) {
        let algorithm = Algorithm::FfcmAvg1 { m: 1.8, epsilon: 0.0, max_rounds: ROUNDS, local: steps(local), powers };
        let average = if powers { ffcm::Average::Powers } else { ffcm::Average::Memberships };
        follow(algorithm, &start, &sites, |centres| {
            let params = ffcm::Params {
                start: centres.clone(),
                m: 1.8,
                local: steps(local),
                average,
                epsilon: 0.0,
                max_rounds: 1,
            };
            ffcm::ffcm(&sites, &params, &mut stream()).unwrap().centres
        })?;
    }

    /// The papers add up how far each centre moves.
    #[test]
    fn by_the_sum_rounds_end_where_the_paper_ends((sites, start) in large_federation()) {
        let (local, epsilon) = (steps(5), 0.05);
        let avg1 = Algorithm::FfcmAvg1 { m: 1.8, epsilon, max_rounds: 60, local, powers: true };
        let params = ffcm::Params {
            start: start.clone(),
            m: 1.8,
            local,
            average: ffcm::Average::Powers,
            epsilon,
            max_rounds: 60,
        };
        let paper = ffcm::ffcm(&sites, &params, &mut stream()).unwrap();
        let mut run = Recipe { stop: Stop::Sum, ..recipe(avg1.clone(), &start) }.run(&domain(), 3).unwrap();
        let found = pooled::plain_federated(&mut run, &prepare_all(&sites, &domain())).unwrap();
        prop_assert_eq!(found.converged, paper.converged);
        // The norm of the same moves is no larger.
        let mut run = recipe(avg1, &start).run(&domain(), 3).unwrap();
        let by_norm = pooled::plain_federated(&mut run, &prepare_all(&sites, &domain())).unwrap();
        prop_assert!(by_norm.rounds <= found.rounds, "{} and {}", by_norm.rounds, found.rounds);
        // Where neither rests, a cycle is known at its first centres that come back to the last bit, or almost.
        prop_assert!(found.rounds == paper.rounds || !paper.converged, "{} and {}", found.rounds, paper.rounds);
    }

    #[test]
    fn avg1_with_one_step_and_powers_is_fuzzy_c_means((sites, start) in large_federation(), m in 1.2f64..3.0) {
        let avg1 = Algorithm::FfcmAvg1 { m, epsilon: 0.0, max_rounds: 30, local: steps(1), powers: true };
        let fcm = Algorithm::Fcm { m, epsilon: 0.0, max_rounds: 30 };
        let one = [Rows::pooled(&sites).unwrap()];
        let (found, known) = (iterates(avg1, &start, &sites), iterates(fcm, &start, &one));
        for (found, known) in found.iter().zip(&known) {
            let off = max_difference(found, known);
            prop_assert!(off < 1e-10, "off by {off:e}");
        }
    }
}

fn three_centres() -> Centres {
    Centres::from_rows(&[vec![-3.0, -3.0], vec![0.0, 3.0], vec![3.0, 0.0]]).unwrap()
}

/// Clumps of rows around the three centres: 12 each at the first site, one clump less at each further one.
fn clumps() -> Vec<Rows> {
    let mut draws = stream();
    let mut site = |clumps: &[usize]| {
        let mut values = Vec::new();
        for at in clumps {
            for _ in 0..12 {
                let [x, y] = draws.normal_pair();
                let centre = three_centres();
                values.extend([centre.row(*at)[0] + 0.2 * x, centre.row(*at)[1] + 0.2 * y]);
            }
        }
        Rows::new(values, 2).unwrap()
    };
    vec![site(&[0, 1, 2]), site(&[1, 2]), site(&[2])]
}

#[test]
fn the_finisher_goes_on_where_alignment_ends() {
    let start = Centres::from_rows(&[vec![-2.0, -2.0], vec![-0.5, 2.0], vec![2.0, 0.5]]).unwrap();
    let sites = clumps();
    let fkm =
        |min_rows: u64, finish: u32| Algorithm::Fkm { epsilon: 0.0, max_rounds: 50, min_rows, local_steps: 1, finish };
    let kmeans = Algorithm::Kmeans { epsilon: 0.0, max_rounds: 50 };
    let known = iterates(kmeans, &start, &sites);
    // With p = 1 and one step alignment is Lloyd: nothing is left to finish, and nothing is asked twice.
    assert_eq!(iterates(fkm(1, 9), &start, &sites), known);
    let (aligned, finished) = (iterates(fkm(3, 0), &start, &sites), iterates(fkm(3, 9), &start, &sites));
    assert!(finished.len() > aligned.len() && finished[..aligned.len()] == aligned);
    assert!(max_difference(&finished[finished.len() - 1], &known[known.len() - 1]) < 1e-12);
}
