// Builds traces with the generated protobuf code, apart from the recorder's writer and the
// reducer's reader: what the tests of either are checked against.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "flop_trace.pb.h"

namespace flopinj::test {

// CRC-32C bit by bit, straight from its definition (RFC 3720, appendix B.4): not the table-driven
// code under test.
inline uint32_t plain_crc32c(const std::string& bytes) {
  uint32_t crc = 0xFFFFFFFFU;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0x82F63B78U : 0U);
  }
  return ~crc;
}

class TraceBuilder {
 public:
  // Appends one packet: numbered, check-summed and framed. Returns the offset of its first byte.
  size_t add(trace::TracePacket packet) {
    packet.set_sequence(++sequence_);
    return add_raw(packet.SerializeAsString());
  }
  // Appends any bytes as a packet with a right check sum, and without a number of ours.
  size_t add_raw(std::string packet) {
    const uint32_t crc = plain_crc32c(packet);
    packet.push_back('\x7d');
    for (unsigned i = 0; i < 4; ++i) packet.push_back(static_cast<char>(crc >> (8 * i)));
    const size_t offset = bytes_.size();
    bytes_.push_back('\x0a');
    for (size_t n = packet.size();; n >>= 7) {
      bytes_.push_back(static_cast<char>((n & 0x7F) | (n > 0x7F ? 0x80 : 0)));
      if (n <= 0x7F) break;
    }
    bytes_ += packet;
    return offset;
  }
  void skip_sequence(uint32_t packets) { sequence_ += packets; }
  const std::string& bytes() const { return bytes_; }

  void header(uint64_t session = 1, bool simulated = false, uint32_t major = 1, uint32_t pid = 100,
              uint32_t minor = 0, bool calls = false) {
    trace::TracePacket p;
    auto* h = p.mutable_header();
    h->set_calls(calls);
    h->set_format_major(major);
    h->set_format_minor(minor);
    h->set_producer("trace_builder");
    h->set_pid(pid);
    h->set_hostname("host");
    h->add_command_line("train");
    h->set_rank(-1);
    h->set_level(trace::LEVEL_LAUNCHES);
    h->set_simulated(simulated);
    h->set_counters(true);
    h->set_session_id(session);
    add(p);
  }
  // Of a process that knows its rank in the job, and when it started by CLOCK_REALTIME.
  void rank_header(uint64_t session, int32_t rank, uint64_t start_ns) {
    trace::TracePacket p;
    auto* h = p.mutable_header();
    h->set_format_major(1);
    h->set_pid(500);
    h->set_hostname("host");
    h->set_rank(rank);
    h->set_clock_realtime_ns(start_ns);
    h->set_session_id(session);
    add(p);
  }
  void device(uint32_t id = 1, const std::string& chip = "GH100",
              const std::string& name = "Test GPU", uint32_t multiprocessors = 0) {
    trace::TracePacket p;
    auto* d = p.mutable_device();
    d->set_id(id);
    d->set_name(name);
    d->set_chip(chip);
    d->set_multiprocessors(multiprocessors);
    add(p);
  }
  void group(uint32_t id, const std::string& name, const std::vector<std::string>& metrics,
             bool required = true, uint32_t device = 1, const std::string& instead_of = "") {
    trace::TracePacket p;
    auto* g = p.mutable_metric_group();
    g->set_instead_of(instead_of);
    g->set_id(id);
    g->set_device(device);
    g->set_name(name);
    for (const auto& m : metrics) g->add_metric(m);
    g->set_required(required);
    add(p);
  }
  // One sample per row of values.
  void samples(uint32_t group, uint32_t signature, const std::vector<std::vector<double>>& rows,
               uint32_t path = 0) {
    trace::TracePacket p;
    auto* s = p.mutable_counter_samples();
    s->set_group(group);
    s->set_window(1);
    for (const auto& row : rows) {
      s->add_signature(signature);
      s->add_range_path(path);
      for (const double v : row) s->add_value(v);
    }
    add(p);
  }
  // Samples of a window around a graph launch, each of `kernels_each` kernels.
  void graph_samples(uint32_t group, uint32_t signature, uint32_t window, uint32_t kernels_each,
                     const std::vector<std::vector<double>>& rows) {
    trace::TracePacket p;
    auto* s = p.mutable_counter_samples();
    s->set_group(group);
    s->set_window(window);
    s->set_graph_kernels(kernels_each);
    for (const auto& row : rows) {
      s->add_signature(signature);
      s->add_range_path(0);
      for (const double v : row) s->add_value(v);
    }
    add(p);
  }
  // One sample that says where among its signature's launches it was taken.
  void placed_sample(uint32_t group, uint32_t signature, uint32_t window, uint64_t ordinal,
                     const std::vector<double>& values) {
    trace::TracePacket p;
    auto* s = p.mutable_counter_samples();
    s->set_group(group);
    s->set_window(window);
    s->add_signature(signature);
    s->add_range_path(0);
    s->add_ordinal(ordinal);
    for (const double v : values) s->add_value(v);
    add(p);
  }
  void string(uint32_t id, const std::string& value) {
    trace::TracePacket p;
    auto* s = p.mutable_interned()->add_strings();
    s->set_id(id);
    s->set_value(value);
    add(p);
  }
  // Instructions of one operation in a kernel's code.
  struct Code {
    trace::Interned::SassOperation operation;
    uint32_t none = 0, one = 0, all = 0;
  };
  // A kernel with one signature: string, function and signature get the same id.
  void kernel(uint32_t id, const std::string& name, uint64_t stable_hash,
              trace::Interned::ParameterClass parameters = trace::Interned::PARAMETERS_EXACT,
              bool code_read = false, const std::vector<Code>& code = {}, uint32_t computes = 0) {
    trace::TracePacket p;
    auto* i = p.mutable_interned();
    auto* s = i->add_strings();
    s->set_id(id);
    s->set_value(name);
    auto* f = i->add_functions();
    f->set_id(id);
    f->set_name(id);
    f->set_code_read(code_read);
    f->set_computes(computes);
    for (const Code& of : code) {
      auto* c = f->add_instructions();
      c->set_operation(of.operation);
      c->set_none(of.none);
      c->set_one(of.one);
      c->set_all(of.all);
    }
    auto* g = i->add_signatures();
    g->set_id(id);
    g->set_function(id);
    g->set_grid_x(1);
    g->set_grid_y(1);
    g->set_grid_z(1);
    g->set_block_x(32);
    g->set_block_y(1);
    g->set_block_z(1);
    g->set_stable_hash(stable_hash);
    g->set_parameter_class(parameters);
    add(p);
  }
  // A range path whose name gets string id 1000 + id; `domain` is the id of a string.
  void path(uint32_t id, uint32_t parent, const std::string& name, uint32_t domain = 0) {
    trace::TracePacket p;
    auto* i = p.mutable_interned();
    auto* s = i->add_strings();
    s->set_id(1000 + id);
    s->set_value(name);
    auto* r = i->add_range_paths();
    r->set_id(id);
    r->set_parent(parent);
    r->set_name(1000 + id);
    r->set_domain(domain);
    add(p);
  }
  // `number`: CUPTI's.
  void stream(uint32_t id = 1, uint32_t device = 1, uint32_t number = 0, bool green = false) {
    trace::TracePacket p;
    auto* s = p.mutable_interned()->add_streams();
    s->set_id(id);
    s->set_device(device);
    s->set_stream(number);
    s->set_green_context(green);
    add(p);
  }
  void thread(uint32_t id, const std::string& name) {
    trace::TracePacket p;
    auto* i = p.mutable_interned();
    auto* s = i->add_strings();
    s->set_id(2000 + id);
    s->set_value(name);
    auto* t = i->add_threads();
    t->set_id(id);
    t->set_name(2000 + id);
    add(p);
  }

  struct Launch {
    uint32_t signature = 0;
    int64_t duration_ns = -1;  // -1: untimed
    uint32_t path = 0;
    bool windowed = false;
    bool graph = false;
    uint64_t sequence = 0;  // autograd sequence number + 1
    uint32_t step = 0;
    bool call = false;  // the first one of a call of an operator
  };
  // Each begins 10 ns after the end of the one before, the first at `start_ns`.
  void launches(const std::vector<Launch>& list, uint32_t thread = 1, uint32_t stream = 1,
                uint64_t start_ns = 1000) {
    trace::TracePacket p;
    fill(*p.mutable_launch_batch(), list);
    if (p.launch_batch().first_start_ns() != 0)
      p.mutable_launch_batch()->set_first_start_ns(start_ns);
    p.mutable_launch_batch()->set_thread(thread);
    p.mutable_launch_batch()->set_stream(stream);
    add(p);
  }

  struct Step {
    uint32_t number = 0;
    uint64_t start_ns = 0, duration_ns = 0;
  };
  void steps(const std::vector<Step>& list, uint32_t path) {
    trace::TracePacket p;
    trace::Steps& s = *p.mutable_steps();
    uint32_t number = 0;
    uint64_t end_ns = list.front().start_ns;
    s.set_first_start_ns(end_ns);
    for (const Step& step : list) {
      s.add_number_delta(static_cast<int32_t>(step.number - number));
      s.add_gap_ns(static_cast<int64_t>(step.start_ns - end_ns));
      s.add_duration_ns(step.duration_ns);
      number = step.number;
      end_ns = step.start_ns + step.duration_ns;
    }
    s.add_range_path_run(path);
    s.add_range_path_run(static_cast<uint32_t>(list.size()));
    add(p);
  }

  struct Tally {
    uint32_t signature = 0;
    uint64_t launches = 0, timed = 0, gpu_time_ns = 0;
    uint32_t path = 0;
    bool windowed = false;
    uint64_t shortest_ns = 1, longest_ns = 0;  // written where they are a range
  };
  void tally(const std::vector<Tally>& rows, uint32_t thread = 1, uint32_t stream = 1) {
    trace::TracePacket p;
    fill(*p.mutable_tally_batch(), rows, thread, stream);
    add(p);
  }
  void revised_tally(uint32_t key, uint64_t revision, const std::vector<Tally>& rows) {
    trace::TracePacket p;
    p.mutable_revised()->set_key(key);
    p.mutable_revised()->set_revision(revision);
    p.mutable_revised()->set_padding(std::string(100, '\0'));
    fill(*p.mutable_revised()->mutable_tally_batch(), rows, 1, 1);
    add(p);
  }
  void revised_ledger(uint32_t key, uint64_t revision, uint64_t launches) {
    trace::TracePacket p;
    p.mutable_revised()->set_key(key);
    p.mutable_revised()->set_revision(revision);
    auto* d = p.mutable_revised()->mutable_ledger()->add_device();
    d->set_device(1);
    d->set_launches(launches);
    d->set_recorded(launches);
    add(p);
  }
  static void fill(trace::TallyBatch& batch, const std::vector<Tally>& rows, uint32_t thread,
                   uint32_t stream) {
    auto* t = &batch;
    const auto has_times = [](const Tally& r) { return r.shortest_ns <= r.longest_ns; };
    const bool any_times = std::any_of(rows.begin(), rows.end(), has_times);
    for (const auto& r : rows) {
      t->add_thread(thread);
      t->add_stream(stream);
      t->add_signature(r.signature);
      t->add_range_path(r.path);
      t->add_launches(r.launches);
      t->add_timed(r.timed);
      t->add_gpu_time_ns(r.gpu_time_ns);
      t->add_windowed(r.windowed ? 1 : 0);
      if (!any_times) continue;
      const uint64_t mean = r.timed > 0 ? r.gpu_time_ns / r.timed : 0;
      t->add_shortest_below(has_times(r) ? mean - r.shortest_ns + 1 : 0);
      t->add_longest_above(has_times(r) ? r.longest_ns - mean + 1 : 0);
    }
  }
  void ledger(uint64_t launches, uint64_t recorded, uint64_t dropped, uint32_t device = 1,
              uint64_t duplicates = 0) {
    trace::TracePacket p;
    auto* l = p.mutable_ledger();
    auto* d = l->add_device();
    d->set_device(device);
    d->set_launches(launches);
    d->set_recorded(recorded);
    d->set_dropped(dropped);
    if (dropped > 0) {
      auto* r = l->add_dropped();
      r->set_reason("ring_full");
      r->set_count(dropped);
    }
    if (duplicates > 0) {
      auto* r = l->add_duplicate();
      r->set_reason("graph_and_kernel");
      r->set_count(duplicates);
    }
    add(p);
  }
  void overhead(uint64_t callback_ns, uint64_t wall_ns) {
    trace::TracePacket p;
    p.mutable_self_overhead()->set_launch_callback_ns(callback_ns);
    p.mutable_self_overhead()->set_wall_ns(wall_ns);
    add(p);
  }
  void diagnostic(const std::string& code, const std::string& message,
                  trace::Diagnostic::Severity severity = trace::Diagnostic::WARNING) {
    trace::TracePacket p;
    p.mutable_diagnostic()->set_severity(severity);
    p.mutable_diagnostic()->set_code(code);
    p.mutable_diagnostic()->set_message(message);
    add(p);
  }
  void end(trace::End::Reason reason = trace::End::EXIT) {
    trace::TracePacket p;
    p.mutable_end()->set_packets(sequence_);
    p.mutable_end()->set_reason(reason);
    add(p);
  }

  // Columns of a batch, from the field comments of flop_trace.proto.
  static void fill(trace::LaunchBatch& b, const std::vector<Launch>& list) {
    constexpr int64_t kGap = 10;
    std::vector<std::pair<uint32_t, int64_t>> last;  // by signature
    bool any_timed = false;
    bool any_untimed = false;
    bool any_windowed = false;
    bool any_graph = false;
    uint32_t last_untimed = 0;
    for (uint32_t i = 0; i < list.size(); ++i) {
      const Launch& l = list[i];
      b.add_signature(l.signature);
      any_windowed = any_windowed || l.windowed;
      any_graph = any_graph || l.graph;
      if (l.duration_ns < 0) {
        b.add_gap_ns(0);
        b.add_duration_delta_ns(0);
        b.add_untimed_delta(any_untimed ? i - last_untimed : i);
        any_untimed = true;
        last_untimed = i;
        continue;
      }
      if (!any_timed) b.set_first_start_ns(1000);
      b.add_gap_ns(any_timed ? kGap : 0);
      any_timed = true;
      int64_t before = 0;
      bool known = false;
      for (auto& [signature, duration] : last) {
        if (signature != l.signature) continue;
        before = duration;
        duration = l.duration_ns;
        known = true;
      }
      if (!known) last.emplace_back(l.signature, l.duration_ns);
      b.add_duration_delta_ns(l.duration_ns - before);
    }
    const auto runs = [&](auto&& value, auto* field) {
      for (size_t i = 0; i < list.size();) {
        size_t end = i;
        while (end < list.size() && value(list[end]) == value(list[i])) ++end;
        field->Add(value(list[i]));
        field->Add(static_cast<std::decay_t<decltype(field->Get(0))>>(end - i));
        i = end;
      }
    };
    runs([](const Launch& l) { return l.path; }, b.mutable_range_path_run());
    if (any_windowed)
      runs([](const Launch& l) { return l.windowed ? 1U : 0U; }, b.mutable_windowed_run());
    if (any_graph) runs([](const Launch& l) { return l.graph ? 1U : 0U; }, b.mutable_graph_run());
    if (std::any_of(list.begin(), list.end(), [](const Launch& l) { return l.sequence != 0; }))
      runs([](const Launch& l) { return l.sequence; }, b.mutable_sequence_run());
    if (std::any_of(list.begin(), list.end(), [](const Launch& l) { return l.step != 0; }))
      runs([](const Launch& l) { return l.step; }, b.mutable_step_run());
    if (std::any_of(list.begin(), list.end(), [](const Launch& l) { return l.call; }))
      runs([](const Launch& l) { return l.call ? 1U : 0U; }, b.mutable_call_run());
  }

 private:
  std::string bytes_;
  uint32_t sequence_ = 0;
};

inline const std::vector<std::string>& sass_metrics() {
  static const std::vector<std::string> kMetrics = [] {
    std::vector<std::string> names;
    for (const char* type : {"f", "d", "h"})
      for (const char* op : {"add", "mul", "fma"})
        names.push_back(std::string("smsp__sass_thread_inst_executed_op_") + type + op +
                        "_pred_on.sum");
    return names;
  }();
  return kMetrics;
}

}  // namespace flopinj::test
