//! The forecast of a plan against runs on rows that it knows nothing of.

use veilsum_cluster::method::{Candidates, Seeding, mechanism};
use veilsum_cluster::privacy::Noise;
use veilsum_cluster::random::Stream;
use veilsum_cluster::{Algorithm, Centres, Domain, OutOfBox, Prepared, Recipe, Rows, Scaling, distance, pooled};

/// Settings in the ordinary run; `VEILSUM_FORECASTS=200` is the long form.
const SETTINGS: u64 = 12;
/// Runs of each setting.
const RUNS: u64 = 7;

/// Round clusters with rows in the unit box and a recipe for them. Places, distances and weights differ from those of a forecast.
struct Setting {
    name: String,
    recipe: Recipe,
    rows: Prepared,
    truth: Centres,
}

impl Setting {
    fn draw(seed: u64) -> Self {
        let mut stream = Stream::new(seed, b"veilsum forecast setting");
        let mut between = |low: f64, high: f64| low + (high - low) * stream.unit();
        let n = between(300f64.ln(), 20_000f64.ln()).exp() as u64;
        let (d, k) = (between(2.0, 21.0) as usize, between(2.0, 11.0) as usize);
        let rho = between(0.05f64.ln(), 1f64.ln()).exp();
        let mut truth = Centres::new(k, d, vec![0.0; k * d]).unwrap();
        let least = |centres: &Centres| {
            let pairs = (0..k).flat_map(|i| (0..i).map(move |j| (i, j)));
            pairs.map(|(i, j)| distance::euclidean(centres.row(i), centres.row(j))).fold(f64::INFINITY, f64::min)
        };
        for _ in 0..20 {
            let drawn = Centres::new(k, d, (0..k * d).map(|_| between(0.1, 0.9)).collect()).unwrap();
            truth = if least(&drawn) > least(&truth) { drawn } else { truth };
        }
        // Rows lie so far from their centres, in parts of the way to the next cluster; a forecast supposes 0.26.
        let far = between(0.17, 0.3);
        let deviation = far * least(&truth) / (d as f64).sqrt();
        let shares: Vec<f64> = (0..k).map(|_| between(0.4, 1.6)).collect();
        let hard = between(0.0, 1.0) < 0.5;
        let all: f64 = shares.iter().sum();
        let mut values = Vec::new();
        for (centre, share) in truth.rows().zip(&shares) {
            for _ in 0..(n as f64 * share / all).round() as usize {
                values.extend(centre.iter().map(|x| (x + deviation * stream.normal_pair()[0]).clamp(0.0, 1.0)));
            }
        }
        let domain = Domain::new(vec![0.0; d], vec![1.0; d], Scaling::Box).unwrap();
        let rows = Prepared::new(&Rows::new(values, d).unwrap(), &domain, OutOfBox::Refuse).unwrap();
        let algorithm = match hard {
            true => Algorithm::Kmeans { epsilon: 0.0, max_rounds: 8 },
            false => Algorithm::Fcm { m: 2.0, epsilon: 0.0, max_rounds: 8 },
        };
        let name = format!("{} of {n} rows, {d} columns, K = {k}, rho {rho:.2}, far {far:.2}", algorithm.name());
        let mut recipe = Recipe::plain(algorithm, k as u32, Seeding::Candidates(Candidates::usual(seed)));
        recipe.noise = Some(Noise::usual(rho, n));
        Self { name, recipe, rows, truth }
    }

    /// Root mean square of what noise moves in a run, in parts of a range: the median. And the share of runs that lost a cluster.
    fn measured(&self) -> (f64, f64) {
        let plain = Recipe { noise: None, ..self.recipe.clone() };
        let plain = pooled::run(&mut plain.run(self.rows.domain(), 1).unwrap(), &self.rows).unwrap().centres;
        let near = |centres: &Centres| -> Vec<f64> {
            self.truth.rows().flat_map(|at| centres.row(distance::nearest(at, centres.rows()).0).to_vec()).collect()
        };
        let mut lost = 0.0;
        let mut off: Vec<f64> = (0..RUNS)
            .map(|seed| {
                let mut stream = Stream::new(seed, b"veilsum test stream     ");
                let found = crate::noisy::run(&self.recipe, &self.rows, &mut stream).centres;
                lost += f64::from(u8::from(mechanism::lost(&found, &self.truth, self.rows.domain()) > 0));
                let squares: f64 = near(&found).iter().zip(near(&plain)).map(|(a, b)| (a - b).powi(2)).sum();
                (squares / self.truth.as_slice().len() as f64).sqrt()
            })
            .collect();
        off.sort_by(f64::total_cmp);
        (off[RUNS as usize / 2], lost / RUNS as f64)
    }
}

/// The error is within a factor 1.5 of the median of runs, or a plan that is called useless lost clusters or the centres' places.
#[test]
fn what_is_forecast_is_found() {
    let long: Option<u64> = std::env::var("VEILSUM_FORECASTS").ok().and_then(|n| n.parse().ok());
    let (mut held, mut all, mut useful) = (0, 0, 0);
    for seed in 0..long.unwrap_or(SETTINGS) {
        let setting = Setting::draw(seed);
        let told = mechanism::forecast(&setting.recipe, setting.rows.domain(), 1.0).unwrap().expect("noise");
        let (found, lost) = setting.measured();
        let ratio = found / told.error;
        let holds = match told.useful() {
            true => (1.0 / 1.5..=1.5).contains(&ratio),
            false => lost > 0.0 || found > mechanism::USEFUL / 1.5,
        };
        all += 1;
        held += u32::from(holds);
        useful += u32::from(told.useful());
        println!("{}: {holds}, {ratio:.2}, found {found:.5}, lost {lost:.2}, {told:?}", setting.name);
    }
    println!("{held} of {all} hold; {useful} are called useful");
    assert!(f64::from(held) >= 0.6 * f64::from(all), "{held} of {all}");
}
