//! What speaks against the chosen K: the end of its range, the other indices, and the curve of the gap itself.

use super::warning::Warning;
use crate::method::{Choice, CurvePoint, Pick};
use crate::{Outcome, Recipe};

/// The chosen K is an end of the range in which the index that chose has a value; one cluster is none, because there are never fewer.
pub(super) fn border(recipe: &Recipe, outcome: &Outcome) -> Option<Warning> {
    let (tried, last) = (outcome.curve.first()?.k, outcome.curve.last()?.k);
    let by = recipe.choice.by;
    // Most indices have no value for one cluster, so that they cannot choose it.
    let first = outcome.curve.iter().find(|point| by.badness(point).is_some()).map_or(tried, |point| point.k.min(2));
    let first = first.max(tried);
    let k = outcome.centres.k() as u32;
    (tried < last && (k == last || (k == first && first > 1))).then(|| {
        let end = if k == first { "smallest" } else { "largest" };
        let text = match k {
            2 if k == first && tried == 1 => format!(
                "K = 2 is the smallest that {} can choose: whether there are clusters at all was not tested",
                by.name()
            ),
            2 if k == first => format!(
                "K = 2 is the smallest of the range 2 to {last}: whether there are clusters at all was not asked"
            ),
            _ => format!("K = {k} is the {end} of the range {tried} to {last}: the best K may lie beyond it"),
        };
        Warning::new("k-at-border", text, [("k", k.into()), ("from", tried.into()), ("to", last.into())])
    })
}

/// Which K an index picks from a curve. An index that only rises or only falls over three and more K picks none: its best value is
/// an end of the range whatever the rows are (Pal & Bezdek 1995 for the partition coefficient and entropy).
pub fn vote(pick: Pick, curve: &[CurvePoint]) -> Option<u32> {
    if pick == Pick::Gap {
        // It has a rule of its own, and no best value.
        let asked = curve.iter().any(|point| point.indices.gap.is_some());
        return asked.then(|| Choice { by: pick, elbow: false }.choose(curve)).map(|at| curve[at].k);
    }
    let usable: Vec<(u32, f64)> = curve
        .iter()
        .filter(|point| !point.collapsed)
        .filter_map(|point| Some((point.k, pick.badness(point)?)))
        .collect();
    let rises = usable.windows(2).all(|pair| pair[0].1 <= pair[1].1);
    let falls = usable.windows(2).all(|pair| pair[0].1 >= pair[1].1);
    let says = usable.len() > 1 && (usable.len() < 3 || !(rises || falls));
    says.then(|| usable.iter().min_by(|a, b| a.1.total_cmp(&b.1)).map(|best| best.0)).flatten()
}

/// The K that more than half of the votes are for.
pub(super) fn majority(votes: &[(Pick, u32)]) -> Option<u32> {
    let most = |k: &u32| 2 * votes.iter().filter(|vote| vote.1 == *k).count() > votes.len();
    votes.iter().map(|vote| vote.1).find(most)
}

/// Which K the other indices pick. The one that chose has no second vote, and one without a value at the chosen K, as most have none for
/// one cluster, could not have picked it.
fn others(recipe: &Recipe, outcome: &Outcome) -> Vec<(Pick, u32)> {
    let k = outcome.centres.k() as u32;
    let Some(chosen) = outcome.curve.iter().find(|point| point.k == k) else { return Vec::new() };
    let asked = Pick::ALL
        .map(|(pick, _)| pick)
        .into_iter()
        .filter(|pick| *pick != recipe.choice.by && pick.badness(chosen).is_some());
    asked.filter_map(|pick| Some((pick, vote(pick, &outcome.curve)?))).collect()
}

fn picked(votes: &[(Pick, u32)]) -> String {
    votes.iter().map(|(pick, vote)| format!("{} {vote}", pick.name())).collect::<Vec<_>>().join(", ")
}

/// Most of the other indices pick another K. Single ones do so on the clearest clusters.
pub(super) fn disagreement(recipe: &Recipe, outcome: &Outcome) -> Option<Warning> {
    let (k, votes) = (outcome.centres.k() as u32, others(recipe, outcome));
    if 2 * votes.iter().filter(|(_, vote)| *vote == k).count() >= votes.len() {
        return None;
    }
    let most = majority(&votes);
    let advice = most.map_or("no K has more than half of the others".to_owned(), |most| {
        let count = votes.iter().filter(|vote| vote.1 == most).count();
        format!("{count} of the other {} pick K = {most}", votes.len())
    });
    let by = recipe.choice.by.name();
    let text =
        format!("the indices disagree about K: {by} chose {k}, and the others pick {}; {advice}", picked(&votes));
    let mut warning = Warning::new("indices-disagree", text, [("chosen", k.into())]);
    warning.numbers.extend(most.map(|most| ("most".to_owned(), Some(f64::from(most)))));
    warning.numbers.extend(votes.iter().map(|(pick, vote)| (pick.name().to_owned(), Some(f64::from(*vote)))));
    Some(warning)
}

/// Noise leaves another K that cannot be told from the chosen one.
pub(super) fn no_clear_k_under_noise(recipe: &Recipe, outcome: &Outcome) -> Option<Warning> {
    let (k, last) = (outcome.centres.k() as u32, outcome.curve.last()?.k);
    let other = recipe.choice.under_noise(&outcome.curve).1?;
    let text = match other {
        other if other == k => {
            format!("there is no clear K: K = {k} is the largest that was tried, and the gap still grows")
        }
        other => format!("there is no clear K: with this noise K = {k} cannot be told from K = {other}"),
    };
    let text = text + ". More rows, a larger rho or a smaller range of K may tell";
    Some(Warning::new("no-clear-k", text, [("chosen", k.into()), ("other", other.into()), ("to", last.into())]))
}

/// The rule of the gap named a K, and neither the rest of its curve nor another index bears it out. Of 37 sets of rows with a known K the
/// rule alone was right in 23 and wrong in 11 for `kmeans`; without this finding it was right in 22 and wrong in 4.
pub(super) fn no_clear_k(recipe: &Recipe, outcome: &Outcome) -> Option<Warning> {
    if recipe.choice.by != Pick::Gap {
        return None;
    }
    let (k, last, votes) = (outcome.centres.k() as u32, outcome.curve.last()?.k, others(recipe, outcome));
    let text = match recipe.choice.doubted(&outcome.curve) {
        Some(better) if better == k && outcome.curve.iter().any(|point| point.k > k && point.collapsed) => format!(
            "there is no clear K: the gap still grows at K = {k}, and centres of larger K fell together. A fuzzifier nearer to 1 keeps \
             them apart"
        ),
        Some(better) if better == k => format!(
            "there is no clear K: the gap still grows at K = {last}, the largest that was tried. Rows may have more clusters, or columns \
             that follow one another"
        ),
        Some(better) => format!(
            "there is no clear K: K = {k} is the first that passes the rule of the gap, but the gap of K = {better} is larger by more \
             than twice its error. There may be clusters within clusters: look at both"
        ),
        None if k > 1 && !votes.is_empty() && votes.iter().all(|vote| vote.1 != k) => format!(
            "there is no clear K: the gap chose K = {k}, and no other index picks it. Columns that follow one another look like clusters \
             to the gap"
        ),
        None => return None,
    };
    let others = if votes.is_empty() { String::new() } else { format!(". The other indices pick {}", picked(&votes)) };
    Some(Warning::new("no-clear-k", text + &others, [("chosen", k.into()), ("to", last.into())]))
}
