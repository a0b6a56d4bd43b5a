//! What leaves a process: the one type that links take ([LED-4]). A frame of a site is of a kind in which its rows have no part, or its
//! ledger has an entry of it; there is no third way to make one.

use std::sync::Arc;

use serde::Serialize;
use veilsum_door::Entered;
use veilsum_proto::{identity::Identity, message::Kind, suite::Hash};

use crate::app_messages::{self, Aborted, CentreDistances, CountReady, CountReply, Hello, JudgeReply};

/// A frame that may leave.
#[derive(Clone)]
pub struct Egress(Arc<Vec<u8>>);

mod sealed {
    pub trait Sealed {}
}

/// A message in which the sender's rows have no part.
pub trait Public: Serialize + sealed::Sealed {}

macro_rules! public {
    ($($name:ty),*) => { $(
        impl sealed::Sealed for $name {}
        impl Public for $name {}
    )* };
}

// The first two are a site's: which documents it holds, and what follows from the coordinator's question. The others are aggregators'.
public!(Hello, CentreDistances, Aborted, CountReady, CountReply, JudgeReply);

impl Egress {
    /// A control message of a session, signed.
    pub(crate) fn control<T: Public>(identity: &Identity, session: &Hash, kind: Kind, message: &T) -> Egress {
        Egress(Arc::new(app_messages::frame(identity, session, kind, message)))
    }

    /// A frame of the lobby: its messages are about keys, rosters and plans ([JOI-7]).
    pub(crate) fn of_the_lobby(frame: Vec<u8>) -> Egress {
        Egress(Arc::new(frame))
    }

    /// What an aggregator sends.
    pub(crate) fn of_an_aggregator(frame: Arc<Vec<u8>>) -> Egress {
        Egress(frame)
    }

    /// A site's frame that its ledger has an entry of.
    pub(crate) fn in_ledger(frame: Arc<Vec<u8>>, _: Entered) -> Egress {
        Egress(frame)
    }

    /// Another process's bytes: of a test that is a broken or hostile peer, or of a site in another language behind a relay.
    #[cfg(any(test, feature = "testing"))]
    pub fn foreign(frame: &[u8]) -> Egress {
        Egress(Arc::new(frame.to_vec()))
    }

    /// Header and body.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}
