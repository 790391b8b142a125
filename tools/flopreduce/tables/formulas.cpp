#include "tables/formulas.h"

#include <algorithm>
#include <array>
#include <utility>

#include "support/text.h"

namespace flopinj::reduce {
namespace {

enum class Kind : uint8_t { kAdd, kMul, kFma };

// Thread-level instructions with their predicate on. A packed half2 instruction works on two lanes
// and counts once.
struct InstructionFormula {
  std::string_view instruction;
  std::string_view precision;
  Kind kind;
  uint32_t lanes;
};
// In the order of trace::Interned::SassOperation.
constexpr std::array kInstructions = {
    InstructionFormula{"fadd", "fp32", Kind::kAdd, 1},
    InstructionFormula{"fmul", "fp32", Kind::kMul, 1},
    InstructionFormula{"ffma", "fp32", Kind::kFma, 1},
    // Two values in one instruction, on GB100 and its siblings.
    InstructionFormula{"fadd2", "fp32", Kind::kAdd, 2},
    InstructionFormula{"fmul2", "fp32", Kind::kMul, 2},
    InstructionFormula{"ffma2", "fp32", Kind::kFma, 2},
    InstructionFormula{"dadd", "fp64", Kind::kAdd, 1},
    InstructionFormula{"dmul", "fp64", Kind::kMul, 1},
    InstructionFormula{"dfma", "fp64", Kind::kFma, 1},
    InstructionFormula{"hadd", "fp16", Kind::kAdd, 2},
    InstructionFormula{"hmul", "fp16", Kind::kMul, 2},
    InstructionFormula{"hfma", "fp16", Kind::kFma, 2},
};

// Half instructions of one value, which simulated devices tell from those of two.
constexpr std::array kSingles = {
    InstructionFormula{"hadd_one", "fp16", Kind::kAdd, 1},
    InstructionFormula{"hmul_one", "fp16", Kind::kMul, 1},
    InstructionFormula{"hfma_one", "fp16", Kind::kFma, 1},
};

constexpr MachineOperation kMachineOperations[] = {
#define MACHINE_OPERATION(key, name, fp32, fp64) {#key, name, fp32, fp64},
#include "tables/machine_operations.def"
#undef MACHINE_OPERATION
};

std::string_view between(std::string_view before, std::string_view text, std::string_view after) {
  if (!text.starts_with(before) || !text.ends_with(after)) return {};
  return text.substr(before.size(), text.size() - before.size() - after.size());
}

// "fadd" of "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"; empty for other metrics.
std::string_view instruction_of(std::string_view metric) {
  return between("smsp__sass_thread_inst_executed_op_", metric, "_pred_on.sum");
}
// "div_f32" of "simgpu__thread_inst_executed_div_f32.sum".
std::string_view simulated_of(std::string_view metric) {
  return between("simgpu__thread_inst_executed_", metric, ".sum");
}

const InstructionFormula* find_instruction(std::string_view metric) {
  const auto find = [](std::span<const InstructionFormula> rows, std::string_view name) {
    const auto row = std::ranges::find(rows, name, &InstructionFormula::instruction);
    return row == rows.end() ? nullptr : &*row;
  };
  const InstructionFormula* const row = find(kInstructions, instruction_of(metric));
  return row != nullptr ? row : find(kSingles, simulated_of(metric));
}

static_assert(kInstructions.size() == trace::Interned::SassOperation_MAX);

// What may run them (docs/metrics.md: Kernels that are never instrumented): instructions of warps
// or of threads.
struct PipeBound {
  std::string_view metric, precision;
  uint32_t threads;
};
constexpr PipeBound kPipeBounds[] = {
    {"sm__inst_executed_pipe_fma.sum", "fp32", 32},
    {"sm__inst_executed_pipe_fp64.sum", "fp64", 32},
    {"sm__inst_executed_pipe_fp16.sum", "fp16", 32},
    {"sm__inst_executed_pipe_fma_type_fp16.sum", "fp16", 32},
    {"smsp__thread_inst_executed_pipe_fma_pred_on.sum", "fp32", 1},
    {"smsp__thread_inst_executed_pipe_fp64_pred_on.sum", "fp64", 1},
    {"smsp__thread_inst_executed_pipe_fp16_pred_on.sum", "fp16", 1},
    {"smsp__thread_inst_executed_pipe_tensor_op_hmma_type_hfma2_pred_on.sum", "fp16", 1},
};
const PipeBound* find_bound(std::string_view metric) {
  const auto* const row = std::ranges::find(kPipeBounds, metric, &PipeBound::metric);
  return row == std::end(kPipeBounds) ? nullptr : row;
}

// FLOP of the instruction that does most, of those that the kernel's code may have.
uint32_t most_flop(const PipeBound& bound, int fma, const KernelCode& code) {
  uint32_t most = 0;
  for (size_t i = 0; i < kInstructions.size(); ++i) {
    const InstructionFormula& row = kInstructions[i];
    const auto operation = static_cast<trace::Interned::SassOperation>(i + 1);
    if (row.precision != bound.precision || !code.may_compute(operation)) continue;
    most = std::max(most, row.lanes * (row.kind == Kind::kFma ? static_cast<uint32_t>(fma) : 1U));
  }
  return most * bound.threads;
}

// How much of its instructions is arithmetic, as far as the kernel's code shows.
void weigh(MetricMeaning& m, std::string_view metric, const KernelCode& code) {
  const auto* const row =
      std::ranges::find(kInstructions, instruction_of(metric), &InstructionFormula::instruction);
  if (row == kInstructions.end()) return;
  if (code.state() == KernelCode::State::kNotRead) {
    // Most kernels with half instructions have some without arithmetic, others hardly any.
    if (row->precision == "fp16" && row->kind != Kind::kMul) m.least = 0;
    return;
  }
  const auto operation = static_cast<int>(row - kInstructions.begin()) + 1;
  const InstructionCounts* const counts =
      code.find(static_cast<trace::Interned::SassOperation>(operation));
  if (counts == nullptr) return;
  m.instructions = *counts;
  const auto most = [&] { return counts->all > 0 ? m.full : counts->one > 0 ? row->lanes : 0; };
  const auto least = [&] { return counts->none > 0 ? 0 : counts->one > 0 ? row->lanes : m.full; };
  m.numerator = most();
  m.least = std::min(least(), m.numerator);
  m.matrix = m.matrix && counts->all > 0;
}

// Operations, a fused multiply-add already counted as two.
constexpr std::string_view kTensorPrefix = "sm__ops_path_tensor_";
// Tensor instructions, but for the integer ones.
constexpr std::string_view kScreeningPrefix = "sm__inst_executed_pipe_tensor";
constexpr std::string_view kScreeningInteger = "imma";
constexpr uint32_t kFirstWithTensorCores = 7;

std::optional<TensorPath> parse_tensor(std::string_view name) {
  if (!name.starts_with(kTensorPrefix)) return std::nullopt;
  name.remove_prefix(kTensorPrefix.size());
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos || name.substr(dot) != ".sum") return std::nullopt;
  name = name.substr(0, dot);
  TensorPath path;
  std::string* part = nullptr;
  while (!name.empty()) {
    const std::string_view word = name.substr(0, name.find('_'));
    name.remove_prefix(std::min(name.size(), word.size() + 1));
    if (word == "op" || word == "subpipe")
      part = &path.op;
    else if (word == "src")
      part = &path.source;
    else if (word == "dst")
      part = &path.destination;
    else if (word == "sparsity")
      part = &path.sparsity;
    else if (part == nullptr)
      return std::nullopt;
    else
      part->append(part->empty() ? "" : "_").append(word);
  }
  if (path.source.empty()) return std::nullopt;
  return path;
}

bool disjoint(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && a != b;
}
bool disjoint(const TensorPath& a, const TensorPath& b) {
  return disjoint(a.op, b.op) || disjoint(a.source, b.source) ||
         disjoint(a.destination, b.destination) || disjoint(a.sparsity, b.sparsity);
}
int restrictions(const TensorPath& p) {
  return static_cast<int>(!p.op.empty()) + static_cast<int>(!p.destination.empty()) +
         static_cast<int>(!p.sparsity.empty());
}

// Keeps the most general tensor metrics and drops those they include.
void drop_included(std::vector<SignatureFlop::Part>& parts) {
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
    const int ra = a.meaning.tensor ? restrictions(*a.meaning.tensor) : -1;
    const int rb = b.meaning.tensor ? restrictions(*b.meaning.tensor) : -1;
    return ra < rb;
  });
  std::vector<SignatureFlop::Part> kept;
  for (auto& part : parts) {
    const bool included =
        part.meaning.tensor && std::any_of(kept.begin(), kept.end(), [&](const auto& k) {
          return k.meaning.tensor && !disjoint(*k.meaning.tensor, *part.meaning.tensor);
        });
    if (!included) kept.push_back(std::move(part));
  }
  parts = std::move(kept);
}

}  // namespace

// Counts of one result or of one instruction (restrictions()) are not all of a format.
void TensorWorkAsked::add(std::string_view metric) {
  screened_ = screened_ || metric.starts_with(kScreeningPrefix);
  const auto path = parse_tensor(metric);
  if (!path || !path->op.empty() || !path->sparsity.empty()) return;
  for (const auto format : parts_of(path->source, '_'))
    if (format != "fp16" || path->destination.empty() || path->destination == "fp32")
      formats_.emplace(format);
}

// From which compute capability on a format is there (CUDA C++ Programming Guide, "Element Types
// and Matrix Sizes"): fp64 on GPUs for data centers only, where it is slower than all others.
bool TensorWorkAsked::all(uint32_t compute_major, uint32_t compute_minor) const {
  static constexpr std::array<std::pair<uint32_t, std::string_view>, 6> kFormats{
      {{70, "fp16"}, {80, "bf16"}, {80, "tf32"}, {89, "fp8"}, {100, "fp6"}, {100, "fp4"}}};
  if (screened_ || compute_major < kFirstWithTensorCores) return true;
  return std::ranges::all_of(kFormats, [&](const auto& format) {
    return 10 * compute_major + compute_minor < format.first || formats_.contains(format.second);
  });
}

void Flop::add(uint32_t precision, u128 flop, bool is_matrix) {
  overflow = !add_saturating(by_precision[precision], flop) || overflow;
  overflow = !add_saturating(total, flop) || overflow;
  if (is_matrix) overflow = !add_saturating(matrix, flop) || overflow;
}

u128 Flop::all_doubtful() const {
  u128 sum = 0;
  for (const u128 part : doubtful) add_saturating(sum, part);
  return sum;
}

void Flop::add_integer(uint32_t format, u128 operations) {
  overflow = !add_saturating(integer[format], operations) || overflow;
}

void Flop::add(const Flop& other) {
  overflow = overflow || other.overflow;
  for (size_t i = 0; i < integer.size(); ++i)
    overflow = !add_saturating(integer[i], other.integer[i]) || overflow;
  for (size_t i = 0; i < kMaxPrecisions; ++i)
    overflow = !add_saturating(by_precision[i], other.by_precision[i]) || overflow;
  overflow = !add_saturating(total, other.total) || overflow;
  overflow = !add_saturating(matrix, other.matrix) || overflow;
  for (size_t i = 0; i < doubtful.size(); ++i)
    overflow = !add_saturating(doubtful[i], other.doubtful[i]) || overflow;
  overflow = !add_saturating(left_out, other.left_out) || overflow;
}

Flop SignatureFlop::of(uint64_t from, uint64_t count, uint64_t all) const {
  Flop flop;
  if (status != FlopStatus::kMeasured || all == 0) return flop;
  for (const auto& part : parts) {
    // With equal samples, sum * launches / samples is value * launches exactly. Where they are not
    // equal, WorkTable has extrapolated.
    const MetricMeaning& m = part.meaning;
    const u128 counted = part.counted(all, flop.overflow);
    const auto share = [&](uint32_t numerator) {
      const u128 whole = mul_div_round(counted, numerator, m.denominator, flop.overflow);
      const u128 before = mul_div_round(whole, from, all, flop.overflow);
      return mul_div_round(whole, from + count, all, flop.overflow) - before;
    };
    const u128 work = share(m.numerator);
    if (m.role == MetricRole::kMachine) continue;
    if (m.role == MetricRole::kInteger)
      flop.add_integer(m.precision, work);
    else
      flop.add(m.precision, work, m.matrix);
    if (m.least < m.numerator) {
      const u128 least = share(m.least);
      add_saturating(flop.doubtful[m.precision], work > least ? work - least : 0);
    }
    if (m.numerator < m.full) {
      const u128 full = share(m.full);
      add_saturating(flop.left_out, full > work ? full - work : 0);
    }
  }
  return flop;
}

std::span<const MachineOperation> machine_operations() { return kMachineOperations; }

Formulas::Formulas(int fma) : fma_(fma), precisions_{"fp64", "fp32", "fp16"} {}

uint32_t Formulas::precision_index(const std::string& name) {
  const auto found = std::find(precisions_.begin(), precisions_.end(), name);
  if (found != precisions_.end()) return static_cast<uint32_t>(found - precisions_.begin());
  if (precisions_.size() + 1 >= kMaxPrecisions) {  // the last place is for all the rest
    if (precisions_.size() < kMaxPrecisions) precisions_.emplace_back("tensor_other");
    return kMaxPrecisions - 1;
  }
  precisions_.push_back(name);
  return static_cast<uint32_t>(precisions_.size() - 1);
}

MetricMeaning Formulas::meaning(std::string_view metric) {
  MetricMeaning m;
  if (const InstructionFormula* const row = find_instruction(metric)) {
    m.role = MetricRole::kFlop;
    m.matrix = row->kind == Kind::kFma;
    m.numerator = m.least = m.full = row->lanes * (m.matrix ? static_cast<uint32_t>(fma_) : 1U);
    m.precision = precision_index(std::string(row->precision));
    return m;
  }
  const auto* const operation =
      std::ranges::find(kMachineOperations, simulated_of(metric), &MachineOperation::key);
  if (operation != std::end(kMachineOperations)) {
    m.role = MetricRole::kMachine;
    m.precision = static_cast<uint32_t>(operation - std::begin(kMachineOperations));
    m.numerator = m.least = m.full = operation->fp32 + operation->fp64;
    return m;
  }
  if (const PipeBound* const bound = find_bound(metric)) {
    m.role = MetricRole::kBound;
    m.numerator = m.full = most_flop(*bound, fma_, {});
    m.precision = precision_index(std::string(bound->precision));
    return m;
  }
  if (metric.starts_with(kScreeningPrefix) && metric.ends_with(".sum") &&
      metric.find(kScreeningInteger) == std::string_view::npos) {
    m.role = MetricRole::kScreening;
    return m;
  }
  auto path = parse_tensor(metric);
  if (!path) return m;
  m.numerator = m.least = m.full = 1;
  const std::string name =
      "tensor_" + path->source + (path->sparsity == "on" ? "_sparse" : std::string());
  if (path->source.starts_with("int") || path->source.starts_with("uint")) {
    m.role = MetricRole::kInteger;
    const auto format = std::find(kIntegerFormats.begin(), kIntegerFormats.end() - 1, name);
    m.precision = static_cast<uint32_t>(format - kIntegerFormats.begin());
  } else {
    m.role = MetricRole::kFlop;
    m.matrix = true;
    m.denominator = fma_ == 1 ? 2 : 1;
    m.precision = precision_index(name);
  }
  m.tensor = std::move(path);
  return m;
}

SignatureFlop Formulas::evaluate(const SampleSet* samples, const RequiredGroups& required,
                                 const NamePool& names, const KernelCode* code) {
  SignatureFlop out;
  if (required.always.empty()) {
    out.status = FlopStatus::kNoCounters;
    return out;
  }
  const auto not_sampled = [&](uint32_t group) {
    if (samples != nullptr && samples->group_samples(group) > 0) return false;
    out.status = required.is_unavailable(group) ? FlopStatus::kGroupUnavailable
                                                : FlopStatus::kGroupNotSampled;
    out.missing_group = group;
    return true;
  };
  for (const uint32_t group : required.always) {
    if (required.bounded(group, samples))
      out.bounded = true;
    else if (not_sampled(group))
      return out;
  }
  out.unscreened = required.tensor_not_asked;
  bool tensor_needed = required.conditional.empty();  // then only screening is to say so
  for (const auto& group : required.conditional) {
    const Need need = need_of(group, *samples);
    // What nothing rules out, and cannot be measured, would be missing in silence.
    const bool certain =
        need == Need::kYes || (need == Need::kUnknown && required.is_unavailable(group.group));
    if (certain && not_sampled(group.group)) return out;
    tensor_needed = tensor_needed || need == Need::kYes;
    out.unscreened =
        out.unscreened || (need == Need::kUnknown && samples->group_samples(group.group) == 0);
  }
  bool tensor_seen = false;
  bool half_fma = false;
  for (const auto& stat : samples->metrics) {
    if (stat.n == 0) continue;
    auto meaning = this->meaning(names[stat.metric]);
    if (meaning.role == MetricRole::kScreening && stat.max > 0) tensor_seen = tensor_needed;
    if (meaning.role == MetricRole::kBound && out.bounded) {
      const PipeBound& bound = *find_bound(names[stat.metric]);
      meaning.role = MetricRole::kFlop;
      if (code != nullptr) meaning.numerator = meaning.full = most_flop(bound, fma_, *code);
      if (bound.precision == "fp16" && stat.max > 0) half_fma = true;
    }
    if (meaning.role == MetricRole::kMachine && stat.max > 0)
      out.parts.push_back({stat, meaning, std::nullopt});
    if (meaning.role != MetricRole::kFlop && meaning.role != MetricRole::kInteger) continue;
    if (instruction_of(names[stat.metric]) == "hfma" && stat.max > 0) half_fma = true;
    if (code != nullptr) weigh(meaning, names[stat.metric], *code);
    if (meaning.numerator > 0) {
      out.varying = out.varying || stat.min != stat.max;
      out.inexact = out.inexact || !stat.integral;
    }
    out.parts.push_back({stat, std::move(meaning), std::nullopt});
  }
  drop_included(out.parts);
  const bool tensor_sampled = std::any_of(out.parts.begin(), out.parts.end(), [](const auto& p) {
    return p.meaning.tensor.has_value();
  });
  const bool tensor_counted = std::any_of(out.parts.begin(), out.parts.end(), [](const auto& p) {
    return p.meaning.tensor && p.stat.max > 0;
  });
  out.status = FlopStatus::kMeasured;
  if (tensor_seen && !tensor_sampled) out.status = FlopStatus::kTensorNotSampled;
  // The hmma pipe counter also counts HFMA2.MMA, packed half arithmetic that the instruction
  // counters already hold.
  else if (tensor_seen && !tensor_counted && !half_fma)
    out.status = FlopStatus::kTensorNotCovered;
  return out;
}

}  // namespace flopinj::reduce
