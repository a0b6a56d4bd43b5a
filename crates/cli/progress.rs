//! How a run shows itself: one line that is written over on a terminal, a few quiet lines elsewhere.

use std::{
    io::{self, IsTerminal, Write},
    sync::Arc,
    time::Instant,
};

use veilsum_node::{
    app_messages::clean,
    role::config::{Progress, Watcher},
};

/// Cells of the bar.
const BAR: u32 = 30;
/// Back to the beginning of the line, and clear it.
const CLEAR: &str = "\r\x1b[K";

/// A reporter for [`Progress`] on standard error; silent where `quiet`.
pub(crate) fn reporter(quiet: bool) -> Watcher {
    if quiet {
        return Arc::new(|_| {});
    }
    let begin = if io::stderr().is_terminal() { CLEAR } else { "" };
    let started = Instant::now();
    Arc::new(move |p| {
        let text = match p {
            Progress::Ready { sites, threshold } => {
                format!("keys exchanged: {sites} sites, threshold {threshold}\n")
            }
            Progress::Lost { site, why } => format!("left the run: {site}: {}\n", clean(&why)),
            Progress::Waiting { parties, seconds } => format!("waiting for {} ({seconds} s)\n", parties.join(", ")),
            Progress::Round { number, of, what, sites } if !begin.is_empty() => {
                let seconds = started.elapsed().as_secs();
                format!("{} {number}/{of} {what} over {sites} sites ({seconds} s)", bar(number, of))
            }
            Progress::Connected { to, over } => format!("connected to {to} over {over}\n"),
            Progress::Dialling { to, why } => {
                format!("lost the connection to {to} ({}); dialling again\n", clean(&why))
            }
            Progress::Answered { number } if !begin.is_empty() => {
                format!("answered {number} questions ({} s)", started.elapsed().as_secs())
            }
            Progress::Ended if !begin.is_empty() => String::new(),
            Progress::Round { .. } | Progress::Answered { .. } | Progress::Ended => return,
            // For `veilsum status`; whoever is not there is named where it is waited for.
            Progress::Came { .. } | Progress::Left { .. } | Progress::TurnedAway { .. } => return,
        };
        // Nothing can be done where progress cannot be shown, and the run does not depend on it.
        let _ = io::stderr().write_all(format!("{begin}{text}").as_bytes());
    })
}

/// A bar that is filled for `number` of `of` questions.
fn bar(number: u32, of: u32) -> String {
    let full = (u64::from(BAR) * u64::from(number.min(of)) / u64::from(of.max(1))) as usize;
    format!("[{}{}]", "#".repeat(full), " ".repeat(BAR as usize - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills_from_left_to_right_and_no_further() {
        for (number, of, full) in
            [(0, 31, 0), (1, 2, 15), (31, 31, 30), (40, 31, 30), (0, 0, 0), (u32::MAX, u32::MAX, 30)]
        {
            let bar = bar(number, of);
            assert_eq!((bar.len(), bar.matches('#').count()), (BAR as usize + 2, full), "{number} of {of}");
        }
    }
}
