//! The attacks, each beside a control that must succeed. One file for each behaviour, one program for all of them.

mod attacks;
mod centroids;
mod made;
mod own;
mod random_plans;
mod review;
mod succeeds;
