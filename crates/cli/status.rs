//! `veilsum status`: how a party that runs on this machine stands, and where none runs, what it left.

mod metrics;

use std::{
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use clap::Args;
use serde_json::json;
use veilsum_node::{
    clock::seconds_since_1970,
    cost::counted,
    documents::{load_federation, load_identity},
    error::Failure,
    role::{
        progress::size,
        status::{self, Peer, Phase, Status},
    },
    store::{
        HubEntry, Journal,
        ledger::{self, FILE},
    },
};
use veilsum_proto::{
    journal::{Record, RecordKind},
    message::{self, Disclosure},
    roster::PartyId,
};

use crate::{
    party::{Documents, state_beside, state_of},
    screen::{ago, folded},
    verb::Verb,
};

/// Say how a party that runs on this machine is getting on
///
/// It asks the process over a socket in the party's state folder, which only the same user can open. If no process runs, it says so,
/// with what the journal and the ledger hold, and ends with exit code 0 as well: --json has `running`.
#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    /// Whose status.
    #[command(flatten)]
    pub documents: Documents,
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
                let key = self.documents.key()?;
                Some(state_beside(&key, None)).filter(|beside| beside.is_dir()).unwrap_or_else(|| state_of(&key, None))
            }
        };
        let found = status::ask(&folder)?;
        if self.metrics {
            return crate::verb::print(false, &json!(null), metrics::text(found.as_ref()).trim_end());
        }
        let (value, lines) = match found {
            Some(status) => {
                let mut value = json!(status);
                value["running"] = json!(true);
                (value, told(&status))
            }
            None => {
                let last = self.last(&folder);
                let mut lines = vec!["not running".to_owned()];
                lines.extend(last.as_ref().map(Last::told).unwrap_or_default());
                (json!({ "running": false, "last": last.map(|last| last.json()) }), lines)
            }
        };
        let text: Vec<String> = lines.iter().map(|line| folded(line, 0)).collect();
        crate::verb::print(json, &value, &text.join("\n"))
    }
}

/// What a process that ended left.
struct Last {
    /// Totals of the aggregator's unfinished run, where there is one.
    totals: Option<usize>,
    /// Whether the site has keys of an unfinished run.
    in_run: bool,
    /// Answers of the site under this plan, in all of its runs.
    answered: Option<usize>,
    /// When the journal or the ledger was written last, in seconds since 1970.
    written: Option<u64>,
}

impl StatusArgs {
    /// What journal and ledger hold; nothing where the party is not known, or they cannot be read.
    fn last(&self, folder: &Path) -> Option<Last> {
        let federation = load_federation(&self.documents.roster, &self.documents.plan).ok()?;
        let key = self.documents.key().ok()?;
        let (identity, _) = load_identity(&key).ok()?;
        let id = federation.whoami(&identity).ok()?;
        let session = |of| message::session(&federation.terms.hash(), &federation.roster.hash(), of);
        if id == PartyId::Coordinator || id == PartyId::Intermediary {
            let (entries, at) = Journal::<HubEntry>::look(folder, &session(id)).ok()??;
            let records: Vec<_> = entries.into_iter().filter_map(HubEntry::machine).collect();
            let totals = records.iter().filter(|record| record.is_total()).count();
            let totals = (!records.is_empty()).then_some(totals);
            return Some(Last { totals, in_run: false, answered: None, written: seconds(at) });
        }
        let journal = Journal::<Record>::look(folder, &session(PartyId::Coordinator)).ok()?;
        let in_run = journal.is_some_and(|(records, _)| records.iter().any(|record| record.kind() == RecordKind::Deck));
        let entries = ledger::all(folder).ok()?;
        let plan = federation.terms.hash();
        let of_plan = entries.iter().filter(|entry| entry.plan == plan && entry.discloses == Disclosure::MaskedWords);
        let written = std::fs::metadata(folder.join(FILE)).and_then(|about| about.modified()).ok().and_then(seconds);
        Some(Last { totals: None, in_run, answered: Some(of_plan.count()), written })
    }
}

impl Last {
    fn told(&self) -> Vec<String> {
        let mut lines = Vec::new();
        match self.totals {
            Some(totals) => lines
                .push(format!("a run is unfinished, after {}; start the same command again", counted(totals, "total"))),
            None if self.in_run => lines.push("a run is unfinished; start the same command again".into()),
            None => lines.push("no run of this plan is unfinished".into()),
        }
        if let Some(answered) = self.answered {
            lines.push(format!("{} answered under this plan", counted(answered, "question")));
        }
        if let Some(written) = self.written {
            lines.push(format!("last written {} ago", ago(seconds_since_1970().saturating_sub(written))));
        }
        lines
    }

    fn json(&self) -> serde_json::Value {
        json!({ "unfinished": self.totals.is_some() || self.in_run, "totals": self.totals, "answered": self.answered,
                "written": self.written })
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
    let phase = match status.phase {
        Phase::Lobby => "lobby open",
        Phase::StandingBy => "standing by",
        Phase::Waiting => "waiting",
        Phase::Running => "running",
        Phase::Ended => "ending",
    };
    lines.push(format!("{phase} for {}", since(status.since)));
    lines.push(format!("started {} ago", since(status.started)));
    let rests = matches!(status.phase, Phase::Lobby | Phase::StandingBy);
    if let Some(round) = status.round.as_ref().filter(|_| rests) {
        lines.push(format!("the last run ended after question {}, {} ago", round.number, since(round.at)));
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
    for peer in here.iter().take(SHOWN) {
        let over = peer.over.as_deref().unwrap_or_default();
        lines.push(format!("  {} {over} {}", peer.party, since(peer.since.unwrap_or(status.now))));
        lines.extend(peer.heard.as_ref().map(|what| format!("    {what}")));
        lines.extend(peer.lost.as_ref().map(|why| format!("    out of the run: {why}")));
    }
    let more = |of: &[&Peer]| {
        let more = of.len().saturating_sub(SHOWN);
        (more > 0).then(|| format!("  and {more} more (--json names all)"))
    };
    lines.extend(more(&here));
    if !away.is_empty() {
        lines.push("missing:".into());
    }
    for peer in away.iter().take(SHOWN) {
        lines.push(format!("  {}", peer.party));
        let heard = peer.heard.as_deref().unwrap_or("never connected");
        lines.push(match peer.since {
            Some(at) => format!("    {} ago: {heard}", since(at)),
            None => format!("    {heard}"),
        });
        lines.extend(peer.lost.as_ref().map(|why| format!("    out of the run: {why}")));
    }
    lines.extend(more(&away));
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
