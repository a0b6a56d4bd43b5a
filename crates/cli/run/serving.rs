//! The coordinator as a service: it lets parties join, and runs what `plan propose` begins.

use std::sync::Arc;

use veilsum_node::{
    documents::GuestList,
    error::Failure,
    role::{
        lobby::News,
        service::{self, ServiceConfig},
    },
};

use super::args::RunArgs;
use crate::{
    federation::identity_of,
    party::{block_on, elsewhere, listen_at, state_beside},
};

/// Until it is told to stop, which is how this command ends in good order.
pub(super) fn serve(args: &RunArgs, json: bool) -> Result<(), Failure> {
    let folder = &args.folder;
    let list = GuestList::load(folder)?;
    let identity = Arc::new(identity_of(folder, &list)?);
    let listen = listen_at(args.listen, &list.coordinator)?;
    let key = folder.join(format!("{}.key", list.coordinator.name));
    elsewhere(listen, &list.coordinator).iter().for_each(|warning| crate::tell!("{warning}"));
    let (federation, protocols) = (list.federation, args.reach.transport.protocols());
    let (bound, opened) = tokio::sync::oneshot::channel();
    let config = ServiceConfig {
        identity,
        folder: folder.clone(),
        state: state_beside(&key, args.own.state.as_ref()),
        carrier: args.reach.carrier()?,
        listen,
        timing: args.patience.timing(),
        on_loss: args.patience.on_loss.within(args.patience.loss_wait),
        news: Arc::new(move |news| told(&news)),
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

fn told(news: &News) {
    match news {
        News::Waiting { party, role, key } => crate::tell!(
            "{party} ({}) waits, with the key {key}: let its operator read 12 digits to you, on a number that you know, then: veilsum \
             federation approve {party}=DIGITS",
            role.name()
        ),
        News::Has(party) => crate::tell!("{party} has roster and plan"),
        News::Here(party) => crate::tell!("{party} stands by"),
        News::Past { party, number } => crate::tell!(
            "{party} takes no part in run {number} any more, as its own operator was told, and stands by for the next one: where the run waits for \
             it, `veilsum plan stop` ends it"
        ),
        News::Gone(party) => crate::tell!("{party} does not stand by any more"),
        News::Answers { party, answer } => crate::tell!("{party}: {answer}"),
        News::Begins { number, folder } => {
            crate::tell!("run {number} goes on; its result will be in {}", folder.display())
        }
        News::Behind { party, number } => crate::tell!(
            "{party} has taken part in run {number}, which this folder does not know: was it put back from a backup? The next run is counted on \
             from there"
        ),
        News::Full(why) => crate::tell!("{why}; it is tried again, and nobody is told that a run is over"),
        News::Ended { number, how } => crate::tell!("run {number} has ended: {how}"),
        News::TurnedAway { count, why } => crate::tell!("turned away so far: {count}; the last one because: {why}"),
        News::Unusable(why) => crate::tell!("not handed out: {why}"),
    }
}
