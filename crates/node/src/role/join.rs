//! Joining by an invitation: knocks at the one key that it names, waits for the operator there, and keeps roster and plan.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::time::timeout;
use veilsum_proto::{
    history::RosterDocument,
    identity::{Identity, PublicKey},
    joining::{Code as Digits, Invitation, Meeting, Nonce, Role},
    plan::SignedTerms,
    roster::{PartyId, Roster},
    suite::Hash,
};

use super::{
    lobby_frames::{self as frames, Answer, Knock, Message, Noted, Received, SchemaText, Shown, TurnedAway},
    stop, system_rng,
};
use crate::{
    agreed::Federation,
    app_messages::clean,
    carrier::{Address, Carrier, CarrierError, Credentials, Link},
    documents::{self, Begun, Taken},
    error::{Code, Failure},
    schema::Schema,
};

/// One attempt to connect.
const ATTEMPT: Duration = Duration::from_secs(5);
/// Pause before the next. There is no last one.
const PAUSE: Duration = Duration::from_secs(2);
/// Time for each step of a knock, here and there.
const STEP: Duration = Duration::from_secs(15);

/// What a party that joins is given.
pub struct JoinConfig {
    /// Its identity.
    pub identity: Arc<Identity>,
    /// What it was sent.
    pub invitation: Invitation,
    /// Where it will listen; empty for a site.
    pub address: String,
    /// Where it keeps what it drew and heard.
    pub begun: PathBuf,
    /// Where the roster goes.
    pub roster: PathBuf,
    /// Where the plan goes.
    pub plan: PathBuf,
    /// A site's rows, which have to fit to the schema.
    pub data: Option<PathBuf>,
    /// What its link runs on.
    pub carrier: Arc<dyn Carrier>,
    /// Told what happens.
    pub news: Arc<dyn Fn(News) + Send + Sync>,
}

/// How joining goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum News {
    /// There is no link, and the attempts go on.
    Again {
        /// Why.
        why: String,
        /// What may help.
        advice: String,
    },
    /// The coordinator has the token; these digits are to be compared.
    Compare {
        /// The digits.
        code: Digits,
        /// What the link runs on.
        over: &'static str,
    },
    /// The schema is on the disk, with so many columns; rows that were named fit to it.
    Schema {
        /// How many.
        columns: usize,
    },
    /// The roster is on the disk; the plan may take a while.
    Roster(Box<Roster>),
}

/// How an attempt ended.
enum Ended {
    /// Another one may do.
    Again(CarrierError),
    /// None will.
    Final(Failure),
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Ended::Final(failure)
    }
}

/// Joins: waits, for ever if need be, until roster and plan are on the disk.
///
/// # Errors
/// A [`Failure`]: `Peer` where somebody else answers or the documents are not for this party, `Denied` where the operator says no.
pub async fn run(config: JoinConfig) -> Result<Federation, Failure> {
    stop::unless_told(join(&config), "start the same command again: it goes on where it was").await
}

async fn join(config: &JoinConfig) -> Result<Federation, Failure> {
    let to: Address = config.invitation.address.parse().map_err(|why: String| {
        Failure::input(format!("the invitation's address cannot be used: {why}"), "ask the coordinator for a new one")
    })?;
    let mut nonce: Nonce = [0; 32];
    rand_core::Rng::fill_bytes(&mut system_rng(), &mut nonce);
    let mut begun = Begun::take_up(&config.begun, config.invitation.token.hash(), nonce)?;
    let credentials = Credentials::from_seed(&config.identity.seed())?;
    let expected = &config.invitation.coordinator;
    let (mut told, mut compared) = (String::new(), false);
    loop {
        let dialled = config.carrier.dial(&to, &credentials, &expected.0, frames::from_inside, ATTEMPT).await;
        let ended = match dialled {
            Ok(link) => attempt(config, link, &mut begun, &mut compared).await,
            Err(CarrierError::WrongServerKey { addr }) => Err(Ended::Final(Failure::new(
                Code::Peer,
                format!(
                    "whoever answers at {addr} is not the coordinator that the invitation names, and was sent nothing [JOI-2]"
                ),
                "do not go on: ask the coordinator's operator, on a number that did not come with the invitation, for its address and \
                 a new invitation",
            ))),
            Err(e) => Err(Ended::Again(e)),
        };
        match ended {
            Ok(federation) => return Ok(federation),
            Err(Ended::Final(failure)) => return Err(failure),
            Err(Ended::Again(e)) => {
                // The door of the lobby says no where it has its hands full; it knows no roster.
                let why = match &e {
                    CarrierError::NotAccepted => {
                        "the door there is shut for now: a run is going on, or too many knock at the same time"
                            .to_owned()
                    }
                    other => other.to_string(),
                };
                if why != told {
                    let advice = match &e {
                        CarrierError::NotAccepted => "it is tried again; nothing has to be done here".to_owned(),
                        other => other.advice(),
                    };
                    (config.news)(News::Again { why: why.clone(), advice });
                    told = why;
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn attempt(config: &JoinConfig, link: Link, begun: &mut Begun, compared: &mut bool) -> Result<Federation, Ended> {
    let JoinConfig { identity, invitation, address, .. } = config;
    let meeting = Meeting {
        coordinator: invitation.coordinator,
        joiner: identity.public(),
        invitation: invitation.token.hash(),
        party: invitation.party.clone(),
        role: invitation.role,
        address: address.clone(),
    };
    let session = frames::session(&invitation.coordinator, &identity.public());
    let over = link.handle().over();
    let (mut sender, mut receiver) = link.split();
    let knock = Knock {
        token: invitation.token.clone(),
        party: invitation.party.clone(),
        role: invitation.role,
        address: address.clone(),
        commitment: meeting.commitment(&begun.nonce),
    };
    let gone = |_| Ended::Again(CarrierError::TimedOut { what: "no answer to the knock" });
    sender.send_within(&frames::frame(identity, &session, &knock), STEP).await.map_err(Ended::Again)?;
    let bytes = heard(timeout(STEP, receiver.recv()).await.map_err(gone)?)?;
    let answer: Answer = open(&bytes, &session, &invitation.coordinator)?;
    // Before the own number is shown: whoever sees it must not be able to answer anew.
    begun.answered(&config.begun, answer.nonce)?;
    sender
        .send_within(&frames::frame(identity, &session, &Shown { nonce: begun.nonce }), STEP)
        .await
        .map_err(Ended::Again)?;
    let bytes = heard(timeout(STEP, receiver.recv()).await.map_err(gone)?)?;
    let Noted {} = open(&bytes, &session, &invitation.coordinator)?;
    if !*compared {
        (config.news)(News::Compare { code: meeting.code(&begun.nonce, &answer.nonce), over });
        *compared = true;
    }
    let mut roster: Option<Roster> = None;
    loop {
        let bytes = heard(receiver.recv().await)?;
        match (frames::kind_of(&bytes), &roster) {
            (Some(SignedTerms::KIND), Some(roster)) => {
                let signed: SignedTerms = open(&bytes, &session, &invitation.coordinator)?;
                let terms = signed.clone().verify(roster).map_err(Failure::from)?;
                let federation =
                    Federation::new(roster.clone(), terms)?.under(documents::schema_beside(&config.roster)?)?;
                documents::write_plan(&config.plan, &signed)?;
                let received = Received { has: [roster.hash(), federation.terms.hash()] };
                let sent = sender.send_within(&frames::frame(identity, &session, &received), STEP).await;
                // Where the coordinator does not hear of it, it hands them out once more, to whoever comes again.
                if sent.is_ok() {
                    let _ = sender.finish(STEP).await;
                }
                return Ok(federation);
            }
            (Some(SchemaText::KIND), _) => {
                let SchemaText { text } = open(&bytes, &session, &invitation.coordinator)?;
                let schema = match documents::take_schema(&config.roster, &text, false)? {
                    Taken::First(schema) | Taken::Known(schema) => schema,
                    Taken::Other(other) => return Err(documents::schema_differs(&other).into()),
                };
                // [SCH-3]: rows that do not fit are mended before anybody counts on them.
                config.data.iter().try_for_each(|data| fits(&schema, data))?;
                (config.news)(News::Schema { columns: schema.columns.len() });
            }
            _ => {
                let document: RosterDocument = open(&bytes, &session, &invitation.coordinator)?;
                document.verify().map_err(Failure::from)?;
                let verified = document.signed.roster.clone();
                mine(config, &verified)?;
                documents::write_roster_document(&config.roster, &document)?;
                (config.news)(News::Roster(Box::new(verified.clone())));
                roster = Some(verified);
            }
        }
    }
}

fn fits(schema: &Schema, data: &Path) -> Result<(), Failure> {
    let failure = documents::fit_of(schema, &data.into(), true)?.failure(data);
    failure.map_or(Ok(()), |failure| {
        let advice = format!(
            "{}; then start the same command again. The schema is here: `veilsum check --data FILE` says all of it",
            failure.advice
        );
        Err(Failure { advice, ..failure })
    })
}

fn heard(read: Result<Option<Vec<u8>>, CarrierError>) -> Result<Vec<u8>, Ended> {
    match read {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err(Ended::Again(CarrierError::closed("the coordinator hung up"))),
        Err(e) => Err(Ended::Again(e)),
    }
}

/// The message, or the coordinator's no in its place.
fn open<T: Message>(bytes: &[u8], session: &Hash, coordinator: &PublicKey) -> Result<T, Ended> {
    let odd = |why: String| {
        Failure::new(Code::Peer, format!("the coordinator broke a rule [JOI-7]: {why}"), "ask its operator")
    };
    if frames::kind_of(bytes) == Some(TurnedAway::KIND) {
        let TurnedAway { why } = frames::open(bytes, session, coordinator).map_err(odd)?;
        return Err(Ended::Final(Failure::new(
            Code::Denied,
            format!("the coordinator does not let this party join: {}", clean(&why)),
            "ask its operator by telephone; a new invitation is a new try",
        )));
    }
    frames::open(bytes, session, coordinator).map_err(|why| Ended::Final(odd(why)))
}

/// The roster is the one that this party was invited to, and gives it the place that it asked for ([JOI-6]).
fn mine(config: &JoinConfig, roster: &Roster) -> Result<(), Failure> {
    let JoinConfig { invitation, address, identity, .. } = config;
    let place = roster.find(&identity.public());
    let role = match invitation.role {
        Role::Site => matches!(place, Some(PartyId::Site(_))),
        Role::Intermediary => place == Some(PartyId::Intermediary),
    };
    let member = place.and_then(|id| roster.member(id));
    let fits = member.is_some_and(|member| member.name == invitation.party && member.address == *address);
    if roster.coordinator.key == invitation.coordinator && roster.name == invitation.federation && role && fits {
        return Ok(());
    }
    Err(Failure::new(
        Code::Peer,
        "the coordinator sent a roster that is not of this federation, or gives this party another place [JOI-6]",
        "it was not kept; ask its operator by telephone what happened",
    ))
}
