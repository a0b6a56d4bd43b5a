//! The lobby, in which a key that nobody knows yet may do exactly one thing: present its token and wait ([JOI-7]). Members stand by
//! in it for plans ([PRO-1]).
//!
//! It has frames of its own, and a connection that entered it stays in it, so that nothing of a run can be reached through it.
//! Strangers are limited in rate and number; keys that knocked with a good token before are not held up by their keys. Whoever begins
//! handshakes and does not finish them holds up everybody who is not in yet: no key is known then.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::timeout,
};
use veilsum_proto::{
    Rule,
    identity::{Identity, PublicKey},
    joining::Nonce,
    suite::Hash,
};

use super::{
    door::{Places, Visit},
    folder::State,
    lobby_frames::{
        self as frames, Answer, Begin, ColumnsText, Knock, Message, Noted, Received, Shown, StandBy, Stands,
        TurnedAway, Without,
    },
    progress::Teller,
};
use crate::{
    app_messages::{Denied, clean},
    carrier::{LinkHandle, LinkReceiver, LinkSender, PeerKey, Place, PlacesOf, Times},
    clock::seconds_since_1970,
    documents::{self, GuestList, Knocked, PlanAnswer, Said, Stage, fingerprint},
    error::{Code, Failure},
    random::drawn,
    store::held,
};

/// Handshakes a second that strangers are given, in the mean. Each costs a signature and a verification.
const STRANGERS_A_SECOND: f64 = 8.0;
/// Handshakes that strangers are given at once, after a pause: as many organisations may begin on the same morning.
const STRANGERS_AT_ONCE: f64 = 64.0;
/// Strangers between their first byte and the end of their knock. Each holds a kilobyte or two.
const STRANGERS_INSIDE: usize = 32;
/// The same for keys that knocked well before.
const GUESTS_INSIDE: usize = 64;
/// Connections of one key on their way in.
const PLACES_A_KEY: usize = 2;
/// Time for each step of a knock.
const STEP: Duration = Duration::from_secs(10);
/// From the end of a site's part in a run until the run should be over: the coordinator waits 10 s for signatures, and then writes.
const SETTLED: Duration = Duration::from_secs(30);
/// Time for a roster and a plan to be taken.
const SEND_LIMIT: Duration = Duration::from_secs(60);

/// The lobby of a coordinator that serves.
pub(super) struct Lobby {
    identity: Arc<Identity>,
    folder: PathBuf,
    news: Teller,
    pub(super) state: watch::Sender<Arc<State>>,
    known: Mutex<HashSet<PeerKey>>,
    bucket: Mutex<(f64, Instant)>,
    /// Those who are inside.
    inside: Places,
    opening: PlacesOf<PeerKey>,
    refused: Times,
    strangers: Arc<Semaphore>,
    guests: Arc<Semaphore>,
}

/// The places of somebody on the way in, given back when dropped.
type OnTheWay = (OwnedSemaphorePermit, Place<PeerKey>);

fn nobodys() -> Over {
    Over::Refused("this key belongs to no member of the federation; its operator may have taken it out".into())
}

/// How a visit ended that did not end well.
enum Over {
    /// In words for the visitor.
    Refused(String),
    /// It hung up, or the folder cannot be written.
    Gone,
}

/// Somebody who has come in.
struct Visitor {
    identity: Arc<Identity>,
    key: PublicKey,
    session: Hash,
    handle: LinkHandle,
    sender: LinkSender,
    receiver: LinkReceiver,
    /// Which roster and which plan it has.
    has: [Hash; 2],
}

impl Visitor {
    async fn send<T: Message>(&mut self, message: &T, within: Duration) -> Result<(), Over> {
        let frame = frames::frame(&self.identity, &self.session, message);
        self.sender.send_within(&frame, within).await.map_err(|_| Over::Gone)
    }

    /// Its next frame. Cancel-safe.
    async fn heard(&mut self) -> Result<Vec<u8>, Over> {
        self.receiver.recv().await.ok().flatten().ok_or(Over::Gone)
    }

    fn open<T: Message>(&self, bytes: &[u8]) -> Result<T, Over> {
        frames::open(bytes, &self.session, &self.key).map_err(Over::Refused)
    }

    /// Hands over roster and plan, where it has others; before a first roster what the columns are.
    async fn hand_over(&mut self, state: &State) -> Result<(), Over> {
        let roster = state.roster.as_ref().map(|document| (document, document.roster.hash()));
        let roster = roster.filter(|(_, hash)| *hash != self.has[0]);
        let plan = state.plan.as_ref().map(|signed| (signed, signed.terms.hash()));
        if let Some(text) = state.columns.as_ref().filter(|_| self.has[0] == Hash::default()) {
            self.send(&ColumnsText { text: text.clone() }, SEND_LIMIT).await?;
        }
        if let Some((document, hash)) = roster {
            self.send(document, SEND_LIMIT).await?;
            self.has = [hash, Hash::default()];
        }
        if let Some((signed, hash)) = plan.filter(|(_, hash)| *hash != self.has[1]) {
            self.send(signed, SEND_LIMIT).await?;
            self.has[1] = hash;
        }
        Ok(())
    }
}

impl Lobby {
    pub(super) fn new(identity: Arc<Identity>, folder: PathBuf, news: Teller) -> Lobby {
        Lobby {
            identity,
            folder,
            news,
            state: watch::Sender::new(Arc::default()),
            known: Mutex::default(),
            bucket: Mutex::new((STRANGERS_AT_ONCE, Instant::now())),
            inside: Places::default(),
            opening: PlacesOf::new(PLACES_A_KEY),
            refused: Times::default(),
            strangers: Arc::new(Semaphore::new(STRANGERS_INSIDE)),
            guests: Arc::new(Semaphore::new(GUESTS_INSIDE)),
        }
    }

    pub(super) fn take(&self, state: State) {
        let knocked =
            state.list.iter().flat_map(|list| &list.guests).filter_map(|g| g.knocked.as_ref()).map(|k| k.key.0);
        let members = state.roster.iter().flat_map(|signed| signed.roster.members()).map(|m| m.key.0);
        *held(&self.known) = knocked.chain(members).collect();
        self.state.send_replace(Arc::new(state));
    }

    /// Looks at the folder for somebody who has just come: nobody is handed what was replaced before.
    fn refresh(&self) {
        let running = self.state.borrow().running;
        // What is wrong with it is told by whoever looks regularly.
        if let Ok(state) = State::read(&self.folder) {
            let running = running && state.run().is_some();
            self.take(State { running, ..state });
        }
    }

    fn knows(&self, key: &PeerKey) -> bool {
        held(&self.known).contains(key)
    }

    /// Whether this key's handshake goes on: a bucket of handshakes for strangers, filled at a constant rate.
    pub(super) fn may_knock(&self, key: &PeerKey, now: Instant) -> bool {
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

    /// Whoever has sent the first frame of the lobby, to the end of its visit.
    pub(super) async fn visit(self: Arc<Self>, visit: Visit) {
        let Visit { handle, sender, receiver, first } = visit;
        let key = PublicKey(handle.peer());
        let (identity, session) = (self.identity.clone(), frames::session(&self.identity.public(), &key));
        let has = [Hash::default(); 2];
        let mut visitor = Visitor { identity, key, session, handle: handle.clone(), sender, receiver, has };
        let ended = match self.admitted(&handle) {
            None => return handle.close("too many knock at the same time; try again in a moment").await,
            Some(place) if frames::kind_of(&first) == Some(StandBy::KIND) => {
                self.come_to_stand_by(&mut visitor, &first, place).await
            }
            Some(place) => match self.knock(&mut visitor, &first).await {
                Ok(invitation) => {
                    drop(place);
                    if let Some(older) = self.inside.replace(&handle) {
                        // A party that connects anew has lost its older connection, or runs twice.
                        tokio::spawn(async move { older.close("this party has connected again").await });
                    }
                    self.attend(&mut visitor, &invitation).await
                }
                Err(over) => Err(over),
            },
        };
        // Nothing is kept of a link that is over, and no place is held while it says goodbye.
        self.inside.leave(&handle);
        if let Err(Over::Refused(why)) = ended {
            if let Some(count) = self.refused.one_more() {
                (self.news)(format!("turned away so far: {count}; the last one because: {why}"));
            }
            if visitor.send(&TurnedAway { why }, STEP).await.is_ok() && visitor.sender.finish(STEP).await.is_ok() {
                // What a closed connection holds is lost, so it hangs up that has read this.
                let _ = timeout(STEP, async { while visitor.heard().await.is_ok() {} }).await;
            }
        }
        let _ = visitor.sender.finish(STEP).await;
        handle.close("done").await;
    }

    /// A place on the way in, of which a key has [`PLACES_A_KEY`] at most.
    fn admitted(&self, handle: &LinkHandle) -> Option<OnTheWay> {
        let peer = handle.peer();
        let places = if self.knows(&peer) { &self.guests } else { &self.strangers };
        places.clone().try_acquire_owned().ok().zip(self.opening.take(peer))
    }

    /// Whoever stands by is a member, and the only process with its key ([PRO-1]); a stranger leaves nothing behind.
    async fn come_to_stand_by(&self, visitor: &mut Visitor, first: &[u8], place: OnTheWay) -> Result<(), Over> {
        let greeting: StandBy = visitor.open(first)?;
        let key = visitor.key;
        // Also for a key that nobody knew a moment ago: its roster may have been applied since.
        self.refresh();
        let party = self.state.borrow().member(&key).map(|guest| guest.party.clone()).ok_or_else(nobodys)?;
        if !self.inside.take(&visitor.handle).await {
            return Err(Over::Refused(Denied::Taken.to_string()));
        }
        drop(place);
        self.stand_by(visitor, party, greeting).await
    }

    /// Token, commitment, number, number ([JOI-3] to [JOI-5]). The hash of the token.
    async fn knock(&self, visitor: &mut Visitor, first: &[u8]) -> Result<Hash, Over> {
        let knock: Knock = visitor.open(first)?;
        let (key, token) = (visitor.key, knock.token.hash());
        documents::check_address(&knock.address).map_err(|f| Over::Refused(f.message))?;
        let (commitment, address) = (knock.commitment, knock.address.clone());
        let knocked = Knocked { key, address, commitment, nonce: Nonce(drawn()), shown: None };
        let named = (knock.party.as_str(), knock.role);
        let answer = self.change(|list| list.knock(&token, knocked, named, seconds_since_1970()))?;
        held(&self.known).insert(key.0);
        visitor.send(&Answer { nonce: answer }, STEP).await?;
        let shown = timeout(STEP, visitor.heard()).await.map_err(|_| Over::Gone)??;
        let shown: Shown = visitor.open(&shown)?;
        // By the list as it is now: what was read of it last may be older than the invitation.
        let comes = self.change(|list| {
            let comes = list.guests.iter().any(|guest| guest.invitation == token && guest.stage == Stage::Invited);
            list.show(&token, shown.nonce).map(|()| comes)
        })?;
        if comes {
            let key = fingerprint(&key.0);
            let (party, role) = (clean(&knock.party), knock.role.name());
            (self.news)(format!(
                "{party} ({role}) waits, with the key {key}: let its operator read 12 digits to you, on a number that you know, then: \
                 veilsum federation approve {party}=DIGITS"
            ));
        }
        visitor.send(&Noted {}, STEP).await?;
        Ok(token)
    }

    /// Waits with a guest for the operator, and hands over what there is ([JOI-6]).
    async fn attend(&self, visitor: &mut Visitor, invitation: &Hash) -> Result<(), Over> {
        self.refresh();
        let mut states = self.state.subscribe();
        loop {
            let state = states.borrow_and_update().clone();
            match state.guest(|guest| guest.invitation == *invitation).map(|guest| guest.stage) {
                None | Some(Stage::Rejected) => {
                    return Err(Over::Refused("the coordinator's operator said no".into()));
                }
                Some(Stage::Approved) if state.lists(&visitor.key) => visitor.hand_over(&state).await?,
                _ => {}
            }
            tokio::select! {
                changed = states.changed() => changed.map_err(|_| Over::Gone)?,
                bytes = visitor.heard() => {
                    let Received { has } = visitor.open(&bytes?)?;
                    if Some(has) != state.documents() {
                        continue;
                    }
                    let party = self.change(|list| {
                        let guest = list.guests.iter_mut().find(|guest| guest.invitation == *invitation);
                        let guest = guest.ok_or("the invitation was replaced")?;
                        guest.has = Some(has);
                        Ok(guest.party.clone())
                    })?;
                    (self.news)(format!("{party} has roster and plan"));
                    return Ok(());
                }
            }
        }
    }

    /// A member that waits for plans: is handed what is new, says what it would answer, and is told when a run begins ([PRO-1] to
    /// [PRO-4]).
    async fn stand_by(&self, visitor: &mut Visitor, party: String, greeting: StandBy) -> Result<(), Over> {
        let StandBy { has, done, number, broken } = greeting;
        let key = &visitor.key.clone();
        visitor.has = has;
        if self.change(|list| Ok(list.counts_on_from(number)))? {
            (self.news)(format!(
                "{party} has taken part in run {number}, which this folder does not know: was it put back from a backup? The next run is \
                 counted on from there"
            ));
        }
        let mut states = self.state.subscribe();
        (self.news)(format!("{party} stands by"));
        let (mut proposed, mut left_out) = (None, None);
        // At the end of a run everybody comes here, and for a moment the run is not over.
        let mut settled = Some(tokio::time::Instant::now() + SETTLED);
        let ended = async {
            loop {
                let state = states.borrow_and_update().clone();
                state.member(key).ok_or_else(nobodys)?;
                let now = state.list.as_ref().map(|list| list.proposed);
                if proposed.replace(now).is_some_and(|before| before != now) {
                    // It is asked anew.
                    visitor.has[1] = Hash::default();
                }
                if state.lists(key) {
                    visitor.hand_over(&state).await?;
                }
                let current = state.lists(key);
                if let Some(run) = state.run().filter(|_| current)
                    && (state.running && !done.contains(&run.id) && run.plan == visitor.has[1])
                    && !run.without.contains(&party)
                {
                    visitor.send(&Begin { number: run.number, run: run.id, plan: run.plan }, SEND_LIMIT).await?;
                    // It may be looking at its rows, and hangs up when it has read this. What a closed connection holds is lost.
                    while visitor.heard().await.is_ok() {}
                    return Ok(());
                }
                if let Some(run) = state.run().filter(|run| state.running && run.without.contains(&party))
                    && left_out.replace(run.number) != Some(run.number)
                {
                    visitor.send(&Without { number: run.number }, SEND_LIMIT).await?;
                }
                let due = settled.unwrap_or_else(tokio::time::Instant::now);
                tokio::select! {
                    () = tokio::time::sleep_until(due), if settled.is_some() => {
                        settled = None;
                        if let Some(run) = state.run().filter(|run| done.contains(&run.id) && !run.without.contains(&party)) {
                            if broken == Some(Rule::Led11) {
                                // If it cannot be kept, nobody but this screen says it.
                                let _ = self.change(|list| {
                                    let ended = list.run.iter_mut().filter(|of| of.id == run.id);
                                    ended.for_each(|run| run.set_back = true);
                                    Ok(())
                                });
                            }
                            let why = match broken {
                                Some(Rule::Led11) => {
                                    ": it says that the ledger of another member was set back. Its screen names whose; that member's \
                                     operator puts back the newest copy of the state folder, and nothing else helps"
                                }
                                Some(_) => ": it says that somebody broke a rule. Its screen says who",
                                None => ", as its own operator was told",
                            };
                            (self.news)(format!(
                                "{party} takes no part in run {} any more{why}.\nIt stands by for the next run; `veilsum plan stop` ends this one",
                                run.number
                            ));
                        }
                    }
                    changed = states.changed() => changed.map_err(|_| Over::Gone)?,
                    bytes = visitor.heard() => {
                        let bytes = bytes?;
                        // One that the roster in force does not have, has nothing to say.
                        if current {
                            self.said(&party, visitor.open(&bytes)?)?;
                        }
                    }
                }
            }
        };
        let ended = ended.await;
        // Of another link of this member nothing is known here.
        if ended.is_err() && self.inside.has(&visitor.handle) {
            self.change(|list| {
                list.guest(&party).into_iter().for_each(|guest| guest.said = None);
                Ok(())
            })?;
            (self.news)(format!("{party} does not stand by any more"));
        }
        ended
    }

    /// [PRO-2].
    fn said(&self, party: &str, Stands { to: [roster, plan], answer }: Stands) -> Result<(), Over> {
        let said = Said { roster, plan, answer: answer.clone() };
        let is_new = self.change(|list| {
            let guest = list.guest(party).ok_or("this party was taken out")?;
            Ok(guest.said.replace(said.clone()).is_none_or(|before| before != said))
        })?;
        // What follows is the answer.
        if is_new && answer != PlanAnswer::Reading {
            (self.news)(format!("{party}: {answer}"));
        }
        Ok(())
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
        let mut lobby = Lobby::new(Arc::new(Identity::from_seed(&[1; 32])), PathBuf::new(), Arc::new(|_| {}));
        lobby.known = Mutex::new(HashSet::from([[7; 32]]));
        lobby.bucket = Mutex::new((STRANGERS_AT_ONCE, start));
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
