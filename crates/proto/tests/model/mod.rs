//! The claim of section 1.3 of the specification, searched for a counterexample: whatever a lying coordinator with c
//! colluding sites tells the others of one slot, it learns at most one sum, over at least t − c honest sites, where
//! 2t > n + c.
//!
//! The search is over a symbolic model: masks are unknowns, a self-mask is known from t shares on and not before, and
//! signatures cannot be forged. A site's rules are written down in `rules.rs`; `knowledge.rs` says which sums follow from
//! what was given away; `explore.rs` visits every state that any transcript leads to, for n up to 5 (`safe.rs`);
//! `random.rs` draws long transcripts up to n = 10. What makes it worth anything stands in the other files: `breaks.rs`
//! takes away one rule after the other and demands that the attack is found; `conform.rs` and `replay.rs` put every
//! message and every story of the model to the real sites, which must do exactly what the model says.
//!
//! Not in the model: the deck's own exchange, guessing, timing. The larger searches
//! are ignored by default; `protocol/README.md` says how far they go and has the command.

mod breaks;
mod conform;
mod explore;
mod knowledge;
mod random;
mod real;
mod replay;
mod rules;
mod safe;
