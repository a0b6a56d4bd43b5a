//! From numbers to places on a line, straight or by powers of ten.

use crate::text::number;

/// Numbers beyond this are not drawn: their differences are no numbers.
const MOST: f64 = 1e150;

/// A line from one place to another, with the numbers at its ends.
#[derive(Debug, Clone)]
pub(crate) struct Scale {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
    log: bool,
    /// Only whole numbers stand on it.
    whole: bool,
}

/// Whether a number has a place.
pub(crate) fn drawn(value: f64, log: bool) -> bool {
    value.abs() <= MOST && (!log || value >= 1.0 / MOST)
}

impl Scale {
    /// Around all numbers that can be drawn, a little wider, between these places.
    pub(crate) fn around(values: impl Iterator<Item = f64>, (start, end): (f64, f64), log: bool) -> Scale {
        let (mut from, mut to, mut whole) = (f64::INFINITY, f64::NEG_INFINITY, true);
        for value in values.filter(|value| drawn(*value, log)) {
            whole &= value.fract() == 0.0;
            let value = if log { value.log10() } else { value };
            (from, to) = (from.min(value), to.max(value));
        }
        if from > to {
            (from, to) = (0.0, 1.0);
        }
        let wide = to - from;
        let margin = if wide > 1e-9 * from.abs().max(to.abs()) { wide * 0.05 } else { from.abs().max(1.0) * 0.5 };
        Scale { from: from - margin, to: to + margin, start, end, log, whole: whole && !log }
    }

    /// From nothing to the largest.
    pub(crate) fn from_zero(values: impl Iterator<Item = f64>, places: (f64, f64)) -> Scale {
        let (mut least, mut most) = (0.0f64, 0.0f64);
        for value in values.filter(|value| drawn(*value, false)) {
            (least, most) = (least.min(value), most.max(value));
        }
        let margin = (most - least) * 0.03;
        let (from, to) = match (least < 0.0, most > 0.0) {
            (false, false) => (0.0, 1.0),
            (below, _) => (if below { least - margin } else { 0.0 }, most + margin),
        };
        Scale { from, to, start: places.0, end: places.1, log: false, whole: false }
    }

    /// Exactly between these numbers.
    pub(crate) fn between((from, to): (f64, f64), places: (f64, f64)) -> Scale {
        let whole = Scale::around([from, to].into_iter(), places, false);
        if from < to && drawn(from, false) && drawn(to, false) {
            Scale { from, to, whole: false, ..whole }
        } else {
            whole
        }
    }

    /// Where a number is, if it can be drawn; what lies outside is at the end.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        if !drawn(value, self.log) {
            return None;
        }
        let value = if self.log { value.log10() } else { value };
        let part = ((value - self.from) / (self.to - self.from)).clamp(0.0, 1.0);
        Some(self.start + part * (self.end - self.start))
    }

    /// How long a difference is.
    pub(crate) fn length(&self, difference: f64) -> f64 {
        let length = (difference / (self.to - self.from) * (self.end - self.start)).abs();
        if length.is_finite() { length } else { 0.0 }
    }

    /// Round numbers along it with their places and words, about `wanted`.
    pub(crate) fn ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        let rough = (self.to - self.from) / wanted.max(1) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|s| s * power).into_iter().find(|step| *step >= rough).unwrap_or(rough);
        let step = if self.whole || self.log { step.max(1.0).round() } else { step };
        let first = (self.from / step).ceil();
        let ticks = (0..2 * wanted + 4).map(|i| (first + i as f64) * step).take_while(|tick| *tick <= self.to);
        let mut ticks: Vec<f64> = ticks.collect();
        if self.log && self.to - self.from < 2.0 {
            // Between two powers of ten there is more to say.
            let powers = self.from.floor() as i32..=self.to.ceil() as i32;
            let each = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|of: f64| of.log10() + f64::from(power)));
            ticks = each.filter(|tick| (self.from..=self.to).contains(tick)).collect();
        }
        let digits = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
        let words = |tick: f64| match self.log {
            true => number(10f64.powf(tick)),
            false if self.from.abs().max(self.to.abs()) >= 1e6 || step < 1e-4 => number(tick),
            false => format!("{:.digits$}", if tick == 0.0 { 0.0 } else { tick }),
        };
        let place = |tick: f64| self.start + (tick - self.from) / (self.to - self.from) * (self.end - self.start);
        ticks.into_iter().map(|tick| (place(tick), words(tick))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(scale: &Scale) -> Vec<String> {
        scale.ticks(5).into_iter().map(|(_, words)| words).collect()
    }

    #[test]
    fn ticks_are_round() {
        let scale = |values: &[f64], log| Scale::around(values.iter().copied(), (0.0, 1.0), log);
        assert_eq!(words(&scale(&[0.33, 0.77], false)), ["0.4", "0.5", "0.6", "0.7"]);
        assert_eq!(words(&scale(&[2.0, 4.0], false)), ["2", "3", "4"], "no half of a cluster");
        assert_eq!(words(&scale(&[1e-3, 1.0], true)), ["0.001", "0.01", "0.1", "1"]);
        assert_eq!(words(&scale(&[0.015, 0.15], true)), ["0.02", "0.05", "0.1"]);
        let bars = |values: &[f64]| Scale::from_zero(values.iter().copied(), (10.0, 20.0));
        assert_eq!(bars(&[0.0, 0.0]).place(0.0), Some(10.0));
        assert!(bars(&[-1.0, 1.0]).place(0.0).is_some_and(|zero| (14.9..15.1).contains(&zero)));
        assert_eq!(words(&scale(&[], false)), ["0", "1"]);
    }

    #[test]
    fn what_cannot_be_drawn_has_no_place() {
        let scale = Scale::around([1.0, 2.0, f64::NAN, f64::INFINITY, 1e300].into_iter(), (0.0, 1.0), false);
        assert!(scale.place(f64::NAN).is_none() && scale.place(1e300).is_none() && scale.place(1.5).is_some());
        let log = Scale::around([0.0, 1.0, 10.0].into_iter(), (0.0, 1.0), true);
        assert!(log.place(0.0).is_none() && log.place(3.0).is_some());
        for (from, to) in [(1.0, 1.0), (1e9, 1e9 + 1e-7), (-1e150, 1e150), (0.0, 1e-300)] {
            let scale = Scale::between((from, to), (0.0, 1.0));
            assert!(scale.place(from).is_some_and(f64::is_finite), "{from} {to}");
            assert!(scale.ticks(5).len() < 20);
        }
    }
}
