//! The program from outside: files, processes, and the parties of a federation of separate processes.

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU16, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use veilsum_cluster::Rows;
use veilsum_node::{
    documents::{Pinned, load_identity, load_roster, write_key, write_roster},
    door::ledger,
    files::Existing,
    random::system_rng,
};
use veilsum_proto::{
    identity::Identity,
    roster::{Member, Roster},
};

use crate::in_process::made_up;

/// A folder of its own, removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn fresh() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        loop {
            let name = format!("veilsum-it-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
            let path = std::env::temp_dir().join(name);
            match std::fs::create_dir(&path) {
                Ok(()) => return Folder(path),
                // Of an earlier process with the same number, which was killed.
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => panic!("a new folder: {e}"),
            }
        }
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a UTF-8 path").to_owned()
    }

    pub fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.join(name), text).expect("a written file");
        self.path(name)
    }

    pub fn json(&self, name: &str) -> serde_json::Value {
        let text = std::fs::read(self.0.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        serde_json::from_slice(&text).expect("JSON")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The files in a folder whose names end so, in order.
///
/// # Panics
/// Where there is no such folder.
pub fn ending(folder: impl AsRef<Path>, end: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let mut found: Vec<PathBuf> = files.filter(|path| path.to_string_lossy().ends_with(end)).collect();
    found.sort();
    found
}

/// A port that is free now for UDP and TCP, below the range from which the system serves those who ask for any.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed) as u32;
        let port = 20_000 + (std::process::id().wrapping_mul(37).wrapping_add(number) % 12_000) as u16;
        let free = std::net::UdpSocket::bind(("127.0.0.1", port)).is_ok();
        if free && std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// How a process ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// What the process told a person, whole.
    pub fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// The same without the breaks of lines that fold.
    pub fn unfolded(&self) -> String {
        self.text().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Ended with this code and, where that is a failure, with an error and a next step and without a panic.
    pub fn expect(self, code: i32) -> Ended {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert!(!self.text().contains("panicked at"), "{self:#?}");
        // Wrong arguments are reported by the parser in its own form.
        if code != 0 && !self.stdout.starts_with('{') && !self.stderr.contains("For more information") {
            let told = |what: &str| self.stderr.lines().any(|l| l.starts_with(what) && l.len() > what.len() + 3);
            assert!(told("error: ") && told("next: "), "{self:#?}");
        }
        self
    }
}

#[derive(Default)]
struct Heard {
    text: Mutex<String>,
    more: Condvar,
}

impl Heard {
    fn so_far(&self) -> String {
        self.text.lock().expect("text").clone()
    }
}

/// Reads a stream line by line, to its end, but for so many lines that a test prints of itself.
fn listen(from: impl Read + Send + 'static, mut own: u32) -> (Arc<Heard>, std::thread::JoinHandle<()>) {
    let heard = Arc::new(Heard::default());
    let said = heard.clone();
    let listener = std::thread::spawn(move || {
        let (mut from, mut line) = (BufReader::new(from), Vec::new());
        while from.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            if own == 0 {
                said.text.lock().expect("text").push_str(&String::from_utf8_lossy(&line));
            }
            own = own.saturating_sub(1);
            said.more.notify_all();
            line.clear();
        }
    });
    (heard, listener)
}

/// A running process whose standard error can be watched; killed when dropped.
pub struct Running {
    child: Child,
    name: String,
    stderr: Arc<Heard>,
    stdout: Arc<Heard>,
    listeners: Vec<std::thread::JoinHandle<()>>,
}

/// The program, beside the tests that Cargo built with it.
///
/// # Panics
/// Where it is not there: a test of another package than the program's.
pub fn binary() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let folder = test.ancestors().nth(2).expect("the folder of builds");
    let program = folder.join(format!("veilsum{}", std::env::consts::EXE_SUFFIX));
    assert!(program.is_file(), "{} was not built", program.display());
    program
}

pub fn start<S: AsRef<OsStr>>(args: &[S]) -> Running {
    launch(Command::new(binary()), args)
}

/// The program behind these words of a shell. With a limit on its files it sees an error and no signal.
fn shell(words: &str) -> Command {
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("trap '' XFSZ; {words} exec \"$0\" \"$@\"")]).arg(binary());
    shell
}

/// As [`start`], typed in this folder, on a disk that may become full ([`Running::disk`]).
pub fn start_in<S: AsRef<OsStr>>(folder: &Path, args: &[S]) -> Running {
    let mut shell = shell("");
    shell.current_dir(folder).envs(crate::faults::environment(folder));
    launch(shell, args)
}

/// A process none of whose files may grow beyond `bytes`, as on a disk that is full.
pub fn start_limited<S: AsRef<OsStr>>(args: &[S], bytes: u64) -> Running {
    launch(shell(&format!("ulimit -f {};", bytes / 1024)), args)
}

/// The words of a party in one run of one plan, which [`one_run`] takes from here.
pub const ONE_RUN: &str = "VEILSUM_ONE_RUN";

/// A process of a test is its party in one run of one plan, where one was started as that ([`launch`]): `run` is given the words of `veilsum
/// run`, the plan among them, and says the exit code.
pub fn one_run(run: impl FnOnce(Vec<std::ffi::OsString>) -> u8) {
    if let Ok(words) = std::env::var(ONE_RUN) {
        let words = words.split('\n').map(std::ffi::OsString::from).collect();
        std::process::exit(run(words).into());
    }
}

/// Starts this command with these arguments besides. A run of one plan, which the program knows from its federation alone, is a process
/// of the test that is under way.
pub fn launch<S: AsRef<OsStr>>(mut command: Command, args: &[S]) -> Running {
    let words: Vec<&str> = args.iter().filter_map(|word| word.as_ref().to_str()).collect();
    let one = words.first() == Some(&"run") && words.contains(&"--plan");
    if one {
        // In the place of the program, wherever in the command it stands.
        let (program, own) = (binary(), std::env::current_exe().expect("a path"));
        let put = |word: &OsStr| if word == program { own.clone().into() } else { word.to_owned() };
        let mut other = Command::new(put(command.get_program()));
        other.args(command.get_args().map(put)).args(["one_run::one_run", "--exact", "--nocapture"]);
        other.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
        if let Some(folder) = command.get_current_dir() {
            other.current_dir(folder);
        }
        other.env("RUST_TEST_THREADS", "2").env(ONE_RUN, words[1..].join("\n"));
        command = other;
    } else {
        command.args(args);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let (stdout, out) = listen(child.stdout.take().expect("a pipe"), if one { 2 } else { 0 });
    let (stderr, err) = listen(child.stderr.take().expect("a pipe"), 0);
    let name = args.iter().map(|a| a.as_ref().to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
    Running { child, name, stderr, stdout, listeners: vec![out, err] }
}

/// These processes end well, within three minutes.
pub fn end_well(running: impl IntoIterator<Item = Running>) {
    running.into_iter().for_each(|process| drop(process.wait(Duration::from_secs(180)).expect(0)));
}

/// Whether a coordinator's words say that this run has a result. What its first sentence says of it depends on noise that no test seeds.
pub fn has_a_result(log: &str, run: usize) -> bool {
    let begins = format!("run {run} has ended: ");
    log.lines().any(|line| line.starts_with(&begins) && line.contains(" by the method "))
}

/// Runs the program to its end, which must come within two minutes.
pub fn veilsum<S: AsRef<OsStr>>(args: &[S]) -> Ended {
    start(args).wait(Duration::from_secs(120))
}

impl Running {
    /// Waits until `enough` of what stands on standard error so far.
    pub fn until(&self, what: &str, limit: Duration, enough: impl Fn(&str) -> bool) {
        let end = Instant::now() + limit;
        let mut text = self.stderr.text.lock().expect("text");
        while !enough(&text) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{}: no {what} within {limit:?}:\n{text}", self.name);
            text = self.stderr.more.wait_timeout(text, left).expect("text").0;
        }
    }

    /// Waits until this run has a result, whatever its noise makes of it.
    pub fn until_result(&self, run: usize, limit: Duration) {
        self.until("a result", limit, |log| has_a_result(log, run));
    }

    /// What stands on standard error so far.
    pub fn heard(&self) -> String {
        self.stderr.so_far()
    }

    /// What stands on standard output so far.
    pub fn printed(&self) -> String {
        self.stdout.so_far()
    }

    /// Without a word of farewell (SIGKILL), and the process is gone when this returns.
    pub fn kill(mut self) -> Ended {
        self.child.kill().expect("a killed process");
        self.wait(Duration::from_secs(10))
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it this signal, such as `-TERM`.
    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.id().to_string()]).status();
        assert!(sent.expect("kill").success(), "{signal}");
    }

    /// From now on no file of a process of [`start_in`] may grow, as on a disk that is full; or again as it was.
    pub fn disk(&self, is_full: bool) {
        let limit = if is_full { "--fsize=0:unlimited" } else { "--fsize=unlimited:unlimited" };
        let set = Command::new("prlimit").args(["--pid", &self.id().to_string(), limit]).status();
        assert!(set.expect("prlimit").success(), "{limit}");
    }

    pub fn wait(self, limit: Duration) -> Ended {
        self.ends_within(limit).unwrap_or_else(|running| panic!("{running}"))
    }

    /// How it ended; what it has said, where it still runs after that time, and is then killed.
    pub fn ends_within(mut self, limit: Duration) -> Result<Ended, String> {
        let end = Instant::now() + limit;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a status") {
                break status;
            }
            if Instant::now() >= end {
                return Err(format!("{} still runs after {limit:?}:\n{}", self.name, self.heard()));
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        self.listeners.drain(..).for_each(|listener| drop(listener.join()));
        Ok(Ended { code: status.code(), stdout: self.printed(), stderr: self.heard() })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `verify` prints of a roster for people to compare.
pub fn fingerprint_of(roster: &str) -> String {
    let told = veilsum(&["verify", roster, "--json"]).expect(0).stdout;
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    told["fingerprint"].as_str().expect("a fingerprint").to_owned()
}

/// What stands behind an option.
fn value_of<'a>(args: &'a [String], option: &str) -> Option<&'a str> {
    args.iter().position(|arg| arg == option).map(|at| args[at + 1].as_str())
}

/// What a site's operator does before a run: agrees to the sites of its roster, and to a plan that needs it.
pub fn agree(client: &[String]) {
    let of = |option: &str| value_of(client, option);
    let (Some(roster), Some(plan)) = (of("--roster"), of("--plan")) else { return };
    let shown = veilsum(&["plan", "check", "--roster", roster, "--plan", plan, "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap_or_default();
    let Some(words) = shown["fingerprint"].as_str() else { return };
    let mut args = vec!["agree", plan, "--fingerprint", words];
    for option in ["--roster", "--key", "--state", "--policy", "--data"] {
        args.extend(of(option).into_iter().flat_map(|value| [option, value]));
    }
    // What is wrong with files is the run's to say.
    veilsum(&args);
}

/// The documents and rows of a federation of separate processes, made in code.
pub struct Parties {
    pub folder: Folder,
    pub data: Vec<(String, Rows)>,
    pub ports: [u16; 2],
    /// Where coordinator and intermediary are, without a port.
    hosts: [String; 2],
}

impl Parties {
    /// Sites of these sizes in the unit square, K = 3, and `plan` besides.
    pub fn new(sizes: &[usize], plan: &[&str]) -> Parties {
        Parties::at(["127.0.0.1", "127.0.0.1"], [free_port(), free_port()], sizes, plan)
    }

    /// As [`Parties::new`], with the coordinator and the intermediary at these hosts; a number of IPv6 stands in brackets.
    pub fn at(hosts: [&str; 2], ports: [u16; 2], sizes: &[usize], plan: &[&str]) -> Parties {
        let (folder, data, hosts) = (Folder::fresh(), made_up(sizes, 1.0, 41), hosts.map(str::to_owned));
        let parties = Parties { folder, data, ports, hosts };
        for name in ["lead", "counter"] {
            parties.key(name);
        }
        for (name, rows) in &parties.data {
            parties.key(name);
            let lines = rows.iter().map(|r| format!("{},{},private\n", r[0], r[1]));
            parties.folder.write(&format!("{name}.csv"), &format!("x,y,note\n{}", lines.collect::<String>()));
        }
        let sites: Vec<&str> = parties.data.iter().map(|(name, _)| name.as_str()).collect();
        parties.roster("roster.toml", &sites);
        // Few rows.
        parties.folder.write("toy.toml", "max_rows = 2000\n");
        parties.plan("roster.toml", "plan.toml", plan);
        parties
    }

    fn path(&self, name: &str) -> String {
        self.folder.path(name)
    }

    /// A key for a party, in the place of the one that it had.
    pub fn key(&self, name: &str) -> Identity {
        let identity = Identity::generate(&mut system_rng());
        write_key(self.path(&format!("{name}.key")), name, &identity, Existing::Replace).expect("a key");
        if name.starts_with("site-") {
            // Where the kit says, and where the program looks if nobody does.
            for state in [format!("{name}.state"), format!("{name}.key.state")] {
                ledger::begin(&self.folder.0.join(state), &identity.digest_secret()).expect("an account");
            }
        }
        identity
    }

    /// A party's public key.
    pub fn public(&self, name: &str) -> String {
        self.member(name).key.to_string()
    }

    /// A party as it stands on a roster, with the key that it has.
    pub fn member(&self, name: &str) -> Member {
        let place = ["lead", "counter"].iter().position(|aggregator| *aggregator == name);
        let address = place.map_or(String::new(), |at| format!("{}:{}", self.hosts[at], self.ports[at]));
        let (identity, _) = load_identity(self.path(&format!("{name}.key"))).expect("a key");
        Member { name: name.into(), key: identity.public(), address }
    }

    pub fn roster(&self, file: &str, sites: &[&str]) {
        self.roster_named("test", file, sites);
    }

    /// A roster of a federation of this name.
    pub fn roster_named(&self, name: &str, file: &str, sites: &[&str]) {
        let sites = sites.iter().map(|site| self.member(site)).collect();
        let (coordinator, intermediary) = (self.member("lead"), self.member("counter"));
        self.sign(file, Roster { name: name.into(), coordinator, intermediary, sites });
    }

    /// Signs a roster with the coordinator's key.
    pub fn sign(&self, file: &str, roster: Roster) {
        let (hub, _) = load_identity(self.path("lead.key")).expect("a key");
        write_roster(self.path(file), &roster.sign(&hub).expect("a roster")).expect("a file");
    }

    /// A plan without noise, unless it says what it spends.
    pub fn plan(&self, roster: &str, file: &str, more: &[&str]) {
        let (roster, key, out) = (self.path(roster), self.path("lead.key"), self.path(file));
        let mut args = vec!["plan", "new", "--roster", &roster, "--key", &key, "--out", &out, "--k", "3"];
        args.extend(["--column", "x=0:1", "y=0:1"]);
        args.extend(more);
        let given = |name: &str| more.iter().any(|option| option.starts_with(name));
        if !given("--set=max_rows") {
            args.extend(["--set", "max_rows=2000"]);
        }
        if !given("--rho") {
            args.push("--exact");
        }
        veilsum(&args).expect(0);
    }

    /// The words of a party's run: the coordinator's has no fingerprint to be told, and a site agrees to its plan.
    fn role(&self, name: &str, own: &[(&str, &str)], more: &[&str]) -> Vec<String> {
        let mut all: Vec<(&str, String)> = vec![("--roster", self.path("roster.toml"))];
        all.extend([("--plan", self.path("plan.toml")), ("--key", self.path(&format!("{name}.key")))]);
        all.extend(own.iter().map(|(option, file)| (*option, self.path(file))));
        // A later option of the same name takes the place of an earlier one.
        let given = |option: &str| more.contains(&option);
        let kept = all.into_iter().filter(|(option, _)| !given(option));
        let head = std::iter::once("run".to_owned()).chain(kept.flat_map(|(option, file)| [option.to_owned(), file]));
        let args: Vec<String> = head.chain(more.iter().map(|m| (*m).to_owned())).collect();
        let [roster, key] = ["--roster", "--key"].map(|option| value_of(&args, option).expect("an option"));
        // After the call of a federation's first roster, which all of these parties keep beside their keys, in one folder.
        if let (Ok(roster), Ok(Pinned { roster: None, .. })) = (load_roster(roster), Pinned::load(Path::new(key))) {
            Pinned::change(Path::new(key), |pinned| pinned.roster = Some(roster)).expect("a file");
        }
        if name.starts_with("site-") {
            let state = value_of(&args, "--state").expect("a folder");
            // What is wrong with it is the run's to say.
            if let Ok((identity, _)) = load_identity(key) {
                let _ = ledger::begin(Path::new(state), &identity.digest_secret());
            }
            agree(&args);
        }
        args
    }

    pub fn server(&self, more: &[&str]) -> Vec<String> {
        self.role("lead", &[("--out", "out")], more)
    }

    pub fn intermediary(&self, more: &[&str]) -> Vec<String> {
        self.role("counter", &[], more)
    }

    /// Options with the files of this party: of `roster plan key state data policy` those that are named.
    pub fn files(&self, party: &str, which: &str) -> Vec<String> {
        let file = |option: &str| match option {
            "roster" | "plan" => format!("{option}.toml"),
            "policy" => "toy.toml".to_owned(),
            "data" => format!("{party}.csv"),
            "state" if !party.starts_with("site-") => format!("{party}.key.state"),
            _ => format!("{party}.{option}"),
        };
        which.split(' ').flat_map(|option| [format!("--{option}"), self.path(&file(option))]).collect()
    }

    /// Runs a command of this party with those of its files, unless `more` names others.
    pub fn types(&self, party: &str, command: &str, files: &str, more: &[&str]) -> Ended {
        let files = self.files(party, files);
        let own = files.chunks(2).filter(|of| !more.contains(&of[0].as_str())).flatten();
        let words = command.split(' ').chain(own.map(String::as_str)).chain(more.iter().copied());
        veilsum(&words.collect::<Vec<_>>())
    }

    /// Site `i`, from 1.
    pub fn client(&self, i: usize, more: &[&str]) -> Vec<String> {
        let name = format!("site-{i}");
        let own = ["csv", "state"].map(|end| format!("{name}.{end}"));
        let own = [("--data", &*own[0]), ("--state", &*own[1]), ("--out", &*name), ("--policy", "toy.toml")];
        self.role(&name, &own, more)
    }
}
