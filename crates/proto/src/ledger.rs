//! The ledger, an account of everything that ever left a site: its entries, their hash chain and their signatures (spec
//! section 11.2, [LED-1] to [LED-3]). This module opens no file. An entry contains digests, lengths and what is public
//! anyway; it contains no value and no row count.

use serde::{Deserialize, Serialize};

use crate::{
    codec,
    error::Error,
    identity::{Identity, PublicKey, Signature},
    limits::MAX_SITES,
    message::Disclosure,
    policy::Cost,
    release::Answered,
    rule::Rule,
    suite::{self, Hash},
};

const SIGNED: &str = "ledger entry";
const LINK: &str = "ledger link";
const HEAD: &str = "ledger head";
/// Bytes of a data set's name.
pub const MAX_NAME: usize = 64;

/// One frame that left.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Counted from 0.
    pub index: u64,
    /// Link of the entry before; zeros in the first.
    pub previous: Hash,
    /// The plan it left under.
    pub plan: Hash,
    /// The session, which also says to which aggregator.
    pub session: Hash,
    /// The aggregator's run.
    pub run: Hash,
    /// Deck and slot, where it belongs to a round.
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
    /// Digest of the rows under a key that only this site has: shows that they are the same, and nothing of them.
    pub rows: Hash,
    /// How often the operator had declared by then that the rows have changed.
    pub version: u32,
    /// Where it is an answer over another block than the answer before it: the block's sites by their keys, ascending, and how
    /// often the rows of each have changed.
    pub block: Option<Vec<(PublicKey, u32)>>,
    /// What is noted, where no frame left.
    pub note: Option<Note>,
    /// What becomes known when the answer is added up, where the entry is an answer.
    pub answer: Option<Answer>,
    /// In which form it was written.
    #[serde(skip)]
    pub form: Form,
}

/// The form of an entry: which fields its line, its link and its signature have. Later forms are greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Form {
    /// Without `version`, `block` and `note`; an answer has [`Probed`].
    BeforeBlocks,
    /// With these; an answer still has [`Probed`].
    BeforeAccount,
    /// As it is written now.
    #[default]
    Present,
}

/// What the present form begins with; no earlier one has it.
pub const FORM: u8 = 3;

/// Something that a ledger notes beside the frames that left.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// Columns of the data set that were not known before.
    Columns(Vec<Column>),
    /// The operator declares that the rows have changed; the columns as they are from now on.
    Changed(Vec<Column>),
    /// The operator declares that these are other rows altogether: another version. What was given away before still counts.
    Separate(Vec<Column>),
    /// The masked words whose frame has the digest of this entry enter no total ([REL-6]).
    Undone,
    /// The operator agrees to the exact totals of the plan that the entry names, for the rows as they are ([POL-9]).
    Agreed,
    /// This site said yes to the plan that the entry names, and so much of the account is kept for its run ([POL-8]).
    Reserved(Reservation),
    /// How far the ledgers of all members of a deck have come, as each stated ([LED-11]).
    Met {
        /// Number of the deck in the run that the entry names.
        deck: u32,
        /// The members by their keys, ascending; this site is one of them.
        members: Vec<Stated>,
    },
}

/// What a member of a deck stated of its ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stated {
    /// Whose ledger.
    pub key: PublicKey,
    /// How far it has come.
    pub answered: Answered,
}

/// What is kept of an account for a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reservation {
    /// In 10^-9 of rho, with what the run has spent of it.
    pub nano_rho: u64,
    /// Until when, in seconds since 1970; a run that has not been taken up by then has ended.
    pub until: u64,
}

/// A column of a data set.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Digest of its values in their order of size, under a key that only this site has.
    pub values: Hash,
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
    /// What else it has in an entry of an earlier form.
    #[serde(skip)]
    pub probed: Option<Box<Probed>>,
}

/// What an answer also had while what it gives away was measured by probes: it is under the link and the signature, and nothing is
/// computed from it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Probed {
    /// Thousandths of a bit.
    pub milli_bits: u64,
    /// The box of its centres: names of the columns, lower ends, upper ends. An end is a double by its bits.
    pub frame: (Vec<String>, Vec<u64>, Vec<u64>),
    /// Where its centres lay: for each set, the coordinates of a point, and all coordinates.
    pub centres: Vec<(u32, Vec<i32>)>,
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
        if self.form == Form::Present {
            return codec::encode(&(FORM, self));
        }
        let (index, previous) = (self.index, self.previous);
        let frame = (self.slot, self.cohort, self.discloses, self.bytes, self.digest);
        let mut out =
            codec::encode(&(index, previous, self.plan, self.session, self.run, frame, &self.data, self.rows));
        if self.form == Form::BeforeAccount {
            out.extend(codec::encode(&(self.version, &self.block, &self.note)));
        }
        let none = Probed::default();
        let answer = self.answer.as_ref().map(|a| {
            let probed = a.probed.as_deref().unwrap_or(&none);
            let cost = (a.cost.scalars, probed.milli_bits, a.cost.nano_rho);
            (&a.kind, a.question, cost, a.drawn, &probed.frame, &probed.centres)
        });
        out.extend(codec::encode(&answer));
        out
    }

    /// [LED-1]: whether the fields fit each other.
    fn is_whole(&self) -> bool {
        let answers = self.discloses == Disclosure::MaskedWords;
        let round = self.slot.is_some() == self.cohort.is_some() && (self.slot.is_some() || !answers);
        let columns = match &self.note {
            Some(Note::Columns(list) | Note::Changed(list) | Note::Separate(list)) => list.as_slice(),
            _ => &[],
        };
        let met = match &self.note {
            Some(Note::Met { members, .. }) => {
                (1..=MAX_SITES).contains(&members.len()) && members.is_sorted_by(|a, b| a.key.0 < b.key.0)
            }
            _ => true,
        };
        let nothing_new = self.version == 0 && self.block.is_none() && self.note.is_none();
        let undone = self.note == Some(Note::Undone);
        let members = |block: &Vec<(PublicKey, u32)>| block.is_sorted_by(|(a, _), (b, _)| a.0 < b.0);
        self.data.len() <= MAX_NAME
            && self.answer.is_some() == answers
            && (round || (undone && self.slot.is_some() && self.cohort.is_none()))
            && self
                .answer
                .as_ref()
                .is_none_or(|a| a.kind.len() <= MAX_NAME && a.probed.is_some() == (self.form < Form::Present))
            && self.note.is_some() == (self.discloses == Disclosure::Nothing)
            && (!undone || self.slot.is_some())
            && columns.is_sorted_by(|a, b| a.name < b.name)
            && met
            && self.block.as_ref().is_none_or(|block| answers && members(block))
            && (self.form > Form::BeforeBlocks || nothing_new)
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

impl Head {
    fn parts(&self) -> [u8; 40] {
        let mut out = [0; 40];
        out[..8].copy_from_slice(&self.entries.to_le_bytes());
        out[8..].copy_from_slice(&self.link.0);
        out
    }

    /// Signs it ([LED-5]).
    pub fn sign(&self, identity: &Identity) -> Signature {
        identity.sign(HEAD, &[&self.parts()])
    }

    /// Whether `key` signed it.
    pub fn verify(&self, key: &PublicKey, signature: &Signature) -> bool {
        key.verify(HEAD, &[&self.parts()], signature)
    }
}

/// A chain that is checked entry by entry.
pub struct Chain {
    owner: PublicKey,
    head: Head,
    /// The latest form so far.
    form: Form,
}

impl Chain {
    /// Starts the chain of this key.
    pub fn new(key: PublicKey) -> Chain {
        Chain { owner: key, head: Head::default(), form: Form::BeforeBlocks }
    }

    /// Where it ends so far.
    pub fn head(&self) -> Head {
        self.head
    }

    /// Takes the next entry ([LED-1] to [LED-3]).
    ///
    /// # Errors
    /// `Error::Invalid` where it is not the next one, or not signed by the party.
    pub fn take(&mut self, entry: &Entry, signature: &Signature) -> Result<(), Error> {
        let bad = |why: String, rule| Err(Error::invalid("ledger", why, rule));
        let at = self.head.entries;
        if entry.index != at {
            return bad(format!("entry {} stands where entry {at} belongs", entry.index), Rule::Led2);
        }
        if entry.previous != self.head.link {
            return bad(format!("entry {at} does not follow from the one before it"), Rule::Led2);
        }
        if !entry.is_whole() || entry.form < self.form {
            return bad(format!("entry {at} is not of a form that a ledger has"), Rule::Led1);
        }
        if !self.owner.verify(SIGNED, &[&entry.encoded()], signature) {
            return bad(format!("entry {at} is not signed by the ledger's owner"), Rule::Led3);
        }
        self.head = Head { entries: at + 1, link: entry.link() };
        self.form = entry.form;
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
            plan: suite::hash("plan", &[]),
            session: suite::hash("session", &[]),
            run: Hash([7; 32]),
            slot: Some((0, index as u16)),
            cohort: Some(Hash([5; 32])),
            discloses: Disclosure::MaskedWords,
            bytes: 300,
            digest: Hash([9; 32]),
            data: "ward 7".into(),
            rows: Hash([3; 32]),
            version: 1,
            block: Some(vec![(PublicKey([1; 32]), 0), (PublicKey([2; 32]), 1)]),
            note: None,
            form: Form::Present,
            answer: Some(Answer {
                kind: "fuzzy_sums".into(),
                question: Hash([4; 32]),
                cost: Cost { scalars: 9, nano_rho: None },
                drawn: None,
                probed: None,
            }),
        }
    }

    /// The same in an earlier form.
    fn earlier(form: Form, index: u64, previous: Hash) -> Entry {
        let mut e = Entry { form, ..entry(index, previous) };
        if form == Form::BeforeBlocks {
            (e.version, e.block) = (0, None);
        }
        let frame = (vec!["x".into()], vec![0], vec![2f64.to_bits()]);
        let probed = Probed { milli_bits: 300_000, frame, centres: vec![(1, vec![0, -500_000])] };
        e.answer.as_mut().unwrap().probed = Some(Box::new(probed));
        e
    }

    fn columns(names: &[&str]) -> Vec<Column> {
        names.iter().map(|name| Column { name: (*name).to_owned(), values: Hash([6; 32]) }).collect()
    }

    fn undone(e: &mut Entry) {
        (e.answer, e.block, e.cohort) = (None, None, None);
        (e.discloses, e.note) = (Disclosure::Nothing, Some(Note::Undone));
    }

    /// [LED-1]: entries of earlier forms are carried forward under their own signatures, and none comes after one of a later form.
    #[test]
    fn led_1_forms_only_go_forward() {
        let identity = Identity::from_seed(&[1; 32]);
        let forms = [Form::BeforeBlocks, Form::BeforeAccount, Form::Present];
        let of = |form: Form, index, previous| match form {
            Form::Present => entry(index, previous),
            earlier_form => earlier(earlier_form, index, previous),
        };
        let mut chain = Chain::new(identity.public());
        for (at, form) in forms.into_iter().enumerate() {
            for index in [2 * at as u64, 2 * at as u64 + 1] {
                let e = of(form, index, chain.head().link);
                chain.take(&e, &e.sign(&identity)).unwrap();
            }
            for sooner in &forms[..at] {
                let mut late = of(*sooner, 2 * at as u64 + 2, chain.head().link);
                let refused = |late: &Entry, chain: &mut Chain| chain.take(late, &late.sign(&identity)).unwrap_err();
                assert_eq!(refused(&late, &mut chain).rule(), Some(Rule::Led1), "{sooner:?} after {form:?}");
                undone(&mut late);
                assert_eq!(refused(&late, &mut chain).rule(), Some(Rule::Led1), "a note too");
            }
        }
    }

    /// [LED-1], [LED-3]: no entry is one of another form, and what an answer had in its time is under the signature.
    #[test]
    fn led_1_a_form_is_signed() {
        let identity = Identity::from_seed(&[1; 32]);
        for form in [Form::BeforeBlocks, Form::BeforeAccount] {
            let good = earlier(form, 0, Hash::default());
            let signature = good.sign(&identity);
            let take = |e: &Entry| Chain::new(identity.public()).take(e, &signature).map_err(|e| e.rule().unwrap());
            take(&good).unwrap();
            let probed: [fn(&mut Probed); 5] = [
                |p| p.milli_bits -= 1,
                |p| p.frame.0[0].push('x'),
                |p| p.frame.1[0] ^= 1,
                |p| p.frame.2[0] ^= 1,
                |p| p.centres[0].1[0] = 5,
            ];
            for change in probed {
                let mut e = good.clone();
                change(e.answer.as_mut().unwrap().probed.as_mut().unwrap());
                assert_eq!(take(&e), Err(Rule::Led3));
            }
            let mut e = good.clone();
            e.form = Form::Present;
            assert_eq!(take(&e), Err(Rule::Led1), "the present form has no such fields");
            e.answer.as_mut().unwrap().probed = None;
            assert_eq!(take(&e), Err(Rule::Led3));
            e.form = form;
            assert_eq!(take(&e), Err(Rule::Led1), "an earlier form has them");
        }
        // Without an answer the fields are the same: the form alone differs.
        let note = Entry { note: Some(Note::Agreed), discloses: Disclosure::Nothing, ..entry(0, Hash::default()) };
        let note = Entry { slot: None, cohort: None, block: None, answer: None, ..note };
        let before = Entry { form: Form::BeforeAccount, ..note.clone() };
        assert_ne!(note.link(), before.link());
        let taken = Chain::new(identity.public()).take(&note, &before.sign(&identity));
        assert_eq!(taken.unwrap_err().rule(), Some(Rule::Led3));
    }

    /// [LED-1] to [LED-3]: whatever is changed, left out or put in is found, and the entry is named.
    #[test]
    fn a_chain_takes_its_own_entries_in_order() {
        let identity = Identity::from_seed(&[1; 32]);
        let mut chain = Chain::new(identity.public());
        let mut entries = Vec::new();
        for index in 0..4 {
            let entry = entry(index, chain.head().link);
            chain.take(&entry, &entry.sign(&identity)).unwrap();
            entries.push(entry);
        }
        assert_eq!(chain.head(), Head { entries: 4, link: entries[3].link() });
        let rule = |changed: &Entry, signature: Signature| {
            let mut chain = Chain::new(identity.public());
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
            |e| e.rows.0[0] ^= 1,
            |e| e.version += 1,
            |e| e.block = None,
            |e| e.block.as_mut().unwrap()[1].1 = 7,
            |e| e.block.as_mut().unwrap()[0].0.0[5] ^= 1,
            |e| e.answer.as_mut().unwrap().kind.push('x'),
            |e| e.answer.as_mut().unwrap().question.0[0] ^= 1,
            |e| e.answer.as_mut().unwrap().cost.scalars -= 1,
            |e| e.answer.as_mut().unwrap().cost.nano_rho = Some(0),
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
        let changes: [fn(&mut Entry); 7] = [
            |e| e.answer = None,
            |e| e.discloses = Disclosure::RoundSeeds,
            |e| e.slot = None,
            |e| e.cohort = None,
            |e| e.block.as_mut().unwrap().reverse(),
            |e| e.note = Some(Note::Undone),
            |e| (e.discloses, e.answer) = (Disclosure::Nothing, None),
        ];
        for change in changes {
            let mut changed = entries[2].clone();
            change(&mut changed);
            assert_eq!(rule(&changed, changed.sign(&identity)), Rule::Led1);
        }
        // A frame that is no answer names no slot, or one with its cohort; the longest names are taken.
        type Change = fn(&mut Entry);
        let forms: [(bool, Change); 11] = [
            (true, |e| {
                (e.slot, e.cohort, e.answer, e.block, e.discloses) = (None, None, None, None, Disclosure::RoundSeeds)
            }),
            (true, |e| (e.answer, e.block, e.discloses) = (None, None, Disclosure::RoundSeeds)),
            (false, |e| (e.answer, e.discloses) = (None, Disclosure::RoundSeeds)),
            (true, |e| undone(e)),
            (false, |e| {
                undone(e);
                e.slot = None;
            }),
            (true, |e| {
                undone(e);
                (e.slot, e.note) = (None, Some(Note::Changed(columns(&["a", "b"]))));
            }),
            (false, |e| {
                undone(e);
                (e.slot, e.note) = (None, Some(Note::Columns(columns(&["b", "a"]))));
            }),
            (true, |e| e.data = "d".repeat(MAX_NAME)),
            (false, |e| e.data = "d".repeat(MAX_NAME + 1)),
            (true, |e| e.answer.as_mut().unwrap().kind = "k".repeat(MAX_NAME)),
            (false, |e| e.answer.as_mut().unwrap().kind = "k".repeat(MAX_NAME + 1)),
        ];
        for (i, (sound, change)) in forms.iter().enumerate() {
            let mut changed = entries[0].clone();
            change(&mut changed);
            let taken = Chain::new(identity.public()).take(&changed, &changed.sign(&identity));
            assert_eq!(taken.is_ok(), *sound, "form {i}");
            assert_ne!(changed.link(), entries[0].link(), "form {i}");
        }
    }

    /// [LED-5].
    #[test]
    fn led_5_a_head_is_signed() {
        let identity = Identity::from_seed(&[1; 32]);
        let head = Head { entries: 3, link: Hash([8; 32]) };
        let signature = head.sign(&identity);
        assert!(head.verify(&identity.public(), &signature));
        assert!(!Head { entries: 2, ..head }.verify(&identity.public(), &signature));
        assert!(!Head { link: Hash([7; 32]), ..head }.verify(&identity.public(), &signature));
    }
}
