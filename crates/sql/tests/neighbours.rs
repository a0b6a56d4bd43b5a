//! How far one row moves the words of a database ([NOI-6]), and rows that cannot be used under noise ([NOI-8]).

use veilsum_answerer::{
    Held, Hello,
    contract::{Categorical, Column, PROTOCOL},
};
use veilsum_cluster::{
    Batch, Centres, Domain, OutOfBox, Query, Scaling,
    query::{Bracket, Histogram, LocalMeans, LocalSteps, Margins, Moments, Silhouette, Validation},
    random::Stream,
};

/// `VEILSUM_NEIGHBOURS=1000` tries as many.
const USUAL: u64 = 50;

fn hello(scaling: Scaling) -> Hello {
    let column = |name: &str, lower, upper| Column { name: name.to_owned(), lower, upper };
    let categories = ["x", "y", "other"].map(str::to_owned).to_vec();
    Hello {
        protocol: PROTOCOL,
        columns: vec![column("a", 0.0, 1.0), column("b", -5.0, 35.0)],
        categorical: vec![Categorical { column: "k".into(), categories, one: 0.5 }],
        scaling,
        out_of_box: OutOfBox::Clip,
        noise: true,
    }
}

fn pick<T: Copy>(stream: &mut Stream, of: &[T]) -> T {
    of[stream.below(of.len() as u64) as usize]
}

fn inside(stream: &mut Stream, domain: &Domain, corner: bool) -> Vec<f64> {
    let one = |column: usize| {
        let (low, high) = domain.working_interval(column);
        let share = if corner { stream.below(2) as f64 } else { stream.unit() };
        (low + share * (high - low)).clamp(low, high)
    };
    (0..domain.columns()).map(one).collect()
}

/// A row as SQL: also outside the box, without a value, with a number that no double holds, or with a word that is not listed.
fn row(stream: &mut Stream, centre: &[f64], domain: &Domain, hello: &Hello) -> String {
    let original = |column: usize, x: f64| {
        let (low, high) = domain.working_interval(column);
        let of = &hello.columns[column];
        of.lower + (x - low) / (high - low) * (of.upper - of.lower)
    };
    let usual = |column: usize, stream: &mut Stream| match stream.below(4) {
        0 => original(column, centre[column]),
        1 => pick(stream, &[hello.columns[column].lower, hello.columns[column].upper]),
        _ => original(column, {
            let (low, high) = domain.working_interval(column);
            low + stream.unit() * (high - low)
        }),
    };
    let a = match stream.below(12) {
        0 => "NULL".into(),
        1 => "'NaN'".into(),
        2 => "1e400".into(),
        3 => "-7".into(),
        4 => "1e-400".into(),
        _ => format!("{:e}", usual(0, stream)),
    };
    let b = if stream.below(10) == 0 { "'Infinity'".into() } else { format!("'{:e}'", usual(1, stream)) };
    let k = pick(stream, &["'x'", "'y'", "'x'", "'y'", "'unheard of'", "NULL", "''"]);
    format!("({a}::numeric, {b}::float8, {k}::text)")
}

fn queries(stream: &mut Stream, c: &Centres, domain: &Domain) -> Vec<Query> {
    let m = pick(stream, &[1.001, 1.5, 3.0]);
    let around = inside(stream, domain, false);
    let brackets = (0..domain.columns() as u32)
        .map(|column| {
            let (lower, upper) = domain.working_interval(column as usize);
            Bracket { column, lower, upper }
        })
        .collect();
    let means = LocalMeans { centres: c.clone(), local: LocalSteps::ONE, min_rows: 1, nearest: false };
    let k = c.k();
    vec![
        Query::fuzzy_sums(c.clone(), 2.0),
        Query::fuzzy_sums(c.clone(), m),
        Query::fuzzy_validation(c.clone(), 2.0),
        means.into(),
        Moments { around: None }.into(),
        Moments { around: Some(around) }.into(),
        Histogram { brackets, bins: 4 }.into(),
        Margins { bins: 16 }.into(),
        Validation { centres: c.clone(), m: 2.0, vectors: true }.into(),
        Silhouette { centres: c.clone(), means: c.clone(), rows: vec![9.0; k], scatter: vec![0.5; k] }.into(),
    ]
}

/// The words of these rows for every query, how many could be used and how many not.
fn asked(
    server: &veilsum_testkit::postgres::Postgres,
    mode: &[&str],
    hello: &Hello,
    rows: &[String],
    queries: &[Query],
) -> (Vec<Vec<i64>>, u64, u64) {
    let values = if rows.is_empty() { row_of_none() } else { format!("VALUES {}", rows.join(", ")) };
    let query = format!("SELECT * FROM ({values}) v (a, b, k)");
    let (launch, _) = super::launch(server, &[&["--query", &query], mode].concat());
    let mut held = Held::start(launch, hello.clone()).unwrap_or_else(|fault| panic!("{query}: {fault}"));
    let of = |query: &Query| {
        let batch = Batch::from(query.clone());
        held.words(&batch, &steps(&batch, held.domain())).unwrap_or_else(|fault| panic!("{rows:?} {batch:?}: {fault}"))
    };
    let words = queries.iter().map(of).collect();
    let ready = held.ready();
    (words, ready.rows, ready.unusable())
}

fn row_of_none() -> String {
    "SELECT NULL::numeric, NULL::float8, NULL::text WHERE false".into()
}

fn steps(batch: &Batch, domain: &Domain) -> Vec<(usize, i32)> {
    let bits = |bound: f64| 30 - bound.max(1e-300).log2().ceil() as i32;
    batch.layout(domain).unwrap().iter().map(|block| (block.len, bits(block.bound))).collect()
}

#[test]
fn noi_6_one_row_moves_no_words_of_a_database_farther_than_its_sensitivity() {
    let Some(server) = super::server() else { return };
    let tries = std::env::var("VEILSUM_NEIGHBOURS").ok().and_then(|n| n.parse().ok()).unwrap_or(USUAL);
    let seed = 91;
    let mut stream = Stream::new(seed, b"veilsum sql neighbours  ");
    let (mut left, mut largest) = (0, 0.0f64);
    for _ in 0..tries {
        let hello = hello(pick(&mut stream, &[Scaling::Box, Scaling::None]));
        let domain = hello.domain().unwrap();
        let mode =
            pick(&mut stream, &[&["--mode", "push"][..], &["--mode", "push"], &["--mode", "stream", "--memory", "0"]]);
        let corner = stream.below(3) == 0;
        let centres: Vec<Vec<f64>> = (0..1 + stream.below(4)).map(|_| inside(&mut stream, &domain, corner)).collect();
        let queries = queries(&mut stream, &Centres::from_rows(&centres).unwrap(), &domain);
        let before: Vec<String> =
            (0..stream.below(4)).map(|_| row(&mut stream, &centres[0], &domain, &hello)).collect();
        let more = row(&mut stream, &centres[0], &domain, &hello);
        let mut after = before.clone();
        after.insert(stream.below(before.len() as u64 + 1) as usize, more.clone());
        let [(was, rows, bad), (is, more_rows, more_bad), (alone, one, none)] =
            [before, after, vec![more]].map(|rows| asked(&server, mode, &hello, &rows, &queries));
        assert_eq!((rows + one, bad + none, one + none), (more_rows, more_bad, 1), "seed {seed}");
        left += none;
        for (i, query) in queries.iter().enumerate() {
            let change: Vec<i64> = is[i].iter().zip(&was[i]).map(|(a, b)| a - b).collect();
            assert_eq!(change, alone[i], "seed {seed}, {mode:?}: other rows moved, {query:?}");
            let mut rest = change.as_slice();
            let steps = steps(&query.clone().into(), &domain);
            for ((len, bits), sensitivity) in steps.into_iter().zip(query.sensitivity(&domain).unwrap().blocks()) {
                let (own, next) = rest.split_at(len);
                rest = next;
                let moved = own.iter().map(|x| (*x as f64).powi(2)).sum::<f64>().sqrt();
                let most = sensitivity * f64::from(bits).exp2() * (1.0 + 1e-9) + (len as f64).sqrt() / 2.0;
                assert!(moved <= most, "seed {seed}, {mode:?}: {moved} of {most}, {query:?}");
                largest = largest.max(moved / most);
            }
        }
    }
    println!("{left} of {tries} rows were left out; the largest part of a sensitivity is {largest}");
    assert!(largest > 0.99 && left > 0 && left < tries, "seed {seed}: {left} {largest}");
}

/// Rows that squares of doubles do not reach, which the server refuses to compute with, are the kernel's.
#[test]
fn noi_8_numbers_that_sql_cannot_square_stop_nothing() {
    let Some(server) = super::server() else { return };
    let hello = hello(Scaling::None);
    let centres = Centres::from_rows(&[vec![0.0, 0.0, 0.5, 0.0, 0.0], vec![1.0, 3.0, 0.0, 0.5, 0.0]]).unwrap();
    let all = queries(&mut Stream::new(92, b"veilsum sql neighbours  "), &centres, &hello.domain().unwrap());
    let means = vec![Moments { around: Some(vec![1e-180, 0.0, 0.0, 0.0, 0.0]) }.into()];
    let queries = [all, means].concat();
    let rows = ["(1e-200::float8, 1e-180::float8, 'x')".to_owned(), "(0.5, 3, 'y')".to_owned()];
    let [push, stream] = ["push", "stream"].map(|mode| asked(&server, &["--mode", mode], &hello, &rows, &queries));
    assert_eq!(push, stream);
}
