//! How much a series of smooth questions tells about the rows: effective rank and bits in place of a count of numbers
//! (specification, section 11.1, [POL-9]).
//!
//! Every round of fuzzy c-means asks `K (d + 1)` sums of smooth functions of a row, and after a few rounds most of them are
//! combinations of those before. With `λ_i` the eigenvalues of the covariance of all functions asked so far, `N` rows and a
//! step `q` of the totals, rounding to the step is noise of variance `q²/12`, so that
//!
//! ```text
//! r    = number of i with 12 N λ_i / q² > 1
//! bits = ½ Σ log2(1 + 12 N λ_i / q²)
//! ```
//!
//! numbers and bits became known (the capacity of Gaussian channels side by side). Every function is divided by a step of its
//! own first.
//!
//! **It is a heuristic: probes are not the data.** The covariance is taken over fixed seeded rows in the box. A function that is
//! steep where no probe lies counts for less than it tells of a row that lies there.
//!
//! # What is kept
//!
//! Let `a_j` be function j on the probes, without its mean, with `|a_j|² = 12 N var / q²`, and A the matrix of these columns; its
//! squared singular values are the numbers above. Kept is an orthonormal basis Q of a space that holds every column but for
//! residuals `e_j` of together `D = Σ |e_j|²`, and the Cholesky factor of `I + C`, C being the sum of `b_j b_jᵀ` over
//! the coordinates `b_j = Qᵀ a_j`.
//!
//! * A new column adds `½ log2(1 + aᵀ (I + A Aᵀ)⁻¹ a)` bits by the determinant lemma, computed as `½ log2(1 + bᵀ (I + C)⁻¹ b + |e|²)`.
//!   That is exact where nothing was left out before, and residuals below an eighth of a standard deviation change little.
//! * By Weyl's inequalities singular value `dim Q + j` of A is at most singular value j of the matrix of the residuals, and at most
//!   D of these squared exceed 1: `r ≤ dim Q + ⌊D⌋`. That bound is what counts; it lies some 5 to 20 % above r.
//!
//! A question of p numbers costs O(probes · p · r).

use fearless_simd::{Level, Simd, dispatch};
use ndarray::{Array2, linalg::general_mat_mul};

use crate::{Batch, DataError, Domain, OutOfBox, QueryError, Rows, random::Stream};

/// Rows on which functions are compared.
const PROBES: usize = 2_048;
/// Places in the box around which half of the probes lie.
const ANCHORS: usize = 16;
/// How far around them: standard deviation, in extents of the box.
const AROUND: f64 = 0.12;
/// Directions of one space at most: three probes for each. Every further function outside them counts in full.
const MAX_DIRECTIONS: usize = PROBES / 3;
/// A function that lies outside the basis by less than this, in squared steps, adds to D and gets no direction of its
/// own.
const NEGLIGIBLE: f64 = 1.0 / 64.0;
/// Largest `12 N var / q²` of a function. Sites add up in doubles, whose own rounding over a thousand rows and more is coarser
/// than a step this fine; and up to here what rounding leaves outside the basis is far below a step.
const FINEST: f64 = (1u128 << 90) as f64;
/// Thousandths of a bit that one number tells at most: half of log2(1 + 2^90).
pub const MOST_MILLI_BITS: u64 = 45_001;
/// The number of boxes that are counted separately.
const MAX_SPACES: usize = 8;

/// A question whose totals were released, or are to be.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// Names of the columns, d.
    pub columns: &'a [String],
    /// The public box.
    pub domain: &'a Domain,
    /// The question.
    pub batch: &'a Batch,
    /// Step of the totals, working units, one for each block of the question's layout.
    pub steps: &'a [f64],
    /// Rows in the total at most.
    pub rows: u64,
}

/// What smooth questions together tell about the rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Effective {
    /// Numbers that became known, from above: r.
    pub rank: u64,
    /// Thousandths of a bit in them, rounded up.
    pub milli_bits: u64,
}

/// The reason why a question cannot be measured; its numbers then count one by one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unmeasured {
    /// Its answer is not a sum of smooth functions of one row.
    #[error("the answer is not a sum of smooth functions of single rows")]
    NotSmooth,
    /// Questions in too many different boxes.
    #[error("questions were asked in more than {MAX_SPACES} different boxes")]
    Boxes,
    /// Steps or values that are not finite.
    #[error("a function of the question has no finite value on the probes, or no step")]
    NotFinite,
    /// The question does not fit its box.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// Nor do the probes.
    #[error(transparent)]
    Data(#[from] DataError),
}

/// All smooth questions of one set of rows, measured together. Questions in boxes that hardly overlap are measured
/// separately and added up, which is at least as much (Fischer's inequality).
#[derive(Default)]
pub struct Ranks {
    spaces: Vec<Space>,
}

/// The state of [`Ranks`] before a question.
pub struct Before {
    space: usize,
    /// The box was not known before.
    fresh: bool,
    directions: usize,
    factor: Vec<Vec<f64>>,
    left_out: f64,
    beyond: u64,
    bits: f64,
}

impl Ranks {
    /// What all questions so far tell together.
    pub fn effective(&self) -> Effective {
        let mut all = Effective::default();
        let mut bits = 0.0;
        for space in &self.spaces {
            all.rank += space.factor.len() as u64 + space.beyond + space.left_out as u64;
            bits += space.bits;
        }
        // Saturates.
        all.milli_bits = (bits * 1e3).ceil() as u64;
        all
    }

    /// Adds a question, and returns the state before it.
    ///
    /// # Errors
    /// [`Unmeasured`]; nothing has changed then.
    pub fn add(&mut self, asked: &Asked<'_>) -> Result<Before, Unmeasured> {
        let at = match self.spaces.iter().position(|space| space.takes(asked)) {
            Some(at) => at,
            None if self.spaces.len() == MAX_SPACES => return Err(Unmeasured::Boxes),
            None => self.spaces.len(),
        };
        let fresh = (at == self.spaces.len()).then(|| Space::of(asked)).transpose()?;
        let functions = fresh.as_ref().unwrap_or_else(|| &self.spaces[at]).functions(asked)?;
        let is_fresh = fresh.is_some();
        self.spaces.extend(fresh);
        let space = &mut self.spaces[at];
        let before = Before {
            space: at,
            fresh: is_fresh,
            directions: space.factor.len(),
            factor: space.factor.clone(),
            left_out: space.left_out,
            beyond: space.beyond,
            bits: space.bits,
        };
        space.add(functions);
        Ok(before)
    }

    /// Takes back what was added since `before`, the last question alone; a box that came with it is nobody's any more.
    pub fn undo(&mut self, before: Before) {
        if before.fresh {
            self.spaces.truncate(before.space);
            return;
        }
        let Some(space) = self.spaces.get_mut(before.space) else { return };
        space.basis.truncate(before.directions * PROBES);
        (space.factor, space.left_out) = (before.factor, before.left_out);
        (space.beyond, space.bits) = (before.beyond, before.bits);
    }
}

/// Questions in one box, or in boxes much like it.
struct Space {
    columns: Vec<String>,
    domain: Domain,
    /// The probes in the columns' own units, [`PROBES`] x d.
    probes: Rows,
    /// Orthonormal directions, one after the other, each [`PROBES`] long.
    basis: Vec<f64>,
    /// Cholesky factor of I + C, column by column from the diagonal on; its diagonal is at least 1.
    factor: Vec<Vec<f64>>,
    left_out: f64,
    /// Functions outside a basis that is full.
    beyond: u64,
    bits: f64,
}

impl Space {
    fn of(asked: &Asked<'_>) -> Result<Space, DataError> {
        Ok(Space {
            columns: asked.columns.to_vec(),
            domain: asked.domain.clone(),
            probes: probes(asked.domain)?,
            basis: Vec::new(),
            factor: Vec::new(),
            left_out: 0.0,
            beyond: 0,
            bits: 0.0,
        })
    }

    /// Whether a question's box is this one, or shares at least half of the wider one with it, column by column: else the
    /// probes would lie at the edge of either.
    fn takes(&self, asked: &Asked<'_>) -> bool {
        let (own, other) = (&self.domain, asked.domain);
        let alike = |column: usize| {
            let (low, high) = (own.lower()[column], own.upper()[column]);
            let (from, to) = (other.lower()[column], other.upper()[column]);
            high.min(to) - low.max(from) >= 0.5 * (high - low).max(to - from)
        };
        self.columns == asked.columns && own.columns() == other.columns() && (0..own.columns()).all(alike)
    }

    /// The question's functions on the probes, one a row, without their means and in standard deviations of rounding.
    fn functions(&self, asked: &Asked<'_>) -> Result<Array2<f64>, Unmeasured> {
        let Asked { domain, batch, .. } = asked;
        batch.check(domain)?;
        let rows = domain.to_working(&self.probes, OutOfBox::Clip)?;
        let rows = match &batch.transform {
            None => rows,
            Some(transform) => transform.rows(&rows)?,
        };
        let layout = batch.layout(domain)?;
        if layout.len() != asked.steps.len() {
            return Err(Unmeasured::NotFinite);
        }
        let steps: Vec<f64> = layout.iter().zip(asked.steps).flat_map(|(b, step)| vec![*step; b.len]).collect();
        let mut values = batch.functions(&rows, domain)?.ok_or(Unmeasured::NotSmooth)?;
        for (mut function, step) in values.rows_mut().into_iter().zip(steps) {
            let mean = function.sum() / PROBES as f64;
            function -= mean;
            let variance = function.dot(&function) / PROBES as f64;
            let scale = if variance > 0.0 {
                let known = 12.0 * asked.rows as f64 * variance / (step * step);
                // In the order that leaves the numbers there are last.
                (known.min(FINEST) / PROBES as f64).sqrt() / variance.sqrt()
            } else {
                0.0
            };
            function *= scale;
            if step.is_nan() || step <= 0.0 || function.iter().any(|value| !value.is_finite()) {
                return Err(Unmeasured::NotFinite);
            }
        }
        Ok(values)
    }

    fn add(&mut self, mut functions: Array2<f64>) {
        let old = self.factor.len();
        let mut onto_old = Array2::zeros((functions.nrows(), old));
        if old > 0 {
            let basis = self.directions(0);
            general_mat_mul(1.0, &functions, &basis.t(), 0.0, &mut onto_old);
            general_mat_mul(-1.0, &onto_old, &basis, 1.0, &mut functions);
        }
        debug_assert!(functions.is_standard_layout());
        let mut functions = functions.into_raw_vec_and_offset().0;
        let (functions, _) = functions.as_chunks_mut::<PROBES>();
        for (rest, onto_old) in functions.iter_mut().zip(onto_old.rows()) {
            let mut onto = onto_old.to_vec();
            onto.resize(self.factor.len(), 0.0);
            // These are directions of this question itself.
            self.take_off(rest, &mut onto, old);
            let mut outside = square(rest);
            if outside > NEGLIGIBLE {
                // Once more for what rounding left in it (Giraud, Langou & Rozložník 2005: twice is enough).
                self.take_off(rest, &mut onto, 0);
                outside = square(rest);
            }
            if outside > NEGLIGIBLE && self.factor.len() < MAX_DIRECTIONS {
                let length = outside.sqrt();
                self.basis.extend(rest.iter().map(|x| x / length));
                self.factor.iter_mut().for_each(|column| column.push(0.0));
                self.factor.push(vec![1.0]);
                onto.push(length);
                outside = 0.0;
            } else if outside > NEGLIGIBLE {
                self.beyond += 1;
            } else {
                self.left_out += outside;
            }
            self.bits += 0.5 * (self.told(&onto) + outside).ln_1p() / std::f64::consts::LN_2;
            self.take(onto);
        }
    }

    /// The basis from direction `first` on.
    fn directions(&self, first: usize) -> ndarray::ArrayView2<'_, f64> {
        let shape = (self.factor.len() - first, PROBES);
        ndarray::ArrayView2::from_shape(shape, &self.basis[first * PROBES..]).expect("whole directions")
    }

    /// Moves what lies along the directions from `first` on out of `rest` and into its coordinates.
    fn take_off(&self, rest: &mut [f64; PROBES], onto: &mut [f64], first: usize) {
        let (directions, _) = self.basis.as_chunks::<PROBES>();
        let (directions, onto) = (&directions[first..], &mut onto[first..]);
        dispatch!(Level::new(), simd => along_each(simd, directions, rest, onto));
    }

    /// `bᵀ (I + C)⁻¹ b`, by forward substitution.
    fn told(&self, onto: &[f64]) -> f64 {
        let mut rest = onto.to_vec();
        let mut sum = 0.0;
        for (k, column) in self.factor.iter().enumerate() {
            let y = rest[k] / column[0];
            sum += y * y;
            rest[k..].iter_mut().zip(column).for_each(|(slot, entry)| *slot -= y * entry);
        }
        sum
    }

    /// `C <- C + b bᵀ` in the factor, by rotations (Golub & Van Loan, Matrix Computations, 6.5.4).
    fn take(&mut self, mut onto: Vec<f64>) {
        for (k, column) in self.factor.iter_mut().enumerate() {
            let length = column[0].hypot(onto[k]);
            let (c, s) = (column[0] / length, onto[k] / length);
            for (entry, slot) in column.iter_mut().zip(&mut onto[k..]) {
                (*entry, *slot) = (c * *entry + s * *slot, c * *slot - s * *entry);
            }
        }
    }
}

/// `rest -= (dᵀ rest) d` for one direction d after the other, each of which is then in the first-level cache.
#[inline(always)]
fn along_each<S: Simd>(_: S, directions: &[[f64; PROBES]], rest: &mut [f64; PROBES], onto: &mut [f64]) {
    for (direction, slot) in directions.iter().zip(onto) {
        let along = dot(direction, rest);
        rest.iter_mut().zip(direction).for_each(
            #[inline(always)]
            |(rest, d)| *rest -= along * d,
        );
        *slot += along;
    }
}

/// In lanes, so that the compiler can use vectors.
#[inline(always)]
fn dot(a: &[f64; PROBES], b: &[f64; PROBES]) -> f64 {
    let mut lanes = [0.0; 32];
    let ((a, _), (b, _)) = (a.as_chunks::<32>(), b.as_chunks::<32>());
    for (a, b) in a.iter().zip(b) {
        for lane in 0..32 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    lanes.iter().sum()
}

fn square(a: &[f64; PROBES]) -> f64 {
    dispatch!(Level::new(), simd => square_of(simd, a))
}

#[inline(always)]
fn square_of<S: Simd>(_: S, a: &[f64; PROBES]) -> f64 {
    dot(a, a)
}

/// Rows of the box in the columns' own units: half of them uniform, half around uniform places, always the same.
fn probes(domain: &Domain) -> Result<Rows, DataError> {
    let d = domain.columns();
    let mut stream = Stream::new(0, b"veilsum effective rank 1");
    let anchors: Vec<f64> = (0..ANCHORS * d).map(|_| stream.unit()).collect();
    let mut values = Vec::with_capacity(PROBES * d);
    for probe in 0..PROBES {
        for column in 0..d {
            let part = if probe < PROBES / 2 {
                stream.unit()
            } else {
                (anchors[probe % ANCHORS * d + column] + AROUND * stream.normal_pair()[0]).clamp(0.0, 1.0)
            };
            let (low, high) = (domain.lower()[column], domain.upper()[column]);
            // Rounding could leave the box.
            values.push((low + part * (high - low)).clamp(low, high));
        }
    }
    Rows::new(values, d)
}

#[cfg(test)]
mod tests;
