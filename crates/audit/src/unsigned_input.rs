//! A coordinator alone shows an input that no site signed, and with it any total that it likes. In a large cohort most
//! sites overlook it if each checks only some of the signatures.

use std::time::Instant;

use anyhow::{Result, ensure};
use veilsum_cluster::random::Stream;
use veilsum_proto::{Rule, identity::Signature};

use crate::{
    finding::{Finding, Limit, Measure, Rate},
    invented::{Held, WORDS, listed, taken},
};

/// Name on the command line.
pub const NAME: &str = "unsigned-input";
const LABEL: &[u8; 24] = b"veilsum audit unsigned 1";
const SITES: usize = 64;
/// A size at which a sample of signatures misses the forged one at enough sites for a run to go on without the others;
/// only these sites are counted.
const MANY: usize = 150;
/// Signatures that a site looked at before.
const LOOKED_AT: usize = 32;

/// Opens an invented total to all sites.
///
/// # Errors
/// Where an honest part of the conversation fails.
pub fn run(seed: u64) -> Result<Finding> {
    let began = Instant::now();
    let mut held = Held::new(SITES, seed)?;
    let all = held.all.clone();
    held.shares_of(&all)?;
    let honest = held.opening()?;
    let (target, own) = ([42; WORDS], held.inputs[&0].clone());
    held.choose(0, &target)?;
    let mut lie = held.opening()?;
    // This does not need a colluder's signature.
    lie.inputs[0].signature = Signature::from_bytes(&[7; 64]);
    held.inputs.insert(0, own);
    let mut draws = Stream::new(seed, LABEL);
    let (mut before, mut noticed) = (Rate::default(), 0);
    for site in &all {
        let total = held.old_check(&lie, *site, LOOKED_AT, &mut draws);
        ensure!(total.as_ref().is_none_or(|total| total[..] == target), "another total than the one that was chosen");
        before.add(total.is_some());
        noticed += usize::from(total.is_none());
    }
    let (now, rules) = taken(&held.open(&lie, &all)?);
    let (sound, _) = taken(&held.open(&honest, &all)?);
    ensure!(sound.hit == sound.of, "the true opening is refused as well");
    ensure!(rules.iter().all(|rule| *rule == Rule::Opn5), "refused under {rules:?}");
    let mut many = 0;
    for _ in 0..MANY {
        let mut places: Vec<usize> = (0..MANY).collect();
        draws.shuffle(&mut places);
        many += usize::from(!places[..LOOKED_AT].contains(&0));
    }
    Ok(Finding {
        attack: NAME,
        needs: "the coordinator, alone, and a large cohort",
        control: "the check as it was before: every site looks at 32 signatures, drawn at random",
        protection: "every site verifies every survivor's signature once, in a batch [SUR-5], and compares what is opened with it \
                     [OPN-5]",
        measures: vec![Measure::new(
            "sites that take a total which nobody sent",
            before,
            // Half of them on average; one audit in ten thousand has fewer.
            Limit::AtLeast(0.25),
            now,
            Limit::AtMost(0.0),
        )],
        also_broken: None,
        details: vec![
            format!(
                "{SITES} sites: before, {noticed} noticed and left, and {} took the invented total; of {MANY}, by their draws alone, \
                 {many} would, where {} are enough to go on",
                before.hit,
                held.hub.kit.terms.threshold_of(MANY, MANY)?
            ),
            format!("now refused under {}; the true opening of the same round is taken by all", listed(&rules)),
        ],
        not_shown: "a coordinator that opens nothing: sites then have no total, and no wrong one",
        seconds: began.elapsed().as_secs_f64(),
    })
}
