//! Seeded example data: the five-Gaussian motivational example of Stallmann & Wilbik (2022, Appl. Sci. 12, 10455).

use crate::random::Stream;
use crate::{Centres, Domain, Rows, Scaling};

/// Seed of the example data that documents and demonstrations use.
pub const DEFAULT_SEED: u64 = 1;

/// Seed of a uniform start from which fuzzy c-means with K = 5, m = 2, epsilon = 0.005 finds the five clusters of the
/// default example.
pub const DEFAULT_START_SEED: u64 = 5;

const LABEL: &[u8; 24] = b"veilsum five gaussian v1";
const CORNERS: [[f64; 2]; 4] = [[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]];
const MIDDLE: [f64; 2] = [0.5, 0.5];
const CORNER_SIGMA: f64 = 0.2;
const MIDDLE_SIGMA: f64 = 0.01;
const PER_CORNER: usize = 500;
const PER_MIDDLE: usize = 40;
const BOX: (f64, f64) = (-1.0, 2.0);

/// One site of an example.
#[derive(Debug, Clone, PartialEq)]
pub struct Site {
    /// Its rows, n x 2.
    pub rows: Rows,
    /// The true cluster of each row, n.
    pub labels: Vec<usize>,
}

/// Example data with known clusters.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// The sites.
    pub sites: Vec<Site>,
    /// The means the rows were drawn around, K x 2, by label.
    pub truth: Centres,
}

/// The motivational example: 3 sites of 1,040 rows in the plane, five clusters, of which no site has more than three.
///
/// Labels 0 to 3 are the corners (0,0), (0,1), (1,1), (1,0) of the unit square (sigma 0.2), label 4 its middle (0.5,0.5)
/// (sigma 0.01). Site i holds 500 rows of corner i, 500 of corner i+1 and 40 of the middle: adjacent corners along the
/// path, which is what the paper's numbers need (its text names a diagonal pair for the second site).
///
/// A point outside [`five_gaussians_domain`] (one in a million) is drawn again. The same seed gives the same rows up to
/// the platform's rounding of `ln`.
pub fn five_gaussians(seed: u64) -> Example {
    let mut stream = Stream::new(seed, LABEL);
    let sites = (0..3).map(|first| draw_site(&mut stream, first)).collect();
    Example { sites, truth: Centres::known([CORNERS.as_slice(), &[MIDDLE]].concat()) }
}

/// The public box of the example: [-1, 2] in both columns, scaled to the unit square.
pub fn five_gaussians_domain() -> Domain {
    Domain::known(vec![BOX.0; 2], vec![BOX.1; 2], Scaling::Box)
}

/// Corner `first`, the next corner, the middle.
fn draw_site(stream: &mut Stream, first: usize) -> Site {
    let second = first + 1;
    let clusters = [
        (first, CORNERS[first], CORNER_SIGMA, PER_CORNER),
        (second, CORNERS[second], CORNER_SIGMA, PER_CORNER),
        (CORNERS.len(), MIDDLE, MIDDLE_SIGMA, PER_MIDDLE),
    ];
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for (label, mean, sigma, count) in clusters {
        for _ in 0..count {
            values.extend(draw_point(stream, mean, sigma));
            labels.push(label);
        }
    }
    Site { rows: Rows::known(values, 2), labels }
}

fn draw_point(stream: &mut Stream, mean: [f64; 2], sigma: f64) -> [f64; 2] {
    loop {
        let [x, y] = stream.normal_pair();
        let point = [mean[0] + sigma * x, mean[1] + sigma * y];
        if point.iter().all(|value| (BOX.0..=BOX.1).contains(value)) {
            return point;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OutOfBox;

    #[test]
    fn the_example_has_the_shape_of_the_paper() {
        for seed in 0..20 {
            let example = five_gaussians(seed);
            assert_eq!(example.sites.len(), 3);
            for (i, site) in example.sites.iter().enumerate() {
                assert_eq!((site.rows.len(), site.labels.len()), (1040, 1040));
                let count = |label| site.labels.iter().filter(|own| **own == label).count();
                assert_eq!((count(i), count(i + 1), count(4)), (500, 500, 40));
                assert!(five_gaussians_domain().to_working(&site.rows, OutOfBox::Refuse).is_ok());
                for label in [i, i + 1, 4] {
                    let own = || site.rows.iter().zip(&site.labels).filter(|(_, own)| **own == label);
                    for column in 0..2 {
                        let mean = own().map(|(row, _)| row[column]).sum::<f64>() / own().count() as f64;
                        assert!((mean - example.truth.row(label)[column]).abs() < 0.05, "seed {seed}");
                    }
                }
            }
        }
        assert_eq!(five_gaussians(3), five_gaussians(3));
        assert_ne!(five_gaussians(3), five_gaussians(4));
    }
}
