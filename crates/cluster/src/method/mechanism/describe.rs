//! The noise of a description, repeated over totals that are those of the released one.

use super::{Mechanism, REPETITIONS};
use crate::algorithm::{Beginning, Walls};
use crate::method::{Description, Recipe};
use crate::random::Stream;
use crate::{Centres, Domain, Error, Query};

/// Descriptions as the plan's noise makes them of totals that are those of `found`, with `excess` times the planned deviation; none
/// without noise. Always the same for the same description.
///
/// # Errors
/// [`Error`] if `found` is none of this recipe.
pub fn descriptions(
    recipe: &Recipe,
    domain: &Domain,
    found: &Description,
    excess: f64,
) -> Result<Vec<Description>, Error> {
    let Some(mechanism) = Mechanism::of(recipe, domain, excess)? else { return Ok(Vec::new()) };
    let seed = found.means.first().map_or(0, |mean| mean.to_bits());
    let mut stream = Stream::new(seed, b"veilsum mechanism noise ");
    let start = Centres::new(1, domain.columns(), found.means.clone())?;
    (0..REPETITIONS).map(|_| mechanism.describe(found, &start, &mut stream)).collect()
}

impl Mechanism<'_> {
    fn describe(&self, found: &Description, start: &Centres, noise: &mut Stream) -> Result<Description, Error> {
        let domain = self.domain;
        let mut run = self.recipe.algorithm.begin(Beginning { noisy: true, ..Beginning::at(domain, start) })?;
        loop {
            let query = run.ask();
            let mut values = totals(found, &query).ok_or(Error::implausible("a description asks no such total"))?;
            self.add_noise(&query, &mut values, Some(noise));
            if run.take(&values, None, &Walls::fine(domain))? {
                return run.fit().description.ok_or(Error::implausible("a description without an end"));
            }
        }
    }
}

/// The totals of rows that are described so.
fn totals(found: &Description, query: &Query) -> Option<Vec<f64>> {
    let rows = found.rows as f64;
    let all = |each: Vec<f64>| std::iter::once(rows).chain(each.into_iter().map(|mean| rows * mean)).collect();
    Some(match query {
        Query::Missing(_) => found.missing.iter().map(|n| *n as f64).collect(),
        Query::Histogram(_) => {
            let bins = |bins: &Vec<u64>| std::iter::once(0.0).chain(bins.iter().map(|n| *n as f64)).collect::<Vec<_>>();
            found.histograms.iter().flat_map(bins).collect()
        }
        Query::Moments(of) => all(match &of.around {
            None => found.means.clone(),
            Some(around) => {
                let off = found.means.iter().zip(around).map(|(mean, around)| (mean - around).powi(2));
                found.variances.iter().zip(off).map(|(variance, off)| variance + off).collect()
            }
        }),
        _ => return None,
    })
}
