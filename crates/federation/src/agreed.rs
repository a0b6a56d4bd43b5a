//! What a federation agreed on: roster, terms and plan, and the proof from these alone that no sum of a run can overflow and
//! that no total can show a single site.

use std::sync::Arc;

use veilsum_proto::{
    identity::Identity,
    limits::{MAX_QUERY, MIN_SITES},
    plan::{Sites, Terms},
    roster::{PartyId, Roster},
};
pub use veilsum_proto::{identity::fingerprint, roster::check_sites};

use crate::{
    dp,
    error::Failure,
    plan::{Judge, PlanSpec},
    question::{Question, SumBounds},
};

/// What a federation agreed on, verified.
#[derive(Clone, Debug)]
pub struct Federation {
    /// Who takes part.
    pub roster: Arc<Roster>,
    /// Under which terms.
    pub terms: Arc<Terms>,
    /// What is computed: the application's part of the terms.
    pub work: Arc<PlanSpec>,
}

impl Federation {
    /// From a verified roster and verified terms: the method part is decoded and no sum can overflow.
    ///
    /// # Errors
    /// A [`Failure`] with the number at fault.
    pub fn new(roster: Roster, terms: Terms) -> Result<Federation, Failure> {
        let work = PlanSpec::from_bytes(&terms.application)?;
        if work.recipe.noise.is_none() && terms.sites == Sites::Any {
            let what = "exact totals over any sites that are left show what a site that leaves had sent: a plan without noise is over the \
                        same sites [POL-9]";
            return Err(Failure::input(what, "take sites = \"same\", or a plan with noise"));
        }
        prove(&roster, &terms, &work)?;
        Ok(Federation { roster: Arc::new(roster), terms: Arc::new(terms), work: Arc::new(work) })
    }

    /// Which party of the roster this identity is.
    ///
    /// # Errors
    /// A [`Failure`] where it is none of them.
    pub fn whoami(&self, identity: &Identity) -> Result<PartyId, Failure> {
        whoami(&self.roster, identity)
    }

    /// The form of all answers.
    ///
    /// # Errors
    /// A [`Failure`] where the method part cannot be used.
    pub fn form(&self) -> Result<SumBounds, Failure> {
        self.work.form(self.roster.sites.len(), self.terms.max_rows)
    }
}

/// As [`Federation::whoami`].
///
/// # Errors
/// A [`Failure`] where it is none of them.
pub fn whoami(roster: &Roster, identity: &Identity) -> Result<PartyId, Failure> {
    let key = identity.public();
    roster.find(&key).ok_or_else(|| {
        let ([own, on], name) = ([key.0, roster.hash().0].map(|bytes| fingerprint(&bytes)), &roster.name);
        let what = format!("this key (fingerprint {own}) is not on the roster {name} (fingerprint {on})");
        Failure::input(what, format!("check --key, or ask {} for an invitation", roster.coordinator.name))
    })
}

/// One question of every part of a run: the row count, then as the recipe would ask them.
///
/// # Errors
/// As [`PlanSpec::run`].
pub fn questions(work: &PlanSpec) -> Result<Vec<Question>, Failure> {
    let mut all = vec![Question::CountRows];
    all.extend(work.sample()?.into_iter().map(Question::Cluster));
    Ok(all)
}

/// Multiplications of one question at one site at most: about a day of one core.
const MAX_OPERATIONS: f64 = 1e14;

/// Proves from the plan alone that no sum of a run can overflow, and that its floor leaves more than one row a cluster.
///
/// # Errors
/// A [`Failure`] with the number at fault.
pub fn prove(roster: &Roster, terms: &Terms, work: &PlanSpec) -> Result<(), Failure> {
    let domain = work.domain()?;
    let sites = roster.sites.len();
    let form = work.form(sites, terms.max_rows)?;
    for question in questions(work)? {
        question.layout(&domain, &form).map_err(|e| {
            Failure::input(e, "make the plan again with a smaller max_rows (or K, where the vector is too long)")
        })?;
        let bytes = question.to_bytes().len();
        if bytes > MAX_QUERY {
            let what = format!("a question of {bytes} bytes; {MAX_QUERY} are possible");
            return Err(Failure::input(what, "lower K, the restarts or the number of columns in `veilsum plan new`"));
        }
    }
    if let (Some(spent), Some(noise)) = (dp::spent(work, &form)?, work.recipe.noise)
        && spent > noise.price()
    {
        let what = format!("a run costs a site {spent}, and the plan's price is {}", noise.price());
        return Err(Failure::input(what, "this is a defect, please report it"));
    }
    let operations = work.recipe.most_operations(terms.max_rows, domain.columns());
    if operations > MAX_OPERATIONS {
        let rows = terms.max_rows;
        let what = format!("a question could cost a site with {rows} rows {operations:.0e} operations, days of work");
        let next = "lower max_rows, K, the restarts, or a site's own steps in `veilsum plan new`";
        return Err(Failure::input(what, next));
    }
    if let Some(sampling) = &work.sampling {
        prove_sampling(roster.sites.len(), terms, sampling.count(sites))?;
    }
    prove_distances(work)?;
    let (k, floor) = (work.recipe.clusters.max, terms.min_total_rows);
    if floor < u64::from(k) {
        let what = format!(
            "the plan asks for K = {k} clusters, but its floor allows totals over {floor} rows (min_total_rows): with no more rows than \
             clusters, centres are rows"
        );
        let next = "lower --k in `veilsum plan new`; give another min_total_rows only where the sites are sure to have so many";
        return Err(Failure::input(what, next));
    }
    Ok(())
}

/// [APP-5]: where the intermediary judges, every site sends it K x K distances for each run side by side, in one frame.
fn prove_distances(work: &PlanSpec) -> Result<(), Failure> {
    let recipe = &work.recipe;
    let numbers: u64 = recipe.clusters.each().map(|k| u64::from(k).pow(2)).sum::<u64>() * u64::from(recipe.restarts);
    // A frame says what it holds besides, and how long each matrix is.
    let bytes = 8 * (numbers + recipe.clusters.count() as u64 * u64::from(recipe.restarts)) + 1_024;
    if work.judge == Judge::Intermediary && bytes > MAX_QUERY as u64 {
        let what =
            format!("where the intermediary judges, {numbers} distances between centres would go into one frame");
        return Err(Failure::input(what, "lower K or the restarts in `veilsum plan new`"));
    }
    Ok(())
}

/// [APP-6]: a sampled total is of the sites drawn alone, and the colluders could be among them.
fn prove_sampling(n: usize, terms: &Terms, drawn: usize) -> Result<(), Failure> {
    let (colluders, needed) = (terms.colluders_of(n), drawn_at_least(terms.colluders_of(n)));
    if drawn < needed {
        let what = format!(
            "{drawn} of {n} sites would be drawn for a round; with {colluders} that may collude with the coordinator, at least {needed} must \
             be, or a total could show a single site"
        );
        return Err(Failure::input(what, "raise sample in `veilsum plan new`"));
    }
    Ok(())
}

/// Sites that the total of any round of a run covers at least. Sites may go missing in every deck, and a smaller deck has a
/// smaller threshold.
pub fn covers_at_least(terms: &Terms, sites: usize) -> usize {
    let mut covers = sites;
    while let Ok(left) = terms.threshold_of(covers, sites).map(|t| t.max(terms.least(sites)))
        && left < covers
    {
        covers = left;
    }
    covers
}

/// [APP-6]: how many sites must be drawn, so that the colluders leave two honest ones.
pub fn drawn_at_least(colluders: usize) -> usize {
    (colluders + 2).max(MIN_SITES)
}
