//! The three roles as asynchronous programs over links: coordinator, intermediary, site.

pub mod aggregator_host;
pub mod client;
pub mod config;
pub mod dial;
pub mod door;
pub mod folder;
mod hand;
pub mod intermediary;
pub mod join;
mod keeper;
pub mod lobby;
mod lobby_frames;
mod lobby_line;
mod look;
mod notice;
pub mod progress;
pub mod reception;
mod run_state;
pub mod server;
pub mod service;
mod site_session;
#[cfg(feature = "testing")]
pub mod sown;
pub mod standby;
pub mod status;
pub mod stop;
mod validity_oracle;

#[cfg(not(feature = "testing"))]
use rand_core::UnwrapErr;

/// The operating system's randomness.
#[cfg(not(feature = "testing"))]
pub fn system_rng() -> UnwrapErr<getrandom::SysRng> {
    UnwrapErr(getrandom::SysRng)
}

/// The operating system's randomness, or what a test has sown on this thread.
#[cfg(feature = "testing")]
pub fn system_rng() -> sown::Sown {
    sown::Sown
}

/// A number that is drawn once.
pub fn drawn() -> [u8; 32] {
    let mut drawn = [0; 32];
    rand_core::Rng::fill_bytes(&mut system_rng(), &mut drawn);
    drawn
}
