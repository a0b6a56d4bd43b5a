//! What carries the frames is no business of the roles: a whole federation over links that are channels, without a socket.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use veilsum_cluster::method::Seeding;
use veilsum_node::{
    carrier::{Address, Carrier, CarrierError, Credentials},
    loopback::{self, LoopbackConfig},
};
use veilsum_testkit::{
    in_process::{config, fcm, made_up, max_difference, prepared, replay, unit_square},
    memory::Memory,
};

const SIZES: [usize; 4] = [31, 44, 58, 37];

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
    let gone = memory.dial(&there, &me, &them, |_| Ok(1 << 20), Duration::from_secs(1)).await;
    assert!(matches!(gone, Err(CarrierError::Unreachable { .. })));
}
