//! The sites of the federation in memory: what each is told and sends, how its application answers, and how its process dies and
//! comes back from its journal.

use veilsum_door::{Met, Talk};
use veilsum_proto::site::{Event, Output};

use super::{Book, Happening, Reply, Told, Wire, World};
use crate::prelude::*;

impl World {
    pub(super) fn tell_site(&mut self, i: u16, bytes: &[u8]) {
        if let (Some(notes), Some(_)) = (&mut self.notes, &self.sites[usize::from(i)]) {
            notes.told[usize::from(i)].push(Told::Frame(bytes.to_vec()));
        }
        self.received += bytes.len() as u64;
        self.feed_site(i, site::Input::Message(bytes), kind_of(bytes));
        self.drain_site(i);
    }

    /// Stops a site's process; `back` restores it from its journal.
    pub fn kill(&mut self, site: u16, back: bool) {
        self.sites[usize::from(site)] = None;
        self.schedule(0, Happening::Detach(site));
        if back {
            self.restore(site);
        }
    }

    /// A new process of a site, from the bytes of its journal.
    pub(super) fn restore(&mut self, site: u16) {
        let kept = self.journals[usize::from(site)].len().saturating_sub(self.forgets);
        self.journals[usize::from(site)].truncate(kept);
        let entries: Result<Vec<Record>, Error> =
            self.journals[usize::from(site)].iter().map(|r| Record::from_bytes(&r.to_bytes())).collect();
        match entries.and_then(|entries| Site::restore(self.kit.site(site), entries)) {
            Ok(s) => {
                self.sites[usize::from(site)] = Some(s);
                self.tell_standing(site);
                self.schedule(1, Happening::Attach(site));
            }
            Err(e) => self.site_errors.push((site, e)),
        }
    }

    /// True where the site's process dies here.
    fn dies(&mut self, site: u16) -> bool {
        let number = self.boundaries[usize::from(site)];
        self.boundaries[usize::from(site)] += 1;
        let crash = self.crashes.iter().find(|c| c.site == site && c.boundary == number).copied();
        if crash.is_some() {
            self.kill(site, false);
        }
        if let Some(away) = crash.and_then(|crash| crash.away) {
            self.schedule(away.max(1), Happening::Return(site));
        }
        crash.is_some()
    }

    /// The ledger of a site as it was before, or in another run.
    pub fn has_book(&mut self, site: u16, book: Book) {
        self.books[usize::from(site)] = book;
        self.tell_standing(site);
    }

    /// In which conversation a site is.
    fn talk(&self, i: u16) -> Talk {
        let (plan, run) = (self.kit.terms.hash(), self.sites[usize::from(i)].as_ref().and_then(Site::run));
        Talk { plan, session: session(&plan, &self.kit.roster.hash(), self.kit.role), run: run.unwrap_or_default() }
    }

    /// [LED-11]: whether the application goes on with these members.
    fn meets(&mut self, i: u16, deck: u32, members: &[Member]) -> bool {
        let (talk, met) = (self.talk(i), &mut self.books[usize::from(i)].met);
        let Err(back) = met.check(&talk, members) else {
            met.take(&talk, deck, (Met::all(members), &Met::list(members)));
            return true;
        };
        let who = self.kit.roster.sites[usize::from(back.site)].name.clone();
        self.site_errors.push((i, back.error(who)));
        false
    }

    /// Shares have left for the total of the round under way.
    fn counts(&mut self, i: u16) {
        let talk = self.talk(i);
        let Some((slot, sites)) = self.sites[usize::from(i)].as_ref().and_then(Site::round_sites) else { return };
        let cohort = set_of_sites(sites.iter().map(|site| self.kit.roster.sites[usize::from(*site)].key));
        self.books[usize::from(i)].met.total(talk.session, talk.run, slot, &cohort);
    }

    fn tell_standing(&mut self, i: u16) {
        let k = usize::from(i);
        let standing = Standing { account: None, answered: self.books[k].answered };
        if let Some(site) = &mut self.sites[k] {
            site.set_standing(standing);
        }
    }

    /// The application of a site answers, and counts the answer.
    fn answers(&mut self, i: u16, asked: &Asked, reply: Reply) -> site::Input<'static> {
        if let Reply::Refuse(rule) = reply {
            return site::Input::Refuse { context: asked.context, rule };
        }
        let (kit, k) = (&self.kit, usize::from(i));
        match kit.consents(asked) {
            Ok(consent) => {
                if self.remembers {
                    let (talk, book) = (self.talk(i), &mut self.books[k]);
                    if book.last != Some((asked.run, asked.slot)) {
                        book.answered = book.answered.and(&talk.session, &asked.run, asked.slot);
                        book.last = Some((asked.run, asked.slot));
                    }
                    self.tell_standing(i);
                }
                site::Input::Contribute { consent, values: (self.answer)(i, asked) }
            }
            Err(e) => {
                self.site_errors.push((i, e.clone()));
                site::Input::Refuse { context: asked.context, rule: e.rule().unwrap_or_else(|| panic!("no rule: {e}")) }
            }
        }
    }

    fn drain_site(&mut self, i: u16) {
        while let Some(output) = self.sites[usize::from(i)].as_mut().and_then(Site::poll) {
            let effect = !matches!(output, Output::Event(_));
            if effect && self.dies(i) {
                return;
            }
            match output {
                Output::Persist(record) => self.journals[usize::from(i)].extend(self.keeps.then_some(record)),
                Output::Rewrite(records) if self.keeps => self.journals[usize::from(i)] = records,
                Output::Rewrite(_) => {}
                Output::Send { bytes, discloses } => {
                    let kind = kind_of(&bytes).expect("a site sends whole frames");
                    self.note(i, true, kind, &bytes);
                    if let Some((ledger, asked)) = self.given.get_mut(usize::from(i)) {
                        ledger.enter(&parts(&bytes), asked, &self.journals[usize::from(i)]);
                    }
                    let wire = Wire { site: i, from_site: true, kind, bytes: &bytes, discloses: Some(discloses) };
                    let Some(frames) = self.passes(&wire, &bytes) else { return };
                    for bytes in frames {
                        self.sent_by_sites.push((i, kind, bytes.len()));
                        self.transmit(i, || Happening::ToAggregator(i, bytes.clone()));
                    }
                }
                Output::Event(Event::Met { deck, members }) => {
                    if self.remembers && !self.meets(i, deck, &members) {
                        return self.kill(i, false);
                    }
                }
                Output::Event(Event::Released { .. }) => self.counts(i),
                Output::Event(Event::Asked(asked)) => {
                    if let Some((_, before)) = self.given.get_mut(usize::from(i)) {
                        before.push(asked.clone());
                    }
                    let reply = (self.manner)(i, &asked);
                    if reply == Reply::Silence {
                        continue;
                    }
                    if let Some(notes) = &mut self.notes {
                        notes.told[usize::from(i)].push(Told::Answer);
                    }
                    let input = self.answers(i, &asked, reply);
                    self.feed_site(i, input, Some(Kind::MaskedInput));
                }
                Output::Event(Event::Opened { values, cohort, .. }) => {
                    self.opened.push((i, values, cohort));
                }
                Output::Event(_) => {}
            }
            if effect && self.dies(i) {
                return;
            }
        }
    }

    fn feed_site(&mut self, i: u16, input: site::Input<'_>, kind: Option<Kind>) {
        let k = usize::from(i);
        let Some(site) = &mut self.sites[k] else { return };
        let began = (self.clock)();
        if let Err(e) = site.handle(input, &mut self.rngs[k]) {
            self.site_errors.push((i, e));
        }
        *self.sites_took.entry(kind).or_default() += (self.clock)() - began;
    }
}
