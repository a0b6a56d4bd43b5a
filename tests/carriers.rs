//! What carries the frames is no business of the roles: a whole federation over links that are channels, without a socket.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use veilsum_cluster::method::Seeding;
use veilsum_node::{
    carrier::{Address, Carrier, CarrierError, Credentials, HEADER_LEN, listen, only},
    egress::Egress,
    loopback::{self, LoopbackConfig},
};
use veilsum_testkit::{
    in_process::{config, fcm, made_up, max_difference, prepared, replay, unit_square},
    memory::Memory,
};

const SIZES: [usize; 4] = [31, 44, 58, 37];

fn any_frame(_: &[u8; HEADER_LEN]) -> Result<usize, String> {
    Ok(1 << 20)
}

#[tokio::test]
async fn a_federation_without_a_socket_comes_to_the_centres_of_plain_sums() {
    let (work, sites) = (fcm(unit_square(), 3, 0.0, 5, Seeding::Uniform { seed: 11 }), made_up(&SIZES, 0.2, 5));
    let plain = replay(&work, &prepared(&work, &sites), |_| (0..SIZES.len()).collect());
    let memory = Memory::default();
    let shared = memory.clone();
    let of_memory = move |_| -> Arc<dyn Carrier> { Arc::new(shared.clone()) };
    let run = loopback::run(LoopbackConfig { record: true, carrier: Box::new(of_memory), ..config(sites, &work) });
    let run = run.await.expect("a federation");
    let result = run.result.expect("a result");
    let centres: Vec<Vec<f64>> = plain.centres.rows().map(<[f64]>::to_vec).collect();
    assert!(max_difference(&result.centres_box, &centres) < 1e-9);
    assert_eq!(run.counted.expect("a count").total, SIZES.iter().sum::<usize>() as u64);
    assert!(!run.coordinator_view.lock().expect("a view").is_empty());
    // All ports were shut with their hosts: nobody is there to dial.
    let (me, them) = (Credentials::from_seed(&[1; 32]).expect("a key"), [2; 32]);
    let there = Address::from(SocketAddr::from(([127, 0, 0, 1], 1)));
    let gone = memory.dial(&there, &me, &them, any_frame, Duration::from_secs(1)).await;
    assert!(matches!(gone, Err(CarrierError::Unreachable { .. })));
}

/// The door is the same for every carrier: an unknown key is counted, and a guest that says nothing gives its place back.
#[tokio::test]
async fn the_door_of_another_carrier_counts_whom_it_turns_away() {
    let memory = Memory::default();
    let [server, friend, stranger] = [1, 2, 3].map(|n| Credentials::from_seed(&[n; 32]).expect("a key"));
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let allowed = only(vec![friend.public_key()]);
    let mut listener = listen(&memory, any, &server, allowed, any_frame).await.expect("a port");
    let (at, key, limit) = (Address::from(listener.local_addr()), server.public_key(), Duration::from_secs(5));
    assert!(matches!(memory.dial(&at, &stranger, &key, any_frame, limit).await, Err(CarrierError::NotAccepted)));
    let wrong = memory.dial(&at, &friend, &stranger.public_key(), any_frame, limit).await;
    assert!(matches!(wrong, Err(CarrierError::WrongServerKey(_))));
    let (mut sender, _receiver) = memory.dial(&at, &friend, &key, any_frame, limit).await.expect("a link").split();
    let (_sender, mut receiver) = listener.accept().await.expect("the friend").split();
    // A body in pieces, and one that is longer than it says.
    let frame = [[1, 0, 1, 0, 3, 0, 0, 0].as_slice(), b"abc"].concat();
    sender.send(&Egress::foreign(&frame)).await.expect("it is sent");
    assert_eq!(receiver.recv().await.expect("a frame"), Some(frame.clone()));
    assert!(sender.send(&Egress::foreign(&frame[..9])).await.is_err());
    let refusals = listener.refusals();
    assert_eq!((refusals.unknown_key, refusals.last_unknown), (1, Some(stranger.public_key())));
}
