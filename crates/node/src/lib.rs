//! How a federation travels and stays: roles on QUIC, documents, plans, journals and ledgers, as a library.
//!
//! This is the front page of the project's documentation. Veilsum finds fuzzy clusters across organisations without pooling
//! their rows: every site answers a question with a masked vector, and only the total over the cohort becomes readable.
//!
//! # The crates
//!
//! Each crate answers one question, and the arrows between them go one way (`tests/layering.rs`). Read them in this order.
//!
//! | crate | its question | its reader |
//! |---|---|---|
//! | [`veilsum_charts`] | How is it shown? Pages and charts in one file, from text alone. | whoever reads a page |
//! | [`veilsum_proto`] | What may be summed? Integers, keys, masks, shares, openings, journal. | a cryptographer |
//! | [`veilsum_door`] | What did a site give away, and what may it? Account, verdict, and the sum under noise. | an auditor |
//! | [`veilsum_cluster`] | What do the numbers mean? Rows in, statistics out; totals in, centres out. | a statistician |
//! | [`veilsum_federation`] | What may be asked, answered and released? Pure: no file, socket or clock. | a data protection officer's engineer |
//! | `veilsum_node` (this one) | How does it travel and stay? | a systems engineer |
//! | `veilsum` | How do people use it? Commands, words on a screen, exit codes. | an operator |
//! | `veilsum_lab` | Does it do what the papers say? It is never shipped. | a scientist |
//! | `veilsum_audit` | Does it hold? Attacks on what a party received. It is never shipped. | a privacy researcher |
//! | `veilsum_testkit` | What do the tests of several crates share? | whoever writes a test |
//!
//! # How to read this crate
//!
//! 1. [`files`], [`table`], [`clock`], [`random`]: files, rows, the time, randomness.
//! 2. [`documents`]: key, invitation, roster, plan, policy and model as text files.
//! 3. [`egress`], [`carrier`], [`store`]: what may leave; QUIC links; journal, ledger and transcript.
//! 4. [`signing`], [`report`], [`recompute`]: what a run leaves behind.
//! 5. [`role`]: site, coordinator and intermediary as programs over links.
//! 6. [`checkup`]: what can be known of the way to the others before a run.
//! 7. [`by_hand`]: a role without I/O, for a program that carries its letters.
//! 8. [`loopback`], [`split`]: whole federations in one process.
//!
//! The modules of [`veilsum_federation`] are here under their own names.

pub mod by_hand;
pub mod carrier;
pub mod checkup;
pub mod clock;
pub mod documents;
pub mod egress;
pub mod files;
pub mod loopback;
pub mod random;
pub mod recompute;
pub mod report;
pub mod role;
pub mod signing;
pub mod split;
pub mod store;
pub mod table;

/// The account and the verdict.
pub use veilsum_door as door;
pub use veilsum_federation::{
    agreed, answerer, app_messages, columns, cost, description, dp, error, errors, facts, forecast, method_session,
    model, oracle, plan, question, refusal, replay, result, signed, traffic,
};
