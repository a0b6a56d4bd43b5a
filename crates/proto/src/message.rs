//! Frames and messages: the wire format, byte by byte (spec section 10).
//!
//! A frame is a header of 8 bytes, a context of 32, the message, and an Ed25519 signature of 64 over all that came
//! before. The context (a deck, a directory or a round) is separate from the rest, so that a third party who knows it
//! can check a signature from the hash of the rest alone. This keeps certificates short.

mod bodies;
mod disclosure;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub(crate) use bodies::*;
pub use bodies::{Ask, session};
pub use disclosure::Disclosure;

use crate::{
    codec,
    commit::Commitment,
    error::Error,
    identity::{DecodedKeys, Identity, PublicKey, Signature},
    limits::{
        MAX_BODY, MAX_DELIVERY_BODY, MAX_DIRECTORY_BODY, MAX_LIST_BODY, MAX_OPENING, MAX_QUERY, MAX_SMALL_BODY,
        MAX_WORDS,
    },
    roster::Roster,
    rule::Rule,
    suite::{self, Hash, VERSION},
};

/// Bytes of a frame's header: version, kind (both u16) and body length (u32), little-endian.
pub const HEADER: usize = 8;
/// Bytes of a masked input before its words: the commitment to them ([OPN-1]).
pub const COMMITMENT: usize = 32;
/// Bytes that a frame has beside its message: header, context and signature.
pub const OVERHEAD: usize = HEADER + 32 + 64;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $limit:expr;)*) => {
        /// The type of a message.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u16)]
        pub enum Kind { $($(#[$doc])* $name = $number,)* }

        impl Kind {
            /// Every kind, in the order of the numbers.
            pub const ALL: &[Kind] = &[$(Kind::$name,)*];

            fn from_number(n: u16) -> Option<Kind> {
                match n { $($number => Some(Kind::$name),)* _ => None }
            }

            /// Largest body of this kind in bytes ([FRM-3]).
            pub fn body_limit(self) -> usize {
                match self { $(Kind::$name => $limit,)* }
            }
        }
    };
}

kinds! {
    /// Aggregator: a deck is to be set up.
    OpenDeck = 1, MAX_SMALL_BODY;
    /// Site: its public keys for the deck.
    AdvertiseKeys = 2, MAX_SMALL_BODY;
    /// Aggregator: everybody's public keys.
    Directory = 3, MAX_DIRECTORY_BODY;
    /// Site: its signature on the directory, and a ciphertext for half of the members.
    AcceptDirectory = 4, MAX_DIRECTORY_BODY;
    /// Aggregator: everybody's signatures on the directory, and the ciphertexts for this site.
    DirectoryCertificate = 5, MAX_DIRECTORY_BODY;
    /// Site: sealed shares for every other site.
    ShareKeys = 6, MAX_BODY;
    /// Aggregator: the sealed shares for this site.
    DeliverShares = 7, MAX_DELIVERY_BODY;
    /// Site: all boxes opened.
    ShareAck = 8, MAX_SMALL_BODY;
    /// Site: a box did not open.
    ShareComplaint = 9, MAX_SMALL_BODY;
    /// Aggregator: a query.
    Ask = 10, MAX_QUERY + MAX_SMALL_BODY;
    /// Site: the masked answer.
    MaskedInput = 11, 8 * MAX_WORDS + MAX_SMALL_BODY;
    /// Aggregator: whose inputs arrived.
    Survivors = 12, MAX_LIST_BODY;
    /// Site: its signature on the survivors and the round seeds it shares with the missing.
    ConsistencyCheck = 13, MAX_LIST_BODY;
    /// Aggregator: enough signatures on one set of survivors.
    Certificate = 14, MAX_LIST_BODY;
    /// Site: its shares of the survivors' self-masks.
    Unmask = 15, MAX_LIST_BODY;
    /// Site: it will not take part in what was asked.
    Refusal = 16, MAX_SMALL_BODY;
    /// Aggregator: all that is needed to recompute the total of the round.
    Opening = 17, MAX_OPENING;
    /// Either: who I am and which plan I hold.
    Hello = 64, MAX_SMALL_BODY;
    /// Aggregator: accepted.
    Welcome = 65, MAX_SMALL_BODY;
    /// Aggregator: not accepted, and why.
    Denied = 66, MAX_SMALL_BODY;
    /// Aggregator: the run is over; the result where there is one.
    Finished = 67, MAX_QUERY;
    /// Intermediary to sites and coordinator: the rows of these sites reach the floor.
    CountReady = 68, MAX_LIST_BODY;
    /// Coordinator to intermediary: hand over the total for this cohort.
    CountRequest = 69, MAX_LIST_BODY;
    /// Intermediary to coordinator: the total, or that it is withheld.
    CountReply = 70, MAX_SMALL_BODY;
    /// Aggregator: the run ended without a result.
    Aborted = 71, MAX_SMALL_BODY;
    /// Coordinator to sites: the final centres that the intermediary will ask to judge.
    Held = 72, MAX_QUERY;
    /// Coordinator to intermediary: judge what the sites hold.
    JudgeRequest = 73, MAX_LIST_BODY;
    /// Site to intermediary: distances between the centres that it holds.
    CentreDistances = 74, MAX_QUERY;
    /// Intermediary to coordinator: the verdicts.
    JudgeReply = 75, MAX_BODY;
    /// Coordinator to intermediary: these sites are to be asked; count their rows first.
    Count = 76, MAX_LIST_BODY;
    /// Either: would this greeting let me in?
    Knock = 77, MAX_SMALL_BODY;
    /// Site to coordinator: its signature on the result, which it recomputed.
    Countersigned = 78, MAX_SMALL_BODY;
}

/// Refuses a frame of another wire version, and says whose turn it is to update ([FRM-1]): the sentence is for both ends.
///
/// # Errors
/// `Error::Malformed`, in which both versions are named.
pub fn check_version(header: &[u8; HEADER]) -> Result<(), Error> {
    let version = u16::from_le_bytes([header[0], header[1]]);
    let older = version.min(VERSION);
    if version == VERSION {
        return Ok(());
    }
    let what = format!(
        "wire version {version} met wire version {VERSION}: the program of wire version {older} is the older one, and has to be updated"
    );
    Err(Error::malformed("frame", what, Rule::Frm1))
}

/// Reads a header: which kind, and how many bytes of body follow ([FRM-1], [FRM-3], [FRM-6]).
///
/// # Errors
/// `Error::Malformed` for another version (both are named), an unknown kind, or a length over the kind's limit.
pub fn parse_header(header: &[u8; HEADER]) -> Result<(Kind, usize), Error> {
    check_version(header)?;
    let number = u16::from_le_bytes([header[2], header[3]]);
    let kind = Kind::from_number(number)
        .ok_or_else(|| Error::malformed("frame", format!("unknown message type {number}"), Rule::Frm6))?;
    let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
    if length > kind.body_limit() {
        let why = format!("a {kind:?} of {length} bytes, at most {} are allowed", kind.body_limit());
        return Err(Error::malformed("frame", why, Rule::Frm3));
    }
    Ok((kind, length))
}

/// A verified frame: its signature was checked against the sender's key.
#[derive(Debug)]
pub(crate) struct Verified<'a> {
    pub(crate) kind: Kind,
    pub(crate) context: Hash,
    pub(crate) rest: &'a [u8],
    /// What a third party needs beside the context to check the signature.
    pub(crate) proof: Proof,
    /// Of a masked input, the hash of its words.
    pub(crate) masked: Option<Hash>,
}

/// The hash of a frame's message and the signature on the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Proof {
    rest: Hash,
    pub(crate) signature: Signature,
}

impl Proof {
    /// Whether the signed message is this one.
    pub(crate) fn covers<T: Serialize>(&self, message: &T) -> bool {
        self.rest == suite::hash("rest", &[&codec::encode(message)])
    }

    /// The proof of a masked input, put together again from what an opening tells of it.
    pub(crate) fn of_input(input: &OpenedInput) -> Proof {
        Proof { rest: input_digest(&input.commitment, &input.digest), signature: input.signature }
    }

    /// The proof of a consistency check, put together again from the seeds in it.
    pub(crate) fn of_check(check: &ConsistencyCheck, signature: Signature) -> Proof {
        Proof { rest: suite::hash("rest", &[&codec::encode(check)]), signature }
    }

    /// The hash of the signed message. Signed content is compared by this hash and not by the signature, because a
    /// signer can make many signatures of one message.
    pub(crate) fn signed_message(&self) -> Hash {
        self.rest
    }

    /// Whether `key` signed a frame of `kind` in `session` with this context ([FRM-5]).
    pub(crate) fn verify(&self, key: &PublicKey, session: &Hash, kind: Kind, context: &Hash) -> bool {
        key.verify(FRAME, &signed_parts(session, &(kind as u16).to_le_bytes(), context, &self.rest), &self.signature)
    }

    /// What was signed, for checking many at once ([FRM-4]).
    fn signed(&self, session: &Hash, kind: Kind, context: &Hash) -> Hash {
        suite::hash(FRAME, &signed_parts(session, &(kind as u16).to_le_bytes(), context, &self.rest))
    }
}

/// The first of these sites that did not sign its proof, all being of one kind, session and context. Where all are sound, they
/// are checked at once ([FRM-4]).
pub(crate) fn first_unsigned(
    (roster, keys): (&Roster, &DecodedKeys),
    proofs: &[(u16, Proof)],
    session: &Hash,
    kind: Kind,
    context: &Hash,
) -> Option<u16> {
    let key = |site: u16| roster.sites.get(usize::from(site)).map_or(PublicKey([0; 32]), |member| member.key);
    let signed = |(site, p): &(u16, Proof)| (key(*site), p.signed(session, kind, context), p.signature);
    if keys.verify_all(&proofs.iter().map(signed).collect::<Vec<_>>()) {
        return None;
    }
    proofs.iter().find(|(site, proof)| !proof.verify(&key(*site), session, kind, context)).map(|(site, _)| *site)
}

/// The part of a message that is signed ([FRM-4]). In a masked input the commitment and the words' hash are separate,
/// so that a third party can check the signature from 64 bytes.
/// Also gives the words' hash.
fn rest_digest(kind: Kind, rest: &[u8]) -> (Hash, Option<Hash>) {
    match (kind, rest.split_first_chunk::<32>()) {
        (Kind::MaskedInput, Some((commitment, words))) => {
            let masked = masked_digest(words);
            (input_digest(commitment, &masked), Some(masked))
        }
        _ => (suite::hash("rest", &[rest]), None),
    }
}

fn input_digest(commitment: &Commitment, digest: &Hash) -> Hash {
    suite::hash("input", &[commitment, &digest.0])
}

/// The hash of a masked vector.
pub(crate) fn masked_digest(words: &[u8]) -> Hash {
    suite::hash("masked", &[words])
}

const FRAME: &str = "frame";

fn signed_parts<'a>(session: &'a Hash, kind: &'a [u8; 2], context: &'a Hash, rest: &'a Hash) -> [&'a [u8]; 4] {
    [&session.0, kind, &context.0, &rest.0]
}

/// A masked input before its commitment and its signature are there: the words are written and hashed once, in the frame that
/// leaves.
pub(crate) struct MaskedFrame {
    bytes: Vec<u8>,
    pub(crate) digest: Hash,
    context: Hash,
}

impl MaskedFrame {
    pub(crate) fn new(context: &Hash, words: &[u64]) -> MaskedFrame {
        let mut bytes = start(Kind::MaskedInput, context, COMMITMENT + 8 * words.len());
        bytes.resize(START + COMMITMENT, 0);
        // [ENC-4].
        words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        let digest = masked_digest(&bytes[START + COMMITMENT..]);
        MaskedFrame { bytes, digest, context: *context }
    }

    pub(crate) fn frame(mut self, identity: &Identity, session: &Hash, commitment: &Commitment) -> Vec<u8> {
        self.bytes[START..START + COMMITMENT].copy_from_slice(commitment);
        let rest = input_digest(commitment, &self.digest);
        sign(self.bytes, (identity, session), Kind::MaskedInput, &self.context, &rest)
    }
}

/// Context, number of masked words and their hash, of a frame with an answer of this side's own.
pub(crate) fn masked_parts(frame: &[u8]) -> Option<(Hash, usize, Hash)> {
    let (words, rest) = message_of(frame).get(COMMITMENT..)?.as_chunks::<8>();
    let whole = kind_of(frame) == Some(Kind::MaskedInput) && rest.is_empty() && !words.is_empty();
    whole.then(|| Some((context_of(frame)?, words.len(), masked_digest(words.as_flattened()))))?
}

/// The message of a frame of this side's own.
pub(crate) fn message_of(frame: &[u8]) -> &[u8] {
    frame.get(START..frame.len().saturating_sub(64)).unwrap_or_default()
}

/// Builds and signs a frame around a message that is encoded already ([FRM-4]).
pub fn frame_encoded(identity: &Identity, session: &Hash, kind: Kind, context: &Hash, rest: &[u8]) -> Vec<u8> {
    let mut frame = start(kind, context, rest.len());
    frame.extend_from_slice(rest);
    sign(frame, (identity, session), kind, context, &rest_digest(kind, rest).0)
}

/// Where a frame's message begins: behind header and context.
const START: usize = HEADER + 32;

/// A frame up to its message of so many bytes, with its full capacity.
fn start(kind: Kind, context: &Hash, message: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(OVERHEAD + message);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&(kind as u16).to_le_bytes());
    out.extend_from_slice(&((32 + message + 64) as u32).to_le_bytes());
    out.extend_from_slice(&context.0);
    out
}

/// Puts the signature behind a frame's message, of which this is the signed part.
fn sign(mut frame: Vec<u8>, by: (&Identity, &Hash), kind: Kind, context: &Hash, rest: &Hash) -> Vec<u8> {
    let (identity, session) = by;
    let signature = identity.sign(FRAME, &signed_parts(session, &(kind as u16).to_le_bytes(), context, rest));
    frame.extend_from_slice(&signature.to_bytes());
    frame
}

/// Builds and signs a frame.
pub fn frame<T: Serialize>(identity: &Identity, session: &Hash, kind: Kind, context: &Hash, message: &T) -> Vec<u8> {
    frame_encoded(identity, session, kind, context, &codec::encode(message))
}

/// Takes a frame apart and checks the signature ([FRM-4]).
///
/// # Errors
/// `Error::Malformed` where the bytes are no frame; `Error::PeerMisbehaved` with `sender`'s name where they are one
/// that its key did not sign for this session.
pub(crate) fn verify<'a>(
    bytes: &'a [u8],
    session: &Hash,
    (keys, key): (&DecodedKeys, &PublicKey),
    sender: &dyn Fn() -> String,
) -> Result<Verified<'a>, Error> {
    let Some((header, body)) = bytes.split_first_chunk::<HEADER>() else {
        return Err(Error::malformed("frame", "shorter than its header", Rule::Frm3));
    };
    let (kind, length) = parse_header(header)?;
    if length != body.len() {
        return Err(Error::malformed("frame", format!("{length} bytes declared, {} came", body.len()), Rule::Frm3));
    }
    let parts = body.split_first_chunk::<32>().and_then(|(context, more)| {
        let (rest, signature) = more.split_last_chunk::<64>()?;
        Some((Hash(*context), rest, Signature::from_bytes(signature)))
    });
    let Some((context, rest, signature)) = parts else {
        return Err(Error::malformed("frame", "no room for a context and a signature", Rule::Frm3));
    };
    let (digest, masked) = rest_digest(kind, rest);
    let proof = Proof { rest: digest, signature };
    let number = (kind as u16).to_le_bytes();
    if !keys.verify(key, FRAME, &signed_parts(session, &number, &context, &proof.rest), &proof.signature) {
        let what = format!("sent a {kind:?} that its key did not sign for this run");
        return Err(Error::peer(sender(), what, Rule::Frm4));
    }
    Ok(Verified { kind, context, rest, proof, masked })
}

/// Takes apart a frame of the application's own kinds (`Hello` and up).
///
/// # Errors
/// As for every frame, and `Error::Malformed` where it is of another kind than `expected`.
pub fn open<T: Serialize + DeserializeOwned>(
    bytes: &[u8],
    session: &Hash,
    key: &PublicKey,
    sender: &str,
    expected: Kind,
) -> Result<T, Error> {
    let v = verify(bytes, session, (&DecodedKeys::default(), key), &|| sender.to_owned())?;
    if v.kind != expected {
        return Err(Error::peer(sender, format!("sent a {:?} where a {expected:?} belongs", v.kind), Rule::Frm6));
    }
    codec::decode(KIND_NAME, v.rest, expected.body_limit())
}

const KIND_NAME: &str = "control message";

/// The kind of a whole frame without checking anything else; for counting traffic.
pub fn kind_of(frame: &[u8]) -> Option<Kind> {
    frame.first_chunk::<HEADER>().and_then(|h| parse_header(h).ok()).map(|(k, _)| k)
}

/// The context that a frame claims: the session, the deck or the round, depending on its kind. Nothing is checked.
pub fn context_of(frame: &[u8]) -> Option<Hash> {
    frame.get(HEADER..HEADER + 32)?.try_into().ok().map(Hash)
}

/// What an `Unmask` claims to be for ([CON-2]), read without checking anything.
pub(crate) fn unmask_context(frame: &[u8]) -> Option<Hash> {
    kind_of(frame).filter(|k| *k == Kind::Unmask)?;
    context_of(frame)
}

impl Verified<'_> {
    /// [ENC-1]: a message that carries nothing carries no byte.
    pub(crate) fn nothing(&self, what: &'static str) -> Result<(), Error> {
        if self.rest.is_empty() { Ok(()) } else { Err(Error::malformed(what, "bytes where none belong", Rule::Enc1)) }
    }

    pub(crate) fn decode<T: Serialize + DeserializeOwned>(&self, what: &'static str) -> Result<T, Error> {
        codec::decode(what, self.rest, self.kind.body_limit())
    }

    /// A message that is one list of arrays, where it stands in the frame.
    pub(crate) fn arrays(&self, what: &'static str) -> Result<&[[u8; 32]], Error> {
        codec::arrays(what, self.rest, self.kind.body_limit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kem::{CIPHERTEXT_BYTES, KEY_BYTES};

    #[test]
    fn both_versions_are_named() {
        let mut h = [0u8; HEADER];
        for (other, older) in [(9, VERSION), (2, 2)] {
            h[0] = other;
            let told = parse_header(&h).unwrap_err().to_string();
            let both = format!(
                "wire version {other} met wire version {VERSION}: the program of wire version {older} is the older one"
            );
            assert!(told.contains(&both), "{told}");
        }
    }

    /// [FRM-5], with the key decoded before, and decoded anew.
    #[test]
    fn frm_5_a_proof_stands_for_kind_and_context() {
        let id = Identity::from_seed(&[1; 32]);
        let (session, context) = (suite::hash("s", &[]), suite::hash("c", &[]));
        let bytes = frame(&id, &session, Kind::Refusal, &context, &Refusal { rule: Rule::Rnd4 });
        for keys in [DecodedKeys::new([id.public()]), DecodedKeys::default()] {
            let v = verify(&bytes, &session, (&keys, &id.public()), &|| "x".to_owned()).unwrap();
            assert!(v.proof.verify(&id.public(), &session, Kind::Refusal, &context));
            assert!(!v.proof.verify(&id.public(), &session, Kind::Unmask, &context));
            assert!(!v.proof.verify(&id.public(), &session, Kind::Refusal, &session));
        }
    }

    #[test]
    fn limits_fit_the_largest_honest_messages() {
        let n = crate::limits::MAX_SITES;
        let proof = 96;
        assert!(n * (2 + 64 + KEY_BYTES + 110 + proof + 10) + 64 + OVERHEAD <= Kind::Directory.body_limit());
        assert!(n * (2 + proof) + 64 + OVERHEAD <= Kind::Survivors.body_limit());
        assert!(n * (2 + 2 + proof) + 64 + OVERHEAD <= Kind::Certificate.body_limit());
        assert!(n * 34 + 64 + OVERHEAD <= Kind::ConsistencyCheck.body_limit());
        let slots = usize::from(crate::limits::MAX_SLOTS);
        let boxes = n * (2 + 8 + 16 + 32 * slots);
        // Of sites whose numbers are all even, one encapsulates to everybody.
        let ciphertexts = n * (2 + CIPHERTEXT_BYTES);
        assert!(ciphertexts + 64 + OVERHEAD <= Kind::AcceptDirectory.body_limit());
        assert!(n * proof + ciphertexts + 64 + OVERHEAD <= Kind::DirectoryCertificate.body_limit());
        assert!(boxes + 32 * slots + 64 + OVERHEAD <= Kind::ShareKeys.body_limit());
        assert!(boxes + n * (8 + 32 * slots) + 64 + OVERHEAD <= Kind::DeliverShares.body_limit());
    }
}
