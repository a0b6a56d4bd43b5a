//! The link between a site's two conversations: what one aggregator did, and the other asks about ([APP-2], [APP-5]).

use std::time::Duration;

use tokio::{sync::watch, time::timeout};
use veilsum_proto::suite::Hash;

use crate::question::{self, Batch};

/// How long a site waits for the coordinator to have done what the intermediary asks about.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// One end of the link.
pub(super) enum Hand {
    /// Towards the coordinator.
    Lays(watch::Sender<Laid>),
    /// Towards the intermediary; with how long it waits, [`PATIENCE`].
    Takes(watch::Receiver<Laid>, Duration),
}

/// What the conversation with the coordinator lays down for the one with the intermediary.
#[derive(Clone, Default)]
pub(super) struct Laid {
    /// The final centres that the intermediary will ask about.
    judged: Option<Batch>,
    /// The sites of the first total, once this site's shares for it have left; empty where a process before this one gave
    /// them and it is not known any more over whom.
    first: Option<Vec<u16>>,
}

impl Hand {
    /// Over whom the first total of the coordinator's run is; nothing where there is none yet. What a run before laid down to be
    /// judged is none of a new one's ([KEX-9]).
    pub(super) fn lay_first(&self, first: Option<Vec<u16>>) {
        let Hand::Lays(hold) = self else { return };
        hold.send_modify(|laid| {
            laid.judged = laid.judged.take().filter(|_| first.is_some());
            laid.first = first;
        });
    }

    /// The final centres that the intermediary will ask about.
    pub(super) fn lay_judged(&self, batch: Batch) {
        let Hand::Lays(hold) = self else { return };
        hold.send_modify(|laid| laid.judged = Some(batch));
    }

    /// [APP-2]: the intermediary is answered once this site's shares of the coordinator's first total have left, and over sites
    /// of that total only.
    ///
    /// # Errors
    /// A sentence for the site's operator.
    pub(super) async fn counts(&mut self, cohort: &[u16]) -> Result<(), String> {
        let Hand::Takes(laid, patience) = self else { return Err("the coordinator does not count rows".into()) };
        match timeout(*patience, laid.wait_for(|laid| laid.first.is_some())).await {
            // Whole blocks of them, as the release rule sees to.
            Ok(Ok(laid)) if within(laid.first.as_deref().unwrap_or_default(), cohort) => Ok(()),
            Ok(Ok(_)) => {
                Err("the intermediary asks the sites of the coordinator's first total, and no others [APP-2]".into())
            }
            _ => Err("the intermediary asks for the rows to be counted, but this site took part in no total of this run yet [APP-2]; \
                      where the run is over, its coordinator has the result"
                .into()),
        }
    }

    /// [APP-5]: what the coordinator laid before this site, once it has; after its first total, as [`Hand::counts`].
    ///
    /// # Errors
    /// A sentence for the site's operator.
    pub(super) async fn held(&mut self, cohort: &[u16], digest: Hash) -> Result<Batch, String> {
        self.counts(cohort).await?;
        let Hand::Takes(held, patience) = self else { return Err("the coordinator does not judge".into()) };
        let fits = |laid: &Laid| laid.judged.as_ref().is_some_and(|batch| question::digest(batch) == digest);
        match timeout(*patience, held.wait_for(fits)).await {
            Ok(Ok(laid)) => laid.judged.clone().ok_or_else(|| "nothing was laid before this site".into()),
            _ => Err("the coordinator did not lay before this site what the intermediary asks about".into()),
        }
    }
}

/// Whether the sites of the first total, where they are known, hold all of these.
fn within(first: &[u16], cohort: &[u16]) -> bool {
    first.is_empty() || cohort.iter().all(|site| first.contains(site))
}

#[cfg(test)]
mod tests {
    use veilsum_cluster::{Centres, Query};

    use super::*;

    fn link() -> (Hand, Hand) {
        let (hold, held) = watch::channel(Laid::default());
        (Hand::Lays(hold), Hand::Takes(held, Duration::from_millis(20)))
    }

    fn batch() -> Batch {
        Query::fuzzy_sums(Centres::from_rows(&[vec![0.1], vec![0.9]]).unwrap(), 2.0).into()
    }

    /// [APP-2], [APP-5], [REL-5]: neither question of the intermediary is answered before the first total, or over others.
    #[tokio::test]
    async fn the_intermediary_is_answered_after_the_first_total_and_over_its_sites() {
        let (lays, mut takes) = link();
        let digest = question::digest(&batch());
        lays.lay_judged(batch());
        assert!(takes.counts(&[0, 1, 2]).await.unwrap_err().contains("in no total of this run"));
        assert!(takes.held(&[0, 1, 2], digest).await.unwrap_err().contains("in no total of this run"));
        lays.lay_first(Some(vec![0, 1, 2]));
        takes.counts(&[0, 1, 2]).await.unwrap();
        assert!(takes.held(&[0, 1, 2], digest).await.is_ok_and(|held| held == batch()));
        assert!(takes.held(&[0, 1, 3], digest).await.unwrap_err().contains("no others"));
        // A process before this one gave the shares.
        lays.lay_first(Some(Vec::new()));
        takes.counts(&[0, 1, 3]).await.unwrap();
    }

    /// [KEX-9]: a set-up of another run takes back what the one before laid down.
    #[tokio::test]
    async fn a_new_set_up_forgets_what_was_to_be_judged() {
        let (lays, mut takes) = link();
        lays.lay_first(Some(vec![0, 1, 2]));
        lays.lay_judged(batch());
        lays.lay_first(None);
        assert!(takes.counts(&[0, 1, 2]).await.is_err());
        lays.lay_first(Some(vec![0, 1, 2]));
        takes.counts(&[0, 1, 2]).await.unwrap();
        let told = takes.held(&[0, 1, 2], question::digest(&batch())).await.unwrap_err();
        assert!(told.contains("did not lay"), "{told}");
    }
}
