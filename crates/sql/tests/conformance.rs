use veilsum_answerer::conformance;

/// Memory, COPY and SQL give the same words, for every kind that each of them lists.
#[test]
fn rows_held_rows_streamed_again_and_sql_give_the_words_of_a_file() {
    let Some(server) = super::server() else { return };
    for (args, tried_at_least) in
        [(&["--mode", "stream"][..], 16), (&["--mode", "stream", "--memory", "0"], 13), (&["--mode", "push"], 10)]
    {
        let (launch, _) = super::launch(&server, &[args, &["--view", super::TABLE]].concat());
        let tried = conformance::check(&launch, &super::rows());
        for one in &tried {
            println!("{args:?} {}: {:?}", one.what, one.result);
        }
        let wrong: Vec<_> = tried.iter().filter(|one| one.result.is_err()).collect();
        assert!(wrong.is_empty(), "{args:?}: {wrong:#?}");
        let compared = |one: &&conformance::Tried| one.result.as_ref().is_ok_and(|seen| seen.contains("words"));
        assert!(tried.iter().filter(compared).count() >= 3 * tried_at_least - 9, "{tried:#?}");
    }
}

/// A query of the operator's own, and a view in a schema.
#[test]
fn queries_and_views_serve_as_well() {
    let Some(server) = super::server() else { return };
    server.sql("CREATE SCHEMA IF NOT EXISTS \"St. Mary\"; CREATE VIEW \"St. Mary\".\"the rows\" AS SELECT * FROM veilsum_example");
    let query = "SELECT * FROM veilsum_example -- all of them;";
    let (launch, _) = super::launch(&server, &["--query", query, "--mode", "push"]);
    let held = veilsum_answerer::Held::start(launch, super::hello()).unwrap();
    let ready = held.ready().clone();
    let (launch, _) = super::launch(&server, &["--query", "TABLE \"St. Mary\".\"the rows\"", "--mode", "stream"]);
    let held = veilsum_answerer::Held::start(launch, super::hello()).unwrap();
    // A view that the database has is the same rows, whatever the mode.
    assert_eq!(held.ready().fingerprint, ready.fingerprint);
    assert_eq!(held.ready().rows, super::ROWS as u64);
}
