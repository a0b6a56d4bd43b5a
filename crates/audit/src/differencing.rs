//! Totals over cohorts that differ are equations about single sites (So et al., AAAI 2023, on why a secure sum of many rounds needs
//! more than secure rounds). Nobody lies: a site leaves in the middle of a run, comes back, joins a second run, or sites are drawn.
//!
//! Real sites are asked for such totals: the protocol core's own state machines, each with the product's rule before its answer. As blocks
//! of single sites they answer, as if there were no blocks; in whole blocks they refuse.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use anyhow::{Context as _, Result, anyhow, ensure};
use veilsum_cluster::sampling::Sampling;
use veilsum_node::question::Question;
use veilsum_proto::{Rule, plan::Terms, suite::Hash};
use veilsum_testkit::federation::Kit;

use crate::{
    finding::{Attack, Context, Found, Measure, Rate, listed},
    inconsistency::{Field, about},
    lying_hub::{self, Deck, Hub, SLOTS, Sent, arrange, asked, question, survivors, told},
    scene::CLUMPS,
};

/// What it is.
pub const ATTACK: Attack = Attack {
    name: "differencing",
    shows: "totals over cohorts that change by single sites are equations about single sites",
    needs: "totals over cohorts that differ by single sites; nobody lies, no two questions are alike",
    control: "the same sites, each a block by itself: whoever is there is in the total",
    protection: "every total is over whole blocks of at least three sites [REL-3], [REL-4], for the life of a data set [REL-2], \
                     [REL-5]; where a site is a block by itself, who missed a round stays out [RND-5]",
    not_shown: "what a block's total says of a site that dominates it; rows, which noise protects and blocks do not; policies \
                    under which a site is a block by itself",
    run,
};
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

/// Lets a coordinator cause every event, with blocks of three and with blocks of single sites.
///
/// # Errors
/// Where an honest part of the conversation fails.
fn run(&Context { seed, .. }: &Context) -> Result<Found> {
    let (mut measures, mut details) = (Vec::new(), Vec::new());
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
