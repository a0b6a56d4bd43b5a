//! What a member says to a proposed plan: by roster, plan, schema, policy and ledger, and then whether it is ready ([PRO-2]).

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use veilsum_node::{
    documents::{self, Federation, Federations, Offered, PlanAnswer, RowsFrom, SitePolicy, policy_of},
    error::Failure,
    release::{Account, Data, Known},
    role::standby::Judged,
    store::{Ledger, ledger},
    table,
};
use veilsum_proto::{
    Rule,
    identity::{Identity, PublicKey},
    roster::Roster,
    suite::hash,
};

use crate::{party::head_of, policy::judged};

/// Whether a file is another: its length and age, as text.
pub(crate) fn stamp(file: &Path) -> String {
    fs::metadata(file).map_or(String::new(), |found| format!("{} {:?}", found.len(), found.modified()))
}

/// The same of rows, which may be in several files.
fn stamp_of_rows(rows: &RowsFrom) -> String {
    if let Some(answerer) = &rows.answerer {
        return hash("answerer of rows", &[format!("{:?}", answerer.words).as_bytes()]).to_string();
    }
    let files = table::files_of(&rows.data).unwrap_or_default();
    let stamps: Vec<u8> =
        files.iter().flat_map(|file| format!("{} {}\n", file.display(), stamp(file)).into_bytes()).collect();
    match &files[..] {
        [one] => stamp(one),
        _ => hash("files of rows", &[&stamps]).to_string(),
    }
}

/// What this party says to a plan ([PRO-2]).
pub(crate) struct Judge {
    /// This party's identity.
    pub identity: Arc<Identity>,
    /// Its key file.
    pub key: PathBuf,
    /// Where its roster is.
    pub roster: PathBuf,
    /// Whether it is a site.
    pub is_site: bool,
    /// A site's rows, where they are not as its policy says.
    pub data: Option<PathBuf>,
    /// Its policy.
    pub policy: Option<PathBuf>,
    /// Folder of its ledger.
    pub state: PathBuf,
}

/// Held by whoever looks at rows.
static LOOKING: Mutex<()> = Mutex::new(());

impl Judge {
    /// Where this site's rows are.
    fn rows(&self) -> Result<(SitePolicy, RowsFrom), Failure> {
        let (site, file) = policy_of(self.policy.as_deref(), Some(&self.key))?;
        let rows = site.rows_from(self.data.as_deref(), file.as_deref(), Some(&self.key))?;
        Ok((site, rows))
    }

    /// The state of the files on which the answer rests.
    pub(crate) fn stamps(&self) -> Vec<String> {
        let rows = self.is_site.then(|| self.rows().map_or(String::new(), |(_, rows)| stamp_of_rows(&rows)));
        self.watched().iter().map(|file| stamp(file)).chain(rows).collect()
    }

    fn watched(&self) -> Vec<PathBuf> {
        let policy = self.policy.clone().unwrap_or_else(|| self.key.with_file_name("site.toml"));
        let ledger = self.state.join(ledger::FILE);
        let schemas = ["schema.toml", "schema.toml.new"].map(|name| self.roster.with_file_name(name));
        [Federations::beside(&self.key), policy, ledger].into_iter().chain(schemas).collect()
    }

    /// What it says, and why.
    pub(crate) fn judge(&self, federation: &Federation) -> Judged {
        if let Err(failure) = self.offered(&federation.roster).passes(None) {
            return no(PlanAnswer::Roster, &failure);
        }
        // [SCH-1].
        let kept = match documents::other_schema(&self.roster) {
            Some(other) => Err(documents::schema_differs(&other)),
            None => documents::schema_beside(&self.roster).and_then(|schema| federation.clone().under(schema)),
        };
        let federation = match &kept {
            Ok(federation) => federation,
            Err(failure) => return no(PlanAnswer::Refuses { rule: Some(Rule::Sch1) }, failure),
        };
        if !self.is_site {
            return Judged { answer: PlanAnswer::Would { runs: None }, words: "this party counts rows".into() };
        }
        self.of_plan(federation).unwrap_or_else(|failure| no(PlanAnswer::NotReady, &failure))
    }

    /// The plan first, by public facts and the ledger; only a plan that is answered makes this site look whether it is ready.
    fn of_plan(&self, federation: &Federation) -> Result<Judged, Failure> {
        let (site, from) = self.rows()?;
        let account = Ledger::look(&self.state, &head_of(&self.key), &self.identity)?;
        let judged = judged(federation, &site.policy, &account);
        if !judged.is_yes() {
            return Ok(Judged { answer: judged.proposal(), words: judged.sentence() });
        }
        // [REL-5]: a block that is not whole on this roster answers nothing.
        let history = self.offered(&federation.roster).history()?;
        let now = |key: PublicKey| {
            let rekeys = history.iter().flat_map(|signed| &signed.change.rekeys);
            rekeys.fold(key, |key, rekey| if rekey.old == key { rekey.new } else { key })
        };
        let mut members = account.block().into_iter().flat_map(|block| &block.members);
        if members.any(|(key, _)| federation.roster.find(&now(*key)).is_none()) {
            let answer = PlanAnswer::Refuses { rule: Some(Rule::Rel5) };
            let words = "a site with which these rows were answered together is on the roster no more [REL-5]; if other rows take \
                         their place, say so: veilsum ledger separate";
            return Ok(Judged { answer, words: words.into() });
        }
        self.ready(federation, &site, &from, &account)?;
        Ok(Judged { answer: judged.proposal(), words: judged.sentence() })
    }

    /// Whether this site is ready: its rows can be read, and are those that it answered from before. Its operator alone is told why not.
    fn ready(
        &self,
        federation: &Federation,
        site: &SitePolicy,
        from: &RowsFrom,
        account: &Account,
    ) -> Result<(), Failure> {
        // One look at a time: a coordinator may propose faster than rows are read.
        let _looking = LOOKING.lock().unwrap_or_else(PoisonError::into_inner);
        let (rows, origin) = documents::load_rows_and_origin(federation, from)?;
        site.has_room(rows.rows())?;
        let these = Data::of(&site.data, &self.identity, &*rows);
        self.offered(&federation.roster).passes(Some(&these))?;
        match account.recognises(&origin, &self.identity)? {
            Known::Same(_) => Ok(()),
            other => Err(other.refusal()),
        }
    }

    /// A roster, as this party is about to use it.
    pub(crate) fn offered<'a>(&'a self, roster: &'a Roster) -> Offered<'a> {
        Offered { file: &self.roster, roster, key: &self.key, identity: &self.identity }
    }
}

fn no(answer: PlanAnswer, failure: &Failure) -> Judged {
    Judged { answer, words: format!("{}\n  ({})", failure.message, failure.advice) }
}
