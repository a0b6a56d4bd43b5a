//! Every method with parameters that a test can run.

use veilsum_cluster::{
    Algorithm,
    query::{FeatureParams, LocalSteps},
};

/// Each in the forms in which it asks different questions.
pub fn all() -> Vec<Algorithm> {
    let (m, local) = (2.0, LocalSteps { most: 1000, epsilon: 1e-4 });
    let features = FeatureParams { min: 5, max: 40, tau: 1.0, m };
    vec![
        Algorithm::Fcm { m, epsilon: 1e-5, max_rounds: 60 },
        Algorithm::FfcmAvg1 { m, epsilon: 1e-4, max_rounds: 20, local, powers: false },
        Algorithm::FfcmAvg1 { m: 1.7, epsilon: 1e-4, max_rounds: 20, local: LocalSteps::ONE, powers: true },
        Algorithm::FfcmAvg2 { m, epsilon: 1e-4, max_rounds: 20, local },
        Algorithm::Fkm { epsilon: 0.0, max_rounds: 20, min_rows: 2, local_steps: 1, finish: 0 },
        Algorithm::Fkm { epsilon: 0.0, max_rounds: 5, min_rows: 2, local_steps: 3, finish: 20 },
        Algorithm::Kmeans { epsilon: 0.0, max_rounds: 50 },
        Algorithm::Ffcf { m, features, anchors: 0, merge: false },
        Algorithm::Ffcf { m, features, anchors: 24, merge: true },
    ]
}
