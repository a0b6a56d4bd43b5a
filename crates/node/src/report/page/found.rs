//! What a run found, in sentences: how many groups, why so many, how good they are, and what speaks against them.

use veilsum_cluster::{
    method::{Pick, Stability},
    warnings::KINDS,
};

use super::reported::Reported;
use crate::{
    app_messages::clean,
    cost::counted,
    plan::PlanSpec,
    report::{
        facts,
        indices::{best_here, meaning, name_of},
        told::Told,
    },
};

/// Whose rows.
pub(super) fn whose(told: &Told) -> String {
    let sites = match told.cohort.len() {
        0 => "the sites".to_owned(),
        n => counted(n, "site"),
    };
    match facts::rows(told) {
        Some(rows) => format!("{rows} row{} of {sites}", if rows == "1" { "" } else { "s" }),
        None => format!("the rows of {sites}"),
    }
}

/// What the run found, in a sentence.
pub fn finding(all: &Reported) -> String {
    let told = &all.told;
    if let Some(found) = &told.description {
        return format!(
            "{} were described over {}. Nobody looked for groups.",
            counted(found.numbers.len() + found.categories.len(), "column"),
            whose(told)
        );
    }
    if told.method == "describe" {
        return "This is the mean of all rows: the run described columns, and looked for no groups.".to_owned();
    }
    let against = refuted(told);
    let k = match told.k {
        1 => "One group, which is all rows together, was computed".to_owned(),
        k if against.is_empty() => format!("{k} groups of similar rows were found"),
        k => format!("{k} centres were computed"),
    };
    let how = match (&told.ended_early, told.converged) {
        (Some(early), _) => {
            format!("the run ended early, after {}, so they are not final", counted(early.round as usize, "round"))
        }
        (None, Some(true)) if told.rounds == 0 => "the run converged".to_owned(),
        (None, Some(true)) => format!("the run converged after {}", counted(told.rounds as usize, "round")),
        (None, _) if told.privacy.is_some() => {
            format!("the run made the {} that its plan has with noise", counted(told.rounds as usize, "round"))
        }
        (None, Some(false)) => {
            format!("the run stopped after {} without having converged", counted(told.rounds as usize, "round"))
        }
        (None, None) => "the file does not say whether the run converged".to_owned(),
    };
    let mut doubt = match (told.k, against.is_empty()) {
        (1, _) | (_, true) => String::new(),
        _ => format!(" Whether they are groups is doubtful: {}.", against.join("; ")),
    };
    if let Some(end) = told.ends() {
        doubt += &format!(" {end}.");
    }
    if told.k > 1 && told.asks_not_whether() {
        doubt += " Whether there are groups at all was not tested.";
    }
    format!("{k} among {} by the method {}; {how}.{doubt}", whose(told), clean(&told.method))
}

/// Why groups cannot be said to have been found, by the findings of the result.
fn refuted(told: &Told) -> Vec<&'static str> {
    let mut all: Vec<&str> = Vec::new();
    for (name, why) in KINDS {
        let why = why.filter(|why| told.findings.iter().any(|finding| finding.name == name) && !all.contains(why));
        all.extend(why);
    }
    if told.ended_early.as_ref().is_some_and(|early| !early.at_rest) {
        all.push("the run ended before its centres came to rest");
    }
    let collapsed = told.curve.iter().any(|point| point.k == told.k && point.collapsed);
    let undefined = told.k > 1 && told.indices.get("fuzzy_davies_bouldin") == Some(&None) && told.objective.is_some();
    // Under noise an index that drowned stands as null, too.
    if collapsed || undefined && told.privacy.is_none() {
        all.push("centres coincide");
    }
    all
}

/// Why so many groups.
pub(super) fn why(all: &Reported) -> Option<String> {
    let told = &all.told;
    if told.description.is_some() || told.method == "describe" {
        return None;
    }
    if told.curve.is_empty() {
        return Some(match &all.federation {
            Some(_) => format!("Why {}: the plan names this number, and no other was tried.", told.k),
            None => format!("Why {}: the run tried no other number.", told.k),
        });
    }
    let tried: Vec<u32> = told.curve.iter().map(|point| point.k).collect();
    let (low, high) = (tried.iter().min().copied().unwrap_or(0), tried.iter().max().copied().unwrap_or(0));
    let rule = all.federation.as_ref().map_or("the plan's index decided".to_owned(), |of| rule(&of.work));
    let end = told.ends().map_or(String::new(), |end| format!(" {end}: another range may have a better one."));
    let collapsed: Vec<String> = told.curve.iter().filter(|p| p.collapsed).map(|p| p.k.to_string()).collect();
    let fell = match collapsed.is_empty() {
        true => String::new(),
        false => format!(" With K = {} two centres fell together, so these do not count.", collapsed.join(", ")),
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
                "under noise no number tells by itself how clear groups are; the standard errors say how well their centres are known"
            }
            None => {
                "the plan asked for nothing that tells by itself how clear the groups are; another plan with indices=scalars does"
            }
        };
        return (told.k > 1 && told.description.is_none() && told.method != "describe")
            .then(|| format!("How good: {why}."));
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
        return Some(format!(
            "This run stopped before its end, after {}: {}. {rest} For a result to the end, run again when the same parties are there.",
            counted(early.round as usize, "round"),
            clean(&early.reason)
        ));
    }
    (told.converged == Some(false) && told.description.is_none() && told.privacy.is_none()).then(|| {
        "The centres had not come to rest when the plan's last round was over: more rounds may move them.".to_owned()
    })
}
