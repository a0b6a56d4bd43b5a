//! How far one row moves an answer ([NOI-6], specification, section 17.4): for every family of questions a row is added to random rows at a
//! random place, and the change of the integers that a site would mask is within the stated sensitivity, whichever way the kernel takes.
//!
//! `VEILSUM_NEIGHBOURS=100000` tries as many neighbours of each family.

use std::collections::{BTreeMap, BTreeSet};

use veilsum_cluster::{
    Centres, Domain, OutOfBox, Prepared, Rows, Scaling, Transform,
    kernel::Vectors,
    privacy::{Extent, Levels, Noise, Unit},
    query::{Bracket, Histogram, Margins, Moments, Shifts, Validation},
    random::Stream,
};
use veilsum_proto::noise::Key;

use super::*;
use crate::answerer::Answerer;

/// Neighbours of each family by default.
const USUAL: u64 = 2_000;
/// Rows that the plan allows a site.
const MAX_ROWS: u64 = 1 << 14;

fn pick<T: Clone>(stream: &mut Stream, of: &[T]) -> T {
    of[stream.below(of.len() as u64) as usize].clone()
}

fn clamped(x: f64, (low, high): (f64, f64)) -> f64 {
    x.clamp(low, high)
}

/// A box, some rows in it, and one row more.
struct Case {
    domain: Domain,
    transform: Option<Transform>,
    /// The box in the units of the questions.
    inner: Domain,
    /// Working units.
    rows: Vec<Vec<f64>>,
    more: Vec<f64>,
    place: usize,
    centres: Centres,
    m: f64,
}

/// Up to four columns of numbers, now and then with categories behind them; and how many of these there are.
fn public_box(stream: &mut Stream) -> (Domain, usize) {
    let bounds: Vec<(f64, f64)> = (0..1 + stream.below(4))
        .map(|_| {
            let low = pick(stream, &[0.0, -1.0, 5.0, -1e3]);
            (low, low + pick(stream, &[1.0, 1e-3, 40.0]))
        })
        .collect();
    let (lower, upper): (Vec<f64>, Vec<f64>) = bounds.into_iter().unzip();
    let scaling = pick(stream, &[Scaling::None, Scaling::Box, Scaling::Box]);
    let categories = if stream.below(3) == 0 { vec![vec![0.5; 3]] } else { Vec::new() };
    (Domain::mixed(lower, upper, scaling, &categories).unwrap(), 3 * categories.len())
}

/// As totals give it: rows are cut, shifted and stretched.
fn standardising(stream: &mut Stream, domain: &Domain) -> Transform {
    let mut transform = Transform::identity(domain);
    for column in 0..domain.columns() {
        let (low, high) = domain.working_interval(column);
        transform.lower[column] = low + 0.2 * stream.unit() * (high - low);
        transform.upper[column] = high - 0.2 * stream.unit() * (high - low);
        transform.shift[column] = clamped(low + (high - low) * stream.unit(), (low, high));
        transform.factor[column] = pick(stream, &[0.25, 1.0, 7.0]);
    }
    transform
}

impl Case {
    fn draw(stream: &mut Stream, rows: usize) -> Self {
        let (domain, categories) = public_box(stream);
        let transform = (stream.below(4) == 0).then(|| standardising(stream, &domain));
        let inner = transform.as_ref().map_or(domain.clone(), |transform| transform.domain(&domain).unwrap());
        let d = domain.columns();
        let k = 1 + stream.below(6) as usize;
        let intervals = |of: &Domain| (0..d).map(|column| of.working_interval(column)).collect::<Vec<_>>();
        let (own, asked) = (intervals(&domain), intervals(&inner));
        let inside = |stream: &mut Stream, own: &[(f64, f64)]| -> Vec<f64> {
            own.iter().map(|(low, high)| clamped(low + (high - low) * stream.unit(), (*low, *high))).collect()
        };
        let corner = |stream: &mut Stream, own: &[(f64, f64)]| -> Vec<f64> {
            own.iter().map(|(low, high)| if stream.below(2) == 0 { *low } else { *high }).collect()
        };
        // All centres in one corner, too.
        let first = if stream.below(3) == 0 { corner(stream, &asked) } else { inside(stream, &asked) };
        let close = pick(stream, &[0.0, 1e-9, 1e-3, 1.0, 1.0]);
        let centres: Vec<Vec<f64>> = (0..k)
            .map(|_| {
                let other = inside(stream, &asked);
                let between = first.iter().zip(other).map(|(a, b)| a + close * (b - a));
                between.zip(&asked).map(|(x, interval)| clamped(x, *interval)).collect()
            })
            .collect();
        let [a, b] = [0; 2].map(|_: i32| stream.below(k as u64) as usize);
        // At a centre, on a bisector, in a corner, the one farthest from a centre, or anywhere.
        let more = match stream.below(6) {
            0 => centres[a].clone(),
            1 => centres[a].iter().zip(&centres[b]).map(|(x, y)| f64::midpoint(*x, *y)).collect(),
            2 => corner(stream, &asked),
            3 | 4 => {
                let far = |(c, (low, high)): (&f64, &(f64, f64))| if c - low > high - c { *low } else { *high };
                centres[a].iter().zip(&asked).map(far).collect()
            }
            _ => inside(stream, &asked),
        };
        let back = |x: f64, column: usize| match &transform {
            Some(of) => clamped(x / of.factor[column] + of.shift[column], own[column]),
            None => x,
        };
        let mut more: Vec<f64> = more.into_iter().enumerate().map(|(column, x)| back(x, column)).collect();
        let mut rows: Vec<Vec<f64>> =
            (0..rows).map(|_| if stream.below(8) == 0 { corner(stream, &own) } else { inside(stream, &own) }).collect();
        // Nobody else has the last category.
        let name = |row: &mut [f64], category: usize| {
            let indicators = own.iter().enumerate().skip(d - categories);
            indicators
                .for_each(|(at, (low, high))| row[at] = if at + categories - d == category { *high } else { *low });
        };
        rows.iter_mut().for_each(|row| name(row, stream.below(2) as usize));
        name(&mut more, categories.saturating_sub(1));
        let place = stream.below(rows.len() as u64 + 1) as usize;
        let m = pick(stream, &[1.0 + 1e-9, 1.000_001, 1.1, 2.0, 3.5]);
        Self { domain, transform, inner, rows, more, place, centres: Centres::from_rows(&centres).unwrap(), m }
    }

    fn prepared(&self, rows: &[&Vec<f64>]) -> Prepared {
        let back = |x: &f64, column: usize| {
            let (low, high) = self.domain.working_interval(column);
            let (lower, upper) = (self.domain.lower()[column], self.domain.upper()[column]);
            lower + (x - low) / (high - low) * (upper - lower)
        };
        let values: Vec<f64> =
            rows.iter().flat_map(|row| row.iter().enumerate().map(|(column, x)| back(x, column))).collect();
        let (rows, _) = Prepared::usable(&values, self.domain.columns(), &self.domain, OutOfBox::Clip).unwrap();
        rows
    }

    fn batch(&self, queries: Vec<Query>) -> Batch {
        Batch { transform: self.transform.clone(), queries }
    }

    fn queries(&self, stream: &mut Stream) -> Vec<Query> {
        let (c, m, d) = (self.centres.clone(), self.m, self.domain.columns());
        let interval = |column: usize| self.inner.working_interval(column);
        let at = |column: usize, stream: &mut Stream| {
            let (low, high) = interval(column);
            clamped(low + (high - low) * stream.unit(), (low, high))
        };
        let half: f64 =
            (0..d).map(|column| ((interval(column).1 - interval(column).0) / 2.0).powi(2)).sum::<f64>().sqrt();
        let (middle, clip) = (stream.below(2) == 0, half * pick(stream, &[1.000_01, 0.25, 0.01]));
        let shifts = |m| Shifts { centres: c.clone(), m, middle, clip, round: 0 };
        let around = (0..d).map(|column| at(column, stream)).collect();
        let brackets: Vec<Bracket> = (0..1 + stream.below(6))
            .map(|_| {
                let column = stream.below(d as u64) as usize;
                let (low, high) = interval(column);
                let upper = if stream.below(2) == 0 { high } else { low + (high - low) * (0.1 + 0.8 * stream.unit()) };
                Bracket { column: column as u32, lower: low, upper }
            })
            .collect();
        vec![
            Query::fuzzy_validation(c.clone(), m),
            Moments { around: None }.into(),
            Moments { around: Some(around) }.into(),
            Histogram { brackets, bins: 5 }.into(),
            Margins { bins: 16 }.into(),
            Validation { centres: c.clone(), m, vectors: stream.below(2) == 0 }.into(),
            shifts(Some(m)).into(),
            shifts(None).into(),
        ]
    }
}

/// A way through the kernel.
#[derive(Clone, Copy, Debug)]
struct Way {
    vectors: Vectors,
    /// Whether the question comes twice in one batch.
    twice: bool,
}

impl Way {
    /// What this processor has.
    fn there() -> Vec<Vectors> {
        Vectors::ALL.into_iter().filter(|kind| kind.used(|| ()).is_some()).collect()
    }

    fn draw(stream: &mut Stream) -> Way {
        Way { vectors: pick(stream, &Way::there()), twice: stream.below(3) == 0 }
    }
}

/// What a site would mask.
fn contributed(way: &Way, batch: &Batch, rows: &Prepared, form: SumBounds, key: &Key) -> Vec<i64> {
    let terms = Terms { noise: Some(key), ..Terms::everybody(form) };
    let asked = Question::Cluster(batch.clone());
    let words = way.vectors.used(|| contribute(&asked, rows, &terms)).expect("these vectors");
    words.unwrap_or_else(|error| panic!("{}: {error}", batch.kind())).into_iter().map(fixed::from_ring).collect()
}

fn less(a: &[i64], b: &[i64]) -> Vec<i64> {
    a.iter().zip(b).map(|(a, b)| a.wrapping_sub(*b)).collect()
}

/// The form of a plan with noise whose shares are possible for most questions.
fn noisy_form(stream: &mut Stream, domain: &Domain, unit: Unit) -> SumBounds {
    let noise = Noise { retries: 0, unit, ..Noise::usual(pick(stream, &[0.25, 1.0]), 3_000) };
    let extent =
        Extent { preparing: 2, seeding: 2, rounds: 4, members: 1, judges: true, questions: 11, most_clusters: 6 };
    let levels = Levels::new(&noise, extent, domain);
    SumBounds { noise: Some(levels), ..SumBounds::new(3, MAX_ROWS) }
}

/// What was found of the kinds of questions.
#[derive(Default, Debug)]
struct Found {
    /// The largest part of its sensitivity by which a row moved a block, by kind and block, in the finest steps.
    parts: BTreeMap<(&'static str, &'static str), f64>,
    /// What was asked under noise.
    noisy: BTreeSet<&'static str>,
}

impl Found {
    /// By so many rows no block of a change is longer than its sensitivity lets it.
    fn moved(&mut self, kind: &'static str, blocks: &[ScaledBlock], change: &[i64], (of, rows): (&[f64], u64)) {
        let mut rest = change;
        for (block, sensitivity) in blocks.iter().zip(of.iter().cycle()) {
            let (own, next) = rest.split_at(block.block.len);
            rest = next;
            let moved = own.iter().map(|x| (*x as f64).powi(2)).sum::<f64>().sqrt();
            let half = (block.block.len as f64).sqrt() / 2.0;
            let most = rows as f64 * (sensitivity / block.scale.unit() * (1.0 + 1e-9) + half);
            assert!(moved <= most, "{kind} {}: {moved} of {most}", block.block.name);
            let part = self.parts.entry((kind, block.block.name)).or_insert(0.0);
            *part = part.max(moved / most);
        }
    }

    /// Every block was moved by such a part of what is allowed, and every kind was asked under noise.
    fn is_whole(&self, least: f64) {
        println!("{self:#?}");
        let slack: Vec<_> = self.parts.iter().filter(|(_, part)| **part < least).collect();
        assert!(slack.is_empty(), "{slack:?}");
        let unasked: Vec<_> = self.parts.keys().filter(|(kind, _)| !self.noisy.contains(kind)).collect();
        assert!(unasked.is_empty(), "never asked under noise: {unasked:?}");
    }
}

/// Checks one pair of neighbours for every family.
fn check(stream: &mut Stream, rows: usize, found: &mut Found) {
    let case = Case::draw(stream, rows);
    let way = Way::draw(stream);
    let before: Vec<&Vec<f64>> = case.rows.iter().collect();
    let mut after = before.clone();
    after.insert(case.place, &case.more);
    let [before, after, alone] = [before, after, vec![&case.more]].map(|rows| case.prepared(&rows));
    let fine = SumBounds::new(3, MAX_ROWS);
    let noisy = noisy_form(stream, &case.inner, Unit::Record);
    let key = Key::from_bytes([7; 32]);
    for query in case.queries(stream) {
        let kind = query.kind();
        let sensitivities = query.sensitivity(&case.inner).expect("a sensitivity");
        let times = if way.twice { 2 } else { 1 };
        let batch = case.batch(vec![query.clone(); times]);
        batch.check(&case.domain).unwrap_or_else(|error| panic!("{kind}: {error}"));
        let of = |rows: &Prepared, form| contributed(&way, &batch, rows, form, &key);
        // What every other row adds is the same to the bit, wherever the row comes in.
        let change = less(&of(&after, fine), &of(&before, fine));
        assert_eq!(change, of(&alone, fine), "{kind}: other rows moved, {way:?}");
        // And with every kind of vectors.
        for vectors in Way::there() {
            let other = contributed(&Way { vectors, ..way }, &batch, &alone, fine, &key);
            assert_eq!(change, other, "{kind}: {way:?} and {vectors:?} differ");
        }
        let layout = Layout::of_batch(&batch, &case.domain, &fine).unwrap();
        assert_eq!(sensitivities.len() * times, layout.blocks.len(), "{kind}");
        found.moved(kind, &layout.blocks, &change, (&sensitivities, 1));
        if in_steps_of_noise(&case.domain, &batch, noisy, |rows| of(rows, noisy), [&before, &after]) {
            found.noisy.insert(kind);
        }
    }
}

/// The same as whole vectors of a plan with noise, which is the same in both and falls out: a unit moves one by 2^24 for each of its rows at
/// most. Nothing where such noise is not possible, or it moves nothing.
fn in_steps_of_noise(
    domain: &Domain,
    batch: &Batch,
    form: SumBounds,
    of: impl Fn(&Prepared) -> Vec<i64>,
    [before, after]: [&Prepared; 2],
) -> bool {
    if Layout::of_batch(batch, domain, &form).is_err() {
        return false;
    }
    let change = less(&of(after), &of(before));
    let moved: u128 = change.iter().map(|word| u128::from(word.unsigned_abs()).pow(2)).sum();
    let rows = u128::from(form.noise.expect("noise").noise().unit.rows());
    let most = (rows * u128::from(veilsum_door::guard::REACH)).pow(2);
    assert!(moved <= most, "{}: {moved} of {most}, {batch:?}", batch.kind());
    moved > 0
}

#[test]
fn noi_6_one_row_moves_no_answer_farther_than_its_sensitivity() {
    let tries = std::env::var("VEILSUM_NEIGHBOURS").ok().and_then(|n| n.parse().ok()).unwrap_or(USUAL);
    let mut stream = Stream::new(71, b"veilsum neighbours test ");
    let mut found = Found::default();
    for _ in 0..tries {
        let rows = stream.below(6) as usize;
        check(&mut stream, rows, &mut found);
    }
    // A sensitivity stated a fifth too small, in any block, would have been found.
    found.is_whole(0.8);
}

/// A person's rows, up to as many as the plan says, come in at random places at once: the same row again and again, which moves an answer
/// farthest, or rows of all kinds.
#[test]
fn noi_6_a_person_moves_no_answer_farther_than_its_sensitivity() {
    // Each tries all families of questions, 17 of them.
    let tries = std::env::var("VEILSUM_NEIGHBOURS").ok().and_then(|n| n.parse().ok()).unwrap_or(600);
    let mut stream = Stream::new(73, b"veilsum neighbours test ");
    let mut found = Found::default();
    for _ in 0..tries {
        let base = stream.below(6) as usize;
        let case = Case::draw(&mut stream, base);
        let way = Way::draw(&mut stream);
        let most = pick(&mut stream, &[1, 2, 3, 5, 40]);
        let own = if stream.below(3) == 0 { 1 + stream.below(most) } else { most };
        let copies = stream.below(2) == 0;
        let before: Vec<&Vec<f64>> = case.rows.iter().collect();
        let mut after = before.clone();
        for _ in 0..own {
            let row = if copies || case.rows.is_empty() { &case.more } else { pick(&mut stream, &before) };
            after.insert(stream.below(after.len() as u64 + 1) as usize, row);
        }
        let [before, after] = [before, after].map(|rows| case.prepared(&rows));
        let form = noisy_form(&mut stream, &case.inner, Unit::Person { rows: most });
        let (fine, key) = (SumBounds::new(3, MAX_ROWS), Key::from_bytes([7; 32]));
        for query in case.queries(&mut stream) {
            let kind = query.kind();
            let sensitivities = query.sensitivity(&case.inner).expect("a sensitivity");
            let batch = case.batch(vec![query]);
            let of = |rows: &Prepared, form| contributed(&way, &batch, rows, form, &key);
            let layout = Layout::of_batch(&batch, &case.domain, &fine).unwrap();
            let change = less(&of(&after, fine), &of(&before, fine));
            found.moved(kind, &layout.blocks, &change, (&sensitivities, most));
            if in_steps_of_noise(&case.domain, &batch, form, |rows| of(rows, form), [&before, &after]) {
                found.noisy.insert(kind);
            }
        }
    }
    found.is_whole(0.7);
}

/// The same over several chunks of rows and with other numbers of threads.
#[test]
fn noi_6_where_a_row_comes_in_moves_no_other_row() {
    for threads in [1, 2, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut stream = Stream::new(72, b"veilsum neighbours test ");
            (0..4).for_each(|i| check(&mut stream, 8_190 + i, &mut Found::default()));
        });
    }
}

/// What is cut off each row's vector moves no centre by more than 0.002 of a range: a hundred clusters in sixteen columns, eight rounds.
#[test]
fn what_is_cut_off_hardly_moves_a_centre() {
    let (d, k) = (16, 100);
    let domain = Domain::new(vec![0.0; d], vec![1.0; d], Scaling::Box).unwrap();
    let rows = Rows::new(Centres::uniform(&domain, 10_000, 1).unwrap().as_slice().to_vec(), d).unwrap();
    let site = Prepared::new(&rows, &domain, OutOfBox::Clip).unwrap();
    let extent = Extent {
        preparing: 0,
        seeding: 0,
        rounds: 8,
        members: 1,
        judges: false,
        questions: 9,
        most_clusters: k as u32,
    };
    let levels = Levels::new(&Noise::usual(1.0, 30_000), extent, &domain);
    let form = SumBounds { noise: Some(levels), ..SumBounds::new(3, MAX_ROWS) };
    for m in [Some(1.1), None] {
        let mut centres = [0; 2].map(|_: i32| Centres::uniform(&domain, k, 2).unwrap());
        for round in 0..8 {
            for (guarded, centres) in centres.iter_mut().enumerate() {
                let clip = (d as f64).sqrt() / 2.0;
                let batch =
                    Batch::from(Query::from(Shifts { centres: centres.clone(), m, middle: false, clip, round }));
                let layout = Layout::of_batch(&batch, &domain, &form).unwrap();
                let totals = match guarded {
                    0 => veilsum_cluster::answer(&batch, &site).unwrap().values,
                    _ => {
                        let words = site.words(&batch, &layout.steps()).unwrap();
                        layout
                            .decode(&words.into_iter().map(fixed::to_ring).collect::<Vec<_>>(), 1, None)
                            .unwrap()
                            .values
                    }
                };
                let moved = |(at, c): (usize, &f64)| (c + totals[k + at] / totals[at / d].max(1.0)).clamp(0.0, 1.0);
                let moved: Vec<f64> = centres.as_slice().iter().enumerate().map(moved).collect();
                *centres = Centres::from_rows(&moved.chunks(d).map(<[f64]>::to_vec).collect::<Vec<_>>()).unwrap();
            }
        }
        let [plain, guarded] = centres;
        let apart = plain.as_slice().iter().zip(guarded.as_slice()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        println!("m {m:?}: {apart:e}");
        assert!(apart > 0.0 && apart <= 0.002, "{m:?}: {apart}");
    }
}
