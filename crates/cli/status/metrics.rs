//! How a party stands as OpenMetrics, made anew for every scrape.

use std::sync::atomic::AtomicU64;

use prometheus_client::{
    encoding::text,
    metrics::{counter::Counter, family::Family, gauge::Gauge, info::Info},
    registry::{Registry, Unit},
};
use veilsum_node::role::status::{Phase, Status};

/// The type of the text.
pub(super) const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Labels = Vec<(&'static str, String)>;

/// The text for how a party stands now.
pub(super) fn text(status: Option<&Status>) -> String {
    let mut all = Registry::with_prefix("veilsum");
    match status {
        Some(status) => register(&mut all, status),
        None => set(&mut all, "running", RUNNING, Some(0.0)),
    }
    let mut told = String::new();
    // Writing to a string does not fail.
    let _ = text::encode(&mut told, &all);
    told
}

const RUNNING: &str = "1 while a run has keys, and 0 before and after";

fn set(all: &mut Registry, name: &str, help: &str, value: Option<f64>) {
    if let Some(value) = value {
        let gauge = Gauge::<f64, AtomicU64>::default();
        gauge.set(value);
        all.register(name, help, gauge);
    }
}

fn register(all: &mut Registry, status: &Status) {
    let party = vec![
        ("party", status.party.clone()),
        ("role", status.role.clone()),
        ("federation", status.federation.clone().unwrap_or_default()),
        ("plan", status.plan.clone().unwrap_or_default()),
        ("software", status.software.clone()),
    ];
    all.register("party", "Who this is", Info::new(party));
    let mut gauge = |name: &str, help: &str, value: Option<f64>| set(all, name, help, value);
    let running = matches!(status.phase, Phase::Running | Phase::Ended);
    gauge("running", RUNNING, Some(f64::from(u8::from(running))));
    let round = status.round.as_ref();
    gauge("question", "Questions answered in this run", Some(round.map_or(0.0, |round| f64::from(round.number))));
    gauge("questions_at_most", "Questions of the plan at most", round.map(|round| f64::from(round.of)));
    gauge("sites_in_total", "Sites in the last total", round.and_then(|round| round.sites).map(|sites| sites as f64));
    let answers = status.open.as_ref().and_then(|open| open.answers);
    gauge("sites_answered", "Sites that have answered this step of the open question", answers.map(|(n, _)| n as f64));
    gauge("sites_asked", "Sites that are asked the open question", answers.map(|(_, of)| of as f64));
    gauge("centres_moved", "How far the centres moved in the last round", status.shift());
    gauge("left_at_most_seconds", "The rest of the questions, at the pace so far", status.left.map(|left| left as f64));
    gauge("status_since_timestamp_seconds", "When the status changed last", Some(status.since as f64));
    let connected = Family::<Labels, Gauge>::default();
    for peer in &status.parties {
        let labels = vec![("other", peer.party.clone()), ("over", peer.over.clone().unwrap_or_default())];
        connected.get_or_create(&labels).set(i64::from(peer.over.is_some()));
    }
    all.register("connected", "Whether another party is connected, and over what", connected);
    let mut counter = |name: &str, help: &str, unit: Option<Unit>, value: u64| {
        let counter = Counter::<u64>::default();
        counter.inc_by(value);
        match unit {
            Some(unit) => all.register_with_unit(name, help, unit, counter),
            None => all.register(name, help, counter),
        }
    };
    counter("sent", "Frames that this party sent in this run", Some(Unit::Bytes), status.bytes.0);
    counter("received", "Frames that it received", Some(Unit::Bytes), status.bytes.1);
    counter("troubles", "Links and sites that were lost in this run", None, u64::from(status.troubles));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use veilsum_node::role::progress::Progress;

    use super::*;

    /// A sample's name, its labels, its value.
    fn sample(line: &str) -> (String, BTreeMap<String, String>, f64) {
        let (name, labels, value) = match line.split_once('{') {
            None => line.split_once(' ').map(|(name, value)| (name, "", value)).expect(line),
            Some((name, rest)) => {
                let (labels, value) = rest.rsplit_once("} ").expect(line);
                (name, labels, value)
            }
        };
        let is_name = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        assert!(is_name(name), "{line}");
        let (mut found, mut rest) = (BTreeMap::new(), labels);
        while !rest.is_empty() {
            let (key, after) = rest.split_once("=\"").expect(line);
            assert!(is_name(key), "{line}");
            let (mut value, mut chars) = (String::new(), after.char_indices());
            let end = loop {
                match chars.next().expect(line) {
                    (at, '"') => break at,
                    (_, '\\') => match chars.next().expect(line).1 {
                        'n' => value.push('\n'),
                        c @ ('"' | '\\') => value.push(c),
                        _ => panic!("{line}"),
                    },
                    (_, c) => value.push(c),
                }
            };
            assert!(found.insert(key.to_owned(), value).is_none(), "{line}");
            rest = after[end + 1..].trim_start_matches(',');
        }
        (name.to_owned(), found, value.parse().expect(line))
    }

    /// The rules of the text format: every sample is of a family that was described before it, families are not mixed, counters and
    /// infos have their suffixes, the last line says that it is the last.
    fn checked(text: &str) -> Vec<(String, BTreeMap<String, String>, f64)> {
        let (mut family, mut kind, mut seen, mut samples) = (String::new(), String::new(), Vec::new(), Vec::new());
        let body = text.strip_suffix("# EOF\n").expect("the end is marked");
        for line in body.lines() {
            if let Some(rest) = line.strip_prefix("# ") {
                let (what, rest) = rest.split_once(' ').expect(line);
                let (name, rest) = rest.split_once(' ').expect(line);
                assert!(["HELP", "TYPE", "UNIT"].contains(&what), "{line}");
                if name != family {
                    assert!(!seen.contains(&name.to_owned()), "{name} comes twice");
                    (family, kind) = (name.to_owned(), String::new());
                    seen.push(name.to_owned());
                }
                if what == "TYPE" {
                    kind = rest.to_owned();
                }
                assert!(what != "UNIT" || family.ends_with(&format!("_{rest}")), "{line}");
                continue;
            }
            let (name, labels, value) = sample(line);
            let suffix = match &*kind {
                "gauge" => "",
                "counter" => "_total",
                "info" => "_info",
                _ => panic!("{line} is of no type: {kind:?}"),
            };
            assert_eq!(name, format!("{family}{suffix}"));
            samples.push((name, labels, value));
        }
        samples
    }

    #[test]
    fn the_text_is_openmetrics_whatever_names_hold() {
        let nasty = "a\"b\\c\nd{e=\"f\"} 1";
        let mut status = Status::new("lead", "coordinator");
        let first = checked(&text(Some(&status)));
        assert!(first.iter().any(|(name, _, value)| name == "veilsum_running" && *value == 0.0), "{first:?}");
        let begins = Progress::Begins {
            party: nasty.into(),
            role: "coordinator",
            federation: "test".into(),
            plan: "1a2b".into(),
            others: vec!["counter".into(), nasty.into()],
            of: 31,
        };
        for event in [
            begins,
            Progress::Came { party: nasty.into(), over: "QUIC" },
            Progress::Round { number: 3, of: 31, what: "Fuzzy", sites: 2 },
            Progress::Bytes { sent: 77, received: 88 },
        ] {
            status.fold(&event, 9);
        }
        let all = checked(&text(Some(&status)));
        let value = |wanted: &str| all.iter().find(|(name, ..)| name == wanted).map(|(_, _, value)| *value);
        assert_eq!((value("veilsum_question"), value("veilsum_sites_in_total")), (Some(3.0), Some(2.0)));
        assert_eq!(
            (value("veilsum_sent_bytes_total"), value("veilsum_received_bytes_total")),
            (Some(77.0), Some(88.0))
        );
        let connected = all.iter().find(|(name, labels, _)| name == "veilsum_connected" && labels["other"] == nasty);
        assert_eq!(connected.map(|(_, labels, value)| (labels["over"].as_str(), *value)), Some(("QUIC", 1.0)));
        let party = all.iter().find(|(name, ..)| name == "veilsum_party_info").expect("who it is");
        assert_eq!(party.1["party"], nasty);
    }
}
