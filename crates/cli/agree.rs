//! `veilsum agree`: a party's operator agrees to a roster, the first one of a federation or another than before ([ROS-8], [ROS-9]).

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use veilsum_node::{
    cost::some_of,
    documents::{Changes, Fingerprint, Offered, Standing, load_identity, load_roster, roster_fingerprint},
    error::Failure,
};

use crate::{
    party::key_beside,
    roster::{few, to_json},
    terminal::ask,
    verb::Verb,
    words::fingerprint_line,
};

/// Agree to a roster: the first one of a federation, or another than before
///
/// In a call with the operators of all parties the coordinator's reads the roster's 15 words, and everybody compares them.
#[derive(Args, Debug)]
pub(crate) struct AgreeArgs {
    /// The roster
    #[arg(value_name = "ROSTER", default_value = "roster.toml")]
    pub roster: PathBuf,
    /// This party's secret key file [default: the only *.key file beside the roster]
    #[arg(long, value_name = "FILE.key")]
    pub key: Option<PathBuf>,
    /// The 15 words of the roster, as they were read to you [default: asked for on a terminal]
    #[arg(long, value_name = "WORDS", value_parser = Fingerprint::parse)]
    pub fingerprint: Option<Fingerprint>,
}

impl Verb for AgreeArgs {
    /// Shows what is another than before, asks for the words, and keeps the roster.
    ///
    /// # Errors
    /// A [`Failure`] where the roster cannot be agreed to, or the words are another's.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let roster = load_roster(&self.roster)?;
        let key = key_beside(self.key.as_ref(), &self.roster)?;
        let (identity, _) = load_identity(&key)?;
        let offered = Offered { file: &self.roster, roster: &roster, key: &key, identity: &identity };
        offered.whoami()?;
        let (changes, meaning) = match offered.standing()? {
            Standing::Changed(from) => (Changes::between(&from, &roster).0, Changes::meaning(&from, &roster)),
            Standing::New | Standing::Agreed => (Vec::new(), Vec::new()),
        };
        if !json && !changes.is_empty() {
            // Before the question: it is about them.
            crate::tell!(
                "another than the last roster of {} that was agreed to:\n  {}\nwhat it means:\n  {}",
                roster.name,
                some_of(&changes, "\n  "),
                meaning.join("\n  ")
            );
        }
        let heard = self.fingerprint.clone().map_or_else(|| ask(&offered), Ok)?;
        offered.agree(&heard)?;
        let value = json!({ "agreed": roster.name, "hash": roster.hash().to_string(),
            "fingerprint": roster_fingerprint(&roster.hash()), "changes": changes, "meaning": meaning, "roster": to_json(&roster) });
        let text = format!(
            "agreed to {} with {} sites\n{}\n{}",
            roster.name,
            roster.sites.len(),
            fingerprint_line(&roster),
            few(&roster, &self.roster)
        );
        crate::verb::print(json, &value, &text)
    }
}
