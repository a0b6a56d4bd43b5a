//! Plans, policies and tables from a seed.

use veilsum_cluster::{
    Algorithm, Centres, Clusters, OutOfBox, Query, Scaling,
    method::{Candidates, LocalRange, Scale, Seeding, Validity},
    privacy::{Noise, Unit},
    query::LocalSteps,
    sampling::Sampling,
};
use veilsum_node::{
    door::{self, Ask, Exact, Policy},
    loopback::toy_policy,
    plan::{Categorical, Column, Judge, PlanSpec},
    table::Missing,
};
use veilsum_proto::plan::Terms;
use veilsum_testkit::{cast::Cast, seeds::Dice};

/// What the coordinator does that no plan has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trick {
    /// It asks before the intermediary has counted.
    TooSoon,
    /// The question's bytes are none.
    Garbage,
    /// It asks for the row count.
    Count,
    /// One word more than the answer has.
    Longer,
    /// The first question of another plan.
    OtherPlan,
    /// It ends the run.
    Aborts,
    /// It says that the run is over, with a model that is none.
    NoModel,
}

/// One plan and what happens under it.
pub(crate) struct Case {
    pub cast: Cast,
    pub policy: Policy,
    /// Whether the operator agrees to a plan without noise.
    pub agreed: bool,
    /// What this site's own file says about missing values.
    pub missing: Option<Missing>,
    /// Before which question of the coordinator, and what.
    pub trick: Option<(u32, Trick)>,
    /// The first question of another plan.
    pub other: Vec<u8>,
    /// The coordinator tells the result. Its errors are reckoned from many draws where there is noise, which takes a while.
    pub finishes: bool,
    /// Frames come twice.
    pub twice: bool,
}

fn algorithm(dice: &mut Dice) -> Algorithm {
    let m = dice.of(&[1.1, 1.5, 2.0, 3.0]);
    let (epsilon, max_rounds) = (0.0, 1 + dice.below(4) as u32);
    let local = LocalSteps { most: 1 + dice.below(3) as u32, epsilon: 0.0 };
    match dice.below(7) {
        0 | 1 => Algorithm::Fcm { m, epsilon, max_rounds },
        2 => Algorithm::Kmeans { epsilon, max_rounds },
        3 => Algorithm::FfcmAvg1 { m, epsilon, max_rounds, local, powers: dice.one_in(2) },
        4 => Algorithm::FfcmAvg2 { m, epsilon, max_rounds, local },
        5 => Algorithm::Fkm { epsilon, max_rounds, min_rows: 1, local_steps: local.most, finish: 1 },
        _ => Algorithm::Describe { bins: 2 + dice.below(6) as u32 },
    }
}

fn columns(dice: &mut Dice) -> Vec<Column> {
    (0..1 + dice.below(3))
        .map(|i| {
            let lower = -5.0 + 5.0 * dice.unit();
            Column { name: format!("x{i}"), lower, upper: lower + dice.of(&[0.5, 1.0, 30.0, 1e4]) }
        })
        .collect()
}

fn seeding(dice: &mut Dice, k: u32, width: usize) -> Seeding {
    match dice.below(4) {
        0 => {
            let centres: Vec<Vec<f64>> = (0..k).map(|_| (0..width).map(|_| dice.unit()).collect()).collect();
            Seeding::Given { centres: Centres::from_rows(&centres).expect("centres") }
        }
        1 => Seeding::Candidates(Candidates { tries: 2, ..Candidates::usual(dice.below(9)) }),
        _ => Seeding::Uniform { seed: dice.below(9) },
    }
}

/// Any method part at all; whether it is one is for the plan to say.
pub(crate) fn work(dice: &mut Dice, noisy: bool) -> PlanSpec {
    let columns = columns(dice);
    let algorithm = algorithm(dice);
    let describes = matches!(algorithm, Algorithm::Describe { .. });
    let k = if describes { 1 } else { 1 + dice.below(4) as u32 };
    let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let categorical: Vec<Categorical> = (dice.one_in(4))
        .then(|| Categorical {
            column: "c".into(),
            categories: names(if dice.one_in(2) { &["a", "b"] } else { &["a", "b", "other"] }),
            weight: 1.0,
        })
        .into_iter()
        .collect();
    let start = if describes { Seeding::Uniform { seed: 1 } } else { seeding(dice, k, columns.len()) };
    let mut work = PlanSpec { categorical, ..PlanSpec::plain(columns, algorithm, k, start) };
    if dice.one_in(6) {
        work.recipe.clusters = Clusters { min: k, max: k + 1 };
        work.recipe.restarts = 1 + dice.below(2) as u32;
    }
    if dice.one_in(4) {
        work.recipe.preparation = Scale::Standard;
    }
    if dice.one_in(3) {
        let vectors = dice.one_in(2);
        work.recipe.validity = Validity { full: true, vectors, ..Validity::basic() };
    }
    if dice.one_in(10) {
        work.recipe.range = Some(LocalRange { most: 2, starts: 1, seed: 1 });
    }
    work.scaling = dice.of(&[Scaling::Box, Scaling::Box, Scaling::Box, Scaling::None]);
    work.out_of_box = dice.of(&[OutOfBox::Refuse, OutOfBox::Clip]);
    if dice.one_in(8) {
        work.judge = Judge::Intermediary;
    }
    if dice.one_in(10) {
        work.sampling = Some(Sampling { share: 0.75, seed: 5 });
    }
    if dice.one_in(3) {
        work.step_bits = Some(20);
    }
    if noisy {
        (work.step_bits, work.out_of_box) = (None, OutOfBox::Clip);
        let mut noise = Noise::usual(dice.of(&[0.05, 0.25, 1.0]), 200);
        noise.tau = dice.of(&[0.0, 0.25]);
        noise.absolute_rounds = dice.below(3) as u32;
        noise.retries = dice.below(3) as u32;
        if noise.retries == 2 {
            noise.unit = Unit::Person { rows: 2 };
        }
        work.recipe.noise = Some(noise);
    }
    work
}

/// What a policy may forbid, by public facts.
fn policy(dice: &mut Dice, unit: door::Unit) -> Policy {
    let mut policy = Policy { unit, ..toy_policy().policy };
    match dice.below(16) {
        0 => policy.nano_rho = Some(dice.below(300_000_000)),
        1 => policy.methods = Some(vec!["fcm".into()]),
        2 => policy.columns = Some(vec!["x0".into()]),
        3 => policy.max_rows = 10_000,
        4 => policy.floor.min_cohort = 4,
        5 => policy.floor.max_rounds = dice.below(8) as u32,
        6 => policy.exact = Exact::Never,
        7 => policy.ask = Ask::Always,
        8 => policy.unit = door::Unit::Person(3),
        _ => {}
    }
    policy
}

/// The case of a seed.
pub(crate) fn case(seed: u64) -> Case {
    let mut dice = Dice::new(seed);
    let identity = |i: u8| {
        let mut bytes = [i; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        std::sync::Arc::new(veilsum_proto::identity::Identity::from_seed(&bytes))
    };
    let names = ["one", "two", "three", "four", "five"];
    let noisy = dice.one_in(2);
    let cast = loop {
        let work = work(&mut dice, noisy);
        // Some of five sites are drawn.
        let sites = if work.sampling.is_some() { 5 } else { 3 + usize::from(dice.one_in(6)) };
        let identities = (0..sites as u8 + 2).map(|i| identity(i + 1)).collect();
        let slots = 2 + dice.below(6) as u16;
        let change = |terms: &mut Terms| {
            (terms.min_cohort, terms.slots) = (sites as u16, slots);
        };
        if work.check().is_ok()
            && let Ok(cast) = Cast::of(identities, &work, &names[..sites], change)
            && cast.federation.terms.check(&cast.federation.roster).is_ok()
        {
            break cast;
        }
    };
    let trick = dice.one_in(2).then(|| {
        let tricks = [
            Trick::TooSoon,
            Trick::Garbage,
            Trick::Count,
            Trick::Longer,
            Trick::OtherPlan,
            Trick::Aborts,
            Trick::NoModel,
        ];
        (dice.below(5) as u32, dice.of(&tricks))
    });
    let other = Query::fuzzy_sums(Centres::from_rows(&vec![vec![0.3; 2]; 2]).expect("centres"), 1.7);
    let other = veilsum_node::question::Question::Cluster(other.into()).to_bytes();
    let unit = match cast.federation.facts().gives {
        door::Gives::Noisy { unit, .. } => unit,
        door::Gives::Exact { .. } => door::Unit::Row,
    };
    Case {
        cast,
        policy: policy(&mut dice, unit),
        agreed: !dice.one_in(12),
        missing: dice.of(&[None, Some(Missing::LeaveOut)]),
        trick,
        other,
        finishes: !noisy || dice.one_in(4),
        twice: dice.one_in(10),
    }
}

/// What a table looks like beyond the usual.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Look {
    Usual,
    Outside,
    Holes,
    Unlisted,
    Zeros,
}

/// A table under a plan's header, with so many rows, as the text of a file.
pub(crate) fn table(dice: &mut Dice, work: &PlanSpec, rows: u64, look: Look) -> String {
    let header: Vec<&str> = work.headers().collect();
    let mut text = header.join(",") + "\n";
    for _ in 0..rows {
        let odd = look != Look::Usual && dice.one_in(3);
        let mut cells: Vec<String> = work.columns.iter().map(|column| number(dice, column, odd, look)).collect();
        let word = |dice: &mut Dice, list: &[String]| match (odd, look) {
            (true, Look::Unlisted) => "nobody-listed-this".to_owned(),
            (true, Look::Holes) => String::new(),
            _ => dice.of(list),
        };
        cells.extend(work.categorical.iter().map(|column| word(dice, &column.categories)));
        text += &(cells.join(",") + "\n");
    }
    text
}

fn number(dice: &mut Dice, column: &Column, odd: bool, look: Look) -> String {
    let (low, high) = (column.lower, column.upper);
    match (odd, look) {
        (true, Look::Outside) => dice.of(&[format!("{}", high + 1e6), format!("{}", low - 0.1), "-1e300".to_owned()]),
        (true, Look::Holes) => dice.of(&["", "NaN", "none"]).to_owned(),
        (true, Look::Zeros) => "0".to_owned(),
        _ => format!("{}", low + dice.unit() * (high - low)),
    }
}
