//! A whole federation on QUIC with noise inside the sum (spec section 17).

use veilsum_cluster::{Query, method::Seeding};
use veilsum_testkit::in_process::{apart, federate, made_up, prepared, replay};

use crate::noise::{ROUNDS, ROWS, SIZES, work};
use crate::said::says;

/// [NOI-3], [NOI-7]: a whole federation; every site follows the noisy totals with its own copy of the method and comes to the
/// same result.
#[test]
fn a_federation_with_noise() {
    let (work, sites) = (work(50.0), made_up(&SIZES, 0.2, 5));
    let mut exact = work.clone();
    exact.recipe.noise = None;
    // From the same first centres.
    let first = work.first_question(SIZES.len()).unwrap();
    let Query::Shifts(shifts) = &first.queries[0] else { panic!("shifts") };
    exact.recipe.seeding = Seeding::Given { centres: shifts.centres.clone() };
    let plain = replay(&exact, &prepared(&exact, &sites), |_| (0..SIZES.len()).collect());
    let (run, sizes) = federate(sites, &work, &[]);
    let result = run.result.as_ref().expect("a result");
    assert_eq!(sizes, [SIZES.len(); ROUNDS as usize + 1]);
    let off = apart(&result.centres_box, &plain.centres);
    assert!(off > 1e-6 && off < 0.15, "off by {off}: noise, and not too much of it");
    let model = result.model.as_ref().expect("a model");
    for report in &run.sites {
        assert!(report.as_ref().expect("a site's report").model.as_ref() == Some(model));
    }
    let privacy = result.privacy.as_ref().expect("a promise");
    let price = work.recipe.noise.expect("noise").price();
    assert_eq!((privacy.retries, &*privacy.unit, privacy.price), (2, "record", price));
    let summary = veilsum_node::report::summary(result);
    says(&summary, &["do not come from the rows", "Whatever the others do", "counts are noisy"]);
    says(&summary, &["A row that cannot be used", "is left out"]);
    let meaning = &result.errors.as_ref().expect("errors").meaning;
    says(meaning, &["of noise and sampling", "clip and preparation are in it"]);
    // Uniform first centres lose clusters in some boxes; nothing else is to be said.
    let told = privacy.warning();
    assert!(result.warnings.iter().all(|warning| Some(warning) == told.as_ref()), "{:?}", result.warnings);
    // The count is noisy as well, by what the forecast says.
    let counted = run.counted.as_ref().expect("a count");
    let noise = privacy.noise_of_count;
    assert!((counted.total as f64 - ROWS as f64).abs() < 8.0 * noise + 1.0 && noise > 0.5, "{} {noise}", counted.total);
}
