//! Validity indices from totals (Stallmann & Wilbik 2022, Eqs. 7-9 and 15-17; the others by their own papers).
//!
//! Every index here is a function of sums over rows, hence the same however rows are spread over sites. Dunn's index and
//! the silhouette with plain Euclidean distances are not: they need single rows or pairs of them.

mod formulas;
mod judge;

use serde::{Deserialize, Serialize};

use crate::{Centres, Error, refuse};

pub use formulas::fuzzy_davies_bouldin;
pub(crate) use judge::{basic, full};

/// Validity indices of a result; `None` where the totals that an index needs were not asked or it is not defined.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Indices {
    /// Fuzzy Davies-Bouldin index (Stallmann & Wilbik 2022), by default with p = 2 and q = 1, smaller is better; not defined if two
    /// centres coincide and for K = 1. It alone is written where it is `None`, as `null`.
    pub fuzzy_davies_bouldin: Option<f64>,
    /// Davies-Bouldin index of the hard partition (1979), smaller is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub davies_bouldin: Option<f64>,
    /// Xie-Beni index (1991), smaller is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xie_beni: Option<f64>,
    /// Partition coefficient (Bezdek 1981), larger is better, 1/K to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_coefficient: Option<f64>,
    /// Partition entropy (Bezdek 1981), smaller is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_entropy: Option<f64>,
    /// Dave's modified partition coefficient (1996), larger is better, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified_partition_coefficient: Option<f64>,
    /// Fukuyama-Sugeno index (1989), smaller is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fukuyama_sugeno: Option<f64>,
    /// Calinski-Harabasz index (1974), larger is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calinski_harabasz: Option<f64>,
    /// `sum ||x - own centre|| / (N d)`: the number that FFCM and FFCF print as WSSE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wsse: Option<f64>,
    /// `sum over other centres ||x - c|| / (N d)`: the number that they print as OSSE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub osse: Option<f64>,
    /// WSSE with squared distances, as the papers define it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wsse_squared: Option<f64>,
    /// OSSE with squared distances, as the papers define it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub osse_squared: Option<f64>,
    /// Sum of squared distances to the nearest centre.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inertia: Option<f64>,
    /// Gap statistic (Tibshirani, Walther & Hastie 2001) against rows uniform in the box, where the plan chooses K by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<f64>,
    /// Its `s`: the standard deviation over the references of the logarithm of their inertia, times `sqrt(1 + 1/B)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_error: Option<f64>,
}

/// The exponents of both Davies-Bouldin indices, as the papers print them: `M_ij` is the p-norm of the difference of two centres, and
/// the scatter of a cluster is `(mean of ||x - c||^q)^(1/q)`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DaviesBouldin {
    /// The norm between centres, finite, >= 1.
    pub p: f64,
    /// 1 or 2: sums of other powers of distances are not asked of any site. 2 needs sums of coordinates.
    pub q: f64,
}

impl Default for DaviesBouldin {
    fn default() -> Self {
        Self { p: 2.0, q: 1.0 }
    }
}

impl DaviesBouldin {
    /// Whether the totals that sites are asked for give the indices.
    ///
    /// # Errors
    /// [`Error::Parameter`] that says why not.
    pub fn check(self) -> Result<(), Error> {
        let Self { p, q } = self;
        let norm = || format!("p of Davies-Bouldin is {p}; a norm has a finite p of 1 or above");
        refuse(!(p.is_finite() && p >= 1.0), || Error::parameter(norm()))?;
        let power = "no site is asked for sums of such powers of distances: q is 1 or 2";
        refuse(q != 1.0 && q != 2.0, || Error::parameter(format!("q of Davies-Bouldin is {q}; {power}")))
    }
}

/// What the totals of one validation question say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The indices.
    pub indices: Indices,
    /// `J_m`, squared units of the question.
    pub objective: f64,
    /// Number of rows.
    pub rows: u64,
    /// Two centres lie closer together than a hundredth of the mean distance between rows and centres: the run collapsed
    /// and its indices mean nothing.
    pub collapsed: bool,
    /// Rows and means of the hard clusters and their scatter around them.
    pub clusters: Option<HardClusters>,
    /// What each cluster holds; not sent by an intermediary, which judges alone.
    #[serde(skip)]
    pub held: Held,
}

/// What each cluster around the judged centres holds, as totals say it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Held {
    /// Rows that are nearest to each centre, K; `None` where it was not asked.
    pub rows: Option<Vec<f64>>,
    /// `sum u`, K; empty where somebody else judged.
    pub mass: Vec<f64>,
    /// `sum u^m`, K; `None` where it was not asked.
    pub weight: Option<Vec<f64>>,
    /// `sqrt(sum (x - c)^2 / n)` in every column over the n rows nearest to each centre, K x d; `None` where it was not asked.
    pub deviations: Option<Vec<Vec<f64>>>,
}

/// The hard clusters around some centres.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HardClusters {
    /// Rows, K.
    pub rows: Vec<f64>,
    /// Means, K x d; the centre where a cluster is empty.
    pub means: Centres,
    /// `W_k`, sum of squared distances to the mean, K.
    pub scatter: Vec<f64>,
}

/// What is known of the centres: their coordinates, or only the distances between them.
#[derive(Debug, Clone, Copy)]
pub enum Geometry<'a> {
    /// The centres, K x d, and the exponents of Davies-Bouldin.
    Centres(&'a Centres, DaviesBouldin),
    /// Euclidean distances between them, K x K row-major, and the number of columns. Davies-Bouldin has its usual exponents.
    Apart(&'a [f64], usize),
}

impl<'a> Geometry<'a> {
    /// These centres, with the usual exponents of Davies-Bouldin.
    pub fn of(centres: &'a Centres) -> Self {
        Self::Centres(centres, DaviesBouldin::default())
    }
}
