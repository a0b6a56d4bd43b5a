//! Noise in the sums: its options, and whether it leaves anything of the centres.

use clap::{Args, ValueEnum};
use veilsum_cluster::{
    Clusters, OutOfBox,
    privacy::{Noise, Unit},
};

use super::heading;
use veilsum_node::error::{Code, Failure};

/// Whose presence noise hides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum UnitName {
    /// One row
    Record,
    /// A whole site: of use from some 200 sites on at epsilon 10, from some 1,000 at epsilon 4; refused where it is of none
    Site,
}

/// Differential privacy of a run: options of `plan make` and `demo`.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = heading::NOISE)]
pub(crate) struct NoiseArgs {
    /// Differential privacy with this epsilon over the whole run; fcm and kmeans only
    ///
    /// 1 is usual, 4 for a range of K. First centres (--start), ranges of columns and --expected-rows must not come from the
    /// rows: nothing hides what a plan says.
    #[arg(long, value_name = "EPSILON", requires = "expected_rows", allow_negative_numbers = true)]
    pub dp_epsilon: Option<f64>,
    /// Rows that are expected in all, for the forecast and the default of delta
    #[arg(long, value_name = "N")]
    pub expected_rows: Option<u64>,
    /// Delta over the whole run [default: the smaller of 10^-6 and one tenth over the expected rows]
    #[arg(long, value_name = "DELTA", requires = "dp_epsilon", allow_negative_numbers = true, hide_short_help = true)]
    pub dp_delta: Option<f64>,
    /// Whose presence is hidden
    #[arg(long, value_enum, default_value = "record", hide_short_help = true)]
    pub dp_unit: UnitName,
    /// Rounds at the beginning with sums around the middle of the box
    #[arg(long, value_name = "N", default_value_t = 3, hide_short_help = true)]
    pub dp_absolute_rounds: u32,
    /// How far a row pulls at most in the other rounds, as a share of the box's half diagonal [default: 0.25; 0 for K = 1]
    ///
    /// 0 has none of these rounds. Above 0 rows that lie farther from a centre pull it less than without noise, so that it comes to rest
    /// elsewhere. 0 costs more noise, and no privacy.
    #[arg(long, value_name = "SHARE", requires = "dp_epsilon", allow_negative_numbers = true, hide_short_help = true)]
    pub dp_tau: Option<f64>,
    /// Share of the budget for the validation [default: 0.1; 0.2 for a range of K]
    #[arg(long, value_name = "SHARE", requires = "dp_epsilon", allow_negative_numbers = true, hide_short_help = true)]
    pub dp_validation_share: Option<f64>,
    /// Share of the budget for the row count
    #[arg(long, value_name = "SHARE", default_value_t = 0.02, allow_negative_numbers = true, hide_short_help = true)]
    pub dp_count_share: f64,
    /// Make the plan even where the forecast says that centres cannot be told from noise
    #[arg(long, hide_short_help = true)]
    pub dp_useless: bool,
}

impl NoiseArgs {
    /// The noise of a plan of at most `max_rows` rows a site, where one is asked for.
    pub(crate) fn noise(&self, clusters: Clusters, max_rows: u64) -> Option<Noise> {
        let usual = Noise::usual(self.dp_epsilon?, self.expected_rows.unwrap_or(0));
        let validation = if clusters.min < clusters.max { 0.2 } else { usual.validation_share };
        // One centre loses no cluster to the noise, and is to be the mean.
        let tau = if clusters.max == 1 { 0.0 } else { usual.tau };
        Some(Noise {
            delta: self.dp_delta.unwrap_or(usual.delta),
            unit: match self.dp_unit {
                UnitName::Record => Unit::Record,
                UnitName::Site => Unit::Site { rows: max_rows },
            },
            absolute_rounds: self.dp_absolute_rounds,
            tau: self.dp_tau.unwrap_or(tau),
            validation_share: self.dp_validation_share.unwrap_or(validation),
            count_share: self.dp_count_share,
            ..usual
        })
    }

    /// Refuses noise that hides whole sites where it would leave nothing of the centres.
    ///
    /// # Errors
    /// A [`Failure`] with the number of sites from which on it is of use.
    pub(crate) fn hides_sites_in_vain(&self, sites: usize) -> Result<(), Failure> {
        let Some(epsilon) = self.dp_epsilon.filter(|_| self.dp_unit == UnitName::Site && !self.dp_useless) else {
            return Ok(());
        };
        let needed = sites_for_site_noise(epsilon);
        if sites >= needed {
            return Ok(());
        }
        Err(Failure::new(
            Code::Usage,
            format!(
                "noise that hides a whole site leaves nothing of the centres among {sites} sites: at epsilon {epsilon} it is of use \
                 from some {needed} sites on"
            ),
            "hide single rows (--dp-unit record)",
        ))
    }

    /// What sites do with rows outside the box where nothing else is said.
    pub(crate) fn out_of_box(&self) -> OutOfBox {
        if self.dp_epsilon.is_some() { OutOfBox::Clip } else { OutOfBox::Refuse }
    }

    /// The step of totals: noise is a whole number of steps, and drowns finer ones.
    pub(crate) fn step_bits(&self, asked: Option<u8>) -> Option<u8> {
        asked.or(self.dp_epsilon.map(|_| 20))
    }
}

/// Sites from which noise that hides a whole one is of use: measured, some 200 at epsilon 10 and some 1,000 at epsilon 4, between
/// and below by the same power. At 10 or 50 sites centres are off by 0.28 of the box and more.
fn sites_for_site_noise(epsilon: f64) -> usize {
    (200.0 * (10.0 / epsilon.min(10.0)).powf(1.75)).ceil() as usize
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        noise: NoiseArgs,
    }

    /// `--method fcm --k 1` is the mean of every column.
    #[test]
    fn one_cluster_has_no_clipped_rounds_where_none_are_asked_for() {
        let tau = |more: &[&str], min, max| {
            let line = [&["plan", "--dp-epsilon=1", "--expected-rows=3000"][..], more].concat();
            Line::try_parse_from(line).expect("options").noise.noise(Clusters { min, max }, 100).map(|noise| noise.tau)
        };
        assert_eq!([tau(&[], 1, 1), tau(&[], 3, 3), tau(&[], 1, 3)], [Some(0.0), Some(0.25), Some(0.25)]);
        assert_eq!([tau(&["--dp-tau=0.5"], 1, 1), tau(&["--dp-tau=0"], 3, 3)], [Some(0.5), Some(0.0)]);
    }

    #[test]
    fn noise_that_hides_a_site_is_offered_to_many() {
        assert_eq!([20.0, 10.0, 4.0].map(sites_for_site_noise), [200, 200, 995]);
        assert!(sites_for_site_noise(1.0) > 10_000);
    }
}
