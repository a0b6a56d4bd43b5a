//! How a running party stands: who is connected, which round it is, since when. [`Progress`] is folded into a [`Status`], which a Unix-domain
//! socket in the party's state folder hands to whoever connects, as one JSON document. The folder is the owner's alone, and so is the
//! socket. What a status holds is names, numbers of rounds and of sites, and times: no value, no number of rows, no key.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use veilsum_proto::roster::PartyId;

use super::{
    config::{Party, Progress},
    door::short,
};
use crate::{
    app_messages::{SOFTWARE, clean},
    error::Failure,
};

/// The socket in the state folder.
const FILE: &str = "status.sock";

/// What a party does.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Parties come in, and no plan is run.
    Lobby,
    /// It waits for others, or for their keys.
    Waiting,
    /// Keys are exchanged, or this site has answered.
    Running,
    /// No more is asked.
    Ended,
}

/// How a party stands. Times are seconds since 1970, by this machine's clock.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// Its name.
    pub party: String,
    /// `coordinator`, `intermediary` or `site`.
    pub role: String,
    /// The federation's name, once there is a roster.
    pub federation: Option<String>,
    /// The first digits of the plan's fingerprint, once there is one.
    pub plan: Option<String>,
    /// The software and its version.
    pub software: String,
    /// When the process began.
    pub started: u64,
    /// When this was told.
    pub now: u64,
    /// What it does.
    pub phase: Phase,
    /// Since when.
    pub since: u64,
    /// The last round, where there was one.
    pub round: Option<Round>,
    /// Those of the roster that it has to do with.
    pub parties: Vec<Peer>,
    /// The last thing that went wrong, which the run may have got over.
    pub trouble: Option<Trouble>,
}

/// A round that was answered.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Round {
    /// Counted from 1.
    pub number: u32,
    /// Of so many at most.
    pub of: u32,
    /// What was asked; a site is not told.
    pub what: Option<String>,
    /// Sites in its total; a site is not told.
    pub sites: Option<usize>,
    /// When.
    pub at: u64,
}

/// Another party.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Its name.
    pub party: String,
    /// What its link runs on; nothing where there is none.
    pub over: Option<String>,
    /// Since when it is connected, or away; nothing where it never was there.
    pub since: Option<u64>,
    /// What was last heard of one that is not connected.
    pub heard: Option<String>,
    /// Why it is out of this run, where it is.
    pub lost: Option<String>,
}

/// Something that went wrong.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// What.
    pub what: String,
    /// When.
    pub at: u64,
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Peer {
    fn new(party: String) -> Peer {
        Peer { party, over: None, since: None, heard: None, lost: None }
    }
}

impl Status {
    fn new(party: &str, role: &str) -> Status {
        let now = now();
        Status {
            party: party.to_owned(),
            role: role.to_owned(),
            federation: None,
            plan: None,
            software: SOFTWARE.into(),
            started: now,
            now,
            phase: Phase::Lobby,
            since: now,
            round: None,
            parties: Vec::new(),
            trouble: None,
        }
    }

    /// Of this party's run, which begins.
    fn begin(&mut self, party: &Party, id: PartyId) {
        let roster = &party.federation.roster;
        let (hub, counter) = (roster.coordinator.name.clone(), roster.intermediary.name.clone());
        let sites = roster.sites.iter().map(|site| site.name.clone());
        let others: Vec<String> = match id {
            PartyId::Coordinator => std::iter::once(counter).chain(sites).collect(),
            PartyId::Intermediary => std::iter::once(hub).chain(sites).collect(),
            PartyId::Site(_) => vec![hub, counter],
        };
        let role = match id {
            PartyId::Coordinator => "coordinator",
            PartyId::Intermediary => "intermediary",
            PartyId::Site(_) => "site",
        };
        let started = self.started;
        *self = Status {
            federation: Some(roster.name.clone()),
            plan: Some(short(&party.federation.terms.hash())),
            started,
            phase: Phase::Waiting,
            parties: others.into_iter().map(Peer::new).collect(),
            ..Status::new(&party.name_of(id), role)
        };
    }

    fn enter(&mut self, phase: Phase, now: u64) {
        if self.phase != phase {
            (self.phase, self.since) = (phase, now);
        }
    }

    fn change(&mut self, name: &str, change: impl FnOnce(&mut Peer)) {
        if let Some(peer) = self.parties.iter_mut().find(|peer| peer.party == name) {
            change(peer);
        }
    }

    fn up(&mut self, name: &str, over: &str, now: u64) {
        self.change(name, |peer| (peer.over, peer.since, peer.heard) = (Some(over.into()), Some(now), None));
    }

    fn down(&mut self, name: &str, why: &str, now: u64) {
        self.change(name, |peer| (peer.over, peer.since, peer.heard) = (None, Some(now), Some(clean(why))));
        self.trouble = Some(Trouble { what: format!("lost {name}: {}", clean(why)), at: now });
    }

    /// What this means for how the party stands. `most` is the number of questions that its plan asks at most.
    fn fold(&mut self, progress: &Progress, most: u32, now: u64) {
        match progress {
            Progress::Ready { .. } => self.enter(Phase::Running, now),
            Progress::Round { number, of, what, sites } => {
                self.enter(Phase::Running, now);
                let what = Some((*what).to_owned());
                self.round = Some(Round { number: *number, of: *of, what, sites: Some(*sites), at: now });
            }
            Progress::Answered { number } => {
                self.enter(Phase::Running, now);
                self.round = Some(Round { number: *number, of: most, what: None, sites: None, at: now });
            }
            Progress::Ended => self.enter(Phase::Ended, now),
            Progress::Came { party, over } => self.up(party, over, now),
            Progress::Connected { to, over } => self.up(to, over, now),
            Progress::Left { party, why } => self.down(party, why, now),
            Progress::Dialling { to, why } => self.down(to, why, now),
            Progress::TurnedAway { party, why } => {
                let why = format!("turned away: {}", clean(why));
                self.change(party, |peer| (peer.since, peer.heard) = (Some(now), Some(why.clone())));
                self.trouble = Some(Trouble { what: format!("{party} was {why}"), at: now });
            }
            Progress::Lost { site, why } => {
                self.change(site, |peer| peer.lost = Some(clean(why)));
                self.trouble = Some(Trouble { what: format!("{site} is out of the run: {}", clean(why)), at: now });
            }
            // An aggregator names whoever it waits for; of those that are dialled it is told where, and why not.
            Progress::Waiting { parties, .. } => {
                for told in parties {
                    for peer in self.parties.iter_mut().filter(|peer| peer.over.is_none()) {
                        if let Some(rest) = told.strip_prefix(&peer.party).and_then(|rest| rest.strip_prefix(" at ")) {
                            peer.heard = Some(format!("not reached at {rest}"));
                        }
                    }
                }
            }
        }
    }
}

#[derive(Clone)]
struct Board(Arc<Mutex<Status>>);

impl Board {
    fn status(&self) -> MutexGuard<'_, Status> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(unix)]
    fn document(&self) -> Vec<u8> {
        let mut status = self.status().clone();
        status.now = now();
        // Text and numbers always have a JSON form.
        serde_json::to_vec(&status).unwrap_or_default()
    }
}

/// What shows how this process stands, as long as it is kept.
pub struct Window {
    board: Board,
    #[cfg(unix)]
    _socket: Option<socket::Socket>,
}

impl Window {
    /// For a process that may run one plan after another: `veilsum status` sees it from now on. Where that cannot be, a warning says why,
    /// and nothing else depends on it.
    pub fn open(folder: &Path, party: &str, role: &str) -> Window {
        let board = Board(Arc::new(Mutex::new(Status::new(party, role))));
        #[cfg(unix)]
        let _socket = socket::Socket::open(folder, board.clone())
            .map_err(|why| tracing::warn!("`veilsum status` will not see this process: {why}"))
            .ok();
        #[cfg(not(unix))]
        let _ = folder;
        Window {
            board,
            #[cfg(unix)]
            _socket,
        }
    }

    /// From now on it shows the run of this party, which also tells whomever it told before.
    pub fn watch(&self, party: &mut Party, id: PartyId) {
        self.board.status().begin(party, id);
        let (board, most, told) = (self.board.clone(), party.federation.work.max_questions(), party.progress.clone());
        party.progress = Arc::new(move |progress| {
            board.status().fold(&progress, most, now());
            told(progress);
        });
    }

    /// No plan is run any more, and the next one is waited for.
    pub fn rest(&self) {
        let mut status = self.board.status();
        (status.phase, status.since) = (Phase::Lobby, now());
    }

    /// What it shows.
    pub fn status(&self) -> Status {
        self.board.status().clone()
    }
}

/// For a process that runs one plan: [`Window::open`] and [`Window::watch`].
pub fn show(party: &mut Party, id: PartyId, folder: &Path) -> Window {
    let window = Window::open(folder, &party.name_of(id), "");
    window.watch(party, id);
    window
}

/// How the process stands whose state is in `folder`; nothing where none runs there.
///
/// # Errors
/// A [`Failure`] where one runs that may not be asked, or answers something else.
#[cfg(unix)]
pub fn ask(folder: &Path) -> Result<Option<Status>, Failure> {
    socket::ask(folder)
}

/// As on other systems; this one has no Unix-domain sockets.
///
/// # Errors
/// Always.
#[cfg(not(unix))]
pub fn ask(_: &Path) -> Result<Option<Status>, Failure> {
    Err(Failure::input(
        "how a party stands is told over a Unix-domain socket, and this system has none",
        "look at the screen of the party itself",
    ))
}

fn place(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

#[cfg(unix)]
mod socket {
    use std::{
        fs::{self, Permissions},
        io::{self, ErrorKind, Read, Write},
        os::unix::{
            fs::{DirBuilderExt, MetadataExt, PermissionsExt},
            net::{UnixListener, UnixStream},
        },
        path::{Path, PathBuf},
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
        time::Duration,
    };

    use super::{Board, Failure, Status, place};

    /// The name under which a socket is made, before it takes its place with the right mode.
    const FRESH: &str = "status.new";
    /// How long one who asks may take to read, and an answer may take.
    const LIMIT: Duration = Duration::from_secs(2);
    /// A roster of 1,000 sites, each with two sentences of 500 characters, takes less.
    const MAX_BYTES: u64 = 4 << 20;
    /// Where a connection cannot be taken, as without free file descriptors, the next one is tried after so long.
    const PAUSE: Duration = Duration::from_millis(200);

    pub(super) struct Socket {
        path: PathBuf,
        /// The file that this process made; another one may have taken its place.
        inode: u64,
        closing: Arc<AtomicBool>,
    }

    impl Socket {
        pub(super) fn open(folder: &Path, board: Board) -> Result<Socket, String> {
            let path = place(folder);
            let told = |e: io::Error| explained(&path, &e);
            if !folder.is_dir() {
                fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(told)?;
            }
            match UnixStream::connect(&path) {
                Ok(_) => return Err(format!("another process shows itself at {}", path.display())),
                // What a process left that was killed.
                Err(e) if e.kind() == ErrorKind::ConnectionRefused => {}
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(told(e)),
            }
            let fresh = folder.join(FRESH);
            let _ = fs::remove_file(&fresh);
            let listener = UnixListener::bind(&fresh).map_err(told)?;
            fs::set_permissions(&fresh, Permissions::from_mode(0o600)).map_err(told)?;
            let inode = fs::symlink_metadata(&fresh).map_err(told)?.ino();
            fs::rename(&fresh, &path).map_err(told)?;
            let closing = Arc::new(AtomicBool::new(false));
            let (seen, own) = (closing.clone(), path.clone());
            // A thread of its own answers also where everything else is busy.
            let answering = move || answer(&listener, &board, &seen);
            std::thread::Builder::new().name("status".into()).spawn(answering).map_err(told)?;
            Ok(Socket { path: own, inode, closing })
        }
    }

    impl Drop for Socket {
        fn drop(&mut self) {
            self.closing.store(true, Ordering::Release);
            let ours = fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode);
            if ours {
                // Wakes the thread.
                drop(UnixStream::connect(&self.path));
                let _ = fs::remove_file(&self.path);
            }
        }
    }

    fn answer(listener: &UnixListener, board: &Board, closing: &AtomicBool) {
        loop {
            let stream = listener.accept();
            if closing.load(Ordering::Acquire) {
                return;
            }
            match stream {
                Ok((mut stream, _)) => {
                    // One who does not read holds up the next for two seconds, and the run not at all.
                    let _ = stream.set_write_timeout(Some(LIMIT));
                    let _ = stream.write_all(&board.document());
                }
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    pub(super) fn ask(folder: &Path) -> Result<Option<Status>, Failure> {
        let path = place(folder);
        let stream = match UnixStream::connect(&path) {
            Ok(stream) => stream,
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => return Ok(None),
            Err(e) => {
                return Err(Failure::input(
                    explained(&path, &e),
                    "ask as the user under whom the party runs; it is its alone",
                ));
            }
        };
        let odd = |why: String| {
            Failure::input(
                format!("whoever listens at {} does not say how it stands ({why})", path.display()),
                "look whether the party runs, with this version of veilsum",
            )
        };
        let mut bytes = Vec::new();
        stream.set_read_timeout(Some(LIMIT * 2)).map_err(|e| odd(e.to_string()))?;
        (&stream).take(MAX_BYTES).read_to_end(&mut bytes).map_err(|e| odd(e.to_string()))?;
        // The process ended just now.
        if bytes.is_empty() {
            return Ok(None);
        }
        serde_json::from_slice(&bytes).map(Some).map_err(|e| odd(e.to_string()))
    }

    fn explained(path: &Path, e: &io::Error) -> String {
        // What the standard library says of a path that does not fit `sockaddr_un`.
        if e.kind() == ErrorKind::InvalidInput {
            return format!(
                "the path {} is too long for a Unix-domain socket, which takes some 100 bytes: give a shorter one (--state DIR)",
                path.display()
            );
        }
        format!("{}: {e}", path.display())
    }

    #[cfg(test)]
    mod tests {
        use std::sync::Mutex;

        use super::*;
        use crate::documents::tests::Folder;

        fn board(name: &str) -> Board {
            Board(Arc::new(Mutex::new(Status::new(name, "site"))))
        }

        fn mode(path: &Path) -> u32 {
            fs::metadata(path).unwrap().permissions().mode() & 0o777
        }

        #[test]
        fn one_document_a_connection_for_the_owner_alone_and_nothing_is_left() {
            let folder = Folder::new("status");
            let state = folder.0.join("a.state");
            assert_eq!(ask(&state).unwrap(), None);
            let socket = Socket::open(&state, board("a")).unwrap();
            assert_eq!((mode(&state), mode(&place(&state))), (0o700, 0o600));
            for _ in 0..3 {
                assert_eq!(ask(&state).unwrap().unwrap().party, "a");
            }
            // Somebody who never reads does not stop the next one.
            let silent = UnixStream::connect(place(&state)).unwrap();
            assert!(ask(&state).unwrap().is_some());
            drop((silent, socket));
            assert!(!place(&state).exists());
            assert_eq!(ask(&state).unwrap(), None);
        }

        #[test]
        fn a_dead_process_s_socket_is_replaced_and_a_living_one_s_is_not() {
            let folder = Folder::new("stale");
            drop(UnixListener::bind(place(&folder.0)).unwrap());
            assert_eq!(ask(&folder.0).unwrap(), None);
            let first = Socket::open(&folder.0, board("first")).unwrap();
            let why = Socket::open(&folder.0, board("second")).map(drop).unwrap_err();
            assert!(why.contains("another process"), "{why}");
            assert_eq!(ask(&folder.0).unwrap().unwrap().party, "first");
            drop(first);
            let _second = Socket::open(&folder.0, board("second")).unwrap();
            assert_eq!(ask(&folder.0).unwrap().unwrap().party, "second");
        }

        #[test]
        fn a_path_that_is_too_long_is_said_to_be() {
            let folder = Folder::new("long");
            let long = folder.0.join("x".repeat(120));
            let why = Socket::open(&long, board("a")).map(drop).unwrap_err();
            assert!(why.contains("too long") && why.contains("--state"), "{why}");
            assert!(ask(&long).unwrap_err().message.contains("too long"));
        }

        #[test]
        fn what_is_no_status_is_refused() {
            let folder = Folder::new("odd");
            let listener = UnixListener::bind(place(&folder.0)).unwrap();
            let other = std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"hello").unwrap());
            assert!(ask(&folder.0).unwrap_err().message.contains("does not say how it stands"));
            other.join().unwrap();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Status {
        let parties = names.iter().map(|name| Peer::new((*name).to_owned())).collect();
        Status { parties, phase: Phase::Waiting, ..Status::new("lead", "coordinator") }
    }

    #[test]
    fn comings_and_goings_rounds_and_phases_are_folded() {
        let mut status = of(&["counter", "site-1", "site-10"]);
        let at = status.since + 10;
        let mut fold = |at: u64, progress: Progress| {
            status.fold(&progress, 31, at);
            status.clone()
        };
        let came = fold(at, Progress::Came { party: "site-1".into(), over: "QUIC" });
        let site = came.parties[1].clone();
        assert_eq!((site.over.as_deref(), site.since, site.heard), (Some("QUIC"), Some(at), None));
        assert_eq!((came.phase, came.since), (Phase::Waiting, came.started));
        let ready = fold(at, Progress::Ready { sites: 2, threshold: 2 });
        assert_eq!((ready.phase, ready.since), (Phase::Running, at));
        let round = fold(at + 5, Progress::Round { number: 3, of: 31, what: "sums", sites: 2 });
        assert_eq!(round.since, at);
        assert_eq!(
            round.round,
            Some(Round { number: 3, of: 31, what: Some("sums".into()), sites: Some(2), at: at + 5 })
        );
        let left = fold(at, Progress::Left { party: "site-1".into(), why: "it hung\nup".into() });
        assert_eq!((left.parties[1].over.clone(), left.parties[1].heard.as_deref()), (None, Some("it hung up")));
        assert_eq!(left.trouble.unwrap().what, "lost site-1: it hung up");
        let turned = fold(at, Progress::TurnedAway { party: "site-10".into(), why: "another plan".into() });
        assert_eq!(turned.parties[2].heard.as_deref(), Some("turned away: another plan"));
        let waits = fold(at, Progress::Waiting { parties: vec!["site-10 at h:1 (no answer)".into()], seconds: 5 });
        assert_eq!(waits.parties[2].heard.as_deref(), Some("not reached at h:1 (no answer)"));
        assert_eq!(waits.parties[1].heard.as_deref(), Some("it hung up"), "another party's name begins like it");
        let lost = fold(at, Progress::Lost { site: "site-1".into(), why: "no answer".into() });
        assert_eq!(lost.parties[1].lost.as_deref(), Some("no answer"));
        assert_eq!(fold(at, Progress::Ended).phase, Phase::Ended);
        let answered = fold(at, Progress::Answered { number: 7 });
        assert_eq!(answered.round, Some(Round { number: 7, of: 31, what: None, sites: None, at }));
    }
}
