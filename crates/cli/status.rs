//! `veilsum status`: how a party that runs on this machine stands, and where none runs, what it left.

mod metrics;

use std::{
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use clap::Args;
use serde_json::{Value, json};
use veilsum_node::{
    clock::seconds_since_1970,
    cost::counted,
    documents::{load_federation, load_identity, policy_of},
    door::{
        Entry, Event, cap_of,
        ledger::{self, FILE},
    },
    error::Failure,
    refusal::rho_text,
    role::{
        progress::{ago, size},
        status::{self, Peer, Phase, Status},
    },
    store::{HubEntry, Journal},
};
use veilsum_proto::{
    journal::{Record, RecordKind},
    message::{self, Disclosure},
    roster::PartyId,
};

use crate::{
    party::{key_beside, state_beside, state_of},
    screen::folded,
    verb::Verb,
};

/// Say how a party that runs on this machine is getting on
///
/// It asks the process over a socket in the party's state folder, which only the same user can open. If no process runs, it says so,
/// with what the journal and the ledger hold, and ends with exit code 0 as well: --json has `running`.
#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    /// The federation's roster
    #[arg(long, value_name = "FILE", default_value = "roster.toml")]
    pub roster: PathBuf,
    /// The plan that everybody agreed to
    #[arg(long, value_name = "FILE", default_value = "plan.toml")]
    pub plan: PathBuf,
    /// This party's secret key file [default: the only *.key file beside the roster]
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// The party's state folder [default: beside the key]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Print metrics in the text format of Prometheus, as node_exporter's textfile collector reads them
    #[arg(long)]
    metrics: bool,
}

impl Verb for StatusArgs {
    /// Runs `veilsum status`.
    ///
    /// # Errors
    /// A [`Failure`] where a process runs that cannot be asked, or no state folder is named.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let folder = match &self.state {
            Some(state) => state.clone(),
            None => {
                let key = key_beside(self.key.as_ref(), &self.roster)?;
                Some(state_beside(&key, None))
                    .filter(|beside| beside.is_dir())
                    .map_or_else(|| state_of(&key, None), Ok)?
            }
        };
        let found = status::ask(&folder)?;
        let account = self.account(&folder);
        if self.metrics {
            return crate::verb::print(false, &json!(null), metrics::text(found.as_ref(), account).trim_end());
        }
        let (value, mut lines) = match found {
            Some(status) => {
                let mut value = json!(status);
                value["running"] = json!(true);
                (value, told(&status))
            }
            None => {
                let (last, told) = self.last(&folder).unwrap_or_default();
                let lines = ["not running".to_owned()].into_iter().chain(told).collect::<Vec<_>>();
                (json!({ "running": false, "last": last }), lines)
            }
        };
        let spent =
            account.map(|(spent, cap)| format!("account: rho {} of {} is spent", rho_text(spent), rho_text(cap)));
        lines.extend(spent);
        let text: Vec<String> = lines.iter().map(|line| folded(line, 0)).collect();
        crate::verb::print(json, &value, &text.join("\n"))
    }
}

impl StatusArgs {
    /// What the account in a site's folder has spent, and its cap; nothing of other parties.
    fn account(&self, folder: &Path) -> Option<(u64, u64)> {
        // A state folder lies beside its key, unless somebody says otherwise.
        let beside = || Some(folder.with_extension("")).filter(|key| key.is_file());
        let key = key_beside(self.key.as_ref(), &self.roster).ok().or_else(beside)?;
        let (identity, _) = load_identity(&key).ok()?;
        let account = ledger::look(folder, &identity.public()).ok()?;
        let policy = policy_of(None, Some(&key)).ok()?.0.policy;
        Some((account.spent().nano_rho, cap_of(&policy, &account).ok()?))
    }

    /// What journal and ledger hold; nothing where the party is not known, or they cannot be read.
    fn last(&self, folder: &Path) -> Option<(Value, Vec<String>)> {
        let federation = load_federation(&self.roster, &self.plan).ok()?;
        let key = key_beside(self.key.as_ref(), &self.roster).ok()?;
        let (identity, _) = load_identity(&key).ok()?;
        let id = federation.whoami(&identity).ok()?;
        let session = |of| message::session(&federation.terms.hash(), &federation.roster.hash(), of);
        // Totals of an aggregator's unfinished run; whether a site has keys of one; its answers under this plan, in all of its runs.
        let (mut totals, mut in_run, mut answered) = (None, false, None);
        let written = if id == PartyId::Coordinator || id == PartyId::Intermediary {
            let (entries, at) = Journal::<HubEntry>::look(folder, &session(id)).ok()??;
            let has_begun = entries.iter().any(|entry| matches!(entry, HubEntry::Machine(_)));
            let is_total = |entry: &&HubEntry| matches!(entry, HubEntry::Machine(record) if record.is_total());
            totals = has_begun.then(|| entries.iter().filter(is_total).count());
            seconds(at)
        } else {
            let journal = Journal::<Record>::look(folder, &session(PartyId::Coordinator)).ok()?;
            let is_deck = |record: &Record| record.kind() == RecordKind::Deck;
            in_run = journal.is_some_and(|(records, _)| records.iter().any(is_deck));
            let (entries, plan) = (ledger::all(folder).ok()?, federation.terms.hash());
            let answers = |of: &&Entry| matches!(&of.event, Event::Frame(frame) if frame.talk.plan == plan && frame.discloses == Disclosure::MaskedWords);
            answered = Some(entries.iter().filter(answers).count());
            std::fs::metadata(folder.join(FILE)).and_then(|about| about.modified()).ok().and_then(seconds)
        };
        let mut lines = vec![match totals {
            Some(totals) => {
                format!("a run is unfinished, after {}; start the same command again", counted(totals, "total"))
            }
            None if in_run => "a run is unfinished; start the same command again".into(),
            None => "no run of this plan is unfinished".into(),
        }];
        lines.extend(answered.map(|answered| format!("{} answered under this plan", counted(answered, "question"))));
        let since = |at: u64| ago(seconds_since_1970().saturating_sub(at));
        lines.extend(written.map(|at| format!("last written {} ago", since(at))));
        let unfinished = totals.is_some() || in_run;
        let value = json!({ "unfinished": unfinished, "totals": totals, "answered": answered, "written": written });
        Some((value, lines))
    }
}

fn seconds(time: SystemTime) -> Option<u64> {
    time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

/// Parties that are listed.
const SHOWN: usize = 5;

/// One fact a line, and no columns: it is read on any terminal.
fn told(status: &Status) -> Vec<String> {
    let since = |at: u64| ago(status.now.saturating_sub(at));
    let mut lines = vec![[&*status.party, &*status.role].join(", ").trim_end_matches(", ").to_owned()];
    lines.extend(status.federation.as_ref().map(|name| format!("of {name}")));
    lines.extend(status.plan.as_ref().map(|plan| format!("plan {plan}")));
    lines.push(format!("{} for {}", status.phase, since(status.since)));
    lines.push(format!("started {} ago", since(status.started)));
    let rests = matches!(status.phase, Phase::Lobby | Phase::StandingBy);
    if let Some(round) = status.round.as_ref().filter(|_| rests) {
        let ended = status.last_run.unwrap_or(round.at);
        lines.push(format!("the last run ended after question {}, {} ago", round.number, since(ended)));
    } else if let Some(round) = &status.round {
        lines.push(format!("round {} of at most {}", round.number, round.of));
        let what = round.what.iter().cloned();
        let sites = round.sites.iter().map(|sites| counted(*sites, "site"));
        let about: Vec<String> = what.chain(sites).chain([format!("{} ago", since(round.at))]).collect();
        lines.push(format!("  {}", about.join(", ")));
    }
    if let Some(open) = &status.open {
        let answers = open.answers.map(|(arrived, of)| format!(", {arrived} of {of} sites answered"));
        lines.push(format!("question {} is open{}", open.number, answers.unwrap_or_default()));
    }
    lines.extend(status.shift().filter(|_| !rests).map(|shift| format!("centres moved by {shift:.1e}")));
    lines.extend(status.left.map(|left| format!("at most {} left", ago(left))));
    if status.bytes != (0, 0) {
        lines.push(format!("sent {}, received {}", size(status.bytes.0), size(status.bytes.1)));
    }
    let (here, away): (Vec<&Peer>, Vec<&Peer>) = status.parties.iter().partition(|peer| peer.over.is_some());
    if !status.parties.is_empty() {
        lines.push(format!("connected: {} of {}", here.len(), status.parties.len()));
    }
    for peers in [here, away] {
        lines.extend(peers.iter().find(|peer| peer.over.is_none()).map(|_| "missing:".to_owned()));
        for peer in peers.iter().take(SHOWN) {
            let heard = peer.heard.as_deref();
            let [name, heard] = match (&peer.over, peer.since) {
                (Some(over), at) => {
                    [format!(" {over} {}", since(at.unwrap_or(status.now))), heard.unwrap_or("").to_owned()]
                }
                (None, Some(at)) => ["".into(), format!("{} ago: {}", since(at), heard.unwrap_or("never connected"))],
                (None, None) => ["".into(), heard.unwrap_or("never connected").to_owned()],
            };
            lines.push(format!("  {}{name}", peer.party));
            lines.extend(Some(heard).filter(|heard| !heard.is_empty()).map(|heard| format!("    {heard}")));
            lines.extend(peer.lost.as_ref().map(|why| format!("    out of the run: {why}")));
        }
        let more = peers.len().saturating_sub(SHOWN);
        lines.extend((more > 0).then(|| format!("  and {more} more (--json names all)")));
    }
    if let Some(trouble) = &status.trouble {
        lines.push(format!("last trouble, {} ago: {}", since(trouble.at), trouble.what));
    }
    lines
}

#[cfg(test)]
mod tests {
    use veilsum_node::{method_session::Moved, role::status::Round};

    use super::*;

    #[test]
    fn of_many_parties_five_are_listed() {
        let mut status = Status::new("hub", "coordinator");
        let peer = |at: usize| {
            let over = (at < 100).then(|| "QUIC".into());
            Peer { party: format!("school-{at}"), over, since: None, heard: None, lost: None }
        };
        status.parties = (0..160).map(peer).collect();
        let text = told(&status).join("\n");
        assert_eq!(text.matches("school-").count(), 10, "{text}");
        assert!(
            text.contains("connected: 100 of 160") && text.contains("  and 95 more") && text.contains("  and 55 more"),
            "{text}"
        );
    }

    /// A site between two runs is not one that is stuck in a run.
    #[test]
    fn a_site_that_stands_by_says_so_and_how_the_last_run_ended() {
        let mut status = Status::new("site-1", "site");
        status.now = status.since + 18;
        let at = status.since;
        status.round = Some(Round { number: 7, of: 31, what: None, sites: None, at });
        status.moved = vec![Moved { k: 3, round: 7, shift: 1e-9, rests: true }];
        let lines = told(&status);
        assert!(lines.contains(&"standing by for 18 s".to_owned()), "{lines:?}");
        assert!(lines.contains(&"the last run ended after question 7, 18 s ago".to_owned()), "{lines:?}");
        let text = lines.join("\n");
        assert!(!["lobby", "of at most", "centres"].iter().any(|word| text.contains(word)), "{text}");
        status.phase = Phase::Running;
        assert!(told(&status).contains(&"round 7 of at most 31".to_owned()), "{:?}", told(&status));
    }
}
