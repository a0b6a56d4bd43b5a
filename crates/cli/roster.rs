//! `veilsum roster`: make, change; accept, agreed.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use veilsum_proto::{
    history::Rekey,
    history::{RosterDocument, SignedChange},
    identity::Identity,
    roster::{Member, Roster, SignedRoster},
};

use crate::{
    party::{key_beside, place_of},
    verb::Verb,
    words::fingerprint_line,
};
use veilsum_node::documents::{
    Card, Changes, Federations, Fingerprint, GuestList, Offered, Standing, check_address, fingerprint, load_card,
    load_identity, load_rekey, load_roster, load_roster_document, roster_fingerprint, sign_next, whoami, write_roster,
};
use veilsum_node::{cost::some_of, error::Failure, files::quoted, store};

const RECOVERED: &str = "No old key has signed a recovered one: send the file to every party, and let all operators compare its words in one \
                         call.";
const COMPARE: &str = "All operators compare these words in one call.";

/// Say who takes part: make, change; agree to it: accept, agreed
#[derive(Args, Debug)]
pub(crate) struct RosterArgs {
    /// What to do with it
    #[command(subcommand)]
    pub command: RosterCommand,
}

/// What to do with a roster.
#[derive(Subcommand, Debug)]
pub(crate) enum RosterCommand {
    /// Make a roster from cards and sign it with the coordinator's key
    Make(MakeArgs),
    /// Sign the next roster, with more sites, or with members' new keys or addresses; every party needs it, and a new plan
    Change(ChangeArgs),
    /// Agree to a roster with this party's key: the first one of a federation, or another than before
    Accept(AcceptArgs),
    /// Print every roster that was agreed to with a key, and the data sets used with it
    Agreed(AgreedArgs),
}

/// `veilsum roster make`
#[derive(Args, Debug)]
pub(crate) struct MakeArgs {
    /// Name of the federation
    #[arg(long)]
    pub name: String,
    /// The coordinator's card
    #[arg(long, value_name = "FILE.card")]
    pub coordinator: PathBuf,
    /// The intermediary's card; another organisation's
    #[arg(long, value_name = "FILE.card")]
    pub intermediary: PathBuf,
    /// A site's card; repeat for every site, at least three
    #[arg(long = "site", value_name = "FILE.card", num_args = 1..)]
    pub sites: Vec<PathBuf>,
    /// The coordinator's secret key file
    #[arg(long, value_name = "FILE.key")]
    pub key: PathBuf,
    /// Where to write the roster
    #[arg(long, value_name = "FILE", default_value = "roster.toml")]
    pub out: PathBuf,
}

/// `veilsum roster change`
#[derive(Args, Debug)]
pub(crate) struct ChangeArgs {
    /// A new site's card; repeat for more
    #[arg(long = "site", value_name = "FILE.card", num_args = 1.., required_unless_present_any = ["rekeys", "moved"], conflicts_with_all = ["rekeys", "moved"])]
    pub sites: Vec<PathBuf>,
    /// New keys that members stated with `veilsum rekey`, each signed with the old key and the new one
    #[arg(long = "rekey", value_name = "FILE.rekey", num_args = 1..)]
    pub rekeys: Vec<PathBuf>,
    /// Where the coordinator or the intermediary listens from now on
    ///
    /// Members take it without a call: whoever answers there has to hold the same key.
    #[arg(long = "address", value_name = "PARTY=HOST:PORT", num_args = 1.., conflicts_with = "rekeys", value_parser = party_at)]
    pub moved: Vec<(String, String)>,
    /// The roster; it is replaced
    #[arg(long, value_name = "FILE", default_value = "roster.toml")]
    pub roster: PathBuf,
    /// The coordinator's secret key file [default: the only *.key file beside the roster]
    #[arg(long, value_name = "FILE.key")]
    pub key: Option<PathBuf>,
}

/// `veilsum roster accept`
#[derive(Args, Debug)]
pub(crate) struct AcceptArgs {
    /// The roster
    #[arg(long, value_name = "FILE", default_value = "roster.toml")]
    pub roster: PathBuf,
    /// This party's secret key file; what was agreed to is kept beside it
    #[arg(long, value_name = "FILE.key")]
    pub key: PathBuf,
    /// Folder of its ledger, where it has one; a new key of its own is noted there [default: beside the key]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// The 15 words of the roster, as they were read to you [default: asked for on a terminal]
    #[arg(long, value_name = "WORDS", value_parser = Fingerprint::parse)]
    pub fingerprint: Option<Fingerprint>,
    /// A data set that was used with another federation and may be used with this one too; repeat for more
    #[arg(long, value_name = "NAME")]
    pub data_set: Vec<String>,
}

/// `veilsum roster agreed`
#[derive(Args, Debug)]
pub(crate) struct AgreedArgs {
    /// This party's secret key file
    #[arg(long, value_name = "FILE.key")]
    pub key: PathBuf,
}

impl Verb for RosterArgs {
    /// Runs `veilsum roster`.
    ///
    /// # Errors
    /// A [`Failure`] that names the card, member or file at fault.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let args = self;
        match &args.command {
            RosterCommand::Make(a) => make(a, json),
            RosterCommand::Change(a) => {
                let key = key_beside(a.key.as_ref(), &a.roster)?;
                match (a.rekeys.is_empty(), a.moved.is_empty()) {
                    (true, true) => add(&a.roster, &key, &a.sites, json),
                    (false, _) => rekey(&a.roster, &key, &a.rekeys, json),
                    (true, false) => move_to(&a.roster, &key, &a.moved, json),
                }
            }
            RosterCommand::Accept(a) => accept(a, json),
            RosterCommand::Agreed(a) => agreed(a, json),
        }
    }
}

/// Checks contents and signatures, and says who is on it and what became of it since it was founded.
///
/// # Errors
/// A [`Failure`] that names what is bad.
pub(crate) fn verify(file: &Path, json: bool) -> Result<(), Failure> {
    let RosterDocument { signed: SignedRoster { roster, .. }, history } = load_roster_document(file)?;
    let text = format!(
        "{} is valid: {}, {} sites, signed by {}\n{}  (compare all words in a call with the other operators)\n\n{}{}",
        file.display(),
        roster.name,
        roster.sites.len(),
        roster.coordinator.name,
        fingerprint_line(&roster),
        parties(&roster),
        history.iter().map(change_to_text).collect::<String>()
    );
    let value = json!({ "valid": true, "name": roster.name, "sites": roster.sites.len(),
        "hash": roster.hash().to_string(), "fingerprint": roster_fingerprint(&roster.hash()), "roster": to_json(&roster),
        "history": history.iter().map(change_to_json).collect::<Vec<_>>() });
    crate::verb::print(json, &value, &text)
}

fn make(args: &MakeArgs, json: bool) -> Result<(), Failure> {
    let (coordinator, intermediary) = (load_card(&args.coordinator)?, load_card(&args.intermediary)?);
    for (card, path) in [(&coordinator, &args.coordinator), (&intermediary, &args.intermediary)] {
        if card.address.is_empty() {
            return Err(Failure::input(
                format!("{}: the card of {} has no address, and the sites must reach it", path.display(), card.name),
                "make the card with `veilsum keygen --address HOST:PORT`",
            ));
        }
    }
    let roster = Roster {
        name: args.name.clone(),
        coordinator: member(coordinator),
        intermediary: member(intermediary),
        sites: sites(&args.sites)?,
    };
    let signed = sign(roster, &args.key)?;
    write_roster(&args.out, &signed)?;
    done(json, &args.out, &signed.roster, &format!("{COMPARE}\nsend it to every party"))
}

fn add(path: &Path, key: &Path, cards: &[PathBuf], json: bool) -> Result<(), Failure> {
    let mut roster = load_roster(path)?;
    roster.sites.extend(sites(cards)?);
    let signed = sign_next(path, roster.clone(), Vec::new(), &signer_of(&roster, key)?)?.signed;
    let note = format!("{COMPARE}\nsend it to every party; plans made for the old roster are void: make a new one");
    done(json, path, &signed.roster, &note)
}

/// A party, and where it listens.
pub(crate) fn party_at(text: &str) -> Result<(String, String), String> {
    let (party, address) = text.split_once('=').ok_or("say PARTY=HOST:PORT")?;
    check_address(address).map_err(|failure| failure.message)?;
    if address.is_empty() { Err("the address is empty".into()) } else { Ok((party.to_owned(), address.to_owned())) }
}

/// Coordinator or intermediary listen somewhere else from now on ([ROS-13]).
///
/// # Errors
/// A [`Failure`] where it is another party; nothing is signed then.
fn move_to(path: &Path, key: &Path, moved: &[(String, String)], json: bool) -> Result<(), Failure> {
    let mut roster = load_roster(path)?;
    for (party, address) in moved {
        let both = [&mut roster.coordinator, &mut roster.intermediary];
        let member = both.into_iter().find(|member| member.name == *party).ok_or_else(|| {
            let what = format!("{party} is not the coordinator or the intermediary of {}", roster.name);
            Failure::input(what, "name one of the two; a site is called by nobody")
        })?;
        member.address.clone_from(address);
    }
    let signer = signer_of(&roster, key)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if GuestList::within(folder).exists() {
        // The next roster is made of this list.
        GuestList::change(folder, |list| {
            moved.iter().for_each(|(party, address)| list.moves(party, address));
            Ok(())
        })?;
    }
    let signed = sign_next(path, roster, Vec::new(), &signer)?.signed;
    let note = "Members that stand by take it by themselves where the coordinator listens now: leave `veilsum run` there until all of them \
                have it, and then start it at the new address. Send the file to members that are away; they lay it in the place of theirs.\n\
                Invitations that nobody has used yet name the old address: take them back, and invite anew. Plans made for the old roster \
                are void: make a new one";
    done(json, path, &signed.roster, note)
}

/// Gives members the keys that they stated, in a roster that follows the one at `path` ([ROS-11], [ROS-12]).
///
/// # Errors
/// A [`Failure`] that names the statement at fault; nothing is signed then.
fn rekey(path: &Path, key: &Path, files: &[PathBuf], json: bool) -> Result<(), Failure> {
    let before = load_roster_document(path)?;
    let roster = &before.signed.roster;
    let mut rekeys = Vec::new();
    for file in files {
        let rekey = load_rekey(file)?;
        let bad = |why: String, next: &str| Err(Failure::input(format!("{}: {why}", file.display()), next));
        if rekey.federation != roster.name {
            return bad(
                format!("{} stated it for the federation {}", rekey.party, rekey.federation),
                "take it to that federation's coordinator",
            );
        }
        if before.rekeys().any(|known| *known == rekey) {
            crate::tell!("{}: {} has this key already", file.display(), rekey.party);
            continue;
        }
        match roster.members().find(|m| m.name == rekey.party) {
            Some(member) if member.key == roster.coordinator.key => {
                return bad("the coordinator's key cannot be another [ROS-12]".into(), "found a new federation");
            }
            Some(member) if member.key == rekey.old => rekeys.push(rekey),
            _ => {
                return bad(
                    format!("{} has not the old key that it names on this roster", rekey.party),
                    "ask its operator, on a number that you know, whether it is the newest one; it may be an old one sent again",
                );
            }
        }
    }
    let lost = rekeys.iter().any(Rekey::is_recovered);
    let name = |rekey: &Rekey| {
        let how = if rekey.is_recovered() { ", from its recovery file" } else { "" };
        format!("{} ({}{how})", rekey.party, fingerprint(&rekey.new.0))
    };
    let names: Vec<String> = rekeys.iter().map(name).collect();
    let next = sign_next(path, roster.clone(), rekeys, &signer_of(roster, key)?)?.signed;
    let note = format!(
        "new keys: {}. Ask each on a number that you know whether it wants this: whoever has stolen the old key can state it too.\n\
         {} Plans made for the old roster are void: make a new one",
        if names.is_empty() { "none".into() } else { names.join(", ") },
        if lost { RECOVERED } else { "Send the file to every party, which takes it without a call." }
    );
    done(json, path, &next.roster, &note)
}

/// [ROS-8] to [ROS-10]: the operator's own act, after a look at what is another than before.
fn accept(args: &AcceptArgs, json: bool) -> Result<(), Failure> {
    let roster = load_roster(&args.roster)?;
    let place = place_of(&args.key, args.state.as_ref());
    // Where this party's own next key is on it, and was agreed to before: it is taken up.
    let first = store::identity_for(&place, &args.roster, &roster);
    if let Ok((_, _, taken)) = &first
        && !taken.0.is_empty()
    {
        crate::tell!("{taken}");
    }
    let (identity, _) = load_identity(&args.key)?;
    let next = || load_identity(store::next_of(&args.key)).and_then(|(next, _)| whoami(&roster, &next));
    let offered = Offered { file: &args.roster, roster: &roster, key: &args.key, identity: &identity };
    offered.whoami().or_else(|none| next().map_err(|_| first.err().unwrap_or(none)))?;
    let history = offered.history()?;
    let standing = offered.standing(&Federations::load(&args.key, &identity)?, &history)?;
    let (changes, meaning) = match &standing {
        Standing::Changed { from } | Standing::Rekeyed { from } => {
            (Changes::along(from, &roster, &history).0, Changes::meaning(from, &roster, &history))
        }
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
    let heard = match &args.fingerprint {
        None if matches!(standing, Standing::New | Standing::Changed { .. }) => Some(crate::agree::ask(&offered)?),
        given => given.clone(),
    };
    heard.as_ref().map_or(Ok(()), |heard| offered.compare(heard))?;
    Federations::change(&args.key, &identity, |federations| {
        if offered.standing(federations, &history)? != standing {
            let what = format!("another roster of {} was accepted at the same moment", roster.name);
            return Err(Failure::input(what, "see `veilsum roster agreed`, and start again"));
        }
        federations.take(&roster, &history);
        for name in &args.data_set {
            let uses: Vec<_> =
                federations.used.iter().filter(|u| u.data.name == *name).map(|u| u.data.clone()).collect();
            if uses.is_empty() {
                let what = format!("no data set {name:?} was used with any federation");
                return Err(Failure::input(what, "see their names with `veilsum roster agreed`"));
            }
            uses.iter().for_each(|data| federations.use_with(&roster, data));
        }
        Ok(())
    })?;
    let (_, _, taken) = store::identity_for(&place, &args.roster, &roster)?;
    if !taken.0.is_empty() {
        crate::tell!("{taken}");
    }
    let (short, path) = (roster_fingerprint(&roster.hash()), Federations::beside(&args.key));
    let value = json!({ "agreed": roster.name, "hash": roster.hash().to_string(), "fingerprint": short,
        "changes": changes, "meaning": meaning, "data_sets": args.data_set, "written": path.display().to_string(),
        "roster": to_json(&roster) });
    let text = format!(
        "agreed to {} with {} sites\n{}remembered in {}\n\n{}",
        roster.name,
        roster.sites.len(),
        fingerprint_line(&roster),
        path.display(),
        few(&roster, &args.roster)
    );
    crate::verb::print(json, &value, &text)
}

/// Everybody on it, or, where there are many, some of its sites and what shows all.
fn few(roster: &Roster, file: &Path) -> String {
    if roster.sites.len() <= 5 {
        return parties(roster);
    }
    let names: Vec<&str> = roster.sites.iter().map(|site| site.name.as_str()).collect();
    format!(
        "coordinator   {}\nintermediary  {}\nsites         {}\na line for each, with its key: veilsum verify {}\n",
        roster.coordinator.name,
        roster.intermediary.name,
        some_of(&names, ", "),
        quoted(file)
    )
}

fn agreed(args: &AgreedArgs, json: bool) -> Result<(), Failure> {
    let (identity, _) = load_identity(&args.key)?;
    let known = Federations::load(&args.key, &identity)?;
    let (mut values, mut text) = (Vec::new(), String::new());
    for (at, roster) in known.agreed.iter().enumerate() {
        let replaced = known.agreed[at + 1..].iter().any(|later| later.name == roster.name);
        let hash = roster.hash();
        let mut data: Vec<&str> =
            known.used.iter().filter(|used| used.roster == hash).map(|used| used.data.name.as_str()).collect();
        data.dedup();
        let mut value = to_json(roster);
        value["replaced"] = json!(replaced);
        value["data_sets"] = json!(data);
        values.push(value);
        text += &format!(
            "{}  {}  {} sites, {}; data sets: {}\n",
            fingerprint(&hash.0),
            roster.name,
            roster.sites.len(),
            if replaced { "replaced" } else { "in force" },
            if data.is_empty() { "none".to_owned() } else { data.join(", ") }
        );
    }
    if values.is_empty() {
        text += "nothing was agreed to yet\n";
    }
    crate::verb::print(json, &json!({ "agreed": values }), &text)
}

fn sites(paths: &[PathBuf]) -> Result<Vec<Member>, Failure> {
    // The protocol would carry a site's address to everybody, and nobody dials a site.
    paths.iter().map(|p| Ok(Member { address: String::new(), ..member(load_card(p)?) })).collect()
}

fn member(card: Card) -> Member {
    Member { name: card.name, key: card.key, address: card.address }
}

fn sign(roster: Roster, key: &Path) -> Result<SignedRoster, Failure> {
    let identity = signer_of(&roster, key)?;
    Ok(roster.sign(&identity)?)
}

/// The coordinator's identity, for a roster that it may sign.
fn signer_of(roster: &Roster, key: &Path) -> Result<Identity, Failure> {
    let (identity, _) = load_identity(key)?;
    roster.check().map_err(|e| {
        Failure::input(e, "correct the list of cards: 3 to 1,000 sites, and every party has its own name and key")
    })?;
    signer(&identity, roster, key, "roster")?;
    Ok(identity)
}

/// Only the coordinator signs, and it should hear so by name.
pub(crate) fn signer(identity: &Identity, roster: &Roster, key: &Path, what: &str) -> Result<(), Failure> {
    if identity.public() == roster.coordinator.key {
        return Ok(());
    }
    let coordinator = &roster.coordinator.name;
    Err(Failure::input(
        format!("{}: only {coordinator}, the coordinator, can sign the {what}, and this is not its key", key.display()),
        format!("run this with the key file of {coordinator}"),
    ))
}

fn done(json: bool, path: &Path, roster: &Roster, note: &str) -> Result<(), Failure> {
    let short = roster_fingerprint(&roster.hash());
    let value = json!({ "written": path.display().to_string(), "sites": roster.sites.len(),
        "hash": roster.hash().to_string(), "fingerprint": short, "note": note });
    let text = format!(
        "{}: {} with {} sites\n{}{note}",
        path.display(),
        roster.name,
        roster.sites.len(),
        fingerprint_line(roster)
    );
    crate::verb::print(json, &value, &text)
}

fn to_json(roster: &Roster) -> Value {
    let member = |m: &Member| {
        let short = fingerprint(&m.key.0);
        json!({ "name": m.name, "address": m.address, "key": m.key.to_string(), "fingerprint": short })
    };
    json!({
        "name": roster.name,
        "hash": roster.hash().to_string(),
        "fingerprint": roster_fingerprint(&roster.hash()),
        "coordinator": member(&roster.coordinator),
        "intermediary": member(&roster.intermediary),
        "sites": roster.sites.iter().map(member).collect::<Vec<_>>(),
    })
}

fn change_to_json(signed: &SignedChange) -> Value {
    let names: Vec<&str> = signed.change.rekeys.iter().map(|rekey| rekey.party.as_str()).collect();
    json!({ "number": signed.change.number, "roster": signed.change.roster.to_string(), "new_keys": names })
}

fn change_to_text(signed: &SignedChange) -> String {
    let names: Vec<&str> = signed.change.rekeys.iter().map(|rekey| rekey.party.as_str()).collect();
    let said = if names.is_empty() { String::new() } else { format!("  new keys: {}", names.join(", ")) };
    format!("change {:<6} {}{said}\n", signed.change.number, fingerprint(&signed.change.roster.0))
}

/// Everybody on it, a line each, with the fingerprint of their key.
fn parties(roster: &Roster) -> String {
    let mut text = String::new();
    let width = roster.members().map(|m| m.name.len()).max().unwrap_or(0);
    let roles = ["coordinator", "intermediary"].into_iter().map(str::to_owned);
    let roles = roles.chain((0..roster.sites.len()).map(|i| format!("site {i}")));
    for (role, m) in roles.zip(roster.members()) {
        text += &format!("{role:<13} {:<width$}  key {}  {}\n", m.name, fingerprint(&m.key.0), m.address);
    }
    text
}
