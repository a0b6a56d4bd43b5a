//! Memberships as Parquet.

use std::{io::Write, sync::Arc};

use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};

use super::part::{Holds, Part, Shown, unwritten};
use crate::error::Failure;

pub(super) struct Written<W: Write + Send> {
    writer: Box<ArrowWriter<W>>,
    schema: Arc<Schema>,
}

impl<W: Write + Send> Written<W> {
    /// Begins a file with these columns. With a noise cluster a row may have no number of a cluster.
    pub(super) fn new(out: W, fields: &[(String, Holds)], noise: bool) -> Result<Self, Failure> {
        let field = |(name, holds): &(String, Holds)| match holds {
            Holds::Id => Field::new(name, DataType::Utf8, false),
            Holds::Cluster => Field::new(name, DataType::UInt32, noise),
            Holds::Membership => Field::new(name, DataType::Float64, false),
            Holds::Outside => Field::new(name, DataType::Boolean, false),
        };
        let schema = Arc::new(Schema::new(fields.iter().map(field).collect::<Vec<_>>()));
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let writer = ArrowWriter::try_new(out, schema.clone(), Some(properties)).map_err(unwritten)?;
        Ok(Self { writer: Box::new(writer), schema })
    }

    /// Adds rows, each with `shares` memberships.
    pub(super) fn add(&mut self, part: &Part<'_>, shown: Shown, clusters: usize, shares: usize) -> Result<(), Failure> {
        let of = |row: usize| &part.memberships[row * shares..(row + 1) * shares];
        let rows = || 0..part.largest.len();
        let numbers = |at: &dyn Fn(usize) -> f64| Arc::new(rows().map(at).collect::<Float64Array>()) as ArrayRef;
        let places = |rank: usize| {
            let place = |largest: &Vec<usize>| Some(largest[rank] as u32).filter(|_| largest[rank] < clusters);
            Arc::new(part.largest.iter().map(place).collect::<UInt32Array>()) as ArrayRef
        };
        let mut columns: Vec<ArrayRef> = Vec::new();
        columns.extend(part.ids.as_ref().map(|ids| Arc::new(StringArray::from_iter_values(ids)) as ArrayRef));
        match shown {
            Shown::Memberships => columns.extend((0..shares).map(|i| numbers(&|row| of(row)[i]))),
            Shown::Top(top) => columns
                .extend((0..top).flat_map(|rank| [places(rank), numbers(&|row| of(row)[part.largest[row][rank]])])),
            Shown::Hard => {}
        }
        columns.push(Arc::new(BooleanArray::from(part.outside.clone())));
        columns.push(places(0));
        let batch = RecordBatch::try_new(self.schema.clone(), columns).map_err(unwritten)?;
        self.writer.write(&batch).map_err(unwritten)
    }

    pub(super) fn finish(self) -> Result<W, Failure> {
        self.writer.into_inner().map_err(unwritten)
    }
}
