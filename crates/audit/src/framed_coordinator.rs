//! Two sites try to have an honest coordinator condemned. Their commitments are off by amounts that cancel out, and
//! when one of the two has gone, the sum no longer fits what the coordinator opens.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc, time::Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use veilsum_proto::{
    Rule,
    aggregator::Event,
    codec,
    evidence::Documents,
    message::{Kind, frame_encoded},
    suite::{self, Hash},
    vectors_api as core,
};
use veilsum_testkit::federation::{Kit, Verdict, World};
use veilsum_testkit::wire::parts;

use crate::{
    finding::{Finding, Measure, Rate},
    invented::{Held, OpenedCheck, Opening, WORDS, shown, signed_now, sums, taken, value},
    lying_hub::{Proof, Sent},
};

/// Name on the command line.
pub const NAME: &str = "framed-coordinator";
const SITES: usize = 12;
/// The two that collude; the second one goes silent.
const COLLUDERS: [u16; 2] = [9, 10];
/// A site that is lost before the survivors are named, as happens in honest runs.
const LOST: u16 = 11;

/// The same words, and a commitment to others: one more in the first word, or one less.
fn off_by_one(rest: &[u8], at: usize) -> Vec<u8> {
    let words = rest[32..].as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w));
    let shift = if at == 0 { 1 } else { u64::MAX };
    let words: Vec<u64> = words.enumerate().map(|(i, w)| if i == 0 { w.wrapping_add(shift) } else { w }).collect();
    [&core::commit(&words)[..], &rest[32..]].concat()
}

/// The coordinator as it was before, which checks commitments by their plain sum, once, before it names survivors.
/// Returns whether the lie passes, how many sites accuse the coordinator for what it then opens, and whether a judge
/// condemns it, with the rule.
fn before(seed: u64) -> Result<(bool, Rate, Option<Rule>)> {
    let mut held = Held::new(SITES, seed)?;
    let sent = held.inputs.clone();
    for (at, site) in COLLUDERS.into_iter().enumerate() {
        let rest = off_by_one(&held.inputs[&site].rest, at);
        let lie = signed_now(&held.hub, held.hub.identity(site), &held.context, &rest)?;
        held.inputs.insert(site, lie);
    }
    let first: Vec<u16> = (0..LOST).collect();
    let here: Vec<u16> = first.iter().copied().filter(|site| *site != COLLUDERS[1]).collect();
    let fits = |held: &Held, alive: &[u16]| -> Result<bool> {
        let (low, high) = sums(alive.iter().map(|s| &held.inputs[s]));
        let inputs = alive.iter().map(|s| Ok(shown(&held.inputs[s])?.commitment)).collect::<Result<Vec<_>>>()?;
        Ok(core::are_sums(&low, &high, &inputs))
    };
    let passes = fits(&held, &first)?;
    ensure!(!fits(&held, &here)?, "the lie shows nowhere");
    let honest: Vec<u16> = here.iter().copied().filter(|site| !COLLUDERS.contains(site)).collect();
    // Everybody except one signs that these survive; then the sites that are left sign that they do.
    let mut checks: BTreeMap<u16, Sent> = BTreeMap::new();
    for alive in [&first, &here] {
        for site in &here {
            // A colluder's own process knows of the true inputs only; its key signs what was shown to the others.
            let lies = COLLUDERS.contains(site);
            let told = held.hub.survivors(*site, &held.context, alive, if lies { &sent } else { &held.inputs })?;
            let mut check = told.map_err(|rule| anyhow!("a site refused under {rule}"))?;
            if lies {
                let (signer, context) = (held.hub.identity(*site), checks[&honest[0]].context);
                let frame = frame_encoded(signer, &held.hub.session, Kind::ConsistencyCheck, &context, &check.rest);
                check = parts(&frame);
            }
            checks.insert(*site, check);
        }
    }
    let proofs: Vec<Proof> = here.iter().map(|site| checks[site].proof).collect();
    let signed: Vec<Hash> = here.iter().map(|site| held.inputs[site].proof.rest).collect();
    let named = suite::hash("inputs", &[&codec::encode(&signed)]);
    let certificate = held.hub.frame(Kind::Certificate, &held.context, &(&here, named, &here, &proofs));
    for site in &honest {
        let mut shares = held.hub.tell(*site, &certificate)?;
        held.unmasked.insert(*site, shares.pop().context("a certificate without an answer")?);
    }
    let gone = held.hub.commitments.iter().filter(|(site, _)| !here.contains(site));
    let others = gone.map(|(_, by_slot)| by_slot[0]).collect();
    let (low, high) = sums(here.iter().map(|s| &held.inputs[s]));
    let opening = Opening {
        alive: here.clone(),
        inputs: here.iter().map(|s| shown(&held.inputs[s])).collect::<Result<_>>()?,
        seeds: held.seeds(here.len())?,
        others,
        checks: here
            .iter()
            .map(|s| {
                let seeds = checks[s].seeds().into_iter().map(|(_, seed)| seed).collect();
                Ok(OpenedCheck { seeds, signature: checks[s].proof.signature })
            })
            .collect::<Result<_>>()?,
        agreed: Vec::new(),
        low,
        high,
    };
    let (took, rules) = taken(&held.open(&opening, &honest)?);
    ensure!(rules.iter().all(|rule| *rule == Rule::Opn4), "sites refuse the opening under {rules:?}");
    let accuse = Rate { hit: took.of - took.hit, of: took.of };
    let frame = held.hub.frame(Kind::Opening, &held.context, &opening);
    let documents = Documents { roster: &held.hub.kit.roster, terms: &held.hub.kit.terms };
    let blame = documents.opened(&held.hub.deck, &held.asked, &frame)?.err();
    Ok((passes, accuse, blame.map(|blame| blame.rule)))
}

/// A directory, a question and what opened its total.
type Seen = (Option<Hash>, Vec<u8>, Vec<u8>);

/// The product's coordinator with the same sites: who accuses it, whether the judge condemns it, and whom it has
/// caught.
fn now(seed: u64) -> Result<(Rate, bool, Vec<u16>)> {
    let mut world = World::new(Kit::new(SITES, |_| {}), seed);
    world.answer = Box::new(|site, asked| (0..asked.words).map(|word| value(site, word)).collect());
    let (session, keys) = (world.session(), COLLUDERS.map(|site| world.kit.identities[2 + usize::from(site)].clone()));
    let seen: Rc<RefCell<Seen>> = Rc::default();
    let keep = seen.clone();
    world.hook = Box::new(move |wire| {
        let lies = COLLUDERS.iter().position(|site| *site == wire.site);
        match (wire.kind, wire.site, lies) {
            (Kind::MaskedInput, LOST, _) => return Verdict::Vanish,
            (Kind::MaskedInput, _, Some(at)) => {
                let sent = parts(wire.bytes);
                let rest = off_by_one(&sent.rest, at);
                return Verdict::Replace(frame_encoded(&keys[at], &session, wire.kind, &sent.context, &rest));
            }
            (Kind::ConsistencyCheck, _, Some(1)) => return Verdict::Vanish,
            (Kind::DirectoryCertificate, 0, _) => {
                keep.borrow_mut().0 = Some(parts(wire.bytes).context);
            }
            (Kind::Ask, 0, _) => keep.borrow_mut().1 = wire.bytes.to_vec(),
            (Kind::Opening, 0, _) => keep.borrow_mut().2 = wire.bytes.to_vec(),
            _ => {}
        }
        Verdict::Pass
    });
    world.ask(b"first", WORDS)?;
    world.close();
    let accuse = (0..SITES as u16).filter(|site| world.site_errors.iter().any(|(who, _)| who == site)).count();
    let caught =
        world.events.iter().filter_map(|e| if let Event::Caught { site, .. } = e { Some(*site) } else { None });
    let caught = caught.collect();
    let seen = seen.borrow();
    let directory = seen.0.context("no deck was made")?;
    ensure!(!seen.2.is_empty(), "nothing was opened");
    let documents = Documents { roster: &world.kit.roster, terms: &world.kit.terms };
    let condemned = documents.opened(&directory, &seen.1, &seen.2)?.is_err();
    Ok((Rate { hit: accuse as u64, of: SITES as u64 - 3 }, condemned, caught))
}

/// Tries two colluders on the coordinator as it was and as it is.
///
/// # Errors
/// Where an honest part of the conversation fails.
pub fn run(seed: u64) -> Result<Finding> {
    let began = Instant::now();
    let (passes, accuse, rule) = before(seed)?;
    let (accuse_now, condemned, caught) = now(seed)?;
    let one = |hit: bool| Rate { hit: u64::from(hit), of: 1 };
    let framed = one(passes && rule.is_some());
    let unnoticed = Rate { hit: COLLUDERS.iter().filter(|site| !caught.contains(site)).count() as u64, of: 2 };
    Ok(Finding {
        attack: NAME,
        needs: "two sites that sign commitments off by what cancels out, and the loss of one of them",
        control: "a coordinator that checks commitments by their plain sum before it names survivors, as it did; what it then opens \
                  is judged by the product's own sites and judge",
        protection: "the coordinator checks commitments under random weights, again whenever survivors become fewer [INP-4]",
        measures: vec![
            Measure::rates("judges that condemn the honest coordinator", framed, one(condemned), 0.0),
            Measure::rates("honest sites that accuse it", accuse, accuse_now, 0.0),
            Measure::rates(
                "liars that nobody notices",
                Rate { hit: if passes { 2 } else { 0 }, of: 2 },
                unnoticed,
                0.0,
            ),
        ],
        also_broken: None,
        details: vec![format!(
            "before, the judge said {}; now the coordinator names {} and goes on with the others",
            rule.map_or("nothing", Rule::name),
            caught.iter().map(|site| format!("site {}", site + 1)).collect::<Vec<_>>().join(" and ")
        )],
        not_shown: "other lies of colluders, of which a random schedule is tested (`crates/proto/tests/signed_inputs.rs`)",
        seconds: began.elapsed().as_secs_f64(),
    })
}
