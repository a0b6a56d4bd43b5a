//! Losses between separate processes, with the program as it ships: a site or a coordinator that never comes back, and whoever never
//! came ([APP-8]).

use std::{
    fs,
    time::{Duration, Instant},
};

use serde_json::json;
use veilsum_testkit::program::{Parties, Running, start, veilsum};

use super::processes::{LIMIT, LONG, QUICK, SIZES, answered, start_all};
use crate::said::Told;

fn everybody(p: &Parties) -> (Running, Running, Vec<Running>) {
    let (server, intermediary, _) = start_all(p, &QUICK, []);
    (server, intermediary, (1..=5).map(|i| start(&p.client(i, &["-vv", "--join-timeout", "20"]))).collect())
}

/// A site's files say that the run ended early, and how; its centres.
fn early_at(p: &Parties, site: usize, lost: &str) -> serde_json::Value {
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

#[test]
fn a_killed_site_costs_no_result() {
    let p = Parties::new(&SIZES, &LONG);
    let (server, intermediary, mut clients) = everybody(&p);
    answered(&clients[2], 20);
    clients.remove(2).kill();
    server.wait(LIMIT).expect(9).says(&["ended early", "site-3", "too few sites", "nothing was revealed"]);
    intermediary.wait(LIMIT).expect(0);
    clients.into_iter().for_each(|client| drop(client.wait(LIMIT).expect(9)));
    let result = p.folder.json("out/result.json");
    assert_eq!((&result["converged"], &result["ended_early"]["lost"]), (&false.into(), &serde_json::json!(["site-3"])));
    // Who went, at which question, and why: the coordinator knows all of it, and a site the question.
    let gone = |file: &serde_json::Value| file["departures"][0].clone();
    let (at, why) = (gone(&result), gone(&result)["why"].as_str().unwrap_or_default().to_owned());
    assert_eq!((&at["site"], result["departures"].as_array().map(Vec::len)), (&"site-3".into(), Some(1)));
    // Whether its end or its silence was noticed first, nobody knows.
    let known = ["its connection broke", "it did not answer in time"].iter().any(|known| why.contains(known));
    assert!(known && at["question"].as_u64() >= Some(15), "{at}");
    for site in [1, 2, 4, 5] {
        assert_eq!(early_at(&p, site, "site-3"), result["centres"], "site {site}");
        let own = gone(&p.folder.json(&format!("site-{site}/result.json")));
        assert_eq!(own, json!({"site": "site-3", "question": at["question"], "why": null}));
    }
    let page = fs::read_to_string(p.folder.path("out/report.html")).unwrap();
    assert!(page.contains(&format!("to question {}", at["question"].as_u64().unwrap() - 1)) && page.contains(&why));
    assert!(!p.folder.0.join("site-3/model.json").exists());
}

/// The coordinator is killed for good: every site comes to the result on its own.
#[test]
fn a_killed_coordinator_costs_the_sites_no_result() {
    let p = Parties::new(&SIZES, &LONG);
    let (server, intermediary, clients) = everybody(&p);
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
        let (key, state) = (p.folder.path(&format!("site-{i}.key")), p.folder.path(&format!("site-{i}.state")));
        let shown = veilsum(&["ledger", "show", "--key", &key, "--state", &state, "--json"]).expect(0);
        let left = shown.json();
        let left = left.as_array().expect("entries");
        assert!(left.iter().all(|entry| entry["kind"].is_null()), "site {i} gave something away: {}", shown.stdout);
        assert!(!left.is_empty(), "its keys had left");
    }
    assert!(!p.folder.0.join("out/result.json").exists());
}
