//! A member that waits for plans at its coordinator: takes the roster and the plan that are handed out, says what it would answer,
//! and is told when a run begins ([PRO-1] to [PRO-4]).

use std::{path::PathBuf, sync::Arc, time::Duration};

use veilsum_proto::{
    Rule,
    identity::{Identity, PublicKey},
    plan::SignedTerms,
    roster::{Roster, SignedRoster},
    suite::Hash,
};

pub use super::look::{Judge, Looking, Opinion};
use super::{
    dial::Attempt,
    lobby_frames::{self as frames, Begin, Message, StandBy, Stands, Without},
    lobby_line::{Caller, Errand, LobbyLine, not_yet, ours, sites_of},
    look::Look,
    progress::Teller,
    stop,
};
use crate::{
    agreed::Federation,
    carrier::Carrier,
    documents::{self, PlanAnswer},
    error::{Code, Failure},
};

const STAND_BY: Errand = Errand {
    to: "stand by",
    by: "roster",
    rule: "PRO-3",
    after_a_no: "do what it says where that is something on this machine; else ask its operator by telephone",
};
/// How often this party looks whether something has changed here that its answer rests on.
const LOOK: Duration = Duration::from_secs(1);

/// Runs that a party says it is done with: the last ones, of which a coordinator whose folder was put back may know an earlier one.
pub const MOST_DONE: usize = 16;
/// The pause where nothing can be written for now.
const FULL: Duration = Duration::from_secs(5);

/// What a member that stands by is given.
pub struct StandbyConfig {
    /// Its identity.
    pub identity: Arc<Identity>,
    /// The roster that it agreed to last, whose coordinator is dialled.
    pub agreed: Roster,
    /// Where rosters are kept.
    pub roster: PathBuf,
    /// Where plans are kept.
    pub plan: PathBuf,
    /// What its link runs on.
    pub carrier: Arc<dyn Carrier>,
    /// Runs that this party is done with, [`MOST_DONE`] at most.
    pub done: Vec<Hash>,
    /// The largest number of a run that it knows.
    pub number: u64,
    /// The rule that somebody broke in the last of `done`.
    pub broken: Option<Rule>,
    /// What it makes of what it was handed.
    ///
    /// Where it fails because nothing can be written for now, this party hangs up, and judges anew when it stands by again.
    pub judge: Judge,
    /// Another value whenever something may have changed that [`StandbyConfig::judge`] looks at.
    pub stamp: Arc<dyn Fn() -> Vec<String> + Send + Sync>,
    /// Told of another roster, which is on the disk.
    pub offered: Arc<dyn Fn(&Roster) + Send + Sync>,
    /// Told what happens.
    pub news: Teller,
}

/// What ends the wait: a run begins.
pub struct Next {
    /// Its number.
    pub number: u64,
    /// What it is known by.
    pub id: Hash,
    /// Roster and plan; none where this party said that its roster was not agreed to or it was not ready: it takes no part ([PRO-4]).
    pub federation: Option<Federation>,
}

/// Waits, for ever if need be, until a run begins that this party would answer.
///
/// # Errors
/// A [`Failure`]: `Peer` where somebody else answers or what is handed out is not for this party, `Denied` where the coordinator knows
/// it no more; the signal's where this process is told to stop.
pub async fn run(config: &StandbyConfig) -> Result<Next, Failure> {
    stop::unless_told(stand_by(config), "start it again whenever you like").await
}

async fn stand_by(config: &StandbyConfig) -> Result<Next, Failure> {
    let coordinator = &config.agreed.coordinator;
    let to = (coordinator.key, &*coordinator.address);
    let mut caller = Caller::new((&config.identity, &*config.carrier), to, &STAND_BY)?;
    let (mut unwritten, mut look) = (String::new(), None);
    loop {
        let ended = match caller.dial().await {
            Ok(line) => attempt(config, line, &mut look).await,
            Err(e) => Err(e),
        };
        match ended {
            Ok(next) => return Ok(next),
            // What was handed out could not be kept; it is handed out again.
            Err(Attempt::Final(Failure { code: Code::Storage, message: why, advice, .. })) => {
                if why != unwritten {
                    (config.news)(not_yet(&why, &advice));
                    unwritten = why;
                }
                tokio::time::sleep(FULL).await;
            }
            Err(Attempt::Final(failure)) => return Err(failure),
            Err(Attempt::Again(e)) => caller.rest(&e, &config.news).await,
        }
    }
}

/// What this party holds, as far as it is usable.
#[derive(Default)]
struct Own {
    roster: Option<Roster>,
    federation: Option<Federation>,
    /// What the coordinator was told over this line.
    said: Option<PlanAnswer>,
}

impl Own {
    fn load(config: &StandbyConfig) -> Own {
        let usable = |roster: &Roster| mine(&config.agreed, &config.identity.public(), roster).is_ok();
        let roster = documents::load_roster(&config.roster).ok().filter(usable);
        let federation = roster.as_ref().and_then(|_| documents::load_federation(&config.roster, &config.plan).ok());
        Own { roster, federation, ..Own::default() }
    }

    fn has(&self) -> [Hash; 2] {
        let plan = self.federation.as_ref().map_or(Hash::default(), |federation| federation.terms.hash());
        [self.roster.as_ref().map_or(Hash::default(), Roster::hash), plan]
    }

    /// Looks at the plan, unless that was done already and nothing has changed that it rests on.
    fn judge(&self, config: &StandbyConfig, look: &mut Option<Look>) {
        let (of, now) = (self.has(), (config.stamp)());
        match &self.federation {
            Some(_) if look.as_ref().is_some_and(|look| look.holds(of, &now)) => {}
            Some(federation) => {
                let (federation, judge) = (federation.clone(), config.judge.clone());
                *look = Some(Look::begin(look.take(), of, now, move |looking| judge(&federation, looking)));
            }
            None => *look = None,
        }
    }

    /// [PRO-2]: says what is new, each once. That rows are read is said before what came of it, however fast that came.
    async fn tell(&mut self, config: &StandbyConfig, look: &Look, line: &mut LobbyLine<'_>) -> Result<(), Attempt> {
        if look.reads() && self.said.is_none() {
            self.say(PlanAnswer::Reading, line).await?;
        }
        if let Some(opinion) = look.opinion().filter(|opinion| Some(&opinion.answer) != self.said.as_ref()) {
            self.say(opinion.answer.clone(), line).await?;
            (config.news)(opinion.told());
        }
        Ok(())
    }

    async fn say(&mut self, answer: PlanAnswer, line: &mut LobbyLine<'_>) -> Result<(), Attempt> {
        line.send(&Stands { to: self.has(), answer: answer.clone() }).await?;
        self.said = Some(answer);
        Ok(())
    }
}

/// What comes of a look; never where there is none. Cancel-safe.
async fn goes(look: &mut Option<Look>) -> Result<(), Failure> {
    match look {
        Some(look) => look.goes().await,
        None => std::future::pending().await,
    }
}

async fn attempt(config: &StandbyConfig, mut line: LobbyLine<'_>, look: &mut Option<Look>) -> Result<Next, Attempt> {
    let mut own = Own::load(config);
    let (has, done) = (own.has(), config.done.clone());
    line.send(&StandBy { has, done, number: config.number, broken: config.broken }).await?;
    (config.news)(format!("standing by at the coordinator over {}", line.over));
    own.judge(config, look);
    let mut tick = tokio::time::interval(LOOK);
    loop {
        if let Some(look) = look {
            own.tell(config, look, &mut line).await?;
        }
        let bytes = tokio::select! {
            bytes = line.recv() => bytes?,
            goes = goes(look) => {
                goes?;
                continue;
            }
            _ = tick.tick() => {
                if look.as_ref().is_some_and(|look| look.is_old(&(config.stamp)())) {
                    own.judge(config, look);
                }
                continue;
            }
        };
        match frames::kind_of(&bytes) {
            Some(SignedRoster::KIND) => {
                let signed: SignedRoster = line.open(&bytes)?;
                let roster = signed.clone().verify().map_err(Failure::from)?;
                mine(&config.agreed, &config.identity.public(), &roster)?;
                documents::write_roster(&config.roster, &signed)?;
                (config.news)(format!("another roster of {} is here, with {}", roster.name, sites_of(&roster)));
                (config.offered)(&roster);
                own = Own { roster: Some(roster), ..Own::default() };
            }
            Some(SignedTerms::KIND) => {
                let signed: SignedTerms = line.open(&bytes)?;
                let roster = own.roster.clone().ok_or_else(|| line.odd("a plan before a roster"))?;
                let terms = signed.clone().verify(&roster).map_err(Failure::from)?;
                let federation = Federation::new(roster, terms)?;
                documents::write_plan(&config.plan, &signed)?;
                (own.federation, own.said) = (Some(federation), None);
                own.judge(config, look);
            }
            Some(Without::KIND) => {
                let Without { number } = line.open(&bytes)?;
                (config.news)(format!(
                    "run {number} begins without this party, as the coordinator's operator wants it; this party stands by"
                ));
            }
            _ => {
                let Begin { number, run: id, plan } = line.open(&bytes)?;
                let federation = own.federation.clone().filter(|federation| federation.terms.hash() == plan);
                let federation = federation.ok_or_else(|| line.odd("a run of another plan begins"))?;
                if config.done.contains(&id) {
                    return Err(line.odd(&format!("run {number} begins, which has ended here")));
                }
                // Whether rows may be looked at for this plan is known first: taking part or not would be an answer, too.
                let mut answer = None;
                if let Some(look) = look {
                    let goes_on = look.goes_on();
                    look.ended().await?;
                    answer = look.opinion().cloned();
                    answer.iter().filter(|_| goes_on).for_each(|opinion| (config.news)(opinion.told()));
                }
                line.finish().await;
                let declines =
                    matches!(answer, Some(Opinion { answer: PlanAnswer::NotReady | PlanAnswer::Roster, .. }));
                return Ok(Next { number, id, federation: Some(federation).filter(|_| !declines) });
            }
        }
    }
}

/// A roster of this federation, under this coordinator, with this party in the role that it has ([PRO-3]). To take it is not to agree.
fn mine(agreed: &Roster, own: &PublicKey, roster: &Roster) -> Result<(), Failure> {
    let role = |roster: &Roster| roster.find(own).map(|id| std::mem::discriminant(&id));
    let same = roster.name == agreed.name && roster.coordinator.key == agreed.coordinator.key;
    ours(same && role(roster).is_some() && role(roster) == role(agreed), "PRO-3")
}

#[cfg(test)]
mod tests {
    use veilsum_proto::roster::Member;

    use super::*;

    /// [PRO-3]: a roster of another federation, of another coordinator, without this party or with it in another role is not kept.
    #[test]
    fn only_rosters_that_leave_this_party_its_place_are_kept() {
        let key = |seed: u8| Identity::from_seed(&[seed; 32]).public();
        let member = |seed, name: &str| Member { name: name.into(), key: key(seed), address: String::new() };
        let agreed = Roster {
            name: "test".into(),
            coordinator: member(1, "hub"),
            intermediary: member(2, "counter"),
            sites: (3..6).map(|seed| member(seed, &format!("site-{seed}"))).collect(),
        };
        let kept = |roster: &Roster| mine(&agreed, &key(3), roster).is_ok();
        let mut grown = agreed.clone();
        grown.sites.push(member(9, "site-9"));
        assert!(kept(&agreed) && kept(&grown));
        let mut other = agreed.clone();
        other.name = "other".into();
        assert!(!kept(&other));
        other.clone_from(&agreed);
        other.coordinator = member(7, "hub");
        assert!(!kept(&other), "a coordinator's key does not change");
        other.clone_from(&agreed);
        other.sites.remove(0);
        assert!(!kept(&other));
        other.intermediary = member(3, "site-3");
        assert!(!kept(&other), "a site that is to count");
    }
}
