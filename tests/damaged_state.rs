//! An operator's bad days: a disk that is full, a state folder that cannot be written, a journal that is damaged, swapped or
//! somebody else's, versions that differ. Each ends with a message that says what happened and what to do.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::json;
use veilsum_node::{
    carrier::{self, Address, Call, CarrierError, Credentials, Transport},
    documents::load_identity,
    egress::Egress,
};
use veilsum_proto::{message::Kind, suite::VERSION};
use veilsum_testkit::program::{Parties, Running, ending, start, start_limited, veilsum};

use crate::{
    joining::{Founded, Organisation},
    loss_processes::early_at,
    processes::{LIMIT, LONG, QUICK, SIZES, start_all},
    said::{Told, says},
};

fn journals(p: &Parties) -> Vec<PathBuf> {
    ending(p.folder.path("site-1.state"), ".journal")
}

const NO_ROOM: &str = "check free space and permissions of the folder (--state)";

/// No file of the processes may grow beyond so many bytes: the disk is full.
const DISK: u64 = 32 << 10;

/// The site says so and sends nothing that its journal does not hold; the others end with what is out ([APP-8]).
#[test]
fn the_disk_of_a_site_is_full() {
    let p = Parties::new(&SIZES, &LONG);
    let (server, intermediary, _) = start_all(&p, &QUICK, []);
    let full = start_limited(&p.client(1, &["-vv"]), DISK);
    let others: Vec<Running> = (2..=5).map(|i| start(&p.client(i, &[]))).collect();
    let ended = full.wait(LIMIT).expect(10).says(&["File too large", NO_ROOM]);
    // The vector whose entry did not fit did not leave.
    let answered = ended.stderr.matches("MaskedWords").count();
    let size: u64 = journals(&p).iter().map(|f| f.metadata().expect("a file").len()).sum();
    assert!(answered > 5 && size <= 2 * DISK, "{answered} answers, {size} bytes");
    server.wait(LIMIT).expect(9).says(&[
        "left the run: site-1",
        "ended early",
        "too few sites",
        "nothing was revealed",
    ]);
    intermediary.wait(LIMIT).expect(0);
    others.into_iter().for_each(|c| drop(c.wait(LIMIT).expect(9)));
    // Who went, at which question, and why: the coordinator knows all of it, and a site the question.
    let result = p.folder.json("out/result.json");
    let gone = result["departures"][0].clone();
    let (question, why) = (gone["question"].as_u64().expect("a number"), gone["why"].as_str().expect("a reason"));
    // Whether its end or its silence was noticed first, nobody knows.
    let known = ["its connection broke", "it did not answer in time"].iter().any(|known| why.contains(known));
    assert!(known && question > 5 && result["departures"].as_array().map(Vec::len) == Some(1), "{gone}");
    for site in 2..=5 {
        assert_eq!(early_at(&p, site, "site-1"), result["centres"], "site {site}");
        let own = p.folder.json(&format!("site-{site}/result.json"))["departures"][0].clone();
        assert_eq!(own, json!({"site": "site-1", "question": question, "why": null}));
    }
    let page = fs::read_to_string(p.folder.path("out/report.html")).expect("a page");
    says(&page, &[&format!("to question {}", question - 1), why]);
    assert!(!p.folder.0.join("site-1/model.json").exists());

    // With room again: the journal's torn end is no damage, and the run it was in is over; what was opened to it is its result.
    veilsum(&p.client(1, &["--join-timeout", "1"])).expect(9).says(&["did not answer"]);
    damaged_journals(&p);
}

/// What is left of a run's journals: damaged at any place, of another plan, of another run.
fn damaged_journals(p: &Parties) {
    let short = ["--join-timeout", "1"];
    let file = journals(p).into_iter().max_by_key(|f| f.metadata().expect("a file").len());
    let file = file.expect("a journal");
    let whole = fs::read(&file).expect("a journal");
    for at in [0, 17, whole.len() / 2] {
        let mut bad = whole.clone();
        bad[at] ^= 1;
        fs::write(&file, bad).expect("a damaged journal");
        let said = ["is damaged", "can no longer be told", "next: ", "a site needs a new plan"];
        veilsum(&p.client(1, &short)).expect(3).says(&said);
    }
    fs::write(&file, &whole).expect("the journal");
    // The journal of one plan under the name that another plan's has.
    p.plan("roster.toml", "other.toml", &["--set=epsilon=0.01"]);
    let other = p.folder.path("other.toml");
    let elsewhere = ["--plan", &other, "--join-timeout", "1"];
    veilsum(&p.client(1, &elsewhere)).expect(4).says(&["did not answer"]);
    let names = journals(p);
    assert_eq!(names.len(), 4, "a journal for each plan and aggregator: {names:?}");
    for name in names.iter().filter(|n| n.metadata().expect("a file").len() <= 16) {
        fs::write(name, &whole).expect("a swapped journal");
    }
    let said = ["it belongs to another plan, roster or aggregator", "agree on a new plan"];
    veilsum(&p.client(1, &elsewhere)).expect(3).says(&said);
}

/// Whatever another version of this software kept is refused by name and stays as it is: no account begins anew beside it.
#[test]
fn files_of_another_form_are_refused_and_stay_as_they_are() {
    let p = Parties::new(&SIZES[..3], &[]);
    let of = |name: &str| PathBuf::from(p.folder.path(name));
    let state = of("site-1.state");
    let all = || -> BTreeMap<PathBuf, Vec<u8>> {
        let files = [&p.folder.0, &state].into_iter().flat_map(|folder| ending(folder, ""));
        // A lock says nothing, and `pinned.toml` begins with the first start.
        let begun = |path: &PathBuf| path.ends_with("pinned.toml") || path.extension().is_some_and(|end| end == "lock");
        files
            .filter(|path| path.is_file() && !begun(path))
            .map(|path| (path.clone(), fs::read(path).expect("a file")))
            .collect()
    };
    let args = p.client(1, &["--join-timeout", "1"]);
    let text = |name: &str| fs::read_to_string(of(name)).expect("a text");
    let other = |name: &str, from: &str, to: &str| {
        let (whole, mode) = (text(name), fs::metadata(of(name)).expect("a file").permissions());
        assert!(whole.contains(from), "{name}: {whole}");
        fs::write(of(name), whole.replacen(from, to, 1)).expect("another form");
        fs::set_permissions(of(name), mode).expect("its mode");
        whole
    };
    let refused = |name: &str, texts: &[&str]| {
        let before = all();
        veilsum(&args).expect(3).says(texts).says(&[name, "next: "]);
        assert_eq!(all(), before, "{name}");
    };
    for (name, from, to) in [
        ("site-1.key", "veilsum-key/1", "veilsum-key/0"),
        ("roster.toml", "veilsum-roster/", "veilsum-roster/0"),
        ("plan.toml", "veilsum-plan/", "veilsum-plan/0"),
        ("site-1.state/ledger.head", "\"form\":1", "\"form\":7"),
    ] {
        let whole = other(name, from, to);
        let head = ["form 7", "nothing in the folder was changed"];
        refused(name, if name.ends_with("head") { &head } else { &["format"] });
        fs::write(of(name), whole).expect("as it was");
    }
    // A folder whose ledger alone is left of what another version wrote.
    fs::remove_file(state.join("ledger.head")).expect("no head");
    fs::write(state.join("ledger.jsonl"), "{\"form\":7,\"index\":0}\n").expect("a ledger");
    refused("ledger.jsonl", &["form 7", "never begun anew"]);
}

/// [LED-5]: whoever lost the state folder answers nothing, is told so by every command, and none begins an account.
#[test]
fn a_state_folder_that_is_lost_is_no_new_account() {
    let p = Parties::new(&SIZES[..3], &[]);
    let args = p.client(1, &["--join-timeout", "1"]);
    let state = p.folder.path("site-1.state");
    fs::remove_dir_all(&state).expect("a folder");
    let (words, agree) = (format!("{}address", "abandon ".repeat(14)), format!("agree {}", p.folder.path("plan.toml")));
    let site = |command: &str, files: &str, more: &[&str]| p.types("site-1", command, files, more);
    for told in [
        veilsum(&args),
        site("ledger show", "key state", &[]),
        site(&agree, "roster key state policy", &["--fingerprint", &words]),
        site("check --offline", "roster plan key state data policy", &[]),
    ] {
        told.expect(3).says(&["[LED-5]", "put the newest copy"]);
        assert!(!Path::new(&state).join("ledger.head").exists(), "an account was begun");
    }
}

#[test]
fn a_state_folder_that_cannot_be_written() {
    let p = Parties::new(&SIZES, &[]);
    p.folder.write("file", "not a folder");
    let under_a_file = p.folder.path("file/state");
    for args in [p.client(1, &["--state", &under_a_file]), p.server(&["--state", &under_a_file])] {
        veilsum(&args).expect(3).says(&["file/state", NO_ROOM]);
    }
}

/// [FRM-1]: whoever comes to a coordinator with another wire version is told both versions and whose turn it is to update, in the lobby
/// and in a run, over UDP and over TCP; nothing else is said to it.
#[test]
fn a_member_of_another_wire_version_is_told_whose_turn_it_is_to_update() {
    let mut founded = Founded::new();
    let hub = founded.serve();
    let (key, _) = load_identity(founded.hub.folder.0.join("coordinator.key")).expect("a key");
    let to: Address = founded.address().parse().expect("an address");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let lobby = 136;
    for (transport, kind) in [(Transport::Quic, lobby), (Transport::Tcp, lobby), (Transport::Tcp, Kind::Hello as u8)] {
        for (version, older) in [(VERSION - 1, VERSION - 1), (VERSION + 1, VERSION)] {
            let answer = runtime.block_on(async {
                let carrier = carrier::choose(transport).expect("a carrier");
                let credentials = Credentials::from_seed(&[1; 32]).expect("a key");
                let (expected, check, limit) = (&key.public().0, |_: &_| Ok(4096), LIMIT);
                let call = Call { to: &to, expected, credentials: &credentials, check, limit };
                let link = carrier.dial(call).await.expect("a link");
                let (mut sender, mut receiver) = link.split();
                let frame = [&version.to_le_bytes()[..], &[kind, 0, 1, 0, 0, 0, 7]].concat();
                sender.send(&Egress::foreign(&frame)).await.expect("a frame that is sent");
                receiver.recv().await
            });
            let Err(CarrierError::Closed(reason)) = answer else { panic!("{answer:?}") };
            let turn = format!(
                "wire version {version} met wire version {VERSION}: the program of wire version {older} is the older one, and has to be updated"
            );
            assert!(reason.contains(&turn), "{reason}");
        }
    }
    // Its own operator is told, too.
    hub.until("why", LIMIT, |log| log.contains("a caller was turned away") && log.contains("has to be updated"));
}

/// The same at the member: its screen has what the coordinator's program says, and it goes on trying.
#[test]
fn a_coordinator_of_another_wire_version_is_heard_at_its_member() {
    let founded = Founded::new();
    let (key, _) = load_identity(founded.hub.folder.0.join("coordinator.key")).expect("a key");
    let at: SocketAddr = founded.address().parse().expect("an address");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let refuse = |header: &[u8; carrier::HEADER_LEN]| -> Result<usize, String> {
        assert_eq!(header[0], VERSION as u8);
        Err("the program of wire version 4 is the older one".into())
    };
    let (carrier, credentials) =
        (carrier::choose(Transport::Auto).expect("a carrier"), Credentials::from_seed(&key.seed()).expect("a key"));
    let mut member = Organisation::new();
    let joining = runtime.block_on(async {
        let listening = carrier::listen(&*carrier, at, &credentials, Arc::new(|_| true), refuse).await;
        let mut listener = listening.expect("a port");
        let joining = member.start(&["join", &founded.lines[0].1]);
        let link = listener.accept().await.expect("a link");
        let (_sender, mut receiver) = link.split();
        assert!(receiver.recv().await.is_err());
        joining.until("whose turn it is", LIMIT, |log| log.contains("wire version 4 is the older one"));
        joining
    });
    assert_eq!(joining.kill().code, None);
}
