//! Rows from a Parquet file. Its row groups come batch by batch, and of its columns those that are wanted.

use std::fs::File;

use arrow_ipc::convert::try_schema_from_ipc_buffer;
use arrow_schema::{DataType, Field, FieldRef, Metadata, Schema};
use base64::{Engine, engine::general_purpose::STANDARD};
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{
            ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
        },
    },
    basic::Compression,
    errors::ParquetError,
    file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData},
};

use super::{
    About, Fault, Result, RowReader, Table, Wanted,
    columns::{about, check_types, guarded, take_batch},
    footer,
    types::EXTENSION,
};

/// Rows that are decoded at a time: their columns stay in the processor's second cache.
const BATCH: usize = 8192;

/// Bytes of a writer's note of its own types.
const MAX_NOTE: usize = 16 << 20;

/// An open Parquet file.
pub(super) struct ParquetReader {
    about: About,
    file: File,
    described: ArrowReaderMetadata,
    reader: Option<(ParquetRecordBatchReader, Vec<usize>)>,
    rows: u64,
}

impl ParquetReader {
    /// Reads the description at the end of the file.
    pub(super) fn new(file: File, name: &str) -> Result<ParquetReader> {
        footer::check(&file, name)?;
        // What a writer noted of its own types has no part in it, and would be a second description to guard against.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let what = "its description at the end cannot be read";
        let described = guarded(name, what, || {
            let described = ArrowReaderMetadata::load(&file, options.clone())?;
            match without_zeros(described.metadata())? {
                None => Ok(described),
                Some(mended) => ArrowReaderMetadata::try_new(mended.into(), options),
            }
        })?;
        Ok(ParquetReader { about: about(name, described.schema())?, file, described, reader: None, rows: 0 })
    }

    /// The types of the columns: what the writer noted as a span of time is one, which Parquet has as whole numbers, and so is what it called
    /// a type. Nothing else of its note has a part in it, and one that cannot be read has none.
    fn types(&self) -> Schema {
        let own = Schema::clone(self.described.schema());
        let notes = self.described.metadata().file_metadata().key_value_metadata().into_iter().flatten();
        let note = notes.filter(|note| note.key == "ARROW:schema").find_map(|note| note.value.as_deref());
        let bytes = note.and_then(|text| STANDARD.decode(text).ok()).filter(|bytes| bytes.len() <= MAX_NOTE);
        let noted = bytes.and_then(|bytes| guarded(&self.about.name, "", || try_schema_from_ipc_buffer(&bytes)).ok());
        let field = |field: &FieldRef| {
            let Some(noted) = noted.as_ref().and_then(|noted| noted.field_with_name(field.name()).ok()) else {
                return field.clone();
            };
            let of = match noted.data_type() {
                span @ DataType::Duration(_) => span,
                _ => field.data_type(),
            };
            let called = noted.metadata().get(EXTENSION).map(|name| (EXTENSION.to_owned(), name.to_owned()));
            let metadata: Metadata = field.metadata().clone().into_iter().chain(called).collect();
            Field::clone(field).with_data_type(of.clone()).with_metadata(metadata).into()
        };
        Schema::new(own.fields().iter().map(field).collect::<Vec<FieldRef>>())
    }

    fn begin(&self, wanted: &Wanted) -> Result<(ParquetRecordBatchReader, Vec<usize>)> {
        check_types(&self.about.name, &self.types(), wanted)?;
        let places: Vec<usize> = wanted.places().into_keys().collect();
        self.check_packing(&places)?;
        let file = self.file.try_clone().map_err(|source| Fault::open(source).of(&self.about.name))?;
        let reader = guarded(&self.about.name, "its row groups do not fit to its description", || {
            let mask = ProjectionMask::roots(self.described.parquet_schema(), places.iter().copied());
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.described.clone());
            builder.with_projection(mask).with_batch_size(BATCH).build()
        })?;
        Ok((reader, places))
    }

    /// Whether what wanted columns are packed by is built in.
    fn check_packing(&self, places: &[usize]) -> Result<()> {
        let root = |chunk: usize| self.described.parquet_schema().get_column_root_idx(chunk);
        for group in self.described.metadata().row_groups() {
            for (at, chunk) in group.columns().iter().enumerate().filter(|(at, _)| places.contains(&root(*at))) {
                let packing = match chunk.compression() {
                    Compression::BROTLI(_) => "brotli",
                    Compression::LZO => "LZO",
                    _ => continue,
                };
                let what =
                    format!("the column {:?} is packed by {packing}, which is not read", self.about.columns[root(at)]);
                let next = "write the file anew with another compression: zstd, snappy, gzip, lz4 or none";
                return Err(Fault::said(what, next).of(&self.about.name));
            }
        }
        Ok(())
    }
}

/// The same description where columns without a dictionary say that theirs is at the begin of the file, as some writers do; nothing where
/// none does. The library would look for it there.
fn without_zeros(about: &ParquetMetaData) -> Result<Option<ParquetMetaData>, ParquetError> {
    let is_zero = |chunk: &ColumnChunkMetaData| chunk.dictionary_page_offset() == Some(0);
    if !about.row_groups().iter().flat_map(RowGroupMetaData::columns).any(is_zero) {
        return Ok(None);
    }
    let mended = |chunk: ColumnChunkMetaData| match is_zero(&chunk) {
        true => chunk.into_builder().set_dictionary_page_offset(None).build(),
        false => Ok(chunk),
    };
    let group = |group: &RowGroupMetaData| {
        let mut builder = group.clone().into_builder();
        let chunks = builder.take_columns().into_iter().map(mended).collect::<Result<Vec<_>, _>>()?;
        builder.set_column_metadata(chunks).build()
    };
    let groups = about.row_groups().iter().map(group).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(about.clone().into_builder().set_row_groups(groups).build()))
}

impl RowReader for ParquetReader {
    fn about(&self) -> &About {
        &self.about
    }

    fn read(&mut self, wanted: &Wanted, table: &mut Table) -> Result<bool> {
        if self.reader.is_none() {
            self.reader = Some(self.begin(wanted)?);
        }
        let Some((reader, places)) = &mut self.reader else { return Ok(false) };
        let what = "a page does not hold what its description says";
        let next = guarded(&self.about.name, what, || reader.next().transpose())?;
        let Some(batch) = next else {
            let said = self.described.metadata().file_metadata().num_rows();
            if u64::try_from(said) != Ok(self.rows) {
                return Err(Fault::damaged("it has another number of rows than it says").of(&self.about.name));
            }
            return Ok(false);
        };
        self.rows = take_batch(&self.about, self.rows, places, &batch, wanted, table)?;
        Ok(true)
    }
}
