//! Totals over cohorts that differ are equations about single sites (So et al., AAAI 2023, on why a secure sum of many rounds needs
//! more than secure rounds). Nobody lies: a site leaves in the middle of a run or comes back, or one run is over a site more than another.
//!
//! Within a plan over the same sites, real sites refuse: the protocol core's own state machines, each with the product's rule before its
//! answer. Between two rosters nothing is refused, because a federation has to live: what one of two totals with noise is less the other
//! is the site's sums up to the noise of both.

use std::{collections::BTreeSet, rc::Rc};

use anyhow::{Result, anyhow, ensure};
use veilsum_cluster::random::Stream;
use veilsum_node::question::Question;
use veilsum_proto::{
    Rule,
    plan::{Sites, Terms},
};
use veilsum_testkit::federation::Kit;

use crate::{
    account::{Honest, sums},
    finding::{Attack, Context, Found, Limit, Measure, Rate, listed},
    inconsistency::{Field, Session, about},
    lying_hub::{survivors, told},
    scene::CLUMPS,
};

/// What it is.
pub const ATTACK: Attack = Attack {
    name: "differencing",
    shows: "totals over cohorts that change by single sites are equations about single sites",
    needs: "totals over cohorts that differ by single sites; nobody lies, no two questions are alike",
    control: "sites of a plan over any sites, or begun anew; two exact totals",
    protection: "a total of a plan over the same sites covers all of them [POL-1], who missed a round stays out [RND-5]; between two \
                 rosters, the noise of both totals [POL-10]",
    not_shown: "exact totals over two rosters, or over yesterday's and today's rows: their difference is what came and went, and \
                `veilsum agree` says so",
    run,
};
/// Sites that real sites' answers are tried with.
const SITES: usize = 5;
/// Rows of a site.
const ROWS: usize = 25;
/// Pairs of totals that are subtracted.
const PAIRS: u64 = 100;
/// rho of each of the two totals: together the account's default.
const RHO: f64 = 0.5;
const LABEL: &[u8; 24] = b"veilsum audit difference";

/// What sites say to a cohort, and the rules under which they refuse.
#[derive(Default)]
struct Answered {
    rate: Rate,
    rules: BTreeSet<Rule>,
}

impl Answered {
    fn add<T>(&mut self, told: Result<T, Rule>) {
        self.rate.add(told.is_ok());
        self.rules.extend(told.err());
    }
}

/// Tries cohorts without a site on real sites, and subtracts totals of two runs.
///
/// # Errors
/// Where an honest part of the conversation fails.
fn run(&Context { seed, .. }: &Context) -> Result<Found> {
    let (mut measures, mut details) = (Vec::new(), Vec::new());
    let lost = [lost(seed, Sites::Any)?, lost(seed, Sites::Same)?];
    let returned = [returned(seed, true)?, returned(seed, false)?];
    for (what, [before, now]) in
        [("totals go on where a site leaves", lost), ("a site that missed a round is let back in", returned)]
    {
        ensure!(before.rules.is_empty(), "{what}: sites without the rule refuse under {:?}", before.rules);
        measures.push(Measure::rates(what, before.rate, now.rate, 0.0));
        details.push(format!("{what}: sites refuse under {}", listed(&now.rules)));
    }
    measures.push(Measure::new(
        "rows of a site in a cluster, from a run with it and one without: error, in rows",
        difference(seed, None)?,
        Limit::AtMost(0.01),
        difference(seed, Some(RHO))?,
        Limit::AtLeast(1.0),
    ));
    Ok(Found::new(measures, details))
}

/// A coordinator and its sites.
fn session(seed: u64, over: Sites) -> Result<Session> {
    let field = Rc::new(Field::new(seed, SITES, ROWS)?);
    let terms = |terms: &mut Terms| (terms.max_rows, terms.sites) = (field.max_rows, over);
    Ok(Session::new(Kit::new(SITES, terms), seed, &field))
}

/// Another question each time.
fn another(talk: &Session) -> Result<Question> {
    about(CLUMPS.map(|[x, y]| [x + 0.1 * f64::from(talk.slot), y]))
}

/// A whole round in which no site refuses.
fn honest(talk: &mut Session, cohort: &[u16]) -> Result<()> {
    let (context, inputs) = talk.asked(cohort, &another(talk)?)?;
    for site in cohort {
        let told = survivors(&mut talk.hub, *site, &context, cohort, &inputs)?;
        told.map_err(|rule| anyhow!("honest survivors are refused under {rule}"))?;
    }
    talk.over(context);
    Ok(())
}

/// What these sites say to a question over `cohort`.
fn ask(talk: &mut Session, cohort: &[u16], all: &mut Answered) -> Result<()> {
    let (_, frame) = talk.question(cohort, &another(talk)?)?;
    for site in cohort {
        all.add(told(&mut talk.hub, *site, &frame)?);
    }
    Ok(())
}

fn everybody() -> Vec<u16> {
    (0..SITES as u16).collect()
}

/// Cohorts and survivors without one of the sites.
fn lost(seed: u64, over: Sites) -> Result<Answered> {
    let (all, mut answered) = (everybody(), Answered::default());
    let fewer = &all[..SITES - 1];
    let mut talk = session(seed, over)?;
    honest(&mut talk, &all)?;
    // It is gone before the question;
    ask(&mut talk, fewer, &mut answered)?;
    // or between its question and the survivors.
    let mut talk = session(seed, over)?;
    honest(&mut talk, &all)?;
    let (context, inputs) = talk.asked(&all, &another(&talk)?)?;
    for site in fewer {
        answered.add(survivors(&mut talk.hub, *site, &context, fewer, &inputs)?);
    }
    Ok(answered)
}

/// A cohort with a site that missed a round; `anew`, none of the sites knows that it did.
fn returned(seed: u64, anew: bool) -> Result<Answered> {
    let (all, mut answered) = (everybody(), Answered::default());
    let mut talk = session(seed, Sites::Any)?;
    if !anew {
        honest(&mut talk, &all)?;
        honest(&mut talk, &all[..SITES - 1])?;
    }
    ask(&mut talk, &all, &mut answered)?;
    Ok(answered)
}

/// By how much the rows of one site in each of two clusters are missed, as the root of the mean square: a total over it and others less
/// one over the others alone.
fn difference(seed: u64, rho: Option<f64>) -> Result<f64> {
    let mut stream = Stream::new(seed, LABEL);
    let mut rows = |n: usize| -> Vec<Vec<f64>> {
        (0..n).map(|_| vec![2.0 * stream.unit() - 1.0, 2.0 * stream.unit() - 1.0]).collect()
    };
    let (own, others) = (rows(ROWS), rows(4 * ROWS));
    let query = sums(&[vec![-0.5, 0.0], vec![0.5, 0.0]], None)?;
    let total = |rows: &[Vec<f64>], rho, draw: &[u64]| Honest::new(rows)?.total(&query, rho, draw);
    let truth = total(&own, None, &[])?;
    let with = [own, others.clone()].concat();
    let mut squares = 0.0;
    for pair in 0..PAIRS {
        let (one, other) = (total(&with, rho, &[seed, pair, 0])?, total(&others, rho, &[seed, pair, 1])?);
        squares += (0..2).map(|cluster| (one[cluster] - other[cluster] - truth[cluster]).powi(2)).sum::<f64>();
    }
    Ok((squares / (2 * PAIRS) as f64).sqrt())
}
