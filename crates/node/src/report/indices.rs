//! The validity indices: what they are called, which way is better, and what a value means in a sentence.

use veilsum_charts::{Chart, Plot};
use veilsum_cluster::{
    algorithm::ALGORITHMS,
    evenly,
    method::{CurvePoint, choice::elbow},
};

use super::told::{Told, by_key};
use crate::cost::counted;

use Better::{Bend, Larger, Neither, Smaller};

/// Which way an index is better.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Better {
    Smaller,
    Larger,
    /// It falls with every cluster more.
    Bend,
    /// It does not choose.
    Neither,
}

impl Better {
    fn words(self) -> &'static str {
        match self {
            Smaller => "smaller is better",
            Larger => "larger is better",
            Bend => "falls with K: its bend tells",
            Neither => "",
        }
    }
}

/// Key, name, which way, range.
const ALL: [(&str, &str, Better, &str); 14] = [
    ("fuzzy_davies_bouldin", "fuzzy Davies–Bouldin", Smaller, "0 or more"),
    ("davies_bouldin", "Davies–Bouldin", Smaller, "0 or more"),
    ("xie_beni", "Xie–Beni", Smaller, "0 or more"),
    ("partition_coefficient", "partition coefficient", Larger, "1/K to 1"),
    ("modified_partition_coefficient", "modified partition coefficient", Larger, "0 to 1"),
    ("partition_entropy", "partition entropy", Smaller, "0 to ln K"),
    ("fukuyama_sugeno", "Fukuyama–Sugeno", Smaller, ""),
    ("calinski_harabasz", "Calinski–Harabasz", Larger, "0 or more"),
    ("gap", "gap statistic", Larger, ""),
    ("wsse", "WSSE", Bend, "0 or more"),
    ("wsse_squared", "WSSE (squared distances)", Bend, "0 or more"),
    ("osse", "OSSE", Neither, "0 or more"),
    ("osse_squared", "OSSE (squared distances)", Neither, "0 or more"),
    ("inertia", "inertia", Bend, "0 or more"),
];

/// The name of an index by the name that plans have for it.
pub(super) fn name_of(index: &str) -> String {
    let key = index.replace('-', "_");
    ALL.iter().find(|(of, ..)| *of == key).map_or(index.to_owned(), |(_, name, ..)| (*name).to_owned())
}

/// Every index that was computed: name, value with its error under noise, which way and range.
pub(super) fn shown(told: &Told) -> Vec<(String, String, String)> {
    let all = by_key(&told.indices);
    let value = |key: &str| {
        told.shown(*all.get(key)?, |errors| match key {
            "fuzzy_davies_bouldin" => errors.fuzzy_davies_bouldin,
            "xie_beni" => errors.xie_beni,
            "gap" => told.indices.gap_error,
            _ => None,
        })
    };
    let one = |(key, name, better, range): &(&str, &str, Better, &str)| {
        let words: Vec<&str> = [better.words(), *range].into_iter().filter(|words| !words.is_empty()).collect();
        Some(((*name).to_owned(), value(key)?, words.join("; ")))
    };
    ALL.iter().filter_map(one).collect()
}

/// Whether a method, if it is one, has a fuzzifier.
pub(super) fn has_fuzzifier(method: &str) -> bool {
    let about = ALGORITHMS.iter().find(|about| about.name == method);
    about.is_none_or(|about| (about.usual)().traits().fuzzifier.is_some())
}

/// An index is better than that of rows without groups if it is by more than this.
const MORE: f64 = 0.05;

/// What the modified partition coefficient of the result means, for people who do not know it. Under noise nobody knows how far it is off.
pub(super) fn meaning(told: &Told) -> Option<String> {
    let value = told.indices.modified_partition_coefficient.filter(|_| told.privacy.is_none())?;
    // Rows that spread as these do, as far as that is known, in a box without groups.
    let spread = |column: &String| told.part(column).and_then(|part| part.total).map_or(1.0, f64::sqrt);
    let sides: Vec<f64> = told.columns.iter().map(spread).collect();
    let hard = !has_fuzzifier(&told.method);
    let even = Some(told.m).filter(|m| *m > 1.0).and_then(|m| evenly::indices(told.k, &sides, m, hard));
    let beside = even.and_then(|even| even.modified_partition_coefficient).map_or(String::new(), |even| {
        let verdict = match value - even {
            more if more > MORE => "more",
            more if more > 0.0 => "hardly more",
            _ => "no more",
        };
        let columns = counted(sides.len(), "column");
        format!("; rows without groups, spread evenly, reach about {even:.2} with K = {} in {columns}, and it is {verdict} here", told.k)
    });
    Some(format!(
        "how clearly rows belong to one group, on a scale from 0 (to all alike) to 1 (to one alone): {value:.2}{beside}"
    ))
}

/// How many indices are best at the K of the result, by name, and how many have a best value.
pub(super) fn best_here(told: &Told) -> (Vec<&'static str>, usize) {
    let mut here = Vec::new();
    let mut all = 0;
    for (key, name, better, _) in ALL.into_iter().filter(|of| matches!(of.2, Smaller | Larger)) {
        let points = points(told, &|point| value(point, key));
        if points.len() < 2 {
            continue;
        }
        all += 1;
        here.extend(best(&points, better).filter(|best| *best == f64::from(told.k)).map(|_| name));
    }
    (here, all)
}

/// An index of one K. The partition coefficient and entropy of one group are 1 and 0 whatever the rows are, and say nothing.
fn value(point: &CurvePoint, key: &str) -> Option<f64> {
    let empty = point.k == 1 && matches!(key, "partition_coefficient" | "partition_entropy");
    by_key(&point.indices).get(key).copied().flatten().filter(|_| !empty)
}

/// An index over K, where it means something.
fn points(told: &Told, of: &dyn Fn(&CurvePoint) -> Option<f64>) -> Vec<(f64, f64)> {
    let points = told.curve.iter().filter(|point| !point.collapsed);
    let points = points.filter_map(|point| Some((f64::from(point.k), of(point).filter(|value| value.is_finite())?)));
    let mut points: Vec<(f64, f64)> = points.collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// The K with the best value of an index.
fn best(points: &[(f64, f64)], better: Better) -> Option<f64> {
    let sign = if better == Larger { -1.0 } else { 1.0 };
    points.iter().min_by(|a, b| (sign * a.1).total_cmp(&(sign * b.1))).map(|point| point.0)
}

/// A chart for every index over K, with the best value, the elbow where it has one, and the K of the result.
pub(super) fn curves(told: &Told) -> Vec<Chart> {
    let mut found = Vec::new();
    let objective = ("objective", "objective J", Bend, "");
    for (key, name, better, _) in ALL.into_iter().chain([objective]).filter(|of| of.2 != Neither) {
        let points = points(told, &|point| match key {
            "objective" => point.objective,
            key => value(point, key),
        });
        if points.len() < 2 {
            continue;
        }
        let best_word = if better == Larger { "largest" } else { "smallest" };
        let marks = [
            (best(&points, better).filter(|_| better != Bend), best_word),
            (elbow(&points).ok().map(|at| points[at].0), "elbow"),
            (Some(f64::from(told.k)), "the result"),
        ];
        let note = |(k, _): &(f64, f64)| {
            let words: Vec<&str> = marks.iter().filter(|(at, _)| *at == Some(*k)).map(|(_, word)| *word).collect();
            (!words.is_empty()).then(|| (*k, format!("K = {k}: {}", words.join(", "))))
        };
        let notes: Vec<(f64, String)> = points.iter().filter_map(note).collect();
        let title = format!("{name}: {}", better.words());
        let chart = Chart::new(title, "groups K", name, Plot::Lines(vec![(name.to_owned(), points)]));
        found.push(Chart { notes, ..chart });
    }
    found
}
