//! A network of a test's own: a network namespace for every party, and in this process a router between them that delays, loses,
//! cuts and blocks what passes. It needs Linux, the right to make namespaces and TUN devices, and the commands `unshare`, `nsenter`
//! and `ip`; no queueing discipline of the kernel. All of it is gone with this process, however it ends.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufRead, BufReader, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, TcpListener, TcpStream, UdpSocket},
    os::fd::AsFd,
    process::{Child, Command, Stdio},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tappers::Tun;

use crate::{program::binary, seeds::Dice};

/// Bytes of a packet at most.
const LARGEST: usize = 65_536;
/// Bytes of an echo: about those of a full packet of QUIC.
const ECHO: usize = 1_200;
const UDP: u8 = 17;
const TCP: u8 = 6;
/// What would send a party past the router's rules.
const VARIABLES: [&str; 6] = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"];

/// Which addresses the parties have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    fn address(self, host: u8) -> IpAddr {
        match self {
            Family::V4 => Ipv4Addr::new(10, 9, 0, host).into(),
            Family::V6 => Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, host.into()).into(),
        }
    }
}

/// What stands between a party and all others. A packet passes two of them, its sender's and its receiver's.
#[derive(Clone, Debug, Default)]
pub struct Access {
    pub delay: Duration,
    /// The delay differs by so much at most, for each packet by itself: they may overtake each other.
    pub jitter: Duration,
    /// The part of packets that is lost, from 0 to 1.
    pub loss: f64,
    /// Nothing passes.
    pub cut: bool,
    /// UDP does not pass, and nobody says so.
    pub no_udp: bool,
    /// Nothing passes but to and from this party.
    pub only: Option<String>,
}

impl Access {
    /// Half of a path with these properties of one direction.
    pub fn half_of(delay: Duration, jitter: Duration, loss: f64) -> Access {
        Access { delay: delay / 2, jitter: jitter / 2, loss: 1.0 - (1.0 - loss).sqrt(), ..Access::default() }
    }
}

/// Packets of one party, sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    pub udp: u64,
    pub tcp: u64,
    /// Lost, cut or blocked.
    pub stopped: u64,
}

struct Party {
    name: String,
    address: IpAddr,
    access: Access,
    passed: Passed,
}

struct State {
    parties: Vec<Party>,
    /// What is under way, by when it is due and its number: to whom, and the packet.
    waiting: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    number: u64,
    dice: Dice,
    over: bool,
}

impl State {
    fn new(names: &[&str], family: Family, seed: u64) -> State {
        let (access, passed) = (Access::default(), Passed::default());
        let party = |(host, name): (u8, &&str)| {
            let (name, access) = ((*name).into(), access.clone());
            Party { name, address: family.address(host), access, passed }
        };
        let parties = (1..).zip(names).map(party).collect();
        State { parties, waiting: BTreeMap::new(), number: 0, dice: Dice::new(seed), over: false }
    }

    /// When this packet leaves the network, and where; nothing where it is stopped, or goes to nobody.
    fn way(&mut self, from: usize, packet: &[u8]) -> Option<(Instant, usize)> {
        let (source, target, protocol) = head(packet)?;
        let to = self.parties.iter().position(|party| party.address == target)?;
        // As behind any provider, a party sends from its own address or not at all.
        let own = self.parties[from].address == source;
        let blocks = |here: usize, there: usize| {
            let access = &self.parties[here].access;
            let other = access.only.as_ref().is_some_and(|only| *only != self.parties[there].name);
            access.cut || other || access.no_udp && protocol == UDP
        };
        let blocked = !own || blocks(from, to) || blocks(to, from);
        let accesses = [from, to].map(|party| self.parties[party].access.clone());
        let mut late = Duration::ZERO;
        let mut lost = false;
        for access in &accesses {
            lost |= access.loss > 0.0 && self.dice.unit() < access.loss;
            late += access.delay.saturating_sub(access.jitter);
            if !access.jitter.is_zero() {
                late += (2 * access.jitter.min(access.delay)).mul_f64(self.dice.unit());
            }
        }
        for party in [from, to] {
            let passed = &mut self.parties[party].passed;
            let count = match protocol {
                _ if blocked || lost => &mut passed.stopped,
                UDP => &mut passed.udp,
                TCP => &mut passed.tcp,
                _ => continue,
            };
            *count += 1;
        }
        (!blocked && !lost).then(|| (Instant::now() + late, to))
    }
}

/// Source, target and protocol of a packet.
fn head(packet: &[u8]) -> Option<(IpAddr, IpAddr, u8)> {
    let v4 = |at: usize| Some(IpAddr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?));
    let v6 = |at: usize| Some(IpAddr::from(<[u8; 16]>::try_from(packet.get(at..at + 16)?).ok()?));
    match packet.first()? >> 4 {
        4 => Some((v4(12)?, v4(16)?, *packet.get(9)?)),
        6 => Some((v6(8)?, v6(24)?, *packet.get(6)?)),
        _ => None,
    }
}

struct Router {
    devices: Vec<Tun>,
    state: Mutex<State>,
    more: Condvar,
}

impl Router {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what a party sends, until its device is gone.
    fn take(&self, from: usize) {
        let mut buffer = vec![0; LARGEST];
        while let Ok(length) = self.devices[from].recv(&mut buffer) {
            let bytes = &buffer[..length];
            let mut state = self.state();
            let Some((due, to)) = state.way(from, bytes) else { continue };
            state.number += 1;
            let number = state.number;
            state.waiting.insert((due, number), (to, bytes.to_vec()));
            self.more.notify_one();
        }
    }

    /// Hands packets over when they are due, until the network is over.
    fn deliver(&self) {
        let mut state = self.state();
        while !state.over {
            let Some((&(due, _), _)) = state.waiting.first_key_value() else {
                state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = due.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                state = self.more.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            if let Some((_, (to, bytes))) = state.waiting.pop_first() {
                drop(state);
                // A device that is being taken away takes no more packets.
                let _ = self.devices[to].send(&bytes);
                state = self.state();
            }
        }
    }
}

/// The place of one party: a process that keeps its namespace, and ends with its standard input.
struct Place {
    keeper: Child,
    device: String,
}

impl Place {
    fn namespace(&self) -> String {
        format!("/proc/{}/ns/net", self.keeper.id())
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.namespace())).arg(program);
        for name in VARIABLES {
            command.env_remove(name);
        }
        command
    }

    /// Its device has its address. One of IPv6 is looked for in vain for a second, where it is not said that it need not be.
    fn appears(&self, address: IpAddr) -> Result<(), String> {
        let (prefix, quick) = if address.is_ipv6() { (64, " nodad") } else { (24, "") };
        self.ip(&format!("addr add {address}/{prefix} dev {}{quick}", self.device))
    }

    /// A command to `ip`, in this place.
    fn ip(&self, line: &str) -> Result<(), String> {
        ip(&mut self.command("ip"), line)
    }
}

fn ip(command: &mut Command, line: &str) -> Result<(), String> {
    let ended = command.args(line.split(' ')).output().map_err(|e| format!("ip: {e}"))?;
    let says = || format!("ip {line}: {}", String::from_utf8_lossy(&ended.stderr));
    ended.status.success().then_some(()).ok_or_else(says)
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

/// Parties in namespaces, and the router between them.
pub struct Network {
    family: Family,
    places: Vec<Place>,
    router: Arc<Router>,
    threads: Vec<JoinHandle<()>>,
}

impl Network {
    /// A network without delay or loss.
    ///
    /// # Errors
    /// What this machine does not allow.
    pub fn new(names: &[&str], family: Family, seed: u64) -> Result<Network, String> {
        let state = State::new(names, family, seed);
        let made = state.parties.iter().map(|party| place(party.address)).collect::<Result<Vec<_>, _>>()?;
        let (places, devices): (Vec<Place>, Vec<Tun>) = made.into_iter().unzip();
        let router = Arc::new(Router { devices, state: Mutex::new(state), more: Condvar::new() });
        let mut threads = Vec::new();
        for from in 0..places.len() {
            let router = router.clone();
            threads.push(thread::spawn(move || router.take(from)));
        }
        let delivering = router.clone();
        threads.push(thread::spawn(move || delivering.deliver()));
        Ok(Network { family, places, router, threads })
    }

    fn number(&self, who: &str) -> usize {
        self.router.state().parties.iter().position(|party| party.name == who).expect("a party of the network")
    }

    /// The party's address now.
    pub fn address(&self, who: &str) -> IpAddr {
        let number = self.number(who);
        self.router.state().parties[number].address
    }

    /// The address with a port, as the program takes it.
    pub fn at(&self, who: &str, port: u16) -> String {
        std::net::SocketAddr::new(self.address(who), port).to_string()
    }

    /// A command that runs in the party's place.
    pub fn command(&self, who: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
        self.places[self.number(who)].command(program)
    }

    /// The program, in the party's place.
    pub fn program(&self, who: &str) -> Command {
        self.command(who, binary())
    }

    /// Changes what stands between this party and all others. What is under way comes through.
    pub fn set(&self, who: &str, change: impl FnOnce(&mut Access)) {
        let number = self.number(who);
        change(&mut self.router.state().parties[number].access);
    }

    pub fn set_all(&self, access: &Access) {
        self.router.state().parties.iter_mut().for_each(|party| party.access = access.clone());
    }

    /// What has passed between this party and others so far.
    pub fn passed(&self, who: &str) -> Passed {
        let number = self.number(who);
        self.router.state().parties[number].passed
    }

    /// The party gives its address up and has another one from now on, as after a night at its provider.
    pub fn moves(&mut self, who: &str, host: u8) {
        let (number, new) = (self.number(who), self.family.address(host));
        let mut state = self.router.state();
        assert!(state.parties.iter().all(|party| party.address != new), "{new} is somebody's");
        state.parties[number].address = new;
        drop(state);
        let place = &self.places[number];
        place.ip(&format!("addr flush dev {}", place.device)).expect("it had an address");
        place.appears(new).expect("another address");
    }

    /// How long echoes take from one party to another and back, one after the other, as a program sees it: what the router adds to the
    /// delays that were asked for, and waking both ends, are in it. Nothing may be lost on the way.
    pub fn round_trips(&self, from: &str, to: &str, count: usize) -> Vec<Duration> {
        let (near, far, target) = (self.socket(from), self.socket(to), self.at(to, 7));
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut bytes = [0; ECHO];
                for _ in 0..count {
                    let (length, from) = far.recv_from(&mut bytes).expect("an echo's question");
                    far.send_to(&bytes[..length], from).expect("an echo's answer");
                }
            });
            let echo = |_| {
                let (begun, mut bytes) = (Instant::now(), [0; ECHO]);
                near.send_to(&bytes, &target).expect("an echo's question");
                near.recv_from(&mut bytes).expect("an echo's answer");
                begun.elapsed()
            };
            (0..count).map(echo).collect()
        })
    }

    /// A socket of this party: one belongs to the network that it was opened in.
    fn socket(&self, who: &str) -> UdpSocket {
        let (namespace, at) = (self.places[self.number(who)].namespace(), self.at(who, 7));
        let open = move || {
            enter(&namespace);
            UdpSocket::bind(at).expect("a port")
        };
        let socket = thread::spawn(open).join().expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
        socket
    }

    /// A proxy that takes `CONNECT` and nothing else, in this party's place, as long as this process lives: its URL.
    pub fn proxy(&self, who: &str) -> String {
        let (at, namespace) = (self.at(who, 3128), self.places[self.number(who)].namespace());
        let listen = at.clone();
        let (open, opened) = mpsc::channel();
        thread::spawn(move || {
            enter(&namespace);
            let listener = TcpListener::bind(listen).expect("a port");
            open.send(()).expect("somebody waits");
            // Threads that this one starts are where it is.
            listener.incoming().flatten().for_each(|client| drop(thread::spawn(|| pass_on(client))));
        });
        opened.recv().expect("an open proxy");
        format!("http://{at}")
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.router.state().over = true;
        self.router.more.notify_all();
        for place in &self.places {
            // Whoever reads from the device learns that it is gone.
            let _ = place.ip(&format!("link del {}", place.device));
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// This thread is in another network from now on.
fn enter(namespace: &str) {
    let namespace = File::open(namespace).expect("a namespace");
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).expect("this thread moves");
}

fn place(address: IpAddr) -> Result<(Place, Tun), String> {
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", "echo here && exec cat"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut keeper = command.stderr(Stdio::null()).spawn().map_err(|e| format!("unshare: {e}"))?;
    let mut word = String::new();
    let heard = BufReader::new(keeper.stdout.take().expect("a pipe")).read_line(&mut word);
    let mut place = Place { keeper, device: String::new() };
    if heard.is_err() || word != "here\n" {
        return Err("no right to make a network namespace (unshare --net)".into());
    }
    let device = Tun::new().map_err(|e| format!("no TUN device (/dev/net/tun): {e}"))?;
    let name = device.name().map_err(|e| format!("a device without a name: {e}"))?;
    place.device = name.name_cstr().to_string_lossy().into_owned();
    let here = format!("link set dev {} netns {}", place.device, place.keeper.id());
    ip(&mut Command::new("ip"), &here)?;
    place.ip("link set lo up")?;
    place.appears(address)?;
    place.ip(&format!("link set {} up", place.device))?;
    Ok((place, device))
}

/// One client of the proxy.
fn pass_on(client: TcpStream) -> io::Result<()> {
    let mut lines = BufReader::new(&client).lines();
    let asked = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let to = asked.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next());
    let Some(to) = to else { return (&client).write_all(b"HTTP/1.1 405 Method Not Allowed\r\n\r\n") };
    let Ok(server) = TcpStream::connect(to) else { return (&client).write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n") };
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    (&client).write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    thread::scope(|scope| {
        for (mut from, mut to) in [(&client, &server), (&server, &client)] {
            scope.spawn(move || (io::copy(&mut from, &mut to), to.shutdown(Shutdown::Write)));
        }
    });
    Ok(())
}
