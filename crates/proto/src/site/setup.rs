//! The exchange of keys at a site, message by message: each takes out the state it fits and puts back the next (spec section 8).

use super::*;

impl Site {
    pub(super) fn open_deck(&mut self, frame: &Verified<'_>, rng: &mut dyn CryptoRng) -> Result<(), Error> {
        let open: OpenDeck = frame.decode("OpenDeck")?;
        let env = &self.env;
        let own_name = frame.context == message::deck_id(&env.session, &open);
        env.demand(own_name, "opened a deck under a name that is not its own", Rule::Kex1)?;
        if open.slots == 0 || open.slots > MAX_SLOTS.min(env.terms.slots) {
            return Err(env.aggregator(format!("opened a deck of {} slots", open.slots), Rule::Kex1));
        }
        if let Some((run, highest)) = self.run {
            let otherwise = "started another run; this site must be started anew to join it";
            env.demand(run == open.run, otherwise, Rule::Kex9)?;
            if open.index <= highest {
                return Err(env.aggregator(format!("opened deck {} a second time", open.index), Rule::Kex1));
            }
        }
        self.run = Some((open.run, open.index));
        // A set-up that was under way is given up: its keys are dropped and wiped here.
        // So is a ready deck that waited behind the one in use: somebody else did not get as far ([KEX-1]).
        let in_use = self.decks.keys().next().copied();
        self.decks.retain(|index, _| Some(*index) == in_use);
        self.replies.retain(|(_, index), _| Some(*index) == in_use);
        let (state, keys) = ExpectDirectory::open(&self.env, &open, self.standing, rng);
        self.setup = Some(Setup::Directory(state));
        self.reply(frame, open.index, Kind::AdvertiseKeys, &frame.context, &keys);
        Ok(())
    }

    pub(super) fn stray(&self, kind: Kind) -> Error {
        self.env.aggregator(format!("sent a {kind:?} that belongs to no deck or round this site is in"), Rule::Frm7)
    }

    pub(super) fn directory(&mut self, frame: &Verified<'_>, rng: &mut dyn CryptoRng) -> Result<(), Error> {
        let directory = frame.decode("Directory")?;
        let awaited = |setup: &mut Setup| matches!(setup, Setup::Directory(e) if e.id == frame.context);
        let Some(Setup::Directory(state)) = self.setup.take_if(awaited) else {
            return Err(self.stray(frame.kind));
        };
        let (mut next, accepted) = state.directory(&self.env, directory, rng)?;
        next.sent = self.reply(frame, next.draft.index, Kind::AcceptDirectory, &next.draft.hash, &accepted);
        self.setup = Some(Setup::Certificate(next));
        Ok(())
    }

    pub(super) fn certificate(&mut self, frame: &Verified<'_>, rng: &mut dyn CryptoRng) -> Result<(), Error> {
        let certificate = frame.decode("DirectoryCertificate")?;
        let awaited = |setup: &mut Setup| matches!(setup, Setup::Certificate(e) if e.draft.hash == frame.context);
        let Some(Setup::Certificate(state)) = self.setup.take_if(awaited) else {
            return Err(self.stray(frame.kind));
        };
        let (next, shares) = state.certificate(&self.env, &certificate, rng)?;
        let index = next.draft.index;
        self.out.push_back(Output::Event(Event::Met { deck: index, members: next.draft.members.clone() }));
        self.forget(Kind::Directory, index);
        self.reply(frame, index, Kind::ShareKeys, &frame.context, &shares);
        self.setup = Some(Setup::Shares(next));
        Ok(())
    }

    pub(super) fn shares(&mut self, frame: &Verified<'_>) -> Result<(), Error> {
        let delivery = frame.decode("DeliverShares")?;
        if let Some(index) = self.decks.values().find(|deck| deck.hash == frame.context).map(|deck| deck.index) {
            // After a restart between the deck and its acknowledgement: say it again.
            self.reply(frame, index, Kind::ShareAck, &frame.context, &());
            return Ok(());
        }
        let awaited = |setup: &mut Setup| matches!(setup, Setup::Shares(e) if e.draft.hash == frame.context);
        let Some(Setup::Shares(state)) = self.setup.take_if(awaited) else {
            return Err(self.stray(frame.kind));
        };
        let index = state.draft.index;
        match state.shares(&self.env, &delivery) {
            Ok(deck) => {
                let (members, threshold) = (deck.members.len(), deck.threshold);
                self.forget(Kind::DirectoryCertificate, index);
                self.out.push_back(Output::Persist(Record(Entry::Deck(deck.to_record(self.env.session)))));
                self.decks.insert(index, deck);
                self.reply(frame, index, Kind::ShareAck, &frame.context, &());
                self.out.push_back(Output::Event(Event::DeckReady { index, members, threshold }));
                Ok(())
            }
            Err(BadDelivery { against, error }) => {
                self.reply(frame, index, Kind::ShareComplaint, &frame.context, &ShareComplaint { against });
                Err(error)
            }
        }
    }
}
