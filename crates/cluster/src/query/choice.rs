//! Which K each site would choose alone: both ends of the range of K (Stallmann & Wilbik 2022, framework paper, section 3.1).
//!
//! The paper tries `K_min = min_l K^(l)` to `K_min + max_l K^(l)`, where `K^(l)` is the number of clusters at the elbow of site l's
//! own curve. It reads elbows by eye, and minima where the curve begins with one; [`elbow_alone`] does so by rule. Here a site does not
//! tell its number: it adds 1 to the count of that K.

use serde::{Deserialize, Serialize};

use super::family::{Block, Family};
use super::local::LocalSteps;
use crate::distance::check_fuzzifier;
use crate::kernel::{Form, Sums};
use crate::validity::fuzzy_davies_bouldin;
use crate::{Centres, Domain, Error, Prepared, kernel, refuse};

/// The largest K that a site tries alone; bounds its time.
const MAX_LOCAL_K: u32 = 64;
/// Starts for each K at most.
const MAX_STARTS: u32 = 16;

/// Local fuzzy c-means for every K from `min` to `most`, from uniform starts in the box; 1 for the K at the elbow of the curve of
/// the fuzzy Davies-Bouldin index.
///
/// Totals: number of sites for each K (`most - min + 1`). A site with no more rows than K does not try that K; one that can
/// try none adds nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocalChoice {
    /// Smallest K, >= 2 (the index is not defined for one cluster).
    pub min: u32,
    /// Largest K, at most 64.
    pub most: u32,
    /// Fuzzifier, m > 1.
    pub m: f64,
    /// The site's iteration; it stops when the centres move less (Frobenius norm).
    pub local: LocalSteps,
    /// Seed of the first start; start s uses seed + s.
    pub seed: u64,
    /// Starts for each K, 1 to 16; the one of smallest objective counts.
    pub starts: u32,
}

impl LocalChoice {
    /// `K_min = min_l K^(l)` and `K_min + max_l K^(l)` from the totals; `None` where no site could choose.
    pub fn range(&self, totals: &[f64]) -> Option<(u32, u32)> {
        let k = |place: usize| Some(self.min.saturating_add(u32::try_from(place).ok()?));
        let lowest = k(totals.iter().position(|sites| *sites > 0.5)?)?;
        let largest = k(totals.iter().rposition(|sites| *sites > 0.5)?)?;
        Some((lowest, lowest.saturating_add(largest)))
    }

    /// The best of the starts for one K: its index.
    fn index(&self, rows: &Prepared, k: usize) -> Result<f64, Error> {
        let mut best = (f64::INFINITY, f64::INFINITY);
        for start in 0..self.starts {
            let seed = self.seed.wrapping_add(u64::from(start));
            let centres = self.settle(rows, Centres::uniform(rows.domain(), k, seed)?)?;
            let sums = kernel::fuzzy_validation(rows.packed(), &centres, self.m)?;
            if sums.objective < best.0 {
                let n = rows.len() as f64;
                best = (sums.objective, fuzzy_davies_bouldin(&centres, &sums.distances, &sums.memberships, n));
            }
        }
        Ok(best.1)
    }

    /// Local fuzzy c-means.
    fn settle(&self, rows: &Prepared, mut centres: Centres) -> Result<Centres, Error> {
        for _ in 0..self.local.most {
            let sums = kernel::fuzzy_sums(rows.packed(), &centres, self.m)?;
            let values = centres.averaged(&sums.weighted_sums, &sums.weights);
            let moved = Centres::new(centres.k(), centres.columns(), values)?;
            let shift = moved.frobenius_distance(&centres)?;
            centres = moved;
            if shift < self.local.epsilon || shift == 0.0 {
                break;
            }
        }
        Ok(centres)
    }
}

impl Family for LocalChoice {
    fn check(&self, _: &Domain) -> Result<(), Error> {
        check_fuzzifier(self.m)?;
        let rises = 2 <= self.min && self.min <= self.most && self.most <= MAX_LOCAL_K;
        refuse(!rises, || Error::Question("a site tries K from 2 to 64 alone"))?;
        self.local.check()?;
        refuse(!(1..=MAX_STARTS).contains(&self.starts), || Error::Question("a site tries 1 to 16 starts"))
    }

    fn layout(&self, _: &Domain) -> Vec<Block> {
        vec![Block::per_site("sites", (self.most - self.min + 1) as usize, 1.0)]
    }

    fn answer<'f>(&self, rows: &Prepared, form: &'f Form) -> Result<Sums<'f>, Error> {
        let mut sites = vec![0.0; (self.most - self.min + 1) as usize];
        let mut curve = Vec::new();
        for k in (self.min..=self.most).filter(|k| (*k as usize) < rows.len()) {
            let index = self.index(rows, k as usize)?;
            if index.is_finite() {
                curve.push((k, index));
            }
        }
        if let Some(k) = elbow_alone(&curve) {
            sites[(k - self.min) as usize] = 1.0;
        }
        Ok(form.whole(sites))
    }
}

/// The K of a site's curve (K and index, ascending K): the first if its index is the smallest; else the one whose index lies farthest
/// below the line from the first point to the last; if none lies below it, the one of smallest index. Among equals the smallest K.
pub fn elbow_alone(curve: &[(u32, f64)]) -> Option<u32> {
    let ((first, start), (last, end)) = (*curve.first()?, *curve.last()?);
    let least = curve.iter().min_by(|a, b| a.1.total_cmp(&b.1))?.0;
    if least == first {
        return Some(first);
    }
    let slope = (end - start) / f64::from(last - first);
    let mut deepest = (least, 0.0);
    for (k, index) in curve {
        let below = start + slope * f64::from(k - first) - index;
        // The ends lie on the line but for rounding.
        if below > deepest.1 && (first + 1..last).contains(k) {
            deepest = (*k, below);
        }
    }
    Some(deepest.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_goes_up_to_what_two_sites_together_hold() {
        let local = LocalSteps { most: 200, epsilon: 1e-6 };
        let choice = LocalChoice { min: 2, most: 5, m: 2.0, local, seed: 1, starts: 5 };
        assert_eq!(choice.range(&[1.0, 1.0, 0.0, 0.0]), Some((2, 5)));
        assert_eq!(choice.range(&[0.0, 1.0, 0.0, 3.0]), Some((3, 8)));
        assert_eq!(choice.range(&[0.0; 4]), None);
    }

    /// Curves of sites of the framework paper: five Gaussians (its Table 1), and bank clerks by job, whose elbows it reads at 5, 4, 3.
    #[test]
    fn an_elbow_is_read_by_rule() {
        for (values, k) in [
            (&[0.6426, 0.7289, 1.0637, 0.9260][..], Some(2)),
            (&[0.954, 0.776, 0.655, 0.516, 0.469, 0.481, 0.424, 0.385], Some(5)),
            (&[1.098, 0.714, 0.547, 0.589, 0.499, 0.451, 0.484, 0.441], Some(4)),
            (&[0.837, 0.589, 0.686, 0.695, 0.581, 0.512, 0.569, 0.597], Some(3)),
            // Nothing lies below a line, or there is no line.
            (&[1.0, 0.9, 0.7, 0.4], Some(5)),
            (&[1.0, 0.9], Some(3)),
            (&[1.0], Some(2)),
            (&[], None),
        ] {
            assert_eq!(elbow_alone(&(2..).zip(values.iter().copied()).collect::<Vec<_>>()), k, "{values:?}");
        }
    }
}
