//! The product: roles on QUIC, files, plans, the command line.

pub mod carrier;
pub mod clock;
pub mod documents;
pub mod evidence;
pub mod files;
pub mod local;
pub mod rehearsal;
pub mod report;
pub mod role;
pub mod simulate;
pub mod split;
pub mod store;
pub mod table;

pub use veilsum_federation::{
    admission, agreed, app_messages, cost, dp, error, forecast, method_session, model, plan, question, release, replay,
    result, traffic,
};
