//! All sites but one collude, or all sites but one belong to the coordinator (Douceur 2002). The total less their parts
//! is the last site's sum, and the sums of a sweep give its records.

use anyhow::{Context as _, Result};
use veilsum_cluster::{Query, random::Stream};
use veilsum_proto::Rule;
use veilsum_testkit::kit::Kit;

use crate::{
    account::{self, Honest},
    finding::{Attack, Found, Measure, Rate},
    inconsistency::Field,
    lying_hub,
    releases::Releases,
    sweep_records::{self, hits},
    view::Recording,
};

/// What it is.
pub const ATTACK: Attack = Attack {
    name: "collusion-sybil",
    shows: "all sites but one collude, or are the coordinator's own",
    needs: "the coordinator's view and the inputs of all sites but one",
    control: "a recorded sweep behind masks, exact; and a roster of the coordinator's own making",
    protection: "the last site's own share of the noise [NOI-3], which is half of what the plan counts on; a signed roster of whom \
                     the owner agreed on [ROS-*], to which every key exchange is held [KEX-*]",
    not_shown: "the last site's sums: with exact totals they are the coalition's, with noise all but its own share",
    run: |c| run(c.sweep()?, c.seed),
};
const LABEL: &[u8; 24] = b"veilsum audit coalitionv";
/// Strangers that are tried.
const SYBILS: usize = 20;

/// Runs the attack on the totals of a recorded sweep less the inputs of a coalition, and tries strangers on a real site.
///
/// # Errors
/// Where a run fails.
pub fn run(recording: &Recording, seed: u64) -> Result<Found> {
    let releases = Releases::of(recording.rounds.iter().map(|r| &r.query)).context("not a sweep of fuzzy c-means")?;
    let last = recording.truth.len() - 1;
    // The coalition holds the coordinator's view and the inputs of all sites but the last.
    let observed: Vec<f64> = recording
        .rounds
        .iter()
        .flat_map(|r| {
            let mut left = r.total.clone();
            for own in &r.plain[..last] {
                left.iter_mut().zip(&own.values).for_each(|(l, x)| *l -= x);
            }
            left
        })
        .collect();
    let (truth, mut stream) = (&recording.truth[last], Stream::new(seed, LABEL));
    let mut attacked = |observed: &[f64], tries: usize| {
        let most = recording.max_rows as usize;
        let guess = sweep_records::attack(&releases, observed, most, tries, &mut stream);
        guess.context("nothing was released")
    };
    let guess = attacked(&observed, sweep_records::TRIES)?;
    let (found, error) = hits(truth, &guess.records);
    let with = Rate { hit: found, of: truth.len() as u64 };

    // The same questions with noise: of two shares that were to be unknown one is left, so that the account counts twice.
    let rows: Vec<Vec<f64>> = truth.iter().map(<[f64]>::to_vec).collect();
    let (honest, mut measures) = (Honest::new(&rows)?, Vec::new());
    for rho in account::ACCOUNTS {
        let queries: Vec<&Query> = recording.rounds.iter().flat_map(|r| &r.query.queries).collect();
        let part = Some(2.0 * rho / queries.len() as f64);
        let mut observed = Vec::new();
        for (i, query) in queries.iter().enumerate() {
            let draw = [seed, i as u64];
            observed.extend(match query {
                Query::FuzzySums(q) => {
                    let centres: Vec<Vec<f64>> = q.centres.rows().map(<[f64]>::to_vec).collect();
                    let mut total = honest.total(&account::sums(&centres, Some(q.m))?, part, &draw)?;
                    // Its squares are no number of the other question.
                    total.pop();
                    total.rotate_left(centres.len());
                    total
                }
                other => honest.total(other, part, &draw)?,
            });
        }
        let guess = attacked(&observed, 2)?;
        let chance = sweep_records::by_chance(rows.len(), guess.records.len() / 2);
        let left = Rate { hit: hits(truth, &guess.records).0, of: with.of };
        measures.push(Measure::rates(format!("records of the last site within 1e-3, rho {rho}"), with, left, chance));
    }

    let field = std::rc::Rc::new(Field::new(seed, 3, 10)?);
    let mut hub = lying_hub::hub(Kit::new(3, |terms| terms.max_rows = field.max_rows), seed, field.answers());
    let refused = lying_hub::strangers(&mut hub, 0, SYBILS)?;
    let joined = Rate { hit: u64::from(refused.is_none()), of: 1 };
    measures.push(Measure::rates("directories of strangers that a site takes", Rate { hit: 1, of: 1 }, joined, 0.0));
    Ok(Found::new(
        measures,
        vec![
            format!("control: {} tries, largest error {error:.1e}, N is found to {:.3}", guess.tries, guess.count),
            format!("strangers are refused under {}", refused.map_or("nothing", Rule::name)),
        ],
    ))
}
