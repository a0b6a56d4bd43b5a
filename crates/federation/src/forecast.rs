//! Before anything leaves: what a whole plan would give away (spec section 11).

use veilsum_cluster::method::Stage;

use crate::{
    agreed::{Federation, questions},
    error::Failure,
    plan::PlanSpec,
    question::Question,
};

/// What a plan gives away at most.
#[derive(Clone, Debug, Default)]
pub struct Forecast {
    /// Every part of a run: its name, its questions at most, and the numbers in all of them.
    pub parts: Vec<(&'static str, u64, u64)>,
}

impl Forecast {
    /// From the plan.
    ///
    /// # Errors
    /// A [`Failure`] if the plan has a question without a safe layout.
    pub fn of(federation: &Federation) -> Result<Forecast, Failure> {
        let (work, form, mut parts) = (&federation.work, federation.form()?, Vec::new());
        let (domain, questions) = (work.domain()?, questions(work)?);
        let place = |question: &Question| match question {
            Question::Cluster(batch) => batch.queries.first().map(|query| work.recipe.place_of(query)),
            _ => None,
        };
        for question in &questions {
            let one = question.layout(&domain, &form)?.words() as u64;
            // Rounds of two forms, each for a share of them. First centres are asked in the same form and are no rounds.
            let own = (question.name(), place(question));
            let forms = questions.iter().filter(|other| (other.name(), place(other)) == own).count() as u64;
            let (most, together) = whole_part(work, question, one, forms);
            parts.push((question.name(), most, together));
        }
        Ok(Forecast { parts })
    }

    /// All numbers.
    pub fn total(&self) -> u64 {
        self.parts.iter().map(|(_, _, numbers)| numbers).sum()
    }
}

/// How often a question of this part is asked at most, and the numbers in all of them.
fn whole_part(work: &PlanSpec, question: &Question, one: u64, forms: u64) -> (u64, u64) {
    let Question::Cluster(batch) = question else { return (1, one) };
    let recipe = &work.recipe;
    let Some(stage) = batch.queries.first().map(|query| recipe.place_of(query)) else { return (1, one) };
    let most = match stage {
        // Its questions are all in the list, and each is asked once.
        _ if recipe.algorithm.traits().describes.is_some() => 1,
        Stage::Preparing => recipe.preparation.questions().into(),
        // Margins once, then every round of sums.
        Stage::Seeding if question.name() == "margins" => 1,
        Stage::Seeding => u64::from(recipe.seeding_questions()) - 1,
        Stage::Iterating => {
            let rounds = u64::from(recipe.algorithm.traits().rounds);
            return (rounds.div_ceil(forms), (one * rounds).div_ceil(forms));
        }
        Stage::Ranging | Stage::Validating => 1,
    };
    (most, one * most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use veilsum_cluster::{
        Algorithm, OutOfBox,
        method::{Candidates, Seeding},
        privacy::Noise,
    };

    use crate::tests::{kit, terms, work};

    /// First centres and rounds are asked in one form, and every question of both is reckoned.
    #[test]
    fn every_round_is_reckoned() {
        let mut work = work(3);
        work.out_of_box = OutOfBox::Clip;
        work.recipe.algorithm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 8 };
        work.recipe.seeding = Seeding::Candidates(Candidates::usual(1));
        work.recipe.noise = Some(Noise::usual(0.5, 1000));
        let (roster, _) = kit(3);
        let federation = Federation::new(roster.clone(), terms(&roster, &work)).unwrap();
        let told = Forecast::of(&federation).unwrap();
        let shifts: u64 = told.parts.iter().filter(|(name, ..)| *name == "shifts").map(|(_, most, _)| most).sum();
        assert_eq!(shifts, u64::from(work.recipe.seeding_questions()) - 1 + 8, "{:?}", told.parts);
    }
}
