//! Many sites as real connections: coordinator and intermediary as processes of their own, and every site with its own key, UDP socket, QUIC
//! connection and state machine, all in this process. A run ends with one result for everybody; what it took is printed.
//!
//! `VEILSUM_SITES=500 cargo test --test product scale:: -- --nocapture`
//!
//! `VEILSUM_TRANSPORT=tcp` does the same over TCP. The sites keep no journal here: five hundred of them would wait for one disk.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use veilsum_node::{
    carrier::{Network, Transport},
    documents::{Loaded, RowsFrom, load_federation, load_identity, load_rows},
    loopback::toy_policy,
    role::{
        client::{self, ClientConfig},
        config::Party,
    },
};
use veilsum_testkit::program::{Parties, start};

/// Rows of each site.
const ROWS: usize = 20;
const PLAN: [&str; 5] = ["--set=init=uniform", "--set=epsilon=0", "--set=max_rounds=4", "--set=slots=8", "--seed=9"];

/// What a process took so far: its largest memory in MB, and seconds of the processor.
fn taken(process: &str) -> Option<(u64, f64)> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let high = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: f64 = fields.get(11..13)?.iter().filter_map(|field| field.parse::<f64>().ok()).sum();
    // USER_HZ is 100 wherever Linux runs.
    Some((high.split_whitespace().next()?.parse::<u64>().ok()? / 1024, ticks / 100.0))
}

#[test]
fn a_run_of_many_sites_as_real_connections() {
    let sites = std::env::var("VEILSUM_SITES").ok().and_then(|text| text.parse().ok()).unwrap_or(12);
    let transport =
        if std::env::var("VEILSUM_TRANSPORT").is_ok_and(|way| way == "tcp") { Transport::Tcp } else { Transport::Auto };
    let p = Parties::new(&vec![ROWS; sites], &PLAN);
    // Every site exchanges keys with every other one, and all of them share the cores of this machine.
    let patience = (60 + sites * sites / 50).to_string();
    let waits = ["--phase-timeout", &patience, "--grace", &patience, "-v"];
    let begun = Instant::now();
    let [lead, counter] = [start(&p.server(&waits)), start(&p.intermediary(&waits))];
    let ended = Arc::new(AtomicBool::new(false));
    let watch = |process: u32| {
        let ended = ended.clone();
        std::thread::spawn(move || {
            let mut last = None;
            while !ended.load(Ordering::Relaxed) {
                let found = taken(&process.to_string());
                if found.is_none() {
                    break;
                }
                last = found.or(last);
                std::thread::sleep(Duration::from_millis(20));
            }
            last
        })
    };
    let watched = [lead.id(), counter.id()].map(watch);

    let file = |name: &str| p.folder.path(name);
    let federation = load_federation(file("roster.toml"), file("plan.toml")).expect("documents");
    // Two threads for each site, as in a process of its own: while one computes, the other keeps its connections.
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
    let [coordinator, intermediary] = p.ports.map(|port| std::net::SocketAddr::from(([127, 0, 0, 1], port)));
    let clients: Vec<_> = (1..=sites)
        .map(|i| {
            let (identity, _) = load_identity(file(&format!("site-{i}.key"))).expect("a key");
            let Loaded { rows, .. } =
                load_rows(&federation, &RowsFrom::file(file(&format!("site-{i}.csv")))).expect("rows");
            // A network of its own: its own UDP socket, and what was learnt of the way.
            let party = Party {
                carrier: Arc::new(Network::new(transport, None)),
                ..Party::new(Arc::new(identity), federation.clone())
            };
            let runtime = runtime();
            let client = runtime.spawn(client::run(ClientConfig {
                party,
                site: toy_policy(),
                rows,
                coordinator: coordinator.into(),
                intermediary: intermediary.into(),
                state: None,
                patience: Duration::from_secs(600),
                agreed: true,
            }));
            (runtime, client)
        })
        .collect();
    let reports: Vec<_> =
        clients.into_iter().map(|(runtime, client)| runtime.block_on(client).expect("no panic")).collect();
    let took = begun.elapsed();
    let limit = Duration::from_secs(60);
    let (lead, counter) = (lead.wait(limit), counter.wait(limit));
    ended.store(true, Ordering::Relaxed);
    let own = taken("self");
    println!("{sites} sites of {ROWS} rows over {transport:?}: {:.1} s", took.as_secs_f64());
    let [of_lead, of_counter] = watched.map(|watch| watch.join().expect("a watcher"));
    for (who, taken) in [("coordinator", of_lead), ("intermediary", of_counter), ("all sites in one process", own)] {
        if let Some((memory, processor)) = taken {
            println!("{who}: {memory} MB at most, {processor:.1} s of the processor");
        }
    }
    let (lead, counter) = (lead.expect(0), counter.expect(0));
    assert!(!lead.stderr.contains("left the run"), "{}", lead.stderr);
    assert!(counter.stdout.contains(&format!("over {sites} sites")), "{}", counter.stdout);
    let centres = p.folder.json("out/result.json")["centres"].clone();
    for (i, report) in reports.into_iter().enumerate() {
        let report = report.unwrap_or_else(|failure| panic!("site-{}: {failure}", i + 1));
        let model = serde_json::to_value(report.model.expect("a model")).expect("JSON");
        assert_eq!(model["centres"], centres, "site-{}", i + 1);
    }
}
