//! Recomputing a total from what an aggregator opened (spec section 9.8): by a site of the cohort, or by a third party who
//! holds roster, plan, question and opening and nothing secret.
//!
//! What the aggregator cannot do without being caught: add a number to a total, leave an input out, put another one in, or
//! tell two sites of different totals. It takes the words of nobody: commitments add up like the vectors do.

use crate::{
    commit::Sums,
    identity::{DecodedKeys, PublicKey},
    mask::{self, Sign},
    message::{ConsistencyCheck, Kind, Opening, Proof, RoundSeed, first_unsigned, survivors_context},
    roster::{PartyId, Roster},
    shamir::Share,
    site::self_mask_key,
    suite::{Hash, Secret},
};

/// A round as everybody in it knows it.
pub(crate) struct Seen<'a> {
    pub(crate) roster: &'a Roster,
    pub(crate) keys: &'a DecodedKeys,
    pub(crate) session: Hash,
    pub(crate) context: Hash,
    pub(crate) cohort: &'a [u16],
    pub(crate) words: usize,
}

/// What is wrong with an opening; always the fault of the aggregator that signed it.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) what: String,
    pub(crate) rule: &'static str,
}

fn fault<T>(what: impl Into<String>, rule: &'static str) -> Result<T, Fault> {
    Err(Fault { what: what.into(), rule })
}

impl Seen<'_> {
    /// [OPN-2]: everything is there, once for each survivor. Gives the cohort's sites that are missing.
    pub(crate) fn missing(&self, opening: &Opening) -> Result<Vec<u16>, Fault> {
        let alive = &opening.alive;
        if !alive.is_sorted_by(|a, b| a < b) || !alive.iter().all(|s| self.cohort.binary_search(s).is_ok()) {
            return fault("opened a total over sites that it did not ask", "OPN-2");
        }
        let missing: Vec<u16> = self.cohort.iter().copied().filter(|s| alive.binary_search(s).is_err()).collect();
        let checks = if missing.is_empty() { 0 } else { alive.len() };
        let whole = opening.inputs.len() == alive.len()
            && opening.seeds.len() == alive.len()
            && opening.checks.len() == checks
            && opening.checks.iter().all(|c| c.seeds.len() == missing.len())
            && opening.low.len() == self.words
            && opening.high.len() == self.words;
        // So many inputs run over at most so often; more would run into the next word of the commitment.
        if !whole || opening.high.iter().any(|high| usize::from(*high) >= alive.len()) {
            return fault("opened a total without showing everything that it is made of", "OPN-2");
        }
        Ok(missing)
    }

    /// [OPN-4]: the sums are those of exactly the inputs that are named.
    pub(crate) fn sums(&self, opening: &Opening) -> Result<Sums, Fault> {
        let sums = Sums { low: opening.low.clone(), high: opening.high.clone() };
        if sums.are_of(opening.inputs.iter().map(|i| &i.commitment)) {
            return Ok(sums);
        }
        fault("opened sums that are not those of the inputs it names", "OPN-4")
    }

    /// [OPN-5], [OPN-6]: the survivors at `places` signed their inputs, and the seeds they gave.
    pub(crate) fn signatures(&self, opening: &Opening, missing: &[u16], places: &[usize]) -> Result<(), Fault> {
        let key = |at: usize| {
            self.roster.member(PartyId::Site(opening.alive[at])).map_or(PublicKey([0; 32]), |member| member.key)
        };
        let unsigned = |at: usize, what: &str, rule| {
            let who = self.roster.name_of(PartyId::Site(opening.alive[places[at]]));
            fault(format!("opened a total with {what} that {who} did not sign"), rule)
        };
        let inputs: Vec<_> = places.iter().map(|at| (key(*at), Proof::of_input(&opening.inputs[*at]))).collect();
        if let Some(at) = first_unsigned(self.keys, &inputs, &self.session, Kind::MaskedInput, &self.context) {
            return unsigned(at, "an input", "OPN-5");
        }
        if missing.is_empty() {
            return Ok(());
        }
        let proof = |at: &usize| {
            let shown = &opening.checks[*at];
            let seeds = missing.iter().zip(&shown.seeds).map(|(site, seed)| RoundSeed { missing: *site, seed: *seed });
            let check = ConsistencyCheck { round: self.context, seeds: seeds.collect() };
            (key(*at), Proof::of_check(&check, shown.signature))
        };
        let checks: Vec<_> = places.iter().map(proof).collect();
        let context = survivors_context(&self.context, &opening.alive);
        match first_unsigned(self.keys, &checks, &self.session, Kind::ConsistencyCheck, &context) {
            Some(at) => unsigned(at, "a seed", "OPN-6"),
            None => Ok(()),
        }
    }

    /// The total: the sums without the masks. The opening was checked.
    pub(crate) fn unmasked(&self, sums: Sums, opening: &Opening, missing: &[u16]) -> Result<Vec<u64>, Fault> {
        let mut masks = Vec::with_capacity(opening.alive.len() * (1 + missing.len()));
        for (at, (site, seed)) in opening.alive.iter().zip(&opening.seeds).enumerate() {
            let Some(share) = Share::from_bytes(seed) else {
                return fault("opened a total with a self-mask that no site committed to", "OPN-3");
            };
            masks.push((self_mask_key(&share.0, &self.context), Sign::Minus));
            for (gone, seed) in missing.iter().zip(opening.checks.get(at).iter().flat_map(|c| &c.seeds)) {
                masks.push((Secret::new(*seed), mask::pair_sign(*site, *gone).reversed()));
            }
        }
        let mut total = sums.low;
        mask::apply_all(&mut total, &masks);
        Ok(total)
    }
}
