//! The examples, each run as its first lines say.

use std::{path::Path, process::Command};

use veilsum_testkit::program::{Folder, binary, free_port};

use crate::source::{ROOT, files, read};

/// Three hospitals found a federation, on paper and over the network, and verify what came of it.
#[test]
fn three_hospitals() {
    let folder = Folder::fresh();
    let script = Path::new(ROOT).join("examples/three-hospitals/run.sh");
    let mut run = Command::new("bash");
    run.arg(script).arg(&folder.0).env("VEILSUM", binary());
    run.env("HUB_PORT", free_port().to_string()).env("COUNTER_PORT", free_port().to_string());
    let ended = run.output().expect("it runs");
    let told = format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{told}");
    assert!(told.contains("no byte was changed") && told.contains("recomputed and signed by"), "{told}");
    assert!(told.contains("membership_0"), "{told}");
}

#[path = "../examples/in_process.rs"]
mod in_process;

#[test]
fn a_federation_in_one_process() {
    in_process::main().expect("it runs");
}

/// What a page beside an example shows is no command: it is read, and other tests run the programs.
#[test]
fn pages_of_examples_carry_no_commands() {
    for page in files("examples", ".md") {
        let text = read(&page);
        assert!(!text.contains("```sh") && !text.contains("\n    $ "), "{page}");
    }
}
