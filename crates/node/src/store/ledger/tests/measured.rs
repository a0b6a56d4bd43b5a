//! Smooth questions by what they tell together ([POL-9]).

use veilsum_cluster::{Batch, Centres, Domain, OutOfBox, Prepared, Query, Rows, Scaling, random::Stream};
use veilsum_proto::{
    plan::Terms,
    policy::{Policy, Request},
    testing::Kit,
};

use super::*;
use crate::release::Account;

/// A question of fuzzy c-means in the unit square, and the answer to it.
fn smooth(x: f64) -> (Kept, Answer) {
    question(Centres::new(2, 2, vec![x, 0.2, 0.7, 0.9]).unwrap(), 3_000)
}

fn question(centres: Centres, rows: u64) -> (Kept, Answer) {
    let numbers = (centres.k() * 3) as u64;
    let batch = Batch { transform: None, queries: vec![Query::fuzzy_sums(centres, 2.0)] };
    let query = crate::question::Question::Cluster(batch).to_bytes();
    let question = suite::hash("question in a ledger", &[&query, &[]]);
    let domain = Domain::new(vec![0.0; 2], vec![1.0; 2], Scaling::Box).unwrap();
    let columns = vec!["x".to_owned(), "y".to_owned()];
    let kept = Kept { plan: PLAN, query, columns, domain, fraction_bits: vec![20, 20], rows };
    let cost = Cost { scalars: numbers, milli_bits: numbers * 33_333, nano_rho: None };
    (kept, Answer { question, cost, ..answer(0, 0) })
}

/// A round of it, as a site's consent goes: measured, kept, promised, written down.
fn smooth_round(ledger: &mut Ledger, number: u16, cohort: u8, x: f64) -> Option<Smooth> {
    let (kept, answer) = smooth(x);
    let told = ledger.book_mut().measure(Some(&kept), &answer.cost);
    ledger.keep(kept);
    let asked = left(number, cohort);
    ledger.book_mut().promise(&asked, answer, block()).unwrap();
    ledger.record(&[number as u8; 100], Disclosure::MaskedWords, &asked).unwrap();
    told
}

/// [POL-9]: what smooth questions tell together is the same after a restart, whatever was refused in between.
#[test]
fn smooth_questions_are_measured_again_after_a_restart() {
    let site = Site::new("smooth");
    let mut ledger = site.open().unwrap();
    let (mut told, mut ranks) = (None, Vec::new());
    for number in 1..=4 {
        let (refused, answer) = smooth(0.9 - 0.1 * f64::from(number));
        let would = ledger.book_mut().measure(Some(&refused), &answer.cost).unwrap();
        told = smooth_round(&mut ledger, number, 9, 0.1 * f64::from(number));
        assert_eq!(would.instead, told.unwrap().instead);
        ranks.push(told.unwrap().rank);
    }
    let told = told.unwrap();
    assert!(ranks[0] == 6 && ranks.windows(2).all(|pair| pair[0] < pair[1]) && told.rank <= 24, "{ranks:?}");
    ledger.book_mut().measure(None, &Cost::default());
    assert_eq!((ledger.book().spent(&other(), false).smooth, told.instead), (told, (24, 24 * 33_333)));
    // The very same question over other sites: no more rank, but another number one by one.
    let again = smooth_round(&mut ledger, 5, 8, 0.1).unwrap();
    assert_eq!((again.rank, again.milli_bits, again.instead), (told.rank, told.milli_bits, (30, 30 * 33_333)));
    drop(ledger);
    let measured = |site: &Site| {
        let mut back = site.open().unwrap();
        assert_eq!(back.book().spent(&other(), false).smooth, Smooth::default(), "counted one by one until measured");
        back.book_mut().measure(None, &Cost::default());
        let spent = back.book().spent(&other(), false);
        assert_eq!(spent.scalars, 30);
        spent.smooth
    };
    assert_eq!(measured(&site), again);
    let look = Ledger::look(&site.folder.0.join("state"), &site.head(), &identity(1)).unwrap();
    assert_eq!(look.spent(&Hash::default(), None, None).smooth, again);
    // A line that is torn, damaged or signed by somebody else counts for nothing, and its numbers one by one.
    let file = site.folder.0.join("state").join(QUESTIONS);
    let whole = fs::read_to_string(&file).unwrap();
    println!("{} bytes a question", whole.len() / 4);
    let first = whole.find('\n').unwrap() + 1;
    let stranger = Site::new("stranger");
    smooth::append(&stranger.folder.0.join("own"), &smooth(0.1).0, &identity(2)).unwrap();
    let foreign = fs::read_to_string(stranger.folder.0.join("own")).unwrap();
    for text in [whole[first..].to_owned(), foreign + &whole[first..], whole.replacen("a", "b", 1), "\u{0}".into()] {
        fs::write(&file, &text).unwrap();
        let less = measured(&site);
        assert!(less.instead.0 <= 18 && less.rank < again.rank, "{less:?}");
    }
    // A torn line does not swallow the next.
    fs::write(&file, &whole[..whole.len() - 9]).unwrap();
    let mut back = site.open().unwrap();
    smooth_round(&mut back, 6, 9, 0.95);
    drop(back);
    let key = identity(1).public();
    assert_eq!(smooth::read(&file, &key).unwrap().len(), 4, "three whole lines and the new one");
}

/// [POL-9]: rows were rebuilt from the totals of 20 rounds on 25 rows; r was 0.26 of their values where the first showed. A strict
/// site stops at an eighth of them, whatever the numbers one by one come to, and a long run on many rows goes on.
#[test]
fn a_run_stops_before_its_rank_comes_near_to_the_rows() {
    let stops = |n: usize, rounds: usize| {
        let mut stream = Stream::new(n as u64, b"veilsum rank and rows v1");
        let values = (0..n).flat_map(|row| {
            let [a, b] = stream.normal_pair();
            let (x, y) = [(0.2, 0.3), (0.8, 0.5), (0.4, 0.9)][row % 3];
            [(x + 0.08 * a).clamp(0.0, 1.0), (y + 0.08 * b).clamp(0.0, 1.0)]
        });
        let domain = Domain::new(vec![0.0; 2], vec![1.0; 2], Scaling::Box).unwrap();
        let rows = Rows::new(values.collect(), 2).unwrap();
        let rows = Prepared::new(&rows, &domain, OutOfBox::Refuse).unwrap();
        let terms = (*Kit::new(3, |_| {}).terms).clone();
        let terms = Terms { opening: true, max_rows: n as u64, colluders: 0, ..terms };
        let (policy, mut account) = (Policy::default(), Account::default());
        let mut centres = Centres::new(3, 2, vec![0.1, 0.6, 0.5, 0.1, 0.9, 0.8]).unwrap();
        let (mut spent, mut ranks) = (Spent::default(), vec![0]);
        for round in 0..rounds {
            let (kept, answer) = question(centres.clone(), n as u64);
            let smooth = account.measure_with(&kept, &answer.cost);
            ranks.push(smooth.unwrap().rank);
            let (own_rows, rows_in_all) = (n as u64, n as u64);
            let cost = answer.cost;
            let request = Request { sites: 3, own_rows, rows_in_all, columns: 2, cost, smooth, ..Request::default() };
            if let Err(e) = policy::check_budgets(&terms, &policy, &request, &spent) {
                assert!(e.to_string().contains("POL-9"), "{e}");
                return (Some(round), ranks);
            }
            account.keep([kept.clone()]);
            let entry = Entry {
                index: round as u64,
                previous: Hash::default(),
                plan: PLAN,
                session: Hash([2; 32]),
                run: RUN,
                slot: Some((0, round as u16)),
                cohort: Some(Hash([9; 32])),
                discloses: Disclosure::MaskedWords,
                bytes: 1,
                digest: Hash::default(),
                data: "rows".into(),
                rows: Hash([5; 32]),
                version: 0,
                block: None,
                note: None,
                answer: Some(answer),
                old: false,
            };
            account.take(&entry);
            account.measure();
            spent = account.spent(&Hash::default(), None, None);
            let batch = Batch::from(Query::fuzzy_sums(centres, 2.0));
            let sums = veilsum_cluster::answer(&batch, &rows).unwrap().values;
            centres = Centres::new(3, 2, (0..6).map(|at| sums[at] / sums[6 + at / 2]).collect()).unwrap();
        }
        (None, ranks)
    };
    let (stopped, _) = stops(25, 20);
    assert_eq!(stopped, Some(0), "9 numbers of the first round are above an eighth of 50 values");
    for n in [50, 100, 150] {
        let values = 2 * n as u64;
        let (stopped, ranks) = stops(n, 20);
        let answered = ranks[stopped.expect("it stops")];
        assert!(answered <= values / 8 && answered as f64 <= 0.26 * values as f64, "{n}: {ranks:?}");
        assert!(ranks.last().unwrap() * 8 > values, "{n}: {ranks:?}");
    }
    // 60 rounds of 9 numbers would be 540, more than a quarter of 2,000 values.
    let (stopped, ranks) = stops(1_000, 60);
    assert_eq!(stopped, None, "{ranks:?}");
    assert!(*ranks.last().unwrap() < 90, "{ranks:?}");
}
