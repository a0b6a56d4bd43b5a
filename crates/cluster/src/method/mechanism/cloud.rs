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
    /// Which part of a cluster's points lies below each of them in a column, and half of itself.
    ranks: Vec<f64>,
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
        let normal: Vec<f64> = half.iter().copied().chain(half.iter().map(|z| -z)).collect();
        let mut ranks = vec![0.0; normal.len()];
        for column in 0..d {
            let mut order: Vec<usize> = (column..normal.len()).step_by(d).collect();
            order.sort_by(|a, b| normal[*a].total_cmp(&normal[*b]));
            order.into_iter().enumerate().for_each(|(rank, at)| ranks[at] = (rank as f64 + 0.5) / each as f64);
        }
        Self { normal, each, ranks }
    }

    /// Clusters at `centres`, of so many rows each, of this deviation times how wide columns are, cut off at the box. In the columns `ends` a
    /// point lies at one end: a yes or a no.
    pub(super) fn cloud(
        &self,
        centres: &Centres,
        rows: &[f64],
        (wide, ends): (&[f64], &[usize]),
        deviation: f64,
        domain: &Domain,
    ) -> Cloud {
        let d = centres.columns();
        let walls: Vec<(f64, f64)> = (0..d).map(|column| domain.working_interval(column)).collect();
        let around = |centre: &[f64]| -> Vec<f64> {
            let place = |(i, z): (usize, &f64)| {
                (centre[i % d] + deviation * wide[i % d] * z).clamp(walls[i % d].0, walls[i % d].1)
            };
            let mut points: Vec<f64> = self.normal.iter().enumerate().map(place).collect();
            for (point, ranks) in points.chunks_exact_mut(d).zip(self.ranks.chunks_exact(d)) {
                for j in ends.iter().copied() {
                    let share = (centre[j] - walls[j].0) / (walls[j].1 - walls[j].0);
                    point[j] = if ranks[j] < share { walls[j].1 } else { walls[j].0 };
                }
            }
            points
        };
        let behind = |n: &f64| std::iter::repeat_n(n / self.each as f64, self.each);
        Cloud { points: centres.rows().flat_map(around).collect(), weights: rows.iter().flat_map(behind).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scaling;

    /// A yes or no lies at an end, in as many rows as the centre says.
    #[test]
    fn columns_of_ends_have_their_shares() {
        let domain = Domain::new(vec![0.0; 3], vec![2.0; 3], Scaling::None).unwrap();
        let centres = Centres::known(vec![[1.0, 0.5, 1.8]]);
        let cloud = Shape::new(POINTS, 1, 3).cloud(&centres, &[720.0], (&[1.0; 3], &[1, 2]), 0.1, &domain);
        for (column, centre) in centres.as_slice().iter().enumerate() {
            let values = cloud.points.iter().skip(column).step_by(3).zip(&cloud.weights);
            let mean = values.map(|(x, weight)| x * weight).sum::<f64>() / 720.0;
            assert!((mean - centre).abs() < 0.01, "{column}: {mean}");
        }
        let at_ends = |row: &[f64]| row[0] * (2.0 - row[0]) > 0.0 && row[1..].iter().all(|x| [0.0, 2.0].contains(x));
        assert!(cloud.points.chunks(3).all(at_ends));
    }
}
