//! What a row is to the centres: its distances, the shares and memberships made of them, and what validity needs of both.

use veilsum_answerer::{Refusal, RefusalCode};
use veilsum_cluster::Centres;

use super::{Asked, MAX_WIDTH, least};
use crate::{
    chain::{named, next_to_own, of_own, own, squares, stepped, too_large},
    text::{list, number, sum},
};

impl Asked<'_, '_> {
    /// Squared distances `q0, …` to the centres, and the least as `qm`.
    pub(super) fn distances(&mut self, centres: &Centres) -> Result<(), Refusal> {
        let k = centres.k();
        if self.chain.d + 4 * k + 8 > MAX_WIDTH {
            return Err(too_large());
        }
        let xs = self.chain.xs();
        self.chain.then(xs.iter().cloned().chain(squares(centres, "q")));
        let least = if k == 1 { "q0".to_owned() } else { format!("LEAST({})", list(named("q", k))) };
        self.chain.then(xs.into_iter().chain(named("q", k)).chain([format!("{least} AS qm")]));
        Ok(())
    }

    /// Shares of every centre relative to the nearest one, their sum `s`, and what else is kept; the name of the shares.
    fn shares(&mut self, k: usize, m: f64, keep: &[String]) -> &'static str {
        self.ratios(k, keep);
        let mut keep: Vec<String> = keep.iter().cloned().chain(named("r", k)).collect();
        let share = if m == 2.0 { "r" } else { "p" };
        if m != 2.0 {
            let exponent = 1.0 / (m - 1.0);
            let power = |c: usize| {
                let small = format!("WHEN r{c} < {} THEN {}", number(least(exponent + 1.0)), number(0.0));
                format!("CASE WHEN r{c} = 1 THEN r{c} {small} ELSE power(r{c}, {}) END AS p{c}", number(exponent))
            };
            self.chain.then(keep.iter().cloned().chain((0..k).map(power)));
            keep.extend(named("p", k));
        }
        self.chain.then(keep.into_iter().chain([format!("{} AS s", sum(named(share, k)))]));
        share
    }

    /// The least of the squared distances divided by each, `r0, …`, and what else is kept.
    pub(super) fn ratios(&mut self, k: usize, keep: &[String]) {
        // 1 on a centre and 0 elsewhere, for a row that lies on one ([QRY-5]).
        let (one, zero) = (number(1.0), number(0.0));
        let ratio =
            |c: usize| format!("CASE WHEN qm > 0 THEN qm / q{c} WHEN q{c} = 0 THEN {one} ELSE {zero} END AS r{c}");
        self.chain.then(keep.iter().cloned().chain((0..k).map(ratio)));
    }

    pub(super) fn none_strange(&self, strange: Option<i64>) -> Result<(), Refusal> {
        let (what, next) =
            ("rows are nearer to a centre than doubles can square", "use --mode stream, or let the view round values");
        if strange.unwrap_or(0) == 0 { Ok(()) } else { Err(Refusal::new(RefusalCode::Rows, what, next)) }
    }

    /// After [`Self::distances`]: distances `t0, …`, squares `e0, …`, memberships `u0, …`, the sum `s` and the nearest centre `own`.
    pub(super) fn memberships(&mut self, k: usize, m: f64) {
        let xs = self.chain.xs();
        let own = own(k, "q", "qm");
        let keep: Vec<String> = xs.iter().cloned().chain(named("q", k)).chain(["qm".into()]).collect();
        self.chain.then(
            keep.iter().cloned().chain((0..k).map(|c| format!("sqrt(q{c}) AS t{c}"))).chain([format!("{own} AS own")]),
        );
        // Of a row on a centre the squares are those of its distances.
        let square = |c: usize| format!("CASE WHEN qm > 0 THEN q{c} ELSE t{c} * t{c} END AS e{c}");
        let keep: Vec<String> = xs.iter().cloned().chain(named("t", k)).chain(["qm".into(), "own".into()]).collect();
        self.chain.then(keep.iter().cloned().chain(named("q", k)).chain((0..k).map(square)));
        let keep: Vec<String> = keep.into_iter().chain(named("e", k)).collect();
        let share = self.shares(k, m, &keep);
        let memberships = (0..k).map(|c| format!("{share}{c} / s AS u{c}"));
        self.chain.then(keep.into_iter().chain(["s".into()]).chain(memberships));
    }

    /// After [`Self::memberships`]: what validation needs of every row besides: powers `w0, …`, distance `near` and square `nearest` of
    /// the own centre, and distance `second` of the next one.
    pub(super) fn judged(&mut self, k: usize, m: f64) {
        let keep: Vec<String> = self.chain.xs().into_iter().chain(["own".into()]).collect();
        let keep: Vec<String> =
            keep.into_iter().chain(named("t", k)).chain(named("e", k)).chain(named("u", k)).collect();
        let (least, zero, exponent) = (number(least(m)), number(0.0), number(m));
        let power = |c: usize| match m {
            2.0 => format!("u{c} * u{c} AS w{c}"),
            _ => format!("CASE WHEN u{c} < {least} THEN {zero} ELSE power(u{c}, {exponent}) END AS w{c}"),
        };
        let of_own = |of: &str| of_own((0..k).map(|c| (c, format!("{of}{c}"))));
        let second = next_to_own((0..k).map(|c| (c, format!("t{c}"))));
        let more =
            [format!("{} AS near", of_own("t")), format!("{} AS nearest", of_own("e")), format!("{second} AS second")];
        self.chain.then(keep.into_iter().chain((0..k).map(power)).chain(more));
    }

    /// The five sums over memberships and distances, with the block in which they begin.
    pub(super) fn scalars(&self, k: usize, first: usize) -> Vec<String> {
        let zero = number(0.0);
        let entropy = (0..k).map(|c| format!("CASE WHEN u{c} > 0 THEN u{c} * ln(u{c}) ELSE {zero} END"));
        let entropy = entropy.fold(zero.clone(), |before, part| format!("{before} - {part}"));
        let others = |of: &str| sum((0..k).map(|c| format!("CASE WHEN own = {c} THEN {zero} ELSE {of}{c} END")));
        let infinity = number(f64::INFINITY);
        let all = [
            sum((0..k).map(|c| format!("u{c} * u{c}"))),
            entropy,
            others("t"),
            others("e"),
            format!("CASE WHEN second > 0 AND second < {infinity} THEN (second - near) / second ELSE {zero} END"),
        ];
        all.iter().enumerate().map(|(at, of)| stepped(of, self.bits(first + at))).collect()
    }
}
