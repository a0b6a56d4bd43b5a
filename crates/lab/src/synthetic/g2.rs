//! G2: two Gaussians of 1,024 rows in 2 to 1,024 columns, at 500 and 600 in every column (Fränti, Mariescu-Istodor & Zhong
//! 2016), as Stallmann & Wilbik (2022) use them.
//!
//! The values of the published sets are whole numbers, FLOORED (the smallest distances between found and true centres
//! that the papers print are exactly that bias of one half); the true centres stay at 500 and 600.

use veilsum_cluster::random::Stream;
use veilsum_cluster::synthetic::{Example, Site};
use veilsum_cluster::{Centres, Domain, Error, Rows, Scaling};

/// Rows of each of the two clusters.
pub const PER_CLUSTER: usize = 1024;
const MEANS: [f64; 2] = [500.0, 600.0];

/// One set: `columns` columns, standard deviation `sigma` (10 to 100 in the benchmark), all rows at one site, the first
/// cluster first. Sites are made by [`dealt`].
///
/// # Errors
/// [`Error::NoColumns`], or [`Error::NotFinite`] for a sigma that is not finite.
pub fn whole(columns: usize, sigma: f64, seed: u64) -> Result<Example, Error> {
    let mut stream = Stream::new(seed, b"veilsum g2 gaussians  v1");
    let count = 2 * PER_CLUSTER * columns;
    let mut values = Vec::with_capacity(count);
    while values.len() < count {
        for z in stream.normal_pair() {
            let mean = MEANS[values.len() / (PER_CLUSTER * columns)];
            values.push((mean + sigma * z).floor());
        }
    }
    let labels = (0..2 * PER_CLUSTER).map(|i| i / PER_CLUSTER).collect();
    let rows = Rows::new(values, columns)?;
    Ok(Example { sites: vec![Site { rows, labels }], truth: truth(columns)? })
}

/// The true centres, 2 x `columns`.
///
/// # Errors
/// [`Error::NoColumns`].
pub fn truth(columns: usize) -> Result<Centres, Error> {
    Centres::from_rows(&MEANS.map(|mean| vec![mean; columns]))
}

/// The rows of a set dealt to `sites` sites (at least one): every row goes to a site drawn uniformly, as in the authors'
/// code, so that sizes are multinomial.
pub fn dealt(rows: &Rows, labels: &[usize], sites: usize, seed: u64) -> Vec<Site> {
    let mut stream = Stream::new(seed, b"veilsum split at rand v1");
    let mut parts = vec![(Vec::new(), Vec::new()); sites.max(1)];
    for (row, label) in rows.iter().zip(labels) {
        let (values, labels) = &mut parts[stream.below(sites.max(1) as u64) as usize];
        values.extend_from_slice(row);
        labels.push(*label);
    }
    let site = |(values, labels)| Site { rows: Rows::known(values, rows.columns()), labels };
    parts.into_iter().map(site).collect()
}

/// A public box for every sigma up to 100, original units.
pub fn domain(columns: usize) -> Domain {
    Domain::known(vec![-1000.0; columns], vec![2000.0; columns], Scaling::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_floored_gaussians() {
        let drawn = whole(2, 10.0, 1).unwrap().pooled();
        assert!(drawn.len() == 2048 && drawn.as_slice().iter().all(|value| value.fract() == 0.0));
        assert_eq!(drawn.as_slice()[2046..2050], [513.0, 483.0, 591.0, 617.0], "a published seed would change");
        assert_ne!(whole(2, 10.0, 5).unwrap(), whole(2, 10.0, 6).unwrap());
        assert!(whole(0, 10.0, 1).is_err() && whole(2, f64::NAN, 1).is_err());
    }

    #[test]
    fn every_row_goes_to_one_site() {
        let example = whole(2, 10.0, 1).unwrap();
        let sites = dealt(&example.sites[0].rows, &example.sites[0].labels, 5, 3);
        let sizes: Vec<usize> = sites.iter().map(|site| site.rows.len()).collect();
        assert_eq!(sizes.iter().sum::<usize>(), 2048);
        assert!(sizes.iter().all(|n| (330..490).contains(n)), "{sizes:?}");
        assert!(sites.iter().all(|site| site.labels.len() == site.rows.len()));
    }
}
