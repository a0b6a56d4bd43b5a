//! The same rows under another name: an account that is tied to the name of a data set would begin anew.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use veilsum_cluster::{Prepared, Rows, method::Seeding};
use veilsum_node::{
    documents::SitePolicy,
    release::{Data, Known, Origin},
    store::Ledger,
};
use veilsum_proto::{
    policy::{Floor, Policy},
    suite::Hash,
};

use crate::{
    finding::{Finding, Limit, Measure, Rate},
    liar,
    scene::{Folder, Scene},
};

/// Name on the command line.
pub const NAME: &str = "renamed-data";
const SITES: usize = 4;
const ROWS: usize = 40;
/// What the sites' policies allow of their rows, over all plans.
const QUESTIONS: u64 = 12;
/// The name that the rows come with next.
const NAMES: [&str; 2] = ["wards", "wards of 2026"];

/// One run under the current name, from first centres of its own, until the sites stop. Returns how many questions were
/// answered, and why no more were.
fn played(folder: &Folder, account: &str, seed: u64, run: usize) -> Result<(u64, Option<String>)> {
    let mut scene = Scene::clumps(seed, SITES, ROWS, 40)?;
    scene.work.recipe.seeding = Seeding::Uniform { seed: seed.wrapping_mul(2).wrapping_add(run as u64) };
    let policy = Policy { max_rounds_in_all: QUESTIONS, ..Policy::only(Floor::default()) };
    scene.site = SitePolicy { data: NAMES[run].to_owned(), ..SitePolicy::from(policy) };
    let state = folder.0.join(account);
    std::fs::create_dir_all(&state)?;
    scene.state = Some((state, seed));
    let told = liar::ask(&scene, &mut |_, own, _| (!own.queries.is_empty()).then(|| own.clone()))?;
    Ok((told.totals.len() as u64, told.refusals.values().next().cloned()))
}

/// Runs two plans on the same rows, under two names.
///
/// # Errors
/// Where a run cannot be set up.
pub fn run(seed: u64) -> Result<Finding> {
    let began = Instant::now();
    let folder = Folder::new()?;
    // By name: another name is another file.
    let (first, _) = played(&folder, NAMES[0], seed, 0)?;
    let (by_name, _) = played(&folder, NAMES[1], seed, 1)?;
    // As in the product, there is one ledger for everything that leaves under a key.
    let (same, why) = played(&folder, "one", seed, 0)?;
    let (by_rows, refused) = played(&folder, "one", seed, 1)?;
    ensure!(first == same && first > 1, "the same run gave {first} and {same} totals");
    let refused = refused.context("nobody refused, and the account was used up")?;
    ensure!(refused.contains("[POL-"), "{refused}");

    // Less one row, under the new name, so that the rows look different.
    let scene = Scene::clumps(seed, SITES, ROWS, 1)?;
    let (domain, all) = (scene.work.domain()?, &scene.sites[0].1);
    let fewer = Rows::new(all.as_slice()[all.columns()..].to_vec(), all.columns())?;
    let names: Vec<String> = scene.work.columns.iter().map(|column| column.name.clone()).collect();
    let identity = std::sync::Arc::new(liar::identity(seed, 2));
    let prepared = Prepared::new(&fewer, &domain, scene.work.out_of_box)?;
    let origin = Origin::new(names, fewer, None);
    let data = Data::of(NAMES[1], &identity, &prepared);
    let open = |account: &str| {
        let folder = folder.0.join(account);
        std::fs::create_dir_all(&folder).context("no folder")?;
        Ledger::open(
            &folder.join("site-0"),
            Some(&folder.join("head-0")),
            identity.clone(),
            data.clone(),
            Hash::default(),
        )
        .context("a ledger that was written before")
    };
    let unknown =
        |ledger: Ledger| Rate { hit: u64::from(matches!(ledger.book().known(&origin), Ok(Known::Same(_)))), of: 1 };
    let (shorter_by_name, shorter) = (unknown(open("a third name")?), unknown(open("one")?));
    Ok(Finding {
        attack: NAME,
        needs: "an operator who gives a data set a new name, because a message or a coordinator says so",
        control: "an account for each name, as the ledger had it: the same roles with a ledger of its own for the new name",
        protection: "one account for all that leaves under a key: a name is a label [LED-7], and rows that are not those of before \
                     are declared, or not answered from [LED-8]",
        measures: vec![
            Measure::new(
                "totals of the second run, as a part of the first one's",
                by_name as f64 / first as f64,
                Limit::AtLeast(0.8),
                by_rows as f64 / first as f64,
                Limit::AtMost(0.1),
            ),
            Measure::rates("ledgers that take the rows less one for others", shorter_by_name, shorter, 0.0),
        ],
        also_broken: None,
        details: vec![
            format!(
                "{first} totals under the first name; under the second {by_name} more with an account for each, {by_rows} with one \
                 for the rows"
            ),
            format!("what a site says of the first run: {}", why.unwrap_or_else(|| "nothing".into())),
            format!("and of the second: {refused}"),
        ],
        not_shown: "an operator who takes the ledger and its head away together, or who has two keys",
        seconds: began.elapsed().as_secs_f64(),
    })
}
