//! `veilsum run`: a site or an intermediary as a service, which takes part in the plans that its coordinator proposes.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use clap::Args;
use veilsum_node::{
    cost::counted,
    documents::{self, Federations, Offered, Standing, load_identity, load_roster},
    error::{Code, Failure},
    role::{
        folder::run_name,
        standby::{self, News, Next, StandbyConfig},
        status::Window,
        stop,
    },
    store::{self, Ledger},
};
use veilsum_proto::{
    history::Rekey,
    identity::Identity,
    roster::{PartyId, Roster},
};

use crate::{
    agree::{FirstUse, agree},
    client::ClientArgs,
    intermediary::{IntermediaryArgs, count},
    party::{Documents, Patience, Reach, block_on, head_of, key_beside, place_for, place_of, state_of},
    proposal::Judge,
    verb::{self, Verb},
    watch::Watch,
};

/// Stand by as a site or an intermediary, and take part in the runs that the coordinator begins
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// Roster, plan and key.
    #[command(flatten)]
    pub documents: Documents,
    /// Which way links take.
    #[command(flatten)]
    pub reach: Reach,
    /// What shows how runs go.
    #[command(flatten)]
    pub watch: Watch,
    /// What the first use of a roster needs.
    #[command(flatten)]
    pub first: FirstUse,
    /// A site's rows, read anew for every plan [default: `source` under [rows] in site.toml]
    ///
    /// A file, a folder, a pattern or -: CSV with a header, also packed by gzip or zstd, Parquet, or Arrow.
    #[arg(long, value_name = "ROWS")]
    pub data: Option<PathBuf>,
    /// A site's own policy [default: site.toml beside the key, else the strict default]
    ///
    /// It alone decides which plans this site answers: nobody is asked before a run.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Folder for journal and ledger (mode 0700) [default: beside the key]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// An intermediary's address to listen on [default: the roster's port on all interfaces]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<std::net::SocketAddr>,
    /// Folder in which every run has a folder of its own: roster, plan, result
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// End after one run, with its exit code
    #[arg(long)]
    pub once: bool,
}

/// How often it is looked whether this party has agreed to a roster meanwhile.
const LOOK: Duration = Duration::from_secs(2);

/// The pause after a run that did not go well, before this party stands by again; it doubles up to the other.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// This party, as it stands by.
struct Member<'a> {
    args: &'a RunArgs,
    key: PathBuf,
    identity: Arc<Identity>,
    is_site: bool,
    json: bool,
}

impl Verb for RunArgs {
    /// Stands by until it is told to stop.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code. What goes wrong in a run is told, and ends that run alone.
    fn run(&self, json: bool) -> Result<(), Failure> {
        if !self.documents.roster.exists() {
            let what = format!("{}: there is no roster here yet", self.documents.roster.display());
            let next = "join first, with the line that the coordinator sent: veilsum join 'vs1:…'; or say where it is: --roster FILE";
            return Err(Failure::input(what, next));
        }
        let roster = load_roster(&self.documents.roster)?;
        let key = key_beside(self.documents.key.as_ref(), &self.documents.roster)?;
        let (identity, name, told) =
            store::identity_for(&place_of(&key, self.state.as_ref()), &self.documents.roster, &roster)?;
        if !told.0.is_empty() {
            crate::tell!("the roster of {} is another than before: {told}", roster.name);
        }
        let offered = Offered { file: &self.documents.roster, roster: &roster, key: &key, identity: &identity };
        let id = offered.whoami()?;
        let stated = || {
            let (site, file) = documents::policy_of(self.policy.as_deref(), Some(&key))?;
            site.rows_from(self.data.as_deref(), file.as_deref(), None)
        };
        let is_site = match (id, &self.data) {
            (PartyId::Coordinator, _) => {
                let what = format!("{name} is the coordinator, which serves");
                return Err(Failure::new(Code::Usage, what, "say: veilsum federation serve"));
            }
            (PartyId::Site(_), None) => {
                let named =
                    |failure: Failure| Failure { message: format!("{name} is a site: {}", failure.message), ..failure };
                stated().map_err(named).map(|_| true)?
            }
            (PartyId::Intermediary, Some(_)) => {
                let what = format!("{name} is the intermediary, which has no rows");
                return Err(Failure::new(Code::Usage, what, "leave --data out"));
            }
            (id, _) => matches!(id, PartyId::Site(_)),
        };
        place_for(&self.out.join("model.json"))?;
        match Federations::load(&key, &identity)?.standing(&roster) {
            Standing::New => agree(&offered, self.first.roster_fingerprint.as_ref(), None)?,
            Standing::Agreed => {}
            Standing::Rekeyed { .. } => agree(&offered, None, None)?,
            // It stands by with the roster that it agreed to, and says what has to be done about this one.
            Standing::Changed { .. } => offered.passes(None).err().iter().for_each(verb::tell),
        }
        block_on(self.serve(&key, is_site, json))
    }
}

impl RunArgs {
    async fn serve(&self, key: &Path, is_site: bool, json: bool) -> Result<(), Failure> {
        let (mut done, mut pause) = (0, PAUSE);
        let window = Window::open(&state_of(key, self.state.as_ref()), "", "");
        loop {
            let (identity, _) = load_identity(key)?;
            let member = Member { args: self, key: key.to_owned(), identity: Arc::new(identity), is_site, json };
            match standby::run(&member.standing_by(done)?).await? {
                Next::OwnKey(roster) => {
                    let taken_up = self.take_up(key, &roster);
                    stop::unless_told(taken_up, "start it again whenever you like").await?;
                }
                Next::Declined { number } => {
                    crate::tell!(
                        "run {number} begins without this party, which is not ready for its plan; once it is, start this command again"
                    );
                    done = number;
                }
                Next::Run { number, federation } => {
                    let folder = free(&self.out.join(run_name(number, &federation.terms.hash())));
                    crate::tell!("run {number} begins");
                    let ended = member.take_part(&folder, &window).await;
                    window.rest();
                    let failure = match ended {
                        ended if self.once => return ended,
                        Ok(()) => {
                            (done, pause) = (number, PAUSE);
                            continue;
                        }
                        Err(failure) => failure,
                    };
                    if [Code::Interrupted, Code::Terminated].contains(&failure.code) {
                        return Err(failure);
                    }
                    verb::tell(&failure);
                    // What may be mended, is: the coordinator, too, may be started again, and asks again if the run goes on.
                    if ![Code::Network, Code::Quorum, Code::Denied, Code::Early].contains(&failure.code) {
                        done = number;
                    }
                    let rest = async {
                        tokio::time::sleep(pause).await;
                        Ok(())
                    };
                    stop::unless_told(rest, "start it again whenever you like").await?;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}

impl RunArgs {
    /// Takes up the key that the roster has; where the roster has more that is new, once this party's operator has agreed to it.
    async fn take_up(&self, key: &Path, roster: &Roster) -> Result<(), Failure> {
        let place = place_of(key, self.state.as_ref());
        let mut said = String::new();
        loop {
            match store::identity_for(&place, &self.documents.roster, roster) {
                Ok((_, _, told)) => {
                    crate::tell!("the roster of {} is another than before: {told}", roster.name);
                    return Ok(());
                }
                Err(failure) if failure.message != said => {
                    verb::tell(&failure);
                    said = failure.message;
                }
                Err(_) => tokio::time::sleep(LOOK).await,
            }
        }
    }
}

/// A folder in which there is no result yet: this one, or one with a number behind its name.
fn free(folder: &Path) -> PathBuf {
    let numbered = |n: u32| PathBuf::from(format!("{}-{n}", folder.display()));
    let mut all = std::iter::once(folder.to_owned()).chain((2..).map(numbered));
    all.find(|folder| !folder.join("model.json").exists()).unwrap_or_else(|| folder.to_owned())
}

impl Member<'_> {
    fn standing_by(&self, done: u64) -> Result<StandbyConfig, Failure> {
        let documents = &self.args.documents;
        let roster = load_roster(&documents.roster)?;
        let agreed = match Federations::load(&self.key, &self.identity)?.standing(&roster) {
            Standing::Changed { from } | Standing::Rekeyed { from } => *from,
            Standing::New | Standing::Agreed => roster,
        };
        let (waiting, old) = (store::next_of(&self.key), self.identity.clone());
        let own = agreed.find(&old.public()).map(|id| (agreed.name.clone(), agreed.name_of(id)));
        let rekey = move || {
            let (federation, own) = own.as_ref()?;
            let (next, _) = waiting.exists().then(|| load_identity(&waiting).ok())??;
            Some(Rekey::make(federation, own, &old, &next))
        };
        let judge = Judge {
            identity: self.identity.clone(),
            key: self.key.clone(),
            roster: documents.roster.clone(),
            is_site: self.is_site,
            data: self.args.data.clone(),
            policy: self.args.policy.clone(),
            state: state_of(&self.key, self.args.state.as_ref()),
            holds: Mutex::default(),
        };
        let (state, key, identity) = (judge.state.clone(), self.key.clone(), self.identity.clone());
        let has_answered = move || {
            // A ledger that does not hold is no reason to take a schema unasked.
            Ledger::look(&state, &head_of(&key), &identity).map_or(true, |account| account.block().is_some())
        };
        let judge = Arc::new(judge);
        let looked = judge.clone();
        let watcher = judge.clone();
        Ok(StandbyConfig {
            identity: self.identity.clone(),
            agreed,
            roster: documents.roster.clone(),
            plan: documents.plan.clone(),
            carrier: self.args.reach.carrier()?,
            rekey: Arc::new(rekey),
            done,
            judge: Arc::new(move |federation| judge.judge(federation)),
            stamp: Arc::new(move || looked.stamps()),
            has_answered: Arc::new(has_answered),
            news: Arc::new(move |news| told(&watcher, news)),
        })
    }

    /// One run, whose documents and result are kept in `folder`.
    async fn take_part(&self, folder: &Path, window: &Window) -> Result<(), Failure> {
        let args = self.args;
        place_for(&folder.join("model.json"))?;
        let documents = Documents { key: Some(self.key.clone()), ..args.documents.clone() };
        for (from, name) in [(&documents.roster, "roster.toml"), (&documents.plan, "plan.toml")] {
            fs::copy(from, folder.join(name)).map_err(|e| {
                Failure::input(format!("{name} cannot be kept in {} ({e})", folder.display()), "make room for it")
            })?;
        }
        let (reach, watch, first, state) =
            (args.reach.clone(), args.watch.clone(), FirstUse::default(), args.state.clone());
        match self.is_site {
            true => {
                let data = args.data.clone();
                let model = folder.join("model.json");
                let policy = args.policy.clone();
                let site =
                    ClientArgs { documents, reach, watch, first, data, policy, state, join_timeout: None, model };
                let config = site.prepare(self.json)?;
                site.take_part(config, window, self.json).await
            }
            false => {
                let (listen, patience) = (args.listen, Patience::usual());
                let counter = IntermediaryArgs { documents, reach, patience, watch, first, listen, state };
                count(counter.prepare(self.json)?, window, self.json).await
            }
        }
    }
}

/// What standing by tells this party's operator.
fn told(judge: &Judge, news: News) {
    match news {
        News::Standing { over } => crate::tell!("standing by at the coordinator over {over}"),
        News::Again { why, advice } => {
            crate::tell!("not yet: {why}\n  ({advice}; it is tried again until you stop it)")
        }
        News::Roster(roster) => {
            crate::tell!(
                "another roster of {} is here, with {} sites: {}",
                roster.name,
                roster.sites.len(),
                roster.sites.iter().map(|site| site.name.as_str()).collect::<Vec<_>>().join(", ")
            );
            let offered = judge.offered(&roster);
            // What is new by its members' own word needs no call; everything else is said with what to do about it.
            match offered.see().and_then(|()| offered.agree(None, None)) {
                Ok(taken) if taken.0.is_empty() => {}
                Ok(taken) => crate::tell!("it needs no call: {taken}"),
                Err(failure) => verb::tell(&failure),
            }
        }
        News::Schema { columns } => crate::tell!(
            "another schema is here, of {}; look whether your rows fit: veilsum check",
            counted(columns, "column")
        ),
        News::Answered { answer, words } => crate::tell!("a plan is proposed; {}\n  {words}", answer.of_this_party()),
    }
}
