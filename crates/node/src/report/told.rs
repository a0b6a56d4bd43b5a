//! What a result tells, as far as it may be shown.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Deref,
};

use veilsum_charts::text::{number, within};
use veilsum_cluster::Indices;

use crate::{
    description::Description,
    errors::ResultErrors,
    result::{ColumnProfile, RunResult},
};

/// A number, or nothing where there is none.
type Maybe = Option<f64>;

/// All indices by their keys in a result.
pub(super) fn by_key(of: &Indices) -> BTreeMap<String, Maybe> {
    serde_json::to_value(of).and_then(serde_json::from_value).unwrap_or_default()
}

/// A result without what may not be shown of it. Every screen, page and table reads it by way of this.
pub(super) struct Told {
    result: RunResult,
    /// Index values that are not shown: noise is in them, and nobody knows how much.
    pub(super) unseen: usize,
}

impl Deref for Told {
    type Target = RunResult;

    fn deref(&self) -> &RunResult {
        &self.result
    }
}

impl Told {
    /// What may be shown of a result: under noise nothing that drowned, and nothing without an error, because nobody knows how far off it
    /// is.
    pub(super) fn of(mut result: RunResult) -> Told {
        if result.privacy.is_none() {
            return Told { result, unseen: 0 };
        }
        let errors = result.errors.clone().unwrap_or_default();
        let drowned: HashSet<&str> = errors.not_distinguishable_from_noise.iter().map(String::as_str).collect();
        let known = |at: &str, error: Maybe| error.is_some_and(f64::is_finite) && !drowned.contains(at);
        for (i, centre) in result.centres.iter_mut().enumerate() {
            for (j, x) in centre.iter_mut().enumerate() {
                let error = errors.clusters.centres.get(i).and_then(|of| of.get(j).copied());
                if !known(&format!("/centres/{i}/{j}"), error) {
                    *x = f64::NAN;
                }
            }
        }
        let (k, clusters) = (result.centres.len(), &mut result.clusters);
        for (i, mass) in clusters.mass.iter_mut().enumerate() {
            *mass = mass.filter(|_| known(&format!("/mass/{i}"), errors.clusters.mass.get(i).copied().flatten()));
        }
        let of_sizes = |i: usize| errors.clusters.sizes.get(i).copied().flatten();
        let alone = (0..k).any(|i| clusters.sizes.get(i).is_some_and(Option::is_some) && of_sizes(i).is_none());
        if alone || clusters.weight.iter().any(Option::is_some) {
            let why = "rows and weights of fuzzy clusters: nobody knows how far noise moved them; result.json has them";
            clusters.not_shown.push(why.to_owned());
        }
        for (i, size) in clusters.sizes.iter_mut().enumerate() {
            *size = size.filter(|_| known(&format!("/sizes/{i}"), of_sizes(i)));
        }
        (clusters.weight, clusters.deviations) = (vec![None; k], vec![None; k]);
        result.objective = result.objective.filter(|_| known("/objective", errors.objective));
        let each = errors.objective_per_row;
        result.objective_per_row = result.objective_per_row.filter(|_| known("/objective_per_row", each));
        result.n_total = result.n_total.filter(|_| known("/n_total", errors.n_total));
        result.description = result.description.filter(|_| errors.description.is_some());
        let shown = |key: &str, value: Maybe, error| value.filter(|_| known(&format!("/indices/{key}"), error));
        // The gap has an error of its own.
        let gap = |of: &Indices| Indices { gap: of.gap, gap_error: of.gap_error, ..Indices::default() };
        let all = std::mem::take(&mut result.indices);
        result.indices = gap(&all);
        result.indices.fuzzy_davies_bouldin =
            shown("fuzzy_davies_bouldin", all.fuzzy_davies_bouldin, errors.fuzzy_davies_bouldin);
        result.indices.xie_beni = shown("xie_beni", all.xie_beni, errors.xie_beni);
        let there = |(key, value): &(String, Maybe)| value.is_some() && !drowned.contains(&*format!("/indices/{key}"));
        let unseen = by_key(&all).into_iter().filter(there).count();
        let unseen = unseen - by_key(&result.indices).values().flatten().count();
        for point in &mut result.curve {
            (point.objective, point.indices) = (None, gap(&point.indices));
        }
        Told { result, unseen }
    }

    /// A coordinate of a centre.
    pub(super) fn at(&self, cluster: usize, column: usize) -> Maybe {
        self.centres.get(cluster)?.get(column).copied().filter(|x| x.is_finite())
    }

    /// Its standard error, if there is noise.
    pub(super) fn error(&self, cluster: usize, column: usize) -> Maybe {
        self.errors.as_ref()?.clusters.centres.get(cluster)?.get(column).copied().filter(|error| error.is_finite())
    }

    /// A coordinate with its error where there is noise.
    pub(super) fn centre(&self, cluster: usize, column: usize) -> Option<String> {
        self.shown(self.at(cluster, column), |_| self.error(cluster, column))
    }

    /// What a cluster holds, in memberships.
    pub(super) fn mass(&self, cluster: usize) -> Maybe {
        *self.clusters.mass.get(cluster)?
    }

    /// What a cluster holds that noise has an error for, with its error and place: rows of hard methods, memberships of fuzzy ones.
    pub(super) fn held(&self, cluster: usize) -> (Maybe, Maybe, String) {
        let error = |of: &[Maybe]| of.get(cluster).copied().flatten().filter(|error| error.is_finite());
        let errors = self.errors.as_ref();
        match self.counts_rows() {
            true => {
                let error = errors.and_then(|errors| error(&errors.clusters.sizes));
                (self.size(cluster).map(|size| size as f64), error, format!("/sizes/{cluster}"))
            }
            false => {
                (self.mass(cluster), errors.and_then(|errors| error(&errors.clusters.mass)), format!("/mass/{cluster}"))
            }
        }
    }

    /// Whether it is rows of a noisy result.
    pub(super) fn counts_rows(&self) -> bool {
        self.errors.as_ref().is_some_and(|errors| errors.clusters.sizes.iter().any(Option::is_some))
    }

    /// Rows of a cluster.
    pub(super) fn size(&self, cluster: usize) -> Option<u64> {
        *self.clusters.sizes.get(cluster)?
    }

    /// The standard deviation of a cluster in a column.
    pub(super) fn deviation(&self, cluster: usize, column: usize) -> Maybe {
        self.clusters.deviations.get(cluster)?.as_ref()?.get(column).copied()
    }

    /// Whether there is anything of the centres to draw: noise may leave nothing.
    pub(super) fn is_drawn(&self) -> bool {
        self.centres.iter().flatten().any(|x| x.is_finite())
    }

    /// Whether columns were described, and no groups looked for.
    pub(super) fn describes(&self) -> bool {
        self.description.is_some() || self.method == "describe"
    }

    /// The least and the largest of all centres in a column.
    pub(super) fn span(&self, column: usize) -> (f64, f64) {
        let values = (0..self.centres.len()).filter_map(|i| self.at(i, column));
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
    }

    /// The smallest and the largest number of groups that were tried, if it is not the plan that names it.
    pub(super) fn tried(&self) -> Option<(u32, u32)> {
        let tried = || self.curve.iter().map(|point| point.k);
        tried().min().zip(tried().max())
    }

    /// Where among the numbers of groups that were tried the result lies, if it is an end of them, and whether one group could be chosen.
    pub(super) fn ends(&self) -> Option<&'static str> {
        match self.tried()? {
            (_, high) if self.k == high => Some("It is the largest number that was tried"),
            (low, _) if self.k == low && low > 1 => Some("It is the smallest number that was tried"),
            _ => None,
        }
    }

    /// Whether groups were tested against none: one of them could have been chosen, for which most indices have no value.
    pub(super) fn tests_whether(&self) -> bool {
        self.curve.iter().any(|point| point.k == 1 && point.indices.gap.is_some())
    }

    /// A column's part in the clusters.
    pub(super) fn part(&self, column: &str) -> Option<&ColumnProfile> {
        self.profile.iter().find(|part| part.column == column)
    }

    /// A number with its error where there is noise; nothing if nobody knows its error.
    pub(super) fn shown(&self, value: Maybe, error: impl Fn(&ResultErrors) -> Maybe) -> Option<String> {
        let value = value.filter(|value| value.is_finite())?;
        if self.privacy.is_none() {
            return Some(number(value));
        }
        let error = self.errors.as_ref().and_then(error).filter(|error| error.is_finite())?;
        Some(within(value, error))
    }

    /// What stands in the place of a number of the result that is not shown: what it is below, that noise drowned it, or that nobody knows
    /// its error.
    pub(super) fn hidden(&self, pointer: &str) -> String {
        let drowned =
            |errors: &ResultErrors| errors.not_distinguishable_from_noise.iter().any(|hidden| hidden == pointer);
        match &self.errors {
            Some(errors) if errors.below.contains_key(pointer) => format!("below {}", number(errors.below[pointer])),
            Some(errors) if drowned(errors) => "noise".to_owned(),
            _ => "–".to_owned(),
        }
    }

    /// A number of the description with its error, if there is noise.
    pub(super) fn described(&self, of: impl Fn(&Description) -> Maybe) -> String {
        let value = self.description.as_ref().and_then(&of);
        self.shown(value, |errors| of(errors.description.as_ref()?)).unwrap_or("–".to_owned())
    }

    /// What a number of the description is below, where noise may have made it of none; by its place, as `numbers/0/deviation`.
    pub(super) fn below(&self, place: &str) -> Maybe {
        self.errors.as_ref()?.below.get(&format!("/description/{place}")).copied()
    }

    /// How many rows lack a value in a described column, by its place, as `numbers/0`.
    pub(super) fn lacking(&self, place: &str, of: impl Fn(&Description) -> Option<u64>) -> String {
        match self.below(&format!("{place}/missing")) {
            Some(end) => format!("below {}", end.ceil()),
            None => self.described(|found| Some(of(found)? as f64)),
        }
    }

    /// How far a centre lies from the mean of all rows, in their standard deviations.
    pub(super) fn difference(&self, cluster: usize, column: usize) -> Maybe {
        let of = self.part(self.columns.get(column)?)?;
        let deviation = of.deviation.filter(|deviation| *deviation > 0.0)?;
        Some((self.at(cluster, column)? - of.mean?) / deviation)
    }
}
