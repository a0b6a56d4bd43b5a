//! What can go wrong, one enum for each side of the conversation; no text holds a value, and none a number of rows.

/// Rows, centres or a public box that cannot be used. Row and column indices count from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// Rows or centres without a column.
    #[error("there are no columns")]
    NoColumns,
    /// The number of values is no multiple of the number of columns.
    #[error("the values do not fill whole rows of {columns} columns")]
    Ragged {
        /// The number of columns asked for.
        columns: usize,
    },
    /// A missing or infinite value.
    #[error("the value at row {row}, column {column} (both counted from 0) is not a finite number")]
    NotFinite {
        /// Row index.
        row: usize,
        /// Column index.
        column: usize,
    },
    /// A row outside the public box, where rows are refused and not clipped.
    #[error("the value at row {row}, column {column} (both counted from 0) lies outside the public box")]
    OutsideBox {
        /// Row index.
        row: usize,
        /// Column index.
        column: usize,
    },
    /// A column whose box is so narrow or so far from zero, in working units, that single precision tells too few of its numbers apart.
    #[error("single precision is too coarse for the box of column {column} (counted from 0)")]
    TooCoarse {
        /// Column index.
        column: usize,
    },
    /// A row of zeros where only directions count.
    #[error("row {row} (counted from 0) holds nothing but zeros, and has no direction")]
    NoDirection {
        /// Row index.
        row: usize,
    },
    /// Two things that should have the same columns do not.
    #[error("expected {expected} columns, found {found}")]
    ColumnMismatch {
        /// Columns of the side that sets the shape.
        expected: usize,
        /// Columns of the other side.
        found: usize,
    },
    /// A set of centres with no centre in it.
    #[error("there are no centres")]
    NoCentres,
    /// The number of centres is not the number of clusters asked for.
    #[error("expected {expected} centres, found {found}")]
    CentreCount {
        /// Clusters asked for.
        expected: usize,
        /// Centres given.
        found: usize,
    },
    /// The declared shape of the centres does not fit their values.
    #[error("the values do not fill {k} centres of {columns} columns")]
    CentreShape {
        /// Declared number of centres.
        k: usize,
        /// Declared number of columns.
        columns: usize,
    },
    /// A centre with a missing or infinite coordinate.
    #[error("centre {centre}, column {column} (both counted from 0) is not a finite number")]
    CentreNotFinite {
        /// Centre index.
        centre: usize,
        /// Column index.
        column: usize,
    },
    /// The two sides of the box have different lengths.
    #[error("the box has {lower} lower and {upper} upper bounds")]
    BoundCount {
        /// Number of lower bounds.
        lower: usize,
        /// Number of upper bounds.
        upper: usize,
    },
    /// A bound that is no number, or too large to be squared.
    #[error("a bound of column {column} (counted from 0) is not finite or beyond 1e150")]
    BoundNotUsable {
        /// Column index.
        column: usize,
    },
    /// Lower and upper bound coincide: the column is constant and carries no information.
    #[error("column {column} (counted from 0) has equal bounds: a constant column cannot be scaled, leave it out")]
    ConstantColumn {
        /// Column index.
        column: usize,
    },
    /// The lower bound is above the upper one.
    #[error("the bounds of column {column} (counted from 0) are crossed: lower is above upper")]
    CrossedBounds {
        /// Column index.
        column: usize,
    },
    /// The fuzzifier `m` is not a finite number above 1.
    #[error("the fuzzifier m must be a finite number above 1")]
    Fuzzifier,
    /// An operation that needs at least one row.
    #[error("there are no rows")]
    NoRows,
    /// More or fewer labels than rows.
    #[error("there is not one label for each row")]
    LabelCount,
}

/// A query that a site must not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The fuzzifier `m` is not a finite number above 1.
    #[error("the query's fuzzifier m must be a finite number above 1")]
    Fuzzifier,
    /// The centres do not live in the columns of the public box.
    #[error("the query's centres have {found} columns, the box has {expected}")]
    ColumnMismatch {
        /// Columns of the box.
        expected: usize,
        /// Columns of the centres.
        found: usize,
    },
    /// A standardisation that does not fit the box.
    #[error("the question's standardisation does not fit the public box")]
    Transform,
    /// No question in a batch, or too many.
    #[error("a batch must hold 1 to {most} questions")]
    Batch {
        /// The limit.
        most: usize,
    },
    /// A parameter outside its domain.
    #[error("the question is not usable: {what}")]
    Parameter {
        /// Which, in words.
        what: &'static str,
    },
}

/// Why a site has no answer to a query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The query itself is wrong.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The rows do not fit the query.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A sum left the range of `f64`.
    #[error("the statistic '{block}' is not finite: values or centres are too large")]
    NotFinite {
        /// Name of the block of the layout.
        block: &'static str,
    },
    /// The steps of an answer are not those of its blocks.
    #[error("there is not one step for each block of the answer")]
    Steps,
    /// The steps of a block are too fine for integers of 64 bits.
    #[error("the steps of '{block}' are too fine for these rows: take fewer fraction bits")]
    TooFine {
        /// Name of the block of the layout.
        block: &'static str,
    },
    /// The question compares with labels, and there are none (or one is out of range).
    #[error("the question asks about labels that these rows do not have")]
    NoLabels,
}

/// A method that cannot start or cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MethodError {
    /// K = 0.
    #[error("the number of clusters K must be at least 1")]
    NoClusters,
    /// The fuzzifier `m` is not a finite number above 1.
    #[error("the fuzzifier m must be a finite number above 1")]
    Fuzzifier,
    /// The stop tolerance is negative or not a number.
    #[error("epsilon must be a finite number, 0 or above")]
    Epsilon,
    /// No round is allowed.
    #[error("max_rounds must be at least 1")]
    NoRounds,
    /// More rounds than a run keeps a history of.
    #[error("max_rounds must be at most {most}")]
    TooManyRounds {
        /// The limit.
        most: u32,
    },
    /// The start has another number of centres than K.
    #[error("K is {expected}, but the start has {found} centres")]
    StartCount {
        /// K.
        expected: usize,
        /// Centres of the start.
        found: usize,
    },
    /// K exceeds the number of rows.
    #[error("there are more clusters ({k}) than rows")]
    TooFewRows {
        /// K.
        k: usize,
    },
    /// Fewer anchors hold rows than clusters are wanted.
    #[error("{anchors} anchors hold rows, {k} clusters need at least as many")]
    TooFewAnchors {
        /// K.
        k: usize,
        /// Anchors found.
        anchors: usize,
    },
    /// A parameter outside its domain, or two that do not go together.
    #[error("{what}")]
    Parameter {
        /// Which and why, in words.
        what: String,
    },
    /// A run that is to end here, and no centre has moved yet.
    #[error("the run ends before its first round: there are no centres to hand over")]
    NoCentresYet,
    /// Totals came before a question was asked.
    #[error("totals were given, but nothing has been asked")]
    NotAsked,
    /// The method has already returned its outcome.
    #[error("the method is done")]
    Finished,
    /// Totals that no set of rows can have produced. The method's state is unchanged.
    #[error("totals are not plausible: {what}")]
    Implausible {
        /// What is wrong, in words.
        what: String,
    },
}

impl MethodError {
    pub(crate) fn parameter(what: impl Into<String>) -> Self {
        Self::Parameter { what: what.into() }
    }

    pub(crate) fn implausible(what: impl Into<String>) -> Self {
        Self::Implausible { what: what.into() }
    }
}

/// A conversation between a method and rows at hand that broke off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// The method stopped.
    #[error(transparent)]
    Method(#[from] MethodError),
    /// A site could not answer.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// There is nobody to ask.
    #[error("there are no sites")]
    NoSites,
}

/// Two labellings or two sets of centres that cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricError {
    /// Labellings of different lengths.
    #[error("the two labellings have different lengths")]
    LabelCount,
    /// Centres of different shapes.
    #[error("the two sets of centres have different shapes")]
    CentreShape,
    /// A jackknife of fewer than three blocks, or of blocks that do not make up all rows.
    #[error("there are fewer than three blocks, or their rows are not all the rows")]
    Blocks,
    /// An assignment problem that is not square or holds a value that is not finite.
    #[error("the cost matrix must be square and finite")]
    Cost,
}
