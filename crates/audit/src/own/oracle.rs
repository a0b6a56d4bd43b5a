//! Proposals as an oracle: many plans are proposed, and what the site says of each is compared with what it says without one of its rows.

use std::sync::Arc;

use anyhow::Result;
use veilsum_cluster::{Algorithm, Prepared, privacy::Noise, random::Stream};
use veilsum_node::{
    agreed::Federation,
    answerer::Answerer,
    door::{Account, Data, Exact, Ledger, Policy, Verdict, judge},
    facts::set_of,
    loopback::{fresh, roster_of},
    plan::{OutOfBox, PlanSpec, Recipe},
    refusal,
};
use veilsum_proto::plan::Terms;

use super::{
    scene::Scene,
    tried::{Answer, Tried},
};

const LABEL: &[u8; 24] = b"veilsum audit proposals1";
/// Plans that are proposed.
const PROPOSALS: usize = 60;

/// What a site says of a proposed plan, as everybody reads it.
pub(super) type Says<'a> = &'a dyn Fn(&Federation, &Policy, &Prepared, &Account) -> String;

/// The product's answer.
fn says(federation: &Federation, policy: &Policy, _: &Prepared, account: &Account) -> String {
    match judge(&federation.facts(), policy, account, None).yes() {
        Ok(yes) => format!("{:?} {} {:?}", yes.nano_rho, yes.left, yes.runs),
        Err(why) => refusal::why(&why),
    }
}

/// A plan near this one, as somebody proposes it to learn from the answer.
fn proposed(work: &PlanSpec, stream: &mut Stream) -> PlanSpec {
    let k = 1 + stream.below(64) as u32;
    let rho = 10f64.powf(3.0 * stream.unit() - 2.0);
    let noise = (stream.below(3) > 0).then(|| Noise::usual(rho, 1 + stream.below(100_000)).from_anywhere());
    let algorithm = match stream.below(3) {
        0 => Algorithm::Describe { bins: 2 + stream.below(60) as u32 },
        1 => Algorithm::Kmeans { epsilon: 0.0, max_rounds: 1 + stream.below(12) as u32 },
        _ => Algorithm::Fcm { m: 1.01 + 3.0 * stream.unit(), epsilon: 0.0, max_rounds: 1 + stream.below(12) as u32 },
    };
    let seeding = veilsum_cluster::method::Seeding::Uniform { seed: stream.below(1 << 40) };
    let recipe = Recipe { noise, ..Recipe::plain(algorithm, k, seeding) };
    let step_bits = recipe.noise.is_none().then(|| 12 + stream.below(20) as u8);
    PlanSpec { recipe, out_of_box: OutOfBox::Clip, step_bits, ..work.clone() }
}

/// Of how many plans the site was asked, how many it takes, and how many of its answers are others without the row.
fn differ(scene: &Scene, seed: u64, says: Says<'_>) -> Result<(usize, usize, usize)> {
    let mut stream = Stream::new(seed, LABEL);
    let site = &scene.sites[0];
    let last = scene.targets.first().copied().unwrap_or_default();
    let with = site.all(&scene.work)?;
    let without = site.prepared(&scene.work, (0..site.values.len()).filter(|at| *at != last))?;
    let keys = fresh(scene.sites.len());
    let names: Vec<String> = (0..scene.sites.len()).map(|site| format!("site-{site}")).collect();
    let roster = roster_of(&keys, &names);
    let ledger = |rows: &Prepared| -> Result<Ledger> {
        let data = Data::of("rows", &keys[1], rows.len() as u64, &rows.digest());
        let mut ledger = Ledger::in_memory(Arc::clone(&keys[1]), data);
        ledger.accept(set_of(&roster))?;
        Ok(ledger)
    };
    let (ledgers, mut asked, mut yes, mut others) = ([ledger(&with)?, ledger(&without)?], 0, 0, 0);
    let accounts = (ledgers[0].account(), ledgers[1].account());
    for _ in 0..4 * PROPOSALS {
        if asked == PROPOSALS {
            break;
        }
        let work = proposed(&scene.work, &mut stream);
        let terms = Terms {
            roster: roster.hash(),
            max_rows: 1 << (8 + stream.below(14)),
            min_total_rows: 1 + stream.below(1 << 14),
            application: work.to_bytes(),
            ..(*scene.terms).clone()
        };
        if work.check().is_err() {
            continue;
        }
        let Ok(federation) = Federation::new(roster.clone(), terms) else { continue };
        let exact = if stream.below(2) == 0 { Exact::Never } else { Exact::ByAgreement };
        let policy = Policy { exact, max_rows: 1 << (6 + stream.below(14)), ..Policy::default() };
        let [a, b] = [(&with, accounts.0), (&without, accounts.1)]
            .map(|(rows, account)| says(&federation, &policy, rows, account));
        asked += 1;
        yes += usize::from(matches!(judge(&federation.facts(), &policy, accounts.0, None), Verdict::Yes(_)));
        others += usize::from(a != b);
    }
    Ok((asked, yes, others))
}

/// What proposals tell.
///
/// # Errors
/// Where the rows do not fit the plan.
pub(super) fn proposals(scene: &Scene, seed: u64) -> Result<Vec<Tried>> {
    let (asked, yes, others) = differ(scene, seed, &says)?;
    let tries = "the coordinator proposes many plans, and learns from what your site says of each";
    let gets = format!("{others} of {asked} answers are others without one of your rows; {yes} were a yes");
    let answer = Answer::of(others > 0, false);
    let share = others as f64 / asked.max(1) as f64;
    Ok(vec![Tried::new(("proposals", tries), None, [gets, "0".into()], answer, share)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own::scene::made_up;

    /// [PRO-2]: proposals and refusals tell nothing of rows; those of a site that looks at its rows do.
    #[test]
    fn proposals_tell_nothing_of_rows() {
        let scene = made_up();
        let (asked, yes, others) = differ(&scene, 3, &says).unwrap();
        assert!(asked >= PROPOSALS / 2 && yes > asked / 10 && yes < asked, "{asked} {yes}");
        assert_eq!(others, 0);
        // Sites once said how many more such plans they would answer, which followed from their rows.
        let by_rows = |federation: &Federation, policy: &Policy, rows: &Prepared, account: &Account| {
            let more = 8 * rows.len() / federation.work.recipe.clusters.max as usize;
            format!("{}, and about {more} more", says(federation, policy, rows, account))
        };
        let (_, _, others) = differ(&scene, 3, &by_rows).unwrap();
        assert!(others > 0);
    }
}
