# The project's own commands by short names. `just` lists them; nothing here does what a script or Cargo does not.

# Run a whole federation on this machine
demo *options:
    cargo run --release -- demo {{options}}

# Run all tests, as CI does
test:
    cargo test --workspace --locked

# Check format and lints
lint:
    cargo fmt --all --check && cargo clippy --workspace --all-targets --locked -- -D warnings

# Run everything that CI runs
ci:
    .ci/run

# Measure a masked round against an unmasked one, and rounds over networks
bench:
    cargo bench --bench masked_ratio --bench networks

# Build the program as it is shipped: without a path of this machine, and within its limit of bytes
release *folder:
    .ci/release {{folder}}

# Make the package that is handed out, and run the demonstration from it
package folder:
    packaging/release {{folder}}

# Fuzz one target for some seconds
fuzz target seconds="600":
    fuzz/run {{target}} {{seconds}}

# Write the test vectors with the reference implementation and compare them
vectors:
    protocol/reference/check.sh

# Build the book
book:
    .ci/book

# Run all attacks
audit *options:
    cargo run --release -p veilsum-audit -- all {{options}}
