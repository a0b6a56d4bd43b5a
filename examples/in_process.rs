//! A federation of four sites in one process, as a library: rows in, centres out, and what the coordinator received.
//!
//! ```sh
//! cargo run --release --example in_process
//! ```

use veilsum_cluster::{Algorithm, Rows, method::Seeding, random::Stream};
use veilsum_node::{
    loopback::{self, LoopbackConfig, LoopbackSite},
    plan::{Column, PlanSpec},
};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Two groups of points in the plane, unevenly spread over four sites.
    let mut random = Stream::new(7, b"veilsum example in proc.");
    let mut sites = Vec::new();
    for site in 0..4u32 {
        let mut values = Vec::new();
        for _ in 0..100 {
            let centre = if random.unit() < 0.2 + 0.2 * f64::from(site) { 0.25 } else { 0.75 };
            let [x, y] = random.normal_pair();
            values.extend([(centre + 0.05 * x).clamp(0.0, 1.0), (1.0 - centre + 0.05 * y).clamp(0.0, 1.0)]);
        }
        sites.push(LoopbackSite::new(format!("site-{site}"), Rows::new(values, 2)?));
    }
    let column = |name: &str| Column { name: name.into(), lower: 0.0, upper: 1.0 };
    let fcm = Algorithm::Fcm { m: 2.0, epsilon: 1e-6, max_rounds: 50 };
    let work = PlanSpec::plain(vec![column("x"), column("y")], fcm, 2, Seeding::Uniform { seed: 3 });
    let run = loopback::run(LoopbackConfig { record: true, ..LoopbackConfig::new(sites, work) }).await?;
    let result = run.result?;
    println!("{} rounds, converged: {}", result.rounds, result.converged == Some(true));
    for (centre, mass) in result.centres.iter().zip(result.clusters.mass.iter().flatten()) {
        println!("centre ({:.3}, {:.3}), mass {mass:.1}", centre[0], centre[1]);
    }
    let frames = run.coordinator_view.lock().map(|view| view.len()).unwrap_or(0);
    println!("the coordinator received {frames} frames; not one of them holds a site's sums");
    Ok(())
}
