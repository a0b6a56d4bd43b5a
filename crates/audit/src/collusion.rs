//! All sites but one collude, or all sites but one belong to the coordinator (Douceur 2002). The total less their parts
//! is the last site's sum, and the sums of a sweep give its records.

use std::time::Instant;

use anyhow::{Context as _, Result};
use veilsum_cluster::random::Stream;
use veilsum_proto::policy::Policy;

use crate::{
    finding::{Finding, Measure, Rate},
    inconsistency::Field,
    liar,
    lying_hub::LyingHub,
    one_round_records::hits,
    releases::Releases,
    scene::Scene,
    sweep_records,
    view::Recording,
};

/// Name on the command line.
pub const NAME: &str = "collusion-sybil";
const LABEL: &[u8; 24] = b"veilsum audit coalitionv";
/// Strangers that are tried.
const SYBILS: usize = 20;

/// Runs the attack on the totals of a recorded sweep less the inputs of a coalition, and tries strangers on a real site.
///
/// # Errors
/// Where a run fails.
pub fn run(recording: &Recording, seed: u64) -> Result<Finding> {
    let began = Instant::now();
    let releases = Releases::of(recording.rounds.iter().map(|r| &r.query)).context("not a sweep of fuzzy c-means")?;
    let last = recording.truth.len() - 1;
    // The coalition holds the coordinator's view and the inputs of all sites but the last.
    let observed: Vec<f64> = recording
        .rounds
        .iter()
        .flat_map(|r| {
            let mut left = r.total.clone();
            for own in &r.plain[..last] {
                left.iter_mut().zip(&own.values).for_each(|(l, x)| *l -= x);
            }
            left
        })
        .collect();
    let mut stream = Stream::new(seed, LABEL);
    let guess =
        sweep_records::attack(&releases, &observed, recording.max_rows as usize, sweep_records::TRIES, &mut stream)
            .context("nothing was released")?;
    let (found, error) = hits(&recording.truth[last], &guess.records);
    let with = Rate { hit: found, of: recording.truth[last].len() as u64 };

    // An honest coordinator puts the same plan to sites with the same rows and the strict default policy.
    let scene = Scene { site: Policy::default().into(), ..Scene::sweep(seed)? };
    let mut asked = 0;
    let told =
        liar::ask(&scene, &mut |_, own, _| (!own.queries.is_empty()).then(|| own.clone()).inspect(|_| asked += 1))?;
    let left = told.totals.len() as u64;
    let sites = scene.sites.len();
    let stopped = told.refused_under("POL-9").max(told.refused_under("POL-4"));
    let answered = Rate { hit: (sites - stopped) as u64, of: sites as u64 };
    let why = told.refusals.values().next().cloned().context("nobody refused, and the policy was strict")?;

    let field = std::rc::Rc::new(Field::new(seed, 3, 10)?);
    let mut hub = LyingHub::new(3, field.max_rows, seed, field.answers());
    let (taken, rule) = hub.strangers(0, SYBILS)?;
    let joined = Rate { hit: u64::from(taken), of: 1 };
    Ok(Finding {
        attack: NAME,
        needs: "the coordinator's view and the inputs of all sites but one",
        control: "a recorded sweep behind masks, under no release rule; and a roster of the coordinator's own making",
        protection: "the release rule, which counts against the rows that no colluder holds [POL-9]; a signed roster of whom the \
                     owner agreed on [ROS-*], to which every key exchange is held [KEX-*]",
        measures: vec![
            Measure::rates(
                "records of the last site within 1e-3",
                with,
                // The coalition's data from a sweep that was refused in its first round.
                Rate { hit: if left == 0 { 0 } else { with.hit }, of: with.of },
                0.0,
            ),
            Measure::rates("sites that answer the sweep", Rate { hit: sites as u64, of: sites as u64 }, answered, 0.0),
            Measure::rates("directories of strangers that a site takes", Rate { hit: 1, of: 1 }, joined, 0.0),
        ],
        also_broken: None,
        details: vec![
            format!("control: {} tries, largest error {error:.1e}, N is found to {:.3}", guess.tries, guess.count),
            format!("what a site says of the sweep: {why}"),
            format!("strangers are refused under {rule}"),
        ],
        not_shown: "what owners of genuine identities do who collude: the sum over the honest sites is theirs in any case",
        seconds: began.elapsed().as_secs_f64(),
    })
}
