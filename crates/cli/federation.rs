//! `veilsum federation`: create, invite, approve, remove, show. The coordinator's side of joining by one line.

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use veilsum_node::{
    checkup,
    clock::seconds_since_1970,
    cost::some_of,
    documents::{
        GuestList, Stage, adopt_columns, check_address, columns_text, fingerprint, invitation_line, load_identity,
        load_signed_roster, parse_answer, roster_fingerprint, write_roster,
    },
    error::{Code, Failure},
    random::{drawn, system_rng},
};
use veilsum_proto::{
    identity::{Identity, PublicKey},
    joining::{self, Invitation, Nonce, Token},
    roster::{Member, check_name},
};

use crate::{
    key::key_of,
    party::listen_at,
    terminal::{TRIES, somebody_is_there, typed},
    verb::Verb,
    words::fingerprint_line,
};

const DAY: u64 = 24 * 60 * 60;

/// Found a federation: create, invite, approve, remove, show
#[derive(Args, Debug)]
pub(crate) struct FederationArgs {
    /// What to do with it
    #[command(subcommand)]
    pub command: FederationCommand,
}

/// What to do with a federation.
#[derive(Subcommand, Debug)]
pub(crate) enum FederationCommand {
    /// Found a federation in a folder: its coordinator's key, and the list of whom it invites
    Create(CreateArgs),
    /// Print an invitation for each party: one line, for one use, to be sent to that party alone
    Invite(InviteArgs),
    /// Let a party in, once its operator has read its 12 digits to you by telephone
    Approve(ApproveArgs),
    /// Say no to a party that waits, take an invitation back, or take a member out of the roster
    ///
    /// A roster without a member is signed again, and every party has to agree to it.
    Remove(PartyArgs),
    /// Print who was invited, who waits, and who is in
    Show(ShowArgs),
}

/// Where the federation is kept.
#[derive(Args, Debug, Clone)]
pub(crate) struct FolderArgs {
    /// Folder of the federation
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
}

/// `veilsum federation create`
#[derive(Args, Debug)]
pub(crate) struct CreateArgs {
    /// Name of the federation: letters, digits, `-`, `_`, `.`
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Where the other parties will find the coordinator; many networks let nobody out but to port 443
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: String,
    /// Name of the coordinator; its key is NAME.key in the folder
    ///
    /// It is made if it is not there.
    #[arg(long, value_name = "NAME", default_value = "coordinator")]
    pub party: String,
    /// What the columns of the federation are; it is handed to everybody who joins
    ///
    /// It is copied into the folder as columns.toml. One that lies there already need not be named.
    #[arg(long, value_name = "FILE")]
    pub columns: Option<PathBuf>,
    /// Sites to invite at once, as with `invite`
    #[arg(long = "site", value_name = "PARTY", num_args = 1..)]
    pub sites: Vec<String>,
    /// The intermediary to invite at once, and where it will listen; another organisation
    #[arg(long, value_name = "PARTY[=HOST:PORT]", value_parser = named)]
    pub intermediary: Option<Named>,
    /// Days for which these invitations are good
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u64).range(1..=365))]
    pub days: u64,
    /// Serve the parties at once, as `run` does; everything else is typed in another window
    #[arg(long)]
    pub run: bool,
    /// Where.
    #[command(flatten)]
    pub at: FolderArgs,
}

/// Name of a party, and where it will listen.
type Named = (String, Option<String>);

fn named(text: &str) -> Result<Named, String> {
    let Some((party, address)) = text.split_once('=') else { return Ok((text.to_owned(), None)) };
    check_address(address).map_err(|failure| failure.message)?;
    if address.is_empty() {
        Err("the address is empty".into())
    } else {
        Ok((party.to_owned(), Some(address.to_owned())))
    }
}

/// What a party is invited to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Role {
    /// It has rows
    Site,
    /// It counts rows, and belongs to another organisation than the coordinator
    Intermediary,
}

/// `veilsum federation invite`
#[derive(Args, Debug)]
pub(crate) struct InviteArgs {
    /// Name of a party: letters, digits, `-`, `_`, `.`; of an intermediary also where it will listen
    #[arg(value_name = "PARTY[=HOST:PORT]", required = true, value_parser = named)]
    pub parties: Vec<Named>,
    /// What it will be
    #[arg(long, value_enum, default_value_t = Role::Site)]
    pub role: Role,
    /// Days for which the invitation is good
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u64).range(1..=365))]
    pub days: u64,
    /// Where.
    #[command(flatten)]
    pub at: FolderArgs,
}

/// `veilsum federation approve`
#[derive(Args, Debug)]
pub(crate) struct ApproveArgs {
    /// A party, and the 12 digits that its operator read to you, or the answer of `join --offline`; without them the digits are asked for on
    /// a terminal
    ///
    /// The digits are not shown before they are typed: what counts is what the other end sees. Whoever stands between the two ends
    /// has the same digits at both with a probability of one in 10^12.
    #[arg(value_name = "PARTY[=DIGITS|ANSWER]", required = true)]
    pub parties: Vec<String>,
    /// Where.
    #[command(flatten)]
    pub at: FolderArgs,
}

/// `veilsum federation show`
#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// A line for each party, also where more than five are at the same point
    #[arg(long)]
    pub all: bool,
    /// Where.
    #[command(flatten)]
    pub at: FolderArgs,
}

/// `veilsum federation remove`
#[derive(Args, Debug)]
pub(crate) struct PartyArgs {
    /// Name of the party
    #[arg(value_name = "PARTY")]
    pub party: String,
    /// Where.
    #[command(flatten)]
    pub at: FolderArgs,
}

impl Verb for FederationArgs {
    /// Runs `veilsum federation`.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    fn run(&self, json: bool) -> Result<(), Failure> {
        match &self.command {
            FederationCommand::Create(args) => {
                create(args, json)?;
                if !args.run {
                    return Ok(());
                }
                crate::tell!("from now on type `veilsum run` here to serve this federation again");
                crate::again(vec!["run".into(), "--folder".into(), args.at.folder.clone().into()], json)
            }
            FederationCommand::Invite(args) => {
                let role = match args.role {
                    Role::Site => joining::Role::Site,
                    Role::Intermediary => joining::Role::Intermediary,
                };
                if let (Role::Site, Some((party, _))) = (args.role, args.parties.iter().find(|(_, at)| at.is_some())) {
                    let what = format!("{party} is invited as a site, which nobody calls");
                    return Err(Failure::usage(what, "leave its address out, or say --role intermediary"));
                }
                let parties: Vec<_> = args.parties.iter().map(|party| (party.clone(), role)).collect();
                invite(&args.at.folder, &parties, (args.days, SERVE), json)
            }
            FederationCommand::Approve(args) => approve(args, json),
            FederationCommand::Remove(args) => remove(args, json),
            FederationCommand::Show(args) => show(args, json),
        }
    }
}

fn create(args: &CreateArgs, json: bool) -> Result<(), Failure> {
    let folder = &args.at.folder;
    for name in [&args.name, &args.party] {
        check_name(name).map_err(|why| Failure::usage(why, "a name has letters, digits, `-`, `_` and `.`"))?;
    }
    if args.listen.is_empty() {
        return Err(Failure::usage("the address is empty", "say --listen HOST:PORT"));
    }
    check_address(&args.listen).map_err(|f| Failure { code: Code::Usage, ..f })?;
    let list = GuestList::within(folder);
    for there in [list, folder.join("roster.toml")] {
        if there.exists() {
            let what = format!("{}: there is a federation in this folder already", there.display());
            return Err(Failure::input(what, "choose another --folder"));
        }
    }
    if args.listen.parse().is_ok_and(|at: SocketAddr| at.ip().is_unspecified()) {
        let what = format!("--listen {}: nobody finds the coordinator there", args.listen);
        return Err(Failure::usage(what, "name this machine as the other parties reach it: --listen HOST:PORT"));
    }
    if args.run {
        let at =
            listen_at(None, &Member { name: String::new(), key: PublicKey([0; 32]), address: args.listen.clone() })?;
        checkup::is_free(at).map_err(|e| {
            let what = format!("{at} cannot be opened on this machine ({e}); nothing was founded");
            Failure::new(Code::Network, what, "end the program that has the port, or choose another one")
        })?;
    }
    std::fs::create_dir_all(folder)
        .map_err(|e| Failure::input(format!("{} cannot be made ({e})", folder.display()), "choose another --folder"))?;
    // Also where it lies there already: one that cannot be used is said before anybody is invited.
    match &args.columns {
        Some(columns) => adopt_columns(folder, columns)?,
        None => drop(columns_text(folder)?),
    }
    let identity = key_of(&folder.join(format!("{}.key", args.party)), &args.party)?;
    let coordinator = Member { name: args.party.clone(), key: identity.public(), address: args.listen.clone() };
    GuestList::found(folder, &args.name, coordinator)?;
    let sites = args.sites.iter().map(|party| ((party.clone(), None), joining::Role::Site));
    let intermediary = args.intermediary.iter().map(|party| (party.clone(), joining::Role::Intermediary));
    let parties: Vec<_> = sites.chain(intermediary).collect();
    crate::tell!("copy {0}.key to a safe place now: nothing takes the place of a coordinator's key", args.party);
    if !args.listen.ends_with(":443") {
        crate::tell!("many networks let their machines out to port 443 alone: --listen HOST:443 reaches most sites");
    }
    if parties.is_empty() {
        let value = json!({ "federation": args.name, "fingerprint": fingerprint(&identity.public().0) });
        let text = format!("founded {}\nnext: veilsum federation invite PARTY", args.name);
        return crate::verb::print(json, &value, &text);
    }
    invite(folder, &parties, (args.days, if args.run { "" } else { SERVE }), json)
}

/// What comes after an invitation, where nobody serves the federation yet.
const SERVE: &str = "next: veilsum run";

/// Prints a line for each party, and what comes next; in the folder there is a hash of its token alone ([JOI-1]).
fn invite(
    folder: &Path,
    parties: &[(Named, joining::Role)],
    (days, next): (u64, &str),
    json: bool,
) -> Result<(), Failure> {
    let expires = seconds_since_1970() + days * DAY;
    let invitations = GuestList::change(folder, |list| {
        let mut made = Vec::new();
        for ((party, _), role) in parties {
            let token = Token::generate(&mut system_rng());
            list.invite(party, *role, token.hash(), expires)?;
            made.push(Invitation {
                federation: list.federation.clone(),
                party: party.clone(),
                role: *role,
                address: list.coordinator.address.clone(),
                coordinator: list.coordinator.key,
                expires,
                token,
            });
        }
        Ok(made)
    })?;
    let (mut values, mut text, mut open) = (Vec::new(), String::new(), "");
    for (invitation, ((_, given), _)) in invitations.iter().zip(parties) {
        let line = invitation_line(invitation);
        let address = match (invitation.role, given) {
            (joining::Role::Site, _) => String::new(),
            (_, Some(address)) => format!(" --address {address}"),
            (_, None) => {
                open = "HOST:PORT is where the sites will find the intermediary: it puts its own address there.\n";
                " --address HOST:PORT".to_owned()
            }
        };
        let (party, role) = (&invitation.party, invitation.role.name());
        values.push(json!({ "party": party, "role": role, "line": *line, "expires": expires }));
        text += &format!("{party} ({role}):\nveilsum join '{}'{address}\n\n", *line);
    }
    text += &format!(
        "{open}Send each line to its party alone: whoever uses it first waits in that party's place. It is good for {days} days and one use.\n{next}"
    );
    crate::verb::print(json, &json!({ "invitations": values }), &text)
}

/// The coordinator's identity, from its key in the folder.
pub(crate) fn identity_of(folder: &Path, list: &GuestList) -> Result<Identity, Failure> {
    let (identity, _) = load_identity(folder.join(format!("{}.key", list.coordinator.name)))?;
    if identity.public() == list.coordinator.key {
        return Ok(identity);
    }
    let what = format!("{}.key is not the key with which the federation was founded", list.coordinator.name);
    Err(Failure::input(what, "put that key back: every invitation names it"))
}

fn approve(args: &ApproveArgs, json: bool) -> Result<(), Failure> {
    let folder = &args.at.folder;
    let mut given = Vec::new();
    for party in &args.parties {
        let (name, said) = match party.split_once('=') {
            Some((name, said)) => (name, said.to_owned()),
            None => (party.as_str(), ask(folder, party)?),
        };
        let said = match parse_answer(&said)? {
            Some(reply) => Ok(reply),
            None => Err(joining::Code::parse(&said)
                .map_err(|why| Failure::usage(format!("{name}: {why}"), "type all digits as they are read to you"))?),
        };
        given.push((name, said));
    }
    let mut text = String::new();
    GuestList::change(folder, |list| {
        for (name, said) in &given {
            text += &match said {
                Ok(reply) => {
                    list.answered(name, reply, Nonce(drawn()), seconds_since_1970()).map_err(|why| {
                        let next = "see `veilsum federation show`; a new invitation is a new try: veilsum federation remove PARTY, and invite it anew";
                        Failure::input(format!("{name}: {why}; nobody was let in"), next)
                    })?;
                    format!("{name} is in, with the key {}\n", fingerprint(&reply.key.0))
                }
                Err(code) => {
                    compared(list, name, code)?;
                    format!("{name} is in: tell its operator that {code} is right\n")
                }
            };
        }
        Ok(())
    })?;
    let names: Vec<_> = given.iter().map(|(name, _)| *name).collect();
    let (roster, more) = roster_of(folder)?;
    crate::verb::print(json, &json!({ "approved": names, "roster": roster }), &(text + &more))
}

/// Lets a party in whose digits these are.
fn compared(list: &mut GuestList, name: &str, code: &joining::Code) -> Result<(), Failure> {
    let guest = list.guests.iter().find(|guest| guest.party == *name).ok_or_else(|| nobody(name))?;
    let seen = list.code(guest).filter(|_| guest.stage == Stage::Waiting);
    let Some(seen) = seen else {
        let what = format!("{name} does not wait: {}", stage_of(guest.stage));
        return Err(Failure::input(what, "see `veilsum federation show`; who waits has run `veilsum join`"));
    };
    if seen != *code {
        let what = format!(
            "{name}: these are not the digits of whoever waits here under this name [JOI-5]; nobody was let in"
        );
        let next = format!(
            "listen to them once more; if they are others again, somebody stands between you: veilsum federation remove {name}, and invite \
                 it anew on another way"
        );
        return Err(Failure::input(what, next));
    }
    if let Some(guest) = list.guest(name) {
        guest.stage = Stage::Approved;
    }
    Ok(())
}

/// Asks for the digits, without showing those that are expected, and once more if they are others: one may be misheard or mistyped.
fn ask(folder: &Path, party: &str) -> Result<String, Failure> {
    if !somebody_is_there() {
        let next = format!("let its operator read them to you by telephone: veilsum federation approve {party}=DIGITS");
        return Err(Failure::usage(format!("the digits of {party} are missing"), next));
    }
    let mut question = format!("Let the operator of {party} read 12 digits to you by telephone. Type them: ");
    let mut said = String::new();
    for _ in 0..TRIES {
        said = typed(&question, &mut io::stdin().lock(), &mut io::stderr())?.trim().to_owned();
        // Whoever joins without a connection has a line, and no digits.
        if parse_answer(&said)?.is_some() {
            break;
        }
        let list = GuestList::load(folder)?;
        let seen = list.guests.iter().find(|guest| guest.party == party).and_then(|guest| list.code(guest));
        match joining::Code::parse(&said) {
            Ok(code) if seen.is_none_or(|seen| seen == code) => break,
            Ok(_) => {
                question = format!("{party}: whoever waits here has other digits. Listen once more, and type them: ")
            }
            Err(why) => question = format!("{party}: {why}. Type all digits once more: "),
        }
    }
    Ok(said)
}

/// A party is not let in, or leaves. Its invitation stays void, so that it does not come back by itself.
fn remove(args: &PartyArgs, json: bool) -> Result<(), Failure> {
    let (folder, party) = (&args.at.folder, &args.party);
    let was_member = GuestList::change(folder, |list| {
        let guest = list.guest(party).ok_or_else(|| nobody(party))?;
        let was_member = guest.stage == Stage::Approved;
        guest.stage = Stage::Rejected;
        Ok(was_member)
    })?;
    let (roster, more) = roster_of(folder)?;
    let text = match was_member {
        false => format!("{party} is not let in, and its invitation is void\n{more}"),
        true => format!(
            "{party} is a member no more. Every other party gets the changed roster, and agrees to it: veilsum agree roster.toml\n\
             Its part of earlier totals can be computed as a difference, up to noise where they have any [POL-10]. If its key is lost, \
             invite it anew: its account goes on\n{more}"
        ),
    };
    crate::verb::print(json, &json!({ "removed": party, "was_member": was_member, "roster": roster }), &text)
}

fn nobody(party: &str) -> Failure {
    Failure::input(format!("nobody was invited as {party}"), "see `veilsum federation show`")
}

/// Signs the roster where nobody is waited for any more ([JOI-6]): what it came to, as a value and in words.
fn roster_of(folder: &Path) -> Result<(Value, String), Failure> {
    let list = GuestList::load(folder)?;
    let Some(roster) = list.roster() else {
        let open = |stage: Stage| matches!(stage, Stage::Invited | Stage::Waiting);
        let names: Vec<_> = list.guests.iter().filter(|g| open(g.stage)).map(|g| g.party.as_str()).collect();
        let text = if names.is_empty() {
            "no roster yet: nobody is the intermediary\nnext: veilsum federation invite PARTY --role intermediary"
                .into()
        } else {
            format!("no roster yet: waiting for {}", some_of(&names, ", "))
        };
        return Ok((Value::Null, text));
    };
    if let Err(e) = roster.check() {
        return Ok((Value::Null, format!("no roster yet: {e}\nnext: veilsum federation invite PARTY")));
    }
    let path = folder.join("roster.toml");
    if !path.exists() || load_signed_roster(&path)?.roster != roster {
        write_roster(&path, &roster.clone().sign(&identity_of(folder, &list)?)?)?;
    }
    let short = roster_fingerprint(&roster.hash());
    let (file, name, fingerprint_line) = (path.display(), &roster.name, fingerprint_line(&roster));
    let text = format!(
        "{file}: {name} with {} sites\n{fingerprint_line}Read these words to all operators in one call. Whoever has other words says so, and nobody goes on.\n\
         next: veilsum plan new --k K --expected-rows N --column NAME=LOW:HIGH --start",
        roster.sites.len()
    );
    let (written, hash) = (path.display().to_string(), roster.hash().to_string());
    Ok((json!({ "written": written, "hash": hash, "fingerprint": short }), text))
}

fn stage_of(stage: Stage) -> &'static str {
    match stage {
        Stage::Invited => "invited, and has not knocked yet",
        Stage::Waiting => "waits for you to compare its digits",
        Stage::Approved => "is in",
        Stage::Rejected => "was rejected or removed",
    }
}

fn show(args: &ShowArgs, json: bool) -> Result<(), Failure> {
    let folder = &args.at.folder;
    let (list, now) = (GuestList::load(folder)?, seconds_since_1970());
    let (mut values, mut lines) = (Vec::new(), Vec::new());
    for guest in &list.guests {
        let key = guest.knocked.as_ref().map(|knocked| fingerprint(&knocked.key.0));
        let expired = guest.stage == Stage::Invited && guest.knocked.is_none() && guest.expires <= now;
        let stage = if expired { "invited, and the invitation has expired" } else { stage_of(guest.stage) };
        values.push(json!({ "party": guest.party, "role": guest.role.name(), "stage": guest.stage, "expired": expired,
            "key": key, "has_documents": guest.has.is_some() }));
        let said = guest.said.as_ref().map_or(String::new(), |said| format!("; stands by: {}", said.answer));
        let key = key.map_or(String::new(), |key| format!("; key {key}"));
        let (name, role) = (&guest.party, guest.role.name());
        lines.push((format!("{stage}{said}"), format!("{name} ({role}) {stage}{key}{said}\n"), name));
    }
    let mut text = format!("{}, coordinated by {}\n", list.federation, list.coordinator.name);
    let mut told: Vec<&str> = Vec::new();
    for (point, line, _) in &lines {
        let there: Vec<&String> = lines.iter().filter(|(other, ..)| other == point).map(|(.., name)| *name).collect();
        if args.all || there.len() <= 5 {
            text += line;
        } else if !told.contains(&point.as_str()) {
            told.push(point);
            text += &format!("{}: {point}\n", some_of(&there, ", "));
        }
    }
    if !told.is_empty() {
        text += "a line for each: veilsum federation show --all\n";
    }
    crate::verb::print(json, &json!({ "federation": list.federation, "guests": values }), &text)
}
