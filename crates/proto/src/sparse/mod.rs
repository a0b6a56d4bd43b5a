//! Above a thousand sites: masks between neighbours on a random circle, shares at a committee (spec section 17).
//!
//! The complete graph of [`crate::site`] costs a site work and bytes for every other site. Here a site shares masks with
//! a few hundred neighbours and deals its shares to a committee of about as many, whatever the number of sites. What the
//! complete graph gets from everybody's signature is had otherwise: the graph is drawn from random numbers that all
//! sites commit to before any is revealed, each site checks the entries it will use under the one root, and nothing is
//! opened before enough of the committee has signed one set of survivors.
//!
//! After Bell et al., CCS 2020 (sparse graphs; the circle of section 3), with a committee as in Flamingo (Ma et al., S&P
//! 2023), and with one key pair of each site for each slot, so that opening the masks of a missing site opens one round.

mod aggregator;
mod bits;
mod frame;
mod graph;
mod journal;
mod merkle;
mod message;
mod site;
mod size;
mod slot;
mod tail;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
mod types;

pub use aggregator::Aggregator;
pub use frame::{Kind, kind_of};
pub use journal::Record;
pub use site::Site;
pub use size::{Params, Shape, Sizes};
pub use types::{
    AggregatorConfig, AggregatorEvent, AggregatorInput, AggregatorOutput, Disclosure, SiteConfig, SiteEvent, SiteInput,
    SiteOutput,
};
