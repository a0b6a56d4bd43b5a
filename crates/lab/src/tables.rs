//! `veilsum-lab experiments`: the papers' tables, run again.

use std::{io::Write, path::PathBuf};

use clap::Args;
use serde_json::json;

use veilsum_lab::experiments::{
    self, DEFAULT_FOLDER, Experiment, ExperimentError, Line, Report, Sample, Settings, papers,
};
use veilsum_node::error::{Code, Failure};

/// `veilsum-lab experiments`
#[derive(Args, Debug, Clone)]
pub(crate) struct ExperimentsArgs {
    /// Only these [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Few repetitions and the smallest sets; minutes
    #[arg(long)]
    pub quick: bool,
    /// Write the answers to the papers' items into this folder, as results.tsv
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Folder of the data sets that are not generated [default: ../shared/data, if it exists]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Say which experiments there are and run none
    #[arg(long)]
    pub list: bool,
}

/// Runs them, one after the other.
///
/// # Errors
/// A [`Failure`] for a name that does not exist, a file that cannot be written, a run that fails, or a target that was
/// missed.
pub(crate) fn experiments(args: &ExperimentsArgs, json: bool) -> Result<(), Failure> {
    if args.list {
        let lines: Vec<String> = experiments::ALL.iter().map(|e| format!("{:<14} {}", e.name, e.about)).collect();
        let names: Vec<&str> = experiments::ALL.iter().map(|e| e.name).collect();
        return crate::print(json, &json!({ "experiments": names }), &lines.join("\n"));
    }
    let chosen = chosen(&args.names)?;
    let usual = || Some(PathBuf::from(DEFAULT_FOLDER)).filter(|folder| folder.is_dir());
    let settings = Settings { data: args.data.clone().or_else(usual), quick: args.quick };
    if let Some(out) = &args.out {
        std::fs::create_dir_all(out).map_err(|error| unwritable(out, &error))?;
    }
    let (mut reports, mut skipped, mut missed) = (Vec::new(), Vec::new(), 0);
    for experiment in chosen {
        match experiment.run(&settings) {
            Ok(report) => {
                missed += report.missed().count();
                if !json {
                    crate::print(false, &json!({}), &format!("{}\n", experiments::text(&report)))?;
                }
                reports.push(report);
            }
            Err(absent @ ExperimentError::Missing(_)) => {
                let _ = writeln!(std::io::stderr(), "SKIPPED {}: {absent}", experiment.name);
                skipped.push(experiment.name);
            }
            Err(error) => {
                let message = format!("experiment {}: {error}", experiment.name);
                return Err(match error {
                    ExperimentError::File(..) | ExperimentError::Cluster(_) => {
                        Failure::input(message, "correct the file, or leave it out: what can be generated then is")
                    }
                    _ => Failure::new(Code::Internal, message, "please report it with the command that was given"),
                });
            }
        }
    }
    if let Some(out) = &args.out {
        let path = out.join("results.tsv");
        std::fs::write(&path, papers::written(&reports)).map_err(|error| unwritable(&path, &error))?;
    }
    if reports.is_empty() && !skipped.is_empty() {
        return Err(Failure::input(
            format!("no experiment was run: the data of {} are not there", skipped.join(", ")),
            "give the folder that holds them with --data",
        ));
    }
    let text = if skipped.is_empty() { String::new() } else { format!("; skipped: {}", skipped.join(", ")) };
    let results: Vec<_> = reports.iter().map(summary).collect();
    let object = json!({ "experiments": results, "skipped": skipped, "missed": missed });
    crate::print(json, &object, &format!("{} experiments run, {missed} targets missed{text}", results.len()))?;
    if missed > 0 {
        let message = format!("{missed} targets of the experiments were missed");
        return Err(Failure::new(Code::Internal, message, "see the lines that are off"));
    }
    Ok(())
}

fn chosen(names: &[String]) -> Result<Vec<Experiment>, Failure> {
    if names.is_empty() {
        return Ok(experiments::ALL.to_vec());
    }
    let find = |name: &String| {
        let unknown = format!("there is no experiment `{name}`");
        let unknown = || Failure::usage(unknown, "see `veilsum-lab experiments --list`");
        experiments::find(name).ok_or_else(unknown)
    };
    names.iter().map(find).collect()
}

fn unwritable(path: &std::path::Path, error: &std::io::Error) -> Failure {
    Failure::input(format!("{} cannot be written ({error})", path.display()), "choose another folder for --out")
}

/// A report for programs: the lines with means, and what was missed.
fn summary(report: &Report) -> serde_json::Value {
    let line = |line: &Line| {
        let [mean, sd] = [Sample::mean, Sample::sd].map(|of| move |sample: &Option<Sample>| sample.as_ref().map(of));
        let (verdict, why) = line.verdict.parts();
        json!({
            "item": line.item, "setting": line.setting, "measure": line.measure, "printed": line.printed,
            "plain": mean(&line.plain), "plain_sd": sd(&line.plain), "masked": mean(&line.masked),
            "masked_sd": sd(&line.masked), "verdict": verdict, "why": why,
        })
    };
    json!({
        "name": report.name, "title": report.title, "seconds": report.seconds, "notes": report.notes,
        "lines": report.lines.iter().map(line).collect::<Vec<_>>(),
    })
}
