//! The product: roles on QUIC, files, plans, the command line.

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
