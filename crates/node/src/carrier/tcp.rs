//! Links over TLS 1.3 on TCP, for where UDP does not pass: the same pinned keys, the same frames. What QUIC does for a link and TCP
//! does not, records within TLS do ([`record`](super::record)): signs of life, a window, an end that is acknowledged, a reason.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rustls::{CertificateError, Error as TlsError};
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::{JoinHandle, JoinSet},
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use super::{
    Address, CLOSE_GRACE, CarrierError, Credentials, FIRST_BYTE_LIMIT, HeaderCheck, MAX_HANDSHAKES,
    MAX_HANDSHAKES_PER_ADDRESS, OPENING_TIMEOUT, PeerKey,
    link::{Incoming, Link, Outgoing, Pending, shorten},
    listener::{Door, Guest, Port, Refused},
    pinned::{self, UNUSED_NAME},
    proxy::Proxy,
    race::Attempt,
    stream::{Shutting, Signs, begin, failed, tls_error},
};

/// After an error of the port, such as too many open files, connections that wait are taken up a little later.
const PAUSE: Duration = Duration::from_millis(100);

// ---- Listening ------------------------------------------------------------------------------------------------------

struct TcpPort {
    address: SocketAddr,
    welcome: JoinHandle<()>,
    shut: watch::Sender<Option<String>>,
}

pub(super) async fn open(
    addr: SocketAddr,
    credentials: &Credentials,
    door: Arc<Door>,
) -> Result<Box<dyn Port>, CarrierError> {
    let tls = TlsAcceptor::from(Arc::new(pinned::server_config(credentials, door.clone())?));
    let bind = |source| CarrierError::Bind { kind: "TCP", addr, source };
    let listener = TcpListener::bind(addr).await.map_err(bind)?;
    let address = listener.local_addr().map_err(bind)?;
    let (shut, shutting) = watch::channel(None);
    let welcome = tokio::spawn(welcome(listener, tls, door, shutting));
    Ok(Box::new(TcpPort { address, welcome, shut }))
}

impl Port for TcpPort {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn close<'a>(&'a self, reason: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            self.welcome.abort();
            self.shut.send_replace(Some(shorten(reason)));
            // Every connection holds the other end of this until its peer has been told.
            let _ = timeout(CLOSE_GRACE, self.shut.closed()).await;
        })
    }
}

impl Drop for TcpPort {
    fn drop(&mut self) {
        self.welcome.abort();
    }
}

/// Handshakes under way, all together and by address. QUIC has others: strangers on the one do not close the other.
struct Places {
    all: Arc<Semaphore>,
    by_address: Mutex<HashMap<IpAddr, usize>>,
}

impl Places {
    fn here(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.by_address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let permit = self.all.clone().try_acquire_owned().ok()?;
        let mut here = self.here();
        let number = here.entry(address).or_default();
        if *number >= MAX_HANDSHAKES_PER_ADDRESS {
            return None;
        }
        *number += 1;
        Some(Place { _permit: permit, places: self.clone(), address })
    }
}

/// A handshake's place; given back when dropped.
struct Place {
    _permit: OwnedSemaphorePermit,
    places: Arc<Places>,
    address: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut here = self.places.here();
        if let Some(number) = here.get_mut(&self.address) {
            *number -= 1;
            if *number == 0 {
                here.remove(&self.address);
            }
        }
    }
}

/// Runs for as long as the listener, and brings each peer up to its first frame in a task of its own.
async fn welcome(listener: TcpListener, tls: TlsAcceptor, door: Arc<Door>, shutting: Shutting) {
    let mut guests = JoinSet::new();
    let places = Arc::new(Places { all: Arc::new(Semaphore::new(MAX_HANDSHAKES)), by_address: Mutex::default() });
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = guests.join_next() => continue,
        };
        let Ok((stream, from)) = accepted else {
            sleep(PAUSE).await;
            continue;
        };
        // Where too many handshakes run, the connection is dropped.
        let Some(place) = places.take(from.ip().to_canonical()) else {
            door.turned_away();
            continue;
        };
        let (tls, door, shutting) = (tls.clone(), door.clone(), shutting.clone());
        guests.spawn(async move { door.admit(place, OPENING_TIMEOUT, handshake(stream, tls, shutting)).await });
    }
}

async fn handshake(stream: TcpStream, tls: TlsAcceptor, shutting: Shutting) -> Result<Guest, Refused> {
    let _ = stream.set_nodelay(true);
    if !matches!(timeout(FIRST_BYTE_LIMIT, stream.readable()).await, Ok(Ok(()))) {
        return Err(Refused::Failed);
    }
    let stream = match tls.accept(stream).into_fallible().await {
        Ok(stream) => stream,
        Err((error, stream)) => {
            // What the peer has sent is read before the socket goes: unread, it would cost the peer our alert. The socket keeps its
            // place as long.
            let _ = timeout(CLOSE_GRACE, drain(stream)).await;
            let unknown = TlsError::InvalidCertificate(CertificateError::ApplicationVerificationFailure);
            return Err(if tls_error(&error) == Some(&unknown) { Refused::UnknownKey } else { Refused::Failed });
        }
    };
    // The verifier asks for a key and checks it, so that there is none is a bug, and refused like any failed handshake.
    let peer = identity(stream.get_ref().1.peer_certificates()).ok_or(Refused::Failed)?;
    let (way, out, mut into) = begin(TlsStream::from(stream), None, Some(shutting), Signs::OF_LIFE);
    let opening = async move {
        into.piece().await?;
        Some((Box::new(out) as Box<dyn Outgoing>, Box::new(into) as Box<dyn Incoming>))
    };
    Ok(Guest { peer, connection: way, opening: Box::pin(opening) })
}

async fn drain(mut stream: TcpStream) {
    let _ = stream.shutdown().await;
    let mut scrap = [0; 1024];
    while stream.read(&mut scrap).await.is_ok_and(|got| got > 0) {}
}

pub(super) fn identity(chain: Option<&[CertificateDer<'static>]>) -> Option<PeerKey> {
    pinned::peer_key(chain?.first()?).ok()
}

// ---- Dialling -------------------------------------------------------------------------------------------------------

/// How the server is reached.
#[derive(Clone)]
pub(super) enum Path {
    /// At one of its addresses.
    Straight(SocketAddr),
    /// Through a proxy, which looks the name up itself.
    Through(Proxy),
}

/// One attempt to reach the server `to`, which must hold the key `expected`.
pub(super) fn attempt(
    path: Path,
    to: &Address,
    credentials: &Credentials,
    expected: &PeerKey,
    check: HeaderCheck,
    limit: Duration,
) -> Result<Attempt, CarrierError> {
    let (tls, verifier) = pinned::client_config(credentials, expected)?;
    let name = ServerName::try_from(UNUSED_NAME).map_err(|e| CarrierError::Setup { reason: e.to_string() })?;
    let (to, peer) = (to.clone(), *expected);
    Ok(Box::pin(async move {
        let begun = Instant::now();
        let unreachable = || CarrierError::Unreachable { addr: to.clone(), waited: begun.elapsed().min(limit) };
        let over = if matches!(path, Path::Through(_)) { "TCP through a proxy" } else { "TCP" };
        let connecting = async {
            let stream = match &path {
                Path::Straight(at) => TcpStream::connect(at).await.map_err(|_| unreachable())?,
                Path::Through(proxy) => proxy.connect(&to).await?,
            };
            let _ = stream.set_nodelay(true);
            TlsConnector::from(Arc::new(tls)).connect(name, stream).await.map_err(|error| match tls_error(&error) {
                _ if verifier.saw_wrong_key() => CarrierError::WrongServerKey { addr: to.clone() },
                Some(error) => failed(error, true).error(),
                None => CarrierError::closed(CUT),
            })
        };
        let stream = timeout(limit, connecting).await.map_err(|_| match &path {
            Path::Straight(_) => unreachable(),
            Path::Through(proxy) => proxy.silent(),
        })??;
        if identity(stream.get_ref().1.peer_certificates()) != Some(peer) {
            // Can't be after the verifier's check; were it so, this is no link to use.
            return Err(CarrierError::WrongServerKey { addr: to });
        }
        let (way, out, into) = begin(TlsStream::from(stream), Some(over), None, Signs::OF_LIFE);
        Ok(Link::new(way, peer, (Box::new(out), Box::new(into)), check))
    }))
}

const CUT: &str = "it was cut before the other end said a word: that end has too many connections opening, or something between cuts them";
