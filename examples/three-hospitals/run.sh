#!/usr/bin/env bash
# Three hospitals, a coordinator and an intermediary on this machine, from the invitations to a signed result and memberships, with noise in
# every total. Each party has a folder of its own; what one of them sends to another is read from its screen. Their patients are invented.
# Usage: examples/three-hospitals/run.sh [FOLDER for keys and results; default: a fresh temporary one]
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
if [ -z "${VEILSUM:-}" ]; then
  (cd "$here/../.." && cargo build --release --quiet -p veilsum)
  VEILSUM="$(cd "$here/../.." && cd "${CARGO_TARGET_DIR:-target}/release" && pwd)/veilsum"
fi
work="${1:-$(mktemp -d)}"
hub="127.0.0.1:${HUB_PORT:-24433}" counter="127.0.0.1:${COUNTER_PORT:-24434}"
mkdir -p "$work"/{hub,counter,hospital-a,hospital-b,hospital-c} && cd "$work" && work="$PWD"

pids=()
cleanup() { for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done; }
trap cleanup EXIT
until_says() { # FILE WORDS
  for _ in $(seq 600); do
    if grep -q "$2" "$1"; then return; fi
    sleep 0.5
  done
  echo "$1 never said: $2" >&2 && cat "$1" >&2 && exit 1
}

# The coordinator invites everybody. Its lines go to one party each.
(cd hub && "$VEILSUM" federation create three-hospitals --listen "$hub" --site hospital-a hospital-b hospital-c --intermediary counter) >"$work/invited"
line() { grep -A 1 "^$1 (" "$work/invited" | sed -n "s/.*join '\([^']*\)'.*/\1/p"; }
(cd hub && exec "$VEILSUM" run) >hub.log 2>&1 & pids+=($!)

# Hospital-c does not reach the coordinator yet: it answers on paper. The others join over the network, and read digits by telephone.
answer="$(cd hospital-c && "$VEILSUM" join "$(line hospital-c)" --offline | head -n 1)"
for party in counter hospital-a hospital-b; do
  own=(); if [ "$party" = counter ]; then own=(--address "$counter"); fi
  (cd "$party" && exec "$VEILSUM" join "$(line "$party")" --run "${own[@]}" \
    $([ "$party" = counter ] || echo --data "$here/$party/rows.csv")) >"$party.log" 2>&1 & pids+=($!)
done
approved=("hospital-c=$answer")
for party in counter hospital-a hospital-b; do
  until_says "$party.log" "waiting to be let in"
  approved+=("$party=$(grep -o '[0-9]\{4\}-[0-9]\{4\}-[0-9]\{4\}' "$party.log" | head -n 1)")
done
(cd hub && "$VEILSUM" federation approve "${approved[@]}")

# In one call the coordinator reads the roster's words, and everybody compares and types them.
words="$("$VEILSUM" verify hub/roster.toml --json | sed -n 's/.*"fingerprint": *"\([a-z ]*\)".*/\1/p' | head -n 1)"
cp hub/roster.toml hospital-c/
for party in counter hospital-a hospital-b hospital-c; do
  [ "$party" = hospital-c ] || until_says "$party.log" "ROS-8"
  (cd "$party" && "$VEILSUM" agree roster.toml --fingerprint "$words") >/dev/null
done
(cd hospital-c && exec "$VEILSUM" run --data "$here/hospital-c/rows.csv") >hospital-c.log 2>&1 & pids+=($!)

# The plan is made, proposed, and run.
(cd hub && "$VEILSUM" plan new --k 3 --seed 3 --rho 0.5 --expected-rows 720 --set min_total_rows=500 \
  --column age=0:110 --column systolic=70:220 --column bmi=12:60 --start)
until_says hub.log "run 1 has ended"

# Everybody has the same signed result. Each hospital assigns its own patients, at home.
cd hospital-a
for _ in $(seq 60); do if [ -e results/001-*/report.html ]; then break; fi; sleep 0.5; done
"$VEILSUM" verify results/001-*/result.json
"$VEILSUM" assign --model results/001-*/model.json --data "$here/hospital-a/rows.csv" --out memberships.csv
head -n 3 memberships.csv
echo "everything is in $work"
