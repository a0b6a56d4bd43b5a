//! A site in one run.

use serde_json::json;
use veilsum_node::{
    checkup, cost,
    documents::{self, Loaded, policy_of},
    door::{LedgerError, ledger},
    error::{Code, Failure},
    report,
    role::{
        client::{self, ClientConfig},
        status::Window,
        stop,
    },
    table::Tally,
};

use super::args::{RunArgs, model_in};
use crate::{
    party::{address_of, place_for, waiting, warn_of_replacing},
    screen::folded,
};

/// Reads all that a run needs, and asks whether this party agreed to the roster. Nothing is dialled. With it what was read and is not told
/// yet: under noise nothing that depends on a cell is, before the plan's last answer ([NOI-8]).
///
/// # Errors
/// A [`Failure`] that names the file at fault.
pub(crate) fn prepare(args: &RunArgs, json: bool) -> Result<(ClientConfig, Option<Tally>), Failure> {
    place_for(&model_in(&args.out))?;
    let (config, tally) = read(args, json)?;
    let mut tally = tally.filter(|_| !json);
    if config.party.federation.work.recipe.noise.is_none() {
        told(tally.take())?;
    }
    Ok((config, tally))
}

/// What was read, for this site's operator: on standard output, because a log has no row count.
fn told(tally: Option<Tally>) -> Result<(), Failure> {
    let Some(tally) = tally else { return Ok(()) };
    crate::say!("What was read");
    for line in tally.lines() {
        crate::say!("{}", folded(&format!("  {line}"), 0));
    }
    for doubt in tally.doubts() {
        crate::say!("{}", folded(&format!("warning: {doubt}"), 0));
    }
    Ok(())
}

/// The same with what was read, which is not told.
pub(crate) fn read(args: &RunArgs, json: bool) -> Result<(ClientConfig, Option<Tally>), Failure> {
    let (federation, identity) = args.load("a site")?;
    warn_of_replacing(&report::beside(&model_in(&args.out)), &federation.terms);
    let (key, state) = (args.key()?, args.state()?);
    let (site, file) = policy_of(args.own.policy.as_deref(), Some(&key))?;
    args.own.shares(&site, &identity, &state)?;
    checkup::lasts(&state)?;
    // Before anybody is dialled. A line that was being written when the process ended is dropped when the ledger is opened.
    match ledger::look(&state, &identity.public()) {
        Ok(_) | Err(LedgerError::Torn { .. }) => {}
        Err(other) => return Err(other.into()),
    }
    documents::keep_policy(file.as_deref(), &key)?;
    let from = args.own.rows(&site, file.as_deref(), Some(&key))?;
    let loaded = documents::load_rows(&federation, &from)?;
    site.has_room(loaded.rows_asked(&federation))?;
    let Loaded { rows, tally } = loaded;
    args.agree(&federation, &identity)?;
    let (coordinator, intermediary) =
        (address_of(&federation.roster.coordinator)?, address_of(&federation.roster.intermediary)?);
    let config = ClientConfig {
        party: args.reach.party(identity, federation, args.watch.watcher(json)?)?,
        site,
        rows,
        coordinator,
        intermediary,
        state: Some(state),
        patience: waiting(args.patience.join_timeout),
        agreed: false,
    };
    Ok((config, tally))
}

/// Takes part in the run, and writes what comes of it.
///
/// # Errors
/// A [`Failure`] with its exit code.
pub(crate) async fn take_part(
    args: &RunArgs,
    (mut config, tally): (ClientConfig, Option<Tally>),
    window: &Window,
    json: bool,
) -> Result<(), Failure> {
    let id = config.party.federation.whoami(&config.party.identity)?;
    let writer = config.party.writer();
    let name = config.party.name_of(id);
    let federation = config.party.federation.clone();
    window.watch(&mut config.party, id);
    let report = client::run(config).await?;
    told(tally)?;
    let Some(model) = &report.model else {
        return Err(Failure::new(Code::Denied, "the run ended without a model", "ask the coordinator's operator"));
    };
    let file = model_in(&args.out);
    let result = report::beside(&file);
    let write = stop::until_written(|| {
        documents::write_model(model, &file)?;
        report::write_site(&result, model, report.result.as_ref(), &report.traffic, &writer)
    });
    stop::unless_told(write, "the coordinator has the result, too").await?;
    let page = report::page::kept_beside(&result, &federation);
    if json {
        let value = json!({"site": name, "answered": report.answered, "traffic": report.traffic, "model": file, "result": result,
            "converged": model.converged, "ended_early": model.ended_early, "centres": model.centres});
        crate::say!("{value}");
    } else {
        let (answered, sent) = (cost::counted(report.answered as usize, "question"), report.traffic.bytes());
        crate::say!("{name}: answered {answered}, sent {sent} bytes, masked words, shares, keys and signatures");
        let policy = policy_of(args.own.policy.as_deref(), Some(&args.key()?)).ok().and_then(|(_, file)| file);
        crate::say!("what was given away so far: veilsum check --offline --key {}", args.key()?.display());
        let page = page.as_ref().map_or(String::new(), |page| format!(", {}", page.display()));
        let data = args.own.data.as_ref().map_or("ROWS".into(), |data| data.display().to_string());
        // Its [rows] say what these rows mean.
        let policy = policy.map_or(String::new(), |file| format!(" --policy {}", file.display()));
        let (model, result) = (file.display(), result.display());
        crate::say!(
            "wrote {model} and {result}{page}; your rows' memberships: veilsum assign --model {model} --data {data}{policy}"
        );
    }
    model.ended_early.as_ref().map_or(Ok(()), |early| match &report.unreached {
        Some(cause) => Err(client::blamed(early.failure(), cause)),
        None => Err(early.failure()),
    })
}
