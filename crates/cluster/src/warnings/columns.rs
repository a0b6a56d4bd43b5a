//! Columns that decide the result by themselves, and should not: by their part of the squares between clusters, and by their counts in
//! bins where these were asked for first centres or a description.

use std::borrow::Cow;

use super::warning::Warning;
use crate::algorithm::describe;
use crate::method::MARGINS;
use crate::profile::{Profile, by_chance};
use crate::{Domain, Outcome, Query, Recipe, Scaling};

/// A column counts for nothing where its standard deviation is below this part of its box: a uniform column has 0.29, a normal one
/// that fills its box some 0.1, and a squared distance then holds less than a sixth of it. Rows in two neighbours of seventeen bins of a
/// box have 0.034 by the margins.
const FLAT: f64 = 0.04;
/// A column made the clusters if more than half of the squares between them are its own...
const HALF: f64 = 0.5;
/// ...and clusters that lie in all directions alike would give it so much in less than one of a hundred runs.
const CHANCE: f64 = 0.01;
/// Outliers are at most this part of the rows, and a code for what is missing this one.
const FEW: f64 = 0.01;
const SOME: f64 = 0.15;
/// Rows of two bins are two values if their mean is that of the ends of the range to this part of it: else they only lie near the ends.
const ENDS: f64 = 1e-4;
/// They lie apart by more than this part of the column's range.
const APART: f64 = 0.5;
/// Counts in bins are too even for chance if their chi-square is below this part of its degrees of freedom: with ten of these that
/// happens in one of some thousand columns of evenly spread rows.
const EVEN: f64 = 0.125;
/// Bins and rows that it takes to tell.
const INNER: usize = 10;
const ROWS: f64 = 200.0;

/// A bin has rows if it counts more than so many deviations of its noise: of noise alone that is one of some 4,000.
const CLEAR: f64 = 3.5;
/// Bins with noise are none if they have less than this part of the rows that lie apart.
const EMPTY: f64 = 0.5;
/// Rows in clear bins that it takes to tell how far a column spreads under noise, as part of all.
const NEARLY_ALL: f64 = 0.8;

/// What a column's rows look like in bins.
#[derive(Debug, Clone, PartialEq)]
enum Shape {
    /// This part of the rows, which noise moves by so much (one deviation), lies apart from all others, in the lowest bin or bins if `low`.
    Apart { part: f64, error: f64, low: bool, single: bool },
    /// Every bin has the same number of rows, as of row numbers.
    Numbered,
}

/// The deviation of the planned noise in every bin, of a plan with noise that counts rows in bins.
pub(super) fn noise(recipe: &Recipe, domain: &Domain) -> Option<f64> {
    let bins = match recipe.algorithm.traits().describes {
        Some(bins) => describe::histogram(domain, bins)?.into(),
        None => Query::from(MARGINS),
    };
    Some(recipe.levels(domain).ok()??.of(&bins, domain)?.first()?.deviation)
}

/// Everything to doubt about single columns, whose counts in bins have noise of this deviation. No column is named twice.
pub(super) fn of(domain: &Domain, names: &[String], outcome: &Outcome, noise: f64) -> Vec<Warning> {
    let name = |column: usize| names.get(column).map_or("?", String::as_str);
    let described: Option<Vec<Vec<f64>>> = outcome
        .description
        .as_ref()
        .map(|found| found.histograms.iter().map(|bins| bins.iter().map(|rows| *rows as f64).collect()).collect());
    let bins = described.as_ref().or(outcome.margins.as_ref()).map_or(&[][..], Vec::as_slice);
    let means = outcome.description.as_ref().map(|found| &found.means);
    let means =
        means.or(outcome.profile.as_ref().map(|profile| &profile.means)).filter(|_| outcome.transform.is_none());
    // Where in its range the mean of a column lies, from 0 to 1, if it is known to the last digits.
    let place = |column: usize| {
        if noise > 0.0 {
            return None;
        }
        let (low, high) = domain.working_interval(column);
        Some((means?.get(column)? - low) / (high - low))
    };
    let each = bins.iter().enumerate();
    let mut found: Vec<Warning> = each
        .filter_map(|(column, rows)| Some(told(column, name(column), &shape(rows, place(column), noise)?)))
        .collect();
    let accused: Vec<f64> = found.iter().filter_map(|warning| *warning.numbers.get("column")?).collect();
    let free = |column: &usize| !accused.contains(&(*column as f64));
    let deviations = match noise > 0.0 {
        true => bins.iter().map(|rows| spread(rows, noise)).collect(),
        false => outcome.deviations.iter().flatten().map(|deviation| Some(*deviation)).collect::<Vec<_>>(),
    };
    found.extend(flat_columns(domain, names, outcome, &deviations, noise > 0.0));
    let profile = match noise > 0.0 {
        true => outcome
            .in_questions()
            .zip(held(outcome))
            .map(|(centres, rows)| Cow::Owned(Profile::apart(&centres, &rows).0)),
        false => outcome.profile.as_ref().map(Cow::Borrowed),
    };
    if let Some(profile) = &profile {
        found.extend(
            one_column(profile, outcome, domain.numbers(), noise > 0.0, &name)
                .filter(|(column, _)| free(column))
                .map(|(_, warning)| warning),
        );
    }
    found
}

fn told(column: usize, name: &str, shape: &Shape) -> Warning {
    let at = ("column", column as f64);
    match *shape {
        Shape::Apart { part, error, low, single } => {
            let end = if low { "lower" } else { "upper" };
            let numbers = |threshold: f64| [at, ("part", part), ("part_error", error), ("threshold", threshold)];
            if part <= FEW || !single {
                let text = format!(
                    "{} of the rows lie at the {end} end of {name:?}, apart from all others by more than half of its \
                     range: outliers, or a code such as -999. They carry the column, and in the rest of the rows it counts for little. \
                     Correct or clip them, or narrow the range (out_of_box=clip)",
                    share(part, error, 2)
                );
                return Warning::new("outliers", text, numbers(FEW));
            }
            let text = format!(
                "{} of the rows have the same or nearly the same value at the {end} end of {name:?}, apart from all others \
                 by more than half of its range, as a code for a missing value has (-999). If it is one, name it in \
                 missing_marks; the clusters may be made by it",
                share(part, error, 1)
            );
            Warning::new("code", text, numbers(SOME))
        }
        Shape::Numbered => {
            let text = format!(
                "{name:?} is spread more evenly than chance would have it, like row numbers or a clock: it says nothing about what \
                 rows have in common. Leave it out, unless it is a quantity"
            );
            Warning::new("row-numbers", text, [at, ("threshold", EVEN)])
        }
    }
}

/// A share of the rows in per cent: to so many digits, or to two of its error, a standard error as behind every ±.
fn share(part: f64, error: f64, digits: usize) -> String {
    let [part, error] = [part, error].map(|of| 100.0 * of);
    if error == 0.0 {
        return format!("{part:.digits$} %");
    }
    let digits = (1.0 - error.log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{part:.digits$} ± {error:.digits$} %")
}

/// The standard deviation of a column as part of its range, by bins with noise; rows are taken to be spread evenly in their bin. `None` if
/// too many lie in bins that could be noise.
fn spread(rows: &[f64], noise: f64) -> Option<f64> {
    let clear: Vec<f64> = rows.iter().map(|n| if *n > CLEAR * noise { *n } else { 0.0 }).collect();
    let (n, bins) = (clear.iter().sum::<f64>(), rows.len() as f64);
    let mean = |of: &dyn Fn(f64) -> f64| {
        clear.iter().enumerate().map(|(bin, rows)| rows * of((bin as f64 + 0.5) / bins)).sum::<f64>() / n
    };
    let middle = mean(&|x| x);
    let variance = mean(&|x| (x - middle).powi(2)) + 1.0 / (12.0 * bins * bins);
    (n > NEARLY_ALL * rows.iter().sum::<f64>() && n > 0.0).then(|| variance.sqrt())
}

/// Columns whose box is so wide that they count for nothing.
fn flat_columns(
    domain: &Domain,
    names: &[String],
    outcome: &Outcome,
    deviations: &[Option<f64>],
    noisy: bool,
) -> Vec<Warning> {
    if domain.scaling() != Scaling::Box || outcome.transform.is_some() {
        return Vec::new();
    }
    // A category has no box that could be too wide.
    let numbers = deviations.iter().enumerate().take(domain.numbers());
    let flat = numbers.filter_map(|(column, sd)| Some((column, sd.filter(|sd| *sd < FLAT)?)));
    flat.map(|(column, sd)| {
        let name = names.get(column).map_or("?", String::as_str);
        // Bins tell no more than their width.
        let known = match outcome.description {
            Some(_) if !noisy => format!("{:.2} %", 100.0 * sd),
            _ => format!("less than {:.0} %, as far as bins tell it,", 100.0 * FLAT),
        };
        let text = format!(
            "the box of {name:?} is so wide that the column counts for nothing: its standard deviation is {known} of the box. Narrow \
             the box, or standardise the columns (standardise=standard)"
        );
        Warning::new("flat-column", text, [("column", column as f64), ("deviation_over_box", sd), ("threshold", FLAT)])
    })
    .collect()
}

/// What the rows in these bins look like, whose mean lies at this part of the range and whose counts have such noise.
fn shape(rows: &[f64], mean: Option<f64>, noise: f64) -> Option<Shape> {
    let (n, bins) = (rows.iter().sum::<f64>(), rows.len());
    let full: Vec<usize> = (0..bins).filter(|bin| rows[*bin] > CLEAR * noise).collect();
    let gap = full.windows(2).max_by_key(|pair| pair[1] - pair[0]);
    if let Some(&[low, high]) = gap
        && (high - low - 1) as f64 > APART * bins as f64
    {
        let below: f64 = rows[..=low].iter().sum();
        let is_low = below <= n - below;
        let (part, at) = if is_low { (below / n, (full[0], low)) } else { (1.0 - below / n, (high, *full.last()?)) };
        // What is beside the rows that lie apart could be theirs if noise hides it.
        let apart: f64 = rows[at.0..=at.1].iter().sum();
        let outside = if is_low { &rows[..at.0] } else { &rows[at.1 + 1..] };
        if rows[low + 1..high].iter().chain(outside).sum::<f64>() > EMPTY * apart {
            return None;
        }
        let single = at.0 == at.1;
        // The bins of the part are in both sums, the others in that of all rows alone.
        let (own, all) = (if is_low { low + 1 } else { bins - low - 1 } as f64, bins as f64);
        let error = noise * ((1.0 - part).powi(2) * own + part.powi(2) * (all - own)).sqrt() / n;
        // Two ends of one bin each are the two values of a yes and a no, unless the mean says that they are more values.
        let upper = if is_low { 1.0 - part } else { part };
        let ends = full == [0, bins - 1] && mean.is_some_and(|mean| (mean - upper).abs() > ENDS);
        let binary = full.len() == 2 && part > FEW && !ends;
        if !binary && (part <= FEW || (single && part <= SOME)) {
            return Some(Shape::Apart { part, error, low: is_low, single });
        }
    }
    // The first and the last bin may be covered in part.
    let inner = &rows[full.first()? + 1..(*full.last()?).max(full.first()? + 1)];
    let mean = inner.iter().sum::<f64>() / inner.len().max(1) as f64;
    let chi: f64 = inner.iter().map(|rows| (rows - mean).powi(2) / mean).sum();
    let numbered = n >= ROWS && inner.len() >= INNER && mean >= 10.0 && chi < EVEN * (inner.len() - 1) as f64;
    numbered.then_some(Shape::Numbered)
}

/// Rows of every cluster, or its mass.
fn held(outcome: &Outcome) -> Option<Vec<f64>> {
    let rows = outcome.clusters.sizes.iter().map(|rows| rows.map(|rows| rows as f64)).collect::<Option<Vec<_>>>();
    rows.or_else(|| outcome.clusters.mass.iter().copied().collect())
}

/// Columns that made the clusters, and columns that a small cluster carries. Nobody knows how far noise moves these shares: their bounds
/// are said then.
fn one_column<'a>(
    profile: &'a Profile,
    outcome: &'a Outcome,
    numbers: usize,
    noisy: bool,
    name: &'a dyn Fn(usize) -> &'a str,
) -> impl Iterator<Item = (usize, Warning)> + 'a {
    let (k, d) = (outcome.centres.k(), outcome.centres.columns());
    let all = held(outcome);
    let held = move |k: usize| {
        let all = all.as_ref()?;
        Some(*all.get(k)? / all.iter().sum::<f64>())
    };
    profile.between.iter().zip(&profile.largest).enumerate().filter_map(move |(column, (part, (largest, own)))| {
        let name = name(column);
        let few = held(*largest).filter(|few| *few <= FEW && *own > HALF && *part > 1.0 / (2 * d) as f64);
        if let Some(few) = few {
            let (held, made) = match noisy {
                true => (format!("about {:.0} % of the rows or less", 100.0 * FEW), "about half or more".to_owned()),
                false => (format!("{:.2} % of the rows", 100.0 * few), format!("{:.0} %", 100.0 * own)),
            };
            let text = format!(
                "cluster {largest} holds {held}, and makes {made} of the differences between clusters in {name:?}: few \
                 rows that lie apart carry the column. Look at these rows; or clip them (out_of_box=clip)"
            );
            let numbers = [("column", column as f64), ("part", few), ("threshold", FEW)];
            return Some((column, Warning::new("outliers", text, numbers)));
        }
        let chance = by_chance(*part, k, d);
        (*part > HALF && chance < CHANCE).then(|| {
            let less = match column < numbers {
                true => "give all columns the same weight (standardise=standard)",
                // An indicator is not standardised.
                false => "give the categories a smaller weight (category_weight)",
            };
            let made = if noisy { "About half or more".to_owned() } else { format!("{:.1} %", 100.0 * part) };
            let text = format!(
                "{made} of the squared differences between clusters are of {name:?} alone: this column made the clusters, and the \
                 other {} hardly count. If that is not what you want, {less}, or leave it out",
                d - 1
            );
            let numbers = [("column", column as f64), ("part", *part), ("threshold", HALF), ("chance", chance)];
            (column, Warning::new("one-column", text, numbers))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn binned(values: impl Iterator<Item = f64>, (low, high): (f64, f64)) -> Vec<f64> {
        let mut bins = vec![0.0; 17];
        values.for_each(|x| bins[(((x - low) / (high - low) * 17.0) as usize).min(16)] += 1.0);
        bins
    }

    #[test]
    fn planted_columns_are_told_by_their_bins() {
        let mut stream = Stream::new(7, b"veilsum column tests v1 ");
        let mut unit = || stream.unit();
        let mut rows = |n: usize, from: f64, to: f64| (0..n).map(|_| from + (to - from) * unit()).collect::<Vec<f64>>();
        let far = rows(999, 0.0, 1.0).into_iter().chain([1e9]);
        let found = shape(&binned(far, (0.0, 1e9)), None, 0.0);
        assert!(matches!(found, Some(Shape::Apart { part, low: false, .. }) if part < 0.002), "{found:?}");
        let code = rows(950, 0.0, 120.0).into_iter().chain(vec![-999.0; 50]);
        assert_eq!(
            shape(&binned(code, (-999.0, 120.0)), None, 0.0),
            Some(Shape::Apart { part: 0.05, error: 0.0, low: true, single: true })
        );
        let ids = (1..=3000).map(f64::from);
        assert_eq!(shape(&binned(ids.clone(), (1.0, 3000.0)), None, 0.0), Some(Shape::Numbered));
        assert_eq!(shape(&binned(ids, (0.0, 3800.0)), None, 0.0), Some(Shape::Numbered), "a wider range");
        // A rare yes, two groups, evenly spread rows and one value are no trouble.
        let yes = (0..1000).map(|i| f64::from(u8::from(i % 12 == 0)));
        assert_eq!(shape(&binned(yes, (0.0, 1.0)), None, 0.0), None);
        // Values within one bin beside a code look like these, and their mean tells them apart.
        let narrow = binned(rows(900, 0.0, 10.0).into_iter().chain(vec![-999.0; 100]), (-999.0, 10.0));
        assert_eq!(shape(&narrow, None, 0.0), None);
        assert_eq!(shape(&narrow, Some(0.9), 0.0), None, "two values");
        let found = shape(&narrow, Some(0.9 * 1004.0 / 1009.0), 0.0);
        assert_eq!(found, Some(Shape::Apart { part: 0.1, error: 0.0, low: true, single: true }));
        let two: Vec<f64> = rows(700, 0.0, 0.1).into_iter().chain(rows(300, 0.9, 1.0)).collect();
        assert_eq!(shape(&binned(two.into_iter(), (0.0, 1.0)), None, 0.0), None);
        assert_eq!(shape(&binned(std::iter::repeat_n(0.3, 500), (0.0, 1.0)), None, 0.0), None);
        assert_eq!(shape(&[0.0; 17], None, 0.0), None);
        let wrong =
            (0..2_000).filter(|_| shape(&binned(rows(1_000, 0.0, 1.0).into_iter(), (0.0, 1.0)), None, 0.0).is_some());
        assert!(wrong.count() <= 2, "evenly spread rows are not row numbers");
    }

    /// The same with noise of 15 in every bin of 3,000 rows: clean columns of one and two clusters, and a code that one row of twelve has.
    #[test]
    fn planted_columns_are_told_through_noise() {
        const NOISE: f64 = 15.0;
        let mut stream = Stream::new(8, b"veilsum column tests v1 ");
        let mut column = |code: usize| {
            let (middle, apart) = if code > 0 { (0.8, 0.1) } else { (0.3 + 0.4 * stream.unit(), 0.2 * stream.unit()) };
            let values = (0..3_000).map(|i| {
                let [x, _] = stream.normal_pair();
                let of = if i % 4 == 0 { middle + apart } else { middle };
                if i < code { 0.0 } else { (of + 0.06 * x).clamp(0.0, 1.0) }
            });
            let mut rows = binned(values, (0.0, 1.0));
            rows.iter_mut().for_each(|rows| *rows += NOISE * stream.normal_pair()[0]);
            (shape(&rows, None, NOISE), spread(&rows, NOISE))
        };
        let clean: Vec<_> = (0..2_000).map(|_| column(0)).collect();
        let wrong = clean.iter().filter(|(shape, _)| shape.is_some()).count();
        assert!(wrong <= 10, "{wrong} of 2,000 clean columns");
        let flat = clean.iter().filter(|(_, spread)| spread.is_some_and(|sd| sd < FLAT)).count();
        assert_eq!(flat, 0);
        let told = |shape: &Option<Shape>| matches!(shape, Some(Shape::Apart { single: true, low: true, .. }));
        let codes: Vec<Shape> =
            (0..100).filter_map(|_| column(250).0.filter(|shape| told(&Some(shape.clone())))).collect();
        assert!(codes.len() >= 95, "{} of 100 codes", codes.len());
        // Their shares stand with what noise does to them.
        let within = |shape: &&Shape| match **shape {
            Shape::Apart { part, error, .. } => (part - 250.0 / 3_000.0).abs() < 2.0 * error && error < 0.01,
            Shape::Numbered => false,
        };
        let held = codes.iter().filter(within).count();
        assert!(held >= 88, "{held} of {} shares", codes.len());
        let said = super::told(0, "x", &Shape::Apart { part: 0.083_25, error: 0.004_8, low: true, single: true });
        assert!(said.text.starts_with("8.33 ± 0.48 % of the rows have the same"), "{}", said.text);
        assert_eq!(said.numbers["part_error"], Some(0.004_8));
        let narrow: Vec<f64> = (0..17).map(|bin| f64::from(u8::from(bin == 3)) * 3_000.0 + NOISE * 0.5).collect();
        assert!(spread(&narrow, NOISE).is_some_and(|sd| sd < FLAT));
        assert_eq!(spread(&[NOISE; 17], NOISE), None, "nothing but noise");
    }
}
