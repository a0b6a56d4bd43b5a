//! The text files that people exchange or keep: key, roster, plan, a site's own policy, and what it agreed to.
//!
//! All are TOML with a first line that says what they are. Reading is limited in size, strict about unknown keys, and
//! ends in a verified type or in an error that names the file, the line and the next step. Signatures cover the meaning
//! (the protocol's own encoding), not the text: comments may be added, numbers may not be changed.

mod answer;
pub(crate) mod digits;
mod file;
mod guests;
mod invitation;
mod key;
mod meeting;
mod methods;
mod model;
mod offered;
mod pinned;
mod plan;
mod plan_keys;
mod roster;
mod rows;
mod schema;
mod site;

use std::{path::Path, sync::Arc};

use veilsum_proto::{
    identity::Identity,
    plan::SignedTerms,
    roster::{Member, Roster, SignedRoster},
};

use file::in_file;

pub use answer::PlanAnswer;
pub use guests::{Guest, GuestList, Knocked, Run, Said, Stage};
pub use invitation::{answer_line, invitation_line, parse_answer, parse_invitation};
pub use key::{check_address, load_identity, write_key};
pub use meeting::Begun;
pub use model::{read_model, rows_of, write_model};
pub use offered::Offered;
pub use pinned::{Changes, Pinned, Standing};
pub use plan::{edited_plan, load_plan, write_plan};
pub use plan_keys::PLAN_KEYS;
pub use roster::{load_roster, load_signed_roster, write_roster};
pub use rows::{DEFAULT_MEMORY, HandOver, Handed, RowsFrom, rules_said};
pub use schema::{
    Fit, MAX_SCHEMA, Reading, Taken, adopt_schema, fit_of, header_of, keep_schema, load_schema, other_schema,
    parse_schema, proposed_schema, reading_of, schema_beside, schema_differs, schema_file_beside, schema_text,
    take_schema,
};
pub use site::{SitePolicy, keep_policy, load_policy, policy_of};

use veilsum_federation::{agreed::questions, error::Failure};
pub use veilsum_federation::{
    agreed::{Federation, fingerprint, whoami},
    spoken::{Fingerprint, WORDS, roster_fingerprint},
};

use crate::{
    answerer::Answerer,
    files::Existing,
    plan::OutOfBox,
    question::Question,
    release::{ClusterError, Origin, Precision, Prepared, Rows, Scaling},
    role::system_rng,
    table::{self, Batches, Checked, OwnRows, Reader, RowRules, Table, TableSpec, Tally, size},
};

/// Both documents with their signatures, verified: for a client in another language, which verifies them itself.
///
/// # Errors
/// A [`Failure`] that names the file.
pub fn load_signed(roster: impl AsRef<Path>, plan: impl AsRef<Path>) -> Result<(SignedRoster, SignedTerms), Failure> {
    let (roster, plan) = (roster.as_ref(), plan.as_ref());
    let federation = load_federation(roster, plan)?;
    Ok((load_signed_roster(roster)?, plan::load_signed_plan(plan, &federation.roster)?))
}

/// The same from the texts of both; errors call them `roster.toml` and `plan.toml`.
///
/// # Errors
/// A [`Failure`] that says which of them is wrong.
pub fn parse_signed(roster: &str, plan: &str) -> Result<(SignedRoster, SignedTerms, Federation), Failure> {
    let (of_roster, of_plan) = (Path::new("roster.toml"), Path::new("plan.toml"));
    let roster = roster::parse_roster(of_roster, roster)?;
    let terms = plan::parse_signed_plan(of_plan, plan, &roster.roster)?;
    let verified = terms
        .clone()
        .verify(&roster.roster)
        .map_err(|e| file::refused(of_plan, &e, "ask the coordinator for the plan again"))?;
    let federation = Federation::new(roster.roster.clone(), verified).map_err(|f| in_file(of_plan, f))?;
    Ok((roster, terms, federation))
}

/// What was agreed on, from the two files, and from `schema.toml` beside the roster where there is one.
///
/// # Errors
/// A [`Failure`] that names the file.
pub fn load_federation(roster: impl AsRef<Path>, plan: impl AsRef<Path>) -> Result<Federation, Failure> {
    let path = roster.as_ref();
    let roster_of = load_roster(path)?;
    let terms = load_plan(&plan, &roster_of)?;
    let schema = schema_beside(path)?;
    Federation::new(roster_of, terms).and_then(|of| of.under(schema)).map_err(|f| in_file(plan.as_ref(), f))
}

/// Makes a whole federation in `folder`, whose owner then has everybody's secrets: a key for every party, and the signed roster, to which
/// everybody has agreed. Coordinator and intermediary are named with their addresses.
///
/// # Errors
/// A [`Failure`] where a name cannot be used, or a file is there already or cannot be written.
pub fn found(folder: &Path, name: &str, aggregators: [(&str, &str); 2], sites: &[String]) -> Result<Roster, Failure> {
    let mut keys = Vec::new();
    let mut member = |name: &str, address: &str| {
        check_address(address)?;
        let (identity, path) = (Identity::generate(&mut system_rng()), folder.join(format!("{name}.key")));
        write_key(&path, name, &identity, Existing::Refuse)?;
        let member = Member { name: name.into(), key: identity.public(), address: address.into() };
        keys.push((path, identity));
        Ok::<_, Failure>(member)
    };
    let [coordinator, intermediary] = aggregators;
    let roster = Roster {
        name: name.into(),
        coordinator: member(coordinator.0, coordinator.1)?,
        intermediary: member(intermediary.0, intermediary.1)?,
        sites: sites.iter().map(|site| member(site, "")).collect::<Result<_, _>>()?,
    };
    write_roster(folder.join("roster.toml"), &roster.clone().sign(&keys[0].1)?)?;
    Pinned::change(&keys[0].0, |pinned| pinned.roster = Some(roster.clone()))?;
    Ok(roster)
}

/// A site's rows, ready to answer.
pub struct Loaded {
    /// Whoever answers: the rows, or a program that has them elsewhere.
    pub rows: Arc<dyn Answerer>,
    /// The rows as they stand where they are, by which a ledger knows them again.
    pub origin: Origin,
    /// What was read; nothing of rows that are elsewhere.
    pub tally: Option<Tally>,
}

impl Loaded {
    /// As [`Tally::in_range`]. It is asked as a site begins, and never as it answers a proposal: whoever proposes plans chooses their ranges,
    /// and would learn from the answers where values lie.
    ///
    /// # Errors
    /// As there.
    pub fn in_range(self, from: &RowsFrom) -> Result<Loaded, Failure> {
        self.tally.iter().try_for_each(|tally| tally.in_range(&from.place(), &from.rules))?;
        Ok(self)
    }

    /// Rows that the policy's `max_rows` is about: those that count, and all that were read where the plan asks how many lack a value.
    pub fn rows_asked(&self, federation: &Federation) -> u64 {
        let recipe = &federation.work.recipe;
        let asks = recipe.algorithm.traits().describes.is_some() && recipe.noise.is_none();
        let read = self.tally.as_ref().filter(|_| asks).map_or(0, |tally| tally.rows);
        self.rows.rows().max(read)
    }
}

/// A site's rows from where they are, or whoever answers in their place. In memory where they fit into the site's budget, else read anew
/// for every question.
///
/// # Errors
/// A [`Failure`] that names file, row and column and never a value; where rows do not fit and the plan asks what cannot be streamed, one
/// with the memory that they need.
pub fn load_rows(federation: &Federation, from: impl Into<RowsFrom>) -> Result<Loaded, Failure> {
    let from = from.into();
    if let Some(Handed(hand_over)) = &from.handed {
        return hand_over(federation, &from);
    }
    let (rows, origin, tally) = read_rows(federation, &from)?;
    Ok(Loaded { rows, origin, tally: Some(tally) })
}

/// Rows that a program hands over in place of a file: n x d numbers in the plan's columns and original units, indicators of categories
/// behind the numbers.
///
/// # Errors
/// A [`Failure`] that names the row; as [`load_rows`].
pub fn rows_in_memory(federation: &Federation, values: &[f64], from: &RowsFrom) -> Result<Loaded, Failure> {
    let work = &federation.work;
    let (columns, categorical, schema) = (work.names(), Vec::new(), None);
    let rules = Arc::new(RowRules { clipped_on_purpose: from.rules.clipped_on_purpose.clone(), ..RowRules::default() });
    let of_file = spec_of(federation, &RowsFrom { rules, ..RowsFrom::default() })?;
    let (table, tally) = table::read_given(values, &TableSpec { columns, categorical, schema, ..of_file })?;
    let (rows, origin) = ready(federation, from, table, per_number(federation, Precision::Double)?)?;
    Ok(Loaded { rows: Arc::new(rows), origin, tally: Some(tally) })
}

/// What of a site's rows a plan reads, and what is wrong with rows that cannot be used. Nothing is kept of them.
///
/// # Errors
/// As [`load_rows`], but for single rows.
pub fn look_at_rows(federation: &Federation, from: &RowsFrom) -> Result<(Tally, Option<Failure>), Failure> {
    let (tally, fault) = table::look(&from.data, &spec_of(federation, from)?)?;
    Ok((tally, fault.map(Failure::from)))
}

fn read_rows(federation: &Federation, from: &RowsFrom) -> Result<(Arc<dyn Answerer>, Origin, Tally), Failure> {
    let work = &federation.work;
    let domain = work.domain()?;
    read_often(from)?;
    let spec = spec_of(federation, from)?;
    let number = per_number(federation, from.rules.precision)?;
    if from.rules.precision == Precision::Double
        && let Some((table, tally)) = held(from, &spec, number)?
    {
        let (rows, origin) = ready(federation, from, table, number)?;
        let rows = rows.with_missing(tally.missing(&work.categorical))?;
        return Ok((Arc::new(rows), origin, tally));
    }
    let reading = Arc::new(Reader::new(&from.data, spec, domain.columns(), from.memory())?);
    let rows = Checked::begin(reading.clone(), &domain, work.out_of_box)?;
    let own = OwnRows::new(reading, Some(&rows));
    let origin = Origin::read(work.names(), Arc::new(own));
    let (numbers, tally) = (rows.rows() * domain.columns() as u64, rows.tally());
    let rows = rows.with_missing(tally.missing(&work.categorical));
    if from.rules.precision == Precision::Single && numbers * number <= from.memory() {
        return Ok((Arc::new(rows.held()?.with_room(room(from, numbers, number))), origin, tally));
    }
    streams(federation, from, numbers * number)?;
    Ok((Arc::new(rows.streamed()?), origin, tally))
}

/// What the rows leave of the memory may be taken by what is kept between questions, and no more than the rows themselves take as doubles.
fn room(from: &RowsFrom, numbers: u64, number: u64) -> u64 {
    from.memory().saturating_sub(numbers * number).min(8 * numbers)
}

/// Whether the rows are where they can be read more than once.
fn read_often(from: &RowsFrom) -> Result<(), Failure> {
    let pipe = std::fs::metadata(&from.data).is_ok_and(|of| !of.is_file() && !of.is_dir());
    let (which, key) = match (&from.rules.person, from.rules.precision) {
        (Some(_), _) => ("cut to so many of a person are read twice", "person"),
        (None, Precision::Single) => ("that are held in single precision are read three times", "precision"),
        (None, Precision::Double) => return Ok(()),
    };
    if !pipe {
        return Ok(());
    }
    let what = format!("{}: it is a pipe, which can be read once, and rows {which}", from.data.display());
    let next = format!(
        "give the rows as a file, a folder, or on standard input (--data -); or take {key} out of [rows] in site.toml"
    );
    Err(Failure::input(what, next))
}

fn ready(
    federation: &Federation,
    from: &RowsFrom,
    mut table: Table,
    number: u64,
) -> Result<(Prepared, Origin), Failure> {
    let work = &federation.work;
    let domain = work.domain()?;
    let (values, _) = table.drain();
    let fault = |e: ClusterError| in_file(&from.data, e.into());
    let rows = Rows::new(values, domain.columns()).map_err(fault)?;
    let room = room(from, rows.as_slice().len() as u64, number);
    let prepared = Prepared::new(&rows, &domain, work.out_of_box).map_err(fault)?.with_room(room);
    Ok((prepared, Origin::new(work.names(), rows)))
}

/// Rows for a ledger alone, whatever their number.
///
/// # Errors
/// As [`load_rows`].
pub fn origin_of(from: &RowsFrom, spec: TableSpec) -> Result<Origin, Failure> {
    let mut batches = Batches::new(table::open(&from.data, spec.rules.dialect())?, &spec)?;
    let names = batches.table().columns.clone();
    let reading = Arc::new(Reader::new(&from.data, spec, names.len(), from.memory())?);
    Ok(Origin::read(names, Arc::new(OwnRows::new(reading, None))))
}

/// Bytes that a number takes in memory: as the kernel reads it, for the ledger as it was read where it is a double, and once more where a
/// plan standardises rows or asks about all of them at once.
fn per_number(federation: &Federation, precision: Precision) -> Result<u64, Failure> {
    let held = match precision {
        Precision::Double => 16,
        Precision::Single => 4,
    };
    let again = !federation.work.recipe.preparation.is_none() || of_all_rows(federation)?.is_some();
    Ok(held + if again { 8 } else { 0 })
}

/// Rows that are read before it is looked whether they still fit.
const SOME: usize = 1 << 16;

/// All rows, where they fit into the site's budget.
fn held(from: &RowsFrom, spec: &TableSpec, number: u64) -> Result<Option<(Table, Tally)>, Failure> {
    let mut batches = table::batches(&from.data, spec)?;
    while batches.more(SOME)? {
        if batches.table().values.len() as u64 * number > from.memory() {
            return Ok(None);
        }
    }
    let (tally, table) = (batches.tally(), batches.into_table());
    Ok(Some((table, tally)).filter(|(table, _)| table.values.len() as u64 * number <= from.memory()))
}

/// The kind of a question about all rows at once, where this plan asks one.
fn of_all_rows(federation: &Federation) -> Result<Option<&'static str>, Failure> {
    let all = questions(&federation.work)?;
    Ok(all.into_iter().find_map(|question| match question {
        Question::Cluster(batch) | Question::Drawn { batch, .. } if !batch.comes_in_parts() => Some(batch.kind()),
        _ => None,
    }))
}

/// Whether this plan can be answered from rows that are streamed; in memory they would take so many bytes.
fn streams(federation: &Federation, from: &RowsFrom, needed: u64) -> Result<(), Failure> {
    let Some(kind) = of_all_rows(federation)? else { return Ok(()) };
    let needed = needed.next_multiple_of(1 << 20);
    let (needed, given) = (size::shown(needed), size::shown(from.memory()));
    let what = format!(
        "{}: the plan asks a question about all rows at once ({kind}), and they take {needed} of memory where {given} are allowed",
        from.data.display()
    );
    let next = format!(
        "say memory = \"{needed}\" under [rows] in site.toml, or ask for a plan whose questions add up over rows"
    );
    Err(Failure::input(what, next))
}

/// What a plan wants of a site's rows.
///
/// # Errors
/// A [`Failure`] where the plan cannot be used, or the secret for rows of persons cannot be read.
pub fn spec_of(federation: &Federation, from: &RowsFrom) -> Result<TableSpec, Failure> {
    let (work, domain) = (&federation.work, federation.work.domain()?);
    Ok(TableSpec {
        columns: work.columns.iter().map(|c| c.name.clone()).collect(),
        categorical: work.categorical.clone(),
        label: None,
        schema: federation.schema.clone(),
        ranges: false,
        within: domain.lower().iter().copied().zip(domain.upper().iter().copied()).collect(),
        clips: work.out_of_box == OutOfBox::Clip,
        direction: work.scaling == Scaling::Direction,
        rules: from.rules.clone(),
        list: from.list.clone(),
        person_key: from.person_key()?,
        total: work.recipe.noise.is_some(),
        halt: from.halt.clone(),
    })
}

#[cfg(test)]
pub(crate) mod tests;
