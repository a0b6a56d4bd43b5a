//! A federation on QUIC in which one site is the Python reference in a process of its own: another implementation of the
//! specification, from the greeting to the masked answers and the recomputed totals, ends in the centres of plain sums.
//!
//! Needs Python 3.11 with the packages of `protocol/reference/requirements.txt`; skips, and says so, where there is none.

#[allow(dead_code)]
#[path = "../examples/stdio_relay.rs"]
mod stdio_relay;
use std::{
    fs::{self, File},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::Value;
use veilsum_cluster::Algorithm;
use veilsum_node::documents::{load_federation, load_identity, load_signed};
use veilsum_testkit::{
    in_process::{apart, prepared, replay},
    program::{Parties, start},
};

use crate::processes::{LIMIT, QUICK};

const SIZES: [usize; 5] = [31, 44, 28, 37, 52];
/// A second deck is needed, and totals have their finest steps.
const FCM: [&str; 6] =
    ["--set=init=uniform", "--seed=11", "--set=epsilon=0", "--set=max_rounds=6", "--set=slots=4", "--set=step_bits=62"];

pub(crate) fn reference() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("protocol/reference")
}

/// A Python that has what the reference needs, where there is one: named by a variable, as made by `check.sh`, or installed.
pub(crate) fn python() -> Option<PathBuf> {
    const FITS: &str = "import importlib.metadata as m, sys
wanted = [line.split('==') for line in open(sys.argv[1]).read().split()]
sys.exit(sys.version_info < (3, 11) or any(m.version(name) != version for name, version in wanted))";
    let venv = std::env::var_os("VEILSUM_REFERENCE_VENV").map(PathBuf::from);
    let venv = venv.unwrap_or_else(|| std::env::temp_dir().join("veilsum-reference-venv"));
    let candidates = [std::env::var_os("VEILSUM_REFERENCE_PYTHON").map(PathBuf::from), Some(venv.join("bin/python"))];
    let found = candidates.into_iter().flatten().chain([PathBuf::from("python3")]).find(|python| {
        let requirements = reference().join("requirements.txt");
        let mut check = Command::new(python);
        check.args(["-c", FITS]).arg(requirements).stdout(Stdio::null()).stderr(Stdio::null());
        check.status().is_ok_and(|status| status.success())
    });
    if found.is_none() {
        eprintln!(
            "SKIPPED: no Python 3.11 with protocol/reference/requirements.txt; protocol/reference/check.sh makes one"
        );
    }
    found
}

/// A federation of processes, what came of its run, and what the Python site said.
struct Mixed {
    p: Parties,
    result: Value,
    said: String,
}

/// The third of five sites is a process of `python`, which vanishes before its answer to the question with this number where one is given.
fn mixed(python: &Path, plan: &[&str], vanish: Option<u32>) -> Mixed {
    let p = Parties::new(&SIZES, plan);
    let mut parties = vec![start(&p.server(&QUICK)), start(&p.intermediary(&QUICK))];
    parties.extend([1, 2, 4, 5].map(|site| start(&p.client(site, &[]))));
    let path = |name: &str| p.folder.path(name);
    let (identity, _) = load_identity(path("site-3.key")).expect("a key");
    let (roster, terms) = load_signed(path("roster.toml"), path("plan.toml")).expect("documents");
    let mut command = Command::new(python);
    command.arg("-B").arg(reference().join("take_part.py")).args(p.files("site-3", "key data"));
    command.args(["--result", &path("model.json")]).args(vanish.map(|n| format!("--vanish={n}")));
    command.stderr(File::create(path("said.txt")).expect("a file"));
    let addresses = p.ports.map(|port| SocketAddr::from(([127, 0, 0, 1], port)).into());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (seed, patience) = (identity.seed(), Duration::from_secs(30));
    let relayed = runtime.block_on(stdio_relay::relay(command, &seed, &roster, &terms, addresses, patience));
    let said = fs::read_to_string(path("said.txt")).expect("what it said");
    assert!(relayed.is_ok(), "the Python site: {relayed:?}\n{said}");
    for (at, party) in parties.into_iter().enumerate() {
        party.wait(LIMIT).expect(if vanish.is_some() && at != 1 { 9 } else { 0 });
    }
    let result = p.folder.json("out/result.json");
    Mixed { p, result, said }
}

impl Mixed {
    /// How far the centres are from those of plain sums over these sites, after so many rounds where one is given.
    fn off(&self, sites: &[usize], rounds: Option<u32>) -> f64 {
        let path = |name: &str| self.p.folder.path(name);
        let federation = load_federation(path("roster.toml"), path("plan.toml")).expect("documents");
        let mut work = (*federation.work).clone();
        if let (Some(rounds), Algorithm::Fcm { max_rounds, .. }) = (rounds, &mut work.recipe.algorithm) {
            *max_rounds = rounds;
        }
        let plain = replay(&work, &prepared(&work, &self.p.data), |_| sites.to_vec());
        let found: Vec<Vec<f64>> = serde_json::from_value(self.result["centres_box"].clone()).expect("centres");
        apart(&found, &plain.centres)
    }

    fn lines(&self, with: &str) -> u64 {
        self.said.lines().filter(|line| line.contains(with)).count() as u64
    }
}

fn agrees(plan: &[&str]) {
    let Some(python) = python() else { return };
    let ours = mixed(&python, plan, None);
    let off = ours.off(&[0, 1, 2, 3, 4], None);
    assert!(off <= 1e-9, "off by {off:e}");
    // The comparison can fail: without the Python site's rows the centres are others.
    assert!(ours.off(&[0, 1, 3, 4], None) > 1e-6);
    assert_eq!(ours.result["n_total"], SIZES.iter().sum::<usize>());
    // It recomputed every total but, where nothing is asked after it, the last.
    let (recomputed, questions) = (ours.lines("a total over 5 sites, recomputed"), &ours.result["questions"]);
    let questions = questions.as_u64().expect("a number");
    assert!((questions - 1..=questions).contains(&recomputed), "{recomputed} of {questions}:\n{}", ours.said);
    assert_eq!(ours.p.folder.json("model.json")["centres"], ours.result["centres"], "the model it was sent");
}

#[test]
fn fuzzy_c_means_and_k_means_with_a_python_site() {
    agrees(&FCM);
    agrees(&[&FCM[..], &["--method=kmeans", "--set=restarts=1"]].concat());
}

/// Before its answer to the fourth question it is gone, and the run ends with what is out.
#[test]
fn a_python_site_that_vanishes() {
    let Some(python) = python() else { return };
    let ours = mixed(&python, &FCM, Some(4));
    assert_eq!(ours.result["ended_early"]["round"], 3);
    let off = ours.off(&[0, 1, 2, 3, 4], Some(3));
    assert!(off <= 1e-9, "off by {off:e}");
    assert_eq!((ours.lines("recomputed"), ours.lines("vanishes")), (3, 1), "{}", ours.said);
    assert!(!ours.p.folder.0.join("model.json").exists());
}
