//! Memberships of rows as they are written: CSV or Parquet, part by part, so that no more than a part is ever held.

use std::{io::Write, path::Path};

use crate::{error::Failure, files};

#[cfg(feature = "columnar")]
mod columnar;
mod part;

use part::{Holds, unwritten};
pub use part::{Part, Shown};

enum Form<W: Write + Send> {
    Csv(Box<csv::Writer<W>>),
    #[cfg(feature = "columnar")]
    Parquet(columnar::Written<W>),
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
        let mut fields: Vec<(String, Holds)> = id.map(|id| (id.to_owned(), Holds::Id)).into_iter().collect();
        match shown {
            Shown::Memberships => {
                fields.extend((0..clusters).map(|i| (format!("membership_{i}"), Holds::Membership)));
                fields.extend(noise.then(|| (NOISE.to_owned(), Holds::Membership)));
            }
            Shown::Top(top) => fields.extend((1..=top).flat_map(|rank| {
                [(format!("cluster_{rank}"), Holds::Cluster), (format!("membership_{rank}"), Holds::Membership)]
            })),
            Shown::Hard => {}
        }
        fields.push(("outside_box".to_owned(), Holds::Outside));
        fields.push(("cluster".to_owned(), Holds::Cluster));
        let form = if parquet {
            #[cfg(not(feature = "columnar"))]
            return Err(Failure::input(
                "this build of veilsum writes no Parquet",
                "build it with `--features columnar`, or name a file that ends in .csv",
            ));
            #[cfg(feature = "columnar")]
            Form::Parquet(columnar::Written::new(out, &fields, noise)?)
        } else {
            let mut writer = csv::Writer::from_writer(out);
            writer.write_record(fields.iter().map(|(name, _)| name)).map_err(unwritten)?;
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
            #[cfg(feature = "columnar")]
            Form::Parquet(written) => written.add(part, self.shown, clusters, shares),
        }
    }

    /// The table is whole; where it was written to.
    ///
    /// # Errors
    /// A [`Failure`] where its end cannot be written.
    pub fn finish(self) -> Result<W, Failure> {
        match self.form {
            Form::Csv(writer) => writer.into_inner().map_err(|e| unwritten(e.error())),
            #[cfg(feature = "columnar")]
            Form::Parquet(written) => written.finish(),
        }
    }
}

/// A file of memberships that takes its name when it is whole.
pub type File = Assigned<files::Growing>;
