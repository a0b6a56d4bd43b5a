//! Every role killed (SIGKILL) or told to stop (SIGTERM) at random moments of runs of separate processes, and started again with the
//! same command ([JRN-1], [JRN-5]): a run ends with the right centres, or in good order with a reason, and never otherwise.
//!
//! `VEILSUM_KILLS=150` sets how many; `VEILSUM_SEED` repeats the moments, as far as moments can be repeated.

use std::{
    collections::BTreeMap,
    fmt::Write,
    time::{Duration, Instant, SystemTime},
};

use serde_json::Value;
use veilsum_testkit::program::{Ended, Parties, Running, start};

const SIZES: [usize; 5] = [40, 55, 61, 48, 70];
const PLAN: [&str; 5] = ["--init=uniform", "--epsilon=0", "--max-rounds=100", "--slots=64", "--seed=9"];
const AGGREGATOR: [&str; 8] = ["--phase-timeout", "20", "--grace", "20", "--join-timeout", "20", "--loss-wait", "40"];
const SITE: [&str; 2] = ["--join-timeout", "20"];
/// Longer than any wait that is set above, in a row.
const LIMIT: Duration = Duration::from_secs(150);
/// Kills of one run.
const EACH: usize = 2;

/// Numbers that need not be good (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// Party 0 is the coordinator, 1 the intermediary, then the sites.
fn run_of(p: &Parties, party: usize) -> Running {
    match party {
        0 => start(&p.server(&AGGREGATOR)),
        1 => start(&p.intermediary(&AGGREGATOR)),
        site => start(&p.client(site - 1, &SITE)),
    }
}

/// A run in which nobody falls: its centres, and how long it takes.
fn calm() -> (Value, Duration) {
    let p = Parties::new(&SIZES, &PLAN);
    let begun = Instant::now();
    let parties: Vec<Running> = (0..2 + SIZES.len()).map(|party| run_of(&p, party)).collect();
    parties.into_iter().for_each(|party| drop(party.wait(LIMIT).expect(0)));
    (p.folder.json("out/result.json")["centres"].clone(), begun.elapsed())
}

/// How a run ended, for the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Came {
    RightCentres,
    LastTotals,
    CleanStop,
    Wrong,
    Hung,
    Panicked,
}

/// The run's end from the files and the last words of all processes; with what to look at, where it did not end well.
fn judge(p: &Parties, ended: &[Result<Ended, String>], right: &Value) -> (Came, String) {
    if let Some(running) = ended.iter().find_map(|ended| ended.as_ref().err()) {
        return (Came::Hung, running.clone());
    }
    let ended: Vec<&Ended> = ended.iter().flatten().collect();
    let odd = |found: Came, ended: &Ended| (found, format!("{ended:#?}"));
    if let Some(ended) = ended.iter().find(|ended| ended.text().contains("panicked at")) {
        return odd(Came::Panicked, ended);
    }
    // Whoever did not end well says why and what to do next.
    let told = |ended: &Ended| ["error: ", "next: "].iter().all(|what| ended.stderr.contains(what));
    if let Some(ended) = ended.iter().find(|ended| ended.code != Some(0) && !told(ended)) {
        return odd(Came::Wrong, ended);
    }
    let files =
        std::iter::once("out/result.json".to_owned()).chain((1..=SIZES.len()).map(|i| format!("site-{i}.model")));
    let results: Vec<Value> =
        files.filter(|file| p.folder.0.join(file).exists()).map(|file| p.folder.json(&file)).collect();
    let whole: Vec<&Value> = results.iter().filter(|result| result["ended_early"].is_null()).collect();
    if let Some(wrong) = whole.iter().find(|result| result["centres"] != *right) {
        return (Came::Wrong, format!("{wrong:#}"));
    }
    let last: Vec<String> = ended
        .iter()
        .filter(|ended| ended.code != Some(0))
        .map(|ended| ended.stderr.lines().filter(|line| line.starts_with("error: ")).collect::<Vec<_>>().join("; "))
        .collect();
    let came = match (whole.is_empty(), results.is_empty()) {
        (false, _) => Came::RightCentres,
        (true, false) => Came::LastTotals,
        (true, true) => Came::CleanStop,
    };
    (came, last.join(" | "))
}

#[test]
fn every_role_killed_at_random_moments() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let kills = number("VEILSUM_KILLS").unwrap_or(6) as usize;
    let clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64);
    let seed = number("VEILSUM_SEED").unwrap_or_else(clock);
    println!("VEILSUM_KILLS={kills} VEILSUM_SEED={seed}");
    let mut dice = Dice(seed);
    let (right, takes) = calm();
    println!("a run in which nobody falls takes {takes:?}");
    let mut table: BTreeMap<(&str, &str), BTreeMap<Came, usize>> = BTreeMap::new();
    let mut bad = String::new();
    for first in (0..kills).step_by(EACH) {
        let p = Parties::new(&SIZES, &PLAN);
        let mut parties: Vec<Option<Running>> = (0..2 + SIZES.len()).map(|party| Some(run_of(&p, party))).collect();
        let mut gone = Vec::new();
        let mut killed = Vec::new();
        for kill in first..kills.min(first + EACH) {
            // Each role in turn, two of three times without a word.
            let (party, role) = match kill % 3 {
                0 => (0, "coordinator"),
                1 => (1, "intermediary"),
                _ => (2 + dice.below(SIZES.len() as u64) as usize, "site"),
            };
            let signal = if dice.below(3) < 2 { "-KILL" } else { "-TERM" };
            let moment = Duration::from_millis(dice.below(takes.as_millis() as u64));
            let away = Duration::from_millis(dice.below(1_500));
            std::thread::sleep(moment);
            let victim = parties[party].take().expect("it was started");
            victim.signal(signal);
            match victim.ends_within(Duration::from_secs(30)) {
                // Without a word, or with one.
                Ok(ended) if ended.code.is_none() => {}
                ended => gone.push(ended),
            }
            std::thread::sleep(away);
            parties[party] = Some(run_of(&p, party));
            println!("{kill}: {role} {signal} after {moment:?}, back after {away:?}");
            killed.push((role, signal));
        }
        let end = Instant::now() + LIMIT;
        let rest = parties.into_iter().flatten();
        gone.extend(rest.map(|party| party.ends_within(end.saturating_duration_since(Instant::now()))));
        let (came, what) = judge(&p, &gone, &right);
        println!("   {came:?} {what}");
        killed.into_iter().for_each(|kill| *table.entry(kill).or_default().entry(came).or_default() += 1);
        if came >= Came::Wrong {
            let _ = writeln!(bad, "{came:?}: {what}");
        }
    }
    println!("{:<13} {:<6} right centres, last totals, clean stops, wrong, hung, panics", "killed", "with");
    for ((role, signal), came) in &table {
        let of = |what: Came| came.get(&what).copied().unwrap_or(0);
        let all = [Came::RightCentres, Came::LastTotals, Came::CleanStop, Came::Wrong, Came::Hung, Came::Panicked];
        println!("{role:<13} {signal:<6} {}", all.map(|what| of(what).to_string()).join(", "));
    }
    assert!(bad.is_empty(), "VEILSUM_SEED={seed}\n{bad}");
}
