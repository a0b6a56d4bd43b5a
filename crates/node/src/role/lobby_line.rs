//! A party's end of the lobby: its coordinator is dialled for as long as it takes, and what is said over the line.

use std::time::{Duration, Instant};

use veilsum_proto::{
    identity::{Identity, PublicKey},
    roster::Roster,
    suite::Hash,
};

use super::{
    dial::Attempt,
    lobby_frames::{self as frames, Message, TurnedAway},
    progress::Teller,
};
use crate::{
    app_messages::clean,
    carrier::{Address, Call, Carrier, CarrierError, Credentials, LinkReceiver, LinkSender},
    cost::some_of,
    error::{Code, Failure},
};

/// One attempt to connect.
const ATTEMPT: Duration = Duration::from_secs(5);
/// Pause before the next, which doubles up to the other. There is no last one.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Time for each step that the other side has to take.
pub(super) const STEP: Duration = Duration::from_secs(15);

/// What a party wants in the lobby.
pub(super) struct Errand {
    /// "join", or "stand by".
    pub(super) to: &'static str,
    /// What names the coordinator.
    pub(super) by: &'static str,
    /// The rule that says what the coordinator may say.
    pub(super) rule: &'static str,
    /// What to do after a no.
    pub(super) after_a_no: &'static str,
}

/// Somebody who dials the lobby.
pub(super) struct Caller<'a> {
    identity: &'a Identity,
    carrier: &'a dyn Carrier,
    coordinator: PublicKey,
    to: Address,
    credentials: Credentials,
    errand: &'a Errand,
    told: String,
    pause: Duration,
    since: Instant,
}

impl<'a> Caller<'a> {
    /// # Errors
    /// A [`Failure`] where the address or the key cannot be used.
    pub(super) fn new(
        (identity, carrier): (&'a Identity, &'a dyn Carrier),
        (coordinator, address): (PublicKey, &str),
        errand: &'a Errand,
    ) -> Result<Caller<'a>, Failure> {
        let to = address.parse().map_err(|why: String| {
            let what = format!("the coordinator's address cannot be used: {why}");
            Failure::input(what, format!("ask its operator for another {}", errand.by))
        })?;
        let credentials = Credentials::from_seed(&identity.seed())?;
        let (told, pause, since) = (String::new(), PAUSE, Instant::now());
        Ok(Caller { identity, carrier, coordinator, to, credentials, errand, told, pause, since })
    }

    /// Dials once.
    pub(super) async fn dial(&mut self) -> Result<LobbyLine<'a>, Attempt> {
        self.since = Instant::now();
        let (check, limit) = (frames::FROM_INSIDE, ATTEMPT);
        let (expected, credentials) = (&self.coordinator.0, &self.credentials);
        let dialled = self.carrier.dial(Call { to: &self.to, expected, credentials, check, limit });
        let link = dialled.await.map_err(|e| match e {
            CarrierError::WrongServerKey(addr) => {
                let by = self.errand.by;
                let what = format!(
                    "whoever answers at {addr} is not the coordinator that the {by} names, and was sent nothing [JOI-2]"
                );
                let next = format!(
                    "do not go on: ask the coordinator's operator, on a number that did not come with the {by}, for its address and a \
                     new {by}"
                );
                Failure::new(Code::Peer, what, next).into()
            }
            e => Attempt::Again(e),
        })?;
        let over = link.handle().over();
        let (sender, receiver) = link.split();
        let session = frames::session(&self.coordinator, &self.identity.public());
        let (identity, coordinator, errand) = (self.identity, self.coordinator, self.errand);
        Ok(LobbyLine { identity, coordinator, errand, session, over, sender, receiver })
    }

    /// There is no line; waits a while. What is new is told: why, and what may help.
    pub(super) async fn rest(&mut self, e: &CarrierError, news: &Teller) {
        // A link that held for a while is another matter than one that was never had.
        if self.since.elapsed() > LONGEST_PAUSE {
            (self.told, self.pause) = (String::new(), PAUSE);
        }
        // The door of the lobby says no where it has its hands full; it knows no roster.
        let (why, advice) = match e {
            CarrierError::NotAccepted => (
                "the door there is shut for now: a run is going on, or too many knock at the same time".to_owned(),
                "it is tried again; nothing has to be done here",
            ),
            other => (other.to_string(), other.advice()),
        };
        if why != self.told {
            news(not_yet(&why, advice));
            self.told = why;
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

/// Why there is no line, or no use of it, and what may help.
pub(super) fn not_yet(why: &str, advice: &str) -> String {
    format!("not yet: {why}\n  ({advice}; it is tried again until you stop it)")
}

/// How many sites a roster has, and which.
pub(super) fn sites_of(roster: &Roster) -> String {
    let names: Vec<&str> = roster.sites.iter().map(|site| site.name.as_str()).collect();
    format!("{} sites: {}", names.len(), some_of(&names, ", "))
}

/// Nothing, if a roster that the coordinator sent is of this federation and for this party.
pub(super) fn ours(is_ours: bool, rule: &str) -> Result<(), Failure> {
    let what = "the coordinator sent a roster that is not of this federation, or gives this party another place";
    let next = "it was not kept; ask its operator by telephone what happened";
    if is_ours { Ok(()) } else { Err(Failure::new(Code::Peer, format!("{what} [{rule}]"), next)) }
}

/// A line to the coordinator's lobby.
pub(super) struct LobbyLine<'a> {
    identity: &'a Identity,
    coordinator: PublicKey,
    errand: &'a Errand,
    session: Hash,
    /// What it runs on.
    pub(super) over: &'static str,
    sender: LinkSender,
    receiver: LinkReceiver,
}

impl LobbyLine<'_> {
    /// Sends a message.
    pub(super) async fn send<T: Message>(&mut self, message: &T) -> Result<(), Attempt> {
        let frame = frames::frame(self.identity, &self.session, message);
        self.sender.send_within(&frame, STEP).await.map_err(Attempt::Again)
    }

    /// The next frame. Cancel-safe.
    pub(super) async fn recv(&mut self) -> Result<Vec<u8>, Attempt> {
        let bytes = self.receiver.recv().await.map_err(Attempt::Again)?;
        bytes.ok_or_else(|| Attempt::Again(CarrierError::closed("the coordinator hung up")))
    }

    /// The message in a frame, or the coordinator's no in its place.
    pub(super) fn open<T: Message>(&self, bytes: &[u8]) -> Result<T, Attempt> {
        let odd = |why: String| self.odd(&why);
        if frames::kind_of(bytes) == Some(TurnedAway::KIND) {
            let TurnedAway { why } = frames::open(bytes, &self.session, &self.coordinator).map_err(odd)?;
            let what = format!("the coordinator does not let this party {}: {}", self.errand.to, clean(&why));
            return Err(Failure::new(Code::Denied, what, self.errand.after_a_no).into());
        }
        frames::open(bytes, &self.session, &self.coordinator).map_err(odd)
    }

    /// The coordinator broke a rule.
    pub(super) fn odd(&self, why: &str) -> Attempt {
        let what = format!("the coordinator broke a rule [{}]: {why}", self.errand.rule);
        Failure::new(Code::Peer, what, "ask its operator").into()
    }

    /// Waits until everything sent has arrived.
    pub(super) async fn finish(&mut self) {
        let _ = self.sender.finish(STEP).await;
    }
}
