//! The intermediary in one run: the party that counts rows.

use serde_json::json;
use veilsum_node::{
    cost,
    error::Failure,
    role::{
        intermediary::{self, IntermediaryConfig},
        reception::Entrance,
        status::Window,
    },
};
use veilsum_proto::roster::PartyId;

use super::args::RunArgs;
use crate::party::{address_of, listen_at, warn_of_elsewhere};

/// Reads all that a run needs, and asks whether this party agreed to the roster. Nothing is dialled.
///
/// # Errors
/// A [`Failure`] that names the file at fault.
pub(crate) fn prepare(args: &RunArgs, json: bool) -> Result<IntermediaryConfig, Failure> {
    let (federation, identity) = args.load("the intermediary")?;
    args.agree(&federation, &identity)?;
    let listen = listen_at(args.listen, &federation.roster.intermediary)?;
    let coordinator = address_of(&federation.roster.coordinator)?;
    if !json {
        warn_of_elsewhere(listen, &federation.roster.intermediary);
        let (protocols, name) = (args.reach.transport.protocols(), &federation.roster.coordinator.name);
        crate::tell!(
            "waiting for {} sites on {listen} ({protocols}), and for {name} at {coordinator}",
            federation.roster.sites.len()
        );
    }
    Ok(IntermediaryConfig {
        party: args.reach.party(identity, federation, args.watch.watcher(json)?)?,
        entrance: listen.into(),
        coordinator,
        timing: args.patience.timing(),
        loss_wait: args.patience.loss_wait(),
        state: Some(args.state_for(&args.key()?, false)?),
    })
}

/// Counts in one run, through a port of its own unless one is open already, and prints what comes of it.
///
/// # Errors
/// A [`Failure`] with its exit code.
pub(crate) async fn count(
    mut config: IntermediaryConfig,
    entrance: Option<Entrance>,
    window: &Window,
    json: bool,
) -> Result<(), Failure> {
    window.watch(&mut config.party, PartyId::Intermediary);
    config.entrance = entrance.unwrap_or(config.entrance);
    let counted = intermediary::run(config).await?;
    if json {
        crate::say!(
            "{}",
            json!({"cohort": counted.cohort, "n_total": counted.total, "handed_over": counted.handed_over,
                   "traffic": counted.traffic})
        );
    } else {
        let (rows, sites) = (cost::counted(counted.total as usize, "row"), cost::counted(counted.cohort.len(), "site"));
        crate::say!("counted {rows} over {sites}");
        if !counted.handed_over {
            crate::say!("the total was withheld from the coordinator: a counted site left the run before its end");
        }
    }
    Ok(())
}
