//! What a site states of its account with its keys for a deck, and what names a set of sites (spec section 11.2).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{
    identity::PublicKey,
    suite::{self, Hash},
};

/// What a site states of its account, signed with its keys for a deck.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Standing {
    /// What the account is known by that its answers go to, whichever key it has ([LED-9]); nothing where it keeps none.
    pub account: Option<Hash>,
    /// How far its ledger has come ([LED-11]).
    pub answered: Answered,
}

/// How far a ledger has come: answers alone count, because a site that others refuse gives none, and so does not catch up with what it
/// stated before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Answered {
    /// Answers that ever left, under any plan.
    pub number: u64,
    /// Names all of them by where they were given; zeros where there is none. No row enters it.
    pub link: Hash,
}

impl Answered {
    /// After one more answer, in this session and run and in this deck and slot.
    #[must_use]
    pub fn and(&self, session: &Hash, run: &Hash, (deck, slot): (u32, u16)) -> Answered {
        let parts: [&[u8]; 5] = [&self.link.0, &session.0, &run.0, &deck.to_le_bytes(), &slot.to_le_bytes()];
        Answered { number: self.number + 1, link: suite::hash("answers given", &parts) }
    }
}

/// A site of a directory and what it states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// Its number in the roster.
    pub site: u16,
    /// Its key in the roster.
    pub key: PublicKey,
    /// What it states.
    pub standing: Standing,
}

impl Member {
    /// What it is known by in every roster: its account, else its key.
    pub fn id(&self) -> Hash {
        self.standing.account.unwrap_or(Hash(self.key.0))
    }
}

/// [LED-1]: names the sites that have these keys, whatever their order.
pub fn set_of_sites(keys: impl IntoIterator<Item = PublicKey>) -> Hash {
    let keys: BTreeSet<[u8; 32]> = keys.into_iter().map(|key| key.0).collect();
    suite::hash("cohort in a ledger", &[&keys.into_iter().collect::<Vec<_>>().concat()])
}
