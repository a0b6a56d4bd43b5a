//! A link: whole frames in both directions over whatever bytes a carrier moves.
//!
//! A carrier gives three things: the [`Outgoing`] and the [`Incoming`] bytes of a connection, and the [`Connection`] itself, with
//! which it is closed. Frames, their limits and the rules for broken ones are here, once for all carriers.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use tokio::time::{sleep, timeout};

use super::{
    CarrierError, FrameFault, HeaderCheck, PeerKey, REASON_LIMIT, Result,
    frame::{Assembler, check_outgoing},
};
use crate::egress::Egress;

/// Bytes that are read at once: more than a packet, little beside the window of a thousand links.
const READ_SIZE: usize = 16 * 1024;

/// How often it is looked whether the other end was heard.
const LOOK: Duration = Duration::from_millis(10);

/// What a carrier does in its own time.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Why a connection is closed, as a number beside the words. 0 is left to a connection that was just dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Closing {
    /// This end is done with it.
    Done = 1,
    /// What came is not a frame.
    BadFrame = 2,
    /// The other end took too long.
    TooSlow = 3,
}

/// How reading ended, where it did not end well.
#[derive(Clone, Debug)]
pub enum ReadError {
    /// The connection is over for this reason.
    Over(CarrierError),
    /// The other end let go without a word. Within a frame, that the frame is cut says more than this reason.
    LetGo(CarrierError),
}

impl From<ReadError> for CarrierError {
    fn from((ReadError::Over(error) | ReadError::LetGo(error)): ReadError) -> CarrierError {
        error
    }
}

/// A connection to one peer. It stays open for as long as one of its halves or handles exists.
pub trait Connection: Send + Sync {
    /// Ends both directions at once; the peer is told why, as far as it can be. Frames on their way may be lost.
    fn close(&self, why: Closing, reason: &str);
    /// Waits for the end, and tells why it came.
    fn closed(&self) -> Pending<'_, CarrierError>;
    /// After [`Connection::close`]: waits, for a time that the carrier limits, until the news is out, so that the process may end.
    fn settled(&self) -> Pending<'_, ()>;
    /// Whether the other end is there: true as soon as anything has come from it that it sent after this call, false where the
    /// connection is over, or nothing comes for a while that the carrier sets. As it stands: for a carrier that learns at once of
    /// an end that is gone.
    fn answers(&self) -> Pending<'_, bool> {
        Box::pin(async { timeout(Duration::ZERO, self.closed()).await.is_err() })
    }
    /// What the bytes travel on, for people.
    fn over(&self) -> &'static str;
}

/// Whether `heard` becomes another number within `limit`, before the connection is `over`. The number is that of when it is first asked.
pub(super) async fn hears<T>(heard: impl Fn() -> u64, limit: Duration, over: impl Future<Output = T>) -> bool {
    let before = heard();
    let sign = async {
        while heard() == before {
            sleep(LOOK).await;
        }
    };
    tokio::select! {
        heard = timeout(limit, sign) => heard.is_ok(),
        _ = over => false,
    }
}

/// The outgoing bytes of a connection.
pub trait Outgoing: Send {
    /// Returns when the connection has taken the last byte. Need not be cancel-safe.
    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> Pending<'a, Result<()>>;
    /// Says that nothing follows, and waits until the peer has acknowledged every byte. May be called again.
    fn finish(&mut self) -> Pending<'_, Result<()>>;
}

/// The incoming bytes of a connection.
pub trait Incoming: Send {
    /// Fills the front of `into` with what has come, at least one byte, and says how many; `None` where the peer has finished.
    /// Cancel-safe.
    fn read<'a>(&'a mut self, into: &'a mut [u8]) -> Pending<'a, Result<Option<usize>, ReadError>>;
}

/// Both directions of a connection, as a carrier hands them over.
pub type Bytes = (Box<dyn Outgoing>, Box<dyn Incoming>);

/// A connection to one peer with a proven key.
pub struct Link {
    sender: LinkSender,
    receiver: LinkReceiver,
}

impl Link {
    /// Frames on this connection; whose body may be how long, `check` says.
    pub fn new(connection: Arc<dyn Connection>, peer: PeerKey, (out, into): Bytes, check: HeaderCheck) -> Link {
        let handle = LinkHandle { connection, peer };
        let buffer = vec![0; READ_SIZE].into_boxed_slice();
        Link {
            sender: LinkSender { handle: handle.clone(), bytes: out, broken: false },
            receiver: LinkReceiver { handle, bytes: into, buffer, frames: Assembler::new(check), broken: false },
        }
    }

    /// Something to close the link with, and to see it closed, while its halves are at work elsewhere.
    pub fn handle(&self) -> LinkHandle {
        self.sender.handle.clone()
    }

    /// The two directions, to be used by two tasks or by one.
    pub fn split(self) -> (LinkSender, LinkReceiver) {
        (self.sender, self.receiver)
    }
}

/// Control over a link, without its frames. It keeps the connection open for as long as it exists.
#[derive(Clone)]
pub struct LinkHandle {
    connection: Arc<dyn Connection>,
    peer: PeerKey,
}

impl LinkHandle {
    /// Whose key the other end has proven to hold.
    pub fn peer(&self) -> PeerKey {
        self.peer
    }

    /// Whether both are of one link.
    pub fn is_same(&self, other: &LinkHandle) -> bool {
        Arc::ptr_eq(&self.connection, &other.connection)
    }

    /// What the link runs on, for people: QUIC, or TCP.
    pub fn over(&self) -> &'static str {
        self.connection.over()
    }

    /// Ends the link in both directions at once; the peer is told `reason`, cut to [`REASON_LIMIT`]. Frames on their
    /// way may be lost: where they matter, [`LinkSender::finish`] first.
    ///
    /// A dialler waits a moment for the news to get out, so that it may leave the process afterwards.
    pub async fn close(&self, reason: &'static str) {
        self.connection.close(Closing::Done, &shorten(reason));
        self.connection.settled().await;
    }

    /// Whether the other end is there ([`Connection::answers`]).
    pub async fn answers(&self) -> bool {
        self.connection.answers().await
    }

    /// Waits for the end of the link and tells why it came.
    pub async fn closed(&self) -> CarrierError {
        self.connection.closed().await
    }
}

/// The outgoing direction of a link.
pub struct LinkSender {
    handle: LinkHandle,
    bytes: Box<dyn Outgoing>,
    /// A frame was begun and not finished.
    broken: bool,
}

impl LinkSender {
    /// Sends one frame: returns when the connection has taken its last byte, that is, when all but the last
    /// [`super::WINDOW`] bytes have been acknowledged.
    ///
    /// A peer that doesn't read makes this wait for ever; whoever serves others as well uses [`Self::send_within`].
    /// Not cancel-safe: a send that is dropped half-way breaks this direction, later sends say so.
    pub async fn send(&mut self, frame: &Egress) -> Result<()> {
        check_outgoing(frame.bytes())?;
        if self.broken {
            return Err(FrameFault::broken().into());
        }
        self.broken = true;
        self.bytes.write(frame.bytes()).await?;
        self.broken = false;
        Ok(())
    }

    /// Like [`Self::send`], but a peer that has not taken the frame within `limit` loses the link.
    pub async fn send_within(&mut self, frame: &Egress, limit: Duration) -> Result<()> {
        match timeout(limit, self.send(frame)).await {
            Ok(sent) => sent,
            Err(_) => {
                self.handle.connection.close(Closing::TooSlow, "a frame was not read in time");
                Err(CarrierError::TimedOut("the other end did not read a frame"))
            }
        }
    }

    /// Says that no frame follows and waits up to `limit` until the peer has acknowledged every byte. Its receiver
    /// then answers `None`.
    pub async fn finish(&mut self, limit: Duration) -> Result<()> {
        if self.broken {
            return Err(FrameFault::broken().into());
        }
        timeout(limit, self.bytes.finish())
            .await
            .unwrap_or(Err(CarrierError::TimedOut("the other end did not acknowledge the last frames")))
    }
}

/// The incoming direction of a link.
pub struct LinkReceiver {
    handle: LinkHandle,
    bytes: Box<dyn Incoming>,
    buffer: Box<[u8]>,
    frames: Assembler,
    /// A frame was refused: what follows on the stream has no beginning we could find.
    broken: bool,
}

impl LinkReceiver {
    /// From the next frame on, `check` says which frames may come.
    pub fn expects(&mut self, check: HeaderCheck) {
        self.frames.expects(check);
    }

    /// The next frame, header and body; `None` where the peer has finished after a whole frame.
    ///
    /// A frame that breaks the rules closes the connection: behind it, no frame's beginning can be told. Cancel-safe:
    /// what has arrived of a frame is kept for the next call.
    pub async fn recv(&mut self) -> Result<Option<Vec<u8>>> {
        if self.broken {
            return Err(FrameFault::broken().into());
        }
        loop {
            let most = self.frames.wants().min(READ_SIZE);
            let pushed = match self.bytes.read(&mut self.buffer[..most]).await {
                Ok(Some(got)) => self.frames.push(&self.buffer[..got]),
                Ok(None) if self.frames.end().is_ok() => return Ok(None),
                Err(ReadError::LetGo(error)) if self.frames.end().is_ok() => return Err(error),
                Err(ReadError::Over(error)) => return Err(error),
                Ok(None) | Err(ReadError::LetGo(_)) => self.frames.end().map(|()| None),
            };
            match pushed {
                Ok(Some(frame)) => return Ok(Some(frame)),
                Ok(None) => {}
                Err(fault) => {
                    self.broken = true;
                    self.handle.connection.close(Closing::BadFrame, &shorten(&fault.to_string()));
                    return Err(fault.into());
                }
            }
        }
    }
}

/// A peer's words may end up on an operator's terminal: one line, no control characters, not too long.
pub fn shorten(words: &str) -> String {
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
    /// As [`Self::send`].
    pub(super) async fn send_bytes(&mut self, frame: &[u8]) -> Result<()> {
        self.send(&Egress::foreign(frame)).await
    }

    /// Bytes that need not be a frame: what a broken or hostile peer would send.
    pub(super) async fn send_raw(&mut self, bytes: &[u8]) {
        self.bytes.write(bytes).await.expect("the connection stands");
    }
}
