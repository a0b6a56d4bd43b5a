//! What honest cohorts give away about single sites: one that leaves in the middle of a run, one that joins a second run, and
//! sites that are drawn. A total over everybody less one over all others is one site's sums ([`crate::differencing`] solves for
//! them). Nobody lies. Real sites are asked for such totals: the protocol core's own state machines, each with the product's rule
//! before its answer. With blocks of single sites they answer, as if there were no blocks; with whole blocks they refuse.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    time::Instant,
};

use anyhow::{Result, anyhow, ensure};
use veilsum_cluster::{Batch, Centres, Query, sampling::Sampling};
use veilsum_node::question::Question;
use veilsum_proto::{Rule, plan::Terms, suite::Hash, testing::Kit};

use crate::{
    finding::{Finding, Measure, Rate},
    inconsistency::Field,
    invented::listed,
    lying_hub::{LyingHub, Sent},
    scene::{CLUMPS, FUZZIFIER},
};

/// Name on the command line.
pub const LOST: &str = "lost-site";
/// Of the joiner's attack.
pub const JOINER: &str = "late-joiner";
/// Of the attack on sampling.
pub const SAMPLED: &str = "sampling-sites";
/// Sites, in blocks of [`BLOCK`].
const SITES: usize = 9;
/// Two contributors and one that may collude.
const BLOCK: usize = 3;
/// Rows of a site.
const ROWS: usize = 20;

/// What happens to the cohort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A site leaves in the middle of a run.
    Lost,
    /// A site comes with a second run of other first centres.
    Joiner,
    /// Six of nine sites are drawn in every round; with the rule two of three blocks.
    Sampled,
}

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
fn question(shift: f64) -> Result<Question> {
    let centres = Centres::from_rows(&CLUMPS.map(|c| vec![c[0] + shift, c[1]]))?;
    Ok(Question::Cluster(Batch::from(Query::fuzzy_sums(centres, FUZZIFIER))))
}

/// Lets a coordinator cause the event, with blocks of three and with blocks of single sites.
///
/// # Errors
/// Where an honest part of the conversation fails.
pub fn run(event: Event, seed: u64) -> Result<Finding> {
    let began = Instant::now();
    let name = match event {
        Event::Lost => LOST,
        Event::Joiner => JOINER,
        Event::Sampled => SAMPLED,
    };
    let (before, now) = (answered(event, seed, false)?, answered(event, seed, true)?);
    ensure!(before.rules.is_empty(), "blocks of single sites are refused under {:?}", before.rules);
    Ok(Finding {
        attack: name,
        needs: "totals over cohorts that differ by single sites; nobody lies, no two questions are alike",
        control: "the same sites, each a block by itself: whoever is there is in the total",
        protection: "every total is over whole blocks of at least three sites [REL-3], [REL-4], for the life of a data set \
                     [REL-2], [REL-5]",
        measures: vec![Measure::rates("sites that answer over a part of a block", before.rate, now.rate, 0.0)],
        also_broken: None,
        details: vec![format!("sites refuse under {}", listed(&now.rules))],
        not_shown: "what a block's total says of a site that dominates it; rows, which noise protects and blocks do not",
        seconds: began.elapsed().as_secs_f64(),
    })
}

/// A coordinator, its sites and where it is with them.
struct SiteSession {
    hub: LyingHub,
    field: Rc<Field>,
    previous: Hash,
    slot: u16,
}

impl SiteSession {
    fn new(field: &Rc<Field>, seed: u64, rule: bool, slots: u16) -> Result<SiteSession> {
        let terms = |terms: &mut Terms| {
            (terms.max_rows, terms.slots) = (field.max_rows, slots);
            // Blocks of three have two contributors and one that colludes.
            terms.colluders = 1;
        };
        let kit = if rule { Kit::with_blocks(SITES, BLOCK as u16, terms) } else { Kit::new(SITES, terms) };
        let hub = LyingHub::closed(kit, seed, field.answers());
        Ok(SiteSession { hub, field: field.clone(), previous: Hash::default(), slot: 0 })
    }

    /// Asks these sites for a total over `cohort`: their inputs, or what they say instead.
    fn ask(&mut self, cohort: &[u16], q: &Question) -> Result<(Hash, BTreeMap<u16, Sent>, Answered)> {
        let words = self.field.layout(q)?.words();
        let ask = self.hub.question(self.slot, cohort, self.previous, words, q.to_bytes());
        let (mut inputs, mut answered) = (BTreeMap::new(), Answered::default());
        for site in cohort {
            let told = self.hub.ask(*site, &ask)?;
            answered.add(told.map(|sent| inputs.insert(*site, sent)));
        }
        Ok((self.hub.context(&ask), inputs, answered))
    }

    /// A whole round in which no site refuses.
    fn honest(&mut self, cohort: &[u16], q: &Question) -> Result<()> {
        let (context, inputs, answered) = self.ask(cohort, q)?;
        ensure!(answered.rules.is_empty(), "an honest question is refused under {:?}", answered.rules);
        for site in cohort {
            let told = self.hub.survivors(*site, &context, cohort, &inputs)?;
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
    let (first, second) = (question(0.0)?, question(0.2)?);
    let begun = |cohort: &[u16]| -> Result<SiteSession> {
        let mut talk = SiteSession::new(&field, seed, rule, 8)?;
        talk.hub.deck(cohort)?;
        talk.honest(cohort, &first)?;
        Ok(talk)
    };
    let mut all = Answered::default();
    match event {
        Event::Lost => {
            // It is gone before the question;
            let (_, _, asked) = begun(&everybody)?.ask(fewer, &second)?;
            all = asked;
            // or between its question and the survivors.
            let mut talk = begun(&everybody)?;
            let (context, inputs, asked) = talk.ask(&everybody, &second)?;
            ensure!(asked.rules.is_empty(), "an honest question is refused under {:?}", asked.rules);
            for site in fewer {
                all.add(talk.hub.survivors(*site, &context, fewer, &inputs)?);
            }
        }
        Event::Joiner => {
            let before = if rule {
                // Blocks of four: the joiner is the ninth.
                let mut talk = SiteSession::new(&field, seed, rule, 8)?;
                let halves = fewer.chunks(4).map(<[u16]>::to_vec).collect();
                ensure!(talk.hub.arrange(fewer, halves)?.is_empty(), "an honest directory is refused");
                talk.honest(fewer, &first)?;
                talk.hub.fixed.clone()
            } else {
                begun(fewer)?.hub.fixed.clone()
            };
            let joiner = SITES as u16 - 1;
            let halves = || fewer.chunks(4).map(<[u16]>::to_vec);
            // Under a second plan: with an old block, with everybody, or alone.
            let mut joined: Vec<Vec<u16>> = halves().collect();
            joined[1].push(joiner);
            let arranged = if rule {
                vec![joined, vec![everybody.clone()], halves().chain([vec![joiner]]).collect()]
            } else {
                vec![everybody.iter().map(|site| vec![*site]).collect()]
            };
            for blocks in arranged {
                let mut talk = SiteSession::new(&field, seed, rule, 16)?;
                talk.hub.fixed.clone_from(&before);
                let refused = talk.hub.arrange(&everybody, blocks)?;
                if refused.is_empty() {
                    let (_, inputs, asked) = talk.ask(&everybody, &second)?;
                    all.rules.extend(asked.rules);
                    all.rate.add(inputs.contains_key(&joiner));
                } else {
                    all.rate.add(false);
                    all.rules.extend(refused.into_values());
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
            let number =
                (1..100).find(|number| !whole(&drawn(*number))).ok_or_else(|| anyhow!("every draw is whole"))?;
            let mut talk = begun(&everybody)?;
            let sites = drawn(number);
            talk.hub.drawn = Box::new(move |_| Some(sites.clone()));
            let Question::Cluster(batch) = second else { unreachable!("a round's question") };
            all = talk.ask(&everybody, &Question::Drawn { number, batch })?.2;
        }
    }
    Ok(all)
}
