//! `veilsum verify`: what signatures say of a file that a run, a member or a site left, without a network. What the file is, it says itself.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use veilsum_node::{
    agreed::Federation,
    cost::counted,
    documents::{self, fingerprint, roster_fingerprint},
    door::ledger,
    error::{Code, Failure},
    files, model,
    recompute::{self, MAX_OPENINGS, Recomputed, check_model},
    report,
    signed::{self, About, Checked},
};
use veilsum_proto::{
    identity::{PublicKey, from_hex},
    suite::Hash,
};

use crate::{
    roster,
    verb::{Verb, listed},
};

/// Check the signatures in any signed file, or recompute a run from its folder, without a network
///
/// Exit code 3: something was changed, or is not signed as it must be.
#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// What a run, a coordinator or a site wrote
    ///
    /// A result.json, a model.json beside its result.json, a roster, or a ledger. Of a run's folder every total and centre is
    /// recomputed from its openings.bin.
    #[arg(value_name = "FILE|FOLDER")]
    pub file: PathBuf,
    /// The federation's roster [default: roster.toml beside the result, else here]
    #[arg(long, value_name = "FILE")]
    pub roster: Option<PathBuf>,
    /// The plan [default: plan.toml beside the result, else here]
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// The link of an entry that must be in the ledger, as this command or `ledger show` printed it before
    #[arg(long, value_name = "HEX", value_parser = parse_link)]
    pub head: Option<Hash>,
}

fn parse_link(text: &str) -> Result<Hash, String> {
    let bytes = from_hex(text).and_then(|bytes| bytes.try_into().ok());
    bytes.map(Hash).ok_or_else(|| "it is not 64 hexadecimal digits".into())
}

/// What a file is.
enum Kind {
    Model,
    Result,
    Roster,
    Ledger,
    Other,
}

/// Whether this is the text of a roster, whatever else may be wrong with it.
pub(crate) fn is_roster(bytes: &[u8]) -> bool {
    bytes.windows(16).any(|part| part == b"\"veilsum-roster/")
}

impl Kind {
    fn of(bytes: &[u8]) -> Kind {
        let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let has_link = |entry: &Value| entry.get("previous").is_some();
        if serde_json::from_slice::<Value>(first).is_ok_and(|entry| has_link(&entry)) {
            return Kind::Ledger;
        }
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
            return match bytes.trim_ascii_start().first() {
                Some(b'{') => Kind::Result,
                _ if is_roster(bytes) => Kind::Roster,
                _ => Kind::Other,
            };
        };
        match value.get("format").and_then(Value::as_str).and_then(|format| format.split('/').next()) {
            Some("veilsum-model") => Kind::Model,
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
    /// Of a folder with openings: what was recomputed.
    recomputed: Option<Recomputed>,
}

/// Says of which file something does not hold.
fn of_file(file: &Path) -> impl Fn(Failure) -> Failure {
    let file = file.display().to_string();
    move |failure| Failure { message: format!("{file}: {}", failure.message), ..failure }
}

impl VerifyArgs {
    /// A result of this text, and its model.
    fn both(&self, result: &Path, text: &[u8], model: &[u8]) -> Result<Found, Failure> {
        let found = self.checked(result, text)?;
        check_model(&found.checked, model).map_err(of_file(&self.file))?;
        Ok(found)
    }

    /// A run's folder.
    fn folder(&self) -> Result<Found, Failure> {
        let read = |name, limit| files::read_limited(self.file.join(name), limit);
        let (result, model) = (read("result.json", signed::MAX_FILE)?, read("model.json", model::MAX_FILE)?);
        let mut found = self.both(&self.file.join("result.json"), &result, &model)?;
        if self.file.join(report::OPENINGS).exists() {
            let openings = read(report::OPENINGS, MAX_OPENINGS)?;
            let recomputed = recompute::recompute(&found.federation, &found.checked, &model, &openings);
            found.recomputed = Some(recomputed.map_err(of_file(&self.file))?);
        }
        Ok(found)
    }

    fn checked(&self, result: &Path, text: &[u8]) -> Result<Found, Failure> {
        let federation = self.federation(result)?;
        let about = About { roster: &federation.roster, terms: &federation.terms };
        let checked = about.check(text).map_err(of_file(result))?;
        Ok(Found { federation, checked, recomputed: None })
    }

    fn federation(&self, file: &Path) -> Result<Federation, Failure> {
        let [roster, plan] = documents_of([self.roster.as_ref(), self.plan.as_ref()], file)?;
        documents::load_federation(roster, plan)
    }

    /// Whether a ledger is whole, or which entry is at fault.
    fn ledger(&self, json: bool) -> Result<(), Failure> {
        let checked = ledger::check(&self.file, self.head)?;
        let mut signers: Vec<PublicKey> = checked.entries.iter().map(|entry| entry.signer).collect();
        signers.dedup();
        let value = json!({ "whole": true, "entries": checked.head.entries, "link": checked.head.link.to_string(),
            "signers": signers.iter().map(ToString::to_string).collect::<Vec<_>>() });
        let (file, entries, link) = (self.file.display(), &checked.head.entries, &checked.head.link);
        let mut text = format!(
            "{file}: {entries} entries, each following from the one before\nsigned by the key {} (compare it with the roster)\nlink of the last one: {link}",
            signers.iter().map(|key| fingerprint(&key.0)).collect::<Vec<_>>().join(" and then ")
        );
        if self.head.is_none() {
            text +=
                "\nWhether entries at its end are missing shows only against a link that was noted before (--head).";
        }
        crate::verb::print(json, &value, &text)
    }
}

impl Verb for VerifyArgs {
    /// Says who stands for what.
    ///
    /// # Errors
    /// A [`Failure`] if anything was changed, proves nothing, or cannot be read.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let found = if self.file.is_dir() {
            self.folder()?
        } else {
            let bytes = files::read_limited(&self.file, signed::MAX_FILE.max(model::MAX_FILE))?;
            match Kind::of(&bytes) {
                Kind::Model => {
                    let result = report::beside(&self.file);
                    self.both(&result, &files::read_limited(&result, signed::MAX_FILE)?, &bytes)?
                }
                Kind::Result => self.checked(&self.file, &bytes)?,
                Kind::Roster => return roster::verify(&self.file, json),
                Kind::Other => {
                    let what =
                        format!("{}: this is no result, model, roster, ledger or folder of a run", self.file.display());
                    let next = "name one of them; what a plan means, `veilsum plan check` says";
                    return Err(Failure::new(Code::Input, what, next));
                }
                Kind::Ledger => return self.ledger(json),
            }
        };
        let Found { federation, checked, recomputed } = &found;
        let sites: Vec<String> = checked.sites.iter().map(|(name, _)| name.clone()).collect();
        let not_covered = not_covered(&found);
        let (roster, plan) = (roster_fingerprint(&federation.roster.hash()), fingerprint(&federation.terms.hash().0));
        let value = json!({
            "valid": true,
            "federation": federation.roster.name,
            "roster": roster,
            "plan": plan,
            "written_by": checked.written_by,
            "signed_by_coordinator": checked.coordinator,
            "countersigned": checked.sites.iter().map(|(name, ledger)| json!({ "site": name, "ledger": ledger })).collect::<Vec<_>>(),
            "not_countersigned": checked.silent,
            "writer_alone": checked.own,
            "totals_recomputed": recomputed.as_ref().map(|of| of.totals),
            "result_recomputed": recomputed.as_ref().is_some_and(|of| of.result),
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
        if let Some(Recomputed { totals, result }) = recomputed {
            let what = if *result { "and the result with its indices and weights" } else { "and its centres" };
            let totals = counted(*totals as usize, "total");
            text += &format!("recomputed here from what the sites signed: {totals}, {what}\n");
        }
        text += &format!(
            "roster: {roster}\nplan: {plan}\n(compare both with what you know from elsewhere)\nnot covered:\n"
        );
        for line in &not_covered {
            text += &format!("  - {line}\n");
        }
        crate::verb::print(json, &value, &text)
    }
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
        None => out.push(
            "the totals were not recomputed here: `veilsum verify FOLDER` does, if openings.bin lies in it".into(),
        ),
        Some(of) if !of.result => {
            out.push("which of the judged centres were chosen, and their indices: the intermediary's word".into());
        }
        Some(_) => {}
    }
    // Of those that share a secret one at least is honest, where no more collude than the plan withstands.
    let sites = federation.roster.sites.len();
    let needed = federation.terms.threshold_of(sites, sites).unwrap_or(sites);
    if recomputed.is_some() && needed > checked.sites.len() {
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
