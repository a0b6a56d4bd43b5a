//! Margins, standardisation and validity indices against independent answers, and against the pooled formula.

use proptest::prelude::*;
use veilsum_cluster::method::{Preparing, Scale};
use veilsum_cluster::query::{Margins, Moments, Validation};
use veilsum_cluster::validity::{Geometry, Verdict};
use veilsum_cluster::{Batch, Centres, Domain, OutOfBox, Prepared, Query, Rows, Scaling, Transform, answer, pooled};
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

/// A box, rows in it (with repetitions), and who holds each.
fn some_rows() -> impl Strategy<Value = (Vec<[f64; 2]>, Vec<usize>)> {
    let value = || prop_oneof![3 => -1.0f64..1.0, 1 => Just(0.5), 1 => Just(-1.0)];
    (1usize..50).prop_flat_map(move |n| {
        (prop::collection::vec([value(), value()].prop_map(|[x, y]| [x, y]), n), prop::collection::vec(0usize..4, n))
    })
}

fn dealt(rows: &[[f64; 2]], holders: &[usize], domain: &Domain) -> (Prepared, Vec<Prepared>) {
    let site = |of: &dyn Fn(usize) -> bool| {
        let values = rows.iter().zip(holders).filter(|(_, holder)| of(**holder)).flat_map(|(row, _)| *row).collect();
        let rows = Rows::new(values, 2).unwrap();
        Prepared::new(&rows, domain, OutOfBox::Refuse).unwrap()
    };
    (site(&|_| true), (0..4).map(|s| site(&|holder| holder == s)).collect())
}

fn same(name: &str, a: Option<f64>, b: Option<f64>) -> Result<(), TestCaseError> {
    match (a, b) {
        (Some(a), Some(b)) if a.is_infinite() || b.is_infinite() => prop_assert_eq!(a, b, "{}", name),
        (Some(a), Some(b)) => prop_assert!((a - b).abs() <= 1e-9 * a.abs().max(1.0), "{} {} {}", name, a, b),
        (a, b) => prop_assert_eq!(a, b, "{}", name),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn indices_do_not_depend_on_who_holds_the_rows(
        (rows, holders) in some_rows(),
        centres in prop::collection::vec((-1.5f64..1.5, prop_oneof![-1.5f64..1.5, Just(0.5)]).prop_map(|(x, y)| vec![x, y]), 1..6),
        on_a_row: bool,
        m in prop_oneof![Just(2.0), Just(1.1), 1.05f64..4.0],
    ) {
        let domain = Domain::new(vec![-1.0, -1.0], vec![1.0, 1.0], Scaling::None).unwrap();
        let mut centres = centres;
        if on_a_row {
            centres[0] = rows[0].to_vec();
        }
        let centres = Centres::from_rows(&centres).unwrap();
        let (all, sites) = dealt(&rows, &holders, &domain);
        let (one, many) = (verdict(std::slice::from_ref(&all), &centres, m), verdict(&sites, &centres, m));
        let list = |v: &Verdict| {
            let i = v.indices.clone();
            [
                i.fuzzy_davies_bouldin, i.davies_bouldin, i.xie_beni, i.partition_coefficient,
                i.partition_entropy, i.modified_partition_coefficient, i.fukuyama_sugeno, i.wsse, i.osse, i.wsse_squared,
                i.osse_squared, i.inertia, Some(v.objective),
            ]
        };
        for (at, (a, b)) in list(&one).into_iter().zip(list(&many)).enumerate() {
            prop_assert!(a.is_none_or(|a| !a.is_nan()));
            same(&format!("index {at}"), a, b)?;
        }
        // Calinski-Harabasz divides by a scatter that may be nothing but rounding.
        if one.clusters.as_ref().unwrap().scatter.iter().sum::<f64>() > 1e-9 {
            let (a, b) = (one.indices.calinski_harabasz, many.indices.calinski_harabasz);
            prop_assert!(a.is_none() == b.is_none());
            prop_assert!(a.zip(b).is_none_or(|(a, b)| (a - b).abs() <= 1e-6 * a.abs().max(1.0)));
        }

        // Against the definitions, row by row.
        let plain = all.packed().to_rows();
        let u = veilsum_cluster::assign::memberships(&plain, &centres, m).unwrap();
        let n = rows.len() as f64;
        same("pc", one.indices.partition_coefficient, Some(u.iter().map(|u| u * u).sum::<f64>() / n))?;
        let ln = |u: &f64| if *u > 0.0 { -u * u.ln() } else { 0.0 };
        same("pe", one.indices.partition_entropy, Some(u.iter().map(ln).sum::<f64>() / n))?;
    }

    #[test]
    fn one_row_adds_at_most_the_bounds(
        row in (-1.0f64..=1.0, prop_oneof![Just(-1.0), Just(1.0)]).prop_map(|(x, y)| [x, y]),
        centres in prop::collection::vec((-9.0f64..9.0, -1.0f64..1.0).prop_map(|(x, y)| vec![x, y]), 1..5),
        around in [-1.0f64..=1.0, -1.0f64..=1.0],
        m in 1.05f64..4.0,
        vectors: bool,
    ) {
        let domain = Domain::new(vec![-1.0, -1.0], vec![1.0, 1.0], Scaling::None).unwrap();
        let site = prepare(&Rows::new(row.to_vec(), 2).unwrap(), &domain);
        let centres = Centres::from_rows(&centres).unwrap();
        for query in [
            Query::fuzzy_sums(centres.clone(), m),
            Query::fuzzy_validation(centres.clone(), m),
            Query::Validation(Validation { centres: centres.clone(), m, vectors }),
            Query::Moments(Moments { around: None }),
            Query::Moments(Moments { around: Some(around.to_vec()) }),
            Query::Margins(Margins { bins: 7 }),
        ] {
            let batch = Batch::from(query);
            let values = answer(&batch, &site).unwrap().values;
            let mut rest = values.as_slice();
            for block in batch.layout(&domain).unwrap() {
                let (head, tail) = rest.split_at(block.len);
                for value in head {
                    prop_assert!(value.abs() <= block.bound * (1.0 + 1e-12), "{} {}", block.name, value);
                }
                rest = tail;
            }
            prop_assert!(rest.is_empty());
        }
    }

    #[test]
    fn no_counts_make_preparing_panic(
        answers in prop::collection::vec(prop::collection::vec(prop_oneof![
            6 => (0u32..9).prop_map(f64::from), 1 => Just(1e308), 1 => Just(-1.0), 1 => Just(f64::NAN)
        ], 60), 1..15),
        rows in prop_oneof![Just(None), (0u64..20).prop_map(Some)],
        noisy: bool,
    ) {
        let domain = Domain::new(vec![-1.0, -1.0], vec![1.0, 1.0], Scaling::None).unwrap();
        let mut preparing = Preparing::new(Scale::Standard, &domain, noisy).unwrap().unwrap();
        for values in answers {
            let query = preparing.ask();
            prop_assert_eq!(query.check(&domain), Ok(()));
            let words: usize = query.layout(&domain).iter().map(|block| block.len).sum();
            match preparing.take(&values[..words], rows) {
                Ok(Some((found, _))) => {
                    prop_assert!(found.domain(&domain).is_ok());
                    break;
                }
                Ok(None) => prop_assert!(preparing.ask() != query),
                Err(_) => prop_assert_eq!(preparing.ask(), query),
            }
        }
    }
}

veilsum_testkit::with_data!(every_index_equals_the_reference);
