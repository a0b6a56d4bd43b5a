//! A cluster in words of its columns.

/// Columns whose centres lie apart by less than this part of a range tell clusters apart for nobody.
const APART: f64 = 0.05;
/// A centre is high or low in a column if it is in this part of the span of all centres.
const END: f64 = 0.25;
/// Columns that are named.
const NAMED: usize = 4;

/// What tells a cluster from the others, as "high age, low bmi, smoker=yes": the columns first whose centres lie farthest apart as a part of
/// their range. `centres` are K rows over `names`, with NaN if a number is not known; `ranges` are those of the columns. The first `numbers`
/// columns are of numbers, the others shares of categories, and named if the category is that of most rows.
pub fn cluster(names: &[String], ranges: &[(f64, f64)], numbers: usize, centres: &[Vec<f64>], which: usize) -> String {
    let mut said: Vec<(f64, String)> = Vec::new();
    for (column, (name, (from, to))) in names.iter().zip(ranges).enumerate() {
        let values = || centres.iter().filter_map(|centre| centre.get(column)).filter(|x| x.is_finite());
        let (low, high) =
            values().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)));
        let apart = (high - low) / (to - from);
        let Some(x) = centres.get(which).and_then(|centre| centre.get(column)).filter(|x| x.is_finite()) else {
            continue;
        };
        let place = (x - low) / (high - low);
        let word = match column >= numbers {
            true if *x > 0.5 => name.clone(),
            false if place >= 1.0 - END => format!("high {name}"),
            false if place <= END => format!("low {name}"),
            _ => continue,
        };
        if apart >= APART {
            said.push((apart, word));
        }
    }
    said.sort_by(|a, b| b.0.total_cmp(&a.0));
    said.truncate(NAMED);
    let words: Vec<String> = said.into_iter().map(|(_, word)| word).collect();
    if words.is_empty() { "in the midst of the others".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_named_by_what_tells_it_apart() {
        let names = ["age", "bmi", "height", "smoker=no", "smoker=yes"].map(str::to_owned);
        let ranges = [(0.0, 100.0), (10.0, 50.0), (1.0, 2.0), (0.0, 1.0), (0.0, 1.0)];
        let centres = [
            vec![40.0, 24.0, 1.7, 0.9, 0.1],
            vec![70.0, f64::NAN, 1.71, 0.2, 0.8],
            vec![55.0, 30.0, 1.7, 0.55, 0.45],
            vec![55.0, 27.0, 1.7, 0.5, 0.5],
        ];
        let told: Vec<String> = (0..4).map(|which| cluster(&names, &ranges, 3, &centres, which)).collect();
        assert_eq!(
            told,
            [
                "smoker=no, low age, low bmi",
                "smoker=yes, high age",
                "smoker=no, high bmi",
                "in the midst of the others"
            ]
        );
    }
}
