//! What the tests of all crates share. No product depends on it; a helper that fails is a test that fails, so helpers panic.
//!
//! 1. [`federation`]: the one federation in memory, in virtual time and from a seed; [`kit`]: its identities, roster and terms;
//!    [`prelude`]: the names that most tests use.
//! 2. [`wire`]: the wire format written a second time; [`hub`]: the one lying hub, which speaks it.
//! 3. [`secrets`]: what a site's journal gives away; [`recording`], [`lies`]: an honest run written down, and what may be said
//!    in place of each of its messages; [`crashes`]: federations whose processes die.
//! 4. [`seeds`]: chance from a seed; [`cost`]: what a round costs each party; with `node`, `measure` for the benches.
//! 5. [`vectors`]: the test vectors of `protocol/vectors`, and how its sessions are played.
//! 6. With the feature `cluster`: `data`, the shared data sets and known answers, and
//!    `methods`, every method with parameters. With `node`, the whole product: `cast`, a
//!    federation in which the test plays the coordinator or the intermediary, `in_process` and `program`, federations in one
//!    process and in many, `network`, a network that delays and loses between them, and `targets`, what the fuzzer feeds.
// What a helper does is in its name; what it is for is in the test that calls it.
#![allow(missing_docs)]

#[cfg(feature = "node")]
pub mod cast;
pub mod cost;
pub mod crashes;
#[cfg(feature = "cluster")]
pub mod data;
#[cfg(feature = "node")]
pub mod faults;
pub mod federation;
pub mod hub;
#[cfg(feature = "node")]
pub mod in_process;
pub mod kit;
pub mod lies;
#[cfg(feature = "node")]
pub mod measure;
#[cfg(feature = "node")]
pub mod memory;
#[cfg(feature = "cluster")]
pub mod methods;
#[cfg(all(feature = "node", target_os = "linux"))]
pub mod network;
pub mod prelude;
#[cfg(feature = "node")]
pub mod program;
pub mod recording;
pub mod secrets;
pub mod seeds;
#[cfg(feature = "node")]
pub mod targets;
pub mod vectors;
pub mod wire;
