//! Noise inside the sum (spec section 17): the draws, the keys and the account against the second implementation; and what a plan with
//! noise does not let itself be made into. Whole federations with noise are in `noise_runs`.

use serde_json::{Value, json};
use veilsum_cluster::{
    Algorithm, Centres, Domain, OutOfBox, Prepared, Query, Rows,
    method::{Candidates, Choice, LocalRange, Pick, Seeding},
    privacy::{DEFAULT_RHO, HONEST, Noise, Unit},
    query::{LocalChoice, LocalSteps, Shifts},
    sampling::Sampling,
};
use veilsum_node::{
    answerer::Answerer,
    door::DEFAULT_NANO_RHO,
    dp,
    method_session::MethodSession,
    plan::{Judge, PlanSpec},
    question::{self, Question, SumBounds, Terms},
};
use veilsum_proto::{
    Rule, fixed,
    noise::{Key, Stream, gaussian},
    suite::{Hash, hash},
};
use veilsum_testkit::{
    in_process::{fcm, made_up, prepared, unit_square},
    vectors::{self, array, hex, number},
};

pub(crate) const SIZES: [usize; 5] = [120, 90, 140, 110, 100];
pub(crate) const ROWS: u64 = 560;
pub(crate) const ROUNDS: u32 = 4;

/// Three clusters with noise of a large rho: 560 rows are few.
pub(crate) fn work(rho: f64) -> PlanSpec {
    let mut work = fcm(unit_square(), 3, 0.0, ROUNDS, Seeding::Uniform { seed: 11 });
    work.recipe.noise = Some(Noise::usual(rho, ROWS).from_anywhere());
    work.out_of_box = OutOfBox::Clip;
    work.recipe.choice.by = Pick::Gap;
    work
}

fn shared(work: &PlanSpec) -> SumBounds {
    work.form(SIZES.len(), 256).expect("a form")
}

/// [NOI-1] to [NOI-4], [NOI-6]: the second implementation draws the same numbers from the same keys, and gives the same answers to
/// the bit.
#[test]
fn as_the_second_implementation_has_it() {
    let mut seen = [0; 3];
    for c in vectors::cases("noise") {
        match c["function"].as_str().expect("a function") {
            "gaussian" => {
                let mut stream = Stream::new(&Key::from_bytes(array(&c["key"])));
                let sigma = c["sigma"].as_u64().expect("sigma");
                if let Some(rule) = c.get("rule") {
                    assert_eq!(*rule, json!(gaussian(sigma, &mut stream).unwrap_err().rule()), "sigma {sigma}");
                    continue;
                }
                for draw in c["draws"].as_array().expect("draws") {
                    assert_eq!(gaussian(sigma, &mut stream).unwrap(), draw.as_i64().expect("a draw"), "sigma {sigma}");
                }
                seen[0] += 1;
            }
            "stream" => {
                use rand_core::Rng;
                let mut stream = Stream::new(&Key::from_bytes(array(&c["key"])));
                for word in c["words"].as_array().expect("words") {
                    assert_eq!(stream.next_u64(), word.as_u64().expect("a word"));
                }
                seen[1] += 1;
            }
            "answer" => {
                whole_answer(&c);
                seen[2] += 1;
            }
            other => panic!("no test reads {other}"),
        }
    }
    assert!(seen[0] >= 5 && seen[1] == 1 && seen[2] == 5, "{seen:?}");
}

/// One site's answer with everything that is in it: the plan's budget, deviations, sums, steps and draws.
fn whole_answer(c: &Value) {
    let work = PlanSpec::from_bytes(&hex(&c["work"])).expect("a plan");
    let form = work.form(number(&c["sites"]) as usize, number(&c["max_rows"])).expect("a form");
    let question = Question::from_bytes(&hex(&c["question"])).expect("a question");
    if c["name"] == "first round" {
        assert_eq!(question, Question::Cluster(work.first_question(number(&c["sites"]) as usize).unwrap()));
    }
    let rows: Vec<Vec<f64>> = serde_json::from_value(c["site"].clone()).expect("rows");
    let rows = Rows::new(rows.concat(), work.columns.len()).unwrap();
    let rows = Prepared::new(&rows, &work.domain().unwrap(), work.out_of_box).unwrap();
    let layout = question.layout(rows.domain(), &form).unwrap();
    let priced = layout.noise.expect("noise");
    let found = [("price", priced.nano_rho), ("deviation", priced.deviation), ("limit", priced.limit)];
    found.into_iter().for_each(|(name, found)| assert_eq!(c["layout"][name], found, "{} {name}", c["name"]));
    for (b, told) in layout.blocks.iter().zip(c["layout"]["blocks"].as_array().expect("blocks")) {
        assert_eq!((json!(b.block.name), json!(b.block.len)), (told["name"].clone(), told["words"].clone()));
        let one = told["one"].as_f64().unwrap();
        assert!((b.scale.unit() * one - 1.0).abs() < 1e-12, "{} {one}", b.block.name);
    }
    let key = Key::from_bytes(array(&c["key"]));
    let words = question::contribute(&question, &rows, &Terms { noise: Some(&key), ..Terms::everybody(form) });
    question::contribute(&question, &rows, &Terms::everybody(form)).expect_err("no noise without a key");
    assert_eq!(Value::from(words.unwrap()), c["words"], "{}", c["name"]);
}

/// The context of a round, the same ones every time: of a thousand bounds that are held here one would fail now and then.
fn context(what: &str, round: usize) -> Hash {
    hash("round of a test", &[what.as_bytes(), &round.to_le_bytes()])
}

/// What site `site` draws its noise with in the round of `context`.
fn key_of(site: u8, context: &Hash) -> Key {
    Key::from_bytes(hash("noise of a test", &[&[site], &context.0]).0)
}

/// An answer's noise: every entry's, as a share of the deviation that the plan gives it.
fn noise_of(question: &Question, rows: &Prepared, form: SumBounds, key: &Key) -> Vec<f64> {
    let terms = Terms { noise: Some(key), ..Terms::everybody(form) };
    let noisy = question::contribute(question, rows, &terms).expect("an answer");
    let layout = question.layout(rows.domain(), &form).expect("a layout");
    let exact = match question {
        Question::Cluster(batch) => rows.words(batch, &layout.steps()).expect("words"),
        _ => vec![(rows.len() as f64 / layout.blocks[0].scale.unit()) as i64],
    };
    let deviation = layout.noise.expect("noise").deviation as f64;
    noisy.iter().zip(&exact).map(|(a, b)| (fixed::from_ring(*a) - b) as f64 / deviation).collect()
}

/// [NOI-2], [NOI-3]: every entry of an answer has a draw of the whole planned deviation, and no two entries, of one block or of
/// several, of one round or of the next, have anything in common.
#[test]
fn every_entry_has_independent_noise_of_its_whole_deviation() {
    const ROUNDS_OF_TEST: usize = 2_000;
    let mut work = work(4.8);
    // Two members: blocks of equal deviations.
    (work.recipe.clusters.min, work.recipe.clusters.max) = (2, 3);
    work.check().unwrap();
    let (form, rows) = (shared(&work), &prepared(&work, &made_up(&[3], 0.2, 5))[0]);
    let question = Question::Cluster(work.first_question(SIZES.len()).unwrap());
    let draws: Vec<Vec<f64>> = (0..ROUNDS_OF_TEST)
        .map(|round| noise_of(&question, rows, form, &key_of(1, &context("independent", round))))
        .collect();
    let (n, entries) = (ROUNDS_OF_TEST as f64, draws[0].len());
    assert_eq!(entries, (2 + 4 + 1) + (3 + 6 + 1));
    for i in 0..entries {
        let variance = draws.iter().map(|draw| draw[i] * draw[i]).sum::<f64>() / n;
        assert!((variance - 1.0).abs() < 5.0 * (2.0 / n).sqrt(), "entry {i}: {variance} of the planned variance");
    }
    // Their variances are 1, as was just seen.
    let apart = |what: &str, r: f64| assert!(r.abs() < 5.0 / n.sqrt(), "{what}: correlated by {r}");
    for (i, j) in (0..entries).flat_map(|i| (0..entries).map(move |j| (i, j))) {
        if i < j {
            apart(&format!("entries {i} and {j}"), draws.iter().map(|draw| draw[i] * draw[j]).sum::<f64>() / n);
        }
        let next = draws.windows(2).map(|pair| pair[0][i] * pair[1][j]).sum::<f64>() / n;
        apart(&format!("entry {i} and {j} of the next round"), next);
    }
}

/// [NOI-3], [NOI-6]: by its own noise alone, rounding to steps and what is asked again included, a site pays no more than the plan's
/// price, and hardly less.
#[test]
fn a_run_costs_no_more_than_its_price() {
    for (rho, unit, most) in
        [(0.0003, Unit::Record, 3), (0.0244, Unit::Record, 5), (1.05, Unit::Person { rows: 256 }, 3)]
    {
        let mut work = work(rho);
        work.recipe.clusters.max = most;
        work.recipe.noise.as_mut().expect("noise").unit = unit;
        work.check().unwrap();
        let price = 2 * work.recipe.noise.expect("noise").nano_rho;
        let spent = dp::spent(&work, &shared(&work)).unwrap().expect("a cost");
        assert!(spent <= price && spent > price / 100 * 95, "rho {rho}: {spent} of {price}");
    }
}

/// What the noise of so many sites leaves of a change of the answer, with this part of the planned deviation: (shift of the mean)² /
/// (2 variance) along the change itself.
fn measured_rho(layout: &question::Layout, change: &[i64], sites: usize, part: f64) -> f64 {
    const DRAWS: usize = 20_000;
    let deviation = (part * layout.noise.expect("noise").deviation as f64).round() as u64;
    let mut sums = vec![0i64; DRAWS];
    for site in 0..sites {
        let mut stream = Stream::new(&key_of(site as u8, &context("measured", change.len())));
        sums.iter_mut().for_each(|sum| *sum += gaussian(deviation, &mut stream).expect("a draw"));
    }
    let variance = sums.iter().map(|x| (*x as f64).powi(2)).sum::<f64>() / DRAWS as f64;
    change.iter().map(|x| (*x as f64).powi(2)).sum::<f64>() / (2.0 * variance)
}

/// [NOI-3], [NOI-6]: the row that moves an answer farthest costs the stated rho under its site's own share, to 5 %, half of it under two
/// sites' shares, and a share of half the size is noticed.
#[test]
fn noi_6_the_measured_rho_is_the_stated_one() {
    let mut work = work(0.0244);
    work.recipe.seeding = Seeding::Candidates(Candidates::usual(11));
    work.recipe.noise = Some(Noise::usual(0.25, ROWS));
    work.check().unwrap();
    let (form, domain) = (shared(&work), work.domain().unwrap());
    let levels = form.noise.expect("noise");
    let (middle, clip) = (levels.is_around_middle(0), levels.pull(0, 3, None));
    let centres = Centres::from_rows(&[vec![1.0, 1.0], vec![0.5, 0.2], vec![0.1, 0.4]]).unwrap();
    // A row at the first centre has all its weight there; one in a corner lies farthest from the middle.
    let round = |middle, clip| {
        Question::Cluster(
            Query::Shifts(Shifts { centres: centres.clone(), m: Some(2.0), middle, clip, round: 0 }).into(),
        )
    };
    assert!(!middle && clip > 0.0);
    let rows = |values: Vec<f64>| Prepared::new(&Rows::new(values, 2).unwrap(), &domain, OutOfBox::Clip).unwrap();
    let (nobody, one) = (rows(Vec::new()), rows(vec![1.0, 1.0]));
    let first = Question::Cluster(work.first_question(SIZES.len()).unwrap());
    assert_eq!(first.name(), "margins");
    for question in [Question::CountRows, first, round(true, domain_reach(&domain))] {
        // The same noise in both falls out.
        let key = Key::from_bytes([5; 32]);
        let answer = |rows: &Prepared| {
            question::contribute(&question, rows, &Terms { noise: Some(&key), ..Terms::everybody(form) })
                .expect("an answer")
        };
        let change: Vec<i64> =
            answer(&one).iter().zip(answer(&nobody)).map(|(a, b)| fixed::from_ring(a.wrapping_sub(b))).collect();
        let layout = question.layout(&domain, &form).unwrap();
        let stated = layout.nano_rho().expect("a price") as f64 / 1e9;
        for (sites, part) in [(1, 1.0), (HONEST, 0.5)] {
            let found = measured_rho(&layout, &change, sites, 1.0) / part;
            assert!((found / stated - 1.0).abs() < 0.05, "{}: {found} and not {stated}", question.name());
        }
        let halved = measured_rho(&layout, &change, 1, 0.5);
        assert!(halved / stated > 3.0, "{}: {halved} of {stated} with half of the noise", question.name());
    }
}

/// Half the diagonal of a box, as far as a row may lie from its middle.
fn domain_reach(domain: &Domain) -> f64 {
    let sides = (0..domain.columns()).map(|column| domain.working_interval(column));
    sides.map(|(low, high)| (high - low).powi(2)).sum::<f64>().sqrt() / 2.0
}

/// [NOI-3]: more noise than can be drawn.
#[test]
fn noi_3_a_price_too_low_for_its_noise_is_refused() {
    let mut work = work(0.0003);
    let noise = work.recipe.noise.as_mut().expect("noise");
    (noise.nano_rho, noise.unit, noise.count_share) = (100_000, Unit::Person { rows: 1_000 }, 1e-4);
    let failure = dp::spent(&work, &shared(&work)).expect_err("too much noise");
    assert!(failure.message.contains("a larger rho") && failure.message.contains("NOI-3"), "{failure}");
}

/// [NOI-5]: what a plan with noise cannot be, with the sentence that says what to change.
#[test]
fn noi_5_what_no_sensitivity_is_proved_for_is_refused() {
    let refused = |change: &dyn Fn(&mut PlanSpec), what: &str| {
        let mut work = work(0.0244);
        change(&mut work);
        let why = work.check().expect_err(what).message;
        assert!(why.contains(what), "{why:?} and not {what:?}");
    };
    work(0.0244).check().unwrap();
    let noise = |f: fn(&mut Noise)| move |w: &mut PlanSpec| f(w.recipe.noise.as_mut().expect("noise"));
    refused(&noise(|n| n.nano_rho = 99_999), "rho");
    refused(&noise(|n| n.retries = 101), "asked again");
    refused(&noise(|n| n.seeding_share = f64::NAN), "share");
    refused(&noise(|n| n.count_share = 0.8), "twentieth");
    refused(&noise(|n| n.tau = 1.5), "tau");
    refused(&noise(|n| n.absolute_rounds = 0), "absolute_rounds");
    refused(&noise(|n| n.validation_share = 0.0), "share");
    refused(&noise(|n| n.unit = Unit::Person { rows: 0 }), "at least 1");
    refused(&noise(|n| n.unit = Unit::Person { rows: 1_001 }), "at most 1000");
    refused(&|w| w.out_of_box = OutOfBox::Refuse, "out_of_box = \"clip\"");
    refused(&|w| w.step_bits = Some(20), "leave step_bits out");
    let (m, max_rounds, local) = (2.0, 9, LocalSteps::ONE);
    let of = |algorithm: Algorithm| move |w: &mut PlanSpec| w.recipe.algorithm = algorithm.clone();
    refused(&of(Algorithm::Fcm { m, epsilon: 0.01, max_rounds }), "epsilon of the method 0");
    refused(&of(Algorithm::FfcmAvg2 { m, epsilon: 0.0, max_rounds, local }), "can only be exact");
    let index = Choice { by: Pick::FuzzyDaviesBouldin, elbow: false };
    refused(&|w| (w.recipe.clusters.max, w.recipe.choice) = (4, index), "the gap chooses K");
    refused(
        &|w| {
            w.recipe.clusters.max = 4;
            w.recipe.noise.as_mut().expect("noise").tau = 0.0;
        },
        "dp_tau above 0",
    );
    refused(&|w| w.recipe.range = Some(LocalRange { most: 4, starts: 1, seed: 1 }), "range of K");
    refused(&|w| w.sampling = Some(Sampling { share: 0.5, seed: 1 }), "sampled");
    refused(&|w| w.judge = Judge::Intermediary, "the coordinator opens");
    refused(&|w| w.recipe.restarts = 2, "restarts = 1");
    // A question that is not accounted for has no layout.
    let work = work(0.0244);
    let (form, domain) = (shared(&work), work.domain().unwrap());
    let choice = LocalChoice { min: 2, most: 3, m, local, seed: 1, starts: 1 };
    let choice = Question::Cluster(Query::LocalChoice(choice).into());
    assert_eq!(choice.layout(&domain, &form).unwrap_err().rule(), Some(Rule::Noi5));
    // Nor is any question with noise another one than the plan's.
    let session = MethodSession::of(&work, form).unwrap();
    let first = work.first_question(5).unwrap();
    assert!(session.expects(&Question::Cluster(first.clone())));
    let centres = first.queries[0].points()[0].clone();
    assert!(!session.expects(&Question::Cluster(Query::fuzzy_sums(centres, 2.0).into())));
    let changed = |change: &dyn Fn(&mut Shifts)| {
        let mut batch = first.clone();
        let Query::Shifts(shifts) = &mut batch.queries[0] else { panic!("shifts") };
        change(shifts);
        session.expects(&Question::Cluster(batch))
    };
    assert!(!changed(&|s| s.clip *= 2.0), "a row that pulls farther than the noise hides");
    assert!(!changed(&|s| s.round = ROUNDS) && !changed(&|s| s.middle = false) && !changed(&|s| s.m = None));
}

/// The documents say what noise is worth in the sentence of all screens.
#[test]
fn documents_say_what_screens_say() {
    let said = dp::guesses(Unit::Record, Noise::usual(DEFAULT_RHO, 1).price(), DEFAULT_NANO_RHO);
    for file in ["README.md", "threat-model.md", "docs/src/account.md"] {
        let text = crate::source::read(file);
        let words: Vec<&str> = text.split_whitespace().filter(|word| *word != ">").collect();
        assert!(words.join(" ").contains(said.trim_end_matches('.')), "{file}: {said}");
    }
}
