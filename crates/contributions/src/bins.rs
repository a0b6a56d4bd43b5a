//! In which bins a row lies.

/// An interval of one column.
#[derive(Debug, Clone, Copy)]
pub struct Bracket {
    /// Column index.
    pub column: usize,
    /// Lower end.
    pub lower: f64,
    /// Upper end, above the lower one.
    pub upper: f64,
}

impl Bracket {
    /// Lower edge of bin `bin` of `bins`, and for `bin = bins` the upper end. Sites and coordinator compute every edge by
    /// this expression, so that both mean the same bins to the last bit.
    pub fn edge(&self, bin: u32, bins: u32) -> f64 {
        let along = (self.upper - self.lower) * (f64::from(bin) / f64::from(bins));
        if bin >= bins { self.upper } else { (self.lower + along).min(self.upper) }
    }
}

/// A bin holds its lower edge and not its upper one; the last one holds both.
pub(crate) fn add(brackets: &[Bracket], bins: u32, row: &[f64], out: &mut [f64]) {
    for (bracket, out) in brackets.iter().zip(out.chunks_exact_mut(bins as usize + 1)) {
        let x = row[bracket.column];
        let guess = (x - bracket.lower) / (bracket.upper - bracket.lower) * f64::from(bins);
        let guess = (guess as u32).min(bins - 1);
        // Division and multiplication round differently: the edges decide.
        let down = u32::from(x < bracket.edge(guess, bins)).min(guess);
        let up = u32::from(x >= bracket.edge(guess + 1, bins)).min(bins - 1 - guess);
        let below = x < bracket.lower;
        let bin = guess - down + up + 1;
        let at = if below { 0 } else { bin };
        out[at as usize] += f64::from(u8::from(x <= bracket.upper));
    }
}
