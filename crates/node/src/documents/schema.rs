//! `schema.toml`: what the columns of a federation are, agreed on before any plan; and how a site's file fits to it.
//!
//! The coordinator writes it once and hands it to everybody. It lies beside the roster, where every command finds it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use veilsum_federation::agreed::Federation;
use veilsum_federation::schema::{Described, Kind, Missing, Schema, UNKNOWN};

use super::{
    file::{parse_document, read_text, text_of},
    rows::RowsFrom,
};
use crate::table::spelling::normal;
use crate::{
    error::{Code, Failure},
    files,
    table::{self, Meaning, RowRules, TableSpec, Tally},
};

const FORMAT: &str = "veilsum-schema/1";
/// Bytes of a schema: some thousand columns, or a few hundred with long lists of categories and words.
pub const MAX_SCHEMA: usize = 256 << 10;
/// The file's usual name, beside the roster.
const FILE: &str = "schema.toml";
/// Another one that the coordinator handed out since.
const OTHER: &str = "schema.toml.new";
/// A copy of the schema by which a site took part last.
const KEPT: &str = "schema.toml.kept";
const NEXT: &str = "correct the schema; `veilsum schema` proposes one from a file's header";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemaFile {
    #[serde(default)]
    missing: Missing,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    missing_marks: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(default)]
    column: Vec<ColumnPart>,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct ColumnPart {
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    unit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower: Option<Meaning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper: Option<Meaning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    categories: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also_called: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    values: BTreeMap<String, Meaning>,
}

fn composed(name: &str) -> String {
    normal(name).into_owned()
}

impl ColumnPart {
    fn described(self) -> Result<Described, String> {
        let ColumnPart { name, unit, lower, upper, categories, also_called, values } = self;
        // In composed letters, as those of files are.
        let (name, also_called) = (composed(&name), also_called.iter().map(|also| composed(also)).collect::<Vec<_>>());
        let wrong = |what: &str| format!("column {name:?}: {what}");
        let number = |bound: Option<Meaning>, what: &str| match bound {
            Some(Meaning::Number(number)) => Ok(number),
            None => Err(wrong(&format!("{what} is missing; a column of categories has `categories` instead"))),
            Some(Meaning::Word(text)) if text == UNKNOWN => Err(wrong(&format!(
                "{what} is still to be filled in: what is possible in this unit, and not what occurs in somebody's rows"
            ))),
            Some(Meaning::Word(_)) => Err(wrong(&format!("{what} is not a number"))),
        };
        let kind = match categories {
            Some(_) if lower.is_some() || upper.is_some() => {
                return Err(wrong("it has a range and categories; it is one or the other"));
            }
            Some(categories) => {
                let name_of = |(word, of)| match of {
                    Meaning::Word(of) => Ok((word, of)),
                    Meaning::Number(_) => {
                        Err(wrong(&format!("the word {word:?} stands for a number, and belongs to categories")))
                    }
                };
                Kind::Category { categories, values: values.into_iter().map(name_of).collect::<Result<_, _>>()? }
            }
            None => {
                let (lower, upper) = (number(lower, "lower")?, number(upper, "upper")?);
                let number_of = |(word, of)| match of {
                    Meaning::Number(of) => Ok((word, of)),
                    Meaning::Word(_) => Err(wrong(&format!("the word {word:?} stands for no number"))),
                };
                Kind::Number { lower, upper, values: values.into_iter().map(number_of).collect::<Result<_, _>>()? }
            }
        };
        Ok(Described { name, unit, also: also_called, kind })
    }
}

/// The schema in a file.
///
/// # Errors
/// A [`Failure`] that names the file, and the line or the column.
pub fn load_schema(path: &Path) -> Result<Schema, Failure> {
    parse_schema(path, &read_text(path, MAX_SCHEMA)?)
}

/// The schema in a text; errors call it `path`.
///
/// # Errors
/// As [`load_schema`].
pub fn parse_schema(path: &Path, text: &str) -> Result<Schema, Failure> {
    let refused = |why: String| Failure::input(format!("{}: {why}", path.display()), NEXT);
    if text.len() > MAX_SCHEMA {
        return Err(refused(format!("it has {} bytes; {MAX_SCHEMA} are possible", text.len())));
    }
    let file: SchemaFile = parse_document(path, text, FORMAT, NEXT)?;
    let columns = file.column.into_iter().map(ColumnPart::described).collect::<Result<_, _>>().map_err(refused)?;
    let schema = Schema { columns, missing: file.missing, marks: file.missing_marks, label: file.label };
    schema.check().map_err(refused)?;
    Ok(schema)
}

/// Where the schema lies that belongs to a document (a roster, a key): `schema.toml` in the same folder.
pub fn schema_file_beside(document: &Path) -> Option<PathBuf> {
    Some(document.with_file_name(FILE)).filter(|path| std::fs::symlink_metadata(path).is_ok())
}

/// The schema beside a document, where there is one.
///
/// # Errors
/// As [`load_schema`], and where there was one when a site took part from this folder last ([`keep_schema`]) and there is none: a file
/// that is lost makes no site less strict.
pub fn schema_beside(document: &Path) -> Result<Option<Schema>, Failure> {
    if let Some(path) = schema_file_beside(document) {
        return load_schema(&path).map(Some);
    }
    let kept = document.with_file_name(KEPT);
    if std::fs::symlink_metadata(&kept).is_err() {
        return Ok(None);
    }
    Err(Failure::new(
        Code::Policy,
        format!("{FILE}, by which rows were read here before, is gone [SCH-1]"),
        format!("put it back; a copy is {}", kept.display()),
    ))
}

/// Before a site takes part by the schema beside its roster: a copy of it is kept there, so that its loss is noticed ([`schema_beside`]).
///
/// # Errors
/// A [`Failure`] where it cannot be read or written.
pub fn keep_schema(roster: &Path) -> Result<(), Failure> {
    let Some(file) = schema_file_beside(roster) else { return Ok(()) };
    let (text, kept) = (read_text(&file, MAX_SCHEMA)?, roster.with_file_name(KEPT));
    if read_text(&kept, MAX_SCHEMA).is_ok_and(|known| known == text) {
        return Ok(());
    }
    Ok(files::write_atomic(&kept, text.as_bytes())?)
}

/// The text of the schema in a federation's folder, where there is one, as it is handed out.
///
/// # Errors
/// As [`load_schema`].
pub fn schema_text(folder: &Path) -> Result<Option<String>, Failure> {
    let path = folder.join(FILE);
    if std::fs::symlink_metadata(&path).is_err() {
        return Ok(None);
    }
    let text = read_text(&path, MAX_SCHEMA)?;
    parse_schema(&path, &text)?;
    Ok(Some(text))
}

/// What became of a schema that was handed out.
#[derive(Clone, PartialEq, Debug)]
pub enum Taken {
    /// There was none; this one is beside the roster now.
    First(Schema),
    /// It is the one that is there.
    Known(Schema),
    /// Another one is there, and stays: this one lies beside it until the party's operator puts it in its place.
    Other(PathBuf),
}

/// Keeps a schema that was handed out, as it stands, beside the roster ([SCH-3]).
///
/// # Errors
/// As [`load_schema`], and where the file cannot be written.
pub fn take_schema(roster: &Path, text: &str, has_answered: bool) -> Result<Taken, Failure> {
    let schema = parse_schema(Path::new("the schema that the coordinator sent"), text)?;
    let (path, other) = (roster.with_file_name(FILE), roster.with_file_name(OTHER));
    // Rows that were answered from without a schema are not read by one of a sudden.
    let there =
        [path.as_path(), &roster.with_file_name(KEPT)].iter().any(|file| std::fs::symlink_metadata(file).is_ok());
    if !there && !has_answered {
        files::write_atomic(&path, text.as_bytes())?;
        return Ok(Taken::First(schema));
    }
    if read_text(&path, MAX_SCHEMA).is_ok_and(|there| there == text) {
        // It may be what its operator has put in place.
        let _ = std::fs::remove_file(&other);
        return Ok(Taken::Known(schema));
    }
    files::write_atomic(&other, text.as_bytes())?;
    Ok(Taken::Other(other))
}

/// Where a schema waits that the coordinator handed out and this party's operator did not take over.
pub fn other_schema(roster: &Path) -> Option<PathBuf> {
    Some(roster.with_file_name(OTHER)).filter(|path| std::fs::symlink_metadata(path).is_ok())
}

/// What its operator is told.
pub fn schema_differs(other: &Path) -> Failure {
    let what =
        format!("the coordinator has another schema than this party: it lies here as {} [SCH-3]", other.display());
    let next = "a schema says how rows are read, so it is yours to agree to: compare it with schema.toml, look with `veilsum check`, \
                and put it in its place";
    Failure::input(what, next)
}

/// Founds a federation with this schema: it is checked and copied into its folder.
///
/// # Errors
/// As [`take_schema`].
pub fn adopt_schema(folder: &Path, schema: &Path) -> Result<(), Failure> {
    let text = read_text(schema, MAX_SCHEMA)?;
    parse_schema(schema, &text)?;
    Ok(files::write_atomic(folder.join(FILE), text.as_bytes())?)
}

/// A schema to fill in, from the header of a table alone: its rows say nothing here, because a range or a list of categories that
/// was taken from them would tell of them.
///
/// # Errors
/// A [`Failure`] where the header cannot be read, or has no such label.
pub fn proposed_schema(data: &Path, rules: &RowRules, label: Option<&str>) -> Result<(String, Vec<String>), Failure> {
    let own = table::read_header(data, rules.dialect(), rules.columns.values().map(String::as_str))?;
    let header = table::known_as(&data.display().to_string(), &own, None, rules)?;
    if let Some(label) = label.filter(|label| !header.iter().any(|name| name == label)) {
        let what = format!("{}: no column is called {label:?}", data.display());
        return Err(Failure::input(what, format!("the file has {}", header.join(", "))));
    }
    let columns: Vec<String> = header.into_iter().filter(|name| Some(name.as_str()) != label).collect();
    let unknown = || Some(Meaning::Word(UNKNOWN.into()));
    let column = |name: &String| ColumnPart {
        name: name.clone(),
        unit: UNKNOWN.into(),
        lower: unknown(),
        upper: unknown(),
        ..ColumnPart::default()
    };
    let file = SchemaFile {
        missing: Missing::Refuse,
        missing_marks: Vec::new(),
        label: label.map(str::to_owned),
        column: columns.iter().map(column).collect(),
    };
    let comment = "# The columns of a federation, for everybody who joins it. Fill in every \"?\" from what is known of the columns and\n\
                   # never from rows: lower and upper are what is possible in the unit, and a range that was taken from rows tells of them.\n\
                   # A column of names has categories = [\"a\", \"b\"] in place of lower and upper. Take out columns that no plan will use.\n\
                   # also_called = [\"...\"] lists other names in headers. values = { \"> 90\" = 90 } reads a word as a number, and in a column of\n\
                   # categories values = { \"1\" = \"a\" } a code as a category. missing = \"leave-out\" leaves rows with a missing value out, in place\n\
                   # of refusing them, and missing_marks = [\"-99\"] lists further signs of one. The label column stays at every site.\n";
    Ok((text_of(comment, FORMAT, &file)?, columns))
}

/// The header of a table, and the same by the names of `site.toml` and the schema; empty for a column that another one hides. `asked` are the
/// names by which columns are asked for.
///
/// # Errors
/// A [`Failure`] where it cannot be read, or has one column of the schema under two names.
pub fn header_of<'a>(
    from: &'a RowsFrom,
    schema: Option<&Schema>,
    asked: impl IntoIterator<Item = &'a str>,
) -> Result<(Vec<String>, Vec<String>), Failure> {
    let own = |name: &'a str| from.rules.columns.get(name).map_or(name, String::as_str);
    let header = table::read_header(&from.data, from.rules.dialect(), asked.into_iter().map(own))?;
    let known = table::known_as(&from.data.display().to_string(), &header, schema, &from.rules)?;
    Ok((header, known))
}

/// What a plan does with the columns of a site's file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Reading {
    /// Those that it reads, by the plan's names: numbers, then categories.
    pub used: Vec<String>,
    /// Those of the file that nobody reads.
    pub ignored: Vec<String>,
    /// The schema's label, where the file has it: no plan may read it.
    pub kept: Option<String>,
}

/// What a plan does with the columns of a site's rows.
///
/// # Errors
/// As [`header_of`].
pub fn reading_of(federation: &Federation, from: &RowsFrom) -> Result<Reading, Failure> {
    let schema = federation.schema.as_deref();
    let (own, header) = header_of(from, schema, federation.work.headers())?;
    let used: Vec<String> = federation.work.headers().map(str::to_owned).collect();
    Ok(reading((&own, &header), used, schema))
}

/// What is used of the columns of a file (its own names, and those of the schema), and what stays.
fn reading((own, header): (&[String], &[String]), used: Vec<String>, schema: Option<&Schema>) -> Reading {
    let kept = schema.and_then(|schema| schema.label.clone()).filter(|label| header.contains(label));
    let names = own.iter().zip(header).map(|(own, name)| if name.is_empty() { own } else { name });
    let ignored = names.filter(|name| !used.contains(name) && Some(*name) != kept.as_ref()).cloned().collect();
    Reading { used, ignored, kept }
}

/// How a site's file fits to a schema. It says nothing of how many rows there are.
pub struct Fit {
    /// What plans may do with the columns of the file.
    pub reading: Reading,
    /// Columns that stand in the header under another name: the file's and the schema's.
    pub renamed: Vec<(String, String)>,
    /// Columns of the schema that the file lacks.
    pub lacking: Vec<String>,
    /// What was read, where the columns are there.
    pub tally: Option<Tally>,
    /// What is wrong with rows that cannot be used.
    pub unusable: Option<Failure>,
}

impl Fit {
    /// Whether this site can join with this file.
    pub fn fits(&self) -> bool {
        self.lacking.is_empty() && self.unusable.is_none()
    }

    /// What is wrong, and what to do about it.
    pub fn failure(&mut self, data: &Path) -> Option<Failure> {
        if !self.lacking.is_empty() {
            let what = format!("{}: it has no column {}", data.display(), self.lacking.join(", "));
            let next =
                "export these columns too, under their names or under another one that the schema lists (also_called)";
            return Some(Failure::input(what, next));
        }
        self.unusable.take()
    }
}

/// How a site's rows fit to a schema. `ranges` says whether a number outside its range is an error, as it is under every plan that
/// does not move such values to the bound.
///
/// # Errors
/// A [`Failure`] where the file cannot be read as a table at all.
pub fn fit_of(schema: &Schema, from: &RowsFrom, ranges: bool) -> Result<Fit, Failure> {
    let (own, header) = header_of(from, Some(schema), schema.columns.iter().map(|column| column.name.as_str()))?;
    let used = header.iter().filter(|name| schema.get(name).is_some()).cloned().collect();
    let lacking = schema.columns.iter().map(|column| &column.name).filter(|name| !header.contains(name));
    let lacking: Vec<String> = lacking.cloned().collect();
    let renamed = own.iter().zip(&header).filter(|(own, name)| own != name && !name.is_empty());
    let mut fit = Fit {
        renamed: renamed.map(|(own, name)| (own.clone(), name.clone())).collect(),
        reading: reading((&own, &header), used, Some(schema)),
        lacking,
        tally: None,
        unusable: None,
    };
    if fit.lacking.is_empty() {
        let columns = schema.numbers().into_iter().map(|column| column.name).collect();
        let categorical = schema.categorical(1.0);
        let schema = Some(Arc::new(schema.clone()));
        let (rules, list) = (from.rules.clone(), from.list.clone());
        let spec = TableSpec { columns, categorical, schema, ranges, rules, list, ..TableSpec::default() };
        match table::look(&from.data, &spec) {
            Ok((tally, fault)) => (fit.tally, fit.unusable) = (Some(tally), fault.map(Failure::from)),
            Err(fault) => fit.unusable = Some(fault.into()),
        }
    }
    Ok(fit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::tests::Folder;

    const TEXT: &str = "format = \"veilsum-schema/1\"\nmissing = \"leave-out\"\nmissing_marks = [\"-99\"]\nlabel = \"outcome\"\n\
        [[column]]\nname = \"age\"\nunit = \"years\"\nlower = 0\nupper = 120\nalso_called = [\"Alter\"]\nvalues = { \"> 90\" = 90 }\n\
        [[column]]\nname = \"smoker\"\ncategories = [\"never\", \"none\"]\nvalues = { \"0\" = \"never\" }\n";

    fn parsed(text: &str) -> Result<Schema, String> {
        parse_schema(Path::new("schema.toml"), text).map_err(|f| f.to_string())
    }

    #[test]
    fn a_proposal_is_refused_until_people_fill_it_in() {
        let folder = Folder::new("schema-proposal");
        let data = folder.at("rows.csv");
        std::fs::write(&data, "age,outcome\n40,dead\n").unwrap();
        let (text, columns) = proposed_schema(&data, &RowRules::default(), Some("outcome")).unwrap();
        assert_eq!(columns, ["age"]);
        assert!(!text.contains("40") && !text.contains("dead"), "nothing of a row: {text}");
        assert!(parsed(&text).unwrap_err().contains("column \"age\": lower is still to be filled in"), "{text}");
        let some = text.replace("lower = \"?\"", "lower = 0").replace("upper = \"?\"", "upper = 120");
        assert!(parsed(&some).unwrap_err().contains("unit is still to be filled in"));
        let all = some.replace("unit = \"?\"", "unit = \"years\"");
        assert_eq!(parsed(&all).unwrap().label.as_deref(), Some("outcome"));
        assert!(proposed_schema(&data, &RowRules::default(), Some("nothing")).is_err());
    }

    /// [SCH-1]: a site that took part by a schema does not go on without, and takes no other one unasked.
    #[test]
    fn sch_1_a_schema_that_is_lost_is_missed() {
        let folder = Folder::new("schema-lost");
        let (roster, file) = (folder.at("roster.toml"), folder.at(FILE));
        keep_schema(&roster).unwrap();
        assert_eq!(schema_beside(&roster).unwrap(), None);
        std::fs::write(&file, TEXT).unwrap();
        keep_schema(&roster).unwrap();
        assert!(schema_beside(&roster).unwrap().is_some());
        std::fs::remove_file(&file).unwrap();
        assert!(schema_beside(&roster).is_err_and(|lost| lost.advice.contains(KEPT)));
        let other = TEXT.replace("never", "no");
        assert!(matches!(take_schema(&roster, &other, false).unwrap(), Taken::Other(_)));
        assert!(schema_beside(&roster).is_err());
        std::fs::copy(folder.at(KEPT), &file).unwrap();
        assert!(schema_beside(&roster).unwrap().is_some());
    }

    #[test]
    fn what_is_wrong_with_a_schema_is_said_by_column() {
        assert!(parsed(TEXT).is_ok());
        for (from, to, said) in [
            ("schema/1", "schema/9", "format"),
            ("lower = 0\n", "", "lower is missing"),
            ("lower = 0\n", "lower = \"low\"\n", "lower is not a number"),
            ("lower = 0\n", "lower = 130\n", "no inside"),
            ("= 90 }", "= \"old\" }", "stands for no number"),
            ("\"0\" = \"never\"", "\"0\" = 1", "belongs to categories"),
            ("name = \"smoker\"\n", "name = \"smoker\"\nlower = 0\n", "one or the other"),
            ("leave-out", "guess", "unknown variant"),
            ("unit", "units", "unknown field"),
        ] {
            let told = parsed(&TEXT.replacen(from, to, 1)).unwrap_err();
            assert!(told.starts_with("schema.toml") && told.contains(said), "{from} -> {to}: {told}");
        }
        assert!(parsed(&format!("{TEXT}#{}", " ".repeat(MAX_SCHEMA))).unwrap_err().contains("bytes"));
    }

    #[test]
    fn a_file_in_a_sites_own_words_is_read_in_those_of_the_schema() {
        let folder = Folder::new("schema-words");
        let data = folder.at("rows.csv");
        std::fs::write(
            &data,
            "outcome,smoker,Alter,note\nx,0,> 90,a\ny,none,-99,b\nz,none,40,c\nx,never,,d\nx,NA,1,e\n",
        )
        .unwrap();
        let schema = parsed(TEXT).unwrap();
        let fit = fit_of(&schema, &(&data).into(), true).unwrap();
        assert!(fit.fits());
        assert_eq!(
            (fit.reading.used.join(" "), fit.reading.ignored.join(" ")),
            ("smoker age".to_owned(), "note".to_owned())
        );
        assert_eq!(fit.renamed, [("Alter".to_owned(), "age".to_owned())]);
        assert_eq!(
            fit.tally.unwrap().left_out.to_string(),
            "2 with no value in \"Alter\" (lines 3, 5); 1 with no value in \"smoker\" (line 6)"
        );
        // The rows are the same whichever columns are asked for, and known by their place in the file.
        for columns in [vec!["age".to_owned()], Vec::new()] {
            let categorical = if columns.is_empty() { schema.categorical(1.0) } else { Vec::new() };
            let spec =
                TableSpec { columns, categorical, schema: Some(Arc::new(schema.clone())), ..TableSpec::default() };
            let table = table::read(&data, &spec).unwrap();
            assert_eq!(table.rows, 2);
            let first = if spec.categorical.is_empty() { vec![90.0] } else { vec![1.0, 0.0] };
            assert_eq!(table.values[..first.len()], first);
        }
    }

    /// [SCH-3]: what is no schema is refused, and another one than is there takes the place of none.
    #[test]
    fn a_schema_that_was_handed_out_is_kept_beside_another_one() {
        let folder = Folder::new("schema-taken");
        let (roster, own) = (folder.at("roster.toml"), folder.at(FILE));
        assert!(take_schema(&roster, "format = 1", false).is_err_and(|f| f.message.contains("the coordinator sent")));
        assert!(!own.exists());
        assert!(matches!(take_schema(&roster, TEXT, false).unwrap(), Taken::First(_)));
        assert!(matches!(take_schema(&roster, TEXT, false).unwrap(), Taken::Known(_)));
        let other = TEXT.replacen("120", "130", 1);
        assert_eq!(take_schema(&roster, &other, false).unwrap(), Taken::Other(folder.at(OTHER)));
        assert_eq!(
            (std::fs::read_to_string(&own).unwrap(), other_schema(&roster)),
            (TEXT.into(), Some(folder.at(OTHER)))
        );
        assert!(
            take_schema(&roster, TEXT, false).is_ok() && other_schema(&roster).is_none(),
            "what is in place is not offered"
        );
    }

    /// Every row that cannot be used is counted by its reason, and not the first one only.
    #[test]
    fn all_rows_that_cannot_be_used_are_counted_by_reason() {
        let folder = Folder::new("schema-rows");
        let data = folder.at("rows.csv");
        std::fs::write(&data, "age,smoker\n130,never\n-1,0\nold,never\n50,sometimes\n50,often\n,0\n50,never\n")
            .unwrap();
        let schema = parsed(&TEXT.replace("leave-out", "refuse")).unwrap();
        let fit = fit_of(&schema, &(&data).into(), true).unwrap();
        let what = fit.unusable.as_ref().expect("rows at fault").message.clone();
        let tally = fit.tally.as_ref().unwrap();
        let counts: Vec<(&str, u64)> = tally.unusable.each().map(|(why, rows, _)| (why, rows)).collect();
        assert_eq!(
            counts,
            [
                ("a value outside its range in \"age\"", 2),
                ("no number in \"age\"", 1),
                ("another category in \"smoker\"", 2),
                ("no value in \"age\"", 1)
            ]
        );
        let said = what.replace(&data.display().to_string(), "FILE");
        assert!(said.contains("in all 6 rows") && !said.contains("130") && !said.contains("sometimes"), "{said}");
        let clipped = fit_of(&schema, &(&data).into(), false).unwrap();
        assert!(clipped.unusable.is_some());
        assert_eq!(clipped.tally.unwrap().unusable.rows(), 4);
        std::fs::write(&data, "smoker,Alter,age\n").unwrap();
        assert!(fit_of(&schema, &(&data).into(), true).is_err_and(|f| f.message.contains("both \"age\"")));
        std::fs::write(&data, "smoker\nnever\n").unwrap();
        let mut lacking = fit_of(&schema, &(&data).into(), true).unwrap();
        assert!(!lacking.fits() && lacking.failure(&data).is_some_and(|f| f.message.contains("no column age")));
    }
}
