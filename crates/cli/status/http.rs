//! A few documents over HTTP/1.1 for a browser or a collector on this machine. It answers GET with a whole document and closes the
//! connection, on a thread of its own, so that no reader holds up a run.
//!
//! A page of somebody else in the same browser cannot read what is served here: there is no CORS, and a request that names another host
//! than this machine is refused (DNS rebinding).

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use veilsum_node::error::{Code, Failure};

/// Bytes of a request at most: browsers send one or two thousand.
const MAX_REQUEST: usize = 16 << 10;
/// Headers of a request at most.
const MAX_HEADERS: usize = 64;
/// How long a request may take to come, and how long a reader may take nothing.
const LIMIT: Duration = Duration::from_secs(2);
/// Connections at once: each may have a document in memory, which is 1 MB for a thousand sites.
const AT_ONCE: usize = 16;
/// Where a connection cannot be taken, as without free file descriptors, the next one is tried after so long.
const PAUSE: Duration = Duration::from_millis(200);

/// A document.
pub(super) struct Document {
    /// Its type.
    pub(super) kind: &'static str,
    /// What it may load and run.
    pub(super) policy: String,
    /// All of it.
    pub(super) body: Vec<u8>,
}

/// The document at a path, where there is one.
pub(super) type Documents = Arc<dyn Fn(&str) -> Option<Document> + Send + Sync>;

/// Serves as long as it is kept.
pub(super) struct Server {
    address: SocketAddr,
    closing: Arc<AtomicBool>,
}

impl Server {
    /// Opens the port. `option` is the one that asked for it.
    ///
    /// # Errors
    /// A [`Failure`] where it cannot be opened.
    pub(super) fn open(option: &str, at: SocketAddr, documents: Documents) -> Result<Server, Failure> {
        let refused = |e: io::Error| {
            let what = format!("{option}: {at} cannot be opened ({e})");
            Failure::new(
                Code::Network,
                what,
                match e.kind() {
                    ErrorKind::AddrInUse => {
                        format!("another process has this port; give another one, or 0 for any: {option} {}:0", at.ip())
                    }
                    _ => format!("give another address: {option} IP:PORT"),
                },
            )
        };
        let listener = TcpListener::bind(at).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let closing = Arc::new(AtomicBool::new(false));
        let seen = closing.clone();
        let serving = move || serve(&listener, address, &documents, &seen);
        std::thread::Builder::new().name("http".into()).spawn(serving).map_err(refused)?;
        Ok(Server { address, closing })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        // Wakes the thread.
        let mut to = self.address;
        if to.ip().is_unspecified() {
            to.set_ip(if to.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() });
        }
        drop(TcpStream::connect_timeout(&to, LIMIT));
    }
}

fn serve(listener: &TcpListener, address: SocketAddr, documents: &Documents, closing: &AtomicBool) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let stream = listener.accept();
        if closing.load(Ordering::Acquire) {
            return;
        }
        let Ok((mut stream, _)) = stream else {
            std::thread::sleep(PAUSE);
            continue;
        };
        // Whoever comes now asks again.
        if open.load(Ordering::Acquire) >= AT_ONCE {
            continue;
        }
        open.fetch_add(1, Ordering::AcqRel);
        let place = Place(open.clone());
        let documents = documents.clone();
        let answering = move || {
            let _place = place;
            // Nothing can be done for a reader that is gone.
            let _ = answer(&mut stream, address, &documents);
            let _ = stream.shutdown(Shutdown::Both);
        };
        let _ = std::thread::Builder::new().name("http".into()).spawn(answering);
    }
}

/// One of the connections at once.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn answer(stream: &mut TcpStream, address: SocketAddr, documents: &Documents) -> io::Result<()> {
    let _ = stream.set_write_timeout(Some(LIMIT));
    let asked = request(stream);
    let document = match asked {
        Ok(request) => respond(&request, address, documents),
        Err(status) => Err(status),
    };
    let reply = match &document {
        Ok(document) => head("200 OK", document.kind, &document.policy, document.body.len()),
        Err(status) => head(status, "text/plain; charset=utf-8", "default-src 'none'", status.len() + 1),
    };
    let mut reply = reply.into_bytes();
    match document {
        Ok(document) => reply.extend(document.body),
        Err(status) => reply.extend(format!("{status}\n").into_bytes()),
    }
    stream.write_all(&reply)
}

fn head(status: &str, kind: &str, policy: &str, length: usize) -> String {
    let allow = if status.starts_with("405") { "Allow: GET\r\n" } else { "" };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{allow}Connection: close\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: {policy}; frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\n\r\n"
    )
}

/// What is asked.
#[derive(Debug, PartialEq)]
struct Request {
    method: String,
    path: String,
    hosts: Vec<String>,
}

/// Reads a request within its limits, or says what is wrong with it.
fn request(stream: &mut TcpStream) -> Result<Request, &'static str> {
    let end = Instant::now() + LIMIT;
    let mut bytes = Vec::new();
    let mut part = [0; 2048];
    loop {
        if let Some(request) = parsed(&bytes)? {
            return Ok(request);
        }
        if bytes.len() >= MAX_REQUEST {
            return Err("431 Request Header Fields Too Large");
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return Err("408 Request Timeout");
        }
        match stream.read(&mut part) {
            Ok(0) => return Err("400 Bad Request"),
            Ok(read) => bytes.extend_from_slice(&part[..read]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Err("408 Request Timeout"),
        }
    }
}

/// A whole request; `None` where more of it is to come.
fn parsed(bytes: &[u8]) -> Result<Option<Request>, &'static str> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Err(httparse::Error::TooManyHeaders) => Err("431 Request Header Fields Too Large"),
        Err(_) => Err("400 Bad Request"),
        Ok(httparse::Status::Partial) => Ok(None),
        Ok(httparse::Status::Complete(_)) => {
            let hosts = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
            Ok(Some(Request {
                method: request.method.unwrap_or_default().to_owned(),
                path: request.path.unwrap_or_default().to_owned(),
                hosts: hosts.map(|header| String::from_utf8_lossy(header.value).trim().to_ascii_lowercase()).collect(),
            }))
        }
    }
}

fn respond(request: &Request, address: SocketAddr, documents: &Documents) -> Result<Document, &'static str> {
    let [host] = &request.hosts[..] else { return Err("400 Bad Request") };
    if address.ip().is_loopback() && !is_here(host, address.port()) {
        return Err("421 Misdirected Request");
    }
    if request.method != "GET" {
        return Err("405 Method Not Allowed");
    }
    let path = request.path.split('?').next().unwrap_or_default();
    documents(path).ok_or("404 Not Found")
}

/// Whether a host is this machine's loopback, at this port.
fn is_here(host: &str, port: u16) -> bool {
    let name = host.strip_suffix(&format!(":{port}")).or_else(|| Some(host).filter(|_| port == 80));
    name.is_some_and(|name| ["127.0.0.1", "localhost", "[::1]"].contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        let documents: Documents = Arc::new(|path| {
            let body = match path {
                "/" => b"hello".to_vec(),
                "/large" => vec![b'x'; 32 << 20],
                _ => return None,
            };
            Some(Document { kind: "text/plain", policy: "default-src 'none'".into(), body })
        });
        Server::open("--page", "127.0.0.1:0".parse().unwrap(), documents).unwrap()
    }

    fn ask(server: &Server, request: &str) -> String {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(request.replace("PORT", &server.address().port().to_string()).as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn only_get_and_only_for_this_machine() {
        let server = server();
        let of = |request: &str| ask(&server, request).lines().next().unwrap_or_default().to_owned();
        for host in ["127.0.0.1:PORT", "localhost:PORT", "LOCALHOST:PORT", "[::1]:PORT"] {
            assert_eq!(of(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")), "HTTP/1.1 200 OK", "{host}");
        }
        for host in [
            "evil.example:PORT",
            "evil.example",
            "127.0.0.1",
            "127.0.0.1:1",
            "127.0.0.1.evil.example:PORT",
            "[::1]",
            "",
        ] {
            let told = of(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert_eq!(told, "HTTP/1.1 421 Misdirected Request", "{host}");
        }
        for (request, told) in [
            ("GET / HTTP/1.1\r\n\r\n", "400 Bad Request"),
            ("GET / HTTP/1.1\r\nHost: localhost:PORT\r\nHost: localhost:PORT\r\n\r\n", "400 Bad Request"),
            ("\u{1}\u{2}\r\n\r\n", "400 Bad Request"),
            ("GET /none HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n", "404 Not Found"),
            ("GET /../etc/passwd HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n", "404 Not Found"),
            ("HEAD / HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n", "405 Method Not Allowed"),
            ("POST / HTTP/1.1\r\nHost: localhost:PORT\r\nContent-Length: 0\r\n\r\n", "405 Method Not Allowed"),
            (
                "OPTIONS / HTTP/1.1\r\nHost: localhost:PORT\r\nOrigin: https://evil.example\r\n\r\n",
                "405 Method Not Allowed",
            ),
        ] {
            assert_eq!(of(request), format!("HTTP/1.1 {told}"), "{request:?}");
        }
        let large = format!("GET / HTTP/1.1\r\nHost: localhost:PORT\r\nX: {}", "x".repeat(MAX_REQUEST));
        assert_eq!(of(&large), "HTTP/1.1 431 Request Header Fields Too Large");
    }

    #[test]
    fn every_answer_forbids_what_it_does_not_need() {
        let server = server();
        for path in ["/", "/none"] {
            let told = ask(
                &server,
                &format!("GET {path} HTTP/1.1\r\nHost: localhost:PORT\r\nOrigin: https://evil.example\r\n\r\n"),
            );
            for header in [
                "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'",
                "nosniff",
                "no-store",
                "no-referrer",
            ] {
                assert!(told.contains(header), "{header}: {told}");
            }
            assert!(!told.to_ascii_lowercase().contains("access-control"), "{told}");
        }
    }

    /// Neither somebody who asks nothing nor somebody who reads nothing keeps the next one from being answered, nor for long.
    #[test]
    fn nobody_who_is_silent_holds_up_anybody() {
        let server = server();
        let silent: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
        let deaf: Vec<TcpStream> = (0..AT_ONCE - 5)
            .map(|_| {
                let mut stream = TcpStream::connect(server.address()).unwrap();
                let request = format!("GET /large HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", server.address().port());
                stream.write_all(request.as_bytes()).unwrap();
                stream
            })
            .collect();
        assert!(ask(&server, "GET / HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n").ends_with("hello"));
        let more: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
        // All places are given back within their limits.
        let end = Instant::now() + LIMIT * 10;
        while !ask(&server, "GET / HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n").ends_with("hello") {
            assert!(Instant::now() < end, "nobody is answered any more");
        }
        drop((silent, deaf, more));
    }

    #[test]
    fn a_second_server_on_one_port_is_refused_with_what_to_do() {
        let server = server();
        let nothing: Documents = Arc::new(|_| None);
        let refused = Server::open("--page", server.address(), nothing.clone()).map(drop).unwrap_err();
        assert_eq!(refused.code, Code::Network);
        assert!(refused.advice.contains("--page 127.0.0.1:0"), "{}", refused.advice);
        let address = server.address();
        drop(server);
        let end = Instant::now() + LIMIT * 5;
        while Server::open("--page", address, nothing.clone()).is_err() {
            assert!(Instant::now() < end, "the port is not given back");
        }
    }
}
