//! The forecast of a plan against runs on rows that it knows nothing of.

use veilsum_cluster::method::{Candidates, Seeding, mechanism};
use veilsum_cluster::metrics::matched_distance;
use veilsum_cluster::privacy::Noise;
use veilsum_cluster::random::Stream;
use veilsum_cluster::{Algorithm, Centres, Domain, OutOfBox, Prepared, Recipe, Rows, Scaling, distance, pooled};

/// Settings in the ordinary run; `VEILSUM_FORECASTS=200` is the long form.
const SETTINGS: u64 = 24;
/// Runs of each setting.
const RUNS: u64 = 5;

/// Clusters with rows in the unit box and a recipe for them, from overlapping to clear ones. Places, tails and weights differ from those
/// of a forecast.
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
        let (d, k) = (between(2.0, 13.0) as usize, between(2.0, 9.0) as usize);
        let rho = between(0.05f64.ln(), 1f64.ln()).exp();
        let half = between(0.2, 0.45);
        let mut truth = Centres::new(k, d, vec![0.0; k * d]).unwrap();
        let least = |centres: &Centres| {
            let pairs = (0..k).flat_map(|i| (0..i).map(move |j| (i, j)));
            pairs.map(|(i, j)| distance::euclidean(centres.row(i), centres.row(j))).fold(f64::INFINITY, f64::min)
        };
        for _ in 0..50 {
            let drawn = Centres::new(k, d, (0..k * d).map(|_| between(0.5 - half, 0.5 + half)).collect()).unwrap();
            truth = if least(&drawn) > least(&truth) { drawn } else { truth };
        }
        let apart = between(2.5f64.ln(), 7f64.ln()).exp();
        let deviations: Vec<f64> = (0..k).map(|_| least(&truth) / apart * between(0.7, 1.3)).collect();
        let shares: Vec<f64> = (0..k).map(|_| between(0.3f64.ln(), 2f64.ln()).exp()).collect();
        let hard = between(0.0, 1.0) < 0.5;
        let all: f64 = shares.iter().sum();
        let mut values = Vec::new();
        for ((centre, share), deviation) in truth.rows().zip(&shares).zip(&deviations) {
            for _ in 0..(n as f64 * share / all).round() as usize {
                // Somewhat longer tails than normal ones.
                let wide = deviation * if stream.unit() < 0.1 { 1.5 } else { 0.93 };
                values.extend(centre.iter().map(|x| (x + wide * stream.normal_pair()[0]).clamp(0.0, 1.0)));
            }
        }
        let domain = Domain::new(vec![0.0; d], vec![1.0; d], Scaling::Box).unwrap();
        let rows = Prepared::new(&Rows::new(values, d).unwrap(), &domain, OutOfBox::Refuse).unwrap();
        let m = veilsum_cluster::algorithm::usual_fuzzifier(d, n);
        let noise = Noise::usual(rho, n);
        let max_rounds = noise.usual_rounds(k as u32);
        let algorithm = match hard {
            true => Algorithm::Kmeans { epsilon: 0.0, max_rounds },
            false => Algorithm::Fcm { m, epsilon: 0.0, max_rounds },
        };
        let name = format!("{} of {n} rows, {d} columns, K = {k}, rho {rho:.2}, {apart:.2} apart", algorithm.name());
        let mut recipe = Recipe::plain(algorithm, k as u32, Seeding::Candidates(Candidates::usual(seed)));
        recipe.noise = Some(noise);
        Self { name, recipe, rows, truth }
    }

    /// The noise-free run from the true places, to its end.
    fn best(&self) -> Centres {
        let mut recipe = Recipe { noise: None, ..self.recipe.clone() };
        recipe.seeding = Seeding::Given { centres: self.truth.clone() };
        if let Algorithm::Fcm { max_rounds, .. } | Algorithm::Kmeans { max_rounds, .. } = &mut recipe.algorithm {
            *max_rounds = 40;
        }
        pooled::run(&mut recipe.run(self.rows.domain(), 1).unwrap(), &self.rows).unwrap().centres
    }

    fn objective(&self, rows: &Rows, centres: &Centres) -> f64 {
        let mut u = vec![0.0; centres.k()];
        let of = |x: &[f64]| match self.recipe.algorithm {
            Algorithm::Fcm { m, .. } => distance::memberships(x, centres.rows(), m, &mut u),
            _ => distance::nearest(x, centres.rows()).1,
        };
        rows.iter().map(of).sum()
    }

    /// Of every run the root mean square distance of its centres from the best ones, in parts of a range, and whether it lost a cluster or
    /// is worse by a tenth.
    fn measured(&self) -> Vec<(f64, bool)> {
        let (best, rows) = (self.best(), self.rows.packed().to_rows());
        let least = self.objective(&rows, &best);
        let run = |seed| {
            let found =
                crate::noisy::run(&self.recipe, &self.rows, &mut Stream::new(seed, b"veilsum test stream     "))
                    .centres;
            let off = matched_distance(&found, &best).unwrap().frobenius / (best.as_slice().len() as f64).sqrt();
            let lost = veilsum_cluster::metrics::lost(&found, &best, self.rows.domain()) > 0;
            (off, lost || self.objective(&rows, &found) > 1.1 * least)
        };
        (0..RUNS).map(run).collect()
    }
}

/// Of all runs 85 % lie in the range, and of those of plans that are called useful four of five keep every cluster.
#[test]
fn what_is_forecast_is_found() {
    let long: Option<u64> = std::env::var("VEILSUM_FORECASTS").ok().and_then(|n| n.parse().ok());
    let (mut held, mut all, mut kept, mut useful, mut missed) = (0, 0, 0, 0, 0);
    for seed in 0..long.unwrap_or(SETTINGS) {
        let setting = Setting::draw(seed);
        let told = mechanism::forecast(&setting.recipe, setting.rows.domain(), 1.0).unwrap().expect("noise");
        let found = setting.measured();
        for (off, bad) in &found {
            all += 1;
            held += u64::from((told.range[0]..=told.range[1]).contains(off));
            useful += u64::from(told.useful());
            kept += u64::from(told.useful() && !bad);
            missed += u64::from(!told.useful() && !bad);
        }
        println!("{}: {found:.4?}, {told:.4?}", setting.name);
    }
    println!("{held} of {all} runs in the range; {kept} of {useful} useful ones keep all; {missed} of no use do, too");
    assert!(held * 100 >= 85 * all, "{held} of {all}");
    assert!(kept * 10 >= 8 * useful && useful * 2 > all, "{kept} of {useful} of {all}");
}
