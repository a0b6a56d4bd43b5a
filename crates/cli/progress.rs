//! How a run shows itself on standard error: on a terminal one line that is written over; elsewhere a line now and then, and one at the
//! end. Who comes, goes and is waited for is told in lines of its own.

use std::time::{Duration, Instant};

use veilsum_node::{
    clock::seconds_since_1970,
    role::{
        progress::{Progress, ago, size},
        status::{Phase, Status},
    },
};

use crate::screen;

/// Cells of the bar.
const BAR: u32 = 30;
/// Where there is no terminal, a line is told after so long at the earliest.
const QUIET: Duration = Duration::from_secs(10);

/// What is shown of one run after the other.
pub(crate) struct Display {
    status: Status,
    began: Instant,
    told: Instant,
}

/// Whether an event is told in a line of its own. A site that comes late, or never, is named where it is waited for.
pub(crate) fn is_told(progress: &Progress) -> bool {
    use Progress::{Connected, Dialling, Lost, Ready, Waiting};
    matches!(progress, Ready { .. } | Lost { .. } | Waiting { .. } | Connected { .. } | Dialling { .. })
}

impl Display {
    pub(crate) fn new() -> Display {
        Display { status: Status::new("", ""), began: Instant::now(), told: Instant::now() }
    }

    /// Shows what an event means. Nothing can be done where it cannot be shown, and the run does not depend on it.
    pub(crate) fn show(&mut self, progress: &Progress) {
        if matches!(progress, Progress::Begins { .. }) {
            self.began = Instant::now();
        }
        self.status.fold(progress, seconds_since_1970());
        if is_told(progress) {
            crate::tell!("{progress}");
        }
        // What went over the links is the last event of a round.
        let settled = matches!(progress, Progress::Bytes { .. });
        let over = self.status.phase == Phase::Ended;
        let seconds = self.began.elapsed().as_secs();
        match screen::columns() {
            _ if self.status.round.is_none() && self.status.open.is_none() => {}
            _ if settled && over => {
                screen::clear();
                crate::tell!("{} ({})", parts(&self.status).join(", "), ago(seconds));
            }
            Some(columns) if !over => screen::draw(&line(&self.status, columns)),
            None if settled && self.told.elapsed() >= QUIET => {
                self.told = Instant::now();
                crate::tell!("{} ({})", parts(&self.status).join(", "), ago(seconds));
            }
            _ => {}
        }
    }
}

/// The number of the question that is open, or was answered last, and of how many at most.
fn question(status: &Status) -> (u32, u32) {
    // One that was asked again after an interruption counts twice.
    let last = status.round.as_ref().map_or((0, 0), |round| (round.number, round.of.max(round.number)));
    status.open.as_ref().map_or(last, |open| (open.number, last.1.max(open.number)))
}

/// What there is to say, in the order of its worth.
fn parts(status: &Status) -> Vec<String> {
    let (number, of) = question(status);
    let mut parts = vec![format!("question {number} of at most {of}")];
    parts.extend(
        status.open.as_ref().and_then(|open| open.answers).map(|(n, of)| format!("{n} of {of} sites answered")),
    );
    if let (None, Some(sites)) = (&status.open, status.round.as_ref().and_then(|round| round.sites)) {
        parts.push(format!("{sites} sites answered"));
    }
    parts.extend(status.shift().map(|shift| format!("centres moved by {shift:.1e}")));
    parts.extend(status.left.map(|left| format!("at most {} left", ago(left))));
    parts.push(format!("sent {}, received {}", size(status.bytes.0), size(status.bytes.1)));
    parts
}

/// The same in few characters.
fn short(status: &Status) -> Vec<String> {
    let (number, of) = question(status);
    let mut parts = vec![format!("{number}/{of}")];
    parts.extend(status.shift().map(|shift| format!("{shift:.0e}")));
    parts.extend(status.open.as_ref().and_then(|open| open.answers).map(|(n, of)| format!("{n}/{of}")));
    parts.extend(status.left.map(|left| format!("<{}", ago(left).replace(' ', ""))));
    parts.push(size(status.bytes.0 + status.bytes.1).replace(' ', ""));
    parts
}

/// One line that a terminal of so many columns does not break.
fn line(status: &Status, columns: usize) -> String {
    // Some terminals break a line that fills them.
    let room = columns.saturating_sub(1);
    let (number, of) = question(status);
    let long = parts(status).join(", ");
    let with_bar = format!("{} {long}", bar(number, of));
    if with_bar.len() <= room {
        return with_bar;
    }
    if long.len() <= room {
        return long;
    }
    let mut line = String::new();
    for part in short(status) {
        let gap = if line.is_empty() { "" } else { " " };
        if line.len() + gap.len() + part.len() <= room {
            line.push_str(gap);
            line.push_str(&part);
        }
    }
    line
}

/// A bar that is filled for `number` of `of` questions.
fn bar(number: u32, of: u32) -> String {
    let full = (u64::from(BAR) * u64::from(number.min(of)) / u64::from(of.max(1))) as usize;
    format!("[{}{}]", "#".repeat(full), " ".repeat(BAR as usize - full))
}

#[cfg(test)]
mod tests {
    use veilsum_node::method_session::Moved;

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

    /// In the middle of a run of 500 sites.
    fn status() -> Status {
        let mut status = Status::new("lead", "coordinator");
        let moved = |k, shift, rests| Moved { k, round: 7, shift, rests };
        for event in [
            Progress::Round { number: 11, of: 104, what: "Fuzzy", sites: 500 },
            Progress::Moved { clusters: vec![moved(2, 0.5, true), moved(3, 1.2e-3, false)] },
            Progress::Bytes { sent: 123_456_789, received: 4_321 },
            Progress::Round { number: 12, of: 104, what: "Fuzzy", sites: 500 },
            Progress::Asked { number: 13, of: 104, what: "Fuzzy", why: "the centres have not come to rest" },
            Progress::Answers { arrived: 321, of: 500 },
        ] {
            status.fold(&event, 5);
        }
        status
    }

    #[test]
    fn no_terminal_is_too_narrow_for_the_line() {
        let status = status();
        for columns in 0..200 {
            let line = line(&status, columns);
            assert!(line.len() < columns.max(1) && line.is_ascii() && !line.contains('\n'), "{columns}: {line:?}");
        }
        assert_eq!(line(&status, 20), "13/104 1e-3 321/500");
        assert!(
            line(&status, 200)
                .contains("question 13 of at most 104, 321 of 500 sites answered, centres moved by 1.2e-3")
        );
        assert_eq!(line(&Status::new("", ""), 20), "0/0 0B");
    }
}
