//! The schema of a federation: what its columns are called and measured in, which values they may have, how a site's own words for
//! them are read, and what is done about a missing value. It is agreed on before any plan, and every plan keeps to it.
//!
//! Nothing of a schema may come from rows: ranges and categories are public, and a range that was taken from rows tells the largest
//! value of one of them.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use serde::Serialize;

use crate::{
    columns::{self, Categorical, Column},
    plan::PlanSpec,
};

/// Columns at most.
pub const MAX_COLUMNS: usize = 4_096;
/// Other names of one column, words of one value map, and marks of a missing value, at most each.
pub const MAX_WORDS: usize = 256;
/// Bytes of a unit, a name or a word at most.
pub const MAX_TEXT: usize = 256;

/// What a federation's rows consist of.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Schema {
    /// The columns that a plan may use.
    pub columns: Vec<Described>,
    /// What is done about a row in which one of them has no value.
    pub missing: Missing,
    /// Words that stand for a missing value, beside an empty cell and what R, SQL and spreadsheets write.
    #[serde(rename = "missing_marks")]
    pub marks: Vec<String>,
    /// A column that no plan may use or count by: it stays at every site.
    pub label: Option<String>,
}

/// One column.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Described {
    /// Its name in every plan.
    pub name: String,
    /// What its numbers are measured in; may be empty for categories.
    pub unit: String,
    /// What else a site's header may call it.
    #[serde(rename = "also_called")]
    pub also: Vec<String>,
    /// Which values it may have.
    #[serde(flatten)]
    pub kind: Kind,
}

impl fmt::Display for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Number { lower, upper, .. } => write!(f, "{}: {lower} to {upper}, in {}", self.name, self.unit),
            Kind::Category { categories, .. } => write!(f, "{}: one of {}", self.name, categories.join(", ")),
        }
    }
}

/// Which values a column may have.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Kind {
    /// Numbers.
    Number {
        /// The smallest possible one, in the column's unit.
        lower: f64,
        /// The largest possible one.
        upper: f64,
        /// Words that stand for a number, such as `"> 90"` for 90.
        values: BTreeMap<String, f64>,
    },
    /// Names.
    Category {
        /// All of them, in the order of every plan.
        categories: Vec<String>,
        /// Words that stand for one of them, such as a site's own code.
        values: BTreeMap<String, String>,
    },
}

/// What is done about a row with a missing value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// It is an error at that site.
    #[default]
    Refuse,
    /// It is left out where any column of the schema has no value ([SCH-2]), so that every plan is answered from the same rows.
    LeaveOut,
}

impl Schema {
    /// Whether it can be used.
    ///
    /// # Errors
    /// A sentence that names the column at fault.
    pub fn check(&self) -> Result<(), String> {
        let count = self.columns.len();
        if !(1..=MAX_COLUMNS).contains(&count) {
            return Err(format!("it has {count} columns; 1 to {MAX_COLUMNS} are possible"));
        }
        columns::check(&self.numbers(), &self.categorical(1.0))?;
        words("missing_marks", &self.marks)?;
        if let Some(mark) = self.marks.iter().find(|mark| ["true", "false"].contains(&&*mark.to_lowercase())) {
            return Err(format!("missing_marks has {mark:?}, which is a yes or no wherever it stands"));
        }
        self.columns.iter().try_for_each(|column| column.check(&self.marks))?;
        let mut seen = HashMap::new();
        for column in &self.columns {
            for name in std::iter::once(&column.name).chain(&column.also) {
                if let Some(other) = seen.insert(name, &column.name) {
                    return Err(format!("{name:?} is a name of the column {:?} and of {other:?}", column.name));
                }
            }
        }
        match &self.label {
            Some(label) if seen.contains_key(label) => Err(format!("the label {label:?} is also a column for plans")),
            Some(label) => words("label", std::slice::from_ref(label)),
            None => Ok(()),
        }
    }

    /// The column of this name.
    pub fn get(&self, name: &str) -> Option<&Described> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The columns of numbers, in the schema's order.
    pub fn numbers(&self) -> Vec<Column> {
        self.columns.iter().filter_map(Described::column).collect()
    }

    /// The columns of categories, in the schema's order, each with this weight.
    pub fn categorical(&self, weight: f64) -> Vec<Categorical> {
        self.columns.iter().filter_map(|column| column.categorical(weight)).collect()
    }

    /// A file's header with the schema's names in place of the site's own.
    ///
    /// # Errors
    /// The column that the file has twice, under two names.
    pub fn named(&self, header: &[String]) -> Result<Vec<String>, String> {
        let others: HashMap<&str, &str> = self
            .columns
            .iter()
            .flat_map(|column| column.also.iter().map(|also| (also.as_str(), column.name.as_str())))
            .collect();
        let named: Vec<String> =
            header.iter().map(|own| others.get(own.as_str()).map_or(own.as_str(), |name| name).to_owned()).collect();
        let mut seen = std::collections::HashSet::new();
        match named.iter().find(|name| !seen.insert(name.as_str())) {
            Some(twice) => Err(twice.clone()),
            None => Ok(named),
        }
    }

    /// Whether a plan keeps to it ([SCH-1]): every column of the plan is one of these, with the same range or the same categories, and the
    /// label stays where it is.
    ///
    /// # Errors
    /// A sentence that names the column and what differs.
    pub fn admits(&self, plan: &PlanSpec) -> Result<(), String> {
        let find = |name: &str| match self.get(name) {
            Some(column) => Ok(column),
            None if self.label.as_deref() == Some(name) => {
                Err(format!("the plan uses the column {name:?}, which the schema keeps at the sites as label"))
            }
            None => Err(format!("the plan's column {name:?} is none of the schema's")),
        };
        for Column { name, lower, upper } in &plan.columns {
            match &find(name)?.kind {
                Kind::Number { lower: low, upper: high, .. } if (low, high) == (lower, upper) => {}
                Kind::Number { lower: low, upper: high, .. } => {
                    return Err(format!(
                        "the plan's column {name:?} has the range {lower} to {upper}, and in the schema it is {low} to {high}"
                    ));
                }
                Kind::Category { .. } => {
                    return Err(format!("the plan's column {name:?} has numbers, and in the schema categories"));
                }
            }
        }
        let named = |column: &str, list: &[String]| match &find(column)?.kind {
            Kind::Category { categories, .. } if categories == list => Ok(()),
            Kind::Category { categories, .. } => Err(format!(
                "the plan's column {column:?} has the values {}, and in the schema they are {}",
                list.join(", "),
                categories.join(", ")
            )),
            Kind::Number { .. } => {
                Err(format!("the plan's column {column:?} has categories, and in the schema numbers"))
            }
        };
        plan.categorical.iter().try_for_each(|of| named(&of.column, &of.categories))
    }
}

impl Kind {
    /// The words that are values: categories, and what stands for one of them or for a number.
    pub fn words(&self) -> impl Iterator<Item = &String> {
        let (categories, names, numbers) = match self {
            Kind::Number { values, .. } => (None, None, Some(values.keys())),
            Kind::Category { categories, values } => (Some(categories), Some(values.keys()), None),
        };
        let names = names.into_iter().flatten().chain(numbers.into_iter().flatten());
        categories.into_iter().flatten().chain(names)
    }
}

impl Described {
    /// As a plan has it, where it has numbers.
    pub fn column(&self) -> Option<Column> {
        match self.kind {
            Kind::Number { lower, upper, .. } => Some(Column { name: self.name.clone(), lower, upper }),
            Kind::Category { .. } => None,
        }
    }

    /// As a plan has it, where it has categories.
    pub fn categorical(&self, weight: f64) -> Option<Categorical> {
        match &self.kind {
            Kind::Category { categories, .. } => {
                Some(Categorical { column: self.name.clone(), categories: categories.clone(), weight })
            }
            Kind::Number { .. } => None,
        }
    }

    fn check(&self, marks: &[String]) -> Result<(), String> {
        let Described { name, unit, also, kind } = self;
        let wrong = |what: String| Err(format!("column {name:?}: {what}"));
        words("also_called", also).or_else(wrong)?;
        if unit.len() > MAX_TEXT || unit.chars().any(char::is_control) {
            return wrong("its unit is too long or holds a control character".into());
        }
        if unit == UNKNOWN || unit.is_empty() && matches!(kind, Kind::Number { .. }) {
            return wrong("its unit is still to be filled in (unit = \"none\" where it has none)".into());
        }
        let clash = |word: &String| marks.contains(word).then(|| word.clone());
        match kind {
            Kind::Number { lower, upper, values } => {
                if !(lower.is_finite() && upper.is_finite() && lower < upper) {
                    return wrong(format!("its range {lower} to {upper} has no inside"));
                }
                words("values", values.keys()).or_else(wrong)?;
                if let Some((word, _)) = values.iter().find(|(_, value)| !(*lower..=*upper).contains(*value)) {
                    return wrong(format!("the word {word:?} stands for a number outside its range"));
                }
                if let Some(word) = values.keys().find(|word| word.trim().parse::<f64>().is_ok()) {
                    return wrong(format!("the word {word:?} is itself a number"));
                }
                values
                    .keys()
                    .find_map(clash)
                    .map_or(Ok(()), |word| wrong(format!("{word:?} also marks a missing value")))
            }
            Kind::Category { categories, values } => {
                words("categories", categories).or_else(wrong)?;
                words("values", values.keys()).or_else(wrong)?;
                if let Some((word, of)) = values.iter().find(|(_, of)| !categories.contains(of)) {
                    return wrong(format!("the word {word:?} stands for {of:?}, which is no category of it"));
                }
                if let Some(word) = values.keys().find(|word| categories.contains(word)) {
                    return wrong(format!("the word {word:?} is itself a category"));
                }
                let both = categories.iter().chain(values.keys()).find_map(clash);
                both.map_or(Ok(()), |word| wrong(format!("{word:?} also marks a missing value")))
            }
        }
    }
}

/// What stands in a proposal where only people know the answer.
pub const UNKNOWN: &str = "?";

/// Words of a schema that are compared with cells, which are read without blanks around them.
fn words<'a>(what: &str, all: impl IntoIterator<Item = &'a String>) -> Result<(), String> {
    for (i, word) in all.into_iter().enumerate() {
        let text = word.len() <= MAX_TEXT && word.trim() == word && !word.is_empty();
        if i >= MAX_WORDS || !text || word.chars().any(char::is_control) {
            return Err(format!(
                "{what}: word {} is empty, too long, begins or ends with a blank, holds a control character, or is one too many ({MAX_WORDS})",
                i + 1
            ));
        }
        if word == UNKNOWN {
            return Err(format!("{what}: still to be filled in"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use veilsum_cluster::{Algorithm, method::Seeding};

    fn texts(all: &[&str]) -> Vec<String> {
        all.iter().map(|text| (*text).to_owned()).collect()
    }

    fn age() -> Described {
        let values = BTreeMap::from([("> 90".to_owned(), 90.0)]);
        let kind = Kind::Number { lower: 0.0, upper: 120.0, values };
        Described { name: "age".into(), unit: "years".into(), also: texts(&["Alter"]), kind }
    }

    fn smoker() -> Described {
        let values = BTreeMap::from([("0".to_owned(), "never".to_owned())]);
        let kind = Kind::Category { categories: texts(&["never", "former", "current"]), values };
        Described { name: "smoker".into(), unit: String::new(), also: Vec::new(), kind }
    }

    fn sample() -> Schema {
        Schema { columns: vec![age(), smoker()], label: Some("outcome".into()), ..Schema::default() }
    }

    fn refused(change: impl Fn(&mut Schema)) -> String {
        let mut schema = sample();
        change(&mut schema);
        schema.check().unwrap_err()
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        sample().check().unwrap();
        assert!(refused(|s| s.columns.clear()).contains("0 columns"));
        assert!(refused(|s| s.columns[1] = age()).contains("age"));
        assert!(refused(|s| s.columns[1].also = texts(&["Alter"])).contains("Alter"));
        assert!(refused(|s| s.label = Some("Alter".into())).contains("label"));
        assert!(refused(|s| s.columns[0].unit = "?".into()).contains("filled in"));
        assert!(refused(|s| s.columns[0].unit = String::new()).contains("filled in"));
        assert!(refused(|s| s.columns[0].also = texts(&[" x"])).contains("blank"));
        assert!(refused(|s| s.marks = texts(&["0"])).contains("missing"));
        let number = |lower, upper, word: &str, value| {
            let kind = Kind::Number { lower, upper, values: BTreeMap::from([(word.to_owned(), value)]) };
            refused(move |s| s.columns[0].kind = kind.clone())
        };
        assert!(number(1.0, 1.0, "x", 1.0).contains("inside"));
        assert!(number(f64::NAN, 1.0, "x", 1.0).contains("inside"));
        assert!(number(0.0, 1.0, "x", 2.0).contains("outside"));
        assert!(number(0.0, 1.0, "0.5", 1.0).contains("itself a number"));
        let category = |categories: &[&str], word: &str, of: &str| {
            let values = BTreeMap::from([(word.to_owned(), of.to_owned())]);
            let kind = Kind::Category { categories: texts(categories), values };
            refused(move |s| s.columns[1].kind = kind.clone())
        };
        assert!(category(&["a"], "x", "a").contains("1 categories"));
        assert!(category(&["a", "b"], "x", "c").contains("no category"));
        assert!(category(&["a", "b"], "a", "b").contains("itself a category"));
        assert!(category(&["a", "?"], "x", "a").contains("filled in"));
    }

    #[test]
    fn a_header_gets_the_schemas_names() {
        let named = |header: &[&str]| sample().named(&texts(header));
        assert_eq!(named(&["smoker", "Alter", "note"]).unwrap(), ["smoker", "age", "note"]);
        assert_eq!(named(&["age", "Alter"]).unwrap_err(), "age");
    }

    #[test]
    fn a_plan_keeps_to_it_or_is_told_where_not() {
        let fcm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 5 };
        let mut plan = PlanSpec::plain(sample().numbers(), fcm, 3, Seeding::Uniform { seed: 1 });
        plan.categorical = sample().categorical(0.5);
        assert_eq!(sample().admits(&plan), Ok(()));
        let refused = |change: &dyn Fn(&mut PlanSpec)| {
            let mut plan = plan.clone();
            change(&mut plan);
            sample().admits(&plan).unwrap_err()
        };
        assert!(refused(&|p| p.columns[0].upper = 100.0).contains("0 to 100, and in the schema it is 0 to 120"));
        assert!(refused(&|p| p.columns[0].name = "weight".into()).contains("none of the schema's"));
        assert!(refused(&|p| p.columns[0].name = "outcome".into()).contains("keeps at the sites"));
        assert!(refused(&|p| p.columns[0].name = "smoker".into()).contains("in the schema categories"));
        assert!(refused(&|p| p.categorical[0].categories.swap(0, 1)).contains("former, never"));
        assert!(refused(&|p| p.categorical[0].column = "age".into()).contains("in the schema numbers"));
    }
}
