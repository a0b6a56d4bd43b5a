//! One hot path of the product, once, for `.ci/counts`, which counts its instructions under valgrind: `counts PATH`. With a number of
//! turns behind it, it prints the microseconds of the processor that each took, one on a line.
//!
//! Everything is the same at every start: rows, keys and shares come from seeds, and one thread does all of it. A path runs twice, and only
//! the second run goes through [`counted`], at which valgrind begins to count: tables that are made once are not in it. Without a path it
//! prints the names of all, and what of the processor the counts depend on.

use std::hint::black_box;

use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use veilsum_cluster::{
    Batch, Centres, Domain, OutOfBox, Packed, Prepared, Query, Rows, Scaling, kernel, query::Shifts,
};
use veilsum_node::answerer::{Steps, words};
use veilsum_proto::{
    identity::Identity,
    message::{self, Kind},
    suite::{self, Hash},
    vectors_api as api,
};
use veilsum_testkit::measure::cpu;

/// Rows of the kernel's paths. Their last group is not full.
const ROWS: usize = 10_001;
const COLUMNS: usize = 16;
const CLUSTERS: usize = 10;
/// Sites of the protocol's paths, and words of a round.
const SITES: u16 = 20;
const WORDS: usize = 1_000;

type Path = (&'static str, fn() -> Box<dyn FnMut()>);

const PATHS: [Path; 10] = [
    ("fuzzy-sums-2", || fuzzy(2.0)),
    ("fuzzy-sums-1.5", || fuzzy(1.5)),
    ("hard-sums", || {
        let (rows, centres) = (Packed::new(&rows()), start(2, CLUSTERS));
        Box::new(move || drop(black_box(kernel::hard_sums(black_box(&rows), &centres).expect("sums"))))
    }),
    ("packing", || {
        let rows = rows();
        Box::new(move || drop(black_box(Packed::new(black_box(&rows)))))
    }),
    ("masking", || {
        let (mut words, keys) = (masked(0), keys());
        Box::new(move || api::mask_all(black_box(&mut words), &keys))
    }),
    ("commitment", || {
        let words = masked(0);
        Box::new(move || _ = black_box(api::commit(black_box(&words))))
    }),
    ("opening", opening),
    ("deck-pair", deck_pair),
    ("frame", frame),
    ("shares", || {
        let members: Vec<u16> = (0..SITES).collect();
        let threshold = usize::from(SITES) * 2 / 3 + 1;
        Box::new(move || drop(black_box(api::dealt(threshold, black_box(&members), &mut random()))))
    }),
];

/// Under noise a round is the same work wherever the rows lie; `.ci/counts` compares the places of each fuzzifier.
const FUZZIFIERS: [(&str, Option<f64>); 3] = [("2", Some(2.0)), ("1.1", Some(1.1)), ("hard", None)];
const PLACES: [&str; 5] = ["drawn", "centre", "between", "corner", "subnormal"];

fn noisy_names() -> impl Iterator<Item = String> {
    FUZZIFIERS.into_iter().flat_map(|(m, _)| PLACES.map(|place| format!("noisy-{m}/{place}")))
}

/// The sums of a round under noise over rows at one place.
fn noisy(name: &str) -> Option<Box<dyn FnMut()>> {
    let (m, place) = name.strip_prefix("noisy-")?.split_once('/')?;
    let (_, m) = FUZZIFIERS.into_iter().find(|(name, _)| *name == m)?;
    let centres = start(2, CLUSTERS);
    let (first, second) = (centres.as_slice().get(..COLUMNS)?, centres.as_slice().get(COLUMNS..2 * COLUMNS)?);
    let one = match place {
        "centre" => first.to_vec(),
        "between" => first.iter().zip(second).map(|(a, b)| f64::midpoint(*a, *b)).collect(),
        "corner" => vec![1.0; COLUMNS],
        "subnormal" => vec![1e-310; COLUMNS],
        _ => Vec::new(),
    };
    let rows = if one.is_empty() { rows() } else { Rows::new(one.repeat(ROWS), COLUMNS).ok()? };
    let domain = Domain::new(vec![0.0; COLUMNS], vec![1.0; COLUMNS], Scaling::Box).ok()?;
    let site = Prepared::new(&rows, &domain, OutOfBox::Clip).ok()?;
    let asked = Batch::from(Query::Shifts(Shifts { centres, m, middle: false, clip: 0.5, round: 0 }));
    let steps = Steps::Guarded(vec![0.3; CLUSTERS * (COLUMNS + 1) + 1]);
    Some(Box::new(move || drop(black_box(words(&asked, black_box(&site), &steps).expect("sums")))))
}

/// What valgrind counts. By its name, so it is a function of its own.
#[inline(never)]
fn counted(work: &mut dyn FnMut()) {
    work();
}

fn main() {
    // This thread is the pool, so nothing runs beside it.
    rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global().expect("no pool yet");
    match std::env::args().nth(1) {
        None => {
            println!("# processor: {}", processor().join(" "));
            PATHS.iter().for_each(|(name, _)| println!("{name}"));
            noisy_names().for_each(|name| println!("{name}"));
        }
        Some(asked) => {
            let of_paths = || PATHS.iter().find(|(name, _)| *name == asked).map(|(_, path)| path());
            let mut work = of_paths().or_else(|| noisy(&asked)).expect("a path that is listed without arguments");
            work();
            let turns: Option<usize> = std::env::args().nth(2).map(|turns| turns.parse().expect("a number of turns"));
            for _ in 0..turns.unwrap_or(1) {
                // Only where it is asked for: valgrind does not survive how this clock is looked up.
                let begun = turns.and_then(|_| cpu());
                counted(&mut work);
                if let Some(begun) = begun {
                    println!("{}", 1e6 * (cpu().unwrap_or(begun) - begun).as_secs_f64());
                }
            }
        }
    }
}

/// The instructions that choose a path's code, of those that this processor (or the one that valgrind plays) has.
fn processor() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    let has = [
        ("avx2", is_x86_feature_detected!("avx2")),
        ("fma", is_x86_feature_detected!("fma")),
        ("bmi2", is_x86_feature_detected!("bmi2")),
        ("aes", is_x86_feature_detected!("aes")),
        ("sha", is_x86_feature_detected!("sha")),
        ("vaes", is_x86_feature_detected!("vaes")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512ifma", is_x86_feature_detected!("avx512ifma")),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let has = [(std::env::consts::ARCH, true)];
    has.into_iter().filter_map(|(name, has)| has.then_some(name)).collect()
}

fn random() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(1)
}

/// As many points as are asked for, uniform in the box.
fn start(seed: u64, points: usize) -> Centres {
    let domain = Domain::new(vec![0.0; COLUMNS], vec![1.0; COLUMNS], Scaling::Box).expect("a box");
    Centres::uniform(&domain, points, seed).expect("points")
}

fn rows() -> Rows {
    Rows::new(start(1, ROWS).as_slice().to_vec(), COLUMNS).expect("whole rows")
}

fn fuzzy(m: f64) -> Box<dyn FnMut()> {
    let (rows, centres) = (Packed::new(&rows()), start(2, CLUSTERS));
    Box::new(move || drop(black_box(kernel::fuzzy_sums(black_box(&rows), &centres, m).expect("sums"))))
}

fn digest(number: u16) -> Hash {
    suite::hash("counts", &[&number.to_le_bytes()])
}

fn keys() -> Vec<[u8; 32]> {
    (0..SITES).map(|number| digest(number).0).collect()
}

/// A site's masked vector: any words do.
fn masked(site: u16) -> Vec<u64> {
    let seed = u64::from(site) + 1;
    (0..WORDS as u64).map(|at| (at + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)).collect()
}

/// What a site does with an opened round: the sums are those of the inputs, each of which was signed, and the masks come off.
fn opening() -> Box<dyn FnMut()> {
    let inputs: Vec<Vec<u64>> = (0..SITES).map(masked).collect();
    let commitments: Vec<_> = inputs.iter().map(|words| api::commit(words)).collect();
    let sum = |at: usize| inputs.iter().map(|words| u128::from(words[at])).sum::<u128>();
    let (low, high): (Vec<u64>, Vec<u16>) = (0..WORDS).map(sum).map(|sum| (sum as u64, (sum >> 64) as u16)).unzip();
    let signed: Vec<_> = (0..SITES)
        .map(|site| {
            let identity = Identity::from_seed(&digest(site).0);
            (identity.public(), digest(site), identity.sign("counts", &[&site.to_le_bytes()]))
        })
        .collect();
    let check = api::signed_at_once(signed.iter().map(|(key, ..)| *key).collect::<Vec<_>>());
    let keys = keys();
    Box::new(move || {
        assert!(api::are_sums(black_box(&low), &high, &commitments), "these are the sums");
        assert!(check(black_box(&signed)), "all have signed");
        let mut total = low.clone();
        api::mask_all(&mut total, &keys);
        black_box(total);
    })
}

/// What the keys of two members take at least, at both ends together: X25519 at each, and one ciphertext that is made and opened.
fn deck_pair() -> Box<dyn FnMut()> {
    let (own, seed) = ([digest(1), digest(2)], [7u8; 64]);
    let theirs = [digest(3), digest(4)].map(|private| api::public_key(&private.0));
    let key = api::kem_public(&seed);
    let (received, _) = api::kem_encapsulate(&key, &mut random()).expect("a key");
    let decapsulate = api::kem_decapsulator(&seed);
    Box::new(move || {
        for (own, theirs) in own.iter().zip(&theirs) {
            black_box(api::exchanged(&own.0, black_box(theirs)));
        }
        black_box(api::kem_encapsulate(black_box(&key), &mut random()).expect("a key"));
        black_box(decapsulate(black_box(&received)));
    })
}

/// A frame of 170 numbers, signed, taken apart and checked.
fn frame() -> Box<dyn FnMut()> {
    let (identity, session, context) = (Identity::from_seed(&[3; 32]), digest(1), digest(2));
    let (key, sent) = (identity.public(), masked(0)[..170].to_vec());
    Box::new(move || {
        let bytes = message::frame(&identity, &session, Kind::Ask, &context, black_box(&sent));
        let read: Vec<u64> = message::open(&bytes, &session, &key, "nobody", Kind::Ask).expect("a frame");
        assert_eq!(read, sent);
    })
}
