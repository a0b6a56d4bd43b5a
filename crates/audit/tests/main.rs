//! The attacks, each beside a control that must succeed. One file for each behaviour, one program for all of them.

mod attacks;
mod function_space;
mod mine;
mod span;
mod span_read;
