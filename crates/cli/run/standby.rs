//! A site or an intermediary as a service, which takes part in the plans that its coordinator proposes.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use veilsum_node::{
    documents::{self, Offered, Pinned, Standing, load_identity, load_roster, policy_of},
    door::lock,
    error::{Code, Failure},
    files,
    role::{
        folder::run_name,
        reception::Doorway,
        standby::{self, MOST_DONE, Next, StandbyConfig},
        status::Window,
        stop,
    },
};
use veilsum_proto::{Rule, suite::Hash};

use super::{
    args::{RunArgs, model_in},
    intermediary, site,
};
use crate::{
    party::{Own, agree, free, listen_at, own_identity, place_for},
    proposal::Judge,
    verb,
};

/// The pause after a run that did not go well, before this party stands by again; it doubles up to the other.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Looks whether this party can stand by, and asks whether it agreed to the roster. Its key.
///
/// # Errors
/// A [`Failure`] that names the file at fault.
pub(crate) fn begin(args: &RunArgs, is_site: bool) -> Result<PathBuf, Failure> {
    let (file, key) = (args.roster(), args.key()?);
    let roster = load_roster(&file)?;
    let (identity, name) = load_identity(&key)?;
    if is_site {
        let (site, policy) = documents::policy_of(args.own.policy.as_deref(), Some(&key))?;
        let rows = args.own.rows(&site, policy.as_deref(), None);
        rows.map_err(|failure| Failure { message: format!("{name} is a site: {}", failure.message), ..failure })?;
    }
    place_for(&model_in(&args.out))?;
    let offered = Offered { file: &file, roster: &roster, key: &key, identity: &identity };
    match offered.standing()? {
        Standing::New => agree(&offered, args.own.state.as_ref())?,
        // It stands by with the roster that it agreed to, and says what has to be done about this one.
        Standing::Agreed | Standing::Changed(_) => offered.passes().err().iter().for_each(verb::tell),
    }
    Ok(key)
}

impl RunArgs {
    /// Stands by until it is told to stop.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code. What goes wrong in a run is told, and ends that run alone.
    pub(crate) async fn stand_by(&self, key: &Path, is_site: bool, json: bool) -> Result<(), Failure> {
        let (mut done, mut last, mut pause, mut broken) = (Vec::new(), 0, PAUSE, None);
        let over = |done: &mut Vec<Hash>, id| {
            done.push(id);
            done.drain(..done.len().saturating_sub(MOST_DONE));
        };
        let (_, name) = load_identity(key)?;
        let _alone = alone(key)?;
        let role = if is_site { "site" } else { "intermediary" };
        let window = Window::open(&self.state_for(key, is_site)?, &name, role);
        let mut door = None;
        loop {
            let state = self.state_for(key, is_site)?;
            let identity = Arc::new(own_identity(key, &state)?.0);
            if is_site {
                self.own.shares(&policy_of(self.own.policy.as_deref(), Some(key))?.0, &identity, &state)?;
            }
            let (own, unreached) = (self.own.clone(), Some(AtomicBool::new(false)));
            let judge = Judge { identity, key: key.to_owned(), roster: self.roster(), is_site, own, state, unreached };
            let judge = Arc::new(judge);
            if !is_site {
                self.open(&judge, &mut door).await?;
            }
            let config = self.standing_by(&judge, (done.clone(), broken), last, door.clone())?;
            let Next { number, id, federation } = standby::run(&config).await?;
            let Some(federation) = federation else {
                broken = None;
                crate::tell!(
                    "run {number} begins without this party, which is not ready for its plan; once it is, start this command again"
                );
                over(&mut done, id);
                continue;
            };
            let folder = free(&self.out.join(run_name(number, &federation.terms.hash())), "model.json");
            crate::tell!("run {number} begins");
            last = last.max(number);
            let ended = self.take_part(&judge, &folder, &window, door.as_deref(), json).await;
            window.rest();
            broken = ended.as_ref().err().filter(|failure| failure.code == Code::Peer).and_then(|failure| failure.rule);
            let failure = match ended {
                ended if self.once => return ended,
                Ok(()) => {
                    over(&mut done, id);
                    pause = PAUSE;
                    continue;
                }
                Err(failure) => failure,
            };
            if [Code::Interrupted, Code::Terminated].contains(&failure.code) {
                return Err(failure);
            }
            verb::tell(&failure);
            // What may be mended, is: the coordinator, too, may be started again, and asks again if the run goes on.
            if ![Code::Network, Code::Quorum, Code::Denied, Code::Early, Code::Storage].contains(&failure.code) {
                over(&mut done, id);
            }
            let rest = async {
                tokio::time::sleep(pause).await;
                Ok(())
            };
            stop::unless_told(rest, "start it again whenever you like").await?;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// An intermediary's port is open between two runs, so that everybody can try the way to it.
    async fn open(&self, judge: &Judge, door: &mut Option<Arc<Doorway>>) -> Result<(), Failure> {
        let roster = load_roster(&judge.roster)?;
        if door.as_ref().is_none_or(|door| !door.shows(&judge.identity.public())) {
            *door = None;
            let listen = listen_at(self.listen, &roster.intermediary)?;
            let carrier = self.reach.carrier()?;
            let opened = Doorway::open(judge.identity.clone(), &*carrier, listen).await?;
            *door = Some(Arc::new(opened));
        }
        if let Some(door) = door {
            door.admits(&roster);
            door.rests();
        }
        Ok(())
    }

    fn standing_by(
        &self,
        judge: &Arc<Judge>,
        (done, broken): (Vec<Hash>, Option<Rule>),
        number: u64,
        door: Option<Arc<Doorway>>,
    ) -> Result<StandbyConfig, Failure> {
        let roster = load_roster(&judge.roster)?;
        let (judging, looked, watcher) = (judge.clone(), judge.clone(), judge.clone());
        Ok(StandbyConfig {
            identity: judge.identity.clone(),
            agreed: Pinned::load(&judge.key)?.roster.unwrap_or(roster),
            plan: proposed(&judge.roster),
            roster: judge.roster.clone(),
            carrier: self.reach.carrier()?,
            done,
            number,
            broken,
            judge: Arc::new(move |federation, looking| judging.judge(federation, looking)),
            stamp: Arc::new(move || looked.stamps()),
            offered: Arc::new(move |roster| {
                door.iter().for_each(|door| door.admits(roster));
                watcher.offered(roster).passes().err().iter().for_each(verb::tell);
            }),
            news: Arc::new(|told| crate::tell!("{told}")),
        })
    }

    /// One run, whose documents and result are kept in `folder`.
    async fn take_part(
        &self,
        judge: &Judge,
        folder: &Path,
        window: &Window,
        door: Option<&Doorway>,
        json: bool,
    ) -> Result<(), Failure> {
        place_for(&model_in(folder))?;
        for (from, name) in [(&judge.roster, "roster.toml"), (&proposed(&judge.roster), "plan.toml")] {
            fs::copy(from, folder.join(name)).map_err(|e| {
                let what = format!("{name} cannot be kept in {} ({e})", folder.display());
                files::unwritten(&e, what, "make room for it")
            })?;
        }
        let own = Own { key: Some(judge.key.clone()), ..self.own.clone() };
        let args = RunArgs { own, out: folder.to_owned(), ..self.clone() };
        match door {
            None => site::take_part(&args, site::prepare(&args, json)?, window, json).await,
            Some(door) => {
                let config = intermediary::prepare(&args, json)?;
                intermediary::count(config, Some(door.entrance()), window, json).await
            }
        }
    }
}

/// That no other process stands by with this key: held as long as the file stays open.
pub(crate) fn alone(key: &Path) -> Result<File, Failure> {
    let path = key.with_added_extension("lock");
    let locked = lock(&path, &format!("process {}\n", std::process::id()));
    let locked = locked
        .map_err(|e| files::unwritten(&e, format!("{} ({e})", path.display()), "make the folder yours to write to"))?;
    locked.map_err(|who| {
        let what = format!("another process runs this party already ({who})");
        let next = "end that one first: a party runs once at a time; `veilsum status` shows how it goes";
        Failure::new(Code::Denied, what, next)
    })
}

/// Where the plan is kept that the coordinator proposes.
fn proposed(roster: &Path) -> PathBuf {
    roster.with_file_name("plan.toml")
}
