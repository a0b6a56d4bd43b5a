use veilsum_answerer::{Fault, Held, RefusalCode};

/// What `hello` meets, whole.
fn refused(args: &[&str]) -> Option<Fault> {
    let server = super::server()?;
    let (launch, _) = super::launch(&server, args);
    Some(Held::start(launch, super::hello()).err().expect("a refusal"))
}

fn says(fault: Option<Fault>, code: RefusalCode, words: &[&str]) {
    let Some(fault) = fault else { return };
    let Fault::Refused(_, refusal) = &fault else { panic!("{fault}") };
    assert_eq!(refusal.code, code, "{fault}");
    assert!(words.iter().all(|word| refusal.message.contains(word)) && !refusal.next.is_empty(), "{refusal:?}");
}

#[test]
fn a_view_without_a_column_or_with_another_type_is_named() {
    let query =
        "SELECT 1 AS \"AGE\", 'x'::text AS bmi, smoker, 'a'::bytea AS \"Blood \"\"sugar\"\"\" FROM veilsum_example";
    for mode in ["stream", "push"] {
        says(
            refused(&["--query", query, "--mode", mode]),
            RefusalCode::Columns,
            &["no column \"age\" (there is \"AGE\")", "\"bmi\" is of the type text", "the type bytea"],
        );
    }
    says(refused(&["--view", "no_such_view"]), RefusalCode::Columns, &["no_such_view"]);
}

#[test]
fn rows_that_cannot_be_used_are_counted_by_reason() {
    let query = "SELECT CASE WHEN bmi < 20 THEN NULL ELSE age END AS age, \
                 CASE WHEN bmi > 34 THEN 'NaN' WHEN bmi > 33 THEN 'Infinity' WHEN bmi > 32 THEN 61 ELSE bmi::float8 END AS bmi, \
                 CASE WHEN age = 50 THEN 'sometimes' WHEN age = 51 THEN NULL ELSE smoker END AS smoker, \
                 \"Blood \"\"sugar\"\"\" FROM veilsum_example";
    for mode in ["stream", "push"] {
        let Some(fault) = refused(&["--query", query, "--mode", mode]) else { return };
        let Fault::BadRows(_, reasons) = &fault else { panic!("{fault}") };
        for reason in [
            "no value in \"age\" (",
            "not a finite number in \"bmi\" (",
            "a value outside the plan's public box in \"bmi\" (",
            "a category that the plan does not list in \"smoker\" (",
            "no value in \"smoker\" (",
        ] {
            assert!(reasons.contains(reason), "{reasons}");
        }
    }
}

#[test]
fn servers_that_cannot_be_reached_or_do_not_let_in_are_named_without_the_password() {
    let Some(server) = super::server() else { return };
    server.sql("DO $$ BEGIN CREATE ROLE with_password LOGIN PASSWORD 'right one'; EXCEPTION WHEN duplicate_object THEN NULL; END $$");
    let folder = std::env::temp_dir().join(format!("veilsum-sql-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let config = |name: &str, port: u16, password: &str| {
        let secret = folder.join(format!("{name}.password"));
        std::fs::write(&secret, password).unwrap();
        std::process::Command::new("chmod").arg("600").arg(&secret).status().unwrap();
        let path = folder.join(format!("{name}.toml"));
        let text = format!(
            "host = \"127.0.0.1\"\nport = {port}\ndbname = \"postgres\"\nuser = \"with_password\"\npassword_file = {:?}\n",
            secret.to_str().unwrap()
        );
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let begun = |path: String| {
        let (launch, said) = super::bare(&["--config".into(), path, "--view".into(), "veilsum_example".into()]);
        (Held::start(launch, super::hello()), said)
    };
    let (wrong, said) = begun(config("wrong", server.port, "hunter2"));
    let fault = wrong.err().unwrap();
    assert!(!format!("{fault} {} {said:?}", fault.advice()).contains("hunter2"), "{fault}");
    says(Some(fault), RefusalCode::Connection, &["password authentication failed", "with_password"]);
    // The right password is let in, and the role may not read the table until it is granted.
    let (right, _) = begun(config("right", server.port, "right one"));
    says(right.err(), RefusalCode::Rows, &["permission denied"]);
    server.sql("GRANT SELECT ON veilsum_example TO with_password");
    let (right, _) = begun(config("right", server.port, "right one"));
    assert_eq!(right.unwrap().ready().rows, super::ROWS as u64);
    let (nobody, _) = begun(config("nobody", 1, "x"));
    says(nobody.err(), RefusalCode::Connection, &["127.0.0.1, port 1"]);
    // A URL with a password does not even begin, and is not shown.
    let args = ["--url", "postgresql://me:hunter2@127.0.0.1/x", "--view", "v"].map(str::to_owned);
    let (launch, said) = super::bare(&args);
    let fault = Held::start(launch, super::hello()).err().unwrap();
    assert!(
        !format!("{fault} {said:?}").contains("hunter2") && format!("{fault}").contains("holds a password"),
        "{fault}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}
