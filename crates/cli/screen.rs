//! The last line of a terminal, which is written over, beside everything else that goes to standard error. Whatever is printed by way
//! of this module takes the line's place, and the line comes back under it; nothing else is ever cleared.

use std::{
    io::{self, IsTerminal, Write},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Back to the beginning of the line, and clear it.
const CLEAR: &str = "\r\x1b[K";
/// Columns of a terminal that does not say how many it has.
const COLUMNS: usize = 80;

/// What is drawn; nothing where it is empty.
static DRAWN: Mutex<String> = Mutex::new(String::new());

fn drawn() -> MutexGuard<'static, String> {
    DRAWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Columns of the terminal that standard error is; nothing where it is none.
pub(crate) fn columns() -> Option<usize> {
    if !io::stderr().is_terminal() {
        return None;
    }
    #[cfg(unix)]
    let told = rustix::termios::tcgetwinsize(io::stderr()).ok().map(|size| usize::from(size.ws_col));
    #[cfg(not(unix))]
    let told: Option<usize> = None;
    let environment = || std::env::var("COLUMNS").ok()?.parse().ok();
    Some(told.filter(|columns| *columns > 0).or_else(environment).unwrap_or(COLUMNS))
}

/// Draws the line, on a terminal alone. Nothing can be done where it cannot be shown, and the run does not depend on it.
pub(crate) fn draw(line: &str) {
    let mut drawn = drawn();
    let _ = io::stderr().write_all(format!("\r{line}\x1b[K").as_bytes());
    line.clone_into(&mut drawn);
}

/// Takes the line away.
pub(crate) fn clear() {
    let mut drawn = drawn();
    if !std::mem::take(&mut *drawn).is_empty() {
        let _ = io::stderr().write_all(CLEAR.as_bytes());
    }
}

/// Prints whole lines above the line.
pub(crate) fn print(lines: &[u8]) -> io::Result<()> {
    let drawn = drawn();
    if drawn.is_empty() {
        return io::stderr().write_all(lines);
    }
    io::stderr().write_all(&[CLEAR.as_bytes(), lines, drawn.as_bytes()].concat())
}

/// Standard error for whoever writes whole lines at once, as the log does.
pub(crate) struct Lines;

impl Write for Lines {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        print(lines).map(|()| lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// A time in the largest unit of which it has two or more.
pub(crate) fn ago(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
