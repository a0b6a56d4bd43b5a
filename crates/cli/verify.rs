//! `veilsum verify`: who stands for a result, from signatures alone, without a network.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use veilsum_node::{
    agreed::Federation,
    bundle::{self, Bundle, check_model},
    cost::counted,
    documents::{self, fingerprint, roster_fingerprint},
    error::{Code, Failure},
    files, report,
    signed::{self, About, Checked},
};

use crate::verb::{Verb, listed};

/// Check the signatures on a result, a model or a bundle; no network is used
#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// A result.json, a model.json beside its result.json, or a bundle
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The federation's roster [default: roster.toml beside FILE, else here]
    #[arg(long, value_name = "FILE")]
    pub roster: Option<PathBuf>,
    /// The plan [default: plan.toml beside FILE, else here]
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
}

/// A document that was named, or the one beside a file, or the one here.
pub(crate) fn document(named: Option<&PathBuf>, file: &Path, name: &str) -> PathBuf {
    let beside = file.with_file_name(name);
    named.cloned().unwrap_or_else(|| if beside.exists() { beside } else { name.into() })
}

/// Roster and plan of the run that wrote a file: those that were named, those beside it, or those here.
///
/// # Errors
/// A [`Failure`] that says which of them is not there.
pub(crate) fn documents_of(named: [Option<&PathBuf>; 2], file: &Path) -> Result<[PathBuf; 2], Failure> {
    let paths = [document(named[0], file, "roster.toml"), document(named[1], file, "plan.toml")];
    for (what, path) in ["roster", "plan"].iter().zip(&paths) {
        if file.exists() && !path.exists() {
            let why = format!("the {what} of the run that wrote {} is not there ({})", file.display(), path.display());
            return Err(Failure::new(Code::Input, why, format!("name it: --{what} FILE")));
        }
    }
    Ok(paths)
}

/// What was checked, and how far.
struct Found {
    federation: Federation,
    checked: Checked,
    /// Of a bundle: totals that were recomputed, and whether the result was.
    recomputed: Option<(Option<u32>, bool)>,
}

impl VerifyArgs {
    fn found(&self) -> Result<Found, Failure> {
        let bytes = files::read_limited(&self.file, bundle::MAX_FILE)?;
        let named = |file: &Path| {
            let file = file.display().to_string();
            move |failure: Failure| Failure { message: format!("{file}: {}", failure.message), ..failure }
        };
        if bundle::is_bundle(&bytes) {
            let found = Bundle::from_bytes(&bytes).and_then(|bundle| bundle.verify()).map_err(named(&self.file))?;
            self.agrees_with(&found.federation)?;
            let recomputed = Some((found.totals, found.result));
            return Ok(Found { federation: found.federation, checked: found.checked, recomputed });
        }
        let is_model = serde_json::from_slice::<Value>(&bytes).is_ok_and(|value| {
            value.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("veilsum-model/"))
        });
        let result = if is_model { report::beside(&self.file) } else { self.file.clone() };
        let [roster, plan] = documents_of([self.roster.as_ref(), self.plan.as_ref()], &result)?;
        let federation = documents::load_federation(roster, plan)?;
        let text = if is_model { files::read_limited(&result, signed::MAX_FILE)? } else { bytes.clone() };
        let about = About { roster: &federation.roster, terms: &federation.terms };
        let checked = about.check(&text).map_err(named(&result))?;
        if is_model {
            check_model(&checked, &bytes).map_err(named(&self.file))?;
        }
        Ok(Found { federation, checked, recomputed: None })
    }

    /// A bundle has its own documents; those that were named are another's word for them.
    fn agrees_with(&self, federation: &Federation) -> Result<(), Failure> {
        let Some(roster) = &self.roster else { return Ok(()) };
        if documents::load_roster(roster)?.hash() == federation.roster.hash() {
            return Ok(());
        }
        let what = format!("{}: the bundle is of another roster than {}", self.file.display(), roster.display());
        Err(Failure::new(Code::Input, what, "ask which roster the run was under"))
    }
}

impl Verb for VerifyArgs {
    /// Says who stands for what.
    ///
    /// # Errors
    /// A [`Failure`] where anything was changed, or cannot be read.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let found = self.found()?;
        let Found { federation, checked, recomputed } = &found;
        let sites: Vec<String> = checked.sites.iter().map(|(name, _)| name.clone()).collect();
        let not_covered = not_covered(&found);
        let value = json!({
            "valid": true,
            "federation": federation.roster.name,
            "roster": roster_fingerprint(&federation.roster.hash()),
            "plan": fingerprint(&federation.terms.hash().0),
            "written_by": checked.written_by,
            "signed_by_coordinator": checked.coordinator,
            "countersigned": checked.sites.iter().map(|(name, ledger)| json!({ "site": name, "ledger": ledger })).collect::<Vec<_>>(),
            "not_countersigned": checked.silent,
            "writer_alone": checked.own,
            "totals_recomputed": recomputed.and_then(|(totals, _)| totals),
            "result_recomputed": recomputed.is_some_and(|(_, result)| result),
            "not_covered": not_covered,
        });
        let mut text = format!("{}: no byte was changed since {} wrote it\n", self.file.display(), checked.written_by);
        let coordinator = &federation.roster.coordinator.name;
        if checked.coordinator {
            text += &format!("signed by {coordinator}, the coordinator\n");
        }
        text += &match sites.is_empty() {
            true => "no site recomputed it\n".to_owned(),
            false => format!("recomputed and signed by {}\n", listed(&sites)),
        };
        if let Some((Some(totals), result)) = recomputed {
            let what = if *result { "and the result with its indices and weights" } else { "and its centres" };
            text += &format!(
                "recomputed here from what the sites signed: {}, {what}\n",
                counted(*totals as usize, "total")
            );
        }
        text += &format!(
            "roster {}, plan {} (compare both with what you know from elsewhere)\nnot covered:\n",
            roster_fingerprint(&federation.roster.hash()),
            fingerprint(&federation.terms.hash().0)
        );
        for line in &not_covered {
            text += &format!("  - {line}\n");
        }
        crate::verb::print(json, &value, &text)
    }
}

/// Sites of whom one at least is honest, where no more collude than the plan withstands: those that share a secret.
fn sites_needed(found: &Found) -> usize {
    let (terms, sites) = (&found.federation.terms, found.federation.roster.sites.len());
    terms.threshold_of(sites, sites).unwrap_or(sites)
}

/// What nobody's signature says ([RES-6]).
fn not_covered(found: &Found) -> Vec<String> {
    let Found { federation, checked, recomputed } = found;
    let mut out = Vec::new();
    if !checked.coordinator {
        out.push(format!("{}, the coordinator, did not sign it", federation.roster.coordinator.name));
    }
    let silent = listed(&checked.silent);
    let of_a_site = federation.roster.sites.iter().any(|site| site.name == checked.written_by);
    let asked = signed::is_recomputed(&federation.work);
    if !asked {
        out.push(
            "that the centres follow from the sites' answers: no site could recompute them, because the plan has the \
             intermediary judge"
                .into(),
        );
    } else if of_a_site && !checked.silent.is_empty() {
        out.push(format!("whether {silent} signed it, too: a site's own file does not say, the coordinator's does"));
    } else if !checked.silent.is_empty() {
        out.push(format!("did not sign it, though the centres are over them: {silent}"));
    }
    if !checked.own.is_empty() {
        out.push(format!("the word of {} alone: {}", checked.written_by, listed(&checked.own)));
    }
    match recomputed {
        None => out.push("the totals were not recomputed here: veilsum bundle packs what that takes".into()),
        Some((None, _)) => {
            let whose = "a site of the run has them and packs them with veilsum bundle";
            out.push(format!("the bundle has no openings: nothing was recomputed here; {whose}"));
        }
        Some((Some(_), false)) => {
            out.push("which of the judged centres were chosen, and their indices: the intermediary's word".into());
        }
        _ => {}
    }
    if matches!(recomputed, Some((Some(_), _))) && sites_needed(found) > checked.sites.len() {
        out.push(format!(
            "which masks were taken off the last total, which run this is, and why a run ended early: only sites can check these, and {} \
             signed, fewer than share a secret",
            counted(checked.sites.len(), "site")
        ));
    }
    out.push("whether the rows at the sites are true, and whether each site answered from them".into());
    out.push("when it was signed: signatures carry no time".into());
    out
}
