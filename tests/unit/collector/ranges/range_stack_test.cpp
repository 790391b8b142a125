#include <collector/ranges/process_ranges.h>
#include <collector/ranges/range_path_table.h>
#include <collector/ranges/range_stack.h>

#include <chrono>
#include <map>
#include <random>
#include <string>
#include <thread>

#include "catch.h"
#include "support/effort.h"

using namespace flopinj;

namespace {

// A path spelled out: "kind/domain/name" outermost first.
std::vector<std::string> spell(const RangePathTable& table, PathId path) {
  std::map<PathId, PathDefinition> paths;
  std::map<StringId, std::string> strings{{StringId{}, ""}};
  for (const PathDefinition& p : table.paths_after({})) paths[p.id] = p;
  for (const StringDefinition& s : table.strings_after({})) strings[s.id] = s.value;
  std::vector<std::string> result;
  for (; path; path = paths.at(path).parent) {
    const PathDefinition& p = paths.at(path);
    const char* const kinds[] = {"thread", "process", "overflow"};
    result.insert(result.begin(), std::string(kinds[static_cast<size_t>(p.kind)]) + "/" +
                                      strings.at(p.domain) + "/" + strings.at(p.name));
  }
  return result;
}
using Names = std::vector<std::string>;

struct Fixture {
  RangePathTable table;
  ProcessRanges process{table};
  RangeStack stack{table, process};
  StringId a = table.intern_string("A"), b = table.intern_string("B");
  Names now() { return spell(table, stack.path()); }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "stack: long names are whole, and cut ones are counted at each push") {
  const std::string adam = "aten::_fused_adam_, sizes = " + std::string(10'000, '[');
  stack.push({}, adam);
  CHECK(now() == Names{"thread//" + adam});
  stack.push(a, std::string(kMaxNameBytes + 1, 'x'));
  CHECK(now() == Names{"thread//" + adam, "thread/A/" + std::string(kMaxNameBytes, 'x')});
  stack.pop(a);
  stack.push(a, std::string(kMaxNameBytes + 1, 'x'));
  CHECK(table.paths_after({}).size() == 2);
  CHECK(table.names_cut() == 2);
}

TEST_CASE_METHOD(Fixture, "stack: levels are counted per domain, as NVTX has them") {
  CHECK(stack.push(a, "x") == 0);
  CHECK(stack.push(a, "y") == 1);
  CHECK(stack.push(b, "z") == 0);
  CHECK(now() == Names{"thread/A/x", "thread/A/y", "thread/B/z"});
  CHECK(stack.pop(a) == 1);
  CHECK(now() == Names{"thread/A/x", "thread/B/z"});
  CHECK(stack.pop(a) == 0);
  CHECK(now() == Names{"thread/B/z"});
  CHECK(stack.pop(a) < 0);
  CHECK(stack.pop({}) < 0);
  CHECK(now() == Names{"thread/B/z"});
  CHECK(stack.pop(b) == 0);
  CHECK(stack.path() == PathId{});
}

TEST_CASE_METHOD(Fixture, "stack: the sequence number of the innermost range that has one") {
  CHECK(stack.sequence_plus_1() == 0);
  stack.push({}, "aten::linear, seq = 7, op_id = 1");
  CHECK(stack.sequence_plus_1() == 8);
  stack.push({}, "mine");
  CHECK(stack.sequence_plus_1() == 8);
  stack.push({}, "aten::mm, seq = 9, op_id = 2");
  CHECK(stack.sequence_plus_1() == 10);
  stack.push(a, "aten::mm, seq = -1, op_id = 2");
  CHECK(stack.sequence_plus_1() == 10);
  CHECK(now() ==
        Names{"thread//aten::linear", "thread//mine", "thread//aten::mm", "thread/A/aten::mm"});
  stack.pop({});
  CHECK(stack.sequence_plus_1() == 8);
  stack.pop({});
  stack.pop({});
  CHECK(stack.sequence_plus_1() == 0);
}

// As PyTorch 2.15 names them. Beside the node the engine sums a gradient over what was broadcast,
// and gradients that meet.
TEST_CASE_METHOD(Fixture,
                 "stack: what autograd's engine runs beside a node has the node's number") {
  const std::string engine = "autograd::engine::evaluate_function: ";
  stack.push({}, engine + "AddmmBackward0, op_id = 147");
  CHECK(stack.sequence_plus_1() == 0);
  // A hook before the node, which is none.
  stack.push({}, "aten::mul, seq = 90, op_id = 148");
  CHECK(stack.sequence_plus_1() == 91);
  stack.pop({});
  CHECK(stack.sequence_plus_1() == 0);
  stack.push({}, "AddmmBackward0, seq = 4, op_id = 149, sizes = [[2, 4]]");
  stack.push({}, "aten::mm, op_id = 150, sizes = [[4, 2], [2, 3]]");
  CHECK(stack.sequence_plus_1() == 5);
  stack.pop({});
  stack.pop({});
  CHECK(stack.sequence_plus_1() == 5);
  stack.push({}, "aten::sum, op_id = 151, sizes = [[2, 4], [], [], []]");
  CHECK(stack.sequence_plus_1() == 5);
  stack.pop({});
  stack.pop({});
  CHECK(stack.sequence_plus_1() == 0);

  // The next one begins without, also in the same place of the stack, and a node may have none.
  stack.push({}, engine + "torch::autograd::AccumulateGrad, op_id = 152");
  CHECK(stack.sequence_plus_1() == 0);
  stack.push({}, "torch::autograd::AccumulateGrad, op_id = 153, sizes = [[4]]");
  stack.pop({});
  CHECK(stack.sequence_plus_1() == 0);
  stack.pop({});

  // A node that evaluates others inside of itself.
  stack.push({}, engine + "CheckpointFunctionBackward, op_id = 154");
  stack.push({}, "CheckpointFunctionBackward, seq = 7, op_id = 155");
  stack.push({}, engine + "MulBackward0, op_id = 156");
  stack.push({}, "MulBackward0, seq = 2, op_id = 157");
  stack.pop({});
  CHECK(stack.sequence_plus_1() == 3);
  stack.pop({});
  CHECK(stack.sequence_plus_1() == 8);
  stack.pop({});
  CHECK(stack.sequence_plus_1() == 8);
}

// As PyTorch 2.15 names them. MyNode is a node that a program defines in C++.
TEST_CASE_METHOD(Fixture,
                 "stack: an operator's own number inside of a node is told from the node's") {
  const std::string engine = "autograd::engine::evaluate_function: ";
  stack.push({}, "aten::gelu, seq = 11, op_id = 1, sizes = [[4]]");
  CHECK(now() == Names{"thread//aten::gelu, sizes = [[4]]"});
  stack.pop({});
  stack.push({}, engine + "GeluBackward0, op_id = 2");
  stack.push({}, "GeluBackward0, seq = 11, op_id = 3, sizes = [[4]]");
  const Names node = now();
  CHECK(node.back() == "thread//GeluBackward0, sizes = [[4]]");
  const auto inside = [&](const std::string& name) {
    stack.push({}, name);
    const std::string found = now().back();
    stack.pop({});
    return found;
  };
  CHECK(inside("aten::gelu, seq = 0, op_id = 4, sizes = [[4]]") ==
        "thread//aten::gelu, seq = #, sizes = [[4]]");
  CHECK(inside("aten::gelu_backward, op_id = 5, sizes = [[4], [4], []]") ==
        "thread//aten::gelu_backward, sizes = [[4], [4], []]");
  CHECK(inside("mine::op, seq = 3") == "thread//mine::op, seq = #");
  // A function in Python has a number whether gradients are on or off; nodes have their own.
  CHECK(inside("AllToAll, seq = 3, op_id = 4") == "thread//AllToAll");
  CHECK(inside("MulBackward0, seq = 3") == "thread//MulBackward0");
  CHECK(inside("torch::autograd::CopySlices, seq = 3") == "thread//torch::autograd::CopySlices");
  // Of ranges inside of an operator each says so by itself.
  stack.push({}, "aten::linear, seq = 0, op_id = 6");
  CHECK(inside("aten::addmm, seq = 0, op_id = 7") == "thread//aten::addmm, seq = #");
  CHECK(inside("aten::copy_, op_id = 8") == "thread//aten::copy_");
  stack.pop({});
  CHECK(now() == node);
  stack.pop({});
  stack.pop({});
  stack.push({}, engine + "my::MyNode, op_id = 9");
  CHECK(inside("my::MyNode, seq = 4, op_id = 10") == "thread//my::MyNode");
  stack.pop({});
}

TEST_CASE_METHOD(Fixture, "process ranges: lie around the threads' ranges while they are open") {
  stack.push({}, "layer");
  const uint64_t epoch = process.start({}, "epoch");
  CHECK(epoch != 0);
  CHECK(now() == Names{"process//epoch", "thread//layer"});
  const uint64_t other = process.start(a, "other");
  CHECK(other != epoch);
  CHECK(now() == Names{"process//epoch", "process/A/other", "thread//layer"});
  process.end(epoch);
  CHECK(now() == Names{"process/A/other", "thread//layer"});
  stack.pop({});
  CHECK(now() == Names{"process/A/other"});
  process.end(epoch);  // again
  process.end(12'345);
  process.end(0);
  CHECK(process.unknown_ends() == 3);
  process.end(other);
  CHECK(stack.path() == PathId{});
  CHECK(process.path() == PathId{});
}

TEST_CASE_METHOD(Fixture, "process ranges: those past the bound take no part, and balance") {
  std::vector<uint64_t> ids;
  for (uint32_t i = 0; i < kMaxProcessRanges + 10; ++i) ids.push_back(process.start({}, "r"));
  CHECK(now().size() == kMaxProcessRanges);
  for (const uint64_t id : ids) process.end(id);
  CHECK(process.unknown_ends() == 0);
  CHECK(process.path() == PathId{});
  process.end(ids.back());
  CHECK(process.unknown_ends() == 1);
}

TEST_CASE_METHOD(Fixture, "stack: a step that repeats asks the table for nothing new") {
  const auto step = [&](uint64_t seq) {
    std::vector<PathId> seen;
    for (const char* layer : {"conv1", "conv2", "fc"}) {
      stack.push({}, layer);
      stack.push(
          a, "aten::conv2d, seq = " + std::to_string(seq) + ", op_id = " + std::to_string(seq * 3));
      seen.push_back(stack.path());
      stack.pop(a);
      stack.pop({});
    }
    return seen;
  };
  const auto first = step(1);
  const size_t paths = table.paths_after({}).size();
  for (uint64_t i = 2; i < 5'000; ++i)
    if (step(i) != first) FAIL("other paths in step " << i);
  CHECK(table.paths_after({}).size() == paths);
  CHECK(paths == 6);
}

TEST_CASE("stack: behaves as a list of open ranges, whatever the order") {
  // The model: a plain list, innermost last. Ranges past the depth, and those of a domain that
  // already has some past it, are in the list but in no path.
  struct Range {
    StringId domain;
    std::string name;
    bool recorded;
  };
  for (uint32_t seed = 0; seed < test::effort(12U, 2U); ++seed) {
    RangePathTable table;
    ProcessRanges process(table);
    RangeStack stack(table, process);
    const StringId domains[] = {{}, table.intern_string("d1"), table.intern_string("d2")};
    std::vector<Range> model;
    std::vector<std::pair<uint64_t, std::string>> open;  // process ranges
    std::mt19937 random(seed);
    const uint32_t eager = seed % 2 ? 5 : 7;  // of 10: pushes; the odd seeds go deep rarely
    for (int i = 0; i < 3'000; ++i) {
      const StringId domain = domains[random() % 3];
      int level = 0;
      for (const Range& r : model) level += r.domain == domain;
      if (random() % 50 == 0 && open.size() < 5) {
        const std::string name = "p" + std::to_string(random() % 3);
        open.emplace_back(process.start({}, name), "process//" + name);
      } else if (random() % 50 == 0 && !open.empty()) {
        const auto it = open.begin() + static_cast<ptrdiff_t>(random() % open.size());
        process.end(it->first);
        open.erase(it);
      } else if (random() % 10 < eager) {
        const std::string name = "r" + std::to_string(random() % 4);
        size_t recorded = 0;
        bool beyond = false;
        for (const Range& r : model) {
          recorded += r.recorded;
          beyond |= r.domain == domain && !r.recorded;
        }
        model.push_back({domain, name, recorded < kMaxDepth && !beyond});
        if (stack.push(domain, name) != level) FAIL("level of push " << i);
      } else {
        for (size_t k = model.size(); k > 0; --k)
          if (model[k - 1].domain == domain) {
            model.erase(model.begin() + static_cast<ptrdiff_t>(k) - 1);
            break;
          }
        if (stack.pop(domain) != level - 1) FAIL("level of pop " << i);
      }
      if (i % 20 != 0) continue;
      Names expected;
      for (const auto& [id, name] : open) expected.push_back(name);
      for (const Range& r : model)
        if (r.recorded)
          expected.push_back(std::string("thread/") +
                             (r.domain == domains[0]   ? ""
                              : r.domain == domains[1] ? "d1"
                                                       : "d2") +
                             "/" + r.name);
      if (spell(table, stack.path()) != expected)
        FAIL("path after operation " << i << ", seed " << seed);
    }
    CHECK(table.ranges_overflowed() == 0);
  }
}

TEST_CASE_METHOD(Fixture, "stack: 100,000 domains open at once cost each push and pop the same") {
  constexpr int kDomains = 100'000;
  std::vector<StringId> domains;
  for (int i = 0; i < kDomains; ++i)
    domains.push_back(table.intern_string("domain " + std::to_string(i)));
  int wrong = 0;
  const auto began = std::chrono::steady_clock::now();
  for (int level = 0; level < 2; ++level)
    for (const StringId domain : domains) wrong += stack.push(domain, "range") != level;
  for (int level = 1; level >= 0; --level)
    for (const StringId domain : domains) wrong += stack.pop(domain) != level;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  CHECK(wrong == 0);
  CHECK(stack.too_deep() == 2 * kDomains - kMaxDepth);
  CHECK(stack.pop(domains.back()) == -1);
  CHECK(stack.path() == PathId{});
  CHECK(seconds.count() < 10);  // a look at all domains for each takes over a minute
}

// Two threads have the same ranges, one by names as emit_nvtx writes them, the other by hashes.
TEST_CASE("stack: ranges told by a hash are those told by a name") {
  const std::string engine = "autograd::engine::evaluate_function: ";
  const std::vector<std::string> names = {
      "aten::mm, sizes = [[4, 2], [2, 3]]",
      "aten::sum, sizes = [[4]]",
      "mine",
      "step 7",
      "aten::_fused_adam_, sizes = [" + std::string(kMaxNameBytes, '1') + "]",
      engine + "AddmmBackward0",
      "AddmmBackward0, sizes = [[2, 4]]"};
  for (uint32_t seed = 0; seed < test::effort(4U, 2U); ++seed) {
    std::mt19937 random(seed);
    RangePathTable by_name, by_hash;
    ProcessRanges process{by_name}, other_process{by_hash};
    RangeStack named{by_name, process}, hashed{by_hash, other_process};
    const StringId domain = by_name.intern_string("d"), other_domain = by_hash.intern_string("d");
    std::vector<std::pair<ProcessRanges*, uint64_t>> open;
    uint64_t known = 0;
    for (int i = 0; i < 1'500; ++i) {
      const uint64_t what = random() % 20;
      const uint64_t number = random() % 3;  // 0: none
      // 300 names make the children of a path too many.
      const uint64_t which = random() % (seed % 2 == 1 ? 300 : names.size());
      const std::string text = which < names.size()
                                   ? names[which]
                                   : "aten::mul, sizes = [" + std::to_string(which) + "]";
      if (what < 9) {
        named.push({}, text + (number > 0 ? ", seq = " + std::to_string(number - 1) : "") +
                           ", op_id = " + std::to_string(i));
        if (hashed.push_known(which, number))
          ++known;
        else
          hashed.push_named(which, number, text);
      } else if (what < 17) {
        named.pop({});
        hashed.pop_known();
      } else if (what == 17) {
        CHECK(named.push(domain, "other") == hashed.push(other_domain, "other"));
      } else if (what == 18) {
        CHECK(named.pop(domain) == hashed.pop(other_domain));
      } else if (open.empty()) {
        open.emplace_back(&process, process.start({}, "of the process"));
        open.emplace_back(&other_process, other_process.start({}, "of the process"));
      } else {
        for (const auto& [ranges, id] : open) ranges->end(id);
        open.clear();
      }
      if (i % 3 == 0) {
        named.launch_written();
        hashed.launch_written();
      }
      if (named.sequence_plus_1() != hashed.sequence_plus_1() ||
          named.call_begins() != hashed.call_begins() ||
          (i % 25 == 0 && spell(by_name, named.path()) != spell(by_hash, hashed.path())))
        FAIL("after operation " << i << ", seed " << seed);
    }
    CHECK(known > 0);
    CHECK(named.unmatched_pops() == hashed.unmatched_pops());
    CHECK(named.too_deep() == hashed.too_deep());
  }
}

TEST_CASE_METHOD(Fixture, "stack: a call begins as its outermost operator is entered") {
  const auto written = [&] {
    const bool begins = stack.call_begins();
    stack.launch_written();
    return begins;
  };
  CHECK_FALSE(written());
  stack.push({}, "aten::linear, seq = 7, op_id = 1, sizes = [[2, 3]]");
  stack.push({}, "aten::addmm, seq = 7, op_id = 2, sizes = [[2, 3]]");
  CHECK(written());
  CHECK_FALSE(written());
  stack.pop({});
  stack.push({}, "aten::add_, op_id = 3");  // the same call
  CHECK_FALSE(written());
  stack.pop({});
  stack.pop({});
  stack.push({}, "aten::linear, seq = 7, op_id = 4, sizes = [[2, 3]]");  // the same number
  stack.pop({});
  CHECK_FALSE(stack.call_begins());  // outside of all
  stack.push(a, "Net::forward");
  CHECK_FALSE(written());
  // Nodes of autograd are no operators: each one inside of them is a call.
  stack.push({}, "autograd::engine::evaluate_function: AddmmBackward0, op_id = 5");
  CHECK_FALSE(written());
  stack.push({}, "AddmmBackward0, seq = 6, op_id = 6");
  for (const char* name : {"aten::mm, op_id = 7", "aten::mm, op_id = 8"}) {
    stack.push({}, name);
    CHECK(written());
    CHECK_FALSE(written());
    stack.pop({});
  }
  CHECK_FALSE(written());
}

TEST_CASE_METHOD(Fixture, "stack: of ranges told by a hash as many are kept as of others") {
  for (uint64_t i = 0; i < kMaxDepth + 5; ++i)
    if (!stack.push_known(1, 0)) stack.push_named(1, 0, "x");
  CHECK(now() == Names(kMaxDepth, "thread//x"));
  CHECK(stack.too_deep() == 5);
  for (uint64_t i = 0; i < kMaxDepth + 5; ++i) stack.pop_known();
  CHECK(now().empty());
  CHECK(stack.unmatched_pops() == 0);
  stack.pop_known();
  CHECK(stack.unmatched_pops() == 1);
}

TEST_CASE("stack: threads with their own stacks and common process ranges") {
  RangePathTable table;
  ProcessRanges process(table);
  std::vector<std::thread> threads;
  std::atomic<uint32_t> wrong{0};
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      RangeStack stack(table, process);
      for (int i = 0; i < 3'000; ++i) {
        stack.push({}, "thread " + std::to_string(t));
        stack.push({}, "inner");
        if (!stack.path()) ++wrong;
        stack.pop({});
        if (stack.pop({}) != 0) ++wrong;
      }
      if (stack.path() != process.path() && process.version() == 1) ++wrong;
    });
  for (int i = 0; i < 500; ++i) process.end(process.start({}, "p" + std::to_string(i % 5)));
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(process.path() == PathId{});
  RangeStack stack(table, process);
  CHECK(stack.path() == PathId{});
}

namespace {

uint64_t ticks_now = 0;
// Ticks as a test has them.
struct Ticks {
  Ticks() {
    ticks_now = 1;
    host_clock = []() noexcept { return ticks_now; };
  }
  ~Ticks() { host_clock = nullptr; }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "stack: the longest pause since the last launch, and where it was") {
  const Ticks ticks;
  constexpr uint64_t kLong = kLeastPauseTicks + 1;
  const auto go_on = [](uint64_t by) { ticks_now += by; };
  const auto launch = [&] { stack.note(host_ticks()); };
  launch();
  CHECK(stack.pause().end == 0);
  stack.push({}, "step");
  stack.push({}, "data");
  const uint64_t began = ticks_now;
  go_on(2 * kLong);
  stack.pop({});
  go_on(kLong);  // in `step`, and shorter
  launch();
  CHECK(spell(table, stack.pause().path) == Names{"thread//step", "thread//data"});
  CHECK(stack.pause().begin == began);
  CHECK(stack.pause().end == began + 2 * kLong);
  stack.forget_pause();
  go_on(kLeastPauseTicks);  // not long enough
  launch();
  CHECK(stack.pause().end == 0);
  // Operators, and what is deep inside, are no pieces of a pause.
  stack.push({}, "data");
  stack.push({}, "fetch");
  for (const char* inside : {"aten::stack", "collate"}) {
    stack.push({}, inside);
    go_on(kLong / 2);
    stack.pop({});
  }
  go_on(kLong / 2);
  launch();
  CHECK(spell(table, stack.pause().path) == Names{"thread//step", "thread//data", "thread//fetch"});
  CHECK(stack.pause().length() == 3 * (kLong / 2));
  stack.forget_pause();
  // Domains overlap: what is closed first is not the innermost.
  stack.pop({});
  stack.pop({});
  stack.push(a, "outer");
  stack.push(b, "inner");
  stack.pop(a);
  go_on(kLong);
  launch();
  CHECK(spell(table, stack.pause().path) == Names{"thread//step", "thread/B/inner"});
}

TEST_CASE("ticks are turned into the trace's time, as exactly as is said") {
  host_clock = cpu_ticks;
  const auto now = [] {
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  };
  const uint64_t first = now();
  HostClock clock(now, [] { return uint64_t{7}; });
  CHECK(clock.ns(cpu_ticks()) == 0);  // it has no rate yet
  while (now() - first < 2'000'000) continue;
  clock.set();
  const uint64_t stretch = now() - first, before = now(), ticks = cpu_ticks(), after = now();
  // Both ends of the stretch that the rate is of may be off.
  const auto error = static_cast<uint64_t>(
      static_cast<double>(clock.error_ns()) *
      (3 + 3 * static_cast<double>(after - first) / static_cast<double>(stretch)));
  CHECK(clock.error_ns() >= 7);
  CHECK(clock.ns(ticks) + error >= before);
  CHECK(clock.ns(ticks) <= after + error);
  CHECK(clock.ns(0) == 0);
  host_clock = nullptr;
}
