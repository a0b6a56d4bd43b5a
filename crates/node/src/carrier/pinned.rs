//! Who is at the other end: Ed25519 keys on a roster in place of certificates (RFC 7250, RFC 8410).
//!
//! A party's identity is 32 bytes. In the handshake they travel as a SubjectPublicKeyInfo, which for Ed25519 is a
//! fixed prefix and the key, so there is nothing to parse: 44 bytes are equal to what we expect, or they are refused.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error as TlsError, PeerIncompatible, SignatureScheme,
    client::{
        AlwaysResolvesClientRawPublicKeys, Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{
        CryptoProvider, ring,
        tls13::{Hkdf, OkmBlock},
        verify_tls13_signature_with_raw_key,
    },
    server::{
        AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    sign::CertifiedKey,
};
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use zeroize::Zeroizing;

use super::{ALPN, CarrierError, PeerKey, Result, listener::Door};

/// DER before an Ed25519 public key: SEQUENCE { SEQUENCE { id-Ed25519 }, BIT STRING } (RFC 8410, section 4).
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// DER before an Ed25519 seed: PKCS#8 version 1, which leaves out the public key (RFC 8410, section 7). The TLS library
/// computes the public key from the seed, so the two can't disagree.
const PKCS8_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// The name handed to the TLS library, which wants one. It is not sent (no SNI) and nothing is checked against it.
pub(super) const UNUSED_NAME: &str = "veilsum";

/// This party's key pair, ready for handshakes. It is neither shown nor copied.
///
/// The seed is not kept, and our own encoding of it is wiped. The library's expanded form of the key lives on the heap
/// until the last connection configuration is dropped and is *not* wiped then: the library offers no way to.
pub struct Credentials {
    certified: Arc<CertifiedKey>,
    public: PeerKey,
    /// For [`Credentials::afresh`].
    afresh: OkmBlock,
}

/// What the TLS library derives keys with: HKDF and HMAC with SHA-256.
fn hkdf() -> &'static dyn Hkdf {
    let suite = ring::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256;
    suite.tls13().map_or_else(|| unreachable!("it is one of TLS 1.3"), |suite| suite.hkdf_provider)
}

impl Credentials {
    /// From the 32 secret bytes that an Ed25519 key pair is derived from.
    pub fn from_seed(seed: &[u8; 32]) -> Result<Self> {
        let mut der = Zeroizing::new([0u8; 48]);
        der[..16].copy_from_slice(&PKCS8_PREFIX);
        der[16..].copy_from_slice(seed);
        let key = ring::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(der.as_slice())).map_err(CarrierError::setup)?;
        let spki = key.public_key().ok_or_else(|| CarrierError::setup("the signing key shows no public key"))?;
        let spki = spki.into_owned();
        let public = peer_key(&spki).map_err(CarrierError::setup)?;
        // With raw public keys the "chain" is the one SubjectPublicKeyInfo.
        let certified = Arc::new(CertifiedKey::new(vec![CertificateDer::from(spki.to_vec())], key));
        let afresh = hkdf().extract_from_secret(None, seed).expand_block(&[b"veilsum stateless reset"]);
        Ok(Self { certified, public, afresh })
    }

    /// HMAC under a key that every process of this party derives from its secret: what one process promised, another after it can
    /// keep.
    pub(super) fn afresh(&self) -> impl Fn(&[u8]) -> Vec<u8> + Send + Sync + 'static {
        let key = self.afresh.clone();
        move |data| hkdf().hmac_sign(&key, data).as_ref().to_vec()
    }

    /// One who claims `public` without its secret half, as an attacker would.
    #[cfg(test)]
    pub(super) fn impostor(seed: &[u8; 32], public: PeerKey) -> Self {
        let own = Self::from_seed(seed).expect("a seed makes a key");
        let claimed = CertificateDer::from([SPKI_PREFIX.as_slice(), &public].concat());
        let certified = Arc::new(CertifiedKey::new(vec![claimed], own.certified.key.clone()));
        Self { certified, public, afresh: own.afresh.clone() }
    }

    /// The public half: what other parties put on their rosters.
    pub fn public_key(&self) -> PeerKey {
        self.public
    }
}

/// The 32 bytes within an Ed25519 SubjectPublicKeyInfo, where it is exactly that.
pub(super) fn peer_key(spki: &[u8]) -> Result<PeerKey, TlsError> {
    spki.strip_prefix(SPKI_PREFIX.as_slice())
        .and_then(|key| PeerKey::try_from(key).ok())
        .ok_or(TlsError::InvalidCertificate(CertificateError::BadEncoding))
}

/// A dialler's TLS settings, and the verifier to ask afterwards whether the server's key was the wrong one.
pub(super) fn client_config(own: &Credentials, expected: &PeerKey) -> Result<(rustls::ClientConfig, Arc<Pinned>)> {
    let expected = *expected;
    let verifier = Pinned::new(move |key| *key == expected);
    let mut config = rustls::ClientConfig::builder_with_provider(verifier.provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(CarrierError::setup)?
        .dangerous() // Not so here: instead of a certificate's chain, the key itself is compared.
        .with_custom_certificate_verifier(verifier.clone())
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(own.certified.clone())));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.enable_sni = false;
    config.enable_early_data = false;
    // Every connection proves both keys anew: a ticket would let a key in that has left the roster.
    config.resumption = Resumption::disabled();
    Ok((config, verifier))
}

/// A listener's TLS settings. Which keys come in, `door` says.
pub(super) fn server_config(credentials: &Credentials, door: Arc<Door>) -> Result<rustls::ServerConfig> {
    let verifier = Pinned::new(move |key| door.lets_in(key));
    let mut config = rustls::ServerConfig::builder_with_provider(verifier.provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(CarrierError::setup)?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(credentials.certified.clone())));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.max_early_data_size = 0;
    Ok(config)
}

type Proof = Result<HandshakeSignatureValid, TlsError>;

/// What both verifiers say of signatures: TLS 1.3 alone, by the raw Ed25519 key that was shown.
macro_rules! proofs_of_possession {
    () => {
        fn verify_tls12_signature(&self, _: &[u8], _: &CertificateDer<'_>, _: &DigitallySignedStruct) -> Proof {
            Err(TlsError::PeerIncompatible(PeerIncompatible::Tls12NotOffered))
        }

        fn verify_tls13_signature(&self, said: &[u8], by: &CertificateDer<'_>, dss: &DigitallySignedStruct) -> Proof {
            // The proof of possession: a signature over the handshake so far.
            if dss.scheme != SignatureScheme::ED25519 {
                return Err(TlsError::PeerIncompatible(PeerIncompatible::NoSignatureSchemesInCommon));
            }
            let spki = SubjectPublicKeyInfoDer::from(by.as_ref());
            verify_tls13_signature_with_raw_key(said, &spki, dss, &self.provider.signature_verification_algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

/// Accepts the keys that it is told to.
pub(super) struct Pinned {
    allowed: Box<dyn Fn(&PeerKey) -> bool + Send + Sync>,
    provider: Arc<CryptoProvider>,
    wrong: AtomicBool,
}

impl Pinned {
    fn new(allowed: impl Fn(&PeerKey) -> bool + Send + Sync + 'static) -> Arc<Pinned> {
        // *ring* with one key exchange. Its three TLS 1.3 ciphers stay: QUIC's first packets need AES-128-GCM.
        let provider = CryptoProvider { kx_groups: vec![ring::kx_group::X25519], ..ring::default_provider() };
        Arc::new(Pinned { allowed: Box::new(allowed), provider: Arc::new(provider), wrong: AtomicBool::new(false) })
    }

    /// Whether the other end showed another key.
    pub(super) fn saw_wrong_key(&self) -> bool {
        self.wrong.load(Ordering::Acquire)
    }

    fn accept(&self, end_entity: &CertificateDer<'_>, intermediates: &[CertificateDer<'_>]) -> Result<(), TlsError> {
        // It sent nothing beside its key.
        let alone = intermediates.is_empty().then(|| peer_key(end_entity));
        let key = alone.unwrap_or(Err(TlsError::InvalidCertificate(CertificateError::BadEncoding)));
        if key.as_ref().is_ok_and(|key| (self.allowed)(key)) {
            return Ok(());
        }
        self.wrong.store(true, Ordering::Release);
        key.and(Err(TlsError::InvalidCertificate(CertificateError::ApplicationVerificationFailure)))
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        self.accept(end_entity, intermediates).map(|()| ServerCertVerified::assertion())
    }

    proofs_of_possession!();
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end: &CertificateDer<'_>,
        more: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, TlsError> {
        self.accept(end, more).map(|()| ClientCertVerified::assertion())
    }

    proofs_of_possession!();
}

// The library wants verifiers to be printable; this shows no roster.
impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pinned")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bare_ed25519_key_is_read() {
        let good = [SPKI_PREFIX.as_slice(), &[7; 32]].concat();
        assert_eq!(peer_key(&good), Ok([7; 32]));
        for bad in [&good[..43], &[good.as_slice(), &[0]].concat(), &good[12..], &[]] {
            assert!(peer_key(bad).is_err());
        }
        let mut x25519 = good.clone();
        x25519[8] = 0x6e;
        assert!(peer_key(&x25519).is_err());
    }
}
