//! What is remembered of rosters, and what is said of another one.

use super::*;
use crate::documents::tests::{Folder, kit};

fn data(name: &str, rows: u8) -> Data {
    Data { name: name.into(), rows: Hash([rows; 32]) }
}

fn remember(key: &Path, id: &Identity, rosters: &[Roster], uses: &[(&Roster, Data)]) {
    Federations::change(key, id, |known| {
        known.agreed.extend_from_slice(rosters);
        uses.iter().for_each(|(roster, data)| known.use_with(roster, data));
        Ok(())
    })
    .unwrap();
}

/// [ROS-8].
#[test]
fn what_was_agreed_to_is_kept_whole_for_its_owner_alone() {
    let folder = Folder::new("federations");
    let (roster, ids) = kit(3);
    let (key, id) = (folder.at("a.key"), &ids[2]);
    let none = Federations::load(&key, id).unwrap();
    assert!(none.agreed.is_empty() && none.judge(&roster, &[]).unwrap() == Standing::New);
    let mut other = kit(4).0;
    other.name = "second".into();
    other.intermediary.address = "with \"quotes\"\u{7}".into();
    remember(&key, id, &[roster.clone(), other.clone()], &[(&roster, data("é \"x\"", 1)), (&other, data("b", 2))]);
    let known = Federations::load(&key, id).unwrap();
    assert_eq!(known.agreed, [roster.clone(), other.clone()]);
    assert!([&roster, &other].iter().all(|r| known.judge(r, &[]).unwrap() == Standing::Agreed));
    assert!(known.elsewhere("test", &data("é \"x\"", 9)).is_none());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(Federations::beside(&key)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
    }
    // A change that fails, or changes nothing, leaves the file as it is.
    let before = fs::read(Federations::beside(&key)).unwrap();
    let failed = Federations::change(&key, id, |known| {
        known.agreed.clear();
        Err(Failure::input("no", "no"))
    });
    assert!(failed.is_err());
    Federations::change(&key, id, |_| Ok(())).unwrap();
    assert_eq!(fs::read(Federations::beside(&key)).unwrap(), before);
}

/// [ROS-8]: every changed character of what is meant, every lost record, and another key's file.
#[test]
fn a_damaged_file_is_refused_and_left_as_it_is() {
    let folder = Folder::new("damaged-federations");
    let (roster, ids) = kit(3);
    let (key, id) = (folder.at("a.key"), &ids[2]);
    let mut later = roster.clone();
    later.sites.swap(0, 1);
    remember(&key, id, &[roster.clone(), later], &[(&roster, data("rows", 7))]);
    let path = Federations::beside(&key);
    let good = fs::read_to_string(&path).unwrap();
    let refused = |bad: &str| {
        fs::write(&path, bad).unwrap();
        let failure = Federations::load(&key, id).err().unwrap_or_else(|| panic!("accepted:\n{bad}"));
        assert!(failure.message.contains("a.key.federations") && failure.advice.contains("put it back"), "{failure}");
        let touched = Federations::change(&key, id, |known| {
            known.agreed.clear();
            Ok(())
        });
        assert!(touched.is_err() && fs::read_to_string(&path).unwrap() == bad, "a damaged file was written over");
    };
    let begin = good.find("[[agreed]]").unwrap();
    for (at, digit) in good.char_indices().skip(begin).filter(|(_, c)| c.is_ascii_digit()) {
        let other = if digit == '1' { "2" } else { "1" };
        refused(&format!("{}{other}{}", &good[..at], &good[at + 1..]));
    }
    let (second, used) = (good.rfind("[[agreed]]").unwrap(), good.find("[[data]]").unwrap());
    refused(&good[..used]);
    refused(&format!("{}{}", &good[..second], &good[used..]));
    refused(&format!("{}{}", &good[..begin], &good[second..]));
    refused("");
    refused(&good.replace("veilsum-federations/1", "veilsum-federations/2"));
    fs::write(&path, &good).unwrap();
    let stranger = Federations::load(&key, &ids[3]).err().unwrap();
    assert!(stranger.message.contains("another key signed it"), "{stranger}");
    // A comment means nothing.
    fs::write(&path, format!("# accepted on the phone with Ann\n{good}")).unwrap();
    assert_eq!(Federations::load(&key, id).unwrap().agreed.len(), 2);
}

/// [ROS-9].
#[test]
fn another_roster_of_a_known_name_is_another_roster() {
    let folder = Folder::new("another-roster");
    let (roster, ids) = kit(3);
    let (key, id) = (folder.at("a.key"), &ids[2]);
    let mut later = roster.clone();
    later.coordinator.address = "127.0.0.1:7799".into();
    remember(&key, id, std::slice::from_ref(&roster), &[]);
    let known = Federations::load(&key, id).unwrap();
    assert_eq!(known.judge(&later, &[]).unwrap(), Standing::Changed { from: Box::new(roster.clone()) });
    remember(&key, id, std::slice::from_ref(&later), &[]);
    // The old one stays listed, and is no longer the one in force.
    let known = Federations::load(&key, id).unwrap();
    assert_eq!((known.agreed.len(), known.judge(&later, &[]).unwrap()), (2, Standing::Agreed));
    assert_eq!(known.judge(&roster, &[]).unwrap(), Standing::Changed { from: Box::new(later) });
}

/// [ROS-9]: every kind of change by name, and nothing where nothing changed.
#[test]
fn a_change_says_who_and_what() {
    let (old, _) = kit(4);
    let stranger = Identity::from_seed(&[99; 32]).public();
    let told = |change: &dyn Fn(&mut Roster)| {
        let mut new = old.clone();
        change(&mut new);
        Changes::between(&old, &new).to_string()
    };
    assert_eq!(told(&|_| {}), "");
    let (was, is) = (fingerprint(&old.sites[1].key.0), fingerprint(&stranger.0));
    assert_eq!(told(&|r| r.sites[1].key = stranger), format!("site-2 (site) has another key: {is}, which was {was}"));
    assert_eq!(told(&|r| drop(r.sites.remove(0))), "site-1 (site) is gone");
    let new = |r: &mut Roster| r.sites.push(Member { name: "x".into(), key: stranger, address: String::new() });
    assert_eq!(told(&new), format!("x (site) is new, with the key {is}"));
    assert_eq!(told(&|r| r.sites[0].name = "y".into()), "site-1 (site) is called y now");
    assert_eq!(told(&|r| r.sites.swap(0, 3)), "the sites stand in another order");
    let address = told(&|r| r.coordinator.address = "evil\u{1b}[2J:1".into());
    assert!(address.contains("hub has another address") && !address.contains('\u{1b}'), "{address}");
    let roles = told(&|r| std::mem::swap(&mut r.coordinator, &mut r.intermediary));
    assert_eq!(roles, "hub was coordinator and is intermediary; counter was intermediary and is coordinator");
    // Two that changed keys: neither is called something else.
    let swapped = told(&|r| {
        let first = r.sites[0].key;
        r.sites[0].key = r.sites[1].key;
        r.sites[1].key = first;
    });
    assert!(swapped.contains("site-1 (site) has another key") && swapped.contains("site-2 (site) has another key"));
    let many = kit(60).0;
    let text = Changes::between(&kit(3).0, &many).to_string();
    assert!(text.ends_with("and 45 more") && text.contains("site-4 (site) is new"), "{text}");
}

/// Two processes with one key agree to something at the same moment, and both are remembered.
#[test]
fn nothing_is_lost_between_two_writers() {
    let folder = Folder::new("writers-of-federations");
    let (roster, ids) = kit(3);
    let (key, id) = (folder.at("a.key"), &ids[2]);
    std::thread::scope(|scope| {
        for i in 0..8 {
            let roster = Roster { name: format!("federation-{i}"), ..roster.clone() };
            let key = &key;
            scope.spawn(move || remember(key, id, &[roster], &[]));
        }
    });
    assert_eq!(Federations::load(&key, id).unwrap().agreed.len(), 8);
}

/// [ROS-10].
#[test]
fn a_data_set_goes_to_the_federation_that_it_went_to() {
    let folder = Folder::new("data-of-federations");
    let (first, ids) = kit(3);
    let second = Roster { name: "second".into(), ..first.clone() };
    let (key, id) = (folder.at("a.key"), &ids[2]);
    remember(&key, id, &[first.clone(), second.clone()], &[(&first, data("rows", 1))]);
    let known = Federations::load(&key, id).unwrap();
    // By name or by rows, as the ledger counts.
    for same in [data("rows", 1), data("rows", 2), data("renamed", 1)] {
        assert!(known.elsewhere("test", &same).is_none());
        assert!(known.elsewhere("second", &same).is_some_and(|used| used.federation == "test"));
    }
    assert!(known.elsewhere("second", &data("others", 3)).is_none());
    // The first one's rows under a name that the second one knows.
    let mut both = known.clone();
    both.use_with(&second, &data("others", 3));
    assert!(both.elsewhere("second", &data("others", 4)).is_none());
    assert!(both.elsewhere("second", &data("others", 1)).is_some_and(|used| used.federation == "test"));
    remember(&key, id, &[], &[(&second, data("rows", 1)), (&second, data("rows", 1))]);
    let known = Federations::load(&key, id).unwrap();
    assert_eq!(known.used.len(), 2, "once a roster");
    assert!(["test", "second"].iter().all(|name| known.elsewhere(name, &data("rows", 5)).is_none()));
}
