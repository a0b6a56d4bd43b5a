//! What a party can find out before a run: whether every aggregator can be reached, on which way, and whether it would let this
//! party in; and whether this machine is fit. Nothing here takes part in a run or disturbs one.

use std::{
    fmt, fs,
    io::{self, Write},
    net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket},
    path::Path,
    sync::Arc,
    time::Duration,
};

use serde::Serialize;
use tokio::{net::TcpStream, task::JoinSet, time::timeout};
use veilsum_proto::{
    identity::Identity,
    roster::{Member, PartyId, Roster},
    suite::Hash,
};

use crate::{
    app_messages::{Denied, SOFTWARE, header_check},
    carrier::{Address, CarrierError, Credentials, Network, Proxy, Transport, listen, only},
    cost::some_of,
    documents::Pinned,
    error::{Code, Failure},
    files,
    role::dial::{Knocked, denied, knock},
};

/// What came of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// As it should be.
    Pass,
    /// A run is possible; something should be known.
    Warn,
    /// A run is not possible like this.
    Fail,
    /// It could not be checked.
    Skip,
}

/// One check.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What was checked, in a word or two.
    pub check: String,
    /// What came of it.
    pub outcome: Outcome,
    /// What was found.
    pub says: String,
    /// What to do about it; empty where there is nothing to do.
    pub next: String,
    /// The exit code of a check that failed.
    pub code: Option<u8>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}: {}", format!("{:?}", self.outcome).to_uppercase(), self.check, self.says)
    }
}

impl Finding {
    fn new(check: &str, outcome: Outcome, says: impl ToString, next: impl Into<String>) -> Finding {
        Finding { check: check.into(), outcome, says: says.to_string(), next: next.into(), code: None }
    }

    /// As it should be.
    pub fn pass(check: &str, says: impl ToString) -> Finding {
        Finding::new(check, Outcome::Pass, says, "")
    }

    /// Something to know, and what to do about it.
    pub fn warn(check: &str, says: impl ToString, next: impl Into<String>) -> Finding {
        Finding::new(check, Outcome::Warn, says, next)
    }

    /// Not checked, and what is needed to check it.
    pub fn skip(check: &str, why: impl ToString) -> Finding {
        Finding::new(check, Outcome::Skip, why, "")
    }

    /// What would end a run.
    pub fn fail(check: &str, failure: Failure) -> Finding {
        let code = Some(failure.code as u8);
        Finding { code, ..Finding::new(check, Outcome::Fail, failure.message, failure.advice) }
    }
}

// ---- This machine ---------------------------------------------------------------------------------------------------

/// Bytes that are written to try the disk. A journal and a ledger of a thousand questions are a few megabytes.
const TRIED: usize = 16 << 20;

/// Whether as much can be written into this folder as a run may need. A folder that is not there yet is tried where it will be
/// made, and is not made.
pub fn disk(folder: &Path) -> Finding {
    let there = existing(folder);
    // The file has no name, and is gone when it is dropped.
    let tried = tempfile::tempfile_in(there).and_then(|mut file| {
        let block = vec![0; 1 << 20];
        (0..TRIED / block.len()).try_for_each(|_| file.write_all(&block))?;
        file.sync_all()
    });
    let made = if there == folder { String::new() } else { format!(", where {} will be made", folder.display()) };
    let (here, size) = (there.display(), TRIED >> 20);
    match tried {
        Ok(()) => Finding::pass("disk", format!("{here} takes {size} MiB{made}; they were removed again")),
        Err(e) => {
            let next = "make room, or make the folder yours to write to, or choose another one with --state";
            let what = format!("{size} MiB cannot be written into {here}{made} ({e})");
            Finding::fail("disk", Failure::input(what, next))
        }
    }
}

/// The folder itself, or the one in which it will be made.
fn existing(folder: &Path) -> &Path {
    let parents = folder.ancestors().filter(|parent| !parent.as_os_str().is_empty());
    parents.into_iter().find(|parent| parent.exists()).unwrap_or(Path::new("."))
}

/// Whether an account in this folder lasts: a file system that others share may be set back or seen twice, and one in memory is gone with the
/// machine's next start. A warning is given back.
///
/// # Errors
/// A [`Failure`] if it is a network's.
pub fn lasts(folder: &Path) -> Result<Option<Finding>, Failure> {
    // Of `statfs`: tmpfs and ramfs; NFS, SMB (old and new), CIFS, Ceph, AFS, Lustre, GFS2 and OCFS2.
    const MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    const NETWORK: [u64; 9] =
        [0x6969, 0x517b, 0xfe53_4d42, 0xff53_4d42, 0x00c3_6400, 0x5346_414f, 0x0bd0_0bd0, 0x0116_1970, 0x7461_636f];
    let (shown, kind) = (folder.display(), kind(existing(folder)));
    let next = "keep the account on a disk of this machine: --state FOLDER";
    if NETWORK.contains(&kind) {
        let what = format!("{shown} lies on a file system of the network, where nobody knows that a write lasts");
        return Err(Failure::input(what, next));
    }
    let says = || format!("{shown} is kept in memory, and is gone when this machine starts again");
    Ok(MEMORY.contains(&kind).then(|| Finding::warn("account", says(), next)))
}

/// The kind of a file system; 0 if it is not known.
#[cfg(target_os = "linux")]
fn kind(folder: &Path) -> u64 {
    rustix::fs::statfs(folder).map_or(0, |of| of.f_type as u64 & 0xffff_ffff)
}

#[cfg(not(target_os = "linux"))]
fn kind(_: &Path) -> u64 {
    0
}

/// Whether what this party keeps beside its key, and in its state folder, is open to its owner alone.
pub fn private(key: &Path, state: &Path) -> Finding {
    let beside = |end: &str| key.with_added_extension(end);
    let within = fs::read_dir(state).into_iter().flatten().flatten().map(|entry| entry.path());
    let of_key = ["persons", "unusable-rows.csv"].map(beside);
    let all = [state.to_owned(), Pinned::beside(key)].into_iter().chain(of_key).chain(within);
    let open: Vec<String> = all
        .filter(|path| path.is_file() || path.is_dir())
        .filter(|path| files::check_private(path).is_err())
        .map(|path| files::quoted(&path))
        .collect();
    if open.is_empty() {
        return Finding::pass("modes", "what lies beside the key and in the state folder is open to its owner alone");
    }
    let says = format!("open to other users of this machine: {}", some_of(&open, ", "));
    Finding::warn("modes", says, format!("close it, and ask who has read it: chmod -R go= {}", open.join(" ")))
}

/// Whether an aggregator can open its port on this machine, for UDP and TCP. It is shut again at once.
pub async fn port(identity: &Identity, port: u16) -> Finding {
    let at = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    let opened = async {
        let credentials = Credentials::from_seed(&identity.seed())?;
        listen(&Network::new(Transport::Auto, None), at, &credentials, only(Vec::new()), header_check).await
    };
    match opened.await {
        Ok(_) => Finding::pass("port", format!("port {port} of this machine is free for UDP and TCP")),
        Err(CarrierError::Bind { kind, source, .. }) if source.kind() == io::ErrorKind::AddrInUse => {
            let next = "if this party's own process runs, it is that one; otherwise end the other program, or listen on another one: --listen";
            Finding::warn("port", format!("port {port} of this machine is taken for {kind}"), next)
        }
        Err(e) => Finding::fail("port", e.into()),
    }
}

/// Whether a port can be opened on this machine. It is shut again at once.
///
/// # Errors
/// What the system says.
pub fn is_free(at: SocketAddr) -> io::Result<()> {
    use io::ErrorKind::{AddrInUse, AddrNotAvailable, PermissionDenied};
    match TcpListener::bind(at).and_then(|_| UdpSocket::bind(at)) {
        Err(e) if [AddrInUse, AddrNotAvailable, PermissionDenied].contains(&e.kind()) => Err(e),
        // A machine without IPv6 listens otherwise.
        _ => Ok(()),
    }
}

// ---- The others -----------------------------------------------------------------------------------------------------

/// Who asks: its key, and the documents that it holds.
pub struct Caller<'a> {
    /// Its identity.
    pub identity: Arc<Identity>,
    /// Its roster.
    pub roster: &'a Roster,
    /// The hash of its plan, where it has one.
    pub plan: Option<Hash>,
    /// The proxy on its way out.
    pub proxy: Option<Proxy>,
    /// How long one attempt may take.
    pub limit: Duration,
}

/// One way to an aggregator.
struct Way {
    check: String,
    /// What a firewall has to let through.
    over: &'static str,
    carrier: Network,
    at: Address,
    /// The address of a TCP connection without a proxy.
    straight: Option<SocketAddr>,
}

/// Looks an aggregator's name up, makes a handshake with its pinned key on every way by itself, and asks on each whether this
/// party would be let in ([APP-9]).
pub async fn reach(caller: &Caller<'_>, peer: &Member) -> Vec<Finding> {
    tried(caller, peer).await.0
}

/// The same, and whether a handshake came about.
async fn tried(caller: &Caller<'_>, peer: &Member) -> (Vec<Finding>, bool) {
    let address: Address = match peer.address.parse() {
        Ok(address) => address,
        Err(why) => {
            let next = "ask the coordinator for a roster with an address HOST:PORT";
            let what = format!("the address {:?} of {} cannot be used: {why}", peer.address, peer.name);
            return (vec![Finding::fail(&format!("{}: name", peer.name), Failure::input(what, next))], false);
        }
    };
    let proxy = caller.proxy.clone().filter(|proxy| proxy.serves(&address));
    let (named, found) = look_up(peer, &address, caller.limit, proxy.is_some()).await;
    let mut findings = vec![named];
    let mut running = JoinSet::new();
    for (order, way) in ways(peer, &address, &found, proxy).into_iter().enumerate() {
        let (identity, peer, limit) = (caller.identity.clone(), peer.clone(), caller.limit);
        let documents = (caller.roster.hash(), caller.plan);
        running.spawn(async move {
            let (roster, plan) = &documents;
            let knocked = knock((&identity, roster, *plan), &way.carrier, (&peer, &way.at), limit).await;
            // An attempt says only that no link came about; that a port is shut is worth knowing.
            let shut = match (&knocked, way.straight) {
                (Err(CarrierError::Unreachable { .. }), Some(at)) => is_shut(at, limit).await,
                _ => false,
            };
            (order, way, knocked, shut)
        });
    }
    let mut tried = running.join_all().await;
    tried.sort_by_key(|(order, ..)| *order);
    let reached = tried.iter().any(|(_, _, knocked, _)| knocked.is_ok());
    let mut answers = Vec::new();
    for (_, way, knocked, shut) in tried {
        findings.push(match knocked {
            Ok(Knocked { over, answer }) => {
                answers.push(answer);
                let (at, says) = (&way.at, "it holds the key of the roster, and this machine's was shown");
                Finding::pass(&way.check, format!("a handshake over {over} at {at}: {says}"))
            }
            Err(e) => unreached(peer, &way, e, shut, reached),
        });
    }
    if reached {
        findings.extend(let_in(caller, peer, answers));
    } else {
        findings.push(Finding::skip(&format!("{}: let in", peer.name), "not known, because it was not reached"));
    }
    (findings, reached)
}

/// Why an aggregator cannot be reached on any way; nothing if it can. Whoever answers is reached, whatever it says.
pub async fn unreached_by(caller: &Caller<'_>, peer: &Member) -> Option<Finding> {
    let (found, reached) = tried(caller, peer).await;
    let failed = |of: &Finding| of.code.is_some_and(|code| code != Code::Network as u8);
    let answered = reached || found.iter().any(failed);
    found.into_iter().filter(|_| !answered).find(|of| of.outcome == Outcome::Fail)
}

/// What the name stands for. Through a proxy, the proxy looks it up as well.
async fn look_up(peer: &Member, address: &Address, limit: Duration, proxied: bool) -> (Finding, Vec<SocketAddr>) {
    let check = format!("{}: name", peer.name);
    match address.resolve(limit).await {
        Ok(found) => {
            let all: Vec<String> = found.iter().map(|at| at.ip().to_string()).collect();
            (Finding::pass(&check, format!("{} is {}", address.host(), all.join(", "))), found)
        }
        Err(e) if proxied => (Finding::warn(&check, format!("{e}; the proxy looks it up itself"), ""), Vec::new()),
        Err(e) => (Finding::fail(&check, e.into()), Vec::new()),
    }
}

/// All ways that a run may take, each by itself.
fn ways(peer: &Member, address: &Address, found: &[SocketAddr], proxy: Option<Proxy>) -> Vec<Way> {
    let way = |name: &str, transport, proxy, at: Address, straight| Way {
        check: format!("{}: {name}", peer.name),
        over: if transport == Transport::Quic { "UDP" } else { "TCP" },
        carrier: Network::new(transport, proxy),
        at,
        straight,
    };
    let quic = |at: &SocketAddr| way("QUIC", Transport::Quic, None, Address::from(*at), None);
    let mut ways: Vec<Way> = found.iter().map(quic).collect();
    match proxy {
        Some(proxy) => ways.push(way("proxy", Transport::Tcp, Some(proxy), address.clone(), None)),
        None => ways.extend(found.iter().map(|at| way("TCP", Transport::Tcp, None, Address::from(*at), Some(*at)))),
    }
    ways
}

async fn is_shut(at: SocketAddr, limit: Duration) -> bool {
    let refused = |e: io::Error| e.kind() == io::ErrorKind::ConnectionRefused;
    timeout(limit, TcpStream::connect(at)).await.is_ok_and(|tried| tried.is_err_and(refused))
}

/// A way on which no link came about.
fn unreached(peer: &Member, way: &Way, e: CarrierError, shut: bool, otherwise: bool) -> Finding {
    let (name, port) = (&peer.name, way.at.port());
    let silent = matches!(e, CarrierError::Unreachable { .. });
    let says = match &e {
        CarrierError::Unreachable { .. } if shut => {
            format!("the machine at {} answers, and nothing listens there", way.at)
        }
        CarrierError::Unreachable { addr, .. } => format!("no answer from {addr}"),
        other => other.to_string(),
    };
    let failure = Failure::from(e);
    // Somebody else at a member's address is never a detail.
    if failure.code != Code::Network {
        return Finding::fail(&way.check, Failure { message: says, ..failure });
    }
    if otherwise {
        let over = way.over;
        let next = format!(
            "a run takes the other way, and has none left if that one is lost: let {over} to port {port} of {name} out; if {name} listens on \
             TCP alone, start with --transport tcp"
        );
        return Finding::warn(&way.check, says, next);
    }
    let advice = if silent {
        format!(
            "ask the operator of {name} whether it runs now and whether {port} is its port; if so, give the network team the lines for the \
             firewall"
        )
    } else {
        failure.advice
    };
    Finding::fail(&way.check, Failure { message: says, advice, ..failure })
}

const BETWEEN_RUNS: &str = "it knows this key, and no run is going on: it lets a party in when one begins";

/// What it says to this party's key and documents, and which release it is.
fn let_in(caller: &Caller<'_>, peer: &Member, answers: Vec<Result<Result<String, Denied>, Failure>>) -> Vec<Finding> {
    let check = format!("{}: let in", peer.name);
    let mut software = None;
    for answer in answers {
        match answer {
            Ok(Ok(found)) => software = Some(found),
            // Rosters are compared first.
            Ok(Err(Denied::Plan(_))) if caller.plan.is_none() => {
                let says = "it knows this key and roster; whether the plan is the same needs --plan";
                return vec![Finding::skip(&check, says)];
            }
            Ok(Err(Denied::NoRun)) => return vec![Finding::pass(&check, BETWEEN_RUNS)],
            Ok(Err(why)) => return vec![Finding::fail(&check, denied(peer, &why))],
            Err(failure) => return vec![Finding::fail(&check, failure)],
        }
    }
    let Some(software) = software else { return Vec::new() };
    let says = "it would let this party in, with this roster and plan; it was only asked, and no run is touched";
    let version = format!("{}: version", peer.name);
    let versions = if software == SOFTWARE {
        Finding::pass(&version, format!("{software}, as here"))
    } else {
        let next = "bring both ends to the same release where a run does not come about";
        Finding::warn(&version, format!("{software} there, {SOFTWARE} here"), next)
    };
    vec![Finding::pass(&check, says), versions]
}

// ---- For the network team -------------------------------------------------------------------------------------------

/// A line of the table for a firewall.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Rule {
    /// In or out, seen from this machine.
    pub direction: &'static str,
    /// Who opens the connection.
    pub from: String,
    /// To whom.
    pub to: String,
    /// The port there.
    pub port: u16,
    /// UDP or TCP.
    pub protocol: &'static str,
    /// What for.
    pub why: String,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule { direction, from, to, port, protocol, why } = self;
        write!(f, "{direction}: from {from} to {to}, port {port}, {protocol}: {why}")
    }
}

const HERE: &str = "this machine";

/// What a firewall has to let through for this party. Answers belong to the connections in the table.
pub fn firewall(roster: &Roster, me: PartyId, proxy: Option<&Proxy>) -> Vec<Rule> {
    let mut rules = Vec::new();
    let from = match me {
        PartyId::Coordinator => format!("all sites and {}", roster.intermediary.name),
        _ => "all sites".to_owned(),
    };
    let mut rule = |direction, [from, to]: [&str; 2], port, protocol, why: String| {
        rules.push(Rule { direction, from: from.into(), to: to.into(), port, protocol, why });
    };
    let own = roster.member(me).filter(|_| !matches!(me, PartyId::Site(_)));
    if let Some(port) = own.and_then(|own| Some(own.address.parse::<Address>().ok()?.port())) {
        rule("in", [&from, HERE], port, "UDP", "QUIC: questions and masked answers".into());
        rule("in", [&from, HERE], port, "TCP", "TLS 1.3: the same for whom UDP does not pass".into());
    }
    let mut names = false;
    for peer in dialled(roster, me) {
        let (Ok(address), name) = (peer.address.parse::<Address>(), &peer.name) else { continue };
        names |= address.host().parse::<IpAddr>().is_err();
        let mut out = |to: &Address, protocol, why| rule("out", [HERE, to.host()], to.port(), protocol, why);
        out(&address, "UDP", format!("QUIC to {name}: questions and masked answers"));
        match proxy.filter(|proxy| proxy.serves(&address)) {
            Some(proxy) => out(proxy.address(), "TCP", format!("HTTP proxy: CONNECT {address} to {name}")),
            None => out(&address, "TCP", format!("TLS 1.3 to {name}, where UDP does not pass")),
        }
    }
    if names {
        rule("out", [HERE, "the name server"], 53, "UDP", "to look up the names above".into());
    }
    rules
}

/// Whom this party dials.
pub fn dialled(roster: &Roster, me: PartyId) -> Vec<&Member> {
    match me {
        PartyId::Coordinator => Vec::new(),
        PartyId::Intermediary => vec![&roster.coordinator],
        PartyId::Site(_) => vec![&roster.coordinator, &roster.intermediary],
    }
}
