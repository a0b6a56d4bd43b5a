//! A coordinator alone shows an input that no site signed, and with it any total it likes: in a large cohort most sites overlook
//! it where each looks at some signatures only.

use std::time::Instant;

use anyhow::{Result, ensure};
use veilsum_cluster::random::Stream;
use veilsum_proto::identity::Signature;

use crate::{
    finding::{Finding, Limit, Measure, Rate},
    invented::{Held, WORDS, taken},
};

/// Name on the command line.
pub const NAME: &str = "unsigned-input";
const LABEL: &[u8; 24] = b"veilsum audit unsigned 1";
/// So many that a sample misses one of them at enough sites for a run to go on without the others.
const SITES: usize = 120;
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
    // Not even a colluder's signature is needed.
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
    let enough = |rate: Rate| Rate { hit: u64::from(rate.hit >= held.threshold as u64), of: 1 };
    Ok(Finding {
        attack: NAME,
        needs: "the coordinator, alone, and a large cohort",
        control: "the check as it was before: every site looks at 32 signatures, drawn at random",
        protection: "every site verifies every survivor's signature once, in a batch [SUR-5], and compares what is opened with it \
                     [OPN-5]",
        measures: vec![
            Measure::new("sites that take a total which nobody sent", before, Limit::AtLeast(0.5), now, Limit::AtMost(0.0)),
            Measure::rates("runs that go on with enough of them", enough(before), enough(now), 0.0),
        ],
        also_broken: None,
        details: vec![
            format!(
                "{SITES} sites, {} needed for a total; before, {noticed} noticed and left, and {} went on with the invented total",
                held.threshold, before.hit
            ),
            format!("now refused under {rules}; the true opening of the same round is taken by all"),
        ],
        not_shown: "a coordinator that opens nothing: sites then have no total, and no wrong one",
        seconds: began.elapsed().as_secs_f64(),
    })
}
