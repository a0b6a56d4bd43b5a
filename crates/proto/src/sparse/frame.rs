//! Frames of the sparse protocol: the layout of section 10.1, kinds and signature label of their own (spec 17.2).

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    codec,
    error::Error,
    identity::{DecodedKeys, Identity, PublicKey, Signature},
    limits::{MAX_BODY, MAX_QUERY, MAX_SMALL_BODY, MAX_WORDS},
    message::HEADER,
    suite::{self, Hash, VERSION},
};

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $limit:expr;)*) => {
        /// The type of a message of the sparse protocol.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u16)]
        pub enum Kind { $($(#[$doc])* $name = $number,)* }

        impl Kind {
            fn from_number(n: u16) -> Option<Kind> {
                match n { $($number => Some(Kind::$name),)* _ => None }
            }

            /// Largest body of this kind in bytes.
            pub fn body_limit(self) -> usize {
                match self { $(Kind::$name => $limit,)* }
            }
        }
    };
}

/// Bytes of a body with a bitmap, a path or a proof of each member of a committee.
const MEDIUM: usize = 256 << 10;

kinds! {
    /// Aggregator: a deck is to be set up.
    Open = 32, MAX_SMALL_BODY;
    /// Site: its keys and commitments.
    Advertise = 33, MAX_SMALL_BODY;
    /// Aggregator: who is in, and the roots of what they said.
    Root = 34, MEDIUM;
    /// Site: its random number for the root it was shown, and its keys of the slots.
    Reveal = 35, MAX_SMALL_BODY;
    /// Aggregator: all random numbers, and the entries of this site's neighbours and of the committee.
    Seed = 36, MAX_BODY;
    /// Site: its signature on the directory and the seed.
    Accept = 37, MAX_SMALL_BODY;
    /// Aggregator: enough of the committee's signatures on the directory and the seed.
    Certificate = 38, MEDIUM;
    /// Site: sealed shares for the committee.
    Shares = 39, MAX_BODY;
    /// Aggregator, to the committee: some of the boxes for it.
    Deliver = 40, MAX_BODY;
    /// Aggregator, to the committee: no more boxes come.
    Collect = 41, MAX_SMALL_BODY;
    /// Member of the committee: whose shares it holds.
    Held = 42, MAX_SMALL_BODY;
    /// Aggregator: a query.
    Ask = 43, MAX_QUERY + MAX_SMALL_BODY;
    /// Site: the masked answer.
    Input = 44, 8 * MAX_WORDS + MAX_SMALL_BODY;
    /// Aggregator, to the committee: whose inputs arrived.
    Survivors = 45, MAX_SMALL_BODY;
    /// Member of the committee: its signature on the survivors.
    Agree = 46, MAX_SMALL_BODY;
    /// Aggregator, to the committee: enough signatures on one set of survivors.
    Agreement = 47, MEDIUM;
    /// Member of the committee: its shares of the survivors' self-masks and of the others' keys of the slot.
    Unmask = 48, MAX_BODY;
    /// Site: it will not take part in what was asked.
    Refusal = 49, MAX_SMALL_BODY;
}

const LABEL: &str = "sparse frame";

/// The hash of a frame's message and the signature on the frame: what a third party needs beside the context.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Proof {
    pub(crate) rest: Hash,
    signature: Signature,
}

impl Proof {
    /// Of a frame that this party made itself.
    pub(crate) fn of_own(frame: &[u8]) -> Proof {
        let end = frame.len() - 64;
        let signature = Signature::from_bytes(frame[end..].try_into().expect("a frame ends with its signature"));
        Proof { rest: suite::hash("rest", &[&frame[HEADER + 32..end]]), signature }
    }

    pub(crate) fn covers<T: Serialize>(&self, message: &T) -> bool {
        self.rest == suite::hash("rest", &[&codec::encode(message)])
    }

    pub(crate) fn verify(&self, key: &PublicKey, session: &Hash, kind: Kind, context: &Hash) -> bool {
        let parts: [&[u8]; 4] = [&session.0, &(kind as u16).to_le_bytes(), &context.0, &self.rest.0];
        key.verify(LABEL, &parts, &self.signature)
    }
}

/// Whether all of these signed frames of one kind, session and context; checked at once ([FRM-8]).
pub(crate) fn all_signed(proofs: &[(PublicKey, Proof)], session: &Hash, kind: Kind, context: &Hash) -> bool {
    let number = (kind as u16).to_le_bytes();
    let digest = |p: &Proof| suite::hash(LABEL, &[&session.0, &number, &context.0, &p.rest.0]);
    let signed: Vec<_> = proofs.iter().map(|(key, p)| (*key, digest(p), p.signature)).collect();
    DecodedKeys::default().verify_all(&signed) || proofs.iter().all(|(key, p)| p.verify(key, session, kind, context))
}

/// A frame whose signature was checked.
pub(crate) struct Verified<'a> {
    pub(crate) kind: Kind,
    pub(crate) context: Hash,
    pub(crate) rest: &'a [u8],
    pub(crate) proof: Proof,
}

impl Verified<'_> {
    pub(crate) fn decode<T: Serialize + DeserializeOwned>(&self, what: &'static str) -> Result<T, Error> {
        codec::decode(what, self.rest, self.kind.body_limit())
    }

    /// [ENC-1]: a message that carries nothing carries no byte.
    pub(crate) fn nothing(&self, what: &'static str) -> Result<(), Error> {
        if self.rest.is_empty() { Ok(()) } else { Err(Error::malformed(what, "bytes where none belong", "ENC-1")) }
    }
}

/// Builds and signs a frame around an encoded message.
pub(crate) fn frame_raw(identity: &Identity, session: &Hash, kind: Kind, context: &Hash, rest: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + 96 + rest.len());
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&(kind as u16).to_le_bytes());
    out.extend_from_slice(&((32 + rest.len() + 64) as u32).to_le_bytes());
    out.extend_from_slice(&context.0);
    out.extend_from_slice(rest);
    let digest = suite::hash("rest", &[rest]);
    let parts: [&[u8]; 4] = [&session.0, &(kind as u16).to_le_bytes(), &context.0, &digest.0];
    out.extend_from_slice(&identity.sign(LABEL, &parts).to_bytes());
    out
}

/// Builds and signs a frame.
pub(crate) fn frame<T: Serialize>(
    identity: &Identity,
    session: &Hash,
    kind: Kind,
    context: &Hash,
    message: &T,
) -> Vec<u8> {
    frame_raw(identity, session, kind, context, &codec::encode(message))
}

/// The kind of a whole frame without checking anything else; for counting traffic.
pub fn kind_of(frame: &[u8]) -> Option<Kind> {
    Kind::from_number(u16::from_le_bytes([*frame.get(2)?, *frame.get(3)?]))
}

/// Takes a frame apart and checks its signature ([FRM-1] to [FRM-4] with these kinds).
pub(crate) fn verify<'a>(
    bytes: &'a [u8],
    session: &Hash,
    key: &PublicKey,
    sender: &dyn Fn() -> String,
) -> Result<Verified<'a>, Error> {
    let bad = |why: &str, rule| Err(Error::malformed("frame", why, rule));
    let Some((header, body)) = bytes.split_first_chunk::<HEADER>() else {
        return bad("shorter than its header", "FRM-3");
    };
    if u16::from_le_bytes([header[0], header[1]]) != VERSION {
        return bad("of another wire version", "FRM-1");
    }
    let Some(kind) = kind_of(bytes) else { return bad("unknown message type", "FRM-2") };
    let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
    if length != body.len() || length > kind.body_limit() {
        return bad("of another length than it says, or too long for its kind", "FRM-3");
    }
    let parts = body.split_first_chunk::<32>().and_then(|(context, more)| {
        let (rest, signature) = more.split_last_chunk::<64>()?;
        Some((Hash(*context), rest, Signature::from_bytes(signature)))
    });
    let Some((context, rest, signature)) = parts else {
        return bad("no room for a context and a signature", "FRM-3");
    };
    let proof = Proof { rest: suite::hash("rest", &[rest]), signature };
    if !proof.verify(key, session, kind, &context) {
        return Err(Error::peer(sender(), format!("sent a {kind:?} that its key did not sign for this run"), "FRM-4"));
    }
    Ok(Verified { kind, context, rest, proof })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_a_frame_counts() {
        let id = Identity::from_seed(&[1; 32]);
        let (session, context) = (suite::hash("s", &[]), suite::hash("c", &[]));
        let bytes = frame(&id, &session, Kind::Refusal, &context, &7u16);
        let who = || "x".to_owned();
        assert_eq!(verify(&bytes, &session, &id.public(), &who).unwrap().decode::<u16>("number").unwrap(), 7);
        for i in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[i / 8] ^= 1 << (i % 8);
            assert!(verify(&bad, &session, &id.public(), &who).is_err(), "bit {i}");
        }
        for n in 0..bytes.len() {
            assert!(verify(&bytes[..n], &session, &id.public(), &who).is_err());
        }
        // Many at once, as a certificate has them: every one counts, and so does what they signed.
        let ids: Vec<Identity> = (0..9).map(|i| Identity::from_seed(&[i; 32])).collect();
        let proof = |id| Proof::of_own(&frame(id, &session, Kind::Accept, &context, &()));
        let mut proofs: Vec<_> = ids.iter().map(|id| (id.public(), proof(id))).collect();
        assert!(all_signed(&proofs, &session, Kind::Accept, &context));
        assert!(!all_signed(&proofs, &session, Kind::Agree, &context));
        assert!(
            !all_signed(&proofs, &session, Kind::Accept, &session)
                && !all_signed(&proofs, &context, Kind::Accept, &context)
        );
        proofs[8].0 = proofs[7].0;
        assert!(!all_signed(&proofs, &session, Kind::Accept, &context));
        // The complete protocol's numbers and label are others: a frame of one is none of the other.
        assert!(crate::message::kind_of(&bytes).is_none());
    }
}
