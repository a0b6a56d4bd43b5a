//! The columns of a plan: numbers with a public range, and categories with a public list and a weight.
//!
//! A categorical column becomes one indicator for every category of its list, 0 or 1, behind the columns of numbers (one-hot
//! coding). A one has the length `sqrt(weight / 2)` in working units, so two rows that differ in the category are at the squared
//! distance `weight`, as under the γ of k-prototypes (Huang 1998). There a cluster's prototype has the category that occurs most;
//! here the centre is a mean, whose coordinates over the length of a one are the *shares* of the categories. A row is then nearer to
//! a centre by more than its own category: its squared distance is `weight / 2` times the squared distance of its indicators from
//! the shares.

use serde::{Deserialize, Serialize};
use veilsum_cluster::{Domain, Error, Scaling};

use crate::plan::PlanSpec;

/// Categories that a column may have at most: each is a coordinate of every centre.
pub const MAX_CATEGORIES: usize = 64;
/// Weights up to this; a column of numbers has squared distances of at most 1 in box units.
const MAX_WEIGHT: f64 = 1e6;
/// Weights from this on: below it a column counts for nothing.
const MIN_WEIGHT: f64 = 1e-6;
/// Bytes of a name at most.
const MAX_NAME: usize = 256;

/// A column of numbers and its range, known to everybody before any row is read.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Its name in every site's header.
    pub name: String,
    /// Smallest possible value, original units.
    pub lower: f64,
    /// Largest possible value, original units.
    pub upper: f64,
}

/// A column of names, and what each of them may be, known to everybody before any row is read.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Categorical {
    /// Its name in every site's header.
    pub column: String,
    /// Every category that may occur, 2 to [`MAX_CATEGORIES`].
    pub categories: Vec<String>,
    /// Squared distance of two rows that differ in it, squared units of the questions.
    pub weight: f64,
}

impl Categorical {
    /// What a one of its indicators is in working units.
    pub fn one(&self) -> f64 {
        (self.weight / 2.0).sqrt()
    }

    /// The names of its indicators, `COLUMN=CATEGORY`.
    pub fn indicators(&self) -> impl Iterator<Item = String> {
        self.categories.iter().map(|category| format!("{}={category}", self.column))
    }

    fn check(&self) -> Result<(), String> {
        let Categorical { column, categories, weight } = self;
        if !(2..=MAX_CATEGORIES).contains(&categories.len()) {
            let count = categories.len();
            return Err(format!("the column {column:?} has {count} categories; 2 to {MAX_CATEGORIES} are possible"));
        }
        for (i, category) in categories.iter().enumerate() {
            if category.is_empty() || column.len() + category.len() >= MAX_NAME || categories[..i].contains(category) {
                return Err(format!("category {} of the column {column:?} is empty, too long or stands twice", i + 1));
            }
        }
        if !(MIN_WEIGHT..=MAX_WEIGHT).contains(weight) {
            return Err(format!("the weight of the column {column:?} is {weight}; 10^-6 to 10^6 are possible"));
        }
        Ok(())
    }
}

/// Whether a character moves a cursor, hides what follows it or turns its direction, and is no letter, number, sign or blank.
pub fn is_odd(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether such columns can stand beside each other.
///
/// # Errors
/// A sentence that names the column.
pub fn check(columns: &[Column], categorical: &[Categorical]) -> Result<(), String> {
    categorical.iter().try_for_each(Categorical::check)?;
    let headers = headers(columns, categorical).map(str::to_owned);
    let mut seen = std::collections::HashSet::new();
    for (i, name) in headers.chain(categorical.iter().flat_map(Categorical::indicators)).enumerate() {
        // A name stands on the screens of everybody who reviews the plan: it can forge no line there, and hide none.
        if name.chars().any(is_odd) {
            return Err(format!(
                "the name of column {} holds a control character, or one that hides or turns text",
                i + 1
            ));
        }
        if name.is_empty() || name.len() > MAX_NAME {
            let bytes = name.len();
            return Err(format!("the name of column {} has {bytes} bytes; 1 to {MAX_NAME} are possible", i + 1));
        }
        if !seen.insert(name.clone()) {
            return Err(format!("the column {name:?} stands twice"));
        }
    }
    for Column { name, lower, upper } in columns {
        let range = Domain::new(vec![*lower], vec![*upper], Scaling::None);
        let numbers = !lower.is_nan() && !upper.is_nan();
        if numbers && matches!(range, Err(Error::BoundNotUsable(_))) {
            return Err(format!(
                "the range of the column {name:?} reaches beyond 10^150: give the column in another unit"
            ));
        }
    }
    Ok(())
}

/// The names in every site's header: the columns of numbers, then those of categories.
pub fn headers<'a>(columns: &'a [Column], categorical: &'a [Categorical]) -> impl Iterator<Item = &'a str> {
    columns.iter().map(|c| c.name.as_str()).chain(categorical.iter().map(|c| c.column.as_str()))
}

/// The names of all coordinates of a centre: the columns of numbers, then the indicators of every categorical column.
pub fn names(columns: &[Column], categorical: &[Categorical]) -> Vec<String> {
    columns.iter().map(|c| c.name.clone()).chain(categorical.iter().flat_map(Categorical::indicators)).collect()
}

/// In how many directions rows can differ: a row has one of a column's categories, and so one less than there are.
pub fn dimensions(columns: &[Column], categorical: &[Categorical]) -> usize {
    columns.len() + categorical.iter().map(|c| c.categories.len().saturating_sub(1)).sum::<usize>()
}

/// The public box ([QRY-1]).
///
/// # Errors
/// [`Error`] naming the column whose range is unusable.
pub fn domain(columns: &[Column], categorical: &[Categorical], scaling: Scaling) -> Result<Domain, Error> {
    let (lower, upper) = columns.iter().map(|c| (c.lower, c.upper)).unzip();
    let ones: Vec<Vec<f64>> = categorical.iter().map(|c| vec![c.one(); c.categories.len()]).collect();
    Domain::mixed(lower, upper, scaling, &ones)
}

/// The shares of a categorical column's categories in every cluster.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Shares {
    /// The column's name in the header.
    pub column: String,
    /// Its categories.
    pub categories: Vec<String>,
    /// K lists of one share for each category, which add up to 1 but for noise and rounding.
    pub shares: Vec<Vec<f64>>,
    /// The category with the largest share of each cluster, K: the first of equals. Under noise `null` where the largest share is
    /// not two errors above the next.
    pub mode: Vec<Option<String>>,
}

impl Shares {
    /// Of centres in original units, and their errors where there is noise, both K x d.
    pub fn of(work: &PlanSpec, centres: &[Vec<f64>], errors: Option<&[Vec<f64>]>) -> Vec<Shares> {
        let mut from = work.columns.len();
        let mut one = |of: &Categorical| {
            let place = from..from + of.categories.len();
            from = place.end;
            let shares: Vec<Vec<f64>> = centres.iter().map(|centre| centre[place.clone()].to_vec()).collect();
            let mode = |(i, shares): (usize, &Vec<f64>)| {
                let mut order: Vec<usize> = (0..shares.len()).collect();
                order.sort_by(|a, b| shares[*b].total_cmp(&shares[*a]));
                let error = |at: usize| errors.map_or(0.0, |errors| errors[i][place.start + at]);
                let (first, next) = (order[0], order[1]);
                let clear = shares[first] - shares[next] >= 2.0 * error(first).hypot(error(next));
                clear.then(|| of.categories[first].clone())
            };
            let mode = shares.iter().enumerate().map(mode).collect();
            Shares { column: of.column.clone(), categories: of.categories.clone(), shares, mode }
        };
        work.categorical.iter().map(&mut one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn smoker(categories: &[&str], weight: f64) -> Categorical {
        let categories = categories.iter().map(|c| (*c).to_owned()).collect();
        Categorical { column: "smoker".into(), categories, weight }
    }

    /// [QRY-1]: two rows that differ in a category are at its weight.
    #[test]
    fn rows_of_two_categories_are_at_the_weight() {
        let column = Column { name: "age".into(), lower: 0.0, upper: 100.0 };
        for weight in [0.25, 0.5, 3.0] {
            let of = [smoker(&["never", "former", "current"], weight)];
            let domain = domain(std::slice::from_ref(&column), &of, Scaling::Box).unwrap();
            let rows = veilsum_cluster::Rows::new(vec![50.0, 1.0, 0.0, 0.0, 50.0, 0.0, 0.0, 1.0], 4).unwrap();
            let rows = domain.to_working(&rows, veilsum_cluster::OutOfBox::Refuse).unwrap();
            let squared: f64 = rows.row(0).iter().zip(rows.row(1)).map(|(a, b)| (a - b).powi(2)).sum();
            assert!((squared - weight).abs() < 1e-15, "{weight}");
        }
    }

    #[test]
    fn lists_that_cannot_be_used_are_named() {
        let column = Column { name: "smoker=a".into(), lower: 0.0, upper: 1.0 };
        let many: Vec<String> = (0..65).map(|i| i.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let refused = |columns: &[Column], of: Categorical| check(columns, &[of]).unwrap_err();
        assert!(refused(&[], smoker(&["a"], 0.5)).contains("1 categories"));
        assert!(refused(&[], smoker(&many, 0.5)).contains("65 categories"));
        assert!(refused(&[], smoker(&["a", "a"], 0.5)).contains("category 2"));
        assert!(refused(&[], smoker(&["a", ""], 0.5)).contains("category 2"));
        for weight in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e7] {
            assert!(refused(&[], smoker(&["a", "b"], weight)).contains("weight"), "{weight}");
        }
        assert!(refused(std::slice::from_ref(&column), smoker(&["a", "b"], 0.5)).contains("smoker=a"));
        assert!(check(&[column], &[smoker(&["c", "b"], 0.5)]).is_ok());
    }

    /// What a coordinator calls a column stands on every reviewer's screen: no name begins a line there, moves a cursor, or hides text.
    #[test]
    fn names_that_forge_or_hide_are_refused() {
        let named = |name: &str| vec![Column { name: name.into(), lower: 0.0, upper: 1.0 }];
        for odd in ["x\nwarning: none", "y\u{1b}[8m", "a\tb", "\u{202e}fdp", "x\u{200b}", "\u{9b}2J"] {
            let why = check(&named(odd), &[]).unwrap_err();
            assert!(why.contains("column 1") && !why.chars().any(is_odd), "{why}");
            assert!(check(&named("x"), &[smoker(&["a", odd], 0.5)]).is_err(), "{odd:?}");
        }
        assert!(check(&named("Größe (cm), <b>\"größte\"</b> & 体重"), &[]).is_ok());
    }

    #[test]
    fn a_range_that_cannot_be_squared_is_named() {
        for upper in [1e200, f64::INFINITY] {
            let column = |name: &str, upper| Column { name: name.into(), lower: 0.0, upper };
            let why = check(&[column("age", 100.0), column("mass", upper)], &[]).unwrap_err();
            assert!(why.contains("\"mass\"") && why.contains("another unit"), "{why}");
        }
    }

    #[test]
    fn shares_add_up_and_the_largest_is_the_mode() {
        let columns = vec![Column { name: "age".into(), lower: 0.0, upper: 100.0 }];
        let work = PlanSpec { columns, categorical: vec![smoker(&["a", "b", "c"], 0.5)], ..crate::tests::work(2) };
        let centres = [vec![40.0, 0.25, 0.5, 0.25], vec![50.0, 0.4, 0.4, 0.2]];
        let found = Shares::of(&work, &centres, None);
        assert_eq!(found[0].shares[0], [0.25, 0.5, 0.25]);
        assert_eq!(found[0].mode, [Some("b".to_owned()), Some("a".to_owned())]);
        let errors = [vec![1.0, 0.2, 0.2, 0.2], vec![1.0, 0.01, 0.01, 0.01]];
        assert_eq!(Shares::of(&work, &centres, Some(&errors))[0].mode, [None, None]);
    }
}
