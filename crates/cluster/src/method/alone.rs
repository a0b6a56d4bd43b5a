//! Exact federated fuzzy c-means alone, from given centres and without a box: the plainest run.

use super::recipe::{Recipe, Seeding};
use super::run::Run;
use super::{Method, Step};
use crate::algorithm::{Algorithm, Fit};
use crate::validity::Verdict;
use crate::{Centres, Domain, MethodError, Scaling, Totals};

/// What a run of [`Fcm`] needs to know. Checked by [`Fcm::new`].
#[derive(Debug, Clone, PartialEq)]
pub struct FcmParams {
    /// Number of clusters, K >= 1.
    pub k: usize,
    /// Fuzzifier, m > 1.
    pub m: f64,
    /// Stop when the Frobenius norm of the centres' shift (working units) is below it; 0 runs all rounds.
    ///
    /// It is a test on movement, not on convergence: at a saddle the centres may rest for a while.
    pub epsilon: f64,
    /// At most so many updates of the centres, >= 1.
    pub max_rounds: u32,
    /// First centres, K x d, working units.
    pub start: Centres,
}

/// Exact federated fuzzy c-means from given centres, with the totals of fuzzy Davies-Bouldin and the objective at the end:
/// the plainest [`Run`].
#[derive(Debug, Clone)]
pub struct Fcm(Run);

impl Fcm {
    /// A run that has not asked anything yet.
    ///
    /// # Errors
    /// [`MethodError`] naming the parameter. That K does not exceed the number of rows is checked with the first totals
    /// that come with that number.
    pub fn new(params: FcmParams) -> Result<Self, MethodError> {
        let FcmParams { k, m, epsilon, max_rounds, start } = params;
        let d = start.columns();
        // The box is not known here; no bound is as good as one that nothing reaches.
        let domain = Domain::known(vec![-1e150; d], vec![1e150; d], Scaling::None);
        let k = u32::try_from(k).unwrap_or(u32::MAX);
        let fcm = Algorithm::Fcm { m, epsilon, max_rounds };
        Run::new(Recipe::plain(fcm, k, Seeding::Given { centres: start }), &domain, 1).map(Self)
    }

    /// Where it stands: the current centres (working units) and the shifts of the rounds so far.
    pub fn fit(&self) -> Fit {
        self.0.fits().swap_remove(0)
    }
}

impl Method for Fcm {
    fn next(&mut self, totals: Option<&Totals>) -> Result<Step, MethodError> {
        self.0.next(totals)
    }

    fn judged(&mut self, verdicts: &[Verdict]) -> Result<Step, MethodError> {
        self.0.judged(verdicts)
    }
}
