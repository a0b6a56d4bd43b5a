//! A paragraph about the methods, to paste into a paper: what a reader needs to judge the result and to repeat it.

use veilsum_charts::text::number;
use veilsum_cluster::method::{Pick, Scale};

use super::reported::Reported;
use crate::{
    app_messages::clean,
    cost::{counted, some_of},
    plan::{OutOfBox, PlanSpec, Scaling, Seeding},
    report::{
        facts::how_it_ended,
        indices::{has_fuzzifier, name_of},
        says::whose,
    },
};

/// How the plan chose K.
fn by(all: &Reported) -> String {
    let Some(of) = &all.federation else { return " by an index".to_owned() };
    let choice = of.work.recipe.choice;
    match choice.by {
        Pick::Gap => " by the gap statistic (Tibshirani, Walther & Hastie 2001)".to_owned(),
        by => format!(" by {}{}", name_of(by.name()), if choice.elbow { ", at its elbow" } else { "" }),
    }
}

/// Units, weights, standardising, first centres and starts, as the plan chose them.
fn choices(work: &PlanSpec) -> Vec<String> {
    let recipe = &work.recipe;
    let units = match work.scaling {
        Scaling::Box => "Every column was scaled by its public range",
        Scaling::None => "Columns were not scaled",
    };
    let out = if work.out_of_box == OutOfBox::Clip {
        "a number outside was moved to its end"
    } else {
        "no number was outside"
    };
    let mut says = vec![format!("{units}; {out}.")];
    if !work.categorical.is_empty() {
        let weights = work.categorical.iter().map(|of| format!("{} {}", clean(&of.column), number(of.weight)));
        let weights: Vec<String> = weights.collect();
        says.push(format!("Two rows of different categories are so far apart, squared: {}.", some_of(&weights, ", ")));
    }
    if recipe.preparation != Scale::None {
        says.push("Columns were then standardised to mean 0 and deviation 1 over all sites.".into());
    }
    if recipe.algorithm.traits().describes.is_some() {
        return says;
    }
    let (first, seed) = match &recipe.seeding {
        Seeding::Uniform { seed } => ("uniform in the ranges", format!(", seed {seed}")),
        Seeding::Given { .. } => ("given in the plan", String::new()),
        Seeding::Candidates(of) => {
            ("k-means++ over candidates from totals (after Arthur & Vassilvitskii 2007)", format!(", seed {}", of.seed))
        }
    };
    let starts = counted(recipe.restarts as usize, "start");
    says.push(format!(
        "First centres were {first}{seed}; {starts}{}.",
        if recipe.restarts > 1 { ", of which the best counts" } else { "" }
    ));
    says
}

/// Rows, sites, missing, columns, method, every choice, K, noise, errors, software.
pub(super) fn methods(all: &Reported) -> String {
    let told = &all.told;
    let mut says = Vec::new();
    let missing = match told.missing.len() {
        0 => String::new(),
        n => format!(" ({} not in the totals: {})", counted(n, "site"), some_of(&told.missing, ", ")),
    };
    let (method, m) = (clean(&told.method), number(told.m));
    let fuzzy = told.m > 1.0 && has_fuzzifier(&told.method);
    let fuzzy = if fuzzy { format!(" (Bezdek 1981; fuzzifier m = {m})") } else { String::new() };
    let what = match told.method.as_str() {
        "describe" => "described by secure aggregation".to_owned(),
        _ => format!("clustered by federated {method}{fuzzy} under secure aggregation (Bonawitz et al. 2017)"),
    };
    let mut rows = whose(told);
    rows[..1].make_ascii_uppercase();
    says.push(format!("{rows}{missing} were {what}."));
    says.push(format!("The {}: {}.", counted(told.columns.len(), "column"), some_of(&told.columns, ", ")));
    says.push("Rows with a missing value were handled by each site as it says for itself.".into());
    if let Some(of) = &all.federation {
        says.extend(choices(&of.work));
    }
    if !told.describes() {
        says.push(match told.curve.is_empty() {
            true => format!("The number of groups, K = {}, was set in advance.", told.k),
            false => format!("K = {} was chosen among {}{}.", told.k, counted(told.curve.len(), "value"), by(all)),
        });
        let how_it_ended = how_it_ended(told);
        says.push(format!("Centres were updated in {} ({how_it_ended}).", counted(told.rounds as usize, "round")));
    }
    says.push(match &told.privacy {
        Some(noise) => format!(
            "Totals hold discrete Gaussian noise (Canonne, Kamath & Steinke 2020): the whole run is {}-zero-concentrated differentially private \
             (Bun & Steinke 2016) for one {} added or removed, whatever all other sites do, and {} while one of them keeps its noise secret.",
            number(noise.price as f64 / 1e9),
            if noise.unit == "person" { "person of a site" } else { "row" },
            number(noise.rho)
        ),
        None => "Totals were exact, without noise.".to_owned(),
    });
    says.extend(told.errors.as_ref().map(|errors| format!("Behind ± stands: {}.", errors.meaning)));
    let software = all.text("software").unwrap_or("Veilsum".to_owned());
    says.push(format!("Software: {software}; plan {}.", clean(&told.plan_hash).chars().take(16).collect::<String>()));
    says.join(" ")
}
