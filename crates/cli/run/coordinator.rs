//! The coordinator in one run.

use veilsum_node::{
    error::Failure,
    report,
    role::{
        server::{self, ServerConfig},
        status,
    },
};
use veilsum_proto::roster::PartyId;

use super::args::RunArgs;
use crate::party::{block_on, elsewhere, listen_at, place_for, warn_of_replacing};

/// Runs the coordinator in the one run of a plan.
pub(super) fn run(args: &RunArgs, json: bool) -> Result<(), Failure> {
    let mut config = prepare(args, json)?;
    let _window = status::show(&mut config.party, PartyId::Coordinator, &args.state()?);
    let (result, written) = block_on(server::run_and_write(config, &args.out))?;
    crate::say!("{}", report::of_server(&result, &written, json).trim_end());
    result.ended_early.map_or(Ok(()), |early| Err(early.failure()))
}

/// Reads all that a run needs. No port is opened.
///
/// # Errors
/// A [`Failure`] that names the file at fault.
pub(crate) fn prepare(args: &RunArgs, json: bool) -> Result<ServerConfig, Failure> {
    let (federation, identity) = args.documents()?.load("the coordinator", |id| id == PartyId::Coordinator, None)?;
    let listen = listen_at(args.listen, &federation.roster.coordinator)?;
    let result = args.out.join("result.json");
    place_for(&result)?;
    warn_of_replacing(&result, &federation.terms);
    if !json {
        elsewhere(listen, &federation.roster.coordinator).iter().for_each(|warning| crate::tell!("{warning}"));
        crate::tell!(
            "waiting for {} sites on {listen} ({})",
            federation.roster.sites.len(),
            args.reach.transport.protocols()
        );
    }
    Ok(ServerConfig {
        party: args.reach.party(identity, federation, args.watch.watcher(json)?)?,
        entrance: listen.into(),
        without: Vec::new(),
        timing: args.patience.timing(),
        on_loss: args.patience.on_loss.within(args.patience.loss_wait),
        evidence: Some(args.out.clone()),
        out: None,
        state: Some(args.state()?),
        bound: None,
    })
}
