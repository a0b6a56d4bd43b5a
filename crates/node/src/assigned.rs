//! Memberships of rows as they are written: CSV or Parquet, part by part, so that no more than a part is ever held.

use std::{io::Write, path::Path, sync::Arc};

use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};

use crate::{error::Failure, files};

/// Which columns a row's line has, beside its id, whether it lies outside the box, and its cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// Its membership in every cluster.
    Memberships,
    /// The clusters of its largest memberships, with them.
    Top(usize),
    /// No more than these.
    Hard,
}

/// Rows with what they were assigned.
pub struct Part<'a> {
    /// One a row, where they have any.
    pub ids: Option<Vec<String>>,
    /// n x K, row by row; n x (K + 1) where there is a noise cluster, which comes last.
    pub memberships: &'a [f64],
    /// The clusters of the largest memberships, n x the number shown at least, or n x 1; the largest first. The noise cluster has the
    /// number K.
    pub largest: Vec<Vec<usize>>,
    /// Whether a row lies outside the box.
    pub outside: Vec<bool>,
}

enum Form<W: Write + Send> {
    Csv(Box<csv::Writer<W>>),
    Parquet(Box<ArrowWriter<W>>, Arc<Schema>),
}

/// A table that grows part by part.
pub struct Assigned<W: Write + Send> {
    form: Form<W>,
    shown: Shown,
    clusters: usize,
    noise: bool,
}

/// What a row that is noise has in place of the number of its cluster, and the column of its membership there.
pub const NOISE: &str = "noise";

/// Whether a file of this name is written as Parquet; every other one is CSV.
pub fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|end| ["parquet", "pq"].iter().any(|known| end.eq_ignore_ascii_case(known)))
}

fn unwritten(why: impl std::fmt::Display) -> Failure {
    Failure::input(
        format!("the memberships cannot be written ({why})"),
        "check free space and permissions of the folder; what was there before is unchanged",
    )
}

impl<W: Write + Send> Assigned<W> {
    /// Begins a table of memberships in `clusters` clusters, numbered from 0 as in model and result, and with `noise` in a noise
    /// cluster, which has the name [`NOISE`], in Parquet no number. `id` is the name of the column of ids, where rows have any.
    ///
    /// # Errors
    /// A [`Failure`] where it cannot be written.
    pub fn new(
        out: W,
        parquet: bool,
        id: Option<&str>,
        shown: Shown,
        (clusters, noise): (usize, bool),
    ) -> Result<Assigned<W>, Failure> {
        let cluster = |name: String| Field::new(name, DataType::UInt32, noise);
        let number = |name: String| Field::new(name, DataType::Float64, false);
        let mut fields: Vec<Field> = id.map(|id| Field::new(id, DataType::Utf8, false)).into_iter().collect();
        match shown {
            Shown::Memberships => {
                fields.extend((0..clusters).map(|i| number(format!("membership_{i}"))));
                fields.extend(noise.then(|| number(NOISE.to_owned())));
            }
            Shown::Top(top) => fields.extend(
                (1..=top).flat_map(|rank| [cluster(format!("cluster_{rank}")), number(format!("membership_{rank}"))]),
            ),
            Shown::Hard => {}
        }
        fields.push(Field::new("outside_box", DataType::Boolean, false));
        fields.push(cluster("cluster".to_owned()));
        let form = if parquet {
            let schema = Arc::new(Schema::new(fields));
            let zstd = Compression::ZSTD(ZstdLevel::default());
            let properties = WriterProperties::builder().set_compression(zstd).build();
            Form::Parquet(
                Box::new(ArrowWriter::try_new(out, schema.clone(), Some(properties)).map_err(unwritten)?),
                schema,
            )
        } else {
            let mut writer = csv::Writer::from_writer(out);
            writer.write_record(fields.iter().map(Field::name)).map_err(unwritten)?;
            Form::Csv(Box::new(writer))
        };
        Ok(Assigned { form, shown, clusters, noise })
    }

    /// Adds rows.
    ///
    /// # Errors
    /// A [`Failure`] where they cannot be written.
    pub fn add(&mut self, part: &Part<'_>) -> Result<(), Failure> {
        let (clusters, shares) = (self.clusters, self.clusters + usize::from(self.noise));
        let of = |row: usize| &part.memberships[row * shares..(row + 1) * shares];
        let name = |cluster: usize| if cluster < clusters { cluster.to_string() } else { NOISE.to_owned() };
        match &mut self.form {
            Form::Csv(writer) => {
                for (row, largest) in part.largest.iter().enumerate() {
                    let mut put = |cell: &str| writer.write_field(cell).map_err(unwritten);
                    if let Some(ids) = &part.ids {
                        put(&ids[row])?;
                    }
                    match self.shown {
                        Shown::Memberships => of(row).iter().try_for_each(|u| put(&format!("{u:?}")))?,
                        Shown::Top(top) => largest[..top].iter().try_for_each(|cluster| {
                            put(&name(*cluster))?;
                            put(&format!("{:?}", of(row)[*cluster]))
                        })?,
                        Shown::Hard => {}
                    }
                    put(if part.outside[row] { "true" } else { "false" })?;
                    put(&name(largest[0]))?;
                    writer.write_record(None::<&[u8]>).map_err(unwritten)?;
                }
                Ok(())
            }
            Form::Parquet(writer, schema) => {
                let rows = || 0..part.largest.len();
                let numbers =
                    |at: &dyn Fn(usize) -> f64| Arc::new(rows().map(at).collect::<Float64Array>()) as ArrayRef;
                let places = |rank: usize| {
                    let place = |largest: &Vec<usize>| Some(largest[rank] as u32).filter(|_| largest[rank] < clusters);
                    Arc::new(part.largest.iter().map(place).collect::<UInt32Array>()) as ArrayRef
                };
                let mut columns: Vec<ArrayRef> = Vec::new();
                columns.extend(part.ids.as_ref().map(|ids| Arc::new(StringArray::from_iter_values(ids)) as ArrayRef));
                match self.shown {
                    Shown::Memberships => columns.extend((0..shares).map(|i| numbers(&|row| of(row)[i]))),
                    Shown::Top(top) => columns.extend(
                        (0..top).flat_map(|rank| [places(rank), numbers(&|row| of(row)[part.largest[row][rank]])]),
                    ),
                    Shown::Hard => {}
                }
                columns.push(Arc::new(BooleanArray::from(part.outside.clone())));
                columns.push(places(0));
                let batch = RecordBatch::try_new(schema.clone(), columns).map_err(unwritten)?;
                writer.write(&batch).map_err(unwritten)
            }
        }
    }

    /// The table is whole; where it was written to.
    ///
    /// # Errors
    /// A [`Failure`] where its end cannot be written.
    pub fn finish(self) -> Result<W, Failure> {
        match self.form {
            Form::Csv(writer) => writer.into_inner().map_err(|e| unwritten(e.error())),
            Form::Parquet(writer, _) => writer.into_inner().map_err(unwritten),
        }
    }
}

/// A file of memberships that takes its name when it is whole.
pub type File = Assigned<files::Growing>;
