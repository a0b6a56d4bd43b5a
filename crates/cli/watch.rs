//! Who is told how a party's run goes: the screen, the log, and a file of events. `veilsum status` shows the same, as text or metrics,
//! from a process of its own.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use clap::Args;
use veilsum_node::{
    error::Failure,
    role::progress::{Progress, Watcher},
};

use crate::{
    events::Events,
    progress::{Display, is_told},
};

/// What shows how a run goes, beside the screen.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct Watch {
    /// Add what happens to a file, one JSON document a line (mode 0600)
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub events: Option<PathBuf>,
}

impl Watch {
    /// Who is told how a run goes: the file of events, the log, and the screen unless `quiet`.
    ///
    /// # Errors
    /// A [`Failure`] if the file cannot be opened.
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
}
