//! What the tests of all crates share. No product depends on it; a helper that fails is a test that fails, so helpers panic.

pub mod cast;
pub mod data;
pub mod memory;
