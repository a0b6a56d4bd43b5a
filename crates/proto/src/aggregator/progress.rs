//! What a round tells the run that it is in (spec section 9).

use super::{record::Total, seeds::WrongShares};
use crate::{error::Error, message::Opening};

/// A site at fault, and why.
pub(crate) type Guilty = (u16, Error);

pub(crate) enum Progress {
    Waiting,
    Sent,
    /// These sites are at fault; the round goes on without them.
    Guilty(Vec<Guilty>),
    Done(Box<Done>),
}

/// The result of a round.
pub(crate) struct Done {
    pub(crate) total: Total,
    pub(crate) wrong_shares: WrongShares,
    /// For the cohort, where this aggregator opens totals to it.
    pub(crate) opening: Option<Opening>,
}
