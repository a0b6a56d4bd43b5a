//! Lies of an authentic peer: every field of every message changed, under a signature that is right.
//!
//! One list ([`typed`]), in the order of the messages, so that a field that is missing from it is seen.

use veilsum_proto::{
    identity::Identity,
    message::{HEADER, Kind, session},
    roster::PartyId,
    suite::Hash,
};

use crate::{recording::Course, wire::*};

mod coordinator;
mod sites;
mod values;

use coordinator::{ask, certificate, delivery, directory, directory_certificate, open_deck, opening, survivors};
use sites::{accept_directory, advertise, complaint, consistency, masked_input, refusal, share_keys, unmask};
pub use values::Lie;
use values::hashes;

/// What else a lie may be made of: taken from the honest run.
#[derive(Default)]
pub struct Around {
    /// The directory in whose deck the round is.
    pub directory: Hash,
    /// The same message as another site sent it.
    pub other: Vec<u8>,
    /// The survivors that the message is about.
    pub alive: Vec<u16>,
    /// The site that sends, where one does.
    pub me: u16,
}

/// Every field of the message, changed in every way.
pub fn typed(c: &Course, p: &Parts, around: &Around) -> Vec<Lie> {
    let other = || parts(&around.other);
    match p.kind {
        Kind::OpenDeck => open_deck(c, p),
        Kind::AdvertiseKeys => advertise(p, &other().read()),
        Kind::Directory => directory(c, p),
        Kind::AcceptDirectory => accept_directory(c, p),
        Kind::ShareAck | Kind::Burned => {
            vec![("something".into(), p.context, vec![0]), ("a hash".into(), p.context, p.context.0.to_vec())]
        }
        Kind::DirectoryCertificate => directory_certificate(c, p),
        Kind::ShareKeys => share_keys(c, p),
        Kind::DeliverShares => delivery(c, p),
        Kind::ShareComplaint => complaint(c, p, around.me),
        Kind::Ask => ask(c, p, &around.directory),
        Kind::MaskedInput => masked_input(p, &other().rest),
        Kind::Survivors => survivors(c, p),
        Kind::ConsistencyCheck => consistency(c, p, &around.alive),
        Kind::Certificate => certificate(c, p),
        Kind::Opening => opening(p, c.told.len() as u16),
        Kind::Unmask => unmask(p, &other().shares()),
        Kind::Refusal => refusal(p),
        // The application's own kinds are nobody's here: `everywhere` below is all there is to try.
        _ => Vec::new(),
    }
}

/// Changes that every kind has in common: the frame, signed rightly where that is not the lie itself.
pub fn everywhere(c: &Course, p: &Parts, signer: &Identity) -> Vec<(String, Vec<u8>)> {
    let sign = |kind: Kind, context: &Hash, rest: &[u8]| raw(signer, &c.session, kind, context, rest);
    let honest = sign(p.kind, &p.context, &p.rest);
    let mut all: Vec<(String, Vec<u8>)> = vec![("unsigned tail".into(), [&honest[..], &[0]].concat())];
    for end in [0, 1, HEADER, honest.len() / 2, honest.len() - 1] {
        all.push(("unsigned cut".into(), honest[..end].to_vec()));
    }
    for (w, context) in hashes("context", &p.context) {
        all.push((w, sign(p.kind, &context, &p.rest)));
    }
    // All cuts of short messages; some of long ones, which are lists of the same.
    for cut in (0..p.rest.len()).step_by(1 + p.rest.len() / 40) {
        all.push(("cut".into(), sign(p.kind, &p.context, &p.rest[..cut])));
    }
    for more in [1, 8, 32] {
        all.push(("tail".into(), sign(p.kind, &p.context, &[&p.rest[..], &vec![0; more]].concat())));
    }
    // A length that nothing follows.
    all.push(("a huge list".into(), sign(p.kind, &p.context, &u64::MAX.to_le_bytes())));
    for kind in Kind::ALL.iter().filter(|k| **k != p.kind) {
        all.push((format!("as a {kind:?}"), sign(*kind, &p.context, &p.rest)));
    }
    let other = session(&c.kit.terms.hash(), &c.kit.roster.hash(), PartyId::Intermediary);
    all.push(("of another session".into(), raw(signer, &other, p.kind, &p.context, &p.rest)));
    for (i, thief) in c.kit.identities.iter().enumerate().filter(|(_, i)| i.public() != signer.public()) {
        all.push((format!("signed by party {i}"), raw(thief, &c.session, p.kind, &p.context, &p.rest)));
    }
    all
}
