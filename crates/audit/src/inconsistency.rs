//! One site is asked about centres where the rows are, and all others about centres where there are none, so the total
//! is the one site's sums (Pasquini et al., CCS 2022). In a second attack one site is asked twice under one mask, which
//! cancels in the difference.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use veilsum_cluster::{Batch, Centres, Prepared, Query};
use veilsum_node::question::{Layout, Question, SumBounds, Terms, contribute};
use veilsum_proto::{Rule, fixed, suite::Hash};

use crate::{
    finding::{Attack, Context, Found, Limit, Measure, Rate},
    lying_hub::{Answer, LyingHub},
    scene::{CLUMPS, FUZZIFIER, Scene},
    textbook::Textbook,
    view::{prepared, read_as_plain},
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

/// Centres as a question: the first two of three are what the target is asked about.
fn about(centres: [[f64; 2]; 3]) -> Result<Question> {
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
    let sent = |site: u16| -> Result<Vec<u64>> {
        let plain = if site == TARGET {
            field.words(site, &near)?
        } else {
            in_scale(&field, site, &far, &far_layout, &layout)?
        };
        Ok(book.masked(site, 0, &plain))
    };
    let total = book.total(&(0..SITES as u16).map(sent).collect::<Result<Vec<_>>>()?, 0);
    let control = apart(&total, &truth, places);
    let moved = about([CLUMPS[1], CLUMPS[2], CLUMPS[0]])?;
    let difference = |a: &[u64], b: &[u64]| -> Vec<u64> { a.iter().zip(b).map(|(x, y)| x.wrapping_sub(*y)).collect() };
    let [first, second] = [&near, &moved].map(|q| field.words(TARGET, q));
    let (first, second) = (first?, second?);
    let truth_of_two = difference(&first, &second);
    let twice = difference(&book.masked(TARGET, 0, &first), &book.masked(TARGET, 0, &second));
    let control_twice = apart(&twice, &truth_of_two, 0..truth.len());

    // Real sites.
    let mut hub = LyingHub::new(SITES, field.max_rows, seed, field.answers());
    let everybody: Vec<u16> = (0..SITES as u16).collect();
    hub.deck(&everybody)?;
    let mut inputs = BTreeMap::new();
    let mut contexts = BTreeMap::new();
    for site in &everybody {
        let question = if *site == TARGET { &near } else { &corner };
        let ask = hub.question(0, &everybody, Hash::default(), layout.words(), question.to_bytes());
        contexts.insert(*site, hub.context(&ask));
        let sent = hub.ask(*site, &ask)?.map_err(|rule| anyhow::anyhow!("a site refused under {rule}"))?;
        inputs.insert(*site, sent);
    }
    let mut released = Rate::default();
    for site in &everybody {
        let answer = hub.survivors(*site, &contexts[site], &everybody, &inputs)?;
        released.add(!matches!(&answer, Err(Rule::Sur5)));
    }
    let mut sum = vec![0u64; layout.words()];
    inputs.values().for_each(|s| sum.iter_mut().zip(s.words()).for_each(|(t, w)| *t = t.wrapping_add(w)));
    let protected = apart(&sum, &truth, places);

    // The same slot again with another question, to the process that answered and to one after a restart.
    let mut again = Rate::default();
    let other = hub.question(0, &everybody, Hash::default(), layout.words(), moved.to_bytes());
    for restart in [false, true] {
        if restart {
            hub.restart(TARGET)?;
        }
        again.add(hub.ask(TARGET, &other)?.is_ok());
    }
    // Two answers that a site may give, in two slots, and no mask is the same.
    let mut hub = LyingHub::new(SITES, field.max_rows, seed.wrapping_add(1), field.answers());
    hub.deck(&everybody)?;
    let mut words = Vec::new();
    let mut previous = Hash::default();
    for (slot, question) in [&near, &moved].into_iter().enumerate() {
        let ask = hub.question(slot as u16, &everybody, previous, layout.words(), question.to_bytes());
        previous = hub.context(&ask);
        words.push(hub.ask(TARGET, &ask)?.map_err(|rule| anyhow::anyhow!("refused under {rule}"))?.words());
    }
    let [first, second] = words.as_slice() else { anyhow::bail!("two answers") };
    let protected_twice = apart(&difference(first, second), &truth_of_two, 0..truth.len());
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
        vec![format!("{SITES} sites of {ROWS} rows; a step is 2^-{} here", layout.blocks[0].scale.fraction_bits)],
    ))
}

/// A site's answer to another question, in the scale of this one.
fn in_scale(field: &Field, site: u16, question: &Question, theirs: &Layout, ours: &Layout) -> Result<Vec<u64>> {
    let values = read_as_plain(theirs, &field.words(site, question)?);
    let statistic = veilsum_cluster::Statistic { values };
    ours.encode(&statistic).context("an answer beyond the target's scale")
}
