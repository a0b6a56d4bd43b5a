//! Which sign of a text stands before the fraction of a number: a point, unless its site says a comma. Where some cells have decimal commas,
//! and others a point before three digits, that point may as well stand between thousands; then nobody guesses.

use std::net::Ipv4Addr;

use memchr::{memchr, memchr_iter};

use super::{
    Fault, Place, TableError,
    advice::groups,
    cell::{Parsed, parse},
    error::placed,
};

const COMMA: &str = "a comma before the fraction of a number";
const POINTS: &str = "two points within a number";

/// What is known of the points in a column.
#[derive(Clone, Default)]
enum Points {
    /// Nothing.
    #[default]
    None,
    /// Each stands before three digits, this one first.
    Thousands(String, Place),
    /// One stands before a fraction.
    Decimal,
}

/// What was seen of signs in the texts of a source.
#[derive(Clone, Default)]
pub(super) struct Signs {
    /// By column of the header.
    points: Vec<Points>,
    /// Columns in which one stands before a fraction.
    decimal: usize,
    /// The first cell with a decimal comma, or with points that stand between thousands: what stands there, and where.
    against: Option<(&'static str, (Option<String>, Place))>,
}

impl Signs {
    /// Looks at a cell in column `at` that is taken as a number.
    pub(super) fn look(&mut self, at: usize, spot: (&str, Place), cell: &[u8]) {
        if self.points.len() <= at {
            self.points.resize(at + 1, Points::None);
        }
        if matches!(self.points[at], Points::Decimal) {
            return;
        }
        let Some(point) = memchr(b'.', cell) else { return };
        // As before, which is what most cells of such a column are.
        if matches!(self.points[at], Points::Thousands(..)) && is_alike(cell, point) {
            return;
        }
        let cell = cell.trim_ascii();
        // A number of thousands does not begin with a zero.
        match std::str::from_utf8(cell).map_or(0, |text| groups(text, '.')) {
            1 if !matches!(cell, [b'0', ..] | [b'+' | b'-', b'0', ..]) => {
                if matches!(self.points[at], Points::None) {
                    self.points[at] = Points::Thousands(spot.0.to_owned(), spot.1);
                }
            }
            0 | 1 if matches!(parse(cell), Parsed::Number(_)) => {
                self.points[at] = Points::Decimal;
                self.decimal += 1;
            }
            0 | 1 => self.look_for_commas(spot, cell),
            _ => self.note(POINTS, spot),
        }
    }

    /// Looks at any cell of a row, also in a column that nobody uses; `commas`: whether one may stand in it.
    pub(super) fn look_anywhere(&mut self, spot: (&str, Place), cell: &[u8], commas: bool) {
        if commas {
            self.look_for_commas(spot, cell);
        }
        // 1.234.567 is the shortest; an address in a network looks alike.
        if cell.len() >= 9
            && self.against.is_none()
            && memchr_iter(b'.', cell).nth(1).is_some()
            && groups(number_in(cell), '.') > 1
            && number_in(cell).parse::<Ipv4Addr>().is_err()
        {
            self.note(POINTS, spot);
        }
    }

    fn look_for_commas(&mut self, spot: (&str, Place), cell: &[u8]) {
        let digit = |at: usize| cell.get(at).is_some_and(u8::is_ascii_digit);
        if self.against.is_some() || !memchr_iter(b',', cell).any(|at| at > 0 && digit(at - 1) && digit(at + 1)) {
            return;
        }
        let text = number_in(cell);
        let thousands = || {
            text.rsplit_once(',')
                .is_some_and(|(whole, part)| groups(whole, '.') > 0 && part.bytes().all(|byte| byte.is_ascii_digit()))
        };
        if is_decimal(text.as_bytes()) || thousands() {
            self.note(COMMA, spot);
        }
    }

    /// Whether something may speak against decimal points that was not found yet, in so many columns of numbers.
    pub(super) fn wants_more(&self, measured: usize) -> bool {
        self.against.is_none() && self.decimal < measured
    }

    fn note(&mut self, what: &'static str, (file, place): (&str, Place)) {
        self.against.get_or_insert((what, (Some(file.to_owned()), place)));
    }

    /// What is wrong with all that was seen, under these names of columns.
    pub(super) fn fault(&self, header: &[String]) -> Option<TableError> {
        let (stands, against) = self.against.as_ref()?;
        let thousands = |(at, points): (usize, &Points)| match points {
            Points::Thousands(file, place) => Some((at, file.clone(), *place)),
            _ => None,
        };
        let (at, file, place) = self.points.iter().enumerate().find_map(thousands)?;
        let other = if against.0.as_ref() == Some(&file) { &(None, against.1) } else { against };
        let what = format!(
            "a point stands before three digits here, and {stands} on {}, so this may be a number of thousands",
            placed(other)
        );
        let next = "say which sign is decimal under [rows] in site.toml: decimal = \",\" if commas are (then export the file without points), \
                    decimal = \".\" if points are";
        Some(Fault::said(what, next).of_cell((&file, place), header.get(at).map_or("", String::as_str)))
    }
}

/// Whether a cell is digits with one point before three of them, and does not begin with a zero.
fn is_alike(cell: &[u8], point: usize) -> bool {
    let (whole, part) = (&cell[..point], &cell[point + 1..]);
    let digits = |of: &[u8]| of.iter().all(u8::is_ascii_digit);
    part.len() == 3 && (1..=3).contains(&whole.len()) && whole[0] != b'0' && digits(whole) && digits(part)
}

/// A cell without units and signs of money around it.
fn number_in(cell: &[u8]) -> &str {
    std::str::from_utf8(cell).unwrap_or_default().trim_matches(|c: char| !c.is_ascii_digit())
}

/// Whether a cell is a number with a comma amid its digits.
pub(super) fn is_decimal(cell: &[u8]) -> bool {
    let cell = cell.trim_ascii();
    matches!(parse(cell), Parsed::DecimalComma) && !cell.starts_with(b",") && !cell.ends_with(b",")
}
