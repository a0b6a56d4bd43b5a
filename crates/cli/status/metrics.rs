//! How a party stands in the text format of Prometheus, which node_exporter's textfile collector reads.

use std::fmt::Write;

use veilsum_node::role::status::{Phase, Status};

/// The text for how a party stands now; of a site also what its account has spent, and its cap, in 10^-9 of rho.
pub(super) fn text(status: Option<&Status>, account: Option<(u64, u64)>) -> String {
    let mut all = Text::default();
    let running = status.is_some_and(|status| matches!(status.phase, Phase::Running | Phase::Ended));
    all.gauge("running", "1 while a run has keys, and 0 before and after", Some(u64::from(running)));
    let rho = |nano_rho: u64| nano_rho as f64 / 1e9;
    all.gauge("account_spent_rho", "What all answers with noise have spent", account.map(|(spent, _)| rho(spent)));
    all.gauge("account_cap_rho", "What they may spend", account.map(|(_, cap)| rho(cap)));
    let Some(status) = status else { return all.0 };
    all.family("phase", "gauge", "What it does").sample("phase", &[("phase", &status.phase.to_string())], 1);
    all.gauge("last_run_ended_timestamp_seconds", "When the last run of this process ended", status.last_run);
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let party = [
        ("party", &status.party),
        ("role", &status.role),
        ("federation", &text(&status.federation)),
        ("plan", &text(&status.plan)),
        ("software", &status.software),
    ];
    all.family("party_info", "gauge", "Who this is").sample("party_info", &party, 1);
    let round = status.round.as_ref();
    all.gauge("question", "Questions answered in this run", Some(round.map_or(0, |round| round.number)));
    all.gauge("questions_at_most", "Questions of the plan at most", round.map(|round| round.of));
    all.gauge("sites_summed", "Sites in the last total", round.and_then(|round| round.sites));
    let answers = status.open.as_ref().and_then(|open| open.answers);
    all.gauge("sites_answered", "Sites that have answered this step of the open question", answers.map(|(n, _)| n));
    all.gauge("sites_asked", "Sites that are asked the open question", answers.map(|(_, of)| of));
    all.gauge("centres_moved", "How far the centres moved in the last round", status.shift());
    all.gauge("left_at_most_seconds", "The rest of the questions, at the pace so far", status.left);
    all.gauge("status_since_timestamp_seconds", "When the status changed last", Some(status.since));
    if !status.parties.is_empty() {
        all.family("connected", "gauge", "Whether another party is connected, and over what");
    }
    for peer in &status.parties {
        let labels = [("other", &peer.party), ("over", &text(&peer.over))];
        all.sample("connected", &labels, u8::from(peer.over.is_some()));
    }
    for (name, help, value) in [
        ("sent_bytes_total", "Frames that this party sent in this run", status.bytes.0),
        ("received_bytes_total", "Frames that it received", status.bytes.1),
        ("troubles_total", "Links and sites that were lost in this run", status.troubles.into()),
    ] {
        all.family(name, "counter", help).sample(name, &[], value);
    }
    all.0
}

/// Writing to a string does not fail.
#[derive(Default)]
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) -> &mut Text {
        let _ = write!(self.0, "# HELP veilsum_{name} {help}\n# TYPE veilsum_{name} {kind}\n");
        self
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &String)], value: impl std::fmt::Display) {
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> = labels.iter().map(|(key, text)| format!("{key}=\"{}\"", escaped(text))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "veilsum_{name}{labels} {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: Option<impl std::fmt::Display>) {
        if let Some(value) = value {
            self.family(name, "gauge", help).sample(name, &[], value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use veilsum_node::role::progress::Progress;

    use super::*;

    /// The rules of the text format: every sample is of a family that was described just before it, and no family comes twice.
    fn checked(text: &str) {
        let (mut family, mut seen) = ("", BTreeSet::new());
        for line in text.lines() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["#", "HELP", name, ..] => {
                    assert!(seen.insert(name), "{name} comes twice");
                    family = name;
                }
                ["#", "TYPE", name, kind] => {
                    assert_eq!((name, kind), (family, if family.ends_with("_total") { "counter" } else { "gauge" }));
                }
                _ => assert_eq!(line.split(['{', ' ']).next(), Some(family), "{line}"),
            }
        }
    }

    #[test]
    fn the_text_can_be_read_whatever_names_hold() {
        let (nasty, escaped) = ("a\"b\\c\nd{e=\"f\"} 1", r#"a\"b\\c\nd{e=\"f\"} 1"#);
        assert!(text(None, None).ends_with("\nveilsum_running 0\n"));
        assert!(text(None, Some((500_000_000, 2_000_000_000))).contains("\nveilsum_account_spent_rho 0.5\n"));
        let mut status = Status::new("lead", "coordinator");
        assert!(text(Some(&status), None).contains("\nveilsum_running 0\n"));
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
        let all = text(Some(&status), None);
        checked(&all);
        for sample in [
            "veilsum_question 3",
            "veilsum_sites_summed 2",
            "veilsum_sent_bytes_total 77",
            "veilsum_received_bytes_total 88",
            &format!("veilsum_connected{{other=\"{escaped}\",over=\"QUIC\"}} 1"),
        ] {
            assert!(all.lines().any(|line| line == sample), "{sample} is not in {all}");
        }
        assert!(all.contains(&format!("party=\"{escaped}\"")), "{all}");
    }
}
