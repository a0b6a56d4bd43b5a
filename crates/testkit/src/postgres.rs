//! A real PostgreSQL for tests: a server of its own on a port of 127.0.0.1, gone at the end.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

/// A running server. Its superuser is `postgres`, who needs no password from this machine.
pub struct Postgres {
    folder: PathBuf,
    programs: PathBuf,
    /// The words before a command of the server's: root may not run it itself.
    as_user: Vec<String>,
    pub port: u16,
}

impl Postgres {
    /// Starts a server with a new and empty cluster; says why it is not started where it cannot be.
    ///
    /// # Errors
    /// What is missing.
    pub fn start() -> Result<Postgres, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let programs = programs().ok_or("there is no PostgreSQL server here (initdb, pg_ctl): install `postgresql`")?;
        let as_user = user()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("veilsum-pg-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).map_err(|e| e.to_string())?;
        let probe = std::net::TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
        let port = probe.local_addr().map_err(|e| e.to_string())?.port();
        drop(probe);
        let server = Postgres { folder, programs, as_user, port };
        if !server.as_user.is_empty() {
            run(Command::new("chown").arg("postgres").arg(&server.folder))?;
        }
        let data = server.folder.join("data");
        let data = data.to_str().ok_or("a path that is no text")?;
        run(server.command("initdb").args(["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]))?;
        // Passwords count for roles whose names say so.
        let rules = format!("{data}/pg_hba.conf");
        let text = std::fs::read_to_string(&rules).map_err(|e| e.to_string())?;
        std::fs::write(&rules, format!("host all with_password 127.0.0.1/32 scram-sha-256\n{text}"))
            .map_err(|e| e.to_string())?;
        let options = format!(
            "-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off -c shared_buffers=128MB"
        );
        let log = format!("{}/log", server.folder.display());
        run(server.command("pg_ctl").args(["-D", data, "-w", "-l", &log, "-o", &options, "start"]))?;
        Ok(server)
    }

    fn command(&self, program: &str) -> Command {
        let path = self.programs.join(program);
        let mut command = match self.as_user.split_first() {
            None => Command::new(path),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(path);
                command
            }
        };
        command.current_dir("/").stdin(Stdio::null());
        command
    }

    /// Runs SQL as the superuser; what it prints, unaligned.
    pub fn sql(&self, sql: &str) -> String {
        self.pipe(sql, &[])
    }

    /// SQL from standard input, with what follows a COPY … FROM STDIN.
    pub fn pipe(&self, sql: &str, data: &[u8]) -> String {
        let mut command = Command::new(self.programs.join("psql"));
        let port = self.port.to_string();
        command.args([
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            "127.0.0.1",
            "-p",
            &port,
            "-U",
            "postgres",
            "-f",
            "-",
        ]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("psql starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(sql.as_bytes()).and_then(|()| stdin.write_all(b"\n")).expect("SQL");
        stdin.write_all(data).expect("data");
        drop(stdin);
        let done = child.wait_with_output().expect("psql ends");
        assert!(done.status.success(), "{sql}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
    }

    /// A table from the text of a CSV file with a header.
    pub fn load(&self, create: &str, table: &str, csv: &str) {
        self.pipe(
            &format!("{create};\nCOPY {table} FROM STDIN WITH (FORMAT csv, HEADER);"),
            format!("{csv}\\.\n").as_bytes(),
        );
        self.sql(&format!("ANALYZE {table}"));
    }

    /// Ends the sessions of `veilsum-sql`, as a restart of the server would.
    pub fn drop_connections(&self) -> usize {
        let ended = self.sql(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'veilsum-sql'",
        );
        ended.parse().expect("a number")
    }

    /// Statements that sessions of `veilsum-sql` run now.
    pub fn active(&self) -> usize {
        let active =
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'veilsum-sql' AND state = 'active'";
        self.sql(active).parse().expect("a number")
    }

    /// Where it is, for `--url`.
    pub fn url(&self, user: &str) -> String {
        format!("postgresql://{user}@127.0.0.1:{}/postgres", self.port)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let data = self.folder.join("data");
        let _ =
            self.command("pg_ctl").args(["-D", &data.display().to_string(), "-m", "immediate", "-w", "stop"]).output();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    // The server keeps what it inherits open: pipes would never end.
    let done = command.stdout(Stdio::null()).stderr(Stdio::null()).status().map_err(|e| format!("{command:?}: {e}"))?;
    if done.success() { Ok(()) } else { Err(format!("{command:?} ended with {done}")) }
}

/// The folder of initdb: Debian has one for each version, others have them on PATH.
fn programs() -> Option<PathBuf> {
    let all = ["initdb", "pg_ctl", "psql"];
    let has = |folder: &Path| all.iter().all(|program| folder.join(program).is_file());
    let mut debian: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|of| of.path().join("bin"))
        .filter(|folder| has(folder))
        .collect();
    debian.sort_by_key(|folder| {
        let version = folder.parent().and_then(Path::file_name).and_then(|name| name.to_str()?.parse::<u32>().ok());
        version.unwrap_or_default()
    });
    debian.pop().or_else(|| std::env::split_paths(&std::env::var_os("PATH")?).find(|folder| has(folder)))
}

/// The server does not run as root.
fn user() -> Result<Vec<String>, String> {
    let id = Command::new("id").arg("-u").output().map_err(|e| e.to_string())?;
    if String::from_utf8_lossy(&id.stdout).trim() != "0" {
        return Ok(Vec::new());
    }
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    for candidate in [
        words(&["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]),
        words(&["runuser", "-u", "postgres", "--"]),
    ] {
        let tried = Command::new(&candidate[0]).args(&candidate[1..]).arg("true").output();
        if tried.is_ok_and(|done| done.status.success()) {
            return Ok(candidate);
        }
    }
    Err("root may not run PostgreSQL, and there is no user `postgres` to run it as".into())
}
