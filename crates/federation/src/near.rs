//! Whether what another party says is what a copy of the run came to, but for the last digits of its numbers; and how numbers are read that
//! are written as `null`, because they are none.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use veilsum_cluster::{Domain, Scaling};

/// Two copies of a run on two machines may differ where a mathematical library rounds otherwise: by this part of a number, and of what its
/// column reaches from end to end. Within it a coordinator may choose: by choosing, it makes the same question another one. That hides nothing
/// and gains nothing: every answer is counted, and noise is of the session's own ([NOI-2]).
const NEAR: f64 = 1e-9;

/// What counts as one of a number: 1, or what its column reaches where that is less.
pub struct Units {
    columns: Vec<f64>,
    /// Of numbers in working units that belong to no column.
    working: f64,
    /// Whether a number may stand for what noise drowned in the other party's copy.
    noisy: bool,
}

impl Units {
    /// Those of results and models: of the columns as they are.
    pub fn own(domain: &Domain) -> Units {
        let reach = domain.lower().iter().zip(domain.upper()).map(|(lower, upper)| (upper - lower).min(1.0));
        let own = Units { columns: reach.collect(), ..Units::one() };
        if domain.scaling() == Scaling::None { Units { working: own.least(), ..own } } else { own }
    }

    /// Those of questions: of working units.
    pub fn working(domain: &Domain) -> Units {
        if domain.scaling() == Scaling::None { Units::own(domain) } else { Units::one() }
    }

    fn one() -> Units {
        Units { columns: vec![1.0], working: 1.0, noisy: false }
    }

    /// The same for results under noise: what noise drowned is `null` for one party and may be a number for another.
    pub fn under_noise(self) -> Units {
        Units { noisy: true, ..self }
    }

    /// Whether two values are the same but for the last digits of their numbers.
    pub fn same<T: serde::Serialize>(&self, a: &T, b: &T) -> bool {
        match (serde_json::to_value(a), serde_json::to_value(b)) {
            (Ok(a), Ok(b)) => self.near(&a, &b),
            _ => false,
        }
    }

    /// [`Units::same`] of JSON.
    pub fn near(&self, a: &Value, b: &Value) -> bool {
        self.values(a, b, self.least())
    }

    fn least(&self) -> f64 {
        self.columns.iter().copied().fold(1.0, f64::min)
    }

    /// `unit` is that of a number that no place gives another one.
    fn values(&self, a: &Value, b: &Value, unit: f64) -> bool {
        match (a, b) {
            (Value::Null, Value::Number(_)) => self.noisy,
            (Value::Number(a), Value::Number(b)) if a.is_f64() || b.is_f64() => match (a.as_f64(), b.as_f64()) {
                (Some(a), Some(b)) => (a - b).abs() <= NEAR * (unit + a.abs().max(b.abs())),
                _ => false,
            },
            (Value::Array(a), Value::Array(b)) => {
                let same = |(at, (one, other)): (usize, (&Value, &Value))| {
                    let placed = if one.is_array() { None } else { self.placed(a.len(), at) };
                    self.values(one, other, placed.unwrap_or(unit))
                };
                a.len() == b.len() && a.iter().zip(b).enumerate().all(same)
            }
            (Value::Object(a), Value::Object(b)) => {
                let same = |(key, one): (&String, &Value)| match (key.as_str(), b.get(key)) {
                    (_, None) => false,
                    ("centres_working" | "centres_box", Some(other)) => {
                        Units { noisy: self.noisy, ..Units::one() }.values(one, other, 1.0)
                    }
                    ("history", Some(other)) => self.in_working(self.working, one, other),
                    ("objective" | "objective_per_row", Some(other)) => {
                        self.in_working(self.working.powi(2), one, other)
                    }
                    (_, Some(other)) => self.values(one, other, unit),
                };
                a.len() == b.len() && a.iter().all(same)
            }
            (a, b) => a == b,
        }
    }

    /// Numbers in working units, of which `unit` counts as one.
    fn in_working(&self, unit: f64, a: &Value, b: &Value) -> bool {
        Units { columns: vec![unit], ..*self }.values(a, b, unit)
    }

    /// The unit of a place in a list with an entry for every column, once or several times.
    fn placed(&self, len: usize, at: usize) -> Option<f64> {
        let d = self.columns.len();
        len.is_multiple_of(d).then(|| self.columns[at % d])
    }
}

/// A number; NaN where there is none.
pub(crate) fn number<'de, D: Deserializer<'de>>(of: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(of)?.unwrap_or(f64::NAN))
}

/// Rows of numbers, likewise.
pub(crate) fn rows<'de, D: Deserializer<'de>>(of: D) -> Result<Vec<Vec<f64>>, D::Error> {
    let rows: Vec<Vec<Option<f64>>> = Vec::deserialize(of)?;
    Ok(rows.into_iter().map(|row| row.into_iter().map(|x| x.unwrap_or(f64::NAN)).collect()).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn units(scaling: Scaling) -> Units {
        let domain = Domain::new(vec![0.0, -5.0], vec![1e-13, 5.0], scaling).unwrap();
        if scaling == Scaling::None { Units::working(&domain) } else { Units::own(&domain) }
    }

    /// [OPN-9], [RES-3]: what is small beside 1 is not small in a column that is.
    #[test]
    fn a_number_counts_in_units_of_its_column() {
        let units = units(Scaling::Box);
        for (text, changed) in [
            (json!({ "centres": [[4e-14, 0.5]] }), json!({ "centres": [[5e-14, 0.5]] })),
            (json!({ "deviations": [1e-14, 0.5] }), json!({ "deviations": [1.1e-14, 0.5] })),
            (
                json!({ "description": [{ "mean": 1e-14 }, { "mean": 2.0 }] }),
                json!({ "description": [{ "mean": 2e-14 }, { "mean": 2.0 }] }),
            ),
            (json!({ "indices": { "a": 0.5 } }), json!({ "indices": { "a": 0.500_000_01 } })),
        ] {
            assert!(units.near(&text, &text));
            assert!(!units.near(&text, &changed) && !units.near(&changed, &text), "{changed}");
        }
        // The last digits are forgiven, of a number near zero in a wide column too, and in working units.
        for (one, other) in [
            (json!({ "centres": [[4e-14, 1e-17]] }), json!({ "centres": [[4.000_000_000_01e-14, 3e-16]] })),
            (json!({ "centres_working": [[1e-17, 0.5]] }), json!({ "centres_working": [[3e-16, 0.5]] })),
            (json!({ "history": [{ "shift": 1e-6 }] }), json!({ "history": [{ "shift": 1.000_001e-6 }] })),
            (json!({ "objective": 1e-8 }), json!({ "objective": 1.000_001e-8 })),
            (json!([1e-27, 1e-14, 1.0]), json!([1e-27, 1e-14, 1.000_000_000_1])),
        ] {
            assert!(units.near(&one, &other), "{one}");
        }
        assert!(!units.near(&json!([1.0]), &json!([1.0, 1.0])) && !units.near(&json!({ "a": 1 }), &json!({})));
    }

    /// [OPN-9]: where working units are the columns' own, a question counts in them; else in what every column is scaled to.
    #[test]
    fn questions_count_in_working_units() {
        let (asked, moved) =
            (json!({ "points": [4e-14, 0.5, 4e-14, 0.5] }), json!({ "points": [4e-14, 0.5, 6e-14, 0.5] }));
        assert!(!units(Scaling::None).near(&asked, &moved));
        // Of a result, the same holds for what is told in working units.
        let (shift, other) = (json!({ "history": [4e-14, 4e-14] }), json!({ "history": [5e-14, 4e-14] }));
        let own = Units::own(&Domain::new(vec![0.0, -5.0], vec![1e-13, 5.0], Scaling::None).unwrap());
        assert!(!own.near(&shift, &other) && units(Scaling::Box).near(&shift, &other));
        let (objective, other) = (json!({ "objective": 4e-27 }), json!({ "objective": 5e-27 }));
        assert!(!own.near(&objective, &other) && units(Scaling::Box).near(&objective, &other));
        let scaled = Units::working(&Domain::new(vec![0.0, -5.0], vec![1e-13, 5.0], Scaling::Box).unwrap());
        assert!(scaled.near(&asked, &moved) && !scaled.near(&json!([0.5]), &json!([0.500_001])));
    }

    /// What noise drowned is nothing for one party and a number for another, and only under noise.
    #[test]
    fn nothing_is_a_number_under_noise_alone() {
        let plain = units(Scaling::Box);
        assert!(!plain.near(&json!([null]), &json!([1.0])));
        let noisy = units(Scaling::Box).under_noise();
        assert!(noisy.near(&json!([null]), &json!([1.0])) && !noisy.near(&json!([1.0]), &json!([null])));
        // Wherever the number stands.
        for place in ["centres", "centres_box", "centres_working", "history", "objective"] {
            let (null, number) = (json!({ place: [[null]] }), json!({ place: [[0.25]] }));
            assert!(
                noisy.near(&null, &number) && !noisy.near(&number, &null) && !plain.near(&null, &number),
                "{place}"
            );
        }
    }
}
