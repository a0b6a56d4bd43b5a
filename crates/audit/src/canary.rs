//! Canaries: what the noise of a question really costs. A row is planted that moves the question's totals as far as any row can, and the
//! cost is measured from the shares that honest sites draw: (shift of the mean)² / (2 variance) along the direction in which it shows
//! most, which is the rho of a Gaussian (Bun & Steinke 2016, Proposition 1.6). It must be what the plan states, and a site that adds half
//! its share must be found: a lower bound of epsilon from membership tests would miss both.

use anyhow::Result;
use veilsum_cluster::{
    Centres, Query,
    privacy::Unit,
    query::{Bracket, Histogram, Margins, Moments},
};
use veilsum_node::question::Question;

use crate::{
    account::{self, Honest, asked, measured},
    finding::{Attack, Context, Found, Limit, Measure},
    scene::EDGE,
};

/// What it is.
pub const ATTACK: Attack = Attack {
    name: "noise-canary",
    shows: "what the sites' noise really costs, and whether half a share is noticed",
    needs: "nothing: this measures the sites' own noise",
    control: "one of two honest sites adds half its share",
    protection: account::PROTECTION,
    not_shown: "a site that adds no noise on purpose: it is one of those that collude",
    run,
};
/// Draws of a measurement: its standard deviation is then sqrt(2 / draws) of it, 0.7 %.
const DRAWS: usize = 40_000;
/// Rows of a person.
const PERSON: u64 = 5;
/// A measured rho may be off by this much of the stated one, its interval of 95 % included.
const OFF: f64 = 0.05;

/// A question of every family, for which a row in the corner is the worst one: it moves every block as far as a row can.
fn canaries() -> Result<Vec<(&'static str, Question)>> {
    let corner = vec![EDGE; 2];
    let side = |column| Bracket { column, lower: -EDGE, upper: EDGE };
    let queries = [
        ("fcm", account::sums(&[corner.clone(), vec![-EDGE; 2]], Some(2.0))?),
        ("kmeans", account::sums(&[corner, vec![-EDGE; 2]], None)?),
        ("margins", Margins { bins: 16 }.into()),
        ("validation", Query::fuzzy_validation(Centres::from_rows(&[vec![-EDGE; 2]])?, 2.0)),
        ("description", Moments { around: None }.into()),
        ("histogram", Histogram { brackets: (0..2).map(side).collect(), bins: 4 }.into()),
    ];
    let count = [("row count", Question::CountRows)];
    Ok(count.into_iter().chain(queries.map(|(family, query)| (family, asked(query)))).collect())
}

/// Measures every family at both accounts, honestly and with half a share missing.
///
/// # Errors
/// Where a question cannot be answered.
fn run(&Context { seed, quick, .. }: &Context) -> Result<Found> {
    let draws = account::times(quick, DRAWS) as u64;
    let interval = 1.96 * (2.0 / draws as f64).sqrt();
    let (mut measures, mut details, mut low) = (Vec::new(), Vec::new(), Vec::new());
    // One row for each site that stays, and the canary, a row or a person of five, at the first site.
    let rest = [vec![vec![-EDGE; 2]], vec![vec![-EDGE; 2]]];
    let without = Honest::of(&rest)?;
    let canary = |rows: usize| Honest::of(&[[rest[0].clone(), vec![vec![EDGE; 2]; rows]].concat(), rest[1].clone()]);
    let units =
        [("a row", Unit::Record, canary(1)?), ("a person", Unit::Person { rows: PERSON }, canary(PERSON as usize)?)];
    let asked: Vec<_> =
        canaries()?.into_iter().flat_map(|of| units.iter().map(move |unit| (of.clone(), unit))).collect();
    for (draws_of, ((family, question), (whose, unit, with))) in (0..).zip(asked) {
        let seed = seed.wrapping_add(draws_of);
        for rho in account::ACCOUNTS {
            let (found, stated) = measured(&without, with, &question, (rho, *unit), draws, seed, false)?;
            let (lazy, _) = measured(&without, with, &question, (rho, *unit), draws.div_ceil(4), seed, true)?;
            measures.push(Measure::new(
                format!("{family}, {whose}: measured rho of the stated {rho}; control: a halved share"),
                lazy / rho,
                Limit::AtLeast(1.0 + OFF),
                found / rho,
                Limit::AtMost(1.0 + OFF - interval),
            ));
            if found / rho < 1.0 - OFF + interval || stated > rho * (1.0 + 1e-6) {
                low.push(format!("{family} at rho {rho} costs {found:.3} and states {stated:.6}"));
            }
        }
    }
    details.push(format!("{draws} draws each; the interval of 95 % is {:.1} % of the measured rho", 100.0 * interval));
    Ok(Found {
        measures,
        also_broken: (!low.is_empty()).then(|| format!("more noise than is stated: {}", low.join("; "))),
        details,
    })
}
