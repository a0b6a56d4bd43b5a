use super::*;
use veilsum_cluster::{Centres, Domain, OutOfBox, Prepared, Scaling, answer};

fn example() -> (Batch, Rows, Vec<f64>) {
    let centres = Centres::from_rows(&[vec![-0.6, 0.1], vec![0.5, 0.7], vec![0.2, -0.8]]).unwrap();
    let rows = Rows::new(vec![0.31, 0.12, -0.71, -0.44, 0.05, 0.93], 2).unwrap();
    let domain = Domain::new(vec![-1.0; 2], vec![1.0; 2], Scaling::None).unwrap();
    let query = Batch::from(Query::fuzzy_sums(centres, 2.0));
    let prepared = Prepared::new(&rows, &domain, OutOfBox::Refuse).unwrap();
    let observed = answer(&query, &prepared).unwrap().values;
    (query, rows, observed)
}

#[test]
fn three_records_come_out_of_nine_sums() {
    let (query, rows, observed) = example();
    let guess = attack(&query, &observed, 200, &mut Stream::new(1, LABEL)).unwrap();
    assert!(guess.is_solution(), "{guess:?}");
    assert_eq!(guess.records.len(), 6);
    assert_eq!(hits(&rows, &guess.records).0, 3);
}

#[test]
fn a_guess_is_used_for_one_record_only() {
    let rows = Rows::new(vec![0.5, 0.5, 0.5, 0.5], 2).unwrap();
    assert_eq!(hits(&rows, &[0.5, 0.5004]).0, 1);
    assert_eq!(hits(&rows, &[0.5, 0.5004, 0.5, 0.5]).0, 2);
    assert_eq!(hits(&rows, &[0.5, 0.502]).0, 0);
}
