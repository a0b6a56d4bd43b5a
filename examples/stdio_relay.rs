//! Bring your own client: carries a site's frames between a process of yours and both aggregators, and reads none.
//!
//! The relay holds the site's identity for QUIC and nothing else of the protocol: your process greets, answers, masks and
//! signs. It gets and gives records: a channel (one byte), a length (u32, little-endian), bytes. Channel 0 is the
//! coordinator and 1 the intermediary; an empty record says to your process that the connection is up (again), so that it
//! greets, and to the relay that your process is done with it. First of all, on channels 2 and 3, come the signed roster and
//! the signed plan in the protocol's encoding. A record that is cut off, or on another channel, ends the relay.
//!
//! ```sh
//! cargo run --example stdio_relay -- site.key roster.toml plan.toml \
//!     python3 protocol/reference/take_part.py --key site.key --data rows.csv
//! ```

use std::{
    io::{self, Read, Write},
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use tokio::sync::mpsc;
use veilsum_node::{
    app_messages,
    carrier::{self, Address, Call, Credentials, Transport},
    documents::{self, Offered},
    egress::Egress,
};
use veilsum_proto::{
    codec,
    plan::SignedTerms,
    roster::{PartyId, SignedRoster},
};

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Record = (u8, Vec<u8>);

/// The aggregators, by channel.
const PARTIES: [PartyId; 2] = [PartyId::Coordinator, PartyId::Intermediary];
/// Channels of the two documents.
const DOCUMENTS: [u8; 2] = [2, 3];
/// Larger than any frame.
const MAX_RECORD: u32 = 32 << 20;
const DIAL_LIMIT: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(250);
const FINISH_LIMIT: Duration = Duration::from_secs(5);
/// Records that may wait for a reader.
const QUEUE: usize = 16;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [key, roster, plan, program, rest @ ..] = &args[..] else {
        return Err("usage: stdio_relay KEY ROSTER PLAN PROGRAM [ARGUMENT ...]".into());
    };
    let (identity, _) = documents::load_identity(key).map_err(|f| f.message)?;
    let file = roster;
    let (roster, plan) = documents::load_signed(roster, plan).map_err(|f| f.message)?;
    // A roster's signature does not say whose it is: `veilsum agree` does, once.
    Offered { file: file.as_ref(), roster: &roster.roster, key: key.as_ref(), identity: &identity }.passes()?;
    let address = |party| -> Result<Address, Failure> {
        let member = roster.roster.member(party).ok_or("no such party")?;
        Ok(member.address.parse()?)
    };
    let addresses = [address(PARTIES[0])?, address(PARTIES[1])?];
    let mut command = Command::new(program);
    command.args(rest);
    relay(command, &identity.seed(), &roster, &plan, addresses, Duration::from_secs(60)).await
}

/// Runs `command` as the site of this identity, until it ends.
///
/// # Errors
/// Where an aggregator cannot be reached within `patience`, or the command ends badly.
pub(crate) async fn relay(
    mut command: Command,
    seed: &[u8; 32],
    roster: &SignedRoster,
    plan: &SignedTerms,
    addresses: [Address; 2],
    patience: Duration,
) -> Result<(), Failure> {
    let credentials = Arc::new(Credentials::from_seed(seed)?);
    let mut child = Ours(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
    let (mut stdin, mut stdout) = (child.0.stdin.take().ok_or("no input")?, child.0.stdout.take().ok_or("no output")?);
    let (to_child, mut for_child) = mpsc::channel::<Record>(QUEUE);
    let mut from_child = Vec::new();
    let mut lines = tokio::task::JoinSet::new();
    for (channel, bytes) in DOCUMENTS.into_iter().zip([codec::encode(roster), codec::encode(plan)]) {
        to_child.send((channel, bytes)).await?;
    }
    for (channel, (party, address)) in (0u8..).zip(PARTIES.into_iter().zip(addresses)) {
        let key = roster.roster.member(party).ok_or("no such party")?.key.0;
        let (sender, receiver) = mpsc::channel(QUEUE);
        from_child.push(sender);
        let (credentials, to_child) = (credentials.clone(), to_child.clone());
        lines.spawn(line(channel, address, credentials, key, receiver, to_child, patience));
    }
    drop(to_child);
    // Pipes block, so each has a thread of its own; both end with the process.
    thread::spawn(move || {
        while let Some((channel, bytes)) = for_child.blocking_recv() {
            if put(&mut stdin, channel, &bytes).is_err() {
                return;
            }
        }
    });
    let reader = thread::spawn(move || -> Result<(), Failure> {
        while let Some((channel, bytes)) = take(&mut stdout)? {
            let line = from_child.get(usize::from(channel)).ok_or("a record on a channel that is none")?;
            // A line that is over takes nothing more.
            let _ = line.blocking_send(bytes);
        }
        Ok(())
    });
    // A line ends when the process is done with it or gone.
    while let Some(ended) = lines.join_next().await {
        ended??;
    }
    let status = tokio::task::spawn_blocking(move || child.wait()).await??;
    reader.join().map_err(|_| "the reader of the process's records failed")??;
    if status.success() { Ok(()) } else { Err(format!("the process ended with {status}").into()) }
}

/// The process, which does not outlive the relay.
struct Ours(Child);

impl Ours {
    fn wait(&mut self) -> io::Result<ExitStatus> {
        self.0.wait()
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One aggregator: dials, carries frames both ways, dials again where the connection broke.
async fn line(
    channel: u8,
    address: Address,
    credentials: Arc<Credentials>,
    key: [u8; 32],
    mut from_child: mpsc::Receiver<Vec<u8>>,
    to_child: mpsc::Sender<Record>,
    patience: Duration,
) -> Result<(), Failure> {
    let (carrier, mut since) = (carrier::choose(Transport::Auto)?, Instant::now());
    let (check, limit) = (app_messages::header_check, DIAL_LIMIT);
    let call = Call { to: &address, expected: &key, credentials: &credentials, check, limit };
    loop {
        let dialled = tokio::select! {
            link = carrier.dial(call) => link,
            said = from_child.recv() => match said {
                // Meant for the connection before: the process will be asked again.
                Some(frame) if !frame.is_empty() => continue,
                _ => return Ok(()),
            },
        };
        let (mut sender, mut receiver) = match dialled {
            Ok(link) => link.split(),
            Err(e) if since.elapsed() > patience => return Err(e.into()),
            Err(_) => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        while let Ok(frame) = from_child.try_recv() {
            if frame.is_empty() {
                return Ok(());
            }
        }
        if to_child.send((channel, Vec::new())).await.is_err() {
            return Ok(());
        }
        loop {
            tokio::select! {
                said = from_child.recv() => match said {
                    Some(frame) if !frame.is_empty() => {
                        if sender.send(&Egress::foreign(&frame)).await.is_err() {
                            break;
                        }
                    }
                    _ => {
                        let _ = sender.finish(FINISH_LIMIT).await;
                        return Ok(());
                    }
                },
                heard = receiver.recv() => match heard {
                    Ok(Some(frame)) => {
                        since = Instant::now();
                        // The process is gone; how it ended, its status says.
                        if to_child.send((channel, frame)).await.is_err() {
                            return Ok(());
                        }
                    }
                    _ => break,
                },
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn put(out: &mut impl Write, channel: u8, bytes: &[u8]) -> io::Result<()> {
    out.write_all(&[channel])?;
    out.write_all(&(bytes.len() as u32).to_le_bytes())?;
    out.write_all(bytes)?;
    out.flush()
}

fn take(from: &mut impl Read) -> Result<Option<Record>, Failure> {
    let mut head = [0; 5];
    if from.read(&mut head[..1])? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut head[1..])?;
    let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
    if length > MAX_RECORD {
        return Err("a record longer than any frame".into());
    }
    let mut bytes = Vec::with_capacity(length.min(1 << 16) as usize);
    if from.take(u64::from(length)).read_to_end(&mut bytes)? < length as usize {
        return Err("a record was cut off".into());
    }
    Ok(Some((head[0], bytes)))
}
