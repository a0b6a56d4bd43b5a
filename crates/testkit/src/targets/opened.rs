//! What a coordinator asked and opened, shown to somebody who has only roster and plan, and the transcript that a site keeps. Whatever
//! the bytes are, a coordinator is not blamed that signed nothing else than the protocol makes an honest one sign.

use std::sync::LazyLock;

use veilsum_node::store::{Said, Told};

use super::{
    honest::{Corpus, course, entry},
    machines::{Program, put},
};
use crate::{
    prelude::*,
    recording::{Course, kind},
};

/// What was said in the recorded run, by whom.
struct Spoken {
    directory: Hash,
    frames: Vec<(PartyId, Vec<u8>)>,
}

fn spoken() -> &'static Spoken {
    static MADE: LazyLock<Spoken> = LazyLock::new(|| {
        let c = course();
        let told = c.frames_to(0);
        let certificate = told.iter().find(|(_, b)| kind(b) == Kind::DirectoryCertificate).expect("a deck");
        let wanted = |b: &[u8]| matches!(kind(b), Kind::Ask | Kind::Opening | Kind::MaskedInput | Kind::Survivors);
        let of_hub = told.iter().map(|(_, b)| (PartyId::Coordinator, b.to_vec()));
        let of_sites = c.frames_from(|_| true).into_iter().map(|(_, s, b)| (PartyId::Site(s), b.to_vec()));
        Spoken {
            directory: parts(certificate.1).context,
            frames: of_hub.chain(of_sites).filter(|(_, b)| wanted(b)).collect(),
        }
    });
    &MADE
}

fn key(c: &Course, by: PartyId) -> &veilsum_proto::identity::Identity {
    match by {
        PartyId::Site(s) => c.identity(s),
        _ => &c.kit.identities[0],
    }
}

/// A frame of the run: its number, how it is changed, place (two bytes), length, bytes. Who spoke, the frame, whether it is
/// as it was.
fn shown(c: &Course, program: &mut Program<'_>) -> Option<(PartyId, Vec<u8>, bool)> {
    let (number, how, at, length) = (program.byte()?, program.byte()?, program.short()?, program.byte()?);
    let with = program.bytes(length.into());
    let all = &spoken().frames;
    let (by, honest) = &all[usize::from(number) % all.len()];
    let mut bytes = honest.clone();
    match how % 3 {
        // As it came, or with other bytes under a signature that was not on them.
        0 => {
            let at = at % bytes.len();
            let end = bytes.len().min(at + with.len());
            bytes[at..end].copy_from_slice(&with[..end - at]);
        }
        // With other bytes that its sender signed; all that was behind them stays, or is cut off.
        cut => {
            let mut p = parts(honest);
            put(&mut p.rest, at, with, cut == 2);
            bytes = raw(key(c, *by), &c.session, p.kind, &p.context, &p.rest);
        }
    }
    let same = bytes == *honest;
    Some((*by, bytes, same))
}

/// A question, and its opening.
pub(super) fn frames(bytes: &[u8]) {
    let c = course();
    let documents = Documents { roster: &c.kit.roster, terms: &c.kit.terms };
    let mut program = Program(bytes);
    // The raw bytes themselves are nobody's.
    assert!(documents.asked(&spoken().directory, bytes).is_err());
    let (Some(one), Some(other)) = (shown(c, &mut program), shown(c, &mut program)) else { return };
    drop(documents.asked(&spoken().directory, &one.1));
    match documents.opened(&spoken().directory, &one.1, &other.1) {
        Ok(Err(_)) => {
            let lied = [&one, &other].iter().any(|(by, _, same)| *by == PartyId::Coordinator && !same);
            assert!(lied, "the coordinator said nothing but the truth");
        }
        Ok(Ok(opened)) if one.2 && other.2 => {
            let total = (opened.values, opened.cohort);
            assert!(c.totals.contains(&total), "honest frames open another total");
        }
        _ => {}
    }
}

/// A question and its opening, as they were and with a lie; and a transcript of them, whole and torn.
pub(super) fn corpus(all: &mut Corpus) {
    let frames = &spoken().frames;
    let at = |wanted: Kind| frames.iter().position(|(_, b)| kind(b) == wanted).expect("it was said in the run");
    let (ask, opening) = (at(Kind::Ask), at(Kind::Opening));
    let honest = [ask as u8, 0, 0, 0, 0];
    all.push(("opened", "opened".into(), [honest, [opening as u8, 0, 0, 0, 0]].concat()));
    all.push(("opened", "a-lie".into(), [&honest[..], &[opening as u8, 1, 8, 0, 1, 0xff]].concat()));
    let said = |n: usize| Told::Said(Said { directory: spoken().directory, frame: frames[n].1.clone() });
    let told = [Told::Counted(vec![0, 1, 2]), said(ask), said(opening)];
    let round: Vec<u8> = told.iter().flat_map(|told| entry(&codec::encode(told))).collect();
    all.push(("transcript", "torn".into(), [&[1], &round[..round.len() - 100]].concat()));
    all.push(("transcript", "one-round".into(), [&[1], &round[..]].concat()));
}
