//! Rows from an Arrow file or stream. Both are the same messages, one after the other; what an Arrow file has behind them is not needed.
//!
//! Messages are cut out here and checked for sizes before the library decodes them: it makes room for what a message says of itself.

use std::{
    collections::HashMap,
    io::{self, Cursor, Read},
};

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::{
    convert::try_fb_to_schema,
    reader::{read_dictionary, read_record_batch},
    root_as_message,
};
use arrow_schema::{ArrowError, SchemaRef};

use super::{
    columnar::{MAX_BUFFER, MAX_DESCRIPTION},
    columns::{Columns, check_types, guarded, names_of},
    error::{Fault, TableError},
    source::{RowReader, Table},
    wanted::{Wanted, check_names},
};

/// What every message begins with.
const CONTINUES: [u8; 4] = [0xff; 4];
/// Bytes to which the first message of a file is aligned at most.
const MAX_ALIGNMENT: usize = 64;
/// Rows that are taken at a time.
const AT_ONCE: usize = 8192;
/// How much larger than its packed form a column may be said to be, at least.
const PACKED: i64 = 1 << 20;
/// How many times larger beyond that: what the codecs reach on one repeated value.
const RATIO: i64 = 1 << 15;

/// An open Arrow stream or file.
pub(super) struct ArrowReader {
    name: String,
    columns: Vec<String>,
    schema: SchemaRef,
    input: Box<dyn Read>,
    /// The words of dictionaries, by their numbers.
    dictionaries: HashMap<i64, ArrayRef>,
    checked: bool,
    /// A message whose first rows were taken.
    begun: Option<RecordBatch>,
    rows: u64,
}

/// The description of a message, and its body.
struct Message {
    head: Vec<u8>,
    body: Vec<u8>,
}

impl ArrowReader {
    /// Reads the schema. In a file it follows the file's magic and zeros up to some alignment, which are taken off here.
    pub(super) fn new(mut input: Box<dyn Read>, is_file: bool, name: &str) -> Result<Self, TableError> {
        if is_file {
            let mut head = Vec::new();
            for _ in 0..=MAX_ALIGNMENT / 8 {
                head.clear();
                input.by_ref().take(8).read_to_end(&mut head).map_err(|e| Fault::Read(e).of(name))?;
                if head.starts_with(&CONTINUES) {
                    break;
                }
            }
            input = Box::new(Cursor::new(head).chain(input));
        }
        let first = message(&mut input, name)?.ok_or_else(|| Fault::Damaged("it has no schema").of(name))?;
        let schema = guarded(name, "its schema cannot be read", || {
            let wrong = || ArrowError::ParseError(String::new());
            let message = root_as_message(&first.head[8..]).map_err(|_| wrong())?;
            try_fb_to_schema(message.header_as_schema().ok_or_else(wrong)?)
        })?;
        let columns = names_of(&schema);
        check_names(name, &columns)?;
        Ok(ArrowReader {
            name: name.to_owned(),
            columns,
            schema: schema.into(),
            input,
            dictionaries: HashMap::new(),
            checked: false,
            begun: None,
            rows: 0,
        })
    }

    /// The columns at these places of a message with rows; nothing where it has a dictionary, which is kept.
    fn decode(&mut self, Message { head, body }: Message, places: &[usize]) -> Result<Option<RecordBatch>, TableError> {
        let (schema, dictionaries) = (&self.schema, &mut self.dictionaries);
        guarded(&self.name, "a message does not hold what its description says", || {
            let wrong = |_| ArrowError::ParseError(String::new());
            let message = root_as_message(&head[8..]).map_err(|_| wrong(()))?;
            let (version, body) = (message.version(), Buffer::from_vec(body));
            if let Some(rows) = message.header_as_record_batch() {
                return read_record_batch(&body, rows, schema.clone(), dictionaries, Some(places), &version).map(Some);
            }
            read_dictionary(
                &body,
                message.header_as_dictionary_batch().ok_or(()).map_err(wrong)?,
                schema,
                dictionaries,
                &version,
            )?;
            // One is added to by the next, so that messages within their bounds are none of a bound together.
            let held: usize = dictionaries.values().map(|words| words.get_array_memory_size()).sum();
            if held as u64 > MAX_BUFFER as u64 { Err(wrong(())) } else { Ok(None) }
        })
    }
}

impl RowReader for ArrowReader {
    fn name(&self) -> &str {
        &self.name
    }

    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn read(&mut self, wanted: &Wanted, table: &mut Table) -> Result<bool, TableError> {
        if !std::mem::replace(&mut self.checked, true) {
            check_types(&self.name, &self.schema, wanted)?;
        }
        let places: Vec<usize> = wanted.places().into_keys().collect();
        let batch = match self.begun.take() {
            Some(batch) => batch,
            None => {
                let Some(next) = message(&mut self.input, &self.name)? else {
                    // A packed stream is whole only at its own end.
                    let rest = io::copy(&mut self.input.by_ref().take(MAX_DESCRIPTION as u64), &mut io::sink());
                    rest.map_err(|source| Fault::Read(source).of(&self.name))?;
                    return Ok(false);
                };
                let Some(batch) = self.decode(next, &places)? else { return Ok(true) };
                batch
            }
        };
        // A message may have any number of rows, and as doubles they are up to eight times as large.
        let batch = match batch.num_rows() {
            0..=AT_ONCE => batch,
            rows => {
                self.begun = Some(batch.slice(AT_ONCE, rows - AT_ONCE));
                batch.slice(0, AT_ONCE)
            }
        };
        let columns = Columns::new(&self.name, self.columns.len(), &places, batch.columns(), wanted)?;
        let rows = batch.num_rows();
        columns.take_rows(&self.name, &self.columns, (self.rows, rows), wanted, table)?;
        self.rows += rows as u64;
        Ok(true)
    }
}

/// The next message; nothing at the end of the stream, which has to be marked, so that one that was cut short is told.
fn message(input: &mut impl Read, name: &str) -> Result<Option<Message>, TableError> {
    let damaged = |what| Fault::Damaged(what).of(name);
    let cut = || damaged("it ends before its mark of an end");
    let mut exactly = |bytes: usize| -> Result<Vec<u8>, TableError> {
        let mut buffer = Vec::new();
        // What is there is held, and not what is said to be.
        let read = input.by_ref().take(bytes as u64).read_to_end(&mut buffer);
        read.map_err(|source| Fault::Read(source).of(name))?;
        if buffer.len() == bytes { Ok(buffer) } else { Err(cut()) }
    };
    let mut head = exactly(8)?;
    let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
    if head[..4] != CONTINUES {
        return Err(damaged("a message does not begin where the one before ends"));
    }
    if length == 0 {
        return Ok(None);
    }
    if length > MAX_DESCRIPTION {
        return Err(damaged("a message is described by more than 16 MiB"));
    }
    head.extend(exactly(length)?);
    let message = root_as_message(&head[8..]).map_err(|_| damaged("a message has no description"))?;
    let length = message.bodyLength();
    if !(0..=MAX_BUFFER).contains(&length) {
        return Err(damaged("a message is said to hold more than 2 GiB"));
    }
    let body = exactly(length as usize)?;
    let records = message.header_as_record_batch();
    let records = records.or_else(|| message.header_as_dictionary_batch().and_then(|of| of.data()));
    let packed = records.is_some_and(|records| records.compression().is_some());
    let mut all = 0i64;
    for of in records.and_then(|records| records.buffers()).into_iter().flatten() {
        let (from, length) = (usize::try_from(of.offset()).ok(), of.length());
        let said = from.and_then(|from| body.get(from..from.checked_add(8)?)).and_then(|said| said.try_into().ok());
        let said = said.filter(|_| packed && length > 0).map_or(0, i64::from_le_bytes);
        if said > length.saturating_mul(RATIO).saturating_add(PACKED).min(MAX_BUFFER) {
            return Err(damaged("a column is said to be larger than its packed form can hold"));
        }
        // One part of a message may be said to be many columns.
        all = all.saturating_add(said.max(length));
        if all > MAX_BUFFER {
            return Err(damaged("the columns of a message are said to be larger than 2 GiB together"));
        }
    }
    Ok(Some(Message { head, body }))
}
