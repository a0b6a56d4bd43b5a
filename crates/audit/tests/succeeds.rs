//! For every attack a plan under which it succeeds, and on which the audit says no; and the same plan with noise, under which no attack
//! is better than the account allows.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use veilsum_audit::{
    own::{Answer, Audited, Knows, Site},
    table::ATTACKS,
};
use veilsum_cluster::{
    Algorithm, Centres, Recipe,
    method::{Scale, Seeding},
    privacy::Noise,
    random::Stream,
};
use veilsum_node::{
    agreed::Federation,
    loopback::{fresh, roster_of},
    plan::{Categorical, PlanSpec},
    release::{Account, may_agree},
};
use veilsum_proto::{plan::Terms, policy::Policy};

use crate::{
    made::{LABEL, SEED, answer, audited, fcm, kmeans, noisy, plan, plan_of, sites, units},
    review::proposals_tell_nothing,
};

/// A plan that says too much.
pub(crate) struct Case {
    /// What it is an example of.
    pub(crate) what: &'static str,
    work: PlanSpec,
    sites: Vec<Site>,
    /// The attack that succeeds, and what it knows.
    attack: &'static str,
    knows: Option<Knows>,
    /// What a site says to its operator in place of letting him agree; nothing where he may.
    refused: Option<&'static str>,
}

fn given(work: PlanSpec, centres: &[Vec<f64>]) -> PlanSpec {
    let recipe =
        Recipe { seeding: Seeding::Given { centres: Centres::from_rows(centres).unwrap() }, ..work.recipe.clone() };
    PlanSpec { recipe, ..work }
}

/// Anywhere in the unit box.
fn anywhere(rows: usize, columns: usize) -> Vec<Site> {
    let mut stream = Stream::new(SEED, LABEL);
    let mut row = || (0..columns).map(|_| stream.unit()).collect::<Vec<f64>>();
    (0..3).map(|_| Site { values: (0..rows).map(|_| row()).collect() }).collect()
}

/// Four columns of two values, of which some are rare.
fn yes_and_no(rows: usize) -> Vec<Site> {
    let mut stream = Stream::new(SEED, LABEL);
    let mut row = || [0.5, 0.4, 0.2, 0.1].map(|p| f64::from(u8::from(stream.unit() < p))).to_vec();
    (0..3).map(|_| Site { values: (0..rows).map(|_| row()).collect() }).collect()
}

/// A fine column beside one of two values.
fn fine_and_coarse(rows: usize) -> Vec<Site> {
    let mut all = anywhere(rows, 2);
    all.iter_mut().flat_map(|site| &mut site.values).for_each(|row| row[1] = row[1].round());
    all
}

/// A category that one row has.
fn rare(rows: usize) -> Vec<Site> {
    let mut all = anywhere(rows, 1);
    for site in &mut all {
        site.values.iter_mut().enumerate().for_each(|(at, row)| {
            row.extend([f64::from(u8::from(at % 2 == 0)), f64::from(u8::from(at % 2 == 1)), 0.0])
        });
    }
    all[0].values[0] = vec![0.5, 0.0, 0.0, 1.0];
    all
}

pub(crate) fn cases() -> Vec<Case> {
    let clumps = || sites(40, SEED);
    let case = |what, work, sites, attack, knows, refused| Case { what, work, sites, attack, knows, refused };
    let beside = [vec![0.7, 0.5], vec![0.700_001, 0.5], vec![0.1, 0.1]];
    let near_corner = [[0.6, 0.4], [0.8, 0.6], [0.65, 0.65], [0.8, 0.35], [0.1, 0.1]].map(|c| c.to_vec());
    let sweep = |work: PlanSpec, max: u32| {
        let recipe = Recipe { clusters: veilsum_cluster::Clusters { min: 2, max }, ..work.recipe.clone() };
        PlanSpec { recipe, ..work }
    };
    let standard = |work: PlanSpec| {
        let recipe = Recipe { preparation: Scale::Standard, ..work.recipe.clone() };
        PlanSpec { recipe, ..work }
    };
    let colour = Categorical {
        column: "colour".into(),
        categories: ["red", "green", "blue"].map(str::to_owned).to_vec(),
        weight: 1.0,
    };
    let with_colour = PlanSpec { categorical: vec![colour], ..plan_of(units(&["x"]), kmeans(6), 3, None) };
    vec![
        case(
            "more clusters than rows, and almost hard groups",
            plan(fcm(1.005, 1), 100, None),
            anywhere(40, 2),
            "presence",
            Some(Knows::NoRow),
            Some("twentieth of the rows"),
        ),
        case(
            "almost hard groups",
            plan(fcm(1.005, 6), 4, None),
            clumps(),
            "presence",
            Some(Knows::NoRow),
            Some("below 1.1"),
        ),
        case(
            "first centres beside a person",
            given(plan(fcm(2.0, 1), 3, None), &beside),
            clumps(),
            "presence",
            Some(Knows::NoRow),
            Some("names its first centres"),
        ),
        case(
            "first centres beside a person, chosen later",
            plan(fcm(2.0, 3), 3, None),
            clumps(),
            "chosen start",
            Some(Knows::NoRow),
            None,
        ),
        case(
            "a centre that is an outlier's record",
            plan(fcm(1.5, 20), 4, None),
            clumps(),
            "published record",
            None,
            None,
        ),
        case(
            "few rows that came between two runs",
            sweep(plan(fcm(2.0, 6), 2, None), 5),
            anywhere(40, 2),
            "records",
            Some(Knows::AllButFew),
            None,
        ),
        case(
            "columns of two values",
            plan_of(units(&["a", "b", "c", "d"]), fcm(2.0, 2), 2, None),
            yes_and_no(40),
            "possible rows",
            None,
            None,
        ),
        case(
            "one column, asked often",
            sweep(plan_of(units(&["x"]), fcm(1.5, 12), 2, None), 9),
            anywhere(40, 1),
            "value",
            Some(Knows::MostRows),
            None,
        ),
        case(
            "a column of two values beside a fine one",
            sweep(plan(fcm(2.0, 10), 2, None), 9),
            fine_and_coarse(40),
            "whole numbers",
            Some(Knows::OtherSites),
            None,
        ),
        case("a category that one row has", with_colour, rare(80), "few in a cell", None, None),
        case("rounds with hard groups", plan(kmeans(20), 5, None), anywhere(40, 2), "moving rows", None, None),
        case(
            "a description with many bins",
            plan(Algorithm::Describe { bins: 16 }, 1, None),
            clumps(),
            "few in a cell",
            None,
            None,
        ),
        case(
            "two descriptions with other bins",
            plan(Algorithm::Describe { bins: 16 }, 1, None),
            anywhere(40, 2),
            "other bins",
            None,
            None,
        ),
        case(
            "means and squares beside hard groups",
            standard(plan(kmeans(8), 3, None)),
            clumps(),
            "presence",
            Some(Knows::NoRow),
            None,
        ),
        case(
            "a second plan over the same rows",
            plan(fcm(1.3, 8), 3, None),
            clumps(),
            "two plans",
            Some(Knows::NoRow),
            None,
        ),
        case(
            "several centres near a lone row",
            given(plan(fcm(1.2, 1), 5, None), &near_corner),
            clumps(),
            "value",
            Some(Knows::MostRows),
            Some("names its first centres"),
        ),
        case(
            "a group of one row, whatever a site adds to it",
            given(plan(kmeans(1), 3, None), &beside[1..].iter().chain([&vec![0.1, 0.1]]).cloned().collect::<Vec<_>>()),
            clumps(),
            "few in a cell",
            None,
            Some("names its first centres"),
        ),
        case(
            "sums over all rows beside a far one",
            plan(fcm(1.05, 25), 3, None),
            clumps(),
            "presence",
            Some(Knows::NoRow),
            Some("below 1.1"),
        ),
        case(
            "weights of many questions that single out a row",
            sweep(plan(fcm(1.2, 10), 2, None), 5),
            anywhere(40, 2),
            "presence",
            Some(Knows::OtherSites),
            None,
        ),
        case(
            "rows that nobody declared, seen by other columns",
            sweep(plan_of(units(&["p", "q", "r", "s"]), fcm(2.0, 2), 2, None), 4),
            anywhere(40, 4),
            "records",
            Some(Knows::AllButFew),
            None,
        ),
        case(
            "a description of few rows",
            plan(Algorithm::Describe { bins: 16 }, 1, None),
            sites(12, SEED),
            "few in a cell",
            None,
            None,
        ),
    ]
}

/// What a site says to an operator who would agree to the plan.
fn agreed(case: &Case) -> Result<(), String> {
    let keys = fresh(3);
    let roster = roster_of(&keys, &["a", "b", "c"]);
    let terms = Terms { roster: roster.hash(), min_total_rows: 180, ..scene_terms(case) };
    let federation = Federation::new(roster, terms).unwrap();
    may_agree(&federation, &Policy::default(), &Account::default()).map_err(|why| why.to_string())
}

fn scene_terms(case: &Case) -> Terms {
    use veilsum_cluster::Rows;
    use veilsum_node::loopback::{LoopbackSite, default_terms};
    let rows = |site: &Site| LoopbackSite::new("site", Rows::new(site.values.concat(), site.values[0].len()).unwrap());
    default_terms(&case.sites.iter().map(rows).collect::<Vec<_>>(), &case.work)
}

/// What came of an attack over all plans: the worst.
type Worst = BTreeMap<&'static str, Answer>;

fn take(worst: &mut Worst, found: &Audited) {
    for tried in found.tried.iter().filter(|tried| tried.knows.is_none_or(|knows| knows != Knows::AllOthers)) {
        let answer = worst.entry(tried.attack).or_insert(Answer::NotApplicable);
        *answer = tried.answer.max(*answer);
    }
}

#[test]
fn every_attack_succeeds_on_an_exact_plan_and_keeps_to_the_account_with_noise() {
    println!("seed {SEED}");
    let only = std::env::var("VEILSUM_CASE").unwrap_or_default();
    let (mut exact, mut noise, mut failed) = (Worst::new(), Worst::new(), Vec::new());
    for case in cases().into_iter().filter(|case| case.what.contains(&only)) {
        println!("\n=== {}", case.what);
        match (agreed(&case), case.refused) {
            (Ok(()), None) => (),
            (Err(why), Some(words)) if why.contains(words) => (),
            (found, wanted) => failed.push(format!("{}: {found:?}, wanted {wanted:?}", case.what)),
        }
        let found = audited(case.work.clone(), case.sites.clone());
        take(&mut exact, &found);
        if !proposals_tell_nothing(&found) {
            failed.push(format!("{}: proposals", case.what));
        }
        if answer(&found, case.attack, case.knows) != Answer::Yes || !found.at_risk {
            failed.push(format!("{}: {} is no yes", case.what, case.attack));
        }
        // The usual spending of a plan.
        let work = noisy(case.work.clone(), Some(Noise::usual(0.25, 120).from_anywhere()));
        if let Err(why) = work.check() {
            println!("not with noise: {why:?}");
            continue;
        }
        let found = audited(work, case.sites.clone());
        take(&mut noise, &found);
        let bad = found.tried.iter().filter(|tried| tried.answer == Answer::Defect || tried.at_risk());
        failed.extend(bad.map(|tried| format!("{}: with noise {tried:?}", case.what)));
    }
    // The book's table says the same.
    let yes = |worst: &Worst, known: &Known| worst.get(&*known.by) == Some(&Answer::Yes);
    let known = known();
    for known in known.iter().filter(|_| only.is_empty()) {
        if known.succeeds != [yes(&exact, known), yes(&noise, known)] {
            failed.push(format!("the table of papers on {}: {exact:?} {noise:?}", known.by));
        }
    }
    if only.is_empty() {
        let listed: BTreeSet<&str> = known.iter().map(|known| &*known.by).collect();
        assert_eq!(exact.keys().copied().collect::<BTreeSet<_>>(), listed);
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// A line of the book's table of papers.
struct Known {
    /// The attack of `veilsum-audit plan`.
    by: String,
    /// The same on recorded runs, where there is one.
    also: Option<String>,
    /// On some exact plan, and with noise.
    succeeds: [bool; 2],
}

fn known() -> Vec<Known> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/attacks.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let line = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let said = |cell: &str| {
            assert!(["**succeeds**", "within the account", "nothing"].contains(&cell), "{line}");
            cell == "**succeeds**"
        };
        let quoted = |by: char| cells[3].split(by).nth(1).map(str::to_owned);
        Known { by: quoted('*').expect(line), also: quoted('`'), succeeds: [cells[4], cells[5]].map(said) }
    };
    text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| paper |")).map(line).collect()
}

#[test]
fn the_book_names_attacks_that_there_are() {
    let known = known();
    assert!(known.len() > 10);
    for name in known.iter().filter_map(|known| known.also.as_ref()) {
        assert!(ATTACKS.iter().any(|attack| attack.name == name), "{name}");
    }
}
