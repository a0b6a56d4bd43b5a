//! Rows that do not fit into a site's memory are read anew for every question: a federation of such sites sends the same words as one in
//! memory, rows that change in between are an error, and a plan that cannot be answered so is refused at the start.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::sync::oneshot;
use veilsum_cluster::{
    Algorithm, OutOfBox, Rows, Scaling,
    method::{Candidates, Scale, Seeding},
    query::LocalSteps,
};
use veilsum_node::{
    agreed::questions,
    answerer::Answerer,
    documents::{self, RowsFrom},
    error::Failure,
    loopback::LOOPBACK_TIMING,
    model::Model,
    plan::PlanSpec,
    question::{Terms as Asking, contribute},
    release::{Data, Origin, Precision, Prepared},
    role::{client, config::ClientConfig, server},
    table::RowRules,
};
use veilsum_proto::plan::Terms;
use veilsum_testkit::{
    cast::Cast,
    in_process::{fcm, made_up, unit_square},
    program::{Folder, Parties, agree, veilsum},
};

/// Rows of a part of a source.
const PART: usize = 90;

type Site = (Arc<dyn Answerer>, Arc<Origin>);

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(120), future).await.expect("an end") })
}

fn cast(work: &PlanSpec) -> Cast {
    let large = |terms: &mut Terms| terms.max_rows = 1_000;
    Cast::new(work, &["site-1", "site-2", "site-3"], large).expect("a federation")
}

/// A folder of parts with these rows.
fn parts(folder: &Folder, name: &str, rows: &Rows) -> PathBuf {
    let parts = PathBuf::from(folder.path(name));
    fs::create_dir(&parts).expect("a folder");
    for (i, part) in rows.as_slice().chunks(2 * PART).enumerate() {
        let lines: String = part.chunks(2).map(|row| format!("{:?},{:?}\n", row[0], row[1])).collect();
        fs::write(parts.join(format!("part-{i}.csv")), format!("x,y\n{lines}")).expect("a part");
    }
    parts
}

fn load(cast: &Cast, data: &Path, memory: u64) -> Result<Site, Failure> {
    load_in(Precision::Double, cast, data, memory)
}

fn load_in(precision: Precision, cast: &Cast, data: &Path, memory: u64) -> Result<Site, Failure> {
    let rules = Arc::new(RowRules { memory: Some(memory), precision, ..RowRules::default() });
    let from = RowsFrom { data: data.to_owned(), rules, ..RowsFrom::default() };
    documents::load_rows(&cast.federation, &from).map(|loaded| (loaded.rows, Arc::new(loaded.origin)))
}

/// The models of all sites.
async fn run(cast: &Cast, sites: Vec<Site>) -> Vec<Result<Model, Failure>> {
    let (bound, address) = oneshot::channel();
    let server = tokio::spawn(server::run(cast.server(LOOPBACK_TIMING, bound)));
    let coordinator = address.await.expect("an address");
    let (intermediary, counter) = cast.intermediary(coordinator, LOOPBACK_TIMING).await;
    let none = Rows::new(vec![0.5, 0.5], 2).expect("a row");
    let clients: Vec<_> = (sites.into_iter().enumerate())
        .map(|(i, (rows, origin))| {
            let config = ClientConfig { rows, origin, ..cast.site(i, &none, coordinator, intermediary) };
            tokio::spawn(client::run(config))
        })
        .collect();
    let mut models = Vec::new();
    for client in clients {
        models.push(client.await.expect("no panic").map(|report| report.model.expect("a model")));
    }
    let _ = (server.await, counter.await);
    models
}

#[test]
fn a_federation_of_streamed_rows_sends_the_words_of_one_in_memory() {
    // First centres from totals are what a plan has by default.
    let mut work = fcm(unit_square(), 3, 0.0, 4, Seeding::Uniform { seed: 5 });
    work.recipe.seeding = Seeding::Candidates(Candidates { tries: 5, ..Candidates::usual(7) });
    let (folder, cast) = (Folder::fresh(), cast(&work));
    let data: Vec<PathBuf> =
        made_up(&[700, 400, 930], 1.0, 11).iter().map(|(name, rows)| parts(&folder, name, rows)).collect();
    let site =
        |memory: u64| -> Vec<Site> { data.iter().map(|data| load(&cast, data, memory).expect("rows")).collect() };
    let (held, streamed) = (site(1 << 30), site(1));
    let form = cast.federation.form().expect("a form");
    for ((held, own), (streamed, own_streamed)) in held.iter().zip(&streamed) {
        assert_eq!((held.rows(), held.digest()), (streamed.rows(), streamed.digest()));
        let identity = &cast.identities[2];
        assert!(own.columns(identity, &[]).expect("digests") == own_streamed.columns(identity, &[]).expect("digests"));
        for question in questions(&work).expect("questions") {
            let words = |rows: &dyn Answerer| contribute(&question, rows, &Asking::everybody(form)).expect("words");
            assert_eq!(words(&**held), words(&**streamed), "{}", question.name());
        }
    }
    let models = block_on(async { [run(&cast, held).await, run(&cast, streamed).await] });
    let [held, streamed] = models.map(|all| all.into_iter().map(|model| model.expect("a model")).collect::<Vec<_>>());
    for (held, streamed) in held.iter().zip(&streamed) {
        assert!(
            held.centres.len() == 3 && held.centres == streamed.centres,
            "{:?} {:?}",
            held.centres,
            streamed.centres
        );
    }
}

/// In memory or streamed, rows in single precision answer as their rounded numbers do. A ledger knows them for the rows that they were in double
/// precision, but counts an answer from them as another one.
#[test]
fn rows_in_single_precision_are_the_same_data_and_give_answers_of_their_own() {
    let mut work = fcm(unit_square(), 3, 0.0, 2, Seeding::Uniform { seed: 5 });
    work.recipe.preparation.scale = Scale::Standard;
    let (folder, cast) = (Folder::fresh(), cast(&work));
    let (name, rows) = &made_up(&[700], 1.0, 11)[0];
    let data = parts(&folder, name, rows);
    let site = |precision, memory| load_in(precision, &cast, &data, memory).expect("rows");
    let (double, own) = site(Precision::Double, 1 << 30);
    let whole = Prepared::new(rows, &work.domain().expect("a box"), OutOfBox::Refuse).expect("rows");
    let rounded = whole.held_in(Precision::Single).expect("rows").packed().to_rows();
    let expected = Prepared::new(&rounded, &work.domain().expect("a box"), OutOfBox::Refuse).expect("rows");
    let (form, identity) = (cast.federation.form().expect("a form"), &cast.identities[2]);
    let known = own.columns(identity, &[]).expect("digests");
    let asked = |rows: &dyn Answerer| -> Vec<_> {
        let words = |question| contribute(question, rows, &Asking::everybody(form)).expect("words");
        questions(&work).expect("questions").iter().map(words).collect()
    };
    for memory in [1 << 30, 1] {
        let (single, own) = site(Precision::Single, memory);
        assert!(own.columns(identity, &[]).expect("digests") == known, "the same data");
        assert!(Data::of("a", identity, &*single) != Data::of("a", identity, &*double), "other answers");
        assert_eq!((single.rows(), single.digest()), (700, Answerer::digest(&expected)));
        assert_eq!(asked(&*single), asked(&expected));
        assert_ne!(asked(&*single), asked(&*double));
    }
    // A box without scaling that is far from zero.
    work.scaling = Scaling::None;
    work.columns.iter_mut().for_each(|column| (column.lower, column.upper) = (1e6, 1e6 + 1.0));
    let cast = self::cast(&work);
    let far = Rows::new(rows.as_slice().iter().map(|x| x + 1e6).collect(), 2).expect("rows");
    let failure = load_in(Precision::Single, &cast, &parts(&folder, "far", &far), 1 << 30).err().expect("a refusal");
    assert!(failure.message.contains("too coarse for the box of column 0"), "{failure}");
    assert!(failure.advice.contains("leave out precision"), "{failure}");
}

/// A pipe is gone once it was read.
#[cfg(unix)]
#[test]
fn rows_in_single_precision_are_not_read_from_a_pipe() {
    let (folder, cast) = (Folder::fresh(), cast(&fcm(unit_square(), 2, 0.0, 2, Seeding::Uniform { seed: 5 })));
    let pipe = PathBuf::from(folder.path("pipe"));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let failure = load_in(Precision::Single, &cast, &pipe, 1 << 30).err().expect("a refusal");
    assert!(failure.message.contains("it is a pipe, which can be read once") && failure.advice.contains("--data -"));
}

#[test]
fn rows_that_change_between_questions_are_an_error_and_no_answer() {
    let work = fcm(unit_square(), 2, 0.0, 2, Seeding::Uniform { seed: 5 });
    let (folder, cast) = (Folder::fresh(), cast(&work));
    let (name, rows) = &made_up(&[400], 1.0, 3)[0];
    let data = parts(&folder, name, rows);
    let (streamed, origin) = load(&cast, &data, 1).expect("rows");
    let form = cast.federation.form().expect("a form");
    let ask = || {
        let question = &questions(&work).expect("questions")[1];
        contribute(question, &*streamed, &Asking::everybody(form))
    };
    let first = ask().expect("words");
    let part = data.join("part-1.csv");
    let text = fs::read_to_string(&part).expect("a part");
    let mut lines: Vec<&str> = text.lines().collect();
    // Another order is no change.
    lines[1..].reverse();
    fs::write(&part, lines.join("\n")).expect("a part");
    assert_eq!(ask().expect("words"), first);
    let swapped = {
        let cells: Vec<Vec<&str>> = lines[1..3].iter().map(|line| line.split(',').collect()).collect();
        [format!("{},{}", cells[0][0], cells[1][1]), format!("{},{}", cells[1][0], cells[0][1])]
    };
    let other = [&[lines[0], &swapped[0], &swapped[1]], &lines[3..]].concat().join("\n");
    let longer = format!("{text}0.5,0.5\n");
    let outside = format!("{text}7.5,0.5\n");
    for changed in [other, longer, outside] {
        fs::write(&part, changed).expect("a part");
        let failure = ask().expect_err("other rows");
        assert!(failure.message.contains("the rows changed while the run was on"), "{failure}");
        assert!(failure.advice.contains("ledger changed") && !failure.message.contains("7.5"), "{failure}");
        assert!(origin.columns(&cast.identities[2], &[]).is_err());
    }
    fs::write(&part, &text).expect("a part");
    assert_eq!(ask().expect("words"), first);
    fs::remove_file(&part).expect("a part");
    assert!(ask().is_err());
}

#[test]
fn a_plan_about_all_rows_at_once_is_refused_with_the_memory_that_it_needs() {
    let mut work = fcm(unit_square(), 2, 0.0, 2, Seeding::Uniform { seed: 5 });
    let local = LocalSteps { most: 10, epsilon: 1e-4 };
    work.recipe.algorithm = Algorithm::FfcmAvg1 { m: 2.0, epsilon: 0.0, max_rounds: 2, local, powers: false };
    let (folder, cast) = (Folder::fresh(), cast(&work));
    let (name, rows) = &made_up(&[400], 1.0, 3)[0];
    let data = parts(&folder, name, rows);
    assert!(load(&cast, &data, 1 << 20).is_ok());
    let failure = load(&cast, &data, 1 << 10).err().expect("a refusal");
    assert!(failure.message.contains("about all rows at once (local_fuzzy)"), "{failure}");
    assert!(failure.advice.contains("memory = \"1 MiB\" under [rows] in site.toml"), "{failure}");
}

/// What a site says of its rows holds for every command, and rows that cannot be used are listed beside its key.
#[test]
fn a_site_says_once_where_its_rows_are_and_what_they_mean() {
    let p = Parties::new(&[40, 50, 60], &[]);
    let toy = fs::read_to_string(p.folder.path("toy.toml")).expect("a policy");
    fs::create_dir(p.folder.path("rows")).expect("a folder");
    let write = |wrong: &str| {
        for (i, part) in p.data[0].1.as_slice().chunks(30).enumerate() {
            let lines: String = part.chunks(2).map(|row| format!("{:?},{:?},a\n", row[0] * 1e3, row[1])).collect();
            p.folder.write(&format!("rows/part-{i}"), &format!("ex,y,ward\n{lines}1e9,7,b\n{wrong}"));
        }
    };
    let rows = "[rows]\nsource = \"rows\"\nfilter = \"ward = 'a'\"\ncolumns = { x = \"ex\" }\nunits = { x = { factor = 0.001 } }\n";
    p.folder.write("site.toml", &format!("{toy}{rows}"));
    let [roster, plan, key] = ["roster.toml", "plan.toml", "site-1.key"].map(|name| p.folder.path(name));
    let check = || veilsum(&["check", "--offline", "--roster", &roster, "--plan", &plan, "--key", &key]);
    write("");
    agree(&["--roster", &roster, "--plan", &plan, "--key", &key].map(str::to_owned));
    let told = check().expect(0);
    assert!(told.stdout.contains("x, y") && told.stdout.contains("ward"), "{}", told.text());
    write("0.5,,a\n99999,0.5,a\n");
    let told = check().expect(3);
    assert!(
        told.unfolded().contains("in all 6 rows cannot be used") && !told.text().contains("99999"),
        "{}",
        told.text()
    );
    let list = fs::read_to_string(p.folder.path("site-1.key.unusable-rows.csv")).expect("a list");
    assert_eq!(list.lines().filter(|line| line.contains("no value in")).count(), 3, "{list}");
    p.folder.write("site.toml", &format!("{toy}{rows}sorce = \"x\"\n"));
    let told = check().expect(3);
    assert!(told.text().contains("do you mean \"source\"?"), "{}", told.text());
    p.folder.write("site.toml", &toy);
    let told = check().expect(0);
    assert!(told.stdout.contains("SKIP  rows: give --data"), "{}", told.stdout);
}
