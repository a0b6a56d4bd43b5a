//! The quick form of every experiment, as continuous integration runs it: no target is missed.

use std::path::PathBuf;

use veilsum_lab::experiments::{self, Settings, papers};

fn quick(name: &str) {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let settings = Settings { data: data.is_dir().then_some(data), quick: true };
    let experiment = experiments::find(name).expect("an experiment of this name");
    let report = experiment.run(&settings).unwrap_or_else(|error| panic!("{name}: {error}"));
    let text = experiments::text(&report);
    println!("{text}");
    assert!(report.targets() > 0, "{name} has no target");
    assert_eq!(report.missed().count(), 0, "{text}");
    for line in report.lines.iter().filter(|line| line.item > 0) {
        assert!(papers::ITEMS.iter().any(|item| item.number == line.item && item.experiment == name), "{line:?}");
    }
    let drawn: Vec<String> = report.charts.iter().map(experiments::Chart::svg).collect();
    assert!(!drawn.is_empty() && drawn.iter().all(|svg| svg.ends_with("</svg>\n") && !svg.contains("NaN")), "{name}");
    let printed = report.lines.iter().any(|line| line.printed.parse::<f64>().is_ok());
    assert!(!printed || drawn.iter().any(|svg| svg.contains("paper")), "{name} draws no number of its paper");
}

#[test]
fn defaults() {
    quick("defaults");
}

#[test]
fn noisy_defaults() {
    quick("noisy-defaults");
}

#[test]
fn ffcm() {
    quick("ffcm");
}

#[test]
fn motivational() {
    quick("motivational");
}

#[test]
fn g2() {
    quick("g2");
}

fn bank() {
    quick("bank");
}

fn federated_fcm() {
    quick("federated-fcm");
}

fn ffcf() {
    quick("ffcf");
}

#[test]
fn fkm() {
    quick("fkm");
}

#[test]
fn names_are_unique_and_found() {
    for experiment in experiments::ALL {
        assert_eq!(experiments::find(experiment.name).map(|found| found.about), Some(experiment.about));
    }
    assert!(experiments::find("no such").is_none());
}

#[test]
fn forecast() {
    quick("forecast");
}

veilsum_testkit::with_data!(bank, federated_fcm, ffcf);
