//! `veilsum server`, `veilsum intermediary`, `veilsum client`: one role, one process.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::Args;
use serde_json::json;
use veilsum_proto::{
    aggregator::{self, Timing},
    identity::Identity,
    message,
    roster::{Member, PartyId},
    suite::Hash,
};

use crate::{
    agree::{FirstUse, agree},
    policy::judged,
};
use veilsum_node::documents::Offered;
use veilsum_node::{
    documents::{self, Federation, load_identity, policy_of},
    error::{Code, Failure},
    release::Data,
    report,
    role::{
        client::{self, ClientConfig},
        config::Party,
        intermediary::{self, IntermediaryConfig},
        server::{self, OnLoss, ServerConfig},
    },
    store::{Journal, Ledger},
};

/// What every role needs to know.
#[derive(Args, Debug, Clone)]
pub(crate) struct Documents {
    /// The federation's roster
    #[arg(long, value_name = "FILE")]
    pub roster: PathBuf,
    /// The plan that everybody agreed to
    #[arg(long, value_name = "FILE")]
    pub plan: PathBuf,
    /// This party's secret key file
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
}

/// How long an aggregator waits.
#[derive(Args, Debug, Clone)]
pub(crate) struct Patience {
    /// Seconds to wait for the sites of the roster to appear
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub join_timeout: u64,
    /// Seconds to wait for a site's answer to one message
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub phase_timeout: u64,
    /// Seconds a site whose connection broke has to come back
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    pub grace: u64,
    /// What to do about a site that is lost
    ///
    /// Wait for it to come back, or stop waiting when --phase-timeout and --grace are over.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Loss::Wait)]
    pub on_loss: Loss,
    /// Seconds to wait for a site that is lost, with --on-loss wait
    #[arg(long, value_name = "SECONDS", default_value_t = LOSS_WAIT)]
    pub loss_wait: u64,
}

/// What an aggregator does about a lost site.
#[derive(clap::ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Wait for it
    Wait,
    /// Go on, or end the run, without it
    Stop,
}

impl Loss {
    /// With so many seconds to wait.
    pub(super) fn within(self, seconds: u64) -> OnLoss {
        match self {
            Loss::Wait => OnLoss::Wait(Duration::from_secs(seconds.clamp(1, 1_000_000))),
            Loss::Stop => OnLoss::Stop,
        }
    }
}

/// Seconds for which a lost site is waited for: time to start a process, or a machine, again.
pub(super) const LOSS_WAIT: u64 = 600;

/// `veilsum server`
#[derive(Args, Debug)]
pub(crate) struct ServerArgs {
    /// Roster, plan and key.
    #[command(flatten)]
    pub documents: Documents,
    /// Timeouts.
    #[command(flatten)]
    pub patience: Patience,
    /// Address to listen on (UDP) [default: the roster's port on all interfaces]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
    /// Folder for result.json and model.json
    #[arg(long, value_name = "DIR", default_value = "veilsum-out")]
    pub out: PathBuf,
    /// Folder for the journal from which a restart takes the run up [default: beside the key]
    ///
    /// It has mode 0700.
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

/// `veilsum intermediary`
#[derive(Args, Debug)]
pub(crate) struct IntermediaryArgs {
    /// Roster, plan and key.
    #[command(flatten)]
    pub documents: Documents,
    /// Timeouts.
    #[command(flatten)]
    pub patience: Patience,
    /// What the first use of a roster needs.
    #[command(flatten)]
    pub first: FirstUse,
    /// Address to listen on (UDP) [default: the roster's port on all interfaces]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
}

/// `veilsum client`
#[derive(Args, Debug)]
pub(crate) struct ClientArgs {
    /// Roster, plan and key.
    #[command(flatten)]
    pub documents: Documents,
    /// What the first use of a roster needs.
    #[command(flatten)]
    pub first: FirstUse,
    /// This site's rows: a CSV file with a header that has the plan's columns
    #[arg(long, value_name = "FILE.csv")]
    pub data: PathBuf,
    /// This site's own policy [default: site.toml beside the key, else the strict default]
    ///
    /// `veilsum policy show` prints the one in force.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Folder for this site's journal and ledger (mode 0700) [default: beside the key]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Seconds to keep trying to reach coordinator and intermediary
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub join_timeout: u64,
    /// Where to write the model (centres)
    ///
    /// The result is written beside it, as result.json for model.json.
    #[arg(long, value_name = "FILE", default_value = "model.json")]
    pub model: PathBuf,
}

/// Where a party keeps its journal and ledger: as told, else beside its key.
pub(super) fn state_of(key: &Path, given: Option<&PathBuf>) -> PathBuf {
    given.cloned().unwrap_or_else(|| beside(key, ".state"))
}

/// Where the head of its ledger is: beside the key.
pub(super) fn head_of(key: &Path) -> PathBuf {
    beside(key, ".head")
}

fn beside(key: &Path, end: &str) -> PathBuf {
    let mut name = key.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

impl Documents {
    fn state(&self, given: Option<&PathBuf>) -> PathBuf {
        state_of(&self.key, given)
    }

    /// Reads everything and checks that the key belongs to `role`.
    fn load(
        &self,
        role: &str,
        fits: impl Fn(PartyId) -> bool,
    ) -> Result<(Federation, Arc<Identity>, PartyId), Failure> {
        let federation = documents::load_federation(&self.roster, &self.plan)?;
        let (identity, name) = load_identity(&self.key)?;
        let id = federation.whoami(&identity)?;
        if !fits(id) {
            return Err(Failure::input(
                format!("the key of {name} is not that of the roster's {role}"),
                "use the command of the role that the roster gives this key, or the key of that role",
            ));
        }
        Ok((federation, Arc::new(identity), id))
    }

    /// Asks whether this party agreed to the roster, for these rows. Nothing is resolved or dialled before.
    fn agree(
        &self,
        first: &FirstUse,
        federation: &Federation,
        identity: &Identity,
        data: Option<&Data>,
    ) -> Result<(), Failure> {
        let offered = Offered { file: &self.roster, roster: &federation.roster, key: &self.key, identity };
        agree(&offered, first.roster_fingerprint.as_ref(), data)
    }
}

impl Patience {
    fn timing(&self) -> Timing {
        let ms = |s: u64| s.clamp(1, 1_000_000) * 1_000;
        Timing {
            join: ms(self.join_timeout),
            phase: ms(self.phase_timeout),
            grace: self.grace.min(1_000_000) * 1_000,
            resend: (ms(self.phase_timeout) / 6).max(1_000),
        }
    }
}

/// The address at which a member is dialled.
fn resolve(member: &Member) -> Result<SocketAddr, Failure> {
    let unusable = |why: String| {
        Failure::input(
            format!("the address {:?} of {} cannot be used: {why}", member.address, member.name),
            "make its card again with `veilsum keygen --address HOST:PORT`, and the roster from it",
        )
    };
    let mut found = member.address.to_socket_addrs().map_err(|e| unusable(e.to_string()))?;
    found.next().ok_or_else(|| unusable("the name has no address".into()))
}

/// Where a role listens: as told, else the roster's port on all interfaces.
fn listen_at(given: Option<SocketAddr>, member: &Member) -> Result<SocketAddr, Failure> {
    match given {
        Some(address) => Ok(address),
        None => {
            let port = member.address.rsplit_once(':').and_then(|(_, p)| p.parse().ok());
            port.map(|port| SocketAddr::from(([0, 0, 0, 0], port))).ok_or_else(|| {
                Failure::input(format!("the roster's address of {} has no port", member.name), "say --listen ADDR:PORT")
            })
        }
    }
}

/// An asynchronous runtime for one command.
pub(super) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::new(Code::Internal, e, "check the limits on threads"))?;
    let result = runtime.block_on(future);
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

/// Runs the coordinator.
///
/// # Errors
/// A [`Failure`] with its exit code.
pub(crate) fn server(args: &ServerArgs, json: bool) -> Result<(), Failure> {
    let (federation, identity, _) = args.documents.load("coordinator", |id| id == PartyId::Coordinator)?;
    let listen = listen_at(args.listen, &federation.roster.coordinator)?;
    place_for(&args.out.join("result.json"))?;
    if !json {
        eprintln!("waiting for {} sites on {listen} (UDP)", federation.roster.sites.len());
    }
    let state = args.documents.state(args.state.as_ref());
    let session = message::session(&federation.terms.hash(), &federation.roster.hash(), PartyId::Coordinator);
    let result = block_on(server::run(ServerConfig {
        party: Party::new(identity, federation.clone()),
        listen,
        timing: args.patience.timing(),
        on_loss: args.patience.on_loss.within(args.patience.loss_wait),
        evidence: Some(args.out.clone()),
        state: Some(state.clone()),
        bound: None,
        progress: crate::progress::reporter(json),
    }))?;
    let written = report::write(&args.out, &result, None)?;
    // Not before the result is on disk: until then a restart finds all totals in the journal.
    let (mut journal, _) = Journal::<aggregator::Record>::of(&state, &session)?;
    journal.rewrite(&[])?;
    crate::say!("{}", report::of_server(&result, &written, json).trim_end());
    result.ended_early.map_or(Ok(()), |early| Err(early.failure()))
}

/// Runs the intermediary.
///
/// # Errors
/// A [`Failure`] with its exit code.
pub(crate) fn intermediary(args: &IntermediaryArgs, json: bool) -> Result<(), Failure> {
    let (federation, identity, _) = args.documents.load("intermediary", |id| id == PartyId::Intermediary)?;
    args.documents.agree(&args.first, &federation, &identity, None)?;
    let listen = listen_at(args.listen, &federation.roster.intermediary)?;
    let coordinator = resolve(&federation.roster.coordinator)?;
    if !json {
        eprintln!(
            "waiting for {} at {coordinator}, then for {} sites on {listen} (UDP)",
            federation.roster.coordinator.name,
            federation.roster.sites.len()
        );
    }
    let counted = block_on(intermediary::run(IntermediaryConfig {
        party: Party::new(identity, federation.clone()),
        listen,
        coordinator,
        timing: args.patience.timing(),
        on_loss: args.patience.on_loss.within(args.patience.loss_wait),
        bound: None,
    }))?;
    if json {
        crate::say!(
            "{}",
            json!({"cohort": counted.cohort, "n_total": counted.total, "handed_over": counted.handed_over,
                   "traffic": counted.traffic})
        );
    } else {
        crate::say!("counted {} rows over {} sites", counted.total, counted.cohort.len());
        if !counted.handed_over {
            crate::say!("the total was withheld from the coordinator: a counted site left the run before its end");
        }
    }
    Ok(())
}

/// Makes the folder of a file that is written at the end of a run: whatever is wrong with it is said before anything is answered.
///
/// # Errors
/// A [`Failure`] where nothing can be written there.
pub(crate) fn place_for(file: &Path) -> Result<(), Failure> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let made = std::fs::create_dir_all(folder).and_then(|()| {
        let probe = folder.join(format!(".veilsum-{}", std::process::id()));
        std::fs::write(&probe, [])?;
        std::fs::remove_file(probe)
    });
    made.map_err(|e| {
        Failure::input(
            format!("nothing can be written into {} ({e})", folder.display()),
            "choose another place, or make this one writable; nothing has been sent yet",
        )
    })
}

/// Runs a site.
///
/// # Errors
/// A [`Failure`] with its exit code.
pub(crate) fn client(args: &ClientArgs, json: bool) -> Result<(), Failure> {
    let (federation, identity, id) = args.documents.load("sites", |id| matches!(id, PartyId::Site(_)))?;
    let (site, _) = policy_of(args.policy.as_deref(), Some(&args.documents.key))?;
    place_for(&args.model)?;
    let (rows, origin) = documents::load_rows_and_origin(&federation, &args.data)?;
    let data = Data::of(&site.data, &identity, &rows);
    args.documents.agree(&args.first, &federation, &identity, Some(&data))?;
    let state = args.documents.state(args.state.as_ref());
    let (coordinator, intermediary) =
        (resolve(&federation.roster.coordinator)?, resolve(&federation.roster.intermediary)?);
    // A ledger that does not hold is judged where it is opened, which mends a torn end ([LED-6]).
    if let Ok(account) = Ledger::look(&state, &head_of(&args.documents.key), &identity) {
        let spent = (&account.spent(&Hash::default(), None, None), account.rho_of(&federation.terms.hash()));
        if let Some(stop) = judged(&federation, &site.policy, &rows, spent, 0)?.stop()
            && !json
        {
            eprintln!("warning: this site does not answer the whole plan; {stop}");
        }
    }
    let report = block_on(async {
        let run = client::run(ClientConfig {
            party: Party::new(identity, federation.clone()),
            site,
            rows: Arc::new(rows),
            origin: Arc::new(origin),
            coordinator,
            intermediary,
            state: Some(state.clone()),
            head: Some(head_of(&args.documents.key)),
            patience: Duration::from_secs(args.join_timeout),
            vanish: None,
        });
        tokio::select! {
            report = run => report,
            _ = tokio::signal::ctrl_c() => {
                Err(Failure::new(Code::Interrupted, "interrupted", "start again within the grace time to stay in the run"))
            }
        }
    })?;
    let Some(model) = &report.model else {
        return Err(Failure::new(Code::Denied, "the run ended without a model", "ask the coordinator's operator"));
    };
    documents::write_model(model, &args.model)?;
    let result = report::beside(&args.model);
    report::write_site(&result, model, report.result.as_ref(), &report.traffic)?;
    let name = federation.roster.name_of(id);
    if json {
        crate::say!(
            "{}",
            json!({"site": name, "answered": report.answered, "traffic": report.traffic,
                   "model": args.model, "result": result, "converged": model.converged, "ended_early": model.ended_early,
                   "extrapolated": model.extrapolated, "centres": model.centres})
        );
    } else {
        crate::say!(
            "{name}: answered {} questions, sent {} bytes, masked words, shares, keys and signatures",
            report.answered,
            report.traffic.bytes()
        );
        crate::say!("what was given away so far: veilsum ledger budget --key {}", args.documents.key.display());
        crate::say!(
            "wrote {} and {}; your rows' memberships: veilsum assign --model {} --data {}",
            args.model.display(),
            result.display(),
            args.model.display(),
            args.data.display()
        );
    }
    model.ended_early.as_ref().map_or(Ok(()), |early| Err(early.failure()))
}
