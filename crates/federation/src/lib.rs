//! What may be asked, answered and released in a federation: the floor on which the protocol's integers and the mathematics'
//! `f64` meet. Nothing here opens a file or a socket, or reads a clock.
//!
//! Read it in this order:
//!
//! 1. [`error`], [`refusal`]: what went wrong, whose fault it is, what to do next; what the door's codes say;
//! 2. [`answerer`], [`question`], [`columns`], [`plan`], [`app_messages`]: who knows a site's rows, a question with the form of its answer, what a federation
//!    computes on which columns, and the application's own messages;
//! 3. [`dp`] and [`agreed`]: what noise promises, and the proof from the documents alone that no sum overflows;
//! 4. [`near`], [`method_session`], [`oracle`]: what is the same but for last digits, a method's questions and totals in turn, and who
//!    judges them;
//! 5. [`model`], [`description`], [`errors`], [`traffic`], [`signed`], [`result`]: what a site keeps, what is said of columns, how far noise
//!    moves them, what was sent, what parties sign of a result, and what a run comes to; [`spoken`]: the words in which people compare
//!    documents;
//! 6. [`facts`], [`replay`]: what a site's door is told of a plan and its questions, and whether the site's own copy of the method asks one;
//! 7. [`cost`], [`forecast`]: what a whole plan costs in bytes, and what it gives away;
//!
//! # In short
//!
#![doc = include_str!("../README.md")]

pub mod agreed;
pub mod answerer;
pub mod app_messages;
pub mod columns;
pub mod cost;
pub mod description;
pub mod dp;
pub mod error;
pub mod errors;
pub mod facts;
pub mod forecast;
pub mod method_session;
pub mod model;
pub mod near;
pub mod oracle;
pub mod plan;
pub mod question;
pub mod refusal;
pub mod replay;
pub mod result;
pub mod signed;
pub mod spoken;
#[cfg(test)]
extern crate self as veilsum_federation;
#[cfg(test)]
mod tests;
pub mod traffic;
