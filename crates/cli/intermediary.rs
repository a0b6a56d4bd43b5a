//! `veilsum intermediary`: the party that counts rows, in a process of its own.

use std::net::SocketAddr;

use clap::Args;
use serde_json::json;
use veilsum_node::{
    cost,
    error::Failure,
    role::{
        config::Party,
        intermediary::{self, IntermediaryConfig},
    },
};
use veilsum_proto::roster::PartyId;

use crate::{
    agree::FirstUse,
    party::{Documents, Patience, block_on, listen_at, resolve, unless_interrupted},
    verb::Verb,
};

/// Run the intermediary: it sums the masked row counts and never sees a centre
#[derive(Args, Debug)]
pub(crate) struct IntermediaryArgs {
    /// Roster, plan and key.
    #[command(flatten)]
    pub documents: Documents,
    /// Timeouts.
    #[command(flatten)]
    pub patience: Patience,
    /// What the first use of a roster needs.
    #[command(flatten)]
    pub first: FirstUse,
    /// Address to listen on (UDP) [default: the roster's port on all interfaces]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
}

impl Verb for IntermediaryArgs {
    /// Runs the intermediary.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let args = self;
        let (federation, identity, _) = args.documents.load("intermediary", |id| id == PartyId::Intermediary)?;
        args.documents.agree(&args.first, &federation, &identity, None)?;
        let listen = listen_at(args.listen, &federation.roster.intermediary)?;
        let coordinator = resolve(&federation.roster.coordinator)?;
        if !json {
            crate::tell!(
                "waiting for {} at {coordinator}, then for {} sites on {listen} (UDP)",
                federation.roster.coordinator.name,
                federation.roster.sites.len()
            );
        }
        // Nobody is told: it keeps nothing that a restart would need, and counts again when it is back.
        let counted = block_on(unless_interrupted(
            intermediary::run(IntermediaryConfig {
                party: Party::new(identity, federation.clone()),
                listen,
                coordinator,
                timing: args.patience.timing(),
                on_loss: args.patience.on_loss.within(args.patience.loss_wait),
                bound: None,
            }),
            "start it again while the coordinator waits for it; the rows are then counted again",
        ))?;
        if json {
            crate::say!(
                "{}",
                json!({"cohort": counted.cohort, "n_total": counted.total, "handed_over": counted.handed_over,
                       "traffic": counted.traffic})
            );
        } else {
            crate::say!(
                "counted {} over {}",
                cost::counted(counted.total as usize, "row"),
                cost::counted(counted.cohort.len(), "site")
            );
            if !counted.handed_over {
                crate::say!("the total was withheld from the coordinator: a counted site left the run before its end");
            }
        }
        Ok(())
    }
}
