//! `veilsum ledger`: what a site ever gave away, entry by entry, what its operator declares of its rows, and what it keeps of a run.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use veilsum_proto::{
    journal::Record,
    ledger::{Column, Entry, Note},
    message::session,
    policy::rho_text,
    roster::PartyId,
    suite::Hash,
};

use crate::{
    party::{own_identity, state_of},
    verb::Verb,
    verify::documents_of,
};
use veilsum_node::{
    cost::counted,
    documents::{fingerprint, header_of, load_federation, origin_of, policy_of},
    error::Failure,
    plan::Categorical,
    release::{Data, Known, Left},
    store::{
        Journal, Ledger, Told,
        ledger::{self, HEAD},
    },
    table::TableSpec,
};

/// Say what this site gave away, and what became of its rows
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
    /// The rows as they are from now on, with the columns of before [default: as site.toml says]
    #[arg(long, value_name = "ROWS")]
    pub data: Option<PathBuf>,
}

/// What is done with a ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum What {
    /// Print every entry
    Show,
    /// Declare that rows were added to the data set, removed from it or corrected
    Changed,
    /// Declare that other rows altogether take the place of the data set; what was given away before still counts
    Separate,
    /// Erase what the state folder keeps of a run, for good; the account stays
    Forget,
}

impl Verb for LedgerArgs {
    /// Runs `veilsum ledger`.
    ///
    /// # Errors
    /// A [`Failure`] that names file and entry.
    fn run(&self, json: bool) -> Result<(), Failure> {
        if self.data.is_some() && !matches!(self.what, What::Changed | What::Separate) {
            let what = "rows are looked at for a declaration alone";
            return Err(Failure::usage(what, "leave --data out, or say `changed` or `separate`"));
        }
        if self.run.is_some() && self.what != What::Forget {
            return Err(Failure::usage("a run is named to be forgotten alone", "say `forget RUN`"));
        }
        match self.what {
            What::Forget => forget(self, self.run.as_deref().unwrap_or(Path::new(".")), json),
            What::Changed => changed(self, json),
            What::Separate => separate(self, json),
            What::Show => {
                let entries = own(self)?;
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
        let data = Data { name: site.data, rows: Hash::default() };
        Ledger::open(&state, Arc::new(identity), data, terms)?.end_run(&terms)?;
    }
    let mut erased = 0;
    for aggregator in [PartyId::Coordinator, PartyId::Intermediary] {
        let session = session(&terms, &federation.roster.hash(), aggregator);
        erased += u32::from(Journal::<Record>::forget(&state, &session)?);
        erased += u32::from(Journal::<Told>::forget(&state, &session)?);
    }
    let text = format!(
        "erased {} of the run under {}. The account is what it was. Results and openings are in no state folder: remove {} yourself if nobody \
         needs them",
        counted(erased as usize, "file"),
        plan.display(),
        run.display()
    );
    crate::verb::print(json, &json!({ "erased": erased, "plan": terms.to_string() }), &text)
}

fn changed(args: &LedgerArgs, json: bool) -> Result<(), Failure> {
    let version = declare(args, Note::Changed)?;
    let text = format!(
        "noted: version {version} of the rows. This site answers from them once as many sites of its block have declared a change as \
         the policies ask for, in one run. What was spent stays spent, and plans without noise are not answered if exact totals left before"
    );
    crate::verb::print(json, &json!({ "version": version }), &text)
}

fn separate(args: &LedgerArgs, json: bool) -> Result<(), Failure> {
    let version = declare(args, Note::Separate)?;
    let text = "noted: these are other rows. This site joins a new block with them; what it gave away before still counts in its \
                budget. If rows of before are among them, the totals of then and now can be subtracted";
    crate::verb::print(json, &json!({ "version": version }), text)
}

/// Notes the columns of the data set as they are now. The version from now on.
fn declare(args: &LedgerArgs, note: impl FnOnce(Vec<Column>) -> Note) -> Result<u32, Failure> {
    let state = state_of(&args.key, args.state.as_ref())?;
    let (identity, _) = own_identity(&args.key, &state)?;
    let account = Ledger::look(&state, &identity.public())?;
    let names: Vec<String> = account.columns().cloned().collect();
    if names.is_empty() {
        return Err(Failure::input(
            "nothing was answered from any rows yet",
            "start the site with the rows as they are",
        ));
    }
    // As the rows were read that were answered from.
    let (site, file) = policy_of(args.policy.as_deref(), Some(&args.key))?;
    let from = site.rows_from(args.data.as_deref(), file.as_deref(), Some(&args.key))?;
    let (rules, person_key) = (from.rules.clone(), from.person_key()?);
    let spec = TableSpec { rules, list: from.list.clone(), person_key, ..TableSpec::default() };
    let asked = names.iter().map(|name| name.rsplit_once('=').map_or(name.as_str(), |(column, _)| column));
    let (_, header) = header_of(&from, asked)?;
    let (columns, categorical) = from_indicators(&names, &header);
    let origin = origin_of(&from, TableSpec { columns, categorical, ..spec })?;
    let noted = origin.columns(&identity, &account.together());
    if matches!(account.recognises(&origin, &identity), Known::Same(_)) {
        return Err(Failure::input(
            format!("{}: these are the rows that this site answered from: nothing has changed [REL-7]", from.place()),
            "declare a change where this site's own rows have changed; a site whose rows are as they were does not help another one \
             with a declaration: who subtracts the totals of then and now would have that one's new rows",
        ));
    }
    let data = Data { name: site.data, rows: Hash::default() };
    let mut ledger = Ledger::open(&state, Arc::new(identity), data, Hash::default())?;
    ledger.note(note(noted), &Left::default(), Hash::default())?;
    Ok(ledger.book().standing().version)
}

/// The columns of numbers among the columns of a ledger, and those of categories, which it knows by their indicators
/// (`COLUMN=CATEGORY`) and the file's header by their own names.
fn from_indicators(names: &[String], header: &[String]) -> (Vec<String>, Vec<Categorical>) {
    let (mut columns, mut categorical) = (Vec::new(), Vec::<Categorical>::new());
    for name in names {
        let mut ends = name.rmatch_indices('=').map(|(at, _)| (&name[..at], &name[at + 1..]));
        let found = ends.find(|(column, _)| header.iter().any(|known| known == column));
        match found.filter(|_| !header.contains(name)) {
            None => columns.push(name.clone()),
            Some((column, category)) => {
                let at = categorical.iter().position(|of| of.column == column).unwrap_or_else(|| {
                    categorical.push(Categorical { column: column.to_owned(), categories: Vec::new(), weight: 1.0 });
                    categorical.len() - 1
                });
                categorical[at].categories.push(category.to_owned());
            }
        }
    }
    (columns, categorical)
}

/// The entries of one's own ledger.
fn own(args: &LedgerArgs) -> Result<Vec<Entry>, Failure> {
    Ok(ledger::all(&state_of(&args.key, args.state.as_ref())?)?)
}

fn to_json(entry: &Entry) -> Value {
    let mut value = json!(entry);
    value["link"] = json!(entry.link());
    value
}

/// What a note says, in a word.
fn note_name(note: &Note) -> &'static str {
    match note {
        Note::Columns(_) => "columns first seen",
        Note::Changed(_) => "rows changed",
        Note::Separate(_) => "other rows",
        Note::Undone => "round undone",
        Note::Signer => "signed by another key from here on",
        Note::Agreed => "exact totals agreed",
        Note::Begun(_) => "run begun",
        Note::Ended => "run ended",
        Note::Met { .. } => "others' ledgers kept",
    }
}

fn table(entries: &[Entry]) -> String {
    let mut text = format!(
        "{:>6}  {:<19}  {:<16}  {:<18} {:>8} {:>9} {:>9}  data\n",
        "entry", "plan", "what left", "question", "bytes", "numbers", "rho"
    );
    for e in entries {
        let (kind, scalars, rho) = e.answer.as_ref().map_or((String::new(), String::new(), String::new()), |a| {
            let rho = a.cost.nano_rho.map_or("exact".to_owned(), rho_text);
            (a.kind.clone(), a.cost.scalars.to_string(), rho)
        });
        let kind = e.note.as_ref().map_or(kind, |note| note_name(note).to_owned());
        let what =
            serde_json::to_value(e.discloses).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default();
        text += &format!(
            "{:>6}  {:<19}  {what:<16}  {kind:<18} {:>8} {scalars:>9} {rho:>9}  {}\n",
            e.index,
            fingerprint(&e.plan.0),
            e.bytes,
            e.data
        );
    }
    if let Some(last) = entries.last() {
        text += &format!("link of the last entry: {}\n", last.link());
    } else {
        text += "nothing has left yet\n";
    }
    text
}
