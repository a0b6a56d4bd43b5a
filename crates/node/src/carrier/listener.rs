//! A listener, and the door that every peer passes on its way in, with the limits that hold for all carriers.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::timeout,
};

use super::{
    Allowed, CarrierError, HeaderCheck, MAX_HANDSHAKES, MAX_OPENING_PER_KEY, PeerKey, Result,
    link::{Bytes, Closing, Connection, Link, Pending},
    places::Places,
};
use crate::store::held;

/// Peers that a listener turned away, since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Handshakes with a key that is not allowed.
    pub unknown_key: u64,
    /// The last of those keys. It proved nothing: show it to an operator, don't add it to a roster unasked.
    pub last_unknown: Option<PeerKey>,
    /// Handshakes that failed otherwise or took too long.
    pub failed: u64,
    /// Peers that were let in and sent no frame in time, or had too many connections opening.
    pub silent: u64,
    /// Attempts turned away because [`MAX_HANDSHAKES`] were running.
    pub busy: u64,
}

/// The open port of a carrier. Dropping it stops new links; links that exist go on.
pub trait Port: Send + Sync {
    /// Shuts the port and every link that came through it, and waits a moment for the peers to be told.
    fn close<'a>(&'a self, reason: &'a str) -> Pending<'a, ()>;
}

/// Where a port listens, which tells its number where 0 was asked for, and the port.
pub type Opened = (SocketAddr, Box<dyn Port>);

/// An open port that turns dialling peers into links. Dropping it stops new ones; links that exist go on.
pub struct Listener {
    port: Opened,
    links: mpsc::Receiver<Link>,
    door: Arc<Door>,
}

impl Listener {
    /// The links that come through this door.
    pub fn new(port: Opened, door: Arc<Door>, links: mpsc::Receiver<Link>) -> Listener {
        Listener { port, links, door }
    }

    /// Where it listens: tells the port where 0 was asked for.
    pub fn local_addr(&self) -> SocketAddr {
        self.port.0
    }

    /// The next peer that holds an allowed key and has begun its first frame. Peers that are refused show up in
    /// [`Self::refusals`] and nowhere else: an error here means that the listener is finished. Cancel-safe.
    pub async fn accept(&mut self) -> Result<Link> {
        self.links.recv().await.ok_or_else(|| CarrierError::closed("this listener is shut"))
    }

    /// How many were turned away so far.
    pub fn refusals(&self) -> Refusals {
        *self.door.refusals()
    }

    /// Shuts the port and every link that came through it, and waits up to [`super::CLOSE_GRACE`] for the peers to be told.
    pub async fn close(self, reason: &str) {
        self.port.1.close(reason).await;
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

/// How a handshake came to nothing.
pub enum Refused {
    /// Its key is not allowed; [`Door::lets_in`] has counted it.
    UnknownKey,
    /// It failed otherwise.
    Failed,
}

/// Decides who comes in, and how many may be on their way in at a time.
pub struct Door {
    allowed: Allowed,
    check: HeaderCheck,
    refusals: Mutex<Refusals>,
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
        let (refusals, openings) = (Mutex::default(), Places::new(MAX_OPENING_PER_KEY));
        (Arc::new(Door { allowed, check, refusals, handshakes, openings, links }), accepted)
    }

    /// Whether this key may connect. One that may not is counted.
    pub fn lets_in(&self, key: &PeerKey) -> bool {
        if (self.allowed)(key) {
            return true;
        }
        let mut refusals = self.refusals();
        refusals.unknown_key = refusals.unknown_key.saturating_add(1);
        refusals.last_unknown = Some(*key);
        // Strangers decide how often this happens, so not every time makes a line: the 1st, 2nd, 4th, 8th ... does.
        // Neither address nor key is logged; an operator who wants to know asks the listener.
        if refusals.unknown_key.is_power_of_two() {
            tracing::warn!(refused = refusals.unknown_key, "refused a peer: its key is not on the roster");
        }
        false
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
        let mut refusals = self.refusals();
        count(&mut refusals.busy);
        if refusals.busy.is_power_of_two() {
            tracing::warn!(times = refusals.busy, "turned a connection away: too many are opening");
        }
    }

    /// Brings one peer from its handshake to its first bytes, each within `limit`, and hands its link to the listener.
    pub async fn admit(
        &self,
        place: impl Send,
        limit: Duration,
        handshake: impl Future<Output = Result<Guest, Refused>> + Send,
    ) {
        let shaken = timeout(limit, handshake).await;
        drop(place);
        let guest = match shaken {
            Ok(Ok(guest)) => guest,
            Ok(Err(Refused::UnknownKey)) => return,
            Ok(Err(Refused::Failed)) | Err(_) => return count(&mut self.refusals().failed),
        };
        let Some(_place) = self.openings.take(guest.peer) else {
            count(&mut self.refusals().silent);
            return guest.connection.close(Closing::Done, "too many connections of this key are opening");
        };
        match timeout(limit, guest.opening).await {
            Ok(Some(bytes)) => {
                // Fails where the listener is gone; the link is then closed by being dropped.
                let _ = self.links.send(Link::new(guest.connection, guest.peer, bytes, self.check)).await;
            }
            Ok(None) | Err(_) => {
                count(&mut self.refusals().silent);
                guest.connection.close(Closing::TooSlow, "no frame came in time");
            }
        }
    }

    fn refusals(&self) -> MutexGuard<'_, Refusals> {
        held(&self.refusals)
    }
}

fn count(counter: &mut u64) {
    *counter = counter.saturating_add(1);
}
