// What a report says of figures that it does not have, and of processes: the true reason, the same
// name everywhere, and shares of wall time as the field defines them. Figures are worked out by
// hand.
#include <functional>

#include "catch.h"
#include "reduce_bytes.h"
#include "sections/sections.h"

using namespace flopinj::test;
using namespace flopinj::reduce;
namespace trace = flopinj::trace;

namespace {

bool says(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

// A header of a recorder that says what it was asked for; `change` may say otherwise.
void header(TraceBuilder& t, const std::function<void(trace::Header&)>& change = {},
            uint64_t session = 1) {
  trace::TracePacket p;
  auto& h = *p.mutable_header();
  h.set_format_major(1);
  h.set_format_minor(2);
  h.set_pid(3);
  h.set_hostname("node");
  h.set_rank(-1);
  h.set_level(trace::LEVEL_LAUNCHES);
  h.set_counters(true);
  h.set_measures(true);
  h.set_mode("multiplex");
  h.set_session_id(session);
  if (change) change(h);
  t.add(p);
}

// One launch of 100 FLOP in forward and two in backward, with samples or without.
void step(TraceBuilder& t, bool measured, bool graph = false) {
  t.device();
  t.thread(1, "main");
  t.stream();
  t.group(1, "sass", sass_metrics());
  t.kernel(1, "gemm", 11);
  t.path(1, 0, "forward");
  t.path(2, 0, "backward");
  if (measured) t.samples(1, 1, {sass(0, 0, 50)});
  t.launches({{.signature = 1, .duration_ns = 100, .path = 1, .graph = graph},
              {.signature = 1, .duration_ns = 100, .path = 2, .graph = graph},
              {.signature = 1, .duration_ns = 100, .path = 2, .graph = graph}});
}

std::string notices_of(const Report& report) {
  std::string text;
  const auto list = json_of(report)["notices"];
  for (const auto& row : list) text += row["notice"].get<std::string>() + "\n";
  return text;
}

struct Unread {
  std::function<void(trace::Header&)> header;
  const char* code;    // of a diagnostic; empty for none
  const char* state;   // in JSON
  const char* word;    // in the table
  const char* cause;   // after "no FLOP counts of forward and backward: "
  const char* remedy;  // in the notice
};

}  // namespace

TEST_CASE("counters that were not read: what happened, why no ratio is known, and what to do") {
  const Unread cases[] = {
      {[](trace::Header& h) {
         h.set_mode("timing");
         h.set_counters(false);
       },
       "", "not_asked", "not asked", "counters were not asked for",
       "FLOP are known by formula alone"},
      {[](trace::Header& h) {
         h.set_rank(1);
         h.set_measures(false);
       },
       "", "other_ranks", "other ranks", "other ranks of the job read the counters",
       "--measure-ranks all"},
      {{},
       "counters.privileges",
       "refused",
       "refused",
       "counters were refused: no permission",
       "the advice of counters.privileges"},
      {{},
       "counters.busy",
       "busy",
       "busy",
       "another profiler held the counters",
       "the advice of counters.busy"},
      {{},
       "cupti.subscriber",
       "busy",
       "busy",
       "another profiler held the counters",
       "the advice of cupti.subscriber"},
      {{},
       "counters.passes",
       "failed",
       "failed",
       "reading counters failed",
       "the advice of counters.passes"},
      {{}, "", "none_read", "none read", "no counters were read", "Diagnostics"},
  };
  for (const Unread& c : cases) {
    INFO(c.state << " " << c.code);
    TraceBuilder t;
    header(t, c.header);
    step(t, false);
    t.diagnostic("module.large", "an unrelated one");
    if (*c.code != '\0') t.diagnostic(c.code, std::string("the advice of ") + c.code);
    t.end();
    const Report r = reduce_bytes({t.bytes()});
    const auto j = json_of(r);
    CHECK(j["measuring"][0]["counters_state"] == c.state);
    CHECK(j["figures"]["ratio"].is_null());
    const std::string missing =
        std::string("not measured: no FLOP counts of forward and backward: ") + c.cause;
    CHECK(j["figures"]["ratio_why"] == missing);
    const std::string text = text_of(r);
    CHECK(says(text, missing));
    CHECK(says(notices_of(r), std::string("No FLOP were measured: ") + c.cause));
    CHECK(says(notices_of(r), c.remedy));
    CHECK(text.find("No FLOP were measured") < text.find("FLOP of 3 kernel launches"));
    const std::string table = text.substr(text.find("Measuring"));
    CHECK(says(table, c.word));
  }
}

TEST_CASE("counters that were read are called read, whatever else went wrong") {
  TraceBuilder t;
  header(t);
  step(t, true);
  t.diagnostic("counters.busy", "later another profiler came");
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK(json_of(r)["measuring"][0]["counters_state"] == "read");
  CHECK(r.ratio.ratio.number() == 2.0);
  CHECK_FALSE(json_of(r)["figures"].contains("ratio_why"));
  CHECK(json_of(r)["notices"].empty());
}

TEST_CASE("a diagnostic that was written again has the last word") {
  TraceBuilder t;
  header(t);
  step(t, false);
  t.diagnostic("counters.busy", "tried again in 1 s");
  trace::TracePacket p;
  trace::Diagnostic& again = *p.mutable_diagnostic();
  again.set_severity(trace::Diagnostic::ERROR);
  again.set_code("counters.busy");
  again.set_message("tried again in 1 s");
  again.set_time_ns(5);
  again.set_times(4);
  again.set_last_message("tried again in 60 s");
  again.set_last_time_ns(7);
  t.add(p);
  t.diagnostic("module.large", "once");
  t.end();
  for (const std::string& bytes : {t.bytes(), merge_bytes({{"a", t.bytes()}}).bytes}) {
    const Report r = reduce_bytes({bytes});
    CHECK(says(notices_of(r), "tried again in 60 s"));
    const auto rows = json_of(r)["diagnostics"];
    REQUIRE(rows.size() == 2);
    CHECK(rows[0]["severity"] == "error");
    CHECK(rows[0]["message"] == "tried again in 1 s");
    CHECK(rows[0]["times"] == 4);
    CHECK(rows[0]["last_message"] == "tried again in 60 s");
    CHECK(rows[0]["last_time_ns"] == 7);
    CHECK(rows[1]["times"] == 1);
    CHECK(rows[1]["last_message"].is_null());
    CHECK(rows[1]["last_time_ns"].is_null());
    CHECK(says(text_of(r), "tried again in 1 s (4 times; at last: tried again in 60 s)"));
  }
}

TEST_CASE("kernels that ran only in CUDA graphs are the reason where nothing else went wrong") {
  TraceBuilder t;
  header(t);
  step(t, false, true);
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  const std::string said = notices_of(r);
  CHECK(says(said, "No FLOP were measured: the kernels ran only in CUDA graphs"));
  CHECK_FALSE(says(said, "no counters were read"));
  CHECK(says(said, "eager steps"));
}

TEST_CASE("the first screen has a cause where counters of other kernels were read") {
  TraceBuilder t;
  header(t);
  t.device();
  t.thread(1, "main");
  t.stream();
  t.group(1, "sass", sass_metrics());
  t.kernel(1, "measured", 11);
  t.kernel(2, "never_sampled", 12);
  t.samples(1, 1, {sass(0, 0, 50)});
  t.launches({{2, 100}});
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK_FALSE(says(notices_of(r), "No FLOP were measured"));
  std::string all;
  for (const ShownFigure& figure : screen_figures(r)) all += figure.note + "\n";
  CHECK(says(all, "unmeasured: their kernels have no sample of the counters 'sass'"));
}

TEST_CASE("where not all ranks read counters, the line with the cause has the remedy") {
  for (const bool all : {false, true}) {
    std::vector<std::string> traces;
    for (int rank : {0, 1}) {
      TraceBuilder t;
      header(
          t,
          [&](trace::Header& h) {
            h.set_rank(rank);
            h.set_measures(all || rank == 0);
          },
          1 + static_cast<uint64_t>(rank));
      t.device();
      t.thread(1, "main");
      t.stream();
      t.group(1, "sass", sass_metrics());
      t.kernel(1, rank == 0 ? "first" : "other", 11 + static_cast<uint64_t>(rank));
      if (rank == 0) t.samples(1, 1, {sass(0, 0, 50)});
      t.launches({{1, 100}});
      t.end();
      traces.push_back(t.bytes());
    }
    std::string notes;
    for (const ShownFigure& figure : screen_figures(reduce_bytes(traces)))
      notes += figure.note + "\n";
    CHECK(says(notes, "unmeasured: their kernels have no sample of the counters 'sass'"));
    CHECK(says(notes, "--measure-ranks all") == !all);
  }
}

TEST_CASE("a total is not 0 where launches without a count may have executed FLOP") {
  TraceBuilder t;
  header(t);
  t.device();
  t.thread(1, "main");
  t.stream();
  t.group(1, "sass", sass_metrics());
  t.kernel(1, "copy", 11);
  t.kernel(2, "never_sampled", 12);
  t.samples(1, 1, {sass(0, 0, 0)});
  t.launches({{1, 100}, {2, 100}});
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  const auto figures = screen_figures(r);
  CHECK(std::string(figures[2].name) == "Executed");
  CHECK(figures[2].value == "-");
  CHECK(says(figures[2].note, "not known, in 2 launches"));
  const auto methods = json_of(r)["utilization"];
  CHECK_FALSE(methods.empty());
  for (const auto& method : methods)
    CHECK(method.value("utilization_gpu_time_why", "") != "no FLOP executed");
}

TEST_CASE("of several processes the ones whose counters were refused are named") {
  TraceBuilder one, two;
  header(one, [](trace::Header& h) { h.set_rank(0); });
  step(one, true);
  one.end();
  header(
      two, [](trace::Header& h) { h.set_rank(1); }, 2);
  step(two, false);
  two.kernel(2, "only_here", 12);
  two.launches({{2, 100}});
  two.diagnostic("counters.privileges", "become root");
  two.end();
  const std::string said = notices_of(reduce_bytes({one.bytes(), two.bytes()}));
  CHECK(
      says(said, "Counters of 1 of 2 processes, first rank 1, node pid 3: counters were refused"));
  CHECK(says(said, "become root"));
}

TEST_CASE("why backward / forward is not known") {
  const auto missing = [](const std::vector<TraceBuilder::Launch>& launches) {
    TraceBuilder t;
    header(t);
    t.device();
    t.thread(1, "main");
    t.stream();
    t.group(1, "sass", sass_metrics());
    t.kernel(1, "gemm", 11);
    t.kernel(2, "copy", 12);
    t.kernel(3, "never_sampled", 13);
    t.path(1, 0, "forward");
    t.path(2, 0, "backward");
    t.path(3, 0, "elsewhere");
    t.samples(1, 1, {sass(0, 0, 50)});
    t.samples(1, 2, {sass(0, 0, 0)});
    t.launches(launches);
    t.end();
    const Report r = reduce_bytes({t.bytes()});
    CHECK_FALSE(r.ratio.ratio.known());
    const std::string why = json_of(r)["figures"]["ratio_why"];
    CHECK(says(text_of(r), why));
    return why;
  };
  using L = TraceBuilder::Launch;
  CHECK(missing({}) == "not known: no launches");
  CHECK(missing({L{1, 100}}) ==
        "not known: no NVTX range was seen around a launch, and no thread's name says a phase");
  CHECK(missing({L{1, 100, 3}}) ==
        "not known: no range, thread or kernel has a name that says forward or backward");
  CHECK(missing({L{1, 100, 1}}) == "not known: no backward launches");
  CHECK(missing({L{1, 100, 2}}) == "not known: no forward launches");
  CHECK(missing({L{2, 100, 1}, L{1, 100, 2}}) == "not known: the forward pass executed no FLOP");
  CHECK(missing({L{1, 100, 1}, L{3, 100, 2}}) ==
        "not measured: no FLOP counts of backward: their kernels have no sample of the counters "
        "'sass'");
  L graph{3, 100, 2};
  graph.graph = true;
  CHECK(says(missing({L{1, 100, 1}, graph}),
             "not measured: no FLOP counts of backward: the kernels ran only in CUDA graphs"));
  // 100 FLOP forward, 200 of the measured launches in backward.
  CHECK(missing({L{1, 100, 1}, L{3, 100, 1}, L{1, 100, 2}, L{1, 100, 2}, L{3, 100, 2}}) ==
        "not known: 1 of 2 forward launches and 1 of 3 backward launches have no FLOP count (of "
        "the measured launches: 2.000)");
}

TEST_CASE("an estimated ratio is judged by its interval") {
  // Two layers alike in forward. The second has both gradients, by its kernels' names; the first
  // one or both, and its kernel varies: samples from windows far apart.
  const auto ratio = [](const std::vector<double>& fma) {
    TraceBuilder t;
    header(t);
    t.device();
    t.thread(1, "main");
    t.stream();
    t.group(1, "sass", sass_metrics());
    t.kernel(1, "gemm", 11);
    t.kernel(2, "varies", 12);
    t.kernel(3, "dgrad", 13);
    t.kernel(4, "wgrad", 14);
    t.path(1, 0, "forward");
    t.path(2, 1, "a");
    t.path(3, 1, "b");
    t.path(4, 0, "backward");
    t.path(5, 4, "a");
    t.path(6, 4, "b");
    for (const uint32_t kernel : {1, 3, 4}) t.samples(1, kernel, {sass(0, 0, 250)});
    uint32_t window = 2;
    for (const double value : fma) {
      const uint64_t place = 1000 * (2 * window - 3) / (2 * fma.size());  // evenly spread
      t.placed_sample(1, 2, window, place, sass(0, 0, value));
      ++window;
    }
    t.tally({{1, 500, 500, 500, 2},
             {1, 500, 500, 500, 3},
             {2, 1000, 1000, 1000, 5},
             {3, 500, 500, 500, 6},
             {4, 500, 500, 500, 6}});
    t.ledger(3000, 3000, 0);
    t.end();
    return reduce_bytes({t.bytes()});
  };
  // Expected are 1.5 to 2 times 500 FLOP a launch. Close samples around 1.75 times:
  const Report close = ratio({187, 188, 187, 188, 187, 188});
  REQUIRE(close.ratio.expected);
  CHECK(close.ratio.expected->least == Approx(1.5));
  CHECK(close.ratio.expected->most == Approx(2));
  REQUIRE(close.ratio.matrix_interval);
  CHECK(close.ratio.matrix_interval->low < *close.ratio.matrix_ratio.number());
  CHECK(close.ratio.matrix_interval->high > *close.ratio.matrix_ratio.number());
  CHECK(close.ratio.verdict == RatioVerdict::kInside);
  CHECK(says(text_of(close), "~ 1.75"));
  // Far from it, whatever the launches between did.
  CHECK(ratio({650, 651, 650, 651, 650, 651}).ratio.verdict == RatioVerdict::kOutside);
  // From nothing to twice the expected: nothing is decided, though the mean is inside.
  const Report wide = ratio({190, 190, 10, 370, 12, 368});
  CHECK(*wide.ratio.matrix_ratio.number() > 1.5);
  CHECK(*wide.ratio.matrix_ratio.number() < 2);
  CHECK(wide.ratio.verdict == RatioVerdict::kUndecided);
  CHECK(says(text_of(wide), "undecided: the 95 % interval of the ratio reaches beyond it"));
  // Two windows have no interval.
  const Report few = ratio({180, 195});
  CHECK(few.ratio.verdict == RatioVerdict::kUndecided);
  CHECK(says(text_of(few), "undecided: the estimates have no interval"));
}

TEST_CASE("two processes of one name have different names, the same ones everywhere") {
  // Containers: same host name, same process id.
  std::vector<std::string> traces;
  for (const uint64_t session : {1, 2}) {
    TraceBuilder t;
    header(t, {}, session);
    step(t, true);
    t.overhead(1000, 100'000);
    t.diagnostic("module.large", "something");
    t.end();
    traces.push_back(t.bytes());
  }
  const std::string text = text_of(reduce_bytes(traces));
  for (const char* section :
       {"Ledger", "Measuring", "By process", "The profiler's own cost", "Diagnostics"}) {
    const size_t at = text.find(section);
    REQUIRE(at != std::string::npos);
    const std::string part = text.substr(at, text.find("\n\n", at) - at);
    INFO(part);
    CHECK(part.find("node pid 3 (2)") != std::string::npos);
    const size_t first = part.find("node pid 3");
    CHECK(part.compare(first, 15, "node pid 3 (2) ") != 0);
  }
}

TEST_CASE("ranks without a trace are known from the job's size, and told at the top") {
  const auto rank = [](int number, uint32_t world_size) {
    TraceBuilder t;
    header(
        t,
        [&](trace::Header& h) {
          h.set_rank(number);
          h.set_world_size(world_size);
        },
        static_cast<uint64_t>(10 + number));
    step(t, true);
    t.end();
    return t.bytes();
  };
  const Report alone = reduce_bytes({rank(0, 4)});
  CHECK(alone.ranks.missing == std::vector<uint32_t>{1, 2, 3});
  CHECK(says(notices_of(alone), "No trace of ranks 1, 2, 3 of 4"));
  CHECK(text_of(alone).find("No trace of ranks") < text_of(alone).find("FLOP of 3 kernel"));
  CHECK(json_of(alone)["figures"]["world_size"] == 4);
  CHECK_FALSE(alone.partial);  // one rank's own report is whole
  CHECK(reduce_bytes({rank(0, 2), rank(1, 2)}).ranks.missing.empty());
  const Report old = reduce_bytes({rank(0, 0), rank(3, 0)});
  CHECK(old.ranks.missing == std::vector<uint32_t>{1, 2});
  CHECK(json_of(old)["figures"]["world_size"].is_null());
  // A size that cannot be is no reason to list a billion ranks.
  CHECK(reduce_bytes({rank(0, UINT32_MAX)}).ranks.missing.empty());
  CHECK(says(notices_of(reduce_bytes({rank(0, 1), rank(0, 1)})), "reduce each run apart") ==
        false);  // one session twice is one recording
}

TEST_CASE("a trace that was cut does not blame its ledger") {
  using pb = trace::End;
  const auto report = [](uint64_t rows, std::optional<pb::Reason> end) {
    TraceBuilder t = started();
    t.kernel(1, "k", 11);
    t.samples(1, 1, {sass(1, 0, 0)});
    t.ledger(20, 3, 2);  // 15 on their way
    t.launches(std::vector<TraceBuilder::Launch>(rows, {1, 100}));
    if (end) t.end(*end);
    return reduce_bytes({t.bytes()});
  };
  // Killed, or a disk that was full.
  for (const std::optional<pb::Reason> end : {std::optional<pb::Reason>(), {pb::FAILURE}}) {
    CAPTURE(end.has_value());
    // The rest came after the last ledger that can be read.
    const Report more = report(373, end);
    CHECK(more.partial == end.has_value());  // without an end, all but its last second is there
    CHECK(more.ledger.disagreements.empty());
    CHECK(balances(more));
    CHECK(more.ledger.total.dropped == 2);
    // Of 18 that were not dropped 12 were written before the trace broke off.
    const Report less = report(12, end);
    CHECK(less.ledger.disagreements.empty());
    CHECK(balances(less));
    CHECK(less.ledger.total == LedgerLine{20, 1, 11, 0, 8});
    bool found = false;
    for (const auto& reason : less.ledger.dropped)
      found = found || (reason.reason == "not_written" && reason.launches == 6);
    CHECK(found);
    CHECK(says(text_of(less), "the trace was not closed") == !end);
  }
  // A whole trace whose ledger does not add up is a fault of the recorder.
  for (const pb::Reason end : {pb::EXIT, pb::DETACH})
    CHECK_FALSE(report(12, end).ledger.disagreements.empty());
}

TEST_CASE("HFU and MFU are of wall time; what passes before and after the kernels is apart") {
  // An H100 PCIe makes 51.2 TFLOP/s in fp32: 51.2 MFLOP take 1 us.
  TraceBuilder t;
  header(t, [](trace::Header& h) { h.set_clock_trace_ns(1'000); });
  t.device(1, "GH100", "NVIDIA H100 PCIe", 114);
  t.thread(1, "main");
  t.stream();
  t.group(1, "sass", sass_metrics());
  t.kernel(1, "gemm", 11);
  t.samples(1, 1, {sass(0, 0, 25'600'000)});
  // Two kernels of 4 us each, 10 ns apart, from 41 us on; one more 20 us later.
  t.launches({{1, 4'000}, {1, 4'000}}, 1, 1, 41'000);
  t.launches({{1, 2'000}}, 1, 1, 69'010);
  t.ledger(3, 3, 0);
  trace::TracePacket p;
  p.mutable_end()->set_time_ns(101'000);
  t.add(p);
  ReduceOptions options;
  options.utilization.formula_flop = 51.2e6;  // a third of what was executed
  const Report r = reduce_bytes({t.bytes()}, std::move(options));
  const auto j = json_of(r);
  const auto run = row_of(j, "utilization", "name", "executed");
  // 3 us at peak. Of 100 us of wall time; of 30.01 us from the first kernel to the last; of 10 us.
  CHECK(j["figures"]["hfu"].get<double>() == Approx(0.03));
  CHECK(j["figures"]["mfu"].get<double>() == Approx(0.01));
  CHECK(run["utilization_wall"].get<double>() == Approx(0.03));
  CHECK(run["utilization_first_to_last"].get<double>() == Approx(3 / 30.01));
  CHECK(run["utilization_busy"].get<double>() == Approx(0.3));
  CHECK(run["utilization_gpu_time"].get<double>() == Approx(0.3));
  const auto& time = j["device_time"][0];
  CHECK(time["before_first_kernel_ns"] == 40'000);
  CHECK(time["busy_ns"] == 10'000);
  CHECK(time["idle_ns"] == 20'010);
  CHECK(time["after_last_kernel_ns"] == 100'000 - 40'000 - 30'010);
  const std::string text = text_of(r);
  CHECK(says(text, "HFU  3.0 %   executed FLOP / (wall time x peak)"));
  CHECK(says(text, "MFU  1.0 %   FLOP by formula / (wall time x peak)"));
  const auto share_of_wall = [&](const char* row) {
    const size_t at = text.find(row);
    REQUIRE(at != std::string::npos);
    const std::string line = text.substr(at, text.find('\n', at) - at);
    return line.substr(line.rfind("  ") + 2);
  };
  CHECK(share_of_wall("before the first kernel") == "40.0 %");
  CHECK(share_of_wall("busy: some kernel runs") == "10.0 %");
  CHECK(share_of_wall("idle between kernels") == "20.0 %");
  CHECK(share_of_wall("after the last kernel") == "30.0 %");
}

TEST_CASE("HFU is known where GPU times are not") {
  TraceBuilder t;
  header(t, [](trace::Header& h) { h.set_clock_trace_ns(1'000); });
  t.device(1, "GH100", "NVIDIA H100 PCIe", 114);
  t.thread(1, "main");
  t.stream();
  t.group(1, "sass", sass_metrics());
  t.kernel(1, "gemm", 11);
  t.samples(1, 1, {sass(0, 0, 25'600'000)});  // 1 us at peak
  t.launches({{1}, {1}});                     // without times
  trace::TracePacket p;
  p.mutable_end()->set_time_ns(101'000);
  t.add(p);
  const auto run = row_of(json_of(reduce_bytes({t.bytes()})), "utilization", "name", "executed");
  CHECK(run["utilization_wall"].get<double>() == Approx(0.02));
  CHECK(run["utilization_gpu_time_why"] == "GPU time unknown");
}

TEST_CASE("a ratio is not judged where damage took launches") {
  TraceBuilder t;
  header(t);
  t.device();
  t.thread(1, "main");
  t.stream();
  t.group(1, "sass", sass_metrics());
  t.kernel(1, "gemm", 11);
  t.kernel(2, "wgrad", 12);
  t.path(1, 0, "forward");
  t.path(2, 1, "a");
  t.path(3, 1, "b");
  t.path(4, 0, "backward");
  t.path(5, 4, "b");
  for (const uint32_t kernel : {1, 2}) t.samples(1, kernel, {sass(0, 0, 50)});
  t.launches({{1, 100, 2}, {1, 100, 3}, {1, 100, 3}, {2, 100, 5}});
  TraceBuilder lost = t;
  t.end();
  CHECK(reduce_bytes({t.bytes()}).ratio.verdict == RatioVerdict::kOutside);  // 1/3 of 2/3
  lost.skip_sequence(1);  // which may have held the rest of backward
  lost.end();
  const Report r = reduce_bytes({lost.bytes()});
  CHECK(r.ratio.verdict == RatioVerdict::kUndecided);
  CHECK(says(text_of(r), "undecided: parts of the traces are lost"));
}

TEST_CASE("GPU time is one figure; what measuring added to it has another name") {
  // Two launches of 100 ns; one more took 700 ns while counters were read.
  TraceBuilder t;
  header(t);
  t.device();
  t.thread(1, "main");
  t.stream();
  t.group(1, "sass", sass_metrics());
  t.kernel(1, "gemm", 11);
  t.samples(1, 1, {sass(0, 0, 50)});
  t.launches({{1, 100}, {.signature = 1, .duration_ns = 700, .windowed = true}, {1, 100}});
  t.ledger(3, 3, 0);
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK(r.total.time.ns == 300);
  CHECK(r.time.kernel_ns == u128{900});
  const std::string text = text_of(r);
  const auto line = [&](const std::string& name) {
    const size_t at = text.find("  " + name);
    return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
  };
  CHECK(says(line("GPU time  "), "300 ns   sum of kernels"));
  CHECK(says(line("GPU time: sum of kernels"), "300 ns"));
  CHECK(says(line("the same as recorded, slowed by measuring"), "900 ns"));
  CHECK(says(line("busy: some kernel runs"), "900 ns"));
  size_t sums = 0;
  for (size_t at = text.find("sum of kernels"); at != std::string::npos;
       at = text.find("sum of kernels", at + 1))
    ++sums;
  CHECK(sums == 2);  // both 300 ns
}

TEST_CASE("counts that were never compared with theory are said to be so, once") {
  const auto said = [](bool simulated, bool checked, bool samples) {
    TraceBuilder t;
    header(t, [&](trace::Header& h) { h.set_simulated(simulated); });
    t.device();
    t.thread(1, "main");
    t.stream();
    t.group(1, "sass", sass_metrics());
    t.kernel(1, "gemm", 11);
    if (checked) t.diagnostic("counters.checked", "they were", trace::Diagnostic::INFO);
    if (samples) t.samples(1, 1, {sass(0, 0, 50)});
    t.launches({{1, 100}, {1, 100}});
    t.ledger(2, 2, 0);
    t.end();
    return text_of(reduce_bytes({t.bytes()})).find("never compared with theory") !=
           std::string::npos;
  };
  CHECK(said(false, false, true));
  CHECK_FALSE(said(false, true, true));
  CHECK_FALSE(said(true, false, true));    // another line says what it is
  CHECK_FALSE(said(false, false, false));  // there are none
}
