//! The state of a run at a site: over whom the floor is reached, and the site's own
//! copy of the method with what it was fed with. All of it follows from what was said, which stands in one file ([`Told`]) and is
//! taken in one place, when it comes and when a restarted process reads it. What the copy does not ask is refused.

use veilsum_proto::{
    message::{Kind, context_of, kind_of},
    recompute::Documents,
    suite::Hash,
};

use super::config::ClientConfig;
use crate::{
    error::{Code, Failure},
    question::{self, Batch, Question},
    replay::Replay,
    store::{Journal, Said, Told, openings_to_bytes},
};

/// How far a run is.
pub(super) struct RunState {
    config: ClientConfig,
    session: Hash,
    /// Over whom the floor is reached.
    counted: Option<Vec<u16>>,
    replay: Replay,
    /// The last question that was answered, and the opening behind it.
    asked: Option<Said>,
    opened: Option<Said>,
    /// Digest of the final centres that are to be judged.
    judged: Option<Hash>,
    transcript: Option<Journal<Told>>,
    /// A total could not be written down: nothing may leave any more, and the file of openings would lack it.
    gap: bool,
}

impl RunState {
    /// A run at its beginning, or as the process before this one left it, which had got as far as the round `context`.
    ///
    /// # Errors
    /// A [`Failure`] if what was said before cannot be read back.
    pub(super) fn open(config: &ClientConfig, session: Hash, context: Option<Hash>) -> Result<RunState, Failure> {
        let mut state = RunState::begun(config.clone(), session, None)?;
        let Some(folder) = &config.state else { return Ok(state) };
        let transcript = match context {
            // Nothing was answered, so nothing rests on what an earlier process left.
            None => Journal::empty(folder, &session)?,
            // The question after it may be written down already, and not answered.
            Some(context) => {
                let (transcript, told) = Journal::open(folder, &session)?;
                let known = |told: &Told| matches!(told, Told::Said(said) if is_ask(said) && context_of(&said.frame) == Some(context));
                if !told.iter().any(known) {
                    return Err(lost("it ends before the last round"));
                }
                told.into_iter().try_for_each(|told| state.take_up(told))?;
                transcript
            }
        };
        state.transcript = Some(transcript);
        Ok(state)
    }

    fn begun(config: ClientConfig, session: Hash, transcript: Option<Journal<Told>>) -> Result<RunState, Failure> {
        let replay = Replay::new(config.party.federation.clone())?;
        let (counted, asked, opened, judged, gap) = (None, None, None, None, false);
        Ok(RunState { config, session, counted, replay, asked, opened, judged, transcript, gap })
    }

    fn take_up(&mut self, told: Told) -> Result<(), Failure> {
        match told {
            Told::Counted(sites) => self.is_counted(sites),
            Told::Judged(batch) => {
                self.replay.judges(&batch).map_err(lost)?;
                self.judged = Some(question::digest(&batch));
            }
            Told::Said(said) if is_ask(&said) => {
                let query = self.documents().asked(&said.directory, &said.frame).map_err(lost)?.ask.query;
                let question = Question::from_bytes(&query).map_err(lost)?;
                self.replay.ask(&question).map_err(lost)?;
                self.asked = Some(said);
            }
            Told::Said(said) => {
                let Some(ask) = &self.asked else { return Err(lost("it begins in the middle of a round")) };
                let opened = self.documents().opened(&ask.directory, &ask.frame, &said.frame).map_err(lost)?;
                let opened = opened.map_err(|blame| lost(blame.what))?;
                self.replay.session.take(&opened.values, &opened.cohort)?;
                self.opened = Some(said);
            }
        }
        Ok(())
    }

    /// The copy of the method.
    pub(super) fn replay(&self) -> &Replay {
        &self.replay
    }

    /// Over whom the floor is reached, once it is known ([APP-2]).
    pub(super) fn counted(&self) -> Option<&[u16]> {
        self.counted.as_deref()
    }

    /// The intermediary says that the rows of these sites reach the plan's floor. It is on disk with the next question.
    ///
    /// # Errors
    /// A [`Failure`] if it cannot be written down.
    pub(super) fn count(&mut self, sites: Vec<u16>) -> Result<(), Failure> {
        self.keep(Told::Counted(sites.clone()))?;
        self.is_counted(sites);
        Ok(())
    }

    fn is_counted(&mut self, sites: Vec<u16>) {
        self.replay.session.is_counted(&sites);
        self.counted = Some(sites);
    }

    /// All that the coordinator said, as a file of openings has it, if this site keeps it.
    pub(super) fn openings(&self) -> Option<Vec<u8>> {
        let folder = self.config.state.as_ref().filter(|_| !self.gap)?;
        let (told, _) = Journal::<Told>::look(folder, &self.session).ok()??;
        let said = |told| match told {
            Told::Said(said) => Some(said),
            _ => None,
        };
        Some(openings_to_bytes(&told.into_iter().filter_map(said).collect::<Vec<_>>()))
    }

    fn documents(&self) -> Documents<'_> {
        Documents { roster: &self.config.party.federation.roster, terms: &self.config.party.federation.terms }
    }

    /// Another run begins.
    ///
    /// # Errors
    /// A [`Failure`] if the disk or the plan fails.
    pub(super) fn restart(&mut self) -> Result<(), Failure> {
        self.transcript.as_mut().map_or(Ok(()), |transcript| transcript.rewrite(&[]))?;
        *self = RunState::begun(self.config.clone(), self.session, self.transcript.take())?;
        Ok(())
    }

    /// What was said so far is on disk: before this site answers, and before it waits for more.
    ///
    /// # Errors
    /// A [`Failure`] if it cannot be written.
    pub(super) fn sync(&mut self) -> Result<(), Failure> {
        self.transcript.as_mut().map_or(Ok(()), Journal::sync)
    }

    /// Whether what was said may not be on disk yet.
    pub(super) fn is_ahead(&self) -> bool {
        self.transcript.as_ref().is_some_and(Journal::is_ahead)
    }

    fn keep(&mut self, told: Told) -> Result<(), Failure> {
        self.transcript.as_mut().map_or(Ok(()), |transcript| transcript.write(&told))
    }

    /// Takes a question before it is answered. A sentence for the operator if it is not the copy's ([OPN-9]).
    ///
    /// # Errors
    /// A [`Failure`] if it cannot be written down.
    pub(super) fn ask(
        &mut self,
        frame: &[u8],
        directory: Hash,
        question: &Question,
    ) -> Result<Result<(), String>, Failure> {
        if let Err(what) = self.replay.ask(question) {
            return Ok(Err(what));
        }
        let said = Said { directory, frame: frame.to_vec() };
        if self.asked.as_ref() != Some(&said) {
            self.keep(Told::Said(said.clone()))?;
            self.asked = Some(said);
        }
        Ok(Ok(()))
    }

    /// Takes the total of the last question, which this site has recomputed. Where there is no space to write it down the run can end with
    /// it all the same, for no further question can be written down and answered.
    ///
    /// # Errors
    /// A [`Failure`] if it cannot be written down for good, or is none that rows can give.
    pub(super) fn total(&mut self, frame: &[u8], directory: Hash, sums: &[u64], cohort: &[u16]) -> Result<(), Failure> {
        let said = Said { directory, frame: frame.to_vec() };
        if self.opened.as_ref() == Some(&said) {
            // The process before this one had taken it.
            return Ok(());
        }
        match self.keep(Told::Said(said.clone())) {
            Err(failure) if failure.code == Code::Storage => {
                tracing::warn!("{}", failure.message);
                self.gap = true;
            }
            kept => kept?,
        }
        self.opened = Some(said);
        self.replay.session.take(sums, cohort)
    }

    /// Takes the final centres that the intermediary will ask about; they are on disk then.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub(super) fn judged(&mut self, batch: &Batch) -> Result<(), String> {
        let digest = question::digest(batch);
        if self.judged == Some(digest) {
            // A coordinator says it again while the intermediary is away. It is on disk, and stands there once.
            return Ok(());
        }
        self.replay.judges(batch)?;
        self.keep(Told::Judged(batch.clone())).and_then(|()| self.sync()).map_err(|failure| failure.message)?;
        self.judged = Some(digest);
        Ok(())
    }
}

fn is_ask(said: &Said) -> bool {
    kind_of(&said.frame) == Some(Kind::Ask)
}

fn lost(why: impl std::fmt::Display) -> Failure {
    let what = format!("what the coordinator said before this process began cannot be followed any more: {why}");
    let next = "put its .transcript file back into the state folder; without it this site takes no further part under this plan: agree \
         on a new one";
    Failure::new(Code::Input, what, next)
}
