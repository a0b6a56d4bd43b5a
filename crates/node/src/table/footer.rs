//! The tree of columns in the description at the end of a Parquet file, looked at before the library reads it: the library (parquet 60.1,
//! `schema_from_array_helper`) makes room for as many children as a column is said to have, up to 2^31, and goes as deep as they are nested.
//!
//! The description is a struct of Thrift's compact protocol: a version, then the list of columns, each before its children
//! (`parquet.thrift`, FileMetaData and SchemaElement). The library reads a field by its number alone, so every field that it knows has to
//! have the type of its number here: then both read the same. What it does not know, both step over.

use std::fs::File;

use super::{
    Fault, Result,
    columnar::{MAX_DEPTH, MAX_DESCRIPTION, MAX_ELEMENTS, MAX_FOOTER, from_end},
};

/// Bytes behind the description: its length, and the magic.
const TAIL: u64 = 8;

/// How deep parts of a field may be nested that nobody knows.
const MAX_PARTS: usize = 16;

// Types of the compact protocol.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// Looks at the end of a Parquet file.
///
/// # Errors
/// [`Fault::damaged`] where it describes more than can be, or in another form than every writer.
pub(super) fn check(file: &File, name: &str) -> Result<()> {
    let damaged = |what| Fault::damaged(what).of(name);
    let tail = from_end(file, TAIL, TAIL, name)?;
    let length = tail.first_chunk::<4>().map_or(0, |length| u32::from_le_bytes(*length).into());
    if length > MAX_FOOTER {
        return Err(damaged("it is described by more than 256 MiB"));
    }
    let bytes = from_end(file, TAIL + length, length.min(MAX_DESCRIPTION as u64), name)?;
    Bytes(&bytes).tree().ok_or_else(|| damaged("its description has no list of columns, or one that cannot be"))
}

/// What is left to read; every reader gives nothing where it does not fit.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// A number of up to 35 bits, seven a byte.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self, length: usize) -> Option<()> {
        self.0 = self.0.get(length..)?;
        Some(())
    }

    /// Type and number of the next field of a struct after that with the number `last`; type 0 at its end.
    fn field(&mut self, last: u16) -> Option<(u8, u16)> {
        let byte = self.byte()?;
        let (step, kind) = (byte >> 4, byte & 15);
        match (kind, step) {
            (0, _) => Some((0, 0)),
            // Written out, with its sign in the lowest bit.
            (_, 0) => Some((kind, u16::try_from(self.number().filter(|number| number & 1 == 0)? / 2).ok()?)),
            _ => Some((kind, last.checked_add(step.into())?)),
        }
    }

    /// Reads a struct to its end: `each` reads the value of a field, of which it is handed the type and the number.
    fn fields(&mut self, mut each: impl FnMut(&mut Self, u8, u16) -> Option<()>) -> Option<()> {
        let mut at = 0;
        loop {
            let kind;
            (kind, at) = self.field(at)?;
            if kind == 0 {
                return Some(());
            }
            each(self, kind, at)?;
        }
    }

    /// How many elements of which type a list has.
    fn list(&mut self) -> Option<(u8, u64)> {
        let head = self.byte()?;
        Some((head & 15, if head >> 4 == 15 { self.number()? } else { (head >> 4).into() }))
    }

    /// Steps over the value of a field, as deep as `depth`.
    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            TRUE | FALSE => Some(()),
            BYTE => self.bytes(1),
            I16 | I32 | I64 => {
                while self.byte()? & 0x80 != 0 {}
                Some(())
            }
            DOUBLE => self.bytes(8),
            UUID => self.bytes(16),
            BINARY => {
                let length = self.number()?;
                self.bytes(usize::try_from(length).ok()?)
            }
            LIST | SET => match self.list()? {
                (_, 0) => Some(()),
                // Those of yes and no have bytes here and none there.
                (TRUE | FALSE, _) => None,
                (of, elements) => (0..elements).try_for_each(|_| self.skip(of, depth)),
            },
            STRUCT => self.fields(|bytes, kind, _| bytes.skip(kind, depth)),
            _ => None,
        }
    }

    fn tree(mut self) -> Option<()> {
        (self.field(0)? == (I32, 1)).then_some(())?;
        self.skip(I32, 1)?;
        (self.field(1)? == (LIST, 2)).then_some(())?;
        let (of, elements) = self.list()?;
        (of == STRUCT && elements <= MAX_ELEMENTS).then_some(())?;
        // How many children are still to come of the columns around the next one; outside there is the root alone.
        let mut open = vec![1];
        for _ in 0..elements {
            while open.last() == Some(&0) {
                open.pop();
            }
            *open.last_mut()? -= 1;
            let children = self.element()?;
            (children <= elements && open.len() <= MAX_DEPTH).then_some(())?;
            if children > 0 {
                open.push(children);
            }
        }
        open.iter().all(|left| *left == 0).then_some(())
    }

    /// One column: how many children it has.
    fn element(&mut self) -> Option<u64> {
        let mut children = 0;
        self.fields(|bytes, kind, at| match (kind, at) {
            // Numbers are written with their sign in the lowest bit.
            (I32, 5) => {
                children = bytes.number().filter(|number| number & 1 == 0)? / 2;
                Some(())
            }
            (I32, 1..=3 | 6..=9) | (BINARY, 4) => bytes.skip(kind, 1),
            (STRUCT, 10) => bytes.meaning(),
            (_, 1..=10) => None,
            _ => bytes.skip(kind, MAX_PARTS),
        })?;
        Some(children)
    }

    /// What a column's values mean: a union of structs, most of them empty.
    fn meaning(&mut self) -> Option<()> {
        let (kind, which) = self.field(0)?;
        let kinds: &[u8] = match (kind, which) {
            (STRUCT, 5) => &[I32, I32],
            (STRUCT, 7 | 8) => &[TRUE, STRUCT],
            (STRUCT, 10) => &[BYTE, TRUE],
            (STRUCT, 16) => &[BYTE],
            (STRUCT, 17) => &[BINARY],
            (STRUCT, 18) => &[BINARY, I32],
            // Empty.
            (STRUCT, 1..=19) => return (self.byte()? == 0 && self.byte()? == 0).then_some(()),
            (0, _) | (_, 1..=19) => return None,
            _ => &[],
        };
        if which > 19 {
            self.skip(kind, MAX_PARTS)?;
            return (self.byte()? == 0).then_some(());
        }
        self.fields(|bytes, kind, at| match (kind, usize::from(at).checked_sub(1).and_then(|at| kinds.get(at))) {
            (FALSE, Some(&TRUE)) => Some(()),
            // The unit of a time: a union of empty structs.
            (STRUCT, Some(&STRUCT)) => {
                let unit = (bytes.field(0)?.0, bytes.byte()?, bytes.byte()?);
                (unit == (STRUCT, 0, 0)).then_some(())
            }
            (kind, Some(known)) if kind == *known => bytes.skip(kind, 1),
            (_, Some(_)) => None,
            (kind, None) => bytes.skip(kind, MAX_PARTS),
        })?;
        (self.byte()? == 0).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A description of columns with so many children each, which have names and nothing else.
    fn described(children: &[u32]) -> Vec<u8> {
        let number = |mut number: u64| {
            let mut bytes = Vec::new();
            while number >= 0x80 {
                bytes.push(number as u8 | 0x80);
                number >>= 7;
            }
            bytes.push(number as u8);
            bytes
        };
        let mut bytes = [vec![0x15, 2, 0x19, 0xfc], number(children.len() as u64)].concat();
        for of in children {
            bytes.extend([0x48, 1, b'x', 0x15]);
            bytes.extend(number(2 * u64::from(*of)));
            bytes.push(0);
        }
        bytes
    }

    #[test]
    fn a_tree_that_is_no_tree_or_too_deep_is_not_shown_to_the_library() {
        let reads = |children: &[u32]| Bytes(&described(children)).tree().is_some();
        let nested = |depth: usize| [vec![1; depth], vec![0]].concat();
        assert!(reads(&[2, 0, 0]) && reads(&[2, 2, 0, 0, 1, 0]) && reads(&nested(MAX_DEPTH - 1)));
        for children in [
            &[1 << 30][..],
            &[2, 0],
            &[1, 0, 0],
            &[],
            &[1, u32::MAX / 2],
            &nested(MAX_DEPTH),
            &nested(60_000),
            &vec![0; MAX_ELEMENTS as usize + 1],
        ] {
            assert!(!reads(children), "{:?}", &children[..children.len().min(8)]);
        }
    }

    #[test]
    fn a_field_of_another_type_or_out_of_turn_is_not_shown_to_the_library() {
        let whole = described(&[1, 0]);
        assert!(Bytes(&whole).tree().is_some());
        // The type of the version, the version left out, a list of numbers, a name that is a number, a negative count of children, and one
        // that is text.
        for (at, byte) in [(0, 0x18), (0, 0x25), (3, 0xf5), (5, 0x45), (9, 3), (8, 0x18)] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            assert!(Bytes(&bytes).tree().is_none(), "{at}");
        }
        for end in 0..whole.len() {
            assert!(Bytes(&whole[..end]).tree().is_none(), "{end}");
        }
    }
    /// What newer writers say of a column is stepped over, and the tree behind it is read: DuckDB writes the numbers of fields out.
    #[test]
    fn what_nobody_knows_of_a_column_is_stepped_over() {
        let with = |meaning: &[u8]| {
            let mut bytes = vec![0x15, 2, 0x19, 0x2c, 0x48, 1, b'x', 0x15, 2, 0, 0x15, 2, 0x38, 1, b'y'];
            bytes.extend([meaning, &[0]].concat());
            Bytes(&bytes).tree().is_some()
        };
        assert!(with(&[]));
        // Variant, by a number that is written out; a type 40 with a list of texts; a type 21 that is a number; decimal with a third part.
        assert!(with(&[0x6c, 0x0c, 0x20, 0x13, 1, 0, 0]));
        assert!(with(&[0x6c, 0x0c, 0x50, 0x19, 0x28, 1, b'a', 1, b'b', 0, 0]));
        assert!(with(&[0x6c, 0x05, 0x2a, 0x84, 1, 0]));
        assert!(with(&[0x6c, 0x5c, 0x15, 2, 0x15, 4, 0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
        // A field 11 of a column, that is a number of 64 bits.
        assert!(with(&[0x76, 0xff, 0xff, 3]));
        // An empty meaning with parts, decimal places that are a text, one that is no struct, and a count of children as a text behind.
        assert!(!with(&[0x6c, 0x1c, 0x15, 2, 0, 0]));
        assert!(!with(&[0x6c, 0x5c, 0x18, 1, 1, 0, 0]));
        assert!(!with(&[0x6c, 0x55, 2, 0]));
        assert!(!with(&[0x08, 0x0a, 1, 1]));
    }
}
