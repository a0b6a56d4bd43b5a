//! One question, from its frame to the state machine: is it one of so many and of the right length, does this site's own copy of
//! the method ask it, may the answer leave, and what is it.

use veilsum_door::{Granted, question_digest};
use veilsum_proto::{Error, Rule, message::Kind, policy::Asked, site::Input};

use super::SiteSession;
use crate::{
    error::Failure,
    oracle,
    question::{self, Batch, Layout, Question},
    random::system_rng,
    role::{dial::Line, hand},
    store::{aside, aside_from, computed},
};

/// Bytes of masks that are computed in the time that a byte of a frame takes, whose signatures or keys are checked.
const MASKS: usize = 128;

impl SiteSession {
    /// Checks a question against plan and policy, computes the answer and hands it to the state machine. Returns the
    /// reason where this site refuses instead.
    pub(super) async fn answer(
        &mut self,
        asked: Asked,
        line: &mut Line,
        frame: &[u8],
    ) -> Result<Option<Failure>, Failure> {
        let refusal = |why: String, rule: Rule| Failure::from(Error::Refused { what: why, rule });
        let checked = match self.check(&asked).await {
            Ok(checked) => self.follows(&checked.question, frame)?.map(|()| checked).map_err(|why| (why, Rule::Opn9)),
            Err(why) => Err((why, Rule::Pol3)),
        };
        let checked = match checked {
            Ok(checked) => aside(|| self.consents(&asked, &checked))?.map(|granted| (checked, granted)),
            Err((why, rule)) => Err(refusal(why, rule)),
        };
        let (Checked { question, drawn, judged, .. }, granted) = match checked {
            Ok(ok) => ok,
            Err(e) => {
                let rule = e.rule.unwrap_or(Rule::Pol3);
                self.site.handle(Input::Refuse { context: asked.context, rule }, &mut system_rng())?;
                return Ok(Some(e));
            }
        };
        if let Some(batch) = &judged {
            let distances = oracle::distances(batch);
            line.tell(Kind::CentreDistances, &distances).await;
            self.distances = Some(distances);
        }
        let cohort = asked.cohort.len();
        let rows = self.config.rows.clone();
        let form = self.config.party.federation.form()?;
        // A mask for every site is as long as the vector.
        let masks = 8 * asked.words * cohort;
        let answer = computed(move || {
            let terms = question::Terms { form, drawn, judged: judged.as_ref(), noise: None };
            question::answer(&question, &*rows, &terms, granted, &mut system_rng())
        })
        .await??;
        aside_from(masks / MASKS, || self.site.handle(answer, &mut system_rng())).await?;
        Ok(None)
    }

    /// What the policy and the ledger say to a question that belongs to the plan. On consent the answer is charged, on disk.
    fn consents(&self, asked: &Asked, checked: &Checked) -> Result<Result<Granted, Failure>, Failure> {
        let (talk, place) = (self.talk()?, self.place(asked.slot, &asked.cohort));
        let (federation, policy) = (&self.config.party.federation, &self.config.site.policy);
        let (facts, offer) = (federation.facts(), federation.offer(&checked.question, &checked.layout));
        // The ledger is held from the look at what was given away to the charge.
        let (again, said) = self.keeper.with(|ledger| {
            let again = ledger.account().has_charged(talk.session, talk.run, asked.slot);
            (again, ledger.consent(&facts, policy, asked, (&talk, place), offer))
        });
        let said = said?;
        if again && said.is_ok() {
            tracing::warn!(
                "this site stopped amid this round, whose answer was charged and did not leave: it was charged again"
            );
        }
        Ok(said.map_err(Failure::from))
    }

    /// [APP-2]: whether the intermediary's word is there for these sites. It is a part of the run's state, so that it stands if either
    /// process is started again.
    async fn is_counted(&mut self, cohort: &[u16]) -> Result<(), String> {
        let Some(run) = &mut self.run else { return Ok(()) };
        if run.counted().is_none() {
            let sites = self.hand.counted(self.site.run().unwrap_or_default()).await?;
            run.count(sites).map_err(|failure| failure.message)?;
        }
        hand::within(run.counted().unwrap_or_default(), cohort)
    }

    /// [OPN-9]: whether this site's own copy of the method asks this next.
    fn follows(&mut self, question: &Question, frame: &[u8]) -> Result<Result<(), String>, Failure> {
        match (&mut self.run, self.site.round_directory()) {
            (Some(run), Some(directory)) => run.ask(frame, directory, question),
            (Some(_), None) => Ok(Err("no round is open".into())),
            (None, _) => Ok(Ok(())),
        }
    }

    async fn check(&mut self, asked: &Asked) -> Result<Checked, String> {
        let question = Question::from_bytes(&asked.query).map_err(|e| e.to_string())?;
        let (domain, form) =
            (self.config.rows.domain().clone(), self.config.party.federation.form().map_err(|e| e.to_string())?);
        let (mut drawn, mut judged) = (true, None);
        self.is_counted(&asked.cohort).await?;
        let layout = match (&question, &self.run) {
            (Question::CountRows, None) => question.layout(&domain, &form),
            (Question::Judge { digest, words }, None) => {
                // Over all runs: the count and one judgement, which may be sent again.
                let name = question_digest(&asked.query);
                if self.keeper.with(|ledger| ledger.account().questions_of(&self.session, &name)) > 2 {
                    return Err("this plan's result was judged before: agree on a new plan".into());
                }
                let batch = self.hand.held(*digest).await?;
                let layout = Layout::of_judged(&batch, &domain, &form);
                // One question has one form: the ledger knows it again by its bytes.
                if layout.as_ref().is_ok_and(|layout| layout.words() as u64 != u64::from(*words)) {
                    return Err("the question does not name its own length".into());
                }
                judged = Some(batch);
                layout
            }
            (Question::Cluster(_) | Question::Drawn { .. }, Some(_)) => {
                let digest = question_digest(&asked.query);
                let of_plan = self.keeper.with(|ledger| ledger.account().questions_of(&self.session, &digest));
                let (federation, floor) = (&self.config.party.federation, &self.config.site.policy.floor);
                drawn = federation.is_drawn(floor, self.site.number(), &question, of_plan)?;
                question.layout(&domain, &form)
            }
            _ => return Err(format!("{} is not this aggregator's to ask", question.name())),
        };
        let layout = layout.map_err(|e| e.to_string())?;
        let words = layout.words();
        if words != asked.words {
            return Err(format!("the answer has {words} words, {} were asked for", asked.words));
        }
        Ok(Checked { question, layout, drawn, judged })
    }
}

/// A question that may be answered.
struct Checked {
    question: Question,
    /// The form of the answer.
    layout: Layout,
    /// Whether this site was drawn for it.
    drawn: bool,
    /// The batch that a judged question is about.
    judged: Option<Batch>,
}
