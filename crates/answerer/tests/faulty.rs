use std::time::{Duration, Instant};

use veilsum_answerer::{Fault, Held, Hello, contract::Column};
use veilsum_cluster::query::{LocalMeans, LocalSteps};
use veilsum_cluster::{Batch, Centres, OutOfBox, Query, Scaling};

use super::{Folder, launch};

const READY: &str = r#"{"type":"ready","protocol":1,"name":"shell","version":"0","rows":5,"bad":{},"fingerprint":{"rows":"00112233445566778899","columns":["00112233445566778899"]},"kinds":["local_means"]}"#;
/// The true answer to [`question`] with id `$1`.
const ANSWER: &str =
    r#"{"type":"answer","id":%d,"rows":5,"bad":0,"fingerprint":"00112233445566778899","words":[48,32,16,16,16]}"#;
const STEPS: [(usize, i32); 3] = [(2, 4), (2, 4), (1, 4)];

fn hello() -> Hello {
    let column = Column { name: "x".into(), lower: 0.0, upper: 1.0 };
    Hello {
        protocol: 1,
        columns: vec![column],
        categorical: vec![],
        scaling: Scaling::Box,
        out_of_box: OutOfBox::Refuse,
        noise: false,
    }
}

fn question() -> Batch {
    let centres = Centres::new(2, 1, vec![0.2, 0.8]).unwrap();
    Query::from(LocalMeans { centres, local: LocalSteps::ONE, min_rows: 1, nearest: false }).into()
}

/// A shell that says READY to the first line and then does this with every other one, whose number is `$n`.
fn shell(each: &str) -> String {
    format!(
        "read line; echo '{READY}'; n=0; answer() {{ printf '{ANSWER}\\n' \"$1\"; }}; \
         while read line; do case $line in *'\"end\"'*) exit 0;; esac; n=$((n+1)); {each}; done"
    )
}

fn held(script: &str) -> (Result<Held, Fault>, super::Said) {
    let (launch, said) = launch(&["sh", "-c", script], Duration::from_secs(2));
    (Held::start(launch, hello()), said)
}

fn answers(script: &str) -> Result<Vec<i64>, Fault> {
    held(&shell(script)).0.unwrap().words(&question(), &STEPS)
}

/// An answer with one thing changed.
fn changed(from: &str, to: &str) -> Result<Vec<i64>, Fault> {
    let answer = ANSWER.replace("%d", "1");
    assert!(answer.contains(from));
    answers(&format!("echo '{}'", answer.replace(from, to)))
}

#[test]
fn an_answerer_that_keeps_to_the_contract_is_asked_again_and_again() {
    let mut held = held(&shell("answer $n; echo 'said \u{1b}[31m something' >&2")).0.unwrap();
    for _ in 0..3 {
        assert_eq!(held.words(&question(), &STEPS), Ok(vec![48, 32, 16, 16, 16]));
    }
    assert_eq!(held.end(), Some(0));
}

#[test]
fn answers_that_no_rows_can_have_are_refused_at_once() {
    for (from, to, why) in [
        ("[48,32,16,16,16]", "[48,32,16]", "3 words"),
        ("[48,32,16,16,16]", "[48,32,16,16,16,0]", "6 words"),
        ("[48,32,16,16,16]", "[9000000000000000000,32,16,16,16]", "\"rows\" is larger"),
        ("[48,32,16,16,16]", "[\"-9223372036854775808\",32,16,16,16]", "\"rows\" is larger"),
        ("[48,32,16,16,16]", "[48,33,16,16,16]", "do not add up"),
        ("[48,32,16,16,16]", "[-16,96,16,16,16]", "larger"),
        ("[48,32,16,16,16]", "[48,32,16,160,16]", "\"sums\" is larger"),
    ] {
        let fault = changed(from, to).unwrap_err();
        assert!(matches!(fault, Fault::Wrong { .. }) && fault.to_string().contains(why), "{to}: {fault}");
        assert!(fault.advice().contains("nothing of this answer was sent"));
    }
}

#[test]
fn rows_that_change_in_mid_run_are_an_error_and_no_answer() {
    for (from, to) in [("\"rows\":5", "\"rows\":6"), ("00112233", "00112234"), ("\"bad\":0", "\"bad\":1")] {
        let fault = changed(from, to).unwrap_err();
        assert!(matches!(fault, Fault::Changed { .. }), "{fault}");
    }
}

#[test]
fn lines_that_the_contract_does_not_have_are_the_answerers_fault() {
    for (from, to) in [
        ("\"id\":1", "\"id\":7"),
        ("[48,32,16,16,16]", "[48.0,32,16,16,16]"),
        ("[48,32,16,16,16]", "[48,32,16,16,1e2]"),
        ("\"bad\":0,", ""),
        ("\"bad\":0,", "\"bad\":0,\"more\":1,"),
        ("{\"type\":\"answer\"", "{\"type\":\"result\""),
    ] {
        let fault = changed(from, to).unwrap_err();
        assert!(matches!(fault, Fault::Contract { .. }), "{to}: {fault}");
        assert!(!fault.to_string().contains("48"), "no line is quoted: {fault}");
    }
    // A second line is not taken for the answer to the next question.
    let mut both = held(&shell("answer 1; answer 2")).0.unwrap();
    assert!(both.words(&question(), &STEPS).is_ok());
    std::thread::sleep(Duration::from_millis(200));
    let fault = both.words(&question(), &STEPS).unwrap_err();
    assert!(fault.to_string().contains("nobody asked"), "{fault}");
    // An answer as long as the machine's memory.
    let fault = answers("yes | tr -d '\\n'").unwrap_err();
    assert!(matches!(&fault, Fault::Contract(_, what) if what.contains("bytes")), "{fault}");
}

#[test]
fn one_that_crashes_or_hangs_is_started_again_once_and_asked_again() {
    let folder = Folder::fresh();
    for (number, trouble) in ["echo 'out of memory' >&2; kill -9 $$", "exit 3", "sleep 60"].into_iter().enumerate() {
        let mark = folder.path(&format!("mark-{number}"));
        // The second question, and there the first attempt alone: ids go on.
        let script = format!(
            "case $line in *'\"id\":1,'*) answer 1;; *'\"id\":2,'*) touch {mark}; {trouble};; *) answer 3;; esac"
        );
        let (begun, said) = held(&shell(&script));
        let mut held = begun.unwrap();
        assert!(held.words(&question(), &STEPS).is_ok());
        let before = Instant::now();
        assert_eq!(held.words(&question(), &STEPS), Ok(vec![48, 32, 16, 16, 16]), "{trouble}");
        assert!(std::path::Path::new(&mark).exists() && before.elapsed() < Duration::from_secs(10));
        assert!(said.lock().unwrap().iter().any(|line| line.contains("started again")), "{trouble}");
    }
    for (trouble, words) in [("echo 'disk\tis full' >&2; exit 3", "disk is full"), ("sleep 60", "within 2s")] {
        let fault = answers(trouble).unwrap_err();
        assert!(fault.to_string().contains(words) && fault.is_passing(), "{fault}");
    }
}

/// What an answerer starts ends with it.
#[test]
fn the_whole_group_of_processes_is_killed() {
    let folder = Folder::fresh();
    let file = folder.path("pid");
    let fault = answers(&format!("sleep 300 & echo $! > {file}; wait")).unwrap_err();
    assert!(matches!(fault, Fault::Silent { .. }), "{fault}");
    let child = std::fs::read_to_string(&file).unwrap();
    let end = Instant::now() + Duration::from_secs(5);
    let runs = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    while runs() {
        assert!(Instant::now() < end, "a grandchild is left");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn other_rows_after_a_restart_are_an_error() {
    let folder = Folder::fresh();
    let mark = folder.path("mark");
    let other = READY.replace("\"rows\":5", "\"rows\":4");
    let script = format!(
        "read line; if [ -e {mark} ]; then echo '{other}'; else echo '{READY}'; fi; read line; touch {mark}; exit 1"
    );
    let fault = held(&script).0.unwrap().words(&question(), &STEPS).unwrap_err();
    assert!(matches!(&fault, Fault::Changed(_, what) if what.contains("started again")), "{fault}");
}

#[test]
fn whoever_does_not_begin_well_does_not_begin() {
    let say = |line: String| held(&format!("read line; echo '{line}'; read line")).0.err().expect("a fault");
    for (from, to) in [
        ("\"protocol\":1", "\"protocol\":2"),
        ("00112233445566778899", "0011"),
        ("[\"00112233445566778899\"]", "[]"),
        ("\"bad\":{}", "\"bad\":{},\"distinct\":[5]"),
        ("\"bad\":{}", "\"bad\":{\"x\":0}"),
        ("\"type\":\"ready\"", "\"type\":\"answer\""),
        ("\"rows\":5", "\"rows\":-5"),
    ] {
        assert!(READY.contains(from));
        let fault = say(READY.replace(from, to));
        assert!(matches!(fault, Fault::Contract { .. }), "{to}: {fault}");
    }
    let bad = say(READY.replace("\"bad\":{}", "\"bad\":{\"no value in x\":2}"));
    assert!(matches!(&bad, Fault::BadRows { .. }) && bad.to_string().contains("no value in x (2)"), "{bad}");
    let refusal = r#"{"type":"error","code":"connection","message":"nobody\u0007there","next":"start it"}"#;
    let fault = say(refusal.into());
    assert!(fault.to_string().contains("says: nobody there") && fault.advice() == "start it", "{fault}");
    let (launch, _) = launch(&["/no/such/program"], Duration::from_secs(1));
    assert!(matches!(Held::start(launch, hello()).err(), Some(Fault::Start { .. })));
}

#[test]
fn questions_that_are_not_listed_are_named_before_they_are_asked() {
    let mut held = held(&shell("answer $n")).0.unwrap();
    let fault = held.covers(["local_means", "validation", "margins", "margins"]).unwrap_err();
    assert!(fault.to_string().ends_with("margins, validation"), "{fault}");
    let fuzzy = Query::fuzzy_sums(Centres::new(1, 1, vec![0.2]).unwrap(), 2.0).into();
    assert!(matches!(held.words(&fuzzy, &[(1, 4), (1, 4)]), Err(Fault::Kinds { .. })));
    assert!(held.words(&question(), &STEPS).is_ok(), "and the others go on");
}

/// Its environment is a short list of names, and none of them is Veilsum's.
#[test]
fn an_answerer_does_not_see_the_environment() {
    let folder = Folder::fresh();
    let file = folder.path("environment");
    let _ = answers(&format!("env > {file}; answer $n"));
    let seen = std::fs::read_to_string(&file).unwrap();
    assert!(seen.contains("PATH=") && !seen.contains("CARGO"), "{seen}");
}
