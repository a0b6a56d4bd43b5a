//! Text packed by gzip: its members one after the other are one text, as `gzip -d` reads them. Zeros behind them are padding; anything else
//! there is told, because rows may have been lost.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// What every member begins with.
pub(super) const MAGIC: &[u8] = b"\x1f\x8b";

/// The text of all members.
pub(super) struct Members<R>(Option<GzDecoder<R>>);

impl<R: BufRead> Members<R> {
    pub(super) fn new(packed: R) -> Members<R> {
        Members(Some(GzDecoder::new(packed)))
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(member) = &mut self.0 else { return Ok(0) };
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let Some(mut packed) = self.0.take().map(GzDecoder::into_inner) else { return Ok(0) };
            let mut padded = false;
            loop {
                let more = packed.fill_buf()?;
                let zeros = more.iter().take_while(|byte| **byte == 0).count();
                if more.is_empty() {
                    return Ok(0);
                }
                if zeros == 0 {
                    // One byte of a member may be all that is in the buffer.
                    if padded || more[0] != MAGIC[0] {
                        return Err(io::Error::new(io::ErrorKind::InvalidData, "other bytes follow what gzip packed"));
                    }
                    break;
                }
                padded = true;
                packed.consume(zeros);
            }
            self.0 = Some(GzDecoder::new(packed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::gzip as packed;

    #[test]
    fn members_are_one_text_and_what_follows_them_is_told() {
        let two = [packed("a,b\n1,2\n"), packed(""), packed("3,4\n")].concat();
        let read = |bytes: &[u8]| {
            let mut text = String::new();
            // A byte at a time, so that a buffer ends anywhere.
            let reader = io::BufReader::with_capacity(1, bytes);
            Members::new(reader).read_to_string(&mut text).map(|_| text).map_err(|e| e.kind())
        };
        let whole = Ok("a,b\n1,2\n3,4\n".to_owned());
        assert_eq!(read(&two), whole);
        assert_eq!(read(&[&two[..], &[0; 700]].concat()), whole);
        for behind in [&b"garbage"[..], b"\0\0garbage", b"\0\x1f\x8b", b"\n"] {
            assert_eq!(read(&[&two[..], behind].concat()), Err(io::ErrorKind::InvalidData), "{behind:?}");
        }
        // Cut anywhere but between members, and with any byte of a checksum changed.
        for cut in 1..two.len() {
            let between = [packed("a,b\n1,2\n").len(), packed("a,b\n1,2\n").len() + packed("").len()];
            assert_eq!(read(&two[..cut]).is_ok(), between.contains(&cut), "{cut}");
        }
        for at in two.len() - 8..two.len() {
            let mut changed = two.clone();
            changed[at] ^= 1;
            assert!(read(&changed).is_err(), "{at}");
        }
    }
}
