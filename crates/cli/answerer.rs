//! `veilsum answerer`: whether a program that answers in a site's place keeps to the contract.

use std::{path::PathBuf, sync::Arc, time::Duration};

use clap::{Args, Subcommand};
use serde_json::json;
use veilsum_answerer::{Launch, conformance};
use veilsum_node::{
    error::{Code, Failure},
    files, table,
};

use crate::verb::{self, Verb};

/// Try a program that answers from rows elsewhere: example, check
#[derive(Args, Debug)]
pub(crate) struct AnswererArgs {
    /// What to do
    #[command(subcommand)]
    pub command: AnswererCommand,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub(crate) enum AnswererCommand {
    /// Write the rows that an answerer is tried with
    Example(ExampleArgs),
    /// Ask it every kind of question that it lists, compare every word, and send it lines that are none (exit code 0 or 3)
    Check(CheckArgs),
}

/// `veilsum answerer example`
#[derive(Args, Debug)]
pub(crate) struct ExampleArgs {
    /// Where to write the rows; a file that is there stays
    #[arg(long, value_name = "FILE.csv", default_value = "answerer-example.csv")]
    pub out: PathBuf,
    /// How many rows
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(3..=10_000_000))]
    pub rows: u32,
}

/// `veilsum answerer check`
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// The answerer's rows, as `answerer example` wrote them
    #[arg(long, value_name = "FILE.csv", default_value = "answerer-example.csv")]
    pub data: PathBuf,
    /// Seconds that one answer may take
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub seconds: u64,
    /// The answerer's command, behind `--`
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<String>,
}

impl Verb for AnswererArgs {
    /// Runs `veilsum answerer`.
    ///
    /// # Errors
    /// A [`Failure`] where the answerer does not keep to the contract.
    fn run(&self, json: bool) -> Result<(), Failure> {
        match &self.command {
            AnswererCommand::Example(args) => example(args, json),
            AnswererCommand::Check(args) => check(args, json),
        }
    }
}

fn example(args: &ExampleArgs, json: bool) -> Result<(), Failure> {
    let out = args.out.display();
    if args.out.exists() {
        return Err(Failure::new(Code::Usage, format!("{out}: it is there already"), "choose another --out"));
    }
    let mut text = Vec::new();
    table::write_csv(&mut text, &conformance::header(), conformance::example(args.rows as usize))?;
    files::write_atomic(&args.out, &text)?;
    let header = conformance::header();
    let value = json!({ "out": args.out, "rows": args.rows, "columns": header });
    let said = format!(
        "wrote {out}: {} rows with the columns {}\nlet the answerer have these rows, then: veilsum answerer check --data {out} -- CMD",
        args.rows,
        header.join(", ")
    );
    verb::print(json, &value, &said)
}

fn check(args: &CheckArgs, json: bool) -> Result<(), Failure> {
    let file = args.data.display();
    let unusable =
        |what: String| Failure::input(format!("{file}: {what}"), "write it anew with `veilsum answerer example`");
    let mut reader = csv::Reader::from_path(&args.data).map_err(|_| unusable("it cannot be read".into()))?;
    let header = reader.headers().map_err(|_| unusable("it has no header".into()))?;
    if !header.iter().eq(conformance::header()) {
        return Err(unusable("its columns are not those of the example".into()));
    }
    let records: Vec<csv::StringRecord> =
        reader.records().collect::<Result<_, _>>().map_err(|_| unusable("it is no table".into()))?;
    let rows = conformance::rows_of(records.iter().map(|record| record.iter().collect())).map_err(unusable)?;
    let limit = Duration::from_secs(args.seconds.clamp(1, 86_400));
    let log = Arc::new(|line: &str| tracing::info!("the answerer: {line}"));
    let tried = conformance::check(&Launch { command: args.command.clone(), limit, start: limit, log }, &rows);
    let failed = tried.iter().filter(|one| one.result.is_err()).count();
    let mut text = String::new();
    for one in &tried {
        let (mark, seen) = match &one.result {
            Ok(seen) => ("ok    ", seen),
            Err(why) => ("WRONG ", why),
        };
        text += &format!("{mark}{:<48} {seen}\n", one.what);
    }
    let lines: Vec<_> = tried
        .iter()
        .map(|one| json!({ "what": one.what, "ok": one.result.is_ok(), "seen": one.result.as_ref().unwrap_or_else(|why| why) }))
        .collect();
    let value = json!({ "tried": lines, "failed": failed });
    verb::print(json, &value, &format!("{text}{} of {} as the contract has it", tried.len() - failed, tried.len()))?;
    if failed == 0 {
        return Ok(());
    }
    let what = format!("{:?} does not keep to the contract in {failed} of {} points", args.command[0], tried.len());
    Err(Failure::input(what, "let its author read the lines that say WRONG beside the contract: docs/src/answerers.md"))
}
