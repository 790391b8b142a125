#include <collector/schedule/computed_plan.h>

#include <algorithm>
#include <array>
#include <set>

namespace flopinj {
namespace {

constexpr std::string_view kTensor = "sm__ops_path_tensor_", kPipe = "sm__inst_executed_pipe_";

std::string with_sum(std::string_view name) { return std::string(name).append(".sum"); }

// What the name of a metric of tensor operations restricts: op, destination, sparsity, source.
enum Part : uint8_t { kOp, kDestination, kSparsity, kSource, kParts };
struct Operations {
  std::string name;
  std::array<std::string, kParts> parts;

  // True for a metric that counts a part of what this one does.
  bool includes(const Operations& other) const {
    for (size_t i = 0; i < kParts; ++i)
      if (!parts[i].empty() && parts[i] != other.parts[i]) return false;
    return parts != other.parts;
  }
};

bool is_part(std::string_view word, Part& part) {
  constexpr std::array<std::string_view, kParts> kWords = {"op", "dst", "sparsity", "src"};
  const auto* const it = std::find(kWords.begin(), kWords.end(), word);
  if (it == kWords.end()) return false;
  part = static_cast<Part>(it - kWords.begin());
  return true;
}

// Names without a source hold nothing that a weight could be given to; int4 and int1 are not
// counted.
bool parse(std::string_view name, Operations& out) {
  if (!name.starts_with(kTensor)) return false;
  out = {std::string(name), {}};
  Part part = kParts;
  for (std::string_view rest = name.substr(kTensor.size()); !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find('_'));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (is_part(word, part)) continue;
    if (part == kParts) return false;
    out.parts[part].append(out.parts[part].empty() ? "" : "_").append(word);
  }
  const std::string& source = out.parts[kSource];
  return !source.empty() && source != "int4" && source != "int1";
}

// Metrics that count each operation once.
class Cover {
 public:
  Cover(const std::vector<std::string>& names, const PassesOf& passes) : passes_(passes) {
    Operations parsed;
    for (const std::string& name : names)
      if (parse(name, parsed)) all_.push_back(parsed);
    for (const Operations& metric : all_)
      if (!is_included(metric, all_) && !add(metric)) lacking.push_back(metric.name);
  }

  std::vector<std::string> read;     // each takes one pass
  std::vector<std::string> lacking;  // neither they nor their parts can be read in one

 private:
  static bool is_included(const Operations& metric, const std::vector<Operations>& among) {
    return std::any_of(among.begin(), among.end(),
                       [&](const Operations& other) { return other.includes(metric); });
  }

  bool add(const Operations& metric) {
    if (passes_({with_sum(metric.name)}) == 1) {
      read.push_back(metric.name);
      return true;
    }
    // The parts that one restriction more makes: they are the whole.
    for (const Part by : {kOp, kDestination, kSparsity}) {
      std::vector<Operations> parts;
      for (const Operations& other : all_)
        if (metric.parts[by].empty() && !other.parts[by].empty() && metric.includes(other))
          parts.push_back(other);
      std::erase_if(parts, [&](const Operations& part) { return is_included(part, parts); });
      if (!are_whole(parts, by)) continue;
      const size_t before = read.size();
      if (std::all_of(parts.begin(), parts.end(),
                      [&](const Operations& part) { return add(part); }))
        return true;
      read.resize(before);
    }
    return false;
  }

  static bool are_whole(const std::vector<Operations>& parts, Part by) {
    if (by != kSparsity) return !parts.empty();
    std::set<std::string> values;
    for (const Operations& part : parts) values.insert(part.parts[by]);
    return values.contains("on") && values.contains("off");
  }

  std::vector<Operations> all_;
  const PassesOf& passes_;
};

// Counters of the warp instructions of pipes that do matrix products: the pipes, not parts of
// their instructions. Where there is a second version of one, the first is not the whole.
std::vector<std::string> pipes_of(const std::vector<std::string>& names) {
  const std::set<std::string_view> all(names.begin(), names.end());
  std::vector<std::string> pipes;
  for (const std::string_view name : all) {
    if (!name.starts_with(kPipe)) continue;
    const std::string_view pipe = name.substr(kPipe.size());
    const bool matrix = pipe.starts_with("tensor_op_") || pipe.starts_with("tensor_subpipe_") ||
                        pipe.ends_with("_op_dmma") || pipe == "tc";
    const auto has = [&](std::string_view word) { return pipe.find(word) != pipe.npos; };
    const bool of_a_part = has("_pred_") || has("_type_") || has("_realtime") || has("_scope_") ||
                           (pipe.starts_with("tensor_subpipe_") && has("_op_"));
    if (matrix && !of_a_part && !all.contains(std::string(name) + "_v2"))
      pipes.push_back(with_sum(name));
  }
  return pipes;
}

// Adds what still fits one pass. Returns whether all of it did.
bool add_fitting(std::vector<std::string>& to, const std::vector<std::string>& more,
                 const PassesOf& passes) {
  bool all = true;
  for (const std::string& metric : more) {
    to.push_back(metric);
    if (passes(to) == 1) continue;
    to.pop_back();
    all = false;
  }
  return all;
}

MetricGroupPlan lacking_group(std::string_view chip, const std::vector<std::string>& lacking) {
  MetricGroupPlan group;
  group.name = "tensor_unknown";
  group.unavailable = "chip " + std::string(chip) + " is not in flopinj's table, and ";
  if (lacking.empty()) {
    group.unavailable += "CUPTI has no metric that counts its tensor operations";
    return group;
  }
  for (const std::string& name : lacking) group.metrics.push_back(with_sum(name));
  group.unavailable += "CUPTI reads " + lacking.front() + " in no single pass, nor its parts";
  return group;
}

}  // namespace

std::vector<MetricGroupPlan> compute_metric_plan(std::string_view chip,
                                                 const std::vector<std::string>& names,
                                                 const PassesOf& passes) {
  std::vector<MetricGroupPlan> plan;
  MetricGroupPlan screening{"screening", {}, false, false};
  const std::vector<std::string> pipes = pipes_of(names);
  const bool screens = add_fitting(screening.metrics, pipes, passes) && !pipes.empty();
  add_fitting(screening.metrics,
              {"gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum",
               "dram__bytes_op_read.sum", "dram__bytes_op_write.sum", "sm__cycles_elapsed.max",
               "sm__cycles_active.sum"},
              passes);
  if (!screening.metrics.empty()) plan.push_back(std::move(screening));

  const Cover cover(names, passes);
  std::vector<MetricGroupPlan> tensor;
  for (const std::string& name : cover.read) {
    const auto fits = [&](MetricGroupPlan& group) {
      return add_fitting(group.metrics, {with_sum(name)}, passes);
    };
    if (std::none_of(tensor.begin(), tensor.end(), fits))
      tensor.push_back(
          {"tensor_" + std::to_string(tensor.size() + 1), {with_sum(name)}, false, true});
  }
  plan.insert(plan.end(), tensor.begin(), tensor.end());
  if (cover.read.empty() || !cover.lacking.empty()) {
    plan.push_back(lacking_group(chip, cover.lacking));
    plan.back().required = !screens;
    if (screens)
      for (const std::string& pipe : pipes) plan.back().needed_if.push_back({pipe, {}});
  }

  const bool paired = std::find(names.begin(), names.end(),
                                "smsp__sass_thread_inst_executed_op_ffma2_pred_on") != names.end();
  plan.push_back(instruction_plan(paired));
  return plan;
}

}  // namespace flopinj
