//! One run under a plan with one real site among others in memory: the site's own program from its greeting to its end, over links
//! that are channels, in virtual time, with sown randomness. Both aggregators are the real state machines.
//!
//! Beside the real site stands a *twin*, its state machine alone with the same randomness. It says what the site's answer is before
//! the masks, noise included, and that every frame of the protocol is the one that it has to be. So that the totals of another
//! world, in which the site has other rows, are those of this one, another site adds the difference.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use tokio::{task::JoinHandle, time::timeout};
use veilsum_cluster::Batch;
use veilsum_node::{
    answerer::Answerer,
    app_messages::{self, Aborted, CountReady, Finished, Held, Welcome},
    carrier::{Carrier, Credentials, Listener, listener::Door, only},
    documents::{Loaded, RowsFrom, load_rows},
    egress::Egress,
    error::Failure,
    method_session::{MethodSession, Turn},
    question::{self, Layout, Question},
    random::sown,
    result::RunResult,
    role::client::{self, ClientConfig, ClientReport},
    table::RowRules,
};
use veilsum_proto::{
    aggregator::{self, Millis},
    identity::{Identity, from_hex},
    message::{Kind, kind_of},
    noise,
    policy::Asked,
    roster::PartyId,
    site,
    standing::{Answered, Standing},
};
use veilsum_testkit::memory::Memory;

use super::{
    plans::{Case, Trick},
    talk::{Talk, toy},
};

/// What the real site did on one thing that it was told: a frame of a kind from an aggregator, or nothing for its start and its end.
pub(crate) struct Step {
    pub told: Option<(PartyId, Kind)>,
    /// The frame that it was told.
    pub frame: Vec<u8>,
    pub sent: Vec<(PartyId, Vec<u8>)>,
}

/// What a run showed of the site.
#[derive(Default)]
pub(crate) struct Seen {
    pub steps: Vec<Step>,
    /// Its answers before the masks, in order.
    pub answers: Vec<Vec<u64>>,
    /// How its process ended: its exit code, 0 for a good end; nothing where it still waits.
    pub code: Option<u8>,
    /// Where its processes died: so many steps were over then.
    pub deaths: Vec<usize>,
}

/// A site's process dies when answers of these numbers to the coordinator leave, counted from 1, and another one comes back to its state.
pub(crate) struct Death<'a> {
    /// Folder of its state, beside which its head is.
    pub state: PathBuf,
    pub at: Vec<u32>,
    /// What happens to the state after a death of this number, counted from 1.
    pub between: &'a dyn Fn(usize),
    /// Rows that the process has which comes back after the last death, if they are others.
    pub then: Option<Rows>,
}

/// The rows of a site, as it would read them.
pub(crate) type Rows = Arc<dyn Answerer>;

/// Reads a table as a site does, which is not ready where it fails.
pub(crate) fn read(case: &Case, file: &PathBuf) -> Result<Rows, Failure> {
    let work = &case.cast.federation.work;
    let names = work.headers().map(|name| (name.to_owned(), name.to_owned())).collect();
    let rules = RowRules { missing: case.missing, columns: names, ..RowRules::default() };
    let from = RowsFrom { rules: Arc::new(rules), ..RowsFrom::file(file) };
    let Loaded { rows, .. } = load_rows(&case.cast.federation, &from)?;
    Ok(rows)
}

struct Play<'a> {
    case: &'a Case,
    death: Option<&'a Death<'a>>,
    /// Answers to the coordinator.
    answered: u32,
    /// The real site's rows, and those of the others.
    rows: Vec<Rows>,
    /// What the other world's site answered.
    like: Option<&'a Seen>,
    talks: [Talk; 2],
    standing: Vec<Standing>,
    twin_rng: ChaCha20Rng,
    rng: ChaCha20Rng,
    judged: Option<Batch>,
    seen: Seen,
    site: Option<JoinHandle<Result<ClientReport, Failure>>>,
}

static RUNS: AtomicU64 = AtomicU64::new(0);

const COORDINATOR: usize = 0;
const INTERMEDIARY: usize = 1;
const ROLES: [PartyId; 2] = [PartyId::Coordinator, PartyId::Intermediary];

/// The longest that a site waits for anything before it refuses.
const LONG: Duration = Duration::from_secs(40);

/// Runs the case with these rows at the real site; where another world is given, its totals are those of that one.
pub(super) fn run(case: &Case, rows: &[Rows], like: Option<&Seen>, seed: u64) -> Seen {
    run_with(case, rows, (like, None), seed)
}

/// A run in which the real site's process dies. It has no twin.
pub(crate) fn run_and_die(case: &Case, rows: &[Rows], death: &Death<'_>, seed: u64) -> Seen {
    run_with(case, rows, (None, Some(death)), seed)
}

fn run_with(case: &Case, rows: &[Rows], (like, death): (Option<&Seen>, Option<&Death<'_>>), seed: u64) -> Seen {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.expect("a runtime");
    let of = |party: u64| ChaCha20Rng::seed_from_u64(seed.wrapping_mul(31).wrapping_add(party));
    sown::sow(Some(Box::new(of(0))));
    let mut rng = of(1);
    let talks = ROLES.map(|role| Talk::new(case, role, &mut rng));
    let (rows, twin_rng) = (rows.to_vec(), of(0));
    // In a later run of the same site the others have answered more than in those before ([LED-11]).
    let number = if death.is_some() { RUNS.fetch_add(1_000, Ordering::Relaxed) } else { 0 };
    let states = |identity: &Arc<Identity>| Standing {
        account: Some(identity.account()),
        answered: Answered { number, ..Answered::default() },
    };
    let standing = case.cast.identities[2..].iter().map(states).collect();
    let (judged, seen, site) = (None, Seen::default(), None);
    let mut world = Play { case, death, answered: 0, rows, like, talks, standing, twin_rng, rng, judged, seen, site };
    runtime.block_on(async {
        world.begin().await;
        world.course().await;
        world.end().await;
    });
    sown::sow(None);
    world.seen
}

impl Play<'_> {
    /// The real site starts, dials and is let in.
    async fn begin(&mut self) {
        let memory = Memory::default();
        let mut listeners = Vec::new();
        for talk in &self.talks {
            let keys = vec![self.case.cast.identities[2].public().0];
            let (door, links) = Door::new(only(keys), app_messages::header_check);
            let credentials = Credentials::from_seed(&talk.identity.seed()).expect("credentials");
            let port = memory.open(([127, 0, 0, 1], 0).into(), &credentials, door.clone()).await.expect("a port");
            listeners.push(Listener { port, links });
        }
        let mut party = self.case.cast.party(2);
        party.carrier = Arc::new(memory);
        let then =
            self.death.filter(|death| self.seen.deaths.len() == death.at.len()).and_then(|death| death.then.clone());
        let rows = then.unwrap_or_else(|| self.rows[0].clone());
        let config = ClientConfig {
            party,
            site: self.case.policy.clone().into(),
            rows,
            coordinator: listeners[COORDINATOR].local_addr().into(),
            intermediary: listeners[INTERMEDIARY].local_addr().into(),
            state: self.death.map(|death| death.state.clone()),
            patience: Duration::from_secs(5),
            agreed: self.case.agreed || self.case.cast.federation.work.recipe.noise.is_some(),
        };
        self.site = Some(tokio::spawn(client::run(config)));
        let mut greeted = Step { told: None, frame: Vec::new(), sent: Vec::new() };
        for (which, listener) in listeners.iter_mut().enumerate() {
            let Ok(Some(link)) = timeout(Duration::from_millis(50), listener.accept()).await else { continue };
            let (mut sender, mut receiver) = link.split();
            let hello = receiver.recv().await.expect("a link").expect("a greeting");
            greeted.sent.push((ROLES[which], hello));
            let talk = &mut self.talks[which];
            let welcome = Welcome { software: "a test".into() };
            let session = app_messages::greeting_session();
            let frame = app_messages::frame(&talk.identity, &session, Kind::Welcome, &welcome);
            sender.send(&Egress::foreign(&frame)).await.expect("a link");
            talk.link = Some((sender, receiver));
        }
        self.seen.steps.push(greeted);
    }

    /// Tells the real site this, and takes down what it sends on both links until it waits.
    async fn tell(&mut self, which: usize, frame: &[u8], patience: Duration) {
        if let Some((sender, _)) = &mut self.talks[which].link {
            // Where it has hung up, it hears nothing.
            let _ = sender.send(&Egress::foreign(frame)).await;
        }
        let told = kind_of(frame).map(|kind| (ROLES[which], kind));
        let step = Step { told, frame: frame.to_vec(), sent: self.listen(patience).await };
        self.seen.steps.push(step);
    }

    async fn listen(&mut self, patience: Duration) -> Vec<(PartyId, Vec<u8>)> {
        let mut sent = Vec::new();
        for which in [COORDINATOR, INTERMEDIARY] {
            // Time stands still while anybody has work, so that this waits for everything that follows.
            while let Some((_, receiver)) = &mut self.talks[which].link
                && let Ok(frame) = timeout(patience, receiver.recv()).await
            {
                match frame {
                    Ok(Some(frame)) => {
                        self.is_from_the_real_site(which, &frame);
                        sent.push((ROLES[which], frame));
                    }
                    _ => {
                        self.talks[which].link = None;
                        self.talks[which].hears(aggregator::Input::Detached(0));
                    }
                }
            }
        }
        sent
    }

    /// A frame of the protocol is what the twin sends, too; an answer is it once the twin has given the same.
    fn is_from_the_real_site(&mut self, which: usize, frame: &[u8]) {
        let kind = kind_of(frame).expect("a whole frame");
        self.answered += u32::from(which == COORDINATOR && kind == Kind::MaskedInput);
        if matches!(kind, Kind::CentreDistances | Kind::Countersigned) {
            return;
        }
        if self.death.is_some() {
            return self.talks[which].inbox.push((0, frame.to_vec()));
        }
        let asked = matches!(kind, Kind::MaskedInput | Kind::Refusal).then(|| self.talks[which].asked.take()).flatten();
        if let Some(asked) = asked {
            let input = match kind {
                Kind::MaskedInput => self.answer(which, 0, &asked),
                _ => {
                    let rule: String = veilsum_testkit::wire::parts(frame).read();
                    site::Input::Refuse { context: asked.context, rule: rule.parse().expect("a rule of the index") }
                }
            };
            let site = &mut self.talks[which].sites[0];
            site.handle(input, &mut self.twin_rng).expect("the twin answers");
            self.drain_twin(which);
        }
        let talk = &mut self.talks[which];
        let twins = talk.twins.pop_front();
        assert_eq!(twins.as_deref().and_then(kind_of), Some(kind), "the twin does otherwise");
        assert!(twins.as_deref() == Some(frame), "the twin's {kind:?} is another one");
        talk.inbox.push((0, frame.to_vec()));
    }

    /// The answer of a state machine, in plain: the real site's twin has its noise.
    fn answer(&mut self, which: usize, i: usize, asked: &Asked) -> site::Input<'static> {
        let federation = &self.case.cast.federation;
        let question = Question::from_bytes(&asked.query).ok();
        let drawn = match (&question, federation.work.sampling) {
            (Some(Question::Drawn { number, .. }), Some(s)) => s.drawn(*number, federation.roster.sites.len())[i],
            _ => true,
        };
        let form = federation.form().expect("a form");
        let key = form.noise.map(|_| match i {
            0 => noise::Key::random(&mut self.twin_rng),
            _ => noise::Key::from_bytes([i as u8; 32]),
        });
        let terms = question::Terms { form, drawn, judged: self.judged.as_ref(), noise: key.as_ref() };
        let values = question.and_then(|question| question::contribute(&question, &*self.rows[i], &terms).ok());
        let mut values = values.unwrap_or_else(|| vec![0; asked.words]);
        values.resize(asked.words, 0);
        if i == 0 {
            self.seen.answers.push(values.clone());
        }
        if i == 1
            && let Some(ours) = self.seen.answers.last()
            && let Some(theirs) = self.like.and_then(|like| like.answers.get(self.seen.answers.len() - 1))
            && ours.len() == theirs.len()
            && ours.len() == values.len()
        {
            let owed = theirs.iter().zip(ours).map(|(theirs, ours)| theirs.wrapping_sub(*ours));
            values.iter_mut().zip(owed).for_each(|(value, owed)| *value = value.wrapping_add(owed));
        }
        let round = (asked.run, asked.slot);
        let answered = match self.talks[which].answered[i].replace(round) {
            Some(last) if last == round => self.standing[i].answered,
            _ => self.standing[i].answered.and(&self.talks[which].session, &asked.run, asked.slot),
        };
        self.standing[i] = Standing { answered, ..self.standing[i] };
        match asked.consent(&toy(), federation.terms.least(asked.sites), 1) {
            Ok(consent) => site::Input::Contribute { consent, values },
            Err(e) => panic!("the others' floor refuses: {e}"),
        }
    }

    fn drain_twin(&mut self, which: usize) {
        while let Some(output) = self.talks[which].sites[0].poll() {
            match output {
                site::Output::Send { bytes, .. } => self.talks[which].twins.push_back(bytes.to_vec()),
                site::Output::Event(site::Event::Asked(asked)) => self.talks[which].asked = Some(asked),
                _ => {}
            }
        }
    }

    /// One frame for the real site and its twin.
    async fn deliver(&mut self, which: usize, frame: &[u8], patience: Duration) {
        if self.death.is_some() {
            self.tell(which, frame, patience).await;
            return self.dies(which).await;
        }
        let (standing, talk) = (self.standing[0], &mut self.talks[which]);
        talk.sites[0].set_standing(standing);
        // Where it is an error there, the real site says what it makes of it.
        let _ = talk.sites[0].handle(site::Input::Message(frame), &mut self.twin_rng);
        self.drain_twin(which);
        self.tell(which, frame, patience).await;
    }

    /// Where its time has come: what the process sent last is lost with it.
    async fn dies(&mut self, which: usize) {
        let dead = self.seen.deaths.len();
        let Some(death) = self.death.filter(|death| death.at.get(dead) == Some(&self.answered)) else { return };
        self.talks[which].inbox.retain(|(from, _)| *from != 0);
        if let Some(site) = self.site.take() {
            site.abort();
            assert!(site.await.is_err_and(|ended| ended.is_cancelled()), "it ended before");
        }
        // Until both of its conversations are gone.
        tokio::time::sleep(SHORT).await;
        for talk in &mut self.talks {
            talk.link = None;
            talk.hears(aggregator::Input::Detached(0));
        }
        self.seen.deaths.push(self.seen.steps.len());
        (death.between)(self.seen.deaths.len());
        self.begin().await;
        for talk in &mut self.talks {
            talk.hears(aggregator::Input::Attached(0));
        }
        if let Some(site) = &self.site
            && site.is_finished()
            && let Some(site) = self.site.take()
        {
            self.seen.code = Some(code(site).await);
        }
    }

    /// One frame for another site.
    fn deliver_to(&mut self, which: usize, i: usize, frame: &[u8]) {
        let (standing, rng) = (self.standing[i], &mut self.rng);
        let talk = &mut self.talks[which];
        talk.sites[i].set_standing(standing);
        let _ = talk.sites[i].handle(site::Input::Message(frame), rng);
        while let Some(output) = self.talks[which].sites[i].poll() {
            match output {
                site::Output::Send { bytes, .. } => self.talks[which].inbox.push((i as u16, bytes.to_vec())),
                site::Output::Event(site::Event::Asked(asked)) => {
                    let input = self.answer(which, i, &asked);
                    let _ = self.talks[which].sites[i].handle(input, &mut self.rng);
                }
                _ => {}
            }
        }
    }

    /// Carries frames until the aggregator reports what is wanted; nothing where the run ends before.
    async fn until(
        &mut self,
        which: usize,
        patience: Duration,
        wanted: impl Fn(&aggregator::Event) -> bool,
    ) -> Option<aggregator::Event> {
        let mut idle = 0;
        while idle < 8 {
            let mut frames: Vec<(u16, Arc<Vec<u8>>)> = Vec::new();
            let mut found = None;
            while let Some(output) = self.talks[which].hub.poll() {
                match output {
                    aggregator::Output::Send { to, bytes } => frames.push((to, bytes)),
                    aggregator::Output::Event(aggregator::Event::Failed(_)) => return None,
                    aggregator::Output::Event(event) if wanted(&event) => found = Some(event),
                    _ => {}
                }
            }
            frames.sort_by_key(|(to, _)| *to);
            let moved = !frames.is_empty();
            for (to, frame) in frames {
                match usize::from(to) {
                    0 => {
                        self.deliver(which, &frame, patience).await;
                        if self.case.twice {
                            self.deliver(which, &frame, patience).await;
                        }
                    }
                    i => self.deliver_to(which, i, &frame),
                }
            }
            for talk in &mut self.talks {
                for (from, frame) in std::mem::take(&mut talk.inbox) {
                    talk.hears(aggregator::Input::Messages(&[(from, &frame)]));
                }
            }
            if found.is_some() {
                return found;
            }
            if moved {
                idle = 0;
                continue;
            }
            idle += 1;
            let talk = &mut self.talks[which];
            let Millis(at) = talk.hub.next_wake()?;
            talk.now = talk.now.max(at) + 1;
            talk.hears(aggregator::Input::Tick);
        }
        None
    }

    async fn ask(&mut self, which: usize, query: Vec<u8>, words: usize) -> Option<(Vec<u64>, Vec<u16>)> {
        self.talks[which].hears(aggregator::Input::Ask { query, words });
        match self.until(which, SHORT, |e| matches!(e, aggregator::Event::Total { .. })).await? {
            aggregator::Event::Total { values, cohort, .. } => Some((values, cohort)),
            _ => None,
        }
    }

    async fn control<T: serde::Serialize>(&mut self, which: usize, kind: Kind, message: &T) {
        let talk = &self.talks[which];
        let frame = app_messages::frame(&talk.identity, &talk.session, kind, message);
        self.tell(which, &frame, SHORT).await;
    }

    /// The whole run, as the plan's method has it, until a trick ends it.
    async fn course(&mut self) -> Option<()> {
        let federation = self.case.cast.federation.clone();
        let (form, domain) = (federation.form().ok()?, federation.work.domain().ok()?);
        for talk in &mut self.talks {
            (0..talk.sites.len() as u16).for_each(|i| talk.hears(aggregator::Input::Attached(i)));
        }
        let ready = |e: &aggregator::Event| matches!(e, aggregator::Event::DeckReady { .. });
        self.until(COORDINATOR, SHORT, ready).await?;
        self.until(INTERMEDIARY, SHORT, ready).await?;
        let mut conversation = MethodSession::of(&federation.work, form).ok()?;
        let trick = self.case.trick;
        if let Some((_, Trick::TooSoon)) = trick {
            self.trick(Trick::TooSoon, conversation.turn()).await;
            return None;
        }
        let words = Question::CountRows.layout(&domain, &form).ok()?.words();
        let (_, cohort) = self.ask(INTERMEDIARY, Question::CountRows.to_bytes(), words).await?;
        conversation.is_counted(&cohort);
        let run = self.talks[COORDINATOR].hub.run();
        self.control(INTERMEDIARY, Kind::CountReady, &CountReady { run, cohort }).await;
        for number in 0..40 {
            if let Some((at, trick)) = trick
                && at == number
            {
                self.trick(trick, conversation.turn()).await;
                return None;
            }
            let (query, words) = match conversation.turn() {
                Turn::Done(_) if !self.case.finishes => return Some(()),
                Turn::Done(outcome) => {
                    let result = RunResult::of(&federation, outcome, &conversation, None, None).ok()?;
                    return self.finishes(&result).await;
                }
                Turn::Judge(batch) => {
                    let batch = (**batch).clone();
                    return self.judges(batch).await;
                }
                Turn::Ask(question, layout) => (question.to_bytes(), layout.words()),
            };
            let (values, cohort) = self.ask(COORDINATOR, query, words).await?;
            conversation.take(&values, &cohort).ok()?;
        }
        None
    }

    /// No question follows: the last total is opened.
    async fn close(&mut self) {
        self.talks[COORDINATOR].hears(aggregator::Input::Close);
        self.until(COORDINATOR, SHORT, |_| false).await;
    }

    /// [RES-3]: the site is told the result, and signs it.
    async fn finishes(&mut self, result: &RunResult) -> Option<()> {
        self.close().await;
        let (writer, run) = (self.case.cast.party(0).writer(), self.talks[COORDINATOR].hub.run());
        let signed = writer.sign(result, &run).ok()?;
        let signature = from_hex(&signed.by.first()?.signature)?;
        let model = result.model.as_ref()?.to_bytes();
        let finished = Finished { model, result: signed.text.into_bytes(), signature };
        self.control(COORDINATOR, Kind::Finished, &finished).await;
        Some(())
    }

    /// [APP-5].
    async fn judges(&mut self, batch: Batch) -> Option<()> {
        self.close().await;
        let federation = &self.case.cast.federation;
        let (domain, form) = (federation.work.domain().ok()?, federation.form().ok()?);
        let words = Layout::of_judged(&batch, &domain, &form).ok()?.words();
        let question = Question::Judge { digest: question::digest(&batch), words: words as u32 };
        self.control(COORDINATOR, Kind::Held, &Held { batch: batch.clone() }).await;
        self.judged = Some(batch);
        self.ask(INTERMEDIARY, question.to_bytes(), words).await.map(|_| ())
    }

    async fn trick(&mut self, trick: Trick, turn: &Turn) {
        let (query, words) = match turn {
            Turn::Ask(question, layout) => (question.to_bytes(), layout.words()),
            _ => (Vec::new(), 1),
        };
        match trick {
            Trick::TooSoon => {
                self.talks[COORDINATOR].hears(aggregator::Input::Ask { query, words });
                self.until(COORDINATOR, LONG, |e| matches!(e, aggregator::Event::Total { .. })).await;
            }
            Trick::Garbage => drop(self.ask(COORDINATOR, vec![0xff; 9], words).await),
            Trick::Count => drop(self.ask(COORDINATOR, Question::CountRows.to_bytes(), 1).await),
            Trick::Longer => drop(self.ask(COORDINATOR, query, words + 1).await),
            Trick::OtherPlan => drop(self.ask(COORDINATOR, self.case.other.clone(), words).await),
            Trick::Aborts => {
                let aborted = Aborted { code: 9, why: "a test".into() };
                self.control(COORDINATOR, Kind::Aborted, &aborted).await;
            }
            Trick::NoModel => {
                let finished = Finished { model: b"{}".to_vec(), result: Vec::new(), signature: Vec::new() };
                self.control(COORDINATOR, Kind::Finished, &finished).await;
            }
        }
    }

    /// Both aggregators say that the run is over, and the process ends.
    async fn end(&mut self) {
        let aborted = Aborted { code: 8, why: "a test".into() };
        self.control(COORDINATOR, Kind::Aborted, &aborted).await;
        self.control(INTERMEDIARY, Kind::Aborted, &aborted).await;
        let sent = self.listen(LONG).await;
        self.seen.steps.push(Step { told: None, frame: Vec::new(), sent });
        let Some(site) = &mut self.site else { return };
        if let Ok(ended) = timeout(LONG, site).await {
            self.seen.code = Some(code(async { ended }).await);
        }
    }
}

/// The exit code of a process that has ended.
async fn code(site: impl Future<Output = Result<Result<ClientReport, Failure>, tokio::task::JoinError>>) -> u8 {
    let ended = site.await.expect("the site's process panicked");
    ended.map_or_else(|failure| failure.code as u8, |_| 0)
}

/// Nothing takes time but what waits for something.
const SHORT: Duration = Duration::from_millis(1);
