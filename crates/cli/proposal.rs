//! What a member says to a proposed plan: the whole of it judged by its own policy, ledger and rows ([PRO-2]).

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use veilsum_node::{
    documents::{self, Federation, Federations, Offered, PlanAnswer, RowsFrom, SitePolicy, policy_of},
    error::Failure,
    files::{self, Existing},
    plan::PlanSpec,
    release::{Data, Known, facts},
    role::standby::Judged,
    store::{Ledger, ledger},
    table,
};
use veilsum_proto::{
    identity::{Identity, PublicKey},
    policy::check_plan,
    roster::Roster,
    suite::{Hash, hash},
};

use crate::{party::head_of, policy::judged};

/// Whether a file is another: its length and age, as text.
pub(crate) fn stamp(file: &Path) -> String {
    fs::metadata(file).map_or(String::new(), |found| format!("{} {:?}", found.len(), found.modified()))
}

/// The same of rows, which may be in several files.
fn stamp_of_rows(rows: &RowsFrom) -> String {
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

/// The ending of the file beside the key that has the framings in which rows were looked at since they changed.
const FRAMINGS: &str = "proposed";
/// How many of them there may be: each tells a coordinator yes or no about what the rows are.
const MOST_FRAMINGS: usize = 8;
/// Held by whoever looks at rows.
static LOOKING: Mutex<()> = Mutex::new(());
/// The longest such file.
const MAX_FRAMINGS: usize = 4 << 10;

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
            Err(failure) => return no(PlanAnswer::Refuses { rule: "SCH-1".into() }, failure),
        };
        if !self.is_site {
            return Judged { answer: PlanAnswer::Would { runs: None }, words: "this party counts rows".into() };
        }
        self.of_rows(federation).unwrap_or_else(|failure| no(PlanAnswer::Rows, &failure))
    }

    fn of_rows(&self, federation: &Federation) -> Result<Judged, Failure> {
        let (site, from) = self.rows()?;
        // What this site's policy says without a look at any row comes first.
        if let Err(e) = check_plan(&federation.terms, &site.policy, &facts(&federation.work)) {
            let why = e.to_string();
            return Ok(Judged { answer: PlanAnswer::refusal(&why), words: why });
        }
        // One look at a time: a coordinator may propose faster than rows are read.
        let _looking = LOOKING.lock().unwrap_or_else(PoisonError::into_inner);
        self.framed(federation, &from)?;
        let (rows, origin) = documents::load_rows_and_origin(federation, &from)?;
        let most = federation.terms.max_rows;
        if rows.is_empty() || rows.len() as u64 > most {
            let what = format!("this site has {} rows, and the plan allows 1 to {most} a site", rows.len());
            return Err(Failure::input(what, "ask for another plan"));
        }
        let SitePolicy { policy, data: name, .. } = &site;
        let these = Data::of(name, &self.identity, &rows);
        self.offered(&federation.roster).passes(Some(&these))?;
        let account = Ledger::look(&self.state, &head_of(&self.key), &self.identity)?;
        let known = account.recognises(&origin, &self.identity)?;
        if !matches!(known, Known::Same(_)) {
            return Err(known.refusal());
        }
        if account.answered_from_others(&federation.terms.hash(), &these.rows) {
            let answer = PlanAnswer::Refuses { rule: "POL-3".into() };
            let words = "this plan was answered from other rows, and no second run of it would come to its end [POL-3]; ask for a new plan";
            return Ok(Judged { answer, words: words.into() });
        }
        // [REL-5]: a block that is not whole on this roster answers nothing of these rows.
        let history = self.offered(&federation.roster).history()?;
        let now = |key: PublicKey| {
            let rekeys = history.iter().flat_map(|signed| &signed.change.rekeys);
            rekeys.fold(key, |key, rekey| if rekey.old == key { rekey.new } else { key })
        };
        let mut members = account.block().into_iter().flat_map(|block| &block.members);
        if members.any(|(key, _)| federation.roster.find(&now(*key)).is_none()) {
            let answer = PlanAnswer::Refuses { rule: "REL-5".into() };
            let words = "a site with which these rows were answered together is on the roster no more [REL-5]; where other rows take \
                         their place, say so: veilsum ledger separate";
            return Ok(Judged { answer, words: words.into() });
        }
        let spent = (&account.spent(&Hash::default(), None, None), account.rho_of(&federation.terms.hash()));
        let judged = judged(federation, policy, &rows, spent, 0)?;
        Ok(Judged { answer: judged.proposal(), words: judged.answer().sentence })
    }

    /// Lets rows be looked at for this plan, if it reads them as one of the last few did ([PRO-2]): from answers to many plans with other
    /// ranges, categories or bounds a coordinator could search for the largest value, or for the number of rows.
    fn framed(&self, federation: &Federation, from: &RowsFrom) -> Result<(), Failure> {
        let PlanSpec { columns, categorical, labels, out_of_box, .. } = &*federation.work;
        let framing = format!("{columns:?} {categorical:?} {labels:?} {out_of_box:?} {}", federation.terms.max_rows);
        let framing = hash("framing of rows", &[framing.as_bytes()]).to_string();
        let path = self.key.with_added_extension(FRAMINGS);
        let rows = stamp_of_rows(from);
        let known = if path.exists() { files::read_private(&path, MAX_FRAMINGS)?.to_vec() } else { Vec::new() };
        let known = String::from_utf8_lossy(&known).into_owned();
        let mut lines: Vec<&str> = known.lines().collect();
        if lines.first() != Some(&rows.as_str()) {
            lines = vec![&rows];
        }
        if lines[1..].contains(&framing.as_str()) {
            return Ok(());
        }
        if lines.len() > MOST_FRAMINGS {
            return Err(Failure::input(
                format!(
                    "the coordinator has proposed plans with {MOST_FRAMINGS} different ranges, categories or bounds for the same rows, and \
                     this one has others again [PRO-2]; these rows are not looked at for it"
                ),
                format!("ask its operator why; if you want to go on, remove {}", path.display()),
            ));
        }
        lines.push(&framing);
        Ok(files::write_private(&path, lines.join("\n").as_bytes(), Existing::Replace)?)
    }

    /// A roster, as this party is about to use it.
    pub(crate) fn offered<'a>(&'a self, roster: &'a Roster) -> Offered<'a> {
        Offered { file: &self.roster, roster, key: &self.key, identity: &self.identity }
    }
}

fn no(answer: PlanAnswer, failure: &Failure) -> Judged {
    Judged { answer, words: format!("{}\n  ({})", failure.message, failure.advice) }
}
