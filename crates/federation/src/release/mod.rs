//! May this answer leave? This folder computes what the answer would give away ([`cost()`]) and what was given away before
//! ([`Account`], [`Book`]), and decides: on a whole plan ([`judge()`]), and on every
//! answer ([`decide()`]). No value and no number of rows enters either.

mod account;
mod book;
mod cost;
mod decide;
mod judge;

pub use account::{Account, Data};
pub use book::{Book, Left, Unpromised};
pub use cost::{check_price, cohort_digest, cost, facts};
pub use decide::{Answering, Offer, decide, is_drawn, question_digest};
pub use judge::{Needs, Verdict, Yes, judge, judge_table, needs, set_of};
/// What a site's rows are once they are read, and once they are ready to answer.
pub use veilsum_cluster::{Domain, Error as ClusterError, Prepared, Rows, Scaling};
/// What a digest of rows is made with.
pub use veilsum_proto::{policy::rho_text, suite::Hash};
