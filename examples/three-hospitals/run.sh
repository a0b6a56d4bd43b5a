#!/usr/bin/env bash
# Three hospitals, a coordinator and an intermediary: five processes on this machine, from key to memberships, with noise in every total.
# Usage: examples/three-hospitals/run.sh [FOLDER for keys and results; default: a fresh temporary one]
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
cd "$here/../.."
cargo build --release --quiet -p veilsum
veilsum="${CARGO_TARGET_DIR:-target}/release/veilsum"
veilsum="$(cd "$(dirname "$veilsum")" && pwd)/veilsum"
work="${1:-$(mktemp -d)}"
mkdir -p "$work" && cd "$work"
hub_port="${HUB_PORT:-24433}" counter_port="${COUNTER_PORT:-24434}"

pids=()
cleanup() { for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done; }
trap cleanup EXIT

# Every party makes its own key where it lives; only the card leaves.
"$veilsum" keygen --name hub --address "127.0.0.1:$hub_port" >/dev/null
"$veilsum" keygen --name counter --address "127.0.0.1:$counter_port" >/dev/null
for h in a b c; do "$veilsum" keygen --name "hospital-$h" >/dev/null; done

"$veilsum" roster make --name three-hospitals --coordinator hub.card --intermediary counter.card \
  --site hospital-a.card --site hospital-b.card --site hospital-c.card --key hub.key --out roster.toml
"$veilsum" plan new --roster roster.toml --key hub.key --k 3 --seed 3 --rho 0.5 --expected-rows 720 \
  --set max_rows=1048576 --set min_total_rows=500 \
  --column age=0:110 --column systolic=70:220 --column bmi=12:60 --out plan.toml
"$veilsum" plan check --roster roster.toml --plan plan.toml

# Every site and the intermediary agree to the roster, once: with what another member reads out by telephone. Here one machine is
# all of them, and reads it out to itself.
fingerprint="$("$veilsum" verify roster.toml | sed -n 's/^fingerprint *\([0-9a-f-]*\).*/\1/p')"
for party in counter hospital-a hospital-b hospital-c; do
  "$veilsum" roster accept --key "$party.key" --fingerprint "$fingerprint" >/dev/null
done

docs=(--roster roster.toml --plan plan.toml)
"$veilsum" run "${docs[@]}" --key hub.key --listen "127.0.0.1:$hub_port" --out result & server=$!; pids+=("$server")
"$veilsum" run "${docs[@]}" --key counter.key --listen "127.0.0.1:$counter_port" & pids+=($!)
for h in a b c; do
  "$veilsum" run "${docs[@]}" --key "hospital-$h.key" --data "$here/hospital-$h/rows.csv" \
    --out "result-$h" & pids+=($!)
done
for p in "${pids[@]}"; do wait "$p"; done
pids=()

# Each hospital assigns its own patients, at home.
"$veilsum" assign --model result-a/model.json --data "$here/hospital-a/rows.csv" --out memberships-a.csv
head -3 memberships-a.csv
echo "everything is in $work"
