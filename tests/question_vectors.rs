//! The application's questions against `protocol/vectors`, which a second implementation of section 13 writes: the same
//! bytes for the same question, the same layout and scales, the same words up to the order of additions, the same draws.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use veilsum_cluster::{
    Batch, Centres, Domain, OutOfBox, Prepared, Query, Rows, Scaling, query::Moments, random::Stream,
    sampling::Sampling,
};
use veilsum_node::{
    plan::PlanSpec,
    question::{self, Layout, Question, SumBounds, Terms},
};
use veilsum_proto::{Error, codec, limits::MAX_QUERY};
use veilsum_testkit::vectors::{self, hex, list, number};

fn file() -> Value {
    vectors::read("questions")
}

/// The cases of one function; a file without any would test nothing.
fn of(file: &Value, function: &str) -> Vec<Value> {
    let all = list(&file["cases"]);
    let found: Vec<Value> = all.iter().filter(|c| c["function"] == function).cloned().collect();
    assert!(!found.is_empty(), "no case of {function}");
    found
}

#[track_caller]
fn plain<T: DeserializeOwned>(v: &Value) -> T {
    serde_json::from_value(v.clone()).unwrap_or_else(|e| panic!("{e}: {v}"))
}

fn decoded<T: Serialize + DeserializeOwned>(bytes: &Value) -> Result<T, Error> {
    codec::decode("vector", &hex(bytes), MAX_QUERY)
}

fn domain(file: &Value, c: &Value) -> Domain {
    plain(&file["boxes"][c["box"].as_str().expect("a box")])
}

fn site(file: &Value, name: &str, domain: &Domain) -> Prepared {
    let rows: Vec<Vec<f64>> = plain(&file["rows"][name]);
    let rows = Rows::new(rows.concat(), domain.columns()).unwrap();
    Prepared::new(&rows, domain, OutOfBox::Refuse).unwrap()
}

/// Name, words, exponent and fractional bits of every block.
#[track_caller]
fn same_layout(c: &Value, layout: &Layout) {
    let expected = list(&c["layout"]);
    assert_eq!(layout.blocks.len(), expected.len(), "{}", c["name"]);
    for ((b, exponent), e) in layout.blocks.iter().zip(layout.exponents()).zip(expected) {
        let found = (b.block.name, b.block.len as u64, i64::from(exponent), -b.scale.unit().log2() as i64);
        let expected = (
            e["name"].as_str().unwrap(),
            number(&e["words"]),
            e["bound_exp"].as_i64().unwrap(),
            e["fraction_bits"].as_i64().unwrap(),
        );
        assert_eq!(found, expected, "{}", c["name"]);
    }
}

/// [QRY-1], [QRY-2], [QRY-4] to [QRY-6]: rows into working units, transforms, scales, entries and how exact they are.
#[test]
fn questions_layouts_and_answers() {
    let file = file();
    let mut kinds = BTreeSet::new();
    for c in of(&file, "question") {
        let question: Question = plain(&c["question"]);
        assert_eq!(question.to_bytes(), hex(&c["encoded"]), "{}", c["name"]);
        assert!(Question::from_bytes(&hex(&c["encoded"])).unwrap() == question, "{}", c["name"]);
        if let Question::Cluster(batch) = &question {
            kinds.extend(batch.queries.iter().map(Query::kind));
        }
        let (domain, sites) = (domain(&file, &c), number(&c["sites"]) as usize);
        let max_rows = number(&c["max_rows"]);
        let form = SumBounds { step_bits: plain(&c["step_bits"]), ..SumBounds::new(sites, max_rows) };
        let layout = question.layout(&domain, &form).unwrap();
        same_layout(&c, &layout);
        let within: Vec<u64> = plain(&c["within"]);
        for (name, words) in c["answers"].as_object().unwrap() {
            let expected: Vec<u64> = plain(words);
            let terms = Terms::everybody(form);
            let found = question::contribute(&question, &site(&file, name, &domain), &terms).unwrap();
            assert_eq!(found.len(), expected.len(), "{} {name}", c["name"]);
            let mut pairs = found.iter().zip(&expected);
            for (b, within) in layout.blocks.iter().zip(&within) {
                for (i, (found, expected)) in pairs.by_ref().take(b.block.len).enumerate() {
                    let apart = (found.wrapping_sub(*expected) as i64).unsigned_abs();
                    assert!(apart <= *within, "{} of {name}: {} {i} by {apart}", c["name"], b.block.name);
                }
            }
        }
    }
    let families = "features fuzzy_sums fuzzy_validation histogram local_choice local_fuzzy \
                    local_means margins missing moments shifts validation";
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), families.split_whitespace().collect::<Vec<_>>());
}

#[test]
fn bytes_that_are_no_question() {
    for c in of(&file(), "encoding") {
        match (decoded::<Question>(&c["encoded"]), c.get("rule")) {
            (Ok(question), None) => assert!(question == plain(&c["question"]), "{c}"),
            (Err(Error::Malformed { rule, .. }), Some(expected)) => assert_eq!(*expected, json!(rule), "{c}"),
            (other, _) => panic!("{:?}: {c}", other.map(|question| question.name())),
        }
    }
}

/// [QRY-3].
#[test]
fn qry_3_questions_that_no_site_answers() {
    let file = file();
    for c in of(&file, "refused") {
        let question: Question = decoded(&c["encoded"]).unwrap();
        match question.layout(&domain(&file, &c), &SumBounds::new(20, 1000)) {
            Err(Error::Invalid { rule, .. }) => assert_eq!(c["rule"], json!(rule), "{c}"),
            other => panic!("{:?}: {c}", other.map(|layout| layout.words())),
        }
    }
}

#[test]
fn judged_questions() {
    let file = file();
    for c in of(&file, "judged") {
        let batch: Batch = decoded(&c["encoded"]).unwrap();
        assert_eq!(question::digest(&batch).0.as_slice(), hex(&c["digest"]));
        let (sites, max_rows) = (number(&c["sites"]) as usize, number(&c["max_rows"]));
        let layout = Layout::of_judged(&batch, &domain(&file, &c), &SumBounds::new(sites, max_rows)).unwrap();
        same_layout(&c, &layout);
        assert_eq!(layout.exponents(), plain::<Vec<i16>>(&c["exponents"]));
    }
}

/// [QRY-4].
#[test]
fn qry_4_exponents_of_bounds() {
    for c in of(&file(), "exponent") {
        let bound: f64 = decoded(&c["bound"]).unwrap();
        // The sum of one column of a box that reaches up to the bound.
        let domain = Domain::new(vec![0.0], vec![bound], Scaling::None).unwrap();
        let question = Question::Cluster(Query::Moments(Moments { around: None }).into());
        let exponents = question.layout(&domain, &SumBounds::new(3, 1000)).unwrap().exponents();
        assert_eq!(Some(i64::from(exponents[1])), c["exponent"].as_i64(), "{c}");
    }
}

/// [QRY-7], [QRY-8].
#[test]
fn draws() {
    let file = file();
    for c in of(&file, "drawn") {
        let sampling = Sampling { share: plain(&c["share"]), seed: number(&c["seed"]) };
        let drawn = sampling.drawn(plain(&c["number"]), plain(&c["sites"]));
        let found: Vec<u64> = (0..).zip(drawn).filter(|(_, drawn)| *drawn).map(|(site, _)| site).collect();
        assert_eq!(found, plain::<Vec<u64>>(&c["drawn"]), "{c}");
    }
    for c in of(&file, "stream") {
        let label = c["label"].as_str().unwrap().as_bytes().try_into().unwrap();
        let mut stream = Stream::new(number(&c["seed"]), label);
        for word in list(&c["words"]) {
            assert_eq!(stream.unit(), (number(word) >> 11) as f64 * 2f64.powi(-53));
        }
    }
    for c in of(&file, "uniform") {
        let found = Centres::uniform(&domain(&file, &c), number(&c["k"]) as usize, number(&c["seed"])).unwrap();
        assert_eq!(found, decoded::<Centres>(&c["encoded"]).unwrap());
    }
}

/// [QRY-9].
#[test]
fn qry_9_the_applications_part_of_a_plan() {
    let mut names = BTreeSet::new();
    for c in of(&file(), "plan") {
        let work: PlanSpec = plain(&c["work"]);
        names.insert(work.method_name());
        assert_eq!(codec::encode(&work), hex(&c["encoded"]), "{}", work.method_name());
        let read = PlanSpec::from_bytes(&hex(&c["encoded"])).unwrap_or_else(|e| panic!("{e}: {c}"));
        assert!(read == work, "{c}");
    }
    assert_eq!(names.len(), 7, "every algorithm has a plan: {names:?}");
}

#[test]
fn every_case_is_read() {
    let known = ["question", "encoding", "refused", "judged", "exponent", "drawn", "stream", "uniform", "plan"];
    for c in list(&file()["cases"]) {
        assert!(known.iter().any(|function| c["function"] == *function), "no test reads {c}");
    }
}
