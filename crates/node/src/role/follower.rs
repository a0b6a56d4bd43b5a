//! A site's own copy of the method with what it was fed with: whatever the copy does not ask is refused, and what the coordinator
//! signed is kept for others to judge.

use veilsum_proto::{
    Error, Rule,
    evidence::Documents,
    message::{Kind, context_of, kind_of},
    roster::PartyId,
    suite::Hash,
};

use super::config::ClientConfig;
use crate::{
    error::{Code, Failure},
    evidence::{self, Case},
    question::Question,
    replay::Replay,
    store::{Said, Transcript, openings_to_bytes},
};

/// The copy and what it was fed with.
pub(super) struct Follower {
    config: ClientConfig,
    replay: Replay,
    transcript: Option<Transcript>,
    /// The last question that was answered, and the opening behind it.
    asked: Option<Said>,
    opened: Option<Said>,
}

impl Follower {
    /// The copy of the method.
    pub(super) fn replay(&self) -> &Replay {
        &self.replay
    }

    /// The intermediary says that the rows of these sites reach the plan's floor ([APP-2]).
    pub(super) fn is_counted(&mut self, sites: &[u16]) {
        self.replay.is_counted(sites);
    }

    /// The copy at its beginning, or where the process before this one left it, which had got as far as the round
    /// `context`.
    ///
    /// # Errors
    /// A [`Failure`] where what the coordinator said before cannot be read back.
    pub(super) fn new(config: &ClientConfig, session: &Hash, context: Option<Hash>) -> Result<Follower, Failure> {
        let mut follower = Follower {
            config: config.clone(),
            replay: Replay::new(
                config.party.federation.roster.clone(),
                config.party.federation.terms.clone(),
                config.party.federation.work.clone(),
            )?,
            transcript: None,
            asked: None,
            opened: None,
        };
        let Some(folder) = &config.state else { return Ok(follower) };
        let (mut transcript, said) = Transcript::open(folder, session)?;
        match context {
            None => transcript.clear()?,
            // The question after it may be written down already, and not answered.
            Some(context) => {
                let known =
                    |said: &Said| kind_of(&said.frame) == Some(Kind::Ask) && context_of(&said.frame) == Some(context);
                if !said.iter().any(known) {
                    return Err(lost("it ends before the last round"));
                }
                follower.take_up(said)?;
            }
        }
        follower.transcript = Some(transcript);
        Ok(follower)
    }

    /// All that the coordinator said, as a file of openings has it, where this site keeps it.
    pub(super) fn openings(&self) -> Option<Vec<u8>> {
        let said = self.transcript.as_ref()?.all().ok()?;
        Some(openings_to_bytes(&said))
    }

    fn documents(&self) -> Documents<'_> {
        Documents { roster: &self.config.party.federation.roster, terms: &self.config.party.federation.terms }
    }

    fn take_up(&mut self, said: Vec<Said>) -> Result<(), Failure> {
        for said in said {
            if kind_of(&said.frame) == Some(Kind::Ask) {
                self.asked = Some(said);
                continue;
            }
            let Some(ask) = &self.asked else { return Err(lost("it begins in the middle of a round")) };
            let opened = self.documents().opened(&ask.directory, &ask.frame, &said.frame).map_err(lost)?;
            let opened = opened.map_err(|blame| lost(blame.what))?;
            self.replay.take(&opened.values, &opened.cohort)?;
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
        self.replay.restart()?;
        self.transcript.as_mut().map_or(Ok(()), Transcript::clear)
    }

    /// What the coordinator said so far is on disk: before this site answers, and before it waits for more.
    ///
    /// # Errors
    /// A [`Failure`] where it cannot be written.
    pub(super) fn sync(&mut self) -> Result<(), Failure> {
        self.transcript.as_mut().map_or(Ok(()), Transcript::sync)
    }

    /// Whether what the coordinator said may not be on disk yet.
    pub(super) fn is_ahead(&self) -> bool {
        self.transcript.as_ref().is_some_and(Transcript::is_ahead)
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
        if let Err(what) = self.replay.ask(question) {
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
        self.replay.take(values, cohort)
    }

    /// What a false opening or a question that contradicts an opening leaves behind: a half-sentence on where the evidence is.
    pub(super) fn accuse(&self, error: &Error, frame: &[u8], directory: Option<Hash>) -> String {
        let Some(rule) = error.rule() else { return String::new() };
        let said = |frame: &[u8]| Said { directory: directory.unwrap_or_default(), frame: frame.to_vec() };
        let what = error.to_string();
        match (rule, kind_of(frame), &self.asked, &self.opened) {
            (Rule::Opn8, Some(Kind::Opening), _, Some(before)) => {
                self.written((rule, &what), Case::Twice, &[before.clone(), said(frame)])
            }
            (_, Some(Kind::Opening), Some(ask), _) => {
                self.written((rule, &what), Case::Opening, &[ask.clone(), said(frame)])
            }
            (Rule::Opn7, Some(Kind::Ask), _, Some(_)) => self.accuse_course(said(frame), &what),
            _ => String::new(),
        }
    }

    fn accuse_course(&self, last: Said, what: &str) -> String {
        let Some(Ok(mut frames)) = self.transcript.as_ref().map(Transcript::all) else { return String::new() };
        frames.push(last);
        self.written((Rule::Opn9, what), Case::Course, &frames)
    }

    fn written(&self, claim: (Rule, &str), case: Case, frames: &[Said]) -> String {
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

fn lost(why: impl std::fmt::Display) -> Failure {
    Failure::new(
        Code::Input,
        format!("what the coordinator said before this process began cannot be followed any more: {why}"),
        "put its .transcript file back into the state folder; without it this site takes no further part under this plan: agree \
         on a new one",
    )
}
