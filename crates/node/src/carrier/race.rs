//! Several ways to one server, tried one after the other without waiting for the end of each (RFC 8305, section 5).

use std::time::Duration;

use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{
    CarrierError, Result,
    link::{Link, Pending},
};

/// The lead that one way has over the next. A handshake over QUIC takes two round trips and one over TCP another two, so QUIC
/// is the first to arrive wherever it passes and few packets are lost.
pub(super) const LEAD: Duration = Duration::from_millis(200);

/// One way, not begun yet.
pub(super) type Attempt = Pending<'static, Result<Link>>;

/// The first link that comes about. The next attempt begins after [`LEAD`], or at once where the one before has failed; the
/// others are given up when one has arrived.
///
/// # Errors
/// The failure that says most, where all have failed; `none` where there is nothing to try.
pub(super) async fn first(attempts: Vec<Attempt>, none: CarrierError) -> Result<Link> {
    let mut waiting = attempts.into_iter();
    let (mut running, mut worst, mut next) = (JoinSet::new(), none, Instant::now());
    loop {
        tokio::select! {
            Some(ended) = running.join_next() => {
                next = Instant::now();
                match ended {
                    Ok(Ok(link)) => return Ok(link),
                    Ok(Err(failure)) if says(&failure) >= says(&worst) => worst = failure,
                    // Attempts do not panic; one that did has failed.
                    Ok(Err(_)) | Err(_) => {}
                }
            }
            () = sleep_until(next), if waiting.len() > 0 => {
                waiting.next().into_iter().for_each(|attempt| drop(running.spawn(attempt)));
                next = Instant::now() + LEAD;
            }
            else => return Err(worst),
        }
    }
}

/// How much a failure says about what to put right.
fn says(failure: &CarrierError) -> u8 {
    match failure {
        CarrierError::NotAccepted => 6,
        CarrierError::WrongServerKey(_) => 5,
        CarrierError::OtherProtocol => 4,
        CarrierError::Busy(_) | CarrierError::Proxy { .. } => 3,
        CarrierError::Unreachable { .. } | CarrierError::TimedOut(_) => 1,
        CarrierError::Unresolved { .. } => 0,
        _ => 2,
    }
}
