//! The core as its users meet it: one file for each behaviour, one program for all of them. `cargo test -p veilsum-proto opn_7`
//! runs what tests a rule, and `cargo test -p veilsum-proto crashed_sites` a file.

mod aggregator_waits;
mod bad_vectors;
mod changed_frames;
mod changed_messages_to_a_site;
mod changed_messages_to_the_aggregator;
mod crashed_aggregator;
mod crashed_sites;
mod forward_secrecy;
mod inputs_not_kept;
mod known_attacks;
mod known_lies;
mod lies_about_keys;
mod lies_that_once_worked;
mod model;
mod random_federations;
mod recorded_traffic;
mod rules;
mod script;
mod signed_inputs;
mod sources;
mod vectors;
mod vectors_joining;
mod which_sites;
