//! `veilsum status --page` and `--metrics`: a process that holds no key serves what another one says of itself, as long as it runs. It asks
//! anew for each document, so the party may end and start again meanwhile.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};

use clap::Args;
use serde_json::{Value, json};
use veilsum_node::{
    error::{Code, Failure},
    role::status::{self, Status},
};

use super::{
    http::{Document, Documents, Server},
    live::{self, Seen},
    metrics,
};

const PAGE: &str = "127.0.0.1:7433";
/// A port that no well-known service has.
const METRICS: &str = "127.0.0.1:9433";

/// What is served until the process is stopped.
#[derive(Args, Debug, Clone, Default)]
pub(super) struct Served {
    /// Serve a page for a browser on this machine, until stopped [default: 127.0.0.1:7433]
    ///
    /// ADDR is a port, or an address of this machine's loopback with one. Everybody on this machine can read the page: names, rounds,
    /// how far the centres moved, the validity indices.
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = PAGE, value_parser = address)]
    page: Option<SocketAddr>,
    /// Serve metrics as OpenMetrics at /metrics, until stopped [default: 127.0.0.1:9433]
    ///
    /// ADDR is a port of this machine's loopback, or any address with one; everybody who can reach it can read them.
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = METRICS, value_parser = address, hide_short_help = true)]
    metrics: Option<SocketAddr>,
}

/// A port of this machine's loopback, or an address with one.
fn address(text: &str) -> Result<SocketAddr, String> {
    let text = text.strip_prefix("localhost:").unwrap_or(text);
    if let Ok(port) = text.parse() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse().map_err(|_| "say a port, or IP:PORT".to_owned())
}

impl Served {
    /// Opens what was asked for; nothing if nothing was.
    ///
    /// # Errors
    /// A [`Failure`] if a port cannot be opened, or the page is to be shown elsewhere.
    pub(super) fn open(&self, state: PathBuf) -> Result<Vec<Server>, Failure> {
        let viewer: Viewer = Arc::new(move || status::ask(&state).map_err(|failure| failure.message));
        let mut servers = Vec::new();
        if let Some(at) = self.page {
            if !at.ip().is_loopback() {
                return Err(Failure::new(
                    Code::Usage,
                    format!("--page: {at} is not on this machine's loopback, and the page is for this machine alone"),
                    format!("say --page {}; from elsewhere look at it through ssh -L {0}:127.0.0.1:{0}", at.port()),
                ));
            }
            let server = Server::open("--page", at, pages(viewer.clone()))?;
            crate::tell!("the page is at http://{}/", server.address());
            servers.push(server);
        }
        if let Some(at) = self.metrics {
            let server = Server::open("--metrics", at, of_metrics(viewer))?;
            let open = if at.ip().is_loopback() { "" } else { "; everybody who can reach this address can read them" };
            crate::tell!("metrics are at http://{}/metrics{open}", server.address());
            servers.push(server);
        }
        Ok(servers)
    }
}

type Viewer = Arc<dyn Fn() -> Seen + Send + Sync>;

fn pages(viewer: Viewer) -> Documents {
    Arc::new(move |path| {
        let nonce = nonce();
        let html = match path {
            "/" => live::page(&viewer(), &nonce),
            "/main" => live::main(&viewer()),
            "/status.json" => {
                // Text and numbers always have a JSON form.
                let told = match viewer() {
                    Ok(status) => told_in_json(status.as_ref()),
                    Err(why) => json!({ "error": why }),
                };
                let body = serde_json::to_vec(&told).unwrap_or_default();
                return Some(Document { kind: "application/json", policy: "default-src 'none'".into(), body });
            }
            // A browser asks for an icon by itself. There is none, and that is no fault.
            "/favicon.ico" => {
                return Some(Document { kind: "image/x-icon", policy: "default-src 'none'".into(), body: Vec::new() });
            }
            _ => return None,
        };
        Some(Document { kind: "text/html; charset=utf-8", policy: live::policy(&nonce), body: html.into_bytes() })
    })
}

fn of_metrics(viewer: Viewer) -> Documents {
    Arc::new(move |path| {
        // A party that cannot be asked has no metrics: the scrape fails.
        let status = (path == "/metrics").then(|| viewer().ok())??;
        let body = metrics::text(status.as_ref()).into_bytes();
        Some(Document { kind: metrics::KIND, policy: "default-src 'none'".into(), body })
    })
}

/// How a party stands, or that none runs.
pub(super) fn told_in_json(status: Option<&Status>) -> Value {
    let mut value = status.map_or_else(|| json!({}), |status| json!(status));
    value["running"] = json!(status.is_some());
    value
}

/// A word that nobody can guess.
fn nonce() -> String {
    let mut bytes = [0; 16];
    match getrandom::fill(&mut bytes) {
        Ok(()) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        // The page has no script and no style then, and is read all the same.
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_port_here_or_a_whole_one() {
        let here = |port: u16| Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        assert_eq!((address("80"), address("localhost:0"), address(PAGE)), (here(80), here(0), here(7433)));
        assert_eq!(address("[::1]:7"), Ok("[::1]:7".parse().unwrap()));
        for text in ["", "here", "70000", "example.org:80", "127.0.0.1"] {
            assert!(address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_page_is_for_this_machine_alone() {
        for at in ["0.0.0.0:0", "192.0.2.1:80", "[::]:0"] {
            let served = Served { page: at.parse().ok(), ..Served::default() };
            let refused = served.open(PathBuf::new()).map(drop).unwrap_err();
            assert!(refused.code == Code::Usage && refused.advice.contains("ssh -L"), "{at}: {}", refused.message);
        }
    }

    #[test]
    fn where_no_party_runs_all_documents_say_so() {
        let nobody: Viewer = Arc::new(|| Ok(None));
        let of = |documents: &Documents, path| String::from_utf8(documents(path).unwrap().body).unwrap();
        let pages = pages(nobody.clone());
        assert!(of(&pages, "/").contains("<noscript>") && of(&pages, "/main").contains("No party runs here now."));
        assert_eq!(of(&pages, "/status.json"), r#"{"running":false}"#);
        let mute: Viewer = Arc::new(|| Err("it is <old>".into()));
        assert!(
            of(&super::pages(mute.clone()), "/main").contains("it is &lt;old&gt;")
                && of_metrics(mute)("/metrics").is_none()
        );
        assert!(of(&of_metrics(nobody), "/metrics").ends_with("veilsum_running 0.0\n# EOF\n"));
    }
}
