//! `veilsum check`: whether this party is ready for a run, and what to do if it is not. It looks at the party's files and machine, at
//! its rows, at what would leave of them, at whether its own policy lets it, and at the way to the others. Nothing is sent but the
//! question whether the others would let this party in ([APP-9]), and nothing is kept.

mod report;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::Args;
use veilsum_node::{
    app_messages::SOFTWARE,
    carrier::{Address, Proxy},
    checkup::{self, Caller, Finding},
    cost::counted,
    documents::{
        self, Federation, Offered, RowsFrom, SitePolicy, columns_beside, fingerprint, load_identity, load_plan,
        load_roster, policy_of, reading_of, roster_fingerprint,
    },
    door::{
        Account, No, Verdict, cap_of, judge,
        ledger::{digests_of, look},
    },
    error::Failure,
    refusal,
    role::status::{self, Status},
    table::{self, Dialect, Tally},
};
use veilsum_proto::{
    Rule,
    identity::Identity,
    roster::{Member, PartyId, Roster},
    suite::VERSION,
};

use self::report::{InForce, Leaves, Report, Spent};
use crate::{
    columns::{self, Wanted, parse_column},
    party::{Own, block_on, key_beside, state_beside, state_of},
    rows::RowsSaid,
    verb::{self, Verb},
};

/// Say whether this party is ready, and what would leave it
///
/// The exit code is that of the first thing that is in the way: 3 for files and rows, 7 if this site's own policy refuses the plan, 4 if
/// somebody cannot be reached.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// What is this party's own.
    #[command(flatten)]
    pub own: Own,
    /// What site.toml may come to say of the rows.
    #[command(flatten)]
    pub rows: RowsSaid,
    /// The federation's roster
    #[arg(long, value_name = "FILE", default_value = "roster.toml")]
    pub roster: PathBuf,
    /// The plan [default: plan.toml beside the roster, if it is there]
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Count the values outside of a range of your own, or none of your own categories
    #[arg(long = "column", value_name = "NAME=LOW:HIGH", value_parser = parse_column, num_args = 1..)]
    pub columns: Vec<Wanted>,
    /// Leave out the way to the others
    #[arg(long)]
    pub offline: bool,
    /// Seconds for one attempt to reach somebody
    #[arg(long, value_name = "SECONDS", default_value_t = 3)]
    pub timeout: u64,
}

impl Verb for CheckArgs {
    /// Runs `veilsum check`.
    ///
    /// # Errors
    /// A [`Failure`] with the code of the first check that failed.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let key = key_beside(self.own.key.as_ref(), &self.roster);
        let mut check = Check { args: self, key: key.as_ref().ok(), report: Report::default() };
        check.party(key.as_ref().err())?;
        let report = check.report.concluded();
        verb::print(json, &serde_json::to_value(&report).unwrap_or_default(), &report.to_string())?;
        report.failure().map_or(Ok(()), Err)
    }
}

/// A check that goes on.
struct Check<'a> {
    args: &'a CheckArgs,
    key: Option<&'a PathBuf>,
    report: Report,
}

impl Check<'_> {
    /// A failure in the words of `--rows`, where something is said by it.
    fn worded(&self, failure: Failure) -> Failure {
        if self.args.rows.is_said() { RowsSaid::of_option(failure) } else { failure }
    }

    fn found(&mut self, finding: Finding) {
        self.report.checks.push(finding);
    }

    fn pass(&mut self, check: &str, says: impl ToString) {
        self.found(Finding::pass(check, says));
    }

    fn skip(&mut self, check: &str, why: impl ToString) {
        self.found(Finding::skip(check, why));
    }

    /// The value, or a finding that says why there is none.
    fn took<T>(&mut self, check: &str, read: Result<T, impl Into<Failure>>) -> Option<T> {
        read.map_err(|failure| self.found(Finding::fail(check, self.worded(failure.into())))).ok()
    }

    /// Everything, one after the other.
    fn party(&mut self, keyless: Option<&Failure>) -> Result<(), Failure> {
        self.pass("version", format!("{SOFTWARE}, wire version {VERSION}"));
        if let Some(none) = keyless {
            self.skip("key", format!("{}: give --key FILE.key", none.message));
        }
        let identity = self.key.and_then(|path| self.identity(path));
        let roster = self.roster();
        let me = self.role(identity.as_deref(), roster.as_ref());
        let federation = self.plan(roster.as_ref());
        if let Some(key) = self.key
            && let Ok(state) = state_of(key, self.args.own.state.as_ref())
        {
            self.found(checkup::disk(&state));
            if let Some(finding) = self.took("account", checkup::lasts(&state)).flatten() {
                self.found(finding);
            }
            self.found(checkup::private(key, &state));
        }
        if !matches!(me, Some(PartyId::Coordinator | PartyId::Intermediary)) {
            let name = me.and_then(|me| Some(roster.as_ref()?.name_of(me)));
            self.site(&name.unwrap_or("a site".to_owned()), identity.as_deref(), federation.as_ref());
        }
        match (identity, &roster, me) {
            _ if self.args.offline => self.skip("network", "no connection was tried (--offline)"),
            (Some(identity), Some(roster), Some(me)) => self.way(identity, roster, me, federation.as_ref())?,
            _ => self.skip("network", "whom to reach, and as whom, needs a key that is on the roster"),
        }
        Ok(())
    }

    fn identity(&mut self, path: &Path) -> Option<Arc<Identity>> {
        let (identity, name) = self.took("key", load_identity(path))?;
        let (file, print) = (path.display(), fingerprint(&identity.public().0));
        let says = format!("{file}: the secret key of {name}, open to its owner alone; its fingerprint is {print}");
        self.pass("key", says);
        // A head that cannot be read is told of with the ledger.
        let digests = state_of(path, self.args.own.state.as_ref());
        let digests = digests.ok().and_then(|state| digests_of(&state).ok().flatten());
        Some(Arc::new(match digests {
            Some(digests) => identity.with_digests(digests),
            None => identity,
        }))
    }

    fn roster(&mut self) -> Option<Roster> {
        let path = &self.args.roster;
        if !path.exists() && path == Path::new("roster.toml") {
            self.skip("roster", "give --roster FILE; what follows from it is not checked");
            return None;
        }
        let roster = self.took("roster", load_roster(path))?;
        let who = format!("{} with {}", roster.name, counted(roster.sites.len(), "site"));
        let (print, signer) = (roster_fingerprint(&roster.hash()), &roster.coordinator.name);
        self.pass("roster", format!("{}: {who}, signed by {signer}; fingerprint {print}", path.display()));
        Some(roster)
    }

    /// Whose key this is, and whether its owner agreed to the roster.
    fn role(&mut self, identity: Option<&Identity>, roster: Option<&Roster>) -> Option<PartyId> {
        let (identity, roster, key) = (identity?, roster?, self.key?);
        let offered = Offered { file: &self.args.roster, roster, key, identity };
        let me = self.took("role", offered.whoami())?;
        let role = match me {
            PartyId::Coordinator => "coordinator",
            PartyId::Intermediary => "intermediary",
            PartyId::Site(_) => "site",
        };
        self.pass("role", format!("this key is {}, {role}", roster.name_of(me)));
        self.report.role = Some(role);
        // The coordinator makes the roster, and is asked for no fingerprint.
        if me != PartyId::Coordinator {
            self.agreed(&offered);
        }
        Some(me)
    }

    fn agreed(&mut self, offered: &Offered<'_>) {
        match offered.passes() {
            Ok(()) => self.pass("agreed", "this key's owner agreed to this roster"),
            Err(unheard) if unheard.rule == Some(Rule::Ros8) => {
                self.found(Finding::warn("agreed", unheard.message, unheard.advice));
            }
            Err(other) => self.found(Finding::fail("agreed", other)),
        }
    }

    fn plan(&mut self, roster: Option<&Roster>) -> Option<Federation> {
        let beside = || Some(self.args.roster.with_file_name("plan.toml")).filter(|path| path.exists());
        let (Some(roster), Some(path)) = (roster, self.args.plan.clone().or_else(beside)) else {
            self.skip("plan", "give --plan FILE beside its roster; what follows from it is not checked");
            return None;
        };
        let made = load_plan(&path, roster).and_then(|terms| Federation::new(roster.clone(), terms));
        let federation = self.took("plan", made)?;
        let (hash, method) = (fingerprint(&federation.terms.hash().0), federation.work.method_name());
        self.pass("plan", format!("{}: {method}, signed and made for this roster; fingerprint {hash}", path.display()));
        Some(federation)
    }

    /// Rows, what would leave of them, and whether it may.
    fn site(&mut self, name: &str, identity: Option<&Identity>, federation: Option<&Federation>) -> Option<()> {
        let (policy, file) =
            self.took("policy", policy_of(self.args.own.policy.as_deref(), self.key.map(|key| &**key)))?;
        let said = self.took("policy", self.args.rows.over(&policy.rows))?;
        let policy = SitePolicy { rows: Arc::new(said), ..policy };
        let from = file.as_ref().map_or("the default".to_owned(), |path| path.display().to_string());
        self.pass("policy", format!("{from}, for the data set {:?}", policy.data));
        self.report.policy = Some(InForce { from, keys: policy.clone() });
        let beside = self.key.unwrap_or(&self.args.roster);
        let from = policy.rows_from(self.args.own.data.as_deref(), file.as_deref(), Some(beside)).ok();
        if from.is_none() {
            self.skip("rows", "give --data ROWS, or `source` under [rows] in site.toml");
        }
        if let Some(from) = from {
            self.rows(&from, &policy, federation);
        }
        if let Some(federation) = federation {
            self.report.leaves = self.took("leaves", Leaves::of(federation, name, policy.policy.usual_cap()));
        }
        let (Some(key), Some(identity)) = (self.key, identity) else {
            self.skip("ledger", "it lies beside the key, and says what this site agreed to and gave away: give --key");
            return None;
        };
        let account = self.account(key, identity)?;
        let cap = self.took("account", cap_of(&policy.policy, &account)).unwrap_or_else(|| account.bound().cap());
        self.report.account = Some(Spent::of(&account, &policy, cap));
        if let Some(federation) = federation.filter(|_| cap != policy.policy.usual_cap()) {
            self.report.leaves = self.took("leaves", Leaves::of(federation, name, cap));
        }
        let Some(federation) = federation else {
            self.skip("answers", "whether this site answers a plan needs roster and plan");
            return None;
        };
        let verdict = judge(&federation.facts(), &policy.policy, &account, None);
        if verdict == Verdict::No(No::RunBefore) {
            let says = "this plan has been run; the next run needs a new one, which the coordinator proposes";
            self.pass("answers", says);
            return Some(());
        }
        self.report.answer = self.took("answers", verdict.yes());
        self.report.answer.into_iter().for_each(|yes| self.pass("answers", refusal::agreed(&yes)));
        Some(())
    }

    /// The rows under the plan; as long as there is none, under `columns.toml`.
    fn rows(&mut self, from: &RowsFrom, policy: &SitePolicy, federation: Option<&Federation>) -> Option<()> {
        let place = from.place();
        let typed = !self.args.columns.is_empty();
        let Some(federation) = federation.filter(|_| !typed) else {
            self.rows_of_columns(from, &place);
            return None;
        };
        let noisy = federation.work.recipe.noise.is_some();
        let mut most = 0;
        if noisy {
            self.report.read = Some(self.took("rows", documents::look_at_rows(federation, from))?);
            let says = "how many lie outside the plan's ranges is said after its last answer; for a range of yours: --column NAME=LOW:HIGH";
            self.skip("values", says);
        } else {
            let Some(loaded) = self.took("rows", documents::load_rows(federation, from)) else {
                self.report.read = documents::look_at_rows(federation, from).ok();
                return None;
            };
            most = loaded.rows_asked(federation);
            self.report.read = loaded.tally;
        }
        self.doubts();
        if self.report.read.as_ref().is_some_and(|tally| tally.rows > 0 && tally.used == 0) {
            let next =
                "look at the reasons and places under \"What is read\", and mend the file or what site.toml says of it";
            self.found(Finding::fail("rows", Failure::input(format!("{place}: no row can be used"), next)));
            return None;
        }
        self.few(federation);
        if noisy && let Err(failure) = policy.has_room(self.report.read.as_ref().map_or(0, |tally| tally.used)) {
            self.found(Finding::warn("rows", failure.message, failure.advice));
        }
        self.took("rows", policy.has_room(most))?;
        self.report.columns = Some(self.took("rows", reading_of(federation, from))?);
        self.pass("rows", format!("{place}: every row can be used, but for those that are left out"));
        Some(())
    }

    fn rows_of_columns(&mut self, from: &RowsFrom, place: &str) -> Option<()> {
        let by_line = Dialect { by_line: true, ..from.rules.dialect() };
        let header = self.took("rows", table::open(&from.data, by_line))?.about().columns.len();
        let (typed, beside) = (&self.args.columns, self.took("columns", columns_beside(&self.args.roster))?);
        if typed.is_empty() && beside.is_none() {
            self.skip("rows", format!("{place}: {}; which are needed, the plan says", counted(header, "column")));
            return None;
        }
        let columns = self.took("columns", columns::of_plan(typed, beside.as_ref()))?;
        let tally = self.took("rows", documents::look_at_columns(columns, !typed.is_empty(), from))?;
        let whose = if typed.is_empty() { "of columns.toml" } else { "that is named" };
        self.pass("rows", format!("{place} has every column {whose}"));
        self.report.read = Some(tally);
        self.doubts();
        Some(())
    }

    /// Bárcena et al. (2021): the K (d + 1) sums of a round are fewer numbers than those of the rows only above K (d + 1) / d rows.
    /// Said to this site alone; nothing that it sends depends on it.
    fn few(&mut self, federation: &Federation) {
        let (k, d) = (u64::from(federation.work.recipe.clusters.max), federation.work.columns.len() as u64);
        let Some(rows) = self.report.read.as_ref().map(|tally| tally.used) else { return };
        if rows > 0 && d > 0 && rows * d <= k * (d + 1) {
            let (rows, columns) = (counted(rows as usize, "row"), counted(d as usize, "column"));
            let says = format!(
                "{rows}, and {k} clusters in {columns}: the sums of one round hold as many numbers as the rows"
            );
            self.found(Finding::warn("equations", says, "answer with more rows, or agree to a plan of fewer clusters"));
        }
    }

    /// What was read and should be looked at.
    fn doubts(&mut self) {
        for doubt in self.report.read.as_ref().map_or(Vec::new(), Tally::doubts) {
            let next = "look at these rows and at the unit of the column, before this site answers: afterwards nobody can see it in a total";
            self.found(Finding::warn("values", doubt, next));
        }
    }

    /// What this site's ledger says.
    fn account(&mut self, key: &Path, identity: &Identity) -> Option<Account> {
        let state = state_of(key, self.args.own.state.as_ref());
        let looked = state.and_then(|state| Ok(look(&state, &identity.public())?));
        let account = self.took("ledger", looked)?;
        let says = match account.spent().answers {
            0 => "whole, and nothing was given away yet".to_owned(),
            n => format!("whole: {} charged so far", counted(n as usize, "answer")),
        };
        self.pass("ledger", says);
        Some(account)
    }

    fn way(
        &mut self,
        identity: Arc<Identity>,
        roster: &Roster,
        me: PartyId,
        federation: Option<&Federation>,
    ) -> Result<(), Failure> {
        let proxy = self.took("proxy", Proxy::of_environment());
        if let Some(proxy) = &proxy {
            let named = |at| format!("{at} is named by HTTPS_PROXY; TCP goes through it but for NO_PROXY");
            let proxy = proxy.as_ref().map(|proxy| named(proxy.address()));
            self.pass("proxy", proxy.unwrap_or("none is named (HTTPS_PROXY)".to_owned()));
        }
        let proxy = proxy.flatten();
        self.report.firewall = checkup::firewall(roster, me, proxy.as_ref());
        let own = roster.member(me).filter(|_| !matches!(me, PartyId::Site(_)));
        let caller = Caller {
            identity: identity.clone(),
            roster,
            plan: federation.map(|federation| federation.terms.hash()),
            proxy,
            limit: Duration::from_secs(self.args.timeout.clamp(1, 60)),
        };
        block_on(async {
            let mut found = Vec::new();
            if let Some(at) = own.and_then(|own| own.address.parse::<Address>().ok()) {
                let state = self.key.map(|key| state_beside(key, self.args.own.state.as_ref()));
                let runs =
                    state.is_some_and(|state| status::ask::<Status>(&state).is_ok_and(|status| status.is_some()));
                found.push(match runs {
                    true => Finding::pass("port", format!("port {} is open: this party's own process runs", at.port())),
                    false => checkup::port(&identity, at.port()).await,
                });
            }
            let mut peers = checkup::dialled(roster, me).into_iter();
            let reach = async |peer: Option<&Member>| match peer {
                Some(peer) => checkup::reach(&caller, peer).await,
                None => Vec::new(),
            };
            // Two at most, side by side: each may take its whole time.
            let (one, other) = tokio::join!(reach(peers.next()), reach(peers.next()));
            found.extend(one.into_iter().chain(other));
            Ok(found)
        })
        .map(|found: Vec<Finding>| found.into_iter().for_each(|finding| self.found(finding)))
    }
}
