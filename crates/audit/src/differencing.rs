//! Totals over changing cohorts are equations about single sites (So et al., AAAI 2023, on why a secure sum of many
//! rounds needs more than secure rounds).

use std::{collections::BTreeMap, rc::Rc, time::Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use veilsum_cluster::{Batch, Centres, Query, random::Stream};
use veilsum_node::question::Question;
use veilsum_proto::{Rule, plan::Terms, suite::Hash};
use veilsum_testkit::federation::{Kit, World};

use crate::{
    finding::{Finding, Limit, Measure, Rate},
    inconsistency::Field,
    least_squares::solve_symmetric,
    lying_hub::LyingHub,
    scene::{CLUMPS, FUZZIFIER, Scene},
    view::{self, read_as_plain},
};

/// Name on the command line.
pub const NAME: &str = "differencing";
const LABEL: &[u8; 24] = b"veilsum audit cohorts v1";

fn question() -> Result<Question> {
    asked_at(Centres::from_rows(&CLUMPS.map(|c| c.to_vec()))?)
}

fn asked_at(centres: Centres) -> Result<Question> {
    Ok(Question::Cluster(Batch::from(Query::fuzzy_sums(centres, FUZZIFIER))))
}

/// The next centres of fuzzy c-means from a total: all weighted sums by centre, then all weights.
fn moved(total: &[f64]) -> Result<Centres> {
    let (sums, weights) = total.split_at(total.len() - CLUMPS.len());
    let columns = sums.len() / CLUMPS.len();
    let rows: Vec<Vec<f64>> =
        sums.chunks(columns).zip(weights).map(|(sum, weight)| sum.iter().map(|x| x / weight).collect()).collect();
    Ok(Centres::from_rows(&rows)?)
}

/// Masked sums over a random half of the sites each time, each in a federation that begins anew, so that no site knows
/// the sums before.
struct Halves {
    cohorts: Vec<Vec<u16>>,
    totals: Vec<Vec<f64>>,
    /// What was asked last.
    last: Question,
}

fn halves(field: &Rc<Field>, seed: u64, rounds: u64, follow: bool) -> Result<Halves> {
    let sites = field.rows.len();
    let mut stream = Stream::new(seed, LABEL);
    let mut of = Halves { cohorts: Vec::new(), totals: Vec::new(), last: question()? };
    for round in 0..rounds {
        let mut cohort: Vec<u16> = (0..sites as u16).collect();
        stream.shuffle(&mut cohort);
        cohort.truncate(sites / 2);
        cohort.sort_unstable();
        if let (true, Some(total)) = (follow, of.totals.last()) {
            of.last = asked_at(moved(total)?)?;
        }
        let layout = field.layout(&of.last)?;
        let mut world = World::new(Kit::new(cohort.len(), |terms| terms.max_rows = field.max_rows), seed + round);
        let (own, asked, places) = (field.clone(), of.last.clone(), cohort.clone());
        world.answer = Box::new(move |place, asked_for| {
            own.words(places[usize::from(place)], &asked).unwrap_or_else(|_| vec![0; asked_for.words])
        });
        let (words, _, _) = world.ask(&of.last.to_bytes(), layout.words())?;
        of.totals.push(read_as_plain(&layout, &words));
        of.cohorts.push(cohort);
    }
    Ok(of)
}

/// What the sites would have answered by themselves.
fn plainly(field: &Field, q: &Question) -> Result<Vec<Vec<f64>>> {
    let layout = field.layout(q)?;
    (0..field.rows.len() as u16).map(|s| Ok(read_as_plain(&layout, &field.words(s, q)?))).collect()
}

/// Every site's vector from totals over cohorts, by least squares (the smallest solution where it is not determined),
/// and the rank.
pub fn solve(cohorts: &[Vec<u16>], totals: &[Vec<f64>], sites: usize) -> (Vec<Vec<f64>>, usize) {
    let part = |t: usize, s: usize| f64::from(u8::from(cohorts[t].contains(&(s as u16))));
    let words = totals.first().map_or(0, Vec::len);
    let mut normal = vec![0.0; sites * sites];
    for t in 0..cohorts.len() {
        for i in 0..sites {
            for j in 0..sites {
                normal[i * sites + j] += part(t, i) * part(t, j);
            }
        }
    }
    let rank = rank(normal.clone(), sites);
    // Hardly any damping: it only chooses among solutions where there are several.
    (0..sites).for_each(|i| normal[i * sites + i] += 1e-12);
    let mut found = vec![vec![0.0; words]; sites];
    for w in 0..words {
        let against = (0..sites).map(|s| (0..cohorts.len()).map(|t| part(t, s) * totals[t][w]).sum()).collect();
        if let Some(x) = solve_symmetric(normal.clone(), against) {
            found.iter_mut().zip(x).for_each(|(f, x)| f[w] = x);
        }
    }
    (found, rank)
}

/// Rank of a symmetric n x n matrix of small whole numbers, by elimination with the largest pivot.
fn rank(mut a: Vec<f64>, n: usize) -> usize {
    for step in 0..n {
        let left = || (step..n).flat_map(|i| (step..n).map(move |j| (i, j)));
        let Some((row, column)) = left().max_by(|p, q| a[p.0 * n + p.1].abs().total_cmp(&a[q.0 * n + q.1].abs()))
        else {
            return step;
        };
        if a[row * n + column].abs() < 1e-9 {
            return step;
        }
        (0..n).for_each(|j| a.swap(step * n + j, row * n + j));
        (0..n).for_each(|i| a.swap(i * n + step, i * n + column));
        for i in step + 1..n {
            let by = a[i * n + step] / a[step * n + step];
            (step..n).for_each(|j| a[i * n + j] -= by * a[step * n + j]);
        }
    }
    n
}

/// Relative error of a vector.
fn off(found: &[f64], truth: &[f64]) -> f64 {
    let size = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    size(&found.iter().zip(truth).map(|(a, b)| a - b).collect::<Vec<_>>()) / size(truth)
}

fn within(found: &[Vec<f64>], truth: &[Vec<f64>]) -> (Rate, f64) {
    let (mut rate, mut errors) = (Rate::default(), Vec::new());
    for (f, t) in found.iter().zip(truth) {
        let error = off(f, t);
        rate.add(error < 0.01);
        errors.push(error);
    }
    errors.sort_by(f64::total_cmp);
    (rate, errors.get(errors.len() / 2).copied().unwrap_or(f64::NAN))
}

/// Solves the totals of changing cohorts, and of the one that a run has.
///
/// # Errors
/// Where a run fails.
pub fn run(seed: u64, quick: bool) -> Result<Finding> {
    let began = Instant::now();
    let (sites, rounds) = if quick { (8, 24) } else { (20, 30) };
    let field = Rc::new(Field::new(seed, sites, 25)?);
    let q = question()?;

    // The first case has centres at rest. In the second they go where an honest method takes them, and each half of the
    // sites pulls them elsewhere.
    let rest = halves(&field, seed, rounds, false)?;
    let (found, rank) = solve(&rest.cohorts, &rest.totals, sites);
    let (with, error) = within(&found, &plainly(&field, &rest.last)?);
    let followed = halves(&field, seed, rounds, true)?;
    let (found, _) = solve(&followed.cohorts, &followed.totals, sites);
    let (moving, moving_error) = within(&found, &plainly(&field, &followed.last)?);

    // A real run, all rounds over one cohort; the sums of its last rounds differ by next to nothing.
    let scene = Scene::clumps(seed, sites, 25, 10)?;
    let recording = view::record(&scene)?;
    let rounds: Vec<_> =
        recording.rounds.iter().filter(|r| matches!(r.query.queries[..], [Query::FuzzySums { .. }])).collect();
    let cohorts: Vec<Vec<u16>> = rounds.iter().map(|r| r.received.keys().copied().collect()).collect();
    let totals: Vec<Vec<f64>> = rounds.iter().map(|r| r.total.clone()).collect();
    let last = rounds.last().context("a run without rounds")?;
    let truth: Vec<Vec<f64>> = last.plain.iter().map(|s| s.values.clone()).collect();
    let (found, own_rank) = solve(&cohorts, &totals, sites);
    let (without, guess) = within(&found, &truth);

    // Real sites are asked to let the cohort change.
    let (again, back) = changes(&field, &q, seed)?;
    let all = |of| Rate { hit: of, of };
    Ok(Finding {
        attack: NAME,
        needs: "totals over cohorts that change from round to round, nobody lying",
        control: "masked sums over a random half of the sites, each in a federation begun anew that knows nothing of the others, \
                  centres at rest, and centres that follow the totals",
        protection: "totals are over whole blocks for the life of a data set [REL-4]; where a site is a block by itself, who missed a \
                     round stays out [RND-5]",
        measures: vec![
            Measure::rates("sites' sums within 1 %", with, without, 0.0),
            Measure::new("the same while centres move", moving, Limit::AtLeast(0.3), without, Limit::AtMost(0.0)),
            Measure::new(
                "rank of participation, of all sites",
                rank as f64 / sites as f64,
                Limit::AtLeast(1.0),
                own_rank as f64,
                Limit::AtMost(1.0),
            ),
            Measure::rates("sites that answer over a part of their block", all(again.of), again, 0.0),
            Measure::rates("sites that let one back in", all(back.of), back, 0.0),
        ],
        also_broken: None,
        details: vec![format!(
            "control: median error {error:.1e} after {} rounds, and {:.1} % where the centres follow the totals; with \
                 one cohort the best guess is the average site, off by {:.0} %",
            rest.totals.len(),
            100.0 * moving_error,
            100.0 * guess
        )],
        not_shown: "policies under which a site is a block by itself (contributors = 1): every site that leaves in the middle of a \
                    run then costs a difference, and plans that sample sites give it up",
        seconds: began.elapsed().as_secs_f64(),
    })
}

/// How many sites answer over all but one of their block, and how many readmit a site that missed a round.
fn changes(field: &Rc<Field>, q: &Question, seed: u64) -> Result<(Rate, Rate)> {
    let n = field.rows.len();
    let (everybody, fewer): (Vec<u16>, Vec<u16>) = ((0..n as u16).collect(), (0..n as u16 - 1).collect());
    let terms = |terms: &mut Terms| terms.max_rows = field.max_rows;
    let hub = |kit| LyingHub::closed(kit, seed, field.answers());
    let cut = last_answered(field, q, hub(Kit::with_blocks(n, 0, terms)), &[&everybody, &fewer], Rule::Rel4)?;
    let back = last_answered(field, q, hub(Kit::new(n, terms)), &[&everybody, &fewer, &everybody], Rule::Rnd5)?;
    Ok((cut, back))
}

/// One question over these cohorts, one after the other: how many of those who were there all the time answer over the last one;
/// all others must refuse under this rule.
fn last_answered(field: &Rc<Field>, q: &Question, mut hub: LyingHub, cohorts: &[&[u16]], rule: Rule) -> Result<Rate> {
    let words = field.layout(q)?.words();
    hub.deck(cohorts[0])?;
    let (mut previous, mut rate) = (Hash::default(), Rate::default());
    for (slot, cohort) in cohorts.iter().enumerate() {
        let ask = hub.question(slot as u16, cohort, previous, words, q.to_bytes());
        previous = hub.context(&ask);
        let mut inputs = BTreeMap::new();
        if slot + 1 == cohorts.len() {
            for site in cohort.iter().filter(|site| cohorts.iter().all(|c| c.contains(site))) {
                let answer = hub.ask(*site, &ask)?.err();
                ensure!(answer.as_ref().is_none_or(|refused| *refused == rule), "refused under {answer:?}, not {rule}");
                rate.add(answer.is_none());
            }
            break;
        }
        for site in *cohort {
            inputs.insert(*site, hub.ask(*site, &ask)?.map_err(|rule| anyhow!("refused under {rule}"))?);
        }
        for site in *cohort {
            hub.survivors(*site, &previous, cohort, &inputs)?.map_err(|rule| anyhow!("refused under {rule}"))?;
        }
    }
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changing_cohorts_are_equations_and_one_cohort_is_one() {
        let truth = [vec![1.0, 2.0], vec![3.0, -1.0], vec![0.5, 0.25]];
        let total = |c: &[u16]| (0..2).map(|w| c.iter().map(|s| truth[usize::from(*s)][w]).sum()).collect::<Vec<f64>>();
        let cohorts = vec![vec![0, 1], vec![1, 2], vec![0, 2]];
        let (found, rank) = solve(&cohorts, &cohorts.iter().map(|c| total(c)).collect::<Vec<_>>(), 3);
        assert_eq!(rank, 3);
        assert_eq!(within(&found, &truth).0, Rate { hit: 3, of: 3 });
        let one = vec![vec![0, 1, 2]; 3];
        let (found, rank) = solve(&one, &one.iter().map(|c| total(c)).collect::<Vec<_>>(), 3);
        assert_eq!((rank, within(&found, &truth).0.hit), (1, 0));
    }
}
