//! Whole stories of the model, told to real sites: what they give away is what the model counted, and the bytes open
//! exactly the sums that the model says are learnt.

use veilsum_testkit::prelude::*;

use super::{
    explore::Machine,
    knowledge::{View, holds_what_is_claimed, sums},
    real::{Bench, SLOT, list},
    rules::{Fault, Local, Message, Set, everybody, members, size},
};

/// What a coordinator holds in the end: every byte that honest sites gave it. What its colluders hold comes on top.
#[derive(Default)]
struct Loot {
    /// (giver, missing).
    seeds: BTreeMap<(u16, u16), [u8; 32]>,
    /// Owner: (giver, share).
    shares: BTreeMap<u16, BTreeMap<u16, [u8; 32]>>,
    /// Set: who signed it.
    signed: BTreeMap<Set, BTreeMap<u16, Proof>>,
}

impl Loot {
    fn take(&mut self, from: u16, alive: Set, reply: &Parts) {
        match reply.kind {
            Kind::ConsistencyCheck => {
                self.signed.entry(alive).or_default().insert(from, reply.proof);
                self.seeds.extend(reply.read::<Check>().1.into_iter().map(|(w, seed)| ((from, w), seed)));
            }
            _ => {
                for (owner, share) in list(alive).into_iter().zip(reply.read::<Vec<[u8; 32]>>()) {
                    self.shares.entry(owner).or_default().insert(from, share);
                }
            }
        }
    }

    /// The masked vectors of `set` added up, less every mask whose key is known.
    fn stripped(&self, bench: &Bench, set: Set) -> Vec<u64> {
        let (setting, context) = (&bench.setting, &bench.round.context);
        let colluders: Vec<u16> = (setting.honest() as u16..setting.n as u16).collect();
        let mut sum = vec![0; WORDS];
        for u in list(set) {
            let mut words = bench.vectors[&u].clone();
            let mut shares = self.shares.get(&u).cloned().unwrap_or_default();
            shares.extend(colluders.iter().map(|v| (*v, bench.secrets[usize::from(*v)].share(u, SLOT))));
            if shares.len() >= setting.t {
                let (from, shares): (Vec<u16>, Vec<[u8; 32]>) = shares.into_iter().take(setting.t).unzip();
                let key = api::self_mask_key(&api::recover(&from, &shares), context);
                api::unmask(&mut words, &key, None);
            }
            // Masks within the set cancel whether they are known or not.
            for v in list(everybody(setting.n) & !set) {
                let given = self.seeds.get(&(u, v)).or(self.seeds.get(&(v, u))).copied();
                let own = colluders.contains(&v).then(|| bench.secrets[usize::from(v)].round_seed(u, SLOT, context));
                if let Some(key) = given.or(own) {
                    api::unmask(&mut words, &key, Some((u, v)));
                }
            }
            sum = added(&sum, &words);
        }
        sum
    }

    /// The sets of honest sites whose true sum comes out.
    fn opened(&self, bench: &Bench) -> Vec<Set> {
        let truth = |set: Set| list(set).iter().fold(vec![0; WORDS], |sum, u| added(&sum, &values(*u, b"q")));
        (1..=everybody(bench.setting.honest())).filter(|set| self.stripped(bench, *set) == truth(*set)).collect()
    }
}

/// All sums that follow from some disjoint ones.
fn unions(sums: &[Set]) -> Vec<Set> {
    let mut out: Vec<Set> = (1u32..1 << sums.len())
        .map(|pick| sums.iter().enumerate().filter(|(k, _)| pick >> k & 1 == 1).fold(0, |set, (_, s)| set | s))
        .collect();
    out.sort_unstable();
    out
}

/// Real sites and the model side by side.
struct Play<'a> {
    bench: &'a mut Bench,
    sites: Vec<Local>,
    loot: Loot,
}

impl Play<'_> {
    fn new(bench: &mut Bench) -> Play<'_> {
        let answered = |u: usize| bench.setting.answer(u, &Local::new(), Message::Ask(0), false).expect("it answers");
        let sites = (0..bench.setting.honest()).map(answered).collect();
        (0..bench.setting.honest()).for_each(|u| bench.reset(u));
        Play { bench, sites, loot: Loot::default() }
    }

    fn certified(&self, alive: Set) -> bool {
        self.bench.setting.certified(Some(0), alive, |u| &self.sites[u])
    }

    /// The signatures that really were given for this set, and the colluders'.
    fn proofs(&mut self, alive: Set) -> BTreeMap<u16, Proof> {
        let mut proofs = self.loot.signed.get(&alive).cloned().unwrap_or_default();
        let honest = self.bench.setting.honest();
        for v in list(alive).into_iter().filter(|v| usize::from(*v) >= honest) {
            proofs.insert(v, self.bench.signature(v, alive));
        }
        proofs
    }

    /// One message to both; whether something new was given away.
    fn tell(&mut self, site: usize, message: Message) -> bool {
        let (bytes, alive, certified) = match message {
            Message::Survivors(alive) => (self.bench.survivors(alive), alive, false),
            Message::Certificate(alive) => {
                let proofs = self.proofs(alive);
                (self.bench.certificate(alive, &proofs), alive, self.certified(alive))
            }
            Message::Ask(_) => unreachable!("all have answered"),
        };
        let before = self.sites[site].clone();
        let after = self.bench.setting.answer(site, &before, message, certified);
        let result = self.bench.hub.tell(site as u16, &bytes);
        match (after, result) {
            (None, Err(_)) => {
                assert!(self.bench.hub.left.is_empty());
                false
            }
            (Some(after), Ok(sent)) if after == before => {
                assert_eq!(sent.len(), 1, "it repeats itself");
                false
            }
            (Some(after), Ok(sent)) => {
                self.bench.gives_what_the_model_says(site, &before, &after, &sent);
                self.loot.take(site as u16, alive, &sent[0]);
                self.sites[site] = after;
                true
            }
            (model, Ok(_)) => panic!("site {site} in {before:?} answers {message:?}, the model says {model:?}"),
            (model, Err(e)) => panic!("site {site} in {before:?} refuses {message:?}, the model says {model:?}: {e}"),
        }
    }

    /// The bytes open what the model says, and that is one sum at most; which.
    fn end(&self) -> Vec<Set> {
        let views: Vec<View> = self.sites.iter().map(View::of).collect();
        let learnt = sums(&self.bench.setting, &views);
        assert_eq!(self.loot.opened(self.bench), unions(&learnt), "{:?}", self.sites);
        assert!(holds_what_is_claimed(&self.bench.setting, &learnt));
        learnt
    }
}

/// Plays every story at whose end nobody can be made to give anything more, or one for all its renamings; each in an
/// order of its own. `every`: only one of so many.
fn replay(n: usize, c: usize, t: usize, rename: bool, every: usize) {
    let seed = 4_000 + (n * 100 + c * 10 + t) as u64;
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut bench = Bench::new(n, c, t);
    let machine = Machine::new(bench.setting.clone());
    let mut ends = Vec::new();
    machine.explore(rename, |packed, _| {
        if machine.moves(packed).next().is_none() {
            ends.push(packed);
        }
    });
    let (mut played, mut opened) = (0, 0);
    for end in ends.iter().step_by(every) {
        let ways = (0..bench.setting.honest()).map(|u| bench.way_to(&machine.node(*end, u).local));
        let mut left: Vec<(usize, Vec<Message>)> = ways.enumerate().collect();
        let mut play = Play::new(&mut bench);
        while !left.is_empty() {
            let k = rng.next_u32() as usize % left.len();
            let (site, way) = &mut left[k];
            // A certificate has to wait until enough have signed.
            match way.first().copied() {
                None => drop(left.remove(k)),
                Some(Message::Certificate(alive)) if !play.certified(alive) => {
                    assert!(!play.tell(*site, Message::Certificate(alive)));
                }
                Some(message) => {
                    assert!(play.tell(*site, message), "it was a move of the model");
                    way.remove(0);
                }
            }
        }
        for (u, site) in play.sites.iter().enumerate() {
            assert_eq!(*site, machine.node(*end, u).local, "the story ended where the model's did");
        }
        opened += play.end().len();
        played += 1;
    }
    println!("n = {n}, c = {c}, t = {t}, seed {seed}: {played} of {} stories played, {opened} open a sum", ends.len());
    assert!(opened > 0);
}

/// [UNM-2], [SUR-4], [THR-2]: an aggregator that tells each site another story of who is missing opens one sum at most.
#[test]
fn unm_2_every_story_of_three_and_four_sites() {
    for (n, c, t) in [(3, 0, 2), (3, 0, 3), (3, 1, 3), (4, 0, 3), (4, 1, 3), (4, 0, 4), (4, 1, 4), (4, 2, 4)] {
        replay(n, c, t, false, 1);
    }
}

#[test]
fn every_story_of_five_sites_up_to_renaming() {
    for (n, c, t) in [(5, 0, 4), (5, 1, 4), (5, 2, 4), (5, 0, 5), (5, 3, 5)] {
        replay(n, c, t, true, 1);
    }
}

/// Every story of five sites under every naming, and every fiftieth of six of whom two may be missing.
#[test]
#[ignore = "it takes minutes, and smaller ones run always; protocol/README.md has the command"]
fn every_story_of_five_sites_and_many_of_six() {
    for (n, c, t) in [(5, 0, 4), (5, 1, 4), (5, 2, 4)] {
        replay(n, c, t, false, 1);
    }
    replay(6, 1, 4, true, 50);
}

/// Messages at random, sensible or not, to six and seven sites: they answer and refuse as the model does.
#[test]
fn random_messages_to_larger_federations() {
    let seed = 77;
    println!("seed {seed}");
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let (mut told, mut moved, mut opened) = (0, 0, 0);
    for (n, c, t) in [(6, 1, 4), (7, 2, 5)] {
        let mut bench = Bench::new(n, c, t);
        for _ in 0..10 {
            let mut play = Play::new(&mut bench);
            let all = everybody(n);
            let mut stories = vec![all];
            for _ in 0..4 {
                let mut set = stories[rng.next_u32() as usize % stories.len()];
                while size(set) > t && rng.next_u32() % 3 > 0 {
                    let out = rng.next_u32() as usize % size(set);
                    set &= !(1 << members(set).nth(out).expect("a member"));
                }
                stories.push(set);
            }
            for _ in 0..20 * n {
                let site = rng.next_u32() as usize % (n - c);
                // Nobody is missing in one story; where it is told often, the others are hardly begun.
                let first = usize::from(rng.next_u32() % 8 > 0);
                let story = stories[first + rng.next_u32() as usize % (stories.len() - first)];
                let message =
                    if rng.next_u32() % 2 == 0 { Message::Survivors(story) } else { Message::Certificate(story) };
                told += 1;
                // What a site gave away before a crash, its journal knows.
                if rng.next_u32() % 12 == 0 {
                    play.bench.hub.restart(site as u16).unwrap();
                }
                moved += usize::from(play.tell(site, message));
            }
            opened += play.end().len();
        }
    }
    println!("{told} messages, {moved} of them answered with something new, {opened} of 20 stories opened a sum");
    assert!(moved > 100 && opened > 3);
}

/// That the bytes open one sum at most would say little if they could not open two: what four sites give away in one
/// merged reply each opens both halves.
#[test]
fn the_bytes_of_a_broken_rule_open_two_sums() {
    let mut bench = Bench::new(4, 0, 3);
    bench.setting.fault = Fault::MergedReply;
    let machine = Machine::new(bench.setting.clone());
    let attack = machine.find(|sums| sums.len() == 2).expect("the attack");
    let mut loot = Loot::default();
    for (u, site) in attack.end().enumerate() {
        let secrets = &bench.secrets[u];
        for w in list(site.seeds) {
            loot.seeds.insert((u as u16, w), secrets.round_seed(w, SLOT, &bench.round.context));
        }
        for owner in list(site.shares) {
            loot.shares.entry(owner).or_default().insert(u as u16, secrets.share(owner, SLOT));
        }
    }
    assert_eq!(loot.opened(&bench), unions(&attack.learnt));
    assert_eq!(attack.learnt.len(), 2);
}
