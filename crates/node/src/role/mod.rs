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
pub mod standby;
pub mod status;
pub mod stop;
mod validity_oracle;
