//! What a site's door is told of a plan and of a question: numbers and hashes ([`PlanFacts`], [`Offer`]); and which sites a question is about.

use veilsum_cluster::{method::Seeding, privacy};
use veilsum_door::{Cost, Gives, Offer, PlanFacts, Unit, name_of};
use veilsum_proto::{
    policy::Floor,
    roster::{PartyId, Roster},
    standing::set_of_sites,
    suite::Hash,
};

use crate::{
    agreed::{self, Federation},
    question::{Layout, Question},
};

impl Federation {
    /// What a door is told of the plan.
    pub fn facts(&self) -> PlanFacts {
        let Federation { roster, terms, work } = self;
        let (sites, recipe) = (roster.sites.len(), &work.recipe);
        PlanFacts {
            plan: terms.hash(),
            set: set_of(roster),
            sites,
            least: terms.least(sites),
            threshold: terms.stated_threshold(sites, sites),
            colluders: terms.colluders_of(sites),
            totals: terms.sites,
            questions: recipe.max_questions(),
            method: name_of(work.method_name()),
            columns: work.headers().map(name_of).collect(),
            gives: match recipe.noise {
                Some(noise) => Gives::Noisy {
                    nano_rho: noise.price(),
                    unit: match noise.unit {
                        privacy::Unit::Record => Unit::Row,
                        privacy::Unit::Person { rows } => Unit::Person(rows),
                    },
                    max_rows: terms.max_rows,
                },
                None => Gives::Exact {
                    clusters: recipe.clusters.max,
                    rows: terms.min_total_rows,
                    fuzzifier: recipe.algorithm.traits().fuzzifier.map(|m| (m * 1e3) as u32),
                    names_centres: matches!(recipe.seeding, Seeding::Given { .. }),
                },
            },
        }
    }

    /// What a door is told of a question whose answer has this form.
    pub fn offer(&self, question: &Question, layout: &Layout) -> Offer {
        Offer {
            kind: question.name(),
            cost: Cost { scalars: layout.words() as u64, nano_rho: layout.nano_rho() },
            drawn: self.drawn(question).map(|sites| cohort_digest(&self.roster, &sites)),
        }
    }

    /// Sites whose rows a question is about, where the plan draws any ([APP-6]).
    fn drawn(&self, question: &Question) -> Option<Vec<u16>> {
        let Question::Drawn { number, .. } = question else { return None };
        let chosen = self.work.sampling?.drawn(*number, self.roster.sites.len());
        Some((0..).zip(chosen).filter(|(_, drawn)| *drawn).map(|(site, _)| site).collect())
    }

    /// [POL-3]: whether site `me` was drawn for a question, which is number `of_plan` of its plan over all runs.
    ///
    /// # Errors
    /// A sentence for the site's operator.
    pub fn is_drawn(&self, floor: &Floor, me: u16, question: &Question, of_plan: u64) -> Result<bool, String> {
        let planned = u64::from(self.work.recipe.max_questions());
        if of_plan > planned {
            return Err(format!(
                "this would be question {of_plan} under a plan of {planned}, over all its runs: agree on a new plan"
            ));
        }
        let Question::Drawn { .. } = question else { return Ok(true) };
        let drawn = self.drawn(question).ok_or("the plan draws no sites")?;
        let supposed = self.terms.colluders_of(self.roster.sites.len()).max(usize::from(floor.colluders));
        let (count, needed) = (drawn.len(), agreed::drawn_at_least(supposed));
        if count < needed {
            return Err(format!("{count} sites were drawn, {needed} must be"));
        }
        Ok(drawn.contains(&me))
    }
}

/// Names the sites of a roster.
pub fn set_of(roster: &Roster) -> Hash {
    set_of_sites(roster.sites.iter().map(|site| site.key))
}

/// Digest of these sites' keys, which are the same in every roster.
pub fn cohort_digest(roster: &Roster, cohort: &[u16]) -> Hash {
    set_of_sites(cohort.iter().filter_map(|site| roster.member(PartyId::Site(*site))).map(|member| member.key))
}

#[cfg(test)]
mod tests;
