//! A connection with one snapshot for the whole run. Statements have limits of the server and of this process, and are cancelled
//! on the server when nobody waits for them any more.

use std::{pin::pin, time::Duration};

use futures_util::TryStreamExt;
use tokio::{runtime::Runtime, sync::watch, time::timeout};
use tokio_postgres::{Client, Row, Statement, binary_copy::BinaryCopyOutStream, error::SqlState, types::Type};
use veilsum_answerer::{Refusal, RefusalCode};

use crate::{config::Connection, tls::Tls};

/// What statements may take.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) statement: Duration,
    pub(crate) lock: Duration,
    /// MiB.
    pub(crate) work_mem: u64,
}

/// How long the server may take to end a statement that was cancelled.
const CANCEL: Duration = Duration::from_secs(10);
/// What this process waits for a statement beyond the server's own limit.
const GRACE: Duration = Duration::from_secs(15);

/// A connection, or what is needed to open one.
pub(crate) struct Session {
    runtime: Runtime,
    connection: Connection,
    limits: Limits,
    stop: watch::Receiver<bool>,
    client: Option<Client>,
    /// Whether a statement was cancelled because this process was told to stop.
    pub(crate) cancelled: bool,
}

impl Session {
    pub(crate) fn new(runtime: Runtime, connection: Connection, limits: Limits, stop: watch::Receiver<bool>) -> Self {
        Self { runtime, connection, limits, stop, client: None, cancelled: false }
    }

    /// Connects, and begins the transaction whose snapshot every statement sees.
    ///
    /// # Errors
    /// [`Refusal`] with the place and without the password.
    pub(crate) fn open(&mut self) -> Result<(), Refusal> {
        self.client = None;
        let place = self.connection.place.clone();
        let cannot = |what: String, next: &str| Refusal::new(RefusalCode::Connection, format!("{place}: {what}"), next);
        let tls = Tls::new(self.connection.root.as_deref()).map_err(|e| cannot(e, "correct sslrootcert"))?;
        let (config, wait) = (self.connection.config.clone(), Duration::from_secs(30));
        let connected = self.runtime.block_on(async { timeout(wait, config.connect(tls)).await });
        let (client, connection) = match connected {
            Ok(Ok(both)) => both,
            Ok(Err(e)) => return Err(cannot(why(&e), after_connect(&e))),
            Err(_) => return Err(cannot("nobody answers there".into(), UNREACHABLE)),
        };
        self.runtime.spawn(async move {
            // How it ended shows at the next statement.
            let _ = connection.await;
        });
        self.client = Some(client);
        let Limits { statement, lock, work_mem } = self.limits;
        let settings = format!(
            "SET statement_timeout = {}; SET lock_timeout = {}; SET idle_in_transaction_session_timeout = 0; \
             SET work_mem = '{work_mem}MB'; SET jit = off; SET standard_conforming_strings = on; SET synchronize_seqscans = off; \
             SET extra_float_digits = 3; SET default_transaction_read_only = on; \
             BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            statement.as_millis(),
            lock.as_millis(),
        );
        self.run(async |client| client.batch_execute(&settings).await)
    }

    /// What is said where the connection is lost, and with it the snapshot; no other refusal of a statement has its code.
    pub(crate) fn gone(&self, what: &str) -> Refusal {
        let what = format!("{}: the connection was lost ({what})", self.connection.place);
        Refusal::new(RefusalCode::Connection, what, "see whether the server runs, and start the site again")
    }

    /// What a statement gives.
    pub(crate) fn rows(&mut self, sql: &str) -> Result<Vec<Row>, Refusal> {
        self.safely(async |client| client.query(sql, &[]).await)
    }

    /// What a statement would give.
    pub(crate) fn describe(&mut self, sql: &str) -> Result<Statement, Refusal> {
        self.safely(async |client| client.prepare(sql).await)
    }

    /// The rows of a binary COPY of so many doubles; where `take` refuses one, the rest is read and thrown away.
    pub(crate) fn copy(
        &mut self,
        sql: &str,
        columns: usize,
        mut take: impl FnMut(&[f64]) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let mut refused = None;
        let copied = self.safely(async |client| {
            let types = vec![Type::FLOAT8; columns];
            let mut rows = pin!(BinaryCopyOutStream::new(client.copy_out(sql).await?, &types));
            let mut values = vec![0.0; columns];
            while let Some(row) = rows.try_next().await? {
                for (at, value) in values.iter_mut().enumerate() {
                    *value = row.try_get(at)?;
                }
                if refused.is_none() {
                    refused = take(&values).err();
                }
            }
            Ok(())
        });
        refused.map_or(copied, Err)
    }

    /// In a savepoint: a statement that fails does not end the transaction, and with it the snapshot.
    fn safely<T>(&mut self, work: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>) -> Result<T, Refusal> {
        self.run(async |client| client.batch_execute("SAVEPOINT question").await)?;
        let done = self.run(work);
        // A statement that did not end when it was told to took the connection with it: there is nothing to roll back, and what is wrong stands.
        if self.client.is_none() {
            return done;
        }
        let end = if done.is_ok() { "RELEASE question" } else { "ROLLBACK TO question; RELEASE question" };
        let gone = done.as_ref().is_err_and(|refusal| refusal.code == RefusalCode::Connection);
        if !gone && !self.cancelled {
            self.run(async |client| client.batch_execute(end).await)?;
        }
        done
    }

    fn run<T>(&mut self, work: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>) -> Result<T, Refusal> {
        let Some(client) = &self.client else { return Err(self.gone("it was closed")) };
        let (token, mut stop) = (client.cancel_token(), self.stop.clone());
        let tls = Tls::new(self.connection.root.as_deref()).map_err(|e| self.gone(&e))?;
        let limit = self.limits.statement + GRACE;
        let done = self.runtime.block_on(async {
            let mut work = pin!(work(client));
            let told = tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                _ = stop.wait_for(|stop| *stop) => true,
                () = tokio::time::sleep(limit) => false,
            };
            // The statement ends on the server too: nobody there goes on computing for nobody.
            let _ = timeout(CANCEL, token.cancel_query(tls)).await;
            let ended = timeout(CANCEL, work).await.is_ok();
            Err((told, ended))
        });
        let (told, ended) = match done {
            Ok(done) => return done.map_err(|e| self.trouble(&e)),
            Err(cut) => cut,
        };
        if !ended {
            self.client = None;
        }
        self.cancelled |= told && ended;
        match told {
            true => Err(Refusal::new(RefusalCode::Cancelled, "it was told to stop", "start the site again")),
            false => Err(self.late()),
        }
    }

    fn late(&self) -> Refusal {
        let what = format!("a statement took longer than {} s", self.limits.statement.as_secs());
        let next = "see with EXPLAIN what the view costs and give the table statistics (ANALYZE), or allow more: --statement-timeout";
        Refusal::new(RefusalCode::Limit, what, next)
    }

    fn trouble(&self, e: &tokio_postgres::Error) -> Refusal {
        let Some(db) = e.as_db_error() else { return self.gone(&why(e)) };
        let (code, message) = (db.code(), db.message());
        let is = |class: &str| code.code().starts_with(class);
        let (of, what, next) = match code {
            c if *c == SqlState::QUERY_CANCELED => return self.late(),
            c if *c == SqlState::LOCK_NOT_AVAILABLE => (
                RefusalCode::Limit,
                "somebody else holds a lock on the table".into(),
                "run when the table is free, or wait longer: --lock-timeout",
            ),
            c if *c == SqlState::INSUFFICIENT_PRIVILEGE => (
                RefusalCode::Rows,
                message.into(),
                "let the administrator of the database grant it: GRANT SELECT ON the view TO the role",
            ),
            c if *c == SqlState::UNDEFINED_TABLE || *c == SqlState::INVALID_SCHEMA_NAME => {
                (RefusalCode::Columns, message.into(), "name the view as it is called there: --view SCHEMA.NAME")
            }
            _ if is("57P") || is("08") => return self.gone(message),
            // The server's words may hold a value of a row.
            _ if is("22") => (
                RefusalCode::Rows,
                format!("the database cannot compute with a value of these rows (SQLSTATE {})", code.code()),
                "use --mode stream, or let the view leave out values that are absurdly small or large",
            ),
            _ if is("53") || is("54") => (
                RefusalCode::Limit,
                format!("the question is too large for this server ({message})"),
                "use --mode stream, or ask for a plan with fewer clusters or columns",
            ),
            _ if is("42") => (RefusalCode::Columns, message.into(), "correct the view or the query"),
            _ => (
                RefusalCode::Internal,
                format!("{message} (SQLSTATE {})", code.code()),
                "ask the administrator of the database; the server's log has the statement",
            ),
        };
        Refusal::new(of, what, next)
    }
}

const UNREACHABLE: &str =
    "check host and port, whether the server runs and listens there, and the firewall (`pg_isready -h HOST -p PORT`)";

/// An error in words, without its statement.
fn why(e: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    if let Some(db) = e.as_db_error() {
        return db.message().to_owned();
    }
    e.source().map_or_else(|| e.to_string(), |source| format!("{e}: {source}"))
}

fn after_connect(e: &tokio_postgres::Error) -> &'static str {
    match e.code() {
        Some(code) if code.code().starts_with("28") => {
            "check user and password (password_file, PGPASSFILE or PGPASSWORD), and the server's pg_hba.conf"
        }
        Some(code) if *code == SqlState::INVALID_CATALOG_NAME => {
            "name a database that the server has: dbname, or PGDATABASE"
        }
        Some(_) => "ask the administrator of the database",
        None if e.to_string().contains("TLS") => {
            "check the server's certificate and its name, and name the file of its authority: sslrootcert"
        }
        None if e.to_string().contains("password") => "give a password: password_file, PGPASSFILE or PGPASSWORD",
        None => UNREACHABLE,
    }
}
