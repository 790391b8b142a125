// Work shared out among several operators: nothing of it is lost.
#include "catch.h"
#include "report/operators/operator_join.h"

using namespace flopinj::reduce;

TEST_CASE("parts of some work have their shares of every sum, and together they are the whole") {
  Work whole;
  whole.launches = 40;
  whole.unmeasured = 4;
  whole.varying = whole.rounded = 8;
  whole.agreeing = 12;
  whole.fewest_windows = 3;
  whole.unscreened = 16;
  whole.flop = 400;
  whole.matrix_flop = 200;
  whole.doubtful = 20;
  whole.left_out = 24;
  whole.time = {80, 28, 32, 36};
  whole.roof.compute_ns = 60;
  whole.roof.dram_bytes = 44;
  whole.roof.no_bandwidth = 48;
  const Work quarter = Part{1, 2, 4}.of(whole);
  CHECK(quarter.launches == 10);
  CHECK(quarter.unmeasured == 1);
  CHECK(quarter.varying == 2);
  CHECK(quarter.rounded == 2);
  CHECK(quarter.agreeing == 3);
  CHECK(quarter.fewest_windows == 3);
  CHECK(quarter.unscreened == 4);
  CHECK(quarter.flop == 100);
  CHECK(quarter.matrix_flop == 50);
  CHECK(quarter.doubtful == 5);
  CHECK(quarter.left_out == 6);
  CHECK(GpuTime::sums(quarter.time) == std::tuple<u128, uint64_t, uint64_t, uint64_t>(20, 7, 8, 9));
  CHECK(quarter.roof.compute_ns == 15);
  CHECK(quarter.roof.dram_bytes == 11);
  CHECK(quarter.roof.no_bandwidth == 12);

  // Thirds of 40 are rounded, and add up to 40 again.
  Work sum;
  for (uint64_t i = 0; i < 3; ++i) sum.add(Part{i, i + 1, 3}.of(whole));
  CHECK(Work::sums(sum) == Work::sums(whole));
}
