//! `veilsum server`: the coordinator, in a process of its own.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;
use veilsum_node::{
    error::Failure,
    report,
    role::{
        server::{self, ServerConfig},
        status,
    },
};
use veilsum_proto::roster::PartyId;

use crate::party::{
    Documents, Patience, Reach, block_on, elsewhere, listen_at, place_for, state_of, warn_of_replacing,
};
use crate::verb::Verb;
use crate::watch::Watch;

/// Run the coordinator: it asks the questions of the plan's method and sees totals only
#[derive(Args, Debug)]
pub(crate) struct ServerArgs {
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
    /// Address to listen on [default: the roster's port on all interfaces]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
    /// Folder for result.json and model.json
    #[arg(long, value_name = "DIR", default_value = "veilsum-out")]
    pub out: PathBuf,
    /// Folder for the journal from which a restart takes the run up [default: beside the key]
    ///
    /// It has mode 0700.
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

impl Verb for ServerArgs {
    /// Runs the coordinator.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let args = self;
        let mut config = args.prepare(json)?;
        let state = state_of(&args.documents.key()?, args.state.as_ref());
        let _window = status::show(&mut config.party, PartyId::Coordinator, &state);
        let (result, written) = block_on(server::run_and_write(config, &args.out))?;
        crate::say!("{}", report::of_server(&result, &written, json).trim_end());
        result.ended_early.map_or(Ok(()), |early| Err(early.failure()))
    }
}

impl ServerArgs {
    /// Reads all that a run needs. No port is opened.
    ///
    /// # Errors
    /// A [`Failure`] that names the file at fault.
    pub(crate) fn prepare(&self, json: bool) -> Result<ServerConfig, Failure> {
        let args = self;
        let (federation, identity, _) = args.documents.load("coordinator", |id| id == PartyId::Coordinator)?;
        let listen = listen_at(args.listen, &federation.roster.coordinator)?;
        place_for(&args.out.join("result.json"))?;
        warn_of_replacing(&args.out.join("result.json"), &federation.terms, "--out");
        if let Some(warning) = elsewhere(listen, &federation.roster.coordinator).filter(|_| !json) {
            crate::tell!("{warning}");
        }
        if !json {
            crate::tell!(
                "waiting for {} sites on {listen} ({})",
                federation.roster.sites.len(),
                args.reach.transport.protocols()
            );
        }
        let state = state_of(&args.documents.key()?, args.state.as_ref());
        Ok(ServerConfig {
            party: args.reach.party(identity, federation, args.watch.watcher(json)?)?,
            entrance: listen.into(),
            without: Vec::new(),
            timing: args.patience.timing(),
            on_loss: args.patience.on_loss.within(args.patience.loss_wait),
            evidence: Some(args.out.clone()),
            out: None,
            state: Some(state),
            bound: None,
        })
    }
}
