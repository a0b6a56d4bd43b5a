//! `veilsum report`: the page of a run, and at a site the page with its own rows.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use veilsum_node::{
    documents,
    error::Failure,
    files,
    report::page::{self, Own, Reported},
};

use crate::verb::Verb;

/// Make a page of a run, for a browser and for paper
#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// The result, or the folder that a run wrote into
    ///
    /// The model is read beside it, roster and plan beside it or else here.
    #[arg(value_name = "RESULT", default_value = "veilsum-out")]
    pub result: PathBuf,
    /// The federation's roster [default: roster.toml beside the result, else here]
    #[arg(long, value_name = "FILE", requires = "plan", hide_short_help = true)]
    pub roster: Option<PathBuf>,
    /// The plan of the run, likewise
    #[arg(long, value_name = "FILE", requires = "roster", hide_short_help = true)]
    pub plan: Option<PathBuf>,
    /// This site's own rows, for a page that shows them and must not leave the site
    ///
    /// It is written with mode 0600, beside the result as own-report.html where --html does not say otherwise.
    #[arg(long, value_name = "ROWS")]
    pub data: Option<PathBuf>,
    /// A site.toml whose [rows] say what columns, words and units of these rows mean
    #[arg(long, value_name = "FILE", requires = "data")]
    pub policy: Option<PathBuf>,
    /// Where to write the page: one file that fetches nothing [default: report.html beside the result]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// With the roster and the plan of this folder, if none lie beside the result and these are those of its run.
fn here(all: Reported) -> Reported {
    if all.federation.is_some() {
        return all;
    }
    match documents::load_federation(Path::new("roster.toml"), Path::new("plan.toml")) {
        Ok(federation) if all.is_of(&federation) => all.with(federation),
        _ => all,
    }
}

impl Verb for ReportArgs {
    /// Writes the page.
    ///
    /// # Errors
    /// A [`Failure`] that names the file at fault.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let all = match self.roster.as_deref().zip(self.plan.as_deref()) {
            Some((roster, plan)) => Reported::read(&self.result)?.under(documents::load_federation(roster, plan)?)?,
            None => here(Reported::read(&self.result)?),
        };
        let shared = all.place();
        let own = self.data.as_deref().map(|data| Own::read(&all, data, self.policy.as_deref())).transpose()?;
        let place = match (&self.html, &own) {
            (Some(place), Some(_)) if *place == shared => {
                // Whoever sends the report without looking would send rows.
                let what = format!("{}: this is the place of the report without rows", place.display());
                return Err(Failure::usage(what, "name another file with --html, or leave it out"));
            }
            (Some(place), _) => place.clone(),
            (None, Some(_)) => {
                let name = shared.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                shared.with_file_name(format!("own-{name}"))
            }
            (None, None) => shared,
        };
        match &own {
            Some(own) => page::write_own(&all, own, &place)?,
            None => files::write_atomic(&place, page::page(&all, None).html().as_bytes())?,
        }
        let shown = place.display().to_string();
        let finding = all.says();
        let leaves = match &own {
            Some(_) => "it shows this site's rows and must not leave the site",
            None => "it says no more than the result does",
        };
        if let Some(without) = own.as_ref().and_then(|own| own.tally.without()) {
            crate::tell!("warning: {without}; the page leaves them out");
        }
        if let Some(Err(why)) = &all.holds {
            crate::tell!(
                "warning: the result does not hold, and the page says so: {}: {why}; do not use it, and take the file as the run wrote it \
                 from a party that you trust",
                all.of.display()
            );
        }
        if let Some(why) = all.unchecked {
            crate::tell!(
                "warning: whether {} is as it was signed could not be checked, and the page says so: {why}; veilsum verify says what can be \
                 said of it",
                all.of.display()
            );
        }
        let holds = all.holds.as_ref().map(Result::is_ok);
        let value = json!({ "written": shown, "says": finding, "own_rows": own.is_some(), "signatures_hold": holds });
        crate::verb::print(json, &value, &format!("{finding}\nwrote {shown}: {leaves}"))
    }
}
