//! How long an aggregator waits, on its caller's clock.

/// Milliseconds on the caller's clock; only differences mean anything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Millis(pub u64);

impl Millis {
    pub(crate) fn after(self, ms: u64) -> Millis {
        Millis(self.0.saturating_add(ms))
    }
}

/// How long an aggregator waits, in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// For the sites of the roster to appear.
    pub join: u64,
    /// For a site's answer to one message.
    pub phase: u64,
    /// For a site whose connection broke to come back.
    pub grace: u64,
    /// Between two sendings of a message that has no answer yet.
    pub resend: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Timing { join: 120_000, phase: 60_000, grace: 5_000, resend: 10_000 }
    }
}
