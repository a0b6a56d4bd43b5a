//! Whole masked federations on loopback, in this process: made-up sites, plans, runs, and the same conversation in plain sums.

use std::sync::Mutex;

use veilsum_cluster::{
    Algorithm, Centres, Domain, Outcome, Prepared, Recipe, Rows, Step, Totals, method::Seeding, pooled, random::Stream,
    sampling::Sampling,
};
use veilsum_node::{
    carrier::Carrier,
    error::Failure,
    loopback::{self, LoopbackConfig, LoopbackRun, LoopbackSite},
    method_session::{self, MethodSession, Turn},
    plan::{Column, Judge, PlanSpec},
    question::{self, Question, SumBounds},
    role::progress::Progress,
};

use crate::{
    federation::{Kit, World},
    memory::{Memory, Point},
    prelude::*,
};

/// Made-up sites of the given sizes in the unit square, the same for the same seed: rows around three corners for
/// `spread` 0.2, no structure for 1.
pub fn made_up(sizes: &[usize], spread: f64, seed: u64) -> Vec<(String, Rows)> {
    let mut stream = Stream::new(seed, b"veilsum integration test");
    let corners = [[0.2, 0.2], [0.8, 0.3], [0.5, 0.8]];
    let mut site = |(i, n): (usize, &usize)| {
        let near = |corner: f64, unit: f64| corner * (1.0 - spread) + spread * unit;
        let values = (0..*n).flat_map(|r| corners[(r + i) % 3].map(|c| near(c, stream.unit())));
        (format!("site-{}", i + 1), Rows::new(values.collect(), 2).expect("rows"))
    };
    sizes.iter().enumerate().map(&mut site).collect()
}

pub fn unit_square() -> Vec<Column> {
    ["x", "y"].map(|name| Column { name: name.into(), lower: 0.0, upper: 1.0 }).to_vec()
}

/// Largest absolute difference of two tables of one shape.
pub fn max_difference(a: &[Vec<f64>], b: &[Vec<f64>]) -> f64 {
    assert_eq!((a.len(), a[0].len()), (b.len(), b[0].len()));
    a.iter().flatten().zip(b.iter().flatten()).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

/// The same of centres in the unit box and those of an outcome.
pub fn apart(found: &[Vec<f64>], centres: &Centres) -> f64 {
    max_difference(found, &centres.rows().map(<[f64]>::to_vec).collect::<Vec<_>>())
}

pub fn fcm(columns: Vec<Column>, k: u32, epsilon: f64, max_rounds: u32, seeding: Seeding) -> PlanSpec {
    PlanSpec::plain(columns, Algorithm::Fcm { m: 2.0, epsilon, max_rounds }, k, seeding)
}

pub fn prepared(work: &PlanSpec, sites: &[(String, Rows)]) -> Vec<Prepared> {
    let domain = work.domain().expect("a box");
    sites.iter().map(|(_, rows)| Prepared::new(rows, &domain, work.out_of_box).expect("rows inside the box")).collect()
}

/// A site, the step at which it is cut off, and in which round of the method; 0 is the count of the rows.
pub type Lost = (usize, Point, u32);

/// A whole masked federation, recorded, without those that get lost; and how many sites are in each of its totals, in order. The links
/// are QUIC where nobody gets lost.
pub fn federate(sites: Vec<(String, Rows)>, work: &PlanSpec, lost: &[Lost]) -> (LoopbackRun, Vec<usize>) {
    federate_under(sites, work, lost, |_| {})
}

/// As [`federate`] under terms that are changed further.
pub fn federate_under(
    sites: Vec<(String, Rows)>,
    work: &PlanSpec,
    lost: &[Lost],
    change: impl FnOnce(&mut Terms) + Send + 'static,
) -> (LoopbackRun, Vec<usize>) {
    let (drawn, n) = (work.sampling.map(|sampling| sampling.count(sites.len())), sites.len());
    let terms = move |terms: &mut Terms| {
        if let Some(drawn) = drawn {
            terms.min_cohort = n as u16;
            terms.colluders = drawn.saturating_sub(2).min(n.saturating_sub(1) / 3).max(1) as u16;
        }
        change(terms);
    };
    counted(losing(lost, LoopbackConfig { terms: Box::new(terms), record: true, ..config(sites, work) }))
}

/// A federation on loopback under the toys' policy and the usual terms, in which nobody is missing.
pub fn config(sites: Vec<(String, Rows)>, work: &PlanSpec) -> LoopbackConfig {
    LoopbackConfig::new(sites.into_iter().map(LoopbackSite::from).collect(), work.clone())
}

/// In memory, without those that get lost.
pub fn losing(lost: &[Lost], config: LoopbackConfig) -> LoopbackConfig {
    if lost.is_empty() {
        return config;
    }
    let memory = Memory::default();
    let cut = |i: usize| lost.iter().find(|(site, ..)| site + 2 == i).map(|(_, at, round)| memory.cut(*at, *round));
    let parties: Vec<Memory> = (0..config.sites.len() + 2).map(|i| cut(i).unwrap_or_else(|| memory.clone())).collect();
    let carrier = move |i: usize| -> Arc<dyn Carrier> { Arc::new(parties[i].clone()) };
    LoopbackConfig { carrier: Box::new(carrier), ..config }
}

/// Runs a federation on a runtime of its own.
pub fn run(config: LoopbackConfig) -> LoopbackRun {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(loopback::run(config)).expect("a federation")
}

/// As [`run`], with the sizes of the totals.
pub fn counted(config: LoopbackConfig) -> (LoopbackRun, Vec<usize>) {
    let sizes = Arc::new(Mutex::new(Vec::new()));
    let seen = sizes.clone();
    let progress = move |p| {
        if let Progress::Round { sites, .. } = p {
            seen.lock().expect("sizes").push(sites);
        }
    };
    let run = run(LoopbackConfig { progress: Arc::new(progress), ..config });
    let sizes = sizes.lock().expect("sizes").clone();
    (run, sizes)
}

/// The same conversation in plain sums: `cohort(q)` has the places of the sites in the total of question q, from 1.
pub fn replay(work: &PlanSpec, sites: &[Prepared], cohort: impl Fn(u32) -> Vec<usize>) -> Outcome {
    let mut method = work.run(sites.len()).expect("a method");
    let mut step = method.next(None).expect("a first question");
    for number in 1.. {
        let query = match step {
            Step::Done(outcome) => return *outcome,
            Step::Ask(query) => query,
        };
        let there: Vec<Prepared> = cohort(number).into_iter().map(|i| sites[i].clone()).collect();
        let totals = Totals { rows: None, ..pooled::totals(&query, &there).expect("totals") };
        step = method.next(Some(&totals)).expect("a next question");
    }
    unreachable!("every method ends")
}

/// Runs a recipe masked over the real protocol, in memory and in virtual time, nobody missing: three sites or more.
///
/// # Errors
/// A [`Failure`] from the protocol or the method.
///
/// # Panics
/// Where a site cannot answer.
pub fn masked(
    recipe: &Recipe,
    domain: &Domain,
    sites: &[Prepared],
    sampling: Option<Sampling>,
) -> Result<Outcome, Failure> {
    let n = sites.len();
    let max_rows = sites.iter().map(|s| s.len() as u64).max().unwrap_or(1).next_power_of_two();
    let form = SumBounds::new(n, max_rows);
    let mut kit = Kit::new(n, |t| (t.min_cohort, t.slots, t.max_rows) = (n as u16, 64, max_rows));
    kit.floor.max_rounds = u32::MAX;
    let mut world = World::new(kit, 1);
    (world.keeps, world.together) = (false, true);
    let rows = sites.to_vec();
    world.answer = Box::new(move |site, asked| {
        let question = Question::from_bytes(&asked.query).expect("a question");
        let drawn = match (&question, sampling) {
            (Question::Drawn { number, .. }, Some(sampling)) => sampling.drawn(*number, n)[usize::from(site)],
            _ => true,
        };
        let terms = question::Terms { form, drawn, judged: None, noise: None };
        question::contribute(&question, &rows[usize::from(site)], &terms).expect("an answer")
    });
    let run = recipe.run(domain, n as u32).map_err(|e| Failure::input(e, ""))?;
    let terms = method_session::Terms { domain: domain.clone(), form, sampling, judge: Judge::Coordinator };
    let mut conversation = MethodSession::begin(run, terms)?;
    loop {
        let (question, words) = match conversation.turn() {
            Turn::Done(outcome) => return Ok((**outcome).clone()),
            Turn::Ask(question, layout) => (question.to_bytes(), layout.words()),
            Turn::Judge(_) => unreachable!("the coordinator judges"),
        };
        let (values, cohort, _) = world.ask(&question, words)?;
        conversation.take(&values, &cohort)?;
    }
}
