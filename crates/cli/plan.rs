//! `veilsum plan`: new, check, propose, privacy, stop. `new` makes and signs plans, and `say` says what one means.

use clap::{Args, Subcommand};

use crate::{
    privacy::PrivacyArgs,
    propose::{ProposeArgs, StopArgs, propose, stop},
    verb::Verb,
};
use veilsum_node::error::Failure;

mod new;
mod say;

pub(crate) use new::{NewArgs, made};
pub(crate) use say::{ReadArgs, to_text};

/// Say what is computed: new, check, propose, privacy, stop
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
    New(Box<NewArgs>),
    /// Say what a verified plan means: thresholds, precision, bytes, warnings; --sign signs one that was changed by hand
    Check(new::CheckArgs),
    /// Ask every party what it would answer to the plan, before any key is exchanged, and begin the run
    Propose(ProposeArgs),
    /// End the run that goes on for everybody; what is out so far is the result
    Stop(StopArgs),
    /// Print a privacy report for assessors: which data, for what, who sees what, how long, and what if it goes wrong
    Privacy(PrivacyArgs),
}

impl Verb for PlanArgs {
    /// Runs `veilsum plan`.
    ///
    /// # Errors
    /// A [`Failure`] that names the option or file at fault.
    fn run(&self, json: bool) -> Result<(), Failure> {
        match &self.command {
            PlanCommand::New(a) => new::new(a, json),
            PlanCommand::Propose(a) => propose(a, json),
            PlanCommand::Stop(a) => stop(a, json),
            PlanCommand::Check(a) => new::check(a, json),
            PlanCommand::Privacy(a) => a.run(json),
        }
    }
}
