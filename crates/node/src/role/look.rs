//! A member's look at the plan that is proposed to it: one at a time, stopped where another plan comes, and kept for as long as nothing has
//! changed that it rests on ([PRO-2]).

use std::sync::Arc;

use tokio::{sync::watch, task::JoinHandle};
use veilsum_proto::suite::Hash;

use crate::{agreed::Federation, documents::PlanAnswer, error::Failure, table::Halt};

/// What this party makes of a roster and a plan.
#[derive(Clone)]
pub struct Opinion {
    /// What the coordinator is told.
    pub answer: PlanAnswer,
    /// What this party's own operator is told.
    pub words: String,
}

impl Opinion {
    /// The same on this party's own screen.
    pub(super) fn told(&self) -> String {
        format!("a plan is proposed; {}\n  {}", self.answer.of_this_party(), self.words)
    }
}

/// How a look goes.
pub struct Looking {
    /// Nobody waits for it any more.
    pub halt: Halt,
    reads: watch::Sender<bool>,
}

impl Looking {
    /// From now on rows are read. Said for every plan that is answered, before a row is seen: that it is said depends on none.
    pub fn reads(&self) {
        self.reads.send_replace(true);
    }

    /// One that nobody follows.
    pub fn unseen() -> Looking {
        Looking { halt: Halt::default(), reads: watch::Sender::new(false) }
    }
}

/// Judges a plan.
pub type Judge = Arc<dyn Fn(&Federation, &Looking) -> Result<Opinion, Failure> + Send + Sync>;

/// A look at one plan.
pub(super) struct Look {
    /// Roster and plan.
    of: [Hash; 2],
    /// What it rests on, as it was before it began.
    stamp: Vec<String>,
    halt: Halt,
    reads: watch::Receiver<bool>,
    task: Option<JoinHandle<Result<Opinion, Failure>>>,
    opinion: Option<Opinion>,
}

impl Drop for Look {
    fn drop(&mut self) {
        self.halt.say();
    }
}

impl Look {
    /// Looks, once a look `before` this one has stopped.
    pub(super) fn begin(
        before: Option<Look>,
        of: [Hash; 2],
        stamp: Vec<String>,
        judge: impl FnOnce(&Looking) -> Result<Opinion, Failure> + Send + 'static,
    ) -> Look {
        let earlier = before.and_then(|mut look| look.task.take());
        let Looking { halt, reads: told } = Looking::unseen();
        let (looking, reads) = (Looking { halt: halt.clone(), reads: told.clone() }, told.subscribe());
        let task = tokio::spawn(async move {
            if let Some(earlier) = earlier {
                let _ = earlier.await;
            }
            let judged = tokio::task::spawn_blocking(move || judge(&looking)).await;
            judged.map_err(Failure::defect)?
        });
        Look { of, stamp, halt, reads, task: Some(task), opinion: None }
    }

    /// Whether it is still good for this plan, with what it rests on as it is `now`. Whoever was not ready may be so now.
    pub(super) fn holds(&self, of: [Hash; 2], now: &[String]) -> bool {
        let ready = |opinion: &Opinion| opinion.answer != PlanAnswer::NotReady;
        self.of == of && (self.task.is_some() || self.stamp == now && self.opinion.as_ref().is_some_and(ready))
    }

    /// Whether it has ended, and what it rests on is another now.
    pub(super) fn is_old(&self, now: &[String]) -> bool {
        self.task.is_none() && self.stamp != now
    }

    /// Whether it goes on.
    pub(super) fn goes_on(&self) -> bool {
        self.task.is_some()
    }

    /// Whether rows were begun to be read.
    pub(super) fn reads(&self) -> bool {
        *self.reads.borrow()
    }

    /// What came of it, once it has ended.
    pub(super) fn opinion(&self) -> Option<&Opinion> {
        self.opinion.as_ref()
    }

    /// Waits until there is more to say of it; for ever where it has ended. Cancel-safe.
    ///
    /// # Errors
    /// Those of the judge.
    pub(super) async fn goes(&mut self) -> Result<(), Failure> {
        let Some(task) = &mut self.task else { return std::future::pending().await };
        let judged = if *self.reads.borrow() {
            task.await
        } else {
            tokio::select! {
                judged = &mut *task => judged,
                Ok(()) = self.reads.changed() => return Ok(()),
            }
        };
        self.task = None;
        let judged = judged.map_err(Failure::defect);
        self.opinion = Some(judged??);
        Ok(())
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// Those of the judge.
    pub(super) async fn ended(&mut self) -> Result<(), Failure> {
        while self.task.is_some() {
            self.goes().await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Condvar, Mutex,
            atomic::{AtomicUsize, Ordering::SeqCst},
        },
        time::Duration,
    };

    use super::*;

    /// [PRO-2]: ten proposals in a row while rows are read slowly: one reader at a time, each of the others stopped, and one answer; the same
    /// plan again is not read again.
    #[tokio::test(flavor = "multi_thread")]
    async fn pro_2_one_look_at_a_time() {
        let (readers, most, begun) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let all = Arc::new((readers, most, begun, Mutex::new(false), Condvar::new()));
        let seen = all.clone();
        let judge = move |looking: &Looking| {
            let (readers, most, begun, open, opened) = &*seen;
            begun.fetch_add(1, SeqCst);
            most.fetch_max(readers.fetch_add(1, SeqCst) + 1, SeqCst);
            looking.reads();
            let mut open = open.lock().unwrap();
            while !*open && !looking.halt.is_said() {
                open = opened.wait_timeout(open, Duration::from_millis(5)).unwrap().0;
            }
            readers.fetch_sub(1, SeqCst);
            Ok(Opinion { answer: PlanAnswer::Would { runs: None }, words: String::new() })
        };
        let mut look = None;
        for plan in 0..10u8 {
            let of = [Hash([1; 32]), Hash([plan; 32])];
            look = Some(Look::begin(look.take(), of, Vec::new(), judge.clone()));
        }
        let (of, mut look) = ([Hash([1; 32]), Hash([9; 32])], look.unwrap());
        look.goes().await.unwrap();
        assert!(look.reads() && look.goes_on() && look.opinion().is_none());
        assert!(look.holds(of, &["changed".into()]), "a look that goes on is not begun again");
        *all.3.lock().unwrap() = true;
        look.ended().await.unwrap();
        assert_eq!(all.1.load(SeqCst), 1, "readers at a time");
        assert!(look.opinion().is_some() && look.holds(of, &[]) && !look.holds(of, &["changed".into()]));
        assert!(!look.holds([Hash([1; 32]), Hash([8; 32])], &[]) && look.is_old(&["changed".into()]));
        look.opinion = Some(Opinion { answer: PlanAnswer::NotReady, words: String::new() });
        assert!(!look.holds(of, &[]), "whoever was not ready may be so now");
    }
}
