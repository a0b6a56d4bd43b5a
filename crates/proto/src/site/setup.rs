//! The exchange of keys at a site, message by message: each takes out the state it fits and puts back the next (spec section 8).

use super::*;

impl Site {
    pub(super) fn open_deck(
        &mut self,
        frame: &Verified<'_>,
        digest: Hash,
        rng: &mut dyn CryptoRng,
    ) -> Result<(), Error> {
        let open: OpenDeck = frame.decode("OpenDeck")?;
        if frame.context != message::deck_id(&self.env.session, &open) {
            return Err(self.env.aggregator("opened a deck under a name that is not its own", Rule::Kex1));
        }
        if open.slots == 0 || open.slots > MAX_SLOTS.min(self.env.terms.slots) {
            return Err(self.env.aggregator(format!("opened a deck of {} slots", open.slots), Rule::Kex1));
        }
        if self.run.is_some_and(|run| run != open.run) {
            return Err(self
                .env
                .aggregator("started another run; this site must be started anew to join it", Rule::Kex9));
        }
        if self.highest_deck.is_some_and(|highest| open.index <= highest) {
            return Err(self.env.aggregator(format!("opened deck {} a second time", open.index), Rule::Kex1));
        }
        self.run = Some(open.run);
        self.highest_deck = Some(open.index);
        // A set-up that was under way is given up: its keys are dropped and wiped here.
        // So is a ready deck that waited behind the one in use: somebody else did not get as far ([KEX-10]).
        let in_use = self.decks.iter().find(|(_, d)| matches!(d, DeckState::Ready(_))).map(|(index, _)| *index);
        self.decks.retain(|index, _| Some(*index) == in_use);
        self.replies.retain(|(_, index), _| Some(*index) == in_use);
        let (state, keys) = ExpectDirectory::open(&self.env, &open, self.standing, rng);
        let id = state.id();
        self.decks.insert(open.index, DeckState::Directory(state));
        let deck = open.index;
        self.reply(digest, Kind::OpenDeck, deck, Kind::AdvertiseKeys, &id, &keys, Disclosure::PublicKeys);
        Ok(())
    }

    /// Takes out the deck whose set-up is in the state that `matches` describes, by the context of the frame.
    fn take_setup(&mut self, matches: impl Fn(&DeckState) -> bool) -> Option<(u32, DeckState)> {
        let index = *self.decks.iter().find(|(_, d)| matches(d))?.0;
        self.decks.remove_entry(&index)
    }

    pub(super) fn stray(&self, kind: Kind) -> Error {
        self.env.aggregator(format!("sent a {kind:?} that belongs to no deck or round this site is in"), Rule::Frm7)
    }

    pub(super) fn directory(
        &mut self,
        frame: &Verified<'_>,
        digest: Hash,
        rng: &mut dyn CryptoRng,
    ) -> Result<(), Error> {
        let directory = frame.decode("Directory")?;
        let context = frame.context;
        let Some((index, DeckState::Directory(state))) =
            self.take_setup(|d| matches!(d, DeckState::Directory(e) if e.id() == context))
        else {
            return Err(self.stray(frame.kind));
        };
        let (mut next, accepted) = state.directory(&self.env, directory, rng)?;
        let (asked, kind) = (Kind::Directory, Kind::AcceptDirectory);
        self.reply(digest, asked, index, kind, &next.hash, &accepted, Disclosure::EncapsulatedSecrets);
        next.sent = self.replies.get(&(asked, index)).map(|reply| reply.bytes.clone()).unwrap_or_default();
        self.decks.insert(index, DeckState::Certificate(next));
        Ok(())
    }

    pub(super) fn certificate(
        &mut self,
        frame: &Verified<'_>,
        digest: Hash,
        rng: &mut dyn CryptoRng,
    ) -> Result<(), Error> {
        let certificate = frame.decode("DirectoryCertificate")?;
        let context = frame.context;
        let Some((index, DeckState::Certificate(state))) =
            self.take_setup(|d| matches!(d, DeckState::Certificate(e) if e.hash == context))
        else {
            return Err(self.stray(frame.kind));
        };
        let members = state.stated(&self.env);
        let (next, shares) = state.certificate(&self.env, &certificate, rng)?;
        self.out.push_back(Output::Event(Event::Met { deck: index, members }));
        self.forget(Kind::Directory, index);
        let asked = Kind::DirectoryCertificate;
        self.reply(digest, asked, index, Kind::ShareKeys, &next.hash, &shares, Disclosure::SealedShares);
        self.decks.insert(index, DeckState::Shares(next));
        Ok(())
    }

    pub(super) fn shares(&mut self, frame: &Verified<'_>, digest: Hash) -> Result<(), Error> {
        let delivery = frame.decode("DeliverShares")?;
        let context = frame.context;
        if let Some((index, DeckState::Ready(_))) =
            self.decks.iter().find(|(_, d)| matches!(d, DeckState::Ready(deck) if deck.hash == context))
        {
            // After a restart between the deck and its acknowledgement: say it again.
            let (index, ack) = (*index, self.ack(&context));
            self.reply_bytes(digest, Kind::DeliverShares, index, ack, Disclosure::Acknowledgement);
            return Ok(());
        }
        let Some((index, DeckState::Shares(state))) =
            self.take_setup(|d| matches!(d, DeckState::Shares(e) if e.hash == context))
        else {
            return Err(self.stray(frame.kind));
        };
        match state.shares(&self.env, &delivery) {
            Ok(deck) => {
                let (members, threshold, hash) = (deck.members.len(), deck.threshold, deck.hash);
                self.forget(Kind::DirectoryCertificate, index);
                self.out.push_back(Output::Persist(Record(Entry::Deck(deck.to_record(self.env.session)))));
                self.decks.insert(index, DeckState::Ready(deck));
                let ack = self.ack(&hash);
                self.reply_bytes(digest, Kind::DeliverShares, index, ack, Disclosure::Acknowledgement);
                self.out.push_back(Output::Event(Event::DeckReady { index, members, threshold }));
                Ok(())
            }
            Err(BadDelivery { against, error }) => {
                let complaint = ShareComplaint { against };
                let (asked, kind) = (Kind::DeliverShares, Kind::ShareComplaint);
                self.reply(digest, asked, index, kind, &context, &complaint, Disclosure::Refusal);
                Err(error)
            }
        }
    }

    fn ack(&self, directory: &Hash) -> Vec<u8> {
        message::frame_raw(&self.env.identity, &self.env.session, Kind::ShareAck, directory, &[])
    }
}
