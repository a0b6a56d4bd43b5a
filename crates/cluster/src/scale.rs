//! The public box and the working units: min-max scaling to `[0, 1]^d`, as Table 1 of Bárcena et al. (2021) needs it.

use serde::{Deserialize, Serialize};

use crate::error::same_columns;
use crate::{Centres, Error, Rows, refuse};

/// Bounds up to this size: the square of an extent then stays far inside `f64`, so no distance can overflow.
const MAX_BOUND: f64 = 1e150;

/// How rows become working units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scaling {
    /// `(x - lower) / (upper - lower)`, column by column: working units are `[0, 1]^d`.
    Box,
    /// Rows are used as they are: working units are the original ones.
    None,
}

/// What happens to a row outside the public box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutOfBox {
    /// The row is an error that names row and column.
    Refuse,
    /// The value moves to the nearest bound.
    Clip,
}

/// The public box: for each of d columns a lower and an upper bound in original units, agreed on before any row is
/// read, and the scaling. Behind the columns of numbers may stand *indicators*: columns of zeros and ones, one for each category
/// of a categorical column, whose ones have a length of their own in working units.
///
/// The box bounds what one row can add to a sum, so it must not be taken from the rows of the sites.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Domain {
    lower: Vec<f64>,
    upper: Vec<f64>,
    scaling: Scaling,
    /// What a one of each indicator is in working units; the indicators are the last columns.
    indicators: Vec<f64>,
    /// How many indicators each categorical column has, in their order.
    categories: Vec<usize>,
}

#[derive(Deserialize)]
struct Unchecked {
    lower: Vec<f64>,
    upper: Vec<f64>,
    scaling: Scaling,
    #[serde(default)]
    indicators: Vec<f64>,
    /// Where it is not said, all indicators are those of one column.
    #[serde(default)]
    categories: Vec<usize>,
}

impl Domain {
    /// A box of d columns, bounds in original units.
    ///
    /// # Errors
    /// [`Error::NoColumns`], [`Error::BoundNotUsable`] (not finite or beyond 1e150), [`Error::ConstantColumn`] (`lower == upper`), or
    /// [`Error::Parameter`] for crossed bounds and other numbers of them.
    pub fn new(lower: Vec<f64>, upper: Vec<f64>, scaling: Scaling) -> Result<Self, Error> {
        if lower.len() != upper.len() {
            let (lower, upper) = (lower.len(), upper.len());
            return Err(Error::parameter(format!("the box has {lower} lower and {upper} upper bounds")));
        }
        refuse(lower.is_empty(), || Error::NoColumns)?;
        for (column, (low, high)) in lower.iter().zip(&upper).enumerate() {
            let usable = |bound: f64| bound.abs() <= MAX_BOUND; // false for NaN
            refuse(!usable(*low) || !usable(*high), || Error::BoundNotUsable(column))?;
            refuse(low == high, || Error::ConstantColumn(column))?;
            if low > high {
                let crossed = "(counted from 0) are crossed: lower is above upper";
                return Err(Error::parameter(format!("the bounds of column {column} {crossed}")));
            }
        }
        Ok(Self { lower, upper, scaling, indicators: Vec::new(), categories: Vec::new() })
    }

    /// A box of columns of numbers as in [`Domain::new`], of which there may be none, and behind them the categorical columns, each
    /// with one indicator for every category: 0 or 1 in original units, 0 or this number in working units, whatever the scaling
    /// (specification, QRY-1).
    ///
    /// # Errors
    /// Those of [`Domain::new`], and [`Error::BoundNotUsable`] where an indicator is not a number above 0 and up to 1e150.
    pub fn mixed(
        mut lower: Vec<f64>,
        mut upper: Vec<f64>,
        scaling: Scaling,
        categorical: &[Vec<f64>],
    ) -> Result<Self, Error> {
        let (numbers, indicators) = (lower.len(), categorical.concat());
        let categories = categorical.iter().map(Vec::len).filter(|count| *count > 0).collect();
        let usable = |one: &f64| *one > 0.0 && *one <= MAX_BOUND; // false for NaN
        if let Some(bad) = indicators.iter().position(|one| !usable(one)) {
            return Err(Error::BoundNotUsable(numbers + bad));
        }
        lower.extend(indicators.iter().map(|_| 0.0));
        upper.extend(indicators.iter().map(|_| 1.0));
        Ok(Self { indicators, categories, ..Self::new(lower, upper, scaling)? })
    }

    /// Bounds that are right by construction.
    pub fn known(lower: Vec<f64>, upper: Vec<f64>, scaling: Scaling) -> Self {
        debug_assert!(Self::new(lower.clone(), upper.clone(), scaling).is_ok());
        Self { lower, upper, scaling, indicators: Vec::new(), categories: Vec::new() }
    }

    /// The smallest box around rows: the pooled min-max scaling of experiments and tests.
    ///
    /// A federation must not use it: the bounds would be records.
    ///
    /// # Errors
    /// [`Error::NoRows`], and those of [`Domain::new`].
    pub fn around(rows: &Rows, scaling: Scaling) -> Result<Self, Error> {
        refuse(rows.is_empty(), || Error::NoRows)?;
        let mut lower = vec![f64::INFINITY; rows.columns()];
        let mut upper = vec![f64::NEG_INFINITY; rows.columns()];
        for row in rows.iter() {
            for ((low, high), value) in lower.iter_mut().zip(&mut upper).zip(row) {
                *low = low.min(*value);
                *high = high.max(*value);
            }
        }
        Self::new(lower, upper, scaling)
    }

    /// Number of columns, d >= 1.
    pub fn columns(&self) -> usize {
        self.lower.len()
    }

    /// How many of them are numbers; the others, behind them, are indicators.
    pub fn numbers(&self) -> usize {
        self.lower.len() - self.indicators.len()
    }

    /// How many indicators each categorical column has: of these a row has a single one.
    pub(crate) fn categories(&self) -> &[usize] {
        &self.categories
    }

    /// What a one of this column is in working units, where it is an indicator.
    fn indicator(&self, column: usize) -> Option<f64> {
        self.indicators.get(column.checked_sub(self.numbers())?).copied()
    }

    /// Lower bounds, d, original units.
    pub fn lower(&self) -> &[f64] {
        &self.lower
    }

    /// Upper bounds, d, original units.
    pub fn upper(&self) -> &[f64] {
        &self.upper
    }

    /// How rows become working units.
    pub fn scaling(&self) -> Scaling {
        self.scaling
    }

    /// Rows (n x d, original units) in working units, every value inside the working box (specification, QRY-1).
    ///
    /// # Errors
    /// [`Error::ColumnMismatch`]; with [`OutOfBox::Refuse`] also [`Error::OutsideBox`], which names row and
    /// column but never the value.
    pub fn to_working(&self, rows: &Rows, out_of_box: OutOfBox) -> Result<Rows, Error> {
        self.same_columns(rows.columns())?;
        let mut working = Vec::with_capacity(rows.as_slice().len());
        for (i, row) in rows.iter().enumerate() {
            for (column, value) in row.iter().enumerate() {
                let (low, high) = (self.lower[column], self.upper[column]);
                if out_of_box == OutOfBox::Refuse && !(low..=high).contains(value) {
                    return Err(Error::OutsideBox { row: i, column });
                }
                working.push(self.scale(column, value.clamp(low, high)));
            }
        }
        Rows::new(working, self.columns())
    }

    /// Centres (K x d) from original into working units; centres outside the box stay outside.
    ///
    /// # Errors
    /// [`Error::ColumnMismatch`], or [`Error::Parameter`] if scaling leaves the range of `f64`.
    pub fn centres_to_box(&self, centres: &Centres) -> Result<Centres, Error> {
        self.map_centres(centres, |column, value| self.scale(column, value))
    }

    /// Centres (K x d) from working into original units.
    ///
    /// # Errors
    /// [`Error::ColumnMismatch`], or [`Error::Parameter`] if scaling leaves the range of `f64`.
    pub fn centres_to_original(&self, centres: &Centres) -> Result<Centres, Error> {
        self.map_centres(centres, |column, value| match (self.indicator(column), self.scaling) {
            (Some(one), _) => value / one,
            (None, Scaling::Box) => self.lower[column] + value * (self.upper[column] - self.lower[column]),
            (None, Scaling::None) => value,
        })
    }

    /// The interval of one column in working units: `(0, 1)` for a number under [`Scaling::Box`].
    ///
    /// # Panics
    /// If `column >= columns()`, as indexing a slice does.
    pub fn working_interval(&self, column: usize) -> (f64, f64) {
        (self.scale(column, self.lower[column]), self.scale(column, self.upper[column]))
    }

    /// Where its middle is.
    pub(crate) fn middle(&self, column: usize) -> f64 {
        let (low, high) = self.working_interval(column);
        low + (high - low) / 2.0
    }

    /// How long it is.
    ///
    /// # Panics
    /// If `column >= columns()`, as indexing a slice does.
    pub fn side(&self, column: usize) -> f64 {
        let (low, high) = self.working_interval(column);
        high - low
    }

    /// Largest absolute value that a row can have in one column, working units.
    ///
    /// # Panics
    /// If `column >= columns()`, as indexing a slice does.
    pub fn max_abs(&self, column: usize) -> f64 {
        let (low, high) = self.working_interval(column);
        low.abs().max(high.abs())
    }

    /// Largest absolute value of any column, working units.
    pub fn largest(&self) -> f64 {
        (0..self.columns()).map(|column| self.max_abs(column)).fold(0.0, f64::max)
    }

    /// Largest Euclidean distance between two points of the box, working units: `sqrt(d)` for [`Scaling::Box`].
    pub fn diameter(&self) -> f64 {
        (0..self.columns()).map(|column| self.side(column) * self.side(column)).sum::<f64>().sqrt()
    }

    /// Largest Euclidean distance from `point` (d coordinates, working units, inside the box or not) to a point of the
    /// box. At most [`Domain::diameter`] for a point inside.
    pub fn reach(&self, point: &[f64]) -> f64 {
        let squares = point.iter().take(self.columns()).enumerate().map(|(column, value)| {
            let (low, high) = self.working_interval(column);
            let far = (value - low).abs().max((high - value).abs());
            far * far
        });
        squares.sum::<f64>().sqrt()
    }

    fn scale(&self, column: usize, value: f64) -> f64 {
        match (self.indicator(column), self.scaling) {
            (Some(one), _) => value * one,
            // Rounding is monotone, so a value between the bounds cannot leave [0, 1].
            (None, Scaling::Box) => (value - self.lower[column]) / (self.upper[column] - self.lower[column]),
            (None, Scaling::None) => value,
        }
    }

    /// Values of one column from original into working units, in place; whether all of them were inside the box. Those that were not
    /// are at its bounds then.
    #[inline]
    pub(crate) fn column_to_working(&self, column: usize, values: &mut [f64]) -> bool {
        let (low, high) = (self.lower[column], self.upper[column]);
        let inside = values.iter().fold(true, |all, x| all & (low <= *x) & (*x <= high));
        values.iter_mut().for_each(|x| *x = x.clamp(low, high));
        match (self.indicator(column), self.scaling) {
            (Some(one), _) => values.iter_mut().for_each(|x| *x *= one),
            (None, Scaling::Box) => values.iter_mut().for_each(|x| *x = (*x - low) / (high - low)),
            (None, Scaling::None) => {}
        }
        inside
    }

    fn map_centres(&self, centres: &Centres, map: impl Fn(usize, f64) -> f64) -> Result<Centres, Error> {
        self.same_columns(centres.columns())?;
        let d = centres.columns();
        let values = centres.as_slice().iter().enumerate().map(|(at, value)| map(at % d, *value));
        Centres::new(centres.k(), d, values.collect())
    }

    pub(crate) fn same_columns(&self, found: usize) -> Result<(), Error> {
        same_columns(self.columns(), found)
    }
}

impl TryFrom<Unchecked> for Domain {
    type Error = Error;

    fn try_from(raw: Unchecked) -> Result<Self, Error> {
        let Unchecked { mut lower, mut upper, scaling, indicators, categories } = raw;
        let numbers = lower.len().checked_sub(indicators.len()).ok_or(Error::NoColumns)?;
        lower.truncate(numbers);
        upper.truncate(numbers);
        let categories = if categories.is_empty() { vec![indicators.len()] } else { categories };
        let mut rest = indicators.as_slice();
        let own = |count| rest.split_off(..count).map(<[f64]>::to_vec).ok_or(Error::NoColumns);
        let categorical = categories.into_iter().map(own).collect::<Result<Vec<_>, _>>()?;
        refuse(!rest.is_empty(), || Error::NoColumns)?;
        Self::mixed(lower, upper, scaling, &categorical)
    }
}

/// Centres may lie outside the box by so much of its extent: fixed-point sums are rounded.
pub(crate) const HAIR: f64 = 1e-6;

/// Whether points lie in the box (a hair of rounding aside), as every weighted mean of rows does.
///
/// # Errors
/// A sentence that names the column.
pub fn inside(points: &Centres, domain: &Domain) -> Result<(), String> {
    for row in points.rows() {
        for (column, value) in row.iter().enumerate() {
            let (low, high) = domain.working_interval(column);
            let hair = HAIR * (high - low);
            if *value < low - hair || *value > high + hair {
                return Err(format!("a centre lies outside the public box in column {column} (counted from 0)"));
            }
        }
    }
    Ok(())
}

/// Clear of the rounding of coordinates into and out of the box.
pub(crate) const MARGIN: f64 = 1.0 + 1e-5;

/// The farthest that a row of this box is from its middle, working units, and a hair.
pub(crate) fn reach(domain: &Domain) -> f64 {
    domain.diameter() / 2.0 * MARGIN
}

/// The farthest that a row of this box is from the origin, working units, and a hair.
pub(crate) fn farthest(domain: &Domain) -> f64 {
    let squares = (0..domain.columns()).map(|column| domain.max_abs(column) * domain.max_abs(column));
    squares.sum::<f64>().sqrt() * MARGIN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(scaling: Scaling) -> Domain {
        Domain::new(vec![-1.0, 10.0], vec![3.0, 30.0], scaling).unwrap()
    }

    #[test]
    fn a_box_must_have_an_inside() {
        let new = |lower: f64, upper: f64| Domain::new(vec![0.0, lower], vec![1.0, upper], Scaling::Box).unwrap_err();
        assert_eq!(new(2.0, 2.0), Error::ConstantColumn(1));
        assert!(new(2.0, 2.0).to_string().contains("constant column"));
        assert!(new(3.0, 2.0).to_string().contains("column 1 (counted from 0) are crossed"));
        assert_eq!(new(f64::NAN, 2.0), Error::BoundNotUsable(1));
        assert_eq!(new(0.0, 1e200), Error::BoundNotUsable(1));
        assert!(Domain::new(vec![], vec![], Scaling::Box).is_err());
        assert!(Domain::new(vec![0.0], vec![], Scaling::Box).is_err());
    }

    #[test]
    fn rows_outside_are_refused_without_their_value_or_clipped() {
        let rows = Rows::new(vec![1.0, 20.0, 1.0, 987.5], 2).unwrap();
        let error = domain(Scaling::Box).to_working(&rows, OutOfBox::Refuse).unwrap_err();
        assert_eq!(error, Error::OutsideBox { row: 1, column: 1 });
        assert!(!error.to_string().contains("987"));
        let clipped = domain(Scaling::Box).to_working(&rows, OutOfBox::Clip).unwrap();
        assert_eq!(clipped.as_slice(), &[0.5, 0.5, 0.5, 1.0]);
        let raw = domain(Scaling::None).to_working(&rows, OutOfBox::Clip).unwrap();
        assert_eq!(raw.as_slice(), &[1.0, 20.0, 1.0, 30.0]);
        assert!(domain(Scaling::Box).to_working(&Rows::new(vec![1.0], 1).unwrap(), OutOfBox::Clip).is_err());
    }

    #[test]
    fn centres_go_there_and_back() {
        let centres = Centres::from_rows(&[vec![0.0, 12.0], vec![5.0, -3.0]]).unwrap();
        for scaling in [Scaling::Box, Scaling::None] {
            let there = domain(scaling).centres_to_box(&centres).unwrap();
            let back = domain(scaling).centres_to_original(&there).unwrap();
            assert!(back.frobenius_distance(&centres).unwrap() < 1e-14);
        }
    }

    #[test]
    fn bounds_in_working_units() {
        let (boxed, raw) = (domain(Scaling::Box), domain(Scaling::None));
        assert_eq!((boxed.max_abs(1), raw.max_abs(1), raw.max_abs(0)), (1.0, 30.0, 3.0));
        assert_eq!((boxed.diameter(), raw.diameter()), (2f64.sqrt(), 416f64.sqrt()));
        assert_eq!(boxed.reach(&[0.0, 0.0]), boxed.diameter());
        assert_eq!(boxed.reach(&[0.5, 0.5]), 0.5f64.sqrt());
        assert_eq!(boxed.reach(&[-2.0, 1.0]), 10f64.sqrt());
    }

    /// [QRY-1]
    #[test]
    fn indicators_have_a_length_of_their_own() {
        for scaling in [Scaling::Box, Scaling::None] {
            let mixed = Domain::mixed(vec![10.0], vec![30.0], scaling, &[vec![0.5, 0.5]]).unwrap();
            assert_eq!((mixed.columns(), mixed.numbers(), mixed.categories()), (3, 1, [2].as_slice()));
            let rows = Rows::new(vec![20.0, 1.0, 0.0], 3).unwrap();
            let working = mixed.to_working(&rows, OutOfBox::Refuse).unwrap();
            assert_eq!(working.as_slice()[1..], [0.5, 0.0]);
            assert_eq!((mixed.working_interval(1), mixed.max_abs(2)), ((0.0, 0.5), 0.5));
            let centres = Centres::new(1, 3, rows.as_slice().to_vec()).unwrap();
            let there = mixed.centres_to_box(&centres).unwrap();
            assert_eq!(mixed.centres_to_original(&there).unwrap(), centres);
            let text = serde_json::to_string(&mixed).unwrap();
            assert_eq!(serde_json::from_str::<Domain>(&text).unwrap(), mixed);
        }
        let two = Domain::mixed(vec![], vec![], Scaling::Box, &[vec![0.5; 2], vec![0.5; 3]]).unwrap();
        assert_eq!((two.columns(), two.categories()), (5, [2, 3].as_slice()));
        let text = serde_json::to_string(&two).unwrap();
        assert_eq!(serde_json::from_str::<Domain>(&text).unwrap(), two);
        assert!(serde_json::from_str::<Domain>(&text.replace("[2,3]", "[2,2]")).is_err());
        assert!(serde_json::from_str::<Domain>(&text.replace("[2,3]", "[2,4]")).is_err());
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = Domain::mixed(vec![0.0], vec![1.0], Scaling::Box, &[vec![1.0, bad]]).unwrap_err();
            assert_eq!(error, Error::BoundNotUsable(2));
        }
    }

    #[test]
    fn reading_a_box_checks_it() {
        let text = serde_json::to_string(&domain(Scaling::Box)).unwrap();
        assert_eq!(serde_json::from_str::<Domain>(&text).unwrap(), domain(Scaling::Box));
        assert!(serde_json::from_str::<Domain>(r#"{"lower":[1],"upper":[1],"scaling":"box"}"#).is_err());
    }
}
