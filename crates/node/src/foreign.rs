//! Rows that this process does not have: another process answers from them, and every word of it is checked before it is masked.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use veilsum_answerer::{
    Fault, Held, Hello, Launch, Ready,
    contract::{Categorical, Column, PROTOCOL, kind_of},
};
use veilsum_cluster::{Batch, Domain, OutOfBox, Query, Scaling, SumStep};

use crate::{
    agreed::{self, Federation},
    answerer::{Answerer, Hash, digest_of},
    error::Failure,
    question::Question,
    release::Origin,
};

/// Seconds that one answer may take where the site does not say it.
pub const ANSWER_SECONDS: u64 = 600;

/// How a site's rows are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Command {
    /// Program and arguments.
    pub words: Vec<String>,
    /// How long one answer may take, and how long the answerer may take to begin.
    pub limit: Duration,
}

/// Another process as the place of a site's rows, for a whole run.
pub struct Foreign {
    held: Mutex<Held>,
    domain: Domain,
    rows: u64,
    digest: Hash,
}

impl Foreign {
    /// Starts the answerer, lets it open its rows, and asks whether it answers everything that the plan may ask.
    ///
    /// # Errors
    /// A [`Failure`] that says whose fault it is.
    pub fn open(federation: &Federation, command: &Command) -> Result<(Foreign, Origin), Failure> {
        let work = &federation.work;
        let column = |c: &crate::columns::Column| Column { name: c.name.clone(), lower: c.lower, upper: c.upper };
        let domain = work.domain()?;
        let mut at = work.columns.len();
        let mut categorical = |c: &crate::columns::Categorical| {
            let (_, one) = domain.working_interval(at);
            at += c.categories.len();
            Categorical { column: c.column.clone(), categories: c.categories.clone(), one }
        };
        let hello = Hello {
            protocol: PROTOCOL,
            columns: work.columns.iter().map(column).collect(),
            categorical: work.categorical.iter().map(&mut categorical).collect(),
            scaling: work.scaling,
            out_of_box: work.out_of_box,
            noise: work.recipe.noise.is_some(),
        };
        let held = begin(command, hello.clone())?;
        // [NOI-8]: they count for nothing, and only whoever sits here is told.
        if let Some(unusable) = held.unusable() {
            tracing::warn!("{unusable}; they count for nothing");
        }
        held.covers(kinds(federation)?).map_err(|fault| failure(&fault))?;
        let ready = held.ready();
        let rows = ready.rows.to_le_bytes();
        let mut parts = vec![&rows[..], ready.fingerprint.rows.as_bytes()];
        let framing = format!("{:?} {:?} {:?} {:?}", work.columns, work.categorical, work.scaling, work.out_of_box);
        parts.push(framing.as_bytes());
        let digest = digest_of(&parts);
        let origin = origin(ready, &hello);
        let rows = ready.rows;
        Ok((Foreign { held: Mutex::new(held), domain, rows, digest }, origin))
    }
}

/// What an answerer's rows are known by now, for columns that a ledger knows: those of numbers by their names, and those of categories by
/// their indicators (`COLUMN=CATEGORY`).
///
/// # Errors
/// As [`Foreign::open`].
pub fn origin_of(command: &Command, names: &[String]) -> Result<Origin, Failure> {
    let of = |name: &str| name.split_once('=').map(|(column, category)| (column.to_owned(), category.to_owned()));
    let (mut columns, mut categorical) = (Vec::new(), Vec::<Categorical>::new());
    for name in names {
        let found = of(name).filter(|(column, _)| {
            names.iter().filter_map(|other| of(other)).filter(|(other, _)| other == column).count() > 1
        });
        match found {
            None => columns.push(Column { name: name.clone(), lower: -ANY, upper: ANY }),
            Some((column, category)) => match categorical.iter_mut().find(|known| known.column == column) {
                Some(known) => known.categories.push(category),
                None => categorical.push(Categorical { column, categories: vec![category], one: 1.0 }),
            },
        }
    }
    let (scaling, out_of_box) = (Scaling::None, OutOfBox::Clip);
    // Rows are known by those that can be used, whatever the plan.
    let hello = Hello { protocol: PROTOCOL, columns, categorical, scaling, out_of_box, noise: true };
    let held = begin(command, hello.clone())?;
    Ok(origin(held.ready(), &hello))
}

/// Beyond every value of a column whose bounds do not matter.
const ANY: f64 = 1e59;

fn begin(command: &Command, hello: Hello) -> Result<Held, Failure> {
    let log = Arc::new(|line: &str| tracing::warn!("the answerer: {line}"));
    let launch = Launch { command: command.words.clone(), limit: command.limit, start: command.limit, log };
    Held::start(launch, hello).map_err(|fault| failure(&fault))
}

/// What is told of the rows, for every coordinate of a centre; each with their number, whatever a fingerprint makes of it.
fn origin(ready: &Ready, hello: &Hello) -> Origin {
    let (told, rows) = (&ready.fingerprint, ready.rows.to_le_bytes());
    let mut names: Vec<String> = hello.columns.iter().map(|column| column.name.clone()).collect();
    let mut columns: Vec<Hash> =
        told.columns.iter().take(names.len()).map(|column| digest_of(&[&rows, column.as_bytes()])).collect();
    for (column, values) in hello.categorical.iter().zip(&told.columns[names.len()..]) {
        for category in &column.categories {
            names.push(format!("{}={category}", column.column));
            columns.push(digest_of(&[&rows, values.as_bytes(), category.as_bytes()]));
        }
    }
    Origin::elsewhere(names, columns, digest_of(&[&rows, told.rows.as_bytes()]))
}

/// The kinds of questions that a plan may ask.
fn kinds(federation: &Federation) -> Result<Vec<&'static str>, Failure> {
    let work = &federation.work;
    let mut kinds = Vec::new();
    for question in agreed::questions(work)? {
        if let Question::Cluster(batch) | Question::Drawn { batch, .. } = question {
            kinds.extend(batch.queries.iter().filter(|query| !is_missing(query)).map(kind_of));
        }
    }
    Ok(kinds)
}

/// Values are missing in rows that are left out, and an answerer has none of these: without noise it does not begin with a row that lacks a
/// value, and with noise nobody asks.
fn is_missing(query: &Query) -> bool {
    matches!(query, Query::Missing(_))
}

fn failure(fault: &Fault) -> Failure {
    Failure::input(fault, fault.advice())
}

impl Answerer for Foreign {
    fn domain(&self) -> &Domain {
        &self.domain
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    fn digest(&self) -> Hash {
        self.digest
    }

    fn words(&self, batch: &Batch, steps: &[SumStep]) -> Result<Vec<i64>, Failure> {
        if batch.queries.iter().all(is_missing) {
            return Ok(vec![0; steps.iter().map(|step| step.len).sum()]);
        }
        let blocks: Vec<(usize, i32)> = steps.iter().map(|step| (step.len, step.fraction_bits)).collect();
        let source = |fault: Fault| Failure::input(&fault, fault.advice());
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.words(batch, &blocks).map_err(source)
    }
}
