//! An audit of one's own plan on one's own rows: what could somebody get of them, beside blind guessing?
//!
//! Other than the attacks of the table, which test the program, these test a plan. They take the totals of the run as the adversary has
//! them, and the best test that there is for what it knows (`likelihood.rs`). An attack that succeeds is no defect of the program, but a reason not
//! to agree to the plan; one that is better than the account of rho allows is a defect.

mod attacks;
mod bins;
mod guess;
mod knows;
mod likelihood;
mod oracle;
mod play;
mod rounds;
mod scene;
mod screen;
mod solve;
mod tried;
mod whole;

use anyhow::Result;
use serde::Serialize;

pub use knows::Knows;
pub use play::Site;
pub use scene::{Scene, federation};
use tried::DRAWS;
pub use tried::{Advantage, Answer, Tried};

/// What the attacks came to.
#[derive(Debug, Clone, Serialize)]
pub struct Audited {
    /// From which strangers, samples and draws come.
    pub seed: u64,
    /// rho of the plan; nothing where it is exact.
    pub rho: Option<f64>,
    /// Sites of the roster.
    pub sites: usize,
    /// One's own rows.
    pub own_rows: usize,
    /// Of them so many were attacked.
    pub attacked: usize,
    /// Whether the others' rows were drawn.
    pub drawn: bool,
    /// Every attack by what is known.
    pub tried: Vec<Tried>,
    /// Whether a row is at risk: from somebody who does not know all other rows, or by a defect.
    pub at_risk: bool,
}

/// Lets every attack at a plan, in several draws; `tell` hears of each before it begins.
///
/// # Errors
/// Where the plan cannot be played over these rows.
pub fn audit(scene: &Scene, seed: u64, tell: impl Fn(&str)) -> Result<Audited> {
    let mut lines: Vec<Vec<Tried>> = Vec::new();
    for draw in 0..DRAWS {
        // A second plan takes the next seed.
        let seed = seed.wrapping_add(2 * draw as u64);
        for line in once(&scene.again(seed), seed, |step| tell(&format!("draw {} of {DRAWS}: {step}", draw + 1)))? {
            match lines.iter_mut().find(|all| (all[0].attack, all[0].knows) == (line.attack, line.knows)) {
                Some(all) => all.push(line),
                None => lines.push(vec![line]),
            }
        }
    }
    let tried: Vec<Tried> = lines.into_iter().filter_map(|of| Tried::over(of, scene.rho().is_none())).collect();
    let at_risk = tried.iter().any(Tried::at_risk);
    Ok(Audited {
        seed,
        rho: scene.rho(),
        sites: scene.sites.len(),
        own_rows: scene.sites[0].values.len(),
        attacked: scene.targets.len(),
        drawn: scene.drawn,
        tried,
        at_risk,
    })
}

/// Makes the tries of one attack.
type Tries<'a> = &'a dyn Fn() -> Result<Vec<Tried>>;

/// Every attack in one draw.
fn once(scene: &Scene, seed: u64, tell: impl Fn(&str)) -> Result<Vec<Tried>> {
    tell("playing the plan over the rows of all sites");
    let told = attacks::Told::of(scene, &scene.work, seed)?;
    let each: [(&str, Tries<'_>); 11] = [
        ("presence: is a person there?", &|| Ok(attacks::presence(scene, &told))),
        ("value: what is in a person's column?", &|| attacks::value(scene, &told, seed)),
        ("published record: is a centre a person?", &|| attacks::published(scene, &told, seed)),
        ("few in a cell: does a total count single persons?", &|| attacks::few_in_a_cell(scene, &told)),
        ("moving rows: what changes between two rounds?", &|| rounds::moving(scene, &told, seed)),
        ("records: which rows fit all totals best?", &|| solve::records(scene, &told, seed)),
        ("whole numbers: a column of two values for many rows at once", &|| whole::whole_numbers(scene, &told)),
        ("possible rows: how often does each occur?", &|| whole::cells(scene, &told)),
        ("share of a site: what do all others together learn?", &|| whole::share(scene, &told, seed)),
        ("proposals: what do your answers to plans tell?", &|| oracle::proposals(scene, seed)),
        ("chosen start: what do first centres beside a person tell?", &|| attacks::chosen_start(scene, seed)),
    ];
    let mut tried = Vec::new();
    for (step, attack) in each {
        tell(step);
        tried.extend(attack()?);
    }
    tell("two plans: what does a second one add?");
    let second = attacks::second(scene, seed.wrapping_add(1))?;
    tried.extend(bins::between(scene, &told, second.as_ref()));
    tried.extend(attacks::two_plans(scene, told, second));
    Ok(tried)
}
