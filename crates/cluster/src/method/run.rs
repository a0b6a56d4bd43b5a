//! The whole conversation of a recipe: preparation, seeding, every K and restart side by side, validity, the choice.

mod gap;
mod outcome;

use super::dp::spread;
use super::prepare::Preparing;
use super::recipe::{Recipe, Seeding};
use super::seed::{CandidateSearch, Candidates, SeedPoints};
use super::{Outcome, Step};
use crate::algorithm::{Beginning, Fit, Iteration, Walls, confined};
use crate::offline::earliest_best;
use crate::privacy::{excess, settled};
use crate::query::{LocalChoice, Stage};
use crate::totals_check::check_values;
use crate::validity::{DaviesBouldin, Geometry, Verdict};
use crate::{Batch, Centres, Domain, Error, Query, Totals, Transform, refuse};

/// One K and restart.
#[derive(Clone)]
struct Member {
    k: u32,
    restart: u32,
    /// The best other partition over the candidates of first centres, under noise.
    rival: Option<f64>,
    iteration: Box<dyn Iteration>,
    over: bool,
    verdict: Option<Verdict>,
    /// The cohort of the last totals that it took.
    cohort: u32,
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member").field("k", &self.k).field("restart", &self.restart).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
enum State {
    Preparing(Box<Preparing>),
    Ranging(LocalChoice),
    Seeding(Box<CandidateSearch>),
    Iterating,
    Validating,
    Finished,
}

/// The conversation of a [`Recipe`].
///
/// All K and restarts run side by side: each round is one vector, the concatenation of theirs, so that a sweep takes the
/// rounds of its longest member. A question that two of them share is asked once.
#[derive(Debug, Clone)]
pub struct Run {
    recipe: Recipe,
    /// The box in the units of the questions.
    domain: Domain,
    public: Domain,
    sites: u32,
    /// The noise of a total over the planned one.
    excess: f64,
    /// Of the plan's range of K, before sites have narrowed it.
    most_points: u32,
    /// As in [`Walls`], and as far as totals really are rounded.
    rounding: f64,
    rounded: f64,
    transform: Option<Transform>,
    candidates: Option<SeedPoints>,
    members: Vec<Member>,
    /// Places in `members` of the best restart of every K, once they are judged.
    best: Vec<usize>,
    state: State,
    asked: bool,
    questions: u32,
    notes: Vec<String>,
    /// The cohort of the totals that come now, of those that standardised, and of the verdicts.
    cohort: u32,
    prepared_over: u32,
    judged_over: Option<u32>,
}

impl Run {
    fn new(recipe: Recipe, domain: &Domain, sites: u32) -> Result<Self, Error> {
        recipe.check(domain)?;
        let most_points = recipe.most_points();
        let DaviesBouldin { p, q } = recipe.validity.davies_bouldin;
        let notes = match (p, q) {
            (2.0, 1.0) => Vec::new(),
            _ => vec![format!("both Davies-Bouldin indices have the exponents p = {p} and q = {q}")],
        };
        let preparing = Preparing::new(recipe.preparation, domain, recipe.noise.is_some())?;
        let mut run = Self {
            recipe,
            domain: domain.clone(),
            public: domain.clone(),
            sites,
            excess: excess(sites as usize),
            most_points,
            rounding: Walls::fine(domain).rounding,
            rounded: 0.0,
            transform: None,
            candidates: None,
            members: Vec::new(),
            best: Vec::new(),
            state: State::Iterating,
            asked: false,
            questions: 0,
            notes,
            cohort: 0,
            prepared_over: 0,
            judged_over: None,
        };
        match preparing {
            Some(preparing) => run.state = State::Preparing(Box::new(preparing)),
            None => run.range()?,
        }
        Ok(run)
    }

    /// For totals with a step of at least so large a part of a row's largest value: means may then be off by what rounding
    /// at all sites adds up to.
    #[must_use]
    pub fn coarse(mut self, step: f64) -> Self {
        self.rounded = self.rounded.max(f64::from(self.sites) * step);
        self.rounding = self.rounding.max(self.rounded);
        self
    }

    /// The totals and verdicts that are given from now on are over this cohort, by whatever number the caller has for it; 0 until
    /// it is said. Sites may be lost between two questions, and a result says which of its numbers are over which cohort.
    pub fn over(&mut self, cohort: u32) {
        self.cohort = cohort;
    }

    /// The current centres of every K and restart, in the units of the questions.
    pub fn fits(&self) -> Vec<Fit> {
        self.members.iter().map(|member| member.iteration.fit()).collect()
    }

    /// Whether its totals carry noise on purpose.
    fn is_noisy(&self) -> bool {
        self.recipe.noise.is_some()
    }

    /// In which part the run is; `None` when it is over.
    pub fn stage(&self) -> Option<Stage> {
        Some(match self.state {
            State::Preparing(_) => Stage::Preparing,
            State::Ranging(_) => Stage::Ranging,
            State::Seeding(_) => Stage::Seeding,
            State::Iterating => Stage::Iterating,
            State::Validating => Stage::Validating,
            State::Finished => return None,
        })
    }

    /// On to the range of K, or past it.
    fn range(&mut self) -> Result<(), Error> {
        let Some(choice) = self.recipe.local_choice() else { return self.seed() };
        self.state = State::Ranging(choice);
        Ok(())
    }

    /// On to seeding, or past it.
    fn seed(&mut self) -> Result<(), Error> {
        let Seeding::Candidates(params) = &self.recipe.seeding else { return self.begin() };
        let levels = self.recipe.levels(&self.domain)?;
        let search = CandidateSearch::new(params, self.most_points, levels.as_ref(), &self.domain)?;
        self.state = State::Seeding(Box::new(search));
        Ok(())
    }

    /// Starts every K and restart.
    fn begin(&mut self) -> Result<(), Error> {
        let mut members = Vec::new();
        let mut lacking = None;
        for k in self.recipe.clusters.each() {
            for restart in 0..self.recipe.restarts {
                match self.member(k, restart) {
                    Ok(member) => members.push(member),
                    // Of a method whose anchors are the candidates.
                    Err(error @ Error::TooFewAnchors { .. }) => {
                        lacking.get_or_insert((k, error));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        if let Some((k, error)) = lacking {
            if members.is_empty() {
                return Err(error);
            }
            self.notes.push(format!("K from {k} on was left out: {error}"));
        }
        self.members = members;
        self.state = State::Iterating;
        Ok(())
    }

    /// One K and restart at its beginning.
    fn member(&self, k: u32, restart: u32) -> Result<Member, Error> {
        let seed = self.recipe.seeding.seed().wrapping_add(u64::from(restart));
        let (start, rival) = self.start(k as usize, seed)?;
        let anchors = self.anchors(k)?;
        let (anchors, noisy, stop) = (anchors.as_ref(), self.is_noisy(), self.recipe.stop);
        let at = Beginning { domain: &self.domain, start: &start, anchors, seed, noisy, stop };
        let iteration = self.recipe.begin(at)?;
        Ok(Member { k, restart, rival, iteration, over: false, verdict: None, cohort: self.cohort })
    }

    /// The points that an algorithm asks about in place of centres, as many as it wants or as hold rows.
    fn anchors(&self, k: u32) -> Result<Option<Centres>, Error> {
        let (Some(most), Some(candidates), Seeding::Candidates(Candidates { seed, tries, .. })) =
            (self.recipe.algorithm.traits().anchors(self.recipe.clusters.max), &self.candidates, &self.recipe.seeding)
        else {
            return Ok(None);
        };
        let anchors = candidates.count().min(most as usize);
        refuse(anchors < k as usize, || Error::TooFewAnchors { k: k as usize, anchors })?;
        candidates.start(anchors, *seed, *tries).map(Some)
    }

    /// First centres from this seed, in the units of the questions, before their rival.
    fn start(&self, k: usize, seed: u64) -> Result<(Centres, Option<f64>), Error> {
        match &self.recipe.seeding {
            Seeding::Uniform { .. } => {
                let drawn = if self.is_noisy() { spread } else { Centres::uniform };
                Ok((drawn(&self.domain, k, seed)?, None))
            }
            Seeding::Given { centres } => match &self.transform {
                // Rows are clipped, so a centre beyond them goes to the edge as well.
                Some(transform) => Ok((confined(&transform.centres(centres)?, &self.domain), None)),
                None => Ok((centres.clone(), None)),
            },
            Seeding::Candidates(params) => {
                let found = self.candidates.as_ref().ok_or_else(|| Error::parameter("seeding has not run"))?;
                let (start, rival) = found.start_and_rival(k, (seed, params.tries), &self.domain)?;
                Ok((start, rival.filter(|_| self.is_noisy())))
            }
        }
    }

    /// The open question.
    fn open(&self) -> Result<Batch, Error> {
        let queries = match &self.state {
            State::Preparing(preparing) => vec![preparing.ask()],
            State::Ranging(choice) => vec![Query::LocalChoice(choice.clone())],
            State::Seeding(search) => vec![search.ask()],
            State::Iterating => {
                let mut queries: Vec<Query> = Vec::new();
                for member in self.members.iter().filter(|member| !member.over) {
                    let query = member.iteration.ask();
                    if !queries.contains(&query) {
                        queries.push(query);
                    }
                }
                queries
            }
            State::Validating => {
                let ask = |member: &Member| self.recipe.validation_of(member.iteration.fit().centres);
                self.members.iter().map(ask).collect()
            }
            State::Finished => return Err(Error::Finished),
        };
        Ok(Batch { transform: self.transform.clone(), queries })
    }

    fn ask(&mut self) -> Result<Step, Error> {
        let batch = self.open()?;
        self.asked = true;
        Ok(Step::Ask(batch))
    }

    /// The totals of the open question, checked for shape, one slice a query.
    fn split<'a>(&self, batch: &Batch, totals: &'a Totals) -> Result<Vec<&'a [f64]>, Error> {
        let domain = batch.domain(&self.public)?;
        let lengths: Vec<usize> = batch.queries.iter().map(|query| query.words(&domain)).collect();
        check_values(&totals.values, lengths.iter().sum())?;
        let mut rest = totals.values.as_slice();
        Ok(lengths.into_iter().map_while(|length| rest.split_off(..length)).collect())
    }

    /// Takes the totals of the open question. Works on a copy: after an error nothing has changed.
    fn take(&mut self, totals: &Totals) -> Result<Step, Error> {
        let batch = self.open()?;
        let parts = self.split(&batch, totals)?;
        // Under noise no count is the number of rows.
        let rows = totals.rows.filter(|_| !self.is_noisy());
        let mut next = self.clone();
        match &mut next.state {
            State::Preparing(preparing) => {
                if let Some((transform, notes)) = preparing.take(&totals.values, rows)? {
                    next.domain = transform.domain(&next.public).map_err(|error| {
                        Error::implausible(format!("the totals give no usable standardisation: {error}"))
                    })?;
                    (next.transform, next.prepared_over) = (Some(transform), self.cohort);
                    next.notes.extend(notes);
                    next.range()?;
                }
            }
            State::Ranging(choice) => {
                let clusters = &mut next.recipe.clusters;
                match choice.range(&totals.values) {
                    Some((lower, upper)) => {
                        clusters.min = lower.clamp(clusters.min, clusters.max);
                        clusters.max = upper.clamp(clusters.min, clusters.max);
                    }
                    None => next.notes.push("no site could choose a K alone: the whole range was tried".into()),
                }
                next.seed()?;
            }
            State::Seeding(search) => {
                if let Some(points) = search.take(&totals.values)? {
                    next.candidates = Some(points);
                    next.begin()?;
                }
            }
            State::Iterating => {
                let walls = Walls { domain: self.domain.clone(), rounding: self.rounding };
                for member in next.members.iter_mut().filter(|member| !member.over) {
                    let query = member.iteration.ask();
                    let at = batch.queries.iter().position(|asked| *asked == query).unwrap_or(0);
                    member.over = member.iteration.take(parts[at], rows, &walls)?;
                    member.cohort = self.cohort;
                }
                if next.members.iter().all(|member| member.over) {
                    match next.recipe.algorithm.traits().describes {
                        // It has no clusters to judge.
                        Some(_) => (next.state, next.best) = (State::Finished, vec![0]),
                        None => next.state = State::Validating,
                    }
                }
            }
            State::Validating => {
                let by = next.recipe.validity.davies_bouldin;
                let verdict = |((query, values), member): ((&Query, &&[f64]), &Member)| {
                    let centres = member.iteration.fit().centres;
                    let settled = self.is_noisy().then(|| settled(query, values, &self.domain));
                    query.verdict(Geometry::Centres(&centres, by), settled.as_deref().unwrap_or(values), rows)
                };
                let asked = batch.queries.iter().zip(&parts).zip(&next.members);
                let verdicts = asked.map(verdict).collect::<Result<Vec<_>, _>>()?;
                next.take_verdicts(&verdicts)?;
            }
            State::Finished => return Err(Error::Finished),
        }
        next.questions += 1;
        *self = next;
        self.go_on()
    }

    /// Asks on, or hands over the result.
    fn go_on(&mut self) -> Result<Step, Error> {
        match self.state {
            State::Finished => Ok(Step::Done(Box::new(self.outcome()?))),
            _ => self.ask(),
        }
    }

    /// One step of the conversation.
    ///
    /// `None` asks for the open question: the first one at the start, and the same one again as long as its totals have
    /// not come (a round that failed may be repeated). `Some` answers the open question.
    ///
    /// # Errors
    /// [`Error`]; after [`Error::Implausible`] the state is as before, so that the round may be repeated.
    pub fn next(&mut self, totals: Option<&Totals>) -> Result<Step, Error> {
        refuse(matches!(self.state, State::Finished), || Error::Finished)?;
        let Some(totals) = totals else { return self.ask() };
        refuse(!self.asked, || Error::NotAsked)?;
        let k = self.recipe.clusters.min as usize;
        refuse(!self.is_noisy() && totals.rows.is_some_and(|rows| (k as u64) > rows), || Error::TooFewRows(k))?;
        self.take(totals)
    }

    /// Answers an open validation question with verdicts that somebody else drew from its totals (the intermediary), one
    /// for each query of the batch.
    ///
    /// # Errors
    /// [`Error::NotAsked`] where no such question is open.
    pub fn judged(&mut self, verdicts: &[Verdict]) -> Result<Step, Error> {
        refuse(!self.asked || !matches!(self.state, State::Validating), || Error::NotAsked)?;
        let mut next = self.clone();
        next.take_verdicts(verdicts)?;
        next.questions += 1;
        *self = next;
        self.go_on()
    }

    /// The whole conversation, with the totals of every question from `answer`.
    ///
    /// # Errors
    /// [`Error`] from either side.
    pub fn through(
        &mut self,
        mut answer: impl FnMut(Option<Stage>, &Batch) -> Result<Totals, Error>,
    ) -> Result<Outcome, Error> {
        let mut step = self.next(None)?;
        loop {
            match step {
                Step::Done(outcome) => return Ok(*outcome),
                Step::Ask(batch) => step = self.next(Some(&answer(self.stage(), &batch)?))?,
            }
        }
    }

    fn take_verdicts(&mut self, verdicts: &[Verdict]) -> Result<(), Error> {
        let each = verdicts.len() == self.members.len();
        refuse(!each, || Error::implausible("there is not one verdict for every run"))?;
        for (member, verdict) in self.members.iter_mut().zip(verdicts) {
            member.verdict = Some(verdict.clone());
        }
        let run = &*self;
        let of = |k: u32| (0..run.members.len()).filter(move |at| run.members[*at].k == k);
        let best = |k: u32| of(k).nth(earliest_best(of(k).map(|at| run.objective(at))));
        self.best = self.recipe.clusters.each().filter_map(best).collect();
        self.compare_with_references()?;
        self.judged_over = Some(self.cohort);
        self.state = State::Finished;
        Ok(())
    }
}

impl Recipe {
    /// The conversation at its beginning, over the public box `domain`, for a cohort of `sites` sites.
    ///
    /// # Errors
    /// Those of [`Recipe::check`].
    pub fn run(&self, domain: &Domain, sites: u32) -> Result<Run, Error> {
        Run::new(self.clone(), domain, sites)
    }
}
