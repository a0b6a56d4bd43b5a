//! May this answer leave? This folder computes what the answer would give away ([`cost()`]) and what was given away before
//! ([`Account`], [`Book`]), recognises the rows of a ledger ([`Origin`]), and decides: on a whole plan ([`judge()`]), and on every
//! answer ([`decide()`]). No value and no number of rows enters either.

mod account;
mod book;
mod cost;
mod decide;
mod judge;
mod origin;

pub use account::{Account, Data, Known, Membership};
pub use book::{Book, Due, Left, Unpromised};
pub use cost::{check_price, cohort_digest, cost, facts};
pub use decide::{Answering, Offer, decide, is_drawn, question_digest};
pub use judge::{Yes, judge, may_agree};
pub use origin::{Origin, Together};
/// What a site's rows are before they are an [`Origin`], and once they are ready to answer.
pub use veilsum_cluster::{Domain, Error as ClusterError, Prepared, Rows, Scaling};
/// What a digest of rows is made with.
pub use veilsum_proto::{policy::rho_text, suite::Hash};
