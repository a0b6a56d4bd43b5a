//! Recomputing a total from what an aggregator opened (spec section 9.8): by a site of the cohort, or by a third party who
//! holds roster, plan, question and opening and nothing secret.
//!
//! An aggregator is caught if it adds a number to a total, leaves an input out, puts another one in, or shows different
//! totals to two sites (`crates/proto/tests/known_lies.txt`). The check does not need any site's words, because
//! commitments add up as the vectors do.

use crate::{
    commit,
    identity::DecodedKeys,
    mask::{self, Sign},
    message::{ConsistencyCheck, Kind, Named, OpenedCheck, Opening, Proof, RoundSeed, first_unsigned},
    roster::{PartyId, Roster},
    rule::Rule,
    shamir, spread,
    suite::{Hash, Secret},
};

/// The public facts of a round, which everybody in it knows.
pub(crate) struct Seen<'a> {
    pub(crate) roster: &'a Roster,
    pub(crate) keys: &'a DecodedKeys,
    pub(crate) session: Hash,
    pub(crate) context: Hash,
    pub(crate) cohort: &'a [u16],
    pub(crate) words: usize,
    /// Sites that must have agreed to the inputs before a total could be opened.
    pub(crate) threshold: usize,
}

/// What a reader of an opening has verified before it.
pub(crate) struct Verified<'a> {
    /// Whether this is the input that the site had signed when the survivors were named; None where that is not known.
    pub(crate) input: &'a (dyn Fn(u16, &Hash) -> Option<bool> + Sync),
    /// Whether the site's signature on this consistency check was verified.
    pub(crate) check: &'a (dyn Fn(u16, &Hash) -> bool + Sync),
}

impl Verified<'_> {
    /// A third party's, who sees the round for the first time.
    pub(crate) const NOTHING: Verified<'static> = Verified { input: &|_, _| None, check: &|_, _| false };
}

/// What is wrong with an opening; always the fault of the aggregator that signed it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// What the aggregator did.
    pub what: String,
    /// The rule it broke.
    pub rule: Rule,
}

pub(crate) fn fault<T>(what: impl Into<String>, rule: Rule) -> Result<T, Fault> {
    Err(Fault { what: what.into(), rule })
}

impl Seen<'_> {
    /// [OPN-2]: everything is there, once for each survivor. Gives the cohort's sites that are missing.
    pub(crate) fn missing(&self, opening: &Opening) -> Result<Vec<u16>, Fault> {
        let alive = &opening.alive;
        if !alive.is_sorted_by(|a, b| a < b) || !alive.iter().all(|s| self.cohort.binary_search(s).is_ok()) {
            return fault("opened a total over sites that it did not ask", Rule::Opn2);
        }
        let missing: Vec<u16> = self.cohort.iter().copied().filter(|s| alive.binary_search(s).is_err()).collect();
        let checks = if missing.is_empty() { 0 } else { alive.len() };
        let whole = opening.inputs.len() == alive.len()
            && opening.seeds.len() == alive.len()
            && opening.checks.len() == checks
            && (opening.agreed.is_empty() || missing.is_empty())
            && opening.checks.iter().all(|c| c.seeds.len() == missing.len())
            && opening.low.len() == self.words
            && opening.high.len() == self.words;
        if missing.is_empty() && !self.enough_agreed(opening) {
            return fault("opened a total without showing that enough sites had agreed to its inputs", Rule::Opn2);
        }
        // The sum of n words overflows 2^64 fewer than n times; a larger count would reach the next word of the
        // commitment.
        if !whole || opening.high.iter().any(|high| usize::from(*high) >= alive.len()) {
            return fault("opened a total without showing everything that it is made of", Rule::Opn2);
        }
        Ok(missing)
    }

    fn enough_agreed(&self, opening: &Opening) -> bool {
        let agreed = &opening.agreed;
        agreed.len() >= self.threshold
            && agreed.is_sorted_by(|a, b| a.0 < b.0)
            && agreed.iter().all(|(site, _)| opening.alive.binary_search(site).is_ok())
    }

    /// The total, once the sums are found to be those of what the survivors signed ([OPN-4] to [OPN-6]), both of which is worked out
    /// side by side. Masks are taken off last, which costs most.
    pub(crate) fn total(&self, opening: &Opening, missing: &[u16], verified: &Verified<'_>) -> Result<Vec<u64>, Fault> {
        let commitments = || opening.inputs.iter().map(|input| &input.commitment);
        let (sums, signed) = spread::both(
            || commit::are_sums_of(&opening.low, &opening.high, commitments()),
            || self.signatures(opening, missing, verified),
        );
        if !sums {
            return fault("opened sums that are not those of the inputs it names", Rule::Opn4);
        }
        signed?;
        self.unmasked(opening, missing)
    }

    /// [OPN-5], [OPN-6]: all survivors signed their inputs, and the seeds they gave. A site compares inputs with those that
    /// it was shown when the survivors were named, and verifies what it has not verified before.
    fn signatures(&self, opening: &Opening, missing: &[u16], verified: &Verified<'_>) -> Result<(), Fault> {
        let mut inputs = Vec::new();
        let proofs: Vec<Proof> = opening.inputs.iter().map(Proof::of_input).collect();
        for (site, proof) in opening.alive.iter().zip(&proofs) {
            match (verified.input)(*site, &proof.signed_message()) {
                Some(true) => {}
                Some(false) => {
                    let who = self.roster.name_of(PartyId::Site(*site));
                    let what =
                        format!("opened a total with another input of {who} than it had shown before shares left");
                    return fault(what, Rule::Opn5);
                }
                None => inputs.push((*site, *proof)),
            }
        }
        self.all_signed(("an input", Rule::Opn5), &inputs, Kind::MaskedInput, &self.context)?;
        let context = Named::of(&opening.alive, &proofs).context(&self.context);
        if missing.is_empty() {
            return self.all_signed(("inputs", Rule::Opn6), &opening.agreed, Kind::Unmask, &context);
        }
        let proof = |(site, shown): (&u16, &OpenedCheck)| {
            let seeds = missing.iter().zip(&shown.seeds).map(|(site, seed)| RoundSeed { missing: *site, seed: *seed });
            let check = ConsistencyCheck { round: self.context, seeds: seeds.collect() };
            (*site, Proof::of_check(&check, shown.signature))
        };
        let checks = opening.alive.iter().zip(&opening.checks).map(proof);
        let unverified: Vec<_> =
            checks.filter(|(site, proof)| !(verified.check)(*site, &proof.signed_message())).collect();
        self.all_signed(("a seed", Rule::Opn6), &unverified, Kind::ConsistencyCheck, &context)
    }

    /// Every one of these sites' keys made its proof, of what is named here.
    fn all_signed(
        &self,
        (what, rule): (&str, Rule),
        proofs: &[(u16, Proof)],
        kind: Kind,
        context: &Hash,
    ) -> Result<(), Fault> {
        let Some(site) = first_unsigned((self.roster, self.keys), proofs, &self.session, kind, context) else {
            return Ok(());
        };
        let who = self.roster.name_of(PartyId::Site(site));
        fault(format!("opened a total with {what} that {who} did not sign"), rule)
    }

    /// The sums without the masks.
    fn unmasked(&self, opening: &Opening, missing: &[u16]) -> Result<Vec<u64>, Fault> {
        let mut masks = Vec::with_capacity(opening.alive.len() * (1 + missing.len()));
        let own = mask::self_masks(&self.context);
        for (at, (site, seed)) in opening.alive.iter().zip(&opening.seeds).enumerate() {
            if !shamir::is_canonical(seed) {
                return fault("opened a total with a self-mask that no site committed to", Rule::Opn3);
            }
            masks.push((own.derive(seed), Sign::Minus));
            for (gone, seed) in missing.iter().zip(opening.checks.get(at).iter().flat_map(|c| &c.seeds)) {
                masks.push((Secret(*seed), mask::pair_sign(*site, *gone).reversed()));
            }
        }
        let mut total = opening.low.clone();
        mask::apply_all(&mut total, &masks);
        Ok(total)
    }
}
