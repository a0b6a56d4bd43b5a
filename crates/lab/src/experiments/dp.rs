//! Runs with real integer noise, over plainly added totals (spec section 17).

use veilsum_cluster::{Domain, Outcome, Prepared, Recipe, Rows, Scaling, random::Stream};
use veilsum_proto::{noise::Key, suite};

use super::{ExperimentError, harness};
use veilsum_node::{
    error::Failure,
    method_session::{MethodSession, Terms, Turn},
    plan::Judge,
    question::{self, SumBounds},
};

/// A run of a recipe with noise over plainly added integers, which are those that a masked run adds up: every site's share
/// of the noise is drawn exactly, from `seed`.
///
/// # Errors
/// A [`Failure`] where the recipe cannot be run.
pub fn noisy(recipe: &Recipe, domain: &Domain, sites: &[Prepared], seed: u64) -> Result<Outcome, Failure> {
    let failed = |error: veilsum_cluster::Error| Failure::input(error, "");
    let max_rows = sites.iter().map(|s| s.len() as u64).max().unwrap_or(1).next_power_of_two();
    let noise = recipe.levels(domain).map_err(failed)?;
    let form = SumBounds { noise, ..SumBounds::new(sites.len(), max_rows) };
    let terms = Terms { domain: domain.clone(), form, sampling: None, judge: Judge::Coordinator };
    let run = recipe.run(domain, sites.len() as u32).map_err(failed)?;
    let mut conversation = MethodSession::begin(run, terms)?;
    loop {
        let (question, mut total) = match conversation.turn() {
            Turn::Done(outcome) => return Ok((**outcome).clone()),
            Turn::Ask(question, layout) => (question.clone(), vec![0u64; layout.words()]),
            Turn::Judge(_) => return Err(Failure::input("nobody judges here", "")),
        };
        for (site, rows) in (0u64..).zip(sites) {
            let parts = [&seed.to_le_bytes()[..], &site.to_le_bytes(), &question.to_bytes()];
            let key = Key::from_bytes(suite::hash("noise of an experiment", &parts).0);
            let terms = question::Terms { noise: Some(&key), ..question::Terms::everybody(form) };
            let words = question::contribute(&question, rows, &terms)?;
            total.iter_mut().zip(words).for_each(|(total, word)| *total = total.wrapping_add(word));
        }
        let everybody: Vec<u16> = (0..sites.len() as u16).collect();
        conversation.take(&total, &everybody)?;
    }
}

/// Three clusters like those of xclara, dealt to sites, in the box [-1, 1]: the domain, and the rows.
///
/// # Errors
/// [`ExperimentError::Cluster`].
pub fn xclara_like(rows: usize, sites: usize, seed: u64) -> Result<(Domain, Vec<Prepared>), ExperimentError> {
    const MIDDLES: [[f64; 2]; 3] = [[-0.6, -0.45], [0.05, 0.65], [0.55, -0.5]];
    let mut stream = Stream::new(seed, b"veilsum like xclara     ");
    let mut parts = vec![Vec::new(); sites];
    for row in 0..rows {
        let near = MIDDLES[row % MIDDLES.len()].iter().zip(stream.normal_pair());
        parts[row % sites].extend(near.map(|(middle, x)| (middle + 0.13 * x).clamp(-1.0, 1.0)));
    }
    let domain = Domain::new(vec![-1.0; 2], vec![1.0; 2], Scaling::None)?;
    let parts = parts.into_iter().map(|part| Rows::new(part, 2)).collect::<Result<Vec<_>, _>>()?;
    let sites = harness::prepared(&parts, &domain)?;
    Ok((domain, sites))
}
