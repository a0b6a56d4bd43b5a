//! Rows packed once for the kernel: groups of 8 points, dimension-major, so that a column of a group is one vector.

use crate::{DataError, Domain, OutOfBox, Rows};

/// Points in a group. Fixed, whatever the processor's vectors hold: it decides the order of every sum.
pub(crate) const LANES: usize = 8;

/// One value for each point of a group, aligned to a cache line so that no vector load straddles two.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Lanes(pub(crate) [f64; LANES]);

impl Lanes {
    pub(crate) const ZERO: Self = Self([0.0; LANES]);

    /// The sum of all lanes, in one fixed order.
    pub(crate) fn sum(&self) -> f64 {
        let [a, b, c, d, e, f, g, h] = self.0;
        ((a + b) + (c + d)) + ((e + f) + (g + h))
    }
}

/// Rows in the kernel's layout, working units.
///
/// Group g, column j stand at `g * d + j`. The last row is repeated to fill an even number of groups; the kernel leaves the
/// copies out of its sums.
#[derive(Clone)]
pub struct Packed {
    lanes: Vec<Lanes>,
    len: usize,
    columns: usize,
}

impl Packed {
    /// Packs n x d rows; takes about as much memory again.
    pub fn new(rows: &Rows) -> Self {
        let (len, columns) = (rows.len(), rows.columns());
        let groups = len.div_ceil(LANES).next_multiple_of(2);
        let mut lanes = vec![Lanes::ZERO; groups * columns];
        if len > 0 {
            for (g, group) in lanes.chunks_exact_mut(columns).enumerate() {
                for lane in 0..LANES {
                    let row = rows.row((g * LANES + lane).min(len - 1));
                    for (slot, value) in group.iter_mut().zip(row) {
                        slot.0[lane] = *value;
                    }
                }
            }
        }
        Self { lanes, len, columns }
    }

    /// Number of rows, n.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of columns, d >= 1.
    pub fn columns(&self) -> usize {
        self.columns
    }

    pub(crate) fn lanes(&self) -> &[Lanes] {
        &self.lanes
    }
}

impl std::fmt::Debug for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packed").field("columns", &self.columns).finish_non_exhaustive()
    }
}

/// One site's rows, ready to answer queries: inside the public box, in working units, packed.
#[derive(Debug, Clone)]
pub struct Prepared {
    packed: Packed,
    domain: Domain,
}

impl Prepared {
    /// Takes rows in ORIGINAL units (n x d) through the public box.
    ///
    /// # Errors
    /// Those of [`Domain::to_working`].
    pub fn new(rows: &Rows, domain: &Domain, out_of_box: OutOfBox) -> Result<Self, DataError> {
        let working = domain.to_working(rows, out_of_box)?;
        Ok(Self { packed: Packed::new(&working), domain: domain.clone() })
    }

    /// Number of rows, n.
    pub fn len(&self) -> usize {
        self.packed.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }

    /// The public box.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The rows in the kernel's layout, working units.
    pub fn packed(&self) -> &Packed {
        &self.packed
    }
}
