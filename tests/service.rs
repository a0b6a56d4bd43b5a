//! The coordinator's service and the members that stand by (specification, section 19): separate processes over many plans, in which
//! nobody starts anything anew.

use std::{io::Write, process::Command, thread, time::Duration};

use serde_json::Value;
use veilsum_testkit::program::{Ended, Running, end_well, ending, fingerprint_of, free_port};

use crate::backups::{LONG, SHORT};
use crate::joining::{Founded, LIMIT, Organisation, SITES, digits, ended_in, many_rows};
use crate::said::{Told, says, until};

/// With noise: it needs no agreement, and leaves room for as many rows as a site may have.
pub(crate) const PLAN: [&str; 10] = [
    "plan",
    "new",
    "--k",
    "3",
    "--column",
    "x=0:1",
    "y=0:1",
    "--rho=0.05",
    "--expected-rows=6000",
    "--set=max_rows=1048576",
];

/// A federation of running services.
pub(crate) struct Standing {
    pub(crate) founded: Founded,
    pub(crate) serve: Option<Running>,
    pub(crate) members: Vec<Member>,
}

/// A member in its own organisation, and the process that stands by.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) house: Organisation,
    pub(crate) address: Option<String>,
    pub(crate) process: Option<Running>,
}

impl Member {
    fn arguments(&self) -> Vec<&'static str> {
        if self.address.is_none() { vec!["run", "--data", "rows.csv"] } else { vec!["run"] }
    }

    pub(crate) fn start(&mut self, more: &[&str]) {
        let process = self.house.start(&[&self.arguments()[..], more].concat());
        process.until("standing by", LIMIT, |log| log.contains("standing by"));
        self.process = Some(process);
    }

    /// Its operator agrees to the roster that is there, with the words that were read in the call.
    pub(crate) fn agrees(&mut self, words: &str) {
        self.house.run(&["agree", "--fingerprint", words]).expect(0);
    }

    pub(crate) fn running(&self) -> &Running {
        self.process.as_ref().expect("it runs")
    }
}

impl Standing {
    /// The process of the coordinator, or of this member.
    pub(crate) fn process(&mut self, name: &str) -> &mut Option<Running> {
        let member = self.members.iter_mut().find(|member| member.name == name);
        member.map_or(&mut self.serve, |member| &mut member.process)
    }

    pub(crate) fn running(&self, name: &str) -> &Running {
        let member = self.members.iter().find(|member| member.name == name);
        member.map_or(&self.serve, |member| &member.process).as_ref().expect("it runs")
    }

    /// Three sites with so many rows each and an intermediary, let in, who stand by.
    pub(crate) fn new(rows: i32) -> Standing {
        let mut founded = Founded::new();
        let serve = founded.serve();
        let lines = founded.lines.clone();
        let mut members: Vec<Member> = Vec::new();
        for (at, (name, _)) in lines.iter().enumerate() {
            let house = Organisation::new();
            house.folder.write("rows.csv", &many_rows(at, rows));
            let address = (!SITES.contains(&name.as_str())).then(|| format!("127.0.0.1:{}", free_port()));
            members.push(Member { name: name.clone(), house, address, process: None });
        }
        let mut standing = Standing { founded, serve: Some(serve), members };
        let mut joining: Vec<Running> = (0..4).map(|at| standing.join(at, &lines[at].1)).collect();
        let heard: Vec<String> =
            lines.iter().zip(&joining).map(|((name, _), joining)| format!("{name}={}", digits(joining))).collect();
        let approve = ["federation", "approve"].into_iter().chain(heard.iter().map(String::as_str));
        // Gone while it is let in: what it missed waits for it.
        joining.remove(0).kill();
        standing.hub(&approve.collect::<Vec<_>>()).expect(0).says(&["3 sites", "tell its operator"]);
        joining.push(standing.join(0, &lines[0].1));
        standing.hub(&PLAN).expect(0);
        end_well(joining);
        let heard = standing.fingerprint();
        for member in &mut standing.members {
            member.agrees(&heard);
            member.start(&[]);
        }
        standing
    }

    pub(crate) fn join(&mut self, at: usize, line: &str) -> Running {
        let member = &mut self.members[at];
        let address = member.address.clone().unwrap_or_default();
        let own = if address.is_empty() { Vec::new() } else { vec!["--address", address.as_str()] };
        member.house.start(&[&["join", line][..], &own].concat())
    }

    pub(crate) fn hub(&mut self, args: &[&str]) -> Ended {
        self.founded.hub.run(args)
    }

    /// The roster's words, which another member reads to its operator.
    pub(crate) fn fingerprint(&self) -> String {
        fingerprint_of(&self.founded.hub.folder.path("roster.toml"))
    }

    pub(crate) fn serves(&self) -> &Running {
        self.running("coordinator")
    }

    pub(crate) fn until(&self, what: &str) {
        self.serves().until(what, LIMIT, |log| log.contains(what));
    }

    /// Everybody has the same centres.
    pub(crate) fn agrees(&self, run: usize, sites: &[&str]) -> Value {
        let result = self.founded.hub.folder.json(&format!("{}/result.json", ended_in(&self.founded.hub, run)));
        for member in self.members.iter().filter(|member| sites.contains(&member.name.as_str())) {
            // The last word is on its way to the sites when the coordinator has written.
            let folder = format!("{}/model.json", ended_in(&member.house, run));
            until(LIMIT, &member.name, || member.house.folder.0.join(&folder).exists());
            let model = member.house.folder.json(&folder);
            // A coordinate that drowned in noise is a null of the result.
            let flat = |of: &Value| -> Vec<Option<f64>> {
                let rows = of["centres"].as_array().expect("centres").iter();
                rows.flat_map(|row| row.as_array().expect("a centre")).map(Value::as_f64).collect()
            };
            let pairs: Vec<_> = flat(&model).into_iter().zip(flat(&result)).collect();
            assert!(pairs.iter().all(|(own, told)| told.is_none() || own == told), "{}: {pairs:?}", member.name);
        }
        result
    }
}

/// Whether anything was written down as given away.
pub(crate) fn has_answered(house: &Organisation, name: &str) -> bool {
    let ledger = house.folder.0.join(format!("{name}.key.state/ledger.jsonl"));
    std::fs::read_to_string(ledger).is_ok_and(|text| text.contains("masked"))
}

/// [PRO-1], [PRO-2], [PRO-4]: who would not answer, and who is not there, is known by name before a key is exchanged; nothing is spent.
#[test]
fn a_plan_is_answered_before_anything_is_asked() {
    let mut all = Standing::new(400);
    let b = &mut all.members[1];
    b.house.folder.write("site.toml", "methods = [\"kmeans\"]\n");
    all.until("hospital-b: refuses: methods, columns");
    // Between two runs, before the first one as well, the way to both aggregators is tried to its end.
    let told =
        all.members[0].house.run(&["check", "--key", "hospital-a.key", "--data", "rows.csv"]).expect(0).unfolded();
    for party in ["coordinator", "counter"] {
        for passes in ["QUIC: a handshake", "TCP: a handshake", "let in: it knows this key, and no run is going on"] {
            assert!(told.contains(&format!("PASS {party}: {passes}")), "{party}: {passes}: {told}");
        }
    }
    let said =
        ["hospital-b           refuses: methods, columns", "hospital-a           would answer", "can be computed"];
    all.hub(&["plan", "propose", "--start"]).expect(7).says(&said).says(&["not be answered by hospital-b", "!400"]);
    all.running("hospital-b").until("the reason", LIMIT, |log| log.contains("is not on this site's list (methods)"));
    // Rows that do not fit: the coordinator is told that, and not what they are.
    all.members[1].house.folder.write("site.toml", "max_rounds = 1000\n");
    all.members[2].house.folder.write("rows.csv", "x,z\n0.5,77.5\n");
    all.until("hospital-c: is not ready");
    let told = all.hub(&["plan", "propose"]).expect(7).says(&["hospital-b           would answer"]);
    assert!(!told.text().contains("77.5") && !all.serves().heard().contains("77.5"), "{told:?}");
    all.running("hospital-c").until("the reason", LIMIT, |log| log.contains("rows.csv"));
    all.members[2].house.folder.write("rows.csv", &many_rows(2, 400));
    // Not there.
    all.dies("counter");
    all.until("counter does not stand by");
    all.hub(&["plan", "propose", "--start", "--wait", "1"]).expect(4).says(&["counter              is not there"]);
    // A site that looks at the plan meanwhile says so, on both screens, and tries again by itself.
    all.members[0].house.folder.write("site.toml", "max_rounds = 999\n");
    all.until("hospital-a: cannot reach the intermediary");
    all.running("hospital-a").until("the reason", LIMIT, |log| log.contains("counter cannot be reached from here: "));
    // Too few are left for a total of this plan, and nobody of that name is there.
    all.hub(&["plan", "propose", "--start", "--without", "hospital-a"]).expect(3).says(&["2 sites would be left"]);
    all.hub(&["plan", "propose", "--without", "hospital-x"]).expect(2);
    assert!(all.members.iter().all(|member| !has_answered(&member.house, &member.name)), "something was given away");
    // The control: with everybody there it runs.
    all.members[3].start(&[]);
    let again = |log: &str| log.rfind("hospital-a: would answer") > log.rfind("hospital-a: cannot reach");
    all.serves().until("the way to the intermediary", LIMIT, again);
    all.hub(&["plan", "propose", "--start"]).expect(0);
    all.until("run 1 has ended");
    all.agrees(1, &SITES);
    // The links of the run are gone with it, and nobody is missing.
    all.hub(&["status", "--key", "coordinator.key"]).expect(0).says(&["!missing", "!trouble"]);
    let given = |member: &Member| has_answered(&member.house, &member.name);
    assert_eq!(all.members.iter().filter(|member| given(member)).count(), 3);
}

/// [PRO-2]: who reads its rows is not said to be away, and answers once it has read them. What a member is told of itself before its first
/// run: how it stands, what is wrong with its policy and by which line, and what others can read of its files.
#[test]
fn a_member_is_told_of_as_it_is() {
    let mut all = Standing::new(400);
    let b = &mut all.members[1];
    let told = b.house.run(&["status", "--key", "hospital-b.key"]).expect(0).stdout;
    assert!(told.starts_with("hospital-b, site\nstanding by for "), "{told}");
    b.house.run(&["ledger", "show", "--key", "hospital-b.key"]).expect(0);
    let process = b.process.take().expect("it runs");
    process.signal("-HUP");
    process.wait(LIMIT).expect(0);
    b.house.folder.write("site.toml", "rho = 1.0\nmethods = [\"fcmm\"]\n");
    let meant = ["site.toml, line 2: unknown method `fcmm`", "do you mean \"fcm\"?"];
    b.house.run(&["run", "--data", "rows.csv"]).expect(3).says(&meant);
    b.house.folder.write("site.toml", "");
    let told = b.house.run(&["run", "--data", "rows.csv", "--loss-wait", "5"]).expect(2);
    assert!(told.stderr.contains("a site, which waits for no other site"), "{}", told.stderr);
    let check = ["check", "--offline", "--key", "hospital-b.key", "--data", "rows.csv"];
    assert!(b.house.run(&check).unfolded().contains("PASS modes"));
    let open = b.house.folder.0.join("hospital-b.key.state");
    std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its own folder");
    let told = b.house.run(&check).unfolded();
    says(&told, &["WARN modes: open to other users", "chmod -R go= hospital-b.key.state"]);
    std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("its own folder");
    b.start(&[]);
    // Rows that take their time.
    let a = &mut all.members[0];
    a.process.take().expect("it runs").kill();
    let pipe = a.house.folder.0.join("slow.csv");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    a.house.folder.write("site.toml", "[rows]\nsource = \"slow.csv\"\n");
    thread::spawn(move || {
        let mut pipe = std::fs::OpenOptions::new().write(true).open(pipe).expect("a reader");
        pipe.write_all(b"x,y\n").expect("a reader");
        thread::sleep(Duration::from_secs(12));
    });
    let slow = a.house.start(&["run"]);
    slow.until("standing by", LIMIT, |log| log.contains("standing by"));
    a.process = Some(slow);
    let told = all.hub(&["plan", "propose", "--wait", "5"]).expect(4);
    assert!(told.stdout.contains("hospital-a           is reading its rows"), "{told:?}");
    assert!(told.stderr.contains("still reading their rows: hospital-a"), "{}", told.stderr);
    let said = |log: &str| log.matches("hospital-a: would answer").count();
    let before = said(&all.serves().heard());
    all.members[0].house.folder.write("site.toml", "[rows]\nsource = \"rows.csv\"\n");
    all.serves().until("an answer", LIMIT, |log| said(log) > before);
    all.hub(&["plan", "propose"]).expect(0).says(&["hospital-a           would answer"]);
}

/// [PRO-4], [APP-1]: whoever is killed is started again with the same words, and the run goes on; two processes with one key do not fight.
#[test]
fn a_run_goes_on_whoever_is_started_again() {
    let mut all = Standing::new(4000);
    all.begin(1, &LONG);
    all.until("keys exchanged");
    all.dies("coordinator");
    all.hub(&["plan", "propose", "--start", "--wait", "0"]).expect(4).says(&["in another window: veilsum run"]);
    all.again("coordinator");
    all.until("run 1 goes on");
    all.dies("hospital-a");
    all.hub(&["run", "--listen", "127.0.0.1:0"]).expect(3).says(&["another process serves"]);
    all.hub(&["plan", "propose", "--start"]).expect(3).says(&["run 1 has not ended"]);
    all.again("hospital-a");
    all.running("hospital-a").until("the run again", LIMIT, |log| log.contains("run 1 begins"));
    all.serves().until_result(1, LIMIT);
    all.serves().until("hospital-a again", LIMIT, |log| log.matches("hospital-a stands by").count() >= 2);
    let second = all.members[0].house.run(&["run", "--data", "rows.csv"]);
    assert!(second.stderr.contains("another process") && second.code == Some(8), "{second:?}");
    let result = all.agrees(1, &SITES);
    assert_eq!(result["ended_early"], Value::Null);
    // In good order: everybody can be told to stop, and says what to do.
    all.stops("coordinator").says(&["start it again"]);
    all.stops("hospital-a");
}

/// [APP-8]: the operator ends a run for everybody with a command of its own; what is out so far is everybody's result.
#[test]
fn a_run_is_ended_for_everybody_by_a_command() {
    let mut all = Standing::new(2000);
    all.hub(&["plan", "stop"]).expect(3);
    all.begin(1, &["--set=min_total_rows=5000", "--set=max_rounds=100", "--set=init=uniform", "--set=dp_useless=true"]);
    all.until("keys exchanged");
    let counted = all.founded.hub.folder.0.join("coordinator.key.state");
    // Of three sites none may be missing: the run waits.
    all.members[2].process.take().expect("it runs").kill();
    // One that cannot take its part up again stands by for the next run, and the operator of this one is told.
    let state = all.members[2].house.folder.0.join(format!("{}.key.state", all.members[2].name));
    let journals = ending(state, ".journal").into_iter();
    let whole: Vec<_> = journals.map(|path| (path.clone(), std::fs::read(path).expect("a journal"))).collect();
    assert!(!whole.is_empty(), "no journal");
    for (path, _) in &whole {
        std::fs::write(path, "this is no journal of anybody").expect("a damaged journal");
    }
    all.members[2].start(&[]);
    all.until(&format!("{} takes no part in run 1 any more", all.members[2].name));
    all.members[2].process.take().expect("it runs").kill();
    whole.into_iter().for_each(|(path, bytes)| std::fs::write(path, bytes).expect("its journal again"));
    all.hub(&["plan", "stop"]).expect(0);
    all.until("operator ended the run");
    all.until("run 1 has ended");
    for member in all.members.iter().filter(|member| member.process.is_some()) {
        member.running().until("the end", LIMIT, |log| log.contains("operator ended the run"));
    }
    assert!(!counted.join("end").exists());
    // The next run is another one.
    all.members[2].start(&[]);
    all.begin(2, &SHORT);
    all.until("run 2 has ended: ");
}
