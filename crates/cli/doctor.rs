//! `veilsum doctor`: whether this machine, its files and the way to the others are fit for a run, and what to do where not.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use clap::Args;
use serde_json::json;
use veilsum_node::{
    answerer::Answerer,
    app_messages::SOFTWARE,
    carrier::{Address, Proxy},
    checkup::{self, Caller, Finding, Outcome, Rule},
    cost::counted,
    documents::{
        self, Federation, Federations, RowsFrom, SitePolicy, Standing, fingerprint, load_identity, load_plan,
        load_roster, policy_of, roster_fingerprint, whoami,
    },
    error::{Code, Failure},
    release::{Account, Known, Origin},
    schema::Schema,
    store::{Ledger, next_of},
    table,
};
use veilsum_proto::{
    identity::Identity,
    policy::rho_text,
    roster::{Member, PartyId, Roster},
    suite::VERSION,
};

use crate::{
    party::{block_on, head_of, key_beside, state_of},
    policy::judged,
    verb::{Verb, listed},
};

/// Check key, files, budget and the way to the others before a run; prints the table for a firewall
#[derive(Args, Debug, Clone)]
pub(crate) struct DoctorArgs {
    /// This party's secret key file [default: the only *.key file beside the roster]
    ///
    /// Its place on the roster says whether this is a site, the coordinator or the intermediary.
    #[arg(long, value_name = "FILE.key")]
    pub key: Option<PathBuf>,
    /// The federation's roster [default: roster.toml, where it is there]
    #[arg(long, value_name = "FILE")]
    pub roster: Option<PathBuf>,
    /// The plan [default: plan.toml, where it is there]
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// The federation's schema [default: schema.toml beside the roster, where it is there]
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,
    /// This site's rows: a file, a folder, a pattern or - [default: `source` under [rows] in site.toml]
    #[arg(long, value_name = "ROWS")]
    pub data: Option<PathBuf>,
    /// This site's own policy [default: site.toml beside the key, else the default]
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Folder for this party's journal and ledger [default: beside the key]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Seconds for one attempt to reach somebody
    #[arg(long, value_name = "SECONDS", default_value_t = 3)]
    pub timeout: u64,
}

/// Where the roster is, if nobody says.
const ROSTER: &str = "roster.toml";

impl Verb for DoctorArgs {
    /// Runs `veilsum doctor`.
    ///
    /// # Errors
    /// A [`Failure`] with the code of the first check that failed.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let found = key_beside(self.key.as_ref(), self.roster.as_deref().unwrap_or(Path::new(ROSTER)));
        let args = DoctorArgs { key: found.as_ref().ok().cloned(), ..self.clone() };
        let mut doctor = Doctor { keyless: found.err().map(|why| why.message), ..Doctor::default() };
        doctor.examine(&args)?;
        doctor.report(json)
    }
}

#[derive(Default)]
struct Doctor {
    findings: Vec<Finding>,
    rules: Vec<Rule>,
    role: Option<String>,
    /// Why no key was taken, where none was named.
    keyless: Option<String>,
}

/// What was read of a party's files; what is missing was said.
#[derive(Default)]
struct Papers {
    identity: Option<Arc<Identity>>,
    roster: Option<Roster>,
    me: Option<PartyId>,
    schema: Option<Schema>,
    federation: Option<Federation>,
    site: Option<SitePolicy>,
    rows: Option<(Arc<dyn Answerer>, Origin)>,
    account: Option<Account>,
}

/// Where this site's rows are.
fn rows_of(args: &DoctorArgs) -> Result<RowsFrom, Failure> {
    let (site, file) = policy_of(args.policy.as_deref(), args.key.as_deref())?;
    site.rows_from(args.data.as_deref(), file.as_deref(), args.key.as_deref())
}

impl Doctor {
    fn pass(&mut self, check: &str, says: impl ToString) {
        self.findings.push(Finding::pass(check, says));
    }

    fn skip(&mut self, check: &str, why: &str) {
        self.findings.push(Finding::skip(check, why));
    }

    /// The value, or a finding that says why there is none.
    fn took<T>(&mut self, check: &str, read: Result<T, Failure>) -> Option<T> {
        read.map_err(|failure| self.findings.push(Finding::fail(check, failure))).ok()
    }

    fn examine(&mut self, args: &DoctorArgs) -> Result<(), Failure> {
        let mut papers = Papers::default();
        self.pass("version", format!("{SOFTWARE}, wire version {VERSION}"));
        self.findings.push(checkup::clock(SystemTime::now()));
        self.key(args, &mut papers);
        self.roster(args, &mut papers);
        self.schema(args, &mut papers);
        self.plan(args, &mut papers);
        if !matches!(papers.me, Some(PartyId::Coordinator | PartyId::Intermediary)) {
            self.policy(args, &mut papers);
            self.rows(args, &mut papers);
            self.ledger(args, &mut papers);
            self.budget(&papers);
        }
        match &args.key {
            Some(key) => self.findings.push(checkup::disk(&state_of(key, args.state.as_ref()))),
            None => self.skip("disk", "the folder of the state lies beside the key: give --key"),
        }
        self.network(args, &papers)
    }

    fn key(&mut self, args: &DoctorArgs, papers: &mut Papers) {
        let Some(path) = &args.key else {
            let why = self.keyless.take().unwrap_or_default();
            return self.skip("key", &format!("{why}: give --key FILE.key"));
        };
        if let Some((identity, name)) = self.took("key", load_identity(path)) {
            let card = fingerprint(&identity.public().0);
            self.pass(
                "key",
                format!("{}: the secret key of {name}, open to its owner alone; its card has {card}", path.display()),
            );
            papers.identity = Some(Arc::new(identity));
        }
    }

    fn roster(&mut self, args: &DoctorArgs, papers: &mut Papers) {
        let Some(path) = named_or(args.roster.as_deref(), ROSTER) else {
            return self.skip("roster", "give --roster FILE; what follows from it is not checked");
        };
        let Some(roster) = self.took("roster", load_roster(&path)) else { return };
        let print = roster_fingerprint(&roster.hash());
        let who = format!("{} with {}", roster.name, counted(roster.sites.len(), "site"));
        self.pass(
            "roster",
            format!("{}: {who}, signed by {}; fingerprint {print}", path.display(), roster.coordinator.name),
        );
        if let (Some(identity), Some(key)) = (&papers.identity.clone(), &args.key)
            && !self.waits_for(key, &roster)
            && let Some(me) =
                self.took("role", documents::Offered { file: &path, roster: &roster, key, identity }.whoami())
        {
            let role = match me {
                PartyId::Coordinator => "the coordinator",
                PartyId::Intermediary => "the intermediary",
                PartyId::Site(_) => "a site",
            };
            self.pass("role", format!("this key is {}, {role}", roster.name_of(me)));
            self.role = Some(role.trim_start_matches("the ").trim_start_matches("a ").to_owned());
            papers.me = Some(me);
            // The coordinator makes the roster, and is asked for no fingerprint.
            if me != PartyId::Coordinator {
                self.agreed(&path, key, identity, &roster);
            }
        }
        papers.roster = Some(roster);
    }

    /// Whether the roster has this party's next key, which it takes up when it is started.
    fn waits_for(&mut self, key: &Path, roster: &Roster) -> bool {
        let next = load_identity(next_of(key)).ok().and_then(|(next, _)| whoami(roster, &next).ok());
        let Some(me) = next else { return false };
        self.findings.push(Finding::warn(
            "role",
            format!("the roster has the next key of {}, which waits beside this one", roster.name_of(me)),
            "start this party once: it takes up that key; then ask again".to_owned(),
        ));
        true
    }

    fn agreed(&mut self, path: &Path, key: &Path, identity: &Identity, roster: &Roster) {
        let offered = documents::Offered { file: path, roster, key, identity };
        let Some(known) = self.took("agreed", Federations::load(key, identity)) else { return };
        let standing = offered.history().and_then(|history| offered.standing(&known, &history));
        let Some(standing) = self.took("agreed", standing) else { return };
        match standing {
            Standing::Rekeyed { .. } => self.pass(
                "agreed",
                "only keys are others than in the roster that was agreed to, each signed with the one before it",
            ),
            Standing::Agreed => {
                self.pass("agreed", "this key's owner compared this roster with another member's and accepted it")
            }
            Standing::New => {
                let unheard = offered.unheard();
                self.findings.push(Finding::warn("agreed", unheard.message, unheard.advice));
            }
            Standing::Changed { .. } => {
                self.took("agreed", offered.agree(None, None));
            }
        }
    }

    fn plan(&mut self, args: &DoctorArgs, papers: &mut Papers) {
        let Some(roster) = &papers.roster else { return self.skip("plan", "it is read with its roster") };
        let Some(path) = named_or(args.plan.as_deref(), "plan.toml") else {
            return self.skip("plan", "give --plan FILE; what follows from it is not checked");
        };
        let made = load_plan(&path, roster)
            .and_then(|terms| Federation::new(roster.clone(), terms)?.under(papers.schema.clone()));
        let Some(federation) = self.took("plan", made) else { return };
        let hash = fingerprint(&federation.terms.hash().0);
        let method = federation.work.method_name();
        self.pass("plan", format!("{}: {method}, signed and made for this roster; fingerprint {hash}", path.display()));
        papers.federation = Some(federation);
    }

    /// The schema by itself; with rows, whether they fit to it.
    fn schema(&mut self, args: &DoctorArgs, papers: &mut Papers) {
        let roster = args.roster.as_deref().unwrap_or(Path::new(ROSTER));
        let Some(path) = args.schema.clone().or_else(|| documents::schema_file_beside(roster)) else { return };
        let Some(schema) = self.took("schema", documents::load_schema(&path)) else { return };
        let shown = path.display();
        let columns = counted(schema.columns.len(), "column");
        let aggregator = matches!(papers.me, Some(PartyId::Coordinator | PartyId::Intermediary));
        match rows_of(args).ok().filter(|from| !aggregator && from.answerer.is_none()) {
            None => self.pass("schema", format!("{shown}: {columns}; whether rows fit to it needs --data")),
            // A number outside its range is the plan's to refuse or to move, and the check of the rows says so.
            Some(from) => {
                let data = &from.data;
                if let Some(fit) = self.took("schema", documents::fit_of(&schema, &from, false)) {
                    match fit.failure(data) {
                        Some(failure) => self.findings.push(Finding::fail("schema", failure)),
                        None => self.pass("schema", format!("{} fits to the {columns} of {shown}", data.display())),
                    }
                }
            }
        }
        if let Some(other) = documents::other_schema(roster) {
            let failure = documents::schema_differs(&other);
            self.findings.push(Finding::warn("schema", failure.message, failure.advice));
        }
        papers.schema = Some(schema);
    }

    fn policy(&mut self, args: &DoctorArgs, papers: &mut Papers) {
        if let Some((site, path)) = self.took("policy", policy_of(args.policy.as_deref(), args.key.as_deref())) {
            let from = path.map_or("the default".to_owned(), |path| path.display().to_string());
            self.pass("policy", format!("{from}, for the data set {:?}", site.data));
            papers.site = Some(site);
        }
    }

    fn rows(&mut self, args: &DoctorArgs, papers: &mut Papers) {
        let Ok(from) = rows_of(args) else {
            return self.skip("rows", "give --data ROWS, or `source` under [rows] in site.toml");
        };
        let place = from.place();
        let header = match &from.answerer {
            Some(_) => Some(Vec::new()),
            None => self.took("rows", table::read_header(&from.data).map_err(Failure::from)),
        };
        let Some(header) = header else { return };
        let Some(federation) = &papers.federation else {
            let names = counted(header.len(), "column");
            return self.skip("rows", &format!("{place}: {names}; which are needed, the plan says"));
        };
        let Some((rows, origin)) = self.took("rows", documents::load_rows_and_origin(federation, &from)) else {
            return;
        };
        if let Some(Err(full)) = papers.site.as_ref().map(|site| site.has_room(rows.rows())) {
            return self.findings.push(Finding::fail("rows", full));
        }
        let Some(reading) = self.took("rows", documents::reading_of(federation, &from)) else { return };
        let [used, ignored] = [&reading.used, &reading.ignored].map(|names| listed(names));
        let kept = reading.kept.map_or(String::new(), |label| format!("; the label, kept here: {label}"));
        // How many they are is the site's own, and a report like this one is sent to whoever helps.
        let says = format!("{place}: every row can be used");
        self.pass("rows", format!("{says}; columns that are used: {used}; that stay here: {ignored}{kept}"));
        papers.rows = Some((rows, origin));
    }

    fn ledger(&mut self, args: &DoctorArgs, papers: &mut Papers) {
        let (Some(identity), Some(key)) = (&papers.identity, &args.key) else {
            return self.skip("ledger", "it lies beside the key: give --key");
        };
        let looked = Ledger::look(&state_of(key, args.state.as_ref()), &head_of(key), identity).map_err(Failure::from);
        let Some(account) = self.took("ledger", looked) else { return };
        let spent = account.spent();
        if let Some((_, origin)) = &papers.rows {
            let Some(known) = self.took("ledger", account.recognises(origin, identity)) else { return };
            if !matches!(known, Known::Same(_)) {
                self.findings.push(Finding::fail("ledger", known.refusal()));
                papers.account = Some(account);
                return;
            }
        }
        let mut says = match spent.questions {
            0 => "whole, and nothing was given away yet".to_owned(),
            n => format!("whole, and as its head says: {} so far", counted(n as usize, "different answer")),
        };
        if let Some(SitePolicy { policy, .. }) = &papers.site {
            let (spent, cap) = (rho_text(spent.nano_rho), rho_text(policy.nano_rho));
            says += &format!("; rho {spent} is spent of {cap}");
        }
        self.pass("ledger", says);
        papers.account = Some(account);
    }

    /// What the policy and the account say to the plan.
    fn budget(&mut self, papers: &Papers) {
        let (Some(federation), Some(site), Some(account)) = (&papers.federation, &papers.site, &papers.account) else {
            return self.skip("answers", "whether this site answers the plan needs roster, plan, policy and ledger");
        };
        let judged = judged(federation, &site.policy, account);
        self.findings.push(match judged.is_yes() {
            true => Finding::pass("answers", judged.sentence()),
            false => Finding::fail("answers", Failure::new(Code::Policy, judged.sentence(), judged.next())),
        });
    }

    fn network(&mut self, args: &DoctorArgs, papers: &Papers) -> Result<(), Failure> {
        let (Some(identity), Some(roster), Some(me)) = (&papers.identity, &papers.roster, papers.me) else {
            self.skip("network", "whom to reach, and as whom, needs a key that is on the roster");
            return Ok(());
        };
        let proxy = self.took("proxy", Proxy::of_environment().map_err(Failure::from));
        match &proxy {
            None => {}
            Some(None) => self.pass("proxy", "none is named (HTTPS_PROXY)"),
            Some(Some(proxy)) => {
                let at = proxy.address();
                self.pass("proxy", format!("{at} is named by HTTPS_PROXY; TCP goes through it but for NO_PROXY"));
            }
        }
        let proxy = proxy.flatten();
        self.rules = checkup::firewall(roster, me, proxy.as_ref());
        let own = match me {
            PartyId::Coordinator => Some(&roster.coordinator),
            PartyId::Intermediary => Some(&roster.intermediary),
            PartyId::Site(_) => None,
        };
        let caller = Caller {
            identity: identity.clone(),
            roster,
            plan: papers.federation.as_ref().map(|federation| federation.terms.hash()),
            proxy,
            limit: Duration::from_secs(args.timeout.clamp(1, 60)),
        };
        let found = block_on(async {
            let mut found = Vec::new();
            if let Some(at) = own.and_then(|own| own.address.parse::<Address>().ok()) {
                found.push(checkup::port(identity, at.port()).await);
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
        })?;
        if checkup::no_run(&found, roster) {
            self.findings.extend(found.into_iter().map(|finding| finding.between_runs(&roster.intermediary)));
        } else {
            self.findings.extend(found);
        }
        Ok(())
    }

    fn count(&self, outcome: Outcome) -> usize {
        self.findings.iter().filter(|finding| finding.outcome == outcome).count()
    }

    /// Prints everything, and fails with the first failure's code.
    fn report(&self, json: bool) -> Result<(), Failure> {
        let [failed, warned, skipped] = [Outcome::Fail, Outcome::Warn, Outcome::Skip].map(|of| self.count(of));
        let all = self.findings.len();
        // Whether a run is possible shows only on the way to the others.
        let untried = self.findings.iter().any(|finding| finding.check == "network");
        let verdict = match (failed, warned, skipped) {
            (0, 0, 0) => format!("Yes: this party is ready; all {all} checks passed"),
            (0, w, s) => {
                let sure = if untried { "Not known: no connection was tried, and nothing" } else { "Yes: nothing" };
                format!("{sure} failed of {all} checks; {} to look at, {s} left out", counted(w, "thing"))
            }
            (f, ..) => format!("No: {f} of {all} checks failed"),
        };
        let first = self.findings.iter().find(|finding| finding.outcome == Outcome::Fail);
        let mut value = json!({
            "ready": failed == 0 && !untried, "says": verdict, "role": self.role, "software": SOFTWARE,
            "checks": self.findings, "firewall": self.rules,
        });
        if let Some(first) = first {
            value["error"] = json!({ "code": first.code, "message": first.says, "next": first.next });
        }
        crate::verb::print(json, &value, &self.text(&verdict))?;
        let Some(first) = first else { return Ok(()) };
        let code = Code::from_number(first.code.unwrap_or(0));
        Err(Failure::new(code, format!("{}: {}", first.check, first.says), first.next.clone()))
    }

    fn text(&self, verdict: &str) -> String {
        let mut text = format!("{verdict}.\n\n");
        let width = self.findings.iter().map(|finding| finding.check.chars().count()).max().unwrap_or(0);
        for Finding { check, outcome, says, next, .. } in &self.findings {
            let word = match outcome {
                Outcome::Pass => "PASS",
                Outcome::Warn => "WARN",
                Outcome::Fail => "FAIL",
                Outcome::Skip => "SKIP",
            };
            text += &format!("{word}  {check:<width$}  {says}\n");
            if !next.is_empty() {
                text += &format!("      {:<width$}  next: {next}\n", "");
            }
        }
        if self.role.is_some() {
            text += "\nFor the network team: what a firewall has to let through. Answers belong to these connections; nothing else comes in.\n";
            text += &table_of(&self.rules);
        }
        text
    }
}

/// The rules as lines of equal columns.
fn table_of(rules: &[Rule]) -> String {
    let head = ["direction", "from", "to", "port", "protocol", "why"].map(str::to_owned);
    let lines = rules.iter().map(|rule| {
        let Rule { direction, from, to, port, protocol, why } = rule;
        [direction.to_string(), from.clone(), to.clone(), port.to_string(), protocol.to_string(), why.clone()]
    });
    let lines: Vec<[String; 6]> = std::iter::once(head).chain(lines).collect();
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let widths: [usize; 5] = std::array::from_fn(width);
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> = line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text += &format!("  {}  {}\n", cells.join("  "), line[5]);
    }
    text
}

/// The file that was named, or the usual one where it is there.
fn named_or(given: Option<&Path>, usual: &str) -> Option<PathBuf> {
    given.map(Path::to_owned).or_else(|| Some(PathBuf::from(usual)).filter(|path| path.exists()))
}
