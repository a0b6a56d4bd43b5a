//! The coordinator as a service: it lets parties join, and runs what `plan propose` begins.

use std::sync::Arc;

use veilsum_node::{
    documents::GuestList,
    error::Failure,
    role::service::{self, ServiceConfig},
};

use super::args::RunArgs;
use crate::{
    federation::identity_of,
    party::{block_on, listen_at, state_beside, warn_of_elsewhere},
};

/// Until it is told to stop, which is how this command ends in good order.
pub(super) fn serve(args: &RunArgs, json: bool) -> Result<(), Failure> {
    let folder = &args.folder;
    let list = GuestList::load(folder)?;
    let identity = Arc::new(identity_of(folder, &list)?);
    let listen = listen_at(args.listen, &list.coordinator)?;
    let key = folder.join(format!("{}.key", list.coordinator.name));
    warn_of_elsewhere(listen, &list.coordinator);
    let (federation, protocols) = (list.federation, args.reach.transport.protocols());
    let (bound, opened) = tokio::sync::oneshot::channel();
    let config = ServiceConfig {
        identity,
        folder: folder.clone(),
        state: state_beside(&key, args.own.state.as_ref()),
        carrier: args.reach.carrier()?,
        listen,
        timing: args.patience.timing(),
        loss_wait: args.patience.loss_wait(),
        news: Arc::new(|told| crate::tell!("{told}")),
        progress: args.watch.watcher(json)?,
        bound: Some(bound),
    };
    block_on(async {
        let told = async {
            if let Ok(at) = opened.await {
                crate::tell!("the lobby of {federation} is open on {at} ({protocols})");
            }
            std::future::pending().await
        };
        tokio::select! { ended = service::run(config) => ended, never = told => never }
    })
}
