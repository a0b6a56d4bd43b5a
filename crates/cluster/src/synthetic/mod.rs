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
/// Sigma and rows at a site of the other example's middle.
const WIDE_MIDDLE: (f64, usize) = (0.1, 250);
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

impl Example {
    /// The rows of all sites, one after the other.
    pub fn pooled(&self) -> Rows {
        let values = self.sites.iter().flat_map(|site| site.rows.as_slice()).copied().collect();
        Rows::known(values, self.truth.columns())
    }

    /// The true clusters of all rows, in the order of [`Example::pooled`].
    pub fn labels(&self) -> Vec<usize> {
        self.sites.iter().flat_map(|site| &site.labels).copied().collect()
    }
}

/// The motivational example: 3 sites of 1,040 rows in the plane with five clusters. No site has more than three of
/// them.
///
/// Labels 0 to 3 are the corners (0,0), (0,1), (1,1), (1,0) of the unit square (sigma 0.2), label 4 its middle (0.5,0.5)
/// (sigma 0.01). Site i holds 500 rows of corner i, 500 of corner i+1 and 40 of the middle: adjacent corners along the
/// path, which is what the paper's numbers need (its text names a diagonal pair for the second site).
///
/// A point outside [`five_gaussians_domain`] (one in a million) is drawn again. The same seed gives the same rows up to
/// the platform's rounding of `ln`.
pub fn five_gaussians(seed: u64) -> Example {
    around_corners(seed, MIDDLE_SIGMA, PER_MIDDLE)
}

/// The same with a middle that noise leaves in its place: 250 rows at each site, sigma 0.1. With the paper's 40 a fuzzy partition hardly
/// changes if two centres share a corner instead, so that eight noisy rounds end at either.
pub fn five_groups(seed: u64) -> Example {
    around_corners(seed, WIDE_MIDDLE.0, WIDE_MIDDLE.1)
}

fn around_corners(seed: u64, sigma: f64, middle: usize) -> Example {
    let mut stream = Stream::new(seed, LABEL);
    let sites = (0..3).map(|first| draw_site(&mut stream, first, sigma, middle)).collect();
    Example { sites, truth: Centres::known([CORNERS.as_slice(), &[MIDDLE]].concat()) }
}

/// The public box of the example: [-1, 2] in both columns, scaled to the unit square.
pub fn five_gaussians_domain() -> Domain {
    Domain::known(vec![BOX.0; 2], vec![BOX.1; 2], Scaling::Box)
}

/// Corner `first`, the next corner, the middle.
fn draw_site(stream: &mut Stream, first: usize, sigma: f64, middle: usize) -> Site {
    let second = first + 1;
    let mut draft = Draft::new(&BOX);
    draft.gaussian(stream, first, CORNERS[first], CORNER_SIGMA, PER_CORNER);
    draft.gaussian(stream, second, CORNERS[second], CORNER_SIGMA, PER_CORNER);
    draft.gaussian(stream, CORNERS.len(), MIDDLE, sigma, middle);
    draft.site()
}

/// A site of points in the plane, while it is drawn.
pub struct Draft {
    interval: (f64, f64),
    values: Vec<f64>,
    labels: Vec<usize>,
}

impl Draft {
    /// No points yet; both coordinates of all that come lie in `interval`.
    pub fn new(interval: &(f64, f64)) -> Self {
        Self { interval: *interval, values: Vec::new(), labels: Vec::new() }
    }

    /// Adds `count` points around `mean`; one outside the box is drawn again.
    pub fn gaussian(&mut self, stream: &mut Stream, label: usize, mean: [f64; 2], sigma: f64, count: usize) {
        for _ in 0..count {
            let point = draw_point(stream, mean, sigma, self.interval);
            self.values.extend(point);
            self.labels.push(label);
        }
    }

    /// The site.
    pub fn site(self) -> Site {
        Site { rows: Rows::known(self.values, 2), labels: self.labels }
    }
}

fn draw_point(stream: &mut Stream, mean: [f64; 2], sigma: f64, interval: (f64, f64)) -> [f64; 2] {
    loop {
        let [x, y] = stream.normal_pair();
        let point = [mean[0] + sigma * x, mean[1] + sigma * y];
        if point.iter().all(|value| (interval.0..=interval.1).contains(value)) {
            return point;
        }
    }
}
