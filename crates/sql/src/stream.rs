//! Rows out of the database by binary COPY, every value a double.

use veilsum_answerer::{Hello, Refusal, RefusalCode};

use crate::{session::Session, source::Source};

/// The first bytes of every binary COPY; flags and the length of an extension follow, 4 bytes each.
const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

/// Rows that are handed on at a time.
pub(crate) const BATCH: usize = 1 << 16;

/// Bytes as they come, in rows.
struct Parser<'a> {
    /// What has come and was not yet taken.
    rest: Vec<u8>,
    begun: bool,
    over: bool,
    numbers: usize,
    /// Categories of each column of names.
    categories: Vec<usize>,
    values: Vec<f64>,
    rows: usize,
    take: &'a mut dyn FnMut(Vec<f64>) -> Result<(), Refusal>,
}

impl Parser<'_> {
    fn push(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let malformed =
            || Refusal::new(RefusalCode::Internal, "the server's COPY cannot be read", "report this defect");
        self.rest.extend_from_slice(bytes);
        let mut at = 0;
        if !self.begun {
            if self.rest.len() < 19 {
                return Ok(());
            }
            let extension = int(&self.rest[15..19]);
            if &self.rest[..11] != SIGNATURE || extension != 0 {
                return Err(malformed());
            }
            self.begun = true;
            at = 19;
        }
        let fields = self.numbers + self.categories.len();
        let width = 2 + 12 * fields;
        while !self.over && self.rest.len() >= at + 2 {
            if self.rest[at..at + 2] == [0xff, 0xff] {
                self.over = true;
                break;
            }
            let Some(row) = self.rest.get(at..at + width) else { break };
            if usize::from(u16::from_be_bytes([row[0], row[1]])) != fields {
                return Err(malformed());
            }
            for (column, field) in row[2..].chunks_exact(12).enumerate() {
                if int(&field[..4]) != 8 {
                    // Missing values were looked for before, under the same snapshot.
                    return Err(malformed());
                }
                let mut bits = [0; 8];
                bits.copy_from_slice(&field[4..]);
                let value = f64::from_be_bytes(bits);
                match column.checked_sub(self.numbers) {
                    None => self.values.push(value),
                    Some(of) => {
                        self.values
                            .extend((0..self.categories[of]).map(|place| f64::from(u8::from(place as f64 == value))));
                    }
                }
            }
            at += width;
            self.rows += 1;
            if self.rows.is_multiple_of(BATCH) {
                (self.take)(std::mem::take(&mut self.values))?;
            }
        }
        self.rest.drain(..at);
        Ok(())
    }
}

fn int(bytes: &[u8]) -> i32 {
    let mut four = [0; 4];
    four.copy_from_slice(bytes);
    i32::from_be_bytes(four)
}

/// Hands on all rows, original units with indicators 0 and 1, [`BATCH`] at a time; the number of rows.
///
/// # Errors
/// [`Refusal`], also that of `take`.
pub(crate) fn read(
    source: &Source,
    hello: &Hello,
    session: &mut Session,
    take: &mut dyn FnMut(Vec<f64>) -> Result<(), Refusal>,
) -> Result<u64, Refusal> {
    let categories = hello.categorical.iter().map(|column| column.categories.len()).collect();
    let numbers = hello.columns.len();
    let mut parser =
        Parser { rest: Vec::new(), begun: false, over: false, numbers, categories, values: Vec::new(), rows: 0, take };
    session.copy(&source.copy(), |bytes| parser.push(bytes))?;
    if !parser.over {
        return Err(session.gone("the stream of rows broke off"));
    }
    let rest = std::mem::take(&mut parser.values);
    if !rest.is_empty() {
        (parser.take)(rest)?;
    }
    Ok(parser.rows as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of two rows of a number and a category, cut anywhere.
    #[test]
    fn a_stream_is_read_wherever_it_is_cut() {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([0; 8]);
        for (x, category) in [(1.5f64, 1.0f64), (-2.0, 0.0)] {
            bytes.extend(2u16.to_be_bytes());
            for value in [x, category] {
                bytes.extend(8i32.to_be_bytes());
                bytes.extend(value.to_be_bytes());
            }
        }
        bytes.extend([0xff, 0xff]);
        for cut in 0..bytes.len() {
            let mut found = Vec::new();
            let mut take = |values: Vec<f64>| {
                found.extend(values);
                Ok(())
            };
            let mut parser = Parser {
                rest: vec![],
                begun: false,
                over: false,
                numbers: 1,
                categories: vec![2],
                values: vec![],
                rows: 0,
                take: &mut take,
            };
            assert!(parser.push(&bytes[..cut]).is_ok() && parser.push(&bytes[cut..]).is_ok());
            assert!(parser.over && parser.rows == 2);
            assert_eq!(parser.values, [1.5, 0.0, 1.0, -2.0, 1.0, 0.0]);
        }
    }
}
