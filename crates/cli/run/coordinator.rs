//! The coordinator in one run.

use veilsum_node::{error::Failure, role::server::ServerConfig};

use super::args::RunArgs;
use crate::party::{listen_at, place_for, warn_of_elsewhere, warn_of_replacing};

/// Reads all that a run needs. No port is opened.
///
/// # Errors
/// A [`Failure`] that names the file at fault.
pub(crate) fn prepare(args: &RunArgs, json: bool) -> Result<ServerConfig, Failure> {
    let (federation, identity) = args.load("the coordinator")?;
    let listen = listen_at(args.listen, &federation.roster.coordinator)?;
    let result = args.out.join("result.json");
    place_for(&result)?;
    warn_of_replacing(&result, &federation.terms);
    if !json {
        warn_of_elsewhere(listen, &federation.roster.coordinator);
        let protocols = args.reach.transport.protocols();
        crate::tell!("waiting for {} sites on {listen} ({protocols})", federation.roster.sites.len());
    }
    Ok(ServerConfig {
        party: args.reach.party(identity, federation, args.watch.watcher(json)?)?,
        entrance: listen.into(),
        without: Vec::new(),
        timing: args.patience.timing(),
        loss_wait: args.patience.loss_wait(),
        state: Some(args.state_for(&args.key()?, false)?),
    })
}
