//! How a running party stands: who is connected, which round it is, since when, how the centres move. [`Progress`] is folded into a
//! [`Status`], which a Unix-domain socket in the party's state folder hands to whoever connects, as one JSON document. The folder is the
//! owner's alone, and so is the socket. A status holds what the events hold, and times: no row, no number of rows, no key.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Instant,
};

use serde::{Deserialize, Serialize};
use veilsum_proto::roster::PartyId;

use super::{
    config::Party,
    progress::{Awaited, Progress},
};
use crate::{
    agreed::fingerprint,
    app_messages::{SOFTWARE, clean},
    clock::seconds_since_1970,
    method_session::{Judged, Moved},
    plan::Judge,
    store::held,
};

/// What a party does.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Parties come in at the coordinator, and no plan is run.
    #[default]
    Lobby,
    /// A site or an intermediary that runs no plan waits for the next one.
    StandingBy,
    /// It waits for others, or for their keys.
    Waiting,
    /// Keys are exchanged, or this site has answered.
    Running,
    /// No more is asked.
    Ended,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Phase::Lobby => "lobby open",
            Phase::StandingBy => "standing by",
            Phase::Waiting => "waiting",
            Phase::Running => "running",
            Phase::Ended => "ending",
        })
    }
}

impl Phase {
    /// Others come to the coordinator alone.
    fn between_runs(role: &str) -> Phase {
        if role == "coordinator" { Phase::Lobby } else { Phase::StandingBy }
    }
}

/// How a party stands. Times are seconds since 1970, by this machine's clock.
#[derive(Serialize, Deserialize, Clone, PartialEq, Default, Debug)]
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
    /// The question that is open, where this party asks.
    pub open: Option<Open>,
    /// Seconds that the rest of the questions would take at most, if they take as long as those so far. Nothing while one takes longer.
    pub left: Option<u64>,
    /// Bytes of the frames that went over its links in this run: sent, and received.
    pub bytes: (u64, u64),
    /// How the centres of every K moved last, where totals are opened to this party.
    pub moved: Vec<Moved>,
    /// How every K was judged, where totals are opened to this party.
    pub curve: Vec<Judged>,
    /// Those of the roster that it has to do with.
    pub parties: Vec<Peer>,
    /// When the last run of this process ended.
    pub last_run: Option<u64>,
    /// The last thing that went wrong, which the run may have got over.
    pub trouble: Option<Trouble>,
    /// And how many things did in this run.
    pub troubles: u32,
    /// Questions of its plan at most.
    #[serde(skip)]
    most: u32,
    /// The number of the first question of this process, and when it was answered.
    #[serde(skip)]
    first: Option<(u32, Instant)>,
}

/// A question that is open.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Open {
    /// Counted from 1.
    pub number: u32,
    /// What is asked.
    pub what: String,
    /// Why.
    pub why: String,
    /// Sites that have answered this step of it, and sites that are asked; nothing where it was over before anybody could look.
    pub answers: Option<(usize, usize)>,
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
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Default, Debug)]
pub struct Peer {
    /// Its name.
    pub party: String,
    /// What its link runs on; nothing where there is none.
    pub over: Option<String>,
    /// Since when it is connected, or away; nothing where it never was there.
    pub since: Option<u64>,
    /// What was last heard of one that is not connected; of one that is, that it is waited for.
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

/// Questions of a party's plan at most.
pub(super) fn questions(party: &Party, id: PartyId) -> u32 {
    let work = &party.federation.work;
    match id {
        // The count, and the validation where it judges.
        PartyId::Intermediary if work.judge == Judge::Intermediary => 2,
        PartyId::Intermediary => 1,
        _ => work.recipe.max_questions(),
    }
}

/// This party's run begins.
pub(super) fn begins(party: &Party, id: PartyId) -> Progress {
    let roster = &party.federation.roster;
    let (hub, counter) = (roster.coordinator.name.clone(), roster.intermediary.name.clone());
    let sites = roster.sites.iter().map(|site| site.name.clone());
    let (role, others): (_, Vec<String>) = match id {
        PartyId::Coordinator => ("coordinator", std::iter::once(counter).chain(sites).collect()),
        PartyId::Intermediary => ("intermediary", std::iter::once(hub).chain(sites).collect()),
        PartyId::Site(_) => ("site", vec![hub, counter]),
    };
    Progress::Begins {
        party: party.name_of(id),
        role,
        federation: roster.name.clone(),
        plan: fingerprint(&party.federation.terms.hash().0),
        others,
        of: questions(party, id),
    }
}

impl Status {
    /// Of a process that has begun.
    pub fn new(party: &str, role: &str) -> Status {
        let now = seconds_since_1970();
        Status {
            party: party.to_owned(),
            role: role.to_owned(),
            software: SOFTWARE.into(),
            started: now,
            now,
            phase: Phase::between_runs(role),
            since: now,
            ..Status::default()
        }
    }

    fn rest(&mut self, now: u64) {
        (self.phase, self.since, self.last_run) = (Phase::between_runs(&self.role), now, Some(now));
        (self.open, self.left) = (None, None);
        self.parties.clear();
    }

    fn enter(&mut self, phase: Phase, now: u64) {
        if self.phase != phase {
            (self.phase, self.since) = (phase, now);
        }
    }

    fn moved(&mut self, moved: &Moved) {
        match self.moved.iter_mut().find(|last| last.k == moved.k) {
            Some(last) => last.clone_from(moved),
            None => self.moved.push(moved.clone()),
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
        // A link that ends with its run has done what it was for.
        if self.phase != Phase::Ended {
            self.troubled(format!("lost {name}: {}", clean(why)), now);
        }
    }

    /// How far the centres moved last: of those that do not rest the farthest.
    pub fn shift(&self) -> Option<f64> {
        let last = |resting: bool| {
            let some = self.moved.iter().filter(|moved| resting || !moved.rests);
            some.map(|moved| moved.shift).max_by(f64::total_cmp)
        };
        last(false).or_else(|| last(true))
    }

    fn troubled(&mut self, what: String, now: u64) {
        self.trouble = Some(Trouble { what, at: now });
        self.troubles += 1;
    }

    /// How long the rest takes at most, if it goes on as so far.
    fn pace(&mut self, number: u32, of: u32) {
        let (first, at) = *self.first.get_or_insert_with(|| (number, Instant::now()));
        let (done, rest) = (number.saturating_sub(first), of.saturating_sub(number));
        self.left = (done > 0).then(|| (at.elapsed().as_secs_f64() / f64::from(done) * f64::from(rest)).ceil() as u64);
    }

    /// What this means for how the party stands; `now` is in seconds since 1970.
    pub fn fold(&mut self, progress: &Progress, now: u64) {
        match progress {
            Progress::Begins { party, role, federation, plan, others, of } => {
                let (started, last_run) = (self.started, self.last_run);
                *self = Status {
                    federation: Some(federation.clone()),
                    plan: Some(plan.clone()),
                    started,
                    last_run,
                    phase: Phase::Waiting,
                    parties: others.iter().map(|party| Peer { party: party.clone(), ..Peer::default() }).collect(),
                    most: *of,
                    ..Status::new(party, role)
                };
            }
            Progress::Asked { number, what, why, .. } => {
                self.open = Some(Open { number: *number, what: (*what).into(), why: (*why).into(), answers: None });
            }
            Progress::Answers { arrived, of } => {
                self.open.iter_mut().for_each(|open| open.answers = Some((*arrived, *of)));
            }
            Progress::Moved { clusters } => clusters.iter().for_each(|moved| self.moved(moved)),
            Progress::Judged { curve } => self.curve.clone_from(curve),
            Progress::Bytes { sent, received } => self.bytes = (*sent, *received),
            Progress::Ready { .. } => self.enter(Phase::Running, now),
            Progress::Round { number, of, what, sites } => {
                self.enter(Phase::Running, now);
                self.open = None;
                self.parties.iter_mut().filter(|peer| peer.over.is_some()).for_each(|peer| peer.heard = None);
                self.pace(*number, *of);
                let what = Some((*what).to_owned());
                self.round = Some(Round { number: *number, of: *of, what, sites: Some(*sites), at: now });
            }
            Progress::Answered { number } => {
                self.enter(Phase::Running, now);
                let most = self.most;
                self.pace(*number, most);
                self.round = Some(Round { number: *number, of: most, what: None, sites: None, at: now });
            }
            Progress::Ended => {
                self.enter(Phase::Ended, now);
                (self.open, self.left) = (None, None);
                self.parties.iter_mut().filter(|peer| peer.over.is_some()).for_each(|peer| peer.heard = None);
            }
            Progress::Came { party, over } | Progress::Connected { to: party, over } => self.up(party, over, now),
            Progress::Left { party, why } | Progress::Dialling { to: party, why } => self.down(party, why, now),
            Progress::TurnedAway { party, why } => {
                let why = format!("turned away: {}", clean(why));
                self.change(party, |peer| (peer.since, peer.heard) = (Some(now), Some(why.clone())));
                self.troubled(format!("{party} was {why}"), now);
            }
            Progress::Lost { site, why } => {
                self.change(site, |peer| peer.lost = Some(clean(why)));
                self.troubled(format!("{site} is out of the run: {}", clean(why)), now);
            }
            // An aggregator names whoever it waits for; of those that are dialled it is told where, and why not.
            Progress::Waiting { parties, .. } => {
                self.left = None;
                for peer in &mut self.parties {
                    let awaited = parties.iter().find(|awaited| awaited.party == peer.party);
                    match (&peer.over, awaited) {
                        (Some(_), awaited) => {
                            peer.heard = awaited.map(|_| "waited for: it has not answered yet".to_owned());
                        }
                        (None, Some(Awaited { at: Some(at), heard, .. })) => {
                            peer.heard = Some(format!("not reached at {at} ({heard})"));
                        }
                        (None, _) => {}
                    }
                }
            }
        }
    }
}

/// As it is handed out now: text and numbers always have a JSON form.
fn document(board: &Mutex<Status>) -> Vec<u8> {
    let (now, status) = (seconds_since_1970(), held(board).clone());
    // A question that takes longer than all of the rest would have says that the pace is another.
    let silent = status.round.as_ref().map_or(0, |round| now.saturating_sub(round.at));
    let status = Status { now, left: status.left.filter(|left| silent <= *left), ..status };
    serde_json::to_vec(&status).unwrap_or_default()
}

/// What shows how this process stands, as long as it is kept.
pub struct Window {
    board: Arc<Mutex<Status>>,
    _socket: Option<socket::Socket>,
}

impl Window {
    /// For a process that may run one plan after another: `veilsum status` sees it from now on. Where that cannot be, a warning says why,
    /// and nothing else depends on it.
    pub fn open(folder: &Path, party: &str, role: &str) -> Window {
        let board = Arc::new(Mutex::new(Status::new(party, role)));
        let shown = board.clone();
        let _socket = socket::Socket::open(folder, Arc::new(move || document(&shown)))
            .map_err(|why| tracing::warn!("`veilsum status` will not see this process: {why}"))
            .ok();
        Window { board, _socket }
    }

    /// From now on it shows the run of this party, which also tells whomever it told before.
    pub fn watch(&self, party: &mut Party, id: PartyId) {
        held(&self.board).fold(&begins(party, id), seconds_since_1970());
        let (board, told) = (self.board.clone(), party.progress.clone());
        party.progress = Arc::new(move |progress| {
            held(&board).fold(&progress, seconds_since_1970());
            told(progress);
        });
    }

    /// No plan is run any more, and the next one is waited for. The links of the run are gone with it, and nobody is missing.
    pub fn rest(&self) {
        held(&self.board).rest(seconds_since_1970());
    }
}

mod socket;
pub use socket::ask;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Status {
        let parties = names.iter().map(|name| Peer { party: (*name).to_owned(), ..Peer::default() }).collect();
        Status { parties, phase: Phase::Waiting, most: 31, ..Status::new("lead", "coordinator") }
    }

    #[test]
    fn comings_and_goings_rounds_and_phases_are_folded() {
        let mut status = of(&["counter", "site-1", "site-10"]);
        let at = status.since + 10;
        let mut fold = |at: u64, progress: Progress| {
            status.fold(&progress, at);
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
        let awaited = |at: Option<&str>, heard: &str| Awaited {
            party: "site-10".into(),
            at: at.map(Into::into),
            heard: heard.into(),
        };
        let waits = fold(at, Progress::Waiting { parties: vec![awaited(Some("h:1"), "no answer")], seconds: 5 });
        assert_eq!(waits.parties[2].heard.as_deref(), Some("not reached at h:1 (no answer)"));
        assert_eq!(waits.parties[1].heard.as_deref(), Some("it hung up"), "another party's name begins like it");
        fold(at, Progress::Came { party: "site-10".into(), over: "QUIC" });
        fold(at, Progress::Round { number: 4, of: 31, what: "sums", sites: 2 });
        assert_eq!(fold(at, Progress::Round { number: 5, of: 31, what: "sums", sites: 2 }).left, Some(1));
        let silent = fold(at, Progress::Waiting { parties: vec![awaited(None, "connected 9 s ago")], seconds: 9 });
        assert_eq!(silent.parties[2].heard.as_deref(), Some("waited for: it has not answered yet"));
        assert_eq!((silent.parties[0].heard.as_deref(), silent.left), (None, None), "nobody knows how long it takes");
        let answered = fold(at, Progress::Round { number: 6, of: 31, what: "sums", sites: 2 });
        assert_eq!((answered.parties[2].heard.as_deref(), answered.left), (None, Some(1)));
        // Links that break in a run are troubles; those that end with it are none.
        let ended = fold(at, Progress::Ended);
        let gone = fold(at, Progress::Left { party: "site-10".into(), why: "it hung up".into() });
        assert_eq!((ended.troubles, gone.troubles, gone.parties[2].over.clone()), (2, 2, None));
        let lost = fold(at, Progress::Lost { site: "site-1".into(), why: "no answer".into() });
        assert_eq!(lost.parties[1].lost.as_deref(), Some("no answer"));
        assert_eq!(fold(at, Progress::Ended).phase, Phase::Ended);
        let answered = fold(at, Progress::Answered { number: 7 });
        assert_eq!(answered.round, Some(Round { number: 7, of: 31, what: None, sites: None, at }));
    }

    /// A site has no lobby. What is over shows neither an open question nor a time that is left.
    #[test]
    fn between_two_runs_a_party_rests() {
        let rests = [("coordinator", Phase::Lobby), ("intermediary", Phase::StandingBy), ("site", Phase::StandingBy)];
        for (role, phase) in rests {
            let mut status = Status::new("one", role);
            assert_eq!(status.phase, phase);
            status.fold(&Progress::Answered { number: 7 }, 6);
            (status.phase, status.left) = (Phase::Running, Some(9));
            status.rest(8);
            assert_eq!((status.phase, status.since, status.left), (phase, 8, None));
            assert_eq!(status.round.map(|round| round.number), Some(7));
        }
        assert_eq!(serde_json::to_string(&Phase::StandingBy).unwrap(), "\"standing-by\"");
    }
}
