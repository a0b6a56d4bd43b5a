//! The two state machines, driven by a small program that the bytes are read as: honest frames of a recorded run, frames
//! changed and signed again by their true sender, invented ones, restarts, silence.

use veilsum_proto::aggregator::{Event, Output};

use super::honest::{Corpus, SITES, course, entry};
use crate::{
    prelude::*,
    recording::{Course, Heard, OF_HUB, Victim, hear, kind},
};

/// A step of the recorded run, as it was.
const HONEST: u8 = 0;
/// A frame of it, changed in place: number, how its context is made, place (two bytes), length, bytes.
const PATCHED: u8 = 1;
/// A frame of any kind around any bytes: kind, number of the frame whose context it has, length (two bytes), bytes.
const INVENTED: u8 = 2;
/// The site's process ends and comes back; at the aggregator a site is gone, and comes back.
const RESTART: u8 = 3;
/// The application refuses; at the aggregator time goes on.
const REFUSE: u8 = 4;
/// The signature is another party's: number of the frame, number of the party.
const STOLEN: u8 = 5;
/// How many operations there are.
const KINDS: u8 = STOLEN + 1;

/// Steps of one input: more take time and show nothing else.
const MOST_STEPS: usize = 64;

/// The recorded run as inputs: every step by its number, with restarts, with a lie in each frame; and what a site kept of it.
pub(super) fn corpus(all: &mut Corpus) {
    let c = course();
    let steps = |n: usize| -> Vec<u8> { (0..n as u8).flat_map(|i| [HONEST, i]).collect() };
    let run = steps(c.told[0].len());
    let crash = run.chunks(2).flat_map(|op| [op, &[RESTART, 0]].concat()).collect();
    all.extend([("site", "run".into(), run), ("site", "run-with-restarts".into(), crash)]);
    all.push(("aggregator", "run".into(), steps(c.heard.len())));
    for (i, (step, b)) in c.frames_to(0).into_iter().enumerate() {
        let lie = [PATCHED, i as u8, 1, 8, 0, 1, 0xff];
        all.push(("site", format!("lie-in-{:?}-{i}", kind(b)), [&steps(step)[..], &lie].concat()));
    }
    let journal = Victim::at(c, 0, c.told[0].len()).journal;
    let entries: Vec<u8> = journal.iter().flat_map(|r| entry(&r.to_bytes())).collect();
    all.push(("journal", "one-round".into(), [&[1], &entries[..]].concat()));
    all.push(("journal", "empty".into(), [&[0], &b"veilsum-journal1"[..]].concat()));
    all.push(("record", "one-round".into(), entries));
}

/// Puts other bytes into this place of a message; what was behind them stays, or is cut off.
pub(super) fn put(rest: &mut Vec<u8>, at: usize, with: &[u8], cut: bool) {
    let at = at % (rest.len() + 1);
    rest.resize(rest.len().max(at + with.len()), 0);
    rest[at..at + with.len()].copy_from_slice(with);
    if cut {
        rest.truncate(at + with.len());
    }
}

/// Bytes as the operations and numbers that they are read as.
pub(super) struct Program<'a>(pub(super) &'a [u8]);

impl<'a> Program<'a> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (b, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*b)
    }

    pub(super) fn short(&mut self) -> Option<usize> {
        Some(usize::from(u16::from_le_bytes([self.byte()?, self.byte()?])))
    }

    pub(super) fn bytes(&mut self, n: usize) -> &'a [u8] {
        let (now, later) = self.0.split_at(n.min(self.0.len()));
        self.0 = later;
        now
    }

    /// A frame changed in place, whose context stays, or becomes the changed message's own, or another frame's; or one of any kind.
    fn message(&mut self, op: u8, c: &Course, frames: &[Parts], honest: &Parts) -> Option<Parts> {
        if op == INVENTED {
            let (kind, of, length) = (self.byte()?, self.byte()?, self.short()?);
            let kind = Kind::ALL[usize::from(kind) % Kind::ALL.len()];
            let rest = self.bytes(length).to_vec();
            return Some(Parts { kind, rest, ..frames[usize::from(of) % frames.len()].clone() });
        }
        let (how, at, length) = (self.byte()?, self.short()?, usize::from(self.byte()?));
        let mut p = honest.clone();
        put(&mut p.rest, at, self.bytes(length), how % 4 == 3);
        p.context = match how % 4 {
            0 => p.context,
            2 => frames[usize::from(how / 4) % frames.len()].context,
            _ => own_context(c, frames, &p),
        };
        Some(p)
    }
}

/// The context that belongs to a message that names its own.
fn own_context(c: &Course, frames: &[Parts], p: &Parts) -> veilsum_proto::suite::Hash {
    let directory = frames.iter().find(|f| f.kind == Kind::DirectoryCertificate).map(|f| f.context);
    match p.kind {
        Kind::OpenDeck => codec::decode::<Open>("open", &p.rest, 1_000).map_or(p.context, |m| deck_id(&c.session, &m)),
        Kind::Ask => codec::decode::<Ask>("ask", &p.rest, 1 << 20)
            .map_or(p.context, |m| round_context(&c.session, &directory.unwrap_or_default(), &m)),
        _ => p.context,
    }
}

/// Site 0 under a coordinator that says anything.
pub(super) fn site(bytes: &[u8]) {
    let c = course();
    let frames: Vec<Parts> = c.frames_to(0).into_iter().map(|(_, b)| parts(b)).collect();
    let mut v = Victim::at(c, 0, 0);
    let mut program = Program(bytes);
    for _ in 0..MOST_STEPS {
        let (Some(op), Some(n)) = (program.byte(), program.byte()) else { break };
        let honest = &frames[usize::from(n) % frames.len()];
        let [coordinator, others @ ..] = &c.kit.identities[..] else { unreachable!("the kit has parties") };
        let sign = |p: &Parts, by: &Identity| raw(by, &c.session, p.kind, &p.context, &p.rest);
        let result = match op % KINDS {
            HONEST => v.tell(&c.told[0][usize::from(n) % c.told[0].len()]),
            op @ (PATCHED | INVENTED) => match program.message(op, c, &frames, honest) {
                Some(p) => v.hear(&sign(&p, coordinator)),
                None => break,
            },
            RESTART => {
                v.restart();
                continue;
            }
            REFUSE => {
                v.refuse();
                continue;
            }
            _ => {
                let stolen = sign(honest, &others[usize::from(n / 16) % others.len()]);
                let result = v.hear(&stolen);
                assert!(result.is_err(), "a frame of another party passed");
                result
            }
        };
        if let Err(e) = result {
            let complains = v.left.iter().all(|p| p.kind == Kind::ShareComplaint);
            assert!(complains, "something left with the refusal: {e}");
        }
        // Three of four sites open a self-mask; one seed a slot may leave.
        v.ledger.check(1, "the site");
    }
}

/// The aggregator among four sites that say anything.
pub(super) fn aggregator(bytes: &[u8]) {
    let c = course();
    let frames: Vec<(u16, Parts)> = c.frames_from(|_| true).into_iter().map(|(_, s, b)| (s, parts(b))).collect();
    let all: Vec<Parts> = frames.iter().map(|(_, p)| p.clone()).collect();
    let mut hub = c.aggregator_at(0);
    let mut program = Program(bytes);
    let (mut now, mut asked, mut failed) = (0, 0, false);
    for _ in 0..2 * MOST_STEPS {
        let (Some(op), Some(n)) = (program.byte(), program.byte()) else { break };
        let (from, honest) = &frames[usize::from(n) % frames.len()];
        let sign = |p: &Parts, by: u16| c.sign_as(by, p.kind, &p.context, &p.rest);
        let input = match op % KINDS {
            HONEST => c.heard[usize::from(n) % c.heard.len()].1.clone(),
            op @ (PATCHED | INVENTED) => {
                let from = if op == PATCHED { *from } else { u16::from(n) % SITES };
                match program.message(op, c, &all, honest) {
                    Some(p) => Heard::Frame(from, sign(&p, from)),
                    None => break,
                }
            }
            RESTART => {
                let site = u16::from(n) % (SITES + 1);
                hub.handle(aggregator::Input::Detached(site), Millis(now));
                if n >= 128 { Heard::Tick } else { Heard::Attached(site) }
            }
            REFUSE => Heard::Tick,
            _ => Heard::Frame(u16::from(n / 16) % SITES, sign(honest, *from)),
        };
        if matches!(input, Heard::Tick) {
            now = hub.next_wake().map_or(now, |w| w.0.max(now));
        }
        // The application asks one question at a time.
        if matches!(input, Heard::Ask(_)) && std::mem::replace(&mut asked, 1) == 1 {
            continue;
        }
        hear(&mut hub, &input, now);
        while let Some(output) = hub.poll() {
            assert!(!failed, "something follows the end");
            match output {
                Output::Send { to, bytes } => assert!(to < SITES && OF_HUB.contains(&kind(&bytes))),
                Output::Event(Event::Lost { site, why: Loss::Misbehaved(e) }) => {
                    let name = c.kit.roster.name_of(PartyId::Site(site));
                    assert!(e.to_string().contains(&name) && e.rule().is_some(), "the culprit is named: {e}");
                }
                Output::Event(Event::Total { values, cohort, .. }) => {
                    asked = 0;
                    assert!(values.len() == WORDS && cohort.len() >= 3 && cohort.is_sorted_by(|a, b| a < b));
                }
                Output::Event(Event::Failed(e)) => {
                    failed = true;
                    assert!(e.rule().is_some(), "a run that fails says under which rule: {e}");
                }
                _ => {}
            }
        }
    }
}
