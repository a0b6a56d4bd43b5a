//! The rule of blocks against `protocol/vectors/v4/release.json`, which a second implementation writes: [REL-1] to [REL-4],
//! [REL-5], [REL-6], [REL-7], and how an aggregator arranges a deck.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use veilsum_proto::{
    identity::PublicKey,
    release::{self, Blocks, Broken, Member, OwnBlock},
    suite::Hash,
};
use veilsum_testkit::vectors::*;

fn key(v: &Value) -> PublicKey {
    PublicKey(array(v))
}

fn id(v: &Value) -> Hash {
    Hash(array(v))
}

fn sites(v: &Value) -> Vec<u16> {
    list(v).iter().map(|s| number(s) as u16).collect()
}

fn members(v: &Value) -> Vec<Member> {
    let member =
        |m: &Value| Member { site: number(&m["site"]) as u16, key: key(&m["key"]), standing: standing(&m["standing"]) };
    list(v).iter().map(member).collect()
}

fn partition(members: &[Member], lists: &Value) -> Result<Blocks, Broken> {
    Blocks::of(members, &list(lists).iter().map(sites).collect::<Vec<_>>())
}

/// What a vector says of a result: the value, or the rule that refuses and the site that it is about.
#[track_caller]
fn agrees<T>(c: &Value, result: Result<T, Broken>, check: impl FnOnce(T)) {
    match (result, c.get("rule")) {
        (Ok(v), None) => check(v),
        (Err(e), Some(rule)) => assert_eq!((json!(e.rule), json!(e.site)), (rule.clone(), c["site"].clone()), "{c}"),
        (Ok(_), Some(rule)) => panic!("accepted, must be refused under {rule}: {c}"),
        (Err(e), None) => panic!("{e:?}: {c}"),
    }
}

#[test]
fn blocks() {
    let mut seen = BTreeSet::new();
    for c in cases("release") {
        let usize_of = |name: &str| number(&c[name]) as usize;
        let function = c["function"].as_str().expect("a name").to_owned();
        match function.as_str() {
            "identity" => assert_eq!(release::block_id(list(&c["keys"]).iter().map(id)), hash(&c["result"])),
            "partition" => agrees(&c, partition(&members(&c["members"]), &c["lists"]), |blocks| {
                let shown = |b: &release::Block| json!({"id": text(&b.id.0), "sites": b.sites, "ids": b.ids.iter().map(|id| text(&id.0)).collect::<Vec<_>>(), "versions": b.versions});
                assert_eq!(blocks.0.iter().map(shown).collect::<Value>(), c["blocks"]);
            }),
            "set" => {
                let (blocks, asked) = (partition(&members(&c["members"]), &c["lists"]).unwrap(), sites(&c["sites"]));
                assert_eq!(json!(blocks.whole_among(&asked)), c["whole"]);
                assert_eq!(json!(blocks.cut_among(&asked)), c["cut"]);
                agrees(&c, blocks.whole(&asked), |()| ());
            }
            "least" => {
                let found = release::least_sites(number(&c["contributors"]) as u32, usize_of("colluders"));
                assert_eq!(found, usize_of("result"), "{c}");
            }
            "burned_by" => {
                let found = release::burned_by(usize_of("members"), usize_of("threshold"), usize_of("colluders"));
                assert_eq!(found, usize_of("result"), "{c}");
            }
            "change" => {
                let versions = |name: &str| -> Vec<(Hash, u32)> {
                    list(&c["keys"]).iter().map(id).zip(list(&c[name]).iter().map(|v| number(v) as u32)).collect()
                };
                agrees(&c, release::may_change(&versions("before"), &versions("now"), usize_of("least")), |()| ());
            }
            "admit" => {
                let own = |v: &Value| -> OwnBlock {
                    let pair = |p: &Value| (id(&p[0]), number(&p[1]) as u32);
                    let members: Vec<_> = list(v).iter().map(pair).collect();
                    OwnBlock { id: release::block_id(members.iter().map(|(id, _)| *id)), members }
                };
                let blocks = partition(&members(&c["members"]), &c["lists"]).unwrap();
                let some = |v: &'_ Value| (!v.is_null()).then(|| v.clone());
                let (before, drawn) = (some(&c["before"]).map(|v| own(&v)), some(&c["drawn"]).map(|v| sites(&v)));
                let (now, cohort, least) = (own(&c["own"]), sites(&c["cohort"]), usize_of("least"));
                let found = release::admit(&now, before.as_ref(), &blocks, &cohort, drawn.as_deref(), least);
                assert_eq!(json!(found.err().map(|broken| broken.rule)), c.get("rule").cloned().unwrap_or_default());
            }
            "propose" => {
                let known = match &c["known"] {
                    Value::Null => Blocks::default(),
                    known => partition(&members(&known["members"]), &known["lists"]).unwrap(),
                };
                let found =
                    release::propose(&members(&c["members"]), &known, usize_of("size") as u16, usize_of("least"));
                let expected = (c["blocks"].clone(), c["incomplete"].clone(), c["too_few"].clone());
                assert_eq!((json!(found.blocks), json!(found.incomplete), json!(found.too_few)), expected, "{c}");
            }
            other => panic!("a function that this test does not know: {other}"),
        }
        seen.insert(function);
    }
    assert_eq!(seen.len(), 8, "{seen:?}");
}
