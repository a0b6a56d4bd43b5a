//! How a text of rows is written: what stands between its cells, and how its numbers are.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// What stands between two cells of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Delimiter {
    /// A comma.
    #[serde(rename = ",", alias = "comma")]
    Comma,
    /// A semicolon.
    #[serde(rename = ";", alias = "semicolon")]
    Semicolon,
    /// A tab.
    #[serde(rename = "\t", alias = "tab", alias = "\\t")]
    Tab,
    /// A vertical bar.
    #[serde(rename = "|", alias = "pipe")]
    Pipe,
    /// One or more blanks and tabs.
    #[serde(rename = " ", alias = "blanks")]
    Blanks,
}

impl Delimiter {
    /// All but blanks, which count only where none of these does.
    pub(super) const SIGNS: [Delimiter; 4] = [Delimiter::Comma, Delimiter::Semicolon, Delimiter::Tab, Delimiter::Pipe];

    /// As it stands in a text.
    pub(super) fn byte(self) -> u8 {
        match self {
            Delimiter::Comma => b',',
            Delimiter::Semicolon => b';',
            Delimiter::Tab => b'\t',
            Delimiter::Pipe => b'|',
            Delimiter::Blanks => b' ',
        }
    }

    pub(super) fn of(byte: u8) -> Option<Delimiter> {
        Self::SIGNS.into_iter().chain([Delimiter::Blanks]).find(|delimiter| delimiter.byte() == byte)
    }

    /// As it is written in `site.toml`.
    pub(super) fn key(self) -> String {
        match self {
            Delimiter::Tab => "delimiter = \"tab\"".into(),
            Delimiter::Blanks => "delimiter = \"blanks\"".into(),
            sign => format!("delimiter = \"{}\"", char::from(sign.byte())),
        }
    }
}

/// What stands before the fraction of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Decimal {
    /// A point.
    #[default]
    #[serde(rename = ".", alias = "point")]
    Point,
    /// A comma.
    #[serde(rename = ",", alias = "comma")]
    Comma,
}

impl Decimal {
    /// A cell with a decimal point: where commas are decimal, comma and point of what may be a number change places, so that a point is as
    /// wrong there as a comma is elsewhere.
    pub(super) fn point(self, cell: &[u8]) -> Cow<'_, [u8]> {
        let of_number = |byte: &u8| byte.is_ascii_digit() || b"+-.,eE \t".contains(byte);
        if self == Decimal::Point || !cell.iter().any(|byte| matches!(byte, b',' | b'.')) || !cell.iter().all(of_number)
        {
            return Cow::Borrowed(cell);
        }
        let turned = cell.iter().map(|byte| match byte {
            b',' => b'.',
            b'.' => b',',
            other => *other,
        });
        Cow::Owned(turned.collect())
    }
}

/// What a site says of how its text files are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dialect {
    /// What stands between cells; told from the text where nobody says it.
    pub delimiter: Option<Delimiter>,
    /// What stands before the fraction of a number.
    pub decimal: Decimal,
    /// Whether a cell in quotation marks may span lines that look like rows.
    pub multiline: bool,
    /// Whether every line is read by itself, whatever others hold, and the header alone says how ([NOI-8]).
    pub by_line: bool,
}
