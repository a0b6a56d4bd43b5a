//! Made-up rows: points that each stand for many, in clusters or wherever somebody says.

use crate::random::Stream;
use crate::{Centres, Domain};

/// Made-up points of all clusters together, each of them for many rows; and of one cluster at least.
pub(super) const POINTS: usize = 240;
pub(super) const POINTS_EACH: usize = 8;

/// Points that stand for rows.
pub(super) struct Cloud {
    /// P x d.
    pub(super) points: Vec<f64>,
    /// Rows behind each point, P.
    pub(super) weights: Vec<f64>,
}

impl Cloud {
    /// Another sample of as many rows, `part` as far off: rows behind points are as good as Poisson numbers that add up to as many.
    pub(super) fn sampled(&self, part: f64, stream: &mut Stream) -> Cloud {
        let mut draw = |w: &f64| {
            let spread = (part * part / w.max(f64::MIN_POSITIVE)).ln_1p();
            w * (spread.sqrt() * stream.normal_pair()[0] - spread / 2.0).exp()
        };
        let drawn: Vec<f64> = self.weights.iter().map(&mut draw).collect();
        let as_many = self.weights.iter().sum::<f64>() / drawn.iter().sum::<f64>();
        Cloud { points: self.points.clone(), weights: drawn.iter().map(|w| w * as_many).collect() }
    }

    /// The same rows behind points elsewhere.
    pub(super) fn at(&self, points: Vec<f64>) -> Cloud {
        Cloud { points, weights: self.weights.clone() }
    }
}

/// Round points of mean 0 and deviation 1 in every column, the same number for every cluster, each with its mirror image.
pub(super) struct Shape {
    pub(super) normal: Vec<f64>,
    pub(super) each: usize,
}

impl Shape {
    pub(super) fn new(points: usize, k: usize, d: usize) -> Self {
        let each = (points / k).max(POINTS_EACH).next_multiple_of(2);
        let mut stream = Stream::new(0, b"veilsum mechanism points");
        let mut half: Vec<f64> = std::iter::repeat_with(|| stream.normal_pair()).flatten().take(each / 2 * d).collect();
        // So few points have the deviation 1 by chance only.
        for column in 0..d {
            let squares: f64 = half.iter().skip(column).step_by(d).map(|z| z * z).sum();
            let deviation = (squares / (each / 2) as f64).sqrt();
            half.iter_mut().skip(column).step_by(d).for_each(|z| *z /= deviation);
        }
        Self { normal: half.iter().copied().chain(half.iter().map(|z| -z)).collect(), each }
    }

    /// Clusters at `centres`, of so many rows each, of this deviation times how wide columns are, cut off at the box.
    pub(super) fn cloud(
        &self,
        centres: &Centres,
        rows: &[f64],
        wide: &[f64],
        deviation: f64,
        domain: &Domain,
    ) -> Cloud {
        let d = centres.columns();
        let walls: Vec<(f64, f64)> = (0..d).map(|column| domain.working_interval(column)).collect();
        let around = |centre: &[f64]| -> Vec<f64> {
            let place = |(i, z): (usize, &f64)| {
                (centre[i % d] + deviation * wide[i % d] * z).clamp(walls[i % d].0, walls[i % d].1)
            };
            self.normal.iter().enumerate().map(place).collect()
        };
        let behind = |n: &f64| std::iter::repeat_n(n / self.each as f64, self.each);
        Cloud { points: centres.rows().flat_map(around).collect(), weights: rows.iter().flat_map(behind).collect() }
    }
}
