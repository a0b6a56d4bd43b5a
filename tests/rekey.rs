//! A member gets a new key: its ledger, its block and its budget go on, nobody calls anybody, and nobody else can do it
//! ([ROS-11] to [ROS-13], [LED-9]).

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use serde_json::Value;
use veilsum_testkit::{
    faults::{self, Failing, Fault},
    program::{Ended, Folder, Parties, Running, fingerprint_of, start, start_in, veilsum},
};

use crate::service::Standing;

const SIZES: [usize; 3] = [40, 55, 61];
const LIMIT: Duration = Duration::from_secs(120);
const QUICK: [&str; 6] = ["--phase-timeout", "6", "--grace", "1", "--join-timeout", "60"];
const PLAN: [&str; 2] = ["--set=epsilon=0.005", "--set=max_rounds=12"];

/// What somebody types who calls nobody.
fn without_fingerprint(mut args: Vec<String>) -> Vec<String> {
    let at = args.iter().position(|arg| arg == "--roster-fingerprint").expect("a fingerprint");
    args.drain(at..at + 2);
    args
}

fn says(told: &Ended, what: &[&str]) {
    let text = told.text();
    what.iter().for_each(|what| assert!(text.contains(what), "{what:?} is not in\n{text}"));
}

/// A whole run; what the three sites and the intermediary said.
fn run(p: &Parties, called: bool) -> Vec<Ended> {
    let as_typed = |args: Vec<String>| if called { args } else { without_fingerprint(args) };
    let hub = start(&p.server(&QUICK));
    let others = [as_typed(p.intermediary(&QUICK))].into_iter().chain((1..=3).map(|i| as_typed(p.client(i, &[]))));
    let others: Vec<Running> = others.map(|args| start(&args)).collect();
    hub.wait(LIMIT).expect(0);
    others.into_iter().map(|party| party.wait(LIMIT).expect(0)).collect()
}

/// Answers of a site and numbers in them, by its ledger.
fn account(p: &Parties, site: &str) -> (u64, u64) {
    let [key, state] = ["key", "state"].map(|end| p.folder.path(&format!("{site}.{end}")));
    let told = veilsum(&["check", "--key", &key, "--state", &state, "--json"]).expect(0).stdout;
    let told: Value = serde_json::from_str(&told).expect("JSON");
    let number = |name: &str| told["account"][name].as_u64().expect("a number");
    (number("answers"), number("exact_numbers"))
}

fn rekey(p: &Parties, name: &str) -> String {
    let key = p.folder.path(&format!("{name}.key"));
    veilsum(&["rekey", "--key", &key, "--roster", &p.folder.path("roster.toml")]).expect(0);
    p.folder.path(&format!("{name}.test.rekey"))
}

/// The coordinator applies what it was sent.
fn apply(p: &Parties, statements: &[&str]) -> Ended {
    let (roster, key) = (p.folder.path("roster.toml"), p.folder.path("lead.key"));
    veilsum(&[&["roster", "change", "--roster", &*roster, "--key", &*key, "--rekey"][..], statements].concat())
}

fn accept(p: &Parties, name: &str, more: &[&str]) -> Ended {
    let (roster, key) = (p.folder.path("roster.toml"), p.folder.path(&format!("{name}.key")));
    veilsum(&[&["roster", "accept", "--roster", &*roster, "--key", &*key][..], more].concat())
}

fn accept_heard(p: &Parties, name: &str) -> Ended {
    accept(p, name, &["--fingerprint", &fingerprint_of(&p.folder.path("roster.toml"))])
}

/// [ROS-13], [LED-9], [REL-5]: a site and the intermediary replace their keys between two runs. Without the rule the second run would
/// end under [REL-4], as with the swapped roster.
#[test]
fn led_9_a_site_and_the_intermediary_rekey_and_everything_goes_on() {
    let p = Parties::new(&SIZES, &PLAN);
    run(&p, true);
    let before = ["site-1", "site-2"].map(|site| account(&p, site));
    let public = |name: &str| {
        let told = veilsum(&["verify", &p.folder.path("roster.toml"), "--json"]).expect(0).stdout;
        let told: Value = serde_json::from_str(&told).expect("JSON");
        let roster = &told["roster"];
        let sites = roster["sites"].as_array().expect("sites").iter().chain([&roster["intermediary"]]);
        sites.clone().find(|m| m["name"] == name).expect("a member")["key"].as_str().expect("a key").to_owned()
    };
    let old = public("site-2");
    // By what was agreed to: no roster has to be named. Twice is once.
    let key = p.folder.path("site-2.key");
    let first = veilsum(&["rekey", "--key", &key]).expect(0);
    let next = p.folder.0.join("site-2.key.next");
    assert_eq!(fs::metadata(&next).expect("a key").permissions().mode() & 0o777, 0o600);
    let (secret, statement) = (fs::read(&next).expect("it"), p.folder.path("site-2.test.rekey"));
    let stated = fs::read(&statement).expect("a statement");
    assert_eq!(veilsum(&["rekey", "--key", &key]).expect(0).stdout, first.stdout);
    assert_eq!((fs::read(&next).expect("it"), fs::read(&statement).expect("it")), (secret.clone(), stated));
    let counters = rekey(&p, "counter");
    says(
        &apply(&p, &[&statement, &counters]).expect(0),
        &["new keys: site-2 (", "), counter (", "number that you know"],
    );
    p.plan("roster.toml", "plan.toml", &PLAN);
    assert_ne!(public("site-2"), old);
    let told = run(&p, false);
    says(&told[0], &["counter has a new key, signed with its old one", "this party acts with its new key"]);
    says(&told[1], &["site-2 has a new key, signed with its old one", "needs no call"]);
    assert!(!next.exists() && fs::read(&key).expect("the key") == secret);
    for (site, before) in ["site-1", "site-2"].iter().zip(before) {
        let after = account(&p, site);
        assert!(after.0 > before.0 && after.1 > before.1, "{site}: {before:?} and then {after:?}");
    }
    // Anybody who has one of the two keys can check the whole ledger.
    let ledger = p.folder.path("site-2.state/ledger.jsonl");
    for key in [&old, &public("site-2")] {
        says(&veilsum(&["verify", &ledger, "--key", key]).expect(0), &[" and then "]);
    }
    veilsum(&["verify", &ledger, "--key", &public("site-1")]).expect(3);
    says(
        &veilsum(&["ledger", "show", "--key", &key, "--state", &p.folder.path("site-2.state")]).expect(0),
        &["own key replaced"],
    );
    let firsts = ["ledger", "show", "--key", &p.folder.path("site-1.key"), "--state", &p.folder.path("site-1.state")];
    says(&veilsum(&firsts).expect(0), &["another's new key"]);
}

/// [ROS-11], [ROS-12]: what a coordinator is sent, and what it may try with it.
#[test]
fn ros_11_only_the_member_itself_gets_itself_another_key() {
    let p = Parties::new(&SIZES, &PLAN);
    let roster = p.folder.0.join("roster.toml");
    let first = fs::read_to_string(&roster).expect("a roster");
    accept_heard(&p, "site-1").expect(0);
    let lead = p.folder.path("lead.key");
    let told = veilsum(&["rekey", "--key", &lead, "--roster", &p.folder.path("roster.toml")]).expect(3);
    says(&told, &["the coordinator of test [ROS-12]", "founds a new federation"]);
    says(
        &veilsum(&["rekey", "--key", &p.folder.path("site-2.key")]).expect(3),
        &["has agreed to no roster", "--roster"],
    );
    // A statement with anything of it changed, and another member's name on it.
    let statement = rekey(&p, "site-2");
    let good = fs::read_to_string(&statement).expect("a statement");
    for (from, to) in [("party = \"site-2\"", "party = \"site-3\""), ("federation = \"test\"", "federation = \"text\"")]
    {
        let forged = p.folder.write("forged.rekey", &good.replacen(from, to, 1));
        says(&apply(&p, &[&forged]).expect(3), &["did not sign", "[ROS-11]"]);
    }
    let own = rekey(&p, "site-3");
    let other = fs::read_to_string(&own).expect("a statement");
    let line = |text: &str, name: &str| text.lines().find(|l| l.starts_with(name)).expect("a line").to_owned();
    for name in ["new = ", "by_old = ", "by_new = "] {
        let forged = good.replacen(&line(&good, name), &line(&other, name), 1);
        says(&apply(&p, &[&p.folder.write("forged.rekey", &forged)]).expect(3), &["[ROS-11]"]);
    }
    assert_eq!(fs::read_to_string(&roster).expect("it"), first, "nothing was signed");
    apply(&p, &[&statement]).expect(0);
    let second = fs::read_to_string(&roster).expect("a roster");
    says(&apply(&p, &[&statement]).expect(0), &["site-2 has this key already", "new keys: none"]);
    assert_eq!(fs::read_to_string(&roster).expect("it"), second);
    // A history of which anything is changed or left out.
    for bad in
        [second.replacen("number = 0", "number = 1", 1), second.replacen("party = \"site-2\"", "party = \"site-3\"", 1)]
    {
        fs::write(&roster, bad).expect("a file");
        says(&accept(&p, "site-1", &[]).expect(3), &["roster.toml", "[ROS-1"]);
    }
    // As it should be: no fingerprint, and in words.
    fs::write(&roster, &second).expect("a file");
    says(
        &accept(&p, "site-1", &[]).expect(0),
        &["site-2 has a new key, signed with its old one", "Blocks, ledgers and budgets go on"],
    );
    // The old roster again, with the digits and without.
    fs::write(&roster, &first).expect("a file");
    for told in [accept(&p, "site-1", &[]), accept_heard(&p, "site-1")] {
        says(&told.expect(5), &["site-2 has a key that it replaced", "[ROS-13]"]);
    }
    // Another next roster behind the first one: a fork, kept as evidence.
    p.keygen("site-4", None);
    let (path, card) = (p.folder.path("roster.toml"), p.folder.path("site-4.card"));
    veilsum(&["roster", "change", "--roster", &path, "--key", &lead, "--site", &card]).expect(0);
    for told in [accept(&p, "site-1", &[]), accept_heard(&p, "site-1")] {
        says(&told.expect(5), &["lead signed two rosters of test", "different histories", "[ROS-13]", "fork-0.toml"]);
    }
    let kept = fs::read_to_string(p.folder.0.join("site-1.key.fork-0.toml")).expect("both changes");
    assert_eq!(kept.matches("[[change]]").count(), 2, "{kept}");
    // Who has seen neither takes what the others tell it by telephone; a new key in it is told with what else is new.
    fs::write(&roster, &second).expect("a file");
    veilsum(&["roster", "change", "--roster", &path, "--key", &lead, "--site", &card]).expect(0);
    let told = accept(&p, "site-1", &[]).expect(3);
    says(&told, &["site-4 (site) is new", "joining: site-4."]);
    accept_heard(&p, "site-1").expect(0);
    // The site itself: its key is taken up with the roster that it accepts.
    let told = accept_heard(&p, "site-2").expect(0);
    says(&told, &["this party acts with its new key"]);
    assert!(!p.folder.0.join("site-2.key.next").exists());
    veilsum(&["rekey", "--key", &p.folder.path("site-2.key")]).expect(0);
}

/// [LED-9], [ROS-11], [ROS-13]: the drill. A key is lost; its recovery file, which was kept elsewhere, brings the member back with ledger,
/// block and budget, and nobody takes the new key without a call.
#[test]
fn led_9_a_lost_key_is_recovered_and_the_member_goes_on() {
    let p = Parties::new(&SIZES, &PLAN);
    let (key, safe) = (p.folder.path("site-2.key"), p.folder.path("safe"));
    let beside = p.folder.0.join("site-2.recovery");
    assert_eq!(fs::metadata(&beside).expect("a recovery file").permissions().mode() & 0o777, 0o600);
    fs::rename(&beside, &safe).expect("it is moved to a safe place");
    run(&p, true);
    let before = ["site-1", "site-2"].map(|site| account(&p, site));
    let state = p.folder.path("site-2.state");
    let recover = |more: &[&str]| {
        veilsum(&[&["rekey", "--key", &*key, "--recovery", &*safe, "--state", &*state][..], more].concat())
    };
    says(&recover(&[]).expect(3), &["the key is there"]);
    fs::remove_file(&key).expect("it is lost");
    // Nothing else takes its place by accident, and a file that is another's or open to others does not.
    let out = p.folder.path("");
    veilsum(&["keygen", "--name", "site-2", "--out", &out, "--force"]).expect(3);
    let other = p.folder.path("site-3.recovery");
    says(&veilsum(&["rekey", "--key", &key, "--recovery", &other, "--state", &state]).expect(3), &["[ROS-8]"]);
    let good = fs::read_to_string(&safe).expect("a recovery file");
    let bad = p.folder.write("bad", &good.replacen("by_old = \"", "by_old = \"0", 1));
    fs::set_permissions(&bad, fs::Permissions::from_mode(0o600)).expect("a mode");
    says(
        &veilsum(&["rekey", "--key", &key, "--recovery", &bad, "--state", &state]).expect(3),
        &["the lost key has not signed it"],
    );
    // Without its ledger it would count from nothing.
    let (head, away) = (format!("{key}.head"), p.folder.path("head.away"));
    fs::rename(&head, &away).expect("the head is lost, too");
    says(&recover(&[]).expect(3), &["having answered everything", "[LED-9]"]);
    fs::rename(&away, &head).expect("the head is back");
    let told = recover(&[]).expect(0);
    says(&told, &["roster change --rekey", "destroy the one that was used"]);
    assert!(!told.text().contains("seed"));
    let taken = fs::read_to_string(&key).expect("a key");
    // Twice is once, but for the recovery file of the new key.
    recover(&[]).expect(0);
    assert_eq!(fs::read_to_string(&key).expect("a key"), taken);
    assert_ne!(fs::read_to_string(&beside).expect("another recovery file"), good);
    let statement = p.folder.path("site-2.test.rekey");
    says(&apply(&p, &[&statement]).expect(0), &["from its recovery file", "one call"]);
    p.plan("roster.toml", "plan.toml", &PLAN);
    // Nobody goes on by itself.
    let why = "site-2 has a new key, from its recovery file, because the old one is lost: call its operator";
    says(&accept(&p, "site-1", &[]).expect(3), &[why, "Blocks, ledgers and budgets go on"]);
    for name in ["site-1", "site-2", "site-3", "counter"] {
        accept_heard(&p, name).expect(0);
    }
    run(&p, false);
    for (site, before) in ["site-1", "site-2"].iter().zip(before) {
        let after = account(&p, site);
        assert!(after.0 > before.0 && after.1 > before.1, "{site}: {before:?} and then {after:?}");
    }
}

impl Standing {
    /// A member's key is lost; it comes back from its recovery file, and everybody hears the new roster's words in one call.
    pub(crate) fn a_key_is_lost(&mut self, name: &str) {
        self.dies(name);
        let (house, key) = (self.folder(name), format!("{name}.key"));
        fs::remove_file(house.join(&key)).expect("it is lost");
        fs::rename(house.join(format!("{name}.recovery")), house.join("safe")).expect("it was moved to a safe place");
        let lost = self.members.iter_mut().find(|member| member.name == name).expect("a member");
        lost.house.run(&["rekey", "--key", &key, "--recovery", "safe"]).expect(0);
        // Before the coordinator has applied it, nobody knows the new key.
        says(&lost.house.run(&["run", "--data", "rows.csv"]).expect(8), &["belongs to no member"]);
        lost.house.typed.pop();
        let statement = house.join(format!("{name}.three-hospitals.rekey")).display().to_string();
        self.hub(&["roster", "change", "--rekey", &statement]).expect(0);
        // It is let in at once, however lately the coordinator looked at its roster.
        self.again(name);
        self.accepted("from its recovery file");
    }
}

/// [ROS-11], [PRO-3]: the same where everybody stands by: but for the statement nobody carries a file. The recovered member fetches the
/// roster that has its new key, and nobody takes that without a call.
#[test]
fn a_recovered_member_fetches_the_roster_that_has_its_key() {
    let mut all = Standing::new(4000);
    all.runs(1);
    all.a_key_is_lost("hospital-b");
    all.runs(2);
}

/// A key and what brings it back are made both or not at all, whichever change of a full disk fails; on one that is broken, where nothing
/// can be taken back, there is no key without its recovery file.
#[test]
fn a_key_and_its_recovery_file_are_made_both_or_not_at_all() {
    faults::prepare();
    for fault in [Fault::Full, Fault::Broken] {
        let mut failed = 0;
        let last = (0..60).find(|after| {
            let folder = Folder::fresh();
            let failing = Failing::new(&folder.0, fault, *after);
            let ended = start_in(&folder.0, &["keygen", "--name", "site"]).wait(LIMIT);
            drop(failing);
            let [key, recovery] = ["site.key", "site.recovery"].map(|file| folder.0.join(file).exists());
            assert!(recovery || !key, "{fault:?} after {after}: {ended:?}");
            assert!(key || !recovery || fault == Fault::Broken, "{fault:?} after {after}: {ended:?}");
            failed += usize::from(!key);
            ended.code == Some(0)
        });
        assert!(last.is_some() && failed > 3, "{fault:?}: {failed} without a key, then {last:?}");
    }
}
