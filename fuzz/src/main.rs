//! One binary for every target: `VEILSUM_FUZZ_TARGET` names it. `fuzz/run` builds and starts it.
#![no_main]

use std::sync::LazyLock;

use veilsum_testkit::targets;

static TARGET: LazyLock<targets::Target> = LazyLock::new(|| {
    let name = std::env::var("VEILSUM_FUZZ_TARGET").unwrap_or_default();
    targets::ALL.into_iter().find(|t| t.name == name).unwrap_or_else(|| {
        let names: Vec<_> = targets::ALL.iter().map(|t| t.name).collect();
        panic!("VEILSUM_FUZZ_TARGET is {name:?}; it can be one of {names:?}")
    })
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| (TARGET.run)(data));
