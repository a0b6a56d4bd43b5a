//! The fuzz targets without the fuzzer: every input of the corpus, and random changes of them; see CONTRIBUTING.md,
//! "Hostile input". `VEILSUM_FUZZ_RUNS=100` gives each target a hundred times as many.

use std::{
    collections::BTreeMap,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use chacha20::{ChaCha20Rng, rand_core::Rng, rand_core::SeedableRng};
use veilsum_testkit::targets::{self, Target};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus")
}

/// The inputs of one target, by name.
fn corpus(target: &Target) -> BTreeMap<String, Vec<u8>> {
    let folder = folder().join(target.name);
    let files = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let read = |path: PathBuf| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap());
    files.map(|f| read(f.unwrap().path())).collect()
}

fn feed(target: &Target, bytes: &[u8], what: &str) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.run)(bytes))) {
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        eprintln!("{} panics on {what}: {hex}", target.name);
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn every_input_of_the_corpus() {
    let mut size = 0;
    for target in &targets::ALL {
        let inputs = corpus(target);
        assert!(!inputs.is_empty(), "{} has no corpus", target.name);
        for (name, bytes) in &inputs {
            feed(target, bytes, name);
            size += bytes.len();
        }
        feed(target, &[], "nothing");
    }
    assert!(size < 400_000, "a corpus of {size} bytes is no small one any more");
    let folders = fs::read_dir(folder()).unwrap().count();
    assert_eq!(folders, targets::ALL.len(), "a folder without a target");
}

/// Some changes of an input, or a splice of two.
fn changed(rng: &mut ChaCha20Rng, inputs: &[&Vec<u8>]) -> Vec<u8> {
    let pick = |rng: &mut ChaCha20Rng, n: usize| rng.next_u64() as usize % n.max(1);
    let mut bytes = inputs[pick(rng, inputs.len())].clone();
    for _ in 0..=pick(rng, 6) {
        let at = pick(rng, bytes.len() + 1);
        match pick(rng, 8) {
            0 | 1 if at < bytes.len() => bytes[at] ^= 1 << pick(rng, 8),
            2 if at < bytes.len() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][pick(rng, 5)],
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(at..(at + pick(rng, 9)).min(bytes.len()))),
            5 => bytes.insert(at, rng.next_u64() as u8),
            6 => {
                let (other, from) = (inputs[pick(rng, inputs.len())], pick(rng, 64));
                let part: Vec<u8> = other.iter().skip(from).take(pick(rng, 80)).copied().collect();
                bytes.splice(at..at, part);
            }
            _ => {
                let n = [0, 1, u64::MAX, 1 << 31, 1 << 63, 0x7ff0_0000_0000_0000][pick(rng, 6)].to_le_bytes();
                let end = (at + [1, 2, 4, 8][pick(rng, 4)]).min(bytes.len());
                bytes[at..end].copy_from_slice(&n[8 - (end - at)..]);
            }
        }
    }
    bytes
}

#[test]
fn random_changes_of_the_corpus() {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).unwrap();
    let seed = std::env::var("VEILSUM_FUZZ_SEED").map_or(u64::from_le_bytes(seed), |s| s.parse().unwrap());
    println!("VEILSUM_FUZZ_SEED={seed}");
    let times: usize = std::env::var("VEILSUM_FUZZ_RUNS").map_or(1, |s| s.parse().unwrap());
    for (k, target) in targets::ALL.iter().enumerate() {
        let inputs = corpus(target);
        let inputs: Vec<&Vec<u8>> = inputs.values().collect();
        let mut rng = ChaCha20Rng::seed_from_u64(seed.wrapping_add(k as u64));
        for run in 0..times * target.quick {
            feed(target, &changed(&mut rng, &inputs), &format!("run {run} with VEILSUM_FUZZ_SEED={seed}"));
        }
    }
}

/// Every kind of message has an honest one in the corpus; a new kind needs one.
#[test]
fn every_kind_is_in_the_corpus() {
    let messages = corpus(&targets::ALL[1]);
    for kind in veilsum_proto::message::Kind::ALL {
        let name = format!("{kind:?}");
        assert!(messages.contains_key(&name), "no {name}: run the test that writes the corpus");
    }
}

/// Writes the honest part of the corpus anew: `cargo test --test product hostile_bytes -- --ignored`.
#[test]
#[ignore = "it changes files of the checkout"]
fn write_the_corpus() {
    for (target, name, bytes) in targets::honest::corpus() {
        let folder = folder().join(target);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), bytes).unwrap();
    }
}
