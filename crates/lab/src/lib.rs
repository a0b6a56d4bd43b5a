//! The laboratory of Veilsum, which is not shipped: the source papers' tables run again, and the plain methods that ours are
//! compared with.
//!
//! Read [`comparison`] first, the plain forms of the papers' methods, and then [`experiments`], which runs them beside ours.

pub mod comparison;
pub mod experiments;
pub mod gap;
pub mod spread;
pub mod synthetic;
