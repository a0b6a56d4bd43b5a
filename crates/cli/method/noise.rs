//! Noise in the sums: its options, and whether it leaves anything of the centres.

use clap::{Args, ValueEnum};
use veilsum_cluster::{
    Clusters, OutOfBox,
    method::Seeding,
    privacy::{DEFAULT_RHO, MOST_ROWS_OF_A_PERSON, Noise, SEEDING_SHARE, Unit},
};

use super::heading;
use veilsum_node::error::{Code, Failure};

/// Whose presence noise hides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum UnitName {
    /// One row
    Record,
    /// One person of a site, of whom --rows-per-person rows count there at most: every site names its column of persons in site.toml
    Person,
    /// A whole site: of use from some 200 sites on at rho 1.6, from some 1,000 at rho 0.3; refused if it is of none
    Site,
}

/// Differential privacy of a run: options of `plan make` and `demo`.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = heading::NOISE)]
pub(crate) struct NoiseArgs {
    /// No noise: totals are exact, and rows may be inferred from them
    ///
    /// The operator of every site has to agree to this very plan (`veilsum plan agree`).
    #[arg(long, conflicts_with_all = ["rho", "dp_unit", "rows_per_person", "dp_absolute_rounds", "dp_tau", "dp_validation_share"])]
    pub exact: bool,
    /// What a run spends of every site's account, as rho (zCDP) [default: 0.25]
    ///
    /// Every total has noise for it. 1 is all that a site gives for the life of its account, if its policy says nothing else. First centres
    /// (--start), ranges of columns and --expected-rows must not come from the rows: nothing hides what a plan says.
    #[arg(long, value_name = "RHO", allow_negative_numbers = true)]
    pub rho: Option<f64>,
    /// Rows that are expected in all, for which the forecast is
    ///
    /// It says how far off centres will be in clear, round clusters of so many rows.
    #[arg(long, value_name = "N")]
    pub expected_rows: Option<u64>,
    /// Whose presence is hidden
    #[arg(long, value_enum, default_value = "record", hide_short_help = true)]
    pub dp_unit: UnitName,
    /// Under --dp-unit person: rows of one person that count at a site at most [default: 1]
    ///
    /// Noise grows with this number. A site may count fewer, as its site.toml says; one that counts more refuses the plan.
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u64).range(1..=MOST_ROWS_OF_A_PERSON), hide_short_help = true)]
    pub rows_per_person: Option<u64>,
    /// Rounds at the beginning with sums around the middle of the box [default: 0; 3 for uniform first centres]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub dp_absolute_rounds: Option<u32>,
    /// How far a row pulls at most in the first of the other rounds, as a share of the box's half diagonal [default: 0.25; 0 for K = 1]
    ///
    /// Later ones follow how far rows lie from their centres. Rows that lie farther than the clip pull less than without noise, so that
    /// a centre comes to rest elsewhere. 0 has none of these rounds: it costs more noise, and no privacy.
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, hide_short_help = true)]
    pub dp_tau: Option<f64>,
    /// Share of the budget for the validation [default: 0.1; 0.2 for a range of K]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, hide_short_help = true)]
    pub dp_validation_share: Option<f64>,
    /// Share of the budget for the row count
    #[arg(long, value_name = "SHARE", default_value_t = 0.02, allow_negative_numbers = true, hide_short_help = true)]
    pub dp_count_share: f64,
    /// Share of the budget for first centres from totals
    #[arg(long, value_name = "SHARE", default_value_t = SEEDING_SHARE, allow_negative_numbers = true, hide_short_help = true)]
    pub dp_seeding_share: f64,
    /// Questions that are lost to a missing site and may be asked again; each is paid for in advance
    #[arg(long, value_name = "N", default_value_t = 2, hide_short_help = true)]
    pub dp_retries: u32,
    /// Make the plan even where the forecast says that centres cannot be told from noise
    #[arg(long, hide_short_help = true)]
    pub dp_useless: bool,
}

impl NoiseArgs {
    /// Whether there is noise.
    pub(crate) fn asked(&self) -> bool {
        !self.exact
    }

    /// Whether the noise hides persons, so that every site has to know whose rows are whose.
    pub(crate) fn hides_persons(&self) -> bool {
        self.asked() && self.dp_unit == UnitName::Person
    }

    fn rho(&self) -> Option<f64> {
        self.asked().then(|| self.rho.unwrap_or(DEFAULT_RHO))
    }

    /// Rounds for so many clusters at most, if no option names their number.
    pub(super) fn rounds(&self, clusters: u32) -> u32 {
        let Some(rho) = self.rho() else { return 30 };
        let unit = Unit::Person { rows: self.rows_per_person.unwrap_or(1) };
        Noise { unit, ..Noise::usual(rho, self.expected_rows.unwrap_or(0)) }.usual_rounds(clusters)
    }

    /// The noise of a plan of at most `max_rows` rows a site, if any is asked for.
    pub(crate) fn noise(&self, clusters: Clusters, max_rows: u64, seeding: &Seeding) -> Option<Noise> {
        let usual = Noise::usual(self.rho()?, self.expected_rows.unwrap_or(0));
        let usual = if matches!(seeding, Seeding::Uniform { .. }) { usual.from_anywhere() } else { usual };
        let validation = if clusters.min < clusters.max { 0.2 } else { usual.validation_share };
        // One centre loses no cluster to the noise, and is to be the mean.
        let tau = if clusters.max == 1 { 0.0 } else { usual.tau };
        Some(Noise {
            unit: match self.dp_unit {
                UnitName::Record => Unit::Record,
                UnitName::Person => Unit::Person { rows: self.rows_per_person.unwrap_or(1) },
                UnitName::Site => Unit::Site { rows: max_rows },
            },
            absolute_rounds: self.dp_absolute_rounds.unwrap_or(usual.absolute_rounds),
            tau: self.dp_tau.unwrap_or(tau),
            validation_share: self.dp_validation_share.unwrap_or(validation),
            count_share: self.dp_count_share,
            seeding_share: self.dp_seeding_share,
            retries: self.dp_retries,
            ..usual
        })
    }

    /// Refuses noise that hides whole sites where it would leave nothing of the centres, and a number of rows of persons that it does not
    /// hide.
    ///
    /// # Errors
    /// A [`Failure`] with what to say, and for sites with their number from which on it is of use.
    pub(crate) fn check_unit(&self, sites: usize) -> Result<(), Failure> {
        if self.rows_per_person.is_some() && self.dp_unit != UnitName::Person {
            let what = "--rows-per-person is for noise that hides persons";
            return Err(Failure::new(Code::Usage, what, "say --dp-unit person, too, or leave it out"));
        }
        let Some(rho) = self.rho().filter(|_| self.dp_unit == UnitName::Site && !self.dp_useless) else {
            return Ok(());
        };
        let needed = sites_for_site_noise(rho);
        if sites >= needed {
            return Ok(());
        }
        Err(Failure::new(
            Code::Usage,
            format!(
                "noise that hides a whole site leaves nothing of the centres among {sites} sites: at rho {rho} it is of use \
                 from some {needed} sites on"
            ),
            "hide single rows or persons (--dp-unit record or person)",
        ))
    }

    /// What sites do with rows outside the box where nothing else is said.
    pub(crate) fn out_of_box(&self) -> OutOfBox {
        if self.asked() { OutOfBox::Clip } else { OutOfBox::Refuse }
    }

    /// The step of totals: noise is a whole number of steps, and drowns finer ones.
    pub(crate) fn step_bits(&self, asked: Option<u8>) -> Option<u8> {
        asked.or(self.rho().map(|_| 20))
    }
}

/// Sites from which noise that hides a whole one is of use: measured, some 200 at rho 1.6 and some 1,000 at rho 0.3, between
/// and below by the same power. At 10 or 50 sites centres are off by 0.28 of the box and more.
fn sites_for_site_noise(rho: f64) -> usize {
    (200.0 * 1.6 / rho.clamp(1e-9, 1.6)).ceil() as usize
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use veilsum_cluster::method::Candidates;

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
            let line = [&["plan", "--rho=0.5", "--expected-rows=3000"][..], more].concat();
            let from = Seeding::Candidates(Candidates::usual(1));
            let noise = Line::try_parse_from(line).expect("options").noise;
            noise.noise(Clusters { min, max }, 100, &from).map(|noise| noise.tau)
        };
        assert_eq!([tau(&[], 1, 1), tau(&[], 3, 3), tau(&[], 1, 3)], [Some(0.0), Some(0.25), Some(0.25)]);
        assert_eq!([tau(&["--dp-tau=0.5"], 1, 1), tau(&["--dp-tau=0"], 3, 3)], [Some(0.5), Some(0.0)]);
    }

    #[test]
    fn noise_is_the_rule() {
        let spends = |line: &[&str]| {
            let noise = Line::try_parse_from([&["plan"], line].concat()).expect("options").noise;
            let one = Clusters { min: 1, max: 1 };
            noise.noise(one, 100, &Seeding::Candidates(Candidates::usual(1))).map(|noise| noise.nano_rho)
        };
        assert_eq!(
            [spends(&[]), spends(&["--rho=1"]), spends(&["--exact"])],
            [Some(250_000_000), Some(1_000_000_000), None]
        );
        assert!(Line::try_parse_from(["plan", "--exact", "--rho=1"]).is_err());
    }

    #[test]
    fn persons_are_hidden_if_the_plan_says_it() {
        let unit = |line: &[&str]| {
            let noise = Line::try_parse_from([&["plan"], line].concat()).map_err(|_| Code::Usage)?.noise;
            noise.check_unit(3).map_err(|failure| failure.code)?;
            let one = Clusters { min: 1, max: 1 };
            Ok(noise.noise(one, 100, &Seeding::Candidates(Candidates::usual(1))).map(|noise| noise.unit))
        };
        assert_eq!(unit(&[]), Ok(Some(Unit::Record)));
        assert_eq!(unit(&["--dp-unit=person"]), Ok(Some(Unit::Person { rows: 1 })));
        assert_eq!(unit(&["--dp-unit=person", "--rows-per-person=5"]), Ok(Some(Unit::Person { rows: 5 })));
        for wrong in [
            &["--rows-per-person=5"][..],
            &["--dp-unit=site", "--rows-per-person=5"],
            &["--exact", "--rows-per-person=5"],
            &["--dp-unit=person", "--rows-per-person=0"],
            &["--dp-unit=person", "--rows-per-person=1001"],
        ] {
            assert_eq!(unit(wrong), Err(Code::Usage), "{wrong:?}");
        }
    }

    #[test]
    fn noise_that_hides_a_site_is_offered_to_many() {
        assert_eq!([5.0, 1.6, 0.32].map(sites_for_site_noise), [200, 200, 1_000]);
        assert!(sites_for_site_noise(0.0244) > 10_000);
    }
}
