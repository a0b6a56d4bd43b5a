//! A site's own copy of the method ([OPN-9]): fed with the totals that it recomputed, it says what the coordinator may ask
//! next. Whatever else is asked is refused, and what the coordinator signed is kept for others to judge.

use veilsum_cluster::{Batch, Outcome};
use veilsum_proto::{
    Error,
    evidence::Documents,
    message::{Kind, kind_of},
    roster::PartyId,
    suite::Hash,
};

use super::{client::ClientConfig, consent::Shown, result::RunResult};
use crate::{
    error::{Code, Failure},
    evidence::{self, Case},
    method_session::{Conversation, Turn, near},
    model::{Early, Model},
    question::Question,
    store::{Said, Transcript},
};

/// Who ended a run that a site finishes alone, by name.
pub(super) enum Absent {
    /// The coordinator, which is gone.
    Lost(String),
    /// This site, whose budgets are spent.
    Refused(String),
}

/// The copy and what it was fed with.
pub(super) struct Follower {
    config: ClientConfig,
    conversation: Conversation,
    transcript: Option<Transcript>,
    /// The last question that was answered, and the opening behind it.
    asked: Option<Said>,
    opened: Option<Said>,
    shown: Shown,
}

impl Follower {
    /// The copy at its beginning, or where the process before this one left it, which had got as far as the round
    /// `context`.
    ///
    /// # Errors
    /// A [`Failure`] where what the coordinator said before cannot be read back.
    pub(super) fn new(config: &ClientConfig, session: &Hash, context: Option<Hash>) -> Result<Follower, Failure> {
        let mut follower = Follower {
            config: config.clone(),
            conversation: begin(config)?,
            transcript: None,
            asked: None,
            opened: None,
            shown: Shown::default(),
        };
        let Some(folder) = &config.state else { return Ok(follower) };
        let (mut transcript, said) = Transcript::open(folder, session)?;
        match context {
            None => transcript.clear()?,
            // The question after it may be written down already, and not answered.
            Some(context) => {
                let known = |said: &Said| {
                    kind_of(&said.frame) == Some(Kind::Ask) && said.frame.get(8..40) == Some(&context.0[..])
                };
                if !said.iter().any(known) {
                    return Err(lost("it ends before the last round"));
                }
                follower.replay(said)?;
            }
        }
        follower.transcript = Some(transcript);
        Ok(follower)
    }

    fn documents(&self) -> Documents<'_> {
        Documents { roster: &self.config.roster, terms: &self.config.terms }
    }

    fn replay(&mut self, said: Vec<Said>) -> Result<(), Failure> {
        for said in said {
            if kind_of(&said.frame) == Some(Kind::Ask) {
                self.asked = Some(said);
                continue;
            }
            let Some(ask) = &self.asked else { return Err(lost("it begins in the middle of a round")) };
            let opened = self.documents().opened(&ask.directory, &ask.frame, &said.frame).map_err(lost)?;
            let opened = opened.map_err(|blame| lost(blame.what))?;
            self.take(&opened.values, &opened.cohort)?;
            self.opened = Some(said);
        }
        Ok(())
    }

    /// Another run begins.
    ///
    /// # Errors
    /// A [`Failure`] where the disk or the plan fails.
    pub(super) fn restart(&mut self) -> Result<(), Failure> {
        (self.asked, self.opened) = (None, None);
        self.shown = Shown::default();
        self.conversation = begin(&self.config)?;
        self.transcript.as_mut().map_or(Ok(()), Transcript::clear)
    }

    fn keep(&mut self, said: &Said) -> Result<(), Failure> {
        self.transcript.as_mut().map_or(Ok(()), |transcript| transcript.add(said))
    }

    /// Takes a question before it is answered. A sentence for the operator where it is not the copy's.
    ///
    /// # Errors
    /// A [`Failure`] where it cannot be written down.
    pub(super) fn ask(
        &mut self,
        frame: &[u8],
        directory: Hash,
        question: &Question,
    ) -> Result<Result<(), String>, Failure> {
        let said = Said { directory, frame: frame.to_vec() };
        if !self.conversation.expects(question) {
            let what = match self.conversation.turn() {
                Turn::Ask(expected, _) => format!(
                    "the coordinator asked {} where the method, run on the totals it opened, asks {}, or asks it elsewhere",
                    question.name(),
                    expected.name()
                ),
                _ => format!("the coordinator asked {} after the method's last question", question.name()),
            };
            let kept = self.accuse_course(said, &what);
            return Ok(Err(format!("{what}{kept}")));
        }
        if self.asked.as_ref() != Some(&said) {
            self.keep(&said)?;
            self.asked = Some(said);
        }
        Ok(Ok(()))
    }

    /// Takes the total of the last question, which this site has recomputed.
    ///
    /// # Errors
    /// A [`Failure`] where it cannot be written down, or is none that rows can give.
    pub(super) fn total(
        &mut self,
        frame: &[u8],
        directory: Hash,
        values: &[u64],
        cohort: &[u16],
    ) -> Result<(), Failure> {
        let said = Said { directory, frame: frame.to_vec() };
        if self.opened.as_ref() == Some(&said) {
            // The process before this one had taken it.
            return Ok(());
        }
        self.keep(&said)?;
        self.opened = Some(said);
        self.take(values, cohort)
    }

    fn take(&mut self, values: &[u64], cohort: &[u16]) -> Result<(), Failure> {
        self.conversation.take(values, cohort)?;
        let before = self.shown.of(cohort, self.config.terms.max_rows);
        self.shown = Shown { rows: self.conversation.rows_shown(cohort).max(before), cohort: cohort.to_vec() };
        Ok(())
    }

    /// What the totals so far have shown.
    pub(super) fn shown(&self) -> Shown {
        self.shown.clone()
    }

    /// Whether the intermediary is to judge this now.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub(super) fn held(&self, batch: &Batch) -> Result<(), String> {
        if self.conversation.expects_judged(batch) {
            return Ok(());
        }
        Err("it is not what the method, run on the opened totals, has judged".into())
    }

    /// Whether the run is said to have come to its end and the copy has not: the last totals were not opened to this site, which
    /// was in no more of them, or the coordinator lies.
    pub(super) fn left_behind(&self, model: &Model) -> bool {
        matches!(self.conversation.turn(), Turn::Ask(..)) && model.ended_early.is_none()
    }

    /// The copy's own result, where the coordinator's is the same. Where the intermediary judges there is none: only it knows
    /// which of several K was chosen.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub(super) fn result(&self, model: &Model) -> Result<Option<RunResult>, String> {
        let outcome = match (self.conversation.turn(), &model.ended_early) {
            (Turn::Done(outcome), None) => (**outcome).clone(),
            (Turn::Judge(_), None) => return Ok(None),
            (Turn::Ask(..), None) => return Err("the run is not over by the totals that were opened".into()),
            (Turn::Done(_), Some(_)) => {
                return Err("it says that the run ended early, and the method had its result".into());
            }
            (_, Some(_)) => self.conversation.finish().ok_or("no total that was opened has moved a centre")?,
        };
        if outcome.n_total.is_some_and(|rows| rows < self.config.terms.min_total_rows) {
            return Err("its rows are fewer than the plan's floor".into());
        }
        let early = model.ended_early.clone();
        let early = early.map(|early| Early::of(&outcome, &early.reason, early.lost, early.refused));
        let own = self.result_of(&outcome, early).map_err(|failure| failure.message)?;
        if own.model.as_ref().is_some_and(|own| near(own, model)) {
            Ok(Some(own))
        } else {
            Err("it is not the result of the totals that were opened".into())
        }
    }

    /// The copy's own result where the coordinator says no more: to its end where every total was opened.
    /// `None` before a round has moved a centre, and where its rows are not known to reach the plan's floor.
    pub(super) fn alone(&self, reason: &str, absent: Absent) -> Option<Result<RunResult, Failure>> {
        let floor = self.config.terms.min_total_rows;
        if let Turn::Done(outcome) = self.conversation.turn() {
            return self.conversation.reaches(outcome, floor, None).then(|| self.result_of(outcome, None));
        }
        let outcome = self.conversation.finish()?;
        if !self.conversation.reaches(&outcome, floor, None) {
            return None;
        }
        let (lost, refused) = match absent {
            Absent::Lost(who) => (vec![who], Vec::new()),
            Absent::Refused(who) => (Vec::new(), vec![who]),
        };
        let early = Early::of(&outcome, reason, lost, refused);
        Some(self.result_of(&outcome, Some(early)))
    }

    fn result_of(&self, outcome: &Outcome, early: Option<Early>) -> Result<RunResult, Failure> {
        let about = (&*self.config.work, &*self.config.terms, &*self.config.roster);
        RunResult::of(about, outcome, &self.conversation, None, early)
    }

    /// What a false opening or a question that contradicts an opening leaves behind: a half-sentence on where the evidence is.
    pub(super) fn accuse(&self, error: &Error, frame: &[u8], directory: Option<Hash>) -> String {
        let Some(rule) = error.rule().map(|rule| rule.0) else { return String::new() };
        let said = |frame: &[u8]| Said { directory: directory.unwrap_or_default(), frame: frame.to_vec() };
        match (rule, kind_of(frame), &self.asked, &self.opened) {
            ("OPN-8", Some(Kind::Opening), _, Some(before)) => {
                self.write(error, Case::Twice, &[before.clone(), said(frame)])
            }
            (_, Some(Kind::Opening), Some(ask), _) => self.write(error, Case::Opening, &[ask.clone(), said(frame)]),
            ("OPN-7", Some(Kind::Ask), _, Some(_)) => self.accuse_course(said(frame), &error.to_string()),
            _ => String::new(),
        }
    }

    fn accuse_course(&self, last: Said, what: &str) -> String {
        let Some(Ok(mut frames)) = self.transcript.as_ref().map(Transcript::all) else { return String::new() };
        frames.push(last);
        self.written(("OPN-9", what), Case::Course, &frames)
    }

    fn write(&self, error: &Error, case: Case, frames: &[Said]) -> String {
        let what = error.to_string();
        self.written((error.rule().map_or("", |rule| rule.0), &what), case, frames)
    }

    fn written(&self, claim: (&str, &str), case: Case, frames: &[Said]) -> String {
        let Some(folder) = &self.config.state else { return String::new() };
        match evidence::write(folder, self.documents(), PartyId::Coordinator, claim, case, frames) {
            Ok(path) => kept(&path),
            Err(failure) => format!("; the evidence could not be kept: {}", failure.message),
        }
    }
}

fn kept(path: &std::path::Path) -> String {
    format!(" (signed evidence: {})", path.display())
}

fn begin(config: &ClientConfig) -> Result<Conversation, Failure> {
    Conversation::of(&config.work, config.form()?)
}

fn lost(why: impl std::fmt::Display) -> Failure {
    Failure::new(
        Code::Input,
        format!("what the coordinator said before this process began cannot be followed any more: {why}"),
        "put its .transcript file back into the state folder; without it this site takes no further part under this plan: agree \
         on a new one",
    )
}
