//! What shows how a party's run goes, beside the screen: a file of events, metrics, a page for a browser. All of it, the screen too, is
//! made from one stream, [`Progress`](veilsum_node::role::progress::Progress).

mod events;
mod http;
mod live;
mod metrics;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use clap::Args;
use veilsum_node::{
    error::{Code, Failure},
    role::{
        progress::{Progress, Watcher},
        status::{Status, Window},
    },
};

use crate::progress::{Display, is_told};
use events::Events;
use http::{Document, Documents, Server};

/// Where the page is where nobody says otherwise.
const PAGE: &str = "127.0.0.1:7433";
/// And the metrics: a port that no well-known service has.
const METRICS: &str = "127.0.0.1:9433";

/// What shows how a run goes, beside the screen.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct Watch {
    /// Show how it stands on a page for a browser on this machine [default: 127.0.0.1:7433]
    ///
    /// ADDR is a port, or an address of this machine's loopback with one. Whoever is on this machine can read the page: names, rounds,
    /// how far the centres moved, the validity indices.
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = PAGE, value_parser = address)]
    pub page: Option<SocketAddr>,
    /// Serve metrics as OpenMetrics, at /metrics [default: 127.0.0.1:9433]
    ///
    /// ADDR is a port of this machine's loopback, or any address with one; whoever can reach it can read them.
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = METRICS, value_parser = address, hide_short_help = true)]
    pub metrics: Option<SocketAddr>,
    /// Add what happens to a file, one JSON document a line (mode 0600)
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub events: Option<PathBuf>,
}

/// A port of this machine's loopback, or an address with one.
fn address(text: &str) -> Result<SocketAddr, String> {
    let text = text.strip_prefix("localhost:").unwrap_or(text);
    if let Ok(port) = text.parse() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse().map_err(|_| "say a port, or IP:PORT".to_owned())
}

/// Shows how a party stands, as long as it is kept.
pub(crate) type Shown = Vec<Server>;

impl Watch {
    /// Whoever is told how a run goes: the file of events, the log, and the screen unless `quiet`.
    ///
    /// # Errors
    /// A [`Failure`] where the file cannot be opened.
    pub(crate) fn watcher(&self, quiet: bool) -> Result<Watcher, Failure> {
        let events = self.events.as_deref().map(Events::open).transpose()?;
        let display = (!quiet).then(|| Mutex::new(Display::new()));
        Ok(Arc::new(move |progress| {
            events.iter().for_each(|events| events.add(&progress));
            match progress {
                Progress::Answers { .. } | Progress::Bytes { .. } => tracing::debug!("{progress}"),
                _ if display.is_some() && is_told(&progress) => {}
                _ => tracing::info!("{progress}"),
            }
            if let Some(display) = &display {
                display.lock().unwrap_or_else(PoisonError::into_inner).show(&progress);
            }
        }))
    }

    /// For a program that runs parties itself: it has their events, and no port of theirs.
    ///
    /// # Errors
    /// A [`Failure`] where a port was asked for.
    pub(crate) fn without_ports(&self) -> Result<(), Failure> {
        if self.page.is_none() && self.metrics.is_none() {
            return Ok(());
        }
        let what = "page and metrics are served by the command `veilsum`, and not by a party inside another program";
        Err(Failure::new(Code::Usage, what, "leave them out; events=FILE writes what happens"))
    }

    /// Opens what was asked for.
    ///
    /// # Errors
    /// A [`Failure`] where a port cannot be opened, or the page is to be shown elsewhere.
    pub(crate) fn open(&self, window: &Window, quiet: bool) -> Result<Shown, Failure> {
        let mut shown = Vec::new();
        if let Some(at) = self.page {
            if !at.ip().is_loopback() {
                return Err(Failure::new(
                    Code::Usage,
                    format!("--page: {at} is not on this machine's loopback, and the page is for this machine alone"),
                    format!("say --page {}; from elsewhere look at it through ssh -L {0}:127.0.0.1:{0}", at.port()),
                ));
            }
            let server = Server::open("--page", at, pages(window.viewer()))?;
            if !quiet {
                crate::tell!("this party's page is at http://{}/", server.address());
            }
            shown.push(server);
        }
        if let Some(at) = self.metrics {
            let server = Server::open("--metrics", at, of_metrics(window.viewer()))?;
            if !quiet {
                let open = if at.ip().is_loopback() { "" } else { "; whoever can reach this address can read them" };
                crate::tell!("metrics are at http://{}/metrics{open}", server.address());
            }
            shown.push(server);
        }
        Ok(shown)
    }
}

type Viewer = Arc<dyn Fn() -> Status + Send + Sync>;

fn pages(viewer: Viewer) -> Documents {
    Arc::new(move |path| {
        let nonce = nonce();
        let html = match path {
            "/" => live::page(&viewer(), &nonce),
            "/main" => live::main(&viewer()),
            "/status.json" => {
                // Text and numbers always have a JSON form.
                let body = serde_json::to_vec(&viewer()).unwrap_or_default();
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
        let body = (path == "/metrics").then(|| metrics::text(&viewer()).into_bytes())?;
        Some(Document { kind: metrics::KIND, policy: "default-src 'none'".into(), body })
    })
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
        let folder = std::env::temp_dir().join(format!("veilsum-watch-{}", std::process::id()));
        let window = Window::open(&folder, "lead", "coordinator");
        for at in ["0.0.0.0:0", "192.0.2.1:80", "[::]:0"] {
            let watch = Watch { page: at.parse().ok(), ..Watch::default() };
            let refused = watch.open(&window, true).map(drop).unwrap_err();
            assert!(refused.code == Code::Usage && refused.advice.contains("ssh -L"), "{at}: {}", refused.message);
        }
        drop(window);
        let _ = std::fs::remove_dir_all(folder);
    }
}
