//! One binary for every target: `VEILSUM_FUZZ_TARGET` names it. `fuzz/run` builds and starts it.
#![no_main]

#[path = "../../crates/proto/tests/hostile_kit/mod.rs"]
mod hostile_kit;
#[path = "../../crates/proto/tests/mutated_kit/mod.rs"]
mod mutated_kit;
#[path = "../../crates/proto/tests/pitfall_kit/mod.rs"]
mod pitfall_kit;
#[path = "../targets/mod.rs"]
mod targets;

use std::sync::LazyLock;

static TARGET: LazyLock<targets::Target> = LazyLock::new(|| {
    let name = std::env::var("VEILSUM_FUZZ_TARGET").unwrap_or_default();
    targets::ALL.into_iter().find(|t| t.name == name).unwrap_or_else(|| {
        let names: Vec<_> = targets::ALL.iter().map(|t| t.name).collect();
        panic!("VEILSUM_FUZZ_TARGET is {name:?}; it can be one of {names:?}")
    })
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| (TARGET.run)(data));
