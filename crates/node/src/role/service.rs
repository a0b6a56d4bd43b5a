//! The coordinator as a service: a lobby that stays open, and the runs that its operator begins, one after the other, on one port.
//!
//! What the operator decides stands in the folder of the federation, where other commands write it; this process looks there.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{sync::oneshot, task::JoinHandle, time::timeout};
use veilsum_proto::{
    aggregator::Timing,
    identity::Identity,
    message,
    roster::{Member, PartyId},
    suite::Hash,
};

use super::{
    config::Party,
    folder::{State, folder_of},
    lobby::Lobby,
    progress::{Teller, Watcher},
    reception::{Entrance, Reception},
    server::{self, ServerConfig},
    status::Window,
    stop::{self, FIRST_PAUSE, LONGEST_PAUSE},
};
use crate::{
    carrier::Carrier,
    documents::{self, Federation, GuestList, Run},
    error::{Code, Failure},
    files,
    random::drawn,
    report,
    result::RunResult,
    store::{HubEntry, Journal},
};

/// How often the folder is looked at.
const LOOK: Duration = Duration::from_millis(300);
/// The time after which the files are read although nothing shows that they have changed.
const READ_ANYWAY: Duration = Duration::from_secs(30);
/// Time for a run to end in good order where this process is told to stop.
const IN_GOOD_ORDER: Duration = Duration::from_secs(14);

/// What the coordinator's service is given.
pub struct ServiceConfig {
    /// The coordinator's identity.
    pub identity: Arc<Identity>,
    /// The folder of the federation.
    pub folder: PathBuf,
    /// Folder of the journal from which a restart takes a run up.
    pub state: PathBuf,
    /// What its links run on.
    pub carrier: Arc<dyn Carrier>,
    /// Where to listen.
    pub listen: SocketAddr,
    /// How long a run waits.
    pub timing: Timing,
    /// How long a run waits at least for a site that is lost.
    pub loss_wait: Duration,
    /// Told what happens between runs.
    pub news: Teller,
    /// Told how a run goes.
    pub progress: Watcher,
    /// Told the bound address once the port is open.
    pub bound: Option<oneshot::Sender<SocketAddr>>,
}

/// Serves until this process is told to stop. A run that is going on then is taken up by the next process.
///
/// # Errors
/// A [`Failure`] where the folder cannot be read or the port cannot be opened; of the code of the signal where it was told to stop.
pub async fn run(mut config: ServiceConfig) -> Result<(), Failure> {
    let list = GuestList::load(&config.folder)?;
    if list.coordinator.key != config.identity.public() {
        let next = "use the coordinator's key file, which lies beside federation.toml";
        return Err(Failure::input("this is not the key with which the federation was founded", next));
    }
    let _serving = only_one(&config.folder).await?;
    // Nobody stands by yet.
    GuestList::change(&config.folder, |list| {
        list.guests.iter_mut().for_each(|guest| guest.said = None);
        Ok(())
    })?;
    let first = State::read(&config.folder)?;
    let lobby = Arc::new(Lobby::new(config.identity.clone(), config.folder.clone(), config.news.clone()));
    lobby.take(first);
    let door = lobby.clone();
    let allowed = Arc::new(move |key: &_| door.may_knock(key, std::time::Instant::now()));
    let (reception, mut visitors) =
        Reception::open(config.identity.clone(), &*config.carrier, config.listen, allowed).await?;
    if let Some(bound) = config.bound.take() {
        let _ = bound.send(reception.address());
    }
    let window = Window::open(&config.state, &list.coordinator.name, "coordinator");
    let reception = Arc::new(reception);
    let mut service = Service {
        config,
        lobby,
        window,
        reception,
        running: None,
        over: None,
        not_before: Instant::now(),
        pause: FIRST_PAUSE,
        unusable: None,
        seen: None,
    };
    let mut look = tokio::time::interval(LOOK);
    let mut told = std::pin::pin!(stop::told());
    loop {
        tokio::select! {
            visit = visitors.recv() => match visit {
                Some(visit) => drop(tokio::spawn(service.lobby.clone().visit(visit))),
                None => return Err(Failure::new(Code::Network, "the port was shut", "start it again")),
            },
            _ = look.tick() => match service.look().await {
                Err(failure) if failure.code == Code::Storage => service.wait_for_space(failure),
                looked => looked?,
            },
            code = &mut told => {
                if let Some(Running { task, .. }) = &mut service.running {
                    let _ = timeout(IN_GOOD_ORDER, finished(task)).await;
                }
                if let Err(failure) = service.tend().await
                    && failure.code != Code::Storage
                {
                    return Err(failure);
                }
                let next = "start it again whenever you like: nobody who waits has to begin anew, and a run goes on";
                return Err(stop::failure(code, next));
            }
        }
    }
}

/// The place of the one process that serves. Somebody who only looks whether it is taken has it for a moment.
async fn only_one(folder: &Path) -> Result<fs::File, Failure> {
    for _ in 0..10 {
        if let Some(place) = GuestList::serving(folder)? {
            return Ok(place);
        }
        tokio::time::sleep(LOOK / 3).await;
    }
    Err(Failure::input("another process serves this federation already", "let that one go on, or stop it first"))
}

struct Running {
    run: Run,
    task: JoinHandle<Result<RunResult, Failure>>,
}

struct Service {
    config: ServiceConfig,
    lobby: Arc<Lobby>,
    window: Window,
    reception: Arc<Reception>,
    running: Option<Running>,
    /// A run that has ended, until that is on disk: its number, its exit code, and what it came to.
    over: Option<(u64, u8, String)>,
    /// Where nothing could be written: when it is tried again.
    not_before: Instant,
    /// How long it is waited the next time.
    pause: Duration,
    unusable: Option<String>,
    /// Length and age of the files at the last reading, whether the parties of a run could greet then, and when that was.
    seen: Option<([Stamp; 3], bool, Instant)>,
}

/// What shows that a file is another: it is always replaced as a whole.
type Stamp = Option<(u64, String)>;

impl Service {
    /// The disk is full, or fails. What was under way is taken up as after a crash, which nobody is told is an end.
    fn wait_for_space(&mut self, failure: Failure) {
        if self.pause == FIRST_PAUSE {
            (self.config.news)(format!(
                "{} ({}); it is tried again, and nobody is told that a run is over",
                failure.message, failure.advice
            ));
        }
        self.not_before = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.seen = None;
    }

    async fn look(&mut self) -> Result<(), Failure> {
        if Instant::now() < self.not_before {
            return Ok(());
        }
        self.tend().await?;
        let seen = ["federation.toml", "roster.toml", "plan.toml"].map(|file| {
            let metadata = fs::metadata(self.config.folder.join(file)).ok()?;
            Some((metadata.len(), format!("{:?}", metadata.modified())))
        });
        let leads = self.running.is_some() && self.reception.leads();
        if self.seen.as_ref().is_some_and(|(of, led, at)| (of, *led) == (&seen, leads) && at.elapsed() < READ_ANYWAY) {
            return Ok(());
        }
        let mut state = State::read(&self.config.folder)?;
        if state.unusable != self.unusable {
            self.unusable = state.unusable.clone();
            self.unusable.iter().for_each(|why| (self.config.news)(format!("not handed out: {why}")));
        }
        match (&self.running, state.run()) {
            (Some(_), _) => state.running = leads,
            (None, Some(run)) => {
                let run = run.clone();
                self.begin(run, &state)?;
            }
            (None, None) => self.reception.nothing_goes_on(),
        }
        self.seen = Some((seen, leads, Instant::now()));
        self.lobby.take(state);
        if self.running.is_none() {
            self.pause = FIRST_PAUSE;
        }
        Ok(())
    }

    /// Begins a run, or takes it up.
    fn begin(&mut self, run: Run, state: &State) -> Result<(), Failure> {
        let (Some(roster), Some(plan)) = (&state.roster, &state.plan) else { return Ok(()) };
        let roster = roster.roster.clone();
        let federation = Federation::new(roster.clone(), plan.clone().verify(&roster)?)?;
        let out = folder_of(&self.config.folder, &run);
        let session = message::session(&federation.terms.hash(), &roster.hash(), PartyId::Coordinator);
        if out.join("result.json").exists() && Journal::<HubEntry>::open(&self.config.state, &session)?.1.is_empty() {
            // The process before this one ended between the last two steps of a run.
            let early = fs::read(out.join("result.json")).ok().and_then(|text| serde_json::from_slice(&text).ok());
            let early = early.is_some_and(|result: serde_json::Value| !result["ended_early"].is_null());
            let code = if early { Code::Early as u8 } else { 0 };
            self.over = Some((run.number, code, "its result was there already".into()));
            return self.write_the_end();
        }
        (self.config.news)(format!("run {} goes on; its result will be in {}", run.number, out.display()));
        let named = |(at, site): (usize, &Member)| run.without.contains(&site.name).then_some(at as u16);
        let mut party = Party {
            carrier: self.config.carrier.clone(),
            progress: self.config.progress.clone(),
            ..Party::new(self.config.identity.clone(), federation)
        };
        self.window.watch(&mut party, PartyId::Coordinator);
        let config = ServerConfig {
            without: roster.sites.iter().enumerate().filter_map(named).collect(),
            party,
            entrance: Entrance::Shared(self.reception.clone()),
            timing: self.config.timing,
            loss_wait: self.config.loss_wait,
            state: Some(self.config.state.clone()),
        };
        let task = tokio::spawn(async move { server::run_and_write(config, &out).await.map(|(result, _)| result) });
        self.running = Some(Running { run, task });
        Ok(())
    }

    /// Writes down that a run is over, where one is, and then tells.
    fn write_the_end(&mut self) -> Result<(), Failure> {
        let Some((number, code, how)) = self.over.clone() else { return Ok(()) };
        self.seen = None;
        GuestList::change(&self.config.folder, |list| {
            list.run.iter_mut().filter(|last| last.number == number).for_each(|last| last.ended = Some(code));
            Ok(())
        })?;
        self.over = None;
        self.pause = FIRST_PAUSE;
        self.reception.nothing_goes_on();
        self.window.rest();
        (self.config.news)(format!("run {number} has ended: {how}"));
        Ok(())
    }

    /// Sees whether a run has ended.
    async fn tend(&mut self) -> Result<(), Failure> {
        self.write_the_end()?;
        let Some(running) = &self.running else { return Ok(()) };
        if !running.task.is_finished() {
            return Ok(());
        }
        let Some(Running { run, task }) = self.running.take() else { return Ok(()) };
        self.seen = None;
        let ended = task.await.unwrap_or_else(|e| Err(Failure::new(Code::Internal, e, "please report this defect")));
        let (code, how) = match ended {
            Ok(result) => {
                let code = result.ended_early.as_ref().map_or(0, |early| early.failure().code as u8);
                (code, report::in_a_sentence(&result))
            }
            // The next process takes it up.
            Err(failure) if [Code::Interrupted, Code::Terminated].contains(&failure.code) => return Ok(()),
            Err(failure) if failure.code == Code::Storage => return Err(failure),
            Err(failure) => (failure.code as u8, format!("{} ({})", failure.message, failure.advice)),
        };
        self.over = Some((run.number, code, how));
        self.write_the_end()
    }
}

/// Waits until a task is over, and leaves its result to whoever asks for it.
async fn finished<T>(task: &JoinHandle<T>) {
    while !task.is_finished() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// One run at a time: whoever is in it does not stand by.
pub fn goes_on(run: &Run) -> Failure {
    let what = format!("run {} has not ended, and members answer a plan between two runs", run.number);
    Failure::input(what, "wait for its end; `veilsum run` goes on with it")
}

/// Writes down that a run is to begin, with the roster and the plan that are in the folder now; the service then begins it.
///
/// # Errors
/// A [`Failure`] where a run goes on already, or nothing can be written.
pub fn start(folder: &Path, federation: &Federation, without: Vec<String>) -> Result<Run, Failure> {
    let (roster, plan) = documents::load_signed(folder.join("roster.toml"), folder.join("plan.toml"))?;
    if [roster.roster.hash(), plan.terms.hash()] != [federation.roster.hash(), federation.terms.hash()] {
        return Err(Failure::input("roster or plan were replaced meanwhile", "propose the plan anew"));
    }
    GuestList::change(folder, |list| {
        if let Some(run) = list.run.as_ref().filter(|run| run.ended.is_none()) {
            return Err(goes_on(run));
        }
        let number = list.last() + 1;
        let run = Run { number, id: Hash(drawn()), plan: plan.terms.hash(), without, set_back: false, ended: None };
        let kept = folder_of(folder, &run);
        fs::create_dir_all(&kept).map_err(|e| {
            files::unwritten(&e, format!("the folder {} cannot be made: {e}", kept.display()), "make room for it")
        })?;
        // What was read, whatever lies there by now.
        documents::write_roster(kept.join("roster.toml"), &roster)?;
        documents::write_plan(kept.join("plan.toml"), &plan)?;
        list.run = Some(run.clone());
        Ok(run)
    })
}
