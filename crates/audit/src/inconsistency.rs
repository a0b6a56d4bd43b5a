//! One site is asked about centres where the rows are, and all others about centres where there are none, so the total
//! is the one site's sums (Pasquini et al., CCS 2022). In a second attack one site is asked twice under one mask, which
//! cancels in the difference.

use std::collections::BTreeMap;

use anyhow::Result;
use veilsum_cluster::{Batch, Centres, Prepared, Query};
use veilsum_node::question::{Layout, Question, SumBounds, Terms, contribute};
use veilsum_proto::{Rule, fixed, suite::Hash};

use crate::{
    finding::{Attack, Context, Found, Limit, Measure, Rate},
    lying_hub::{self, Answer, Hub, SLOTS, question, survivors, told},
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
    pub fn answers(self: &std::rc::Rc<Self>) -> Answer {
        let field = self.clone();
        Box::new(move |site, asked| {
            let question = Question::from_bytes(&asked.query);
            question.ok().and_then(|q| field.words(site, &q).ok()).unwrap_or_else(|| vec![0; asked.words])
        })
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
    let field = std::rc::Rc::new(Field::new(seed, SITES, ROWS)?);
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
    let mut hub = lying_hub::single(SITES, field.max_rows, seed, field.answers());
    let everybody: Vec<u16> = (0..SITES as u16).collect();
    let deck = hub.deck(0, SLOTS, &everybody);
    let words = layout.words();
    let asked = |hub: &Hub, q: &Question| question(hub, &deck, 0, &everybody, Hash::default(), words, &q.to_bytes());
    let (mut inputs, mut contexts) = (BTreeMap::new(), BTreeMap::new());
    for site in &everybody {
        let (context, frame) = asked(&hub, if *site == TARGET { &near } else { &corner });
        contexts.insert(*site, context);
        inputs.insert(*site, hub.reply(*site, &frame)?);
    }
    let mut released = Rate::default();
    for site in &everybody {
        let answer = survivors(&mut hub, *site, &contexts[site], &everybody, &inputs)?;
        released.add(!matches!(&answer, Err(Rule::Sur5)));
    }
    let mut sum = vec![0u64; words];
    inputs.values().for_each(|s| sum.iter_mut().zip(s.words()).for_each(|(t, w)| *t = t.wrapping_add(w)));
    let protected = apart(&sum, &truth, places);

    // The same slot again with another question, to the process that answered and to one after a restart.
    let mut again = Rate::default();
    let (_, other) = asked(&hub, &moved);
    for restart in [false, true] {
        if restart {
            hub.restart(TARGET)?;
        }
        again.add(told(&mut hub, TARGET, &other)?.is_ok());
    }
    // Two answers that a site may give, in two slots, and no mask is the same.
    let mut hub = lying_hub::single(SITES, field.max_rows, seed.wrapping_add(1), field.answers());
    let deck = hub.deck(0, SLOTS, &everybody);
    let mut answered = |slot: u16, previous: Hash, q: &Question| -> Result<(Hash, Vec<u64>)> {
        let (context, frame) = question(&hub, &deck, slot, &everybody, previous, words, &q.to_bytes());
        Ok((context, hub.reply(TARGET, &frame)?.words()))
    };
    let (previous, first) = answered(0, Hash::default(), &near)?;
    let (_, second) = answered(1, previous, &moved)?;
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
