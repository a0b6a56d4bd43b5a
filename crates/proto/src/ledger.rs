//! The ledger, an account of everything that ever left a site: its entries, their hash chain and their signatures (spec
//! section 11.2, [LED-1] to [LED-3], [LED-9]). This module opens no file. An entry contains digests, lengths and what is public
//! anyway; it contains no value and no row count.

use serde::{Deserialize, Serialize};

use crate::{
    codec,
    error::Error,
    history::Rekey,
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
    /// Whether it was written before entries had `version`, `block` and `note`: its link and its signature are without them.
    #[serde(skip)]
    pub old: bool,
}

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
    /// The owner of the ledger has a new key: this entry is the last one that the old key signs ([LED-9]).
    Rekeyed(Box<Rekey>),
    /// Another site of the block has a new key ([LED-9]).
    Renamed(Box<Rekey>),
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

/// An entry as it was before blocks.
#[derive(Serialize)]
struct OldEntry<'a> {
    index: u64,
    previous: Hash,
    plan: Hash,
    session: Hash,
    run: Hash,
    slot: Option<(u32, u16)>,
    cohort: Option<Hash>,
    discloses: Disclosure,
    bytes: u64,
    digest: Hash,
    data: &'a str,
    rows: Hash,
    answer: &'a Option<Answer>,
}

/// An answer that becomes readable in a total.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// Name of the question's kind.
    pub kind: String,
    /// Digest of the question's bytes, and of what else but rows the answer is made of: labels.
    pub question: Hash,
    /// What it gives away.
    pub cost: Cost,
    /// Where a public draw decides whose rows it is made of: digest of the keys of these sites.
    pub drawn: Option<Hash>,
    /// The box in which its centres lay; of no column where it has none.
    pub frame: BoundingBox,
    /// Where its centres lay, one list of coordinates for each set of centres.
    pub centres: Vec<Places>,
}

/// Points of a question, which everybody in the cohort was sent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Places {
    /// Coordinates of one point.
    pub columns: u32,
    /// All coordinates, point by point, in millionths of the box's half-width from its middle.
    pub at: Vec<i32>,
}

/// A box in the columns' own units, in which [`Places`] are read: they can be compared with those in another box. Its ends are
/// doubles by their bits; nothing is computed with them here.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct BoundingBox {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Its lower ends.
    pub lower: Vec<u64>,
    /// Its upper ends.
    pub upper: Vec<u64>,
}

impl BoundingBox {
    /// Whether these places can lie in the box: its ends are finite and in order, and every point has a coordinate for
    /// each column.
    fn holds(&self, centres: &[Places]) -> bool {
        let d = self.columns.len();
        let sound = self.lower.iter().zip(&self.upper).all(|(l, u)| finite(*l) && finite(*u) && order(*l) < order(*u));
        let fits = |places: &Places| places.columns as usize == d && !places.at.is_empty();
        let whole = |places: &Places| places.at.len().is_multiple_of(d.max(1));
        self.lower.len() == d
            && self.upper.len() == d
            && sound
            && (d == 0) == centres.is_empty()
            && centres.iter().all(|places| fits(places) && whole(places))
    }
}

/// Whether the bits are those of a finite double.
fn finite(bits: u64) -> bool {
    bits >> 52 & 0x7ff != 0x7ff
}

/// Integers in the order of the doubles with these bits.
fn order(bits: u64) -> i64 {
    let signed = bits.cast_signed();
    signed ^ ((signed >> 63).cast_unsigned() >> 1).cast_signed()
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
        if !self.old {
            return codec::encode(self);
        }
        codec::encode(&OldEntry {
            index: self.index,
            previous: self.previous,
            plan: self.plan,
            session: self.session,
            run: self.run,
            slot: self.slot,
            cohort: self.cohort,
            discloses: self.discloses,
            bytes: self.bytes,
            digest: self.digest,
            data: &self.data,
            rows: self.rows,
            answer: &self.answer,
        })
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
            && self.answer.as_ref().is_none_or(|a| a.kind.len() <= MAX_NAME && a.frame.holds(&a.centres))
            && self.note.is_some() == (self.discloses == Disclosure::Nothing)
            && (!undone || self.slot.is_some())
            && columns.is_sorted_by(|a, b| a.name < b.name)
            && met
            && self.block.as_ref().is_none_or(|block| answers && members(block))
            && (!self.old || nothing_new)
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
    /// Whose it was, one key after the other; the last one signs now.
    owners: Vec<PublicKey>,
    head: Head,
    /// Whether entries of the present form have begun.
    present: bool,
}

impl Chain {
    /// Starts the chain that this key began.
    pub fn new(key: PublicKey) -> Chain {
        Chain { owners: vec![key], head: Head::default(), present: false }
    }

    /// The keys of its owner so far, oldest first ([LED-9]).
    pub fn owners(&self) -> &[PublicKey] {
        &self.owners
    }

    /// Where it ends so far.
    pub fn head(&self) -> Head {
        self.head
    }

    /// Takes the next entry ([LED-1] to [LED-3], [LED-9]).
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
        if !entry.is_whole() || (entry.old && self.present) {
            return bad(format!("entry {at} is not of a form that a ledger has"), Rule::Led1);
        }
        let owner = self.owners.last().copied();
        if !owner.is_some_and(|owner| owner.verify(SIGNED, &[&entry.encoded()], signature)) {
            return bad(format!("entry {at} is not signed by the ledger's owner"), Rule::Led3);
        }
        if let Some(Note::Rekeyed(rekey) | Note::Renamed(rekey)) = &entry.note {
            let own = matches!(entry.note, Some(Note::Rekeyed(_)));
            if rekey.verify().is_err() || own != (owner == Some(rekey.old)) {
                return bad(format!("entry {at} has a new key that nobody stated, or another party's"), Rule::Led9);
            }
            if own {
                self.owners.push(rekey.new);
            }
        }
        self.head = Head { entries: at + 1, link: entry.link() };
        self.present |= !entry.old;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(columns: &[&str], lower: f64, upper: f64) -> BoundingBox {
        let d = columns.len();
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        BoundingBox { columns, lower: vec![lower.to_bits(); d], upper: vec![upper.to_bits(); d] }
    }

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
            old: false,
            answer: Some(Answer {
                kind: "fuzzy_sums".into(),
                question: Hash([4; 32]),
                cost: Cost { scalars: 9, milli_bits: 300_000, nano_rho: None },
                drawn: None,
                frame: frame(&["x", "y"], 0.0, 2.0),
                centres: vec![Places { columns: 2, at: vec![0, 1, -500_000, 3] }],
            }),
        }
    }

    fn columns(names: &[&str]) -> Vec<Column> {
        names.iter().map(|name| Column { name: (*name).to_owned(), values: Hash([6; 32]) }).collect()
    }

    fn undone(e: &mut Entry) {
        (e.answer, e.block, e.cohort) = (None, None, None);
        (e.discloses, e.note) = (Disclosure::Nothing, Some(Note::Undone));
    }

    /// [LED-1]: entries from before blocks stand first, under their own signatures; none comes after one of today.
    #[test]
    fn led_1_old_entries_are_carried_forward() {
        let identity = Identity::from_seed(&[1; 32]);
        let old = |index, previous| Entry { version: 0, block: None, old: true, ..entry(index, previous) };
        let mut chain = Chain::new(identity.public());
        for index in 0..2 {
            let e = old(index, chain.head().link);
            chain.take(&e, &e.sign(&identity)).unwrap();
            let claimed = Entry { old: false, ..e.clone() };
            assert_ne!(claimed.link(), e.link());
        }
        let e = entry(2, chain.head().link);
        chain.take(&e, &e.sign(&identity)).unwrap();
        let late = old(3, chain.head().link);
        assert_eq!(chain.take(&late, &late.sign(&identity)).unwrap_err().rule().unwrap(), Rule::Led1);
    }

    /// [LED-9]: the note hands the chain over; nobody else's statement does, and the old key signs nothing behind it.
    #[test]
    fn led_9_a_chain_goes_on_under_the_key_that_its_owner_named() {
        let [old, new, other] = [1, 2, 3].map(|seed| Identity::from_seed(&[seed; 32]));
        let note = |previous, note| Entry {
            slot: None,
            cohort: None,
            discloses: Disclosure::Nothing,
            answer: None,
            block: None,
            note: Some(note),
            ..entry(1, previous)
        };
        let rekey = |from: &Identity| Box::new(Rekey::make("test", "site-1", from, &new));
        let began = || {
            let mut chain = Chain::new(old.public());
            let first = entry(0, Hash::default());
            chain.take(&first, &first.sign(&old)).unwrap();
            chain
        };
        let mut chain = began();
        let rekeyed = note(chain.head().link, Note::Rekeyed(rekey(&old)));
        chain.take(&rekeyed, &rekeyed.sign(&old)).unwrap();
        assert_eq!(chain.owners(), [old.public(), new.public()]);
        let next = entry(2, chain.head().link);
        assert_eq!(chain.take(&next, &next.sign(&old)).unwrap_err().rule().unwrap(), Rule::Led3);
        chain.take(&next, &next.sign(&new)).unwrap();
        let mut chain = began();
        let link = chain.head().link;
        let forged = Box::new(Rekey { old: old.public(), ..*rekey(&other) });
        for bad in [Note::Rekeyed(rekey(&other)), Note::Rekeyed(forged), Note::Renamed(rekey(&old))] {
            let bad = note(link, bad);
            assert_eq!(chain.take(&bad, &bad.sign(&old)).unwrap_err().rule().unwrap(), Rule::Led9);
        }
        let renamed = note(link, Note::Renamed(rekey(&other)));
        chain.take(&renamed, &renamed.sign(&old)).unwrap();
        assert_eq!(chain.owners(), [old.public()]);
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
            |e| e.answer.as_mut().unwrap().cost.milli_bits -= 1,
            |e| e.answer.as_mut().unwrap().cost.nano_rho = Some(0),
            |e| e.answer.as_mut().unwrap().centres[0].at[0] = 5,
            |e| e.answer.as_mut().unwrap().drawn = Some(Hash([0; 32])),
            |e| e.answer.as_mut().unwrap().frame.columns[0].push('x'),
            |e| e.answer.as_mut().unwrap().frame.upper[1] ^= 1,
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
            |e| e.block.as_mut().unwrap().reverse(),
            |e| e.note = Some(Note::Undone),
            |e| (e.discloses, e.answer) = (Disclosure::Nothing, None),
            |e| e.old = true,
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
        let bad: [fn(&mut Answer); 9] = [
            |a| a.centres[0].columns = 0,
            |a| a.centres[0].columns = 3,
            |a| a.centres[0].at.truncate(3),
            |a| a.centres[0].at.clear(),
            |a| a.centres.clear(),
            |a| a.frame.lower[0] = f64::NEG_INFINITY.to_bits(),
            |a| a.frame.upper[1] = f64::NAN.to_bits(),
            |a| a.frame.upper[1] = 0f64.to_bits(),
            |a| a.frame.lower.truncate(1),
        ];
        for change in bad {
            let mut changed = entries[2].clone();
            change(changed.answer.as_mut().unwrap());
            assert_eq!(rule(&changed, changed.sign(&identity)), Rule::Led1);
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

    #[test]
    fn bits_have_the_order_of_their_numbers() {
        let numbers = [f64::MIN, -2.5, -1.0, -f64::MIN_POSITIVE, 0.0, f64::MIN_POSITIVE, 1.0, 1.5, f64::MAX];
        assert!(numbers.windows(2).all(|pair| order(pair[0].to_bits()) < order(pair[1].to_bits())));
        assert!(numbers.iter().all(|x| finite(x.to_bits())));
        assert!([f64::NAN, f64::INFINITY, f64::NEG_INFINITY].iter().all(|x| !finite(x.to_bits())));
    }
}
