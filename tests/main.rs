//! The product as its users meet it: one file for each behaviour, one program for all of them. `cargo test --test product led_5`
//! runs what tests a rule, and `cargo test --test product losses` a file.

mod application_rules;
mod assigned;
mod backups;
mod blame;
mod check;
mod cli;
mod columns;
mod damaged_state;
mod demo_cli;
mod describe;
mod examples;
mod federation;
mod help;
mod hostile_bytes;
mod hostile_plans;
mod joining;
mod kills;
mod ledger;
mod letters;
mod loss_processes;
mod losses;
mod metamorphic;
mod methods;
mod mixed;
#[cfg(target_os = "linux")]
mod networks;
mod noise;
mod noise_runs;
mod noisy_methods;
mod one_run;
mod packaging;
mod printed;
mod privacy_report;
mod processes;
mod question_vectors;
mod read_account;
mod readme;
mod report;
mod said;
mod scale;
mod schemas;
mod second_implementation;
mod service;
mod signed_results;
// The other program reads more of it.
#[allow(dead_code)]
mod source;
#[cfg(unix)]
mod state_files;
mod status;
mod storage;
mod swapped_roster;
mod taken_up;
mod views;
mod watch;
mod year;
mod yes;
