//! How a run advances from deck to deck and from round to round (spec sections 8 and 9). A deck is the field's key
//! epoch.

use super::{
    record::{Question, Total},
    *,
};
use crate::message::OpenDeck;

impl Aggregator {
    // ---- decks ----

    fn candidates(&self) -> Vec<u16> {
        let all = 0..self.peers.len() as u16;
        all.filter(|s| !self.peers[usize::from(*s)].lost && self.cohort.as_ref().is_none_or(|c| c.contains(s)))
            .collect()
    }

    pub(super) fn open_deck(&mut self, now: Millis) {
        let wait = if self.cohort.is_none() {
            self.started.0.saturating_add(self.env.timing.join).saturating_sub(now.0).max(1)
        } else {
            self.env.timing.phase
        };
        self.persist(Entry::Opened { index: self.next_deck });
        let open = OpenDeck { run: self.run, index: self.next_deck, slots: self.slots };
        let setup = Setup::open(&self.env, open, self.candidates(), wait, now);
        self.next_deck += 1;
        self.send_all(&setup.pending.frames);
        self.setup = Some(setup);
    }

    pub(super) fn send_all(&mut self, frames: &BTreeMap<u16, Arc<Vec<u8>>>) {
        for (site, bytes) in frames {
            if self.peers[usize::from(*site)].attached {
                self.out.push_back(Output::Send { to: *site, bytes: bytes.clone() });
            }
        }
    }

    /// A member vanished or failed while the deck was being set up: begin again without it.
    pub(super) fn reopen_deck(&mut self, now: Millis) {
        self.setup = None;
        self.attempts += 1;
        if self.round.is_some() {
            // The deck in use serves the round that is open; with the next one another is made ready.
            return;
        }
        if self.attempts > MAX_DECK_ATTEMPTS {
            let step = "a deck (members kept vanishing while it was set up)".into();
            let (alive, needed) = (self.candidates().len(), self.env.terms.least(self.peers.len()));
            return self.fail(Error::Quorum { step, alive, needed, rule: Rule::Kex11 });
        }
        match self.env.enough(self.candidates().len(), "a deck") {
            Ok(_) => self.open_deck(now),
            Err(e) => self.fail(e),
        }
    }

    /// Goes on without a site. A deck in which nothing was asked yet is set up anew.
    pub(super) fn leave_out(&mut self, site: u16, now: Millis) {
        self.lose(site, Loss::LeftOut, now);
        let unused = |deck: &ReadyDeck| deck.next_slot == 0 && deck.members.contains(&site);
        let nothing_asked = self.previous_context == Hash::default() && self.round.is_none();
        if nothing_asked && !self.failed && self.deck.as_ref().is_some_and(unused) {
            (self.deck, self.spare, self.setup) = (None, None, None);
            self.reopen_deck(now);
        }
    }

    pub(super) fn advance_setup(&mut self, now: Millis) {
        loop {
            let Some(setup) = &mut self.setup else { return };
            if !setup.pending.frames.is_empty() {
                return;
            }
            match setup.next(&self.env, now) {
                Ok(Some(deck)) => {
                    self.setup = None;
                    self.attempts = 0;
                    return self.deck_ready(deck, now);
                }
                Ok(None) => {
                    let first = self.cohort.is_none();
                    let members = setup.members();
                    let frames = setup.pending.frames.clone();
                    if first {
                        // A site that has not advertised by now waits for the next run.
                        let late = |s: &u16| self.peers[usize::from(*s)].attached && !members.contains(s);
                        let late: Vec<u16> = (0..self.peers.len() as u16).filter(late).collect();
                        self.out.extend(late.into_iter().map(|s| Output::Event(Event::TooLate(s))));
                        self.cohort = Some(members.into_iter().collect());
                    }
                    self.send_all(&frames);
                }
                Err(_) if self.round.is_some() => self.setup = None,
                Err(e) => return self.fail(e),
            }
        }
    }

    fn deck_ready(&mut self, deck: ReadyDeck, now: Millis) {
        let (index, members, threshold) = (deck.index, deck.members.clone(), deck.threshold);
        self.persist(Entry::Deck(deck.clone()));
        self.out.push_back(Output::Event(Event::DeckReady { index, members, threshold }));
        if self.deck.as_ref().is_none_or(|d| d.next_slot >= d.slots) && self.round.is_none() {
            self.deck = Some(deck);
        } else {
            self.spare = Some(deck);
        }
        self.start_round(now);
    }

    // ---- rounds ----

    pub(super) fn start_round(&mut self, now: Millis) {
        if self.round.is_some() || self.waiting_question.is_none() || self.failed {
            return;
        }
        if self.deck.as_ref().is_none_or(|d| d.next_slot >= d.slots) {
            self.deck = self.spare.take().or(self.deck.take());
        }
        let Some(deck) = self.deck.as_mut().filter(|d| d.next_slot < d.slots) else {
            if self.setup.is_none() {
                self.open_deck(now);
            }
            return;
        };
        let cohort: Vec<u16> =
            deck.members.iter().copied().filter(|m| self.cohort.as_ref().is_some_and(|c| c.contains(m))).collect();
        let needed = self.env.least(deck.threshold);
        if cohort.len() < needed {
            let (step, alive) = ("a round".into(), cohort.len());
            return self.fail(Error::Quorum { step, alive, needed, rule: Rule::Pol1 });
        }
        let Some((query, words)) = self.waiting_question.take() else { return };
        let slot = deck.next_slot;
        deck.next_slot += 1;
        let low = deck.slots - deck.next_slot <= deck.slots / 4;
        let previous = (self.previous_context, self.previous_total);
        let question = Question { deck: deck.index, slot, cohort, words: words as u32, query };
        let round = Round::open(&self.env, deck, &question, previous, now);
        self.persist(Entry::Asked(question));
        self.put(round);
        // [KEX-12]: the next deck is made ready while this one still has slots.
        if low && self.spare.is_none() && self.setup.is_none() {
            self.open_deck(now);
        }
    }

    /// Sends the question of a round, and before it the opening of the round before.
    pub(super) fn put(&mut self, mut round: Round) {
        self.be_patient(&mut round.pending);
        round.pending.before.splice(0..0, self.opening.clone());
        let frames = round.pending.frames.clone();
        if let Some(opening) = self.opening.clone() {
            let to = frames.keys().map(|site| (*site, opening.clone())).collect();
            self.send_all(&to);
        }
        self.send_all(&frames);
        self.unanswered.clear();
        self.round = Some(round);
    }

    /// A round is over: what the next one follows from ([RND-1]). Of a total that is not opened it is the hash of its words, little-endian ([ENC-4]).
    pub(super) fn follow(&mut self, context: Hash, values: &[u64], opening: Option<&[u8]>) {
        self.previous_context = context;
        self.previous_total = match opening {
            None => suite::hash("total", &[&values.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()]),
            Some(bytes) => {
                self.opening = Some(self.env.frame_raw(Kind::Opening, &context, bytes));
                message::opening_hash(&context, bytes)
            }
        };
    }

    pub(super) fn advance_round(&mut self, now: Millis) {
        loop {
            let (Some(round), Some(deck)) = (&mut self.round, &self.deck) else { return };
            match round.next(&self.env, deck, now) {
                Ok(Progress::Waiting) => return,
                Ok(Progress::Sent) => {
                    let (frames, missing) = (round.pending.frames.clone(), round.missing());
                    let named = round.named();
                    if let Some((named, shares)) = named {
                        self.persist(Entry::Named { named, shares });
                    }
                    self.send_all(&frames);
                    // Those who did not make it into the survivors are out of this run (fixed cohort, [RND-5]).
                    for site in &missing {
                        self.out_of_run(*site);
                    }
                }
                Ok(Progress::Guilty(guilty)) => {
                    let sites = guilty.into_iter().map(|(site, error)| (site, Loss::Misbehaved(error))).collect();
                    return self.lose_all(sites, now);
                }
                Ok(Progress::Done(done)) => {
                    let context = round.context;
                    self.unanswered = std::mem::take(&mut round.pending.frames);
                    let opening = done.opening.as_ref().map(codec::encode);
                    self.follow(context, &done.total.values, opening.as_deref());
                    self.round = None;
                    self.persist(Entry::Total { total: done.total.clone(), opening });
                    let events =
                        done.wrong_shares.into_iter().map(|(holder, owner)| Event::WrongShare { holder, owner });
                    self.out.extend(events.map(Output::Event));
                    return self.tell(done.total);
                }
                Err(e) => return self.fail(e),
            }
        }
    }

    pub(super) fn tell(&mut self, total: Total) {
        let Total { values, cohort, missing } = total;
        self.out.push_back(Output::Event(Event::Total { values, cohort, missing }));
    }

    fn out_of_run(&mut self, site: u16) {
        if let Some(c) = &mut self.cohort {
            c.remove(&site);
        }
        if !std::mem::replace(&mut self.peers[usize::from(site)].lost, true) {
            self.out.push_back(Output::Event(Event::Lost { site, why: Loss::Silent }));
        }
    }
}
