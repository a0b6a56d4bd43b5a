//! What coordinator and intermediary really received: public keys, sealed boxes, masked words, signatures, shares of
//! one round's masks, and no plain statistic, no row and no row count of any site.

use std::collections::{BTreeMap, HashMap};

use veilsum_cluster::{Prepared, Rows, Step, Totals, method::Seeding};
use veilsum_node::{
    loopback::{LoopbackRun, View},
    plan::PlanSpec,
    question::{self, Question},
};
use veilsum_proto::{
    codec,
    kem::{CIPHERTEXT_BYTES, KEY_BYTES},
    message::{COMMITMENT, HEADER, Kind, parse_header},
    roster::PartyId,
};
use veilsum_testkit::{
    in_process::{fcm, federate, made_up, prepared, unit_square},
    wire::{Parts, parts},
};

/// Sizes that no length or number of the protocol has.
const SIZES: [usize; 5] = [331, 409, 577, 263, 491];
const ROUNDS: u32 = 6;

fn work() -> PlanSpec {
    fcm(unit_square(), 3, 0.0, ROUNDS, Seeding::Uniform { seed: 3 })
}

fn frames(view: &View) -> Vec<(PartyId, Parts)> {
    let take = |(from, bytes): &(PartyId, Vec<u8>)| {
        let (kind, length) = parse_header(bytes[..HEADER].try_into().unwrap()).expect("a header");
        assert_eq!(HEADER + length, bytes.len(), "{kind:?}");
        (*from, parts(bytes))
    };
    view.lock().unwrap().iter().map(take).collect()
}

/// What site `s` had to hide in question q: its fixed-point words, and its plain sums.
struct Secret {
    words: Vec<Vec<Vec<u64>>>,
    sums: Vec<f64>,
}

/// Plays the run again from the rows, word for word as the coordinator saw it.
fn secrets(work: &PlanSpec, sites: &[Prepared]) -> Secret {
    let (domain, max_rows) = (work.domain().unwrap(), terms_rows());
    let mut method = work.run(sites.len()).unwrap();
    let mut step = method.next(None).unwrap();
    let mut secret = Secret { words: Vec::new(), sums: Vec::new() };
    while let Step::Ask(query) = step {
        for s in sites {
            secret.sums.extend(veilsum_cluster::answer(&query, s).unwrap().values);
        }
        let question = Question::Cluster(query);
        let form = question::SumBounds::new(sites.len(), max_rows);
        let layout = question.layout(&domain, &form).unwrap();
        let words: Vec<Vec<u64>> = sites
            .iter()
            .map(|s| question::contribute(&question, s, &question::Terms::everybody(form)).unwrap())
            .collect();
        let mut total = vec![0u64; layout.words()];
        words.iter().for_each(|w| total.iter_mut().zip(w).for_each(|(t, x)| *t = t.wrapping_add(*x)));
        secret.words.push(words);
        let totals = Totals { rows: None, ..layout.decode(&total, sites.len(), None).unwrap() };
        step = method.next(Some(&totals)).unwrap();
    }
    secret
}

/// The row limit that a federation in one process takes for its plan.
fn terms_rows() -> u64 {
    SIZES.iter().max().unwrap().next_power_of_two() as u64
}

/// The parts of a site's message that are opaque to the aggregator. What stands between them is checked to be exactly
/// what its kind, the number of members and of slots say, so nothing else has room in it.
fn opaque(f: &Parts, site: u16, members: usize, slots: usize, words: usize) -> Vec<&[u8]> {
    fn take<'a>(rest: &mut &'a [u8], n: usize) -> &'a [u8] {
        let (head, tail) = rest.split_at(n);
        *rest = tail;
        head
    }
    let (mut rest, mut parts) = (f.rest.as_slice(), Vec::new());
    let number = |n: usize| (n as u64).to_le_bytes();
    match f.kind {
        Kind::AdvertiseKeys => {
            parts.push(take(&mut rest, 2 * 32 + KEY_BYTES));
            // What the account is known by: a hash of a secret.
            assert_eq!(take(&mut rest, 1), [1]);
            parts.push(take(&mut rest, 32));
            // How many answers have left so far, and a hash of the rounds in which they did.
            let answered = u64::from_le_bytes(take(&mut rest, 8).try_into().expect("a number"));
            let link = take(&mut rest, 32);
            assert!(answered <= 2 * u64::from(ROUNDS) && (answered == 0) == (link == [0; 32]), "{answered}");
        }
        Kind::AcceptDirectory => {
            let encapsulates = |to: &u16| *to != site && (site < *to) == ((site ^ to) & 1 == 1);
            let receivers: Vec<u16> = (0..members as u16).filter(encapsulates).collect();
            assert_eq!(take(&mut rest, 8), number(receivers.len()));
            for other in receivers {
                assert_eq!(take(&mut rest, 2), other.to_le_bytes());
                parts.push(take(&mut rest, CIPHERTEXT_BYTES));
            }
        }
        Kind::ShareAck => {}
        Kind::ShareKeys => {
            assert_eq!(take(&mut rest, 8), number(slots));
            parts.push(take(&mut rest, 32 * slots));
            assert_eq!(take(&mut rest, 8), number(members - 1));
            for other in (0..members as u16).filter(|s| *s != site) {
                assert_eq!(take(&mut rest, 2), other.to_le_bytes());
                assert_eq!(take(&mut rest, 8), number(32 * slots + 16));
                parts.push(take(&mut rest, 32 * slots + 16));
            }
        }
        Kind::MaskedInput => {
            parts.push(take(&mut rest, COMMITMENT));
            parts.push(take(&mut rest, 8 * words));
        }
        // Nobody is missing: the round, and no seed.
        Kind::ConsistencyCheck => {
            take(&mut rest, 32);
            assert_eq!(take(&mut rest, 8), number(0));
        }
        Kind::Unmask => {
            assert_eq!(take(&mut rest, 8), number(members));
            parts.push(take(&mut rest, 32 * members));
        }
        // The link of its ledger and its signature on the result.
        Kind::Countersigned => {
            parts.push(take(&mut rest, 32));
            parts.push(take(&mut rest, 64));
        }
        other => panic!("a site sent a {other:?}"),
    }
    assert!(rest.is_empty(), "{:?} of site {site} is longer than it has a reason to be", f.kind);
    parts
}

/// Every window of 8 bytes that must not stand in any frame, in both byte orders.
fn forbidden(run: &LoopbackRun, sites: &[(String, Rows)], secret: &Secret) -> HashMap<u64, String> {
    let mut out = HashMap::new();
    let mut add = |value: u64, what: String| {
        out.insert(value, what.clone());
        out.insert(value.swap_bytes(), what);
    };
    for (q, words) in secret.words.iter().enumerate() {
        for (s, words) in words.iter().enumerate() {
            for w in words.iter().filter(|w| (**w as i64).unsigned_abs() > 1 << 16) {
                add(*w, format!("a plain word of site {s} in question {q}"));
            }
        }
    }
    for x in secret.sums.iter().filter(|x| **x != 0.0) {
        add(x.to_bits(), "a plain sum".into());
    }
    for (name, rows) in sites {
        rows.as_slice().iter().filter(|x| **x != 0.0 && **x != 1.0).for_each(|x| add(x.to_bits(), "a row".into()));
        let n = rows.len() as u64;
        (0..=54).for_each(|shift| add(n << shift, format!("the row count of {name}")));
        add((n as f64).to_bits(), format!("the row count of {name}"));
        let layout =
            Question::CountRows.layout(&run.federation.work.domain().unwrap(), &run.federation.form().unwrap());
        let scaled = [(n as f64 / layout.unwrap().blocks[0].scale.unit()) as u64];
        add(scaled[0], format!("the scaled row count of {name}"));
    }
    out
}

#[test]
fn the_views_hold_nothing_of_one_site() {
    let (work, sites) = (work(), made_up(&SIZES, 0.2, 17));
    let secret = secrets(&work, &prepared(&work, &sites));
    assert_eq!(secret.words.len(), ROUNDS as usize + 1);
    let (run, _) = federate(sites.clone(), &work, &[]);
    let result = run.result.as_ref().expect("a result");
    assert_eq!(run.federation.terms.max_rows, terms_rows());
    let forbidden = forbidden(&run, &sites, &secret);
    assert!(forbidden.contains_key(&secret.words[0][0][0]) && forbidden.contains_key(&(331u64 << 40)));
    let total: u64 = SIZES.iter().sum::<usize>() as u64;
    assert_eq!((result.n_total, result.n_total_from.as_deref()), (Some(total), Some("intermediary")));

    for (view, intermediary) in [(&run.coordinator_view, false), (&run.intermediary_view, true)] {
        let frames = frames(view);
        let slots = if intermediary { 4 } else { usize::from(run.federation.terms.slots) };
        let mut kinds: BTreeMap<PartyId, Vec<Kind>> = BTreeMap::new();
        let mut masked: HashMap<u64, usize> = HashMap::new();
        let (mut ones, mut bits) = (0u64, 0u64);
        for (from, f) in &frames {
            kinds.entry(*from).or_default().push(f.kind);
            let PartyId::Site(s) = *from else { continue };
            let asked = kinds[from].iter().filter(|k| **k == Kind::MaskedInput).count();
            let plain = (!intermediary).then(|| &secret.words[asked.max(1) - 1][usize::from(s)]);
            let words = plain.map_or(1, Vec::len);
            let signature = f.proof.signature.to_bytes();
            let mut parts = opaque(f, s, SIZES.len(), slots, words);
            parts.extend([&f.context.0[..], &signature]);
            for window in parts.iter().flat_map(|part| part.windows(8)) {
                let value = u64::from_le_bytes(window.try_into().unwrap());
                assert!(!forbidden.contains_key(&value), "{:?} of site {s}: {}", f.kind, forbidden[&value]);
            }
            if f.kind == Kind::MaskedInput {
                for (i, word) in f.words().into_iter().enumerate() {
                    assert!(plain.is_none_or(|p| p[i] != word), "a word that is not masked");
                    *masked.entry(word).or_default() += 1;
                    (ones, bits) = (ones + u64::from(word.count_ones()), bits + 64);
                }
            }
        }
        assert!(masked.values().all(|n| *n == 1), "a masked word came twice");
        // Words under masks look like coin flips; six standard deviations are allowed.
        let off = (ones as f64 - bits as f64 / 2.0).abs();
        assert!(off <= 6.0 * (bits as f64 / 4.0).sqrt(), "{ones} of {bits} bits");
        for (party, mut kinds) in kinds {
            match party {
                PartyId::Intermediary => assert_eq!(kinds, [Kind::CountReady, Kind::CountReply]),
                PartyId::Coordinator => panic!("it sends its question on the other's line"),
                PartyId::Site(_) => {
                    let questions = if intermediary { 1 } else { ROUNDS as usize + 1 };
                    let mut all = vec![Kind::AdvertiseKeys, Kind::AcceptDirectory, Kind::ShareKeys, Kind::ShareAck];
                    // The intermediary's survivors are certified also where nobody is missing.
                    let round: &[Kind] = match intermediary {
                        true => &[Kind::MaskedInput, Kind::ConsistencyCheck, Kind::Unmask],
                        false => &[Kind::MaskedInput, Kind::Unmask],
                    };
                    (0..questions).for_each(|_| all.extend(round));
                    if !intermediary {
                        assert_eq!(kinds.pop(), Some(Kind::Countersigned), "each signs the result at the end");
                    }
                    if kinds.len() < all.len() {
                        // The last question was open before these shares came.
                        kinds.push(Kind::Unmask);
                    }
                    assert_eq!(kinds, all, "{party:?}");
                }
            }
        }
        let told: Vec<&Parts> =
            frames.iter().filter(|(from, _)| *from == PartyId::Intermediary).map(|(_, f)| f).collect();
        assert_eq!(told.len(), if intermediary { 0 } else { 2 });
        if let [ready, reply] = told[..] {
            assert_eq!(ready.rest[32..], codec::encode(&vec![0u16, 1, 2, 3, 4]), "who is counted");
            assert_eq!(reply.rest, codec::encode(&Some(total)), "the total and nothing else");
        }
    }
}

/// Two sites exchange all their rows: the coordinator cannot see it in any number.
#[test]
fn exchanged_rows_leave_every_total_as_it_was() {
    let sites = made_up(&SIZES, 0.2, 23);
    let mut swapped = sites.clone();
    (swapped[1].1, swapped[3].1) = (sites[3].1.clone(), sites[1].1.clone());
    let [a, b] = [sites, swapped].map(|s| federate(s, &work(), &[]).0.result.expect("a result"));
    let bits = |rows: &[Vec<f64>]| rows.iter().flatten().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&a.centres_box), bits(&b.centres_box));
    assert!(a.clusters.mass.iter().all(Option::is_some) && a.clusters == b.clusters);
    assert_eq!(a.objective.expect("J").to_bits(), b.objective.expect("J").to_bits());
    let [x, y] = [&a, &b].map(|of| of.indices.fuzzy_davies_bouldin.expect("an index").to_bits());
    assert_eq!(x, y);
    assert!(a.history.iter().zip(&b.history).all(|(x, y)| x.shift.to_bits() == y.shift.to_bits()));
    assert_eq!((a.n_total, a.rounds), (b.n_total, b.rounds));
}
