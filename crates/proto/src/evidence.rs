//! Evidence: what a party signed, shown to somebody who has only the roster and the plan ([EVD-1], spec section 14.1).
//!
//! A finding rests on signatures alone. The party that shows the evidence may lie about everything else, and still
//! cannot invent a finding (`every_lie_is_refused_and_named` and its neighbours test this).

use crate::{
    codec,
    commit::commit,
    error::Error,
    identity::{DecodedKeys, PublicKey},
    message::{self, Ask, COMMITMENT, Kind, Opening, Verified, opening_hash, round_context},
    opening::{Seen, Verified as Before},
    plan::Terms,
    policy::{self, Floor},
    roster::{PartyId, Roster},
    rule::Rule,
    suite::Hash,
};

/// Who broke which rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blame {
    /// The party at fault.
    pub culprit: PartyId,
    /// What it did.
    pub what: String,
    /// The rule it broke.
    pub rule: Rule,
}

/// A question as a coordinator signed it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The round.
    pub context: Hash,
    /// Whose answers were asked for.
    pub cohort: Vec<u16>,
    /// Words of an answer.
    pub words: usize,
    /// The application's query.
    pub query: Vec<u8>,
    /// The round before; zeros in the first round of a run.
    pub previous_context: Hash,
    /// The name of what was opened of the round before.
    pub previous_total: Hash,
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

/// The documents that evidence is read against.
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

    fn frame<'a>(&self, by: PartyId, bytes: &'a [u8], kind: Kind) -> Result<Verified<'a>, Error> {
        let name = self.roster.name_of(by);
        let key = self.roster.member(by).map_or(PublicKey([0; 32]), |member| member.key);
        let frame = message::verify(bytes, &self.session(), (&DecodedKeys::default(), &key), &|| name.clone())?;
        if frame.kind == kind {
            Ok(frame)
        } else {
            Err(worthless(format!("a {:?} where a {kind:?} belongs", frame.kind)))
        }
    }

    /// A question that the coordinator signed in a deck with this `directory`.
    ///
    /// # Errors
    /// An error where the frame proves nothing: not signed by the coordinator under this roster and plan, or of another deck.
    pub fn asked(&self, directory: &Hash, ask: &[u8]) -> Result<Asked, Error> {
        let frame = self.frame(PartyId::Coordinator, ask, Kind::Ask)?;
        let asked: Ask = frame.decode("Ask")?;
        if frame.context != round_context(&self.session(), directory, &asked) {
            return Err(worthless("a question of another deck than is claimed"));
        }
        Ok(Asked {
            context: frame.context,
            cohort: asked.cohort,
            words: asked.words as usize,
            query: asked.query,
            previous_context: asked.previous_context,
            previous_total: asked.previous_total,
        })
    }

    /// A round that the coordinator asked and opened: the total, or why the opening is a lie ([OPN-2] to [OPN-6]; of
    /// [OPN-3] only what shows without the deck).
    ///
    /// # Errors
    /// As [`Documents::asked`].
    pub fn opened(&self, directory: &Hash, ask: &[u8], opening: &[u8]) -> Result<Result<Opened, Blame>, Error> {
        let asked = self.asked(directory, ask)?;
        let frame = self.frame(PartyId::Coordinator, opening, Kind::Opening)?;
        if frame.context != asked.context {
            return Err(worthless("an opening of another round"));
        }
        let name = opening_hash(&frame.context, frame.rest);
        let blame = |what: String, rule| Ok(Err(Blame { culprit: PartyId::Coordinator, what, rule }));
        let opening: Opening = match frame.decode("Opening") {
            Ok(opening) => opening,
            Err(e) => return blame(format!("signed an opening that cannot be read: {e}"), Rule::Enc1),
        };
        // An opening does not contain its whole deck, so what is missing of it is not judged here. A deck of as many members as it shows
        // has a threshold, and no total is over fewer sites than that, or than the plan demands.
        let (sites, members) = (opening.alive.len(), opening.alive.len() + opening.others.len());
        let threshold = self.terms.threshold_of(members, self.roster.sites.len());
        let threshold = match threshold {
            Ok(threshold) if sites >= threshold.max(policy::least(self.terms, &Floor::default())) => threshold,
            _ => return blame("opened a total over fewer sites than the plan allows".into(), Rule::Opn2),
        };
        let seen = Seen {
            roster: self.roster,
            keys: &DecodedKeys::default(),
            session: self.session(),
            context: asked.context,
            cohort: &asked.cohort,
            words: asked.words,
            threshold,
        };
        let total = seen.missing(&opening).and_then(|missing| seen.total(&opening, &missing, &Before::NOTHING));
        match total {
            Ok(values) => Ok(Ok(Opened { asked, values, cohort: opening.alive, name })),
            Err(fault) => blame(fault.what, fault.rule),
        }
    }

    /// Whether a site's masked input is another vector than it committed to ([INP-4]).
    ///
    /// # Errors
    /// An error where the frame is not the site's.
    pub fn input(&self, site: u16, frame: &[u8]) -> Result<Option<Blame>, Error> {
        let frame = self.frame(PartyId::Site(site), frame, Kind::MaskedInput)?;
        let sound = frame.rest.split_first_chunk::<COMMITMENT>().is_some_and(|(commitment, bytes)| {
            let (words, rest) = bytes.as_chunks::<8>();
            let words: Vec<u64> = words.iter().map(|w| u64::from_le_bytes(*w)).collect();
            rest.is_empty() && words.len() <= crate::limits::MAX_WORDS && *commitment == commit(&words)
        });
        let what = "committed to another vector than it sent".to_owned();
        Ok((!sound).then_some(Blame { culprit: PartyId::Site(site), what, rule: Rule::Inp4 }))
    }

    /// Whether one party signed two different messages where a round has one: two inputs of a site ([INP-2]), two openings
    /// of a coordinator ([OPN-8]).
    ///
    /// # Errors
    /// An error where a frame is not the party's.
    pub fn twice(&self, by: PartyId, one: &[u8], other: &[u8]) -> Result<Option<Blame>, Error> {
        let (kind, what, rule) = match by {
            PartyId::Site(_) => (Kind::MaskedInput, "answered one question twice, with different vectors", Rule::Inp2),
            _ => (Kind::Opening, "opened one total in two ways", Rule::Opn8),
        };
        let (one, other) = (self.frame(by, one, kind)?, self.frame(by, other, kind)?);
        let differ = one.context == other.context && one.rest != other.rest;
        Ok(differ.then(|| Blame { culprit: by, what: what.to_owned(), rule }))
    }
}

fn worthless(what: impl Into<String>) -> Error {
    Error::malformed("evidence", what, Rule::Evd1)
}

/// Rebuilds a frame from its parts, as its sender signed it.
pub(crate) fn input_frame(context: &Hash, commitment: &[u8; 32], words: &[u64], proof: &message::Proof) -> Vec<u8> {
    let rest = [&commitment[..], &codec::words_to_bytes(words)].concat();
    message::assemble(Kind::MaskedInput, context, &rest, &proof.signature())
}
