//! How far a coordinator's questions have come: whether the next one belongs to the plan, comes in its place ([POL-3]) and, if the
//! plan samples sites, under the right draw ([APP-6]).

use std::collections::BTreeSet;

use veilsum_cluster::{Batch, method::Stage};
use veilsum_proto::{codec, policy::Asked, suite::Hash};

use crate::{
    agreed,
    plan::{Judge, PlanSpec},
    question::{self, Question},
    release::{self, Answering},
};

/// How far a coordinator's questions have come: a run never goes back. It follows from the questions, so a restart asks them again of
/// a new one ([`Admission::take`]).
#[derive(Default)]
pub struct Admission {
    /// The last question and the part of the run that it belonged to.
    last: Option<(Stage, Batch)>,
    /// Different questions of that part.
    asked: u32,
    /// Number of the last drawn question.
    drawn: Option<u32>,
    /// Digests of all drawn questions.
    seen: BTreeSet<Hash>,
}

impl Admission {
    /// Takes the next question. Whether this site, number `me`, was drawn for it.
    ///
    /// # Errors
    /// A sentence for the site's operator.
    pub fn check(
        &mut self,
        site: &Answering<'_>,
        me: u16,
        question: &Question,
        asked: &Asked,
        of_plan: u64,
    ) -> Result<bool, String> {
        let (work, n) = (site.work, site.roster.sites.len());
        // A question whose slot was burned comes again, and counts once.
        let planned = u64::from(work.max_questions());
        if of_plan > planned {
            return Err(format!(
                "this would be question {of_plan} under a plan of {planned}, over all its runs: agree on a new plan"
            ));
        }
        self.take(work, n, question)?;
        let Question::Drawn { number, .. } = question else { return Ok(true) };
        let drawn = release::drawn(site, asked, *number).unwrap_or_default();
        let (live, needed) =
            (drawn.len(), agreed::drawn_at_least(site.terms, &site.policy.floor, asked.cohort.len(), n)?);
        if live < needed {
            return Err(format!("{live} sites that are left were drawn, {needed} must be"));
        }
        Ok(drawn.contains(&me))
    }

    /// Takes the next question of a run over so many `sites`, as far as the plan and the questions before say whether it comes now.
    ///
    /// # Errors
    /// A sentence for the site's operator.
    pub fn take(&mut self, work: &PlanSpec, sites: usize, question: &Question) -> Result<(), String> {
        let (batch, number) = match question {
            Question::Cluster(batch) => (batch, None),
            Question::Drawn { number, batch } => (batch, Some(*number)),
            _ => return Err(format!("{} is not the coordinator's to ask", question.name())),
        };
        let stage = work.admits(batch)?;
        if stage == Stage::Validating && work.judge == Judge::Intermediary {
            return Err("by the plan the intermediary opens the validity totals".into());
        }
        let again = self.last.as_ref().is_some_and(|(_, last)| is_same(last, batch));
        if self.last.is_none() && !is_same(&work.first_question(sites).map_err(|e| e.message)?, batch) {
            return Err("the first question is not the plan's".into());
        }
        self.advance(work, stage, batch)?;
        match (work.sampling.filter(|_| stage == Stage::Iterating), number) {
            (None, None) => Ok(()),
            (Some(_), Some(number)) => self.turn(batch, number, again),
            (Some(_), None) => Err("the plan samples sites in this part of the run".into()),
            (None, Some(_)) => Err("the plan does not sample sites in this part of the run".into()),
        }
    }

    /// Takes the final centres that the intermediary will ask about.
    ///
    /// # Errors
    /// A sentence for the site's operator.
    pub fn take_judged(&mut self, work: &PlanSpec, batch: &Batch) -> Result<(), String> {
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
    fn turn(&mut self, batch: &Batch, number: u32, again: bool) -> Result<(), String> {
        let fresh = self.seen.insert(question::digest(batch));
        let in_turn = match self.drawn {
            Some(last) if again => number == last,
            Some(last) => last.checked_add(1) == Some(number) && fresh,
            None => number == 1,
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
    use crate::testing::work;

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
            let mut admission = Admission::default();
            let mut last = None;
            draws.iter().all(|&(x, number)| {
                let again = last == Some(x);
                last = Some(x);
                admission.turn(&question(x), number, again).is_ok()
            })
        };
        assert!(turns(&[(0.1, 1), (0.2, 2), (0.2, 2), (0.3, 3)]));
        assert!(!turns(&[(0.1, 0)]), "the draws begin at 1");
        assert!(!turns(&[(0.1, 1), (0.2, 3)]), "a draw is left out");
        assert!(!turns(&[(0.1, 1), (0.1, 2)]), "one question put to two draws");
        assert!(!turns(&[(0.1, 1), (0.2, 2), (0.1, 3)]), "the difference is that of two draws");
    }
}
