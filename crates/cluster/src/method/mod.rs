//! A method is a conversation in totals: a small state machine on the coordinator's side that asks a query, takes the
//! totals, and asks again until it is done.

pub mod fcm;

use serde::{Deserialize, Serialize};

use crate::{Centres, MethodError, Query, Totals};

/// What the coordinator wants to know next, or that it is done.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Ask every site this and come back with the totals.
    Ask(Query),
    /// The result.
    Done(Outcome),
}

/// A clustering method that sees totals and nothing else.
pub trait Method: Send {
    /// One step of the conversation.
    ///
    /// `None` asks for the open question: the first one at the start, and the same one again as long as its totals have
    /// not come (a round that failed may be repeated). `Some` answers the open question.
    ///
    /// # Errors
    /// [`MethodError`]; after [`MethodError::Implausible`] the state is as before, so that the round may be repeated.
    fn next(&mut self, totals: Option<&Totals>) -> Result<Step, MethodError>;
}

/// One round of an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Counted from 1.
    pub round: u32,
    /// Frobenius norm of the change of the centres, working units.
    pub shift: f64,
}

/// Validity indices of a result. A value of `+inf` (undefined or degenerate) is written as `null`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Indices {
    /// Fuzzy Davies-Bouldin index with q = 1 (Stallmann & Wilbik 2022), smaller is better; `+inf` if two centres
    /// coincide and for K = 1.
    #[serde(with = "infinite_as_none")]
    pub fuzzy_davies_bouldin: f64,
}

/// The result of a method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Final centres, K x d, working units.
    pub centres: Centres,
    /// Fuzzifier that the centres were found with.
    pub m: f64,
    /// `U_k = sum_j u_jk^m` of the last round (K), i.e. with respect to the centres BEFORE the last update.
    pub weights: Vec<f64>,
    /// Number of rows N that the objective and the indices were divided by: the given one, or the sum of all
    /// memberships, rounded.
    pub n_total: Option<u64>,
    /// Rounds that updated the centres.
    pub rounds: u32,
    /// Whether the centres moved less than epsilon in the last round (never with epsilon = 0).
    pub converged: bool,
    /// The shift of every round, in order.
    pub history: Vec<Round>,
    /// Validity indices at the final centres.
    pub indices: Indices,
    /// Objective `J_m` at the final centres, squared working units.
    pub objective: f64,
    /// `J_m / N`, squared working units.
    pub objective_per_row: f64,
}

/// JSON has no infinity: `+inf` travels as `None`.
mod infinite_as_none {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        Some(*value).filter(|value| value.is_finite()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_infinite_index_survives_json() {
        for index in [0.5, f64::INFINITY] {
            let indices = Indices { fuzzy_davies_bouldin: index };
            let text = serde_json::to_string(&indices).unwrap();
            assert_eq!(serde_json::from_str::<Indices>(&text).unwrap(), indices);
        }
    }
}
