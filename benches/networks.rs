//! Rounds a second over distance and loss, against the floor of two round trips a round: `cargo bench --bench networks`.
//!
//! Three sites, a coordinator and an intermediary are processes in network namespaces, and a router in this process lies between
//! them. A cell is measured over several runs, each between two answers of one site in mid-run, so that neither keys nor the first
//! count are in it. `-- --runs N` and `-- --rounds N` change how much is measured; `-- --only 50:0:quic,100:2:tcp` measures these cells.
//! The floor is two round trips as echoes take them through the same router, before the parties begin: the router adds some tenths of a
//! millisecond to the delays that it is asked for.

fn main() {
    // A party is a process of this program, too.
    veilsum_testkit::program::one_run(veilsum_cli::embedded::one_run);
    #[cfg(target_os = "linux")]
    linux::main();
    #[cfg(not(target_os = "linux"))]
    println!("SKIPPED: this needs the network namespaces of Linux");
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        fs::File,
        io::Write,
        time::{Duration, Instant},
    };

    use veilsum_testkit::{
        measure::{Spread, for_real, print_machine, seconds},
        network::{Access, Family, Network},
        program::{Folder, Parties, Running, launch},
    };

    const NAMES: [&str; 5] = ["lead", "counter", "site-1", "site-2", "site-3"];
    const SIZES: [usize; 3] = [40, 55, 61];
    const LIMIT: Duration = Duration::from_secs(300);
    /// Answers of a site before the first that is measured: the connections have their pace, and the rows are counted.
    const BEFORE: usize = 6;
    const ECHOES: usize = 40;
    /// One round trip for the masked sums and one for the masks.
    const TRIPS: u32 = 2;

    pub(super) fn main() {
        let number = |name: &str, usual: usize| {
            let mut args = std::env::args().skip_while(|arg| arg != name).skip(1);
            args.next().map_or(usual, |value| value.parse().expect("a number"))
        };
        let asked = std::env::args().skip_while(|arg| arg != "--only").nth(1);
        let only: Option<Vec<_>> = asked.as_ref().map(|cells| cells.split(',').map(cell).collect());
        let (runs, rounds) = if for_real() { (number("--runs", 5), number("--rounds", 20)) } else { (1, 4) };
        let (mut trips, mut losses) =
            if for_real() { (vec![0, 100, 200], vec![0, 2, 10]) } else { (vec![20], vec![0]) };
        if let Some(only) = &only {
            (trips, losses) = only.iter().map(|(trip, loss, _)| (*trip, *loss)).unzip();
            trips.dedup();
            losses.sort_unstable();
            losses.dedup();
        }
        if let Err(why) = Network::new(&NAMES, Family::V4, 0) {
            println!("SKIPPED: {why}");
            return;
        }
        print_machine();
        println!("a sync of a file takes {:.1} ms", syncs());
        println!("{rounds} rounds of 3 sites in each of {runs} runs; loss is that of packets, in each direction\n");
        println!(
            "| round trip | loss | QUIC, rounds/s | of the floor (a round to it) | TCP, rounds/s | of the floor (a round to it) |"
        );
        println!("|---|---|---|---|---|---|");
        for trip in &trips {
            for loss in &losses {
                let mut line = format!("| {trip} ms | {loss} % |");
                for way in ["quic", "tcp"] {
                    if only.as_ref().is_some_and(|only| !only.contains(&(*trip, *loss, way))) {
                        line += " | |";
                        continue;
                    }
                    let paces = (0..runs).map(|run| pace((*trip, *loss, way), rounds, run as u64));
                    let (paces, echoes): (Vec<_>, Vec<_>) = paces.unzip();
                    let (spread, echoed) = (Spread::of(paces), Spread::of(echoes));
                    let floor = f64::from(TRIPS) * echoed.median;
                    line += &format!(" {spread:.2} | ");
                    let (part, took) = (1e-1 * spread.median * floor, 1e3 / spread.median);
                    line += &match *trip {
                        0 => "–".into(),
                        _ => format!("{part:.1} % ({took:.1} ms to {floor:.1})"),
                    };
                    line += " |";
                }
                println!("{line}");
            }
        }
    }

    /// Round trip in milliseconds, loss in percent and transport of `100:2:tcp`.
    fn cell(text: &str) -> (u64, u32, &str) {
        let mut parts = text.split(':');
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (trip, loss) = (number(), number());
        match (trip, loss.and_then(|loss| u32::try_from(loss).ok()), parts.next()) {
            (Some(trip), Some(loss), Some(way @ ("quic" | "tcp"))) => (trip, loss, way),
            _ => panic!("`{text}` is no cell: round trip in ms, loss in percent, quic or tcp, as in 100:2:tcp"),
        }
    }

    /// Milliseconds of a sync where the parties keep their files. A round waits for several, one after the other.
    fn syncs() -> Spread {
        let folder = Folder::fresh();
        let mut file = File::create(folder.path("synced")).expect("a file");
        let mut sync = || {
            file.write_all(&[0; 200]).and_then(|()| file.sync_data()).expect("a sync");
        };
        Spread::of((0..50).map(|_| 1e3 * seconds(&mut sync)))
    }

    /// Rounds a second of one run over such a path, and milliseconds of a round trip to the farthest site.
    fn pace((trip, loss, way): (u64, u32, &str), rounds: usize, run: u64) -> (f64, f64) {
        let network = Network::new(&NAMES, Family::V4, run).expect("as before");
        let access = |loss| Access::half_of(Duration::from_millis(trip) / 2, Duration::ZERO, loss);
        network.set_all(&access(0.0));
        let echoes = network.round_trips("site-1", "lead", ECHOES);
        let trip = 1e3 * Spread::of(echoes.iter().map(Duration::as_secs_f64)).median;
        network.set_all(&access(f64::from(loss) / 100.0));
        let hosts = ["lead", "counter"].map(|who| network.address(who).to_string());
        let most = format!("--set=max_rounds={}", BEFORE + rounds + 2);
        let plan = ["--set=init=uniform", "--set=epsilon=0", "--set=slots=64", "--seed=9", &most];
        let p = Parties::at([&hosts[0], &hosts[1]], [4433, 4434], &SIZES, &plan);
        let more = ["-vv", "--transport", way, "--phase-timeout", "120", "--join-timeout", "120"];
        let start = |who: &str| -> Running {
            let args = match who.strip_prefix("site-") {
                None if who == "lead" => p.server(&more),
                None => p.intermediary(&more),
                Some(number) => p.client(number.parse().expect("a number"), &[&more[..3], &more[5..]].concat()),
            };
            launch(network.program(who), &args)
        };
        let parties = NAMES.map(start);
        let answers = |n: usize| {
            parties[2].until("answers", LIMIT, |log| log.matches("MaskedWords").count() >= n);
            Instant::now()
        };
        let (begun, ended) = (answers(BEFORE), answers(BEFORE + rounds));
        for party in parties {
            party.wait(LIMIT).expect(0);
        }
        (rounds as f64 / (ended - begun).as_secs_f64(), trip)
    }
}
