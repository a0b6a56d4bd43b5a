//! Randomness of the operating system, which tests can sow.

#[cfg(feature = "testing")]
#[path = "../../testkit/src/sown.rs"]
pub mod sown;

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
