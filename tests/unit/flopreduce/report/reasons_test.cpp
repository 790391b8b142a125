// Why a kernel has no count: the reason of each kernel by where its launches were made, the same in
// the ledger and beside the kernel. Figures are worked out by hand.
#include <map>

#include "catch.h"
#include "reduce_bytes.h"

using namespace flopinj::test;
using namespace flopinj::reduce;
namespace trace = flopinj::trace;

namespace {

constexpr uint32_t kOrdinary = 1, kGreen = 2;  // streams

// Two streams, one of them on a green context.
TraceBuilder with_green_stream(uint64_t session = 1) {
  TraceBuilder t;
  trace::TracePacket p;
  auto& h = *p.mutable_header();
  h.set_format_major(1);
  h.set_format_minor(4);
  h.set_pid(static_cast<uint32_t>(session));
  h.set_hostname("node");
  h.set_rank(-1);
  h.set_level(trace::LEVEL_LAUNCHES);
  h.set_counters(true);
  h.set_measures(true);
  h.set_mode("multiplex");
  h.set_session_id(session);
  t.add(p);
  t.device();
  t.thread(1, "main");
  t.stream(kOrdinary);
  t.stream(kGreen, 1, 7, true);
  t.group(1, "sass", sass_metrics());
  return t;
}

void launch(TraceBuilder& t, uint32_t kernel, size_t times, uint32_t stream, bool graph = false) {
  std::vector<TraceBuilder::Launch> list(times);
  for (auto& l : list) l = {.signature = kernel, .duration_ns = 10, .graph = graph};
  t.launches(list, 1, stream);
}

using Reasons = std::map<std::string, uint64_t>;

Reasons of_ledger(const Report& r) {
  Reasons reasons;
  for (const Reason& reason : r.ledger.unmeasured) reasons[reason.reason] += reason.launches;
  return reasons;
}

// What the coverage table shows, added up.
Reasons of_signatures(const Report& r) {
  Reasons reasons;
  for (const SignatureReport& s : r.signatures)
    if (!s.unmeasured_reason.empty()) reasons[s.unmeasured_reason] += s.work.launches;
  return reasons;
}

}  // namespace

TEST_CASE("where a kernel was launched is the reason why it has no count") {
  TraceBuilder t = with_green_stream();
  t.kernel(1, "eager", 11);
  t.kernel(2, "graph", 12);
  t.kernel(3, "green", 13);
  t.kernel(4, "eager_and_green", 14);
  t.kernel(5, "graph_and_green", 15);
  t.kernel(6, "graph_and_eager", 16);
  t.kernel(7, "graph_on_green", 17);
  t.kernel(8, "sampled", 18);
  t.kernel(9, "graph_on_green_and_eager", 19);  // half of those outside of graphs are not on green
  t.samples(1, 8, {sass(0, 0, 50)});
  launch(t, 1, 1, kOrdinary);
  launch(t, 2, 2, kOrdinary, true);
  launch(t, 3, 4, kGreen);
  launch(t, 4, 4, kOrdinary);
  launch(t, 4, 4, kGreen);
  launch(t, 5, 8, kGreen);
  launch(t, 5, 8, kOrdinary, true);
  launch(t, 6, 16, kOrdinary);
  launch(t, 6, 16, kOrdinary, true);
  launch(t, 7, 64, kGreen, true);
  launch(t, 8, 128, kGreen);
  launch(t, 9, 128, kGreen);
  launch(t, 9, 256, kGreen, true);
  launch(t, 9, 128, kOrdinary);
  t.end();
  const Reasons expected{
      {"not_sampled:sass", 1 + 8 + 32 + 512}, {"graph_only", 2 + 64}, {"green_context", 4 + 16}};
  const auto check = [&](const Report& r) {
    CHECK(balances(r));
    CHECK(of_ledger(r) == expected);
    CHECK(of_signatures(r) == expected);
    CHECK(to_decimal(r.total.flop) == "12800");  // counts hold on green contexts, too
  };
  check(reduce_bytes({t.bytes()}));
  check(reduce_bytes({merge_bytes({{"a", t.bytes()}}).bytes}));  // a summary keeps it
}

TEST_CASE("launches of other processes are among those that decide a kernel's reason") {
  TraceBuilder graph = with_green_stream(1), eager = with_green_stream(2);
  for (TraceBuilder* t : {&graph, &eager}) t->kernel(1, "k", 11);
  launch(graph, 1, 3, kOrdinary, true);
  launch(eager, 1, 5, kOrdinary);
  for (TraceBuilder* t : {&graph, &eager}) t->end();
  const Report r = reduce_bytes({graph.bytes(), eager.bytes()});
  CHECK(of_ledger(r) == Reasons{{"not_sampled:sass", 8}});
  CHECK(of_signatures(r) == of_ledger(r));
}

TEST_CASE(
    "launches whose device nothing tells have one reason in the ledger and beside the kernel") {
  TraceBuilder t = with_green_stream();
  t.kernel(1, "k", 11);
  launch(t, 1, 3, 0);
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK(of_ledger(r) == Reasons{{"device_unknown", 3}});
  CHECK(of_signatures(r) == of_ledger(r));
}

TEST_CASE("the first notice says where all kernels were launched, and what measures them") {
  TraceBuilder t = with_green_stream();
  t.kernel(1, "green", 11);
  t.kernel(2, "graph", 12);
  launch(t, 1, 5, kGreen);
  launch(t, 2, 2, kOrdinary, true);
  t.diagnostic("counters.green_context", "launches on green contexts are not measured",
               trace::Diagnostic::INFO);
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  const std::string notice = json_of(r)["notices"].at(0)["notice"];
  CHECK(notice.starts_with("No FLOP were measured: the kernels ran only on green contexts"));
  CHECK(notice.find("a few launches outside of them") != std::string::npos);
}
