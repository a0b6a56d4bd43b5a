//! An attack and its finding: numbers without the protection and with it, each with the limit that it must reach.

use std::{cell::OnceCell, collections::BTreeSet};

use anyhow::Result;
use serde::Serialize;
use veilsum_proto::Rule;

use crate::{
    scene::Scene,
    view::{self, Recording},
};

/// A number of successes out of a number of tries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Rate {
    /// Successes.
    pub hit: u64,
    /// Tries.
    pub of: u64,
}

impl Rate {
    /// One more try.
    pub fn add(&mut self, hit: bool) {
        self.of += 1;
        self.hit += u64::from(hit);
    }
}

impl std::ops::AddAssign for Rate {
    fn add_assign(&mut self, more: Rate) {
        (self.hit, self.of) = (self.hit + more.hit, self.of + more.of);
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = 100.0 * self.hit as f64 / self.of.max(1) as f64;
        write!(f, "{percent:.0} % ({}/{})", self.hit, self.of)
    }
}

/// One number of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// A share of tries. Its value is between 0 and 1, and there is none where nothing was tried.
    Rate(Rate),
    /// An error, a distance, an advantage: a number of its own.
    Number(f64),
}

impl Figure {
    /// The number to which limits apply; NaN where nothing was tried.
    pub fn value(self) -> f64 {
        match self {
            Figure::Rate(rate) if rate.of == 0 => f64::NAN,
            Figure::Rate(rate) => rate.hit as f64 / rate.of as f64,
            Figure::Number(x) => x,
        }
    }
}

impl From<Rate> for Figure {
    fn from(rate: Rate) -> Self {
        Figure::Rate(rate)
    }
}

impl From<f64> for Figure {
    fn from(x: f64) -> Self {
        Figure::Number(x)
    }
}

impl std::fmt::Display for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Figure::Rate(rate) => rate.fmt(f),
            Figure::Number(x) => f.write_str(&short(*x)),
        }
    }
}

/// Three or four digits that a reader can compare.
pub fn short(x: f64) -> String {
    let size = x.abs();
    if x == 0.0 || (1e-2..1e5).contains(&size) {
        let text = format!("{x:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        format!("{x:.1e}")
    }
}

/// What a number must reach.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// It may not be larger.
    AtMost(f64),
    /// It may not be smaller.
    AtLeast(f64),
}

impl Limit {
    fn holds(self, x: f64) -> bool {
        match self {
            Limit::AtMost(most) => x <= most,
            Limit::AtLeast(least) => x >= least,
        }
    }

    /// In the form of `figure`: a rate's limit in percent.
    pub fn shown(self, figure: Figure) -> String {
        let (sign, x) = match self {
            Limit::AtMost(x) => ("<=", x),
            Limit::AtLeast(x) => (">=", x),
        };
        match figure {
            Figure::Rate(_) => format!("{sign} {} %", short(100.0 * x)),
            Figure::Number(_) => format!("{sign} {}", short(x)),
        }
    }
}

/// One thing that was measured twice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measure {
    /// What is counted or measured.
    pub what: String,
    /// The control: the same attack where the protection is taken away.
    pub unprotected: Figure,
    /// The limit that the control must reach; otherwise the attack shows nothing.
    pub control: Limit,
    /// With the protection.
    pub protected: Figure,
    /// The limit that the protected run must not pass.
    pub bound: Limit,
}

impl Measure {
    /// A measure with its control and its bound.
    pub fn new(
        what: impl Into<String>,
        unprotected: impl Into<Figure>,
        control: Limit,
        protected: impl Into<Figure>,
        bound: Limit,
    ) -> Measure {
        let (unprotected, protected) = (unprotected.into(), protected.into());
        Measure { what: what.into(), unprotected, control, protected, bound }
    }

    /// A rate that must be complete without the protection; with it, at most `chance` successes may come from blind
    /// guessing.
    pub fn rates(what: impl Into<String>, unprotected: Rate, protected: Rate, chance: f64) -> Measure {
        let most = beyond_chance(chance) as f64 / protected.of.max(1) as f64;
        Measure::new(what, unprotected, Limit::AtLeast(1.0), protected, Limit::AtMost(most))
    }

    /// The verdict about the product; a break outranks a failed control.
    pub fn verdict(&self) -> Verdict {
        let (with, without) = (self.protected.value(), self.unprotected.value());
        match (self.bound.holds(with), self.control.holds(without)) {
            (false, _) if !with.is_nan() => Verdict::Broken,
            (true, true) => Verdict::Holds,
            _ => Verdict::ControlFailed,
        }
    }
}

/// What a finding says about the product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The control succeeded and the protected run stayed under its bound.
    Holds,
    /// The control did not succeed completely, or nothing was tried: nothing is shown.
    ControlFailed,
    /// The attack works on what was really received.
    Broken,
}

impl Verdict {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::ControlFailed => "CONTROL FAILED",
            Verdict::Broken => "BROKEN",
        }
    }
}

/// What every attack of one audit gets.
pub struct Context {
    /// From which scenes and starts are drawn.
    pub seed: u64,
    /// Whether the short form is run.
    pub quick: bool,
    sweep: OnceCell<Recording>,
}

impl Context {
    /// Makes an audit that has recorded nothing yet.
    pub fn new(seed: u64, quick: bool) -> Context {
        Context { seed, quick, sweep: OnceCell::new() }
    }

    /// The run of a sweep over K.
    ///
    /// # Errors
    /// Where it cannot be recorded.
    pub fn sweep(&self) -> Result<&Recording> {
        if let Some(recording) = self.sweep.get() {
            return Ok(recording);
        }
        let recording = view::record(&Scene::sweep(self.seed)?)?;
        Ok(self.sweep.get_or_init(|| recording))
    }
}

/// An attack of the table.
#[derive(Debug, Clone, Serialize)]
pub struct Attack {
    /// Its name on the command line.
    #[serde(rename = "attack")]
    pub name: &'static str,
    /// What it shows, in one line.
    pub shows: &'static str,
    /// What the adversary must have.
    pub needs: &'static str,
    /// Exactly what the control is: which protection it lacks.
    pub control: &'static str,
    /// What protects, with its rules.
    pub protection: &'static str,
    /// What it does not show.
    pub not_shown: &'static str,
    /// Runs it, with what it lacks and with what protects.
    #[serde(skip)]
    pub run: fn(&Context) -> Result<Found>,
}

/// What one attack found.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Found {
    /// The numbers.
    pub measures: Vec<Measure>,
    /// Another sign that the protection failed.
    pub also_broken: Option<String>,
    /// What a reader should know beside the numbers.
    pub details: Vec<String>,
}

impl Found {
    /// These numbers, and no other sign.
    pub fn new(measures: Vec<Measure>, details: Vec<String>) -> Found {
        Found { measures, also_broken: None, details }
    }

    /// The worst verdict of its measures.
    pub fn verdict(&self) -> Verdict {
        if self.also_broken.is_some() {
            return Verdict::Broken;
        }
        self.measures.iter().map(Measure::verdict).max().unwrap_or(Verdict::ControlFailed)
    }
}

/// An attack with what it found.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// The attack.
    #[serde(flatten)]
    pub attack: &'static Attack,
    /// What it found.
    #[serde(flatten)]
    pub found: Found,
    /// Time the attack took, with the recording of what it alone needs.
    pub seconds: f64,
}

/// The smallest count that blind guessing with this many expected hits exceeds less than once in 1,000 audits.
pub fn beyond_chance(expected: f64) -> u64 {
    let mut term = (-expected).exp();
    let (mut below, mut count) = (term, 0u32);
    while 1.0 - below > 1e-3 && count < 1_000_000 {
        count += 1;
        term *= expected / f64::from(count);
        below += term;
    }
    u64::from(count)
}

/// These rules in a sentence.
pub fn listed(rules: &BTreeSet<Rule>) -> String {
    rules.iter().map(|rule| rule.name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(measures: Vec<Measure>) -> Found {
        Found::new(measures, vec!["a line".to_owned()])
    }

    #[test]
    fn an_audit_without_a_working_control_does_not_pass() {
        let of = |(hit, of), (with, of_with)| {
            finding(vec![Measure::rates("x", Rate { hit, of }, Rate { hit: with, of: of_with }, 0.0)]).verdict()
        };
        assert_eq!(of((5, 5), (0, 5)), Verdict::Holds);
        assert_eq!(of((4, 5), (0, 5)), Verdict::ControlFailed);
        assert_eq!(of((0, 0), (0, 5)), Verdict::ControlFailed);
        assert_eq!(of((5, 5), (0, 0)), Verdict::ControlFailed);
        assert_eq!(of((5, 5), (1, 5)), Verdict::Broken);
        assert_eq!(of((4, 5), (1, 5)), Verdict::Broken);
        assert_eq!(finding(Vec::new()).verdict(), Verdict::ControlFailed);
        let good = Measure::rates("x", Rate { hit: 5, of: 5 }, Rate { hit: 0, of: 5 }, 0.0);
        let sign = Found { also_broken: Some("a sign".into()), ..finding(vec![good]) };
        assert_eq!(sign.verdict(), Verdict::Broken);
    }

    #[test]
    fn one_bad_measure_spoils_a_finding() {
        let error = |without, with| Measure::new("e", without, Limit::AtMost(1e-5), with, Limit::AtLeast(1e6));
        let verdict = |with: &[f64]| finding(with.iter().map(|x| error(1e-7, *x)).collect()).verdict();
        assert_eq!(verdict(&[1e7, 1e12]), Verdict::Holds);
        assert_eq!(verdict(&[1e7, 0.5]), Verdict::Broken);
        assert_eq!(verdict(&[1e7, f64::NAN]), Verdict::ControlFailed);
        assert_eq!(finding(vec![error(1.0, 1e7)]).verdict(), Verdict::ControlFailed);
        assert_eq!(finding(vec![error(f64::NAN, 1e7)]).verdict(), Verdict::ControlFailed);
    }

    #[test]
    fn chance_is_what_blind_guessing_gives() {
        assert_eq!(beyond_chance(0.0), 0);
        assert_eq!(beyond_chance(5e-4), 0);
        assert_eq!(beyond_chance(0.01), 1);
        assert_eq!(beyond_chance(1.0), 5);
    }

    #[test]
    fn figures_are_short() {
        assert_eq!(short(0.25), "0.25");
        assert_eq!(short(3.0), "3");
        assert_eq!(short(1.234e-7), "1.2e-7");
        assert_eq!(short(5e12), "5.0e12");
        assert_eq!(short(0.0), "0");
        assert_eq!(Limit::AtMost(0.25).shown(Rate::default().into()), "<= 25 %");
    }
}
