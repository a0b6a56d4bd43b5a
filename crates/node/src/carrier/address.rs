//! Where a party is dialled: a host and a port, as the roster says them. A name is looked up anew at every attempt.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
    time::Duration,
};

use tokio::{net::lookup_host, time::timeout};

use super::{CarrierError, Result};

/// A host, by name or by number, and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
}

impl Address {
    /// The name, or the number without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Every address that it has now, at least one, in the order of the system's resolver, which has so long for it.
    ///
    /// # Errors
    /// [`CarrierError::Unresolved`] with what the resolver said.
    pub async fn resolve(&self, limit: Duration) -> Result<Vec<SocketAddr>> {
        let looked_up = timeout(limit, lookup_host((self.host.as_str(), self.port))).await;
        let reason = match looked_up.map(|found| found.map(Vec::from_iter)) {
            Ok(Ok(found)) if !found.is_empty() => return Ok(found),
            Ok(Ok(_)) => "the name has no address".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the name server does not answer".to_owned(),
        };
        Err(CarrierError::Unresolved { addr: self.clone(), reason })
    }
}

impl From<SocketAddr> for Address {
    fn from(at: SocketAddr) -> Self {
        Self { host: at.ip().to_string(), port: at.port() }
    }
}

impl FromStr for Address {
    type Err = String;

    /// `host:port`; a number of IPv6 stands in brackets.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(number) = text.parse::<SocketAddr>() {
            return Ok(number.into());
        }
        let (host, port) = text.rsplit_once(':').ok_or("it has no port: write HOST:PORT")?;
        let port = port.parse().map_err(|_| "its port is not a number from 1 to 65535")?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if host.is_empty() || !host.chars().all(plain) {
            return Err("its host is neither a name nor a number; a number of IPv6 stands in brackets".into());
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.parse() {
            Ok(IpAddr::V6(number)) => write!(f, "[{number}]:{}", self.port),
            _ => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_shown_again() {
        for text in ["hub.example:7000", "10.0.0.1:443", "[::1]:7000", "localhost:1"] {
            assert_eq!(text.parse::<Address>().map(|at| at.to_string()), Ok(text.to_owned()));
        }
        for bad in ["hub.example", "hub:70000", ":7000", "::1:7000x", "hub example:1", "hub\r\nHost:1", "fe80::1:443"] {
            assert!(bad.parse::<Address>().is_err(), "{bad:?}");
        }
    }
}
