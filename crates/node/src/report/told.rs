//! What a result's file tells, as far as it may be shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use veilsum_charts::text::{number, within};
use veilsum_cluster::method::Stability;

use crate::{
    description::Description,
    model::Early,
    result::{ColumnProfile, Departure},
    signed::Signatures,
    traffic::Count,
};

/// A number, or `null` where there is none.
type Maybe = Option<f64>;

/// What `result.json` tells.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Told {
    pub(super) method: String,
    #[serde(deserialize_with = "null_is_none")]
    pub(super) k: u32,
    pub(super) columns: Vec<String>,
    /// K x d, original units.
    pub(super) centres: Vec<Vec<Maybe>>,
    pub(super) categories: Vec<Shares>,
    pub(super) sizes: Vec<Option<u64>>,
    pub(super) mass: Vec<Maybe>,
    pub(super) weight: Vec<Maybe>,
    pub(super) deviations: Vec<Option<Vec<Maybe>>>,
    pub(super) not_shown: Vec<String>,
    pub(super) n_total: Option<u64>,
    pub(super) n_total_from: Option<String>,
    #[serde(deserialize_with = "null_is_none")]
    pub(super) rounds: u32,
    pub(super) converged: Option<bool>,
    pub(super) ended_early: Option<Early>,
    pub(super) objective: Maybe,
    pub(super) objective_per_row: Maybe,
    pub(super) indices: BTreeMap<String, Maybe>,
    pub(super) curve: Vec<Point>,
    pub(super) stability: Option<Stability>,
    #[serde(deserialize_with = "null_is_none")]
    pub(super) questions: u32,
    pub(super) standardisation: Option<Value>,
    pub(super) cohort: Vec<String>,
    pub(super) indices_cohort: Option<Vec<String>>,
    pub(super) missing: Vec<String>,
    pub(super) departures: Vec<Departure>,
    pub(super) plan_hash: String,
    pub(super) history: Vec<Shift>,
    pub(super) traffic: BTreeMap<String, BTreeMap<String, Count>>,
    pub(super) privacy: Option<Noise>,
    pub(super) errors: Option<Errors>,
    pub(super) warnings: Vec<String>,
    pub(super) findings: Vec<Doubt>,
    pub(super) profile: Vec<ColumnProfile>,
    pub(super) federation: String,
    pub(super) m: Maybe,
    pub(super) description: Option<Description>,
    pub(super) pooled: Option<Pooled>,
    pub(super) software: Option<Value>,
    pub(super) roster_hash: String,
    pub(super) run: Option<String>,
    pub(super) model_digest: String,
    pub(super) wire_version: Option<u64>,
    pub(super) release: Option<Release>,
    pub(super) signatures: Option<Signatures>,
    /// Index values that are not shown: noise is in them, and nobody knows how much.
    #[serde(skip)]
    pub(super) unseen: usize,
    /// Members that whoever wrote the file answers for alone.
    #[serde(skip)]
    pub(super) own: Vec<&'static str>,
    /// Whether there is a model and no result.
    #[serde(skip)]
    pub(super) is_model: bool,
}

/// The account of what was released.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Release {
    pub(super) totals: Option<u64>,
    pub(super) block_size: u64,
    pub(super) min_total_rows: u64,
}

/// `null`, as it stands for what is not known, is nothing.
fn null_is_none<'de, D: Deserializer<'de>>(of: D) -> Result<u32, D::Error> {
    Ok(Option::<u32>::deserialize(of)?.unwrap_or(0))
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Shares {
    pub(super) column: String,
    pub(super) categories: Vec<String>,
    pub(super) shares: Vec<Vec<Maybe>>,
    /// Of each cluster the category with the largest share, if one is.
    #[serde(default)]
    pub(super) mode: Vec<Option<String>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Point {
    pub(super) k: u32,
    pub(super) indices: BTreeMap<String, Maybe>,
    pub(super) objective: Maybe,
    pub(super) rounds: u32,
    pub(super) converged: bool,
    pub(super) collapsed: bool,
}

impl Told {
    /// What may be shown of it: under noise nothing without a standard error, because nobody knows how far off it is. Every screen, page and
    /// table reads the result by way of this.
    pub(super) fn seen(mut self) -> Told {
        if self.privacy.is_none() {
            return self;
        }
        let errors = self.errors.clone().unwrap_or_default();
        let known = |error: Maybe| error.is_some_and(f64::is_finite);
        for (i, centre) in self.centres.iter_mut().enumerate() {
            for (j, x) in centre.iter_mut().enumerate() {
                *x = x.filter(|_| known(errors.centres.get(i).and_then(|of| *of.get(j)?)));
            }
        }
        for (i, mass) in self.mass.iter_mut().enumerate() {
            *mass = mass.filter(|_| known(errors.mass.get(i).copied().flatten()));
        }
        self.objective = self.objective.filter(|_| known(errors.objective));
        self.objective_per_row = self.objective_per_row.filter(|_| known(errors.objective_per_row));
        self.n_total = self.n_total.filter(|_| known(errors.n_total));
        self.description = self.description.filter(|_| errors.description.is_some());
        let before = self.indices.values().flatten().count();
        let of = [("fuzzy_davies_bouldin", errors.fuzzy_davies_bouldin), ("xie_beni", errors.xie_beni)];
        self.indices.retain(|key, _| of.iter().any(|(name, error)| name == key && known(*error)));
        self.unseen = before - self.indices.values().flatten().count();
        if self.sizes.iter().any(Option::is_some) || self.weight.iter().any(Option::is_some) {
            let why = "rows and weights of clusters: nobody knows how far noise moved them; result.json has them";
            self.not_shown.push(why.to_owned());
        }
        let k = self.centres.len();
        (self.sizes, self.weight, self.deviations) = (vec![None; k], vec![None; k], vec![None; k]);
        for point in &mut self.curve {
            (point.objective, point.indices) = (None, BTreeMap::new());
        }
        self
    }

    /// The least and the largest of all centres in a column.
    pub(super) fn span(&self, column: usize) -> (f64, f64) {
        let values = self.centres.iter().filter_map(|centre| *centre.get(column)?);
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
    }

    /// Rows of each cluster.
    pub(super) fn rows(&self) -> Vec<Maybe> {
        self.sizes.iter().map(|size| size.map(|size| size as f64)).collect()
    }

    /// Where among the numbers of groups that were tried the result lies, if it is an end of them, and whether one group could be chosen.
    pub(super) fn ends(&self) -> Option<&'static str> {
        let tried = || self.curve.iter().map(|point| point.k);
        match (tried().min()?, tried().max()?) {
            (_, high) if self.k == high => Some("It is the largest number that was tried"),
            (low, _) if self.k == low && low > 1 => Some("It is the smallest number that was tried"),
            _ => None,
        }
    }

    /// Whether groups were tested against none: one of them could have been chosen, for which most indices have no value.
    pub(super) fn tests_whether(&self) -> bool {
        let says = |point: &Point| point.indices.get("gap").is_some_and(Option::is_some);
        self.curve.iter().any(|point| point.k == 1 && says(point))
    }

    /// What the file says of a column's part in the clusters.
    pub(super) fn part(&self, column: &str) -> Option<&ColumnProfile> {
        self.profile.iter().find(|part| part.column == column)
    }

    /// Rows without a value in a column, if somebody counted them.
    pub(super) fn missing_in(&self, column: &str) -> Option<u64> {
        self.description.as_ref()?.numbers.iter().find(|of| of.column == column)?.missing
    }

    /// What the file says of the standard deviations of a cluster.
    pub(super) fn deviation(&self, cluster: usize, column: usize) -> Maybe {
        *self.deviations.get(cluster)?.as_ref()?.get(column)?
    }

    /// A number with its standard error where there is noise; nothing if it drowned, or nobody knows its error.
    pub(super) fn shown(&self, value: Maybe, error: impl Fn(&Errors) -> Maybe) -> Option<String> {
        let value = value.filter(|value| value.is_finite())?;
        if self.privacy.is_none() {
            return Some(number(value));
        }
        let error = self.errors.as_ref().and_then(error).filter(|error| error.is_finite())?;
        Some(within(value, error))
    }

    /// What stands in the place of a number of the result that is not shown: noise drowned it, or nobody knows its error.
    pub(super) fn hidden(&self, pointer: &str) -> &'static str {
        let drowned = |errors: &Errors| errors.not_distinguishable_from_noise.iter().any(|hidden| hidden == pointer);
        if self.errors.as_ref().is_some_and(drowned) { "noise" } else { "–" }
    }

    /// A number of the description with its standard error, if there is noise.
    pub(super) fn described(&self, of: impl Fn(&Description) -> Maybe) -> String {
        let value = self.description.as_ref().and_then(&of);
        self.shown(value, |errors| of(errors.description.as_ref()?)).unwrap_or("–".to_owned())
    }

    /// The centre of a cluster in a column, likewise.
    pub(super) fn centre(&self, cluster: usize, column: usize) -> Option<String> {
        let value = self.centres.get(cluster).and_then(|centre| *centre.get(column)?);
        self.shown(value, |errors| *errors.centres.get(cluster)?.get(column)?)
    }

    /// The standard error of a centre, if there is noise.
    pub(super) fn error(&self, cluster: usize, column: usize) -> Maybe {
        *self.errors.as_ref()?.centres.get(cluster)?.get(column)?
    }

    /// How far a centre lies from the mean of all rows, in their standard deviations.
    pub(super) fn difference(&self, cluster: usize, column: usize) -> Maybe {
        let of = self.part(self.columns.get(column)?)?;
        let deviation = of.deviation.filter(|deviation| *deviation > 0.0)?;
        let centre = self.centres.get(cluster)?.get(column).copied().flatten()?;
        Some((centre - of.mean?) / deviation)
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Shift {
    pub(super) round: u32,
    pub(super) shift: Maybe,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Noise {
    pub(super) promise: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Errors {
    pub(super) centres: Vec<Vec<Maybe>>,
    pub(super) mass: Vec<Maybe>,
    pub(super) n_total: Maybe,
    pub(super) objective: Maybe,
    pub(super) objective_per_row: Maybe,
    pub(super) fuzzy_davies_bouldin: Maybe,
    pub(super) xie_beni: Maybe,
    /// Of every number of the description, in its place.
    pub(super) description: Option<Description>,
    pub(super) not_distinguishable_from_noise: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Doubt {
    pub(super) name: String,
    pub(super) text: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Pooled {
    pub(super) what: String,
    pub(super) max_abs_diff: Maybe,
}
