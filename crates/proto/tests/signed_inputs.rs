//! What is opened is what was signed before any share left, and nobody who keeps to the protocol is blamed for what others
//! signed ([SUR-5], [CON-2], [UNM-3], [INP-4], [OPN-4] to [OPN-6]).

use curve25519_dalek::{ristretto::CompressedRistretto, scalar::Scalar};
use veilsum_proto::{
    aggregator::Event,
    vectors_api::{commit, generator, recover},
};
use veilsum_testkit::{prelude::*, seeds};

use crate::script::wrong_shares;

/// The message of a masked input with these words, rightly committed to.
fn input(words: &[u64]) -> Vec<u8> {
    words.iter().fold(commit(words).to_vec(), |rest, w| [&rest[..], &w.to_le_bytes()].concat())
}

/// The input that `rest` and `proof` are of, as an opening shows it.
fn opened(rest: &[u8], proof: &Proof) -> OpenedInput {
    let digest = suite::hash("masked", &[&rest[32..]]);
    OpenedInput { commitment: rest[..32].try_into().unwrap(), digest, signature: proof.signature }
}

/// A round in which nobody is missing, up to its shares, as a coordinator holds it that shows whom it likes what it likes.
struct Held {
    hub: Hub,
    deck: Deck,
    context: Hash,
    all: Vec<u16>,
    inputs: BTreeMap<u16, Parts>,
    unmasked: BTreeMap<u16, Parts>,
}

impl Held {
    fn asked(n: usize, seed: u64) -> Held {
        let mut hub = Hub::of(Kit::new(n, |_| {}), seed);
        let all = everybody(n);
        let deck = hub.deck(0, 2, &all);
        let ask = hub.question(&deck, 0, &all, Hash::default(), b"one");
        let (context, frame) = hub.ask_frame(&deck, &ask);
        let inputs = all.iter().map(|s| (*s, hub.reply(*s, &frame).unwrap())).collect();
        Held { hub, deck, context, all, inputs, unmasked: BTreeMap::new() }
    }

    fn survivors(&self, alive: &[u16]) -> Vec<u8> {
        let inputs = alive.iter().map(|s| self.inputs[s].proof).collect();
        self.hub.frame(Kind::Survivors, &self.context, &Survivors { alive: alive.to_vec(), inputs })
    }

    fn shares_of(&mut self, sites: impl IntoIterator<Item = u16>) {
        let frame = self.survivors(&self.all);
        for s in sites {
            let reply = self.hub.reply(s, &frame).unwrap();
            assert_eq!(reply.kind, Kind::Unmask);
            self.unmasked.insert(s, reply);
        }
    }

    /// What these inputs open to, with whoever agreed to them.
    fn opening(&self) -> Opening {
        let t = self.deck.threshold;
        let shares: BTreeMap<u16, Vec<[u8; 32]>> = self.unmasked.iter().map(|(s, p)| (*s, p.read())).collect();
        let holders: Vec<u16> = shares.keys().copied().take(t).collect();
        let seed = |k: usize| recover(&holders, &holders.iter().map(|h| shares[h][k]).collect::<Vec<_>>());
        let (mut low, mut high) = (vec![0u64; WORDS], vec![0u16; WORDS]);
        for p in self.inputs.values() {
            for (k, word) in p.words().iter().enumerate() {
                let (sum, over) = low[k].overflowing_add(*word);
                (low[k], high[k]) = (sum, high[k] + u16::from(over));
            }
        }
        Opening {
            alive: self.all.clone(),
            inputs: self.inputs.values().map(|p| opened(&p.rest, &p.proof)).collect(),
            seeds: (0..self.all.len()).map(seed).collect(),
            others: vec![],
            checks: vec![],
            agreed: self.unmasked.iter().take(t).map(|(s, p)| (*s, p.proof)).collect(),
            low,
            high,
        }
    }

    /// Another input of `site`, over its true signature, that turns the total into `target`.
    fn choose(&mut self, site: u16, target: &[u64]) {
        let truth = sum(&self.all, b"one");
        let words = self.inputs[&site].words();
        let words: Vec<u64> = words
            .iter()
            .zip(target.iter().zip(&truth))
            .map(|(w, (to, is))| w.wrapping_add(to.wrapping_sub(*is)))
            .collect();
        let frame = raw(self.hub.identity(site), &self.hub.session, Kind::MaskedInput, &self.context, &input(&words));
        self.inputs.insert(site, parts(&frame));
    }

    /// A colluder agrees to what another has agreed to, as often as it is asked.
    fn agrees(&self, colluder: u16, to: &Parts) -> Parts {
        parts(&raw(self.hub.identity(colluder), &self.hub.session, Kind::Unmask, &to.context, &to.rest))
    }

    /// Under which rule each of these sites refuses this opening.
    fn refused(&mut self, opening: &Opening, sites: &[u16]) -> Vec<Option<Rule>> {
        let frame = self.hub.frame(Kind::Opening, &self.context, opening);
        sites.iter().map(|s| self.hub.tell(*s, &frame).err().map(|e| e.rule().unwrap())).collect()
    }
}

/// Break C: with 40 sites a sample of 32 overlooked an unsigned input at some of them.
#[test]
fn no_site_overlooks_an_input_that_nobody_signed() {
    let mut held = Held::asked(40, 1);
    held.shares_of(held.all.clone());
    let (honest, all) = (held.opening(), held.all.clone());
    held.choose(0, &[42; WORDS]);
    let mut lie = held.opening();
    lie.inputs[0].signature = Signature::from_bytes(&[7; 64]);
    assert!(held.refused(&lie, &all).iter().all(|rule| *rule == Some(Rule::Opn5)));
    assert!(held.refused(&honest, &all).iter().all(Option::is_none), "and the true one is taken");
}

/// Break D: all shares are out, then a colluder signs the input that makes the total what is wanted.
#[test]
fn an_input_signed_after_the_shares_is_opened_to_nobody() {
    let mut held = Held::asked(6, 3);
    held.shares_of(held.all.clone());
    held.choose(5, &[111; WORDS]);
    let lie = held.opening();
    for restarted in [false, true] {
        if restarted {
            (0..5).for_each(|s| held.hub.restart(s).unwrap());
        }
        assert_eq!(held.refused(&lie, &[0, 1, 2, 3, 4]), [Some(Rule::Opn5); 5], "restarted: {restarted}");
    }
}

/// Shares of t are out for one list of inputs, so that the total is known. The others are shown a list that was made after
/// it. They cannot have known the first; that too few agreed to theirs tells them.
#[test]
fn a_list_that_was_made_after_the_total_is_opened_to_nobody() {
    let mut held = Held::asked(7, 4);
    assert_eq!(held.deck.threshold, 5);
    held.shares_of([0, 1, 2, 3, 6]);
    assert_eq!(held.opening().seeds.len(), 7, "t shares are out: everything can be unmasked");
    let known = std::mem::take(&mut held.unmasked);
    held.choose(6, &[111; WORDS]);
    held.shares_of([4, 5]);
    let own = held.agrees(6, &held.unmasked[&4]);
    held.unmasked.insert(6, own);
    let agreed: Vec<(u16, Proof)> = held.unmasked.iter().map(|(s, p)| (*s, p.proof)).collect();
    held.unmasked = known.clone();
    let mut lie = held.opening();
    lie.agreed.clone_from(&agreed);
    assert_eq!(held.refused(&lie, &[4, 5]), [Some(Rule::Opn2); 2], "three agreed where five must");
    lie.agreed.extend(known.iter().filter(|(s, _)| **s < 2).map(|(s, p)| (*s, p.proof)));
    lie.agreed.sort_by_key(|(s, _)| *s);
    assert_eq!(held.refused(&lie, &[4, 5]), [Some(Rule::Opn6); 2], "two of them to something else");
    assert_eq!(held.refused(&lie, &[0, 1, 2, 3]), [Some(Rule::Opn5); 4]);
}

/// What is left to a coordinator with colluders where nobody is missing (section 9.8): lists of inputs that were made before the
/// total is known, each shown to honest sites of its own, of which one is completed after. No list more than the text says
/// can be, and every honest site that was shown another one refuses.
#[test]
fn of_lists_that_were_shown_before_the_total_one_may_be_completed_after_it() {
    for chosen in 0..3u16 {
        let mut held = Held::asked(7, 5);
        let (t, true_inputs) = (held.deck.threshold, held.inputs.clone());
        assert_eq!((t, lists(7, t, 2)), (5, 3));
        held.shares_of([5, 6]);
        let shown: Vec<_> = (0..3u16)
            .map(|site| {
                held.inputs.clone_from(&true_inputs);
                held.choose(6, &[u64::from(site) * 111; WORDS]);
                held.shares_of([site]);
                held.inputs.clone()
            })
            .collect();
        assert_eq!(held.unmasked.len(), t, "the total is known");
        let known = held.unmasked.clone();
        held.inputs.clone_from(&shown[usize::from(chosen)]);
        held.shares_of([3, 4]);
        let mut agreed: BTreeMap<u16, Proof> = [chosen, 3, 4].map(|s| (s, held.unmasked[&s].proof)).into();
        agreed.extend([5, 6].map(|s| (s, held.agrees(s, &held.unmasked[&3]).proof)));
        held.unmasked = known;
        let opening = Opening { agreed: agreed.into_iter().collect(), ..held.opening() };
        let others: Vec<u16> = (0..3).filter(|s| *s != chosen).collect();
        assert_eq!(held.refused(&opening, &others), [Some(Rule::Opn5); 2]);
        assert_eq!(held.refused(&opening, &[chosen, 3, 4]), [None; 3]);
    }
}

/// Of how many lists one may be completed after the total is known, as section 9.8 has it: one where 3t > 2m + c.
fn lists(m: usize, t: usize, c: usize) -> usize {
    if c == 0 { 1 } else { ((t - c) / (2 * t - m - c)).max(1) }
}

/// The same by counting: `shown` honest sites are shown lists before the total, which takes t - c of them; a list is completed
/// by its own, those that were shown none, and the colluders.
#[test]
fn so_many_lists_can_be_completed_and_no_more() {
    for (m, t, c) in (3..40usize).flat_map(|m| (2..=m).flat_map(move |t| (1..m).map(move |c| (m, t, c)))) {
        if 2 * t <= m + c || t < c + 2 || m - c < t - c {
            continue;
        }
        let most = (t - c..=m - c).map(|shown| shown / (t - c).saturating_sub(m - c - shown).max(1)).max();
        assert_eq!(most.unwrap().max(1), lists(m, t, c), "{m} {t} {c}");
        assert_eq!(lists(m, t, c) == 1, 3 * t > 2 * m + c, "{m} {t} {c}");
    }
}

/// Survivors that are named again come with the inputs they came with, before and after a restart, for the same set and a
/// smaller one.
#[test]
fn survivors_are_not_named_again_with_another_input() {
    for (alive, rule) in [(everybody(6), Rule::Sur4), (everybody(5), Rule::Sur5)] {
        let mut held = Held::asked(6, 5);
        let honest = held.survivors(&alive);
        let first = held.hub.reply(0, &honest).unwrap();
        held.choose(4, &[1; WORDS]);
        let other = held.survivors(&alive);
        for _ in 0..2 {
            assert_eq!(held.hub.tell(0, &other).unwrap_err().rule().unwrap(), rule);
            assert_eq!(held.hub.reply(0, &honest).unwrap(), first, "the same again is answered the same");
            held.hub.restart(0).unwrap();
        }
    }
}

/// A site that answered but was never shown survivors knows no inputs: it verifies all signatures, and the opening shows it
/// that t sites agreed.
#[test]
fn a_site_that_was_shown_no_survivors_verifies_the_opening() {
    let mut held = Held::asked(6, 6);
    held.shares_of([0, 1, 2, 3, 4]);
    let honest = held.opening();
    let mut lie = honest.clone();
    lie.inputs[2].signature = Signature::from_bytes(&[7; 64]);
    assert_eq!(held.refused(&lie, &[5]), [Some(Rule::Opn5)]);
    held.choose(4, &[1; WORDS]);
    let lie = held.opening();
    assert_eq!(held.refused(&lie, &[5]), [Some(Rule::Opn6)], "signed by its site, agreed to by nobody");
    assert_eq!(held.refused(&honest, &[5, 0]), [None, None]);
}

/// [OPN-2]: a site that has not seen who survived is told that hardly anybody did. A third party takes no total over fewer sites than a
/// deck that is shown has a threshold for, or than the plan demands.
#[test]
fn opn_2_a_total_over_fewer_sites_than_the_floor_is_refused() {
    let mut held = Held::asked(6, 12);
    held.shares_of([0, 1, 2, 3, 4]);
    let honest = held.opening();
    let over = |alive: usize, shown: usize| {
        let check = OpenedCheck { seeds: vec![[0; 32]; 6 - alive], signature: Signature::from_bytes(&[0; 64]) };
        let mut few = honest.clone();
        (few.others, few.agreed, few.high) = (vec![Hash::default(); shown], vec![], vec![0; WORDS]);
        few.alive.truncate(alive);
        few.inputs.truncate(alive);
        few.seeds.truncate(alive);
        few.checks = vec![check; alive];
        few
    };
    let ask = held.hub.question(&held.deck, 0, &held.all, Hash::default(), b"one");
    let (_, ask) = held.hub.ask_frame(&held.deck, &ask);
    for (alive, shown) in [(1, 0), (1, 5), (2, 0), (2, 4), (3, 3), (4, 2)] {
        let frame = held.hub.frame(Kind::Opening, &held.context, &over(alive, shown));
        let documents = Documents { roster: &held.hub.kit.roster, terms: &held.hub.kit.terms };
        let blame = documents.opened(&held.deck.hash, &ask, &frame).unwrap().expect_err("no total");
        assert_eq!(blame.rule, Rule::Opn2);
        assert!(blame.what.contains("over fewer sites than the plan allows"), "{alive} of {shown} more: {blame:?}");
        let told = held.hub.tell(5, &frame).expect_err("nor does a site").to_string();
        assert!(told.contains("over fewer sites than the floor") && told.contains("OPN-2"), "{told}");
    }
}

fn value(site: u16, word: usize) -> u64 {
    (1_000 * u64::from(site) + word as u64).wrapping_mul(77)
}

/// A commitment and so many times the first generator.
pub(crate) fn shifted(rest: &[u8], times: i64) -> Vec<u8> {
    let by = Scalar::from(times.unsigned_abs()) * CompressedRistretto(generator(0)).decompress().unwrap();
    let point = CompressedRistretto(rest[..32].try_into().unwrap()).decompress().unwrap();
    let point = if times < 0 { point - by } else { point + by };
    [&point.compress().to_bytes()[..], &rest[32..]].concat()
}

/// What site 0 was shown of a run.
#[derive(Default)]
struct Seen {
    directories: Vec<Hash>,
    asks: Vec<Vec<u8>>,
    openings: Vec<Vec<u8>>,
}

/// What the two colluders do to one frame of theirs.
fn misdeed(rng: &mut ChaCha20Rng, wire: &Parts, before: &[Parts]) -> Option<(Hash, Vec<u8>)> {
    let (pick, rest) = (rng.next_u32(), &wire.rest);
    let replayed = || before.iter().rev().find(|p| p.kind == wire.kind);
    let instead = |rest: Vec<u8>| Some((wire.context, rest));
    match (wire.kind, pick % 6) {
        (Kind::MaskedInput, 0) => instead(shifted(rest, 1)),
        (Kind::MaskedInput, 1) => instead(shifted(rest, -1)),
        (Kind::MaskedInput, 2) => instead(shifted(rest, i64::from(pick >> 8) - 8_000_000)),
        (Kind::MaskedInput, 3) => {
            let mut words = wire.words();
            words[0] = words[0].wrapping_add(u64::from(pick));
            instead(input(&words))
        }
        (Kind::MaskedInput, 4) => instead(replayed()?.rest.clone()),
        (Kind::MaskedInput, _) => instead([&[0xff; 32][..], &rest[32..]].concat()),
        (Kind::ConsistencyCheck, 1 | 4) | (Kind::Unmask, 2 | 5) => replayed().map(|p| (p.context, p.rest.clone())),
        (Kind::ConsistencyCheck, way) => {
            let (round, mut seeds): Check = wire.read();
            match way % 3 {
                0 => seeds.iter_mut().for_each(|s| s.1[0] ^= 1),
                _ => drop(seeds.pop()),
            }
            instead(codec::encode(&(round, seeds)))
        }
        (Kind::Unmask, 0 | 3) => instead(wrong_shares(wire)),
        (Kind::Unmask, _) => {
            let mut shares = wire.shares();
            shares.rotate_left(1);
            instead(codec::encode(&shares))
        }
        _ => None,
    }
}

/// Break E, at random: two of seven sites sign what they like, vanish, come back, replay and contradict themselves at every
/// step of a round, the network delays and doubles, processes of sites and of the coordinator die. No honest site refuses an
/// honest coordinator or is lost, every opening clears it before a third party, and a total over honest sites is theirs.
#[test]
fn colluders_never_get_an_honest_party_blamed() {
    let (mut totals, mut caught, mut losses) = (0, 0, 0);
    let seeds = seeds::play(60, "-p veilsum-proto --test protocol colluders_never", |seed| {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut w = World::new(Kit::new(7, |t| t.slots = 4), seed);
        w.answer =
            Box::new(|site, asked| (0..asked.words).map(|i| value(site, i) + u64::from(asked.query[0])).collect());
        // Each site's frames take their time, in order, as on a stream.
        w.slow.iter_mut().for_each(|delay| *delay = u64::from(rng.next_u32() % 40));
        w.network.duplicates = u64::from(rng.next_u32() % 200);
        if rng.next_u32().is_multiple_of(3) {
            w.hub_crashes = (0..2).map(|_| 20 + rng.next_u32() as usize % 120).collect();
        }
        let session = w.session();
        let keys = [w.kit.identities[2 + 5].clone(), w.kit.identities[2 + 6].clone()];
        let (rate, vanish) = (1 + rng.next_u32() % 4, rng.next_u32() % 40);
        let seen: Rc<RefCell<Seen>> = Rc::default();
        let (log, mut before) = (seen.clone(), Vec::new());
        w.hook = Box::new(move |wire| {
            match (wire.kind, wire.site) {
                (Kind::DirectoryCertificate, 0) => log.borrow_mut().directories.push(parts(wire.bytes).context),
                (Kind::Ask, 0) => log.borrow_mut().asks.push(wire.bytes.to_vec()),
                (Kind::Opening, 0) => log.borrow_mut().openings.push(wire.bytes.to_vec()),
                _ => {}
            }
            let own = wire.from_site && wire.site >= 5;
            if !own || !matches!(wire.kind, Kind::MaskedInput | Kind::ConsistencyCheck | Kind::Unmask) {
                return Verdict::Pass;
            }
            let frame = parts(wire.bytes);
            before.push(frame.clone());
            match rng.next_u32() % 100 {
                r if r < vanish / 4 => return Verdict::Vanish,
                r if r < vanish / 2 => return Verdict::Drop,
                r if r < vanish => return Verdict::Crash,
                _ => {}
            }
            if !rng.next_u32().is_multiple_of(rate) {
                return Verdict::Pass;
            }
            match misdeed(&mut rng, &frame, &before) {
                Some((context, rest)) => {
                    let key = &keys[usize::from(wire.site) - 5];
                    Verdict::Replace(raw(key, &session, wire.kind, &context, &rest))
                }
                None => Verdict::Pass,
            }
        });
        for round in 0..4u8 {
            let Ok((values, cohort, _)) = w.ask(&[round], 5) else { break };
            totals += 1;
            assert!((0..5).all(|s| cohort.contains(&s)), "seed {seed}: {cohort:?}");
            if cohort.len() == 5 {
                let of = |i| (0..5).fold(0u64, |a, s| a + value(s, i) + u64::from(round));
                assert!(values.iter().enumerate().all(|(i, v)| *v == of(i)), "seed {seed}: {values:?}");
            }
        }
        w.close();
        for e in &w.events {
            if let Event::Lost { site, why } = e {
                assert!(*site >= 5, "seed {seed}: an honest site is lost: {why}");
                losses += 1;
                caught += u32::from(matches!(why, Loss::Misbehaved(_)));
            }
        }
        // A frame that was delayed belongs to no round any more; this happens to honest parties and blames nobody.
        let blamed = w.site_errors.iter().find(|(site, e)| *site < 5 && e.rule().is_none_or(|r| r != Rule::Frm7));
        assert!(blamed.is_none(), "seed {seed}: {blamed:?}");
        let seen = seen.borrow();
        let documents = Documents { roster: &w.kit.roster, terms: &w.kit.terms };
        for opening in &seen.openings {
            let ask = seen.asks.iter().find(|ask| parts(ask).context == parts(opening).context).unwrap();
            let mut judged = seen.directories.iter().filter_map(|deck| documents.opened(deck, ask, opening).ok());
            match judged.next() {
                Some(Ok(_)) => {}
                other => panic!("seed {seed}: the coordinator is blamed: {other:?}"),
            }
        }
    });
    println!("{totals} totals, {caught} findings, {losses} colluders lost");
    assert!(seeds < 60 || (totals > 60 && caught > 10 && losses > 20), "{totals} {caught} {losses}: too tame a test");
}
