//! Validity where the intermediary judges ([APP-5]): it opens the totals that the indices need and knows no centre, only how far
//! the centres are from each other; the coordinator knows the centres and gets the indices (the framework's second option,
//! Stallmann & Wilbik 2022).

use veilsum_cluster::{
    Batch, Block, Centres, Domain, Query, Scaling,
    validity::{Geometry, Verdict},
};

use crate::{
    app_messages::{CentreDistances, JudgeRequest},
    error::{Code, Failure},
    plan::PlanSpec,
    question::{self, Layout, Question, SumBounds},
};

/// What the coordinator asks the intermediary to judge.
///
/// # Errors
/// A [`Failure`] where the question does not fit the plan.
pub fn request(batch: &Batch, plan: &PlanSpec, form: &SumBounds) -> Result<JudgeRequest, Failure> {
    let layout = Layout::of_judged(batch, &plan.domain()?, form)?;
    Ok(JudgeRequest {
        digest: question::digest(batch),
        clusters: batch.queries.iter().flat_map(Query::points).map(|c| c.k() as u32).collect(),
        exponents: layout.exponents(),
    })
}

/// What a site says of the centres that it was asked to hold.
pub fn distances(batch: &Batch) -> CentreDistances {
    let matrices = batch.queries.iter().flat_map(|q| q.points().into_iter().map(distances_between)).collect();
    CentreDistances { digest: question::digest(batch), matrices }
}

/// Euclidean distances between centres, K x K.
fn distances_between(centres: &Centres) -> Vec<f64> {
    let apart = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt();
    centres.rows().flat_map(|a| centres.rows().map(move |b| apart(a, b))).collect()
}

/// What the intermediary asks, and how it reads the answer, without a centre.
pub struct Oracle {
    request: JudgeRequest,
    /// Questions of the right shape about no place in particular.
    queries: Vec<Query>,
    layout: Layout,
    domain: Domain,
}

impl Oracle {
    /// From what the coordinator asks.
    ///
    /// # Errors
    /// A [`Failure`] where that does not fit the plan.
    pub fn new(plan: &PlanSpec, request: &JudgeRequest, form: &SumBounds) -> Result<Oracle, Failure> {
        let columns = plan.names().len();
        let recipe = &plan.recipe;
        let members = recipe.clusters.count() * recipe.restarts as usize;
        let wrong =
            |what: &str| Failure::new(Code::Peer, format!("the coordinator's request {what}"), "speak to its operator");
        if request.clusters.is_empty() || request.clusters.len() > members {
            return Err(wrong("does not have one K for each run of the plan"));
        }
        let mut queries = Vec::with_capacity(request.clusters.len());
        for k in &request.clusters {
            if !recipe.clusters.each().any(|planned| planned == *k) {
                return Err(wrong("names a K that the plan does not"));
            }
            let centres = Centres::new(*k as usize, columns, vec![0.0; *k as usize * columns])?;
            queries.push(recipe.validation_of(centres));
        }
        let domain = Domain::new(vec![0.0; columns], vec![1.0; columns], Scaling::None)?;
        let blocks: Vec<Block> = queries.iter().flat_map(|query| query.layout(&domain)).collect();
        let layout = Layout::with_exponents(blocks, &request.exponents, form)?;
        Ok(Oracle { request: request.clone(), queries, layout, domain })
    }

    /// The question to the sites, and the words of an answer.
    pub fn question(&self) -> (Question, usize) {
        let words = self.layout.words();
        let named = u32::try_from(words).unwrap_or(u32::MAX);
        (Question::Judge { digest: self.request.digest, words: named }, words)
    }

    /// Whether a site's distances are about what was asked.
    pub fn fits(&self, found: &CentreDistances) -> bool {
        let shaped = |(matrix, k): (&Vec<f64>, &u32)| {
            matrix.len() == (*k as usize) * (*k as usize) && matrix.iter().all(|x| x.is_finite() && *x >= 0.0)
        };
        found.digest == self.request.digest
            && found.matrices.len() == self.request.clusters.len()
            && found.matrices.iter().zip(&self.request.clusters).all(shaped)
    }

    /// The verdicts on a total over `sites` sites, of `rows` rows where that is known.
    ///
    /// # Errors
    /// A [`Failure`] where the total is none that rows can give.
    pub fn verdicts(
        &self,
        distances: &CentreDistances,
        values: &[u64],
        sites: usize,
        rows: Option<u64>,
    ) -> Result<Vec<Verdict>, Failure> {
        let totals = self.layout.decode(values, sites, rows)?.values;
        let mut rest = totals.as_slice();
        let mut verdicts = Vec::with_capacity(self.queries.len());
        for (query, matrix) in self.queries.iter().zip(&distances.matrices) {
            let (head, tail) = rest.split_at_checked(query.words(&self.domain)).unwrap_or((rest, &[]));
            rest = tail;
            let verdict = query.verdict(Geometry::Apart(matrix, self.domain.columns()), head, rows);
            verdicts.push(verdict?);
        }
        Ok(verdicts)
    }
}
