//! Logs at their most talkative hold no address, no key, no row, no row count of one site and no masked word; nor do the events and
//! the metrics of a run.

mod one_run;

use std::{
    collections::BTreeMap,
    io::Write,
    sync::{Arc, Mutex},
    time::Duration,
};

use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};
use veilsum_cluster::method::Seeding;
use veilsum_proto::{
    message::{COMMITMENT, Kind, kind_of},
    roster::PartyId,
};
use veilsum_testkit::{
    in_process::{fcm, federate, made_up, unit_square},
    memory::Point,
    program::{Ended, Parties, start, veilsum},
};

/// No frame, port or clock has these numbers for its own.
const SIZES: [usize; 5] = [1237, 1381, 1493, 1621, 1759];
const LIMIT: Duration = Duration::from_secs(120);

/// What must not stand in a log, by what it is.
#[derive(Default)]
struct Secrets(BTreeMap<String, String>);

impl Secrets {
    fn add(&mut self, what: &str, text: String) {
        assert!(text.len() >= 4, "{what} is too short to be looked for");
        self.0.insert(text, what.to_owned());
    }

    /// 64 bits in every form in which somebody might print them.
    fn word(&mut self, what: &str, word: u64) {
        for text in [format!("{word}"), format!("{word:016x}"), format!("{:016x}", word.swap_bytes())] {
            self.add(what, text);
        }
        self.add(what, format!("{}", word as i64));
        self.add(what, format!("{:?}", word.to_le_bytes()).trim_matches(['[', ']']).to_owned());
    }

    fn bytes(&mut self, what: &str, bytes: &[u8]) {
        // Eight bytes are enough to know it by, and any eight may be quoted.
        for part in bytes.chunks_exact(8) {
            self.add(what, part.iter().map(|b| format!("{b:02x}")).collect());
            self.add(what, format!("{part:?}").trim_matches(['[', ']']).to_owned());
        }
    }

    fn value(&mut self, what: &str, value: f64) {
        let text = format!("{value}");
        // The first seven digits; shorter numbers may stand there by accident.
        if text.len() >= 9 {
            self.add(what, text[..9].to_owned());
        }
        self.word(what, value.to_bits());
    }

    fn count(&mut self, n: usize) {
        self.add("a row count", n.to_string());
    }

    fn check(&self, who: &str, log: &str) {
        let lower = log.to_lowercase();
        for (text, what) in &self.0 {
            let digits = text.bytes().all(|b| b.is_ascii_digit());
            let edge = |c: Option<char>| !(digits && c.is_some_and(|c| c.is_ascii_digit()));
            let stands = |(at, found): (usize, &str)| {
                edge(lower[..at].chars().next_back()) && edge(lower[at + found.len()..].chars().next())
            };
            let line = lower.match_indices(text.as_str()).find(|m| stands(*m)).map(|(at, _)| {
                let from = lower[..at].rfind('\n').map_or(0, |i| i + 1);
                log[from..].lines().next().unwrap_or_default()
            });
            assert!(line.is_none(), "{who}: {what} ({text}) stands in the log: {line:?}");
        }
    }
}

/// Whether a word looks like an IPv4 address, with or without a port.
fn address(text: &str) -> Option<&str> {
    let four = |word: &&str| {
        let host = word.split(':').next().unwrap_or_default();
        let parts: Vec<&str> = host.split('.').collect();
        parts.len() == 4 && parts.iter().all(|p| p.parse::<u8>().is_ok())
    };
    text.split(|c: char| !(c.is_ascii_alphanumeric() || ".:".contains(c))).find(four)
}

/// What a screen says without the account of what was read, in which a site tells its own operator how many rows it has.
fn without_account(screen: &str) -> String {
    let mut lines = screen.lines().peekable();
    let mut others = String::new();
    while let Some(line) = lines.next() {
        if line == "What was read" {
            while lines.next_if(|line| line.starts_with("  ") || line.starts_with("warning: ")).is_some() {}
        } else {
            others += &format!("{line}\n");
        }
    }
    others
}

fn no_addresses(who: &str, log: &str) {
    // A role says on its screen where it listens itself, where it looks for others, and where it reached them.
    let said = ["waiting for ", "connected to "];
    let on_screen = |line: &str| said.iter().any(|begin| line.starts_with(begin));
    for line in log.lines().filter(|line| !on_screen(line)) {
        assert_eq!(address(line), None, "{who}: {line}");
        assert!(!line.contains("::1") && !line.contains("[::"), "{who}: {line}");
    }
}

#[test]
fn the_search_finds() {
    assert_eq!(address("peer 127.0.0.1:4433 is gone"), Some("127.0.0.1:4433"));
    assert_eq!(address("version 1.2.3 and 0.5 of 3.4.5.678"), None);
    let mut secrets = Secrets::default();
    secrets.count(1237);
    secrets.check("nobody", "sent bytes=12370 at 12:37:11.51237Z\nround 21237");
    assert!(std::panic::catch_unwind(|| secrets.check("somebody", "it has 1237 rows")).is_err());
}

/// Without numbers of bytes, which may be any number, also one that is a row count.
fn without_bytes(text: &str) -> String {
    let counts = ["\"event\":\"bytes\"", "_bytes_total "];
    let lines = text.lines().filter(|line| !counts.iter().any(|count| line.contains(count)));
    lines.collect::<Vec<_>>().join("\n")
}

/// The journal's and program's secrets as files hold them.
fn of_files(p: &Parties) -> Secrets {
    let mut secrets = Secrets::default();
    for name in p.data.iter().map(|(name, _)| name.as_str()).chain(["lead", "counter"]) {
        let text = std::fs::read_to_string(p.folder.0.join(format!("{name}.key"))).expect("a key file");
        let hex: Vec<&str> = text.split('"').filter(|t| t.len() == 64).collect();
        assert!(!hex.is_empty(), "a key file holds a key");
        for key in hex {
            let digit = |i: usize| u8::from_str_radix(&key[2 * i..2 * i + 2], 16).expect("hexadecimal digits");
            secrets.bytes("a secret key", &(0..32).map(digit).collect::<Vec<u8>>());
        }
    }
    for (_, rows) in &p.data {
        rows.as_slice().iter().take(300).for_each(|x| secrets.value("a row", *x));
        secrets.count(rows.len());
    }
    secrets
}

#[test]
fn processes_at_their_most_talkative() {
    let p = Parties::new(&SIZES, &["--set=epsilon=0", "--set=max_rounds=40", "--set=slots=16", "--set=init=uniform"]);
    let secrets = of_files(&p);
    let quick = ["-vv", "--phase-timeout", "6", "--grace", "1", "--on-loss", "stop"];
    let names = ["lead", "counter", "site-1"];
    let files = names.map(|name| p.folder.path(&format!("{name}.jsonl")));
    let shown = |i: usize| ["--events", &files[i]];
    let roles = [
        start(&p.server(&[&quick[..], &shown(0)].concat())),
        start(&p.intermediary(&[&quick[..], &shown(1)].concat())),
    ];
    let mut clients = vec![start(&p.client(1, &[&["-vv"][..], &shown(2)].concat()))];
    clients.extend((2..=5).map(|i| start(&p.client(i, &["-vv"]))));
    clients[4].until("answers", LIMIT, |log| log.matches("MaskedWords").count() >= 5);
    // What is shown of a running party holds no more than what it logs.
    if cfg!(unix) {
        for (state, round) in
            [("lead.key.state", "of at most"), ("counter.key.state", "round 1"), ("site-5.state", "round ")]
        {
            for (more, holds) in [(&[][..], round), (&["--json"], "\"round\""), (&["--metrics"], "veilsum_running ")] {
                let told = veilsum(&[&["status", "--state", &p.folder.path(state)], more].concat()).expect(0);
                assert!(told.stdout.contains(holds), "{}", told.stdout);
                secrets.check(&format!("status of {state}"), &without_bytes(&told.text()));
                no_addresses(&format!("status of {state}"), &told.text());
            }
        }
    }
    let mut ended: Vec<(String, Ended)> = vec![("a killed client".into(), clients.remove(4).kill())];
    // The run ends early, with what is out; the intermediary's part of it is done.
    let [server, intermediary] = roles;
    let (server, intermediary) = (server.wait(LIMIT).expect(9), intermediary.wait(LIMIT).expect(0));
    ended.extend([("server".into(), server), ("intermediary".into(), intermediary)]);
    ended.extend(clients.into_iter().enumerate().map(|(i, c)| (format!("client {}", i + 1), c.wait(LIMIT).expect(9))));
    for (name, file) in names.iter().zip(&files) {
        let told = std::fs::read_to_string(file).expect("a file of events");
        assert!(told.lines().count() > 5, "{name}: {told}");
        secrets.check(&format!("events of {name}"), &without_bytes(&told));
        // Whoever is dialled in vain is named with where.
        let others: Vec<&str> = told.lines().filter(|line| !line.contains("\"event\":\"waiting\"")).collect();
        no_addresses(&format!("events of {name}"), &others.join("\n"));
    }
    for (who, e) in &ended {
        assert!(e.stderr.contains("DEBUG") || e.stderr.contains("INFO"), "{who} logs nothing: {}", e.stderr);
        assert!(!e.stderr.contains('\u{1b}'), "colours in a file: {:?}", e.stderr);
        secrets.check(who, &e.stderr);
        secrets.check(who, &without_account(&e.stdout));
        no_addresses(who, &e.stderr);
    }

    // Refusals and errors: another key, no roster, no server, a row outside the box, a file that is no table.
    let text = std::fs::read_to_string(p.folder.0.join("site-2.csv")).expect("rows");
    let (outside, broken) = (text.replacen("0.", "7.", 1), text.replacen(",private", "0,private,", 1));
    let [outside, broken] =
        [("outside.csv", outside), ("broken.csv", broken)].map(|(name, text)| p.folder.write(name, &text));
    let (stranger, roster) = (p.folder.path("stranger.key"), p.folder.path("none.toml"));
    p.key("stranger");
    for (more, code) in [
        (vec!["--key", &stranger], 3),
        (vec!["--roster", &roster], 3),
        (vec!["--data", &outside], 3),
        (vec!["--data", &broken], 3),
        (vec!["--join-timeout", "1"], 4),
    ] {
        let mut all = more.clone();
        all.extend(["-vv"]);
        let e = veilsum(&p.client(2, &all)).expect(code);
        secrets.check(&format!("{more:?}"), &(e.stderr.clone() + &without_account(&e.stdout)));
        if code == 3 {
            no_addresses(&format!("{more:?}"), &e.text());
        }
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("a log").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// In one process the masked words are known to the test, and every crate of ours may say all it has to say.
#[test]
fn masked_words_and_shares_are_not_logged() {
    let log = Log::default();
    let writer = log.clone();
    // A target stands for all that begin as it does.
    let filter = Targets::new().with_default(LevelFilter::INFO).with_target("veilsum", LevelFilter::TRACE);
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(move || writer.clone());
    tracing_subscriber::registry().with(lines.with_filter(filter)).try_init().expect("the only log of this process");
    let work = fcm(unit_square(), 3, 0.0, 6, Seeding::Uniform { seed: 3 });
    let sites = made_up(&SIZES, 0.2, 77);
    let (run, _) = federate(sites.clone(), &work, &[(1, Point::BeforeInput, 3)]);
    run.result.as_ref().expect("a result");
    let log = String::from_utf8(log.0.lock().expect("a log").clone()).expect("text");
    assert!(log.contains("MaskedWords") && log.contains("SelfMaskShares"), "{log}");

    let mut secrets = Secrets::default();
    for (_, rows) in &sites {
        secrets.count(rows.len());
        rows.as_slice().iter().take(200).for_each(|x| secrets.value("a row", *x));
    }
    for view in [&run.coordinator_view, &run.intermediary_view] {
        for (from, frame) in view.lock().expect("a view").iter() {
            let (Some(kind), PartyId::Site(_)) = (kind_of(frame), from) else { continue };
            let body = &frame[40..frame.len() - 64];
            match kind {
                Kind::MaskedInput => {
                    body[COMMITMENT..]
                        .as_chunks::<8>()
                        .0
                        .iter()
                        .for_each(|w| secrets.word("a masked word", u64::from_le_bytes(*w)));
                }
                Kind::Unmask => secrets.bytes("a share", &body[8..]),
                // The intermediary's hold no seed where nobody is missing.
                Kind::ConsistencyCheck => secrets.bytes("a seed", body.get(42..74).unwrap_or_default()),
                Kind::AdvertiseKeys => secrets.bytes("a deck's key", &body[..64]),
                _ => {}
            }
        }
    }
    assert!(secrets.0.len() > 1000);
    secrets.check("everybody", &log);
    no_addresses("everybody", &log);
}
