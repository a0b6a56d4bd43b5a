//! What a site draws for an answer, from its identity's secret: blur of seeding cells and shares of noise.

use veilsum_cluster::{Query, random::Stream};
use veilsum_proto::{noise, policy::Asked, roster::PartyId, suite};

use super::client::ClientConfig;
use crate::{round::Question, store::ledger::digest_of_rows};

/// Whether its answer is blurred.
pub(super) fn asks_blur(question: &Question) -> bool {
    let blurred = |query: &Query| matches!(query, Query::Cells(cells) if cells.blur.is_some());
    matches!(question, Question::Cluster(batch) if batch.queries.iter().any(blurred))
}

/// [APP-7]: the noise for one question on these rows. Whoever puts it again gets the same: fresh noise each time would average out.
pub(super) fn blur_of(config: &ClientConfig, query: &[u8]) -> Stream {
    let rows = digest_of_rows(&config.rows);
    // The seed of the identity makes it this site's secret.
    Stream::from_key(suite::hash("blur", &[&*config.identity.seed(), &config.terms.hash().0, query, &rows.0]).0)
}

/// [NOI-2]: what the noise of one answer is drawn with.
pub(super) fn noise_key(config: &ClientConfig, aggregator: PartyId, asked: &Asked) -> noise::Key {
    let (plan, rows) = (config.terms.hash(), digest_of_rows(&config.rows));
    let purpose = noise::Purpose { plan: &plan, aggregator, context: &asked.context, rows: &rows };
    noise::Key::new(&config.identity.seed(), &purpose)
}
