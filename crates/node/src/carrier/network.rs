//! The carrier of real networks: QUIC, and TLS over TCP where UDP does not pass.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use super::{
    Allowed, Call, Carrier, CarrierError, Credentials, HeaderCheck, Opening, Result, Transport,
    link::{Link, Pending},
    listener::{Door, Listener, Opened},
    proxy::Proxy,
    quic, race,
    tcp::{self, Path},
};

/// Free ports that are tried until one is free for UDP and for TCP, where any will do.
const FREE_PORTS: usize = 16;

/// How long a name may take to be looked up for QUIC where a proxy is the other way.
const LOOKUP_BESIDE_PROXY: Duration = Duration::from_millis(500);

/// The carrier of this transport; where TCP may be used, through the proxy that the environment names.
///
/// # Errors
/// [`CarrierError::Proxy`] where the environment names a proxy that cannot be used.
pub fn choose(transport: Transport) -> Result<Arc<dyn Carrier>> {
    let proxy = if transport == Transport::Quic { None } else { Proxy::of_environment()? };
    Ok(Arc::new(Network::new(transport, proxy)))
}

/// Opens `at` on `carrier` for peers whose key is `allowed`. Must be called within a tokio runtime.
///
/// # Errors
/// [`CarrierError`] where the port cannot be opened.
pub async fn listen(
    carrier: &dyn Carrier,
    at: SocketAddr,
    credentials: &Credentials,
    allowed: Allowed,
    check: HeaderCheck,
) -> Result<Listener> {
    let (door, links) = Door::new(allowed, check);
    let port = carrier.open(at, credentials, door.clone()).await?;
    Ok(Listener { port, links })
}

/// Links over this machine's network.
pub struct Network {
    transport: Transport,
    proxy: Option<Proxy>,
}

impl Network {
    /// Of these transports, TCP through the proxy if there is one.
    pub fn new(transport: Transport, proxy: Option<Proxy>) -> Network {
        Network { transport, proxy }
    }

    fn quic(&self) -> bool {
        self.transport != Transport::Tcp
    }

    fn tcp(&self) -> bool {
        self.transport != Transport::Quic
    }

    async fn open_at(&self, mut at: SocketAddr, credentials: &Credentials, door: &Arc<Door>) -> Result<Opened> {
        // The ports of one listener have the same number.
        let (mut udp, mut tcp) = (None, None);
        if self.quic() {
            let (same, port) = quic::open(at, credentials, door.clone())?;
            (at, udp) = (same, Some(port));
        }
        if self.tcp() {
            let (same, port) = tcp::open(at, credentials, door.clone()).await?;
            (at, tcp) = (same, Some(port));
        }
        Ok((at, Box::new((udp, tcp))))
    }
}

impl Carrier for Network {
    fn open<'a>(&'a self, at: SocketAddr, credentials: &'a Credentials, door: Arc<Door>) -> Opening<'a> {
        Box::pin(async move {
            let (mut at, mut attempt) = (at, 0);
            loop {
                attempt += 1;
                match self.open_at(at, credentials, &door).await {
                    Ok(opened) => return Ok(opened),
                    // All addresses of a machine without IPv6.
                    Err(CarrierError::Bind { source, .. })
                        if at.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED)
                            && source.kind() != std::io::ErrorKind::AddrInUse
                            && source.kind() != std::io::ErrorKind::PermissionDenied =>
                    {
                        at.set_ip(Ipv4Addr::UNSPECIFIED.into());
                    }
                    // Somebody else has this number for TCP.
                    Err(CarrierError::Bind { kind: "TCP", .. }) if at.port() == 0 && attempt < FREE_PORTS => {}
                    Err(error) => return Err(error),
                }
            }
        })
    }

    fn dial<'a>(&'a self, call: Call<'a>) -> Pending<'a, Result<Link>> {
        let Call { to, limit, .. } = call;
        Box::pin(async move {
            let through = self.proxy.as_ref().filter(|proxy| proxy.serves(to));
            // A proxy looks the name up itself: it is not asked for here where nothing else needs it, and not long where QUIC does.
            let patience = if through.is_none() { limit } else { limit.min(LOOKUP_BESIDE_PROXY) };
            let needed = self.quic() || through.is_none();
            let looked_up = if needed { to.resolve(patience).await } else { Ok(Vec::new()) };
            let none = looked_up.as_ref().err().cloned().unwrap_or(CarrierError::TimedOut("there was no way to try"));
            let found = looked_up.unwrap_or_default();
            let mut attempts = Vec::new();
            for at in found.iter().filter(|_| self.quic()) {
                attempts.push(quic::attempt(*at, &call)?);
            }
            let paths: Vec<Path> = match through {
                Some(proxy) => vec![Path::Through(proxy.clone())],
                None => found.into_iter().map(Path::Straight).collect(),
            };
            for path in paths.into_iter().filter(|_| self.tcp()) {
                attempts.push(tcp::attempt(path, &call)?);
            }
            race::first(attempts, none).await
        })
    }
}
