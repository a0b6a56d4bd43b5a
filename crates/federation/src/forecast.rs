//! Before anything leaves: what a whole plan would give away (spec section 11).

use veilsum_cluster::method::Stage;

use crate::{agreed::questions, error::Failure, plan::PlanSpec, question::Question};

/// What a plan gives away at most.
#[derive(Clone, Debug, Default)]
pub struct Forecast {
    /// Every part of a run: its name, its questions at most, and the numbers in all of them.
    pub parts: Vec<(&'static str, u64, u64)>,
    /// Questions of the coordinator at most.
    pub most: u64,
}

impl Forecast {
    /// From the plan.
    ///
    /// # Errors
    /// A [`Failure`] if the plan has a question without a safe layout.
    pub fn of(work: &PlanSpec, max_rows: u64, sites: usize) -> Result<Forecast, Failure> {
        let form = work.form(sites, max_rows)?;
        let domain = work.domain()?;
        let mut parts = Vec::new();
        let questions = questions(work)?;
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
        Ok(Forecast { parts, most: u64::from(work.max_questions()) })
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
    let times = |numerator: u64, denominator: u64| (one * numerator).div_ceil(denominator);
    let Some(stage) = batch.queries.first().map(|query| recipe.place_of(query)) else { return (1, one) };
    match stage {
        // Its questions are all in the list, and each is asked once.
        _ if recipe.algorithm.traits().describes.is_some() => (1, one),
        Stage::Preparing => {
            let most = u64::from(recipe.preparation.questions());
            (most, times(most, 1))
        }
        // Margins once, then every round of sums.
        Stage::Seeding if question.name() == "margins" => (1, one),
        Stage::Seeding => {
            let most = u64::from(recipe.seeding_questions()) - 1;
            (most, times(most, 1))
        }
        Stage::Iterating => {
            let most = u64::from(recipe.algorithm.traits().rounds);
            (most.div_ceil(forms), times(most, forms))
        }
        Stage::Ranging | Stage::Validating => (1, one),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use veilsum_cluster::{
        Algorithm, OutOfBox,
        method::{Candidates, Seeding},
        privacy::Noise,
    };

    /// First centres and rounds are asked in one form, and every question of both is reckoned.
    #[test]
    fn every_round_is_reckoned() {
        let mut work = crate::tests::work(3);
        work.out_of_box = OutOfBox::Clip;
        work.recipe.algorithm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 8 };
        work.recipe.seeding = Seeding::Candidates(Candidates::usual(1));
        work.recipe.noise = Some(Noise::usual(0.5, 1000));
        let told = Forecast::of(&work, 100, 3).unwrap();
        let shifts: u64 = told.parts.iter().filter(|(name, ..)| *name == "shifts").map(|(_, most, _)| most).sum();
        assert_eq!(shifts, u64::from(work.recipe.seeding_questions()) - 1 + 8, "{:?}", told.parts);
    }
}
