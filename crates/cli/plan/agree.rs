//! `veilsum plan agree`: a site's operator agrees to the exact totals of one plan ([POL-9]), after reading what it asks.

use std::{
    io::{self, BufRead, Write},
    path::PathBuf,
    sync::Arc,
};

use clap::Args;
use serde_json::json;
use veilsum_proto::{ledger::Note, policy::rho_text, roster::PartyId, suite::Hash};

use super::say::{self, ReadArgs};
use crate::{
    party::{key_beside, own_identity, state_of},
    terminal::{somebody_is_there, typed},
    words,
};
use veilsum_node::{
    cost::Cost,
    documents::{self, Federation, Fingerprint, fingerprint, policy_of},
    dp::Privacy,
    error::Failure,
    release::{Account, Data, Left, may_agree},
    store::Ledger,
};

/// `veilsum plan agree`
#[derive(Args, Debug)]
pub(crate) struct AgreeArgs {
    /// Which plan.
    #[command(flatten)]
    pub of: ReadArgs,
    /// This site's secret key file [default: the only *.key file beside the roster]
    #[arg(long, value_name = "FILE.key")]
    pub key: Option<PathBuf>,
    /// Folder of this site's ledger [default: beside the key]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// The policy [default: site.toml beside the key, else the default]
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// The plan's fingerprint, of which you have read what it asks [default: asked for on a terminal]
    #[arg(long, value_name = "WORDS", value_parser = Fingerprint::parse)]
    pub fingerprint: Option<Fingerprint>,
}

/// Shows what the plan asks and what may follow from it, and notes the agreement in the ledger.
///
/// # Errors
/// A [`Failure`] if the plan may not be agreed to, the fingerprint is another's, or a run is going on.
pub(super) fn agree(args: &AgreeArgs, json: bool) -> Result<(), Failure> {
    let federation = documents::load_federation(&args.of.roster, &args.of.plan)?;
    let key = key_beside(args.key.as_ref(), &args.of.roster)?;
    let state = state_of(&key, args.state.as_ref())?;
    let (identity, name) = own_identity(&key, &state)?;
    if !matches!(federation.whoami(&identity)?, PartyId::Site(_)) {
        return Err(Failure::input(
            format!("{name} is no site: only a site's operator agrees to exact totals"),
            "name the key of the site with --key",
        ));
    }
    let (site, _) = policy_of(args.policy.as_deref(), Some(&key))?;
    let account = Ledger::look(&state, &identity.public())?;
    may_agree(&federation, &site.policy, &account)?;
    let plan = federation.terms.hash();
    let asked = screen(&federation, &account)?;
    if !json {
        crate::say!("{asked}");
    }
    let typed = match &args.fingerprint {
        Some(given) => given.clone(),
        None if somebody_is_there() => ask(&mut io::stdin().lock(), &mut io::stderr())?,
        None => {
            return Err(Failure::usage(
                "nobody sits at a terminal to agree",
                "read what the plan asks (`veilsum plan check`), and give its fingerprint with --fingerprint",
            ));
        }
    };
    if !typed.is_of(&plan) {
        return Err(Failure::input("this is another plan's fingerprint; nothing was agreed to", "read the plan again"));
    }
    if !account.has_agreed(&plan) {
        let data = Data { name: site.data.clone(), rows: Hash::default() };
        let mut ledger = Ledger::open(&state, Arc::new(identity), data, plan)?;
        ledger.note(Note::Agreed, &Left { plan, ..Left::default() }, Hash::default())?;
    }
    let says = format!(
        "{name} answers the plan {} with exact totals, from its rows as they are. If they change, the agreement ends.",
        fingerprint(&plan.0)
    );
    crate::verb::print(json, &json!({ "agreed": true, "plan": plan.to_string(), "says": says }), &says)
}

/// What the plan asks and what may follow, for whoever has to agree to it.
fn screen(federation: &Federation, account: &Account) -> Result<String, Failure> {
    let cost = Cost::of(federation)?;
    let privacy = Privacy::of(&federation.work, &federation.form()?);
    let mut text = say::to_text(federation, &cost, privacy.as_ref());
    text += &format!("\n{}\n", words::totals(&words::totals_tell(federation, &cost)));
    let spent = account.spent();
    if spent.nano_rho > 0 {
        text += &format!(
            "Plans with noise were answered from these rows before (rho {}). Their noise is undone by exact totals of the same rows: no \
             bound holds any more.\n",
            rho_text(spent.nano_rho)
        );
    }
    Ok(
        text + "After exact totals no bound holds for these rows. Once they change, this site answers plans with noise only."
    )
}

fn ask(from: &mut impl BufRead, to: &mut impl Write) -> Result<Fingerprint, Failure> {
    let line = typed("To agree to exact totals of this plan, type the 15 words of its fingerprint: ", from, to)?;
    Fingerprint::parse(&line).map_err(|why| Failure::input(why, "type all words as they stand above"))
}

#[cfg(test)]
mod tests {
    use veilsum_node::documents::roster_fingerprint;

    use super::*;

    /// [POL-9]: a yes is no agreement; the words of the plan that was read are.
    #[test]
    fn a_yes_is_no_agreement() {
        for line in ["y\n", "yes\n", "\n", "", "1234\n"] {
            assert!(ask(&mut line.as_bytes(), &mut Vec::new()).is_err(), "{line:?}");
        }
        let words = roster_fingerprint(&Hash([8; 32])) + "\n";
        let typed = ask(&mut words.as_bytes(), &mut Vec::new()).unwrap();
        assert!(!typed.is_of(&Hash([7; 32])));
    }
}
