//! The first sentence of every page, screen and file of a result: what came of the run, and what speaks against it.

use veilsum_cluster::warnings::KINDS;

use super::{facts, told::Told};
use crate::{app_messages::clean, cost::counted};

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

/// What came of the run: the first sentence of page, screen and file. Groups are found if they were tested against none, and nothing
/// speaks against them.
pub(super) fn finding(told: &Told) -> String {
    if let Some(found) = &told.description {
        let columns = counted(found.numbers.len() + found.categories.len(), "column");
        return format!("{columns} were described over {}. Nobody looked for groups.", whose(told));
    }
    if told.describes() {
        return "This is the mean of all rows: the run described columns, and looked for no groups.".to_owned();
    }
    let against = refuted(told);
    let k = match told.k {
        1 if against.is_empty() && told.tests_whether() => {
            "No groups were found: one, which is all rows together, was computed".to_owned()
        }
        1 => "One group, which is all rows together, was computed".to_owned(),
        k if !against.is_empty() => format!("{k} centres were computed"),
        k if told.tests_whether() => format!("{k} groups of similar rows were found"),
        k => format!("{k} clusters were computed"),
    };
    let rounds = counted(told.rounds as usize, "round");
    let how = match (&told.ended_early, told.converged) {
        (Some(early), _) => {
            format!("the run ended early, after {}, so they are not final", counted(early.round as usize, "round"))
        }
        (None, Some(true)) if told.rounds == 0 => "the run converged".to_owned(),
        (None, Some(true)) => format!("the run converged after {rounds}"),
        (None, _) if told.privacy.is_some() => format!("the run made the {rounds} that its plan has with noise"),
        (None, Some(false)) => format!("the run stopped after {rounds} without having converged"),
        (None, None) => "the file does not say whether the run converged".to_owned(),
    };
    let mut doubt = String::new();
    if let Some(end) = told.ends() {
        doubt += &format!(" {end}.");
    }
    if told.k > 1 && against.is_empty() && !told.tests_whether() {
        doubt += " Whether there are groups at all was not tested.";
    }
    // What speaks against it comes first.
    let first = match (told.k, against.is_empty()) {
        (_, true) => String::new(),
        (1, false) => format!("Whether there are groups cannot be told: {}. ", against.join(", ")),
        (k, _) => format!("Whether there are {k} groups is doubtful: {}. ", against.join(", ")),
    };
    format!("{first}{k} among {} by the method {}; {how}.{doubt}", whose(told), clean(&told.method))
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
    let undefined = told.k > 1 && told.indices.fuzzy_davies_bouldin.is_none() && told.objective.is_some();
    // Under noise an index that drowned stands as null, too.
    if collapsed || undefined && told.privacy.is_none() {
        all.push("centres coincide");
    }
    all
}
