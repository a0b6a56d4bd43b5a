//! The plan, which says what is computed and under which terms. The coordinator signs it and every site accepts it
//! (spec section 6).

use serde::{Deserialize, Serialize};

use crate::{
    codec,
    error::Error,
    identity::{Identity, Signature},
    limits::{MAX_APPLICATION, MAX_SITES, MAX_SLOTS, MIN_SITES},
    roster::Roster,
    rule::Rule,
    suite::{self, Hash},
};

/// The part of a plan that the protocol core reads, and the application's part as bytes that it only binds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Terms {
    /// Hash of the roster the plan is for.
    pub roster: Hash,
    /// The smallest number of sites that a total may cover.
    pub min_cohort: u16,
    /// Shares needed to open a self-mask; 0 means the larger of floor(2n/3) + 1 and the least t with 2t > n + c, for the
    /// n members of the deck.
    pub threshold: u16,
    /// Sites that may collude with the coordinator without learning more than a total; 0 means floor((N − 1)/3) for the
    /// N sites of the *roster*: a deck that the coordinator keeps small does not make fewer of them collude.
    pub colluders: u16,
    /// Which sites a total may cover.
    pub sites: Sites,
    /// The number of rounds that one exchange of keys prepares (the slots of a deck).
    pub slots: u16,
    /// The largest number of rows of any one site; the proof that fixed point does not overflow rests on it.
    pub max_rows: u64,
    /// The smallest number of rows of the whole cohort; below it the intermediary gives out nothing and the run ends.
    pub min_total_rows: u64,
    /// Whatever the application computes, encoded by it.
    pub application: Vec<u8>,
}

/// Which sites a total may cover.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sites {
    /// All of the roster: a site that is lost is waited for.
    #[default]
    Same,
    /// Those that are left, at least as many as the floor: a run goes on without a site that is lost.
    Any,
}

/// A plan with the coordinator's signature.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SignedTerms {
    /// What was signed.
    pub terms: Terms,
    /// By the coordinator's identity.
    pub signature: Signature,
}

const LABEL: &str = "plan";

impl Terms {
    /// Checks the numbers against each other and against `roster` ([PLN-1], [PLN-2]).
    ///
    /// # Errors
    /// `Error::Invalid` with the number at fault.
    pub fn check(&self, roster: &Roster) -> Result<(), Error> {
        let bad = |why: String, rule| Err(Error::invalid("plan", why, rule));
        if self.roster != roster.hash() {
            return bad("it was made for another roster".into(), Rule::Pln1);
        }
        let n = roster.sites.len();
        if !(MIN_SITES..=n.min(MAX_SITES)).contains(&usize::from(self.min_cohort)) {
            let why = format!("min_cohort is {} where {MIN_SITES} to {n} (all sites) are possible", self.min_cohort);
            return bad(why, Rule::Pln2);
        }
        if self.slots == 0 || self.slots > MAX_SLOTS {
            return bad(format!("slots is {} where 1 to {MAX_SLOTS} are possible", self.slots), Rule::Pln2);
        }
        if self.max_rows == 0 {
            return bad("max_rows is 0".into(), Rule::Pln2);
        }
        let most = self.max_rows.saturating_mul(n as u64);
        if self.min_total_rows > most {
            let why = format!("min_total_rows is {} where {n} sites of max_rows have {most}", self.min_total_rows);
            return bad(why, Rule::Pln2);
        }
        if self.application.len() > MAX_APPLICATION {
            return bad(format!("its method part is over {MAX_APPLICATION} bytes"), Rule::Pln2);
        }
        // Smaller decks that come about as sites leave are checked when they do ([THR-2]).
        self.threshold_of(n, n).map(|_| ())
    }

    /// Shares needed among the `n` members of a deck, of the roster's `sites`, with the guards 2t > n + c and t − c ≥ 2
    /// ([THR-1], [THR-2]).
    ///
    /// # Errors
    /// `Error::Invalid` where no such threshold exists.
    pub fn threshold_of(&self, n: usize, sites: usize) -> Result<usize, Error> {
        let (c, t) = (self.colluders_of(sites), self.stated_threshold(n, sites));
        check_threshold(n, t, c).map_err(|why| Error::invalid("plan", why, Rule::Thr2))?;
        Ok(t)
    }

    /// The same, whether it is one or not.
    pub fn stated_threshold(&self, n: usize, sites: usize) -> usize {
        match self.threshold {
            0 => (2 * n / 3 + 1).max((n + self.colluders_of(sites)) / 2 + 1),
            t => usize::from(t),
        }
    }

    /// [POL-1]: the fewest sites that a total of this plan covers, of the `sites` of the roster.
    pub fn least(&self, sites: usize) -> usize {
        match self.sites {
            Sites::Same => sites,
            Sites::Any => usize::from(self.min_cohort).max(MIN_SITES),
        }
    }

    /// Colluding sites that are assumed among the roster's `sites`.
    pub fn colluders_of(&self, sites: usize) -> usize {
        if self.colluders == 0 { sites.saturating_sub(1) / 3 } else { usize::from(self.colluders) }
    }

    /// Identifies the plan in everything that follows ([PLN-7]).
    pub fn hash(&self) -> Hash {
        suite::hash(LABEL, &[&codec::encode(self)])
    }

    /// Checks and signs.
    ///
    /// # Errors
    /// As [`Terms::check`], and `Error::Invalid` where `signer` is not the coordinator.
    pub fn sign(self, roster: &Roster, signer: &Identity) -> Result<SignedTerms, Error> {
        self.check(roster)?;
        if signer.public() != roster.coordinator.key {
            return Err(Error::invalid("plan", "it can be signed only by the roster's coordinator", Rule::Pln7));
        }
        let signature = signer.sign(LABEL, &[&codec::encode(&self)]);
        Ok(SignedTerms { terms: self, signature })
    }
}

impl SignedTerms {
    /// Checks the numbers and the coordinator's signature ([PLN-7]).
    ///
    /// # Errors
    /// As [`Terms::check`], and `Error::PeerMisbehaved` where the signature is not the coordinator's.
    pub fn verify(self, roster: &Roster) -> Result<Terms, Error> {
        self.terms.check(roster)?;
        let c = &roster.coordinator;
        if !c.key.verify(LABEL, &[&codec::encode(&self.terms)], &self.signature) {
            return Err(Error::peer(&c.name, "the plan was changed after it was signed, or never signed", Rule::Pln7));
        }
        Ok(self.terms)
    }
}

/// The guards t ≤ n and 2t > n + c ([THR-2]), on which the safety argument of the protocol rests, and t − c ≥ 2
/// ([THR-2]): a sum that can be learnt covers at least two honest sites.
///
/// # Errors
/// A sentence with the numbers.
pub fn check_threshold(n: usize, t: usize, c: usize) -> Result<(), String> {
    if t > n {
        return Err(format!("a threshold of {t} cannot be reached by {n} sites"));
    }
    if 2 * t <= n + c {
        let least = (n + c) / 2 + 1;
        return Err(format!(
            "a threshold of {t} among {n} sites is unsafe against {c} that collude: 2t > n + c needs at least {least}"
        ));
    }
    if t < c + 2 {
        return Err(format!(
            "with a threshold of {t} among {n} sites, {c} that collude could learn a single site's part"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_threshold_is_always_safe_and_tight_in_its_table() {
        let terms = crate::testing::Kit::new(3, |_| {}).terms;
        for n in 3..=1000 {
            let t = terms.threshold_of(n, n).unwrap();
            assert_eq!(t, 2 * n / 3 + 1);
            assert!(t <= n && 2 * t > n + (n - 1) / 3, "n = {n}");
        }
        // A deck of few of the roster's sites does not make fewer of them collude.
        for n in 3..=20 {
            if let Ok(t) = terms.threshold_of(n, 20) {
                assert!(2 * t > n + 6 && t >= 8 && t <= n, "n = {n}");
            }
        }
    }

    /// [PLN-2]: to the last one.
    #[test]
    fn numbers_at_their_limits() {
        type Change = fn(&mut Terms);
        let changes: [(Result<(), Rule>, Change); 7] = [
            (Ok(()), |t| t.min_cohort = 5),
            (Ok(()), |t| t.slots = MAX_SLOTS),
            (Ok(()), |t| (t.max_rows, t.min_total_rows) = (7, 35)),
            (Err(Rule::Pln2), |t| (t.max_rows, t.min_total_rows) = (7, 36)),
            (Err(Rule::Pln2), |t| (t.max_rows, t.min_total_rows) = (7, 99)),
            (Ok(()), |t| t.application = vec![0; MAX_APPLICATION]),
            (Err(Rule::Pln2), |t| t.application = vec![0; MAX_APPLICATION + 1]),
        ];
        for (i, (expected, change)) in changes.iter().enumerate() {
            let kit = crate::testing::Kit::new(5, |_| {});
            let mut terms = (*kit.terms).clone();
            change(&mut terms);
            assert_eq!(terms.check(&kit.roster).map_err(|e| e.rule().unwrap()), *expected, "change {i}");
        }
    }

    /// [PLN-7].
    #[test]
    fn pln_7_only_the_coordinator_signs() {
        let kit = crate::testing::Kit::new(3, |_| {});
        let terms = (*kit.terms).clone();
        let signed = terms.clone().sign(&kit.roster, &kit.identities[0]).unwrap();
        assert_eq!(signed.clone().verify(&kit.roster).unwrap(), terms);
        for other in &kit.identities[1..] {
            let error = terms.clone().sign(&kit.roster, other).unwrap_err();
            assert_eq!(error.rule().unwrap(), Rule::Pln7);
        }
        let changed = SignedTerms { terms: Terms { max_rows: terms.max_rows + 1, ..terms }, ..signed };
        assert_eq!(changed.verify(&kit.roster).unwrap_err().rule().unwrap(), Rule::Pln7);
    }
}
