//! The mathematics of Veilsum: rows in, additive statistics out; totals in, centres out.
//!
//! Everything here is pure `f64` arithmetic. There is no file, socket, clock or thread of control, and nothing in this
//! crate knows that sums are masked on their way. The pieces meet like this:
//!
//! * a site turns its [`Rows`] into working units with the public [`Domain`] and packs them once ([`Prepared`]);
//! * a [`Run`] on the coordinator's side asks a [`Query`];
//! * every site computes [`answer`], a vector with a fixed layout that may simply be added up over the sites;
//! * the sum goes back to the run as [`Totals`], until it is done and returns an [`Outcome`].
//!
//! A method cannot tell whether the totals came from pooled rows, from a plain sum or from a masked one.
//!
//! # How to read this crate
//!
//! No module uses one that comes later in this list.
//!
//! 1. `error`, [`random`], `data`, `scale`, `transform`, `packed`, `start`: rows, the public box,
//!    standardisation, the kernel's layout, first centres.
//! 2. [`distance`], [`assign`], [`kernel`], `prepared`: memberships of one row, the sums fast, a site's rows and what is
//!    kept of them between questions.
//! 3. `totals_check`, [`validity`], [`profile`], [`metrics`], [`offline`], [`synthetic`]: what is computed from totals alone, how
//!    results are compared, seeded examples.
//! 4. [`query`], `batch`: every question and its answer, one file for each family; several questions
//!    at once.
//! 5. [`privacy`], [`sampling`]: differential privacy of a run, who is drawn.
//! 6. [`algorithm`]: the algorithms that a plan can name, one file each, in one registry.
//! 7. [`method`]: what a whole run consists of, which questions belong to it, and the state machine that asks them.
//! 8. [`pooled`], [`evenly`], [`warnings`]: driving a method on rows at hand, a yardstick from rows without groups, and what
//!    to doubt about a result.
//!
//! # In short
//!
#![doc = include_str!("../README.md")]

pub mod algorithm;
pub mod assign;
mod batch;
mod data;
pub mod distance;
mod error;
pub mod evenly;
pub mod kernel;
pub mod method;
pub mod metrics;
pub mod offline;
mod packed;
pub mod pooled;
mod prepared;
pub mod privacy;
pub mod profile;
pub mod query;
pub mod random;
pub mod sampling;
mod scale;
pub mod synthetic;
mod totals_check;
mod transform;
pub mod validity;
pub mod warnings;

pub use algorithm::{Algorithm, Round};
pub use batch::{AskedOfRows, Batch, MAX_BATCH, Statistic, Totals, answer, asked_of_rows, words};
pub use data::{Centres, Rows};
pub use error::Error;
pub(crate) use error::refuse;
pub use kernel::Step as SumStep;
pub use method::{Clusters, Outcome, Recipe, Run, Step};
pub use packed::Packed;
pub use prepared::Prepared;
pub use query::{Block, Per, Query};
pub use scale::{Domain, OutOfBox, Scaling};
pub use transform::Transform;
pub use validity::Indices;
