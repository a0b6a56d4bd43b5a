//! `veilsum agree`: a party's operator agrees to a roster ([ROS-8], [ROS-9], [POL-10]), a site's to a plan ([POL-9], [POL-10]) or to a higher
//! cap of its account ([POL-8]), after reading what it asks, what it costs, and what can be subtracted from what.

use std::{
    io::{self, BufRead, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use serde_json::json;
use veilsum_node::{
    cost::{Cost, counted, some_of},
    documents::{
        self, Changes, Federation, Fingerprint, Offered, SitePolicy, Standing, fingerprint, load_identity, load_roster,
        policy_of, roster_fingerprint, whole_rho,
    },
    door::{Account, Bound, Data, Ledger, Needs, Table, Verdict, cap_of, judge, ledger, needs},
    dp,
    error::Failure,
    files::{self, quoted},
    refusal::{self, rho_text},
};
use veilsum_proto::roster::PartyId;

use crate::{
    party::{Own, accept, key_beside, own_identity, state_of},
    plan::to_text,
    roster::{few, to_json},
    run::standby::alone,
    terminal::{ask, somebody_is_there, typed},
    verb::Verb,
    verify::{document, is_roster},
    words::{self, fingerprint_line},
};

/// Agree to a roster, or for a site to a plan that waits for it, or to a higher cap of its account
///
/// A roster: the first one of a federation, or another than before. In a call with the operators of all parties the coordinator's reads
/// the roster's 15 words, and everybody compares them. A site then answers plans over these sites.
///
/// A plan: it shows what the plan asks, what it costs, and what can be subtracted from what.
///
/// A cap (--cap): it shows what all plans ever may then tell of a row or a person.
#[derive(Args, Debug)]
pub(crate) struct AgreeArgs {
    /// The roster or the plan
    #[arg(value_name = "ROSTER|PLAN", default_value = "roster.toml")]
    pub file: PathBuf,
    /// Raise what all plans with noise may ever spend to twice this rho, for the life of the account; `rho` in site.toml lowers it
    #[arg(long, value_name = "RHO", conflicts_with = "file", value_parser = whole_rho)]
    pub cap: Option<u64>,
    /// The roster of a plan [default: roster.toml beside the plan]
    #[arg(long, value_name = "FILE")]
    pub roster: Option<PathBuf>,
    /// What is this party's own.
    #[command(flatten)]
    pub own: Own,
    /// The 15 words of what is agreed to: a roster's as they were read to you [default: asked for on a terminal]
    #[arg(long, value_name = "WORDS", value_parser = Fingerprint::parse)]
    pub fingerprint: Option<Fingerprint>,
}

/// Bytes of a roster or a plan.
const MAX_FILE: usize = 8 << 20;

impl Verb for AgreeArgs {
    /// Shows what is agreed to, asks for its words, and keeps the agreement.
    ///
    /// # Errors
    /// A [`Failure`] where it cannot be agreed to, or the words are another's.
    fn run(&self, json: bool) -> Result<(), Failure> {
        if let Some(nano_rho) = self.cap {
            return self.cap(nano_rho, json);
        }
        if is_roster(&files::read_limited(&self.file, MAX_FILE)?) { self.roster(json) } else { self.plan(json) }
    }
}

impl AgreeArgs {
    /// Shows what is another than before, asks for the words, and keeps the roster.
    fn roster(&self, json: bool) -> Result<(), Failure> {
        let roster = load_roster(&self.file)?;
        let key = key_beside(self.own.key.as_ref(), &self.file)?;
        let (identity, _) = load_identity(&key)?;
        let offered = Offered { file: &self.file, roster: &roster, key: &key, identity: &identity };
        let who = offered.whoami()?;
        let (changes, meaning) = match offered.standing()? {
            Standing::Changed(from) => (Changes::between(&from, &roster).0, Changes::meaning(&from, &roster)),
            Standing::New | Standing::Agreed => (Vec::new(), Vec::new()),
        };
        if !json && !changes.is_empty() {
            // Before the question: it is about them.
            let (name, all) = (&roster.name, meaning.join("\n  "));
            crate::tell!(
                "another than the last roster of {name} that was agreed to:\n  {}\nwhat it means:\n  {all}",
                some_of(&changes, "\n  ")
            );
        }
        let heard = self.fingerprint.clone().map_or_else(|| ask(&offered), Ok)?;
        accept(&offered, &heard, self.own.state.as_ref())?;
        let value = json!({ "agreed": roster.name, "hash": roster.hash().to_string(),
            "fingerprint": roster_fingerprint(&roster.hash()), "changes": changes, "meaning": meaning, "roster": to_json(&roster) });
        let (fingerprint_line, few) = (fingerprint_line(&roster), few(&roster, &self.file));
        let text = format!("agreed to {} with {} sites\n{fingerprint_line}\n{few}", roster.name, roster.sites.len());
        let next = if who == PartyId::Coordinator { None } else { self.next(who, &key)? };
        crate::verb::print(json, &value, &format!("{}{}", text.trim_end(), next.unwrap_or_default()))
    }

    /// What a party types next that has agreed to a roster; nothing if it stands by already.
    fn next(&self, who: PartyId, key: &Path) -> Result<Option<String>, Failure> {
        if alone(key).is_err() {
            return Ok(None);
        }
        let (site, _) = policy_of(self.own.policy.as_deref(), Some(key))?;
        let named = who == PartyId::Intermediary || site.rows.source.is_some();
        let run = if named { "veilsum run" } else { "veilsum run --data ROWS.csv" };
        let folder = self.file.parent().filter(|folder| !["", "."].contains(&folder.to_str().unwrap_or("?")));
        let there = folder.map(|folder| format!("cd {} && ", quoted(folder)));
        Ok(Some(format!("\nnext: {}{run}", there.unwrap_or_default())))
    }

    /// Says what a higher cap means, asks once, and notes it in the account ([POL-8]).
    fn cap(&self, nano_rho: u64, json: bool) -> Result<(), Failure> {
        let key = key_beside(self.own.key.as_ref(), &self.file)?;
        let state = state_of(&key, self.own.state.as_ref())?;
        let (identity, name) = own_identity(&key, &state)?;
        let (site, _) = policy_of(self.own.policy.as_deref(), Some(&key))?;
        let before = ledger::look(&state, &identity.public())?.bound();
        let raised = Bound { nano_rho, ..before };
        if raised.nano_rho <= before.nano_rho {
            let [cap, rho] = [before.cap(), before.nano_rho].map(rho_text);
            let what = format!("the cap of this account is {cap} already (rho = {rho})");
            return Err(Failure::usage(what, "name a higher one; `rho` in site.toml lowers it"));
        }
        crate::tell!("{}", dp::ever(site.policy.unit, raised.cap()));
        let [from, to] = [before.cap(), raised.cap()].map(rho_text);
        crate::tell!(
            "The cap of this account rises from {from} to {to} in rho of this site's own noise, which is twice rho as a plan says it."
        );
        let question = "To raise the cap for the life of the account, type it once more: ";
        let line = typed(question, &mut io::stdin().lock(), &mut io::stderr())?;
        if whole_rho(line.trim()) != Ok(nano_rho) {
            return Err(Failure::input("this is another number; nothing was agreed to", "read what it means again"));
        }
        let mut ledger = Ledger::open(&state, Arc::new(identity), Data::unread(&site.data), None)?;
        if ledger.account().bound() != before {
            return Err(meanwhile());
        }
        ledger.bind(raised)?;
        let says = format!("{name} spends {} in rho at most over all plans with noise.", rho_text(raised.cap()));
        crate::verb::print(json, &json!({ "agreed": true, "nano_rho_cap": raised.cap(), "says": says }), &says)
    }

    /// Shows what the plan asks and what may follow from it, asks for its words, and notes the agreement in the account.
    fn plan(&self, json: bool) -> Result<(), Failure> {
        let roster = document(self.roster.as_ref(), &self.file, "roster.toml");
        let federation = documents::load_federation(&roster, &self.file)?;
        let key = key_beside(self.own.key.as_ref(), &roster)?;
        let state = state_of(&key, self.own.state.as_ref())?;
        let (identity, name) = own_identity(&key, &state)?;
        if !matches!(federation.whoami(&identity)?, PartyId::Site(_)) {
            let next = "name the key of the site with --key";
            return Err(Failure::input(format!("{name} is no site: only a site's operator agrees to a plan"), next));
        }
        let (site, file) = policy_of(self.own.policy.as_deref(), Some(&key))?;
        let identity = Arc::new(identity);
        self.own.shares(&site, &identity, &state)?;
        let (account, facts) = (ledger::look(&state, &identity.public())?, federation.facts());
        if let Verdict::No(why) = judge(&facts, &site.policy, &account, None) {
            return Err(why.into());
        }
        let named = self.own.handed.is_some() || self.own.data.is_some() || site.rows.source.is_some();
        let data = if federation.work.recipe.noise.is_some() || !named {
            Data::unread(&site.data)
        } else {
            let from = self.own.rows(&site, file.as_deref(), Some(&key))?;
            let loaded = documents::load_rows(&federation, &from)?;
            Data::of(&site.data, &identity, loaded.rows.rows(), &loaded.rows.digest())
        };
        let (plan, asks) = (facts.plan, needs(&facts, &site.policy, &account, data.table.as_ref()));
        if asks.is_empty() {
            let says =
                format!("{name} answers the plan {}: nothing in it waits for an agreement", fingerprint(&plan.0));
            return crate::verb::print(json, &json!({ "agreed": true, "plan": plan.to_string(), "says": says }), &says);
        }
        let shown = screen(&federation, &site, &account, (&asks, data.table.as_ref()))?;
        if !json {
            crate::say!("{shown}");
        }
        let typed = match &self.fingerprint {
            Some(given) => given.clone(),
            None if somebody_is_there() => ask_there(&mut io::stdin().lock(), &mut io::stderr())?,
            None => {
                let next =
                    "read what the plan asks (`veilsum plan check`), and give its fingerprint with --fingerprint";
                return Err(Failure::usage("nobody sits at a terminal to agree", next));
            }
        };
        if !typed.is_of(&plan) {
            let next = "read the plan again";
            return Err(Failure::input("this is another plan's fingerprint; nothing was agreed to", next));
        }
        let mut ledger = Ledger::open(&state, identity, data, Some(plan))?;
        if needs(&facts, &site.policy, ledger.account(), ledger.data().table.as_ref()) != asks {
            return Err(meanwhile());
        }
        ledger.agree(&facts, &site.policy)??;
        let says = format!("{name} answers the plan {}.", fingerprint(&plan.0));
        let value = json!({ "agreed": true, "plan": plan.to_string(), "needs": asks, "says": says });
        crate::verb::print(json, &value, &says)
    }
}

fn meanwhile() -> Failure {
    let next = "give the same command again, and read it anew";
    Failure::input("the account changed while you read; nothing was agreed to", next)
}

/// What the plan asks and what may follow, for whoever has to agree to it.
fn screen(
    federation: &Federation,
    site: &SitePolicy,
    account: &Account,
    (asks, now): (&[Needs], Option<&Table>),
) -> Result<String, Failure> {
    let cost = Cost::of(federation)?;
    let mut text = to_text(federation, &cost);
    text += &format!("\n{}\nWhy this plan waits for you\n", words::totals(&words::totals_tell(federation, &cost)));
    asks.iter().for_each(|needs| text += &format!("  {}\n", refusal::needed(needs)));
    text += "\nWhat it costs, and what can be subtracted from what\n";
    let (spent, cap) = (account.spent(), cap_of(&site.policy, account)?);
    let lines = if federation.work.recipe.noise.is_some() {
        let begun = account.committed(None).saturating_sub(spent.nano_rho);
        let mut lines = vec![format!("  rho {} was spent of {} before.", rho_text(spent.nano_rho), rho_text(cap))];
        if begun > 0 {
            lines.push(format!("  rho {} more may be spent by runs that have begun.", rho_text(begun)));
        }
        let others =
            "  Whoever left before you, or comes later, can be computed up to noise; those who left are not asked.";
        lines.push(others.to_owned());
        lines
    } else {
        exact_lines(account, now, federation.work.sampling.is_some())
    };
    Ok(text + &lines.join("\n"))
}

/// What follows from exact totals of this table.
fn exact_lines(account: &Account, now: Option<&Table>, samples: bool) -> Vec<String> {
    let table =
        |table: &Table| format!("{}, digest {}", counted(table.rows as usize, "row"), fingerprint(&table.digest.0));
    let mut lines = vec!["  After exact totals no bound holds for these rows.".to_owned()];
    let nano_rho = account.spent().nano_rho;
    if nano_rho > 0 {
        let spent = rho_text(nano_rho);
        lines.push(format!(
            "  Plans with noise were answered before (rho {spent}). Exact totals of the same rows undo their noise.\n  \
             This account then answers no plan with noise any more."
        ));
    }
    for (plan, before) in account.tables() {
        lines.push(format!("  Exact totals left before of {} (plan {}).", table(before), fingerprint(&plan.0)));
    }
    lines.push(match now {
        Some(now) => format!("  Your table has {} now.", table(now)),
        None => {
            "  Your rows were not read (--data): you agree to the table from which this plan is answered first.".into()
        }
    });
    if account.tables().iter().any(|(_, before)| Some(before) != now) {
        lines.push("  What came or went since can be computed; if it is one row, that row.".into());
    }
    if samples {
        lines.push("  Each round asks other sites (sample): single sites' sums can be solved for.".into());
    }
    lines.push("  Whoever left before you, or comes later, can be computed; those who left are not asked.".into());
    lines
}

fn ask_there(from: &mut impl BufRead, to: &mut impl Write) -> Result<Fingerprint, Failure> {
    let line = typed("To agree to this plan, type the 15 words of its fingerprint: ", from, to)?;
    Fingerprint::parse(&line).map_err(|why| Failure::input(why, "type all words as they stand above"))
}

#[cfg(test)]
mod tests {
    use veilsum_node::documents::roster_fingerprint;
    use veilsum_proto::suite::Hash;

    use super::*;

    /// [POL-9]: a yes is no agreement; the words of the plan that was read are.
    #[test]
    fn a_yes_is_no_agreement() {
        for line in ["y\n", "yes\n", "\n", "", "1234\n"] {
            assert!(ask_there(&mut line.as_bytes(), &mut Vec::new()).is_err(), "{line:?}");
        }
        let words = roster_fingerprint(&Hash([8; 32])) + "\n";
        let typed = ask_there(&mut words.as_bytes(), &mut Vec::new()).unwrap();
        assert!(!typed.is_of(&Hash([7; 32])));
    }
}
