//! The terms of a plan, and the federation that a roster and options come to.

use veilsum_node::{
    cost::usual_slots,
    documents::{Federation, with_settings},
    door::DEFAULT_MAX_ROWS,
    error::{Code, Failure},
    loopback::{fresh, roster_of},
    plan::PlanSpec,
};
use veilsum_proto::{
    plan::{Sites, Terms},
    roster::Roster,
};

use crate::method::Choices;

/// The federation that runs these choices with this roster, proved as everybody does who loads its plan.
///
/// # Errors
/// A [`Failure`] that names the option or setting.
pub(crate) fn federation(mut choices: Choices<'_>, roster: Roster) -> Result<Federation, Failure> {
    let (work, terms) = plan(&mut choices, &roster)?;
    work.check().map_err(again)?;
    terms.check(&roster).map_err(|e| again(e.into()))?;
    Federation::new(roster, terms).map_err(wrong)
}

/// The plan as it usually is, with what was set, and what follows from that. Nothing is checked yet.
///
/// # Errors
/// A [`Failure`] that names the option or setting.
pub(crate) fn plan(choices: &mut Choices<'_>, roster: &Roster) -> Result<(PlanSpec, Terms), Failure> {
    let (work, sites) = (choices.usual()?, roster.sites.len());
    let terms = Terms {
        roster: roster.hash(),
        min_cohort: 0,
        threshold: 0,
        colluders: 0,
        sites: Sites::Same,
        slots: usual_slots(sites),
        max_rows: DEFAULT_MAX_ROWS,
        // Twenty for each cluster.
        min_total_rows: 20 * u64::from(work.recipe.clusters.max),
        application: Vec::new(),
    };
    let set = &choices.set;
    let (mut work, mut terms) = with_settings(work, terms, &set.values).map_err(|(key, why)| set.wrong(key, &why))?;
    choices.choose(&mut work)?;
    terms.application = work.to_bytes();
    if !set.has("min_sites") {
        let threshold = terms.threshold_of(sites, sites).map_err(|e| again(e.into()))?;
        let least = if work.sampling.is_some() { sites } else { threshold };
        terms.min_cohort = u16::try_from(least).unwrap_or(u16::MAX);
    }
    Ok((work, terms))
}

/// A roster of sites of these names whose keys nobody has, for runs in one process.
///
/// # Errors
/// A [`Failure`] where there cannot be such sites.
pub(crate) fn roster_of_nobody(sites: &[String]) -> Result<Roster, Failure> {
    let roster = Roster { name: "simulation".into(), ..roster_of(&fresh(sites.len()), sites) };
    roster.check()?;
    Ok(roster)
}

/// The files were read: what is wrong from there on is wrong with the options.
fn wrong(f: Failure) -> Failure {
    Failure { code: Code::Usage, ..f }
}

fn again(f: Failure) -> Failure {
    wrong(Failure { advice: "correct the option or setting; --help-all says what each one takes".into(), ..f })
}
