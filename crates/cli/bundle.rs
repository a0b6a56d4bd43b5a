//! `veilsum bundle`: a run in one file, for somebody who recomputes it.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use veilsum_node::{
    bundle::Bundle,
    cost::counted,
    error::Failure,
    files::{self, Existing},
};

use crate::verb::Verb;
use crate::verify::{document, documents_of};

/// Pack a run into one file, from which others recompute it
///
/// It holds the totals of every round. Whoever has it sees what the sites of the run saw.
#[derive(Args, Debug)]
pub(crate) struct BundleArgs {
    /// Where to write it; only you can read the file
    #[arg(value_name = "OUT.tar")]
    pub out: PathBuf,
    /// The result, with the openings beside it
    #[arg(long, value_name = "FILE", default_value = "result.json")]
    pub result: PathBuf,
    /// Its model [default: model.json beside the result]
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// The federation's roster [default: roster.toml beside the result, else here]
    #[arg(long, value_name = "FILE")]
    pub roster: Option<PathBuf>,
    /// The plan [default: plan.toml beside the result, else here]
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
}

impl Verb for BundleArgs {
    /// Packs what was verified before.
    ///
    /// # Errors
    /// A [`Failure`] where a file is missing, or one of them does not hold.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let [roster, plan] = documents_of([self.roster.as_ref(), self.plan.as_ref()], &self.result)?;
        let model = document(self.model.as_ref(), &self.result, "model.json");
        let bundle = Bundle::gather(&self.result, &model, &roster, &plan)?;
        let found = bundle.verify().map_err(|failure| Failure {
            message: format!(
                "{} was not written, because what belongs in it does not hold: {}",
                self.out.display(),
                failure.message
            ),
            advice: "take result.json, model.json and openings.bin of one run, as it wrote them".into(),
            ..failure
        })?;
        let bytes = bundle.to_bytes()?;
        files::write_private(&self.out, &bytes, Existing::Replace)?;
        let shown = self.out.display().to_string();
        let value = json!({ "written": shown, "bytes": bytes.len(), "totals": found.totals, "result_recomputed": found.result });
        let text = match found.totals {
            Some(totals) => format!(
                "wrote {shown} ({} bytes) with {}, which were recomputed from it; it shows whoever has it what every site of the run saw",
                bytes.len(),
                counted(totals as usize, "total")
            ),
            None => format!(
                "wrote {shown} ({} bytes) without openings, because there are none beside {}: signatures can be checked, and nothing recomputed",
                bytes.len(),
                self.result.display()
            ),
        };
        crate::verb::print(json, &value, &format!("{text}\ncheck it with: veilsum verify {}", files::quoted(&self.out)))
    }
}
