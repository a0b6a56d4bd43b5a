//! The mathematics of Veilsum: rows in, additive statistics out; totals in, centres out.
//!
//! Everything here is pure `f64` arithmetic. There is no file, socket, clock or thread of control, and nothing in this
//! crate knows that sums are masked on their way. The pieces meet like this:
//!
//! * a site turns its [`Rows`] into working units with the public [`Domain`] and packs them once ([`Prepared`]);
//! * a [`Method`] on the coordinator's side asks a [`Query`];
//! * every site computes [`answer`], a vector with a fixed layout that may simply be added up over the sites;
//! * the sum goes back to the method as [`Totals`], until it is done and returns an [`Outcome`].
//!
//! A method cannot tell whether the totals came from pooled rows, from a plain sum or from a masked one.
//!
//! # How to read this crate
//!
//! 1. `data`, `scale`, `transform`, `packed`: rows, the public box, standardisation, the kernel's layout.
//! 2. [`distance`], [`mod@reference`], [`kernel`]: memberships of one row, the plain sums, the same sums fast.
//! 3. [`query`]: every question and its answer, one file for each family.
//! 4. [`method`], `start`, [`sampling`]: the state machines that ask, and what a whole run consists of.
//! 5. [`validity`], [`offline`], [`finish`]: what is computed from totals alone.
//! 6. [`privacy`]: differential privacy of a run, and the rank of smooth questions.
//! 7. [`pooled`], [`metrics`], [`synthetic`], [`assign`], [`random`]: driving a method, judging and using its result, seeded examples.
//!
//! ```
//! use veilsum_cluster::{Domain, Fcm, FcmParams, OutOfBox, Prepared, Scaling, Start, pooled, synthetic};
//!
//! let example = synthetic::five_gaussians(synthetic::DEFAULT_SEED);
//! let domain = synthetic::five_gaussians_domain();
//! let sites = example
//!     .sites
//!     .iter()
//!     .map(|site| Prepared::new(&site.rows, &domain, OutOfBox::Refuse))
//!     .collect::<Result<Vec<_>, _>>()?;
//! let start = Start::Uniform { seed: synthetic::DEFAULT_START_SEED }.centres(&domain, 5)?;
//! let mut fcm = Fcm::new(FcmParams { k: 5, m: 2.0, epsilon: 0.005, max_rounds: 100, start })?;
//! let outcome = pooled::plain_federated(&mut fcm, &sites)?;
//! assert!(outcome.converged);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod algorithm;
pub mod assign;
mod batch;
mod data;
pub mod distance;
mod error;
pub mod finish;
pub mod kernel;
pub mod method;
pub mod metrics;
pub mod offline;
mod packed;
pub mod pooled;
pub mod privacy;
pub mod query;
pub mod random;
pub mod reference;
pub mod sampling;
mod scale;
mod start;
pub mod synthetic;
mod totals_check;
mod transform;
pub mod validity;

pub use algorithm::{Algorithm, Round};
pub use batch::{Batch, MAX_BATCH, Statistic, Totals, answer, answer_with_noise};
pub use data::{Centres, Rows};
pub use error::{AnswerError, DataError, DriveError, MethodError, MetricError, QueryError};
pub use method::{Clusters, Fcm, FcmParams, Method, Outcome, Recipe, Run, Step};
pub use packed::{Packed, Prepared};
pub use query::{Block, Per, Query};
pub use scale::{Domain, OutOfBox, Scaling};
pub use start::Start;
pub use transform::Transform;
pub use validity::Indices;
