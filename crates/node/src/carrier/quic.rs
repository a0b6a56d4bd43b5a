//! Links over QUIC (quinn, TLS 1.3): one connection a pair of parties, one stream in it, frames on the stream.

use std::{
    collections::HashMap,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use quinn::{
    ConnectError, Connection, ConnectionError, Endpoint, IdleTimeout, Incoming, ReadError, RecvStream, SendStream,
    StoppedError, TransportConfig, TransportErrorCode, ValidationTokenConfig, VarInt, WriteError,
};
use rustls_pki_types::CertificateDer;
use tokio::{
    sync::{Semaphore, mpsc},
    task::{JoinHandle, JoinSet},
    time::{timeout, timeout_at},
};

use super::{
    Allowed, CLOSE_GRACE, CarrierError, Credentials, FrameFault, HeaderCheck, IDLE_TIMEOUT, KEEP_ALIVE, MAX_HANDSHAKES,
    MAX_OPENING_PER_KEY, MAX_WAITING, OPENING_TIMEOUT, PeerKey, REASON_LIMIT, WAITING_BUFFER, WINDOW,
    frame::{Assembler, check_outgoing},
    pinned,
};

/// Why a connection was closed, as a number beside the words. 0 is what quinn sends where a link was just dropped.
mod code {
    pub(super) const DROPPED: u32 = 0;
    pub(super) const CLOSED: u32 = 1;
    pub(super) const BAD_FRAME: u32 = 2;
    pub(super) const TOO_SLOW: u32 = 3;
}

/// TLS alerts that we tell apart, as QUIC carries them: 0x100 and the alert's number (RFC 9001, section 4.8).
const ALERTS: std::ops::Range<u64> = 0x100..0x200;
const ALERT_ACCESS_DENIED: u64 = 0x100 + 49;
const ALERT_NO_APPLICATION_PROTOCOL: u64 = 0x100 + 120;

// ---- Listening ------------------------------------------------------------------------------------------------------

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

/// An open UDP port that turns dialling peers into links. Dropping it stops new ones; links that exist go on.
pub struct Listener {
    endpoint: Endpoint,
    links: mpsc::Receiver<Link>,
    refusals: Arc<Mutex<Refusals>>,
    welcome: JoinHandle<()>,
}

/// Opens `addr` for peers whose key is `allowed`. Must be called within a tokio runtime.
pub async fn listen(
    addr: SocketAddr,
    credentials: &Credentials,
    allowed: Allowed,
    check: HeaderCheck,
) -> Result<Listener, CarrierError> {
    let refusals = Arc::new(Mutex::new(Refusals::default()));
    let tls = pinned::server_config(credentials, allowed, refusals.clone())?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(tls));
    // The dialler opens the one stream of a link.
    config.transport_config(Arc::new(transport(1)?));
    config.max_incoming(MAX_WAITING);
    config.incoming_buffer_size(WAITING_BUFFER);
    config.incoming_buffer_size_total(WAITING_BUFFER * 64);
    // No tokens for later visits: every connection shows anew that its address is its own.
    let mut tokens = ValidationTokenConfig::default();
    tokens.sent(0);
    config.validation_token_config(tokens);
    let endpoint = Endpoint::server(config, addr).map_err(|source| CarrierError::Bind { addr, source })?;
    // One place: a link that nobody accepts keeps its task, and its task keeps its place among those of its key.
    let (sender, links) = mpsc::channel(1);
    let welcome = tokio::spawn(welcome(endpoint.clone(), check, refusals.clone(), sender));
    Ok(Listener { endpoint, links, refusals, welcome })
}

impl Listener {
    /// Where it listens: tells the port where 0 was asked for.
    pub fn local_addr(&self) -> Result<SocketAddr, CarrierError> {
        self.endpoint
            .local_addr()
            .map_err(|source| CarrierError::Bind { addr: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), source })
    }

    /// The next peer that holds an allowed key and has begun its first frame. Peers that are refused show up in
    /// [`Self::refusals`] and nowhere else: an error here means that the listener is finished. Cancel-safe.
    pub async fn accept(&mut self) -> Result<Link, CarrierError> {
        self.links.recv().await.ok_or_else(|| closed("this listener is shut"))
    }

    /// How many were turned away so far.
    pub fn refusals(&self) -> Refusals {
        *self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shuts the port and every link that came through it, and waits up to [`CLOSE_GRACE`] for the peers to be told.
    pub async fn close(self, reason: &str) {
        self.endpoint.close(VarInt::from_u32(code::CLOSED), shorten(reason).as_bytes());
        // Who doesn't acknowledge in time finds out by the idle timeout.
        let _ = timeout(CLOSE_GRACE, self.endpoint.wait_idle()).await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.welcome.abort();
        self.endpoint.set_server_config(None);
    }
}

/// Runs for as long as the listener: looks at every attempt, and brings those that may come in up to their first frame,
/// each in its own task.
async fn welcome(endpoint: Endpoint, check: HeaderCheck, refusals: Arc<Mutex<Refusals>>, links: mpsc::Sender<Link>) {
    let handshakes = Arc::new(Semaphore::new(MAX_HANDSHAKES));
    let openings = Openings::default();
    let mut guests = JoinSet::new();
    loop {
        let incoming = tokio::select! {
            incoming = endpoint.accept() => incoming,
            Some(_) = guests.join_next() => continue,
        };
        let Some(incoming) = incoming else { return };
        if !incoming.remote_address_validated() {
            // Costs us one packet and no memory; a forged address never comes back. An error means that the attempt
            // can't be sent round again; it is then refused by being dropped.
            let _ = incoming.retry();
            continue;
        }
        let Ok(permit) = handshakes.clone().try_acquire_owned() else {
            count(&refusals, |r| &mut r.busy);
            incoming.refuse();
            continue;
        };
        let (refusals, links, openings) = (refusals.clone(), links.clone(), openings.clone());
        guests.spawn(async move {
            let shaken = timeout(OPENING_TIMEOUT, handshake(incoming)).await;
            drop(permit);
            let (connection, peer) = match shaken {
                Ok(Ok(pair)) => pair,
                // An unknown key was counted where it was seen.
                Ok(Err(ConnectionError::TransportError(e))) if u64::from(e.code) == ALERT_ACCESS_DENIED => return,
                Ok(Err(_)) | Err(_) => return count(&refusals, |r| &mut r.failed),
            };
            let Some(_place) = openings.enter(peer) else {
                count(&refusals, |r| &mut r.silent);
                return connection
                    .close(VarInt::from_u32(code::CLOSED), b"too many connections of this key are opening");
            };
            match timeout(OPENING_TIMEOUT, connection.accept_bi()).await {
                Ok(Ok((send, receive))) => {
                    // That was the one stream.
                    connection.set_max_concurrent_bi_streams(VarInt::from_u32(0));
                    let way = Way { connection, peer, dialled: None, heard: AtomicBool::new(true) };
                    // Fails where the listener is gone; the link is then closed by being dropped.
                    let _ = links.send(Link::new(way, send, receive, check)).await;
                }
                Ok(Err(_)) | Err(_) => {
                    count(&refusals, |r| &mut r.silent);
                    connection.close(VarInt::from_u32(code::TOO_SLOW), b"no frame came in time");
                }
            }
        });
    }
}

async fn handshake(incoming: Incoming) -> Result<(Connection, PeerKey), ConnectionError> {
    let connection = incoming.accept()?.await?;
    match identity(&connection) {
        Some(peer) => Ok((connection, peer)),
        // The verifier asks for a key and checks it, so this is a bug, and refused like any failed handshake.
        None => Err(ConnectionError::LocallyClosed),
    }
}

fn identity(connection: &Connection) -> Option<PeerKey> {
    let chain = connection.peer_identity()?.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    pinned::peer_key(chain.first()?).ok()
}

fn count(refusals: &Mutex<Refusals>, which: impl FnOnce(&mut Refusals) -> &mut u64) {
    let mut refusals = refusals.lock().unwrap_or_else(PoisonError::into_inner);
    let counter = which(&mut refusals);
    *counter = counter.saturating_add(1);
}

/// How many connections of each key stand between handshake and first frame.
#[derive(Clone, Default)]
struct Openings(Arc<Mutex<HashMap<PeerKey, usize>>>);

/// One of them; gives its place back when dropped.
struct Opening {
    all: Openings,
    peer: PeerKey,
}

impl Openings {
    fn enter(&self, peer: PeerKey) -> Option<Opening> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let places = open.entry(peer).or_default();
        if *places >= MAX_OPENING_PER_KEY {
            return None;
        }
        *places += 1;
        Some(Opening { all: self.clone(), peer })
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        let mut open = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = open.get_mut(&self.peer) {
            *places -= 1;
            if *places == 0 {
                open.remove(&self.peer);
            }
        }
    }
}

// ---- Dialling -------------------------------------------------------------------------------------------------------

/// Connects to the server at `addr`, which must hold the key `expected`, within `limit`. Must be called within a tokio
/// runtime.
///
/// An `Ok` says that the server is the right one. Whether it lets us in, its first frame says.
pub async fn dial(
    addr: SocketAddr,
    credentials: &Credentials,
    expected: &PeerKey,
    check: HeaderCheck,
    limit: Duration,
) -> Result<Link, CarrierError> {
    let (tls, verifier) = pinned::client_config(credentials, expected)?;
    let mut config = quinn::ClientConfig::new(Arc::new(tls));
    // The server opens no streams.
    config.transport_config(Arc::new(transport(0)?));
    // A socket of its own for every link: a link can then be closed, and waited for, without regard to others.
    let local = match addr {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let endpoint = Endpoint::client(local).map_err(|source| CarrierError::Bind { addr: local, source })?;
    let begun = Instant::now();
    let unreachable = || CarrierError::Unreachable { addr, waited: begun.elapsed().min(limit) };
    let connecting = endpoint.connect_with(config, addr, pinned::UNUSED_NAME).map_err(|error| match error {
        ConnectError::InvalidRemoteAddress(_) => unreachable(),
        other => CarrierError::Setup { reason: other.to_string() },
    })?;
    // A limit too long for the clock means none; the idle timeout ends the wait then.
    let deadline = tokio::time::Instant::now().checked_add(limit);
    let opening = async {
        let connection = connecting.await?;
        let (send, receive) = connection.open_bi().await?;
        Ok((connection, send, receive))
    };
    let opened = match deadline {
        Some(deadline) => timeout_at(deadline, opening).await.map_err(|_| unreachable())?,
        None => opening.await,
    };
    let (connection, send, receive) = opened.map_err(|error| match error {
        _ if verifier.saw_wrong_key() => CarrierError::WrongServerKey { addr },
        ConnectionError::TimedOut => unreachable(),
        ConnectionError::ConnectionClosed(close) if close.error_code == TransportErrorCode::CONNECTION_REFUSED => {
            CarrierError::Busy { addr }
        }
        other => lost(other, true),
    })?;
    let peer = *expected;
    if identity(&connection) != Some(peer) {
        // Can't be after the verifier's check; were it so, this is no link to use.
        return Err(CarrierError::WrongServerKey { addr });
    }
    let way = Way { connection, peer, dialled: Some(endpoint), heard: AtomicBool::new(false) };
    Ok(Link::new(way, send, receive, check))
}

/// Settings of a connection whose other end may open `streams` streams.
fn transport(streams: u32) -> Result<TransportConfig, CarrierError> {
    let idle = IdleTimeout::try_from(IDLE_TIMEOUT).map_err(|e| CarrierError::Setup { reason: e.to_string() })?;
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(streams))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None)
        .stream_receive_window(VarInt::from_u32(WINDOW))
        .receive_window(VarInt::from_u32(WINDOW))
        .send_window(u64::from(WINDOW))
        .max_idle_timeout(Some(idle))
        .keep_alive_interval(Some(KEEP_ALIVE))
        // The spin bit would tell the network our round-trip times and gives us nothing.
        .allow_spin(false);
    Ok(config)
}

// ---- Links ----------------------------------------------------------------------------------------------------------

/// What both halves and all handles of a link share.
struct Way {
    connection: Connection,
    peer: PeerKey,
    /// The dialler's own socket; a listener's links share the listener's.
    dialled: Option<Endpoint>,
    /// Whether the peer has been heard: until then, a dialler's lost connection means "not accepted".
    heard: AtomicBool,
}

impl Way {
    fn lost(&self, error: ConnectionError) -> CarrierError {
        lost(error, self.dialled.is_some() && !self.heard.load(Ordering::Acquire))
    }
}

/// A connection to one peer with a proven key.
pub struct Link {
    sender: LinkSender,
    receiver: LinkReceiver,
}

impl Link {
    fn new(way: Way, send: SendStream, receive: RecvStream, check: HeaderCheck) -> Self {
        let way = Arc::new(way);
        Self {
            sender: LinkSender { way: way.clone(), stream: send, broken: false },
            receiver: LinkReceiver { way, stream: receive, frames: Assembler::new(check), broken: false },
        }
    }

    /// Whose key the other end has proven to hold.
    pub fn peer(&self) -> PeerKey {
        self.sender.way.peer
    }

    /// Something to close the link with, and to see it closed, while its halves are at work elsewhere.
    pub fn handle(&self) -> LinkHandle {
        LinkHandle { way: self.sender.way.clone() }
    }

    /// The two directions, to be used by two tasks or by one.
    pub fn split(self) -> (LinkSender, LinkReceiver) {
        (self.sender, self.receiver)
    }

    /// See [`LinkHandle::close`].
    pub async fn close(self, reason: &str) {
        self.handle().close(reason).await;
    }
}

/// Control over a link, without its frames. It keeps the connection open for as long as it exists.
#[derive(Clone)]
pub struct LinkHandle {
    way: Arc<Way>,
}

impl LinkHandle {
    /// Whose key the other end has proven to hold.
    pub fn peer(&self) -> PeerKey {
        self.way.peer
    }

    /// Ends the link in both directions at once; the peer is told `reason`, cut to [`REASON_LIMIT`]. Frames on their
    /// way may be lost: where they matter, [`LinkSender::finish`] first.
    ///
    /// A dialler waits up to [`CLOSE_GRACE`] for the news to get out, so that it may leave the process afterwards.
    pub async fn close(&self, reason: &str) {
        self.way.connection.close(VarInt::from_u32(code::CLOSED), shorten(reason).as_bytes());
        if let Some(endpoint) = &self.way.dialled {
            let _ = timeout(CLOSE_GRACE, endpoint.wait_idle()).await;
        }
    }

    /// Waits for the end of the link and tells why it came.
    pub async fn closed(&self) -> CarrierError {
        let error = self.way.connection.closed().await;
        self.way.lost(error)
    }

    /// The present estimate of a round trip.
    pub fn round_trip(&self) -> Duration {
        self.way.connection.rtt()
    }
}

/// The outgoing direction of a link.
pub struct LinkSender {
    way: Arc<Way>,
    stream: SendStream,
    /// A frame was begun and not finished.
    broken: bool,
}

impl LinkSender {
    /// Sends one frame: returns when the connection has taken its last byte, that is, when all but the last
    /// [`WINDOW`] bytes have been acknowledged.
    ///
    /// A peer that doesn't read makes this wait for ever; whoever serves others as well uses [`Self::send_within`].
    /// Not cancel-safe: a send that is dropped half-way breaks this direction, later sends say so.
    pub async fn send(&mut self, frame: &[u8]) -> Result<(), CarrierError> {
        check_outgoing(frame)?;
        if self.broken {
            return Err(FrameFault::Broken.into());
        }
        self.broken = true;
        self.stream.write_all(frame).await.map_err(|error| match error {
            WriteError::ConnectionLost(error) => self.way.lost(error),
            WriteError::Stopped(_) => closed("the other end has stopped reading"),
            WriteError::ClosedStream | WriteError::ZeroRttRejected => closed("this end has finished sending"),
        })?;
        self.broken = false;
        Ok(())
    }

    /// Like [`Self::send`], but a peer that has not taken the frame within `limit` loses the link.
    pub async fn send_within(&mut self, frame: &[u8], limit: Duration) -> Result<(), CarrierError> {
        match timeout(limit, self.send(frame)).await {
            Ok(sent) => sent,
            Err(_) => {
                let reason = b"a frame was not read in time";
                self.way.connection.close(VarInt::from_u32(code::TOO_SLOW), reason);
                Err(CarrierError::TimedOut { what: "the other end did not read a frame" })
            }
        }
    }

    /// Says that no frame follows and waits up to `limit` until the peer has acknowledged every byte. Its receiver
    /// then answers `None`.
    pub async fn finish(&mut self, limit: Duration) -> Result<(), CarrierError> {
        if self.broken {
            return Err(FrameFault::Broken.into());
        }
        // Fails where it was finished before; what was sent is then still waited for.
        let _ = self.stream.finish();
        match timeout(limit, self.stream.stopped()).await {
            Ok(Ok(None)) => Ok(()),
            Ok(Ok(Some(_))) => Err(closed("the other end has stopped reading")),
            Ok(Err(StoppedError::ConnectionLost(error))) => Err(self.way.lost(error)),
            Ok(Err(StoppedError::ZeroRttRejected)) => Err(closed("this end has finished sending")),
            Err(_) => Err(CarrierError::TimedOut { what: "the other end did not acknowledge the last frames" }),
        }
    }
}

/// The incoming direction of a link.
pub struct LinkReceiver {
    way: Arc<Way>,
    stream: RecvStream,
    frames: Assembler,
    /// A frame was refused: what follows on the stream has no beginning we could find.
    broken: bool,
}

impl LinkReceiver {
    /// The next frame, header and body; `None` where the peer has finished after a whole frame.
    ///
    /// A frame that breaks the rules closes the connection: behind it, no frame's beginning can be told. Cancel-safe:
    /// what has arrived of a frame is kept for the next call.
    pub async fn recv(&mut self) -> Result<Option<Vec<u8>>, CarrierError> {
        if self.broken {
            return Err(FrameFault::Broken.into());
        }
        loop {
            let pushed = match self.stream.read_chunk(self.frames.wants(), true).await {
                Ok(Some(chunk)) => {
                    self.way.heard.store(true, Ordering::Release);
                    self.frames.push(&chunk.bytes)
                }
                Ok(None) => match self.frames.end() {
                    Ok(()) => return Ok(None),
                    Err(fault) => Err(fault),
                },
                Err(ReadError::ConnectionLost(error)) => {
                    // A link that was dropped in the middle of a frame: the cut frame says more than the closing.
                    match (&error, self.frames.end()) {
                        (ConnectionError::ApplicationClosed(close), Err(fault))
                            if close.error_code == VarInt::from_u32(code::DROPPED) =>
                        {
                            Err(fault)
                        }
                        _ => return Err(self.way.lost(error)),
                    }
                }
                Err(ReadError::Reset(_)) => match self.frames.end() {
                    Ok(()) => return Err(closed("the other end gave up its stream")),
                    Err(fault) => Err(fault),
                },
                Err(ReadError::ClosedStream) => return Ok(None),
                Err(ReadError::IllegalOrderedRead | ReadError::ZeroRttRejected) => {
                    return Err(closed("the stream can't be read any more"));
                }
            };
            match pushed {
                Ok(Some(frame)) => return Ok(Some(frame)),
                Ok(None) => {}
                Err(fault) => {
                    self.broken = true;
                    let reason = shorten(&fault.to_string());
                    self.way.connection.close(VarInt::from_u32(code::BAD_FRAME), reason.as_bytes());
                    return Err(fault.into());
                }
            }
        }
    }
}

// ---- Why a connection ended -----------------------------------------------------------------------------------------

/// Puts the end of a connection into our words. `unheard`: we dialled and have no frame from the server yet.
fn lost(error: ConnectionError, unheard: bool) -> CarrierError {
    let alert = match &error {
        ConnectionError::ConnectionClosed(close) => Some(u64::from(close.error_code)),
        ConnectionError::TransportError(own) => Some(u64::from(own.code)),
        _ => None,
    };
    match error {
        ConnectionError::VersionMismatch => CarrierError::OtherProtocol,
        _ if alert == Some(ALERT_NO_APPLICATION_PROTOCOL) => CarrierError::OtherProtocol,
        ConnectionError::ConnectionClosed(_) if unheard && alert.is_some_and(|a| ALERTS.contains(&a)) => {
            CarrierError::NotAccepted
        }
        ConnectionError::ConnectionClosed(close) => CarrierError::Handshake { reason: shorten(&close.to_string()) },
        ConnectionError::TransportError(own) => CarrierError::Handshake { reason: shorten(&own.to_string()) },
        ConnectionError::ApplicationClosed(close) if close.reason.is_empty() => {
            closed("the other end dropped it without a word")
        }
        ConnectionError::ApplicationClosed(close) => {
            closed(&format!("the other end says: {}", shorten(&String::from_utf8_lossy(&close.reason))))
        }
        ConnectionError::Reset => closed("the other end no longer knows it; it may have been restarted"),
        ConnectionError::TimedOut => CarrierError::TimedOut { what: "nothing was heard from the other end any more" },
        ConnectionError::LocallyClosed => closed("this end closed it"),
        ConnectionError::CidsExhausted => CarrierError::Setup { reason: "no connection number is free".to_owned() },
    }
}

fn closed(reason: &str) -> CarrierError {
    CarrierError::Closed { reason: reason.to_owned() }
}

/// A peer's words may end up on an operator's terminal: one line, no control characters, not too long.
fn shorten(words: &str) -> String {
    words.chars().map(|c| if c.is_control() { ' ' } else { c }).take(REASON_LIMIT).collect()
}

#[cfg(test)]
impl Link {
    /// Puts together what was split.
    pub(super) fn rejoin(sender: LinkSender, receiver: LinkReceiver) -> Self {
        Self { sender, receiver }
    }
}

#[cfg(test)]
impl LinkSender {
    /// Bytes that need not be a frame: what a broken or hostile peer would send.
    pub(super) async fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("the connection stands");
    }
}
