//! Randomness that a test has sown, so that a party does the same twice. It is in no product: the feature `testing` alone has it.

use std::{cell::RefCell, convert::Infallible};

use rand_core::{CryptoRng, TryCryptoRng, TryRng, UnwrapErr};

thread_local! {
    static SOWN: RefCell<Option<Box<dyn CryptoRng>>> = const { RefCell::new(None) };
}

/// From now on, parties whose runtime is this thread draw from `rng`; from the operating system again where it is none.
pub fn sow(rng: Option<Box<dyn CryptoRng>>) {
    SOWN.set(rng);
}

/// What was sown on this thread, or else the operating system's randomness.
pub struct Sown;

impl Sown {
    fn with<T>(draw: impl FnOnce(&mut dyn CryptoRng) -> T) -> T {
        SOWN.with_borrow_mut(|sown| match sown {
            Some(rng) => draw(&mut **rng),
            None => draw(&mut UnwrapErr(getrandom::SysRng)),
        })
    }
}

impl TryRng for Sown {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(Self::with(|rng| rng.next_u32()))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(Self::with(|rng| rng.next_u64()))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        Self::with(|rng| rng.fill_bytes(bytes));
        Ok(())
    }
}

impl TryCryptoRng for Sown {}
