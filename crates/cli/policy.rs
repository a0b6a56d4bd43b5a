//! `veilsum policy`: what a site demands for itself, and whether it would answer a plan.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;
use veilsum_proto::{
    Error, Rule,
    policy::{Policy, rho_text},
};

use crate::{
    page::{self, Page, Print},
    party::{head_of, state_of},
    verb::Verb,
    words,
};
use veilsum_node::{
    clock::seconds_since_1970,
    cost::Cost,
    documents::{self, Federation, PlanAnswer, load_identity, policy_of},
    dp,
    error::{Code, Failure},
    forecast::Forecast,
    release::{About, Account, Yes, judge},
    store::{Ledger, LedgerError, ledger::KEPT_FOR_A_PROPOSAL},
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
    /// Say whether this site answers the whole plan (exit code 0) or not (7): by its policy and its account, and by no row
    Check(Box<CheckArgs>),
}

/// Where a policy comes from.
#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// The policy [default: site.toml beside the key, else the default]
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
    /// This site's rows [default: `source` under [rows] in site.toml]
    ///
    /// The header alone is read, for which columns are used.
    #[arg(long, value_name = "ROWS")]
    pub data: Option<PathBuf>,
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
                let from = path.map_or("the default".to_owned(), |path| path.display().to_string());
                let text = format!("# {from}\n{}", site.to_text());
                crate::verb::print(json, &json!({ "from": from, "policy": site.to_json() }), &text)
            }
            PolicyCommand::Check(a) => check(a, json),
        }
    }
}

/// What a site's door says to a plan ([`judge`]).
pub(super) struct Judged {
    verdict: Result<Yes, Error>,
}

impl Judged {
    /// The same for the coordinator, before anything is asked ([PRO-2]).
    pub(super) fn proposal(&self) -> PlanAnswer {
        match &self.verdict {
            Ok(yes) => PlanAnswer::Would { runs: yes.runs },
            Err(refused) => PlanAnswer::refusal(refused),
        }
    }

    /// Whether the whole plan is answered.
    pub(super) fn is_yes(&self) -> bool {
        self.verdict.is_ok()
    }

    /// Yes or no in one sentence.
    pub(super) fn sentence(&self) -> String {
        match &self.verdict {
            Ok(Yes { nano_rho: None, .. }) => {
                "Yes: this site answers the whole plan, to whose exact totals its operator agreed.".to_owned()
            }
            Ok(Yes { nano_rho: Some(rho), left, runs }) => {
                let more = match runs.unwrap_or(0) {
                    0 => "No further plan like it fits.".to_owned(),
                    1 => "1 more plan like it fits.".to_owned(),
                    more => format!("{more} more plans like it fit."),
                };
                format!(
                    "Yes: this site answers the whole plan. It spends rho {} at most, and leaves {} in the account. {more}",
                    rho_text(*rho),
                    rho_text(*left)
                )
            }
            Err(refused) => format!("No: this site does not answer this plan: {refused}"),
        }
    }

    /// What to do about a no.
    pub(super) fn next(&self) -> &'static str {
        match self.verdict.as_ref().err().and_then(Error::rule) {
            None => "",
            Some(Rule::Pol8) => {
                "ask for a plan that spends less; what is left of the account, `veilsum ledger budget` says"
            }
            Some(Rule::Pol9) => "ask for a plan with noise; what exact totals tell of rows, `veilsum plan check` says",
            Some(_) => "ask for a plan that this site's policy allows (`veilsum policy show`)",
        }
    }
}

/// What this policy and this account say to a plan.
pub(super) fn judged(federation: &Federation, policy: &Policy, account: &Account) -> Judged {
    let about = About { work: &federation.work, terms: &federation.terms, sites: federation.roster.sites.len() };
    Judged { verdict: judge(about, policy, account, seconds_since_1970()) }
}

/// The same, and a yes is kept in the ledger ([POL-8]).
///
/// # Errors
/// [`LedgerError`] where the ledger cannot be written.
pub(super) fn keep(ledger: &mut Ledger, federation: &Federation, policy: &Policy) -> Result<Judged, LedgerError> {
    let about = About { work: &federation.work, terms: &federation.terms, sites: federation.roster.sites.len() };
    let verdict = ledger.keep(about, policy, seconds_since_1970(), KEPT_FOR_A_PROPOSAL)?;
    Ok(Judged { verdict })
}

fn check(args: &CheckArgs, json: bool) -> Result<(), Failure> {
    let federation = documents::load_federation(&args.roster, &args.plan)?;
    let (site, path) = policy_of(args.policy.policy.as_deref(), args.policy.key.as_deref())?;
    // Which columns are used is of help, and not needed for an answer.
    let from = site.rows_from(args.data.as_deref(), path.as_deref(), args.policy.key.as_deref()).ok();
    let reading = from.map(|from| documents::reading_of(&federation, &from)).transpose()?;
    let account = match &args.policy.key {
        None => Account::default(),
        Some(key) => {
            let (identity, _) = load_identity(key)?;
            Ledger::look(&state_of(key, args.state.as_ref()), &head_of(key), &identity)?
        }
    };
    let judged = judged(&federation, &site.policy, &account);
    let forecast = Forecast::of(&federation.work, &federation.terms, &site.policy, federation.roster.sites.len())?;
    let (total, spent) = (forecast.total(), account.spent());
    let from = path.map_or("the default".to_owned(), |path| path.display().to_string());
    let mut text = reading.as_ref().map(words::columns).unwrap_or_default();
    text += &format!("policy     {from}\ndata set   {}\n", site.data);
    let mut numbers = Vec::new();
    for (name, most, cost) in &forecast.parts {
        text += &format!("{name:<18} {most:>5} questions, {:>8} numbers\n", cost.scalars);
        numbers.push([(*name).to_owned(), most.to_string(), cost.scalars.to_string()]);
    }
    let together = match total.nano_rho {
        None => format!("{} exact numbers at most", total.scalars),
        Some(rho) => dp::spends(rho),
    };
    text += &format!("together           {together}\n");
    if total.nano_rho.is_some() && site.policy.rows_per_person.is_some() {
        text += &format!("persons            {}\n", words::of_a_person(&site));
    }
    let cost = Cost::of(&federation)?;
    let totals = words::totals_tell(&federation, &cost);
    text += &format!("\n{}", words::totals(&totals));
    let sentence = judged.sentence();
    let mut page = Page::new("Whether this site answers a plan");
    page.says(&sentence);
    if !judged.is_yes() {
        page.paragraph(&format!("What to do: {}.", judged.next()));
    }
    if let Some(reading) = &reading {
        page.part("Columns");
        page.table(&["columns", "names"], words::columns_of(reading).map(|(what, names)| [what.to_owned(), names]));
    }
    page.part("What totals can tell").list(&totals);
    page.part("What this site would give away").table(&["question", "times at most", "numbers at most"], numbers);
    page.table(
        &["of this plan", "as it is"],
        [
            ["together".to_owned(), together],
            ["spent before".to_owned(), format!("rho {} in {} answers", rho_text(spent.nano_rho), spent.questions)],
            ["cap of the account".to_owned(), format!("rho {}", rho_text(site.policy.nano_rho))],
        ],
    );
    page.part("What this site demands for itself").table(&["key", "value", "meaning"], site.meanings());
    page::write(&page, args.print.html.as_deref())?;
    let yes = judged.verdict.as_ref().ok();
    let value = json!({
        "answers": judged.is_yes(), "says": sentence, "policy": from, "data": site.data, "scalars": total.scalars,
        "nano_rho": yes.and_then(|yes| yes.nano_rho).or(total.nano_rho), "nano_rho_left": yes.map(|yes| yes.left),
        "spent": { "scalars": spent.scalars, "nano_rho": spent.nano_rho }, "totals_tell": totals,
        "rule": judged.verdict.as_ref().err().and_then(Error::rule),
        "columns_used": reading.as_ref().map(|reading| &reading.used),
        "columns_unread": reading.as_ref().map(|reading| &reading.ignored),
        "label_kept": reading.as_ref().map(|reading| &reading.kept),
    });
    if judged.is_yes() {
        return crate::verb::print(json, &value, &format!("{sentence}\n\n{text}"));
    }
    // The sentence stands once: in the error, which ends the command.
    if !json {
        crate::verb::print(false, &value, &text)?;
    }
    Err(Failure::new(Code::Policy, sentence, judged.next()))
}
