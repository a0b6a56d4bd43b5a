//! The three roles as asynchronous programs over links: coordinator, intermediary, site.

pub mod client;
pub mod hub;
pub mod intermediary;
pub mod line;
pub mod server;
mod talk;

use std::sync::{Arc, Mutex};

use rand_core::UnwrapErr;
use veilsum_proto::roster::PartyId;

/// Every frame that a party received, in order: the view that an auditor attacks.
pub type View = Arc<Mutex<Vec<(PartyId, Vec<u8>)>>>;

/// The operating system's randomness.
pub fn system_rng() -> UnwrapErr<getrandom::SysRng> {
    UnwrapErr(getrandom::SysRng)
}
