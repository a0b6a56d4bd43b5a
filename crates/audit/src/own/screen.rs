//! What an organisation reads of the audit of its plan.

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

    /// What was tried, by attack.
    fn applicable(&self) -> impl Iterator<Item = Vec<&Tried>> {
        let tried: Vec<&Tried> = self.tried.iter().filter(|tried| tried.answer != Answer::NotApplicable).collect();
        let by_attack = tried.chunk_by(|a, b| a.attack == b.attack).map(<[&Tried]>::to_vec);
        by_attack.collect::<Vec<_>>().into_iter()
    }

    /// What could not be tried, and why.
    fn others(&self) -> impl Iterator<Item = String> {
        let not = self.tried.iter().filter(|tried| tried.answer == Answer::NotApplicable);
        not.map(|tried| format!("{}: {}", tried.attack, tried.gets))
    }

    /// The screen, 80 columns.
    pub fn print(&self, out: &mut impl std::io::Write) -> std::io::Result<()> {
        for line in wrapped(&self.headline(), 80).into_iter().chain(wrapped(&self.about(), 80)) {
            writeln!(out, "{line}")?;
        }
        for lines in self.applicable() {
            writeln!(out, "\n{}", lines[0].attack)?;
            wrapped(&sentence(lines[0].tries), 78).iter().try_for_each(|line| writeln!(out, "  {line}"))?;
            for tried in lines {
                writeln!(
                    out,
                    "  {:<6}  {}",
                    tried.answer.word(),
                    tried.knows.map_or("reads the result", Knows::words)
                )?;
                let gets = format!("{}; blind guessing: {}; advantage {}", tried.gets, tried.blind, better(tried));
                wrapped(&gets, 70).iter().try_for_each(|line| writeln!(out, "  {:<6}  {line}", ""))?;
            }
        }
        if self.others().next().is_some() {
            writeln!(out, "\nnot applicable")?;
        }
        self.others().flat_map(|line| wrapped(&line, 78)).try_for_each(|line| writeln!(out, "  {line}"))?;
        writeln!(out)?;
        for line in self.advice().iter().flat_map(|line| wrapped(line, 80)) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}

fn better(tried: &Tried) -> String {
    tried.advantage.map_or_else(String::new, |found| found.words())
}

fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last =
            lines.last_mut().filter(|line| line.is_empty() || line.chars().count() + 1 + word.chars().count() <= width);
        match last {
            Some(line) => {
                line.push_str(if line.is_empty() { "" } else { " " });
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}
