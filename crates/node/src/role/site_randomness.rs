//! The blur of seeding cells, which a site draws from its identity's secret.

use veilsum_cluster::{Query, random::Stream};
use veilsum_proto::suite;

use super::config::ClientConfig;
use crate::{question::Question, release::digest_of_rows};

/// Whether its answer is blurred.
pub(super) fn asks_blur(question: &Question) -> bool {
    let blurred = |query: &Query| matches!(query, Query::Cells(cells) if cells.blur.is_some());
    matches!(question, Question::Cluster(batch) if batch.queries.iter().any(blurred))
}

/// [APP-7]: the noise for one question on these rows. Whoever puts it again gets the same: fresh noise each time would average out.
pub(super) fn blur_of(config: &ClientConfig, query: &[u8]) -> Stream {
    let rows = digest_of_rows(&config.rows);
    // The seed of the identity makes it this site's secret.
    Stream::from_key(
        suite::hash("blur", &[&*config.party.identity.seed(), &config.party.federation.terms.hash().0, query, &rows.0])
            .0,
    )
}
