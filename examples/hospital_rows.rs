//! Generates the rows of `examples/three-hospitals`: invented patients, three groups, differently mixed at each site.
//!
//! ```sh
//! cargo run --example hospital_rows -- examples/three-hospitals
//! ```

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use veilsum_cluster::random::Stream;

/// Age, systolic blood pressure, body mass index: means and standard deviations of the three groups.
const GROUPS: [[(f64, f64); 3]; 3] = [
    [(34.0, 6.0), (118.0, 8.0), (23.0, 2.0)],
    [(58.0, 7.0), (146.0, 10.0), (31.0, 2.5)],
    [(76.0, 5.0), (132.0, 9.0), (24.5, 2.0)],
];
/// Shares of the groups at hospitals a, b and c; no hospital has all three in number.
const SHARES: [[f64; 3]; 3] = [[0.7, 0.3, 0.0], [0.0, 0.6, 0.4], [0.4, 0.02, 0.58]];
const RANGES: [(f64, f64); 3] = [(0.0, 110.0), (70.0, 220.0), (12.0, 60.0)];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    write(&PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| "examples/three-hospitals".into())))
}

/// Writes the rows of all three.
pub(crate) fn write(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    for (site, shares) in ["hospital-a", "hospital-b", "hospital-c"].iter().zip(SHARES) {
        let mut random = Stream::new(u64::from(site.as_bytes()[9]), b"veilsum hospital rows v1");
        let mut text = String::from("age,systolic,bmi,label\n");
        for _ in 0..240 {
            let u = random.unit();
            let group = if u < shares[0] {
                0
            } else if u < shares[0] + shares[1] {
                1
            } else {
                2
            };
            let normal: Vec<f64> = (0..2).flat_map(|_| random.normal_pair()).collect();
            let value = |c: usize| {
                let (mean, sd) = GROUPS[group][c];
                (mean + sd * normal[c]).clamp(RANGES[c].0, RANGES[c].1)
            };
            writeln!(text, "{:.0},{:.0},{:.1},{group}", value(0), value(1), value(2))?;
        }
        let path = folder.join(site);
        fs::create_dir_all(&path)?;
        fs::write(path.join("rows.csv"), text)?;
    }
    Ok(())
}
