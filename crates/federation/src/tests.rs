//! Small federations for tests.

use veilsum_cluster::{Algorithm, Recipe, method::Seeding};
use veilsum_proto::{
    identity::Identity,
    plan::{Sites, Terms},
    roster::{Member, Roster},
};

use veilsum_federation::plan::{Column, PlanSpec};

/// A roster of `n` sites, and the identities of all its parties: coordinator, intermediary, sites.
pub(crate) fn kit(n: u8) -> (Roster, Vec<Identity>) {
    let ids: Vec<Identity> = (0..n + 2).map(|i| Identity::from_seed(&[i + 1; 32])).collect();
    let member = |i: usize, name: String, address: &str| Member { name, key: ids[i].public(), address: address.into() };
    let roster = Roster {
        name: "test".into(),
        coordinator: member(0, "hub".into(), "127.0.0.1:7700"),
        intermediary: member(1, "counter".into(), "127.0.0.1:7701"),
        sites: (2..ids.len()).map(|i| member(i, format!("site-{}", i - 1), "")).collect(),
    };
    (roster, ids)
}

/// A plan of fuzzy c-means in two columns.
pub(crate) fn work(k: u32) -> PlanSpec {
    let columns = [("x", -1.0, 2.0), ("y, \"quoted\" = é", 0.0, 10.0)];
    let columns = columns.map(|(name, lower, upper)| Column { name: name.into(), lower, upper }).to_vec();
    let algorithm = Algorithm::Fcm { m: 2.0, epsilon: 0.005, max_rounds: 30 };
    PlanSpec::plain(columns, algorithm, k, Seeding::Uniform { seed: 1 })
}

/// A recipe of fuzzy c-means.
pub(crate) fn fcm(k: u32, m: f64, epsilon: f64, max_rounds: u32, seeding: Seeding) -> Recipe {
    Recipe::plain(Algorithm::Fcm { m, epsilon, max_rounds }, k, seeding)
}

/// Terms for a plan.
pub(crate) fn terms(roster: &Roster, work: &PlanSpec) -> Terms {
    Terms {
        roster: roster.hash(),
        min_cohort: 3,
        threshold: 0,
        colluders: 0,
        sites: Sites::Same,
        slots: 4,
        max_rows: 1_000,
        min_total_rows: 100,
        application: work.to_bytes(),
    }
}
