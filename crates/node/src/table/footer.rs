//! The tree of columns in the description at the end of a Parquet file, looked at before the library reads it: the library makes room for
//! as many children as a column is said to have, and goes as deep as they are nested.
//!
//! The description is a struct of Thrift's compact protocol: a version, then the list of columns, each before its children
//! (`parquet.thrift`, FileMetaData and SchemaElement). A field is read by its number there and by its type here, so every field has to have
//! the type of its number: then both read the same.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
};

use super::{
    columnar::{MAX_DEPTH, MAX_DESCRIPTION, MAX_ELEMENTS, MAX_FOOTER},
    error::{Fault, TableError},
};

/// Bytes behind the description: its length, and the magic.
const TAIL: u64 = 8;

// Types of the compact protocol.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I32: u8 = 5;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// Looks at the end of a Parquet file.
///
/// # Errors
/// [`Fault::Damaged`] where it describes more than can be, or in another form than every writer.
pub(super) fn check(mut file: &File, name: &str) -> Result<(), TableError> {
    let damaged = |what| Fault::Damaged(what).of(name);
    let mut part = |back: u64, bytes: u64| -> io::Result<Vec<u8>> {
        let mut part = Vec::new();
        file.seek(SeekFrom::End(-i64::try_from(back).unwrap_or(i64::MAX)))?;
        file.take(bytes).read_to_end(&mut part)?;
        Ok(part)
    };
    let short = |_| damaged("its end does not say where its description is");
    let tail = part(TAIL, TAIL).map_err(short)?;
    let length = tail.first_chunk::<4>().map_or(0, |length| u32::from_le_bytes(*length).into());
    if length > MAX_FOOTER {
        return Err(damaged("it is described by more than 256 MiB"));
    }
    let bytes = part(TAIL + length, length.min(MAX_DESCRIPTION as u64)).map_err(short)?;
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

    /// Type and number of the next field of a struct after that with the number `last`; type 0 at its end.
    fn field(&mut self, last: u8) -> Option<(u8, u8)> {
        let byte = self.byte()?;
        let (step, kind) = (byte >> 4, byte & 15);
        // Fields are written in the order of their numbers, and these are all below 15 apart.
        (byte == 0 || (step > 0 && kind > 0)).then_some((kind, last.checked_add(step)?))
    }

    /// Steps over the value of a field.
    fn skip(&mut self, kind: u8) -> Option<()> {
        match kind {
            TRUE | FALSE => {}
            BYTE => drop(self.byte()?),
            I32 => drop(self.number()?),
            BINARY => {
                let length = usize::try_from(self.number()?).ok()?;
                self.0 = self.0.get(length..)?;
            }
            _ => return None,
        }
        Some(())
    }

    fn tree(mut self) -> Option<()> {
        (self.field(0)? == (I32, 1)).then_some(())?;
        self.skip(I32)?;
        (self.field(1)? == (LIST, 2)).then_some(())?;
        let list = self.byte()?;
        let elements = if list >> 4 == 15 { self.number()? } else { (list >> 4).into() };
        (list & 15 == STRUCT && elements <= MAX_ELEMENTS).then_some(())?;
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
        let (mut at, mut children) = (0, 0);
        loop {
            let kind;
            (kind, at) = self.field(at)?;
            match (kind, at) {
                (0, _) => return Some(children),
                // Numbers are written with their sign in the lowest bit.
                (I32, 5) => children = Some(self.number()?).filter(|number| number & 1 == 0)? / 2,
                (I32, 1..=3 | 6..=9) | (BINARY, 4) => self.skip(kind)?,
                (STRUCT, 10) => self.meaning()?,
                _ => return None,
            }
        }
    }

    /// What a column's values mean: a union of structs, most of them empty.
    fn meaning(&mut self) -> Option<()> {
        let (STRUCT, which) = self.field(0)? else { return None };
        let kinds: &[u8] = match which {
            5 => &[I32, I32],
            7 | 8 => &[TRUE, STRUCT],
            10 => &[BYTE, TRUE],
            16 => &[BYTE],
            17 => &[BINARY],
            18 => &[BINARY, I32],
            _ => &[],
        };
        let mut at = 0;
        loop {
            let kind;
            (kind, at) = self.field(at)?;
            if kind == 0 {
                break;
            }
            match (kind, kinds.get(usize::from(at).checked_sub(1)?)?) {
                (FALSE, &TRUE) => {}
                // The unit of a time: a union of empty structs.
                (STRUCT, &STRUCT) => {
                    let unit = (self.field(0)?.0, self.byte()?, self.byte()?);
                    (unit == (STRUCT, 0, 0)).then_some(())?;
                }
                (kind, known) if kind == *known => self.skip(kind)?,
                _ => return None,
            }
        }
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
        // The type of the version, the version left out, a list of numbers, a name that is a number, a negative count of children, and a
        // field whose number is written out.
        for (at, byte) in [(0, 0x18), (0, 0x25), (3, 0xf5), (5, 0x45), (9, 3), (8, 0x05)] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            assert!(Bytes(&bytes).tree().is_none(), "{at}");
        }
        for end in 0..whole.len() {
            assert!(Bytes(&whole[..end]).tree().is_none(), "{end}");
        }
    }
}
