//! What a plan means in numbers: thresholds, layouts, precision and bytes, from the roster and the plan alone.

use serde_json::{Value, json};
use veilsum_cluster::{Algorithm, Per, method::Seeding};
use veilsum_proto::{
    kem::{CIPHERTEXT_BYTES, KEY_BYTES},
    limits::MIN_SITES,
    message::{COMMITMENT, Kind, OVERHEAD},
    policy::Floor,
};

use super::exit::Failure;
use crate::{
    documents::{Federation, questions},
    round::Question,
};

/// The numbers of one plan.
pub struct Cost {
    /// Sites on the roster.
    pub sites: usize,
    /// Shares that open a self-mask.
    pub threshold: usize,
    /// Colluding sites that the plan assumes.
    pub colluders: usize,
    /// Colluding sites that the threshold withstands: 2t > n + c.
    pub withstands: usize,
    /// Sites that a total covers at least.
    pub covers: usize,
    /// Rounds that one deck is good for.
    pub slots: usize,
    /// Bytes that one site uploads for one deck, to each aggregator.
    pub deck_bytes: usize,
    /// Every question that the run may ask.
    pub questions: Vec<QuestionCost>,
    /// What an operator should know before they agree.
    pub warnings: Vec<String>,
}

/// One question of a run.
pub struct QuestionCost {
    /// Its name in logs.
    pub name: &'static str,
    /// Who asks it: the intermediary counts, the coordinator clusters.
    pub asked_by: &'static str,
    /// Words of the masked vector.
    pub words: usize,
    /// Bytes that one site uploads to answer, nobody missing.
    pub round_bytes: usize,
    /// The blocks of the vector.
    pub blocks: Vec<BlockCost>,
}

/// One block of a vector.
pub struct BlockCost {
    /// What its entries are.
    pub name: &'static str,
    /// How many there are.
    pub entries: usize,
    /// Fractional bits.
    pub fraction_bits: i32,
    /// Largest absolute value of an entry at one site with `max_rows` rows.
    pub largest: f64,
    /// Largest error of an entry of the total by rounding to fixed point.
    pub rounding: f64,
    /// Standard deviation of the noise in an entry of a total over all sites, where the plan has noise.
    pub noise: Option<f64>,
}

/// Bytes of the frames of one kind that a site sends: for a deck or a round of `n` sites, nobody missing.
pub fn frame_bytes(kind: Kind, n: usize, slots: usize, words: usize) -> usize {
    let shares = 32 * slots;
    OVERHEAD
        + match kind {
            Kind::AdvertiseKeys => 96 + KEY_BYTES,
            // Commitments to the self-mask seeds, then a box for every other site: number, ciphertext, length, tag and
            // shares.
            Kind::ShareKeys => 8 + shares + 8 + n.saturating_sub(1) * (2 + CIPHERTEXT_BYTES + 8 + 16 + shares),
            Kind::MaskedInput => COMMITMENT + 8 * words,
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
        let (domain, form) = (work.domain()?, federation.form()?);
        let questions = questions(work, n)?
            .iter()
            .map(|q| {
                let layout = q.layout(&domain, &form)?;
                let blocks = layout.blocks.iter().map(|b| BlockCost {
                    name: b.block.name,
                    entries: b.block.len,
                    fraction_bits: b.scale.fraction_bits,
                    largest: match b.block.per {
                        Per::Row => b.block.bound * terms.max_rows as f64,
                        Per::Site => b.block.bound,
                    },
                    // A count is whole numbers, and those are exact.
                    rounding: if *q == Question::CountRows {
                        0.0
                    } else {
                        n as f64 * 2f64.powi(-b.scale.fraction_bits - 1)
                    },
                    noise: b
                        .noise
                        .map(|share| share.deviation as f64 * 2f64.powi(-b.scale.fraction_bits) * (n as f64).sqrt()),
                });
                Ok(QuestionCost {
                    name: q.name(),
                    asked_by: if *q == Question::CountRows { "intermediary" } else { "coordinator" },
                    words: layout.words(),
                    round_bytes: frame_bytes(Kind::MaskedInput, n, slots, layout.words())
                        + frame_bytes(Kind::Unmask, n, slots, 0),
                    blocks: merged(blocks),
                })
            })
            .collect::<Result<_, Failure>>()?;
        let mut cost = Cost {
            sites: n,
            threshold,
            colluders: terms.colluders_of(n),
            withstands: (2 * threshold).saturating_sub(n + 1),
            covers: threshold.max(usize::from(terms.min_cohort)).max(MIN_SITES),
            slots,
            deck_bytes: DECK.iter().map(|k| frame_bytes(*k, n, slots, 0)).sum(),
            questions,
            warnings: Vec::new(),
        };
        cost.warnings = cost.warn(federation);
        Ok(cost)
    }

    /// Sites that may be missing from a round.
    pub fn may_be_missing(&self) -> usize {
        self.sites - self.covers.min(self.sites)
    }

    fn warn(&self, federation: &Federation) -> Vec<String> {
        let mut out = Vec::new();
        if self.may_be_missing() == 0 {
            out.push("no site may be missing: one that goes away ends the run".to_owned());
        }
        let honest = self.threshold.saturating_sub(self.colluders);
        if honest < 3 {
            out.push(format!(
                "if {} of the sites collude with the coordinator, a sum that they learn may cover only {honest} honest \
                 sites (t - c)",
                self.colluders
            ));
        }
        out.extend(warn_method(federation));
        // Totals are equations on the rows: whoever has as many as there are unknown values may solve for them.
        let (recipe, d) = (&federation.work.recipe, federation.work.columns.len() as u64);
        let all_k = recipe.clusters.count() as u64 * u64::from(recipe.clusters.min + recipe.clusters.max) / 2;
        let numbers = all_k.saturating_mul(u64::from(recipe.restarts)).saturating_mul(d + 1);
        let rounds = u64::from(recipe.algorithm.max_questions(recipe.rule));
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

    /// For --json.
    pub fn to_json(&self) -> Value {
        let block = |b: &BlockCost| {
            json!({ "name": b.name, "entries": b.entries, "fraction_bits": b.fraction_bits,
                "largest_per_site": b.largest, "rounding_error_of_total": b.rounding, "noise_of_total": b.noise })
        };
        let question = |q: &QuestionCost| {
            json!({ "name": q.name, "asked_by": q.asked_by, "words": q.words, "upload_bytes_per_round": q.round_bytes,
                "blocks": q.blocks.iter().map(block).collect::<Vec<_>>() })
        };
        json!({
            "sites": self.sites,
            "threshold": self.threshold,
            "colluders_assumed": self.colluders,
            "colluders_withstood": self.withstands,
            "total_covers_at_least": self.covers,
            "may_be_missing": self.may_be_missing(),
            "slots": self.slots,
            "upload_bytes_per_deck": self.deck_bytes,
            "questions": self.questions.iter().map(question).collect::<Vec<_>>(),
            "warnings": self.warnings,
        })
    }

    /// For a terminal.
    pub fn to_text(&self) -> String {
        let (n, t, missing) = (self.sites, self.threshold, self.may_be_missing());
        let mut text = format!(
            "cohort      {n} sites; a total covers at least {}, so {missing} may be missing\n\
             threshold   t = {t} of {n}; withstands {} colluding sites, the plan assumes {} (2t > n + c)\n\
             deck        {} rounds; a site uploads {} bytes for it to each aggregator\n",
            self.covers, self.withstands, self.colluders, self.slots, self.deck_bytes
        );
        for q in &self.questions {
            text += &format!(
                "{:<22}words to the {}: {}; a site uploads {} bytes a round\n",
                q.name, q.asked_by, q.words, q.round_bytes
            );
            for b in &q.blocks {
                text += &format!("  {:<20}entries: {}, fractional bits: {}, ", b.name, b.entries, b.fraction_bits);
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

/// Blocks of one name together: every K and restart of a batch has its own. The least precise and the largest counts.
fn merged(blocks: impl Iterator<Item = BlockCost>) -> Vec<BlockCost> {
    let mut all: Vec<BlockCost> = Vec::new();
    for block in blocks {
        match all.iter_mut().find(|known| known.name == block.name) {
            None => all.push(block),
            Some(known) => {
                known.entries += block.entries;
                known.fraction_bits = known.fraction_bits.min(block.fraction_bits);
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
    let grouped = !matches!(recipe.algorithm, Algorithm::Fcm { .. } | Algorithm::FfcmAvg1 { .. });
    if grouped && recipe.rule.min_sites < 2 {
        out.push(
            "a cluster that only one site contributes to shows that site's mean (--min-contributors 2 closes it)"
                .into(),
        );
    }
    let seeding = match &recipe.seeding {
        Seeding::Tree(tree) => Some(recipe.rule.min_rows.max(tree.min_rows)),
        _ => None,
    };
    let asks_little = recipe.rule.min_rows > 1 || recipe.rule.min_sites > 1 || seeding.is_some_and(|p| p > 1);
    if asks_little && !recipe.rule.ask_first && (grouped || seeding.is_some()) {
        out.push("sums are asked together with counts: those of small clusters and cells are seen too".into());
    }
    if matches!(&recipe.seeding, Seeding::Tree(tree) if tree.blur == 0.0) {
        out.push("seeding totals are exact: with a cluster's total they may isolate a row (--blur 0.5)".into());
    }
    if work.sampling.is_some() {
        out.push(
            "rounds cover different sites: their differences say more about single sites than a fixed cohort's".into(),
        );
    }
    if let Some(labels) = &work.labels {
        out.push(format!("counts by cluster and {:?} are released", labels.column));
    }
    let operations = recipe.most_operations(federation.terms.max_rows, work.columns.len());
    if operations > 1e12 {
        out.push(format!(
            "a question may cost a site up to {operations:.0e} operations, more than a quarter of an hour"
        ));
    }
    let (most, usual) = (work.max_questions(), Floor::default().max_rounds);
    if most > usual {
        out.push(format!("up to {most} questions, where a site without a floor of its own answers {usual}"));
    }
    out
}
