//! What the reader of a result should doubt, found from the result itself: a pure function of the recipe, the box and the outcome.
//!
//! A warning has a stable name, a sentence and the numbers it rests on. Nothing here asks a question: whatever a warning rests on was
//! asked for the result anyway. Thresholds are named below, each with its reason.

mod choice;
mod columns;
mod noise;
mod warning;

pub use choice::vote;
pub use noise::under_noise;
pub use warning::Warning;

use choice::{border, disagreement, no_clear_k, no_clear_k_under_noise};

use crate::algorithm::{Round, Traits};
use crate::method::{Seeding, Stability};
use crate::{Algorithm, Centres, Domain, Outcome, Recipe};

/// Two centres are one where their distance is below this part of the root mean square distance of rows to their centres: the same
/// as a Xie-Beni index above 16. Two halves of one normal cluster are 1.6 deviations apart, which is far above.
const CLOSE: f64 = 0.25;
/// A stop rule is coarse where the centres may still move by this part of the box's diagonal in a round. The defaults are 0.0035 of
/// the diagonal of two columns, and less with more.
const COARSE: f64 = 0.01;
/// A hard centre is not its cluster's mean where it is further off than this part of the root mean square distance of the rows.
const OFF_MEAN: f64 = 0.02;
/// Of several restarts, the best one is a lucky one where less than this share of them came to the same centres.
const LUCKY: f64 = 0.5;
/// Rounds of power iteration: only the first two digits of the largest eigenvalue matter.
const POWERS: usize = 100;

/// Every finding, with what it does to a sentence that says that groups were found: the reason why not to say it, or nothing if the
/// groups stand.
pub const KINDS: [(&str, Option<&str>); 24] = [
    ("centres-collapsed", Some("the centres have fallen together")),
    ("noise-above-forecast", Some("noise moved the centres much farther than forecast")),
    ("cluster-drowned", Some("a cluster cannot be told from noise")),
    ("another-optimum", Some("the method has a better partition of such rows")),
    ("rival-partition", Some("other centres fit the rows about as well")),
    ("few-candidates", Some("there may be fewer groups than centres")),
    ("one-start", None),
    ("restarts-disagree", None),
    ("not-converged", Some("the centres had not come to rest")),
    ("k-at-border", None),
    ("no-clear-k", Some("no number of groups stands out")),
    ("indices-disagree", None),
    ("centres-frozen", Some("some centres hold no rows")),
    ("centres-close", Some("some centres share a group")),
    ("fuzzifier-too-large", Some("the fuzzifier draws all centres together")),
    ("off-means", None),
    ("local-centres-differ", Some("the sites' own centres do not match")),
    ("flat-column", None),
    ("coarse-epsilon", Some("the stop rule held before the centres were at rest")),
    ("few-rows", Some("there are too few rows to tell")),
    ("outliers", Some("few rows that lie apart carry a column")),
    ("code", Some("a column seems to have a code for missing values")),
    ("row-numbers", Some("a column looks like row numbers")),
    ("one-column", Some("one column made them")),
];

/// Everything to doubt about this outcome of a run of `recipe` on `domain`, whose columns have these names.
/// `excess`: how much larger the noise of its totals is than planned.
pub fn of(recipe: &Recipe, domain: &Domain, names: &[String], outcome: &Outcome, excess: f64) -> Vec<Warning> {
    let traits = recipe.algorithm.traits();
    let mut found = Vec::from_iter(border(recipe, outcome));
    // Noise moves the numbers of all others; centres are looked at with their errors ([`under_noise`]).
    if recipe.noise.is_some() {
        found.extend(no_clear_k_under_noise(recipe, outcome));
        let noise = columns::noise(recipe, domain).map_or(f64::INFINITY, |noise| noise * excess);
        found.extend(columns::of(domain, names, outcome, noise));
        found.extend(noise::another_optimum(recipe, domain, outcome, excess));
        found.extend(noise::rival(outcome));
    } else {
        found.extend(first_centres(recipe, outcome));
        found.extend(unfinished(recipe, outcome));
        // Rows that lie on their centres leave no K to doubt.
        if outcome.below.is_none() {
            found.extend(no_clear_k(recipe, outcome));
            found.extend(disagreement(recipe, outcome));
        }
        found.extend(frozen(recipe, outcome));
        found.extend(close_centres(outcome));
        found.extend(fuzzifier(recipe, outcome));
        found.extend(off_means(outcome));
        found.extend(uneven(outcome));
        found.extend(coarse(recipe, domain, outcome));
        found.extend(few_rows(outcome));
        found.extend(columns::of(domain, names, outcome, 0.0));
    }
    found.retain(|warning| may_be_said(&warning.name, &traits));
    once(found)
}

/// Whether a finding means anything under a method.
fn may_be_said(name: &str, of: &Traits) -> bool {
    let clusters = of.describes.is_none();
    match name {
        "local-centres-differ" => of.counts_local_centres,
        // k-means only leaves them by stopping early, which is said.
        "off-means" => clusters && of.fuzzifier.is_none() && of.local_steps > 0,
        // It is known of the distances and memberships of fuzzy c-means.
        "fuzzifier-too-large" => of.fuzzifier.is_some(),
        "flat-column" | "outliers" | "code" | "row-numbers" => true,
        _ => clusters,
    }
}

/// Without what has the same cause as something that says more: the cause, and what follows from it.
fn once(mut found: Vec<Warning>) -> Vec<Warning> {
    const FOLLOWS: [(&str, &str); 7] = [
        // Centres that are drawn together leave no K to choose.
        ("fuzzifier-too-large", "no-clear-k"),
        // It names what the others pick.
        ("no-clear-k", "indices-disagree"),
        ("fuzzifier-too-large", "centres-close"),
        ("few-candidates", "centres-close"),
        ("not-converged", "off-means"),
        ("coarse-epsilon", "off-means"),
        // A box that is too wide leaves the others to make the clusters.
        ("flat-column", "one-column"),
    ];
    let said: Vec<_> = found.iter().map(|warning| warning.name.clone()).collect();
    let column = |warning: &Warning| warning.numbers.get("column").copied().flatten();
    let carried: Vec<Option<f64>> =
        found.iter().filter(|warning| ["outliers", "code"].contains(&&*warning.name)).map(column).collect();
    found.retain(|warning| {
        let follows =
            FOLLOWS.iter().any(|(cause, effect)| *effect == warning.name && said.iter().any(|said| said == cause));
        // That the gap still grows at the largest K says so, too.
        let end = warning.name == "k-at-border" && warning.numbers["k"] == warning.numbers["to"];
        let follows = follows || (end && said.iter().any(|said| said == "no-clear-k"));
        // Rows that lie apart make the box wide.
        let carried = warning.name == "flat-column" && carried.contains(&column(warning));
        !(follows || carried)
    });
    found
}

/// Whether the first centres may have decided the result.
fn first_centres(recipe: &Recipe, outcome: &Outcome) -> Option<Warning> {
    let k = outcome.centres.k() as u32;
    if k == 1 {
        return None;
    }
    if let Some(full) = outcome.candidates.filter(|full| *full < k) {
        let empty = k - full;
        let text = format!(
            "only {full} candidates for first centres held rows, so {empty} of the {k} began where none were. \
             Others may have a better objective: init=uniform and restarts=10 tell, or a smaller K"
        );
        return Some(Warning::new("few-candidates", text, [("candidates", full.into()), ("k", k.into())]));
    }
    if recipe.restarts == 1 {
        return matches!(recipe.seeding, Seeding::Uniform { .. }).then(|| {
            let text = "these centres come from a single random start; another start may fit better. Try restarts=10, or init=totals";
            Warning::new("one-start", text.to_owned(), [("restarts", 1.0)])
        });
    }
    let lucky = |stability: &&Stability| stability.agreement < LUCKY && outcome.objective.is_finite();
    let stability = outcome.stability.as_ref().filter(lucky)?;
    let restarts = stability.matched_distance.len() as f64;
    let text = format!(
        "only {:.0} of {restarts} restarts came to these centres, which have the best objective: others that were not tried may have \
         a better one. More restarts tell, or another K",
        stability.agreement * restarts
    );
    let numbers = [("restarts", restarts), ("agreement", stability.agreement), ("threshold", LUCKY)];
    Some(Warning::new("restarts-disagree", text, numbers))
}

/// The stop rule did not hold within the plan's rounds.
fn unfinished(recipe: &Recipe, outcome: &Outcome) -> Option<Warning> {
    let last = outcome.history.last()?;
    let epsilon = recipe.algorithm.traits().epsilon.unwrap_or(0.0);
    // Where no tolerance is given, a run that stands still for all practical purposes is done.
    if outcome.converged || last.shift <= epsilon.max(1e-9) {
        return None;
    }
    let text = match circle(&outcome.history) {
        // Which centres come next follows from those before, so no round more ends it.
        Some(rounds) => format!(
            "the centres go in a circle of {rounds} rounds and moved by {:.1e} in the last one, about as far as totals are rounded: no round \
             more ends it, but a stop rule that is not finer than that (epsilon)",
            last.shift
        ),
        None => format!(
            "the centres still moved by {:.1e} in round {}, the last one: give the plan more rounds (max_rounds)",
            last.shift, last.round
        ),
    };
    let numbers = [("rounds", f64::from(last.round)), ("shift", last.shift), ("epsilon", epsilon)];
    Some(Warning::new("not-converged", text, numbers))
}

/// How many rounds the moves repeat after, to the last digit, where they do.
fn circle(history: &[Round]) -> Option<usize> {
    let moves: Vec<f64> = history.iter().rev().map(|round| round.shift).collect();
    (1..=moves.len() / 2).find(|period| moves[..*period] == moves[*period..2 * period])
}

/// Centres that hold so little of the rows that totals cannot move them.
fn frozen(recipe: &Recipe, outcome: &Outcome) -> Option<Warning> {
    let traits = recipe.algorithm.traits();
    let m = traits.fuzzifier.filter(|_| matches!(recipe.algorithm, Algorithm::Fcm { .. }))?;
    let (k, frozen) = (outcome.centres.k(), outcome.frozen as usize);
    (frozen > 0).then(|| {
        let (are, left) = (if frozen == 1 { "centre holds" } else { "centres hold" }, k - frozen);
        let text = format!(
            "{frozen} of {k} {are} less than a billionth of the weight and stood still: totals are rounded more coarsely. This is a result \
             of {left} clusters, and K = {k} may have a better one: other first centres (init=totals, restarts=10) or a larger m than {m}"
        );
        Warning::new("centres-frozen", text, [("frozen", frozen as f64), ("k", k as f64), ("m", m)])
    })
}

/// Two centres lie in one place.
fn close_centres(outcome: &Outcome) -> Option<Warning> {
    // Xie-Beni is J/N over the smallest squared distance of two centres.
    let ratio = outcome.indices.xie_beni.filter(|index| *index > 0.0)?.sqrt().recip();
    (ratio < CLOSE).then(|| {
        let text = format!(
            "two centres are closer to each other than rows are to their centres, at {ratio:.2} of the root mean square distance: \
             they share a cluster. Fewer K, or for fuzzy methods a fuzzifier nearer to 1, keeps them apart"
        );
        Warning::new("centres-close", text, [("gap_over_spread", ratio), ("threshold", CLOSE)])
    })
}

/// The fuzzifier is so large that all centres may rest on the mean of the rows: from m = 1 / (1 - 2 lambda) on, where lambda is the
/// largest eigenvalue of the scatter of the rows' directions from their mean (Yu, Cheng & Huang 2004). It is at least 1/d. Where
/// the columns' variances were asked for, it is estimated from them and from the scatter of the centres.
fn fuzzifier(recipe: &Recipe, outcome: &Outcome) -> Option<Warning> {
    let m = recipe.algorithm.traits().fuzzifier?;
    let centres = outcome.in_questions()?;
    let d = centres.columns() as f64;
    let least = 1.0 / d;
    let total = outcome.deviations.as_ref().map(|all| all.iter().map(|sd| sd * sd).sum::<f64>()).filter(|t| *t > 0.0);
    let (lambda, from) = match (total, &outcome.deviations) {
        (Some(total), Some(deviations)) => {
            let widest = deviations.iter().fold(0.0_f64, |most, sd| most.max(sd * sd));
            (least.max(widest / total).max(between(&centres) / total).min(1.0), "the variances and the centres")
        }
        _ => (least, "the number of columns alone"),
    };
    let bound = if lambda < 0.5 { 1.0 / (1.0 - 2.0 * lambda) } else { f64::INFINITY };
    // Without variances the bound is only the worst case: it speaks where the centres have come close as well.
    let seen = total.is_some() || outcome.indices.xie_beni.is_some_and(|index| index.sqrt().recip() < 1.0);
    (m >= bound && seen && centres.k() > 1).then(|| {
        let text = format!(
            "with m = {m} in {d} columns all centres may fall together on the mean of the rows, and are drawn towards it: below \
             m = {bound:.2} they do not, judged by {from}"
        );
        Warning::new("fuzzifier-too-large", text, [("m", m), ("bound", bound), ("lambda", lambda)])
    })
}

/// The largest eigenvalue of the scatter of the centres around their mean, each counting the same.
fn between(centres: &Centres) -> f64 {
    let (k, d) = (centres.k() as f64, centres.columns());
    let mut mean = vec![0.0; d];
    centres.rows().for_each(|row| mean.iter_mut().zip(row).for_each(|(mean, x)| *mean += x / k));
    let off: Vec<Vec<f64>> =
        centres.rows().map(|row| row.iter().zip(&mean).map(|(x, mean)| x - mean).collect()).collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    // It begins at the centre that is farthest off, which is not at right angles to the first axis.
    let Some(farthest) = off.iter().max_by(|a, b| dot(a, a).total_cmp(&dot(b, b))) else { return 0.0 };
    let (mut axis, mut value) = (farthest.clone(), 0.0);
    for _ in 0..POWERS {
        let length = dot(&axis, &axis).sqrt();
        if length == 0.0 {
            return 0.0;
        }
        axis.iter_mut().for_each(|x| *x /= length);
        let mut next = vec![0.0; d];
        for row in &off {
            let along = dot(row, &axis) / k;
            next.iter_mut().zip(row).for_each(|(next, x)| *next += along * x);
        }
        value = dot(&next, &axis);
        axis = next;
    }
    value
}

/// A method of hard groups at the sites that ended beside the means of its clusters: its sites left out small ones.
fn off_means(outcome: &Outcome) -> Option<Warning> {
    let off = outcome.off_means?;
    let spread = outcome.objective_per_row.max(0.0).sqrt();
    (outcome.below.is_none() && spread.is_finite() && off > OFF_MEAN * spread).then(|| {
        let text = format!(
            "a centre is {:.1} % of the rows' root mean square distance away from the mean of its cluster: the sites left out small \
             groups, or their own steps pull elsewhere (finish=10 ends with exact Lloyd)",
            100.0 * off / spread
        );
        Warning::new("off-means", text, [("distance", off), ("spread", spread)])
    })
}

/// FFCM's second average: the sites' own centres do not match one another.
fn uneven(outcome: &Outcome) -> Option<Warning> {
    let behind = outcome.local_centres.as_ref()?;
    let each = behind.iter().sum::<f64>() / behind.len() as f64;
    let (least, most) = behind.iter().fold((f64::MAX, 0.0_f64), |(a, b), w| (a.min(*w), b.max(*w)));
    (most - each > 0.5 || each - least > 0.5).then(|| {
        let text = format!(
            "the sites' own centres do not match: {least:.0} to {most:.0} of them stand behind a centre, where each site finds one \
             for each. Averages of such centres may be far from the clusters of all rows; fcm is exact"
        );
        Warning::new("local-centres-differ", text, [("least", least), ("most", most), ("each", each)])
    })
}

/// How far centres would still move in all, if every round moved them by the same part less as the last ones did; working units of the
/// shifts. `None` if that cannot be told, or they stand still.
pub fn still_to_go(shifts: &[f64]) -> Option<f64> {
    let &[.., before, _, last] = shifts else { return None };
    let rate = (last / before).sqrt();
    (rate > 0.0 && rate < 1.0).then(|| last * rate / (1.0 - rate))
}

/// A stop rule that holds long before the centres rest.
fn coarse(recipe: &Recipe, domain: &Domain, outcome: &Outcome) -> Option<Warning> {
    let epsilon = recipe.algorithm.traits().epsilon?;
    let factor = |column: usize| outcome.transform.as_ref().map_or(1.0, |transform| transform.factor[column]);
    let side = |column: usize| domain.side(column) * factor(column);
    let diagonal = (0..domain.columns()).map(|column| side(column).powi(2)).sum::<f64>().sqrt();
    let shifts: Vec<f64> = outcome.history.iter().map(|round| round.shift).collect();
    let rest = still_to_go(&shifts).filter(|_| outcome.converged && epsilon > 0.0).unwrap_or(0.0);
    let numbers = [("epsilon", epsilon), ("diagonal", diagonal), ("still_to_go", rest)];
    let text = if epsilon > COARSE * diagonal {
        format!(
            "epsilon = {epsilon} is {:.1} % of the box's diagonal: the run stops while centres still move that far in a round",
            100.0 * epsilon / diagonal
        )
    } else if rest > COARSE * diagonal {
        format!(
            "the stop rule held (epsilon = {epsilon}) while centres were not at rest: at the pace of the last rounds they would still move \
             by {:.1} % of the box's diagonal. A smaller epsilon and more rounds (max_rounds) tell",
            100.0 * rest / diagonal
        )
    } else {
        return None;
    };
    Some(Warning::new("coarse-epsilon", text, numbers))
}

/// Fewer rows than numbers that are estimated from them.
fn few_rows(outcome: &Outcome) -> Option<Warning> {
    let (n, numbers) = (outcome.n_total? as f64, (outcome.centres.k() * outcome.centres.columns()) as f64);
    (n < numbers).then(|| {
        let text = format!(
            "{n:.0} rows for {numbers:.0} coordinates of centres: the centres describe these rows and no others"
        );
        Warning::new("few-rows", text, [("rows", n), ("coordinates", numbers)])
    })
}

#[cfg(test)]
mod tests {
    use super::choice::majority;
    use super::*;
    use crate::Scaling;
    use crate::method::choice::tests::curve;
    use crate::method::{Choice, Pick};

    #[test]
    fn an_index_without_a_turn_picks_nothing() {
        let by = Pick::FuzzyDaviesBouldin;
        assert_eq!(vote(by, &curve(&[0.5, 0.3, 0.4])), Some(3));
        assert_eq!(vote(by, &curve(&[0.5, 0.4, 0.3])), None);
        assert_eq!(vote(by, &curve(&[0.3, 0.4, 0.5])), None);
        assert_eq!(vote(by, &curve(&[0.5, 0.4])), Some(3), "two K have no turn");
        assert_eq!(vote(Pick::XieBeni, &curve(&[0.5, 0.3, 0.4])), None, "it was not asked for");
    }

    /// More rounds are no advice where the moves come back to the last digit: then more rounds bring the same ones again.
    #[test]
    fn moves_that_come_back_are_a_circle() {
        let history = |shifts: &[f64]| -> Vec<Round> {
            (1u32..).zip(shifts).map(|(round, shift)| Round { round, shift: *shift }).collect()
        };
        assert_eq!(circle(&history(&[0.5, 0.1, 3e-9, 2e-9, 1e-9, 3e-9, 2e-9, 1e-9])), Some(3));
        assert_eq!(circle(&history(&[0.5, 0.1, 2e-9, 2e-9])), Some(1));
        assert_eq!(circle(&history(&[0.5, 0.1, 3e-9, 2e-9, 1e-9, 3e-9, 2e-9])), None, "not all of it came back");
        assert_eq!(circle(&history(&[0.4, 0.3, 0.2])), None);
        assert_eq!(circle(&[]), None);
    }

    #[test]
    fn most_is_more_than_half() {
        let most = |ks: &[u32]| {
            majority(&Pick::ALL.map(|(pick, _)| pick).into_iter().zip(ks.iter().copied()).collect::<Vec<_>>())
        };
        assert_eq!([most(&[3, 5, 5]), most(&[4]), most(&[2, 2, 2, 5, 7])], [Some(5), Some(4), Some(2)]);
        // A tie is one, and one vote of seven is not most of them.
        assert_eq!([most(&[3, 5]), most(&[3, 3, 5, 5]), most(&[2, 3, 4, 5, 6, 7, 8]), most(&[])], [None; 4]);
    }

    /// What is said of K where the gap chose among 1 to 4, with these gaps and these values of fuzzy Davies-Bouldin and Xie-Beni from K = 2.
    fn said(gaps: [f64; 4], fuzzy: [f64; 3], xie_beni: [f64; 3]) -> Vec<Warning> {
        let mut points = curve(&[f64::INFINITY, fuzzy[0], fuzzy[1], fuzzy[2]]);
        for (at, point) in points.iter_mut().enumerate() {
            point.k = at as u32 + 1;
            (point.indices.gap, point.indices.gap_error) = (Some(gaps[at]), Some(0.01));
            point.indices.xie_beni = at.checked_sub(1).map(|at| xie_beni[at]);
        }
        let by = Choice { by: Pick::Gap, elbow: false };
        let seeding = Seeding::Uniform { seed: 1 };
        let fcm = crate::Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 9 };
        let recipe = Recipe { choice: by, ..Recipe::plain(fcm, 1, seeding) };
        let domain = Domain::known(vec![0.0], vec![1.0], Scaling::Box);
        let site = crate::Prepared::known(&[0.1, 0.2, 0.8, 0.9], &domain);
        let outcome = crate::pooled::run(&mut recipe.run(&domain, 1).unwrap(), &site).unwrap();
        let k = points[by.choose(&points)].k as usize;
        let centres = Centres::new(k, 1, (0..k).map(|at| at as f64 / 4.0).collect()).unwrap();
        let outcome = Outcome { centres, curve: points, ..outcome };
        let all = [no_clear_k(&recipe, &outcome), disagreement(&recipe, &outcome), border(&recipe, &outcome)];
        once(all.into_iter().flatten().collect())
    }

    #[test]
    fn an_index_votes_where_it_is_defined_and_the_one_that_chose_has_no_second_vote() {
        let names = |found: &[Warning]| found.iter().map(|warning| warning.name.clone()).collect::<Vec<_>>();
        // One cluster: neither of the others is defined there.
        let one = said([0.5, 0.3, 0.2, 0.1], [0.5, 0.3, 0.4], [0.5, 0.3, 0.4]);
        assert!(one.is_empty(), "{one:?}");
        let three = said([0.1, 0.3, 0.9, 0.8], [0.5, 0.3, 0.4], [0.5, 0.3, 0.4]);
        assert!(three.is_empty(), "{three:?}");
        let split = said([0.1, 0.3, 0.9, 0.8], [0.3, 0.4, 0.35], [0.5, 0.3, 0.4]);
        assert!(split.is_empty(), "half of the others pick it: {split:?}");
        let other = said([0.1, 0.3, 0.9, 0.8], [0.5, 0.4, 0.3], [0.3, 0.5, 0.4]);
        assert_eq!(names(&other), ["no-clear-k"], "one cause, one finding");
        assert!(other[0].text.contains("no other index picks it"), "{other:?}");
        assert!(
            other[0].text.ends_with(". The other indices pick xie-beni 2"),
            "one that only falls picks none: {other:?}"
        );
    }

    #[test]
    fn a_k_that_the_gap_does_not_bear_out_is_no_clear_one() {
        let fuzzy = [0.5, 0.3, 0.4];
        // A larger one has a larger gap by far; by less than twice its error it is none.
        let later = said([0.1, 0.5, 0.4, 0.6], fuzzy, fuzzy);
        assert_eq!((&*later[0].name, later[0].numbers["chosen"]), ("no-clear-k", Some(2.0)));
        assert!(later[0].text.contains("the gap of K = 4 is larger"), "{later:?}");
        let near = said([0.1, 0.5, 0.4, 0.515], [0.3, 0.5, 0.4], [0.3, 0.5, 0.4]);
        assert!(near.iter().all(|found| found.name != "no-clear-k"), "{near:?}");
        // It only grows: the end of the range is said to be no more than that.
        let grows = said([0.1, 0.3, 0.5, 0.7], fuzzy, fuzzy);
        let names: Vec<&str> = grows.iter().map(|found| &*found.name).collect();
        assert_eq!(names, ["no-clear-k"], "{grows:?}");
        assert!(grows[0].text.contains("K = 4, the largest that was tried"), "{grows:?}");
    }

    #[test]
    fn names_are_those_of_plans() {
        for (pick, _) in Pick::ALL {
            assert_eq!(serde_json::to_value(pick).unwrap(), pick.name());
        }
    }

    #[test]
    fn the_first_axis_of_centres() {
        let centres =
            |rows: &[[f64; 2]]| Centres::from_rows(&rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>()).unwrap();
        assert!((between(&centres(&[[0.0, 0.0], [2.0, 0.0]])) - 1.0).abs() < 1e-12);
        assert!((between(&centres(&[[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])) - 4.5).abs() < 1e-9);
        assert_eq!(between(&centres(&[[1.0, 1.0], [1.0, 1.0]])), 0.0);
    }
}
