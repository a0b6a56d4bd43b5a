//! When a person is told whom a party waits for, and what it knows of them: soon, and then rarely.

use std::{
    fmt,
    time::{Duration, Instant},
};

use super::progress::ago;
use crate::app_messages::clean;

/// Whoever is not there, or has not answered, for so long is named.
const FIRST: Duration = Duration::from_secs(5);
/// And named again after so long: somebody may wait for days.
const AGAIN: Duration = Duration::from_secs(60);

/// One wait, and when it is next spoken of.
pub(super) struct Notice {
    began: Instant,
    next: Instant,
}

impl Notice {
    /// A wait that begins now.
    pub(super) fn new() -> Notice {
        let began = Instant::now();
        Notice { began, next: began + FIRST }
    }

    /// When it is to be spoken of.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Seconds since the wait began, where it is time to speak of it.
    pub(super) fn due(&mut self) -> Option<u64> {
        let now = Instant::now();
        (now >= self.next).then(|| {
            self.next = now + AGAIN;
            (now - self.began).as_secs()
        })
    }
}

/// What was last heard of a party.
#[derive(Debug)]
pub(super) struct Heard {
    at: Instant,
    what: What,
    /// Why it is not there.
    why: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    Connected,
    Left,
    TurnedAway,
}

impl Heard {
    /// What is heard now, and why.
    pub(super) fn now(what: What, why: &str) -> Heard {
        Heard { at: Instant::now(), what, why: clean(why) }
    }

    /// Why it is not there, where its connection ended or it was not let in.
    pub(super) fn why(&self) -> Option<String> {
        match self.what {
            What::Connected => None,
            What::Left => Some(format!("its connection ended: {}", self.why)),
            What::TurnedAway => Some(format!("it was turned away: {}", self.why)),
        }
    }
}

impl fmt::Display for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (since, why) = (ago(self.at.elapsed().as_secs()), &self.why);
        match self.what {
            What::Connected => write!(f, "connected {since} ago"),
            What::Left => write!(f, "left {since} ago: {why}"),
            What::TurnedAway => write!(f, "turned away {since} ago: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_spoken_of_soon_and_then_once_a_minute() {
        let mut notice = Notice::new();
        assert_eq!(notice.due(), None);
        notice.next -= FIRST;
        assert!(notice.due().is_some());
        assert_eq!(notice.due(), None);
        assert!(notice.next() > Instant::now() + AGAIN - FIRST);
    }

    #[test]
    fn what_was_heard_is_told_in_one_line_with_its_age() {
        for (seconds, told) in [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7_200, "2 h"), (200_000, "2 days")] {
            assert_eq!(ago(seconds), told);
        }
        assert_eq!(Heard::now(What::Left, "no\nanswer").to_string(), "left 0 s ago: no answer");
        assert_eq!(Heard::now(What::TurnedAway, "another plan").to_string(), "turned away 0 s ago: another plan");
        assert_eq!(Heard::now(What::Connected, "").to_string(), "connected 0 s ago");
    }
}
