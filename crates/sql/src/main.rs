//! `veilsum-sql`: an answerer for PostgreSQL. It holds rows and a connection, and no key; a site's process starts it, asks it
//! questions over standard input and output (`docs/src/answerers.md`), and checks what it says.
//!
//! Read it in this order: [`text`], names and numbers as SQL; [`config`], [`tls`], [`session`], a connection with a pinned snapshot
//! that can be cancelled; [`source`], the view and what is wrong with its rows; [`stream`], rows by binary COPY; [`push`],
//! questions as SQL; [`engine`], both modes as an answerer.

mod chain;
mod config;
mod engine;
mod power;
mod push;
mod session;
mod source;
mod stream;
mod text;
mod tls;

use std::{io, path::PathBuf, process::ExitCode, sync::mpsc, time::Duration};

use clap::{Parser, ValueEnum};
use tokio::sync::watch;
use veilsum_answerer::serve;

use engine::Database;
use session::Limits;

/// An answerer for PostgreSQL: give it to a site as its `answerer`
#[derive(Parser, Debug)]
#[command(name = "veilsum-sql", version)]
struct Args {
    /// The table or view with the plan's columns: NAME or SCHEMA.NAME
    #[arg(long, value_name = "NAME", required_unless_present = "query", conflicts_with = "query")]
    view: Option<String>,
    /// A query with the plan's columns, in place of a view
    #[arg(long, value_name = "SQL")]
    query: Option<String>,
    /// How answers are computed
    #[arg(long, value_name = "MODE", value_enum, default_value_t = Mode::Stream)]
    mode: Mode,
    /// A file with the connection: host, port, dbname, user, password_file, sslmode, sslrootcert [default: PGHOST, PGPORT, …]
    #[arg(long, value_name = "FILE.toml")]
    config: Option<PathBuf>,
    /// The connection as postgresql://USER@HOST:PORT/DATABASE, without a password
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    url: Option<String>,
    /// Memory for rows in mode stream, MiB; more rows than fit are read again for every question
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    memory: u64,
    /// Seconds that one statement may take
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    statement_timeout: u64,
    /// Seconds to wait for a lock
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    lock_timeout: u64,
    /// Memory that the server may use for sorting and hashing, MiB
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    work_mem: u64,
}

/// Where sums are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Rows are streamed here: every question, the same words as from a file
    Stream,
    /// Sums are computed by the database, and no row leaves it
    Push,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return fail(&format!("no runtime: {e}"), "check the limits on threads"),
    };
    let (stop, stopped) = watch::channel(false);
    // Nothing in place of a line ends the wait for the next one.
    let (events, heard) = mpsc::channel();
    let (lines, ended) = (events.clone(), stop.clone());
    std::thread::spawn(move || {
        for line in serve::lines_of(io::stdin().lock()) {
            if lines.send(Some(line)).is_err() {
                return;
            }
        }
        // The site is gone, or has no more to say: a question that is still computed is of no use to anybody.
        let _ = ended.send(true);
        let _ = lines.send(None);
    });
    runtime.spawn(async move {
        if told().await {
            let _ = stop.send(true);
            let _ = events.send(None);
        }
    });
    let limits = Limits {
        statement: Duration::from_secs(args.statement_timeout),
        lock: Duration::from_secs(args.lock_timeout),
        work_mem: args.work_mem.clamp(1, 1 << 20),
    };
    let connection = match config::connection(args.config.as_deref(), args.url.as_deref()) {
        Ok(connection) => connection,
        Err((what, next)) => return fail(&what, &next),
    };
    let relation = match (&args.view, &args.query) {
        (Some(view), _) => text::relation(view),
        (None, query) => text::subquery(query.as_deref().unwrap_or_default()),
    };
    let relation = match relation {
        Ok(relation) => relation,
        Err(what) => return fail(&what, "name the view as NAME or SCHEMA.NAME"),
    };
    let memory = args.memory.saturating_mul(1 << 20);
    let mut engine = Database::new(runtime, connection, limits, relation, args.mode == Mode::Push, memory, stopped);
    let served = serve::serve(&mut engine, heard.into_iter().map_while(|line| line), &mut io::stdout().lock());
    if engine.close() {
        eprintln!("cancelled cleanly");
    }
    match served {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody listens any more.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(e) => fail(&format!("the answer cannot be written: {e}"), "start the site again"),
    }
}

fn fail(what: &str, next: &str) -> ExitCode {
    eprintln!("error: {what}\nnext: {next}");
    ExitCode::from(3)
}

/// Until somebody tells this process to stop.
#[cfg(unix)]
async fn told() -> bool {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
        return false;
    };
    tokio::select! { _ = term.recv() => true, _ = int.recv() => true }
}

#[cfg(not(unix))]
async fn told() -> bool {
    tokio::signal::ctrl_c().await.is_ok()
}
