//! The trusted core of Veilsum: repeated secure sums of integer vectors over a stable cohort of sites.
//!
//! Bytes come in, bytes go out, secrets stay inside. There is no socket, clock, file, float or `async` here, and no
//! thread outlives a call: with the feature `parallel` a call uses all cores that no other call works on, where that pays.
//! The normative text is `protocol/spec.md`; rule identifiers such as `KEX-3` in this crate are its.
//!
//! Base: Bonawitz et al., CCS 2017 (double masking with t-of-n recovery); per-round seeds over many rounds after
//! Flamingo (Ma et al., S&P 2023).
//!
//! # How to read this crate
//!
//! 1. [`limits`], `rule`, `error`, [`codec`], [`suite`], `spread`: every bound with its reason, faults with their rule, bytes, the
//!    ciphersuite, work that all cores share.
//! 2. [`identity`], [`roster`], [`joining`], [`standing`], [`plan`]: who takes part, how that changes and how they came, what a site states, and under which terms.
//! 3. [`fixed`], [`noise`]: integers in place of numbers, and exact noise.
//! 4. [`kem`], `shamir`, `mask`, `commit`: the parts of a deck and a round.
//! 5. [`message`]: what is on the wire.
//! 6. [`policy`]: a site's own floor.
//! 7. [`journal`], `opening`, [`recompute`]: what survives a crash, and how a total is recomputed.
//! 8. [`site`], [`aggregator`]: the two state machines.
//! 9. `vectors_api` (with the feature `testing`): the steps that test vectors need. A whole federation in virtual time is in
//!    `crates/testkit`.
//!
//! # In short
//!
#![doc = include_str!("../README.md")]

pub mod aggregator;
pub mod codec;
mod commit;
mod error;
pub mod fixed;
pub mod identity;
pub mod joining;
pub mod journal;
pub mod kem;
pub mod limits;
mod mask;
pub mod message;
pub mod noise;
mod opening;
pub mod plan;
pub mod policy;
pub mod recompute;
pub mod roster;
mod rule;
mod shamir;
pub mod site;
mod spread;
pub mod standing;
pub mod suite;
#[cfg(test)]
extern crate self as veilsum_proto;
#[cfg(test)]
#[path = "../../testkit/src/kit.rs"]
pub mod testing;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
#[path = "../tests/vectors_api.rs"]
pub mod vectors_api;

pub use error::Error;
pub use rule::{NoSuchRule, Rule};
