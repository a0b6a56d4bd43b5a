//! Signed evidence in a file: what a party said that breaks a rule, for somebody who holds nothing but roster and plan
//! ([EVD-1], [EVD-2]).

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use veilsum_proto::{
    Rule,
    evidence::{Blame, Documents},
    identity::{from_hex, to_hex},
    message::{Kind, kind_of},
    roster::PartyId,
    suite::Hash,
};

use crate::{
    documents::{Federation, fingerprint},
    error::{Code, Failure},
    files::{self, Existing},
    method_session::MethodSession,
    question::Question,
    store::Said,
};

const FORMAT: &str = "veilsum-evidence/1";
/// Bytes of an evidence file: the frames of a long run as hexadecimal digits.
const MAX_FILE: usize = 512 << 20;

/// What the frames are laid before a third party for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Case {
    /// A question of the coordinator and a false opening of its total.
    Opening,
    /// All questions and openings of a run from its first, of which the last question is none that follows.
    Course,
    /// A site's masked input that is not the vector it committed to.
    Input,
    /// Two messages of one party where a round has one.
    Twice,
}

/// The file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    roster: String,
    plan: String,
    accused: String,
    rule: Rule,
    what: String,
    case: Case,
    frames: Vec<FrameText>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FrameText {
    directory: Hash,
    frame: String,
}

/// What evidence shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Name of the party at fault.
    pub culprit: String,
    /// The rule it broke.
    pub rule: Rule,
    /// What it did.
    pub what: String,
}

/// Writes evidence into `folder` and says where.
///
/// # Errors
/// A [`Failure`] where the file cannot be written.
pub fn write(
    folder: &Path,
    federation: Documents<'_>,
    accused: PartyId,
    (rule, what): (Rule, &str),
    case: Case,
    frames: &[Said],
) -> Result<PathBuf, Failure> {
    let text = |said: &Said| FrameText { directory: said.directory, frame: to_hex(&said.frame) };
    let file = File {
        format: FORMAT.into(),
        roster: federation.roster.hash().to_string(),
        plan: federation.terms.hash().to_string(),
        accused: federation.roster.name_of(accused),
        rule,
        what: what.into(),
        case,
        frames: frames.iter().map(text).collect(),
    };
    let bytes = serde_json::to_vec_pretty(&file).map_err(|e| Failure::new(Code::Internal, e, "please report it"))?;
    let name: String = to_hex(&veilsum_proto::suite::hash("evidence", &[&bytes]).0[..4]);
    let path = folder.join(format!("evidence-{rule}-{name}.json"));
    files::write_private(&path, &bytes, Existing::Replace)?;
    Ok(path)
}

/// Reads evidence and judges it anew from the signatures in it; what the file says of itself counts for nothing.
///
/// # Errors
/// A [`Failure`] where it cannot be read, is of another federation, or proves nothing.
pub fn verify(path: &Path, federation: &Federation) -> Result<Finding, Failure> {
    let bytes = files::read_limited(path, MAX_FILE)?;
    let unusable = |why: String| {
        Failure::input(format!("{}: {why}", path.display()), "ask whoever sent it for the file as it was written")
    };
    let file: File = serde_json::from_slice(&bytes).map_err(|e| unusable(format!("it is no evidence file ({e})")))?;
    if file.format != FORMAT {
        return Err(unusable(format!("it is of the format {:?}, this software reads {FORMAT:?}", file.format)));
    }
    let (roster, plan) = (federation.roster.hash(), federation.terms.hash());
    for (what, said, ours, short) in
        [("roster", &file.roster, roster, fingerprint(&roster.0)), ("plan", &file.plan, plan, fingerprint(&plan.0))]
    {
        if *said != ours.to_string() {
            return Err(Failure::input(
                format!("{}: it is about another {what}", path.display()),
                format!("give the {what} it was made under; this one's fingerprint is {short}"),
            ));
        }
    }
    let said = |FrameText { directory, frame }| Said { directory, frame: from_hex(&frame).unwrap_or_default() };
    let frames: Vec<Said> = file.frames.into_iter().map(said).collect();
    let accused = party(federation, &file.accused).ok_or_else(|| {
        unusable(format!("it accuses {:?}, who is not on the roster", crate::app_messages::clean(&file.accused)))
    })?;
    let blame = judge(federation, accused, file.case, &frames).map_err(|f| unusable(f.message))?;
    let blame = blame.ok_or_else(|| unusable("what it shows breaks no rule: it proves nothing".into()))?;
    Ok(Finding { culprit: federation.roster.name_of(blame.culprit), rule: blame.rule, what: blame.what })
}

fn party(federation: &Federation, name: &str) -> Option<PartyId> {
    let sites = (0..federation.roster.sites.len() as u16).map(PartyId::Site);
    let mut all = [PartyId::Coordinator, PartyId::Intermediary].into_iter().chain(sites);
    all.find(|id| federation.roster.name_of(*id) == name)
}

/// Who broke which rule, from the frames alone.
fn judge(federation: &Federation, accused: PartyId, case: Case, frames: &[Said]) -> Result<Option<Blame>, Failure> {
    let documents = Documents { roster: &federation.roster, terms: &federation.terms };
    match (case, frames, accused) {
        (Case::Opening, [ask, opening], PartyId::Coordinator) => {
            Ok(documents.opened(&ask.directory, &ask.frame, &opening.frame)?.err())
        }
        (Case::Course, frames, PartyId::Coordinator) => course(federation, documents, frames),
        (Case::Input, [input], PartyId::Site(site)) => Ok(documents.input(site, &input.frame)?),
        (Case::Twice, [one, other], by) => Ok(documents.twice(by, &one.frame, &other.frame)?),
        _ => Err(Failure::input("it does not hold what its case consists of", "")),
    }
}

/// Follows a run from its first question and finds the first word of the coordinator that does not follow.
fn course(federation: &Federation, documents: Documents<'_>, frames: &[Said]) -> Result<Option<Blame>, Failure> {
    let mut conversation = MethodSession::of(&federation.work, federation.form()?)?;
    let blame = |what: &str, rule| Ok(Some(Blame { culprit: PartyId::Coordinator, what: what.into(), rule }));
    let (mut asked, mut last): (Option<&Said>, Option<(Hash, Hash)>) = (None, None);
    for said in frames {
        if kind_of(&said.frame) == Some(Kind::Ask) {
            let question = documents.asked(&said.directory, &said.frame)?;
            match last {
                None if question.previous_context != Hash::default() => {
                    return Err(Failure::input("its first question is not the first of a run", ""));
                }
                Some((context, _)) if question.previous_context != context => {
                    return Err(Failure::input("its questions do not follow each other", ""));
                }
                Some((_, name)) if question.previous_total != name => {
                    return blame("asked on as if another total had been opened than it opened", Rule::Opn7);
                }
                _ => {}
            }
            let Ok(parsed) = Question::from_bytes(&question.query) else {
                return blame("asked what is no question", Rule::Qry1);
            };
            if !conversation.expects(&parsed) {
                return blame("asked what the plan's method does not ask on the totals it opened", Rule::Opn9);
            }
            asked = Some(said);
            continue;
        }
        let Some(ask) = asked.take() else {
            return Err(Failure::input("an opening in it has no question before it", ""));
        };
        match documents.opened(&ask.directory, &ask.frame, &said.frame)? {
            Err(blame) => return Ok(Some(blame)),
            Ok(opened) => {
                conversation.take(&opened.values, &opened.cohort)?;
                last = Some((opened.asked.context, opened.name));
            }
        }
    }
    Ok(None)
}
