//! The parties of tests that hold both ends of one run: processes of this program, with what `veilsum run` does in one run.

use std::ffi::OsString;

use veilsum_testkit::program;

/// One party, in a process of its own; nothing where no test has started it.
#[test]
fn one_run() {
    program::one_run(|words: Vec<OsString>| veilsum_cli::embedded::one_run(words));
}
