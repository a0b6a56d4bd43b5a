//! Who is named where a run does not come about: the party at fault, with the reason, on the screen of everybody who sees it.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use veilsum_testkit::program::{Folder, Parties, agree, free_port, start, veilsum};

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
    assert!(error_of(&told.stderr).contains("not there: site-3"), "{}", told.stderr);
    for text in [told.text()].into_iter().chain(sites.into_iter().map(|site| site.wait(LIMIT).text())) {
        assert!(!text.contains("left the run") && text.contains("not there: site-3"), "{text}");
    }
    drop(counter);
}

/// Its three hospitals have no policy of their own: the strict default answers its plan.
#[test]
fn the_example_of_three_hospitals_needs_no_laxer_policy() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/three-hospitals");
    let script = std::fs::read_to_string(example.join("run.sh")).expect("the example").replace("\\\n", " ");
    assert!(!script.contains("--policy"), "{script}");
    let made = script.lines().find(|line| line.starts_with("\"$veilsum\" plan new")).expect("its plan");
    let folder = Folder::fresh();
    let at = |name: &str| folder.path(name);
    for (name, address) in [("hub", "127.0.0.1:1"), ("counter", "127.0.0.1:2"), ("a", ""), ("b", ""), ("c", "")] {
        let mut args = vec!["keygen".to_owned(), "--name".into(), name.into(), "--out".into(), at("")];
        args.extend((!address.is_empty()).then(|| format!("--address={address}")));
        veilsum(&args).expect(0);
    }
    let mut roster = ["roster", "make", "--name", "three", "--coordinator"].map(str::to_owned).to_vec();
    roster.extend([at("hub.card"), "--intermediary".into(), at("counter.card"), "--key".into(), at("hub.key")]);
    roster.extend(["a", "b", "c"].map(|site| format!("--site={}", at(&format!("{site}.card")))));
    roster.extend(["--out".into(), at("roster.toml")]);
    veilsum(&roster).expect(0);
    let words = made.split_whitespace().skip(1).map(|word| {
        match word.contains('.') && !word.starts_with(|c: char| c.is_ascii_digit()) {
            true => at(word),
            false => word.to_owned(),
        }
    });
    veilsum(&words.collect::<Vec<_>>()).expect(0);
    for hospital in ["a", "b", "c"] {
        let rows = example.join(format!("hospital-{hospital}/rows.csv")).to_string_lossy().into_owned();
        let [roster, plan] = ["roster.toml", "plan.toml"].map(at);
        let key = at(&format!("{hospital}.key"));
        let own = ["check", "--offline", "--roster", &roster, "--plan", &plan, "--key", &key, "--data", &rows];
        let told = veilsum(&own).expect(0);
        assert!(told.stdout.contains("PASS  answers: ") && told.stdout.contains("the default"), "{}", told.stdout);
    }
}

/// A name server may be down for a while: the name is looked up until the time is over, and nobody is told to make another card.
#[test]
fn a_name_that_nobody_knows_is_looked_up_until_the_time_is_over() {
    let p = Parties::new(&SIZES, &PLAN);
    // Reserved for names that nobody has (RFC 6761).
    veilsum(&["keygen", "--name", "lost", "--out", &p.folder.path(""), "--address", "lead.invalid:7000"]).expect(0);
    let at = |name: &str| p.folder.path(name);
    let mut args = ["roster", "make", "--name", "test", "--coordinator"].map(str::to_owned).to_vec();
    args.extend([at("lost.card"), "--intermediary".into(), at("counter.card"), "--key".into(), at("lost.key")]);
    args.extend([1, 2, 3].map(|i| format!("--site={}", at(&format!("site-{i}.card")))));
    veilsum(&[args, vec!["--out".into(), at("lost.toml")]].concat()).expect(0);
    let [roster, plan, key] = ["lost.toml", "lost-plan.toml", "lost.key"].map(at);
    let make = [
        "plan",
        "new",
        "--roster",
        &roster,
        "--key",
        &key,
        "--out",
        &plan,
        "--k",
        "3",
        "--set",
        "max_rows=2000",
        "--exact",
    ];
    veilsum(&[&make[..], &["--column", "x=0:1", "y=0:1"]].concat()).expect(0);
    let begun = Instant::now();
    let told = veilsum(&p.client(1, &["--roster", &roster, "--plan", &plan, "--join-timeout", "4"])).expect(4);
    assert!(begun.elapsed() >= Duration::from_secs(4), "{:?}", begun.elapsed());
    assert!(error_of(&told.stderr).contains("lead.invalid:7000"), "{}", told.stderr);
    assert!(!told.stderr.contains("keygen") && !told.stderr.contains("card"), "{}", told.stderr);
}

/// Where a result cannot be written, that is said before a port is opened or anybody is dialled.
#[test]
fn a_place_where_no_result_can_be_written_is_said_before_the_run() {
    let p = Parties::new(&SIZES, &PLAN);
    let below = p.folder.path("toy.toml/result");
    for args in [p.server(&["--out", &below]), p.client(1, &["--out", &below])] {
        let told = veilsum(&args).expect(3);
        assert!(
            told.stderr.contains("nothing has been sent yet") && !told.stderr.contains("waiting"),
            "{}",
            told.stderr
        );
    }
    let shown =
        veilsum(&["ledger", "show", "--key", &p.folder.path("site-1.key"), "--state", &p.folder.path("site-1.state")]);
    assert!(!shown.stdout.contains("public_keys"), "nothing was begun: {}", shown.stdout);
}

/// [POL-4]: what a site's own policy refuses is said on its screen before it dials anybody, and nothing leaves.
#[test]
fn pol_4_a_site_whose_policy_refuses_the_plan_dials_nobody() {
    let p = Parties::new(&SIZES, &PLAN);
    p.folder.write("strict.toml", "methods = [\"kmeans\"]\n");
    let told = veilsum(&p.client(3, &["--policy", &p.folder.path("strict.toml")])).expect(7);
    assert!(told.stderr.contains("[POL-4]") && !told.stderr.contains("waiting"), "{}", told.stderr);
}

/// [POL-9]: without its operator's agreement a site answers no plan without noise, and dials nobody for it.
#[test]
fn pol_9_a_site_whose_operator_did_not_agree_dials_nobody() {
    let p = Parties::new(&SIZES, &PLAN);
    let args = p.client(1, &[]);
    fs::remove_dir_all(p.folder.0.join("site-1.state")).expect("the ledger with the agreement");
    fs::remove_file(p.folder.0.join("site-1.key.head")).expect("its head");
    let told = veilsum(&args).expect(7);
    assert!(told.stderr.contains("[POL-9]") && !told.stderr.contains("waiting"), "{}", told.stderr);
    // An agreement to one plan is none to another.
    agree(&args);
    p.plan("roster.toml", "plan.toml", &["--seed=99"]);
    assert!(veilsum(&args).expect(7).stderr.contains("[POL-9]"));
}
