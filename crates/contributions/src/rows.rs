//! How rows lie in memory: groups of eight, column by column, so that a column of a group is one vector. And by what each row is changed
//! before a question is asked of it.

/// Rows in a group. Fixed, whatever the processor's vectors hold: it decides the order of every sum.
pub const LANES: usize = 8;

/// One value for each row of a group, aligned to a cache line so that no vector load straddles two.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Lanes(pub [f64; LANES]);

impl Lanes {
    /// Zeros.
    pub const ZERO: Self = Self([0.0; LANES]);

    /// The sum of all lanes, in one fixed order.
    pub fn sum(&self) -> f64 {
        let [a, b, c, d, e, f, g, h] = self.0;
        ((a + b) + (c + d)) + ((e + f) + (g + h))
    }
}

/// Rows, which whoever adds them up reads by itself. Group g, column j stand at `g * d + j`.
#[derive(Clone, Copy)]
pub struct Rows<'r> {
    /// The groups.
    pub groups: &'r [Lanes],
    /// How many rows they hold.
    pub len: usize,
    /// Values of each, d.
    pub columns: usize,
}

impl Rows<'_> {
    /// Puts the values of a row, counted from 0, into d places. A function of its own: inlined, a round takes 7 % more.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline(never)]
    pub fn read(&self, row: usize, x: &mut [f64]) {
        let group = &self.groups[row / LANES * self.columns..][..self.columns];
        x.iter_mut().zip(group).for_each(|(x, column)| *x = column.0[row % LANES]);
    }
}

/// What every row is changed by before a question is asked of it, column by column: (x within bounds − shift) · factor. All of d.
#[derive(Clone, Copy)]
pub struct Change<'c> {
    /// The least that stays.
    pub lower: &'c [f64],
    /// The most that stays, not below.
    pub upper: &'c [f64],
    /// What is taken off.
    pub shift: &'c [f64],
    /// By what the rest is multiplied.
    pub factor: &'c [f64],
}

impl Change<'_> {
    /// Changes the values of a row.
    ///
    /// # Panics
    /// If bounds are no interval.
    #[inline(always)]
    pub fn apply(&self, x: &mut [f64]) {
        let bounds = self.lower.iter().zip(self.upper);
        let by = self.shift.iter().zip(self.factor);
        for ((x, (lower, upper)), (shift, factor)) in x.iter_mut().zip(bounds).zip(by) {
            *x = (x.clamp(*lower, *upper) - shift) * factor;
        }
    }
}
