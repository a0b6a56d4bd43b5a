//! The application's part of a plan: columns with their public box, scaling, and the method with its parameters.
//!
//! The protocol core binds these bytes and never reads them; the clustering crate never sees a plan. This is the text
//! that every site reads before it says yes.

use serde::{Deserialize, Serialize};
use veilsum_cluster::{Centres, Domain, Fcm, FcmParams, Method, OutOfBox, Query, Scaling, Start, Step};
use veilsum_proto::{
    codec,
    limits::{MAX_APPLICATION, MAX_WORDS},
    roster::check_name,
};

/// What is computed, on which columns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Work {
    /// The columns in the order of every vector, each with its public range.
    pub columns: Vec<Column>,
    /// How rows become working units.
    pub scaling: Scaling,
    /// What a site does with a row outside the box.
    pub out_of_box: OutOfBox,
    /// The method and its parameters.
    pub method: MethodSpec,
}

/// A column and its range, known to everybody before any row is read.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Its name in every site's header.
    pub name: String,
    /// Smallest possible value, original units.
    pub lower: f64,
    /// Largest possible value, original units.
    pub upper: f64,
}

/// A method that a plan can name.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum MethodSpec {
    /// Exact federated fuzzy c-means (Bárcena et al. 2021).
    Fcm {
        /// Number of clusters.
        k: u32,
        /// Fuzzifier, > 1.
        m: f64,
        /// Stop when the centres move less (Frobenius norm, working units); 0 runs all rounds.
        epsilon: f64,
        /// Rounds at most.
        max_rounds: u32,
        /// The first centres.
        start: StartSpec,
    },
}

/// First centres; nobody's rows go into them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum StartSpec {
    /// Uniform in the box, from a seed that everybody knows.
    Uniform {
        /// The seed.
        seed: u64,
    },
    /// Given, K x d in box units: 0 is a column's lower end, 1 its upper end.
    Given {
        /// The centres.
        centres: Vec<Vec<f64>>,
    },
}

/// K rows of d numbers.
pub type Matrix = Vec<Vec<f64>>;

/// A plan's method part that cannot be used; the text says what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the plan's method part is not valid: {0}")]
pub struct WorkError(pub String);

impl WorkError {
    fn new(why: impl std::fmt::Display) -> Self {
        WorkError(why.to_string())
    }
}

/// Columns a plan may name.
const MAX_COLUMNS: usize = 4_096;

impl Work {
    /// Checks every parameter, and that a first question can be asked and laid out.
    ///
    /// # Errors
    /// [`WorkError`] naming the parameter.
    pub fn check(&self) -> Result<(), WorkError> {
        if self.columns.is_empty() || self.columns.len() > MAX_COLUMNS {
            return Err(WorkError(format!("it has {} columns; 1 to {MAX_COLUMNS} are possible", self.columns.len())));
        }
        for (i, c) in self.columns.iter().enumerate() {
            // A column may have any name that a CSV header can hold; only its length matters here.
            if c.name.is_empty() || c.name.len() > 256 {
                return Err(WorkError(format!(
                    "the name of column {} has {} bytes; 1 to 256 are possible",
                    i + 1,
                    c.name.len()
                )));
            }
            if self.columns[..i].iter().any(|o| o.name == c.name) {
                return Err(WorkError(format!("the column {:?} stands twice", c.name)));
            }
        }
        let domain = self.domain()?;
        let query = match self.method()?.next(None).map_err(WorkError::new)? {
            Step::Ask(query) => query,
            Step::Done(_) => return Err(WorkError("the method asks nothing".into())),
        };
        query.check(&domain).map_err(WorkError::new)
    }

    /// The public box.
    ///
    /// # Errors
    /// [`WorkError`] naming the column whose range is unusable.
    pub fn domain(&self) -> Result<Domain, WorkError> {
        let (lower, upper) = self.columns.iter().map(|c| (c.lower, c.upper)).unzip();
        Domain::new(lower, upper, self.scaling).map_err(WorkError::new)
    }

    /// The method at its beginning.
    ///
    /// # Errors
    /// [`WorkError`] naming the parameter that is outside its domain.
    pub fn method(&self) -> Result<Box<dyn Method>, WorkError> {
        match &self.method {
            MethodSpec::Fcm { k, m, epsilon, max_rounds, start } => {
                let start = self.start(start, *k as usize)?;
                let params = FcmParams { k: *k as usize, m: *m, epsilon: *epsilon, max_rounds: *max_rounds, start };
                Ok(Box::new(Fcm::new(params).map_err(WorkError::new)?))
            }
        }
    }

    /// The first question of the method: a site answers no other one first.
    ///
    /// # Errors
    /// As [`Work::method`].
    pub fn first_query(&self) -> Result<Query, WorkError> {
        match self.method()?.next(None).map_err(WorkError::new)? {
            Step::Ask(query) => Ok(query),
            Step::Done(_) => Err(WorkError("the method asks nothing".into())),
        }
    }

    fn start(&self, start: &StartSpec, k: usize) -> Result<Centres, WorkError> {
        let domain = self.domain()?;
        if k == 0 {
            return Err(WorkError("the number of clusters K must be at least 1".into()));
        }
        // Before anything of size K x d is made: the sums of one round must fit into one vector.
        if k.saturating_mul(domain.columns() + 1) > MAX_WORDS {
            return Err(WorkError(format!("K = {k} clusters in {} columns: over {MAX_WORDS} sums", domain.columns())));
        }
        match start {
            StartSpec::Uniform { seed } => Start::Uniform { seed: *seed }.centres(&domain, k).map_err(WorkError::new),
            StartSpec::Given { centres } => {
                let mut rows = centres.clone();
                if let Some(row) = rows.iter().find(|r| r.len() != domain.columns()) {
                    let (got, want) = (row.len(), domain.columns());
                    return Err(WorkError(format!("a starting centre has {got} coordinates, the plan {want} columns")));
                }
                if self.scaling == Scaling::None {
                    rows.iter_mut().for_each(|r| {
                        r.iter_mut().zip(&self.columns).for_each(|(v, c)| *v = c.lower + *v * (c.upper - c.lower));
                    });
                }
                Centres::from_rows(&rows).map_err(WorkError::new)
            }
        }
    }

    /// Centres in original units and in box units, from working units.
    ///
    /// # Errors
    /// [`WorkError`] where they do not fit the columns.
    pub fn units(&self, working: &Centres) -> Result<(Matrix, Matrix), WorkError> {
        let domain = self.domain()?;
        let original = domain.centres_to_original(working).map_err(WorkError::new)?;
        let original: Vec<Vec<f64>> = original.rows().map(<[f64]>::to_vec).collect();
        let boxed = match self.scaling {
            Scaling::Box => working.rows().map(<[f64]>::to_vec).collect(),
            Scaling::None => original
                .iter()
                .map(|r| r.iter().zip(&self.columns).map(|(v, c)| (v - c.lower) / (c.upper - c.lower)).collect())
                .collect(),
        };
        Ok((original, boxed))
    }

    /// The name by which plans and results call the method.
    pub fn method_name(&self) -> &'static str {
        match self.method {
            MethodSpec::Fcm { .. } => "fcm",
        }
    }

    /// K and m.
    pub fn k_and_m(&self) -> (u32, f64) {
        match self.method {
            MethodSpec::Fcm { k, m, .. } => (k, m),
        }
    }

    /// Questions that a whole run asks at most.
    pub fn max_questions(&self) -> u32 {
        match self.method {
            MethodSpec::Fcm { max_rounds, .. } => max_rounds.saturating_add(1),
        }
    }

    /// Whether `query` is one that this method asks at all: its kind, K, m and columns, and centres that lie in the
    /// public box, where every weighted mean of rows lies.
    ///
    /// # Errors
    /// A sentence for the site's operator.
    pub fn admits(&self, query: &Query) -> Result<(), String> {
        let (centres, m) = match query {
            Query::FuzzySums { centres, m } | Query::FuzzyValidation { centres, m } => (centres, *m),
            _ => return Err("the plan's method never asks this".into()),
        };
        let (k, fuzzifier) = self.k_and_m();
        if centres.k() != k as usize || m.to_bits() != fuzzifier.to_bits() {
            return Err("the question has another K or m than the plan".into());
        }
        let domain = self.domain().map_err(|e| e.to_string())?;
        query.check(&domain).map_err(|e| e.to_string())?;
        for row in centres.rows() {
            for (c, v) in row.iter().enumerate() {
                let (low, high) = domain.working_interval(c);
                // Fixed-point rounding may put a centre a hair outside.
                let hair = 1e-6 * (high - low);
                if *v < low - hair || *v > high + hair {
                    return Err(format!("a centre lies outside the public box in column {:?}", self.columns[c].name));
                }
            }
        }
        Ok(())
    }

    /// The bytes that go into the plan's terms.
    pub fn to_bytes(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Reads and checks them.
    ///
    /// # Errors
    /// [`WorkError`] where they are damaged or hold parameters outside their domain.
    pub fn from_bytes(bytes: &[u8]) -> Result<Work, WorkError> {
        let work: Work = codec::decode("plan", bytes, MAX_APPLICATION).map_err(WorkError::new)?;
        work.check()?;
        Ok(work)
    }
}

/// Whether `name` may be a party's or federation's name, as an error of this module.
///
/// # Errors
/// [`WorkError`] with the reason.
pub fn usable_name(name: &str) -> Result<(), WorkError> {
    check_name(name).map_err(WorkError)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn sample() -> Work {
        Work {
            columns: vec![
                Column { name: "x".into(), lower: -1.0, upper: 2.0 },
                Column { name: "y".into(), lower: 0.0, upper: 10.0 },
            ],
            scaling: Scaling::Box,
            out_of_box: OutOfBox::Refuse,
            method: MethodSpec::Fcm {
                k: 3,
                m: 2.0,
                epsilon: 0.005,
                max_rounds: 30,
                start: StartSpec::Uniform { seed: 1 },
            },
        }
    }

    #[test]
    fn bytes_there_and_back() {
        let w = sample();
        assert_eq!(Work::from_bytes(&w.to_bytes()).unwrap(), w);
        let bytes = w.to_bytes();
        assert!(Work::from_bytes(&bytes[..bytes.len() - 1]).is_err());
    }

    #[test]
    fn parameters_outside_their_domain_are_named() {
        let change = |f: &dyn Fn(&mut Work)| {
            let mut w = sample();
            f(&mut w);
            w.check().unwrap_err().0
        };
        let fcm = |k, m, epsilon, max_rounds| MethodSpec::Fcm {
            k,
            m,
            epsilon,
            max_rounds,
            start: StartSpec::Uniform { seed: 0 },
        };
        assert!(change(&|w| w.method = fcm(3, 1.0, 0.0, 1)).contains("fuzzifier"));
        assert!(change(&|w| w.method = fcm(3, f64::NAN, 0.0, 1)).contains("fuzzifier"));
        assert!(change(&|w| w.method = fcm(3, 2.0, -1.0, 1)).contains("epsilon"));
        assert!(change(&|w| w.method = fcm(3, 2.0, 0.0, 0)).contains("max_rounds"));
        assert!(!change(&|w| w.method = fcm(0, 2.0, 0.0, 1)).is_empty());
        assert!(change(&|w| w.columns[1].name = "x".into()).contains("twice"));
        assert!(change(&|w| w.columns[1].upper = 0.0).contains("constant"));
        assert!(change(&|w| w.columns.clear()).contains("0 columns"));
        let given = |centres| MethodSpec::Fcm {
            k: 1,
            m: 2.0,
            epsilon: 0.0,
            max_rounds: 1,
            start: StartSpec::Given { centres },
        };
        assert!(change(&|w| w.method = given(vec![vec![0.5]])).contains("coordinates"));
        assert!(change(&|w| w.method = given(vec![vec![0.5, 0.5], vec![0.1, 0.1]])).contains('2'));
    }

    #[test]
    fn questions_outside_the_plan_are_not_admitted() {
        let w = sample();
        let first = w.first_query().unwrap();
        assert_eq!(w.admits(&first), Ok(()));
        let with = |rows: &[Vec<f64>], m| Query::FuzzySums { centres: Centres::from_rows(rows).unwrap(), m };
        let inside = vec![vec![0.1, 0.2]; 3];
        assert!(w.admits(&with(&inside, 2.0)).is_ok());
        assert!(w.admits(&with(&inside, 2.5)).is_err());
        assert!(w.admits(&with(&inside[..2], 2.0)).is_err());
        let far = vec![vec![0.1, 0.2], vec![0.1, 0.2], vec![5.0, 0.2]];
        assert!(w.admits(&with(&far, 2.0)).unwrap_err().contains("\"x\""));
    }

    #[test]
    fn units() {
        let w = sample();
        let (original, boxed) = w.units(&Centres::from_rows(&[vec![0.5, 0.1]]).unwrap()).unwrap();
        assert_eq!((original, boxed), (vec![vec![0.5, 1.0]], vec![vec![0.5, 0.1]]));
        let raw = Work { scaling: Scaling::None, ..sample() };
        let (original, boxed) = raw.units(&Centres::from_rows(&[vec![0.5, 1.0]]).unwrap()).unwrap();
        assert_eq!((original, boxed), (vec![vec![0.5, 1.0]], vec![vec![0.5, 0.1]]));
    }
}
