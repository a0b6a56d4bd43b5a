//! A run in one file: documents, result, model and openings, from which somebody who holds nothing else recomputes every total and
//! every centre ([RES-7], [RES-8]).
//!
//! The file is a tar archive, which every system and Python's standard library read. Nothing is ever unpacked to a disk: names are those
//! of a list, in its order, and the archive is refused where it is not, byte for byte, the one that these contents are packed into.

use std::{collections::BTreeMap, io::Read, path::Path};

use serde::{Deserialize, Serialize};
use veilsum_proto::{
    codec,
    evidence::Documents,
    identity::from_hex,
    message::{Kind, kind_of},
    suite::{self, Hash, VERSION},
};

use crate::{
    agreed::Federation,
    app_messages::{SOFTWARE, clean},
    documents::{self, parse_signed},
    error::Failure,
    files,
    model::{self, Model},
    question::Question,
    replay::Replay,
    report::openings_beside,
    signed::{self, About, Checked, model_digest},
    store::{Said, openings_from_bytes},
};

const FORMAT: &str = "veilsum-bundle/1";
const MANIFEST: &str = "manifest.json";
/// Bytes of a manifest: seven short lines.
const MAX_MANIFEST: usize = 4096;
/// Bytes of the openings of a long run.
const MAX_OPENINGS: usize = 512 << 20;
/// What a bundle may hold, in this order, and how many bytes of each: as much as the programs that write them allow.
const FILES: [(&str, usize); 7] = [
    ("roster.toml", 8 << 20),
    ("plan.toml", 8 << 20),
    ("roster.bin", 8 << 20),
    ("plan.bin", 8 << 20),
    ("result.json", signed::MAX_FILE),
    ("model.json", model::MAX_FILE),
    ("openings.bin", MAX_OPENINGS),
];
/// Bytes of a bundle: everything it may hold. It is not compressed, so it never grows when it is read.
pub const MAX_FILE: usize = (32 << 20) + signed::MAX_FILE + model::MAX_FILE + MAX_OPENINGS + (1 << 20);

const DIGEST: &str = "bundled file";
const NEXT: &str = "ask whoever sent it for the bundle as it was written; do not use this one";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    format: String,
    software: String,
    wire_version: u16,
    files: Vec<Listed>,
}

#[derive(PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    name: String,
    bytes: u64,
    digest: String,
}

/// The files of a bundle, by name.
pub struct Bundle(BTreeMap<&'static str, Vec<u8>>);

/// What a bundle shows.
pub struct Recomputed {
    /// Its documents.
    pub federation: Federation,
    /// Its result.
    pub checked: Checked,
    /// Totals that were recomputed from what the sites signed; `None` where the bundle has no openings.
    pub totals: Option<u32>,
    /// Whether the result, its indices and weights too, was recomputed from them: not where the intermediary judged.
    pub result: bool,
}

/// Whether these bytes begin as a tar archive does.
pub fn is_bundle(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar")
}

fn refused(why: impl std::fmt::Display) -> Failure {
    Failure::input(why, NEXT)
}

impl Bundle {
    /// What belongs to the result at `result`: its model, the openings beside it, roster and plan.
    ///
    /// # Errors
    /// A [`Failure`] that names the file.
    pub fn gather(result: &Path, model: &Path, roster: &Path, plan: &Path) -> Result<Bundle, Failure> {
        let (signed_roster, signed_plan) = documents::load_signed(roster, plan)?;
        let openings = openings_beside(result);
        let mut files = BTreeMap::from([
            ("roster.toml", files::read_limited(roster, FILES[0].1)?),
            ("plan.toml", files::read_limited(plan, FILES[1].1)?),
            ("roster.bin", codec::encode(&signed_roster)),
            ("plan.bin", codec::encode(&signed_plan)),
            ("result.json", files::read_limited(result, signed::MAX_FILE)?),
            ("model.json", files::read_limited(model, model::MAX_FILE)?),
        ]);
        if openings.exists() {
            files.insert("openings.bin", files::read_limited(&openings, MAX_OPENINGS)?);
        }
        Ok(Bundle(files))
    }

    /// The archive. The same contents are always the same bytes.
    ///
    /// # Errors
    /// A [`Failure`] where there is no room for it.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Failure> {
        let named = || FILES.iter().filter_map(|(name, _)| Some((*name, self.0.get(name)?)));
        let listed = |(name, bytes): (&str, &Vec<u8>)| Listed {
            name: name.to_owned(),
            bytes: bytes.len() as u64,
            digest: suite::hash(DIGEST, &[bytes]).to_string(),
        };
        let manifest = Manifest {
            format: FORMAT.into(),
            software: SOFTWARE.into(),
            wire_version: VERSION,
            files: named().map(listed).collect(),
        };
        pack(&manifest_text(&manifest), named()).map_err(|e| refused(format!("it cannot be packed ({e})")))
    }

    /// Reads an archive, of which nothing is believed yet but that its parts fit each other.
    ///
    /// # Errors
    /// A [`Failure`] with what is wrong, without the file's name.
    pub fn from_bytes(bytes: &[u8]) -> Result<Bundle, Failure> {
        let torn = |e: std::io::Error| refused(format!("it is cut off or damaged ({e})"));
        let (mut files, mut manifest, mut next) = (BTreeMap::new(), None, 0);
        for entry in tar::Archive::new(bytes).entries().map_err(torn)? {
            let mut entry = entry.map_err(torn)?;
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let place = FILES[next..].iter().position(|(known, _)| *known == name);
            let (limit, known) = match place {
                _ if manifest.is_none() && name == MANIFEST => (MAX_MANIFEST, None),
                Some(place) if manifest.is_some() => {
                    next += place + 1;
                    (FILES[next - 1].1, Some(FILES[next - 1].0))
                }
                _ => return Err(refused(format!("it holds {:?}, which has no place in a bundle there", clean(&name)))),
            };
            if !entry.header().entry_type().is_file() || entry.size() > limit as u64 {
                return Err(refused(format!("its {name:?} is no file, or has more than {limit} bytes")));
            }
            let mut content = Vec::new();
            entry.read_to_end(&mut content).map_err(torn)?;
            match known {
                None => manifest = Some(content),
                Some(known) => drop(files.insert(known, content)),
            }
        }
        let text = manifest.ok_or_else(|| refused("it has no manifest: it is no bundle, or cut off"))?;
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|e| refused(format!("its manifest cannot be read ({e})")))?;
        if manifest.format != FORMAT {
            let what = format!("it is of the format {:?}, this software reads {FORMAT:?}", clean(&manifest.format));
            return Err(Failure::input(what, "check it with the version of veilsum that wrote it"));
        }
        let bundle = Bundle(files);
        let named = || FILES.iter().filter_map(|(name, _)| Some((*name, bundle.0.get(name)?)));
        let held = named().count() == manifest.files.len()
            && named().zip(&manifest.files).all(|((name, bytes), listed)| {
                listed.name == name
                    && listed.bytes == bytes.len() as u64
                    && listed.digest == suite::hash(DIGEST, &[bytes]).to_string()
            });
        let again = pack(&manifest_text(&manifest), named()).map_err(torn)?;
        if !held || again != bytes {
            return Err(refused("it is not packed as bundles are: a byte was changed, or it is cut off"));
        }
        Ok(bundle)
    }

    fn part(&self, name: &str) -> Result<&[u8], Failure> {
        self.0.get(name).map(Vec::as_slice).ok_or_else(|| refused(format!("it has no {name}")))
    }

    /// Checks every signature and recomputes everything, from nothing but what is in it.
    ///
    /// # Errors
    /// A [`Failure`] with what does not hold, without the file's name.
    pub fn verify(&self) -> Result<Recomputed, Failure> {
        let text =
            |name| std::str::from_utf8(self.part(name)?).map_err(|_| refused(format!("its {name} is not UTF-8")));
        let (roster, plan, federation) = parse_signed(text("roster.toml")?, text("plan.toml")?)?;
        if codec::encode(&roster) != self.part("roster.bin")? || codec::encode(&plan) != self.part("plan.bin")? {
            return Err(refused("its roster or plan for programs is not the one for people"));
        }
        let about = About { roster: &federation.roster, terms: &federation.terms };
        let in_result =
            |failure: Failure| Failure { message: format!("its result.json: {}", failure.message), ..failure };
        let checked = about.check(self.part("result.json")?).map_err(in_result)?;
        let model = self.part("model.json")?;
        check_model(&checked, model)?;
        let Some(openings) = self.0.get("openings.bin") else {
            return Ok(Recomputed { federation, checked, totals: None, result: false });
        };
        let said = openings_from_bytes(openings).ok_or_else(|| refused("its openings cannot be read to their end"))?;
        let (replay, totals) = follow(&federation, &said)?;
        let model_of = Model::from_bytes(model).map_err(|why| refused(format!("its model {why}")))?;
        let own = replay.result(&model_of, true).map_err(|why| refused(format!("its model does not follow: {why}")))?;
        let run = checked.fields.get("run").and_then(|run| run.as_str()).and_then(from_hex);
        let run = run.and_then(|run| run.try_into().ok()).map(Hash);
        if let Some(own) = &own {
            let known = serde_json::to_value(own).unwrap_or_default();
            let domain = federation.work.domain()?;
            let follows = about.follows(&checked.text, &about.fields(known, run.as_ref(), model), &domain);
            follows.map_err(|why| refused(format!("its result does not follow from its openings: {why}")))?;
        }
        Ok(Recomputed { federation, checked, totals: Some(totals), result: own.is_some() })
    }
}

/// Whether a model's file is the one that a result names.
///
/// # Errors
/// A [`Failure`] without the file's name.
pub fn check_model(checked: &Checked, model: &[u8]) -> Result<(), Failure> {
    let said = checked.fields.get("model_digest").and_then(|digest| digest.as_str());
    if said == Some(&model_digest(model).to_string()) {
        return Ok(());
    }
    Err(Failure::input(
        "the model is not the one of this result: a byte was changed, or it is of another run",
        "take model.json and result.json of one run, as it wrote them",
    ))
}

/// Recomputes all totals from what their sites signed, and follows the method with them: its copy at the end, and how many.
fn follow(federation: &Federation, said: &[Said]) -> Result<(Replay, u32), Failure> {
    let documents = Documents { roster: &federation.roster, terms: &federation.terms };
    let mut replay = Replay::new(federation.roster.clone(), federation.terms.clone(), federation.work.clone())?;
    let (mut asked, mut last, mut totals): (Option<&Said>, Option<(Hash, Hash)>, u32) = (None, None, 0);
    for said in said {
        let at = |why: String| refused(format!("its openings, after {totals} totals: {why}"));
        // Whoever has the file may have changed it: a signature that does not hold accuses nobody.
        let unsound = |_: veilsum_proto::Error| {
            at("a frame is not what the coordinator signed for this run: the file was changed, or is another run's"
                .into())
        };
        if kind_of(&said.frame) == Some(Kind::Ask) {
            let question = documents.asked(&said.directory, &said.frame).map_err(unsound)?;
            if let Some((context, name)) = &last
                && (question.previous_context != *context || question.previous_total != *name)
            {
                return Err(at("a question does not follow the opening before it [OPN-7]".into()));
            }
            let parsed =
                Question::from_bytes(&question.query).map_err(|_| at("what was asked is no question".into()))?;
            replay.ask(&parsed).map_err(|why| at(format!("{why} [OPN-9]")))?;
            asked = Some(said);
            continue;
        }
        let ask = asked.take().ok_or_else(|| at("an opening has no question before it".into()))?;
        if ask.directory != said.directory {
            return Err(at("an opening stands under another deck than its question".into()));
        }
        let opened = documents.opened(&ask.directory, &ask.frame, &said.frame).map_err(unsound)?;
        let opened = opened.map_err(|blame| at(format!("{} [{}]", blame.what, blame.rule)))?;
        replay.take(&opened.values, &opened.cohort)?;
        last = Some((opened.asked.context, opened.name));
        totals += 1;
    }
    Ok((replay, totals))
}

fn manifest_text(manifest: &Manifest) -> Vec<u8> {
    // Numbers and texts always have a JSON form.
    let mut text = serde_json::to_vec_pretty(manifest).unwrap_or_default();
    text.push(b'\n');
    text
}

/// A tar archive without a time, an owner or anything else that differs from one machine to the next.
fn pack<'a>(manifest: &[u8], files: impl Iterator<Item = (&'static str, &'a Vec<u8>)>) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, bytes) in std::iter::once((MANIFEST, manifest)).chain(files.map(|(name, bytes)| (name, &bytes[..]))) {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        archive.append_data(&mut header, name, bytes)?;
    }
    archive.into_inner()
}

#[cfg(test)]
mod tests;
