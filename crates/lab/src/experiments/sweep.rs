//! A sweep over K runs side by side: it takes the rounds of its longest member, and its indices are the pooled ones.

use veilsum_charts::{Chart, Plot};
use veilsum_cluster::method::{Choice, Clusters, Pick, Seeding, Validity};
use veilsum_cluster::query::LocalSteps;
use veilsum_cluster::{Algorithm, Recipe, synthetic};

use super::exactness::indices_apart;
use super::harness::{masked, plain, prepared, tree};
use super::{ExperimentError, Line, Report, Settings};

const K: Clusters = Clusters { min: 2, max: 9 };

pub(super) fn run(settings: &Settings) -> Result<Report, ExperimentError> {
    let mut report = Report::new("sweep", "K = 2 to 9 at once: rounds and indices");
    let example = synthetic::five_gaussians(synthetic::DEFAULT_SEED);
    let domain = synthetic::five_gaussians_domain();
    let sites = prepared(example.sites.iter().map(|site| &site.rows), &domain)?;
    let whole = prepared([&example.pooled()], &domain)?;
    let (m, max_rounds) = (2.0, if settings.quick { 100 } else { 300 });
    let fcm = Algorithm::Fcm { m, epsilon: 1e-4, max_rounds };
    let avg2 = Algorithm::FfcmAvg2 { m, epsilon: 1e-4, max_rounds, local: LocalSteps { most: 1000, epsilon: 1e-4 } };
    let starts: [(&str, Algorithm, Seeding); 3] = [
        ("fcm, uniform start", fcm.clone(), Seeding::Uniform { seed: 1 }),
        ("fcm, tree", fcm, tree(1)),
        ("ffcm-avg2, tree", avg2, tree(1)),
    ];
    for (name, algorithm, seeding) in starts {
        let pooled_form = matches!(algorithm, Algorithm::Fcm { .. });
        let recipe = Recipe {
            clusters: K,
            validity: Validity::everything(),
            choice: Choice { by: Pick::FuzzyDaviesBouldin, elbow: false },
            ..Recipe::plain(algorithm, K.min, seeding)
        };
        let sweep = masked(&recipe, &domain, &sites, None)?;
        let mut longest = 0;
        for k in K.each() {
            let alone = Recipe { clusters: Clusters::exactly(k), ..recipe.clone() };
            longest = longest.max(plain(&alone, &domain, &sites, None)?.questions);
        }
        let (found, longest) = (f64::from(sweep.questions), f64::from(longest));
        let line = Line::new(name, "sums: longest single K (plain), sweep (masked)", 0).plain(longest).masked(found);
        report.lines.push(line.at_most(found, 1.1 * longest, "all K share each round"));

        let yardstick = plain(&recipe, &domain, if pooled_form { &whole } else { &sites }, None)?;
        let same_length = sweep.curve.len() == yardstick.curve.len() && !sweep.curve.is_empty();
        let pairs = sweep.curve.iter().zip(&yardstick.curve);
        let apart = pairs.map(|(a, b)| indices_apart(&a.indices, &b.indices)).fold(0.0, f64::max);
        let line = Line::new(name, "indices of all K, relative", 2).masked(apart);
        let why = if pooled_form { "equal to the pooled run" } else { "equal to the plainly federated run" };
        report.lines.push(line.holds(same_length, "a point for every K").at_most(apart, 1e-9, why));
        if name == "ffcm-avg2, tree" {
            let index = |get: fn(&veilsum_cluster::Indices) -> Option<f64>| {
                let value = |point: &veilsum_cluster::method::CurvePoint| {
                    Some((f64::from(point.k), get(&point.indices).filter(|value| value.is_finite())?))
                };
                sweep.curve.iter().filter_map(value).collect()
            };
            report.chart = Some(Chart::new(
                "Indices by K, masked, five Gaussians",
                "K",
                "index",
                Plot::Lines(vec![
                    ("fuzzy Davies-Bouldin".into(), index(|indices| Some(indices.fuzzy_davies_bouldin))),
                    ("partition coefficient".into(), index(|indices| indices.partition_coefficient)),
                    ("simplified silhouette".into(), index(|indices| indices.simplified_silhouette)),
                    ("Xie-Beni".into(), index(|indices| indices.xie_beni)),
                ]),
            ));
        }
    }
    Ok(report)
}
