//! Rows that are read anew for every question, because they do not fit into memory: the answer of each batch of them is added to that of the
//! others ([SUM-1]), while the next batch is read on another thread.
//!
//! Every pass takes a fingerprint of the rows. Where it is another than that of the first, the rows changed, and there is no answer.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, mpsc::sync_channel},
};

use rayon::prelude::*;
use veilsum_cluster::SumStep;

use super::{
    counting, error::TableError, open, person::Counting, print::Print, source::Batches, tally::Tally, wanted::TableSpec,
};
use crate::{
    answerer::{Answerer, RowsDigest, misfit},
    error::{Code, Failure},
    plan::OutOfBox,
    question::Batch,
    release::{ClusterError, Domain, Hash, Passes, Precision, Prepared, Rows},
};

/// Bytes of a batch at most. More would not stay in the processor's caches, and of less there is not a part for every core.
const BATCH: u64 = 4 << 20;
/// Rows that one thread takes the fingerprint of.
const AT_ONCE: usize = 4096;
/// A batch takes this part of the memory that is allowed: three are on their way, each of which is made ready.
const PART: u64 = 16;

/// What rows are read from, and what of them.
pub struct Reader {
    data: PathBuf,
    spec: TableSpec,
    columns: usize,
    /// Of a batch at least.
    rows: usize,
    /// Which rows of persons count.
    counting: Counting,
    /// What the first pass read, once it has read all.
    tally: OnceLock<Tally>,
    /// Of the fingerprint; secret, so that nobody makes rows with the fingerprint of others.
    seed: u64,
}

impl Reader {
    /// `columns` numbers a row, as `spec` wants them of `data`, in so many bytes of memory.
    ///
    /// # Errors
    /// A [`Failure`] where the system has no random numbers, or rows of persons are cut and cannot be read.
    pub fn new(data: &Path, spec: TableSpec, columns: usize, memory: u64) -> Result<Reader, Failure> {
        let seed = getrandom::u64().map_err(|e| Failure::new(Code::Internal, e, "the system has no random numbers"))?;
        let (columns, bytes) = (columns.max(1), (memory / PART).min(BATCH) as usize);
        Ok(Reader {
            data: data.to_owned(),
            counting: counting(data, &spec)?,
            spec,
            columns,
            rows: (bytes / 8 / columns).max(1),
            tally: OnceLock::new(),
            seed,
        })
    }

    /// One pass: a thread reads batches, and here each is looked at, on all cores, and given to `each`.
    fn pass<E: From<Failure>>(&self, mut each: impl FnMut(Vec<f64>) -> Result<(), E>) -> Result<Print, E> {
        let (out, input) = sync_channel(1);
        std::thread::scope(|scope| {
            let reader = scope.spawn(move || self.read(&|part| out.send(part).is_ok()));
            let (mut print, mut failed) = (Print::default(), None);
            for part in input {
                print = print.and(self.look(&part));
                if let Err(e) = each(part) {
                    failed = Some(e);
                    break;
                }
            }
            let read = reader.join();
            if let Some(e) = failed {
                return Err(e);
            }
            let defect =
                || Failure::new(Code::Internal, "reading rows ended in a panic", "this is a defect, please report it");
            read.unwrap_or_else(|_| Err(defect()))?;
            Ok(print)
        })
    }

    /// Reads all rows, as long as `take` wants more.
    fn read(&self, take: &dyn Fn(Vec<f64>) -> bool) -> Result<(), Failure> {
        let mut batches = Batches::of(open(&self.data, self.spec.rules.dialect())?, &self.spec, &self.counting)?;
        loop {
            let more = batches.more(self.rows).map_err(|e| self.fault(e))?;
            let (part, _) = batches.table().drain();
            if !part.is_empty() && !take(part) || !more {
                if !more {
                    self.tally.get_or_init(|| batches.tally());
                }
                return Ok(());
            }
        }
    }

    /// A row that can't be used any more is a row that changed.
    fn fault(&self, e: TableError) -> Failure {
        match self.tally.get().is_some() && e.reasons().rows() > 0 {
            true => changed(&self.data, &format!("has rows that cannot be used ({e})")),
            false => e.into(),
        }
    }

    fn same(&self, before: Print, now: Print) -> Result<(), Failure> {
        match before == now {
            true => Ok(()),
            false => Err(changed(&self.data, "holds others than at its start")),
        }
    }

    fn look(&self, values: &[f64]) -> Print {
        let some = |values| Print::of(self.seed, values, self.columns, None);
        values.par_chunks(AT_ONCE * self.columns).map(some).reduce(Print::default, Print::and)
    }
}

/// What is said where a later pass met other rows than the first.
fn changed(data: &Path, seen: &str) -> Failure {
    let what = format!("the rows changed while the run was on: {} {seen}", data.display());
    Failure::input(
        what,
        "give the rows as they were and start the site again; or, where they have changed for good, see `veilsum ledger changed`",
    )
}

/// Rows that are read anew for every question.
pub struct Streamed {
    reading: Arc<Reader>,
    domain: Domain,
    out_of_box: OutOfBox,
    /// Rows that were read beside these and lack a value, by column of the box.
    missing: Vec<u64>,
    print: Print,
    digest: Hash,
}

/// Rows that were looked at once, and are streamed or held from now on.
pub struct Checked(Streamed);

impl Checked {
    /// Reads all rows to see whether each can be used and how many they are.
    ///
    /// # Errors
    /// A [`Failure`] that names file, row and column.
    pub fn begin(reading: Arc<Reader>, domain: &Domain, out_of_box: OutOfBox) -> Result<Checked, Failure> {
        let mut rows = Streamed {
            reading,
            domain: domain.clone(),
            out_of_box,
            missing: vec![0; domain.columns()],
            print: Print::default(),
            digest: Hash::default(),
        };
        rows.print = rows.reading.pass(|part| rows.prepared(part).map(drop))?;
        Ok(Checked(rows))
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.0.print.rows
    }

    /// With the number of rows that were read beside these and lack a value, by column of the box.
    #[must_use]
    pub fn with_missing(mut self, missing: Vec<u64>) -> Checked {
        self.0.missing = missing;
        self
    }

    /// What was read.
    pub fn tally(&self) -> Tally {
        self.0.reading.tally.get().cloned().unwrap_or_default()
    }

    /// Rows that are read anew for every question. Reads all of them for their digest, which is that of rows in memory, so that a site may
    /// turn from one to the other.
    ///
    /// # Errors
    /// A [`Failure`] where the rows are others than before.
    pub fn streamed(self) -> Result<Streamed, Failure> {
        let Checked(mut rows) = self;
        let mut digest = RowsDigest::new(rows.print.rows, &rows.domain);
        let print = rows.reading.pass(|part| {
            digest.add(&rows.prepared(part)?.packed().to_rows());
            Ok::<(), Failure>(())
        })?;
        rows.same(print)?;
        rows.digest = digest.finish();
        Ok(rows)
    }

    /// Reads all rows into memory.
    ///
    /// # Errors
    /// As [`Checked::streamed`].
    pub fn held(self) -> Result<Prepared, Failure> {
        let Checked(rows) = self;
        let len = usize::try_from(rows.print.rows).unwrap_or(usize::MAX);
        let mut all = Prepared::room(len, &rows.domain, rows.precision())?;
        let print = rows.reading.pass(|part| {
            // More than there were would need more room.
            match all.len() < len {
                true => Ok::<(), Failure>(all.append(&rows.prepared(part)?)?),
                false => Ok(()),
            }
        })?;
        rows.same(print)?;
        Ok(all.with_missing(rows.missing)?)
    }
}

impl Streamed {
    fn precision(&self) -> Precision {
        self.reading.spec.rules.precision
    }

    fn prepared(&self, values: Vec<f64>) -> Result<Prepared, Failure> {
        let of = |e: ClusterError| changed(&self.reading.data, &format!("has rows that cannot be used ({e})"));
        let (prepared, bad) =
            Prepared::usable(&values, self.domain.columns(), &self.domain, self.out_of_box).map_err(of)?;
        if bad > 0 {
            return Err(changed(&self.reading.data, &format!("has {bad} rows that cannot be used")));
        }
        Ok(prepared.held_in(self.precision())?)
    }

    fn same(&self, print: Print) -> Result<(), Failure> {
        self.reading.same(self.print, print)
    }
}

impl Answerer for Streamed {
    fn domain(&self) -> &Domain {
        &self.domain
    }

    fn rows(&self) -> u64 {
        self.print.rows
    }

    fn digest(&self) -> Hash {
        self.digest
    }

    fn words(&self, batch: &Batch, steps: &[SumStep]) -> Result<Vec<i64>, Failure> {
        if !batch.comes_in_parts() {
            let what = format!("the question {} is about all rows at once, and these are streamed", batch.kind());
            let next = "give the site's rows more memory ([rows] memory in site.toml), or ask for another plan";
            return Err(Failure::input(what, next));
        }
        let mut total: Option<Vec<i64>> = None;
        let print = self.reading.pass(|part| {
            let rows = self.prepared(part)?;
            // They are of no part: the first has them all.
            let rows = if total.is_none() { rows.with_missing(self.missing.clone())? } else { rows };
            let words = Answerer::words(&rows, batch, steps)?;
            match &mut total {
                None => total = Some(words),
                Some(total) => batch.merge(&self.domain, total, &words).map_err(misfit)?,
            }
            Ok::<_, Failure>(())
        })?;
        self.same(print)?;
        Ok(total.unwrap_or_default())
    }
}

/// The same rows in their own units, for the ledger.
pub struct OwnRows {
    reading: Arc<Reader>,
    print: Option<Print>,
}

impl OwnRows {
    /// `of` are the rows that these must be.
    pub fn new(reading: Arc<Reader>, of: Option<&Checked>) -> OwnRows {
        OwnRows { reading, print: of.map(|rows| rows.0.print) }
    }
}

impl Passes for OwnRows {
    fn pass(&self, each: &mut dyn FnMut(&Rows)) -> Result<(), Failure> {
        let print = self.reading.pass(|values| {
            each(&Rows::new(values, self.reading.columns)?);
            Ok::<(), Failure>(())
        })?;
        self.reading.same(self.print.unwrap_or(print), print)
    }
}
