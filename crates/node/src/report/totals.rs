//! What totals can tell, in sentences for whoever has to agree to a plan or reads what came of it. They say no more than
//! `threat-model.md` does.

use veilsum_cluster::privacy::Unit;

use crate::{
    agreed::Federation,
    cost::{Cost, counted},
    dp::{DEFAULT_NANO_RHO, promise},
    plan::Judge,
};

/// What a plan without noise is, in words. An exact total is a function of everybody's rows.
pub const EXACT: &str = "Totals are exact: rows may be inferred from them. With few rows, few distinct values, many questions or a row that \
    lies apart they can be solved for records, and nothing bounds what somebody learns. Every site's operator agrees to this very plan.";

/// What the totals of a plan can tell, with as many sites as there are, and to whom.
pub fn totals_tell(federation: &Federation, cost: &Cost) -> Vec<String> {
    let work = &federation.work;
    let at_least = match cost.drawn {
        all if all == cost.sites => format!("Every number that becomes readable is a total over all {all} sites"),
        least => format!("Every number that becomes readable is a total over at least {least} of {} sites", cost.sites),
    };
    let most = counted(work.recipe.most_words(work.names().len()) as usize, "number");
    let questions = counted(work.recipe.max_questions() as usize, "question");
    let mut all = vec![format!(
        "{at_least}. A run asks at most {questions} and the number of rows, and a total has up to {most}."
    )];
    let (but, judge) = match work.judge {
        Judge::Coordinator => ("", ""),
        Judge::Intermediary => {
            (" but those of the validity indices", ", those totals and the distances between the final centres")
        }
    };
    let name = &federation.roster.coordinator.name;
    let counter = &federation.roster.intermediary.name;
    all.push(format!(
        "{name} sees every total{but}. Every site sees the same, because totals are opened to all sites. {counter} sees how many rows the sites \
         have together{judge}, and no centre."
    ));
    let mut who = cost.sites_mean.clone();
    who[..1].make_ascii_uppercase();
    all.push(format!("{who}. Nothing can prevent this."));
    all.push(match &work.recipe.noise {
        None => EXACT.to_owned(),
        Some(noise) => format!(
            "Totals hold noise. {} What several plans spend adds up, in one account of each site{}.",
            promise(noise, DEFAULT_NANO_RHO),
            match noise.unit {
                Unit::Record => "; a person with r rows is hidden r² times less",
                Unit::Person { .. } =>
                    "; a person whose rows are at several sites is hidden less, by the square of their number",
            }
        ),
    });
    if !work.categorical.is_empty() && work.recipe.noise.is_none() {
        let one = match !work.recipe.algorithm.traits().shares_rows {
            true => "; a category of one row in it shows as a count of one",
            false => "",
        };
        all.push(format!("Shares of categories are released for every cluster{one}."));
    }
    all.push(cost.which_sites.clone());
    all
}
