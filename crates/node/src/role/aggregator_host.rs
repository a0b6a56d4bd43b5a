//! What coordinator and intermediary have in common: a listener, its links, and the aggregator's state machine.
//!
//! One task owns the machine and sees everything as events in a queue; a task for every link only moves frames. A peer
//! that does not read loses frames (they are sent again) and then its link, and holds up nobody else.

use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use veilsum_proto::{
    Error,
    aggregator::{self, Aggregator, AggregatorConfig, Millis, Timing},
    message::{self, Kind},
    roster::PartyId,
    suite::Hash,
};

use super::{config::Party, system_rng};
use crate::{
    app_messages::{self, Denied, Hello, SOFTWARE, Welcome},
    carrier::{self, CarrierError, Credentials, Link, LinkReceiver, LinkSender, Listener},
    error::Failure,
    store::Journal,
    traffic::Traffic,
};

/// Frames that may wait for one slow link; more are dropped and sent again later.
const QUEUE: usize = 64;
/// KiB of received frames that may wait for the state machine, over all links; more are left with their senders.
const ROOM: usize = 256 << 10;
/// A peer that takes longer over one frame loses its link.
const SEND_LIMIT: Duration = Duration::from_secs(30);
/// A peer that has connected must greet within this time.
const HELLO_LIMIT: Duration = Duration::from_secs(10);
/// How long the last frames may take to be acknowledged.
const FINISH_LIMIT: Duration = Duration::from_secs(5);

/// Who listens, and where.
pub struct HostConfig {
    /// This aggregator.
    pub party: Party,
    /// Coordinator or intermediary.
    pub role: PartyId,
    /// How long it waits.
    pub timing: Timing,
    /// Slots of a deck.
    pub slots: u16,
    /// Folder of a journal from which a process after this one takes the run up; without one, a crash ends it.
    pub state: Option<PathBuf>,
}

enum LinkEvent {
    Up { party: PartyId, id: u64, frames: mpsc::Sender<Outgoing> },
    Frame { party: PartyId, id: u64, bytes: Vec<u8>, room: OwnedSemaphorePermit },
    Down { party: PartyId, id: u64 },
}

enum Outgoing {
    Frame(Arc<Vec<u8>>),
    Finish,
}

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

struct Peer {
    id: u64,
    frames: mpsc::Sender<Outgoing>,
}

/// A listener, its links and the aggregator's machine.
pub struct AggregatorHost {
    config: HostConfig,
    aggregator: Aggregator,
    listener: Option<Listening>,
    peers: BTreeMap<PartyId, Peer>,
    events: mpsc::Receiver<LinkEvent>,
    /// What the machine reported while something else was done.
    put_off: VecDeque<aggregator::Event>,
    started: Instant,
    session: Hash,
    journal: Option<Journal<aggregator::Record>>,
    /// Totals that a process before this one had.
    pub known: usize,
    /// Why the journal could not be written.
    pub broken: Option<Failure>,
    /// What this hub sent and received, by sender.
    pub traffic: Traffic,
}

struct Listening {
    address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl AggregatorHost {
    /// Opens the port and begins a run.
    ///
    /// # Errors
    /// `CarrierError` where the port cannot be opened; `Error` where the configuration does not fit.
    pub async fn open(config: HostConfig, address: SocketAddr) -> Result<AggregatorHost, Failure> {
        let credentials = Credentials::from_seed(&config.party.identity.seed())?;
        let allowed = carrier::only(config.party.federation.roster.members().map(|m| m.key.0).collect());
        let listener = config.party.carrier.listen(address, &credentials, allowed, app_messages::header_check).await?;
        let address = listener.local_addr();
        let started = Instant::now();
        let session = config.party.session(config.role);
        let machine = AggregatorConfig {
            identity: config.party.identity.clone(),
            roster: config.party.federation.roster.clone(),
            terms: config.party.federation.terms.clone(),
            role: config.role,
            timing: config.timing,
            slots: config.slots,
        };
        let (journal, records) = match &config.state {
            Some(folder) => Journal::<aggregator::Record>::of(folder, &session)
                .map(|(journal, records)| (Some(journal), records))?,
            None => (None, Vec::new()),
        };
        let known = records.iter().filter(|r| r.is_total()).count();
        let aggregator = if records.is_empty() {
            Aggregator::new(machine, Millis(0), &mut system_rng())?
        } else {
            tracing::warn!("taking up an interrupted run from the journal; totals so far: {known}");
            Aggregator::resume(machine, records, Millis(0))?
        };
        let (sender, events) = mpsc::channel(1024);
        let door = Door {
            party: config.party.clone(),
            hello: Hello {
                roster: config.party.federation.roster.hash(),
                plan: config.party.federation.terms.hash(),
                software: SOFTWARE.into(),
            },
            role: config.role,
            events: sender,
            room: Arc::new(Semaphore::new(ROOM)),
        };
        let task = tokio::spawn(accept(listener, Arc::new(door)));
        Ok(AggregatorHost {
            config,
            aggregator,
            listener: Some(Listening { address, task }),
            peers: BTreeMap::new(),
            events,
            put_off: VecDeque::new(),
            started,
            session,
            journal,
            known,
            broken: None,
            traffic: Traffic::default(),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.as_ref().map(|l| l.address)
    }

    /// The session that control frames of this run are signed for.
    pub fn session(&self) -> Hash {
        self.session
    }

    fn now(&self) -> Millis {
        Millis(self.started.elapsed().as_millis() as u64)
    }

    /// Sites that may still be asked.
    pub fn cohort(&self) -> Vec<u16> {
        self.aggregator.cohort()
    }

    /// The link that a party has now; another number is another link.
    pub(super) fn link(&self, party: PartyId) -> Option<u64> {
        self.peers.get(&party).map(|peer| peer.id)
    }

    /// Sites whose answer is awaited now.
    pub fn awaited(&self) -> Vec<u16> {
        self.aggregator.awaited().into_iter().collect()
    }

    /// The aggregator's time begins now; the links that came so far were only let in.
    pub(super) fn begin(&mut self) {
        self.started = Instant::now();
    }

    /// Goes on without these sites.
    pub(super) fn without(&mut self, sites: impl IntoIterator<Item = u16>) {
        let now = self.now();
        sites.into_iter().for_each(|site| self.aggregator.handle(aggregator::Input::Without(site), now));
    }

    /// Names of sites, for people.
    pub fn names(&self, sites: &[u16]) -> Vec<String> {
        sites.iter().map(|s| self.config.party.name_of(PartyId::Site(*s))).collect()
    }

    /// Sites that have a link now.
    pub fn connected(&self) -> usize {
        self.peers.keys().filter(|p| matches!(p, PartyId::Site(_))).count()
    }

    /// Asks the cohort; the total comes as an event.
    pub fn ask(&mut self, query: Vec<u8>, words: usize) {
        let now = self.now();
        self.aggregator.handle(aggregator::Input::Ask { query, words }, now);
    }

    /// No question follows: the last total is opened to the sites.
    pub fn close_rounds(&mut self) {
        let now = self.now();
        self.aggregator.handle(aggregator::Input::Close, now);
        // What is said next may rest on it, so it leaves first.
        while let Some(output) = self.aggregator.poll() {
            if let Some(event) = self.carry_out(output) {
                self.put_off.push_back(event);
            }
        }
    }

    /// Does what the machine wants, and gives what it reports.
    fn carry_out(&mut self, output: aggregator::Output) -> Option<aggregator::Event> {
        match output {
            aggregator::Output::Persist(record) => {
                let failed = self.journal.as_mut()?.append(&record).err()?;
                // Nothing that this entry was to protect leaves.
                self.journal = None;
                let why = failed.to_string();
                self.broken = Some(failed.into());
                Some(aggregator::Event::Failed(Error::Journal(why)))
            }
            aggregator::Output::Send { to, bytes } => {
                self.send(PartyId::Site(to), bytes);
                None
            }
            aggregator::Output::Event(event) => Some(event),
        }
    }

    /// Sends a control frame to one party, if it has a link.
    pub fn tell<T: serde::Serialize>(&mut self, to: PartyId, kind: Kind, message: &T) -> bool {
        let bytes = Arc::new(app_messages::frame(&self.config.party.identity, &self.session, kind, message));
        self.send(to, bytes)
    }

    /// Whether this party is connected.
    pub fn is_connected(&self, party: PartyId) -> bool {
        self.peers.contains_key(&party)
    }

    fn send(&mut self, to: PartyId, bytes: Arc<Vec<u8>>) -> bool {
        let Some(peer) = self.peers.get(&to) else { return false };
        self.traffic.sent(&self.config.party.name_of(self.config.role), &bytes);
        // A full queue means that the peer does not read; what matters is sent again by the state machine.
        peer.frames.try_send(Outgoing::Frame(bytes)).is_ok()
    }

    /// The next thing that happens, at the latest at `deadline`.
    pub async fn next(&mut self, deadline: Option<Instant>) -> HostEvent {
        if let Some(event) = self.put_off.pop_front() {
            return HostEvent::Aggregator(event);
        }
        loop {
            while let Some(output) = self.aggregator.poll() {
                if let Some(event) = self.carry_out(output) {
                    return HostEvent::Aggregator(event);
                }
            }
            let wake = self.aggregator.next_wake().map(|Millis(at)| self.started + Duration::from_millis(at));
            let until = [wake, deadline].into_iter().flatten().min();
            let event = match until {
                Some(at) => tokio::select! {
                    event = self.events.recv() => event,
                    () = tokio::time::sleep_until(at.into()) => {
                        if deadline.is_some_and(|d| Instant::now() >= d) {
                            return HostEvent::Deadline;
                        }
                        let now = self.now();
                        self.aggregator.handle(aggregator::Input::Tick, now);
                        continue;
                    }
                },
                None => self.events.recv().await,
            };
            let Some(event) = event else { continue };
            if let Some(event) = self.link_event(event) {
                return event;
            }
        }
    }

    fn link_event(&mut self, event: LinkEvent) -> Option<HostEvent> {
        let now = self.now();
        match event {
            LinkEvent::Up { party, id, frames } => {
                // A newer link of the same party replaces the older one, whose sender is dropped here and ends it.
                self.peers.insert(party, Peer { id, frames });
                tracing::info!(party = %self.config.party.name_of(party), "connected");
                if let PartyId::Site(site) = party {
                    self.aggregator.handle(aggregator::Input::Attached(site), now);
                }
                None
            }
            LinkEvent::Down { party, id } => {
                if self.peers.get(&party).is_some_and(|p| p.id == id) {
                    self.peers.remove(&party);
                    tracing::info!(party = %self.config.party.name_of(party), "disconnected");
                    if let PartyId::Site(site) = party {
                        self.aggregator.handle(aggregator::Input::Detached(site), now);
                    }
                }
                None
            }
            LinkEvent::Frame { party, id, bytes, room: _room } => {
                if self.peers.get(&party).is_none_or(|p| p.id != id) {
                    return None;
                }
                self.traffic.sent(&self.config.party.name_of(party), &bytes);
                self.config.party.received(party, &bytes);
                let kind = message::kind_of(&bytes)?;
                match party {
                    PartyId::Site(from) if (kind as u16) < Kind::Hello as u16 => {
                        self.aggregator.handle(aggregator::Input::Message { from, bytes: &bytes }, now);
                        None
                    }
                    from => Some(HostEvent::Control { from, kind, bytes }),
                }
            }
        }
    }

    /// The run is over for good: there is nothing to take up.
    pub fn forget(&mut self) {
        if let Some(journal) = &mut self.journal
            && let Err(e) = journal.rewrite(&[])
        {
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
        session: &Hash,
        kind: Kind,
        bytes: &[u8],
    ) -> Result<T, Error> {
        let member =
            self.config.party.federation.roster.member(from).ok_or(Error::ApiMisuse("a party of the roster"))?;
        message::open(bytes, session, &member.key, &member.name, kind)
    }

    /// Tells everybody the last word, waits until it is acknowledged, and closes the port.
    pub async fn close(mut self, last: impl Fn(PartyId) -> Option<(Kind, Vec<u8>)>) -> Traffic {
        let parties: Vec<PartyId> = self.peers.keys().copied().collect();
        for party in parties {
            if let Some((kind, message)) = last(party) {
                let bytes = message::frame_encoded(
                    &self.config.party.identity,
                    &self.session,
                    kind,
                    &Hash::default(),
                    &message,
                );
                self.send(party, Arc::new(bytes));
            }
        }
        self.listener = None;
        let mut waiting = tokio::task::JoinSet::new();
        for (_, peer) in std::mem::take(&mut self.peers) {
            waiting.spawn(async move {
                let _ = peer.frames.send(Outgoing::Finish).await;
                peer.frames.closed().await;
            });
        }
        let all = async { while waiting.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(FINISH_LIMIT + Duration::from_secs(1), all).await;
        self.traffic
    }
}

struct Door {
    party: Party,
    hello: Hello,
    role: PartyId,
    events: mpsc::Sender<LinkEvent>,
    room: Arc<Semaphore>,
}

async fn accept(mut listener: Listener, door: Arc<Door>) {
    let mut id = 0;
    loop {
        match listener.accept().await {
            Ok(link) => {
                id += 1;
                tokio::spawn(greet(link, door.clone(), id));
            }
            Err(e) => {
                tracing::error!("the listener is closed: {e}");
                return;
            }
        }
    }
}

/// Brings one link from its first frame to a place among the peers, then moves its frames.
async fn greet(link: Link, door: Arc<Door>, id: u64) {
    let key = veilsum_proto::identity::PublicKey(link.peer());
    let Some(party) = door.party.federation.roster.find(&key) else { return };
    let name = door.party.name_of(party);
    let (mut sender, mut receiver) = link.split();
    let first = tokio::time::timeout(HELLO_LIMIT, receiver.recv()).await;
    let Ok(Ok(Some(bytes))) = first else {
        tracing::warn!(party = %name, "connected and did not greet");
        return;
    };
    let session = app_messages::greeting_session();
    let knocks = message::kind_of(&bytes) == Some(Kind::Knock);
    let kind = if knocks { Kind::Knock } else { Kind::Hello };
    let verdict = match message::open::<Hello>(&bytes, &session, &key, &name, kind) {
        Err(e) => Err(e.to_string()),
        Ok(hello) if hello.roster != door.hello.roster => Err(format!(
            "you hold roster {}, this federation's is {}: compare fingerprints and get the current file",
            short(&hello.roster),
            short(&door.hello.roster)
        )),
        Ok(hello) if hello.plan != door.hello.plan => Err(format!(
            "you hold plan {}, this run's is {}: get the current plan file",
            short(&hello.plan),
            short(&door.hello.plan)
        )),
        Ok(_) if party == door.role => Err("this is the identity of the party you dialled".into()),
        Ok(_) => Ok(()),
    };
    if let Err(why) = verdict {
        if knocks {
            tracing::info!(party = %name, "asked whether it would be let in, and would not: {why}");
        } else {
            tracing::warn!(party = %name, "not accepted: {why}");
        }
        let denied = app_messages::frame(&door.party.identity, &session, Kind::Denied, &Denied { why });
        let _ = sender.send_within(&denied, SEND_LIMIT).await;
        let _ = sender.finish(FINISH_LIMIT).await;
        return;
    }
    let welcome =
        app_messages::frame(&door.party.identity, &session, Kind::Welcome, &Welcome { software: SOFTWARE.into() });
    if sender.send_within(&welcome, SEND_LIMIT).await.is_err() {
        return;
    }
    // [APP-9]: nobody takes a place by it, and whoever has one keeps it.
    if knocks {
        let _ = sender.finish(FINISH_LIMIT).await;
        return;
    }
    let (frames, queue) = mpsc::channel(QUEUE);
    if door.events.send(LinkEvent::Up { party, id, frames }).await.is_err() {
        return;
    }
    let write = write(sender, queue);
    let read = read(receiver, party, id, &door);
    let why = tokio::select! { why = write => why, why = read => why };
    if let Err(e) = why {
        tracing::debug!(party = %name, "link ended: {e}");
    }
    let _ = door.events.send(LinkEvent::Down { party, id }).await;
}

async fn write(mut sender: LinkSender, mut queue: mpsc::Receiver<Outgoing>) -> Result<(), CarrierError> {
    while let Some(outgoing) = queue.recv().await {
        match outgoing {
            Outgoing::Frame(bytes) => sender.send_within(&bytes, SEND_LIMIT).await?,
            Outgoing::Finish => {
                sender.finish(FINISH_LIMIT).await?;
                return Ok(());
            }
        }
    }
    Ok(())
}

async fn read(mut receiver: LinkReceiver, party: PartyId, id: u64, door: &Door) -> Result<(), CarrierError> {
    while let Some(bytes) = receiver.recv().await? {
        // A body has at most 16 MiB, so its share of the room fits a u32 and can always be had.
        let share = (bytes.len() / 1024 + 1) as u32;
        let Ok(room) = door.room.clone().acquire_many_owned(share).await else { return Ok(()) };
        if door.events.send(LinkEvent::Frame { party, id, bytes, room }).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// The first digits of a hash, as people compare them.
pub fn short(hash: &Hash) -> String {
    let hex = hash.to_string();
    hex.as_bytes()[..16].chunks(4).map(|c| String::from_utf8_lossy(c).into_owned()).collect::<Vec<_>>().join("-")
}
