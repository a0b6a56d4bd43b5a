//! `veilsum plan make`: its options, and the plan that they come to.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use veilsum_proto::{plan::Terms, policy::DEFAULT_MAX_ROWS, roster::Roster};

use super::say::check;
use crate::{
    categories::CategoryArgs,
    method::{MethodArgs, given_centres, heading, parse_clusters},
    party::key_beside,
    roster::signer,
};
use veilsum_node::{
    columns::names,
    cost::first_centres,
    documents::{Federation, load_identity, load_roster, load_schema, schema_beside, write_plan},
    dp::Privacy,
    error::{Code, Failure},
    plan::{Categorical, Clusters, Column, Labels, OutOfBox, PlanSpec, Recipe, Scaling},
    schema::Schema,
};

/// How rows become working units.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Scale {
    /// Every column to [0, 1] by its public range
    Box,
    /// As they are
    None,
}

/// A column of numbers, with its range where one was given.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    name: String,
    range: Option<(f64, f64)>,
}

/// What a site does with a row outside the box.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Outside {
    /// It is an error at that site
    Refuse,
    /// The value moves to the nearest bound
    Clip,
}

/// `veilsum plan make`
#[derive(Args, Debug)]
pub(crate) struct MakeArgs {
    /// The federation's roster
    #[arg(long, value_name = "FILE", default_value = "roster.toml", help_heading = heading::ROWS)]
    pub roster: PathBuf,
    /// The coordinator's secret key file [default: the only *.key file beside the roster]
    #[arg(long, value_name = "FILE.key", help_heading = heading::ROWS)]
    pub key: Option<PathBuf>,
    /// Where to write the plan
    #[arg(long, value_name = "FILE", default_value = "plan.toml", help_heading = heading::ROWS)]
    pub out: PathBuf,
    /// Number of clusters, or a range as in 2..9 from which the run chooses; `describe` has none
    #[arg(long, value_name = "K|LOW..HIGH", value_parser = parse_clusters, help_heading = heading::METHOD)]
    pub k: Option<Clusters>,
    /// How rows become working units
    #[arg(long, value_enum, default_value = "box", hide_short_help = true, help_heading = heading::ROWS)]
    pub scale: Scale,
    /// What a site does with a row outside the box [default: refuse; under noise clip]
    ///
    /// Under noise nothing but clip is possible.
    #[arg(long, value_enum, hide_short_help = true, help_heading = heading::ROWS)]
    pub out_of_box: Option<Outside>,
    /// A column of numbers with its public range; repeat for every column [default: the schema's]
    ///
    /// The range is known before any row is read. Where there is a schema, NAME alone takes its range; without --column and --category all of its columns are used.
    #[arg(long = "column", value_name = "NAME[=LOW:HIGH]", num_args = 1.., value_parser = parse_column, help_heading = heading::ROWS)]
    pub columns: Vec<Wanted>,
    /// The federation's schema, to which the plan then keeps [default: schema.toml beside the roster, where it is there]
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = heading::ROWS)]
    pub schema: Option<PathBuf>,
    /// Columns of categories
    #[command(flatten)]
    pub categories: CategoryArgs,
    /// Seed of first centres and of everything else that is random in the plan
    #[arg(long, default_value_t = 1, help_heading = heading::METHOD)]
    pub seed: u64,
    /// First centres from this file: K lines of d numbers in box units (0 to 1), no header
    #[arg(long, value_name = "FILE.csv", hide_short_help = true, help_heading = heading::METHOD)]
    pub start: Option<PathBuf>,
    /// Release counts by cluster and label: the label column and every label that occurs
    #[arg(long, value_name = "COLUMN=LABEL,...", value_parser = parse_labels, hide_short_help = true,
        help_heading = heading::ROWS)]
    pub labels: Option<Labels>,
    /// Sites that a total covers at least [default: the threshold; all where sites are sampled]
    #[arg(long, value_name = "SITES", hide_short_help = true, help_heading = heading::COHORT)]
    pub min_sites: Option<u16>,
    /// Shares that open a self-mask; 0 is floor(2n/3) + 1
    #[arg(long, value_name = "SITES", default_value_t = 0, hide_short_help = true, help_heading = heading::COHORT)]
    pub threshold: u16,
    /// Sites that may collude with the coordinator; 0 is floor((n - 1)/3)
    #[arg(long, value_name = "SITES", default_value_t = 0, help_heading = heading::COHORT)]
    pub colluders: u16,
    /// Sites that are released together at least; 0 makes one block of all
    ///
    /// A run that loses a site of one of several blocks goes on without that block. 1 makes every site a block by itself, and what
    /// a site that leaves sent can be computed.
    #[arg(long, value_name = "SITES", default_value_t = 0, help_heading = heading::COHORT)]
    pub block_size: u16,
    /// Make a plan of three blocks; a run that loses a site goes on without its block
    ///
    /// This sets --block-size, --threshold and --colluders, and withstands fewer colluding sites. It needs nine sites.
    #[arg(long, value_name = "block", value_parser = ["block"], hide_possible_values = true, conflicts_with_all = ["block_size", "threshold", "colluders"],
        help_heading = heading::COHORT)]
    pub on_loss: Option<String>,
    /// Rounds that one exchange of keys is good for
    #[arg(long, value_name = "N", default_value_t = 64, hide_short_help = true, help_heading = heading::COHORT)]
    pub slots: u16,
    /// Rows of one site at most
    ///
    /// Under noise it is far above all of them, and no less than any site may hold (max_rows in its site.toml).
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_ROWS, help_heading = heading::ROWS)]
    pub max_rows: u64,
    /// Steps of totals are at least 2^-N of the largest value of one row
    ///
    /// Coarser steps say less of single rows. N is 8 to 62 [default: 20; as fine as 64 bits allow where columns are standardised or
    /// winsorised].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(8..=62), hide_short_help = true,
        help_heading = heading::METHOD)]
    pub step_bits: Option<u8>,
    /// Rows of all sites together at least [default: 20 for each cluster]
    #[arg(long, value_name = "N", help_heading = heading::METHOD)]
    pub min_total_rows: Option<u64>,
    /// What a run consists of
    #[command(flatten)]
    pub method: MethodArgs,
}

/// `veilsum plan make`: the plan, signed and written, and what it means.
pub(super) fn make(args: &MakeArgs, json: bool) -> Result<(), Failure> {
    let roster = load_roster(&args.roster)?;
    let key = key_beside(args.key.as_ref(), &args.roster)?;
    let (identity, _) = load_identity(&key)?;
    signer(&identity, &roster, &key, "plan")?;
    let schema = match &args.schema {
        Some(path) => Some(load_schema(path)?),
        None => schema_beside(&args.roster)?,
    };
    let (federation, start) = made(args, roster, schema)?;
    write_plan(&args.out, &Terms::clone(&federation.terms).sign(&federation.roster, &identity)?)?;
    check(&federation, (&args.out, None), Some(start), json)
}

/// What these options come to for this roster, and where first centres come from. Nothing is read or written.
pub(crate) fn made(args: &MakeArgs, roster: Roster, schema: Option<Schema>) -> Result<(Federation, String), Failure> {
    let sites = roster.sites.len();
    let columns = columns(args, schema.as_ref())?;
    if args.method.noise.asked() && args.method.noise.expected_rows.is_none() {
        return Err(Failure::new(
            Code::Usage,
            "how many rows are expected in all?",
            "say --expected-rows N, from what is public: whether the result can be told from the noise is forecast for as many",
        ));
    }
    let work = work(args, &columns, &args.method)?;
    let terms = terms(args, &roster, &work)?;
    // Proved before it is signed, and again by everybody who loads it.
    let federation = Federation::new(roster, terms).and_then(|of| of.under(schema)).map_err(wrong)?;
    let privacy = Privacy::of(&federation.work, &federation.form()?);
    args.method.noise.check_unit(sites)?;
    if !args.method.noise.dp_useless
        && let Some(warning) = privacy.and_then(|privacy| privacy.warning())
    {
        return Err(Failure::new(
            Code::Usage,
            warning,
            "expect more rows, or choose fewer K or rounds; --dp-useless makes the plan all the same",
        ));
    }
    let start = first_centres(&federation.work.recipe);
    Ok((federation, start))
}

/// The columns of numbers and of categories: those that were named, or all of the schema's.
fn columns(args: &MakeArgs, schema: Option<&Schema>) -> Result<(Vec<Column>, Vec<Categorical>), Failure> {
    let all = args.columns.is_empty() && args.categories.category.is_empty();
    if all && schema.is_none() {
        let next =
            "name every column with --column NAME=LOW:HIGH, or say where the federation's schema is (--schema FILE)";
        return Err(Failure::new(Code::Usage, "no column is named, and there is no schema", next));
    }
    let one = |Wanted { name, range }: &Wanted| match range {
        Some((lower, upper)) => Ok(Column { name: name.clone(), lower: *lower, upper: *upper }),
        None => schema.and_then(|schema| schema.get(name)?.column()).ok_or_else(|| {
            let what = format!("--column {name}: no range is given, and no schema has such a column of numbers");
            Failure::new(Code::Usage, what, "write it as NAME=LOW:HIGH, as in age=0:120")
        }),
    };
    let numbers = match schema.filter(|_| all) {
        Some(schema) => schema.numbers(),
        None => args.columns.iter().map(one).collect::<Result<_, _>>()?,
    };
    Ok((numbers, args.categories.columns(schema, all)?))
}

/// The method part of a plan with these options, on these columns.
fn work(
    args: &MakeArgs,
    (columns, categorical): &(Vec<Column>, Vec<Categorical>),
    method: &MethodArgs,
) -> Result<PlanSpec, Failure> {
    let given = given_centres(args.start.as_deref(), names(columns, categorical).len())?;
    let classes = args.labels.as_ref().map_or(0, |labels| labels.classes.len());
    let clusters = method.clusters(args.k)?;
    let mut recipe = method.recipe(clusters, given, args.seed, columns, classes)?;
    recipe.noise = method.noise.noise(clusters, args.max_rows, &recipe.seeding);
    let step_bits = method.noise.step_bits(args.step_bits).or(default_step(&recipe));
    let work = PlanSpec {
        columns: columns.clone(),
        scaling: method.scaling(match args.scale {
            Scale::Box => Scaling::Box,
            Scale::None => Scaling::None,
        }),
        out_of_box: match args.out_of_box {
            Some(Outside::Refuse) => OutOfBox::Refuse,
            Some(Outside::Clip) => OutOfBox::Clip,
            None => method.noise.out_of_box(),
        },
        recipe,
        sampling: method.sampling(args.seed),
        judge: method.judge(),
        labels: args.labels.clone(),
        step_bits,
        categorical: categorical.clone(),
    };
    work.check().map_err(|e| again(e.into()))?;
    Ok(work)
}

/// The terms of a plan with these options.
fn terms(args: &MakeArgs, roster: &Roster, work: &PlanSpec) -> Result<Terms, Failure> {
    let sites = roster.sites.len();
    let mut terms = Terms {
        roster: roster.hash(),
        min_cohort: args.min_sites.unwrap_or(0),
        threshold: args.threshold,
        colluders: args.colluders,
        block_size: args.block_size,
        slots: args.slots,
        max_rows: args.max_rows,
        min_total_rows: args.min_total_rows.unwrap_or(least_rows(&work.recipe)),
        application: work.to_bytes(),
    };
    if args.on_loss.is_some() {
        let three = three_blocks(sites).ok_or_else(|| {
            let what = format!("{sites} sites are too few for a run that goes on without one of three blocks");
            Failure::new(Code::Usage, what, "leave --on-loss block out: the run then waits for a site that is lost, or is finished from what is out")
        })?;
        (terms.block_size, terms.threshold, terms.colluders) = three;
    }
    if args.min_sites.is_none() {
        let threshold = terms.threshold_of(sites, sites).map_err(|e| again(e.into()))?;
        let least = if work.sampling.is_some() { sites } else { threshold };
        terms.min_cohort = u16::try_from(least).unwrap_or(u16::MAX);
    }
    terms.check(roster).map_err(|e| again(e.into()))?;
    Ok(terms)
}

/// Rows of all sites together at least, if nothing else is said: twenty for each cluster.
fn least_rows(recipe: &Recipe) -> u64 {
    20 * u64::from(recipe.clusters.max)
}

/// The files were read: what is wrong from there on is wrong with the options.
fn wrong(f: Failure) -> Failure {
    Failure { code: Code::Usage, ..f }
}

fn again(f: Failure) -> Failure {
    wrong(Failure { advice: "correct the option and run `veilsum plan make` again".into(), ..f })
}

/// Block size, threshold and colluding sites of a plan over three blocks that can lose any one of them: the threshold is what is
/// left without the largest, 2t > n + c keeps it safe, and every block has two sites beside those that may collude.
fn three_blocks(sites: usize) -> Option<(u16, u16, u16)> {
    let (size, threshold) = (sites / 3, sites - sites.div_ceil(3));
    let colluders = size.saturating_sub(2).min((2 * threshold).saturating_sub(sites + 1));
    let narrow = |n: usize| u16::try_from(n).ok();
    (sites >= 9 && colluders >= 1).then_some(())?;
    Some((narrow(size)?, narrow(threshold)?, narrow(colluders)?))
}

/// Half of what 64 bits hold says nothing that a result needs, and counts against every site's release rule. A step of 2^-20
/// of one row's largest value moves no centre by more than a millionth of its column's range. Variances of a column that is
/// narrow in its range need finer ones.
fn default_step(recipe: &Recipe) -> Option<u8> {
    recipe.preparation.is_none().then_some(20)
}

/// `COLUMN=LABEL,LABEL,...`
fn parse_labels(text: &str) -> Result<Labels, String> {
    let form = "write it as COLUMN=LABEL,LABEL, as in outcome=no,yes";
    let (column, classes) = text.split_once('=').ok_or(form)?;
    let classes: Vec<String> = classes.split(',').map(str::to_owned).collect();
    if column.is_empty() || classes.len() < 2 {
        return Err(form.into());
    }
    Ok(Labels { column: column.to_owned(), classes })
}

/// `NAME=LOW:HIGH` or `NAME`; the name of the first form may itself hold an equals sign.
fn parse_column(text: &str) -> Result<Wanted, String> {
    let form = "write it as NAME=LOW:HIGH, as in age=0:120";
    if !text.is_empty() && !text.contains('=') {
        return Ok(Wanted { name: text.to_owned(), range: None });
    }
    let (name, range) = text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or(form)?;
    let (low, high) = range.split_once(':').ok_or(form)?;
    let bound = |s: &str| s.trim().parse::<f64>().ok().filter(|v| v.is_finite());
    let (Some(lower), Some(upper)) = (bound(low), bound(high)) else {
        return Err(format!("the range of {name:?} is not two numbers; {form}"));
    };
    if lower >= upper {
        return Err(format!("the range of {name:?} has no inside: LOW must be below HIGH"));
    }
    Ok(Wanted { name: name.to_owned(), range: Some((lower, upper)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the specification's table.
    #[test]
    fn plans_of_three_blocks() {
        let of = three_blocks;
        for n in 3..9 {
            assert_eq!(of(n), None);
        }
        assert_eq!(
            [9, 10, 20, 50, 100].map(|n| of(n).unwrap()),
            [(3, 6, 1), (3, 6, 1), (6, 13, 4), (16, 33, 14), (33, 66, 31)]
        );
    }

    #[test]
    fn columns() {
        let c = parse_column("a=b=-1e3:2").unwrap();
        assert_eq!((c.name.as_str(), c.range), ("a=b", Some((-1000.0, 2.0))));
        assert_eq!(parse_column("a").unwrap().range, None);
        for bad in ["", "=1:2", "a=1", "a=1:x", "a=NaN:1", "a=1:1", "a=2:1", "a=0:inf"] {
            assert!(parse_column(bad).is_err(), "{bad}");
        }
    }
}
