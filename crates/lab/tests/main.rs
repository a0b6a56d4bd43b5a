//! The laboratory: the papers, the methods to compare with, its commands. One file for each behaviour, one program for all of them.

mod commands;
mod experiments;
mod noise_errors;
mod papers;
mod totals_and_plain;
mod vectors_methods;
