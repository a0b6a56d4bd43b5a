//! The circle and the committee, drawn from a seed that nobody chose (spec section 17.4; Bell et al. 2020, section 3).
//!
//! Sites stand on a circle in a random order, each joined to the next `degree`/2 on either side. A random regular graph
//! would do as well on average; on the circle the one way to cut survivors apart is to see, and to forbid: the last site of a
//! piece has no honest survivor in the `degree`/2 places after it, so where it must have x more than `degree`/2 survivors
//! around it, x of these places are corrupt. Pieces have two such ends at least, in windows that share no place;
//! [`super::size`] makes two such windows improbable.

use super::{bits::Bits, size::Sizes};
use crate::{
    mask::{self, Sign},
    suite::{self, Hash, Secret},
};

/// Who is next to whom, by places in the directory.
pub(crate) struct Graph {
    /// The member at every place of the circle.
    circle: Vec<u16>,
    /// The place of every member.
    place: Vec<u16>,
    side: usize,
    /// Ascending.
    pub(crate) committee: Vec<u16>,
}

/// A random order of 0..n. Every order has probability (1 + 2^-37)/n! at most for the sizes allowed.
fn shuffled(seed: &Hash, label: &str, n: usize) -> Vec<u16> {
    let mut words = vec![0u64; n];
    mask::apply(&mut words, &Secret::new(suite::hash(label, &[&seed.0]).0), Sign::Plus);
    let mut order: Vec<u16> = (0..n as u16).collect();
    for i in (1..n).rev() {
        order.swap(i, ((u128::from(words[i]) * (i as u128 + 1)) >> 64) as usize);
    }
    order
}

impl Graph {
    /// [SPA-8].
    pub(crate) fn draw(seed: &Hash, members: usize, sizes: &Sizes) -> Graph {
        let circle = shuffled(seed, "sparse circle", members);
        let mut place = vec![0; members];
        (0u16..).zip(&circle).for_each(|(at, member)| place[usize::from(*member)] = at);
        let mut committee = shuffled(seed, "sparse committee", members);
        committee.truncate(sizes.committee);
        committee.sort_unstable();
        Graph { circle, place, side: (sizes.degree / 2).min((members - 1) / 2), committee }
    }

    /// Ascending.
    pub(crate) fn neighbours(&self, member: u16) -> Vec<u16> {
        let n = self.circle.len();
        let at = usize::from(self.place[usize::from(member)]);
        let mut near: Vec<u16> =
            (1..=self.side).flat_map(|d| [(at + d) % n, (at + n - d) % n]).map(|p| self.circle[p]).collect();
        near.sort_unstable();
        near
    }

    /// The members around the circle.
    #[cfg(test)]
    pub(crate) fn order(&self) -> &[u16] {
        &self.circle
    }

    /// A member of `alive` with fewer than `nearby` neighbours in it ([SPA-19]).
    pub(crate) fn lonely(&self, alive: &Bits, nearby: usize) -> Option<u16> {
        let n = self.circle.len();
        let at = |p: usize| usize::from(alive.has(self.circle[p % n]));
        let mut window: usize = (0..=2 * self.side).map(at).sum();
        for p in 0..n {
            let middle = self.circle[(p + self.side) % n];
            if alive.has(middle) && window - 1 < nearby {
                return Some(middle);
            }
            window = window + at(p + 2 * self.side + 1) - at(p);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(degree: usize, committee: usize) -> Sizes {
        Sizes { degree, nearby: 0, committee, quorum: 1, floor: 0 }
    }

    /// [SPA-8].
    #[test]
    fn neighbours_are_mutual_and_as_many_as_asked_for() {
        for (n, degree) in [(3usize, 2), (9, 4), (50, 12), (101, 30), (20, 30)] {
            let g = Graph::draw(&suite::hash("seed", &[&n.to_le_bytes()]), n, &sizes(degree, 2));
            let side = (degree / 2).min((n - 1) / 2);
            for u in 0..n as u16 {
                let near = g.neighbours(u);
                assert!(near.len() == 2 * side && near.is_sorted_by(|a, b| a < b) && !near.contains(&u));
                assert!(near.iter().all(|v| g.neighbours(*v).contains(&u)));
            }
            assert!(g.committee.len() == 2 && g.committee.is_sorted_by(|a, b| a < b));
        }
    }

    #[test]
    fn the_lonely_are_found() {
        let g = Graph::draw(&suite::hash("seed", &[]), 40, &sizes(8, 4));
        for step in 0..400u32 {
            let alive =
                Bits::of(40, (0..40u16).filter(|i| suite::hash("x", &[&step.to_le_bytes(), &[*i as u8]]).0[0] > 90));
            for nearby in 0..=8 {
                let alone = |u: u16| g.neighbours(u).iter().filter(|v| alive.has(**v)).count() < nearby;
                let slow: Vec<u16> = alive.list().filter(|u| alone(*u)).collect();
                match g.lonely(&alive, nearby) {
                    Some(u) => assert!(slow.contains(&u)),
                    None => assert!(slow.is_empty()),
                }
            }
        }
    }

    /// Whether the survivors who are not corrupt hang together.
    fn connected(g: &Graph, alive: &Bits, corrupt: &Bits) -> bool {
        let honest: Vec<u16> = alive.list().filter(|u| !corrupt.has(*u)).collect();
        let mut reached = Bits::none(g.circle.len());
        let mut todo: Vec<u16> = honest.first().copied().into_iter().collect();
        while let Some(u) = todo.pop() {
            if !reached.has(u) {
                reached.set(u, true);
                todo.extend(g.neighbours(u).into_iter().filter(|v| alive.has(*v) && !corrupt.has(*v)));
            }
        }
        honest.iter().all(|u| reached.has(*u))
    }

    /// The argument of the module's page, tried: the coordinator takes the honest sites of whole windows out. With x more
    /// than the corrupt sites of the second worst of two windows apart, nobody lonely at side + x means one piece. With one
    /// less, the two worst windows cut the circle and nobody is lonely: the rule is as loose as it can be.
    #[test]
    fn nobody_lonely_means_one_piece() {
        let (n, degree) = (60usize, 12usize);
        let side = degree / 2;
        let (mut one_piece, mut pieces, mut tight) = (0, 0, 0);
        for trial in 0..3_000u32 {
            let seed = suite::hash("trial", &[&trial.to_le_bytes()]);
            let g = Graph::draw(&seed, n, &sizes(degree, 2));
            let random = |i: usize| usize::from(seed.0[i % 32]);
            let corrupt = Bits::of(n, shuffled(&seed, "corrupt", n).into_iter().take(random(0) % 18));
            let held = |p: usize| (0..side).filter(|d| corrupt.has(g.circle[(p + d) % n])).count();
            let pairs = (0..n).flat_map(|a| (a + side..=(n - side).min(n - 1)).map(move |b| (a, b)));
            let pairs = pairs.filter(|(a, b)| n - (b - a) >= side);
            let (worst, at) = pairs.map(|(a, b)| (held(a).min(held(b)), (a, b))).max().expect("a pair");
            let without = |windows: [(usize, usize); 2]| {
                let mut alive = Bits::of(n, 0..n as u16);
                for (start, length) in windows {
                    for u in (0..length).map(|d| g.circle[(start + d) % n]) {
                        alive.set(u, corrupt.has(u));
                    }
                }
                alive
            };
            let nearby = side + worst + 1;
            let tried = [
                without([(at.0, side), (at.1, side)]),
                without([(random(1) % n, random(2) % (side + 2)), (random(3) % n, random(4) % (side + 2))]),
                without([(at.0, side), (random(5) % n, random(6) % 2)]),
            ];
            for alive in &tried {
                let whole = connected(&g, alive, &corrupt);
                let nobody = g.lonely(alive, nearby).is_none();
                assert!(whole || !nobody, "trial {trial}: cut apart with nobody lonely");
                one_piece += u32::from(nobody);
                pieces += u32::from(!whole);
                tight += u32::from(!whole && g.lonely(alive, nearby - 1).is_none());
            }
        }
        println!("{one_piece} in one piece, {pieces} cut, {tight} of them missed with one neighbour less");
        assert!(one_piece > 50 && pieces > 1_000 && tight > 50);
    }

    /// [SPA-8].
    #[test]
    fn another_seed_another_circle() {
        let a = Graph::draw(&suite::hash("a", &[]), 100, &sizes(8, 10));
        let b = Graph::draw(&suite::hash("b", &[]), 100, &sizes(8, 10));
        assert!(a.circle != b.circle && a.committee != b.committee);
        // Each member comes to each place about as often as to others: 5,000 draws, 50 a cell on average.
        let mut seen = [0u32; 100];
        for i in 0..5_000u32 {
            seen[usize::from(shuffled(&suite::hash("u", &[&i.to_le_bytes()]), "t", 100)[7])] += 1;
        }
        let chi: f64 = seen.iter().map(|s| (f64::from(*s) - 50.0).powi(2) / 50.0).sum();
        assert!((50.0..170.0).contains(&chi), "chi-square {chi} at 99 degrees of freedom");
    }
}
