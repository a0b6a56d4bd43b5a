//! What the smooth questions that a site answered tell together ([POL-9]). Where the record of a question is missing,
//! its numbers count one by one, which is at least as strict.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use veilsum_cluster::{
    Batch, Domain,
    privacy::rank::{Asked, Before, Ranks},
};
use veilsum_proto::{
    ledger::Answer,
    policy::{Cost, Smooth},
    suite::{self, Hash},
};

use crate::question::Question;

/// A box as records have it since the first of them. Which indicators are those of one column measures nothing.
mod box_of_a_record {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
    use veilsum_cluster::{Domain, Scaling};

    #[derive(Serialize, Deserialize)]
    struct Written {
        lower: Vec<f64>,
        upper: Vec<f64>,
        scaling: Scaling,
        indicators: Vec<f64>,
    }

    pub(super) fn serialize<S: Serializer>(domain: &Domain, to: S) -> Result<S::Ok, S::Error> {
        let ones = (domain.numbers()..domain.columns()).map(|column| domain.working_interval(column).1);
        let (lower, upper) = (domain.lower().to_vec(), domain.upper().to_vec());
        Written { lower, upper, scaling: domain.scaling(), indicators: ones.collect() }.serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Domain, D::Error> {
        let Written { mut lower, mut upper, scaling, indicators } = Written::deserialize(from)?;
        let numbers = lower.len().saturating_sub(indicators.len());
        lower.truncate(numbers);
        upper.truncate(numbers);
        Domain::mixed(lower, upper, scaling, &[indicators]).map_err(D::Error::custom)
    }
}

/// Plan and digest of a question.
type Key = (Hash, Hash);

/// What measuring a question takes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Kept {
    /// The plan it was asked under.
    pub plan: Hash,
    /// The question's bytes.
    pub query: Vec<u8>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The public box.
    #[serde(with = "box_of_a_record")]
    pub domain: Domain,
    /// Fractional bits f of the blocks of the answer; the step of a block is 2^-f.
    pub fraction_bits: Vec<i32>,
    /// The largest number of rows in the total, as the plan allows for all sites.
    pub rows: u64,
}

impl Kept {
    fn key(&self) -> Key {
        // Only the question's bytes determine a smooth answer; it has no labels.
        (self.plan, suite::hash("question in a ledger", &[&self.query, &[]]))
    }

    fn batch(&self) -> Option<Batch> {
        match Question::from_bytes(&self.query).ok()? {
            Question::Cluster(batch) | Question::Drawn { batch, .. } => Some(batch),
            Question::CountRows | Question::Judge { .. } => None,
        }
    }

    /// Adds it to what is measured; `None` where it cannot be.
    fn add_to(&self, ranks: &mut Ranks) -> Option<Before> {
        let batch = self.batch()?;
        let steps: Vec<f64> =
            self.fraction_bits.iter().map(|bits| 2f64.powi(bits.checked_neg().unwrap_or(0))).collect();
        let Kept { columns, domain, rows, .. } = self;
        ranks.add(&Asked { columns, domain, batch: &batch, steps: &steps, rows: *rows }).ok()
    }
}

/// What the smooth questions of one account tell.
#[derive(Default)]
pub(super) struct Measured {
    /// Records of questions that are not measured yet.
    kept: BTreeMap<Key, Kept>,
    /// Answers that left and are not measured yet, and how often.
    waiting: Vec<(Key, Cost)>,
    known: BTreeSet<Key>,
    ranks: Ranks,
    told: Smooth,
    /// A question that was measured and has not left; it is taken back before another one is.
    tried: Option<(Key, Before)>,
}

impl Measured {
    /// Whether it has this record, or has no more need of it.
    pub(super) fn knows(&self, record: &Kept) -> bool {
        let key = record.key();
        self.known.contains(&key) || self.kept.contains_key(&key)
    }

    /// Records, of this account's questions or of others.
    pub(super) fn keep(&mut self, kept: impl IntoIterator<Item = Kept>) {
        for record in kept {
            let key = record.key();
            if !self.known.contains(&key) {
                self.kept.insert(key, record);
            }
        }
    }

    /// An answer has left.
    pub(super) fn left(&mut self, plan: &Hash, answer: &Answer) {
        if answer.cost.nano_rho.is_none() {
            self.waiting.push(((*plan, answer.question), answer.cost));
        }
    }

    /// Numbers of answers that left and are not measured yet.
    pub(super) fn unmeasured(&self) -> u64 {
        self.waiting.iter().map(|(_, cost)| cost.scalars).fold(0, u64::saturating_add)
    }

    /// What all answers that left tell together. Measuring those that were not measured before takes time.
    pub(super) fn told(&mut self) -> Smooth {
        for (key, cost) in std::mem::take(&mut self.waiting) {
            if !self.known.contains(&key) {
                if self.tried.as_ref().is_some_and(|(tried, _)| *tried == key) {
                    self.tried = None;
                } else {
                    self.take_back();
                    let Some(record) = self.kept.get(&key) else { continue };
                    if record.add_to(&mut self.ranks).is_none() {
                        continue;
                    }
                }
                self.kept.remove(&key);
                self.known.insert(key);
            }
            self.told = with(self.told, &cost);
        }
        if self.tried.is_none() {
            self.told = self.now(self.told);
        }
        self.told
    }

    /// What they would tell with this question; `None` where it cannot be measured.
    pub(super) fn with(&mut self, record: &Kept, cost: &Cost) -> Option<Smooth> {
        let (told, key) = (with(self.told(), cost), record.key());
        if self.known.contains(&key) {
            return Some(told);
        }
        if self.tried.as_ref().is_none_or(|(tried, _)| *tried != key) {
            self.take_back();
            self.tried = Some((key, record.add_to(&mut self.ranks)?));
        }
        Some(self.now(told))
    }

    fn now(&self, told: Smooth) -> Smooth {
        let now = self.ranks.effective();
        Smooth { rank: now.rank, milli_bits: now.milli_bits, ..told }
    }

    fn take_back(&mut self) {
        if let Some((_, before)) = self.tried.take() {
            self.ranks.undo(before);
        }
    }
}

/// Adds the numbers of one more answer, which rank and bits replace.
fn with(told: Smooth, cost: &Cost) -> Smooth {
    let (scalars, milli_bits) = told.instead;
    Smooth { instead: (scalars.saturating_add(cost.scalars), milli_bits.saturating_add(cost.milli_bits)), ..told }
}

#[cfg(test)]
mod tests {
    use veilsum_cluster::Scaling;
    use veilsum_proto::codec;

    use super::*;

    /// A ledger's records outlive versions: their form is that of the first one.
    #[test]
    fn records_keep_their_form() {
        let categorical = [vec![0.5; 2], vec![0.7; 3]];
        let domain = Domain::mixed(vec![-1.0], vec![2.0], Scaling::Box, &categorical).unwrap();
        let (columns, fraction_bits) = (vec!["x".to_owned(); 6], vec![20, 30]);
        let kept = Kept {
            plan: Hash([1; 32]),
            query: vec![7],
            columns: columns.clone(),
            domain: domain.clone(),
            fraction_bits: fraction_bits.clone(),
            rows: 9,
        };
        let bounds = (vec![-1.0, 0.0, 0.0, 0.0, 0.0, 0.0], vec![2.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
        let written = (bounds.0, bounds.1, Scaling::Box, vec![0.5, 0.5, 0.7, 0.7, 0.7]);
        let bytes = codec::encode(&(kept.plan, vec![7u8], columns, written, fraction_bits, 9u64));
        assert_eq!(codec::encode(&kept), bytes);
        let read: Kept = codec::decode("a record", &bytes, 1 << 12).unwrap();
        assert_eq!((read.query, read.rows, read.domain.columns()), (kept.query, 9, 6));
        assert!((0..6).all(|column| read.domain.working_interval(column) == domain.working_interval(column)));
    }
}
