//! Links whose bytes travel in letters that somebody else carries: a framework for federated learning, a queue, a notebook.
//!
//! No socket is opened. What a party's links have to say is taken out as [`Letter`]s and handed in at the party that they are
//! addressed to. Inside is what a link over TCP has: TLS 1.3 with the pinned keys of both ends, and records. Whoever carries a letter
//! sees from whom it is, to whom, and how long, and reads nothing; what it changes, repeats or keeps breaks the link or delays it.
//!
//! Letters of a connection are numbered, so that they may arrive twice and in any order. Nothing is heard of a party between
//! letters, so silence ends no link: how long is waited for a party, the coordinator's timing says.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    time::Duration,
};

use rand_core::Rng;
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use veilsum_proto::codec;

use super::{
    Call, Carrier, CarrierError, Credentials, MAX_OPENING_PER_KEY, Opening, PeerKey, Result,
    link::{Link, Pending},
    listener::{Door, Guest},
    pinned,
    places::Places,
    stream::{self, Signs, identity},
};
use crate::{error::Failure, store::held};

/// What a letter begins with.
const MARK: &[u8; 4] = b"VSL1";
/// Bytes before what a letter holds: mark, to, from, connection, number, flags.
const HEADER: usize = 4 + 32 + 32 + 16 + 8 + 1;
/// Bytes of a letter at most, and of all that came and was not read of a connection: more than all that the window of a link lets pass
/// between two answers.
pub const MAX_LETTER: usize = 64 << 20;
/// Letters that may have arrived before one of their connection that is missing.
const MAX_EARLY: usize = 256;
/// Connections that one party keeps: a roster's members and what they dialled again.
const MAX_CONNECTIONS: usize = 4_096;
/// How long a handshake may take whose letters somebody carries, and then the first frame, on either side.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(600);

/// The connection was dialled by the writer of this letter.
const DIALLED: u8 = 1;
/// Nothing follows in this direction.
const LAST: u8 = 2;

/// A letter on its way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Letter {
    /// The key of the party that it is for.
    pub to: PeerKey,
    /// All of it, for [`Letters::deliver`] there.
    pub bytes: Vec<u8>,
}

/// A connection, as the one end tells it from others: its number, the other end, and whether that end dialled.
type Name = ([u8; 16], PeerKey, bool);

/// One party's letters: the carrier that its role runs on, and what is taken out of it and handed in by whoever carries them.
#[derive(Clone)]
pub struct Letters {
    own: PeerKey,
    state: Arc<Mutex<State>>,
    /// Of handshakes that run, by the key that the dialler claims to have.
    shaking: Places<PeerKey>,
}

#[derive(Default)]
struct State {
    door: Option<(Arc<Door>, TlsAcceptor)>,
    ends: BTreeMap<Name, Arc<Mutex<End>>>,
    /// Connections that others dialled and that are over, the last ones: a first letter that comes again is none of a new one.
    over: VecDeque<Name>,
}

/// What has come and what is to go on one connection.
#[derive(Default)]
struct End {
    inbox: Vec<u8>,
    /// No bytes follow those in the inbox.
    over: bool,
    reader: Option<Waker>,
    next: u64,
    early: BTreeMap<u64, (Vec<u8>, bool)>,
    outbox: Vec<u8>,
    /// This end is done, and whether the last letter has left.
    done: bool,
    said: bool,
    sent: u64,
}

impl End {
    /// Takes a letter in its turn.
    fn take(&mut self, number: u64, body: &[u8], last: bool) {
        let known = number < self.next || self.early.contains_key(&number);
        if known || self.over || (number > self.next && self.early.len() >= MAX_EARLY) {
            return;
        }
        let held: usize = self.early.values().map(|(body, _)| body.len()).sum();
        if self.inbox.len() + held + body.len() > MAX_LETTER {
            // No window lets so much wait: whoever wrote or changed this keeps to no rule, and the link ends at what has come.
            self.over = true;
            self.early.clear();
            self.reader.take().into_iter().for_each(Waker::wake);
            return;
        }
        self.early.insert(number, (body.to_vec(), last));
        while let Some((body, last)) = self.early.remove(&self.next) {
            self.next += 1;
            self.inbox.extend(body);
            self.over |= last;
        }
        self.reader.take().into_iter().for_each(Waker::wake);
    }
}

impl Letters {
    /// The letters of the party that holds the key `own`.
    pub fn new(own: PeerKey) -> Letters {
        Letters { own, state: Arc::default(), shaking: Places::new(MAX_OPENING_PER_KEY) }
    }

    /// Hands in a letter that was carried here. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// A [`Failure`] where it is no letter, or for another party.
    pub fn deliver(&self, letter: &[u8]) -> Result<(), Failure> {
        let next = "hand every letter, whole and unchanged, to the party that it is addressed to";
        let wrong = |what: &str| Failure::input(what, next);
        if letter.len() > MAX_LETTER {
            return Err(wrong("a letter is longer than any"));
        }
        let (head, body) = parts(letter).ok_or_else(|| wrong("these bytes are no letter"))?;
        let Head { to, from, connection, number, flags, .. } = head;
        if to != self.own {
            return Err(wrong("this letter is for another party"));
        }
        let name = (connection, from, flags & DIALLED != 0);
        let end = {
            let mut state = held(&self.state);
            match state.ends.get(&name) {
                Some(end) => end.clone(),
                // A connection that is over here.
                None if flags & DIALLED == 0 || state.over.contains(&name) => return Ok(()),
                None if state.ends.len() >= MAX_CONNECTIONS => return Ok(()),
                None => {
                    let State { door, ends, .. } = &mut *state;
                    let door = door.clone().filter(|(door, _)| door.lets_in(&from));
                    let place = door.as_ref().and_then(|(door, _)| {
                        let place = self.shaking.take(from);
                        if place.is_none() {
                            door.turned_away();
                        }
                        place
                    });
                    let (Some((door, tls)), Some(place)) = (door, place) else {
                        // Nobody comes in here now: the dialler hears it at once, and may dial again.
                        let closed = End { done: true, over: true, ..End::default() };
                        ends.insert(name, Arc::new(Mutex::new(closed)));
                        return Ok(());
                    };
                    let end = Arc::new(Mutex::new(End::default()));
                    ends.insert(name, end.clone());
                    let wire = Wire(end.clone());
                    tokio::spawn(async move { door.admit(place, HANDSHAKE_LIMIT, accept(wire, tls, from)).await });
                    end
                }
            }
        };
        held(&end).take(number, body, flags & LAST != 0);
        Ok(())
    }

    /// What there is to carry, in order.
    pub fn take(&self) -> Vec<Letter> {
        let mut letters = Vec::new();
        let State { ends, over, .. } = &mut *held(&self.state);
        let mut keep = |connection: &[u8; 16], peer: &PeerKey, theirs: &bool, end: &Mutex<End>| {
            let mut end = held(end);
            if end.outbox.is_empty() && (!end.done || end.said) {
                return !(end.done && end.said && end.over);
            }
            let flags = (if *theirs { 0 } else { DIALLED }) | (if end.done { LAST } else { 0 });
            let (to, from, connection, number) = (*peer, self.own, *connection, end.sent);
            let mut bytes = codec::encode(&Head { mark: *MARK, to, from, connection, number, flags });
            bytes.append(&mut end.outbox);
            end.sent += 1;
            end.said = end.done;
            letters.push(Letter { to, bytes });
            !(end.said && end.over)
        };
        ends.retain(|name, end| {
            let kept = keep(&name.0, &name.1, &name.2, end);
            if !kept && name.2 {
                over.push_back(*name);
                if over.len() > MAX_CONNECTIONS {
                    over.pop_front();
                }
            }
            kept
        });
        letters
    }
}

/// What stands before what a letter holds.
#[derive(Serialize, Deserialize)]
struct Head {
    mark: [u8; 4],
    to: PeerKey,
    from: PeerKey,
    connection: [u8; 16],
    /// The how manieth of its connection and direction.
    number: u64,
    flags: u8,
}

/// Both parts of a letter; nothing where these bytes are none.
fn parts(letter: &[u8]) -> Option<(Head, &[u8])> {
    let (head, body) = letter.split_at_checked(HEADER)?;
    let head: Head = codec::decode("letter", head, HEADER).ok()?;
    (head.mark == *MARK && head.flags & !(DIALLED | LAST) == 0).then_some((head, body))
}

/// To whom a letter is addressed, and whose it says that it is; nothing where these bytes are no letter. It proves nothing.
pub fn addressed(letter: &[u8]) -> Option<(PeerKey, PeerKey)> {
    parts(letter).map(|(head, _)| (head.to, head.from))
}

async fn accept(wire: Wire, tls: TlsAcceptor, from: PeerKey) -> Option<Guest> {
    let stream = tls.accept(wire).await.ok()?;
    let peer = identity(stream.get_ref().1).filter(|peer| *peer == from)?;
    Some(stream::guest(stream, peer, Signs::NONE))
}

impl Carrier for Letters {
    fn open<'a>(&'a self, at: SocketAddr, credentials: &'a Credentials, door: Arc<Door>) -> Opening<'a> {
        Box::pin(async move {
            let tls = TlsAcceptor::from(Arc::new(pinned::server_config(credentials, door.clone())?));
            held(&self.state).door = Some((door, tls));
            Ok((at, Box::new(Open(self.state.clone())) as _))
        })
    }

    /// Where a server is has no meaning here, and its letters take as long as they take.
    fn dial<'a>(&'a self, Call { credentials, expected, check, .. }: Call<'a>) -> Pending<'a, Result<Link>> {
        Box::pin(async move {
            let tls = pinned::client_config(credentials, expected)?;
            let mut connection = [0; 16];
            rand_core::UnwrapErr(getrandom::SysRng).fill_bytes(&mut connection);
            let end = Arc::new(Mutex::new(End::default()));
            held(&self.state).ends.insert((connection, *expected, false), end.clone());
            let said = (CarrierError::closed("the letters are another party's"), "the other end let go");
            let dialled = stream::dial(Wire(end), tls, (*expected, check), ("letters", Signs::NONE), said);
            let late = |_| CarrierError::TimedOut("no letter of the other end was carried here");
            timeout(HANDSHAKE_LIMIT, dialled).await.map_err(late)?
        })
    }
}

/// A party that takes letters.
struct Open(Arc<Mutex<State>>);

impl Drop for Open {
    fn drop(&mut self) {
        held(&self.0).door = None;
    }
}

/// The bytes of one connection, for TLS. None waits to be written: the window of a link says how many there can be.
struct Wire(Arc<Mutex<End>>);

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut end = held(&self.0);
        if end.inbox.is_empty() && !end.over {
            end.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        let got = end.inbox.len().min(into.remaining());
        into.put_slice(&end.inbox[..got]);
        end.inbox.drain(..got);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        held(&self.0).outbox.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        held(&self.0).done = true;
        Poll::Ready(Ok(()))
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let mut end = held(&self.0);
        // Nobody reads any more.
        (end.done, end.over) = (true, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_nobody_reads_take_no_more_than_one_may() {
        let part = vec![0; MAX_LETTER / 4];
        for first in [0, 1] {
            let mut end = End::default();
            // Twice the same is once, in its turn or before it.
            (first..first + 4).for_each(|number| end.take(number, &part, false));
            (first..first + 4).for_each(|number| end.take(number, &part, false));
            assert!(!end.over && end.early.len() == 4 * first as usize, "all of it is one letter's worth");
            end.take(9, b"x", false);
            assert!(end.over && end.early.is_empty(), "one byte more ends the link");
        }
    }
}
