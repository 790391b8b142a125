#include <collector/graph_window.h>

#include <array>
#include <cmath>

#include "catch.h"

using namespace flopinj;

namespace {

constexpr GraphKernel kA{SignatureId{1}, PathId{7}}, kB{SignatureId{2}, PathId{8}},
    kAElsewhere{SignatureId{1}, PathId{9}};
// Multiply-adds, bytes of memory, time.
constexpr std::array kMetrics{GraphMetric{true, true}, GraphMetric{false, true}, GraphMetric{}};

GraphRanges read(std::span<const GraphKernel> kernels, bool ordered,
                 std::span<const double> values) {
  return {kernels, ordered, true, values.size() / kMetrics.size(), values, kMetrics};
}

using Edges = std::vector<std::pair<uint32_t, uint32_t>>;

}  // namespace

TEST_CASE("graph window: kernels in a chain take their ranges in order, path and all") {
  const std::array kernels{kB, kA, kAElsewhere};
  const std::vector<double> values{1, 2, 3, 4, 5, 6, 7, 8, 9};
  const GraphSamples samples = samples_of_graph(read(kernels, true, values));
  CHECK(samples.verdict == GraphVerdict::kPerKernel);
  CHECK(samples.kernels_each == 1);
  CHECK(samples.values == values);
  REQUIRE(samples.kernels.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(samples.kernels[i].signature == kernels[i].signature);
    CHECK(samples.kernels[i].path == kernels[i].path);
  }
}

TEST_CASE("graph window: in no fixed order, ranges are of use where kernels are alike") {
  const std::vector<double> values{1, 2, 3, 4, 5, 6};
  CHECK(samples_of_graph(read(std::array{kA, kB}, false, values)).verdict ==
        GraphVerdict::kUnordered);
  const GraphSamples alike = samples_of_graph(read(std::array{kA, kA}, false, values));
  CHECK(alike.verdict == GraphVerdict::kPerKernel);
  CHECK(alike.values == values);
  CHECK(alike.kernels.at(1).path == kA.path);
  const GraphSamples two_paths = samples_of_graph(read(std::array{kA, kAElsewhere}, false, values));
  REQUIRE(two_paths.usable());
  CHECK(two_paths.kernels.at(0).path == PathId{});  // whose range it is, nobody knows
  CHECK(two_paths.kernels.at(1).path == PathId{});
}

TEST_CASE("graph window: one range is shared out among kernels that are alike, without its time") {
  const std::array kernels{kA, kA, kA, kA};
  const GraphSamples samples = samples_of_graph(read(kernels, true, std::array{400.0, 10.0, 99.0}));
  CHECK(samples.verdict == GraphVerdict::kTogether);
  CHECK(samples.kernels_each == 4);
  REQUIRE(samples.kernels.size() == 1);
  REQUIRE(samples.values.size() == 3);
  CHECK(samples.values[0] == 100);
  CHECK(samples.values[1] == 2.5);  // bytes need not divide
  CHECK(std::isnan(samples.values[2]));

  CHECK(samples_of_graph(read(kernels, true, std::array{402.0, 10.0, 99.0})).verdict ==
        GraphVerdict::kRemainder);
  CHECK(samples_of_graph(read(kernels, true, std::array{std::nan(""), 10.0, 99.0})).verdict ==
        GraphVerdict::kRemainder);
  CHECK(samples_of_graph(read(std::array{kA, kB}, true, std::array{4.0, 1.0, 9.0})).verdict ==
        GraphVerdict::kUnlike);
  GraphRanges two_contexts = read(kernels, true, std::array{400.0, 10.0, 99.0});
  two_contexts.one_context = false;
  CHECK(samples_of_graph(two_contexts).verdict == GraphVerdict::kElsewhere);
}

TEST_CASE("graph window: a single kernel has the single range, time and all") {
  const GraphSamples samples =
      samples_of_graph(read(std::array{kA}, false, std::array{3., 2., 1.}));
  CHECK(samples.verdict == GraphVerdict::kPerKernel);
  CHECK(samples.values == std::vector<double>{3, 2, 1});
}

TEST_CASE("graph window: any other number of ranges is of no use") {
  const std::array kernels{kA, kA, kA};
  CHECK(samples_of_graph(read(kernels, true, {})).verdict == GraphVerdict::kNoRange);
  for (const size_t ranges : {2U, 4U, 6U}) {
    const std::vector<double> values(ranges * kMetrics.size(), 6);
    const GraphSamples samples = samples_of_graph(read(kernels, true, values));
    CHECK(samples.verdict == GraphVerdict::kOtherNumber);
    CHECK(samples.values.empty());
    CHECK_FALSE(samples.usable());
  }
  GraphRanges torn = read(kernels, true, std::array{1.0, 2.0, 3.0});
  torn.ranges = 3;  // values lack
  CHECK_FALSE(samples_of_graph(torn).usable());
}

TEST_CASE("graph window: what adds up over the kernels of a range") {
  CHECK(adds_up_over_kernels("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"));
  CHECK(adds_up_over_kernels("dram__bytes_read.sum"));
  CHECK_FALSE(adds_up_over_kernels("gpu__time_duration.sum"));
  CHECK_FALSE(adds_up_over_kernels("sm__cycles_elapsed.max"));
}

TEST_CASE("graph window: a chain of kernels, whatever lies between, has one order") {
  using Places = std::vector<uint32_t>;
  CHECK(places_in_chain({true}, Edges{}) == Places{0});
  // 2 -> 0 -> 1, made in another order than they run.
  CHECK(places_in_chain({true, true, true}, Edges{{2, 0}, {0, 1}}) == Places{1, 2, 0});
  // A copy beside the kernels and one between them; an edge that says what others say already.
  CHECK(places_in_chain({true, false, true, false}, Edges{{0, 1}, {1, 2}, {0, 2}, {3, 2}})
            .value()
            .at(2) == 1);
}

TEST_CASE("graph window: branches, and what is no graph, have none") {
  CHECK_FALSE(places_in_chain({true, true}, Edges{}));
  CHECK_FALSE(places_in_chain({true, true, true}, Edges{{0, 1}, {0, 2}}));
  CHECK_FALSE(places_in_chain({true, true, true, true}, Edges{{0, 1}, {0, 2}, {1, 3}, {2, 3}}));
  CHECK_FALSE(places_in_chain({true, true}, Edges{{0, 1}, {1, 0}}));
  CHECK_FALSE(places_in_chain({true, true}, Edges{{0, 5}}));
  CHECK_FALSE(places_in_chain({false, false}, Edges{{0, 1}}));
  CHECK_FALSE(places_in_chain({}, Edges{}));
  // A fork of a copy alone leaves the kernels one order.
  CHECK(places_in_chain({true, false, true}, Edges{{0, 1}, {0, 2}}).has_value());
}
