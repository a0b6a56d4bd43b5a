//! What is read and not run: arrows between crates, links, rules, references, advice.

mod advice;
mod audit_path;
mod layering;
mod links;
mod reading_order;
mod sizes;
mod spec_coverage;
mod threat_model;

/// Where the workspace's own sources are.
const SOURCES: [&str; 8] = [
    "crates/charts/src",
    "crates/proto/src",
    "crates/node/src",
    "crates/federation/src",
    "crates/cli",
    "crates/cluster/src",
    "crates/lab/src",
    "crates/audit/src",
];
