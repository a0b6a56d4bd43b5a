//! The words by which people compare rosters, and agree to a plan: the English list of BIP-39, whose words differ in their first four
//! letters, with its checksum ([ROS-8]).

use bip39::{Error, Language, Mnemonic};
use veilsum_proto::suite::Hash;

/// Bytes of a hash that its words stand for. Two rosters that share them cost 2^80 hashes, whoever makes both.
const BYTES: usize = 20;
/// So many words: 11 bits each, 5 of all for the checksum.
pub const WORDS: usize = 15;

/// The words of a roster's or a plan's hash, with spaces between them.
pub fn roster_fingerprint(hash: &Hash) -> String {
    // 160 bits have words.
    Mnemonic::from_entropy(&hash.0[..BYTES]).map(|words| words.to_string()).unwrap_or_default()
}

/// What somebody says of a roster or a plan: all words of its hash.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fingerprint([u8; BYTES]);

impl Fingerprint {
    /// From words, with spaces, dashes or line breaks between them.
    ///
    /// # Errors
    /// A sentence that says what is wrong with them.
    pub fn parse(text: &str) -> Result<Fingerprint, String> {
        let plain = text.to_lowercase().replace(['-', ','], " ");
        let words: Vec<&str> = plain.split_whitespace().collect();
        if words.len() != WORDS {
            return Err(format!("a fingerprint has {WORDS} words, and these are {}", words.len()));
        }
        let read = Mnemonic::parse_in_normalized(Language::English, &words.join(" ")).map_err(|e| match e {
            Error::UnknownWord(at) => format!("word {} is none of the list", at + 1),
            _ => "these words do not belong together: one of them is another than was read".to_owned(),
        })?;
        <[u8; BYTES]>::try_from(read.to_entropy()).map(Fingerprint).map_err(|_| "these are other words".into())
    }

    /// Whether these are the words of this hash.
    pub fn is_of(&self, hash: &Hash) -> bool {
        hash.0.starts_with(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use veilsum_proto::suite;

    use super::*;

    /// [ROS-8]: all words, and each of them.
    #[test]
    fn ros_8_words_are_of_one_hash_and_a_slip_is_noticed() {
        let hash = suite::hash("test", &[]);
        let words = roster_fingerprint(&hash);
        let list: Vec<&str> = words.split(' ').collect();
        assert_eq!(list.len(), WORDS);
        for good in [words.clone(), words.to_uppercase(), list.join("-"), list.join("\n   ")] {
            assert!(Fingerprint::parse(&good).unwrap().is_of(&hash), "{good}");
        }
        let other = Fingerprint::parse(&roster_fingerprint(&suite::hash("another", &[]))).unwrap();
        assert!(!other.is_of(&hash));
        for (bad, why) in [
            ("yes".to_owned(), "15 words"),
            (list[1..].join(" "), "these are 14"),
            (hash.to_string(), "15 words"),
            (words.replacen(list[2], "hospital", 1), if list[2] == "hospital" { "" } else { "belong" }),
            (words.replacen(list[2], "krankenhaus", 1), "word 3"),
        ] {
            // Of 32 words in the place of another, one fits the checksum.
            let said = Fingerprint::parse(&bad);
            assert!(
                said.clone().is_err_and(|said| said.contains(why)) || said.is_ok_and(|said| !said.is_of(&hash)),
                "{bad}"
            );
        }
    }
}
