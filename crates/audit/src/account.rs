//! Totals as a plan with noise releases them, and as an exact plan does: the one place that makes plans and answers questions for
//! the attacks on totals.
//!
//! A total is what leaves the sites less the masks, which cancel in it: every honest site's words by [`contribute`], each with a
//! key of noise of its own. The adversary chooses the questions and knows what all other sites sent, so they are left out, and the
//! honest sites' shares are all the noise that there is: exactly what the account counts on ([NOI-6]). One account pays for all
//! questions of an attack.

use anyhow::{Context as _, Result};
use rayon::prelude::*;
use veilsum_cluster::{
    Batch, Centres, Domain, OutOfBox, Prepared, Query, Rows, Scaling,
    privacy::{Extent, HONEST, Levels, Noise, Unit},
    query::{Shifts, Stage},
};
use veilsum_node::question::{Layout, Question, ScaledBlock, SumBounds, Terms, contribute};
use veilsum_proto::{noise::Key, suite};

use crate::scene::EDGE;

/// What an account has for the life of the rows: the default cap, and what is advised where labels or single values matter.
pub const ACCOUNTS: [f64; 2] = [1.0, 0.25];
/// Rows that the plan allows a site.
const MAX_ROWS: u64 = 1 << 12;
/// The corner of the box is no farther than its half diagonal, rounding included.
const HAIR: f64 = 1.0 + 1e-5;

/// The public box: [-EDGE, EDGE] in every column, working units are original units.
///
/// # Errors
/// Where there is no column.
pub fn domain(columns: usize) -> Result<Domain> {
    Ok(Domain::new(vec![-EDGE; columns], vec![EDGE; columns], Scaling::None)?)
}

/// How far a row may be from the middle of the box.
pub fn reach(columns: usize) -> f64 {
    EDGE * (columns as f64).sqrt() * HAIR
}

/// A round of a plan with noise: weights (K), then weighted sums of the rows (K x d), and of their squares (1), by memberships with this fuzzifier, or by the
/// nearest centre.
///
/// # Errors
/// Where these are no centres.
pub fn sums(centres: &[Vec<f64>], m: Option<f64>) -> Result<Query> {
    let centres = Centres::from_rows(centres)?;
    let clip = reach(centres.columns());
    Ok(Shifts { centres, m, middle: true, clip, round: 0 }.into())
}

/// The honest sites and their rows.
pub struct Honest {
    parts: Vec<Prepared>,
    domain: Domain,
}

impl Honest {
    /// Deals these rows (n x d) to the sites in turn.
    ///
    /// # Errors
    /// Where there are no rows, or they lie outside the box.
    pub fn new(rows: &[Vec<f64>]) -> Result<Honest> {
        let part = |site: usize| rows.iter().skip(site).step_by(HONEST).cloned().collect();
        Honest::of(&(0..HONEST).map(part).collect::<Vec<_>>())
    }

    /// Sites with these rows (n x d each).
    ///
    /// # Errors
    /// As [`Honest::new`].
    pub fn of(parts: &[Vec<Vec<f64>>]) -> Result<Honest> {
        let columns = parts.iter().flatten().next().context("no rows")?.len();
        let domain = domain(columns)?;
        let part =
            |own: &Vec<Vec<f64>>| Ok(Prepared::new(&Rows::new(own.concat(), columns)?, &domain, OutOfBox::Clip)?);
        Ok(Honest { parts: parts.iter().map(part).collect::<Result<_>>()?, domain })
    }

    /// The total of a question: exact where nothing is spent (`rho` is none), else with the noise for which the account is charged
    /// `rho`. `draw` names the noise: the same draw is the same noise.
    ///
    /// # Errors
    /// Where the question is none that the plan can ask.
    pub fn total(&self, query: &Query, rho: Option<f64>, draw: &[u64]) -> Result<Vec<f64>> {
        let asked = asked(query.clone());
        let release = Release::new(&asked, &self.domain, rho, Unit::Record)?;
        self.added(&asked, &[&release; HONEST], draw)
    }

    /// The total where every site has a release of its own.
    fn added(&self, asked: &Question, releases: &[&Release; HONEST], draw: &[u64]) -> Result<Vec<f64>> {
        let mut total = vec![0u64; releases[0].layout.words()];
        for ((site, rows), release) in self.parts.iter().enumerate().zip(releases) {
            let key = key(site, draw);
            let terms = Terms { noise: Some(&key), ..Terms::everybody(release.form) };
            let words = contribute(asked, rows, &terms)?;
            total.iter_mut().zip(words).for_each(|(t, w)| *t = t.wrapping_add(w));
        }
        Ok(crate::view::read_as_plain(&releases[0].layout, &total))
    }
}

fn key(site: usize, draw: &[u64]) -> Key {
    let bytes: Vec<u8> = draw.iter().flat_map(|n| n.to_le_bytes()).collect();
    Key::from_bytes(suite::hash("audit noise", &[&(site as u64).to_le_bytes(), &bytes]).0)
}

/// How a question's total leaves.
struct Release {
    form: SumBounds,
    layout: Layout,
    /// The standard deviation of the honest sites' noise in every entry of the total, working units.
    deviations: Vec<f64>,
}

impl Release {
    /// Exact, or that of a plan whose only question this is and which spends `rho` to hide such a unit, as an adversary chooses it.
    fn new(asked: &Question, domain: &Domain, rho: Option<f64>, unit: Unit) -> Result<Release> {
        let plain = SumBounds::new(HONEST + 1, MAX_ROWS);
        let Some(rho) = rho else {
            return Ok(Release { form: plain, layout: asked.layout(domain, &plain)?, deviations: Vec::new() });
        };
        let at = |stages: &[Stage]| u32::from(only(asked).is_some_and(|query| stages.contains(&query.stage())));
        let preparing = at(&[Stage::Preparing]);
        let (seeding, judging) = (at(&[Stage::Seeding]), at(&[Stage::Validating]));
        let noise = Noise {
            unit,
            retries: 0,
            seeding_share: f64::from(seeding),
            standardising_share: f64::from(preparing),
            validation_share: f64::from(judging),
            count_share: f64::from(u8::from(matches!(asked, Question::CountRows))),
            ..Noise::usual(rho, MAX_ROWS)
        };
        let most_clusters = only(asked).and_then(|q| q.points().first().map(|c| c.k())).unwrap_or(1) as u32;
        let (rounds, members, questions) = (1, 1, 1);
        let extent = Extent { preparing, seeding, rounds, members, judges: judging > 0, questions, most_clusters };
        let levels = Levels::new(&noise, extent, domain);
        let form = SumBounds { noise: Some(levels), ..plain };
        let layout = asked.layout(domain, &form)?;
        let priced = layout.noise.context("a total without noise")?;
        let deviation = priced.deviation as f64 * (HONEST as f64).sqrt();
        let of = |b: &ScaledBlock| std::iter::repeat_n(deviation * b.scale.unit(), b.block.len);
        let deviations = layout.blocks.iter().flat_map(of).collect();
        Ok(Release { form, layout, deviations })
    }

    /// What the account is charged.
    fn rho(&self) -> f64 {
        self.layout.nano_rho().map_or(f64::INFINITY, |alone| alone as f64 / 1e9 / HONEST as f64)
    }
}

/// What a site is asked.
pub fn asked(query: Query) -> Question {
    Question::Cluster(Batch::from(query))
}

/// The query of a question that is no row count.
fn only(asked: &Question) -> Option<&Query> {
    match asked {
        Question::Cluster(batch) => batch.queries.first(),
        _ => None,
    }
}

/// The measured and the stated rho of a question for the row, or the person, that `with` has and `without` has not, from `draws` totals: (shift of
/// the mean)² / (2 variance) of the likelihood ratio, which no test beats (Neyman & Pearson 1933). With `halved`, the first site adds half its share.
///
/// # Errors
/// Where the question cannot be answered, or has no share to be halved.
pub fn measured(
    without: &Honest,
    with: &Honest,
    asked: &Question,
    (rho, unit): (f64, Unit),
    draws: u64,
    seed: u64,
    halved: bool,
) -> Result<(f64, f64)> {
    let exact = Release::new(asked, &without.domain, None, unit)?;
    let [a, b] = [without, with].map(|of| of.added(asked, &[&exact; HONEST], &[]));
    let (a, b) = (a?, b?);
    let release = Release::new(asked, &without.domain, Some(rho), unit)?;
    // Along the difference of the exact totals, weighted by the noise: how far the row moves the score.
    let along: Vec<f64> = a.iter().zip(&b).zip(&release.deviations).map(|((a, b), s)| (b - a) / (s * s)).collect();
    let shift: f64 = a.iter().zip(&b).zip(&along).map(|((a, b), v)| (b - a) * v).sum();
    // A share for four times the rho is half as large.
    let first = Release::new(asked, &without.domain, Some(if halved { 4.0 * rho } else { rho }), unit)?;
    let score = |draw: u64| -> Result<f64> {
        let total = without.added(asked, &[&first, &release], &[seed, draw])?;
        Ok(total.iter().zip(&a).zip(&along).map(|((t, a), v)| (t - a) * v).sum())
    };
    let scores: Vec<f64> = (0..draws).into_par_iter().map(score).collect::<Result<_>>()?;
    let n = draws as f64;
    let mean = scores.iter().sum::<f64>() / n;
    let variance = scores.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    Ok((shift * shift / (2.0 * variance), release.rho()))
}

/// How often an attack on noise is repeated: `usual`, in its long form ten times as often, or `VEILSUM_AUDIT_TIMES` as often.
pub fn times(quick: bool, usual: usize) -> usize {
    let long = std::env::var("VEILSUM_AUDIT_TIMES").ok().and_then(|n| n.parse().ok());
    usual * long.unwrap_or(if quick { 1 } else { 10 })
}

/// What stops the attacks on totals.
pub const PROTECTION: &str =
    "noise on every answer, and one account of rho for the life of the rows [NOI-1], [NOI-3], [NOI-6]";
