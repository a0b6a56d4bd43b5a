//! `veilsum run`: a site or an intermediary as a service, which takes part in the plans that its coordinator proposes.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::Args;
use veilsum_node::{
    cost::counted,
    documents::{
        self, Federation, Federations, Offered, PlanAnswer, SitePolicy, Standing, load_identity, load_roster,
        policy_of, whoami,
    },
    error::{Code, Failure},
    release::{Data, Known},
    role::{
        lobby::run_name,
        standby::{self, Judged, News, Next, StandbyConfig},
        status::Window,
        stop,
    },
    store::{self, Ledger, Place, ledger},
};
use veilsum_proto::{
    history::Rekey,
    identity::Identity,
    roster::{PartyId, Roster},
    suite::Hash,
};

use crate::{
    agree::{FirstUse, agree},
    client::ClientArgs,
    intermediary::{IntermediaryArgs, count},
    party::{Documents, Patience, Reach, block_on, head_of, key_beside, place_for, place_of, state_of},
    policy::judged,
    verb::{self, Verb},
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
    /// What the first use of a roster needs.
    #[command(flatten)]
    pub first: FirstUse,
    /// A site's rows, read anew for every plan: a CSV file with a header that has the plan's columns
    #[arg(long, value_name = "FILE.csv")]
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
        let roster = load_roster(&self.documents.roster)?;
        let key = key_beside(self.documents.key.as_ref(), &self.documents.roster)?;
        let (identity, name, told) =
            store::identity_for(&place_of(&key, self.state.as_ref()), &self.documents.roster, &roster)?;
        if !told.0.is_empty() {
            crate::tell!("the roster of {} is another than before: {told}", roster.name);
        }
        let id = whoami(&roster, &identity)?;
        let is_site = match (id, &self.data) {
            (PartyId::Coordinator, _) => {
                let what = format!("{name} is the coordinator, which serves");
                return Err(Failure::new(Code::Usage, what, "say: veilsum federation serve"));
            }
            (PartyId::Site(_), None) => {
                let what = format!("{name} is a site, and no rows are named");
                return Err(Failure::new(Code::Usage, what, "say where they are: --data FILE.csv"));
            }
            (PartyId::Intermediary, Some(_)) => {
                let what = format!("{name} is the intermediary, which has no rows");
                return Err(Failure::new(Code::Usage, what, "leave --data out"));
            }
            (id, _) => matches!(id, PartyId::Site(_)),
        };
        place_for(&self.out.join("model.json"))?;
        let offered = Offered { file: &self.documents.roster, roster: &roster, key: &key, identity: &identity };
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
        let mut done = 0;
        let window = Window::open(&state_of(key, self.state.as_ref()), "", "");
        loop {
            let (identity, _) = load_identity(key)?;
            let member = Member { args: self, key: key.to_owned(), identity: Arc::new(identity), is_site, json };
            match standby::run(&member.standing_by(done)?).await? {
                Next::OwnKey(roster) => {
                    let taken_up = self.take_up(key, &roster);
                    stop::unless_told(taken_up, "start it again whenever you like").await?;
                }
                Next::Run { number, federation } => {
                    let folder = self.out.join(run_name(number, &federation.terms.hash()));
                    crate::tell!("run {number} begins");
                    let ended = member.take_part(&folder, &window).await;
                    window.rest();
                    done = number;
                    match ended {
                        Err(failure) if [Code::Interrupted, Code::Terminated].contains(&failure.code) => {
                            return Err(failure);
                        }
                        ended if self.once => return ended,
                        Err(failure) => verb::tell(&failure),
                        Ok(()) => {}
                    }
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
            data: self.args.data.clone(),
            policy: self.args.policy.clone(),
            state: state_of(&self.key, self.args.state.as_ref()),
        };
        let (watched, judge) = (judge.watched(), Arc::new(judge));
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
            stamp: Arc::new(move || watched.iter().map(|file| stamp(file)).collect()),
            news: Arc::new(move |news| watcher.told(news)),
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
        let (reach, first, state) = (args.reach.clone(), FirstUse::default(), args.state.clone());
        match args.data.clone().filter(|_| self.is_site) {
            Some(data) => {
                let model = folder.join("model.json");
                let policy = args.policy.clone();
                let site = ClientArgs { documents, reach, first, data, policy, state, join_timeout: None, model };
                let config = site.prepare(self.json)?;
                site.take_part(config, window, self.json).await
            }
            None => {
                let (listen, patience) = (args.listen, Patience::usual());
                let counter = IntermediaryArgs { documents, reach, patience, first, listen, state };
                count(counter.prepare(self.json)?, window, self.json).await
            }
        }
    }
}

/// Whether a file is another: its length and age, as text.
fn stamp(file: &Path) -> String {
    fs::metadata(file).map_or(String::new(), |found| format!("{} {:?}", found.len(), found.modified()))
}

/// What this party says to a plan ([PRO-2]).
struct Judge {
    identity: Arc<Identity>,
    key: PathBuf,
    roster: PathBuf,
    data: Option<PathBuf>,
    policy: Option<PathBuf>,
    state: PathBuf,
}

impl Judge {
    /// The files on which the answer rests.
    fn watched(&self) -> Vec<PathBuf> {
        let policy = self.policy.clone().unwrap_or_else(|| self.key.with_file_name("site.toml"));
        let ledger = self.state.join(ledger::FILE);
        let schemas = ["schema.toml", "schema.toml.new"].map(|name| self.roster.with_file_name(name));
        [Federations::beside(&self.key), policy, ledger].into_iter().chain(schemas).chain(self.data.clone()).collect()
    }

    fn judge(&self, federation: &Federation) -> Judged {
        if let Err(failure) = self.offered(&federation.roster).passes(None) {
            return no(PlanAnswer::Roster, &failure);
        }
        // [SCH-1].
        let kept = match documents::other_schema(&self.roster) {
            Some(other) => Err(documents::schema_differs(&other)),
            None => documents::schema_beside(&self.roster).and_then(|schema| federation.clone().under(schema)),
        };
        let federation = match &kept {
            Ok(federation) => federation,
            Err(failure) => return no(PlanAnswer::Refuses { rule: "SCH-1".into() }, failure),
        };
        let Some(data) = &self.data else {
            return Judged { answer: PlanAnswer::Would { runs: None }, words: "this party counts rows".into() };
        };
        self.of_rows(federation, data).unwrap_or_else(|failure| no(PlanAnswer::Rows, &failure))
    }

    fn of_rows(&self, federation: &Federation, data: &Path) -> Result<Judged, Failure> {
        let (site, _) = policy_of(self.policy.as_deref(), Some(&self.key))?;
        let (rows, origin) = documents::load_rows_and_origin(federation, data)?;
        let most = federation.terms.max_rows;
        if rows.is_empty() || rows.len() as u64 > most {
            let what = format!("this site has {} rows, and the plan allows 1 to {most} a site", rows.len());
            return Err(Failure::input(what, "ask for another plan"));
        }
        let SitePolicy { policy, data: name, .. } = &site;
        let these = Data::of(name, &self.identity, &rows);
        self.offered(&federation.roster).passes(Some(&these))?;
        let place = Place { key: self.key.clone(), state: self.state.clone(), head: head_of(&self.key) };
        store::follow(&place, &self.roster, &federation.roster, &self.identity)?;
        let account = Ledger::look(&self.state, &head_of(&self.key), &self.identity)?;
        let known = account.known(&origin.columns(&self.identity, &account.together()));
        if !matches!(known, Known::Same(_)) {
            return Err(known.refusal());
        }
        if account.answered_from_others(&federation.terms.hash(), &these.rows) {
            let answer = PlanAnswer::Refuses { rule: "POL-3".into() };
            let words = "this plan was answered from other rows, and no second run of it would come to its end [POL-3]; ask for a new plan";
            return Ok(Judged { answer, words: words.into() });
        }
        // [REL-5]: a block that is not whole on this roster answers nothing of these rows.
        let gone = account
            .block()
            .into_iter()
            .flat_map(|block| &block.members)
            .filter(|(key, _)| federation.roster.find(key).is_none());
        if gone.count() > 0 {
            let answer = PlanAnswer::Refuses { rule: "REL-5".into() };
            let words = "a site with which these rows were answered together is on the roster no more [REL-5]; where other rows take \
                         their place, say so: veilsum ledger separate";
            return Ok(Judged { answer, words: words.into() });
        }
        let spent = (&account.spent(&Hash::default(), None, None), account.rho_of(&federation.terms.hash()));
        let judged = judged(federation, policy, &rows, spent, 0)?;
        Ok(Judged { answer: judged.proposal(), words: judged.answer().sentence })
    }

    fn offered<'a>(&'a self, roster: &'a Roster) -> Offered<'a> {
        Offered { file: &self.roster, roster, key: &self.key, identity: &self.identity }
    }

    fn told(&self, news: News) {
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
                self.offered(&roster).passes(None).err().iter().for_each(verb::tell);
            }
            News::Schema { columns } => crate::tell!(
                "another schema is here, of {}; look whether your rows fit: veilsum schema check",
                counted(columns, "column")
            ),
            News::Answered { answer, words } => crate::tell!("a plan is proposed; this party {answer}\n  {words}"),
        }
    }
}

fn no(answer: PlanAnswer, failure: &Failure) -> Judged {
    Judged { answer, words: format!("{}\n  ({})", failure.message, failure.advice) }
}
