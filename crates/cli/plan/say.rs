//! What a plan means, for whoever has to agree to it: as text and as a document.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::words;
use veilsum_node::{
    columns::dimensions,
    cost::{Cost, counted},
    documents::{Federation, roster_fingerprint},
    dp::Privacy,
    error::Failure,
    plan::PlanSpec,
};

/// Which plan `veilsum plan check` reads.
#[derive(Args, Debug)]
pub(crate) struct ReadArgs {
    /// The plan
    #[arg(long, value_name = "FILE", default_value = "plan.toml")]
    pub plan: PathBuf,
    /// The federation's roster
    #[arg(long, value_name = "FILE", default_value = "roster.toml")]
    pub roster: PathBuf,
}

/// What a plan means, in a sentence and then in numbers; `written` where it was made just now.
pub(super) fn say(federation: &Federation, path: &Path, written: bool, json: bool) -> Result<(), Failure> {
    let cost = Cost::of(federation)?;
    let says = match written {
        true => format!("{}: written and signed; `veilsum run` hands it to every party", path.display()),
        false => says(federation, &cost, path),
    };
    let (terms, hash) = (&federation.terms, federation.terms.hash());
    let mut value = json!(cost);
    value["privacy"] = json!(Privacy::of(federation));
    value["plan"] = json!(path.display().to_string());
    value["says"] = json!(says);
    value["totals_tell"] = json!(words::totals_tell(federation, &cost));
    value["hash"] = json!(hash.to_string());
    value["fingerprint"] = json!(roster_fingerprint(&hash));
    value["roster"] = json!(terms.roster.to_string());
    value["cohort"] = json!({ "sites": terms.sites, "min_sites": terms.min_cohort, "threshold": terms.threshold,
        "colluders": terms.colluders, "slots": terms.slots, "max_rows_per_site": terms.max_rows,
        "min_total_rows": terms.min_total_rows });
    value["work"] = json!(federation.work.as_ref());
    crate::verb::print(json, &value, &format!("{says}\n{}", to_text(federation, &cost)))
}

/// What a plan asks, in numbers.
pub(crate) fn to_text(federation: &Federation, cost: &Cost) -> String {
    let (terms, work) = (&federation.terms, &federation.work);
    let numbers = work.columns.iter().map(|c| format!("{} {} to {}", c.name, c.lower, c.upper));
    let named = work.categorical.iter().map(|c| format!("{} one of {}", c.column, c.categories.join(", ")));
    let (parameters, max_rows, min_total_rows) = (parameters(work), &terms.max_rows, &terms.min_total_rows);
    format!(
        "fingerprint {}\nmethod      {}, {parameters}, {}, {} at most\ncolumns     {}. {}\nrows        at most {max_rows} a site, at least {min_total_rows} in all\n",
        roster_fingerprint(&terms.hash()),
        work.method_name(),
        counted(work.headers().count(), "column"),
        counted(work.recipe.max_questions() as usize, "question"),
        numbers.chain(named).collect::<Vec<_>>().join("; "),
        words::UNREAD
    ) + &cost.to_text()
        + &words::totals_beside(federation, cost)
        + &Privacy::of(federation).map_or_else(String::new, |privacy| privacy.to_text())
}

/// Whether a plan can be used, in words for whoever has to agree to it. What it must not be was refused when it was loaded.
fn says(federation: &Federation, cost: &Cost, path: &Path) -> String {
    let know = match cost.warnings.len() {
        0 => "without a warning".to_owned(),
        n => format!("{} to read below", counted(n, "warning")),
    };
    let (name, sites) = (&federation.roster.coordinator.name, counted(federation.roster.sites.len(), "site"));
    format!(
        "Yes: {} is valid, signed by {name} for these {sites}; {know}. It asks at most {} about {}. Whether a site answers them, `veilsum check` \
         says.\n",
        path.display(),
        counted(federation.work.recipe.max_questions() as usize, "question"),
        federation.work.headers().collect::<Vec<_>>().join(", ")
    )
}

/// Why a fuzzifier is below 2, if nobody chose it.
fn why(work: &PlanSpec) -> String {
    let (m, d) = (work.usual_fuzzifier(), dimensions(&work.columns, &work.categorical));
    let usual = work.recipe.algorithm.traits().fuzzifier == Some(m) && m < 2.0;
    if usual { format!(" (usual in {d} columns: with 2 all centres may fall together)") } else { String::new() }
}

/// What there is to a method beside its name: clusters and fuzzifier, or the bins of a description.
fn parameters(work: &PlanSpec) -> String {
    match work.recipe.algorithm.traits().describes {
        Some(bins) => format!("{bins} bins a column"),
        None => format!("K = {}, m = {}{}", work.recipe.clusters, work.recipe.judge_m(), why(work)),
    }
}
