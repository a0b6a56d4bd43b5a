//! What the clusters of a result hold: one schema for all methods, from totals that a run asks anyway.

use serde::{Deserialize, Serialize};

use super::GroupThreshold;
use crate::algorithm::Counted;
use crate::validity::Held;

/// What each cluster of the reported centres holds, K entries each; `None` (JSON `null`) is explained in `not_shown`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterSizes {
    /// Rows that are nearest to each centre.
    pub sizes: Vec<Option<u64>>,
    /// `sum u`: memberships of fuzzy c-means with the result's fuzzifier m, over all rows, of every method: those of `gk` with its own
    /// distances, of `gmm` and of a noise cluster are others.
    pub mass: Vec<Option<f64>>,
    /// `sum u^m`, likewise.
    pub weight: Vec<Option<f64>>,
    /// Standard deviations of the rows nearest to each centre around that centre, one a column: `sqrt(sum (x - c)^2 / n)`. Hard, so
    /// a row counts in one cluster, also where the method is fuzzy.
    pub deviations: Vec<Option<Vec<f64>>>,
    /// Rows that no cluster counted in the last round, such as those of a site's groups below p under `fkm`.
    pub left_out: Option<u64>,
    /// Why numbers are missing, a sentence each.
    pub not_shown: Vec<String>,
}

/// What is known of the clusters, and the rule on how much of it may be shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) k: usize,
    pub(super) rule: GroupThreshold,
    /// What the validation said.
    pub(super) held: &'a Held,
    /// Rows and sites of every cluster, where they were counted before the validation.
    pub(super) counted_first: Option<(&'a [f64], &'a [f64])>,
    /// N of the validation, where the last round is over the same sites.
    pub(super) rows: Option<u64>,
    /// What the last round counted.
    pub(super) last: Counted,
}

impl ClusterSizes {
    /// Nothing is known, for this reason.
    pub fn unknown(k: usize, why: &str) -> Self {
        let not_shown = vec![why.into()];
        Self {
            sizes: vec![None; k],
            mass: vec![None; k],
            weight: vec![None; k],
            deviations: vec![None; k],
            left_out: None,
            not_shown,
        }
    }

    /// Without deviations, for this reason.
    pub(super) fn without_deviations(mut self, why: &str) -> Self {
        self.deviations.fill(None);
        self.not_shown.retain(|reason| !reason.starts_with("deviations:"));
        self.not_shown.push(why.into());
        self
    }

    /// What may be shown of what is known. A cluster that the rule closes shows nothing. The number of rows less all others
    /// would tell it where it is the only one, and where there are several how many rows they have together: so the smallest
    /// others show nothing either, until there are two and they have as many rows as the rule asks of one.
    pub(super) fn of(known: Known<'_>) -> Self {
        let Known { k, rule, held, counted_first, .. } = known;
        let mut not_shown = Vec::new();
        let mut rows = held.rows.as_deref();
        let mut deviations = held.deviations.as_deref();
        if deviations.is_none() {
            not_shown.push("deviations: squared deviations were not summed up by cluster".to_owned());
        }
        match (counted_first, rows) {
            (Some((counted, _)), None) => rows = Some(counted),
            (None, Some(_)) if rule.min_sites > 1 => {
                not_shown.push(
                    "sizes, deviations: how many sites stand behind a cluster of these centres was not asked"
                        .to_owned(),
                );
                (rows, deviations) = (None, None);
            }
            (None, None) => not_shown.push("sizes: the plan does not ask for totals of hard clusters".to_owned()),
            _ => {}
        }
        if held.mass.len() != k {
            not_shown.push("mass: the intermediary judged, and the coordinator does not see its totals".to_owned());
        } else if held.weight.is_none() {
            not_shown.push("weight: the plan does not ask for sums of u^m at the final centres".to_owned());
        }
        let few = |c: usize| {
            let sites = counted_first.map_or(f64::INFINITY, |(_, sites)| sites[c]);
            rows.is_some_and(|rows| !rule.allows(rows[c], sites))
                || held.mass.get(c).is_some_and(|mass| !rule.allows(*mass, f64::INFINITY))
        };
        let mut hidden: Vec<bool> = (0..k).map(|c| rule != GroupThreshold::NONE && few(c)).collect();
        if hidden.iter().any(|hidden| *hidden) {
            // Rows and memberships are both told by their sum, which is N.
            let lists = [rows.unwrap_or_default(), &held.mass];
            let size = |c: usize, list: &[f64]| list.get(c).copied().unwrap_or(0.0);
            let told = |hidden: &[bool]| {
                let sum = |list: &[f64]| (0..k).filter(|c| hidden[*c]).map(|c| size(c, list)).sum::<f64>();
                let few = |list: &&[f64]| list.len() == k && !rule.allows(sum(list), f64::INFINITY);
                hidden.iter().filter(|hidden| **hidden).count() < 2 || lists.iter().any(few)
            };
            while told(&hidden) {
                let first = if lists[0].is_empty() { lists[1] } else { lists[0] };
                let others = (0..k).filter(|c| !hidden[*c]);
                let Some(smallest) = others.min_by(|a, b| size(*a, first).total_cmp(&size(*b, first))) else { break };
                hidden[smallest] = true;
            }
            not_shown.push(format!(
                "fewer than {} rows or {} sites stand behind a cluster: its numbers are not shown, nor those of the smallest \
                 others where the number of rows would tell them",
                rule.min_rows, rule.min_sites
            ));
        }
        let shown = |list: Option<&[f64]>| -> Vec<Option<f64>> {
            let list = list.filter(|list| list.len() == k);
            hidden.iter().enumerate().map(|(c, hidden)| list.filter(|_| !hidden).map(|list| list[c])).collect()
        };
        let sizes = shown(rows).into_iter().map(|size| size.map(|size| size.round() as u64)).collect();
        let (mass, weight) = (shown(Some(&held.mass)), shown(held.weight.as_deref()));
        let empty = |c: usize| rows.is_none_or(|rows| rows[c] < 0.5);
        if deviations.is_some() && (0..k).any(|c| !hidden[c] && empty(c)) {
            not_shown.push("deviations: a cluster is empty".to_owned());
        }
        let of = |c: usize| deviations.filter(|_| !hidden[c] && !empty(c)).map(|all| all[c].clone());
        let deviations = (0..k).map(of).collect();
        let left_out = match (known.last, known.rows) {
            (Counted::Unknown, _) => Err("the method's totals do not count rows"),
            (_, None) => Err("the last round and the validation are not over the same rows"),
            (Counted::All, Some(_)) => Ok(0),
            (Counted::Rows(counted), Some(all)) => match (all as f64 - counted).round().max(0.0) {
                0.0 => Ok(0),
                few if !rule.allows(few, f64::INFINITY) => Err("they are fewer than the plan's smallest group"),
                rows => Ok(rows as u64),
            },
        };
        not_shown.extend(left_out.err().map(|why| format!("left_out: {why}")));
        Self { sizes, mass, weight, deviations, left_out: left_out.ok(), not_shown }
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

    const RULE: GroupThreshold = GroupThreshold { min_rows: 5, min_sites: 2, ask_first: true };

    fn known(held: &Held) -> Known<'_> {
        Known { k: 3, rule: RULE, held, counted_first: None, rows: Some(31), last: Counted::Rows(31.0) }
    }

    #[test]
    fn what_was_not_asked_is_null_with_its_reason() {
        let held = Held { mass: vec![9.5, 10.5, 11.0], ..Held::default() };
        let found = ClusterSizes::of(known(&held));
        assert_eq!((found.sizes, found.weight, found.left_out), (vec![None; 3], vec![None; 3], Some(0)));
        assert_eq!(found.mass, [Some(9.5), Some(10.5), Some(11.0)]);
        let named: Vec<&str> = found.not_shown.iter().filter_map(|why| why.split(':').next()).collect();
        assert_eq!(named, ["deviations", "sizes", "weight"]);
        assert_eq!(found.deviations, [None, None, None]);
        let none = ClusterSizes::of(known(&Held::default()));
        assert!(none.mass == [None; 3] && none.not_shown.iter().any(|why| why.contains("intermediary")));
    }

    #[test]
    fn a_small_cluster_cannot_be_told_from_the_others() {
        let held = Held { mass: vec![6.0, 7.0, 18.0], ..Held::default() };
        let (rows, sites) = ([4.0, 7.0, 20.0], [2.0, 2.0, 2.0]);
        let found = ClusterSizes::of(Known { counted_first: Some((&rows, &sites)), ..known(&held) });
        assert_eq!(found.sizes, [None, None, Some(20)]);
        assert_eq!(found.mass, [None, None, Some(18.0)]);
        // Rows enough, but of one site.
        let (rows, sites) = ([9.0, 8.0, 14.0], [2.0, 1.0, 2.0]);
        let found = ClusterSizes::of(Known { counted_first: Some((&rows, &sites)), ..known(&held) });
        assert_eq!(found.sizes, [None, None, Some(14)]);
        // Sites were not counted at these centres.
        let full = Held { rows: Some(rows.to_vec()), weight: Some(vec![5.0; 3]), ..held };
        let found = ClusterSizes::of(known(&full));
        assert!(found.sizes == [None; 3] && found.weight == [Some(5.0); 3], "{found:?}");
        // An empty cluster has no deviation, and a hidden one shows none.
        let of = |rows: [f64; 3]| {
            let around = vec![vec![0.1], vec![0.2], vec![0.0]];
            let held =
                Held { rows: Some(rows.to_vec()), mass: rows.to_vec(), deviations: Some(around), ..Held::default() };
            let rule = GroupThreshold { min_sites: 1, ..RULE };
            ClusterSizes::of(Known { rule, ..known(&held) }).deviations
        };
        assert_eq!(of([20.0, 11.0, 6.0]), [Some(vec![0.1]), Some(vec![0.2]), Some(vec![0.0])]);
        assert_eq!(of([20.0, 11.0, 0.0]), [Some(vec![0.1]), None, None]);
    }

    #[test]
    fn small_clusters_together_are_no_fewer_rows_than_the_rule_asks() {
        let held = Held { mass: vec![2.0, 3.0, 26.0], ..Held::default() };
        let (rows, sites) = ([1.0, 2.0, 28.0], [1.0, 2.0, 2.0]);
        let found = ClusterSizes::of(Known { counted_first: Some((&rows, &sites)), ..known(&held) });
        // 31 - 28 would tell that the first two have 3 rows together.
        assert_eq!((found.sizes, found.mass), (vec![None; 3], vec![None; 3]));
        let held = Held { mass: vec![4.0, 4.0, 23.0], ..Held::default() };
        let (rows, sites) = ([4.0, 4.0, 23.0], [2.0, 2.0, 2.0]);
        let found = ClusterSizes::of(Known { counted_first: Some((&rows, &sites)), ..known(&held) });
        assert_eq!(found.sizes, [None, None, Some(23)], "8 rows together are enough");
    }

    #[test]
    fn rows_that_no_cluster_counted_are_told_unless_they_are_few() {
        let held = Held { mass: vec![10.0, 10.0, 11.0], ..Held::default() };
        let left = |last, rows| ClusterSizes::of(Known { last, rows, ..known(&held) }).left_out;
        assert_eq!(left(Counted::Rows(20.0), Some(31)), Some(11));
        assert_eq!(left(Counted::Rows(28.0), Some(31)), None);
        assert_eq!(left(Counted::All, Some(31)), Some(0));
        assert_eq!((left(Counted::All, None), left(Counted::Unknown, Some(31))), (None, None));
    }
}
