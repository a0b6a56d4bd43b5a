//! Nothing that a site sends depends on its rows, but masked words ([POL-4], [NOI-8], [PRO-2]): two runs under one plan, with the same
//! randomness and the same totals, and any two data sets with which the site is ready, are the same bytes at the same steps.
//!
//! Exempt are masked words and what names them: commitments to them, hashes of inputs, signatures over these. By default 200 plans;
//! `VEILSUM_SEEDS=1000` runs more, and `VEILSUM_SEED=4711` one.

use std::collections::BTreeMap;

use veilsum_node::error::Failure;
use veilsum_proto::message::{Kind, kind_of};
use veilsum_testkit::{
    program::Folder,
    seeds::{self, Dice},
    wire::parts,
};

pub(crate) mod plans;
mod talk;
pub(crate) mod world;

use plans::{Case, Look, case, table};
use world::{Rows, Seen, read, run};

/// A frame without what names masked words.
fn blanked(frame: &[u8]) -> (Kind, usize, Vec<u8>, Vec<u8>) {
    let kind = kind_of(frame).expect("a whole frame");
    let of = parts(frame);
    let (context, signature) = (of.context.0.to_vec(), of.proof.signature.to_bytes().to_vec());
    let (rest, about) = match kind {
        // A commitment, and the words.
        Kind::MaskedInput => (Vec::new(), Vec::new()),
        // Of a round, whose name follows from the inputs of the round before.
        Kind::ConsistencyCheck => (of.rest[32..].to_vec(), Vec::new()),
        Kind::Unmask | Kind::Refusal => (of.rest, Vec::new()),
        // The ledger's last link, and signatures over it.
        Kind::Countersigned => (Vec::new(), Vec::new()),
        _ => (of.rest, [context, signature].concat()),
    };
    (kind, frame.len(), rest, about)
}

fn compare(one: &Seen, other: &Seen) {
    for (at, (a, b)) in one.steps.iter().zip(&other.steps).enumerate() {
        assert_eq!(a.told, b.told, "what the site is told at step {at}");
        let kinds = |seen: &world::Step| seen.sent.iter().map(|(to, f)| (*to, kind_of(f))).collect::<Vec<_>>();
        assert_eq!(kinds(a), kinds(b), "what the site sends at step {at}, on {:?}", a.told);
        for ((_, a), (_, b)) in a.sent.iter().zip(&b.sent) {
            assert!(blanked(a) == blanked(b), "step {at}: another {:?}\n{:?}\n{:?}", kind_of(a), parts(a), parts(b));
        }
    }
    assert_eq!((one.steps.len(), one.code), (other.steps.len(), other.code), "how it ends");
}

/// What came of some plans.
#[derive(Default, Debug)]
struct Tally {
    methods: BTreeMap<String, usize>,
    noisy: usize,
    not_ready: usize,
    refusals: usize,
    signed: usize,
    judged: usize,
    answers: usize,
}

impl Tally {
    fn add(&mut self, case: &Case, seen: &Seen) {
        let work = &case.cast.federation.work;
        let noisy = work.recipe.noise.is_some();
        *self.methods.entry(format!("{}{}", work.method_name(), if noisy { " noisy" } else { "" })).or_default() += 1;
        self.noisy += usize::from(noisy);
        let sent = |kind| seen.steps.iter().flat_map(|s| &s.sent).filter(|(_, f)| kind_of(f) == Some(kind)).count();
        self.refusals += sent(Kind::Refusal);
        self.signed += sent(Kind::Countersigned);
        self.judged += sent(Kind::CentreDistances);
        self.answers += seen.answers.len();
    }
}

fn rows(case: &Case, folder: &Folder, name: &str, text: &str) -> Result<Rows, Failure> {
    let path = folder.path(name).into();
    std::fs::write(&path, text).expect("a table");
    read(case, &path)
}

fn plan(seed: u64, folder: &Folder, tally: &mut Tally) {
    let (case, mut dice) = (case(seed), Dice::new(!seed));
    let work = &case.cast.federation.work;
    let looks = [Look::Usual, Look::Outside, Look::Holes, Look::Unlisted, Look::Zeros];
    let data = |dice: &mut Dice| {
        let (look, many) = (dice.of(&looks), dice.of(&[0, 1, 2, 9, 30]));
        rows(&case, folder, "one.csv", &table(dice, work, many, look))
    };
    let usual = table(&mut Dice::new(seed ^ 77), work, 12, Look::Usual);
    let usual = rows(&case, folder, "usual.csv", &usual).expect("rows in their ranges");
    let exact = work.recipe.noise.is_none();
    let mut ready = || {
        // A site that is not ready takes no part; without noise one without rows is none.
        let found = (0..20).find_map(|_| data(&mut dice).ok().filter(|rows| !exact || rows.rows() > 0));
        found.unwrap_or_else(|| {
            tally.not_ready += 1;
            usual.clone()
        })
    };
    let (one, other) = (ready(), ready());
    let sites = |first: &Rows| {
        let others = vec![usual.clone(); case.cast.federation.roster.sites.len() - 1];
        [vec![first.clone()], others].concat()
    };
    let first = run(&case, &sites(&one), None, seed);
    let second = run(&case, &sites(&other), Some(&first), seed);
    tally.add(&case, &first);
    compare(&first, &second);
}

#[test]
fn what_a_site_sends_is_the_same_for_all_rows() {
    let (folder, mut tally) = (Folder::fresh(), Tally::default());
    let played = seeds::play(200, "--test product metamorphic", |seed| plan(seed, &folder, &mut tally));
    println!("{tally:?}");
    if played >= 200 {
        assert!(tally.noisy > 60 && tally.refusals > 15 && tally.answers > 500 && tally.methods.len() > 8, "{tally:?}");
    }
}
