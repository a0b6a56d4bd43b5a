//! Joining by one line (spec section 18): what an invitation says, and the few digits by which two people notice somebody
//! between them. Everything here is bytes in and bytes out; who keeps what, and for how long, is the application's.

use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::{
    identity::{Identity, PublicKey, Signature},
    limits::MAX_ADDRESS,
    roster::check_name,
    suite::{self, Hash},
};

/// Bytes of a token: nobody guesses 128 bits.
pub const TOKEN: usize = 16;
/// Bytes of an invitation's checksum: one damaged line in four thousand million goes unnoticed here, and its token is nobody's.
const CHECKSUM: usize = 4;
/// Label under which a [`Reply`] is signed.
const REPLY: &str = "joining reply";
/// Codes that there are: 12 decimal digits.
const CODES: u128 = 1_000_000_000_000;

/// What a party is invited to be. Somebody who coordinates invites, and is not invited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A data owner.
    Site = 0,
    /// Who counts rows.
    Intermediary = 1,
}

impl Role {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Role::Site => "site",
            Role::Intermediary => "intermediary",
        }
    }
}

/// The secret of an invitation: whoever holds it may knock once. Never printed but within its line; wiped on drop.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop, Serialize, Deserialize)]
pub struct Token([u8; TOKEN]);

impl Token {
    /// A fresh one ([JOI-1]).
    pub fn generate(rng: &mut impl CryptoRng) -> Token {
        let mut token = Token([0; TOKEN]);
        rng.fill_bytes(&mut token.0);
        token
    }

    /// What the coordinator keeps of it ([JOI-1]).
    pub fn hash(&self) -> Hash {
        suite::hash("invitation", &[&self.0])
    }
}

/// One party's invitation. It has no `Debug`, because of its token.
#[derive(Clone, PartialEq, Eq)]
pub struct Invitation {
    /// Name of the federation.
    pub federation: String,
    /// Name that the party will have.
    pub party: String,
    /// What it will be.
    pub role: Role,
    /// `host:port` where the coordinator lets knock.
    pub address: String,
    /// The coordinator's key: the only one that is spoken to.
    pub coordinator: PublicKey,
    /// Seconds since 1970 from which on it is void; the coordinator's clock decides.
    pub expires: u64,
    /// The right to knock.
    pub token: Token,
}

impl Invitation {
    /// Its bytes with their checksum ([JOI-2]).
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = [&self.coordinator.0[..], &self.token.0, &self.expires.to_le_bytes()].concat();
        out.push(self.role as u8);
        for text in [&self.federation, &self.party] {
            out.push(text.len() as u8);
            out.extend_from_slice(text.as_bytes());
        }
        out.extend_from_slice(self.address.as_bytes());
        with_checksum(out)
    }

    /// Reads what [`Invitation::to_bytes`] wrote ([JOI-2]).
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Invitation, String> {
        let all = without_checksum(bytes)
            .ok_or_else(|| "the invitation is damaged: its checksum does not fit what it says".to_owned())?;
        Self::read(all).ok_or_else(|| "the invitation says something that no coordinator writes".to_owned())
    }

    fn read(bytes: &[u8]) -> Option<Invitation> {
        let (key, rest) = bytes.split_first_chunk::<32>()?;
        let (token, rest) = rest.split_first_chunk::<TOKEN>()?;
        let (expires, rest) = rest.split_first_chunk::<8>()?;
        let (role, rest) = rest.split_first()?;
        let role = match role {
            0 => Role::Site,
            1 => Role::Intermediary,
            _ => return None,
        };
        let (federation, rest) = name(rest)?;
        let (party, address) = name(rest)?;
        let address = std::str::from_utf8(address).ok()?.to_owned();
        let coordinator = PublicKey(*key);
        let sound = !address.is_empty() && address.len() <= MAX_ADDRESS && coordinator.is_usable();
        let (expires, token) = (u64::from_le_bytes(*expires), Token(*token));
        sound.then_some(Invitation { federation, party, role, address, coordinator, expires, token })
    }
}

/// A name behind its length, and what follows.
fn name(from: &[u8]) -> Option<(String, &[u8])> {
    let (length, rest) = from.split_first()?;
    let (name, rest) = rest.split_at_checked(usize::from(*length))?;
    let name = std::str::from_utf8(name).ok().filter(|name| check_name(name).is_ok())?;
    Some((name.to_owned(), rest))
}

fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend_from_slice(&checksum(&bytes));
    bytes
}

fn without_checksum(bytes: &[u8]) -> Option<&[u8]> {
    let (all, sum) = bytes.split_last_chunk::<CHECKSUM>()?;
    (checksum(all) == *sum).then_some(all)
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    let [a, b, c, d, ..] = suite::hash("invitation line", &[bytes]).0;
    [a, b, c, d]
}

/// What one end of the comparison drew.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Nonce(#[serde(with = "crate::codec::fixed")] pub [u8; 32]);

/// Who joins what, as both ends see it: everything that the spoken digits stand for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Meeting {
    /// The coordinator's key.
    pub coordinator: PublicKey,
    /// The key that wants to join.
    pub joiner: PublicKey,
    /// The hash of the token.
    pub invitation: Hash,
    /// Under which name.
    pub party: String,
    /// As what.
    pub role: Role,
    /// Where it will listen; empty for a site.
    pub address: String,
}

impl Meeting {
    fn hash(&self) -> Hash {
        let (role, party, address) = ([self.role as u8], self.party.as_bytes(), self.address.as_bytes());
        let parts = [&self.coordinator.0[..], &self.joiner.0, &self.invitation.0, party, &role, address];
        suite::hash("joining", &parts)
    }

    /// What the joiner sends in place of its nonce, before it has seen the coordinator's ([JOI-4]).
    pub fn commitment(&self, joiners: &Nonce) -> Hash {
        suite::hash("joining commitment", &[&self.hash().0, &joiners.0])
    }

    /// The digits that two people compare ([JOI-5]). Whoever stands between the two ends has the same at both with a probability of
    /// at most 10^-12 (2^-39.8), whatever it computes, because it has to fix its own nonces before it can know either end's.
    pub fn code(&self, joiners: &Nonce, coordinators: &Nonce) -> Code {
        let [low @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] =
            suite::hash("joining code", &[&self.hash().0, &joiners.0, &coordinators.0]).0;
        // 2^128 is so much larger that no code is likelier than another by more than 2^-88.
        Code((u128::from_le_bytes(low) % CODES) as u64)
    }
}

/// What a party sends back where it does not reach the coordinator: everything that a knock says ([JOI-8]). It has no `Debug`, because of
/// its token.
#[derive(Clone, PartialEq, Eq)]
pub struct Reply {
    /// The right to knock.
    pub token: Token,
    /// The key that wants to join.
    pub key: PublicKey,
    /// What it drew.
    pub nonce: Nonce,
    /// Where it will listen; empty for a site.
    pub address: String,
    signature: Signature,
}

impl Reply {
    /// The answer of `identity` to an invitation.
    pub fn new(identity: &Identity, invitation: &Invitation, address: &str, nonce: Nonce) -> Reply {
        let (token, key, address) = (invitation.token.clone(), identity.public(), address.to_owned());
        let mut reply = Reply { token, key, nonce, address, signature: Signature::from_bytes(&[0; 64]) };
        let meeting = reply.meeting(invitation.coordinator, &invitation.party, invitation.role);
        reply.signature = identity.sign(REPLY, &[&meeting.hash().0, &nonce.0]);
        reply
    }

    /// What it says of who joins what.
    fn meeting(&self, coordinator: PublicKey, party: &str, role: Role) -> Meeting {
        let (invitation, party, address) = (self.token.hash(), party.to_owned(), self.address.clone());
        Meeting { coordinator, joiner: self.key, invitation, party, role, address }
    }

    /// Whether its own key signed it for this party of this coordinator.
    pub fn is_for(&self, coordinator: PublicKey, party: &str, role: Role) -> bool {
        let meeting = self.meeting(coordinator, party, role);
        self.key.is_usable() && self.key.verify(REPLY, &[&meeting.hash().0, &self.nonce.0], &self.signature)
    }

    /// Its bytes with their checksum ([JOI-8]).
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = [&self.token.0[..], &self.key.0, &self.nonce.0, &self.signature.to_bytes()].concat();
        out.extend_from_slice(self.address.as_bytes());
        with_checksum(out)
    }

    /// Reads what [`Reply::to_bytes`] wrote; nothing where they are other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Reply> {
        let (token, rest) = without_checksum(bytes)?.split_first_chunk::<TOKEN>()?;
        let (key, rest) = rest.split_first_chunk::<32>()?;
        let (nonce, rest) = rest.split_first_chunk::<32>()?;
        let (signature, address) = rest.split_first_chunk::<64>()?;
        let address = std::str::from_utf8(address).ok().filter(|address| address.len() <= MAX_ADDRESS)?.to_owned();
        let (token, key, signature) = (Token(*token), PublicKey(*key), Signature::from_bytes(signature));
        Some(Reply { token, key, nonce: Nonce(*nonce), address, signature })
    }
}

/// Twelve decimal digits, spoken in three groups of four.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code(u64);

impl Code {
    /// From digits as a person types them, with or without dashes and spaces between them.
    ///
    /// # Errors
    /// A sentence that says what is wrong with them.
    pub fn parse(text: &str) -> Result<Code, String> {
        let digits: String = text.chars().filter(|c| !"- ".contains(*c)).collect();
        if digits.len() != 12 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err("a code has 12 digits, as in 0123-4567-8901".into());
        }
        digits.parse().map(Code).map_err(|_| "a code has 12 digits".into())
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Code(n) = self;
        write!(f, "{:04}-{:04}-{:04}", n / 100_000_000, n / 10_000 % 10_000, n % 10_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identity;

    fn invitation() -> Invitation {
        Invitation {
            federation: "three-hospitals".into(),
            party: "hospital-a".into(),
            role: Role::Site,
            address: "hub.example.org:443".into(),
            coordinator: Identity::from_seed(&[1; 32]).public(),
            expires: 1_800_000_000,
            token: Token([7; TOKEN]),
        }
    }

    /// [JOI-8].
    #[test]
    fn joi_8_a_reply_is_one_partys_and_every_damage_is_seen() {
        let (identity, invitation) = (Identity::from_seed(&[2; 32]), invitation());
        let reply = Reply::new(&identity, &invitation, "counter.example.org:443", Nonce([3; 32]));
        let bytes = reply.to_bytes();
        let read = Reply::from_bytes(&bytes).unwrap();
        assert!(read == reply && read.is_for(invitation.coordinator, "hospital-a", Role::Site));
        assert!(!read.is_for(invitation.coordinator, "hospital-b", Role::Site));
        assert!(!read.is_for(invitation.coordinator, "hospital-a", Role::Intermediary));
        assert!(!read.is_for(identity.public(), "hospital-a", Role::Site));
        let key = Identity::from_seed(&[9; 32]).public();
        for other in [Reply { key, ..reply.clone() }, Reply { nonce: Nonce([4; 32]), ..reply.clone() }] {
            assert!(!other.is_for(invitation.coordinator, "hospital-a", Role::Site));
        }
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 0x20;
            assert!(Reply::from_bytes(&bad).is_none() && Reply::from_bytes(&bytes[..at]).is_none(), "{at}");
        }
    }
}
