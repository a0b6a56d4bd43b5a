//! Distance between organisations: a carrier whose links go through a relay that passes datagrams on after a while, in order.

use std::{
    collections::{HashMap, hash_map::Entry},
    io,
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use tokio::{
    net::UdpSocket,
    sync::mpsc::{self, UnboundedReceiver},
    time::{Instant, sleep_until},
};
use veilsum_node::carrier::{
    Address, Carrier, CarrierError, Credentials, HeaderCheck, Link, Network, PeerKey, Transport,
    link::Pending,
    listener::{Door, Port},
};

/// Larger than any datagram of QUIC, also of several in one.
const LARGEST: usize = 65_536;

type Queue = UnboundedReceiver<(Instant, Vec<u8>)>;

/// QUIC to ports of this machine that are so far off, one way.
pub struct Far {
    near: Network,
    one_way: Duration,
}

impl Far {
    pub fn new(one_way: Duration) -> Far {
        Far { near: Network::new(Transport::Quic, None), one_way }
    }
}

impl Carrier for Far {
    fn open<'a>(
        &'a self,
        at: SocketAddr,
        credentials: &'a Credentials,
        door: Arc<Door>,
    ) -> Pending<'a, Result<Box<dyn Port>, CarrierError>> {
        self.near.open(at, credentials, door)
    }

    fn dial<'a>(
        &'a self,
        to: &'a Address,
        credentials: &'a Credentials,
        expected: &'a PeerKey,
        check: HeaderCheck,
        limit: Duration,
    ) -> Pending<'a, Result<Link, CarrierError>> {
        Box::pin(async move {
            let at = to.to_string().parse().expect("the address of a port");
            let to = if self.one_way.is_zero() { at } else { away(at, self.one_way) };
            self.near.dial(&to.into(), credentials, expected, check, limit).await
        })
    }
}

/// The address at which `to` is found `one_way` further off. The relay lasts as long as the runtime.
fn away(to: SocketAddr, one_way: Duration) -> SocketAddr {
    let bound = std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| {
        socket.set_nonblocking(true)?;
        UdpSocket::from_std(socket)
    });
    let socket = Arc::new(bound.expect("a port on 127.0.0.1"));
    let address = socket.local_addr().expect("a bound socket");
    tokio::spawn(async move {
        if let Err(e) = relay(&socket, to, one_way).await {
            eprintln!("the relay ended: {e}");
        }
    });
    address
}

async fn relay(near: &Arc<UdpSocket>, to: SocketAddr, one_way: Duration) -> io::Result<()> {
    let mut known = HashMap::new();
    let mut buffer = vec![0; LARGEST];
    loop {
        let (length, from) = near.recv_from(&mut buffer).await?;
        let due = Instant::now() + one_way;
        let there = match known.entry(from) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                // A socket for each client, so that the far end can tell them apart.
                let far = Arc::new(UdpSocket::bind("127.0.0.1:0").await?);
                far.connect(to).await?;
                let (there, queue) = mpsc::unbounded_channel();
                tokio::spawn(deliver(queue, far.clone(), None));
                tokio::spawn(back(far, near.clone(), from, one_way));
                new.insert(there)
            }
        };
        let _ = there.send((due, buffer[..length].to_vec()));
    }
}

async fn back(far: Arc<UdpSocket>, near: Arc<UdpSocket>, client: SocketAddr, one_way: Duration) {
    let (there, queue) = mpsc::unbounded_channel();
    tokio::spawn(deliver(queue, near, Some(client)));
    let mut buffer = vec![0; LARGEST];
    while let Ok(length) = far.recv(&mut buffer).await {
        let _ = there.send((Instant::now() + one_way, buffer[..length].to_vec()));
    }
}

async fn deliver(mut queue: Queue, socket: Arc<UdpSocket>, to: Option<SocketAddr>) {
    while let Some((due, datagram)) = queue.recv().await {
        sleep_until(due).await;
        // A datagram that is lost is sent again by QUIC.
        let _ = match to {
            Some(to) => socket.send_to(&datagram, to).await,
            None => socket.send(&datagram).await,
        };
    }
}
