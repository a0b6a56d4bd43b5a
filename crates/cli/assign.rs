//! `veilsum assign`: memberships of one's own rows in the clusters of a model. Nothing leaves the machine.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use serde_json::json;
use veilsum_cluster::assign::{hard_labels, memberships};

use crate::verb::Verb;
use veilsum_node::{
    cost::counted,
    documents,
    error::Failure,
    files::{self, Existing},
    model::Model,
    schema::{Missing, Schema},
    table::{self, Filter, RowRules, TableSpec},
};

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
    /// Where to write one line a row; only you can read the file. `-` is standard output
    #[arg(long, value_name = "FILE.csv", default_value = "-")]
    pub out: PathBuf,
}

/// The rows, counted from 0, that lie outside the model's public box.
fn outside(values: &[f64], model: &Model) -> Vec<usize> {
    let inside =
        |row: &[f64]| row.iter().zip(&model.columns).all(|(x, column)| (column.lower..=column.upper).contains(x));
    let rows = values.chunks_exact(model.names().len().max(1)).enumerate();
    rows.filter(|(_, row)| !inside(row)).map(|(i, _)| i).collect()
}

/// Where the first of them is, where the source can be read once more.
fn place_of(data: &Path, spec: &TableSpec, model: &Model) -> Option<String> {
    let within = model.columns.iter().map(|column| (column.lower, column.upper)).collect();
    table::look(data, &TableSpec { within, ..spec.clone() }).err()?.place()
}

impl Verb for AssignArgs {
    /// Computes memberships and hard labels.
    ///
    /// # Errors
    /// A [`Failure`] that names model, file, line or column.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let args = self;
        let model = documents::read_model(&args.model)?;
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
        let fail = |why: String| Failure::input(format!("{}: {why}", args.data.display()), "correct the file");
        let columns = model.columns.iter().map(|c| c.name.clone()).collect();
        // One line of memberships for every row: none is left out.
        let schema = documents::schema_beside(&args.model)?
            .map(|schema| Arc::new(Schema { missing: Missing::Refuse, ..schema }));
        let rules = args
            .policy
            .as_deref()
            .map(documents::load_policy)
            .transpose()?
            .map(|site| Arc::new(RowRules { missing: None, filter: Filter::default(), ..(*site.rows).clone() }));
        let spec = TableSpec { columns, categorical: model.categorical.clone(), schema, rules, ..TableSpec::default() };
        let table = table::read(&args.data, &spec)?;
        let outside = outside(&table.values, &model);
        if let (Some(first), false) = (outside.first(), json) {
            crate::tell!(
                "warning: {} outside the box that the model was made for, first {}: their memberships say which centre is nearest, \
             and little more",
                counted(outside.len(), "row"),
                place_of(&args.data, &spec, &model).unwrap_or_else(|| format!("row {} of the table", first + 1))
            );
        }
        let rows = model.to_working(table.values).map_err(fail)?;
        let u = memberships(&rows, &model.centres().map_err(fail)?, model.m).map_err(|e| fail(e.to_string()))?;
        let labels = hard_labels(&u);

        let to_file = args.out.as_os_str() != "-";
        if json && !to_file {
            let u: Vec<Vec<f64>> = u.outer_iter().map(|row| row.to_vec()).collect();
            let value = json!({ "k": model.k, "memberships": u, "labels": labels, "outside_box": outside,
            "caution": model.caution() });
            return crate::verb::print(true, &value, "");
        }
        // Clusters are numbered from 0, as the centres stand in the model.
        let mut header: Vec<String> = (0..model.k).map(|i| format!("membership_{i}")).collect();
        header.push("cluster".into());
        let lines = u.outer_iter().zip(&labels).map(|(row, label)| {
            let mut cells: Vec<String> = row.iter().map(|x| format!("{x:?}")).collect();
            cells.push(label.to_string());
            cells
        });
        let mut text = Vec::new();
        table::write_csv(&mut text, &header, lines)?;
        if to_file {
            files::write_private(&args.out, &text, Existing::Replace)?;
            let shown = args.out.display().to_string();
            let value = json!({ "written": shown, "k": model.k, "outside_box": outside, "caution": model.caution() });
            return crate::verb::print(
                json,
                &value,
                &format!("memberships in {}: {shown}", counted(model.k as usize, "cluster")),
            );
        }
        crate::verb::print(false, &serde_json::Value::Null, &String::from_utf8_lossy(&text))
    }
}
