//! From a stream of bytes to frames: the part of receiving that does no I/O.

use super::{HEADER_LEN, HeaderCheck, RESERVE_LIMIT};

/// What is wrong with a frame, and what to do next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{says}")]
pub struct FrameFault {
    says: String,
    pub(super) advice: &'static str,
}

impl FrameFault {
    fn new(says: String, advice: &'static str) -> FrameFault {
        FrameFault { says, advice }
    }

    /// An earlier fault, or a send that was given up, has left the stream in the middle of a frame.
    pub(super) fn broken() -> FrameFault {
        FrameFault::new("the stream is in the middle of a broken frame and cannot go on".into(), "dial again")
    }
}

/// Bytes of body that a header announces.
pub(super) fn declared_len(header: &[u8; HEADER_LEN]) -> usize {
    let [_, _, _, _, length @ ..] = header;
    // Only a machine with 16-bit addresses could not hold it; there the limit check turns the frame away.
    usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX)
}

/// A frame ready to be sent has a header that announces exactly the rest.
pub(super) fn check_outgoing(frame: &[u8]) -> Result<(), FrameFault> {
    match frame.split_first_chunk::<HEADER_LEN>() {
        Some((header, body)) if declared_len(header) == body.len() => Ok(()),
        _ => {
            let says = format!("refused to send a frame of {} bytes whose header does not announce them", frame.len());
            Err(FrameFault::new(says, "this is a fault in Veilsum, please report it"))
        }
    }
}

/// Collects one frame after the other. What has arrived stays here between two calls, so a caller that gives up
/// waiting loses nothing.
pub struct Assembler {
    check: HeaderCheck,
    /// Header and body as far as they are here.
    frame: Vec<u8>,
    /// Length of the body once the header has been checked.
    body: Option<usize>,
}

impl Assembler {
    /// With no byte yet; `check` says how long a body may be.
    pub fn new(check: HeaderCheck) -> Self {
        Self { check, frame: Vec::new(), body: None }
    }

    /// From the next frame on, this says how long a body may be.
    pub(super) fn expects(&mut self, check: HeaderCheck) {
        self.check = check;
    }

    /// Bytes missing to the end of the header or of the body, never 0: the most that [`Self::push`] takes.
    pub fn wants(&self) -> usize {
        self.total().saturating_sub(self.frame.len())
    }

    /// Takes the next bytes; answers a frame when it is whole.
    ///
    /// # Errors
    /// A [`FrameFault`] where they break the rules.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>, FrameFault> {
        debug_assert!(bytes.len() <= self.wants(), "a push must end with the frame");
        self.make_room(bytes.len());
        self.frame.extend_from_slice(bytes);
        if self.body.is_none()
            && let Some(header) = self.frame.first_chunk::<HEADER_LEN>()
        {
            let declared = declared_len(header);
            let refused =
                |why| FrameFault::new(format!("a frame was refused: {why}"), "bring both ends to the same release");
            let allowed = (self.check)(header).map_err(refused)?;
            if declared > allowed {
                let says = format!("a frame announces {declared} body bytes where {allowed} are allowed");
                return Err(FrameFault::new(says, "check that the other end is a Veilsum party of the same release"));
            }
            self.body = Some(declared);
            self.frame.reserve_exact(declared.min(RESERVE_LIMIT));
        }
        if self.body.is_some() && self.wants() == 0 {
            self.body = None;
            return Ok(Some(std::mem::take(&mut self.frame)));
        }
        Ok(None)
    }

    /// Whether the stream may end here.
    ///
    /// # Errors
    /// A [`FrameFault`] where it may not.
    pub fn end(&self) -> Result<(), FrameFault> {
        let (got, of, what) = match (self.frame.len(), self.body) {
            (0, None) => return Ok(()),
            (got, None) => (got, HEADER_LEN, "header"),
            (got, Some(declared)) => (got.saturating_sub(HEADER_LEN), declared, "body"),
        };
        let next = "dial again; where it happens twice, ask the other end's operator whether its program stopped";
        Err(FrameFault::new(format!("a frame was cut off: {got} of {of} {what} bytes came"), next))
    }

    fn total(&self) -> usize {
        HEADER_LEN.saturating_add(self.body.unwrap_or(0))
    }

    /// Doubles the buffer where it is too small, but not beyond the frame's end.
    fn make_room(&mut self, more: usize) {
        let needed = self.frame.len().saturating_add(more);
        if needed > self.frame.capacity() {
            let target = self.frame.capacity().saturating_mul(2).min(self.total()).max(needed);
            self.frame.reserve_exact(target - self.frame.len());
        }
    }

    #[cfg(test)]
    pub(super) fn reserved(&self) -> usize {
        self.frame.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anything(_: &[u8; HEADER_LEN]) -> Result<usize, String> {
        Ok(usize::MAX)
    }

    fn frame(body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len()).expect("a short body");
        [[1, 0, 1, 0].as_slice(), &length.to_le_bytes(), body].concat()
    }

    #[test]
    fn frames_come_out_whole_however_the_bytes_come_in() {
        let frames = [frame(b""), frame(b"x"), frame(&[9; 3000]), frame(&[3; 100_001])];
        let bytes = frames.concat();
        for step in [1, 2, 7, 8, 9, 1200, 5000] {
            let mut assembler = Assembler::new(anything);
            let (mut rest, mut out) = (bytes.as_slice(), Vec::new());
            while !rest.is_empty() {
                let (now, later) = rest.split_at(step.min(assembler.wants()).min(rest.len()));
                out.extend(assembler.push(now).expect("all is allowed"));
                rest = later;
            }
            assert_eq!(out, frames, "in steps of {step}");
            assert!(out.iter().all(|frame| frame.capacity() == frame.len()), "no room is left over");
            assert_eq!(assembler.end(), Ok(()));
        }
    }

    #[test]
    fn an_announced_length_reserves_little() {
        let mut assembler = Assembler::new(anything);
        let header = [1, 0, 1, 0, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(assembler.push(&header), Ok(None));
        assert!(assembler.reserved() <= RESERVE_LIMIT + HEADER_LEN);
        let mut sent = HEADER_LEN;
        for _ in 0..200 {
            assembler.push(&[0; 1200]).expect("the frame goes on");
            sent += 1200;
            assert!(assembler.reserved() <= (2 * sent).max(RESERVE_LIMIT + HEADER_LEN));
        }
        assert!(assembler.end().unwrap_err().to_string().contains("240000 of 4294967295 body bytes"));
    }
}
