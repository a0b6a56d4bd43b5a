//! What every command is, and how it prints its result.

use std::{
    cell::RefCell,
    io::{self, Write},
    sync::atomic::{AtomicBool, Ordering},
};

use veilsum_node::{
    cost::some_of,
    error::{Code, Failure},
};

/// A command with its options: a file of its own, and a line in the list of `lib.rs`. Its help is the text on its options.
pub(crate) trait Verb: clap::Args {
    /// Does it.
    ///
    /// # Errors
    /// A [`Failure`] with its exit code.
    fn run(&self, json: bool) -> Result<(), Failure>;
}

/// Whether a JSON document went to standard output.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// Whether a JSON document was put out, or begun, which is the only one of a command.
pub(crate) fn has_printed() -> bool {
    PRINTED.load(Ordering::Relaxed)
}

/// A failure as a document has it, as its member `error`.
pub(crate) fn error(failure: &Failure) -> serde_json::Value {
    serde_json::json!({ "code": failure.code as u8, "message": failure.message, "next": failure.advice,
        "rule": failure.rule })
}

/// Prints a command's result: the JSON value with --json, else the text.
///
/// # Errors
/// A [`Failure`] where standard output cannot take it. A reader that has seen enough (`| head`) is no error.
pub(crate) fn print(json: bool, value: &serde_json::Value, text: &str) -> Result<(), Failure> {
    PRINTED.fetch_or(json, Ordering::Relaxed);
    let text = if json { value.to_string() } else { text.trim_end().to_owned() };
    written(writeln!(Out, "{text}").and_then(|()| Out.flush()))
}

thread_local! {
    /// What this thread prints, while somebody keeps it.
    static KEPT: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Where results go: standard output, or whoever called this thread's command.
pub(crate) struct Out;

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        KEPT.with_borrow_mut(|kept| match kept {
            Some(kept) => kept.write(bytes),
            None => {
                crate::screen::clear();
                or_unheard(io::stdout().write(bytes), bytes.len())
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        or_unheard(io::stdout().flush(), ())
    }
}

/// A reader that has seen enough (`| head`) is no error: the rest is then put out for nobody.
fn or_unheard<T>(written: io::Result<T>, unheard: T) -> io::Result<T> {
    match written {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(unheard),
        written => written,
    }
}

/// What `command` comes to, and what it would have printed.
pub(crate) fn kept<T>(command: impl FnOnce() -> T) -> (T, Vec<u8>) {
    KEPT.set(Some(Vec::new()));
    let done = command();
    (done, KEPT.take().unwrap_or_default())
}

/// Names for a sentence; many are folded.
pub(crate) fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { some_of(names, ", ") }
}

/// `println!`, and with `@raw` `print!`, for a reader that may have seen enough.
#[macro_export]
macro_rules! say {
    (@raw $($arg:tt)*) => { $crate::verb::written(std::io::Write::write_fmt(&mut $crate::verb::Out, format_args!($($arg)*)))? };
    ($($arg:tt)*) => { $crate::verb::written(std::io::Write::write_fmt(&mut $crate::verb::Out, format_args!("{}\n", format_args!($($arg)*))))? };
}

/// `eprintln!` for a reader that may be gone: what nobody reads is no reason to end.
#[macro_export]
macro_rules! tell {
    ($($arg:tt)*) => {{ let _ = $crate::screen::print(format!("{}\n", format_args!($($arg)*)).as_bytes()); }};
}

/// A failure on standard error, as every command ends with one. Nothing can be done where nobody reads it.
pub(crate) fn tell(failure: &Failure) {
    tell!("error: {}", failure.message);
    if !failure.advice.is_empty() {
        tell!("next: {}", failure.advice);
    }
    if let Some(rule) = failure.rule {
        tell!("more: veilsum explain {rule}");
    }
}

/// What became of writing to standard output.
///
/// # Errors
/// A [`Failure`] where it cannot be written.
pub(crate) fn written(result: io::Result<()>) -> Result<(), Failure> {
    result.map_err(|e| {
        let what = format!("standard output cannot be written ({e})");
        Failure::new(Code::Internal, what, "check where the output goes and its free space")
    })
}
