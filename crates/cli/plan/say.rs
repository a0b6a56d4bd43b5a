//! What a plan means, for whoever has to agree to it: as text, as a page and as a document.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use crate::{
    page::{self, Page},
    words,
};
use veilsum_node::{
    cost::{Cost, blocks_mean, counted},
    documents::{Federation, roster_fingerprint},
    dp::Privacy,
    error::{Code, Failure},
    plan::{Clusters, Judge, OutOfBox, PlanSpec, Scaling, Seeding},
};

/// Which plan `veilsum plan check`, `show` and `agree` read.
#[derive(Args, Debug)]
pub(crate) struct ReadArgs {
    /// The plan
    #[arg(long, value_name = "FILE", default_value = "plan.toml")]
    pub plan: PathBuf,
    /// The federation's roster
    #[arg(long, value_name = "FILE", default_value = "roster.toml")]
    pub roster: PathBuf,
}

/// What a plan means, in a sentence and then in numbers; `start` where it was made just now.
pub(super) fn check(
    federation: &Federation,
    (path, html): (&Path, Option<&Path>),
    start: Option<String>,
    json: bool,
) -> Result<(), Failure> {
    let mut cost = Cost::of(federation)?;
    let shown = path.display();
    let says = match &start {
        Some(_) => format!("{shown}: written; send it to every party"),
        None => says(federation, &cost, path),
    };
    // Who makes the plan knows more of the reason than the plan says.
    cost.first_centres = start.unwrap_or(cost.first_centres);
    let hash = federation.terms.hash();
    let mut value = cost.to_json();
    let privacy = Privacy::of(&federation.work, &federation.form()?);
    if let Some(map) = value.as_object_mut() {
        map.insert("privacy".into(), json!(privacy));
        map.insert("plan".into(), json!(path.display().to_string()));
        map.insert("says".into(), json!(says));
        map.insert("totals_tell".into(), json!(words::totals_tell(federation, &cost)));
        map.insert("hash".into(), json!(hash.to_string()));
        map.insert("fingerprint".into(), json!(roster_fingerprint(&hash)));
    }
    let method = parameters(&federation.work);
    let text = format!(
        "{says}\nfingerprint {}\nmethod      {}, {method}, {}, {} at most\n{}",
        roster_fingerprint(&hash),
        federation.work.method_name(),
        counted(federation.work.headers().count(), "column"),
        counted(federation.work.max_questions() as usize, "question"),
        format!(
            "columns     {}. {}\n",
            federation.work.headers().collect::<Vec<_>>().join(", "),
            words::unread(federation)
        ) + &cost.to_text()
            + &words::totals_beside(federation, &cost)
            + &privacy.as_ref().map_or_else(String::new, Privacy::to_text)
    );
    page::write(&page_of(federation, &cost, privacy.as_ref(), &says), html)?;
    crate::verb::print(json, &value, &text)
}

/// The same as a page.
fn page_of(federation: &Federation, cost: &Cost, privacy: Option<&Privacy>, says: &str) -> Page {
    let work = &federation.work;
    let mut page = Page::new(&format!("The plan of {}", federation.roster.name));
    page.says(says.trim_end()).part("Columns");
    let unit = |name: &str| {
        federation.schema.as_ref().and_then(|schema| Some(schema.get(name)?.unit.clone())).unwrap_or_default()
    };
    let numbers = work.columns.iter().map(|c| [c.name.clone(), unit(&c.name), format!("{} to {}", c.lower, c.upper)]);
    let named = work.categorical.iter().map(|c| [c.column.clone(), unit(&c.column), c.categories.join(", ")]);
    page.table(&["column that is used", "unit", "possible values"], numbers.chain(named));
    if let Some(labels) = &work.labels {
        page.paragraph(&format!("Of the column {} counts by cluster are released.", labels.column));
    }
    page.paragraph(&format!("{}.", words::unread(federation)));
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

pub(super) fn to_json(federation: &Federation) -> Result<Value, Failure> {
    let (terms, work) = (&federation.terms, &federation.work);
    let internal = |e| Failure::new(Code::Internal, e, "this is a defect, please report it");
    Ok(json!({
        "hash": terms.hash().to_string(),
        "fingerprint": roster_fingerprint(&terms.hash()),
        "roster": terms.roster.to_string(),
        "cohort": { "min_sites": terms.min_cohort, "threshold": terms.threshold, "colluders": terms.colluders,
            "slots": terms.slots, "max_rows_per_site": terms.max_rows, "min_total_rows": terms.min_total_rows },
        "work": serde_json::to_value(work.as_ref()).map_err(internal)?,
    }))
}

pub(super) fn to_text(federation: &Federation) -> String {
    let (terms, work) = (&federation.terms, &federation.work);
    let method = describe(work);
    let scaling = match work.scaling {
        Scaling::Box => "every column to [0, 1] by its range",
        Scaling::None => "none",
        Scaling::Direction => "every row divided by its length",
    };
    let outside = match work.out_of_box {
        OutOfBox::Refuse => "refused",
        OutOfBox::Clip => "moved to the nearest bound",
    };
    let sites = federation.roster.sites.len();
    let or_default = |given: u16, n: usize| if given == 0 { format!("{n} (the default)") } else { n.to_string() };
    // Such a plan was refused when it was loaded, if there is none.
    let threshold = terms.threshold_of(sites, sites).unwrap_or(usize::from(terms.threshold));
    let mut text = format!(
        "plan for the roster {} ({})\n\
         fingerprint     {}\n\
         {method}\
         scaling         {scaling}\n\
         outside the box {outside}\n\
         min sites       {}\n\
         threshold       {}\n\
         colluders       {}\n\
         slots           {}\n\
         rows            at most {} a site, at least {} in all\n\
         blocks          {}\n\ncolumn ranges\n",
        federation.roster.name,
        roster_fingerprint(&terms.roster),
        roster_fingerprint(&terms.hash()),
        terms.min_cohort,
        or_default(terms.threshold, threshold),
        or_default(terms.colluders, terms.colluders_of(sites)),
        terms.slots,
        terms.max_rows,
        terms.min_total_rows,
        blocks_mean(terms, sites)
    );
    let width = work.columns.iter().map(|c| c.name.chars().count()).max().unwrap_or(0);
    for c in &work.columns {
        text += &format!("  {:<width$}  {} to {}\n", c.name, c.lower, c.upper);
    }
    for c in &work.categorical {
        text += &format!("  {}  one of {}, weight {}\n", c.column, c.categories.join(", "), c.weight);
    }
    text
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

/// What a run consists of, line by line.
fn describe(work: &PlanSpec) -> String {
    let recipe = &work.recipe;
    let mut text = format!("method          {}, {}\n", work.method_name(), parameters(work));
    let mut line = |name: &str, value: String| text += &format!("{name:<16}{value}\n");
    match &recipe.seeding {
        Seeding::Uniform { seed } => line("start", format!("uniform in the box, seed {seed}")),
        Seeding::Given { .. } => line("start", "given centres".into()),
        Seeding::Candidates(params) => line(
            "start",
            format!(
                "from margins and sums around {}, seed {}",
                counted(params.count(recipe.most_points()) as usize, "candidate"),
                params.seed
            ),
        ),
    }
    if let Some(range) = &recipe.range {
        let text = format!(
            "ends at {} plus the largest K up to {} that a site would choose alone",
            recipe.clusters.min, range.most
        );
        line("range of K", text);
    }
    if recipe.restarts > 1 {
        line("restarts", recipe.restarts.to_string());
    }
    line("parameters", serde_json::to_string(&recipe.algorithm).unwrap_or_default());
    if !recipe.preparation.is_none() {
        let clipped: Vec<String> = recipe
            .preparation
            .winsorise
            .iter()
            .map(|w| {
                let name = work.columns.get(w.column as usize).map_or("?", |c| c.name.as_str());
                format!(", {name} clipped at its quantiles {} and {}", w.lower, w.upper)
            })
            .collect();
        line("preparation", format!("{:?}{}", recipe.preparation.scale, clipped.concat()).to_lowercase());
    }
    let judge = match work.judge {
        Judge::Coordinator => "opened by the coordinator",
        Judge::Intermediary => "opened by the intermediary",
    };
    line("validity totals", judge.into());
    if let Some(noise) = &recipe.noise {
        line("noise", noise.promise());
        line("noise schedule", serde_json::to_string(noise).unwrap_or_default());
    }
    if let Some(bits) = work.step_bits {
        line("step of totals", format!("at least 2^-{bits} of the largest value of one row"));
    }
    if let Some(sampling) = &work.sampling {
        line("sampling", format!("{} of the sites in every round, seed {}", sampling.share, sampling.seed));
    }
    if let Some(labels) = &work.labels {
        line("labels", format!("counts by cluster and {:?} are released", labels.column));
    }
    text
}
