//! The records of a link over TCP: `kind u8 | length u16, little-endian | body`, each at most one record of TLS.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::{REASON_LIMIT, link::Closing};

/// Bytes before a body.
const HEADER: usize = 3;

/// Bytes of body at most: with its header, a record is no longer than one of TLS.
pub(super) const MOST: usize = 16 * 1024 - HEADER;

/// One record, as it is read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// Bytes of frames.
    Data(Vec<u8>),
    /// A sign of life.
    Alive,
    /// So many bytes of frames more may be sent.
    Window(u32),
    /// No byte of a frame follows.
    End,
    /// The end has arrived, and with it all before it.
    EndSeen,
    /// The connection is over, for this reason.
    Close(String),
}

pub(super) const DATA: u8 = 0;
pub(super) const ALIVE: u8 = 1;
/// Its body is the number of bytes.
pub(super) const WINDOW: u8 = 2;
pub(super) const END: u8 = 3;
/// The answer to [`END`].
pub(super) const END_SEEN: u8 = 4;
const CLOSE: u8 = 5;

/// A record of this kind; of [`DATA`] with [`MOST`] bytes at most.
pub(super) fn bytes(kind: u8, body: &[u8]) -> Vec<u8> {
    debug_assert!(body.len() <= MOST, "pieces are cut to fit");
    [&[kind], &(body.len() as u16).to_le_bytes()[..], body].concat()
}

/// The end of the connection, with a reason of at most [`REASON_LIMIT`] characters.
pub(super) fn close(why: Closing, reason: &str) -> Vec<u8> {
    bytes(CLOSE, &[&[why as u8], reason.as_bytes()].concat())
}

/// The next record; the inner error says in words what is wrong with it.
///
/// # Errors
/// What reading came to, an end in the middle of a record among it.
pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Result<Record, &'static str>> {
    let mut header = [0; HEADER];
    from.read_exact(&mut header).await?;
    let [kind, length @ ..] = header;
    let length = usize::from(u16::from_le_bytes(length));
    let fits = match kind {
        DATA => (1..=MOST).contains(&length),
        ALIVE | END | END_SEEN => length == 0,
        WINDOW => length == 4,
        // A character has four bytes at most.
        CLOSE => (1..=1 + 4 * REASON_LIMIT).contains(&length),
        _ => return Ok(Err("a record is of no known kind")),
    };
    if !fits {
        return Ok(Err("a record has no length that its kind may have"));
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).await?;
    Ok(Ok(match kind {
        DATA => Record::Data(body),
        ALIVE => Record::Alive,
        WINDOW => Record::Window(u32::from_le_bytes(body.try_into().unwrap_or_default())),
        END => Record::End,
        END_SEEN => Record::EndSeen,
        _ => Record::Close(String::from_utf8_lossy(&body[1..]).into_owned()),
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_one(mut bytes: &[u8]) -> io::Result<Result<Record, &'static str>> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(read(&mut bytes))
    }

    #[test]
    fn every_record_is_read_as_it_was_written() {
        let reason = "ü".repeat(REASON_LIMIT);
        let written = [
            (bytes(DATA, &[7; MOST]), Record::Data(vec![7; MOST])),
            (bytes(ALIVE, &[]), Record::Alive),
            (bytes(WINDOW, &70_000u32.to_le_bytes()), Record::Window(70_000)),
            (bytes(END, &[]), Record::End),
            (bytes(END_SEEN, &[]), Record::EndSeen),
            (close(Closing::TooSlow, &reason), Record::Close(reason.clone())),
        ];
        for (bytes, expected) in written {
            assert_eq!(read_one(&bytes).expect("whole"), Ok(expected));
            assert_eq!(read_one(&bytes[..bytes.len() - 1]).map_err(|e| e.kind()), Err(io::ErrorKind::UnexpectedEof));
        }
    }

    #[test]
    fn a_record_of_another_kind_or_length_is_refused_before_its_body() {
        for bad in [
            [6, 0, 0],
            [DATA, 0, 0],
            [DATA, 0xff, 0xff],
            [ALIVE, 1, 0],
            [WINDOW, 3, 0],
            [CLOSE, 0, 0],
            [CLOSE, 0xff, 0xff],
        ] {
            assert!(read_one(&bad).expect("a header is enough").is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_reading_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = read_one(&bytes);
        }
    }
}
