//! Whole numbers from few sums: short vectors of a lattice (Lenstra, Lenstra & Lovász 1982, with floating orthogonalisation after
//! Schnorr & Euchner 1994). It takes eighty lines and no crate.

/// Quality of the reduction.
const DELTA: f64 = 0.99;
/// Bits that a number is rounded to.
const BITS: f64 = (1u64 << 30) as f64;

fn dot(a: &[i128], b: &[i128]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum::<i128>() as f64
}

/// Reduces the rows of a basis; they must be independent, and below 2^60.
fn reduce(basis: &mut [Vec<i128>]) {
    let n = basis.len();
    let (mut r, mut mu) = (vec![vec![0.0f64; n]; n], vec![vec![0.0f64; n]; n]);
    if let Some(first) = basis.first() {
        r[0][0] = dot(first, first);
    }
    let mut k = 1;
    // A basis of such numbers takes some thousands of steps.
    for _ in 0..1_000_000 {
        if k >= n {
            return;
        }
        loop {
            for j in 0..k {
                r[k][j] = dot(&basis[k], &basis[j]) - (0..j).map(|i| mu[j][i] * r[k][i]).sum::<f64>();
                mu[k][j] = r[k][j] / r[j][j];
            }
            let mut changed = false;
            for j in (0..k).rev() {
                let q = mu[k][j].round();
                if q == 0.0 {
                    continue;
                }
                changed = true;
                (0..j).for_each(|i| mu[k][i] -= q * mu[j][i]);
                let (before, own) = basis.split_at_mut(k);
                own[0].iter_mut().zip(&before[j]).for_each(|(x, y)| *x -= q as i128 * y);
            }
            if !changed {
                break;
            }
        }
        let without = dot(&basis[k], &basis[k]) - (0..k - 1).map(|i| mu[k][i] * r[k][i]).sum::<f64>();
        r[k][k] = without - mu[k][k - 1] * r[k][k - 1];
        if DELTA * r[k - 1][k - 1] <= without {
            k += 1;
        } else {
            basis.swap(k, k - 1);
            r[k - 1][k - 1] = without;
            k = (k - 1).max(1);
        }
    }
}

/// The n whole numbers near `guess` each for which the vectors of `parts` (n, of m numbers below 2^10 each) add up to the m `totals`;
/// none where no short vector says so.
pub fn whole_numbers(parts: &[Vec<f64>], totals: &[f64], guess: f64) -> Option<Vec<f64>> {
    let (n, m) = (parts.len(), totals.len());
    let whole = |x: f64| (x * BITS).round() as i128;
    let sum = |j: usize| parts.iter().map(|p| p[j]).sum::<f64>();
    let marker = guess.max(1.0).round() as i128;
    let mut basis: Vec<Vec<i128>> = (0..n)
        .map(|i| {
            let unit = (0..n).map(|k| i128::from(i == k));
            unit.chain(parts[i].iter().map(|x| whole(*x))).chain([0]).collect()
        })
        .collect();
    let left = (0..m).map(|j| -whole(totals[j] - guess.round() * sum(j)));
    basis.push(vec![0; n].into_iter().chain(left).chain([marker]).collect());
    reduce(&mut basis);
    let row = basis.iter().find(|row| row.last().is_some_and(|x| x.abs() == marker))?;
    let sign = if row[n + m] > 0 { 1.0 } else { -1.0 };
    Some(row[..n].iter().map(|x| guess.round() + sign * *x as f64).collect())
}
