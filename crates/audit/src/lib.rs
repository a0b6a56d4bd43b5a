//! The adversary: attacks that run on what a party of a federation really received.
//!
//! Every attack runs twice. The control runs on what federated clustering *without* masks would have sent in the same
//! round; it must succeed, or the attack proves nothing. The protected run gets the frames that were recorded from a
//! real run over QUIC; it must stay under its bound. One file for each attack, one for what a party saw ([`view`]), one
//! for the table that runs them all ([`table`]).
//!
//! These attacks do not show that no better attack exists. A failed attack is evidence and no proof; the arguments are
//! in the specification.
//!
//! # How to read this crate
//!
//! 1. [`scene`], [`view`], [`finding`], [`table`], [`page`]: made-up federations, what a party saw, what an attack found, and all of
//!    them side by side.
//! 2. [`liar`], [`lying_hub`], [`invented`], [`textbook`]: coordinators that lie, and the protocol as printed, without its check.
//! 3. [`least_squares`], [`nnls`], [`qr`], [`svd`], [`releases`]: solvers.
//! 4. The attacks, one file each: [`one_round_records`] is the simplest.
//! 5. [`mine`] and [`span`]: the same against one's own rows and over all that was ever released.

pub mod chosen_total;
pub mod collusion;
pub mod count_from_memberships;
pub mod differencing;
pub mod dp_utility;
pub mod dropout_lie;
pub mod finding;
pub mod framed_coordinator;
pub mod histogram;
pub mod inconsistency;
pub mod invented;
pub mod least_squares;
pub mod liar;
pub mod lying_hub;
pub mod mine;
pub mod nnls;
pub mod one_round_records;
pub mod outlier;
pub mod page;
pub mod pinhole;
pub mod poison;
pub mod qr;
pub mod releases;
pub mod renamed_data;
pub mod scene;
pub mod span;
pub mod svd;
pub mod swapped_roster;
pub mod sweep_records;
pub mod table;
pub mod textbook;
pub mod unsigned_input;
pub mod view;
