//! The account of everything that ever left a site: entries, their chain and their signatures (spec section 11.2, [LED-1] to
//! [LED-3]). No file here; an entry holds digests, lengths and what is public anyway, and no value and no row count.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::{
    codec,
    error::Error,
    identity::{Identity, PublicKey, Signature},
    message::Disclosure,
    policy::Cost,
    suite::{self, Hash},
};

const SIGNED: &str = "ledger entry";
const LINK: &str = "ledger link";
const HEAD: &str = "ledger head";
/// Bytes of a data set's name.
pub const MAX_NAME: usize = 64;

/// One frame that left.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
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
    /// Digest of the frame: whoever holds the frame can show that it is this one.
    pub digest: Hash,
    /// The operator's name of the data set.
    pub data: String,
    /// Digest of the rows under a key that only this site has: shows that they are the same, and nothing of them.
    pub rows: Hash,
    /// Where it is an answer: what becomes known when it is added up.
    pub answer: Option<Answer>,
}

/// An answer that becomes readable in a total.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
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
    pub frame: Frame,
    /// Where its centres lay, one list of coordinates for each set of centres.
    pub centres: Vec<Places>,
}

/// A box in the columns' own units, in which [`Places`] are read: they can be compared with those in another box.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Frame {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Its lower ends.
    pub lower: Vec<f64>,
    /// Its upper ends.
    pub upper: Vec<f64>,
}

impl Frame {
    /// Whether these places can stand in it.
    fn holds(&self, centres: &[Places]) -> bool {
        let d = self.columns.len();
        let ends = self.lower.iter().zip(&self.upper);
        let sound = ends.into_iter().all(|(l, u)| l.is_finite() && u.is_finite() && l < u);
        let fits = |places: &Places| places.columns as usize == d && !places.at.is_empty();
        let whole = |places: &Places| places.at.len().is_multiple_of(d.max(1));
        self.lower.len() == d
            && self.upper.len() == d
            && sound
            && (d == 0) == centres.is_empty()
            && centres.iter().all(|places| fits(places) && whole(places))
    }

    /// A coordinate that was written in this box, as one of `new`'s.
    fn moved_to(&self, at: usize, part: i32, new: &Frame, new_at: usize) -> f64 {
        let (low, high) = (self.lower[at], self.upper[at]);
        let (new_low, new_high) = (new.lower[new_at], new.upper[new_at]);
        if (low, high) == (new_low, new_high) {
            return f64::from(part);
        }
        // Halves before the difference, which could leave the numbers there are.
        let own = (low / 2.0 + high / 2.0) + (high / 2.0 - low / 2.0) * (f64::from(part) / 1e6);
        (own - (new_low / 2.0 + new_high / 2.0)) / (new_high / 2.0 - new_low / 2.0) * 1e6
    }
}

/// Points of a question, which everybody in the cohort was sent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Places {
    /// Coordinates of one point.
    pub columns: u32,
    /// All coordinates, point by point, in millionths of the box's half-width from its middle.
    pub at: Vec<i32>,
}

impl Entry {
    /// By what the next entry names this one ([LED-2]).
    pub fn link(&self) -> Hash {
        suite::hash(LINK, &[&codec::encode(self)])
    }

    /// Signs it ([LED-3]).
    pub fn sign(&self, identity: &Identity) -> Signature {
        identity.sign(SIGNED, &[&codec::encode(self)])
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
    key: PublicKey,
    head: Head,
}

impl Chain {
    /// A chain of this party's, from its beginning.
    pub fn new(key: PublicKey) -> Chain {
        Chain { key, head: Head::default() }
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
            return bad(format!("entry {} stands where entry {at} belongs", entry.index), "LED-2");
        }
        if entry.previous != self.head.link {
            return bad(format!("entry {at} does not follow from the one before it"), "LED-2");
        }
        let answers = entry.discloses == Disclosure::MaskedWords;
        let round = entry.slot.is_some() == entry.cohort.is_some() && (entry.slot.is_some() || !answers);
        if entry.data.len() > MAX_NAME || entry.answer.is_some() != answers || !round {
            return bad(format!("entry {at} is not of a form that a ledger has"), "LED-1");
        }
        if entry.answer.as_ref().is_some_and(|a| a.kind.len() > MAX_NAME || !a.frame.holds(&a.centres)) {
            return bad(format!("entry {at} is not of a form that a ledger has"), "LED-1");
        }
        if !self.key.verify(SIGNED, &[&codec::encode(entry)], signature) {
            return bad(format!("entry {at} is not signed by the ledger's owner"), "LED-3");
        }
        self.head = Head { entries: at + 1, link: entry.link() };
        Ok(())
    }
}

/// How far `new` is from `old`, in millionths of the half-width of the box of `new`: the largest way from a centre to the
/// nearest of the other set, in either direction; from the smaller set to the larger where they are of different sizes, as one
/// centre more may have no rows. Whatever order the centres stand in, and in the columns that both have. `None` where there
/// is nothing to compare: each has a column that the other has not, or no centres.
pub fn distance(new: &Answer, old: &Answer) -> Option<u64> {
    let at = |name: &String| old.frame.columns.iter().position(|other| other == name);
    let common: Vec<(usize, usize)> =
        new.frame.columns.iter().enumerate().filter_map(|(i, name)| Some((i, at(name)?))).collect();
    let fewer = new.frame.columns.len().min(old.frame.columns.len());
    if common.is_empty() || common.len() < fewer {
        return None;
    }
    let of_new = |point: &[i32]| common.iter().map(|(i, _)| f64::from(point[*i])).collect();
    let of_old =
        |point: &[i32]| common.iter().map(|(i, at)| old.frame.moved_to(*at, point[*at], &new.frame, *i)).collect();
    let sets = |places: &[Places], of: &dyn Fn(&[i32]) -> Vec<f64>| -> Vec<Vec<Vec<f64>>> {
        places.iter().map(|places| points(places).map(of).collect()).collect()
    };
    let (new, old) = (sets(&new.centres, &of_new), sets(&old.centres, &of_old));
    let ways = new.iter().flat_map(|new| old.iter().map(move |old| moved(new, old)));
    // Rounded down: what is nearer is refused sooner.
    ways.min_by(f64::total_cmp).map(|way| way.floor() as u64)
}

fn moved(new: &[Vec<f64>], old: &[Vec<f64>]) -> f64 {
    let apart = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let farthest = |from: &[Vec<f64>], to: &[Vec<f64>]| {
        let nearest = |point: &Vec<f64>| to.iter().map(|other| apart(point, other)).fold(f64::INFINITY, f64::min);
        from.iter().map(nearest).fold(0.0, f64::max)
    };
    match new.len().cmp(&old.len()) {
        Ordering::Less => farthest(new, old),
        Ordering::Equal => farthest(new, old).max(farthest(old, new)),
        Ordering::Greater => farthest(old, new),
    }
}

/// How far the two nearest points of one set are from each other; `None` where no set has two.
pub fn separation(centres: &[Places]) -> Option<u64> {
    let within = |places: &Places| {
        let all: Vec<&[i32]> = points(places).collect();
        let pairs = all.iter().enumerate().flat_map(|(i, a)| all[..i].iter().map(move |b| apart(a, b)));
        pairs.min()
    };
    centres.iter().filter_map(within).min()
}

fn points(places: &Places) -> impl Iterator<Item = &[i32]> {
    places.at.chunks_exact((places.columns as usize).max(1))
}

/// The largest difference of a coordinate.
fn apart(a: &[i32], b: &[i32]) -> u64 {
    a.iter().zip(b).map(|(a, b)| u64::from(a.abs_diff(*b))).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(columns: &[&str], lower: f64, upper: f64) -> Frame {
        let d = columns.len();
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        Frame { columns, lower: vec![lower; d], upper: vec![upper; d] }
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
            error.rule().unwrap().0
        };
        let good = entries[2].sign(&identity);
        assert_eq!(rule(&entries[3], entries[3].sign(&identity)), "LED-2");
        assert_eq!(rule(&Entry { previous: Hash([1; 32]), ..entries[2].clone() }, good), "LED-2");
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
            |e| e.answer.as_mut().unwrap().kind.push('x'),
            |e| e.answer.as_mut().unwrap().question.0[0] ^= 1,
            |e| e.answer.as_mut().unwrap().cost.scalars -= 1,
            |e| e.answer.as_mut().unwrap().cost.milli_bits -= 1,
            |e| e.answer.as_mut().unwrap().cost.nano_rho = Some(0),
            |e| e.answer.as_mut().unwrap().centres[0].at[0] = 5,
            |e| e.answer.as_mut().unwrap().drawn = Some(Hash([0; 32])),
            |e| e.answer.as_mut().unwrap().frame.columns[0].push('x'),
            |e| e.answer.as_mut().unwrap().frame.upper[1] = 3.0,
        ];
        for (i, change) in changes.iter().enumerate() {
            let mut changed = entries[2].clone();
            change(&mut changed);
            assert_eq!(rule(&changed, good), "LED-3", "change {i}");
        }
        let stranger = Identity::from_seed(&[2; 32]);
        assert_eq!(rule(&entries[2], entries[2].sign(&stranger)), "LED-3");
        // Signed truly and still no entry.
        let changes: [fn(&mut Entry); 4] =
            [|e| e.answer = None, |e| e.discloses = Disclosure::RoundSeeds, |e| e.slot = None, |e| e.cohort = None];
        for change in changes {
            let mut changed = entries[2].clone();
            change(&mut changed);
            assert_eq!(rule(&changed, changed.sign(&identity)), "LED-1");
        }
        let bad: [fn(&mut Answer); 8] = [
            |a| a.centres[0].columns = 0,
            |a| a.centres[0].columns = 3,
            |a| a.centres[0].at.truncate(3),
            |a| a.centres[0].at.clear(),
            |a| a.centres.clear(),
            |a| a.frame.lower[0] = f64::NAN,
            |a| a.frame.upper[1] = 0.0,
            |a| a.frame.lower.truncate(1),
        ];
        for change in bad {
            let mut changed = entries[2].clone();
            change(changed.answer.as_mut().unwrap());
            assert_eq!(rule(&changed, changed.sign(&identity)), "LED-1");
        }
    }

    /// [LED-5].
    #[test]
    fn a_head_is_signed() {
        let identity = Identity::from_seed(&[1; 32]);
        let head = Head { entries: 3, link: Hash([8; 32]) };
        let signature = head.sign(&identity);
        assert!(head.verify(&identity.public(), &signature));
        assert!(!Head { entries: 2, ..head }.verify(&identity.public(), &signature));
        assert!(!Head { link: Hash([7; 32]), ..head }.verify(&identity.public(), &signature));
    }

    fn answer(centres: Vec<Places>) -> Answer {
        let frame = if centres.is_empty() { Frame::default() } else { frame(&["x", "y"], 0.0, 2.0) };
        Answer { frame, centres, ..entry(0, Hash::default()).answer.unwrap() }
    }

    fn places(at: &[i32]) -> Vec<Places> {
        vec![Places { columns: 2, at: at.to_vec() }]
    }

    #[test]
    fn centres_are_compared_in_any_order() {
        let old = places(&[0, 0, 500, 500, -900, 100]);
        let far = |new: Vec<Places>, old: &[Places]| distance(&answer(new), &answer(old.to_vec()));
        assert_eq!(far(places(&[500, 500, -900, 100, 0, 0]), &old), Some(0));
        assert_eq!(far(places(&[500, 507, -900, 100, 0, 3]), &old), Some(7));
        // Two centres on one place: the third is far from what it was.
        assert_eq!(far(places(&[0, 0, 0, 0, -900, 100]), &old), Some(500));
        // Fewer centres are near if each of them is; the one more may lie where no row is.
        assert_eq!((far(places(&[0, 4]), &old), far(old.clone(), &places(&[0, 4, 500, 501]))), (Some(4), Some(4)));
        assert_eq!((far(Vec::new(), &[]), far(Vec::new(), &old)), (None, None));
        let both = [places(&[1, 1]), places(&[500, 500, 0, 0, -900, 103])].concat();
        assert_eq!(far(both, &old), Some(1));
        assert_eq!(separation(&old), Some(500));
        assert_eq!((separation(&places(&[1, 1])), separation(&[])), (None, None));
        assert_eq!(separation(&places(&[i32::MIN, 0, i32::MAX, 0])), Some(u64::from(u32::MAX)));
    }

    /// [POL-7]: neither another box nor a column more makes the same centres other ones.
    #[test]
    fn centres_are_compared_where_they_lie() {
        let old = answer(places(&[0, 0, 500_000, 500_000]));
        // The same points, (1, 1) and (1.5, 1.5), in a box from -1 to 3.
        let wide = Answer { frame: frame(&["x", "y"], -1.0, 3.0), ..answer(places(&[0, 0, 250_000, 250_000])) };
        assert_eq!((distance(&wide, &old), distance(&old, &wide)), (Some(0), Some(0)));
        let near = Answer { centres: places(&[0, 0, 250_000, 250_100]), ..wide.clone() };
        assert_eq!((distance(&near, &old), distance(&old, &near)), (Some(100), Some(200)));
        let third = Answer {
            frame: frame(&["z", "y", "x"], 0.0, 2.0),
            centres: vec![Places { columns: 3, at: vec![7, 0, 0, 9, 500_000, 500_002] }],
            ..old.clone()
        };
        assert_eq!((distance(&third, &old), distance(&old, &third)), (Some(2), Some(2)));
        let other = Answer { frame: frame(&["x", "w"], 0.0, 2.0), ..old.clone() };
        assert_eq!(distance(&other, &old), None);
        let vast = Answer { frame: frame(&["x", "y"], f64::MIN, f64::MAX), ..old.clone() };
        assert!(distance(&vast, &old).is_some_and(|far| far > 0) && distance(&old, &vast) == Some(u64::MAX));
    }
}
