//! Text that nothing in it can end, and numbers in few signs.

/// Text that nothing in it can end: not the text itself, and not the value of an attribute.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // A name may turn the direction of what follows, or hide parts of it.
            c if c.is_control() && c != '\n'
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}') =>
            {
                out.push('\u{fffd}');
            }
            c => out.push(c),
        }
    }
    out
}

/// At most so many characters, the last of them `…` where some are left out.
pub fn shortened(text: &str, most: usize) -> String {
    match text.chars().count() <= most {
        true => text.to_owned(),
        false => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// About how wide a text is in letters of this size: rather too much than too little.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let letter = |c: char| match c {
        'i' | 'l' | '.' | ',' | ':' | '\'' | '|' | ' ' => 0.36,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 0.95,
        c if c.is_ascii_uppercase() => 0.74,
        c if c.is_ascii() => 0.61,
        // Letters of other scripts are up to a square.
        '\u{80}'..='\u{58f}' => 0.7,
        _ => 1.05,
    };
    size * text.chars().map(letter).sum::<f64>()
}

/// Five significant digits: `12.5`, `0.0031`, `1.2e-7`; `–` for what is no number.
pub fn number(x: f64) -> String {
    if !x.is_finite() {
        return "–".to_owned();
    }
    if x == 0.0 {
        return "0".to_owned();
    }
    let place = x.abs().log10().floor();
    if !(-4.0..7.0).contains(&place) {
        let text = format!("{x:.3e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{power}", trimmed(digits));
    }
    trimmed(&format!("{x:.*}", (4.0 - place).clamp(0.0, 8.0) as usize))
}

/// A number and how far it may be off, or spreads: `0.296 ± 0.075`, both to the second digit of the latter.
pub fn within(x: f64, error: f64) -> String {
    let place = error.abs().log10().floor();
    if !(x.is_finite() && (-6.0..6.0).contains(&place) && x.abs() < 1e9) {
        return format!("{} ± {}", number(x), number(error));
    }
    let (digits, unit) = ((1.0 - place).max(0.0) as usize, 10f64.powf((place - 1.0).max(0.0)));
    let rounded = |x: f64| {
        let x = if unit > 1.0 { (x / unit).round_ties_even() * unit } else { x };
        format!("{x:.digits$}")
    };
    let text = rounded(x);
    // A minus before nothing.
    let is_nothing = text.trim_start_matches(['-', '0', '.']).is_empty();
    let text = if is_nothing { text.trim_start_matches('-') } else { &text };
    format!("{text} ± {}", rounded(error))
}

/// A share as a percentage.
pub fn percent(share: f64) -> String {
    match share.is_finite() {
        true if share != 0.0 && share.abs() < 0.001 => format!("{} %", number(100.0 * share)),
        true => format!("{} %", trimmed(&format!("{:.1}", 100.0 * share))),
        false => "–".to_owned(),
    }
}

/// Bytes with the unit in which they have one to three digits before the point.
pub fn bytes(count: u64) -> String {
    let units = [(1_000_000_000u64, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match units.into_iter().find(|(size, _)| count >= *size) {
        Some((size, unit)) => format!("{:.1} {unit}", count as f64 / size as f64),
        None => format!("{count} bytes"),
    }
}

/// Without zeros behind the point, and without a minus before nothing.
fn trimmed(text: &str) -> String {
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_say_what_they_are() {
        let cases = [
            (0.0, "0"),
            (-0.0, "0"),
            (12.5, "12.5"),
            (1.0 / 3.0, "0.33333"),
            (123_456.7, "123457"),
            (1e9, "1e9"),
            (-2.5e-7, "-2.5e-7"),
            (f64::NAN, "–"),
            (f64::INFINITY, "–"),
            (1e300, "1e300"),
        ];
        for (x, text) in cases {
            assert_eq!(number(x), text);
        }
        assert_eq!([percent(0.25), percent(1.0), percent(0.0), percent(1e-5)], ["25 %", "100 %", "0 %", "0.001 %"]);
        assert_eq!([bytes(0), bytes(1_500), bytes(2_000_000_000)], ["0 bytes", "1.5 kB", "2.0 GB"]);
    }

    #[test]
    fn errors_say_how_many_digits_there_are() {
        let cases = [
            (0.295_53, 0.074_806, "0.296 ± 0.075"),
            (1200.4, 2.6, "1200.4 ± 2.6"),
            (1234.0, 123.0, "1230 ± 120"),
            (-0.001, 0.5, "0.00 ± 0.50"),
            (5.0, 0.0, "5 ± 0"),
            (1e12, 1.0, "1e12 ± 1"),
        ];
        for (x, error, text) in cases {
            assert_eq!(within(x, error), text);
        }
    }

    #[test]
    fn long_names_are_cut_between_letters() {
        assert_eq!(shortened("Müller", 6), "Müller");
        assert_eq!(shortened("Müllers", 6), "Mülle…");
        assert_eq!(shortened("x", 0), "…");
    }
}
