//! A site recomputes the total of a round that it took part in (spec section 9.8).

use rand_core::CryptoRng;

use super::{Env, deck::Deck, round::Round};
use crate::{
    error::Error,
    limits::OPENING_CHECKS,
    message::{Opening, deck_id, seed_commitment, slot_commitments_hash},
    opening::{Fault, Seen},
    policy,
    shamir::Share,
};

/// Checks an opening of `round` and gives the total ([OPN-2] to [OPN-6]).
pub(crate) fn total(
    env: &Env,
    deck: &Deck,
    round: &Round,
    opening: &Opening,
    rng: &mut dyn CryptoRng,
) -> Result<Vec<u64>, Error> {
    let seen = Seen {
        roster: &env.roster,
        keys: &env.keys,
        session: env.session,
        context: round.context,
        cohort: &round.cohort,
        words: round.words,
    };
    let lie = |fault: Fault| env.aggregator(fault.what, fault.rule);
    let missing = seen.missing(opening).map_err(lie)?;
    if !round.may_have_survived(&opening.alive) {
        return Err(env.aggregator("opened a total over other sites than this site knows to be in the round", "OPN-2"));
    }
    if opening.alive.len() < policy::least(&env.terms, &env.floor).max(deck.threshold) {
        return Err(env.aggregator("opened a total over fewer sites than the floor", "OPN-2"));
    }
    seeds(env, deck, round, opening)?;
    // Its own signature proves nothing to this site; that the aggregator shows what this site sent does.
    if let (Some(own), Ok(at)) = (round.sent(), opening.alive.binary_search(&env.me))
        && own != opening.inputs[at].digest
    {
        return Err(env.aggregator("opened a total with another input of this site than it sent", "OPN-5"));
    }
    let sums = seen.sums(opening).map_err(lie)?;
    seen.signatures(opening, &missing, &draw(opening.alive.len(), rng)).map_err(lie)?;
    seen.unmasked(sums, opening, &missing).map_err(lie)
}

/// [OPN-3]: the self-mask seeds are those that the members committed to before the first round.
fn seeds(env: &Env, deck: &Deck, round: &Round, opening: &Opening) -> Result<(), Error> {
    let wrong = || env.aggregator("opened a total with a self-mask that no site committed to", "OPN-3");
    let id = deck_id(&env.session, &deck.opened_by());
    let mut others = opening.others.iter();
    let mut commitments = Vec::with_capacity(deck.members.len());
    for member in &deck.members {
        commitments.push(match opening.alive.binary_search(member) {
            Ok(at) => {
                Share::from_bytes(&opening.seeds[at]).ok_or_else(wrong)?;
                seed_commitment(&id, *member, round.slot, &opening.seeds[at])
            }
            Err(_) => *others.next().ok_or_else(wrong)?,
        });
    }
    let known = deck.slot_commitments(round.slot);
    if others.next().is_none() && known == Some(slot_commitments_hash(&commitments)) { Ok(()) } else { Err(wrong()) }
}

/// Different places below `n`, as many as are looked at.
fn draw(n: usize, rng: &mut dyn CryptoRng) -> Vec<usize> {
    let mut places: Vec<usize> = (0..n).collect();
    if n > OPENING_CHECKS {
        for i in 0..OPENING_CHECKS {
            let left = (n - i) as u64;
            places.swap(i, i + (rng.next_u64() % left) as usize);
        }
        places.truncate(OPENING_CHECKS);
    }
    places
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use chacha20::ChaCha20Rng;
    use rand_core::SeedableRng;

    use super::*;

    /// [OPN-5]: as many as are to be looked at, all different, and over many draws every one of them.
    #[test]
    fn who_is_looked_at() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        for n in [1, OPENING_CHECKS - 1, OPENING_CHECKS, OPENING_CHECKS + 1, 3 * OPENING_CHECKS] {
            let mut ever = BTreeSet::new();
            for _ in 0..200 {
                let drawn: BTreeSet<usize> = draw(n, &mut rng).into_iter().collect();
                assert_eq!(drawn.len(), n.min(OPENING_CHECKS), "{n}");
                ever.extend(drawn);
            }
            assert!(ever.into_iter().eq(0..n), "{n}");
        }
    }
}
