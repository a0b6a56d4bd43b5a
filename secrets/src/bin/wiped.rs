//! No block of memory is given back with a secret in it, and no block holds a secret of a slot that is closed.
//!
//! A site's randomness is known here, so a first run tells every secret of its decks: key pairs, seeds, polynomials,
//! shares, pair secrets, noise. A second run does the same with an allocator that looks through every block as it is freed,
//! and, each time the site answers a question, through every block that is in use ([RND-8]): the site's, and the bytes of
//! the journal as they stand in its file ([JRN-4]). What is on the stack or in registers is not looked at.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    collections::{BTreeMap, BTreeSet},
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
use rand_core::{Rng as _, TryCryptoRng, TryRng};
use veilsum_proto::{
    journal::Record,
    message::Kind,
    noise,
    site::{self, Site},
    suite::Hash,
    vectors_api as api,
};
use veilsum_testkit::{
    recording::{ALL, Course, Told, answer, kind, rng_of},
    secrets::Secrets,
    wire::{Certified, Ciphertexts, Directory, parts},
};

/// What is looked for, by the first eight bytes, and its name.
static LOOKED_FOR: OnceLock<BTreeMap<[u8; 8], ([u8; 32], &'static str)>> = OnceLock::new();
static ARMED: AtomicBool = AtomicBool::new(false);
static FOUND: AtomicUsize = AtomicUsize::new(0);

/// Blocks that were handed out while this was on and are in use: address and bytes. There is one thread, so nothing is
/// locked; more than there is room for ends the check with a panic.
static FOLLOWED: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicUsize = AtomicUsize::new(0);
static IN_USE: [[AtomicUsize; 2]; 1 << 14] = [const { [const { AtomicUsize::new(0) }; 2] }; 1 << 14];

struct Looking;

// Every block is the system's; before it goes back its bytes are read, all of which the system gave us and, since blocks
// are handed out zeroed, all of which have a value.
unsafe impl GlobalAlloc for Looking {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let block = unsafe { System.alloc_zeroed(layout) };
        if FOLLOWED.load(Ordering::Relaxed) {
            let next = COUNT.fetch_add(1, Ordering::Relaxed);
            IN_USE[next][0].store(block as usize, Ordering::Relaxed);
            IN_USE[next][1].store(layout.size(), Ordering::Relaxed);
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if ARMED.load(Ordering::Relaxed) {
            look(unsafe { std::slice::from_raw_parts(block, layout.size()) });
        }
        let count = COUNT.load(Ordering::Relaxed);
        let held = (0..count).rev().find(|i| IN_USE[*i][0].load(Ordering::Relaxed) == block as usize);
        if let Some(place) = held {
            let last = [0, 1].map(|k| IN_USE[count - 1][k].load(Ordering::Relaxed));
            [0, 1].iter().for_each(|k| IN_USE[place][*k].store(last[*k], Ordering::Relaxed));
            COUNT.store(count - 1, Ordering::Relaxed);
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

/// How many of these secrets are in a block in use.
fn in_use(wanted: &BTreeSet<[u8; 32]>) -> usize {
    let mut seen: BTreeSet<&[u8; 32]> = BTreeSet::new();
    for [address, bytes] in &IN_USE[..COUNT.load(Ordering::Relaxed)] {
        let (address, bytes) = (address.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed));
        // Handed out and not given back, so all of it may be read; nothing writes meanwhile.
        let block = unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(address), bytes) };
        seen.extend(block.windows(32).filter_map(|w| wanted.get(w.first_chunk::<32>()?)));
    }
    seen.len()
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
const PLAYED: usize = 3;

/// The site's part of the run: what it keeps on disk goes out as bytes and comes back, as in the product. `answered` is told of
/// each question when its answer is out, with the journal; `heard` of every frame when what it asked for is out.
fn play(
    course: &Course,
    rng: &mut Noted,
    records: &mut Vec<Record>,
    mut answered: impl FnMut(u16, Hash, &[Record]),
    mut heard: impl FnMut(Kind),
) {
    let config = || course.kit.site(ME);
    let mut site = Site::new(config()).expect("a site");
    let mut open = None;
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
                    open = Some((asked.slot.1, asked.context));
                    black_box(noise::Stream::new(&noise::Key::random(rng)).next_u64());
                    site.handle(answer(&course.kit, ME, &asked), rng).expect("an answer");
                }
                _ => {}
            }
        }
        if let Some((slot, context)) = open.take() {
            answered(slot, context, records);
        }
        if let Told::Frame(bytes) = told {
            heard(kind(bytes));
        }
    }
    let back = records.iter().map(|r| Record::from_bytes(&r.to_bytes()).expect("it reads back"));
    drop(Site::restore(config(), back).expect("the journal restores the site"));
}

/// What a site draws first: the private keys of its X25519 and its ML-KEM.
fn private(course: &Course, site: u16) -> ([u8; 32], [u8; 64]) {
    let (mut rng, mut dh, mut kem) = (rng_of(course.seed, site), [0; 32], [0; 64]);
    rng.fill_bytes(&mut dh);
    rng.fill_bytes(&mut kem);
    (dh, kem)
}

/// What this site agrees on with each other member: X25519's result, ML-KEM's secret, and the keys of the boxes to it and from it.
fn agreed(course: &Course) -> Vec<[[u8; 32]; 4]> {
    let told = course.frames_to(ME);
    let first = |wanted| parts(told.iter().find(|(_, b)| kind(b) == wanted).expect("a set-up").1);
    let (directory, certificate) = (first(Kind::Directory).read::<Directory>(), first(Kind::DirectoryCertificate));
    let received = certificate.read::<Certified>().1;
    let sent = course.frames_from(|site| site == ME);
    let sent = sent.into_iter().find(|(_, _, b)| kind(b) == Kind::AcceptDirectory).expect("a set-up");
    let sent: Ciphertexts = parts(sent.2).read();
    let with = |other: u16, public: &[u8; 32]| {
        let shared = api::exchanged(&private(course, ME).0, public);
        let (ciphertext, receiver) = match sent.iter().find(|c| c.0 == other) {
            Some(made) => (&made.1, other),
            None => (&received.iter().find(|c| c.0 == other).expect("one passes").1, ME),
        };
        let secret = api::kem_decapsulate(&private(course, receiver).1, ciphertext);
        let key = |from: u16, to: u16| {
            let parts: [&[u8]; 4] =
                [&certificate.context.0, &from.to_le_bytes(), &to.to_le_bytes(), ciphertext.bytes()];
            api::derive(&[shared, secret].concat(), "box", &parts)
        };
        [shared, secret, key(ME, other), key(other, ME)]
    };
    directory.entries.iter().filter(|e| e.0 != ME).map(|e| with(e.0, &e.1.0)).collect()
}

type Looked = BTreeMap<[u8; 8], ([u8; 32], &'static str)>;

/// All secrets of the run, and those of each slot that was played.
fn secrets(course: &Course) -> (Looked, Vec<BTreeSet<[u8; 32]>>) {
    let mut rng = Noted { rng: rng_of(course.seed, ME), given: Vec::new(), keep: true };
    let (mut records, mut deck, mut contexts) = (Vec::new(), None, Vec::new());
    play(
        course,
        &mut rng,
        &mut records,
        |slot, context, journal| {
            if slot == 0 {
                deck = Some(Secrets::among(journal, 0));
            }
            contexts.push(context);
        },
        |_| {},
    );
    let deck = deck.expect("the first slot was played");
    let mut all: Vec<([u8; 32], &'static str)> = Vec::new();
    for bytes in &rng.given {
        match bytes.len() {
            32 => all.push((bytes[..].try_into().expect("32 bytes"), "a private key of the deck, or a key of noise")),
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
    for [shared, secret, to, from] in agreed(course) {
        all.extend([
            (shared, "a result of X25519"),
            (secret, "a secret of ML-KEM"),
            (to, "a box's key"),
            (from, "a box's key"),
        ]);
    }
    let others = || deck.members.iter().enumerate().filter(|(_, m)| **m != ME);
    let slots = || (0..).zip(&contexts);
    for (other, _) in &deck.pairs {
        all.extend(slots().map(|(slot, _)| (deck.pair_in(*other, slot), "a pair secret")));
    }
    // Nobody is missing, so no seed of a round leaves.
    let masks = |slot, context: &Hash| deck.masks(ME, slot, context, &deck.members);
    all.extend(slots().flat_map(|(slot, context)| masks(slot, context)).map(|(key, _)| (key, "a key of a mask")));
    all.extend(deck.seeds.iter().map(|s| (*s, "a self-mask seed")));
    // An opening says those of its slot aloud, to every site ([OPN-3]).
    all.retain(|(secret, _)| !deck.seeds[..PLAYED].contains(secret));
    let later = || deck.held[PLAYED..].iter();
    all.extend(later().flat_map(|held| others().map(|(i, _)| (held[i], "a share of another's seed"))));
    assert!(all.len() > 20, "{} secrets are no deck", all.len());
    let of_slot = |(slot, context): (u16, &Hash)| {
        let at = usize::from(slot);
        let mut of: BTreeSet<[u8; 32]> = masks(slot, context).iter().map(|(key, _)| *key).collect();
        of.extend(deck.pairs.iter().map(|(other, _)| deck.pair_in(*other, slot)));
        of.extend(deck.held[at].iter().chain([&deck.seeds[at]]));
        of
    };
    let by_slot = slots().map(of_slot).collect();
    (all.into_iter().map(|(s, name)| (*s.first_chunk().expect("eight bytes"), (s, name))).collect(), by_slot)
}

/// Secrets of closed slots that are in use somewhere, over all answers, and of current slots; `plant` keeps a copy of the first
/// journal.
fn left_in_use(course: &Course, by_slot: &[BTreeSet<[u8; 32]>], plant: bool) -> (usize, usize) {
    let mut rng = Noted { rng: rng_of(course.seed, ME), given: Vec::new(), keep: false };
    let (mut closed, mut current, mut kept) = (0, 0, Vec::new());
    FOLLOWED.store(true, Ordering::Relaxed);
    let mut records = Vec::with_capacity(64);
    play(
        course,
        &mut rng,
        &mut records,
        |slot, _, journal| {
            if plant && slot == 0 {
                kept = journal.to_vec();
            }
            // As they stand in the file.
            let file: Vec<_> = journal.iter().map(Record::to_bytes).collect();
            FOLLOWED.store(false, Ordering::Relaxed);
            closed += by_slot[..usize::from(slot)].iter().map(in_use).sum::<usize>();
            current += in_use(&by_slot[usize::from(slot)]);
            FOLLOWED.store(true, Ordering::Relaxed);
            drop(file);
        },
        |_| {},
    );
    FOLLOWED.store(false, Ordering::Relaxed);
    (closed, current)
}

/// What a set-up takes and leaves in use ([KEX-8], [SHR-2]): private keys and ML-KEM secrets while certificates are awaited, and keys
/// of boxes while boxes are; then of the former once shares are out, and of the latter once the deck is ready.
fn of_the_set_up(course: &Course) -> ([usize; 2], [usize; 2]) {
    let agreed = agreed(course);
    let (dh, kem) = private(course, ME);
    let private = [dh, kem[..32].try_into().expect("32 bytes"), kem[32..].try_into().expect("32 bytes")];
    let before: BTreeSet<[u8; 32]> =
        private.into_iter().chain(agreed.iter().flat_map(|a| [a[0], a[1], a[2]])).collect();
    let incoming: BTreeSet<[u8; 32]> = agreed.iter().map(|a| a[3]).collect();
    let mut rng = Noted { rng: rng_of(course.seed, ME), given: Vec::new(), keep: false };
    let (mut used, mut left) = ([0; 2], [0; 2]);
    FOLLOWED.store(true, Ordering::Relaxed);
    play(
        course,
        &mut rng,
        &mut Vec::with_capacity(64),
        |_, _, _| {},
        |heard| {
            FOLLOWED.store(false, Ordering::Relaxed);
            match heard {
                Kind::Directory => used[0] += in_use(&before),
                Kind::DirectoryCertificate => {
                    (left[0], used[1]) = (left[0] + in_use(&before), used[1] + in_use(&incoming))
                }
                Kind::DeliverShares => left[1] += in_use(&before) + in_use(&incoming),
                _ => {}
            }
            FOLLOWED.store(true, Ordering::Relaxed);
        },
    );
    FOLLOWED.store(false, Ordering::Relaxed);
    (used, left)
}

fn main() -> ExitCode {
    let course = Course::new(5, 8, 11, &[ALL; PLAYED]);
    assert_eq!(course.totals.len(), PLAYED);
    let (wanted, by_slot) = secrets(&course);
    let wanted = LOOKED_FOR.get_or_init(|| wanted);
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
    let ((), left) = found(|| play(&course, &mut rng, &mut records, |_, _, _| {}, |_| {}));
    let ((), after) = found(|| drop(records));
    println!("{} secrets looked for; {} blocks freed with one in it", wanted.len(), left + after);
    // A journal that somebody kept is found, and so is what belongs to the current slot.
    let (planted, _) = left_in_use(&course, &by_slot, true);
    let (closed, current) = left_in_use(&course, &by_slot, false);
    if planted == 0 || current == 0 {
        eprintln!(
            "a copied journal was not found ({planted}), or the current slot ({current}): this check sees nothing"
        );
        return ExitCode::from(2);
    }
    println!(
        "{current} secrets of current slots in use, {planted} of closed ones where a journal was kept, else {closed}"
    );
    let (used, kept) = of_the_set_up(&course);
    if used.contains(&0) {
        eprintln!("what a set-up needs was not found ({used:?}): this check sees nothing");
        return ExitCode::from(2);
    }
    println!("{used:?} secrets of the set-up in use while they are needed, {kept:?} afterwards");
    if left + after + closed + kept.iter().sum::<usize>() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
