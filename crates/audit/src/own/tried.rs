//! What an attack came to, in one draw of what is not known and in all of them.

use serde::Serialize;

use super::knows::Knows;

/// Draws of strangers, noise, samples and starts.
pub(super) const DRAWS: usize = 6;

/// What an attack came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The plan has nothing that it could be tried on.
    NotApplicable,
    /// It is not sure of any of the rows that were looked at.
    No,
    /// It succeeds on one row at least.
    Yes,
    /// It does better than the account of rho allows anybody: a defect of the program.
    Defect,
}

impl Answer {
    /// Of an attack that can be tried: whether it is better than the account allows, or succeeds.
    pub(super) fn of(defect: bool, succeeds: bool) -> Answer {
        match (defect, succeeds) {
            (true, _) => Answer::Defect,
            (false, true) => Answer::Yes,
            (false, false) => Answer::No,
        }
    }

    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Answer::NotApplicable => "not applicable",
            Answer::No => "no",
            Answer::Yes => "YES",
            Answer::Defect => "DEFECT",
        }
    }
}

/// How much better than blind guessing an attack is: 0 is guessing and 1 is certainty.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Advantage {
    /// The mean of all draws.
    pub mean: f64,
    /// Where it is, 95 times in a hundred (Student).
    pub interval: [f64; 2],
    /// Draws in which the attack succeeds, of how many.
    pub succeeds: [usize; 2],
}

/// Student's t for so many draws, 95 %.
const STUDENT: [f64; DRAWS] = [f64::INFINITY, 12.706, 4.303, 3.182, 2.776, 2.571];

impl Advantage {
    /// Of these draws.
    fn of(draws: &[f64], succeeds: usize) -> Advantage {
        let n = draws.len() as f64;
        let mean = draws.iter().sum::<f64>() / n;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let give = STUDENT[draws.len() - 1] * (variance / n).sqrt();
        Advantage { mean, interval: [mean - give, (mean + give).min(1.0)], succeeds: [succeeds, draws.len()] }
    }

    /// For people.
    pub fn words(&self) -> String {
        // No zero with a sign.
        let two = |x: f64| format!("{:.2}", (100.0 * x).round() / 100.0 + 0.0);
        let ([low, high], [times, of]) = (self.interval.map(two), self.succeeds);
        format!("{} ({low} to {high}), in {times} of {of} draws", two(self.mean))
    }
}

/// One line of the table.
#[derive(Debug, Clone, Serialize)]
pub struct Tried {
    /// The name of the attack.
    pub attack: &'static str,
    /// What somebody would try.
    pub tries: &'static str,
    /// What it knows before; nothing where no more than the result is needed.
    pub knows: Option<Knows>,
    /// What it would get of these rows.
    pub gets: String,
    /// The same of somebody who guesses without looking at a total.
    pub blind: String,
    /// By how much it is better; nothing where it is not applicable.
    pub advantage: Option<Advantage>,
    /// Whether it succeeds.
    pub answer: Answer,
    /// Whether it is about single rows, and not about a site as a whole.
    pub of_rows: bool,
}

impl Tried {
    /// What came of an attack in one draw.
    pub(super) fn new(
        (attack, tries): (&'static str, &'static str),
        knows: Option<Knows>,
        [gets, blind]: [String; 2],
        answer: Answer,
        advantage: f64,
    ) -> Tried {
        let succeeds = [usize::from(answer >= Answer::Yes), 1];
        let advantage = Some(Advantage { mean: advantage, interval: [advantage; 2], succeeds });
        Tried { attack, tries, knows, gets, blind, advantage, answer, of_rows: true }
    }

    /// One line of those of all draws. With noise it succeeds where it does in half of them, and the lower end of the interval is above
    /// guessing: one lucky draw is no success, and the line says what the middle one says. Exact totals have no luck in them, but strangers
    /// that lay a row open or do not: one draw in which they do is enough, and the line says what comes of it at worst.
    pub(super) fn over(draws: Vec<Tried>, exact: bool) -> Option<Tried> {
        let (mut tried, mut not): (Vec<Tried>, Vec<Tried>) =
            draws.into_iter().partition(|line| line.advantage.is_some());
        if tried.is_empty() {
            return not.pop();
        }
        let by = |line: &Tried| line.advantage.map_or(0.0, |found| found.mean);
        tried.sort_by(|a, b| by(a).total_cmp(&by(b)));
        // Where it was not applicable nothing was gained.
        let mut all = vec![0.0; DRAWS];
        all.iter_mut().zip(&tried).for_each(|(x, line)| *x = by(line));
        let times = tried.iter().filter(|line| line.answer >= Answer::Yes).count();
        let advantage = Advantage::of(&all, times);
        let defect = tried.iter().position(|line| line.answer == Answer::Defect);
        let worst = tried.iter().rposition(|line| line.answer == Answer::Yes).filter(|_| exact);
        let said = tried.swap_remove(defect.or(worst).unwrap_or(tried.len() / 2));
        let mostly = !exact && 2 * times >= DRAWS && advantage.interval[0] > 0.0;
        let answer = Answer::of(defect.is_some(), worst.is_some() || mostly);
        Some(Tried { answer, advantage: Some(advantage), ..said })
    }

    /// Whether the plan is no good by this line.
    pub fn at_risk(&self) -> bool {
        let succeeds = self.answer == Answer::Yes && self.of_rows && self.knows.is_none_or(Knows::counts);
        self.answer == Answer::Defect || succeeds
    }
}

/// Where an attack cannot be tried.
pub(super) fn not_applicable(attack: &'static str, tries: &'static str, why: &str) -> Tried {
    let (gets, blind) = (why.to_owned(), "-".to_owned());
    Tried { attack, tries, knows: None, gets, blind, advantage: None, answer: Answer::NotApplicable, of_rows: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lucky_draw_is_no_success() {
        use Answer::{Defect, No, NotApplicable, Yes};
        let line = |answer| match answer {
            NotApplicable => not_applicable("an attack", "somebody tries", "why"),
            No => Tried::new(("an attack", "somebody tries"), None, ["no".into(), "no".into()], No, 0.0),
            _ => Tried::new(("an attack", "somebody tries"), None, ["yes".into(), "no".into()], answer, 1.0),
        };
        let all = |answers: [Answer; DRAWS], exact| Tried::over(answers.map(line).to_vec(), exact).unwrap();
        let over = |answers| all(answers, false);
        let lucky = over([No, No, No, No, No, Yes]);
        let found = lucky.advantage.unwrap();
        assert!(lucky.answer == No && !lucky.at_risk() && lucky.gets == "no" && found.interval[0] < 0.0, "{lucky:?}");
        assert_eq!(found.words(), "0.17 (-0.26 to 0.60), in 1 of 6 draws");
        assert_eq!(over([No, No, No, Yes, Yes, Yes]).answer, No);
        assert_eq!(over([No; DRAWS]).advantage.unwrap().words(), "0.00 (0.00 to 0.00), in 0 of 6 draws");
        // Half of them, where all are far above guessing.
        let near = |answer| Tried::new(("an attack", "somebody tries"), None, ["so".into(), "no".into()], answer, 0.9);
        let half = Tried::over([No, No, No, Yes, Yes, Yes].map(near).to_vec(), false).unwrap();
        assert!(half.at_risk(), "{half:?}");
        let most = over([No, Yes, Yes, Yes, Yes, Yes]);
        assert!(most.at_risk() && most.gets == "yes", "{most:?}");
        assert_eq!(most.advantage.unwrap().words(), "0.83 (0.40 to 1.00), in 5 of 6 draws");
        assert_eq!(over([NotApplicable, NotApplicable, NotApplicable, NotApplicable, Yes, Yes]).answer, No);
        let none = over([NotApplicable; DRAWS]);
        assert!(none.answer == NotApplicable && none.advantage.is_none());
        // Without noise one of them is enough.
        let exact = all([No, No, Yes, No, No, NotApplicable], true);
        assert!(exact.at_risk() && exact.gets == "yes", "{exact:?}");
        assert!(!all([No; DRAWS], true).at_risk());
        // More than the account allows is a defect, however often.
        assert_eq!(over([No, No, Defect, No, No, No]).answer, Defect);
    }
}
