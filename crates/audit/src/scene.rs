//! The federations under attack: made-up rows and a plan, from a seed.

use veilsum_cluster::{Algorithm, Error, Rows, Scaling, method::Seeding, random::Stream};
use veilsum_node::plan::{Column, PlanSpec};

const LABEL: &[u8; 24] = b"veilsum audit scene   v1";

/// Columns, F.
pub const COLUMNS: usize = 2;
/// Fuzzifier, m.
pub const FUZZIFIER: f64 = 2.0;
/// The public box is [-EDGE, EDGE] in every column; working units are original units.
pub const EDGE: f64 = 1.0;

const VICTIMS: usize = 4;

/// Rows and plan of one federation.
#[derive(Clone)]
pub struct Scene {
    /// Name and rows of every site.
    pub sites: Vec<(String, Rows)>,
    /// What is computed.
    pub work: PlanSpec,
}

impl Scene {
    /// A sweep over K = 2 to 9 of three rounds each, on sites of 50 rows anywhere in the box: nothing about them can be guessed better
    /// than by chance. The same seed gives the same rows and the same first centres.
    ///
    /// # Errors
    /// `Error` never happens for these sizes.
    pub fn sweep(seed: u64) -> Result<Scene, Error> {
        let mut stream = Stream::new(seed, LABEL);
        let mut uniform = || (0..50 * COLUMNS).map(|_| EDGE * (1.9 * stream.unit() - 0.95)).collect();
        let sites = (0..VICTIMS)
            .map(|s| Ok((format!("clinic-{}", s + 1), Rows::new(uniform(), COLUMNS)?)))
            .collect::<Result<Vec<_>, Error>>()?;
        let mut scene = Scene::of(sites, 2, 3, seed);
        scene.work.recipe.clusters.max = 9;
        Ok(scene)
    }

    /// Sites of `rows` rows each, in three clumps that every site shares (as the set xclara has them).
    ///
    /// # Errors
    /// As [`Scene::sweep`].
    pub fn clumps(seed: u64, sites: usize, rows: usize, rounds: u32) -> Result<Scene, Error> {
        let mut stream = Stream::new(seed, LABEL);
        let site = |stream: &mut Stream| {
            let values = (0..rows).flat_map(|_| around(&CLUMPS[stream.below(3) as usize], 0.11, stream)).collect();
            Rows::new(values, COLUMNS)
        };
        let sites = (0..sites)
            .map(|s| Ok((format!("site-{}", s + 1), site(&mut stream)?)))
            .collect::<Result<Vec<_>, Error>>()?;
        Ok(Scene::of(sites, CLUMPS.len(), rounds, seed))
    }

    /// Fuzzy c-means on these sites from uniform first centres, all rounds.
    pub fn of(sites: Vec<(String, Rows)>, clusters: usize, rounds: u32, seed: u64) -> Scene {
        let columns = sites.first().map_or(COLUMNS, |(_, rows)| rows.columns());
        let column = |f: usize| Column { name: format!("x{f}"), lower: -EDGE, upper: EDGE };
        let fcm = Algorithm::Fcm { m: FUZZIFIER, epsilon: 0.0, max_rounds: rounds };
        let columns = (0..columns).map(column).collect();
        let work = PlanSpec::plain(columns, fcm, clusters as u32, Seeding::Uniform { seed });
        let work = PlanSpec { scaling: Scaling::None, ..work };
        Scene { sites, work }
    }

    /// Rows of all sites.
    pub fn rows(&self) -> u64 {
        self.sites.iter().map(|(_, rows)| rows.len() as u64).sum()
    }
}

/// Middles of the three clumps.
pub const CLUMPS: [[f64; 2]; 3] = [[-0.5, -0.45], [0.55, -0.3], [0.05, 0.55]];

fn around(centre: &[f64; 2], spread: f64, stream: &mut Stream) -> [f64; 2] {
    let [x, y] = stream.normal_pair();
    [(centre[0] + spread * x).clamp(-EDGE, EDGE), (centre[1] + spread * y).clamp(-EDGE, EDGE)]
}
