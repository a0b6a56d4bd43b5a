//! The door as its users meet it: what is kept of others' ledgers in whole federations, and the vectors.

mod hostile_sessions;
mod set_back;
mod vectors_met;
