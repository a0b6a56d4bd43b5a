//! Margins, standardisation and validity indices against independent answers, and against the pooled formula.

use veilsum_cluster::method::{Preparing, Scale};
use veilsum_cluster::query::Validation;
use veilsum_cluster::validity::{Geometry, Verdict};
use veilsum_cluster::{Batch, Centres, Domain, Prepared, Query, Rows, Scaling, Transform, pooled};
use veilsum_testkit::data::{clients, json, numbers, prepare, prepare_all};

fn close(name: &str, found: f64, expected: f64, tolerance: f64) {
    let off = (found - expected).abs() / expected.abs().max(1e-300);
    assert!(off <= tolerance, "{name}: {found} instead of {expected}, off by {off:e}");
}

fn verdict(sites: &[Prepared], centres: &Centres, m: f64) -> Verdict {
    let query = Query::Validation(Validation { centres: centres.clone(), m, vectors: true });
    let totals = pooled::totals(&Batch::from(query.clone()), sites).unwrap();
    query.verdict(Geometry::of(centres), &totals.values, totals.rows).unwrap()
}

fn every_index_equals_the_reference() {
    let vectors = json("method_vectors.json");
    let rows = clients(&vectors);
    let domain = Domain::around(&Rows::pooled(&rows).unwrap(), Scaling::None).unwrap();
    let reference = &vectors["indices"];
    let centres = Centres::new(4, 2, numbers(&reference["C"])).unwrap();
    let verdict = verdict(&prepare_all(&rows, &domain), &centres, 2.0);
    let indices = &verdict.indices;
    for (name, found) in [
        ("fuzzy_db", indices.fuzzy_davies_bouldin),
        ("db", indices.davies_bouldin),
        ("xb", indices.xie_beni),
        ("pc", indices.partition_coefficient),
        ("pe", indices.partition_entropy),
        ("mpc", indices.modified_partition_coefficient),
        ("fs", indices.fukuyama_sugeno),
        ("j", Some(verdict.objective)),
        ("ch", indices.calinski_harabasz),
        ("wsse", indices.wsse),
        ("osse", indices.osse),
        ("wsse_sq", indices.wsse_squared),
        ("osse_sq", indices.osse_squared),
        ("inertia", indices.inertia),
    ] {
        close(name, found.unwrap(), reference[name].as_f64().unwrap(), 1e-12);
    }
    let round_b = reference.get("round_b").unwrap_or(reference);
    let clusters = verdict.clusters.unwrap();
    for (name, found) in
        [("mu", clusters.means.as_slice()), ("W", clusters.scatter.as_slice()), ("n_k", clusters.rows.as_slice())]
    {
        for (found, expected) in found.iter().zip(numbers(&round_b[name])) {
            close(name, *found, expected, 1e-11);
        }
    }
    assert!(!verdict.collapsed);
}

fn standardised(domain: &Domain, sites: &[Prepared]) -> (Transform, Vec<String>) {
    let mut preparing = Preparing::new(Scale::Standard, domain, false).unwrap().unwrap();
    let mut last = None;
    for questions in 1.. {
        let query = preparing.ask();
        assert_ne!(last.as_ref(), Some(&query), "asked twice");
        assert!(questions <= Scale::Standard.questions());
        assert_eq!(query.check(domain), Ok(()));
        let totals = pooled::totals(&query.clone().into(), sites).unwrap();
        last = Some(query);
        if let Some(found) = preparing.take(&totals.values, totals.rows).unwrap() {
            assert!(found.0.domain(domain).is_ok());
            return found;
        }
    }
    unreachable!()
}

#[test]
fn a_column_has_its_mean_and_deviation() {
    let values: Vec<f64> = (0..200).map(|i| (f64::from(i) * 0.731).fract() * 3.0).collect();
    let rows = Rows::new(values.clone(), 1).unwrap();
    let domain = Domain::new(vec![-10.0], vec![100.0], Scaling::Box).unwrap();
    let sites = prepare_all(&veilsum_testkit::data::split(&rows, 3), &domain);
    let (found, notes) = standardised(&domain, &sites);
    assert!(notes.is_empty());
    let working: Vec<f64> = values.iter().map(|x| (x + 10.0) / 110.0).collect();
    let mean = working.iter().sum::<f64>() / 200.0;
    let sd = (working.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 200.0).sqrt();
    close("mean", found.shift[0], mean, 1e-9);
    close("sd", found.factor[0].recip(), sd, 1e-9);
    assert_eq!((found.lower[0], found.upper[0]), (0.0, 1.0));
}

#[test]
fn columns_without_spread_are_named() {
    let rows = Rows::new([[2.0, 0.0], [2.0, 1.0], [2.0, 0.0], [2.0, 0.0]].concat(), 2).unwrap();
    let domain = Domain::new(vec![0.0, 0.0], vec![8.0, 1.0], Scaling::None).unwrap();
    let (found, notes) = standardised(&domain, &[prepare(&rows, &domain)]);
    assert!(notes.len() == 1 && notes[0].contains("column 0") && notes[0].contains("not scaled"), "{notes:?}");
    assert_eq!((found.lower[0], found.upper[0], found.factor[0]), (0.0, 8.0, 1.0));
    assert!((found.shift[0] - 2.0).abs() < 1e-9);
    let nobody = [prepare(&Rows::new(vec![], 2).unwrap(), &domain)];
    let mut preparing = Preparing::new(Scale::Standard, &domain, false).unwrap().unwrap();
    let totals = pooled::totals(&preparing.ask().into(), &nobody).unwrap();
    let text = preparing.take(&totals.values, totals.rows).unwrap_err().to_string();
    assert!(text.contains("there are no rows"), "{text}");
}

#[test]
fn without_a_column_of_numbers_nothing_is_standardised() {
    let numbers = Domain::new(vec![0.0], vec![1.0], Scaling::Box).unwrap();
    assert!(Preparing::new(Scale::None, &numbers, false).unwrap().is_none());
    let none = Domain::mixed(vec![], vec![], Scaling::Box, &[vec![1.0; 2]]).unwrap();
    assert!(Preparing::new(Scale::Standard, &none, false).is_err());
}

veilsum_testkit::with_data!(every_index_equals_the_reference);
