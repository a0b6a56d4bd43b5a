//! The coordinator tells some sites that a site is alive and others that it is gone (Bonawitz et al. 2017, section 4;
//! the measured break of t <= n/2), and uses a key that one drop-out opens for what was sent before.
//!
//! Shares of the self-mask come from sites that believe the target alive, and its pairwise secrets from sites that
//! believe it gone. With enough of both, the liar removes the masks.

use std::{collections::BTreeMap, rc::Rc};

use anyhow::{Result, anyhow};
use veilsum_node::question::Question;
use veilsum_proto::{message::Kind, suite::Hash, vectors_api as core};

use crate::{
    finding::{Attack, Context, Found, Limit, Measure, Rate},
    inconsistency::{EXACT, Field, GARBAGE, Session, about, apart},
    lying_hub::{Hub, Sent, survivors},
    scene::CLUMPS,
    textbook::Textbook,
};

/// What it is.
pub const ATTACK: Attack = Attack {
    name: "dropout-lie",
    shows: "a site said to be there to some and gone to others loses both its masks",
    needs: "a coordinator that names different survivors to different sites, and sites that collude with it",
    control: "the same words under Bonawitz et al. as printed, without the consistency check, t = 9 of 20 and one key for all rounds",
    protection: "a site gives its share or its seed of a round, never both [UNM-*], [CON-*]; 2t > n + c [THR-2]; seeds are of \
                     one round [MSK-*]",
    not_shown: "more colluders than the terms assume; the difference that every honest change of a cohort costs",
    run,
};
const SITES: u16 = 20;
const ROWS: usize = 12;
const TARGET: u16 = 0;
/// Sites that say both things, as many as the terms assume to collude.
const COLLUDERS: u16 = 6;
/// Shares that the control needs.
const WEAK: usize = 9;

fn moved(shift: f64) -> Result<Question> {
    about(CLUMPS.map(|[x, y]| [x + shift, y]))
}

/// What the liar has of the target's input after one round.
#[derive(Default)]
struct Loot {
    shares: Vec<(u16, [u8; 32])>,
    seeds: Vec<(u16, [u8; 32])>,
}

impl Loot {
    /// Takes off what it can.
    fn apply(&self, context: &Hash, words: &[u64], threshold: usize) -> Vec<u64> {
        let mut out = words.to_vec();
        if let Some(shares) = self.shares.get(..threshold) {
            let (members, shares): (Vec<u16>, Vec<[u8; 32]>) = shares.iter().copied().unzip();
            let own = core::recover(&members, &shares);
            core::unmask(&mut out, &core::self_mask_key(&own, context), None);
        }
        self.seeds.iter().for_each(|(from, seed)| core::unmask(&mut out, seed, Some((TARGET, *from))));
        out
    }
}

/// One round in which `alive` of the honest others are told that the target is there and the rest that it is gone; colluders
/// say both. What the liar gets, and how many honest sites gave away both.
fn lie(hub: &mut Hub, context: &Hash, inputs: &BTreeMap<u16, Sent>, alive: u16) -> Result<(Loot, u64)> {
    let everybody: Vec<u16> = (0..SITES).collect();
    let others: Vec<u16> = (1..SITES).collect();
    let honest = 1..SITES - COLLUDERS;
    let (mut loot, mut both) = (Loot::default(), 0);
    let mut take = |site: u16, sent: &Sent| match sent.kind {
        Kind::Unmask => loot.shares.push((site, sent.shares()[usize::from(TARGET)])),
        Kind::ConsistencyCheck => loot.seeds.extend(sent.seeds().iter().map(|(_, seed)| (site, *seed))),
        _ => {}
    };
    for site in honest {
        let (first, second) = if site <= alive { (&everybody, &others) } else { (&others, &everybody) };
        if let Ok(sent) = survivors(hub, site, context, first, inputs)? {
            take(site, &sent);
        }
        // Then the other story is told; an honest site answers only one of them.
        if let Ok(sent) = survivors(hub, site, context, second, inputs)? {
            take(site, &sent);
            both += 1;
        }
    }
    for site in SITES - COLLUDERS..SITES {
        for story in [&others, &everybody] {
            hub.restart(site)?;
            let kept = hub.journals[usize::from(site)].clone();
            if let Ok(sent) = survivors(hub, site, context, story, inputs)? {
                take(site, &sent);
            }
            hub.journals[usize::from(site)] = kept;
        }
    }
    Ok((loot, both))
}

/// Tries the lies on textbook masks and on real sites.
///
/// # Errors
/// Where an honest part of the conversation fails.
fn run(&Context { seed, quick, .. }: &Context) -> Result<Found> {
    let field = Rc::new(Field::new(seed, usize::from(SITES), ROWS)?);
    let everybody: Vec<u16> = (0..SITES).collect();
    let q = moved(0.0)?;
    let plain = field.words(TARGET, &q)?;
    let error = |words: &[u64]| apart(words, &plain, 0..plain.len());

    let book = Textbook::new(SITES, WEAK, seed);
    let sent = book.masked(TARGET, 0, &plain);
    let groups = everybody[1..].split_at(WEAK);
    let control = error(&book.opened(TARGET, 0, &sent, [groups.0, groups.1])?);
    // Its key, opened because it was gone in round 1, and its self-mask of round 0, opened because it was there.
    let control_reuse = error(&book.opened(TARGET, 0, &sent, [&everybody[1..], &everybody[1..]])?);

    let (mut least, mut both) = (f64::INFINITY, Rate::default());
    let fresh = || Session::over_any(seed, &field);
    let threshold = fresh().deck.threshold;
    let honest = SITES - COLLUDERS - 1;
    let needed = threshold as u16 - COLLUDERS;
    let splits = if quick { vec![needed] } else { vec![0, needed - 1, needed, honest] };
    for alive in splits {
        let mut session = fresh();
        let (context, inputs) = session.asked(&everybody, &q)?;
        let (loot, gave) = lie(&mut session.hub, &context, &inputs, alive)?;
        (both.hit, both.of) = (both.hit + gave, both.of + u64::from(honest));
        least = least.min(error(&loot.apply(&context, &inputs[&TARGET].words(), threshold)));
    }

    // Round 0 is opened honestly; in round 1 the target is gone, and its seeds of that round are given away.
    let mut session = fresh();
    let (first, inputs) = session.asked(&everybody, &q)?;
    let mut loot = Loot::default();
    let refused = |rule| anyhow!("refused: {rule}");
    for site in &everybody {
        let sent = survivors(&mut session.hub, *site, &first, &everybody, &inputs)?.map_err(refused)?;
        loot.shares.push((*site, sent.shares()[usize::from(TARGET)]));
    }
    session.over(first);
    let (second, next) = session.asked(&everybody, &moved(0.01)?)?;
    for site in &everybody[1..] {
        let sent = survivors(&mut session.hub, *site, &second, &everybody[1..], &next)?.map_err(refused)?;
        loot.seeds.extend(sent.seeds().iter().map(|(_, seed)| (*site, *seed)));
    }
    let reuse = error(&loot.apply(&first, &inputs[&TARGET].words(), threshold));
    Ok(Found::new(
        vec![
            Measure::new("false survivors: error of the target's sums, steps", control, EXACT, least, GARBAGE),
            Measure::new(
                "honest sites that tell both secrets of a round",
                f64::from(u8::from(control < 100.0)),
                Limit::AtLeast(1.0),
                both,
                Limit::AtMost(0.0),
            ),
            Measure::new("a later drop-out: error of the earlier sums, steps", control_reuse, EXACT, reuse, GARBAGE),
        ],
        vec![format!("{SITES} sites, t = {threshold}, {COLLUDERS} collude")],
    ))
}
