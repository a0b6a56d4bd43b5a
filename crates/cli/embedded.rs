//! What a program needs that runs parties, or a whole federation, in its own process: the same options as on the command line, come to
//! what a role is given. Nothing here prints, and signals stay the program's own.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, Command, FromArgMatches};
use serde_json::{Value, json};
use veilsum_node::{
    answerer::Rows,
    documents::{self, Federation, Handed, Pinned, SitePolicy, check_address, policy_of, write_key, write_roster},
    door::{Data, Ledger, ledger},
    error::{Code, Failure},
    facts::set_of,
    files::Existing,
    loopback::{LoopbackRun, LoopbackSite},
    random::system_rng,
    report,
    role::{client::ClientConfig, intermediary::IntermediaryConfig, server::ServerConfig},
    table::Tally,
};
use veilsum_proto::{
    identity::Identity,
    roster::{Member, PartyId, Roster},
};

use crate::{
    demo::{in_this_process, policy_for},
    plan::{NewArgs, made},
    run::{self, RunArgs},
    terms::roster_of_nobody,
};

/// Options as they stand behind a command's name.
pub type Options = Vec<OsString>;

fn parsed<A: Args + FromArgMatches>(name: &'static str, options: Options) -> Result<A, Failure> {
    let command = A::augment_args(Command::new(name)).no_binary_name(true);
    command.try_get_matches_from(options).and_then(|found| A::from_arg_matches(&found)).map_err(|e| {
        let words = e.to_string();
        let words = words.trim_start_matches("error: ").split("\n\n").next().unwrap_or_default();
        Failure::usage(words, format!("see `veilsum {name} --help-all`"))
    })
}

/// The options of one run of one plan.
#[derive(Args)]
struct OneRun {
    /// The plan.
    #[arg(long)]
    plan: PathBuf,
    #[command(flatten)]
    run: RunArgs,
}

fn one(options: Options) -> Result<RunArgs, Failure> {
    let OneRun { plan, run } = parsed("run", options)?;
    Ok(RunArgs { plan: Some(plan), ..run })
}

/// Makes a whole federation in `folder`, whose owner then has everybody's secrets: a key for every party, and the signed roster, to which
/// everybody has agreed. Coordinator and intermediary are named with their addresses.
///
/// # Errors
/// A [`Failure`] where a name cannot be used, or a file is there already or cannot be written.
pub fn found(folder: &Path, name: &str, aggregators: [(&str, &str); 2], sites: &[String]) -> Result<(), Failure> {
    let mut keys = Vec::new();
    let mut member = |name: &str, address: &str| {
        check_address(address)?;
        let (identity, path) = (Identity::generate(&mut system_rng()), folder.join(format!("{name}.key")));
        write_key(&path, name, &identity, Existing::Refuse)?;
        let member = Member { name: name.into(), key: identity.public(), address: address.into() };
        keys.push((path, identity));
        Ok::<_, Failure>(member)
    };
    let [coordinator, intermediary] = aggregators;
    let roster = Roster {
        name: name.into(),
        coordinator: member(coordinator.0, coordinator.1)?,
        intermediary: member(intermediary.0, intermediary.1)?,
        sites: sites.iter().map(|site| member(site, "")).collect::<Result<_, _>>()?,
    };
    write_roster(folder.join("roster.toml"), &roster.clone().sign(&keys[0].1)?)?;
    Pinned::change(&keys[0].0, |pinned| pinned.roster = Some(roster.clone()))?;
    for (key, identity) in keys.drain(2..) {
        let state = key.with_added_extension("state");
        ledger::begin(&state, &identity.digest_secret())?;
        let data = Data::unread(&SitePolicy::default().data);
        Ledger::open(&state, Arc::new(identity), data, None)?.accept(set_of(&roster))?;
    }
    Ok(())
}

/// What these options of `veilsum plan new` come to for sites of these names, whose keys nobody has. No file is read but those that
/// options name, none is written, and nothing is signed.
///
/// # Errors
/// A [`Failure`] that names the option.
pub fn planned(options: Options, sites: &[String]) -> Result<Federation, Failure> {
    let options: NewArgs = parsed("plan new", options)?;
    made(&options, roster_of_nobody(sites)?, None)
}

/// What the site of `veilsum run` with these options, and the `--plan` at hand, is given; `rows` are in place of `--data`. With it what was read
/// of them, for its operator.
///
/// # Errors
/// A [`Failure`] that names the file, or the row, at fault.
pub fn site(options: Options, rows: Option<Handed>) -> Result<(ClientConfig, Option<Tally>), Failure> {
    let mut args = one(options)?;
    args.own.handed = rows;
    run::site::read(&args, true)
}

/// Stands by as the site of `veilsum run` with these options does, until it is dropped; `rows` are in place of `--data`.
///
/// # Errors
/// A [`Failure`] that names the file at fault; what goes wrong in a run is told, and ends that run alone.
pub async fn stand_by(options: Options, rows: Option<Handed>) -> Result<(), Failure> {
    let mut args: RunArgs = parsed("run", options)?;
    args.own.handed = rows;
    let id = args.role()?;
    if !matches!(id, PartyId::Site(_)) {
        return Err(Failure::input("this key is not that of a site", "run this party with `veilsum run`"));
    }
    args.fits(id)?;
    let key = run::standby::begin(&args, true)?;
    args.stand_by(&key, true, false).await
}

/// What the intermediary of `veilsum run` with these options is given.
///
/// # Errors
/// A [`Failure`] that names the file at fault.
pub fn intermediary(options: Options) -> Result<IntermediaryConfig, Failure> {
    run::intermediary::prepare(&one(options)?, true)
}

/// What the coordinator of `veilsum run` with these options is given, and the folder for its result.
///
/// # Errors
/// A [`Failure`] that names the file at fault.
pub fn coordinator(options: Options) -> Result<(ServerConfig, PathBuf), Failure> {
    let args = one(options)?;
    Ok((run::coordinator::prepare(&args, true)?, args.out))
}

/// A party in the one run of a plan, as its options say, with the screen and the exit code of `veilsum run --once`: for tests that hold all
/// ends of a run.
#[doc(hidden)]
pub fn one_run(options: Options) -> u8 {
    let of_all = |word: &OsString| ["--json", "-v", "-vv"].iter().position(|of| word == of);
    let (all, own): (Vec<_>, Vec<_>) = options.into_iter().partition(|word| of_all(word).is_some());
    let json = all.iter().any(|word| word == "--json");
    crate::log_to_stderr(all.iter().filter_map(of_all).max().unwrap_or(0) as u8);
    let ended = one(own).and_then(|args| run::one(&args, json));
    ended.map_or_else(|failure| crate::report(&failure, json), |()| 0)
}

/// Runs a whole federation in this process, on QUIC over loopback, under this plan, with keys made for the occasion: the rows of each
/// site, n x d in the plan's columns and original units. The sites answer under the policy of this file, or under the strict default where every
/// site answers everything under it, else under as little less as these rows and this plan need. The result is what `result.json` has.
///
/// # Errors
/// A [`Failure`] where the sites do not fit the plan, and that of the coordinator's role.
pub async fn simulate(federation: &Federation, rows: Vec<Vec<f64>>, policy: Option<&Path>) -> Result<Value, Failure> {
    let names: Vec<String> = federation.roster.sites.iter().map(|member| member.name.clone()).collect();
    if rows.len() != names.len() {
        let what = format!("{} sites are on the roster, and rows of {} were given", names.len(), rows.len());
        return Err(Failure::usage(what, "give the rows of every site, in the order of the roster"));
    }
    let columns = federation.work.domain()?.columns();
    let site = |(name, values): (&String, Vec<f64>)| {
        let read = || {
            let (table, missing) = documents::table_in_memory(federation, &values)?;
            let site = LoopbackSite { name: name.clone(), rows: Rows::new(table.values, columns)?, missing };
            site.prepare(&federation.work.domain()?, federation.work.out_of_box)?;
            Ok(site)
        };
        read().map_err(|f: Failure| Failure { message: format!("{name}: {}", f.message), ..f })
    };
    let sites = names.iter().zip(rows).map(site).collect::<Result<Vec<_>, Failure>>()?;
    let (site, told) = match policy {
        None => policy_for(federation)?,
        Some(file) => (policy_of(Some(file), None)?.0, file.display().to_string()),
    };
    let quiet = Arc::new(|_| {});
    let run = in_this_process(federation, sites, site, quiet).await?;
    let LoopbackRun { result, sites, .. } = run;
    let refused = sites.iter().zip(&names).find_map(|(site, name)| {
        let failure = site.as_ref().err().filter(|failure| failure.code == Code::Policy)?;
        Some(Failure::new(Code::Policy, format!("{name}: {}", failure.message), failure.advice.clone()))
    });
    let result = result.map_err(|failure| refused.unwrap_or(failure))?;
    let answered = |site: Result<veilsum_node::role::client::ClientReport, Failure>| match site {
        Ok(report) => json!({ "answered": report.answered }),
        Err(failure) => json!({ "error": failure.message }),
    };
    let sites: serde_json::Map<String, Value> = names.into_iter().zip(sites.into_iter().map(answered)).collect();
    let summary = format!("{}{}", report::centres(&result), report::summary(&result));
    Ok(json!({ "result": report::document(&result, None), "sites": sites, "policy": told, "summary": summary }))
}
