//! The release rule against the measured attacks: every case in which a prototype recovered rows is stopped, and what an
//! ordinary fit needs is allowed (spec section 11.1). In floating point, which the core itself does not know.

use veilsum_proto::policy::room;

/// A case of the attack prototypes: rows behind the numbers, columns, numbers, bits of each, possible rows if discrete.
type Case = (&'static str, u64, u32, u64, f64, Option<u64>);

/// log2(range / step) for `rows` rows of the box [-1, 1] and a step of 2^-`step`.
fn bits(rows: u64, step: u32) -> f64 {
    (rows as f64).log2() + f64::from(step)
}

fn allowed(case: &Case) -> bool {
    let (_, rows, columns, scalars, bits, domain) = *case;
    let room = room(rows, columns, 10, domain);
    let used = scalars as f64 * bits * 1000.0;
    scalars <= room.scalars && used <= room.milli_bits as f64
}

/// [POL-9] against the attacks that recovered rows in the prototypes: each of them is stopped.
#[test]
fn pol_9_the_rule_stops_every_attack_that_worked() {
    // One round of U and WS at one site, continuous rows: whatever was recovered to any part (F, C, largest N).
    let one_round: [(u32, u64, u64); 9] =
        [(1, 3, 7), (1, 5, 11), (2, 3, 5), (2, 5, 8), (2, 10, 15), (4, 3, 4), (4, 5, 7), (8, 3, 4), (8, 5, 4)];
    for (columns, k, most) in one_round {
        for rows in 2..=most {
            let case = ("one round", rows, columns, k * u64::from(columns + 1), bits(rows, 44), None);
            assert!(!allowed(&case), "{case:?}");
        }
    }
    let cases: Vec<Case> = vec![
        // One round, discrete.
        ("49 values, 2^-20", 10, 2, 9, bits(10, 20), Some(49)),
        ("49 values, 2^-20", 20, 2, 9, bits(20, 20), Some(49)),
        ("49 values, 2^-20", 40, 2, 9, bits(40, 20), Some(49)),
        ("49 values, 2^-20", 80, 2, 9, bits(80, 20), Some(49)),
        ("49 values, 2^-44", 80, 2, 9, bits(80, 44), Some(49)),
        ("64 values, 2^-20", 10, 6, 21, bits(10, 20), Some(64)),
        ("64 values, 2^-20", 80, 6, 21, bits(80, 20), Some(64)),
        ("73 ages, 2^-20", 10, 1, 6, bits(10, 20), Some(73)),
        ("73 ages, 2^-20", 20, 1, 6, bits(20, 20), Some(73)),
        ("73 ages, 2^-32", 20, 1, 6, bits(20, 32), Some(73)),
        ("73 ages, 2^-44", 80, 1, 6, bits(80, 44), Some(73)),
        // Many rounds at one site.
        ("N = 10, T = 3", 10, 2, 27, bits(10, 44), None),
        ("N = 10, T = 5, 2^-20", 10, 2, 45, bits(10, 20), None),
        ("N = 15, T = 8", 15, 2, 72, bits(15, 44), None),
        ("N = 20, T = 12", 20, 2, 108, bits(20, 44), None),
        ("K sweep, 3 rounds, N = 50", 50, 2, 484, bits(50, 44), None),
        ("K sweep x10, N = 20, 2^-20", 20, 2, 1_408, bits(20, 20), None),
        ("K sweep x10, N = 50, 2^-20", 50, 2, 1_408, bits(50, 20), None),
        ("K sweep x10, N = 50, 2^-8", 50, 2, 1_408, bits(50, 8), None),
        ("K sweep x10, N = 150, 2^-20", 150, 2, 1_408, bits(150, 20), None),
        ("K sweep x10, N = 150, 2^-44", 150, 2, 1_408, bits(150, 44), None),
        // Totals of a federation, discrete.
        ("totals, 64 values, T = 2", 3_000, 6, 42, bits(3_000, 20), Some(64)),
        ("totals, 64 values, T = 1, 2^-44", 3_000, 6, 21, bits(3_000, 44), Some(64)),
        ("totals, 49 values, T = 3", 3_000, 2, 27, bits(3_000, 20), Some(49)),
        ("totals, 49 values, T = 6", 3_000, 2, 54, bits(3_000, 20), Some(49)),
        ("totals, 49 values, T = 10, 2^-8", 3_000, 2, 90, bits(3_000, 8), Some(49)),
        // The coordinator and all other sites: what is left is one site's rows.
        ("n - 1 collude, K sweep, N = 12", 12, 2, 1_408, bits(12, 20), None),
        ("n - 2 collude, K sweep, N = 24", 24, 2, 1_408, bits(24, 20), None),
        // Full rank, however well solved.
        ("K sweep x10 on the totals of 3,000", 3_000, 2, 1_408, bits(3_000, 20), None),
    ];
    for case in &cases {
        assert!(!allowed(case), "{case:?}");
    }
}

/// [POL-9] allows what a fit needs: 270 numbers on 3,000 rows are 0.29 of what is unknown about them, a sweep 1.50.
#[test]
fn pol_9_the_rule_allows_one_fit() {
    let fit: Case = ("totals, N = 3,000, C = 3, T = 30", 3_000, 2, 270, bits(3_000, 20), None);
    assert!(allowed(&fit));
    let unknown = room(3_000, 2, 10, None).milli_bits as f64 * 2.0;
    let share = |scalars: f64| scalars * bits(3_000, 20) * 1000.0 / unknown;
    assert!((share(270.0) - 0.287).abs() < 0.005, "{}", share(270.0));
    assert!((share(1_408.0) - 1.50).abs() < 0.01, "{}", share(1_408.0));
}
