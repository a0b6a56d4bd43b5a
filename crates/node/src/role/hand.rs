//! The link between a site's two conversations: the intermediary's word that the floor is reached, without which the coordinator is
//! answered nothing ([APP-2]), and the centres that the coordinator lays before the site to be judged ([APP-5]).

use std::time::Duration;

use tokio::{sync::watch, time::timeout};
use veilsum_proto::suite::Hash;

use crate::{
    app_messages::CountReady,
    question::{self, Batch},
};

/// How long a site waits for one aggregator to have done what the other asks about.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The link; nothing is laid down yet.
#[derive(Clone)]
pub(super) struct Hand {
    /// The intermediary's word.
    word: watch::Sender<Option<CountReady>>,
    /// The final centres that it asks about.
    centres: watch::Sender<Option<Batch>>,
    /// How long either is waited for.
    patience: Duration,
}

impl Hand {
    pub(super) fn new(patience: Duration) -> Hand {
        Hand { word: watch::Sender::new(None), centres: watch::Sender::new(None), patience }
    }

    /// The intermediary says that the floor is reached.
    pub(super) fn say(&self, word: CountReady) {
        self.word.send_replace(Some(word));
    }

    /// Over whom the floor is reached in this run of the coordinator ([APP-2]); waits for the word.
    ///
    /// # Errors
    /// A sentence for the site's operator.
    pub(super) async fn counted(&self, run: Hash) -> Result<Vec<u16>, String> {
        let word = laid(&self.word, |word| word.run == run, self.patience).await;
        word.map(|word| word.cohort).ok_or_else(|| {
            "the coordinator asks before the intermediary has said that the rows of this run reach the plan's floor [APP-2]".into()
        })
    }

    /// The final centres that the intermediary will ask about; none where another run begins ([KEX-9]).
    pub(super) fn lay(&self, batch: Option<Batch>) {
        self.centres.send_replace(batch);
    }

    /// [APP-5]: what the coordinator laid before this site, once it has.
    ///
    /// # Errors
    /// A sentence for the site's operator.
    pub(super) async fn held(&self, digest: Hash) -> Result<Batch, String> {
        let centres = laid(&self.centres, |batch| question::digest(batch) == digest, self.patience).await;
        centres.ok_or_else(|| "the coordinator did not lay before this site what the intermediary asks about".into())
    }
}

/// What fits, once it is there.
async fn laid<T: Clone>(from: &watch::Sender<Option<T>>, fits: impl Fn(&T) -> bool, patience: Duration) -> Option<T> {
    let mut laid = from.subscribe();
    let laid = timeout(patience, laid.wait_for(|laid| laid.as_ref().is_some_and(&fits))).await;
    laid.ok()?.ok()?.clone()
}

/// [APP-2]: whether the intermediary counted all sites that the coordinator asks.
///
/// # Errors
/// A sentence for the site's operator.
pub(super) fn within(counted: &[u16], cohort: &[u16]) -> Result<(), String> {
    let what = "the coordinator asks a site whose rows the intermediary did not count [APP-2]";
    if cohort.iter().all(|site| counted.contains(site)) { Ok(()) } else { Err(what.into()) }
}

#[cfg(test)]
mod tests {
    use veilsum_cluster::{Centres, Query};

    use super::*;

    const RUN: Hash = Hash([1; 32]);

    fn hand() -> Hand {
        Hand::new(Duration::from_millis(20))
    }

    fn batch() -> Batch {
        Query::fuzzy_sums(Centres::from_rows(&[vec![0.1], vec![0.9]]).unwrap(), 2.0).into()
    }

    /// [APP-2]: the coordinator is answered after the intermediary's word for its run, and over the sites of that word.
    #[tokio::test]
    async fn app_2_the_coordinator_is_answered_after_the_count_and_over_its_sites() {
        let hand = hand();
        let (intermediary, coordinator) = (hand.clone(), hand);
        assert!(coordinator.counted(RUN).await.unwrap_err().contains("asks before"));
        // The word of another run of the coordinator.
        intermediary.say(CountReady { run: Hash([2; 32]), cohort: vec![0, 1, 2, 3] });
        assert!(coordinator.counted(RUN).await.is_err());
        intermediary.say(CountReady { run: RUN, cohort: vec![0, 1, 2, 3] });
        let counted = coordinator.counted(RUN).await.unwrap();
        within(&counted, &[0, 1, 2, 3]).unwrap();
        within(&counted, &[0, 1, 2]).unwrap();
        assert!(within(&counted, &[0, 1, 4]).unwrap_err().contains("did not count"));
        // The word stands where the intermediary is gone.
        drop(intermediary);
        assert_eq!(coordinator.counted(RUN).await.unwrap(), counted);
        assert!(coordinator.counted(Hash([3; 32])).await.is_err());
    }

    /// [APP-5], [KEX-9]: the intermediary is answered what the coordinator laid down, and nothing of a run before.
    #[tokio::test]
    async fn app_5_what_is_judged_was_laid_down_in_this_run() {
        let hand = hand();
        let (intermediary, coordinator) = (hand.clone(), hand);
        let digest = question::digest(&batch());
        assert!(intermediary.held(digest).await.unwrap_err().contains("did not lay"));
        coordinator.lay(Some(batch()));
        assert!(intermediary.held(digest).await.is_ok_and(|held| held == batch()));
        assert!(intermediary.held(Hash([9; 32])).await.is_err());
        coordinator.lay(None);
        assert!(intermediary.held(digest).await.is_err());
    }
}
