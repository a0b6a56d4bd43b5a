//! Before anything leaves: what a whole plan would give away of these rows, and whether a site's policy lets it (spec section
//! 11, [POL-9]). Numbers one by one are an upper bound; the rank of smooth questions is an estimate, from a trial run on
//! generated rows.

use veilsum_cluster::{
    Algorithm, Domain, Method, OutOfBox, Prepared, Query, Rows, Step, Totals, answer_with_noise,
    method::{Seeding, Stage},
    privacy::rank::{Asked, Effective, MOST_MILLI_BITS, Ranks},
    random::Stream,
};
use veilsum_proto::{
    plan::Terms,
    policy::{self, Cost, Policy, Request, Room, Smooth, Spent},
};

use crate::{
    agreed::questions,
    error::Failure,
    plan::{Judge, PlanSpec},
    question::{Question, SumBounds},
    release,
};

/// What a plan gives away at most.
#[derive(Clone, Debug, Default)]
pub struct Forecast {
    /// Every part of a run: its name, its questions at most, and what they give away together.
    pub parts: Vec<(&'static str, u64, Cost)>,
    /// What the smooth questions among them tell together ([POL-9]): all of their numbers at most, or what
    /// [`Forecast::verdict`] estimated.
    pub smooth: Smooth,
    /// Whether that is an estimate, from a trial run on generated rows.
    pub estimated: bool,
    /// Questions of the coordinator at most.
    pub most: u64,
}

impl Forecast {
    /// From the plan, and the colluders that the policy supposes.
    ///
    /// # Errors
    /// A [`Failure`] where the plan has a question without a safe layout.
    pub fn of(work: &PlanSpec, terms: &Terms, policy: &Policy, sites: usize) -> Result<Forecast, Failure> {
        let form = SumBounds::of(work, terms, sites)?;
        let domain = work.domain()?;
        let mut parts = Vec::new();
        let mut instead = (0, 0);
        let questions = questions(work, form.sites)?;
        for question in &questions {
            let layout = question.layout(&domain, &form)?;
            let one = release::cost(question, &layout, terms, policy, sites);
            // Rounds of two forms, each for a share of them.
            let forms = questions.iter().filter(|other| other.name() == question.name()).count() as u64;
            let (most, together) = whole_part(work, question, one, forms);
            parts.push((question.name(), most, together));
            if is_smooth(work, question) {
                instead = (instead.0 + together.scalars, instead.1 + together.milli_bits);
            }
        }
        if work.recipe.validity.classes > 0 {
            let scalars = u64::from(work.recipe.clusters.max) * u64::from(work.recipe.validity.classes);
            parts.push(("contingency", 1, exact(scalars, scalars * 64_000)));
        }
        let smooth = Smooth { rank: instead.0, milli_bits: instead.1, instead };
        Ok(Forecast { parts, smooth, estimated: false, most: u64::from(work.max_questions()) })
    }

    /// All of it.
    pub fn total(&self) -> Cost {
        let mut all = Spent::default();
        self.parts.iter().for_each(|(_, _, cost)| all.add(cost));
        let noised: Vec<u64> = self.parts.iter().filter_map(|(_, _, cost)| cost.nano_rho).collect();
        let nano_rho = (!noised.is_empty()).then_some(all.nano_rho);
        Cost { scalars: all.scalars, milli_bits: all.milli_bits, nano_rho }
    }

    /// What is given away once all of it was answered as well.
    pub fn added_to(&self, spent: &Spent) -> Spent {
        let total = self.total();
        let Smooth { rank, milli_bits, instead } = spent.smooth;
        Spent {
            questions: spent.questions + self.most + 1,
            runs: spent.runs + 1,
            scalars: spent.scalars.saturating_add(total.scalars),
            milli_bits: spent.milli_bits.saturating_add(total.milli_bits),
            nano_rho: spent.nano_rho.saturating_add(total.nano_rho.unwrap_or(0)),
            // Measured together they tell no more than apart.
            smooth: Smooth {
                rank: rank + self.smooth.rank,
                milli_bits: milli_bits + self.smooth.milli_bits,
                instead: (instead.0 + self.smooth.instead.0, instead.1 + self.smooth.instead.1),
            },
        }
    }

    /// What the policy says to all of it, for a site with so many rows, of so many that are possible, in a cohort with at least
    /// `rows_in_all`. Where the numbers of smooth questions, which are an upper bound, are in the way, their rank is estimated.
    pub fn verdict(
        &mut self,
        about: (&PlanSpec, &Terms, usize),
        policy: &Policy,
        spent: &Spent,
        rows: (u64, Option<u64>),
        rows_in_all: u64,
    ) -> Verdict {
        let found = self.judged(about, policy, spent, rows, rows_in_all);
        let (work, terms, sites) = about;
        if matches!(found, Verdict::Answers(_)) || self.estimated || self.smooth.instead.0 == 0 {
            return found;
        }
        let form = SumBounds::of(work, terms, sites).ok().filter(|form| form.noise.is_none());
        let Some(told) = form.and_then(|form| trial(work, terms, &form, |_, _| false)) else { return found };
        (self.smooth.rank, self.smooth.milli_bits, self.estimated) = (told.rank, told.milli_bits, true);
        self.judged(about, policy, spent, rows, rows_in_all)
    }

    /// Whether [`Forecast::verdict`] is that it answers. The estimate ends as soon as it is, whatever the numbers that are left could
    /// tell.
    pub fn answers(
        &mut self,
        about: (&PlanSpec, &Terms, usize),
        policy: &Policy,
        rows: (u64, Option<u64>),
        rows_in_all: u64,
    ) -> bool {
        let says = |smooth: Smooth| {
            let bounded = Forecast { smooth, ..self.clone() };
            matches!(bounded.judged(about, policy, &Spent::default(), rows, rows_in_all), Verdict::Answers(_))
        };
        let (work, terms, sites) = about;
        let instead = self.smooth.instead;
        if says(self.smooth) || self.estimated || instead.0 == 0 {
            return says(self.smooth);
        }
        let bound = |told: Effective, measured: usize| {
            let left = instead.0.saturating_sub(measured as u64);
            let milli_bits = told.milli_bits.saturating_add(left.saturating_mul(MOST_MILLI_BITS));
            Smooth { rank: told.rank + left, milli_bits, instead }
        };
        let mut enough = None;
        let form = SumBounds::of(work, terms, sites).ok().filter(|form| form.noise.is_none());
        let told = form.and_then(|form| {
            trial(work, terms, &form, |told, measured| {
                enough = Some(bound(told, measured)).filter(|smooth| says(*smooth));
                enough.is_some()
            })
        });
        match (enough, told) {
            (Some(smooth), _) => self.smooth = smooth,
            (None, Some(told)) => {
                (self.smooth.rank, self.smooth.milli_bits, self.estimated) = (told.rank, told.milli_bits, true);
            }
            (None, None) => return false,
        }
        matches!(self.judged(about, policy, &Spent::default(), rows, rows_in_all), Verdict::Answers(_))
    }

    /// Whether this site answers the first question with the rows that are known of now: nothing that a total shows comes before it.
    /// To be asked after [`Forecast::verdict`], whose estimate it uses.
    pub fn begins(
        &self,
        about: (&PlanSpec, &Terms, usize),
        policy: &Policy,
        spent: &Spent,
        rows: (u64, Option<u64>),
        rows_in_all: u64,
    ) -> bool {
        let first = Forecast { most: 1, ..self.through(1) };
        matches!(first.judged(about, policy, spent, rows, rows_in_all), Verdict::Answers(_))
    }

    /// The question at which this site would stop, counted from 1, of all that the plan has at most; `None` where it
    /// answers them all. To be asked after [`Forecast::verdict`], whose estimate it uses.
    pub fn stops_at(
        &self,
        about: (&PlanSpec, &Terms, usize),
        policy: &Policy,
        spent: &Spent,
        rows: (u64, Option<u64>),
        rows_in_all: u64,
    ) -> Option<u64> {
        let answers = |most| {
            let so_far = Forecast { most, ..self.through(most) };
            !matches!(so_far.judged(about, policy, spent, rows, rows_in_all), Verdict::Refused(_))
        };
        if answers(self.most) {
            return None;
        }
        let (mut done, mut stop) = (0, self.most.max(1));
        while stop - done > 1 {
            let middle = done.midpoint(stop);
            if answers(middle) { done = middle } else { stop = middle }
        }
        Some(stop)
    }

    /// The first so many questions, where every part is as long as it can be.
    fn through(&self, questions: u64) -> Forecast {
        let mut left = questions;
        let part = |(name, most, cost): &(&'static str, u64, Cost)| {
            let taken = left.min(*most);
            left -= taken;
            let share = |whole: u64| {
                let share = u128::from(whole) * u128::from(taken) / u128::from((*most).max(1));
                u64::try_from(share).unwrap_or(u64::MAX)
            };
            let nano_rho = cost.nano_rho.map(share);
            (*name, taken, Cost { scalars: share(cost.scalars), milli_bits: share(cost.milli_bits), nano_rho })
        };
        let parts = self.parts.iter().map(part).collect();
        let mut so_far = Forecast { parts, ..self.clone() };
        // Which numbers are smooth is not known part by part: as many of them as of all. Rank is no more than numbers.
        let (all, some) = (u128::from(self.total().scalars.max(1)), u128::from(so_far.total().scalars));
        let share = |whole: u64| u64::try_from(u128::from(whole) * some / all).unwrap_or(u64::MAX);
        let Smooth { rank, milli_bits, instead } = self.smooth;
        let instead = (share(instead.0), share(instead.1));
        so_far.smooth = Smooth { rank: rank.min(instead.0), milli_bits: milli_bits.min(instead.1), instead };
        so_far
    }

    fn judged(
        &self,
        (work, terms, sites): (&PlanSpec, &Terms, usize),
        policy: &Policy,
        spent: &Spent,
        (own_rows, domain): (u64, Option<u64>),
        rows_in_all: u64,
    ) -> Verdict {
        let plan = release::facts(work);
        let total = self.total();
        let request = |rows_in_all| Request {
            sites,
            own_rows,
            rows_in_all,
            columns: u32::try_from(work.headers().count()).unwrap_or(u32::MAX),
            domain,
            plan: plan.clone(),
            cost: total,
            // Measured together they tell no more than apart.
            smooth: Some(Smooth {
                rank: spent.smooth.rank + self.smooth.rank,
                milli_bits: spent.smooth.milli_bits + self.smooth.milli_bits,
                instead: (
                    spent.smooth.instead.0 + self.smooth.instead.0,
                    spent.smooth.instead.1 + self.smooth.instead.1,
                ),
            }),
            ..Request::default()
        };
        if let Err(e) = policy::check_plan(terms, policy, &plan) {
            return Verdict::Refused(e.to_string());
        }
        if own_rows < policy.min_rows {
            return Verdict::Refused("this site has fewer rows than min_rows of its own policy [POL-4]".into());
        }
        let most = self.most;
        if most > u64::from(policy.floor.max_rounds) {
            return Verdict::Refused(format!(
                "the plan has up to {most} questions, the policy's max_rounds is lower [POL-2]"
            ));
        }
        if spent.questions + most + 1 > policy.max_rounds_in_all || spent.runs + 1 > policy.max_runs {
            return Verdict::Refused("the policy's max_rounds_in_all or max_runs would be exceeded [POL-5]".into());
        }
        let allows = |rows| policy::check_budgets(terms, policy, &request(rows), spent);
        let room = policy::room_for(terms, policy, &request(rows_in_all));
        match allows(rows_in_all) {
            Ok(()) => Verdict::Answers(room),
            Err(e) if allows(MANY).is_err() => Verdict::Refused(e.to_string()),
            // More rows may turn up in the opened totals.
            Err(e) if terms.opening => {
                let (mut low, mut high) = (rows_in_all, MANY);
                while high - low > 1 {
                    let middle = low.midpoint(high);
                    if allows(middle).is_ok() { high = middle } else { low = middle }
                }
                Verdict::AnswersIf { rows: high, why: e.to_string() }
            }
            Err(e) => Verdict::Refused(e.to_string()),
        }
    }
}

/// Whether sites under the strict default policy answer this whole plan, in a cohort with at least `rows_in_all`. `sites` are those
/// that differ: the rows of each, and how many are possible.
///
/// # Errors
/// Those of [`Forecast::of`].
pub fn strict_sites_answer(
    about: (&PlanSpec, &Terms, usize),
    sites: impl IntoIterator<Item = (u64, Option<u64>)>,
    rows_in_all: u64,
) -> Result<bool, Failure> {
    let policy = Policy::default();
    let mut forecast = Forecast::of(about.0, about.1, &policy, about.2)?;
    Ok(sites.into_iter().all(|site| forecast.answers(about, &policy, site, rows_in_all.max(site.0))))
}

/// More rows than any cohort has.
const MANY: u64 = 1 << 40;

/// Whether a site would answer a whole plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All of it; what the release rule leaves room for.
    Answers(Room),
    /// All of it, if the opened totals show that there are at least so many rows in all; what is in the way otherwise.
    AnswersIf {
        /// Rows in all.
        rows: u64,
        /// What the policy says with those that are known of now.
        why: String,
    },
    /// Not all of it, and why.
    Refused(String),
}

/// Rows of all sites in a trial run: how many they are decides where centres go and nothing else.
const TRIAL_ROWS: usize = 2_000;
/// Rows of one of its sites at least.
const TRIAL_LEAST: usize = 20;
/// Questions of a trial run at most.
const TRIAL_QUESTIONS: usize = 150;
/// A trial run ends where so many questions together added no direction.
const TRIAL_PATIENCE: usize = 12;
/// Smooth numbers of a trial run at most: they take a second or two.
const TRIAL_NUMBERS: usize = 3_000;

/// Whether a site measures this question: the one that the intermediary judges it does not.
fn is_smooth(work: &PlanSpec, question: &Question) -> bool {
    let Question::Cluster(batch) = question else { return false };
    batch.is_smooth()
        && !(work.judge == Judge::Intermediary && batch.queries.iter().any(|query| query.stage() == Stage::Validating))
}

/// What the smooth questions of a run tell that never stops early, on rows generated in as many groups as the plan has
/// clusters at most. It ends early where `enough` says so of what is told by so many numbers. `None` where it does not come to its
/// end, or would take too long.
fn trial(
    work: &PlanSpec,
    terms: &Terms,
    form: &SumBounds,
    mut enough: impl FnMut(Effective, usize) -> bool,
) -> Option<Effective> {
    let mut work = work.clone();
    if let Algorithm::Fcm { epsilon, max_rounds, .. } | Algorithm::FcmAnderson { epsilon, max_rounds, .. } =
        &mut work.recipe.algorithm
    {
        (*epsilon, *max_rounds) = (0.0, (*max_rounds).min(TRIAL_QUESTIONS as u32));
    }
    let domain = work.domain().ok()?;
    let mut stream = Stream::new(0, b"veilsum forecast rows v1");
    let sites = generated(&domain, work.recipe.clusters.max as usize, form.sites, &mut stream)?;
    let columns = work.names();
    let rows = terms.max_rows.saturating_mul(form.sites as u64);
    let (mut run, mut ranks, mut idle, mut numbers) = (work.run(form.sites).ok()?, Ranks::default(), 0, 0);
    let mut step = run.next(None).ok()?;
    for _ in 0..2 * TRIAL_QUESTIONS {
        let Step::Ask(batch) = step else { return Some(ranks.effective()) };
        let question = Question::Cluster(batch);
        let layout = question.layout(&domain, form).ok()?;
        let smooth = is_smooth(&work, &question);
        let Question::Cluster(batch) = question else { return None };
        if smooth {
            numbers += layout.words();
            if numbers > TRIAL_NUMBERS {
                return None;
            }
            let before = ranks.effective().rank;
            let steps: Vec<f64> = layout.blocks.iter().map(|b| 2f64.powi(-b.scale.fraction_bits)).collect();
            ranks.add(&Asked { columns: &columns, domain: &domain, batch: &batch, steps: &steps, rows }).ok()?;
            idle = if ranks.effective().rank == before { idle + 1 } else { 0 };
            if idle == TRIAL_PATIENCE || enough(ranks.effective(), numbers) {
                return Some(ranks.effective());
            }
        }
        let mut values = vec![0.0; layout.words()];
        for site in &sites {
            let answer = answer_with_noise(&batch, site, &mut stream).ok()?;
            values.iter_mut().zip(answer.values).for_each(|(sum, value)| *sum += value);
        }
        step = run.next(Some(&Totals { values, rows: None })).ok()?;
    }
    None
}

/// Rows of as many sites in `groups` groups of the box.
fn generated(domain: &Domain, groups: usize, sites: usize, stream: &mut Stream) -> Option<Vec<Prepared>> {
    let d = domain.columns();
    let places: Vec<f64> = (0..groups * d).map(|_| stream.unit()).collect();
    let rows = (TRIAL_ROWS / sites.max(1)).max(TRIAL_LEAST);
    let mut site = || {
        let mut values = Vec::with_capacity(rows * d);
        for row in 0..rows {
            for column in 0..d {
                let part = (places[row % groups * d + column] + 0.08 * stream.normal_pair()[0]).clamp(0.0, 1.0);
                let (low, high) = (domain.lower()[column], domain.upper()[column]);
                values.push(low + part * (high - low));
            }
        }
        Prepared::new(&Rows::new(values, d).ok()?, domain, OutOfBox::Clip).ok()
    };
    (0..sites).map(|_| site()).collect()
}

fn exact(scalars: u64, milli_bits: u64) -> Cost {
    Cost { scalars, milli_bits, nano_rho: None }
}

/// How often a question of this part is asked at most, and what all of them give away.
fn whole_part(work: &PlanSpec, question: &Question, one: Cost, forms: u64) -> (u64, Cost) {
    let Question::Cluster(batch) = question else { return (1, one) };
    let recipe = &work.recipe;
    let most = |stage| u64::from(recipe.most_in(stage));
    let times = |numerator: u64, denominator: u64| Cost {
        scalars: (one.scalars * numerator).div_ceil(denominator),
        milli_bits: (one.milli_bits * numerator).div_ceil(denominator),
        nano_rho: one.nano_rho.map(|rho| rho.saturating_mul(numerator).div_ceil(denominator)),
    };
    let Some(stage) = batch.queries.first().map(Query::stage) else { return (1, one) };
    match stage {
        // Its questions are all in the list, and each is asked once.
        _ if recipe.algorithm.describes().is_some() => (1, one),
        // The products that whiten columns, and the sums before them.
        Stage::Preparing | Stage::Iterating
            if recipe.whitens() && matches!(question.name(), "moments" | "shaped_sums") =>
        {
            (1, one)
        }
        Stage::Preparing => (most(stage), times(most(stage), 1)),
        Stage::Seeding => {
            // The question grows with the tree; all its cells together are what counts.
            let (d, Seeding::Tree(tree)) = (work.names().len() as u64, &recipe.seeding) else { return (1, one) };
            let leaves = recipe.leaves(tree) as u64;
            let scalars = 1 + 2 * d + 2 * leaves * (2 * d + 3);
            let each = one.milli_bits.div_ceil(one.scalars.max(1));
            (most(stage), exact(scalars, scalars * each))
        }
        // Counts first and sums then are together at most half as much again as both at once.
        Stage::Iterating if recipe.rule.two_steps() && release::facts(work).groups => {
            (most(stage), times(3 * most(stage), 4))
        }
        Stage::Iterating => (most(stage).div_ceil(forms), times(most(stage), forms)),
        Stage::Ranging | Stage::Sizing | Stage::Validating | Stage::Silhouettes | Stage::Counting => (1, one),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{fcm, kit, terms, work};
    use veilsum_cluster::method::Seeding;

    /// The short way says what the long one says, also where it has to measure, and ends early where it can.
    #[test]
    fn whether_a_site_answers_is_what_the_whole_forecast_says() {
        let (roster, _) = kit(3);
        let (mut early, mut said) = (0, [0, 0]);
        for rounds in [4, 30, 60] {
            let mut work = work(3);
            work.recipe = fcm(3, 2.0, 0.005, rounds, Seeding::Uniform { seed: 1 });
            let terms = Terms { max_rows: 5_000, ..terms(&roster, &work) };
            for rows in [300, 1_100, 2_100, 5_000] {
                let (about, policy) = ((&work, &terms, 3), Policy::default());
                let forecast = Forecast::of(&work, &terms, &policy, 3).unwrap();
                let (mut long, mut short) = (forecast.clone(), forecast);
                let expected = long.verdict(about, &policy, &Spent::default(), (rows, None), rows);
                let expected = matches!(expected, Verdict::Answers(_));
                for again in [false, true] {
                    assert_eq!(short.answers(about, &policy, (rows, None), rows), expected, "{rounds} {rows} {again}");
                }
                said[usize::from(expected)] += 1;
                early += usize::from(expected && long.estimated && !short.estimated);
                assert!(short.smooth.milli_bits >= long.smooth.milli_bits.min(short.smooth.instead.1));
            }
        }
        assert!(early > 0 && said.iter().all(|times| *times > 1), "{early} {said:?}");
    }
}
