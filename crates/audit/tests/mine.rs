//! `mine`: a few rows are recoverable and many are not; a broken file and a plan of another roster are errors.

use std::{fs, path::PathBuf, process::Command};

use veilsum_audit::mine;
use veilsum_cluster::{Algorithm, OutOfBox, Prepared, Rows, method::Seeding, random::Stream};
use veilsum_node::{
    documents::{Federation, write_plan, write_roster},
    plan::{Column, PlanSpec},
    role::system_rng,
};
use veilsum_proto::{
    identity::Identity,
    plan::Terms,
    roster::{Member, Roster},
};

const SEED: u64 = 5;

fn work(rounds: u32, most: u32) -> PlanSpec {
    let column = |name: &str| Column { name: name.into(), lower: 0.0, upper: 10.0 };
    let fcm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: rounds };
    let mut work = PlanSpec::plain(vec![column("x"), column("y")], fcm, 3, Seeding::Uniform { seed: SEED });
    work.recipe.clusters.max = most;
    work
}

/// A federation of four sites, and its coordinator.
fn federation(work: &PlanSpec) -> (Federation, Identity) {
    let mut rng = system_rng();
    let identities: Vec<Identity> = (0..6).map(|_| Identity::generate(&mut rng)).collect();
    let member = |i: usize| Member {
        name: format!("party-{i}"),
        key: identities[i].public(),
        address: if i < 2 { "127.0.0.1:4433".into() } else { String::new() },
    };
    let roster = Roster {
        name: "mine".into(),
        coordinator: member(0),
        intermediary: member(1),
        sites: (2..6).map(member).collect(),
    };
    let terms = Terms {
        roster: roster.hash(),
        min_cohort: 3,
        threshold: 0,
        colluders: 0,
        block_size: 0,
        slots: 32,
        max_rows: 4096,
        min_total_rows: 8,
        opening: true,
        application: work.to_bytes(),
    };
    (Federation::new(roster, terms).unwrap(), identities.into_iter().next().unwrap())
}

fn values(n: usize) -> Vec<f64> {
    let mut stream = Stream::new(SEED, b"veilsum audit test    v1");
    (0..2 * n).map(|_| 10.0 * stream.unit()).collect()
}

fn diagnosis(n: usize, work: &PlanSpec) -> mine::Diagnosis {
    let (federation, _) = federation(work);
    let rows = Rows::new(values(n), 2).unwrap();
    let rows = Prepared::new(&rows, &federation.work.domain().unwrap(), OutOfBox::Refuse).unwrap();
    mine::diagnose(&federation, &rows).unwrap()
}

#[test]
fn few_rows_are_at_risk_and_many_are_not() {
    println!("seed {SEED}");
    let few = diagnosis(10, &work(4, 6));
    assert!(few.whole && few.exposures[0].recoverable == 10, "{few:?}");
    let many = diagnosis(300, &work(2, 3));
    assert!(!many.whole && !many.at_risk, "{many:?}");
    assert!(many.exposures.iter().all(|e| e.recoverable <= few.exposures[0].recoverable), "{many:?}");
    // More colluders never tell less.
    for d in [&few, &many] {
        let radius: Vec<f64> = d.exposures.iter().map(|e| e.median_radius).collect();
        assert!(radius[0] <= radius[1] + 1e-12, "{radius:?}");
    }
    // Noise hides what a fine step tells.
    let mut noisy = work(4, 3);
    noisy.recipe.noise = Some(veilsum_cluster::privacy::Noise::usual(1.0, 1000));
    noisy.step_bits = Some(20);
    noisy.out_of_box = veilsum_cluster::OutOfBox::Clip;
    let noisy = diagnosis(10, &noisy);
    assert!(!noisy.at_risk && noisy.exposures.iter().all(|e| e.recoverable == 0), "{noisy:?}");
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_command_prints_lines_and_no_values_and_names_what_is_wrong() {
    let folder = Folder(std::env::temp_dir().join(format!("veilsum-mine-{}", std::process::id())));
    fs::create_dir_all(&folder.0).unwrap();
    let at = |name: &str| folder.0.join(name);
    let ((federation, owner), (other, stranger)) = (federation(&work(4, 6)), self::federation(&work(4, 6)));
    let save = |f: &Federation, owner: &Identity, name: &str| {
        let roster = (*f.roster).clone().sign(owner).unwrap();
        write_roster(at(&format!("{name}.roster")), &roster).unwrap();
        let plan = (*f.terms).clone().sign(&f.roster, owner).unwrap();
        write_plan(at(&format!("{name}.plan")), &plan).unwrap();
    };
    save(&federation, &owner, "own");
    save(&other, &stranger, "other");
    let data = values(10);
    let lines: Vec<String> = data.chunks(2).map(|r| format!("{},{}", r[0], r[1])).collect();
    fs::write(at("rows.csv"), format!("x,y\n{}\n", lines.join("\n"))).unwrap();
    fs::write(at("broken.csv"), "x,y\n1.5,abc\n").unwrap();
    let run = |plan: &str, roster: &str, data: &str, json: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_veilsum-audit"));
        command.arg("mine").arg("--plan").arg(at(plan)).arg("--roster").arg(at(roster)).arg("--data").arg(at(data));
        if json {
            command.arg("--json");
        }
        let out = command.output().unwrap();
        let text = [out.stdout, out.stderr].map(|b| String::from_utf8(b).unwrap());
        (out.status.code(), text)
    };
    let (code, [text, errors]) = run("own.plan", "own.roster", "rows.csv", false);
    assert!(matches!(code, Some(0 | 1)), "{code:?} {errors}");
    for value in &data {
        let shown = format!("{value:.4}");
        assert!(!text.contains(&shown) && !text.contains(&value.to_string()), "{shown} in {text}");
    }
    let (same, [json, _]) = run("own.plan", "own.roster", "rows.csv", true);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((same, json["at_risk"].as_bool()), (code, code.map(|c| c == 1)));
    let (code, [_, errors]) = run("own.plan", "own.roster", "broken.csv", false);
    assert!(code == Some(3) && errors.contains("broken.csv") && !errors.contains("1.5"), "{errors}");
    let (code, [_, errors]) = run("other.plan", "own.roster", "rows.csv", false);
    assert!(code == Some(3) && errors.contains("other.plan"), "{errors}");
    let (code, _) = run("own.plan", "own.roster", "nowhere.csv", false);
    assert_eq!(code, Some(3));
}
