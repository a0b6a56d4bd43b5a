//! Links over TLS 1.3 on TCP, for where UDP does not pass: the same pinned keys, the same frames. What QUIC does for a link and TCP
//! does not, records within TLS do ([`record`](super::record)): signs of life, a window, an end that is acknowledged, a reason.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use super::{
    CLOSE_GRACE, Call, CarrierError, Credentials, FIRST_BYTE_LIMIT, MAX_HANDSHAKES, MAX_HANDSHAKES_PER_ADDRESS,
    OPENING_TIMEOUT, Result,
    listener::{Door, Guest, Opened},
    pinned,
    places::Places,
    proxy::Proxy,
    race::Attempt,
    stream::{self, Signs, identity},
};

/// After an error of the port, such as too many open files, connections that wait are taken up a little later.
const PAUSE: Duration = Duration::from_millis(100);

// ---- Listening ------------------------------------------------------------------------------------------------------

pub(super) async fn open(addr: SocketAddr, credentials: &Credentials, door: Arc<Door>) -> Result<Opened> {
    let tls = TlsAcceptor::from(Arc::new(pinned::server_config(credentials, door.clone())?));
    let bind = CarrierError::bind("TCP", addr);
    let listener = TcpListener::bind(addr).await.map_err(&bind)?;
    let address = listener.local_addr().map_err(&bind)?;
    // Ends its task when it is dropped.
    let mut port = JoinSet::new();
    port.spawn(welcome(listener, tls, door));
    Ok((address, Box::new(port)))
}

/// Runs for as long as the listener, and brings each peer up to its first frame in a task of its own.
async fn welcome(listener: TcpListener, tls: TlsAcceptor, door: Arc<Door>) {
    let mut guests = JoinSet::new();
    // All together and by address. QUIC has others: strangers on the one do not close the other.
    let (all, by_address) = (Arc::new(Semaphore::new(MAX_HANDSHAKES)), Places::new(MAX_HANDSHAKES_PER_ADDRESS));
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
        let place = all.clone().try_acquire_owned().ok().zip(by_address.take(from.ip().to_canonical()));
        let Some(place) = place else {
            door.turned_away();
            continue;
        };
        let (tls, door) = (tls.clone(), door.clone());
        guests.spawn(async move { door.admit(place, OPENING_TIMEOUT, handshake(stream, tls)).await });
    }
}

async fn handshake(stream: TcpStream, tls: TlsAcceptor) -> Option<Guest> {
    let _ = stream.set_nodelay(true);
    timeout(FIRST_BYTE_LIMIT, stream.readable()).await.ok()?.ok()?;
    let stream = match tls.accept(stream).into_fallible().await {
        Ok(stream) => stream,
        Err((_, stream)) => {
            // What the peer has sent is read before the socket goes: unread, it would cost the peer our alert. The socket keeps its
            // place as long.
            let _ = timeout(CLOSE_GRACE, drain(stream)).await;
            return None;
        }
    };
    // The verifier asks for a key and checks it, so that there is none is a bug, and refused like any failed handshake.
    let peer = identity(stream.get_ref().1)?;
    Some(stream::guest(stream, peer, Signs::OF_LIFE))
}

async fn drain(mut stream: TcpStream) {
    let _ = stream.shutdown().await;
    let mut scrap = [0; 1024];
    while stream.read(&mut scrap).await.is_ok_and(|got| got > 0) {}
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
pub(super) fn attempt(path: Path, call: &Call<'_>) -> Result<Attempt> {
    let tls = pinned::client_config(call.credentials, call.expected)?;
    let (to, peer, check, limit) = (call.to.clone(), *call.expected, call.check, call.limit);
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
            let wrong = CarrierError::WrongServerKey(to.clone());
            stream::dial(stream, tls, (peer, check), (over, Signs::OF_LIFE), (wrong, CUT)).await
        };
        timeout(limit, connecting).await.map_err(|_| match &path {
            Path::Straight(_) => unreachable(),
            Path::Through(proxy) => proxy.silent(),
        })?
    }))
}

const CUT: &str = "it was cut before the other end said a word: that end has too many connections opening, or something between cuts them";
