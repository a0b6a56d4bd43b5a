//! What the integration tests share: data sets, known answers, federations in one process and in many.
#![allow(dead_code, unreachable_pub)]

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

use veilsum_cluster::{
    Algorithm, Domain, Method, Outcome, Prepared, Rows, Scaling, Step, Totals, method::Seeding, pooled, random::Stream,
};
use veilsum_node::{
    loopback::{self, LOOPBACK_TIMING, LoopbackConfig, LoopbackRun, LoopbackSite},
    plan::{Column, PlanSpec},
    role::{
        client::Vanish,
        server::{OnLoss, Progress},
    },
    split,
};
use veilsum_proto::plan::Terms;

// ---- data -----------------------------------------------------------------------------------------------------------

/// The folder of data sets and known answers, or a loud note that a test cannot run without it.
pub fn shared() -> Option<PathBuf> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared"));
    if path.is_dir() {
        return Some(path.to_owned());
    }
    eprintln!("SKIPPED: ../shared is not present");
    None
}

/// Rows with the pooled min-max box of the papers' tables, and labels that only the tests look at.
pub struct DataSet {
    pub columns: Vec<Column>,
    pub rows: Rows,
    pub labels: Vec<usize>,
}

impl DataSet {
    pub fn read(name: &str) -> Option<DataSet> {
        let text = std::fs::read_to_string(shared()?.join(format!("data/{name}.csv"))).expect("a data set");
        let mut lines = text.lines().filter(|line| !line.is_empty());
        let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
        let (mut values, mut labels, mut names) = (Vec::new(), Vec::new(), Vec::new());
        for line in lines {
            let (cells, label) = line.rsplit_once(',').expect("a label");
            values.extend(cells.split(',').map(|cell| cell.trim().parse::<f64>().expect("a number")));
            labels.push(names.iter().position(|n| n == label).unwrap_or_else(|| {
                names.push(label.to_owned());
                names.len() - 1
            }));
        }
        let rows = Rows::new(values, header.len() - 1).expect("rows");
        Some(DataSet { columns: around(&rows, &header[..header.len() - 1]), rows, labels })
    }

    /// The rows dealt at random over `n` sites.
    pub fn sites(&self, n: usize, seed: u64) -> Vec<(String, Rows)> {
        let part = |members: &[usize]| members.iter().flat_map(|i| self.rows.row(*i).to_vec()).collect();
        let parts = split::iid(self.rows.len(), n, seed).into_iter();
        parts.map(|(name, m)| (name, Rows::new(part(&m), self.rows.columns()).expect("rows"))).collect()
    }
}

fn around(rows: &Rows, names: &[&str]) -> Vec<Column> {
    let domain = Domain::around(rows, Scaling::Box).expect("a box");
    let bounds = domain.lower().iter().zip(domain.upper());
    names.iter().zip(bounds).map(|(n, (l, u))| Column { name: (*n).into(), lower: *l, upper: *u }).collect()
}

/// Made-up sites of the given sizes in the unit square, the same for the same seed: rows around three corners for
/// `spread` 0.2, no structure for 1.
pub fn made_up(sizes: &[usize], spread: f64, seed: u64) -> Vec<(String, Rows)> {
    let mut stream = Stream::new(seed, b"veilsum integration test");
    let corners = [[0.2, 0.2], [0.8, 0.3], [0.5, 0.8]];
    let mut site = |(i, n): (usize, &usize)| {
        let near = |corner: f64, unit: f64| corner * (1.0 - spread) + spread * unit;
        let values = (0..*n).flat_map(|r| corners[(r + i) % 3].map(|c| near(c, stream.unit())));
        (format!("site-{}", i + 1), Rows::new(values.collect(), 2).expect("rows"))
    };
    sizes.iter().enumerate().map(&mut site).collect()
}

pub fn unit_square() -> Vec<Column> {
    ["x", "y"].map(|name| Column { name: name.into(), lower: 0.0, upper: 1.0 }).to_vec()
}

/// Lines of numbers without a header.
pub fn matrix(path: &Path) -> Vec<Vec<f64>> {
    let text = std::fs::read_to_string(path).expect("a table of numbers");
    let row = |line: &str| line.split(',').map(|cell| cell.trim().parse().expect("a number")).collect();
    text.lines().filter(|line| !line.is_empty()).map(row).collect()
}

/// Largest absolute difference of two tables of one shape.
pub fn max_difference(a: &[Vec<f64>], b: &[Vec<f64>]) -> f64 {
    assert_eq!((a.len(), a[0].len()), (b.len(), b[0].len()));
    a.iter().flatten().zip(b.iter().flatten()).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

// ---- federations in one process -------------------------------------------------------------------------------------

pub fn fcm(columns: Vec<Column>, k: u32, epsilon: f64, max_rounds: u32, seeding: Seeding) -> PlanSpec {
    PlanSpec::plain(columns, Algorithm::Fcm { m: 2.0, epsilon, max_rounds }, k, seeding)
}

pub fn prepared(work: &PlanSpec, sites: &[(String, Rows)]) -> Vec<Prepared> {
    let domain = work.domain().expect("a box");
    sites.iter().map(|(_, rows)| Prepared::new(rows, &domain, work.out_of_box).expect("rows inside the box")).collect()
}

/// A whole masked federation on loopback, with the sizes of its totals: how many sites are in each, in order.
pub fn federate(
    sites: Vec<(String, Rows)>,
    work: &PlanSpec,
    vanish: Vec<(usize, Vanish)>,
    record: bool,
) -> (LoopbackRun, Vec<usize>) {
    federate_under(sites, work, vanish, record, |_| {})
}

/// As [`federate`] under terms that are changed further.
pub fn federate_under(
    sites: Vec<(String, Rows)>,
    work: &PlanSpec,
    vanish: Vec<(usize, Vanish)>,
    record: bool,
    change: impl FnOnce(&mut Terms) + Send + 'static,
) -> (LoopbackRun, Vec<usize>) {
    let usual = loopback::sampled_terms(work, sites.len());
    let sizes = Arc::new(Mutex::new(Vec::new()));
    let seen = sizes.clone();
    let config = LoopbackConfig {
        site: loopback::toy_policy(),
        terms: Box::new(|terms| {
            usual(terms);
            change(terms);
        }),
        sites: sites.into_iter().map(LoopbackSite::from).collect(),
        work: work.clone(),
        vanish,
        record,
        state: None,
        carrier: None,
        way: None,
        timing: LOOPBACK_TIMING,
        on_loss: OnLoss::Stop,
        progress: Box::new(move |p| {
            if let Progress::Round { sites, .. } = p {
                seen.lock().expect("sizes").push(sites);
            }
        }),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let run = runtime.block_on(loopback::run(config)).expect("a federation");
    let sizes = sizes.lock().expect("sizes").clone();
    (run, sizes)
}

/// The same conversation in plain sums: `cohort(q)` has the places of the sites in the total of question q, from 1.
pub fn replay(work: &PlanSpec, sites: &[Prepared], cohort: impl Fn(u32) -> Vec<usize>) -> Outcome {
    let mut method = work.run(sites.len()).expect("a method");
    let mut step = method.next(None).expect("a first question");
    for number in 1.. {
        let query = match step {
            Step::Done(outcome) => return *outcome,
            Step::Ask(query) => query,
        };
        let there: Vec<Prepared> = cohort(number).into_iter().map(|i| sites[i].clone()).collect();
        let totals = Totals { rows: None, ..pooled::totals(&query, &there).expect("totals") };
        step = method.next(Some(&totals)).expect("a next question");
    }
    unreachable!("every method ends")
}

// ---- files and processes --------------------------------------------------------------------------------------------

/// A folder of its own, removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("veilsum-it-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("a new folder");
        Folder(path)
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

/// A UDP port that is free now, below the range from which the system serves those who ask for any.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed) as u32;
        let port = 20_000 + (std::process::id().wrapping_mul(37).wrapping_add(number) % 12_000) as u16;
        if std::net::UdpSocket::bind(("127.0.0.1", port)).is_ok() {
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

/// A running process whose standard error can be watched; killed when dropped.
pub struct Running {
    child: Child,
    name: String,
    stderr: Arc<Heard>,
    stdout: Option<std::thread::JoinHandle<String>>,
    watcher: Option<std::thread::JoinHandle<()>>,
}

pub fn start<S: AsRef<OsStr>>(args: &[S]) -> Running {
    launch(Command::new(env!("CARGO_BIN_EXE_veilsum")), args)
}

/// A process none of whose files may grow beyond `bytes`, as on a disk that is full; it sees an error and no signal.
pub fn start_limited<S: AsRef<OsStr>>(args: &[S], bytes: u64) -> Running {
    let mut shell = Command::new("bash");
    let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", bytes / 1024);
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_veilsum")]);
    launch(shell, args)
}

fn launch<S: AsRef<OsStr>>(mut command: Command, args: &[S]) -> Running {
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let (mut out, err) = (child.stdout.take().expect("a pipe"), child.stderr.take().expect("a pipe"));
    let stderr = Arc::new(Heard::default());
    let heard = stderr.clone();
    let stdout = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = out.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let watcher = std::thread::spawn(move || {
        for line in BufReader::new(err).split(b'\n').map_while(Result::ok) {
            let mut text = heard.text.lock().expect("text");
            text.push_str(&String::from_utf8_lossy(&line));
            text.push('\n');
            heard.more.notify_all();
        }
    });
    let name = args.iter().map(|a| a.as_ref().to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
    Running { child, name, stderr, stdout: Some(stdout), watcher: Some(watcher) }
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

    /// Without a word of farewell (SIGKILL), and the process is gone when this returns.
    pub fn kill(mut self) -> Ended {
        self.child.kill().expect("a killed process");
        self.wait(Duration::from_secs(10))
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn wait(mut self, limit: Duration) -> Ended {
        let end = Instant::now() + limit;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a status") {
                break status;
            }
            let so_far = || self.stderr.text.lock().expect("text").clone();
            assert!(Instant::now() < end, "{} still runs after {limit:?}:\n{}", self.name, so_far());
            std::thread::sleep(Duration::from_millis(10));
        };
        let stdout = self.stdout.take().and_then(|t| t.join().ok()).unwrap_or_default();
        self.watcher.take().map(std::thread::JoinHandle::join);
        let stderr = std::mem::take(&mut *self.stderr.text.lock().expect("text"));
        Ended { code: status.code(), stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `roster verify` prints of a roster for people to compare.
pub fn fingerprint_of(roster: &str) -> String {
    let told = veilsum(&["roster", "verify", "--roster", roster, "--json"]).expect(0).stdout;
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    told["fingerprint"].as_str().expect("a fingerprint").to_owned()
}

/// The documents and rows of a federation of separate processes, made with the program itself.
pub struct Parties {
    pub folder: Folder,
    pub data: Vec<(String, Rows)>,
    pub ports: [u16; 2],
}

impl Parties {
    /// Sites of these sizes in the unit square, K = 3, and `plan` besides.
    pub fn new(sizes: &[usize], plan: &[&str]) -> Parties {
        let ports = [free_port(), free_port()];
        let parties = Parties { folder: Folder::new(), data: made_up(sizes, 1.0, 41), ports };
        for (name, port) in [("lead", Some(ports[0])), ("counter", Some(ports[1]))] {
            parties.keygen(name, port);
        }
        for (name, rows) in &parties.data {
            parties.keygen(name, None);
            let lines = rows.iter().map(|r| format!("{},{},private\n", r[0], r[1]));
            parties.folder.write(&format!("{name}.csv"), &format!("x,y,note\n{}", lines.collect::<String>()));
        }
        let cards: Vec<&str> = parties.data.iter().map(|(name, _)| name.as_str()).collect();
        parties.roster("roster.toml", &cards);
        // Few rows and many rounds: what a strict site would not answer.
        let toy =
            "min_rows = 1\nchange = 0\ncontributors = 1\nrecords = 1\nopening = false\n[release]\nrule = \"off\"\n";
        parties.folder.write("toy.toml", toy);
        parties.plan("roster.toml", "plan.toml", plan);
        parties
    }

    fn path(&self, name: &str) -> String {
        self.folder.path(name)
    }

    pub fn keygen(&self, name: &str, port: Option<u16>) {
        let mut args = vec!["keygen".into(), "--name".into(), name.to_owned(), "--out".into(), self.path("")];
        args.extend(port.map(|p| format!("--address=127.0.0.1:{p}")));
        veilsum(&args).expect(0);
    }

    pub fn roster(&self, file: &str, sites: &[&str]) {
        self.roster_named("test", file, sites);
    }

    /// A roster of a federation of this name.
    pub fn roster_named(&self, name: &str, file: &str, sites: &[&str]) {
        let (lead, counter, key) = (self.path("lead.card"), self.path("counter.card"), self.path("lead.key"));
        let mut args: Vec<String> =
            ["roster", "make", "--name", name, "--coordinator", &lead, "--intermediary"].map(str::to_owned).to_vec();
        args.extend([counter, "--key".into(), key, "--out".into(), self.path(file)]);
        args.extend(sites.iter().map(|s| format!("--site={}", self.path(&format!("{s}.card")))));
        veilsum(&args).expect(0);
    }

    pub fn plan(&self, roster: &str, file: &str, more: &[&str]) {
        let (roster, key, out) = (self.path(roster), self.path("lead.key"), self.path(file));
        let mut args = vec!["plan", "make", "--roster", &roster, "--key", &key, "--out", &out, "--k", "3"];
        args.extend(["--column", "x=0:1", "y=0:1", "--max-rows", "2000"]);
        args.extend(more);
        veilsum(&args).expect(0);
    }

    fn role(&self, role: &str, name: &str, own: &[(&str, &str)], more: &[&str]) -> Vec<String> {
        let mut all: Vec<(&str, String)> = vec![("--roster", self.path("roster.toml"))];
        all.extend([("--plan", self.path("plan.toml")), ("--key", self.path(&format!("{name}.key")))]);
        all.extend(own.iter().map(|(option, file)| (*option, self.path(file))));
        // A later option of the same name takes the place of an earlier one.
        let given = |option: &str| more.contains(&option);
        let kept = all.into_iter().filter(|(option, _)| !given(option));
        let head = std::iter::once(role.to_owned()).chain(kept.flat_map(|(option, file)| [option.to_owned(), file]));
        let mut args: Vec<String> = head.chain(more.iter().map(|m| (*m).to_owned())).collect();
        // What another member's operator would have read out.
        let roster = args.iter().position(|arg| arg == "--roster").map(|at| args[at + 1].clone()).expect("a roster");
        if role != "server" && Path::new(&roster).exists() {
            args.extend(["--roster-fingerprint".into(), fingerprint_of(&roster)]);
        }
        args
    }

    pub fn server(&self, more: &[&str]) -> Vec<String> {
        self.role("server", "lead", &[("--out", "out")], more)
    }

    pub fn intermediary(&self, more: &[&str]) -> Vec<String> {
        self.role("intermediary", "counter", &[], more)
    }

    /// Site `i`, from 1.
    pub fn client(&self, i: usize, more: &[&str]) -> Vec<String> {
        let own = ["csv", "state", "model"].map(|end| format!("site-{i}.{end}"));
        let own = [("--data", &*own[0]), ("--state", &*own[1]), ("--model", &*own[2]), ("--policy", "toy.toml")];
        self.role("client", &format!("site-{i}"), &own, more)
    }
}
