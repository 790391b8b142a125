// Traces whose ranges are PyTorch's operators, and what a report says of them.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "catch.h"
#include "reduce_bytes.h"

namespace flopinj::test {

using namespace flopinj::reduce;

using Launch = TraceBuilder::Launch;

inline constexpr uint32_t kMain = 1, kAutograd = 2;

// A trace with a main thread and autograd's. Ranges and kernels get their ids by name.
class Scene {
 public:
  // `calls`: the recorder says which launches begin a call of an operator.
  explicit Scene(bool calls = false) : trace_(started(1, "GH100", false, calls)) {
    trace_.thread(kAutograd, "pt_autograd_0");
    trace_.group(2, "tensor", {"sm__ops_path_tensor_src_bf16_dst_fp32.sum"}, false);
  }
  // Names from the outermost range on; the innermost's id.
  uint32_t path(const std::vector<std::string>& names) {
    std::string whole;
    uint32_t id = 0;
    for (const auto& name : names) {
      whole += "\n" + name;
      auto [entry, fresh] = paths_.try_emplace(whole, static_cast<uint32_t>(paths_.size() + 1));
      if (fresh) trace_.path(entry->second, id, name);
      id = entry->second;
    }
    return id;
  }
  // A kernel that does so many fused multiply-adds and additions, or operations on tensor cores.
  uint32_t kernel(const std::string& name, double fma, double add = 0, double tensor = 0) {
    const uint32_t id = ++kernels_;
    trace_.kernel(id, name, 1000 + id);
    trace_.samples(1, id, {sass(add, 0, fma)});
    if (tensor > 0) trace_.samples(2, id, {{tensor}});
    return id;
  }
  uint32_t unmeasured(const std::string& name) {
    const uint32_t id = ++kernels_;
    trace_.kernel(id, name, 1000 + id);
    return id;
  }
  void launch(uint32_t thread, const std::vector<Launch>& list) { trace_.launches(list, thread); }
  Launch at(uint32_t kernel, uint32_t path, uint64_t sequence, bool call = false) {
    return {.signature = kernel,
            .duration_ns = 100,
            .path = path,
            .sequence = sequence + 1,
            .call = call};
  }
  // The first launch of a call.
  Launch call(uint32_t kernel, uint32_t path, uint64_t sequence = UINT64_MAX) {
    return at(kernel, path, sequence, true);
  }
  TraceBuilder& trace() { return trace_; }
  // The summary says the same, but for numbers that are too far apart to be read together.
  Report reduce(bool far_apart = false) {
    trace_.end();
    const std::string whole = trace_.bytes();
    Report report = reduce_bytes({whole});
    const Report again = reduce_bytes({merge_bytes({{"trace0", whole}}).bytes});
    CHECK((far_apart || timeless_json_of(again) == timeless_json_of(report)));
    CHECK(again.operators.without_forward + again.operators.out_of_window ==
          report.operators.without_forward + report.operators.out_of_window);
    return report;
  }

 private:
  TraceBuilder trace_;
  std::map<std::string, uint32_t> paths_;
  uint32_t kernels_ = 0;
};

inline const OperatorReport& type_of(const Report& report, const std::string& name,
                                     const std::string& phase) {
  for (const auto& o : report.operators.types)
    if (o.name == name && o.phase == phase) return o;
  FAIL("no operator " << name << " in " << phase);
  return report.operators.types[0];
}

// To its last digit, whatever its marks.
inline u128 whole(const Figure& figure) {
  const auto* value = std::get_if<u128>(&figure.value());
  REQUIRE(value != nullptr);
  return *value;
}
inline u128 model_flop(const Report& report) { return whole(report.operators.model.flop()); }

inline const ForwardBackward& by_forward(const Report& report, const std::string& name) {
  for (const auto& row : report.operators.by_forward)
    if (row.name == name) return row;
  FAIL("no operator " << name << " of forward");
  return report.operators.by_forward[0];
}

inline void check_pair(const ForwardBackward& row, double forward, double backward, double ratio,
                       double expected) {
  INFO(row.name);
  CHECK(row.forward.flop == static_cast<u128>(forward));
  CHECK(row.backward.flop == static_cast<u128>(backward));
  REQUIRE(row.ratio);
  CHECK(*row.ratio == Approx(ratio));
  REQUIRE(row.expected);
  CHECK(row.expected->certain());
  CHECK(row.expected->most == Approx(expected));
}

inline const std::string kNode = "autograd::engine::evaluate_function: ";

}  // namespace flopinj::test
