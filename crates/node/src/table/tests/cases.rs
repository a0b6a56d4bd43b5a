//! A folder of texts as other programs write them, `cases/`: the table that each gives, or how it is refused.

use std::{collections::BTreeMap, fs, sync::Arc};

use serde::Deserialize;

use super::{whole, *};
use crate::{documents::tests::Folder, plan::Categorical};

/// Texts that are read in one way.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Case {
    /// As in [`TableSpec`].
    columns: Vec<String>,
    label: Option<String>,
    categories: BTreeMap<String, Vec<String>>,
    /// Whether there is noise.
    total: bool,
    /// As in `site.toml`.
    rows: RowRules,
    /// Whether the signs of the texts are bytes.
    bytes: bool,
    /// Types of the columns (`columns_of`): the texts are tried in every typed form of each of these as well.
    typed: Vec<String>,
    reads: Vec<Reads>,
    /// A text, and parts of what its refusal says: behind `^` how it begins, behind `!` what it does not say.
    refuses: Vec<Vec<String>>,
    /// Parts of what every refusal says.
    told: Vec<String>,
}

/// Texts of one table, and what is known of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reads {
    texts: Vec<String>,
    names: Option<String>,
    values: Option<Vec<f64>>,
    labels: Option<Vec<String>>,
    spanning: Option<u64>,
    filtered: Option<u64>,
    left_out: Option<u64>,
    left_out_says: Option<String>,
}

impl Case {
    fn spec(&self) -> TableSpec {
        let categories = self.categories.clone().into_iter();
        let categorical = categories.map(|(column, categories)| Categorical { column, categories, weight: 1.0 });
        TableSpec {
            columns: self.columns.clone(),
            label: self.label.clone(),
            categorical: categorical.collect(),
            unusable: if self.total { Unusable::Weightless } else { Unusable::Refused },
            person_key: self.rows.person.is_some().then(|| PersonKey::test(1)),
            rules: Arc::new(self.rows.clone()),
            ..TableSpec::default()
        }
    }

    /// What these texts give, each in all its forms.
    fn read<'a>(&self, texts: &'a [String]) -> Vec<(&'a str, Result<Table, TableError>)> {
        let mut found = Vec::new();
        for text in texts {
            let bytes = if self.bytes { text.chars().map(|c| c as u8).collect() } else { text.as_bytes().to_vec() };
            #[cfg(feature = "columnar")]
            let typed = self.typed.iter().flat_map(|types| super::forms::typed(&super::forms::columns_of(text, types)));
            #[cfg(not(feature = "columnar"))]
            let typed = [];
            for bytes in [bytes].into_iter().chain(typed) {
                // Rows of persons are read twice, and typed files from their end.
                let table = if self.rows.person.is_none() && self.typed.is_empty() {
                    read_csv_from(&bytes[..], "site.csv", &self.spec())
                } else {
                    let folder = Folder::new("cases");
                    fs::write(folder.at("site.csv"), bytes).unwrap();
                    super::super::read(folder.at("site.csv"), &self.spec())
                };
                found.push((text.as_str(), table));
            }
        }
        found
    }

    fn check(&self, what: &str) {
        assert!(!self.reads.is_empty() || !self.refuses.is_empty(), "{what}: nothing is tried");
        for expected in &self.reads {
            for (text, table) in self.read(&expected.texts) {
                let table = table.unwrap_or_else(|e| panic!("{what}: {text:?}: {}", whole(&e)));
                let is = |found: String, expected: &Option<String>| {
                    assert!(expected.as_ref().is_none_or(|expected| *expected == found), "{what}: {text:?}: {found}");
                };
                is(table.columns.join("|"), &expected.names);
                is(format!("{:?}", table.values), &expected.values.as_ref().map(|values| format!("{values:?}")));
                is(
                    format!("{:?}", table.labels),
                    &expected.labels.as_ref().map(|labels| format!("{:?}", Some(labels))),
                );
                is(table.tally.spanning.to_string(), &expected.spanning.map(|n| n.to_string()));
                is(table.tally.filtered.to_string(), &expected.filtered.map(|n| n.to_string()));
                is(table.tally.left_out.rows().to_string(), &expected.left_out.map(|n| n.to_string()));
                let said = table.tally.left_out.to_string();
                assert!(said.contains(expected.left_out_says.as_deref().unwrap_or_default()), "{what}: {said}");
            }
        }
        for refused in &self.refuses {
            let (text, parts) = refused.split_at(1);
            assert!(!parts.is_empty() || !self.told.is_empty(), "{what}: {text:?}: any refusal would do");
            for (text, table) in self.read(text) {
                let error = whole(&table.expect_err(&format!("{what}: {text:?}")));
                let (_, rest) = error.split_once("site.csv").unwrap_or_else(|| panic!("{what}: {text:?}: {error}"));
                for part in parts.iter().chain(&self.told) {
                    let holds = match part.split_at(1) {
                        ("^", begin) => rest.trim_start_matches([',', ' ']).starts_with(begin),
                        ("!", never) => !error.contains(never),
                        _ => error.contains(part.as_str()),
                    };
                    assert!(holds, "{what}: {text:?}: not {part:?}: {error}");
                }
            }
        }
    }
}

/// A case that is `like` another one is read as that one is, but for what it says itself.
fn whole_case(all: &toml::Table, case: &toml::Value) -> toml::Table {
    let mut case = case.as_table().expect("a case").clone();
    let Some(like) = case.remove("like") else { return case };
    let mut whole = whole_case(all, &all[like.as_str().expect("a name")]);
    whole.retain(|key, _| !["reads", "refuses", "told"].contains(&key));
    let rows = whole.remove("rows").into_iter().chain(case.remove("rows"));
    let rows: toml::Table = rows.flat_map(|rows| rows.as_table().expect("rules").clone()).collect();
    whole.extend(case);
    whole.insert("rows".into(), rows.into());
    whole
}

#[test]
fn every_text_gives_its_table_or_its_refusal() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/table/tests/cases");
    let mut files = 0;
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let all: toml::Table = text.parse().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for (what, case) in &all {
            let case: Case = whole_case(&all, case).try_into().unwrap_or_else(|e| panic!("{what}: {e}"));
            case.check(what);
        }
        files += 1;
    }
    assert_eq!(files, 7);
}
