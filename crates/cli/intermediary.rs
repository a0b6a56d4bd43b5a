//! `veilsum intermediary`: the party that counts rows, in a process of its own.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;
use serde_json::json;
use veilsum_node::{
    cost,
    error::Failure,
    role::{
        intermediary::{self, IntermediaryConfig},
        status::Window,
    },
};
use veilsum_proto::roster::PartyId;

use crate::{
    agree::FirstUse,
    party::{Documents, Patience, Reach, address_of, block_on, elsewhere, listen_at, state_of},
    verb::Verb,
    watch::Watch,
};

/// Run the intermediary: it sums the masked row counts and never sees a centre
#[derive(Args, Debug)]
pub(crate) struct IntermediaryArgs {
    /// Roster, plan and key.
    #[command(flatten)]
    pub documents: Documents,
    /// Which way links take.
    #[command(flatten)]
    pub reach: Reach,
    /// Timeouts.
    #[command(flatten)]
    pub patience: Patience,
    /// What shows how the run goes.
    #[command(flatten)]
    pub watch: Watch,
    /// What the first use of a roster needs.
    #[command(flatten)]
    pub first: FirstUse,
    /// Address to listen on [default: the roster's port on all interfaces]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
    /// Folder for the journal from which a restart goes on [default: beside the key]
    ///
    /// It has mode 0700.
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

impl Verb for IntermediaryArgs {
    /// Runs the intermediary.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let config = self.prepare(json)?;
        let window = Window::open(&state_of(&self.documents.key()?, self.state.as_ref()), "", "");
        block_on(count(config, &window, json))
    }
}

impl IntermediaryArgs {
    /// Reads all that a run needs, and asks whether this party agreed to the roster. Nothing is dialled.
    ///
    /// # Errors
    /// A [`Failure`] that names the file at fault.
    pub(crate) fn prepare(&self, json: bool) -> Result<IntermediaryConfig, Failure> {
        let args = self;
        let (federation, identity, _) =
            args.documents.load_with("intermediary", |id| id == PartyId::Intermediary, args.state.as_ref())?;
        args.documents.agree(&args.first, &federation, &identity, None)?;
        let listen = listen_at(args.listen, &federation.roster.intermediary)?;
        let coordinator = address_of(&federation.roster.coordinator)?;
        if let Some(warning) = elsewhere(listen, &federation.roster.intermediary).filter(|_| !json) {
            crate::tell!("{warning}");
        }
        if !json {
            crate::tell!(
                "waiting for {} sites on {listen} ({}), and for {} at {coordinator}",
                federation.roster.sites.len(),
                args.reach.transport.protocols(),
                federation.roster.coordinator.name,
            );
        }
        let state = state_of(&args.documents.key()?, args.state.as_ref());
        Ok(IntermediaryConfig {
            party: args.reach.party(identity, federation.clone(), args.watch.watcher(json)?)?,
            listen,
            coordinator,
            timing: args.patience.timing(),
            on_loss: args.patience.on_loss.within(args.patience.loss_wait),
            state: Some(state),
            bound: None,
        })
    }
}

/// Counts in one run, and prints what comes of it.
///
/// # Errors
/// A [`Failure`] with its exit code.
pub(crate) async fn count(mut config: IntermediaryConfig, window: &Window, json: bool) -> Result<(), Failure> {
    window.watch(&mut config.party, PartyId::Intermediary);
    let counted = intermediary::run(config).await?;
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
