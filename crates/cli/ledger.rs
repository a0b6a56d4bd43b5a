//! `veilsum ledger`: what a site ever gave away: verify, show, budget.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use veilsum_proto::{
    identity::{Identity, PublicKey, from_hex},
    ledger::{Column, Entry, Note},
    policy::{self, Enforcement, Policy, Release, Room, Spent},
    suite::Hash,
};

use crate::{
    page::{self, Page, Print},
    party::{head_of, state_of},
    verb::{Verb, listed},
    words,
};
use veilsum_node::{
    cost::counted,
    documents::{fingerprint, header_of, load_card, load_identity, origin_of, policy_of, schema_beside},
    dp,
    error::{Code, Failure},
    foreign::{self, Command},
    plan::Categorical,
    release::{Account, Data, Known, Left},
    store::{
        Ledger,
        ledger::{self, FILE},
    },
    table::TableSpec,
};

/// What this site ever gave away: verify, show, budget
#[derive(Args, Debug)]
pub(crate) struct LedgerArgs {
    /// What to do
    #[command(subcommand)]
    pub command: LedgerCommand,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub(crate) enum LedgerCommand {
    /// Check a ledger from its file and its owner's public key alone, and name the entry at fault
    Verify(VerifyArgs),
    /// Print every entry
    Show(OwnArgs),
    /// What was given away in all, and what the policy leaves
    Budget(BudgetArgs),
    /// Write a head for a ledger that has none, if you are sure that it is the newest
    Adopt(OwnArgs),
    /// Declare that rows were added to the data set or removed from it
    Changed(ChangedArgs),
    /// Declare that other rows altogether take the place of the data set; what was given away before still counts
    Separate(RowsArgs),
}

/// `veilsum ledger verify`
#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// The ledger
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Its owner's card, or public key as 64 hexadecimal digits
    #[arg(long, value_name = "CARD|HEX")]
    pub key: String,
    /// The link of an entry that must be in it, as `verify` or `show` printed it before
    #[arg(long, value_name = "HEX", value_parser = parse_link)]
    pub head: Option<Hash>,
}

/// Which ledger of one's own.
#[derive(Args, Debug)]
pub(crate) struct OwnArgs {
    /// This site's secret key file
    #[arg(long, value_name = "FILE.key")]
    pub key: PathBuf,
    /// Folder of its ledger [default: beside the key]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// The policy [default: site.toml beside the key, else the strict default]
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
}

/// `veilsum ledger separate`
#[derive(Args, Debug)]
pub(crate) struct RowsArgs {
    /// Which ledger.
    #[command(flatten)]
    pub own: OwnArgs,
    /// The rows as they are from now on, with the columns of before [default: as site.toml says]
    #[arg(long, value_name = "ROWS")]
    pub data: Option<PathBuf>,
}

/// `veilsum ledger changed`
#[derive(Args, Debug)]
pub(crate) struct ChangedArgs {
    /// Which ledger and rows.
    #[command(flatten)]
    pub rows: RowsArgs,
    /// How many rows were added; a row that was corrected was removed and added
    #[arg(long, value_name = "N")]
    pub added: u64,
    /// How many rows were removed
    #[arg(long, value_name = "N")]
    pub removed: u64,
}

/// `veilsum ledger budget`
#[derive(Args, Debug)]
pub(crate) struct BudgetArgs {
    /// Which ledger.
    #[command(flatten)]
    pub own: OwnArgs,
    /// Rows that nobody else knows; with --columns, what the release rule allows on them
    ///
    /// They are your own rows, or those of the cohort less the colluders'.
    #[arg(long, value_name = "N", requires = "columns")]
    pub rows: Option<u64>,
    /// Columns of a row
    #[arg(long, value_name = "D", requires = "rows")]
    pub columns: Option<u32>,
    /// The page.
    #[command(flatten)]
    pub print: Print,
}

fn parse_link(text: &str) -> Result<Hash, String> {
    let bytes = from_hex(text).and_then(|bytes| bytes.try_into().ok());
    bytes.map(Hash).ok_or_else(|| "it is not 64 hexadecimal digits".into())
}

impl Verb for LedgerArgs {
    /// Runs `veilsum ledger`.
    ///
    /// # Errors
    /// A [`Failure`] that names file and entry.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let args = self;
        match &args.command {
            LedgerCommand::Changed(a) => changed(a, json),
            LedgerCommand::Separate(a) => separate(a, json),
            LedgerCommand::Verify(a) => verify(a, json),
            LedgerCommand::Show(a) => {
                let entries = own(a)?;
                crate::verb::print(json, &entries.iter().map(to_json).collect(), &table(&entries))
            }
            LedgerCommand::Budget(a) => budget(a, json),
            LedgerCommand::Adopt(a) => {
                let (identity, _) = load_identity(&a.key)?;
                let (path, head) = (file(a), head_of(&a.key));
                let checked = ledger::adopt(&path, &head, &identity)?;
                let text =
                    format!("{}: {} entries; head written to {}", path.display(), checked.entries, head.display());
                crate::verb::print(
                    json,
                    &json!({ "entries": checked.entries, "link": checked.link.to_string() }),
                    &text,
                )
            }
        }
    }
}

fn verify(args: &VerifyArgs, json: bool) -> Result<(), Failure> {
    let key: PublicKey = match args.key.parse() {
        Ok(key) => key,
        Err(_) => load_card(Path::new(&args.key))?.key,
    };
    let checked = ledger::check(&args.file, key, args.head)?;
    let value = json!({ "whole": true, "entries": checked.head.entries, "link": checked.head.link.to_string() });
    let mut text = format!(
        "{}: {} entries, each signed by {} and following from the one before\nlink of the last one: {}",
        args.file.display(),
        checked.head.entries,
        checked.owners.iter().map(|key| fingerprint(&key.0)).collect::<Vec<_>>().join(" and then "),
        checked.head.link
    );
    if args.head.is_none() {
        text += "\nWhether entries at its end are missing shows only against a link that was noted before (--head).";
    }
    crate::verb::print(json, &value, &text)
}

/// [REL-7]: a change of few rows would show as the difference of two totals.
fn changed(args: &ChangedArgs, json: bool) -> Result<(), Failure> {
    let (site, _) = policy_of(args.rows.own.policy.as_deref(), Some(&args.rows.own.key))?;
    let least = site.policy.change;
    let few = |n: u64| n > 0 && n < least;
    if few(args.added) || few(args.removed) {
        return Err(Failure::new(
            Code::Policy,
            format!(
                "fewer than {least} rows were added or removed, where this site's policy asks for none or {least} (change) [REL-7]"
            ),
            "wait until as many rows have changed, and answer from the rows as they were until then",
        ));
    }
    let version = declare(&args.rows, Note::Changed)?;
    let text = format!(
        "noted: version {version} of the rows. This site answers from them once as many sites of its block have declared a change as \
         the policies ask for, in one run"
    );
    crate::verb::print(json, &json!({ "version": version }), &text)
}

fn separate(args: &RowsArgs, json: bool) -> Result<(), Failure> {
    let version = declare(args, Note::Separate)?;
    let text = "noted: these are other rows. This site joins a new block with them; what it gave away before still counts in its \
                budget. If rows of before are among them, the totals of then and now can be subtracted";
    crate::verb::print(json, &json!({ "version": version }), text)
}

/// Notes the columns of the data set as they are now. The version from now on.
fn declare(args: &RowsArgs, note: impl FnOnce(Vec<Column>) -> Note) -> Result<u32, Failure> {
    let (identity, _) = load_identity(&args.own.key)?;
    let (state, head) = (state_of(&args.own.key, args.own.state.as_ref()), head_of(&args.own.key));
    let account = Ledger::look(&state, &head, &identity)?;
    let names: Vec<String> = account.columns().cloned().collect();
    if names.is_empty() {
        return Err(Failure::input(
            "nothing was answered from any rows yet",
            "start the site with the rows as they are",
        ));
    }
    let together = account.together();
    // As the rows were read that were answered from: the schema lies beside the key.
    let (site, file) = policy_of(args.own.policy.as_deref(), Some(&args.own.key))?;
    let from = site.rows_from(args.data.as_deref(), file.as_deref(), Some(&args.own.key))?;
    if let Some(command) = &from.answerer {
        let (columns, same) = elsewhere(command, &account, &identity, &names)?;
        return write(
            (state.as_path(), head.as_path()),
            identity,
            site.data,
            note(columns),
            same.then(|| from.place()),
        );
    }
    let (schema, rules) = (schema_beside(&args.own.key)?.map(Arc::new), Some(from.rules.clone()));
    let spec = TableSpec { schema, rules, list: from.list.clone(), ..TableSpec::default() };
    let (_, header) = header_of(&from, spec.schema.as_deref())?;
    let (columns, categorical) = from_indicators(&names, &header);
    // One pass for each column of labels that was counted by.
    let mut labels: Vec<Option<String>> = together.iter().filter_map(|set| set.label.clone()).map(Some).collect();
    labels.sort_unstable();
    labels.dedup();
    if labels.is_empty() {
        labels.push(None);
    }
    let (mut noted, mut same) = (Vec::<Column>::new(), true);
    for label in labels {
        let (columns, categorical) = (columns.clone(), categorical.clone());
        let origin = origin_of(&from, TableSpec { columns, categorical, label, ..spec.clone() })?;
        same &= matches!(account.recognises(&origin, &identity)?, Known::Same(_));
        noted.extend(origin.columns(&identity, &together)?);
    }
    noted.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    noted.dedup();
    let place = same.then(|| from.place());
    write((state.as_path(), head.as_path()), identity, site.data, note(noted), place)
}

/// The columns of rows that another process has, as they are now, and whether they are those of before: of all columns, and of each set that
/// was answered from together.
fn elsewhere(
    command: &Command,
    account: &Account,
    identity: &Identity,
    names: &[String],
) -> Result<(Vec<Column>, bool), Failure> {
    let mut sets: Vec<Vec<String>> = account.together().into_iter().map(|set| set.columns).collect();
    if names.iter().any(|name| !sets.iter().any(|set| set.contains(name))) {
        sets.push(names.to_vec());
    }
    let (mut columns, mut same) = (Vec::<Column>::new(), true);
    for set in sets {
        let origin = foreign::origin_of(command, &set)?;
        same &= matches!(account.recognises(&origin, identity)?, Known::Same(_));
        columns.extend(origin.columns(identity, &[])?);
    }
    columns.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    columns.dedup();
    Ok((columns, same))
}

/// Writes a declaration, unless the rows at this place are the `same` as before. The version from now on.
fn write(
    (state, head): (&Path, &Path),
    identity: Identity,
    data: String,
    note: Note,
    same: Option<String>,
) -> Result<u32, Failure> {
    if let Some(place) = same {
        return Err(Failure::input(
            format!("{place}: these are the rows that this site answered from: nothing has changed [REL-7]"),
            "declare a change where this site's own rows have changed; a site whose rows are as they were does not help another one \
             with a declaration: who subtracts the totals of then and now would have that one's new rows",
        ));
    }
    let data = Data { name: data, rows: Hash::default() };
    let mut ledger = Ledger::open(state, Some(head), Arc::new(identity), data, Hash::default())?;
    ledger.note(note, &Left::default(), Hash::default())?;
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

fn file(args: &OwnArgs) -> PathBuf {
    state_of(&args.key, args.state.as_ref()).join(FILE)
}

/// The entries of one's own ledger; none where nothing ever left.
fn own(args: &OwnArgs) -> Result<Vec<Entry>, Failure> {
    let (identity, _) = load_identity(&args.key)?;
    Ok(ledger::all(&file(args), &head_of(&args.key), &identity)?)
}

fn to_json(entry: &Entry) -> Value {
    json!({
        "index": entry.index,
        "plan": entry.plan.to_string(),
        "run": entry.run.to_string(),
        "deck_slot": entry.slot,
        "discloses": entry.discloses,
        "bytes": entry.bytes,
        "digest": entry.digest.to_string(),
        "data": entry.data,
        "version": entry.version,
        "note": entry.note.as_ref().map(note_name),
        "kind": entry.answer.as_ref().map(|a| &a.kind),
        "scalars": entry.answer.as_ref().map(|a| a.cost.scalars),
        "milli_bits": entry.answer.as_ref().map(|a| a.cost.milli_bits),
        "nano_rho": entry.answer.as_ref().and_then(|a| a.cost.nano_rho),
        "link": entry.link().to_string(),
    })
}

/// What a note says, in a word.
fn note_name(note: &Note) -> &'static str {
    match note {
        Note::Columns(_) => "columns first seen",
        Note::Changed(_) => "rows changed",
        Note::Separate(_) => "other rows",
        Note::Undone => "round undone",
        Note::Rekeyed(_) => "own key replaced",
        Note::Renamed(_) => "another's new key",
    }
}

fn table(entries: &[Entry]) -> String {
    let mut text = format!(
        "{:>6}  {:<19}  {:<16}  {:<18} {:>8} {:>9} {:>9}  data\n",
        "entry", "plan", "what left", "question", "bytes", "numbers", "bits"
    );
    for e in entries {
        let (kind, scalars, bits) = e.answer.as_ref().map_or((String::new(), String::new(), String::new()), |a| {
            let bits = match a.cost.nano_rho {
                None => (a.cost.milli_bits / 1000).to_string(),
                Some(_) => "noised".to_owned(),
            };
            (a.kind.clone(), a.cost.scalars.to_string(), bits)
        });
        let kind = e.note.as_ref().map_or(kind, |note| note_name(note).to_owned());
        let what =
            serde_json::to_value(e.discloses).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default();
        text += &format!(
            "{:>6}  {:<19}  {what:<16}  {kind:<18} {:>8} {scalars:>9} {bits:>9}  {}\n",
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

fn budget(args: &BudgetArgs, json: bool) -> Result<(), Failure> {
    let entries = own(&args.own)?;
    let (site, _) = policy_of(args.own.policy.as_deref(), Some(&args.own.key))?;
    let (identity, owner) = load_identity(&args.own.key)?;
    let mut account = Account::default();
    account.keep(ledger::questions_in(&state_of(&args.own.key, args.own.state.as_ref()), &identity.public())?);
    entries.iter().for_each(|entry| account.take(entry));
    account.measure();
    // Notes of new keys are about no rows.
    let name = entries.iter().rev().map(|entry| &entry.data).find(|name| !name.is_empty()).unwrap_or(&site.data);
    let policy = &site.policy;
    let Release { rule, bits, domain } = policy.release;
    let room = args.rows.zip(args.columns).map(|(rows, columns)| policy::room(rows, columns, bits, domain));
    let (mut values, mut text) = (Vec::new(), String::new());
    let spent = account.spent(&Hash::default(), None, None);
    if spent.questions > 0 {
        let Spent { questions, runs, scalars, milli_bits, nano_rho, smooth } = spent;
        let used = policy::used(&spent, domain);
        let epsilon = dp::epsilon(nano_rho, site.delta);
        let left = policy.noise.nano_rho.saturating_sub(nano_rho);
        values.push(json!({
            "data": name, "answers": questions, "runs": runs, "kinds": account.kinds(),
            "exact": { "scalars": scalars, "milli_bits": milli_bits,
                "smooth": { "scalars": smooth.instead.0, "milli_bits": smooth.instead.1, "rank": smooth.rank,
                    "rank_milli_bits": smooth.milli_bits },
                "scalars_counted": used.scalars, "milli_bits_counted": used.milli_bits,
                "scalars_allowed": room.map(|room| room.scalars), "milli_bits_allowed": room.map(|room| room.milli_bits) },
            "noised": { "nano_rho": nano_rho, "epsilon": epsilon, "delta": site.delta, "nano_rho_left": left },
            "answers_left": policy.max_rounds_in_all.saturating_sub(questions),
            "runs_left": policy.max_runs.saturating_sub(runs),
        }));
        text += &format!(
            "data set {name:?}\n  {} in {}",
            counted(questions as usize, "different answer"),
            counted(runs as usize, "run")
        );
        text += &format!(
            " (the policy allows {} and {})\n  without noise: {scalars} numbers, {} bits",
            policy.max_rounds_in_all,
            policy.max_runs,
            milli_bits / 1000
        );
        if smooth.instead.0 > 0 {
            text += &format!(
                ", of which {} of smooth questions tell about as much as {} ({} bits)",
                smooth.instead.0,
                smooth.rank,
                smooth.milli_bits / 1000
            );
        }
        text += &format!("\n  counted: {} numbers, {} bits; ", used.scalars, used.milli_bits / 1000);
        text += &match (rule, room) {
            (Enforcement::Off, _) => "the release rule is off\n".to_owned(),
            (_, Some(room)) => format!(
                "the release rule allows {} numbers and {} bits on so many rows\n",
                room.scalars,
                room.milli_bits / 1000
            ),
            (_, None) => "what the release rule allows depends on the rows (--rows, --columns)\n".to_owned(),
        };
        if rule == Enforcement::Report {
            text += "  the release rule only reports\n";
        }
        text += &format!("  with noise: epsilon {epsilon:.4} at delta {} spent of {}\n", site.delta, site.epsilon);
    }
    let says = left(policy, &spent, room);
    if values.is_empty() {
        text += "nothing was given away yet\n";
    }
    // Of columns of categories the ledger knows one name for each category.
    let used: Vec<String> = account.columns().cloned().collect();
    let label = schema_beside(&args.own.key)?.and_then(|schema| schema.label);
    let lines = [
        ["columns that totals were taken of so far".to_owned(), listed(&used)],
        [
            "kept here by the schema".to_owned(),
            label.clone().map_or("none".to_owned(), |label| format!("{label}, the label")),
        ],
    ];
    let mut told = vec![
        "What left are numbers behind masks, of which only totals over sites became readable. The ledger holds digests and counts, and no \
         value.",
        "Whoever has all other sites' parts of a total subtracts them and has this site's part. How many sites a total covers at least, \
         `veilsum plan check` says of every plan.",
    ];
    // Of what nothing was given away of yet, both may come.
    if spent.nano_rho == 0 || spent.scalars > 0 {
        told.push(words::RELEASE);
    }
    if spent.nano_rho > 0 {
        told.push(
            "Answers with noise are differentially private with the epsilon above; those of several plans add up.",
        );
    }
    let mut page = Page::new(&format!("What {owner} gave away"));
    page.says(&says).part("What was given away").list(text.lines().map(str::trim));
    page.part("Columns").table(&["columns", "names"], &lines).part("What it can tell").list(&told);
    text += &lines.iter().map(|[what, names]| format!("{what}: {names}\n")).collect::<String>();
    text += &told.iter().map(|sentence| format!("{sentence}\n")).collect::<String>();
    page::write(&page, args.print.html.as_deref())?;
    let value = json!({ "says": says, "data_sets": values, "columns_used": used, "label_kept": label });
    crate::verb::print(json, &value, &format!("{says}\n\n{text}"))
}

/// Whether budget is left, in a sentence: by the measure that is used up first, and in runs like those so far.
fn left(policy: &Policy, spent: &Spent, room: Option<Room>) -> String {
    if spent.questions == 0 {
        return "Yes: all of the budget is left.".into();
    }
    let used = policy::used(spent, policy.release.domain);
    let mut parts = vec![
        (spent.questions, policy.max_rounds_in_all, "answers (max_rounds_in_all)"),
        (spent.runs, policy.max_runs, "runs (max_runs)"),
        (spent.nano_rho, policy.noise.nano_rho, "the privacy budget (noise.epsilon)"),
    ];
    let enforced = policy.release.rule == Enforcement::Enforce;
    if let Some(room) = room.filter(|_| enforced) {
        parts.push((used.scalars, room.scalars, "what the release rule allows in numbers"));
        parts.push((used.milli_bits, room.milli_bits, "what the release rule allows in bits"));
    }
    // In thousandths, so that a small part is not none.
    let share = |(part, whole, _): &(u64, u64, &str)| u128::from(*part) * 1_000 / u128::from(*whole).max(1);
    let Some(first) = parts.into_iter().max_by_key(share) else { return String::new() };
    let (thousandths, what) = (share(&first), first.2);
    let percent = thousandths.div_ceil(10);
    if thousandths >= 1_000 {
        return format!("No: the budget is used up: {percent} % of {what}.");
    }
    // The rule that may bind first was not asked, so nobody knows whether another run fits.
    if enforced && room.is_none() && spent.scalars > 0 {
        return format!(
            "It depends on the rows (say --rows and --columns): {percent} % is used of {what}, and the release rule decides whether \
             another run fits."
        );
    }
    let each = thousandths.div_ceil(u128::from(spent.runs.max(1))).max(1);
    match (1_000 - thousandths) / each {
        0 => format!("No: {percent} % is used of {what}, and no further run like those so far fits."),
        1 => format!("Yes: {percent} % is used of {what}; about 1 more run like those so far fits."),
        more => format!("Yes: {percent} % is used of {what}; about {more} more runs like those so far fit."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody is told that runs are left which a rule would refuse, or that no run is left in a sentence that begins with Yes.
    #[test]
    fn further_runs_are_counted_by_the_rule_that_binds() {
        let policy = Policy::default();
        let spent = Spent { questions: 20, runs: 1, scalars: 560, milli_bits: 5_600, ..Spent::default() };
        let room = |scalars| Some(Room { scalars, milli_bits: u64::MAX });
        let without = left(&policy, &spent, None);
        assert!(without.contains("1 % is used of runs") && without.contains("say --rows"), "{without}");
        assert!(!without.starts_with("Yes") && !without.contains("more run"), "{without}");
        let full = left(&policy, &spent, room(1_000));
        assert!(full.starts_with("No: 56 % is used") && full.contains("no further run"), "{full}");
        let one = left(&policy, &spent, room(1_200));
        assert!(one.starts_with("Yes: 47 % is used") && one.contains("about 1 more run like"), "{one}");
        assert!(left(&policy, &spent, room(560)).starts_with("No: the budget is used up: 100 %"));
        // Noise has a budget of its own, and so has a site without the rule.
        let noised = Spent { scalars: 0, milli_bits: 0, nano_rho: policy.noise.nano_rho / 4, ..spent };
        assert!(left(&policy, &noised, None).contains("about 3 more runs"), "{}", left(&policy, &noised, None));
        let mut off = policy;
        off.release.rule = Enforcement::Off;
        assert!(left(&off, &spent, None).contains("about 99 more runs"), "{}", left(&off, &spent, None));
    }
}
