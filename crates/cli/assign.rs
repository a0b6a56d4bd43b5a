//! `veilsum assign`: memberships of one's own rows in the clusters of a model. Nothing leaves the machine.

use std::{
    io::{self, BufWriter, Write},
    path::PathBuf,
};

use clap::Args;
use serde_json::{Value, json};
use veilsum_cluster::assign::largest;

use crate::{
    rows::RowsSaid,
    verb::{self, Out, Verb},
};
use veilsum_node::{
    cost::counted,
    documents,
    error::Failure,
    files::Growing,
    model::Model,
    plan::Column,
    report::words,
    table::{self, Missing, Table, TableSpec, Tally, Unusable},
};

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
    /// Where to write one line a row, for you alone, as CSV; - for stdout
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub out: PathBuf,
}

/// For each row whether it lies outside the model's public box; nothing of a row that cannot be used.
fn outside(values: &[f64], model: &Model) -> Vec<Option<bool>> {
    let rows = values.chunks_exact(model.names().len().max(1));
    rows.map(|row| (!row[0].is_nan()).then(|| !model.is_within(row))).collect()
}

/// Rows with what they were assigned.
struct Assigned {
    ids: Option<Vec<String>>,
    clusters: usize,
    /// n x K, row by row; of no meaning in rows that cannot be used.
    memberships: Vec<f64>,
    /// Whether a row lies outside the box, if it can be used.
    outside: Vec<Option<bool>>,
    /// Where the first row outside is.
    first: Option<String>,
    /// What was read.
    tally: Tally,
}

impl Assigned {
    /// Its memberships with its largest ones; nothing of a row that cannot be used.
    fn row(&self, row: usize, top: usize) -> Option<(&[f64], Vec<usize>)> {
        let u = &self.memberships[row * self.clusters..(row + 1) * self.clusters];
        self.outside[row].map(|_| (u, largest(u, top)))
    }

    /// Rows outside the box, counted from 0.
    fn all_outside(&self) -> impl Iterator<Item = usize> {
        self.outside.iter().enumerate().filter(|(_, outside)| **outside == Some(true)).map(|(row, _)| row)
    }
}

/// Each cluster in words of its columns.
fn clusters(model: &Model) -> Vec<String> {
    let names = model.names();
    let ranges = model.columns.iter().map(|column| (column.lower, column.upper)).chain(std::iter::repeat((0.0, 1.0)));
    let ranges: Vec<(f64, f64)> = ranges.take(names.len()).collect();
    (0..model.centres.len()).map(|i| words::cluster(&names, &ranges, model.columns.len(), &model.centres, i)).collect()
}

fn unwritten(why: impl std::fmt::Display) -> Failure {
    let next = "check free space and permissions of the folder; what was there before is unchanged";
    Failure::input(format!("the memberships cannot be written ({why})"), next)
}

impl AssignArgs {
    /// Clusters that a row is shown with.
    fn shown(&self, clusters: usize) -> Result<usize, Failure> {
        let top = self.top.map_or(1, |top| top as usize);
        if top <= clusters {
            return Ok(top);
        }
        let what = format!("--top {top}: the model has {}", counted(clusters, "cluster"));
        Err(Failure::usage(what, format!("say --top {clusters} at most")))
    }

    /// What is read may not be what is written: rows would be gone, or memberships read as rows the next time.
    fn keeps_what_it_reads(&self) -> Result<(), Failure> {
        let Ok(out) = self.out.canonicalize() else {
            // Not there yet: no file that is read, but one that may be the next time.
            if !table::would_be_of(&self.data, &self.out) {
                return Ok(());
            }
            let (out, data) = (self.out.display(), self.data.display());
            let what =
                format!("--out {out}: it is among the files of --data {data}, and would be read as rows the next time");
            return Err(Failure::usage(what, "name a file elsewhere with --out"));
        };
        let rows = if self.data.as_os_str() == "-" { Vec::new() } else { table::files_of(&self.data)? };
        let read = rows.iter().chain([&self.model]).chain(&self.policy);
        match read.into_iter().find(|file| file.canonicalize().is_ok_and(|file| file == out)) {
            None => Ok(()),
            Some(file) => Err(Failure::usage(
                format!("--out {}: {} is read, and would be overwritten", self.out.display(), file.display()),
                "name another file with --out",
            )),
        }
    }

    fn spec(&self, model: &Model) -> Result<TableSpec, Failure> {
        let spec = documents::rows_of(model, self.policy.as_deref(), Unusable::Blank)?;
        let mut said = self.rows.over(&spec.rules)?;
        let leaves_out = !said.filter.conditions().is_empty() || said.person.is_some();
        if said.missing.take() == Some(Missing::Refuse) || leaves_out {
            let what =
                "--rows: every row is given a line, so that filter, person and missing=refuse are not heeded here";
            return Err(Failure::usage(what, "take it out, or give a file without these rows"));
        }
        Ok(TableSpec { label: self.id.clone(), rules: said.into(), ..spec })
    }

    fn assigned(&self, model: &Model, spec: &TableSpec) -> Result<Assigned, Failure> {
        let table = table::read(&self.data, spec).map_err(|error| RowsSaid::of_option(error.into()))?;
        let tally = table.tally();
        let Table { mut values, labels: ids, .. } = table;
        self.tell_apart(ids.as_deref().unwrap_or_default())?;
        let (outside, d) = (outside(&values, model), model.names().len());
        let first = outside.iter().position(|outside| *outside == Some(true)).and_then(|row| {
            let beyond = |(column, x): (&Column, &f64)| !(column.lower..=column.upper).contains(x);
            let column = model.columns.iter().zip(&values[row * d..]).position(beyond)?;
            let place = tally.columns[column].first.first()?;
            // Of several files it names the one.
            Some(if tally.files > 1 { place.clone() } else { format!("{}, {place}", self.data.display()) })
        });
        let fault = |why| Failure::input(format!("{}: {why}", self.data.display()), "correct the file");
        // Any number stands for one that is not there: what comes of it is not shown.
        values.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = 0.0);
        let memberships = model.memberships(values).map_err(fault)?;
        Ok(Assigned { ids, clusters: model.k as usize, memberships, outside, first, tally })
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

    fn warn(all: &Assigned) {
        if let Some(without) = all.tally.without() {
            crate::tell!("warning: {without}; their memberships are empty");
        }
        let Some(first) = &all.first else { return };
        crate::tell!(
            "warning: {} outside the box that the model was made for, first {first}: their memberships say which centre is nearest, \
             and little more",
            counted(all.all_outside().count(), "row")
        );
    }

    /// A line a row, and where it was written to. Clusters are numbered from 0 as in model and result.
    fn write_csv<W: Write>(&self, all: &Assigned, top: usize, out: W) -> io::Result<W> {
        let mut writer = csv::Writer::from_writer(out);
        let mut head: Vec<String> = self.id.iter().cloned().collect();
        match self.top {
            Some(_) => head.extend((1..=top).flat_map(|i| [format!("cluster_{i}"), format!("membership_{i}")])),
            None if self.hard => {}
            None => head.extend((0..all.clusters).map(|i| format!("membership_{i}"))),
        }
        head.extend(["outside_box", "cluster"].map(str::to_owned));
        writer.write_record(&head)?;
        for (row, outside) in all.outside.iter().enumerate() {
            if let Some(ids) = &all.ids {
                writer.write_field(&ids[row])?;
            }
            let Some((u, largest)) = all.row(row, top) else {
                writer.write_record(vec![""; head.len() - usize::from(self.id.is_some())])?;
                continue;
            };
            match self.top {
                Some(_) => largest.iter().try_for_each(|cluster| {
                    writer.write_field(cluster.to_string())?;
                    writer.write_field(format!("{:?}", u[*cluster]))
                })?,
                None if self.hard => {}
                None => u.iter().try_for_each(|u| writer.write_field(format!("{u:?}")))?,
            }
            writer.write_field(outside.is_some_and(|outside| outside).to_string())?;
            writer.write_field(largest[0].to_string())?;
            writer.write_record(None::<&[u8]>)?;
        }
        writer.into_inner().map_err(|e| e.into_error())
    }

    /// One document of all rows, a line for each.
    fn print_document(&self, model: &Model, all: &Assigned, top: usize) -> io::Result<()> {
        let mut out = BufWriter::new(Out);
        write!(out, "{{\"k\":{},\"caution\":{},\"rows\":[", model.k, json!(model.caution()))?;
        for row in 0..all.outside.len() {
            let before = if row == 0 { "" } else { "," };
            write!(out, "{before}\n{}", self.line(all, row, top))?;
        }
        let (outside, left_out) = (all.all_outside().count(), json!(all.tally.left_out));
        writeln!(out, "\n],\"rows_outside_box\":{outside},\"left_out\":{left_out}}}")?;
        out.flush()
    }

    /// What a row was assigned.
    fn line(&self, all: &Assigned, row: usize, top: usize) -> Value {
        let (u, largest) = all.row(row, top).unzip();
        let mut line = json!({ "cluster": largest.as_ref().map(|of| of[0]), "outside_box": all.outside[row] });
        if !self.hard {
            line["memberships"] = json!(u);
        }
        if self.top.is_some() {
            line["top"] = json!(largest);
        }
        if let Some(ids) = &all.ids {
            line["id"] = json!(ids[row]);
        }
        line
    }
}

impl Verb for AssignArgs {
    /// Computes memberships and hard labels.
    ///
    /// # Errors
    /// A [`Failure`] that names model, file, line or column.
    fn run(&self, json: bool) -> Result<(), Failure> {
        self.keeps_what_it_reads()?;
        let model = documents::read_model(&self.model)?.0;
        if model.method == "describe" {
            let what = format!("{}: it is the mean of all rows, and has no clusters", self.model.display());
            return Err(Failure::input(what, "name the model of a run that found clusters"));
        }
        // With --json the output says so.
        if let (Some(caution), false) = (model.caution(), json) {
            crate::tell!("warning: {caution}");
        }
        let (spec, top) = (self.spec(&model)?, self.shown(model.k as usize)?);
        let all = self.assigned(&model, &spec)?;
        if self.out.as_os_str() == "-" {
            if json {
                return verb::written(self.print_document(&model, &all, top));
            }
            AssignArgs::warn(&all);
            return verb::written(self.write_csv(&all, top, Out).map(drop));
        }
        self.write_csv(&all, top, Growing::create(&self.out)?).map_err(unwritten)?.finish()?;
        if !json {
            AssignArgs::warn(&all);
        }
        let shown = self.out.display().to_string();
        let listed: Vec<usize> = all.all_outside().take(LISTED).collect();
        let clusters = clusters(&model);
        let value = json!({ "written": shown, "k": model.k, "clusters": clusters, "row_count": all.outside.len(), "first_outside_box": listed,
            "rows_outside_box": all.all_outside().count(), "left_out": all.tally.left_out, "caution": model.caution() });
        let numbered = clusters.iter().enumerate().map(|(i, words)| format!("\n  cluster {i}: {words}"));
        let said =
            format!("memberships in {}: {shown}{}", counted(all.clusters, "cluster"), numbered.collect::<String>());
        verb::print(json, &value, &said)
    }
}
