//! No secret decides a branch or an address in the code that handles it (after Langley's ctgrind).
//!
//! Run under valgrind's memcheck, which follows every bit that has no value and reports a jump or an address that depends
//! on one. Here secrets are said to have no value, so a report is a leak. Each step is counted by itself; two planted
//! leaks must be reported, or the whole check sees nothing. It says nothing about instructions whose time depends on their
//! operands, division above all, nor about other machines than the one it was compiled for.

use std::{convert::Infallible, hint::black_box, process::ExitCode};

use chacha20::ChaCha20Rng;
use rand_core::{SeedableRng, TryCryptoRng, TryRng};
use veilsum_proto::{
    identity::Identity,
    suite::{self, Hash},
    vectors_api as api,
};

/// Asks valgrind: a sequence of instructions that does nothing elsewhere (valgrind.h, "amd64").
#[cfg(target_arch = "x86_64")]
fn ask(request: u64, address: u64, length: u64) -> u64 {
    let arguments: [u64; 6] = [request, address, length, 0, 0, 0];
    let mut answer = 0u64;
    unsafe {
        std::arch::asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            in("rax") arguments.as_ptr(), inout("rdx") answer,
        );
    }
    answer
}

#[cfg(not(target_arch = "x86_64"))]
fn ask(_: u64, _: u64, _: u64) -> u64 {
    0
}

const RUNNING: u64 = 0x1001;
const REPORTS: u64 = 0x1201;
const MAKE_UNDEFINED: u64 = 0x4d43_0001;
const MAKE_DEFINED: u64 = 0x4d43_0002;

/// From here on nobody may look at these bytes.
fn secret<T: ?Sized>(value: &mut T) {
    ask(MAKE_UNDEFINED, (&raw mut *value).cast::<u8>() as u64, size_of_val(value) as u64);
}

/// From here on they are public.
fn public<T: ?Sized>(value: &mut T) {
    ask(MAKE_DEFINED, (&raw mut *value).cast::<u8>() as u64, size_of_val(value) as u64);
}

/// Randomness that is secret as soon as it is given out.
struct Hidden(ChaCha20Rng);

impl TryRng for Hidden {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.0.try_next_u32().inspect(|n| secret(&mut { *n }))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0.try_next_u64().inspect(|n| secret(&mut { *n }))
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        self.0.try_fill_bytes(out)?;
        secret(out);
        Ok(())
    }
}

impl TryCryptoRng for Hidden {}

struct Check {
    wrong: u32,
}

impl Check {
    /// One step: how many reports it may give. `Some(why)` where a report is right.
    fn step(&mut self, name: &str, decision: Option<&str>, f: impl FnOnce()) {
        let before = ask(REPORTS, 0, 0);
        f();
        let reports = ask(REPORTS, 0, 0) - before;
        let right = if decision.is_some() { reports > 0 } else { reports == 0 };
        self.wrong += u32::from(!right);
        let verdict = match (right, decision) {
            (true, None) => "constant".to_owned(),
            (true, Some(why)) => format!("{reports} reports, as there must be: {why}"),
            (false, None) => format!("LEAK: {reports} reports"),
            (false, Some(_)) => "NOTHING SEEN where something is".to_owned(),
        };
        println!("{name}: {verdict}");
    }
}

fn used<T>(value: T) {
    black_box(value);
}

/// What stands in for a table that is looked up by a secret.
static TABLE: [u8; 256] = [7; 256];

fn planted(check: &mut Check) {
    let mut key = [3u8; 32];
    secret(&mut key);
    check.step("a planted branch on a secret", Some("planted"), || {
        if black_box(key)[0] & 1 == 1 {
            black_box(1);
        }
    });
    check.step("a planted look-up by a secret", Some("planted"), || {
        black_box(black_box(&TABLE)[usize::from(black_box(key)[1])]);
    });
    check.step("a planted comparison that stops at the first difference", Some("planted"), || {
        for (a, b) in black_box(key).iter().zip(&black_box([3u8; 32])) {
            if black_box(a) != black_box(b) {
                break;
            }
        }
    });
}

fn core(check: &mut Check) {
    let members: Vec<u16> = (0..9).collect();
    let context = suite::hash("context", &[]);
    let parts: [&[u8]; 2] = [&context.0, b"part"];
    let mut rng = Hidden(ChaCha20Rng::seed_from_u64(1));
    let mut key = [5u8; 32];
    let mut theirs = api::public_key(&[9; 32]);
    secret(&mut key);

    check.step("derive (HKDF extract and expand)", None, || used(api::derive(&key, "pair", &parts)));
    check.step("expand (HKDF)", None, || used(api::expand(&key, "round seed", &parts)));
    check.step("a mask's expansion and application", None, || {
        let mut words: Vec<u64> = (0..5_000).collect();
        secret(&mut words[..]);
        api::mask(&mut words, &key, None);
        api::mask(&mut words, &key, Some((1, 2)));
        api::mask(&mut words, &key, Some((2, 1)));
        api::unmask(&mut words, &key, Some((2, 1)));
        black_box(&words);
    });
    check.step("random scalars, Shamir's split", None, || used(api::dealt(5, &members, &mut rng)));
    check.step("Shamir's recovery", None, || used(api::dealt_and_recovered(5, &members, &mut rng)));
    check.step("a self-mask key from its seed", None, || {
        black_box(api::fresh_self_mask_key(&mut rng, &context));
    });
    check.step("the public key of a private one (X25519)", None, || used(api::public_key(&key)));
    check.step("key agreement (X25519) and its derivation", None, || {
        black_box(api::agreed(&key, &theirs, "seal", &parts));
    });
    theirs[31] |= 0x80;
    check.step("key agreement with a key that is not canonical", None, || {
        black_box(api::agreed(&key, &theirs, "seal", &parts));
    });
    check.step("the commitment to a seed", None, || used(api::seed_commitment(&context, 1, 2, &key)));
    let mut sealed = Vec::new();
    check.step("sealing (AES-256-GCM)", None, || {
        let mut plain = vec![8u8; 320];
        secret(&mut plain[..]);
        sealed = api::seal(&key, &context, &plain);
    });
    // A box leaves; whoever gets it learns whether it opens, and nothing else of it decides anything.
    public(&mut sealed[..]);
    check.step("opening a box", Some("that it opens is told by what follows"), || {
        black_box(api::open(&key, &context, &sealed).is_ok());
    });
    let mut wrong: Hash = context;
    wrong.0[0] ^= 1;
    check.step("opening a box that does not open", Some("that it does not is told by the complaint"), || {
        black_box(api::open(&key, &wrong, &sealed).is_ok());
    });
    check.step("an identity's key and signature (Ed25519)", None, || {
        let identity = Identity::from_seed(&key);
        black_box(identity.sign("label", &[b"message"]));
    });
    check.step("whether bytes are a share", Some("a share that is none is refused"), || used(api::is_share(&key)));
}

fn main() -> ExitCode {
    if ask(RUNNING, 0, 0) == 0 {
        eprintln!("not under valgrind: nothing is seen here; see secrets/check");
        return ExitCode::from(2);
    }
    let mut check = Check { wrong: 0 };
    planted(&mut check);
    core(&mut check);
    println!("{} steps are not as they must be", check.wrong);
    if check.wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
