//! Several ways to one server, tried one after the other without waiting for the end of each (RFC 8305, section 5).

use std::time::Duration;

use tokio::task::JoinSet;

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
    let mut running = JoinSet::new();
    let mut worst = none;
    loop {
        if let Some(next) = waiting.next() {
            running.spawn(next);
        } else if running.is_empty() {
            return Err(worst);
        }
        loop {
            let ended = tokio::select! {
                ended = running.join_next() => ended,
                () = tokio::time::sleep(LEAD), if waiting.len() > 0 => break,
            };
            match ended {
                Some(Ok(Ok(link))) => return Ok(link),
                Some(Ok(Err(failure))) => {
                    if says(&failure) >= says(&worst) {
                        worst = failure;
                    }
                }
                // Attempts do not panic; one that did has failed.
                Some(Err(_)) => {}
                None => break,
            }
            if waiting.len() > 0 || running.is_empty() {
                break;
            }
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
