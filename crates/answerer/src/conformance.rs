//! The test that an answerer keeps to the contract: generated questions of every kind that it lists, on rows that both sides have,
//! word for word against this project's own kernel; and lines that the contract does not have.

use veilsum_cluster::{
    Batch, Centres, Domain, OutOfBox, Prepared, Query, Rows, Scaling, Transform,
    query::{
        Bracket, FuzzySums, FuzzyValidation, Histogram, LocalFuzzy, LocalMeans, LocalSteps, Margins, Moments, Pull,
        ShapeModel, ShapedShifts, ShapedSums, Shifts, TypicalSums, Typicality, Validation,
    },
    random::Stream,
};

use crate::{
    contract::{
        Ask, Categorical, Column, FromAnswerer, FromSite, Hello, KINDS, OTHER, PROTOCOL, Ready, RefusalCode, blocks_of,
        kind_of,
    },
    fault::Fault,
    held::{Held, line},
    process::{Launch, Process},
    rows,
};

/// Words of an m other than 2, and of logarithms, may differ by so many steps: powers differ in their last bits between machines.
const POWERS: u64 = 4;
/// And by so much more of the block's bound, 2^-`ROW_BITS`, for each row: what the kernel's own powers may be off.
const ROW_BITS: i32 = 47;

/// One line of the table of results.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// What was tried.
    pub what: String,
    /// `Ok` with what was seen, `Err` with what was wrong.
    pub result: Result<String, String>,
}

/// The plan of the example.
pub fn hello(scaling: Scaling, out_of_box: OutOfBox) -> Hello {
    let column = |name: &str, lower, upper| Column { name: name.to_owned(), lower, upper };
    let names = |names: [&str; 3]| names.map(str::to_owned).to_vec();
    Hello {
        protocol: PROTOCOL,
        columns: vec![column("age", 0.0, 120.0), column("bmi", 10.0, 60.0), column("Blood \"sugar\"", -5.0, 5.0)],
        categorical: vec![Categorical {
            column: "smoker".into(),
            categories: names(["never", "it's over", "yes"]),
            one: 0.5,
        }],
        scaling,
        out_of_box,
        noise: false,
    }
}

/// Rows of the example, as text in the order of [`hello`]: many values with many digits, and rows that occur twice.
pub fn example(rows: usize) -> Vec<Vec<String>> {
    let mut stream = Stream::new(16, b"answerer conformance set");
    let categories = &hello(Scaling::Box, OutOfBox::Refuse).categorical[0].categories;
    let mut all: Vec<Vec<String>> = Vec::with_capacity(rows);
    for at in 0..rows {
        if at % 50 == 49 {
            all.push(all[at / 2].clone());
            continue;
        }
        let group = at % 3;
        let [a, b] = stream.normal_pair();
        let age = (30.0 + 20.0 * group as f64 + 8.0 * a).clamp(0.0, 120.0).round();
        let bmi = (22.0 + 4.0 * group as f64 + 2.0 * b + 0.01 * a).clamp(10.0, 60.0);
        let sugar = (stream.unit() - 0.5) * 8.0;
        all.push(vec![age.to_string(), bmi.to_string(), sugar.to_string(), categories[(group + at / 7) % 3].clone()]);
    }
    all
}

/// The header of a file of the example.
pub fn header() -> Vec<String> {
    hello(Scaling::Box, OutOfBox::Refuse).names().map(str::to_owned).collect()
}

/// The rows of such a file as [`check`] takes them.
///
/// # Errors
/// A sentence that names the row, counted from 1, and none of its values.
pub fn rows_of<'a>(cells: impl IntoIterator<Item = Vec<&'a str>>) -> Result<Rows, String> {
    let hello = hello(Scaling::Box, OutOfBox::Refuse);
    let categories = &hello.categorical[0].categories;
    let mut values = Vec::new();
    for (at, row) in cells.into_iter().enumerate() {
        let wrong = || format!("row {} is not one of the example", at + 1);
        let (numbers, name) = row.split_at_checked(hello.columns.len()).ok_or_else(wrong)?;
        for cell in numbers {
            values.push(cell.parse::<f64>().map_err(|_| wrong())?);
        }
        let [name] = name else { return Err(wrong()) };
        let place = categories.iter().position(|category| category == name).ok_or_else(wrong)?;
        values.extend((0..categories.len()).map(|at| f64::from(u8::from(at == place))));
    }
    Rows::new(values, hello.columns.len() + categories.len()).map_err(said)
}

/// Tries an answerer that has these rows of the example's columns: numbers, then an indicator for every category, n x 6.
pub fn check(launch: &Launch, rows: &Rows) -> Vec<Tried> {
    let exact = |scaling| Ok((hello(scaling, OutOfBox::Refuse), rows.clone()));
    let plans = [
        ("box", exact(Scaling::Box)),
        ("none", exact(Scaling::None)),
        ("direction", exact(Scaling::Direction)),
        ("noise", noisy(rows, false)),
        ("noise, other", noisy(rows, true)),
    ];
    let mut all = Vec::new();
    for (name, plan) in plans {
        let lines = plan.and_then(|(hello, rows)| conversation(launch, &hello, &rows));
        let lines = lines.unwrap_or_else(|why| vec![tried("begins", Err(why))]);
        all.extend(lines.into_iter().map(|one| Tried { what: format!("{name}: {}", one.what), ..one }));
    }
    all.push(tried("fingerprint: another order", other_order(launch)));
    all.push(tried("fingerprint: in a box that clips", in_the_box(launch, rows)));
    all.extend(strange(launch));
    all
}

fn tried(what: impl Into<String>, result: Result<String, String>) -> Tried {
    Tried { what: what.into(), result }
}

/// A plan with noise whose list of categories lacks one, and the rows as they count there: those that have it are left out, or are `other`
/// ([NOI-8]).
fn noisy(rows: &Rows, other: bool) -> Result<(Hello, Rows), String> {
    let mut hello = Hello { noise: true, ..hello(Scaling::Box, OutOfBox::Clip) };
    // Some rows are outside.
    hello.columns[0].upper = 60.0;
    let categories = &mut hello.categorical[0].categories;
    categories.truncate(2);
    categories.extend(other.then(|| OTHER.to_owned()));
    let columns = hello.columns.len() + hello.categorical[0].categories.len();
    let counts = |row: &&[f64]| other || row.last() == Some(&0.0);
    let values = rows.iter().filter(counts).flat_map(|row| row[..columns].to_vec()).collect();
    Ok((hello, Rows::new(values, columns).map_err(said)?))
}

/// What is said of the rows at once; nothing where this is not offered.
fn ready(launch: &Launch, hello: Hello) -> Result<Option<Ready>, String> {
    match Held::start(launch.clone(), hello) {
        Err(Fault::Refused(_, refusal)) if refusal.code == RefusalCode::Kind => Ok(None),
        begun => begun.map(|held| Some(held.ready().clone())).map_err(said),
    }
}

/// Whether the rows are known again where columns and categories come in another order.
fn other_order(launch: &Launch) -> Result<String, String> {
    let first = hello(Scaling::Box, OutOfBox::Refuse);
    let mut other = first.clone();
    other.columns.reverse();
    other.categorical[0].categories.reverse();
    let (Some(first), Some(other)) = (ready(launch, first)?, ready(launch, other)?) else {
        return Ok("not offered".into());
    };
    let (first, other) = (first.fingerprint, other.fingerprint);
    let mut back = other.columns;
    let numbers = back.len() - 1;
    back[..numbers].reverse();
    match back == first.columns {
        _ if other.rows != first.rows => Err("the fingerprint of the rows depends on the order in `hello`".into()),
        false => Err("a column's fingerprint depends on the order in `hello`".into()),
        true => Ok("the same".into()),
    }
}

/// Whether the rows are known again where the plan clips them into a narrow box.
fn in_the_box(launch: &Launch, rows: &Rows) -> Result<String, String> {
    let wide = hello(Scaling::Box, OutOfBox::Refuse);
    let mut narrow = Hello { out_of_box: OutOfBox::Clip, ..wide.clone() };
    for (at, column) in narrow.columns.iter_mut().enumerate() {
        // Most rows are outside.
        (column.lower, column.upper) = (rows.row(0)[at], rows.row(0)[at] + 1.0);
    }
    let (Some(wide), Some(narrow)) = (ready(launch, wide)?, ready(launch, narrow)?) else {
        return Ok("not offered".into());
    };
    if narrow.fingerprint != wide.fingerprint {
        return Err("a fingerprint depends on the bounds".into());
    }
    Ok("the same".into())
}

fn said(what: impl std::fmt::Display) -> String {
    what.to_string()
}

/// All questions of one scaling.
fn conversation(launch: &Launch, hello: &Hello, rows: &Rows) -> Result<Vec<Tried>, String> {
    let domain = hello.domain().map_err(said)?;
    let prepared = Prepared::new(rows, &domain, hello.out_of_box).map_err(said)?;
    let mut held = match Held::start(launch.clone(), hello.clone()) {
        // An answerer need not offer everything, if it says so.
        Err(Fault::Refused(_, refusal)) if refusal.code == RefusalCode::Kind => {
            return Ok(vec![tried("begins", Ok(format!("not offered: {}", refusal.message)))]);
        }
        begun => begun.map_err(said)?,
    };
    let ready = held.ready().clone();
    let lists = |kind: &str| ready.kinds.iter().any(|listed| listed == kind);
    let same = if ready.rows == rows.len() as u64 {
        Ok(format!("{} {}", ready.name, ready.version))
    } else {
        Err("it has another number of rows than the file".to_owned())
    };
    let mut all = vec![tried("rows", same)];
    let unknown: Vec<&String> = ready.kinds.iter().filter(|kind| !KINDS.contains(&kind.as_str())).collect();
    if !unknown.is_empty() {
        all.push(tried("kinds", Err(format!("it lists kinds that there are not: {unknown:?}"))));
    }
    let questions = questions(&domain, rows, &prepared);
    let answered = |batch: &Batch| batch.queries.iter().all(|query| lists(kind_of(query)));
    for kind in &ready.kinds {
        let about = |batch: &Batch| batch.queries.iter().any(|query| kind_of(query) == kind);
        let of = questions.iter().filter(|(batch, _)| about(batch) && answered(batch));
        let compared: Result<Vec<(usize, u64)>, String> =
            of.map(|(batch, fine)| compare(&mut held, &domain, &prepared, batch, *fine)).collect();
        let result = compared.map(|compared| {
            let (asked, words) = (compared.len(), compared.iter().map(|(words, _)| words).sum::<usize>());
            match compared.iter().map(|(_, apart)| *apart).max() {
                None => "not tried: no question of this kind is generated".to_owned(),
                Some(0) => format!("{asked} questions, {words} words, all the same"),
                Some(worst) => format!("{asked} questions, {words} words, {worst} steps apart at most"),
            }
        });
        all.push(tried(kind, result));
    }
    if !lists("fuzzy_sums") {
        all.push(tried("kinds", Ok("fuzzy_sums is not among them: few plans can be answered".to_owned())));
    }
    all.push(match held.end() {
        Some(0) => tried("end", Ok("exit code 0".into())),
        ended => tried("end", Err(format!("it does not exit with 0 ({ended:?})"))),
    });
    Ok(all)
}

/// Number of words, and how far they are apart at most.
fn compare(
    held: &mut Held,
    domain: &Domain,
    rows: &Prepared,
    batch: &Batch,
    fine: i32,
) -> Result<(usize, u64), String> {
    let layout = batch.layout(domain).map_err(said)?;
    // Steps as a plan would have them: 2^-fine of a row's bound.
    let steps: Vec<(usize, i32)> =
        layout.iter().map(|block| (block.len, fine - block.bound.max(1e-300).log2().ceil() as i32)).collect();
    let blocks = blocks_of(batch, domain, &steps, rows.len() as u64).map_err(said)?;
    let expected = rows::words(batch, rows, &blocks).map_err(|e| e.message)?;
    let words = held.words(batch, &steps).map_err(said)?;
    let powers = batch.queries.iter().any(uses_powers);
    let apart = POWERS + (rows.len() as f64 * f64::from(fine - ROW_BITS).exp2()) as u64;
    let mut worst = 0;
    let mut pairs = words.iter().zip(&expected);
    for block in &blocks {
        let allowed = if powers || block.name == "entropy" { apart } else { 0 };
        for (at, (word, expected)) in pairs.by_ref().take(block.len).enumerate() {
            let difference = word.abs_diff(*expected);
            if difference > allowed {
                let kind = batch.kind();
                return Err(format!(
                    "{kind}: entry {at} of {:?} is {difference} steps of 2^-{} off",
                    block.name, block.fraction_bits
                ));
            }
            worst = worst.max(difference);
        }
    }
    Ok((words.len(), worst))
}

fn uses_powers(query: &Query) -> bool {
    match query {
        Query::FuzzySums(FuzzySums { m, .. })
        | Query::FuzzyValidation(FuzzyValidation { m, .. })
        | Query::Validation(Validation { m, .. }) => *m != 2.0,
        other => ["local_fuzzy", "shifts", "typical_sums", "shaped_sums", "shaped_shifts"].contains(&other.kind()),
    }
}

/// Questions with the precision in which they are asked.
fn questions(domain: &Domain, rows: &Rows, prepared: &Prepared) -> Vec<(Batch, i32)> {
    let mut stream = Stream::new(61, b"answerer conformance set");
    let d = domain.columns();
    let mut inside = |domain: &Domain, k: usize| {
        let one = |at: usize, stream: &mut Stream| {
            let (low, high) = domain.working_interval(at % d);
            low + (high - low) * stream.unit()
        };
        let values: Vec<f64> = (0..k * d).map(|at| one(at, &mut stream)).collect();
        Centres::new(k, d, values).ok()
    };
    // Two centres on rows, one of them twice; they are equal bit for bit only where the answerer scales as it should.
    let working = prepared.packed().to_rows();
    let on = [0, rows.len() / 2, 0].map(|at| working.row(at.min(rows.len().saturating_sub(1))).to_vec());
    let (mut centres, mut batches) = (Vec::new(), Vec::new());
    centres.extend([1, 2, 3, 7].into_iter().filter_map(|k| inside(domain, k)));
    centres.extend(Centres::from_rows(&on));
    for of in &centres {
        for m in [2.0, 1.5, 3.0] {
            for fine in [30, 50] {
                batches.push((at(of, m), fine));
            }
        }
        batches.extend(hard(of).into_iter().map(|query| (Batch::from(query), 40)));
        batches.extend(rarer(of, domain).into_iter().map(|query| (Batch::from(query), 30)));
    }
    batches.extend(columns(domain).into_iter().map(|query| (Batch::from(query), 40)));
    // Two transforms: of every column by itself, and a triangle.
    let identity = Transform::identity(domain);
    let middle: Vec<f64> =
        identity.lower.iter().zip(&identity.upper).map(|(low, high)| f64::midpoint(*low, *high)).collect();
    let factor: Vec<f64> = (0..d).map(|at| 0.5 + 0.3 * at as f64).collect();
    let upper = identity.upper.iter().zip(&middle).map(|(high, middle)| middle + 0.9 * (high - middle)).collect();
    let alone = Transform { shift: middle.clone(), factor, upper, ..identity.clone() };
    let line = |row: usize| (0..=row).map(move |at| if at == row { 0.8 } else { 0.05 * (1 + at) as f64 });
    let mixed = Transform { shift: middle, factor: (0..d).flat_map(line).collect(), ..identity };
    for transform in [alone, mixed] {
        let Ok(moved) = transform.domain(domain) else { continue };
        if let Some(of) = inside(&moved, 4) {
            let queries = [at(&of, 2.0).queries, hard(&of), columns(&moved)].concat();
            for query in queries {
                batches.push((Batch { transform: Some(transform.clone()), queries: vec![query] }, 40));
            }
        }
    }
    batches
}

/// The questions of fuzzy methods at these centres, several in one batch.
fn at(of: &Centres, m: f64) -> Batch {
    let centres = || of.clone();
    Batch {
        transform: None,
        queries: vec![
            Query::fuzzy_sums(centres(), m),
            FuzzyValidation { centres: centres(), m }.into(),
            Validation { centres: centres(), m, vectors: true }.into(),
            Validation { centres: centres(), m, vectors: false }.into(),
        ],
    }
}

/// The questions of hard groups.
fn hard(of: &Centres) -> Vec<Query> {
    let step = LocalMeans { centres: of.clone(), local: LocalSteps::ONE, min_rows: 1, nearest: false };
    vec![
        step.clone().into(),
        LocalMeans { local: LocalSteps { most: 3, epsilon: 0.0 }, ..step.clone() }.into(),
        LocalMeans { min_rows: 5, nearest: true, ..step }.into(),
    ]
}

/// Questions that few methods ask.
fn rarer(of: &Centres, domain: &Domain) -> Vec<Query> {
    let (k, d) = (of.k(), of.columns());
    let centres = || of.clone();
    let local = LocalFuzzy { centres: centres(), m: 2.0, local: LocalSteps::ONE, pull: Pull::Powers };
    let triangle = |row: usize| (0..=row).map(move |at| if at == row { 0.04 } else { 0.001 });
    let covariances: Vec<f64> = (0..k).flat_map(|_| (0..d).flat_map(triangle)).collect();
    let shaped = |model| ShapedSums { centres: centres(), covariances: covariances.clone(), model, floor: 1e-4 };
    let typical = |typicality| TypicalSums { centres: centres(), m: 2.0, distance: 0.3, typicality };
    let shifts = |m| Shifts { centres: centres(), m, typical: None, middle: false, clip: 0.2, round: 1 };
    let pulling = |model| ShapedShifts { clusters: shaped(model), clip: 0.2, round: 1 };
    let all: [Query; 9] = [
        local.clone().into(),
        LocalFuzzy { pull: Pull::Nearest, ..local }.into(),
        shaped(ShapeModel::GustafsonKessel { m: 2.0 }).into(),
        shaped(ShapeModel::Mixture { weights: vec![1.0 / k as f64; k] }).into(),
        pulling(ShapeModel::GustafsonKessel { m: 2.0 }).into(),
        typical(Typicality::Noise).into(),
        typical(Typicality::Possibilistic).into(),
        shifts(Some(2.0)).into(),
        shifts(None).into(),
    ];
    // A centre of another scaling may lie where such a question is not asked.
    all.into_iter().filter(|query| Batch::from(query.clone()).check(domain).is_ok()).collect()
}

/// Questions about columns.
fn columns(domain: &Domain) -> Vec<Query> {
    let d = domain.columns();
    let middle = |at: usize| {
        let (low, high) = domain.working_interval(at);
        f64::midpoint(low, high)
    };
    let bracket = |at: usize| {
        let (lower, upper) = domain.working_interval(at);
        Bracket { column: at as u32, lower, upper: if at == 1 { middle(1) } else { upper } }
    };
    vec![
        Moments { around: None }.into(),
        Moments { around: Some((0..d).map(middle).collect()) }.into(),
        Histogram { brackets: (0..d).map(bracket).collect(), bins: 7 }.into(),
        Histogram { brackets: vec![bracket(1)], bins: 64 }.into(),
        Margins { bins: 16 }.into(),
    ]
}

/// What an answerer does with lines that the contract does not have.
fn strange(launch: &Launch) -> Vec<Tried> {
    let greeting = hello(Scaling::Box, OutOfBox::Refuse);
    let good = line(&FromSite::Hello(greeting.clone()));
    let version = line(&FromSite::Hello(Hello { protocol: PROTOCOL + 1, ..greeting.clone() }));
    let mut other = greeting.clone();
    other.columns[0].name = "no such column".into();
    let column = line(&FromSite::Hello(other));
    let centres = Centres::new(1, 6, vec![0.1; 6]).ok();
    let question = centres.map(|centres| Batch::from(Query::fuzzy_sums(centres, 2.0)));
    let ask = |question| line(&FromSite::Ask(Ask { id: 9, question, blocks: vec![] }));
    let early = question.map(ask).unwrap_or_default();
    let unknown =
        br#"{"type":"ask","id":4,"question":{"transform":null,"queries":[{"no_such_question":{}}]},"blocks":[]}"#
            .to_vec();
    use RefusalCode::{Columns, Protocol, Version};
    let cases: [(&str, Vec<Vec<u8>>, RefusalCode); 8] = [
        ("bytes that are no JSON", vec![vec![0xff, 0xfe, 0x00, b'{']], Protocol),
        ("an object of another form", vec![br#"{"type":"hello","protocol":1}"#.to_vec()], Protocol),
        ("a question before `hello`", vec![early.clone()], Protocol),
        ("another version", vec![version], Version),
        ("a column that is not there", vec![column], Columns),
        ("a second `hello`", vec![good.clone(), good.clone()], Protocol),
        ("an unknown question", vec![good.clone(), unknown], Protocol),
        ("blocks that are not the question's", vec![good.clone(), early], Protocol),
    ];
    let one = |(what, lines, code)| tried(format!("strange: {what}"), refused(launch, lines, code));
    let ends = tried("strange: its input ends", ends(launch, &good));
    cases.iter().map(|(what, lines, code)| one((what, lines, *code))).chain([ends]).collect()
}

/// Whether the last of these lines is refused with this code, and the conversation goes on.
fn refused(launch: &Launch, lines: &[Vec<u8>], code: RefusalCode) -> Result<String, String> {
    let mut process = Process::start(launch).map_err(said)?;
    let mut right = false;
    for (at, line) in lines.iter().enumerate() {
        process.say(line.clone());
        let heard = process.hear(1 << 20, launch.start).map_err(said)?;
        match serde_json::from_slice(&heard) {
            Ok(FromAnswerer::Error(refusal)) if at + 1 == lines.len() => right = refusal.code == code,
            Ok(FromAnswerer::Error(refusal)) => return Err(format!("it refuses too early: {}", refusal.message)),
            Ok(FromAnswerer::Ready(_)) if at + 1 < lines.len() => {}
            Ok(_) => return Err("it does not refuse".into()),
            Err(_) => return Err("its line is no object of the contract".into()),
        }
    }
    process.say(line(&FromSite::End));
    match process.end() {
        Some(0) if right => Ok("refused".into()),
        Some(0) => Ok(format!("refused, with another code than {code:?}")),
        _ => Err("it does not end in good order after that".into()),
    }
}

/// Whether it ends when nobody speaks to it any more.
fn ends(launch: &Launch, hello: &[u8]) -> Result<String, String> {
    let mut process = Process::start(launch).map_err(said)?;
    process.say(hello.to_vec());
    process.hear(1 << 20, launch.start).map_err(said)?;
    process.end().map(|code| format!("exit code {code}")).ok_or_else(|| "it goes on for more than 5 s".into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_generated_question_is_one_that_may_be_asked() {
        for scaling in [Scaling::Box, Scaling::None, Scaling::Direction] {
            let domain = hello(scaling, OutOfBox::Refuse).domain().unwrap();
            let rows =
                Rows::new([[30.0, 20.0, 1.0, 1.0, 0.0, 0.0], [60.0, 30.0, -1.0, 0.0, 0.0, 1.0]].concat(), 6).unwrap();
            let prepared = Prepared::new(&rows, &domain, OutOfBox::Refuse).unwrap();
            let questions = questions(&domain, &rows, &prepared);
            questions.iter().for_each(|(batch, _)| assert_eq!(batch.check(&domain), Ok(()), "{batch:?}"));
            let kinds: BTreeSet<&str> =
                questions.iter().flat_map(|(batch, _)| batch.queries.iter().map(kind_of)).collect();
            for kind in rows::additive() {
                assert!(kinds.contains(kind), "{kind}");
            }
        }
    }

    #[test]
    fn the_example_lies_in_its_box_and_has_rows_twice() {
        let rows = example(200);
        let bounds = hello(Scaling::Box, OutOfBox::Refuse).columns;
        for row in &rows {
            for (cell, column) in row.iter().zip(&bounds) {
                assert!((column.lower..=column.upper).contains(&cell.parse::<f64>().unwrap()));
            }
        }
        assert_eq!(rows[49], rows[24]);
    }
}
