//! What a site gave away and may give away: its account on disk, and its verdict on a plan and on every question of it.
//!
//! No row, no value and no number of rows of a plan with noise enters account and verdict. The guard adds the rows of a table up, and trusts
//! nothing that computes what one of them adds; whoever reads the table is trusted to read row by row. The door knows the masks
//! (`veilsum-proto`), what a row adds (`veilsum-contributions`) and nothing else of Veilsum; a plan is [`PlanFacts`] to it, numbers and
//! hashes. The normative text is `protocol/door.md`, section 11.
//!
//! # How to read this crate
//!
//! 1. `policy`: what a site demands;
//! 2. `entry`, `met`, `account`: the ledger's entries in their chain, what is kept of others' ledgers, and what all of it adds up to;
//! 3. [`guard`]: the sum under noise, its noise, and that an answer leaves with the noise that it was charged for;
//! 4. `verdict`: what a site says to a plan;
//! 5. `log`: a file that grows, and one that is replaced whole;
//! 6. [`ledger`]: the account on disk, through which every frame leaves.
//!
//! # In short
//!
#![doc = include_str!("../README.md")]

mod account;
mod entry;
pub mod guard;
pub mod ledger;
mod log;
mod met;
mod policy;
mod verdict;

pub use account::{Account, Kind, Spent};
pub use entry::{
    Answer, Chain, Cost, Damage, Entry, Event, FORM, Frame, Head, MAX_NAME, Note, Place, Stated, Table, Talk, Totals,
};
pub use guard::Granted;
pub use ledger::{Data, Entered, Ledger, LedgerError, Offer, question_digest};
pub use log::{Log, lock, make_private_folder, private, sync_folder_of};
pub use met::{Met, SetBack};
pub use policy::{Ask, Bound, DEFAULT_MAX_ROWS, DEFAULT_NANO_RHO, Exact, HONEST, Policy, Unit};
pub use verdict::{Gives, Needs, No, PlanFacts, Verdict, Yes, cap_of, judge, name_of, needs};

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::PathBuf,
        sync::atomic::{AtomicU32, Ordering},
    };

    /// A folder of a test's own, gone afterwards.
    pub(crate) struct Folder(pub(crate) PathBuf);

    impl Folder {
        pub(crate) fn new(name: &str) -> Folder {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("veilsum-door-{name}-{}-{number}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).expect("a temporary folder");
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}
