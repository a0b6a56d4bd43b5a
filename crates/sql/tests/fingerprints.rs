//! What rows of a database are known by.

use veilsum_answerer::{
    Held, Ready,
    contract::{Categorical, Column, Hello, PROTOCOL},
};
use veilsum_cluster::{OutOfBox, Scaling};

/// What is said of the rows of a query with the flags `a` and `b`, a third number `c`, and a name `k`.
fn ready(hello: Hello, rows: &str) -> Option<Ready> {
    let server = super::server()?;
    let query = format!("SELECT * FROM (VALUES {rows}) v (a, b, c, k)");
    let (launch, _) = super::launch(&server, &["--query", &query, "--mode", "push"]);
    Some(Held::start(launch, hello).unwrap_or_else(|fault| panic!("{rows}: {fault}")).ready().clone())
}

fn hello(out_of_box: OutOfBox) -> Hello {
    let column = |name: &str, upper| Column { name: name.to_owned(), lower: 0.0, upper };
    let categories = ["x", "y"].map(str::to_owned).to_vec();
    Hello {
        protocol: PROTOCOL,
        columns: vec![column("a", 1.0), column("b", 1.0), column("c", 9.0)],
        categorical: vec![Categorical { column: "k".into(), categories, one: 0.5 }],
        scaling: Scaling::None,
        out_of_box,
        noise: false,
    }
}

#[test]
fn flags_that_change_rows_and_rows_of_zeros_change_the_fingerprint() {
    let of = |rows: &str| ready(hello(OutOfBox::Refuse), rows).map(|ready| ready.fingerprint);
    let Some(before) = of("(1, 0, 5, 'x'), (0, 1, 7, 'x')") else { return };
    assert_eq!(of("(0, 1, 7, 'x'), (1, '-0'::float8, 5, 'x')").unwrap(), before);
    // The flags of two rows change places: no column changes, and the rows do.
    let swapped = of("(0, 1, 5, 'x'), (1, 0, 7, 'x')").unwrap();
    assert_eq!(swapped.columns, before.columns);
    assert_ne!(swapped.rows, before.rows);
    // One flag moves to the other column: two columns and the rows change.
    let moved = of("(0, 0, 5, 'x'), (1, 1, 7, 'x')").unwrap();
    assert_eq!(moved.columns, before.columns);
    assert!(moved.rows != before.rows && moved.rows != swapped.rows);
    let more = of("(1, 0, 5, 'x'), (0, 1, 7, 'x'), (0, 0, 0, 'x')").unwrap();
    let most = of("(1, 0, 5, 'x'), (0, 1, 7, 'x'), (0, 0, 0, 'x'), (0, 0, 0, 'x')").unwrap();
    for (fewer, more) in [(&before, &more), (&more, &most)] {
        assert_ne!(fewer.rows, more.rows);
        assert!(fewer.columns.iter().zip(&more.columns).all(|(a, b)| a != b), "{fewer:?} {more:?}");
    }
    let other = of("(1, 0, 5, 'x'), (0, 1, 7, 'y')").unwrap();
    assert!(other.rows != before.rows && other.columns[3] != before.columns[3]);
    assert_eq!(other.columns[..3], before.columns[..3]);
}

#[test]
fn rows_are_known_in_the_box_of_a_plan_that_clips() {
    let mut narrow = hello(OutOfBox::Clip);
    narrow.columns[2].lower = 3.0;
    narrow.columns[2].upper = 4.0;
    let rows = "(1, 0, 5, 'x'), (0, 1, 7, 'x'), (0, 0, 1, 'x'), (0, 0, 8.5, 'y')";
    let (Some(wide), Some(narrow)) = (ready(hello(OutOfBox::Refuse), rows), ready(narrow, rows)) else { return };
    // The bounds are the plan's, and the rows are the same.
    assert_eq!(wide.fingerprint, narrow.fingerprint);
}
