//! The decoders: they may refuse, they may not panic, and what they accept re-encodes to the bytes it came from.

use std::fs;

use serde::{Serialize, de::DeserializeOwned};
use veilsum_cluster::{Batch, answer};
use veilsum_node::{
    agreed,
    app_messages::{
        Aborted, CentreDistances, Count, CountReady, CountReply, CountRequest, Countersigned, Denied, Finished, Held,
        Hello, JudgeReply, JudgeRequest, Welcome, clean, header_check,
    },
    carrier, documents,
    door::ledger,
    files::{Existing, write_private},
    model::Model,
    plan::PlanSpec,
    question::{Question, SumBounds},
    store::{Entry, Journal},
    table::{self, TableSpec},
};
use veilsum_proto::{
    limits::{MAX_APPLICATION, MAX_BODY, MAX_DELIVERY_BODY, MAX_OPENING, MAX_QUERY},
    message::{HEADER, parse_header},
    plan::SignedTerms,
    roster::SignedRoster,
    vectors_api,
};

use super::{
    honest::{self, Federation},
    machines::Program,
};
use crate::{prelude::*, program::Folder};

/// Decodes, and demands that what was accepted is canonical.
fn canonical<T: Serialize + DeserializeOwned>(bytes: &[u8], limit: usize) -> Option<T> {
    let value = codec::decode::<T>("fuzz", bytes, limit).ok()?;
    assert!(codec::encode(&value) == bytes, "another value re-encodes to these bytes");
    Some(value)
}

pub(super) fn header(bytes: &[u8]) {
    let Some(head) = bytes.first_chunk::<HEADER>() else { return };
    match parse_header(head) {
        Ok((kind, length)) => {
            assert!(length <= kind.body_limit() && kind.body_limit() <= MAX_OPENING.max(MAX_DELIVERY_BODY));
            assert_eq!(kind_of(bytes), Some(kind));
            assert_eq!(header_check(head), Ok(length));
        }
        Err(_) => assert_eq!(kind_of(bytes), None),
    }
}

/// The first byte chooses the kind; the rest is its message.
pub(super) fn message(bytes: &[u8]) {
    let Some((which, rest)) = bytes.split_first() else { return };
    let kind = Kind::ALL[usize::from(*which) % Kind::ALL.len()];
    let limit = kind.body_limit();
    match kind {
        Kind::Hello | Kind::Knock => drop(canonical::<Hello>(rest, limit)),
        Kind::Welcome => drop(canonical::<Welcome>(rest, limit)),
        Kind::Denied => drop(canonical::<Denied>(rest, limit).map(|denied| denied.to_string())),
        Kind::CountReady => drop(canonical::<CountReady>(rest, limit)),
        Kind::Count => drop(canonical::<Count>(rest, limit)),
        Kind::CountRequest => drop(canonical::<CountRequest>(rest, limit)),
        Kind::CountReply => drop(canonical::<CountReply>(rest, limit)),
        Kind::Aborted => drop(canonical::<Aborted>(rest, limit).map(|a| clean(&a.why))),
        Kind::JudgeRequest => drop(canonical::<JudgeRequest>(rest, limit)),
        Kind::CentreDistances => drop(canonical::<CentreDistances>(rest, limit)),
        Kind::Finished => drop(canonical::<Finished>(rest, limit).map(|f| Model::from_bytes(&f.model))),
        Kind::Countersigned => drop(canonical::<Countersigned>(rest, limit)),
        Kind::JudgeReply => drop(canonical::<JudgeReply>(rest, limit).map(|r| r.open())),
        Kind::Held => canonical::<Held>(rest, limit).iter().for_each(|held| answered(&held.batch)),
        _ => {
            let core = vectors_api::decode(kind, rest).expect("every kind below Hello is the core's");
            assert!(core.is_none_or(|again| again == rest), "{kind:?} is not canonical");
        }
    }
}

type Sample = (u16, Vec<u64>, Option<[u8; 32]>, String, Vec<(u16, Vec<u8>)>, bool, Vec<Vec<f64>>, Result<i16, char>);

pub(super) fn codec(bytes: &[u8]) {
    drop(canonical::<Sample>(bytes, MAX_BODY));
    drop(canonical::<Vec<Vec<Hash>>>(bytes, MAX_BODY));
    drop(canonical::<String>(bytes, 100));
}

/// Entries of a journal, each with its length before it: what reads back may restore a site, or be refused.
pub(super) fn record(bytes: &[u8]) {
    let records: Vec<Record> = entries(bytes).filter_map(|e| Record::from_bytes(e).ok()).collect();
    for r in &records {
        assert!(Record::from_bytes(&r.to_bytes()).is_ok_and(|again| again == *r), "an entry reads back as itself");
    }
    drop(Site::restore(honest::course().kit.site(0), records));
}

fn entries(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut program = Program(bytes);
    std::iter::from_fn(move || {
        let length = program.short()?;
        Some(program.bytes(length))
    })
}

/// The file on disk. With an even first byte the rest is the file; with an odd one it is entries, as for `record`, and
/// the file around them is made right.
pub(super) fn journal<R: Entry + PartialEq>(bytes: &[u8]) {
    let Some((how, rest)) = bytes.split_first() else { return };
    let text = if how % 2 == 0 { rest.to_vec() } else { journal_of(rest) };
    let session = suite::hash("fuzz", &[]);
    let name = format!("{}.{}", &session.to_string()[..16], R::ENDING);
    let open = |folder: &Folder| Journal::<R>::open(&folder.0, &session);
    let (folder, copy) = (Folder::fresh(), Folder::fresh());
    fs::write(folder.0.join(&name), text).expect("the temporary folder can be written");
    match open(&folder) {
        Err(damaged) => assert!(damaged.message.contains(" is damaged ("), "{damaged:?}"),
        Ok((_journal, records)) => {
            fs::copy(folder.0.join(&name), copy.0.join(&name)).expect("a copy, which nobody has locked");
            assert!(open(&copy).expect("what was read once reads again").1 == records);
        }
    }
}

fn journal_of(bytes: &[u8]) -> Vec<u8> {
    let mut out = b"veilsum-journal1".to_vec();
    for entry in entries(bytes) {
        let length = (entry.len() as u32).to_le_bytes();
        out.extend(length);
        out.extend(&suite::hash("journal length", &[&length]).0[..4]);
        out.extend(&suite::hash("journal entry", &[entry]).0[..8]);
        out.extend(entry);
    }
    out
}

pub(super) fn terms(bytes: &[u8]) {
    let Some(signed) = canonical::<SignedTerms>(bytes, 2 * MAX_APPLICATION) else { return };
    let roster = &honest::federation().kit.roster;
    let n = roster.sites.len();
    let t = signed.terms.threshold_of(n, n);
    assert!(t.is_err() || signed.terms.check(roster).is_err() || signed.terms.min_cohort >= 3);
    if let Ok(terms) = signed.verify(roster) {
        drop(PlanSpec::from_bytes(&terms.application).map(|w| agreed::prove(roster, &terms, &w)));
    }
}

pub(super) fn roster(bytes: &[u8]) {
    let roster = canonical::<SignedRoster>(bytes, MAX_BODY).and_then(|signed| signed.verify().ok());
    assert!(roster.is_none_or(|roster| roster.sites.len() >= 3), "a roster of too few passed");
}

pub(super) fn work(bytes: &[u8]) {
    let Ok(work) = PlanSpec::from_bytes(bytes) else { return };
    assert_eq!(work.to_bytes(), bytes);
    let f = honest::federation();
    // The proof that no sum overflows must end, whatever the plan says, and a plan that passes has a first question.
    if agreed::prove(&f.kit.roster, &f.kit.terms, &work).is_ok() {
        work.first_question(f.kit.roster.sites.len()).expect("a proved plan can be begun");
    }
}

/// The first byte chooses the document; the rest is its text.
pub(super) fn documents(bytes: &[u8]) {
    let Some((which, text)) = bytes.split_first() else { return };
    let f = honest::federation();
    let folder = Folder::fresh();
    let path = folder.0.join(if which % 6 == 2 { "pinned.toml" } else { "document.toml" });
    fs::write(&path, text).expect("the temporary folder can be written");
    match which % 6 {
        0 => drop(documents::load_roster(&path)),
        1 => drop(documents::load_plan(&path, &f.kit.roster).map(|t| PlanSpec::from_bytes(&t.application))),
        2 => drop(documents::Pinned::load(&path.with_file_name("a.key"))),
        3 => drop(documents::load_policy(&path)),
        5 => drop(documents::load_columns(&path)),
        // Whatever is no chain of this party's is refused with the entry at fault.
        _ => drop(ledger::check(&path, None)),
    }
}

pub(super) fn key(bytes: &[u8]) {
    let folder = Folder::fresh();
    let path = folder.0.join("k.key");
    write_private(&path, bytes, Existing::Replace).expect("the temporary folder can be written");
    if let Err(e) = documents::load_identity(&path) {
        // A seed that is only a little wrong must not be quoted.
        let text = e.to_string();
        let longest = text.split(|c: char| !c.is_ascii_hexdigit()).map(str::len).max().unwrap_or(0);
        assert!(longest < 32, "an error quotes the key file: {text}");
    }
}

pub(super) fn csv(bytes: &[u8]) {
    let label = Some("label".to_owned());
    for spec in
        [TableSpec::default(), TableSpec { columns: vec!["a".into(), "b".into()], label, ..TableSpec::default() }]
    {
        if let Ok(table) = table::read_csv_from(bytes, "fuzz", &spec) {
            assert_eq!(table.values.len(), table.rows * table.columns.len());
            assert!(table.values.iter().all(|v| v.is_finite()), "a number that is none passed");
            assert!(table.labels.is_none_or(|l| l.len() == table.rows));
        }
    }
}

pub(super) fn model(bytes: &[u8]) {
    if let Ok(model) = Model::from_bytes(bytes) {
        let again = Model::from_bytes(&model.to_bytes()).expect("what was read can be written and read");
        assert!(again == model);
        let domain = model.domain().expect("a checked model has a box");
        drop(model.working_centres().map(|c| c.k()));
        drop(model.centres());
        drop(model.to_working(vec![0.5; domain.columns()]));
        let u = model.memberships(vec![0.5; domain.columns()]).ok();
        assert!(u.is_none_or(|u| u.iter().all(|u| (0.0..=1.0).contains(u))), "a membership that is none");
    }
}

/// Words of an answer that a target works out: beyond it, only the checks run.
const MOST_WORDS: usize = 20_000;

fn answered(batch: &Batch) {
    let Federation { rows, domain, .. } = honest::federation();
    if batch.check(domain).is_err() {
        return;
    }
    let blocks = batch.layout(domain).expect("a checked question has a layout");
    assert!(blocks.iter().all(|b| b.bound >= 0.0 && !b.bound.is_nan()), "a bound that is none");
    let words: usize = blocks.iter().map(|b| b.len).sum();
    if words <= MOST_WORDS
        && let Ok(statistic) = answer(batch, rows)
    {
        assert_eq!(statistic.values.len(), words, "the answer has the length of its layout");
        assert!(statistic.values.iter().all(|v| v.is_finite()), "an answer that is no number");
    }
}

pub(super) fn batch(bytes: &[u8]) {
    codec::decode::<Batch>("fuzz", bytes, MAX_QUERY).iter().for_each(answered);
}

pub(super) fn question(bytes: &[u8]) {
    let Ok(question) = Question::from_bytes(bytes) else { return };
    assert_eq!(question.to_bytes(), bytes);
    let f = honest::federation();
    if let Question::Cluster(batch) | Question::Drawn { batch, .. } = &question
        && batch.check(&f.domain).is_err()
    {
        return;
    }
    drop(question.layout(&f.domain, &SumBounds::new(f.kit.roster.sites.len(), f.kit.terms.max_rows)));
}

/// The first byte is how the stream is cut; the rest is the stream.
pub(super) fn carrier(bytes: &[u8]) {
    let Some((step, stream)) = bytes.split_first() else { return };
    let step = usize::from(*step).max(1);
    let read = |step: usize| {
        let mut assembler = carrier::Assembler::new(header_check);
        let (mut rest, mut frames) = (stream, Vec::new());
        while !rest.is_empty() {
            let (now, later) = rest.split_at(step.min(assembler.wants()).min(rest.len()));
            rest = later;
            match assembler.push(now) {
                Ok(frame) => frames.extend(frame),
                Err(fault) => return (frames, Err(fault)),
            }
        }
        (frames, assembler.end())
    };
    let frames = read(step);
    assert_eq!(frames, read(usize::MAX), "how a stream is cut changes nothing");
    let whole: usize = frames.0.iter().map(Vec::len).sum();
    assert_eq!(frames.0.concat(), stream[..whole], "frames are the stream, piece by piece");
}
