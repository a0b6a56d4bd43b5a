//! A result as a document: the text that all parties sign of it, what its writer alone answers for, and how a file is checked
//! (section 22 of the specification, [RES-1] to [RES-6]).
//!
//! Everything is signed as text, byte for byte. A file that is not exactly the text that this module prints is refused, so that no
//! byte of it is left over that nobody signed.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use veilsum_cluster::Domain;
use veilsum_proto::{
    identity::{Identity, PublicKey, Signature, from_hex, to_hex},
    message,
    plan::Terms,
    roster::{PartyId, Roster},
    suite::{self, Hash, VERSION},
};

use crate::{
    app_messages::{Countersigned, SOFTWARE, clean},
    error::Failure,
    near::Units,
    plan::{Judge, PlanSpec},
};

/// First words of every result file.
pub const FORMAT: &str = "veilsum-result/1";
/// Bytes of a result file: as a model's, twice over.
pub const MAX_FILE: usize = 128 << 20;
/// Members of a result that its writer alone answers for: no other party could know them, or each has its own ([RES-1]).
pub const OWN: [&str; 9] =
    ["departures", "errors", "n_total", "n_total_from", "pooled", "says", "software", "traffic", "warnings"];

/// Whether a result may have this member; what is there in which run, `protocol/schemas/result.schema.json` says.
pub fn is_member(key: &str) -> bool {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
        serde_json::from_str(include_str!("../../../protocol/schemas/result.schema.json")).unwrap_or_default()
    });
    key != SIGNATURES && SCHEMA["properties"].get(key).is_some()
}

/// Labels of what is signed ([RES-3], [RES-4]), and of the digest of a model's file.
const RESULT: &str = "result";
const FILE: &str = "result file";
const MODEL: &str = "model file";
/// The member that holds the signatures; it comes last.
pub const SIGNATURES: &str = "signatures";

/// A JSON object.
pub type Fields = Map<String, Value>;

/// What a result is of.
#[derive(Clone, Copy)]
pub struct About<'a> {
    /// The verified roster.
    pub roster: &'a Roster,
    /// The verified plan.
    pub terms: &'a Terms,
}

/// A signature on a result as it is written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct By {
    /// Name of the party.
    pub party: String,
    /// Of a site the link of its ledger's last entry when it signed ([LED-2]), hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<String>,
    /// R ‖ S, hexadecimal.
    pub signature: String,
}

/// The signatures on a file, as it ends with them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signatures {
    /// Name of the party that wrote it.
    pub written_by: String,
    /// Its signature on all of it, hexadecimal.
    pub file: String,
    /// Those on the text that all parties sign.
    pub result: Vec<By>,
}

/// The text that all parties sign, and who has signed it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signed {
    /// The text.
    pub text: String,
    /// Who signed it.
    pub by: Vec<By>,
}

/// A file that holds: what it says, and who stands for it.
#[derive(Clone, Debug)]
pub struct Checked {
    /// All members but the signatures.
    pub fields: Fields,
    /// The text that all parties sign.
    pub text: String,
    /// Who wrote the file, by name.
    pub written_by: String,
    /// Whether the coordinator signed the text.
    pub coordinator: bool,
    /// Sites that signed it, by name, with the link of their ledgers' last entry.
    pub sites: Vec<(String, String)>,
    /// Sites that the centres are over and that did not sign it, by name.
    pub silent: Vec<String>,
    /// Members that the writer alone answers for.
    pub own: Vec<String>,
}

/// The digest of a model's file, as a result names it.
pub fn model_digest(bytes: &[u8]) -> Hash {
    suite::hash(MODEL, &[bytes])
}

/// Whether sites are sent the result, to recompute and sign it ([RES-2]): they hold all that it follows from.
pub fn is_recomputed(work: &PlanSpec) -> bool {
    work.judge == Judge::Coordinator
}

/// An object as it is signed: members in the order of their names, two spaces for each depth, a line feed at the end.
fn print(fields: &Fields) -> String {
    // Numbers, texts and lists always have a JSON form.
    serde_json::to_string_pretty(fields).unwrap_or_default() + "\n"
}

/// The object whose text this is, where it is printed exactly so.
fn read(text: &str) -> Result<Fields, String> {
    let fields: Fields = serde_json::from_str(text).map_err(|e| format!("it is no result ({e})"))?;
    if print(&fields) == text { Ok(fields) } else { Err("it is not written as results are: a byte was changed".into()) }
}

/// The members that all parties sign.
fn shared(fields: &Fields) -> Fields {
    fields
        .iter()
        .filter(|(key, _)| !OWN.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn digits<const N: usize>(text: &str) -> Option<[u8; N]> {
    let bytes = <[u8; N]>::try_from(from_hex(text)?).ok()?;
    // Capitals would be other bytes for the same signature.
    (to_hex(&bytes) == text).then_some(bytes)
}

impl About<'_> {
    fn session(&self) -> Hash {
        message::session(&self.terms.hash(), &self.roster.hash(), PartyId::Coordinator)
    }

    fn party(&self, name: &str) -> Option<(PartyId, PublicKey)> {
        let sites = (0..self.roster.sites.len() as u16).map(PartyId::Site);
        let mut parties = std::iter::once(PartyId::Coordinator).chain(sites);
        let id = parties.find(|id| self.roster.name_of(*id) == name)?;
        Some((id, self.roster.member(id)?.key))
    }

    /// What stands in every result beside what a run came to: documents, versions, and the account of what was released.
    ///
    /// All members of a result: of what a party `knows` of it (an object), with `model`, the bytes of the model's file.
    pub fn fields(&self, known: Value, run: Option<&Hash>, model: &[u8]) -> Fields {
        let mut fields = if let Value::Object(fields) = known { fields } else { Fields::new() };
        let release = json!({
            "totals": fields.get("questions"),
            "sites": self.terms.sites,
            "min_total_rows": self.terms.min_total_rows,
        });
        let more = [
            ("format", json!(FORMAT)),
            ("federation", json!(self.roster.name)),
            ("roster_hash", json!(self.roster.hash().to_string())),
            ("plan_hash", json!(self.terms.hash().to_string())),
            ("run", json!(run.map(Hash::to_string))),
            ("model_digest", json!(model_digest(model).to_string())),
            ("release", release),
            ("software", json!(SOFTWARE)),
            ("wire_version", json!(VERSION)),
        ];
        fields.extend(more.map(|(key, value)| (key.to_owned(), value)));
        fields
    }

    /// Whether a text that the coordinator signed is what this party came to itself ([RES-3]): `own` are all members of its own
    /// result, with what noise drowns, of rows in this domain.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn follows(&self, text: &str, own: &Fields, domain: &Domain) -> Result<(), String> {
        let (theirs, ours) = (read(text)?, shared(own));
        if let Some(key) = theirs.keys().find(|key| !ours.contains_key(*key)) {
            return Err(format!("it has a member {:?} that does not follow from the totals", clean(key)));
        }
        let units = Units::own(domain);
        let units = if ours.contains_key("privacy") { units.under_noise() } else { units };
        // Each under its key, which says in which units it is.
        let one = |key: &String, value: &Value| Value::Object([(key.clone(), value.clone())].into_iter().collect());
        for (key, own) in &ours {
            if !theirs.get(key).is_some_and(|said| units.near(&one(key, said), &one(key, own))) {
                return Err(format!("its {key:?} is not what the totals come to"));
            }
        }
        Ok(())
    }

    fn verify(&self, text: &str, by: &By) -> Option<(PartyId, Option<String>)> {
        let (id, key) = self.party(&by.party)?;
        let ledger = match &by.ledger {
            Some(link) => digits::<32>(link)?.to_vec(),
            None => Vec::new(),
        };
        let signature = Signature::from_bytes(&digits(&by.signature)?);
        let sound = key.verify(RESULT, &[&self.session().0, &ledger, text.as_bytes()], &signature);
        (sound && matches!(id, PartyId::Site(_)) == by.ledger.is_some()).then(|| (id, by.ledger.clone()))
    }

    fn signed_file(&self, written_by: &str, body: &str, by: &[By]) -> [Vec<u8>; 4] {
        let list = serde_json::to_vec(&json!(by)).unwrap_or_default();
        [self.session().0.to_vec(), written_by.as_bytes().to_vec(), body.as_bytes().to_vec(), list]
    }

    /// Checks every byte of a result's file ([RES-5]).
    ///
    /// # Errors
    /// A [`Failure`] with what is wrong, without the file's name.
    pub fn check(&self, bytes: &[u8]) -> Result<Checked, Failure> {
        let changed = |why: String| {
            Failure::input(why, "take the file as the run wrote it, from a party that you trust; do not use this one")
        };
        let text = std::str::from_utf8(bytes).map_err(|_| changed("it is not UTF-8 text".into()))?;
        let mark = format!(",\n  \"{SIGNATURES}\": ");
        let Some(at) = text.rfind(&mark) else {
            return Err(unsigned(text));
        };
        let body = format!("{}\n}}\n", &text[..at]);
        let fields = read(&body).map_err(changed)?;
        let tail = text[at + mark.len()..].strip_suffix("\n}\n").unwrap_or_default();
        let signatures: Signatures =
            serde_json::from_str(tail).map_err(|e| changed(format!("its signatures cannot be read ({e})")))?;
        if compose(&body, &signatures) != bytes || fields.contains_key(SIGNATURES) {
            return Err(changed("it is not written as results are: a byte was changed".into()));
        }
        self.is_of(&fields)?;
        let file = self.signed_file(&signatures.written_by, &body, &signatures.result);
        let writer = self.party(&signatures.written_by);
        let sound = digits(&signatures.file).zip(writer).is_some_and(|(digits, (_, key))| {
            key.verify(FILE, &file.each_ref().map(Vec::as_slice), &Signature::from_bytes(&digits))
        });
        if !sound {
            return Err(changed(format!(
                "it was changed, or {} did not write it: the signature on it does not hold",
                clean(&signatures.written_by)
            )));
        }
        let text = print(&shared(&fields));
        let mut signers: Vec<(PartyId, Option<String>)> = Vec::new();
        for by in &signatures.result {
            let signer = self.verify(&text, by).filter(|(id, _)| !signers.iter().any(|(known, _)| known == id));
            let what = || changed(format!("the signature of {} on it does not hold", clean(&by.party)));
            signers.push(signer.ok_or_else(what)?);
        }
        let cohort: Vec<&str> =
            fields.get("cohort").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let all = signers.iter().map(|(id, ledger)| (self.roster.name_of(*id), ledger.clone()));
        let sites: Vec<(String, String)> = all.filter_map(|(name, ledger)| Some((name, ledger?))).collect();
        let silent = cohort.iter().filter(|name| !sites.iter().any(|(site, _)| site == *name));
        Ok(Checked {
            coordinator: signers.iter().any(|(id, _)| *id == PartyId::Coordinator),
            silent: silent.map(|name| clean(name)).collect(),
            own: OWN.iter().filter(|key| fields.contains_key(**key)).map(|key| (*key).to_owned()).collect(),
            written_by: signatures.written_by,
            sites,
            text,
            fields,
        })
    }

    /// Whether a result is of these documents.
    fn is_of(&self, fields: &Fields) -> Result<(), Failure> {
        let said = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
        if said("format") != FORMAT {
            let what = format!("it is of the format {:?}, this software reads {FORMAT:?}", clean(said("format")));
            return Err(Failure::input(what, OTHER));
        }
        if let Some(key) = fields.keys().find(|key| !is_member(key)) {
            let what = format!("it has a member {:?} that this software does not know", clean(key));
            return Err(Failure::input(what, OTHER));
        }
        for (what, key, ours) in
            [("roster", "roster_hash", self.roster.hash()), ("plan", "plan_hash", self.terms.hash())]
        {
            if said(key) != ours.to_string() {
                let why = format!("it is of another {what}: its hash is {}, this one's {ours}", clean(said(key)));
                return Err(Failure::input(why, format!("give the {what} of its run: --{what} FILE")));
            }
        }
        Ok(())
    }
}

/// What to do with a file that is not what this software writes: nobody can tell which of the two it is.
const OTHER: &str = "check it with the version of veilsum that wrote it; if that is this one, a byte was changed: take the file as the run wrote it";

fn unsigned(text: &str) -> Failure {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(fields)) if fields.contains_key("format") && fields.contains_key("centres") => {
            Failure::input("it carries no signatures", "take the file as the run wrote it")
        }
        Ok(Value::Object(fields)) if fields.contains_key("centres") => Failure::input(
            "it is the result of a version that signed none",
            "run again with this version, or use it as what its sender says",
        ),
        _ => {
            Failure::input("it is no result, or a part of one", "give a result.json or a model.json as it was written")
        }
    }
}

/// The bytes of a file.
fn compose(body: &str, signatures: &Signatures) -> Vec<u8> {
    let tail = serde_json::to_string_pretty(&json!({ SIGNATURES: signatures })).unwrap_or_default();
    let body = body.strip_suffix("\n}\n").unwrap_or(body);
    format!("{body},\n{}\n", tail.strip_prefix("{\n").unwrap_or(&tail)).into_bytes()
}

impl Signed {
    /// The text of these members that all parties sign, signed by nobody yet.
    pub fn new(fields: &Fields) -> Signed {
        Signed { text: print(&shared(fields)), by: Vec::new() }
    }

    /// Signs it; a site with the link of its ledger's last entry.
    pub fn sign(&mut self, about: &About<'_>, identity: &Identity, who: PartyId, ledger: Option<&Hash>) -> Signature {
        let link = ledger.map_or(&[][..], |link| &link.0);
        let signature = identity.sign(RESULT, &[&about.session().0, link, self.text.as_bytes()]);
        self.add(about, who, ledger, &signature);
        signature
    }

    fn add(&mut self, about: &About<'_>, who: PartyId, ledger: Option<&Hash>, signature: &Signature) -> bool {
        let party = about.roster.name_of(who);
        let by = By { party, ledger: ledger.map(Hash::to_string), signature: to_hex(&signature.to_bytes()) };
        let sound = about.verify(&self.text, &by).is_some() && !self.by.iter().any(|known| known.party == by.party);
        if sound {
            self.by.push(by);
        }
        sound
    }

    /// What the coordinator sent ([RES-2]), where it signed it.
    pub fn from_coordinator(about: &About<'_>, text: &[u8], signature: &[u8]) -> Option<Signed> {
        let mut signed = Signed { text: String::from_utf8(text.to_vec()).ok()?, by: Vec::new() };
        let signature = Signature::from_bytes(signature.try_into().ok()?);
        signed.add(about, PartyId::Coordinator, None, &signature).then_some(signed)
    }

    /// Takes a site's signature; false where it is none on this text.
    pub fn take(&mut self, about: &About<'_>, site: u16, message: &Countersigned) -> bool {
        self.add(about, PartyId::Site(site), Some(&message.ledger), &message.signature)
    }

    /// The bytes of a file of this text, with those of `fields` that its writer alone answers for ([RES-4]).
    ///
    /// # Errors
    /// A [`Failure`] where the text is none of a result.
    pub fn file(
        &self,
        about: &About<'_>,
        fields: &Fields,
        identity: &Identity,
        who: PartyId,
    ) -> Result<Vec<u8>, Failure> {
        let mut all = read(&self.text).map_err(|why| Failure::input(why, "this is a defect, please report it"))?;
        let own = fields.iter().filter(|(key, _)| OWN.contains(&key.as_str()));
        all.extend(own.map(|(key, value)| (key.clone(), value.clone())));
        let (body, written_by) = (print(&all), about.roster.name_of(who));
        let mut by = self.by.clone();
        by.sort_by_key(|by| about.party(&by.party).map(|(id, _)| id));
        let file = about.signed_file(&written_by, &body, &by);
        let signature = identity.sign(FILE, &file.each_ref().map(Vec::as_slice));
        Ok(compose(&body, &Signatures { written_by, file: to_hex(&signature.to_bytes()), result: by }))
    }
}

#[cfg(test)]
mod tests;
