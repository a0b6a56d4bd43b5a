//! How a run shows itself: a bar on a terminal, a few quiet lines elsewhere.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

use veilsum_node::{app_messages::clean, role::server::Progress};

/// A reporter for [`Progress`] on standard error; silent where `quiet`.
pub(crate) fn reporter(quiet: bool) -> Box<dyn Fn(Progress) + Send + Sync> {
    if quiet {
        return Box::new(|_| {});
    }
    if !std::io::stderr().is_terminal() {
        return Box::new(|p| match p {
            Progress::Ready { sites, threshold } => eprintln!("keys exchanged: {sites} sites, threshold {threshold}"),
            Progress::Lost { site, why } => eprintln!("left the run: {site}: {}", clean(&why)),
            Progress::Waiting { sites, seconds } => eprintln!("{}", waiting(&sites, seconds)),
            Progress::Round { .. } | Progress::Ended => {}
        });
    }
    let bar = ProgressBar::new(1);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} ({elapsed})") {
        bar.set_style(style);
    }
    Box::new(move |p| match p {
        Progress::Ready { sites, threshold } => {
            bar.println(format!("keys exchanged: {sites} sites, threshold {threshold}"))
        }
        Progress::Lost { site, why } => bar.println(format!("left the run: {site}: {}", clean(&why))),
        Progress::Waiting { sites, seconds } => bar.println(waiting(&sites, seconds)),
        Progress::Round { number, of, what, sites } => {
            bar.set_length(u64::from(of));
            bar.set_position(u64::from(number));
            bar.set_message(format!("{what} over {sites} sites"));
        }
        Progress::Ended => bar.finish_and_clear(),
    })
}

fn waiting(sites: &[String], seconds: u64) -> String {
    format!("waiting for {} ({seconds} s)", sites.join(", "))
}
