//! Entries of the ledger, which account for everything that ever left a site: their hash chain and their signatures (spec section 11.2,
//! [LED-1] to [LED-3]). An entry contains digests, lengths, what is public anyway, and for exact answers the number of rows; it contains no
//! value.

use serde::{Deserialize, Serialize};
use veilsum_proto::{
    codec,
    identity::{Identity, PublicKey, Signature},
    limits::MAX_SITES,
    message::Disclosure,
    standing::Answered,
    suite::{self, Hash},
};

use crate::policy::Bound;

const SIGNED: &str = "ledger entry";
const LINK: &str = "ledger link";
/// Bytes of a data set's name.
pub const MAX_NAME: usize = 64;

/// What an account remembers: a frame that left, or something beside.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Counted from 0.
    pub index: u64,
    /// Link of the entry before; zeros in the first.
    pub previous: Hash,
    /// The key that signs it.
    pub signer: PublicKey,
    /// What happened.
    pub event: Event,
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A frame left.
    Frame(Frame),
    /// No frame did.
    Note(Note),
}

/// A conversation: its run has one name, which the aggregator gave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Talk {
    /// The plan.
    pub plan: Hash,
    /// The session, which also says with which aggregator.
    pub session: Hash,
    /// The aggregator's run.
    pub run: Hash,
}

/// A round of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Number of the deck.
    pub deck: u32,
    /// The slot in it.
    pub slot: u16,
    /// Digest of the keys of the sites in the total: of those that were asked where this is the answer, of those whose total
    /// is opened where these are the shares.
    pub cohort: Hash,
}

/// One frame that left.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    /// In which conversation.
    pub talk: Talk,
    /// The round that it belongs to, if it does.
    pub round: Option<Place>,
    /// What it gives away.
    pub discloses: Disclosure,
    /// Bytes of the frame.
    pub bytes: u64,
    /// Digest of the frame, by which a holder of the frame can show that it is this one.
    pub digest: Hash,
    /// The operator's name of the data set.
    pub data: String,
}

/// The form of an entry, which is under its link and its signature.
pub const FORM: u8 = 1;

/// Something that a ledger notes beside the frames that left.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// What the account promises: its first entry, and whichever changes it ([POL-8]).
    Account(Bound),
    /// Its signer takes the place of the one before: the account goes on under another key ([LED-9]).
    Signer,
    /// The operator accepts this set of sites for good, as a cohort ([POL-10]).
    Sites(Hash),
    /// The operator agrees to a plan ([POL-9], [POL-10]).
    Agreed {
        /// The plan.
        plan: Hash,
        /// What its totals are.
        totals: Totals,
    },
    /// The run of a plan with noise begins ([POL-8]).
    Begun {
        /// The plan.
        plan: Hash,
        /// What it may spend in all, in 10^-9 of rho.
        nano_rho: u64,
    },
    /// The run of this plan is over.
    Ended(Hash),
    /// An answer in this round counts from here on, whether it leaves or not ([LED-7]).
    Charged {
        /// In which conversation.
        talk: Talk,
        /// The round.
        place: Place,
        /// What becomes known when the answer is added up.
        answer: Answer,
    },
    /// How far the ledgers of all members of a deck have come, as each stated ([LED-11]).
    Met {
        /// In which conversation.
        talk: Talk,
        /// Number of the deck in its run.
        deck: u32,
        /// Digest of the members' keys, as that of a cohort.
        all: Hash,
        /// The members by what they are known by, ascending; this site is one of them.
        members: Vec<Stated>,
    },
}

/// The totals to which an operator agreed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Totals {
    /// They carry noise.
    Noisy,
    /// They are exact, of this table; where the rows were not at hand, of the first one that answers.
    Exact(Option<Table>),
}

/// What a member of a deck stated of its ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stated {
    /// Whose ledger ([`veilsum_proto::standing::Member::id`]).
    pub id: Hash,
    /// How far it has come.
    pub answered: Answered,
}

/// The rows of an exact answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// How many they are.
    pub rows: u64,
    /// Digest of them in the plan's units, under a key that only this site has.
    pub digest: Hash,
}

/// What one answer gives away.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Cost {
    /// Numbers.
    pub scalars: u64,
    /// The price of an answer with noise, in 10^-9 of rho; `None` of one without.
    pub nano_rho: Option<u64>,
}

/// An answer that becomes readable in a total.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// Name of the question's kind.
    pub kind: String,
    /// Digest of the question's bytes.
    pub question: Hash,
    /// What it gives away.
    pub cost: Cost,
    /// Where a public draw decides whose rows it is made of: digest of the keys of these sites.
    pub drawn: Option<Hash>,
    /// The rows that it is made of, exactly if it has no noise.
    pub table: Option<Table>,
}

impl Entry {
    /// The link by which the next entry names this one ([LED-2]).
    pub fn link(&self) -> Hash {
        suite::hash(LINK, &[&self.encoded()])
    }

    /// Signs it ([LED-3]).
    pub fn sign(&self, identity: &Identity) -> Signature {
        identity.sign(SIGNED, &[&self.encoded()])
    }

    fn encoded(&self) -> Vec<u8> {
        codec::encode(&(FORM, self))
    }

    /// [LED-1]: whether the fields fit each other.
    pub(crate) fn is_whole(&self) -> bool {
        match &self.event {
            Event::Note(note) => {
                let met = |members: &[Stated]| {
                    (1..=MAX_SITES).contains(&members.len()) && members.is_sorted_by(|a, b| a.id.0 < b.id.0)
                };
                let charged = |a: &Answer| a.kind.len() <= MAX_NAME && a.table.is_some() == a.cost.nano_rho.is_none();
                let sound = match note {
                    Note::Met { members, .. } => met(members),
                    Note::Charged { answer, .. } => charged(answer),
                    _ => true,
                };
                sound && (self.index > 0 || matches!(note, Note::Account(_)))
            }
            Event::Frame(Frame { round, discloses, data, .. }) => {
                let answers = *discloses == Disclosure::MaskedWords;
                self.index > 0 && data.len() <= MAX_NAME && (round.is_some() || !answers)
            }
        }
    }
}

/// Where a chain ends.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Head {
    /// Entries so far.
    pub entries: u64,
    /// Link of the last one; zeros where there is none.
    pub link: Hash,
}

/// What is wrong with a ledger, by the number of the entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Damage {
    /// Another entry stands in its place.
    #[error("entry {found} stands where entry {at} belongs [LED-2]")]
    Place {
        /// What it says of itself.
        found: u64,
        /// Where it stands.
        at: u64,
    },
    /// It names another entry before it.
    #[error("entry {0} does not follow from the one before it [LED-2]")]
    Link(u64),
    /// Its fields do not fit each other.
    #[error("entry {0} is not of a form that a ledger has [LED-1]")]
    Fields(u64),
    /// It is written in another way than a ledger writes it.
    #[error("entry {0} is not in the form in which it was written [LED-1]")]
    Written(u64),
    /// Somebody else signed it, or it was changed since.
    #[error("entry {0} is not signed by the key that it names [LED-3]")]
    Signature(u64),
    /// Another key signs on without saying so.
    #[error("entry {0} has another signer than the one before it, or says so without [LED-9]")]
    Signer(u64),
    /// It has no end: it was being written when the process ended, or the file was cut.
    #[error("entry {0} is cut short [LED-6]")]
    Torn(u64),
    /// The head names another one.
    #[error("entry {0} is not the one that its head names [LED-5]")]
    Head(u64),
    /// The head is none.
    #[error("it is no head of a ledger [LED-5]")]
    NoHead,
    /// A folder, a pipe or something else stands there.
    #[error("it is not a file")]
    NoFile,
}

/// A chain that is checked entry by entry.
#[derive(Default)]
pub struct Chain {
    /// Who signed the last entry.
    signer: Option<PublicKey>,
    head: Head,
}

impl Chain {
    /// Who signed the last entry.
    pub fn signer(&self) -> Option<PublicKey> {
        self.signer
    }

    /// Where it ends so far.
    pub fn head(&self) -> Head {
        self.head
    }

    /// Takes the next entry ([LED-1] to [LED-3], [LED-9]).
    ///
    /// # Errors
    /// [`Damage`] where it is not the next one, or not signed by the key that it names.
    pub fn take(&mut self, entry: &Entry, signature: &Signature) -> Result<(), Damage> {
        let at = self.head.entries;
        let another = self.signer.is_some_and(|before| before != entry.signer);
        let damage = if entry.index != at {
            Damage::Place { found: entry.index, at }
        } else if entry.previous != self.head.link {
            Damage::Link(at)
        } else if !entry.is_whole() {
            Damage::Fields(at)
        } else if !entry.signer.verify(SIGNED, &[&entry.encoded()], signature) {
            Damage::Signature(at)
        } else if another != (entry.event == Event::Note(Note::Signer)) {
            Damage::Signer(at)
        } else {
            self.head = Head { entries: at + 1, link: entry.link() };
            self.signer = Some(entry.signer);
            return Ok(());
        };
        Err(damage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk() -> Talk {
        let [plan, session] = ["plan", "session"].map(|what| suite::hash(what, &[]));
        Talk { plan, session, run: Hash([7; 32]) }
    }

    fn entry(index: u64, previous: Hash) -> Entry {
        let round = Some(Place { deck: 0, slot: index as u16, cohort: Hash([5; 32]) });
        let (talk, discloses, digest) = (talk(), Disclosure::MaskedWords, Hash([9; 32]));
        let event = Event::Frame(Frame { talk, round, discloses, bytes: 300, digest, data: "ward 7".into() });
        Entry { index, previous, signer: Identity::from_seed(&[1; 32]).public(), event }
    }

    /// That an answer is charged.
    fn charged(index: u64, previous: Hash) -> Entry {
        let place = Place { deck: 0, slot: index as u16, cohort: Hash([5; 32]) };
        let answer = Answer {
            kind: "fuzzy_sums".into(),
            question: Hash([4; 32]),
            cost: Cost { scalars: 9, nano_rho: None },
            drawn: None,
            table: Some(Table { rows: 120, digest: Hash([3; 32]) }),
        };
        Entry { event: Event::Note(Note::Charged { talk: talk(), place, answer }), ..entry(index, previous) }
    }

    fn noted(e: &mut Entry, note: Note) {
        e.event = Event::Note(note);
    }

    fn frame(e: &mut Entry) -> &mut Frame {
        let Event::Frame(frame) = &mut e.event else { panic!("a note") };
        frame
    }

    fn answer(e: &mut Entry) -> &mut Answer {
        let Event::Note(Note::Charged { answer, .. }) = &mut e.event else { panic!("no charge") };
        answer
    }

    /// The first entry of an account.
    fn begins() -> Entry {
        let mut first = entry(0, Hash::default());
        noted(&mut first, Note::Account(Bound::default()));
        first
    }

    /// [LED-9]: another key signs on by a note of its own alone.
    #[test]
    fn led_9_an_account_goes_on_under_another_key() {
        let [old, new] = [1, 2].map(|seed| Identity::from_seed(&[seed; 32]));
        let of = |index, previous, by: &Identity| Entry { signer: by.public(), ..entry(index, previous) };
        let note = |index, previous, by: &Identity| {
            let mut note = of(index, previous, by);
            noted(&mut note, Note::Signer);
            note
        };
        let mut chain = Chain::default();
        let began = note(0, Hash::default(), &old);
        assert_eq!(chain.take(&began, &began.sign(&old)), Err(Damage::Fields(0)), "nobody was before");
        let first = Entry { signer: old.public(), ..begins() };
        chain.take(&first, &first.sign(&old)).unwrap();
        let link = chain.head().link;
        for bad in [of(1, link, &new), note(1, link, &old)] {
            let by = if bad.signer == new.public() { &new } else { &old };
            assert_eq!(chain.take(&bad, &bad.sign(by)), Err(Damage::Signer(1)));
        }
        let signs = note(1, link, &new);
        assert_eq!(chain.take(&signs, &signs.sign(&old)), Err(Damage::Signature(1)));
        chain.take(&signs, &signs.sign(&new)).unwrap();
        let next = of(2, chain.head().link, &new);
        chain.take(&next, &next.sign(&new)).unwrap();
        assert_eq!(chain.signer(), Some(new.public()));
    }

    /// [LED-1] to [LED-3]: whatever is changed, left out or put in is found, and the entry is named.
    #[test]
    fn a_chain_takes_its_own_entries_in_order() {
        let identity = Identity::from_seed(&[1; 32]);
        let mut chain = Chain::default();
        let mut entries = Vec::new();
        for index in 0..4 {
            let link = chain.head().link;
            let entry = match index {
                0 => begins(),
                3 => charged(index, link),
                _ => entry(index, link),
            };
            chain.take(&entry, &entry.sign(&identity)).unwrap();
            entries.push(entry);
        }
        assert_eq!(chain.head(), Head { entries: 4, link: entries[3].link() });
        let found = |changed: &Entry, signature: Signature| {
            let mut chain = Chain::default();
            entries[..2].iter().for_each(|e| chain.take(e, &e.sign(&identity)).unwrap());
            let damage = chain.take(changed, &signature).unwrap_err();
            assert_eq!(chain.head().entries, 2, "an entry that was refused is not taken");
            damage
        };
        let good = entries[2].sign(&identity);
        assert_eq!(found(&entries[3], entries[3].sign(&identity)), Damage::Place { found: 3, at: 2 });
        assert_eq!(found(&Entry { previous: Hash([1; 32]), ..entries[2].clone() }, good), Damage::Link(2));
        let changes: Vec<fn(&mut Entry)> = vec![
            |e| frame(e).talk.plan.0[0] ^= 1,
            |e| frame(e).talk.session.0[31] ^= 1,
            |e| frame(e).talk.run.0[5] ^= 1,
            |e| frame(e).round.as_mut().unwrap().deck = 1,
            |e| frame(e).round.as_mut().unwrap().slot = 7,
            |e| frame(e).round.as_mut().unwrap().cohort = Hash([6; 32]),
            |e| frame(e).bytes += 1,
            |e| frame(e).digest.0[0] ^= 1,
            |e| frame(e).data.push('x'),
        ];
        let of_charges: Vec<fn(&mut Entry)> = vec![
            |e| answer(e).kind.push('x'),
            |e| answer(e).question.0[0] ^= 1,
            |e| answer(e).cost.scalars -= 1,
            |e| (answer(e).cost.nano_rho, answer(e).table) = (Some(0), None),
            |e| answer(e).table.as_mut().unwrap().rows += 1,
            |e| answer(e).table.as_mut().unwrap().digest.0[0] ^= 1,
            |e| answer(e).drawn = Some(Hash([0; 32])),
        ];
        // Signed truly and still no entry.
        let unsound: [fn(&mut Entry); 2] = [|e| answer(e).table = None, |e| answer(e).cost.nano_rho = Some(1)];
        let charge = charged(2, entries[1].link());
        for (entry, changes, good) in [(&entries[2], &changes, good), (&charge, &of_charges, charge.sign(&identity))] {
            for (i, change) in changes.iter().enumerate() {
                let mut changed = entry.clone();
                change(&mut changed);
                assert_eq!(found(&changed, good), Damage::Signature(2), "change {i}");
            }
        }
        let stranger = Identity::from_seed(&[2; 32]);
        assert_eq!(found(&entries[2], entries[2].sign(&stranger)), Damage::Signature(2));
        for change in unsound {
            let mut changed = charge.clone();
            change(&mut changed);
            assert_eq!(found(&changed, changed.sign(&identity)), Damage::Fields(2));
        }
        // A frame that is no answer names no round, or one; the longest names are taken.
        type Change = fn(&mut Entry);
        let forms: [(bool, Change); 9] = [
            (true, |e| (frame(e).round, frame(e).discloses) = (None, Disclosure::RoundSeeds)),
            (true, |e| frame(e).discloses = Disclosure::RoundSeeds),
            (false, |e| frame(e).round = None),
            (true, |e| noted(e, Note::Sites(Hash([1; 32])))),
            (true, |e| noted(e, Note::Account(Bound::default()))),
            (true, |e| frame(e).data = "d".repeat(MAX_NAME)),
            (false, |e| frame(e).data = "d".repeat(MAX_NAME + 1)),
            (true, |e| {
                *e = charged(1, e.previous);
                answer(e).kind = "k".repeat(MAX_NAME);
            }),
            (false, |e| {
                *e = charged(1, e.previous);
                answer(e).kind = "k".repeat(MAX_NAME + 1);
            }),
        ];
        for (i, (sound, change)) in forms.iter().enumerate() {
            let mut changed = entries[1].clone();
            change(&mut changed);
            let mut chain = Chain::default();
            chain.take(&entries[0], &entries[0].sign(&identity)).unwrap();
            assert_eq!(chain.take(&changed, &changed.sign(&identity)).is_ok(), *sound, "form {i}");
            assert_ne!(changed.link(), entries[1].link(), "form {i}");
        }
    }
}
