//! The plan's method as a conversation in totals: which question comes next, and what follows its total. The coordinator
//! holds it to ask; a site holds a copy to see that it is asked nothing else ([OPN-9]).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use veilsum_cluster::{Batch, Domain, Outcome, Query, Run, Step, method::Stage, sampling::Sampling, validity::Verdict};

use veilsum_proto::{codec, suite::Hash};

use crate::{
    error::{Code, Failure},
    near::Units,
    plan::{Judge, PlanSpec},
    question::{self, Layout, Question, SumBounds},
};

/// Where a conversation stands.
pub struct MethodSession {
    method: Run,
    terms: Terms,
    turn: Turn,
    questions: u32,
    /// Digests of all drawn questions.
    drawn: BTreeSet<Hash>,
    /// The cohorts of the totals, by the number that the run knows them under, in the order of their first totals.
    cohorts: Vec<Cohort>,
    /// The cohort of the last total.
    cohort: Option<u32>,
    /// The sites over whom the floor is reached; none before the intermediary has said so.
    counted: Vec<u16>,
}

/// The sites of some totals.
struct Cohort {
    sites: Vec<u16>,
    /// So many rows the totals show them to have at least.
    rows: u64,
    /// Their last total answered this question, counted from 1.
    last: u32,
}

/// What a conversation needs to know of its plan.
#[derive(Clone)]
pub struct Terms {
    /// The public box.
    pub domain: Domain,
    /// The plan's form.
    pub form: SumBounds,
    /// How sites are drawn.
    pub sampling: Option<Sampling>,
    /// Who opens the validity totals.
    pub judge: Judge,
}

/// What comes next.
pub enum Turn {
    /// This question.
    Ask(Box<Question>, Layout),
    /// The intermediary judges this.
    Judge(Box<Batch>),
    /// Nothing: the outcome is there.
    Done(Box<Outcome>),
}

/// How far the centres of one K have come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    /// Clusters.
    pub k: u32,
    /// The round of the method that moved them, counted from 1.
    pub round: u32,
    /// The Frobenius norm of the change, working units; of several starts the one that has come furthest and moves most.
    pub shift: f64,
    /// Whether its stop rule holds.
    pub rests: bool,
}

/// How well the clusters of one K were judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Clusters.
    pub k: u32,
    /// Whether the choice fell on it.
    pub chosen: bool,
    /// The validity indices that were asked for and are defined, by name; none of a plan with noise, whose result has them with their errors.
    pub indices: BTreeMap<String, f64>,
}

impl MethodSession {
    /// The run of a plan at its beginning.
    ///
    /// # Errors
    /// A [`Failure`] where the plan cannot be run.
    pub fn of(work: &PlanSpec, form: SumBounds) -> Result<MethodSession, Failure> {
        let terms = Terms { domain: work.domain()?, form, sampling: work.sampling, judge: work.judge };
        MethodSession::begin(work.run(form.sites)?.coarse(form.rounding()), terms)
    }

    /// A run at its beginning.
    ///
    /// # Errors
    /// As [`MethodSession::of`].
    pub fn begin(mut method: Run, terms: Terms) -> Result<MethodSession, Failure> {
        let step = method.next(None)?;
        let (questions, drawn) = (0, BTreeSet::new());
        let placeholder = Turn::Judge(Box::new(Batch { transform: None, queries: Vec::new() }));
        let (cohorts, cohort, counted) = (Vec::new(), None, Vec::new());
        let mut conversation =
            MethodSession { method, terms, turn: placeholder, questions, drawn, cohorts, cohort, counted };
        conversation.go_on(step)?;
        Ok(conversation)
    }

    fn go_on(&mut self, step: Step) -> Result<(), Failure> {
        let batch = match step {
            Step::Done(outcome) => {
                self.turn = Turn::Done(outcome);
                return Ok(());
            }
            Step::Ask(batch) => batch,
        };
        self.questions += 1;
        let stage = self.method.stage();
        if stage == Some(Stage::Validating) && self.terms.judge == Judge::Intermediary {
            self.turn = Turn::Judge(Box::new(batch));
            return Ok(());
        }
        let question = if self.terms.sampling.is_some() && stage == Some(Stage::Iterating) {
            // [APP-6]: totals of one question over two draws would differ in the sites that one of them has.
            if !self.drawn.insert(question::digest(&batch)) {
                let next = "run a plan with another sampling seed, or without sampling";
                return Err(Failure::input("the method asks one question of two draws of sites", next));
            }
            Question::Drawn { number: u32::try_from(self.drawn.len()).unwrap_or(u32::MAX), batch }
        } else {
            Question::Cluster(batch)
        };
        let layout = question.layout(&self.terms.domain, &self.terms.form)?;
        self.turn = Turn::Ask(Box::new(question), layout);
        Ok(())
    }

    /// What comes next.
    pub fn turn(&self) -> &Turn {
        &self.turn
    }

    /// Questions so far, the next one included.
    pub fn questions(&self) -> u32 {
        self.questions
    }

    /// Takes the total of the question whose turn it is, over these sites.
    ///
    /// # Errors
    /// A [`Failure`] where the total is not one that rows can give.
    pub fn take(&mut self, values: &[u64], cohort: &[u16]) -> Result<(), Failure> {
        let Turn::Ask(question, layout) = &self.turn else {
            return Err(Failure::new(Code::Peer, "a total where no question was open", "speak to the coordinator"));
        };
        let totals = layout.decode(values, cohort.len(), None)?;
        let shown = rows_shown(question, layout, &totals.values, &self.terms.form);
        let number = self.is_over(cohort, shown);
        let step = self.method.next(Some(&totals))?;
        self.cohort = Some(number);
        self.go_on(step)
    }

    /// The intermediary says that the rows of these sites reach the plan's floor ([APP-2]); its first word stands.
    pub fn is_counted(&mut self, sites: &[u16]) {
        if self.counted.is_empty() {
            self.counted = sites.to_vec();
        }
    }

    /// Sites of the last total; none before the first.
    pub fn cohort(&self) -> &[u16] {
        self.cohort.map_or(&[], |cohort| self.sites(cohort))
    }

    /// Sites of a cohort that an outcome names by its number.
    pub fn sites(&self, cohort: u32) -> &[u16] {
        self.cohorts.get(cohort as usize).map_or(&[], |cohort| &cohort.sites)
    }

    /// Rows that these sites have at least, as the totals so far show.
    pub fn rows_shown(&self, sites: &[u16]) -> u64 {
        let among = |cohort: &&Cohort| cohort.sites.iter().all(|site| sites.contains(site));
        self.cohorts.iter().filter(among).map(|cohort| cohort.rows).max().unwrap_or_default()
    }

    /// [APP-8]: whether the sites behind an early result are known to have as many rows as the plan wants at least. `counted`
    /// is the count over the sites of the last total, where it was handed over.
    ///
    /// The totals say so, or the count does, where all counted sites are still behind the centres ([APP-2]).
    pub fn reaches(&self, outcome: &Outcome, floor: u64, counted: Option<u64>) -> bool {
        let over = self.sites(outcome.centres_over);
        if let Some(rows) = outcome.n_total.or(counted.filter(|_| over == self.cohort())) {
            return rows >= floor;
        }
        let all_counted = !self.counted.is_empty() && self.counted.iter().all(|site| over.contains(site));
        all_counted || self.rows_shown(over) >= floor
    }

    /// The result where nothing more may be asked: what the last totals gave ([APP-8]). It has converged where the centres had come to rest
    /// before, and only indices are missing. `None` before a round has moved a centre, and where the run has its result.
    pub fn finish(&self) -> Option<Outcome> {
        self.method.stage()?;
        self.method.stop_here().ok()
    }

    /// What the run may end with where the intermediary judges, one outcome for each K and restart.
    pub fn candidates(&self) -> Vec<Outcome> {
        self.method.candidates().unwrap_or_default()
    }

    /// Why the next question is asked, for people.
    pub fn why(&self) -> &'static str {
        match self.method.stage() {
            Some(Stage::Preparing) => "columns are to be on one scale, for which their spread over all rows is needed",
            Some(Stage::Ranging) => "the range of K comes from what each site would choose alone",
            Some(Stage::Seeding) => "first centres are sought where rows are",
            Some(Stage::Iterating) => "the centres have not come to rest",
            Some(Stage::Validating) => "no more rounds follow, and indices say how well the centres fit",
            None => "the run has its result",
        }
    }

    /// How far the centres of every K have come; nothing before a round has moved one.
    pub fn moved(&self) -> Vec<Moved> {
        let mut all: Vec<Moved> = Vec::new();
        for fit in self.method.fits() {
            let Some(last) = fit.history.last().filter(|last| last.shift.is_finite()) else { continue };
            let k = u32::try_from(fit.centres.k()).unwrap_or(u32::MAX);
            let one = Moved { k, round: last.round, shift: last.shift, rests: fit.converged };
            match all.iter_mut().find(|known| known.k == k) {
                Some(known) if (one.round, one.shift) > (known.round, known.shift) => *known = one,
                Some(_) => {}
                None => all.push(one),
            }
        }
        all
    }

    /// How every K was judged, once the run has its result; nothing before.
    pub fn curve(&self) -> Vec<Judged> {
        let Turn::Done(outcome) = &self.turn else { return Vec::new() };
        let chosen = u32::try_from(outcome.centres.k()).unwrap_or(u32::MAX);
        let judged = |k: u32, indices: &veilsum_cluster::Indices| {
            let named = serde_json::to_value(indices).ok().and_then(|value| value.as_object().cloned());
            let known = named.into_iter().flatten().filter_map(|(name, value)| Some((name, value.as_f64()?)));
            // Which of them are more than noise is known with their errors, which the result has.
            let known = known.filter(|_| self.terms.form.noise.is_none());
            Judged { k, chosen: k == chosen, indices: known.collect() }
        };
        match outcome.curve.is_empty() {
            true => vec![judged(chosen, &outcome.indices)],
            false => outcome.curve.iter().map(|point| judged(point.k, &point.indices)).collect(),
        }
    }

    /// Takes the intermediary's verdicts, over these sites.
    ///
    /// # Errors
    /// A [`Failure`] where they do not fit.
    pub fn judged(&mut self, verdicts: &[Verdict], cohort: &[u16]) -> Result<(), Failure> {
        let shown = verdicts.iter().map(|verdict| verdict.rows).max().unwrap_or_default();
        self.is_over(cohort, shown);
        let step = self.method.judged(verdicts)?;
        self.go_on(step)
    }

    /// Takes the sites of the open question's total, which shows so many rows: their number, by which the run knows them.
    fn is_over(&mut self, cohort: &[u16], shown: u64) -> u32 {
        let at = self.cohorts.iter().position(|known| known.sites == cohort).unwrap_or_else(|| {
            self.cohorts.push(Cohort { sites: cohort.to_vec(), rows: 0, last: 0 });
            self.cohorts.len() - 1
        });
        let known = &mut self.cohorts[at];
        (known.rows, known.last) = (known.rows.max(shown), self.questions);
        // There are no more cohorts than totals.
        let number = u32::try_from(at).unwrap_or(u32::MAX);
        self.method.over(number);
        number
    }

    /// The first question, counted from 1, since which this site is in no total; of a site of the last total the one after that.
    pub fn gone_since(&self, site: u16) -> u32 {
        let of = self.cohorts.iter().filter(|cohort| cohort.sites.contains(&site));
        1 + of.map(|cohort| cohort.last).max().unwrap_or(0)
    }

    /// Whether it is this question's turn.
    pub fn expects(&self, question: &Question) -> bool {
        let Turn::Ask(expected, _) = &self.turn else { return false };
        match (&**expected, question) {
            (Question::Cluster(own), Question::Cluster(other)) => self.same(own, other),
            (Question::Drawn { number, batch: own }, Question::Drawn { number: asked, batch: other }) => {
                number == asked && self.same(own, other)
            }
            _ => false,
        }
    }

    /// Whether the intermediary is to judge this now.
    pub fn expects_judged(&self, batch: &Batch) -> bool {
        matches!(&self.turn, Turn::Judge(expected) if self.same(expected, batch))
    }

    /// Whether two questions are the same but for the last digits of their numbers, and to the last bit where rows are counted in bins: both
    /// sides compute edges by one expression.
    fn same(&self, own: &Batch, other: &Batch) -> bool {
        let bins = |batch: &Batch| {
            let counts = |query: &&Query| matches!(query, Query::Histogram(_) | Query::Margins(_));
            codec::encode(&batch.queries.iter().filter(counts).collect::<Vec<_>>())
        };
        own == other || (bins(own) == bins(other) && Units::working(&self.terms.domain).same(own, other))
    }

    /// Of the rows.
    pub fn domain(&self) -> &Domain {
        &self.terms.domain
    }
}

/// Rows that a total shows to be there at least: what one row adds to these sums is 1 at most.
fn rows_shown(question: &Question, layout: &Layout, mut totals: &[f64], form: &SumBounds) -> u64 {
    let (Question::Cluster(batch), None) = (question, form.noise) else { return 0 };
    let (mut most, mut blocks) = (0.0f64, layout.blocks.iter());
    for query in &batch.queries {
        // Of others one row may add more.
        let Some(shown) = query.shows_rows() else { break };
        // A batch has questions of one kind; only those of a fixed number of blocks can stand in a row.
        if shown.blocks.is_none() && batch.queries.len() > 1 {
            break;
        }
        let mut sum = 0.0;
        for b in blocks.by_ref().take(shown.blocks.unwrap_or(usize::MAX)) {
            let (own, rest) = totals.split_at(b.block.len);
            totals = rest;
            if b.block.name == shown.block {
                sum += own.iter().sum::<f64>() - b.block.len as f64 * form.sites as f64 * b.scale.unit();
            }
        }
        most = most.max(sum);
    }
    // A sum of ones may be a hair below the whole number that it is.
    (most + 1e-6).floor().max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use veilsum_cluster::{Centres, Prepared, method::Seeding};

    use super::*;
    use crate::{
        question::tests::{line, site, total},
        tests::work,
    };

    /// The question whose turn it is; none once the run has its outcome.
    fn asked(session: &MethodSession) -> Option<Question> {
        match session.turn() {
            Turn::Ask(question, _) => Some((**question).clone()),
            Turn::Done(_) => None,
            Turn::Judge(_) => panic!("nobody judges"),
        }
    }

    fn outcome(session: &MethodSession) -> &Outcome {
        let Turn::Done(outcome) = session.turn() else { panic!("the run goes on") };
        outcome
    }

    /// [FIX-4]: what coarse steps do to a mean at the wall of the box is nobody's lie.
    #[test]
    fn coarse_totals_are_plausible() {
        let mut work = line(2, 0.0, 6);
        (work.columns[0].upper, work.step_bits) = (0.9, Some(8));
        let domain = work.domain().unwrap();
        // Equal sites, so that their roundings add up.
        let sites = |copies: usize| vec![site(&[vec![0.9; copies], vec![0.1, 0.12]].concat(), &domain); 20];
        let form = work.form(20, 16).unwrap();
        let everybody: Vec<u16> = (0..20).collect();
        let run = |mut conversation: MethodSession, sites: &[Prepared]| {
            while let Some(question) = asked(&conversation) {
                conversation.take(&total(&question, sites, form), &everybody)?;
            }
            Ok(outcome(&conversation).centres.clone())
        };
        let mut refused = 0;
        for sites in (1..=10).map(sites) {
            let centres = run(MethodSession::of(&work, form).unwrap(), &sites).unwrap();
            let mut found: Vec<f64> = centres.as_slice().to_vec();
            found.sort_by(f64::total_cmp);
            assert!((found[0] - 0.11).abs() < 0.02 && (found[1] - 0.9).abs() < 0.02, "{found:?}");
            // A run that does not know of the step takes some of these totals for a lie.
            let terms = Terms { domain: domain.clone(), form, sampling: None, judge: Judge::Coordinator };
            let fine = MethodSession::begin(work.recipe.run(&domain, 20).unwrap(), terms).unwrap();
            let result: Result<_, Failure> = run(fine, &sites);
            refused += u32::from(result.is_err_and(|failure| failure.code == Code::Peer));
        }
        assert!(refused > 0, "no mean was outside the box: the test shows nothing");
    }

    /// [APP-8]: centres that have come to rest are no end of a run that has still something to ask.
    #[test]
    fn a_result_before_the_end_is_not_converged() {
        // The first round ends it: nothing moves by more.
        let work = line(2, 1.0, 9);
        let site = site(&[0.1, 0.12, 0.15, 0.8, 0.85, 0.9], &work.domain().unwrap());
        let form = work.form(3, 16).unwrap();
        let mut conversation = MethodSession::of(&work, form).unwrap();
        let mut early = Vec::new();
        while let Some(question) = asked(&conversation) {
            early.extend(conversation.finish());
            conversation.take(&total(&question, [&site; 3], form), &[0, 1, 2]).unwrap();
        }
        assert!(outcome(&conversation).converged, "the run itself comes to its end");
        assert_eq!(early.len(), 1, "before the validation");
        // Its centres are at rest; what is written of it says that the run was not.
        let ended = crate::model::Early::of(&early[0], "a site is gone", Vec::new(), Vec::new());
        assert!(ended.at_rest);
        let model =
            crate::model::Model::of(&work, &veilsum_proto::suite::Hash::default(), &early[0], Some(ended)).unwrap();
        assert_eq!(model.converged, Some(false));
    }

    #[test]
    fn only_the_last_digits_may_differ() {
        let begun = |centre: f64| {
            let centres = Centres::from_rows(&[vec![centre], vec![0.75]]).unwrap();
            let mut work = line(2, 0.0, 9);
            work.recipe.seeding = Seeding::Given { centres };
            MethodSession::of(&work, SumBounds::new(3, 100)).unwrap()
        };
        let (conversation, moved) = (begun(0.25), |by: f64| asked(&begun(0.25 + by)).unwrap());
        assert!(conversation.expects(&moved(0.0)) && conversation.expects(&moved(1e-12)));
        assert!(!conversation.expects(&moved(1e-6)));
        assert!(!conversation.expects(&Question::CountRows));
        let Question::Cluster(batch) = moved(0.0) else { panic!("not drawn") };
        assert!(!conversation.expects_judged(&batch));
        assert!(!conversation.expects(&Question::Drawn { number: 1, batch }));
    }

    /// [APP-6]: a coordinator that could choose would compare draws that differ in one site.
    #[test]
    fn app_6_draws_begin_at_one_and_no_question_is_put_to_two_draws() {
        let mut work = line(1, 0.0, 9);
        work.sampling = Some(Sampling { share: 0.5, seed: 1 });
        let (domain, form) = (work.domain().unwrap(), SumBounds::new(3, 100));
        let mut session = MethodSession::of(&work, form).unwrap();
        let mut take = |number: u32, x: f64| {
            let Turn::Ask(question, _) = session.turn() else { panic!("a question") };
            let Question::Drawn { number: own, batch } = &**question else { panic!("of drawn sites") };
            let of_draw = |number| Question::Drawn { number, batch: batch.clone() };
            assert!(*own == number && session.expects(question));
            assert!(!session.expects(&of_draw(number - 1)) && !session.expects(&of_draw(number + 1)));
            assert!(!session.expects(&Question::Cluster(batch.clone())));
            let words = total(question, [&site(&[x], &domain)], form);
            session.take(&words, &[0, 1, 2])
        };
        take(1, 0.25).unwrap();
        take(2, 0.5).unwrap();
        // Back where it was, the rounds end: the next one would put a question to another draw. What follows is asked of all sites.
        take(3, 0.25).unwrap();
        assert!(matches!(session.turn(), Turn::Ask(question, _) if matches!(**question, Question::Cluster(_))));
    }

    /// Where rows are counted in bins no digit may differ: two counts apart by a hair show the rows between.
    #[test]
    fn bins_are_the_same_to_the_last_bit() {
        use veilsum_cluster::query::{Bracket, Histogram, Margins};
        let conversation = MethodSession::of(&work(2), SumBounds::new(3, 100)).unwrap();
        let histogram = |upper: f64| {
            let brackets = vec![Bracket { column: 0, lower: 0.25, upper }];
            Batch::from(Query::from(Histogram { brackets, bins: 64 }))
        };
        let margins = |bins| Batch::from(Query::from(Margins { bins }));
        assert!(conversation.same(&histogram(0.5), &histogram(0.5)) && conversation.same(&margins(17), &margins(17)));
        assert!(!conversation.same(&histogram(0.5), &histogram(0.5f64.next_up())));
        assert!(!conversation.same(&margins(17), &margins(16)));
    }
}
