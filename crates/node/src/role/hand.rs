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

/// The link, at both ends; nothing is laid down yet.
pub(super) fn link(patience: Duration) -> (Hand, Hand) {
    let (says, told) = watch::channel(None);
    let (lays, laid) = watch::channel(None);
    (Hand::Intermediary { says, laid, patience }, Hand::Coordinator { lays, told, patience })
}

/// One end of the link.
pub(super) enum Hand {
    /// That of the conversation with the intermediary.
    Intermediary {
        /// Its word.
        says: watch::Sender<Option<CountReady>>,
        /// The final centres that it asks about.
        laid: watch::Receiver<Option<Batch>>,
        /// How long these are waited for.
        patience: Duration,
    },
    /// That of the conversation with the coordinator.
    Coordinator {
        /// The final centres.
        lays: watch::Sender<Option<Batch>>,
        /// The intermediary's word.
        told: watch::Receiver<Option<CountReady>>,
        /// How long it is waited for.
        patience: Duration,
    },
}

impl Hand {
    /// The intermediary says that the floor is reached.
    pub(super) fn say(&self, word: CountReady) {
        if let Hand::Intermediary { says, .. } = self {
            says.send_replace(Some(word));
        }
    }

    /// Over whom the floor is reached in this run of the coordinator ([APP-2]); waits for the word.
    ///
    /// # Errors
    /// A sentence for the site's operator.
    pub(super) async fn counted(&mut self, run: Hash) -> Result<Vec<u16>, String> {
        let Hand::Coordinator { told, patience, .. } = self else {
            return Err("it is the intermediary that counts".into());
        };
        let of_run = |word: &Option<CountReady>| word.as_ref().is_some_and(|word| word.run == run);
        match timeout(*patience, told.wait_for(of_run)).await {
            Ok(Ok(word)) => Ok(word.as_ref().map(|word| word.cohort.clone()).unwrap_or_default()),
            _ => Err("the coordinator asks before the intermediary has said that the rows of this run reach the plan's floor [APP-2]"
                .into()),
        }
    }

    /// The final centres that the intermediary will ask about; none where another run begins ([KEX-9]).
    pub(super) fn lay(&self, batch: Option<Batch>) {
        if let Hand::Coordinator { lays, .. } = self {
            lays.send_replace(batch);
        }
    }

    /// [APP-5]: what the coordinator laid before this site, once it has.
    ///
    /// # Errors
    /// A sentence for the site's operator.
    pub(super) async fn held(&mut self, digest: Hash) -> Result<Batch, String> {
        let Hand::Intermediary { laid, patience, .. } = self else {
            return Err("the coordinator does not judge".into());
        };
        let fits = |laid: &Option<Batch>| laid.as_ref().is_some_and(|batch| question::digest(batch) == digest);
        match timeout(*patience, laid.wait_for(fits)).await {
            Ok(Ok(laid)) => laid.clone().ok_or_else(|| "nothing was laid before this site".into()),
            _ => Err("the coordinator did not lay before this site what the intermediary asks about".into()),
        }
    }
}

/// [APP-2]: whether the intermediary counted all sites that the coordinator asks. They are whole blocks, as the release rule sees to
/// ([REL-4]).
///
/// # Errors
/// A sentence for the site's operator.
pub(super) fn within(counted: &[u16], cohort: &[u16]) -> Result<(), String> {
    match cohort.iter().all(|site| counted.contains(site)) {
        true => Ok(()),
        false => Err("the coordinator asks a site whose rows the intermediary did not count [APP-2]".into()),
    }
}

#[cfg(test)]
mod tests {
    use veilsum_cluster::{Centres, Query};

    use super::*;

    const RUN: Hash = Hash([1; 32]);

    fn ends() -> (Hand, Hand) {
        link(Duration::from_millis(20))
    }

    fn batch() -> Batch {
        Query::fuzzy_sums(Centres::from_rows(&[vec![0.1], vec![0.9]]).unwrap(), 2.0).into()
    }

    /// [APP-2]: the coordinator is answered after the intermediary's word for its run, and over the sites of that word.
    #[tokio::test]
    async fn app_2_the_coordinator_is_answered_after_the_count_and_over_its_sites() {
        let (intermediary, mut coordinator) = ends();
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
        let (mut intermediary, coordinator) = ends();
        let digest = question::digest(&batch());
        assert!(intermediary.held(digest).await.unwrap_err().contains("did not lay"));
        coordinator.lay(Some(batch()));
        assert!(intermediary.held(digest).await.is_ok_and(|held| held == batch()));
        assert!(intermediary.held(Hash([9; 32])).await.is_err());
        coordinator.lay(None);
        assert!(intermediary.held(digest).await.is_err());
    }
}
