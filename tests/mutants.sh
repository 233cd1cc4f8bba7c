#!/usr/bin/env bash
# Tests the tests: builds the crate with each planted bug and expects its tests to fail. About a minute.
set -u
cd "$(dirname "$0")/.."
missed=0
try() {
  if CARGO_TARGET_DIR=target/mutants RUSTFLAGS="--cfg fusee_mutant=\"$1\"" timeout 300 cargo test --lib "$2" >/dev/null 2>&1; then
    echo "MISSED  $1"
    missed=$((missed + 1))
  else
    echo "caught  $1 ($2)"
  fi
}
for bug in flush_skipped watermark_frozen tail_not_copied tail_not_cut failed_flush_retried; do try "$bug" log::; done
for bug in release_before_durable gate_ignored outbox_entry_dropped timer_not_rearmed second_result_accepted; do try "$bug" sim::; done
echo "$missed missed"
exit $((missed > 0))
