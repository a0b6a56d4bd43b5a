//! Totals over cohorts that differ are equations about single sites (So et al., AAAI 2023, on why a secure sum of many rounds needs
//! more than secure rounds). Nobody lies: a site leaves in the middle of a run, comes back, joins a second run, or sites are drawn.
//!
//! The control solves the totals of changing cohorts for every site's sums. Real sites are asked for such totals: the protocol core's
//! own state machines, each with the product's rule before its answer. As blocks of single sites they answer, as if there were no
//! blocks; in whole blocks they refuse.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use anyhow::{Context as _, Result, anyhow, ensure};
use veilsum_cluster::{random::Stream, sampling::Sampling};
use veilsum_node::question::Question;
use veilsum_proto::{Rule, plan::Terms, suite::Hash};
use veilsum_testkit::federation::{Kit, World};

use crate::{
    finding::{Attack, Context, Found, Measure, Rate, listed},
    inconsistency::{Field, about},
    least_squares::solve_symmetric,
    lying_hub::{self, Deck, Hub, SLOTS, Sent, arrange, asked, question, survivors, told},
    scene::CLUMPS,
    view::read_as_plain,
};

/// What it is.
pub const ATTACK: Attack = Attack {
    name: "differencing",
    shows: "totals over cohorts that change by single sites are solved for single sites",
    needs: "totals over cohorts that differ by single sites; nobody lies, no two questions are alike",
    control: "masked sums over a random half of the sites, each in a federation begun anew that knows nothing of the others; and the \
                  same sites, each a block by itself: whoever is there is in the total",
    protection: "every total is over whole blocks of at least three sites [REL-3], [REL-4], for the life of a data set [REL-2], \
                     [REL-5]; where a site is a block by itself, who missed a round stays out [RND-5]",
    not_shown: "what a block's total says of a site that dominates it; rows, which noise protects and blocks do not; policies \
                    under which a site is a block by itself",
    run,
};
const LABEL: &[u8; 24] = b"veilsum audit cohorts v1";
/// Sites that real sites' answers are tried with, in blocks of [`BLOCK`].
const SITES: usize = 9;
/// Two contributors and one that may collude.
const BLOCK: usize = 3;
/// Rows of a site.
const ROWS: usize = 25;

/// What happens to the cohort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// A site leaves in the middle of a run.
    Lost,
    /// A site that missed a round comes back.
    Returned,
    /// A site comes with a second run of other first centres.
    Joiner,
    /// Six of nine sites are drawn in every round; with the rule two of three blocks.
    Sampled,
}

const EVENTS: [(Event, &str); 4] = [
    (Event::Lost, "totals go on where a site leaves"),
    (Event::Returned, "a site that missed a round is let back in"),
    (Event::Joiner, "a second run is over one site more"),
    (Event::Sampled, "draws are over parts of blocks"),
];

/// Which of an event's cohorts are answered, and the rules under which the others are refused.
#[derive(Default)]
struct Answered {
    rate: Rate,
    rules: BTreeSet<Rule>,
}

impl Answered {
    fn add<T>(&mut self, told: Result<T, Rule>) {
        self.rate.add(told.is_ok());
        self.rules.extend(told.err());
    }
}

/// A round's question; `shift` makes another one of it.
fn moved(shift: f64) -> Result<Question> {
    about(CLUMPS.map(|[x, y]| [x + shift, y]))
}

/// The masked sum over these sites, in a federation that begins anew, so that no site knows the sums before.
fn total(field: &Rc<Field>, cohort: &[u16], q: &Question, seed: u64) -> Result<Vec<f64>> {
    let layout = field.layout(q)?;
    let mut world = World::new(Kit::new(cohort.len(), |terms| terms.max_rows = field.max_rows), seed);
    let (own, asked, places) = (field.clone(), q.clone(), cohort.to_vec());
    world.answer = Box::new(move |place, asked_for| {
        own.words(places[usize::from(place)], &asked).unwrap_or_else(|_| vec![0; asked_for.words])
    });
    let (words, _, _) = world.ask(&q.to_bytes(), layout.words())?;
    Ok(read_as_plain(&layout, &words))
}

/// Every site's vector from totals over cohorts, by least squares (the smallest solution where it is not determined).
fn solve(cohorts: &[Vec<u16>], totals: &[Vec<f64>], sites: usize) -> Vec<Vec<f64>> {
    let part = |t: usize, s: usize| f64::from(u8::from(cohorts[t].contains(&(s as u16))));
    let words = totals.first().map_or(0, Vec::len);
    let mut normal = vec![0.0; sites * sites];
    for t in 0..cohorts.len() {
        (0..sites * sites).for_each(|ij| normal[ij] += part(t, ij / sites) * part(t, ij % sites));
    }
    // Hardly any damping: it only chooses among solutions where there are several.
    (0..sites).for_each(|i| normal[i * sites + i] += 1e-12);
    let mut found = vec![vec![0.0; words]; sites];
    for w in 0..words {
        let against = (0..sites).map(|s| (0..cohorts.len()).map(|t| part(t, s) * totals[t][w]).sum()).collect();
        if let Some(x) = solve_symmetric(normal.clone(), against) {
            found.iter_mut().zip(x).for_each(|(f, x)| f[w] = x);
        }
    }
    found
}

/// How many of these vectors are within 1 % of the truth, and the median relative error.
fn within(found: &[Vec<f64>], truth: &[Vec<f64>]) -> (Rate, f64) {
    let size = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let off = |(f, t): (&Vec<f64>, &Vec<f64>)| size(&f.iter().zip(t).map(|(a, b)| a - b).collect::<Vec<_>>()) / size(t);
    let errors: Vec<f64> = found.iter().zip(truth).map(off).collect();
    let mut rate = Rate::default();
    errors.iter().for_each(|error| rate.add(*error < 0.01));
    (rate, crate::chance::median(errors))
}

/// Solves the totals of changing cohorts and of one cohort, and lets a coordinator cause every event, with blocks of three and with
/// blocks of single sites.
///
/// # Errors
/// Where an honest part of the conversation fails.
fn run(&Context { seed, quick, .. }: &Context) -> Result<Found> {
    let (sites, rounds) = if quick { (8, 24) } else { (20, 30) };
    let field = Rc::new(Field::new(seed, sites, ROWS)?);
    let q = moved(0.0)?;
    let layout = field.layout(&q)?;
    let everybody: Vec<u16> = (0..sites as u16).collect();
    let truth: Vec<Vec<f64>> =
        everybody.iter().map(|s| Ok(read_as_plain(&layout, &field.words(*s, &q)?))).collect::<Result<_>>()?;
    let mut stream = Stream::new(seed, LABEL);
    let halves = (0..rounds).map(|_| {
        let mut cohort = everybody.clone();
        stream.shuffle(&mut cohort);
        cohort.truncate(sites / 2);
        cohort
    });
    let halves: Vec<Vec<u16>> = halves.collect();
    let of = |cohorts: &[Vec<u16>]| -> Result<(Rate, f64)> {
        let totals = (0..).zip(cohorts).map(|(round, cohort)| total(&field, cohort, &q, seed + round));
        Ok(within(&solve(cohorts, &totals.collect::<Result<Vec<_>>>()?, sites), &truth))
    };
    let ((with, error), (without, guess)) = (of(&halves)?, of(&[everybody])?);
    let mut measures = vec![Measure::rates("sites' sums within 1 %", with, without, 0.0)];
    let mut details = vec![format!(
        "control: median error {error:.1e} after {rounds} rounds; with one cohort the best guess is the average site, off by {:.0} %",
        100.0 * guess
    )];
    for (event, what) in EVENTS {
        let (before, now) = (answered(event, seed, false)?, answered(event, seed, true)?);
        ensure!(before.rules.is_empty(), "{what}: sites without the rule refuse under {:?}", before.rules);
        measures.push(Measure::rates(what, before.rate, now.rate, 0.0));
        details.push(format!("{what}: sites refuse under {}", listed(&now.rules)));
    }
    Ok(Found::new(measures, details))
}

/// A coordinator, its sites and where it is with them.
struct SiteSession {
    hub: Hub,
    deck: Deck,
    field: Rc<Field>,
    previous: Hash,
    slot: u16,
}

/// Sites under blocks of three (`rule`), or each a block by itself.
fn sites(field: &Rc<Field>, seed: u64, rule: bool, slots: u16) -> Hub {
    let terms = |terms: &mut Terms| {
        (terms.max_rows, terms.slots) = (field.max_rows, slots);
        // Blocks of three have two contributors and one that colludes.
        terms.colluders = 1;
    };
    let kit = if rule { Kit::with_blocks(SITES, BLOCK as u16, terms) } else { Kit::new(SITES, terms) };
    lying_hub::hub(kit, seed, field.answers())
}

impl SiteSession {
    fn new(hub: Hub, deck: Deck, field: &Rc<Field>) -> SiteSession {
        SiteSession { hub, deck, field: field.clone(), previous: Hash::default(), slot: 0 }
    }

    fn question(&self, cohort: &[u16], q: &Question) -> Result<(Hash, Vec<u8>)> {
        let words = self.field.layout(q)?.words();
        Ok(question(&self.hub, &self.deck, self.slot, cohort, self.previous, words, &q.to_bytes()))
    }

    /// Asks these sites for a total over `cohort`: their inputs, or what they say instead.
    fn ask(&mut self, cohort: &[u16], q: &Question) -> Result<(Hash, BTreeMap<u16, Sent>, Answered)> {
        let (context, frame) = self.question(cohort, q)?;
        let (mut inputs, mut answered) = (BTreeMap::new(), Answered::default());
        for site in cohort {
            let told = told(&mut self.hub, *site, &frame)?;
            answered.add(told.map(|sent| inputs.insert(*site, sent)));
        }
        Ok((context, inputs, answered))
    }

    /// A whole round in which no site refuses.
    fn honest(&mut self, cohort: &[u16], q: &Question) -> Result<()> {
        let (context, frame) = self.question(cohort, q)?;
        let inputs = asked(&mut self.hub, cohort, &frame)?;
        for site in cohort {
            let told = survivors(&mut self.hub, *site, &context, cohort, &inputs)?;
            told.map_err(|rule| anyhow!("honest survivors are refused under {rule}"))?;
        }
        (self.previous, self.slot) = (context, self.slot + 1);
        Ok(())
    }
}

/// Which cohorts of the event real sites answer over, with blocks of three (`rule`) or of single sites.
///
/// # Errors
/// Where an honest part of the conversation fails.
fn answered(event: Event, seed: u64, rule: bool) -> Result<Answered> {
    let field = Rc::new(Field::new(seed, SITES, ROWS)?);
    let everybody: Vec<u16> = (0..SITES as u16).collect();
    let fewer = &everybody[..SITES - 1];
    let (first, second) = (moved(0.0)?, moved(0.2)?);
    let new = |rule: bool, cohort: &[u16]| {
        let mut hub = sites(&field, seed, rule, 8);
        let deck = hub.deck(0, SLOTS, cohort);
        SiteSession::new(hub, deck, &field)
    };
    let begun = |cohort: &[u16]| -> Result<SiteSession> {
        let mut talk = new(rule, cohort);
        talk.honest(cohort, &first)?;
        Ok(talk)
    };
    let mut all = Answered::default();
    match event {
        Event::Lost => {
            // It is gone before the question;
            all = begun(&everybody)?.ask(fewer, &second)?.2;
            // or between its question and the survivors.
            let mut talk = begun(&everybody)?;
            let (context, frame) = talk.question(&everybody, &second)?;
            let inputs = asked(&mut talk.hub, &everybody, &frame)?;
            for site in fewer {
                all.add(survivors(&mut talk.hub, *site, &context, fewer, &inputs)?);
            }
        }
        Event::Returned => {
            // Whoever begins anew does not know who was there.
            let mut talk = new(false, &everybody);
            if rule {
                talk.honest(&everybody, &first)?;
                talk.honest(fewer, &second)?;
            }
            all = talk.ask(&everybody, &moved(0.1)?)?.2;
        }
        Event::Joiner => {
            // Blocks of four: the joiner is the ninth.
            let halves: Vec<Vec<u16>> = fewer.chunks(4).map(<[u16]>::to_vec).collect();
            let before = if rule {
                let mut hub = sites(&field, seed, rule, 8);
                let deck = arrange(&mut hub, fewer, halves.clone())?;
                let deck = deck.map_err(|rules| anyhow!("an honest directory is refused: {rules:?}"))?;
                let mut talk = SiteSession::new(hub, deck, &field);
                talk.honest(fewer, &first)?;
                talk.hub.fixed
            } else {
                begun(fewer)?.hub.fixed
            };
            let joiner = SITES as u16 - 1;
            // Under a second plan: with an old block, with everybody, or alone.
            let mut joined = halves.clone();
            joined[1].push(joiner);
            let arranged = match rule {
                true => vec![joined, vec![everybody.clone()], [halves, vec![vec![joiner]]].concat()],
                false => vec![everybody.iter().map(|site| vec![*site]).collect()],
            };
            for blocks in arranged {
                let mut hub = sites(&field, seed, rule, 16);
                hub.fixed.clone_from(&before);
                match arrange(&mut hub, &everybody, blocks)? {
                    Ok(deck) => {
                        let (_, inputs, asked) = SiteSession::new(hub, deck, &field).ask(&everybody, &second)?;
                        all.rules.extend(asked.rules);
                        all.rate.add(inputs.contains_key(&joiner));
                    }
                    Err(refused) => {
                        all.rate.add(false);
                        all.rules.extend(refused.into_values());
                    }
                }
            }
        }
        Event::Sampled => {
            let sampling = Sampling { share: 2.0 / 3.0, seed };
            let drawn = |number: u32| {
                let drawn = sampling.drawn(number, SITES);
                (0..SITES as u16).filter(|site| drawn[usize::from(*site)]).collect::<Vec<u16>>()
            };
            let whole = |sites: &[u16]| {
                everybody.chunks(BLOCK).all(|b| b.iter().all(|s| sites.contains(s) == sites.contains(&b[0])))
            };
            // A draw may happen to be of whole blocks.
            let number = (1..100).find(|number| !whole(&drawn(*number))).context("every draw is whole")?;
            let mut talk = begun(&everybody)?;
            let sites = drawn(number);
            talk.hub.drawn = Box::new(move |_| Some(sites.clone()));
            let Question::Cluster(batch) = second else { unreachable!("a round's question") };
            all = talk.ask(&everybody, &Question::Drawn { number, batch })?.2;
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changing_cohorts_are_equations_and_one_cohort_is_one() {
        let truth = [vec![1.0, 2.0], vec![3.0, -1.0], vec![0.5, 0.25]];
        let total = |c: &[u16]| (0..2).map(|w| c.iter().map(|s| truth[usize::from(*s)][w]).sum()).collect::<Vec<f64>>();
        let solved = |cohorts: &[Vec<u16>]| {
            let totals: Vec<Vec<f64>> = cohorts.iter().map(|c| total(c)).collect();
            within(&solve(cohorts, &totals, 3), &truth).0
        };
        assert_eq!(solved(&[vec![0, 1], vec![1, 2], vec![0, 2]]), Rate { hit: 3, of: 3 });
        assert_eq!(solved(&vec![vec![0, 1, 2]; 3]).hit, 0);
    }
}
