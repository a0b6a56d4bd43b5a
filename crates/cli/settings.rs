//! What `--set KEY=VALUE` may say of a plan, the same for `plan new` and `demo`. What each is for stands in [`PLAN_KEYS`].

use std::collections::BTreeMap;

use serde::Deserialize;
use veilsum_cluster::{
    Algorithm, OutOfBox, Scaling,
    algorithm::{ALGORITHMS, Options},
    method::{Clusters, Pick, Scale, Stop},
};
use veilsum_node::{documents::PLAN_KEYS, error::Failure, plan::Judge, table::nearest};

/// Settings; what is not set has a default where it is used.
#[derive(Deserialize, Debug, Clone, Default)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    pub m: Option<f64>,
    pub epsilon: Option<f64>,
    pub stop: Stop,
    pub max_rounds: Option<u32>,
    pub restarts: Option<u32>,
    pub init: Option<String>,
    pub local_steps: Option<u32>,
    pub powers: Option<bool>,
    pub min_group: Option<u64>,
    pub finish: u32,
    pub anchors: u32,
    pub features: Option<u32>,
    pub features_min: Option<u32>,
    pub similarity: Option<f64>,
    pub bins: Option<u32>,
    pub scale: Option<Scaling>,
    pub out_of_box: Option<OutOfBox>,
    pub standardise: Option<Scale>,
    pub category_weight: Option<CategoryWeight>,
    pub indices: Option<IndexSet>,
    pub local_k: Option<u32>,
    pub choose: Option<Pick>,
    pub elbow: bool,
    pub db_p: Option<f64>,
    pub db_q: Option<f64>,
    pub judge: Judge,
    pub sample: Option<f64>,
    pub rows_per_person: Option<u64>,
    pub dp_absolute_rounds: Option<u32>,
    pub dp_tau: Option<f64>,
    pub dp_retries: Option<u32>,
    pub dp_useless: bool,
    pub min_sites: Option<u16>,
    pub threshold: Option<u16>,
    pub colluders: Option<u16>,
    pub block_size: Option<u16>,
    pub on_loss: Option<OnLoss>,
    pub slots: Option<u16>,
    pub max_rows: Option<u64>,
    pub min_total_rows: Option<u64>,
    pub step_bits: Option<u8>,
}

/// Which validity totals are asked.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IndexSet {
    /// Fuzzy Davies-Bouldin and the objective.
    Basic,
    /// All but those that need sums of coordinates.
    Scalars,
    /// All.
    All,
}

/// Squared distances of rows that differ in a category.
#[derive(Deserialize, Clone, PartialEq, Debug)]
#[serde(untagged, expecting = "a number, or one for each column: category_weight.COLUMN=NUMBER")]
pub(crate) enum CategoryWeight {
    /// The same for every column of categories.
    All(f64),
    /// For these columns.
    Of(BTreeMap<String, f64>),
}

/// What the blocks of a plan are for.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnLoss {
    /// Three of them: a run goes on without one.
    Block,
}

/// Settings that a method may read, with the beginning of what they are called among its parameters.
const OF_METHODS: [(&str, &str); 12] = [
    ("epsilon", "epsilon"),
    ("stop", "stop"),
    ("max_rounds", "max_rounds"),
    ("local_steps", "local"),
    ("powers", "powers"),
    ("min_group", "min_rows"),
    ("finish", "finish"),
    ("anchors", "anchors"),
    ("features", "features"),
    ("features_min", "features"),
    ("similarity", "features"),
    ("bins", "bins"),
];

/// Settings about clusters, which a description has none of.
const OF_CLUSTERS: [&str; 10] =
    ["m", "restarts", "init", "indices", "local_k", "choose", "elbow", "judge", "db_p", "db_q"];
/// Settings that choose among several K.
const OF_RANGES: [&str; 3] = ["choose", "elbow", "local_k"];

impl Settings {
    /// Reads `KEY=VALUE`, each a line of TOML; a bare word as a value is a text.
    ///
    /// # Errors
    /// A [`Failure`] that names the one at fault, and which keys there are.
    pub(crate) fn read(words: &[String]) -> Result<Settings, Failure> {
        let text: String = words.iter().map(|word| in_toml(word) + "\n").collect();
        let settings: Settings = toml::from_str(&text).map_err(|e| {
            let lines = e.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count());
            wrong(words.get(lines).map_or("", String::as_str), e.message())
        })?;
        let own = [settings.block_size, settings.threshold, settings.colluders];
        if settings.on_loss.is_some() && own.iter().any(Option::is_some) {
            let what = "on_loss=block sets block_size, threshold and colluders itself";
            return Err(Failure::usage(what, "leave on_loss out, or the others"));
        }
        Ok(settings)
    }
}

/// Refuses a setting that would change nothing: one that this algorithm does not read, one about clusters if there are none, and one for
/// noise if there is none.
///
/// # Errors
/// A [`Failure`] that names it, and the methods that read it.
pub(crate) fn unread(
    words: &[String],
    (algorithm, options): (&Algorithm, &Options),
    clusters: Clusters,
    noisy: bool,
) -> Result<(), Failure> {
    let refused = |key: &str, why: String, next: String| Err(Failure::usage(format!("--set {key}: {why}"), next));
    let describes = algorithm.traits().describes.is_some();
    for key in words.iter().map(|word| key_of(word)) {
        let leave = || "leave it out, or choose what it is for".to_owned();
        if let Some((_, parameter)) = OF_METHODS.iter().find(|(setting, _)| *setting == key)
            && !reads(algorithm, parameter)
        {
            let readers = ALGORITHMS.iter().filter(|about| reads(&(about.usual)(options), parameter));
            let readers: Vec<&str> = readers.map(|about| about.name).collect();
            let next = format!("leave it out, or take a method that reads it: {}", readers.join(", "));
            return refused(key, format!("{} does not read it", algorithm.name()), next);
        }
        if describes && OF_CLUSTERS.contains(&key) {
            return refused(key, "describe does not read it: a description has no clusters".to_owned(), leave());
        }
        if clusters.min == clusters.max && OF_RANGES.contains(&key) {
            let next = "leave it out, or give a range: --k LOW..HIGH".to_owned();
            return refused(key, "it chooses K, and the plan names one".to_owned(), next);
        }
        if !noisy && (key.starts_with("dp_") || key == "rows_per_person") {
            return refused(key, "it is for noise, and --exact has none".to_owned(), leave());
        }
    }
    Ok(())
}

/// Whether an algorithm has a parameter whose name begins like this, or ends by how far centres move.
fn reads(algorithm: &Algorithm, parameter: &str) -> bool {
    if parameter == "stop" {
        return algorithm.traits().epsilon.is_some();
    }
    serde_json::to_string(algorithm).unwrap_or_default().contains(&format!("\"{parameter}"))
}

/// Every setting with its sentence, for `--help-all`.
pub(crate) fn help() -> String {
    let each = known().map(|(key, says)| format!("\n{key:<19} {says}"));
    format!("Another setting of the plan; repeat for each{}", each.collect::<String>())
}

fn known() -> impl Iterator<Item = (&'static str, &'static str)> {
    PLAN_KEYS.iter().map(|(key, _, says)| (*key, *says)).filter(|(key, _)| !key.is_empty())
}

/// The setting that an option of this name would be.
pub(crate) fn named(option: &str) -> Option<&'static str> {
    let name = option.trim_start_matches('-').replace('-', "_");
    known().map(|(key, _)| key).find(|key| *key == name)
}

fn key_of(word: &str) -> &str {
    word.split(['=', '.']).next().unwrap_or_default().trim()
}

fn in_toml(word: &str) -> String {
    match word.split_once('=') {
        Some((key, value)) if toml::from_str::<toml::Table>(word).is_err() => {
            format!("{key} = {}", toml::Value::from(value))
        }
        _ => word.to_owned(),
    }
}

fn wrong(word: &str, why: &str) -> Failure {
    let key = key_of(word);
    if let Some((_, says)) = known().find(|(known, _)| *known == key) {
        let why = why.lines().next().unwrap_or_default();
        return Failure::usage(format!("--set {word}: {why}"), format!("{key}: {says}"));
    }
    let near = nearest(key, known().map(|(known, _)| known));
    let mut keys: Vec<&str> = known().map(|(known, _)| known).collect();
    keys.sort_by_key(|key| near != Some(*key));
    Failure::usage(format!("--set {word}: there is no such setting"), format!("set {}", keys.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use veilsum_node::error::Code;

    fn read(words: &[&str]) -> Result<Settings, Failure> {
        Settings::read(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    /// The parser lists the fields of the struct, where a key is none of them.
    #[test]
    fn every_setting_has_its_sentence_and_every_sentence_its_setting() {
        let all = toml::from_str::<Settings>("? = 1").and(toml::from_str::<Settings>("\"?\" = 1"));
        let all = all.or_else(|_| toml::from_str::<Settings>("\"?\" = 1")).expect_err("no field").message().to_owned();
        let mut fields: Vec<&str> = all.split('`').skip(3).step_by(2).collect();
        let mut keys: Vec<&str> = known().map(|(key, _)| key).collect();
        fields.sort_unstable();
        keys.sort_unstable();
        assert_eq!(fields, keys);
        for (key, says) in known() {
            assert!(says.chars().count() <= 78, "{key}: {says}");
        }
        assert!(OF_METHODS.iter().all(|(key, _)| keys.contains(key)));
    }

    #[test]
    fn values_are_toml_and_bare_words_are_texts() {
        let set = read(&["m=2", "init=totals", "category_weight.a=2", "choose=xie-beni", "elbow=true"]).unwrap();
        assert_eq!((set.m, set.init.as_deref(), set.elbow), (Some(2.0), Some("totals"), true));
        assert_eq!(set.category_weight, Some(CategoryWeight::Of([("a".to_owned(), 2.0)].into())));
        assert_eq!(set.choose, Some(Pick::XieBeni));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_possible() {
        for (words, says) in [
            (&["max_round=3"][..], "next: set max_rounds, m, "),
            (&["m=1.5", "restarts=many"], "--set restarts=many: "),
            (&["standardise=whole"], "`standard`"),
            (&["m"], "--set m: "),
            (&["m=1", "m=2"], "--set m=2: duplicate key"),
            (&["choose=silhouette"], "`calinski-harabasz`"),
            (&["category_weight=heavy"], "a number, or one for each column"),
            (&["on_loss=block", "threshold=3"], "on_loss=block sets"),
            (&["bins=-1"], "--set bins=-1: "),
        ] {
            let Failure { code, message, advice, .. } = read(words).expect_err("refused");
            let told = format!("{message}\nnext: {advice}");
            assert!(code == Code::Usage && told.contains(says), "{words:?}: {told}");
        }
    }
}
