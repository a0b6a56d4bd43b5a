//! Where the database is and who asks: a file, a URL without a password, or the environment that `psql` knows. A password comes
//! from a file or the environment, never from a command line, and no message shows it.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Deserialize;
use tokio_postgres::config::{Host, SslMode};

/// What is wrong and what to do next.
type Wrong = (String, String);

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);

/// A connection that can be opened.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) config: tokio_postgres::Config,
    /// The certificate of whoever signed the server's.
    pub(crate) root: Option<PathBuf>,
    /// Where it leads, for people: without a password.
    pub(crate) place: String,
}

/// The file.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct File {
    host: Option<String>,
    port: Option<u16>,
    dbname: Option<String>,
    user: Option<String>,
    password_file: Option<PathBuf>,
    sslmode: Option<String>,
    sslrootcert: Option<PathBuf>,
}

/// What is told in a file, in a URL, or in the environment where neither is there.
///
/// # Errors
/// What is wrong and what to do next, without a password.
pub(crate) fn connection(file: Option<&Path>, url: Option<&str>) -> Result<Connection, Wrong> {
    let of = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut told = match file {
        None => File::default(),
        Some(path) => read(path)?,
    };
    if let Some(url) = url {
        take_url(url, &mut told)?;
    }
    let host = told.host.or_else(|| of("PGHOST")).unwrap_or_else(|| "/var/run/postgresql".into());
    let from_environment = || of("PGPORT").map_or(Ok(5432), |port| port.parse());
    let port = told.port.map_or_else(from_environment, Ok);
    let port = port.map_err(|_| wrong("PGPORT is not the number of a port", "set it to one, or unset it"))?;
    let user = told.user.or_else(|| of("PGUSER")).or_else(|| of("USER"));
    let user = user.ok_or_else(|| wrong("nobody is named to connect as", "set `user` in the file, or PGUSER"))?;
    let dbname = told.dbname.or_else(|| of("PGDATABASE")).unwrap_or_else(|| user.clone());
    let mode = told.sslmode.or_else(|| of("PGSSLMODE"));
    if let Some(name) = ["PGHOSTADDR", "PGSERVICE", "PGSERVICEFILE"].iter().find(|name| of(name).is_some()) {
        return Err(wrong(
            format!("{name} is set, and not known here"),
            "unset it, and say the host, port and database in the file or in PGHOST, PGPORT and PGDATABASE",
        ));
    }
    let local = host.starts_with('/') || ["localhost", "127.0.0.1", "::1"].contains(&host.as_str());
    let mut config = tokio_postgres::Config::new();
    config.host(&host).port(port).user(&user).dbname(&dbname).connect_timeout(CONNECT).application_name("veilsum-sql");
    config.keepalives_idle(Duration::from_secs(60));
    config.ssl_mode(match mode.as_deref() {
        Some("disable") => SslMode::Disable,
        None if local => SslMode::Disable,
        // A server whose certificate nobody checks may be anybody.
        None | Some("verify-full" | "verify-ca" | "require") => SslMode::Require,
        Some(_) => return Err(wrong("sslmode is neither disable nor verify-full", "set it to verify-full")),
    });
    let password = match (told.password_file, of("PGPASSWORD")) {
        (Some(path), _) => Some(password_in(&path)?),
        (None, Some(password)) => Some(password),
        (None, None) => in_passfile(&host, port, &dbname, &user)?,
    };
    if let Some(password) = password {
        config.password(password);
    }
    let root = told.sslrootcert.or_else(|| of("PGSSLROOTCERT").map(PathBuf::from));
    Ok(Connection { config, root, place: format!("database {dbname:?} at {host}, port {port}, as {user:?}") })
}

fn wrong(what: impl Into<String>, next: impl Into<String>) -> Wrong {
    (what.into(), next.into())
}

fn read(path: &Path) -> Result<File, Wrong> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|e| wrong(format!("{name}: {e}"), "say where the file is: --config FILE"))?;
    toml::from_str(&text).map_err(|e| {
        // The parser's own words would show the line, and somebody may have written a password into it.
        let line = e.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let known = "it may have host, port, dbname, user, password_file, sslmode and sslrootcert, and no password";
        wrong(format!("{name}, line {line}: it cannot be used"), known)
    })
}

/// Takes a URL apart; one with a password is refused, because others on this machine see command lines.
fn take_url(url: &str, told: &mut File) -> Result<(), Wrong> {
    let unusable =
        || wrong("the URL cannot be used (it is not shown here)", "write it as postgresql://USER@HOST:PORT/DATABASE");
    let secret = || {
        wrong(
            "the URL holds a password (it is not shown here), and others on this machine can read command lines",
            "take the password out of it, change it, and put the new one into a file: password_file in --config FILE, or PGPASSFILE",
        )
    };
    let lower = url.to_ascii_lowercase();
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split(['/', '?']).next().unwrap_or_default();
    if authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':')) || lower.contains("password") {
        return Err(secret());
    }
    // What stands behind `?` is read here: of the library's words for TLS not one means that the certificate is checked.
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    for part in query.split('&').filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some(("sslmode", mode)) => told.sslmode = Some(mode.to_owned()),
            Some(("sslrootcert", path)) => told.sslrootcert = Some(path.into()),
            _ => {
                let what = "of the URL's options sslmode and sslrootcert are known here";
                return Err(wrong(what, "put the others into --config FILE"));
            }
        }
    }
    let parsed: tokio_postgres::Config = place.parse().map_err(|_| unusable())?;
    if parsed.get_password().is_some() {
        return Err(secret());
    }
    told.host = match parsed.get_hosts() {
        [Host::Tcp(host)] => Some(host.clone()),
        #[cfg(unix)]
        [Host::Unix(path)] => Some(path.display().to_string()),
        [] => None,
        _ => return Err(unusable()),
    };
    told.port = parsed.get_ports().first().copied();
    told.user = parsed.get_user().map(str::to_owned);
    told.dbname = parsed.get_dbname().map(str::to_owned);
    Ok(())
}

/// The first line of a file that only its owner may read.
fn password_in(path: &Path) -> Result<String, Wrong> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| wrong(format!("the password's file {}: {e}", path.display()), "say where it is: password_file"))?;
    private(path)?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

#[cfg(unix)]
fn private(path: &Path) -> Result<(), Wrong> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).map(|of| of.permissions().mode()).unwrap_or_default();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let name = path.display();
    Err(wrong(format!("others may read {name}, which holds a password"), format!("chmod 600 {name}")))
}

#[cfg(not(unix))]
fn private(_: &Path) -> Result<(), Wrong> {
    Ok(())
}

/// The password in `~/.pgpass`, as `psql` finds it.
fn in_passfile(host: &str, port: u16, dbname: &str, user: &str) -> Result<Option<String>, Wrong> {
    let path = std::env::var_os("PGPASSFILE").map(PathBuf::from);
    let path = path.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".pgpass")));
    let Some(path) = path.filter(|path| path.is_file()) else { return Ok(None) };
    private(&path)?;
    let text = std::fs::read_to_string(&path)
        .map_err(|e| wrong(format!("{}: {e}", path.display()), "make it readable to its owner"))?;
    let host = if host.starts_with('/') { "localhost" } else { host };
    let wanted = [host, &port.to_string(), dbname, user];
    Ok(text.lines().find_map(|line| matching(line, &wanted)))
}

/// The password of a line `host:port:database:user:password`, with `*` for anything and a backslash before `:` and `\`.
fn matching(line: &str, wanted: &[&str; 4]) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '\\' if !quoted => quoted = true,
            ':' if !quoted && fields.len() < 4 => fields.push(std::mem::take(&mut field)),
            c => {
                field.push(c);
                quoted = false;
            }
        }
    }
    let fits = fields.len() == 4 && fields.iter().zip(wanted).all(|(field, wanted)| field == "*" || field == wanted);
    fits.then_some(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_url_is_refused_and_not_shown() {
        for url in [
            "postgresql://me:hunter2@db.example.org/x",
            "postgres://me:hunter2@/x",
            "postgresql://me@db/x?password=hunter2",
            "host=db password=hunter2",
        ] {
            let (what, next) = connection(None, Some(url)).err().unwrap();
            assert!(!format!("{what}{next}").contains("hunter2") && what.contains("password"), "{what}");
        }
        let (what, _) = connection(None, Some("postgresql://me@db:port/hunter2")).err().unwrap();
        assert!(!what.contains("hunter2"));
        let good = connection(None, Some("postgresql://me@db.example.org:5433/x")).unwrap();
        assert_eq!(good.place, "database \"x\" at db.example.org, port 5433, as \"me\"");
        assert_eq!(good.config.get_ssl_mode(), SslMode::Require);
    }

    #[test]
    fn a_line_of_a_password_file() {
        let wanted = ["localhost", "5432", "x", "me"];
        assert_eq!(matching("localhost:5432:x:me:a:b\\\\c", &wanted), Some("a:b\\c".into()));
        assert_eq!(matching("*:*:*:me:p", &wanted), Some("p".into()));
        assert_eq!(matching("# *:*:*:me:p", &wanted), None);
        assert_eq!(matching("*:*:*:you:p", &wanted), None);
    }
}
