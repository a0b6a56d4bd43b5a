//! `veilsum evidence`: who broke which rule, from what they signed.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::verb::Verb;
use veilsum_node::error::Failure;
use veilsum_node::{documents, evidence};

/// Judge signed evidence of a broken rule, from roster and plan alone: verify
#[derive(Args, Debug)]
pub(crate) struct EvidenceArgs {
    /// What to do
    #[command(subcommand)]
    pub command: EvidenceCommand,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub(crate) enum EvidenceCommand {
    /// Check the signatures in a file and say what they prove
    Verify(VerifyArgs),
}

/// `veilsum evidence verify`
#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// The evidence, as a site or coordinator wrote it
    #[arg(value_name = "FILE.json")]
    pub file: PathBuf,
    /// The federation's roster
    #[arg(long, value_name = "FILE", default_value = "roster.toml")]
    pub roster: PathBuf,
    /// The plan
    #[arg(long, value_name = "FILE", default_value = "plan.toml")]
    pub plan: PathBuf,
}

impl Verb for EvidenceArgs {
    /// Runs `veilsum evidence`.
    ///
    /// # Errors
    /// A [`Failure`] where the file cannot be read or proves nothing.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let args = self;
        let EvidenceCommand::Verify(args) = &args.command;
        let federation = documents::load_federation(&args.roster, &args.plan)?;
        let finding = evidence::verify(&args.file, &federation)?;
        let value = json!({ "proven": true, "culprit": finding.culprit, "rule": finding.rule, "what": finding.what });
        let text = format!(
            "proven: {} {} [{}]\nIts own signatures show it; nothing else in the file was taken on trust.",
            finding.culprit, finding.what, finding.rule
        );
        crate::verb::print(json, &value, &text)
    }
}
