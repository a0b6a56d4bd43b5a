//! Runs that are taken up: a coordinator or an intermediary that is stopped, killed or out of disk, and started again with the same command.

use veilsum_testkit::program::{Parties, ending, free_port, start, veilsum};

use super::processes::{LIMIT, LONG, QUICK, SIZES, answered, calm, start_all};
use crate::said::Told;

/// The run is over: the folder beside this key holds an empty journal.
fn nothing_to_take_up(p: &Parties, name: &str) {
    let state = ending(p.folder.path(&format!("{name}.key.state")), "");
    assert!(state.iter().all(|file| file.metadata().expect("its size").len() <= 16), "a journal with entries");
}

/// A coordinator that its operator or a supervisor stops ends nobody's run: the others are told, wait a little for it, and go on where
/// it was when it is started again with the same command. One that was killed goes on, too. From what it keeps of the whole run
/// everything is recomputed, as from what a site keeps that nobody stopped.
#[test]
fn a_coordinator_that_is_told_to_stop_takes_its_run_up() {
    let p = Parties::new(&SIZES, &LONG);
    let patience = ["--phase-timeout", "20", "--grace", "20", "--join-timeout", "60"];
    let (mut server, intermediary, clients) = start_all(&p, &patience, 1..=5);
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        answered(&clients[0], 10);
        server.signal(signal);
        server.wait(LIMIT).expect(code);
        clients[0].until("why", LIMIT, |log| {
            log.contains("lost the connection to lead (") && log.contains("its operator stopped it")
        });
        server = start(&p.server(&patience));
        server.until("its journal", LIMIT, |log| log.contains("taking up an interrupted run"));
    }
    answered(&clients[0], 40);
    assert_eq!(server.kill().code, None);
    server = start(&p.server(&patience));
    server.until("its journal", LIMIT, |log| log.contains("taking up an interrupted run"));
    // While it runs nobody else does with its key.
    let second = veilsum(&p.server(&["--listen", &format!("127.0.0.1:{}", free_port())])).expect(3);
    assert!(second.stderr.contains("in use by another process"), "{}", second.stderr);
    server.wait(LIMIT).expect(0).says(&["totals so far: ", "!totals so far: 0"]);
    assert!(intermediary.wait(LIMIT).expect(0).stdout.contains("counted"));
    for client in clients {
        client.wait(LIMIT).expect(0).says(&["!began a new run"]);
    }
    let result = p.folder.json("out/result.json");
    for what in ["centres", "mass", "rounds", "missing", "n_total_from"] {
        assert_eq!(result[what], calm()[what], "{what}");
    }
    nothing_to_take_up(&p, "lead");
    let verify = format!("verify --json {}", p.folder.path("out"));
    let said = p.types("lead", &verify, "roster plan", &[]).expect(0).json();
    assert_eq!((&said["totals_recomputed"], &said["result_recomputed"]), (&result["questions"], &true.into()));
}

/// A result that cannot be written when the run is over: nobody is told an end. With room, the same command brings the run to its end, for
/// sites that only waited, and the coordinator puts no question twice.
#[test]
fn a_result_that_cannot_be_written_is_had_with_room() {
    let p = Parties::new(&SIZES, &["--set=epsilon=0.005", "--set=max_rounds=8"]);
    // As good as a full disk: what the run has to put there has no room.
    let full = p.folder.path("out/openings.bin/full");
    std::fs::create_dir_all(&full).unwrap();
    let (server, intermediary, clients) = start_all(&p, &QUICK, 1..=5);
    server.wait(LIMIT).expect(10).says(&["openings.bin", "then start it again with the same command"]);
    let answers = |clients: &[veilsum_testkit::program::Running]| -> usize {
        clients.iter().map(|client| client.heard().matches("MaskedWords").count()).sum()
    };
    let before = answers(&clients);
    std::fs::remove_dir_all(p.folder.path("out/openings.bin")).unwrap();
    let server = start(&p.server(&QUICK));
    assert!(server.wait(LIMIT).expect(0).stderr.contains("taking up an interrupted run"));
    intermediary.wait(LIMIT).expect(0);
    assert_eq!(answers(&clients), before, "a question was put twice");
    for client in clients {
        assert!(!client.wait(LIMIT).expect(0).stderr.contains("openings.bin"));
    }
    assert!(std::fs::metadata(p.folder.path("out/openings.bin")).unwrap().len() > 0);
}

/// The intermediary is killed in the middle of a run and started again, with its journal and then without: it goes on, or the sites
/// count once more, the same over the same cohort. The total is handed over at the end ([JRN-5], [APP-2]).
#[test]
fn a_killed_intermediary_goes_on_and_without_its_journal_counts_again() {
    let p = Parties::new(&SIZES, &LONG);
    let patience = ["--phase-timeout", "20", "--grace", "20", "--join-timeout", "90"];
    let (server, intermediary, clients) = start_all(&p, &patience, 1..=5);
    answered(&clients[0], 20);
    intermediary.kill();
    let intermediary = start(&p.intermediary(&patience));
    intermediary.until("its journal", LIMIT, |log| log.contains("totals so far: 1"));
    answered(&clients[0], 60);
    assert!(!intermediary.kill().stderr.contains("began a new run"));
    std::fs::remove_dir_all(p.folder.path("counter.key.state")).expect("its state");
    let intermediary = start(&p.intermediary(&patience));
    server.wait(LIMIT).expect(0).says(&["!left the run"]);
    assert!(intermediary.wait(LIMIT).expect(0).stdout.contains("counted"));
    for client in clients {
        // One of them, for the count without the journal.
        assert_eq!(client.wait(LIMIT).expect(0).stderr.matches("counter began a new run").count(), 1);
    }
    let result = p.folder.json("out/result.json");
    assert_eq!((&result["rounds"], &result["n_total"]), (&300.into(), &SIZES.iter().sum::<usize>().into()));
    assert_eq!((&result["centres"], &result["n_total_from"]), (&calm()["centres"], &"intermediary".into()));
    nothing_to_take_up(&p, "counter");
}
