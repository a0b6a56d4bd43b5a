//! The papers' tables, run again: plain, pooled and masked, with seeds, repetitions and a verdict for every target.
//!
//! One file for each paper or table. A target is an assertion with a tolerance and the reason for it; a number without a
//! target is shown and not judged. Masked runs go through the whole protocol in virtual time. Everything synthetic is
//! generated; real data sets are read from a folder, and an experiment without its data is skipped, loudly.

mod bank;
mod data;
pub mod dp;
mod federated_fcm;
mod ffcf;
mod ffcm;
mod fkm;
mod g2;
mod harness;
mod legacy;
mod motivational;
pub mod noisy_defaults;
pub mod papers;
mod print;
mod report;
mod server;
mod settings;

use std::time::Instant;

pub use data::{DEFAULT_FOLDER, Folder};
pub use print::text;
pub use report::{Line, Report, Sample, Verdict};
pub use settings::{ExperimentError, Settings};

/// One experiment.
#[derive(Debug, Clone, Copy)]
pub struct Experiment {
    /// The name by which it is called.
    pub name: &'static str,
    /// What it reproduces.
    pub about: &'static str,
    run: fn(&Settings) -> Result<Report, ExperimentError>,
}

/// All experiments, in the order in which they are run.
pub const ALL: [Experiment; 8] = [
    Experiment { name: "ffcm", about: "FFCM, cases 1 to 3 (Stallmann & Wilbik 2022, FFCM)", run: ffcm::run },
    Experiment {
        name: "motivational",
        about: "five Gaussians (framework paper, Tables 1 and 2)",
        run: motivational::run,
    },
    Experiment { name: "g2", about: "the G2 sets (FFCM, case 4; framework paper, Tables 3 to 7)", run: g2::run },
    Experiment { name: "bank", about: "bank marketing by job (framework paper, Figures 5 to 7)", run: bank::run },
    Experiment { name: "federated-fcm", about: "Table 1 of Bárcena et al. 2021", run: federated_fcm::run },
    Experiment { name: "ffcf", about: "Table 1 of FFCF (Urío-Larrea)", run: ffcf::run },
    Experiment {
        name: "noisy-defaults",
        about: "default runs with noise against the best of 20 pooled starts",
        run: noisy_defaults::run,
    },
    Experiment { name: "fkm", about: "the grid of federated k-means (Garst & Reinders 2024)", run: fkm::run },
];

impl Experiment {
    /// Runs it.
    ///
    /// # Errors
    /// [`ExperimentError::Missing`] where its data are not there; another one where a run fails.
    pub fn run(&self, settings: &Settings) -> Result<Report, ExperimentError> {
        let begun = Instant::now();
        let mut report = (self.run)(settings)?;
        report.seconds = begun.elapsed().as_secs_f64();
        Ok(report)
    }
}

/// The experiment of this name.
pub fn find(name: &str) -> Option<Experiment> {
    ALL.into_iter().find(|experiment| experiment.name == name)
}
