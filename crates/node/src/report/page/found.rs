//! Why so many groups, how good they are, and what nobody may overlook.

use veilsum_cluster::method::{Pick, Stability};

use super::reported::Reported;
use crate::{
    app_messages::clean,
    cost::counted,
    plan::PlanSpec,
    report::{
        indices::{best_here, meaning, name_of},
        told::Told,
    },
};

/// Why so many groups.
pub(super) fn why(all: &Reported) -> Option<String> {
    let told = &all.told;
    if told.describes() {
        return None;
    }
    let Some((low, high)) = told.tried() else {
        return Some(match &all.federation {
            Some(_) => format!("Why {}: the plan names this number, and no other was tried.", told.k),
            None => format!("Why {}: the run tried no other number.", told.k),
        });
    };
    let rule = all.federation.as_ref().map_or("the plan's index decided".to_owned(), |of| rule(&of.work));
    let end = told.ends().map_or(String::new(), |end| format!(" {end}: another range may have a better one."));
    let collapsed: Vec<String> = told.curve.iter().filter(|p| p.collapsed).map(|p| p.k.to_string()).collect();
    let fell = match collapsed.join(", ").as_str() {
        "" => String::new(),
        all => format!(" With K = {all} two centres fell together, so these do not count."),
    };
    let (here, indices) = best_here(told);
    let best = match here.len() {
        0 => String::new(),
        n => {
            format!(" Of {indices} indices {n} {} best there: {}.", if n == 1 { "is" } else { "are" }, here.join(", "))
        }
    };
    let unclear = told.findings.iter().find(|finding| finding.name == "no-clear-k");
    if let Some(finding) = unclear {
        return Some(format!("Why {}: of {low} to {high} groups, {}.{fell}", told.k, finding.text));
    }
    Some(format!("Why {}: of {low} to {high} groups, {rule}.{best}{end}{fell}", told.k))
}

/// How the plan chooses.
fn rule(work: &PlanSpec) -> String {
    let choice = work.recipe.choice;
    let name = name_of(choice.by.name());
    match (choice.by, choice.elbow) {
        (Pick::Gap, _) if work.recipe.noise.is_some() => {
            "the gap statistic decided: the smallest number whose gap no larger one exceeds by more than its error"
                .to_owned()
        }
        (Pick::Gap, _) => {
            "the gap statistic decided: the smallest number whose gap is that of the next but for its error".to_owned()
        }
        (_, true) => format!("the elbow of the curve of {name} decided, or its best value where there is no elbow"),
        (_, false) => format!("the best value of {name} decided"),
    }
}

/// How good it is.
pub(super) fn how_good(told: &Told) -> Option<String> {
    let mut all = Vec::from_iter(meaning(told));
    if let Some((same, of)) = told.stability.as_ref().map(Stability::agreeing) {
        all.push(format!("{same} of {} came to these centres", counted(of, "start")));
    }
    if all.is_empty() {
        let why = match told.privacy {
            Some(_) => {
                "under noise no number tells by itself how clear groups are; the errors say how well their centres are known"
            }
            None => {
                "the plan asked for nothing that tells by itself how clear the groups are; another plan with indices=scalars does"
            }
        };
        return (told.k > 1 && !told.describes()).then(|| format!("How good: {why}."));
    }
    Some(format!("How good: {}.", all.join(". Also, ")))
}

/// What nobody may overlook.
pub(super) fn beware(told: &Told) -> Option<String> {
    if let Some(early) = &told.ended_early {
        let rest = if early.at_rest {
            "Its centres had come to rest; indices may be missing."
        } else {
            "Its centres had not come to rest."
        };
        let (rounds, clean) = (counted(early.round as usize, "round"), clean(&early.reason));
        return Some(format!(
            "This run stopped before its end, after {rounds}: {clean}. {rest} For a result to the end, run again when the same parties are there."
        ));
    }
    (told.converged == Some(false) && told.description.is_none() && told.privacy.is_none()).then(|| {
        "The centres had not come to rest when the plan's last round was over: more rounds may move them.".to_owned()
    })
}
