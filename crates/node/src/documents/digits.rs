//! Hashes, keys, signatures and numbers as hexadecimal digits in a document: `#[serde(with = "digits")]`.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use veilsum_proto::{
    identity::{PublicKey, Signature, from_hex, to_hex},
    suite::Hash,
};

/// What stands in a document as digits.
pub(crate) trait Digits: Sized {
    /// One text, or as many as there are.
    type Text: Serialize + for<'de> Deserialize<'de>;
    /// Its digits.
    fn text(&self) -> Self::Text;
    /// From digits; nothing where they are others, or not so many.
    fn read(text: Self::Text) -> Option<Self>;
}

pub(crate) fn serialize<T: Digits, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    value.text().serialize(to)
}

pub(crate) fn deserialize<'de, T: Digits, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    T::read(T::Text::deserialize(from)?).ok_or_else(|| D::Error::custom("these are not the hexadecimal digits of it"))
}

impl Digits for Vec<u8> {
    type Text = String;
    fn text(&self) -> String {
        to_hex(self)
    }
    fn read(text: String) -> Option<Self> {
        from_hex(&text)
    }
}

impl<const N: usize> Digits for [u8; N] {
    type Text = String;
    fn text(&self) -> String {
        to_hex(self)
    }
    fn read(text: String) -> Option<Self> {
        from_hex(&text)?.try_into().ok()
    }
}

impl Digits for Hash {
    type Text = String;
    fn text(&self) -> String {
        self.0.text()
    }
    fn read(text: String) -> Option<Self> {
        Digits::read(text).map(Hash)
    }
}

impl Digits for PublicKey {
    type Text = String;
    fn text(&self) -> String {
        self.0.text()
    }
    fn read(text: String) -> Option<Self> {
        Digits::read(text).map(PublicKey)
    }
}

impl Digits for Signature {
    type Text = String;
    fn text(&self) -> String {
        self.to_bytes().text()
    }
    fn read(text: String) -> Option<Self> {
        <[u8; 64]>::read(text).map(|bytes| Signature::from_bytes(&bytes))
    }
}

impl Digits for [Hash; 2] {
    type Text = [String; 2];
    fn text(&self) -> [String; 2] {
        self.map(|hash| hash.text())
    }
    fn read([one, two]: [String; 2]) -> Option<Self> {
        Some([Hash::read(one)?, Hash::read(two)?])
    }
}

/// Nothing is left out of a document: `skip_serializing_if = "Option::is_none"`.
impl<T: Digits> Digits for Option<T> {
    type Text = Option<T::Text>;
    fn text(&self) -> Option<T::Text> {
        self.as_ref().map(T::text)
    }
    fn read(text: Option<T::Text>) -> Option<Self> {
        text.map_or(Some(None), |text| T::read(text).map(Some))
    }
}
