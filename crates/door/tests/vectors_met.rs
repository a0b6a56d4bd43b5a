//! What is kept of others' ledgers against `protocol/vectors/v4/met.json`, which a second implementation writes ([LED-11]).

use serde_json::{Value, json};
use veilsum_door::{Met, Talk};
use veilsum_testkit::{prelude::*, vectors::*};

fn talk(v: &Value) -> Talk {
    Talk { plan: hash(&v["plan"]), session: hash(&v["session"]), run: hash(&v["run"]) }
}

fn member(v: &Value) -> Member {
    let account = v["account"].as_str().map(|_| hash(&v["account"]));
    let standing = Standing { account, answered: answered(&v["answered"]) };
    Member { site: number(&v["site"]) as u16, key: PublicKey(array(&v["key"])), standing }
}

#[test]
fn led_11_what_is_kept_of_others() {
    let (mut taken, mut refused) = (0, 0);
    for course in cases("met") {
        let mut met = Met::default();
        for step in list(&course["steps"]) {
            let (talk, deck) = (talk(&step["talk"]), number(&step["deck"]) as u32);
            if step["do"] == "total" {
                let slot = number(&step["slot"]) as u16;
                met.total(talk.session, talk.run, (deck, slot), &hash(&step["cohort"]));
                continue;
            }
            let members: Vec<Member> = list(&step["members"]).iter().map(member).collect();
            match (met.check(&talk, &members), step.get("rule")) {
                (Ok(()), None) => {
                    met.take(&talk, deck, (Met::all(&members), &Met::list(&members)));
                    taken += 1;
                }
                (Err(back), Some(rule)) => {
                    let error = back.error(String::new());
                    assert_eq!((json!(error.rule()), json!(back.site)), (rule.clone(), step["site"].clone()), "{step}");
                    refused += 1;
                }
                (found, wanted) => panic!("{}: {found:?} and not {wanted:?}: {step}", course["name"]),
            }
        }
    }
    assert!(taken > 50 && refused > 20, "{taken} taken, {refused} refused");
}
