//! The core against `protocol/vectors`, which a second implementation of the specification writes.
//!
//! Layers are compared value by value. Sessions are played again input by input: with the same draws every party must
//! give the same outputs, byte for byte, journal entries and refusals included.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use veilsum_proto::{
    fixed,
    kem::{Ciphertext, Fixed, KemKey},
    limits::MAX_BODY,
    message,
    plan::SignedTerms,
    roster::{Roster, SignedRoster},
};
use veilsum_testkit::{prelude::*, vectors::raw, vectors::*};

/// The cases of a file whose `function` is this one.
fn of(file: &'static str, function: &str) -> Vec<Value> {
    let all = cases(file);
    let found: Vec<Value> = all.into_iter().filter(|c| c["function"] == function).collect();
    assert!(!found.is_empty(), "{file} has no case of {function}");
    found
}

fn parts(c: &Value) -> Vec<Vec<u8>> {
    list(&c["parts"]).iter().map(hex).collect()
}

fn slices(parts: &[Vec<u8>]) -> Vec<&[u8]> {
    parts.iter().map(Vec::as_slice).collect()
}

/// What a vector says of a result: the value, or the rule that refuses.
#[track_caller]
fn agrees<T>(c: &Value, result: Result<T, Error>, check: impl FnOnce(T)) {
    match (result, c.get("rule")) {
        (Ok(v), None) => check(v),
        (Err(e), Some(expected)) => assert_eq!(*expected, json!(e.rule()), "{e}, {c}"),
        (Ok(_), Some(rule)) => panic!("accepted, must be refused under {rule}: {c}"),
        (Err(e), None) => panic!("{e}: {c}"),
    }
}

#[test]
fn encoding() {
    fn check<T: Serialize + DeserializeOwned>(c: &Value, value: impl FnOnce(&Value) -> T) {
        let bytes = hex(&c["encoded"]);
        let limit = c.get("limit").map_or(MAX_BODY, |l| l.as_u64().unwrap() as usize);
        agrees(c, codec::decode::<T>("vector", &bytes, limit), |_| {
            assert_eq!(codec::encode(&value(&c["value"])), bytes, "{c}");
        });
    }
    fn plain<T: DeserializeOwned>(v: &Value) -> T {
        serde_json::from_value(v.clone()).unwrap()
    }
    for c in cases("codec") {
        match c["type"].as_str().unwrap() {
            "u8" => check::<u8>(&c, plain),
            "u16" => check::<u16>(&c, plain),
            "u32" => check::<u32>(&c, plain),
            "u64" => check::<u64>(&c, plain),
            "i16" => check::<i16>(&c, plain),
            "f64" => check::<f64>(&c, plain),
            "bool" => check::<bool>(&c, plain),
            "text" => check::<String>(&c, plain),
            "bytes" => check::<Vec<u8>>(&c, hex),
            "hash" => check::<Hash>(&c, hash),
            "list of u16" => check::<Vec<u16>>(&c, plain),
            "list of hash" => check::<Vec<Hash>>(&c, |v| list(v).iter().map(hash).collect()),
            "option of u64" => check::<Option<u64>>(&c, plain),
            "u16 and text" => check::<(u16, String)>(&c, |v| (plain(&v["number"]), plain(&v["name"]))),
            "nothing" => check::<()>(&c, |_| ()),
            "party" => check::<PartyId>(&c, |v| match v[0].as_str().unwrap() {
                "Coordinator" => PartyId::Coordinator,
                "Intermediary" => PartyId::Intermediary,
                _ => PartyId::Site(plain(&v[1]["number"])),
            }),
            other => panic!("a type that this test does not know: {other}"),
        }
    }
}

fn hex_of<const N: usize>(v: &Value) -> Fixed<N> {
    <[u8; N]>::try_from(hex(v)).expect("as many bytes").into()
}

#[test]
fn hashes_keys_boxes_and_streams() {
    for c in of("suite", "H") {
        assert_eq!(suite::hash(c["label"].as_str().unwrap(), &slices(&parts(&c))), hash(&c["result"]));
    }
    type Function = fn(&[u8], &str, &[&[u8]]) -> [u8; 32];
    let expand: Function = |input, label, parts| api::expand(input.try_into().expect("32 bytes"), label, parts);
    for (name, function) in [("expand", expand), ("derive", api::derive)] {
        for c in of("suite", name) {
            let result = function(&hex(&c["input"]), c["label"].as_str().unwrap(), &slices(&parts(&c)));
            assert_eq!(result, array(&c["result"]), "{c}");
            assert_eq!(suite::hash(c["label"].as_str().unwrap(), &slices(&parts(&c))), hash(&c["info"]));
        }
    }
    for c in of("suite", "seal") {
        let (key, associated) = (array(&c["key"]), hash(&c["associated"]));
        agrees(&c, api::open(&key, &associated, &hex(&c["sealed"])), |plain| {
            assert_eq!(plain, hex(&c["plain"]));
            assert_eq!(api::seal(&key, &associated, &plain), hex(&c["sealed"]));
        });
    }
    for c in of("suite", "stream") {
        let mut words = vec![0; c["words"].as_u64().unwrap() as usize];
        api::mask(&mut words, &array(&c["key"]), None);
        assert_eq!(suite::hash("stream", &[&raw(&words)]), hash(&c["hash"]));
    }
    for c in of("suite", "x25519") {
        let own = x25519_dalek::StaticSecret::from(array(&c["private"]));
        let shared = own.diffie_hellman(&x25519_dalek::PublicKey::from(array(&c["public"])));
        assert_eq!(shared.was_contributory(), c.get("rule").is_none(), "{c}");
        if shared.was_contributory() {
            assert_eq!(*shared.as_bytes(), array(&c["result"]));
        }
    }
    for c in of("suite", "ml-kem") {
        let key: KemKey = hex_of(&c["public"]);
        let Some(seed) = c.get("seed").map(hex_of::<64>) else {
            assert!(api::kem_encapsulate(&key, &mut Draws::new("")).is_none(), "{c}");
            continue;
        };
        let seed: &[u8; 64] = seed.bytes().try_into().unwrap();
        assert_eq!(api::kem_public(seed), key);
        let ciphertext = hex_of(&c["ciphertext"]);
        assert_eq!(api::kem_decapsulate(seed, &ciphertext), array(&c["secret"]), "{c}");
        if let Some(name) = c.get("draws") {
            let made = api::kem_encapsulate(&key, &mut Draws::new(name.as_str().unwrap()));
            assert_eq!(made, Some((ciphertext, array(&c["secret"]))));
        }
    }
    for c in of("suite", "draws") {
        let mut draws = Draws::new(c["seed"].as_str().unwrap());
        assert_eq!(api::random_scalar(&mut draws), array(&c["scalar"]));
        let mut draws = Draws::new(c["seed"].as_str().unwrap());
        for taken in list(&c["takes"]).iter().map(hex) {
            assert_eq!(draws.take(taken.len()), taken);
        }
    }
}

/// [KEY-2], among others: what strict verification refuses, and which keys are usable.
#[test]
fn key_2_identities() {
    for c in of("identity", "sign") {
        let (who, p) = (Identity::from_seed(&array(&c["seed"])), parts(&c));
        let (label, signature) = (c["label"].as_str().unwrap(), hex(&c["signature"]));
        assert_eq!((who.public().0, suite::hash(label, &slices(&p))), (array(&c["public"]), hash(&c["digest"])));
        assert_eq!(who.sign(label, &slices(&p)).to_bytes(), signature[..]);
        let signature = Signature::from_bytes(signature[..].try_into().unwrap());
        assert!(who.public().verify(label, &slices(&p), &signature));
    }
    for c in of("identity", "verify") {
        let signature = Signature::from_bytes(hex(&c["signature"])[..].try_into().unwrap());
        let key = PublicKey(array(&c["public"]));
        assert!(!key.verify(c["label"].as_str().unwrap(), &slices(&parts(&c)), &signature), "{c}");
    }
    for c in of("identity", "usable") {
        let usable = PublicKey(array(&c["public"])).is_usable();
        assert_eq!((json!(usable), usable), (c["usable"].clone(), c.get("rule").is_none()), "{c}");
    }
    for c in of("identity", "text") {
        agrees(&c, c["text"].as_str().unwrap().parse::<PublicKey>(), |key| assert_eq!(key.0, array(&c["public"])));
    }
}

/// Among others [PLN-7], [SES-1]: what identifies a plan and a session; [THR-2].
#[test]
fn documents() {
    let mut roster: Option<Roster> = None;
    for c in cases("documents") {
        match c["document"].as_str().unwrap() {
            "roster" => {
                let signed: SignedRoster = codec::decode("roster", &hex(&c["encoded"]), MAX_BODY).unwrap();
                agrees(&c, signed.verify(), |found| {
                    assert_eq!(found.hash(), hash(&c["hash"]));
                    roster = Some(found);
                });
            }
            "plan" => {
                let roster = roster.as_ref().expect("the good roster comes first");
                let signed: SignedTerms = codec::decode("plan", &hex(&c["encoded"]), MAX_BODY).unwrap();
                agrees(&c, signed.verify(roster), |terms| {
                    assert_eq!(terms.hash(), hash(&c["hash"]));
                    for (name, role) in [("Coordinator", PartyId::Coordinator), ("Intermediary", PartyId::Intermediary)]
                    {
                        let session = message::session(&terms.hash(), &roster.hash(), role);
                        assert_eq!(session, hash(&c["sessions"][name]));
                    }
                });
            }
            _ => {
                let number = |k: &str| c[k].as_u64().unwrap() as u16;
                let kit = Kit::new(3, |t| (t.threshold, t.colluders) = (number("threshold"), number("colluders")));
                let found = kit.terms.threshold_of(number("members").into(), number("sites").into());
                agrees(&c, found, |t| assert_eq!(t as u64, c["result"]));
            }
        }
    }
}

#[test]
fn fixed_point() {
    for c in of("fixed", "scale") {
        let exp = i16::try_from(c["bound_exp"].as_i64().unwrap()).unwrap();
        let found = fixed::scale(c["sites"].as_u64().unwrap() as usize, c["max_rows"].as_u64().unwrap(), exp);
        agrees(&c, found, |s| {
            assert_eq!((json!(s.fraction_bits), s.limit), (c["fraction_bits"].clone(), number(&c["limit"])))
        });
    }
    for c in of("fixed", "words") {
        let block = |b: &Value| fixed::Block { len: number(&b[0]) as u32, bound_exp: b[1].as_i64().unwrap() as i16 };
        let layout: Vec<_> = list(&c["layout"]).iter().map(block).collect();
        agrees(&c, fixed::words(&layout), |n| assert_eq!(n as u64, c["words"]));
    }
    for c in of("fixed", "carry") {
        let x = c["x"].as_f64().unwrap() * 2f64.powi(c["fraction_bits"].as_i64().unwrap() as i32);
        let integer = x.round_ties_even() as i64;
        assert_eq!(integer, c["integer"], "{c}");
        assert_eq!(raw(&[fixed::to_ring(integer)]), hex(&c["word"]));
        assert_eq!(fixed::from_ring(fixed::to_ring(integer)), integer);
    }
}

/// [SHR-1]: the shares of a polynomial from its draws.
#[test]
fn shr_1_sharing() {
    let sites = |v: &Value| -> Vec<u16> { list(v).iter().map(|n| number(n) as u16).collect() };
    let bytes = |v: &Value| -> Vec<[u8; 32]> { list(v).iter().map(array).collect() };
    for c in of("shamir", "split") {
        let (members, secret, t) = (sites(&c["members"]), array(&c["secret"]), number(&c["threshold"]) as usize);
        let shares = api::split(&secret, t, &members, &mut Draws::new(c["draws"].as_str().unwrap()));
        assert_eq!(shares, bytes(&c["shares"]));
        let from = sites(&c["recover from"]);
        let given: Vec<_> = from.iter().map(|m| shares[members.binary_search(m).unwrap()]).collect();
        assert_eq!(api::recover(&from, &given), secret);
    }
    for function in ["checked", "robust"] {
        for c in of("shamir", function) {
            let (members, shares, t) = (sites(&c["members"]), bytes(&c["shares"]), number(&c["threshold"]) as usize);
            let found = if function == "checked" {
                api::recover_committed(&members, &shares, t, &array(&c["secret"]))
            } else {
                api::recover_robust(&members, &shares, t)
            };
            let expected = (!c["result"].is_null()).then(|| (array(&c["result"]), sites(&c["wrong"])));
            assert_eq!(found, expected, "{c}");
        }
    }
    for c in of("shamir", "share") {
        assert_eq!(api::is_share(&array(&c["share"])), c.get("rule").is_none(), "{c}");
    }
}

#[test]
fn the_key_schedule_of_a_deck() {
    let advertised = of("keys", "advertise");
    for c in &advertised {
        let own = x25519_dalek::StaticSecret::from(array(&c["dh_private"]));
        assert_eq!(x25519_dalek::PublicKey::from(&own).to_bytes(), array(&c["dh_key"]));
        let kem_seed = hex(&c["kem_seed"]).try_into().unwrap();
        assert_eq!(api::kem_public(&kem_seed), hex_of(&c["kem_key"]));
        let each = (0..).zip(list(&c["seeds"]));
        let (deck, site) = (hash(&c["deck"]), number(&c["site"]) as u16);
        let each: Vec<Hash> = each.map(|(r, b)| api::seed_commitment(&deck, site, r, &array(b))).collect();
        assert_eq!(each, list(&c["each"]).iter().map(hash).collect::<Vec<_>>());
        assert_eq!(api::commitments_hash(&each), hash(&c["commitments"]));
    }
    for c in of("keys", "slot commitments") {
        let lists: Vec<Vec<Hash>> = list(&c["lists"]).iter().map(|l| list(l).iter().map(hash).collect()).collect();
        assert_eq!(api::slot_commitments(&lists), list(&c["result"]).iter().map(hash).collect::<Vec<_>>());
    }
    for c in of("keys", "agree") {
        let keys = |site: &Value| advertised.iter().find(|a| a["site"] == *site).unwrap();
        let (u, v) = (number(&c["from"]) as u16, number(&c["to"]) as u16);
        let (low, high) = (u.min(v).to_le_bytes(), u.max(v).to_le_bytes());
        let directory = hash(&c["directory"]);
        let shared = api::exchanged(&array(&keys(&c["from"])["dh_private"]), &array(&keys(&c["to"])["dh_key"]));
        assert_eq!(shared, array(&c["shared"]));
        let makes = number(&c["encapsulates"]) as u16;
        assert!(api::encapsulates(makes, u ^ v ^ makes) && !api::encapsulates(u ^ v ^ makes, makes));
        let receiver = &c[if makes == u { "to" } else { "from" }];
        let seed = hex(&keys(receiver)["kem_seed"]).try_into().unwrap();
        assert_eq!(api::kem_decapsulate(&seed, &hex_of(&c["ciphertext"])), array(&c["secret"]));
        let (input, ciphertext) = ([shared, array(&c["secret"])].concat(), hex(&c["ciphertext"]));
        assert_eq!(api::derive(&input, "pair", &[&directory.0, &low, &high, &ciphertext]), array(&c["pair"]));
        let (from, to) = (u.to_le_bytes(), v.to_le_bytes());
        let parts: [&[u8]; 4] = [&directory.0, &from, &to, &ciphertext];
        let key = api::derive(&input, "box", &parts);
        assert_eq!((key, suite::hash("box", &parts)), (array(&c["key"]), hash(&c["associated"])));
        assert_eq!(api::seal(&key, &suite::hash("box", &parts), &hex(&c["plain"])), hex(&c["box"]));
    }
}

/// [ENC-4]: vectors travel as raw words.
#[test]
fn enc_4_masks_and_totals() {
    let masked = of("masks", "mask");
    for c in &masked {
        let (me, context) = (number(&c["site"]) as u16, hash(&c["context"]));
        let mut words = words_of(&hex(&c["x"]));
        let key = api::self_mask_key(&array(&c["seed"]), &context);
        assert_eq!(key, array(&c["self_key"]));
        api::mask(&mut words, &key, None);
        for p in list(&c["pairs"]) {
            let seed = api::expand(&array(&p["secret"]), "round seed", &[&context.0]);
            assert_eq!(seed, array(&p["seed"]));
            api::mask(&mut words, &seed, Some((me, number(&p["site"]) as u16)));
        }
        assert_eq!(raw(&words), hex(&c["y"]));
        assert_eq!(suite::hash("masked", &[&raw(&words)]), hash(&c["digest"]));
    }
    for c in of("masks", "unmask") {
        let alive = list(&c["alive"]);
        let mut total = vec![0u64; words_of(&hex(&c["total"])).len()];
        for m in masked.iter().filter(|m| alive.contains(&m["site"])) {
            total.iter_mut().zip(words_of(&hex(&m["y"]))).for_each(|(t, y)| *t = t.wrapping_add(y));
            api::unmask(&mut total, &array(&m["self_key"]), None);
        }
        for s in list(&c["seeds"]) {
            let pair = (number(&s["site"]) as u16, number(&s["missing"]) as u16);
            api::unmask(&mut total, &array(&s["seed"]), Some(pair));
        }
        assert_eq!(raw(&total), hex(&c["total"]));
        assert_eq!(suite::hash("total", &[&raw(&total)]), hash(&c["hash"]));
    }
}

/// [OPN-1]: generators, commitments, and sums of them.
#[test]
fn opn_1_commitments() {
    for c in of("commitments", "generator") {
        assert_eq!(api::generator(number(&c["index"])), array(&c["result"]), "{c}");
    }
    for c in of("commitments", "commit") {
        assert_eq!(api::commit(&words_of(&hex(&c["words"]))), array(&c["commitment"]), "{c}");
    }
    for c in of("commitments", "are sums") {
        let high: Vec<u16> = list(&c["high"]).iter().map(|h| number(h) as u16).collect();
        let commitments: Vec<_> = list(&c["commitments"]).iter().map(array).collect();
        assert_eq!(api::are_sums(&words_of(&hex(&c["low"])), &high, &commitments), c["result"], "{c}");
    }
}

#[test]
fn one_frame_of_every_kind() {
    let file = read("frames");
    let who = Identity::from_seed(&array(&file["seed"]));
    let (session, context) = (hash(&file["session"]), hash(&file["context"]));
    let mut seen = Vec::new();
    for c in list(&file["cases"]).iter().filter(|c| c.get("kind").is_some()) {
        let kind = *Kind::ALL.iter().find(|k| json!(format!("{k:?}")) == c["kind"]).expect("a kind of the core");
        seen.push(kind);
        assert_eq!((json!(kind as u16), json!(kind.body_limit())), (c["number"].clone(), c["limit"].clone()));
        let message = hex(&c["message"]);
        assert_eq!(message::frame_encoded(&who, &session, kind, &context, &message), hex(&c["frame"]), "{kind:?}");
        let rest = match (kind, message.split_first_chunk::<32>()) {
            (Kind::MaskedInput, Some((commitment, words))) => {
                suite::hash("input", &[commitment, &suite::hash("masked", &[words]).0])
            }
            _ => suite::hash("rest", &[&message]),
        };
        let signed = suite::hash("frame", &[&session.0, &(kind as u16).to_le_bytes(), &context.0, &rest.0]);
        assert_eq!((rest, signed), (hash(&c["rest"]), hash(&c["signed"])));
    }
    assert_eq!(seen, Kind::ALL, "one of every kind");
    for c in list(&file["cases"]).iter().filter(|c| c.get("rule").is_some()) {
        let opened = message::open::<String>(&hex(&c["frame"]), &session, &who.public(), "peer", Kind::Refusal);
        agrees(c, opened, |_| ());
    }
}

/// Directories and everything that is derived under them ([KEX-3]) are in the frames.
#[test]
fn kex_3_sessions_are_reproduced_byte_for_byte() {
    for name in SESSIONS {
        let session = Session::read(name);
        let mut player = Player::new(&session);
        session.steps().iter().for_each(|s| player.step(&session, s));
    }
}

/// The secrets that stand beside a session are those from which its frames were made.
#[test]
fn secrets_beside_the_sessions() {
    for name in SESSIONS {
        let file = read(name);
        let frames: Vec<Vec<u8>> = file["frames"].as_object().unwrap().values().map(hex).collect();
        let decks = list(&file["decks"]);
        let deck_of = |site: &Value, index: &Value| decks.iter().find(|d| d["site"] == *site && d["index"] == *index);
        for d in decks {
            let public = |d: &Value| api::public_key(&array(&d["dh_private"]));
            let (dh_key, kem_key) = (public(d), api::kem_public(&hex(&d["kem_seed"]).try_into().unwrap()));
            let standing = codec::encode(&standing(&d["standing"]));
            let keys = [&dh_key[..], kem_key.bytes(), &array(&d["commitments"]), &standing].concat();
            let mut of_deck = frames.iter().filter(|f| f[8..40] == hex(&d["id"]));
            assert!(of_deck.any(|f| f[40..f.len() - 64] == keys), "{name}: keys of a site");
            let (u, directory) = (number(&d["site"]) as u16, hex(&d["directory"]));
            // Ciphertexts stand in the frames, and each opens to what stands beside the session.
            let sent = |from: u16, to: u16| -> Option<Ciphertext> {
                let whole = file["frames"].as_object().unwrap();
                let whose = format!(" AcceptDirectory of site {from}");
                let found = whole.iter().filter(|(name, _)| name.ends_with(&whose)).map(|(_, f)| hex(f));
                let frame = found.into_iter().find(|f| f[8..40] == directory).expect("what it signed");
                let message = &frame[40..frame.len() - 64];
                let sent: Vec<(u16, Ciphertext)> = codec::decode("AcceptDirectory", message, MAX_BODY).unwrap();
                Some(sent.into_iter().find(|c| c.0 == to)?.1)
            };
            for (v, secret) in d["pairs"].as_object().unwrap() {
                let other = deck_of(&json!(v.parse::<u16>().unwrap()), &d["index"]).expect("the other end");
                let v: u16 = v.parse().unwrap();
                let shared = api::exchanged(&array(&d["dh_private"]), &public(other));
                let (made, to, (maker, receiver)) = match sent(u, v) {
                    Some(made) => (made, v, (d, other)),
                    None => (sent(v, u).expect("one of the two makes it"), u, (other, d)),
                };
                let kem_secret: [u8; 32] = array(&maker["sent"][to.to_string()]);
                let seed: [u8; 64] = hex(&receiver["kem_seed"]).try_into().unwrap();
                assert_eq!(api::kem_decapsulate(&seed, &made), kem_secret);
                let (low, high) = (u.min(v).to_le_bytes(), u.max(v).to_le_bytes());
                let parts: [&[u8]; 4] = [&directory, &low, &high, made.bytes()];
                assert_eq!(api::derive(&[shared, kem_secret].concat(), "pair", &parts), array(secret));
            }
            let committed = |m: &Value| -> Vec<Hash> {
                let owner = deck_of(m, &d["index"]).expect("a member");
                let (id, site, seeds) = (hash(&owner["id"]), number(m) as u16, (0..).zip(list(&owner["seeds"])));
                seeds.map(|(r, b)| api::seed_commitment(&id, site, r, &array(b))).collect()
            };
            let lists: Vec<Vec<Hash>> = list(&d["members"]).iter().map(committed).collect();
            let kept: Vec<Hash> = list(&d["slot_commitments"]).iter().map(hash).collect();
            assert_eq!(api::slot_commitments(&lists), kept);
            for owner in decks.iter().filter(|o| o["index"] == d["index"]) {
                let members: Vec<u16> = list(&d["members"]).iter().map(|m| number(m) as u16).collect();
                let at = members[..number(&d["threshold"]) as usize].to_vec();
                for (slot, seed) in list(&owner["seeds"]).iter().enumerate() {
                    let share =
                        |m: &u16| &deck_of(&json!(m), &d["index"]).unwrap()["held"][owner["site"].to_string()][slot];
                    let shares: Vec<_> = at.iter().map(|m| array(share(m))).collect();
                    assert_eq!(api::recover(&at, &shares), array(seed));
                }
            }
        }
        for r in list(&file["rounds"]) {
            let (deck, context) = (deck_of(&r["site"], &r["deck"]).unwrap(), hash(&r["context"]));
            let key = api::self_mask_key(&array(&deck["seeds"][number(&r["slot"]) as usize]), &context);
            assert_eq!(key, array(&r["self_key"]));
            let mut words = words_of(&hex(&r["x"]));
            api::mask(&mut words, &key, None);
            // [MSK-1]: pair secrets move on from slot to slot.
            let secret_with = |member: &str| {
                let first = array(&deck["pairs"][member]);
                (0..number(&r["slot"])).fold(first, |secret, _| api::next_slot(&secret))
            };
            for (other, seed) in r["round_seeds"].as_object().unwrap() {
                assert_eq!(api::expand(&secret_with(other), "round seed", &[&context.0]), array(seed));
                api::mask(&mut words, &array(seed), Some((number(&r["site"]) as u16, other.parse().unwrap())));
            }
            let y = raw(&words);
            let mut of_round = frames.iter().filter(|f| f[8..40] == context.0 && f.len() > 136);
            assert!(of_round.any(|f| f[72..f.len() - 64] == y), "{name}: a masked vector");
        }
    }
}

#[test]
fn what_goes_astray_in_a_deck_is_refused() {
    astray("bad_deck");
}

#[test]
fn what_goes_astray_in_a_round_is_refused() {
    astray("bad_round");
}

#[test]
fn what_goes_astray_in_an_opening_is_refused() {
    astray("bad_opening");
}

#[test]
fn sites_come_back_from_their_journals() {
    for c in cases("journal") {
        let session = Session::read(c["session"].as_str().unwrap());
        let mut player = Player::new(&session);
        player.what = format!("journal, {}", c["name"]);
        match player.restore(number(&c["site"]) as usize, list(&c["entries"])) {
            Ok(()) => list(&c["steps"]).iter().for_each(|s| player.step(&session, s)),
            Err(e) => {
                assert_eq!((c["rule"].clone(), matches!(e, Error::Journal(_))), (json!(Rule::Jrn2), true), "{e}, {c}")
            }
        }
    }
}

fn astray(file: &'static str) {
    let sessions = SESSIONS.map(|name| (name, Session::read(name)));
    for c in cases(file) {
        let (_, session) = sessions.iter().find(|(name, _)| c["session"] == *name).expect("a session of the vectors");
        let mut player = Player::new(session);
        player.what = format!("{file}, {}", c["name"]);
        // Parties depend on their own inputs alone, so those of the case are enough.
        let parties: Vec<&Value> = list(&c["steps"]).iter().map(|s| &s["at"]).collect();
        let before = session.steps()[..number(&c["after"]) as usize].iter().filter(|s| parties.contains(&&s["at"]));
        before.for_each(|s| player.step(session, s));
        list(&c["steps"]).iter().for_each(|s| player.step(session, s));
    }
}
