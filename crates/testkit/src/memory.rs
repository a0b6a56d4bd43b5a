//! A carrier within one process: links are channels, and no socket is opened. Keys are compared and not proven, so that it is of
//! use to tests alone. A party may be cut off from everybody at a step of a round.

use std::{
    net::SocketAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{mpsc, watch};
use veilsum_node::carrier::{
    Call, Carrier, CarrierError, Credentials, Link, OPENING_TIMEOUT, Opening, PeerKey,
    link::{Bytes, Closing, Connection, Incoming, Outgoing, Pending, ReadError},
    listener::{Door, Guest},
};
use veilsum_proto::message::context_of;

use crate::prelude::*;

/// Writes that may wait for a peer that does not read.
const QUEUE: usize = 64;

/// Who listens where, and who is let in there.
type Ports = BTreeMap<SocketAddr, (PeerKey, Arc<Door>)>;

/// The ports of one process: parties that share it reach each other.
#[derive(Clone, Default)]
pub struct Memory {
    ports: Arc<Mutex<Ports>>,
    cut: Option<Arc<Cut>>,
}

/// A step of a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    /// Before its masked input leaves.
    BeforeInput,
    /// After its masked input has arrived.
    AfterInput,
    /// Before its shares leave.
    BeforeUnmask,
}

/// Where a site is cut off, and how far it is.
struct Cut {
    at: Point,
    round: usize,
    /// The contexts of its masked inputs: of the count of the rows, then of every round.
    inputs: Mutex<BTreeSet<Hash>>,
    gone: watch::Sender<bool>,
}

impl Cut {
    /// Whether a frame is the last thing that leaves the site, and arrives, or leaves no more; none where it goes on.
    fn falls(&self, frame: &[u8]) -> Option<bool> {
        let mut inputs = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        let here = match kind_of(frame) {
            Some(Kind::MaskedInput) => {
                inputs.extend(context_of(frame));
                self.at != Point::BeforeUnmask
            }
            Some(Kind::Unmask) => self.at == Point::BeforeUnmask,
            _ => false,
        };
        let falls = here && inputs.len() == self.round + 1;
        (falls || *self.gone.borrow()).then_some(falls && self.at == Point::AfterInput)
    }
}

impl Memory {
    /// The same ports for a site that is cut off from everybody in this round of the method, counted from 1, at this step of it; 0 is
    /// the count of the rows.
    pub fn cut(&self, at: Point, round: u32) -> Memory {
        let (inputs, gone) = (Mutex::default(), watch::channel(false).0);
        Memory { cut: Some(Arc::new(Cut { at, round: round as usize, inputs, gone })), ..self.clone() }
    }

    fn ports(&self) -> MutexGuard<'_, Ports> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Carrier for Memory {
    fn open<'a>(&'a self, at: SocketAddr, credentials: &'a Credentials, door: Arc<Door>) -> Opening<'a> {
        Box::pin(async move {
            let mut ports = self.ports();
            let free = (1..).map(|port| SocketAddr::new(at.ip(), port)).find(|at| !ports.contains_key(at));
            let address = free.expect("a port");
            ports.insert(address, (credentials.public_key(), door));
            Ok((address, Box::new(Open { memory: self.clone(), address }) as _))
        })
    }

    fn dial<'a>(&'a self, call: Call<'a>) -> Pending<'a, Result<Link, CarrierError>> {
        let Call { to, credentials, expected, check, .. } = call;
        Box::pin(async move {
            if self.cut.as_ref().is_some_and(|cut| *cut.gone.borrow()) {
                return Err(CarrierError::NotAccepted);
            }
            let at = format!("{to}").parse().ok();
            let port = at.and_then(|at| self.ports().get(&at).cloned());
            let nobody = || CarrierError::Unreachable { addr: to.clone(), waited: Duration::ZERO };
            let (key, door) = port.ok_or_else(nobody)?;
            if key != *expected {
                return Err(CarrierError::WrongServerKey(to.clone()));
            }
            let place = door.place().ok_or(CarrierError::Busy(to.clone()))?;
            let peer = credentials.public_key();
            if !door.lets_in(&peer) {
                return Err(CarrierError::NotAccepted);
            }
            let way = Arc::new(Way(watch::channel(None).0));
            if let Some(cut) = &self.cut {
                let (mut gone, way) = (cut.gone.subscribe(), way.clone());
                tokio::spawn(async move {
                    if gone.wait_for(|gone| *gone).await.is_ok() {
                        way.close(Closing::Done, "cut off");
                    }
                });
            }
            let ((to, far_from), (far_to, from)) = (mpsc::channel(QUEUE), mpsc::channel(QUEUE));
            let (near, far) = (ends(&way, to, from, self.cut.clone()), ends(&way, far_to, far_from, None));
            let connection = way.clone();
            tokio::spawn(async move {
                let opening: Pending<'static, Option<Bytes>> = Box::pin(async { Some(far) });
                door.admit(place, OPENING_TIMEOUT, async { Some(Guest { peer, connection, opening }) }).await;
            });
            Ok(Link::new(way, key, near, check))
        })
    }
}

/// A port while it is open.
struct Open {
    memory: Memory,
    address: SocketAddr,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.memory.ports().remove(&self.address);
    }
}

/// A connection: why it is closed, once it is.
struct Way(watch::Sender<Option<String>>);

impl Way {
    async fn shut(&self) -> CarrierError {
        let why = self.0.subscribe().wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        CarrierError::closed(&why.unwrap_or_default())
    }
}

impl Connection for Way {
    fn close(&self, _why: Closing, reason: &str) {
        self.0.send_replace(Some(reason.to_owned()));
    }

    fn closed(&self) -> Pending<'_, CarrierError> {
        Box::pin(self.shut())
    }

    fn settled(&self) -> Pending<'_, ()> {
        Box::pin(async {})
    }

    fn over(&self) -> &'static str {
        "memory"
    }
}

type Writes = mpsc::Sender<Vec<u8>>;

/// Both directions of one end.
fn ends(way: &Arc<Way>, to: Writes, from: mpsc::Receiver<Vec<u8>>, cut: Option<Arc<Cut>>) -> Bytes {
    (Box::new(Out { way: way.clone(), cut, to: Some(to) }), Box::new(In { way: way.clone(), from, rest: Vec::new() }))
}

struct Out {
    way: Arc<Way>,
    cut: Option<Arc<Cut>>,
    to: Option<Writes>,
}

impl Outgoing for Out {
    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> Pending<'a, Result<(), CarrierError>> {
        Box::pin(async {
            let Some(to) = &self.to else { return Err(CarrierError::closed("this end has finished sending")) };
            if let Some((cut, arrives)) = self.cut.as_ref().and_then(|cut| Some((cut, cut.falls(bytes)?))) {
                let _ = if arrives { to.send(bytes.to_vec()).await } else { Ok(()) };
                cut.gone.send_replace(true);
                return Err(CarrierError::closed("cut off"));
            }
            tokio::select! {
                sent = to.send(bytes.to_vec()) => sent.map_err(|_| CarrierError::closed("the other end is gone")),
                why = self.way.shut() => Err(why),
            }
        })
    }

    fn finish(&mut self) -> Pending<'_, Result<(), CarrierError>> {
        Box::pin(async {
            if let Some(to) = self.to.take() {
                // All of the queue's places are free once the other end has taken everything.
                let _ = to.reserve_many(QUEUE).await;
            }
            Ok(())
        })
    }
}

struct In {
    way: Arc<Way>,
    from: mpsc::Receiver<Vec<u8>>,
    rest: Vec<u8>,
}

impl Incoming for In {
    fn read<'a>(&'a mut self, into: &'a mut [u8]) -> Pending<'a, Result<Option<usize>, ReadError>> {
        Box::pin(async {
            while self.rest.is_empty() {
                self.rest = tokio::select! {
                    biased;
                    came = self.from.recv() => match came {
                        Some(bytes) => bytes,
                        None => return Ok(None),
                    },
                    why = self.way.shut() => return Err(ReadError::Over(why)),
                };
            }
            let got = self.rest.len().min(into.len());
            into[..got].copy_from_slice(&self.rest[..got]);
            self.rest.drain(..got);
            Ok(Some(got))
        })
    }
}
