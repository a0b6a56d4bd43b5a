//! The blur of seeding cells, which a site draws from its identity's secret ([APP-7]).

use veilsum_cluster::Query;
use veilsum_proto::{
    codec,
    identity::Identity,
    suite::{self, Hash},
};

pub use veilsum_cluster::random::Stream;

use crate::question::Question;

/// Whether the answer to this question is blurred.
pub fn is_asked(question: &Question) -> bool {
    matches!(question, Question::Cluster(batch) if batch.queries.iter().any(Query::is_blurred))
}

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

/// [APP-7]: the noise for one question of the plan `terms` on the rows with this digest. Whoever puts it again gets the same: fresh noise each
/// time would average out. The seed of the identity makes it this site's secret.
pub fn of_site(identity: &Identity, terms: &Hash, question: &[u8], rows: &Hash) -> Stream {
    Stream::from_key(suite::hash("blur", &[&*identity.digest_secret(), &terms.0, question, &rows.0]).0)
}
