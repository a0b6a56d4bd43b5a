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

/// Three clusters like those of xclara, dealt to sites, in the box [-1, 1]: rows and labels, and the domain.
///
/// # Errors
/// [`ExperimentError::Cluster`].
pub fn xclara_like(
    rows: usize,
    sites: usize,
    seed: u64,
) -> Result<(Domain, Vec<Prepared>, Vec<usize>), ExperimentError> {
    const MIDDLES: [[f64; 2]; 3] = [[-0.6, -0.45], [0.05, 0.65], [0.55, -0.5]];
    let mut stream = Stream::new(seed, b"veilsum like xclara     ");
    let (mut parts, mut labels) = (vec![Vec::new(); sites], vec![Vec::new(); sites]);
    for row in 0..rows {
        let label = row % MIDDLES.len();
        let near = MIDDLES[label].iter().zip(stream.normal_pair());
        parts[row % sites].extend(near.map(|(middle, x)| (middle + 0.13 * x).clamp(-1.0, 1.0)));
        labels[row % sites].push(label);
    }
    let domain = Domain::new(vec![-1.0; 2], vec![1.0; 2], Scaling::None)?;
    let parts = parts.into_iter().map(|part| Rows::new(part, 2)).collect::<Result<Vec<_>, _>>()?;
    let sites = harness::prepared(&parts, &domain)?;
    Ok((domain, sites, labels.concat()))
}

#[cfg(test)]
mod tests {
    use veilsum_cluster::{Algorithm, method::Seeding, metrics, privacy::Noise};

    use super::*;

    /// Sites of a cohort of 20 in all, of which all answer and 6 may collude.
    const SITES: usize = 20;

    #[test]
    fn noise_of_a_small_rho_costs_nothing_on_three_clear_clusters() {
        let (domain, sites, labels) = xclara_like(3000, SITES, 1).unwrap();
        let rows = Rows::pooled(&sites.iter().map(|site| site.packed().to_rows()).collect::<Vec<_>>()).unwrap();
        let half = domain.diameter() / (domain.columns() as f64).sqrt() / 2.0;
        // The outcome, its adjusted Rand index, and the distances to the centres without noise, added up, in half widths of the box.
        // Twenty sites add noise of which two make the planned one; here fourteen do.
        let run = |rho: f64, seed: u64| {
            let fcm = Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 10 };
            let mut recipe = Recipe::plain(fcm, 3, Seeding::Uniform { seed: 100 + seed });
            let plain = noisy(&recipe, &domain, &sites, seed).unwrap();
            recipe.noise = Some(Noise::usual(7.0 * rho, 3000).from_anywhere());
            let outcome = noisy(&recipe, &domain, &sites, seed).unwrap();
            let found = harness::labels(&rows, &outcome.centres).unwrap();
            let rand = metrics::adjusted_rand_index(&found, &labels).unwrap();
            let gap = crate::gap::gap_by_permutation(&outcome.centres, &plain.centres).unwrap() / half;
            (outcome, rand, gap)
        };
        for seed in 0..3 {
            println!("seed {seed}");
            let (outcome, rand, gap) = run(0.0244, seed);
            assert!(rand >= 0.99, "{rand}");
            assert!(gap > 1e-4 && gap < 0.3, "{gap}");
            assert_eq!(outcome.rounds, 10);
            // Noise is there: with a hundred times more of it nothing is left.
            let drowned = run(0.0003, seed).2;
            assert!(drowned > gap, "{drowned} {gap}");
            let off = (outcome.n_total.unwrap() as f64 - 3000.0).abs();
            assert!(off < 1000.0, "{off}");
        }
    }
}
