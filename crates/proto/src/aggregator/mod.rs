//! An aggregator: the state machine of the coordinator and of the intermediary (spec sections 8 and 9).
//!
//! Both run this code; they differ in what they ask. It does no I/O; time comes in with every call. Feed it an
//! [`Input`], drain [`Aggregator::poll`], and call again at the latest when [`Aggregator::next_wake`] says so.

mod env;
mod flow;
mod progress;
mod record;
mod resume;
mod round;
mod seeds;
mod setup;
mod timing;
mod types;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use rand_core::CryptoRng;

use env::{Env, Pending};
use progress::Progress;
pub use record::Record;
use record::{Entry, ReadyDeck, Unfinished};
use round::Round;
use setup::Setup;
pub use timing::{Millis, Timing};
pub use types::{AggregatorConfig, Event, Input, Loss, Output};

use crate::{
    codec,
    error::Error,
    identity::DecodedKeys,
    limits::{MAX_DECK_ATTEMPTS, MAX_QUERY, MAX_WORDS},
    message::{self, Kind, Refusal, Verified},
    roster::PartyId,
    rule::Rule,
    spread,
    suite::{self, Hash},
};

#[derive(Default)]
struct Peer {
    attached: bool,
    detached_at: Option<Millis>,
    lost: bool,
}

/// The state machine of a coordinator or intermediary.
pub struct Aggregator {
    pub(crate) env: Env,
    slots: u16,
    run: Hash,
    peers: Vec<Peer>,
    /// Sites that may still be asked: first all, then the members of the first deck, then fewer and fewer.
    cohort: Option<BTreeSet<u16>>,
    setup: Option<Setup>,
    attempts: u32,
    next_deck: u32,
    deck: Option<ReadyDeck>,
    spare: Option<ReadyDeck>,
    waiting_question: Option<(Vec<u8>, usize)>,
    round: Option<Round>,
    previous_context: Hash,
    previous_total: Hash,
    /// The frame that opens the last total to its cohort.
    opening: Option<Arc<Vec<u8>>>,
    /// What asked for shares of the last total, for the sites whose shares were not needed any more: a new process there learns by it
    /// that its vector is in a total, until the next question.
    unanswered: BTreeMap<u16, Arc<Vec<u8>>>,
    closed: bool,
    failed: bool,
    started: Millis,
    /// The state that an earlier process left, from which the run is resumed.
    unfinished: Unfinished,
    out: VecDeque<Output>,
}

impl Aggregator {
    /// A new run. `rng` gives the run its name; everything secret is the sites'.
    ///
    /// # Errors
    /// `Error::Invalid` where the identity is not the role's, `Error::ApiMisuse` for an impossible number of slots.
    pub fn new(config: AggregatorConfig, now: Millis, rng: &mut dyn CryptoRng) -> Result<Aggregator, Error> {
        let mut run = [0u8; 32];
        rng.fill_bytes(&mut run);
        let mut a = Aggregator::idle(config, now, Hash(run))?;
        a.persist(Entry::Run { session: a.env.session, run: a.run });
        a.open_deck(now);
        Ok(a)
    }

    /// An aggregator that has sent nothing yet.
    fn idle(config: AggregatorConfig, now: Millis, run: Hash) -> Result<Aggregator, Error> {
        let AggregatorConfig { identity, roster, terms, role, timing, slots } = config;
        let own = roster.member(role).map(|m| m.key);
        if matches!(role, PartyId::Site(_)) || own != Some(identity.public()) {
            let why = "this identity is not the one that the roster gives this role";
            return Err(Error::invalid("roster", why, Rule::Ros7));
        }
        if slots == 0 || slots > terms.slots {
            return Err(Error::ApiMisuse("a deck has at least one slot and at most the plan's number"));
        }
        let session = message::session(&terms.hash(), &roster.hash(), role);
        let keys = DecodedKeys::new(roster.sites.iter().map(|site| site.key));
        let peers = roster.sites.iter().map(|_| Peer::default()).collect();
        let (opening, kept) = (role.opens(), round::KEPT);
        Ok(Aggregator {
            env: Env { identity, keys, roster, terms, session, timing, opening, kept },
            slots,
            run,
            peers,
            cohort: None,
            setup: None,
            attempts: 0,
            next_deck: 0,
            deck: None,
            spare: None,
            waiting_question: None,
            round: None,
            previous_context: Hash::default(),
            previous_total: Hash::default(),
            opening: None,
            unanswered: BTreeMap::new(),
            closed: false,
            failed: false,
            started: now,
            unfinished: Unfinished::default(),
            out: VecDeque::new(),
        })
    }

    /// The next thing to do, in order.
    pub fn poll(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// When [`Input::Tick`] is due at the latest, if nothing else comes before.
    pub fn next_wake(&self) -> Option<Millis> {
        if self.failed {
            return None;
        }
        let grace = self.env.timing.grace;
        // Before the first deck a site that is gone is not lost, so nothing is due then.
        let joining = self.cohort.is_none();
        let waits = self.pending().flat_map(move |p| {
            let gone = p.frames.keys().filter(move |_| !joining);
            let gone = gone.filter_map(move |s| self.peers[usize::from(*s)].detached_at);
            [p.deadline, p.resend_at].into_iter().chain(gone.map(move |at| at.after(grace)))
        });
        waits.min()
    }

    /// The run's name.
    pub fn run(&self) -> Hash {
        self.run
    }

    /// The directory of the deck that questions are put in now: with it a third party reads them ([`crate::recompute`]).
    pub fn directory(&self) -> Option<Hash> {
        self.deck.as_ref().map(|deck| deck.hash)
    }

    /// Sites that may still be asked in this run.
    pub fn cohort(&self) -> Vec<u16> {
        self.cohort.iter().flatten().copied().collect()
    }

    /// Sites whose answer is awaited now.
    pub fn awaited(&self) -> BTreeSet<u16> {
        self.pending().flat_map(|pending| pending.frames.keys().copied()).collect()
    }

    /// Takes one input. What goes wrong comes out as an event: [`Event::Lost`] with the culprit, or [`Event::Failed`].
    pub fn handle(&mut self, input: Input<'_>, now: Millis) {
        let _work = spread::AtWork::begin();
        if self.failed && !matches!(input, Input::Close) {
            return;
        }
        match input {
            Input::Attached(site) => self.attached(site, now),
            Input::Detached(site) => {
                if let Some(p) = self.peers.get_mut(usize::from(site)) {
                    p.attached = false;
                    p.detached_at = Some(now);
                }
            }
            Input::Messages(frames) => self.messages(frames, now),
            Input::Ask { query, words } => {
                if words == 0 || words > MAX_WORDS || query.len() > MAX_QUERY {
                    return self.fail(Error::ApiMisuse("a question without words, or larger than a frame can be"));
                }
                if self.round.is_some() || self.waiting_question.is_some() {
                    return self.fail(Error::ApiMisuse("a question while another is open"));
                }
                match self.asked_before(&query, words, now) {
                    Ok(true) => {}
                    Ok(false) => {
                        self.waiting_question = Some((query, words));
                        self.start_round(now);
                    }
                    Err(error) => self.fail(error),
                }
            }
            Input::Close => {
                self.closed = true;
                if let Some(opening) = self.opening.clone() {
                    let to = self.cohort().into_iter().map(|site| (site, opening.clone())).collect();
                    self.send_all(&to);
                }
            }
            Input::Without(site) => self.leave_out(site, now),
            Input::Tick => {}
        }
        self.expire(now);
    }

    fn pending(&self) -> impl Iterator<Item = &Pending> {
        self.setup.iter().map(|s| &s.pending).chain(self.round.iter().map(|r| &r.pending))
    }

    fn attached(&mut self, site: u16, now: Millis) {
        let Some(p) = self.peers.get_mut(usize::from(site)) else { return };
        p.attached = true;
        p.detached_at = None;
        if p.lost || self.cohort.as_ref().is_some_and(|c| !c.contains(&site)) {
            self.out.push_back(Output::Event(Event::TooLate(site)));
            return;
        }
        if let Some(setup) = &mut self.setup {
            setup.ask_again(site);
            if setup.waits_late_for(site) && self.attempts < MAX_DECK_ATTEMPTS / 2 {
                // It may be a new process without the keys of this set-up: begin again, with it.
                self.reopen_deck(now);
                return;
            }
        }
        // Whatever is still unanswered is sent (again): the connection before may have lost it.
        let frames: Vec<_> = self.pending().flat_map(|p| p.for_site(site)).collect();
        self.out.extend(frames);
        let more = self.unanswered.get(&site).into_iter().chain(self.opening.as_ref().filter(|_| self.closed));
        self.out.extend(more.map(|bytes| Output::Send { to: site, bytes: bytes.clone() }));
    }

    /// Takes frames in their order. Their signatures are verified beforehand, on all cores, and each by itself as strictly as
    /// anybody may verify it later: what is handed on to the sites must not be refused there.
    fn messages(&mut self, mut frames: &[(u16, &[u8])], now: Millis) {
        while !frames.is_empty() {
            let (next, later) = frames.split_at(self.at_once(frames));
            let verified =
                spread::map(next, 2, |(from, bytes)| (!self.drops(*from, bytes)).then(|| self.verified(*from, bytes)));
            for ((from, bytes), verified) in next.iter().zip(verified) {
                // What came before may have changed whether it is read.
                if let Some(verified) = verified.filter(|_| !self.drops(*from, bytes)) {
                    self.take(*from, verified, now);
                }
            }
            frames = later;
        }
    }

    /// How many of these are verified together: of shares not more than are needed, since the others are dropped unread.
    fn at_once(&self, frames: &[(u16, &[u8])]) -> usize {
        let shares = |frame: &(u16, &[u8])| message::unmask_context(frame.1).is_some();
        let of_shares = frames.first().is_some_and(shares);
        let alike = frames.iter().take_while(|frame| shares(frame) == of_shares).count();
        let awaited = self.round.as_ref().and_then(Round::shares).zip(self.deck.as_ref()).filter(|_| of_shares);
        awaited.map_or(alike, |((_, there), deck)| alike.min(deck.threshold.saturating_sub(there).max(1)))
    }

    /// [RND-10]: whether a frame is dropped unread.
    fn drops(&self, from: u16, bytes: &[u8]) -> bool {
        if self.peers.get(usize::from(from)).is_none_or(|p| p.lost) {
            // It is of a site that is out.
            return true;
        }
        // So are shares for a round that is over: t answers were enough, the others come later.
        let awaited = self.round.as_ref().and_then(Round::shares);
        message::unmask_context(bytes).is_some_and(|context| awaited.is_none_or(|(of, _)| of != context))
    }

    fn verified<'a>(&self, from: u16, bytes: &'a [u8]) -> Result<Verified<'a>, Error> {
        let member = &self.env.roster.sites[usize::from(from)];
        message::verify(bytes, &self.env.session, (&self.env.keys, &member.key), &|| member.name.clone())
    }

    fn take(&mut self, from: u16, verified: Result<Verified<'_>, Error>, now: Millis) {
        let result = verified.and_then(|frame| self.dispatch(from, &frame, now));
        if let Err(error) = result {
            let error = match error {
                // A frame that does not even decode is its sender's fault too.
                Error::Malformed { what, why, rule } => {
                    Error::peer(self.env.name_of(from), format!("sent a malformed {what}: {why}"), rule)
                }
                other => other,
            };
            self.lose(from, Loss::Misbehaved(error), now);
        }
    }

    fn dispatch(&mut self, from: u16, frame: &Verified<'_>, now: Millis) -> Result<(), Error> {
        match frame.kind {
            Kind::AdvertiseKeys | Kind::AcceptDirectory | Kind::ShareKeys | Kind::ShareAck | Kind::ShareComplaint => {
                let Some(setup) = &mut self.setup else { return Ok(()) };
                setup.message(&self.env, from, frame)?;
                if let Some((complainer, against)) = setup.complaint.take() {
                    self.complaint(complainer, against, now);
                    return Ok(());
                }
                self.advance_setup(now);
                Ok(())
            }
            Kind::MaskedInput | Kind::ConsistencyCheck | Kind::Unmask => {
                let Some(round) = &mut self.round else { return Ok(()) };
                round.message(&self.env, from, frame)?;
                self.advance_round(now);
                Ok(())
            }
            Kind::Refusal => {
                if self.round.as_ref().is_none_or(|r| r.context != frame.context) {
                    // This belongs to a question that is not open any more.
                    return Ok(());
                }
                let refusal: Refusal = frame.decode("Refusal")?;
                self.lose(from, Loss::Refused(refusal.rule), now);
                Ok(())
            }
            other => {
                Err(self.env.site_error(from, format!("sent a {other:?}, which is not a site's to send"), Rule::Frm6))
            }
        }
    }

    fn fail(&mut self, error: Error) {
        self.failed = true;
        self.setup = None;
        self.round = None;
        self.out.push_back(Output::Event(Event::Failed(error)));
    }

    /// A site is excluded for good; whatever waited for it goes on without it.
    fn lose(&mut self, site: u16, why: Loss, now: Millis) {
        self.lose_all(vec![(site, why)], now);
    }

    /// These sites are excluded at once, before anything goes on.
    fn lose_all(&mut self, mut sites: Vec<(u16, Loss)>, now: Millis) {
        sites.retain(|(site, _)| {
            self.peers.get_mut(usize::from(*site)).is_some_and(|p| !std::mem::replace(&mut p.lost, true))
        });
        if sites.is_empty() {
            return;
        }
        for (site, why) in &sites {
            if let Some(c) = &mut self.cohort {
                c.remove(site);
            }
            self.out.push_back(Output::Event(Event::Lost { site: *site, why: why.clone() }));
        }
        for (site, _) in &sites {
            if self.setup.as_mut().is_some_and(|s| s.without(*site)) {
                self.reopen_deck(now);
            } else {
                self.advance_setup(now);
            }
        }
        if let Some(r) = &mut self.round {
            sites.iter().for_each(|(site, _)| r.without(*site));
            self.advance_round(now);
        }
    }

    /// [SHR-7]: a box did not open. The aggregator cannot tell which of the two is at fault, so both are out.
    fn complaint(&mut self, complainer: u16, against: u16, now: Millis) {
        let (a, b) = (self.env.name_of(complainer), self.env.name_of(against));
        let what = format!("{a} cannot open the shares that {b} sealed for it; one of the two is at fault");
        for site in [against, complainer] {
            let error = self.env.site_error(site, what.clone(), Rule::Shr7);
            self.lose(site, Loss::Misbehaved(error), now);
        }
    }

    /// Applies grace, resend and deadlines.
    fn expire(&mut self, now: Millis) {
        let grace = self.env.timing.grace;
        let joining = self.setup.as_ref().is_some_and(Setup::is_joining) && self.cohort.is_none();
        // With whether it is silent, or gone.
        let mut lost: BTreeSet<(bool, u16)> = BTreeSet::new();
        let mut resend = Vec::new();
        let mut join_over = false;
        let setup = self.setup.iter_mut().map(|s| &mut s.pending);
        for p in setup.chain(self.round.iter_mut().map(|r| &mut r.pending)) {
            let late = now >= p.deadline;
            let again = now >= p.resend_at;
            if again {
                p.resend_at = now.after(self.env.timing.resend);
            }
            for site in p.frames.keys() {
                let peer = &self.peers[usize::from(*site)];
                if joining {
                    // Before the first deck a late site is not lost; the join deadline decides.
                    join_over |= late;
                } else if late || peer.detached_at.is_some_and(|at| now >= at.after(grace)) {
                    lost.insert((late, *site));
                }
                if again && peer.attached {
                    resend.extend(p.for_site(*site));
                }
            }
        }
        self.out.extend(resend);
        if join_over {
            // Goes on with the sites that advertised, if they are enough.
            self.setup.iter_mut().for_each(Setup::stop_waiting);
            self.advance_setup(now);
        }
        for (silent, site) in lost {
            if !self.failed {
                self.lose(site, if silent { Loss::Silent } else { Loss::Gone }, now);
            }
        }
    }
}
