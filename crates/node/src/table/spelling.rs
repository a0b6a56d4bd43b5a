//! One word in several spellings. A cell of a file, of a frame and of a view is compared with words of a plan in the same way: without blanks
//! around it, in composed letters (NFC), and, if it is none of the words as it stands, as the same number, yes or no in other digits or
//! letters.

use std::{borrow::Cow, collections::BTreeMap};

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// How R, pandas, SQL and spreadsheets write that nothing is there, beside NaN, in small letters.
pub(super) const NOTHING: [&str; 15] = [
    "na", "n/a", "<na>", "#na", "#n/a", "#n/a n/a", "null", "none", "nat", "?", ".", "1.#ind", "-1.#ind", "1.#qnan",
    "-1.#qnan",
];

/// A name or a text without blanks around it, in composed letters: `é` is one letter, whatever wrote it.
pub fn normal(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    match text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        true => Cow::Borrowed(text),
        false => Cow::Owned(text.nfc().collect()),
    }
}

/// A text in normal form in the digits and letters in which every form has it: `1` for `1.0` and `1.5` for `1.50`, `true` for `True`.
/// `01` is no number that a program writes, and stays what it is.
pub(super) fn common(text: &str) -> Cow<'_, str> {
    if let Some(yes) = yes_or_no(text) {
        return Cow::Borrowed(if yes { "true" } else { "false" });
    }
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let Some((whole, part)) = unsigned.split_once('.') else { return Cow::Borrowed(text) };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || (whole.len() > 1 && whole.starts_with('0')) {
        return Cow::Borrowed(text);
    }
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" => Cow::Borrowed("0"),
        shorter => Cow::Borrowed(shorter),
    }
}

/// Whether it is a yes or a no, in large or small letters.
pub(crate) fn yes_or_no(text: &str) -> Option<bool> {
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if is("true") { Some(true) } else { is("false").then_some(false) }
}

/// Words that are looked for, and what each stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct Spellings<T>(BTreeMap<String, T>);

impl<T> Default for Spellings<T> {
    /// No word.
    fn default() -> Spellings<T> {
        Spellings(BTreeMap::new())
    }
}

impl<T: Copy> Spellings<T> {
    /// A word as it is written comes before the same number, yes or no in another spelling: `1.0` beside `1` stays `1.0`. A yes or no is a
    /// word here, and a digit there.
    pub fn new<'a>(words: impl IntoIterator<Item = (&'a str, T)>) -> Spellings<T> {
        let words: Vec<(Cow<'_, str>, T)> = words.into_iter().map(|(word, of)| (normal(word), of)).collect();
        let mut all = BTreeMap::new();
        let common = words.iter().map(|(word, of)| (common(word), of));
        for (word, of) in words.iter().map(|(word, of)| (Cow::Borrowed(&**word), of)).chain(common) {
            all.entry(word.into_owned()).or_insert(*of);
        }
        for (word, digit) in [("true", "1"), ("false", "0")] {
            if let Some(of) = all.get(digit).copied() {
                all.entry(word.to_owned()).or_insert(of);
            }
        }
        Spellings(all)
    }

    /// Whether there is no word.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a text in normal form stands for, if it is one of the words.
    pub fn of(&self, text: &str) -> Option<T> {
        self.0.get(text).or_else(|| self.0.get(&*common(text))).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_as_it_is_written_comes_before_another_spelling() {
        let words =
            Spellings::new([("1", 'a'), ("1.0", 'b'), ("02", 'c'), ("True", 'd'), ("0", 'e'), ("caf\u{e9}", 'f')]);
        for (text, of) in [
            ("1", Some('a')),
            ("1.0", Some('b')),
            ("1.00", Some('a')),
            ("2", None),
            ("02", Some('c')),
            ("02.0", None),
            ("TRUE", Some('d')),
            ("true", Some('d')),
            ("False", Some('e')),
            ("cafe\u{301} ", Some('f')),
            ("-0.0", Some('e')),
            ("", None),
        ] {
            assert_eq!(words.of(&normal(text)), of, "{text}");
        }
        assert_eq!(Spellings::new([("1", 1), ("0", 0)]).of("TRUE"), Some(1));
        assert_eq!(Spellings::new([("true", 1), ("false", 0)]).of("1"), None);
    }
}
