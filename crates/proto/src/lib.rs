//! The trusted core of Veilsum: repeated secure sums of integer vectors over a stable cohort of sites.
//!
//! Bytes come in, bytes go out, secrets stay inside. There is no socket, clock, file, float or `async` here, and no
//! thread outlives a call: with the feature `parallel` many masks are expanded on all cores.
//! A [`site::Site`] masks one vector a round; an [`aggregator::Aggregator`] (the coordinator, or the intermediary that
//! counts rows) learns the sum over the cohort and nothing else. The normative text is `protocol/spec.md`; rule
//! identifiers such as `KEX-3` in this crate are its.
//!
//! Base: Bonawitz et al., CCS 2017 (double masking with t-of-n recovery); per-round seeds over many rounds after
//! Flamingo (Ma et al., S&P 2023).

pub mod aggregator;
pub mod codec;
mod commit;
mod error;
pub mod evidence;
pub mod fixed;
pub mod identity;
pub mod journal;
pub mod kem;
pub mod ledger;
pub mod limits;
mod mask;
pub mod message;
pub mod noise;
mod opening;
pub mod plan;
pub mod policy;
pub mod release;
pub mod roster;
mod shamir;
pub mod site;
#[cfg_attr(feature = "parallel", path = "spread_parallel.rs")]
#[cfg_attr(not(feature = "parallel"), path = "spread_serial.rs")]
mod spread;
pub mod suite;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod vectors_api;

pub use error::{Error, Rule};
