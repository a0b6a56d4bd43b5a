//! The way out through a proxy that takes `CONNECT` (RFC 9110, section 9.3.6), as `HTTPS_PROXY` and `NO_PROXY` name it. The proxy
//! sees who is called and how much is sent; TLS with pinned keys passes through it unopened.

use std::{
    fmt,
    net::IpAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use base64::{Engine, engine::general_purpose::STANDARD};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use zeroize::Zeroizing;

use super::{Address, CarrierError, Result};

/// Bytes of a proxy's answer at most.
const ANSWER: usize = 8 * 1024;
/// Lines in it at most.
const LINES: usize = 64;

/// A proxy, and what is not called through it.
#[derive(Clone)]
pub struct Proxy {
    at: Address,
    /// The value of `Proxy-Authorization`.
    secret: Option<Arc<Zeroizing<String>>>,
    /// Whether it took this for wrong. It is not sent again then: some count wrong passwords, and close the user's account.
    wrong: Arc<AtomicBool>,
    direct: Arc<[Direct]>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({})", self.at)
    }
}

/// An entry of `NO_PROXY`.
#[derive(Debug, PartialEq, Eq)]
enum Direct {
    All,
    /// A name, and all names that end with a dot and it.
    Name(String),
    /// The first bits of a number.
    Net(IpAddr, u32),
}

impl Proxy {
    /// The proxy that the environment names, if it names one; the same for the whole process.
    ///
    /// # Errors
    /// [`CarrierError::Proxy`] where it names one that cannot be used.
    pub fn of_environment() -> Result<Option<Proxy>> {
        static FOUND: OnceLock<Result<Option<Proxy>>> = OnceLock::new();
        let said = |name| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let value = |names: [&'static str; 2]| names.into_iter().find_map(said);
        let found = FOUND.get_or_init(|| {
            let url = value(["HTTPS_PROXY", "https_proxy"]);
            url.map(|url| Proxy::new(&url, &value(["NO_PROXY", "no_proxy"]).unwrap_or_default())).transpose()
        });
        found.clone()
    }

    /// From `http://[user:password@]host:port` and the list of `NO_PROXY`.
    ///
    /// # Errors
    /// [`CarrierError::Proxy`], which shows nothing of the password.
    pub fn new(url: &str, direct: &str) -> Result<Proxy> {
        let unusable = |reason: &str| CarrierError::Proxy { proxy: "HTTPS_PROXY".into(), reason: reason.into() };
        let url = url.trim();
        let rest = match url.split_once("://") {
            Some(("http", rest)) => rest,
            Some(_) => return Err(unusable("only proxies that begin with http:// are supported")),
            None => url,
        };
        // The password first, whatever stands in it: nothing of it may be taken for a host.
        let (user, host) = rest.rsplit_once('@').map_or((None, rest), |(user, host)| (Some(user), host));
        let host = host.split('/').next().unwrap_or_default();
        let at = host.parse().or_else(|_| format!("{host}:80").parse()).map_err(|why: String| unusable(&why))?;
        let secret = user.map(|user| {
            let plain = Zeroizing::new(decoded(user));
            Arc::new(Zeroizing::new(format!("Basic {}", STANDARD.encode(plain.as_slice()))))
        });
        let direct = direct.split([',', ' ']).filter_map(Direct::read).collect();
        Ok(Proxy { at, secret, wrong: Arc::default(), direct })
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        &self.at
    }

    /// Whether this server is called through the proxy. This machine itself never is.
    pub fn serves(&self, to: &Address) -> bool {
        let here = to.host() == "localhost" || to.host().parse().is_ok_and(|number: IpAddr| number.is_loopback());
        !here && !self.direct.iter().any(|direct| direct.covers(to.host()))
    }

    /// The failure of an attempt that the proxy did not bring to an end in time.
    pub(super) fn silent(&self) -> CarrierError {
        let reason = "it did not answer, or did not come through, in time".into();
        CarrierError::Proxy { proxy: self.at.to_string(), reason }
    }

    /// A connection to `to` through the proxy.
    ///
    /// # Errors
    /// [`CarrierError::Proxy`] with what went wrong at it.
    pub(super) async fn connect(&self, to: &Address) -> Result<TcpStream> {
        let failed = |reason: String| CarrierError::Proxy { proxy: self.at.to_string(), reason };
        let broken = |error: std::io::Error| failed(error.to_string());
        if self.wrong.load(Ordering::Relaxed) {
            return Err(failed(WRONG.into()));
        }
        let mut stream = TcpStream::connect((self.at.host(), self.at.port())).await.map_err(broken)?;
        let secret = self.secret.as_ref().map(|secret| format!("Proxy-Authorization: {}\r\n", secret.as_str()));
        let secret = Zeroizing::new(secret.unwrap_or_default());
        let request = Zeroizing::new(format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{}\r\n", *secret));
        stream.write_all(request.as_bytes()).await.map_err(broken)?;
        let mut answer = Vec::new();
        loop {
            // One byte at a time: what follows the answer belongs to TLS.
            answer.push(stream.read_u8().await.map_err(broken)?);
            if answer.ends_with(b"\r\n\r\n") {
                break;
            }
            if answer.len() >= ANSWER {
                return Err(failed("its answer does not end".into()));
            }
        }
        let mut lines = [httparse::EMPTY_HEADER; LINES];
        let mut parsed = httparse::Response::new(&mut lines);
        parsed.parse(&answer).map_err(|_| failed("it does not answer in HTTP".into()))?;
        match parsed.code {
            Some(200..=299) => Ok(stream),
            Some(407) => Err(failed(self.unauthorized(parsed.headers))),
            Some(code) => Err(failed(format!("it refused to connect to {to} ({code})"))),
            None => Err(failed("it does not answer in HTTP".into())),
        }
    }
}

impl Proxy {
    /// Why it did not let us through, by the ways to sign in that it offers (RFC 9110, section 11.7.1).
    fn unauthorized(&self, headers: &[httparse::Header<'_>]) -> String {
        let offers = headers.iter().filter(|header| header.name.eq_ignore_ascii_case("proxy-authenticate"));
        let schemes = offers.filter_map(|header| std::str::from_utf8(header.value).ok()?.split_whitespace().next());
        let known = |scheme: &&str| KNOWN.iter().find(|known| known.eq_ignore_ascii_case(scheme)).copied();
        let schemes: Vec<&str> = schemes.filter_map(|scheme| known(&scheme)).collect();
        if !schemes.is_empty() && !schemes.contains(&"Basic") {
            return format!(
                "it lets in who signs in by {} (407), which Veilsum does not do; run px or cntlm on this machine, which do, and name that in \
                 HTTPS_PROXY",
                schemes.join(" or ")
            );
        }
        if self.secret.is_some() {
            self.wrong.store(true, Ordering::Relaxed);
            return WRONG.into();
        }
        "it wants a user name and a password (407): HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT".into()
    }
}

/// What is said of a wrong password.
const WRONG: &str = "it does not take the user name and password of HTTPS_PROXY (407), which were sent once and are not sent again; correct them \
                     and start this command again";

/// Ways to sign in that proxies offer. Others are not repeated: they are a proxy's text.
const KNOWN: [&str; 5] = ["Basic", "Digest", "Negotiate", "NTLM", "Kerberos"];

impl Direct {
    fn read(text: &str) -> Option<Direct> {
        let text = text.trim().to_ascii_lowercase();
        if text == "*" {
            return Some(Direct::All);
        }
        // A port is not told apart, nor are the ways to write the end of a domain.
        let host = text.parse::<Address>().map_or(text, |at| at.host().to_owned());
        let text = host.trim_start_matches("*.").trim_matches(['.', '[', ']']).to_owned();
        let (number, bits) = text.split_once('/').unwrap_or((&text, "128"));
        if let (Ok(number), Ok(bits)) = (number.parse::<IpAddr>(), bits.parse::<u8>()) {
            return Some(Direct::Net(number, u32::from(bits.min(if number.is_ipv4() { 32 } else { 128 }))));
        }
        (!text.is_empty()).then_some(Direct::Name(text))
    }

    fn covers(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        match self {
            Direct::All => true,
            Direct::Name(name) => {
                host.strip_suffix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
            Direct::Net(net, bits) => match (net, host.parse()) {
                (IpAddr::V4(net), Ok(IpAddr::V4(host))) => (net.to_bits() ^ host.to_bits()).leading_zeros() >= *bits,
                (IpAddr::V6(net), Ok(IpAddr::V6(host))) => (net.to_bits() ^ host.to_bits()).leading_zeros() >= *bits,
                _ => false,
            },
        }
    }
}

/// `%41` is A (RFC 3986, section 2.1); what is no such thing stays.
fn decoded(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut bytes = Vec::with_capacity(rest.len());
    while let [first, others @ ..] = rest {
        let coded = others.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = coded.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &others[2..] } else { others };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_read_as_other_programs_read_it_and_its_password_is_not_shown() {
        let proxy = Proxy::new("http://anna:p%40ss@proxy.example:3128/", "").expect("a proxy");
        assert_eq!(proxy.at.to_string(), "proxy.example:3128");
        assert_eq!(proxy.secret.as_ref().map(|s| s.as_str()), Some("Basic YW5uYTpwQHNz"));
        assert_eq!(format!("{proxy:?}"), "Proxy(proxy.example:3128)");
        assert_eq!(Proxy::new("proxy.example", "").expect("a proxy").at.to_string(), "proxy.example:80");
        for bad in [
            "socks5://u:topsecret@proxy:1080",
            "https://u:topsecret@proxy",
            "http://u:topsecret@a b:1",
            "http://u:12/topsecret@a b:1",
            "http://u:1/topsecret@:x",
        ] {
            let error = Proxy::new(bad, "").expect_err("refused").to_string();
            assert!(!error.contains("topsecret"), "{error}");
        }
    }

    #[test]
    fn what_no_proxy_names_is_called_directly() {
        let proxy = Proxy::new(
            "http://proxy:1",
            "intranet, *.inner.example,10.0.0.0/8 192.168.1.7,fd00::/8,hub.far.:21111,[fc00::1]",
        )
        .expect("a proxy");
        let serves = |to: &str| proxy.serves(&to.parse().expect("an address"));
        let directly = "localhost:1 127.0.0.1:1 [::1]:1 intranet:1 hub.far:1 [fc00::1]:2 hub.inner.example:1 \
                        inner.example:1 10.200.0.1:1 192.168.1.7:1 [fd01::2]:1";
        for direct in directly.split(' ') {
            assert!(!serves(direct), "{direct}");
        }
        for through in ["hub.example:1", "winner.example:1", "11.0.0.1:1", "192.168.1.8:1", "[fe80::1]:1"] {
            assert!(serves(through), "{through}");
        }
        assert!(!Proxy::new("http://proxy:1", "*").expect("a proxy").serves(&"hub:1".parse().expect("an address")));
    }
}
