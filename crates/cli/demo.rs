//! `veilsum demo`: a whole federation on loopback in one process, on generated or given rows.

mod pooled;
mod source;

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use clap::Args;
use veilsum_proto::{plan::Terms, policy::rho_text, roster::Roster};

use self::source::{Source, Wish};
use crate::{
    categories::CategoryArgs,
    method::{MethodArgs, given_centres, heading, parse_clusters},
    party::{LOSS_WAIT, Loss, block_on},
    verb::Verb,
    watch::Watch,
};
use veilsum_node::{
    agreed,
    columns::names,
    cost::first_centres,
    documents::{self, SitePolicy},
    error::{Code, Failure},
    files,
    loopback::{self, LoopbackConfig, LoopbackRun, LoopbackSite},
    plan::{Clusters, Judge, PlanSpec, Scaling},
    question::SumBounds,
    release::{self, Prepared},
    report,
    result::RunResult,
    role::client::{Step, Vanish},
    signed,
    signing::Writer,
};

/// What to do about an option that is wrong.
const SEE_HELP: &str = "correct the option; `veilsum demo --help-all` says what each one takes";

/// Run a whole federation on this machine, on generated or given rows
#[derive(Args, Debug, Clone)]
pub(crate) struct DemoArgs {
    /// Cluster these rows instead of the generated example
    ///
    /// Every column is clustered but a last one named `label` (or the one that --label names), which is neither used nor sent.
    /// Constant columns are left out with a note.
    #[arg(long, value_name = "FILE.csv", help_heading = heading::ROWS)]
    pub data: Option<PathBuf>,
    /// Columns to use [default: all but the label]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', requires = "data", help_heading = heading::ROWS)]
    pub columns: Vec<String>,
    /// Columns of categories of --data
    #[command(flatten)]
    pub categories: CategoryArgs,
    /// The column that holds a label [default: the last one, where its name is label]
    ///
    /// It is used only to spread rows (--split dirichlet or seen) and for --release-labels.
    #[arg(long, value_name = "COLUMN", requires = "data", hide_short_help = true, help_heading = heading::ROWS)]
    pub label: Option<String>,
    /// Sites to spread the rows of --data over [default: 20; the example has 3]
    #[arg(long, value_name = "N", requires = "data", help_heading = heading::ROWS)]
    pub sites: Option<usize>,
    /// How rows are spread: iid, a column, dirichlet:ALPHA, observers:BETA or seen:N
    ///
    /// Of a column every value is a site. `observers:BETA` spreads rows by place. With `seen:N` every site sees N of the labels
    /// and lacks the others.
    #[arg(long, value_name = "WAY", default_value = "iid", requires = "data", help_heading = heading::ROWS)]
    pub split: String,
    /// Number of clusters, or a range as in 2..9 from which the run chooses [default: 5 for the example]
    #[arg(long, value_name = "K|LOW..HIGH", value_parser = parse_clusters, help_heading = heading::METHOD)]
    pub k: Option<Clusters>,
    /// Scale every column to [0, 1] by its public box, or not at all
    #[arg(long, value_name = "box|none", default_value = "box", value_parser = ["box", "none"], hide_short_help = true,
        help_heading = heading::ROWS)]
    pub scale: String,
    /// Release counts by cluster and label, for the adjusted Rand index
    ///
    /// The labels are those of --label, or of the example.
    #[arg(long, hide_short_help = true, help_heading = heading::ROWS)]
    pub release_labels: bool,
    /// Starting centres: K lines of d numbers in box units, no header
    ///
    /// [default: as --init says]
    #[arg(long, value_name = "FILE.csv", hide_short_help = true, help_heading = heading::METHOD)]
    pub start: Option<PathBuf>,
    /// Seed of everything random but keys and noise
    ///
    /// Example rows, split and first centres. The noise of differential privacy is always fresh.
    #[arg(long, value_name = "S", help_heading = heading::ROWS)]
    pub seed: Option<u64>,
    /// A site vanishes in a round; may be repeated
    ///
    /// It vanishes after its masked input arrived, as with SITE@ROUND:after. It vanishes before that with SITE@ROUND:before, and
    /// before it helps to remove masks with SITE@ROUND:unmask.
    #[arg(long, value_name = "SITE@ROUND", help_heading = heading::COHORT)]
    pub drop: Vec<String>,
    /// Make all sites one block, and say what a loss does
    ///
    /// The parts of a block are released together. A run that loses a site of the block waits for it, or stops, and is then finished from what is out [default: every site is
    /// a block by itself, so that a run goes on without those that vanish, and what they sent can be computed].
    #[arg(long, value_name = "WHAT", value_enum, help_heading = heading::COHORT)]
    pub on_loss: Option<Loss>,
    /// Seconds to wait for a site that is lost, with --on-loss wait
    #[arg(long, value_name = "SECONDS", default_value_t = LOSS_WAIT, hide_short_help = true, help_heading = heading::COHORT)]
    pub loss_wait: u64,
    /// Folder for result.json and model.json
    #[arg(long, value_name = "DIR", default_value = "veilsum-out", help_heading = heading::ROWS)]
    pub out: PathBuf,
    /// What a run consists of
    #[command(flatten)]
    pub method: MethodArgs,
}

impl DemoArgs {
    /// Seed of first centres.
    fn start_seed(&self) -> u64 {
        self.seed.unwrap_or(source::DEFAULT_START_SEED)
    }

    /// Which K are tried: as many as are said, or given, or usual for the example.
    fn clusters(&self, source: &Source) -> Result<Clusters, Failure> {
        let given = given_centres(self.start.as_deref(), names(&source.columns, &source.categorical).len())?;
        if self.method.describes() {
            return self.method.clusters(self.k);
        }
        self.k
            .or(given.map(|centres| Clusters::exactly(centres.k() as u32)))
            .or(source.default_k.map(Clusters::exactly))
            .ok_or_else(|| Failure::new(Code::Usage, "how many clusters?", "say --k K, or give --start"))
    }
}

impl Verb for DemoArgs {
    /// Runs the demonstration.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let args = self;
        let wish = Wish {
            columns: &args.columns,
            categorical: args.categories.columns(None, false)?,
            label: args.label.as_deref(),
            split: &args.split,
            sites: args.sites,
            seed: args.seed,
            release_labels: args.release_labels,
        };
        let source = match &args.data {
            Some(path) => source::from_file(&wish, path)?,
            None => source::example(&wish),
        };
        let names: Vec<String> = source.sites.iter().map(|site| site.name.clone()).collect();
        let vanish = args.drop.iter().map(|d| parse_drop(d, &names)).collect::<Result<Vec<_>, _>>()?;
        let mut method = args.method.clone();
        // Here everybody's rows are known.
        method.noise.expected_rows.get_or_insert(source.sites.iter().map(|site| site.rows.len() as u64).sum());
        let work = work(args, &method, &source)?;
        work.check().map_err(|e| Failure::new(Code::Usage, e.message, SEE_HELP))?;
        args.method.noise.check_unit(source.sites.len())?;
        if args.method.noise.hides_persons() {
            let what = "the demonstration does not know which rows are of one person (--dp-unit person)";
            return Err(Failure::new(Code::Usage, what, "leave --dp-unit out here; `veilsum plan make` takes it"));
        }
        let domain = work.domain()?;
        let prepared =
            source.sites.iter().map(|s| s.prepare(&domain, work.out_of_box)).collect::<Result<Vec<_>, _>>()?;
        let rows: usize = prepared.iter().map(Prepared::len).sum();
        if u64::from(work.recipe.clusters.min) > rows as u64 {
            return Err(Failure::new(
                Code::Usage,
                format!(
                    "K = {} clusters from {rows} rows: there must be at least as many rows as clusters",
                    work.recipe.clusters.min
                ),
                "choose a smaller --k",
            ));
        }
        let demo = Demo::of(&source.sites, &work, &vanish, args.on_loss.is_some());
        if let Some(sampling) = work.sampling {
            let sites = source.sites.len();
            agreed::prove_sampling(sites, &demo.terms, sampling.count(sites)).map_err(|f| {
                let next = "raise --sample or leave it out, or deal the rows of --data to more --sites";
                Failure::new(Code::Usage, f.message, next)
            })?;
        }
        let (site, told) = demo.policy()?;
        crate::party::place_for(&args.out.join("result.json"))?;
        if !json {
            crate::say!("{}\n{told}\n{}", source.note, first_centres(&work.recipe));
        }
        let terms = demo.terms;
        let run = block_on(loopback::run(LoopbackConfig {
            sites: source.sites,
            work: work.clone(),
            site,
            terms: Box::new(move |t| *t = Terms { roster: t.roster, ..terms }),
            vanish: vanish.clone(),
            record: false,
            state: None,
            carrier: None,
            way: None,
            timing: loopback::timing_of(demo.rows.len()),
            on_loss: args.on_loss.unwrap_or(Loss::Stop).within(args.loss_wait),
            progress: Watch::default().watcher(json)?,
        }))?;
        let LoopbackRun { result, counted, sites, federation, coordinator, .. } = run;
        let mut result = result?;
        // The coordinator cannot see what the sites sent to the intermediary; here both are known.
        if let Ok(counted) = &counted {
            result.traffic.add(&counted.traffic);
        }
        for (name, outcome) in names.iter().zip(&sites) {
            if let Err(failure) = outcome
                && !result.missing.contains(name)
            {
                result.warnings.push(format!("{name}: {}", failure.message));
            }
        }
        for (site, Vanish { round, .. }) in vanish {
            let gone = sites[site].as_ref().is_ok_and(|report| report.vanished);
            if !gone && !result.missing.contains(&names[site]) {
                let (name, last) = (&names[site], result.questions);
                result
                    .warnings
                    .push(format!("{name} was never dropped in round {round}: the run ended after round {last}"));
            }
        }
        let pooled = pooled::compare(&work, &prepared, &result)?;
        let writer = Writer { identity: coordinator, federation };
        let mut written = report::write(&args.out, &result, Some(&pooled), &writer)?;
        written.extend(report::page::kept_beside(&args.out.join("result.json"), &writer.federation));
        written.extend(write_documents(&args.out, &writer)?);
        if json {
            let text = files::read_limited(&written[0], signed::MAX_FILE)?;
            let value: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
            crate::say!("{value}");
            return early(&result);
        }
        crate::say!(@raw "{}{}", report::centres(&result), report::summary(&result));
        let mut out = String::from("\nwho learnt what\n");
        let over = if result.missing.is_empty() { result.cohort.len().to_string() } else { "the remaining".into() };
        let judged = if work.judge == Judge::Intermediary { ", and the indices from the intermediary" } else { "" };
        let _ = writeln!(
            out,
            "  coordinator    {} totals over {over} sites{judged}; no site's own sums or number of rows",
            result.questions
        );
        let counted = match counted {
            Ok(c) if c.handed_over => format!("the number of rows of all sites together ({}); no centre", c.total),
            Ok(c) => format!(
                "the number of rows of {} sites together ({}), which it kept to itself; no centre",
                c.cohort.len(),
                c.total
            ),
            Err(f) => format!("nothing: {}", f.message),
        };
        let judging = if work.judge == Judge::Intermediary {
            "; the validity totals, and how far the final centres are from each other"
        } else {
            ""
        };
        let _ = writeln!(out, "  intermediary   {counted}{judging}");
        let _ = writeln!(
            out,
            "  every site     the centres and totals of every round; no other site's rows, sums or row count"
        );
        let _ = writeln!(out, "  the network    sizes and times of encrypted packets");
        crate::say!(@raw "{out}");
        let sampling = result.privacy.as_ref().map(|privacy| privacy.sampling_error);
        crate::say!("\n{}", pooled::told(&pooled, sampling));
        if !result.missing.is_empty() {
            crate::say!("(it has the rows of the sites that vanished, so it differs)");
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

fn work(args: &DemoArgs, method: &MethodArgs, source: &Source) -> Result<PlanSpec, Failure> {
    let given = given_centres(args.start.as_deref(), names(&source.columns, &source.categorical).len())?;
    let clusters = args.clusters(source)?;
    let seed = args.start_seed();
    let classes = source.labels.as_ref().map_or(0, |labels| labels.classes.len());
    let mut recipe = method.recipe(clusters, given, seed, &source.columns, classes)?;
    let most = source.sites.iter().map(|site| site.rows.len()).max().unwrap_or(0);
    recipe.noise = method.noise.noise(clusters, most as u64, &recipe.seeding);
    Ok(PlanSpec {
        columns: source.columns.clone(),
        scaling: method.scaling(if args.scale == "box" { Scaling::Box } else { Scaling::None }),
        out_of_box: method.noise.out_of_box(),
        recipe,
        sampling: method.sampling(seed),
        judge: method.judge(),
        labels: source.labels.clone(),
        step_bits: method.noise.step_bits(None),
        categorical: source.categorical.clone(),
    })
}

/// The terms of the demonstration, and what its sites make of them.
pub(crate) struct Demo<'a> {
    work: &'a PlanSpec,
    terms: Terms,
    rows: Vec<u64>,
}

impl Demo<'_> {
    /// Under terms that were agreed on before.
    pub(crate) fn under<'a>(sites: &[LoopbackSite], work: &'a PlanSpec, terms: Terms) -> Demo<'a> {
        let rows = sites.iter().map(|site| site.rows.len() as u64).collect();
        Demo { work, terms, rows }
    }

    /// Here everybody's rows are known, so the plan can promise what is true.
    fn of<'a>(sites: &[LoopbackSite], work: &'a PlanSpec, vanish: &[(usize, Vanish)], blocks: bool) -> Demo<'a> {
        let rows: Vec<u64> = sites.iter().map(|site| site.rows.len() as u64).collect();
        let mut terms = loopback::default_terms(sites, work);
        loopback::sampled_terms(work, sites.len())(&mut terms);
        terms.max_rows = rows.iter().copied().max().unwrap_or(1);
        let stay = rows.iter().enumerate().filter(|(site, _)| !vanish.iter().any(|(gone, _)| gone == site));
        if !vanish.is_empty() && !blocks {
            terms.block_size = 1;
        }
        // A count with noise may fall below any of them.
        if work.recipe.noise.is_none() {
            terms.min_total_rows = terms.min_total_rows.max(stay.map(|(_, rows)| rows).sum());
        }
        Demo::under(sites, work, terms)
    }

    /// The default, or as little less as the data need, by name.
    pub(crate) fn policy(&self) -> Result<(SitePolicy, String), Failure> {
        let sites = self.rows.len();
        let mut site = SitePolicy::default();
        let mut told = Vec::new();
        let policy = &mut site.policy;
        if self.terms.block_size == 1 && policy.floor.contributors > 1 {
            policy.floor.contributors = 1;
            told.push("contributors = 1: what a site that leaves sent can be computed".into());
        }
        let most = self.work.max_questions().saturating_add(1);
        if most > policy.floor.max_rounds {
            policy.floor.max_rounds = most;
            told.push(format!("max_rounds = {most}"));
        }
        if self.terms.max_rows < policy.max_rows {
            policy.max_rows = self.terms.max_rows;
        }
        let form = SumBounds::of(self.work, &self.terms, sites)?;
        if let Some(rho) = release::promise((&self.terms, &form, sites), policy).filter(|rho| *rho > policy.nano_rho) {
            policy.nano_rho = rho;
            told.push(format!("rho = {}", rho_text(rho)));
        }
        let text = if told.is_empty() {
            "every site answers under the default policy".to_owned()
        } else {
            format!("the sites' policy is relaxed for this demonstration (veilsum check): {}", told.join(", "))
        };
        Ok((site, text))
    }
}

/// `SITE@ROUND[:before|:after|:unmask]`, SITE a name or a number from 1.
fn parse_drop(text: &str, names: &[String]) -> Result<(usize, Vanish), Failure> {
    let bad = |why: String| {
        Failure::new(
            Code::Usage,
            format!("--drop {text}: {why}"),
            "write it as SITE@ROUND, for example 3@5 or 3@5:before",
        )
    };
    let (site, when) = text.split_once('@').ok_or_else(|| bad("there is no @ in it".into()))?;
    let (round, at) = when.split_once(':').unwrap_or((when, "after"));
    let at = match at {
        "before" => Step::BeforeInput,
        "after" => Step::AfterInput,
        "unmask" => Step::BeforeUnmask,
        other => return Err(bad(format!("{other:?} is not before, after or unmask"))),
    };
    let round: u32 =
        round.parse().ok().filter(|r| *r > 0).ok_or_else(|| bad("the round is not a number from 1".into()))?;
    let by_name = names.iter().position(|n| n == site);
    let by_number = site.parse::<usize>().ok().and_then(|n| n.checked_sub(1)).filter(|i| *i < names.len());
    let site =
        by_name.or(by_number).ok_or_else(|| bad(format!("there is no site {site:?}; there are {}", names.len())))?;
    Ok((site, Vanish { round, at }))
}
