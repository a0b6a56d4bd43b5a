//! The estimate from several noisy rounds.

/// The mean of what the last rounds found, number by number.
#[derive(Debug, Clone)]
pub(super) struct Last {
    sum: Vec<f64>,
    rounds: u32,
}

impl Last {
    pub(super) fn of(numbers: usize) -> Self {
        Self { sum: vec![0.0; numbers], rounds: 0 }
    }

    pub(super) fn add<'a>(&mut self, found: impl IntoIterator<Item = &'a f64>) {
        self.sum.iter_mut().zip(found).for_each(|(sum, x)| *sum += x);
        self.rounds += 1;
    }

    /// `None` before the last rounds.
    pub(super) fn mean(&self) -> Option<Vec<f64>> {
        (self.rounds > 0).then(|| self.sum.iter().map(|sum| sum / f64::from(self.rounds)).collect())
    }
}
