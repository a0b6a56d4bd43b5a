//! What a site's policy takes and refuses, against `protocol/vectors/v4/policy.json`, which a second implementation writes:
//! [POL-1], [POL-2], [POL-4], [POL-8] to [POL-10].

use serde_json::{Value, json};
use veilsum_proto::policy::{self, Exact, Floor, PlanFacts, Policy, Spent};
use veilsum_testkit::vectors::*;

fn names(v: &Value) -> Option<Vec<String>> {
    serde_json::from_value(v.clone()).expect("names or none")
}

fn policy(v: &Value) -> Policy {
    let floor = Floor {
        min_cohort: number(&v["min_cohort"]) as u16,
        max_rounds: number(&v["max_rounds"]) as u32,
        ..Floor::default()
    };
    Policy {
        floor,
        methods: names(&v["methods"]),
        columns: names(&v["columns"]),
        nano_rho: number(&v["nano_rho"]),
        exact: serde_json::from_value::<Exact>(v["exact"].clone()).expect("exact"),
        rows_per_person: v["rows_per_person"].as_u64(),
        ..Policy::default()
    }
}

#[test]
fn pol_1_to_10_sizes_questions_plans_and_accounts() {
    let terms = veilsum_testkit::kit::Kit::new(3, |_| {}).terms;
    let mut refused = 0;
    for c in cases("policy") {
        let policy = policy(&c["policy"]);
        let found = match c["function"].as_str().expect("a name") {
            "size" => {
                let mut terms = (*terms).clone();
                terms.min_cohort = number(&c["least"]) as u16;
                terms.sites = serde_json::from_value(c["sites"].clone()).expect("same or any");
                policy::check_size(&terms, &policy.floor, number(&c["over"]) as usize, number(&c["roster"]) as usize)
            }
            "questions" => policy::check_questions(&policy.floor, number(&c["questions"])),
            "plan" => {
                let columns = names(&c["columns"]).expect("columns");
                let columns = columns.iter().map(String::as_str).collect();
                let (method, rows_per_person) = (c["method"].as_str().expect("a method"), c["rows"].as_u64());
                policy::check_plan(&policy, &PlanFacts { method, columns, rows_per_person })
            }
            "account" => {
                let spent = Spent { nano_rho: number(&c["spent"]), ..Spent::default() };
                policy::check_account(&policy, c["nano_rho"].as_u64(), c["agreed"] == true, &spent)
            }
            other => panic!("a function that this test does not know: {other}"),
        };
        let rule = found.err().map(|error| error.rule());
        assert_eq!(json!(rule), c.get("rule").cloned().unwrap_or_default(), "{c}");
        refused += usize::from(rule.is_some());
    }
    assert!(refused > 10, "{refused}");
}
