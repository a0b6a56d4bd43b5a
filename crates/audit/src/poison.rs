//! A site that lies. A huge vector ends a run or ruins it. Together with the coordinator the site steers the centres to
//! where the two want to look, in spite of the rule that centres follow from totals (an attack of our own; RoFL, S&P
//! 2023, on the first half).
//!
//! At rest the next total equals the last one. A site that knows it can send what changes it as it likes, and the
//! method itself then asks about a pinhole.

use std::{cell::RefCell, rc::Rc};

use anyhow::{Context as _, Result, anyhow};
use veilsum_cluster::{metrics::adjusted_rand_index, privacy};
use veilsum_node::{
    method_session::{MethodSession, Turn},
    question::{self, Layout, Question, SumBounds},
};
use veilsum_testkit::federation::{Kit, World};

use crate::{
    account::{self, Honest},
    finding::{Attack, Context, Found, Limit, Measure, Rate},
    pinhole::advantage,
    scene::{EDGE, Scene},
    view::{prepared, read_as_plain, unbounded},
};

/// What it is.
pub const ATTACK: Attack = Attack {
    name: "poison-and-steer",
    shows: "a site that lies ruins a run, or steers it to where the coordinator wants to look",
    needs: "one site that lies; for steering also a coordinator that tells it every total (an opened total tells it to every site)",
    control: "poison: the same total taken without a check; steering: a plan without noise, whose sites follow the method",
    protection: "totals that no rows can give end the run, without blame; against steering nothing in the protocol but \
                     noise inside the sum [NOI-*]: a site's vector has no proof that rows made it",
    not_shown: "who sent the vector: the total does not say; small lies of a site within its rows",
    run,
};
const SITES: usize = 6;
const ROWS: usize = 40;
/// Words of the weighted sums: three clusters, two columns.
const SUMS: usize = 6;
/// Rounds until the centres are at rest.
const REST: u32 = 12;
/// Between the two centres of the pinhole.
const APART: f64 = 1e-4;
/// The site that lies.
const LIAR: u16 = 0;

/// Real sites and an aggregator in virtual time; what the liar adds to its words in the next round.
struct Masked {
    world: World,
    lie: Rc<RefCell<Vec<u64>>>,
}

impl Masked {
    fn new(scene: &Scene, form: SumBounds, seed: u64) -> Result<Masked> {
        let rows = prepared(scene)?;
        let lie = Rc::new(RefCell::new(Vec::<u64>::new()));
        let mut world = World::new(Kit::new(SITES, |terms| (terms.slots, terms.max_rows) = (64, form.max_rows)), seed);
        let lies = lie.clone();
        world.answer = Box::new(move |site, asked| {
            let terms = question::Terms::everybody(form);
            let words = Question::from_bytes(&asked.query)
                .ok()
                .and_then(|q| question::contribute(&q, &rows[usize::from(site)], &terms).ok());
            let mut words = words.unwrap_or_else(|| vec![0; asked.words]);
            if site == LIAR {
                words.iter_mut().zip(lies.borrow().iter()).for_each(|(w, l)| *w = w.wrapping_add(*l));
            }
            words
        });
        Ok(Masked { world, lie })
    }

    fn total(&mut self, question: &Question, words: usize, lie: Vec<u64>) -> Result<Vec<u64>> {
        *self.lie.borrow_mut() = lie;
        Ok(self.world.ask(&question.to_bytes(), words)?.0)
    }
}

fn turn(conversation: &MethodSession) -> Result<(Question, Layout)> {
    match conversation.turn() {
        Turn::Ask(question, layout) => Ok(((**question).clone(), layout.clone())),
        _ => Err(anyhow!("the method asks nothing more")),
    }
}

fn centres(question: &Question) -> Result<Vec<Vec<f64>>> {
    let Question::Cluster(batch) = question else { return Err(anyhow!("nobody is drawn")) };
    let points = batch.queries.first().and_then(|q| q.points().first().copied().cloned()).context("no centres")?;
    Ok(points.rows().map(<[f64]>::to_vec).collect())
}

/// One run that is steered to `at`: the count there, and how far from `at` the method's next centres lie.
fn steered(scene: &Scene, form: SumBounds, at: &[f64], seed: u64) -> Result<(f64, f64)> {
    let mut masked = Masked::new(scene, form, seed)?;
    let mut conversation = MethodSession::of(&scene.work, form)?;
    let mut last: Option<Vec<f64>> = None;
    for number in 0..=REST {
        let (question, layout) = turn(&conversation)?;
        let lie = match &last {
            // What the total will be, from what it was; and what it is to be.
            Some(total) if number == REST => {
                let k = centres(&question)?.len();
                let (sums, weights) = total.split_at(total.len() - k);
                let columns = sums.len() / k;
                let side = if at[0] > 0.0 { -APART } else { APART };
                let mut change = vec![0.0; total.len()];
                for c in 0..2 {
                    for f in 0..columns {
                        let wanted = at[f] + if c == 1 && f == 0 { side } else { 0.0 };
                        change[c * columns + f] = wanted * weights[c] - sums[c * columns + f];
                    }
                }
                unbounded(&layout, &change)
            }
            _ => Vec::new(),
        };
        let words = masked.total(&question, layout.words(), lie)?;
        last = Some(read_as_plain(&layout, &words));
        conversation.take(&words, &everybody()).map_err(|f| anyhow!("{}", f.message))?;
    }
    let (question, layout) = turn(&conversation)?;
    let place = centres(&question)?;
    let off = place[0].iter().zip(at).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
    let words = masked.total(&question, layout.words(), Vec::new())?;
    let total = read_as_plain(&layout, &words);
    let weights = &total[total.len() - place.len()..];
    Ok((weights[0] - weights[1], off))
}

/// All sites, by number.
fn everybody() -> Vec<u16> {
    (0..SITES as u16).collect()
}

/// A lie in this many of the first words of the first round. Returns whether the round is accepted, and the Rand index
/// of the centres with which a method without checks would go on.
fn poisoned(scene: &Scene, form: SumBounds, seed: u64, lie: u64, words: usize) -> Result<(bool, f64)> {
    let mut masked = Masked::new(scene, form, seed)?;
    let mut conversation = MethodSession::of(&scene.work, form)?;
    let (question, layout) = turn(&conversation)?;
    let honest = read_as_plain(&layout, &masked.total(&question, layout.words(), Vec::new())?);
    let mut masked = Masked::new(scene, form, seed)?;
    let words = masked.total(&question, layout.words(), vec![lie; words.min(layout.words())])?;
    let taken = conversation.take(&words, &everybody()).is_ok();
    let labels = |total: &[f64]| -> Vec<usize> {
        let k = scene.work.recipe.clusters.max as usize;
        let (sums, weights) = total.split_at(total.len() - k);
        let centre = |c: usize| [sums[2 * c] / weights[c], sums[2 * c + 1] / weights[c]];
        let away = |x: &[f64], c: usize| (x[0] - centre(c)[0]).powi(2) + (x[1] - centre(c)[1]).powi(2);
        let nearest = |x: &[f64]| (0..k).min_by(|a, b| away(x, *a).total_cmp(&away(x, *b))).unwrap_or(0);
        scene.sites.iter().flat_map(|(_, rows)| rows.iter().map(nearest).collect::<Vec<_>>()).collect()
    };
    Ok((taken, adjusted_rand_index(&labels(&honest), &labels(&read_as_plain(&layout, &words)))?))
}

/// How well the counts at a pinhole tell whether a row is there, under an account of `rho` that it all goes into.
fn under_noise(scene: &Scene, rho: f64, tries: usize, seed: u64) -> Result<f64> {
    let rows: Vec<Vec<f64>> = scene.sites.iter().flat_map(|(_, rows)| rows.iter().map(<[f64]>::to_vec)).collect();
    let at = rows[0].clone();
    let beside = vec![at[0] - APART * at[0].signum(), at[1]];
    let query = account::sums(&[at, beside, vec![0.0; 2]], Some(2.0))?;
    let (with, without) = (Honest::new(&rows)?, Honest::new(&rows[1..])?);
    let (mut said, mut present) = (Vec::new(), Vec::new());
    for i in 0..tries as u64 {
        for (of, is) in [(&with, true), (&without, false)] {
            let total = of.total(&query, Some(rho), &[seed, i, u64::from(is)])?;
            said.push(total[0] - total[1] > 0.5);
            present.push(is);
        }
    }
    Ok(advantage(&said, &present))
}

/// Lets one site lie, alone and with the coordinator.
///
/// # Errors
/// Where an honest part of the conversation fails.
fn run(&Context { seed, quick, .. }: &Context) -> Result<Found> {
    let scene = Scene::clumps(seed, SITES, ROWS, REST + 4)?;
    let form = SumBounds::new(SITES, ROWS.next_power_of_two() as u64);
    // No rows give these: means far outside the box.
    let (mut ruined, mut taken) = (Rate::default(), Rate::default());
    for lie in [(1u64 << 62).wrapping_neg(), (3u64 << 61).wrapping_neg(), 1u64 << 63] {
        let (goes_on, rand) = poisoned(&scene, form, seed, lie, SUMS)?;
        ruined.add(rand < 0.5);
        taken.add(goes_on);
    }
    // This is as large as what all sites together might have sent, so no check of a total can notice it.
    let (admissible, rand) = poisoned(&scene, form, seed, 1u64 << 62, usize::MAX)?;
    let (mut said, mut present, mut off) = (Vec::new(), Vec::new(), 0.0f64);
    for i in 0..if quick { 1 } else { 4 } {
        let row = scene.sites[1 + i % (SITES - 1)].1.row(i).to_vec();
        let none = vec![(row[0] + 0.031).clamp(-EDGE, EDGE), row[1] - 0.017];
        for (at, is) in [(row, true), (none, false)] {
            let (count, by) = steered(&scene, form, &at, seed)?;
            (off, said, present) = (off.max(by), [said, vec![count > 0.5]].concat(), [present, vec![is]].concat());
        }
    }
    let tries = account::times(quick, 1000);
    let noisy = under_noise(&scene, 1.0, tries, seed)?;
    // Three deviations of a difference of two shares beside what the account allows.
    let most = privacy::advantage(1.0) + 3.0 * (0.5 / tries as f64).sqrt();
    let measures = vec![
        Measure::rates("rounds ruined by what no rows give", ruined, taken, 0.0),
        Measure::new(
            "advantage at a steered pinhole (noise, rho 1)",
            advantage(&said, &present),
            Limit::AtLeast(1.0),
            noisy,
            Limit::AtMost(most),
        ),
    ];
    let details = vec![
        format!(
            "control: {} candidates, one a run of {REST} rounds; the method itself asks within {off:.1e} of where the two want \
                 to look, and every site's own copy agrees",
            present.len()
        ),
        format!(
            "NOT protected: a vector of one site as large as all sites' rows together is {}, and the Rand index falls to \
                 {rand:.2}: the total's check cannot know whose part it was",
            if admissible { "taken" } else { "refused" }
        ),
        "NOT protected without noise: a plan without it, opened or not, can be steered by one site and the coordinator"
            .into(),
    ];
    Ok(Found::new(measures, details))
}
