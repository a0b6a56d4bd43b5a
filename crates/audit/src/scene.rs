//! The federation under attack: a few small sites that one round could betray, and larger ones beside them.

use veilsum::work::{Column, Work};
use veilsum_cluster::{Algorithm, DataError, Rows, Scaling, method::Seeding, random::Stream};

const LABEL: &[u8; 24] = b"veilsum audit scene   v1";

/// Columns, F.
pub const COLUMNS: usize = 2;
/// Clusters, C.
pub const CLUSTERS: usize = 5;
/// Fuzzifier, m.
pub const FUZZIFIER: f64 = 2.0;
/// Rows of a victim: below C(F+1)/F = 7.5, where one round determines all of them.
pub const VICTIM_ROWS: usize = 5;
/// The public box is [-EDGE, EDGE] in every column; working units are original units.
pub const EDGE: f64 = 1.0;

const VICTIMS: usize = 4;
const OTHERS: usize = 3;

/// Rows and plan of one federation.
pub struct Scene {
    /// Name and rows of every site; the first [`Scene::victims`] of them are small.
    pub sites: Vec<(String, Rows)>,
    /// How many sites hold [`VICTIM_ROWS`] rows.
    pub victims: usize,
    /// What is computed.
    pub work: Work,
}

impl Scene {
    /// The same seed gives the same rows and the same first centres.
    ///
    /// A victim's rows are uniform in the box: nothing about them can be guessed better than by chance.
    ///
    /// # Errors
    /// `DataError` never happens for these sizes.
    pub fn new(seed: u64, rounds: u32) -> Result<Scene, DataError> {
        let mut stream = Stream::new(seed, LABEL);
        let mut sites = Vec::new();
        for v in 0..VICTIMS {
            let values = (0..VICTIM_ROWS * COLUMNS).map(|_| EDGE * (1.9 * stream.unit() - 0.95)).collect();
            sites.push((format!("practice-{}", v + 1), Rows::new(values, COLUMNS)?));
        }
        for o in 0..OTHERS {
            let rows = 20 + stream.below(21) as usize;
            let centre = [EDGE * (stream.unit() - 0.5), EDGE * (stream.unit() - 0.5)];
            let values = (0..rows).flat_map(|_| {
                let [x, y] = stream.normal_pair();
                [(centre[0] + 0.15 * x).clamp(-EDGE, EDGE), (centre[1] + 0.15 * y).clamp(-EDGE, EDGE)]
            });
            sites.push((format!("hospital-{}", o + 1), Rows::new(values.collect(), COLUMNS)?));
        }
        let column = |name: &str| Column { name: name.into(), lower: -EDGE, upper: EDGE };
        let fcm = Algorithm::Fcm { m: FUZZIFIER, epsilon: 0.0, max_rounds: rounds };
        let work = Work::plain(vec![column("x"), column("y")], fcm, CLUSTERS as u32, Seeding::Uniform { seed });
        let work = Work { scaling: Scaling::None, ..work };
        Ok(Scene { sites, victims: VICTIMS, work })
    }
}
