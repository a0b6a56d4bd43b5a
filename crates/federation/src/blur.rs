//! The blur of seeding cells, which a site draws from its identity's secret ([APP-7]).

use veilsum_cluster::Query;
use veilsum_proto::{
    codec,
    identity::Identity,
    suite::{self, Hash},
};

pub use veilsum_cluster::random::Stream;

/// Blur that repeats: for federations on one machine, whose rows are no secret. A real site draws its own ([`of_site`]).
#[derive(Debug, Clone, Copy)]
pub struct Repeatable {
    /// The seed, known to everybody.
    pub seed: u64,
    /// The site's place.
    pub site: usize,
}

impl Repeatable {
    /// The noise of this site for the queries of one question.
    pub fn stream(&self, queries: &[Query]) -> Stream {
        let [seed, site] = [self.seed, self.site as u64].map(u64::to_le_bytes);
        Stream::from_key(suite::hash("blur", &[&seed, &site, &codec::encode(&queries)]).0)
    }
}

/// [APP-7]: the noise for the question with this digest ([`question_digest`](crate::release::question_digest)), on the rows with this
/// one. Whoever puts it again, in whatever plan, gets the same: fresh noise each time would average out, and the ledger, which knows
/// a question by the same digest, takes the answer for one that was given before. The seed of the identity makes it this site's secret.
pub fn of_site(identity: &Identity, question: &Hash, rows: &Hash) -> Stream {
    Stream::from_key(suite::hash("blur", &[&*identity.digest_secret(), &question.0, &rows.0]).0)
}
