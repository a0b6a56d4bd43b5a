//! Fuzzy feature vectors added into shared anchors (FFCF, Urio-Larrea).

use serde::{Deserialize, Serialize};

use super::family::{Block, Family, same_columns};
use crate::kernel::{Form, Sums};
use crate::offline::features::{FeatureParams, Rules, features, usable_params};
use crate::{Centres, Domain, Error, Prepared, distance};

/// Each feature vector counts at the nearest anchor.
///
/// Blocks, in this order: `LS` (B x d), `M` (B), `Q = SS + |LS|^2 / M` (B). They add up to exact merges: mean `LS / M`,
/// scatter `Q - |LS|^2 / M`. The number of rows is not among them: it tells a large site from a small one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Features {
    /// Shared anchors, B x d.
    pub anchors: Centres,
    /// The site's own part.
    pub params: FeatureParams,
}

impl Family for Features {
    fn check(&self, domain: &Domain) -> Result<(), Error> {
        same_columns(&self.anchors, domain)?;
        usable_params(&self.params).map_err(Error::Question)
    }

    fn layout(&self, domain: &Domain) -> Vec<Block> {
        let (b, d) = (self.anchors.k(), domain.columns());
        let largest = domain.largest();
        let longest = domain.reach(&vec![0.0; d]);
        // A row that is added adds u |x|^2 and u^2 / (M + u) ||x - c||^2 to each Q, with M >= 1 and memberships that add up
        // to 1; merges add nothing.
        let square = longest * longest + domain.diameter().powi(2) / 2.0;
        vec![Block::per_row("LS", b * d, largest), Block::per_row("M", b, 1.0), Block::per_row("Q", b, square)]
    }

    fn answer<'f>(&self, rows: &Prepared, form: &'f Form) -> Result<Sums<'f>, Error> {
        let (b, d) = (self.anchors.k(), self.anchors.columns());
        let (mut ls, mut m, mut q) = (vec![0.0; b * d], vec![0.0; b], vec![0.0; b]);
        for feature in features(&rows.packed().to_rows(), &self.params, Rules::Conserving) {
            let (at, _) = distance::nearest(&feature.centre(), self.anchors.rows());
            ls[at * d..(at + 1) * d].iter_mut().zip(&feature.ls).for_each(|(total, sum)| *total += sum);
            m[at] += feature.m;
            q[at] += feature.square();
        }
        Ok(form.whole([ls, m, q].concat()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, Query, Scaling, answer};
    use proptest::prelude::*;

    fn domain() -> Domain {
        Domain::new(vec![-1.0, 0.0], vec![1.0, 4.0], Scaling::None).unwrap()
    }

    fn question() -> Features {
        let anchors = Centres::from_rows(&[vec![0.0, 1.0], vec![0.0, 3.0], vec![9.0, 9.0]]).unwrap();
        Features { anchors, params: FeatureParams { min: 2, max: 4, tau: 1.0, m: 2.0 } }
    }

    fn ask(question: &Features, rows: &[f64]) -> Vec<f64> {
        answer(&Batch::from(Query::Features(question.clone())), &Prepared::known(rows, &domain())).unwrap().values
    }

    #[test]
    fn an_empty_site_adds_nothing() {
        assert_eq!(ask(&question(), &[]), vec![0.0; 3 * 2 + 6]);
    }

    proptest! {
        #[test]
        fn totals_keep_the_mass_and_their_bounds(
            values in prop::collection::vec((-1.0f64..=1.0, 0.0f64..=4.0), 0..60),
            m in prop::sample::select(vec![1.1, 2.0, 3.0]),
        ) {
            let rows: Vec<f64> = values.iter().flat_map(|(x, y)| [*x, *y]).collect();
            let mut question = question();
            question.params.m = m;
            let found = ask(&question, &rows);
            let n = values.len() as f64;
            prop_assert!((found[6..9].iter().sum::<f64>() - n).abs() <= 1e-12 * n);
            let mut rest = found.as_slice();
            for block in question.layout(&domain()) {
                let (head, tail) = rest.split_at(block.len);
                prop_assert!(head.iter().all(|x| x.abs() <= block.bound * n * (1.0 + 1e-12)), "{}", block.name);
                rest = tail;
            }
            prop_assert!(rest.is_empty());
            // The scatter that the totals imply is never negative.
            for (at, m) in found[6..9].iter().enumerate().filter(|(_, m)| **m > 0.0) {
                let ls = &found[2 * at..2 * at + 2];
                let scatter = found[9 + at] - (ls[0] * ls[0] + ls[1] * ls[1]) / m;
                prop_assert!(scatter >= -1e-10 * (1.0 + found[9 + at]));
            }
        }
    }
}
