//! Who is named where a run does not come about: the party at fault, with the reason, on the screen of everybody who sees it.

use std::time::{Duration, Instant};

use veilsum_proto::roster::{Member, Roster};
use veilsum_testkit::program::{Parties, free_port, start, veilsum};

use crate::said::Told;

const SIZES: [usize; 3] = [40, 55, 61];
const PLAN: [&str; 2] = ["--set=epsilon=0.005", "--set=max_rounds=12"];
const LIMIT: Duration = Duration::from_secs(120);
const QUICK: [&str; 8] = ["--phase-timeout", "4", "--grace", "1", "--join-timeout", "8", "--on-loss", "stop"];

fn error_of(stderr: &str) -> &str {
    stderr.lines().find(|line| line.starts_with("error: ")).unwrap_or_else(|| panic!("no error: {stderr}"))
}

/// The intermediary listens on another port than its card says: what a site reports is not that sites are missing there.
#[test]
fn a_site_that_cannot_reach_an_aggregator_names_that_one_and_its_port() {
    let p = Parties::new(&SIZES, &PLAN);
    let lead = start(&p.server(&QUICK));
    let wrong = format!("127.0.0.1:{}", free_port());
    let counter = start(&p.intermediary(&[&QUICK[..], &["--listen", &wrong]].concat()));
    let sites: Vec<_> = (1..=3).map(|i| start(&p.client(i, &["--join-timeout", "3"]))).collect();
    let port = p.ports[1];
    for site in sites {
        let told = site.wait(LIMIT);
        assert!([Some(6), Some(9)].contains(&told.code), "{told:?}");
        let error = error_of(&told.stderr);
        let cause = format!("this site could not take part: counter did not answer at 127.0.0.1:{port}");
        assert!(error.contains(&cause), "{error}");
        assert!(told.stderr.contains("next: check that the server runs there"), "{}", told.stderr);
    }
    let told = counter.wait(LIMIT).expect(6);
    let warning = format!("warning: the roster says port {port} for counter, and this listens on");
    assert!(told.stderr.contains(&warning), "{}", told.stderr);
    drop(lead);
}

/// A site that was never there did not leave.
#[test]
fn a_site_that_never_came_is_said_to_be_absent_and_not_to_have_left() {
    let p = Parties::new(&SIZES, &PLAN);
    let lead = start(&p.server(&QUICK));
    let counter = start(&p.intermediary(&QUICK));
    let sites: Vec<_> = [1, 2].map(|i| start(&p.client(i, &[]))).into();
    let told = lead.wait(LIMIT).expect(6);
    assert!(error_of(&told.stderr).contains("not there: site-3 (never connected)"), "{}", told.stderr);
    for text in [told.text()].into_iter().chain(sites.into_iter().map(|site| site.wait(LIMIT).text())) {
        assert!(!text.contains("left the run") && text.contains("not there: site-3"), "{text}");
    }
    drop(counter);
}

/// A name server may be down for a while: the name is looked up until the time is over, and nobody is told to do anything else.
#[test]
fn a_name_that_nobody_knows_is_looked_up_until_the_time_is_over() {
    let p = Parties::new(&SIZES, &PLAN);
    // Reserved for names that nobody has (RFC 6761).
    let coordinator = Member { address: "lead.invalid:7000".into(), ..p.member("lead") };
    let sites = (1..=3).map(|i| p.member(&format!("site-{i}"))).collect();
    p.sign("roster.toml", Roster { name: "test".into(), coordinator, intermediary: p.member("counter"), sites });
    p.plan("roster.toml", "plan.toml", &PLAN);
    let begun = Instant::now();
    let told = veilsum(&p.client(1, &["--join-timeout", "4"])).expect(4);
    assert!(begun.elapsed() >= Duration::from_secs(4), "{:?}", begun.elapsed());
    assert!(error_of(&told.stderr).contains("lead.invalid:7000"), "{}", told.stderr);
}

/// Where a result cannot be written, that is said before a port is opened or anybody is dialled; and so is a port that is taken.
#[test]
fn a_place_where_no_result_can_be_written_is_said_before_the_run() {
    let p = Parties::new(&SIZES, &PLAN);
    let below = p.folder.path("toy.toml/result");
    for args in [p.server(&["--out", &below]), p.client(1, &["--out", &below])] {
        veilsum(&args).expect(3).says(&["nothing has been sent yet", "!waiting"]);
    }
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let taken = socket.local_addr().expect("an address").to_string();
    veilsum(&p.server(&["--listen", &taken])).expect(4).says(&[&taken, "free port"]);
    veilsum(&p.server(&["--events", "/nowhere/events.jsonl"])).expect(3).says(&["--events"]);
    let shown = p.types("site-1", "ledger show", "key state", &[]);
    assert!(!shown.stdout.contains("public_keys"), "nothing was begun: {}", shown.stdout);
}
