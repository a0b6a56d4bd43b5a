//! Descriptions against sums over the pooled rows, and what a description does not ask, answer or believe.

use veilsum_cluster::{
    Algorithm, Domain, Error, OutOfBox, Outcome, Prepared, Recipe, Rows, Scaling, Totals,
    method::{Description, Seeding},
    pooled,
    random::Stream,
};

const BINS: u32 = 16;

fn recipe() -> Recipe {
    Recipe::plain(Algorithm::Describe { bins: BINS }, 1, Seeding::Uniform { seed: 1 })
}

/// Two columns of numbers that go together, and one that does not, at three sites.
fn sites(domain: &Domain) -> Vec<Prepared> {
    let mut stream = Stream::new(7, b"veilsum description rows");
    let mut site = |rows: usize| {
        let mut values = Vec::new();
        for _ in 0..rows {
            let [a, b] = stream.normal_pair();
            values.extend([50.0 + 10.0 * a, 0.3 + 0.05 * (0.8 * a + 0.6 * b), stream.unit() - 0.5]);
        }
        Prepared::new(&Rows::new(values, 3).unwrap(), domain, OutOfBox::Clip).unwrap()
    };
    // The last two lack values that the first has.
    let missing = [vec![0, 0, 0], vec![3, 0, 1], vec![40, 5, 0]];
    let sites = [40, 130, 77].map(&mut site);
    sites.into_iter().zip(missing).map(|(site, missing)| site.with_missing(missing).unwrap()).collect()
}

fn boxed(scaling: Scaling) -> Domain {
    Domain::new(vec![0.0, -1.0, -0.5], vec![100.0, 1.0, 0.5], scaling).unwrap()
}

fn describe(domain: &Domain, sites: &[Prepared]) -> (Outcome, Description) {
    let outcome = pooled::plain_federated(&mut recipe().run(domain, sites.len() as u32).unwrap(), sites).unwrap();
    let found = outcome.description.clone().expect("a description");
    (outcome, found)
}

/// In two passes, as numpy's `mean`, `cov(bias=True)` and `histogram` define them.
fn reference(rows: &Rows, domain: &Domain) -> Description {
    let (n, d) = (rows.len() as f64, rows.columns());
    let mean = |c: usize| rows.iter().map(|row| row[c]).sum::<f64>() / n;
    let means: Vec<f64> = (0..d).map(mean).collect();
    let square = |c: usize| rows.iter().map(|row| (row[c] - means[c]).powi(2)).sum::<f64>() / n;
    let histogram = |c: usize| {
        let (low, high) = domain.working_interval(c);
        let mut counts = vec![0; BINS as usize];
        for row in rows.iter() {
            counts[(((row[c] - low) / (high - low) * f64::from(BINS)) as usize).min(BINS as usize - 1)] += 1;
        }
        counts
    };
    Description {
        rows: rows.len() as u64,
        spread_rows: rows.len() as u64,
        histogram_rows: Some(rows.len() as u64),
        missing: vec![43, 5, 1],
        variances: (0..d).map(square).collect(),
        histograms: (0..domain.numbers()).map(histogram).collect(),
        means,
    }
}

fn close(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    let off = a.iter().zip(b).map(|(a, b)| (a - b).abs() / (1e-3 + a.abs().max(b.abs()))).fold(0.0, f64::max);
    assert!(off < 1e-9, "{off:e}: {a:?} {b:?}");
}

#[test]
fn federated_is_what_pooled_rows_give() {
    for scaling in [Scaling::Box, Scaling::None] {
        let domain = boxed(scaling);
        let sites = sites(&domain);
        let (outcome, found) = describe(&domain, &sites);
        let known = reference(&Prepared::pooled(&sites).unwrap().packed().to_rows(), &domain);
        assert_eq!((found.rows, found.spread_rows, found.histogram_rows), (247, 247, Some(247)));
        assert_eq!((&found.histograms, &found.missing), (&known.histograms, &known.missing));
        close(&found.means, &known.means);
        close(&found.variances, &known.variances);
        assert_eq!((outcome.questions, outcome.n_total, outcome.converged), (4, Some(247), true));
        assert_eq!(outcome.centres.row(0), found.means);
        assert!(outcome.questions <= recipe().max_questions());
    }
}

#[test]
fn categories_have_shares_and_no_bins() {
    let domain = Domain::mixed(vec![0.0], vec![10.0], Scaling::Box, &[vec![0.5; 3]]).unwrap();
    let rows =
        Rows::new([[1.0, 1.0, 0.0, 0.0], [2.0, 0.0, 1.0, 0.0], [6.0, 1.0, 0.0, 0.0], [7.0, 1.0, 0.0, 0.0]].concat(), 4)
            .unwrap();
    let site = Prepared::new(&rows, &domain, OutOfBox::Refuse).unwrap();
    let mut kinds = Vec::new();
    let outcome = crate::drive(&mut recipe().run(&domain, 2).unwrap(), |_, batch| {
        kinds.push(batch.kind());
        pooled::totals(batch, &[site.clone(), site.clone()]).unwrap()
    });
    assert_eq!(kinds, ["missing", "histogram", "moments", "moments"]);
    let found = outcome.description.unwrap();
    assert_eq!((found.rows, found.histograms.len()), (8, 1));
    let shares: Vec<f64> = found.means[1..].iter().map(|mean| mean / 0.5).collect();
    close(&shares, &[0.75, 0.25, 0.0]);
    close(&[found.means[0], found.variances[0]], &[0.4, 0.065]);
    // Only categories: nothing has bins.
    let only = Domain::mixed(vec![], vec![], Scaling::Box, &[vec![1.0; 2]]).unwrap();
    let rows = Rows::new(vec![1.0, 0.0, 0.0, 1.0, 0.0, 1.0], 2).unwrap();
    let (outcome, found) = describe(&only, &[Prepared::new(&rows, &only, OutOfBox::Refuse).unwrap()]);
    assert_eq!((outcome.questions, found.histogram_rows, found.rows), (3, None, 3));
}

/// Noise leaves no number of missing values below 0, and takes those of no number.
#[test]
fn missing_values_are_counted_under_noise() {
    let noise = Some(veilsum_cluster::privacy::Noise::usual(1.0, 200).from_anywhere());
    let (domain, noisy) = (boxed(Scaling::Box), Recipe { noise, ..recipe() });
    let sites = sites(&domain);
    let outcome = crate::drive(&mut noisy.run(&domain, 3).unwrap(), |run, batch| {
        let mut values = pooled::totals(batch, &sites).unwrap().values;
        if batch.kind() == "missing" {
            let bad = run.next(Some(&Totals { values: vec![f64::NAN, 0.0, 0.0], rows: None }));
            assert!(matches!(bad, Err(Error::Implausible(_))), "{bad:?}");
            values[2] = -7.3;
            values[1] += 0.4;
        }
        Totals { values, rows: None }
    });
    assert_eq!((outcome.questions, noisy.max_questions()), (4, 4));
    assert_eq!(outcome.description.unwrap().missing, [43, 5, 0]);
}

#[test]
fn totals_of_no_rows_are_not_believed_and_change_nothing() {
    let domain = boxed(Scaling::Box);
    let sites = sites(&domain);
    let mut round = 0;
    let outcome = crate::drive(&mut recipe().run(&domain, 3).unwrap(), |run, batch| {
        let good = pooled::totals(batch, &sites).unwrap();
        type Lie = fn(&mut Vec<f64>);
        let lies: &[Lie] = match round {
            0 => &[|v| v[1] = -2.0, |v| v[0] = f64::NAN, |v| v.push(0.0)],
            1 => &[|v| v.fill(0.0), |v| v[3] += 5.0, |v| v[3] = -2.0, |v| v[0] = 1.0, |v| v.truncate(5)],
            2 => &[|v| v[0] = 0.0, |v| v[1] = 2.0 * v[0], |v| v[2] = f64::NAN, |v| v[0] = -4.0],
            _ => &[|v| v[0] = 0.0, |v| v[1] = -v[0], |v| v.push(1.0)],
        };
        for (at, lie) in lies.iter().enumerate() {
            let mut values = good.values.clone();
            lie(&mut values);
            let found = run.next(Some(&Totals { values, rows: None }));
            assert!(matches!(found, Err(Error::Implausible(_))), "round {round}, lie {at}: {found:?}");
        }
        assert!(run.stop_here().is_err(), "half a description is none");
        round += 1;
        good
    });
    assert_eq!(outcome.description, Some(describe(&domain, &sites).1));
}
