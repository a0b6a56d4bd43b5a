//! A carrier within one process: links are channels, and no socket is opened. Keys are compared and not proven, so that it is of
//! use to tests alone.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::{mpsc, watch};
use veilsum_node::carrier::{
    Address, Carrier, CarrierError, Credentials, HeaderCheck, Link, OPENING_TIMEOUT, PeerKey,
    link::{Bytes, Closing, Connection, Incoming, Outgoing, Pending, ReadError},
    listener::{Door, Guest, Port, Refused},
};

/// Writes that may wait for a peer that does not read.
const QUEUE: usize = 64;

/// The ports of one process: parties that share it reach each other.
#[derive(Clone, Default)]
pub struct Memory {
    ports: Arc<Mutex<BTreeMap<SocketAddr, Listening>>>,
}

#[derive(Clone)]
struct Listening {
    key: PeerKey,
    door: Arc<Door>,
}

impl Carrier for Memory {
    fn open<'a>(
        &'a self,
        at: SocketAddr,
        credentials: &'a Credentials,
        door: Arc<Door>,
    ) -> Pending<'a, Result<Box<dyn Port>, CarrierError>> {
        Box::pin(async move {
            let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
            let free = (1..=u16::MAX).map(|port| SocketAddr::new(at.ip(), port)).find(|at| !ports.contains_key(at));
            let wanted = if at.port() == 0 { free } else { Some(at).filter(|at| !ports.contains_key(at)) };
            let address = wanted.ok_or_else(|| CarrierError::Bind {
                kind: "in-memory",
                addr: at,
                source: Arc::new(std::io::ErrorKind::AddrInUse.into()),
            })?;
            ports.insert(address, Listening { key: credentials.public_key(), door });
            Ok(Box::new(Open { memory: self.clone(), address }) as Box<dyn Port>)
        })
    }

    fn dial<'a>(
        &'a self,
        to: &'a Address,
        credentials: &'a Credentials,
        expected: &'a PeerKey,
        check: HeaderCheck,
        _limit: Duration,
    ) -> Pending<'a, Result<Link, CarrierError>> {
        Box::pin(async move {
            let at = format!("{to}").parse().ok();
            let port = at.and_then(|at| self.ports.lock().unwrap_or_else(PoisonError::into_inner).get(&at).cloned());
            let nobody = || CarrierError::Unreachable { addr: to.clone(), waited: Duration::ZERO };
            let Listening { key, door } = port.ok_or_else(nobody)?;
            if key != *expected {
                return Err(CarrierError::WrongServerKey { addr: to.clone() });
            }
            let place = door.place().ok_or(CarrierError::Busy { addr: to.clone() })?;
            let peer = credentials.public_key();
            if !door.lets_in(&peer) {
                return Err(CarrierError::NotAccepted);
            }
            let (closing, _) = watch::channel(None);
            let way = Arc::new(Way(closing));
            let ((near_out, far_in), (far_out, near_in)) = (pipe(&way), pipe(&way));
            let connection = way.clone();
            tokio::spawn(async move {
                let opening: Pending<'static, Option<Bytes>> = Box::pin(async { Some((far_out, far_in)) });
                door.admit(place, OPENING_TIMEOUT, async { Ok::<_, Refused>(Guest { peer, connection, opening }) })
                    .await;
            });
            Ok(Link::new(way, key, (near_out, near_in), check))
        })
    }
}

/// A port while it is open.
struct Open {
    memory: Memory,
    address: SocketAddr,
}

impl Port for Open {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn close<'a>(&'a self, _reason: &'a str) -> Pending<'a, ()> {
        Box::pin(async {})
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.memory.ports.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.address);
    }
}

/// Why a connection is closed, once it is.
struct Way(watch::Sender<Option<String>>);

impl Way {
    async fn shut(&self) -> CarrierError {
        let mut closed = self.0.subscribe();
        let why = closed.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
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

fn pipe(way: &Arc<Way>) -> (Box<dyn Outgoing>, Box<dyn Incoming>) {
    let (to, from) = mpsc::channel(QUEUE);
    let out = Out { way: way.clone(), to: Some(to) };
    (Box::new(out), Box::new(In { way: way.clone(), from, rest: Vec::new() }))
}

struct Out {
    way: Arc<Way>,
    to: Option<mpsc::Sender<Vec<u8>>>,
}

impl Outgoing for Out {
    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> Pending<'a, Result<(), CarrierError>> {
        Box::pin(async {
            let Some(to) = &self.to else { return Err(CarrierError::closed("this end has finished sending")) };
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
