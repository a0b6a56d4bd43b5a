//! Links over QUIC (quinn, TLS 1.3): one connection a pair of parties, one stream in it, frames on the stream.

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use quinn::{
    ConnectError, ConnectionError, ConnectionId, ConnectionIdGenerator, Endpoint, EndpointConfig, IdleTimeout,
    ReadError as StreamError, RecvStream, SendStream, StoppedError, TransportConfig, TransportErrorCode,
    ValidationTokenConfig, VarInt, WriteError,
    crypto::{
        CryptoError, HmacKey,
        rustls::{QuicClientConfig, QuicServerConfig},
    },
};
use rand_core::{Rng, UnwrapErr};
use rustls_pki_types::CertificateDer;
use tokio::{
    task::{JoinHandle, JoinSet},
    time::timeout,
};

use super::{
    ANSWER_LIMIT, CLOSE_GRACE, Call, CarrierError, Credentials, IDLE_TIMEOUT, KEEP_ALIVE, MAX_HANDSHAKES, MAX_WAITING,
    OPENING_TIMEOUT, PeerKey, Result, WAITING_BUFFER, WINDOW,
    link::{Closing, Connection, Incoming, Link, Outgoing, Pending, ReadError, hears, shorten},
    listener::{Door, Guest, Opened},
    pinned,
    race::Attempt,
};

/// The code that quinn sends where a connection was just dropped; the others are in [`Closing`].
const DROPPED: VarInt = VarInt::from_u32(0);

/// Bytes of a connection's number: no two of a listener are the same by accident.
const NUMBER_LEN: usize = 8;

/// TLS alerts that we tell apart, as QUIC carries them: 0x100 and the alert's number (RFC 9001, section 4.8).
const ALERTS: std::ops::Range<u64> = 0x100..0x200;
const ALERT_NO_APPLICATION_PROTOCOL: u64 = 0x100 + 120;

// ---- Listening ------------------------------------------------------------------------------------------------------

struct UdpPort {
    endpoint: Endpoint,
    welcome: JoinHandle<()>,
}

pub(super) fn open(addr: SocketAddr, credentials: &Credentials, door: Arc<Door>) -> Result<Opened> {
    let tls = pinned::server_config(credentials, door.clone())?;
    let tls = QuicServerConfig::try_from(tls).map_err(CarrierError::setup)?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(tls));
    // The dialler opens the one stream of a link.
    config.transport_config(Arc::new(transport(1)?));
    config.max_incoming(MAX_WAITING);
    config.incoming_buffer_size(WAITING_BUFFER);
    config.incoming_buffer_size_total(WAITING_BUFFER * MAX_HANDSHAKES as u64);
    // No tokens for later visits: every connection shows anew that its address is its own.
    let mut tokens = ValidationTokenConfig::default();
    tokens.sent(0);
    config.validation_token_config(tokens);
    let bind = CarrierError::bind("UDP", addr);
    let endpoint = std::net::UdpSocket::bind(addr)
        .and_then(|socket| Endpoint::new(afresh(credentials), Some(config), socket, Arc::new(quinn::TokioRuntime)))
        .map_err(&bind)?;
    let address = endpoint.local_addr().map_err(&bind)?;
    let welcome = tokio::spawn(welcome(endpoint.clone(), door));
    Ok((address, Box::new(UdpPort { endpoint, welcome })))
}

/// A process that listens after another one of this party tells those whom that one had connections with, at their next packet, that
/// it knows of none (RFC 9000, section 10.3): they need not wait until silence tells.
fn afresh(credentials: &Credentials) -> EndpointConfig {
    let mut config = EndpointConfig::new(Arc::new(Reset(credentials.afresh())));
    config.cid_generator(|| Box::new(Numbers));
    config
}

/// Connection numbers at random: quinn's own bear a mark of the process, and those with another mark get no answer.
struct Numbers;

impl ConnectionIdGenerator for Numbers {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut number = [0; NUMBER_LEN];
        UnwrapErr(getrandom::SysRng).fill_bytes(&mut number);
        ConnectionId::new(&number)
    }

    fn cid_len(&self) -> usize {
        NUMBER_LEN
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// Signs the tokens with which a connection is reset.
struct Reset<F>(F);

impl<F: Fn(&[u8]) -> Vec<u8> + Send + Sync> HmacKey for Reset<F> {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        let signature = (self.0)(data);
        signature_out.iter_mut().zip(signature).for_each(|(out, byte)| *out = byte);
    }

    fn signature_len(&self) -> usize {
        (self.0)(&[]).len()
    }

    /// Nobody shows this end one of its own tokens.
    fn verify(&self, _data: &[u8], _signature: &[u8]) -> Result<(), CryptoError> {
        Err(CryptoError)
    }
}

impl Drop for UdpPort {
    fn drop(&mut self) {
        self.welcome.abort();
        self.endpoint.set_server_config(None);
    }
}

/// Runs for as long as the listener: looks at every attempt, and brings those that may come in up to their first frame,
/// each in its own task.
async fn welcome(endpoint: Endpoint, door: Arc<Door>) {
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
        let Some(place) = door.place() else {
            incoming.refuse();
            continue;
        };
        let door = door.clone();
        guests.spawn(async move { door.admit(place, OPENING_TIMEOUT, handshake(incoming)).await });
    }
}

async fn handshake(incoming: quinn::Incoming) -> Option<Guest> {
    let connection = incoming.accept().ok()?.await.ok()?;
    // The verifier asks for a key and checks it, so that there is none is a bug, and refused like any failed handshake.
    let peer = identity(&connection)?;
    let way = Arc::new(Way { connection, dialled: None, heard: AtomicBool::new(true), asked: AtomicU32::new(0) });
    let stream = way.clone();
    let opening = async move {
        let (send, receive) = stream.connection.accept_bi().await.ok()?;
        // That was the one stream.
        stream.connection.set_max_concurrent_bi_streams(VarInt::from_u32(0));
        Some(halves(&stream, send, receive))
    };
    Some(Guest { peer, connection: way, opening: Box::pin(opening) })
}

fn identity(connection: &quinn::Connection) -> Option<PeerKey> {
    let chain = connection.peer_identity()?.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    pinned::peer_key(chain.first()?).ok()
}

// ---- Dialling -------------------------------------------------------------------------------------------------------

/// One attempt to reach the server `to` at one of its addresses; it must hold the key `expected`.
pub(super) fn attempt(at: SocketAddr, call: &Call<'_>) -> Result<Attempt> {
    let (tls, verifier) = pinned::client_config(call.credentials, call.expected)?;
    let mut config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).map_err(CarrierError::setup)?));
    // The server opens no streams.
    config.transport_config(Arc::new(transport(0)?));
    let (addr, peer, check, limit) = (call.to.clone(), *call.expected, call.check, call.limit);
    Ok(Box::pin(async move {
        // A socket of its own for every link: a link can then be closed, and waited for, without regard to others.
        let any = if at.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let local = SocketAddr::new(any, 0);
        let endpoint = Endpoint::client(local).map_err(CarrierError::bind("UDP", local))?;
        let begun = Instant::now();
        let unreachable = || CarrierError::Unreachable { addr: addr.clone(), waited: begun.elapsed().min(limit) };
        let connecting = endpoint.connect_with(config, at, pinned::UNUSED_NAME).map_err(|error| match error {
            ConnectError::InvalidRemoteAddress(_) => unreachable(),
            other => CarrierError::setup(other),
        })?;
        let opening = async {
            let connection = connecting.await?;
            let (send, receive) = connection.open_bi().await?;
            Ok((connection, send, receive))
        };
        // A limit too long for the clock means none; the idle timeout ends the wait then.
        let opened = timeout(limit, opening).await.map_err(|_| unreachable())?;
        let (connection, send, receive) = opened.map_err(|error| match error {
            _ if verifier.saw_wrong_key() => CarrierError::WrongServerKey(addr.clone()),
            ConnectionError::TimedOut => unreachable(),
            ConnectionError::ConnectionClosed(close) if close.error_code == TransportErrorCode::CONNECTION_REFUSED => {
                CarrierError::Busy(addr.clone())
            }
            other => lost(other, true),
        })?;
        if identity(&connection) != Some(peer) {
            // Can't be after the verifier's check; were it so, this is no link to use.
            return Err(CarrierError::WrongServerKey(addr));
        }
        let (heard, asked) = (AtomicBool::new(false), AtomicU32::new(0));
        let way = Arc::new(Way { connection, dialled: Some(endpoint), heard, asked });
        let bytes = halves(&way, send, receive);
        Ok(Link::new(way, peer, bytes, check))
    }))
}

/// Settings of a connection whose other end may open `streams` streams.
fn transport(streams: u32) -> Result<TransportConfig> {
    let idle = IdleTimeout::try_from(IDLE_TIMEOUT).map_err(CarrierError::setup)?;
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

// ---- Bytes of a connection ------------------------------------------------------------------------------------------

/// What both halves and all handles of a link share.
struct Way {
    connection: quinn::Connection,
    /// The dialler's own socket; a listener's links share the listener's.
    dialled: Option<Endpoint>,
    /// Whether the peer has been heard: until then, a dialler's lost connection means "not accepted".
    heard: AtomicBool,
    /// How often the peer was asked whether it is there.
    asked: AtomicU32,
}

fn halves(way: &Arc<Way>, send: SendStream, receive: RecvStream) -> super::link::Bytes {
    (Box::new(Half { way: way.clone(), stream: send }), Box::new(Half { way: way.clone(), stream: receive }))
}

impl Way {
    fn lost(&self, error: ConnectionError) -> CarrierError {
        lost(error, self.dialled.is_some() && !self.heard.load(Ordering::Acquire))
    }
}

impl Connection for Way {
    fn close(&self, why: Closing, reason: &str) {
        self.connection.close(number(why), reason.as_bytes());
    }

    fn closed(&self) -> Pending<'_, CarrierError> {
        Box::pin(async { self.lost(self.connection.closed().await) })
    }

    fn settled(&self) -> Pending<'_, ()> {
        Box::pin(async {
            if let Some(endpoint) = &self.dialled {
                let _ = timeout(CLOSE_GRACE, endpoint.wait_idle()).await;
            }
        })
    }

    fn answers(&self) -> Pending<'_, bool> {
        Box::pin(async {
            let heard = || self.connection.stats().udp_rx.datagrams;
            // A byte more leave to send: that is a frame, which the other end has to acknowledge.
            let asked = self.asked.fetch_add(1, Ordering::AcqRel).saturating_add(1);
            self.connection.set_receive_window(VarInt::from_u32(WINDOW.saturating_add(asked)));
            hears(heard, ANSWER_LIMIT, self.connection.closed()).await
        })
    }

    fn over(&self) -> &'static str {
        "QUIC"
    }
}

struct Half<S> {
    way: Arc<Way>,
    stream: S,
}

impl Outgoing for Half<SendStream> {
    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> Pending<'a, Result<()>> {
        Box::pin(async {
            self.stream.write_all(bytes).await.map_err(|error| match error {
                WriteError::ConnectionLost(error) => self.way.lost(error),
                WriteError::Stopped(_) => CarrierError::closed("the other end has stopped reading"),
                WriteError::ClosedStream | WriteError::ZeroRttRejected => {
                    CarrierError::closed("this end has finished sending")
                }
            })
        })
    }

    fn finish(&mut self) -> Pending<'_, Result<()>> {
        // Fails where it was finished before; what was sent is then still waited for.
        let _ = self.stream.finish();
        Box::pin(async {
            match self.stream.stopped().await {
                Ok(None) => Ok(()),
                Ok(Some(_)) => Err(CarrierError::closed("the other end has stopped reading")),
                Err(StoppedError::ConnectionLost(error)) => Err(self.way.lost(error)),
                Err(StoppedError::ZeroRttRejected) => Err(CarrierError::closed("this end has finished sending")),
            }
        })
    }
}

impl Incoming for Half<RecvStream> {
    fn read<'a>(&'a mut self, into: &'a mut [u8]) -> Pending<'a, Result<Option<usize>, ReadError>> {
        Box::pin(async {
            match self.stream.read(into).await {
                Ok(got) => {
                    self.way.heard.fetch_or(got.is_some(), Ordering::AcqRel);
                    Ok(got)
                }
                Err(StreamError::ConnectionLost(error)) => {
                    let dropped = matches!(&error, ConnectionError::ApplicationClosed(c) if c.error_code == DROPPED);
                    let why = self.way.lost(error);
                    Err(if dropped { ReadError::LetGo(why) } else { ReadError::Over(why) })
                }
                Err(StreamError::Reset(_)) => {
                    Err(ReadError::LetGo(CarrierError::closed("the other end gave up its stream")))
                }
                Err(StreamError::ClosedStream) => Ok(None),
                Err(StreamError::IllegalOrderedRead | StreamError::ZeroRttRejected) => {
                    Err(ReadError::Over(CarrierError::closed("the stream can't be read any more")))
                }
            }
        })
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
        ConnectionError::ConnectionClosed(close) => CarrierError::Handshake(shorten(&close.to_string())),
        ConnectionError::TransportError(own) => CarrierError::Handshake(shorten(&own.to_string())),
        ConnectionError::ApplicationClosed(close) if close.reason.is_empty() => {
            CarrierError::closed("the other end dropped it without a word")
        }
        ConnectionError::ApplicationClosed(close) => {
            CarrierError::closed(&format!("the other end says: {}", shorten(&String::from_utf8_lossy(&close.reason))))
        }
        ConnectionError::Reset => CarrierError::closed("the other end no longer knows it; it may have been restarted"),
        ConnectionError::TimedOut => CarrierError::TimedOut("nothing was heard from the other end any more"),
        ConnectionError::LocallyClosed => CarrierError::closed("this end closed it"),
        ConnectionError::CidsExhausted => CarrierError::setup("no connection number is free"),
    }
}

fn number(why: Closing) -> VarInt {
    VarInt::from(why as u8)
}
