//! `veilsum answerer`: whether a program that answers in a site's place keeps to the contract.

use std::{path::PathBuf, sync::Arc, time::Duration};

use clap::Args;
use serde_json::json;
use veilsum_answerer::{Launch, conformance};
use veilsum_node::{
    error::{Code, Failure},
    files, table,
};

use crate::verb::{self, Verb};

/// Write rows to try an answering program with, and try it
///
/// It is asked every kind of question that it lists, every word is compared, and it is sent lines that are none (exit code 0 or 3).
#[derive(Args, Debug)]
pub(crate) struct AnswererArgs {
    /// The rows that it is tried with
    ///
    /// Without a command they are written here, unless the file is there.
    #[arg(long, value_name = "FILE.csv", default_value = "answerer-example.csv")]
    pub data: PathBuf,
    /// How many rows are written
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(3..=10_000_000))]
    pub rows: u32,
    /// Seconds that one answer may take
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub seconds: u64,
    /// The program's command, behind `--`
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
}

impl Verb for AnswererArgs {
    /// Runs `veilsum answerer`.
    ///
    /// # Errors
    /// A [`Failure`] where the answerer does not keep to the contract.
    fn run(&self, json: bool) -> Result<(), Failure> {
        if self.command.is_empty() { example(self, json) } else { check(self, json) }
    }
}

fn example(args: &AnswererArgs, json: bool) -> Result<(), Failure> {
    let out = args.data.display();
    if args.data.exists() {
        let next = "choose another --data, or try a program with these rows: its command behind `--`";
        return Err(Failure::new(Code::Usage, format!("{out}: it is there already"), next));
    }
    let mut text = Vec::new();
    table::write_csv(&mut text, &conformance::header(), conformance::example(args.rows as usize))?;
    files::write_atomic(&args.data, &text)?;
    let header = conformance::header();
    let value = json!({ "out": args.data, "rows": args.rows, "columns": header });
    let said = format!(
        "wrote {out}: {} rows with the columns {}\nlet the answerer have these rows, then: veilsum answerer --data {out} -- CMD",
        args.rows,
        header.join(", ")
    );
    verb::print(json, &value, &said)
}

fn check(args: &AnswererArgs, json: bool) -> Result<(), Failure> {
    let file = args.data.display();
    let unusable = |what: String| Failure::input(format!("{file}: {what}"), "write it anew with `veilsum answerer`");
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
