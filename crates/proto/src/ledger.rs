//! The ledger, an account of everything that ever left a site: its entries, their hash chain and their signatures (spec
//! section 11.2, [LED-1] to [LED-3]). This module opens no file. An entry contains digests, lengths, what is public
//! anyway, and for exact answers the number of rows; it contains no value.

use serde::{Deserialize, Serialize};

use crate::{
    codec,
    error::Error,
    identity::{Identity, PublicKey, Signature},
    limits::MAX_SITES,
    message::Disclosure,
    policy::Cost,
    rule::Rule,
    standing::Answered,
    suite::{self, Hash},
};

const SIGNED: &str = "ledger entry";
const LINK: &str = "ledger link";
/// Bytes of a data set's name.
pub const MAX_NAME: usize = 64;

/// One frame that left.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Counted from 0.
    pub index: u64,
    /// Link of the entry before; zeros in the first.
    pub previous: Hash,
    /// The key that signs it.
    pub signer: PublicKey,
    /// The plan it left under.
    pub plan: Hash,
    /// The session, which also says to which aggregator.
    pub session: Hash,
    /// The aggregator's run.
    pub run: Hash,
    /// Deck and slot, where it belongs to a round.
    #[serde(rename = "deck_slot")]
    pub slot: Option<(u32, u16)>,
    /// Digest of the keys of the sites in the total: of those that were asked where this is the answer, of those whose total
    /// is opened where these are the shares.
    pub cohort: Option<Hash>,
    /// What it gives away.
    pub discloses: Disclosure,
    /// Bytes of the frame.
    pub bytes: u64,
    /// Digest of the frame, by which a holder of the frame can show that it is this one.
    pub digest: Hash,
    /// The operator's name of the data set.
    pub data: String,
    /// What is noted, where no frame left.
    pub note: Option<Note>,
    /// What becomes known when the answer is added up, where the entry is an answer.
    pub answer: Option<Answer>,
}

/// The form of an entry, which is under its link and its signature.
pub const FORM: u8 = 1;

/// Something that a ledger notes beside the frames that left.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// Its signer takes the place of the one before: the account goes on under another key ([LED-9]).
    Signer,
    /// The operator accepts this set of sites for good, as a cohort ([POL-10]).
    Sites(Hash),
    /// The operator agrees to the plan that the entry names; if its totals are exact, to those of this table ([POL-9], [POL-10]).
    Agreed(Option<Table>),
    /// The run of the plan that the entry names begins; it may spend so much in all, in 10^-9 of rho ([POL-8]).
    Begun(u64),
    /// The run of the plan that the entry names is over.
    Ended,
    /// How far the ledgers of all members of a deck have come, as each stated ([LED-11]).
    Met {
        /// Number of the deck in the run that the entry names.
        deck: u32,
        /// Digest of the members' keys, as that of a cohort.
        all: Hash,
        /// Digest of the rows that this site answers from in the deck, as that of a table ([JRN-2]).
        rows: Hash,
        /// The members by what they are known by, ascending; this site is one of them.
        members: Vec<Stated>,
    },
}

/// What a member of a deck stated of its ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stated {
    /// Whose ledger ([`crate::standing::Member::id`]).
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
    fn is_whole(&self) -> bool {
        let answers = self.discloses == Disclosure::MaskedWords;
        let round = self.slot.is_some() == self.cohort.is_some() && (self.slot.is_some() || !answers);
        let met = match &self.note {
            Some(Note::Met { members, .. }) => {
                (1..=MAX_SITES).contains(&members.len()) && members.is_sorted_by(|a, b| a.id.0 < b.id.0)
            }
            _ => true,
        };
        let answer = |a: &Answer| a.kind.len() <= MAX_NAME && a.table.is_some() == a.cost.nano_rho.is_none();
        self.data.len() <= MAX_NAME
            && self.answer.is_some() == answers
            && round
            && self.answer.as_ref().is_none_or(answer)
            && self.note.is_some() == (self.discloses == Disclosure::Nothing)
            && met
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
    /// `Error::Invalid` where it is not the next one, or not signed by the key that it names.
    pub fn take(&mut self, entry: &Entry, signature: &Signature) -> Result<(), Error> {
        let bad = |why: String, rule| Err(Error::invalid("ledger", why, rule));
        let at = self.head.entries;
        if entry.index != at {
            return bad(format!("entry {} stands where entry {at} belongs", entry.index), Rule::Led2);
        }
        if entry.previous != self.head.link {
            return bad(format!("entry {at} does not follow from the one before it"), Rule::Led2);
        }
        if !entry.is_whole() {
            return bad(format!("entry {at} is not of a form that a ledger has"), Rule::Led1);
        }
        if !entry.signer.verify(SIGNED, &[&entry.encoded()], signature) {
            return bad(format!("entry {at} is not signed by the key that it names"), Rule::Led3);
        }
        let goes_on = self.signer.is_none_or(|before| before == entry.signer);
        if goes_on == (entry.note == Some(Note::Signer)) {
            return bad(
                format!("entry {at} has another signer than the one before it, or says so without"),
                Rule::Led9,
            );
        }
        self.head = Head { entries: at + 1, link: entry.link() };
        self.signer = Some(entry.signer);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: u64, previous: Hash) -> Entry {
        Entry {
            index,
            previous,
            signer: Identity::from_seed(&[1; 32]).public(),
            plan: suite::hash("plan", &[]),
            session: suite::hash("session", &[]),
            run: Hash([7; 32]),
            slot: Some((0, index as u16)),
            cohort: Some(Hash([5; 32])),
            discloses: Disclosure::MaskedWords,
            bytes: 300,
            digest: Hash([9; 32]),
            data: "ward 7".into(),
            note: None,
            answer: Some(Answer {
                kind: "fuzzy_sums".into(),
                question: Hash([4; 32]),
                cost: Cost { scalars: 9, nano_rho: None },
                drawn: None,
                table: Some(Table { rows: 120, digest: Hash([3; 32]) }),
            }),
        }
    }

    fn noted(e: &mut Entry) {
        (e.answer, e.cohort, e.slot) = (None, None, None);
        (e.discloses, e.note) = (Disclosure::Nothing, Some(Note::Sites(Hash([1; 32]))));
    }

    /// [LED-9]: another key signs on by a note of its own alone.
    #[test]
    fn led_9_an_account_goes_on_under_another_key() {
        let [old, new] = [1, 2].map(|seed| Identity::from_seed(&[seed; 32]));
        let of = |index, previous, by: &Identity| Entry { signer: by.public(), ..entry(index, previous) };
        let note = |index, previous, by: &Identity| Entry {
            slot: None,
            cohort: None,
            discloses: Disclosure::Nothing,
            answer: None,
            note: Some(Note::Signer),
            ..of(index, previous, by)
        };
        let mut chain = Chain::default();
        let first = of(0, Hash::default(), &old);
        let began = note(0, Hash::default(), &old);
        assert_eq!(chain.take(&began, &began.sign(&old)).unwrap_err().rule(), Some(Rule::Led9), "nobody was before");
        chain.take(&first, &first.sign(&old)).unwrap();
        let link = chain.head().link;
        for bad in [of(1, link, &new), note(1, link, &old)] {
            let by = if bad.signer == new.public() { &new } else { &old };
            assert_eq!(chain.take(&bad, &bad.sign(by)).unwrap_err().rule(), Some(Rule::Led9));
        }
        let signs = note(1, link, &new);
        assert_eq!(chain.take(&signs, &signs.sign(&old)).unwrap_err().rule(), Some(Rule::Led3));
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
            let entry = entry(index, chain.head().link);
            chain.take(&entry, &entry.sign(&identity)).unwrap();
            entries.push(entry);
        }
        assert_eq!(chain.head(), Head { entries: 4, link: entries[3].link() });
        let rule = |changed: &Entry, signature: Signature| {
            let mut chain = Chain::default();
            entries[..2].iter().for_each(|e| chain.take(e, &e.sign(&identity)).unwrap());
            let error = chain.take(changed, &signature).unwrap_err();
            assert!(
                error.to_string().contains(&format!("entry {}", if changed.index == 3 { 3 } else { 2 })),
                "{error}"
            );
            assert_eq!(chain.head().entries, 2, "an entry that was refused is not taken");
            error.rule().unwrap()
        };
        let good = entries[2].sign(&identity);
        assert_eq!(rule(&entries[3], entries[3].sign(&identity)), Rule::Led2);
        assert_eq!(rule(&Entry { previous: Hash([1; 32]), ..entries[2].clone() }, good), Rule::Led2);
        let changes: Vec<fn(&mut Entry)> = vec![
            |e| e.plan.0[0] ^= 1,
            |e| e.session.0[31] ^= 1,
            |e| e.run.0[5] ^= 1,
            |e| e.slot = Some((1, 2)),
            |e| e.cohort = Some(Hash([6; 32])),
            |e| e.bytes += 1,
            |e| e.digest.0[0] ^= 1,
            |e| e.data.push('x'),
            |e| e.answer.as_mut().unwrap().kind.push('x'),
            |e| e.answer.as_mut().unwrap().question.0[0] ^= 1,
            |e| e.answer.as_mut().unwrap().cost.scalars -= 1,
            |e| (e.answer.as_mut().unwrap().cost.nano_rho, e.answer.as_mut().unwrap().table) = (Some(0), None),
            |e| e.answer.as_mut().unwrap().table.as_mut().unwrap().rows += 1,
            |e| e.answer.as_mut().unwrap().table.as_mut().unwrap().digest.0[0] ^= 1,
            |e| e.answer.as_mut().unwrap().drawn = Some(Hash([0; 32])),
        ];
        for (i, change) in changes.iter().enumerate() {
            let mut changed = entries[2].clone();
            change(&mut changed);
            assert_eq!(rule(&changed, good), Rule::Led3, "change {i}");
        }
        let stranger = Identity::from_seed(&[2; 32]);
        assert_eq!(rule(&entries[2], entries[2].sign(&stranger)), Rule::Led3);
        // Signed truly and still no entry.
        let changes: [fn(&mut Entry); 8] = [
            |e| e.answer = None,
            |e| e.discloses = Disclosure::RoundSeeds,
            |e| e.slot = None,
            |e| e.cohort = None,
            |e| e.answer.as_mut().unwrap().table = None,
            |e| e.answer.as_mut().unwrap().cost.nano_rho = Some(1),
            |e| e.note = Some(Note::Agreed(None)),
            |e| (e.discloses, e.answer) = (Disclosure::Nothing, None),
        ];
        for change in changes {
            let mut changed = entries[2].clone();
            change(&mut changed);
            assert_eq!(rule(&changed, changed.sign(&identity)), Rule::Led1);
        }
        // A frame that is no answer names no slot, or one with its cohort; the longest names are taken.
        type Change = fn(&mut Entry);
        let forms: [(bool, Change); 8] = [
            (true, |e| (e.slot, e.cohort, e.answer, e.discloses) = (None, None, None, Disclosure::RoundSeeds)),
            (true, |e| (e.answer, e.discloses) = (None, Disclosure::RoundSeeds)),
            (true, |e| noted(e)),
            (false, |e| {
                noted(e);
                e.slot = Some((0, 0));
            }),
            (true, |e| e.data = "d".repeat(MAX_NAME)),
            (false, |e| e.data = "d".repeat(MAX_NAME + 1)),
            (true, |e| e.answer.as_mut().unwrap().kind = "k".repeat(MAX_NAME)),
            (false, |e| e.answer.as_mut().unwrap().kind = "k".repeat(MAX_NAME + 1)),
        ];
        for (i, (sound, change)) in forms.iter().enumerate() {
            let mut changed = entries[0].clone();
            change(&mut changed);
            let taken = Chain::default().take(&changed, &changed.sign(&identity));
            assert_eq!(taken.is_ok(), *sound, "form {i}");
            assert_ne!(changed.link(), entries[0].link(), "form {i}");
        }
    }
}
