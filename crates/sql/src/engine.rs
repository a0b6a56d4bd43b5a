//! The database as an answerer: rows streamed and held, rows streamed again and again, or questions as SQL.

use tokio::{runtime::Runtime, sync::watch};
use tokio_postgres::Row;
use veilsum_answerer::{
    AskedBlock, Hello, Ready, Refusal, RefusalCode,
    contract::{KINDS, PROTOCOL},
    rows,
    serve::Engine,
};
use veilsum_cluster::{Batch, Domain, Prepared, Rows};

use crate::{
    config::Connection,
    push::{self, Group},
    session::{Limits, Session},
    source::{Source, Survey},
    stream,
};

/// Times the size of its numbers that a row takes while it is read: as it comes, checked, and packed.
const COPIES: u64 = 3;

/// The answerer.
pub(crate) struct Database {
    session: Session,
    relation: String,
    push: bool,
    /// Bytes for rows.
    memory: u64,
    opened: Option<Opened>,
}

struct Opened {
    hello: Hello,
    domain: Domain,
    source: Source,
    survey: Survey,
    /// The rows, where they are held.
    held: Option<Prepared>,
}

impl Database {
    pub(crate) fn new(
        runtime: Runtime,
        connection: Connection,
        limits: Limits,
        relation: String,
        push: bool,
        memory: u64,
        stop: watch::Receiver<bool>,
    ) -> Self {
        Self { session: Session::new(runtime, connection, limits, stop), relation, push, memory, opened: None }
    }

    /// Whether a statement was cancelled at the end.
    pub(crate) fn close(self) -> bool {
        self.session.cancelled
    }

    /// Connects and looks at the rows.
    fn survey(&mut self, hello: &Hello) -> Result<(Source, Survey), Refusal> {
        self.session.open()?;
        let mut source = Source::open(&self.relation, hello, &mut self.session)?;
        let survey = source.survey(&mut self.session)?;
        source.partly = !survey.bad.is_empty();
        Ok((source, survey))
    }

    /// A new connection has another snapshot: it serves only where the rows are the same.
    fn reopen(&mut self) -> Result<(), Refusal> {
        let Some(opened) = &self.opened else { return Ok(()) };
        let (hello, before) = (opened.hello.clone(), opened.survey.clone());
        let (_, now) = self.survey(&hello)?;
        if now == before {
            return Ok(());
        }
        let what = "the connection was lost, and the rows are others than before";
        let next = "let the view show rows that stay as they are during a run, and start again";
        Err(Refusal::new(RefusalCode::Changed, what, next))
    }

    fn once(&mut self, batch: &Batch, blocks: &[AskedBlock]) -> Result<Vec<i64>, Refusal> {
        let missing = || Refusal::new(RefusalCode::Protocol, "`ask` comes after `hello`", "keep to the contract");
        let Opened { hello, domain, source, survey, held } = self.opened.as_ref().ok_or_else(missing)?;
        if let Some(rows) = held {
            return rows::words(batch, rows, blocks);
        }
        let session = &mut self.session;
        if !self.push {
            let mut all = vec![0i64; blocks.iter().map(|block| block.len).sum()];
            let read = stream::read(source, hello, session, &mut |values| {
                let rows = prepared(values, domain, hello)?;
                rows::merge(batch, domain, &mut all, &rows::words(batch, &rows, blocks)?)
            })?;
            return if read == survey.rows { Ok(all) } else { Err(moved()) };
        }
        let mut run = |sql: &str| Ok(session.rows(sql)?.iter().map(group).collect());
        push::words(source, domain, batch, blocks, survey.rows, &mut run)
    }
}

fn group(row: &Row) -> Group {
    Group { key: row.get(0), rows: row.get(1), sums: row.get(2) }
}

fn moved() -> Refusal {
    let next = "let the view read tables, and no functions that change";
    Refusal::new(RefusalCode::Changed, "the database gives another number of rows than before", next)
}

fn prepared(values: Vec<f64>, domain: &Domain, hello: &Hello) -> Result<Prepared, Refusal> {
    let rows = Rows::new(values, domain.columns()).and_then(|rows| Prepared::new(&rows, domain, hello.out_of_box));
    // The view was surveyed under the same snapshot.
    rows.map_err(|_| moved())
}

impl Engine for Database {
    fn open(&mut self, hello: &Hello) -> Result<Ready, Refusal> {
        let domain = hello.domain().map_err(|e| Refusal::new(RefusalCode::Protocol, e, "send a plan's columns"))?;
        if self.push {
            push::usable(&domain, hello.noise)?;
        }
        let (source, survey) = self.survey(hello)?;
        let mut held = None;
        let needed = survey.rows.saturating_mul(8 * COPIES).saturating_mul(domain.columns() as u64);
        if !self.push && needed <= self.memory {
            let mut all = Vec::with_capacity((survey.rows as usize).saturating_mul(domain.columns()));
            let read = stream::read(&source, hello, &mut self.session, &mut |values| {
                all.extend(values);
                Ok(())
            });
            if read? != survey.rows {
                return Err(moved());
            }
            held = Some(prepared(all, &domain, hello)?);
        }
        let kinds: Vec<&str> = match (self.push, &held) {
            (true, _) => push::KINDS.to_vec(),
            // Labels do not come with the rows.
            (false, Some(_)) => KINDS.into_iter().filter(|kind| *kind != "contingency").collect(),
            (false, None) => rows::additive().collect(),
        };
        let ready = Ready {
            protocol: PROTOCOL,
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            rows: survey.rows,
            bad: survey.bad.clone(),
            fingerprint: survey.fingerprint.clone(),
            kinds: kinds.into_iter().map(str::to_owned).collect(),
        };
        self.opened = Some(Opened { hello: hello.clone(), domain, source, survey, held });
        Ok(ready)
    }

    fn words(&mut self, batch: &Batch, blocks: &[AskedBlock]) -> Result<Vec<i64>, Refusal> {
        match self.once(batch, blocks) {
            Err(gone) if gone.code == RefusalCode::Connection => {
                eprintln!("{}; connecting once more", gone.message);
                self.reopen()?;
                self.once(batch, blocks)
            }
            other => other,
        }
    }
}
