//! One port for everything that comes to a coordinator that serves: a connection's first frame says whether it is for the lobby or
//! for the run that goes on, and it stays there ([JOI-7]).

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::timeout,
};
use veilsum_proto::{identity::Identity, message};

use super::{
    door::{self, Door, FINISH_LIMIT, Visit},
    lobby_frames,
};
use crate::{
    app_messages::{self, Denied, NO_RUN},
    carrier::{self, Allowed, Carrier, CarrierError, Credentials, HEADER_LEN, Link},
    egress::Egress,
    error::Failure,
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
    /// To the run that goes on.
    To(Arc<Door>),
}

/// An open port, and the run whose parties come through it, if there is one.
pub struct Reception {
    identity: Arc<Identity>,
    address: SocketAddr,
    greeters: watch::Sender<Greeters>,
    listening: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Reception {
    fn drop(&mut self) {
        self.close();
    }
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
    ) -> Result<(Arc<Reception>, mpsc::Receiver<Visit>), Failure> {
        let credentials = Credentials::from_seed(&identity.seed())?;
        let mut listener = carrier::listen(carrier, listen, &credentials, allowed, first_frame).await?;
        let (visits, visitors) = mpsc::channel(QUEUE);
        let greeters = watch::Sender::new(Greeters::Wait);
        let (address, listening) = (listener.local_addr(), Mutex::default());
        let reception = Arc::new(Reception { identity, address, greeters, listening });
        let here = Arc::downgrade(&reception);
        let task = tokio::spawn(async move {
            while let Ok(link) = listener.accept().await {
                let Some(here) = here.upgrade() else { return };
                tokio::spawn(here.show_in(link, visits.clone()));
            }
        });
        *held(&reception.listening) = Some(task);
        Ok((reception, visitors))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on whoever greets is for this door.
    fn lead_to(&self, door: Arc<Door>) {
        self.greeters.send_replace(Greeters::To(door));
    }

    /// From now on whoever greets waits a moment, and then dials again.
    fn wait(&self) {
        self.greeters.send_replace(Greeters::Wait);
    }

    /// From now on whoever greets is told that no run goes on.
    pub(super) fn nothing_goes_on(&self) {
        self.greeters.send_if_modified(|to| !matches!(std::mem::replace(to, Greeters::Nowhere), Greeters::Nowhere));
    }

    /// Shuts the port. Connections that exist go on.
    pub(super) fn close(&self) {
        if let Some(task) = held(&self.listening).take() {
            task.abort();
        }
    }

    async fn show_in(self: Arc<Self>, link: Link, visits: mpsc::Sender<Visit>) {
        let handle = link.handle();
        let (sender, mut receiver) = link.split();
        let Ok(Ok(Some(first))) = timeout(FIRST_FRAME, receiver.recv()).await else { return };
        if lobby_frames::is_one(&first) {
            receiver.expects(lobby_frames::from_outside);
            let _ = visits.send(Visit { handle, sender, receiver, first }).await;
            return;
        }
        receiver.expects(app_messages::header_check);
        let visit = Visit { handle, sender, receiver, first };
        let mut greeters = self.greeters.subscribe();
        let known = timeout(FIRST_FRAME, greeters.wait_for(|to| !matches!(to, Greeters::Wait))).await;
        let known = known.ok().and_then(Result::ok).map(|to| to.clone());
        match known {
            Some(Greeters::To(door)) => door::greet(visit, door).await,
            Some(Greeters::Nowhere) => self.turn_away(visit).await,
            // It dials again.
            Some(Greeters::Wait) | None => {}
        }
    }

    /// A greeting between two runs.
    async fn turn_away(&self, mut visit: Visit) {
        let why = NO_RUN.to_owned();
        let session = app_messages::greeting_session();
        let denied = app_messages::frame(&self.identity, &session, message::Kind::Denied, &Denied { why });
        let denied = Egress::of_an_aggregator(Arc::new(denied));
        if visit.sender.send_within(&denied, FIRST_FRAME).await.is_ok() {
            let _ = visit.sender.finish(FINISH_LIMIT).await;
        }
    }
}

/// A first frame: a greeting, or one with which the lobby is entered. All of them are small, so nobody fills memory with one.
fn first_frame(header: &[u8; HEADER_LEN]) -> Result<usize, String> {
    let lobby = lobby_frames::from_outside(header);
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

impl From<SocketAddr> for Entrance {
    fn from(address: SocketAddr) -> Entrance {
        Entrance::Port(address)
    }
}

/// An entrance that is open; dropping it shuts it for the run.
pub(super) enum Opened {
    Port { address: SocketAddr, task: JoinHandle<()> },
    Shared(Arc<Reception>),
}

impl Opened {
    /// Lets parties in through `door`.
    ///
    /// # Errors
    /// `CarrierError` where a port cannot be opened.
    pub(super) async fn new(
        entrance: Entrance,
        door: Door,
        carrier: &dyn Carrier,
        credentials: &Credentials,
        allowed: Allowed,
    ) -> Result<Opened, CarrierError> {
        let door = Arc::new(door);
        match entrance {
            Entrance::Port(address) => {
                let listener =
                    carrier::listen(carrier, address, credentials, allowed, app_messages::header_check).await?;
                let address = listener.local_addr();
                Ok(Opened::Port { address, task: tokio::spawn(door::accept(listener, door)) })
            }
            Entrance::Shared(reception) => {
                reception.lead_to(door);
                Ok(Opened::Shared(reception))
            }
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        match self {
            Opened::Port { address, .. } => *address,
            Opened::Shared(reception) => reception.address(),
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        match self {
            Opened::Port { task, .. } => task.abort(),
            // Whether the run is over, or is taken up again, is for the service to say.
            Opened::Shared(reception) => reception.wait(),
        }
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
            assert_eq!(
                first_frame(&header(kind, 64)).is_ok(),
                [128, 130, 134, 136, 137, 140].contains(&kind),
                "{kind}"
            );
            assert!(first_frame(&header(kind, 4096)).is_err(), "{kind}");
        }
    }
}
