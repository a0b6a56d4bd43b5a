//! What a package brings beside the program: configurations that the program takes, units that shut a party in.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use serde_json::json;
use veilsum_testkit::program::{Folder, start_in, veilsum};

use crate::said::{Told, says};

fn packaging(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("packaging").join(file)
}

#[test]
fn the_example_configurations_are_taken() {
    let shown = |name: &str| {
        let file = packaging(&format!("examples/{name}/site.toml"));
        // Its rows are not there.
        let told = veilsum(&["check", "--json", "--policy", &file.display().to_string()]).expect(3);
        told.json()["policy"]["keys"].clone()
    };
    // The basic one keeps every default.
    assert_eq!(shown("basic").get("rho"), None);
    let advanced = shown("advanced");
    assert_eq!(
        ["rho", "exact", "min_cohort", "sites", "data"].map(|key| advanced[key].clone()),
        [json!(0.5), json!("never"), json!(5), json!("same"), json!("admissions")]
    );
    // An example shows every key that there is.
    let written = fs::read_to_string(packaging("examples/advanced/site.toml")).expect("an example");
    for key in shown("basic").as_object().expect("keys").keys() {
        assert!(written.contains(key), "{key} is in no example");
    }
}

/// The advanced example's rows as its columns, words and units say.
#[test]
fn the_example_of_columns_reads_the_example_of_rows() {
    let folder = Folder::fresh();
    let written = fs::read_to_string(packaging("examples/advanced/site.toml")).expect("an example");
    folder.write("site.toml", &written.replace("/srv/lake/admissions/*.parquet", "rows.csv"));
    folder.write("columns.toml", &fs::read_to_string(packaging("examples/advanced/columns.toml")).expect("an example"));
    let text = "age,pounds,sex,ward,outcome\n34,154,w,a,0\n51,180,m,b,0\n17,140,w,a,1\n44,166,m,c,0\n";
    folder.write("rows.csv", text);
    start_in(&folder.0, &["check", "--policy", "site.toml"]).wait(Duration::from_secs(60)).expect(0).says(&["sex"]);
}

#[test]
fn units_and_container_shut_a_party_in() {
    let unit = fs::read_to_string(packaging("systemd/veilsum.service")).expect("a unit");
    says(&unit, &["\nDynamicUser=yes\n", "\nNoNewPrivileges=yes\n", "\nProtectSystem=strict\n", "\nLimitCORE=0\n"]);
    says(&unit, &["\nCapabilityBoundingSet=\n", "\nPrivateDevices=yes\n", "\nSystemCallFilter=@system-service\n"]);
    says(&unit, &["\nRestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX\n", "\nRestart=on-failure\n"]);
    let command = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/veilsum ")).expect("a command");
    veilsum(&command.split(' ').chain(["--help"]).collect::<Vec<_>>()).expect(0);
    let container = fs::read_to_string(packaging("Containerfile")).expect("a container file");
    let last = |word: &str| container.lines().filter_map(|line| line.strip_prefix(word)).next_back().map(str::trim);
    assert_eq!((last("FROM"), last("USER")), (Some("scratch"), Some("65532:65532")));
}

#[cfg(target_os = "linux")]
/// Nothing is built before it is known that the package will have a signature and a list of what it was built from.
#[test]
fn no_package_is_made_without_a_signature_and_a_list_of_its_crates() {
    let folder = Folder::fresh();
    let (key, tools) = (folder.write("key", "the script looks no further"), folder.path("tools"));
    fs::create_dir(&tools).expect("a folder");
    std::os::unix::fs::symlink("/usr/bin/dirname", format!("{tools}/dirname")).expect("a link");
    let release = |key: &str| {
        let mut command = Command::new("/bin/bash");
        // No tool of Cargo's is there.
        command.arg(packaging("release")).arg(folder.path("out")).env("PATH", &tools);
        let told = command.env("VEILSUM_SIGNING_KEY", key).output().expect("bash");
        assert_eq!(told.status.code(), Some(2), "{told:?}");
        String::from_utf8(told.stderr).expect("text")
    };
    assert!(release("").contains("VEILSUM_SIGNING_KEY"));
    assert!(release(&key).contains("cargo-cyclonedx"));
    assert!(!folder.0.join("out").exists());
}
