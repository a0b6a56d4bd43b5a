//! `veilsum join`: a party's side of joining by one line.

use std::{
    ffi::OsString,
    io::BufRead,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::Args;
use serde_json::json;
use veilsum_node::{
    documents::{
        self, Begun, Offered, Pinned, Standing, answer_line, check_address, columns_beside, fingerprint, load_roster,
        parse_invitation, policy_of, whole_rho,
    },
    door::{
        Event, Note,
        ledger::{self, FILE, HEAD},
    },
    error::{Code, Failure},
    files::{self, Existing, quoted},
    random::drawn,
    role::{
        join::{self, JoinConfig},
        stop,
    },
    table::{self, Dialect},
};
use veilsum_proto::{
    identity::Identity,
    joining::{Invitation, Nonce, Reply, Role},
};
use zeroize::Zeroizing;

use crate::{
    key::{key_of, site_of},
    party::{Reach, agree, block_on, keys_in, name_sites, state_of},
    run::standby::alone,
    terminal::somebody_is_there,
    verb::Verb,
};

/// How often it is looked whether this party has agreed to the roster meanwhile.
const LOOK: Duration = Duration::from_secs(2);

/// Join a federation by the line that its coordinator sent
#[derive(Args, Debug)]
pub(crate) struct JoinArgs {
    /// The invitation, in quotes: `vs1:…`; a dash reads it from standard input
    #[arg(value_name = "LINE", allow_hyphen_values = true)]
    pub line: String,
    /// Where the sites will find this party; for an intermediary only
    #[arg(long, value_name = "HOST:PORT")]
    pub address: Option<String>,
    /// This site's rows, for --run
    #[arg(long, value_name = "ROWS", requires = "run")]
    pub data: Option<PathBuf>,
    /// Stand by for plans at once, as `run` does
    ///
    /// If nobody sits at a terminal, it waits until the roster was agreed to: `veilsum agree`.
    #[arg(long)]
    pub run: bool,
    /// Connect to nobody: print an answer, which is brought to the coordinator (`veilsum federation approve PARTY=ANSWER`)
    ///
    /// Roster and plan are then brought here as files.
    #[arg(long, conflicts_with_all = ["run", "data"])]
    pub offline: bool,
    /// Begin a new account although this site took part before: its state folder is lost
    #[arg(long)]
    pub new_account: bool,
    /// What other state folders spent for these people before, in rho of a site's own noise; a new account counts it
    #[arg(long, value_name = "RHO", default_value = "0", value_parser = whole_rho)]
    pub spent: u64,
    /// Folder for the key (mode 0600), columns.toml, roster.toml and plan.toml
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
    /// Which way the link takes.
    #[command(flatten)]
    pub reach: Reach,
}

impl Verb for JoinArgs {
    /// Joins. There is no deadline.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let (args, folder) = (self, &self.folder);
        let invitation = parse_invitation(&args.line()?)?;
        let address = args.address.clone().unwrap_or_default();
        check_address(&address).map_err(|f| Failure { code: Code::Usage, ..f })?;
        let wrong = match (invitation.role, address.is_empty()) {
            (Role::Intermediary, true) => {
                Some(("intermediary, and the sites must reach it", "say where: --address HOST:PORT"))
            }
            (Role::Intermediary, false) if args.data.is_some() => {
                Some(("intermediary, which has no rows", "leave --data out"))
            }
            (Role::Site, false) => Some(("a site, which only dials out", "leave --address out")),
            _ => None,
        };
        if let Some((what, next)) = wrong {
            return Err(Failure::usage(format!("{} is invited as {what}", invitation.party), next));
        }
        let (roster, plan) = (folder.join("roster.toml"), folder.join("plan.toml"));
        if roster.exists() {
            let there = load_roster(&roster)?;
            if there.name != invitation.federation {
                let what = format!("{}: this is the roster of another federation, {}", roster.display(), there.name);
                return Err(Failure::input(what, "join in a folder of its own: --folder DIR"));
            }
        }
        let key = folder.join(format!("{}.key", invitation.party));
        if let Some(agreed) = Pinned::load(&key)?.roster.filter(|of| of.coordinator.key != invitation.coordinator) {
            let name = &agreed.name;
            let what =
                format!("this party agreed to the federation {name}, and the invitation is of another coordinator");
            let next =
                "join in a folder of its own: --folder DIR; if the coordinator's key changed, ask it by telephone";
            return Err(Failure::input(what, next));
        }
        if let Some(other) = keys_in(folder).iter().find(|path| **path != key) {
            let what = format!("{}: another party has its key in this folder", other.display());
            return Err(Failure::input(what, "join in a folder of its own: --folder DIR"));
        }
        // Before anybody is called.
        self.look(&key)?;
        let mut made = Made {
            key: key.clone(),
            is_new: !key.exists(),
            folder: !folder.exists(),
            account: false,
            invitation: invitation.token.hash(),
        };
        let no_folder =
            |e| Failure::input(format!("{} cannot be made ({e})", folder.display()), "choose another --folder");
        std::fs::create_dir_all(folder).map_err(no_folder)?;
        let identity = if invitation.role == Role::Site {
            let (identity, began) = site_of(&key, &invitation.party, self.new_account, self.spent)?;
            made.account = began;
            identity
        } else {
            key_of(&key, &invitation.party)?
        };
        let identity = Arc::new(identity);
        let (party, role, federation) = (invitation.party.clone(), invitation.role, invitation.federation.clone());
        let at = key.display();
        crate::tell!("joining {federation} as {party} ({}) with the key {at}, which stays here", role.name());
        if self.offline {
            return answer(&identity, &invitation, &address, &key, json);
        }
        let joined = block_on(join::run(JoinConfig {
            identity: identity.clone(),
            invitation,
            address,
            key: key.clone(),
            roster: roster.clone(),
            plan: (!self.run).then(|| plan.clone()),
            carrier: args.reach.carrier()?,
            news: Arc::new(|told| crate::tell!("{told}")),
        }))
        .inspect_err(|_| made.undo())?;
        let offered = Offered { file: &roster, roster: &joined, key: &key, identity: &identity };
        let mut standing = offered.standing()?;
        if standing == Standing::New && somebody_is_there() {
            agree(&offered, None)?;
            standing = Standing::Agreed;
        }
        if standing == Standing::Agreed {
            // It may have joined anew, with an account that names no sites yet.
            name_sites(&offered, None)?;
        }
        if role == Role::Site {
            self.rows_fit(&key);
        }
        if self.run {
            return self.stand_by(&offered, &key, json);
        }
        let again = self.keep_source(&key)?;
        let next = match (&standing, role) {
            (Standing::New | Standing::Changed(_), _) => "veilsum agree roster.toml --fingerprint 'WORDS'".to_owned(),
            (_, Role::Site) if self.data.is_none() => "veilsum run --data ROWS.csv".to_owned(),
            _ => again,
        };
        let agreed = standing == Standing::Agreed;
        let next = if folder.as_os_str() == "." { next } else { format!("cd {} && {next}", quoted(folder)) };
        let value = json!({ "federation": federation, "party": party, "role": role.name(), "key_file": key.display().to_string(),
            "roster": roster.display().to_string(), "plan": plan.display().to_string(), "agreed": agreed, "next": next });
        let mut text = format!("{party} has joined {federation}\n");
        if plan.is_file() {
            text += "see what is asked: veilsum plan check\n";
        }
        if !agreed {
            text += "In a call with all operators the coordinator's reads the words of the roster; compare them: veilsum verify roster.toml\n";
        }
        crate::verb::print(json, &value, &format!("{text}next: {next}"))
    }
}

/// Prints what is brought to the coordinator in place of a connection ([JOI-8]). Asked once more, it says the same.
fn answer(identity: &Identity, invitation: &Invitation, address: &str, key: &Path, json: bool) -> Result<(), Failure> {
    let begun = Begun::take_up(key, invitation.token.hash(), Nonce(drawn()))?;
    let line = answer_line(&Reply::new(identity, invitation, address, begun.nonce));
    let (party, print) = (&invitation.party, fingerprint(&identity.public().0));
    let text = format!(
        "{}\n\nBring this line to the coordinator alone: veilsum federation approve {party}=ANSWER. Your key is {print}.\nThe roster comes back \
         as a file. Lay it here as roster.toml, and agree to it in a call with all operators\nnext: veilsum agree roster.toml",
        *line
    );
    let value = json!({ "party": party, "role": invitation.role.name(), "answer": *line, "key": print });
    crate::verb::print(json, &value, &text)
}

/// What an attempt to join makes.
struct Made {
    key: PathBuf,
    is_new: bool,
    folder: bool,
    account: bool,
    invitation: veilsum_proto::suite::Hash,
}

impl Made {
    /// Who was refused at the door has nothing of it: the invitation is void, and a key that nobody knows is of no use.
    fn undo(&self) {
        if !self.is_new
            || Pinned::load(&self.key)
                .is_ok_and(|pinned| pinned.joining.iter().any(|begun| begun.invitation == self.invitation))
        {
            return;
        }
        if self.account
            && let Ok(state) = state_of(&self.key, None)
            && ledger::all(&state)
                .is_ok_and(|entries| entries.iter().all(|e| matches!(e.event, Event::Note(Note::Account(_)))))
        {
            let lock = Path::new(FILE).with_added_extension("lock");
            for file in [Path::new(HEAD), Path::new(FILE), &lock] {
                let _ = std::fs::remove_file(state.join(file));
            }
            let _ = std::fs::remove_dir(state);
        }
        let _ = std::fs::remove_file(&self.key);
        if let Some(folder) = self.key.parent().filter(|_| self.folder) {
            // Where there is something else in it, it stays.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

impl JoinArgs {
    /// Whether the rows are where they are said to be, under a header that the site's settings fit; with `columns.toml` also whether they fit
    /// to that. Tells whether there was one to fit to.
    ///
    /// # Errors
    /// A [`Failure`] that says what to mend.
    fn look(&self, key: &Path) -> Result<bool, Failure> {
        let Some(data) = self.data.as_deref().filter(|data| data.as_os_str() != "-") else { return Ok(false) };
        let (site, file) = policy_of(None, Some(key))?;
        let from = site.rows_from(Some(data), file.as_deref(), Some(key))?;
        let dialect = Dialect { by_line: true, ..from.rules.dialect() };
        table::open(&from.data, dialect)?;
        match columns_beside(&self.folder.join("roster.toml"))? {
            Some(columns) => documents::look_at_columns(columns.of_plan(), false, &from).map(|_| true),
            None => Ok(false),
        }
    }

    /// Says whether the rows fit to the columns that came with the roster. The operator may mend them while this site stands by.
    fn rows_fit(&self, key: &Path) {
        let Some(data) = self.data.as_deref().filter(|data| data.as_os_str() != "-") else {
            crate::tell!("look whether your rows fit: veilsum check --data ROWS.csv");
            return;
        };
        match self.look(key) {
            Ok(true) => crate::tell!("{} has the columns that the federation wants", data.display()),
            Ok(false) => crate::tell!("{} can be read; no columns came with the roster", data.display()),
            Err(failure) => {
                crate::tell!("the rows do not fit yet: {}\nnext: {}", failure.message, failure.advice);
            }
        }
    }

    /// Keeps where the rows are in `site.toml`, if there is none yet, so that `veilsum run` alone finds them. The command for the next time.
    fn keep_source(&self, key: &Path) -> Result<String, Failure> {
        let Some(data) = &self.data else { return Ok("veilsum run".to_owned()) };
        let (site, file) = policy_of(None, Some(key))?;
        if file.is_none() && data.as_os_str() != "-" {
            let at = std::path::absolute(data).unwrap_or_else(|_| data.clone());
            let Some(source) = at.to_str().map(|at| toml::Value::String(at.to_owned())) else {
                return Ok(format!("veilsum run --data {}", quoted(data)));
            };
            let text = format!("# Where this site's rows are.\n[rows]\nsource = {source}\n");
            files::write_private(key.with_file_name("site.toml"), text.as_bytes(), Existing::Refuse)?;
            crate::tell!("site.toml says where the rows are");
        } else if site.rows.source.as_deref().is_none_or(|source| key.with_file_name(source) != *data) {
            return Ok(format!("veilsum run --data {}", quoted(data)));
        }
        Ok("veilsum run".to_owned())
    }

    /// Goes on as `veilsum run` in this folder, once the roster was agreed to.
    fn stand_by(&self, offered: &Offered<'_>, key: &Path, json: bool) -> Result<(), Failure> {
        let mut said = String::new();
        // Whoever agrees meanwhile sees that this party needs no other command.
        let waits = alone(key)?;
        let agreed = async {
            while let Err(failure) = offered.passes() {
                if failure.message != said {
                    crate::verb::tell(&failure);
                    said.clone_from(&failure.message);
                }
                tokio::time::sleep(LOOK).await;
            }
            Ok(())
        };
        block_on(stop::unless_told(agreed, "start it again whenever you like: veilsum run"))?;
        drop(waits);
        let again = self.keep_source(key)?;
        crate::tell!(
            "standing by from now on; next time type `{again}` here, or let a service do it (packaging/README.md)"
        );
        let (folder, out) = (self.folder.as_os_str(), self.folder.join("results"));
        let mut words = ["run", "--folder"].map(OsString::from).to_vec();
        words.extend([folder.to_owned(), "--out".into(), out.into(), "--key".into(), key.into()]);
        words.extend(["--transport".into(), self.reach.transport.to_string().into()]);
        words.extend(self.data.iter().flat_map(|data| ["--data".into(), data.as_os_str().to_owned()]));
        crate::again(words, json)
    }

    fn line(&self) -> Result<Zeroizing<String>, Failure> {
        let mut line = Zeroizing::new(String::new());
        if self.line != "-" {
            line.push_str(&self.line);
            return Ok(line);
        }
        let next = "give the line as an argument, in quotes";
        let read = std::io::stdin().lock().read_line(&mut line);
        read.map_err(|e| Failure::input(format!("standard input cannot be read ({e})"), next)).map(|_| line)
    }
}
