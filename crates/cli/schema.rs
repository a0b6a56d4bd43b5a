//! `veilsum schema`: what the columns of a federation are, and whether a site's file fits.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use veilsum_node::{
    cost::counted,
    documents::{Fit, fit_of, load_schema, policy_of, proposed_schema},
    error::{Code, Failure},
    files,
    schema::{Described, Kind, Missing, Schema},
    table::Reasons,
};

use crate::verb::{Verb, listed};

/// Say what the columns are, before any plan: make, check
#[derive(Args, Debug)]
pub(crate) struct SchemaArgs {
    /// What to do with it
    #[command(subcommand)]
    pub command: SchemaCommand,
}

/// What to do with a schema.
#[derive(Subcommand, Debug)]
pub(crate) enum SchemaCommand {
    /// Propose a schema from the header of a file of rows; nothing is taken from its rows
    Make(MakeArgs),
    /// Say whether a schema can be used and a site's rows fit to it (exit code 0), or what is missing (3)
    Check(CheckArgs),
}

/// `veilsum schema make`
#[derive(Args, Debug)]
pub(crate) struct MakeArgs {
    /// A file with the columns; its header alone is read
    #[arg(long, value_name = "ROWS")]
    pub data: PathBuf,
    /// A column that no plan may use: it stays at every site
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// Where to write the proposal; a file that is there stays
    #[arg(long, value_name = "FILE", default_value = "schema.toml")]
    pub out: PathBuf,
}

/// `veilsum schema check`
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// The schema
    #[arg(long, value_name = "FILE", default_value = "schema.toml")]
    pub schema: PathBuf,
    /// This site's rows: a file, a folder, a pattern or - [default: `source` under [rows] in site.toml]
    #[arg(long, value_name = "ROWS")]
    pub data: Option<PathBuf>,
    /// This site's own words and units [default: site.toml beside the schema, where it is there]
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
}

impl Verb for SchemaArgs {
    /// Runs `veilsum schema`.
    ///
    /// # Errors
    /// A [`Failure`] that names the file, and the column or the line.
    fn run(&self, json: bool) -> Result<(), Failure> {
        match &self.command {
            SchemaCommand::Make(args) => make(args, json),
            SchemaCommand::Check(args) => check(args, json),
        }
    }
}

fn make(args: &MakeArgs, json: bool) -> Result<(), Failure> {
    if args.out.exists() {
        let what = format!("{}: it is there already", args.out.display());
        return Err(Failure::new(Code::Usage, what, "choose another --out, or remove that file first"));
    }
    let (text, columns) = proposed_schema(&args.data, args.label.as_deref())?;
    files::write_atomic(&args.out, text.as_bytes())?;
    let out = args.out.display();
    let says = format!(
        "{out}: a proposal of {} from the header alone; it cannot be used before every \"?\" in it is filled in",
        counted(columns.len(), "column")
    );
    let next = format!("fill it in from what is known of the columns, then: veilsum schema check --schema {out}");
    let value =
        json!({ "written": out.to_string(), "columns": columns, "label": args.label, "says": says, "next": next });
    crate::verb::print(json, &value, &format!("{says}\nnext: {next}"))
}

fn check(args: &CheckArgs, json: bool) -> Result<(), Failure> {
    let schema = load_schema(&args.schema)?;
    let shown = args.schema.display();
    let columns = counted(schema.columns.len(), "column");
    let (site, file) = policy_of(args.policy.as_deref(), Some(&args.schema))?;
    let Ok(from) = site.rows_from(args.data.as_deref(), file.as_deref(), Some(&args.schema)) else {
        let says = format!("Yes: {shown} can be used; it has {columns}. Whether rows fit to it, --data says.");
        let value = json!({ "fits": null, "says": says, "schema": to_json(&schema) });
        return crate::verb::print(json, &value, &format!("{says}\n\n{}", to_text(&schema)));
    };
    let (fit, data) = (fit_of(&schema, &from, true)?, &from.data);
    let failure = fit.failure(data);
    let says = match &failure {
        None if fit.left_out.rows() == 0 => {
            format!("Yes: {} fits to {shown}, and every row can be used.", data.display())
        }
        None => format!("Yes: {} fits to {shown}; rows without a value are left out, as it says.", data.display()),
        Some(failure) => format!("No: {}", failure.message),
    };
    let mut value = json!({ "fits": failure.is_none(), "says": says, "schema": to_json(&schema), "columns_used": fit.used,
        "columns_unread": fit.ignored, "columns_lacking": fit.lacking, "label_kept": fit.label,
        "renamed": fit.renamed.iter().map(|(own, name)| json!({ "own": own, "schema": name })).collect::<Vec<_>>(),
        "unusable": fit.unusable.as_ref().map_or(json!([]), |(.., reasons)| of_reasons(reasons)),
        "left_out": of_reasons(&fit.left_out) });
    let text = format!("{says}\n\n{}", fit_text(&fit, &schema));
    let Some(failure) = failure else { return crate::verb::print(json, &value, &text) };
    value["error"] = json!({ "code": failure.code as u8, "message": failure.message, "next": failure.advice });
    crate::verb::print(json, &value, &text)?;
    Err(failure)
}

fn of_reasons(reasons: &Reasons) -> Value {
    reasons.each().map(|(why, rows, lines)| json!({ "why": why, "rows": rows, "first": lines })).collect()
}

fn fit_text(fit: &Fit, schema: &Schema) -> String {
    let word = |good: bool| if good { "PASS" } else { "FAIL" };
    let mut text = format!("{}  columns        ", word(fit.lacking.is_empty()));
    text += &match fit.lacking.is_empty() {
        true => format!("all {} of the schema are there\n", schema.columns.len()),
        false => format!("missing: {}\n", fit.lacking.join(", ")),
    };
    text += &match (&fit.unusable, fit.lacking.is_empty()) {
        (_, false) => "SKIP  rows           not read before the columns are there\n".to_owned(),
        (None, _) => "PASS  rows           every value is one that the schema knows\n".to_owned(),
        (Some((.., reasons)), _) if reasons.rows() > 0 => {
            format!("FAIL  rows           {} cannot be used: {reasons}\n", counted(reasons.rows() as usize, "row"))
        }
        (Some((what, ..)), _) => format!("FAIL  rows           {what}\n"),
    };
    if fit.left_out.rows() > 0 {
        let rows = counted(fit.left_out.rows() as usize, "row");
        text += &format!("      left out       {rows}, as the schema says of a missing value: {}\n", fit.left_out);
    }
    text += &format!("      used by plans  {}\n      ignored        {}\n", listed(&fit.used), listed(&fit.ignored));
    let label = match (&schema.label, &fit.label) {
        (Some(label), Some(_)) => format!("{label} (no plan may use or count by it)"),
        (Some(label), None) => format!("none; the schema's label {label} is not in this file"),
        (None, _) => "none".to_owned(),
    };
    text += &format!("      kept here      {label}\n");
    for (own, name) in &fit.renamed {
        text += &format!("      read as        {own} is {name}\n");
    }
    text
}

fn to_json(schema: &Schema) -> Value {
    let column = |column: &Described| match &column.kind {
        Kind::Number { lower, upper, values } => {
            json!({ "name": column.name, "unit": column.unit, "lower": lower, "upper": upper,
            "also_called": column.also, "values": values })
        }
        Kind::Category { categories, values } => {
            json!({ "name": column.name, "unit": column.unit, "categories": categories,
            "also_called": column.also, "values": values })
        }
    };
    json!({ "columns": schema.columns.iter().map(column).collect::<Vec<_>>(), "label": schema.label,
        "missing": rule(schema), "missing_marks": schema.marks })
}

fn rule(schema: &Schema) -> &'static str {
    match schema.missing {
        Missing::Refuse => "refuse",
        Missing::LeaveOut => "leave-out",
    }
}

fn to_text(schema: &Schema) -> String {
    let mut text = String::new();
    for column in &schema.columns {
        text += &match &column.kind {
            Kind::Number { lower, upper, .. } => format!("  {}: {lower} to {upper}, in {}\n", column.name, column.unit),
            Kind::Category { categories, .. } => format!("  {}: one of {}\n", column.name, categories.join(", ")),
        };
    }
    text += &match schema.missing {
        Missing::Refuse => "a missing value: the site's file is refused\n".to_owned(),
        Missing::LeaveOut => "a missing value: its row is left out, under every plan\n".to_owned(),
    };
    text + &schema.label.as_ref().map_or(String::new(), |label| format!("kept at every site: {label}\n"))
}
