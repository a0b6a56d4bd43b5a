//! What the clusters of a result hold: one schema for all methods, from totals that a run asks anyway.

use serde::{Deserialize, Serialize};

use crate::validity::Held;

/// What each cluster of the reported centres holds, K entries each; `None` (JSON `null`) is explained in `not_shown`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterSizes {
    /// Rows that are nearest to each centre.
    pub sizes: Vec<Option<u64>>,
    /// `sum u`: memberships over all rows with the result's fuzzifier m. Hard methods have none, and no weight.
    pub mass: Vec<Option<f64>>,
    /// `sum u^m`, likewise.
    pub weight: Vec<Option<f64>>,
    /// Standard deviations of the rows nearest to each centre around that centre, one a column: `sqrt(sum (x - c)^2 / n)`. Hard, so
    /// a row counts in one cluster, also where the method is fuzzy.
    pub deviations: Vec<Option<Vec<f64>>>,
    /// Why numbers are missing, a sentence each.
    pub not_shown: Vec<String>,
}

impl ClusterSizes {
    /// Nothing is known, for this reason.
    pub fn unknown(k: usize, why: &str) -> Self {
        let not_shown = vec![why.into()];
        Self { sizes: vec![None; k], mass: vec![None; k], weight: vec![None; k], deviations: vec![None; k], not_shown }
    }

    /// Without deviations, for this reason.
    pub(super) fn without_deviations(mut self, why: &str) -> Self {
        self.deviations.fill(None);
        self.not_shown.retain(|reason| !reason.starts_with("deviations:"));
        self.not_shown.push(why.into());
        self
    }

    /// With the rows that noisy rounds counted in hard groups.
    pub(super) fn counted(mut self, rows: &[f64]) -> Self {
        // Saturates: noise may leave less than no rows.
        self.sizes = rows.iter().map(|rows| Some(rows.round() as u64)).collect();
        self.not_shown.retain(|reason| !reason.starts_with("sizes:"));
        self
    }

    /// What the validation said of K clusters of a method that is fuzzy or not.
    pub(super) fn of(k: usize, held: &Held, fuzzy: bool) -> Self {
        let mut not_shown = Vec::new();
        let mut missing = |missing: bool, why: &str| {
            if missing {
                not_shown.push(why.to_owned());
            }
        };
        let rows = held.rows.as_deref();
        missing(held.deviations.is_none(), "deviations: squared deviations were not summed up by cluster");
        missing(rows.is_none(), "sizes: the plan does not ask for totals of hard clusters");
        if !fuzzy {
            missing(true, "mass, weight: groups are hard, and no row is shared among them");
        } else if held.mass.len() != k {
            missing(true, "mass: the intermediary judged, and the coordinator does not see its totals");
        } else {
            missing(held.weight.is_none(), "weight: the plan does not ask for sums of u^m at the final centres");
        }
        let shown = |list: Option<&[f64]>| -> Vec<Option<f64>> {
            let list = list.filter(|list| list.len() == k);
            (0..k).map(|c| list.map(|list| list[c])).collect()
        };
        let sizes: Vec<Option<u64>> =
            shown(rows).into_iter().map(|size| size.map(|size| size.round() as u64)).collect();
        let filled = |c: &usize| sizes[*c].is_some_and(|size| size > 0);
        missing(held.deviations.is_some() && !(0..k).all(|c| filled(&c)), "deviations: a cluster is empty");
        let of = |c: usize| held.deviations.as_ref().filter(|_| filled(&c)).map(|all| all[c].clone());
        let deviations = (0..k).map(of).collect();
        let (mass, weight) = (Some(held.mass.as_slice()), held.weight.as_deref());
        let [mass, weight] = [mass, weight].map(|list| shown(list.filter(|_| fuzzy)));
        Self { mass, weight, deviations, sizes, not_shown }
    }

    /// The same with other units of the columns: every deviation times the factor of its column.
    #[must_use]
    pub fn stretched(mut self, by: &[f64]) -> Self {
        let all = self.deviations.iter_mut().flatten();
        all.for_each(|of| of.iter_mut().zip(by).for_each(|(deviation, factor)| *deviation *= factor));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_asked_is_null_with_its_reason() {
        let held = Held { mass: vec![9.5, 10.5, 11.0], ..Held::default() };
        let found = ClusterSizes::of(3, &held, true);
        assert_eq!((found.sizes, found.weight), (vec![None; 3], vec![None; 3]));
        assert_eq!(found.mass, [Some(9.5), Some(10.5), Some(11.0)]);
        let named: Vec<&str> = found.not_shown.iter().filter_map(|why| why.split(':').next()).collect();
        assert_eq!(named, ["deviations", "sizes", "weight"]);
        assert_eq!(found.deviations, [None, None, None]);
        let none = ClusterSizes::of(3, &Held::default(), true);
        assert!(none.mass == [None; 3] && none.not_shown.iter().any(|why| why.contains("intermediary")));
    }

    #[test]
    fn an_empty_cluster_has_no_deviation() {
        let of = |rows: [f64; 3]| {
            let around = vec![vec![0.1], vec![0.2], vec![0.0]];
            let held =
                Held { rows: Some(rows.to_vec()), mass: rows.to_vec(), deviations: Some(around), ..Held::default() };
            ClusterSizes::of(3, &held, true).deviations
        };
        assert_eq!(of([20.0, 11.0, 6.0]), [Some(vec![0.1]), Some(vec![0.2]), Some(vec![0.0])]);
        assert_eq!(of([20.0, 11.0, 0.0]), [Some(vec![0.1]), Some(vec![0.2]), None]);
    }
}
