//! `plan.toml`: what is computed and under which terms, signed by the coordinator.
//!
//! The signature covers the protocol's terms, which hold the method part in the application's own encoding. Loading
//! rebuilds both from the text, so every number of the text is signed, to its last bit.

use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::Table;
use veilsum_proto::{
    identity::Signature,
    plan::{SignedTerms, Sites, Terms},
    roster::Roster,
    suite::Hash,
};

use super::{
    file::{document, in_file, read_text, refused, text_of},
    plan_keys::{PLAN_KEYS, commented, set},
};
use crate::{
    error::Failure,
    files,
    plan::{Categorical, Column, Judge, OutOfBox, PlanSpec, Recipe, Sampling, Scaling},
};
use veilsum_federation::agreed::fingerprint;

const FORMAT: &str = "veilsum-plan/3";
/// Bytes of a plan file: the largest method part (1 MiB of doubles) as decimal text.
const MAX_FILE: usize = 8 << 20;
const NEXT: &str = "ask the coordinator for the plan again";
const SIGN_AGAIN: &str =
    "the coordinator proves and signs it again with `veilsum plan check --sign`; a site asks the coordinator for it";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    roster: Hash,
    signature: Signature,
    scaling: Scaling,
    out_of_box: OutOfBox,
    judge: Judge,
    #[serde(with = "CohortPart")]
    cohort: Terms,
    method: Recipe,
    sampling: Option<Sampling>,
    step_bits: Option<u8>,
    #[serde(default)]
    column: Vec<Column>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    categorical: Vec<Categorical>,
}

/// The terms as the file has them; what they bind of roster and method is beside them.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Terms", deny_unknown_fields)]
struct CohortPart {
    #[serde(skip)]
    roster: Hash,
    #[serde(rename = "min_sites")]
    min_cohort: u16,
    threshold: u16,
    colluders: u16,
    sites: Sites,
    slots: u16,
    #[serde(rename = "max_rows_per_site")]
    max_rows: u64,
    min_total_rows: u64,
    #[serde(skip)]
    application: Vec<u8>,
}

impl PlanFile {
    fn of(work: PlanSpec, SignedTerms { terms, signature }: SignedTerms) -> PlanFile {
        PlanFile {
            roster: terms.roster,
            signature,
            scaling: work.scaling,
            out_of_box: work.out_of_box,
            judge: work.judge,
            cohort: terms,
            method: work.recipe,
            sampling: work.sampling,
            step_bits: work.step_bits,
            column: work.columns,
            categorical: work.categorical,
        }
    }

    /// What it says; nothing is checked.
    fn says(self) -> (PlanSpec, Terms) {
        let PlanFile { column: columns, method: recipe, scaling, out_of_box, sampling, judge, step_bits, .. } = self;
        let categorical = self.categorical;
        let work = PlanSpec { columns, scaling, out_of_box, recipe, sampling, judge, step_bits, categorical };
        let terms = Terms { roster: self.roster, application: work.to_bytes(), ..self.cohort };
        (work, terms)
    }
}

/// Writes a signed plan, whole or not at all.
///
/// # Errors
/// A [`Failure`] where its method part cannot be read or the file cannot be written.
pub fn write_plan(path: impl AsRef<Path>, signed: &SignedTerms) -> Result<(), Failure> {
    let file = PlanFile::of(PlanSpec::from_bytes(&signed.terms.application)?, signed.clone());
    let comment = "# What is computed and under which terms, signed by the coordinator. `veilsum plan check` says what it\n\
                   # means; after a change by hand the coordinator signs it again with `veilsum plan check --sign`.\n";
    files::write_atomic(path, commented(&text_of(comment, FORMAT, &file)?).as_bytes())
}

/// Reads a plan and verifies its numbers and the coordinator's signature against the roster.
///
/// # Errors
/// A [`Failure`] that names the file and what is wrong with it.
pub fn load_plan(path: impl AsRef<Path>, roster: &Roster) -> Result<Terms, Failure> {
    let path = path.as_ref();
    load_signed_plan(path, roster)?.verify(roster).map_err(|e| refused(path, &e, SIGN_AGAIN))
}

/// What a plan says, whoever wrote it last: neither its signature nor its roster is looked at.
///
/// # Errors
/// A [`Failure`] that names the file and what is wrong with it.
pub fn edited_plan(path: impl AsRef<Path>) -> Result<Terms, Failure> {
    let path = path.as_ref();
    Ok(parse(path, &read_text(path, MAX_FILE)?)?.terms)
}

/// What a plan becomes by settings, each by its name in [`PLAN_KEYS`]: they are put wherever its text has a key of theirs, and that is parsed as
/// every plan is. Nothing is checked yet.
///
/// # Errors
/// The setting that has no such value, and why.
pub fn with_settings(work: PlanSpec, terms: Terms, settings: &Table) -> Result<(PlanSpec, Terms), (&str, String)> {
    let mut file = PlanFile::of(work, SignedTerms { terms, signature: Signature::from_bytes(&[0; 64]) });
    for (setting, value) in settings {
        let text = toml::to_string(&file).map_err(|e| (setting.as_str(), e.to_string()))?;
        file = toml::from_str(&set(&text, setting, value)).map_err(|e| (setting.as_str(), e.message().to_owned()))?;
    }
    Ok(file.says())
}

/// A plan with its signature, which is not checked.
pub(super) fn load_signed_plan(path: &Path, roster: &Roster) -> Result<SignedTerms, Failure> {
    let signed = parse(path, &read_text(path, MAX_FILE)?)?;
    let for_roster = signed.terms.roster;
    if for_roster != roster.hash() {
        let [its, this] = [for_roster, roster.hash()].map(|hash| fingerprint(&hash.0));
        let what = format!("{}: it was made for another roster (fingerprint {its})", path.display());
        let next = format!("this roster's fingerprint is {this}: get the plan made for it, or the roster of this plan");
        return Err(Failure::input(what, next));
    }
    Ok(signed)
}

fn parse(path: &Path, text: &str) -> Result<SignedTerms, Failure> {
    let file: PlanFile = document(path, text, FORMAT, NEXT).map_err(|failure| {
        // A key that this method does not read: which methods do, says the sentence of the setting.
        let strange = failure.message.split_once("unexpected keys in table: ").map_or("", |(_, keys)| keys);
        let strange = strange.split(',').map(str::trim).take_while(|key| !key.is_empty() && !key.contains(' '));
        let strange: Vec<&str> = strange.collect();
        let known = PLAN_KEYS.iter().find(|(setting, end, _)| strange.contains(setting) || strange.contains(end));
        let Some((_, _, says)) = known else { return failure };
        Failure { advice: format!("take the key out, or take a method that reads it ({says}); {NEXT}"), ..failure }
    })?;
    let signature = file.signature;
    let (work, terms) = file.says();
    work.check().map_err(|e| in_file(path, e))?;
    Ok(SignedTerms { terms, signature })
}
