//! The mathematics: known answers, properties, hostile questions. One file for each behaviour, one program for all of them.

mod bad_inputs;
mod bounds;
mod conversation;
mod describe;
mod exact_sums;
mod finish;
mod five_gaussians;
mod held;
mod hostile_questions;
mod kernel;
mod metrics;
mod models;
mod noisy;
mod papers;
mod properties;
mod single;
mod spread;
mod vectors_indices;
