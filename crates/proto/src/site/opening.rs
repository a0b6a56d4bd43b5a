//! How a site recomputes the total of a round that it took part in (spec section 9.8).

use super::{deck::Deck, env::Env, round::Round};
use crate::{
    error::Error,
    message::{Opening, deck_id, seed_commitment, slot_commitments_hash},
    opening::{Fault, Seen, Verified},
    rule::Rule,
    shamir,
};

/// Checks an opening of `round` and gives the total ([OPN-2] to [OPN-6]).
pub(crate) fn total(env: &Env, deck: &Deck, round: &Round, opening: &Opening) -> Result<Vec<u64>, Error> {
    let (session, context, words, threshold) = (env.session, round.context, round.words, deck.threshold);
    let cohort = &round.cohort[..];
    let seen = Seen { roster: &env.roster, keys: &env.keys, session, context, cohort, words, threshold };
    let lie = |fault: Fault| env.aggregator(fault.what, fault.rule);
    let missing = seen.missing(opening).map_err(lie)?;
    let known = round.may_have_survived(&opening.alive);
    env.demand(known, "opened a total over other sites than this site knows to be in the round", Rule::Opn2)?;
    let least = env.least(deck.threshold);
    env.demand(opening.alive.len() >= least, "opened a total over fewer sites than the floor", Rule::Opn2)?;
    seeds(env, deck, round, opening)?;
    // Its own signature proves nothing to this site; that the aggregator shows what this site sent does.
    if let (Some(own), Ok(at)) = (round.sent(), opening.alive.binary_search(&env.me))
        && own != opening.inputs[at].digest
    {
        return Err(env.aggregator("opened a total with another input of this site than it sent", Rule::Opn5));
    }
    // What was verified when the survivors were named, and by a certificate, is compared.
    let verified = Verified {
        input: &|site, input| round.was_named(site, input),
        check: &|site, check| round.was_certified(site, check),
    };
    seen.total(opening, &missing, &verified).map_err(lie)
}

/// [OPN-3]: the self-mask seeds are those that the members committed to before the first round.
fn seeds(env: &Env, deck: &Deck, round: &Round, opening: &Opening) -> Result<(), Error> {
    let wrong = || env.aggregator("opened a total with a self-mask that no site committed to", Rule::Opn3);
    let id = deck_id(&env.session, &deck.opened_by());
    let mut others = opening.others.iter();
    let mut commitments = Vec::with_capacity(deck.members.len());
    for member in &deck.members {
        commitments.push(match opening.alive.binary_search(member) {
            Ok(at) => {
                if !shamir::is_canonical(&opening.seeds[at]) {
                    return Err(wrong());
                }
                seed_commitment(&id, *member, round.slot, &opening.seeds[at])
            }
            Err(_) => *others.next().ok_or_else(wrong)?,
        });
    }
    let known = deck.slot_commitments(round.slot);
    if others.next().is_none() && known == Some(slot_commitments_hash(&commitments)) { Ok(()) } else { Err(wrong()) }
}
