//! `veilsum assign`: memberships of one's own rows in the clusters of a model. Nothing leaves the machine.

use std::{
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::{Value, json};
use veilsum_cluster::assign::largest;

use crate::{
    rows::RowsSaid,
    verb::{self, Out, Verb},
};
use veilsum_node::{
    assigned::{Assigned, NOISE, Part, Shown, is_parquet},
    cost::counted,
    documents,
    error::{Code, Failure},
    files::Growing,
    model::Model,
    table::{self, Batches, TableSpec},
};

/// Numbers of rows that are held at a time.
const HELD: usize = 1 << 18;
/// Rows outside the box that a document lists.
const LISTED: usize = 1000;
/// From here on a whole number in a column of numbers may have been rounded when it was read.
const EXACT: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;

/// Memberships of one's own rows in the clusters of a model
#[derive(Args, Debug)]
pub(crate) struct AssignArgs {
    /// The model that a run wrote
    #[arg(long, value_name = "FILE", default_value = "model.json")]
    pub model: PathBuf,
    /// Rows with the model's columns: a file, a folder, a pattern or -
    #[arg(long, value_name = "ROWS")]
    pub data: PathBuf,
    /// A site.toml whose [rows] say what columns, words and units of these rows mean
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// How these rows are written.
    #[command(flatten)]
    pub rows: RowsSaid,
    /// A column of the rows that is kept, in front, so that they can be told apart
    #[arg(long, value_name = "COLUMN")]
    pub id: Option<String>,
    /// Only the N largest memberships of each row, with their clusters
    #[arg(long, value_name = "N", conflicts_with = "hard", value_parser = clap::value_parser!(u32).range(1..))]
    pub top: Option<u32>,
    /// No memberships: only the cluster of the largest one
    #[arg(long)]
    pub hard: bool,
    /// Where to write one line a row, for you alone: CSV or, by its name, Parquet; - for stdout
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub out: PathBuf,
}

/// For each row whether it lies outside the model's public box.
fn outside(values: &[f64], model: &Model) -> Vec<bool> {
    let inside =
        |row: &[f64]| row.iter().zip(&model.columns).all(|(x, column)| (column.lower..=column.upper).contains(x));
    values.chunks_exact(model.names().len().max(1)).map(|row| !inside(row)).collect()
}

/// Where the first of them is, where the source can be read once more.
fn place_of(data: &Path, spec: &TableSpec, model: &Model) -> Option<String> {
    let within = model.columns.iter().map(|column| (column.lower, column.upper)).collect();
    table::look(data, &TableSpec { within, label: None, ..spec.clone() }).ok()?.1?.place()
}

/// What is known once all rows were read.
#[derive(Default)]
struct Told {
    rows: usize,
    outside: usize,
    /// The first of them, counted from 0.
    listed: Vec<usize>,
}

impl AssignArgs {
    fn shown(&self, clusters: usize) -> Result<Shown, Failure> {
        match self.top.map(|top| top as usize) {
            Some(top) if top > clusters => Err(Failure::new(
                Code::Usage,
                format!("--top {top}: the model has {}", counted(clusters, "cluster")),
                format!("say --top {clusters} at most"),
            )),
            Some(top) => Ok(Shown::Top(top)),
            None if self.hard => Ok(Shown::Hard),
            None => Ok(Shown::Memberships),
        }
    }

    fn fail(&self, why: impl std::fmt::Display) -> Failure {
        Failure::input(format!("{}: {why}", self.data.display()), "correct the file")
    }

    /// What is read may not be what is written: rows would be gone, or memberships read as rows the next time.
    fn keeps_what_it_reads(&self) -> Result<(), Failure> {
        let Ok(out) = self.out.canonicalize() else {
            // Not there yet: no file that is read, but one that may be the next time.
            if !table::would_be_of(&self.data, &self.out) {
                return Ok(());
            }
            let (out, data) = (self.out.display(), self.data.display());
            return Err(Failure::new(
                Code::Usage,
                format!("--out {out}: it is among the files of --data {data}, and would be read as rows the next time"),
                "name a file elsewhere with --out",
            ));
        };
        let rows = if self.data.as_os_str() == "-" { Vec::new() } else { table::files_of(&self.data)? };
        let read = rows.iter().chain([&self.model]).chain(&self.policy);
        match read.into_iter().find(|file| file.canonicalize().is_ok_and(|file| file == out)) {
            None => Ok(()),
            Some(file) => Err(Failure::new(
                Code::Usage,
                format!("--out {}: {} is read, and would be overwritten", self.out.display(), file.display()),
                "name another file with --out",
            )),
        }
    }

    fn spec(&self, model: &Model) -> Result<TableSpec, Failure> {
        let spec = documents::rows_of(model, self.policy.as_deref())?;
        let said = self.rows.over(&spec.rules)?;
        if !said.filter.conditions().is_empty() || said.missing.is_some() {
            let what = "--rows: every row is given memberships, so that neither filter nor missing leaves one out here";
            return Err(Failure::new(Code::Usage, what, "take it out, or give a file without these rows"));
        }
        Ok(TableSpec { label: self.id.clone(), rules: said.into(), ..spec })
    }

    /// Reads the rows part by part, and hands each part over with what it was assigned.
    fn each_part(
        &self,
        model: &Model,
        spec: &TableSpec,
        top: usize,
        mut take: impl FnMut(&Part<'_>) -> Result<(), Failure>,
    ) -> Result<Told, Failure> {
        let named =
            |failure: Failure| Failure { message: format!("{}: {}", self.model.display(), failure.message), ..failure };
        let assignment = model.assignment().map_err(named)?;
        let shares = model.k as usize + usize::from(model.has_noise());
        let mut batches = Batches::new(table::open(&self.data, spec.rules.dialect())?, spec)?;
        let (at_once, mut told) = ((HELD / model.names().len().max(1)).max(1), Told::default());
        loop {
            let more = batches.more(at_once)?;
            let (values, ids) = batches.table().drain();
            self.tell_apart(ids.as_deref().unwrap_or_default())?;
            let outside = outside(&values, model);
            let u = assignment.memberships(values).map_err(|why| match told.rows {
                0 => self.fail(why),
                before => self.fail(format!("behind the first {}: {why}", counted(before, "row"))),
            })?;
            let largest = u.chunks_exact(shares).map(|row| largest(row, top)).collect();
            for (row, _) in outside.iter().enumerate().filter(|(_, outside)| **outside) {
                told.outside += 1;
                if told.listed.len() < LISTED {
                    told.listed.push(told.rows + row);
                }
            }
            told.rows += outside.len();
            take(&Part { ids, memberships: &u, largest, outside })?;
            if !more {
                return Ok(told);
            }
        }
    }

    /// Whole numbers beyond what a column of numbers holds exactly may stand for several rows.
    fn tell_apart(&self, ids: &[String]) -> Result<(), Failure> {
        let rounded = |id: &String| id.parse::<f64>().is_ok_and(|x| x.abs() >= EXACT && x.to_string() == *id);
        if !ids.iter().any(rounded) {
            return Ok(());
        }
        let column = self.id.as_deref().unwrap_or_default();
        let what = format!("{}: ids in {column:?} are numbers too large to be read exactly", self.data.display());
        Err(Failure::input(what, "make it a column of text, with a letter in front of every number"))
    }

    fn warn(&self, told: &Told, spec: &TableSpec, model: &Model) {
        let Some(first) = told.listed.first() else { return };
        crate::tell!(
            "warning: {} outside the box that the model was made for, first {}: their memberships say which centre is nearest, \
             and little more",
            counted(told.outside, "row"),
            place_of(&self.data, spec, model).unwrap_or_else(|| format!("row {} of the table", first + 1))
        );
    }
}

impl Verb for AssignArgs {
    /// Computes memberships and hard labels.
    ///
    /// # Errors
    /// A [`Failure`] that names model, file, line or column.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let args = self;
        args.keeps_what_it_reads()?;
        let model = documents::read_model(&args.model)?.0;
        if model.method == "describe" {
            return Err(Failure::input(
                format!("{}: it is the mean of all rows, and has no clusters", args.model.display()),
                "name the model of a run that found clusters",
            ));
        }
        // With --json the output says so.
        if let (Some(caution), false) = (model.caution(), json) {
            crate::tell!("warning: {caution}");
        }
        let (clusters, noise) = (model.k as usize, model.has_noise());
        let (spec, shown) = (args.spec(&model)?, args.shown(clusters)?);
        let top = if let Shown::Top(top) = shown { top } else { 1 };
        let id = args.id.as_deref();
        if args.out.as_os_str() == "-" {
            if json {
                return args.print_document(&model, &spec, top);
            }
            // Nothing is printed of rows that cannot be read.
            let begin = || Assigned::new(Unheard(Out), false, id, shown, (clusters, noise));
            let mut begun = None;
            let told = args.each_part(&model, &spec, top, |part| {
                let out = match begun.take() {
                    Some(out) => out,
                    None => begin()?,
                };
                begun.insert(out).add(part)
            })?;
            let out = match begun {
                Some(out) => out,
                None => begin()?,
            };
            let flushed = out.finish()?.flush();
            args.warn(&told, &spec, &model);
            return verb::written(flushed);
        }
        let mut out = Assigned::new(Growing::create(&args.out)?, is_parquet(&args.out), id, shown, (clusters, noise))?;
        let told = args.each_part(&model, &spec, top, |part| out.add(part))?;
        out.finish()?.finish()?;
        if !json {
            args.warn(&told, &spec, &model);
        }
        let shown = args.out.display().to_string();
        let value = json!({ "written": shown, "k": model.k, "row_count": told.rows, "first_outside_box": told.listed,
            "rows_outside_box": told.outside, "caution": model.caution() });
        verb::print(json, &value, &format!("memberships in {}: {shown}", counted(clusters, "cluster")))
    }
}

impl AssignArgs {
    /// One document of all rows, a line for each, written part by part. What goes wrong behind the first part is its member `error`.
    fn print_document(&self, model: &Model, spec: &TableSpec, top: usize) -> Result<(), Failure> {
        let (mut out, mut begun) = (BufWriter::new(Unheard(Out)), false);
        // A document that cannot be written on cannot say so itself.
        let put = |result| verb::written(result).inspect_err(verb::tell);
        let head = format!("{{\"k\":{},\"caution\":{},\"rows\":[", model.k, json!(model.caution()));
        let told = self.each_part(model, spec, top, |part| {
            (0..part.outside.len()).try_for_each(|row| {
                let before = if std::mem::replace(&mut begun, true) { "," } else { &head };
                verb::begins_to_print();
                put(writeln!(out, "{before}").and_then(|()| write!(out, "{}", self.line(part, row, model))))
            })
        });
        if !begun {
            told?;
            return Err(self.fail("it has no rows"));
        }
        let last = match &told {
            Ok(told) => ("rows_outside_box", json!(told.outside)),
            Err(failure) => ("error", verb::error(failure)),
        };
        let whole = writeln!(out, "\n],\"{}\":{}}}", last.0, last.1).and_then(|()| out.flush());
        told.and_then(|_| put(whole))
    }

    /// What a row was assigned.
    fn line(&self, part: &Part<'_>, row: usize, model: &Model) -> Value {
        let clusters = model.k as usize;
        let name = |cluster: &usize| if *cluster < clusters { json!(cluster) } else { json!(NOISE) };
        let largest: Vec<Value> = part.largest[row].iter().map(name).collect();
        let mut line = json!({ "cluster": largest[0], "outside_box": part.outside[row] });
        if !self.hard {
            let shares = clusters + usize::from(model.has_noise());
            let (u, noise) = part.memberships[row * shares..(row + 1) * shares].split_at(clusters);
            line["memberships"] = json!(u);
            if let [noise] = noise {
                line[NOISE] = json!(noise);
            }
        }
        if self.top.is_some() {
            line["top"] = json!(largest);
        }
        if let Some(ids) = &part.ids {
            line["id"] = json!(ids[row]);
        }
        line
    }
}

/// Standard output of which a reader may have seen enough (`| head`): the rest is then computed for nobody, and no error.
struct Unheard(Out);

impl Write for Unheard {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.0.write(bytes) {
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self.0.flush() {
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            flushed => flushed,
        }
    }
}
