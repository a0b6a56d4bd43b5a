//! [QRY-11]: the rule of rows and sites holds to the end of a run. A lone row that has a cluster of its own is in no total by
//! cluster, and where every cluster is large enough nothing is different.

use veilsum_cluster::{
    Algorithm, Batch, Centres, Domain, Indices, Method, OutOfBox, Outcome, Prepared, Query, Recipe, Rows, Scaling,
    Step,
    method::{Clusters, GroupThreshold, Seeding, Validity},
    pooled,
    query::RoundHalf,
    random::Stream,
    warnings,
};

const LONE: [f64; 2] = [0.97, 0.93];
const FIRST: GroupThreshold = GroupThreshold { min_rows: 10, min_sites: 1, ask_first: true };

fn domain() -> Domain {
    Domain::new(vec![0.0; 2], vec![1.0; 2], Scaling::None).unwrap()
}

/// Three sites of forty rows around two places; one of them has the lone row, if anybody has.
fn sites(lone: bool) -> Vec<Prepared> {
    let mut stream = Stream::new(7, b"veilsum tests: lone rows");
    let site = |number: usize| {
        let mut values = Vec::new();
        for row in 0..40 {
            let place = if row % 2 == 0 { [0.1, 0.2] } else { [0.25, 0.6] };
            values.extend(place.map(|x| x + 0.05 * stream.unit()));
        }
        if lone && number == 1 {
            values.extend(LONE);
        }
        Prepared::new(&Rows::new(values, 2).unwrap(), &domain(), OutOfBox::Refuse).unwrap()
    };
    (0..3).map(site).collect()
}

fn algorithms() -> [Algorithm; 4] {
    let local = veilsum_cluster::query::LocalSteps { most: 5, epsilon: 0.0 };
    [
        Algorithm::Kmeans { epsilon: 0.0, max_rounds: 9 },
        Algorithm::Fkm { epsilon: 0.0, max_rounds: 9, min_rows: 1, local_steps: 1, finish: 0 },
        Algorithm::Kumar { epsilon: 0.0, max_rounds: 9, local },
        Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 9 },
    ]
}

fn recipe(algorithm: Algorithm, rule: GroupThreshold, vectors: bool) -> Recipe {
    let centres = Centres::from_rows(&[vec![0.1, 0.2], vec![0.25, 0.6], vec![0.9, 0.9]]).unwrap();
    let validity = Validity { vectors, silhouette: vectors, ..Validity::everything() };
    Recipe { rule, validity, ..Recipe::plain(algorithm, 3, Seeding::Given { centres }) }
}

/// A run, and all it asked with the totals.
fn run(recipe: &Recipe, sites: &[Prepared]) -> (Outcome, Vec<(Batch, Vec<f64>)>) {
    let mut run = recipe.run(&domain(), sites.len() as u32).unwrap();
    let (mut step, mut all) = (run.next(None).unwrap(), Vec::new());
    loop {
        match step {
            Step::Done(outcome) => return (*outcome, all),
            Step::Ask(batch) => {
                let totals = pooled::totals(&batch, sites).unwrap();
                step = run.next(Some(&totals)).unwrap();
                all.push((batch, totals.values));
            }
        }
    }
}

/// How many opened numbers are a coordinate of the lone row, its distance to its centre, or the square of that.
fn shown(outcome: &Outcome, all: &[(Batch, Vec<f64>)]) -> usize {
    let square = |c: &[f64]| c.iter().zip(LONE).map(|(c, x)| (c - x) * (c - x)).sum::<f64>();
    let own = outcome.centres.rows().map(square).fold(f64::INFINITY, f64::min);
    assert!(own > 1e-9, "a distance of nothing is found nowhere");
    let secrets = [LONE[0], LONE[1], own, own.sqrt()];
    let is = |value: &&f64| secrets.iter().any(|secret| (**value - secret).abs() < 1e-9);
    all.iter().flat_map(|(_, values)| values).filter(is).count()
}

/// Whether the findings of an outcome say that one of its clusters is small.
fn said_to_be_small(plan: &Recipe, outcome: &Outcome) -> bool {
    warnings::of(plan, &domain(), &[], outcome).iter().any(|warning| warning.name == "small-cluster")
}

#[test]
fn a_lone_row_is_in_no_total_by_cluster() {
    for algorithm in algorithms() {
        for vectors in [true, false] {
            let what = format!("{} {vectors}", algorithm.name());
            let sites = sites(true);
            let plan = recipe(algorithm.clone(), FIRST, vectors);
            let (outcome, all) = run(&plan, &sites);
            assert_eq!(shown(&outcome, &all), 0, "{what}");
            assert!(all.len() as u32 <= plan.max_questions());
            // Where sums come along with counts it is there: the numbers are looked for in the right place.
            let (open, mut last) =
                run(&recipe(algorithm.clone(), GroupThreshold { ask_first: false, ..FIRST }, vectors), &sites);
            last.retain(|(batch, _)| batch.kind() == "validation");
            assert!(shown(&open, &last) >= if vectors { 4 } else { 2 }, "{what}");
            // What is left out is absent and said; what is not is the same.
            let ruled = &outcome.indices;
            assert!(said_to_be_small(&plan, &outcome) && outcome.notes.is_empty(), "{what}: {:?}", outcome.notes);
            assert!(open.notes.is_empty() && open.indices.davies_bouldin.is_some(), "{what}");
            let by_cluster =
                [ruled.davies_bouldin, ruled.calinski_harabasz, ruled.fukuyama_sugeno, ruled.silhouette_squared];
            assert_eq!(by_cluster, [None; 4], "{what}");
            if matches!(algorithm, Algorithm::Fcm { .. }) {
                assert_eq!(open.centres, outcome.centres, "the rounds are the same");
                let expected = Indices {
                    davies_bouldin: None,
                    calinski_harabasz: None,
                    fukuyama_sugeno: None,
                    simplified_silhouette_means: None,
                    silhouette_squared: None,
                    ..open.indices.clone()
                };
                same(&expected, ruled);
                assert!((open.objective - outcome.objective).abs() < 1e-9);
            }
            assert!(ruled.inertia.is_some() && ruled.simplified_silhouette.is_some() && ruled.osse.is_some(), "{what}");
        }
    }
}

/// The same indices, up to the order of additions.
fn same(a: &Indices, b: &Indices) {
    let [a, b] = [a, b].map(|indices| serde_json::to_value(indices).unwrap());
    let (a, b) = (a.as_object().unwrap(), b.as_object().unwrap());
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    for (name, value) in a {
        let (x, y) = (value.as_f64().unwrap(), b[name].as_f64().unwrap());
        assert!((x - y).abs() <= 1e-12 * x.abs().max(1.0), "{name}: {x} {y}");
    }
}

#[test]
fn large_clusters_are_judged_as_ever() {
    for algorithm in algorithms() {
        let centres = Centres::from_rows(&[vec![0.1, 0.3], vec![0.3, 0.6]]).unwrap();
        let plan = |rule| Recipe {
            clusters: Clusters::exactly(2),
            seeding: Seeding::Given { centres: centres.clone() },
            ..recipe(algorithm.clone(), rule, true)
        };
        let sites = sites(true);
        let (with, asked) = run(&plan(FIRST), &sites);
        let (without, _) = run(&plan(GroupThreshold::NONE), &sites);
        // To the last bit.
        assert_eq!(with.indices, without.indices, "{}", algorithm.name());
        assert_eq!((&with.centres, with.objective), (&without.centres, without.objective));
        assert!(with.notes.is_empty() && with.indices.silhouette_squared.is_some());
        let kinds: Vec<&str> = asked.iter().map(|(batch, _)| batch.kind()).collect();
        assert_eq!(kinds[kinds.len() - 3..], ["sizes", "validation", "silhouette"]);
        // Sites behind a cluster count too: the lone row's site alone is none of four.
        let alone = GroupThreshold { min_sites: 4, min_rows: 1, ask_first: true };
        if matches!(algorithm, Algorithm::Fcm { .. }) {
            assert!(run(&plan(alone), &sites).0.indices.davies_bouldin.is_none());
        }
    }
}

/// Every K and restart is judged for itself, and sites admit nothing else.
#[test]
fn members_of_a_sweep_are_judged_one_by_one() {
    let sites = sites(true);
    let plan = Recipe {
        clusters: Clusters { min: 2, max: 5 },
        restarts: 3,
        seeding: Seeding::Uniform { seed: 3 },
        ..recipe(Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 12 }, FIRST, true)
    };
    let (outcome, all) = run(&plan, &sites);
    let at = all.iter().position(|(batch, _)| batch.kind() == "sizes").unwrap();
    let ([sizes, validation, silhouette], []) = all[at..].split_at(3) else { panic!("{:?}", all.len() - at) };
    let mut rest = sizes.1.as_slice();
    let (mut large, mut small) = (0, 0);
    for (asked, query) in sizes.0.queries.iter().zip(&validation.0.queries) {
        let (values, tail) = rest.split_at(2 * asked.points()[0].k());
        rest = tail;
        assert_eq!(asked.points(), query.points());
        let least = values[..values.len() / 2].iter().copied().fold(f64::INFINITY, f64::min);
        match query {
            Query::Validation(_) => large += usize::from(least > 9.5),
            Query::Ungrouped(_) => small += usize::from(least < 9.5),
            other => panic!("{}", other.kind()),
        }
    }
    assert!(large > 0 && small > 0 && large + small == 12, "{large} {small}");
    assert!(!silhouette.0.queries.is_empty() && silhouette.0.queries.len() < 4);
    for point in &outcome.curve {
        let left = outcome.notes.iter().any(|note| note.starts_with(&format!("K = {}: fewer", point.k)));
        // Of the K that is reported it is a finding, said once.
        let found = point.k == outcome.centres.k() as u32 && said_to_be_small(&plan, &outcome);
        assert!(!(left && found), "{:?}", outcome.notes);
        assert_eq!(left || found, point.indices.davies_bouldin.is_none(), "{:?}", outcome.notes);
        assert!(point.indices.inertia.is_some());
    }
    let domain = domain();
    for pair in all.windows(2) {
        plan.admits(&pair[1].0, &domain, 3).unwrap();
        plan.follows(&pair[0].0, &pair[1].0, &domain).unwrap();
    }
    let refused = |before: &Batch, batch: &Batch| plan.follows(before, batch, &domain).unwrap_err();
    // A validation of other centres than those that were counted, of fewer, or without counts.
    let mut other = validation.0.clone();
    other.queries.swap_remove(0);
    refused(&sizes.0, &other);
    let mut moved = validation.0.clone();
    let elsewhere = Centres::from_rows(&[vec![0.5, 0.5], vec![0.1, 0.1]]).unwrap();
    moved.queries[0] = plan.validation_of(elsewhere, true);
    plan.admits(&moved, &domain, 3).unwrap();
    refused(&sizes.0, &moved);
    refused(&all[at - 1].0, &validation.0);
    // Silhouettes of clusters that nobody was to sum up.
    let small =
        validation.0.queries.iter().find(|query| matches!(query, Query::Ungrouped(_))).unwrap().points()[0].clone();
    let mut round_b = silhouette.0.clone();
    let Query::Silhouette(q) = &mut round_b.queries[0] else { panic!("silhouette") };
    let k = small.k();
    (q.means, q.rows, q.scatter, q.centres) = (small.clone(), vec![1.0; k], vec![0.0; k], small);
    round_b.queries.truncate(1);
    plan.admits(&round_b, &domain, 3).unwrap();
    refused(&validation.0, &round_b);
    // A plan without the rule asks neither.
    let without = Recipe { rule: GroupThreshold::NONE, ..plan.clone() };
    assert!(without.admits(&sizes.0, &domain, 3).is_err() && without.admits(&validation.0, &domain, 3).is_err());
}

/// What is told of all rows less the open sums would be the sum of those that the rule closes: they are none, or rows enough.
#[test]
fn the_rest_of_the_rows_is_no_small_group_either() {
    let sites = sites(true);
    let rule = GroupThreshold { min_rows: 10, min_sites: 2, ask_first: true };
    let mut mattered = 0;
    for seed in 0..60 {
        let algorithm = Algorithm::Kmeans { epsilon: 0.0, max_rounds: 20 };
        let plain = Recipe::plain(algorithm, 4, Seeding::Uniform { seed });
        let (_, all) = run(&Recipe { rule, validity: Validity::basic(), ..plain.clone() }, &sites);
        for pair in all.windows(2) {
            let asked = |batch: &Batch| -> Vec<Option<RoundHalf>> {
                let half = |query: &Query| match query {
                    Query::LocalMeans(q) => Some(q.part.clone()),
                    _ => None,
                };
                batch.queries.iter().map(half).collect()
            };
            let (counts, sums) = (asked(&pair[0].0), asked(&pair[1].0));
            if counts.iter().any(|half| *half != Some(RoundHalf::Counts)) || counts.len() != 1 {
                continue;
            }
            let k = pair[0].0.queries[0].points()[0].k();
            let (rows, behind) = pair[0].1.split_at(k);
            let [Some(RoundHalf::Sums(open))] = &sums[..] else { continue };
            let alone = |c: usize| rows[c] > 0.5 && !rule.allows(rows[c], behind[c]);
            let small = (0..k).filter(|c| alone(*c)).map(|c| rows[c]).sum::<f64>();
            let closed = (0..k).filter(|c| !open.contains(&(*c as u32))).map(|c| rows[c]).sum::<f64>();
            assert!(!(0.5..=9.5).contains(&closed), "seed {seed}: {closed} rows, of {rows:?} without {open:?}");
            mattered += u32::from((0.5..=9.5).contains(&small));
        }
    }
    assert!(mattered > 0, "no run had a small cluster beside open ones");
}

/// In a mixture the share of a component times the number of rows would be how many rows stand behind it.
#[test]
fn shares_of_a_mixture_do_not_tell_a_small_component() {
    let gmm = Algorithm::Gmm { epsilon: 1e-6, max_rounds: 40, regularisation: 1e-6 };
    let run_of = |rule, vectors: bool, lone| {
        let recipe = recipe(gmm.clone(), rule, vectors);
        let basic = Recipe { validity: Validity::basic(), ..recipe.clone() };
        run(if vectors { &recipe } else { &basic }, &sites(lone)).0
    };
    let open = run_of(GroupThreshold::NONE, false, true);
    let shares = open.shapes.unwrap().weights.expect("no rule, no secret");
    assert!(shares[2] > 0.0 && shares[2] < 9.0 / 121.0, "{shares:?}");
    for vectors in [false, true] {
        let closed = run_of(FIRST, vectors, true);
        assert_eq!(closed.shapes.unwrap().weights, None);
        assert!(closed.clusters.not_shown.iter().any(|why| why.starts_with("shapes.weights")));
    }
    // Two components that everybody may see.
    let centres = Centres::from_rows(&[vec![0.1, 0.2], vec![0.25, 0.6]]).unwrap();
    let large = Recipe { rule: FIRST, ..Recipe::plain(gmm, 2, Seeding::Given { centres }) };
    let found = run(&large, &sites(false)).0;
    assert_eq!(found.shapes.unwrap().weights.map(|shares| shares.len()), Some(2));
}

/// Counts by label, added up over the labels, are the sizes of the clusters.
#[test]
fn labels_are_not_counted_where_a_cluster_is_small() {
    let labelled = |lone| -> Vec<Prepared> {
        sites(lone)
            .into_iter()
            .map(|site| {
                let rows = site.len();
                site.with_labels(vec![0; rows]).unwrap()
            })
            .collect()
    };
    for (lone, counted) in [(true, false), (false, true)] {
        let mut recipe = recipe(Algorithm::Kmeans { epsilon: 0.0, max_rounds: 9 }, FIRST, false);
        recipe.validity.classes = 1;
        if !lone {
            let centres = Centres::from_rows(&[vec![0.1, 0.2], vec![0.25, 0.6]]).unwrap();
            recipe = Recipe { clusters: Clusters::exactly(2), seeding: Seeding::Given { centres }, ..recipe };
        }
        let (found, all) = run(&recipe, &labelled(lone));
        let asked = all.iter().any(|(batch, _)| matches!(batch.queries[0], Query::Contingency(_)));
        assert_eq!(
            (asked, found.contingency.is_some(), found.indices.adjusted_rand.is_some()),
            (counted, counted, counted)
        );
        assert_eq!(found.notes.iter().any(|note| note.contains("counts by label")), !counted, "{:?}", found.notes);
    }
}
