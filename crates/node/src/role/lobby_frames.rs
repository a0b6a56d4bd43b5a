//! The frames of the lobby. Their kinds are unknown in a run, and a run's are unknown here ([JOI-7]).

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use veilsum_proto::{
    Rule, codec,
    identity::{Identity, PublicKey, Signature},
    joining::{Nonce, Role, Token},
    limits::MAX_ROSTER,
    message,
    plan::SignedTerms,
    roster::SignedRoster,
    suite::{self, Hash, VERSION},
};

use crate::{
    carrier::{HEADER_LEN, HeaderCheck},
    documents::{MAX_COLUMNS_FILE, PlanAnswer},
    egress::Egress,
};

/// Bytes of a body that somebody outside may send: three names, two hashes and a signature.
const MAX_OUTSIDE: usize = 1 << 10;
/// Bytes of a body with a plan: its method part has 1 MiB at most.
const MAX_PLAN: usize = 2 << 20;
const SIGNATURE: usize = 64;

/// A message of the lobby.
pub(super) trait Message: Serialize + DeserializeOwned {
    /// Its number on the wire.
    const KIND: u16;
    /// Bytes of its body at most.
    const LIMIT: usize;
}

macro_rules! messages {
    ($($kind:literal, $limit:expr => $name:ident $({ $($field:ident: $type:ty),* })?;)*) => {
        $(
            $(
                #[derive(Serialize, Deserialize)]
                pub(super) struct $name { $(pub(super) $field: $type),* }
            )?
            impl Message for $name {
                const KIND: u16 = $kind;
                const LIMIT: usize = $limit;
            }
        )*
        /// All kinds, each with the bytes of its body at most.
        const ALL: &[(u16, usize)] = &[$(($kind, $limit)),*];
    };
}

// Those without fields here are documents.
messages! {
    // Joiner: here is my token; this is who I want to be; and I have drawn a number.
    128, MAX_OUTSIDE => Knock { token: Token, party: String, role: Role, address: String, commitment: Hash };
    // Coordinator: mine is this.
    129, MAX_OUTSIDE => Answer { nonce: Nonce };
    // Joiner: mine was this.
    130, MAX_OUTSIDE => Shown { nonce: Nonce };
    131, MAX_ROSTER => SignedRoster;
    132, MAX_PLAN => SignedTerms;
    // Coordinator: no.
    133, MAX_OUTSIDE => TurnedAway { why: String };
    // Joiner: roster and plan are on my disk.
    134, MAX_OUTSIDE => Received { has: [Hash; 2] };
    // Coordinator: your number is on my disk, so the operators can compare.
    135, MAX_OUTSIDE => Noted {};
    // Member: I am here, this is what I have, and I have done with these runs. The number is the largest of a run that it knows, and the
    // rule what somebody broke in the last of these runs, for which this member left it.
    136, MAX_OUTSIDE => StandBy { has: [Hash; 2], done: Vec<Hash>, number: u64, broken: Option<Rule> };
    // Member: what I say to this plan, with this roster.
    137, MAX_OUTSIDE => Stands { to: [Hash; 2], answer: PlanAnswer };
    // Coordinator: this run begins, or goes on; the number is for people.
    138, MAX_OUTSIDE => Begin { number: u64, run: Hash, plan: Hash };
    // Coordinator: this is what our columns are.
    139, MAX_COLUMNS_FILE + (1 << 10) => ColumnsText { text: String };
    // Coordinator: this run begins without you.
    140, MAX_OUTSIDE => Without { number: u64 };
}

/// What a signature is bound to beside its message: both ends.
pub(super) fn session(coordinator: &PublicKey, joiner: &PublicKey) -> Hash {
    suite::hash("lobby", &[&coordinator.0, &joiner.0])
}

const LABEL: &str = "lobby frame";

/// A signed frame.
pub(super) fn frame<T: Message>(identity: &Identity, session: &Hash, message: &T) -> Egress {
    let body = codec::encode(message);
    let signature = identity.sign(LABEL, &[&session.0, &T::KIND.to_le_bytes(), &body]);
    let length = (body.len() + SIGNATURE) as u32;
    let parts =
        [&VERSION.to_le_bytes()[..], &T::KIND.to_le_bytes(), &length.to_le_bytes(), &body, &signature.to_bytes()];
    Egress::of_the_lobby(parts.concat())
}

/// The kind of a frame that has come.
pub(super) fn kind_of(bytes: &[u8]) -> Option<u16> {
    Some(u16::from_le_bytes([*bytes.get(2)?, *bytes.get(3)?]))
}

/// The message in a frame, which `key` has signed.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub(super) fn open<T: Message>(bytes: &[u8], session: &Hash, key: &PublicKey) -> Result<T, String> {
    let odd = || "it sent something out of order".to_owned();
    let (_, body) = bytes.split_first_chunk::<HEADER_LEN>().ok_or_else(odd)?;
    if kind_of(bytes) != Some(T::KIND) {
        return Err(odd());
    }
    let (message, signature) = body.split_last_chunk::<SIGNATURE>().ok_or_else(odd)?;
    if !key.verify(LABEL, &[&session.0, &T::KIND.to_le_bytes(), message], &Signature::from_bytes(signature)) {
        return Err("it sent something that its key did not sign".into());
    }
    codec::decode("message of the lobby", message, T::LIMIT).map_err(|e| e.to_string())
}

/// Whether a frame is one of the lobby's, by its kind alone.
pub(super) fn is_one(bytes: &[u8]) -> bool {
    kind_of(bytes).is_some_and(|kind| kind >= Knock::KIND)
}

/// What a member or somebody who joins may send: small frames.
const OUTSIDE: [u16; 5] = [Knock::KIND, Shown::KIND, Received::KIND, StandBy::KIND, Stands::KIND];

/// What the coordinator lets in.
pub(super) const FROM_OUTSIDE: HeaderCheck = |header| check(header, true);

/// What the others let in.
pub(super) const FROM_INSIDE: HeaderCheck = |header| check(header, false);

fn check(header: &[u8; HEADER_LEN], outside: bool) -> Result<usize, String> {
    let [_, _, k, l, length @ ..] = *header;
    let (kind, length) = (u16::from_le_bytes([k, l]), u32::from_le_bytes(length) as usize);
    message::check_version(header).map_err(|e| e.to_string())?;
    match ALL.iter().find(|(known, _)| *known == kind && OUTSIDE.contains(known) == outside) {
        Some((_, limit)) if length <= *limit => Ok(length),
        Some((_, limit)) => Err(format!("a message of kind {kind} with {length} bytes, at most {limit} are allowed")),
        None => Err(format!("message type {kind} has no business in the lobby")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use veilsum_proto::message::Kind;

    use super::*;

    /// [JOI-7]: nothing of a run can be said in the lobby, and nothing of the lobby in a run.
    #[test]
    fn lobby_and_run_do_not_know_each_others_frames() {
        let header = |kind: u16, length: u32| -> [u8; HEADER_LEN] {
            [&VERSION.to_le_bytes()[..], &kind.to_le_bytes(), &length.to_le_bytes()].concat().try_into().unwrap()
        };
        for kind in Kind::ALL {
            assert!(
                FROM_OUTSIDE(&header(*kind as u16, 64)).is_err() && FROM_INSIDE(&header(*kind as u16, 64)).is_err()
            );
        }
        for kind in 128..=139 {
            assert!(message::parse_header(&header(kind, 64)).is_err(), "{kind}");
            let outside = [128, 130, 134, 136, 137].contains(&kind);
            assert_eq!(
                (FROM_OUTSIDE(&header(kind, 64)).is_ok(), FROM_INSIDE(&header(kind, 64)).is_ok()),
                (outside, !outside)
            );
            assert!(FROM_OUTSIDE(&header(kind, 1025)).is_err(), "small frames only");
        }
    }

    /// [JOI-7].
    #[test]
    fn a_frame_is_its_signers_and_of_its_session() {
        let (a, b) = (Identity::from_seed(&[1; 32]), Identity::from_seed(&[2; 32]));
        let here = session(&a.public(), &b.public());
        let sent = frame(&b, &here, &Shown { nonce: Nonce([5; 32]) });
        let bytes = sent.bytes();
        assert_eq!(FROM_OUTSIDE(bytes[..HEADER_LEN].try_into().unwrap()), Ok(bytes.len() - HEADER_LEN));
        assert!(open::<Shown>(bytes, &here, &b.public()).is_ok_and(|shown| shown.nonce == Nonce([5; 32])));
        assert!(open::<Shown>(bytes, &here, &a.public()).is_err());
        assert!(open::<Answer>(bytes, &here, &b.public()).is_err());
        assert!(open::<Shown>(bytes, &session(&b.public(), &a.public()), &b.public()).is_err());
        for at in 0..bytes.len() {
            assert!(open::<Shown>(&bytes[..at], &here, &b.public()).is_err());
        }
    }

    proptest! {
        /// [JOI-7]: what a stranger signs need not be a message.
        #[test]
        fn no_signed_bytes_make_opening_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let stranger = Identity::from_seed(&[2; 32]);
            let here = session(&Identity::from_seed(&[1; 32]).public(), &stranger.public());
            let signature = stranger.sign(LABEL, &[&here.0, &Knock::KIND.to_le_bytes(), &body]);
            let length = ((body.len() + SIGNATURE) as u32).to_le_bytes();
            let parts = [&VERSION.to_le_bytes()[..], &Knock::KIND.to_le_bytes(), &length, &body, &signature.to_bytes()];
            // The signature holds, so what is refused is refused by the decoder.
            if let Err(why) = open::<Knock>(&parts.concat(), &here, &stranger.public()) {
                let refused_late = !why.contains("did not sign");
                prop_assert!(refused_late, "{why}");
            }
        }
    }
}
