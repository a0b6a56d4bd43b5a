//! How many neighbours, how large a committee, which thresholds: from the numbers of the plan (spec section 17.1).
//!
//! The sites stand on a circle in an order that nobody chose; each is joined to the `degree`/2 next ones on either
//! side. Who is missing is the coordinator's choice, made after it saw the circle, so nothing here is a bound for
//! missing sites at random but [`Sizes`]' two liveness bounds.

use serde::{Deserialize, Serialize};

use super::tail::{least_improbable, log2_up};
use crate::{
    error::Error,
    limits::{MAX_REVEALS, MAX_SPARSE_SITES},
};

/// What the federation supposes of its sites, and how sure it wants to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Params {
    /// Sites of the roster, in thousandths, that may collude with the coordinator.
    pub corrupt: u16,
    /// Sites of the roster, in thousandths, that may be missing from the last total of a run.
    pub missing: u16,
    /// A deck leaks a part of a total with probability 2^-this at most.
    pub secrecy_bits: u16,
    /// With the missing at random, a round fails for want of neighbours or of the committee with probability 2^-this.
    pub liveness_bits: u16,
}

impl Default for Params {
    fn default() -> Self {
        Params { corrupt: 200, missing: 100, secrecy_bits: 40, liveness_bits: 20 }
    }
}

/// The sizes of one deck.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Sizes {
    /// Neighbours of a site; even.
    pub degree: usize,
    /// Neighbours of a site that are in a total at least, where the site is in it.
    pub nearby: usize,
    /// Members of the share committee.
    pub committee: usize,
    /// Members of the committee that open a share, and whose signatures are a certificate.
    pub quorum: usize,
    /// Sites in a total at least.
    pub floor: usize,
}

impl Params {
    /// Sites of a roster of `sites` that may collude.
    pub fn colluders(&self, sites: usize) -> usize {
        sites * usize::from(self.corrupt) / 1_000
    }

    /// Sites of a roster of `sites` that a deck and a total hold at least.
    pub fn floor(&self, sites: usize) -> usize {
        sites - sites * usize::from(self.missing).min(1_000) / 1_000
    }

    /// The sizes for a deck of `members` of the roster's `sites` ([SPA-2]).
    ///
    /// # Errors
    /// `Error::Invalid` where the numbers allow none, or only such that the complete graph is the better choice.
    pub fn sizes(&self, sites: usize, members: usize) -> Result<Sizes, Error> {
        let bad = |why: String| Err(Error::invalid("plan", why, "SPA-2"));
        let (c, floor) = (self.colluders(sites), self.floor(sites));
        if sites > MAX_SPARSE_SITES || members > sites || members < floor || floor < c + 2 {
            return bad(format!(
                "{members} of {sites} sites, of which {c} may collude, where a deck holds {floor} at least"
            ));
        }
        let absent = members - floor;
        let (secrecy, liveness) = (u32::from(self.secrecy_bits) + 1, u32::from(self.liveness_bits) + 1);
        // A draw of the graph needs the random numbers of floor − c honest sites; each gives so many in a row.
        let draws = (MAX_REVEALS as usize * (sites - c)).div_ceil(floor - c);
        let circle = (8..members).step_by(8).find_map(|degree| {
            let side = degree / 2;
            // Two windows of the circle that share no place must fail at once, for m²/2 pairs of windows at most. How many
            // corrupt sites they hold is negatively associated (Joag-Dev & Proschan 1983), so the product is a bound.
            let corrupt = least_improbable(members, c, side, (secrecy + log2_up(draws)).div_ceil(2) + log2_up(members));
            let gone = least_improbable(members - 1, absent, degree, liveness + log2_up(members)) - 1;
            let nearby = side + corrupt;
            (nearby + gone <= degree).then_some((degree, nearby))
        });
        let committee = (8..members).step_by(4).find_map(|size| {
            // A site may be the only honest one that was shown its directory, so there are as many draws as sites.
            let reveals = MAX_REVEALS as usize * sites;
            let corrupt = least_improbable(members, c, size, secrecy + log2_up(reveals)) - 1;
            let gone = least_improbable(members, absent, size, liveness) - 1;
            let quorum = quorum(size, corrupt);
            (quorum + gone <= size).then_some((size, quorum))
        });
        match (circle, committee) {
            (Some((degree, nearby)), Some((committee, quorum))) => {
                Ok(Sizes { degree, nearby, committee, quorum, floor })
            }
            _ => bad(format!(
                "no sparse graph among {members} sites withstands {c} that collude and {absent} that are missing with a \
                 failure under 2^-{}: use the complete graph, or suppose less",
                self.secrecy_bits
            )),
        }
    }
}

/// The least t with 2t > size + corrupt: two sets of t members share an honest one.
fn quorum(size: usize, corrupt: usize) -> usize {
    (size + corrupt) / 2 + 1
}

/// Where the sizes of a deck come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Shape {
    /// From the plan's numbers.
    Proved(Params),
    /// Given, and as unsafe as they are; for tests with few sites only.
    #[cfg(test)]
    Forced(Sizes),
}

impl Shape {
    pub(crate) fn sizes(&self, sites: usize, members: usize) -> Result<Sizes, Error> {
        match self {
            Shape::Proved(params) => params.sizes(sites, members),
            #[cfg(test)]
            Shape::Forced(sizes) => Ok(*sizes),
        }
    }

    /// Sites that are supposed to collude.
    pub(crate) fn colluders(&self, sites: usize) -> usize {
        match self {
            Shape::Proved(params) => params.colluders(sites),
            #[cfg(test)]
            Shape::Forced(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_figure() {
        // The committee alone, at 2^-40 and one draw: 64 of 1,000, 200 of which collude, open at 51.
        let corrupt = least_improbable(1_000, 200, 64, 40) - 1;
        assert_eq!(quorum(64, corrupt), 51, "{corrupt} corrupt members");
    }

    #[test]
    fn the_table_of_the_specification() {
        let rows = [
            (1_000, [168, 126, 124, 94, 900]),
            (2_000, [184, 138, 136, 103, 1_800]),
            (4_000, [200, 150, 140, 107, 3_600]),
            (8_000, [216, 161, 144, 110, 7_200]),
            (16_000, [224, 167, 148, 113, 14_400]),
        ];
        for (n, [degree, nearby, committee, quorum, floor]) in rows {
            assert_eq!(Params::default().sizes(n, n).unwrap(), Sizes { degree, nearby, committee, quorum, floor });
        }
    }

    #[test]
    fn degree_grows_as_the_logarithm() {
        let sizes: Vec<Sizes> =
            [1_000, 2_000, 4_000, 8_000, 16_000].map(|n| Params::default().sizes(n, n).unwrap()).to_vec();
        for s in &sizes {
            println!("{s:?}");
            assert!(s.nearby > s.degree / 2 && s.nearby < s.degree && 2 * s.quorum > s.committee);
        }
        assert!(sizes.windows(2).all(|w| w[0].degree <= w[1].degree && w[0].committee <= w[1].committee + 8));
        assert!(sizes[4].degree < sizes[0].degree * 3 / 2, "sixteen times the sites, not half more neighbours");
    }

    /// Measured failures at bounds weak enough to be met: no more than the bound says, and not far fewer.
    /// [SPA-2].
    #[test]
    fn bounds_hold_and_are_not_loose() {
        use crate::{sparse::graph::Graph, suite};
        let (n, trials) = (400usize, 20_000u32);
        let p = Params { corrupt: 150, missing: 50, secrecy_bits: 1, liveness_bits: 3 };
        let sizes = p.sizes(n, n).unwrap();
        let (c, floor) = (p.colluders(n) as u16, p.floor(n));
        let side = sizes.degree / 2;
        let (mut cut, mut cut_by_less, mut seized, mut lost) = (0u32, 0u32, 0u32, 0u32);
        // The corrupt and the missing are the first numbers: the circle and the committee are what is random.
        let corrupt: Vec<bool> = (0..n as u16).map(|u| u < c).collect();
        for trial in 0..trials {
            let g = Graph::draw(&suite::hash("size", &[&trial.to_le_bytes()]), n, &sizes);
            let circle = g.order();
            let bad = |p: usize| usize::from(corrupt[usize::from(circle[p % n])]);
            let mut window: usize = (0..side).map(bad).sum();
            let (mut windows, mut by_less) = (Vec::new(), Vec::new());
            for p in 0..n {
                if window >= sizes.nearby - side {
                    windows.push(p);
                }
                if window + 4 >= sizes.nearby - side {
                    by_less.push(p);
                }
                window = window + bad(p + side) - bad(p);
            }
            // Two that share no place, the circle closed.
            let apart = |(a, b): (usize, usize)| b - a >= side && n - (b - a) >= side;
            let two = |w: &[usize]| w.iter().enumerate().any(|(i, a)| w[i..].iter().any(|b| apart((*a, *b))));
            cut += u32::from(two(&windows));
            cut_by_less += u32::from(two(&by_less));
            let colluding = g.committee.iter().filter(|u| corrupt[usize::from(**u)]).count();
            // Two sets of a quorum need not share an honest member.
            seized += u32::from(2 * sizes.quorum <= sizes.committee + colluding);
            let gone = g.committee.iter().filter(|u| usize::from(**u) < n - floor).count();
            lost += u32::from(sizes.committee - gone < sizes.quorum);
        }
        let draws = (MAX_REVEALS as usize * (n - usize::from(c))).div_ceil(floor - usize::from(c)) as f64;
        let rate = |count: u32| f64::from(count) / f64::from(trials);
        let reveals = f64::from(MAX_REVEALS) * n as f64;
        println!("{sizes:?}: cut {cut}, seized {seized}, lost {lost} of {trials}; {draws} draws");
        // Each event has half of the bound; three deviations are allowed to chance.
        let holds = |count: u32, bound: f64| rate(count) <= bound + 3.0 * (bound / f64::from(trials)).sqrt();
        assert!(holds(cut, 0.25 / draws) && holds(seized, 0.25 / reveals) && holds(lost, 1.0 / 16.0));
        assert!(!holds(cut_by_less, 0.25 / draws), "four neighbours fewer would do: {cut_by_less}");
        assert!(rate(seized) > 0.25 / reveals / 100.0, "the quorum is larger than it need be");
        assert!(rate(lost) > 1.0 / 16.0 / 100.0, "the committee is larger than it need be");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let p = Params::default();
        assert!(p.sizes(2_000, 1_799).is_err(), "a deck under the floor");
        assert!(p.sizes(2_000, 1_800).is_ok());
        assert!(Params { corrupt: 500, missing: 300, ..p }.sizes(4_000, 4_000).is_err());
        assert!(Params { corrupt: 1_000, ..p }.sizes(4_000, 4_000).is_err());
        assert!(p.sizes(MAX_SPARSE_SITES + 1, MAX_SPARSE_SITES + 1).is_err());
    }
}
