//! Words that count rows: none is negative, and together they are the rows, so a wrong answer often shows by itself.

use veilsum_cluster::{Batch, Domain, Query};

use crate::contract::{AskedBlock, kind_of};

/// What a block's words add up to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sum {
    /// Each of the groups of so many words: every row once.
    Rows(usize),
    /// The same for shares that are rounded row by row.
    Shares(usize),
    /// Each of the groups: every row once at most.
    AtMost(usize),
}

/// The blocks of a query that count rows, by their place in its layout.
fn sums_of(query: &Query, blocks: &[AskedBlock]) -> Vec<(usize, Sum)> {
    let at = |name: &str| blocks.iter().position(|block| block.name == name);
    let all = |name: &str, sum: fn(usize) -> Sum| at(name).map(|at| (at, sum(blocks[at].len))).into_iter().collect();
    match query {
        Query::FuzzySums(_) | Query::ShapedSums(_) => all("weights", Sum::AtMost),
        Query::LocalMeans(_) if kind_of(query) == "local_means" => all("rows", Sum::Rows),
        Query::LocalMeans(_) => all("rows", Sum::AtMost),
        Query::FuzzyValidation(_) => all("memberships", Sum::Shares),
        Query::Validation(_) => {
            [all("cluster_rows", Sum::Rows), all("memberships", Sum::Shares), all("powers", Sum::AtMost)].concat()
        }
        Query::Moments(_) => all("rows", Sum::Rows),
        Query::Histogram(q) => vec![(0, Sum::AtMost(q.bins as usize + 1))],
        _ => Vec::new(),
    }
}

/// The name of the first block whose counts of `rows` rows do not add up.
pub fn wrong(batch: &Batch, domain: &Domain, blocks: &[AskedBlock], rows: u64, words: &[i64]) -> Option<String> {
    // A batch whose layout is not to be had was refused before it was asked.
    let domain = batch.domain(domain).ok()?;
    let (mut blocks, mut words) = (blocks, words);
    for query in &batch.queries {
        let (own, more) = blocks.split_at(query.layout(&domain).len().min(blocks.len()));
        blocks = more;
        let sums = sums_of(query, own);
        for (at, block) in own.iter().enumerate() {
            let (these, next) = words.split_at(block.len.min(words.len()));
            words = next;
            let off = |(place, sum): &(usize, Sum)| *place == at && !adds_up(*sum, block.fraction_bits, rows, these);
            if sums.iter().any(off) {
                return Some(block.name.clone());
            }
        }
    }
    None
}

fn adds_up(sum: Sum, fraction_bits: i32, rows: u64, words: &[i64]) -> bool {
    let (Sum::Rows(group) | Sum::Shares(group) | Sum::AtMost(group)) = sum;
    let Some(all) = u32::try_from(fraction_bits).ok().and_then(|f| i128::from(rows).checked_shl(f)) else {
        return true;
    };
    // Every word of every row is rounded by half a step at most.
    let slack = i128::from(rows) * group as i128;
    words.chunks(group.max(1)).all(|words| {
        let total: i128 = words.iter().map(|w| i128::from(*w)).sum();
        words.iter().all(|w| *w >= 0)
            && match sum {
                Sum::Rows(_) => total == all,
                Sum::Shares(_) => (total - all).abs() <= slack,
                Sum::AtMost(_) => total <= all + slack,
            }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_the_rows() {
        let f = 4;
        assert!(adds_up(Sum::Rows(2), f, 3, &[16, 32]) && !adds_up(Sum::Rows(2), f, 3, &[16, 33]));
        assert!(!adds_up(Sum::Rows(2), f, 3, &[-16, 64]));
        assert!(adds_up(Sum::Shares(2), f, 3, &[16, 30]) && !adds_up(Sum::Shares(2), f, 3, &[16, 20]));
        assert!(adds_up(Sum::AtMost(1), f, 3, &[0, 48, 51]) && !adds_up(Sum::AtMost(1), f, 3, &[0, 60]));
    }
}
