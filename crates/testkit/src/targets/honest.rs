//! A small honest federation: what the targets are measured against, and what the first corpus is made of.

use std::{fs, path::Path, sync::LazyLock};

use chacha20::{ChaCha20Rng, rand_core::SeedableRng};
use veilsum_cluster::{Algorithm, Centres, Domain, OutOfBox, Prepared, Rows, method::Seeding};
use veilsum_node::{
    app_messages,
    documents::{Pinned, write_key, write_plan, write_roster},
    files::Existing,
    model::Model,
    plan::{Column, PlanSpec},
    question::Question,
};
use veilsum_proto::{
    codec,
    identity::Identity,
    message::{HEADER, Kind},
    plan::Terms,
    suite::{self, Hash},
};

use crate::{
    kit::Kit,
    program::Folder,
    recording::{ALL, Course, DROP, REFUSE, Victim, kind},
    wire::{BurnCertificate, parts, raw},
};

/// Roster, plan and one site's rows.
pub struct Federation {
    pub kit: Kit,
    pub work: PlanSpec,
    pub domain: Domain,
    pub rows: Prepared,
}

/// The federation, made once.
pub fn federation() -> &'static Federation {
    static MADE: LazyLock<Federation> = LazyLock::new(|| {
        let column = |name: &str, upper| Column { name: name.into(), lower: 0.0, upper };
        let columns = vec![column("a", 1.0), column("b", 8.0)];
        let algorithm = Algorithm::Fcm { m: 2.0, epsilon: 1e-4, max_rounds: 20 };
        let centres = Centres::new(2, 2, vec![0.2, 0.3, 0.7, 0.6]).expect("two centres");
        let work = PlanSpec::plain(columns, algorithm, 2, Seeding::Given { centres });
        let domain = work.domain().expect("a box");
        let values = (0..24).map(|i| f64::from((i * 7 + i * i) % 23) / if i % 2 == 0 { 23.0 } else { 3.0 }).collect();
        let rows = Rows::new(values, 2).expect("rows");
        let rows = Prepared::new(&rows, &domain, OutOfBox::Clip).expect("rows in the box");
        let kit = Kit::new(4, |t: &mut Terms| t.application = work.to_bytes());
        Federation { kit, work, domain, rows }
    });
    &MADE
}

/// Sites of the recorded run.
pub const SITES: u16 = 4;

/// A recorded run with nobody missing, then with one.
pub fn course() -> &'static Course {
    static MADE: LazyLock<Course> = LazyLock::new(|| Course::new(usize::from(SITES), 2, 5, &[ALL, DROP], false));
    &MADE
}

/// Honest inputs: target, name, bytes.
pub fn corpus() -> Vec<(&'static str, String, Vec<u8>)> {
    let mut all = Vec::new();
    protocol(&mut all);
    application(&mut all);
    texts(&mut all);
    machines(&mut all);
    all.extend(super::opened::corpus());
    all
}

type Corpus = Vec<(&'static str, String, Vec<u8>)>;

fn numbered(kind: Kind) -> u8 {
    Kind::ALL.iter().position(|k| *k == kind).expect("a kind") as u8
}

/// One message of every core kind, the header of every kind, and the entries of a site's journal.
fn protocol(all: &mut Corpus) {
    // Somebody missing, a box that does not open, a refusal, a total opened: every kind of message is in one of them.
    let courses = [
        Course::new(4, 1, 1, &[DROP], false),
        Course::new(5, 1, 2, &[ALL], true),
        Course::new(5, 1, 3, &[REFUSE], false),
        Course::new(4, 2, 4, &[ALL, DROP], false),
    ];
    let mut stream = Vec::new();
    for c in &courses {
        let sent = c.frames_to(0).into_iter().map(|(_, b)| b);
        for b in sent.chain(c.frames_from(|_| true).into_iter().map(|(_, _, b)| b)) {
            let p = parts(b);
            let name = format!("{:?}", p.kind);
            if all.iter().any(|(t, n, _): &(_, String, _)| *t == "message" && *n == name) {
                continue;
            }
            all.push(("message", name.clone(), [&[numbered(p.kind)], &p.rest[..]].concat()));
            all.push(("header", name, b[..HEADER].to_vec()));
            stream.extend_from_slice(b);
        }
    }
    // A slot that gives no total is in none of them.
    let c = &courses[0];
    let promise = |i: usize| raw(&c.kit.identities[i], &c.session, Kind::Burned, &Hash::default(), &[]);
    let certificate =
        BurnCertificate { signers: vec![0, 1], proofs: [2, 3].map(|i| parts(&promise(i)).proof).to_vec() };
    for (kind, rest) in
        [(Kind::Burn, Vec::new()), (Kind::Burned, Vec::new()), (Kind::BurnCertificate, codec::encode(&certificate))]
    {
        all.push(("message", format!("{kind:?}"), [&[numbered(kind)], &rest[..]].concat()));
        let frame = raw(&c.kit.identities[0], &c.session, kind, &Hash::default(), &rest);
        all.push(("header", format!("{kind:?}"), frame[..HEADER].to_vec()));
    }
    stream.truncate(4_000);
    all.push(("carrier", "frames".into(), [&[100], &stream[..]].concat()));
    all.push(("carrier", "one-by-one".into(), [&[1], &stream[..600]].concat()));
    let v = Victim::at(&courses[0], 0, courses[0].told[0].len());
    let entries: Vec<u8> = v.journal.iter().flat_map(|r| entry(&r.to_bytes())).collect();
    all.push(("record", "one-round".into(), entries.clone()));
    all.push(("journal", "one-round".into(), [&[1], &entries[..]].concat()));
    all.push(("journal", "empty".into(), [&[0], &b"veilsum-journal1"[..]].concat()));
    all.push(("codec", "hashes".into(), codec::encode(&vec![vec![Hash::default(); 2]; 2])));
    all.push(("codec", "text".into(), codec::encode("text")));
    let sample = (7u16, vec![1u64, 2], Some([3u8; 32]), "s", vec![(1u16, vec![2u8])], true);
    all.push(("codec", "sample".into(), codec::encode(&(sample, vec![vec![1.5f64]], Ok::<i16, char>(-4)))));
}

pub(super) fn entry(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_le_bytes(), bytes].concat()
}

fn application(all: &mut Corpus) {
    let f = federation();
    let mut put = |kind: Kind, bytes: Vec<u8>| {
        all.push(("message", format!("{kind:?}"), [&[numbered(kind)], &bytes[..]].concat()));
    };
    let (hash, cohort) = (suite::hash("h", &[]), vec![0u16, 1, 2]);
    let software = app_messages::SOFTWARE.to_owned();
    for kind in [Kind::Hello, Kind::Knock] {
        let software = software.clone();
        put(kind, codec::encode(&app_messages::Hello { roster: hash, plan: hash, software }));
    }
    put(Kind::Welcome, codec::encode(&app_messages::Welcome { software }));
    put(Kind::Denied, codec::encode(&app_messages::Denied { why: "another plan".into() }));
    put(Kind::CountReady, codec::encode(&app_messages::CountReady { run: hash, cohort: cohort.clone() }));
    put(Kind::Count, codec::encode(&app_messages::Count { run: hash, cohort: cohort.clone() }));
    put(Kind::CountRequest, codec::encode(&app_messages::CountRequest { cohort: cohort.clone() }));
    put(Kind::CountReply, codec::encode(&app_messages::CountReply { total: Some(1_000) }));
    put(Kind::Aborted, codec::encode(&app_messages::Aborted { code: 4, why: "too few sites".into() }));
    let request = app_messages::JudgeRequest { digest: hash, clusters: vec![2, 3], exponents: vec![1, -4] };
    put(Kind::JudgeRequest, codec::encode(&request));
    let distances = app_messages::CentreDistances { digest: hash, matrices: vec![vec![0.0, 1.0, 1.0, 0.0]] };
    put(Kind::CentreDistances, codec::encode(&distances));
    put(Kind::JudgeReply, codec::encode(&app_messages::JudgeReply::new(cohort, &[])));
    let model = Model::new(&f.work, &hash, &Centres::new(2, 2, vec![0.2, 0.3, 0.7, 0.6]).expect("centres"), None);
    let model = model.expect("a model").to_bytes();
    put(Kind::Finished, codec::encode(&app_messages::Finished { model: model.clone(), ..Default::default() }));
    let signature = f.kit.site(0).identity.sign("corpus", &[]);
    put(Kind::Countersigned, codec::encode(&app_messages::Countersigned { ledger: hash, signature }));
    let batches = f.work.sample().expect("questions");
    put(Kind::Held, codec::encode(&app_messages::Held { batch: batches[0].clone() }));
    all.push(("model", "two-clusters".into(), model));
    all.push(("work", "plain".into(), f.work.to_bytes()));
    all.push(("question", "count".into(), Question::CountRows.to_bytes()));
    let judge = Question::Judge { digest: hash, words: 9 };
    all.push(("question", "judge".into(), judge.to_bytes()));
    for (i, b) in batches.into_iter().enumerate() {
        all.push(("batch", format!("{i}-{}", b.kind()), codec::encode(&b)));
        all.push(("question", format!("drawn-{i}"), Question::Drawn { number: 1, batch: b }.to_bytes()));
    }
    // Every kind of question there is stands in the vectors.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocol/vectors/v4/questions.json");
    let text = fs::read_to_string(path).expect("the vectors are here");
    let file: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let mut bytes: Vec<Vec<u8>> = Vec::new();
    hexadecimal(&file["cases"], &mut bytes);
    for b in bytes.into_iter().filter(|b| b.len() < 2_000) {
        for (target, reads) in [
            ("batch", codec::decode::<veilsum_cluster::Batch>("b", &b, 1 << 20).is_ok()),
            ("question", Question::from_bytes(&b).is_ok()),
        ] {
            if reads {
                let name = suite::hash("corpus", &[&b]).to_string();
                all.push((target, format!("vector-{}", &name[..8]), b.clone()));
            }
        }
    }
}

fn hexadecimal(value: &serde_json::Value, found: &mut Vec<Vec<u8>>) {
    match value {
        serde_json::Value::String(s) => found.extend(veilsum_proto::identity::from_hex(s).filter(|b| b.len() > 3)),
        serde_json::Value::Array(a) => a.iter().for_each(|v| hexadecimal(v, found)),
        serde_json::Value::Object(o) => o.values().for_each(|v| hexadecimal(v, found)),
        _ => {}
    }
}

/// The whole chain of the second implementation.
pub(super) fn ledger() -> Vec<u8> {
    let cases: serde_json::Value =
        serde_json::from_str(include_str!("../../../../protocol/vectors/v4/ledger.json")).expect("the vectors");
    cases["cases"][0]["text"].as_str().expect("a text").into()
}

fn texts(all: &mut Corpus) {
    let f = federation();
    let (roster, hub) = ((*f.kit.roster).clone(), &f.kit.identities[0]);
    let signed = roster.clone().sign(hub).expect("the coordinator signs");
    let plan = (*f.kit.terms).clone().sign(&roster, hub).expect("the coordinator signs");
    all.push(("roster", "four-sites".into(), codec::encode(&signed)));
    all.push(("terms", "plan".into(), codec::encode(&plan)));
    let folder = Folder::fresh();
    let at = |name: &str| folder.0.join(name);
    write_roster(at("roster"), &signed).expect("written");
    write_plan(at("plan"), &plan).expect("written");
    let own = Identity::generate(&mut ChaCha20Rng::seed_from_u64(1));
    Pinned::change(&at("key"), |pinned| pinned.roster = Some(roster.clone())).expect("written");
    fs::rename(at("pinned.toml"), at("pinned")).expect("moved");
    write_key(at("key"), "site-a", &own, Existing::Replace).expect("written");
    fs::write(at("floor"), "min_cohort = 5\ncolluders = 1\nmax_rounds = 100\n").expect("written");
    for (which, name) in ["roster", "plan", "pinned", "floor"].into_iter().enumerate() {
        let text = fs::read(at(name)).expect("read");
        all.push(("documents", name.into(), [&[which as u8], &text[..]].concat()));
    }
    let policy = "min_rows = 3\nmethods = [\"fcm\"]\ncolumns = [\"a\", \"b\"]\nseparation = 0.25\ndata = \"ward 7\"\n[noise]\n\
                  require = true\nepsilon = 0.5\n[release]\nrule = \"report\"\ndomain = 49\n";
    all.push(("documents", "policy".into(), [&[3], policy.as_bytes()].concat()));
    let columns = "format = \"veilsum-columns/1\"\nmissing_marks = [\"-99\"]\n[[column]]\nname = \"a\"\nunit = \"mm\"\nlower = 0\nupper = 1\n\
                   [[categorical]]\ncolumn = \"d\"\ncategories = [\"e\", \"f\"]\n";
    all.push(("documents", "columns".into(), [&[5], columns.as_bytes()].concat()));
    all.push(("documents", "ledger".into(), [&[4], &ledger()[..]].concat()));
    all.push(("key", "key".into(), fs::read(at("key")).expect("read")));
    let tables: [(&str, &str); 5] = [
        ("plain", "a,b,label\n1,2.5,x\n-3e2,0.25,y\n"),
        ("german", "a;b;label\r\n1,5;2;x\r\n"),
        ("quoted", "\u{feff}\"a\",\"b\",\"label\"\n\"1\",\"2\",\"a \"\"b\"\"\"\n"),
        ("tabs", "a\tb\tlabel\n1\t2\tx\n\n\n"),
        ("column", "a\n1\n2\n3\n"),
    ];
    all.extend(tables.map(|(name, text)| ("csv", name.to_owned(), text.as_bytes().to_vec())));
}

/// The recorded run as inputs of the state machines: every step by its number.
fn machines(all: &mut Corpus) {
    let c = course();
    all.push(("site", "run".into(), super::machines::told(c)));
    all.push(("aggregator", "run".into(), super::machines::heard(c)));
    let crash: Vec<u8> =
        super::machines::told(c).chunks(2).flat_map(|op| [op, &[super::machines::RESTART, 0]].concat()).collect();
    all.push(("site", "run-with-restarts".into(), crash));
    for (i, (_, b)) in c.frames_to(0).into_iter().enumerate() {
        let lie = [&[super::machines::PATCHED, i as u8, 1, 8, 0, 1][..], &[0xff]].concat();
        let before = super::machines::told_before(c, i);
        all.push(("site", format!("lie-in-{:?}-{i}", kind(b)), [before, lie].concat()));
    }
}
