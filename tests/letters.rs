//! A whole federation whose roles have no I/O: letters, carried by the test, in any order, twice, or not at all.

use std::{collections::BTreeMap, time::Duration};

use veilsum_cluster::{method::Seeding, random::Stream};
use veilsum_node::{
    by_hand::ByHand,
    carrier::{Letter, PeerKey, letters},
    error::{Code, Failure},
    role::{
        client::{self, ClientReport},
        intermediary::{self, Counted},
        server::{self, RunResult},
    },
};
use veilsum_proto::{aggregator::Timing, plan::Terms};
use veilsum_testkit::{cast, in_process};

const TIMING: Timing = Timing { join: 20_000, phase: 2_000, grace: 100, resend: 1_000 };

struct Cast {
    coordinator: ByHand<RunResult>,
    intermediary: ByHand<Counted>,
    sites: Vec<ByHand<ClientReport>>,
    keys: Vec<PeerKey>,
    /// Letters on their way.
    post: Vec<Letter>,
}

impl Cast {
    /// Three sites, everybody begun.
    fn begin() -> Cast {
        let sites = in_process::made_up(&[60, 80, 70], 0.2, 5);
        let work = in_process::fcm(in_process::unit_square(), 3, 1e-4, 15, Seeding::Uniform { seed: 4 });
        let names: Vec<&str> = sites.iter().map(|(name, _)| name.as_str()).collect();
        let most = |terms: &mut Terms| terms.max_rows = 128;
        let cast = cast::Cast::new(&work, &names, most).expect("a federation");
        let keys: Vec<PeerKey> = cast.identities.iter().map(|identity| identity.public().0).collect();
        // Whoever has no I/O dials nobody: letters go by key.
        let nowhere = cast::ANY;
        let mut post = Vec::new();
        let mut coordinator = ByHand::new(keys[0]).expect("a role");
        let mut config = cast.server(TIMING, nowhere.into());
        config.party.carrier = coordinator.carrier();
        post.extend(coordinator.begin(server::run(config)));
        let mut intermediary = ByHand::new(keys[1]).expect("a role");
        let mut config = cast.counter(nowhere, TIMING, nowhere.into());
        config.party.carrier = intermediary.carrier();
        post.extend(intermediary.begin(intermediary::run(config)));
        let begun = sites.iter().enumerate().map(|(i, (_, rows))| {
            let mut role = ByHand::new(keys[i + 2]).expect("a role");
            let mut config = cast.site(i, rows, nowhere, nowhere);
            config.party.carrier = role.carrier();
            post.extend(role.begin(client::run(config)));
            role
        });
        let sites = begun.collect();
        Cast { coordinator, intermediary, sites, keys, post }
    }

    fn hand_over(&mut self, letter: &Letter) -> Result<(), Failure> {
        let at = self.keys.iter().position(|key| *key == letter.to).expect("a member");
        let letters = match at {
            0 => self.coordinator.handle(&letter.bytes),
            1 => self.intermediary.handle(&letter.bytes),
            _ => self.sites[at - 2].handle(&letter.bytes),
        }?;
        self.post.extend(letters);
        Ok(())
    }

    fn wait(&mut self) {
        let moment = Duration::from_millis(5);
        self.post.extend(self.coordinator.wait(moment));
        self.post.extend(self.intermediary.wait(moment));
        self.sites.iter_mut().for_each(|site| self.post.extend(site.wait(moment)));
    }

    fn over(&self) -> bool {
        self.coordinator.is_over() && self.intermediary.is_over() && self.sites.iter().all(ByHand::is_over)
    }

    /// Carries letters until everybody is done: each that `fate` lets pass, as many times as it says.
    fn carry(&mut self, mut fate: impl FnMut(&Letter, &mut Vec<Letter>) -> usize) {
        let begun = std::time::Instant::now();
        while !self.over() {
            assert!(begun.elapsed() < Duration::from_secs(120), "they never end");
            if self.post.is_empty() {
                self.wait();
                continue;
            }
            let letter = self.post.remove(0);
            for _ in 0..fate(&letter, &mut self.post) {
                self.hand_over(&letter).expect("a letter");
            }
        }
    }
}

#[test]
fn a_federation_by_letters_in_any_order_and_twice() {
    let seed = 7;
    println!("seed {seed}");
    let mut random = Stream::new(seed, b"veilsum test of letters.");
    let mut cast = Cast::begin();
    let mut kinds = BTreeMap::new();
    cast.carry(|letter, post| {
        *kinds.entry(letter.to).or_insert(0) += 1;
        // A letter may come later than others, and one in four comes twice.
        if random.unit() < 0.3 && !post.is_empty() {
            post.push(letter.clone());
            return 0;
        }
        1 + usize::from(random.unit() < 0.25)
    });
    assert_eq!(kinds.len(), 5, "everybody had letters");
    let result = cast.coordinator.outcome().expect("it is over").expect("a result");
    assert_eq!((result.n_total, result.cohort.len()), (Some(210), 3));
    assert_eq!(cast.intermediary.outcome().expect("it is over").expect("a count").total, 210);
    for site in &mut cast.sites {
        let report = site.outcome().expect("it is over").expect("a report");
        assert_eq!(report.result.expect("its own copy").centres, result.centres);
        assert!(site.outcome().is_none(), "an outcome is told once");
    }
}

#[test]
fn a_site_whose_letters_are_lost_ends_the_run_by_time() {
    let mut cast = Cast::begin();
    let mute = cast.keys[3];
    let mut answered = 0;
    cast.carry(|letter, _| {
        let (_, from) = letters::addressed(&letter.bytes).expect("a letter");
        answered += usize::from(from == mute);
        usize::from(from != mute || answered < 8)
    });
    let failure = cast.coordinator.outcome().expect("it is over").expect_err("too few sites are left");
    assert!([Code::Quorum, Code::Network].contains(&failure.code), "{failure}");
}

#[test]
fn what_is_no_letter_or_for_another_is_refused_and_what_was_changed_reaches_nobody() {
    let mut cast = Cast::begin();
    let letter = cast.post.iter().find(|letter| letter.to == cast.keys[0]).expect("a first letter").clone();
    assert_eq!(cast.coordinator.handle(b"").expect_err("nothing").code, Code::Input);
    assert_eq!(cast.intermediary.handle(&letter.bytes).expect_err("another's").code, Code::Input);
    // Every byte of a first letter turned: none of them makes a party fail, and none passes for the letter itself.
    for at in (0..letter.bytes.len()).step_by(7) {
        let mut changed = letter.bytes.clone();
        changed[at] ^= 0x20;
        if changed[4..36] == letter.bytes[4..36] && changed[..4] == letter.bytes[..4] {
            let _ = cast.coordinator.handle(&changed);
            assert!(!cast.coordinator.is_over());
        }
    }
}
