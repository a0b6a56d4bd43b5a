//! A cell of a row, whatever form of file it comes from.

use std::borrow::Cow;

/// What stands in a cell.
pub enum Cell<'a> {
    /// No value (NULL).
    Nothing,
    /// A number, perhaps NaN or infinite.
    Number(f64),
    /// A yes or no.
    Bool(bool),
    /// Text, which may be a number.
    Text(&'a [u8]),
}

impl Cell<'_> {
    /// As text, without blanks around it. Text that is not UTF-8 is none of the words that anybody looks for.
    pub(super) fn text(&self) -> Cow<'_, str> {
        match self {
            Cell::Nothing => Cow::Borrowed(""),
            Cell::Number(x) if x.is_nan() => Cow::Borrowed(""),
            Cell::Number(x) => Cow::Owned(x.to_string()),
            Cell::Bool(yes) => Cow::Borrowed(if *yes { "true" } else { "false" }),
            Cell::Text(text) => Cow::Borrowed(std::str::from_utf8(text).map_or("\u{fffd}", str::trim)),
        }
    }

    /// As a number, where it is one.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Cell::Nothing => None,
            Cell::Number(x) => Some(*x),
            Cell::Bool(yes) => Some(f64::from(u8::from(*yes))),
            Cell::Text(text) => match parse(text) {
                Parsed::Number(x) => Some(x),
                _ => None,
            },
        }
    }
}

/// What a cell is, taken as a number.
pub(super) enum Parsed {
    /// A finite number.
    Number(f64),
    /// NaN or infinite.
    NotFinite,
    /// Nothing, or a sign of nothing.
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
        Ok(x) if x.is_finite() => Parsed::Number(x),
        Ok(_) => Parsed::NotFinite,
        // How R, SQL and spreadsheets write that nothing is there.
        Err(_) if cell.is_empty() || ["na", "n/a", "null", "none", "?", "."].contains(&&*cell.to_ascii_lowercase()) => {
            Parsed::Missing
        }
        Err(_) if cell.matches(',').count() == 1 && cell.replace(',', ".").parse::<f64>().is_ok() => {
            Parsed::DecimalComma
        }
        Err(_) => Parsed::Words,
    }
}
