//! `veilsum demo`: a whole federation on loopback in one process, on generated or given rows.

mod pooled;
mod source;

use std::path::{Path, PathBuf};

use clap::Args;
use veilsum_proto::{
    plan::{Sites, Terms},
    roster::Roster,
};

use self::source::{DEFAULT_START_SEED, Source, Wish};
use crate::{
    columns::Wanted,
    method::{Choices, What},
    party::{block_on, free, warn_of_replacing},
    rows::RowsSaid,
    settings::Settings,
    terms::{self, roster_of_nobody},
    verb::Verb,
    watch::Watch,
};
use veilsum_node::{
    cost::first_centres,
    documents::{self, Federation, SitePolicy},
    door::{DEFAULT_NANO_RHO, Gives, Unit},
    error::Failure,
    files,
    loopback::{self, LoopbackConfig, LoopbackRun, LoopbackSite},
    plan::{Clusters, Judge, OutOfBox, PlanSpec},
    refusal::{rho_text, units},
    report,
    result::RunResult,
    role::progress::Watcher,
    signed,
    signing::Writer,
    table::RowRules,
};

/// Run a whole federation on this machine, on generated or given rows
#[derive(Args, Debug, Clone)]
pub(crate) struct DemoArgs {
    /// Cluster these rows instead of the generated example
    ///
    /// Every column is clustered but a last one named `label`, which is neither used nor sent.
    /// Constant columns are left out with a note.
    #[arg(long, value_name = "FILE.csv")]
    pub data: Option<PathBuf>,
    /// What is to be known of the rows of --data
    #[command(flatten)]
    pub rows: RowsSaid,
    /// Sites to spread the rows of --data over [default: 20; the example has 3]
    #[arg(long, value_name = "N", requires = "data")]
    pub sites: Option<usize>,
    /// How rows are spread: iid, or a column of which every value is a site
    #[arg(long, value_name = "WAY", default_value = "iid", requires = "data")]
    pub split: String,
    /// Run what this plan says, and its terms as far as they fit the sites, in place of the options below
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "k", "exact", "rho", "columns", "set"])]
    pub plan: Option<PathBuf>,
    /// Folder for result.json and model.json [default: veilsum-out, with a number if it has a result]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// What a run consists of
    #[command(flatten)]
    pub what: What,
}

impl DemoArgs {
    /// Where the result is written; of its own accord the demonstration replaces none.
    fn out(&self) -> PathBuf {
        self.out.clone().unwrap_or_else(|| free(Path::new("veilsum-out"), "result.json"))
    }

    /// What is said of the rows.
    fn rules(&self) -> Result<RowRules, Failure> {
        self.rows.over(&RowRules::default())
    }

    /// The rows, and the federation that clusters them.
    fn federation(&self) -> Result<(Source, Federation), Failure> {
        if let Some(file) = &self.plan {
            return self.under(documents::edited_plan(file)?);
        }
        let set = Settings::read(&self.what.set)?;
        let categorical: Vec<_> = self.what.columns.iter().filter_map(Wanted::categorical).collect();
        // Before any row is read with them.
        let wrong = |why| Failure::usage(why, "correct --column");
        veilsum_node::columns::check(&[], &categorical).map_err(wrong)?;
        let clips = set.get("out_of_box")?.map_or(!self.what.exact, |of: OutOfBox| of == OutOfBox::Clip);
        let (columns, noisy, usual_sites) = (&self.what.columns, !self.what.exact, None);
        let source = Wish { of: self, columns, categorical: &categorical, clips, noisy, usual_sites }.rows()?;
        // Here everybody's rows are known, so the plan can promise what is true.
        let rows: Vec<u64> = source.rows();
        let all = rows.iter().sum();
        let mut choices = Choices {
            what: &self.what,
            set,
            columns: (source.columns.clone(), categorical),
            expected_rows: all,
            usual_seed: DEFAULT_START_SEED,
            usual_k: self.data.is_none().then_some(Clusters::exactly(5)),
        };
        let sites = rows.len();
        let (k, drawn) = (choices.clusters(&choices.seeding()?)?, choices.sampling()?.map(|of| of.count(sites)));
        if u64::from(k.min) > all {
            let what =
                format!("K = {} clusters from {all} rows: there must be at least as many rows as clusters", k.min);
            return Err(Failure::usage(what, "choose a smaller --k"));
        }
        let exact = self.what.exact;
        let set = &mut choices.set;
        let of_a_person = self.rules()?.rows_per_person.filter(|_| !exact);
        of_a_person.into_iter().for_each(|rows| set.or("rows_per_person", rows as i64));
        set.or("max_rows", source.largest((self.what.method.usual)().traits().describes.is_some()) as i64);
        // Shares of noise are sized for the sites that every total covers.
        set.or("min_sites", if exact && drawn.is_none() { 3 } else { sites as i64 });
        // A count with noise may fall below any number of rows.
        let least = if exact { all } else { 0 };
        set.or("min_total_rows", u64::from(k.max).max(least) as i64);
        if exact {
            // As fine as 64 bits allow, so that what masks cost is seen beside pooled rows.
            set.or("step_bits", 62);
        }
        if let Some(drawn) = drawn {
            set.or("colluders", drawn.saturating_sub(2).min(sites.saturating_sub(1) / 3).max(1) as i64);
        }
        let federation = terms::federation(choices, roster_of_nobody(&source.names())?)?;
        Ok((source, federation))
    }

    /// The same under the terms of a plan, of which those that its own sites were counted for make room if they do not fit.
    fn under(&self, plan: Terms) -> Result<(Source, Federation), Failure> {
        let work = PlanSpec::from_bytes(&plan.application)?;
        let columns: Vec<Wanted> = work.columns.iter().cloned().map(Wanted::Number).collect();
        // As many as the plan needs, unless every value of a column is a site.
        let needed = usize::from(plan.min_cohort.max(3));
        let usual_sites = (self.data.is_some() && self.split == "iid").then_some(needed);
        let (clips, noisy) = (work.out_of_box == OutOfBox::Clip, work.recipe.noise.is_some());
        let wish = Wish { of: self, columns: &columns, categorical: &work.categorical, clips, noisy, usual_sites };
        let source = wish.rows()?;
        let roster = roster_of_nobody(&source.names())?;
        let largest = source.largest(work.recipe.algorithm.traits().describes.is_some());
        let terms = Terms { roster: roster.hash(), max_rows: plan.max_rows.max(largest), ..plan };
        let terms = match terms.check(&roster) {
            Ok(()) => terms,
            Err(_) => Terms { min_cohort: roster.sites.len() as u16, threshold: 0, colluders: 0, ..terms },
        };
        let least = terms.min_total_rows.min(source.rows().iter().sum()).max(work.recipe.clusters.max.into());
        let federation = Federation::new(roster, Terms { min_total_rows: least, ..terms })?;
        Ok((source, federation))
    }
}

impl Verb for DemoArgs {
    /// Runs the demonstration.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let args = self;
        let (source, federation) = args.federation()?;
        let names = source.names();
        let work = federation.work.as_ref();
        let own = args.rules()?.rows_per_person.map_or(Unit::Row, Unit::Person);
        if let Gives::Noisy { unit: hides, .. } = federation.facts().gives
            && hides != own
        {
            let what = format!("the plan hides {}, and --rows says that a site has {}", units(hides), units(own));
            return Err(Failure::usage(what, "say person=COLUMN and rows_per_person=N with --rows as the plan has it"));
        }
        let domain = work.domain()?;
        let prepared =
            source.sites.iter().map(|s| s.prepare(&domain, work.out_of_box)).collect::<Result<Vec<_>, _>>()?;
        let (mut site, told) = policy_for(&federation)?;
        site.policy.unit = own;
        let out = args.out();
        crate::party::place_for(&out.join("result.json"))?;
        warn_of_replacing(&out.join("result.json"), &federation.terms);
        if !json {
            crate::say!("{}\n{told}\n{}", source.note, first_centres(&work.recipe));
        }
        let progress = Watch::default().watcher(json)?;
        let run = block_on(in_this_process(&federation, source.sites, site, progress))?;
        let LoopbackRun { result, counted, sites, federation: ran, coordinator, .. } = run;
        let mut result = result?;
        for (name, outcome) in names.iter().zip(&sites) {
            if let Err(failure) = outcome
                && !result.missing.contains(name)
            {
                result.warnings.push(format!("{name}: {}", failure.message));
            }
        }
        let pooled = pooled::compare(work, &prepared, &result)?;
        let writer = Writer { identity: coordinator, federation: ran };
        let mut written = report::write(&out, &result, Some(&pooled), &writer)?;
        written.extend(report::page::kept_beside(&out.join("result.json"), &writer.federation));
        written.extend(write_documents(&out, &writer)?);
        if json {
            let text = files::read_limited(&written[0], signed::MAX_FILE)?;
            let value: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
            crate::say!("{value}");
            return early(&result);
        }
        crate::say!(@raw "{}{}", report::centres(&result), report::summary(&result));
        let over = if result.missing.is_empty() { result.cohort.len().to_string() } else { "the remaining".into() };
        let counted = match counted {
            Ok(c) => format!("the number of rows of {} sites together ({}); no centre", c.cohort.len(), c.total),
            Err(f) => format!("nothing: {}", f.message),
        };
        let [judged, judging] = match work.judge {
            Judge::Coordinator => ["", ""],
            Judge::Intermediary => [
                ", and the indices from the intermediary",
                "; the validity totals, and how far the final centres are from each other",
            ],
        };
        crate::say!(
            "\nwho learnt what\n  coordinator    {} totals over {over} sites{judged}; no site's own sums or number of rows\n  \
             intermediary   {counted}{judging}\n  \
             every site     the centres and totals of every round; no other site's rows, sums or row count\n  \
             the network    sizes and times of encrypted packets",
            result.questions
        );
        let sampling = result.privacy.as_ref().and_then(|privacy| privacy.sampling_error);
        crate::say!("\n{}", pooled::told(&pooled, sampling));
        if !result.missing.is_empty() {
            crate::say!("(it has the rows of the sites that left, so it differs)");
        }
        crate::say!("traffic: {} kB in all", result.traffic.bytes() / 1000);
        for path in &written {
            crate::say!("wrote {}", path.display());
        }
        crate::say!("who signed what: veilsum verify {}", files::quoted(&written[0]));
        early(&result)
    }
}

/// Roster and plan of the demonstration, without which nobody can check its signatures.
fn write_documents(out: &Path, writer: &Writer) -> Result<[PathBuf; 2], Failure> {
    let written = [out.join("roster.toml"), out.join("plan.toml")];
    let roster = &writer.federation.roster;
    documents::write_roster(&written[0], &Roster::clone(roster).sign(&writer.identity)?)?;
    documents::write_plan(&written[1], &Terms::clone(&writer.federation.terms).sign(roster, &writer.identity)?)?;
    Ok(written)
}

/// Exit code 9 where the run ended early.
fn early(result: &RunResult) -> Result<(), Failure> {
    result.ended_early.as_ref().map_or(Ok(()), |early| Err(early.failure()))
}

/// Runs a federation on loopback, under keys made for the occasion.
///
/// # Errors
/// A [`Failure`] where it cannot be set up; those of roles are in the result.
pub(crate) async fn in_this_process(
    federation: &Federation,
    sites: Vec<LoopbackSite>,
    site: SitePolicy,
    progress: Watcher,
) -> Result<LoopbackRun, Failure> {
    let terms = Terms::clone(&federation.terms);
    let mut run = loopback::run(LoopbackConfig {
        site,
        terms: Box::new(move |t| *t = terms),
        progress,
        ..LoopbackConfig::new(sites, federation.work.as_ref().clone())
    })
    .await?;
    // The coordinator cannot see what the sites sent to the intermediary; here both are known.
    if let (Ok(result), Ok(counted)) = (&mut run.result, &run.counted) {
        result.traffic.add(&counted.traffic);
    }
    Ok(run)
}

/// The policy under which sites answer everything of this plan: the default, or as little less as it needs, by name.
pub(crate) fn policy_for(federation: &Federation) -> Result<(SitePolicy, String), Failure> {
    let (work, terms) = (&federation.work, &federation.terms);
    let mut site = SitePolicy::default();
    let mut told = Vec::new();
    let policy = &mut site.policy;
    if terms.sites == Sites::Any {
        policy.sites = Sites::Any;
        told.push("sites = any".into());
    }
    let most = work.recipe.max_questions().saturating_add(1);
    if most > policy.floor.max_rounds {
        policy.floor.max_rounds = most;
        told.push(format!("max_rounds = {most}"));
    }
    if terms.max_rows < policy.max_rows {
        policy.max_rows = terms.max_rows;
    }
    if let Some(noise) = work.recipe.noise.filter(|noise| noise.price() > DEFAULT_NANO_RHO) {
        policy.nano_rho = Some(noise.price());
        told.push(format!("rho = {}", rho_text(noise.nano_rho)));
    }
    let text = if told.is_empty() {
        "every site answers under the default policy".to_owned()
    } else {
        format!("the sites' policy is relaxed for this demonstration (veilsum check): {}", told.join(", "))
    };
    Ok((site, text))
}
