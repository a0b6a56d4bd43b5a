//! An answerer as a process: its pipes, its log, and its end, which takes the whole group of processes with it.

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::{contract::tame, fault::Fault};

/// What an answerer may know of this process's environment. Nothing of Veilsum's own is among it.
const ENVIRONMENT: [&str; 20] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "PGCONNECT_TIMEOUT",
    "JAVA_HOME",
    "SPARK_HOME",
    "SPARK_LOCAL_IP",
    "PYSPARK_PYTHON",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "RAYON_NUM_THREADS",
    "OMP_NUM_THREADS",
    "SYSTEMROOT",
    "LD_LIBRARY_PATH",
];
/// Bytes of one line of its standard error that are kept.
const LOG_LINE: u64 = 500;
/// Lines of its standard error that are logged; the rest is dropped.
const LOG_LINES: usize = 1_000;
/// Lines of it that an error shows.
const LAST_LINES: usize = 3;
/// How long a process may take to end after the last line.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long a process that is to be killed has to stop by itself.
const MERCY: Duration = Duration::from_secs(2);
/// How long it takes at most until a killed process is gone.
const GONE: Duration = Duration::from_secs(5);
/// How long is waited between two looks at a process that is about to end.
const PAUSE: Duration = Duration::from_millis(5);
/// How long what it wrote before its end may take to be read.
const HEARD_OUT: Duration = Duration::from_millis(500);

/// Somebody who is told each line of an answerer's standard error.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// How an answerer is started.
#[derive(Clone)]
pub struct Launch {
    /// Program and arguments.
    pub command: Vec<String>,
    /// How long one answer may take.
    pub limit: Duration,
    /// How long it may take to begin: to connect, and to read rows for the first time.
    pub start: Duration,
    /// Told its standard error.
    pub log: Log,
}

impl Launch {
    /// The first word of the command.
    pub fn program(&self) -> String {
        self.command.first().cloned().unwrap_or_default()
    }
}

/// A line as it came, or how long it would have had to be at most.
pub type Line = Result<Vec<u8>, usize>;

/// A running answerer. Whoever drops it kills the process and all that it started.
pub struct Process {
    program: String,
    child: Child,
    /// How it ended, once the system was asked: from then on its number may be another's.
    status: Option<ExitStatus>,
    /// Lines to write; a thread writes them, so that an answerer that does not read holds up nobody.
    to: Option<Sender<Vec<u8>>>,
    from: Receiver<Line>,
    /// Bytes that a line of it may have.
    most: Arc<AtomicUsize>,
    last: Arc<Mutex<VecDeque<String>>>,
    /// Reads what it says on standard error.
    reader: JoinHandle<()>,
}

impl Process {
    /// Starts it.
    ///
    /// # Errors
    /// [`Fault::Start`].
    pub fn start(launch: &Launch) -> Result<Self, Fault> {
        let cannot = |why: String| Fault::Start(launch.program(), why);
        let (program, arguments) = launch.command.split_first().ok_or_else(|| cannot("no program is named".into()))?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear();
        command.envs(ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: what it starts ends with it, and a Ctrl-C at the terminal is the site's.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(|e| cannot(e.to_string()))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else { return Err(cannot("it has no pipes".into())) };
        let (to, said) = mpsc::channel();
        thread::spawn(move || write_lines(stdin, &said));
        let (heard, from) = mpsc::sync_channel(4);
        let most = Arc::new(AtomicUsize::new(1 << 20));
        let allowed = most.clone();
        thread::spawn(move || {
            let mut lines = lines(BufReader::new(stdout), || allowed.load(Ordering::Relaxed));
            lines.try_for_each(|line| heard.send(line).ok())
        });
        let last = Arc::new(Mutex::new(VecDeque::new()));
        let (kept, log) = (last.clone(), launch.log.clone());
        let reader = thread::spawn(move || log_lines(stderr, &kept, &log));
        Ok(Self { program: launch.program(), child, status: None, to: Some(to), from, most, last, reader })
    }

    /// Sends a line; that the answerer does not read it shows when its answer does not come.
    pub fn say(&self, line: Vec<u8>) {
        if let Some(to) = &self.to {
            let _ = to.send(line);
        }
    }

    /// The next line, of `most` bytes at most.
    ///
    /// # Errors
    /// [`Fault::Silent`], [`Fault::Ended`], [`Fault::Contract`]. The process is killed then.
    pub fn hear(&mut self, most: usize, limit: Duration) -> Result<Vec<u8>, Fault> {
        self.most.store(most, Ordering::Relaxed);
        let program = self.program.clone();
        match self.from.recv_timeout(limit) {
            Ok(Ok(line)) => Ok(line),
            Ok(Err(most)) => {
                self.kill();
                let what = format!("a line has more than {most} bytes, which is all that the answer may need");
                Err(Fault::Contract(program, what))
            }
            Err(RecvTimeoutError::Timeout) => {
                self.ask_to_stop();
                self.kill();
                Err(Fault::Silent(program, format!("{limit:?}, and was killed{}", self.last_words())))
            }
            Err(RecvTimeoutError::Disconnected) => {
                let how = self.kill();
                Err(Fault::Ended(program, format!("({how}){}", self.last_words())))
            }
        }
    }

    /// A line that is there although nobody asked for it.
    pub fn unasked(&self) -> bool {
        self.from.try_recv().is_ok()
    }

    /// Closes its input and waits until it has ended by itself; kills it where it does not. The exit code, where there is one.
    pub fn end(mut self) -> Option<i32> {
        self.to = None;
        let by_itself = self.ends_within(FAREWELL);
        self.reap();
        self.status.filter(|_| by_itself).and_then(|status| status.code())
    }

    /// Lets it take what it began elsewhere with it, such as a statement on a server.
    fn ask_to_stop(&mut self) {
        self.to = None;
        if self.status.is_none() {
            stop_group(&mut self.child, false);
            self.ends_within(MERCY);
        }
    }

    /// Kills it with all that it started, and says how it had ended.
    fn kill(&mut self) -> String {
        // A process that ended by itself is told from one that has to be killed.
        let by_itself = self.ends_within(Duration::from_millis(200));
        self.reap();
        self.status.filter(|_| by_itself).map_or_else(|| "killed".to_owned(), |status| status.to_string())
    }

    /// Whether it ends within this time. Its number stays its own: the system is not yet asked how it ended.
    fn ends_within(&mut self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        while self.status.is_none() && !has_ended(&mut self.child) {
            if Instant::now() >= end {
                return false;
            }
            thread::sleep(PAUSE);
        }
        true
    }

    /// Ends it and all that it started, and asks how it ended. The group is told once: no other process can have its number before.
    fn reap(&mut self) {
        if self.status.is_some() {
            return;
        }
        stop_group(&mut self.child, true);
        let end = Instant::now() + GONE;
        while self.status.is_none() && Instant::now() < end {
            self.status = self.child.try_wait().ok().flatten();
            if self.status.is_none() {
                thread::sleep(PAUSE);
            }
        }
    }

    /// What it said last. It has ended, and what stands in the pipe is waited for; not for long, as something else may hold the pipe open.
    fn last_words(&self) -> String {
        let end = Instant::now() + HEARD_OUT;
        while !self.reader.is_finished() && Instant::now() < end {
            thread::sleep(PAUSE);
        }
        let last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let lines: Vec<&str> = last.iter().map(String::as_str).collect();
        if lines.is_empty() { String::new() } else { format!("; it said last: {}", lines.join(" / ")) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.to = None;
        self.reap();
    }
}

/// Ends a process and all that it started, or asks them to end.
#[cfg(unix)]
fn stop_group(child: &mut Child, now: bool) {
    use rustix::process::{Pid, Signal, kill_process_group};
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // None is left where everybody of the group has ended.
        let _ = kill_process_group(group, if now { Signal::KILL } else { Signal::TERM });
    }
}

/// Elsewhere the process alone.
#[cfg(not(unix))]
fn stop_group(child: &mut Child, now: bool) {
    if now {
        let _ = child.kill();
    }
}

/// Whether a process has ended, without asking how: its number is not given to another before somebody does.
#[cfg(unix)]
fn has_ended(child: &mut Child) -> bool {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    number.is_none_or(|number| !matches!(waitid(WaitId::Pid(number), options), Ok(None) | Err(rustix::io::Errno::INTR)))
}

/// Elsewhere a process that ended keeps its number as long as it is held.
#[cfg(not(unix))]
fn has_ended(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
}

fn write_lines(mut stdin: ChildStdin, lines: &Receiver<Vec<u8>>) {
    for line in lines {
        if stdin.write_all(&line).and_then(|()| stdin.write_all(b"\n")).and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

/// The lines of a reader, without their ends, of `most` bytes at most; they end where one is longer or the reader fails.
pub(crate) fn lines(mut reader: impl BufRead, most: impl Fn() -> usize) -> impl Iterator<Item = Line> {
    let mut over = false;
    std::iter::from_fn(move || {
        let line = if over { None } else { read_line(&mut reader, &most).ok().flatten() };
        over = !matches!(line, Some(Ok(_)));
        line
    })
}

fn read_line(reader: &mut impl BufRead, most: impl Fn() -> usize) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    loop {
        let part = match reader.fill_buf() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if part.is_empty() {
            return Ok((!line.is_empty()).then_some(Ok(line)));
        }
        let end = part.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(part.len());
        line.extend_from_slice(&part[..taken]);
        reader.consume(taken + usize::from(end.is_some()));
        let most = most();
        if line.len() > most {
            return Ok(Some(Err(most)));
        }
        if end.is_some() {
            line.pop_if(|last| *last == b'\r');
            return Ok(Some(Ok(line)));
        }
    }
}

/// Every line of standard error to the log, cut; what is beyond the limit is read and dropped, so that the answerer is not held up.
fn log_lines(stderr: impl Read, last: &Mutex<VecDeque<String>>, log: &Log) {
    let mut stderr = BufReader::new(stderr);
    for lines in 1.. {
        let mut line = Vec::new();
        if !matches!(stderr.by_ref().take(LOG_LINE).read_until(b'\n', &mut line), Ok(1..)) {
            return;
        }
        let cut = !line.ends_with(b"\n") && stderr.skip_until(b'\n').is_ok_and(|rest| rest > 1);
        let mut text = tame(String::from_utf8_lossy(&line).trim_end_matches('\n'));
        if text.is_empty() {
            continue;
        }
        if cut {
            text.push('…');
        }
        match lines {
            1..=LOG_LINES => log(&text),
            _ if lines == LOG_LINES + 1 => log("the answerer says more than is logged"),
            _ => {}
        }
        let mut last = last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        last.push_back(text);
        if last.len() > LAST_LINES {
            last.pop_front();
        }
    }
}
