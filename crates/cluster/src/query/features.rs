//! Fuzzy feature vectors added into shared anchors (FFCF, Urio-Larrea).

use serde::{Deserialize, Serialize};

use super::family::{Block, Family, RoundHalf, Stage, same_columns};
use crate::kernel::{Form, Sums};
use crate::offline::features::{FeatureParams, Rules, features, usable_params};
use crate::random::Stream;
use crate::{AnswerError, Centres, Domain, Prepared, QueryError, distance};

/// Each feature vector counts at the nearest anchor.
///
/// Blocks, in this order: `LS` (B x d), `M` (B), `Q = SS + |LS|^2 / M` (B), and the number of sites that contribute (B).
/// They add up to exact merges: mean `LS / M`, scatter `Q - |LS|^2 / M`. [`RoundHalf::Counts`] has `M` and the sites,
/// [`RoundHalf::Sums`] `LS`, `M` and `Q` of the anchors listed. The number of rows is not among them: it tells a large site from a
/// small one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Features {
    /// Shared anchors, B x d.
    pub anchors: Centres,
    /// The site's own part.
    pub params: FeatureParams,
    /// Which half; the counts are `M` and the number of sites.
    pub part: RoundHalf,
}

impl Family for Features {
    fn stage(&self) -> Stage {
        Stage::Iterating
    }

    fn check(&self, domain: &Domain) -> Result<(), QueryError> {
        same_columns(&self.anchors, domain)?;
        usable_params(&self.params).map_err(|what| QueryError::Parameter { what })?;
        self.part.check(self.anchors.k())
    }

    fn layout(&self, domain: &Domain) -> Vec<Block> {
        let (b, d) = (self.anchors.k(), domain.columns());
        let largest = domain.largest();
        let longest = domain.reach(&vec![0.0; d]);
        // A row that is added adds u |x|^2 and u^2 / (M + u) ||x - c||^2 to each Q, with M >= 1 and memberships that add up
        // to 1; merges add nothing.
        let square = longest * longest + domain.diameter().powi(2) / 2.0;
        let vectors = |b: usize| {
            [Block::per_row("LS", b * d, largest), Block::per_row("M", b, 1.0), Block::per_row("Q", b, square)]
        };
        let sites = Block::per_site("sites", b, 1.0);
        match &self.part {
            RoundHalf::Counts | RoundHalf::Changes(_) => vec![Block::per_row("M", b, 1.0), sites],
            RoundHalf::Sums(list) => vectors(list.len()).into(),
            RoundHalf::Both => vectors(b).into_iter().chain([sites]).collect(),
        }
    }

    fn answer<'f>(&self, rows: &Prepared, form: &'f Form, _: Option<&mut Stream>) -> Result<Sums<'f>, AnswerError> {
        let (b, d) = (self.anchors.k(), self.anchors.columns());
        let (mut ls, mut m, mut q, mut sites) = (vec![0.0; b * d], vec![0.0; b], vec![0.0; b], vec![0.0; b]);
        for feature in features(&rows.packed().to_rows(), &self.params, Rules::Conserving) {
            let (at, _) = distance::nearest(&feature.centre(), self.anchors.rows());
            ls[at * d..(at + 1) * d].iter_mut().zip(&feature.ls).for_each(|(total, sum)| *total += sum);
            m[at] += feature.m;
            q[at] += feature.square();
            sites[at] = 1.0;
        }
        Ok(form.whole(match &self.part {
            RoundHalf::Counts | RoundHalf::Changes(_) => [m, sites].concat(),
            RoundHalf::Both => [ls, m, q, sites].concat(),
            RoundHalf::Sums(list) => {
                let places = || list.iter().map(|at| *at as usize);
                let vectors = places().flat_map(|at| &ls[at * d..(at + 1) * d]);
                vectors.chain(places().map(|at| &m[at])).chain(places().map(|at| &q[at])).copied().collect()
            }
        }))
    }

    fn points(&self) -> Vec<&Centres> {
        vec![&self.anchors]
    }

    fn half(&self) -> Option<&RoundHalf> {
        Some(&self.part)
    }

    fn half_mut(&mut self) -> Option<&mut RoundHalf> {
        Some(&mut self.part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, OutOfBox, Query, Rows, Scaling, answer};
    use proptest::prelude::*;

    fn domain() -> Domain {
        Domain::new(vec![-1.0, 0.0], vec![1.0, 4.0], Scaling::None).unwrap()
    }

    fn question(part: RoundHalf) -> Features {
        let anchors = Centres::from_rows(&[vec![0.0, 1.0], vec![0.0, 3.0], vec![9.0, 9.0]]).unwrap();
        Features { anchors, params: FeatureParams { min: 2, max: 4, tau: 1.0, m: 2.0 }, part }
    }

    fn ask(question: &Features, rows: &[f64]) -> Vec<f64> {
        let site = Prepared::new(&Rows::new(rows.to_vec(), 2).unwrap(), &domain(), OutOfBox::Refuse).unwrap();
        answer(&Batch::from(Query::Features(question.clone())), &site).unwrap().values
    }

    #[test]
    fn what_is_asked_is_bounded() {
        assert_eq!(question(RoundHalf::Both).check(&domain()), Ok(()));
        for list in [vec![], vec![1, 1], vec![2, 1], vec![3]] {
            assert!(question(RoundHalf::Sums(list)).check(&domain()).is_err());
        }
        let mut greedy = question(RoundHalf::Both);
        greedy.params.max = u32::MAX;
        assert!(greedy.check(&domain()).is_err());
        greedy.params = FeatureParams { tau: f64::NAN, ..question(RoundHalf::Both).params };
        assert!(greedy.check(&domain()).is_err());
    }

    #[test]
    fn an_empty_site_adds_nothing_and_halves_fit_the_whole() {
        let whole = ask(&question(RoundHalf::Both), &[]);
        assert_eq!(whole, vec![0.0; 3 * 2 + 9]);
        let rows = [0.1, 0.2, -0.3, 3.5, 0.0, 3.6, 0.2, 0.1, 0.4, 1.0];
        let whole = ask(&question(RoundHalf::Both), &rows);
        assert_eq!(ask(&question(RoundHalf::Counts), &rows), [&whole[6..9], &whole[12..]].concat());
        assert_eq!(
            ask(&question(RoundHalf::Sums(vec![1])), &rows),
            [&whole[2..4], &whole[7..8], &whole[10..11]].concat()
        );
        assert_eq!(whole[12..], [1.0, 1.0, 0.0]);
    }

    proptest! {
        #[test]
        fn totals_keep_the_mass_and_their_bounds(
            values in prop::collection::vec((-1.0f64..=1.0, 0.0f64..=4.0), 0..60),
            m in prop::sample::select(vec![1.1, 2.0, 3.0]),
        ) {
            let rows: Vec<f64> = values.iter().flat_map(|(x, y)| [*x, *y]).collect();
            let mut question = question(RoundHalf::Both);
            question.params.m = m;
            let found = ask(&question, &rows);
            let n = values.len() as f64;
            prop_assert!((found[6..9].iter().sum::<f64>() - n).abs() <= 1e-12 * n);
            let mut rest = found.as_slice();
            for block in question.layout(&domain()) {
                let (head, tail) = rest.split_at(block.len);
                let most = block.bound * if block.per == crate::Per::Row { n } else { 1.0 };
                prop_assert!(head.iter().all(|x| x.abs() <= most * (1.0 + 1e-12)), "{}", block.name);
                rest = tail;
            }
            prop_assert!(rest.is_empty());
            // The scatter that the totals imply is never negative.
            for (at, m) in found[6..9].iter().enumerate().filter(|(_, m)| **m > 0.0) {
                let ls = &found[2 * at..2 * at + 2];
                let scatter = found[9 + at] - (ls[0] * ls[0] + ls[1] * ls[1]) / m;
                prop_assert!(scatter >= -1e-10 * (1.0 + found[9 + at]));
            }
        }
    }
}
