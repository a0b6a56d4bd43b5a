//! A federation on QUIC in which one site is the Python reference in a process of its own: another implementation of the
//! specification, from the greeting to the masked answers and the recomputed totals, ends in the centres of Rust alone.
//!
//! Needs Python 3.11 with the packages of `protocol/reference/requirements.txt`; skips, and says so, where there is none.

#[allow(dead_code)]
#[path = "../examples/stdio_relay.rs"]
mod stdio_relay;
use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::sync::oneshot;
use veilsum_cluster::{Algorithm, Rows, method::Seeding};
use veilsum_node::{
    documents::{Federation, write_key},
    files::Existing,
    loopback::LOOPBACK_TIMING,
    plan::PlanSpec,
    role::{
        client,
        server::{self, Progress, RunResult},
    },
};
use veilsum_testkit::{
    cast::Cast,
    in_process::{apart, fcm, federate, federate_under, made_up, max_difference, prepared, replay, unit_square},
    memory::Point,
    program::Folder,
};

const SIZES: [usize; 5] = [31, 44, 28, 37, 52];
/// The Python site, by place.
const PYTHON: usize = 2;
const ROUNDS: u32 = 6;

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

/// What came of a run: the coordinator's result, the sizes of its totals, what the Python site said, and the centres it got.
struct Mixed {
    result: RunResult,
    sizes: Vec<usize>,
    said: String,
    model: Option<serde_json::Value>,
}

/// Every role for real; the site at [`PYTHON`] is a process of `python`, which vanishes before its answer to the question
/// with this number where one is given.
async fn mixed(python: &Path, work: &PlanSpec, sites: &[(String, Rows)], vanish: Option<u32>) -> Mixed {
    let names: Vec<&str> = sites.iter().map(|(name, _)| name.as_str()).collect();
    let cast = Cast::new(work, &names, |terms| terms.slots = 4).expect("a federation");
    let Federation { roster: all, terms, work, .. } = cast.federation.clone();
    let plan = (*terms).clone().sign(&all, &cast.identities[0]).expect("a plan");
    let roster = (*all).clone().sign(&cast.identities[0]).expect("a roster");
    let (sizes, (bound, coordinator)) = (Arc::new(Mutex::new(Vec::new())), oneshot::channel());
    let seen = sizes.clone();
    let progress = Arc::new(move |p| {
        if let Progress::Round { sites, .. } = p {
            seen.lock().expect("sizes").push(sites);
        }
    });
    let mut config = cast.server(LOOPBACK_TIMING, bound);
    config.party.progress = progress;
    let server = tokio::spawn(server::run(config));
    let coordinator = coordinator.await.expect("an address");
    let (intermediary, counter) = cast.intermediary(coordinator, LOOPBACK_TIMING).await;
    let mut clients = Vec::new();
    for (i, (_, rows)) in sites.iter().enumerate().filter(|(i, _)| *i != PYTHON) {
        clients.push(tokio::spawn(client::run(cast.site(i, rows, coordinator, intermediary))));
    }

    let folder = Folder::fresh();
    let (identity, (name, rows)) = (&cast.identities[PYTHON + 2], &sites[PYTHON]);
    let (key, data) = (folder.path("site.key"), folder.path("rows.csv"));
    write_key(&key, name, identity, Existing::Refuse).expect("a key file");
    let names: Vec<&str> = work.columns.iter().map(|c| c.name.as_str()).collect();
    let mut written = csv::Writer::from_path(&data).expect("a data file");
    written.write_record(&names).expect("a header");
    rows.iter().for_each(|row| written.serialize(row).expect("a row"));
    written.flush().expect("written rows");
    let mut command = Command::new(python);
    command.arg("-B").arg(reference().join("take_part.py")).args(["--key", &key, "--data", &data]);
    command.args(["--result", &folder.path("model.json")]);
    command.args(vanish.map(|n| format!("--vanish={n}")));
    command.stderr(File::create(folder.path("said.txt")).expect("a file"));
    let patience = Duration::from_secs(30);
    let addresses = [coordinator.into(), intermediary.into()];
    let relayed = stdio_relay::relay(command, &identity.seed(), &roster, &plan, addresses, patience).await;
    let said = std::fs::read_to_string(folder.path("said.txt")).expect("what it said");
    if let Err(e) = relayed {
        panic!("the Python site: {e}\n{said}");
    }

    let result = server.await.expect("the coordinator's task").unwrap_or_else(|e| panic!("{e}\n{said}"));
    counter.await.expect("the intermediary's task").expect("a count");
    for client in clients {
        assert!(client.await.expect("a site's task").expect("a site").model.is_some());
    }
    let model = Path::new(&folder.path("model.json")).exists().then(|| folder.json("model.json"));
    let sizes = sizes.lock().expect("sizes").clone();
    Mixed { result, sizes, said, model }
}

fn run(python: &Path, work: &PlanSpec, vanish: Option<u32>) -> Mixed {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let sites = made_up(&SIZES, 0.2, 5);
    let run = mixed(python, work, &sites, vanish);
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(300), run).await.expect("an end") })
}

fn lines(said: &str, with: &str) -> usize {
    said.lines().filter(|line| line.contains(with)).count()
}

/// The run of both implementations against the run of Rust alone, and against plain sums.
fn agrees(work: &PlanSpec) {
    let Some(python) = python() else { return };
    let ours = run(&python, work, None);
    let (alone, sizes) = federate(made_up(&SIZES, 0.2, 5), work, &[]);
    let alone = alone.result.expect("a result of Rust alone");
    assert_eq!((&ours.sizes, ours.result.rounds), (&sizes, alone.rounds));
    assert!(ours.sizes.iter().all(|n| *n == SIZES.len()), "{:?}", ours.sizes);
    let off = max_difference(&ours.result.centres_box, &alone.centres_box);
    assert!(off <= 1e-9, "off by {off:e}");
    assert_eq!(ours.result.n_total, Some(SIZES.iter().sum::<usize>() as u64));
    // The comparison can fail: without the Python site's rows the centres are others.
    let others = |_| (0..SIZES.len()).filter(|i| *i != PYTHON).collect();
    let without = replay(work, &prepared(work, &made_up(&SIZES, 0.2, 5)), others);
    assert!(apart(&ours.result.centres_box, &without.centres) > 1e-6);
    // It recomputed every total but, where nothing is asked after it, the last.
    let recomputed = lines(&ours.said, "a total over 5 sites, recomputed");
    assert!((sizes.len() - 1..=sizes.len()).contains(&recomputed), "{recomputed} of {}:\n{}", sizes.len(), ours.said);
    let model = ours.model.expect("the model it was sent");
    assert!(model.to_string().contains("centres"), "{model}");
}

/// The first with a second deck.
#[test]
fn fuzzy_c_means_and_k_means_with_a_python_site() {
    agrees(&fcm(unit_square(), 3, 0.0, ROUNDS, Seeding::Uniform { seed: 11 }));
    let kmeans = Algorithm::Kmeans { epsilon: 0.0, max_rounds: 9 };
    agrees(&PlanSpec::plain(unit_square(), kmeans, 3, Seeding::Uniform { seed: 4 }));
}

/// Before its answer to the fourth question it is gone, and the run ends with what is out.
#[test]
fn a_python_site_that_vanishes() {
    let Some(python) = python() else { return };
    let work = fcm(unit_square(), 3, 0.0, ROUNDS, Seeding::Uniform { seed: 11 });
    let ours = run(&python, &work, Some(4));
    let lost = [(PYTHON, Point::BeforeInput, 4)];
    let (alone, sizes) = federate_under(made_up(&SIZES, 0.2, 5), &work, &lost, |_| {});
    let alone = alone.result.expect("a result of Rust alone");
    assert_eq!(ours.sizes, sizes);
    assert_eq!(ours.sizes, [SIZES.len(); 3]);
    let round = |result: &RunResult| result.ended_early.as_ref().map(|early| early.round);
    assert_eq!((round(&ours.result), round(&alone)), (Some(3), Some(3)));
    let off = max_difference(&ours.result.centres_box, &alone.centres_box);
    assert!(off <= 1e-9, "off by {off:e}");
    assert_eq!((lines(&ours.said, "recomputed"), lines(&ours.said, "vanishes")), (3, 1), "{}", ours.said);
    assert!(ours.model.is_none());
}
