//! Frames between two parties that know each other's keys: what a link is, what may go wrong on it, and its limits.
//!
//! A [`link`] carries whole frames in both directions over a [`Carrier`], which is QUIC (`quic`) or, where UDP does not pass,
//! TLS over TCP (`tcp`). Both ends prove possession of an Ed25519 key
//! that the other end has on its roster (RFC 7250 raw public keys, [`pinned`]); there is no certificate authority, no
//! host name and no resumption. The link protects the bytes on their way and says who sent them. Nothing above it may
//! rest on that alone: messages are signed and shares are sealed end to end.
//!
//! Three rules for callers:
//!
//! * **Connected is not accepted.** In TLS 1.3 a dialler has finished its handshake before the server has looked at the
//!   dialler's key. Only a frame from the server proves that it let us in.
//! * **The dialler speaks first.** The one stream of a link exists for the server once the dialler's first frame
//!   arrives; a dialler that stays silent for [`OPENING_TIMEOUT`] is dropped.
//! * **Finish before you drop.** Dropping both halves closes the connection at once, with frames possibly still on
//!   their way; [`LinkSender::finish`] waits until they have arrived.

mod address;
mod frame;
pub mod letters;
pub mod link;
pub mod listener;
mod network;
pub mod pinned;
mod places;
mod proxy;
mod quic;
mod race;
mod record;
mod stream;
mod tcp;

#[cfg(test)]
mod tests;

use std::{fmt, io, net::SocketAddr, sync::Arc, time::Duration};

pub use address::Address;
#[doc(hidden)]
pub use frame::Assembler;
pub use frame::FrameFault;
pub use letters::{Letter, Letters};
pub use link::{Link, LinkHandle, LinkReceiver, LinkSender, Pending};
pub(crate) use listener::Times;
pub use listener::{Door, Listener, Opened};
pub use network::{Network, choose, listen};
pub use pinned::Credentials;
pub(crate) use places::{Place, Places as PlacesOf};
pub use proxy::Proxy;
use serde::{Deserialize, Serialize};

/// One way to move the bytes of links, with both keys proven before the first frame. Roles know this and no more.
///
/// A new one is a file beside `quic.rs` and a line in [`Network`]. It brings connections; frames and their limits ([`link`]), the
/// door with the limits on strangers ([`listener`]) and the pinned keys of TLS 1.3 ([`pinned`]) are there for it to use.
pub trait Carrier: Send + Sync {
    /// Opens `at` for peers that `door` lets in. Must be called within a tokio runtime.
    fn open<'a>(&'a self, at: SocketAddr, credentials: &'a Credentials, door: Arc<Door>) -> Opening<'a>;

    /// Connects to a server. Must be called within a tokio runtime.
    ///
    /// An `Ok` says that the server is the right one. Whether it lets us in, its first frame says.
    fn dial<'a>(&'a self, call: Call<'a>) -> Pending<'a, Result<Link>>;
}

/// A port that is being opened.
pub type Opening<'a> = Pending<'a, Result<Opened>>;

/// Who is called, and by whom.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The server.
    pub to: &'a Address,
    /// The key that it must hold.
    pub expected: &'a PeerKey,
    /// The caller's own keys.
    pub credentials: &'a Credentials,
    /// Which frames may come.
    pub check: HeaderCheck,
    /// How long the attempt may take.
    pub limit: Duration,
}

/// Which transports a party uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// QUIC, and TCP where QUIC does not get through. It is tried anew for every connection.
    #[default]
    Auto,
    /// QUIC alone.
    Quic,
    /// TLS over TCP alone.
    Tcp,
}

impl Transport {
    /// What a port is opened for, for people.
    pub fn protocols(self) -> &'static str {
        match self {
            Transport::Auto => "UDP and TCP",
            Transport::Quic => "UDP",
            Transport::Tcp => "TCP",
        }
    }
}

/// Its name on a command line.
impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

impl std::str::FromStr for Transport {
    type Err = String;

    fn from_str(name: &str) -> Result<Transport, String> {
        let all = [Transport::Auto, Transport::Quic, Transport::Tcp];
        all.into_iter().find(|of| of.to_string() == name).ok_or_else(|| "it is auto, quic or tcp".to_owned())
    }
}

/// A party on the wire: its Ed25519 public key.
pub type PeerKey = [u8; 32];

/// Who may connect to a listener. Asked once for every handshake, so that a roster can change while the listener runs.
pub type Allowed = Arc<dyn Fn(&PeerKey) -> bool + Send + Sync>;

/// Reads a frame's header and answers how long its body may be, or in words why such a frame is refused.
///
/// The refusal is sent to the peer and shown to operators: it may quote version, kind and length, nothing else.
pub type HeaderCheck = fn(&[u8; HEADER_LEN]) -> Result<usize, String>;

/// Exactly these keys may connect.
pub fn only(keys: Vec<PeerKey>) -> Allowed {
    Arc::new(move |key| keys.contains(key))
}

/// Bytes before a frame's body: version (u16), kind (u16) and length of the body (u32), little-endian.
pub const HEADER_LEN: usize = 8;

/// The protocol's name in the TLS handshake (ALPN). Two ends with different names part there, before any frame.
pub const ALPN: &[u8] = b"veilsum/1";

/// What a frame's announced length may make us reserve before its bytes are here. A header is free to send, memory is
/// not: beyond this the buffer grows with what arrived, to at most twice that.
pub const RESERVE_LIMIT: usize = 64 * 1024;

/// Handshakes a listener runs at the same time; more are turned away and may try again. Each keeps at most 16 kB of
/// handshake bytes a TLS level and costs a signature and a verification. Enough for a large roster that redials at
/// once: a handshake and a first exchange take a few milliseconds of two cores. Few enough that a flood of strangers
/// with real addresses holds some megabytes and no more.
pub const MAX_HANDSHAKES: usize = 64;

/// Handshakes that one address may have under way over TCP, where an attempt that says nothing costs its sender nothing.
pub const MAX_HANDSHAKES_PER_ADDRESS: usize = 8;

/// Time a connection over TCP has until its first byte. Handshakes begin with the dialler.
pub const FIRST_BYTE_LIMIT: Duration = Duration::from_secs(3);

/// Connection attempts waiting to be looked at; more are refused at once. Each holds a packet of at most 1.5 kB.
pub const MAX_WAITING: usize = 256;

/// Bytes kept from one waiting attempt beyond its first packet. With neither certificates nor early data, a client's
/// whole share of a handshake is smaller than this.
pub const WAITING_BUFFER: u64 = 16 * 1024;

/// Connections of one key that may stand between handshake and first frame. More than one, since a restarted site may
/// redial while its old connection is still known; few, so that one site can't crowd out the others.
pub const MAX_OPENING_PER_KEY: usize = 4;

/// Time a peer has for its handshake, and after it for its first frame's first byte. Five round trips on the worst
/// links we want to serve (satellite, 600 ms, with losses) fit three times.
pub const OPENING_TIMEOUT: Duration = Duration::from_secs(10);

/// A packet is sent after this much silence, so that NAT tables and firewalls (often 30 s for UDP) keep the path open
/// while a site computes.
pub const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// A peer that has not been heard of for this long is gone: six lost keep-alives in a row are no accident.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// An end that is asked whether it is there has this long to answer where it answers at once: some round trips on the worst links
/// that we want to serve, and little enough for a party that was killed and started again.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// Bytes a peer may have sent that we did not read yet, and what we keep of our own until it is acknowledged.
/// 200 Mbit/s at 80 ms need 2 MB. Worst case for a coordinator with a thousand sites: 2 GiB in each direction.
pub const WINDOW: u32 = 2 * 1024 * 1024;

/// How long closing waits for its last packet to get out.
pub const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// A closing reason beyond this many characters is cut, ours as well as a peer's.
pub const REASON_LIMIT: usize = 200;

/// What comes of making or using a link.
pub type Result<T, E = CarrierError> = std::result::Result<T, E>;

/// Why a link could not be made or used. [`CarrierError::advice`] says what to try next.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CarrierError {
    /// The local address can't be used.
    #[error("cannot use the {kind} address {addr} here: {source}")]
    Bind {
        /// Of which transport.
        kind: &'static str,
        /// What was asked for.
        addr: SocketAddr,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// A name is not known.
    #[error("the name in {addr} cannot be looked up: {reason}")]
    Unresolved {
        /// Who was to be called.
        addr: Address,
        /// What the resolver said.
        reason: String,
    },
    /// The proxy on the way out did not let us through, or is not there.
    #[error("the proxy {proxy} cannot be used: {reason}")]
    Proxy {
        /// Its address, or the variable that names it.
        proxy: String,
        /// What went wrong.
        reason: String,
    },
    /// Nobody answered.
    #[error("no answer from {addr} within {waited:?}")]
    Unreachable {
        /// Who was called.
        addr: Address,
        /// For how long.
        waited: Duration,
    },
    /// Somebody else answered.
    #[error("the server at {0} holds another key than the roster says, and was sent nothing")]
    WrongServerKey(Address),
    /// The server ended the handshake after it saw our key.
    #[error("the server closed: your key is not on its roster, or it expects another one from you")]
    NotAccepted,
    /// The server has its hands full.
    #[error("the server at {0} has too many connections opening and turned this one away")]
    Busy(Address),
    /// The two ends don't share a version of QUIC or of this protocol.
    #[error("the other end speaks another version of the protocol")]
    OtherProtocol,
    /// The TLS handshake failed for a reason that is none of the above.
    #[error("the handshake failed: {0}")]
    Handshake(String),
    /// What arrived, or what we were about to send, is not a frame.
    #[error(transparent)]
    Frame(#[from] FrameFault),
    /// The connection is over.
    #[error("the connection is closed: {0}")]
    Closed(String),
    /// Something took longer than it was given.
    #[error("timed out: {0}")]
    TimedOut(&'static str),
    /// The TLS or QUIC library refused our own settings.
    #[error("cannot set up the connection: {0}")]
    Setup(String),
}

impl CarrierError {
    /// The connection is over for this reason.
    pub fn closed(reason: &str) -> CarrierError {
        CarrierError::Closed(reason.to_owned())
    }

    /// The system does not give this address.
    fn bind(kind: &'static str, addr: SocketAddr) -> impl Fn(io::Error) -> CarrierError {
        move |source| CarrierError::Bind { kind, addr, source: Arc::new(source) }
    }

    /// A library refused our own settings.
    fn setup(error: impl fmt::Display) -> CarrierError {
        CarrierError::Setup(error.to_string())
    }

    /// What to do next.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Bind { .. } => {
                "if this party runs already, it has the port; otherwise choose a free port and an address that this machine has"
            }
            Self::Unreachable { .. } => {
                "check that the server runs there and that a firewall lets UDP or TCP to that port through"
            }
            Self::Unresolved { .. } => {
                "check the name in the roster and this machine's name service; it is looked up again at every attempt"
            }
            Self::Proxy { .. } => {
                "check HTTPS_PROXY and NO_PROXY, and that the proxy lets CONNECT to that port through"
            }
            Self::WrongServerKey(_) => {
                "compare the key's fingerprint with its operator over another channel before you change the roster"
            }
            Self::NotAccepted => "send its operator your public key and compare fingerprints",
            Self::Busy(_) => "try again in a moment",
            Self::OtherProtocol => "bring both ends to the same release",
            Self::Handshake(_) => "check that the other end is a Veilsum party of the same release",
            Self::Frame(fault) => fault.advice,
            Self::Closed(_) => "dial again once the cause is dealt with",
            Self::TimedOut(_) => "check that the other end still runs and the network to it, then dial again",
            Self::Setup(_) => "this is a fault in Veilsum, please report it",
        }
    }
}

impl From<CarrierError> for crate::error::Failure {
    fn from(e: CarrierError) -> Self {
        let code = match e {
            CarrierError::NotAccepted => crate::error::Code::Denied,
            CarrierError::WrongServerKey(_) | CarrierError::Frame(_) => crate::error::Code::Peer,
            _ => crate::error::Code::Network,
        };
        let advice = e.advice();
        crate::error::Failure::new(code, e, advice)
    }
}
