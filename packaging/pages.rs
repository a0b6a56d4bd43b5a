//! Manual pages and completions from the program's own definition of its commands:
//! `cargo run --example packaging_pages -- FOLDER`. It is no command of the program, which then need not carry what only a package
//! needs.

use std::{fs, io, path::PathBuf};

use clap_complete::Shell;

fn main() -> io::Result<()> {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "say which folder to write to"));
    };
    let (man, shells) = (folder.join("man/man1"), folder.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&shells)?;
    clap_mangen::generate_to(veilsum_cli::commands(), &man)?;
    for shell in [Shell::Bash, Shell::Elvish, Shell::Fish, Shell::PowerShell, Shell::Zsh] {
        clap_complete::generate_to(shell, &mut veilsum_cli::commands(), "veilsum", &shells)?;
    }
    Ok(())
}
