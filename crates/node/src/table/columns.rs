//! Columns of a form that has types, Parquet and Arrow, as cells of rows.

use std::{
    borrow::Cow,
    cell::Cell as Flag,
    panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook},
    sync::Once,
};

use arrow_array::{
    Array, ArrayRef, BooleanArray, RecordBatch, StringViewArray,
    cast::AsArray,
    types::{
        ArrowPrimitiveType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type, Float32Type,
        Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    },
};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, Schema};

use super::{
    About, Cell, Decimal, Fault, MAX_CELL, Numbers, Place, Result, Row, Table, TableError, Unusable, Use, Wanted,
    normal, records::TOO_LONG, take, types, wanted::check_names,
};

thread_local! {
    /// Whether a library decodes on this thread, of which no panic is printed: its text may quote cells.
    static DECODES: Flag<bool> = const { Flag::new(false) };
}

/// Runs a library's decoder. Whatever a damaged file makes of it is an error about that file, which quotes nothing of it.
pub(super) fn guarded<T, E>(file: &str, what: &'static str, decode: impl FnOnce() -> Result<T, E>) -> Result<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !DECODES.get() {
                before(panic)
            }
        }));
    });
    let damaged = || Fault::damaged(what).of(file);
    let outer = DECODES.replace(true);
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    DECODES.set(outer);
    decoded.map_err(|_| damaged())?.map_err(|_| damaged())
}

/// What is known of a file of these columns at the top.
///
/// # Errors
/// A [`TableError`] where they cannot be told apart.
pub(super) fn about(file: &str, schema: &Schema) -> Result<About> {
    let columns: Vec<String> = schema.fields().iter().map(|field| normal(field.name()).into_owned()).collect();
    check_names(file, &columns)?;
    Ok(About { name: file.to_owned(), columns, ..About::default() })
}

/// Whether the wanted columns are of types that can be read.
///
/// # Errors
/// A [`TableError`] with what to do.
pub(super) fn check_types(file: &str, schema: &Schema, wanted: &Wanted) -> Result<()> {
    for (at, of) in wanted.places() {
        let field = schema.field(at);
        if let Some((why, next)) = types::refused(field, of) {
            let what = format!("the column {:?} is of the type {}, {why}", field.name(), types::told(field));
            return Err(Fault::said(what, next).of(file));
        }
    }
    Ok(())
}

/// A column of some rows.
struct Column {
    nulls: Option<NullBuffer>,
    values: Values,
}

enum Values {
    Numbers(ScalarBuffer<f64>),
    /// Numbers in single precision that are names.
    Singles(ScalarBuffer<f32>),
    /// Integers of which every digit counts, because they are names.
    Whole(Vec<i128>),
    Bools(BooleanArray),
    Words(StringViewArray),
    Codes(Vec<usize>, Box<Column>),
    /// Of another type.
    There,
}

impl Column {
    /// As `names`, integers keep all their digits: not all of them are doubles.
    fn new(array: &ArrayRef, names: bool) -> Column {
        fn whole<T: ArrowPrimitiveType<Native: Into<i128>>>(array: &ArrayRef) -> Values {
            Values::Whole(array.as_primitive::<T>().values().iter().map(|x| (*x).into()).collect())
        }
        fn converted<T: ArrowPrimitiveType>(array: &ArrayRef, to: impl Fn(T::Native) -> f64) -> Values {
            Values::Numbers(array.as_primitive::<T>().values().iter().map(|x| to(*x)).collect())
        }
        let mut nulls = array.logical_nulls();
        let values = match array.data_type() {
            DataType::Float64 => Values::Numbers(array.as_primitive::<Float64Type>().values().clone()),
            DataType::Float32 if names => Values::Singles(array.as_primitive::<Float32Type>().values().clone()),
            DataType::Float32 => converted::<Float32Type>(array, f64::from),
            DataType::Float16 => converted::<Float16Type>(array, f64::from),
            DataType::Int8 => converted::<Int8Type>(array, f64::from),
            DataType::Int16 => converted::<Int16Type>(array, f64::from),
            DataType::Int32 => converted::<Int32Type>(array, f64::from),
            DataType::UInt8 => converted::<UInt8Type>(array, f64::from),
            DataType::UInt16 => converted::<UInt16Type>(array, f64::from),
            DataType::UInt32 => converted::<UInt32Type>(array, f64::from),
            DataType::Int64 if names => whole::<Int64Type>(array),
            DataType::UInt64 if names => whole::<UInt64Type>(array),
            // The nearest double, as of the same digits in a text.
            DataType::Int64 => converted::<Int64Type>(array, |x| x as f64),
            DataType::UInt64 => converted::<UInt64Type>(array, |x| x as f64),
            DataType::Decimal32(_, scale) => converted::<Decimal32Type>(array, |x| decimal(x.into(), *scale)),
            DataType::Decimal64(_, scale) => converted::<Decimal64Type>(array, |x| decimal(x.into(), *scale)),
            DataType::Decimal128(_, scale) => converted::<Decimal128Type>(array, |x| decimal(x, *scale)),
            DataType::Decimal256(_, scale) => converted::<Decimal256Type>(array, |x| written(x, *scale)),
            DataType::Boolean => Values::Bools(array.as_boolean().clone()),
            DataType::Utf8 => Values::Words(array.as_string::<i32>().into()),
            DataType::LargeUtf8 => Values::Words(array.as_string::<i64>().into()),
            DataType::Utf8View => Values::Words(array.as_string_view().clone()),
            DataType::Dictionary(..) => match array.as_any_dictionary_opt() {
                Some(codes) if !codes.values().is_empty() => {
                    Values::Codes(codes.normalized_keys(), Box::new(Column::new(codes.values(), names)))
                }
                _ => {
                    nulls = Some(NullBuffer::new_null(array.len()));
                    Values::There
                }
            },
            _ => Values::There,
        };
        Column { nulls, values }
    }

    /// The same where texts have this sign before fractions: as those of a text file are read.
    fn turned(self, decimal: Decimal) -> Column {
        let turned = |text: &str| String::from_utf8_lossy(&Decimal::Comma.point(text.as_bytes())).into_owned();
        let values = match self.values {
            values if decimal == Decimal::Point => values,
            Values::Words(array) => Values::Words(array.iter().map(|text| text.map(turned)).collect()),
            Values::Codes(keys, words) => Values::Codes(keys, Box::new(words.turned(decimal))),
            values => values,
        };
        Column { values, ..self }
    }

    fn cell(&self, row: usize) -> Cell<'_> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Cell::Nothing;
        }
        match &self.values {
            Values::Numbers(values) => Cell::Number(values[row]),
            Values::Singles(values) => Cell::Single(values[row]),
            Values::Whole(values) => Cell::Whole(values[row]),
            Values::Codes(keys, words) => words.cell(keys[row]),
            Values::There => Cell::Text(b"-"),
            Values::Bools(array) => Cell::Bool(array.value(row)),
            Values::Words(array) => Cell::Text(array.value(row).as_bytes()),
        }
    }
}

/// The double nearest to a decimal number, which is also what its digits in a text are read as.
fn decimal(digits: i128, scale: i8) -> f64 {
    // Both are doubles without rounding, so their quotient is rounded once.
    match (u32::try_from(scale), digits.unsigned_abs() <= 1 << 53) {
        (Ok(scale @ 0..=19), true) => digits as f64 / 10u64.pow(scale) as f64,
        _ => written(digits, scale),
    }
}

fn written(digits: impl std::fmt::Display, scale: i8) -> f64 {
    format!("{digits}e{}", -i32::from(scale)).parse().unwrap_or(f64::NAN)
}

/// The wanted columns of some rows.
struct Columns {
    columns: Vec<Option<Column>>,
    /// Those with text.
    texts: Vec<usize>,
}

struct RowOf<'a>(&'a Columns, usize);

impl Row for RowOf<'_> {
    fn cell(&self, at: usize) -> Cell<'_> {
        self.0.columns[at].as_ref().map_or(Cell::Nothing, |column| column.cell(self.1))
    }
}

/// Takes the rows of a batch with the columns at these places, which stand behind `before` others of their file: how many there are with
/// these.
///
/// # Errors
/// As [`take`], and where a text is longer than a cell may be.
pub(super) fn take_batch(
    About { name, columns: header, .. }: &About,
    before: u64,
    places: &[usize],
    batch: &RecordBatch,
    wanted: &Wanted,
    table: &mut Table,
) -> Result<u64> {
    let (columns, rows) = (Columns::new(name, header.len(), places, batch.columns(), wanted)?, batch.num_rows());
    if columns.plain(wanted).is_some_and(|columns| table.append(rows, &columns)) {
        return Ok(before + rows as u64);
    }
    for row in 0..rows {
        let (spot, row) = ((name.as_str(), Place::Row(before + row as u64 + 1)), RowOf(&columns, row));
        let long = |at: &&usize| matches!(row.cell(**at), Cell::Text(text) if text.len() > MAX_CELL);
        match columns.texts.iter().find(long) {
            Some(_) if wanted.unusable == Unusable::Weightless => table.spoil(name, TOO_LONG.of_row(spot))?,
            Some(at) => return Err(Fault::cell_too_long(at + 1).of_row(spot)),
            None => take(spot, header, &row, wanted, table)?,
        }
    }
    Ok(before + rows as u64)
}

impl Columns {
    /// `arrays` are the columns at these places of a header of `all`.
    fn new(file: &str, all: usize, places: &[usize], arrays: &[ArrayRef], wanted: &Wanted) -> Result<Self> {
        let uses = wanted.places();
        let names = |at: &usize| matches!(uses.get(at), Some(Use::Words | Use::Person));
        guarded(file, "a column does not hold what its type says", || {
            let mut columns: Vec<Option<Column>> = (0..all).map(|_| None).collect();
            let mut texts = Vec::new();
            for (at, array) in places.iter().zip(arrays) {
                let column = Column::new(array, names(at)).turned(wanted.decimal);
                if matches!(column.values, Values::Words(_) | Values::Codes(..)) {
                    texts.push(*at);
                }
                columns[*at] = Some(column);
            }
            Ok::<_, TableError>(Columns { columns, texts })
        })
    }

    /// The wanted numbers, column by column, where rows are nothing but numbers and all of them can be used: most batches of most
    /// files, which are then copied at once.
    fn plain(&self, wanted: &Wanted) -> Option<Vec<Cow<'_, [f64]>>> {
        let there = |at: usize| match self.columns[at].as_ref()? {
            Column { values: Values::Numbers(values), nulls }
                if nulls.as_ref().is_none_or(|of| of.null_count() == 0) =>
            {
                Some(values)
            }
            _ => None,
        };
        let words = !wanted.categorical.is_empty() || wanted.label.is_some() || !wanted.marks.is_empty();
        let some = wanted.cut.is_some() || !wanted.filter.is_empty();
        if words || some || wanted.complete.iter().any(|(at, _)| there(*at).is_none()) {
            return None;
        }
        let of = |column: &Numbers| {
            let own = there(column.at)?;
            let values: Cow<'_, [f64]> = match column.unit {
                None => Cow::Borrowed(own),
                Some(unit) => own.iter().map(|x| unit.of(*x)).collect(),
            };
            let (low, high) = column.limit.unwrap_or((f64::MIN, f64::MAX));
            values.iter().fold(true, |all, x| all & (low <= *x) & (*x <= high) & x.is_finite()).then_some(values)
        };
        wanted.columns.iter().map(of).collect()
    }
}
