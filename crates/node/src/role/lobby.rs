//! The lobby, in which a key that nobody knows yet may do exactly one thing: present its token and wait ([JOI-7]).
//!
//! It is a listener of its own with frames of its own, so that nothing of a run can be reached through it. Strangers are limited
//! in rate and number; keys that knocked with a good token before are not held up by them.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch},
    time::timeout,
};
use veilsum_proto::{
    identity::{Identity, PublicKey},
    joining::{Nonce, Role},
    plan::SignedTerms,
    roster::SignedRoster,
    suite::Hash,
};

use super::{
    lobby_frames::{self as frames, Answer, Knock, Noted, Received, Shown, TurnedAway},
    stop, system_rng,
};
use crate::{
    app_messages::clean,
    carrier::{self, Carrier, Credentials, Link, LinkHandle, LinkReceiver, LinkSender, PeerKey},
    documents::{self, GuestList, Knocked, Stage, fingerprint},
    error::{Code, Failure},
};

/// Handshakes a second that strangers are given, in the mean. Each costs a signature and a verification.
const STRANGERS_A_SECOND: f64 = 8.0;
/// Handshakes that strangers are given at once, after a pause: as many organisations may begin on the same morning.
const STRANGERS_AT_ONCE: f64 = 64.0;
/// Strangers between their first byte and the end of their knock. Each holds a kilobyte or two.
const STRANGERS_INSIDE: usize = 32;
/// The same for keys that knocked well before.
const GUESTS_INSIDE: usize = 64;
/// Time for each step of a knock.
const STEP: Duration = Duration::from_secs(10);
/// Time for a roster and a plan to be taken.
const SEND_LIMIT: Duration = Duration::from_secs(60);
/// How often the folder is looked at, where the operator decides.
const LOOK: Duration = Duration::from_millis(300);

/// What the lobby is given.
pub struct LobbyConfig {
    /// The coordinator's identity.
    pub identity: Arc<Identity>,
    /// The folder of the federation.
    pub folder: PathBuf,
    /// What its links run on.
    pub carrier: Arc<dyn Carrier>,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Told what happens.
    pub news: Arc<dyn Fn(News) + Send + Sync>,
    /// Told the bound address once the port is open.
    pub bound: Option<oneshot::Sender<SocketAddr>>,
}

/// What happens in the lobby.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum News {
    /// A key knocked with this party's token, and waits for the operator.
    Waiting {
        /// The party's name.
        party: String,
        /// Its role.
        role: Role,
        /// Fingerprint of its key.
        key: String,
    },
    /// This party has roster and plan.
    Has {
        /// Its name.
        party: String,
    },
    /// So many were turned away so far; told for the 1st, 2nd, 4th, 8th, …
    TurnedAway {
        /// How many.
        count: u64,
        /// Why the last one was.
        why: String,
    },
    /// A document in the folder cannot be handed out.
    Unusable {
        /// Why.
        why: String,
    },
}

/// What the folder says now.
#[derive(Clone, Default)]
struct State {
    list: Option<GuestList>,
    roster: Option<SignedRoster>,
    plan: Option<SignedTerms>,
    unusable: Option<String>,
}

impl State {
    fn read(folder: &std::path::Path) -> Result<State, Failure> {
        let list = GuestList::load(folder)?;
        let mut state = State::default();
        let (roster, plan) = (folder.join("roster.toml"), folder.join("plan.toml"));
        if let Some(agreed) = list.roster()
            && roster.exists()
        {
            match documents::load_signed_roster(&roster) {
                Ok(signed) if signed.roster == agreed => state.roster = Some(signed),
                Ok(_) => state.unusable = Some("roster.toml is not the roster of those who were let in".into()),
                Err(failure) => state.unusable = Some(failure.message),
            }
        }
        if state.roster.is_some() && plan.exists() {
            match documents::load_signed(&roster, &plan) {
                Ok((_, plan)) => state.plan = Some(plan),
                Err(failure) => state.unusable = Some(failure.message),
            }
        }
        state.list = Some(list);
        Ok(state)
    }

    /// The hashes of what there is to have.
    fn documents(&self) -> Option<[Hash; 2]> {
        Some([self.roster.as_ref()?.roster.hash(), self.plan.as_ref()?.terms.hash()])
    }

    /// Whether everybody who was let in has it.
    fn is_done(&self) -> bool {
        let (Some(list), Some(documents)) = (&self.list, self.documents()) else { return false };
        list.guests.iter().filter(|g| g.stage == Stage::Approved).all(|guest| guest.has == Some(documents))
    }
}

struct Lobby {
    identity: Arc<Identity>,
    folder: PathBuf,
    news: Arc<dyn Fn(News) + Send + Sync>,
    state: watch::Sender<Arc<State>>,
    known: Mutex<HashSet<PeerKey>>,
    bucket: Mutex<(f64, Instant)>,
    inside: Mutex<HashMap<PeerKey, LinkHandle>>,
    refused: Mutex<u64>,
}

/// Listens until everybody who was let in has roster and plan, or this process is told to stop.
///
/// # Errors
/// A [`Failure`] where the folder cannot be read or the port cannot be opened.
pub async fn run(config: LobbyConfig) -> Result<(), Failure> {
    let next = "start it again whenever you like: nobody who waits has to begin anew";
    stop::unless_told(listen(config), next).await
}

async fn listen(config: LobbyConfig) -> Result<(), Failure> {
    let LobbyConfig { identity, folder, carrier, listen, news, bound } = config;
    let first = State::read(&folder)?;
    if first.list.as_ref().is_none_or(|list| list.coordinator.key != identity.public()) {
        return Err(Failure::input(
            "this is not the key with which the federation was founded",
            "use the coordinator's key file, which lies beside federation.toml",
        ));
    }
    let credentials = Credentials::from_seed(&identity.seed())?;
    let lobby = Arc::new(Lobby {
        identity,
        folder,
        news,
        state: watch::Sender::new(Arc::default()),
        known: Mutex::default(),
        bucket: Mutex::new((STRANGERS_AT_ONCE, Instant::now())),
        inside: Mutex::default(),
        refused: Mutex::default(),
    });
    lobby.take(first);
    let door = lobby.clone();
    let allowed = Arc::new(move |key: &PeerKey| door.may_knock(key, Instant::now()));
    let mut listener = carrier::listen(&*carrier, listen, &credentials, allowed, frames::from_outside).await?;
    if let Some(bound) = bound {
        let _ = bound.send(listener.local_addr());
    }
    let (strangers, guests) = (Arc::new(Semaphore::new(STRANGERS_INSIDE)), Arc::new(Semaphore::new(GUESTS_INSIDE)));
    let mut look = tokio::time::interval(LOOK);
    let mut unusable = None;
    loop {
        tokio::select! {
            link = listener.accept() => {
                let link = link?;
                let places = if lobby.knows(&link.peer()) { &guests } else { &strangers };
                match places.clone().try_acquire_owned() {
                    Ok(place) => drop(tokio::spawn(lobby.clone().visit(link, place))),
                    Err(_) => link.handle().close("too many knock at the same time; try again in a moment").await,
                }
            }
            _ = look.tick() => {
                let state = State::read(&lobby.folder)?;
                if state.unusable != unusable {
                    unusable = state.unusable.clone();
                    unusable.iter().for_each(|why| (lobby.news)(News::Unusable { why: why.clone() }));
                }
                if state.is_done() {
                    listener.close("everybody has roster and plan").await;
                    return Ok(());
                }
                lobby.take(state);
            }
        }
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Seconds since 1970, by this machine's clock.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// How a visit ended that did not end well.
enum Over {
    /// In words for the visitor.
    Refused(String),
    /// It hung up, or the folder cannot be written.
    Gone,
}

impl Lobby {
    fn take(&self, state: State) {
        let keys = state.list.iter().flat_map(|list| &list.guests).filter_map(|g| g.knocked.as_ref()).map(|k| k.key.0);
        *held(&self.known) = keys.collect();
        self.state.send_replace(Arc::new(state));
    }

    fn knows(&self, key: &PeerKey) -> bool {
        held(&self.known).contains(key)
    }

    /// Whether this key's handshake goes on: a bucket of handshakes for strangers, filled at a constant rate.
    fn may_knock(&self, key: &PeerKey, now: Instant) -> bool {
        if self.knows(key) {
            return true;
        }
        let mut bucket = held(&self.bucket);
        let (left, since) = *bucket;
        let left =
            STRANGERS_AT_ONCE.min(left + now.saturating_duration_since(since).as_secs_f64() * STRANGERS_A_SECOND);
        let may = left >= 1.0;
        *bucket = (if may { left - 1.0 } else { left }, now);
        may
    }

    async fn visit(self: Arc<Self>, link: Link, place: OwnedSemaphorePermit) {
        let (peer, handle) = (link.peer(), link.handle());
        let key = PublicKey(peer);
        let session = frames::session(&self.identity.public(), &key);
        let (mut sender, mut receiver) = link.split();
        let ended = match self.knock(&key, &session, &mut sender, &mut receiver).await {
            Ok(invitation) => {
                drop(place);
                if let Some(older) = held(&self.inside).insert(peer, handle.clone()) {
                    // A party that connects anew has lost its older connection, or runs twice.
                    tokio::spawn(async move { older.close("this party has connected again").await });
                }
                self.attend(&key, &invitation, &session, &mut sender, &mut receiver).await
            }
            Err(over) => Err(over),
        };
        if let Err(Over::Refused(why)) = ended {
            let count = {
                let mut refused = held(&self.refused);
                *refused = refused.saturating_add(1);
                *refused
            };
            if count.is_power_of_two() {
                (self.news)(News::TurnedAway { count, why: why.clone() });
            }
            let frame = frames::frame(&self.identity, &session, &TurnedAway { why });
            let _ = sender.send_within(&frame, STEP).await;
        }
        let _ = sender.finish(STEP).await;
        handle.close("done").await;
    }

    /// Token, commitment, number, number ([JOI-3] to [JOI-5]). The hash of the token.
    async fn knock(
        &self,
        key: &PublicKey,
        session: &Hash,
        sender: &mut LinkSender,
        receiver: &mut LinkReceiver,
    ) -> Result<Hash, Over> {
        let knock: Knock = self.next(receiver, session, key).await?;
        let token = knock.token.hash();
        documents::check_address(&knock.address).map_err(|f| Over::Refused(f.message))?;
        let mut nonce: Nonce = [0; 32];
        rand_core::Rng::fill_bytes(&mut system_rng(), &mut nonce);
        let (commitment, address) = (knock.commitment, knock.address.clone());
        let knocked = Knocked { key: *key, address, commitment, nonce, shown: None };
        let named = (knock.party.as_str(), knock.role);
        let answer = self.change(|list| list.knock(&token, knocked, named, now()))?;
        held(&self.known).insert(key.0);
        let answer = frames::frame(&self.identity, session, &Answer { nonce: answer });
        sender.send_within(&answer, STEP).await.map_err(|_| Over::Gone)?;
        let shown: Shown = self.next(receiver, session, key).await?;
        let before = self.state.borrow().clone();
        self.change(|list| list.show(&token, shown.nonce))?;
        let waited = |g: &&documents::Guest| g.invitation == token && g.stage == Stage::Invited;
        if before.list.iter().flat_map(|list| &list.guests).any(|g| waited(&g)) {
            let key = fingerprint(&key.0);
            (self.news)(News::Waiting { party: clean(&knock.party), role: knock.role, key });
        }
        let noted = frames::frame(&self.identity, session, &Noted {});
        sender.send_within(&noted, STEP).await.map_err(|_| Over::Gone)?;
        Ok(token)
    }

    /// Waits with a guest for the operator, and hands over what there is ([JOI-6]).
    async fn attend(
        &self,
        key: &PublicKey,
        invitation: &Hash,
        session: &Hash,
        sender: &mut LinkSender,
        receiver: &mut LinkReceiver,
    ) -> Result<(), Over> {
        let mut states = self.state.subscribe();
        let (mut roster, mut plan) = (None, None);
        loop {
            let state = states.borrow_and_update().clone();
            let guest = state.list.iter().flat_map(|list| &list.guests).find(|guest| guest.invitation == *invitation);
            match guest.map(|guest| guest.stage) {
                None | Some(Stage::Rejected) => {
                    return Err(Over::Refused("the coordinator's operator said no".into()));
                }
                Some(Stage::Approved) => {
                    let there = state.roster.as_ref().map(|signed| signed.roster.hash());
                    if let Some(signed) = state.roster.as_ref().filter(|_| there != roster) {
                        self.hand(sender, session, signed).await?;
                        (roster, plan) = (there, None);
                    }
                    let there = state.plan.as_ref().map(|signed| signed.terms.hash());
                    if let Some(signed) = state.plan.as_ref().filter(|_| there != plan) {
                        self.hand(sender, session, signed).await?;
                        plan = there;
                    }
                }
                Some(Stage::Invited | Stage::Waiting) => {}
            }
            tokio::select! {
                changed = states.changed() => changed.map_err(|_| Over::Gone)?,
                bytes = receiver.recv() => {
                    let Ok(Some(bytes)) = bytes else { return Err(Over::Gone) };
                    let Received { has } = frames::open(&bytes, session, key).map_err(Over::Refused)?;
                    if Some(has) != state.documents() {
                        continue;
                    }
                    let party = self.change(|list| {
                        let guest = list.guests.iter_mut().find(|guest| guest.invitation == *invitation);
                        let guest = guest.ok_or("the invitation was replaced")?;
                        guest.has = Some(has);
                        Ok(guest.party.clone())
                    })?;
                    (self.news)(News::Has { party });
                    return Ok(());
                }
            }
        }
    }

    async fn hand<T: frames::Message>(&self, to: &mut LinkSender, session: &Hash, document: &T) -> Result<(), Over> {
        let frame = frames::frame(&self.identity, session, document);
        to.send_within(&frame, SEND_LIMIT).await.map_err(|_| Over::Gone)
    }

    async fn next<T: frames::Message>(
        &self,
        from: &mut LinkReceiver,
        session: &Hash,
        key: &PublicKey,
    ) -> Result<T, Over> {
        match timeout(STEP, from.recv()).await {
            Ok(Ok(Some(bytes))) => frames::open(&bytes, session, key).map_err(Over::Refused),
            _ => Err(Over::Gone),
        }
    }

    /// Changes the list. What the folder's disk does is not the visitor's business.
    fn change<T>(&self, change: impl FnOnce(&mut GuestList) -> Result<T, String>) -> Result<T, Over> {
        let changed = GuestList::change(&self.folder, |list| {
            // A sentence for the visitor changes nothing, and passes through as the text of a failure.
            change(list).map_err(|why| Failure::new(Code::Denied, why, ""))
        });
        changed.map_err(|failure| match failure.code {
            Code::Denied => Over::Refused(failure.message),
            _ => {
                tracing::warn!("the federation's folder cannot be used: {}", failure.message);
                Over::Gone
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [JOI-7]: a flood of new keys gets its few handshakes a second, and who knocked well before is not among them.
    #[test]
    fn strangers_are_let_in_at_a_bounded_rate_and_guests_always() {
        let start = Instant::now();
        let lobby = Lobby {
            identity: Arc::new(Identity::from_seed(&[1; 32])),
            folder: PathBuf::new(),
            news: Arc::new(|_| {}),
            state: watch::Sender::new(Arc::default()),
            known: Mutex::new(HashSet::from([[7; 32]])),
            bucket: Mutex::new((STRANGERS_AT_ONCE, start)),
            inside: Mutex::default(),
            refused: Mutex::default(),
        };
        let flood = |from: Duration| {
            let at = |i: u32| start + from + Duration::from_millis(u64::from(i));
            (0..1000u32).filter(|i| lobby.may_knock(&[1; 32], at(*i))).count()
        };
        let first = flood(Duration::ZERO);
        assert!((64..=72).contains(&first), "{first}");
        let second = flood(Duration::from_secs(1));
        assert!((7..=9).contains(&second), "{second}");
        assert!((0..1000).all(|_| lobby.may_knock(&[7; 32], start + Duration::from_secs(2))));
        let rested = flood(Duration::from_secs(3600));
        assert!((64..=72).contains(&rested), "{rested}");
    }
}
