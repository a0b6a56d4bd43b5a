//! What an experiment comes to: lines with the printed number, that of the paper's server run again, ours masked, and a verdict.

/// Repetitions of one measurement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample(Vec<f64>);

impl Sample {
    /// The measurements.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// The mean; 0 for nothing.
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len().max(1) as f64
    }

    /// The standard deviation (divisor n - 1); 0 for fewer than two.
    pub fn sd(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.0.iter().map(|value| (value - mean) * (value - mean)).sum();
        (squares / self.0.len().saturating_sub(1).max(1) as f64).sqrt()
    }

    /// The q-quantile by linear interpolation; 0 for nothing.
    pub fn quantile(&self, q: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let place = q.clamp(0.0, 1.0) * sorted.len().saturating_sub(1) as f64;
        let at = |i: f64| sorted.get(i as usize).copied().unwrap_or(0.0);
        let (low, high) = (at(place.floor()), at(place.ceil()));
        if low == high { low } else { low + (high - low) * place.fract() }
    }

    /// The largest; `-inf` for nothing.
    pub fn max(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl From<f64> for Sample {
    fn from(value: f64) -> Self {
        Self(vec![value])
    }
}

/// Whether a target was met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// There is no target.
    Shown,
    /// It was; with the tolerance and its reason.
    Ok(String),
    /// It was missed; by how much, and why it should not.
    Off(String),
}

impl Verdict {
    /// In a word, and why.
    pub fn parts(&self) -> (Option<&'static str>, Option<&str>) {
        match self {
            Verdict::Shown => (None, None),
            Verdict::Ok(why) => (Some("ok"), Some(why)),
            Verdict::Off(why) => (Some("off"), Some(why)),
        }
    }
}

/// One line of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its place in the table of the papers; 0 where no paper has it.
    pub item: u16,
    /// What was run.
    pub setting: String,
    /// What was measured.
    pub measure: String,
    /// What the paper prints, digit by digit; a word where it only draws; empty where it has nothing.
    pub printed: String,
    /// The paper's own server, or pooled rows.
    pub plain: Option<Sample>,
    /// Ours, through the masked protocol.
    pub masked: Option<Sample>,
    /// Decimals to print.
    pub digits: usize,
    /// What it comes to.
    pub verdict: Verdict,
}

impl Line {
    /// A line without numbers.
    pub fn new(setting: impl Into<String>, measure: impl Into<String>, digits: usize) -> Self {
        let (setting, measure) = (setting.into(), measure.into());
        let printed = String::new();
        Self { item: 0, setting, measure, printed, plain: None, masked: None, digits, verdict: Verdict::Shown }
    }

    /// Belongs to a figure of a paper, or to a sentence in words: there is no number to hold it against.
    pub fn drawn(mut self, item: u16) -> Self {
        (self.item, self.printed) = (item, "drawn".into());
        self
    }

    /// Demands that what was found lies within `tolerance` of the printed number, or rounds to it: ours masked, where nothing was
    /// masked the plain one. Where it rounds to another number the line says by how much it differs, and because of what.
    pub fn printed(mut self, item: u16, printed: &str, tolerance: f64, because: &str) -> Self {
        (self.item, self.printed) = (item, printed.into());
        let found = self.masked.as_ref().or(self.plain.as_ref()).map_or(f64::NAN, Sample::mean);
        let decimals = printed.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let unit = 10f64.powi(-(decimals as i32));
        let expected: f64 = printed.parse().unwrap_or(f64::NAN);
        let off = (found - expected).abs();
        // One part in 10^9 of a unit for what halves lose in binary.
        let same = off <= unit * (0.5 + 1e-9);
        let differs = format!("differs by {off:.decimals$} because {because}", decimals = decimals + 1);
        let said = if same { "same".to_owned() } else { differs.clone() };
        self.judged(same || off <= tolerance, said, format!("{differs}, which is more than {tolerance}"))
    }

    /// With our plain or pooled number.
    pub fn plain(mut self, sample: impl Into<Sample>) -> Self {
        self.plain = Some(sample.into());
        self
    }

    /// With our masked number.
    pub fn masked(mut self, sample: impl Into<Sample>) -> Self {
        self.masked = Some(sample.into());
        self
    }

    /// Demands that `found` lies within `tolerance` of `expected`. A line that is off already stays so.
    pub fn near(self, found: f64, expected: f64, tolerance: f64, why: &str) -> Self {
        let off = (found - expected).abs();
        // Also false for NaN.
        let met = off <= tolerance;
        self.judged(
            met,
            format!("{expected:.6} ± {tolerance:.1e}: {why}"),
            format!("off by {off:.2e} from {expected:.6}"),
        )
    }

    /// Demands `found <= limit`.
    pub fn at_most(self, found: f64, limit: f64, why: &str) -> Self {
        self.judged(found <= limit, format!("at most {limit:.3e}: {why}"), format!("{found:.3e} exceeds {limit:.3e}"))
    }

    /// Demands a condition.
    pub fn holds(self, met: bool, why: &str) -> Self {
        self.judged(met, why.to_owned(), "does not hold".to_owned())
    }

    fn judged(mut self, met: bool, why: String, off: String) -> Self {
        self.verdict = match (self.verdict, met) {
            (Verdict::Off(already), true) => Verdict::Off(already),
            (Verdict::Off(already), false) => Verdict::Off(format!("{already}; {off}: {why}")),
            (Verdict::Ok(already), true) => Verdict::Ok(format!("{already}; {why}")),
            (Verdict::Shown, true) => Verdict::Ok(why),
            (Verdict::Shown | Verdict::Ok(_), false) => Verdict::Off(format!("{off}: {why}")),
        };
        self
    }
}

/// The result of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Its name.
    pub name: &'static str,
    /// Its heading.
    pub title: String,
    /// What the reader has to know: rules that were switched off, deviations from the paper, what was not run.
    pub notes: Vec<String>,
    /// The table.
    pub lines: Vec<Line>,
    /// How long it took.
    pub seconds: f64,
}

impl Report {
    /// An empty one.
    pub fn new(name: &'static str, title: impl Into<String>) -> Self {
        Self { name, title: title.into(), notes: Vec::new(), lines: Vec::new(), seconds: 0.0 }
    }

    /// Adds a note.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Targets that were missed.
    pub fn missed(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| matches!(line.verdict, Verdict::Off(_)))
    }

    /// Lines that have a target.
    pub fn targets(&self) -> usize {
        self.lines.iter().filter(|line| line.verdict != Verdict::Shown).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_by_hand() {
        let sample: Sample = [3.0, 1.0, 2.0].into_iter().collect();
        assert_eq!((sample.mean(), sample.sd(), sample.quantile(0.5), sample.quantile(0.25)), (2.0, 1.0, 2.0, 1.5));
        let none = Sample::default();
        assert_eq!((none.mean(), none.sd(), none.quantile(0.5)), (0.0, 0.0, 0.0));
        assert_eq!(Sample::from(4.0).sd(), 0.0);
    }

    #[test]
    fn a_printed_number_is_the_same_or_differs_for_a_reason() {
        let line = |found: f64| Line::new("a", "b", 2).masked(found).printed(1, "0.31", 0.02, "it rains");
        assert_eq!(line(0.3149).verdict, Verdict::Ok("same".into()));
        assert_eq!(line(0.325).verdict, Verdict::Ok("differs by 0.015 because it rains".into()));
        assert!(
            matches!(line(0.34).verdict, Verdict::Off(why) if why.starts_with("differs by 0.030 because it rains"))
        );
        assert!(matches!(line(f64::NAN).verdict, Verdict::Off(_)));
        let plain = Line::new("a", "b", 0).plain(4.4).printed(1, "4", 0.0, "").verdict;
        assert_eq!(plain, Verdict::Ok("same".into()));
    }

    #[test]
    fn one_miss_makes_a_line_off() {
        let line = || Line::new("a", "b", 2);
        assert_eq!(line().verdict, Verdict::Shown);
        assert!(matches!(line().near(1.0, 1.1, 0.2, "x").holds(true, "y").verdict, Verdict::Ok(_)));
        assert!(matches!(line().near(1.0, 1.5, 0.2, "x").holds(true, "y").verdict, Verdict::Off(_)));
        assert!(matches!(line().holds(true, "y").at_most(2.0, 1.0, "x").verdict, Verdict::Off(_)));
        assert!(matches!(line().near(f64::NAN, 1.0, 1.0, "x").verdict, Verdict::Off(_)));
        let mut report = Report::new("t", "T");
        report.lines = vec![line(), line().holds(false, "z"), line().holds(true, "z")];
        assert_eq!((report.missed().count(), report.targets()), (1, 2));
    }
}
