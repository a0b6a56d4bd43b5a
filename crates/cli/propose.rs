//! `veilsum plan propose`: what every party would answer to a plan, and the beginning of a run.

use std::{
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use clap::Args;
use serde_json::json;
use veilsum_node::{
    cost::{counted, some_of, which_sites},
    documents::{self, Federation, GuestList, PlanAnswer, Stage},
    error::{Code, Failure},
    role::{server, service},
};
use veilsum_proto::roster::Member;

use crate::{party::state_beside, roster::signer};

/// How often the answers are looked at.
const LOOK: Duration = Duration::from_millis(200);

/// `veilsum plan propose`
#[derive(Args, Debug)]
pub(crate) struct ProposeArgs {
    /// Folder of the federation, in which roster.toml and plan.toml are
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
    /// Begin the run, if nobody refuses
    #[arg(long)]
    pub start: bool,
    /// Sites that the run goes without: they are not asked. Of a plan over any sites (sites=any)
    #[arg(long, value_name = "SITE", num_args = 1..)]
    pub without: Vec<String>,
    /// Seconds to wait for parties that have not answered
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub wait: u64,
}

/// `veilsum plan stop`
#[derive(Args, Debug)]
pub(crate) struct StopArgs {
    /// The coordinator's secret key file [default: the only *.key file beside the roster]
    #[arg(long, value_name = "FILE.key")]
    pub key: Option<PathBuf>,
    /// The federation's roster
    #[arg(long, value_name = "FILE", default_value = "roster.toml")]
    pub roster: PathBuf,
    /// Folder of the coordinator's journal [default: beside the key]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

/// Runs `veilsum plan stop`.
///
/// # Errors
/// A [`Failure`] where no run goes on here, or nothing can be written.
pub(crate) fn stop(args: &StopArgs, json: bool) -> Result<(), Failure> {
    let roster = documents::load_roster(&args.roster)?;
    let (key, _) = signer(args.key.as_ref(), &args.roster, &roster, "run")?;
    let state = state_beside(&key, args.state.as_ref());
    if !state.is_dir() {
        let what = format!("{}: no run was begun here", state.display());
        return Err(Failure::input(what, "say where the coordinator keeps its journal: --state DIR"));
    }
    let folder = args.roster.parent().unwrap_or(Path::new(""));
    let list = GuestList::within(folder).exists().then(|| GuestList::load(folder)).transpose()?;
    let run = list.map(|list| list.run.filter(|run| run.ended.is_none()));
    if run == Some(None) {
        return Err(Failure::input("no run goes on here", "see `veilsum federation show`"));
    }
    server::end(&state, run.flatten().is_some_and(|run| run.set_back))?;
    let text = "the run ends for everybody, with what is out so far; where the coordinator does not run now, when it is started again";
    crate::verb::print(json, &json!({ "ends": true }), text)
}

/// A party, and what it said.
type Line = (String, Option<PlanAnswer>);

/// Whether a party may say something else yet.
fn is_open((_, answer): &Line) -> bool {
    matches!(answer, None | Some(PlanAnswer::Reading | PlanAnswer::Unreached))
}

/// The parties of which this holds.
fn named(lines: &[Line], such: impl Fn(&Line) -> bool) -> Vec<&str> {
    lines.iter().filter(|line| such(line)).map(|(party, _)| party.as_str()).collect()
}

/// Runs `veilsum plan propose` ([PRO-1], [PRO-4]).
///
/// # Errors
/// A [`Failure`]; with code 7 if somebody would not answer, with 4 if somebody is not there, or cannot be reached.
pub(crate) fn propose(args: &ProposeArgs, json: bool) -> Result<(), Failure> {
    let federation = documents::load_federation(args.folder.join("roster.toml"), args.folder.join("plan.toml"))?;
    let list = GuestList::load(&args.folder)?;
    if list.roster().is_none_or(|roster| roster.hash() != federation.roster.hash()) {
        let what = "roster.toml is not the roster of those who are in now: somebody still waits, or too few are left";
        return Err(Failure::input(what, "see who is in: veilsum federation show"));
    }
    enough(args, &federation)?;
    if GuestList::serving(&args.folder)?.is_some() {
        let next = "start it in another window: veilsum run";
        return Err(Failure::new(Code::Network, "nobody serves this federation, so nobody can answer", next));
    }
    if let Some(run) = list.run {
        if run.ended.is_none() {
            return Err(service::goes_on(&run));
        }
        // What a site has spent on a plan with noise is spent, and it keeps nothing for it any more.
        if run.ended == Some(0) && run.plan == federation.terms.hash() && federation.work.recipe.noise.is_some() {
            let what = format!("this plan was run already, as run {}: a plan with noise is for one run", run.number);
            return Err(Failure::input(what, "make another one, with another seed: veilsum plan new … --seed NUMBER"));
        }
    }
    GuestList::propose(&args.folder)?;
    let until = Instant::now() + Duration::from_secs(args.wait);
    let mut said_so = false;
    let lines = loop {
        let lines = lines(args, &federation)?;
        let open = named(&lines, is_open);
        if open.is_empty() || Instant::now() >= until {
            break lines;
        }
        if !std::mem::replace(&mut said_so, true) && !json {
            crate::tell!("waiting for {}", some_of(&open, ", "));
        }
        thread::sleep(LOOK);
    };
    let mut shown = told(&lines);
    shown += &format!("{}\n", which_sites(&federation));
    let answer = |(party, answer): &Line| {
        let says = answer.as_ref().map(ToString::to_string);
        json!({ "party": party, "answer": answer, "says": says })
    };
    let answers: Vec<_> = lines.iter().map(answer).collect();
    let mut value = json!({ "plan": federation.terms.hash().to_string(), "answers": answers });
    let is_yes = |line: &Line| line.1.as_ref().is_some_and(PlanAnswer::is_yes);
    let said = |what: Option<PlanAnswer>| named(&lines, |(_, answer)| *answer == what);
    let (absent, unreached) = (said(None), said(Some(PlanAnswer::Unreached)));
    let refused = named(&lines, |line| !is_open(line) && !is_yes(line));
    let for_good = |line: &Line| matches!(line.1, Some(PlanAnswer::Refuses { .. } | PlanAnswer::Ran));
    let all = lines.iter().all(is_yes);
    value["begins"] = json!(args.start && all);
    if !all {
        if json {
            value["error"] = json!("not everybody would answer");
        }
        crate::verb::print(json, &value, &shown)?;
        return Err(if refused.is_empty() {
            let parts = [
                ("not there", &absent),
                ("still reading their rows", &said(Some(PlanAnswer::Reading))),
                ("cannot reach the intermediary", &unreached),
            ];
            let parts = parts.iter().filter(|(_, who)| !who.is_empty());
            let parts = parts.map(|(what, who)| format!("{what}: {}", some_of(who, ", ")));
            let next = match (absent.is_empty(), unreached.is_empty()) {
                (true, true) => "propose again: what was read is not read again; or wait longer, with --wait",
                (true, false) => "look whether it runs, and ask these operators to try their way to it: veilsum check",
                (false, _) => "ask their operators to start `veilsum run`, and propose again",
            };
            let what = format!("{}; nothing was begun", parts.collect::<Vec<_>>().join("; "));
            Failure::new(Code::Network, what, next)
        } else {
            let next = match lines.iter().any(for_good) {
                true => "speak to their operators, whose screens say why, and make another plan",
                false => "speak to their operators, whose screens say what they have to do, and propose again",
            };
            let what = format!(
                "this plan would not be answered by {}; nothing was begun, and nobody spent anything",
                some_of(&refused, ", ")
            );
            Failure::new(Code::Policy, what, next)
        });
    }
    if args.start {
        let run = service::start(&args.folder, &federation, args.without.clone())?;
        value["run"] = json!(run.number);
        shown += &format!("run {} begins; the coordinator's window shows how it goes\n", run.number);
    } else {
        shown += "next: veilsum plan propose --start\n";
    }
    crate::verb::print(json, &value, &shown)
}

/// Who says what; many who say the same have one line.
fn told(lines: &[Line]) -> String {
    let mut said: Vec<(String, Vec<&str>)> = Vec::new();
    for (party, answer) in lines {
        let says = answer.as_ref().map_or("is not there".to_owned(), ToString::to_string);
        match said.iter_mut().find(|(known, _)| *known == says) {
            Some((_, who)) => who.push(party),
            None => said.push((says, vec![party])),
        }
    }
    let text = |(says, who): &(String, Vec<&str>)| match who.len() {
        0..=5 => who.iter().map(|party| format!("{party:<20} {says}\n")).collect(),
        _ => format!("{}: {says}\n", some_of(who, ", ")),
    };
    said.iter().map(text).collect()
}

/// Those who are left out are sites, and enough are left.
fn enough(args: &ProposeArgs, federation: &Federation) -> Result<(), Failure> {
    let sites = &federation.roster.sites;
    if let Some(other) = args.without.iter().find(|name| !sites.iter().any(|site| site.name == **name)) {
        let next = "see the names: veilsum verify roster.toml";
        return Err(Failure::usage(format!("{other} is no site of the roster"), next));
    }
    let (left, least) = (sites.len() - args.without.len(), federation.terms.least(sites.len()));
    if left < least {
        let what =
            format!("{} would be left, and every total of this plan covers {least} at least", counted(left, "site"));
        return Err(Failure::input(what, "wait for the others; a run that cannot end is not begun"));
    }
    Ok(())
}

fn lines(args: &ProposeArgs, federation: &Federation) -> Result<Vec<Line>, Failure> {
    let list = GuestList::load(&args.folder)?;
    let documents = [federation.roster.hash(), federation.terms.hash()];
    // The roster says who is asked; whoever was taken out since then has nothing to say.
    let sites = federation.roster.sites.iter().filter(|site| !args.without.contains(&site.name));
    let line = |member: &Member| {
        let guest = list.guests.iter().find(|guest| guest.party == member.name && guest.stage == Stage::Approved);
        let said = guest.and_then(|guest| guest.said.as_ref()).filter(|said| [said.roster, said.plan] == documents);
        (member.name.clone(), said.map(|said| said.answer.clone()))
    };
    Ok(sites.chain([&federation.roster.intermediary]).map(line).collect())
}
