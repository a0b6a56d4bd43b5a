//! `veilsum policy`: what a site demands for itself, and whether it would answer a plan.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;
use veilsum_proto::{
    policy::{self, Enforcement, Policy, Room, Spent},
    suite::Hash,
};

use crate::{
    page::{self, Page, Print},
    party::{head_of, state_of},
    verb::Verb,
    words,
};
use veilsum_node::{
    answerer::Answerer,
    cost::Cost,
    documents::{self, Federation, PlanAnswer, load_identity, policy_of},
    dp,
    error::{Code, Failure},
    forecast::{Forecast, Verdict},
    question::SumBounds,
    release::{Known, check_promise},
    store::Ledger,
};

/// What this site demands for itself, and whether it would answer a plan: show, check
#[derive(Args, Debug)]
pub(crate) struct PolicyArgs {
    /// What to do
    #[command(subcommand)]
    pub command: PolicyCommand,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub(crate) enum PolicyCommand {
    /// Print the policy in force, as a file that says the same
    Show(ShowArgs),
    /// Say before joining whether this site would answer the whole plan (exit code 0), or where it would stop (7)
    Check(Box<CheckArgs>),
}

/// Where a policy comes from.
#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// The policy [default: site.toml beside the key, else the strict default]
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// This site's secret key file
    #[arg(long, value_name = "FILE.key")]
    pub key: Option<PathBuf>,
}

/// `veilsum policy check`
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// The federation's roster
    #[arg(long, value_name = "FILE", default_value = "roster.toml")]
    pub roster: PathBuf,
    /// The plan
    #[arg(long, value_name = "FILE", default_value = "plan.toml")]
    pub plan: PathBuf,
    /// This site's rows: a file, a folder, a pattern or - [default: `source` under [rows] in site.toml]
    #[arg(long, value_name = "ROWS")]
    pub data: Option<PathBuf>,
    /// Rows of all sites together at least, where you know better than the plan
    #[arg(long, value_name = "N")]
    pub rows_in_all: Option<u64>,
    /// Folder of this site's ledger; with --key, what was given away before counts [default: beside the key]
    #[arg(long, value_name = "DIR", requires = "key")]
    pub state: Option<PathBuf>,
    /// Where the policy comes from.
    #[command(flatten)]
    pub policy: ShowArgs,
    /// The page.
    #[command(flatten)]
    pub print: Print,
}

impl Verb for PolicyArgs {
    /// Runs `veilsum policy`.
    ///
    /// # Errors
    /// A [`Failure`]; with code 7 where this site would not answer the whole plan.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let args = self;
        match &args.command {
            PolicyCommand::Show(a) => {
                let (site, path) = policy_of(a.policy.as_deref(), a.key.as_deref())?;
                let from = path.map_or("the strict default".to_owned(), |path| path.display().to_string());
                let text = format!("# {from}\n{}", site.to_text());
                crate::verb::print(json, &json!({ "from": from, "policy": site.to_json() }), &text)
            }
            PolicyCommand::Check(a) => check(a, json),
        }
    }
}

/// What a site makes of a plan before it begins.
pub(super) struct Judged {
    forecast: Forecast,
    verdict: Verdict,
    /// The question at which it would stop.
    stops_at: Option<u64>,
    asked: Asked,
}

/// What a verdict was found for.
struct Asked {
    federation: Federation,
    policy: Policy,
    spent: Spent,
    own: (u64, Option<u64>),
    known: u64,
}

/// Further runs that are counted; beyond, the number says nothing to anybody.
const RUNS: u64 = 100;

/// The rules by which a site keeps an account over all plans: what they refuse is a matter of its budget.
const BUDGETS: [&str; 3] = ["POL-5", "POL-8", "POL-9"];

impl Judged {
    /// The same for the coordinator, before anything is asked ([PRO-2]).
    pub(super) fn proposal(&self) -> PlanAnswer {
        match &self.verdict {
            Verdict::Answers(_) => {
                let mut forecast = self.forecast.clone();
                PlanAnswer::Would { runs: u32::try_from(self.further_runs(&mut forecast)).ok() }
            }
            Verdict::AnswersIf { .. } => {
                let Asked { federation, policy, spent, own, known } = &self.asked;
                let about = (&*federation.work, &*federation.terms, federation.roster.sites.len());
                if self.forecast.begins(about, policy, spent, *own, *known) {
                    PlanAnswer::Perhaps
                } else {
                    PlanAnswer::Budget
                }
            }
            Verdict::Refused(why) => match PlanAnswer::refusal(why) {
                PlanAnswer::Refuses { rule } if BUDGETS.contains(&rule.as_str()) => PlanAnswer::Budget,
                other => other,
            },
        }
    }

    /// How often the plan would be answered again after this time. The forecast may become an estimate on the way.
    fn further_runs(&self, forecast: &mut Forecast) -> u64 {
        let Asked { federation, policy, spent, own, known } = &self.asked;
        let about = (&*federation.work, &*federation.terms, federation.roster.sites.len());
        loop {
            let (bound, mut runs, mut after) = (!forecast.estimated, 0, forecast.added_to(spent));
            while runs < RUNS && matches!(forecast.verdict(about, policy, &after, *own, *known), Verdict::Answers(_)) {
                (runs, after) = (runs + 1, forecast.added_to(&after));
            }
            // The upper bound was in the way, and an estimate has taken its place.
            if !(bound && forecast.estimated) {
                return runs;
            }
        }
    }

    /// Of a plan that is answered: how much of the budget is used then, by the release rule, the privacy budget or the policy's
    /// bounds on answers and runs, and how often the plan would be answered again.
    fn budget(&self, room: &Room) -> String {
        let Asked { policy, spent, own, .. } = &self.asked;
        let mut forecast = self.forecast.clone();
        let runs = self.further_runs(&mut forecast);
        let after = forecast.added_to(spent);
        let used = policy::used(&after, policy.release.domain.or(own.1));
        let enforced = policy.release.rule == Enforcement::Enforce && forecast.total().nano_rho.is_none();
        let parts = [
            (used.scalars, room.scalars, enforced),
            (used.milli_bits, room.milli_bits, enforced),
            (after.nano_rho, policy.noise.nano_rho, true),
            (after.questions, policy.max_rounds_in_all, true),
            (after.runs, policy.max_runs, true),
        ];
        let percent = |(part, whole, counts): (u64, u64, bool)| {
            if counts { (u128::from(part) * 100).div_ceil(u128::from(whole.max(1))) as u64 } else { 0 }
        };
        let percent = parts.into_iter().map(percent).max().unwrap_or(0);
        let more = match runs {
            0 => "no further run like this one fits".to_owned(),
            1 => "about 1 more run like this one fits".to_owned(),
            RUNS => format!("{RUNS} and more runs like this one fit"),
            n => format!("about {n} more runs like this one fit"),
        };
        format!(" {percent} % of its budget is used then, and {more}.")
    }
}

/// The same for a person.
pub(super) struct Answer {
    /// Whether the whole plan is answered for certain.
    pub yes: bool,
    /// Whether it certainly is not.
    pub never: bool,
    /// Yes or no, and why.
    pub sentence: String,
    /// What to do about a no.
    pub next: &'static str,
}

impl Judged {
    /// Yes or no in one sentence.
    pub(super) fn answer(&self) -> Answer {
        let most = self.forecast.most;
        let stops =
            self.stops_at.map_or(String::new(), |at| format!("; it would stop at question {at} of at most {most}"));
        match &self.verdict {
            Verdict::Answers(room) => {
                let how = match self.forecast.estimated {
                    true => ", if its smooth questions tell no more than is estimated",
                    false => ", whatever its rounds need",
                };
                let sentence = format!("Yes: this site answers the whole plan{how}.{}", self.budget(room));
                Answer { yes: true, never: false, sentence, next: "" }
            }
            Verdict::AnswersIf { rows, why } => Answer {
                yes: false,
                never: false,
                sentence: format!(
                    "No, unless the totals show {rows} rows in all: this site may stop before the end of the plan: {why}{stops}"
                ),
                next: "ask for a plan with fewer rounds or K, a coarser --step-bits, or a --max-rows near the largest site's; where it \
                       is known that there are more rows, ask for a --min-total-rows nearer to the truth, or say --rows-in-all here",
            },
            Verdict::Refused(why) => Answer {
                yes: false,
                never: true,
                sentence: format!("No: this site does not answer this plan: {why}{stops}"),
                next: "agree on a plan that this site's policy allows (`veilsum policy show`)",
            },
        }
    }

    /// What the release rule leaves room for.
    fn room(&self) -> Option<&Room> {
        if let Verdict::Answers(room) = &self.verdict { Some(room) } else { None }
    }

    /// Where this site would end the run, and why; `None` where it answers everything, or may.
    pub(super) fn stop(&self) -> Option<String> {
        let (Verdict::Refused(why), Some(at)) = (&self.verdict, self.stops_at) else { return None };
        Some(format!("it would stop at question {at} of at most {}: {why}", self.forecast.most))
    }
}

/// `spent` is what was given away before, on the data set and, as rho in 10^-9, under this plan.
pub(super) fn judged(
    federation: &Federation,
    policy: &Policy,
    rows: &dyn Answerer,
    (spent, of_plan): (&Spent, u64),
    rows_in_all: u64,
) -> Result<Judged, Failure> {
    let (work, terms, sites) = (&*federation.work, &*federation.terms, federation.roster.sites.len());
    let mut forecast = Forecast::of(work, terms, policy, sites)?;
    let own = (rows.rows(), rows.possible_rows(&federation.work.widths()));
    let known = own.0.max(terms.min_total_rows).max(rows_in_all);
    let mut verdict = forecast.verdict((work, terms, sites), policy, spent, own, known);
    let mut stops_at = forecast.stops_at((work, terms, sites), policy, spent, own, known);
    if let (Some(rho), 1..) = (forecast.total().nano_rho, of_plan) {
        let plan = (terms, &SumBounds::of(work, terms, sites)?, sites);
        if let Err(e) = check_promise(plan, policy, rho, of_plan) {
            (verdict, stops_at) = (Verdict::Refused(e.to_string()), Some(1));
        }
    }
    let asked = Asked { federation: federation.clone(), policy: policy.clone(), spent: *spent, own, known };
    Ok(Judged { forecast, verdict, stops_at, asked })
}

fn check(args: &CheckArgs, json: bool) -> Result<(), Failure> {
    let federation = documents::load_federation(&args.roster, &args.plan)?;
    let (site, path) = policy_of(args.policy.policy.as_deref(), args.policy.key.as_deref())?;
    let from = site.rows_from(args.data.as_deref(), path.as_deref(), args.policy.key.as_deref())?;
    let reading = documents::reading_of(&federation, &from)?;
    let (rows, origin) = documents::load_rows_and_origin(&federation, &from)?;
    let (spent, of_plan) = match &args.policy.key {
        None => (Spent::default(), 0),
        Some(key) => {
            let (identity, _) = load_identity(key)?;
            let state = state_of(key, args.state.as_ref());
            let account = Ledger::look(&state, &head_of(key), &identity)?;
            let known = account.recognises(&origin, &identity)?;
            if !matches!(known, Known::Same(_)) {
                return Err(known.refusal());
            }
            (account.spent(&Hash::default(), None, None), account.rho_of(&federation.terms.hash()))
        }
    };
    let judged = judged(&federation, &site.policy, &*rows, (&spent, of_plan), args.rows_in_all.unwrap_or(0))?;
    let forecast = &judged.forecast;
    let total = forecast.total();
    let from = path.map_or("the strict default".to_owned(), |path| path.display().to_string());
    let mut text = format!("{}policy     {from}\ndata set   {}\n", words::columns(&reading), site.data);
    let mut numbers = Vec::new();
    for (name, most, cost) in &forecast.parts {
        text += &format!("{name:<18} {most:>5} questions, {:>8} numbers\n", cost.scalars);
        numbers.push([(*name).to_owned(), most.to_string(), cost.scalars.to_string()]);
    }
    text += &match total.nano_rho {
        None => format!("{:<18} {:>5}            {:>8} numbers at most\n", "together", "", total.scalars),
        Some(rho) => {
            let epsilon = dp::epsilon(rho, site.delta);
            format!("together           with noise: epsilon {epsilon:.4} at delta {} at most\n", site.delta)
        }
    };
    let smooth = forecast.smooth;
    if smooth.instead.0 > 0 && total.nano_rho.is_none() {
        let from = if forecast.estimated { "estimated by a trial run on generated rows" } else { "an upper bound" };
        text += &format!(
            "{:<18} {:>5}            {:>8} of the {} numbers of smooth questions: {from}\n",
            "effective rank", "", smooth.rank, smooth.instead.0
        );
    }
    let mut value = json!({
        "smooth": { "scalars": smooth.instead.0, "rank": smooth.rank, "rank_milli_bits": smooth.milli_bits,
            "estimated": forecast.estimated },
        "policy": from, "data": site.data, "scalars": total.scalars, "milli_bits": total.milli_bits, "nano_rho": total.nano_rho,
        "spent": { "scalars": spent.scalars, "milli_bits": spent.milli_bits, "nano_rho": spent.nano_rho },
    });
    let Answer { yes, sentence, next, .. } = judged.answer();
    if let Some(room) =
        judged.room().filter(|_| site.policy.release.rule != Enforcement::Off && total.nano_rho.is_none())
    {
        value["room"] = json!({ "scalars": room.scalars, "milli_bits": room.milli_bits });
    }
    if let Verdict::AnswersIf { rows, .. } = &judged.verdict {
        value["rows_needed"] = json!(rows);
    }
    let cost = Cost::of(&federation)?;
    value["columns_used"] = json!(reading.used);
    value["columns_unread"] = json!(reading.ignored);
    value["label_kept"] = json!(reading.kept);
    let totals = words::totals_at(&federation, &cost, &site.policy);
    value["totals_tell"] = json!(totals);
    text += &format!("\n{}", words::totals(&totals));
    let mut page = Page::new("Whether this site answers a plan");
    page.says(&sentence);
    if !yes {
        page.paragraph(&format!("What to do: {next}."));
    }
    page.part("Columns");
    page.table(&["columns", "names"], words::columns_of(&reading).map(|(what, names)| [what.to_owned(), names]));
    page.part("What totals can tell").list(totals);
    page.part("What this site would give away").table(&["question", "times at most", "numbers at most"], numbers);
    let together = match total.nano_rho {
        None => format!("{} numbers at most", total.scalars),
        Some(rho) => format!("with noise: epsilon {:.4} at delta {} at most", dp::epsilon(rho, site.delta), site.delta),
    };
    let room = judged.room().filter(|_| site.policy.release.rule == Enforcement::Enforce && total.nano_rho.is_none());
    page.table(
        &["of this plan", "as it is"],
        [
            ["together".to_owned(), together],
            [
                "numbers of smooth questions, and what they tell".to_owned(),
                format!("{}, as much as {}", smooth.instead.0, smooth.rank),
            ],
            ["given away before".to_owned(), format!("{} numbers in {} answers", spent.scalars, spent.questions)],
            [
                "what the release rule allows".to_owned(),
                room.map_or("not the limit here".to_owned(), |room| format!("{} numbers", room.scalars)),
            ],
        ],
    );
    page.part("What this site demands for itself").table(&["key", "value", "meaning"], site.meanings());
    page::write(&page, args.print.html.as_deref())?;
    (value["answers"], value["stops_at"], value["says"]) = (json!(yes), json!(judged.stops_at), json!(sentence));
    if yes {
        return crate::verb::print(json, &value, &format!("{sentence}\n\n{text}"));
    }
    // The sentence stands once: in the error, which ends the command.
    if !json {
        crate::verb::print(false, &value, &text)?;
    }
    Err(Failure::new(Code::Policy, sentence, next))
}
