//! A year of a federation without its makers: what happens to every service in one, end to end, and what everybody has to type for it.

use serde_json::Value;

use crate::said::Told;
use crate::{
    backups::copy_of,
    joining::{LIMIT, Organisation, between, digits, many_rows},
    service::{Member, PLAN, Standing},
};

const ROWS: i32 = 2000;

/// What everybody typed, by the month.
#[derive(Default)]
struct Typed(Vec<Vec<(String, usize)>>);

impl Typed {
    fn month(&mut self, all: &Standing) {
        let hub = ("coordinator".to_owned(), all.founded.hub.typed.len());
        let others = all.members.iter().map(|member| (member.name.clone(), member.house.typed.len()));
        self.0.push(std::iter::once(hub).chain(others).collect());
    }

    /// Commands of this party in this month; 0 stands for everything before the first one.
    fn of(&self, party: &str, month: usize) -> usize {
        let until = |month: usize| self.0[month].iter().find(|(name, _)| name == party).map_or(0, |(_, typed)| *typed);
        until(month) - if month == 0 { 0 } else { until(month - 1) }
    }
}

impl Standing {
    fn member(&mut self, name: &str) -> &mut Member {
        self.members.iter_mut().find(|member| member.name == name).expect("a member")
    }

    /// Ten rows more at one of the sites, of which nobody says a word.
    fn ten_rows_more(&mut self, month: usize) {
        let file = self.folder("hospital-a").join("rows.csv");
        let rows = std::fs::read_to_string(&file).expect("rows");
        let more = many_rows(month, 10);
        std::fs::write(&file, rows + more.split_once('\n').expect("a header").1).expect("more rows");
    }

    /// Every site agrees to the plan at hand, which waits for that; its digits come from the coordinator.
    fn agree_to_the_plan(&mut self) {
        let shown = self.hub(&["plan", "check", "--json"]).expect(0).json();
        self.founded.hub.typed.pop();
        let words = shown["fingerprint"].as_str().expect("a fingerprint").to_owned();
        let sites = |member: &&mut Member| member.address.is_none() && member.process.is_some();
        for member in self.members.iter_mut().filter(sites) {
            // It may look at the plan of the run before still.
            let waits = |log: &str| log.rfind("waits for your agreement") > log.rfind("This plan has been run");
            member.running().until("the plan", LIMIT, waits);
            member.house.run(&["agree", "plan.toml", "--fingerprint", &words]).expect(0);
        }
    }

    /// Everybody is told of a changed roster and accepts it, with the digits that another member reads to them.
    fn accepted(&mut self, what: &str) {
        let heard = self.fingerprint();
        for member in &mut self.members {
            member.running().until(what, LIMIT, |log| log.contains(what));
            member.agrees(&heard);
        }
    }

    /// The line of an invitation.
    fn invited(&mut self, name: &str) -> String {
        between(&self.hub(&["federation", "invite", name]).expect(0).stdout, "veilsum join '", "'").to_owned()
    }

    /// Another site is let in; it has the plan of the month with the roster.
    fn a_site_joins(&mut self, month_plan: &[&str]) {
        let line = self.invited("hospital-d");
        let house = Organisation::new();
        house.folder.write("rows.csv", &many_rows(403, ROWS));
        self.members.push(Member { name: "hospital-d".into(), house, address: None, process: None });
        let joining = self.join(4, &line);
        let heard = format!("hospital-d={}", digits(&joining));
        self.hub(&["federation", "approve", &heard]).expect(0);
        self.hub(month_plan).expect(0);
        joining.wait(LIMIT).expect(0);
        let heard = self.fingerprint();
        self.member("hospital-d").agrees(&heard);
        self.member("hospital-d").start(&[]);
        let new = self.members.pop().expect("the new one");
        self.accepted("hospital-d (site) is new");
        self.members.push(new);
    }

    /// A site's key is lost: it is invited anew, joins from the same folder, and its account goes on ([LED-9]).
    fn a_key_is_lost(&mut self, name: &str) {
        self.dies(name);
        self.hub(&["federation", "remove", name]).expect(0);
        let line = self.invited(name);
        let at = self.members.iter().position(|member| member.name == name).expect("a member");
        let folder = self.folder(name);
        std::fs::remove_file(folder.join(format!("{name}.key"))).expect("its key");
        // Without its state folder it is asked first.
        let (state, away) = (folder.join(format!("{name}.key.state")), folder.join("away"));
        std::fs::rename(&state, &away).expect("its state");
        self.join(at, &line).wait(LIMIT).expect(3).says(&["took part before", "--new-account"]);
        self.members[at].house.typed.pop();
        std::fs::rename(&away, &state).expect("its state again");
        let joining = self.join(at, &line);
        joining.until("its account", LIMIT, |log| log.contains("goes on under a new key"));
        let heard = format!("{name}={}", digits(&joining));
        self.hub(&["federation", "approve", &heard]).expect(0);
        joining.until("the roster", LIMIT, |log| log.contains("let in; the roster"));
        joining.kill();
        let heard = self.fingerprint();
        self.members[at].agrees(&heard);
        self.members[at].start(&[]);
        let again = self.members.remove(at);
        self.accepted(&format!("{name} (site) has another key"));
        self.members.insert(at, again);
    }

    /// A site is a member no more.
    fn a_site_leaves(&mut self, name: &str) {
        let gone = self.members.iter().position(|member| member.name == name).expect("a member");
        self.hub(&["federation", "remove", name]).expect(0);
        let mut gone = self.members.remove(gone);
        gone.process.take().expect("it runs").wait(LIMIT).expect(8).says(&["belongs to no member"]);
        self.accepted(&format!("{name} (site) is gone"));
    }

    /// Everybody stops, and is started again on the same folders, as after another release was installed.
    fn everybody_is_upgraded(&mut self) {
        let members = self.members.iter().map(|member| member.name.clone());
        let names: Vec<String> = ["coordinator".to_owned()].into_iter().chain(members).collect();
        names.iter().rev().for_each(|name| drop(self.stops(name)));
        names.iter().for_each(|name| self.again(name));
    }
}

/// A year: a plan a month, each over ten rows more at one site. A key is lost, the coordinator and a site come back from a backup
/// of a week ago, one site joins, one is away for two plans, one leaves, all are upgraded; nobody else is disturbed, and what everybody types is counted
/// ([PRO-1] to [PRO-4], [ROS-9], [LED-9], [LED-11], [POL-10]).
#[test]
fn a_year_of_monthly_plans() {
    let mut all = Standing::new(ROWS);
    let mut typed = Typed::default();
    typed.month(&all);
    for month in 1..=12 {
        // A plan is for one run: another month's has another seed.
        let seed = format!("--seed={month}");
        let own = ["--set=max_rounds=6", "--set=init=uniform", "--set=dp_useless=true", &seed];
        // While one is away, totals are over whoever is left: that is another question, and everybody agrees to it.
        let away = [8, 9].contains(&month);
        let any: &[&str] = if away { &["--set=sites=any"] } else { &[] };
        let month_plan = [&PLAN[..], &own, any, &["--set=min_total_rows=5000"]].concat();
        let mut propose = vec!["plan", "propose", "--start"];
        // A week before.
        let backup = ["coordinator", "hospital-b"].map(|name| copy_of(&all.folder(name)));
        if month > 1 {
            all.ten_rows_more(month);
        }
        if month == 2 {
            all.hub(&["plan", "propose", "--start"]).expect(3).says(&["was run already, as run 1"]);
            all.founded.hub.typed.pop();
        }
        match month {
            2 => all.a_key_is_lost("hospital-a"),
            4 => all.a_site_joins(&month_plan),
            5 => {
                all.comes_back("coordinator", &backup[0]);
                for name in ["hospital-a", "hospital-d", "counter"] {
                    all.until(&format!("{name} stands by"));
                }
            }
            6 => all.comes_back("hospital-b", &backup[1]),
            8 => all.dies("hospital-d"),
            10 => {
                all.again("hospital-d");
                all.until("hospital-d stands by");
            }
            11 => all.a_site_leaves("hospital-c"),
            12 => all.everybody_is_upgraded(),
            _ => {}
        }
        if away {
            propose.extend(["--without", "hospital-d"]);
        }
        if month != 4 {
            all.hub(&month_plan).expect(0);
        }
        if away {
            all.agree_to_the_plan();
        }
        let told = all.hub(&propose);
        assert_eq!(told.code, Some(0), "month {month}: {told:?}\n{}", all.serves().heard());
        all.until(&format!("run {month} has ended"));
        let there = |m: &&Member| m.address.is_none() && m.process.is_some();
        let sites: Vec<String> = all.members.iter().filter(there).map(|m| m.name.clone()).collect();
        let sites: Vec<&str> = sites.iter().map(String::as_str).collect();
        let result = all.agrees(month, &sites);
        assert_eq!(result["ended_early"], Value::Null, "month {month}: {result}");
        typed.month(&all);
    }
    // In a month in which nothing changes: two commands at the coordinator, none at the others.
    // A dot is a month in which it is not fixed. hospital-d joins, agrees to the roster and stands by in the fourth.
    for (party, commands) in [
        ("coordinator", ". 5 2 4 3 2 2 2 . . 3 3"),
        ("counter", ". 1 0 1 0 . 0 0 . . . 1"),
        ("hospital-a", ". 3 0 1 0 0 0 1 1 0 1 1"),
        ("hospital-b", ". 1 0 1 0 . 0 1 1 0 1 1"),
        ("hospital-d", ". . . 3 . . . . 0 1 . ."),
    ] {
        for (month, known) in (1..).zip(commands.split(' ')).filter(|(_, known)| *known != ".") {
            assert_eq!(typed.of(party, month).to_string(), known, "month {month}: {party}");
        }
    }
    // One ledger, from the first answer to the last, whatever key signed.
    for (name, months) in [("hospital-a", 12), ("hospital-b", 12), ("hospital-d", 7)] {
        let house = &mut all.member(name).house;
        let key = format!("{name}.key");
        let shown = house.run(&["ledger", "show", "--key", &key]).expect(0).stdout;
        assert!(shown.lines().count() > months * 6, "{name}: {}", shown.lines().count());
    }
}
