//! Who takes no part; what local centres and groups are, `protocol/vectors` say (`tests/question_vectors.rs`), and how large,
//! `tests/hostile_questions.rs`.

use super::*;
use crate::{Batch, Query, Scaling, answer};

/// Its own clusters would be its rows, and rounding would say where the third centre goes. One step is the same for any number of rows.
#[test]
fn a_site_with_fewer_rows_than_clusters_abstains() {
    let domain = Domain::new(vec![-1.0, 0.0], vec![1.0, 4.0], Scaling::None).unwrap();
    let centres = Centres::known(vec![[-0.5, 1.0], [0.5, 3.0], [0.9, 0.1]]);
    for pull in [Pull::Memberships, Pull::Powers, Pull::Nearest] {
        let of = |most: u32, rows: &[f64]| {
            let local = LocalSteps { most, epsilon: 1e-6 };
            let asked = LocalFuzzy { centres: centres.clone(), m: 2.0, local, pull };
            answer(&Batch::from(Query::from(asked)), &Prepared::known(rows, &domain)).unwrap().values
        };
        let rows = [-0.9, 0.5, -0.2, 1.5, 0.1, 2.0];
        assert!(of(50, &rows[..4]).iter().all(|total| *total == 0.0), "{pull:?}");
        assert!(of(50, &rows)[..3].iter().sum::<f64>() > 0.5, "{pull:?}");
        assert!(of(1, &rows[..4])[..3].iter().sum::<f64>() > 0.5, "{pull:?}");
    }
}
