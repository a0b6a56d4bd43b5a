//! Rows out of the database by binary COPY, every value a double.

use veilsum_answerer::{Hello, Refusal};

use crate::{session::Session, source::Source};

/// Rows that are handed on at a time.
const BATCH: usize = 1 << 16;

/// Hands on all rows, original units with indicators 0 and 1, [`BATCH`] at a time; the number of rows.
///
/// # Errors
/// [`Refusal`], also that of `take`.
pub(crate) fn read(
    source: &Source,
    hello: &Hello,
    session: &mut Session,
    take: &mut dyn FnMut(Vec<f64>) -> Result<(), Refusal>,
) -> Result<u64, Refusal> {
    let categories: Vec<usize> = hello.categorical.iter().map(|column| column.categories.len()).collect();
    let numbers = hello.columns.len();
    let (mut rows, mut values) = (0, Vec::new());
    session.copy(&source.copy(), numbers + categories.len(), |row| {
        let (own, places) = row.split_at(numbers);
        values.extend_from_slice(own);
        for (place, of) in places.iter().zip(&categories) {
            values.extend((0..*of).map(|at| f64::from(u8::from(at as f64 == *place))));
        }
        rows += 1;
        if rows % BATCH as u64 == 0 { take(std::mem::take(&mut values)) } else { Ok(()) }
    })?;
    if !values.is_empty() {
        take(values)?;
    }
    Ok(rows)
}
