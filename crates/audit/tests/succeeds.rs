//! For every attack a plan under which it succeeds, and on which the audit says no; and the same plan with noise, under which no attack
//! is better than the account allows.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use serde::Deserialize;
use veilsum_audit::{
    own::{Answer, Audited, Knows, Site},
    table::ATTACKS,
};
use veilsum_cluster::{
    Algorithm, Centres, Clusters,
    method::{Scale, Seeding},
    privacy::Noise,
    random::Stream,
};
use veilsum_node::{
    agreed::Federation,
    door::{Account, Policy, Verdict, judge},
    loopback::{fresh, roster_of},
    plan::{Categorical, PlanSpec},
};
use veilsum_proto::plan::Terms;

use crate::{
    made::{LABEL, SEED, answer, audited, fcm, kmeans, noisy, plan_of, sites, terms_of, units},
    review::proposals_tell_nothing,
};

/// A plan that says too much, as `cases.toml` has it and explains it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) what: String,
    #[serde(default = "x_and_y")]
    columns: Vec<String>,
    method: Method,
    k: [u32; 2],
    start: Option<Vec<Vec<f64>>>,
    #[serde(default)]
    standard: bool,
    rows: Made,
    attack: String,
    knows: Option<String>,
    refused: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Method {
    Fcm(f64, u32),
    Kmeans(u32),
    Describe(u32),
}

/// Rows of three sites, of so many each.
#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum Made {
    Clumps(usize),
    /// Anywhere in the unit box.
    Anywhere(usize),
    /// Four columns of two values, of which some are rare.
    YesAndNo(usize),
    /// A fine column beside one of two values.
    FineAndCoarse(usize),
    /// A category that one row has.
    Rare(usize),
}

fn x_and_y() -> Vec<String> {
    ["x", "y"].map(str::to_owned).to_vec()
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: BTreeMap<String, Vec<Case>> = toml::from_str(include_str!("cases.toml")).unwrap();
    cases.remove("case").unwrap()
}

impl Case {
    fn work(&self) -> PlanSpec {
        let algorithm = match self.method {
            Method::Fcm(m, rounds) => fcm(m, rounds),
            Method::Kmeans(rounds) => kmeans(rounds),
            Method::Describe(bins) => Algorithm::Describe { bins },
        };
        let (colour, numbers): (Vec<&str>, Vec<&str>) =
            self.columns.iter().map(String::as_str).partition(|name| *name == "colour");
        let mut work = plan_of(units(&numbers), algorithm, self.k[0], None);
        let categories = ["red", "green", "blue"].map(str::to_owned).to_vec();
        let of_three = |name: &str| Categorical { column: name.into(), categories: categories.clone(), weight: 1.0 };
        work.categorical = colour.into_iter().map(of_three).collect();
        work.recipe.clusters = Clusters { min: self.k[0], max: self.k[1] };
        if let Some(centres) = &self.start {
            work.recipe.seeding = Seeding::Given { centres: Centres::from_rows(centres).unwrap() };
        }
        if self.standard {
            work.recipe.preparation = Scale::Standard;
        }
        work
    }

    fn sites(&self) -> Vec<Site> {
        let mut stream = Stream::new(SEED, LABEL);
        let mut three = |rows: usize, row: &dyn Fn(&mut Stream, usize) -> Vec<f64>| -> Vec<Site> {
            (0..3).map(|_| Site { values: (0..rows).map(|at| row(&mut stream, at)).collect() }).collect()
        };
        let one = |is: bool| f64::from(u8::from(is));
        match self.rows {
            Made::Clumps(rows) => sites(rows, SEED),
            Made::Anywhere(rows) => three(rows, &|stream, _| self.columns.iter().map(|_| stream.unit()).collect()),
            Made::YesAndNo(rows) => {
                three(rows, &|stream, _| [0.5, 0.4, 0.2, 0.1].map(|p| one(stream.unit() < p)).to_vec())
            }
            Made::FineAndCoarse(rows) => three(rows, &|stream, _| vec![stream.unit(), stream.unit().round()]),
            Made::Rare(rows) => {
                let mut all = three(rows, &|stream, at| vec![stream.unit(), one(at % 2 == 0), one(at % 2 == 1), 0.0]);
                all[0].values[0] = vec![0.5, 0.0, 0.0, 1.0];
                all
            }
        }
    }

    fn knows(&self) -> Option<Knows> {
        use Knows::{AllButFew, MostRows, NoRow, OtherSites};
        let named = |knows: &Knows| serde_json::to_value(knows).unwrap() == self.knows.clone().unwrap();
        self.knows.as_ref().map(|_| [NoRow, OtherSites, MostRows, AllButFew].into_iter().find(named).unwrap())
    }
}

/// What a site says to an operator who would agree to the plan.
fn agreed(case: &Case) -> Result<(), String> {
    let roster = roster_of(&fresh(3), &["a", "b", "c"]);
    let terms = terms_of(&case.work(), &case.sites());
    let terms = Terms { roster: roster.hash(), min_total_rows: 180, ..terms };
    let federation = Federation::new(roster, terms).unwrap();
    match judge(&federation.facts(), &Policy::default(), &Account::default(), None) {
        Verdict::No(why) => Err(veilsum_node::refusal::why(&why)),
        Verdict::Yes(_) | Verdict::NeedsAgreement(_) => Ok(()),
    }
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
        match (agreed(&case), &case.refused) {
            (Ok(()), None) => (),
            (Err(why), Some(words)) if why.contains(words) => (),
            (found, wanted) => failed.push(format!("{}: {found:?}, wanted {wanted:?}", case.what)),
        }
        let found = audited(case.work(), case.sites());
        take(&mut exact, &found);
        if !proposals_tell_nothing(&found) {
            failed.push(format!("{}: proposals", case.what));
        }
        if answer(&found, &case.attack, case.knows()) != Answer::Yes || !found.at_risk {
            failed.push(format!("{}: {} is no yes", case.what, case.attack));
        }
        // The usual spending of a plan.
        let work = noisy(case.work(), Some(Noise::usual(0.25, 120).from_anywhere()));
        if let Err(why) = work.check() {
            println!("not with noise: {why:?}");
            continue;
        }
        let found = audited(work, case.sites());
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
