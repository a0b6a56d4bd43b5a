//! Turns the totals of one validation question into a verdict, or into the reason why no rows can have produced them.

use super::formulas::{self, finite};
use super::{DaviesBouldin, Geometry, HardClusters, Held, Indices, Verdict};
use crate::totals_check::{SLACK, check_values, check_weights};
use crate::{Centres, Error, distance, refuse};

/// Two centres closer together than this part of the mean distance between rows and centres have collapsed.
const COLLAPSED: f64 = 0.01;

/// The verdict from the totals of the basic validation at `centres`: distances, memberships, objective. `rows` is N where it
/// is known; otherwise the sum of memberships counts.
pub(crate) fn basic(
    centres: &Centres,
    geometry: Geometry<'_>,
    values: &[f64],
    rows: Option<u64>,
) -> Result<Verdict, Error> {
    check_values(values, 2 * centres.k() + 1)?;
    let (distances, rest) = values.split_at(centres.k());
    let (memberships, objective) = rest.split_at(centres.k());
    let shape = Shape::new(centres, geometry)?;
    refuse(shape.q == 2.0, without_coordinates)?;
    shape.basic([distances, distances, memberships], objective[0], rows)
}

/// The verdict from all totals, with sums of coordinates and of squared deviations where `vectors` says so.
pub(crate) fn full(
    centres: &Centres,
    vectors: bool,
    geometry: Geometry<'_>,
    values: &[f64],
    rows: Option<u64>,
) -> Result<Verdict, Error> {
    let (k, d) = (centres.k(), centres.columns());
    check_values(values, 7 * k + SCALARS + if vectors { 2 * k * d } else { 0 })?;
    Full::new(values, k).verdict(&Shape::new(centres, geometry)?, rows)
}

fn without_coordinates() -> Error {
    Error::parameter("Davies-Bouldin with q = 2 needs sums of coordinates, which were not asked")
}

/// What is known of the centres.
struct Shape<'a> {
    /// Distances between centres, K x K.
    apart: Vec<f64>,
    /// The same for Davies-Bouldin, where its p is not 2; and its q.
    norms: Option<Vec<f64>>,
    q: f64,
    centres: Option<&'a Centres>,
    k: usize,
    columns: usize,
}

impl<'a> Shape<'a> {
    fn new(asked: &Centres, geometry: Geometry<'a>) -> Result<Self, Error> {
        let k = asked.k();
        let shape = match geometry {
            Geometry::Centres(centres, by) => {
                by.check()?;
                Self {
                    apart: formulas::apart(centres, 2.0),
                    norms: (by.p != 2.0).then(|| formulas::apart(centres, by.p)),
                    q: by.q,
                    centres: Some(centres),
                    k: centres.k(),
                    columns: centres.columns(),
                }
            }
            Geometry::Apart(apart, columns) => {
                let DaviesBouldin { q, .. } = DaviesBouldin::default();
                Self { apart: apart.to_vec(), norms: None, q, centres: None, k, columns }
            }
        };
        let usable = |distance: &f64| *distance >= 0.0; // false for NaN
        let fits = shape.k == k && shape.columns > 0 && shape.apart.len() == k * k && shape.apart.iter().all(usable);
        refuse(!fits, || Error::implausible("the distances between centres are not those of the question"))?;
        Ok(shape)
    }

    /// Distances between centres for Davies-Bouldin.
    fn norms(&self) -> &[f64] {
        self.norms.as_ref().unwrap_or(&self.apart)
    }

    fn collapsed(&self, distances: &[f64], n: f64) -> bool {
        let mean = distances.iter().sum::<f64>() / (n * self.k as f64);
        formulas::closest(&self.apart, self.k).is_some_and(|closest| closest <= COLLAPSED * mean)
    }

    /// What both questions tell: sums of distances, of those to the power of q, and of memberships (K each), and the objective.
    fn basic(
        &self,
        [distances, powers, memberships]: [&[f64]; 3],
        objective: f64,
        rows: Option<u64>,
    ) -> Result<Verdict, Error> {
        check_weights(memberships, rows, "A")?;
        let negative = distances.iter().any(|distance| *distance < 0.0) || objective < 0.0;
        refuse(negative, || Error::implausible("a sum of distances is negative"))?;
        // Memberships of a row add up to 1, so their grand total is N even where nobody may count rows.
        let all = memberships.iter().sum::<f64>();
        let count = rows.unwrap_or(all.round() as u64);
        let n = count as f64;
        refuse(count == 0, || Error::implausible("there are no rows"))?;
        let others = (all - n).abs() > 0.5 + SLACK * n;
        refuse(others, || Error::implausible("the memberships do not add up to the number of rows"))?;
        let fuzzy = formulas::fuzzy_davies_bouldin_apart(self.norms(), powers, memberships, n, self.q);
        let indices = Indices {
            fuzzy_davies_bouldin: finite(fuzzy),
            xie_beni: formulas::xie_beni(objective, n, formulas::closest(&self.apart, self.k)),
            ..Indices::default()
        };
        let collapsed = self.collapsed(distances, n);
        let held = Held { mass: memberships.to_vec(), ..Held::default() };
        Ok(Verdict { indices, objective, rows: count, collapsed, clusters: None, held })
    }
}

/// Sums over memberships and distances that every full validation has.
const SCALARS: usize = 4;

/// All totals, block by block.
struct Full<'a> {
    rows: &'a [f64],
    squares: &'a [f64],
    own: &'a [f64],
    distances: &'a [f64],
    memberships: &'a [f64],
    powers: &'a [f64],
    objectives: &'a [f64],
    /// `u^2`, `-u ln u`, other distances, other squares.
    scalars: &'a [f64],
    /// Sums of coordinates of own rows, K x d; empty where they were not asked.
    vectors: &'a [f64],
    /// Their squared deviations from the centre, d x K; likewise.
    deviations: &'a [f64],
}

impl<'a> Full<'a> {
    fn new(values: &'a [f64], k: usize) -> Self {
        let block = |i: usize| &values[i * k..(i + 1) * k];
        let [rows, squares, own, distances, memberships, powers, objectives] = std::array::from_fn(block);
        let (scalars, vectors) = values[7 * k..].split_at(SCALARS);
        let (vectors, deviations) = vectors.split_at(vectors.len() / 2);
        Self { rows, squares, own, distances, memberships, powers, objectives, scalars, vectors, deviations }
    }

    fn verdict(&self, shape: &Shape<'_>, rows: Option<u64>) -> Result<Verdict, Error> {
        let objective = self.objectives.iter().sum::<f64>();
        check_weights(self.rows, rows, "n")?;
        check_weights(self.powers, rows, "U")?;
        let sums = [self.squares, self.own, self.objectives, self.deviations];
        let negative = sums.iter().copied().flatten().any(|sum| *sum < 0.0);
        refuse(negative, || Error::implausible("a sum of distances is negative"))?;
        let squares = if shape.q == 2.0 { Some(self.squares_around(shape)?) } else { None };
        let powers = squares.as_deref().unwrap_or(self.distances);
        let mut verdict = shape.basic([self.distances, powers, self.memberships], objective, rows)?;
        let n = verdict.rows as f64;
        let others = (self.rows.iter().sum::<f64>() - n).abs() > 0.5 + SLACK * n;
        refuse(others, || Error::implausible("the clusters do not add up to the number of rows"))?;
        (verdict.held.rows, verdict.held.weight) = (Some(self.rows.to_vec()), Some(self.powers.to_vec()));
        verdict.held.deviations = (!self.deviations.is_empty()).then(|| self.around_centres(shape.k));
        verdict.indices = self.whole(shape, n, verdict.indices)?;
        let filled: Vec<bool> = self.rows.iter().map(|rows| *rows > 0.5).collect();
        let own = if shape.q == 2.0 { self.squares } else { self.own };
        let mean = |(own, rows): (&f64, &f64)| if *rows > 0.5 { formulas::root(own / rows, shape.q) } else { 0.0 };
        let own: Vec<f64> = own.iter().zip(self.rows).map(mean).collect();
        verdict.indices.davies_bouldin = formulas::davies_bouldin(shape.norms(), &own, &filled);
        if let (Some(centres), false) = (shape.centres, self.vectors.is_empty()) {
            let clusters = self.clusters(centres)?;
            let mean: Vec<f64> = (0..shape.columns)
                .map(|column| self.vectors.iter().skip(column).step_by(shape.columns).sum::<f64>() / n)
                .collect();
            verdict.indices.fukuyama_sugeno = formulas::fukuyama_sugeno(objective, self.powers, centres, &mean);
            verdict.indices.calinski_harabasz =
                formulas::calinski_harabasz(&clusters.rows, &clusters.means, &clusters.scatter, &mean);
            verdict.clusters = Some(clusters);
        }
        Ok(verdict)
    }

    /// Adds the indices of `n` rows that need no totals of single clusters to the basic ones.
    fn whole(&self, shape: &Shape<'_>, n: f64, basic: Indices) -> Result<Indices, Error> {
        let (k, columns) = (shape.k, shape.columns as f64);
        let most = n * (1.0 + SLACK) + 1e-3;
        let bounds = [most, most * (k as f64).ln().max(0.0) + 1e-3, f64::MAX, f64::MAX];
        let outside = self.scalars.iter().zip(bounds).any(|(sum, bound)| *sum < -1e-3 || *sum > bound);
        refuse(outside, || Error::implausible("a sum over memberships or distances is not one of so many rows"))?;
        let [partition, entropy, others, other_squares] = [0, 1, 2, 3].map(|i| self.scalars[i].max(0.0));
        let (inertia, own) = (self.squares.iter().sum::<f64>(), self.own.iter().sum::<f64>());
        Ok(Indices {
            partition_coefficient: finite(partition / n),
            partition_entropy: finite(entropy / n),
            modified_partition_coefficient: formulas::modified_partition_coefficient(partition / n, k),
            wsse: finite(own / (n * columns)),
            osse: finite(others / (n * columns)),
            wsse_squared: finite(inertia / (n * columns)),
            osse_squared: finite(other_squares / (n * columns)),
            inertia: finite(inertia),
            ..basic
        })
    }

    /// `sum_j ||x_j - c_k||^2` over all rows (K), from what each cluster says of its own: `||x - c_k||^2 = ||x - c||^2 +
    /// 2 (c - c_k)(x - c) + ||c - c_k||^2`.
    fn squares_around(&self, shape: &Shape<'_>) -> Result<Vec<f64>, Error> {
        let Some(centres) = shape.centres.filter(|_| !self.vectors.is_empty()) else {
            return Err(without_coordinates());
        };
        let around = |to: &[f64]| -> f64 {
            let own = centres.rows().zip(self.vectors.chunks_exact(shape.columns)).zip(self.rows).zip(self.squares);
            let each = own.map(|(((centre, sum), rows), squares)| {
                let columns = centre.iter().zip(to).zip(sum);
                let cross = columns.map(|((c, to), sum)| (c - to) * (sum - rows * c)).sum::<f64>();
                squares + 2.0 * cross + rows * distance::squared(centre, to)
            });
            each.sum::<f64>().max(0.0)
        };
        Ok(centres.rows().map(around).collect())
    }

    /// Standard deviations of own rows around the centre, K x d; 0 where a cluster is empty.
    fn around_centres(&self, k: usize) -> Vec<Vec<f64>> {
        let of =
            |c: usize| self.deviations.iter().skip(c).step_by(k).map(move |sum| (sum / self.rows[c].max(1.0)).sqrt());
        (0..k).map(|c| of(c).collect()).collect()
    }

    /// Means of the hard clusters, and the scatter around them by the shift theorem.
    fn clusters(&self, centres: &Centres) -> Result<HardClusters, Error> {
        let clear: Vec<f64> = self.rows.iter().map(|rows| if *rows > 0.5 { *rows } else { 0.0 }).collect();
        let means = centres.averaged(self.vectors, &clear);
        let means = Centres::new(centres.k(), centres.columns(), means).map_err(Error::implausible)?;
        // A single row has none, whatever rounding leaves of the difference.
        let scatter = |k: usize| {
            let moved = self.rows[k] * distance::squared(means.row(k), centres.row(k));
            if self.rows[k] > 1.5 { (self.squares[k] - moved).max(0.0) } else { 0.0 }
        };
        let scatter: Vec<f64> = (0..centres.k()).map(scatter).collect();
        let rows = self.rows.iter().map(|rows| rows.round()).collect();
        Ok(HardClusters { rows, means, scatter })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Validation;
    use crate::{Batch, Domain, Prepared, Query, Scaling, pooled};

    fn query(centres: &Centres, vectors: bool) -> Query {
        Query::Validation(Validation { centres: centres.clone(), m: 2.0, vectors })
    }

    fn totals(rows: &[f64], query: &Query) -> (Vec<f64>, Option<u64>) {
        let domain = Domain::new(vec![0.0], vec![1.0], Scaling::Box).unwrap();
        let totals = pooled::totals(&Batch::from(query.clone()), &[Prepared::known(rows, &domain)]).unwrap();
        (totals.values, totals.rows)
    }

    fn verdict(centres: &Centres, vectors: bool, rows: &[f64]) -> Verdict {
        let query = query(centres, vectors);
        let (values, n) = totals(rows, &query);
        query.verdict(Geometry::of(centres), &values, n).unwrap()
    }

    fn centres(values: &[f64]) -> Centres {
        Centres::new(values.len(), 1, values.to_vec()).unwrap()
    }

    #[test]
    fn distances_between_centres_are_enough_for_most() {
        let centres = centres(&[0.1, 0.5, 0.9]);
        let rows = [0.0, 0.2, 0.4, 0.5, 0.95, 1.0];
        for query in [query(&centres, false), Query::fuzzy_validation(centres.clone(), 2.0)] {
            let (values, n) = totals(&rows, &query);
            let known = query.verdict(Geometry::of(&centres), &values, n).unwrap();
            let apart = formulas::apart(&centres, 2.0);
            assert_eq!(query.verdict(Geometry::Apart(&apart, 1), &values, n).unwrap(), known);
            assert!(query.verdict(Geometry::Apart(&apart[1..], 1), &values, n).is_err());
            assert!(query.verdict(Geometry::Apart(&[f64::NAN; 9], 1), &values, n).is_err());
        }
        let query = query(&centres, true);
        let (values, n) = totals(&rows, &query);
        let known = query.verdict(Geometry::of(&centres), &values, n).unwrap();
        assert!(known.indices.calinski_harabasz.is_some() && known.indices.fukuyama_sugeno.is_some());
        let blind = query.verdict(Geometry::Apart(&formulas::apart(&centres, 2.0), 1), &values, n).unwrap();
        assert!(blind.indices.calinski_harabasz.is_none() && blind.clusters.is_none());
        assert_eq!(blind.indices.davies_bouldin, known.indices.davies_bouldin);
    }

    /// Two rows at each centre, one on it and one 2 or 4 away; the centres lie 3 and 4 apart.
    #[test]
    fn exponents_by_hand() {
        let domain = Domain::new(vec![0.0; 2], vec![10.0; 2], Scaling::None).unwrap();
        let site = Prepared::known(&[0.0, 0.0, 0.0, 2.0, 3.0, 4.0, 3.0, 8.0], &domain);
        let centres = Centres::from_rows(&[vec![0.0, 0.0], vec![3.0, 4.0]]).unwrap();
        let asked = |vectors| query(&centres, vectors);
        let judged = |query: &Query, p: f64, q: f64| {
            let totals = pooled::totals(&Batch::from(query.clone()), std::slice::from_ref(&site)).unwrap();
            query.verdict(Geometry::Centres(&centres, DaviesBouldin { p, q }), &totals.values, totals.rows)
        };
        let third = 91f64.cbrt();
        // Sums over all rows of the distances to each centre, and of their squares.
        let far = [7.0 + 73f64.sqrt(), 9.0 + 13f64.sqrt()];
        for (p, q, apart, hard, fuzzy) in [
            (2.0, 1.0, 5.0, [1.0, 2.0], far.map(|sum| sum / 4.0)),
            (1.0, 1.0, 7.0, [1.0, 2.0], far.map(|sum| sum / 4.0)),
            (3.0, 2.0, third, [2f64.sqrt(), 8f64.sqrt()], [25.5f64.sqrt(), 13.5f64.sqrt()]),
            (500.0, 2.0, 4.0, [2f64.sqrt(), 8f64.sqrt()], [25.5f64.sqrt(), 13.5f64.sqrt()]),
        ] {
            let verdict = judged(&asked(true), p, q).unwrap();
            let mass = &verdict.held.mass;
            let fuzzy = (mass[0] / 4.0 * fuzzy[0] + mass[1] / 4.0 * fuzzy[1]) / apart;
            let off = [
                verdict.indices.davies_bouldin.unwrap() - (hard[0] + hard[1]) / apart,
                verdict.indices.fuzzy_davies_bouldin.unwrap() - fuzzy,
            ];
            assert!(off.iter().all(|off| off.abs() < 1e-12), "p {p} q {q}: {off:?}");
        }
        for (p, q) in [(0.5, 1.0), (f64::NAN, 1.0), (f64::INFINITY, 1.0), (2.0, 3.0), (2.0, 1.5), (2.0, f64::NAN)] {
            assert!(matches!(judged(&asked(true), p, q), Err(Error::Parameter(_))), "p {p} q {q}");
        }
        for query in [asked(false), Query::fuzzy_validation(centres.clone(), 2.0)] {
            assert!(judged(&query, 2.0, 2.0).unwrap_err().to_string().contains("sums of coordinates"));
            assert!(judged(&query, 1.0, 1.0).is_ok());
        }
    }

    #[test]
    fn empty_and_single_clusters_and_one_cluster() {
        let three = centres(&[0.1, 0.6, 5.0]);
        let verdict_of_three = verdict(&three, true, &[0.1, 0.2, 0.7]);
        let clusters = verdict_of_three.clusters.unwrap();
        assert_eq!((clusters.rows.as_slice(), clusters.means.row(2)), ([2.0, 1.0, 0.0].as_slice(), [5.0].as_slice()));
        assert_eq!((clusters.scatter[1], clusters.scatter[2]), (0.0, 0.0));
        // Only the two clusters with rows count: (0.05 + 0.1) / 0.5 for both.
        assert!((verdict_of_three.indices.davies_bouldin.unwrap() - 0.3).abs() < 1e-12);

        let indices = verdict(&centres(&[0.3]), true, &[0.1, 0.2, 0.7]).indices;
        assert_eq!((indices.partition_coefficient, indices.partition_entropy), (Some(1.0), Some(0.0)));
        assert_eq!((indices.fuzzy_davies_bouldin, indices.osse), (None, Some(0.0)));
        assert_eq!((indices.xie_beni, indices.davies_bouldin, indices.calinski_harabasz), (None, None, None));
        assert_eq!(indices.modified_partition_coefficient, None);
    }

    #[test]
    fn centres_on_one_spot_have_collapsed() {
        for (at, collapsed) in [(0.5001, true), (0.6, false), (0.5, true)] {
            assert_eq!(verdict(&centres(&[0.5, at]), false, &[0.0, 0.3, 0.7, 1.0]).collapsed, collapsed);
        }
    }

    #[test]
    fn impossible_totals_are_refused() {
        let centres = centres(&[0.1, 0.9]);
        let query = query(&centres, true);
        let (good, n) = totals(&[0.0, 0.2, 0.8, 1.0], &query);
        assert!(query.verdict(Geometry::of(&centres), &good, n).is_ok());
        assert!(query.verdict(Geometry::of(&centres), &good, None).is_ok());
        let negative = [(0, -1.0), (2, -1.0), (5, -0.1), (6, -0.1), (11, -0.1), (12, -0.1), (16, -1.0), (17, -1.0)];
        let too_large = [(0, 3.0), (8, 0.1), (9, 9.0), (14, 5.0), (15, 4.0)];
        for (at, value) in negative.into_iter().chain(too_large) {
            let mut values = good.clone();
            values[at] = value;
            assert!(query.verdict(Geometry::of(&centres), &values, n).is_err(), "{at}");
        }
    }
}
