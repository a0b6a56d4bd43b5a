//! Joining by one line (specification, section 18): separate processes from empty folders to a finished run, in which nothing is
//! copied from one folder to another; and everybody who should not get in that way.

use std::{
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use veilsum_node::carrier::{self, Address, Call, Carrier, CarrierError, Credentials, HEADER_LEN, Transport};
use veilsum_node::documents::{Pinned, parse_invitation};
use veilsum_node::door::ledger;
use veilsum_node::egress::Egress;
use veilsum_node::loopback;
use veilsum_proto::{message, roster::Roster, suite::VERSION};
use veilsum_testkit::program::{Ended, Folder, Parties, Running, ending, fingerprint_of, free_port, start_in};

use crate::columns::COLUMNS;
use crate::said::{Told, says, until};

/// For what comes within seconds, on a machine that may have much else to do.
pub(crate) const LIMIT: Duration = Duration::from_secs(400);
pub(crate) const SITES: [&str; 3] = ["hospital-a", "hospital-b", "hospital-c"];

/// An organisation: its own folder, and somebody who types.
pub(crate) struct Organisation {
    pub(crate) folder: Folder,
    pub(crate) typed: Vec<String>,
}

impl Organisation {
    pub(crate) fn new() -> Organisation {
        Organisation { folder: Folder::fresh(), typed: Vec::new() }
    }

    pub(crate) fn start<S: AsRef<str>>(&mut self, args: &[S]) -> Running {
        let args: Vec<&str> = args.iter().map(AsRef::as_ref).collect();
        self.typed.push(format!("veilsum {}", args.join(" ")));
        start_in(&self.folder.0, &args)
    }

    pub(crate) fn run<S: AsRef<str>>(&mut self, args: &[S]) -> Ended {
        self.start(args).wait(LIMIT)
    }

    fn has(&self, file: &str) -> PathBuf {
        let path = self.folder.0.join(file);
        assert!(path.is_file(), "{}", path.display());
        path
    }
}

/// What stands between two words.
pub(crate) fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("no {before:?} in {text}"));
    rest.split_once(after).unwrap_or_else(|| panic!("no {after:?} in {rest}")).0
}

/// The digits on the screen of somebody who joins, as they read them aloud.
pub(crate) fn digits(joining: &Running) -> String {
    joining.until("digits", LIMIT, |log| log.contains("waiting to be let in"));
    between(&joining.heard(), "Your digits are\n\n    ", "\n").to_owned()
}

/// A coordinator that has invited three sites and an intermediary, and its lines.
pub(crate) struct Founded {
    pub(crate) hub: Organisation,
    port: u16,
    pub(crate) lines: Vec<(String, String)>,
    /// Its screen.
    pub(crate) told: String,
}

impl Founded {
    pub(crate) fn new() -> Founded {
        let (mut hub, port) = (Organisation::new(), free_port());
        let listen = format!("127.0.0.1:{port}");
        let create = ["federation", "create", "three-hospitals", "--listen", &listen, "--site"];
        let told = hub.run(&[&create[..], &SITES, &["--intermediary", "counter"]].concat()).expect(0);
        let lines = told.stdout.lines().zip(told.stdout.lines().skip(1)).filter_map(|(name, line)| {
            let (line, address) = line.strip_prefix("veilsum join '")?.split_once('\'')?;
            assert_eq!(address.is_empty(), !name.starts_with("counter"), "{address}");
            Some((name.split_once(' ')?.0.to_owned(), line.to_owned()))
        });
        let lines: Vec<_> = lines.collect();
        assert_eq!(lines.len(), 4, "{}", told.stdout);
        Founded { hub, port, lines, told: told.stdout }
    }

    /// Where it serves.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn line(&self, party: &str) -> String {
        self.lines.iter().find(|(name, _)| name == party).expect("a line").1.clone()
    }

    pub(crate) fn serve(&mut self) -> Running {
        let lobby = self.hub.start(&["run", "--transport", "auto"]);
        lobby.until("an open lobby", LIMIT, |log| log.contains("is open"));
        lobby
    }

    pub(crate) fn list(&self) -> String {
        std::fs::read_to_string(self.hub.has("federation.toml")).expect("a list")
    }
}

/// Two groups of rows in the unit square, other ones at every site.
pub(crate) fn rows(site: usize) -> String {
    many_rows(site, 400)
}

/// The same, so many of them.
pub(crate) fn many_rows(site: usize, rows: i32) -> String {
    let lines = (0..rows).map(|i| {
        let (group, turn) = (f64::from(i % 3), f64::from(i * (7 + site as i32) % rows) / f64::from(rows));
        let x = 0.2 + 0.3 * group + 0.05 * (turn * std::f64::consts::TAU).cos();
        let y = 0.2 + 0.25 * ((group * 2.0) % 3.0) + 0.05 * (turn * 2.0 * std::f64::consts::TAU).sin();
        format!("{x:.6},{y:.6}\n")
    });
    format!("x,y\n{}", lines.collect::<String>())
}

/// The folder of a run, which has the same name at every party.
pub(crate) fn ended_in(party: &Organisation, number: usize) -> String {
    let runs = std::fs::read_dir(party.folder.0.join("results")).expect("results").flatten();
    let mut names = runs.map(|run| run.file_name().to_string_lossy().into_owned());
    let begins = format!("{number:03}-");
    format!("results/{}", names.find(|name| name.starts_with(&begins)).expect("a run"))
}

/// [JOI-3], [JOI-5]: whoever uses a stolen line first waits in the party's place; the party is told, and its digits are others.
#[test]
fn a_line_that_was_used_is_void_and_the_compared_digits_reveal_the_thief() {
    let mut founded = Founded::new();
    let _lobby = founded.serve();
    let (mut thief, mut robbed) = (Organisation::new(), Organisation::new());
    let line = founded.line("hospital-a");
    let stolen = thief.start(&["join", &line]);
    let seen_by_the_thief = digits(&stolen);
    robbed.run(&["join", &line]).expect(8).says(&["used already", "telephone"]);
    // Nobody could read these digits to the coordinator.
    let guess = if seen_by_the_thief == "0000-0000-0000" { "1111-1111-1111" } else { "0000-0000-0000" };
    let told = founded.hub.run(&["federation", "approve", &format!("hospital-a={guess}")]).expect(3);
    told.says(&["[JOI-5]", "somebody stands between you"]);
    assert!(!founded.list().contains("approved"));
    // The operator says no; a new invitation goes to the right one.
    founded.hub.run(&["federation", "remove", "hospital-a"]).expect(0);
    stolen.wait(LIMIT).expect(8).says(&["operator said no"]);
    let told = founded.hub.run(&["federation", "invite", "hospital-a"]).expect(0).stdout;
    let line = between(&told, "veilsum join '", "'").to_owned();
    let joining = robbed.start(&["join", &line]);
    let heard = digits(&joining);
    // Killed and started again: the same digits, so that nobody between gets a second try.
    joining.kill();
    let joining = robbed.start(&["join", &line]);
    assert_eq!(digits(&joining), heard);
    founded.hub.run(&["federation", "approve", &format!("hospital-a={heard}")]).expect(0);
    // One that was approved is a member: the same command takes it out again.
    founded.hub.run(&["federation", "remove", "hospital-a"]).expect(0).says(&["hospital-a is a member no more"]);
}

/// [JOI-4], [JOI-5]: somebody who exchanged the line stands between the two, has a link with each, and cannot make them agree.
#[test]
fn whoever_stands_between_has_other_digits_at_each_end() {
    let (mut founded, mut between) = (Founded::new(), Founded::new());
    let (_lobby, _lure) = (founded.serve(), between.serve());
    let (mut site, mut thief) = (Organisation::new(), Organisation::new());
    let there = thief.start(&["join", &founded.line("hospital-a")]);
    let here = site.start(&["join", &between.line("hospital-a")]);
    let (at_the_site, relayed) = (digits(&here), digits(&there));
    assert_ne!(at_the_site, relayed);
    let told = founded.hub.run(&["federation", "approve", &format!("hospital-a={at_the_site}")]).expect(3);
    told.says(&["somebody stands between you"]);
    // The control: these are the digits that the coordinator's end has.
    founded.hub.run(&["federation", "approve", &format!("hospital-a={relayed}")]).expect(0);
}

/// [JOI-2], [JOI-3].
#[test]
fn expired_damaged_and_misdirected_lines_are_refused_in_words() {
    let mut founded = Founded::new();
    let mut site = Organisation::new();
    let line = founded.line("hospital-a");
    let told = site.run(&["join", &line[..line.len() - 3]]).expect(3);
    told.says(&["damaged", "the same release", &format!("!{}", &line[20..60])]);
    assert!(ending(&site.folder.0, "").is_empty(), "something was made for a bad line");
    site.run(&["join", &founded.line("counter")]).expect(2).says(&["--address"]);
    // Expired, by the coordinator's clock.
    let list = founded.list();
    let expires = between(&list, "expires = ", "\n");
    founded.hub.folder.write("federation.toml", &list.replace(&format!("expires = {expires}"), "expires = 1000"));
    let lobby = founded.serve();
    site.run(&["join", &line]).expect(8).says(&["expired"]);
    assert!(ending(&site.folder.0, "").is_empty(), "something is left of what was refused");
    // Nor is the account of another federation gone that this one was to share ([LED-9]).
    let shared = Folder::fresh();
    ledger::begin(&shared.0, &[5; 32]).expect("an account");
    site.folder.write("site.toml", &format!("state = {:?}\n", shared.0));
    site.run(&["join", &line]).expect(8);
    assert!(shared.0.join(ledger::HEAD).is_file(), "the account of another federation");
    site.run(&["join", &line, "--new-account"]).expect(2).says(&["leave --new-account out"]);
    std::fs::remove_file(site.folder.0.join("site.toml")).expect("the policy");
    // Who agreed to a federation is not led into another coordinator's by its name.
    let roster = Roster { name: "three-hospitals".into(), ..loopback::roster_of(&loopback::fresh(1), &["hospital-a"]) };
    let key = site.folder.0.join("hospital-a.key");
    Pinned::change(&key, |pinned| pinned.roster = Some(roster)).expect("a file");
    site.run(&["join", &line]).expect(3).says(&["is of another coordinator"]);
    assert!(!key.exists());
    std::fs::remove_file(Pinned::beside(&key)).expect("what was agreed to");
    let expired = "hospital-a (site) invited, and the invitation has expired";
    founded.hub.run(&["federation", "show"]).expect(0).says(&[expired]);
    drop(lobby);
    // Another coordinator at the same address: it holds another key, and is sent nothing.
    let mut other = Founded::new();
    let impostor = other.hub.start(&["run", "--listen", &founded.address()]);
    impostor.until("an open lobby", LIMIT, |log| log.contains("is open"));
    site.run(&["join", &line]).expect(5).says(&["[JOI-2]", "do not go on"]);
    assert!(!other.list().contains("knocked"));
}

/// [JOI-1], [JOI-6], [ROS-8]: the whole way from empty folders, with the fewest commands and one call: 3 for the coordinator, 2 for each
/// other party, of which one types the words that a terminal asks for. Nobody carries a file.
#[test]
fn from_nothing_to_a_result_by_a_handful_of_commands_and_one_call() {
    let (mut hub, port, counters) = (Organisation::new(), free_port(), free_port());
    let (listen, counter) = (format!("127.0.0.1:{port}"), format!("counter=127.0.0.1:{counters}"));
    hub.folder.write("mine.toml", COLUMNS);
    let create = ["federation", "create", "three-hospitals", "--run", "--listen", &listen, "--columns", "mine.toml"];
    let lobby = hub.start(&[&create[..], &["--intermediary", &counter, "--site"], &SITES].concat());
    lobby.until("an open lobby", LIMIT, |log| log.contains("is open"));
    // The other stream is read by another thread.
    until(LIMIT, "lines", || lobby.printed().matches("veilsum join").count() >= 4);
    let (told, heard) = (lobby.printed(), lobby.heard());
    says(&heard, &["copy coordinator.key", "port 443 alone"]);
    says(&told, &["!next: veilsum run"]);
    // Every line runs as it was printed.
    let lines: Vec<Vec<String>> = told
        .lines()
        .filter(|line| line.starts_with("veilsum join"))
        .map(|line| line.split(' ').skip(1).map(|word| word.trim_matches('\'').to_owned()).collect())
        .collect();
    assert_eq!(lines.len(), 4, "{told}");
    // Whoever joins is handed the coordinator's columns, and keeps those that are there.
    let own_columns = COLUMNS.replacen("upper = 1", "upper = 2", 1);
    let mut parties: Vec<(&str, Organisation, Running)> = Vec::new();
    for (at, (name, line)) in SITES.into_iter().chain(["counter"]).zip(&lines).enumerate() {
        let (mut house, is_site) = (Organisation::new(), name != "counter");
        house.folder.write("rows.csv", &many_rows(at, 400));
        if at == 1 {
            house.folder.write("columns.toml", &own_columns);
        }
        let own: &[&str] = if is_site { &["--data", "rows.csv"] } else { &[] };
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        let joining = house.start(&[&line[..], &["--run"], own].concat());
        parties.push((name, house, joining));
    }
    // The call: everybody reads digits, the coordinator types them and reads the words, and everybody types those.
    let heard: Vec<String> = parties.iter().map(|(name, _, joining)| format!("{name}={}", digits(joining))).collect();
    let approve: Vec<&str> = ["federation", "approve"].into_iter().chain(heard.iter().map(String::as_str)).collect();
    let told = hub.run(&approve).expect(0).stdout;
    let words = between(&told, "fingerprint  ", "\nRead these words").to_owned();
    assert_eq!(words.split_whitespace().count(), 15, "{words}");
    for (name, house, joining) in &mut parties {
        joining.until("a question for the words", LIMIT, |log| log.contains("[ROS-8]"));
        let key = house.has(&format!("{name}.key"));
        assert_eq!(key.metadata().expect("a key").permissions().mode() & 0o777, 0o600);
        let pinned = Pinned::load(&key).expect("what it joined with");
        assert!(pinned.roster.is_none(), "agreed to without a call");
        house.run(&["agree", "--key", &format!("{name}.key"), "--fingerprint", &words]).expect(0);
        joining.until("standing by", LIMIT, |log| log.contains("columns.toml is here, with 2 columns"));
        joining.until("standing by", LIMIT, |log| log.contains("standing by"));
        let columns = std::fs::read_to_string(house.has("columns.toml")).expect("handed out");
        assert_eq!(columns, if *name == SITES[1] { &own_columns } else { COLUMNS });
    }
    // Nobody types a column.
    hub.run(&["plan", "new", "--k", "3", "--rho=0.4", "--expected-rows=6000", "--start"]).expect(0);
    lobby.until_result(1, LIMIT);
    assert_eq!(hub.typed.len(), 3, "{:#?}", hub.typed);
    assert!(parties.iter().all(|(_, house, _)| house.typed.len() == 2));
}

/// What is wrong with rows, a folder or a port is said before anybody is called, and leaves nothing behind.
#[test]
fn what_is_wrong_at_home_is_said_before_the_call() {
    let founded = Founded::new();
    let line = founded.line("hospital-a");
    let mut site = Organisation::new();
    let join = ["join", &line, "--run", "--data", "rows.csv"];
    site.run(&join).expect(3).says(&["rows.csv", "check the path"]);
    site.folder.write("rows.csv", "Alter;y, z\n1;2\n");
    site.run(&join).expect(3).says(&["several ways", "delimiter = "]);
    assert!(!site.folder.0.join("hospital-a.key").exists(), "no key before the rows can be read");
    site.folder.write("rows.csv", &rows(0));
    site.folder.write("other.key", "");
    site.run(&join).expect(3).says(&["another party has its key in this folder"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = taken.local_addr().expect("an address").to_string();
    let mut hub = Organisation::new();
    hub.run(&["federation", "create", "late", "--run", "--listen", &at]).expect(4).says(&["nothing was founded"]);
    hub.run(&["federation", "create", "late", "--listen", "0.0.0.0:4433"]).expect(2).says(&["nobody finds"]);
    assert!(ending(&hub.folder.0, "").is_empty());
}

/// Nobody reads a list of more than five by accident: who was invited, and who is on a roster that is agreed to. All of it is to be had.
#[test]
fn lists_on_the_screen_are_short_unless_they_are_asked_for() {
    let (mut hub, sites) = (Organisation::new(), (1..=12).map(|i| format!("clinic-{i:02}")).collect::<Vec<_>>());
    let create = ["federation", "create", "twelve", "--listen", "127.0.0.1:1", "--intermediary", "counter", "--site"];
    hub.run(&[&create[..], &sites.iter().map(String::as_str).collect::<Vec<_>>()].concat()).expect(0);
    let named = |text: &str| sites.iter().filter(|site| text.contains(site.as_str())).count();
    let told = hub.run(&["federation", "show"]).expect(0).stdout;
    assert!(named(&told) == 5 && told.contains("and 8 more") && told.contains("show --all"), "{told}");
    let told = hub.run(&["federation", "show", "--all"]).expect(0).stdout;
    assert!(named(&told) == 12 && told.lines().count() == 14, "{told}");
    let p = Parties::new(&[40; 12], &[]);
    let (roster, key) = (p.folder.path("roster.toml"), p.folder.path("site-1.key"));
    let accept = ["agree", &roster, "--key", &key, "--fingerprint", &fingerprint_of(&roster)];
    hub.run(&accept).expect(0).says(&["site-5 and 7 more", "!site-12"]);
    assert!(hub.run(&["verify", &roster]).expect(0).stdout.contains("site-12"));
}

fn small(_: &[u8; HEADER_LEN]) -> Result<usize, String> {
    Ok(1024)
}

/// [JOI-7]: strangers without a token find a door that shuts after a while, and who knocked before is not kept out by them.
#[test]
fn a_flood_of_strangers_does_not_keep_out_who_knocked_before() {
    let mut founded = Founded::new();
    let lobby = founded.serve();
    let mut site = Organisation::new();
    let line = founded.line("hospital-a");
    let joining = site.start(&["join", &line]);
    let heard = digits(&joining);
    joining.kill();
    let invitation = parse_invitation(&line).expect("a line");
    let pinned = invitation.coordinator.0;
    // A token is nowhere but in its line: what the coordinator keeps does not hold it.
    let token: String = invitation.to_bytes()[32..48].iter().map(|b| format!("{b:02x}")).collect();
    assert!(!founded.list().contains(&token));
    let to: Address = founded.address().parse().expect("an address");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let network: Arc<dyn Carrier> = carrier::choose(Transport::Quic).expect("a carrier");
    let (mut inside, mut answered) = (0, 0);
    let joining = runtime.block_on(async {
        let begun = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for seed in 0..160u8 {
            let (network, to) = (network.clone(), to.clone());
            tasks.spawn(async move {
                let credentials = Credentials::from_seed(&[seed; 32]).expect("a key");
                let (credentials, limit) = (&credentials, Duration::from_secs(8));
                let link = network.dial(Call { to: &to, expected: &pinned, credentials, check: small, limit }).await?;
                let (mut sender, mut receiver) = link.split();
                // No token, and no frame of the lobby: one of a run.
                let frame = [VERSION as u8, 0, message::Kind::MaskedInput as u8, 0, 2, 0, 0, 0, 0, 0];
                sender.send(&Egress::foreign(&frame)).await?;
                receiver.recv().await
            });
        }
        let joining = site.start(&["join", &line]);
        assert_eq!(digits(&joining), heard);
        assert!(begun.elapsed() < Duration::from_secs(60));
        while let Some(ended) = tasks.join_next().await {
            match ended.expect("no panic") {
                Ok(Some(_)) => answered += 1,
                Err(CarrierError::Closed(reason)) if reason.contains("does not come first") => inside += 1,
                _ => {}
            }
        }
        // 64 at once, and 8 a second.
        let most = 65.0 + 8.0 * begun.elapsed().as_secs_f64();
        assert!((1.0..=most).contains(&f64::from(inside)), "{inside} of 160 strangers at once came in, at most {most}");
        joining
    });
    assert_eq!(answered, 0, "the lobby has nothing to say to a frame of a run");
    founded.hub.run(&["federation", "approve", &format!("hospital-a={heard}")]).expect(0);
    assert!(!lobby.heard().contains("panicked"));
    drop(joining);
}
