//! Fuzzy feature vectors added into shared anchors (FFCF, Urio-Larrea).

use serde::{Deserialize, Serialize};

use super::family::{Block, Family};
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
        domain.same_columns(self.anchors.columns())?;
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
