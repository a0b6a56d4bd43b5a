//! `veilsum demo`: a whole federation on loopback in one process, on generated or given rows.

use std::{fmt::Write, path::PathBuf};

use clap::Args;
use veilsum_cluster::{Domain, OutOfBox, Prepared, Rows, Scaling, pooled, synthetic};

use super::{
    exit::{Code, Failure},
    run::block_on,
};
use crate::{
    local::{self, LOCAL_TIMING, LocalConfig, LocalRun},
    progress,
    report::{self, Pooled},
    role::client::{Step, Vanish},
    split,
    table::{self, TableSpec},
    work::{Column, MethodSpec, StartSpec, Work},
};

/// `veilsum demo`
#[derive(Args, Debug, Clone)]
pub struct DemoArgs {
    /// Cluster these rows instead of the generated example; the last column is a label and is neither used nor sent
    #[arg(long, value_name = "FILE.csv")]
    pub data: Option<PathBuf>,
    /// Columns to use [default: all but the last]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', requires = "data")]
    pub columns: Vec<String>,
    /// Sites to spread the rows over [default: 20]
    #[arg(long, value_name = "N", requires = "data")]
    pub sites: Option<usize>,
    /// How rows are spread: `iid`, or a column whose every value is a site
    #[arg(long, value_name = "iid|COLUMN", default_value = "iid", requires = "data")]
    pub split: String,
    /// Number of clusters [default: 5 for the example]
    #[arg(long, value_name = "K")]
    pub k: Option<u32>,
    /// Fuzzifier, above 1
    #[arg(long, default_value_t = 2.0)]
    pub m: f64,
    /// Scale every column to [0, 1] by its public box, or not at all
    #[arg(long, value_name = "box|none", default_value = "box", value_parser = ["box", "none"])]
    pub scale: String,
    /// Stop when the centres move less than this (Frobenius norm, scaled units); 0 runs all rounds
    #[arg(long, default_value_t = 0.005)]
    pub epsilon: f64,
    /// Rounds at most
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub max_rounds: u32,
    /// Starting centres: K lines of d numbers in box units, no header [default: uniform in the box, from the seed]
    #[arg(long, value_name = "FILE.csv")]
    pub start: Option<PathBuf>,
    /// Seed of everything random here but the keys: example rows, split, starting centres
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// A site vanishes in a round, after its masked input arrived, or `:before` it, or before `:unmask`ing. May be repeated
    #[arg(long, value_name = "SITE@ROUND[:before|:after|:unmask]")]
    pub drop: Vec<String>,
    /// Folder for result.json and model.json
    #[arg(long, value_name = "DIR", default_value = "veilsum-out")]
    pub out: PathBuf,
}

/// Rows at their sites, and what is known about their columns.
struct Source {
    sites: Vec<(String, Rows)>,
    columns: Vec<Column>,
    default_k: Option<u32>,
    note: String,
}

/// Runs the demonstration.
///
/// # Errors
/// A [`Failure`] with its exit code.
pub fn demo(args: &DemoArgs, json: bool) -> Result<(), Failure> {
    let source = match &args.data {
        Some(path) => from_file(args, path)?,
        None => example(args),
    };
    let work = work(args, &source)?;
    work.check().map_err(|e| Failure::input(e.0, "see `veilsum demo --help`"))?;
    let names: Vec<String> = source.sites.iter().map(|(name, _)| name.clone()).collect();
    let vanish = args.drop.iter().map(|d| parse_drop(d, &names)).collect::<Result<Vec<_>, _>>()?;
    let all = Rows::pooled(source.sites.iter().map(|(_, rows)| rows))?;
    let rows = all.len();
    if u64::from(work.k_and_m().0) > rows as u64 {
        return Err(Failure::input(
            format!(
                "K = {} clusters from {rows} rows: there must be at least as many rows as clusters",
                work.k_and_m().0
            ),
            "choose a smaller --k",
        ));
    }
    if !json {
        println!("{}", source.note);
    }
    let run = block_on(local::run(LocalConfig {
        sites: source.sites,
        work: work.clone(),
        terms: Box::new(|_| {}),
        vanish: vanish.clone(),
        record: false,
        timing: LOCAL_TIMING,
        progress: progress::reporter(json),
    }))?;
    let LocalRun { result, counted, sites, .. } = run;
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
    let pooled = compare(&work, &all, &result)?;
    let written = report::write(&args.out, &result, Some(&pooled))?;
    if json {
        println!("{}", report::document(&result, Some(&pooled)));
        return Ok(());
    }
    print!("{}{}", report::centres(&result), report::summary(&result));
    let (k, d) = (result.centres.len(), result.columns.len());
    let mut out = String::from("\nwho learnt what\n");
    let _ = writeln!(
        out,
        "  coordinator    {} totals of {} numbers, and {} for the index, over {} sites; of no single site's sums or row \
         count anything",
        result.rounds,
        k * (d + 1),
        2 * k + 1,
        if result.missing.is_empty() { result.cohort.len().to_string() } else { "the remaining".into() }
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
    let _ = writeln!(out, "  intermediary   {counted}");
    let _ = writeln!(out, "  every site     the centres of every round; no other site's rows, sums or row count");
    let _ = writeln!(out, "  the network    sizes and times of encrypted packets");
    print!("{out}");
    println!(
        "\npooled fuzzy c-means from the same start: {} rounds, largest difference {:.1e} of a column's range",
        pooled.rounds, pooled.max_abs_diff
    );
    if !result.missing.is_empty() {
        println!("(the pooled run has the rows of the sites that vanished, so it differs)");
    }
    println!("traffic: {} kB in all", result.traffic.bytes() / 1000);
    for path in &written {
        println!("wrote {}", path.display());
    }
    Ok(())
}

/// The five-Gaussian example: no site can see five clusters alone.
fn example(args: &DemoArgs) -> Source {
    let example = synthetic::five_gaussians(args.seed.unwrap_or(synthetic::DEFAULT_SEED));
    let domain = synthetic::five_gaussians_domain();
    let columns = ["x", "y"]
        .iter()
        .zip(domain.lower().iter().zip(domain.upper()))
        .map(|(name, (lower, upper))| Column { name: (*name).into(), lower: *lower, upper: *upper })
        .collect();
    let sites: Vec<(String, Rows)> =
        example.sites.into_iter().enumerate().map(|(i, s)| (format!("site-{}", i + 1), s.rows)).collect();
    let rows: usize = sites.iter().map(|(_, r)| r.len()).sum();
    Source {
        note: format!(
            "five Gaussians at 3 sites, {rows} rows, generated; each site sees three of the five clusters; \
             public box [-1, 2] x [-1, 2]\nfuzzy c-means over masked sums, QUIC on 127.0.0.1"
        ),
        sites,
        columns,
        default_k: Some(5),
    }
}

fn from_file(args: &DemoArgs, path: &std::path::Path) -> Result<Source, Failure> {
    let header = table::read_header(path)?;
    let label = header.last().cloned().unwrap_or_default();
    let by_column = (args.split != "iid").then(|| args.split.clone());
    let wanted: Vec<String> = if args.columns.is_empty() {
        header[..header.len().saturating_sub(1)].iter().filter(|c| Some(*c) != by_column.as_ref()).cloned().collect()
    } else {
        args.columns.clone()
    };
    let spec = TableSpec { columns: wanted, label: Some(by_column.clone().unwrap_or(label)) };
    let table = table::read_csv(path, &spec)?;
    let d = table.columns.len();
    let parts = match &by_column {
        Some(column) => {
            if args.sites.is_some() {
                return Err(Failure::new(
                    Code::Usage,
                    "--sites and --split by a column contradict each other",
                    format!("leave --sites out: every value of {column:?} is a site"),
                ));
            }
            split::by_label(table.labels.as_deref().unwrap_or_default())
        }
        None => split::iid(table.rows, args.sites.unwrap_or(20), args.seed.unwrap_or(0)),
    };
    if parts.len() < 3 {
        return Err(Failure::input(
            format!(
                "{} sites: a federation has at least 3, because between two every total shows each the other's part",
                parts.len()
            ),
            "use more --sites, or a column with more values",
        ));
    }
    if let Some((name, _)) = parts.iter().find(|(_, rows)| rows.is_empty()) {
        return Err(Failure::input(
            format!("{name} would have no rows: {} rows for {} sites", table.rows, parts.len()),
            "use fewer --sites",
        ));
    }
    let rows = Rows::new(table.values, d)?;
    let domain = Domain::around(&rows, Scaling::Box).map_err(|e| match e {
        veilsum_cluster::DataError::ConstantColumn { column } => Failure::input(
            format!(
                "{}: the column {:?} is constant and says nothing about clusters",
                path.display(),
                table.columns[column]
            ),
            "name the other columns with --columns",
        ),
        other => other.into(),
    })?;
    let columns = table
        .columns
        .iter()
        .zip(domain.lower().iter().zip(domain.upper()))
        .map(|(name, (lower, upper))| Column { name: name.clone(), lower: *lower, upper: *upper })
        .collect();
    let sites = parts
        .into_iter()
        .map(|(name, members)| {
            let values = members.iter().flat_map(|i| rows.row(*i).to_vec()).collect();
            Rows::new(values, d).map(|rows| (name, rows)).map_err(Failure::from)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let note = format!(
        "{}: {} rows, {d} columns, {} sites ({}); for this demonstration the public box is taken from the file, \
         which a real federation must not do\nfuzzy c-means over masked sums, QUIC on 127.0.0.1",
        path.display(),
        rows.len(),
        sites.len(),
        by_column.map_or_else(|| "rows dealt at random".into(), |c| format!("one for every value of {c:?}"))
    );
    Ok(Source { sites, columns, default_k: None, note })
}

fn work(args: &DemoArgs, source: &Source) -> Result<Work, Failure> {
    let start = match &args.start {
        Some(path) => StartSpec::Given { centres: table::read_matrix(path, source.columns.len())? },
        None => StartSpec::Uniform { seed: args.seed.unwrap_or(synthetic::DEFAULT_START_SEED) },
    };
    let given = match &start {
        StartSpec::Given { centres } => Some(centres.len() as u32),
        StartSpec::Uniform { .. } => None,
    };
    let k = args
        .k
        .or(given)
        .or(source.default_k)
        .ok_or_else(|| Failure::new(Code::Usage, "how many clusters?", "say --k K, or give --start"))?;
    Ok(Work {
        columns: source.columns.clone(),
        scaling: if args.scale == "box" { Scaling::Box } else { Scaling::None },
        out_of_box: OutOfBox::Refuse,
        method: MethodSpec::Fcm { k, m: args.m, epsilon: args.epsilon, max_rounds: args.max_rounds, start },
    })
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

/// The same method from the same start on all rows in one place.
fn compare(work: &Work, all: &Rows, result: &crate::role::server::RunResult) -> Result<Pooled, Failure> {
    let domain = work.domain()?;
    let prepared = Prepared::new(all, &domain, work.out_of_box)?;
    let mut method = work.method()?;
    let outcome = pooled::run(method.as_mut(), &prepared).map_err(|e| Failure::input(e, ""))?;
    let (centres, boxed) = work.units(&outcome.centres)?;
    let pairs = boxed.iter().flatten().zip(result.centres_box.iter().flatten());
    let max_abs_diff = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let index = outcome.indices.fuzzy_davies_bouldin;
    Ok(Pooled {
        centres,
        max_abs_diff,
        rounds: outcome.rounds,
        fuzzy_davies_bouldin: index.is_finite().then_some(index),
    })
}
