//! What to do about a cell that is no number, by what it looks like. Nothing of the cell is said.

use super::{
    Decimal,
    cell::{Parsed, parse},
};

/// What to do where a cell says that nothing is there.
pub(super) const MARK: &str =
    "if this stands for a missing value, name it in missing_marks under [rows] in site.toml; else correct the cell";

/// Ways to say that nothing is there, in small letters and with bars between them.
const NOTHING: &str = "-|--|---|–|—|...|..|…|*|**|#|!|/|x|xx|xxx|_|n.a.|n.a|na.|n/a.|#n/a|#na|#n/a n/a|<na>|(na)|[na]|nil|nan.|(null)|<null>|\
                       [null]|\\n|null.|(none)|none.|nothing|missing|(missing)|[missing]|<missing>|empty|(empty)|blank|(blank)|unknown|unk|\
                       unspecified|not applicable|not available|not known|not reported|undefined|1.#ind|-1.#ind|1.#qnan|-1.#qnan|k.a.";
/// What a spreadsheet shows in the place of a number.
const ERRORS: &str = "#div/0!|#ref!|#value!|#name?|#num!|#null!|#spill!|#calc!|#getting_data";
/// Words for yes and no.
const ANSWERS: &str = "true|false|yes|no|t|f|y|n|on|off|ja|nein|oui|non|wahr|falsch";
/// Signs and names of money.
const MONEY: &str = "$|€|£|¥|₹|₩|₽|usd|eur|gbp|chf|fr.";

/// Whether a cell is of a kind.
type Seen = fn(&str) -> bool;

/// What is seen in a cell (without blanks around it, in small letters), and what to say. The first that fits is said.
const TABLE: [(Seen, &str); 15] = [
    (|cell| listed(NOTHING, cell), MARK),
    (
        |cell| listed(ERRORS, cell),
        "the spreadsheet has an error in this cell: correct it there, or name it in missing_marks under [rows] in site.toml",
    ),
    (
        // Each may be meant.
        |cell| groups(cell, ',') == 1 && is_comma(cell),
        "it has a comma with three digits behind it: if commas separate thousands, export the file without them; if they are decimal, say \
         decimal = \",\" under [rows] in site.toml",
    ),
    (
        is_comma,
        "it has a decimal comma: say decimal = \",\" under [rows] in site.toml, or export the file with decimal points",
    ),
    (
        |cell| {
            cell.rsplit_once(',').is_some_and(|(whole, part)| digits(part) && !whole.contains(',') && separators(whole))
        },
        "it has separators of thousands and a decimal comma: export the file without the separators, and say decimal = \",\" under [rows] \
         in site.toml",
    ),
    (grouped, "it has separators of thousands: export the file without them"),
    (
        |cell| cell.strip_suffix('%').or(cell.strip_prefix('%')).is_some_and(amount),
        "it has a percent sign: export the number alone, at every site as a percentage or at every site as a part of 1",
    ),
    (
        |cell| MONEY.split('|').any(|sign| cell.strip_prefix(sign).or(cell.strip_suffix(sign)).is_some_and(amount)),
        "it has a sign of money: export the number alone",
    ),
    (
        |cell| {
            let limit = cell.trim_start_matches(['<', '>', '=', '≤', '≥', '~', '≈']);
            limit.len() < cell.len() && amount(limit) || cell.strip_suffix(['+', '*']).is_some_and(amount)
        },
        "it is a limit and no number: agree on a number for it, and say it in [rows.values] of site.toml, or name it in missing_marks",
    ),
    (
        |cell| {
            matches!(
                &*shape(cell),
                "9-9-9" | "9/9/9" | "9.9.9" | "9:9" | "9:9:9" | "9-a-9" | "9 a 9" | "9. a 9" | "a 9, 9" | "9.a.9"
            ) || ["9-9-9 9:9", "9-9-9a9:9", "9/9/9 9:9", "9.9.9 9:9"].iter().any(|of| shape(cell).starts_with(of))
        },
        "it is a date or a time: export a number, such as years or days since a date",
    ),
    (
        |cell| {
            matches!(
                &*shape(cell),
                "9-9" | "9 - 9" | "9–9" | "9..9" | "9/9" | "9±9" | "9.9-9.9" | "9.9±9.9" | "9.9/9.9"
            )
        },
        "it is a range, a fraction or a pair and no number: export a number, or cluster the column as one of categories (--column NAME=a,b)",
    ),
    (
        |cell| listed(ANSWERS, cell),
        "it is a yes or no: give each word its number in [rows.values] of site.toml, or cluster the column as one of categories (--column \
         NAME=yes,no)",
    ),
    (
        |cell| {
            let inside = cell.strip_prefix('(').and_then(|cell| cell.strip_suffix(')'));
            cell.strip_prefix('\u{2212}').or(inside).or(cell.strip_suffix('-')).is_some_and(amount)
        },
        "it is a negative number as accounts write it: export the file with a minus sign (-) before the number",
    ),
    (
        |cell| cell.starts_with(['\'', '"', '`']) || cell.starts_with("=\""),
        "a quotation mark stands in the cell: export the number without it",
    ),
    (
        |cell| {
            let end = cell.find(|c: char| !(c.is_ascii_digit() || "+-.,".contains(c))).unwrap_or(cell.len());
            amount(&cell[..end])
                && cell[end..].trim_start().starts_with(|c: char| c.is_alphabetic() || "°µ²³".contains(c))
        },
        "it has a unit behind it: export the number alone",
    ),
];

/// What to do about every other word.
const WORDS: &str = "leave this column out; or cluster it as one of categories (--column NAME=a,b), or give its words numbers in [rows.values] \
                     of site.toml; if this word stands for a missing value, name it in missing_marks there";

/// What to do about a cell that is no number.
pub(super) fn of_cell(cell: &[u8], decimal: Decimal) -> &'static str {
    let cell = String::from_utf8_lossy(cell).trim().to_lowercase();
    if decimal == Decimal::Comma && (is_comma(&cell) || grouped(&cell)) {
        return "it has a point, and site.toml says that commas are decimal (decimal = \",\"): export the file without separators of thousands and \
                with one sign before fractions";
    }
    TABLE.iter().find(|(seen, _)| seen(&cell)).map_or(WORDS, |(_, say)| *say)
}

fn listed(words: &str, cell: &str) -> bool {
    words.split('|').any(|word| word == cell)
}

fn is_comma(cell: &str) -> bool {
    matches!(parse(cell.as_bytes()), Parsed::DecimalComma)
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether it is a number, however its fraction and its thousands are written.
fn amount(text: &str) -> bool {
    let of_number = |c: char| c.is_ascii_digit() || "+-., '".contains(c);
    let begins = |c: char| of_number(c) && c != '\'';
    text.trim().starts_with(begins) && text.contains(|c: char| c.is_ascii_digit()) && text.chars().all(of_number)
}

/// How many separators of thousands there are, if all that it has is digits in groups.
pub(super) fn groups(text: &str, separator: char) -> usize {
    let mut parts = text.trim_start_matches(['+', '-']).split(separator);
    let first = parts.next().is_some_and(|part| digits(part) && part.len() <= 3);
    let rest: Vec<&str> = parts.collect();
    if first && rest.iter().all(|part| digits(part) && part.len() == 3) { rest.len() } else { 0 }
}

/// Whether it is digits in groups of three.
fn separators(text: &str) -> bool {
    [',', '.', ' ', '\'', '’', '_', '\u{a0}', '\u{202f}', '\u{2009}']
        .into_iter()
        .any(|separator| groups(text, separator) > 0)
}

/// Whether it has separators of thousands, and perhaps a decimal point.
fn grouped(cell: &str) -> bool {
    separators(cell) || cell.rsplit_once('.').is_some_and(|(whole, part)| digits(part) && separators(whole))
}

/// A cell with 9 for digits in a row and a for letters.
fn shape(cell: &str) -> String {
    let mut shape = String::new();
    for c in cell.chars() {
        let c = match c {
            c if c.is_ascii_digit() => '9',
            c if c.is_alphabetic() => 'a',
            c => c,
        };
        if !(matches!(c, '9' | 'a') && shape.ends_with(c)) {
            shape.push(c);
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every row of the table has cells of its kind here, and others fall to none of them.
    #[test]
    fn what_is_seen_decides_what_is_said() {
        let seen = [
            ("--|N.A.|nil|(null)|Missing|not applicable|1.#IND|...|x|#N/A N/A|—|\\N", "missing_marks"),
            ("#DIV/0!|#REF!|#Value!", "spreadsheet has an error"),
            ("1,234|-12,500|999,999", "three digits behind it"),
            ("75,5|0,25|-1,5e3|1234,567|1,2345", "it has a decimal comma: say decimal = \",\""),
            ("1.234,5|1 234,56|1'234,5|12.345.678,9", "thousands and a decimal comma"),
            ("1,234,567|1,234.5|1.234.567|1 234|1'234.50|1\u{202f}234|12_000", "separators of thousands: export"),
            ("12%|12.5 %|%5", "percent sign"),
            ("$5|5 €|1,200.50 USD|£1", "sign of money"),
            ("<5|> 90|≥3.5|90+|~4|5*", "it is a limit"),
            (
                "2026-11-26|26.11.2026|11/26/26|12:30|2026-11-26T12:30:00Z|2026-11-26 12:30|26-Nov-2026",
                "date or a time",
            ),
            ("10-19|1/2|120/80|5.1±0.2", "a range, a fraction or a pair"),
            ("true|No|FALSE|y", "it is a yes or no"),
            ("\u{2212}5|(5)|(1,234.50)|5-", "a minus sign"),
            ("'5|\"5\"|=\"5\"", "a quotation mark stands"),
            ("5 mg|80kg|37.2°C|12 Jahre", "a unit behind it"),
            ("north|ward 3|female|é", "--column NAME=a,b"),
        ];
        for (cells, says) in seen {
            for cell in cells.split('|') {
                let said = of_cell(format!(" {cell} ").as_bytes(), Decimal::Point);
                assert!(said.contains(says), "{cell}: {said}");
            }
        }
        for (row, (_, say)) in TABLE.iter().enumerate() {
            assert!(seen.iter().any(|(_, says)| say.contains(says)), "row {row}");
        }
        // What the reader hands over has comma and point in each other's place.
        for cell in ["1.234", "1.5", "1.234,5", "1.234.567"] {
            let turned = Decimal::Comma.point(cell.as_bytes()).into_owned();
            assert!(of_cell(&turned, Decimal::Comma).starts_with("it has a point, and"), "{cell}");
        }
    }
}
