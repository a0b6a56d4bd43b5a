//! Rows from an Arrow file or stream. Both are messages: those of a stream follow each other, and those of a file are where its end says.
//!
//! Messages are cut out here and checked for sizes before the library decodes them: it makes room for what a message says of itself, and
//! its own reader of files for what the end says.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
};

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::{
    Field, Schema as SchemaTable,
    convert::try_fb_to_schema,
    reader::{read_dictionary, read_footer_length, read_record_batch},
    root_as_footer, root_as_message,
};
use arrow_schema::{ArrowError, Schema, SchemaRef};

use super::{
    About, Fault, Result, RowReader, Table, Wanted,
    columnar::{MAX_BUFFER, MAX_DESCRIPTION, MAX_FOOTER, NO_END, from_end},
    columns::{about, check_types, guarded, take_batch},
};

/// What a message begins with, but for those of Arrow before 0.15.
const CONTINUES: [u8; 4] = [0xff; 4];
/// What a stream ends by, behind that.
const END: [u8; 4] = [0; 4];
/// Bytes that may stand between two parts of a message, so that each begins where a processor likes it.
const PADDING: usize = 64;
/// Bytes behind the description of a file: its length, and the magic.
const TAIL: usize = 10;
/// What is said where columns are described by nothing that can be read.
const NO_SCHEMA: &str = "its schema cannot be read";
/// Rows that are taken at a time.
const AT_ONCE: usize = 8192;
/// How much larger than its packed form a column may be said to be, at least.
const PACKED: i64 = 1 << 20;
/// How many times larger beyond that: what the codecs reach on one repeated value.
const RATIO: i64 = 1 << 15;

/// An open Arrow stream or file.
pub(super) struct ArrowReader {
    about: About,
    schema: SchemaRef,
    input: Input,
    /// The words of dictionaries, by their numbers.
    dictionaries: HashMap<i64, ArrayRef>,
    /// A message whose first rows were taken.
    begun: Option<RecordBatch>,
    /// Whether messages begin with their mark: all do, or none.
    marked: Option<bool>,
    rows: u64,
}

/// Where messages come from.
enum Input {
    Stream(Box<dyn Read>),
    /// A file, and where its messages are: dictionaries, then rows.
    File(BufReader<File>, std::vec::IntoIter<Block>),
}

/// Where a message of a file is: its begin, the bytes of its body, what follows it and where that begins.
#[derive(Clone, Copy)]
struct Block {
    begin: u64,
    body: i64,
    until: u64,
    last: bool,
}

/// The description of a message, and its body; none at the end.
struct Message {
    marked: bool,
    head: Vec<u8>,
    body: Vec<u8>,
}

impl ArrowReader {
    /// Reads the schema at the begin of a stream.
    pub(super) fn of_stream(mut input: Box<dyn Read>, name: &str) -> Result<Self> {
        let first = message(&mut input, name)?;
        let schema = guarded(name, NO_SCHEMA, || {
            let message = root_as_message(&first.head).map_err(|_| wrong())?;
            message.header_as_schema().ok_or_else(wrong).and_then(read_schema)
        })?;
        Ok(ArrowReader { marked: Some(first.marked), ..Self::new(Input::Stream(input), schema, name)? })
    }

    /// Reads the schema at the end of a file, and where its messages are.
    pub(super) fn of_file(file: File, name: &str) -> Result<Self> {
        let short = || Fault::damaged(NO_END).of(name);
        let all = file.metadata().map_err(|source| Fault::read(source).of(name))?.len();
        let tail = from_end(&file, TAIL as u64, TAIL as u64, name)?.try_into().map_err(|_| short())?;
        let length = read_footer_length(tail).map_err(|_| short())?;
        if length as u64 > MAX_FOOTER {
            return Err(Fault::damaged("it is described by more than 256 MiB").of(name));
        }
        let footer = from_end(&file, (TAIL + length) as u64, length as u64, name)?;
        let (schema, messages) = guarded(name, NO_SCHEMA, || {
            let footer = root_as_footer(&footer).map_err(|_| wrong())?;
            let rows = footer.recordBatches().into_iter().flatten();
            let (blocks, until) =
                (footer.dictionaries().into_iter().flatten().chain(rows), all - (TAIL + length) as u64);
            let block = |of: &arrow_ipc::Block| {
                let begin = u64::try_from(of.offset()).map_err(|_| wrong())?;
                Ok(Block { begin, body: of.bodyLength(), until, last: true })
            };
            let mut blocks = blocks.map(block).collect::<Result<Vec<Block>, ArrowError>>()?;
            let mut begins: Vec<u64> = blocks.iter().map(|block| block.begin).collect();
            begins.sort_unstable();
            if begins.windows(2).any(|two| two[0] == two[1]) {
                return Err(wrong());
            }
            for block in &mut blocks {
                if let Some(next) = begins.get(begins.partition_point(|begin| *begin <= block.begin)) {
                    (block.until, block.last) = (*next, false);
                }
            }
            Ok::<_, ArrowError>((read_schema(footer.schema().ok_or_else(wrong)?)?, blocks))
        })?;
        Self::new(Input::File(BufReader::new(file), messages.into_iter()), schema, name)
    }

    fn new(input: Input, schema: Result<Schema, Fault>, name: &str) -> Result<Self> {
        let schema = schema.map_err(|fault| fault.of(name))?;
        let (about, schema, dictionaries) = (about(name, &schema)?, schema.into(), HashMap::new());
        Ok(ArrowReader { about, schema, input, dictionaries, begun: None, marked: None, rows: 0 })
    }

    /// The next message; nothing at the end.
    fn next(&mut self) -> Result<Option<Message>> {
        let failed = |source| Fault::read(source).of(&self.about.name);
        let damaged = |what| Err(Fault::damaged(what).of(&self.about.name));
        let next = match &mut self.input {
            Input::Stream(stream) => {
                let next = message(stream, &self.about.name)?;
                // A packed stream is whole only at its own end, and rows behind the end of this one are somebody's.
                if next.is_end() && io::copy(&mut stream.by_ref().take(1), &mut io::sink()).map_err(failed)? > 0 {
                    let next = "give each stream as a file of its own, in a folder";
                    return Err(
                        Fault::said("something stands behind the end of the Arrow stream", next).of(&self.about.name)
                    );
                }
                next
            }
            Input::File(file, blocks) => {
                let Some(block) = blocks.next() else { return Ok(None) };
                file.seek(SeekFrom::Start(block.begin)).map_err(failed)?;
                let next = message(file, &self.about.name)?;
                if next.is_end() || next.body.len() as i64 != block.body {
                    return damaged("a message is not where its end says");
                }
                let end = file.stream_position().map_err(failed)?;
                let gap = block.until.checked_sub(end).filter(|gap| *gap <= PADDING as u64);
                let mut behind = Vec::new();
                file.take(gap.unwrap_or_default()).read_to_end(&mut behind).map_err(failed)?;
                if gap.is_none() || !next.is_followed_by(&behind, block.last) {
                    return damaged("a message does not end where the next begins");
                }
                next
            }
        };
        if *self.marked.get_or_insert(next.marked) != next.marked {
            return damaged("a message is not where the last one ends");
        }
        Ok(Some(next).filter(|next| !next.is_end()))
    }

    /// The columns at these places of a message with rows; nothing where it has a dictionary, which is kept.
    fn decode(&mut self, Message { head, body, .. }: Message, places: &[usize]) -> Result<Option<RecordBatch>> {
        let (schema, dictionaries) = (&self.schema, &mut self.dictionaries);
        guarded(&self.about.name, "a message does not hold what its description says", || {
            let message = root_as_message(&head).map_err(|_| wrong())?;
            let (version, body) = (message.version(), Buffer::from_vec(body));
            if let Some(rows) = message.header_as_record_batch() {
                return read_record_batch(&body, rows, schema.clone(), dictionaries, Some(places), &version).map(Some);
            }
            let words = message.header_as_dictionary_batch().ok_or_else(wrong)?;
            read_dictionary(&body, words, schema, dictionaries, &version)?;
            // One is added to by the next, so that messages within their bounds are none of a bound together.
            let held: usize = dictionaries.values().map(|words| words.get_array_memory_size()).sum();
            if held as u64 > MAX_BUFFER as u64 { Err(wrong()) } else { Ok(None) }
        })
    }
}

impl RowReader for ArrowReader {
    fn about(&self) -> &About {
        &self.about
    }

    fn read(&mut self, wanted: &Wanted, table: &mut Table) -> Result<bool> {
        check_types(&self.about.name, &self.schema, wanted)?;
        let places: Vec<usize> = wanted.places().into_keys().collect();
        let batch = match self.begun.take() {
            Some(batch) => batch,
            None => {
                let Some(next) = self.next()? else { return Ok(false) };
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
        self.rows = take_batch(&self.about, self.rows, &places, &batch, wanted, table)?;
        Ok(true)
    }
}

fn wrong() -> ArrowError {
    ArrowError::ParseError(String::new())
}

/// A schema, or what is in it that a healthy file may have and that is not read.
fn read_schema(of: SchemaTable<'_>) -> Result<Result<Schema, Fault>, ArrowError> {
    if !of.endianness().equals_to_target_endianness() {
        let what = "its numbers are in the order of bytes of another kind of machine (big-endian)";
        return Ok(Err(Fault::said(what, "write it anew on this machine, or as Parquet")));
    }
    let wide = |field: &Field<'_>| field.type_as_int().is_some_and(|of| of.bitWidth() > 64);
    if let Some(field) = of.fields().into_iter().flatten().find(wide) {
        let what = format!("the column {:?} has whole numbers of more than 64 bits", field.name().unwrap_or_default());
        return Ok(Err(Fault::said(what, "write them as integers of 64 bits, or as decimals (in polars: cast)")));
    }
    try_fb_to_schema(of).map(Ok)
}

impl Message {
    /// Whether it is the end of a stream.
    fn is_end(&self) -> bool {
        self.head.is_empty()
    }

    /// Whether what stands behind it in a file is what may: padding, and behind the last the end of a stream. Bytes that are gone from its
    /// body make it end too late.
    fn is_followed_by(&self, behind: &[u8], last: bool) -> bool {
        match behind.strip_prefix(&CONTINUES) {
            _ if !last => behind.iter().all(|byte| *byte == 0),
            Some(end) => self.marked && end == END,
            None => !self.marked && behind == END,
        }
    }
}

/// The next message, or the end of the stream, which has to be marked, so that one that was cut short is told.
fn message(input: &mut impl Read, name: &str) -> Result<Message> {
    let damaged = |what| Fault::damaged(what).of(name);
    let cut = || damaged("it ends before its mark of an end");
    let mut exactly = |bytes: usize| -> Result<Vec<u8>> {
        let mut buffer = Vec::new();
        // What is there is held, and not what is said to be.
        let read = input.by_ref().take(bytes as u64).read_to_end(&mut buffer);
        read.map_err(|source| Fault::read(source).of(name))?;
        if buffer.len() == bytes { Ok(buffer) } else { Err(cut()) }
    };
    let mut head = exactly(4)?;
    let marked = head == CONTINUES;
    if marked {
        head = exactly(4)?;
    }
    let length = head.first_chunk().map_or(0, |length| u32::from_le_bytes(*length)) as usize;
    if length == 0 {
        return Ok(Message { marked, head: Vec::new(), body: Vec::new() });
    }
    if length > MAX_DESCRIPTION {
        return Err(damaged("a message is described by more than 16 MiB"));
    }
    let head = exactly(length)?;
    let message = root_as_message(&head).map_err(|_| damaged("a message has no description"))?;
    let length = message.bodyLength();
    if !(0..=MAX_BUFFER).contains(&length) {
        return Err(damaged("a message is said to hold more than 2 GiB"));
    }
    let body = exactly(length as usize)?;
    let records = message.header_as_record_batch();
    let records = records.or_else(|| message.header_as_dictionary_batch().and_then(|of| of.data()));
    let packed = records.is_some_and(|records| records.compression().is_some());
    let (mut all, mut end) = (0i64, 0);
    for of in records.and_then(|records| records.buffers()).into_iter().flatten().filter(|of| of.length() != 0) {
        let length = of.length();
        let span = usize::try_from(of.offset()).ok().zip(usize::try_from(length).ok());
        let part = span.and_then(|(from, length)| body.get(from..from.checked_add(length)?).map(|part| (from, part)));
        // They follow each other.
        let Some((_, part)) = part.filter(|(from, _)| (end..=end + PADDING).contains(from)) else {
            return Err(damaged("a column is not where its message says"));
        };
        end = span.map_or(end, |(from, length)| from + length);
        let said = part.first_chunk().filter(|_| packed).map_or(0, |said| i64::from_le_bytes(*said));
        if said > length.saturating_mul(RATIO).saturating_add(PACKED).min(MAX_BUFFER) {
            return Err(damaged("a column is said to be larger than its packed form can hold"));
        }
        // One part of a message may be said to be many columns.
        all = all.saturating_add(said.max(length));
        if all > MAX_BUFFER {
            return Err(damaged("the columns of a message are said to be larger than 2 GiB together"));
        }
    }
    if records.is_some() && body.len() > end + PADDING {
        return Err(damaged("a message holds more than its columns"));
    }
    Ok(Message { marked, head, body })
}
