//! Firewalls, proxies and machines with several addresses: which way a link takes, and what is said where none is left.

use std::net::Ipv6Addr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

use super::*;
use crate::carrier::{pinned, proxy::Proxy, record};

async fn listen(over: Transport, at: SocketAddr) -> Listener {
    let allowed = only(vec![party(1).public_key(), party(2).public_key()]);
    super::listen(&network(over), at, &party(0), allowed, check).await.expect("a port is free")
}

async fn dial(network: &Network, to: &Address) -> Result<Link, CarrierError> {
    super::dial(network, to, &party(1), 0, LIMIT).await
}

/// A link that has been used in both directions, and what it runs on.
async fn used(network: &Network, to: &Address, listener: &mut Listener) -> &'static str {
    let link = dial(network, to).await.expect("a way is left");
    let over = link.handle().over();
    let (mut sender, mut receiver) = link.split();
    sender.send_bytes(&frame(1, b"hello")).await.expect("it is sent");
    let server = tokio::spawn(echo(listener.accept().await.expect("the key is allowed")));
    assert_eq!(receiver.recv().await.expect("an echo"), Some(frame(1, b"hello")));
    sender.finish(LIMIT).await.expect("all has arrived");
    server.await.expect("no panic");
    over
}

#[tokio::test]
async fn tcp_is_taken_where_udp_does_not_pass_and_quic_again_as_soon_as_it_does() {
    soon(async {
        let mut tcp_only = listen(Transport::Tcp, loopback()).await;
        let at = tcp_only.local_addr();
        let auto = network(Transport::Auto);
        assert_eq!(used(&auto, &at.into(), &mut tcp_only).await, "TCP");
        drop(tcp_only);
        let mut both = listen(Transport::Auto, loopback()).await;
        let at = both.local_addr();
        assert_eq!(used(&auto, &at.into(), &mut both).await, "QUIC");
        for (forced, over) in [(Transport::Quic, "QUIC"), (Transport::Tcp, "TCP")] {
            assert_eq!(used(&network(forced), &at.into(), &mut both).await, over);
        }
    })
    .await;
}

#[tokio::test]
async fn all_addresses_of_a_name_are_tried_and_one_port_serves_ipv4_and_ipv6() {
    soon(async {
        let mut four = listen(Transport::Auto, loopback()).await;
        let by_name = format!("localhost:{}", four.local_addr().port()).parse().expect("an address");
        used(&network(Transport::Auto), &by_name, &mut four).await;
        let mut all = listen(Transport::Auto, (Ipv6Addr::UNSPECIFIED, 0).into()).await;
        let port = all.local_addr().port();
        let mut numbers = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))];
        if UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
            numbers.push((Ipv6Addr::LOCALHOST, port).into());
        } else {
            eprintln!("SKIPPED in part: this machine has no IPv6");
        }
        for number in numbers {
            for over in [Transport::Quic, Transport::Tcp] {
                used(&network(over), &number.into(), &mut all).await;
            }
        }
    })
    .await;
}

/// A proxy that connects whoever asks to `to`, if `says` is nothing, and else only says that. It tells what it was asked.
async fn proxy(
    to: SocketAddr,
    says: Option<&'static str>,
) -> (SocketAddr, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind(loopback()).await.expect("a port is free");
    let at = listener.local_addr().expect("a bound port");
    let (asked, requests) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let asked = asked.clone();
            tokio::spawn(async move {
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    request.push(near.read_u8().await?);
                }
                let _ = asked.send(String::from_utf8_lossy(&request).into_owned());
                near.write_all(says.unwrap_or("HTTP/1.1 200 Connection established\r\nVia: a test\r\n\r\n").as_bytes())
                    .await?;
                let mut far = TcpStream::connect(to).await?;
                copy_bidirectional(&mut near, &mut far).await
            });
        }
    });
    (at, requests)
}

#[tokio::test]
async fn a_proxy_is_asked_for_the_name_and_carries_the_link() {
    soon(async {
        // Nobody answers on this port for UDP, and the name is known to the proxy alone.
        let mut listener = listen(Transport::Tcp, loopback()).await;
        let (at, mut requests) = proxy(listener.local_addr(), None).await;
        let through = Proxy::new(&format!("http://anna:secret@{at}"), "").expect("a proxy");
        let auto = Network::new(Transport::Auto, Some(through));
        let hub = "hub.invalid:443".parse().expect("an address");
        assert_eq!(used(&auto, &hub, &mut listener).await, "TCP through a proxy");
        let request = requests.recv().await.expect("a request");
        assert!(request.starts_with("CONNECT hub.invalid:443 HTTP/1.1\r\nHost: hub.invalid:443\r\n"), "{request}");
        assert!(request.contains("\r\nProxy-Authorization: Basic YW5uYTpzZWNyZXQ=\r\n"), "{request}");
    })
    .await;
}

/// A password that a proxy took for wrong is not sent again, by whichever attempt; one that asks for another way to sign in is told apart
/// from it, and without a password the error says how to give one.
#[tokio::test]
async fn a_proxy_that_refuses_is_named_and_a_wrong_password_goes_out_once() {
    let endless = concat!("HTTP/1.1 200 OK\r\nX: ", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    let basic = "HTTP/1.1 407 No\r\nproxy-authenticate: Basic realm=\"a\"\r\nProxy-Authenticate: NTLM\r\n\r\n";
    let others = "HTTP/1.1 407 No\r\nProxy-Authenticate: Negotiate\r\nProxy-Authenticate: NTLM\r\n\r\n";
    let anna = "anna:secret@";
    let answers = [
        (anna, "HTTP/1.1 403 Forbidden\r\n\r\n", "403", 3),
        (anna, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "does not take the user name and password", 1),
        (anna, basic, "does not take the user", 1),
        ("", basic, "HTTPS_PROXY=http://USER:PASSWORD@", 3),
        (anna, others, "Negotiate or NTLM (407), which Veilsum does not do; run px or cntlm", 3),
        (anna, "SSH-2.0-x\r\n\r\n", "does not answer in HTTP", 3),
        (anna, endless, "proxy", 3),
    ];
    let hub = "hub.invalid:443".parse().expect("an address");
    for (user, says, expected, sent) in answers {
        soon(async {
            let (at, mut requests) = proxy(loopback(), Some(says)).await;
            let through = Proxy::new(&format!("http://{user}{at}"), "").expect("a proxy");
            for _ in 0..3 {
                let tcp = Network::new(Transport::Tcp, Some(through.clone()));
                let error = dial(&tcp, &hub).await.map(drop).expect_err("no way").to_string();
                assert!(error.contains(expected) && error.contains(&at.to_string()), "{error}");
                assert!(!error.contains("secret"), "{error}");
            }
            let asked = std::iter::from_fn(|| requests.try_recv().ok()).count();
            assert_eq!(asked, sent, "{says}");
        })
        .await;
    }
}

/// TLS with the server, for a peer that writes records of its own.
async fn raw(at: SocketAddr) -> tokio_rustls::client::TlsStream<TcpStream> {
    let (tls, _) = pinned::client_config(&party(1), &party(0).public_key()).expect("settings");
    let name = rustls_pki_types::ServerName::try_from(pinned::UNUSED_NAME).expect("a name");
    let stream = TcpStream::connect(at).await.expect("the server is there");
    tokio_rustls::TlsConnector::from(Arc::new(tls)).connect(name, stream).await.expect("a handshake")
}

#[tokio::test]
async fn records_against_the_rules_end_a_connection_over_tcp_with_a_reason() {
    soon(async {
        let mut listener = listen(Transport::Tcp, loopback()).await;
        let at = listener.local_addr();
        let hello = record::bytes(record::DATA, &frame(1, b"hello"));
        let body = vec![0; record::MOST];
        // A frame of 16 MiB, of which more is sent than the window lets while nobody reads.
        let header = record::bytes(record::DATA, &[1, 0, 1, 0, 0, 0, 0, 1]);
        let too_much = [header, record::bytes(record::DATA, &body).repeat(WINDOW as usize / body.len() + 2)].concat();
        let cases = [
            (vec![9, 0, 0], "no known kind"),
            (vec![2, 3, 0, 1, 2, 3], "no length that its kind may have"),
            (record::bytes(record::WINDOW, &1u32.to_le_bytes()), "more leave was given"),
            (too_much, "more was sent than there was leave for"),
            ([record::bytes(record::END, &[]), record::bytes(record::END, &[])].concat(), "an end came after the end"),
            ([record::bytes(record::END, &[]), record::bytes(record::DATA, b"x")].concat(), "bytes came after the end"),
        ];
        for (bytes, expected) in cases {
            let mut stream = raw(at).await;
            stream.write_all(&hello).await.expect("it is sent");
            stream.flush().await.expect("it is sent");
            let link = listener.accept().await.expect("the key is allowed");
            let _ = stream.write_all(&bytes).await;
            let _ = stream.flush().await;
            let reason = link.handle().closed().await;
            assert!(matches!(reason, CarrierError::Closed(_)), "{expected}: {reason:?}");
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            let answer = String::from_utf8_lossy(&answer);
            assert!(answer.contains(expected), "{expected}: {answer:?}");
        }
    })
    .await;
}

/// Sockets that say nothing are turned away beyond a few of one address, give their places back soon, and do not close QUIC.
#[tokio::test]
async fn strangers_who_say_nothing_over_tcp_shut_nobody_out() {
    soon(async {
        let mut listener = listen(Transport::Auto, loopback()).await;
        let at = listener.local_addr();
        let mut idle = Vec::new();
        for _ in 0..3 * MAX_HANDSHAKES {
            idle.push(TcpStream::connect(at).await.expect("the port is open"));
        }
        assert_eq!(used(&network(Transport::Quic), &at.into(), &mut listener).await, "QUIC");
        let mut closed = tokio::task::JoinSet::new();
        for (number, mut socket) in idle.into_iter().enumerate() {
            closed.spawn(async move { (number, socket.read_u8().await.is_err()) });
        }
        let closed = closed.join_all().await;
        assert!(closed.iter().all(|(_, silent)| *silent), "nothing is said to a stranger");
        // Those that had a place, until the time for a first byte was over.
        let last = &closed[closed.len() - MAX_HANDSHAKES_PER_ADDRESS..];
        assert!(last.iter().all(|(number, _)| *number < MAX_HANDSHAKES_PER_ADDRESS), "{last:?}");
        assert_eq!(used(&network(Transport::Tcp), &at.into(), &mut listener).await, "TCP");
    })
    .await;
}
