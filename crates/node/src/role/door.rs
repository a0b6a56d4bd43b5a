//! Who comes in at an aggregator: greets each link, gives one place a party, and moves the frames of those who have one.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use veilsum_proto::{
    message::{self, Kind},
    roster::PartyId,
};

use super::{config::Party, reception};
use crate::{
    app_messages::{self, Denied, Hello, SOFTWARE, Welcome},
    carrier::{CarrierError, LinkHandle, LinkReceiver, LinkSender, PeerKey},
    egress::Egress,
    store::held,
};

/// Frames that may wait for one slow link; more are dropped and sent again later.
const QUEUE: usize = 64;
/// KiB of received frames that may wait for the state machine, over all links; more are left with their senders.
const ROOM: usize = 256 << 10;
/// A peer that takes longer over one frame loses its link.
const SEND_LIMIT: Duration = Duration::from_secs(30);
/// How long the last frames may take to be acknowledged.
pub(super) const FINISH_LIMIT: Duration = Duration::from_secs(5);

/// What becomes of a party's link, which has a number.
pub(super) enum LinkEvent {
    Up { party: PartyId, id: u64, over: &'static str, frames: mpsc::Sender<Outgoing> },
    Frame { party: PartyId, id: u64, bytes: Vec<u8>, room: OwnedSemaphorePermit },
    Down { party: PartyId, id: u64, why: String },
    TurnedAway { party: PartyId, why: String },
}

/// What a link's task is given.
pub(super) enum Outgoing {
    Frame(Arc<Vec<u8>>),
    Finish,
}

/// A connection whose first frame is here.
pub(super) struct Visit {
    pub(super) handle: LinkHandle,
    pub(super) sender: LinkSender,
    pub(super) receiver: LinkReceiver,
    pub(super) first: Vec<u8>,
}

/// Who listens, and what it asks of those who come.
pub(super) struct Door {
    party: Party,
    hello: Hello,
    role: PartyId,
    events: mpsc::Sender<LinkEvent>,
    room: Arc<Semaphore>,
    places: Places,
    /// Links so far.
    links: AtomicU64,
}

impl Door {
    /// The door of this role; what comes through it is told to `events`.
    pub(super) fn new(party: Party, role: PartyId, events: mpsc::Sender<LinkEvent>) -> Door {
        let (roster, plan) = (party.federation.roster.hash(), party.federation.terms.hash());
        let hello = Hello { roster, plan: Some(plan), software: SOFTWARE.into() };
        let room = Arc::new(Semaphore::new(ROOM));
        Door { party, hello, role, events, room, places: Places::default(), links: AtomicU64::new(0) }
    }
}

/// Whose link is which: a key has one.
#[derive(Default)]
pub(super) struct Places(Mutex<HashMap<PeerKey, LinkHandle>>);

impl Places {
    /// [APP-1]: takes the place of the link's key, unless another process with it has one and answers.
    pub(super) async fn take(&self, link: &LinkHandle) -> bool {
        loop {
            let older = match self.links().entry(link.peer()) {
                Entry::Occupied(there) => there.get().clone(),
                Entry::Vacant(free) => {
                    free.insert(link.clone());
                    return true;
                }
            };
            if older.answers().await {
                return false;
            }
            self.leave(&older);
        }
    }

    /// Takes it, whoever has it; gives back the link that had it.
    pub(super) fn replace(&self, link: &LinkHandle) -> Option<LinkHandle> {
        self.links().insert(link.peer(), link.clone())
    }

    /// Whether it is this link's.
    pub(super) fn has(&self, link: &LinkHandle) -> bool {
        self.links().get(&link.peer()).is_some_and(|there| there.is_same(link))
    }

    /// The link is over.
    pub(super) fn leave(&self, link: &LinkHandle) {
        let mut links = self.links();
        if links.get(&link.peer()).is_some_and(|there| there.is_same(link)) {
            links.remove(&link.peer());
        }
    }

    fn links(&self) -> MutexGuard<'_, HashMap<PeerKey, LinkHandle>> {
        held(&self.0)
    }
}

/// A party's place, for as long as its link lasts.
struct Place<'a>(&'a Places, LinkHandle);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.leave(&self.1);
    }
}

/// Brings one link from its first frame to a place among the peers, then moves its frames.
pub(super) async fn greet(visit: Visit, door: Arc<Door>) {
    let Visit { handle, mut sender, receiver, first: bytes } = visit;
    let id = door.links.fetch_add(1, Ordering::Relaxed);
    let key = veilsum_proto::identity::PublicKey(handle.peer());
    let Some(party) = door.party.federation.roster.find(&key) else { return };
    let name = door.party.name_of(party);
    let session = app_messages::greeting_session();
    let knocks = message::kind_of(&bytes) == Some(Kind::Knock);
    let kind = if knocks { Kind::Knock } else { Kind::Hello };
    let verdict = match message::open::<Hello>(&bytes, &session, &key, &name, kind) {
        Err(e) => Err(Denied::Unread(e.to_string())),
        Ok(hello) if hello.roster != door.hello.roster => Err(Denied::Roster(door.hello.roster)),
        Ok(hello) if hello.plan != door.hello.plan => Err(Denied::Plan(door.party.federation.terms.hash())),
        Ok(_) if party == door.role => Err(Denied::Own),
        // [APP-9]: it takes no place, and whoever has one keeps it.
        Ok(_) if knocks => Ok(None),
        Ok(_) if door.places.take(&handle).await => Ok(Some(Place(&door.places, handle.clone()))),
        Ok(_) => Err(Denied::Taken),
    };
    let over = handle.over();
    drop(handle);
    let _place = match verdict {
        Ok(place) => place,
        Err(why) => {
            if knocks {
                tracing::info!(party = %name, "asked whether it would be let in, and would not: {why}");
            } else {
                tracing::warn!(party = %name, "not accepted: {why}");
            }
            reception::deny(&door.party.identity, sender, &why).await;
            if !knocks {
                let _ = door.events.send(LinkEvent::TurnedAway { party, why: why.to_string() }).await;
            }
            return;
        }
    };
    let welcome = Welcome { software: SOFTWARE.into() };
    let welcome = app_messages::frame(&door.party.identity, &session, Kind::Welcome, &welcome);
    if sender.send_within(&Egress::of_an_aggregator(Arc::new(welcome)), SEND_LIMIT).await.is_err() {
        return;
    }
    if knocks {
        let _ = sender.finish(FINISH_LIMIT).await;
        return;
    }
    let (frames, queue) = mpsc::channel(QUEUE);
    if door.events.send(LinkEvent::Up { party, id, over, frames }).await.is_err() {
        return;
    }
    let write = write(sender, queue);
    let read = read(receiver, party, id, &door);
    let why = tokio::select! { why = write => why, why = read => why };
    let why = why.map_or_else(|e| e.to_string(), |()| "it hung up".into());
    tracing::debug!(party = %name, "link ended: {why}");
    let _ = door.events.send(LinkEvent::Down { party, id, why }).await;
}

async fn write(mut sender: LinkSender, mut queue: mpsc::Receiver<Outgoing>) -> Result<(), CarrierError> {
    while let Some(outgoing) = queue.recv().await {
        match outgoing {
            Outgoing::Frame(bytes) => sender.send_within(&Egress::of_an_aggregator(bytes), SEND_LIMIT).await?,
            Outgoing::Finish => {
                sender.finish(FINISH_LIMIT).await?;
                return Ok(());
            }
        }
    }
    Ok(())
}

async fn read(mut receiver: LinkReceiver, party: PartyId, id: u64, door: &Door) -> Result<(), CarrierError> {
    while let Some(bytes) = receiver.recv().await? {
        // A body has at most 16 MiB, so its share of the room fits a u32 and can always be had.
        let share = (bytes.len() / 1024 + 1) as u32;
        let Ok(room) = door.room.clone().acquire_many_owned(share).await else { return Ok(()) };
        if door.events.send(LinkEvent::Frame { party, id, bytes, room }).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}
