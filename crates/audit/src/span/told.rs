//! What the adversary was told: totals, or that there were some.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use veilsum_cluster::Domain;
use veilsum_node::question::{Question, SumBounds};

use super::reading;

/// One exact total, or one that is known to have been released.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Told {
    /// What was asked.
    pub question: Question,
    /// The public box of its plan.
    pub domain: Domain,
    /// The sites whose rows are in it; a site that was not drawn is not.
    pub cohort: BTreeSet<String>,
    /// Standard deviation of every entry: rounding, and noise where there is any.
    pub deviations: Vec<f64>,
    /// The entries, working units; nothing where only the question is known.
    pub values: Option<Vec<f64>>,
}

impl Told {
    /// A total under a plan's form.
    ///
    /// # Errors
    /// Where the question has no layout under it.
    pub fn new(
        question: Question,
        domain: Domain,
        form: &SumBounds,
        cohort: BTreeSet<String>,
        values: Option<Vec<f64>>,
    ) -> Result<Told> {
        let deviations = reading::deviations(&question, &domain, form, cohort.len())?;
        ensure!(
            values.as_ref().is_none_or(|v| v.len() == deviations.len()),
            "a total of another length than its question's"
        );
        Ok(Told { question, domain, cohort, deviations, values })
    }
}
