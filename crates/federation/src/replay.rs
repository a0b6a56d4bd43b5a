//! A site's own copy of the method ([OPN-9]): fed with the totals that it recomputed, it says what the coordinator may ask next,
//! and what the run ends with.

use veilsum_cluster::{Batch, Outcome};

use crate::{
    agreed::Federation,
    error::Failure,
    method_session::{MethodSession, Turn},
    model::{Early, Model},
    near::Units,
    question::Question,
    result::RunResult,
};

/// The copy.
pub struct Replay {
    federation: Federation,
    /// The method, which takes the totals that this site has recomputed.
    pub session: MethodSession,
}

impl Replay {
    /// The copy at its beginning.
    ///
    /// # Errors
    /// A [`Failure`] where the plan's method cannot be begun.
    pub fn new(federation: Federation) -> Result<Replay, Failure> {
        let session = MethodSession::of(&federation.work, federation.form()?)?;
        Ok(Replay { federation, session })
    }

    /// Whether the copy asks this next.
    ///
    /// # Errors
    /// A sentence for the operator where it does not.
    pub fn ask(&self, question: &Question) -> Result<(), String> {
        if self.session.expects(question) {
            return Ok(());
        }
        let asked = question.name();
        Err(match self.asks().map(Question::name) {
            Some(asks) => format!(
                "the coordinator asked {asked} where the method, run on the totals it opened, asks {asks}, or asks it elsewhere"
            ),
            None => format!("the coordinator asked {asked} after the method's last question"),
        })
    }

    /// What the method asks next.
    pub fn asks(&self) -> Option<&Question> {
        match self.session.turn() {
            Turn::Ask(expected, _) => Some(expected),
            _ => None,
        }
    }

    /// Whether the intermediary is to judge this now.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn judges(&self, batch: &Batch) -> Result<(), String> {
        if self.session.expects_judged(batch) {
            return Ok(());
        }
        Err("it is not what the method, run on the opened totals, has judged".into())
    }

    /// Whether the run is said to have come to its end and the copy has not: the last totals were not opened to this site, which
    /// was in no more of them, or the coordinator lies.
    pub fn left_behind(&self, model: &Model) -> bool {
        matches!(self.session.turn(), Turn::Ask(..)) && model.ended_early.is_none()
    }

    /// The copy's own result, where the coordinator's is the same. Where the intermediary judges there is none: only it knows
    /// which of several K was chosen; the model is that of one of them. An early one is taken if its rows are known to reach the
    /// floor ([`MethodSession::reaches`]), or are `counted`, as whoever was not there takes for granted.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn result(&self, model: &Model, counted: bool) -> Result<Option<RunResult>, String> {
        let floor = self.federation.terms.min_total_rows;
        let outcome = match (self.session.turn(), &model.ended_early) {
            (Turn::Done(outcome), None) => (**outcome).clone(),
            (Turn::Judge(_), None) => return self.is_judged(model).map(|()| None),
            (Turn::Ask(..), None) => return Err("the run is not over by the totals that were opened".into()),
            (Turn::Done(_), Some(_)) => {
                return Err("it says that the run ended early, and the method had its result".into());
            }
            (_, Some(_)) => {
                let outcome = self.session.finish().ok_or("no total that was opened has moved a centre")?;
                if !counted && !self.session.reaches(&outcome, floor, None) {
                    return Err("neither the count nor the totals show that its rows reach the plan's floor".into());
                }
                outcome
            }
        };
        if outcome.n_total.is_some_and(|rows| rows < floor) {
            return Err("its rows are fewer than the plan's floor".into());
        }
        let early = model.ended_early.clone();
        let early = early.map(|early| Early::of(&outcome, &early.reason, early.lost, early.refused));
        let own = self.result_of(&outcome, early).map_err(|failure| failure.message)?;
        if own.model.as_ref().is_some_and(|own| self.units().same(own, model)) {
            Ok(Some(own))
        } else {
            Err("it is not the result of the totals that were opened".into())
        }
    }

    fn units(&self) -> Units {
        Units::own(self.session.domain())
    }

    /// Whether the model has the centres of one of the runs that are judged, to the units that they are in.
    fn is_judged(&self, model: &Model) -> Result<(), String> {
        let (work, plan) = (&self.federation.work, self.federation.terms.hash());
        let of = |outcome: Outcome| {
            let own = Model::of(work, &plan, &outcome, None).ok()?;
            // Whether they had come to rest is the coordinator's word.
            Some(Model { converged: model.converged, ..own })
        };
        if self.session.candidates().into_iter().filter_map(of).any(|own| self.units().same(&own, model)) {
            return Ok(());
        }
        Err("its centres are none of those that were judged".into())
    }

    /// Whether every total was opened.
    pub fn is_done(&self) -> bool {
        matches!(self.session.turn(), Turn::Done(_))
    }

    /// The copy's own result where the coordinator says no more: to its end where every total was opened.
    /// `None` before a round has moved a centre, and where its rows are not known to reach the plan's floor.
    pub fn alone(&self, reason: &str, lost: String) -> Option<Result<RunResult, Failure>> {
        let floor = self.federation.terms.min_total_rows;
        if let Turn::Done(outcome) = self.session.turn() {
            return self.session.reaches(outcome, floor, None).then(|| self.result_of(outcome, None));
        }
        let outcome = self.session.finish()?;
        if !self.session.reaches(&outcome, floor, None) {
            return None;
        }
        let early = Early::of(&outcome, reason, vec![lost], Vec::new());
        Some(self.result_of(&outcome, Some(early)))
    }

    fn result_of(&self, outcome: &Outcome, early: Option<Early>) -> Result<RunResult, Failure> {
        RunResult::of(&self.federation, outcome, &self.session, None, early)
    }
}

#[cfg(test)]
mod tests {
    use veilsum_cluster::Centres;

    use veilsum_proto::plan::Terms;

    use super::*;
    use crate::{
        plan::{Judge, PlanSpec},
        question::tests::{line, site, total},
        tests as testing,
    };

    /// A copy that has been given the first `totals` totals, or all of them, over three sites of six rows.
    fn copy(judge: Judge, min_total_rows: u64, totals: usize) -> Replay {
        let work = PlanSpec { judge, ..line(2, 0.0, 3) };
        let (roster, _) = testing::kit(3);
        let terms = Terms { min_total_rows, ..testing::terms(&roster, &work) };
        let federation = Federation { roster: roster.into(), terms: terms.into(), work: work.into() };
        let form = federation.form().unwrap();
        let site = site(&[0.1, 0.12, 0.15, 0.8, 0.85, 0.9], &federation.work.domain().unwrap());
        let mut replay = Replay::new(federation).unwrap();
        for _ in 0..totals {
            let Turn::Ask(question, _) = replay.session.turn() else { break };
            let total = total(&question.clone(), [&site; 3], form);
            replay.session.take(&total, &[0, 1, 2]).unwrap();
        }
        replay
    }

    /// [APP-8]: a coordinator that lets nobody count, and ends the run at once, has no result of too few rows taken.
    #[test]
    fn an_early_result_of_rows_that_nobody_counted_is_refused() {
        let early = |replay: &Replay| {
            let outcome = replay.session.finish().unwrap();
            let said = Early::of(&outcome, "a site was lost", Vec::new(), Vec::new());
            replay.result_of(&outcome, Some(said)).unwrap().model.unwrap()
        };
        let few = copy(Judge::Coordinator, 19, 1);
        assert!(few.result(&early(&few), false).is_err_and(|why| why.contains("floor")));
        assert!(few.alone("the coordinator is gone", "hub".into()).is_none());
        // A site that was counted is not behind the centres any more.
        for (counted, taken) in [(&[0, 1, 2, 3][..], false), (&[0, 1, 2], true)] {
            let mut few = copy(Judge::Coordinator, 19, 1);
            few.session.is_counted(counted);
            assert_eq!(few.result(&early(&few), false).is_ok(), taken, "{counted:?}");
        }
        // The totals themselves show as many.
        let enough = copy(Judge::Coordinator, 9, 1);
        assert!(enough.result(&early(&enough), false).is_ok_and(|result| result.is_some()));
    }

    /// [APP-8]: a site to which every total was opened has the whole result, whoever is gone.
    #[test]
    fn a_copy_that_was_given_every_total_has_the_whole_result() {
        let whole = copy(Judge::Coordinator, 9, usize::MAX);
        assert!(whole.is_done() && !copy(Judge::Coordinator, 9, 1).is_done());
        let own = whole.alone("the run has ended", String::new()).unwrap().unwrap();
        assert!(own.ended_early.is_none() && own.model.is_some());
    }

    /// [APP-8]: where the intermediary judges, a site does not know which centres it chose; it knows those that it chose among.
    #[test]
    fn a_model_that_nobody_judged_is_refused() {
        let replay = copy(Judge::Intermediary, 1, usize::MAX);
        let Turn::Judge(batch) = replay.session.turn() else { panic!("the intermediary judges") };
        let model = |centres: &Centres| {
            let federation = &replay.federation;
            let model = Model::new(&federation.work, &federation.terms.hash(), centres, None).unwrap();
            Model { converged: Some(false), ..model }
        };
        let own = batch.queries[0].points()[0].clone();
        assert!(replay.result(&model(&own), true).is_ok_and(|result| result.is_none()));
        let lie = Centres::from_rows(&[vec![0.3], vec![0.31]]).unwrap();
        assert!(replay.result(&model(&lie), true).is_err(), "centres that follow from no total");
        let moved: Vec<Vec<f64>> = own.rows().map(|row| vec![row[0] + 1e-6]).collect();
        assert!(replay.result(&model(&Centres::from_rows(&moved).unwrap()), true).is_err());
        let third = [own.rows().map(<[f64]>::to_vec).collect(), vec![vec![0.5]]].concat();
        assert!(replay.result(&model(&Centres::from_rows(&third).unwrap()), true).is_err(), "another K");
    }
}
