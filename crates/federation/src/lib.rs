//! What may be asked, answered and released in a federation: the floor on which the protocol's integers and the mathematics'
//! `f64` meet. Nothing here opens a file or a socket, or reads a clock.
//!
//! Read it in this order:
//!
//! 1. [`error`]: what went wrong, whose fault it is, what to do next;
//! 2. [`question`], [`plan`], [`app_messages`]: a question with the form of its answer, what a federation computes, and the
//!    application's own messages;
//! 3. [`dp`] and [`agreed`]: what noise promises, and the proof from the documents alone that no sum overflows;
//! 4. [`admission`], [`replay`], [`release`]: the one door through which a site's answer leaves: does the question belong to the plan
//!    and come in its turn, does the site's own copy of the method ask it, may the answer leave;
//! 5. [`forecast`], [`cost`]: what a whole plan gives away, what it costs in bytes;
//! 6. [`method_session`], [`oracle`] and [`model`]: a method's questions and totals in turn, who judges them, and what a run ends
//!    with; [`errors`]: how far noise moves it; [`blur`]: what a site adds to seeding cells.

pub mod admission;
pub mod agreed;
pub mod app_messages;
pub mod blur;
pub mod cost;
pub mod dp;
pub mod error;
pub mod errors;
pub mod forecast;
pub mod method_session;
pub mod model;
pub mod oracle;
pub mod plan;
pub mod question;
pub mod release;
pub mod replay;
pub mod result;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod traffic;
