//! `veilsum plan`: make, check, show. `make` makes a plan, and `say` says what one means.

use clap::{Args, Subcommand};

use crate::{
    page::Print,
    privacy::PrivacyArgs,
    propose::{ProposeArgs, StopArgs, propose, stop},
    verb::Verb,
};
use veilsum_node::{documents, error::Failure};

mod agree;
mod make;
mod say;

pub(crate) use make::{MakeArgs, made};
use say::ReadArgs;

/// Say what is computed: make, check, show, agree, propose, privacy, stop
#[derive(Args, Debug)]
pub(crate) struct PlanArgs {
    /// What to do with it
    #[command(subcommand)]
    pub command: PlanCommand,
}

/// What to do with a plan.
#[derive(Subcommand, Debug)]
pub(crate) enum PlanCommand {
    /// Make a plan and sign it with the coordinator's key
    Make(Box<MakeArgs>),
    /// Say what a verified plan means: thresholds, precision, bytes, warnings
    Check(CheckArgs),
    /// Print a verified plan
    Show(ReadArgs),
    /// Agree, for a site, to a plan without noise: it shows what the plan asks and what may follow
    Agree(agree::AgreeArgs),
    /// Ask every party what it would answer to the plan, before any key is exchanged, and begin the run
    Propose(ProposeArgs),
    /// End the run that goes on for everybody; what is out so far is the result
    Stop(StopArgs),
    /// Write a privacy report for assessors: which data, for what, who sees what, how long, and what if it goes wrong
    Privacy(PrivacyArgs),
}

/// `veilsum plan check`
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// Which plan.
    #[command(flatten)]
    pub of: ReadArgs,
    /// The page.
    #[command(flatten)]
    pub print: Print,
}

impl Verb for PlanArgs {
    /// Runs `veilsum plan`.
    ///
    /// # Errors
    /// A [`Failure`] that names the option or file at fault.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let args = self;
        match &args.command {
            PlanCommand::Make(a) => make::make(a, json),
            PlanCommand::Agree(a) => agree::agree(a, json),
            PlanCommand::Propose(a) => propose(a, json),
            PlanCommand::Stop(a) => stop(a, json),
            PlanCommand::Check(a) => {
                let federation = documents::load_federation(&a.of.roster, &a.of.plan)?;
                say::check(&federation, (&a.of.plan, a.print.html.as_deref()), None, json)
            }
            PlanCommand::Privacy(a) => a.run(json),
            PlanCommand::Show(a) => {
                let federation = documents::load_federation(&a.roster, &a.plan)?;
                crate::verb::print(json, &say::to_json(&federation)?, &say::to_text(&federation))
            }
        }
    }
}
