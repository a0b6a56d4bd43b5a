//! The laboratory of Veilsum, which is not shipped: the source papers' tables run again, and the plain methods that ours are
//! compared with.

pub mod comparison;
pub mod experiments;
