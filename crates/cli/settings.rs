//! What `--set KEY=VALUE` may say of a plan, the same for `plan new` and `demo`. The keys, and what each is for, stand in [`PLAN_KEYS`]. A setting
//! goes to its key in the plan's document, whose parser says what a value may be; few are read where the usual plan is made.

use std::collections::BTreeMap;

use serde::{Deserialize, de::DeserializeOwned};
use toml::{Table, Value};
use veilsum_cluster::{
    Clusters,
    algorithm::{ALGORITHMS, About},
};
use veilsum_node::{
    documents::{PLAN_KEYS, has_setting},
    error::Failure,
    table::nearest,
};

/// What was set in words, and values by key: those of the words, and of what follows where nothing was said.
#[derive(Debug)]
pub(crate) struct Settings {
    words: Vec<String>,
    /// What is put into the plan's document.
    pub values: Table,
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
        let values: Table = toml::from_str(&text).map_err(|e| {
            let lines = e.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count());
            wrong(words.get(lines).map_or("", String::as_str), e.message())
        })?;
        let settings = Settings { words: words.to_vec(), values };
        if let Some(key) = settings.values.keys().find(|key| known().all(|(known, _)| known != *key)) {
            return Err(settings.wrong(key, ""));
        }
        Ok(settings)
    }

    /// Whether it has a value.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// Sets it, unless it has a value.
    pub(crate) fn or(&mut self, key: &str, value: impl Into<Value>) {
        self.values.entry(key).or_insert(value.into());
    }

    /// Its value.
    ///
    /// # Errors
    /// A [`Failure`] that names it, if that is no value for it.
    pub(crate) fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Failure> {
        let value = self.values.get(key).cloned().map(Value::try_into);
        value.transpose().map_err(|e| self.wrong(key, e.message()))
    }

    /// Refuses a setting that would change nothing: one that this method does not read, one about clusters if there are none, and one for
    /// noise if there is none.
    ///
    /// # Errors
    /// A [`Failure`] that names it, and the methods that read it.
    pub(crate) fn refuse_unread(&self, method: &About, clusters: Clusters, noisy: bool) -> Result<(), Failure> {
        let refused = |key: &str, why: &str, next: &str| Err(Failure::usage(format!("--set {key}: {why}"), next));
        let leave = "leave it out, or choose what it is for";
        for key in self.values.keys() {
            let readers: Vec<&str> = ALGORITHMS.iter().filter(|of| reads(of, key)).map(|of| of.name).collect();
            if !readers.is_empty() && !readers.contains(&method.name) {
                let next = format!("leave it out, or take a method that reads it: {}", readers.join(", "));
                return refused(key, &format!("{} does not read it", method.name), &next);
            }
            if (method.usual)().traits().describes.is_some() && OF_CLUSTERS.contains(&key.as_str()) {
                return refused(key, "describe does not read it: a description has no clusters", leave);
            }
            if clusters.min == clusters.max && OF_RANGES.contains(&key.as_str()) {
                let next = "leave it out, or give a range: --k LOW..HIGH";
                return refused(key, "it chooses K, and the plan names one", next);
            }
            if !noisy && (key.starts_with("dp_") || key == "rows_per_person") {
                return refused(key, "it is for noise, and --exact has none", leave);
            }
        }
        Ok(())
    }

    /// A value that is none, as it was typed.
    pub(crate) fn wrong(&self, key: &str, why: &str) -> Failure {
        wrong(self.words.iter().find(|word| key_of(word) == key).map_or(key, String::as_str), why)
    }
}

/// Whether a setting is for some methods alone, and for this one. `m` is also what hard groups are judged with.
fn reads(method: &About, key: &str) -> bool {
    let algorithm = (method.usual)();
    match key {
        "m" => false,
        "stop" => algorithm.traits().epsilon.is_some(),
        "local_steps" => algorithm.traits().local_steps > 0,
        _ => toml::to_string(&algorithm).is_ok_and(|text| has_setting(&text, key)),
    }
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
        Some((key, value)) if toml::from_str::<Table>(word).is_err() => {
            format!("{key} = {}", Value::from(value))
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

    #[test]
    fn every_setting_fits_a_line_of_the_help() {
        assert_eq!(known().count(), 40);
        for (key, says) in known() {
            assert!(says.chars().count() <= 78, "{key}: {says}");
        }
        let is_known = |key: &&str| known().any(|(known, _)| known == *key);
        assert!(OF_CLUSTERS.iter().chain(&OF_RANGES).all(is_known));
    }

    #[test]
    fn values_are_toml_and_bare_words_are_texts() {
        let set = read(&["m=2", "init=totals", "category_weight.a=2", "dp_useless=true"]).unwrap();
        assert_eq!((set.get("m").unwrap(), set.get("dp_useless").unwrap()), (Some(2.0), Some(true)));
        assert_eq!((set.get("init").unwrap(), set.get::<u32>("slots").unwrap()), (Some("totals".to_owned()), None));
        let weights = CategoryWeight::Of([("a".to_owned(), 2.0)].into());
        assert_eq!(set.get("category_weight").unwrap(), Some(weights));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_possible() {
        for (words, says) in [
            (&["max_round=3"][..], "next: set max_rounds, m, "),
            (&["m"], "--set m: "),
            (&["m=1", "m=2"], "--set m=2: duplicate key"),
        ] {
            let Failure { code, message, advice, .. } = read(words).expect_err("refused");
            let told = format!("{message}\nnext: {advice}");
            assert!(code == Code::Usage && told.contains(says), "{words:?}: {told}");
        }
    }
}
