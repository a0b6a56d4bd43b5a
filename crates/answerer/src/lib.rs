//! Statistics of a site that another process computes, an *answerer*: it holds the rows and no key, the site's process holds the
//! keys and no row. Both speak in lines of JSON; `docs/src/answerers.md` is the contract for whoever writes an answerer.
//!
//! Read it in this order:
//!
//! 1. [`contract`]: what is said, line by line, and the limits of it;
//! 2. [`counts`]: which words of an answer count rows, and so have to add up;
//! 3. [`fault`], [`process`], [`held`]: the site's end: what can go wrong and whose fault it is, the process with its pipes, and
//!    the conversation in which every answer is checked;
//! 4. [`serve`], [`rows`]: an answerer's end, and one that has its rows in memory;
//! 5. [`spelling`]: how words of a plan are found in cells, in whatever form these come;
//! 6. [`conformance`]: the test that an answerer keeps to the contract.
//!
//! Nothing here knows of keys, masks or the network.
//!
//! # In short
//!
#![doc = include_str!("../README.md")]

pub mod conformance;
pub mod contract;
pub mod counts;
pub mod fault;
pub mod held;
pub mod process;
pub mod rows;
pub mod serve;
pub mod spelling;

pub use contract::{Answer, Ask, AskedBlock, Fingerprint, Hello, Ready, Refusal, RefusalCode};
pub use fault::Fault;
pub use held::Held;
pub use process::Launch;
