//! Which sums of honest inputs follow from what a coordinator and its colluders hold.
//!
//! Colluders know their own pair seeds with everybody and one share each of every self-mask, so what is unknown are the
//! masks between honest sites and the self-masks with fewer than t shares. A combination of masked inputs is free of
//! unknown masks only if its coefficients agree along every unknown pair mask that both ends applied, and are zero
//! where one end alone applied it or a self-mask is unknown. So the learnt sums are the components of the graph of
//! unknown pair masks that have nothing else unknown. [`by_elimination`] finds them a second way.

use super::rules::{Local, Set, Setting, has, members, size};

/// What left one site.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct View {
    pub(crate) question: Option<u8>,
    pub(crate) seeds: Set,
    pub(crate) shares: Set,
}

impl View {
    pub(crate) fn of(site: &Local) -> View {
        View { question: site.question, seeds: site.seeds, shares: site.shares }
    }
}

fn self_mask_known(setting: &Setting, views: &[View], owner: usize) -> bool {
    setting.c + views.iter().filter(|v| has(v.shares, owner)).count() >= setting.t
}

/// The honest sites with which `u` applied a pair mask.
fn partners(setting: &Setting, views: &[View], u: usize) -> Set {
    let cohort = views[u].question.map_or(0, |q| setting.questions[usize::from(q)]);
    cohort & setting.graph[u] & ((1 << setting.honest()) - 1)
}

/// The learnt sums, each by its sites; in the order of their lowest sites.
pub(crate) fn sums(setting: &Setting, views: &[View]) -> Vec<Set> {
    let honest = setting.honest();
    let mut shared = [0 as Set; Set::BITS as usize];
    let mut closed: Set = 0;
    for u in 0..honest {
        if views[u].question.is_none() || !self_mask_known(setting, views, u) {
            closed |= 1 << u;
        }
        for v in members(partners(setting, views, u) & !views[u].seeds) {
            if views[v].question != views[u].question {
                closed |= 1 << u;
            } else if !has(views[v].seeds, u) {
                shared[u] |= 1 << v;
            }
        }
    }
    let mut out = Vec::new();
    let mut left: Set = (1 << honest) - 1;
    while left != 0 {
        let (mut component, mut edge) = (0, left & left.wrapping_neg());
        while edge != 0 {
            component |= edge;
            edge = members(edge).fold(0, |next, u| next | shared[u]) & !component;
        }
        left &= !component;
        if component & closed == 0 {
            out.push(component);
        }
    }
    out
}

/// The same by linear algebra: the combinations of masked inputs in which every unknown mask cancels, modulo a prime,
/// as the rows of a reduced echelon form.
pub(crate) fn by_elimination(setting: &Setting, views: &[View], prime: u64) -> Vec<Vec<u64>> {
    let honest = setting.honest();
    // Unknown masks by who applies them with a plus, and with a minus.
    let mut unknown: Vec<(Option<usize>, Option<usize>)> = Vec::new();
    for u in (0..honest).filter(|u| views[*u].question.is_some()) {
        if !self_mask_known(setting, views, u) {
            unknown.push((Some(u), None));
        }
        for v in members(partners(setting, views, u)) {
            let same = views[v].question == views[u].question;
            if has(views[u].seeds, v) || same && (has(views[v].seeds, u) || v < u) {
                continue;
            }
            unknown.push((Some(u), same.then_some(v)));
        }
    }
    let answered: Vec<usize> = (0..honest).filter(|u| views[*u].question.is_some()).collect();
    // [masks | who], a row for every input; rows whose masks are all zero are what is learnt.
    let row = |u: &usize| {
        let masks = unknown.iter().map(|(plus, minus)| match (*plus == Some(*u), *minus == Some(*u)) {
            (true, _) => 1,
            (_, true) => prime - 1,
            _ => 0,
        });
        masks.chain((0..honest).map(|v| u64::from(v == *u))).collect()
    };
    let rows = echelon(answered.iter().map(row).collect(), prime);
    let free = rows.into_iter().filter(|r: &Vec<u64>| r[..unknown.len()].iter().all(|x| *x == 0));
    free.map(|r| r[unknown.len()..].to_vec()).collect()
}

/// The reduced row echelon form; the leading entry of each row is 1.
fn echelon(mut rows: Vec<Vec<u64>>, prime: u64) -> Vec<Vec<u64>> {
    let mut done = 0;
    for column in 0..rows.first().map_or(0, Vec::len) {
        let Some(pivot) = (done..rows.len()).find(|r| rows[*r][column] != 0) else { continue };
        rows.swap(done, pivot);
        let inverse = power(rows[done][column], prime - 2, prime);
        rows[done].iter_mut().for_each(|x| *x = *x * inverse % prime);
        let lead = rows[done].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(r, _)| *r != done) {
            let factor = row[column];
            row.iter_mut().zip(&lead).for_each(|(x, l)| *x = (*x + (prime - factor) * l) % prime);
        }
        done += 1;
    }
    rows
}

fn power(base: u64, exponent: u64, prime: u64) -> u64 {
    let bits = (0..u64::BITS).rev().map(|k| exponent >> k & 1);
    bits.fold(1, |p, bit| p * p % prime * if bit == 1 { base } else { 1 } % prime)
}

/// Both ways agree on what is learnt; the sums.
#[track_caller]
pub(crate) fn sums_two_ways(setting: &Setting, views: &[View]) -> Vec<Set> {
    let sums = sums(setting, views);
    let rows: Vec<Vec<u64>> =
        sums.iter().map(|s| (0..setting.honest()).map(|u| u64::from(has(*s, u))).collect()).collect();
    // Masks are added modulo 2^64; the answer does not depend on the ring, so two very different fields are asked.
    for prime in [2, 2_147_483_647] {
        assert_eq!(by_elimination(setting, views, prime), rows, "modulo {prime}: {views:?}");
    }
    sums
}

/// The claim.
pub(crate) fn holds_what_is_claimed(setting: &Setting, sums: &[Set]) -> bool {
    sums.len() <= 1 && sums.iter().all(|s| size(*s) + setting.c >= setting.t)
}
