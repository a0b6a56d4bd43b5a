//! The linear adversary on the files that a real run leaves: ledgers, openings, a view.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use veilsum_audit::{
    scene::Scene,
    span::{self, Assumed, Told, read::Released, report::Report},
};
use veilsum_cluster::{Batch, Query};
use veilsum_node::{
    loopback::{self, LOOPBACK_TIMING, LoopbackConfig, LoopbackSite},
    question::Question,
};

const ASSUMED: Assumed = Assumed { contributors: 2, least: 3, rows: 40.0, seed: 3 };

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Every file with this ending below a folder.
fn files(below: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(below).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn a_runs_ledgers_and_openings_say_what_was_released() {
    let folder = Folder(std::env::temp_dir().join(format!("veilsum-audit-span-{}", std::process::id())));
    fs::create_dir_all(&folder.0).unwrap();
    let scene = Scene::clumps(5, 4, 40, 3).unwrap();
    let config = LoopbackConfig {
        site: scene.site.clone(),
        sites: scene.sites.iter().cloned().map(LoopbackSite::from).collect(),
        work: scene.work.clone(),
        terms: Box::new(|_| {}),
        vanish: Vec::new(),
        record: false,
        state: Some(folder.0.clone()),
        blur: None,
        carrier: None,
        way: None,
        timing: LOOPBACK_TIMING,
        on_loss: veilsum_node::role::server::OnLoss::Stop,
        progress: Arc::new(|_| {}),
    };
    let run = tokio::runtime::Runtime::new().unwrap().block_on(loopback::run(config)).unwrap();
    let result = run.result.unwrap();
    let federations = [run.federation.clone()];
    let names: BTreeSet<String> = run.federation.roster.sites.iter().map(|m| m.name.clone()).collect();
    let sums =
        |t: &&Told| matches!(&t.question, Question::Cluster(b) if matches!(b.queries[..], [Query::FuzzySums { .. }]));

    // Every site's ledger says the same: three rounds, the validation, the row count, all over everybody.
    let ledgers = files(&folder.0, "ledger.jsonl");
    assert_eq!(ledgers.len(), 4);
    let mut released = Released::default();
    released.ledgers(&ledgers, &federations).unwrap();
    assert!(released.left_out.is_empty(), "{:?}", released.left_out);
    assert_eq!(released.told.len(), 5);
    assert_eq!(released.told.iter().filter(sums).count(), 3);
    assert!(released.told.iter().all(|t| t.cohort == names && t.values.is_none()));
    let found = span::span(&released.told, &ASSUMED).unwrap();
    assert!(found.flagged().next().is_none() && found.atoms.len() == 1, "{found:?}");
    let report = Report::new(found, &released.told, released.left_out, &ASSUMED);
    let mut text = Vec::new();
    report.print(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("predicted from the questions alone") && text.contains("No group is determined"), "{text}");
    assert!(Released::default().ledgers(&ledgers, &[]).is_err(), "ledgers without a roster");

    // The openings hold the totals themselves, and the very centres that the ledgers round: whole as `openings.bin`, or as the
    // transcript of a run that lasts, whose last entry was being written.
    let bytes = result.openings.expect("openings of a run that opens");
    let [whole, lasting] = ["openings.bin", "lasting.transcript"].map(|name| folder.0.join(name));
    fs::write(&whole, &bytes).unwrap();
    fs::write(&lasting, &bytes[..bytes.len() - 1]).unwrap();
    let [mut opened, mut before] = [Released::default(), Released::default()];
    opened.openings(&whole, &federations).unwrap();
    before.openings(&lasting, &federations).unwrap();
    assert_eq!((opened.told.len(), before.told.len()), (4, 3), "the count of rows is the intermediary's");
    fs::write(&whole, &bytes[..bytes.len() - 1]).unwrap();
    assert!(Released::default().openings(&whole, &federations).unwrap_err().to_string().contains("is damaged"));
    fs::write(&lasting, []).unwrap();
    assert!(Released::default().openings(&lasting, &federations).unwrap_err().to_string().contains("is empty"));
    let first = opened.told.iter().find(sums).expect("a round that was opened");
    assert!(first.cohort == names && first.values.is_some());
    let centres = |t: &Told| match &t.question {
        Question::Cluster(Batch { queries, .. }) => queries[0].points()[0].as_slice().to_vec(),
        _ => Vec::new(),
    };
    let near = |t: &Told| centres(t).iter().zip(centres(first)).all(|(a, b)| (a - b).abs() < 2e-6);
    assert!(released.told.iter().filter(sums).any(near));

    // As a view it reads back to the last bit; a line that is none is refused by its number.
    let view = folder.0.join("view.jsonl");
    let lines: Vec<String> = opened.told.iter().map(|t| serde_json::to_string(t).unwrap()).collect();
    fs::write(&view, lines.join("\n")).unwrap();
    let mut read = Released::default();
    read.view(&view).unwrap();
    assert_eq!(read.told.len(), opened.told.len());
    assert!(read.told.iter().zip(&opened.told).all(|(a, b)| a.values == b.values && a.question == b.question));
    fs::write(&view, format!("{}\n{{}}\n", lines[0])).unwrap();
    assert!(format!("{:#}", Released::default().view(&view).unwrap_err()).contains("line 2"));
}

/// One total more, over all but one, and the adversary says whose part is out.
#[test]
fn a_row_count_over_fewer_sites_exposes_the_one_that_is_missing() {
    let scene = Scene::clumps(6, 5, 40, 1).unwrap();
    let rows = scene.sites.into_iter().collect();
    let domain = scene.work.domain().unwrap();
    let mut sites = span::federations::Sites::new(&rows, domain, None).unwrap();
    let everybody = sites.everybody();
    let mut fewer = everybody.clone();
    let one = fewer.pop_first().unwrap();
    let told: Vec<Told> =
        [everybody, fewer].iter().map(|cohort| sites.total(&Question::CountRows, cohort).unwrap()).collect();
    assert!(span::span(&told[..1], &ASSUMED).unwrap().flagged().next().is_none());
    let mut found = span::span(&told, &ASSUMED).unwrap();
    found.compare(&sites.rows);
    let part = found.part(&[&one]).unwrap();
    assert!(part.flagged && part.rows.off().unwrap() < 1e-9, "{part:?}");
    // A count says nothing of where rows lie.
    assert!(part.columns.iter().all(|c| c.predicted > 0.2), "{part:?}");
    assert!(span::span(&[], &ASSUMED).is_err());
}
