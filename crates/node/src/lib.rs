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
//! | [`veilsum_proto`] | What may be summed? Integers, keys, masks, shares, openings, journal. | a cryptographer |
//! | [`veilsum_cluster`] | What do the numbers mean? Rows in, statistics out; totals in, centres out. | a statistician |
//! | `veilsum_node` (this one) | How does it travel and stay? | a systems engineer |
//! | `veilsum` | How do people use it? Commands, words on a screen, exit codes. | an operator |
//! | `veilsum_lab` | Does it do what the papers say? It is never shipped. | a scientist |
//! | `veilsum_audit` | Does it hold? Attacks on what a party received. It is never shipped. | a privacy researcher |
//! | `veilsum_testkit` | What do the tests of several crates share? | whoever writes a test |
//!
//! # How to read this crate
//!
//! 1. [`error`], [`files`], [`table`], [`traffic`]: failures with a next step, files, rows, counters.
//! 2. [`work`], [`documents`]: what a plan asks; key, card, roster, plan and policy as text files.
//! 3. [`round`], [`conversation`]: the one place where clustering and protocol meet; the method as questions and totals.
//! 4. [`control`], [`carrier`], [`store`]: messages beside the protocol's, QUIC links, journal and ledger.
//! 5. [`role`]: site, coordinator and intermediary as programs over links.
//! 6. [`cost`], [`privacy`], [`forecast`], [`rehearsal`]: what a plan means before anything leaves.
//! 7. [`model`], [`report`], [`evidence`]: what a run leaves behind.
//! 8. [`local`], [`simulate`], [`split`], [`clock`]: whole federations in one process.

pub mod carrier;
pub mod clock;
pub mod control;
pub mod conversation;
pub mod cost;
pub mod documents;
pub mod error;
pub mod evidence;
pub mod files;
pub mod forecast;
pub mod local;
pub mod model;
pub mod privacy;
pub mod rehearsal;
pub mod report;
pub mod role;
pub mod round;
pub mod simulate;
pub mod split;
pub mod store;
pub mod table;
pub mod traffic;
pub mod work;
