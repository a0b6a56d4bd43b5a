//! How a run ends at an aggregator: the last word to everybody, what sites answer to it, and the closed port.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use veilsum_proto::{
    message::{self, Kind},
    roster::PartyId,
    suite::Hash,
};

use super::AggregatorHost;
use crate::{
    app_messages::Countersigned,
    role::door::{FINISH_LIMIT, LinkEvent, Outgoing},
    traffic::Traffic,
};

/// How long sites may take to recompute a result and sign it: a second where nothing else is done, and many on a busy machine. A site
/// that hangs holds up the end of the run so long, and the result not at all.
const COUNTERSIGN_LIMIT: Duration = Duration::from_secs(120);

impl AggregatorHost {
    /// Tells everybody the last word, waits until it is acknowledged, and closes the port.
    pub async fn close(mut self, last: impl Fn(PartyId) -> Option<(Kind, Vec<u8>)>) -> Traffic {
        self.tell_last(&last);
        self.finish().await
    }

    /// Tells everybody the last word.
    fn tell_last(&mut self, last: &impl Fn(PartyId) -> Option<(Kind, Vec<u8>)>) {
        let parties: Vec<PartyId> = self.peers.keys().copied().collect();
        for party in parties {
            if let Some((kind, message)) = last(party) {
                let (identity, session) = (&self.party.identity, &self.session);
                let bytes = message::frame_encoded(identity, session, kind, &Hash::default(), &message);
                self.send(party, Arc::new(bytes));
            }
        }
    }

    /// The same, with the sites' answers to it ([RES-3]): each is waited for until it has answered or hung up, all for
    /// [`COUNTERSIGN_LIMIT`] at most.
    pub(in crate::role) async fn close_countersigned(
        mut self,
        last: impl Fn(PartyId) -> Option<(Kind, Vec<u8>)>,
        mut take: impl FnMut(u16, Countersigned),
    ) -> Traffic {
        self.tell_last(&last);
        let site = |party: &PartyId| matches!(party, PartyId::Site(_));
        let mut awaited: BTreeSet<PartyId> = self.peers.keys().copied().filter(site).collect();
        let end = tokio::time::Instant::now() + COUNTERSIGN_LIMIT;
        while !awaited.is_empty() {
            let Ok(Some(event)) = tokio::time::timeout_at(end, self.events.recv()).await else { break };
            match event {
                LinkEvent::Down { party, id, why } => {
                    let gone = self.down(party, id, &why);
                    awaited.retain(|known| !gone || *known != party);
                }
                LinkEvent::Frame { party: party @ PartyId::Site(number), id, bytes, room: _room }
                    if message::kind_of(&bytes) == Some(Kind::Countersigned) && self.is_heard(party, id, &bytes) =>
                {
                    match self.open_control(party, Kind::Countersigned, &bytes) {
                        Ok(message) => take(number, message),
                        Err(e) => tracing::warn!("a signature on the result was not taken: {e}"),
                    }
                    awaited.remove(&party);
                }
                _ => {}
            }
        }
        self.finish().await
    }

    /// Waits until everything is acknowledged, and closes the port.
    async fn finish(mut self) -> Traffic {
        self.entrance = None;
        let mut waiting = tokio::task::JoinSet::new();
        for (_, peer) in std::mem::take(&mut self.peers) {
            waiting.spawn(async move {
                let _ = peer.frames.send(Outgoing::Finish).await;
                peer.frames.closed().await;
            });
        }
        let all = async { while waiting.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(FINISH_LIMIT + Duration::from_secs(1), all).await;
        self.traffic
    }
}
