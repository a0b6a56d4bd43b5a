//! What a plan means, for whoever has to agree to it: as text, as a page and as a document.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::{
    page::{self, Page},
    words,
};
use veilsum_node::{
    cost::{Cost, counted},
    documents::{Federation, roster_fingerprint},
    dp::Privacy,
    error::Failure,
    plan::{Clusters, PlanSpec},
};

/// Which plan `veilsum plan check` and `agree` read.
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
pub(super) fn say(
    federation: &Federation,
    (path, html): (&Path, Option<&Path>),
    written: bool,
    json: bool,
) -> Result<(), Failure> {
    let cost = Cost::of(federation)?;
    let says = match written {
        true => format!("{}: written; send it to every party", path.display()),
        false => says(federation, &cost, path),
    };
    let (terms, hash) = (&federation.terms, federation.terms.hash());
    let mut value = cost.to_json();
    let privacy = Privacy::of(&federation.work, &federation.form()?);
    if let Some(map) = value.as_object_mut() {
        map.insert("privacy".into(), json!(privacy));
        map.insert("plan".into(), json!(path.display().to_string()));
        map.insert("says".into(), json!(says));
        map.insert("totals_tell".into(), json!(words::totals_tell(federation, &cost)));
        map.insert("hash".into(), json!(hash.to_string()));
        map.insert("fingerprint".into(), json!(roster_fingerprint(&hash)));
        map.insert("roster".into(), json!(terms.roster.to_string()));
        let cohort = json!({ "min_sites": terms.min_cohort, "threshold": terms.threshold, "colluders": terms.colluders,
            "slots": terms.slots, "max_rows_per_site": terms.max_rows, "min_total_rows": terms.min_total_rows });
        map.insert("cohort".into(), cohort);
        map.insert("work".into(), json!(federation.work.as_ref()));
    }
    page::write(&page_of(federation, &cost, privacy.as_ref(), &says), html)?;
    crate::verb::print(json, &value, &format!("{says}\n{}", to_text(federation, &cost, privacy.as_ref())))
}

/// What a plan asks, in numbers.
pub(super) fn to_text(federation: &Federation, cost: &Cost, privacy: Option<&Privacy>) -> String {
    let (terms, work) = (&federation.terms, &federation.work);
    let numbers = work.columns.iter().map(|c| format!("{} {} to {}", c.name, c.lower, c.upper));
    let named = work.categorical.iter().map(|c| format!("{} one of {}", c.column, c.categories.join(", ")));
    format!(
        "fingerprint {}\nmethod      {}, {}, {}, {} at most\ncolumns     {}. {}\nrows        at most {} a site, at least {} in all\n",
        roster_fingerprint(&terms.hash()),
        work.method_name(),
        parameters(work),
        counted(work.headers().count(), "column"),
        counted(work.max_questions() as usize, "question"),
        numbers.chain(named).collect::<Vec<_>>().join("; "),
        words::UNREAD,
        terms.max_rows,
        terms.min_total_rows,
    ) + &cost.to_text()
        + &words::totals_beside(federation, cost)
        + &privacy.map_or_else(String::new, Privacy::to_text)
}

/// The same as a page.
fn page_of(federation: &Federation, cost: &Cost, privacy: Option<&Privacy>, says: &str) -> Page {
    let work = &federation.work;
    let mut page = Page::new(&format!("The plan of {}", federation.roster.name));
    page.says(says.trim_end()).part("Columns");
    let numbers = work.columns.iter().map(|c| [c.name.clone(), format!("{} to {}", c.lower, c.upper)]);
    let named = work.categorical.iter().map(|c| [c.column.clone(), c.categories.join(", ")]);
    page.table(&["column that is used", "possible values"], numbers.chain(named));
    page.paragraph(&format!("{}.", words::UNREAD));
    page.part("What totals can tell").list(words::totals_tell(federation, cost));
    if !cost.warnings.is_empty() {
        page.part("Warnings").list(&cost.warnings);
    }
    page.part("In numbers").table(
        &["what", "under this plan"],
        [
            [
                "method".to_owned(),
                format!("{}, K = {}, m = {}", work.method_name(), clusters(work), work.recipe.judge_m()),
            ],
            ["sites in a total".to_owned(), format!("{} of {} at least", cost.drawn, cost.sites)],
            ["threshold".to_owned(), format!("{} of {}", cost.threshold, cost.sites)],
            ["colluding sites".to_owned(), format!("{} are withstood, {} supposed", cost.withstands, cost.colluders)],
            ["first centres".to_owned(), cost.first_centres.clone()],
            ["fingerprint".to_owned(), roster_fingerprint(&federation.terms.hash())],
        ],
    );
    let blocks = cost.questions.iter().flat_map(|q| q.blocks.iter().map(move |b| (q, b)));
    page.table(
        &["question", "asked by", "what", "numbers", "the total is"],
        blocks.map(|(q, b)| {
            let exact = match b.noise {
                Some(noise) => format!("noisy, standard deviation {noise:.3}"),
                None if b.rounding == 0.0 => "exact".to_owned(),
                None => format!("exact to {:.1e} (working units)", b.rounding),
            };
            [q.name.to_owned(), q.asked_by.to_owned(), b.name.to_owned(), b.entries.to_string(), exact]
        }),
    );
    if let Some(privacy) = privacy {
        page.part("Noise").list(privacy.to_text().lines().map(str::trim));
    }
    page
}

/// Whether a plan can be used, in words for whoever has to agree to it. What it must not be was refused when it was loaded.
fn says(federation: &Federation, cost: &Cost, path: &Path) -> String {
    let know = match cost.warnings.len() {
        0 => "without a warning".to_owned(),
        n => format!("{} to read below", counted(n, "warning")),
    };
    format!(
        "Yes: {} is valid, signed by {} for these {}; {know}. It asks at most {} about {}. Whether a site answers them, `veilsum check` \
         says.\n",
        path.display(),
        federation.roster.coordinator.name,
        counted(federation.roster.sites.len(), "site"),
        counted(federation.work.max_questions() as usize, "question"),
        federation.work.headers().collect::<Vec<_>>().join(", "),
    )
}

/// K, or its range.
fn clusters(work: &PlanSpec) -> String {
    let Clusters { min, max } = work.recipe.clusters;
    if min == max { min.to_string() } else { format!("{min} to {max}") }
}

/// What there is to a method beside its name: clusters and fuzzifier, or the bins of a description.
fn parameters(work: &PlanSpec) -> String {
    match work.recipe.algorithm.traits().describes {
        Some(bins) => format!("{bins} bins a column"),
        None => format!("K = {}, m = {}", clusters(work), work.recipe.judge_m()),
    }
}
