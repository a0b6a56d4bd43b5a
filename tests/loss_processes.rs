//! Losses between separate processes, with the program as it ships: a coordinator that never comes back, and whoever never came ([APP-8]).
//! A site that is lost is in `damaged_state.rs`.

use std::time::{Duration, Instant};

use serde_json::json;
use veilsum_testkit::program::{Parties, Running, start};

use super::processes::{LIMIT, LONG, QUICK, SIZES, answered, start_all};
use crate::said::Told;

/// A site's files say that the run ended early, and how; its centres.
pub(crate) fn early_at(p: &Parties, site: usize, lost: &str) -> serde_json::Value {
    let (model, result) =
        (p.folder.json(&format!("site-{site}/model.json")), p.folder.json(&format!("site-{site}/result.json")));
    for file in [&model, &result] {
        assert_eq!(file["converged"], false, "{file}");
        let early = &file["ended_early"];
        assert_eq!((&early["lost"], &early["refused"]), (&json!([lost]), &json!([])), "{file}");
        assert!(file["ended_early"]["round"].as_u64().is_some_and(|round| round > 0), "{file}");
    }
    assert_eq!(model["centres"], result["centres"]);
    assert!(result["history"].as_array().is_some_and(|rounds| !rounds.is_empty()), "{result}");
    model["centres"].clone()
}

/// The coordinator is killed for good: every site comes to the result on its own.
#[test]
fn a_killed_coordinator_costs_the_sites_no_result() {
    let p = Parties::new(&SIZES, &LONG);
    let (server, intermediary, _) = start_all(&p, &QUICK, []);
    let clients: Vec<Running> = (1..=5).map(|i| start(&p.client(i, &["-vv", "--join-timeout", "20"]))).collect();
    answered(&clients[0], 20);
    server.kill();
    let begun = Instant::now();
    intermediary.wait(LIMIT).expect(4).says(&["lost the coordinator"]);
    for client in clients {
        client.wait(LIMIT).expect(9).says(&["ended early"]);
    }
    // Half a minute until silence is a verdict, and at most as long again to find nobody there.
    assert!(begun.elapsed() < Duration::from_secs(75), "{:?}", begun.elapsed());
    // Openings leave before the next question does, so that sites are a round apart at most.
    let rounds: Vec<u64> = (1..=5)
        .map(|site| {
            early_at(&p, site, "lead");
            p.folder.json(&format!("site-{site}/result.json"))["ended_early"]["round"].as_u64().expect("a round")
        })
        .collect();
    let (least, most) = (rounds.iter().min().expect("sites"), rounds.iter().max().expect("sites"));
    assert!(most - least <= 1, "{rounds:?}");
}

/// The intermediary never comes: nothing is asked, for nobody could count the rows of what was given away.
#[test]
fn nothing_is_asked_before_the_intermediary_is_there() {
    let p = Parties::new(&SIZES, &LONG);
    let waits = ["--phase-timeout", "6", "--grace", "1", "--join-timeout", "6", "--on-loss", "stop"];
    let server = start(&p.server(&waits));
    let clients: Vec<Running> = (1..=5).map(|i| start(&p.client(i, &["--join-timeout", "60"]))).collect();
    server.wait(LIMIT).expect(4).says(&["counter in vain", "waiting for counter (intermediary, never connected)"]);
    for (i, client) in (1..).zip(clients) {
        assert_ne!(client.wait(LIMIT).code, Some(0));
        assert!(!p.folder.0.join(format!("site-{i}/model.json")).exists());
        let left = p.types(&format!("site-{i}"), "ledger show", "key state", &[]).expect(0);
        assert!(left.stdout.contains("public_keys") && !left.stdout.contains("masked_words"), "{}", left.stdout);
    }
    assert!(!p.folder.0.join("out/result.json").exists());
}
