//! One port for everything that comes to a coordinator that serves: a connection's first frame says whether it is for the lobby or
//! for the run that goes on, and it stays there ([JOI-7]).

use std::{
    collections::HashSet,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::timeout,
};
use veilsum_proto::{
    identity::{Identity, PublicKey},
    message,
    roster::Roster,
};

use super::{
    config::Party,
    door::{self, Door, FINISH_LIMIT, Visit},
    lobby_frames,
};
use crate::{
    app_messages::{self, Denied},
    carrier::{self, Allowed, Carrier, CarrierError, Credentials, HEADER_LEN, Link, LinkSender, PeerKey, Times},
    egress::Egress,
    error::Failure,
    store::held,
};

/// Whoever has connected sends its first frame within this time.
const FIRST_FRAME: Duration = Duration::from_secs(10);
/// Visitors of the lobby that wait until they are looked at; more are left at the port.
const QUEUE: usize = 64;

/// Where those go who greet.
#[derive(Clone)]
enum Greeters {
    /// It is not known yet whether a run goes on.
    Wait,
    /// There is no run.
    Nowhere,
    /// There is none yet: who only knocks is told, and a party of the run that is about to begin waits for it.
    NotYet,
    /// To the run that goes on.
    To(Arc<Door>),
}

/// An open port, and the run whose parties come through it, if there is one.
pub struct Reception {
    address: SocketAddr,
    greeters: watch::Sender<Greeters>,
    /// Ends with it.
    _listening: JoinSet<()>,
}

impl Reception {
    /// Opens the port. Visitors of the lobby come out of the receiver.
    ///
    /// # Errors
    /// A [`Failure`] where the port cannot be opened.
    pub(super) async fn open(
        identity: Arc<Identity>,
        carrier: &dyn Carrier,
        listen: SocketAddr,
        allowed: Allowed,
    ) -> Result<(Reception, mpsc::Receiver<Visit>), Failure> {
        let credentials = Credentials::from_seed(&identity.seed())?;
        let mut listener = carrier::listen(carrier, listen, &credentials, allowed, first_frame).await?;
        let (visits, visitors) = mpsc::channel(QUEUE);
        let (greeters, lead) = watch::channel(Greeters::Wait);
        let address = listener.local_addr();
        let mut listening = JoinSet::new();
        listening.spawn(async move {
            let refused = Arc::new(Times::default());
            while let Some(link) = listener.accept().await {
                let to = (lead.clone(), visits.clone());
                drop(tokio::spawn(show_in(link, identity.clone(), to, refused.clone())));
            }
            tracing::error!("the listener is closed");
        });
        Ok((Reception { address, greeters, _listening: listening }, visitors))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether the parties of a run can greet.
    pub(super) fn leads(&self) -> bool {
        matches!(*self.greeters.borrow(), Greeters::To(_))
    }

    /// From now on whoever greets is told that no run goes on.
    pub fn nothing_goes_on(&self) {
        self.greeters.send_if_modified(|to| !matches!(std::mem::replace(to, Greeters::Nowhere), Greeters::Nowhere));
    }
}

/// The door of an intermediary that stands by: who knocks is told that no run goes on, until one does ([APP-9]). A site that comes before
/// the run has begun here waits.
pub struct Doorway {
    key: PublicKey,
    members: Arc<Mutex<HashSet<PeerKey>>>,
    reception: Arc<Reception>,
}

impl Doorway {
    /// Opens the port, for nobody yet.
    ///
    /// # Errors
    /// A [`Failure`] where the port cannot be opened.
    pub async fn open(identity: Arc<Identity>, carrier: &dyn Carrier, listen: SocketAddr) -> Result<Doorway, Failure> {
        let (key, members) = (identity.public(), Arc::new(Mutex::<HashSet<PeerKey>>::default()));
        let may = members.clone();
        let allowed: Allowed = Arc::new(move |key: &_| held(&may).contains(key));
        let (reception, _) = Reception::open(identity, carrier, listen, allowed).await?;
        Ok(Doorway { key, members, reception: Arc::new(reception) })
    }

    /// Whether it shows this key.
    pub fn shows(&self, key: &PublicKey) -> bool {
        self.key == *key
    }

    /// From now on it is open to the members of this roster.
    pub fn admits(&self, roster: &Roster) {
        *held(&self.members) = roster.members().map(|member| member.key.0).collect();
    }

    /// Between two runs, or while one is to be taken up again: whether it is over is for the coordinator to say, so no site is sent away.
    pub fn rests(&self) {
        self.reception.greeters.send_replace(Greeters::NotYet);
    }

    /// For a run.
    pub fn entrance(&self) -> Entrance {
        Entrance::Shared(self.reception.clone())
    }
}

/// Leads a connection to where its first frame belongs.
async fn show_in(
    link: Link,
    identity: Arc<Identity>,
    (mut greeters, visits): (watch::Receiver<Greeters>, mpsc::Sender<Visit>),
    refused: Arc<Times>,
) {
    let handle = link.handle();
    let (sender, mut receiver) = link.split();
    let first = match timeout(FIRST_FRAME, receiver.recv()).await {
        Ok(Ok(Some(first))) => first,
        Ok(Err(fault @ CarrierError::Frame(_))) => {
            // The caller hears it too, and tries again and again.
            if let Some(times) = refused.one_more() {
                tracing::warn!(times, "a caller was turned away: {fault}");
            }
            return;
        }
        _ => return,
    };
    if lobby_frames::is_one(&first) {
        receiver.expects(lobby_frames::FROM_OUTSIDE);
        let _ = visits.send(Visit { handle, sender, receiver, first }).await;
        return;
    }
    receiver.expects(app_messages::header_check);
    let knocks = message::kind_of(&first) == Some(message::Kind::Knock);
    let visit = Visit { handle, sender, receiver, first };
    let is_known = |to: &Greeters| match to {
        Greeters::Wait => false,
        Greeters::NotYet => knocks,
        Greeters::Nowhere | Greeters::To(_) => true,
    };
    let known = timeout(FIRST_FRAME, greeters.wait_for(is_known)).await;
    let known = known.ok().and_then(Result::ok).map(|to| to.clone());
    // Others may hold what comes next for as long as the link lasts.
    drop((greeters, visits));
    match known {
        Some(Greeters::To(door)) => door::greet(visit, door).await,
        Some(Greeters::Nowhere | Greeters::NotYet) => deny(&identity, visit.sender, &Denied::NoRun).await,
        // It dials again.
        Some(Greeters::Wait) | None => {}
    }
}

/// Says no to a greeting.
pub(super) async fn deny(identity: &Identity, mut sender: LinkSender, why: &Denied) {
    let session = app_messages::greeting_session();
    let denied = app_messages::frame(identity, &session, message::Kind::Denied, why);
    if sender.send_within(&Egress::of_an_aggregator(Arc::new(denied)), FIRST_FRAME).await.is_ok() {
        let _ = sender.finish(FINISH_LIMIT).await;
    }
}

/// A first frame: a greeting, or one with which the lobby is entered. All of them are small, so nobody fills memory with one.
fn first_frame(header: &[u8; HEADER_LEN]) -> Result<usize, String> {
    let lobby = lobby_frames::FROM_OUTSIDE(header);
    if lobby.is_ok() {
        return lobby;
    }
    match message::parse_header(header) {
        Ok((message::Kind::Hello | message::Kind::Knock, length)) => Ok(length),
        Ok((kind, _)) => Err(format!("a message of kind {} does not come first", kind as u16)),
        Err(e) => Err(e.to_string()),
    }
}

/// How an aggregator's parties come to it.
#[derive(Clone)]
pub enum Entrance {
    /// Through a port of its own.
    Port(SocketAddr),
    /// Through one that others use, too.
    Shared(Arc<Reception>),
}

impl Entrance {
    /// The port, open for the members of the roster where it is this party's own.
    ///
    /// # Errors
    /// A [`Failure`] where it cannot be opened.
    pub async fn open(self, party: &Party) -> Result<Arc<Reception>, Failure> {
        match self {
            Entrance::Port(address) => {
                let allowed = carrier::only(party.federation.roster.members().map(|m| m.key.0).collect());
                Ok(Arc::new(Reception::open(party.identity.clone(), &*party.carrier, address, allowed).await?.0))
            }
            Entrance::Shared(reception) => Ok(reception),
        }
    }
}

impl From<SocketAddr> for Entrance {
    fn from(address: SocketAddr) -> Entrance {
        Entrance::Port(address)
    }
}

/// An entrance that is open; dropping it shuts it for the run, unless the next one has opened it already. Whether the run is over, or is
/// taken up again, is for the service to say.
pub(super) struct Opened(Arc<Reception>, Arc<Door>);

impl Opened {
    /// Lets parties in through `door`.
    ///
    /// # Errors
    /// A [`Failure`] where a port cannot be opened.
    pub(super) async fn new(entrance: Entrance, door: Door, party: &Party) -> Result<Opened, Failure> {
        let reception = entrance.open(party).await?;
        let door = Arc::new(door);
        reception.greeters.send_replace(Greeters::To(door.clone()));
        Ok(Opened(reception, door))
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.0.address()
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.greeters.send_if_modified(|to| {
            let own = matches!(to, Greeters::To(door) if Arc::ptr_eq(door, &self.1));
            if own {
                *to = Greeters::Wait;
            }
            own
        });
    }
}

#[cfg(test)]
mod tests {
    use veilsum_proto::{message::Kind, suite::VERSION};

    use super::*;

    /// [JOI-7]: the first frame decides, and is small.
    #[test]
    fn only_greetings_and_knocks_come_first() {
        let header = |kind: u16, length: u32| -> [u8; HEADER_LEN] {
            [&VERSION.to_le_bytes()[..], &kind.to_le_bytes(), &length.to_le_bytes()].concat().try_into().unwrap()
        };
        for kind in Kind::ALL {
            let first = matches!(kind, Kind::Hello | Kind::Knock);
            assert_eq!(first_frame(&header(*kind as u16, 64)).is_ok(), first, "{kind:?}");
            assert!(first_frame(&header(*kind as u16, 1 << 20)).is_err(), "{kind:?}");
        }
        for kind in 128..=255 {
            assert_eq!(first_frame(&header(kind, 64)).is_ok(), [128, 130, 134, 136, 137].contains(&kind), "{kind}");
            assert!(first_frame(&header(kind, 4096)).is_err(), "{kind}");
        }
    }
}
