//! Real links over loopback: who gets in, what arrives, and what a broken or hostile peer achieves.

use std::{
    future::Future,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::*;

mod reach;

const LIMIT: Duration = Duration::from_secs(10);

/// Kind 1 may be long, kind 2 short, others are refused.
fn check(header: &[u8; HEADER_LEN]) -> Result<usize, String> {
    match header {
        [1, 0, 1, 0, ..] => Ok(16 << 20),
        [1, 0, 2, 0, ..] => Ok(16),
        [1, 0, ..] => Err("unknown kind".to_owned()),
        _ => Err("unknown version".to_owned()),
    }
}

fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("a short body");
    [[1, 0, kind, 0].as_slice(), &length.to_le_bytes(), body].concat()
}

fn party(number: u8) -> Credentials {
    Credentials::from_seed(&[number; 32]).expect("a seed makes a key")
}

fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// Party 0 listens for parties 1 and 2.
async fn server(over: Transport) -> (Listener, SocketAddr) {
    let allowed = only(vec![party(1).public_key(), party(2).public_key()]);
    let listener = listen(&network(over), loopback(), &party(0), allowed, check).await.expect("a port is free");
    let addr = listener.local_addr();
    (listener, addr)
}

async fn dial_as(over: Transport, number: u8, addr: SocketAddr) -> Result<Link, CarrierError> {
    dial(&network(over), &addr.into(), &party(number), 0, LIMIT).await
}

/// Dials `to`, where party `expected` is to be.
async fn dial(network: &Network, to: &Address, own: &Credentials, expected: u8, limit: Duration) -> Result<Link> {
    let expected = &party(expected).public_key();
    network.dial(Call { to, expected, credentials: own, check, limit }).await
}

fn network(transport: Transport) -> Network {
    Network::new(transport, None)
}

/// Tests of these functions, each over QUIC and over TCP.
macro_rules! over_each {
    ($($name:ident),* $(,)?) => {
        mod over_each {
            use super::{Transport, soon};
            $(#[tokio::test] async fn $name() {
                for over in [Transport::Quic, Transport::Tcp] {
                    println!("over {over:?}");
                    soon(super::$name(over)).await;
                }
            })*
        }
    };
}

over_each!(
    an_end_that_is_there_answers_and_one_that_is_gone_does_not,
    both_ends_know_each_other_and_frames_go_both_ways,
    another_server_key_is_refused_and_sees_no_link,
    an_unknown_client_key_is_refused_in_words_and_the_next_is_served,
    a_key_that_leaves_the_roster_is_refused_next_time,
    a_public_key_alone_proves_nothing,
    a_frame_cut_off_is_named,
    a_link_dropped_in_mid_frame_is_named_too,
    frames_against_the_rules_close_the_link_with_a_reason,
    a_frame_of_8_mib_passes,
    a_peer_that_never_reads_loses_its_link_and_hinders_no_other,
    a_receive_given_up_loses_no_byte,
    the_last_frame_arrives_before_the_link_is_dropped,
    a_closing_reason_reaches_the_peer_as_one_harmless_line,
    a_dead_port_is_reported_in_time,
    a_port_in_use_is_reported,
    a_frame_that_lies_about_its_length_is_not_sent,
    one_key_cannot_open_connections_without_end,
);

/// No test hangs: what takes a minute fails.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("done within a minute")
}

/// A link between party 1 and party 0 on which party 1 has sent `first`.
async fn link(over: Transport, listener: &mut Listener, addr: SocketAddr, number: u8, first: &[u8]) -> (Link, Link) {
    let dialled = dial_as(over, number, addr).await.expect("the server is there");
    let (mut sender, receiver) = dialled.split();
    sender.send_raw(first).await;
    let accepted = listener.accept().await.expect("the key is allowed");
    (Link::rejoin(sender, receiver), accepted)
}

/// A listener of its own with such a link.
async fn linked(over: Transport, first: &[u8]) -> (Listener, Link, Link) {
    let (mut listener, addr) = server(over).await;
    let (dialled, accepted) = link(over, &mut listener, addr, 1, first).await;
    (listener, dialled, accepted)
}

/// What is wrong with the next frame.
async fn fault(receiver: &mut LinkReceiver) -> String {
    match receiver.recv().await {
        Err(CarrierError::Frame(fault)) => fault.to_string(),
        other => panic!("{other:?}"),
    }
}

/// A connection was closed, for this reason.
fn closed(why: CarrierError, reason: &str) {
    assert!(matches!(&why, CarrierError::Closed(said) if said.contains(reason)), "{reason}: {why:?}");
}

async fn echo(link: Link) {
    let (mut sender, mut receiver) = link.split();
    while let Ok(Some(frame)) = receiver.recv().await {
        sender.send_bytes(&frame).await.expect("the peer reads");
    }
    let _ = sender.finish(LIMIT).await;
}

/// Another process of the same party that listens there after the first was killed: at the next sign of life the other end learns
/// that its connection is gone, long before silence would tell.
#[tokio::test]
async fn a_listener_after_a_killed_one_lets_the_other_end_know() {
    let relayed = UdpSocket::bind(loopback()).expect("a port");
    relayed.set_nonblocking(true).expect("a socket of the runtime");
    let relay = tokio::net::UdpSocket::from_std(relayed).expect("a socket of the runtime");
    let front = relay.local_addr().expect("an address");
    let (mut first, at_first) = server(Transport::Quic).await;
    let (_second, at_second) = server(Transport::Quic).await;
    let (moved, to) = tokio::sync::watch::channel(at_first);
    tokio::spawn(async move {
        let (mut client, mut buffer) = (None, vec![0; 65_536]);
        while let Ok((length, from)) = relay.recv_from(&mut buffer).await {
            let there = *to.borrow();
            let next = if from == at_first || from == at_second {
                client.filter(|_| from == there)
            } else {
                client = Some(from);
                Some(there)
            };
            if let Some(next) = next {
                let _ = relay.send_to(&buffer[..length], next).await;
            }
        }
    });
    let (dialled, _accepted) = link(Transport::Quic, &mut first, front, 1, &frame(1, b"hello")).await;
    // From here on the first one hears and says nothing, as one that was killed.
    moved.send_replace(at_second);
    let begun = Instant::now();
    let why = soon(dialled.handle().closed()).await;
    assert!(why.to_string().contains("may have been restarted"), "{why}");
    assert!(begun.elapsed() < IDLE_TIMEOUT / 2, "{:?}", begun.elapsed());
}

/// Without a frame between them, as often as it is asked, and not once it has let go.
async fn an_end_that_is_there_answers_and_one_that_is_gone_does_not(over: Transport) {
    let (_listener, dialled, accepted) = linked(over, &frame(1, b"hello")).await;
    // Over TCP this waits for the next sign of life.
    for _ in 0..if over == Transport::Quic { 3 } else { 1 } {
        let (near, far) = (accepted.handle(), dialled.handle());
        assert_eq!(tokio::join!(near.answers(), far.answers()), (true, true));
    }
    drop(dialled);
    assert!(!accepted.handle().answers().await);
}

async fn both_ends_know_each_other_and_frames_go_both_ways(over: Transport) {
    let (mut listener, addr) = server(over).await;
    let hello = frame(1, b"hello");
    let (dialled, accepted) = link(over, &mut listener, addr, 1, &hello).await;
    assert_eq!(dialled.handle().peer(), party(0).public_key());
    assert_eq!(accepted.handle().peer(), party(1).public_key());
    let server = tokio::spawn(echo(accepted));
    let (mut sender, mut receiver) = dialled.split();
    assert_eq!(receiver.recv().await.expect("an echo"), Some(hello));
    for body in [b"".as_slice(), b"0123456789abcdef"] {
        sender.send_bytes(&frame(2, body)).await.expect("it is sent");
        assert_eq!(receiver.recv().await.expect("an echo"), Some(frame(2, body)));
    }
    sender.finish(LIMIT).await.expect("all has arrived");
    assert_eq!(receiver.recv().await.expect("an orderly end"), None);
    assert_eq!(receiver.recv().await.expect("still the end"), None);
    server.await.expect("no panic");
}

async fn another_server_key_is_refused_and_sees_no_link(over: Transport) {
    let (mut listener, addr) = server(over).await;
    let refused = dial(&network(over), &addr.into(), &party(1), 9, LIMIT).await;
    assert!(matches!(refused, Err(CarrierError::WrongServerKey(at)) if at == addr.into()));
    // The next one is served.
    let (_dialled, accepted) = link(over, &mut listener, addr, 1, &frame(1, b"")).await;
    assert_eq!(accepted.handle().peer(), party(1).public_key());
}

async fn an_unknown_client_key_is_refused_in_words_and_the_next_is_served(over: Transport) {
    let (mut listener, addr) = server(over).await;
    // The refusal may come with the dialling, the first sending or the first reading.
    let outcome = async {
        let (mut sender, mut receiver) = dial_as(over, 9, addr).await?.split();
        sender.send_bytes(&frame(1, b"hello")).await?;
        receiver.recv().await
    };
    let error = outcome.await.expect_err("a stranger");
    assert!(matches!(error, CarrierError::NotAccepted), "{error:?}");
    assert!(error.to_string().contains("not on its roster"));
    let (_dialled, accepted) = link(over, &mut listener, addr, 2, &frame(1, b"")).await;
    assert_eq!(accepted.handle().peer(), party(2).public_key());
}

async fn a_key_that_leaves_the_roster_is_refused_next_time(over: Transport) {
    let open = Arc::new(AtomicBool::new(true));
    let gate = open.clone();
    let allowed: Allowed = Arc::new(move |_| gate.load(Ordering::SeqCst));
    let mut listener = listen(&network(over), loopback(), &party(0), allowed, check).await.expect("a port is free");
    let addr = listener.local_addr();
    drop(link(over, &mut listener, addr, 1, &frame(1, b"")).await);
    open.store(false, Ordering::SeqCst);
    let outcome = async { dial_as(over, 1, addr).await?.split().1.recv().await };
    assert!(matches!(outcome.await, Err(CarrierError::NotAccepted)));
}

async fn a_public_key_alone_proves_nothing(over: Transport) {
    let (mut listener, addr) = server(over).await;
    let impostor = Credentials::impostor(&[9; 32], party(1).public_key());
    let outcome = async {
        let (mut sender, mut receiver) = dial(&network(over), &addr.into(), &impostor, 0, LIMIT).await?.split();
        sender.send_bytes(&frame(1, b"hello")).await?;
        receiver.recv().await
    };
    assert!(outcome.await.is_err(), "a client without the secret key got in");
    let (_dialled, accepted) = link(over, &mut listener, addr, 2, &frame(1, b"")).await;
    assert_eq!(accepted.handle().peer(), party(2).public_key(), "the impostor's link must not come first");

    let false_server = Credentials::impostor(&[9; 32], party(0).public_key());
    let listener =
        listen(&network(over), loopback(), &false_server, Arc::new(|_| true), check).await.expect("a port is free");
    let addr = listener.local_addr();
    assert!(dial_as(over, 1, addr).await.is_err(), "a server without the secret key was believed");
}

async fn a_frame_cut_off_is_named(over: Transport) {
    let (mut listener, addr) = server(over).await;
    let whole = frame(1, b"hello");
    for (cut, expected) in [(5, "5 of 8 header"), (8, "0 of 5 body"), (11, "3 of 5 body")] {
        let (dialled, accepted) = link(over, &mut listener, addr, 1, &whole[..cut]).await;
        let (mut sender, _receiver) = dialled.split();
        // The peer dies in an orderly way: the stream ends where no frame does.
        let finishing = tokio::spawn(async move { sender.finish(LIMIT).await });
        let (_sender, mut receiver) = accepted.split();
        assert!(fault(&mut receiver).await.contains(expected), "cut at {cut}");
        assert!(fault(&mut receiver).await.contains("in the middle of a broken frame"));
        let _ = finishing.await.expect("no panic");
    }
}

async fn a_link_dropped_in_mid_frame_is_named_too(over: Transport) {
    let (_listener, dialled, accepted) = linked(over, &frame(1, b"hello")[..11]).await;
    let (_sender, mut receiver) = accepted.split();
    drop(dialled);
    assert!(fault(&mut receiver).await.contains("3 of 5 body"));
}

async fn frames_against_the_rules_close_the_link_with_a_reason(over: Transport) {
    let (mut listener, addr) = server(over).await;
    let long = [1, 0, 2, 0, 17, 0, 0, 0];
    let huge = [1, 0, 1, 0, 0xff, 0xff, 0xff, 0xff];
    let cases = [
        (long, "announces 17 body bytes where 16 are allowed"),
        (huge, "announces 4294967295 body bytes where 16777216 are allowed"),
        ([1, 0, 77, 0, 0, 0, 0, 0], "was refused: unknown kind"),
        ([2, 0, 1, 0, 0, 0, 0, 0], "was refused: unknown version"),
    ];
    for (header, expected) in cases {
        let (dialled, accepted) = link(over, &mut listener, addr, 1, &header).await;
        let (_sender, mut receiver) = accepted.split();
        assert!(fault(&mut receiver).await.contains(expected), "{expected}");
        closed(dialled.handle().closed().await, expected);
    }
}

async fn a_frame_of_8_mib_passes(over: Transport) {
    let (_listener, dialled, accepted) = linked(over, &frame(1, b"")).await;
    let server = tokio::spawn(echo(accepted));
    let (mut sender, mut receiver) = dialled.split();
    let body: Vec<u8> = (0..8 << 20).map(|i: u32| i.to_le_bytes()[2]).collect();
    let big = frame(1, &body);
    let (sent, received) = tokio::join!(sender.send_bytes(&big), async {
        receiver.recv().await.expect("the first echo");
        receiver.recv().await
    });
    sent.expect("it is sent");
    assert!(received.expect("an echo") == Some(big));
    sender.finish(LIMIT).await.expect("all has arrived");
    server.await.expect("no panic");
}

async fn a_peer_that_never_reads_loses_its_link_and_hinders_no_other(over: Transport) {
    let (mut listener, addr) = server(over).await;
    let (lazy, accepted_lazy) = link(over, &mut listener, addr, 1, &frame(1, b"")).await;
    let (keen, accepted_keen) = link(over, &mut listener, addr, 2, &frame(1, b"")).await;
    let server = tokio::spawn(echo(accepted_keen));
    let (mut to_lazy, _from_lazy) = accepted_lazy.split();
    let big = frame(1, &vec![0; 12 << 20]);
    let stuck = tokio::spawn(async move {
        to_lazy.send_within(&crate::egress::Egress::foreign(&big), Duration::from_millis(300)).await
    });
    let (mut sender, mut receiver) = keen.split();
    assert!(receiver.recv().await.expect("an echo").is_some());
    for _ in 0..20 {
        sender.send_bytes(&frame(1, b"are you there?")).await.expect("it is sent");
        assert!(receiver.recv().await.expect("an echo").is_some());
    }
    assert!(matches!(stuck.await.expect("no panic"), Err(CarrierError::TimedOut(_))));
    assert!(matches!(lazy.handle().closed().await, CarrierError::Closed(_)));
    sender.finish(LIMIT).await.expect("the keen one's link stands");
    server.await.expect("no panic");
}

async fn a_receive_given_up_loses_no_byte(over: Transport) {
    let (mut listener, addr) = server(over).await;
    let whole = frame(1, b"hello");
    let (dialled, accepted) = link(over, &mut listener, addr, 1, &whole[..10]).await;
    let (_back, mut receiver) = accepted.split();
    let (mut sender, _receiver) = dialled.split();
    assert!(tokio::time::timeout(Duration::from_millis(50), receiver.recv()).await.is_err());
    sender.send_raw(&whole[10..]).await;
    assert_eq!(receiver.recv().await.expect("the rest came"), Some(whole));
}

async fn the_last_frame_arrives_before_the_link_is_dropped(over: Transport) {
    let (_listener, dialled, accepted) = linked(over, &frame(1, b"first")).await;
    let (mut sender, receiver) = dialled.split();
    sender.send_bytes(&frame(1, &[7; 100_000])).await.expect("it is sent");
    sender.finish(LIMIT).await.expect("all has arrived");
    drop((sender, receiver));
    let (_back, mut inbox) = accepted.split();
    assert_eq!(inbox.recv().await.expect("a frame"), Some(frame(1, b"first")));
    assert_eq!(inbox.recv().await.expect("a frame"), Some(frame(1, &[7; 100_000])));
    assert_eq!(inbox.recv().await.expect("an orderly end"), None);
}

async fn a_closing_reason_reaches_the_peer_as_one_harmless_line(over: Transport) {
    let (_listener, dialled, accepted) = linked(over, &frame(1, b"")).await;
    let words = format!("round over\n\x1b[31m{}", "!".repeat(900));
    accepted.handle().close(Box::leak(words.into_boxed_str())).await;
    let (_sender, mut receiver) = dialled.split();
    let reason = receiver.recv().await.expect_err("the end");
    assert!(reason.to_string().len() < REASON_LIMIT + 70);
    closed(reason, "round over  [31m!!!");
}

async fn a_dead_port_is_reported_in_time(over: Transport) {
    let gone = UdpSocket::bind(loopback()).and_then(|socket| socket.local_addr()).expect("a port was free");
    let begun = Instant::now();
    let limit = Duration::from_millis(300);
    let outcome = dial(&network(over), &gone.into(), &party(1), 0, limit).await;
    assert!(matches!(&outcome, Err(CarrierError::Unreachable { waited, .. }) if *waited <= limit));
    assert!(begun.elapsed() < limit + Duration::from_secs(5));
}

async fn a_port_in_use_is_reported(over: Transport) {
    let (_listener, addr) = server(over).await;
    let outcome = listen(&network(over), addr, &party(0), only(Vec::new()), check).await;
    assert!(matches!(outcome, Err(CarrierError::Bind { addr: at, .. }) if at == addr));
}

async fn a_frame_that_lies_about_its_length_is_not_sent(over: Transport) {
    let (_listener, dialled, _accepted) = linked(over, &frame(1, b"")).await;
    let (mut sender, _receiver) = dialled.split();
    let whole = frame(1, b"hello");
    for bad in [whole[..9].to_vec(), [&whole[..], &[0]].concat(), vec![0; 7], Vec::new()] {
        let error = sender.send_bytes(&bad).await.expect_err("no frame");
        let says = format!("refused to send a frame of {} bytes", bad.len());
        assert!(matches!(&error, CarrierError::Frame(_)) && error.to_string().contains(&says), "{error:?}");
    }
    sender.send_bytes(&whole).await.expect("the link stands");
}

async fn one_key_cannot_open_connections_without_end(over: Transport) {
    let (mut listener, addr) = server(over).await;
    let mut silent = tokio::task::JoinSet::new();
    for _ in 0..=MAX_OPENING_PER_KEY {
        let dialled = dial_as(over, 1, addr).await.expect("the server is there");
        silent.spawn(async move {
            let reason = dialled.handle().closed().await;
            drop(dialled);
            reason
        });
    }
    closed(silent.join_next().await.expect("one is turned away").expect("no panic"), "too many connections");
    // Other keys don't notice.
    let (_dialled, accepted) = link(over, &mut listener, addr, 2, &frame(1, b"")).await;
    assert_eq!(accepted.handle().peer(), party(2).public_key());
}
