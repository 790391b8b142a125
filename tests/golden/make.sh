#!/bin/sh
# Writes the golden traces, their expected reports and the fuzzer's seeds anew, from a build folder:
#   tests/golden/make.sh build
# The traces come from tests/unit/flopreduce/make_traces.cpp, with the same bytes every time. Read
# the difference in the reports before committing them: they are checked by eye once, and by ctest
# ever after.
set -eu
build=$(realpath "${1:?use: make.sh BUILD_FOLDER}")
cd "$(dirname "$0")"
for name in training simulated other_rank killed damaged covered_in_part; do
  "$build/test-bin/make_traces" "$name" > "$name.pb"
  cp "$name.pb" ../fuzz/corpus/fuzz_flopreduce/
done
# Two inputs in one file are what is joined: the fuzzer cuts it in the middle.
cat training.pb other_rank.pb > ../fuzz/corpus/fuzz_summary/two_ranks.pb
cp killed.pb ../fuzz/corpus/fuzz_summary/
python3 golden_test.py "$build/bin/flopreduce" "$build/test-bin/make_traces" --write
