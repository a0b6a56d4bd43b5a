//! The text files that people exchange or keep: key, card, roster, plan, a site's own policy, and what it agreed to.
//!
//! All are TOML with a first line that says what they are. Reading is limited in size, strict about unknown keys, and
//! ends in a verified type or in an error that names the file, the line and the next step. Signatures cover the meaning
//! (the protocol's own encoding), not the text: comments may be added, numbers may not be changed.

mod federations;
mod key;
mod plan;
mod roster;
mod site;

use std::{path::Path, sync::Arc};

use serde::{Deserialize, de::DeserializeOwned};
use veilsum_cluster::{DataError, Prepared, Rows};
use veilsum_proto::{
    Error,
    identity::{Identity, from_hex},
    limits::{MAX_QUERY, MIN_SITES},
    plan::{SignedTerms, Terms},
    policy::Floor,
    roster::{PartyId, Roster, SignedRoster},
    suite::Hash,
};

pub use federations::{Changes, Federations, Fingerprint, Standing, Use};
pub use key::{Card, check_address, load_card, load_identity, write_card, write_key};
pub use plan::{load_plan, write_plan};
pub use roster::{load_roster, write_roster};
pub(crate) use site::nano_rho;
pub use site::{SitePolicy, load_policy, policy_of};

use crate::{
    cli::exit::{Code, Failure},
    files, privacy,
    round::{Form, Question},
    store::ledger::Origin,
    table::{self, TableSpec},
    work::{Judge, Labels, Work},
};

/// What a federation agreed on, verified.
#[derive(Clone, Debug)]
pub struct Federation {
    /// Who takes part.
    pub roster: Arc<Roster>,
    /// Under which terms.
    pub terms: Arc<Terms>,
    /// What is computed: the application's part of the terms.
    pub work: Arc<Work>,
}

/// Both documents with their signatures, verified: for a client in another language, which verifies them itself.
///
/// # Errors
/// A [`Failure`] that names the file.
pub fn load_signed(roster: impl AsRef<Path>, plan: impl AsRef<Path>) -> Result<(SignedRoster, SignedTerms), Failure> {
    let (roster, plan) = (roster.as_ref(), plan.as_ref());
    let federation = Federation::load(roster, plan)?;
    Ok((roster::load_signed_roster(roster)?, plan::load_signed_plan(plan, &federation.roster)?))
}

impl Federation {
    /// From a verified roster and verified terms: the method part is decoded and no sum can overflow.
    ///
    /// # Errors
    /// A [`Failure`] with the number at fault.
    pub fn new(roster: Roster, terms: Terms) -> Result<Federation, Failure> {
        let work = Work::from_bytes(&terms.application)?;
        if work.recipe.min_change > 1 && !terms.opening {
            return Err(Failure::input(
                "the plan asks a sum again only after a change (min_change), and opens no totals",
                "leave --no-opening or --min-change out: without opened totals no site can see that it is kept",
            ));
        }
        if work.sampling.is_some() && terms.block_size == 0 {
            return Err(Failure::input(
                "the plan samples sites, and has one block of all of them: what is drawn are whole blocks [REL-4]",
                "leave the sampling out, or make a plan of several blocks (--block-size)",
            ));
        }
        prove(&roster, &terms, &work)?;
        Ok(Federation { roster: Arc::new(roster), terms: Arc::new(terms), work: Arc::new(work) })
    }

    /// From the two files.
    ///
    /// # Errors
    /// A [`Failure`] that names the file.
    pub fn load(roster: impl AsRef<Path>, plan: impl AsRef<Path>) -> Result<Federation, Failure> {
        let roster = load_roster(roster)?;
        let terms = load_plan(&plan, &roster)?;
        Federation::new(roster, terms).map_err(|f| in_file(plan.as_ref(), f))
    }

    /// Which party of the roster this identity is.
    ///
    /// # Errors
    /// A [`Failure`] where it is none of them.
    pub fn whoami(&self, identity: &Identity) -> Result<PartyId, Failure> {
        whoami(&self.roster, identity)
    }

    /// The form of all answers.
    ///
    /// # Errors
    /// A [`Failure`] where the method part cannot be used.
    pub fn form(&self) -> Result<Form, Failure> {
        Ok(Form::of(&self.work, &self.terms, self.roster.sites.len())?)
    }

    /// A site's rows from a CSV file: the plan's columns, scaled into the plan's box.
    ///
    /// # Errors
    /// A [`Failure`] that names file, row and column and never a value.
    pub fn load_rows(&self, data: impl AsRef<Path>) -> Result<Prepared, Failure> {
        self.load_rows_and_origin(data).map(|(rows, _)| rows)
    }

    /// The same, and the rows as they stand in the file, by which a ledger knows them again.
    ///
    /// # Errors
    /// As [`Federation::load_rows`].
    pub fn load_rows_and_origin(&self, data: impl AsRef<Path>) -> Result<(Prepared, Origin), Failure> {
        let data = data.as_ref();
        let columns: Vec<String> = self.work.columns.iter().map(|c| c.name.clone()).collect();
        let label = self.work.labels.as_ref().map(|labels| labels.column.clone());
        let mut table = table::read_csv(data, &TableSpec { columns, label })?;
        let named = self.work.labels.as_ref().zip(table.labels.take());
        let labels = named.as_ref().map(|(wanted, found)| numbered(found, wanted).map_err(|f| in_file(data, f)));
        let labels = labels.transpose()?;
        let rows = Rows::new(table.values, self.work.columns.len()).map_err(|e| in_file(data, e.into()))?;
        let domain = self.work.domain()?;
        let prepared = Prepared::new(&rows, &domain, self.work.out_of_box).map_err(|e| match e {
            DataError::OutsideBox { row, column } => {
                let name = self.work.columns.get(column).map_or("?", |c| c.name.as_str());
                let shown = data.display();
                let row = row + 1;
                let what =
                    format!("{shown}, row {row} below the header, column {name:?}: outside the plan's public box");
                let next = "correct the row, or agree on a wider box or on `out_of_box = \"clip\"` in a new plan";
                Failure::input(what, next)
            }
            other => in_file(data, other.into()),
        })?;
        let names: Vec<String> = self.work.columns.iter().map(|c| c.name.clone()).collect();
        let origin = Origin::new(names, rows, named.map(|(of, labels)| (of.column.clone(), labels)));
        let prepared = match labels {
            Some(labels) => prepared.with_labels(labels).map_err(|e| in_file(data, e.into()))?,
            None => prepared,
        };
        Ok((prepared, origin))
    }
}

/// As [`Federation::whoami`].
///
/// # Errors
/// A [`Failure`] where it is none of them.
pub fn whoami(roster: &Roster, identity: &Identity) -> Result<PartyId, Failure> {
    let key = identity.public();
    roster.find(&key).ok_or_else(|| {
        Failure::input(
            format!(
                "this key (fingerprint {}) is not on the roster {} (fingerprint {})",
                fingerprint(&key.0),
                roster.name,
                roster_fingerprint(&roster.hash())
            ),
            format!(
                "check --key, or send your card to {}, who adds it with `veilsum roster add`",
                roster.coordinator.name
            ),
        )
    })
}

/// Labels as their places in the plan's list.
pub fn numbered(found: &[String], wanted: &Labels) -> Result<Vec<u32>, Failure> {
    let place = |(row, label): (usize, &String)| {
        wanted.classes.iter().position(|class| class == label).map(|at| at as u32).ok_or_else(|| {
            Failure::input(
                format!("row {} below the header: its label is not among those of the plan", row + 1),
                "correct the row, or agree on a plan that lists its label",
            )
        })
    };
    found.iter().enumerate().map(place).collect()
}

/// One question of every part of a run: the row count, then as the recipe would ask them.
///
/// # Errors
/// As [`Work::run`].
pub fn questions(work: &Work, sites: usize) -> Result<Vec<Question>, Failure> {
    let mut all = vec![Question::CountRows];
    all.extend(work.sample(sites)?.into_iter().map(Question::Cluster));
    Ok(all)
}

/// Multiplications of one question at one site at most: about a day of one core.
const MAX_OPERATIONS: f64 = 1e14;

/// Proves from the plan alone that no sum of a run can overflow, and that its floor leaves more than one row a cluster.
///
/// # Errors
/// A [`Failure`] with the number at fault.
pub fn prove(roster: &Roster, terms: &Terms, work: &Work) -> Result<(), Failure> {
    let domain = work.domain()?;
    let sites = roster.sites.len();
    let form = Form::of(work, terms, sites)?;
    for question in questions(work, sites)? {
        question.layout(&domain, &form).map_err(|e| {
            Failure::input(e, "make the plan again with a smaller --max-rows (or K, where the vector is too long)")
        })?;
        let bytes = question.to_bytes().len();
        if bytes > MAX_QUERY {
            return Err(Failure::input(
                format!("a question of {bytes} bytes; {MAX_QUERY} are possible"),
                "lower K, the restarts or the number of columns in `veilsum plan make`",
            ));
        }
    }
    if let (Some(spent), Some(shared)) = (privacy::spent(work, &form)?, form.noise)
        && spent > shared.levels.rho() * (1.0 + 1e-9)
    {
        return Err(Failure::input(
            format!("a run spends {spent} of a privacy budget of {}", shared.levels.rho()),
            "make the plan again with another --step-bits",
        ));
    }
    let operations = work.recipe.most_operations(terms.max_rows, domain.columns());
    if operations > MAX_OPERATIONS {
        return Err(Failure::input(
            format!(
                "a question could cost a site with {} rows {operations:.0e} operations, days of work",
                terms.max_rows
            ),
            "lower --max-rows, K, the restarts, or a site's own steps in `veilsum plan make`",
        ));
    }
    if let Some(sampling) = &work.sampling {
        prove_sampling(roster, terms, sampling.count(sites))?;
    }
    prove_distances(work)?;
    let k = work.most_clusters();
    if terms.min_total_rows < u64::from(k) {
        return Err(Failure::input(
            format!(
                "the plan asks for K = {k} clusters, but its floor allows totals over {} rows (min_total_rows): with \
                 no more rows than clusters, centres are rows",
                terms.min_total_rows
            ),
            "raise --min-total-rows or lower --k in `veilsum plan make`",
        ));
    }
    Ok(())
}

/// [APP-5]: where the intermediary judges, every site sends it K x K distances for each run side by side, in one frame.
fn prove_distances(work: &Work) -> Result<(), Failure> {
    let recipe = &work.recipe;
    let numbers: u64 = recipe.clusters.each().map(|k| u64::from(k).pow(2)).sum::<u64>() * u64::from(recipe.restarts);
    // A frame says what it holds besides, and how long each matrix is.
    let bytes = 8 * (numbers + recipe.clusters.count() as u64 * u64::from(recipe.restarts)) + 1_024;
    if work.judge == Judge::Intermediary && bytes > MAX_QUERY as u64 {
        return Err(Failure::input(
            format!("where the intermediary judges, {numbers} distances between centres would go into one frame"),
            "lower K or the restarts, or let the coordinator judge",
        ));
    }
    Ok(())
}

/// [APP-6]: a sampled total covers only the sites drawn. Whoever may be missing from a round could be among them, and so could the
/// colluders: two honest sites must be left.
fn prove_sampling(roster: &Roster, terms: &Terms, drawn: usize) -> Result<(), Failure> {
    let n = roster.sites.len();
    let (missing, colluders) = (n - covers_at_least(terms, n), terms.colluders_of(n));
    let needed = (colluders + 2).max(MIN_SITES) + missing;
    if drawn < needed {
        return Err(Failure::input(
            format!(
                "{drawn} of {n} sites would be drawn for a round; with {missing} that may be missing and {colluders} that \
                 may collude with the coordinator, at least {needed} must be, or a total could show a single site"
            ),
            "raise --sample or --min-sites in `veilsum plan make`",
        ));
    }
    Ok(())
}

/// Sites that the total of any round of a run covers at least. Sites may go missing in every deck, and a smaller deck has a
/// smaller threshold.
pub(crate) fn covers_at_least(terms: &Terms, sites: usize) -> usize {
    let mut covers = sites;
    while let Ok(left) = least_of(terms, 0, covers, sites)
        && left < covers
    {
        covers = left;
    }
    covers
}

/// Sites that a total of a cohort of `cohort` out of `sites` covers at least. A deck has no fewer members than its cohorts, and
/// so no smaller threshold.
fn least_of(terms: &Terms, floor: u16, cohort: usize, sites: usize) -> Result<usize, Error> {
    Ok(terms.threshold_of(cohort, sites)?.max(usize::from(terms.min_cohort.max(floor))).max(MIN_SITES))
}

/// [APP-6]: how many of a cohort must be drawn, so that those who may still go missing and the colluders leave two honest ones.
///
/// # Errors
/// A sentence where such a cohort cannot be asked at all.
pub(crate) fn drawn_at_least(terms: &Terms, floor: &Floor, cohort: usize, sites: usize) -> Result<usize, String> {
    let covers = least_of(terms, floor.min_cohort, cohort, sites).map_err(|e| e.to_string())?;
    let colluders = terms.colluders_of(sites).max(usize::from(floor.colluders));
    Ok((colluders + 2).max(MIN_SITES) + cohort.saturating_sub(covers))
}

/// The short form of a hash or key that two people can compare by telephone: 16 hexadecimal digits in groups of four.
pub fn fingerprint(bytes: &[u8; 32]) -> String {
    groups(&bytes[..8])
}

/// The form in which people compare rosters: the first 128 bits, as 8 groups of four hexadecimal digits. Nobody finds another
/// roster that begins with them ([ROS-8]).
pub fn roster_fingerprint(roster: &Hash) -> String {
    groups(&roster.0[..Fingerprint::DIGITS / 2])
}

fn groups(bytes: &[u8]) -> String {
    bytes.chunks(2).map(to_hex).collect::<Vec<_>>().join("-")
}

// ---- Shared by the documents ----------------------------------------------------------------------------------------

#[derive(Deserialize)]
struct Head {
    format: Option<String>,
}

/// Reads a document of exactly this format.
fn read_document<T: DeserializeOwned>(path: &Path, max: usize, format: &str, next: &str) -> Result<T, Failure> {
    let text = read_text(path, max)?;
    let head: Head = toml::from_str(&text).map_err(|e| parse_failure(path, &text, &e, next))?;
    match head.format.as_deref() {
        Some(found) if found == format => {}
        found => {
            let found = found.map_or("says no format".into(), |f| format!("says format = {f:?}"));
            let what = format!("{}: it {found} where {format:?} belongs", path.display());
            return Err(Failure::input(what, format!("check that it is the right file; {next}")));
        }
    }
    toml::from_str(&text).map_err(|e| parse_failure(path, &text, &e, next))
}

fn read_text(path: &Path, max: usize) -> Result<String, Failure> {
    let bytes = files::read_limited(path, max)?;
    String::from_utf8(bytes).map_err(|_| {
        Failure::input(format!("{}: it is not UTF-8 text", path.display()), "check that it is the right file")
    })
}

/// The parser's own rendering quotes the line; its message alone does not.
fn parse_failure(path: &Path, text: &str, error: &toml::de::Error, next: &str) -> Failure {
    let why = error.message().lines().next().unwrap_or("it is not TOML");
    let line = error.span().map(|s| 1 + text.bytes().take(s.start).filter(|b| *b == b'\n').count());
    let place = line.map_or(String::new(), |l| format!(", line {l}"));
    Failure::input(format!("{}{place}: {why}", path.display()), next)
}

/// A document whose contents or signature the protocol core refused.
fn refused(path: &Path, error: &Error, next: impl Into<String>) -> Failure {
    // Whoever changed the file need not be the signer, so the signer is not accused.
    let why = match error {
        Error::PeerMisbehaved { what, rule, .. } => format!("{what} {rule}"),
        other => other.to_string(),
    };
    Failure::input(format!("{}: {why}", path.display()), next)
}

fn in_file(path: &Path, failure: Failure) -> Failure {
    Failure { message: format!("{}: {}", path.display(), failure.message), ..failure }
}

/// Fixed-length bytes from hexadecimal digits of `key` in the file.
fn hex<const N: usize>(path: &Path, key: &str, digits: &str) -> Result<[u8; N], Failure> {
    from_hex(digits).and_then(|b| b.try_into().ok()).ok_or_else(|| {
        let what = format!("{}: {key} is not {} hexadecimal digits", path.display(), 2 * N);
        Failure::input(what, "ask whoever sent the file to send it again")
    })
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn hash_of(path: &Path, key: &str, digits: &str) -> Result<Hash, Failure> {
    hex(path, key, digits).map(Hash)
}

/// The text of a document. The types here always have one.
fn to_toml<T: serde::Serialize>(comment: &str, value: &T) -> Result<String, Failure> {
    toml::to_string(value).map(|text| format!("{comment}{text}")).map_err(|e| {
        Failure::new(
            Code::Internal,
            format!("the document has no text form: {e}"),
            "this is a defect, please report it",
        )
    })
}

#[cfg(test)]
pub(crate) mod tests;
