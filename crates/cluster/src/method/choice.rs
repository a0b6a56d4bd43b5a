//! The choice of K from the index curve of a sweep (Stallmann & Wilbik 2022, framework paper): argmin, or the elbow.

use serde::{Deserialize, Serialize};

use crate::validity::Indices;

/// How K is chosen among several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The index that decides.
    pub by: Pick,
    /// The elbow of its curve instead of its best value.
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
    /// Simplified silhouette around the centres, largest.
    SimplifiedSilhouette,
    /// Silhouette with squared distances, largest.
    SilhouetteSquared,
    /// Bayesian information criterion of a Gaussian mixture, smallest.
    Bic,
}

impl Pick {
    /// The value so that smaller is better; `None` where it was not computed or is not finite.
    pub fn badness(self, indices: &Indices) -> Option<f64> {
        let (value, sign) = match self {
            Self::FuzzyDaviesBouldin => (Some(indices.fuzzy_davies_bouldin), 1.0),
            Self::DaviesBouldin => (indices.davies_bouldin, 1.0),
            Self::XieBeni => (indices.xie_beni, 1.0),
            Self::PartitionCoefficient => (indices.partition_coefficient, -1.0),
            Self::PartitionEntropy => (indices.partition_entropy, 1.0),
            Self::ModifiedPartitionCoefficient => (indices.modified_partition_coefficient, -1.0),
            Self::FukuyamaSugeno => (indices.fukuyama_sugeno, 1.0),
            Self::CalinskiHarabasz => (indices.calinski_harabasz, -1.0),
            Self::SimplifiedSilhouette => (indices.simplified_silhouette, -1.0),
            Self::SilhouetteSquared => (indices.silhouette_squared, -1.0),
            Self::Bic => (indices.bic, 1.0),
        };
        value.map(|value| value * sign).filter(|value| value.is_finite())
    }

    /// Whether it needs more than the basic totals.
    pub fn needs_full(self) -> bool {
        !matches!(self, Self::FuzzyDaviesBouldin | Self::XieBeni | Self::Bic)
    }

    /// Whether it needs sums of coordinates.
    pub fn needs_vectors(self) -> bool {
        matches!(self, Self::FukuyamaSugeno | Self::CalinskiHarabasz | Self::SilhouetteSquared)
    }
}

/// One K of a sweep: its best restart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Number of clusters.
    pub k: u32,
    /// Restart with the smallest objective, from 0.
    pub restart: u32,
    /// Its indices.
    pub indices: Indices,
    /// Its objective, squared units of the questions.
    pub objective: f64,
    /// Its rounds.
    pub rounds: u32,
    /// Whether it converged.
    pub converged: bool,
    /// Two centres coincide for all purposes: the indices mean nothing.
    pub collapsed: bool,
}

impl Choice {
    /// The place of the chosen point in the curve (ascending K). A collapsed run, or one whose index is not defined, is
    /// chosen only where there is no other.
    pub fn choose(&self, curve: &[CurvePoint]) -> usize {
        let usable: Vec<(usize, f64)> = curve
            .iter()
            .enumerate()
            .filter(|(_, point)| !point.collapsed)
            .filter_map(|(at, point)| Some((at, self.by.badness(&point.indices)?)))
            .collect();
        let best = usable.iter().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(at, _)| *at);
        if !self.elbow || usable.len() < 3 {
            return best;
        }
        elbow(&usable.iter().map(|(at, value)| (f64::from(curve[*at].k), *value)).collect::<Vec<_>>())
            .map_or(best, |i| usable[i].0)
    }
}

/// The point of a falling curve that lies farthest below the line from its first to its last point; `None` where none
/// lies below. (The papers read the elbow by eye and give no rule.)
pub fn elbow(curve: &[(f64, f64)]) -> Option<usize> {
    let (first, last) = (curve.first()?, curve.last()?);
    if last.0 <= first.0 {
        return None;
    }
    let slope = (last.1 - first.1) / (last.0 - first.0);
    let below = |point: &(f64, f64)| first.1 + slope * (point.0 - first.0) - point.1;
    let (at, depth) = curve.iter().map(below).enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (depth > 0.0).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(values: &[f64]) -> Vec<CurvePoint> {
        let point = |(i, value): (usize, &f64)| CurvePoint {
            k: i as u32 + 2,
            restart: 0,
            indices: Indices { fuzzy_davies_bouldin: *value, ..Indices::default() },
            objective: 1.0,
            rounds: 1,
            converged: true,
            collapsed: false,
        };
        values.iter().enumerate().map(point).collect()
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
        assert_eq!(Choice { elbow: true, ..choice }.choose(&curve(&[1.0, 0.95, 0.5])), 2);
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
}
