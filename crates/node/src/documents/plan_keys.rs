//! What the keys of a plan are for, in a sentence each: the settings of `veilsum plan new`, and the comments in the file that it writes.

/// A setting (empty for a key of the file alone), the key of the plan's file that it comes to (the end of its path; empty if there is
/// none), and what it is for, with its default.
pub const PLAN_KEYS: &[(&str, &str, &str)] = &[
    ("m", "m", "Fuzzifier, above 1 [by columns and rows, from 1.1 to 2; 2 for hard methods]"),
    ("", "local.epsilon", "A site's own steps end when memberships change less"),
    ("epsilon", "epsilon", "Stop when centres move less, in units of the questions [by method]"),
    ("stop", "stop", "What epsilon bounds: frobenius, or the sum of all centres' shifts [frobenius]"),
    ("max_rounds", "max_rounds", "Rounds at most; under noise exactly so many [30; under noise 8, or 5]"),
    ("restarts", "restarts", "Runs from other first centres, of which the best counts [1; exact, hard: 5]"),
    ("init", "", "First centres: totals, uniform, or a file of K lines in box units"),
    ("local_steps", "local_steps", "ffcm, fkm: a site's own steps in a round; 0 is to convergence"),
    ("powers", "powers", "ffcm-avg1: weights are sums of u^m as printed; false: of u, as its code [true]"),
    ("min_group", "fkm.min_rows", "fkm: a site leaves out its groups with fewer rows [2]"),
    ("finish", "finish", "fkm: rounds of exact Lloyd afterwards, at most [0]"),
    ("anchors", "anchors", "ffcf: shared anchors [0: four for each cluster, at least 8]"),
    ("features", "features.max", "ffcf: feature vectors that a site holds at most [100]"),
    ("features_min", "features.min", "ffcf: feature vectors that are opened without a test [5]"),
    ("similarity", "features.tau", "ffcf: tau, the similarity from which two feature vectors are merged [1]"),
    ("bins", "describe.bins", "describe: bins of every column of numbers, over its range [16]"),
    ("scale", "scaling", "Units: box ([0, 1] by the range), or none"),
    ("out_of_box", "out_of_box", "A row outside the box: refuse or clip [refuse; under noise clip]"),
    ("standardise", "preparation", "Mean 0 and deviation 1 over the cohort: standard, or none [none]"),
    ("category_weight", "weight", "Squared distance of two rows that differ in a category, or .COLUMN=… [0.5]"),
    ("indices", "", "Validity indices: basic, scalars or all [basic; for hard methods all]"),
    ("local_k", "range.most", "Narrow the range of K to what sites would choose alone, of so many at most"),
    ("choose", "choice.by", "The index that chooses K from a range [fuzzy-davies-bouldin]"),
    ("elbow", "elbow", "Choose K at the elbow of a curve that falls over the whole range [false]"),
    ("db_p", "davies_bouldin.p", "p of both Davies-Bouldin indices: the norm between centres [2]"),
    ("db_q", "davies_bouldin.q", "Their q: distances, or 2: root of mean squares, for indices=all [1]"),
    ("judge", "judge", "Who opens the validity totals: coordinator or intermediary [coordinator]"),
    ("sample", "sampling.share", "Share of the sites that answers in each round [all]"),
    ("rows_per_person", "person.rows", "Noise hides persons, of whom so many rows count at a site at most [rows]"),
    ("dp_absolute_rounds", "absolute_rounds", "First rounds with sums around the box's middle [0; 3 if uniform]"),
    ("dp_tau", "tau", "How far a row pulls at first, in half diagonals of the box [0.25; 0 for K = 1]"),
    ("dp_retries", "retries", "Rounds that are lost or break off, each paid for in advance [2]"),
    ("dp_useless", "", "true makes the plan even if centres cannot be told from its noise [false]"),
    (
        "",
        "nano_rho",
        "Noise of a run: rho in 10^-9 while two sites keep theirs secret; every site's account is charged twice as much",
    ),
    ("", "expected_rows", "Rows that are expected in all, for which the forecast is"),
    ("min_sites", "min_sites", "Sites that a total covers at least [the threshold; all if sites are sampled]"),
    ("threshold", "threshold", "Shares that open a self-mask [0: floor(2n/3) + 1]"),
    ("colluders", "colluders", "Sites that may collude with the coordinator [0: floor((n - 1)/3)]"),
    ("sites", "sites", "same: totals over all sites; any: over those left, with noise [same]"),
    ("slots", "slots", "Rounds that one exchange of keys is good for [64; fewer from 157 sites on]"),
    ("max_rows", "max_rows_per_site", "Rows of one site at most; under noise far above all of them [1048576]"),
    ("min_total_rows", "min_total_rows", "Rows of all sites together at least [20 for each cluster]"),
    ("step_bits", "step_bits", "Steps of totals are 2^-N of a row's largest value at least; N is 8 to 62 [20]"),
    ("", "clusters.min", "The smallest K that is tried"),
    ("", "clusters.max", "The largest K that is tried"),
    ("", "column.lower", "The public range of a column, known before any row is read"),
];

/// The lines of a document, each with the key that it sets: the first one that ends its path.
fn lines(text: &str) -> impl Iterator<Item = (Option<usize>, &str)> {
    let mut table = "";
    text.lines().map(move |line| {
        if line.starts_with('[') {
            table = line.trim_matches(['[', ']']);
        }
        let path = line.split_once(" = ").map_or(String::new(), |(key, _)| format!(".{table}.{key}"));
        let ends = |end: &str| !end.is_empty() && path.ends_with(&format!(".{end}"));
        (PLAN_KEYS.iter().position(|(_, end, _)| ends(end)), line)
    })
}

/// Whether a plan's text, or a part of it, has a key of this setting.
pub fn has_setting(text: &str, setting: &str) -> bool {
    lines(text).any(|(known, _)| known.is_some_and(|known| PLAN_KEYS[known].0 == setting))
}

/// The text with this value wherever it has a key of the setting.
pub(super) fn set(text: &str, setting: &str, value: &toml::Value) -> String {
    let put = |(known, line): (Option<usize>, &str)| match (known, line.split_once(" = ")) {
        (Some(known), Some((key, _))) if PLAN_KEYS[known].0 == setting => format!("{key} = {value}\n"),
        _ => format!("{line}\n"),
    };
    lines(text).map(put).collect()
}

/// A plan's text with its sentence above the first place of every key that has one.
pub(super) fn commented(text: &str) -> String {
    let (mut with, mut said) = (String::new(), vec![false; PLAN_KEYS.len()]);
    for (known, line) in lines(text) {
        if let Some(known) = known.filter(|known| !std::mem::replace(&mut said[*known], true)) {
            with += &format!("# {}\n", PLAN_KEYS[known].2);
        }
        with += &format!("{line}\n");
    }
    // A name of several lines may hold what looks like a key.
    let read = |text: &str| toml::from_str::<toml::Table>(text).ok();
    if read(&with) == read(text) { with } else { text.to_owned() }
}
