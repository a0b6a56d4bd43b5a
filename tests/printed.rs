//! What a screen prints works where it is printed: a day of a federation in which nobody types a command that no screen had, but for the one
//! that founds it.

use std::collections::BTreeSet;

use veilsum_testkit::program::{Running, free_port};

use crate::joining::{Founded, LIMIT, Organisation, SITES, between, digits, ended_in, rows};

/// The command lines of a text: between quotation marks, or to the end of their line.
fn commands(text: &str) -> BTreeSet<String> {
    let verbs = "agree assign check explain federation join ledger plan report run status verify";
    let mut found = BTreeSet::new();
    for line in text.lines() {
        for (at, _) in line.match_indices("veilsum ") {
            let (before, rest) = (&line[..at], &line[at + "veilsum ".len()..]);
            let command = if before.ends_with('`') { rest.split('`').next().unwrap_or_default() } else { rest };
            if verbs.split(' ').any(|verb| command.split(' ').next() == Some(verb)) {
                found.insert(command.trim_end().to_owned());
            }
        }
    }
    found
}

/// The words of a command line, as a shell takes them apart.
fn words(command: &str) -> Vec<String> {
    let (mut all, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in command.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => all.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    all.push(word);
    all.into_iter().filter(|word| !word.is_empty()).collect()
}

/// An organisation, and what stood on its screens.
struct House {
    house: Organisation,
    screens: String,
    done: BTreeSet<String>,
    running: Option<Running>,
}

impl House {
    fn new(house: Organisation) -> House {
        House { house, screens: String::new(), done: BTreeSet::new(), running: None }
    }

    /// Everything that its screens have said so far.
    fn said(&self) -> String {
        let now = self.running.iter().map(|running| format!("{}\n{}", running.heard(), running.printed()));
        format!("{}\n{}", self.screens, now.collect::<String>())
    }

    /// The command that begins like this, once it is on a screen, with these words in the place of those in capitals.
    fn printed(&mut self, begins: &str, put: &[(&str, &str)]) -> Vec<String> {
        if let Some(running) = &self.running {
            let there = |log: &str| commands(log).iter().any(|command| command.starts_with(begins));
            if !commands(&self.screens).iter().any(|command| command.starts_with(begins)) {
                running.until(begins, LIMIT, there);
            }
        }
        let command = commands(&self.said()).into_iter().find(|command| command.starts_with(begins));
        let mut command = command.unwrap_or_else(|| panic!("no `veilsum {begins}` on a screen: {}", self.said()));
        self.done.insert(command.clone());
        for (from, to) in put {
            assert!(command.contains(from), "{command} has no {from}");
            command = command.replace(from, to);
        }
        words(&command)
    }

    /// Runs it to its end, which is a good one.
    fn types(&mut self, begins: &str, put: &[(&str, &str)]) {
        let command = self.printed(begins, put);
        let ended = self.house.run(&command).expect(0);
        self.screens += &ended.text();
    }

    /// Starts it, beside what else runs.
    fn starts(&mut self, begins: &str, put: &[(&str, &str)], more: &[&str]) {
        let mut command = self.printed(begins, put);
        command.extend(more.iter().map(|word| (*word).to_owned()));
        self.running = Some(self.house.start(&command));
    }

    /// What it started ends well when it is told to.
    fn stops(&mut self) {
        if let Some(running) = self.running.take() {
            running.signal("-TERM");
            self.screens += &running.wait(LIMIT).expect(0).text();
        }
    }
}

/// From the first screen to the last; then every command that still stands on one and was not typed yet, each where it was printed.
#[test]
fn every_command_that_is_printed_works_as_printed() {
    let founded = Founded::new();
    let (lines, told) = (founded.lines.clone(), founded.told.clone());
    let mut hub = House::new(founded.hub);
    hub.screens = told;
    hub.starts("run", &[], &[]);
    let address = format!("127.0.0.1:{}", free_port());
    let mut parties: Vec<(&str, House)> =
        SITES.iter().chain(&["counter"]).map(|name| (*name, House::new(Organisation::new()))).collect();
    for (at, (name, party)) in parties.iter_mut().enumerate() {
        party.house.folder.write("rows.csv", &rows(at));
        party.screens = hub.screens.lines().filter(|line| line.contains(&lines[at].1)).collect();
        party.screens = party.screens.replace("HOST:PORT", &address);
        // As printed; a site that names its rows reads them before the call.
        let more: &[&str] = if *name == "hospital-b" { &["--run", "--data", "rows.csv"] } else { &[] };
        party.starts("join", &[], more);
        let heard = digits(party.running.as_ref().expect("it joins"));
        hub.types(&format!("federation approve {name}="), &[("DIGITS", &heard)]);
    }
    // Whoever joins without --run waits for a plan, too.
    let plan = [("--k K", "--k 3 --rho=0.4"), ("N ", "6000 "), ("NAME=LOW:HIGH", "x=0:1 y=0:1")];
    let plan = hub.printed("plan new", &plan);
    let proposed = hub.house.start(&plan);
    for (name, party) in &mut parties {
        if *name != "hospital-b" {
            let joined = party.running.take().expect("it joins").wait(LIMIT).expect(0);
            party.screens += &joined.text();
        }
    }
    let shown = parties[0].1.house.run(&["verify", "roster.toml"]).expect(0).stdout;
    let read = between(&shown, "fingerprint  ", "  (");
    for (name, party) in &mut parties {
        party.types("agree ", &[("WORDS", read)]);
        match *name {
            "hospital-b" => {}
            "counter" => party.starts("run", &[], &[]),
            _ => party.starts("run --data", &[("ROWS.csv", "rows.csv")], &[]),
        }
    }
    hub.screens += &proposed.wait(LIMIT).expect(0).text();
    hub.running.as_ref().expect("it runs").until_result(1, LIMIT);
    for (_, party) in &parties {
        let again = |log: &str| log.matches("standing by at the coordinator").count() > 1;
        party.running.as_ref().expect("it runs").until("the end of the run", LIMIT, again);
    }
    // What is left on the screens, each in its own house, as it stands there.
    let mut left = 0;
    for house in parties.iter_mut().map(|(_, party)| party).chain([&mut hub]) {
        let folder = ended_in(&house.house, 1);
        for command in commands(&house.said()).difference(&house.done.clone()) {
            if command.starts_with("run") || command.starts_with("join") || command.starts_with("federation approve") {
                continue;
            }
            let words = words(&command.replace("FOLDER", &folder).replace("ROWS.csv", "rows.csv"));
            let ended = house.house.run(&words);
            assert_eq!(ended.code, Some(0), "`veilsum {command}`: {ended:#?}");
            left += 1;
        }
    }
    assert!(left >= 9, "only {left} commands were left");
    // The next time.
    for house in parties.iter_mut().map(|(_, party)| party).chain([&mut hub]) {
        house.stops();
        let begins = if commands(&house.said()).contains("run") { "run" } else { "run --data" };
        let command = house.printed(begins, &[]).join(" ").replace("ROWS.csv", "rows.csv");
        house.running = Some(house.house.start(&words(&command)));
        let begun = |log: &str| log.contains("standing by") || log.contains("is open");
        house.running.as_ref().expect("it runs").until("the next time", LIMIT, begun);
    }
}
