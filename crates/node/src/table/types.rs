//! Which types of columns are read, and as what: one table for Parquet, for Arrow, and for frames of Python.

use arrow_schema::{DataType, Field, Fields, ffi::FFI_ArrowSchema};

use super::Use;

/// Why a type is refused, and what to do.
type Refused = (&'static str, &'static str);

/// A kind of types.
struct Kind {
    /// What people call them, as in the table of `docs/src/rows.md`, which says what they are read as.
    name: &'static str,
    /// Why they are refused, and what to do; nothing where they are read.
    refused: Option<Refused>,
}

const NUMBERS: Kind = Kind { name: "integers, floats, decimals", refused: None };
const YES_OR_NO: Kind = Kind { name: "boolean", refused: None };
const TEXT: Kind = Kind { name: "text, dictionary of text", refused: None };
const NOTHING: Kind = Kind { name: "null", refused: None };
const TIME: Kind = Kind {
    name: "date, time, timestamp, duration",
    refused: Some((
        "and a point in time is not a number",
        "export a number in its place, such as years or days since a date, or leave the column out of the plan",
    )),
};
const NESTED: Kind = Kind {
    name: "list, struct, map, variant",
    refused: Some(("which is nested", "export its parts as columns of their own, or leave the column out of the plan")),
};
const OTHER: Kind = Kind {
    name: "binary, UUID, geometry, and others",
    refused: Some((
        "which is neither number nor text",
        "export it as a number or as text, or leave it out of the plan",
    )),
};

/// What a writer gave another meaning than that of a number, such as a period of pandas.
const STANDS: Refused = (
    "and its numbers stand for something else",
    "export what they stand for as a number or as text, or leave the column out of the plan",
);
/// What names of types that stand on plain numbers and are numbers are: yes and no in a byte.
const PLAIN: [&str; 1] = ["arrow.bool8"];

/// What is said of words that are no numbers.
const WORDS: Refused = (
    "and its words stand for no numbers",
    "say which numbers they are in [rows.values] of site.toml, or leave the column out of the plan",
);
/// Under which key a column has what its writer called its type.
pub(super) const EXTENSION: &str = "ARROW:extension:name";

/// The kind of a type.
fn kind_of(of: &DataType) -> &'static Kind {
    match of {
        DataType::Boolean => &YES_OR_NO,
        DataType::Null => &NOTHING,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => &TEXT,
        DataType::Dictionary(_, values) => kind_of(values),
        of if of.is_numeric() => &NUMBERS,
        of if of.is_temporal() => &TIME,
        DataType::RunEndEncoded(..) => &OTHER,
        of if of.is_nested() => &NESTED,
        _ => &OTHER,
    }
}

/// Why a column of this type cannot be used for this, and what to do; nothing where it can.
pub(super) fn refused(field: &Field, wanted: Use) -> Option<Refused> {
    let of = field.data_type();
    match wanted {
        Use::There => None,
        // Two persons must not become one double.
        Use::Person if of.is_decimal() => Some(("and says of whom a row is", "export it as text or as an integer")),
        _ => extended(of, field.metadata().get(EXTENSION).map(String::as_str)).or(kind_of(of).refused),
    }
}

/// The same of what a writer called a type.
fn extended(of: &DataType, name: Option<&str>) -> Option<Refused> {
    let name = name.filter(|name| kind_of(of).name == NUMBERS.name && !PLAIN.contains(name))?;
    if ["period", "time", "date"].iter().any(|word| name.contains(word)) { TIME.refused } else { Some(STANDS) }
}

/// What the type of a column is called: what its writer called it, where a column of plain bytes or parts stands for more.
pub(super) fn told(field: &Field) -> String {
    match field.metadata().get(EXTENSION) {
        Some(name) => format!("{} ({})", field.data_type(), name.trim_start_matches("arrow.")),
        None => field.data_type().to_string(),
    }
}

/// The name of the type that the Arrow C interface writes like this, and what its writer calls it; where no numbers are read from it, why and
/// what to do.
pub fn of_format(format: &str, name: Option<&str>) -> (String, Option<Refused>) {
    let part = || FFI_ArrowSchema::try_from(&Field::new("item", DataType::Null, true));
    let parts = if format.starts_with('+') { part().into_iter().collect() } else { Vec::new() };
    let of = FFI_ArrowSchema::try_new(format, parts, None).and_then(|schema| DataType::try_from(&schema));
    match of {
        Ok(of) if kind_of(&of).name == TEXT.name => (of.to_string(), Some(WORDS)),
        Ok(of) => {
            let refused = extended(&of, name).or(kind_of(&of).refused);
            (name.map_or(of.to_string(), |name| format!("{of} ({name})")), refused)
        }
        // Its parts are not told here.
        Err(_) if format.starts_with('+') => (DataType::Struct(Fields::empty()).to_string(), NESTED.refused),
        Err(_) => (format.to_owned(), OTHER.refused),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_types_is_that_of_the_page() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/rows.md");
        let page = std::fs::read_to_string(page).unwrap();
        let (_, rows) = page.split_once("| type of a column | is read as |\n|---|---|\n").unwrap();
        let rows: Vec<&str> = rows.lines().map_while(|line| line.strip_prefix("| ")?.split(" | ").next()).collect();
        assert_eq!(rows, [&NUMBERS, &YES_OR_NO, &TEXT, &NOTHING, &TIME, &NESTED, &OTHER].map(|kind| kind.name));
    }

    /// What a writer gave another meaning is no number, whatever it is held in.
    #[test]
    fn numbers_that_stand_for_something_else_are_refused() {
        for (name, why) in [("pandas.period", "point in time"), ("geo.h3", "stand for something else")] {
            let (told, refused) = of_format("l", Some(name));
            assert!(told == format!("Int64 ({name})") && refused.is_some_and(|(told, _)| told.contains(why)), "{told}");
        }
        assert_eq!((of_format("c", Some("arrow.bool8")).1, of_format("n", Some("x")).1), (None, None));
    }

    #[test]
    fn the_formats_of_the_c_interface_have_the_types_of_files() {
        for format in
            ["c", "C", "s", "S", "i", "I", "l", "L", "e", "f", "g", "b", "n", "d:9,2", "d:9,2,32", "d:76,3,256"]
        {
            assert_eq!(of_format(format, None).1, None, "{format}");
        }
        for (format, of, why) in [
            ("tdD", "Date32", "point in time"),
            ("tsn:Europe/Berlin", "Timestamp", "point in time"),
            ("tDn", "Duration", "point in time"),
            ("u", "Utf8", "words stand for no numbers"),
            ("vu", "Utf8View", "words stand for no numbers"),
            ("z", "Binary", "neither number"),
            ("w:16", "FixedSizeBinary", "neither number"),
            ("+l", "List", "nested"),
            ("+s", "Struct", "nested"),
            ("+ud:0,1", "", "nested"),
            ("?", "?", "neither number"),
        ] {
            let (told, refused) = of_format(format, None);
            assert!(
                told.contains(of) && refused.is_some_and(|(told, _)| told.contains(why)),
                "{format}: {told} {refused:?}"
            );
        }
    }
}
