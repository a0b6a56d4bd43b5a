//! What the coordinator computes off-line from totals: weighted k-means and weighted fuzzy c-means on few points; and what
//! a site computes of its own, the feature vectors of FFCF.

pub mod features;
pub mod kmeans;
pub mod wfcm;
