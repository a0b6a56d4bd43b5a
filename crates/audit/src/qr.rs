//! Least squares by Householder reflections (Golub & Van Loan, 4th ed., 5.2 and 5.4): the triangle of a QR factorisation, and the
//! part of a row space that stands above rounding, by column pivots. A matrix is a list of its columns. Nothing here forms a Gram
//! matrix, which would square the condition number; both parts use all cores where there is enough to do.

use rayon::prelude::*;

/// Columns of one length.
pub type Columns = Vec<Vec<f64>>;

/// Multiplications below which another core costs more than it saves.
const WORTH_SHARING: usize = 1 << 16;

/// The sum of products, in eight lanes.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (x, rest_x) = a.as_chunks::<8>();
    let (y, rest_y) = b.as_chunks::<8>();
    let mut lanes = [0.0; 8];
    for (x, y) in x.iter().zip(y) {
        lanes.iter_mut().zip(x.iter().zip(y)).for_each(|(l, (x, y))| *l += x * y);
    }
    lanes.iter().sum::<f64>() + rest_x.iter().zip(rest_y).map(|(x, y)| x * y).sum::<f64>()
}

/// Adds `by` times `x`.
pub fn add(to: &mut [f64], by: f64, x: &[f64]) {
    to.iter_mut().zip(x).for_each(|(to, x)| *to += by * x);
}

/// Reflects everything below row `k` of `own` onto row `k`, and `rest` along with it.
fn reflect(own: &mut [f64], rest: &mut [Vec<f64>], k: usize) {
    let size = dot(&own[k..], &own[k..]).sqrt();
    if size == 0.0 {
        return;
    }
    let end = if own[k] < 0.0 { size } else { -size };
    let mut v = own[k..].to_vec();
    v[0] -= end;
    let half = dot(&v, &v) / 2.0;
    let turn = |column: &mut Vec<f64>| {
        let share = dot(&v, &column[k..]) / half;
        add(&mut column[k..], -share, &v);
    };
    if rest.len() * v.len() < WORTH_SHARING {
        rest.iter_mut().for_each(turn);
    } else {
        rest.par_iter_mut().for_each(turn);
    }
    own[k..].fill(0.0);
    own[k] = end;
}

/// Turns the first `n` columns into an upper triangle; the columns after them are carried along.
pub fn triangularise(columns: &mut [Vec<f64>], n: usize) {
    let rows = columns.first().map_or(0, Vec::len);
    for k in 0..n.min(columns.len()).min(rows) {
        let (done, rest) = columns.split_at_mut(k + 1);
        reflect(&mut done[k], rest, k);
    }
}

/// Solves `R x = y`, R being the upper triangle in the first `y.len()` columns. Infinite where a diagonal entry is zero.
pub fn back(triangle: &[Vec<f64>], mut y: Vec<f64>) -> Vec<f64> {
    for i in (0..y.len()).rev() {
        y[i] /= triangle[i][i];
        let (above, x) = y.split_at_mut(i);
        add(above, -x[0], &triangle[i]);
    }
    y
}

/// An orthonormal basis of the row space of these columns, without what is shorter than `floor` or than 10^-15 of the
/// longest column: pivots are taken until nothing longer is left, so that it costs what the rank does.
pub fn row_space(mut columns: Columns, floor: f64) -> Columns {
    let n = columns.len();
    let rows = columns.first().map_or(0, Vec::len);
    let mut order: Vec<usize> = (0..n).collect();
    let (mut rank, mut least) = (0, floor);
    while rank < n.min(rows) {
        let length = |c: &Vec<f64>| dot(&c[rank..], &c[rank..]);
        let lengths: Vec<f64> = if (n - rank) * (rows - rank) < WORTH_SHARING {
            columns[rank..].iter().map(length).collect()
        } else {
            columns[rank..].par_iter().map(length).collect()
        };
        let Some((best, square)) = lengths.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1)) else {
            break;
        };
        if rank == 0 {
            least = least.max(1e-15 * square.sqrt());
        }
        if square.sqrt() <= least {
            break;
        }
        columns.swap(rank, rank + best);
        order.swap(rank, rank + best);
        let (done, rest) = columns.split_at_mut(rank + 1);
        reflect(&mut done[rank], rest, rank);
        rank += 1;
    }
    // Row i of the triangle has its pivot where all later rows are zero: from the last row on each is far from those before it.
    let mut basis: Columns = Vec::with_capacity(rank);
    for i in (0..rank).rev() {
        let mut row = vec![0.0; n];
        columns.iter().zip(&order).for_each(|(column, at)| row[*at] = column[i]);
        for _ in 0..2 {
            for other in &basis {
                let share = dot(other, &row);
                add(&mut row, -share, other);
            }
        }
        let size = dot(&row, &row).sqrt();
        row.iter_mut().for_each(|x| *x /= size);
        basis.push(row);
    }
    basis
}

#[cfg(test)]
mod tests {
    use super::*;
    use veilsum_cluster::random::Stream;

    fn random(rows: usize, columns: usize, stream: &mut Stream) -> Columns {
        (0..columns).map(|_| (0..rows).map(|_| stream.normal_pair()[0]).collect()).collect()
    }

    #[test]
    fn a_triangle_solves_least_squares() {
        println!("seed 4");
        let mut stream = Stream::new(4, b"veilsum audit test    v1");
        for (m, n) in [(9, 9), (300, 70), (40, 1)] {
            let a = random(m, n, &mut stream);
            let b = random(m, 1, &mut stream).remove(0);
            let mut columns = [a.clone(), vec![b.clone()]].concat();
            triangularise(&mut columns, n);
            let x = back(&columns, columns[n][..n].to_vec());
            let mut residual = b;
            a.iter().zip(&x).for_each(|(column, x)| add(&mut residual, -x, column));
            // It is orthogonal to every column, and as long as what is left below the triangle.
            assert!(a.iter().all(|column| dot(column, &residual).abs() < 1e-10), "{m} x {n}");
            let left = dot(&columns[n][n..], &columns[n][n..]);
            assert!((left - dot(&residual, &residual)).abs() < 1e-10, "{m} x {n}");
        }
    }

    #[test]
    fn a_row_space_has_the_rank_and_holds_the_rows() {
        println!("seed 5");
        let mut stream = Stream::new(5, b"veilsum audit test    v1");
        // 400 rows that are combinations of 6, over scales of 10^9; and dust.
        let (left, right) = (random(400, 6, &mut stream), random(6, 90, &mut stream));
        let scale = |i: usize| 10f64.powi(2 * i as i32 - 2);
        let columns: Columns = right
            .iter()
            .map(|r| {
                let mut column: Vec<f64> = (0..400).map(|_| 1e-9 * stream.normal_pair()[0]).collect();
                left.iter().enumerate().for_each(|(i, l)| add(&mut column, scale(i) * r[i], l));
                column
            })
            .collect();
        let basis = row_space(columns.clone(), 1e-3);
        assert_eq!(basis.len(), 6);
        for (i, a) in basis.iter().enumerate() {
            for (j, b) in basis.iter().enumerate() {
                assert!((dot(a, b) - f64::from(u8::from(i == j))).abs() < 1e-13);
            }
        }
        for at in [0, 17, 399] {
            let row: Vec<f64> = columns.iter().map(|c| c[at]).collect();
            let mut left = row.clone();
            basis.iter().for_each(|b| add(&mut left, -dot(b, &row), b));
            assert!(dot(&left, &left) < 1e-5, "row {at}");
        }
        assert!(row_space(columns, 1e15).is_empty());
    }
}
