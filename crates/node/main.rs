//! Placeholder for the first build.
fn main() {}
