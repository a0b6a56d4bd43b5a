//! A cell of a row, whatever form of file it comes from, in one normal form: that of a text without blanks around it, in composed letters
//! (NFC), and of the same number, yes or no in other digits or letters. It is made before any rule looks at a cell.

use std::borrow::Cow;

use super::{
    normal,
    spelling::{NOTHING, Spellings, common, yes_or_no},
};

/// Letters of other alphabets, and what they are taken for on a screen.
const ALIKE: [(&str, &str); 2] =
    [("аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅ", "aeopcyxijshdqwABEKMHOPCTYXIJS"), ("οανιΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "oaviABEZHIKMNOPTYX")];

/// What stands in a cell.
#[derive(Clone, Copy)]
pub enum Cell<'a> {
    /// No value (NULL).
    Nothing,
    /// A number, perhaps infinite; NaN where there is no value.
    Number(f64),
    /// The same in single precision, of which the fewest digits are its name.
    Single(f32),
    /// A whole number, of which every digit counts.
    Whole(i128),
    /// A yes or no.
    Bool(bool),
    /// Text, which may be a number.
    Text(&'a [u8]),
}

impl Cell<'_> {
    /// As text in normal form. Text that is not UTF-8 is none of the words that anybody looks for.
    pub(super) fn text(&self) -> Cow<'_, str> {
        match self {
            // 0 and not -0.
            Cell::Number(x) if !x.is_nan() => Cow::Owned((x + 0.0).to_string()),
            Cell::Single(x) if !x.is_nan() => Cow::Owned((x + 0.0).to_string()),
            Cell::Nothing | Cell::Number(_) | Cell::Single(_) => Cow::Borrowed(""),
            Cell::Whole(x) => Cow::Owned(x.to_string()),
            Cell::Bool(yes) => Cow::Borrowed(if *yes { "true" } else { "false" }),
            Cell::Text(text) => std::str::from_utf8(text).map_or(Cow::Borrowed("\u{fffd}"), normal),
        }
    }

    /// Its text in the digits and letters in which every form has it.
    pub(super) fn common(&self) -> Cow<'_, str> {
        match self.text() {
            Cow::Borrowed(text) => common(text),
            Cow::Owned(text) => Cow::Owned(common(&text).into_owned()),
        }
    }

    /// As a number, where it is one; a yes is 1, and a no 0.
    pub fn number(&self) -> Option<f64> {
        match self {
            Cell::Nothing => None,
            Cell::Number(x) => Some(*x),
            Cell::Single(x) => Some(f64::from(*x)),
            Cell::Whole(x) => Some(*x as f64),
            Cell::Bool(yes) => Some(f64::from(u8::from(*yes))),
            Cell::Text(text) => match parse(text) {
                Parsed::Number(x) => Some(x),
                Parsed::Bool(yes) => Some(f64::from(u8::from(yes))),
                _ => None,
            },
        }
    }

    /// What it stands for, if it is one of these words.
    pub fn among<T: Copy>(&self, words: &Spellings<T>) -> Option<T> {
        if words.is_empty() { None } else { words.of(&self.text()) }
    }

    /// Whether it is a yes or no.
    pub(super) fn is_bool(&self) -> bool {
        matches!(self, Cell::Bool(_)) || matches!(self, Cell::Text(text) if matches!(parse(text), Parsed::Bool(_)))
    }

    /// Whether it has no value, wherever it stands: nothing, NaN, or a usual word for nothing.
    pub fn is_nothing(&self) -> bool {
        match self {
            Cell::Nothing => true,
            Cell::Number(x) => x.is_nan(),
            Cell::Single(x) => x.is_nan(),
            Cell::Whole(_) | Cell::Bool(_) => false,
            Cell::Text(text) => matches!(parse(text), Parsed::Missing),
        }
    }
}

/// A text with the letters that it seems to have: those of one alphabet for others that look alike.
fn seeming(text: &str) -> String {
    let pairs = || ALIKE.iter().flat_map(|(from, to)| from.chars().zip(to.chars()));
    text.chars().map(|c| pairs().find(|(from, _)| *from == c).map_or(c, |(_, to)| to)).collect()
}

/// The one of `known` that looks like `text` and has other letters, if there is one. It is told, and changes nothing.
pub(super) fn alike<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let seen = seeming(text);
    known.into_iter().find(|known| *known != text && seeming(known) == seen)
}

/// What a cell is, taken as a number.
pub(super) enum Parsed {
    /// A finite number.
    Number(f64),
    /// A yes or no.
    Bool(bool),
    /// Infinite, or too large.
    NotFinite,
    /// Nothing, NaN, or a sign of nothing.
    Missing,
    /// It has a decimal comma.
    DecimalComma,
    /// Something else.
    Words,
    /// Not even text.
    NotUtf8,
}

pub(super) fn parse(cell: &[u8]) -> Parsed {
    let Ok(cell) = std::str::from_utf8(cell) else { return Parsed::NotUtf8 };
    let cell = cell.trim();
    match cell.parse::<f64>() {
        Ok(x) if x.is_finite() => return Parsed::Number(x),
        Ok(x) if x.is_nan() => return Parsed::Missing,
        Ok(_) => return Parsed::NotFinite,
        Err(_) => {}
    }
    match yes_or_no(cell) {
        Some(yes) => Parsed::Bool(yes),
        None if cell.is_empty() || NOTHING.iter().any(|word| cell.eq_ignore_ascii_case(word)) => Parsed::Missing,
        None if cell.matches(',').count() == 1 && cell.replace(',', ".").parse::<f64>().is_ok() => Parsed::DecimalComma,
        None => Parsed::Words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Cell<'_> {
        Cell::Text(text.as_bytes())
    }

    #[test]
    fn the_same_value_has_one_normal_form_in_every_spelling() {
        for (cells, common) in [
            (vec![text("1"), text(" 1.0 "), text("1."), text("1.00"), Cell::Number(1.0), Cell::Whole(1)], "1"),
            (vec![text("-2.50"), text("-2.5\t"), Cell::Number(-2.5)], "-2.5"),
            (vec![text("0"), text("-0.0"), text("0.00"), Cell::Number(-0.0), Cell::Whole(0)], "0"),
            (vec![text("True"), text("TRUE"), text("true"), Cell::Bool(true)], "true"),
            (
                vec![text("9007199254740993"), text("9007199254740993.0"), Cell::Whole(9_007_199_254_740_993)],
                "9007199254740993",
            ),
            (vec![text("e\u{301}t\u{e9}"), text("\u{a0}\u{e9}te\u{301}")], "\u{e9}t\u{e9}"),
            (vec![text("01")], "01"),
            (vec![text("01.0")], "01.0"),
            (vec![text("1.0.0")], "1.0.0"),
            (vec![text(".50")], ".50"),
        ] {
            cells.iter().for_each(|cell| assert_eq!(cell.common(), common));
        }
        for nothing in
            ["", " ", "NaN", "nan", "-nan", "NA", "n/a", "<NA>", "#N/A", "NULL", "None", "NaT", "?", ".", "1.#IND"]
        {
            assert!(text(nothing).is_nothing(), "{nothing}");
        }
        assert!(Cell::Nothing.is_nothing() && Cell::Number(f64::NAN).is_nothing());
        assert!(!["0", "inf", "x", "false", "-"].iter().any(|word| text(word).is_nothing()));
    }

    #[test]
    fn letters_of_another_alphabet_that_look_alike_are_found() {
        assert_eq!(alike("\u{43e}ld", ["young", "old"]), Some("old"));
        assert_eq!(alike("old", ["young", "\u{3bf}ld"]), Some("\u{3bf}ld"));
        assert_eq!((alike("old", ["old"]), alike("odd", ["old"])), (None, None));
        ALIKE.iter().for_each(|(from, to)| assert_eq!(from.chars().count(), to.chars().count()));
    }
}
