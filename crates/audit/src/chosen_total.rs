//! Coordinator and one site choose the total after they know the true one. When all shares are out, the site signs the
//! input that makes the sum what they want; or nobody signs it, and sites that look at some signatures only overlook that.

use std::time::Instant;

use anyhow::{Result, ensure};
use veilsum_cluster::random::Stream;
use veilsum_proto::{Rule, identity::Signature, message::Kind, message::frame_encoded};
use veilsum_testkit::wire::parts;

use crate::{
    finding::{Finding, Limit, Measure, Rate, listed},
    invented::{Held, WORDS, taken},
};

/// Name on the command line.
pub const NAME: &str = "chosen-total";
const LABEL: &[u8; 24] = b"veilsum audit chosen   1";
const SITES: usize = 7;
/// The site that colludes.
const COLLUDER: u16 = 6;
const TARGET: [u64; WORDS] = [111; WORDS];
/// Sites where the coordinator is alone, and signatures that each looked at before.
const MANY: usize = 64;
const LOOKED_AT: usize = 32;

/// How many of these sites take the chosen total, where each looks at so many signatures and holds none against what it was shown.
fn before(
    held: &Held,
    lie: &veilsum_testkit::wire::Opening,
    sites: &[u16],
    looked_at: usize,
    draws: &mut Stream,
) -> Rate {
    let mut rate = Rate::default();
    sites.iter().for_each(|s| rate.add(held.old_check(lie, *s, looked_at, draws).is_some_and(|t| t[..] == TARGET)));
    rate
}

/// Lets a coordinator alone show an input that nobody signed: who takes it by the old check, and now.
fn unsigned(seed: u64, draws: &mut Stream) -> Result<(Rate, Rate)> {
    let mut held = Held::new(MANY, seed)?;
    let all = held.all.clone();
    held.shares_of(&all)?;
    let own = held.inputs[&0].clone();
    held.choose(0, &TARGET)?;
    let mut lie = held.opening()?;
    lie.inputs[0].signature = Signature::from_bytes(&[7; 64]);
    held.inputs.insert(0, own);
    let (now, rules) = taken(&held.open(&lie, &all)?);
    ensure!(rules.iter().all(|rule| *rule == Rule::Opn5), "refused under {rules:?}");
    Ok((before(&held, &lie, &all, LOOKED_AT, draws), now))
}

/// Lets nobody sign, and lets the colluder sign late: before sites that were all shown the first list, and before sites that were shown
/// the second.
///
/// # Errors
/// Where an honest part of the conversation fails.
pub fn run(seed: u64) -> Result<Finding> {
    let began = Instant::now();
    let mut draws = Stream::new(seed, LABEL);
    let (overlooked, alone) = unsigned(seed, &mut draws)?;
    let honest: Vec<u16> = (0..COLLUDER).collect();

    // Everybody has given shares for the true inputs.
    let mut held = Held::new(SITES, seed)?;
    let all = held.all.clone();
    held.shares_of(&all)?;
    let truth = held.opening()?;
    held.choose(COLLUDER, &TARGET)?;
    let lie = held.opening()?;
    let chosen = before(&held, &lie, &honest, SITES, &mut draws);
    let mut refusals = held.open(&lie, &honest)?;
    for site in &honest {
        held.hub.restart(*site)?;
    }
    refusals.extend(held.open(&lie, &honest)?);
    let (now, rules) = taken(&refusals);
    ensure!(rules.iter().all(|rule| *rule == Rule::Opn5), "refused under {rules:?}");
    let (sound, _) = taken(&held.open(&truth, &honest)?);
    ensure!(sound.hit == sound.of, "the true opening is refused as well");

    // t sites have: that is the total. The others are shown the list that was made from it.
    let mut held = Held::new(SITES, seed.wrapping_add(1))?;
    let late: Vec<u16> = honest[held.threshold - 1..].to_vec();
    let first: Vec<u16> = all.iter().copied().filter(|s| !late.contains(s)).collect();
    ensure!(!late.is_empty() && first.len() == held.threshold, "nobody is left to be shown another list");
    held.shares_of(&first)?;
    let known = std::mem::take(&mut held.unmasked);
    held.choose(COLLUDER, &TARGET)?;
    held.shares_of(&late)?;
    // The colluder agrees to anything, as often as it is asked.
    let shown = held.unmasked[&late[0]].clone();
    let again =
        frame_encoded(held.hub.identity(COLLUDER), &held.hub.session, Kind::Unmask, &shown.context, &shown.rest);
    held.unmasked.insert(COLLUDER, parts(&again));
    let mut agreed: Vec<_> = held.unmasked.iter().map(|(site, sent)| (*site, sent.proof)).collect();
    held.unmasked = known.clone();
    let mut lie = held.opening()?;
    let second = before(&held, &lie, &late, SITES, &mut draws);
    lie.agreed.clone_from(&agreed);
    let mut refusals = held.open(&lie, &late)?;
    // And with signatures of those who agreed to something else.
    let missing = held.threshold - agreed.len();
    agreed.extend(known.iter().take(missing).map(|(site, sent)| (*site, sent.proof)));
    agreed.sort_by_key(|(site, _)| *site);
    lie.agreed = agreed;
    refusals.extend(held.open(&lie, &late)?);
    let (after, more) = taken(&refusals);
    ensure!(more.iter().all(|rule| [Rule::Opn2, Rule::Opn6].contains(rule)), "refused under {more:?}");
    Ok(Finding {
        attack: NAME,
        needs: "the coordinator, alone in a large cohort, or with one site, whose key signs what it likes, when it likes",
        control: "the check as it was before: signatures are verified at the opening, 32 of them in the large cohort, and none is held \
                  against what sites were shown when their shares left",
        protection: "every site verifies every survivor's signature [SUR-5]; sites keep what every survivor had signed when the survivors were named and open nothing else [OPN-5]; shares \
                     are bound to those inputs, and t sites' signatures on them stand in the opening [UNM-3], [OPN-2], [OPN-6]",
        measures: vec![
            Measure::rates("sites that take a total which was chosen after it was known", chosen, now, 0.0),
            Measure::rates("sites shown only the second list that take it", second, after, 0.0),
            Measure::new(
                "sites that take a total with an input that nobody signed",
                overlooked,
                // Half of them on average; one audit in ten thousand has fewer.
                Limit::AtLeast(0.25),
                alone,
                Limit::AtMost(0.0),
            ),
        ],
        also_broken: None,
        details: vec![format!(
            "{SITES} sites, one colludes; with the rule the first lie is refused under {} by every honest site, before and \
             after a restart, and the second under {}",
            listed(&rules),
            listed(&more)
        )],
        not_shown: "an input that the colluder chooses before it knows the total: it may send any numbers",
        seconds: began.elapsed().as_secs_f64(),
    })
}
