//! What a site and an answerer say to each other: one JSON object a line, over standard input and output.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use veilsum_cluster::{Batch, Domain, Error, OutOfBox, Query, Scaling};

/// The version of this contract.
pub const PROTOCOL: u32 = 1;
/// Bytes of a line that is no answer, at most: questions with many centres are the longest.
pub const MAX_LINE: usize = 64 << 20;
/// Bytes of a word in a line, at most: a sign, 19 digits, two quotes, a comma and a blank.
pub const WORD_BYTES: usize = 24;
/// Whole numbers up to this are exact in every reader of JSON; words beyond it are written as strings of digits.
const EXACT: u64 = (1 << 53) - 1;
/// Reasons for bad rows, at most.
pub const MAX_REASONS: usize = 64;
/// Bytes of a text that is shown to people, at most.
pub const MAX_TEXT: usize = 2_000;

/// The category of those that are not listed ([`Hello::noise`]).
pub const OTHER: &str = "other";

/// Every kind of question ([`kind_of`]).
pub const KINDS: [&str; 15] = [
    "fuzzy_sums",
    "fuzzy_validation",
    "local_fuzzy",
    "local_means",
    "local_means_steps",
    "features",
    "moments",
    "histogram",
    "local_choice",
    "margins",
    "validation",
    "shifts",
    "shaped_sums",
    "typical_sums",
    "shaped_shifts",
];

/// What an answerer may answer or not: the family of the question. `local_means` is one step of Lloyd in which every row counts at
/// its nearest centre; with more steps, or groups that are left out, it is `local_means_steps`.
pub fn kind_of(query: &Query) -> &'static str {
    match query {
        Query::LocalMeans(q) if q.local.most > 1 || q.min_rows > 1 || q.nearest => "local_means_steps",
        other => other.kind(),
    }
}

/// A line of the site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromSite {
    /// The first line.
    Hello(Hello),
    /// A question.
    Ask(Ask),
    /// The last line: the answerer ends.
    End,
}

/// A line of the answerer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromAnswerer {
    /// The answer to `hello`.
    Ready(Ready),
    /// The answer to a question.
    Answer(Answer),
    /// Why there is none.
    Error(Refusal),
}

/// Who asks about what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The plan's columns of numbers, in the order of every centre.
    pub columns: Vec<Column>,
    /// The plan's columns of names, whose indicators come behind the numbers.
    pub categorical: Vec<Categorical>,
    /// What working units are.
    pub scaling: Scaling,
    /// What becomes of a value outside its bounds.
    pub out_of_box: OutOfBox,
    /// Whether the plan has noise ([NOI-8]): a row that cannot be used is left out and stops nothing, and a category that is not listed is
    /// [`OTHER`] where that is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub noise: bool,
}

/// A column of numbers with its public bounds, original units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Smallest possible value.
    pub lower: f64,
    /// Largest possible value.
    pub upper: f64,
}

/// A column of names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Categorical {
    /// Its name.
    pub column: String,
    /// What it may hold.
    pub categories: Vec<String>,
    /// The indicator of a row's own category, working units; the others are 0.
    pub one: f64,
}

impl Categorical {
    /// The place of [`OTHER`].
    pub fn other(&self) -> Option<usize> {
        self.categories.iter().position(|category| category == OTHER)
    }
}

impl Hello {
    /// The public box.
    ///
    /// # Errors
    /// [`Error`] where there is none.
    pub fn domain(&self) -> Result<Domain, Error> {
        let (lower, upper) = self.columns.iter().map(|c| (c.lower, c.upper)).unzip();
        let ones: Vec<Vec<f64>> = self.categorical.iter().map(|c| vec![c.one; c.categories.len()]).collect();
        Domain::mixed(lower, upper, self.scaling, &ones)
    }

    /// The names that the rows must have, numbers first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|c| c.name.as_str()).chain(self.categorical.iter().map(|c| c.column.as_str()))
    }
}

impl Ready {
    /// Rows that cannot be used, all reasons together. Saturates.
    pub fn unusable(&self) -> u64 {
        self.bad.values().fold(0, |all, n| all.saturating_add(*n))
    }
}

/// What an answerer is and holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The answerer's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Rows that answers are made of, n.
    pub rows: u64,
    /// Rows that cannot be used, by reason: no answer has them. A site begins with them under noise alone.
    pub bad: BTreeMap<String, u64>,
    /// What the rows are known by.
    pub fingerprint: Fingerprint,
    /// The kinds of questions that it answers ([`KINDS`]).
    pub kinds: Vec<String>,
}

/// What rows are known by: the same as long as the rows are the same, in whatever order of rows, columns and categories; another one
/// when any of them changes; zeros count as other values do. 16 to 128 hexadecimal digits each. It stays at the site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    /// Of the rows, all columns together.
    pub rows: String,
    /// Of every column of `hello` by itself.
    pub columns: Vec<String>,
}

impl Fingerprint {
    /// Whether it has the form that the contract wants, for so many columns.
    pub(crate) fn is_well_formed(&self, columns: usize) -> bool {
        let hex = |text: &String| (16..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
        self.columns.len() == columns && hex(&self.rows) && self.columns.iter().all(hex)
    }
}

/// One question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// Which one; the answer has the same.
    pub id: u64,
    /// One query or several, all about the same units.
    pub question: Batch,
    /// What the words of the answer are, in order.
    pub blocks: Vec<AskedBlock>,
}

/// A stretch of words that share a meaning, a step and a limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedBlock {
    /// What they are.
    pub name: String,
    /// How many.
    pub len: usize,
    /// A word counts steps of 2^-`fraction_bits`.
    pub fraction_bits: i32,
    /// No word of these rows is larger in absolute value.
    pub limit: u64,
}

/// The answer to one question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// That of the question.
    pub id: u64,
    /// Rows that it is made of, as in [`Ready`].
    pub rows: u64,
    /// Rows that could not be used, as in [`Ready`]: all reasons together.
    pub bad: u64,
    /// [`Fingerprint::rows`].
    pub fingerprint: String,
    /// The words, block by block.
    pub words: Vec<Word>,
}

/// A word: in JSON a number where every reader has it exactly, else a string of decimal digits. Both are read for any value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(pub i64);

impl Serialize for Word {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.unsigned_abs() <= EXACT { serializer.serialize_i64(self.0) } else { serializer.collect_str(&self.0) }
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form<'a> {
            Number(i64),
            Digits(#[serde(borrow)] std::borrow::Cow<'a, str>),
        }
        match Form::deserialize(deserializer)? {
            Form::Number(word) => Ok(Word(word)),
            Form::Digits(digits) => digits.parse().map(Word).map_err(de::Error::custom),
        }
    }
}

/// Why an answerer does not answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// The question's, where it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// What kind of reason.
    pub code: RefusalCode,
    /// What happened, without a value of a row and without a password.
    pub message: String,
    /// What to do next.
    pub next: String,
}

/// Kinds of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// A line that the contract does not have, or not there.
    Protocol,
    /// Another version of the contract.
    Version,
    /// A column is missing, or is not of the type that the plan wants.
    Columns,
    /// Rows cannot be read or used.
    Rows,
    /// The source of the rows cannot be reached, or does not let the answerer in.
    Connection,
    /// The rows are others than those of `hello`.
    Changed,
    /// A question of a kind that the answerer does not answer.
    Kind,
    /// The question is too large, or took longer than the answerer's own limit.
    Limit,
    /// The answerer was told to stop.
    Cancelled,
    /// A defect of the answerer.
    Internal,
}

impl Refusal {
    /// A refusal that belongs to no question yet.
    pub fn new(code: RefusalCode, message: impl std::fmt::Display, next: impl Into<String>) -> Self {
        Self { id: None, code, message: message.to_string(), next: next.into() }
    }
}

/// The blocks of a question for `rows` rows, with words of these lengths and fraction bits.
///
/// # Errors
/// [`Error`] where the question does not fit the box; also where `steps` are not those of its layout.
pub fn blocks_of(batch: &Batch, domain: &Domain, steps: &[(usize, i32)], rows: u64) -> Result<Vec<AskedBlock>, Error> {
    let layout = batch.layout(domain)?;
    if layout.len() != steps.len() || layout.iter().zip(steps).any(|(block, (len, _))| block.len != *len) {
        return Err(Error::Question { what: "the steps are not those of the question's blocks" });
    }
    let one = |(block, (len, fraction_bits)): (&veilsum_cluster::Block, &(usize, i32))| {
        let contributors = if block.per == veilsum_cluster::Per::Site { 1 } else { rows };
        // Bounds hold up to the rounding of doubles, and every contribution is rounded to a step: one more each. Saturates.
        let most = (block.bound * (1.0 + 1e-9) * f64::from(*fraction_bits).exp2()).ceil() as u64;
        AskedBlock {
            name: block.name.to_owned(),
            len: *len,
            fraction_bits: *fraction_bits,
            limit: contributors.saturating_mul(most.saturating_add(1)).min(i64::MAX as u64),
        }
    };
    Ok(layout.iter().zip(steps).map(one).collect())
}

/// A text of somebody else on one line, without control characters, cut.
pub fn tame(text: &str) -> String {
    let mut out: String = text.chars().take(MAX_TEXT).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().count() > MAX_TEXT {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use veilsum_cluster::Centres;

    #[test]
    fn words_beyond_two_to_the_53_are_strings_and_all_forms_are_read() {
        let words = [0, -1, (1 << 53) - 1, 1 << 53, -(1 << 53), i64::MAX, i64::MIN];
        let text = serde_json::to_string(&words.map(Word)).unwrap();
        assert_eq!(
            text,
            "[0,-1,9007199254740991,\"9007199254740992\",\"-9007199254740992\",\"9223372036854775807\",\
             \"-9223372036854775808\"]"
        );
        assert_eq!(serde_json::from_str::<Vec<Word>>(&text).unwrap(), words.map(Word));
        assert_eq!(serde_json::from_str::<Vec<Word>>("[9223372036854775807]").unwrap(), [Word(i64::MAX)]);
        for bad in ["[1.0]", "[1e3]", "[9223372036854775808]", "[\"1.5\"]", "[null]", "[\"\"]", "[true]"] {
            assert!(serde_json::from_str::<Vec<Word>>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn lines_say_what_they_are_and_no_more() {
        let question = Batch::from(Query::fuzzy_sums(Centres::new(1, 1, vec![0.1]).unwrap(), 2.0));
        let ask = FromSite::Ask(Ask { id: 3, question, blocks: vec![] });
        let text = serde_json::to_string(&ask).unwrap();
        assert!(
            text.starts_with(r#"{"type":"ask","id":3,"question":{"transform":null,"queries":[{"fuzzy_sums":"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<FromSite>(&text).unwrap(), ask);
        assert_eq!(serde_json::from_str::<FromSite>(r#"{"type":"end"}"#).unwrap(), FromSite::End);
        assert!(serde_json::from_str::<FromSite>(&text.replacen("\"id\"", "\"more\":1,\"id\"", 1)).is_err());
        assert!(serde_json::from_str::<FromSite>(r#"{"type":"hallo"}"#).is_err());
    }

    #[test]
    fn limits_are_those_of_the_rows_at_hand() {
        let domain = Domain::new(vec![0.0], vec![4.0], Scaling::None).unwrap();
        let batch = Batch::from(Query::fuzzy_sums(Centres::new(1, 1, vec![1.0]).unwrap(), 2.0));
        let blocks = blocks_of(&batch, &domain, &[(1, 8), (1, 10)], 7).unwrap();
        assert_eq!(blocks.iter().map(|b| b.limit).collect::<Vec<_>>(), [7 * (1024 + 2), 7 * (1024 + 2)]);
        assert!(blocks_of(&batch, &domain, &[(1, 8)], 7).is_err());
        assert!(blocks_of(&batch, &domain, &[(2, 8), (1, 10)], 7).is_err());
    }
}
