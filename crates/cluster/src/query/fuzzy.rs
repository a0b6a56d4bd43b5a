//! The questions of federated fuzzy c-means: the sums of one round, and the totals of the basic validation.

use serde::{Deserialize, Serialize};

use super::family::{Block, Family, ShowsRows, fuzzy_centres, reaches};
use crate::kernel::{Form, Sums};
use crate::scale::reach;
use crate::validity::{self, Geometry, Verdict};
use crate::{Centres, Domain, Error, Prepared, kernel};

/// `WS_k = sum_j u_jk^m x_j` (K x d) and `U_k = sum_j u_jk^m` (K): one round of federated FCM (Bárcena et al. 2021,
/// Algorithm 2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FuzzySums {
    /// Current centres, K x d.
    pub centres: Centres,
    /// Fuzzifier, m > 1.
    pub m: f64,
}

/// `D_k = sum_j ||x_j - c_k||` over all rows (K), `A_k = sum_j u_jk` (K) and `J_m = sum_jk u_jk^m ||x_j - c_k||^2`
/// (1): what FedFuzzDB (Stallmann & Wilbik 2022, Eqs. 15-17, q = 1) and the objective need.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FuzzyValidation {
    /// Final centres, K x d.
    pub centres: Centres,
    /// Fuzzifier, m > 1.
    pub m: f64,
}

impl Family for FuzzySums {
    fn check(&self, domain: &Domain) -> Result<(), Error> {
        fuzzy_centres(&self.centres, self.m, domain)
    }

    fn layout(&self, domain: &Domain) -> Vec<Block> {
        let k = self.centres.k();
        vec![
            Block::per_row("weighted_sums", k * self.centres.columns(), domain.largest()),
            Block::per_row("weights", k, 1.0),
        ]
    }

    fn answer<'f>(&self, rows: &Prepared, form: &'f Form) -> Result<Sums<'f>, Error> {
        Ok(kernel::fuzzy_forms(rows.packed(), &[&self.centres], self.m, std::slice::from_ref(form))?.swap_remove(0))
    }

    fn shows_rows(&self) -> Option<ShowsRows> {
        Some(ShowsRows { block: "weights", blocks: Some(2) })
    }
}

impl Family for FuzzyValidation {
    fn check(&self, domain: &Domain) -> Result<(), Error> {
        fuzzy_centres(&self.centres, self.m, domain)
    }

    fn layout(&self, domain: &Domain) -> Vec<Block> {
        let k = self.centres.k();
        let (reaches, nearest) = reaches(&self.centres, domain);
        vec![
            Block::per_row("distances", k, reaches.into_iter().fold(0.0, f64::max)),
            Block::per_row("memberships", k, 1.0),
            // One row adds min over u of sum_k u^m d^2 to J, hence at most its squared distance to any one centre.
            Block::per_row("objective", 1, nearest * nearest),
        ]
    }

    fn answer<'f>(&self, rows: &Prepared, form: &'f Form) -> Result<Sums<'f>, Error> {
        kernel::validation_form(rows.packed(), &self.centres, self.m, form)
    }

    fn shows_rows(&self) -> Option<ShowsRows> {
        Some(ShowsRows { block: "memberships", blocks: Some(3) })
    }

    /// Centres lie in the box, so no row is farther from one than its diagonal; and the weighted squares of one row add up
    /// to less than with equal memberships.
    fn sensitivity(&self, domain: &Domain) -> Option<Vec<f64>> {
        let (k, far) = (self.centres.k() as f64, 2.0 * reach(domain));
        Some(vec![k.sqrt() * far, 1.0, far * far * k.powf(1.0 - self.m)])
    }

    fn verdict(&self, geometry: Geometry<'_>, values: &[f64], rows: Option<u64>) -> Result<Verdict, Error> {
        validity::basic(&self.centres, geometry, values, rows)
    }
}
