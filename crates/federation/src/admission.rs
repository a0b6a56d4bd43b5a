//! A site's memory of a run: whether the coordinator's next question belongs to the plan, comes in its place ([POL-3]) and,
//! where the plan samples sites, under the right draw ([APP-6]).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use veilsum_cluster::{Batch, method::Stage};
use veilsum_proto::{Error, codec, limits::MAX_QUERY, policy::Asked, suite::Hash};

use crate::{
    agreed,
    plan::{Judge, PlanSpec},
    question,
    release::{self, Answering},
};

/// How far a coordinator's questions have come: a run never goes back. It is kept beside the journal, so that a restart of
/// this process does not forget it; nothing of the rows is in it.
#[derive(Default, Serialize, Deserialize)]
pub struct Admission {
    /// The last question and the part of the run that it belonged to.
    last: Option<(Stage, Batch)>,
    /// Different questions of that part.
    asked: u32,
    /// Whether this process saw the first question of the run.
    whole: bool,
    /// Number of the last drawn question.
    drawn: Option<u32>,
    /// Digests of all drawn questions.
    seen: BTreeSet<Hash>,
    /// The sites over whom the intermediary says that the floor is reached ([APP-2]).
    pub counted: Option<Vec<u16>>,
}

/// Bytes of a course on disk: the largest question and the digests of a long run.
pub const MAX_BYTES: usize = 2 * MAX_QUERY;

impl Admission {
    /// From what a process before this one left ([`Admission::to_bytes`]).
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Admission, Error> {
        codec::decode("admission", bytes, MAX_BYTES)
    }

    /// For a process after this one. Nothing of the rows is in it.
    pub fn to_bytes(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Takes the next question, whose draw has `number` where it names one. Whether this site, number `me`, was drawn.
    ///
    /// # Errors
    /// A sentence for the site's operator.
    pub fn check(
        &mut self,
        site: &Answering<'_>,
        me: u16,
        batch: &Batch,
        number: Option<u32>,
        asked: &Asked,
        of_plan: u64,
    ) -> Result<bool, String> {
        let (work, n) = (site.work, site.roster.sites.len());
        let stage = work.admits(batch)?;
        if stage == Stage::Validating && work.judge == Judge::Intermediary {
            return Err("by the plan the intermediary opens the validity totals".into());
        }
        // A question whose slot was burned comes again, and counts once.
        let planned = u64::from(work.max_questions());
        if of_plan > planned {
            return Err(format!(
                "this would be question {of_plan} under a plan of {planned}, over all its runs: agree on a new plan"
            ));
        }
        let again = self.last.as_ref().is_some_and(|(_, last)| is_same(last, batch));
        if asked.rounds == 1 && self.last.is_none() {
            if !is_same(&work.first_question(n).map_err(|e| e.0)?, batch) {
                return Err("the first question is not the plan's".into());
            }
            self.whole = true;
        }
        self.advance(work, stage, batch)?;
        let sampled = work.sampling.filter(|_| stage == Stage::Iterating);
        let (sampling, number) = match (sampled, number) {
            (None, None) => return Ok(true),
            (Some(sampling), Some(number)) => (sampling, number),
            (Some(_), None) => return Err("the plan samples sites in this part of the run".into()),
            (None, Some(_)) => return Err("the plan does not sample sites in this part of the run".into()),
        };
        self.turn(batch, number, again, asked.rounds)?;
        debug_assert_eq!(Some(sampling), site.work.sampling);
        let drawn = release::drawn(site, asked, number).unwrap_or_default();
        let (live, needed) =
            (drawn.len(), agreed::drawn_at_least(site.terms, &site.policy.floor, asked.cohort.len(), n)?);
        if live < needed {
            return Err(format!("{live} sites that are left were drawn, {needed} must be"));
        }
        Ok(drawn.contains(&me))
    }

    /// Takes the final centres that the intermediary will ask about.
    ///
    /// # Errors
    /// A sentence for the site's operator.
    pub fn check_held(&mut self, site: &Answering<'_>, batch: &Batch) -> Result<(), String> {
        let work = site.work;
        if work.judge != Judge::Intermediary {
            return Err("by the plan the coordinator opens the validity totals".into());
        }
        let stage = work.admits(batch)?;
        if stage != Stage::Validating {
            return Err("it is no validation".into());
        }
        self.advance(work, stage, batch)
    }

    /// [APP-6]: each draw serves one question, and each question one draw. A coordinator that could choose would compare draws
    /// that differ in one site.
    fn turn(&mut self, batch: &Batch, number: u32, again: bool, rounds: u32) -> Result<(), String> {
        let fresh = self.seen.insert(question::digest(batch));
        let in_turn = match self.drawn {
            Some(last) if again => number == last,
            Some(last) => last.checked_add(1) == Some(number) && fresh,
            None if self.whole => number == 1,
            // Where the course was lost this process does not know the last number; the state machine knows how many were put.
            None => (1..=rounds).contains(&number),
        };
        if !in_turn {
            return Err("the question's draw is out of turn".into());
        }
        self.drawn = Some(number);
        Ok(())
    }

    /// A run never goes back to an earlier part, asks in each no more than the plan has, and what it asks has the shape of
    /// what follows the question before.
    fn advance(&mut self, work: &PlanSpec, stage: Stage, batch: &Batch) -> Result<(), String> {
        let recipe = &work.recipe;
        match &self.last {
            // The same question may come again, where its round was lost; whole blocks alone make it harmless [REL-4].
            Some((_, last)) if is_same(last, batch) => return Ok(()),
            Some((was, last)) => {
                let domain = work.domain().map_err(|e| e.to_string())?;
                recipe.follows(last, batch, &domain)?;
                self.asked = if *was == stage { self.asked + 1 } else { 1 };
            }
            None => self.asked = 1,
        }
        if self.asked > recipe.most_in(stage) {
            return Err("a question after the run's last one of its kind".into());
        }
        self.last = Some((stage, batch.clone()));
        Ok(())
    }
}

/// Whether two questions are the same bytes: -0 is 0 as a number, and other bytes in the ledger ([LED-1]).
fn is_same(one: &Batch, other: &Batch) -> bool {
    codec::encode(one) == codec::encode(other)
}

#[cfg(test)]
mod tests {
    use veilsum_cluster::{Centres, Query, method::Scale, query::Moments};

    use super::*;
    use crate::tests::work;

    fn question(x: f64) -> Batch {
        let centres = Centres::from_rows(&[vec![x, 0.5], vec![0.5, x]]).unwrap();
        Query::fuzzy_sums(centres, 2.0).into()
    }

    /// [LED-1]: the same question comes again by its bytes; one with another zero is another one, and counts.
    #[test]
    fn another_zero_is_another_question() {
        let mut admission = Admission::default();
        let mut advance = |x: f64| {
            let follows = admission.advance(&work(2), Stage::Iterating, &question(x));
            (follows.is_ok(), admission.asked)
        };
        assert_eq!([advance(0.0), advance(0.0)], [(true, 1); 2]);
        assert_ne!(advance(-0.0), (true, 1));
    }

    /// A part of a run is asked what follows its first question: squares around the mean that its sums gave, and around no other point.
    #[test]
    fn squares_are_asked_around_one_point() {
        let mut plan = work(3);
        plan.recipe.preparation.scale = Scale::Standard;
        let around = |x: Option<f64>| Query::Moments(Moments { around: x.map(|x| vec![x, 0.5]) }).into();
        let mut admission = Admission::default();
        let mut advance = |x: Option<f64>| admission.advance(&plan, Stage::Preparing, &around(x)).is_ok();
        assert!([None, Some(0.5), Some(0.5)].map(&mut advance).iter().all(|taken| *taken));
        assert!(!advance(Some(0.4)));
    }

    /// [APP-6].
    #[test]
    fn app_6_draws_begin_at_one_and_no_question_is_put_to_two_draws() {
        let turns = |draws: &[(f64, u32)]| {
            let mut admission = Admission { whole: true, ..Admission::default() };
            let mut last = None;
            draws.iter().all(|&(x, number)| {
                let again = last == Some(x);
                last = Some(x);
                admission.turn(&question(x), number, again, 9).is_ok()
            })
        };
        assert!(turns(&[(0.1, 1), (0.2, 2), (0.2, 2), (0.3, 3)]));
        assert!(!turns(&[(0.1, 0)]), "the draws begin at 1");
        assert!(!turns(&[(0.1, 1), (0.2, 3)]), "a draw is left out");
        assert!(!turns(&[(0.1, 1), (0.1, 2)]), "one question put to two draws");
        assert!(!turns(&[(0.1, 1), (0.2, 2), (0.1, 3)]), "the difference is that of two draws");
    }

    #[test]
    fn a_restart_does_not_forget_what_was_asked() {
        let mut admission = Admission::default();
        admission.advance(&work(2), Stage::Iterating, &question(0.1)).unwrap();
        admission.whole = true;
        admission.turn(&question(0.1), 2, false, 1).unwrap_err();
        admission.turn(&question(0.2), 1, false, 1).unwrap();
        let mut back = Admission::from_bytes(&admission.to_bytes()).unwrap();
        assert_eq!((back.asked, back.drawn, back.seen.len()), (1, Some(1), 2));
        assert!(back.turn(&question(0.3), 1, false, 9).is_err(), "a draw again, for another question");
        assert!(back.turn(&question(0.4), 2, false, 9).is_ok());
        assert!(Admission::from_bytes(b"damaged").is_err());
    }
}
