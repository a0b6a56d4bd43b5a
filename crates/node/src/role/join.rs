//! Joining by an invitation: knocks at the one key that it names, waits for the operator there, and keeps roster and plan.

use std::{path::PathBuf, sync::Arc};

use tokio::time::timeout;
use veilsum_proto::{
    identity::Identity,
    joining::{Invitation, Meeting, Nonce, Role},
    plan::SignedTerms,
    roster::{PartyId, Roster, SignedRoster},
};

use super::{
    dial::Attempt,
    lobby_frames::{self as frames, Answer, ColumnsText, Knock, Message, Noted, Received, Shown},
    lobby_line::{Caller, Errand, LobbyLine, STEP, ours, sites_of},
    progress::Teller,
    stop,
};
use crate::{
    agreed::Federation,
    carrier::{Carrier, CarrierError},
    cost::counted,
    documents::{self, Begun, Pinned},
    error::Failure,
    random::drawn,
};

const JOIN: Errand = Errand {
    to: "join",
    by: "invitation",
    rule: "JOI-7",
    after_a_no: "ask its operator by telephone; a new invitation is a new try",
};

/// What a party that joins is given.
pub struct JoinConfig {
    /// Its identity.
    pub identity: Arc<Identity>,
    /// What it was sent.
    pub invitation: Invitation,
    /// Where it will listen; empty for a site.
    pub address: String,
    /// Its key file, beside which it keeps what it drew and heard.
    pub key: PathBuf,
    /// Where the roster goes.
    pub roster: PathBuf,
    /// Where the plan goes; whoever stands by at once does not wait for it here.
    pub plan: Option<PathBuf>,
    /// What its link runs on.
    pub carrier: Arc<dyn Carrier>,
    /// Told what happens.
    pub news: Teller,
}

/// Joins: waits, for ever if need be, until roster and plan are on the disk. The roster.
///
/// # Errors
/// A [`Failure`]: `Peer` where somebody else answers or the documents are not for this party, `Denied` where the operator says no.
pub async fn run(config: JoinConfig) -> Result<Roster, Failure> {
    stop::unless_told(join(&config), "start the same command again: it goes on where it was").await
}

async fn join(config: &JoinConfig) -> Result<Roster, Failure> {
    let mut begun = Begun::take_up(&config.key, config.invitation.token.hash(), Nonce(drawn()))?;
    let (coordinator, address) = (config.invitation.coordinator, &config.invitation.address);
    let mut caller = Caller::new((&config.identity, &*config.carrier), (coordinator, address), &JOIN)?;
    let mut compared = false;
    loop {
        let ended = match caller.dial().await {
            Ok(line) => attempt(config, line, &mut begun, &mut compared).await,
            Err(e) => Err(e),
        };
        match ended {
            Ok(roster) => return Ok(roster),
            Err(Attempt::Final(failure)) => {
                // An attempt that was answered is kept: there is one for an invitation ([JOI-5]).
                if begun.answer.is_none() {
                    let _ = Pinned::change(&config.key, |pinned| {
                        pinned.joining.retain(|begun| begun.invitation != config.invitation.token.hash());
                    });
                }
                return Err(failure);
            }
            Err(Attempt::Again(e)) => caller.rest(&e, &config.news).await,
        }
    }
}

async fn attempt(
    config: &JoinConfig,
    mut line: LobbyLine<'_>,
    begun: &mut Begun,
    compared: &mut bool,
) -> Result<Roster, Attempt> {
    let JoinConfig { identity, invitation, address, .. } = config;
    let meeting = Meeting {
        coordinator: invitation.coordinator,
        joiner: identity.public(),
        invitation: invitation.token.hash(),
        party: invitation.party.clone(),
        role: invitation.role,
        address: address.clone(),
    };
    let knock = Knock {
        token: invitation.token.clone(),
        party: invitation.party.clone(),
        role: invitation.role,
        address: address.clone(),
        commitment: meeting.commitment(&begun.nonce),
    };
    let gone = |_| Attempt::Again(CarrierError::TimedOut("no answer to the knock"));
    line.send(&knock).await?;
    let bytes = timeout(STEP, line.recv()).await.map_err(gone)??;
    let answer: Answer = line.open(&bytes)?;
    // Before the own number is shown: whoever sees it must not be able to answer anew.
    begun.answered(&config.key, answer.nonce)?;
    line.send(&Shown { nonce: begun.nonce }).await?;
    let bytes = timeout(STEP, line.recv()).await.map_err(gone)??;
    let Noted {} = line.open(&bytes)?;
    if !*compared {
        let (code, over) = (meeting.code(&begun.nonce, &answer.nonce), line.over);
        (config.news)(format!(
            "the coordinator answered over {over}. Your digits are\n\n    {code}\n\nCall its operator on a number that did not come with \
             the invitation, and read them aloud. If the operator says that they are others, stop: somebody stands between you.\n\
             waiting to be let in; this may take days, and may be stopped and started again"
        ));
        *compared = true;
    }
    let mut roster: Option<Roster> = None;
    loop {
        let bytes = line.recv().await?;
        match (frames::kind_of(&bytes), &roster, &config.plan) {
            (Some(SignedTerms::KIND), Some(roster), Some(plan)) => {
                let signed: SignedTerms = line.open(&bytes)?;
                let terms = signed.clone().verify(roster).map_err(Failure::from)?;
                let federation = Federation::new(roster.clone(), terms)?;
                documents::write_plan(plan, &signed)?;
                // Where the coordinator does not hear of it, it hands them out once more, to whoever comes again.
                if line.send(&Received { has: [roster.hash(), federation.terms.hash()] }).await.is_ok() {
                    line.finish().await;
                }
                return Ok(roster.clone());
            }
            (Some(ColumnsText::KIND), ..) => {
                let ColumnsText { text } = line.open(&bytes)?;
                let columns = counted(documents::take_columns(&config.roster, &text)?, "column");
                (config.news)(format!("columns.toml is here, with {columns}"));
            }
            _ => {
                let signed: SignedRoster = line.open(&bytes)?;
                let verified = signed.clone().verify().map_err(Failure::from)?;
                mine(config, &verified)?;
                documents::write_roster(&config.roster, &signed)?;
                (config.news)(format!("let in; the roster of {} has {}", verified.name, sites_of(&verified)));
                if config.plan.is_none() {
                    line.finish().await;
                    return Ok(verified);
                }
                roster = Some(verified);
            }
        }
    }
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
    let here = roster.coordinator.key == invitation.coordinator && roster.name == invitation.federation;
    ours(here && role && fits, "JOI-6")
}
