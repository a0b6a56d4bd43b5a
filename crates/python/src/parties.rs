//! Federations in this process, and roles without I/O whose letters Python carries.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use numpy::{PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyBytes};
use serde_json::{Value, json};
use veilsum_cli::embedded;
use veilsum_federation::plan::PlanSpec;
use veilsum_node::{
    by_hand::ByHand,
    carrier::{Letter, PeerKey, letters},
    documents::{self, Federation},
    error::Failure,
    report,
    role::{client, config::Party as Role, intermediary, server},
    table::Tally,
};

use crate::{failure::raised, handed::handed, rows::slice};

/// How often a long call looks whether it was interrupted.
const LOOK: Duration = Duration::from_millis(100);

/// A plan for a roster, verified: from files, or made from options and names for simulations alone.
#[pyclass(frozen, module = "veilsum._core")]
pub(crate) struct Planned(pub(crate) Federation);

#[pymethods]
impl Planned {
    /// Roster and plan of these files, with their signatures verified.
    #[staticmethod]
    fn load(py: Python<'_>, roster: PathBuf, plan: PathBuf) -> PyResult<Planned> {
        py.detach(|| documents::load_federation(roster, plan)).map(Planned).map_err(raised)
    }

    /// The plan that options of `veilsum plan new` come to for sites of these names, whose keys nobody has.
    #[staticmethod]
    fn made(py: Python<'_>, options: Vec<OsString>, sites: Vec<String>) -> PyResult<Planned> {
        py.detach(|| embedded::planned(options, &sites)).map(Planned).map_err(raised)
    }

    /// Names of the roster's sites, in order.
    #[getter]
    fn sites(&self) -> Vec<String> {
        self.0.roster.sites.iter().map(|member| member.name.clone()).collect()
    }

    /// Names of the columns of numbers, in order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.work.columns.iter().map(|column| column.name.clone()).collect()
    }

    /// Columns of categories, each with all that may occur.
    #[getter]
    fn categorical(&self) -> Vec<(String, Vec<String>)> {
        self.0.work.categorical.iter().map(|c| (c.column.clone(), c.categories.clone())).collect()
    }

    /// Whether the plan has noise: rows that cannot be used are left out then ([NOI-8]).
    #[getter]
    fn noise(&self) -> bool {
        self.0.work.recipe.noise.is_some()
    }

    /// The method part as JSON.
    #[getter]
    fn work(&self) -> PyResult<String> {
        let work: &PlanSpec = &self.0.work;
        serde_json::to_string(work).map_err(|e| PyValueError::new_err(e.to_string()))
    }
}

/// Makes a key for every party and the roster in `folder`, to which everybody has agreed.
#[pyfunction]
pub(crate) fn found(
    py: Python<'_>,
    folder: PathBuf,
    name: String,
    coordinator: (String, String),
    intermediary: (String, String),
    sites: Vec<String>,
) -> PyResult<()> {
    let aggregators = [&coordinator, &intermediary].map(|(name, address)| (&**name, &**address));
    py.detach(|| embedded::found(&folder, &name, aggregators, &sites)).map_err(raised)
}

/// Runs the whole federation of `planned` in this process on these rows (one n x d array a site): JSON.
#[pyfunction]
#[pyo3(signature = (planned, rows, policy=None))]
pub(crate) fn simulate(
    py: Python<'_>,
    planned: &Planned,
    rows: Vec<PyReadonlyArray2<'_, f64>>,
    policy: Option<PathBuf>,
) -> PyResult<String> {
    let columns = planned.0.work.domain().map_err(raised)?.columns();
    for one in &rows {
        if one.shape()[1] != columns {
            return Err(PyValueError::new_err(format!("rows have {} columns, the plan has {columns}", one.shape()[1])));
        }
    }
    let rows = rows.iter().map(|one| Ok(slice(one)?.to_vec())).collect::<PyResult<Vec<_>>>()?;
    let federation = &planned.0;
    Ok(until_interrupted(py, || embedded::simulate(federation, rows, policy.as_deref()))?.to_string())
}

/// Stands by for the runs of a federation as `veilsum run` does with these options; what `rows(planned)` hands over is in place of the file.
#[pyfunction]
#[pyo3(signature = (options, rows=None))]
pub(crate) fn stand_by(py: Python<'_>, options: Vec<OsString>, rows: Option<Py<PyAny>>) -> PyResult<()> {
    let rows = rows.map(handed);
    until_interrupted(py, || embedded::stand_by(options, rows))
}

/// Does it without the interpreter's lock, until it is done or Python has a signal to raise.
fn until_interrupted<T: Send, F: Future<Output = Result<T, Failure>>>(
    py: Python<'_>,
    what: impl FnOnce() -> F + Send,
) -> PyResult<T> {
    py.detach(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let result = runtime.block_on(async {
            tokio::select! {
                done = what() => done.map_err(raised),
                interrupted = interrupted() => Err(interrupted),
            }
        });
        runtime.shutdown_timeout(Duration::from_secs(1));
        result
    })
}

/// Waits until Python has a signal to raise.
async fn interrupted() -> PyErr {
    loop {
        tokio::time::sleep(LOOK).await;
        if let Err(raised) = Python::attach(|py| py.check_signals()) {
            return raised;
        }
    }
}

/// To whom a letter is addressed and whose it says that it is, as hexadecimal keys; `None` where these bytes are no letter.
#[pyfunction]
pub(crate) fn addressed(letter: &[u8]) -> Option<(String, String)> {
    let hex = |key: PeerKey| key.iter().map(|byte| format!("{byte:02x}")).collect();
    letters::addressed(letter).map(|(to, from)| (hex(to), hex(from)))
}

/// A role without I/O: a site, the coordinator or the intermediary, whose letters somebody carries.
#[pyclass(frozen, module = "veilsum._core")]
pub(crate) struct Party {
    hand: Mutex<Hand>,
    names: BTreeMap<PeerKey, String>,
    /// What was read of a site's rows.
    read: Option<Tally>,
    /// Whether it may be told: under noise once the run has ended ([NOI-8]).
    told: Arc<AtomicBool>,
    /// Its name on the roster.
    #[pyo3(get)]
    name: String,
}

struct Hand {
    by: ByHand<Value>,
    /// The role, until it begins.
    role: Option<Running>,
    outcome: Option<Result<String, Failure>>,
}

impl Hand {
    /// The first letters, where the role has not begun.
    fn begin(&mut self) -> Vec<Letter> {
        self.role.take().map_or_else(Vec::new, |role| self.by.begin(role))
    }
}

type Running = Pin<Box<dyn Future<Output = Result<Value, Failure>> + Send>>;

type Letters<'py> = Vec<(String, Bound<'py, PyBytes>)>;

impl Party {
    fn of(mut party: Role, role: impl FnOnce(Role) -> Running) -> Result<Party, Failure> {
        let by = ByHand::new(party.identity.public().0)?;
        party.carrier = by.carrier();
        let names = party.federation.roster.members().map(|member| (member.key.0, member.name.clone())).collect();
        let name = party.name_of(party.federation.whoami(&party.identity)?);
        let hand = Hand { by, role: Some(role(party)), outcome: None };
        Ok(Party { hand: Mutex::new(hand), names, read: None, told: Arc::default(), name })
    }

    fn hand(&self) -> MutexGuard<'_, Hand> {
        self.hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does one thing without the interpreter's lock.
    fn with<'py>(
        &self,
        py: Python<'py>,
        one: impl FnOnce(&mut Hand) -> Result<Vec<Letter>, Failure> + Send,
    ) -> PyResult<Letters<'py>> {
        let letters = py.detach(|| one(&mut self.hand())).map_err(raised)?;
        let named = |letter: Letter| {
            let name = self.names.get(&letter.to).cloned().unwrap_or_default();
            (name, PyBytes::new(py, &letter.bytes))
        };
        Ok(letters.into_iter().map(named).collect())
    }
}

#[pymethods]
impl Party {
    /// A site with the options of `veilsum run`; what `rows(planned)` hands over is in place of the file.
    #[staticmethod]
    #[pyo3(signature = (options, rows=None))]
    fn site(py: Python<'_>, options: Vec<OsString>, rows: Option<Py<PyAny>>) -> PyResult<Party> {
        let rows = rows.map(handed);
        let made = py.detach(|| -> Result<Party, Failure> {
            let (config, read) = embedded::site(options, rows)?;
            let told = Arc::new(AtomicBool::new(config.party.federation.work.recipe.noise.is_none()));
            let ended = told.clone();
            let role = |party| -> Running {
                let config = client::ClientConfig { party, ..config.clone() };
                Box::pin(async move {
                    let report = client::run(config).await?;
                    ended.store(true, Ordering::Release);
                    let result = report.result.as_ref().map(|result| report::document(result, None));
                    Ok(json!({ "answered": report.answered, "traffic": report.traffic, "model": report.model, "result": result }))
                })
            };
            Ok(Party { read, told, ..Party::of(config.party.clone(), role)? })
        });
        made.map_err(raised)
    }

    /// What was read of a site's rows, for its operator alone: JSON and the lines that `veilsum run` prints; `None` of other parties, and under
    /// noise before the run has ended.
    #[getter]
    fn read(&self) -> PyResult<Option<(String, String)>> {
        let json = |tally: &Tally| serde_json::to_string(tally).map(|json| (json, tally.to_string()));
        let read = self.read.as_ref().filter(|_| self.told.load(Ordering::Acquire));
        read.map(json).transpose().map_err(|e| PyValueError::new_err(e.to_string()))
    }

    /// The coordinator with the options of `veilsum run`.
    #[staticmethod]
    fn coordinator(py: Python<'_>, options: Vec<OsString>) -> PyResult<Party> {
        let made = py.detach(|| {
            let (config, out) = embedded::coordinator(options)?;
            Party::of(config.party.clone(), move |party| {
                let config = server::ServerConfig { party, ..config };
                Box::pin(async move {
                    let (result, _) = server::run_and_write(config, &out).await?;
                    Ok(report::document(&result, None))
                })
            })
        });
        made.map_err(raised)
    }

    /// The intermediary with the options of `veilsum run`.
    #[staticmethod]
    fn intermediary(py: Python<'_>, options: Vec<OsString>) -> PyResult<Party> {
        let made = py.detach(|| {
            let config = embedded::intermediary(options)?;
            Party::of(config.party.clone(), move |party| {
                let config = intermediary::IntermediaryConfig { party, ..config };
                Box::pin(async move {
                    let counted = intermediary::run(config).await?;
                    Ok(json!({ "cohort": counted.cohort, "n_total": counted.total, "handed_over": counted.handed_over,
                               "traffic": counted.traffic }))
                })
            })
        });
        made.map_err(raised)
    }

    /// Names of all parties of the roster.
    #[getter]
    fn members(&self) -> Vec<String> {
        self.names.values().cloned().collect()
    }

    /// Begins, where it has not, and gives out the first letters: (name of the party that each is for, letter).
    fn start<'py>(&self, py: Python<'py>) -> PyResult<Letters<'py>> {
        self.with(py, |hand| Ok(hand.begin()))
    }

    /// Takes a letter, and gives out those that come of it.
    fn handle<'py>(&self, py: Python<'py>, letter: &[u8]) -> PyResult<Letters<'py>> {
        self.with(py, |hand| {
            let mut letters = hand.begin();
            letters.extend(hand.by.handle(letter)?);
            Ok(letters)
        })
    }

    /// Lets at most so many seconds pass, and gives out the letters that come of it.
    fn wait<'py>(&self, py: Python<'py>, seconds: f64) -> PyResult<Letters<'py>> {
        let most = Duration::try_from_secs_f64(seconds).map_err(|e| PyValueError::new_err(e.to_string()))?;
        let begun = Instant::now();
        loop {
            // In parts, so that an interrupt is heard.
            let left = most.saturating_sub(begun.elapsed());
            let mut over = false;
            let letters = self.with(py, |hand| {
                let letters = hand.by.wait(left.min(LOOK));
                over = hand.by.is_over();
                Ok(letters)
            })?;
            py.check_signals()?;
            if left.is_zero() || over || !letters.is_empty() {
                return Ok(letters);
            }
        }
    }

    /// Whether the role has ended.
    #[getter]
    fn done(&self, py: Python<'_>) -> bool {
        py.detach(|| {
            let hand = self.hand();
            hand.role.is_none() && hand.by.is_over()
        })
    }

    /// What the role came to, as JSON; `None` while it runs.
    fn result(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let outcome = py.detach(|| {
            let mut hand = self.hand();
            if let Some(ended) = hand.by.outcome() {
                hand.outcome = Some(ended.map(|value| value.to_string()));
            }
            hand.outcome.clone()
        });
        outcome.transpose().map_err(raised)
    }
}
