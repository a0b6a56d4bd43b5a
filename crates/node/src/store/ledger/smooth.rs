//! The smooth questions that a site answered, kept beside its ledger, so that after a restart it can measure again what they
//! tell together ([POL-9]).
//!
//! One line a question: its record and the site's signature, in hexadecimal digits. An entry of the ledger names its
//! question by digest and its plan; a record counts for no other question. Where a record is missing or damaged, the
//! numbers of that answer count one by one, which is at least as strict. Nothing here is therefore flushed before a
//! frame leaves, and a lost line is no error.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    path::Path,
};

use veilsum_proto::{
    codec,
    identity::{Identity, PublicKey, Signature, from_hex, to_hex},
    limits::MAX_QUERY,
};

use crate::{release::Kept, store::log};

/// Name of the file in the state folder.
pub const QUESTIONS: &str = "questions.hex";
/// Bytes of a record: a question, and the box and steps of up to 4,096 columns and blocks.
const MAX_RECORD: usize = MAX_QUERY + (4 << 20);
/// Bytes of a line: record and signature in digits.
const MAX_LINE: u64 = 2 * (MAX_RECORD as u64 + 64) + 2;
const SIGNED: &str = "smooth question";

/// Reads the records that `key` signed and skips everything else. The list is empty where there is no file.
///
/// # Errors
/// Those of the file.
pub(super) fn read(path: &Path, key: &PublicKey) -> io::Result<Vec<Kept>> {
    let file = match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file?,
    };
    let (mut reader, mut line, mut kept) = (BufReader::new(file), Vec::new(), Vec::new());
    loop {
        line.clear();
        if (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(kept);
        }
        kept.extend(std::str::from_utf8(&line).ok().and_then(|text| parse(text, key)));
    }
}

fn parse(line: &str, key: &PublicKey) -> Option<Kept> {
    let (record, signature) = line.strip_suffix('\n')?.split_once(' ')?;
    let record = from_hex(record)?;
    let signature = Signature::from_bytes(&from_hex(signature)?.try_into().ok()?);
    key.verify(SIGNED, &[&record], &signature).then(|| codec::decode("smooth question", &record, MAX_RECORD).ok())?
}

/// Writes a record behind those that are there.
///
/// # Errors
/// Those of the file.
pub(super) fn append(path: &Path, record: &Kept, identity: &Identity) -> io::Result<()> {
    let bytes = codec::encode(record);
    let line = format!("{} {}\n", to_hex(&bytes), to_hex(&identity.sign(SIGNED, &[&bytes]).to_bytes()));
    let mut file = log::private().append(true).open(path)?;
    // A line that was torn stays alone.
    if file.seek(SeekFrom::End(0))? > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    file.write_all(line.as_bytes())
}
