//! Pages and charts for report, laboratory and documents: HTML, CSS and SVG in one file, from text alone.
//!
//! Nothing here knows what a federation is, opens a file or depends on another crate. Whatever is handed in is text and is escaped
//! here. A page holds no script and fetches nothing. Charts are 360 units wide, so that their words can be read on a telephone, and
//! every series is told apart by its shape or dashes as well as by its colour.
//!
//! # How to read this crate
//!
//! No module uses one that comes later in this list.
//!
//! 1. [`text`]: escaping, and numbers in words that fit.
//! 2. `scale`, `drawing`: from numbers to places, and from places to SVG.
//! 3. [`chart`]: lines, bars, histograms, planes and parallel coordinates.
//! 4. [`page`]: headings, tables, lists and charts, from top to bottom.
//!
//! # In short
//!
#![doc = include_str!("../README.md")]

pub mod chart;
mod drawing;
pub mod page;
mod scale;
pub mod text;

pub use chart::{Chart, Cloud, Plot, Spot, Value};
pub use page::Page;
