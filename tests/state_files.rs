//! Files of a site's state removed, cut in half, or set back to an older copy, while its process is dead in the midst of a run and
//! between two runs: nothing that was refused is answered after it, no slot has its noise in two answers, whatever left stays in the
//! ledger as long as anything more leaves, and nothing panics. One test for each kind of file.
//!
//! Ledger and head set back together are another matter: one machine cannot know it ([LED-5]), and the others name it ([LED-11],
//! `tests/backups.rs`).

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use veilsum_cluster::{OutOfBox, method::Seeding, privacy::Noise};
use veilsum_node::{
    door::{DEFAULT_NANO_RHO, Policy, Verdict, judge, ledger},
    loopback::toy_policy,
};
use veilsum_proto::{
    identity::Identity,
    message::{Kind, kind_of},
    roster::PartyId,
    suite::hash,
};
use veilsum_testkit::{
    cast::Cast,
    in_process::{fcm, unit_square},
    program::{Folder, ending},
    seeds::Dice,
    wire::{Ask, parts},
};

use super::metamorphic::{
    plans::{Case, Look, table},
    world::{Death, Rows, Seen, read, run_and_die},
};

/// Its files, by how their names end.
const LEDGER: &str = "ledger.jsonl";
const HEAD: &str = ".head";
const JOURNALS: &str = ".journal";
const TRANSCRIPTS: &str = ".transcript";
const ALL: &str = "";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Harm {
    Removed,
    Cut,
    SetBack,
}

const HARMS: [Harm; 3] = [Harm::Removed, Harm::Cut, Harm::SetBack];

/// The files of this kind in the state folder.
fn files(of: &str, state: &Path) -> impl Iterator<Item = PathBuf> {
    ending(state, of).into_iter().filter(|path| path.is_file() && path.extension().is_none_or(|end| end != "lock"))
}

/// Their contents, by name.
type Copies = BTreeMap<PathBuf, Vec<u8>>;

fn copies(of: &str, state: &Path) -> Copies {
    files(of, state).map(|path| (path.clone(), fs::read(path).expect("a file"))).collect()
}

/// How many files were harmed.
fn harm(of: &str, how: Harm, state: &Path, older: &Copies) -> usize {
    let there: Vec<PathBuf> = files(of, state).collect();
    for path in &there {
        let whole = fs::read(path).expect("a file");
        match (how, older.get(path)) {
            (Harm::Removed, _) => fs::remove_file(path).expect("removed"),
            (Harm::Cut, _) => fs::write(path, &whole[..whole.len() / 2]).expect("cut"),
            (Harm::SetBack, Some(before)) => fs::write(path, before).expect("set back"),
            // There was none then.
            (Harm::SetBack, None) => fs::remove_file(path).expect("set back"),
        }
    }
    there.len()
}

/// A federation of one data set, and its plans.
struct Site {
    folder: Folder,
    identities: Vec<Arc<Identity>>,
}

impl Site {
    fn new(name: &str) -> Site {
        let of = |i: u8| Arc::new(Identity::from_seed(&hash("test", &[name.as_bytes(), &[i]]).0));
        let site = Site { folder: Folder::fresh(), identities: (0..5).map(of).collect() };
        ledger::begin(&site.state(), &site.identities[2].digest_secret()).expect("an account");
        site
    }

    fn state(&self) -> PathBuf {
        self.folder.0.join("state")
    }

    /// A plan that spends so much.
    fn plan(&self, rho: f64, seed: u64) -> Case {
        let mut work = fcm(unit_square(), 2, 0.0, 4, Seeding::Uniform { seed });
        work.recipe.noise = Some(Noise { retries: 2, ..Noise::usual(rho, 100).from_anywhere() });
        work.out_of_box = OutOfBox::Clip;
        let cast = Cast::of(self.identities.clone(), &work, &["one", "two", "three"], |terms| terms.slots = 4);
        let policy = Policy { nano_rho: Some(DEFAULT_NANO_RHO), ..toy_policy().policy };
        let (agreed, missing, trick, other) = (false, None, None, Vec::new());
        Case { cast: cast.expect("a plan"), policy, agreed, missing, trick, other, finishes: false, twice: false }
    }

    fn rows(&self, case: &Case, sites: std::ops::Range<u64>) -> Vec<Rows> {
        let row = |i: u64| {
            let path = self.folder.0.join(format!("{i}.csv"));
            fs::write(&path, table(&mut Dice::new(i), &case.cast.federation.work, 20, Look::Usual)).expect("a table");
            read(case, &path).expect("rows")
        };
        sites.map(row).collect()
    }

    /// Runs a plan on what is there of the state; after the last death with other rows, if there are any.
    fn run(&self, case: &Case, at: &[u32], between: &dyn Fn(usize), then: Option<Rows>) -> Seen {
        let death = Death { state: self.state(), at: at.to_vec(), between, then };
        run_and_die(case, &self.rows(case, 0..3), &death, 5)
    }

    /// Whether the door says yes to a plan, by what is there of the state.
    fn says_yes(&self, case: &Case) -> bool {
        let federation = &case.cast.federation;
        let key = case.cast.identities[2].public();
        let account = ledger::look(&self.state(), &key);
        account.is_ok_and(|account| !matches!(judge(&federation.facts(), &case.policy, &account, None), Verdict::No(_)))
    }

    /// Digests of all frames that the ledger has, without a look at whether it holds.
    fn entered(&self) -> BTreeSet<String> {
        let text = fs::read_to_string(self.state().join("ledger.jsonl")).unwrap_or_default();
        let entry = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok();
        let digest = |entry: serde_json::Value| Some(entry["event"]["frame"]["digest"].as_str()?.to_owned());
        text.lines().filter_map(entry).filter_map(digest).collect()
    }
}

/// All masked words that a run showed, and how many of them after the last death.
fn words(seen: &Seen) -> (Vec<(PartyId, Vec<u8>)>, usize) {
    let since = seen.deaths.last().copied().unwrap_or(0);
    let of = |at: usize| seen.steps[at..].iter().flat_map(|step| &step.sent).cloned();
    let words = |at| of(at).filter(|(_, frame)| kind_of(frame) == Some(Kind::MaskedInput)).collect::<Vec<_>>();
    let after = words(since).len();
    (words(0), after)
}

/// No slot of a deck has two answers.
fn one_answer_a_slot(seen: &Seen, about: &str) {
    let asks = seen.steps.iter().filter_map(|step| match step.told {
        Some((role, Kind::Ask)) => {
            let of = parts(&step.frame);
            let ask: Ask = of.read();
            Some((of.context.0, (role, ask.deck, ask.slot)))
        }
        _ => None,
    });
    let slots: BTreeMap<[u8; 32], (PartyId, u32, u16)> = asks.collect();
    let mut answers: BTreeMap<_, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for (_, frame) in words(seen).0 {
        let of = parts(&frame);
        answers.entry(slots[&of.context.0]).or_default().insert(of.rest);
    }
    for (slot, answers) in answers {
        assert_eq!(answers.len(), 1, "{about}: one noise in two answers of {slot:?}");
    }
}

fn check(of: &str) {
    let (mut harmed, mut went_on) = (0, 0);
    for how in HARMS {
        for at in [[1, 4], [2, 4], [2, 6]] {
            let (found, more) = in_a_run(of, how, at);
            (harmed, went_on) = (harmed + found, went_on + more);
        }
        harmed += between_runs(of, how);
    }
    println!("{of:?}: {harmed} files harmed, {went_on} answers after it");
    assert!(harmed >= 3, "no file was harmed");
}

/// The process dies twice; what was there at its first death is what is older at its second.
fn in_a_run(of: &str, how: Harm, at: [u32; 2]) -> (usize, usize) {
    let about = format!("{of:?} {how:?} in a run, deaths at {at:?}");
    let site = Site::new(&about);
    let (plan, large) = (site.plan(0.4, 1), site.plan(0.9, 2));
    assert!(site.says_yes(&large), "{about}: with nothing in the ledger");
    let (older, harmed) = (std::cell::RefCell::default(), std::cell::Cell::new(0));
    let between = |death| match death {
        1 => *older.borrow_mut() = copies(of, &site.state()),
        _ => {
            assert!(!site.says_yes(&large), "{about}: the account is kept for the run");
            harmed.set(harm(of, how, &site.state(), &older.borrow()));
            assert!(!site.says_yes(&large), "{about}: a no became a yes");
        }
    };
    let seen = site.run(&plan, &at, &between, None);
    assert_eq!(seen.deaths.len(), 2, "{about}: it did not die twice");
    one_answer_a_slot(&seen, &about);
    let (all, after) = words(&seen);
    // A run that ended early gives back what it did not spend, and nothing of what it spent.
    if after > 0 || site.says_yes(&large) {
        let entered = site.entered();
        for (_, frame) in all {
            let digest = hash("ledger frame", &[&frame]).to_string();
            assert!(entered.contains(&digest), "{about}: words left that the ledger does not have");
        }
    }
    (harmed.get(), after)
}

/// A whole run, and then the files.
fn between_runs(of: &str, how: Harm) -> usize {
    let about = format!("{of:?} {how:?} between runs");
    let site = Site::new(&about);
    let (plan, large, again) = (site.plan(0.4, 1), site.plan(0.9, 2), site.plan(0.4, 1));
    let older = std::cell::RefCell::default();
    site.run(&plan, &[2], &|_| *older.borrow_mut() = copies(of, &site.state()), None);
    assert!(!site.says_yes(&large) && !site.says_yes(&again), "{about}: before");
    let harmed = harm(of, how, &site.state(), &older.borrow());
    for no in [&large, &again] {
        assert!(!site.says_yes(no), "{about}: a no became a yes");
        let seen = site.run(no, &[], &|_| {}, None);
        assert!(words(&seen).0.is_empty(), "{about}: words left under a plan that was refused");
        assert!(seen.code.is_some_and(|code| code != 0), "{about}: {:?}", seen.code);
    }
    harmed
}

#[test]
fn the_ledger() {
    check(LEDGER);
}

#[test]
fn the_head_of_the_ledger() {
    check(HEAD);
}

/// [LED-6]: what was given away, and in which block, stands in the ledger.
#[test]
fn the_journals() {
    check(JOURNALS);
}

#[test]
fn what_was_said_and_how_far_the_run_is() {
    check(TRANSCRIPTS);
}

/// [JRN-2], [RND-6]: a machine that comes back as a snapshot of rounds before, in the midst of a run, masks nothing, whatever its rows are.
/// Nor does one whose ledger and head are from before the run, and whose journal is not.
#[test]
fn jrn_2_a_machine_from_a_backup_masks_nothing_twice() {
    for (at, forgets_the_run) in [([1, 4], false), ([2, 6], false), ([2, 4], true), ([2, 3], true)] {
        for other_rows in [false, true] {
            let about =
                format!("deaths at {at:?}, other rows: {other_rows}, a ledger from before the run: {forgets_the_run}");
            let site = Site::new(&about);
            let plan = site.plan(0.4, 1);
            let before = [LEDGER, HEAD].map(|of| (of, copies(of, &site.state())));
            let older = std::cell::RefCell::default();
            let between = |death| match death {
                1 => *older.borrow_mut() = copies(ALL, &site.state()),
                _ => {
                    assert!(harm(ALL, Harm::SetBack, &site.state(), &older.borrow()) > 3, "{about}");
                    if forgets_the_run {
                        for (of, before) in &before {
                            harm(of, Harm::SetBack, &site.state(), before);
                        }
                    }
                }
            };
            let then = other_rows.then(|| site.rows(&plan, 7..8).remove(0));
            let seen = site.run(&plan, &at, &between, then);
            assert_eq!(seen.deaths.len(), 2, "{about}: it did not die twice");
            one_answer_a_slot(&seen, &about);
            assert_eq!(words(&seen).1, 0, "{about}: words left");
            assert_ne!(seen.code, Some(0), "{about}");
        }
    }
}
