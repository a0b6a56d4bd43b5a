//! What a plan means in numbers: thresholds, layouts, precision and bytes, from the roster and the plan alone.

use serde::Serialize;
use veilsum_cluster::{Per, Recipe, method::Seeding};
use veilsum_proto::{
    fixed,
    kem::{CIPHERTEXT_BYTES, KEY_BYTES},
    message::{COMMITMENT, Kind, OVERHEAD},
    plan::{Sites, Terms},
    policy::Floor,
    roster::PartyId,
};

use crate::error::Failure;
use crate::{
    agreed::{Federation, covers_at_least, questions},
    columns,
    question::{Question, Scaled, ScaledBlock},
};

/// Below so many fraction bits the rounding of rows may show in clusters of little weight.
const FEW_BITS: i32 = 34;

/// Below so many rows of each site its noise outweighs what they add.
const FEW_ROWS: u64 = 250;

/// The numbers of one plan.
#[derive(Serialize)]
pub struct Cost {
    /// Sites on the roster.
    pub sites: usize,
    /// Shares that open a self-mask.
    pub threshold: usize,
    /// Colluding sites that the plan assumes.
    #[serde(rename = "colluders_assumed")]
    pub colluders: usize,
    /// Colluding sites, with the coordinator, that no single site's part is shown to.
    #[serde(rename = "colluders_withstood")]
    pub withstands: usize,
    /// Sites that a total covers at least, over all decks that a run can shrink to.
    #[serde(rename = "total_covers_at_least")]
    pub covers: usize,
    /// Sites whose rows are in a total at least: fewer than it covers where sites are drawn.
    #[serde(skip)]
    pub drawn: usize,
    /// Sites that may be missing from a round.
    pub may_be_missing: usize,
    /// What so many sites mean, in a sentence.
    pub sites_mean: String,
    /// Rounds that one deck of the coordinator is good for.
    pub slots: usize,
    /// Bytes that one site uploads for one deck, to the coordinator.
    #[serde(rename = "upload_bytes_per_deck")]
    pub deck_bytes: usize,
    /// Rounds that the intermediary's deck is good for.
    pub count_slots: usize,
    /// Bytes that one site uploads for it.
    #[serde(rename = "upload_bytes_per_count_deck")]
    pub count_deck_bytes: usize,
    /// Which sites totals cover, in words.
    pub which_sites: String,
    /// Where first centres come from and why, in words.
    pub first_centres: String,
    /// Every question that the run may ask.
    pub questions: Vec<QuestionCost>,
    /// What an operator should know before they agree.
    pub warnings: Vec<String>,
}

/// One question of a run.
#[derive(Serialize)]
pub struct QuestionCost {
    /// Its name in logs.
    pub name: &'static str,
    /// Who asks it: the intermediary counts, the coordinator clusters.
    pub asked_by: &'static str,
    /// Words of the masked vector.
    pub words: usize,
    /// Bytes that one site uploads to answer, nobody missing.
    #[serde(rename = "upload_bytes_per_round")]
    pub round_bytes: usize,
    /// The blocks of the vector.
    pub blocks: Vec<BlockCost>,
}

/// One block of a vector.
#[derive(Serialize)]
pub struct BlockCost {
    /// What its entries are.
    pub name: &'static str,
    /// How many there are.
    pub entries: usize,
    /// What one in a total stands for, working units.
    pub unit: f64,
    /// Largest absolute value of an entry at one site with `max_rows` rows.
    #[serde(rename = "largest_per_site")]
    pub largest: f64,
    /// Largest error of an entry of the total by rounding to fixed point.
    #[serde(rename = "rounding_error_of_total")]
    pub rounding: f64,
    /// Standard deviation of the noise in an entry of a total over all sites, where the plan has noise.
    #[serde(rename = "noise_of_total")]
    pub noise: Option<f64>,
}

/// Slots of the intermediary's deck: it counts, and judges where the plan lets it; each once more where it was lost.
const COUNT_SLOTS: u16 = 4;

/// Slots of a deck if the plan's author names no number. What a site is sent for a deck grows with slots times sites, so that many sites have
/// fewer slots: with 500, a delivery has 0.7 MB in place of 2.
pub fn usual_slots(sites: usize) -> u16 {
    (10_000 / sites.max(1)).clamp(20, 64) as u16
}

/// Rounds that one deck of this aggregator is good for.
pub fn slots_of(terms: &Terms, aggregator: PartyId) -> u16 {
    if aggregator == PartyId::Intermediary { COUNT_SLOTS.min(terms.slots) } else { terms.slots }
}

/// Bytes of the frames of one kind that a site sends: for a deck or a round of `n` sites, nobody missing.
fn frame_bytes(kind: Kind, n: usize, slots: usize, words: usize) -> usize {
    let shares = 32 * slots;
    OVERHEAD
        + match kind {
            // 32 more once the data set has a block.
            Kind::AdvertiseKeys => 64 + KEY_BYTES + 45,
            // A ciphertext for every second site: of an even number of sites, half make one more than the others.
            Kind::AcceptDirectory => 8 + n / 2 * (2 + CIPHERTEXT_BYTES),
            // Commitments to the self-mask seeds, then a box for every other site: number, length, tag and shares.
            Kind::ShareKeys => 8 + shares + 8 + n.saturating_sub(1) * (2 + 8 + 16 + shares),
            Kind::MaskedInput => COMMITMENT + 8 * words,
            // The round's context, and a list of seeds that is empty.
            Kind::ConsistencyCheck => 32 + 8,
            Kind::Unmask => 8 + 32 * n,
            _ => 0,
        }
}

/// The kinds of a deck in the order in which a site sends them.
pub const DECK: [Kind; 4] = [Kind::AdvertiseKeys, Kind::AcceptDirectory, Kind::ShareKeys, Kind::ShareAck];

impl Cost {
    /// The numbers of a verified plan.
    ///
    /// # Errors
    /// A [`Failure`] where a question has no safe layout.
    pub fn of(federation: &Federation) -> Result<Cost, Failure> {
        let (terms, work) = (&federation.terms, &federation.work);
        let n = federation.roster.sites.len();
        let threshold = terms.threshold_of(n, n)?;
        let slots = usize::from(terms.slots);
        let count_slots = usize::from(slots_of(terms, PartyId::Intermediary));
        let deck_bytes = |slots| DECK.iter().map(|k| frame_bytes(*k, n, slots, 0)).sum();
        let (domain, form) = (work.domain()?, federation.form()?);
        let questions = questions(work)?
            .iter()
            .map(|q| {
                let counted = *q == Question::CountRows;
                let layout = q.layout(&domain, &form)?;
                let blocks = layout.blocks.iter().map(|b| BlockCost {
                    name: b.block.name,
                    entries: b.block.len,
                    unit: b.scale.unit(),
                    largest: match b.block.per {
                        Per::Row => b.block.bound * terms.max_rows as f64,
                        Per::Site => b.block.bound,
                    },
                    // A count is whole numbers, and those are exact.
                    rounding: if counted { 0.0 } else { rounding_of(b, n, terms.max_rows) },
                    noise: layout.noise.map(|priced| priced.deviation as f64 * b.scale.unit() * (n as f64).sqrt()),
                });
                // Towards the intermediary a site always releases against a certificate ([UNM-1]).
                let frames =
                    [Kind::MaskedInput, Kind::Unmask].into_iter().chain(counted.then_some(Kind::ConsistencyCheck));
                Ok(QuestionCost {
                    name: q.name(),
                    asked_by: if counted { "intermediary" } else { "coordinator" },
                    words: layout.words(),
                    round_bytes: frames.map(|kind| frame_bytes(kind, n, slots, layout.words())).sum(),
                    blocks: merged(blocks),
                })
            })
            .collect::<Result<_, Failure>>()?;
        let covers = covers_at_least(terms, n);
        let drawn = work.sampling.map_or(covers, |s| s.count(n));
        let mut cost = Cost {
            sites: n,
            threshold,
            colluders: terms.colluders_of(n),
            withstands: withstands(terms, n, covers, drawn),
            covers,
            drawn,
            may_be_missing: n - covers.min(n),
            sites_mean: sites_mean(n, drawn, work.recipe.noise.is_some()),
            slots,
            deck_bytes: deck_bytes(slots),
            count_slots,
            count_deck_bytes: deck_bytes(count_slots),
            which_sites: which_sites(federation),
            first_centres: first_centres(&work.recipe),
            questions,
            warnings: Vec::new(),
        };
        cost.warnings = cost.warn(federation);
        Ok(cost)
    }

    fn warn(&self, federation: &Federation) -> Vec<String> {
        let mut out = Vec::new();
        if self.may_be_missing == 0 {
            out.push("no site may be missing: one that goes away ends the run".to_owned());
        }
        let honest = self.threshold.saturating_sub(self.colluders);
        if honest < 3 {
            out.push(format!(
                "if {} of the sites collude with the coordinator, a sum that they learn may cover only {} (t - c)",
                self.colluders,
                counted(honest, "honest site")
            ));
        }
        out.extend(warn_method(federation));
        // What one row adds is rounded to a step: where steps are few, clusters that hardly anybody is in drown in it ([SUM-1]).
        if let Some(noise) = &federation.work.recipe.noise
            && self.sites > 3
            && noise.expected_rows / (self.sites as u64) < FEW_ROWS
        {
            out.push(format!(
                "with fewer than some {FEW_ROWS} expected rows a site, {} sites gain hardly anything from being many: each adds as much noise as \
                 each of two would",
                self.sites
            ));
        }
        let bits = fixed::scale(self.sites, federation.terms.max_rows, 0).map_or(0, |scale| scale.fraction_bits);
        if bits < FEW_BITS {
            out.push(format!(
                "with max_rows = {} what a row adds is rounded to 2^-{bits} of the most that it can add: a cluster with less than about \
                 2^-{} of all weight is not told from rounding (agree on a max_rows near what the largest site has)",
                federation.terms.max_rows,
                bits - 4
            ));
        }
        // Totals are equations on the rows: whoever has as many as there are unknown values may solve for them.
        let (recipe, d) = (&federation.work.recipe, federation.work.names().len() as u64);
        let all_k = recipe.clusters.count() as u64 * u64::from(recipe.clusters.min + recipe.clusters.max) / 2;
        let numbers = all_k.saturating_mul(u64::from(recipe.restarts)).saturating_mul(d + 1);
        let rounds = u64::from(recipe.algorithm.traits().rounds);
        let (one, all) = (numbers.div_ceil(d), numbers.saturating_mul(rounds).div_ceil(d));
        let floor = federation.terms.min_total_rows;
        if recipe.noise.is_some() {
            // Totals are no exact equations, and what they tell together is bounded.
        } else if floor <= one {
            out.push(format!(
                "the floor allows {floor} rows in all, and a round publishes {numbers} numbers about them: with {one} \
                 rows or fewer, one round may determine the rows"
            ));
        } else if floor <= all {
            out.push(format!(
                "the floor allows {floor} rows in all: with {all} rows or fewer, {rounds} rounds publish more numbers \
                 than the rows have values"
            ));
        }
        out
    }

    /// For a terminal.
    pub fn to_text(&self) -> String {
        let (n, t, missing) = (self.sites, self.threshold, self.may_be_missing);
        let mut text = format!(
            "cohort      {n} sites; a total covers at least {}, so {missing} may be missing from the first\n\
             sites       {}\n\
             collusion   {}\n\
             threshold   t = {t} of {n}; withstands the coordinator with {}, the plan assumes {}\n\
             deck        {}; a site uploads {} bytes for it to the coordinator, and {} to the intermediary for {}\n\
             start       {}\n",
            self.covers,
            self.which_sites,
            self.sites_mean,
            counted(self.withstands, "colluding site"),
            self.colluders,
            counted(self.slots, "round"),
            self.deck_bytes,
            self.count_deck_bytes,
            counted(self.count_slots, "round"),
            self.first_centres
        );
        for q in &self.questions {
            text += &format!(
                "{:<22}words to the {}: {}; a site uploads {} bytes a round\n",
                q.name, q.asked_by, q.words, q.round_bytes
            );
            for b in &q.blocks {
                text += &format!("  {:<20}entries: {}, step: {:.1e}, ", b.name, b.entries, b.unit);
                text += &if let Some(noise) = b.noise {
                    format!("total noisy, standard deviation {noise:.3}\n")
                } else if b.rounding == 0.0 {
                    "total exact\n".to_owned()
                } else {
                    format!("total exact to {:.1e} (working units)\n", b.rounding)
                };
            }
        }
        for warning in &self.warnings {
            text += &format!("warning: {warning}\n");
        }
        text
    }
}

/// Masks hide a part among the others' parts, and whoever has all of those subtracts them: with `n` sites, of which a total covers `drawn`.
fn sites_mean(n: usize, drawn: usize, noisy: bool) -> String {
    let noise = if noisy { ", with the noise of its own" } else { "" };
    let fewer = match n - drawn {
        0 => String::new(),
        _ => format!("; a total may cover {drawn} sites alone, and then {} of them do", drawn.saturating_sub(1)),
    };
    let others = n - 1;
    format!(
        "with {n} sites any {others} of them together know the last one's part{noise}: the total less their own{fewer}"
    )
}

/// Which sites the totals of a plan cover, and what that means for its operators ([POL-1], [POL-10]).
pub fn which_sites(federation: &Federation) -> String {
    let noise = if federation.work.recipe.noise.is_some() { ", up to noise" } else { "" };
    let subtracted =
        format!("what one sent who leaves, or comes later, can be computed from totals with and without it{noise}");
    let terms = &federation.terms;
    match terms.sites {
        Sites::Same => format!(
            "Every total covers all {} sites: one that is lost is waited for. A member may leave or come with a new roster, to which everybody \
             agrees once; {subtracted}.",
            federation.roster.sites.len()
        ),
        Sites::Any => format!(
            "Totals cover the sites that are left, at least {}: a run goes on without one that is lost, which is not asked; {subtracted}.",
            terms.least(federation.roster.sites.len())
        ),
    }
}

/// Where the first centres of a recipe come from, in a sentence.
pub fn first_centres(recipe: &Recipe) -> String {
    if recipe.algorithm.traits().describes.is_some() {
        return "first centres are not needed: a description has no clusters".to_owned();
    }
    let from = match &recipe.seeding {
        Seeding::Given { .. } => "given by the plan".to_owned(),
        Seeding::Uniform { .. } => {
            format!("drawn uniformly in the box, {}", counted(recipe.restarts as usize, "start"))
        }
        Seeding::Candidates(params) => {
            let candidates = params.count(recipe.most_points()) as usize;
            let starts = match recipe.restarts {
                1 => String::new(),
                starts => format!(", {starts} starts side by side"),
            };
            format!("from margins and sums around {}{starts}", counted(candidates, "candidate"))
        }
    };
    format!("first centres are {from}")
}

/// Colluding sites that the plan withstands: 2t > n + c in every deck that a run can shrink to ([THR-2]), and two sites at
/// least besides them in every total, or it less the colluders' own parts is the last site's.
fn withstands(terms: &Terms, sites: usize, covers: usize, drawn: usize) -> usize {
    let of_deck = |n: usize| terms.threshold_of(n, sites).map_or(0, |t| (2 * t).saturating_sub(n + 1));
    (covers..=sites).map(of_deck).min().unwrap_or(0).min(drawn.saturating_sub(2))
}

/// A number with its noun: "1 round", "2 rounds".
pub fn counted(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// Names, or what is said of each, in a line: with many of them the first five and how many more.
pub fn some_of<T: AsRef<str>>(all: &[T], between: &str) -> String {
    let (first, rest) = all.split_at(all.len().min(5));
    let first = first.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(between);
    if rest.is_empty() { first } else { format!("{first} and {} more", rest.len()) }
}

/// Blocks of one name together: every K and restart of a batch has its own. The least precise and the largest counts.
fn merged(blocks: impl Iterator<Item = BlockCost>) -> Vec<BlockCost> {
    let mut all: Vec<BlockCost> = Vec::new();
    for block in blocks {
        match all.iter_mut().find(|known| known.name == block.name) {
            None => all.push(block),
            Some(known) => {
                known.entries += block.entries;
                known.unit = known.unit.max(block.unit);
                known.largest = known.largest.max(block.largest);
                known.rounding = known.rounding.max(block.rounding);
                known.noise = known.noise.zip(block.noise).map(|(a, b)| a.max(b));
            }
        }
    }
    all
}

/// What the method's own questions give away beyond totals over many rows (threat-model.md).
fn warn_method(federation: &Federation) -> Vec<String> {
    let (work, recipe) = (&federation.work, &federation.work.recipe);
    let mut out = Vec::new();
    if !recipe.algorithm.traits().shares_rows && recipe.noise.is_none() {
        out.push("a cluster that only one site contributes to shows that site's mean".into());
    }
    if work.sampling.is_some() {
        out.push(
            "rounds cover different sites: what a single one sent can be solved for from their differences".into(),
        );
    }
    let (m, usual) = (recipe.algorithm.traits().fuzzifier.unwrap_or(1.0), work.usual_fuzzifier());
    let d = columns::dimensions(&work.columns, &work.categorical) as f64;
    if d > 2.0 && m > usual && m >= d / (d - 2.0) {
        out.push(format!(
            "with m = {m} in {d} columns all centres may fall together on the mean of the rows: take m = {usual}"
        ));
    }
    let operations = recipe.most_operations(federation.terms.max_rows, work.names().len());
    if operations > 1e12 {
        out.push(format!(
            "a question may cost a site up to {operations:.0e} operations, more than a quarter of an hour"
        ));
    }
    let (most, usual) = (work.recipe.max_questions(), Floor::default().max_rounds);
    if most > usual {
        out.push(format!("up to {most} questions, where a site without a floor of its own answers {usual}"));
    }
    out
}

/// By how much an entry of a total may differ from the exact sum at most: half a step for every row ([SUM-1]), or for every site what
/// it adds as a whole, and half a step of the total for every site where that is coarser ([FIX-4]); before noise a step for every row.
fn rounding_of(b: &ScaledBlock, sites: usize, max_rows: u64) -> f64 {
    let half = |bits: i32| 2f64.powi(-bits - 1);
    let rows = if b.block.per == Per::Row { max_rows as f64 } else { 1.0 };
    let each = match b.scale {
        Scaled::Noisy { .. } => rows * b.scale.unit(),
        Scaled::Exact { scale, summed_bits } if scale.fraction_bits < summed_bits => {
            rows * half(summed_bits) + half(scale.fraction_bits)
        }
        Scaled::Exact { summed_bits, .. } => rows * half(summed_bits),
    };
    sites as f64 * each
}

#[cfg(test)]
mod tests {
    use veilsum_cluster::{OutOfBox, privacy::Noise, sampling::Sampling};

    use super::*;
    use crate::tests::{kit, terms, work};

    /// `plan new --help-all` says it.
    #[test]
    fn there_are_fewer_slots_from_157_sites_on() {
        assert_eq!([3, 156, 157, 500, 1_000].map(usual_slots), [64, 64, 63, 20, 20]);
    }

    #[test]
    fn many_names_are_a_short_line() {
        let names = |n: usize| (0..n).map(|i| format!("s{i}")).collect::<Vec<_>>();
        assert_eq!((some_of(&names(0), ", "), some_of(&names(2), "; ")), (String::new(), "s0; s1".to_owned()));
        assert_eq!(some_of(&names(500), ", "), "s0, s1, s2, s3, s4 and 495 more");
    }

    fn cost(n: u8, change: impl FnOnce(&mut Terms, &mut crate::plan::PlanSpec)) -> Cost {
        let (roster, _) = kit(n);
        let mut work = work(3);
        let mut terms = terms(&roster, &work);
        // As `plan new` has it.
        terms.min_cohort = terms.threshold_of(roster.sites.len(), roster.sites.len()).unwrap() as u16;
        change(&mut terms, &mut work);
        terms.application = work.to_bytes();
        Cost::of(&Federation::new(roster, terms).unwrap()).unwrap()
    }

    /// A coalition with all parts of a total but one has that one, whatever the threshold is.
    #[test]
    fn what_so_many_sites_mean() {
        for (n, withstands) in [(3, 1), (4, 1), (5, 2), (10, 3)] {
            let cost = cost(n, |_, _| {});
            assert_eq!((cost.sites, cost.withstands), (usize::from(n), withstands));
            let sentence = format!(
                "with {n} sites any {} of them together know the last one's part: the total less their own",
                n - 1
            );
            assert_eq!(cost.sites_mean, sentence);
            let text = cost.to_text();
            assert!(text.contains(&sentence), "{text}");
            let said = format!("withstands the coordinator with {withstands} colluding site");
            assert!(text.contains(&said) && !text.contains(&format!("{said}ss")), "{text}");
            let json = serde_json::json!(cost);
            assert_eq!((&json["sites_mean"], &json["colluders_withstood"]), (&sentence.into(), &withstands.into()));
        }
    }

    /// `plan check` says what a plan means for whoever joins, leaves or is lost.
    #[test]
    fn which_sites_totals_cover_is_said() {
        let of = |sites| {
            let change = |terms: &mut Terms, work: &mut crate::plan::PlanSpec| {
                terms.sites = sites;
                if sites == Sites::Any {
                    (work.recipe.noise, work.out_of_box) =
                        (Some(Noise::usual(0.2, 200).from_anywhere()), OutOfBox::Clip);
                    work.recipe.algorithm = veilsum_cluster::Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 8 };
                    terms.min_cohort = 4;
                }
            };
            let cost = cost(5, change);
            assert!(cost.to_text().contains(&cost.which_sites));
            cost.which_sites
        };
        let (same, any) = (of(Sites::Same), of(Sites::Any));
        assert!(same.contains("all 5 sites: one that is lost is waited for") && !same.contains("noise"), "{same}");
        assert!(any.contains("at least 4") && any.ends_with("with and without it, up to noise."), "{any}");
    }

    /// For every number of sites, threshold and floor: colluders that are said to be withstood leave two others in a total.
    #[test]
    fn nothing_is_withstood_that_leaves_one_site_alone() {
        for n in 3..=12u8 {
            for t in 0..=n {
                for least in 0..=n {
                    let (roster, _) = kit(n);
                    let mut terms = terms(&roster, &work(3));
                    (terms.threshold, terms.min_cohort, terms.colluders) = (t.into(), least.into(), 1);
                    let Ok(federation) = Federation::new(roster, terms) else { continue };
                    let Ok(cost) = Cost::of(&federation) else { continue };
                    let terms = &federation.terms;
                    assert!(cost.withstands + 2 <= cost.covers && cost.covers <= cost.sites, "n {n}, t {t}, {least}");
                    assert!(
                        (cost.covers..=cost.sites).all(|deck| {
                            let t = terms.threshold_of(deck, cost.sites).unwrap();
                            2 * t > deck + cost.withstands
                        }),
                        "n {n}, t {t}, {least}"
                    );
                }
            }
        }
    }

    #[test]
    fn who_sees_totals_who_is_drawn_and_what_noise_does_is_said() {
        assert!(sites_mean(3, 3, true).contains("the last one's part, with the noise of its own: the total less"));
        let drawn = cost(10, |terms, work| {
            (terms.min_cohort, terms.colluders) = (10, 1);
            work.sampling = Some(Sampling { share: 0.4, seed: 1 });
        });
        assert_eq!((drawn.drawn, drawn.withstands), (4, 2));
        assert!(drawn.sites_mean.ends_with("a total may cover 4 sites alone, and then 3 of them do"));
    }
}
