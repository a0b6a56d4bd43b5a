//! Long transcripts at random, for federations that are too large to visit every state of.

use std::hash::{BuildHasher, Hasher, RandomState};

use veilsum_testkit::{prelude::*, seeds::number};

use super::{
    knowledge::{View, holds_what_is_claimed, sums, sums_two_ways},
    rules::{Local, Message, Set, Setting, Stage, everybody, has, size},
};

/// A coordinator that has a few stories and tells them to anybody, in any order.
struct Liar {
    setting: Setting,
    rng: ChaCha20Rng,
    sites: Vec<Local>,
    stories: Vec<Set>,
}

impl Liar {
    fn new(n: usize, c: usize, t: usize, seed: u64) -> Liar {
        let mut liar = Liar {
            setting: Setting::new(n, c, t),
            rng: ChaCha20Rng::seed_from_u64(seed),
            sites: vec![Local::new(); n - c],
            stories: vec![everybody(n)],
        };
        // Mostly one question to all; sometimes two, over any cohorts.
        if liar.below(4) == 0 {
            let (one, other) = (liar.set(), liar.set());
            liar.setting.questions.extend([one, other]);
        }
        for _ in 0..1 + liar.below(5) {
            let story = liar.set();
            liar.stories.push(story);
        }
        liar
    }

    fn below(&mut self, end: usize) -> usize {
        self.rng.next_u32() as usize % end
    }

    /// At or above the floor, often with all colluders, who sign anything, and often no larger than it must be.
    fn set(&mut self) -> Set {
        let n = self.setting.n;
        let mut set = if self.below(4) > 0 { everybody(n) & !((1 << self.setting.honest()) - 1) } else { 0 };
        let most = self.setting.least + if self.below(2) == 0 { 0 } else { self.below(n - self.setting.least + 1) };
        while size(set) < most {
            set |= 1 << self.below(n);
        }
        set
    }

    fn tell(&mut self, site: usize, message: Message) {
        let certified = match message {
            Message::Certificate(alive) => {
                self.setting.certified(self.sites[site].question, alive, |u: usize| &self.sites[u])
            }
            _ => false,
        };
        if let Some(next) = self.setting.answer(site, &self.sites[site], message, certified) {
            self.sites[site] = next;
        }
    }

    fn one_step(&mut self) {
        let site = self.below(self.sites.len());
        let (k, meet) = (self.below(self.stories.len()), self.below(self.stories.len()));
        let mut story = self.stories[k];
        if self.below(4) == 0 {
            story &= self.stories[meet];
        }
        let message = match (self.sites[site].stage, self.below(4)) {
            (Stage::Waiting, _) => Message::Ask(self.below(self.setting.questions.len()) as u8),
            (Stage::Checked(last), 0 | 1) => Message::Certificate(last),
            (_, 2) => Message::Certificate(story),
            _ => Message::Survivors(story),
        };
        self.tell(site, message);
    }

    /// Whoever can still be made to give something gives it.
    fn finish(&mut self) {
        for site in 0..self.sites.len() {
            self.tell(site, Message::Ask(0));
            match self.sites[site].stage {
                Stage::Checked(last) => self.tell(site, Message::Certificate(last)),
                _ => self.tell(site, Message::Survivors(self.setting.questions[0])),
            }
        }
    }

    fn views(&self) -> Vec<View> {
        self.sites.iter().map(View::of).collect()
    }
}

/// One transcript; the sums that are learnt at its end.
fn transcript(n: usize, c: usize, t: usize, seed: u64, both_ways: bool) -> (Liar, Vec<Set>) {
    let mut liar = Liar::new(n, c, t, seed);
    for _ in 0..20 + liar.below(20 * n) {
        liar.one_step();
    }
    liar.finish();
    let views = liar.views();
    let learnt = if both_ways { sums_two_ways(&liar.setting, &views) } else { sums(&liar.setting, &views) };
    (liar, learnt)
}

/// `VEILSUM_MODEL_TRANSCRIPTS` says how many for each (n, c, t), `VEILSUM_MODEL_SEED` which.
#[test]
fn random_transcripts_of_six_to_ten_sites() {
    let seed = number("VEILSUM_MODEL_SEED").unwrap_or_else(|| RandomState::new().build_hasher().finish());
    let each = number("VEILSUM_MODEL_TRANSCRIPTS").unwrap_or(1_000);
    println!("seed {seed}, {each} transcripts for each n, c and t");
    let (mut all, mut open, mut tight) = (0, 0, 0);
    for n in 6..=10usize {
        for (c, t) in (0..n).flat_map(|c| ((n + c) / 2 + 1..=n).map(move |t| (c, t))) {
            for k in 0..each {
                let (liar, learnt) = transcript(n, c, t, seed.wrapping_add(k), k % 50 == 0);
                let ok = holds_what_is_claimed(&liar.setting, &learnt);
                assert!(ok, "n = {n}, c = {c}, t = {t}, seed {seed} + {k}: {learnt:?}");
                all += 1;
                open += learnt.len();
                tight += learnt.iter().filter(|s| size(**s) == t - c).count();
            }
        }
    }
    println!("{all} transcripts, {open} with an open sum, {tight} of them over t - c sites");
    assert!(open > all as usize / 10 && tight > 0, "the transcripts get somewhere");
}

/// The same coordinator breaks every threshold that is one too low.
#[test]
fn random_transcripts_find_a_threshold_that_is_too_low() {
    for n in 6..=10 {
        for c in 0..=n - 2 {
            let t = (n + c) / 2;
            let bad = |seed: &u64| {
                let (liar, learnt) = transcript(n, c, t, *seed, false);
                !holds_what_is_claimed(&liar.setting, &learnt)
            };
            let first = (0..200_000).find(bad);
            println!("n = {n}, c = {c}, t = {t}: {first:?}");
            let (liar, learnt) = transcript(n, c, t, first.expect("a break"), true);
            assert!(learnt.iter().all(|s| (0..n).filter(|u| has(*s, *u)).all(|u| liar.sites[u].question.is_some())));
        }
    }
}
