//! A result as a document: who signed what, what a run's folder lets others recompute, and what becomes of a changed byte.

use std::{path::Path, process::Command, time::Duration};

use serde_json::Value;
use veilsum_cluster::{Algorithm, Rows, method::Seeding};
use veilsum_node::{
    documents,
    files::check_private,
    loopback::LoopbackConfig,
    plan::{Categorical, PlanSpec},
    recompute, report, signed,
    signing::Writer,
};
use veilsum_proto::{
    plan::{Sites, Terms},
    roster::Roster,
};
use veilsum_testkit::{
    in_process::{self, fcm, made_up, unit_square},
    memory::Point,
    program::{Folder, Parties, end_well, start, veilsum},
    seeds::Dice,
};

use crate::{
    said::{Told, demo, says, strings},
    schemas::fits,
    second_implementation::{python, reference},
};

/// A run in the folder `name` from which a site, counted from 0, vanishes in a round.
fn losing(folder: &Folder, name: &str, work: &PlanSpec, sites: Vec<(String, Rows)>, drop: (usize, u32), over: Sites) {
    let terms = Box::new(move |terms: &mut Terms| (terms.sites, terms.min_cohort) = (over, 3));
    let config = LoopbackConfig { terms, ..in_process::config(sites, work) };
    let run = in_process::run(in_process::losing(&[(drop.0, Point::AfterInput, drop.1)], config));
    let (out, result) = (folder.0.join(name), run.result.expect("a result"));
    let writer = Writer { identity: run.coordinator, federation: run.federation };
    report::write(&out, &result, None, &writer).expect("files");
    let Writer { identity, federation } = &writer;
    let roster = &federation.roster;
    let signed = Roster::clone(roster).sign(identity).expect("a roster");
    documents::write_roster(out.join("roster.toml"), &signed).expect("a file");
    let signed = Terms::clone(&federation.terms).sign(roster, identity).expect("a plan");
    documents::write_plan(out.join("plan.toml"), &signed).expect("a file");
}

/// Of seven sites one vanishes, and the run goes on, with noise.
fn lost(folder: &Folder, drop: (usize, u32)) {
    losing(folder, "lost", &crate::noise::work(19.0), made_up(&[60; 7], 0.2, 5), drop, Sites::Any);
}

/// Totals are over the same sites, so that the run ends early.
fn early(folder: &Folder) {
    let work = fcm(unit_square(), 2, 0.0, 6, Seeding::Uniform { seed: 1 });
    losing(folder, "early", &work, made_up(&[60; 3], 0.2, 5), (2, 4), Sites::Same);
}

fn verified(file: &str, more: &[&str]) -> Value {
    veilsum(&[&["verify", file, "--json"], more].concat()).expect(0).json()
}

/// [RES-2], [RES-3], [RES-6]: what a stranger does first: every site signs, and the model is the result's.
#[test]
fn res_3_every_site_signs_what_it_recomputed() {
    let folder = Folder::fresh();
    let told = demo(&folder, "out", &[]).expect(0);
    assert!(told.stdout.contains("veilsum verify"), "{}", told.stdout);
    let result = folder.path("out/result.json");
    let said = verified(&result, &[]);
    assert_eq!((&said["signed_by_coordinator"], &said["written_by"]), (&true.into(), &"coordinator".into()));
    for (at, site) in ["site-1", "site-2", "site-3"].into_iter().enumerate() {
        assert_eq!(said["countersigned"][at]["site"], site);
    }
    assert!(said["countersigned"][0]["ledger"].as_str().is_some_and(|link| link.len() == 64));
    assert!(strings(&said["not_countersigned"]).is_empty());
    assert!(strings(&said["writer_alone"]).contains(&"n_total"));
    let model = folder.path("out/model.json");
    assert_eq!(verified(&model, &[])["countersigned"], said["countersigned"]);
    // Another model, and a result without its documents.
    let text = std::fs::read_to_string(&model).unwrap();
    std::fs::write(&model, text.replacen("\"k\": 5", "\"k\":  5", 1)).unwrap();
    assert!(veilsum(&["verify", &model]).expect(3).stderr.contains("not the one of this result"));
    std::fs::rename(folder.path("out/plan.toml"), folder.path("plan.toml")).unwrap();
    veilsum(&["verify", &result]).expect(3);
    verified(&result, &["--plan", &folder.path("plan.toml")]);
}

/// [RES-6]: who did not sign is named: a site that is gone before the end, and all of them where nothing is opened to them or somebody
/// else judges.
#[test]
fn res_6_who_did_not_sign_is_named() {
    let folder = Folder::fresh();
    demo(&folder, "judged", &["--set", "judge=intermediary", "--set", "max_rounds=4"]).expect(0);
    let said = verified(&folder.path("judged/result.json"), &[]);
    assert_eq!(strings(&said["not_countersigned"]), ["site-1", "site-2", "site-3"]);
    fits_its_schema(&folder, "judged");
    let told = veilsum(&["verify", &folder.path("judged/result.json")]).expect(0);
    told.says(&["no site recomputed it\n", "no site could recompute them"]);
    // Nor does anybody vouch for the masks under the last total of its openings.
    veilsum(&["verify", &folder.path("judged")]).expect(0).says(&["which masks were taken off the last total"]);
    lost(&folder, (2, 4));
    let said = verified(&folder.path("lost/result.json"), &[]);
    assert_eq!(said["countersigned"].as_array().unwrap().len(), 6);
    assert!(!strings(&said["not_countersigned"]).contains(&"site-1"));
}

/// Seven sites with a column in units of 1e-13 and one of categories.
fn small_units(folder: &Folder) {
    let mut columns = unit_square();
    columns[1].upper = 1e-13;
    let mut work = PlanSpec::plain(columns, Algorithm::Describe { bins: 16 }, 1, Seeding::Uniform { seed: 1 });
    let categories = ["a", "b"].map(str::to_owned).to_vec();
    work.categorical = vec![Categorical { column: "c".into(), categories, weight: 2.0 }];
    let row = |i: usize| {
        let one = (i % 2) as f64;
        [(i * 37 % 101) as f64 / 101.0, (i * 53 % 89) as f64 / 89.0 * 1e-13, 1.0 - one, one]
    };
    let site = |site: usize| {
        (format!("site-{}", site + 1), Rows::new((0..60).flat_map(|i| row(60 * site + i)).collect(), 4).expect("rows"))
    };
    losing(folder, "describe-small", &work, (0..7).map(site).collect(), (2, 99), Sites::Same);
}

/// What Python compares of a run, each of which its control must have changed.
fn compared(name: &str) -> &'static [&'static str] {
    match name.split('-').next().unwrap_or_default() {
        "describe" => &["description"],
        "ffcf" => &["centres"],
        "noise" | "lost" => &[],
        _ => &["centres", "questions"],
    }
}

/// [RES-8]: from the folder of a run alone two implementations come to the result: the program, and the reference in Python.
#[test]
fn res_8_a_run_is_recomputed_by_two_implementations() {
    let folder = Folder::fresh();
    lost(&folder, (1, 3));
    small_units(&folder);
    early(&folder);
    for (name, args) in [
        ("plain", &[][..]),
        ("range", &["--k", "2..4", "--set", "max_rounds=12"]),
        ("standard", &["--k", "3", "--set", "standardise=standard"]),
        ("lost", &[]),
        ("kmeans", &["--method", "kmeans", "--k", "3", "--set", "restarts=2"]),
        ("fkm", &["--method", "fkm", "--k", "3", "--set", "max_rounds=6"]),
        ("ffcm-avg1", &["--method", "ffcm-avg1", "--k", "3", "--set", "max_rounds=4"]),
        ("ffcm-avg2", &["--method", "ffcm-avg2", "--k", "3", "--set", "max_rounds=4"]),
        ("ffcf", &["--method", "ffcf", "--k", "3"]),
        ("ffcf-standard", &["--method", "ffcf", "--k", "3", "--set", "standardise=standard"]),
        ("describe", &["--method", "describe"]),
        ("describe-small", &[]),
        ("noise", &["--k", "2", "--rho", "1.05"]),
        ("early", &[]),
    ] {
        if !["lost", "describe-small", "early"].contains(&name) {
            demo(&folder, name, args).expect(0);
        }
        let out = folder.path(name);
        check_private(folder.path(&format!("{name}/openings.bin"))).unwrap();
        fits_its_schema(&folder, name);
        let said = verified(&out, &[]);
        let result = folder.json(&format!("{name}/result.json"));
        let totals = &result["questions"];
        assert_eq!((&said["totals_recomputed"], &said["result_recomputed"]), (totals, &true.into()), "{name}");
        let Some(python) = python() else { continue };
        // The reference reads roster and plan as the wire has them.
        let path = |file: &str| folder.path(&format!("{name}/{file}"));
        let (roster, plan) = documents::load_signed(path("roster.toml"), path("plan.toml")).unwrap();
        std::fs::write(path("roster.bin"), veilsum_proto::codec::encode(&roster)).unwrap();
        std::fs::write(path("plan.bin"), veilsum_proto::codec::encode(&plan)).unwrap();
        let run = |script: &str| {
            let run = script_of(&python, script, &out);
            assert!(run.status.success(), "{name}: {}", String::from_utf8_lossy(&run.stderr));
            serde_json::from_slice::<Value>(&run.stdout).expect("JSON")
        };
        let (found, expected) = (run("recompute.py"), compared(name));
        assert_eq!(&found["totals"], totals, "{name}");
        let rounds = if expected.contains(&"questions") { result["rounds"].as_u64() } else { Some(0) };
        assert!(found["rounds_of_centres"].as_u64() >= rounds, "{name}: {found}");
        match found["apart"].as_f64() {
            None => {
                assert!(found["apart"].is_null() && expected.iter().all(|of| *of == "questions"), "{name}: {found}")
            }
            Some(apart) => assert!(apart <= 1e-9, "{name}: {found}"),
        }
        let tried = run("changed_result.py");
        let mut changed: Vec<&str> = tried.as_object().expect("an object").keys().map(String::as_str).collect();
        changed.sort_unstable();
        assert_eq!(changed, expected, "{name}: {tried}");
        assert!(tried.get("description").is_none_or(|changes| changes.as_u64() > Some(100)), "{name}: {tried}");
    }
}

/// A program of the reference about a run's folder.
fn script_of(python: &Path, script: &str, folder: &str) -> std::process::Output {
    let run =
        Command::new(python).arg(reference().join(script)).arg(folder).env("PYTHONDONTWRITEBYTECODE", "1").output();
    run.expect("it starts")
}

/// A folder that is not there ends the reference in words and not in a traceback.
#[test]
fn what_is_no_run_is_refused_in_words() {
    let Some(python) = python() else { return };
    let ended = script_of(&python, "recompute.py", &Folder::fresh().path("none"));
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success() && told.contains("cannot be read") && !told.contains("Traceback"), "{told}");
}

/// [RES-8]: openings with a changed byte come to no result, though everything around them was made right. `VEILSUM_CHANGES` says
/// how many changes are tried.
#[test]
fn res_8_no_byte_of_the_openings_can_be_changed() {
    let folder = Folder::fresh();
    demo(&folder, "out", &["--k", "2", "--set", "max_rounds=2", "--set", "init=uniform"]).expect(0);
    let path = |name: &str| folder.0.join("out").join(name);
    let federation = documents::load_federation(path("roster.toml"), path("plan.toml")).unwrap();
    let about = signed::About { roster: &federation.roster, terms: &federation.terms };
    let checked = about.check(&std::fs::read(path("result.json")).unwrap()).unwrap();
    let model = std::fs::read(path("model.json")).unwrap();
    let recomputed = |openings: &[u8]| recompute::recompute(&federation, &checked, &model, openings).map(drop);
    let whole = std::fs::read(path("openings.bin")).unwrap();
    recomputed(&whole).expect("as it was written");
    let tries = std::env::var("VEILSUM_CHANGES").ok().and_then(|n| n.parse().ok()).unwrap_or(300_u64);
    let seed = std::env::var("VEILSUM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(8_u64);
    println!("VEILSUM_SEED={seed} VEILSUM_CHANGES={tries}");
    let mut dice = Dice::new(seed);
    let mut draw = |below: usize| dice.below(below as u64) as usize;
    for _ in 0..tries {
        let (mut changed, at) = (whole.clone(), draw(whole.len()));
        changed[at] ^= 1 + draw(255) as u8;
        assert!(recomputed(&changed).is_err(), "byte {at} became {:#x}", changed[at]);
    }
    // What lies on a disk may have been changed, exchanged or cut by anybody: it accuses nobody, and what to do is done with one's own files.
    demo(&folder, "other", &["--set", "max_rounds=3", "--seed", "2"]).expect(0);
    let other = std::fs::read(folder.path("other/openings.bin")).unwrap();
    let (mut changed, middle) = (whole.clone(), whole.len() / 2);
    changed[middle] ^= 1;
    for bytes in [&changed[..], &other, &whole[..middle], &[]] {
        std::fs::write(path("openings.bin"), bytes).unwrap();
        let next = "next: take result.json, model.json and openings.bin of one run";
        veilsum(&["verify", &folder.path("out")]).expect(3).says(&[next, "!misbehaved"]);
    }
}

/// [RES-8]: openings show of their last total alone not that the masks were those of the sites; who vouches for that are the sites that signed the
/// result. Where the coordinator took their signatures away, `verify` says that nobody does, and does not call it whole.
#[test]
fn res_8_what_rests_on_the_sites_signatures_is_said_where_they_lack() {
    let p = Parties::new(&[40, 55, 61], &["--set=max_rounds=4"]);
    let parties = [p.server(&[]), p.intermediary(&[]), p.client(1, &[]), p.client(2, &[]), p.client(3, &[])];
    end_well(parties.map(|args| start(&args)));
    let [roster, plan, key, result, out] =
        ["roster.toml", "plan.toml", "lead.key", "out/result.json", "out"].map(|name| p.folder.path(name));
    let verify = || p.types("lead", &format!("verify {out}"), "roster plan", &[]).expect(0);
    verify().says(&["recomputed and signed by site-1, site-2, site-3", "!masks"]);
    let federation = documents::load_federation(&roster, &plan).unwrap();
    let about = signed::About { roster: &federation.roster, terms: &federation.terms };
    let checked = about.check(&std::fs::read(&result).unwrap()).unwrap();
    let (hub, _) = documents::load_identity(&key).unwrap();
    let mut alone = signed::Signed::new(&checked.fields);
    let coordinator = veilsum_proto::roster::PartyId::Coordinator;
    alone.sign(&about, &hub, coordinator, None);
    std::fs::write(&result, alone.file(&about, &checked.fields, &hub, coordinator).unwrap()).unwrap();
    verify().says(&["no site recomputed it", "which masks were taken off the last total"]);
}

/// A run that will write over the result of another plan says so before it begins.
#[test]
fn a_result_of_another_plan_is_not_replaced_in_silence() {
    let (folder, p) = (Folder::fresh(), Parties::new(&[40, 50, 60], &["--set=max_rounds=4"]));
    demo(&folder, "out", &["--set", "max_rounds=3"]).expect(0);
    let heard = |out: &str| {
        let server = start(&p.server(&["--out", out]));
        server.until("the port", Duration::from_secs(60), |log| log.contains("waiting for"));
        server.kill().stderr
    };
    says(&heard(&folder.path("out")), &["result.json is the result of another plan", "with --out"]);
    says(&heard(&folder.path("elsewhere")), &["!another plan"]);
}

/// `protocol/schemas` says what the program writes: no key that it does not know, and none missing.
fn fits_its_schema(folder: &Folder, name: &str) {
    let schemas = Path::new(env!("CARGO_MANIFEST_DIR")).join("protocol/schemas");
    for of in ["result", "model"] {
        let text = std::fs::read(schemas.join(format!("{of}.schema.json"))).expect("a schema");
        let schema: Value = serde_json::from_slice(&text).expect("JSON");
        let (file, is_fit) = (format!("{name}/{of}.json"), |value: &Value| fits(&schema, &schema, value, name));
        let mut value = folder.json(&file);
        is_fit(&value).unwrap_or_else(|why| panic!("{file}: {why}"));
        value["more"] = 1.into();
        assert!(is_fit(&value).is_err(), "a schema that takes anything");
    }
}
