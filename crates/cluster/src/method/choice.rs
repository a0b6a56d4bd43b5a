//! The choice of K from the index curve of a sweep (Stallmann & Wilbik 2022, framework paper): argmin, or the
//! elbow of a curve that falls over its whole range, which is told beside what Kneedle reads (Satopää et al. 2011).

use serde::{Deserialize, Serialize};

use crate::refuse;
use crate::validity::Indices;

/// A gap is larger than another one beyond doubt from so many times its `s` on.
const CLEAR: f64 = 2.0;
/// Under noise a gap is larger beyond doubt from so many errors of the difference on, and if it is by so much, too: rows of one skewed cloud
/// reach 0.24. It counts as no smaller than another if that one is larger by a tenth only. Of 232 sweeps over fresh draws of made-up rows
/// with a known K two were wrong without a doubt.
const CLEAR_OF_NOISE: f64 = 2.5;
const CLEAR_UNDER_NOISE: f64 = 0.25;
const AS_LARGE_UNDER_NOISE: f64 = 0.1;
/// Rows of one cluster do not lie closer together than this gap says.
const ONE_UNDER_NOISE: f64 = 0.75;

/// How K is chosen among several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The index that decides.
    pub by: Pick,
    /// The elbow of its curve instead of its best value, where the curve falls over the whole range.
    pub elbow: bool,
}

/// An index that can choose K.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    /// Fuzzy Davies-Bouldin, smallest.
    FuzzyDaviesBouldin,
    /// Davies-Bouldin, smallest.
    DaviesBouldin,
    /// Xie-Beni, smallest.
    XieBeni,
    /// Partition coefficient, largest.
    PartitionCoefficient,
    /// Partition entropy, smallest.
    PartitionEntropy,
    /// Dave's modified partition coefficient, largest.
    ModifiedPartitionCoefficient,
    /// Fukuyama-Sugeno, smallest.
    FukuyamaSugeno,
    /// Calinski-Harabasz, largest.
    CalinskiHarabasz,
    /// Gap statistic (Tibshirani, Walther & Hastie 2001): the smallest K whose gap is at least that of the next K less its `s`.
    Gap,
}

impl Pick {
    /// Every index, and its name in plans and results.
    pub const ALL: [(Self, &'static str); 9] = [
        (Self::FuzzyDaviesBouldin, "fuzzy-davies-bouldin"),
        (Self::DaviesBouldin, "davies-bouldin"),
        (Self::XieBeni, "xie-beni"),
        (Self::PartitionCoefficient, "partition-coefficient"),
        (Self::PartitionEntropy, "partition-entropy"),
        (Self::ModifiedPartitionCoefficient, "modified-partition-coefficient"),
        (Self::FukuyamaSugeno, "fukuyama-sugeno"),
        (Self::CalinskiHarabasz, "calinski-harabasz"),
        (Self::Gap, "gap"),
    ];

    /// Its name in plans and results.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The value so that smaller is better; `None` where it was not computed or is not finite, and where it says nothing of the rows:
    /// with one cluster the partition coefficient is 1 and the entropy 0 whatever they are.
    pub fn badness(self, point: &CurvePoint) -> Option<f64> {
        let indices = &point.indices;
        let (value, sign) = match self {
            Self::PartitionCoefficient | Self::PartitionEntropy if point.k == 1 => (None, 1.0),
            Self::FuzzyDaviesBouldin => (indices.fuzzy_davies_bouldin, 1.0),
            Self::DaviesBouldin => (indices.davies_bouldin, 1.0),
            Self::XieBeni => (indices.xie_beni, 1.0),
            Self::PartitionCoefficient => (indices.partition_coefficient, -1.0),
            Self::PartitionEntropy => (indices.partition_entropy, 1.0),
            Self::ModifiedPartitionCoefficient => (indices.modified_partition_coefficient, -1.0),
            Self::FukuyamaSugeno => (indices.fukuyama_sugeno, 1.0),
            Self::CalinskiHarabasz => (indices.calinski_harabasz, -1.0),
            Self::Gap => (indices.gap, -1.0),
        };
        value.map(|value| value * sign).filter(|value| value.is_finite())
    }

    /// Whether it needs more than the basic totals.
    pub fn needs_full(self) -> bool {
        !matches!(self, Self::FuzzyDaviesBouldin | Self::XieBeni)
    }

    /// Whether it needs sums of coordinates.
    pub fn needs_vectors(self) -> bool {
        matches!(self, Self::FukuyamaSugeno | Self::CalinskiHarabasz)
    }
}

/// One K of a sweep: its best restart.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CurvePoint {
    /// Number of clusters.
    pub k: u32,
    /// Restart with the smallest objective, from 0.
    pub restart: u32,
    /// Its indices.
    pub indices: Indices,
    /// Its objective, squared units of the questions; `None` where it was not judged.
    pub objective: Option<f64>,
    /// Its rounds.
    pub rounds: u32,
    /// Whether it converged.
    pub converged: bool,
    /// Two centres coincide for all purposes: the indices mean nothing.
    pub collapsed: bool,
}

impl Choice {
    /// The place of the chosen point in the curve (ascending K). A collapsed run, or one whose index is not defined, is
    /// chosen only where there is no other. Where the elbow is asked for and the curve has none, the best value counts. Where no K
    /// passes the rule of the gap, the largest does, as in R's `clusGap`.
    pub fn choose(&self, curve: &[CurvePoint]) -> usize {
        let usable = self.usable(curve);
        if self.by == Pick::Gap {
            let ends = usable.last().map_or(0, |last| last.0);
            return self.passes(curve).map_or(ends, |at| usable[at].0);
        }
        let values: Vec<(f64, f64)> = usable.iter().map(|(at, value)| (f64::from(curve[*at].k), *value)).collect();
        let bend = if self.elbow { elbow(&values).ok() } else { None };
        let best = || (0..values.len()).min_by(|a, b| values[*a].1.total_cmp(&values[*b].1));
        bend.or_else(best).map_or(0, |i| usable[i].0)
    }

    /// How the elbow was read, for the reader of the result; nothing where there is nothing to say.
    pub fn told(&self, curve: &[CurvePoint]) -> Option<String> {
        if !self.elbow {
            return None;
        }
        let usable = self.usable(curve);
        let values: Vec<(f64, f64)> = usable.iter().map(|(at, value)| (f64::from(curve[*at].k), *value)).collect();
        let k = |place: usize| curve[usable[place].0].k;
        let (elbow, best) = (elbow(&values), curve.get(self.choose(curve))?.k);
        let other = match kneedle(&values, 1.0) {
            Some(place) => format!("reads K = {}", k(place)),
            None => format!("finds no knee{}", if elbow.is_ok() { "" } else { " either" }),
        };
        let found = match elbow {
            Ok(place) => format!("K = {} is the elbow of an index curve that falls over the whole range", k(place)),
            Err(why) => format!("no elbow was taken: {why}; K = {best} has the best index"),
        };
        Some(format!("{found}; Kneedle (sensitivity 1) {other}"))
    }

    /// Of the usable points the place of the first whose gap is at least that of the next one less its `s`.
    fn passes(&self, curve: &[CurvePoint]) -> Option<usize> {
        let usable = self.usable(curve);
        // The gap is turned, so that smaller is better.
        let passes = |pair: &[(usize, f64)]| pair[0].1 <= pair[1].1 + curve[pair[1].0].indices.gap_error.unwrap_or(0.0);
        usable.windows(2).position(passes)
    }

    /// Where the curve of the gap does not bear the chosen K out: a K whose gap is larger than that of the chosen one by more than
    /// twice its `s`, the largest such gap; the chosen K itself where no K passes the rule. `None` where it does.
    pub fn doubted(&self, curve: &[CurvePoint]) -> Option<u32> {
        let usable = self.usable(curve);
        let chosen = match (self.by, self.passes(curve)) {
            (Pick::Gap, Some(at)) => usable[at].1,
            (Pick::Gap, None) => return usable.last().map(|last| curve[last.0].k),
            _ => return None,
        };
        let error = |at: usize| CLEAR * curve[at].indices.gap_error.unwrap_or(0.0);
        let better = usable.iter().filter(|(at, value)| value + error(*at) < chosen);
        better.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| curve[*at].k)
    }

    /// The place of the chosen point under noise: the smallest K whose gap no larger one exceeds by more than its `s`. With a K that cannot be
    /// told from it: a smaller one whose gap is not smaller beyond doubt, a larger one whose gap is larger, the one of the largest gap if that
    /// of one cluster is larger than one cluster can be, the next one if it has none, or the chosen one if it is the largest.
    pub fn under_noise(&self, curve: &[CurvePoint]) -> (usize, Option<u32>) {
        let gaps: Vec<(usize, f64, f64)> = self
            .usable(curve)
            .into_iter()
            .map(|(at, value)| (at, -value, curve[at].indices.gap_error.unwrap_or(f64::INFINITY)))
            .collect();
        let passes = |place: &usize| gaps[place + 1..].iter().all(|(_, gap, s)| gaps[*place].1 >= gap - s);
        let Some(place) = (0..gaps.len()).find(passes) else { return (0, curve.last().map(|point| point.k)) };
        let (at, gap, s) = gaps[place];
        let clear = |other: f64| (CLEAR_OF_NOISE * s.hypot(other)).max(CLEAR_UNDER_NOISE);
        let smaller = gaps[..place].iter().find(|(_, below, other)| gap - below < clear(*other));
        let larger = gaps[place + 1..].iter().find(|(_, above, _)| above - gap > AS_LARGE_UNDER_NOISE);
        let most = || gaps[place + 1..].iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let larger = larger.or_else(|| most().filter(|_| curve[at].k == 1 && gap > ONE_UNDER_NOISE));
        let beside = [at.wrapping_sub(1), at + 1]
            .into_iter()
            .find(|beside| *beside < curve.len() && gaps.iter().all(|(known, ..)| known != beside));
        let last = (curve.len() > 1 && at + 1 == curve.len()).then_some(at);
        let other = smaller.or(larger).map(|(other, ..)| *other).or(beside).or(last);
        (at, other.map(|other| curve[other].k))
    }

    /// The points whose index means something, with it.
    fn usable(&self, curve: &[CurvePoint]) -> Vec<(usize, f64)> {
        let points = curve.iter().enumerate().filter(|(_, point)| !point.collapsed);
        points.filter_map(|(at, point)| Some((at, self.by.badness(point)?))).collect()
    }
}

/// The elbow of a falling curve: the point that lies farthest below the line from its first to its last point.
///
/// The framework paper reads an elbow by eye, and only where its index falls over the whole range and so has no minimum
/// inside; elsewhere it takes the minimum. The same holds here.
///
/// # Errors
/// Why the curve has none: fewer than three points, a rise, or no point below the line.
pub fn elbow(curve: &[(f64, f64)]) -> Result<usize, &'static str> {
    let [first, _, .., last] = curve else { return Err("an elbow needs three values of K") };
    let rises = curve.windows(2).any(|pair| pair[1].1 >= pair[0].1);
    refuse(rises, || "the index does not fall over the whole range")?;
    let slope = (last.1 - first.1) / (last.0 - first.0);
    let below = |point: &(f64, f64)| first.1 + slope * (point.0 - first.0) - point.1;
    let inside = (1..curve.len() - 1).map(|at| (at, below(&curve[at])));
    let deepest = inside.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, depth)| *depth > 0.0);
    deepest.map(|(at, _)| at).ok_or("no point of the index curve lies below the line through its ends")
}

/// The knee of a falling convex curve by Kneedle (Satopää, Albrecht, Irwin & Raghavan 2011) with this sensitivity S, without
/// its smoothing: both axes are scaled to 0 to 1, and the difference between the turned curve and the diagonal has a local
/// maximum, from which it falls by more than S times the mean distance of points before it rises to another. The first one
/// counts; `None` where there is none.
pub fn kneedle(curve: &[(f64, f64)], sensitivity: f64) -> Option<usize> {
    let (first, last) = (curve.first()?, curve.last()?);
    let ends = |f: fn(f64, f64) -> f64, start: f64| curve.iter().map(|point| point.1).fold(start, f);
    let (low, high) = (ends(f64::min, f64::INFINITY), ends(f64::max, f64::NEG_INFINITY));
    let (wide, tall) = (last.0 - first.0, high - low);
    if curve.len() < 3 || wide <= 0.0 || tall <= 0.0 {
        return None;
    }
    let difference: Vec<f64> = curve.iter().map(|(x, y)| (high - y) / tall - (x - first.0) / wide).collect();
    let step = sensitivity / (curve.len() - 1) as f64;
    let peak = |at: &usize| difference[*at] > difference[at - 1] && difference[*at] >= difference[at + 1];
    let knee = |at: &usize| {
        let after = &difference[at + 1..];
        let until = (1..after.len()).find(|i| after[*i] > after[i - 1]).unwrap_or(after.len());
        after[..until].iter().any(|value| *value < difference[*at] - step)
    };
    (1..curve.len() - 1).filter(peak).find(knee)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// These values of fuzzy Davies-Bouldin from K = 2.
    pub(crate) fn curve(values: &[f64]) -> Vec<CurvePoint> {
        let point = |(k, value): (u32, &f64)| CurvePoint {
            k,
            indices: Indices { fuzzy_davies_bouldin: Some(*value), ..Indices::default() },
            objective: Some(1.0),
            rounds: 1,
            converged: true,
            ..CurvePoint::default()
        };
        (2..).zip(values).map(point).collect()
    }

    #[test]
    fn argmin_and_elbow() {
        let falling = curve(&[1.0, 0.4, 0.3, 0.25, 0.2]);
        let choice = Choice { by: Pick::FuzzyDaviesBouldin, elbow: false };
        assert_eq!(choice.choose(&falling), 4);
        assert_eq!(Choice { elbow: true, ..choice }.choose(&falling), 1);
        let dip = curve(&[0.8, 0.3, 0.9]);
        assert_eq!(choice.choose(&dip), 1);
        // Concave: nothing lies below the line, so the best value counts.
        let elbow = Choice { elbow: true, ..choice };
        assert_eq!(elbow.choose(&curve(&[1.0, 0.95, 0.5])), 2);
        assert!(elbow.told(&curve(&[1.0, 0.95, 0.5])).is_some_and(|told| told.contains("below the line")));
        assert!(elbow.told(&falling).is_some_and(|told| told.starts_with("K = 3 is the elbow")));
        assert_eq!((choice.told(&falling), elbow.choose(&curve(&[0.5, 0.4]))), (None, 1));
    }

    #[test]
    fn a_curve_that_rises_has_a_minimum_and_no_elbow() {
        let elbow = Choice { by: Pick::FuzzyDaviesBouldin, elbow: true };
        // Smallest at K = 3, and its largest bend at K = 5, which no paper would read.
        let bent = curve(&[0.62, 0.5, 1.4, 0.9, 0.88, 0.86]);
        assert_eq!(bent[elbow.choose(&bent)].k, 3);
        let told = elbow.told(&bent).unwrap();
        assert!(
            told.contains("no elbow was taken: the index does not fall") && told.contains("K = 3 has the best"),
            "{told}"
        );
    }

    /// Figure 2 of the paper: ten points of `y = 5 - 1 / (x + 0.1)` on 0 to 1, whose knee is at x = 0.22. Turned upside down it falls.
    #[test]
    fn kneedle_finds_the_knee_of_its_paper() {
        let figure: Vec<(f64, f64)> = (0..10).map(|i| f64::from(i) / 9.0).map(|x| (x, 1.0 / (x + 0.1) - 5.0)).collect();
        let knee = kneedle(&figure, 1.0).unwrap();
        assert!((figure[knee].0 - 0.22).abs() < 0.005, "{knee}");
        // A threshold that no fall reaches, a line, and too few points.
        assert_eq!(kneedle(&figure, 20.0), None);
        assert_eq!(kneedle(&[(2.0, 3.0), (3.0, 2.0), (4.0, 1.0)], 1.0), None);
        assert_eq!(kneedle(&figure[..2], 1.0), None);
    }

    #[test]
    fn collapsed_and_infinite_runs_are_not_chosen() {
        let choice = Choice { by: Pick::FuzzyDaviesBouldin, elbow: false };
        let mut points = curve(&[0.1, 0.5, f64::INFINITY]);
        points[0].collapsed = true;
        assert_eq!(choice.choose(&points), 1);
        points[1].collapsed = true;
        assert_eq!(choice.choose(&points), 0, "there is no other");
        let larger = Choice { by: Pick::CalinskiHarabasz, elbow: false };
        let mut points = curve(&[0.1, 0.5]);
        points[0].indices.calinski_harabasz = Some(3.0);
        points[1].indices.calinski_harabasz = Some(4.0);
        assert_eq!(larger.choose(&points), 1);
    }

    #[test]
    fn one_cluster_wins_no_partition_index_by_definition() {
        let mut points = curve(&[0.5, 0.5, 0.5]);
        for (point, (k, partition, entropy)) in points.iter_mut().zip([(1, 1.0, 0.0), (2, 0.7, 0.5), (3, 0.8, 0.4)]) {
            point.k = k;
            (point.indices.partition_coefficient, point.indices.partition_entropy) = (Some(partition), Some(entropy));
        }
        for by in [Pick::PartitionCoefficient, Pick::PartitionEntropy] {
            assert_eq!(points[Choice { by, elbow: false }.choose(&points)].k, 3, "{by:?}");
            assert_eq!(crate::warnings::vote(by, &points), Some(3), "{by:?}");
        }
    }
}
