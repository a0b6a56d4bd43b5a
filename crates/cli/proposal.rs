//! What a member says to a proposed plan: by roster, plan, policy and ledger, and then whether it is ready ([PRO-2]).

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::runtime::Builder;
use veilsum_node::{
    carrier::Proxy,
    checkup::{self, Caller},
    clock::seconds_since_1970,
    documents::{self, Federation, Offered, Pinned, PlanAnswer, RowsFrom, SitePolicy, policy_of},
    door::{Data, No, Verdict, judge, ledger},
    error::{Code, Failure},
    refusal,
    role::standby::{Looking, Opinion},
    table,
};
use veilsum_proto::{identity::Identity, roster::Roster, suite::hash};

use crate::party::Own;

/// Whether a file is another: its length and age, as text.
pub(crate) fn stamp(file: &Path) -> String {
    fs::metadata(file).map_or(String::new(), |found| format!("{} {:?}", found.len(), found.modified()))
}

/// The same of rows, which may be in several files.
fn stamp_of_rows(rows: &RowsFrom) -> String {
    let files = table::files_of(&rows.data).unwrap_or_default();
    let stamps: Vec<u8> =
        files.iter().flat_map(|file| format!("{} {}\n", file.display(), stamp(file)).into_bytes()).collect();
    match &files[..] {
        [one] => stamp(one),
        _ => hash("files of rows", &[&stamps]).to_string(),
    }
}

/// What this party says to a plan ([PRO-2]).
pub(crate) struct Judge {
    /// This party's identity.
    pub identity: Arc<Identity>,
    /// Its key file.
    pub key: PathBuf,
    /// Where its roster is.
    pub roster: PathBuf,
    /// Whether it is a site.
    pub is_site: bool,
    /// Its rows, where they are not as its policy says, and its policy.
    pub own: Own,
    /// Folder of its ledger.
    pub state: PathBuf,
    /// Whether it could not reach the intermediary when it tried last; nothing if it does not try.
    pub unreached: Option<AtomicBool>,
}

/// How often a site tries again to reach an intermediary that it could not, in seconds.
const AGAIN: u64 = 5;
/// How long it tries.
const REACH: Duration = Duration::from_secs(3);

impl Judge {
    /// Where this site's rows are.
    fn rows(&self) -> Result<(SitePolicy, RowsFrom), Failure> {
        let (site, file) = policy_of(self.own.policy.as_deref(), Some(&self.key))?;
        let rows = self.own.rows(&site, file.as_deref(), Some(&self.key))?;
        Ok((site, rows))
    }

    /// The state of the files on which the answer rests.
    pub(crate) fn stamps(&self) -> Vec<String> {
        let unreached = self.unreached.as_ref().is_some_and(|unreached| unreached.load(Ordering::Relaxed));
        let again = unreached.then(|| (seconds_since_1970() / AGAIN).to_string());
        let rows = self.is_site.then(|| self.rows().map_or(String::new(), |(_, rows)| stamp_of_rows(&rows)));
        let policy = self.own.policy.clone().unwrap_or_else(|| self.key.with_file_name("site.toml"));
        let columns = self.roster.with_file_name("columns.toml");
        let files = [Pinned::beside(&self.key), policy, self.state.join(ledger::FILE), columns];
        files.iter().map(|file| stamp(file)).chain(rows).chain(again).collect()
    }

    /// What it says, and why.
    ///
    /// # Errors
    /// A [`Failure`] of [`Code::Storage`]: while nothing can be written this party is as good as away, and judges later.
    pub(crate) fn judge(&self, federation: &Federation, looking: &Looking) -> Result<Opinion, Failure> {
        if let Err(failure) = self.offered(&federation.roster).passes() {
            return Ok(no(PlanAnswer::Roster, &failure));
        }
        if !self.is_site {
            return Ok(Opinion { answer: PlanAnswer::Would { runs: None }, words: "this party counts rows".into() });
        }
        self.of_plan(federation, looking).or_else(|failure| match failure.code {
            Code::Storage => Err(failure),
            _ => Ok(no(PlanAnswer::NotReady, &failure)),
        })
    }

    /// The plan first, by public facts and the ledger; only a plan that is answered makes this site look whether it is ready.
    fn of_plan(&self, federation: &Federation, looking: &Looking) -> Result<Opinion, Failure> {
        let (site, mut from) = self.rows()?;
        from.halt = looking.halt.clone();
        let account = ledger::look(&self.state, &self.identity.public())?;
        let verdict = judge(&federation.facts(), &site.policy, &account, None);
        if !matches!(verdict, Verdict::Yes(_)) {
            let mut opinion = said(verdict.clone());
            if let Verdict::No(No::Column(at)) = verdict
                && let Some(name) = federation.work.headers().nth(at - 1)
            {
                opinion.words += &format!("\n  (the column is {name:?})");
            }
            return Ok(opinion);
        }
        documents::keep_policy(policy_of(self.own.policy.as_deref(), Some(&self.key))?.1.as_deref(), &self.key)?;
        // Before rows are read, which may take long.
        if let Some(opinion) = self.unreached(federation) {
            return Ok(opinion);
        }
        looking.reads();
        let loaded = documents::load_rows(federation, &from)?;
        site.has_room(loaded.rows_asked(federation))?;
        if federation.work.recipe.noise.is_some() {
            return Ok(said(verdict));
        }
        // An agreement to exact totals is for one table.
        let data = Data::of("", &self.identity, loaded.rows.rows(), &loaded.rows.digest());
        Ok(said(judge(&federation.facts(), &site.policy, &account, data.table.as_ref())))
    }

    /// What this site says if it cannot reach the intermediary: a run would wait for it.
    fn unreached(&self, federation: &Federation) -> Option<Opinion> {
        let (peer, unreached) = (&federation.roster.intermediary, self.unreached.as_ref()?);
        // One of its own: that of the process may end meanwhile.
        let runtime = Builder::new_current_thread().enable_all().build().ok()?;
        let caller = Caller {
            identity: self.identity.clone(),
            roster: &federation.roster,
            plan: None,
            proxy: Proxy::of_environment().ok()?,
            limit: REACH,
        };
        let found = runtime.block_on(checkup::unreached_by(&caller, peer));
        unreached.store(found.is_some(), Ordering::Relaxed);
        let found = found?;
        let words = format!("{} cannot be reached from here: {}\n  ({})", peer.name, found.says, found.next);
        Some(Opinion { answer: PlanAnswer::Unreached, words })
    }

    /// A roster, as this party is about to use it.
    pub(crate) fn offered<'a>(&'a self, roster: &'a Roster) -> Offered<'a> {
        Offered { file: &self.roster, roster, key: &self.key, identity: &self.identity }
    }
}

/// What the door says to a whole plan, for the coordinator and in words for this party's operator.
fn said(verdict: Verdict) -> Opinion {
    let (answer, words) = match verdict {
        Verdict::Yes(yes) => (PlanAnswer::Would { runs: yes.runs }, format!("Yes: {}", refusal::agreed(&yes))),
        Verdict::No(No::RunBefore) => {
            let words = "This plan has been run. The next run needs a new one, which the coordinator proposes.";
            (PlanAnswer::Ran, words.to_owned())
        }
        Verdict::No(why) => {
            let (answer, Failure { message, advice, .. }) = (PlanAnswer::refusal(&why), why.into());
            (answer, format!("No: this site does not answer this plan: {message}\n  ({advice})"))
        }
        Verdict::NeedsAgreement(needs) => {
            (PlanAnswer::NeedsAgreement, format!("Not yet: {}", refusal::why(&No::Unagreed(needs))))
        }
    };
    Opinion { answer, words }
}

fn no(answer: PlanAnswer, failure: &Failure) -> Opinion {
    Opinion { answer, words: format!("{}\n  ({})", failure.message, failure.advice) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use veilsum_node::{
        documents::write_roster,
        door::{Ledger, Needs, Policy, Unit},
        facts::set_of,
        plan::{Column, OutOfBox, PlanSpec, Seeding},
    };
    use veilsum_proto::{codec, policy::Below};
    use veilsum_testkit::{cast::Cast, program::Folder};

    use super::*;

    /// The catalogue of what a site says no to: each is in words, with its rule and what to do next, on the site's own screen, in the error of
    /// `check`, `agree` and `run`, and, without what is the site's own, on the coordinator's.
    #[test]
    fn every_refusal_says_what_to_do_on_the_screen_of_whoever_can_act() {
        let (person, rows) = (Unit::Person(5), Unit::Row);
        let all = [
            No::Below(Below::Sites { over: 3, least: 5 }),
            No::Below(Below::Questions { asked: 9, most: 8 }),
            No::Threshold { sites: 5, threshold: 3, colluders: 3 },
            No::Method,
            No::Column(2),
            No::NoPersons,
            No::Unit { plan: rows, own: person },
            No::OtherUnit { account: rows, policy: person },
            No::Room { plan: 64, own: 1_000 },
            No::Account { left: 600_000_000, cap: 2_000_000_000 },
            No::AboveCap { policy: 4_000_000_000, cap: 2_000_000_000 },
            No::RunBefore,
            No::Answered,
            No::Price,
            No::Exact,
            No::ExactAny,
            No::AfterExact,
            No::Clusters,
            No::Fuzzifier,
            No::NamesCentres,
            No::Unagreed(vec![Needs::Exact]),
            No::Unagreed(vec![Needs::Set, Needs::Always]),
        ];
        let mut told = BTreeSet::new();
        for no in all {
            let (rule, own) = (no.rule().to_string(), said(Verdict::No(no.clone())));
            let Failure { message, advice, .. } = Failure::from(no.clone());
            assert!(message.contains(&rule) && advice.len() > 20, "{message}: {advice}");
            let ran = no == No::RunBefore;
            assert!(ran || (own.words.contains(&message) && own.words.contains(&advice)), "{}", own.words);
            // Only what a rule is about, in words, and where more is said: never the rule alone, and never the site's own numbers.
            let coordinator = own.answer.to_string();
            let words = coordinator.split(' ').filter(|word| word.len() > 2).count();
            assert!(words >= 3 && !coordinator.contains(&rule), "{no:?}: {coordinator}");
            assert!(!coordinator.chars().any(|c| c.is_ascii_digit()), "{coordinator}");
            told.insert(message);
        }
        assert_eq!(told.len(), 22, "each has a sentence of its own");
        let dear = said(Verdict::No(No::Account { left: 600_000_000, cap: 2_000_000_000 }));
        assert!(dear.words.contains("a plan of rho 0.3 fits"), "{}", dear.words);
        assert!(dear.answer.to_string().contains("its own screen says what would fit"), "{}", dear.answer);
        let spent = said(Verdict::No(No::Account { left: 0, cap: 2_000_000_000 })).words;
        assert!(
            spent.contains("the 0 of 2 in rho that are left") && spent.contains("no plan with noise fits"),
            "{spent}"
        );
    }

    fn columns() -> Vec<Column> {
        ["x", "y"].map(|name| Column { name: name.into(), lower: 0.0, upper: 1.0 }).to_vec()
    }

    fn works() -> Vec<(PlanSpec, u64)> {
        use veilsum_cluster::{Algorithm, privacy::Noise};
        let (m, epsilon, max_rounds) = (2.0, 0.0, 4);
        let mut works = Vec::new();
        for algorithm in [Algorithm::Fcm { m, epsilon, max_rounds }, Algorithm::Kmeans { epsilon, max_rounds }] {
            let plain = PlanSpec::plain(columns(), algorithm, 2, Seeding::Uniform { seed: 1 });
            works.push((plain.clone(), 1 << 20));
            // Also room for as many rows as there are in the largest table, and for one more.
            let spends = [(0.05, 1 << 20), (0.3, 64), (0.3, 40), (0.3, 41), (0.95, 1 << 20), (1.4, 1 << 20)];
            for (rho, max_rows) in spends {
                let mut work = PlanSpec { out_of_box: OutOfBox::Clip, ..plain.clone() };
                work.recipe.noise = Some(Noise::usual(rho, 200).from_anywhere());
                works.push((work, max_rows));
            }
        }
        works
    }

    /// [PRO-2]: what a site says of a plan is the same for all rows with which it is ready, and rows are looked at only for a plan that
    /// is answered.
    #[test]
    fn pro_2_what_is_said_of_a_plan_is_the_same_for_all_rows() {
        let folder = Folder::fresh();
        let ids: Vec<Arc<Identity>> = (1..=5).map(|seed| Arc::new(Identity::from_seed(&[seed; 32]))).collect();
        let of = |work: &PlanSpec, max_rows| {
            let cast = Cast::of(ids.clone(), work, &["one", "two", "three"], |terms| terms.max_rows = max_rows);
            cast.expect("a plan").federation.clone()
        };
        let data = folder.0.join("rows.csv");
        let judge = Judge {
            identity: ids[2].clone(),
            key: folder.0.join("one.key"),
            roster: folder.0.join("roster.toml"),
            is_site: true,
            own: Own { data: Some(data.clone()), ..Own::default() },
            state: folder.0.join("state"),
            unreached: None,
        };
        ledger::begin(&judge.state, &[5; 32]).expect("an account");
        let roster = Roster::clone(&of(&works()[0].0, 64).roster);
        write_roster(&judge.roster, &roster.clone().sign(&ids[0]).expect("signed")).expect("a roster");
        Pinned::change(&judge.key, |pinned| pinned.roster = Some(roster.clone())).expect("agreed");
        let mut ledger = Ledger::open(&judge.state, ids[2].clone(), Data::unread("rows"), None).expect("an account");
        ledger.accept(set_of(&roster)).expect("a note");
        drop(ledger);
        let usual: String = (0..40).map(|i| format!("{},0.5\n", f64::from(i) / 50.0)).collect();
        let tables = ["", "0.1,0.9\n", &usual, "7,-1e300\n0.5,0.5\n", ",\nabc,0.1\n0.3\n", "0,0\n0,0\n"];
        let mut said = BTreeSet::new();
        for (work, max_rows) in works() {
            let federation = of(&work, max_rows);
            let mut answer = |text: String| {
                std::fs::write(&data, text).expect("a table");
                let answer = judge.judge(&federation, &Looking::unseen()).unwrap().answer;
                said.insert(format!("{answer:?}"));
                codec::encode(&answer)
            };
            let answers: BTreeSet<Vec<u8>> = tables.iter().map(|rows| answer(format!("x,y\n{rows}"))).collect();
            assert_eq!(answers.len(), 1, "{}: {answers:?}", work.method_name());
            // A table without a column is none.
            let unready = answer("x\n0.5\n".into());
            let refuses = answers.iter().any(|answer| answer[0] == 1);
            assert_eq!(answers.contains(&unready), refuses, "{}", work.method_name());
            assert!(refuses || unready == codec::encode(&PlanAnswer::NotReady));
        }
        for answer in ["Would", "POL-4", "POL-8", "POL-9", "NotReady"] {
            assert!(said.iter().any(|said| said.contains(answer)), "{answer} in {said:?}");
        }
        // [POL-9]: an agreement to exact totals is for the rows of then, and the coordinator need not wait for a site whose rows are others.
        let exact = Cast::of(ids.clone(), &works()[0].0, &["one", "two", "three"], |terms| terms.min_total_rows = 400);
        let exact = exact.expect("a plan").federation.clone();
        let says = |rows: &str| {
            std::fs::write(&data, format!("x,y\n{rows}")).expect("a table");
            judge.judge(&exact, &Looking::unseen()).unwrap().answer
        };
        says(&usual);
        let rows = documents::load_rows(&exact, &RowsFrom::file(&data)).expect("rows").rows;
        let data = Data::of("rows", &ids[2], rows.rows(), &rows.digest());
        let mut ledger = Ledger::open(&judge.state, ids[2].clone(), data, None).expect("an account");
        ledger.agree(&exact.facts(), &Policy::default()).expect("a note").expect("a plan that may be agreed to");
        drop(ledger);
        assert_eq!(says(&usual), PlanAnswer::Would { runs: None });
        assert_eq!(says(&format!("{usual}0.5,0.5\n")), PlanAnswer::NeedsAgreement);
    }
}
