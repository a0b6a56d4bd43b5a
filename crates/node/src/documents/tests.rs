//! Round trips and refusals of the documents.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use proptest::prelude::*;
use veilsum_cluster::{
    Centres,
    method::Seeding,
    privacy::{Noise, Unit},
};
use veilsum_proto::{
    identity::Identity,
    plan::{SignedTerms, Terms},
};

#[path = "../../../federation/src/tests.rs"]
mod small;
pub(crate) use small::{fcm, kit, terms, work};

use super::*;
use crate::{
    agreed::prove,
    files::Existing,
    plan::{Column, PlanSpec},
};

/// A folder of its own for one test, removed at its end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(what: &str) -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("veilsum-{what}-{}-{unique}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn given(centre: Vec<f64>) -> Seeding {
    Seeding::Given { centres: Centres::from_rows(&[centre]).unwrap() }
}

/// A plan of two columns from 0 to 1; with noise, where there is some.
fn of_x_and_y(noise: Option<Noise>) -> Federation {
    let mut work = work(2);
    work.columns = ["x", "y"].map(|name| Column { name: name.into(), lower: 0.0, upper: 1.0 }).to_vec();
    work.recipe = fcm(2, 2.0, 0.0, 3, Seeding::Uniform { seed: 1 });
    if noise.is_some() {
        (work.recipe.noise, work.out_of_box) = (noise, OutOfBox::Clip);
    }
    through_file(&work)
}

/// Values that are missing are counted in rows that are left out; a row that the filter leaves out is none of the site's.
#[test]
fn missing_values_are_counted_in_rows_that_are_left_out() {
    let federation = of_x_and_y(None);
    let folder = Folder::new("missing");
    let text = "x,y,use\n0.5,0.5,1\n,0.5,1\nNA,,1\n0.5,?,1\n,,0\n0.5,0.5,1\n";
    std::fs::write(folder.at("rows.csv"), text).unwrap();
    let asked = veilsum_cluster::Batch::from(veilsum_cluster::Query::from(veilsum_cluster::query::Missing {}));
    let rules = crate::table::RowRules {
        missing: Some(crate::table::Missing::LeaveOut),
        columns: ["x", "y"].map(|name| (name.to_owned(), name.to_owned())).into(),
        filter: crate::table::Filter::parse("use = 1").unwrap(),
        ..Default::default()
    };
    let from = RowsFrom { data: folder.at("rows.csv"), rules: Arc::new(rules), ..RowsFrom::default() };
    let loaded = load_rows(&federation, &from).unwrap();
    let steps = crate::answerer::Steps::Exact(vec![veilsum_cluster::SumStep { len: 2, fraction_bits: 3 }]);
    assert_eq!(loaded.rows.words(&asked, &steps).unwrap(), [2 << 3, 2 << 3]);
    let tally = loaded.tally.unwrap();
    assert_eq!((tally.rows, tally.used, tally.filtered), (6, 2, 1));
    // A description counts all six that were read: they are to fit the plan before anything is answered.
    let describe = veilsum_cluster::Algorithm::Describe { bins: 4 };
    let recipe = veilsum_cluster::Recipe::plain(describe, 1, Seeding::Uniform { seed: 1 });
    let work = Arc::new(PlanSpec { recipe, ..PlanSpec::clone(&federation.work) });
    let plan = |max_rows| {
        let terms = Arc::new(Terms { max_rows, ..Terms::clone(&federation.terms) });
        Federation { terms, work: work.clone(), ..federation.clone() }
    };
    assert!(load_rows(&plan(6), &from).is_ok());
    let refused = load_rows(&plan(5), &from).err().expect("no room");
    assert!(refused.advice.contains("counts those that are left out, too"), "{refused}");
}

/// Under noise rows in memory are left out as a file's are, and count as these where they lack a value; a word that no category is lacks none.
#[test]
fn missing_values_of_rows_in_memory_are_counted() {
    let mut work = work(2);
    work.columns = vec![Column { name: "x".into(), lower: 0.0, upper: 1.0 }];
    work.recipe = fcm(2, 2.0, 0.0, 3, Seeding::Uniform { seed: 1 });
    (work.recipe.noise, work.out_of_box) = (Some(Noise::usual(50.0, 200).from_anywhere()), OutOfBox::Clip);
    let categories = ["n", "y"].map(str::to_owned).to_vec();
    work.categorical = vec![crate::plan::Categorical { column: "died".into(), categories, weight: 1.0 }];
    let (federation, folder) = (through_file(&work), Folder::new("memory"));
    let from = RowsFrom::file(folder.at("rows.csv"));
    std::fs::write(&from.data, "x,died\n0.5,y\n,y\n0.25,n\n,\n0.5,z\n").unwrap();
    let (nan, no) = (f64::NAN, f64::INFINITY);
    let values = [0.5, 0.0, 1.0, nan, 0.0, 1.0, 0.25, 1.0, 0.0, nan, nan, nan, 0.5, no, no];
    let asked = veilsum_cluster::Batch::from(veilsum_cluster::Query::from(veilsum_cluster::query::Missing {}));
    let steps = crate::answerer::Steps::Exact(vec![veilsum_cluster::SumStep { len: 3, fraction_bits: 3 }]);
    for loaded in [load_rows(&federation, &from), rows_in_memory(&federation, &values)].map(Result::unwrap) {
        assert_eq!((loaded.rows.rows(), loaded.rows.words(&asked, &steps).unwrap()), (2, vec![2 << 3, 1 << 3, 0]));
    }
}

/// [NOI-9]: at most so many rows of a person count; and rows are not cut by a secret that nobody keeps.
#[test]
fn noi_9_rows_of_persons_are_cut() {
    let unit = Unit::Person { rows: 2 };
    let federation = of_x_and_y(Some(Noise { unit, ..Noise::usual(50.0, 200).from_anywhere() }));
    let folder = Folder::new("cut");
    let path = folder.at("rows.csv");
    let rows: String = (0..40).map(|i| format!("p{},{1},{1}\n", i % 7, f64::from(i) / 40.0)).collect();
    std::fs::write(&path, format!("patient,x,y\n{rows}")).unwrap();
    let site = folder.at("site.toml");
    std::fs::write(&site, "[rows]\nperson = \"patient\"\nrows_per_person = 2\n").unwrap();
    let own = load_policy(&site).unwrap();
    let key = folder.at("a.key");
    let from = own.rows_from(Some(&path), Some(&site), Some(&key)).unwrap();
    let [once, again] = [(), ()].map(|()| load_rows(&federation, &from).unwrap().rows);
    assert_eq!((once.rows(), once.digest()), (14, again.digest()));
    crate::files::check_private(folder.at("a.key.persons")).unwrap();
    let from = own.rows_from(Some(&path), Some(&site), None).unwrap();
    assert!(load_rows(&federation, &from).err().unwrap().advice.contains("--key"));
}

fn through_file(work: &PlanSpec) -> Federation {
    let folder = Folder::new("plan");
    let (roster, ids) = kit(3);
    write_roster(folder.at("roster.toml"), &roster.clone().sign(&ids[0]).unwrap()).unwrap();
    let signed: SignedTerms = terms(&roster, work).sign(&roster, &ids[0]).unwrap();
    write_plan(folder.at("plan.toml"), &signed).unwrap();
    let federation = load_federation(folder.at("roster.toml"), folder.at("plan.toml")).unwrap();
    assert_eq!(*federation.roster, roster);
    assert_eq!(*federation.terms, signed.terms);
    federation
}

/// Any number from 0 to 1, small ones as often as large ones.
fn any_in_the_box() -> impl Strategy<Value = f64> {
    use proptest::num::f64::{NORMAL, SUBNORMAL, ZERO};
    (NORMAL | SUBNORMAL | ZERO).prop_map(|x: f64| if x.abs() > 1.0 { 1.0 / x.abs() } else { x.abs() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_float_of_a_plan_survives_its_text(
        lower in -1e149..0.0, width in 1e-12..1e149, m in 1.0000001..50.0, epsilon in 0.0..1.0,
        centre in proptest::collection::vec(any_in_the_box(), 2),
    ) {
        let mut w = work(1);
        w.columns[0].lower = lower;
        w.columns[0].upper = lower + width;
        prop_assume!(w.columns[0].upper > lower);
        w.recipe = fcm(1, m, epsilon, 3, given(centre));
        let back = through_file(&w);
        prop_assert_eq!(back.work.to_bytes(), w.to_bytes());
    }
}

#[test]
fn awkward_floats_survive() {
    for v in [-0.0, 0.0, 1e-300, 5e-324, 1.0 - f64::EPSILON, f64::MIN_POSITIVE, 0.1, 1.0 / 3.0, 0.123_456_789, 1e-9] {
        let mut w = work(1);
        w.recipe = fcm(1, 1.5, 0.0, 1, given(vec![v, 1.0 - v]));
        assert_eq!(through_file(&w).work.to_bytes(), w.to_bytes(), "{v:?}");
    }
    let mut w = work(1);
    w.columns[0].lower = -0.0;
    assert_eq!(through_file(&w).work.columns[0].lower.to_bits(), (-0.0f64).to_bits());
}

#[test]
fn keys_there_and_back() {
    let folder = Folder::new("key");
    let id = Identity::from_seed(&[7; 32]);
    write_key(folder.at("a.key"), "a", &id, Existing::Refuse).unwrap();
    assert!(write_key(folder.at("a.key"), "a", &id, Existing::Refuse).is_err());
    assert!(write_key(folder.at("b.key"), &"7f".repeat(32), &id, Existing::Refuse).is_err());
    let (back, name) = load_identity(folder.at("a.key")).unwrap();
    assert_eq!((back.public(), name.as_str()), (id.public(), "a"));
    for address in ["host", ":1", "host:0", "host:70000", "a b:1", "host:"] {
        assert!(check_address(address).is_err(), "{address}");
    }
}

#[test]
fn a_damaged_key_is_never_quoted() {
    let folder = Folder::new("bad-key");
    let secret = "ab".repeat(32);
    let good = format!("format = \"veilsum-key/1\"\nname = \"a\"\nseed = \"{secret}\"\n");
    for bad in [
        good.replace("seed", "sead"),
        good.replace("name", "seed"),
        good.replace("veilsum-key/1", "veilsum-key/2"),
        good.replace(&secret, &secret[1..]),
        good.replace(&secret, &secret[2..]),
        good.replace("\"\n", "\n"),
        format!("{good}seed = \"{secret}\"\n"),
        // The seed where the name belongs, whole or with a slip.
        good.replace("\"a\"", &format!("\"{secret}\"")),
        good.replace("\"a\"", &format!("\"{secret} \"")),
        good.replace("\"a\"", &format!("\"{}>\"", &secret[1..])),
        String::new(),
    ] {
        crate::files::write_private(folder.at("a.key"), bad.as_bytes(), Existing::Replace).unwrap();
        let Err(failure) = load_identity(folder.at("a.key")) else { panic!("accepted: {bad}") };
        assert!(!failure.to_string().contains("abab") && failure.to_string().contains("a.key"), "{failure}");
    }
}

/// [PLN-7].
#[test]
fn every_changed_digit_of_roster_and_plan_is_refused() {
    let folder = Folder::new("tamper");
    let (roster, ids) = kit(3);
    let (r, p) = (folder.at("roster.toml"), folder.at("plan.toml"));
    write_roster(&r, &roster.clone().sign(&ids[0]).unwrap()).unwrap();
    // Noise is signed, too.
    let noisy = of_x_and_y(Some(Noise::usual(50.0, 200).from_anywhere())).work;
    write_plan(&p, &terms(&roster, &noisy).sign(&roster, &ids[0]).unwrap()).unwrap();
    assert!(load_federation(&r, &p).is_ok());
    for path in [&r, &p] {
        let good = std::fs::read(path).unwrap();
        let begin = good.iter().position(|b| *b == b'[' || *b == b'=').unwrap();
        // A comment is for people, and says nothing.
        let is_comment = |at: usize| good[..at].iter().rev().find(|b| [b'\n', b'#'].contains(b)) == Some(&b'#');
        let digits = good.iter().enumerate().skip(begin).filter(|(at, b)| b.is_ascii_digit() && !is_comment(*at));
        for (at, byte) in digits {
            let mut bad = good.clone();
            bad[at] = if *byte == b'1' { b'2' } else { b'1' };
            std::fs::write(path, &bad).unwrap();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let failure = load_federation(&r, &p).unwrap_err();
            assert!(failure.message.contains(&name) || path == &r, "{failure}");
        }
        std::fs::write(path, &good).unwrap();
    }
}

#[test]
fn the_wrong_document_is_named_as_such() {
    let folder = Folder::new("wrong");
    let (roster, ids) = kit(3);
    let path = folder.at("x.toml");
    write_roster(&path, &roster.clone().sign(&ids[0]).unwrap()).unwrap();
    let failure = load_plan(&path, &roster).unwrap_err();
    assert!(failure.message.contains("veilsum-roster/1") && failure.message.contains("veilsum-plan/3"), "{failure}");
}

#[test]
fn whole_numbers_survive() {
    for seed in [0, 1, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX] {
        let mut w = work(1);
        w.recipe = fcm(1, 2.0, 0.0, 1, Seeding::Uniform { seed });
        assert_eq!(*through_file(&w).work, w);
    }
}

#[test]
fn plans_that_could_overflow_or_show_rows_are_refused() {
    let (roster, _) = kit(3);
    let (w, good) = (work(3), terms(&roster, &work(3)));
    assert!(prove(&roster, &good, &w).is_ok());
    let failure = prove(&roster, &Terms { max_rows: 1 << 45, ..good.clone() }, &w).unwrap_err();
    assert!(failure.message.contains("overflow") && failure.advice.contains("max_rows"), "{failure}");
    let failure = prove(&roster, &Terms { min_total_rows: 2, ..good }, &w).unwrap_err();
    assert!(failure.message.contains("K = 3") && failure.advice.contains("min_total_rows"), "{failure}");
    assert_eq!(fingerprint(&[0xab; 32]), "abab-abab-abab-abab");
}
