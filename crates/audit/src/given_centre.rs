//! Membership by given first centres: two that nearly coincide stand beside a patient. The row that is there weighs 1 at the one and
//! nothing at the other, all others weigh alike at both, so the difference of two weights counts the rows in the pinhole. An
//! adversary that knows all other rows does better still: it compares the whole total with what it would be without the patient.
//!
//! In possibilistic c-means a row weighs by its distance to one centre alone, so that a centre is a window. One that nobody else is in
//! is a pinhole, and all centres of a plan may look through it.

use anyhow::Result;
use veilsum_cluster::{
    Centres,
    query::{TypicalSums, Typicality},
};

use crate::{
    account::{self, CONTROL, Honest, Neighbours, PROTECTION, sums},
    chance::{Population, Secret, auc},
    finding::{Attack, Context, Found},
    scene::EDGE,
};

/// What it is.
pub const ATTACK: Attack = Attack {
    name: "given-centre",
    shows: "given first centres beside a patient, or windows on him, tell whether he is there",
    needs: "a plan with first centres of the coordinator's choice",
    control: CONTROL,
    protection: PROTECTION,
    not_shown: "a person with several rows: r rows cost r² as much",
    run,
};
const COLUMNS: usize = 2;
const ROWS: usize = 150;
/// Between the two centres of a pair, in box units as the plan states them.
const APART: f64 = 1e-6;
/// Candidates of a question.
const PAIRS: usize = 3;
/// Windows on one patient.
const PINHOLES: usize = 4;

/// Puts the pairs beside candidates of whom half are there, and a centre beside one in the corner.
///
/// # Errors
/// Where a question cannot be answered.
fn run(&Context { seed, quick, .. }: &Context) -> Result<Found> {
    let sets = account::times(quick, 100);
    // The difference of two weights, as anybody can take it.
    let pairs = |rho: Option<f64>| {
        let (mut present, mut absent) = (Vec::new(), Vec::new());
        for set in 0..sets as u64 {
            let mut people = Population::new(seed.wrapping_add(set), COLUMNS, 3, 0.15);
            let rows = people.people(ROWS);
            let candidates: Vec<Vec<f64>> =
                rows[..PAIRS].iter().cloned().chain((0..PAIRS).map(|_| people.draw())).collect();
            let beside = |x: &Vec<f64>| vec![x[0] - APART * x[0].signum(), x[1]];
            for (kind, asked) in candidates.chunks(PAIRS).enumerate() {
                let centres: Vec<Vec<f64>> = asked.iter().flat_map(|x| [x.clone(), beside(x)]).collect();
                let query = sums(&centres, Some(2.0))?;
                // Each question is a plan of its own that spends all there is.
                let total = Honest::new(&rows)?.total(&query, rho, &[seed, set, kind as u64])?;
                let scores = (0..PAIRS).map(|i| total[2 * i] - total[2 * i + 1]);
                if kind == 0 { present.extend(scores) } else { absent.extend(scores) }
            }
        }
        Ok(auc(&present, &absent))
    };
    let mut people = Population::new(seed, COLUMNS, 3, 0.15);
    let rest = people.people(ROWS);
    let patient = vec![EDGE; COLUMNS];
    let (without, with) = (Honest::new(&rest)?, Honest::new(&[rest, vec![patient.clone()]].concat())?);
    let centres = Centres::from_rows(&vec![patient.clone(); PINHOLES])?;
    let pinholes = [TypicalSums { centres, m: 2.0, distance: 0.01, typicality: Typicality::Possibilistic }.into()];
    let queries = [sums(&[patient, vec![0.0; COLUMNS], vec![-0.5; COLUMNS]], Some(2.0))?];
    let worst = Neighbours { without: &without, with: &with, queries: &queries };
    let windows = Neighbours { queries: &pinholes, ..worst };
    let tries = account::times(quick, 1000);
    let mut measures = account::told("is one of three there, by a weight's difference", Secret::Row, pairs)?;
    measures.extend(account::told("is a patient in the corner there, all others known", Secret::Row, |rho| {
        worst.told_apart(rho, tries, seed)
    })?);
    measures.extend(account::told("is a patient in four pinholes there, all others known", Secret::Row, |rho| {
        windows.told_apart(rho, tries, seed)
    })?);
    let reached = measures[2].protected;
    Ok(Found::new(
        measures,
        vec![format!(
            "{sets} sets of {ROWS} rows; the worst case is at the bound ({reached} of {:.2} at rho 1): the bound is not loose",
            Secret::Row.bound(1.0)
        )],
    ))
}
