//! `veilsum ledger`: what a site ever gave away, entry by entry, and what it keeps of a run.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use veilsum_proto::{journal::Record, message::session, roster::PartyId, suite::Hash};

use crate::{
    party::{own_identity, state_of},
    verb::Verb,
    verify::documents_of,
};
use veilsum_node::{
    cost::counted,
    documents::{fingerprint, load_federation, policy_of},
    door::{
        Data, Entry, Event, Frame, Ledger, Note,
        ledger::{self, HEAD},
    },
    error::Failure,
    refusal::rho_text,
    store::{Journal, Told},
};

/// Say what this site gave away, or erase what it keeps of a run
#[derive(Args, Debug)]
pub(crate) struct LedgerArgs {
    /// What to do
    #[arg(value_enum, default_value_t = What::Show)]
    pub what: What,
    /// The run to forget: the folder of its result
    #[arg(value_name = "RUN", required_if_eq("what", "forget"))]
    pub run: Option<PathBuf>,
    /// This site's secret key file
    #[arg(long, value_name = "FILE.key")]
    pub key: PathBuf,
    /// Folder of its ledger [default: beside the key]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// The policy [default: site.toml beside the key, else the default]
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
}

/// What is done with a ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum What {
    /// Print every entry
    Show,
    /// Erase what the state folder keeps of a run, for good; the account stays
    Forget,
}

impl Verb for LedgerArgs {
    /// Runs `veilsum ledger`.
    ///
    /// # Errors
    /// A [`Failure`] that names file and entry.
    fn run(&self, json: bool) -> Result<(), Failure> {
        if self.run.is_some() && self.what != What::Forget {
            return Err(Failure::usage("a run is named to be forgotten alone", "say `forget RUN`"));
        }
        match self.what {
            What::Forget => forget(self, self.run.as_deref().unwrap_or(Path::new(".")), json),
            What::Show => {
                let entries = ledger::all(&state_of(&self.key, self.state.as_ref())?)?;
                crate::verb::print(json, &entries.iter().map(to_json).collect(), &table(&entries))
            }
        }
    }
}

/// Erases journals and transcripts of the run whose result is in `run`. Its plan is not answered again ([POL-8]).
fn forget(args: &LedgerArgs, run: &Path, json: bool) -> Result<(), Failure> {
    let state = state_of(&args.key, args.state.as_ref())?;
    let (identity, _) = own_identity(&args.key, &state)?;
    if !run.is_dir() {
        let what = format!("{}: there is no such folder of a run", run.display());
        return Err(Failure::input(what, "name the folder in which its result lies, such as results/007-0123abcd"));
    }
    let [roster, plan] = documents_of([None, None], &run.join("result.json"))?;
    let federation = load_federation(&roster, &plan)?;
    let own = federation.whoami(&identity)?;
    if own == PartyId::Coordinator {
        return Err(Failure::input("the coordinator keeps its run for all others", "end the run: veilsum plan stop"));
    }
    let terms = federation.terms.hash();
    // Nobody is in the run meanwhile, and what it did not spend is free again.
    if state.join(HEAD).exists() {
        let (site, _) = policy_of(args.policy.as_deref(), Some(&args.key))?;
        Ledger::open(&state, Arc::new(identity), Data::unread(&site.data), Some(terms))?.end_run(&terms)?;
    }
    let mut erased = 0;
    for aggregator in [PartyId::Coordinator, PartyId::Intermediary] {
        let session = session(&terms, &federation.roster.hash(), aggregator);
        erased += u32::from(Journal::<Record>::forget(&state, &session)?);
        erased += u32::from(Journal::<Told>::forget(&state, &session)?);
    }
    let (files, at) = (counted(erased as usize, "file"), plan.display());
    let text = format!(
        "erased {files} of the run under {at}. The account is what it was. Results and openings are in no state folder: remove {} yourself if nobody \
         needs them",
        run.display()
    );
    crate::verb::print(json, &json!({ "erased": erased, "plan": terms.to_string() }), &text)
}

fn to_json(entry: &Entry) -> Value {
    let mut value = json!(entry);
    value["link"] = json!(entry.link());
    value
}

/// The plan of a note, if it has one, and what it says, in a few words.
fn note_name(note: &Note) -> (Option<&Hash>, &'static str) {
    match note {
        Note::Account(_) => (None, "what the account promises"),
        Note::Signer => (None, "signed by another key from here on"),
        Note::Sites(_) => (None, "sites accepted"),
        Note::Agreed { plan, .. } => (Some(plan), "plan agreed to"),
        Note::Begun { plan, .. } => (Some(plan), "run begun"),
        Note::Ended(plan) => (Some(plan), "run ended"),
        Note::Met { talk, .. } => (Some(&talk.plan), "others' ledgers kept"),
        Note::Charged { talk, .. } => (Some(&talk.plan), "charged"),
    }
}

fn table(entries: &[Entry]) -> String {
    let mut text = format!(
        "{:>6}  {:<19}  {:<16}  {:<18} {:>8} {:>9} {:>9}  data\n",
        "entry", "plan", "what", "question", "bytes", "numbers", "rho"
    );
    for e in entries {
        let about = |plan: Option<&Hash>| plan.map_or_else(String::new, |plan| fingerprint(&plan.0));
        let line = match &e.event {
            Event::Note(Note::Charged { talk, answer, .. }) => {
                let (rho, scalars) = (answer.cost.nano_rho.map_or("exact".to_owned(), rho_text), answer.cost.scalars);
                let plan = about(Some(&talk.plan));
                format!("{plan:<19}  {:<16}  {:<18} {:>8} {scalars:>9} {rho:>9}", "charged", answer.kind, "")
            }
            Event::Note(note) => {
                let (plan, name) = note_name(note);
                format!("{:<19}  {name}", about(plan))
            }
            Event::Frame(Frame { talk, discloses, bytes, data, .. }) => {
                let (plan, what) = (about(Some(&talk.plan)), json!(discloses));
                let what = what.as_str().unwrap_or_default();
                format!("{plan:<19}  {what:<16}  {:<18} {bytes:>8} {:>9} {:>9}  {data}", "", "", "")
            }
        };
        text += &format!("{:>6}  {line}\n", e.index);
    }
    if let Some(last) = entries.last() {
        text += &format!("link of the last entry: {}\n", last.link());
    } else {
        text += "nothing has left yet\n";
    }
    text
}
