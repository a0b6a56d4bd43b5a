//! A small honest federation: what the targets are measured against, and what the first corpus is made of.

use std::{fs, sync::LazyLock};

use veilsum_cluster::{Algorithm, Centres, Domain, OutOfBox, Prepared, Rows, method::Seeding};
use veilsum_node::{
    documents::{Pinned, write_key, write_plan, write_roster},
    files::Existing,
    model::Model,
    plan::{Column, PlanSpec},
    question::Question,
};
use veilsum_proto::{identity::from_hex, message::HEADER};

use super::{machines, opened};
use crate::{
    prelude::*,
    program::Folder,
    recording::{ALL, Course, DROP},
    vectors::{cases, hex, read},
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
    static MADE: LazyLock<Course> = LazyLock::new(|| Course::new(usize::from(SITES), 2, 5, &[ALL, DROP]));
    &MADE
}

/// Target, name, bytes.
pub(super) type Corpus = Vec<(&'static str, String, Vec<u8>)>;

/// Honest inputs: what the test vectors have, and what of this federation has to be signed, kept or told.
pub fn corpus() -> Corpus {
    let mut all = Vec::new();
    frames(&mut all);
    questions(&mut all);
    texts(&mut all);
    machines::corpus(&mut all);
    opened::corpus(&mut all);
    all
}

/// One message of every kind, its header, and a stream of them.
fn frames(all: &mut Corpus) {
    let mut stream = Vec::new();
    for case in cases("frames").iter().filter(|case| case.get("kind").is_some()) {
        let (name, frame) = (case["kind"].as_str().expect("a name").to_owned(), hex(&case["frame"]));
        let number = Kind::ALL.iter().position(|k| Some(*k) == kind_of(&frame)).expect("a kind") as u8;
        all.push(("message", name.clone(), [&[number], &hex(&case["message"])[..]].concat()));
        all.push(("header", name, frame[..HEADER].to_vec()));
        stream.extend(frame);
    }
    all.push(("carrier", "frames".into(), [&[100], &stream[..4_000]].concat()));
    all.push(("carrier", "one-by-one".into(), [&[1], &stream[..600]].concat()));
    all.push(("codec", "hashes".into(), codec::encode(&vec![vec![Hash::default(); 2]; 2])));
    all.push(("codec", "text".into(), codec::encode("text")));
    let sample = (7u16, vec![1u64, 2], Some([3u8; 32]), "s", vec![(1u16, vec![2u8])], true);
    all.push(("codec", "sample".into(), codec::encode(&(sample, vec![vec![1.5f64]], Ok::<i16, char>(-4)))));
}

/// Every kind of question there is stands in the vectors.
fn questions(all: &mut Corpus) {
    let cases = cases("questions");
    for bytes in cases.iter().filter_map(|case| from_hex(case["encoded"].as_str()?)).filter(|b| b.len() < 2_000) {
        let Ok(question) = Question::from_bytes(&bytes) else { continue };
        let name = format!("vector-{}", &suite::hash("corpus", &[&bytes]).to_string()[..8]);
        if let Question::Cluster(batch) | Question::Drawn { batch, .. } = &question {
            all.push(("batch", name.clone(), codec::encode(batch)));
        }
        all.push(("question", name, bytes));
    }
    for (i, batch) in federation().work.sample().expect("questions").into_iter().enumerate() {
        all.push(("batch", format!("{i}-{}", batch.kind()), codec::encode(&batch)));
        all.push(("question", format!("drawn-{i}"), Question::Drawn { number: 1, batch }.to_bytes()));
    }
}

/// An entry of a journal, with its length before it.
pub(super) fn entry(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_le_bytes(), bytes].concat()
}

/// Documents and files, as this federation has them.
fn texts(all: &mut Corpus) {
    let f = federation();
    let (roster, hub) = ((*f.kit.roster).clone(), &f.kit.identities[0]);
    let signed = roster.clone().sign(hub).expect("the coordinator signs");
    let plan = (*f.kit.terms).clone().sign(&roster, hub).expect("the coordinator signs");
    all.push(("roster", "four-sites".into(), codec::encode(&signed)));
    all.push(("terms", "plan".into(), codec::encode(&plan)));
    all.push(("work", "plain".into(), f.work.to_bytes()));
    let centres = Centres::new(2, 2, vec![0.2, 0.3, 0.7, 0.6]).expect("centres");
    let model = Model::new(&f.work, &suite::hash("h", &[]), &centres, None).expect("a model");
    all.push(("model", "two-clusters".into(), model.to_bytes()));
    let folder = Folder::fresh();
    let at = |name: &str| folder.0.join(name);
    write_roster(at("roster"), &signed).expect("written");
    write_plan(at("plan"), &plan).expect("written");
    let own = Identity::generate(&mut ChaCha20Rng::seed_from_u64(1));
    write_key(at("key"), "site-a", &own, Existing::Replace).expect("written");
    Pinned::change(&at("key"), |pinned| pinned.roster = Some(roster.clone())).expect("written");
    let policy = "min_rows = 3\nmethods = [\"fcm\"]\ncolumns = [\"a\", \"b\"]\nseparation = 0.25\ndata = \"ward 7\"\n[noise]\n\
                  require = true\nepsilon = 0.5\n[release]\nrule = \"report\"\ndomain = 49\n";
    folder.write("policy", policy);
    let cases = read("ledger");
    folder.write("ledger", cases["cases"][0]["text"].as_str().expect("a text"));
    let columns = "format = \"veilsum-columns/1\"\nmissing_marks = [\"-99\"]\n[[column]]\nname = \"a\"\nunit = \"mm\"\nlower = 0\nupper = 1\n\
                   [[categorical]]\ncolumn = \"d\"\ncategories = [\"e\", \"f\"]\n";
    folder.write("columns", columns);
    let file = |name: &str| fs::read(at(name)).expect("read");
    for (which, name) in ["roster", "plan", "pinned.toml", "policy", "ledger", "columns"].into_iter().enumerate() {
        all.push(("documents", name.into(), [&[which as u8], &file(name)[..]].concat()));
    }
    all.push(("key", "key".into(), file("key")));
}
