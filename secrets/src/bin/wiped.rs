//! No block of memory is given back with a secret in it.
//!
//! A site's randomness is known here, so a first run tells every secret of its decks: key pairs, seeds, polynomials,
//! shares, pair secrets. A second run does the same with an allocator that looks through every block as it is freed. What
//! is on the stack or in registers is not looked at.

#[path = "../../../crates/proto/tests/hostile_kit/mod.rs"]
mod hostile_kit;
#[path = "../../../crates/proto/tests/mutated_kit/mod.rs"]
mod mutated_kit;
#[path = "../../../crates/proto/tests/pitfall_kit/mod.rs"]
mod pitfall_kit;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    collections::BTreeMap,
    convert::Infallible,
    hint::black_box,
    process::ExitCode,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use chacha20::ChaCha20Rng;
use curve25519_dalek::scalar::Scalar;
use mutated_kit::{ALL, Course, Told, answer, rng_of};
use pitfall_kit::Secrets;
use rand_core::{TryCryptoRng, TryRng};
use veilsum_proto::{
    journal::Record,
    site::{self, Site},
};

/// What is looked for, by the first eight bytes, and its name.
static LOOKED_FOR: OnceLock<BTreeMap<[u8; 8], ([u8; 32], &'static str)>> = OnceLock::new();
static ARMED: AtomicBool = AtomicBool::new(false);
static FOUND: AtomicUsize = AtomicUsize::new(0);

struct Looking;

// Every block is the system's; before it goes back its bytes are read, all of which the system gave us and, since blocks
// are handed out zeroed, all of which have a value.
unsafe impl GlobalAlloc for Looking {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if ARMED.load(Ordering::Relaxed) {
            look(unsafe { std::slice::from_raw_parts(block, layout.size()) });
        }
        unsafe { System.dealloc(block, layout) }
    }

    // `realloc` is the trait's own: a new block, a copy, and the old one freed. So growing counts as leaving behind.
}

#[global_allocator]
static ALLOCATOR: Looking = Looking;

fn look(block: &[u8]) {
    let Some(wanted) = LOOKED_FOR.get() else { return };
    let hit = block.windows(32).find_map(|w| {
        let (secret, name) = wanted.get(w.first_chunk::<8>()?)?;
        (secret == w).then_some(*name)
    });
    if let Some(name) = hit {
        FOUND.fetch_add(1, Ordering::Relaxed);
        ARMED.store(false, Ordering::Relaxed);
        eprintln!("freed with {name} in it: a block of {} bytes", block.len());
        if std::env::var_os("VEILSUM_WHERE").is_some() {
            eprintln!("{}", std::backtrace::Backtrace::force_capture());
        }
        ARMED.store(true, Ordering::Relaxed);
    }
}

/// Runs with the allocator looking; how many blocks it found.
fn found<T>(f: impl FnOnce() -> T) -> (T, usize) {
    let before = FOUND.load(Ordering::Relaxed);
    ARMED.store(true, Ordering::Relaxed);
    let value = f();
    ARMED.store(false, Ordering::Relaxed);
    (value, FOUND.load(Ordering::Relaxed) - before)
}

/// Randomness that is written down.
struct Noted {
    rng: ChaCha20Rng,
    given: Vec<Vec<u8>>,
    keep: bool,
}

impl TryRng for Noted {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.rng.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.rng.try_next_u64()
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        self.rng.try_fill_bytes(out)?;
        if self.keep {
            self.given.push(out.to_vec());
        }
        Ok(())
    }
}

impl TryCryptoRng for Noted {}

const ME: u16 = 1;
/// Rounds that are played; their shares leave, so they are no secrets any more.
const PLAYED: usize = 2;

/// The site's part of the run: what it keeps on disk goes out as bytes and comes back, as in the product.
fn play(course: &Course, rng: &mut Noted, records: &mut Vec<Record>) {
    let config = || course.kit.site(ME);
    let mut site = Site::new(config()).expect("a site");
    for told in &course.told[usize::from(ME)] {
        if let Told::Frame(bytes) = told {
            site.handle(site::Input::Message(bytes), rng).expect("an honest frame");
        }
        while let Some(output) = site.poll() {
            match output {
                site::Output::Persist(record) => {
                    let bytes = record.to_bytes();
                    records.push(Record::from_bytes(&bytes).expect("it reads back"));
                }
                site::Output::Rewrite(all) => *records = all,
                site::Output::Event(site::Event::Asked(asked)) => {
                    site.handle(answer(&course.kit, ME, &asked), rng).expect("an answer");
                }
                _ => {}
            }
        }
    }
    let back = records.iter().map(|r| Record::from_bytes(&r.to_bytes()).expect("it reads back"));
    drop(Site::restore(config(), back).expect("the journal restores the site"));
}

fn secrets(course: &Course) -> BTreeMap<[u8; 8], ([u8; 32], &'static str)> {
    let mut rng = Noted { rng: rng_of(course.seed, ME), given: Vec::new(), keep: true };
    let mut records = Vec::new();
    play(course, &mut rng, &mut records);
    let mut all: Vec<([u8; 32], &'static str)> = Vec::new();
    for bytes in &rng.given {
        match bytes.len() {
            32 => all.push((bytes[..].try_into().expect("32 bytes"), "a private key of the deck")),
            64 => {
                let wide = bytes[..].try_into().expect("64 bytes");
                all.push((
                    Scalar::from_bytes_mod_order_wide(wide).to_bytes(),
                    "a seed or a coefficient of its sharing",
                ));
                all.push((bytes[..32].try_into().expect("32 bytes"), "the randomness of a scalar"));
            }
            _ => {}
        }
    }
    let deck = Secrets::among(&records, 0);
    let others = || deck.members.iter().enumerate().filter(|(_, m)| **m != ME);
    all.extend(others().map(|(i, _)| (deck.pairs[i], "a pair secret")));
    all.extend(deck.seeds.iter().map(|s| (*s, "a self-mask seed")));
    // An opening says those of its slot aloud, to every site ([OPN-3]).
    all.retain(|(secret, _)| !deck.seeds[..PLAYED].contains(secret));
    all.extend(others().flat_map(|(i, _)| deck.held[i][PLAYED..].iter().map(|s| (*s, "a share of another's seed"))));
    assert!(all.len() > 20, "{} secrets are no deck", all.len());
    all.into_iter().map(|(s, name)| (*s.first_chunk().expect("eight bytes"), (s, name))).collect()
}

fn main() -> ExitCode {
    let course = Course::new(5, 8, 11, &[ALL, ALL], false);
    assert_eq!(course.totals.len(), PLAYED);
    let wanted = LOOKED_FOR.get_or_init(|| secrets(&course));
    // First the allocator itself: a planted secret that is dropped as it is, and one that a vector leaves as it grows.
    let (secret, name) = wanted.values().next().expect("a secret");
    let ((), dropped) = found(|| drop(black_box(Box::new(*secret))));
    let ((), grown) = found(|| {
        let mut v = Vec::with_capacity(1);
        v.push(*secret);
        v.push([0; 32]);
        black_box(&mut v).iter_mut().for_each(|s| s.fill(0));
    });
    if dropped != 1 || grown != 1 {
        eprintln!("the planted {name} was not found ({dropped}, {grown}): this check sees nothing");
        return ExitCode::from(2);
    }
    println!("(the two blocks above were planted)");
    let mut rng = Noted { rng: rng_of(course.seed, ME), given: Vec::new(), keep: false };
    let mut records = Vec::with_capacity(64);
    let ((), left) = found(|| play(&course, &mut rng, &mut records));
    let ((), after) = found(|| drop(records));
    println!("{} secrets looked for; {} blocks freed with one in it", wanted.len(), left + after);
    if left + after == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
