//! What may be wrong with rows, questions, totals and plans.

/// An error of the mathematics; whose fault it is follows from the variant: rows and boxes are the caller's, questions the asker's,
/// plans those of who made them, and totals that are not plausible some site's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no column.
    #[error("there are no columns")]
    NoColumns,
    /// The values do not fill whole rows.
    #[error("the values do not fill whole rows of {0} columns")]
    Ragged(usize),
    /// NaN or infinite.
    #[error("the value at row {row}, column {column} (both counted from 0) is not a finite number")]
    NotFinite {
        /// Row, counted from 0.
        row: usize,
        /// Column, counted from 0.
        column: usize,
    },
    /// A value outside the public box.
    #[error("the value at row {row}, column {column} (both counted from 0) lies outside the public box")]
    OutsideBox {
        /// Row, counted from 0.
        row: usize,
        /// Column, counted from 0.
        column: usize,
    },
    /// Another number of columns.
    #[error("expected {expected} columns, found {found}")]
    ColumnMismatch {
        /// Columns expected.
        expected: usize,
        /// Columns found.
        found: usize,
    },
    /// No centre.
    #[error("there are no centres")]
    NoCentres,
    /// A bound is not finite or too large.
    #[error("a bound of column {0} (counted from 0) is not finite or beyond 1e150")]
    BoundNotUsable(usize),
    /// The bounds are equal.
    #[error("column {0} (counted from 0) has equal bounds: a constant column cannot be scaled, leave it out")]
    ConstantColumn(usize),
    /// m is not usable.
    #[error("the fuzzifier m must be a finite number above 1")]
    Fuzzifier,
    /// No row.
    #[error("there are no rows")]
    NoRows,
    /// Not one label for each row.
    #[error("there is not one label for each row")]
    LabelCount,
    /// A standardisation of another box.
    #[error("the question's standardisation does not fit the public box")]
    Transform,
    /// A question that nobody can answer.
    #[error("the question is not usable: {0}")]
    Question(&'static str),
    /// A sum is infinite or NaN.
    #[error("the statistic '{0}' is not finite: values or centres are too large")]
    Overflow(&'static str),
    /// Steps of another question.
    #[error("there is not one step for each block of the answer")]
    Steps,
    /// Steps that a sum of so many rows may leave.
    #[error("the steps of '{0}' are too fine for these rows: take fewer fraction bits")]
    TooFine(&'static str),
    /// Fewer rows than clusters.
    #[error("there are more clusters ({0}) than rows")]
    TooFewRows(usize),
    /// Fewer anchors than clusters.
    #[error("{anchors} anchors hold rows, {k} clusters need at least as many")]
    TooFewAnchors {
        /// Clusters.
        k: usize,
        /// Anchors that hold rows.
        anchors: usize,
    },
    /// A parameter of a plan.
    #[error("{0}")]
    Parameter(String),
    /// Nothing to hand over.
    #[error("the run ends before its first round: there are no centres to hand over")]
    NoCentresYet,
    /// Totals of no question.
    #[error("totals were given, but nothing has been asked")]
    NotAsked,
    /// The method has returned its outcome.
    #[error("the method is done")]
    Finished,
    /// Totals that no rows give.
    #[error("totals are not plausible: {0}")]
    Implausible(String),
    /// Nobody to ask.
    #[error("there are no sites")]
    NoSites,
    /// Two sets of centres that cannot be compared.
    #[error("the two sets of centres have different shapes")]
    CentreShapes,
    /// Costs that no assignment is found for.
    #[error("the cost matrix must be square and finite")]
    Cost,
}

impl Error {
    pub(crate) fn parameter(what: impl ToString) -> Self {
        Self::Parameter(what.to_string())
    }

    pub(crate) fn implausible(what: impl ToString) -> Self {
        Self::Implausible(what.to_string())
    }
}

/// The error, if something is as it must not be.
pub(crate) fn refuse<E>(bad: bool, why: impl FnOnce() -> E) -> Result<(), E> {
    if bad { Err(why()) } else { Ok(()) }
}

/// Whether there are as many columns as expected.
pub(crate) fn same_columns(expected: usize, found: usize) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(Error::ColumnMismatch { expected, found }) }
}

impl From<Error> for String {
    fn from(error: Error) -> Self {
        error.to_string()
    }
}
