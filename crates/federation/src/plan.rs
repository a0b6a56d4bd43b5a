//! The application's part of a plan: columns with their public box, scaling, and the method with its parameters.
//!
//! The protocol core binds these bytes and never reads them; the clustering crate never sees a plan. This is the text
//! that every site reads before it says yes.

/// What a [`PlanSpec`] consists of.
pub use crate::columns::{Categorical, Column, Shares};
use serde::{Deserialize, Serialize};
use veilsum_cluster::{Algorithm, Batch, Centres, Domain, Run, Step, algorithm::usual_fuzzifier};
/// What a [`PlanSpec`] consists of.
pub use veilsum_cluster::{Clusters, OutOfBox, Recipe, Scaling, method::Seeding, privacy::Unit, sampling::Sampling};
use veilsum_proto::{
    codec,
    limits::{MAX_APPLICATION, MAX_WORDS},
};

use crate::{columns, error::Failure, question::SumBounds};

/// What is computed, on which columns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PlanSpec {
    /// The columns of numbers in the order of every vector, each with its public range.
    pub columns: Vec<Column>,
    /// How rows become working units.
    pub scaling: Scaling,
    /// What a site does with a row outside the box.
    pub out_of_box: OutOfBox,
    /// What a run consists of. Given first centres are in BOX units here: 0 is a column's lower end, 1 its upper end.
    pub recipe: Recipe,
    /// Which share of the sites contributes in each of the algorithm's rounds; all, where there is none.
    pub sampling: Option<Sampling>,
    /// Who opens the totals that the validity indices need.
    pub judge: Judge,
    /// Totals have steps of at least 2^-`step_bits` of the block's bound for one row: the coarser, the less one says of a
    /// row. Where there is none, they are as fine as 64 bits allow ([FIX-4]).
    #[serde(default)]
    pub step_bits: Option<u8>,
    /// The columns of categories: their indicators follow the numbers in every vector.
    #[serde(default)]
    pub categorical: Vec<Categorical>,
}

/// Who opens the totals that the validity indices need.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judge {
    /// The coordinator.
    #[default]
    Coordinator,
    /// The intermediary, which learns no centre: a site hands it the distances between centres. The coordinator learns the
    /// indices and no total that they came from (the framework's second option, Stallmann & Wilbik 2022).
    Intermediary,
}

/// K rows of d numbers.
pub type Matrix = Vec<Vec<f64>>;

/// A method part that is not valid.
fn invalid(why: impl std::fmt::Display) -> Failure {
    Failure::input(
        format!("the plan's method part is not valid: {why}"),
        "make the plan again (`veilsum plan new`) and send it to everybody again",
    )
}

const _: () = assert!(veilsum_cluster::privacy::HONEST == veilsum_door::HONEST);

/// Steps that a plan may ask for, as powers of one half.
const STEP_BITS: std::ops::RangeInclusive<u8> = 8..=62;

/// The coarsest step where the intermediary judges.
const COARSEST_JUDGED: u8 = 16;

/// Columns a plan may name.
const MAX_COLUMNS: usize = 4_096;

impl PlanSpec {
    /// The plainest work: columns scaled to their box, one K, fuzzy Davies-Bouldin and the objective at the end, opened by
    /// the coordinator.
    pub fn plain(columns: Vec<Column>, algorithm: Algorithm, k: u32, seeding: Seeding) -> PlanSpec {
        PlanSpec {
            columns,
            scaling: Scaling::Box,
            out_of_box: OutOfBox::Refuse,
            recipe: Recipe::plain(algorithm, k, seeding),
            sampling: None,
            judge: Judge::Coordinator,
            step_bits: None,
            categorical: Vec::new(),
        }
    }

    /// The names in every site's header: numbers, then categories.
    pub fn headers(&self) -> impl Iterator<Item = &str> {
        columns::headers(&self.columns, &self.categorical)
    }

    /// The names of all coordinates of a centre: numbers, then the indicators of every category.
    pub fn names(&self) -> Vec<String> {
        columns::names(&self.columns, &self.categorical)
    }

    /// The fuzzifier that such a plan has if nobody chooses one.
    pub fn usual_fuzzifier(&self) -> f64 {
        let rows = self.recipe.noise.map_or(0, |noise| noise.expected_rows);
        usual_fuzzifier(columns::dimensions(&self.columns, &self.categorical), rows)
    }

    /// Checks every parameter, and that a first question can be asked and laid out.
    ///
    /// # Errors
    /// [`Failure`] naming the parameter.
    pub fn check(&self) -> Result<(), Failure> {
        let count = self.names().len();
        if !(1..=MAX_COLUMNS).contains(&count) {
            return Err(invalid(format!("it has {count} columns; 1 to {MAX_COLUMNS} are possible")));
        }
        columns::check(&self.columns, &self.categorical).map_err(invalid)?;
        let domain = self.domain()?;
        self.check_noise()?;
        if self.recipe.algorithm.traits().describes.is_some()
            && (self.sampling.is_some() || self.judge != Judge::Coordinator)
        {
            let why = "a description is over all sites, and has no validity totals for the intermediary to judge";
            return Err(invalid(why));
        }
        if let Some(sampling) = &self.sampling {
            sampling.check().map_err(invalid)?;
        }
        if let Some(bits) = self.step_bits.filter(|bits| !STEP_BITS.contains(bits)) {
            let (least, most) = (STEP_BITS.start(), STEP_BITS.end());
            return Err(invalid(format!("step_bits is {bits}; {least} to {most} are possible")));
        }
        self.check_judged()?;
        // Before anything of that size is made: the sums of one round must fit into one vector.
        let words = self.recipe.most_words(domain.columns());
        if words > MAX_WORDS as u64 {
            return Err(invalid(format!(
                "K = {} gives rounds of up to {words} numbers; {MAX_WORDS} fit a vector: fewer K, restarts or \
                 columns",
                self.recipe.clusters.max
            )));
        }
        self.working_recipe()?.check(&domain).map_err(invalid)?;
        self.first_question(3)?.check(&domain).map_err(invalid)
    }

    /// The public box.
    ///
    /// # Errors
    /// [`Failure`] naming the column whose range is unusable.
    pub fn domain(&self) -> Result<Domain, Failure> {
        columns::domain(&self.columns, &self.categorical, self.scaling).map_err(invalid)
    }

    /// The recipe with given centres in working units.
    fn working_recipe(&self) -> Result<Recipe, Failure> {
        let (mut recipe, domain) = (self.recipe.clone(), self.domain()?);
        if let Seeding::Given { centres } = &mut recipe.seeding {
            let (got, want) = (centres.columns(), domain.columns());
            if got != want {
                return Err(invalid(format!("a starting centre has {got} coordinates, the plan {want} columns")));
            }
            let inside = |(column, part): (usize, &f64)| {
                let (low, high) = domain.working_interval(column);
                low + part * (high - low)
            };
            let rows: Matrix = centres.rows().map(|row| row.iter().enumerate().map(inside).collect()).collect();
            *centres = Centres::from_rows(&rows).map_err(invalid)?;
        }
        Ok(recipe)
    }

    /// The run at its beginning, for a roster of `sites` sites.
    ///
    /// # Errors
    /// [`Failure`] naming the parameter that is outside its domain.
    pub fn run(&self, sites: usize) -> Result<Run, Failure> {
        let sites = u32::try_from(sites).unwrap_or(u32::MAX);
        let run = self.working_recipe()?.run(&self.domain()?, sites).map_err(invalid)?;
        Ok(match self.step_bits {
            Some(bits) => run.coarse(2f64.powi(-i32::from(bits))),
            None => run,
        })
    }

    /// The first question of the run: a site answers no other one first.
    ///
    /// # Errors
    /// As [`PlanSpec::run`].
    pub fn first_question(&self, sites: usize) -> Result<Batch, Failure> {
        match self.run(sites)?.next(None).map_err(invalid)? {
            Step::Ask(batch) => Ok(batch),
            Step::Done(_) => Err(invalid("the method asks nothing")),
        }
    }

    /// One question of every part of a run, for sizes and precision; see [`Recipe::sample`].
    ///
    /// # Errors
    /// As [`PlanSpec::run`].
    pub fn sample(&self) -> Result<Vec<Batch>, Failure> {
        self.working_recipe()?.sample(&self.domain()?).map_err(invalid)
    }

    /// Centres in original units and in box units, from working units.
    ///
    /// # Errors
    /// [`Failure`] where they do not fit the columns.
    pub fn units(&self, working: &Centres) -> Result<(Matrix, Matrix), Failure> {
        let domain = self.domain()?;
        let original = domain.centres_to_original(working).map_err(invalid)?;
        let original: Vec<Vec<f64>> = original.rows().map(<[f64]>::to_vec).collect();
        let part = |(column, value): (usize, &f64)| {
            let (low, high) = domain.working_interval(column);
            (value - low) / (high - low)
        };
        let boxed = working.rows().map(|row| row.iter().enumerate().map(part).collect()).collect();
        Ok((original, boxed))
    }

    /// What a working unit of every column is in the column's own.
    pub(crate) fn extents(&self) -> Vec<f64> {
        let extent = |column: &Column| match self.scaling {
            Scaling::Box => column.upper - column.lower,
            Scaling::None => 1.0,
        };
        // Indicators of categories stay as they are.
        let indicators = self.categorical.iter().flat_map(|column| column.categories.iter().map(|_| 1.0));
        self.columns.iter().map(extent).chain(indicators).collect()
    }

    /// The name by which plans and results call the method.
    pub fn method_name(&self) -> &'static str {
        self.recipe.algorithm.name()
    }

    /// Whether final centres (working units) may be this plan's: their number, and that they lie in the box.
    ///
    /// # Errors
    /// A sentence for the site's operator.
    pub fn admits_centres(&self, centres: &Centres) -> Result<(), String> {
        let domain = self.domain().map_err(|e| e.message)?;
        let clusters = self.recipe.clusters;
        if centres.columns() != domain.columns() || !clusters.each().any(|k| k as usize == centres.k()) {
            return Err("the centres have another K or other columns than the plan".into());
        }
        veilsum_cluster::method::inside(centres, &domain)
    }

    /// The form of all answers, for a roster of `sites` sites of at most `max_rows` rows.
    ///
    /// # Errors
    /// [`Failure`] where the plan cannot be used.
    pub fn form(&self, sites: usize, max_rows: u64) -> Result<SumBounds, Failure> {
        let noise = self.recipe.levels(&self.domain()?).map_err(invalid)?;
        Ok(SumBounds { step_bits: self.step_bits, noise, ..SumBounds::new(sites, max_rows) })
    }

    fn check_judged(&self) -> Result<(), Failure> {
        if self.judge == Judge::Coordinator {
            return Ok(());
        }
        let refuse = |what: &str| Err(invalid(format!("where the intermediary judges, {what}")));
        if self.step_bits.is_some_and(|bits| bits < COARSEST_JUDGED) {
            return refuse(&format!("step_bits is {COARSEST_JUDGED} or more: it compares totals with the row count"));
        }
        if self.recipe.validity.vectors {
            return refuse("no sums of coordinates are asked: it must not learn where the centres are");
        }
        if self.recipe.validity.davies_bouldin.p != 2.0 {
            return refuse("p of Davies-Bouldin is 2: sites tell it Euclidean distances between centres and no others");
        }
        Ok(())
    }

    fn check_noise(&self) -> Result<(), Failure> {
        if self.recipe.noise.is_none() {
            return Ok(());
        }
        let refuse = |what: &str| Err(invalid(format!("under noise {what}")));
        if self.step_bits.is_some() {
            return refuse("totals have steps of their own: leave step_bits out");
        }
        if self.out_of_box != OutOfBox::Clip {
            return refuse(
                "a row outside the box is moved to its edge: a site that fails on it tells that it is there (out_of_box = \"clip\")",
            );
        }
        if self.judge != Judge::Coordinator || self.sampling.is_some() {
            return refuse(
                "the coordinator opens the validity totals, and every site pays for every question, so none are sampled",
            );
        }
        Ok(())
    }

    /// The bytes that go into the plan's terms ([QRY-9]).
    pub fn to_bytes(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Reads and checks them.
    ///
    /// # Errors
    /// [`Failure`] where they are damaged or hold parameters outside their domain.
    pub fn from_bytes(bytes: &[u8]) -> Result<PlanSpec, Failure> {
        let work: PlanSpec = codec::decode("plan", bytes, MAX_APPLICATION).map_err(invalid)?;
        work.check()?;
        Ok(work)
    }
}

#[cfg(test)]
mod tests {
    use veilsum_cluster::method::Validity;

    use super::*;
    use crate::tests::work;

    #[test]
    fn parameters_outside_their_domain_are_named() {
        let fcm =
            |k, m, epsilon, max_rounds| crate::tests::fcm(k, m, epsilon, max_rounds, Seeding::Uniform { seed: 0 });
        let given = |centres: &[Vec<f64>]| {
            let centres = Centres::from_rows(centres).unwrap();
            crate::tests::fcm(1, 2.0, 0.0, 1, Seeding::Given { centres })
        };
        let judged = |w: &mut PlanSpec, validity| (w.judge, w.recipe.validity) = (Judge::Intermediary, validity);
        let mut of_sums = Validity::basic();
        of_sums.davies_bouldin.p = 1.0;
        type Change<'a> = &'a dyn Fn(&mut PlanSpec);
        let table: [(Change<'_>, &str); 16] = [
            (&|w| w.recipe = fcm(3, 1.0, 0.0, 1), "fuzzifier"),
            (&|w| w.recipe = fcm(3, f64::NAN, 0.0, 1), "fuzzifier"),
            (&|w| w.recipe = fcm(3, 2.0, -1.0, 1), "epsilon"),
            (&|w| w.recipe = fcm(3, 2.0, 0.0, 0), "max_rounds"),
            (&|w| w.recipe = fcm(0, 2.0, 0.0, 1), ""),
            (&|w| w.columns[1].name = "x".into(), "twice"),
            (&|w| w.columns[1].upper = 0.0, "constant"),
            (&|w| w.columns.clear(), "0 columns"),
            (&|w| w.recipe = given(&[vec![0.5]]), "coordinates"),
            (&|w| w.recipe = given(&[vec![0.5, 0.5], vec![0.1, 0.1]]), "2"),
            (&|w| w.sampling = Some(Sampling { share: 1.5, seed: 0 }), "share"),
            (&|w| w.step_bits = Some(7), "8 to 62"),
            (&|w| w.step_bits = Some(63), "8 to 62"),
            (&|w| w.recipe.clusters.max = 1_000_000, "fit"),
            (&|w| judged(w, Validity::everything()), "must not"),
            (&|w| judged(w, of_sums), "Euclidean distances between centres and no others"),
        ];
        for (change, says) in table {
            let mut w = work(3);
            change(&mut w);
            let why = w.check().unwrap_err().message;
            assert!(!why.is_empty() && why.contains(says), "{says}: {why}");
        }
    }

    #[test]
    fn units() {
        let w = work(3);
        let (original, boxed) = w.units(&Centres::from_rows(&[vec![0.5, 0.1]]).unwrap()).unwrap();
        assert_eq!((original, boxed), (vec![vec![0.5, 1.0]], vec![vec![0.5, 0.1]]));
        let raw = PlanSpec { scaling: Scaling::None, ..w };
        let (original, boxed) = raw.units(&Centres::from_rows(&[vec![0.5, 1.0]]).unwrap()).unwrap();
        assert_eq!((original, boxed), (vec![vec![0.5, 1.0]], vec![vec![0.5, 0.1]]));
    }
}
