//! Reads the vectors, draws their numbers, and plays their sessions.

use std::{convert::Infallible, path::Path};

use rand_core::{TryCryptoRng, TryRng};
use serde_json::{Value, json};
use veilsum_proto::{identity::from_hex, limits::MAX_BODY, plan::SignedTerms, roster::SignedRoster};

use crate::prelude::*;

pub const SESSIONS: [&str; 7] =
    ["session_3", "session_5", "session_7", "session_4_of_5", "session_10", "session_same", "session_counted"];

pub fn read(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../protocol/vectors/v4/{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

pub fn cases(name: &str) -> Vec<Value> {
    list(&read(name)["cases"]).to_vec()
}

#[track_caller]
pub fn list(v: &Value) -> &[Value] {
    v.as_array().unwrap_or_else(|| panic!("no list: {v}"))
}

#[track_caller]
pub fn number(v: &Value) -> u64 {
    v.as_u64().unwrap_or_else(|| panic!("no number: {v}"))
}

#[track_caller]
pub fn hex(v: &Value) -> Vec<u8> {
    v.as_str().and_then(from_hex).unwrap_or_else(|| panic!("not hexadecimal: {v}"))
}

#[track_caller]
pub fn array(v: &Value) -> [u8; 32] {
    hex(v).try_into().expect("32 bytes")
}

#[track_caller]
pub fn hash(v: &Value) -> Hash {
    Hash(array(v))
}

pub fn text(bytes: &[u8]) -> Value {
    bytes.iter().map(|b| format!("{b:02x}")).collect::<String>().into()
}

pub fn raw(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

pub fn words_of(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect()
}

/// The vectors' drawn bytes: SHA-256(name, 0, le64(0)), SHA-256(name, 0, le64(1)), … one after the other.
pub struct Draws {
    name: Vec<u8>,
    block: u64,
    rest: Vec<u8>,
}

impl Draws {
    pub fn new(name: &str) -> Draws {
        Draws { name: name.into(), block: 0, rest: Vec::new() }
    }

    pub fn take(&mut self, n: usize) -> Vec<u8> {
        use sha2::{Digest, Sha256};
        while self.rest.len() < n {
            let block = Sha256::new().chain_update(&self.name).chain_update([0]).chain_update(self.block.to_le_bytes());
            self.rest.extend_from_slice(&block.finalize());
            self.block += 1;
        }
        self.rest.drain(..n).collect()
    }
}

impl TryRng for Draws {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_le_bytes(self.take(4).try_into().unwrap()))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from_le_bytes(self.take(8).try_into().unwrap()))
    }

    fn try_fill_bytes(&mut self, dst: &mut [u8]) -> Result<(), Infallible> {
        dst.copy_from_slice(&self.take(dst.len()));
        Ok(())
    }
}

impl TryCryptoRng for Draws {}

/// A session of the vectors.
pub struct Session {
    file: Value,
}

impl Session {
    pub fn read(name: &str) -> Session {
        Session { file: read(name) }
    }

    pub fn steps(&self) -> &[Value] {
        list(&self.file["steps"])
    }

    /// A frame by its name, or from its digits where it has none.
    fn frame(&self, v: &Value) -> Vec<u8> {
        hex(v.as_str().and_then(|name| self.file["frames"].get(name)).unwrap_or(v))
    }

    /// Expected outputs, with frames in place of their names.
    fn outputs(&self, step: &Value) -> Vec<Value> {
        let mut out = list(&step["out"]).to_vec();
        for o in &mut out {
            if let Some(name) = o.get("send") {
                o["send"] = text(&self.frame(name));
            }
        }
        out
    }
}

/// The parties of a session, as this crate plays them.
pub struct Player {
    pub what: String,
    kit: Kit,
    aggregator: Aggregator,
    sites: Vec<(Site, Draws, Option<Asked>)>,
    now: u64,
    done: usize,
}

/// Longer than any session: nobody is lost but for those the session says are gone.
const LONG: u64 = 1 << 40;
const GRACE: u64 = 2_000;

impl Player {
    pub fn new(session: &Session) -> Player {
        let setting = &session.file["setting"];
        let name = setting["name"].as_str().expect("a name");
        let identity = |seed| Arc::new(Identity::from_seed(&array(seed)));
        let signed: SignedRoster = codec::decode("roster", &hex(&setting["roster"]), MAX_BODY).unwrap();
        let roster = Arc::new(signed.verify().expect("a signed roster"));
        let signed: SignedTerms = codec::decode("plan", &hex(&setting["plan"]), MAX_BODY).unwrap();
        let terms = Arc::new(signed.verify(&roster).expect("a signed plan"));
        let role = if setting["role"] == "Intermediary" { PartyId::Intermediary } else { PartyId::Coordinator };
        let identities = list(&setting["identities"]).iter().map(identity).collect();
        let kit = Kit { identities, roster, terms, floor: Floor::default(), role };
        let site = |i: usize| {
            let mut site = Site::new(kit.site(i as u16)).unwrap();
            site.set_standing(standing(&setting["standings"][i]));
            (site, Draws::new(&format!("{name}/site {i}")), None)
        };
        let sites = (0..kit.roster.sites.len()).map(site).collect();
        let draws = &mut Draws::new(&format!("{name}/aggregator"));
        let timing = Timing { join: LONG, phase: LONG, grace: GRACE, resend: LONG };
        let aggregator = Aggregator::new(AggregatorConfig { timing, ..kit.coordinator() }, Millis(0), draws).unwrap();
        Player { what: name.to_owned(), kit, aggregator, sites, now: 0, done: 0 }
    }

    /// A site comes back with these entries in its journal.
    pub fn restore(&mut self, i: usize, entries: &[Value]) -> Result<(), Error> {
        let records = entries.iter().map(|e| Record::from_bytes(&hex(e))).collect::<Result<Vec<_>, _>>()?;
        self.sites[i].0 = Site::restore(self.kit.site(i as u16), records)?;
        Ok(())
    }

    /// One input of one party; its outputs must be those of the vectors.
    pub fn step(&mut self, session: &Session, step: &Value) {
        let found = match step["at"].as_u64() {
            Some(i) => self.site(i as usize, session, &step["in"]),
            None => self.hub(session, &step["in"]),
        };
        let expected = session.outputs(step);
        for (f, e) in found.iter().zip(&expected) {
            assert_eq!(f, e, "{}, step {}, at {}: {}", self.what, self.done, step["at"], step["in"]);
        }
        assert_eq!(found.len(), expected.len(), "{}, step {}: {found:?}", self.what, self.done);
        self.done += 1;
    }

    fn site(&mut self, i: usize, session: &Session, given: &Value) -> Vec<Value> {
        let (site, draws, asked) = &mut self.sites[i];
        let frame = given.get("frame").map(|frame| session.frame(frame));
        let input = match (&frame, asked.as_ref(), given["refuse"].as_str()) {
            (Some(frame), ..) => site::Input::Message(frame),
            (_, Some(asked), Some(rule)) => site::Input::Refuse { context: asked.context, rule: rule.parse().unwrap() },
            (_, asked, _) => {
                let consent = self.kit.consents(asked.expect("a question"));
                let values = words_of(&hex(&given["contribute"]));
                site::Input::Contribute { consent: consent.expect("its own question"), values }
            }
        };
        let result = site.handle(input, draws);
        let mut out = Vec::new();
        while let Some(output) = site.poll() {
            if let site::Output::Event(site::Event::Asked(a)) = &output {
                *asked = Some(a.clone());
            }
            out.push(site_output(&output));
        }
        let rule = |e: &Error| if matches!(e, Error::Journal(_)) { Rule::Jrn3 } else { rule(e) };
        out.extend(result.err().map(|e| json!({"refused": rule(&e)})));
        out
    }

    fn hub(&mut self, session: &Session, given: &Value) -> Vec<Value> {
        use aggregator::Input;
        let site = |key: &str| given.get(key).map(|v| number(v) as u16);
        let frame = given.get("frame").map(|frame| session.frame(frame)).unwrap_or_default();
        let frame = [(site("from").unwrap_or_default(), &frame[..])];
        let input = match (site("attached"), site("gone"), site("from")) {
            (Some(i), ..) => Input::Attached(i),
            (_, Some(i), _) => Input::Detached(i),
            (.., Some(_)) => Input::Messages(&frame),
            _ if given.get("close").is_some() => Input::Close,
            _ => Input::Ask { query: hex(&given["ask"]["query"]), words: number(&given["ask"]["words"]) as usize },
        };
        self.aggregator.handle(input, Millis(self.now));
        if site("gone").is_some() {
            self.now += GRACE;
            self.aggregator.handle(Input::Tick, Millis(self.now));
        }
        // What it keeps for itself is not part of the vectors.
        let kept = |o: &aggregator::Output| matches!(o, aggregator::Output::Persist(_));
        std::iter::from_fn(|| self.aggregator.poll()).filter(|o| !kept(o)).map(|o| hub_output(&o)).collect()
    }
}

/// How far a ledger has come.
pub fn answered(v: &Value) -> Answered {
    Answered { number: number(&v["number"]), link: hash(&v["link"]) }
}

/// What a site states of its account; nothing of its ledger where it says nothing.
pub fn standing(v: &Value) -> Standing {
    let answered = v.get("answered").map(answered).unwrap_or_default();
    let account = v["account"].as_str().map(|_| hash(&v["account"]));
    Standing { account, answered }
}

fn site_output(output: &site::Output) -> Value {
    use site::{Event, Output};
    match output {
        Output::Persist(record) => json!({"persist": text(&record.to_bytes())}),
        Output::Rewrite(records) => json!({"rewrite": records.iter().map(|r| text(&r.to_bytes())).collect::<Vec<_>>()}),
        Output::Send { bytes, .. } => json!({"send": text(bytes)}),
        Output::Event(Event::DeckReady { index, members, threshold }) => {
            json!({"deck_ready": {"index": index, "members": members, "threshold": threshold}})
        }
        Output::Event(Event::Met { deck, members }) => {
            let stated = |m: &Member| json!([m.site, m.standing.answered.number, text(&m.standing.answered.link.0)]);
            json!({"met": {"deck": deck, "members": members.iter().map(stated).collect::<Vec<_>>()}})
        }
        Output::Event(Event::Asked(a)) => json!({"asked": {
            "context": text(&a.context.0), "deck": a.slot.0, "slot": a.slot.1, "cohort": a.cohort, "words": a.words,
            "query": text(&a.query), "rounds": a.rounds,
        }}),
        Output::Event(Event::Opened { slot, directory, values, cohort }) => json!({"opened": {
            "deck": slot.0, "slot": slot.1, "directory": text(&directory.0), "words": text(&raw(values)),
            "cohort": cohort,
        }}),
        Output::Event(Event::Released { slot, missing }) => {
            json!({"released": {"deck": slot.0, "slot": slot.1, "missing": missing}})
        }
        Output::Event(other) => panic!("an event that the vectors do not know: {other:?}"),
    }
}

fn hub_output(output: &aggregator::Output) -> Value {
    use aggregator::{Event, Output};
    match output {
        Output::Persist(_) => Value::Null,
        Output::Send { to, bytes } => json!({"send": text(bytes), "to": to}),
        Output::Event(Event::DeckReady { index, members, threshold }) => {
            json!({"deck_ready": {"index": index, "members": members, "threshold": threshold}})
        }
        Output::Event(Event::Total { values, cohort, missing }) => {
            json!({"total": {"words": text(&raw(values)), "cohort": cohort, "missing": missing}})
        }
        Output::Event(Event::Lost { site, why }) => {
            let why = match why {
                Loss::Gone => "gone".to_owned(),
                Loss::Refused(rule) => format!("refused {rule}"),
                Loss::Misbehaved(e) => rule(e).to_string(),
                other => format!("{other:?}"),
            };
            json!({"lost": site, "why": why})
        }
        Output::Event(Event::WrongShare { holder, owner }) => {
            json!({"wrong_share": {"holder": holder, "owner": owner}})
        }
        Output::Event(Event::TooLate(site)) => json!({"too_late": site}),
        Output::Event(Event::Failed(e)) => json!({"failed": rule(e)}),
        Output::Event(other) => panic!("an event that the vectors do not know: {other:?}"),
    }
}
