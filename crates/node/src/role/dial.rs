//! A dialled connection to an aggregator, greeted and accepted.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use serde::{Serialize, de::DeserializeOwned};
use veilsum_proto::{
    identity::Identity,
    message::{self, Kind},
    roster::{Member, PartyId},
    suite::Hash,
};

use super::{
    config::Party,
    notice::Notice,
    progress::{Awaited, Bytes, Progress},
};
use crate::{
    app_messages::{self, Aborted, Denied, Hello, SOFTWARE, Welcome, clean},
    carrier::{Address, Call, Carrier, CarrierError, Credentials, LinkReceiver, LinkSender},
    egress::{Egress, Public},
    error::{Code, Failure},
};

/// One attempt to connect; an unanswered one is repeated until patience ends.
const ATTEMPT: Duration = Duration::from_secs(3);
/// Pause between attempts where the answer comes at once.
const PAUSE: Duration = Duration::from_millis(250);
/// The pause doubles up to this: whoever waits for hours does not fill a proxy's log, or a name server's.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// A peer that takes longer over one frame counts as gone.
const SEND_LIMIT: Duration = Duration::from_secs(30);
/// How long the last frame may take to be acknowledged.
const FINISH_LIMIT: Duration = Duration::from_secs(5);

/// A dialled connection.
pub struct Line {
    identity: Arc<Identity>,
    peer: Member,
    session: Hash,
    bytes: Arc<Bytes>,
    ends: Ends,
}

type Ends = (LinkSender, LinkReceiver);

impl Line {
    /// Dials until it is accepted or `patience` ends. Connected is not accepted: the peer's welcome is awaited.
    ///
    /// # Errors
    /// A [`Failure`]: `Network` where nobody answers, `Denied` where the peer does not let us in, `Peer` where
    /// somebody else answers.
    pub async fn connect(party: &Party, to: PartyId, address: &Address, patience: Duration) -> Result<Line, Failure> {
        let (identity, federation) = (&party.identity, &party.federation);
        let Some(peer) = federation.roster.member(to).cloned() else {
            return Err(Failure::defect("no such party"));
        };
        let credentials = Credentials::from_seed(&identity.seed())?;
        let session = party.session(to);
        let documents = (federation.roster.hash(), Some(federation.terms.hash()));
        let greeting = greeting(identity, documents, Kind::Hello);
        let (key, check) = (peer.key.0, app_messages::header_check);
        let end = Instant::now() + patience;
        let mut notice = Notice::new();
        let mut pause = PAUSE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let limit = ATTEMPT.min(left.max(Duration::from_millis(500)));
            let call = Call { to: address, expected: &key, credentials: &credentials, check, limit };
            match Self::attempt(&*party.carrier, call, &peer, &greeting).await {
                Ok((ends, over)) => {
                    party.tell(Progress::Connected { to: peer.name.clone(), over });
                    return Ok(Line { identity: identity.clone(), peer, session, bytes: party.bytes.clone(), ends });
                }
                Err(Attempt::Final(failure)) => return Err(failure),
                Err(Attempt::Again(e)) if Instant::now() >= end => {
                    let why = why(&e);
                    let what =
                        format!("{} did not answer at {address} within {} s: {why}", peer.name, patience.as_secs());
                    return Err(Failure::new(Code::Network, what, e.advice()));
                }
                Err(Attempt::Again(e)) => {
                    tracing::debug!(peer = %peer.name, "not yet: {e}");
                    if let Some(seconds) = notice.due() {
                        let (name, at) = (peer.name.clone(), Some(address.to_string()));
                        let parties = vec![Awaited { party: name, at, heard: clean(&why(&e)) }];
                        party.tell(Progress::Waiting { parties, seconds });
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    async fn attempt(
        carrier: &dyn Carrier,
        call: Call<'_>,
        peer: &Member,
        greeting: &Egress,
    ) -> Result<(Ends, &'static str), Attempt> {
        let link = carrier.dial(call).await?;
        let (over, mut ends) = (link.handle().over(), link.split());
        answer(&mut ends, peer, greeting).await?.map_err(|why| denied(peer, &why))?;
        Ok((ends, over))
    }

    /// Sends a frame. False where the connection is gone; why shows at the next [`Line::recv`].
    pub async fn send(&mut self, frame: &Egress) -> bool {
        self.bytes.sent.fetch_add(frame.bytes().len() as u64, Ordering::Relaxed);
        self.ends.0.send_within(frame, SEND_LIMIT).await.is_ok()
    }

    /// Signs and sends a control message.
    pub async fn tell<T: Public>(&mut self, kind: Kind, message: &T) -> bool {
        let frame = Egress::control(&self.identity, &self.session, kind, message);
        self.send(&frame).await
    }

    /// The next frame.
    ///
    /// # Errors
    /// `CarrierError` where the connection is gone or the frame breaks the rules.
    pub async fn recv(&mut self) -> Result<Option<Vec<u8>>, CarrierError> {
        let frame = self.ends.1.recv().await;
        if let Ok(Some(frame)) = &frame {
            self.bytes.received.fetch_add(frame.len() as u64, Ordering::Relaxed);
        }
        frame
    }

    /// Opens a control message of this run.
    ///
    /// # Errors
    /// `Error` naming the peer.
    pub fn open<T: Serialize + DeserializeOwned>(&self, bytes: &[u8], kind: Kind) -> Result<T, veilsum_proto::Error> {
        message::open(bytes, &self.session, &self.peer.key, &self.peer.name, kind)
    }

    /// Waits until everything sent has arrived.
    pub async fn finish(&mut self) {
        let _ = self.ends.0.finish(FINISH_LIMIT).await;
    }
}

/// An aggregator that was reached: its key was proven, and what it says to this party's documents.
pub struct Knocked {
    /// What the link ran on.
    pub over: &'static str,
    /// Its software, if it would let this party in, or its no; a failure if it did not say.
    pub answer: Result<Result<String, Denied>, Failure>,
}

/// What an aggregator's denial is to this party.
pub fn denied(peer: &Member, denied: &Denied) -> Failure {
    let next = match denied {
        Denied::NoRun => "stand by for its runs with `veilsum run`, or start this again when one begins",
        _ => "put the difference right with its operator, then start again",
    };
    Failure::new(Code::Denied, format!("{} did not accept this party: {denied}", peer.name), next)
}

/// Dials an aggregator and asks whether it would let this party in ([APP-9]). A run that goes on there is not disturbed.
///
/// # Errors
/// `CarrierError` where it was not reached, or somebody else answered.
pub async fn knock(
    (identity, roster, plan): (&Identity, &Hash, Option<Hash>),
    carrier: &dyn Carrier,
    (peer, address): (&Member, &Address),
    limit: Duration,
) -> Result<Knocked, CarrierError> {
    let (credentials, check) = (&Credentials::from_seed(&identity.seed())?, app_messages::header_check);
    let link = carrier.dial(Call { to: address, expected: &peer.key.0, credentials, check, limit }).await?;
    let (handle, mut ends) = (link.handle(), link.split());
    let greeting = greeting(identity, (*roster, plan), Kind::Knock);
    let asked = answer(&mut ends, peer, &greeting);
    let answer = match tokio::time::timeout(limit, asked).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(Attempt::Final(failure))) => Err(failure),
        Ok(Err(Attempt::Again(e))) => Err(e.into()),
        Err(_) => Err(CarrierError::TimedOut("no answer to the greeting").into()),
    };
    handle.close("only asked").await;
    Ok(Knocked { over: handle.over(), answer })
}

/// A first frame: roster and plan, under this party's signature.
fn greeting(identity: &Identity, (roster, plan): (Hash, Option<Hash>), kind: Kind) -> Egress {
    let hello = Hello { roster, plan, software: SOFTWARE.into() };
    Egress::control(identity, &app_messages::greeting_session(), kind, &hello)
}

/// Greets, and waits for the answer: the software of a peer that lets us in.
async fn answer(ends: &mut Ends, peer: &Member, greeting: &Egress) -> Result<Result<String, Denied>, Attempt> {
    ends.0.send_within(greeting, SEND_LIMIT).await?;
    let answer = tokio::time::timeout(SEND_LIMIT, ends.1.recv()).await;
    let answer = answer.map_err(|_| CarrierError::TimedOut("no answer to the greeting"))??;
    let bytes = answer.ok_or_else(|| CarrierError::closed("it hung up"))?;
    let (session, key, name) = (app_messages::greeting_session(), &peer.key, &*peer.name);
    if message::kind_of(&bytes) == Some(Kind::Denied) {
        return Ok(Err(message::open(&bytes, &session, key, name, Kind::Denied).map_err(Failure::from)?));
    }
    let welcome: Welcome = message::open(&bytes, &session, key, name, Kind::Welcome).map_err(Failure::from)?;
    Ok(Ok(clean(&welcome.software)))
}

/// The reason without the address and the last attempt's own patience, which say nothing here.
fn why(e: &CarrierError) -> String {
    match e {
        CarrierError::Unreachable { .. } => "no answer".into(),
        other => other.to_string(),
    }
}

/// How an attempt to reach somebody ended.
pub(super) enum Attempt {
    /// Another one may do.
    Again(CarrierError),
    /// None will.
    Final(Failure),
}

impl From<Failure> for Attempt {
    fn from(failure: Failure) -> Self {
        Attempt::Final(failure)
    }
}

impl From<CarrierError> for Attempt {
    fn from(e: CarrierError) -> Self {
        match e {
            CarrierError::Unreachable { .. }
            | CarrierError::Unresolved { .. }
            | CarrierError::Proxy { .. }
            | CarrierError::Busy(_)
            | CarrierError::TimedOut(_)
            | CarrierError::Closed(_)
            | CarrierError::Handshake(_) => Attempt::Again(e),
            other => Attempt::Final(other.into()),
        }
    }
}

/// The failure with which this party ends because `who` ended the run.
pub fn aborted(who: &str, aborted: &Aborted) -> Failure {
    let known = [Code::Quorum, Code::Input, Code::Policy, Code::Peer, Code::Network];
    let code = known.into_iter().find(|code| *code as u8 == aborted.code).unwrap_or(Code::Denied);
    let next = "see its message; nothing was revealed beyond the totals of the rounds before";
    Failure::new(code, format!("{who} ended the run: {}", clean(&aborted.why)), next)
}
