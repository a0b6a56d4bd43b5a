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
/// And of the narrowest one.
const NARROW: usize = 20;

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
    let told = rustix::termios::tcgetwinsize(io::stderr()).ok().map(|size| usize::from(size.ws_col));
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

/// The line as a terminal shows it, broken at spaces; the lines after the first are `hang` further in.
pub(crate) fn folded(line: &str, hang: usize) -> String {
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).unwrap_or(COLUMNS);
    let text = wrapped(&format!("{}{line}", " ".repeat(hang)), columns.max(NARROW)).join("\n");
    text[hang..].to_owned()
}

/// The line broken at spaces into lines of at most so many characters, all as far in as the first; a longer word is cut.
fn wrapped(line: &str, columns: usize) -> Vec<String> {
    let text = line.trim_start();
    let inner = " ".repeat(line.len() - text.len());
    let mut lines = vec![inner.clone()];
    for word in text.split(' ') {
        let mut rest: Vec<char> = word.chars().collect();
        loop {
            let used = lines.last().map_or(0, |last| last.chars().count());
            let space = usize::from(used > inner.len());
            if used + space + rest.len() > columns && space == 1 {
                lines.push(inner.clone());
                continue;
            }
            let fits = rest.len().min(columns.saturating_sub(used + space).max(1));
            let after = rest.split_off(fits);
            if let Some(last) = lines.last_mut() {
                last.push_str(&" ".repeat(space));
                last.extend(rest);
            }
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_words_and_long_words_anywhere() {
        assert_eq!(wrapped("  a bc def", 6), ["  a bc", "  def"]);
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("", 20), [""]);
        for columns in [20, 33, 80] {
            let text = "    2 min ago: not reached at hub.example.org:4433 (no answer from anybody)";
            let lines = wrapped(text, columns);
            assert!(lines.iter().all(|line| line.chars().count() <= columns && line.starts_with("    ")), "{lines:?}");
            let words = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
            assert_eq!(words(&lines.concat()), words(text));
        }
    }
}
