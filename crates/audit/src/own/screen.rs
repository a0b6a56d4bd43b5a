//! What an organisation reads of the audit of its plan.

use std::io::{Result, Write};

use super::{
    Audited,
    knows::Knows,
    tried::{Answer, DRAWS, Tried},
};

impl Audited {
    /// The verdict in one sentence.
    pub fn headline(&self) -> String {
        if self.tried.iter().any(|tried| tried.answer == Answer::Defect) {
            return "An attack does better than the account of rho allows: this is a defect of the program. Please report it.".into();
        }
        let least = self.tried.iter().filter(|tried| tried.at_risk()).map(|tried| tried.knows).min();
        match least {
            None => "No attack was sure of a row, unless it knows all rows but that one.".into(),
            Some(knows) => format!(
                "Rows are at risk: an attack succeeds for somebody who {}.",
                knows.map_or("reads the result", Knows::words)
            ),
        }
    }

    /// What the plan was tried on.
    pub fn about(&self) -> String {
        let noise = self.rho.map_or_else(|| "an exact plan".to_owned(), |rho| format!("a plan with noise, rho {rho}"));
        let others = if self.drawn {
            "the other sites' rows were drawn to be like them"
        } else {
            "the other sites' rows were given"
        };
        let succeeds = match self.rho {
            None => "in one draw: totals without noise make no lucky guess",
            Some(_) => "in half of the draws, and that interval is above 0",
        };
        let Audited { sites, own_rows, attacked, seed, .. } = self;
        format!(
            "This is {noise}, for {sites} sites. {own_rows} rows were read, and {attacked} of them were attacked, those far from all others \
             first; {others} (seed {seed}). An advantage is 0 for guessing and 1 for certainty: the mean of {DRAWS} draws of what is not known, and \
             where it is 95 times in a hundred. An attack succeeds where it does {succeeds}."
        )
    }

    /// What to do.
    pub fn advice(&self) -> Vec<&'static str> {
        let mut advice = Vec::new();
        if self.at_risk {
            advice.push(match self.rho {
                None => "Do not agree to this exact plan. Ask the coordinator for one with noise.",
                Some(_) => "Ask the coordinator for a plan with a smaller rho, or with fewer clusters and columns.",
            });
        }
        let inherent = |tried: &Tried| tried.answer == Answer::Yes && tried.knows == Some(Knows::AllOthers);
        if self.rho.is_none() && self.tried.iter().any(inherent) {
            advice.push("Whoever knows all rows but one gets that one from any exact sum. Only noise prevents it.");
        }
        if self.tried.iter().any(|tried| tried.answer == Answer::Yes && !tried.of_rows) {
            advice.push(
                "All other sites together learn what your rows are like as a whole. No noise for single rows prevents it: take part where \
                 they would not all work together.",
            );
        }
        advice.push("An attack that fails is evidence, and no proof.");
        advice
    }

    /// The screen, 80 columns.
    pub fn print(&self, out: &mut impl Write) -> Result<()> {
        say(out, "", &self.headline())?;
        say(out, "", &self.about())?;
        let (tried, not): (Vec<&Tried>, Vec<&Tried>) = self.tried.iter().partition(|tried| tried.advantage.is_some());
        for lines in tried.chunk_by(|a, b| a.attack == b.attack) {
            writeln!(out, "\n{}", lines[0].attack)?;
            say(out, "  ", &sentence(lines[0].tries))?;
            for tried in lines {
                let knows = tried.knows.map_or("reads the result", Knows::words);
                writeln!(out, "  {:<6}  {knows}", tried.answer.word())?;
                let better = tried.advantage.map_or_else(String::new, |found| found.words());
                let gets = format!("{}; blind guessing: {}; advantage {better}", tried.gets, tried.blind);
                say(out, "          ", &gets)?;
            }
        }
        if !not.is_empty() {
            writeln!(out, "\nnot applicable")?;
        }
        for tried in not {
            say(out, "  ", &format!("{}: {}", tried.attack, tried.gets))?;
        }
        writeln!(out)?;
        self.advice().into_iter().try_for_each(|advice| say(out, "", advice))
    }
}

fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

/// Writes a text in lines of 80 letters at most, each behind `indent`.
fn say(out: &mut impl Write, indent: &str, text: &str) -> Result<()> {
    let mut line = String::from(indent);
    for word in text.split_whitespace() {
        if line.len() > indent.len() && line.chars().count() + 1 + word.chars().count() > 80 {
            writeln!(out, "{line}")?;
            line.truncate(indent.len());
        }
        line.push_str(if line.len() > indent.len() { " " } else { "" });
        line.push_str(word);
    }
    writeln!(out, "{line}")
}
