//! The synthetic data of the papers, one file each.

pub mod ffcm;
pub mod fkm;
pub mod g2;
