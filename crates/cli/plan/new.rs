//! `veilsum plan new` and `veilsum plan check`: a plan that is made, or changed by hand, is proved, signed and written in one way.

use std::path::{Path, PathBuf};

use clap::Args;
use veilsum_proto::{identity::Identity, plan::Terms, roster::Roster};

use super::say::{ReadArgs, say, to_text};
use crate::{
    columns,
    method::{Choices, What, useful},
    propose::{ProposeArgs, propose},
    roster::signer,
    settings::Settings,
    terms,
};
use veilsum_node::{
    cost::Cost,
    documents::{
        Columns, Federation, GuestList, columns_beside, edited_plan, load_columns, load_federation, load_roster,
        write_plan,
    },
    error::Failure,
};

/// `veilsum plan new`
#[derive(Args, Debug)]
pub(crate) struct NewArgs {
    /// The federation's roster
    #[arg(long, value_name = "FILE", default_value = "roster.toml")]
    pub roster: PathBuf,
    /// The coordinator's secret key file [default: the only *.key file beside the roster]
    #[arg(long, value_name = "FILE.key")]
    pub key: Option<PathBuf>,
    /// Where to write the plan
    #[arg(long, value_name = "FILE", default_value = "plan.toml")]
    pub out: PathBuf,
    /// Rows that are expected in all, for which the forecast is
    ///
    /// It says how far off centres of clusters of so many rows will be.
    #[arg(long, value_name = "N")]
    pub expected_rows: Option<u64>,
    /// What the columns are [default: columns.toml beside the roster, if it is there]
    #[arg(long = "columns", value_name = "FILE")]
    pub columns_file: Option<PathBuf>,
    /// Propose it to all members, and begin the run if nobody refuses, as `plan propose --start` does
    #[arg(long)]
    pub start: bool,
    /// What a run consists of
    #[command(flatten)]
    pub what: What,
}

/// `veilsum plan check`
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// Which plan.
    #[command(flatten)]
    pub of: ReadArgs,
    /// Sign it again, for its coordinator, after a change by hand: everything is proved as for a new plan
    #[arg(long)]
    pub sign: bool,
    /// The coordinator's secret key file [default: the only *.key file beside the roster]
    #[arg(long, value_name = "FILE.key", requires = "sign")]
    pub key: Option<PathBuf>,
}

/// `veilsum plan new`: the plan, signed and written, and what it means.
pub(super) fn new(args: &NewArgs, json: bool) -> Result<(), Failure> {
    let roster = load_roster(&args.roster)?;
    let columns =
        args.columns_file.as_deref().map_or_else(|| columns_beside(&args.roster), |of| load_columns(of).map(Some))?;
    let (_, coordinator) = signer(args.key.as_ref(), &args.roster, &roster, "plan")?;
    let federation = made(args, roster, columns)?;
    let folder = args.roster.parent().unwrap_or(Path::new(""));
    let usual = args.roster == folder.join("roster.toml") && args.out == folder.join("plan.toml");
    if args.start && !(usual && GuestList::within(folder).exists()) {
        let what = "only roster.toml and plan.toml in the folder of a federation are proposed";
        return Err(Failure::usage(what, "leave --roster and --out out, or --start"));
    }
    write(&federation, &coordinator, &args.out)?;
    if !args.start {
        return say(&federation, &args.out, true, json);
    }
    if !json {
        crate::say!("{}", to_text(&federation, &Cost::of(&federation)?));
    }
    propose(&ProposeArgs { folder: folder.to_owned(), start: true, without: Vec::new(), wait: 60 }, json)
}

/// `veilsum plan check`: what a plan means, and with --sign a new signature.
pub(super) fn check(args: &CheckArgs, json: bool) -> Result<(), Failure> {
    let (roster, plan) = (&args.of.roster, &args.of.plan);
    if !args.sign {
        return say(&load_federation(roster, plan)?, plan, false, json);
    }
    let members = load_roster(roster)?;
    let (_, coordinator) = signer(args.key.as_ref(), roster, &members, "plan")?;
    let federation = Federation::new(members, edited_plan(plan)?)?;
    useful(&federation)?;
    write(&federation, &coordinator, plan)?;
    say(&federation, plan, true, json)
}

/// What these options come to for this roster. Nothing is written, and nothing read but what settings name.
///
/// # Errors
/// A [`Failure`] that names the option.
pub(crate) fn made(args: &NewArgs, roster: Roster, known: Option<Columns>) -> Result<Federation, Failure> {
    let set = Settings::read(&args.what.set)?;
    let columns = columns::of_plan(&args.what.columns, known.as_ref())?;
    if !args.what.exact && args.expected_rows.is_none() {
        let next = "say --expected-rows N, from what is public: whether the result can be told from the noise is forecast for as many";
        return Err(Failure::usage("how many rows are expected in all?", next));
    }
    let useless = set.get("dp_useless")?.unwrap_or(false);
    let expected_rows = args.expected_rows.unwrap_or(0);
    let choices = Choices { what: &args.what, set, columns, expected_rows, usual_seed: 1, usual_k: None };
    let federation = terms::federation(choices, roster)?;
    if !useless {
        useful(&federation)?;
    }
    Ok(federation)
}

fn write(federation: &Federation, coordinator: &Identity, file: &Path) -> Result<(), Failure> {
    write_plan(file, &Terms::clone(&federation.terms).sign(&federation.roster, coordinator)?)
}
