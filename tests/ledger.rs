//! Policy and ledger in the product as it ships: what a site answers and what it does not, what its account says, and what becomes of
//! a ledger that was tampered with.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use serde_json::{Value, json};
use veilsum_node::{
    documents::{load_identity, roster_fingerprint},
    door::Ledger,
};
use veilsum_proto::suite::Hash;
use veilsum_testkit::program::{Ended, Parties, Running, agree, binary, start, veilsum};

use crate::said::{Told, says};

const LIMIT: Duration = Duration::from_secs(120);
const QUICK: [&str; 6] = ["--phase-timeout", "10", "--grace", "1", "--join-timeout", "60"];
const ORDINARY: [usize; 3] = [1_500, 1_400, 1_600];
/// What a plan with noise says here.
const NOISE: [&str; 4] = ["--rho=0.4", "--expected-rows=4500", "--set=max_rounds=6", "--set=max_rows=1048576"];

/// A federation whose sites have no policy but the default.
struct Strict(Parties);

impl Strict {
    fn new(sizes: &[usize], plan: &[&str]) -> Strict {
        let parties = Parties::new(sizes, plan);
        fs::remove_file(parties.folder.0.join("toy.toml")).expect("the toy policy");
        Strict(parties)
    }

    fn path(&self, name: &str) -> String {
        self.0.folder.path(name)
    }

    /// Without --policy: the file beside the key, or the default.
    fn client(&self, i: usize, more: &[&str]) -> Vec<String> {
        let mut args = self.0.client(i, more);
        if let Some(at) = args.iter().position(|a| a.ends_with("toy.toml")) {
            args.drain(at - 1..=at);
        }
        agree(&args);
        args
    }

    fn run(&self) -> (Ended, Ended, Vec<Ended>) {
        let server = start(&self.0.server(&QUICK));
        let intermediary = start(&self.0.intermediary(&QUICK));
        let clients: Vec<Running> = (1..=3).map(|i| start(&self.client(i, &["-vv"]))).collect();
        let server = server.wait(LIMIT);
        (server, intermediary.wait(LIMIT), clients.into_iter().map(|c| c.wait(LIMIT)).collect())
    }

    fn ledger(&self, i: usize) -> PathBuf {
        self.0.folder.0.join(format!("site-{i}.state/ledger.jsonl"))
    }

    fn budget(&self, i: usize) -> Value {
        let told = self.0.types(&format!("site-{i}"), "check --offline --json", "key state", &[]).expect(0);
        told.json()["account"].clone()
    }

    /// `check` says what the plan reads and what would leave, and each question of the plan costs as many bytes as the ledger then shows.
    fn announces_what_it_sent(&self, entries: &[Value]) {
        let told = self.0.types("site-1", "check --offline --json", "roster plan key data state", &[]).expect(0).json();
        let (columns, leaves) = (&told["columns"], &told["leaves"]["says"]);
        assert!(leaves.as_str().is_some_and(|says| says.starts_with("site-1 would send nothing that can be read")));
        assert_eq!((&columns["used"], &columns["ignored"]), (&json!(["x", "y"]), &json!(["note"])));
        let told = self.0.types("lead", "plan check --json", "roster plan", &[]).expect(0).json();
        let bytes = |of: &Value| of.as_u64().expect("bytes");
        let questions = told["questions"].as_array().expect("questions");
        let announced: BTreeSet<u64> = questions.iter().map(|q| bytes(&q["upload_bytes_per_round"])).collect();
        let masked = frames(entries).filter(|frame| frame["discloses"] == "masked_words");
        for sent in masked.map(|frame| bytes(&frame["bytes"])) {
            assert!(announced.iter().any(|whole| sent < *whole && *whole < sent + 1024), "{sent}: {announced:?}");
        }
    }

    fn check(&self, more: &[&str]) -> Ended {
        self.0.types("site-1", "check --offline", "roster plan key state", more)
    }
}

/// The frames among the entries.
fn frames(entries: &[Value]) -> impl Iterator<Item = &Value> {
    entries.iter().filter_map(|entry| entry["event"].get("frame"))
}

/// [LED-1] to [LED-7] in a run from its first frame to its account, and again.
#[test]
fn a_site_answers_a_plan_and_knows_what_it_gave_away() {
    let p = Strict::new(&ORDINARY, &NOISE);
    // The first set of sites of an account is agreed to.
    p.check(&[]).expect(7).says(&["sites that this account does not name yet", "veilsum agree plan.toml"]);
    p.client(1, &[]);
    p.check(&[]).expect(0).says(&["PASS answers: this site answers the whole plan. It spends rho "]);
    let (server, intermediary, clients) = p.run();
    server.expect(0);
    intermediary.expect(0);
    clients.into_iter().for_each(|c| drop(c.expect(0)));
    // Whoever has the file can check the ledger, and sees who signed it.
    let file = p.ledger(1);
    let file = file.to_str().expect("a path");
    let told = veilsum(&["verify", file, "--json"]).expect(0).json();
    assert_eq!(told["signers"], json!([p.0.public("site-1")]));
    let link = told["link"].as_str().expect("a link").to_owned();
    veilsum(&["verify", file, "--head", &link]).expect(0);
    // Another site's folder is no account of this one.
    let (other, state) = (p.path("site-2.key"), p.path("site-1.state"));
    let foreign = ["was signed last by another key", "give this party its own state folder"];
    veilsum(&p.client(1, &["--key", &other, "--state", &state])).expect(3).says(&foreign);
    // Every frame of the report is an entry, and the answers are those of the run.
    let show = |more: &[&str]| p.0.types("site-1", "ledger show", "key state", more).expect(0);
    let shown = show(&["--json"]).json();
    let entries = shown.as_array().expect("entries");
    assert_eq!(told["entries"], entries.len());
    let of = |what: &str| frames(entries).filter(|frame| frame["discloses"] == what).count() as u64;
    let result = p.0.folder.json("out/result.json");
    let answers = result["questions"].as_u64().expect("a number") + 1;
    assert_eq!((of("masked_words"), of("self_mask_shares")), (answers, answers));
    let phases = result["traffic"]["site-1"].as_object().expect("phases");
    let traffic: u64 = phases.values().map(|phase| phase["messages"].as_u64().unwrap()).sum();
    // The intermediary's part is not in the coordinator's traffic: a deck of four frames, an answer, a signature on the final
    // cohort, shares; nor are the notes of what the account promises, of the sites, of the run's beginning and end, of who was met, twice, and
    // of each answer that was charged.
    assert_eq!(entries.len() as u64, traffic + 13 + answers);
    let charged = || entries.iter().filter_map(|entry| entry["event"]["note"]["charged"].get("answer"));
    let kinds: Vec<&str> = charged().filter_map(|answer| answer["kind"].as_str()).collect();
    assert!(kinds.contains(&"count_rows") && kinds.contains(&"shifts") && kinds.contains(&"fuzzy_validation"));
    show(&[]).says(&["masked_words", &link]);
    // No row, no count of rows.
    let text = fs::read_to_string(file).expect("the ledger");
    // As a number: among so many digests any four digits may stand somewhere.
    let number = |end: &str| text.contains(&format!(":1500{end}"));
    assert!(!number(",") && !number("}") && !text.contains("private"));
    // What was spent is no more than the plan said, and nothing is kept for the run any more.
    let first = p.budget(1);
    let number = |of: &Value, name: &str| of[name].as_u64().expect("a number");
    let rho: u64 = charged().filter_map(|answer| answer["cost"]["nano_rho"].as_u64()).sum();
    assert_eq!((number(&first, "nano_rho"), number(&first, "nano_rho_begun")), (rho, 0));
    assert_eq!(number(&first, "nano_rho_left"), 2_000_000_000 - rho);
    assert!(rho > 600_000_000 && first["exact"] == false, "{first}");
    assert!(first["says"].as_str().is_some_and(|says| says.contains("% of the account is used")));
    p.announces_what_it_sent(entries);
    // The same plan again: another draw of noise, and more than the plan promises. Nobody dials anybody, and all is well.
    p.check(&[]).expect(0).says(&["PASS answers: this plan has been run"]);
    veilsum(&p.client(1, &["--join-timeout", "1"])).expect(7).says(&["second run", "[POL-8]", "!did not answer"]);
    tampered(&p);
}

/// [LED-2], [LED-3], [LED-5]: a site with such a ledger answers nothing.
fn tampered(p: &Strict) {
    let (file, head) = (p.ledger(1), p.0.folder.0.join("site-1.state/ledger.head"));
    let whole = fs::read(&file).expect("the ledger");
    // What the site says, and what somebody says who has the file alone.
    let refused = |own: &str, alone: &str| {
        veilsum(&p.client(1, &["--join-timeout", "1"])).expect(3).says(&[own, "!did not answer"]);
        let code = if alone.is_empty() { 0 } else { 3 };
        veilsum(&["verify", file.to_str().expect("a path")]).expect(code).says(&[alone]);
    };
    let lines: Vec<&[u8]> = whole.split_inclusive(|b| *b == b'\n').collect();
    let mut changed = whole.clone();
    changed[lines[..7].concat().len() + 30] ^= 1;
    let older = "was cut or is an older copy";
    // The second is cut between two lines.
    for (bytes, own, alone) in [
        (&changed[..], "entry 7 ", "entry 7 "),
        (&lines[..lines.len() - 3].concat()[..], older, ""),
        (&whole[..whole.len() - 10], older, "is cut short"),
    ] {
        fs::write(&file, bytes).expect("a tampered ledger");
        refused(own, alone);
    }
    fs::write(&file, &whole).expect("the ledger");
    fs::rename(&head, head.with_extension("away")).expect("the head");
    refused("is missing", "");
    fs::rename(head.with_extension("away"), &head).expect("the head");
    p.0.plan("roster.toml", "plan.toml", &[&NOISE[..], &["--seed=5"]].concat());
    veilsum(&p.client(1, &["--join-timeout", "1"])).expect(4).says(&["did not answer"]);
}

/// [POL-9]: a plan without noise is answered by the agreement of every operator and not otherwise; what left then is exact, and
/// is said so.
#[test]
fn pol_9_exact_totals_leave_by_agreement() {
    let p = Strict::new(&ORDINARY, &["--set=epsilon=0", "--set=max_rounds=8"]);
    p.check(&[]).expect(7).says(&["waits for your agreement", "its totals are exact", "veilsum agree plan.toml"]);
    let (plan, data) = (p.path("plan.toml"), p.path("site-1.csv"));
    let agree = |fingerprint: &str| {
        p.0.types("site-1", &format!("agree {plan}"), "roster key state data", &["--fingerprint", fingerprint])
    };
    // Another plan's fingerprint is no agreement; what is shown says what may follow.
    let another = roster_fingerprint(&Hash([7; 32]));
    agree(&another).expect(3).says(&["rows may be inferred from them", "no bound holds"]);
    p.check(&[]).expect(7).says(&["waits for your agreement"]);
    let shown = p.0.types("lead", "plan check --json", "roster plan", &[]).expect(0).json();
    let words = shown["fingerprint"].as_str().expect("a fingerprint");
    agree(words).expect(0);
    assert!(p.check(&[]).expect(0).unfolded().contains("this site answers the whole plan, to whose exact totals"));
    // A policy may forbid it all the same.
    p.0.folder.write("never.toml", "exact = \"never\"\n");
    assert!(p.check(&["--policy", &p.path("never.toml")]).expect(7).stderr.contains("[POL-9]"));
    let (server, _, clients) = p.run();
    server.expect(0);
    clients.into_iter().for_each(|c| drop(c.expect(0)));
    let budget = p.budget(1);
    assert_eq!((&budget["exact"], &budget["nano_rho"]), (&true.into(), &0.into()));
    assert!(budget["says"].as_str().is_some_and(|says| says.contains("no bound holds")), "{budget}");
    // The plan once more, over a row more: the agreement was to the totals of yesterday, and the screen says what today's would tell.
    let rows = fs::read_to_string(&data).expect("rows");
    let a_row_more = || fs::write(&data, format!("{rows}0.5,0.5,private\n")).expect("a row more");
    a_row_more();
    let short = ["--join-timeout", "1"];
    let refused: Vec<String> =
        p.0.client(1, &short).into_iter().filter(|arg| !arg.ends_with("toy.toml") && arg != "--policy").collect();
    fs::write(&data, &rows).expect("rows");
    agree(words).expect(0).says(&["nothing in it waits"]);
    a_row_more();
    veilsum(&refused).expect(7).says(&["waits for your agreement", "[POL-9]"]);
    let told = agree(&another).expect(3).unfolded();
    let was = format!("Exact totals left before of {} rows, digest ", ORDINARY[0]);
    let is = format!("Your table has {} rows, digest ", ORDINARY[0] + 1);
    says(&told, &[&was, &is, "What came or went since can be computed; if it is one row, that row."]);
    agree(words).expect(0);
    fs::write(&data, &rows).expect("rows");
    // What is in nobody's reach is refused before anybody is asked.
    for absurd in [&["--set=m=1.05"][..], &["--set=min_total_rows=59"]] {
        p.0.plan("roster.toml", "plan.toml", absurd);
        agree(&another).expect(7).says(&["[POL-9]"]);
    }
    // Noise hides nothing of these rows any more.
    p.0.plan("roster.toml", "plan.toml", &NOISE);
    for told in [p.check(&[]), agree(&another)] {
        told.expect(7).says(&["exact for good", "[POL-9]", "join from another folder", "!agree to it"]);
    }
}

/// [POL-8]: a policy above the account's cap is told at once; its operator raises the cap, and is asked once.
#[test]
fn pol_8_a_cap_is_raised_by_agreement_alone() {
    let p = Strict::new(&ORDINARY, &NOISE);
    p.client(1, &[]);
    p.0.folder.write("site.toml", "rho = 2.0\n");
    let told = ["site.toml says rho = 2, and the account's cap is rho = 1", "veilsum agree --cap 2", "[POL-8]"];
    p.check(&[]).expect(7).says(&told);
    let raise = |cap: &str, typed: &str| {
        let mut shell = Command::new("bash");
        shell.args(["-c", "printf \"$0\" | \"$@\"", typed]).arg(binary());
        let ended = shell.args(["agree", "--cap", cap]).args(p.0.files("site-1", "key state")).output().expect("bash");
        (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
    };
    for (cap, typed, code) in
        [("2", "3\n", 3), ("2", "yes\n", 3), ("2", "", 3), ("1", "1\n", 2), ("0.5", "0.5\n", 2), ("-1", "", 2)]
    {
        assert_eq!(raise(cap, typed).0, Some(code), "{cap} {typed:?}");
    }
    p.check(&[]).expect(7);
    let (code, told) = raise("2", "2\n");
    assert_eq!(code, Some(0), "{told}");
    says(&told, &["everything but one row", "after all plans ever"]);
    p.check(&[]).expect(0).says(&["of 4 is spent"]);
    // The policy lowers it again.
    p.0.folder.write("site.toml", "rho = 0.5\n");
    p.check(&[]).expect(0).says(&["of 1 is spent"]);
}

/// [LED-9]: two federations over the same rows have one account, where the site's policy in one of them says so.
#[test]
fn led_9_two_federations_share_one_account() {
    let [one, two] = [1, 2].map(|_| Strict::new(&ORDINARY, &NOISE));
    let state = |i: usize| one.path(&format!("site-{i}.state"));
    (1..=3).for_each(|i| {
        let rows = format!("site-{i}.csv");
        fs::copy(one.path(&rows), two.path(&rows)).expect("the same rows");
    });
    let client = |of: &Strict, i: usize, own: bool| {
        let mut args = of.client(i, &["-vv", "--state", &state(i)]);
        let at = args.iter().position(|arg| arg == "--state").expect("a folder");
        if own {
            args.drain(at..at + 2);
        }
        agree(&args);
        start(&args)
    };
    let run = |of: &Strict, own: bool| {
        let hubs = [start(&of.0.server(&QUICK)), start(&of.0.intermediary(&QUICK))];
        let clients: Vec<Running> = (1..=3).map(|i| client(of, i, own && i == 1)).collect();
        clients.into_iter().chain(hubs).for_each(|party| drop(party.wait(LIMIT).expect(0)));
    };
    run(&one, false);
    let spent = || one.budget(1)["nano_rho"].as_u64().expect("a number");
    let first = spent();
    // A folder that another key signs in is somebody else's, until the operator says that it is not.
    let told = veilsum(&two.client(1, &["--state", &state(1), "--join-timeout", "1"])).expect(3).stderr;
    assert!(told.contains("signed last by another key") && told.contains("`state` in site.toml"), "{told}");
    two.0.folder.write("site.toml", &format!("state = {:?}\n", state(1)));
    // At the others the operator joined from the folder of the first.
    for i in 2..=3 {
        let (identity, _) = load_identity(two.path(&format!("site-{i}.key"))).expect("a key");
        Ledger::take_over(Path::new(&state(i)), Arc::new(identity)).expect("its account");
    }
    run(&two, true);
    // What a question costs follows from the centres before it, which noise moves.
    assert!(spent().abs_diff(2 * first) < first / 1_000, "{} and {first}", spent());
    let verified = veilsum(&["verify", one.ledger(1).to_str().expect("a path"), "--json"]).expect(0).json();
    assert_eq!(verified["signers"].as_array().map(Vec::len), Some(2), "{verified}");
    // Together they have no third run of that size.
    one.0.plan("roster.toml", "plan.toml", &[&NOISE[..], &["--seed=5"]].concat());
    one.check(&[]).expect(7).says(&["[POL-8]"]);
    // Another name of the rows begins no new account.
    one.0.folder.write("site.toml", "data = \"other rows\"\n");
    one.check(&[]).expect(7).says(&["[POL-8]"]);
}
