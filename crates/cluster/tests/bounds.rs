//! Hard groups from bounds on distances: the words are those of the plain pass, question after question, whatever is asked in between.

use proptest::prelude::*;
use veilsum_cluster::method::{Preparation, Scale, Seeding};
use veilsum_cluster::query::{LocalMeans, LocalSteps};
use veilsum_cluster::random::Stream;
use veilsum_cluster::{
    Algorithm, Batch, Centres, Clusters, Domain, Error, Method, OutOfBox, Prepared, Query, Recipe, Rows, Scaling, Step,
    SumStep, Totals, words,
};

fn means(centres: &Centres) -> Query {
    LocalMeans { centres: centres.clone(), local: LocalSteps::ONE, min_rows: 1, nearest: false }.into()
}

/// Steps as small as the bounds of the blocks allow, so that the last bits count.
fn steps(batch: &Batch, domain: &Domain, bits: i32) -> Vec<SumStep> {
    let one = |block: &veilsum_cluster::Block| {
        let fraction_bits = bits - block.bound.max(f64::MIN_POSITIVE).log2().ceil() as i32;
        SumStep { len: block.len, fraction_bits }
    };
    batch.layout(domain).expect("a layout").iter().map(one).collect()
}

fn ask(batch: &Batch, site: &Prepared, bits: i32) -> Result<Vec<i64>, Error> {
    words(batch, site, &steps(batch, site.domain(), bits))
}

/// What happens to the centres from one round to the next.
fn next(stream: &mut Stream, centres: &Centres, rows: &Rows, size: f64) -> Centres {
    let (k, d) = (centres.k(), centres.columns());
    let mut values = centres.as_slice().to_vec();
    let centre = stream.below(k as u64) as usize * d;
    match stream.below(9) {
        // Lloyd, on the rows themselves.
        0..=2 => {
            let (mut sums, mut counts) = (vec![0.0; k * d], vec![0.0; k]);
            for row in rows.iter() {
                let own = veilsum_cluster::distance::nearest(row, centres.rows()).0;
                counts[own] += 1.0;
                sums[own * d..][..d].iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }
            for (i, x) in values.iter_mut().enumerate().filter(|(i, _)| counts[i / d] > 0.0) {
                *x = sums[i] / counts[i / d];
            }
        }
        // The last bit of some coordinates: rows on a bisector go one way or the other.
        3 => values.iter_mut().for_each(|x| {
            *x = if stream.below(2) == 0 { x.next_up() } else { *x };
        }),
        // A little, all or one of them.
        4 => values.iter_mut().for_each(|x| *x += size * 1e-3 * (stream.unit() - 0.5)),
        5 => values[centre] += size * 1e-6,
        // Far: one centre on another, or everything anew.
        6 => values.copy_within(centre..centre + d, 0),
        7 => values.iter_mut().for_each(|x| *x = size * (stream.below(5) as f64 / 4.0)),
        _ => {}
    }
    Centres::new(k, d, values).expect("finite centres")
}

fn equal_over_rounds(n: usize, d: usize, k: usize, size: f64, grid: bool, threads: usize, seed: u64) {
    let mut stream = Stream::new(seed, b"veilsum bounds test 24..");
    let mut draw = |n: usize| -> Vec<f64> {
        let one = |_| if grid { stream.below(5) as f64 / 4.0 } else { stream.unit() };
        (0..n * d).map(one).map(|x| x * size).collect()
    };
    let rows = Rows::new(draw(n), d).expect("rows");
    let mut centres = Centres::new(k, d, draw(k)).expect("centres");
    let domain = Domain::new(vec![0.0; d], vec![size; d], Scaling::None).expect("a box");
    let site = || Prepared::new(&rows, &domain, OutOfBox::Refuse).expect("rows in the box");
    // Room for everything, for one set of centres, and for none.
    let one = 8 * (n + k * (2 * d + 2)) as u64;
    let (plain, known, tight) = (site(), site().with_room(1 << 24), site().with_room(one));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    pool.install(|| {
        for round in 0..12 {
            let mut queries = vec![means(&centres)];
            if stream.below(3) == 0 {
                // Another set of as many centres, which goes its own way, and another kind of question.
                queries.push(means(&next(&mut stream, &centres, &rows, size)));
                queries.push(Query::fuzzy_sums(centres.clone(), 2.0));
            }
            let batch = Batch { transform: None, queries };
            let bits = [20, 30, 38][stream.below(3) as usize];
            let expected = ask(&batch, &plain, bits);
            for site in [&known, &tight] {
                assert_eq!(ask(&batch, site, bits), expected, "round {round}: {batch:?}");
                if stream.below(4) == 0 {
                    assert_eq!(ask(&batch, site, bits), expected, "again, round {round}: {batch:?}");
                }
            }
            centres = next(&mut stream, &centres, &rows, size);
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Ties, duplicate rows, equal centres, rows on bisectors, centres that rest or jump; sizes at both ends of `f64`, too.
    #[test]
    fn the_words_are_those_of_the_plain_pass(
        n in 0usize..400,
        d in prop::sample::select(vec![1usize, 2, 3, 5, 8, 9, 12]),
        k in 1usize..=9,
        size in prop::sample::select(vec![1.0, 1.0, 1.0, 3.0, 1e-140, 1e-156, 1e140]),
        grid: bool,
        threads in prop::sample::select(vec![1, 2, 4]),
        seed: u64,
    ) {
        equal_over_rounds(n, d, k, size, grid, threads, seed);
    }
}

#[test]
fn many_chunks_on_any_number_of_threads() {
    for (threads, grid, d) in [(1, false, 3), (2, true, 8), (4, false, 8), (4, true, 3)] {
        equal_over_rounds(20_011, d, 6, 1.0, grid, threads, 7);
    }
}

/// Three sites with rows of eight columns around seven places.
fn sites(room: u64) -> Vec<Prepared> {
    let d = 8;
    let mut stream = Stream::new(11, b"veilsum bounds test 24..");
    let places: Vec<Vec<f64>> = (0..7).map(|_| (0..d).map(|_| 0.2 + 0.6 * stream.unit()).collect()).collect();
    let domain = Domain::new(vec![0.0; d], vec![1.0; d], Scaling::Box).expect("a box");
    let mut site = |n: usize| {
        let row = |i: usize| places[i % 7].iter().map(|x| x + 0.4 * (stream.unit() - 0.5)).collect::<Vec<f64>>();
        let rows = Rows::new((0..n).flat_map(row).collect(), d).expect("rows");
        Prepared::new(&rows, &domain, OutOfBox::Refuse).expect("rows in the box").with_room(room)
    };
    vec![site(700), site(1_001), site(390)]
}

/// Runs a recipe on the words of sites that keep so many bytes between questions; all words, and where the run ended.
fn run(recipe: &Recipe, room: u64) -> (Vec<Vec<i64>>, Vec<f64>) {
    let sites = sites(room);
    let domain = sites[0].domain();
    let mut run = recipe.run(domain, sites.len() as u32).expect("a run");
    let (mut all, mut step) = (Vec::new(), run.next(None).expect("a step"));
    loop {
        let batch = match step {
            Step::Done(outcome) => return (all, outcome.centres.as_slice().to_vec()),
            Step::Ask(batch) => batch,
        };
        let steps = steps(&batch, domain, 36);
        let mut total: Vec<i64> = Vec::new();
        for site in &sites {
            let words = words(&batch, site, &steps).expect("words");
            total.resize(words.len(), 0);
            total.iter_mut().zip(&words).for_each(|(sum, word)| *sum += word);
            all.push(words);
        }
        let factors = steps.iter().flat_map(|step| std::iter::repeat_n(2f64.powi(step.fraction_bits), step.len));
        let values = total.iter().zip(factors).map(|(word, factor)| *word as f64 / factor).collect();
        let rows = sites.iter().map(|site| site.len() as u64).sum();
        step = run.next(Some(&Totals { values, rows: Some(rows) })).expect("a step");
    }
}

#[test]
fn a_federated_run_has_equal_words_with_and_without() {
    let kmeans = Algorithm::Kmeans { epsilon: 0.0, max_rounds: 60 };
    let plain = Recipe::plain(kmeans, 5, Seeding::Uniform { seed: 3 });
    let recipes = [
        plain.clone(),
        Recipe { clusters: Clusters { min: 2, max: 5 }, restarts: 3, ..plain.clone() },
        Recipe { preparation: Preparation { scale: Scale::Standard, ..Preparation::none() }, ..plain },
    ];
    for recipe in recipes {
        let without = run(&recipe, 0);
        assert!(without.0.len() > 20, "{}", without.0.len());
        for room in [20_000, 1 << 24] {
            assert!(run(&recipe, room) == without, "{recipe:?} {room}");
        }
    }
}
