//! Made-up rows and plans over them.

use std::sync::Arc;

use veilsum_audit::own::{self, Answer, Audited, Knows, Scene, Site};
use veilsum_cluster::{Algorithm, Recipe, Rows, method::Seeding, privacy::Noise, random::Stream};
use veilsum_node::{
    loopback::{LoopbackSite, default_terms},
    plan::{Column, OutOfBox, PlanSpec},
};
use veilsum_proto::plan::Terms;

pub(crate) const SEED: u64 = 5;
pub(crate) const LABEL: &[u8; 24] = b"veilsum audit own tests ";

/// Three sites in two clumps of a corner, and at the first site an outlier.
pub(crate) fn sites(rows: usize, seed: u64) -> Vec<Site> {
    let mut stream = Stream::new(seed, LABEL);
    let mut row = || {
        let [x, y] = stream.normal_pair();
        let (at, spread) = if stream.unit() < 0.5 { (0.05, 0.01) } else { (0.15, 0.02) };
        vec![at + spread * x, at + spread * y]
    };
    let mut all: Vec<Site> = (0..3).map(|_| Site { values: (0..rows).map(|_| row()).collect() }).collect();
    all[0].values[0] = vec![0.7, 0.5];
    all
}

/// A plan over these columns, each with its range.
pub(crate) fn plan_of(columns: Vec<Column>, algorithm: Algorithm, k: u32, noise: Option<Noise>) -> PlanSpec {
    let work = PlanSpec::plain(columns, algorithm, k, Seeding::Uniform { seed: 1 });
    noisy(PlanSpec { out_of_box: OutOfBox::Clip, ..work }, noise)
}

/// The same plan with this noise.
pub(crate) fn noisy(work: PlanSpec, noise: Option<Noise>) -> PlanSpec {
    let recipe = Recipe { noise, ..work.recipe.clone() };
    PlanSpec { recipe, ..work }
}

/// Columns of the unit interval.
pub(crate) fn units(names: &[&str]) -> Vec<Column> {
    names.iter().map(|name| Column { name: (*name).into(), lower: 0.0, upper: 1.0 }).collect()
}

pub(crate) fn plan(algorithm: Algorithm, k: u32, noise: Option<Noise>) -> PlanSpec {
    plan_of(units(&["x", "y"]), algorithm, k, noise)
}

/// The usual terms of a plan over these rows.
pub(crate) fn terms_of(work: &PlanSpec, sites: &[Site]) -> Terms {
    let loopback =
        |site: &Site| LoopbackSite::new("site", Rows::new(site.values.concat(), site.values[0].len()).unwrap());
    default_terms(&sites.iter().map(loopback).collect::<Vec<_>>(), work)
}

pub(crate) fn audited(work: PlanSpec, sites: Vec<Site>) -> Audited {
    let terms = Arc::new(terms_of(&work, &sites));
    let found = own::audit(&Scene::over(work, terms, sites, false, SEED), SEED, |_| ()).unwrap();
    found.print(&mut std::io::stdout()).unwrap();
    found
}

pub(crate) fn answer(found: &Audited, attack: &str, knows: Option<Knows>) -> Answer {
    found
        .tried
        .iter()
        .find(|tried| tried.attack == attack && tried.knows == knows)
        .unwrap_or_else(|| panic!("{attack}"))
        .answer
}

pub(crate) fn fcm(m: f64, max_rounds: u32) -> Algorithm {
    Algorithm::Fcm { m, epsilon: 0.0, max_rounds }
}

pub(crate) fn kmeans(max_rounds: u32) -> Algorithm {
    Algorithm::Kmeans { epsilon: 0.0, max_rounds }
}
