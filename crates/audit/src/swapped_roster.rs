//! A site is handed another roster with the same names in it, and a plan that the other coordinator signed. Its two
//! fellow sites are the attacker's, who subtracts their parts. A second attack uses a roster of
//! another name.

use std::{collections::BTreeSet, path::PathBuf, rc::Rc};

use anyhow::{Result, anyhow, ensure};
use veilsum_node::documents::{Fingerprint, Offered, roster_fingerprint};
use veilsum_proto::{Rule, identity::Identity, roster::Roster, suite};
use veilsum_testkit::{
    federation::{Kit, World},
    program::Folder,
};

use crate::{
    finding::{Attack, Context, Found, Measure, Rate, listed},
    inconsistency::{EXACT, Field, about, apart},
    scene::CLUMPS,
};

/// What it is.
pub const ATTACK: Attack = Attack {
    name: "swapped-roster",
    shows: "a roster with the same names in it puts a site among the attacker's own",
    needs: "a way to hand a site two files; no key of anybody else's",
    control: "a client that takes any roster that one of its members signed, as it was before: the attacker's federation runs \
                  with it",
    protection: "a site keeps the roster that its operator compared: any other one, of this name or of another, is refused before a \
                     byte leaves [ROS-9]",
    not_shown: "an operator who accepts whatever comes (`tests/swapped_roster.rs` shows that the attack then succeeds)",
    run,
};
const SITES: usize = 3;
const ROWS: usize = 40;
/// The site that is handed the documents.
const VICTIM: u16 = 0;

/// The rosters: the one that the victim agreed to, and the attacker's of the same name and of another.
fn rosters(kit: &Kit, seed: u64) -> (Roster, [Roster; 2]) {
    let mut agreed = kit.roster.as_ref().clone();
    let identity =
        |i: u64| Identity::from_seed(&suite::hash("audit member", &[&seed.to_le_bytes(), &i.to_le_bytes()]).0);
    let victims = agreed.sites[usize::from(VICTIM)].key;
    let members = [&mut agreed.coordinator, &mut agreed.intermediary].into_iter().chain(&mut agreed.sites);
    members.filter(|m| m.key != victims).zip(0..).for_each(|(member, i)| member.key = identity(i).public());
    let swapped = kit.roster.as_ref().clone();
    let renamed = Roster { name: format!("{} of others", swapped.name), ..swapped.clone() };
    (agreed, [swapped, renamed])
}

/// Which of these rosters a client takes that has agreed to `agreed`; the rules of the others.
fn pinned(agreed: &Roster, offered: &[Roster], victim: &Identity) -> Result<(Rate, BTreeSet<Rule>)> {
    let folder = Folder::fresh();
    let (key, file) = (folder.0.join("site.key"), PathBuf::from("roster.toml"));
    let offer = |roster| Offered { file: &file, roster, key: &key, identity: victim };
    let words = |roster: &Roster| Fingerprint::parse(&roster_fingerprint(&roster.hash())).map_err(|e| anyhow!("{e}"));
    offer(agreed).agree(&words(agreed)?).map_err(|failure| anyhow!("{}", failure.message))?;
    ensure!(offer(agreed).passes().is_ok(), "the roster that was agreed to is refused");
    let (mut taken, mut rules) = (Rate::default(), BTreeSet::new());
    for roster in offered {
        // With or without the fingerprint that came along with the file.
        for told in [offer(roster).passes(), offer(roster).agree(&words(roster)?)] {
            taken.add(told.is_ok());
            rules.extend(told.err().and_then(|failure| failure.rule));
        }
    }
    Ok((taken, rules))
}

/// Runs the attacker's federation with the victim in it, and hands its roster to a client that remembers the rosters it
/// accepted.
///
/// # Errors
/// Where a part of it cannot be set up.
fn run(&Context { seed, .. }: &Context) -> Result<Found> {
    let field = Rc::new(Field::new(seed, SITES, ROWS)?);
    let q = about(CLUMPS)?;
    let layout = field.layout(&q)?;
    // The strict floor: three sites, and totals over all of them.
    let kit = Kit::same(SITES, |terms| terms.max_rows = field.max_rows);
    let (victim, (agreed, offered)) = (kit.identities[2 + usize::from(VICTIM)].clone(), rosters(&kit, seed));
    let mut world = World::new(kit, seed);
    world.answer = field.answers();
    let (total, ..) = world.ask(&q.to_bytes(), layout.words())?;
    ensure!(world.site_errors.is_empty(), "a site refuses a federation that keeps every rule");
    let mut left = total;
    for site in (0..SITES as u16).filter(|site| *site != VICTIM) {
        left.iter_mut().zip(field.words(site, &q)?).for_each(|(left, word)| *left = left.wrapping_sub(word));
    }
    let error = apart(&left, &field.words(VICTIM, &q)?, 0..left.len());
    let found = Rate { hit: u64::from(matches!(EXACT, crate::finding::Limit::AtMost(most) if error <= most)), of: 1 };

    let (taken, rules) = pinned(&agreed, &offered, &victim)?;
    let with_memory = Rate { hit: found.hit * u64::from(taken.hit > 0), of: 1 };
    Ok(Found::new(
        vec![
            Measure::rates("victims' sums, exactly", found, with_memory, 0.0),
            Measure::rates("other rosters that the client takes", Rate { hit: taken.of, of: taken.of }, taken, 0.0),
        ],
        vec![format!(
            "without the memory the victim's sums come out to {error} steps of the fixed point; with it the client refuses under {}",
            listed(&rules)
        )],
    ))
}
