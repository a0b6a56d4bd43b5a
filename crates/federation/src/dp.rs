//! What a plan with noise promises and costs, for plans, reports and result files (spec section 17).

use std::{
    borrow::Cow,
    sync::{Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};
use veilsum_cluster::{
    Domain, Recipe, Step,
    method::mechanism::{self, Forecast, MOSTLY},
    privacy::{HONEST, Noise, Unit, advantage, excess},
};

pub use veilsum_door::DEFAULT_NANO_RHO;

use crate::{
    agreed::Federation,
    cost::counted,
    error::Failure,
    plan::PlanSpec,
    question::{Layout, Question, SumBounds},
    refusal::rho_text,
};

/// The promise of a run and what it does to the result.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Privacy {
    /// The promise in words.
    pub promise: String,
    /// What is added or removed: `record` or `person`.
    pub unit: Cow<'static, str>,
    /// Rows of a unit at most.
    pub rows_of_unit: u64,
    /// The whole run as zero-concentrated differential privacy, with questions that are asked again, while two sites keep their noise secret.
    pub rho: f64,
    /// What the account of each site is charged for it, which counts on the site's own noise alone, in 10^-9 of rho.
    pub price: u64,
    /// How many lost questions may be asked again.
    pub retries: u32,
    /// Standard deviation of a cluster's weight in the last round, all sites there.
    pub noise_of_weights: f64,
    /// The same of a coordinate of a cluster's sum, working units.
    pub noise_of_sums: f64,
    /// The same of the row count.
    pub noise_of_count: f64,
    /// What will come out, in a sentence, for clusters from overlapping to clear ones.
    pub forecast: String,
    /// How far a coordinate of a centre ends from the best one of the same rows (root mean square), as a part of its column's range: the
    /// median over made-up clusters; `None` where the mechanism cannot be played.
    pub predicted_error: Option<f64>,
    /// What that lies between in nine of ten.
    pub predicted_range: Option<[f64; 2]>,
    /// What another sample of as many rows would move, likewise.
    pub sampling_error: Option<f64>,
    /// The same of one site's rows, which it has without noise if it clusters them alone.
    pub alone_error: Option<f64>,
    /// Probability that the result is hardly worse than the best one and every cluster keeps its centre: the plan's mechanism played over
    /// made-up clusters.
    pub clusters_kept: f64,
    /// The same without noise: what is missing here is not the noise's fault.
    pub clusters_kept_without_noise: f64,
    /// Whether that probability is at least a half, and nine tenths of the next one; of a description, whether the error is small enough.
    pub useful: bool,
    /// If not: about how many rows in all would do, where any would.
    pub useful_from_rows: Option<u64>,
}

impl Privacy {
    /// Of a plan; `None` where it has no noise.
    pub fn of(federation: &Federation) -> Option<Privacy> {
        let (work, form) = (&federation.work, federation.form().ok()?);
        let (noise, levels): (Noise, _) = (work.recipe.noise?, form.noise?);
        let excess = excess(form.sites);
        let [weights, sums, count] = {
            let [weights, sums] = levels.of_last();
            [weights, sums, levels.of_count()].map(|level| level.deviation * excess)
        };
        // A plan whose mechanism cannot be played promises nothing.
        let found = forecast(work, excess).unwrap_or(Forecast::NOTHING);
        let finite = |error: f64| error.is_finite().then_some(error);
        let unit = match noise.unit {
            Unit::Record => "record",
            Unit::Person { .. } => "person",
        };
        Some(Privacy {
            promise: promise(&noise, DEFAULT_NANO_RHO),
            unit: unit.into(),
            rows_of_unit: noise.unit.rows(),
            rho: noise.rho(),
            price: noise.price(),
            retries: noise.retries,
            noise_of_weights: weights,
            noise_of_sums: sums,
            noise_of_count: count,
            forecast: format!("{}: {}", setting(work, &form, &noise), outlook(&found)),
            predicted_error: finite(found.error),
            predicted_range: finite(found.range[1]).map(|_| found.range),
            sampling_error: finite(found.sampling),
            alone_error: finite(found.sampling * (form.sites as f64).sqrt()),
            clusters_kept: found.kept,
            clusters_kept_without_noise: found.kept_without_noise,
            useful: found.useful(),
            useful_from_rows: found.rows,
        })
    }

    /// For a terminal.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "privacy     {}\n\
             noise       weights {:.1}, sums {:.3} (working units), row count {:.1}\n\
             forecast    {}\n\
             \x20           for clusters from overlapping to clear ones; all are kept with probability {:.2} ({:.2} without noise)\n",
            self.promise,
            self.noise_of_weights,
            self.noise_of_sums,
            self.noise_of_count,
            self.forecast,
            self.clusters_kept,
            self.clusters_kept_without_noise,
        );
        if let Some(alone) = self.alone() {
            text += &format!("            {alone}\n");
        }
        if let Some(warning) = self.warning() {
            text += &format!("warning: {warning}\n");
        }
        text
    }

    /// Where one site alone would do better: how far off it would be, and how far off all of them are.
    pub fn alone(&self) -> Option<String> {
        let (error, sampling, alone) = (self.predicted_error?, self.sampling_error?, self.alone_error?);
        let together = error.hypot(sampling);
        (alone < together).then(|| {
            let [alone, together] = [alone, together].map(percent);
            format!("one site alone, without noise, would be nearer to the truth: {alone} of a range off against {together} here")
        })
    }

    /// What to say where the noise drowns the centres, and what to change.
    pub fn warning(&self) -> Option<String> {
        (!self.useful).then(|| format!("under this noise centres cannot be told from chance. {}", self.forecast))
    }
}

/// What noise leaves to somebody who knows everything but one row, or one person: the same sentence on every screen and page. So much is spent
/// after a plan, and ever at most, in 10^-9 of rho, by a site's own noise alone.
pub fn guesses(unit: Unit, plan: u64, ever: u64) -> String {
    let honest = HONEST as u64;
    format!(
        "{} {} times in 100 instead of 50 after this plan, {} after all plans ever ({} and {} while one other site keeps its secrets).",
        somebody(unit != Unit::Record),
        right(plan),
        right(ever),
        right(plan / honest),
        right(ever / honest)
    )
}

/// The same of all plans under this cap of an account.
pub fn ever(unit: veilsum_door::Unit, cap: u64) -> String {
    format!(
        "{} {} times in 100 instead of 50 after all plans ever ({} while one other site keeps its secrets).",
        somebody(unit != veilsum_door::Unit::Row),
        right(cap),
        right(cap / HONEST as u64)
    )
}

fn somebody(hides_persons: bool) -> String {
    let (one, it) = if hides_persons { ("person", "that person") } else { ("row", "it") };
    format!(
        "Whatever the others do, somebody who knows everything but one {one} and guesses whether {it} is there is right about"
    )
}

/// Right guesses in 100.
fn right(nano_rho: u64) -> f64 {
    (50.0 * (1.0 + advantage(nano_rho as f64 / 1e9))).round()
}

/// The same for experts, and what stands in the way.
pub fn spends(plan: u64, cap: u64) -> String {
    if plan <= cap {
        return format!("The plan spends {} of {} in rho (zCDP).", rho_text(plan), rho_text(cap));
    }
    let (plan, cap) = (rho_text(plan), rho_text(cap));
    format!(
        "The plan spends {plan} in rho (zCDP), and an account has {cap}: no site answers it before its operator raises the cap of its account \
         (`veilsum agree --cap RHO`)."
    )
}

/// What a plan with noise promises: the sentence for everybody, the figures, and what they rest on. `cap` is that of the account; one that
/// lets the plan run is no smaller than its price.
pub fn promise(noise: &Noise, cap: u64) -> String {
    let of_a_person = match noise.unit {
        Unit::Record => String::new(),
        Unit::Person { rows: 1 } => " Of a person one row counts at each site.".to_owned(),
        Unit::Person { rows } => format!(" Of a person at most {rows} rows count at each site."),
    };
    format!(
        "{} {}{of_a_person} Centres, weights, indices and counts are noisy. This holds if \
         first centres, ranges and expected rows in the plan do not come from the rows. A row that cannot be used (an empty cell, a category \
         that is not listed) is left out and reported to its own site alone; a description counts what it lacks, with noise.",
        guesses(noise.unit, noise.price(), cap.max(noise.price())),
        spends(noise.price(), cap),
    )
}

/// What a forecast is for: sites, rows, columns, K and budget.
fn setting(work: &PlanSpec, form: &SumBounds, noise: &Noise) -> String {
    let clusters = match work.recipe.algorithm.traits().describes {
        Some(_) => String::new(),
        None => format!("K = {}, ", work.recipe.clusters.max),
    };
    let columns = counted(work.headers().count(), "column");
    format!("{} sites, {} rows in all, {columns}, {clusters}rho {}", form.sites, noise.expected_rows, noise.rho())
}

/// What will come out of a plan. A process that has played it knows: it is said before a run and in its result, by all parties of a
/// demonstration.
fn forecast(work: &PlanSpec, excess: f64) -> Option<Forecast> {
    /// A plan, in its box and with so much more noise than planned, and what came out.
    type Played = (Recipe, Domain, u64, Option<Forecast>);
    static LAST: Mutex<Option<Played>> = Mutex::new(None);
    let domain = work.domain().ok()?;
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((recipe, of, by, found)) = &*last
        && (recipe, of, *by) == (&work.recipe, &domain, excess.to_bits())
    {
        return *found;
    }
    let found = mechanism::forecast(&work.recipe, &domain, excess).ok()?;
    *last = Some((work.recipe.clone(), domain, excess.to_bits(), found));
    found
}

/// A part of a column's range.
fn percent(part: f64) -> String {
    match part < 0.002 {
        true => format!("{:.2} %", 100.0 * part),
        false => format!("{:.1} %", 100.0 * part),
    }
}

/// What will come out, or what would have to change.
fn outlook(found: &Forecast) -> String {
    match (found.useful(), found.rows) {
        (true, _) => format!(
            "noise moves centres by {} to {} of a column's range (median {}); the rows' own sampling error is {}",
            percent(found.range[0]),
            percent(found.range[1]),
            percent(found.error),
            percent(found.sampling)
        ),
        _ if found.layouts == 0 && found.error.is_infinite() => {
            "K is too large to be tried out, so that nothing is forecast; choose a smaller K".into()
        }
        _ if found.kept_without_noise < MOSTLY => {
            "also without noise these first centres lose clusters; choose other first centres or a smaller K".into()
        }
        (_, Some(rows)) => {
            format!("clusters drown in the noise; about {rows} rows in all, or fewer K or rounds, would do")
        }
        (_, None) => "clusters drown in the noise, and a thousand times as many rows would not do".into(),
    }
}

/// What a whole run costs a site, in 10^-9 of rho: the price of every answer, rounding included, and of the dearest once more for each
/// question that may be asked again ([NOI-6]); `None` without noise.
///
/// # Errors
/// A [`Failure`] where the plan cannot be run.
pub fn spent(work: &PlanSpec, form: &SumBounds) -> Result<Option<u64>, Failure> {
    let Some(levels) = form.noise else { return Ok(None) };
    let domain = work.domain()?;
    let price = |layout: &Layout| layout.nano_rho().unwrap_or(u64::MAX);
    let mut prices = vec![price(&Question::CountRows.layout(&domain, form)?)];
    // The layouts of a run do not depend on what its totals are.
    let mut run = work.run(form.sites)?;
    let mut step = run.next(None)?;
    while let Step::Ask(batch) = step {
        let layout = Question::Cluster(batch).layout(&domain, form)?;
        prices.push(price(&layout));
        let zeros = layout.decode(&vec![0; layout.words()], 0, None)?;
        step = run.next(Some(&zeros))?;
    }
    let again = prices.iter().max().map_or(0, |most| most.saturating_mul(levels.noise().retries.into()));
    Ok(Some(prices.into_iter().fold(again, u64::saturating_add)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The default plan and account, and one that hides persons.
    #[test]
    fn what_people_read_of_noise() {
        let usual = Noise::usual(0.25, 1_000);
        let said = promise(&usual, DEFAULT_NANO_RHO);
        let sentence = "Whatever the others do, somebody who knows everything but one row and guesses whether it is there is right about 69 \
                        times in 100 instead of 50 after this plan, 84 after all plans ever (64 and 76 while one other site keeps its secrets).";
        assert!(said.starts_with(sentence) && said.contains("spends 0.5 of 2 in rho"), "{said}");
        let persons = promise(&Noise { unit: Unit::Person { rows: 5 }, ..usual }, DEFAULT_NANO_RHO / 4);
        assert!(persons.contains("but one person and guesses whether that person is there"), "{persons}");
        let dear = promise(&Noise::usual(20.0, 1_000), DEFAULT_NANO_RHO);
        assert!(dear.contains("spends 40 in rho (zCDP), and an account has 2: no site answers it"), "{dear}");
        assert!(persons.contains("69 after all plans") && persons.contains("at most 5 rows count"), "{persons}");
    }

    /// What is off, how many rows would do, or that rows are not what is missing.
    #[test]
    fn a_forecast_is_one_sentence() {
        let (range, layouts) = ([0.00121, 0.0312], 40);
        let good = Forecast {
            error: 0.004,
            range,
            sampling: 0.00904,
            kept: 0.99,
            kept_without_noise: 1.0,
            layouts,
            rows: None,
        };
        let says = |found: Forecast| outlook(&found);
        assert!(
            says(good).ends_with(
                "by 0.12 % to 3.1 % of a column's range (median 0.4 %); the rows' own sampling error is 0.9 %"
            )
        );
        let drowned = Forecast { kept: 0.3, rows: Some(16_000), ..good };
        assert!(says(drowned).contains("drown in the noise; about 16000 rows in all"));
        assert!(says(Forecast { rows: None, ..drowned }).contains("would not do"));
        assert!(says(Forecast { kept_without_noise: 0.4, ..drowned }).contains("other first centres"));
        let not_played = Forecast { error: f64::INFINITY, kept: 0.0, kept_without_noise: 0.0, layouts: 0, ..good };
        assert!(says(not_played).contains("nothing is forecast"));
    }

    /// One site of three has three times as few rows, and no noise.
    #[test]
    fn one_site_alone_is_said_to_do_better_where_it_does() {
        let of = |error: f64| Privacy {
            predicted_error: Some(error),
            sampling_error: Some(0.01),
            alone_error: Some(0.01 * 3f64.sqrt()),
            ..Privacy::default()
        };
        assert_eq!(of(0.014).alone(), None);
        let said =
            "one site alone, without noise, would be nearer to the truth: 1.7 % of a range off against 1.8 % here";
        assert_eq!(of(0.0145).alone().as_deref(), Some(said));
        assert!(of(0.0145).to_text().contains(said));
        assert_eq!(Privacy { alone_error: None, ..of(0.0145) }.alone(), None);
    }
}
