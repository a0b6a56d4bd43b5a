//! What is read and not run: arrows between crates, links, rules, references, advice.

mod advice;
mod audit_path;
mod layering;
mod links;
mod sizes;
mod source;
mod spec_coverage;
mod threat_model;
