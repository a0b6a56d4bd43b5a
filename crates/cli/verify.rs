//! `veilsum verify`: what signatures say of a file that a run, a member or a site left, without a network. What the file is, it says itself.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
};

use clap::Args;
use serde_json::{Value, json};
use veilsum_node::{
    agreed::Federation,
    bundle::{self, Bundle, check_model},
    cost::counted,
    documents::{self, fingerprint, roster_fingerprint},
    error::{Code, Failure},
    evidence, files, report,
    signed::{self, About, Checked},
    store::ledger,
};
use veilsum_proto::{
    identity::{PublicKey, from_hex},
    suite::Hash,
};

use crate::{
    roster,
    verb::{Verb, listed},
};

/// Check the signatures in any signed file, without a network
///
/// Exit code 3: something was changed, is not signed as it must be, or proves nothing.
#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// What a run, a coordinator or a site wrote
    ///
    /// A result.json, a model.json beside its result.json, a bundle, a roster, evidence of a broken rule, or a ledger with --key.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The federation's roster [default: roster.toml beside FILE, else here]
    #[arg(long, value_name = "FILE")]
    pub roster: Option<PathBuf>,
    /// The plan [default: plan.toml beside FILE, else here]
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// The public key of a ledger's owner, 64 hexadecimal digits, as `verify roster.toml --json` prints it
    #[arg(long, value_name = "HEX", value_parser = PublicKey::from_str)]
    pub key: Option<PublicKey>,
    /// The link of an entry that must be in the ledger, as this command or `ledger show` printed it before
    #[arg(long, value_name = "HEX", value_parser = parse_link, requires = "key")]
    pub head: Option<Hash>,
}

fn parse_link(text: &str) -> Result<Hash, String> {
    let bytes = from_hex(text).and_then(|bytes| bytes.try_into().ok());
    bytes.map(Hash).ok_or_else(|| "it is not 64 hexadecimal digits".into())
}

/// What a file is.
enum Kind {
    Bundle,
    Model,
    Result,
    Evidence,
    Roster,
    Ledger,
    Other,
}

/// Whether this is the text of a roster, whatever else may be wrong with it.
fn is_roster(bytes: &[u8]) -> bool {
    bytes.windows(16).any(|part| part == b"\"veilsum-roster/")
}

impl Kind {
    fn of(bytes: &[u8]) -> Kind {
        if bundle::is_bundle(bytes) {
            return Kind::Bundle;
        }
        let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let has_link = |entry: &Value| entry.get("previous").is_some();
        if serde_json::from_slice::<Value>(first).is_ok_and(|entry| has_link(&entry)) {
            return Kind::Ledger;
        }
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
            let json = bytes.trim_ascii_start().first() == Some(&b'{');
            return if json {
                Kind::Result
            } else if is_roster(bytes) {
                Kind::Roster
            } else {
                Kind::Other
            };
        };
        match value.get("format").and_then(Value::as_str).and_then(|format| format.split('/').next()) {
            Some("veilsum-model") => Kind::Model,
            Some("veilsum-evidence") => Kind::Evidence,
            _ => Kind::Result,
        }
    }
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
    fn found(&self, kind: &Kind, bytes: &[u8]) -> Result<Found, Failure> {
        let named = |file: &Path| {
            let file = file.display().to_string();
            move |failure: Failure| Failure { message: format!("{file}: {}", failure.message), ..failure }
        };
        if matches!(kind, Kind::Bundle) {
            let found = Bundle::from_bytes(bytes).and_then(|bundle| bundle.verify()).map_err(named(&self.file))?;
            self.agrees_with(&found.federation)?;
            let recomputed = Some((found.totals, found.result));
            return Ok(Found { federation: found.federation, checked: found.checked, recomputed });
        }
        let is_model = matches!(kind, Kind::Model);
        let result = if is_model { report::beside(&self.file) } else { self.file.clone() };
        let federation = self.federation(&result)?;
        let text = if is_model { files::read_limited(&result, signed::MAX_FILE)? } else { bytes.to_vec() };
        let about = About { roster: &federation.roster, terms: &federation.terms };
        let checked = about.check(&text).map_err(named(&result))?;
        if is_model {
            check_model(&checked, bytes).map_err(named(&self.file))?;
        }
        Ok(Found { federation, checked, recomputed: None })
    }

    fn federation(&self, file: &Path) -> Result<Federation, Failure> {
        let [roster, plan] = documents_of([self.roster.as_ref(), self.plan.as_ref()], file)?;
        documents::load_federation(roster, plan)
    }

    /// Who broke which rule ([EVD-1], [EVD-2]).
    fn evidence(&self, json: bool) -> Result<(), Failure> {
        let federation = self.federation(&self.file)?;
        let finding = evidence::verify(&self.file, &federation)?;
        // The two may lie beside the file, and come from the same hand.
        let roster = roster_fingerprint(&federation.roster.hash());
        let plan = fingerprint(&federation.terms.hash().0);
        let value = json!({ "proven": true, "culprit": finding.culprit, "rule": finding.rule, "what": finding.what,
            "roster": roster, "plan": plan });
        let text = format!(
            "proven: {} {} [{}]\nIts own signatures show it; nothing else in the file was taken on trust.\n\
             roster: {roster}\nplan: {plan}\n(compare both with what you know from elsewhere)",
            finding.culprit, finding.what, finding.rule
        );
        crate::verb::print(json, &value, &text)
    }

    /// Whether a ledger is whole, or which entry is at fault.
    fn ledger(&self, key: PublicKey, json: bool) -> Result<(), Failure> {
        let checked = ledger::check(&self.file, key, self.head)?;
        let value = json!({ "whole": true, "entries": checked.head.entries, "link": checked.head.link.to_string() });
        let mut text = format!(
            "{}: {} entries, each signed by {} and following from the one before\nlink of the last one: {}",
            self.file.display(),
            checked.head.entries,
            fingerprint(&key.0),
            checked.head.link
        );
        if self.head.is_none() {
            text +=
                "\nWhether entries at its end are missing shows only against a link that was noted before (--head).";
        }
        crate::verb::print(json, &value, &text)
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
    /// A [`Failure`] if anything was changed, proves nothing, or cannot be read.
    fn run(&self, json: bool) -> Result<(), Failure> {
        if let Some(key) = self.key {
            return self.ledger(key, json);
        }
        let bytes = files::read_limited(&self.file, bundle::MAX_FILE)?;
        let kind = Kind::of(&bytes);
        match kind {
            Kind::Bundle | Kind::Model | Kind::Result => {}
            Kind::Evidence => return self.evidence(json),
            Kind::Roster => return roster::verify(&self.file, json),
            Kind::Other => {
                let what =
                    format!("{}: this is no result, model, bundle, roster, evidence or ledger", self.file.display());
                let next = "name one of them; what a plan means, `veilsum plan check` says";
                return Err(Failure::new(Code::Input, what, next));
            }
            Kind::Ledger => {
                let what = format!("{}: a ledger is checked against its owner's public key", self.file.display());
                return Err(Failure::new(
                    Code::Usage,
                    what,
                    "give it: --key HEX, as `veilsum verify roster.toml --json` prints it",
                ));
            }
        }
        let found = self.found(&kind, &bytes)?;
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
            "roster: {}\nplan: {}\n(compare both with what you know from elsewhere)\nnot covered:\n",
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
