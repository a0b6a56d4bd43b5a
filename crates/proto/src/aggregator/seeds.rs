//! How the survivors' self-mask seeds are rebuilt from shares (spec section 9.6, [UNM-5], [UNM-6]).

use std::collections::BTreeMap;

use curve25519_dalek::scalar::Scalar;

use super::{env::Env, record::ReadyDeck};
use crate::{
    error::Error,
    message::{Proof, seed_commitment},
    rule::Rule,
    shamir, spread,
};

/// Fewer seeds than this are not worth another core.
const WORTH_A_CORE: usize = 30;

/// The answers of sites that gave shares: the signature, and one share for every survivor, checked to be canonical.
pub(super) type Answers = BTreeMap<u16, (Proof, Vec<[u8; 32]>)>;

/// Wrong shares that were corrected: (holder, owner of the self-mask).
pub(super) type WrongShares = Vec<(u16, u16)>;

/// Shares of the survivors' self-masks in a slot, of at least the threshold's number of sites.
pub(super) struct Shares<'a> {
    pub(super) deck: &'a ReadyDeck,
    pub(super) slot: u16,
    pub(super) alive: &'a [u16],
    pub(super) answers: &'a Answers,
}

impl Shares<'_> {
    /// The survivors' seeds, each found to be what its owner committed to, or none where more answers are awaited for it.
    ///
    /// # Errors
    /// `Error::Malformed` with those who may be at fault, if nobody is awaited any longer.
    pub(super) fn seeds(&self, env: &Env, waiting: bool) -> Result<Option<(Vec<Scalar>, WrongShares)>, Error> {
        let threshold = self.deck.threshold;
        let mut holders: Vec<u16> = self.answers.keys().copied().collect();
        let mut quick = self.all(&holders);
        let mut wrong_shares = Vec::new();
        let mut seeds = Vec::with_capacity(self.alive.len());
        for (k, owner) in self.alive.iter().enumerate() {
            let expected = self.deck.commitment(*owner, self.slot);
            let commitment = |seed: &Scalar| seed_commitment(&self.deck.id, *owner, self.slot, &seed.to_bytes());
            let committed = |seed: &Scalar| expected == Some(commitment(seed));
            if committed(&quick[k]) {
                seeds.push(quick[k]);
                continue;
            }
            let column: Vec<Scalar> = self.rows(&holders).map(|row| Scalar::from_bytes_mod_order(row[k])).collect();
            // The expensive search runs once, when nobody is waited for any more.
            let found = shamir::recover_committed(&holders, &column, threshold, committed).or_else(|| {
                let robust = if waiting { None } else { shamir::recover_robust(&holders, &column, threshold) };
                robust.filter(|(seed, _)| committed(seed))
            });
            let Some((seed, wrong)) = found else {
                return if waiting { Ok(None) } else { Err(unopened(env, *owner, &holders)) };
            };
            // A site whose share was wrong once is not used again while others are enough, so each liar costs one search.
            let sound: Vec<u16> = holders.iter().copied().filter(|h| !wrong.contains(h)).collect();
            if sound.len() >= threshold {
                quick = self.all(&sound);
                holders = sound;
            }
            wrong_shares.extend(wrong.into_iter().map(|holder| (holder, *owner)));
            seeds.push(seed);
        }
        Ok(Some((seeds, wrong_shares)))
    }

    /// What the shares of the first of these holders open to, for every survivor.
    fn all(&self, holders: &[u16]) -> Vec<Scalar> {
        let coefficients = shamir::lagrange_at_zero(&holders[..self.deck.threshold]);
        let rows: Vec<&[[u8; 32]]> = self.rows(holders).collect();
        let places: Vec<usize> = (0..self.alive.len()).collect();
        let recovered = |k: &usize| shamir::recover(&coefficients, rows.iter().map(|row| &row[*k]));
        spread::map(&places, WORTH_A_CORE, recovered)
    }

    fn rows(&self, holders: &[u16]) -> impl Iterator<Item = &[[u8; 32]]> {
        holders.iter().filter_map(|holder| self.answers.get(holder)).map(|(_, row)| row.as_slice())
    }
}

fn unopened(env: &Env, owner: u16, holders: &[u16]) -> Error {
    let why = format!(
        "the shares of the self-mask of {} do not open to its commitment; it dealt wrong ones, or too many of those who gave \
         them changed theirs: {}",
        env.name_of(owner),
        holders.iter().map(|holder| env.name_of(*holder)).collect::<Vec<_>>().join(", "),
    );
    Error::malformed("Unmask", why, Rule::Unm6)
}
