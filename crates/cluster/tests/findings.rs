//! Which finding can be said under which method: every finding, planted in an outcome of every method.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::json;
use veilsum_cluster::{
    Algorithm, Centres, Domain, Indices, OutOfBox, Outcome, Prepared, Recipe, Rows, Scaling,
    algorithm::ALGORITHMS,
    method::{Candidates, Choice, CurvePoint, Pick, Seeding, Stability},
    pooled,
    privacy::Noise,
    random::Stream,
    warnings,
};

const D: usize = 6;

fn usual(name: &str, m: f64, epsilon: f64) -> Algorithm {
    let about = ALGORITHMS.iter().find(|about| about.name == name).expect("a method");
    let mut algorithm = serde_json::to_value((about.usual)()).expect("JSON");
    let once = json!({ "most": 1, "epsilon": 1e-4 });
    let own = json!({ "m": m, "epsilon": epsilon, "max_rounds": 3, "local": once, "powers": false, "min_rows": 1, "bins": 17 });
    for (key, value) in own.as_object().expect("parameters") {
        algorithm[name].as_object_mut().expect("parameters").entry(key).and_modify(|of| *of = value.clone());
    }
    serde_json::from_value(algorithm).expect("a method")
}

fn domain() -> Domain {
    Domain::new(vec![0.0; D], vec![1.0; D], Scaling::Box).unwrap()
}

fn plain(recipe: &Recipe) -> Outcome {
    let mut stream = Stream::new(5, b"veilsum findings tests v1"[..24].try_into().unwrap());
    let values =
        (0..300 * D).map(|at| 0.3 * stream.unit() + if (at / D).is_multiple_of(2) { 0.1 } else { 0.6 }).collect();
    let rows = Prepared::new(&Rows::new(values, D).unwrap(), &domain(), OutOfBox::Refuse).unwrap();
    pooled::run(&mut recipe.run(&domain(), 1).unwrap(), &rows).unwrap()
}

fn said(recipe: &Recipe, outcome: &Outcome) -> BTreeSet<Cow<'static, str>> {
    let names: Vec<String> = (0..D).map(|column| format!("c{column}")).collect();
    warnings::of(recipe, &domain(), &names, outcome, 1.0).into_iter().map(|warning| warning.name).collect()
}

/// An outcome with one trouble, or a recipe that has it.
fn planted(finding: &str, mut recipe: Recipe, mut outcome: Outcome) -> (Recipe, Outcome) {
    let k = recipe.clusters.min;
    let point = |k: u32, index: f64| CurvePoint {
        k,
        indices: Indices { fuzzy_davies_bouldin: Some(index), xie_beni: Some(2.0 - index), ..Indices::default() },
        objective: Some(1.0),
        rounds: 1,
        converged: true,
        ..CurvePoint::default()
    };
    let even =
        vec![
            vec![30.0, 10.0, 20.0, 15.0, 25.0, 40.0, 30.0, 10.0, 20.0, 15.0, 25.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0];
            D
        ];
    let column = |bins: Vec<f64>| {
        let mut all = even.clone();
        all[1] = bins;
        Some(all)
    };
    let ends = |low: f64, high: f64| {
        let mut bins = vec![0.0; 17];
        (bins[0], bins[15], bins[16]) = (low, high / 2.0, high / 2.0);
        bins
    };
    let bins = match finding {
        "outliers" => column(ends(1.0, 299.0)),
        "code" => column(ends(20.0, 280.0)),
        "row-numbers" => column(vec![18.0; 17]),
        _ => None,
    };
    match (&mut outcome.description, bins) {
        (Some(found), Some(bins)) => {
            found.histograms = bins.iter().map(|bins| bins.iter().map(|n| *n as u64).collect()).collect();
        }
        (None, bins) => outcome.margins = bins.or(Some(even.clone())),
        _ => {}
    }
    match finding {
        "few-candidates" => outcome.candidates = Some(1),
        "one-start" => recipe.seeding = Seeding::Uniform { seed: 1 },
        "restarts-disagree" => {
            (recipe.restarts, outcome.objective) = (5, 1.0);
            outcome.stability = Some(Stability { matched_distance: vec![1.0; 5], agreement: 0.2, worst: None });
        }
        "not-converged" => {
            outcome.converged = false;
            outcome.history = vec![warnings_round(1, 0.9), warnings_round(2, 0.7)];
        }
        "k-at-border" => outcome.curve = vec![point(k - 1, 0.5), point(k, 0.4)],
        "no-clear-k" => {
            recipe.choice = Choice { by: Pick::Gap, elbow: false };
            outcome.curve = vec![point(k - 1, 0.5), point(k, 0.4)];
            for (of, gap) in outcome.curve.iter_mut().zip([0.1, 0.5]) {
                (of.indices.gap, of.indices.gap_error) = (Some(gap), Some(0.01));
            }
        }
        "centres-frozen" => outcome.frozen = 1,
        "indices-disagree" => outcome.curve = vec![point(k - 1, 0.5), point(k, 0.4), point(k + 1, 0.6)],
        "centres-close" => outcome.indices.xie_beni = Some(100.0),
        // In six columns the bound is 1.5.
        "fuzzifier-too-large" => {
            (recipe.algorithm, outcome.indices.xie_beni) = (usual(recipe.algorithm.name(), 2.0, 1e-3), Some(4.0));
        }
        "off-means" => outcome.off_means = Some(9.0),
        "local-centres-differ" => outcome.local_centres = Some(vec![0.0, 9.0]),
        "flat-column" => outcome.deviations = Some([vec![0.5; D - 1], vec![0.01]].concat()),
        "coarse-epsilon" => recipe.algorithm = usual(recipe.algorithm.name(), 1.4, 0.5),
        "few-rows" => outcome.n_total = Some(3),
        "one-column" => {
            if let Some(profile) = &mut outcome.profile {
                profile.between = [vec![0.999], vec![0.001 / 5.0; D - 1]].concat();
            }
        }
        _ => {}
    }
    (recipe, outcome)
}

fn warnings_round(round: u32, shift: f64) -> veilsum_cluster::Round {
    veilsum_cluster::Round { round, shift }
}

/// Columns of the table: fcm, ffcm-avg1, ffcm-avg2, fkm, kmeans, ffcf, describe.
const TABLE: [(&str, &str); 24] = [
    // Said of noisy centres alone, with their errors.
    ("centres-collapsed", "-------"),
    ("noise-above-forecast", "-------"),
    ("cluster-drowned", "-------"),
    ("another-optimum", "-------"),
    ("rival-partition", "-------"),
    ("few-candidates", "yyyyyy-"),
    ("one-start", "yyyyyy-"),
    ("restarts-disagree", "yyyyyy-"),
    ("not-converged", "yyyyyy-"),
    ("k-at-border", "yyyyyy-"),
    ("no-clear-k", "yyyyyy-"),
    ("indices-disagree", "yyyyyy-"),
    ("centres-frozen", "y------"),
    ("centres-close", "yyyyyy-"),
    ("fuzzifier-too-large", "yyy--y-"),
    ("off-means", "---y---"),
    ("local-centres-differ", "--y----"),
    ("flat-column", "yyyyyyy"),
    ("coarse-epsilon", "yyyyy--"),
    ("few-rows", "yyyyyy-"),
    ("outliers", "yyyyyyy"),
    ("code", "yyyyyyy"),
    ("row-numbers", "yyyyyyy"),
    ("one-column", "yyyyyy-"),
];

#[test]
fn every_finding_is_said_under_the_methods_for_which_it_means_something() {
    let names: Vec<&str> = TABLE.iter().map(|row| row.0).collect();
    assert_eq!(names, warnings::KINDS.iter().map(|kind| kind.0).collect::<Vec<_>>(), "a row for every finding");
    for (at, about) in ALGORITHMS.iter().enumerate() {
        let (k, seeding) = match about.name {
            "describe" => (1, Seeding::Uniform { seed: 1 }),
            _ => (2, Seeding::Candidates(Candidates::usual(1))),
        };
        let recipe = Recipe::plain(usual(about.name, 1.4, 1e-3), k, seeding);
        let mut clean = plain(&recipe);
        // Without anything that this test does not plant.
        (clean.indices.xie_beni, clean.deviations, clean.converged) = (Some(0.1), None, true);
        (clean.off_means, clean.local_centres) = (None, None);
        clean.history.clear();
        if let Some(profile) = &mut clean.profile {
            profile.between = vec![1.0 / D as f64; D];
        }
        for (finding, under) in TABLE {
            let (recipe, outcome) = planted(finding, recipe.clone(), clean.clone());
            let found = said(&recipe, &outcome);
            let expected = under.as_bytes()[at] == b'y';
            assert_eq!(found.contains(finding), expected, "{finding} under {}: {found:?}", about.name);
            // Nothing but what was planted.
            let others: Vec<_> = found.iter().filter(|name| **name != finding).collect();
            let border = ["indices-disagree", "k-at-border", "centres-frozen"].contains(&finding);
            assert!(others.is_empty() || border, "{finding} under {}: {others:?}", about.name);
        }
    }
}

/// Under noise a share whose error nobody knows is said by its bound.
#[test]
fn a_column_that_made_noisy_clusters_made_about_half_or_more() {
    let mut recipe = Recipe::plain(usual("kmeans", 1.4, 1e-3), 2, Seeding::Candidates(Candidates::usual(1)));
    let mut outcome = plain(&recipe);
    outcome.centres = Centres::new(2, D, (0..2 * D).map(|at| if at == D { 0.9 } else { 0.1 }).collect()).unwrap();
    outcome.clusters.sizes = vec![Some(150); 2];
    recipe.noise = Some(Noise::usual(50.0, 300));
    let found = warnings::of(&recipe, &domain(), &["a", "b"].map(str::to_owned), &outcome, 1.0);
    let one = found.iter().find(|warning| warning.name == "one-column").expect("all of the squares");
    assert!(one.text.starts_with("About half or more of the squared differences between clusters are of \"a\" alone"));
    assert!(!one.text.contains("100"), "{}", one.text);
}
