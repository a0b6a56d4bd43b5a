//! What coordinator and intermediary have in common: a listener, its links, and the aggregator's state machine.
//!
//! One task owns the machine and sees everything as events in a queue; a task for every link only moves frames. A peer
//! that does not read loses frames (they are sent again) and then its link, and holds up nobody else.

use std::{
    collections::{BTreeMap, VecDeque},
    convert::Infallible,
    net::SocketAddr,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, mpsc};
use veilsum_proto::{
    Error,
    aggregator::{self, Aggregator, AggregatorConfig, Millis, Timing},
    message::{self, Kind},
    roster::PartyId,
    suite::Hash,
};

use super::{
    config::{Party, returning},
    door::{Door, LinkEvent, Outgoing},
    notice::{Heard, Notice, What},
    progress::{Awaited, Progress},
    reception::{Entrance, Opened},
    status,
};
use crate::{
    agreed::Federation,
    app_messages,
    cost::slots_of,
    error::Failure,
    random::system_rng,
    store::{HubJournal, Said, openings_to_bytes},
    traffic::Traffic,
};

mod close;
mod outputs;

/// What a hub tells its role.
pub enum HostEvent {
    /// From the state machine.
    Aggregator(aggregator::Event),
    /// A control frame from another party than a site, or of the application's kinds.
    Control {
        /// Who sent it; its key was checked by the transport, its signature is still to be.
        from: PartyId,
        /// Its kind.
        kind: Kind,
        /// All of it.
        bytes: Vec<u8>,
    },
    /// The deadline given to [`AggregatorHost::next`] passed.
    Deadline,
}

/// How a question that is open is told of.
struct Open {
    /// Not before.
    next: Instant,
    /// So many sites had answered when it was told last.
    arrived: usize,
}

struct Peer {
    id: u64,
    frames: mpsc::Sender<Outgoing>,
}

/// A listener, its links and the aggregator's machine.
pub struct AggregatorHost {
    party: Party,
    /// Coordinator or intermediary.
    role: PartyId,
    timing: Timing,
    aggregator: Aggregator,
    entrance: Option<Opened>,
    peers: BTreeMap<PartyId, Peer>,
    /// What was last heard of whom.
    heard: BTreeMap<PartyId, Heard>,
    events: mpsc::Receiver<LinkEvent>,
    /// What happened while something else was done.
    put_off: VecDeque<HostEvent>,
    started: Instant,
    session: Hash,
    pub(super) journal: HubJournal,
    /// Totals that a process before this one had.
    pub known: usize,
    /// Whether a process before this one had a deck.
    pub(super) begun: bool,
    /// What the other end of the count is told whenever it connects: the intermediary by the coordinator, sites by the intermediary.
    standing: Option<Arc<Vec<u8>>>,
    /// The open question, where there is one.
    open: Option<Open>,
    /// Why the journal could not be written.
    pub broken: Option<Failure>,
    /// What this hub sent and received, by sender.
    pub traffic: Traffic,
    /// Every question and opening of the run, those of a process before this one from its journal; none where nothing is opened.
    said: Option<Vec<Said>>,
}

impl AggregatorHost {
    /// Opens the entrance and begins a run of the aggregator that this party is. `state` is the folder of a journal from which a process after
    /// this one takes the run up; without one, a crash ends it.
    ///
    /// # Errors
    /// `CarrierError` where the port cannot be opened; `Error` where the configuration does not fit.
    pub async fn open(
        party: Party,
        role: PartyId,
        timing: Timing,
        entrance: Entrance,
        state: Option<&Path>,
    ) -> Result<AggregatorHost, Failure> {
        party.tell(status::begins(&party, role));
        let (sender, events) = mpsc::channel(1024);
        let entrance = Opened::new(entrance, Door::new(party.clone(), role, sender), &party).await?;
        let started = Instant::now();
        let session = party.session(role);
        let (journal, records) = HubJournal::open(state, &session)?;
        let begun = records.iter().any(aggregator::Record::is_deck);
        // Where it had begun before, whoever is in a deck was there.
        let machine = machine(&party, role, if begun { returning(timing) } else { timing });
        let known = records.iter().filter(|r| r.is_total()).count();
        let mut aggregator = if records.is_empty() {
            Aggregator::new(machine, Millis(0), &mut system_rng())?
        } else {
            tracing::warn!("taking up an interrupted run from the journal; totals so far: {known}");
            Aggregator::resume(machine, records, Millis(0))?
        };
        let said = unsaid(role);
        let before = aggregator.take_said();
        let mut host = AggregatorHost {
            party,
            role,
            timing,
            aggregator,
            entrance: Some(entrance),
            peers: BTreeMap::new(),
            heard: BTreeMap::new(),
            events,
            put_off: VecDeque::new(),
            started,
            session,
            journal,
            known,
            begun,
            standing: None,
            open: None,
            broken: None,
            traffic: Traffic::default(),
            said,
        };
        before.into_iter().for_each(|(directory, frame)| host.keep_said(directory, &frame));
        Ok(host)
    }

    /// What a process before this one left is of no use: another run begins.
    ///
    /// # Errors
    /// A [`Failure`] where the journal cannot be emptied.
    pub(super) fn begin_anew(&mut self) -> Result<(), Failure> {
        self.journal.clear()?;
        self.aggregator = Aggregator::new(machine(&self.party, self.role, self.timing), Millis(0), &mut system_rng())?;
        (self.known, self.begun, self.said) = (0, false, unsaid(self.role));
        self.standing = None;
        self.put_off.retain(|event| matches!(event, HostEvent::Control { .. }));
        Ok(())
    }

    /// The run's name.
    pub fn run(&self) -> Hash {
        self.aggregator.run()
    }

    /// Tells the intermediary, or as the intermediary all sites, now and whenever one connects again.
    pub fn stand_by<T: serde::Serialize>(&mut self, kind: Kind, message: &T) {
        let bytes = Arc::new(app_messages::frame(&self.party.identity, &self.session, kind, message));
        self.standing = Some(bytes);
        self.stand_again();
    }

    /// Tells them once more.
    pub(super) fn stand_again(&mut self) {
        let there: Vec<PartyId> = self.peers.keys().copied().collect();
        there.into_iter().for_each(|party| self.stand_towards(party));
    }

    fn stand_towards(&mut self, party: PartyId) {
        let is_told = matches!(party, PartyId::Site(_)) == (self.role == PartyId::Intermediary);
        if let Some(bytes) = self.standing.clone().filter(|_| is_told) {
            self.send(party, bytes);
        }
    }

    /// Where it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.entrance.as_ref().map(Opened::address)
    }

    /// Tells the machine something that is so now.
    fn input(&mut self, input: aggregator::Input<'_>) {
        self.aggregator.handle(input, Millis(self.started.elapsed().as_millis() as u64));
    }

    /// Sites that may still be asked.
    pub fn cohort(&self) -> Vec<u16> {
        self.aggregator.cohort()
    }

    /// The link that a party has now; another number is another link.
    pub(super) fn link(&self, party: PartyId) -> Option<u64> {
        self.peers.get(&party).map(|peer| peer.id)
    }

    /// Where it is time to, tells whom is waited for, and what was last heard of them: all who are not connected, of the
    /// intermediary and the sites that may still be asked, and the sites that are connected and have not answered.
    pub(super) fn tell_of_wait(&self, notice: &mut Notice) {
        let Some(seconds) = notice.due() else { return };
        let roster = &self.party.federation.roster;
        let awaited = self.aggregator.awaited();
        let sites = (0..roster.sites.len() as u16).filter(|site| awaited.contains(site)).map(PartyId::Site);
        let asks = self.role == PartyId::Coordinator;
        let counts = Some(PartyId::Intermediary).filter(|party| asks && !self.is_connected(*party));
        let parties: Vec<Awaited> = counts.into_iter().chain(sites).map(|party| self.awaited(party)).collect();
        if !parties.is_empty() {
            self.party.tell(Progress::Waiting { parties, seconds });
        }
    }

    /// Tells how many sites have answered, where the question takes long enough for somebody to look.
    fn tell_of_answers(&mut self) {
        if self.answers_due().is_some_and(|due| Instant::now() >= due) {
            let (arrived, of) = self.arrived();
            self.open = Some(Open { next: Instant::now() + ANSWERS, arrived });
            self.party.tell(Progress::Answers { arrived, of });
        }
    }

    /// When it is to be told how many sites have answered: where others have than was told.
    fn answers_due(&self) -> Option<Instant> {
        self.open.as_ref().filter(|open| open.arrived != self.arrived().0).map(|open| open.next)
    }

    /// Sites that have answered, and that are asked.
    fn arrived(&self) -> (usize, usize) {
        let of = self.aggregator.cohort().len();
        (of.saturating_sub(self.aggregator.awaited().len()), of)
    }

    /// A party, and what was last heard of it.
    pub(super) fn awaited(&self, party: PartyId) -> Awaited {
        let role = if party == PartyId::Intermediary { "intermediary, " } else { "" };
        let heard = self.heard.get(&party).map_or("never connected".into(), Heard::to_string);
        Awaited { party: self.party.name_of(party), at: None, heard: format!("{role}{heard}") }
    }

    /// What its connection tells of why a party is not there.
    pub(super) fn absence(&self, party: PartyId) -> Option<String> {
        match self.heard.get(&party) {
            None if self.begun => Some("it has not connected since this process was started again".to_owned()),
            None => Some("it never connected".to_owned()),
            Some(heard) => heard.why(),
        }
    }

    /// Lets parties in and asks nothing, for as long as it is polled.
    pub(super) async fn let_in(&mut self) -> Infallible {
        loop {
            match self.events.recv().await {
                // What the machine may know of it is told when it begins. Nobody was asked, so a frame is nothing.
                Some(event) => drop(self.notes(event)),
                None => std::future::pending().await,
            }
        }
    }

    /// The aggregator's time begins now; whoever came so far was only let in ([`AggregatorHost::let_in`]).
    pub(super) fn begin(&mut self) {
        self.started = Instant::now();
        for party in self.peers.keys() {
            if let PartyId::Site(site) = party {
                self.aggregator.handle(aggregator::Input::Attached(*site), Millis(0));
            }
        }
    }

    /// Goes on without these sites.
    pub(super) fn without(&mut self, sites: impl IntoIterator<Item = u16>) {
        sites.into_iter().for_each(|site| self.input(aggregator::Input::Without(site)));
    }

    /// Names of sites, for people.
    pub fn names<'a>(&self, sites: impl IntoIterator<Item = &'a u16>) -> Vec<String> {
        sites.into_iter().map(|s| self.party.name_of(PartyId::Site(*s))).collect()
    }

    /// Asks the cohort; the total comes as an event.
    pub fn ask(&mut self, query: Vec<u8>, words: usize) {
        self.open = Some(Open { next: Instant::now() + ANSWERS, arrived: 0 });
        self.input(aggregator::Input::Ask { query, words });
    }

    /// No question follows: the last total is opened to the sites.
    pub fn close_rounds(&mut self) {
        self.input(aggregator::Input::Close);
        // What is said next may rest on it, so it leaves first.
        while self.broken.is_none()
            && let Some(output) = self.aggregator.poll()
        {
            if let Some(event) = self.carry_out(output) {
                self.put_off.push_back(HostEvent::Aggregator(event));
            }
        }
    }

    /// Keeps a question or an opening, once: every site is sent the same. More than [`MOST_SAID`] bytes are not kept.
    fn keep_said(&mut self, directory: Hash, frame: &[u8]) {
        let (Some(Kind::Ask | Kind::Opening), Some(said)) = (message::kind_of(frame), &mut self.said) else { return };
        if !said.iter().rev().take(2).any(|before| before.frame == frame) {
            if said.iter().map(|said| said.frame.len()).sum::<usize>() + frame.len() > MOST_SAID {
                tracing::warn!("the openings of this run are too many to keep here: each site's folder has them all");
                self.said = None;
                return;
            }
            said.push(Said { directory, frame: frame.to_vec() });
        }
    }

    /// All questions and openings of the run, as a file has them, where they are all known here.
    pub(super) fn openings(&self) -> Option<Vec<u8>> {
        self.said.as_deref().map(openings_to_bytes)
    }

    /// Sends a control frame to one party, if it has a link.
    pub fn tell<T: serde::Serialize>(&mut self, to: PartyId, kind: Kind, message: &T) -> bool {
        let bytes = Arc::new(app_messages::frame(&self.party.identity, &self.session, kind, message));
        self.send(to, bytes)
    }

    /// Whether this party is connected.
    pub fn is_connected(&self, party: PartyId) -> bool {
        self.peers.contains_key(&party)
    }

    fn send(&mut self, to: PartyId, bytes: Arc<Vec<u8>>) -> bool {
        if let Some(failed) = self.sync() {
            self.put_off.push_back(HostEvent::Aggregator(failed));
        }
        if self.broken.is_some() && message::kind_of(&bytes) != Some(Kind::Aborted) {
            return false;
        }
        let Some(peer) = self.peers.get(&to) else { return false };
        self.traffic.sent(&self.party.name_of(self.role), &bytes);
        self.party.bytes.sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        // A full queue means that the peer does not read; what matters is sent again by the state machine.
        peer.frames.try_send(Outgoing::Frame(bytes)).is_ok()
    }

    /// The next thing that happens, at the latest at `deadline`.
    pub async fn next(&mut self, deadline: Option<Instant>) -> HostEvent {
        loop {
            if let Some(event) = self.put_off.pop_front() {
                return event;
            }
            while let Some(output) = self.aggregator.poll() {
                if let Some(event) = self.carry_out(output) {
                    return HostEvent::Aggregator(event);
                }
            }
            if let Some(failed) = self.sync() {
                return HostEvent::Aggregator(failed);
            }
            let wake = self.aggregator.next_wake().map(|Millis(at)| self.started + Duration::from_millis(at));
            let until = [wake, deadline, self.answers_due()].into_iter().flatten().min();
            let mut events = Vec::new();
            tokio::select! {
                // What came meanwhile is taken with it: signatures are then verified on all cores.
                _ = self.events.recv_many(&mut events, AT_ONCE) => self.take(events),
                // Without a time, a tick now and then does no harm.
                () = tokio::time::sleep_until(until.unwrap_or_else(|| Instant::now() + NOTHING_DUE).into()) => {
                    if deadline.is_some_and(|d| Instant::now() >= d) {
                        return HostEvent::Deadline;
                    }
                    self.tell_of_answers();
                    self.input(aggregator::Input::Tick);
                }
            }
        }
    }

    /// Hands frames of a round to the state machine, as many together as there are between two other events.
    fn take(&mut self, events: Vec<LinkEvent>) {
        let mut frames = Vec::new();
        for event in events {
            match event {
                LinkEvent::Frame { party: PartyId::Site(from), id, bytes, room } if is_of_round(&bytes) => {
                    if self.is_heard(PartyId::Site(from), id, &bytes) {
                        frames.push((from, bytes, room));
                    }
                }
                other => {
                    self.hear(std::mem::take(&mut frames));
                    let control = self.link_event(other);
                    self.put_off.extend(control);
                }
            }
        }
        self.hear(frames);
    }

    /// Notes a frame of a party; false where it came over a link that is not its any more.
    fn is_heard(&mut self, party: PartyId, id: u64, bytes: &[u8]) -> bool {
        let heard = self.peers.get(&party).is_some_and(|peer| peer.id == id);
        if heard {
            self.traffic.sent(&self.party.name_of(party), bytes);
            self.party.bytes.received.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            (self.party.heard)(party, bytes);
        }
        heard
    }

    fn hear(&mut self, frames: Vec<FromSite>) {
        let all: Vec<(u16, &[u8])> = frames.iter().map(|(from, bytes, _)| (*from, &bytes[..])).collect();
        if !all.is_empty() {
            self.input(aggregator::Input::Messages(&all));
        }
        self.tell_of_answers();
    }

    fn link_event(&mut self, event: LinkEvent) -> Option<HostEvent> {
        if let LinkEvent::Frame { party, id, bytes, room: _room } = event {
            let heard = self.is_heard(party, id, &bytes);
            let kind = message::kind_of(&bytes).filter(|_| heard)?;
            return Some(HostEvent::Control { from: party, kind, bytes });
        }
        if let Some(input) = self.notes(event) {
            self.input(input);
        }
        None
    }

    /// Notes what became of a link: of a site's with what that is to the machine.
    fn notes(&mut self, event: LinkEvent) -> Option<aggregator::Input<'static>> {
        match event {
            LinkEvent::Up { party, id, over, frames } => {
                // A newer link replaces an older one whose other end is gone; its sender is dropped here and ends it.
                self.peers.insert(party, Peer { id, frames });
                self.heard.insert(party, Heard::now(What::Connected, ""));
                let name = self.party.name_of(party);
                self.party.tell(Progress::Came { party: name, over });
                self.stand_towards(party);
                if let PartyId::Site(site) = party { Some(aggregator::Input::Attached(site)) } else { None }
            }
            LinkEvent::Down { party, id, why } => match (self.down(party, id, &why), party) {
                (true, PartyId::Site(site)) => Some(aggregator::Input::Detached(site)),
                _ => None,
            },
            LinkEvent::TurnedAway { party, why } => {
                if !self.is_connected(party) {
                    self.heard.insert(party, Heard::now(What::TurnedAway, &why));
                    let party = self.party.name_of(party);
                    self.party.tell(Progress::TurnedAway { party, why });
                }
                None
            }
            LinkEvent::Frame { .. } => None,
        }
    }

    /// Whether that was the party's link.
    fn down(&mut self, party: PartyId, id: u64, why: &str) -> bool {
        if self.peers.get(&party).is_none_or(|p| p.id != id) {
            return false;
        }
        self.peers.remove(&party);
        self.heard.insert(party, Heard::now(What::Left, why));
        let name = self.party.name_of(party);
        self.party.tell(Progress::Left { party: name, why: why.into() });
        true
    }

    /// The run is over for good: there is nothing to take up.
    pub fn forget(&mut self) {
        if let Err(e) = self.journal.clear() {
            tracing::warn!("{e}; remove it before the next run");
        }
    }

    /// Opens a control frame of this run from `from`.
    ///
    /// # Errors
    /// `Error` naming the sender.
    pub fn open_control<T: serde::Serialize + serde::de::DeserializeOwned>(
        &self,
        from: PartyId,
        kind: Kind,
        bytes: &[u8],
    ) -> Result<T, Error> {
        let roster = &self.party.federation.roster;
        let member = roster.member(from).ok_or(Error::ApiMisuse("a party of the roster"))?;
        message::open(bytes, &self.session, &member.key, &member.name, kind)
    }
}

/// The list of what a run has said, before it says anything; none where this aggregator opens nothing.
fn unsaid(role: PartyId) -> Option<Vec<Said>> {
    role.opens().then(Vec::new)
}

/// Bytes of questions and openings that an aggregator holds for the file beside its result.
const MOST_SAID: usize = 128 << 20;
/// How often it is told at most how many sites have answered.
const ANSWERS: Duration = Duration::from_millis(250);

/// The time in which something is due where nothing is.
const NOTHING_DUE: Duration = Duration::from_secs(3600);

/// Frames for the state machine that are taken together at most; what they are in memory is bounded by the door.
const AT_ONCE: usize = 256;

/// A frame for the state machine, and the room that it takes while it is held.
type FromSite = (u16, Vec<u8>, OwnedSemaphorePermit);

fn is_of_round(frame: &[u8]) -> bool {
    message::kind_of(frame).is_some_and(|kind| (kind as u16) < Kind::Hello as u16)
}

fn machine(party: &Party, role: PartyId, timing: Timing) -> AggregatorConfig {
    let Federation { roster, terms, .. } = party.federation.clone();
    let slots = slots_of(&terms, role);
    AggregatorConfig { identity: party.identity.clone(), roster, terms, role, timing, slots }
}
