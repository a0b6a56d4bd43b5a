//! The adversary: attacks that run on what a party of a federation really received.
//!
//! Every attack runs twice. The control runs without the protection: on what federated clustering *without* masks would have sent,
//! or on exact totals. It must succeed, or the attack proves nothing. The protected run gets the frames that were recorded from a
//! real run over QUIC, or totals with the noise that real sites add, and must stay under its bound. One file for each attack, one for what a party saw ([`view`]), one
//! for the table that runs them all ([`table`]).
//!
//! These attacks do not show that no better attack exists. A failed attack is evidence and no proof; the arguments are
//! in the specification.
//!
//! # How to read this crate
//!
//! 1. [`scene`], [`view`], [`finding`], [`table`]: made-up federations, what a party saw, what an attack found, and all of
//!    them side by side.
//! 2. [`lying_hub`], [`textbook`]: coordinators that lie, and the protocol as printed, without its check.
//! 3. [`account`]: totals exactly and with noise.
//! 4. [`least_squares`], [`nnls`], [`releases`], [`lattice`]: solvers.
//! 5. [`own`]: an audit of one's own plan on one's own rows.
//! 6. The attacks, one file each.

pub mod account;
pub mod canary;
pub mod collusion;
pub mod differencing;
pub mod dropout_lie;
pub mod finding;
pub mod inconsistency;
pub mod lattice;
pub mod least_squares;
pub mod lying_hub;
pub mod nnls;
pub mod own;
pub mod pinhole;
pub mod poison;
pub mod releases;
pub mod scene;
pub mod swapped_roster;
pub mod sweep_records;
pub mod table;
pub mod textbook;
pub mod view;
