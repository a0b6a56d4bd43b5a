//! The synthetic data of the papers, one file each.

pub mod ffcm;
pub mod fkm;
pub mod g2;

/// For the tests of the generators: how often a label occurs, and the mean and standard deviation of its rows, by column.
#[cfg(test)]
fn moments(example: &veilsum_cluster::synthetic::Example, label: usize) -> (usize, Vec<f64>, Vec<f64>) {
    let (rows, labels) = (example.pooled(), example.labels());
    let own: Vec<&[f64]> = rows.iter().zip(&labels).filter(|(_, own)| **own == label).map(|(row, _)| row).collect();
    let n = own.len() as f64;
    let mean: Vec<f64> = (0..rows.columns()).map(|j| own.iter().map(|row| row[j]).sum::<f64>() / n).collect();
    let square = |j: usize| own.iter().map(|row| (row[j] - mean[j]) * (row[j] - mean[j])).sum::<f64>();
    let sd = (0..rows.columns()).map(|j| (square(j) / n).sqrt()).collect();
    (own.len(), mean, sd)
}
