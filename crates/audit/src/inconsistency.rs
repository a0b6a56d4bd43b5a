//! One site is asked about centres where the rows are, and all others about centres where there are none, so the total
//! is the one site's sums (Pasquini et al., CCS 2022). In a second attack one site is asked twice under one mask, which
//! cancels in the difference.

use std::{collections::BTreeMap, rc::Rc};

use anyhow::Result;
use veilsum_cluster::{Batch, Centres, Prepared, Query};
use veilsum_node::question::{Layout, Question, SumBounds, Terms, contribute};
use veilsum_proto::{Rule, fixed, suite::Hash};
use veilsum_testkit::{kit::Kit, wire::Ask};

use crate::{
    finding::{Attack, Context, Found, Limit, Measure, Rate},
    lying_hub::{self, Answer, Deck, Hub, SLOTS, Sent, survivors, told},
    scene::{CLUMPS, FUZZIFIER, Scene},
    textbook::Textbook,
    view::{prepared, read_as_plain, unbounded},
};

/// What it is.
pub const ATTACK: Attack = Attack {
    name: "model-inconsistency",
    shows: "different questions to different sites, or two to one, leave one site's sums in the open",
    needs: "a coordinator that tells sites different things, or one site twice",
    control: "the same sites' words under Bonawitz et al. as printed: masks from the pair and the round alone, no box for \
                  centres",
    protection: "every mask is bound to the hash of all that was asked [RND-1]; a site sees the others' signatures on its own \
                     question before a share leaves [SUR-5]; a slot is answered once [RND-2]",
    not_shown: "denial of service: every such lie ends the round",
    run,
};
const SITES: usize = 8;
const ROWS: usize = 20;
const TARGET: u16 = 0;

/// Three centres as a round's question.
///
/// # Errors
/// Never for numbers.
pub fn about(centres: [[f64; 2]; 3]) -> Result<Question> {
    let centres = Centres::from_rows(&centres.map(|c| c.to_vec()))?;
    Ok(Question::Cluster(Batch::from(Query::fuzzy_sums(centres, FUZZIFIER))))
}

/// Rows and public numbers of one federation.
pub struct Field {
    /// By site.
    pub rows: Vec<Prepared>,
    /// Of the plan.
    pub max_rows: u64,
}

impl Field {
    /// From a seed.
    ///
    /// # Errors
    /// Never for these sizes.
    pub fn new(seed: u64, sites: usize, rows: usize) -> Result<Field> {
        let scene = Scene::clumps(seed, sites, rows, 1)?;
        Ok(Field { rows: prepared(&scene)?, max_rows: (rows as u64).next_power_of_two() })
    }

    fn form(&self) -> SumBounds {
        SumBounds::new(self.rows.len(), self.max_rows)
    }

    /// The layout of an answer.
    ///
    /// # Errors
    /// Where the question does not fit the box.
    pub fn layout(&self, question: &Question) -> Result<Layout> {
        Ok(question.layout(self.rows[0].domain(), &self.form())?)
    }

    /// One site's answer in fixed point.
    ///
    /// # Errors
    /// Where there is none.
    pub fn words(&self, site: u16, question: &Question) -> Result<Vec<u64>> {
        let terms = Terms::everybody(self.form());
        Ok(contribute(question, &self.rows[usize::from(site)], &terms)?)
    }

    /// Answers of real sites from these rows.
    pub fn answers(self: &Rc<Self>) -> Answer {
        let field = self.clone();
        Box::new(move |site, asked| {
            let question = Question::from_bytes(&asked.query);
            question.ok().and_then(|q| field.words(site, &q).ok()).unwrap_or_else(|| vec![0; asked.words])
        })
    }
}

/// A coordinator in conversation with the sites of a field, and where it is with them.
pub struct Session {
    /// The sites, which hear anything from it.
    pub hub: Hub,
    /// In which it asks.
    pub deck: Deck,
    field: Rc<Field>,
    /// The context of the round before.
    previous: Hash,
    /// In which the next question is put.
    pub slot: u16,
}

impl Session {
    /// With sites of this kit and of the field's rows.
    pub fn new(kit: Kit, seed: u64, field: &Rc<Field>) -> Session {
        let everybody: Vec<u16> = (0..field.rows.len() as u16).collect();
        let mut hub = lying_hub::hub(kit, seed, field.answers());
        let deck = hub.deck(0, SLOTS, &everybody);
        Session { hub, deck, field: field.clone(), previous: Hash::default(), slot: 0 }
    }

    /// Of a plan over any of them, so that what else protects one is seen.
    pub fn over_any(seed: u64, field: &Rc<Field>) -> Session {
        Session::new(Kit::new(field.rows.len(), |terms| terms.max_rows = field.max_rows), seed, field)
    }

    /// A question in its slot: its context, and the frame that asks it.
    ///
    /// # Errors
    /// Where the question does not fit the box.
    pub fn question(&self, cohort: &[u16], question: &Question) -> Result<(Hash, Vec<u8>)> {
        let words = self.field.layout(question)?.words() as u32;
        let ask = self.hub.question(&self.deck, self.slot, cohort, self.previous, &question.to_bytes());
        Ok(self.hub.ask_frame(&self.deck, &Ask { words, ..ask }))
    }

    /// Puts such a question to all these sites, none of which refuses: its context and their masked words.
    ///
    /// # Errors
    /// Where one does.
    pub fn asked(&mut self, cohort: &[u16], question: &Question) -> Result<(Hash, BTreeMap<u16, Sent>)> {
        let (context, frame) = self.question(cohort, question)?;
        let inputs = cohort.iter().map(|site| Ok((*site, self.hub.reply(*site, &frame)?)));
        Ok((context, inputs.collect::<Result<_>>()?))
    }

    /// The round of this context is over.
    pub fn over(&mut self, context: Hash) {
        (self.previous, self.slot) = (context, self.slot + 1);
    }
}

/// The largest difference between two vectors of words at these places, in steps of the fixed point.
pub fn apart(a: &[u64], b: &[u64], places: impl IntoIterator<Item = usize>) -> f64 {
    places.into_iter().map(|i| fixed::from_ring(a[i].wrapping_sub(b[i])).unsigned_abs() as f64).fold(0.0, f64::max)
}

/// What a control that takes the masks off leaves, in steps.
pub const EXACT: Limit = Limit::AtMost(100.0);
/// An error that is no better than guessing a word, in steps: one guess in a million million is nearer.
pub const GARBAGE: Limit = Limit::AtLeast(1e6);

/// Tries both lies on textbook masks and on real sites.
///
/// # Errors
/// Where an honest part of the conversation fails.
fn run(&Context { seed, .. }: &Context) -> Result<Found> {
    let field = Rc::new(Field::new(seed, SITES, ROWS)?);
    let near = about(CLUMPS)?;
    // The control has no box: the others' centres are a million half-widths away. Where there is one, in a corner.
    let [far, corner] = [[[1e6, 1e6], [-1e6, 1e6], [0.0, 0.0]], [[0.99, 0.99], [-0.99, 0.99], [0.0, 0.0]]];
    let (far, corner) = (about(far)?, about(corner)?);
    let layout = field.layout(&near)?;
    let truth = field.words(TARGET, &near)?;
    // Weighted sums and weights of the first two of three clusters.
    let places = [0, 1, 2, 3, 6, 7];

    let book = Textbook::new(SITES as u16, 6, seed);
    let far_layout = field.layout(&far)?;
    // A site's answer to another question, in the scale of this one.
    let sent = |site: u16| -> Result<Vec<u64>> {
        if site == TARGET {
            return Ok(book.masked(site, 0, &truth));
        }
        let values = read_as_plain(&far_layout, &field.words(site, &far)?);
        let plain = unbounded(&layout, &values);
        Ok(book.masked(site, 0, &plain))
    };
    let total = book.total(&(0..SITES as u16).map(sent).collect::<Result<Vec<_>>>()?, 0);
    let control = apart(&total, &truth, places);
    let moved = about([CLUMPS[1], CLUMPS[2], CLUMPS[0]])?;
    let difference = |a: &[u64], b: &[u64]| -> Vec<u64> { a.iter().zip(b).map(|(x, y)| x.wrapping_sub(*y)).collect() };
    let (first, second) = (field.words(TARGET, &near)?, field.words(TARGET, &moved)?);
    let truth_of_two = difference(&first, &second);
    let twice = difference(&book.masked(TARGET, 0, &first), &book.masked(TARGET, 0, &second));
    let control_twice = apart(&twice, &truth_of_two, 0..truth.len());

    // Real sites.
    let mut session = Session::over_any(seed, &field);
    let everybody: Vec<u16> = (0..SITES as u16).collect();
    let (mut inputs, mut contexts) = (BTreeMap::new(), BTreeMap::new());
    for site in &everybody {
        let (context, frame) = session.question(&everybody, if *site == TARGET { &near } else { &corner })?;
        contexts.insert(*site, context);
        inputs.insert(*site, session.hub.reply(*site, &frame)?);
    }
    let mut released = Rate::default();
    for site in &everybody {
        let answer = survivors(&mut session.hub, *site, &contexts[site], &everybody, &inputs)?;
        released.add(!matches!(&answer, Err(Rule::Sur5)));
    }
    let mut sum = vec![0u64; layout.words()];
    inputs.values().for_each(|s| sum.iter_mut().zip(s.words()).for_each(|(t, w)| *t = t.wrapping_add(w)));
    let protected = apart(&sum, &truth, places);

    // The same slot again with another question, to the process that answered and to one after a restart.
    let mut again = Rate::default();
    let (_, other) = session.question(&everybody, &moved)?;
    for restart in [false, true] {
        if restart {
            session.hub.restart(TARGET)?;
        }
        again.add(told(&mut session.hub, TARGET, &other)?.is_ok());
    }
    // Two answers that a site may give, in two slots, and no mask is the same.
    let mut session = Session::over_any(seed.wrapping_add(1), &field);
    let mut answered = |q: &Question| -> Result<Vec<u64>> {
        let (context, frame) = session.question(&everybody, q)?;
        session.over(context);
        Ok(session.hub.reply(TARGET, &frame)?.words())
    };
    let (first, second) = (answered(&near)?, answered(&moved)?);
    let protected_twice = apart(&difference(&first, &second), &truth_of_two, 0..truth.len());
    let all = |of| Rate { hit: of, of };
    Ok(Found::new(
        vec![
            Measure::new("two broadcasts: error of the target's sums, steps", control, EXACT, protected, GARBAGE),
            Measure::rates("sites that release shares", all(SITES as u64), released, 0.0),
            Measure::new(
                "one slot twice: error of the difference, steps",
                control_twice,
                EXACT,
                protected_twice,
                GARBAGE,
            ),
            Measure::rates("second answers in one slot", all(2), again, 0.0),
        ],
        vec![format!("{SITES} sites of {ROWS} rows; a step is {:.1e} here", layout.blocks[0].scale.unit())],
    ))
}
