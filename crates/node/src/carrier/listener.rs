//! A listener, and the door that every peer passes on its way in, with the limits that hold for all carriers.

use std::{
    any::Any,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::timeout,
};

use super::{
    Allowed, HeaderCheck, MAX_HANDSHAKES, MAX_OPENING_PER_KEY, PeerKey,
    link::{Bytes, Closing, Connection, Link, Pending},
    places::Places,
};

/// Where a port listens, which tells its number where 0 was asked for, and what keeps it open. Dropping that stops new links; links
/// that exist go on.
pub type Opened = (SocketAddr, Box<dyn Any + Send>);

/// An open port that turns dialling peers into links. Dropping it stops new ones; links that exist go on.
pub struct Listener {
    /// The port.
    pub port: Opened,
    /// The links that come through its door: of peers that hold an allowed key and have begun their first frame.
    pub links: mpsc::Receiver<Link>,
}

impl Listener {
    /// Where it listens: tells the port where 0 was asked for.
    pub fn local_addr(&self) -> SocketAddr {
        self.port.0
    }

    /// The next link; nothing where the listener is finished. Peers that are refused are none of them. Cancel-safe.
    pub async fn accept(&mut self) -> Option<Link> {
        self.links.recv().await
    }
}

/// A peer after its handshake: its key is proven and allowed, and it has not sent a byte yet.
pub struct Guest {
    /// Its key.
    pub peer: PeerKey,
    /// Its connection.
    pub connection: Arc<dyn Connection>,
    /// Gives both directions once its first bytes are here; nothing where the connection ends before.
    pub opening: Pending<'static, Option<Bytes>>,
}

/// Decides who comes in, and how many may be on their way in at a time.
pub struct Door {
    allowed: Allowed,
    check: HeaderCheck,
    /// Handshakes with a key that is not allowed, and attempts for which there was no place.
    unknown: Times,
    busy: Times,
    handshakes: Arc<Semaphore>,
    /// Of connections between handshake and first frame, by key.
    openings: Places<PeerKey>,
    links: mpsc::Sender<Link>,
}

impl Door {
    /// A door for peers whose key is `allowed`, and the links of those that came through it.
    pub fn new(allowed: Allowed, check: HeaderCheck) -> (Arc<Door>, mpsc::Receiver<Link>) {
        // One place: a link that nobody accepts keeps its task, and its task keeps its place among those of its key.
        let (links, accepted) = mpsc::channel(1);
        let handshakes = Arc::new(Semaphore::new(MAX_HANDSHAKES));
        let (unknown, busy, openings) = (Times::default(), Times::default(), Places::new(MAX_OPENING_PER_KEY));
        (Arc::new(Door { allowed, check, unknown, busy, handshakes, openings, links }), accepted)
    }

    /// Whether this key may connect. That one may not is told, without it and its address.
    pub fn lets_in(&self, key: &PeerKey) -> bool {
        let allowed = (self.allowed)(key);
        if !allowed && let Some(refused) = self.unknown.one_more() {
            tracing::warn!(refused, "refused a peer: its key is not on the roster");
        }
        allowed
    }

    /// A place among the handshakes of a carrier that keeps no list of its own, to be handed to [`Door::admit`]; nothing where too many
    /// run, which is counted.
    pub fn place(&self) -> Option<OwnedSemaphorePermit> {
        let place = self.handshakes.clone().try_acquire_owned().ok();
        if place.is_none() {
            self.turned_away();
        }
        place
    }

    /// Counts an attempt for which there was no place.
    pub fn turned_away(&self) {
        if let Some(times) = self.busy.one_more() {
            tracing::warn!(times, "turned a connection away: too many are opening");
        }
    }

    /// Brings one peer from its handshake, of which nothing comes where it fails, to its first bytes, each within `limit`, and hands its link
    /// to the listener.
    pub async fn admit(
        &self,
        place: impl Send,
        limit: Duration,
        handshake: impl Future<Output = Option<Guest>> + Send,
    ) {
        let shaken = timeout(limit, handshake).await;
        drop(place);
        let Ok(Some(guest)) = shaken else { return };
        let Some(_place) = self.openings.take(guest.peer) else {
            return guest.connection.close(Closing::Done, "too many connections of this key are opening");
        };
        match timeout(limit, guest.opening).await {
            Ok(Some(bytes)) => {
                // Fails where the listener is gone; the link is then closed by being dropped.
                let _ = self.links.send(Link::new(guest.connection, guest.peer, bytes, self.check)).await;
            }
            Ok(None) | Err(_) => guest.connection.close(Closing::TooSlow, "no frame came in time"),
        }
    }
}

/// How often something happened that strangers bring about.
#[derive(Default)]
pub(crate) struct Times(AtomicU64);

impl Times {
    /// Counts once more. The number where it is to be told: the 1st, 2nd, 4th, 8th ... time, for strangers decide how often it happens.
    pub(crate) fn one_more(&self) -> Option<u64> {
        let times = self.0.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        times.is_power_of_two().then_some(times)
    }
}
