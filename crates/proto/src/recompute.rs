//! What a coordinator asked and opened, recomputed by somebody who has only the roster and the plan ([RES-8]).
//!
//! A finding rests on signatures alone. Whoever shows the frames may lie about everything else, and still cannot invent one.

pub use crate::opening::Fault;
use crate::{
    error::Error,
    identity::DecodedKeys,
    message::{self, Ask, Kind, Opening, Verified, opening_hash, round_context},
    opening::{Seen, Verified as Before, fault},
    plan::Terms,
    roster::{PartyId, Roster},
    rule::Rule,
    suite::Hash,
};

/// A question as a coordinator signed it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The round.
    pub context: Hash,
    /// What it asks.
    pub ask: Ask,
}

/// A round as a coordinator opened it, recomputed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opened {
    /// The question.
    pub asked: Asked,
    /// The total, one ring element a word.
    pub values: Vec<u64>,
    /// Whose total it is.
    pub cohort: Vec<u16>,
    /// The name under which the next question must refer to it.
    pub name: Hash,
}

/// The documents that frames are read against.
#[derive(Clone, Copy)]
pub struct Documents<'a> {
    /// The verified roster.
    pub roster: &'a Roster,
    /// The verified plan.
    pub terms: &'a Terms,
}

impl Documents<'_> {
    fn session(&self) -> Hash {
        message::session(&self.terms.hash(), &self.roster.hash(), PartyId::Coordinator)
    }

    fn frame<'a>(&self, bytes: &'a [u8], kind: Kind) -> Result<Verified<'a>, Error> {
        let coordinator = &self.roster.coordinator;
        let keys = (&DecodedKeys::default(), &coordinator.key);
        let frame = message::verify(bytes, &self.session(), keys, &|| coordinator.name.clone())?;
        if frame.kind != kind {
            return Err(worthless(format!("a {:?} where a {kind:?} belongs", frame.kind)));
        }
        Ok(frame)
    }

    /// A question that the coordinator signed in a deck with this `directory`.
    ///
    /// # Errors
    /// An error where the frame proves nothing: not signed by the coordinator under this roster and plan, or of another deck.
    pub fn asked(&self, directory: &Hash, ask: &[u8]) -> Result<Asked, Error> {
        let frame = self.frame(ask, Kind::Ask)?;
        let ask: Ask = frame.decode("Ask")?;
        if frame.context != round_context(&self.session(), directory, &ask) {
            return Err(worthless("a question of another deck than is claimed"));
        }
        Ok(Asked { context: frame.context, ask })
    }

    /// A round that the coordinator asked and opened: the total, or why the opening is a lie ([OPN-2] to [OPN-6]; of
    /// [OPN-3] only what shows without the deck).
    ///
    /// # Errors
    /// As [`Documents::asked`].
    pub fn opened(&self, directory: &Hash, ask: &[u8], opening: &[u8]) -> Result<Result<Opened, Fault>, Error> {
        let asked = self.asked(directory, ask)?;
        let frame = self.frame(opening, Kind::Opening)?;
        if frame.context != asked.context {
            return Err(worthless("an opening of another round"));
        }
        let name = opening_hash(&frame.context, frame.rest);
        let opening: Opening = match frame.decode("Opening") {
            Ok(opening) => opening,
            Err(e) => return Ok(fault(format!("signed an opening that cannot be read: {e}"), Rule::Enc1)),
        };
        // An opening does not contain its whole deck, so what is missing of it is not judged here. A deck of as many members as it shows
        // has a threshold, and no total is over fewer sites than that, or than the plan demands.
        let (sites, members) = (opening.alive.len(), opening.alive.len() + opening.others.len());
        let threshold = self.terms.threshold_of(members, self.roster.sites.len());
        let threshold = match threshold {
            Ok(threshold) if sites >= threshold.max(self.terms.least(self.roster.sites.len())) => threshold,
            _ => return Ok(fault("opened a total over fewer sites than the plan allows", Rule::Opn2)),
        };
        let (session, context, keys) = (self.session(), asked.context, DecodedKeys::default());
        let (cohort, words) = (&asked.ask.cohort[..], asked.ask.words as usize);
        let seen = Seen { roster: self.roster, keys: &keys, session, context, cohort, words, threshold };
        let total = seen.missing(&opening).and_then(|missing| seen.total(&opening, &missing, &Before::NOTHING));
        Ok(total.map(|values| Opened { asked, values, cohort: opening.alive, name }))
    }
}

fn worthless(what: impl Into<String>) -> Error {
    Error::malformed("recorded frame", what, Rule::Res8)
}
