//! A paragraph about the methods, to paste into a paper: what a reader needs to judge the result and to repeat it.

use veilsum_charts::text::number;

use super::reported::Reported;
use crate::{
    app_messages::clean,
    cost::{counted, some_of},
    report::{facts::how_it_ended, indices::has_fuzzifier, says::whose},
};

/// Rows, sites, missing, columns, method, K, noise, software.
pub(super) fn methods(all: &Reported) -> String {
    let told = &all.told;
    let mut says = Vec::new();
    let missing = match told.missing.len() {
        0 => String::new(),
        n => format!(" ({} not in the totals: {})", counted(n, "site"), some_of(&told.missing, ", ")),
    };
    let what = match told.method.as_str() {
        "describe" => "described by secure aggregation".to_owned(),
        method if told.m > 1.0 && has_fuzzifier(method) => format!(
            "clustered by federated {} (fuzzifier m = {}) under secure aggregation",
            clean(method),
            number(told.m)
        ),
        method => format!("clustered by federated {} under secure aggregation", clean(method)),
    };
    let mut rows = whose(told);
    rows[..1].make_ascii_uppercase();
    says.push(format!("{rows}{missing} were {what}."));
    says.push(format!("The {}: {}.", counted(told.columns.len(), "column"), some_of(&told.columns, ", ")));
    says.push("Rows with a missing value were handled by each site as it says for itself; counts of these are not in the result.".into());
    if !told.describes() {
        says.push(match told.curve.is_empty() {
            true => format!("The number of groups, K = {}, was set in advance.", told.k),
            false => format!(
                "The number of groups, K = {}, was chosen among {} by an index.",
                told.k,
                counted(told.curve.len(), "value")
            ),
        });
        says.push(format!(
            "Centres were updated in {} ({}).",
            counted(told.rounds as usize, "round"),
            how_it_ended(told)
        ));
        if told.standardisation.is_some() {
            says.push("Columns were standardised over all sites.".into());
        }
    }
    says.push(match &told.privacy {
        Some(noise) => format!("Totals hold noise: {}.", noise.promise.trim_end_matches('.')),
        None => "Totals were exact, without noise.".to_owned(),
    });
    let software = all.text("software").unwrap_or("Veilsum".to_owned());
    says.push(format!("Software: {software}; plan {}.", clean(&told.plan_hash).chars().take(16).collect::<String>()));
    says.join(" ")
}
