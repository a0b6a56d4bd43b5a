//! Random rows at which questions are read as functions. They come from the public box and the questions' own points,
//! because the adversary knows nothing about the data.

use anyhow::{Context as _, Result};
use rayon::prelude::*;
use veilsum_cluster::{Centres, Domain, OutOfBox, Prepared, Rows, Scaling, random::Stream};
use veilsum_node::question::Question;

use super::{reading::Reading, told::Told};
use crate::qr::Columns;

const LABEL: &[u8; 24] = b"veilsum audit span    v1";
/// Spread of the probes around the questions' points, as a part of the box.
const SPREAD: f64 = 0.12;

/// Probe rows, as parts of the box of the first total.
pub struct Probes {
    /// By probe its coordinates, 0 to 1 each.
    pub places: Vec<Vec<f64>>,
    rows: Rows,
}

impl Probes {
    /// So many probes: one half uniform in the box, the other around the questions' points, in turn.
    ///
    /// # Errors
    /// Where there is no total, or boxes have different columns.
    pub fn draw(told: &[Told], number: usize, seed: u64) -> Result<Probes> {
        let domain = &told.first().context("there is no total to look at")?.domain;
        let d = domain.columns();
        anyhow::ensure!(told.iter().all(|t| t.domain.columns() == d), "the totals are of rows with different columns");
        let mut stream = Stream::new(seed, LABEL);
        let points: Vec<Vec<f64>> = told.iter().flat_map(|t| points(t, domain)).collect();
        let mut places = Vec::with_capacity(number);
        for i in 0..number {
            let middle =
                (i % 2 == 1 && !points.is_empty()).then(|| &points[stream.below(points.len() as u64) as usize]);
            let place = (0..d).map(|j| match middle {
                None => stream.unit(),
                Some(point) => (point[j] + SPREAD * stream.normal_pair()[0]).clamp(0.0, 1.0),
            });
            places.push(place.collect::<Vec<f64>>());
        }
        let (lower, upper) = (domain.lower(), domain.upper());
        let original = |p: &Vec<f64>| {
            (0..d).map(|j| (lower[j] + p[j] * (upper[j] - lower[j])).clamp(lower[j], upper[j])).collect()
        };
        let values: Vec<Vec<f64>> = places.iter().map(original).collect();
        Ok(Probes { places, rows: Rows::new(values.concat(), d)? })
    }

    /// The probes as sites of one row each, behind this box.
    ///
    /// # Errors
    /// Where the box does not fit.
    pub fn prepared(&self, domain: &Domain) -> Result<Vec<Prepared>> {
        let d = self.rows.columns();
        let one = |row: &[f64]| Ok(Prepared::new(&Rows::new(row.to_vec(), d)?, domain, OutOfBox::Clip)?);
        self.rows.iter().map(one).collect()
    }
}

/// What each probe adds to the numbers that are read, column by column.
///
/// # Errors
/// Where a row cannot be answered for.
pub fn evaluate(reading: &Reading, probes: &[Prepared]) -> Result<Columns> {
    let rows: Vec<Vec<f64>> = probes.par_iter().map(|p| reading.at(p)).collect::<Result<_>>()?;
    Ok((0..reading.len()).map(|j| rows.iter().map(|row| row[j]).collect()).collect())
}

/// The points of a question as parts of the box `of`.
fn points(told: &Told, of: &Domain) -> Vec<Vec<f64>> {
    let (Question::Cluster(batch) | Question::Drawn { batch, .. }) = &told.question else { return Vec::new() };
    // Original units are those of a box that scales nothing.
    let Ok(whole) = Domain::new(of.lower().to_vec(), of.upper().to_vec(), Scaling::Box) else { return Vec::new() };
    let back = |centres: &Centres| {
        let working = match &batch.transform {
            Some(transform) => transform.back(centres).ok()?,
            None => centres.clone(),
        };
        whole.centres_to_box(&told.domain.centres_to_original(&working).ok()?).ok()
    };
    let sets = batch.queries.iter().flat_map(|q| q.points()).filter_map(back);
    sets.flat_map(|c| c.rows().map(<[f64]>::to_vec).collect::<Vec<_>>()).collect()
}
