//! What the commands of a party share: its documents, how long it waits, where its files lie and where it listens.

use std::{
    net::{Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::Args;
use veilsum_node::{
    carrier::{self, Address, Carrier, Transport},
    documents::{
        Federation, Fingerprint, HANDED, Handed, Offered, RowsFrom, SitePolicy, Standing, load_identity, policy_of,
    },
    door::{Data, Ledger, ledger},
    error::{Code, Failure},
    facts::set_of,
    files, report,
    role::{
        config::{Party, WITHOUT_END},
        progress::Watcher,
        stop,
    },
    table::RowRules,
};
use veilsum_proto::{
    aggregator::Timing,
    identity::Identity,
    plan::Terms,
    roster::{Member, PartyId},
};

use crate::terminal::ask;

/// A party's key and, of a site, what it may answer from.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct Own {
    /// This party's secret key file [default: the only *.key file beside the roster]
    ///
    /// Its place on the roster says whether this is a site, the coordinator or the intermediary.
    #[arg(long, value_name = "FILE.key")]
    pub key: Option<PathBuf>,
    /// A site's rows: a file, a folder, a pattern or - [default: `source` under [rows] in site.toml]
    ///
    /// CSV with a header, also packed by gzip or zstd, Parquet, or Arrow. They are read anew for every plan.
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
    /// The rows of a program that runs a site in its own process, in place of `data`.
    #[arg(skip)]
    pub handed: Option<Handed>,
}

impl Own {
    /// Where this site's rows are, of which its policy says more, that `file` has.
    ///
    /// # Errors
    /// A [`Failure`] where nobody says it, or the policy says what cannot be done to rows that are handed over.
    pub(super) fn rows(&self, site: &SitePolicy, file: Option<&Path>, key: Option<&Path>) -> Result<RowsFrom, Failure> {
        if self.handed.is_none() {
            return site.rows_from(self.data.as_deref(), file, key);
        }
        as_they_are(&site.rows)?;
        Ok(RowsFrom { data: HANDED.into(), handed: self.handed.clone(), ..RowsFrom::default() })
    }

    /// Where `site.toml` says where the account is, which other federations may share, this key signs there, too ([LED-9]).
    ///
    /// # Errors
    /// A [`Failure`] where there is none, or it cannot be used.
    pub(super) fn shares(&self, site: &SitePolicy, identity: &Arc<Identity>, folder: &Path) -> Result<(), Failure> {
        if site.state.is_some() && self.state.is_none() {
            Ledger::take_over(folder, identity.clone())?;
        }
        Ok(())
    }
}

/// What `site.toml` says of a file's names, words, units and rows cannot be done to rows that were handed over.
fn as_they_are(rules: &RowRules) -> Result<(), Failure> {
    let said = [
        ("columns", !rules.columns.is_empty()),
        ("values", !rules.values.is_empty()),
        ("units", !rules.units.is_empty()),
        ("missing", rules.missing.is_some()),
        ("missing_marks", !rules.marks.is_empty()),
        ("filter", !rules.filter.conditions().is_empty()),
        ("person", rules.person.is_some()),
    ];
    let said: Vec<&str> = said.into_iter().filter(|(_, said)| *said).map(|(key, _)| key).collect();
    if said.is_empty() {
        return Ok(());
    }
    let keys = said.join(", ");
    let what = format!(
        "site.toml says under [rows] what is to be done to this site's rows ({keys}), and the program handed its rows over, to which it \
         is not done"
    );
    let next = "name the file of rows in place of them; or do it in the program, hand over rows as they are to be answered from, and take \
                these keys out of [rows]";
    Err(Failure::usage(what, next))
}

/// Which way links take.
#[derive(Args, Debug, Clone)]
pub(crate) struct Reach {
    /// What links run on: quic (UDP), tcp (TLS 1.3), or auto, the one that gets through
    ///
    /// An aggregator listens on its port for each of them. Whoever dials tries QUIC first and TCP a moment later, anew for every
    /// connection. TCP goes through the proxy that HTTPS_PROXY names, but for the hosts of NO_PROXY.
    #[arg(long, value_name = "WAY", default_value = "auto")]
    pub transport: Transport,
}

impl Reach {
    /// This party on the transports that were chosen, watched by `progress`.
    pub(super) fn party(&self, own: Arc<Identity>, agreed: Federation, progress: Watcher) -> Result<Party, Failure> {
        let carrier = self.carrier()?;
        Ok(Party { carrier, progress, ..Party::new(own, agreed) })
    }

    /// What links run on.
    pub(super) fn carrier(&self) -> Result<Arc<dyn Carrier>, Failure> {
        Ok(carrier::choose(self.transport)?)
    }
}

/// How long an aggregator waits.
#[derive(Args, Debug, Clone)]
pub(crate) struct Patience {
    /// Seconds to wait for the others to appear [default: without end]
    ///
    /// Whoever is not there is named on the screen, once a minute.
    #[arg(long, value_name = "SECONDS", hide_short_help = true)]
    pub join_timeout: Option<u64>,
    /// Seconds to wait for a site's answer to one message
    #[arg(long, value_name = "SECONDS", default_value_t = 60, hide_short_help = true)]
    pub phase_timeout: u64,
    /// Seconds a site whose connection broke has to come back
    #[arg(long, value_name = "SECONDS", default_value_t = 5, hide_short_help = true)]
    pub grace: u64,
    /// What to do about a site that is lost
    ///
    /// Wait for it to come back, or stop waiting when --phase-timeout and --grace are over.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Loss::Wait, hide_short_help = true)]
    pub on_loss: Loss,
    /// Seconds to wait for a site that is lost, with --on-loss wait
    #[arg(long, value_name = "SECONDS", default_value_t = LOSS_WAIT, hide_short_help = true)]
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

/// Seconds for which a lost site is waited for: time to start a process, or a machine, again.
pub(super) const LOSS_WAIT: u64 = 600;

/// Where a site keeps its journal and ledger: as told, else as `site.toml` says, else beside its key.
///
/// # Errors
/// A [`Failure`] where `site.toml` cannot be read: the account is then nowhere else.
pub(super) fn state_of(key: &Path, given: Option<&PathBuf>) -> Result<PathBuf, Failure> {
    if let Some(given) = given {
        return Ok(given.clone());
    }
    let said = policy_of(None, Some(key))?.0.state;
    Ok(said.map_or_else(|| state_beside(key, None), |state| key.with_file_name(state)))
}

/// Where a coordinator or an intermediary keeps its journal: as told, else beside its key. What `site.toml` says is a site's.
pub(super) fn state_beside(key: &Path, given: Option<&PathBuf>) -> PathBuf {
    given.cloned().unwrap_or_else(|| key.with_added_extension("state"))
}

/// A party's identity and name, with the secret of the account in `state`, where one has begun there ([LED-9]).
pub(super) fn own_identity(key: &Path, state: &Path) -> Result<(Identity, String), Failure> {
    let (identity, name) = load_identity(key)?;
    Ok(match ledger::digests_of(state)? {
        Some(digests) => (identity.with_digests(digests), name),
        None => (identity, name),
    })
}

/// Lets this roster pass if it was agreed to, and asks for its words on a terminal if it is a federation's first one. `state` is where a
/// site's account is, if not where it usually is.
///
/// # Errors
/// As [`Offered::passes`] and [`accept`].
pub(crate) fn agree(offered: &Offered<'_>, state: Option<&PathBuf>) -> Result<(), Failure> {
    if offered.standing()? == Standing::New { accept(offered, &ask(offered)?, state) } else { offered.passes() }
}

/// Keeps a roster with the words that were heard. A site's account names its sites from then on, which is the agreement to totals over
/// them ([POL-10]).
///
/// # Errors
/// A [`Failure`] where the words are another's, nobody can agree to the roster, or it cannot be written.
pub(crate) fn accept(offered: &Offered<'_>, heard: &Fingerprint, state: Option<&PathBuf>) -> Result<(), Failure> {
    offered.agree(heard)?;
    name_sites(offered, state)
}

/// Notes in a site's account that its operator accepted the sites of a roster; other parties have no account.
///
/// # Errors
/// A [`Failure`] where it cannot be written.
pub(crate) fn name_sites(offered: &Offered<'_>, state: Option<&PathBuf>) -> Result<(), Failure> {
    if !matches!(offered.whoami()?, PartyId::Site(_)) {
        return Ok(());
    }
    let (folder, site) = (state_of(offered.key, state)?, policy_of(None, Some(offered.key))?.0);
    let identity = Arc::new(own_identity(offered.key, &folder)?.0);
    if site.state.is_some() && state.is_none() {
        Ledger::take_over(&folder, identity.clone())?;
    }
    Ok(Ledger::open(&folder, identity, Data::unread(&site.data), None)?.accept(set_of(offered.roster))?)
}

/// The key files in a folder.
pub(super) fn keys_in(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
    files.filter(|path| path.extension().is_some_and(|end| end == "key")).collect()
}

/// A folder in which this file is not yet: the one that is named, or one with a number behind its name.
pub(super) fn free(folder: &Path, file: &str) -> PathBuf {
    let numbered = (2..).map(|n: u32| PathBuf::from(format!("{}-{n}", folder.display())));
    let mut all = std::iter::once(folder.to_owned()).chain(numbered);
    all.find(|folder| !folder.join(file).exists()).unwrap_or_else(|| folder.to_owned())
}

/// A key file: as told, else the only one in the folder of `document`.
///
/// # Errors
/// A [`Failure`] where there is none, or more than one.
pub(super) fn key_beside(given: Option<&PathBuf>, document: &Path) -> Result<PathBuf, Failure> {
    if let Some(given) = given {
        return Ok(given.clone());
    }
    let folder = document.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut keys = keys_in(folder);
    let (are, next) = match (keys.pop(), keys.is_empty()) {
        (Some(only), true) => return Ok(only),
        (Some(_), false) => ("more than one key file", "say which: --key FILE"),
        (None, _) => ("no key file", "say where it is (--key FILE), or go to the folder in which this party joined"),
    };
    Err(Failure::input(format!("there is {are} in {}", folder.display()), next))
}

/// How long others are waited for.
pub(super) fn waiting(limit: Option<u64>) -> Duration {
    limit.map_or(WITHOUT_END, |seconds| Duration::from_secs(seconds.clamp(1, 1_000_000)))
}

impl Patience {
    /// How long a lost site is waited for.
    pub(super) fn loss_wait(&self) -> Duration {
        match self.on_loss {
            Loss::Wait => Duration::from_secs(self.loss_wait.clamp(1, 1_000_000)),
            Loss::Stop => Duration::ZERO,
        }
    }

    /// What the state machine waits.
    pub(super) fn timing(&self) -> Timing {
        let ms = |s: u64| s.clamp(1, 1_000_000) * 1_000;
        Timing {
            join: waiting(self.join_timeout).as_millis() as u64,
            phase: ms(self.phase_timeout),
            grace: self.grace.min(1_000_000) * 1_000,
            resend: (ms(self.phase_timeout) / 6).max(1_000),
        }
    }
}

/// The address at which a member is dialled. Whether its name is known is seen when it is dialled.
pub(super) fn address_of(member: &Member) -> Result<Address, Failure> {
    member.address.parse().map_err(|why| {
        let next = "ask the coordinator: the party is taken out of the roster, and invited anew with an address that can be used";
        Failure::input(format!("the address {:?} of {} cannot be used: {why}", member.address, member.name), next)
    })
}

/// Warns of a role that listens on another port than the one at which the others dial it.
pub(super) fn warn_of_elsewhere(listen: SocketAddr, member: &Member) {
    let (name, port) = (&member.name, listen.port());
    if let Ok(dialled) = member.address.parse::<Address>()
        && ![0, dialled.port()].contains(&port)
    {
        let dialled = dialled.port();
        crate::tell!(
            "warning: the roster says port {dialled} for {name}, and this listens on {port}: nobody reaches it unless something here forwards \
             the one to the other"
        );
    }
}

/// Where a role listens: as told, else the roster's port on all interfaces, of IPv6 and of IPv4; of an address that leads to this machine
/// alone, there alone.
pub(super) fn listen_at(given: Option<SocketAddr>, member: &Member) -> Result<SocketAddr, Failure> {
    let own = || member.address.parse().ok().filter(|address: &SocketAddr| address.ip().is_loopback());
    let port = || member.address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let all = || port().map(|port| SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
    given.or_else(own).or_else(all).ok_or_else(|| {
        Failure::input(format!("the roster's address of {} has no port", member.name), "say --listen ADDR:PORT")
    })
}

/// An asynchronous runtime for one command.
pub(super) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::new(Code::Internal, e, "check the limits on threads"))?;
    let result = runtime.block_on(async {
        stop::listen();
        future.await
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
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
        let what = format!("nothing can be written into {} ({e})", folder.display());
        files::unwritten(&e, what, "choose another place, or make this one writable; nothing has been sent yet")
    })
}

/// Warns where the result of another plan lies where this one's will be written.
pub(crate) fn warn_of_replacing(result: &Path, terms: &Terms) {
    if let Some(what) = report::replaces(result, &terms.hash().to_string()) {
        crate::tell!("warning: {what}; name another place with --out to keep it");
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use veilsum_proto::identity::Identity;

    use super::*;
    use veilsum_node::table::Filter;

    #[derive(Parser)]
    struct Waits {
        #[command(flatten)]
        patience: Patience,
    }

    /// Nobody gives up on a party that has not come, unless it is told how long to wait.
    #[test]
    fn others_are_waited_for_without_end() {
        let join = |args: &[&str]| {
            let Waits { patience } = Waits::parse_from([&["waits"], args].concat());
            Duration::from_millis(patience.timing().join)
        };
        assert_eq!(join(&[]), WITHOUT_END);
        assert_eq!(join(&["--join-timeout", "360"]), Duration::from_secs(360));
        assert_eq!(waiting(None), WITHOUT_END);
    }

    /// One socket for IPv6 and IPv4, where nobody says otherwise.
    #[test]
    fn an_aggregator_listens_on_all_interfaces_of_both_families() {
        let key = Identity::generate(&mut veilsum_node::random::system_rng()).public();
        let member = Member { name: "hub".into(), key, address: "hub.example.org:4433".into() };
        assert_eq!(listen_at(None, &member).ok(), Some((Ipv6Addr::UNSPECIFIED, 4433).into()));
        let given = "127.0.0.1:1".parse().ok();
        assert_eq!(listen_at(given, &member).ok(), given);
    }

    #[test]
    fn rows_in_memory_are_refused_where_site_toml_says_what_is_done_to_rows() {
        let of_files = RowRules { source: Some("rows.csv".into()), ..RowRules::default() };
        assert!(as_they_are(&of_files).is_ok(), "what says where a file is does nothing to rows");
        for (key, rules) in [
            ("filter", RowRules { filter: Filter::parse("age >= 18").unwrap(), ..of_files.clone() }),
            ("person", RowRules { person: Some("id".into()), ..of_files.clone() }),
            ("missing_marks", RowRules { marks: vec!["-99".into()], ..of_files.clone() }),
            ("columns", RowRules { columns: [("age".into(), "Alter".into())].into(), ..of_files.clone() }),
        ] {
            let failure = as_they_are(&rules).unwrap_err();
            assert!(failure.code == Code::Usage && failure.message.contains(&format!("({key})")), "{failure:?}");
            assert!(failure.advice.contains("as they are to be answered from"), "{}", failure.advice);
        }
    }
}
